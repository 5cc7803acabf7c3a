//! Delays without keeping each of them: the buckets of a histogram of high dynamic range (Tene's
//! HdrHistogram), which grow with the value, so that a percentile is known to a relative error whatever the
//! values are.
//!
//! ```text
//!   0            2,048 x 512 ns        twice that       twice that again
//!   ├─ 2,048 buckets ─┼─ 1,024 buckets ─┼─ 1,024 buckets ─┼─ ...          each twice as wide as those before
//! ```
//!
//! Only the buckets that hold something are kept, six bytes each: the delays of a flow lie in a few hundred
//! of the ten thousand that a table from nothing to the longest would have, and there are as many tables as
//! flows. They stand where the lower bits of their numbers say or right behind (linear probing, in a table of
//! at least a third more), since neighbours are common: most are found at once. They are put in order when
//! somebody reads them.
//!
//! Count, smallest, largest and mean are exact; percentiles are nearest rank among the buckets, reported as
//! the largest value of the bucket, at most [`RELATIVE_ERROR`] or half a microsecond above the exact one,
//! whichever is more.

use core::fmt;

use talkpath_units::SignedDuration;

use crate::summary::{DelayMs, IpdvMs, StateAgeMs};

/// What summary.json says of percentiles that come from here.
pub const PERCENTILES: &str = "hdr histogram, off by at most 0.1 % or 0.5 us";

/// The largest share by which a percentile may be off, if that is more than a bucket of `LEAST`.
pub const RELATIVE_ERROR: f64 = 0.001;

/// The narrowest buckets' width in nanoseconds, as a power of two: smaller differences do not matter to
/// anybody. Chosen.
const LEAST_BITS: u32 = 9;
/// Half of the buckets of that width, as a power of two: from there on a bucket is a 1,024th of its values or
/// less, which is [`RELATIVE_ERROR`].
const HALF_BITS: u32 = 10;

/// A multitude of delays.
#[derive(Clone)]
pub struct Sketch {
    /// The numbers of the buckets that hold something, or [`NO_BUCKET`]; as many as a power of two, or none.
    /// Values are nanoseconds; a negative one counts as none at all.
    buckets: Box<[u16]>,
    /// How many each of those holds.
    counts: Box<[u32]>,
    /// Buckets that hold something.
    held: usize,
    count: u64,
    sum_ns: i128,
    least: SignedDuration,
    most: SignedDuration,
}

/// No bucket has this number.
const NO_BUCKET: u16 = u16::MAX;
/// The first size of a table. Chosen.
const FIRST_SIZE: usize = 8;

impl Sketch {
    /// No delays yet.
    pub fn new() -> Self {
        Self {
            buckets: Box::default(),
            counts: Box::default(),
            held: 0,
            count: 0,
            sum_ns: 0,
            least: SignedDuration::from_nanos(i64::MAX),
            most: SignedDuration::from_nanos(i64::MIN),
        }
    }

    /// One more delay.
    #[inline]
    pub fn record(&mut self, delay: SignedDuration) {
        self.hold(bucket_of(u64::try_from(delay.as_nanos()).unwrap_or(0)), 1);
        self.count += 1;
        self.sum_ns += i128::from(delay.as_nanos());
        self.least = self.least.min(delay);
        self.most = self.most.max(delay);
    }

    /// `more` delays in a bucket.
    #[inline]
    fn hold(&mut self, bucket: u16, more: u32) {
        let last = self.buckets.len().wrapping_sub(1);
        let mut place = usize::from(bucket) & last;
        // A quarter of the places is free, so that an end comes.
        while let (Some(there), Some(count)) = (self.buckets.get(place), self.counts.get_mut(place)) {
            if *there == bucket {
                *count = count.saturating_add(more);
                return;
            }
            if *there == NO_BUCKET {
                break;
            }
            place = (place + 1) & last;
        }
        self.open(bucket, more, place);
    }

    /// Holds the first `more` delays of a bucket, at `place` if the table has room for another one.
    #[inline(never)]
    fn open(&mut self, bucket: u16, more: u32, place: usize) {
        if 4 * (self.held + 1) > 3 * self.buckets.len() {
            self.grow();
            return self.hold(bucket, more);
        }
        self.buckets[place] = bucket;
        self.counts[place] = more;
        self.held += 1;
    }

    fn grow(&mut self) {
        let size = (2 * self.buckets.len()).max(FIRST_SIZE);
        let buckets = core::mem::replace(&mut self.buckets, vec![NO_BUCKET; size].into());
        let counts = core::mem::replace(&mut self.counts, vec![0; size].into());
        self.held = 0;
        for (&bucket, &held) in buckets.iter().zip(&counts).filter(|&(&bucket, _)| bucket != NO_BUCKET) {
            self.hold(bucket, held);
        }
    }

    /// The largest value of the bucket in which the delay of rank `share` of them all lies, within what was
    /// recorded.
    fn at_ms(&self, share: f64, held: &[(u16, u32)]) -> f64 {
        let rank = (libm::ceil(share * self.count as f64) as u64).max(1);
        let mut told = 0;
        let reached = held.iter().find(|&&(_, held)| {
            told += u64::from(held);
            told >= rank
        });
        let ns = reached.map_or(0, |&(bucket, _)| largest_of(bucket));
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        SignedDuration::from_nanos(ns).clamp(self.least, self.most).as_millis_f64()
    }

    /// The statistics of what was recorded; `None` of nothing.
    pub fn delay_ms(&self) -> Option<DelayMs> {
        let held = self.held();
        (self.count > 0).then(|| DelayMs {
            min: self.least.as_millis_f64(),
            mean: self.sum_ns as f64 / self.count as f64 / 1e6,
            p50: self.at_ms(0.5, &held),
            p90: self.at_ms(0.9, &held),
            p95: self.at_ms(0.95, &held),
            p99: self.at_ms(0.99, &held),
            p999: self.at_ms(0.999, &held),
            max: self.most.as_millis_f64(),
        })
    }

    /// The same of the newest state's age.
    pub fn state_age_ms(&self) -> Option<StateAgeMs> {
        let held = self.held();
        (self.count > 0).then(|| StateAgeMs { p50: self.at_ms(0.5, &held), p99: self.at_ms(0.99, &held) })
    }

    /// The same of delay variation.
    pub fn ipdv_ms(&self) -> Option<IpdvMs> {
        let held = self.held();
        (self.count > 0).then(|| IpdvMs {
            p50: self.at_ms(0.5, &held),
            p90: self.at_ms(0.9, &held),
            p95: self.at_ms(0.95, &held),
            p99: self.at_ms(0.99, &held),
            max: self.most.as_millis_f64(),
        })
    }

    /// (delay in ms, share of the `decided` messages later than that or never), a point a bucket that holds
    /// something.
    pub fn complementary(&self, decided: u64) -> Vec<(f64, f64)> {
        let mut told = 0;
        let point = |(bucket, held)| {
            told += u64::from(held);
            let later = decided.saturating_sub(told) as f64 / decided as f64;
            (largest_of(bucket).min(self.most.as_nanos().max(0) as u64) as f64 / 1e6, later)
        };
        self.held().into_iter().map(point).collect()
    }

    /// The buckets that hold something, in order, and how many each.
    fn held(&self) -> Vec<(u16, u32)> {
        let all = self.buckets.iter().copied().zip(self.counts.iter().copied());
        let mut held: Vec<_> = all.filter(|&(bucket, _)| bucket != NO_BUCKET).collect();
        held.sort_unstable();
        held
    }
}

/// The same delays, whatever their order was.
impl PartialEq for Sketch {
    fn eq(&self, other: &Self) -> bool {
        let told = |sketch: &Self| (sketch.count, sketch.sum_ns, sketch.least, sketch.most);
        told(self) == told(other) && self.held() == other.held()
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, counts): (Vec<_>, Vec<_>) = self.held().into_iter().unzip();
        f.debug_struct("Sketch")
            .field("buckets", &buckets)
            .field("counts", &counts)
            .field("count", &self.count)
            .field("sum_ns", &self.sum_ns)
            .field("least", &self.least)
            .field("most", &self.most)
            .finish()
    }
}

/// The bucket of a value; 64 bits have fewer than 2^16.
const fn bucket_of(ns: u64) -> u16 {
    let units = ns >> LEAST_BITS;
    // How often the width has doubled: values below two halves have the narrowest buckets.
    let doubled = (units >> HALF_BITS | 1).ilog2();
    ((doubled as u64) << HALF_BITS).saturating_add(units >> doubled) as u16
}

/// The largest value of a bucket.
const fn largest_of(bucket: u16) -> u64 {
    let bucket = bucket as u64;
    let doubled = (bucket >> HALF_BITS).saturating_sub(1);
    let units = bucket - (doubled << HALF_BITS);
    ((units + 1) << (LEAST_BITS as u64 + doubled)).wrapping_sub(1)
}

impl Default for Sketch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use talkpath_units::Seed;

    use super::*;
    use crate::metrics::delay;

    /// Against the exact statistics of the same 50,000 delays, from microseconds to minutes.
    #[test]
    fn percentiles_are_within_the_stated_error_and_the_rest_is_exact() {
        let mut stream = Seed::new(5).stream("delays");
        let mut delays: Vec<_> = (0..50_000)
            .map(|_| SignedDuration::from_nanos(libm::pow(10.0, 3.5 + 7.5 * stream.unit()) as i64))
            .collect();
        let mut sketch = Sketch::new();
        for &delay in &delays {
            sketch.record(delay);
        }
        delays.sort_unstable();
        let (exact, told) = (delay::statistics(&delays).unwrap(), sketch.delay_ms().unwrap());
        assert_eq!((told.min, told.mean, told.max), (exact.min, exact.mean, exact.max));
        for (exact, told) in [
            (exact.p50, told.p50),
            (exact.p90, told.p90),
            (exact.p95, told.p95),
            (exact.p99, told.p99),
            (exact.p999, told.p999),
        ] {
            assert!(told >= exact && told <= exact * (1.0 + RELATIVE_ERROR), "{told} for {exact}");
        }
    }

    /// Tene's own buckets, as the `hdrhistogram` crate has them.
    #[test]
    fn each_value_lies_where_the_reference_has_it() {
        let reference =
            hdrhistogram::Histogram::<u32>::new_with_bounds(1 << LEAST_BITS, u64::MAX / 2, 3).unwrap();
        let mut stream = Seed::new(6).stream("values");
        let drawn = (0..20_000).map(|_| stream.bits() >> (stream.bits() % 60));
        let edges = (0..63).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let mut before = (0, 0);
        let mut values: Vec<u64> = drawn.chain(edges).map(|ns| ns >> 1).collect();
        values.sort_unstable();
        for ns in values {
            let bucket = bucket_of(ns);
            assert_eq!(largest_of(bucket), reference.highest_equivalent(ns), "{ns}");
            assert!(bucket >= before.0 && (bucket == before.0) == reference.equivalent(ns, before.1), "{ns}");
            before = (bucket, ns);
        }
        assert_eq!(largest_of(bucket_of(u64::MAX)), u64::MAX);
    }

    /// Beside a map, in an order that makes tables grow with buckets out of their places.
    #[test]
    fn the_table_holds_what_a_sorted_map_would_whatever_the_order() {
        let mut stream = Seed::new(7).stream("buckets");
        let delays: Vec<_> = (0..3_000)
            .map(|_| SignedDuration::from_nanos((stream.bits() >> (24 + stream.bits() % 40)) as i64))
            .collect();
        let (mut sketch, mut back, mut map) = (Sketch::new(), Sketch::new(), BTreeMap::new());
        for (&delay, &later) in delays.iter().zip(delays.iter().rev()) {
            sketch.record(delay);
            back.record(later);
            *map.entry(bucket_of(delay.as_nanos() as u64)).or_insert(0) += 1;
            assert!(4 * sketch.held <= 3 * sketch.buckets.len());
        }
        assert_eq!(sketch.held(), map.into_iter().collect::<Vec<_>>());
        assert!(sketch.held > 500, "{}", sketch.held);
        assert_eq!(sketch, back);
        assert_eq!(format!("{sketch:?}"), format!("{back:?}"));
        back.record(delays[0]);
        assert_ne!(sketch, back);
    }

    #[test]
    fn delays_far_beyond_the_first_reach_are_not_clipped() {
        let mut sketch = Sketch::new();
        for seconds in [1, 20, 3_000, 200_000] {
            sketch.record(SignedDuration::from_nanos(seconds * 1_000_000_000));
        }
        sketch.record(SignedDuration::from_nanos(i64::MAX));
        let told = sketch.delay_ms().unwrap();
        assert!(told.p50 >= 3e6 && told.p50 <= 3e6 * (1.0 + RELATIVE_ERROR), "{}", told.p50);
        assert_eq!(told.p99, told.max);
    }

    #[test]
    fn small_delays_are_within_half_a_microsecond() {
        let mut sketch = Sketch::new();
        for ns in 1..=2_001 {
            sketch.record(SignedDuration::from_nanos(ns * 100));
        }
        let p50 = sketch.delay_ms().unwrap().p50;
        assert!((0.1001..0.1001 + 512e-6).contains(&p50), "{p50}");
        let mut early = Sketch::new();
        for ns in [-3_000, -2_000, -1_000] {
            early.record(SignedDuration::from_nanos(ns));
        }
        // A clock that is ahead: all negative delays share a bucket, but no reported delay is above the
        // largest one.
        assert_eq!(early.delay_ms().unwrap().p50, -0.001);
    }

    #[test]
    fn the_complementary_distribution_ends_on_what_never_came() {
        let mut sketch = Sketch::new();
        for ms in [20, 10, 40] {
            sketch.record(SignedDuration::from_nanos(ms * 1_000_000));
        }
        let points = sketch.complementary(4);
        assert_eq!(points.iter().map(|point| point.1).collect::<Vec<_>>(), [0.75, 0.5, 0.25]);
        assert!((points[0].0 - 10.0).abs() <= 0.01 && points[2].0 == 40.0, "{points:?}");
        assert_eq!(Sketch::new().delay_ms(), None);
    }
}
