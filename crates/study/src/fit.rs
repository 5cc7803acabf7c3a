//! A straight line through points by ordinary least squares (NIST/SEMATECH e-Handbook of Statistical Methods
//! §4.1.4.1, §4.4.3.2), with the 95 % confidence intervals of its slope and of R squared.

use serde::{Deserialize, Serialize};
use talkpath_measure::metrics::confidence::student_t_quantile;

/// A line through points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// y over x.
    pub slope: f64,
    /// At x = 0.
    pub intercept: f64,
    /// By Student's t with n - 2 degrees of freedom; `None` below 3 points.
    pub slope_ci95: Option<(f64, f64)>,
    /// Share of the variance of y that the line explains, 0 to 1.
    pub r_squared: f64,
    /// By Fisher's z of the correlation; `None` below 4 points.
    pub r_squared_ci95: Option<(f64, f64)>,
}

/// The line through `points`; `None` below 2, or if all have one x or one y.
pub(crate) fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let n = points.len() as f64;
    if !varies(points, |it| it.0) || !varies(points, |it| it.1) {
        return None;
    }
    let (x_mean, y_mean) =
        (points.iter().map(|point| point.0).sum::<f64>() / n, points.iter().map(|it| it.1).sum::<f64>() / n);
    let sum =
        |of: fn((f64, f64)) -> f64| -> f64 { points.iter().map(|(x, y)| of((x - x_mean, y - y_mean))).sum() };
    let (xx, xy, yy) = (sum(|(x, _)| x * x), sum(|(x, y)| x * y), sum(|(_, y)| y * y));
    if xx <= 0.0 || yy <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let r_squared = (xy * xy / (xx * yy)).clamp(0.0, 1.0);
    let degrees = n - 2.0;
    let slope_ci95 = (points.len() > 2).then(|| {
        let residual = (yy * (1.0 - r_squared)).max(0.0) / degrees;
        let half = student_t_quantile(0.975, degrees) * (residual / xx).sqrt();
        (slope - half, slope + half)
    });
    Some(Fit {
        slope,
        intercept: y_mean - slope * x_mean,
        slope_ci95,
        r_squared,
        r_squared_ci95: (points.len() > 3).then(|| r_squared_interval(xy / (xx * yy).sqrt(), n)),
    })
}

/// The slope of the line through `points` and its interval, as in [`Fit`]; `None` below 2 points, or if all
/// have one x. Points of one y have a slope of 0: they lack R squared, and so a fit.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<(f64, Option<(f64, f64)>)> {
    let is_flat = varies(points, |it| it.0) && !varies(points, |it| it.1);
    match is_flat {
        true => Some((0.0, (points.len() > 2).then_some((0.0, 0.0)))),
        false => fit(points).map(|line| (line.slope, line.slope_ci95)),
    }
}

/// Whether a coordinate of `points` has more than one value. A mean of equal values may be off by its last
/// bit, so that squares about it do not tell.
fn varies(points: &[(f64, f64)], of: fn(&(f64, f64)) -> f64) -> bool {
    points.iter().any(|it| of(it) != of(&points[0]))
}

/// Fisher (1921): z = atanh r is nearly normal with standard deviation 1 / sqrt(n - 3).
fn r_squared_interval(r: f64, n: f64) -> (f64, f64) {
    let z = r.clamp(-LARGEST_R, LARGEST_R).atanh();
    let half = NORMAL_975 / (n - 3.0).sqrt();
    let (low, high) = ((z - half).tanh(), (z + half).tanh());
    let (small, large) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    (if low < 0.0 && high > 0.0 { 0.0 } else { small * small }, large * large)
}

/// The 97.5 % point of the standard normal distribution (NIST/SEMATECH e-Handbook §1.3.6.7.1).
const NORMAL_975: f64 = 1.959_964;
/// The largest argument, nearest to 1, of the inverse of tanh.
const LARGEST_R: f64 = 1.0 - 1e-15;

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
        assert_eq!((slope(&flat), fit(&flat)), (Some((0.0, Some((0.0, 0.0)))), None));
        assert_eq!(slope(&flat[..2]), Some((0.0, None)));
        assert_eq!(slope(&[(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)]), None);
        assert_eq!(slope(&[(1.0, 0.1)]), None);
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0)]), Some((2.0, None)));
    }
}
