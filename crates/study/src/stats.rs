//! The median over repetitions and its confidence interval.
//!
//! The interval reaches from one order statistic to another. The number B of n independent values that lie
//! below the true median is binomial (n, 1/2), whatever the distribution of the values (David and Nagaraja,
//! Order Statistics, 3rd edition, §7.1). The values of rank k and n + 1 - k contain the median with at least
//! 95 %, if k is the largest number for which P(B < k) <= 2.5 %. For fewer than 6 values there is no such k.
//! The smallest and the largest of 5 values contain the median with 93.75 % ([`MIN_VALUES_FOR_SPREAD`]).
//!
//! The interval of a share of repetitions is Wilson's ([`share_interval`]).

/// A median with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The number of values.
    pub n: u64,
    /// The middle value, or the mean of the two middle values.
    pub median: f64,
    /// The interval that contains the true median with a confidence of at least 95 %. It is `None` for fewer
    /// than 6 values.
    pub ci95: Option<(f64, f64)>,
}

/// When two arenas are compared, the range of at least this many values is used as the interval of their
/// median. The range of 5 values contains the median with 1 - 2 / 2^5 = 93.75 %. We accept less than 95 %
/// there, because runs in real time are slow and have few repetitions.
pub(crate) const MIN_VALUES_FOR_SPREAD: u64 = 5;

/// Returns the median of `values`, which must be finite. Returns `None` if there are no values.
pub fn median(values: &[f64]) -> Option<Median> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    let median = if n % 2 == 1 { upper } else { f64::midpoint(sorted[n / 2 - 1], upper) };
    let ci95 = rank(n).map(|rank| (sorted[rank - 1], sorted[n - rank]));
    Some(Median { n: n as u64, median, ci95 })
}

/// Returns the largest k >= 1 for which P(B(n, 1/2) < k) <= 2.5 %, or `None` if there is none.
fn rank(n: usize) -> Option<usize> {
    // The logarithm of C(n, i) / 2^n. The number itself would underflow for a large n.
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

/// The quantile of the normal distribution that leaves 2.5 % above it.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// Returns the 95 % confidence interval of a share, of which `hits` of `runs` independent repetitions are a
/// sample: the score interval of Wilson (Journal of the American Statistical Association 22, 1927). It is
/// `None` for fewer than 6 repetitions, as that of a median is.
pub(crate) fn share_interval(hits: u64, runs: u64) -> Option<(f64, f64)> {
    rank(usize::try_from(runs).ok()?)?;
    let (n, share) = (runs as f64, hits as f64 / runs as f64);
    let square = NORMAL_QUANTILE * NORMAL_QUANTILE;
    let middle = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half =
        NORMAL_QUANTILE * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt() / (1.0 + square / n);
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_is_wilson_s_and_needs_six_repetitions() {
        // Newcombe, Statistics in Medicine 17, 1998, table I, method 3: 81 of 263 and 15 of 148.
        for (hits, runs, low, high) in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)] {
            let found = share_interval(hits, runs).unwrap();
            assert!((found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5, "{found:?}");
        }
        assert_eq!((share_interval(3, 5), share_interval(0, 0)), (None, None));
        assert!(share_interval(6, 6).is_some_and(|(low, high)| low > 0.5 && high > 0.999));
    }

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
