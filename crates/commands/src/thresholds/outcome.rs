//! Compares a figure with its bound.

use talkpath_measure::metrics::share;
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::ThresholdOutcome;
use talkpath_scenario::{Bound, Operator};

/// The messages that a share is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShareMessages {
    /// The messages that the share counts.
    pub(super) counted: u64,
    /// How many independent messages tell as much. Losses in runs tell less (`measure::metrics::share`).
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

/// Judges `value` by the bound. `messages` is `None` if the value is not a share of messages.
///
/// - If the messages are mostly unfinished, the outcome must be the same whatever becomes of them.
/// - If the bound is finer than one independent message of the share, the confidence interval of the share
///   must lie on one side of the bound.
pub(super) fn outcome(value: Option<f64>, messages: Option<ShareMessages>, bound: Bound) -> ThresholdOutcome {
    if let Some(messages) = messages.filter(|messages| messages.is_mostly_unfinished()) {
        let share = value.unwrap_or(0.0);
        return outcome_of_interval(share, messages.possible_shares(share), bound);
    }
    let Some(value) = value else { return ThresholdOutcome::Fails };
    match messages {
        Some(ShareMessages { independent, .. }) if share::is_finer_than_one(bound.value, independent) => {
            match share::interval(value, independent) {
                Some(interval) => outcome_of_interval(value, interval, bound),
                None => ThresholdOutcome::Undecided,
            }
        }
        _ => holds_or_fails(bound.holds(value)),
    }
}

/// Judges `share` by the bound. The outcome is undecided if the bound lies in the interval of the share.
fn outcome_of_interval(share: f64, (low, high): (f64, f64), bound: Bound) -> ThresholdOutcome {
    let is_decided = match bound.operator {
        Operator::Equal | Operator::Different => bound.value < low || high < bound.value,
        _ => bound.holds(low) == bound.holds(high),
    };
    if is_decided { holds_or_fails(bound.holds(share)) } else { ThresholdOutcome::Undecided }
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

/// Computes a statistic over the repetitions. A repetition whose figure is unknown counts as worse than all
/// others. If the statistic depends on such a repetition, the statistic is unknown, too.
pub(super) fn over_repetitions(statistic: Statistic, values: &[Option<f64>], bound: Bound) -> Option<f64> {
    let worst = match bound.operator {
        Operator::AtMost | Operator::Below => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    };
    let mut sorted: Vec<f64> = values.iter().map(|value| value.unwrap_or(worst)).collect();
    sorted.sort_by(f64::total_cmp);
    statistic.over(&sorted).filter(|value| value.is_finite())
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
