//! The confidence interval of a mean over repetitions, by resampling.
//!
//! The bootstrap (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, §13.3: percentile interval)
//! draws as many repetitions as there are, with replacement, and computes their mean. This is a *resample*.
//! The interval holds the middle of the means of 9999 resamples. With few repetitions this interval is too
//! narrow, so its ends are moved outwards as Hesterberg does (*What Teachers Should Know About the
//! Bootstrap*, The American Statistician 69, 2015, expanded percentile interval). For a normal sample the
//! interval is then as wide as Student's.
//!
//! Each end is the mean of measured repetitions, so it lies between the smallest and the largest of them.
//! With fewer than six repetitions there are too few different resamples. Student's interval is used instead,
//! and is cut at the smallest and the largest possible value.

use talkpath_units::{Seed, Stream};

use crate::metrics::confidence::{Confidence, student_t_quantile};

/// The number of resamples. We chose 9999, because the ranks of 2.5 % and 97.5 % are then whole numbers. The
/// intervals of two sets of resamples differ by less than a hundredth of their width.
const RESAMPLES: usize = 9_999;

/// The smallest number of repetitions that are resampled. With five repetitions all of them have the same
/// sign by chance in 1 of 16 cases, which is more than the 5 % of a 95 % interval. With six it is 1 of 32.
pub const MIN_RESAMPLED: usize = 6;

/// The mean of some repetitions, from which intervals of any level can be computed.
#[derive(Clone, Debug)]
pub struct Resampled {
    /// The number of repetitions.
    n: usize,
    basis: IntervalBasis,
}

/// How the ends of an interval are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// All repetitions are the same, so the interval has no width.
    Same,
    /// Student's t, cut at the possible values. This method is used for fewer than [`MIN_RESAMPLED`]
    /// repetitions.
    Student,
    /// The bootstrap.
    Bootstrap,
}

#[derive(Clone, Debug)]
enum IntervalBasis {
    /// The value of all repetitions.
    Constant(f64),
    /// The means of all resamples in ascending order.
    SortedMeans(Vec<f64>),
    /// Too few repetitions for resamples.
    Few {
        mean: f64,
        standard_error: f64,
        /// The smallest and the largest possible value.
        possible: (f64, f64),
    },
}

impl Resampled {
    /// Resamples `values`, one of each repetition. They must be finite. `possible` has the smallest and the
    /// largest possible value. Returns `None` if there are fewer than two repetitions.
    pub fn new(values: &[f64], possible: (f64, f64)) -> Option<Self> {
        let n = values.len();
        let first = *values.first().filter(|_| n >= 2)?;
        let basis = if values.iter().all(|value| value.to_bits() == first.to_bits()) {
            IntervalBasis::Constant(first)
        } else if n < MIN_RESAMPLED {
            let mean = values.iter().sum::<f64>() / n as f64;
            let standard_error = standard_deviation(values) / libm::sqrt(n as f64);
            IntervalBasis::Few { mean, standard_error, possible }
        } else {
            IntervalBasis::SortedMeans(resample(values))
        };
        Some(Self { n, basis })
    }

    /// Returns how [`Self::interval`] computes the ends of an interval.
    pub const fn method(&self) -> Method {
        match &self.basis {
            IntervalBasis::Constant(_) => Method::Same,
            IntervalBasis::Few { .. } => Method::Student,
            IntervalBasis::SortedMeans(_) => Method::Bootstrap,
        }
    }

    /// Returns the interval that holds the mean with the probability `level`, for example 0.95.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let n = self.n as f64;
        let t = || student_t_quantile(0.5 + level / 2.0, n - 1.0);
        match &self.basis {
            IntervalBasis::Constant(value) => (*value, *value),
            IntervalBasis::Few { mean, standard_error, possible: (smallest, largest) } => {
                let half_width = t() * standard_error;
                ((mean - half_width).max(*smallest), (mean + half_width).min(*largest))
            }
            IntervalBasis::SortedMeans(means) => {
                // Hesterberg 2015: the normal quantile is as far out as Student's t. It is widened, because
                // the variance of the resamples has the divisor n where the variance of the sample has n - 1.
                let tail = normal_below(-t() * libm::sqrt(n / (n - 1.0)));
                // Efron and Tibshirani 1993 §12.5: the k-th of B means with k = (B + 1) tail, rounded down.
                let k = ((means.len() + 1) as f64 * tail) as usize;
                let k = k.clamp(1, means.len() / 2);
                (means[k - 1], means[means.len() - k])
            }
        }
    }
}

/// Returns the means of [`RESAMPLES`] resamples in ascending order. The random numbers have a seed of their
/// own, so the same values give the same interval.
fn resample(values: &[f64]) -> Vec<f64> {
    let mut stream = Seed::new(0).stream("ranking/resample");
    let n = values.len();
    let mut means = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let sum: f64 = (0..n).map(|_| values[random_index(&mut stream, n)]).sum();
        means.push(sum / n as f64);
    }
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// Returns a random index below `n`: the upper half of the 128-bit product of `n` and 64 random bits.
fn random_index(stream: &mut Stream, n: usize) -> usize {
    ((u128::from(stream.bits()) * n as u128) >> 64) as usize
}

/// Returns the sample standard deviation, with the divisor n - 1.
pub(super) fn standard_deviation(values: &[f64]) -> f64 {
    let Some(spread) = Confidence::default().spread(values) else { return 0.0 };
    let squares: f64 = values.iter().map(|value| (value - spread.mean) * (value - spread.mean)).sum();
    libm::sqrt(squares / (values.len().max(2) - 1) as f64)
}

/// Returns P(Z <= z) of a standard normal Z (DLMF 7.18).
fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    fn interval(values: &[f64]) -> (f64, f64) {
        Resampled::new(values, ANY).unwrap().interval(0.95)
    }

    #[test]
    fn about_95_of_a_hundred_intervals_hold_the_mean() {
        let mut stream = Seed::new(3).stream("coverage");
        for (n, draw) in [
            (6, (|s| s.normal()) as fn(&mut Stream) -> f64),
            (20, |s| s.normal()),
            (20, |s| s.unit() - 0.5),
            // Skewed, mean 0.
            (40, |s| s.exponential() - 1.0),
        ] {
            let holds = (0..120).filter(|_| {
                let values: Vec<f64> = (0..n).map(|_| draw(&mut stream)).collect();
                let (low, high) = interval(&values);
                low <= 0.0 && 0.0 <= high
            });
            // 114 expected; the standard deviation is 2.4.
            let held = holds.count();
            assert!((106..=120).contains(&held), "n = {n}: {held} of 120");
        }
    }

    #[test]
    fn the_interval_of_a_normal_sample_is_as_wide_as_students() {
        let mut stream = Seed::new(1).stream("normal");
        for n in [6, 10, 20, 100] {
            let values: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
            let (low, high) = interval(&values);
            let (t_low, t_high) = Confidence::default().spread(&values).unwrap().ci95.unwrap();
            let ratio = (high - low) / (t_high - t_low);
            assert!((0.85..1.15).contains(&ratio), "n = {n}: {ratio}");
        }
    }

    #[test]
    fn the_ends_lie_between_the_smallest_and_the_largest_measured_value() {
        let delays = [0.0, 0.0, 0.1, 0.0, 900.0, 0.0, 0.2];
        let (low, high) = interval(&delays);
        assert!((0.0..=0.1).contains(&low) && (100.0..=900.0).contains(&high), "{low} to {high}");
        // Student's would begin below zero.
        assert!(Confidence::default().spread(&delays).unwrap().ci95.unwrap().0 < 0.0);
        let few = Resampled::new(&[0.0, 0.0, 900.0], (0.0, f64::INFINITY)).unwrap();
        assert_eq!(few.interval(0.95).0, 0.0);
    }

    #[test]
    fn a_higher_level_is_wider_and_the_same_values_give_the_same_interval() {
        let values: Vec<f64> = (0..20).map(|at| f64::from(at % 7)).collect();
        let resampled = Resampled::new(&values, ANY).unwrap();
        let (low, high) = resampled.interval(0.95);
        let (lower, higher) = resampled.interval(0.99);
        assert!(lower < low && high < higher);
        assert_eq!((low, high), interval(&values));
    }

    #[test]
    fn equal_repetitions_have_an_interval_without_width_and_one_repetition_has_none() {
        assert_eq!(interval(&[0.3; 20]), (0.3, 0.3));
        assert!(Resampled::new(&[0.3], ANY).is_none() && Resampled::new(&[], ANY).is_none());
    }
}
