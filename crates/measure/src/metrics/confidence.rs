//! The spread of a metric over repetitions: the median, the mean, and the 95 % confidence interval of the
//! mean by Student's t.
//!
//! The interval is mean ± t(0.975, n - 1) × s / √n with the sample standard deviation s (NIST/SEMATECH
//! e-Handbook of Statistical Methods §1.3.5.2). The quantile t is found by bisection in the distribution
//! function, which is a regularised incomplete beta function (DLMF 8.17). Tests compare it with the printed
//! tables.

use crate::summary::Spread;

/// The number of terms of the continued fraction. DLMF 8.17.22 with x below its limit needs O(√max(a, b))
/// terms, so this is enough for 100,000 repetitions.
const FRACTION_TERMS: u32 = 600;

/// An upper bound of all quantiles. t(0.975, 1) is 12.7, and no quantile that is computed here comes near
/// the bound.
const LARGEST_T: f64 = 1e9;

/// The 97.5 % quantile of the normal distribution.
pub(crate) const NORMAL_95: f64 = 1.959_963_984_540_054;

/// How sure an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 95 %: the intervals that decide an outcome, and that tables show.
    Shown,
    /// 99 %: the intervals that end repetitions early. Whoever looks several times is wrong more often
    /// (`crate::ranking`, "When to stop").
    Early,
}

impl Level {
    /// Returns the quantile of the normal distribution, on both sides.
    pub const fn normal(self) -> f64 {
        match self {
            Self::Shown => NORMAL_95,
            Self::Early => 2.575_829_303_548_901,
        }
    }

    /// Returns the quantile of Student's distribution, on both sides.
    pub fn student(self, degrees_of_freedom: usize) -> f64 {
        student_t_quantile(1.0 - self.tail(), degrees_of_freedom as f64)
    }

    /// Returns the probability beyond each end.
    pub const fn tail(self) -> f64 {
        match self {
            Self::Shown => 0.025,
            Self::Early => 0.005,
        }
    }

    /// Returns the numerator of the rule of three: -ln 0.05 or -ln 0.01, rounded.
    pub(crate) const fn rule_of_three(self) -> f64 {
        match self {
            Self::Shown => 3.0,
            Self::Early => 4.6,
        }
    }
}

/// Computes the spreads of many metrics. Most metrics have the same number of repetitions, so the latest
/// quantile is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Confidence {
    latest: Option<Quantile>,
}

/// The quantile t(0.975) of Student's distribution.
#[derive(Clone, Copy, Debug)]
struct Quantile {
    degrees_of_freedom: usize,
    t: f64,
}

impl Confidence {
    /// Returns the spread of `values`, one of each repetition. The values must be finite. Returns `None` if
    /// there is none.
    pub fn spread(&mut self, values: &[f64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let upper_middle = *sorted.get(n / 2)?;
        let median = if n % 2 == 1 { upper_middle } else { (sorted[n / 2 - 1] + upper_middle) / 2.0 };
        // The sum is in ascending order, so that the order of the repetitions cannot change a bit. If all
        // values are the same, the interval has no width, and rounding must not give it one.
        let is_constant = sorted[0].to_bits() == sorted[n - 1].to_bits();
        let mean = if is_constant { median } else { sorted.iter().sum::<f64>() / n as f64 };
        Some(Spread { median, mean, ci95: self.interval(&sorted, mean), n: None })
    }

    fn interval(&mut self, values: &[f64], mean: f64) -> Option<(f64, f64)> {
        let degrees = values.len().checked_sub(1).filter(|&degrees| degrees > 0)?;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let standard_error = libm::sqrt(squares / degrees as f64 / (degrees as f64 + 1.0));
        let half_width = self.quantile(degrees) * standard_error;
        Some((mean - half_width, mean + half_width))
    }

    fn quantile(&mut self, degrees_of_freedom: usize) -> f64 {
        match self.latest {
            Some(latest) if latest.degrees_of_freedom == degrees_of_freedom => latest.t,
            _ => {
                let t = student_t_quantile(0.975, degrees_of_freedom as f64);
                self.latest = Some(Quantile { degrees_of_freedom, t });
                t
            }
        }
    }
}

/// Returns the value that a Student variable with `degrees` of freedom exceeds with probability 1 - `p`. `p`
/// must be at least 0.5 and below 1, and `degrees` at least 1.
pub fn student_t_quantile(p: f64, degrees: f64) -> f64 {
    let mut low = 0.0;
    let mut high = 2.0;
    while student_t_below(high, degrees) < p && high < LARGEST_T {
        low = high;
        high *= 2.0;
    }
    // A float has 53 bits, so after 64 halvings there is no float between the bounds.
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if student_t_below(middle, degrees) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Returns P(T <= t) for t >= 0, which is 1 - I_x(ν/2, 1/2) / 2 with x = ν / (ν + t²).
fn student_t_below(t: f64, degrees: f64) -> f64 {
    1.0 - 0.5 * incomplete_beta(degrees / (degrees + t * t), 0.5 * degrees, 0.5)
}

/// Returns the regularised incomplete beta function I_x(a, b). Its continued fraction (DLMF 8.17.22)
/// converges fast for x < (a + 1) / (a + b + 2). For a larger x the result is 1 - I_(1-x)(b, a) (DLMF
/// 8.17.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let factor = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x),
    );
    if x < (a + 1.0) / (a + b + 2.0) {
        factor / (a * beta_fraction(x, a, b))
    } else {
        1.0 - factor / (b * beta_fraction(1.0 - x, b, a))
    }
}

/// Returns the continued fraction 1 + d1 / (1 + d2 / (1 + ...)). The evaluation begins with the last term,
/// which no longer matters.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    (1..=FRACTION_TERMS).rev().fold(1.0, |tail, term| {
        let m = f64::from(term / 2);
        let coefficient = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        1.0 + coefficient / tail
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> Option<Spread> {
        Confidence::default().spread(values)
    }

    /// (degrees of freedom, t(0.95), t(0.975), t(0.995)): NIST/SEMATECH e-Handbook §1.3.6.7.2.
    const TABLE: [(f64, f64, f64, f64); 12] = [
        (1.0, 6.314, 12.706, 63.657),
        (2.0, 2.920, 4.303, 9.925),
        (3.0, 2.353, 3.182, 5.841),
        (4.0, 2.132, 2.776, 4.604),
        (5.0, 2.015, 2.571, 4.032),
        (9.0, 1.833, 2.262, 3.250),
        (10.0, 1.812, 2.228, 3.169),
        (20.0, 1.725, 2.086, 2.845),
        (29.0, 1.699, 2.045, 2.756),
        (30.0, 1.697, 2.042, 2.750),
        (60.0, 1.671, 2.000, 2.660),
        (100.0, 1.660, 1.984, 2.626),
    ];

    #[test]
    fn quantiles_equal_the_printed_table() {
        for (degrees, p95, p975, p995) in TABLE {
            for (p, printed) in [(0.95, p95), (0.975, p975), (0.995, p995)] {
                let t = student_t_quantile(p, degrees);
                assert!((t - printed).abs() <= 0.000_51, "t({p}, {degrees}) = {t}, printed {printed}");
            }
        }
    }

    #[test]
    fn with_two_degrees_of_freedom_the_quantile_has_a_closed_form() {
        // t = (2p - 1) √(2 / (4p (1 - p))).
        let exact = 0.95 * libm::sqrt(2.0 / (4.0 * 0.975 * 0.025));
        assert!((student_t_quantile(0.975, 2.0) - exact).abs() < 1e-10);
    }

    #[test]
    fn many_repetitions_come_to_the_normal_quantile() {
        // z(0.975) = 1.959963985; t exceeds it by (z³ + z) / 4ν.
        for degrees in [1e3, 1e5] {
            let expected = 1.959_963_985 + (7.529_2 + 1.959_96) / (4.0 * degrees);
            assert!((student_t_quantile(0.975, degrees) - expected).abs() < 1e-5);
        }
    }

    #[test]
    fn the_interval_of_one_to_five_by_hand() {
        let mut confidence = Confidence::default();
        // Two values: t(1) = 12.7062, s/√2 = 0.5.
        let (low, high) = confidence.spread(&[1.0, 2.0]).unwrap().ci95.unwrap();
        assert!((low + 4.853_1).abs() < 1e-4 && (high - 7.853_1).abs() < 1e-4, "{low} {high}");
        // Mean 3, s = √2.5, s/√5 = 0.70711, t(4) = 2.77645: 3 ± 1.96324.
        let spread = confidence.spread(&[4.0, 1.0, 5.0, 2.0, 3.0]).unwrap();
        assert_eq!((spread.median, spread.mean), (3.0, 3.0));
        let (low, high) = spread.ci95.unwrap();
        assert!((low - 1.036_76).abs() < 1e-4 && (high - 4.963_24).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn one_repetition_has_no_interval_and_without_repetitions_there_is_no_spread() {
        assert_eq!(spread(&[2.5]), Some(Spread { median: 2.5, mean: 2.5, ci95: None, n: None }));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(spread(&[10.0, 1.0, 2.0, 4.0]).unwrap().median, 3.0);
    }

    #[test]
    fn equal_repetitions_have_an_interval_without_width() {
        assert_eq!(spread(&[0.5; 4]).unwrap().ci95, Some((0.5, 0.5)));
        assert_eq!(spread(&[0.1; 7]).unwrap().ci95, Some((0.1, 0.1)));
    }
}
