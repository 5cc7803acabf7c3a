//! Delays without keeping each of them: a histogram of high dynamic range (Tene's HdrHistogram; the `hdrhistogram` crate),
//! whose buckets grow with the value, so that a percentile is known to a relative error whatever the values are.
//!
//! Count, smallest, largest and mean are exact; percentiles are nearest rank among the buckets, told as the largest value
//! of the bucket, at most [`RELATIVE_ERROR`] or half a microsecond above the exact one, whichever is more.

use hdrhistogram::Histogram;
use talkpath_units::SignedDuration;

use crate::summary::{DelayMs, IpdvMs};

/// What summary.json says of percentiles that come from here.
pub const PERCENTILES: &str = "hdr histogram, off by at most 0.1 % or 0.5 us";

/// The largest share by which a percentile may be off, where that is more than a bucket of `LEAST`.
pub const RELATIVE_ERROR: f64 = 0.001;

/// Decimal digits that a bucket keeps: [`RELATIVE_ERROR`].
const DIGITS: u8 = 3;
/// Nanoseconds that may share a bucket however small they are: what nobody tells apart. Chosen; the nearest smaller power
/// of two that the histogram would take for it anyway.
const LEAST: u64 = 512;
/// The first histogram reaches so far, in nanoseconds; it grows as larger values come. Chosen.
const FIRST_REACH: u64 = 10_000_000;

/// A multitude of delays.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    /// Nanoseconds; a negative one counts as none at all.
    histogram: Histogram<u32>,
    count: u64,
    sum_ns: i128,
    least: SignedDuration,
    most: SignedDuration,
}

impl Sketch {
    /// No delays yet.
    pub fn new() -> Self {
        let mut histogram =
            Histogram::new_with_bounds(LEAST, FIRST_REACH, DIGITS).expect("the bounds are in order");
        histogram.auto(true);
        let (least, most) = (SignedDuration::from_nanos(i64::MAX), SignedDuration::from_nanos(i64::MIN));
        Self { histogram, count: 0, sum_ns: 0, least, most }
    }

    /// One more delay.
    pub fn record(&mut self, delay: SignedDuration) {
        let ns = u64::try_from(delay.as_nanos()).unwrap_or(0);
        // It grows for whatever an i64 holds (at most 46 times 1,024 buckets); should it ever refuse, the largest bucket counts it.
        if self.histogram.record(ns).is_err() {
            self.histogram.saturating_record(ns);
        }
        self.count += 1;
        self.sum_ns += i128::from(delay.as_nanos());
        self.least = self.least.min(delay);
        self.most = self.most.max(delay);
    }

    fn at_ms(&self, share: f64) -> f64 {
        let ns = i64::try_from(self.histogram.value_at_quantile(share)).unwrap_or(i64::MAX);
        SignedDuration::from_nanos(ns).clamp(self.least, self.most).as_millis_f64()
    }

    /// The statistics of what was recorded; `None` of nothing.
    pub fn delay_ms(&self) -> Option<DelayMs> {
        (self.count > 0).then(|| DelayMs {
            min: self.least.as_millis_f64(),
            mean: self.sum_ns as f64 / self.count as f64 / 1e6,
            p50: self.at_ms(0.5),
            p90: self.at_ms(0.9),
            p95: self.at_ms(0.95),
            p99: self.at_ms(0.99),
            p999: self.at_ms(0.999),
            max: self.most.as_millis_f64(),
        })
    }

    /// The same of delay variation.
    pub fn ipdv_ms(&self) -> Option<IpdvMs> {
        (self.count > 0).then(|| IpdvMs {
            p50: self.at_ms(0.5),
            p90: self.at_ms(0.9),
            p95: self.at_ms(0.95),
            p99: self.at_ms(0.99),
            max: self.most.as_millis_f64(),
        })
    }

    /// (delay in ms, share of the `decided` messages later than that or never), a point a bucket that holds something.
    pub fn complementary(&self, decided: u64) -> Vec<(f64, f64)> {
        let mut told = 0;
        let point = |step: hdrhistogram::iterators::IterationValue<u32>| {
            told += step.count_since_last_iteration();
            let later = decided.saturating_sub(told) as f64 / decided as f64;
            (step.value_iterated_to().min(self.most.as_nanos().max(0) as u64) as f64 / 1e6, later)
        };
        self.histogram.iter_recorded().map(point).collect()
    }
}

impl Default for Sketch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
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
        assert!(sketch.histogram.distinct_values() < 40_000, "{}", sketch.histogram.distinct_values());
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
        // A clock that is ahead: no bucket tells negative delays apart, but none is told beyond the largest.
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
