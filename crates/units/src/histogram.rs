//! Spans of time without keeping each one: the buckets of a histogram of high dynamic range (Tene's
//! HdrHistogram), which grow with the value, so that a percentile is known to a relative error whatever the
//! values are.
//!
//! ```text
//!   0            2,048 x 512 ns        twice that       twice that again
//!   ├─ 2,048 buckets ─┼─ 1,024 buckets ─┼─ 1,024 buckets ─┼─ ...          each twice as wide as those before
//! ```
//!
//! Only the buckets that hold something are kept, six bytes each: the delays of a flow lie in a few hundred
//! of the ten thousand that a table from nothing to the longest would have, and there are more tables than
//! flows. They are in a hash table with linear probing, at least a quarter of which is free, and are put in
//! order when somebody reads them.
//!
//! A bucket's place is its number times the golden ratio (Knuth, "The Art of Computer Programming", volume 3,
//! section 6.4: multiplicative hashing), which spreads neighbours evenly. The lower bits alone will not do.
//! A queue fills neighbours in each of several octaves. Those have the same lower bits, and an entry walked
//! over a dozen others.
//!
//! Count, smallest, largest and mean are exact; quantiles are nearest rank among the buckets, reported as the
//! largest value of the bucket, at most [`Histogram::RELATIVE_ERROR`] or half a microsecond above the exact
//! one, whichever is more.

use core::fmt;

use crate::{Duration, SignedDuration};

/// The narrowest buckets' width in nanoseconds, as a power of two: smaller differences do not matter to
/// anybody. Chosen.
const LEAST_BITS: u32 = 9;
/// Half of the buckets of that width, as a power of two: from there on a bucket is a 1,024th of its values or
/// less, which is [`Histogram::RELATIVE_ERROR`].
const HALF_BITS: u32 = 10;

/// A multitude of spans of time.
#[derive(Clone)]
pub struct Histogram {
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
/// 2^16 over the golden ratio, made odd.
const GOLDEN_RATIO: u16 = 40_503;
/// The first size of a table. Chosen.
const FIRST_SIZE: usize = 8;

impl Histogram {
    /// The largest share by which a quantile may be off, if that is more than half a microsecond.
    pub const RELATIVE_ERROR: f64 = 0.001;

    /// Nothing yet.
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

    /// One more.
    #[inline]
    pub fn record(&mut self, span: SignedDuration) {
        self.hold(bucket_of(u64::try_from(span.as_nanos()).unwrap_or(0)), 1);
        self.count += 1;
        self.sum_ns += i128::from(span.as_nanos());
        self.least = self.least.min(span);
        self.most = self.most.max(span);
    }

    /// As [`Histogram::record`]; a span longer than 292 years counts as that long.
    #[inline]
    pub fn record_unsigned(&mut self, span: Duration) {
        self.record(SignedDuration::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)));
    }

    /// Adds what another one recorded.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, held) in other.held() {
            self.hold(bucket, held);
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// `more` in a bucket.
    #[inline]
    fn hold(&mut self, bucket: u16, more: u32) {
        let last = self.buckets.len().wrapping_sub(1);
        let hash = bucket.wrapping_mul(GOLDEN_RATIO);
        let mut place = (usize::from(hash) * self.buckets.len()) >> u16::BITS;
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

    /// Holds the first `more` of a bucket, at `place` if the table has room for another one.
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

    /// How many were recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest and the largest; `None` of nothing.
    pub fn range(&self) -> Option<(SignedDuration, SignedDuration)> {
        (self.count > 0).then_some((self.least, self.most))
    }

    /// In nanoseconds; `None` of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// For each of these `shares` of all, in ascending order and above 0 to 1, the span that they do not
    /// exceed; `None` of nothing.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<[SignedDuration; N]> {
        self.at_ranks(shares.map(|share| libm::ceil(share * self.count as f64) as u64))
    }

    /// The spans at these `ranks`, in ascending order: 1 is the smallest span, and the count is the largest.
    /// `None` of nothing.
    pub fn at_ranks<const N: usize>(&self, ranks: [u64; N]) -> Option<[SignedDuration; N]> {
        let (least, most) = self.range()?;
        let held = self.held();
        let mut buckets = held.iter();
        let (mut passed, mut largest) = (0, 0);
        Some(ranks.map(|rank| {
            while passed < rank.max(1)
                && let Some(&(bucket, held)) = buckets.next()
            {
                passed += u64::from(held);
                largest = largest_of(bucket);
            }
            SignedDuration::from_nanos(i64::try_from(largest).unwrap_or(i64::MAX)).clamp(least, most)
        }))
    }

    /// For each bucket that holds something, in order: its largest value, and how many it holds.
    pub fn buckets(&self) -> impl Iterator<Item = (SignedDuration, u64)> {
        let most = self.most;
        self.held().into_iter().map(move |(bucket, held)| {
            let largest = i64::try_from(largest_of(bucket)).unwrap_or(i64::MAX);
            (SignedDuration::from_nanos(largest).min(most.max(SignedDuration::ZERO)), held.into())
        })
    }

    /// The buckets that hold something, in order, and how many each.
    fn held(&self) -> Vec<(u16, u32)> {
        let all = self.buckets.iter().copied().zip(self.counts.iter().copied());
        let mut held: Vec<_> = all.filter(|&(bucket, _)| bucket != NO_BUCKET).collect();
        held.sort_unstable();
        held
    }
}

/// The same spans, whatever their order was.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let exact = |it: &Self| (it.count, it.sum_ns, it.least, it.most);
        exact(self) == exact(other) && self.held() == other.held()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, counts): (Vec<_>, Vec<_>) = self.held().into_iter().unzip();
        f.debug_struct("Histogram")
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

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Seed;

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
        let (mut histogram, mut back, mut map) = (Histogram::new(), Histogram::new(), BTreeMap::new());
        for (&delay, &later) in delays.iter().zip(delays.iter().rev()) {
            histogram.record(delay);
            back.record(later);
            *map.entry(bucket_of(delay.as_nanos() as u64)).or_insert(0) += 1;
            assert!(4 * histogram.held <= 3 * histogram.buckets.len());
        }
        assert_eq!(histogram.held(), map.into_iter().collect::<Vec<_>>());
        assert!(histogram.held > 500, "{}", histogram.held);
        assert_eq!(histogram, back);
        assert_eq!(format!("{histogram:?}"), format!("{back:?}"));
        back.record(delays[0]);
        assert_ne!(histogram, back);
    }

    #[test]
    fn merged_histograms_are_that_of_all() {
        let (mut all, mut early, mut late) = (Histogram::new(), Histogram::new(), Histogram::new());
        for ms in 0..1_000 {
            let span = SignedDuration::from_nanos((ms - 3) * 1_000_000);
            all.record(span);
            if ms % 3 == 0 { early.record(span) } else { late.record(span) }
        }
        early.merge(&late);
        early.merge(&Histogram::new());
        assert_eq!(early, all);
    }

    #[test]
    fn quantiles_are_nearest_rank_and_within_what_was_recorded() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantiles([0.5]), None);
        for us in 1..=100 {
            histogram.record(SignedDuration::from_nanos(us * 1_000));
        }
        histogram.record_unsigned(Duration::from_millis(90));
        let [p1, p50, p99, most] =
            histogram.quantiles([0.001, 0.5, 0.99, 1.0]).unwrap().map(SignedDuration::as_nanos);
        for (found, exact) in [(p1, 1_000), (p50, 51_000), (p99, 100_000)] {
            assert!((exact..exact + 512).contains(&found), "{found} for {exact}");
        }
        assert_eq!(most, 90_000_000);
        let [first, seventh] = histogram.at_ranks([0, 7]).unwrap().map(SignedDuration::as_nanos);
        for (found, exact) in [(first, 1_000), (seventh, 7_000)] {
            assert!((exact..exact + 512).contains(&found), "{found} for {exact}");
        }
        assert_eq!(histogram.buckets().map(|bucket| bucket.1).sum::<u64>(), histogram.count());
    }
}
