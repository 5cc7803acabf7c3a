//! Which statistic over the repetitions represents a figure: one for each figure, in tables, answers, charts
//! and thresholds alike (`figures::statistic_of`).
//!
//! | figure | statistic |
//! | --- | --- |
//! | a score, a share, a count, a goodput | the mean: of a share it is the share of all messages together |
//! | a time, a window, a queue | the median: one repetition with a stop moves it little |

use core::fmt;

use serde::{Deserialize, Serialize};

/// A statistic of one figure over the repetitions of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Median; of an even number the mean of the middle two.
    Median,
    /// 10th percentile, nearest rank: of fewer than eleven repetitions the smallest.
    P10,
    /// The smallest.
    Min,
}

impl Statistic {
    /// Every statistic.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Median, Self::P10, Self::Min];

    /// Splits `call.mos.mean` into the figure's path and the statistic; `None` without one at its end.
    pub fn split(path: &str) -> Option<(&str, Self)> {
        let (path, word) = path.rsplit_once('.')?;
        Some((path, Self::ALL.into_iter().find(|it| it.word() == word)?))
    }

    /// `mean`, as it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
            Self::P10 => "p10",
            Self::Min => "min",
        }
    }

    /// This statistic of values in ascending order; `None` without any.
    pub fn over(self, sorted: &[f64]) -> Option<f64> {
        let n = sorted.len();
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        Some(match self {
            // Rounding makes no other number of what is the same in all repetitions.
            Self::Mean if first.to_bits() == last.to_bits() => first,
            Self::Mean => sorted.iter().sum::<f64>() / n as f64,
            Self::Median => (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            Self::P10 => sorted[n.div_ceil(10) - 1],
            Self::Min => first,
        })
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Whether a figure may rest on `judged` of `all` repetitions: on half of them at least. Chosen. The others
/// were disturbed, or have no such figure.
pub const fn is_enough(judged: u64, all: u64) -> bool {
    2 * judged >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statistic_is_the_last_word_of_a_path() {
        assert_eq!(Statistic::split("call.mos.p10"), Some(("call.mos", Statistic::P10)));
        assert_eq!(
            Statistic::split("round_trip_delay_ms.p95.min"),
            Some(("round_trip_delay_ms.p95", Statistic::Min))
        );
        assert_eq!(Statistic::split("call.mos"), None);
        assert_eq!(Statistic::split("mean"), None);
    }

    #[test]
    fn each_statistic_by_hand() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let of = |values: &[f64]| Statistic::ALL.map(|it| it.over(values));
        assert_eq!(of(&values), [Some(10.5), Some(10.5), Some(2.0), Some(1.0)]);
        assert_eq!(of(&[1.0, 1.0, 4.0]), [Some(2.0), Some(1.0), Some(1.0), Some(1.0)]);
        assert_eq!(of(&[0.1; 7]), [Some(0.1); 4], "no rounding");
        assert_eq!(of(&[]), [None; 4]);
    }
}
