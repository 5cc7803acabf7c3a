//! A path whose both directions follow a table of rates, delays and losses over time: `--path FILE.csv`.
//!
//! The table says nothing about the queues, and need not have a delay. What is assumed is said, as for
//! `--line`.

use talkpath_path::{ChangeTable, LinkValues, RateModel};
use talkpath_units::{Duration, Rate};

use crate::args::quoted;

/// The one-way delay of a path whose table has none. We chose 20 ms, as a phone has on LTE (the preset
/// `lte`).
const ASSUMED_DELAY: Duration = Duration::from_millis(20);
/// How long a full queue takes to empty at the mean rate, as `--line` assumes it.
const UP_QUEUE: &str = "250 ms";
const DOWN_QUEUE: &str = "100 ms";

/// The path of a table.
pub(super) struct TablePath {
    /// The path as a file of `--path` describes it.
    pub(super) text: String,
    /// What is assumed, in a sentence.
    pub(super) assumptions: String,
}

impl TablePath {
    /// Makes the path of the table `text`, whose file is called `name`, and lies beside the path.
    ///
    /// # Errors
    /// Returns why the text is no table, or that it has no rates.
    pub(super) fn new(name: &str, text: &str) -> Result<Self, String> {
        let table: ChangeTable = text.parse().map_err(|why| format!("{name}: {why}"))?;
        let Some(rate) = mean_rate(&table) else {
            return Err(format!(
                "{name}: found no rate above 0, expected a column rate_bps, rate_kbps or rate_mbps; a path file with `file` in \
                 [[change]] gives the rate where a table has none"
            ));
        };
        let delays: Vec<Duration> = table.rows().iter().filter_map(|(_, row)| row.delay).collect();
        let delay = delays.first().copied().unwrap_or(ASSUMED_DELAY);
        let link = |queue: &str| {
            format!(
                "{{ rate = \"{} kbps\", delay = \"{} us\", queue = {{ kind = \"drop-tail\", limit = \"{queue}\" }} }}",
                rate.as_bps() as f64 / 1e3,
                delay.as_nanos() as f64 / 1e3
            )
        };
        let file = quoted(name);
        let text = format!(
            "up = {}\ndown = {}\n[[change]]\nfile = {file}\nevery = \"{} ms\"\n",
            link(UP_QUEUE),
            link(DOWN_QUEUE),
            period(&table).as_millis()
        );
        let assumed_delay = if delays.is_empty() {
            format!("a delay of {ASSUMED_DELAY} each way and ")
        } else {
            String::new()
        };
        let assumptions = format!(
            "--path {name}: both directions follow the table, which repeats after {}; assumed {assumed_delay}queues of {UP_QUEUE} \
             up and {DOWN_QUEUE} down at the mean rate; a path file says otherwise, with `link`, `file` and `every` in [[change]]",
            period(&table)
        );
        Ok(Self { text, assumptions })
    }
}

/// The mean of the rates in bit/s, weighted by how long each holds, without the times at a rate of 0: a queue
/// cannot be reckoned with such a rate. `None` if no rate is above 0.
fn mean_rate(table: &ChangeTable) -> Option<Rate> {
    let (mut bits, mut seconds) = (0.0, 0.0);
    let ends = table.rows().iter().skip(1).map(|(time, _)| *time).chain([period(table)]);
    for ((time, row), end) in table.rows().iter().zip(ends) {
        if let LinkValues { rate: Some(RateModel::Fixed(rate)), .. } = row
            && rate.as_bps() > 0
        {
            let holds = (end.as_secs_f64() - time.as_secs_f64()).max(1e-9);
            bits += rate.as_bps() as f64 * holds;
            seconds += holds;
        }
    }
    let mean = (bits / seconds).round();
    (mean >= 1.0).then(|| Rate::from_bps(mean as u64))
}

/// The time after which the table repeats: the last row holds as long as the row before it, or a second if
/// there is none. It is a whole number of milliseconds.
fn period(table: &ChangeTable) -> Duration {
    let times: Vec<Duration> = table.rows().iter().map(|(time, _)| *time).collect();
    let last = times.last().copied().unwrap_or_default();
    let step = match times[..] {
        [.., before, last] if last > before => last.as_nanos() - before.as_nanos(),
        _ => 1_000_000_000,
    };
    let ms = (last.as_nanos() + step).div_ceil(1_000_000);
    Duration::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_follow_the_table_from_its_mean_rate_on() {
        let table = "time_s,rate_mbps,delay_ms\n0,10,15\n1,0,30\n2,20,15\n";
        let TablePath { text, assumptions } = TablePath::new("a.csv", table).unwrap();
        let expected = "up = { rate = \"15000 kbps\", delay = \"15000 us\", queue = { kind = \"drop-tail\", limit = \"250 ms\" } }\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("[[change]]\nfile = \"a.csv\"\nevery = \"3000 ms\"\n"), "{text}");
        assert!(assumptions.contains("repeats after 3 s; assumed queues of 250 ms up"), "{assumptions}");
    }

    #[test]
    fn a_table_without_a_delay_has_an_assumed_one_and_one_without_rates_is_refused() {
        let assumed = TablePath::new("a.csv", "time_ms rate_kbps\n0 500\n").unwrap().assumptions;
        assert!(assumed.contains("assumed a delay of 20 ms each way and queues"), "{assumed}");
        let refused = |text: &str| TablePath::new("a.csv", text).err().unwrap();
        assert!(refused("time_s delay_ms\n0 20\n").contains("expected a column rate_bps"));
        assert!(refused("time_s rate_mbps\n0 0\n").contains("found no rate above 0"));
        assert!(refused("time,mbps\n0,1\n").contains("expected a header"));
    }
}
