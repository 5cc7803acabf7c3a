//! Delay variation, twice: the difference between neighbours by number (RFC 3393) and the running estimate between
//! neighbours by arrival (RFC 3550 appendix A.8).
//!
//! RFC 3393 keeps the difference's sign; the papers that the studies repeat report its size, and so do we. For an echo
//! flow both are computed on round trips.

use talkpath_units::SignedDuration;

use super::percentile::{PerMille, nearest_rank};
use super::trip::{Trip, first_arrivals};
use crate::summary::IpdvMs;

/// |D(i) - D(i-1)| over consecutive sequence numbers that were both delivered, ascending. A gap gives no difference.
pub fn sorted_ipdv(trips: &[Trip]) -> Vec<SignedDuration> {
    let mut differences: Vec<_> = trips
        .windows(2)
        .filter(|pair| pair[0].seq.checked_add(1) == Some(pair[1].seq))
        .filter_map(|pair| Some(magnitude(pair[1].delay()? - pair[0].delay()?)))
        .collect();
    differences.sort_unstable();
    differences
}

/// The statistics of `sorted` differences, which ascend; `None` where there is none.
pub fn statistics(sorted: &[SignedDuration]) -> Option<IpdvMs> {
    let at = |per_mille| nearest_rank(sorted, PerMille(per_mille)).map(SignedDuration::as_millis_f64);
    Some(IpdvMs {
        p50: at(500)?,
        p90: at(900)?,
        p95: at(950)?,
        p99: at(990)?,
        max: sorted.last()?.as_millis_f64(),
    })
}

/// The interarrival jitter estimate after the last arrival, in milliseconds: J += (|D| - J) / 16 for each arrival after
/// the first, D the change in transit time from one arrival to the next (RFC 3550 §6.4.1, A.8).
///
/// The media clock is `due`. `arrivals` is the order of arrival; only the first copy of a message counts, since a
/// duplicate has no stamp of its own in the records. `None` with fewer than two arrivals.
pub fn rtp_jitter_ms(trips: &[Trip], arrivals: &[u64]) -> Option<f64> {
    let mut transits = first_arrivals(trips, arrivals).filter_map(Trip::delay);
    let mut before = transits.next()?;
    let mut jitter = None;
    for transit in transits {
        let change = magnitude(transit - before).as_millis_f64();
        let estimate = jitter.unwrap_or(0.0);
        jitter = Some(estimate + (change - estimate) / GAIN);
        before = transit;
    }
    jitter
}

fn magnitude(difference: SignedDuration) -> SignedDuration {
    SignedDuration::from_nanos(difference.as_nanos().saturating_abs())
}

/// RFC 3550 §6.4.1: "the gain parameter 1/16".
const GAIN: f64 = 16.0;
