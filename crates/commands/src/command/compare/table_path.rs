//! A path whose both directions follow a table of rates, delays and losses over time: `--path FILE.csv`.
//!
//! The table says nothing about the queues, and need not have a delay. What is assumed is said, as for
//! `--line`.

use talkpath_path::{ChangeTable, LinkValues, RateModel};
use talkpath_units::{Duration, Rate};

use crate::args::quoted;
use crate::path_changes::rate as rate_in_words;

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
        let (up, down) = table.directions();
        let period = period(up);
        let up = Way::new("up", UP_QUEUE, up, period).map_err(|why| format!("{name}: {why}"))?;
        let down = match down {
            None => Way { name: "down", queue: DOWN_QUEUE, ..up },
            Some(rows) => {
                Way::new("down", DOWN_QUEUE, rows, period).map_err(|why| format!("{name}: {why}"))?
            }
        };
        let text = format!(
            "{}{}[[change]]\nfile = {}\nevery = \"{} ms\"\n",
            up.written(),
            down.written(),
            quoted(name),
            period.as_millis()
        );
        let assumed_delays: Vec<&str> =
            [up, down].iter().filter(|way| way.delay.is_none()).map(|way| way.name).collect();
        let assumed_delay = match assumed_delays[..] {
            [] => String::new(),
            [one] => format!("a delay of {ASSUMED_DELAY} {one} and "),
            _ => format!("a delay of {ASSUMED_DELAY} each way and "),
        };
        let follows = match table.directions() {
            (_, None) => "both directions follow the table",
            _ => "each direction follows its columns of the table",
        };
        let origin =
            table.origin().map_or(String::new(), |first| format!(" and begins at its first time, {first} s"));
        let assumptions = format!(
            "--path {name}: {follows}, which repeats after {period}{origin}; assumed {assumed_delay}queues of {UP_QUEUE} up and \
             {DOWN_QUEUE} down at the mean rate ({} up, {} down); a path file says otherwise, with `link`, `file` and `every` in \
             [[change]]",
            rate_in_words(up.rate),
            rate_in_words(down.rate)
        );
        Ok(Self { text, assumptions })
    }
}

/// One direction of the path, at the beginning.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// The limit of its queue, as time.
    queue: &'static str,
    /// The mean rate, with which the limit is reckoned.
    rate: Rate,
    /// The first delay of the table. `None` if it has none.
    delay: Option<Duration>,
}

impl Way {
    fn new(
        name: &'static str,
        queue: &'static str,
        rows: &[(Duration, LinkValues)],
        period: Duration,
    ) -> Result<Self, String> {
        let rate = mean_rate(rows, period).ok_or_else(|| {
            format!(
                "found no rate above 0 of the direction {name}, expected a column rate_bps, rate_kbps or rate_mbps, or one for each \
                 direction as in up_mbps and down_mbps; a path file with `file` in [[change]] gives the rate where a table has none"
            )
        })?;
        Ok(Self { name, queue, rate, delay: rows.iter().find_map(|(_, row)| row.delay) })
    }

    /// The link as a path file describes it, in a line.
    fn written(&self) -> String {
        format!(
            "{} = {{ rate = \"{} kbps\", delay = \"{} us\", queue = {{ kind = \"drop-tail\", limit = \"{}\" }} }}\n",
            self.name,
            self.rate.as_bps() as f64 / 1e3,
            self.delay.unwrap_or(ASSUMED_DELAY).as_nanos() as f64 / 1e3,
            self.queue
        )
    }
}

/// The mean of the rates in bit/s, weighted by how long each holds, without the times at a rate of 0: a queue
/// cannot be reckoned with such a rate. `None` if no rate is above 0.
fn mean_rate(rows: &[(Duration, LinkValues)], period: Duration) -> Option<Rate> {
    let (mut bits, mut seconds) = (0.0, 0.0);
    let ends = rows.iter().skip(1).map(|(time, _)| *time).chain([period]);
    for ((time, row), end) in rows.iter().zip(ends) {
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
fn period(rows: &[(Duration, LinkValues)]) -> Duration {
    let times: Vec<Duration> = rows.iter().map(|(time, _)| *time).collect();
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
    fn each_direction_follows_its_own_columns_if_it_has_some() {
        let table = "time_s,up_mbps,down_mbps,down_delay_ms\n1700000000,2,40,15\n1700000001,4,60,30\n";
        let TablePath { text, assumptions } = TablePath::new("a.csv", table).unwrap();
        assert!(text.contains("up = { rate = \"3000 kbps\", delay = \"20000 us\""), "{text}");
        assert!(text.contains("down = { rate = \"50000 kbps\", delay = \"15000 us\""), "{text}");
        assert!(
            assumptions
                .contains("begins at its first time, 1700000000 s; assumed a delay of 20 ms up and queues"),
            "{assumptions}"
        );
        let one_way = TablePath::new("a.csv", "time_s up_mbps\n0 5\n").err().unwrap();
        assert!(one_way.contains("no rate above 0 of the direction down"), "{one_way}");
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
