//! A path whose both directions follow a table of rates, delays and losses over time, and the words for such
//! a table.
//!
//! The table says nothing about the queues, and need not have a delay. What is assumed is said, as for
//! `--line`.

use talkpath_path::{ChangeRows, ChangeTable, LinkValues, LossModel, RateModel};
use talkpath_scenario::PathText;
use talkpath_units::{Duration, Rate, counted};

use crate::args::quoted;
use crate::path_changes::rate as rate_in_words;

/// The one-way delay of a path whose file has none. We chose 20 ms, as of a phone on LTE (the preset `lte`).
const ASSUMED_DELAY: Duration = Duration::from_millis(20);
/// How long a full queue takes to empty at the mean rate, as `--line` assumes it.
const UP_QUEUE: Duration = Duration::from_millis(250);
const DOWN_QUEUE: Duration = Duration::from_millis(100);

/// What is assumed of a path beside its rates.
pub(super) struct Assumed {
    /// The directions whose delay is assumed.
    delay_of: Vec<&'static str>,
}

impl Assumed {
    /// The delays of both directions are assumed.
    pub(super) fn of_both() -> Self {
        Self { delay_of: vec!["up", "down"] }
    }

    /// Says what is assumed.
    pub(super) fn in_words(&self) -> String {
        let delay = match self.delay_of[..] {
            [] => String::new(),
            [only] => format!("a delay of {ASSUMED_DELAY} {only} and "),
            _ => format!("a delay of {ASSUMED_DELAY} each way and "),
        };
        format!("assumed {delay}queues of {UP_QUEUE} up and {DOWN_QUEUE} down")
    }

    /// Says what is assumed of a path whose rates, with their queues, come from elsewhere.
    fn without_queues_in_words(&self) -> String {
        match self.delay_of[..] {
            [] => "its rates and queues are those beside it, its delays those of the table".to_owned(),
            _ => format!("assumed a delay of {ASSUMED_DELAY}; its rates and queues are those beside it"),
        }
    }
}

/// The link `up` or `down` as a path file describes it, in a line. `rate` is TOML, or empty if no rate is
/// known: then the queue is not known either. Without a `delay` it is assumed.
pub(super) fn link_line(link: &str, rate: &str, delay: Option<Duration>) -> String {
    let delay = delay.unwrap_or(ASSUMED_DELAY).as_nanos() as f64 / 1e3;
    if rate.is_empty() {
        return format!("{link} = {{ delay = \"{delay} us\" }}\n");
    }
    let limit = queue_time(link);
    format!(
        "{link} = {{ rate = {rate}, delay = \"{delay} us\", queue = {{ kind = \"drop-tail\", limit = \"{limit}\" }} }}\n"
    )
}

/// How long a full queue of the link takes to empty at the mean rate.
fn queue_time(link: &str) -> Duration {
    if link == "up" { UP_QUEUE } else { DOWN_QUEUE }
}

/// Makes the path of the table `text`. `name` is the file that the user named, and `table_name` the name of
/// the table in the path. `path` has what was made of the file so far.
///
/// # Errors
/// Returns why the text is no table, or that its rates are all 0.
pub(super) fn path_of_table(
    name: &str,
    table_name: &str,
    text: &str,
    mut path: PathText,
) -> Result<PathText, String> {
    let table = read(text)?;
    let begins = table.directions().0.first().map_or(Duration::ZERO, |(time, _)| *time);
    let origin = table
        .origin()
        .map_or_else(String::new, |origin| format!("; times count from the first one, {origin}"));
    let table = if begins.is_zero() { table } else { from_zero(&table, table_name, &mut path)? };
    let period = table.period();
    let (up, down) = table.directions();
    let mut rates = TableRates::default();
    for (link, rows) in [("up", up), ("down", down.unwrap_or(up))] {
        path.text += &rates.add(link, rows, period)?;
    }
    path.text +=
        &format!("[[change]]\nfile = {}\nevery = \"{} ms\"\n", quoted(table_name), period.as_millis());
    let follows = match down {
        None => "both directions follow the table",
        Some(_) => "each direction follows its columns of the table",
    };
    let from =
        if begins.is_zero() { String::new() } else { format!(" and begins at its first time, {begins}") };
    path.notes.push(format!(
        "--path {name}: {follows}, which repeats after {period}{from}{origin}; {}; a path file says otherwise, with `link`, `file` \
         and `every` in [[change]]",
        rates.in_words()
    ));
    path.assumes_queues = rates.lacking.is_empty();
    if !rates.lacking.is_empty() {
        path.lacks_rate = Some(lacking_rate(name, &rates.lacking));
    }
    Ok(path)
}

fn read(text: &str) -> Result<ChangeTable, String> {
    text.parse().map_err(|why: talkpath_path::TraceError| why.to_string())
}

/// Returns `table` with times from its first row on, and puts its text into the path under `table_name`.
fn from_zero(table: &ChangeTable, table_name: &str, path: &mut PathText) -> Result<ChangeTable, String> {
    let text = table.written_from_zero();
    let written = read(&text)?;
    path.made.retain(|(made, _)| made != table_name);
    path.made.push((table_name.to_owned(), text));
    // The written table has other units, so not all doubts are those of the file.
    let doubts = table.doubts().iter().filter(|doubt| !written.doubts().contains(doubt));
    path.doubts.extend(doubts.cloned());
    Ok(written)
}

/// What the rates and delays of a table say of the two links, and what they leave to be assumed.
#[derive(Default)]
struct TableRates {
    /// The links whose rate the table does not have.
    lacking: Vec<&'static str>,
    /// The links whose delay the table does not have.
    without_delay: Vec<&'static str>,
    /// The mean rate of each link that has one, in words.
    means: Vec<String>,
}

impl TableRates {
    /// Adds a link that follows `rows`. Returns the link as a path file describes it, in a line.
    ///
    /// # Errors
    /// Returns that all rates are 0.
    fn add(&mut self, link: &'static str, rows: &ChangeRows, period: Duration) -> Result<String, String> {
        let delay = rows.iter().find_map(|(_, row)| row.delay);
        if delay.is_none() {
            self.without_delay.push(link);
        }
        if rates(rows).next().is_none() {
            self.lacking.push(link);
            return Ok(link_line(link, "", delay));
        }
        let mean = mean_rate_above_zero(rows, period)
            .ok_or_else(|| format!("found no rate above 0 of the direction {link}"))?;
        let mean = Rate::from_bps(mean.as_bps().div_ceil(1000).saturating_mul(1000));
        let slowest = rates(rows).filter(|bps| *bps > 0).min().unwrap_or(mean.as_bps());
        let times = mean.as_bps() as f64 / slowest as f64;
        self.means.push(format!(
            "{} {link}; at the lowest, {}, the queue takes {} s",
            rate_in_words(mean),
            rate_in_words(Rate::from_bps(slowest)),
            rounded(queue_time(link).as_secs_f64() * times)
        ));
        Ok(link_line(link, &format!("\"{} kbps\"", mean.as_bps() as f64 / 1e3), delay))
    }

    /// Says what is assumed, and the mean rates.
    fn in_words(&self) -> String {
        let assumed = Assumed { delay_of: self.without_delay.clone() };
        let words = match self.lacking[..] {
            [] => assumed.in_words(),
            _ => assumed.without_queues_in_words(),
        };
        match self.means[..] {
            [] => words,
            _ => format!("{words} at the mean of the rates above 0 ({})", self.means.join("; ")),
        }
    }
}

/// Says that a file has no rates, and how to add them.
fn lacking_rate(name: &str, links: &[&str]) -> String {
    let directions = match links {
        [link] => format!("the direction {link}"),
        _ => "either direction".to_owned(),
    };
    let set: Vec<String> = links.iter().map(|link| format!("--set 'path.{link}.rate=10 Mbps'")).collect();
    format!(
        "{name} has no rate of {directions}: a capture shows only that the path carried the call, and a table needs a column such as \
         rate_mbps, or up_mbps and down_mbps. Say the rate beside it: compare --path {name} --line 50/10, or {}",
        set.join(" ")
    )
}

/// The rates of rows in bit/s.
fn rates(rows: &ChangeRows) -> impl Iterator<Item = u64> {
    rows.iter().filter_map(|(_, row)| fixed_rate(row))
}

fn fixed_rate(row: &LinkValues) -> Option<u64> {
    match row.rate {
        Some(RateModel::Fixed(rate)) => Some(rate.as_bps()),
        _ => None,
    }
}

/// Each row with how long it holds, in seconds.
fn with_lengths(rows: &ChangeRows, period: Duration) -> impl Iterator<Item = (&LinkValues, f64)> {
    let ends = rows.iter().skip(1).map(|(time, _)| *time).chain([period]);
    rows.iter().zip(ends).map(|((time, row), end)| (row, end.saturating_sub(*time).as_secs_f64()))
}

/// The mean of the rates above 0, weighted by how long each holds: the size of a queue cannot be reckoned
/// with a rate of 0. `None` if no rate is above 0.
fn mean_rate_above_zero(rows: &ChangeRows, period: Duration) -> Option<Rate> {
    let (mut bits, mut seconds) = (0.0, 0.0);
    for (row, length) in with_lengths(rows, period) {
        if let Some(bps) = fixed_rate(row).filter(|bps| *bps > 0) {
            let holds = length.max(1e-9);
            bits += bps as f64 * holds;
            seconds += holds;
        }
    }
    let mean = (bits / seconds).round();
    (mean >= 1.0).then(|| Rate::from_bps(mean as u64))
}

/// Describes a table: the number of its rows, its first and last time, and the mean and the extremes of each
/// value, for each direction if they differ: `2 rows from 0 s to 1500 ms; rate 0 to 2 Mb/s, mean 1 Mb/s`.
pub(crate) fn describe_table(table: &ChangeTable) -> String {
    let (up, down) = table.directions();
    let first_time = up.first().map_or(Duration::ZERO, |(time, _)| *time);
    let last_time = up.last().map_or(Duration::ZERO, |(time, _)| *time);
    let mut parts = vec![format!("{} from {first_time} to {last_time}", counted(up.len(), "row"))];
    if let Some(origin) = table.origin() {
        parts.push(format!("times count from the first one, {origin}"));
    }
    match down {
        None => parts.extend(describe_rows(up, table.period())),
        Some(down) => {
            for (name, rows) in [("up", up), ("down", down)] {
                parts.push(format!("{name}: {}", describe_rows(rows, table.period()).join(", ")));
            }
        }
    }
    parts.extend(table.notes().iter().cloned());
    parts.join("; ")
}

/// Describes the mean and the extremes of each value in the rows.
fn describe_rows(rows: &ChangeRows, period: Duration) -> Vec<String> {
    let mut parts = Vec::new();
    let all: Vec<(&LinkValues, f64)> = with_lengths(rows, period).collect();
    let bps = |row: &LinkValues| fixed_rate(row).map(|bps| bps as f64);
    if let Some(Spread { least, mean, most }) = spread(&all, bps) {
        let in_words = |bps: f64| rate_in_words(Rate::from_bps(bps.round() as u64));
        let rounded = Rate::from_bps((mean / 1e3).round() as u64 * 1000);
        let mut text =
            format!("rate {} to {}, mean {}", in_words(least), in_words(most), rate_in_words(rounded));
        if let Some(silence) = longest_silence(rows, period) {
            text += &format!(", longest time at 0 is {} from {} on", silence.length, silence.from);
        }
        parts.push(text);
    }
    if let Some(Spread { least, mean, most }) = spread(&all, |row| row.delay.map(Duration::as_millis_f64)) {
        parts.push(format!("delay {least} to {most} ms, mean {} ms", rounded(mean)));
    }
    if let Some(Spread { least, mean, most }) = spread(&all, |row| row.loss.as_ref().map(LossModel::mean)) {
        let [least, mean, most] = [least, mean, most].map(as_percent);
        parts.push(format!("loss {least} to {most} %, mean {} %", rounded(mean)));
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    parts
}

/// A time at a rate of 0.
struct Silence {
    from: Duration,
    length: Duration,
}

/// The longest time at a rate of 0. `None` if there is none.
fn longest_silence(rows: &ChangeRows, period: Duration) -> Option<Silence> {
    let mut longest: Option<Silence> = None;
    let mut began = None;
    for (time, row) in rows {
        match (fixed_rate(row), began) {
            (Some(0), None) => began = Some(*time),
            (Some(bps), Some(from)) if bps > 0 => {
                longest = longer(longest, from, *time);
                began = None;
            }
            _ => {}
        }
    }
    match began {
        Some(from) => longer(longest, from, period),
        None => longest,
    }
}

fn longer(longest: Option<Silence>, from: Duration, until: Duration) -> Option<Silence> {
    let silence = Silence { from, length: until.saturating_sub(from) };
    match longest {
        Some(longest) if longest.length >= silence.length => Some(longest),
        _ => Some(silence),
    }
}

/// The smallest, the mean and the largest value in a column of a table.
struct Spread {
    least: f64,
    mean: f64,
    most: f64,
}

/// Returns the spread of the values that `column` reads from the rows. The mean is weighted by how long each
/// row holds, in s. `None` if no row has such a value.
fn spread(rows: &[(&LinkValues, f64)], column: impl Fn(&LinkValues) -> Option<f64>) -> Option<Spread> {
    let values: Vec<(f64, f64)> =
        rows.iter().filter_map(|(row, length)| Some((column(row)?, *length))).collect();
    let least = values.iter().map(|(value, _)| *value).min_by(f64::total_cmp)?;
    let most = values.iter().map(|(value, _)| *value).max_by(f64::total_cmp)?;
    let seconds: f64 = values.iter().map(|(_, length)| length).sum();
    let sum: f64 = values.iter().map(|(value, length)| value * length).sum();
    Some(Spread { least, mean: if seconds > 0.0 { sum / seconds } else { least }, most })
}

/// Rounds a mean to three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// A percentage is printed with at most seven decimals.
const STEPS_PER_PERCENT: f64 = 1e7;

/// Converts a share to percent. Many decimal numbers have no exact binary form, so the product alone might be
/// 2.5000000000000004. Rounding removes such an error.
fn as_percent(share: f64) -> f64 {
    (share * (100.0 * STEPS_PER_PERCENT)).round() / STEPS_PER_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Result<PathText, String> {
        path_of_table("a.csv", "a.csv", text, PathText::default())
    }

    #[test]
    fn both_directions_follow_the_table_from_its_mean_rate_on() {
        let PathText { text, notes, made, lacks_rate, .. } =
            path("time_s,rate_mbps,delay_ms\n0,10,15\n1,0,30\n2,20,15\n").unwrap();
        let expected = "up = { rate = \"15000 kbps\", delay = \"15000 us\", queue = { kind = \"drop-tail\", limit = \"250 ms\" } }\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("[[change]]\nfile = \"a.csv\"\nevery = \"3000 ms\"\n"), "{text}");
        assert!(notes[0].contains("repeats after 3 s; assumed queues of 250 ms up"), "{notes:?}");
        assert!(
            notes[0].contains("15 Mb/s up; at the lowest, 10 Mb/s, the queue takes 0.375 s"),
            "{notes:?}"
        );
        assert!(made.is_empty() && lacks_rate.is_none());
    }

    #[test]
    fn each_direction_follows_its_own_columns_if_it_has_some() {
        let table = "time_s,up_mbps,down_mbps,down_delay_ms\n1700000000,2,40,15\n1700000001,4,60,30\n";
        let PathText { text, notes, .. } = path(table).unwrap();
        assert!(text.contains("up = { rate = \"3000 kbps\", delay = \"20000 us\""), "{text}");
        assert!(text.contains("down = { rate = \"50000 kbps\", delay = \"15000 us\""), "{text}");
        assert!(notes[0].contains("assumed a delay of 20 ms up and queues"), "{notes:?}");
        let one_way = path("time_s up_mbps\n0 5\n").unwrap().lacks_rate.unwrap();
        assert!(one_way.contains("no rate of the direction down"), "{one_way}");
    }

    #[test]
    fn a_table_without_a_delay_has_an_assumed_one_and_one_without_rates_says_how_to_add_them() {
        let assumed = path("time_ms rate_kbps\n0 500\n").unwrap().notes.remove(0);
        assert!(assumed.contains("assumed a delay of 20 ms each way and queues"), "{assumed}");
        let lacking = path("time_s delay_ms\n0 20\n").unwrap().lacks_rate.unwrap();
        assert!(lacking.contains("compare --path a.csv --line 50/10"), "{lacking}");
        let refused = |text: &str| path(text).err().unwrap();
        assert!(refused("time_s rate_mbps\n0 0\n").contains("found no rate above 0"));
        assert!(refused("time,mbps\n0,1\n").contains("expected a header"));
    }

    #[test]
    fn a_table_that_begins_later_begins_with_the_run() {
        let PathText { text, notes, made, .. } = path("time_s rate_mbps\n30 5\n31 7\n").unwrap();
        assert!(text.ends_with("every = \"2000 ms\"\n"), "{text}");
        assert_eq!(made, [("a.csv".to_owned(), "time_s,rate_bps\n0,5000000\n1,7000000\n".to_owned())]);
        assert!(notes[0].contains("begins at its first time, 30 s"), "{notes:?}");
    }

    #[test]
    fn a_table_is_described_by_its_times_means_extremes_and_silences() {
        let described = |text: &str| describe_table(&text.parse().unwrap());
        assert_eq!(
            described("time_s rate_mbps loss_percent\n0 48.2 0\n1.5 0 2.5\n"),
            "2 rows from 0 s to 1500 ms; rate 0 kb/s to 48.2 Mb/s, mean 24.1 Mb/s, longest time at 0 is 1500 ms from 1500 ms on; \
             loss 0 to 2.5 %, mean 1.25 %"
        );
        let ways = "time_us up_mbps down_mbps delay_ms\n1700000000000000 5 50 20\n1700000001000000 7 40 25\n";
        assert_eq!(
            described(ways),
            "2 rows from 0 s to 1 s; times count from the first one, 1700000000 s, 2023-11-14T22:13:20Z; up: rate 5 Mb/s to 7 Mb/s, \
             mean 6 Mb/s, delay 20 to 25 ms, mean 22.5 ms; down: rate 40 Mb/s to 50 Mb/s, mean 45 Mb/s, delay 20 to 25 ms, mean \
             22.5 ms"
        );
    }
}
