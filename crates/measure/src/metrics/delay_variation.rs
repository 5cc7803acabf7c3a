//! Delay variation in two forms: the differences between neighbours by number (RFC 3393), and the running
//! estimate between neighbours by arrival (RFC 3550 appendix A.8).
//!
//! RFC 3393 keeps the sign of a difference. The papers that the studies repeat report its size, and so do we.
//! For an echo flow both forms are computed from round trips.

use core::mem;

use talkpath_units::{Histogram, Instant, SignedDuration};

use super::percentile::{PerMille, nearest_rank};
use super::trip::{Trip, first_arrivals};
use crate::summary::{IpdvMs, MinMeanMax, RtpStream};

/// The divisor of the running estimate (RFC 3550 §6.4.1: "the gain parameter 1/16").
const GAIN: f64 = 16.0;

/// Returns |D(i) - D(i-1)| for all consecutive numbers of which both messages were delivered, in ascending
/// order. A message that is missing has no difference to either neighbour.
pub fn sorted_ipdv(trips: &[Trip]) -> Vec<SignedDuration> {
    let mut differences = Vec::new();
    for (trip, next) in trips.iter().zip(trips.iter().skip(1)) {
        if trip.seq.checked_add(1) == Some(next.seq)
            && let (Some(delay), Some(next_delay)) = (trip.delay(), next.delay())
        {
            differences.push(absolute_difference(next_delay, delay));
        }
    }
    differences.sort_unstable();
    differences
}

/// Returns the statistics of `sorted` differences, which are in ascending order. Returns `None` if there is
/// none.
pub fn statistics(sorted: &[SignedDuration]) -> Option<IpdvMs> {
    let percentile = |share| nearest_rank(sorted, PerMille(share)).map(SignedDuration::as_millis_f64);
    Some(IpdvMs {
        p50: percentile(500)?,
        p90: percentile(900)?,
        p95: percentile(950)?,
        p99: percentile(990)?,
        max: sorted.last()?.as_millis_f64(),
    })
}

/// Counts the differences between neighbours by number during the run, without the rows of the flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct IpdvCounter {
    previous: Option<Neighbour>,
    pub(crate) differences: Histogram,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Neighbour {
    seq: u64,
    /// `None` if the message did not arrive.
    delay: Option<SignedDuration>,
}

impl IpdvCounter {
    /// Adds the next message by number.
    #[inline(always)]
    pub(crate) fn add(&mut self, seq: u64, delay: Option<SignedDuration>) {
        if let (Some(delay), Some(previous)) = (delay, self.previous)
            && previous.seq.checked_add(1) == Some(seq)
            && let Some(previous_delay) = previous.delay
        {
            self.differences.record(absolute_difference(delay, previous_delay));
        }
        self.previous = Some(Neighbour { seq, delay });
    }
}

/// What an RTP receiver computes from the arrivals of a flow, one after the other: the time between two
/// arrivals, and the interarrival jitter J. Each arrival after the first changes J by (|D| - J) / 16, where D
/// is the change in transit time from the arrival before (RFC 3550 §6.4.1, A.8). The figures are those of
/// tshark's `-z rtp,streams`.
///
/// The due time of a message is its time on the media clock. Only the first copy of a message counts, because
/// the record has no time of arrival for a duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interarrivals {
    first_received: Option<Instant>,
    latest: Option<Arrival>,
    arrivals: u64,
    /// The figures of the intervals between arrivals. `None` with fewer than two arrivals.
    intervals: Option<Intervals>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Arrival {
    received: Instant,
    transit: SignedDuration,
}

/// The figures of at least one interval between two arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Intervals {
    shortest: SignedDuration,
    longest: SignedDuration,
    /// J after the latest arrival, ms.
    jitter: f64,
    min_jitter: f64,
    max_jitter: f64,
    /// The sum of J after each arrival, for its mean.
    jitter_sum: f64,
}

impl Interarrivals {
    /// Adds the arrivals of `trips`, which are in the order of `seq`. `arrivals` has their numbers in the
    /// order of arrival.
    pub fn of(trips: &[Trip], arrivals: &[u64]) -> Self {
        let mut interarrivals = Self::default();
        for trip in first_arrivals(trips, arrivals) {
            if let (Some(received), Some(transit)) = (trip.received(), trip.delay()) {
                interarrivals.add(received, transit);
            }
        }
        interarrivals
    }

    /// Adds the next arrival.
    #[inline]
    pub fn add(&mut self, received: Instant, transit: SignedDuration) {
        self.arrivals += 1;
        let arrival = Arrival { received, transit };
        let (Some(latest), Some(intervals)) = (&mut self.latest, &mut self.intervals) else {
            return self.add_one_of_first_two(arrival);
        };
        let earlier = mem::replace(latest, arrival);
        intervals.add(earlier, arrival);
    }

    #[cold]
    fn add_one_of_first_two(&mut self, arrival: Arrival) {
        self.first_received.get_or_insert(arrival.received);
        if let Some(earlier) = self.latest.replace(arrival) {
            self.intervals = Some(Intervals::new(earlier, arrival));
        }
    }

    /// Returns J after the last arrival, in milliseconds. Returns `None` with fewer than two arrivals.
    pub fn jitter_ms(&self) -> Option<f64> {
        Some(self.intervals?.jitter)
    }

    /// Returns the figures of all arrivals. Returns `None` with fewer than two arrivals.
    pub fn stream(&self) -> Option<RtpStream> {
        let intervals = self.intervals?;
        let interval_count = (self.arrivals - 1) as f64;
        let total = self.latest?.received.signed_since(self.first_received?);
        Some(RtpStream {
            delta_ms: MinMeanMax {
                min: intervals.shortest.as_millis_f64(),
                mean: total.as_millis_f64() / interval_count,
                max: intervals.longest.as_millis_f64(),
            },
            jitter_ms: MinMeanMax {
                min: intervals.min_jitter,
                mean: intervals.jitter_sum / interval_count,
                max: intervals.max_jitter,
            },
        })
    }
}

impl Intervals {
    /// Begins with the interval between the first two arrivals. J is 0 before it.
    fn new(first: Arrival, second: Arrival) -> Self {
        let interval = second.received.signed_since(first.received);
        let jitter = next_jitter(0.0, first.transit, second.transit);
        Self {
            shortest: interval,
            longest: interval,
            jitter,
            min_jitter: jitter,
            max_jitter: jitter,
            jitter_sum: jitter,
        }
    }

    #[inline]
    fn add(&mut self, earlier: Arrival, later: Arrival) {
        let interval = later.received.signed_since(earlier.received);
        self.shortest = self.shortest.min(interval);
        self.longest = self.longest.max(interval);
        self.jitter = next_jitter(self.jitter, earlier.transit, later.transit);
        // J is never NaN, so these comparisons suffice. They are faster than `f64::min` and `f64::max`.
        if self.jitter < self.min_jitter {
            self.min_jitter = self.jitter;
        }
        if self.jitter > self.max_jitter {
            self.max_jitter = self.jitter;
        }
        self.jitter_sum += self.jitter;
    }
}

/// Returns J after an arrival. `jitter` is J before it, and the other two are the transit times of the
/// arrival before and of this one.
fn next_jitter(jitter: f64, earlier_transit: SignedDuration, transit: SignedDuration) -> f64 {
    jitter + (absolute_difference(transit, earlier_transit).as_millis_f64() - jitter) / GAIN
}

/// Returns the absolute difference of two delays.
#[inline]
fn absolute_difference(delay: SignedDuration, other: SignedDuration) -> SignedDuration {
    let nanos = delay.as_nanos().abs_diff(other.as_nanos());
    SignedDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

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
    fn the_figures_of_a_stream_come_from_the_intervals_between_its_arrivals() {
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
