//! Warns of traces that are probably in another unit, or that a run hardly uses.
//!
//! The unit of a trace is not in its file. A trace in a wrong unit looks like a bad network, so the warning
//! also says how to convert the file. Begin to read with [`warn_of_traces`].

use talkpath_path::{DelayTrace, RateTrace};
use talkpath_units::{Duration, Rate, counted};

use crate::contents::Contents;
use crate::diagnostic::Log;
use crate::read::KeyPath;
use crate::tree::{CHANGES, Node, Table, Value};
use crate::words::{file_name, percent, rate, time};

/// Warns of the traces of one cell. `root` is its checked tree, and `duration` the time for which its flows
/// send.
pub(crate) fn warn_of_traces(root: &Table, duration: Duration, contents: &Contents, log: &mut Log) {
    warn_of_tables(root, duration, contents, log);
    for parent in ["path", "link"] {
        let links = root.get(parent).and_then(Node::as_table).map_or(&[][..], |table| &table.entries);
        for link in links {
            let Some(table) = link.node.as_table() else { continue };
            let parent = KeyPath::ROOT.key(parent);
            let at = parent.key(&link.name);
            if let Some((node, name)) = trace_of(table, "rate", "trace")
                && let Some(trace) = contents.rate(name)
            {
                let doubts = RateDoubts { trace, duration: Some(duration), file: file_name(name) };
                doubts.warn(node, &at.key("rate").key("trace").to_string(), log);
            }
            if let Some((node, name)) = trace_of(table, "jitter", "file")
                && let Some(trace) = contents.delay(name)
                && let Some(doubt) = delay_doubt(trace, duration, file_name(name))
            {
                let key = at.key("jitter").key("file").to_string();
                log.warning(&node.place, &key, format!("{}: {doubt}", file_name(name)));
            }
        }
    }
}

/// Warns of the tables of values over time in one cell.
fn warn_of_tables(root: &Table, duration: Duration, contents: &Contents, log: &mut Log) {
    let Some(Node { value: Value::List(changes), .. }) = root.get(CHANGES) else { return };
    for (number, change) in (1_u64..).zip(changes) {
        let Some(node) = change.as_table().and_then(|change| change.get("file")) else { continue };
        let Some((table, name)) = node.as_text().and_then(|name| Some((contents.changes(name)?, name)))
        else {
            continue;
        };
        let mut doubts = table.doubts().to_vec();
        let (rows, _) = table.directions();
        let used = rows.iter().filter(|(time, _)| *time < duration).count();
        if used < rows.len() {
            doubts.push(format!(
                "the run of {} sees {used} of its {}, which go on to {}; `duration`, or --duration of compare, makes it longer",
                time(duration),
                counted(rows.len(), "row"),
                time(rows.last().map_or(Duration::ZERO, |(time, _)| *time))
            ));
        }
        for doubt in doubts {
            let message = format!("{}: {doubt}", file_name(name));
            log.warning(&node.place, format!("change.{number}.file"), message);
        }
    }
}

/// Says what is implausible in a rate trace, whatever run reads it. Returns `None` if nothing is. `file` is
/// the name of the file.
pub fn doubts_about_rates(trace: &RateTrace, file: &str) -> Option<String> {
    let doubts = RateDoubts { trace, duration: None, file };
    let found = [doubts.implausible_rate(), doubts.often_repeated(), doubts.identical_lines()];
    let found: Vec<String> = found.into_iter().flatten().collect();
    (!found.is_empty()).then(|| {
        format!(
            "{}. Its lines are read as times of deliveries; a table of rates needs a first line that names its columns, such as \
             `time_s rate_mbps`",
            found.join("; ")
        )
    })
}

/// Returns the name of a link's trace and its node. `model` is the key of the link, and `key` the key inside.
fn trace_of<'a>(link: &'a Table, model: &str, key: &str) -> Option<(&'a Node, &'a str)> {
    let node = link.get(model)?.as_table()?.get(key)?;
    Some((node, node.as_text()?))
}

/// Finds what is implausible in a rate trace.
struct RateDoubts<'a> {
    trace: &'a RateTrace,
    /// The time for which the run sends. `None` if no run reads the trace.
    duration: Option<Duration>,
    /// The name of the trace's file.
    file: &'a str,
}

impl RateDoubts<'_> {
    fn warn(&self, node: &Node, key: &str, log: &mut Log) {
        let doubts = [
            self.late_beginning(),
            self.little_used(),
            self.implausible_rate(),
            self.often_repeated(),
            self.identical_lines(),
        ];
        let doubts: Vec<String> = doubts.into_iter().flatten().collect();
        if doubts.is_empty() {
            return;
        }
        let (file, doubts) = (self.file, doubts.join("; "));
        let remedy = self.remedy().map_or_else(String::new, |remedy| format!(". {remedy}"));
        let message =
            format!("{file}: {doubts}. Its lines are read as milliseconds from the run's beginning{remedy}");
        log.warning(&node.place, key, message);
    }

    fn late_beginning(&self) -> Option<String> {
        let (first, duration) = (self.trace.first(), self.duration?);
        (first >= duration).then(|| {
            format!(
                "the first delivery comes after {}, but the run sends for {}",
                time(first),
                time(duration)
            )
        })
    }

    fn little_used(&self) -> Option<String> {
        let (used, period) = (self.used_share()?, self.trace.period());
        let duration = self.duration?;
        (used < LITTLE).then(|| {
            let (duration, share) = (time(duration), percent(used));
            format!("the run of {duration} uses {share} of the trace, which lasts {}", time(period))
        })
    }

    fn implausible_rate(&self) -> Option<String> {
        let mean = self.trace.mean_rate();
        (!is_plausible(mean)).then(|| {
            format!(
                "it delivers {} in the mean, outside of {} to {}",
                rate(mean),
                rate(SLOWEST),
                rate(FASTEST)
            )
        })
    }

    fn often_repeated(&self) -> Option<String> {
        let period = self.trace.period();
        // Traces of a constant rate are short, and may be repeated as often as one likes.
        if period >= SHORT || self.trace.is_steady() {
            return None;
        }
        let Some(duration) = self.duration else {
            return Some(format!("it lasts {}, and a run repeats it over and over", time(period)));
        };
        let times = duration.as_nanos() / period.as_nanos().max(1);
        (times >= OFTEN)
            .then(|| format!("it lasts {} and is repeated {times} times in the run", time(period)))
    }

    fn identical_lines(&self) -> Option<String> {
        let (period, lines) = (self.trace.period(), self.trace.opportunities().len());
        let is_identical = self.trace.first() == period;
        (is_identical && lines >= MANY_LINES && period > Duration::from_millis(1)).then(|| {
            format!(
                "all of its {lines} lines are {}; a line is a moment of the trace, not the time since the line before",
                time(period)
            )
        })
    }

    /// Returns how to convert the file to milliseconds from the beginning, if that is probably what is
    /// needed.
    fn remedy(&self) -> Option<String> {
        let (first, period, file) = (self.trace.first(), self.trace.period(), self.file);
        if first.as_nanos() > period.as_nanos() / 2 {
            let gives = resulting_rate(self.trace.mean_rate_from_first());
            return Some(format!(
                "Of times that begin elsewhere subtract the first{gives}: \
                 `awk 'NR == 1 {{ first = $1 }} {{ print $1 - first }}' {file} > from-zero.up`"
            ));
        }
        let is_late = self.duration.is_some_and(|duration| first >= duration);
        if is_late || self.used_share().is_some_and(|used| used < LITTLE) {
            let FinerUnit { name, per_millisecond } = finer_unit(self.trace);
            let converted = Rate::from_bps((exact_rate(self.trace) * f64::from(per_millisecond)) as u64);
            let gives = resulting_rate(Some(converted));
            return Some(format!(
                "{name} become milliseconds{gives}: `awk '{{ print int($1 / {per_millisecond}) }}' {file} > milliseconds.up`"
            ));
        }
        None
    }

    /// Returns the share of the trace that the run uses. It is above 1 if the trace is repeated. `None` if no
    /// run reads the trace.
    fn used_share(&self) -> Option<f64> {
        Some(self.duration?.as_nanos() as f64 / self.trace.period().as_nanos().max(1) as f64)
    }
}

fn is_plausible(rate: Rate) -> bool {
    (SLOWEST..=FASTEST).contains(&rate)
}

/// Says which rate a converted trace has, if that rate is plausible.
fn resulting_rate(converted: Option<Rate>) -> String {
    match converted {
        Some(converted) if is_plausible(converted) => format!(", which gives {}", rate(converted)),
        _ => String::new(),
    }
}

/// A unit of time below the millisecond.
struct FinerUnit {
    name: &'static str,
    per_millisecond: u32,
}

/// Returns the unit in which the lines of `trace` most likely are: the one that brings its rate closest to
/// [`USUAL_RATE`].
fn finer_unit(trace: &RateTrace) -> FinerUnit {
    let decades_off = |unit: &FinerUnit| {
        (exact_rate(trace) * f64::from(unit.per_millisecond) / USUAL_RATE.as_bps() as f64).log10().abs()
    };
    let microseconds = FinerUnit { name: "Microseconds", per_millisecond: 1_000 };
    let nanoseconds = FinerUnit { name: "Nanoseconds", per_millisecond: 1_000_000 };
    if decades_off(&microseconds) <= decades_off(&nanoseconds) { microseconds } else { nanoseconds }
}

/// Returns the mean rate in bit/s with its fraction. Each line of a trace delivers 1500 B, 12,000 bits.
fn exact_rate(trace: &RateTrace) -> f64 {
    trace.opportunities().len() as f64 * 12_000.0 / trace.period().as_secs_f64()
}

/// Returns what is implausible in a delay trace, and how to convert it.
fn delay_doubt(trace: &DelayTrace, duration: Duration, file: &str) -> Option<String> {
    let (mean, largest) = (trace.mean(), trace.largest());
    let from_microseconds =
        format!("Microseconds become milliseconds: `awk '{{ print $1 / 1000 }}' {file} > milliseconds.txt`");
    let from_seconds =
        format!("Seconds become milliseconds: `awk '{{ print $1 * 1000 }}' {file} > milliseconds.txt`");
    let (doubt, remedy) = if largest > duration {
        let (largest, duration) = (time(largest), time(duration));
        let doubt = format!("it adds up to {largest} to a packet's delay, and the run sends for {duration}");
        (doubt, from_microseconds)
    } else if mean >= LONG_MEAN {
        (format!("it adds {} to a packet's delay in the mean", time(mean)), from_microseconds)
    } else if !largest.is_zero() && largest < SMALL_LARGEST {
        (format!("it adds {} to a packet's delay at most", time(largest)), from_seconds)
    } else {
        return None;
    };
    Some(format!("{doubt}. Its lines are read as milliseconds. {remedy}"))
}

/// We chose 1 %, because a unit that is one step too fine makes a trace look 1000 times as long.
const LITTLE: f64 = 0.01;

/// We chose a range from slower than any modem to faster than any access line. A rate outside is in a wrong
/// unit.
const SLOWEST: Rate = Rate::from_bps(1_000);
const FASTEST: Rate = Rate::from_bps(100_000_000_000);

/// We chose 10 Mb/s as a rate that many links have.
const USUAL_RATE: Rate = Rate::from_bps(10_000_000);

/// We chose 100 ms and 100 repetitions. Traces of real links are longer and are not repeated so often, so
/// such a file is a column of something else, or is in a coarser unit.
const SHORT: Duration = Duration::from_millis(100);
const OFTEN: u64 = 100;

/// We chose 10 lines, because so many packets are hardly delivered in one millisecond and in no other.
const MANY_LINES: usize = 10;

/// We chose 1 s as an implausible mean, because queues of seconds are rare.
const LONG_MEAN: Duration = Duration::from_secs(1);

/// We chose 100 us as an implausible maximum, because a path whose delay varies by less needs no trace.
const SMALL_LARGEST: Duration = Duration::from_micros(100);
