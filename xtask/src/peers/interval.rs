//! How far a median over seeds can be trusted: the interval of the bootstrap over the seeds (Efron and
//! Tibshirani, *An Introduction to the Bootstrap*, 1993, §13.3: percentile interval).

use super::spread;

/// The resamples of an interval. Chosen: its ends then lie within a percent or two of those of another set.
const RESAMPLES: usize = 2000;

/// The range in which 95 % of the resampled medians lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Interval {
    /// The interval of the median of `values`. `None` if there are no values.
    pub(super) fn of_median(values: &[f64]) -> Option<Self> {
        Self::of(&medians(values, &mut Draws(1))?)
    }

    /// The interval of the median of `values` divided by the median of `others`. `None` if either is empty.
    pub(super) fn of_ratio(values: &[f64], others: &[f64]) -> Option<Self> {
        let mut draws = Draws(1);
        let (values, others) = (medians(values, &mut draws)?, medians(others, &mut draws)?);
        let ratios: Vec<_> = values.iter().zip(&others).map(|(value, other)| value / other).collect();
        Self::of(&ratios)
    }

    /// The larger of the distances of the interval's ends from `middle`, as a share of `middle`.
    pub(super) fn reach(self, middle: f64) -> f64 {
        (self.high - middle).max(middle - self.low) / middle
    }

    fn of(resampled: &[f64]) -> Option<Self> {
        let mut sorted = resampled.to_vec();
        sorted.sort_by(f64::total_cmp);
        let outside = sorted.len() / 40;
        Some(Self { low: *sorted.get(outside)?, high: *sorted.get(sorted.len() - 1 - outside)? })
    }
}

/// The medians of [`RESAMPLES`] resamples, each of as many values as there are.
fn medians(values: &[f64], draws: &mut Draws) -> Option<Vec<f64>> {
    let resample = |draws: &mut Draws| {
        let drawn: Vec<_> = values.iter().map(|_| values[draws.below(values.len())]).collect();
        spread(&drawn).map(|(_, median, _)| median)
    };
    (0..RESAMPLES).map(|_| resample(draws)).collect()
}

/// SplitMix64 (G. Steele and others, "Fast splittable pseudorandom number generators", OOPSLA 2014): the same
/// resamples each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The remainder favours small numbers by a few draws in 2^64.
        (mixed % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_seven_values_the_interval_of_the_median_lacks_the_smallest_and_the_largest() {
        // The median of a resample is the smallest value, if it is drawn four times or more of seven: 1.0 %
        // (binomial, 1/7). It is one of the two smallest in 10.8 % (2/7).
        let values: Vec<f64> = (1..=7).map(f64::from).collect();
        assert_eq!(Interval::of_median(&values), Some(Interval { low: 2.0, high: 6.0 }));
        // Of five values the smallest is the median in 5.8 %.
        assert_eq!(Interval::of_median(&values[..5]), Some(Interval { low: 1.0, high: 5.0 }));
    }

    #[test]
    fn a_ratio_of_values_without_spread_has_no_width_and_nothing_has_no_interval() {
        let interval = Interval::of_ratio(&[3.0; 4], &[2.0; 6]).unwrap();
        assert_eq!((interval.low, interval.high), (1.5, 1.5));
        assert!((Interval { low: 8.0, high: 13.0 }.reach(10.0) - 0.3).abs() < 1e-12);
        assert!(Interval::of_median(&[]).is_none());
    }
}
