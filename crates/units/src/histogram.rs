//! A histogram of time spans, for percentiles of delays without a list of all delays.
//!
//! The buckets are those of a histogram of high dynamic range (Gil Tene's HdrHistogram): a bucket is wider,
//! the larger its values are. The relative error of a percentile is therefore the same for small and for
//! large values.
//!
//! ```text
//!   0            2,048 x 512 ns        twice that       twice that again
//!   ├─ 2,048 buckets ─┼─ 1,024 buckets ─┼─ 1,024 buckets ─┼─ ...    each twice as wide as those to the left
//! ```
//!
//! - An *occupied* bucket has a count above zero. Only occupied buckets are in memory, with six bytes each,
//!   because the delays of a flow lie in a few hundred of the ten thousand buckets, and a run has more
//!   histograms than flows. The `hdrhistogram` crate, which allocates all buckets, is the reference of a
//!   test.
//! - The occupied buckets are in a hash table with linear probing. At least a quarter of its slots is free.
//!   Readers get the buckets in ascending order, because [`Histogram::quantiles`] and its like sort them.
//! - The slot of a bucket follows from its number times the golden ratio (Knuth, "The Art of Computer
//!   Programming", volume 3, section 6.4: multiplicative hashing), which spreads neighbouring buckets evenly.
//!   The lower bits of the number alone are a bad hash: a queue fills neighbouring buckets in several
//!   octaves, their lower bits are the same, and a search then passed a dozen other entries.
//!
//! Count, smallest span, largest span and mean are exact. A quantile is the largest value of the bucket that
//! has its rank (nearest rank). It is above the exact quantile by at most [`Histogram::RELATIVE_ERROR`] or by
//! half a microsecond, whichever is more. Begin to read with [`Histogram::record`].

use core::fmt;

use crate::{Duration, SignedDuration};

/// The width of the narrowest buckets is 2^9 ns. We chose it because differences below half a microsecond do
/// not matter to a call, a game or a stream.
const LEAST_BITS: u32 = 9;
/// There are 2 * 2^10 buckets of the narrowest width. A wider bucket is therefore at most a 1,024th of its
/// values wide, which gives [`Histogram::RELATIVE_ERROR`].
const HALF_BITS: u32 = 10;

/// Counts time spans by their length.
#[derive(Clone)]
pub struct Histogram {
    /// The slots of the hash table: the number of an occupied bucket, or [`NO_BUCKET`]. The number of slots
    /// is zero or a power of two.
    buckets: Box<[u16]>,
    /// The count of the bucket in each slot.
    counts: Box<[u32]>,
    occupied_buckets: usize,
    /// The number of spans. A negative span is in the first bucket.
    count: u64,
    sum_ns: i128,
    least: SignedDuration,
    most: SignedDuration,
}

/// The mark of a free slot. No bucket has this number.
const NO_BUCKET: u16 = u16::MAX;
/// 2^16 divided by the golden ratio, rounded to an odd number.
const GOLDEN_RATIO: u16 = 40_503;
/// The number of slots for the first bucket. We chose 8 because many histograms have few buckets.
const FIRST_SIZE: usize = 8;

impl Histogram {
    /// The largest relative error of a quantile whose error is more than half a microsecond.
    pub const RELATIVE_ERROR: f64 = 0.001;

    /// Makes an empty histogram.
    pub fn new() -> Self {
        Self {
            buckets: Box::default(),
            counts: Box::default(),
            occupied_buckets: 0,
            count: 0,
            sum_ns: 0,
            least: SignedDuration::from_nanos(i64::MAX),
            most: SignedDuration::from_nanos(i64::MIN),
        }
    }

    /// Records one span.
    #[inline]
    pub fn record(&mut self, span: SignedDuration) {
        self.add(bucket_of(u64::try_from(span.as_nanos()).unwrap_or(0)), 1);
        self.count += 1;
        self.sum_ns += i128::from(span.as_nanos());
        self.least = self.least.min(span);
        self.most = self.most.max(span);
    }

    /// Records one span. A span of more than 292 years is recorded as 292 years.
    #[inline]
    pub fn record_unsigned(&mut self, span: Duration) {
        self.record(SignedDuration::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)));
    }

    /// Adds the spans that `other` has recorded.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in other.occupied() {
            self.add(bucket, count);
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// Adds `count` spans to a bucket.
    #[inline]
    fn add(&mut self, bucket: u16, count: u32) {
        let last_slot = self.buckets.len().wrapping_sub(1);
        let hash = bucket.wrapping_mul(GOLDEN_RATIO);
        let mut slot = (usize::from(hash) * self.buckets.len()) >> u16::BITS;
        // The search ends, because a quarter of the slots is free.
        while let (Some(found), Some(bucket_count)) = (self.buckets.get(slot), self.counts.get_mut(slot)) {
            if *found == bucket {
                *bucket_count = bucket_count.saturating_add(count);
                return;
            }
            if *found == NO_BUCKET {
                break;
            }
            slot = (slot + 1) & last_slot;
        }
        self.occupy(bucket, count, slot);
    }

    /// Writes a new bucket into the free `slot`. If too few slots are free, the table grows first.
    #[inline(never)]
    fn occupy(&mut self, bucket: u16, count: u32, slot: usize) {
        if 4 * (self.occupied_buckets + 1) > 3 * self.buckets.len() {
            self.grow();
            return self.add(bucket, count);
        }
        self.buckets[slot] = bucket;
        self.counts[slot] = count;
        self.occupied_buckets += 1;
    }

    fn grow(&mut self) {
        let size = (2 * self.buckets.len()).max(FIRST_SIZE);
        let buckets = core::mem::replace(&mut self.buckets, vec![NO_BUCKET; size].into());
        let counts = core::mem::replace(&mut self.counts, vec![0; size].into());
        self.occupied_buckets = 0;
        for (&bucket, &count) in buckets.iter().zip(&counts).filter(|&(&bucket, _)| bucket != NO_BUCKET) {
            self.add(bucket, count);
        }
    }

    /// Returns the number of recorded spans.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest and the largest span, or `None` if the histogram is empty.
    pub fn range(&self) -> Option<(SignedDuration, SignedDuration)> {
        (self.count > 0).then_some((self.least, self.most))
    }

    /// Returns the mean in nanoseconds, or `None` if the histogram is empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// Returns for each share the span that this share of all spans does not exceed: for 0.5 it is the
    /// median. The shares are above 0 and at most 1, in ascending order. Returns `None` if the histogram is
    /// empty.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<[SignedDuration; N]> {
        self.at_ranks(shares.map(|share| libm::ceil(share * self.count as f64) as u64))
    }

    /// Returns the spans with these ranks. Rank 1 is the smallest span, and the rank of the largest span is
    /// the count. The ranks are in ascending order. Returns `None` if the histogram is empty.
    pub fn at_ranks<const N: usize>(&self, ranks: [u64; N]) -> Option<[SignedDuration; N]> {
        let (least, most) = self.range()?;
        let mut buckets = self.occupied().into_iter();
        let (mut spans_so_far, mut largest_ns) = (0, 0);
        Some(ranks.map(|rank| {
            while spans_so_far < rank.max(1)
                && let Some((bucket, count)) = buckets.next()
            {
                spans_so_far += u64::from(count);
                largest_ns = largest_of(bucket);
            }
            SignedDuration::from_nanos(i64::try_from(largest_ns).unwrap_or(i64::MAX)).clamp(least, most)
        }))
    }

    /// Iterates over the occupied buckets in ascending order: the largest value of each, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (SignedDuration, u64)> {
        let most = self.most;
        self.occupied().into_iter().map(move |(bucket, count)| {
            let largest = i64::try_from(largest_of(bucket)).unwrap_or(i64::MAX);
            (SignedDuration::from_nanos(largest).min(most.max(SignedDuration::ZERO)), count.into())
        })
    }

    /// Returns the occupied buckets in ascending order, each with its count.
    fn occupied(&self) -> Vec<(u16, u32)> {
        let slots = self.buckets.iter().copied().zip(self.counts.iter().copied());
        let mut occupied: Vec<_> = slots.filter(|&(bucket, _)| bucket != NO_BUCKET).collect();
        occupied.sort_unstable();
        occupied
    }
}

/// Histograms of the same spans are equal, in whatever order the spans were recorded.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let exact = |histogram: &Self| (histogram.count, histogram.sum_ns, histogram.least, histogram.most);
        exact(self) == exact(other) && self.occupied() == other.occupied()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, counts): (Vec<_>, Vec<_>) = self.occupied().into_iter().unzip();
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

/// Returns the number of the bucket of a value. It fits into 16 bits, because 64-bit values have fewer than
/// 2^16 buckets.
const fn bucket_of(ns: u64) -> u16 {
    let units = ns >> LEAST_BITS;
    // The width of the bucket is the least width, doubled this many times. Values below 2 * 2^HALF_BITS
    // units have the least width.
    let doubled = (units >> HALF_BITS | 1).ilog2();
    ((doubled as u64) << HALF_BITS).saturating_add(units >> doubled) as u16
}

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

    #[test]
    fn each_value_is_in_the_bucket_of_the_hdrhistogram_crate() {
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

    /// The values come in two orders. Both make the table grow while buckets are away from their first slot.
    #[test]
    fn the_hash_table_has_the_counts_of_a_sorted_map_in_any_order_of_values() {
        let mut stream = Seed::new(7).stream("buckets");
        let delays: Vec<_> = (0..3_000)
            .map(|_| SignedDuration::from_nanos((stream.bits() >> (24 + stream.bits() % 40)) as i64))
            .collect();
        let (mut histogram, mut back, mut map) = (Histogram::new(), Histogram::new(), BTreeMap::new());
        for (&delay, &later) in delays.iter().zip(delays.iter().rev()) {
            histogram.record(delay);
            back.record(later);
            *map.entry(bucket_of(delay.as_nanos() as u64)).or_insert(0) += 1;
            assert!(4 * histogram.occupied_buckets <= 3 * histogram.buckets.len());
        }
        assert_eq!(histogram.occupied(), map.into_iter().collect::<Vec<_>>());
        assert!(histogram.occupied_buckets > 500, "{}", histogram.occupied_buckets);
        assert_eq!(histogram, back);
        assert_eq!(format!("{histogram:?}"), format!("{back:?}"));
        back.record(delays[0]);
        assert_ne!(histogram, back);
    }

    #[test]
    fn a_merged_histogram_equals_the_histogram_of_all_spans() {
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
    fn quantiles_have_the_nearest_rank_and_lie_within_the_recorded_spans() {
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
