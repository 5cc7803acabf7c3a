//! Spans of time without keeping each of them: the buckets of a histogram of high dynamic range (Tene's
//! HdrHistogram), which grow with the value, so that a percentile is known to a relative error whatever the
//! values are.
//!
//! ```text
//!   0            2,048 x 512 ns        twice that       twice that again
//!   ├─ 2,048 buckets ─┼─ 1,024 buckets ─┼─ 1,024 buckets ─┼─ ...          each twice as wide as those before
//! ```
//!
//! Buckets are kept in pages of 32 neighbours, and only the pages that hold something: the delays of a flow lie
//! in a few dozen of the three hundred that a table from nothing to ten seconds would have, and there are more
//! tables than flows. A directory, as long as the highest page needs it, says where each page is. So a bucket
//! is found by two look-ups, however many there are.
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
    /// By the number of a page of buckets: where it is in `pages`, or [`NO_PAGE`].
    directory: Vec<u16>,
    /// How many each bucket of a page holds. Values are nanoseconds; a negative one counts as none at all.
    pages: Vec<[u32; PAGE]>,
    count: u64,
    sum_ns: i128,
    least: SignedDuration,
    most: SignedDuration,
}

/// Buckets of a page. Chosen: 128 B, two cache lines on most machines.
const PAGE: usize = 32;
/// No page is there: 2^16 buckets have fewer pages.
const NO_PAGE: u16 = u16::MAX;

impl Histogram {
    /// The largest share by which a quantile may be off, if that is more than half a microsecond.
    pub const RELATIVE_ERROR: f64 = 0.001;

    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            directory: Vec::new(),
            pages: Vec::new(),
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
        let (number, place) = (usize::from(bucket) / PAGE, usize::from(bucket) % PAGE);
        let page = self.directory.get(number).and_then(|&page| self.pages.get_mut(usize::from(page)));
        match page {
            Some(page) => page[place] = page[place].saturating_add(more),
            None => self.open(number)[place] = more,
        }
    }

    /// Opens the page of this number, which is not there yet.
    #[cold]
    fn open(&mut self, number: usize) -> &mut [u32; PAGE] {
        if self.directory.len() <= number {
            self.directory.resize(number + 1, NO_PAGE);
        }
        let page = self.pages.len();
        self.directory[number] = page as u16;
        self.pages.push([0; PAGE]);
        &mut self.pages[page]
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
        let (least, most) = self.range()?;
        let mut buckets = self.held();
        let (mut passed, mut largest) = (0, 0);
        Some(shares.map(|share| {
            let rank = (libm::ceil(share * self.count as f64) as u64).max(1);
            while passed < rank
                && let Some((bucket, held)) = buckets.next()
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
        self.held().map(move |(bucket, held)| {
            let largest = i64::try_from(largest_of(bucket)).unwrap_or(i64::MAX);
            (SignedDuration::from_nanos(largest).min(most.max(SignedDuration::ZERO)), held.into())
        })
    }

    /// The buckets that hold something, in order, and how many each.
    fn held(&self) -> impl Iterator<Item = (u16, u32)> {
        let pages = (0..).zip(&self.directory);
        let pages = pages.filter_map(|(number, &page)| Some((number, self.pages.get(usize::from(page))?)));
        let all = pages.flat_map(|(number, page)| (PAGE as u16 * number..).zip(page.iter().copied()));
        all.filter(|&(_, held)| held > 0)
    }
}

/// The same spans, whatever their order was.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let exact = |it: &Self| (it.count, it.sum_ns, it.least, it.most);
        exact(self) == exact(other) && self.held().eq(other.held())
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, counts): (Vec<_>, Vec<_>) = self.held().unzip();
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

    /// Beside a map, in two orders.
    #[test]
    fn it_holds_what_a_sorted_map_would_whatever_the_order() {
        let mut stream = Seed::new(7).stream("buckets");
        let delays: Vec<_> = (0..3_000)
            .map(|_| SignedDuration::from_nanos((stream.bits() >> (24 + stream.bits() % 40)) as i64))
            .collect();
        let (mut histogram, mut back, mut map) = (Histogram::new(), Histogram::new(), BTreeMap::new());
        for (&delay, &later) in delays.iter().zip(delays.iter().rev()) {
            histogram.record(delay);
            back.record(later);
            *map.entry(bucket_of(delay.as_nanos() as u64)).or_insert(0) += 1;
        }
        let held: Vec<_> = histogram.held().collect();
        assert_eq!(held, map.into_iter().collect::<Vec<_>>());
        assert!(held.len() > 500, "{}", held.len());
        assert_eq!(histogram, back);
        assert_eq!(format!("{histogram:?}"), format!("{back:?}"));
        back.record(delays[0]);
        assert_ne!(histogram, back);
    }

    #[test]
    fn the_last_bucket_of_all_has_a_page() {
        let mut histogram = Histogram::new();
        histogram.record_unsigned(Duration::MAX);
        histogram.record_unsigned(Duration::ZERO);
        assert_eq!(histogram.held().map(|(_, held)| held).collect::<Vec<_>>(), [1, 1]);
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
        assert_eq!(histogram.buckets().map(|bucket| bucket.1).sum::<u64>(), histogram.count());
    }
}
