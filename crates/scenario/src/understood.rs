//! What a scenario was understood as where that decides a run and a slip is likely: as what each trace was
//! read, and links that lose much.
//!
//! The unit of a trace is not in its file. A wrong one looks like a bad network, so what was read is always
//! said, and what is implausible is a warning that says what to write.

use core::fmt::Write as _;

use talkpath_model::Scenario;
use talkpath_path::{DelayTrace, LossTrace, QueueName, RateTrace};
use talkpath_units::{Duration, Rate, counted};

use crate::contents::Contents;
use crate::diagnostic::Log;
use crate::fragments;
use crate::read::At;
use crate::tree::{Entry, Meaning, Node, Table};

/// What a plan was understood as, in sentences for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Understood {
    /// A line for each trace: `x.up: 1000 deliveries, 1.2 Mb/s in the mean, repeats after 10 s`.
    pub traces: Vec<String>,
    /// Links that lose more than a fifth of the packets: `The path loses 50 % of the packets each way.`
    pub losses: Vec<String>,
    /// Flows whose datagrams IP cuts, and what a loss of packets is in messages.
    pub fragments: Vec<String>,
    /// Links whose queue is as large as it is because nobody said how large.
    pub assumed_queues: Vec<String>,
    /// What the simulator passes over, by its key: `flow.call.dscp`.
    pub not_in_sim: Vec<(String, String)>,
}

/// What `contents` and the scenarios of the `cells` were understood as.
pub(crate) fn understood(contents: &Contents, cells: &[&Scenario]) -> Understood {
    Understood {
        traces: traces(contents),
        losses: over_cells(cells, losses, || {
            format!("links and cells lose more than {} of the packets", percent(MUCH))
        }),
        fragments: over_cells(cells, fragments::of_cell, || {
            "flows and cells send datagrams that are cut into fragments".to_owned()
        }),
        assumed_queues: Vec::new(),
        not_in_sim: not_in_sim(cells),
    }
}

impl Understood {
    /// The lines that are always said.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        self.traces.iter().chain(&self.losses).chain(&self.fragments)
    }
}

/// No queue of the simulator knows marks of priority yet.
fn not_in_sim(cells: &[&Scenario]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for flow in cells.iter().flat_map(|cell| &cell.flows) {
        let Some(dscp) = flow.dscp else { continue };
        let message = format!(
            "{dscp} does nothing in `sim`, whose queues know no priority yet; it marks packets in `emu` and `live`"
        );
        let said = (format!("flow.{}.dscp", flow.group), message);
        // Once a flow of the file, whatever its copies and the sweep are.
        if found.iter().all(|(key, _)| *key != said.0) {
            found.push(said);
        }
    }
    found
}

/// The links of `cell` whose drop-tail queue has the `limit` that is the default.
pub(crate) fn assumed_queues(cell: &Table) -> Vec<String> {
    let links = ["path", "link"].iter().filter_map(|above| cell.get(above)?.as_table());
    let is_assumed = |link: &&Entry| {
        let queue = link.node.as_table().and_then(|link| link.get("queue"));
        queue.is_some_and(|queue| {
            let limit = queue.as_table().and_then(|queue| queue.get("limit"));
            let is_drop_tail =
                matches!(queue.meaning, Some(Meaning::Variant(variant)) if variant.name == DROP_TAIL);
            is_drop_tail && limit.is_some_and(|limit| limit.is_default)
        })
    };
    links.flat_map(|links| &links.entries).filter(is_assumed).map(|link| link.name.clone()).collect()
}

fn traces(contents: &Contents) -> Vec<String> {
    let mut lines = Vec::new();
    for trace in &contents.traces {
        let name = base(&trace.name);
        lines.extend(contents.rate(&trace.name).map(|it| format!("{name}: {}", of_rate(it))));
        lines.extend(contents.loss(&trace.name).map(|it| format!("{name}: {}", of_loss(it))));
        lines.extend(contents.delay(&trace.name).map(|it| format!("{name}: {}", of_delay(it))));
    }
    lines
}

fn of_rate(trace: &RateTrace) -> String {
    let count = trace.opportunities().len();
    let deliveries = counted(count, "delivery");
    let mean = match trace.mean_rate().as_bps() {
        0 => "less than 1 b/s".to_owned(),
        _ => rate(trace.mean_rate()),
    };
    format!("{deliveries}, {mean} in the mean, repeats after {}", time(trace.period()))
}

fn of_loss(trace: &LossTrace) -> String {
    let lost = trace.marks().iter().filter(|lost| **lost).count();
    let packets = counted(trace.marks().len(), "packet");
    format!("{packets}, {lost} of them lost ({}), repeats after these", percent(trace.share()))
}

fn of_delay(trace: &DelayTrace) -> String {
    let packets = counted(trace.additions().len(), "packet");
    let (mean, most) = (time(trace.mean()), time(trace.largest()));
    format!("{packets}, {mean} added in the mean and {most} at most, repeats after these")
}

/// A sentence for each line that `of_cell` gives, with how many of the `cells` it holds for if not for all.
/// If there are more than [`MOST_LINES`], one sentence has their number, and then `rest`.
fn over_cells(
    cells: &[&Scenario],
    of_cell: impl Fn(&Scenario) -> Vec<String>,
    rest: impl Fn() -> String,
) -> Vec<String> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for line in cells.iter().flat_map(|cell| of_cell(cell)) {
        match found.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => found.push((line, 1)),
        }
    }
    let more = found.len().saturating_sub(MOST_LINES);
    let mut lines: Vec<String> = found
        .into_iter()
        .take(MOST_LINES)
        .map(|(line, count)| {
            if count == cells.len() {
                format!("{line}.")
            } else {
                format!("{line} (in {count} of {} cells).", cells.len())
            }
        })
        .collect();
    lines.extend((more > 0).then(|| format!("{more} more {}.", rest())));
    lines
}

/// The losses of a cell above [`MUCH`].
fn losses(scenario: &Scenario) -> Vec<String> {
    let losing = scenario.links.iter().map(|link| (link.name.as_str(), link.config.loss.mean()));
    let losing: Vec<_> = losing.filter(|(_, share)| *share > MUCH).collect();
    match losing.as_slice() {
        [("up", up), ("down", down)] if percent(*up) == percent(*down) => {
            vec![format!("The path loses {} of the packets each way", percent(*up))]
        }
        losing => {
            let line = |(name, share): &(&str, f64)| {
                format!("The link {name} loses {} of the packets", percent(*share))
            };
            losing.iter().map(line).collect()
        }
    }
}

/// Warns of the traces of `root`, a cell of this `duration`, that were probably meant otherwise.
pub(crate) fn warn_of_traces(root: &Table, duration: Duration, contents: &Contents, log: &mut Log) {
    for above in ["path", "link"] {
        let links = root.get(above).and_then(Node::as_table).map_or(&[][..], |table| &table.entries);
        for (entry, link) in links.iter().filter_map(|entry| Some((entry, entry.node.as_table()?))) {
            let (at, keys) = (At::ROOT.key(above), [("rate", "trace"), ("loss", "file"), ("jitter", "file")]);
            let at = at.key(&entry.name);
            for (model, key) in keys {
                let file = link.get(model).and_then(Node::as_table).and_then(|table| table.get(key));
                let Some((node, name)) = file.and_then(|node| Some((node, node.as_text()?))) else {
                    continue;
                };
                let doubt = match model {
                    "rate" => {
                        contents.rate(name).and_then(|trace| doubt_of_rate(trace, duration, base(name)))
                    }
                    "jitter" => {
                        contents.delay(name).and_then(|trace| doubt_of_delay(trace, duration, base(name)))
                    }
                    _ => None,
                };
                if let Some(doubt) = doubt {
                    let key = at.key(model).key(key).to_string();
                    log.warning(&node.place, &key, format!("{}: {doubt}", base(name)));
                }
            }
        }
    }
}

/// What is implausible in `trace`, the file `name`, for a run of this `duration`, and what to write instead.
fn doubt_of_rate(trace: &RateTrace, duration: Duration, name: &str) -> Option<String> {
    let mut doubts: Vec<String> = Vec::new();
    let (first, period, mean) = (trace.first(), trace.period(), trace.mean_rate());
    if first >= duration {
        doubts.push(format!(
            "the first delivery comes after {}, but the run sends for {}",
            time(first),
            time(duration)
        ));
    }
    let used = duration.as_nanos() as f64 / period.as_nanos().max(1) as f64;
    if used < LITTLE {
        let share = percent(used);
        doubts.push(format!(
            "the run of {} uses {share} of the trace, which lasts {}",
            time(duration),
            time(period)
        ));
    }
    if !(SLOW..=FAST).contains(&mean) {
        doubts.push(format!(
            "it delivers {} in the mean, outside of {} to {}",
            rate(mean),
            rate(SLOW),
            rate(FAST)
        ));
    }
    let times = duration.as_nanos() / period.as_nanos().max(1);
    if period < SHORT && times >= OFTEN && !trace.is_steady() {
        doubts.push(format!("it lasts {} and is repeated {times} times in the run", time(period)));
    }
    let lines = trace.opportunities().len();
    if first == period && lines >= SAME && period > Duration::from_millis(1) {
        doubts.push(format!(
            "all of its {lines} lines are {}; a line is a moment of the trace, not the time since the line before",
            time(period)
        ));
    }
    if doubts.is_empty() {
        return None;
    }
    let mut text = doubts.join("; ");
    text.push_str(". Its lines are read as milliseconds from the run's beginning");
    let plausible = |rate: &Rate| (SLOW..=FAST).contains(rate);
    let gives = |rate_then: Option<Rate>| match rate_then.filter(plausible) {
        Some(then) => format!(", which gives {}", rate(then)),
        None => String::new(),
    };
    if first.as_nanos() > period.as_nanos() / 2 {
        let _ = write!(
            text,
            ". Of times that begin elsewhere subtract the first{}: \
             `awk 'NR == 1 {{ first = $1 }} {{ print $1 - first }}' {name} > from-zero.up`",
            gives(trace.mean_rate_from_first())
        );
    } else if first >= duration || used < LITTLE {
        let (unit, divisor) = finer_unit(trace);
        let then = Rate::from_bps((exact_rate(trace) * f64::from(divisor)) as u64);
        let _ = write!(
            text,
            ". {unit} become milliseconds{}: `awk '{{ print int($1 / {divisor}) }}' {name} > milliseconds.up`",
            gives(Some(then))
        );
    }
    Some(text)
}

/// The unit below the millisecond in which the lines of `trace` would most likely be, and how many of that
/// unit a millisecond has.
fn finer_unit(trace: &RateTrace) -> (&'static str, u32) {
    let units = [("Microseconds", 1_000), ("Nanoseconds", 1_000_000)];
    let decades_off =
        |divisor: u32| (exact_rate(trace) * f64::from(divisor) / USUAL.as_bps() as f64).log10().abs();
    if decades_off(units[0].1) <= decades_off(units[1].1) { units[0] } else { units[1] }
}

/// The mean rate in b/s with its fraction.
fn exact_rate(trace: &RateTrace) -> f64 {
    trace.opportunities().len() as f64 * 12_000.0 / trace.period().as_secs_f64()
}

/// What is implausible in `trace`, the file `name`, for a run of this `duration`.
fn doubt_of_delay(trace: &DelayTrace, duration: Duration, name: &str) -> Option<String> {
    let (mean, largest) = (trace.mean(), trace.largest());
    let finer =
        format!("Microseconds become milliseconds: `awk '{{ print $1 / 1000 }}' {name} > milliseconds.txt`");
    let (doubt, instead) = if largest > duration {
        let doubt = format!(
            "it adds up to {} to a packet's delay, and the run sends for {}",
            time(largest),
            time(duration)
        );
        (doubt, finer)
    } else if mean >= LONG_MEAN {
        (format!("it adds {} to a packet's delay in the mean", time(mean)), finer)
    } else if !largest.is_zero() && largest < SMALL_MOST {
        let coarser =
            format!("Seconds become milliseconds: `awk '{{ print $1 * 1000 }}' {name} > milliseconds.txt`");
        (format!("it adds {} to a packet's delay at most", time(largest)), coarser)
    } else {
        return None;
    };
    Some(format!("{doubt}. Its lines are read as milliseconds. {instead}"))
}

/// The file's name without the folder that the resolved form gives it.
fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Three digits, as in `1.2 Mb/s`.
fn rate(rate: Rate) -> String {
    let bps = rate.as_bps() as f64;
    let (value, unit) = match bps {
        1e9.. => (bps / 1e9, "Gb/s"),
        1e6.. => (bps / 1e6, "Mb/s"),
        1e3.. => (bps / 1e3, "kb/s"),
        _ => (bps, "b/s"),
    };
    format!("{} {unit}", short(value))
}

fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        1.0.. => (seconds, "s"),
        1e-3.. => (seconds * 1e3, "ms"),
        1e-6.. => (seconds * 1e6, "us"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{} {unit}", short(value))
}

fn percent(share: f64) -> String {
    format!("{} %", short(100.0 * share))
}

/// Three digits or, of a larger number, the whole ones; no zeros at the end of a fraction.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

const DROP_TAIL: &str = QueueName::DropTail.word();

/// A loss that is repeated in words: above it a call is past all repair, and a share was perhaps meant in
/// per cent. Chosen.
const MUCH: f64 = 0.2;
/// Sentences on losses, and on fragments; chosen: more are no help.
const MOST_LINES: usize = 5;
/// A run that uses less of a trace was probably meant to use more: a wrong unit is off by 1000. Chosen.
const LITTLE: f64 = 0.01;
/// From slower than any modem to faster than any access line: what lies outside is a wrong unit. Chosen.
const SLOW: Rate = Rate::from_bps(1_000);
const FAST: Rate = Rate::from_bps(100_000_000_000);

/// What most links carry; chosen.
const USUAL: Rate = Rate::from_bps(10_000_000);
/// Traces of links last longer than this, and are not repeated so often in a run: what does is a column of
/// something else, or in a coarser unit. Chosen; traces of a constant rate are short.
const SHORT: Duration = Duration::from_millis(100);
const OFTEN: u64 = 100;
/// So many lines that are all the same are hardly moments. Chosen.
const SAME: usize = 10;
/// Delays that vary by more than this in the mean, or by less than that at most, are probably in another
/// unit. Chosen: queues of seconds are rare, and a path whose delay varies by less needs no trace.
const LONG_MEAN: Duration = Duration::from_secs(1);
const SMALL_MOST: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_no_zeros_at_the_end() {
        let rates = [0, 999, 1_200_000, 16_830_000, 999_000_000_000];
        assert_eq!(
            rates.map(|bps| rate(Rate::from_bps(bps))),
            ["0 b/s", "999 b/s", "1.2 Mb/s", "16.8 Mb/s", "999 Gb/s"]
        );
        assert_eq!(time(Duration::from_millis(10_000)), "10 s");
        assert_eq!(
            (percent(0.5), percent(0.001), percent(1.0)),
            ("50 %".into(), "0.1 %".into(), "100 %".into())
        );
    }
}
