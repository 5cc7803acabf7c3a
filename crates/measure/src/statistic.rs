//! The statistic over the repetitions that represents a figure. Tables, answers, charts and thresholds use
//! the same statistic of a figure (`figures::statistic_of`).
//!
//! | figure | statistic |
//! | --- | --- |
//! | a score, a share, a count, a goodput | the mean. For a share it is the share of all messages together. |
//! | a time, a window, a queue | the median, because one repetition with a stall changes it little |

use core::fmt;

use serde::{Deserialize, Serialize};

/// A statistic of one figure over the repetitions of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The median. For an even number of values it is the mean of the middle two.
    Median,
    /// The 10th percentile by nearest rank. With fewer than eleven repetitions it is the smallest value.
    P10,
    /// The smallest value.
    Min,
}

impl Statistic {
    /// Every statistic.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Median, Self::P10, Self::Min];

    /// Splits `call.mos.mean` into the path of the figure and the statistic. Returns `None` if `path` does
    /// not end with a statistic.
    pub fn split(path: &str) -> Option<(&str, Self)> {
        let (path, word) = path.rsplit_once('.')?;
        Some((path, Self::ALL.into_iter().find(|statistic| statistic.word() == word)?))
    }

    /// Returns the name of the statistic, such as `mean`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
            Self::P10 => "p10",
            Self::Min => "min",
        }
    }

    /// Returns this statistic of `sorted` values, which are in ascending order. Returns `None` if there is no
    /// value.
    pub fn over(self, sorted: &[f64]) -> Option<f64> {
        let n = sorted.len();
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        Some(match self {
            // If all values are the same, rounding must not change the mean.
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

/// Returns whether a figure may rest on `judged` of `all` repetitions. We chose at least half of them. The
/// others were disturbed, or do not have the figure.
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
