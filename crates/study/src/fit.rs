//! A straight line through points by ordinary least squares (NIST/SEMATECH e-Handbook of Statistical Methods
//! §4.1.4.1, §4.4.3.2), with the 95 % confidence intervals of its slope and of R squared.

use serde::{Deserialize, Serialize};
use talkpath_measure::metrics::confidence::student_t_quantile;

/// The 97.5 % point of the standard normal distribution (NIST/SEMATECH e-Handbook §1.3.6.7.1).
const NORMAL_975: f64 = 1.959_964;
/// The largest correlation that is passed to atanh, which is infinite at 1.
const LARGEST_R: f64 = 1.0 - 1e-15;

/// The least-squares line through points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The slope.
    pub slope: f64,
    /// The value of y at x = 0.
    pub intercept: f64,
    /// The 95 % confidence interval of the slope, by Student's t with n - 2 degrees of freedom. It is `None`
    /// for fewer than 3 points.
    pub slope_ci95: Option<(f64, f64)>,
    /// The share of the variance of y that the line explains, 0 to 1.
    pub r_squared: f64,
    /// The 95 % confidence interval of R squared, by Fisher's z of the correlation. It is `None` for fewer
    /// than 4 points.
    pub r_squared_ci95: Option<(f64, f64)>,
}

/// The slope of a line, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slope {
    pub(crate) slope: f64,
    pub(crate) ci95: Option<(f64, f64)>,
}

/// Fits a line to points (x, y). Returns `None` if there are fewer than 2 points, or if all points have the
/// same x or the same y.
pub(crate) fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    if !varies(points, |(x, _)| x) || !varies(points, |(_, y)| y) {
        return None;
    }
    let n = points.len() as f64;
    let x_mean = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let y_mean = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        let (x, y) = (x - x_mean, y - y_mean);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    if xx <= 0.0 || yy <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let r_squared = (xy * xy / (xx * yy)).clamp(0.0, 1.0);
    let slope_ci95 = (points.len() > 2).then(|| {
        let degrees = n - 2.0;
        let residual = (yy * (1.0 - r_squared)).max(0.0) / degrees;
        let half = student_t_quantile(0.975, degrees) * (residual / xx).sqrt();
        (slope - half, slope + half)
    });
    let r_squared_ci95 = (points.len() > 3).then(|| r_squared_interval(xy / (xx * yy).sqrt(), n));
    Some(Fit { slope, intercept: y_mean - slope * x_mean, slope_ci95, r_squared, r_squared_ci95 })
}

/// Returns the slope of the line through points (x, y), and its confidence interval. Returns `None` if there
/// are fewer than 2 points, or if all points have the same x. Points with the same y have a slope of 0,
/// although [`fit`] returns no line for them, because they have no R squared.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    let is_flat = varies(points, |(x, _)| x) && !varies(points, |(_, y)| y);
    if is_flat {
        return Some(Slope { slope: 0.0, ci95: (points.len() > 2).then_some((0.0, 0.0)) });
    }
    let line = fit(points)?;
    Some(Slope { slope: line.slope, ci95: line.slope_ci95 })
}

/// Returns whether a coordinate of the points has more than one value. The squares about the mean do not tell
/// this, because the computed mean of equal values can differ from them in its last bit.
fn varies(points: &[(f64, f64)], coordinate: fn((f64, f64)) -> f64) -> bool {
    points.iter().any(|point| coordinate(*point) != coordinate(points[0]))
}

/// Returns the 95 % confidence interval of R squared. `r` is the correlation of `n` points. By Fisher (1921),
/// z = atanh r is nearly normal with standard deviation 1 / sqrt(n - 3).
fn r_squared_interval(r: f64, n: f64) -> (f64, f64) {
    let z = r.clamp(-LARGEST_R, LARGEST_R).atanh();
    let half = NORMAL_975 / (n - 3.0).sqrt();
    let (low, high) = ((z - half).tanh(), (z + half).tanh());
    let (smaller, larger) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    let includes_zero = low < 0.0 && high > 0.0;
    (if includes_zero { 0.0 } else { smaller * smaller }, larger * larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anscombes_first_set_has_its_printed_line() {
        // Anscombe (1973), Graphs in Statistical Analysis, data set 1: y = 3.00 + 0.500 x, R squared 0.667,
        // standard error of the slope 0.118.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<_> = x.into_iter().zip(y).collect();
        let found = fit(&points).unwrap();
        assert!((found.slope - 0.500).abs() < 0.0005 && (found.intercept - 3.00).abs() < 0.005, "{found:?}");
        assert!((found.r_squared - 0.667).abs() < 0.001, "{found:?}");
        // t(0.975, 9) = 2.262.
        let (low, high) = found.slope_ci95.unwrap();
        assert!(((high - low) / 2.0 - 2.262 * 0.118).abs() < 0.001, "{found:?}");
        // z = atanh 0.8164 = 1.146, half 1.96 / sqrt 8 = 0.693.
        let (low, high) = found.r_squared_ci95.unwrap();
        assert!(
            (low - 0.425_f64.powi(2)).abs() < 0.01 && (high - 0.951_f64.powi(2)).abs() < 0.01,
            "{found:?}"
        );
    }

    #[test]
    fn points_without_spread_have_no_line() {
        assert_eq!(fit(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(fit(&[(1.0, 2.0), (2.0, 2.0)]), None);
        assert_eq!(fit(&[(1.0, 2.0)]), None);
        assert_eq!(fit(&[]), None);
    }

    #[test]
    fn points_of_one_height_have_a_slope_of_zero_and_nothing_to_explain() {
        // The mean of three times 0.1 is not 0.1.
        let flat = [(1.0, 0.1), (2.0, 0.1), (4.0, 0.1)];
        let zero = Slope { slope: 0.0, ci95: Some((0.0, 0.0)) };
        assert_eq!((slope(&flat), fit(&flat)), (Some(zero), None));
        assert_eq!(slope(&flat[..2]), Some(Slope { slope: 0.0, ci95: None }));
        assert_eq!(slope(&[(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)]), None);
        assert_eq!(slope(&[(1.0, 0.1)]), None);
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0)]), Some(Slope { slope: 2.0, ci95: None }));
    }
}
