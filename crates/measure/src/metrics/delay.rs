//! Delay: from the instant that the workload wanted a message sent to the instant that the application read it.
//!
//! One-way delay after RFC 7679 and round-trip delay after RFC 2681, with two departures: both are taken between
//! applications, and they begin at `due`, not at the first bit on the wire, so that a blocked sender cannot hide the wait
//! (coordinated omission). Missing messages, whose delay those documents call undefined (infinite), are left out here and
//! stand in the loss figures.

use talkpath_units::SignedDuration;

use super::percentile::{PerMille, nearest_rank};
use super::trip::Trip;
use crate::summary::DelayMs;

/// The delays of the trips that came to their end, ascending.
pub fn sorted_delays(trips: &[Trip]) -> Vec<SignedDuration> {
    let mut delays: Vec<_> = trips.iter().filter_map(Trip::delay).collect();
    delays.sort_unstable();
    delays
}

/// The statistics of `sorted` delays, which ascend; `None` where there is none.
pub fn statistics(sorted: &[SignedDuration]) -> Option<DelayMs> {
    let at = |per_mille| nearest_rank(sorted, PerMille(per_mille)).map(SignedDuration::as_millis_f64);
    Some(DelayMs {
        min: sorted.first()?.as_millis_f64(),
        mean: mean_ms(sorted)?,
        p50: at(500)?,
        p90: at(900)?,
        p95: at(950)?,
        p99: at(990)?,
        p999: at(999)?,
        max: sorted.last()?.as_millis_f64(),
    })
}

/// The mean in milliseconds, summed in whole nanoseconds so that the order of summing cannot matter.
pub fn mean_ms(delays: &[SignedDuration]) -> Option<f64> {
    let sum: i128 = delays.iter().map(|delay| i128::from(delay.as_nanos())).sum();
    (!delays.is_empty()).then(|| sum as f64 / delays.len() as f64 / 1e6)
}
