//! Statistics of delays that are kept in a [`Histogram`] and not one by one.

use talkpath_units::{Histogram, SignedDuration};

use crate::summary::{DelayMs, IpdvMs, StateAgeMs};

/// How summary.json describes percentiles that come from a histogram.
pub const PERCENTILES: &str = "hdr histogram, off by at most 0.1 % or 0.5 us";

/// Returns the statistics of delays. Returns `None` if the histogram is empty.
pub fn delay_ms(delays: &Histogram) -> Option<DelayMs> {
    let (min, max) = delays.range()?;
    let [p50, p90, p95, p99, p999] = percentiles(delays, [0.5, 0.9, 0.95, 0.99, 0.999])?;
    let (min, mean, max) = (min.as_millis_f64(), delays.mean_ns()? / 1e6, max.as_millis_f64());
    Some(DelayMs { min, mean, p50, p90, p95, p99, p999, max })
}

/// Returns the statistics of the age of the newest state. Returns `None` if the histogram is empty.
pub fn state_age_ms(ages: &Histogram) -> Option<StateAgeMs> {
    let [p50, p99] = percentiles(ages, [0.5, 0.99])?;
    Some(StateAgeMs { p50, p99 })
}

/// Returns the statistics of delay variation. Returns `None` if the histogram is empty.
pub fn ipdv_ms(variations: &Histogram) -> Option<IpdvMs> {
    let (_, max) = variations.range()?;
    let [p50, p90, p95, p99] = percentiles(variations, [0.5, 0.9, 0.95, 0.99])?;
    Some(IpdvMs { p50, p90, p95, p99, max: max.as_millis_f64() })
}

/// Returns the complementary distribution of `delays`: for each bucket that is not empty, the delay in ms and
/// the share of messages with a larger delay or none. `decided` is the number of messages that arrived or are
/// missing.
pub fn complementary(delays: &Histogram, decided: u64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut not_later = 0;
    for (delay, count) in delays.buckets() {
        not_later += count;
        points.push((delay.as_millis_f64(), decided.saturating_sub(not_later) as f64 / decided as f64));
    }
    points
}

fn percentiles<const N: usize>(delays: &Histogram, shares: [f64; N]) -> Option<[f64; N]> {
    Some(delays.quantiles(shares)?.map(SignedDuration::as_millis_f64))
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
        let mut histogram = Histogram::new();
        for &delay in &delays {
            histogram.record(delay);
        }
        delays.sort_unstable();
        let (exact, told) = (delay::statistics(&delays).unwrap(), delay_ms(&histogram).unwrap());
        assert_eq!((told.min, told.mean, told.max), (exact.min, exact.mean, exact.max));
        for (exact, told) in [
            (exact.p50, told.p50),
            (exact.p90, told.p90),
            (exact.p95, told.p95),
            (exact.p99, told.p99),
            (exact.p999, told.p999),
        ] {
            assert!(told >= exact && told <= exact * (1.0 + Histogram::RELATIVE_ERROR), "{told} for {exact}");
        }
    }

    #[test]
    fn delays_far_beyond_the_first_reach_are_not_clipped() {
        let mut histogram = Histogram::new();
        for seconds in [1, 20, 3_000, 200_000] {
            histogram.record(SignedDuration::from_nanos(seconds * 1_000_000_000));
        }
        histogram.record(SignedDuration::from_nanos(i64::MAX));
        let told = delay_ms(&histogram).unwrap();
        assert!(told.p50 >= 3e6 && told.p50 <= 3e6 * (1.0 + Histogram::RELATIVE_ERROR), "{}", told.p50);
        assert_eq!(told.p99, told.max);
    }

    #[test]
    fn small_delays_are_within_half_a_microsecond() {
        let mut histogram = Histogram::new();
        for ns in 1..=2_001 {
            histogram.record(SignedDuration::from_nanos(ns * 100));
        }
        let p50 = delay_ms(&histogram).unwrap().p50;
        assert!((0.1001..0.1001 + 512e-6).contains(&p50), "{p50}");
        let mut early = Histogram::new();
        for ns in [-3_000, -2_000, -1_000] {
            early.record(SignedDuration::from_nanos(ns));
        }
        // A clock that is ahead: all negative delays share a bucket, but no reported delay is above the
        // largest one.
        assert_eq!(delay_ms(&early).unwrap().p50, -0.001);
    }

    #[test]
    fn the_complementary_distribution_ends_on_what_never_came() {
        let mut histogram = Histogram::new();
        for ms in [20, 10, 40] {
            histogram.record(SignedDuration::from_nanos(ms * 1_000_000));
        }
        let points = complementary(&histogram, 4);
        assert_eq!(points.iter().map(|point| point.1).collect::<Vec<_>>(), [0.75, 0.5, 0.25]);
        assert!((points[0].0 - 10.0).abs() <= 0.01 && points[2].0 == 40.0, "{points:?}");
        assert_eq!(delay_ms(&Histogram::new()), None);
    }
}
