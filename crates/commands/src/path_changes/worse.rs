//! The times in which a value of a link is worse than at the start of the run.

use std::collections::BTreeMap;

use talkpath_path::LinkValues;
use talkpath_scenario::Scenario;
use talkpath_units::Instant;

use super::mark::{Mark, bits};

/// A key of a link whose value can be worse than at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worse {
    Rate,
    Delay,
    Loss,
    Limit,
}

/// A value of a key from an instant on.
struct Valued {
    at: Instant,
    until: Instant,
    /// How bad the value is: a larger number is worse. `None` of a rate of 0, which is a silence and has a
    /// group of its own.
    badness: Option<f64>,
    group: usize,
    is_of_file: bool,
}

/// Returns the times in which a value of a link is worse than at the start of the run, each with the group
/// that set it. A ramp back to the start belongs to them until it ends.
///
/// The rates of a file are compared with half of their mean over time, because its first row need not be
/// what is usual.
pub(super) fn worse_times(
    scenario: &Scenario,
    marks: &[Mark<'_>],
    end: Instant,
) -> Vec<(usize, Instant, Instant)> {
    let mut values: BTreeMap<(u32, Worse), Vec<Valued>> = BTreeMap::new();
    for mark in marks {
        let LinkValues { rate, delay, loss, limit, .. } = &mark.change.to;
        let Some(link) = scenario.links.get(mark.change.link as usize) else { continue };
        let mut add = |key, badness| {
            let Mark { at, until, group, is_of_file, .. } = *mark;
            let valued = Valued { at, until, badness, group, is_of_file };
            values.entry((mark.change.link, key)).or_default().push(valued);
        };
        if let Some(rate) = rate {
            add(Worse::Rate, Some(-bits(rate)).filter(|badness| *badness < 0.0));
        }
        if let Some(delay) = delay {
            add(Worse::Delay, Some(delay.as_secs_f64()));
        }
        if let Some(loss) = loss {
            add(Worse::Loss, Some(loss.mean()));
        }
        if let Some(limit) = limit {
            // A smaller queue drops more, and a larger one delays more.
            add(Worse::Limit, Some(f64::from(u8::from(*limit != link.config.queue.limit()))));
        }
    }
    let mut times = Vec::new();
    for ((link, key), values) in values {
        let Some(link) = scenario.links.get(link as usize) else { continue };
        let at_start = match key {
            Worse::Rate if values.first().is_some_and(|first| first.is_of_file) => {
                -mean_rate(&values, end) / 2.0
            }
            Worse::Rate => -bits(&link.config.rate),
            Worse::Delay => link.config.delay.as_secs_f64(),
            Worse::Loss => link.config.loss.mean(),
            Worse::Limit => 0.0,
        };
        // Of the rows of a file only the rates are compared: nothing says which delay or loss is usual.
        if key != Worse::Rate && values.first().is_some_and(|first| first.is_of_file) {
            continue;
        }
        let mut was_worse = false;
        for (index, value) in values.iter().enumerate() {
            let next = values.get(index + 1).map_or(end, |next| next.at);
            let is_worse = value.badness.is_some_and(|badness| badness > at_start);
            if is_worse {
                times.push((value.group, value.at, next));
            } else if was_worse && value.badness.is_some() && value.until > value.at {
                times.push((value.group, value.at, value.until.min(next)));
            }
            was_worse = is_worse;
        }
    }
    times.sort_by_key(|(group, from, _)| (*group, *from));
    times
}

/// The mean of the rates of a file over time in bit/s, without the times at a rate of 0.
fn mean_rate(values: &[Valued], end: Instant) -> f64 {
    let (mut bits, mut seconds) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let Some(badness) = value.badness.filter(|_| value.is_of_file) else { continue };
        let next = values.get(index + 1).map_or(end, |next| next.at);
        let length = next.since(value.at).as_secs_f64();
        bits -= badness * length;
        seconds += length;
    }
    bits / f64::max(seconds, 1e-9)
}

/// Joins times that touch or overlap. They are in order of their beginnings.
pub(super) fn merged(times: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (from, until) in times {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => merged.push((from, until)),
        }
    }
    merged
}
