//! The median over repetitions and its confidence interval.
//!
//! The interval takes two order statistics: of n independent values, the number below the true median is
//! binomial (n, 1/2), whatever their distribution (David and Nagaraja, Order Statistics, 3rd edition, §7.1).
//! Ranks k and n + 1 - k with the largest k for which P(B < k) <= 2.5 % cover it with at least 95 %. Below 6
//! values there is no such k; the smallest and the largest of 5 cover it with 93.75 % ([`LEAST_FOR_SPREAD`]).

/// A median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// How many values.
    pub n: u64,
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// At least 95 % confidence; `None` below 6 values.
    pub ci95: Option<(f64, f64)>,
}

/// The fewest values whose range is taken for the interval of their median when two arenas are compared: it
/// covers the median with 1 - 2 / 2^5 = 93.75 %. Real time affords few repetitions, and fewer than these say
/// next to nothing of their spread.
pub(crate) const LEAST_FOR_SPREAD: u64 = 5;

/// The median of `values`, which must be finite; `None` without any.
pub fn median(values: &[f64]) -> Option<Median> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    let median = if n % 2 == 1 { upper } else { f64::midpoint(sorted[n / 2 - 1], upper) };
    let ci95 = rank(n).map(|rank| (sorted[rank - 1], sorted[n - rank]));
    Some(Median { n: n as u64, median, ci95 })
}

/// The largest k >= 1 for which P(B(n, 1/2) < k) <= 2.5 %.
fn rank(n: usize) -> Option<usize> {
    // The logarithm of C(n, i) / 2^n, so that no n underflows.
    let mut log_term = -(n as f64) * core::f64::consts::LN_2;
    let mut below = 0.0;
    let mut rank = 0;
    for i in 0..n.div_ceil(2) {
        below += log_term.exp();
        if below > 0.025 {
            break;
        }
        rank = i + 1;
        log_term += ((n - i) as f64 / (i + 1) as f64).ln();
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_equal_the_printed_table() {
        // Conover, Practical Nonparametric Statistics, table A3 (p = 0.5): n = 6, 8, 10, 20, and the normal
        // limit at 100.
        for (n, expected) in
            [(5, None), (6, Some(1)), (8, Some(1)), (10, Some(2)), (20, Some(6)), (100, Some(40))]
        {
            assert_eq!(rank(n), expected, "n = {n}");
        }
    }

    #[test]
    fn ten_values_have_their_second_and_ninth_as_bounds() {
        let values = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0, 10.0];
        assert_eq!(median(&values), Some(Median { n: 10, median: 5.5, ci95: Some((2.0, 9.0)) }));
    }

    #[test]
    fn few_values_have_no_interval_and_none_no_median() {
        assert_eq!(median(&[3.0]), Some(Median { n: 1, median: 3.0, ci95: None }));
        assert_eq!(median(&[]), None);
    }
}
