//! Compares a figure with its bound, and says how much more would decide.

use talkpath_measure::metrics::certainty::Certainty;
use talkpath_measure::metrics::confidence::Level;
use talkpath_measure::metrics::share;
use talkpath_measure::summary::ThresholdOutcome;
use talkpath_scenario::{Bound, Operator};

/// The messages that a share is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShareMessages {
    /// The messages that the share counts.
    pub(super) counted: u64,
    /// How many independent messages tell as much. Messages in runs tell less (`measure::metrics::runs`).
    pub(super) independent: f64,
    /// The messages that the share leaves out, because they were unfinished at the end of the run.
    pub(super) unfinished: u64,
}

impl ShareMessages {
    /// Returns the messages of both shares together.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            counted: self.counted + other.counted,
            independent: self.independent + other.independent,
            unfinished: self.unfinished + other.unfinished,
        }
    }

    /// Returns whether the share says little, because it leaves out more messages than it counts.
    pub(super) const fn is_mostly_unfinished(self) -> bool {
        self.unfinished > self.counted
    }

    /// Returns the smallest and the largest share that is possible when the unfinished messages have ended
    /// too. `share` is the share of the counted messages.
    fn possible_shares(self, share: f64) -> (f64, f64) {
        let (hits, total) = (share * self.counted as f64, (self.counted + self.unfinished) as f64);
        (hits / total, (hits + self.unfinished as f64) / total)
    }
}

/// What a value over the repetitions is compared with, and how sure the value is.
pub(super) struct Judged<'a> {
    /// The value and its certainty. `None` if the value is unknown, or if the figure is a flag.
    pub(super) certainty: Option<Certainty<'a>>,
    pub(super) value: Option<f64>,
    /// The messages that the value is a share of. `None` if it is no share of messages.
    pub(super) messages: Option<ShareMessages>,
    pub(super) bound: Bound,
}

/// How much more would decide an undecided threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needed {
    /// All messages that are needed, with those of the run. `None` if the messages are not what is lacking.
    pub(super) messages: Option<u64>,
    /// All repetitions that are needed, with those of the run. `None` if they are not what is lacking.
    pub(super) repetitions: Option<u64>,
}

impl Judged<'_> {
    /// Judges the value by the bound.
    ///
    /// - If the messages of a share are mostly unfinished, the outcome must be the same whatever becomes of
    ///   them.
    /// - If the value has an interval, the interval must lie on one side of the bound.
    /// - A bound at an end of what is possible, such as none or all, is a count, and the value decides.
    pub(super) fn outcome(&self, level: Level) -> ThresholdOutcome {
        if let Some(messages) = self.messages.filter(|messages| messages.is_mostly_unfinished()) {
            let share = self.value.unwrap_or(0.0);
            return outcome_of_interval(share, messages.possible_shares(share), self.bound);
        }
        let Some(value) = self.value else { return ThresholdOutcome::Fails };
        match self.interval(level) {
            Some(interval) => outcome_of_interval(value, interval, self.bound),
            None => holds_or_fails(self.bound.holds(value)),
        }
    }

    /// Returns the interval that decides. Returns `None` if the value alone decides.
    pub(super) fn interval(&self, level: Level) -> Option<(f64, f64)> {
        let certainty = self.certainty?;
        let (least, most) = certainty.possible;
        let is_count = self.bound.value <= least || self.bound.value >= most;
        if is_count { None } else { certainty.interval(level) }
    }

    /// Returns how much more would decide, if the run goes on as it is.
    pub(super) fn needed(&self, level: Level) -> Needed {
        let Some(certainty) = self.certainty else { return Needed::default() };
        let bound = self.bound.value;
        let has_bound =
            |interval: Option<(f64, f64)>| interval.is_some_and(|(low, high)| low <= bound && bound <= high);
        let mut needed = Needed::default();
        if has_bound(certainty.interval_of_repetitions(level)) {
            needed.repetitions = certainty.repetitions_needed(bound, level);
        }
        if let Some(messages) = self.messages
            && has_bound(certainty.interval_of_messages(level))
        {
            // Messages in runs count as fewer.
            let messages_for_one = (messages.counted as f64 / messages.independent.max(1.0)).max(1.0);
            let independent = share::needed(certainty.value, bound, level);
            needed.messages = independent.map(|independent| (independent * messages_for_one).round() as u64);
        }
        needed
    }
}

/// Judges `value` by the bound. The outcome is undecided if the bound lies in the interval of the value.
fn outcome_of_interval(value: f64, (low, high): (f64, f64), bound: Bound) -> ThresholdOutcome {
    let is_decided = match bound.operator {
        // An interval without width is the value itself.
        Operator::Equal | Operator::Different => bound.value < low || high < bound.value || low >= high,
        _ => bound.holds(low) == bound.holds(high),
    };
    if is_decided { holds_or_fails(bound.holds(value)) } else { ThresholdOutcome::Undecided }
}

const fn holds_or_fails(holds: bool) -> ThresholdOutcome {
    if holds { ThresholdOutcome::Holds } else { ThresholdOutcome::Fails }
}

/// Returns the rank of an outcome. The worst outcome has the lowest rank.
pub(super) const fn rank(outcome: ThresholdOutcome) -> u8 {
    match outcome {
        ThresholdOutcome::Fails | ThresholdOutcome::Unknown => 0,
        ThresholdOutcome::Undecided => 1,
        ThresholdOutcome::Holds => 2,
    }
}

/// Returns the values in ascending order. A repetition whose figure is unknown counts as worse than all
/// others, so it is infinite.
pub(super) fn sorted_values(values: &[Option<f64>], bound: Bound) -> Vec<f64> {
    let worst = match bound.operator {
        Operator::AtMost | Operator::Below => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    };
    let mut sorted: Vec<f64> = values.iter().map(|value| value.unwrap_or(worst)).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns the distance of a figure from its bound. The distance is negative if the bound does not hold.
pub(super) fn margin(value: Option<f64>, bound: Bound) -> f64 {
    let Some(value) = value else { return f64::NEG_INFINITY };
    match bound.operator {
        Operator::AtLeast | Operator::Above => value - bound.value,
        Operator::AtMost | Operator::Below => bound.value - value,
        Operator::Equal => -(value - bound.value).abs(),
        Operator::Different => (value - bound.value).abs(),
    }
}
