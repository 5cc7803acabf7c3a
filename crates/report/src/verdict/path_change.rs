//! Finds the change of the path to which most of the lost and late messages of a flow belong.
//!
//! A change is to blame if at least half of the lost and late messages were due in its time, and if a second
//! of this time had at least four times as many of them as a second outside. Its time is first taken to be
//! the change itself and the seconds behind it, for an outage or a handover, and then all the time until the
//! next change, for a rate that stays low.
//!
//! ```text
//!  bad messages a second     0  0  0 50 40  3  0  0  0
//!  path                               ├─outage─┤
//!  its time                           ├─outage─┼────────┤
//! ```

use std::collections::BTreeMap;

use talkpath_measure::summary::{PathChange, RunSummary};

use crate::number::counted;
use crate::plot::scale::tick_label;
use crate::view::CellView;

/// The time of a change lasts 2 s beyond the change, or as long again as the change takes if that is longer.
/// We chose 2 s because a retransmission timer of 1 s (RFC 6298 §2.1) that backs off once fires within 3 s of
/// the loss. A timer that backs off during an outage waits at most as long again as the outage took.
const AFTERMATH_S: f64 = 2.0;
/// At least half of the lost and late messages belong to the change that is to blame. Chosen.
const LEAST_SHARE: f64 = 0.5;
/// A second in the time of the change that is to blame has at least four times as many lost and late messages
/// as another second. Chosen: random losses seldom differ as much.
const LEAST_RATIO: f64 = 4.0;
/// Fewer lost and late messages show nothing. Chosen.
const LEAST_MESSAGES: u64 = 10;
/// A smaller share of lost and late messages is not worth a sentence. Chosen, as for a call that is heard
/// whole.
const HARDLY_ANY: f64 = 0.001;

/// The change that is to blame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Blame {
    /// The share of the lost and late messages that belong to the change.
    pub(super) share: f64,
    /// The number of lost and late messages in all repetitions.
    pub(super) bad: u64,
    /// The change in words, with its times: `during or soon after a change of the path: up: outage (30 to
    /// 32.5 s)`.
    pub(super) words: String,
}

impl Blame {
    /// Finds the change that is to blame for what `flow` lost in `cell`. Returns `None` if there is none.
    pub(super) fn find(cell: &CellView<'_>, flow: &str) -> Option<Self> {
        let mut sent = 0;
        let mut runs = Vec::new();
        for run in &cell.runs {
            let Some(figures) = run.flows.get(flow).filter(|_| !run.changes().is_empty()) else { continue };
            sent += figures.sent;
            runs.push(FlowOfRun::new(run, flow)?);
        }
        let bad: u64 = runs.iter().map(|run| run.bad_between(0.0, f64::INFINITY)).sum();
        if bad < LEAST_MESSAGES || (bad as f64) < HARDLY_ANY * sent as f64 {
            return None;
        }
        [ChangeTime::Aftermath, ChangeTime::UntilTheNext]
            .into_iter()
            .find_map(|time| Self::with(&runs, bad, time))
    }

    /// Finds the change with the most lost and late messages in its time, and returns it if it is to blame.
    fn with(runs: &[FlowOfRun<'_>], bad: u64, time: ChangeTime) -> Option<Self> {
        let mut by_text: BTreeMap<&str, InChange> = BTreeMap::new();
        for run in runs {
            for (index, change) in run.changes.iter().enumerate() {
                let end = time.end(run.changes, index).min(run.seconds);
                let found = by_text.entry(change.text.as_str()).or_default();
                found.bad += run.bad_between(change.from_s, end);
                found.seconds += (end.ceil() - change.from_s.floor()).max(0.0);
            }
        }
        let all_seconds: f64 = runs.iter().map(|run| run.seconds).sum();
        let (text, within) = by_text.into_iter().max_by_key(|(_, found)| found.bad)?;
        let share = within.bad as f64 / bad as f64;
        let outside = (bad - within.bad) as f64 / (all_seconds - within.seconds).max(0.0);
        // If no time is left outside, this is not a number, and no change is to blame.
        let ratio_is_large = within.bad as f64 / within.seconds >= LEAST_RATIO * outside;
        let has_outside = all_seconds - within.seconds >= 1.0;
        (share >= LEAST_SHARE && has_outside && ratio_is_large).then(|| Self {
            share,
            bad,
            words: format!("{} a change of the path: {text} ({})", time.words(), times(runs, text)),
        })
    }
}

/// What was lost or late in the time of a change.
#[derive(Default)]
struct InChange {
    bad: u64,
    seconds: f64,
}

/// Which time belongs to a change.
#[derive(Clone, Copy)]
enum ChangeTime {
    /// The change, and what follows soon.
    Aftermath,
    /// All until the next change.
    UntilTheNext,
}

impl ChangeTime {
    /// The end of the time of `changes[index]`, in s.
    fn end(self, changes: &[PathChange], index: usize) -> f64 {
        let PathChange { from_s, until_s, .. } = changes[index];
        let next_s = changes[index + 1..].iter().map(|next| next.from_s).find(|next_s| *next_s > from_s);
        let next_s = next_s.unwrap_or(f64::INFINITY);
        match self {
            Self::Aftermath => (until_s + AFTERMATH_S.max(until_s - from_s)).min(next_s),
            Self::UntilTheNext => next_s,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Aftermath => "during or soon after",
            Self::UntilTheNext => "after",
        }
    }
}

/// A flow in one repetition.
struct FlowOfRun<'a> {
    changes: &'a [PathChange],
    bad_seconds: &'a [(u32, u32, u32)],
    /// The seconds from the start of the run to the last message.
    seconds: f64,
}

impl<'a> FlowOfRun<'a> {
    /// Returns `None` if the run does not know how long the flow sent.
    fn new(run: &'a RunSummary, flow: &str) -> Option<Self> {
        let figures = run.flows.get(flow)?;
        let last_bad = figures.bad_seconds.last().map_or(0.0, |(second, ..)| f64::from(*second) + 1.0);
        let seconds = figures.first_sent_to_last_received_ms? / 1e3;
        Some(Self {
            changes: run.changes(),
            bad_seconds: &figures.bad_seconds,
            seconds: seconds.max(last_bad),
        })
    }

    /// Counts the lost and late messages that were due in the seconds from `from_s` to `end_s`.
    fn bad_between(&self, from_s: f64, end_s: f64) -> u64 {
        let is_between = |second: f64| second + 1.0 > from_s && second < end_s;
        let within = self.bad_seconds.iter().filter(|(second, ..)| is_between(f64::from(*second)));
        within.map(|(_, lost, late)| u64::from(*lost) + u64::from(*late)).sum()
    }
}

/// Writes when the change `text` came: `30 to 32.5 s`, or `3 times, first at 15 s`, or `at random times`.
fn times(runs: &[FlowOfRun<'_>], text: &str) -> String {
    let times_in = |run: &FlowOfRun<'_>| -> Vec<(f64, f64)> {
        let same = run.changes.iter().filter(|change| change.text == text);
        same.map(|change| (change.from_s, change.until_s)).collect()
    };
    let Some(first) = runs.first().map(times_in) else { return String::new() };
    if runs.iter().any(|run| times_in(run) != first) {
        return "at another time in each repetition".to_owned();
    }
    match first[..] {
        [(from_s, until_s)] if until_s > from_s => {
            format!("{} to {} s", tick_label(from_s), tick_label(until_s))
        }
        [(from_s, _)] => format!("at {} s", tick_label(from_s)),
        [(from_s, _), ..] => {
            format!("{}, first at {} s", counted(first.len() as u64, "time"), tick_label(from_s))
        }
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::PathChanges;

    use super::*;
    use crate::fixture;

    /// The blame for the bad seconds of a call of 60 s, with one outage and a later smaller rate.
    fn blame(bad_seconds: &[(u32, u32, u32)], changes: &[(f64, f64, &str)]) -> Option<Blame> {
        let mut summary = fixture::summary(2);
        for run in &mut summary.runs {
            let change = |&(from_s, until_s, text): &(f64, f64, &str)| PathChange {
                from_s,
                until_s,
                text: text.to_owned(),
            };
            run.changes = Some(Box::new(PathChanges(changes.iter().map(change).collect())));
            let call = run.flows.get_mut("call").unwrap();
            (call.sent, call.first_sent_to_last_received_ms) = (3000, Some(60_000.0));
            call.bad_seconds = bad_seconds.to_vec();
        }
        Blame::find(&CellView::all(&summary)[0], "call")
    }

    const OUTAGE: (f64, f64, &str) = (30.0, 32.5, "up: outage");

    #[test]
    fn losses_in_an_outage_belong_to_the_outage() {
        let found = blame(&[(3, 1, 0), (30, 50, 0), (31, 50, 0), (32, 26, 5)], &[OUTAGE]).unwrap();
        assert_eq!((found.bad, (found.share * 1e4).round()), (264, 9924.0));
        assert_eq!(found.words, "during or soon after a change of the path: up: outage (30 to 32.5 s)");
    }

    #[test]
    fn losses_that_come_all_the_time_belong_to_no_change() {
        let everywhere: Vec<_> = (0..60).map(|second| (second, 1, 0)).collect();
        assert_eq!(blame(&everywhere, &[OUTAGE]), None);
        assert_eq!(blame(&[(10, 50, 0)], &[OUTAGE]), None, "it came before");
        assert_eq!(blame(&[(30, 4, 0)], &[OUTAGE]), None, "too few");
        assert_eq!(blame(&[(30, 50, 0)], &[]), None, "the path does not change");
    }

    #[test]
    fn a_rate_that_stays_low_is_to_blame_until_the_next_change() {
        let late: Vec<_> = (20..40).map(|second| (second, 0, 30)).collect();
        let found =
            blame(&late, &[(20.0, 20.0, "up: rate 64 kb/s"), (40.0, 40.0, "up: rate 1 Mb/s")]).unwrap();
        assert_eq!(found.words, "after a change of the path: up: rate 64 kb/s (at 20 s)");
        assert_eq!(found.share, 1.0);
    }

    #[test]
    fn a_change_that_comes_again_is_counted() {
        let bad = [(15, 20, 0), (30, 20, 0), (45, 20, 0)];
        let found = blame(&bad, &[15.0, 30.0, 45.0].map(|at| (at, at, "delay 38 ms"))).unwrap();
        assert_eq!(
            found.words,
            "during or soon after a change of the path: delay 38 ms (3 times, first at 15 s)"
        );
    }
}
