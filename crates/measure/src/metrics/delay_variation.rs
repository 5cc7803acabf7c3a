//! Delay variation, twice: the difference between neighbours by number (RFC 3393) and the running estimate
//! between neighbours by arrival (RFC 3550 appendix A.8).
//!
//! RFC 3393 keeps the difference's sign; the papers that the studies repeat report its size, and so do we.
//! For an echo flow both are computed on round trips.

use talkpath_units::{Instant, SignedDuration};

use super::percentile::{PerMille, nearest_rank};
use super::trip::{Trip, first_arrivals};
use crate::summary::{IpdvMs, MinMeanMax, RtpStream};

/// |D(i) - D(i-1)| over consecutive sequence numbers that were both delivered, ascending. A gap gives
/// no difference.
pub fn sorted_ipdv(trips: &[Trip]) -> Vec<SignedDuration> {
    let mut differences: Vec<_> = trips
        .windows(2)
        .filter(|pair| pair[0].seq.checked_add(1) == Some(pair[1].seq))
        .filter_map(|pair| Some(apart(pair[1].delay()?, pair[0].delay()?)))
        .collect();
    differences.sort_unstable();
    differences
}

/// The statistics of `sorted` differences, which ascend; `None` if there is none.
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

/// What an RTP receiver keeps of a flow's arrivals, one after the other: the time between them and the
/// interarrival jitter, J += (|D| - J) / 16 for each arrival after the first, D the change in transit time
/// from one arrival to the next (RFC 3550 §6.4.1, A.8). The figures are those of tshark's `-z rtp,streams`.
///
/// The media clock is `due`. Only the first copy of a message counts, since a duplicate has no stamp of its
/// own in the records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interarrivals {
    /// Of the latest arrival: when, and its transit time.
    before: Option<(Instant, SignedDuration)>,
    first: Option<Instant>,
    arrivals: u64,
    delta: Option<(SignedDuration, SignedDuration)>,
    jitter: Option<f64>,
    jitters: (f64, f64),
    jitter_sum: f64,
}

impl Interarrivals {
    /// Those of `trips`, in order of `seq`; `arrivals` is the order of arrival.
    pub fn of(trips: &[Trip], arrivals: &[u64]) -> Self {
        let mut told = Self::default();
        for trip in first_arrivals(trips, arrivals) {
            if let (Some(received), Some(transit)) = (trip.received(), trip.delay()) {
                told.add(received, transit);
            }
        }
        told
    }

    /// The next arrival.
    #[inline]
    pub fn add(&mut self, received: Instant, transit: SignedDuration) {
        self.arrivals += 1;
        let (Some(before), Some(delta), Some(jitter)) = (&mut self.before, &mut self.delta, &mut self.jitter)
        else {
            return self.add_early(received, transit);
        };
        let (at, earlier) = core::mem::replace(before, (received, transit));
        let since = received.signed_since(at);
        *delta = (delta.0.min(since), delta.1.max(since));
        *jitter = next_jitter(*jitter, transit, earlier);
        // Never undefined, so that plain comparisons do.
        if *jitter < self.jitters.0 {
            self.jitters.0 = *jitter;
        }
        if *jitter > self.jitters.1 {
            self.jitters.1 = *jitter;
        }
        self.jitter_sum += *jitter;
    }

    /// One of the first two.
    #[cold]
    fn add_early(&mut self, received: Instant, transit: SignedDuration) {
        self.first.get_or_insert(received);
        let Some((at, earlier)) = self.before.replace((received, transit)) else { return };
        let since = received.signed_since(at);
        self.delta = Some((since, since));
        let jitter = next_jitter(0.0, transit, earlier);
        self.jitters = (jitter, jitter);
        self.jitter_sum += jitter;
        self.jitter = Some(jitter);
    }

    /// J after the last arrival, in milliseconds; `None` with fewer than two.
    pub const fn jitter_ms(&self) -> Option<f64> {
        self.jitter
    }

    /// The figures of all arrivals; `None` with fewer than two.
    pub fn stream(&self) -> Option<RtpStream> {
        let (least, most) = self.delta?;
        let span = self.before?.0.signed_since(self.first?).as_millis_f64();
        Some(RtpStream {
            delta_ms: MinMeanMax {
                min: least.as_millis_f64(),
                mean: span / (self.arrivals - 1) as f64,
                max: most.as_millis_f64(),
            },
            jitter_ms: MinMeanMax {
                min: self.jitters.0,
                mean: self.jitter_sum / (self.arrivals - 1) as f64,
                max: self.jitters.1,
            },
        })
    }
}

/// J after an arrival whose transit took this long, if the transit of the arrival before took `earlier`.
fn next_jitter(estimate: f64, transit: SignedDuration, earlier: SignedDuration) -> f64 {
    estimate + (apart(transit, earlier).as_millis_f64() - estimate) / GAIN
}

/// The absolute difference of two delays.
#[inline]
pub(crate) fn apart(delay: SignedDuration, other: SignedDuration) -> SignedDuration {
    let nanos = delay.as_nanos().abs_diff(other.as_nanos());
    SignedDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// RFC 3550 §6.4.1: "the gain parameter 1/16".
const GAIN: f64 = 16.0;

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use super::*;
    use crate::testing::flow;

    const ALWAYS: Range<Instant> = Instant::ZERO..Instant::MAX;

    fn ipdv_ms(delays: &[Option<u64>]) -> Vec<f64> {
        sorted_ipdv(&flow(delays).trips(&ALWAYS)).into_iter().map(SignedDuration::as_millis_f64).collect()
    }

    fn jitter_ms(delays: &[Option<u64>]) -> Option<f64> {
        let flow = flow(delays);
        Interarrivals::of(&flow.trips(&ALWAYS), &flow.forward.arrivals).jitter_ms()
    }

    #[test]
    fn ipdv_is_the_size_of_the_difference_between_neighbours() {
        // RFC 3393 §2: ddT = T2 - T1: +1, -6, +5.
        assert_eq!(ipdv_ms(&[Some(30), Some(31), Some(25), Some(30)]), [1.0, 5.0, 6.0]);
    }

    #[test]
    fn a_missing_message_leaves_no_difference_across_the_gap() {
        assert_eq!(ipdv_ms(&[Some(30), Some(31), None, Some(40), Some(35)]), [1.0, 5.0]);
        assert_eq!(ipdv_ms(&[Some(30), None, Some(90)]), [0.0; 0]);
    }

    #[test]
    fn neighbours_are_neighbours_by_number_not_by_arrival() {
        // 1 arrives at 90 ms, after 2 at 66 ms.
        assert_eq!(ipdv_ms(&[Some(10), Some(70), Some(26)]), [44.0, 60.0]);
    }

    #[test]
    fn rtp_jitter_equals_its_recurrence_worked_by_hand() {
        // RFC 3550 §A.8: |D| = 16: 0 + 16/16 = 1; |D| = 16: 1 + 15/16 = 1.9375; |D| = 0: 1.9375 × 15/16.
        assert_eq!(jitter_ms(&[Some(30), Some(46)]), Some(1.0));
        assert_eq!(jitter_ms(&[Some(30), Some(46), Some(30)]), Some(1.9375));
        assert_eq!(jitter_ms(&[Some(30), Some(46), Some(30), Some(30)]), Some(1.9375 * 15.0 / 16.0));
    }

    #[test]
    fn rtp_jitter_follows_the_order_of_arrival() {
        // RFC 3550 §6.4.1: in order of arrival. 0, 2, 1: |26 - 10| gives 1, |70 - 26| gives 1 + 43/16.
        assert_eq!(jitter_ms(&[Some(10), Some(70), Some(26)]), Some(1.0 + 43.0 / 16.0));
    }

    /// Due every 20 ms, with arrivals at 30, 66, 70, 90 ms; J = 1, then 1 + 15/16, then 1.9375 x 15/16 =
    /// 1.81640625.
    #[test]
    fn a_stream_is_told_by_what_lies_between_its_arrivals() {
        let flow = flow(&[Some(30), Some(46), Some(30), Some(30)]);
        let stream = Interarrivals::of(&flow.trips(&ALWAYS), &flow.forward.arrivals).stream().unwrap();
        let MinMeanMax { min, mean, max } = stream.delta_ms;
        assert_eq!((min, mean, max), (4.0, 20.0, 36.0));
        let MinMeanMax { min, mean, max } = stream.jitter_ms;
        assert_eq!((min, mean, max), (1.0, (1.0 + 1.9375 + 1.816_406_25) / 3.0, 1.9375));
    }

    #[test]
    fn one_arrival_has_no_jitter() {
        assert_eq!(jitter_ms(&[Some(30), None]), None);
        assert_eq!(statistics(&[]), None);
    }
}
