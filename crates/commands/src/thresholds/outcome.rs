//! Compares a figure with its bound.

use talkpath_measure::metrics::share;
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::ThresholdOutcome;
use talkpath_scenario::{Bound, Operator};

/// Judges `value` by the bound. `messages` is the number of messages that have ended, if the value is a share
/// of them.
///
/// - If more messages are `unfinished` than have ended, the outcome must be the same whatever becomes of
///   them.
/// - If the bound is finer than one message of the share, the confidence interval of the share must lie on
///   one side of the bound.
pub(super) fn outcome(
    value: Option<f64>,
    messages: Option<u64>,
    unfinished: u64,
    bound: Bound,
) -> ThresholdOutcome {
    let interval = match (value, messages) {
        (value, Some(messages)) if is_mostly_unfinished(messages, unfinished) => {
            Some(possible_shares(value.unwrap_or(0.0), messages, unfinished))
        }
        (None, _) => return ThresholdOutcome::Fails,
        (Some(value), Some(messages)) if share::is_finer_than_one(bound.value, messages) => {
            let hits = (value * messages as f64).round().max(0.0) as u64;
            share::interval(hits, messages)
        }
        (Some(value), _) => return holds_or_fails(bound.holds(value)),
    };
    let Some((low, high)) = interval else { return ThresholdOutcome::Undecided };
    let is_clear = match bound.operator {
        Operator::Equal | Operator::Different => bound.value < low || high < bound.value,
        _ => bound.holds(low) == bound.holds(high),
    };
    if is_clear { holds_or_fails(bound.holds(value.unwrap_or(low))) } else { ThresholdOutcome::Undecided }
}

const fn holds_or_fails(holds: bool) -> ThresholdOutcome {
    if holds { ThresholdOutcome::Holds } else { ThresholdOutcome::Fails }
}

/// The rank of an outcome. The worst outcome has the lowest rank.
pub(super) const fn rank(outcome: ThresholdOutcome) -> u8 {
    match outcome {
        ThresholdOutcome::Fails | ThresholdOutcome::Unknown => 0,
        ThresholdOutcome::Undecided => 1,
        ThresholdOutcome::Holds => 2,
    }
}

/// Whether more messages are unfinished than have ended, so that a share of the ended messages says little.
pub(super) const fn is_mostly_unfinished(messages: u64, unfinished: u64) -> bool {
    unfinished > messages
}

/// The smallest and the largest share that is possible when the `unfinished` messages have ended too. Now the
/// share is `value`, of `messages`.
fn possible_shares(value: f64, messages: u64, unfinished: u64) -> (f64, f64) {
    let (hits, all) = (value * messages as f64, (messages + unfinished) as f64);
    (hits / all, (hits + unfinished as f64) / all)
}

/// Computes a statistic over the repetitions. A repetition whose figure is not known counts as worse than all
/// others. If the statistic depends on such a repetition, it is not known either.
pub(super) fn over_repetitions(statistic: Statistic, values: &[Option<f64>], bound: Bound) -> Option<f64> {
    let worst = match bound.operator {
        Operator::AtMost | Operator::Below => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    };
    let mut sorted: Vec<f64> = values.iter().map(|value| value.unwrap_or(worst)).collect();
    sorted.sort_by(f64::total_cmp);
    statistic.over(&sorted).filter(|value| value.is_finite())
}

/// The distance of a figure from its bound. It is negative if the bound does not hold.
pub(super) fn margin(value: Option<f64>, bound: Bound) -> f64 {
    let Some(value) = value else { return f64::NEG_INFINITY };
    match bound.operator {
        Operator::AtLeast | Operator::Above => value - bound.value,
        Operator::AtMost | Operator::Below => bound.value - value,
        Operator::Equal => -(value - bound.value).abs(),
        Operator::Different => (value - bound.value).abs(),
    }
}
