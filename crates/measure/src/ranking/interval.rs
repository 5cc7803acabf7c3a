//! The interval of a mean over repetitions, by resampling.
//!
//! The bootstrap (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, §13.3: percentile
//! interval) draws as many repetitions as there are, with replacement, and takes their mean; the interval
//! holds the middle of 9999 such means. Of few repetitions it is too narrow, so its ends are moved out as
//! Hesterberg does it (*What Teachers Should Know About the Bootstrap*, The American Statistician 69, 2015,
//! expanded percentile interval): at a normal sample it is then as wide as Student's.
//!
//! An end is the mean of repetitions that were measured, so it lies between their least and their largest
//! value. With fewer than six repetitions there are too few different resamples; Student's interval is taken,
//! cut at what is possible.

use talkpath_units::Seed;

use crate::metrics::confidence::{Confidence, student_t_quantile};

/// Means of resamples, from which intervals of any level are read.
#[derive(Clone, Debug)]
pub struct Resampled {
    /// How many repetitions there are.
    n: usize,
    means: Means,
}

/// How an interval's ends are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Not at all: all repetitions are the same.
    Same,
    /// Student's t, cut at what is possible; of fewer than [`MIN_RESAMPLED`] repetitions.
    Student,
    /// By resampling.
    Bootstrap,
}

#[derive(Clone, Debug)]
enum Means {
    /// All repetitions are the same.
    Constant(f64),
    /// In ascending order.
    Sorted(Vec<f64>),
    /// Mean and standard error of few repetitions, and what is possible.
    Few { mean: f64, error: f64, possible: (f64, f64) },
}

impl Resampled {
    /// Resamples `values`, which must be finite; an interval of few values is cut at what is `possible`.
    /// `None` for fewer than two.
    pub fn new(values: &[f64], possible: (f64, f64)) -> Option<Self> {
        let n = values.len();
        let first = *values.first().filter(|_| n >= 2)?;
        let means = if values.iter().all(|value| value.to_bits() == first.to_bits()) {
            Means::Constant(first)
        } else if n < MIN_RESAMPLED {
            let mean = values.iter().sum::<f64>() / n as f64;
            Means::Few { mean, error: standard_deviation(values) / libm::sqrt(n as f64), possible }
        } else {
            Means::Sorted(resample(values))
        };
        Some(Self { n, means })
    }

    /// How [`Self::interval`] finds its ends.
    pub const fn method(&self) -> Method {
        match &self.means {
            Means::Constant(_) => Method::Same,
            Means::Few { .. } => Method::Student,
            Means::Sorted(_) => Method::Bootstrap,
        }
    }

    /// The interval that holds the mean with this probability: 0.95, 0.99.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let n = self.n as f64;
        let t = || student_t_quantile(0.5 + level / 2.0, n - 1.0);
        match &self.means {
            Means::Constant(value) => (*value, *value),
            Means::Few { mean, error, possible: (low, high) } => {
                let half = t() * error;
                ((mean - half).max(*low), (mean + half).min(*high))
            }
            Means::Sorted(means) => {
                // Hesterberg 2015: a normal quantile as far out as Student's t, widened by the bias of the
                // resamples' variance, which has n where the sample's has n - 1.
                let tail = normal_below(-t() * libm::sqrt(n / (n - 1.0)));
                // Efron and Tibshirani 1993 §12.5: the k-th of B means with k = (B + 1) tail, rounded down.
                let k = ((means.len() + 1) as f64 * tail) as usize;
                let k = k.clamp(1, means.len() / 2);
                (means[k - 1], means[means.len() - k])
            }
        }
    }
}

/// Means of [`RESAMPLES`] resamples in ascending order. The stream has a seed of its own: the same values
/// give the same interval.
fn resample(values: &[f64]) -> Vec<f64> {
    let mut stream = Seed::new(0).stream("ranking/resample");
    let n = values.len();
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let draw = |bits: u64| values[((u128::from(bits) * n as u128) >> 64) as usize];
            (0..n).map(|_| draw(stream.bits())).sum::<f64>() / n as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// Of the sample, with n - 1.
pub(super) fn standard_deviation(values: &[f64]) -> f64 {
    let Some(spread) = Confidence::default().spread(values) else { return 0.0 };
    let squares: f64 = values.iter().map(|value| (value - spread.mean) * (value - spread.mean)).sum();
    libm::sqrt(squares / (values.len().max(2) - 1) as f64)
}

/// P(Z <= z) of a standard normal Z (DLMF 7.18).
fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
}

/// Chosen: with 9999 the ranks of 2.5 and 97.5 % are whole numbers, and two sets of resamples differ by less
/// than a hundredth of the interval's width.
const RESAMPLES: usize = 9_999;
/// Of five repetitions all have one sign by chance in 1 of 16 cases, which is more than the 5 % of a 95 %
/// interval; of six in 1 of 32.
pub const MIN_RESAMPLED: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    fn interval(values: &[f64]) -> (f64, f64) {
        Resampled::new(values, ANY).unwrap().interval(0.95)
    }

    #[test]
    fn of_a_hundred_samples_about_95_intervals_hold_the_mean() {
        let mut stream = Seed::new(3).stream("coverage");
        for (n, draw) in [
            (6, (|s| s.normal()) as fn(&mut talkpath_units::Stream) -> f64),
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
    fn it_is_as_wide_as_students_at_a_normal_sample() {
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
    fn its_ends_lie_between_the_least_and_the_most_that_was_measured() {
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
    fn equal_repetitions_have_no_width_and_one_has_no_interval() {
        assert_eq!(interval(&[0.3; 20]), (0.3, 0.3));
        assert!(Resampled::new(&[0.3], ANY).is_none() && Resampled::new(&[], ANY).is_none());
    }
}
