//! Delay: the time from the moment when the workload wanted to send a message until the application read it.
//!
//! One-way delay follows RFC 7679 and round-trip delay follows RFC 2681, with two departures. Both are
//! measured between applications. They begin at `due` and not with the first bit on the wire, so that a
//! blocked sender cannot hide its wait (coordinated omission). The documents call the delay of a missing
//! message undefined (infinite). Here missing messages are left out, because the loss figures count them.

use talkpath_units::SignedDuration;

use super::percentile::{PerMille, nearest_rank};
use super::trip::Trip;
use crate::summary::DelayMs;

/// Returns the delays of the trips that ended, in ascending order.
pub fn sorted_delays(trips: &[Trip]) -> Vec<SignedDuration> {
    let mut delays = Vec::with_capacity(trips.len());
    delays.extend(trips.iter().filter_map(Trip::delay));
    delays.sort_unstable();
    delays
}

/// Returns the statistics of `sorted` delays, which are in ascending order. Returns `None` if there is none.
pub fn statistics(sorted: &[SignedDuration]) -> Option<DelayMs> {
    let percentile = |share| nearest_rank(sorted, PerMille(share)).map(SignedDuration::as_millis_f64);
    Some(DelayMs {
        min: sorted.first()?.as_millis_f64(),
        mean: mean_ms(sorted)?,
        p50: percentile(500)?,
        p90: percentile(900)?,
        p95: percentile(950)?,
        p99: percentile(990)?,
        p999: percentile(999)?,
        max: sorted.last()?.as_millis_f64(),
    })
}

/// Returns the mean in milliseconds. The sum is in whole nanoseconds, so it does not depend on the order of
/// the delays.
pub fn mean_ms(delays: &[SignedDuration]) -> Option<f64> {
    let sum: i128 = delays.iter().map(|delay| i128::from(delay.as_nanos())).sum();
    (!delays.is_empty()).then(|| sum as f64 / delays.len() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use talkpath_units::Instant;

    use super::*;
    use crate::testing::{flow, ms};

    #[test]
    fn the_wait_of_a_blocked_sender_is_part_of_the_delay() {
        let mut flow = flow(&[Some(80)]);
        flow.forward.messages[0].sent = Some(ms(50));
        let delays = sorted_delays(&flow.trips(&(Instant::ZERO..ms(1))));
        assert_eq!(statistics(&delays).unwrap().max, 80.0);
    }

    #[test]
    fn statistics_of_one_to_a_hundred_milliseconds() {
        let delays: Vec<_> = (1..=100).map(|ms| SignedDuration::from_nanos(ms * 1_000_000)).collect();
        let expected = DelayMs {
            min: 1.0,
            mean: 50.5,
            p50: 50.0,
            p90: 90.0,
            p95: 95.0,
            p99: 99.0,
            p999: 100.0,
            max: 100.0,
        };
        assert_eq!(statistics(&delays), Some(expected));
        assert_eq!(statistics(&[]), None);
    }

    #[test]
    fn a_far_clock_that_lags_gives_a_negative_delay() {
        let mut flow = flow(&[Some(1)]);
        (flow.forward.messages[0].due, flow.forward.messages[0].received) = (ms(30), Some(ms(28)));
        let delays = sorted_delays(&flow.trips(&(Instant::ZERO..ms(60))));
        assert_eq!(mean_ms(&delays), Some(-2.0));
    }
}
