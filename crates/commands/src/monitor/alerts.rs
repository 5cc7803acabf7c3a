//! Judges the thresholds of a monitor over its last intervals.
//!
//! ```text
//!  intervals ─► the last of them, as repetitions ─► thresholds ─► what has changed: event, line
//!                                                          └─► the state of each: metrics, exit code
//! ```
//!
//! - An interval is judged as a repetition of a run is: a mean or a median over the intervals has an interval
//!   of its own, and a threshold whose bound lies in it is undecided.
//! - An interval that a host disturbed, or that has no figures, is left out, so an outage changes no outcome.
//! - A threshold that was found to fail has failed, also if it holds again later.
//!
//! Begin to read with [`Alerts::add`].

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use talkpath_measure::metrics::confidence::Level;
use talkpath_measure::summary::{RunSummary, Swept, ThresholdOutcome, ThresholdSummary};
use talkpath_scenario::Plan;

use super::interval::Interval;
use crate::failure::Failure;
use crate::thresholds::judge_runs;

/// The thresholds of a monitor, and what they are judged by.
#[derive(Debug)]
pub(crate) struct Alerts<'a> {
    plan: &'a Plan,
    /// Over how many intervals the thresholds are judged.
    window: usize,
    /// The last intervals with figures.
    recent: VecDeque<RunSummary>,
    /// The number of intervals with figures so far.
    intervals: u64,
    /// In the order of the plan.
    states: Vec<ThresholdState>,
}

/// The state of a threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ThresholdState {
    /// The threshold as the user wrote it: `call.mos >= 3.6`.
    pub(crate) threshold: String,
    /// The outcome over the last intervals. `None` before the first judgement.
    pub(crate) outcome: Option<ThresholdOutcome>,
    /// Whether the outcome was once that it fails.
    pub(crate) has_failed: bool,
    /// The outcome in one line for the user.
    pub(crate) text: String,
}

/// The change of a threshold's outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// The threshold as the user wrote it.
    pub(crate) threshold: String,
    /// The outcome before. `None` at the first judgement.
    pub(crate) was: Option<ThresholdOutcome>,
    /// What was found. Its repetitions are the intervals.
    #[serde(flatten)]
    pub(crate) judged: ThresholdSummary,
}

impl<'a> Alerts<'a> {
    /// Makes the state of the thresholds of `plan`, which are judged over at most `window` intervals.
    pub(crate) fn new(plan: &'a Plan, window: usize) -> Self {
        let states = plan.thresholds.iter().map(|threshold| ThresholdState {
            threshold: format!("{} {}", threshold.figure, threshold.bound),
            outcome: None,
            has_failed: false,
            text: String::new(),
        });
        Self { plan, window: window.max(1), recent: VecDeque::new(), intervals: 0, states: states.collect() }
    }

    /// Judges the thresholds after one more interval, and returns those whose outcome has changed. One
    /// interval alone says nothing about how intervals differ, so that the second one is waited for.
    pub(crate) fn add(&mut self, interval: &Interval) -> Vec<Change> {
        if self.states.is_empty() || !interval.valid || interval.flows.is_empty() {
            return Vec::new();
        }
        if self.recent.len() == self.window {
            self.recent.pop_front();
        }
        self.recent.push_back(as_repetition(interval, self.intervals));
        self.intervals += 1;
        if self.recent.len() < self.window.min(2) {
            return Vec::new();
        }
        let judged = judge_runs(self.plan, self.recent.iter(), Level::Shown);
        let mut changes = Vec::new();
        for (state, judged) in self.states.iter_mut().zip(judged) {
            let was = state.outcome.replace(judged.outcome);
            state.has_failed |= matches!(judged.outcome, ThresholdOutcome::Fails | ThresholdOutcome::Unknown);
            state.text.clone_from(&judged.text);
            if was != Some(judged.outcome) {
                changes.push(Change { threshold: state.threshold.clone(), was, judged });
            }
        }
        changes
    }

    /// Returns the state of each threshold.
    pub(crate) fn states(&self) -> &[ThresholdState] {
        &self.states
    }

    /// Returns the failure with which the monitor ends: exit code 5 if a threshold has failed at some time,
    /// else 6 if one is undecided at the end.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let texts = |is_meant: &dyn Fn(&ThresholdState) -> bool| -> Vec<String> {
            let meant = self.states.iter().filter(|state| is_meant(state));
            meant.map(|state| format!("\n  {}", state.threshold)).collect()
        };
        let failed = texts(&|state| state.has_failed);
        if !failed.is_empty() {
            return Some(Failure::Threshold(format!("did not hold all the time:{}", failed.concat())));
        }
        let is_open =
            |state: &ThresholdState| matches!(state.outcome, None | Some(ThresholdOutcome::Undecided));
        let open = texts(&is_open);
        (!open.is_empty()).then(|| Failure::Undecided(format!("undecided at the end:{}", open.concat())))
    }
}

impl ThresholdState {
    /// The state in a line for a person: `FAILS  call.mos 2.10000, must be >= 3.6 ...`.
    pub(crate) fn line(&self) -> String {
        line(self.outcome, &self.text)
    }
}

impl Change {
    /// The new outcome in a line for a person.
    pub(crate) fn line(&self) -> String {
        line(Some(self.judged.outcome), &self.judged.text)
    }
}

fn line(outcome: Option<ThresholdOutcome>, text: &str) -> String {
    let word = match outcome {
        Some(ThresholdOutcome::Holds) => "holds",
        Some(ThresholdOutcome::Fails | ThresholdOutcome::Unknown) => "FAILS",
        Some(ThresholdOutcome::Undecided) | None => "UNDECIDED",
    };
    format!("{word}  {text}")
}

/// Makes a repetition of an interval, with this number.
pub(crate) fn as_repetition(interval: &Interval, number: u64) -> RunSummary {
    let flows = interval.flows.iter();
    RunSummary {
        cell: 0,
        sweep: Swept::default(),
        repetition: number,
        seed: 0,
        flows: flows.map(|flow| (flow.name.clone(), Box::new(flow.figures.clone()))).collect(),
        groups: BTreeMap::new(),
        links: BTreeMap::new(),
        machine: None,
        path: None,
        program: None,
        changes: None,
    }
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Setting, Source, load};
    use talkpath_units::Duration;

    use super::*;
    use crate::monitor::interval::split;
    use crate::monitor::interval::tests::session;

    const CALL: &str = "duration = \"10 s\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";

    fn plan(figure: &str, bound: &str) -> Plan {
        let set = vec![Setting::by("--require", &format!("thresholds.{figure}"), bound)];
        let options = Options { set, ..Options::default() };
        load(&Source::new("x.toml", CALL), &options).unwrap()
    }

    /// The outcomes that are reported over sessions of 4 s, in intervals of 1 s, in which each message with a
    /// number that is a multiple of `lost` is missing.
    fn outcomes(alerts: &mut Alerts<'_>, lost: &[u64]) -> Vec<ThresholdOutcome> {
        let mut seen = Vec::new();
        for (number, lost) in (0..).zip(lost) {
            for interval in split(&session(number, 0, 4_000, *lost), Duration::from_secs(1)) {
                seen.extend(alerts.add(&interval).into_iter().map(|change| change.judged.outcome));
            }
        }
        seen
    }

    #[test]
    fn a_change_of_an_outcome_is_reported_and_a_threshold_that_failed_stays_failed_for_the_exit_code() {
        use ThresholdOutcome::{Fails, Holds};
        let plan = plan("call.loss_rate", "<= 0.2");
        let mut alerts = Alerts::new(&plan, 4);
        // A hundredth is lost, then a half, then a hundredth again.
        assert_eq!(outcomes(&mut alerts, &[100, 100]), [Holds]);
        assert_eq!(alerts.failure().map(|why| why.exit_code()), None);
        let bad = outcomes(&mut alerts, &[2, 2]);
        assert_eq!(bad.last(), Some(&Fails), "{bad:?}");
        let good = outcomes(&mut alerts, &[100, 100]);
        assert_eq!(good.last(), Some(&Holds), "{good:?}");
        let state = &alerts.states()[0];
        assert_eq!((state.threshold.as_str(), state.has_failed), ("call.loss_rate <= 0.2", true));
        assert_eq!(alerts.failure().map(|why| why.exit_code()), Some(5));
    }

    #[test]
    fn a_bound_within_the_interval_is_undecided() {
        let plan = plan("call.loss_rate", "<= 0.1");
        let mut alerts = Alerts::new(&plan, 4);
        assert_eq!(outcomes(&mut alerts, &[10]), [ThresholdOutcome::Undecided]);
        assert_eq!(alerts.failure().map(|why| why.exit_code()), Some(6));
    }

    #[test]
    fn intervals_without_figures_or_of_a_disturbed_host_are_left_out_and_few_are_kept() {
        let plan = plan("call.loss_rate", "<= 0.2");
        let mut alerts = Alerts::new(&plan, 3);
        let mut intervals = split(&session(0, 0, 9_000, 2), Duration::from_secs(1));
        for interval in &mut intervals {
            interval.valid = false;
            assert!(alerts.add(interval).is_empty());
        }
        assert_eq!((alerts.recent.len(), alerts.states()[0].outcome), (0, None));
        for interval in &mut intervals {
            interval.valid = true;
            alerts.add(interval);
        }
        assert_eq!(alerts.recent.len(), 3);
        intervals[0].flows.clear();
        alerts.add(&intervals[0]);
        assert_eq!((alerts.recent.len(), alerts.states()[0].outcome), (3, Some(ThresholdOutcome::Fails)));
    }
}
