//! How sure a statistic over repetitions is, and how many more repetitions would tell on which side of a
//! bound it lies.
//!
//! The interval of the repetitions:
//!
//! - of a *mean*: Student's t, cut at the possible values. It is the `ci95` of the cell
//!   (`metrics::confidence`).
//! - of a *median*: two of the values in their order, so many places from the ends that the median lies
//!   outside with the probability of a binomial distribution (Conover, *Practical Nonparametric Statistics*,
//!   3rd ed. 1999, §3.2). With too few repetitions for that it is Student's t, and holds the median.
//! - of *p10* and *min*: none. They describe the repetitions that ran.
//!
//! A share also has the interval of its messages (`metrics::share`). The interval of a share holds both.

use super::confidence::Level;
use super::share;
use crate::statistic::Statistic;

/// The largest number of repetitions that is said to be needed. A larger number only means that more
/// repetitions are hopeless, as in `crate::ranking`.
const MAX_NEEDED: f64 = 1e6;
/// Up to this number of repetitions the binomial distribution is computed. Beyond it the powers of one half
/// are too small for a float, and the normal distribution is as good.
const MAX_BINOMIAL: usize = 500;
/// The smallest number of repetitions with an interval of the median by order: 2 · 0.5⁶ is below 5 %.
const MIN_ORDERED: u64 = 6;

/// What is known of a statistic over repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certainty<'a> {
    /// The statistic.
    pub statistic: Statistic,
    /// Its value.
    pub value: f64,
    /// The value of each repetition in ascending order. A repetition that does not know the figure has an
    /// infinite value.
    pub sorted: &'a [f64],
    /// The smallest and the largest possible value.
    pub possible: (f64, f64),
    /// How many independent messages the value is a share of. `None` if it is no share of messages.
    pub messages: Option<f64>,
}

impl Certainty<'_> {
    /// Returns the interval of the statistic. Returns `None` if it has none: with one repetition, unless the
    /// figure is a share.
    pub fn interval(&self, level: Level) -> Option<(f64, f64)> {
        match self.interval_of_repetitions(level) {
            Some(interval) => Some(around_both(interval, self.interval_of_messages(level))),
            None => self.interval_of_messages(level),
        }
    }

    /// Returns the interval that the number of messages alone gives.
    pub fn interval_of_messages(&self, level: Level) -> Option<(f64, f64)> {
        share::interval(self.value, self.messages?, level)
    }

    /// Returns the interval that the repetitions alone give.
    pub fn interval_of_repetitions(&self, level: Level) -> Option<(f64, f64)> {
        match self.statistic {
            Statistic::Mean => self.students(level),
            Statistic::Median => self.ordered(level).or_else(|| {
                let (low, high) = self.students(level)?;
                Some((low.min(self.value), high.max(self.value)))
            }),
            Statistic::P10 | Statistic::Min => None,
        }
    }

    /// Returns about how many repetitions are needed, those that ran among them, to tell on which side of
    /// `bound` the statistic lies, if the values go on as they are. Returns `None` if the statistic is at
    /// the bound, or if one repetition alone has run.
    pub fn repetitions_needed(&self, bound: f64, level: Level) -> Option<u64> {
        let n = self.sorted.len();
        let needed = match self.statistic {
            Statistic::Mean => {
                let (_, deviation) = self.mean_and_deviation()?;
                let of_quantile = |quantile: f64| {
                    let ratio = quantile * deviation / (self.value - bound).abs();
                    ratio * ratio
                };
                let first = of_quantile(level.student(n - 1));
                // Student's quantile falls with the number of repetitions.
                of_quantile(level.student((first.clamp(2.0, MAX_NEEDED) as usize).max(n) - 1))
            }
            Statistic::Median if n >= 2 => {
                let is_on_side = |value: &&f64| (**value < bound) == (self.value < bound) && **value != bound;
                let share = self.sorted.iter().filter(is_on_side).count() as f64 / n as f64;
                // The sign test: the share differs from one half by z / (2 √n).
                let ratio = level.normal() / (2.0 * share - 1.0).max(0.0);
                (ratio * ratio).max(MIN_ORDERED as f64)
            }
            _ => return None,
        };
        (needed <= MAX_NEEDED).then(|| (libm::ceil(needed) as u64).max(n as u64 + 1))
    }

    fn students(&self, level: Level) -> Option<(f64, f64)> {
        let n = self.sorted.len();
        let (mean, deviation) = self.mean_and_deviation()?;
        let half_width = level.student(n - 1) * deviation / libm::sqrt(n as f64);
        Some(within_possible((mean - half_width, mean + half_width), self.sorted, self.possible))
    }

    /// Returns the mean and the sample standard deviation. Returns `None` with fewer than two repetitions,
    /// or if a repetition does not know the figure.
    fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let (first, last) = (*self.sorted.first()?, *self.sorted.last()?);
        if self.sorted.len() < 2 || !first.is_finite() || !last.is_finite() {
            return None;
        }
        // If all values are the same, rounding must not give the interval a width.
        if first.to_bits() == last.to_bits() {
            return Some((first, 0.0));
        }
        let n = self.sorted.len() as f64;
        let mean = self.sorted.iter().sum::<f64>() / n;
        let squares: f64 = self.sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
        Some((mean, libm::sqrt(squares / (n - 1.0))))
    }

    /// Returns the interval of the median by the order of the values. Returns `None` if there are too few.
    fn ordered(&self, level: Level) -> Option<(f64, f64)> {
        let n = self.sorted.len();
        let left_out = values_left_out(n, level)?;
        Some((self.sorted[left_out], self.sorted[n - 1 - left_out]))
    }
}

/// Returns how many of the smallest `n` values, and of the largest, lie outside of the interval of the
/// median: the largest k with P(X <= k) <= the tail, for X of a binomial distribution with p = 1/2. Returns
/// `None` if there is none.
fn values_left_out(n: usize, level: Level) -> Option<usize> {
    if n > MAX_BINOMIAL {
        let n = n as f64;
        return Some((0.5 * (n - level.normal() * libm::sqrt(n)) - 1.0) as usize);
    }
    let mut probability = libm::pow(0.5, n as f64);
    let mut sum = 0.0;
    let mut left_out = None;
    for k in 0..n {
        sum += probability;
        if sum > level.tail() {
            break;
        }
        left_out = Some(k);
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    left_out
}

/// Cuts an interval at the `possible` values. Student's t knows no bounds, so a few values far apart can
/// give an interval with impossible values. It is not cut at the lower bound if one of the `values` lies
/// below that bound, because a delay between two clocks can be negative.
pub(crate) fn within_possible(
    (mut low, high): (f64, f64),
    values: &[f64],
    (least, most): (f64, f64),
) -> (f64, f64) {
    if values.iter().all(|&value| value >= least) {
        low = low.max(least);
    }
    (low, high.min(most))
}

/// Returns the interval that holds both.
pub(crate) fn around_both((low, high): (f64, f64), other: Option<(f64, f64)>) -> (f64, f64) {
    match other {
        Some((other_low, other_high)) => (low.min(other_low), high.max(other_high)),
        None => (low, high),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;

    const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    fn certainty(statistic: Statistic, sorted: &[f64]) -> Certainty<'_> {
        let value = statistic.over(sorted).unwrap();
        Certainty { statistic, value, sorted, possible: ANY, messages: None }
    }

    #[test]
    fn the_interval_of_a_mean_is_students_and_that_of_a_median_is_two_of_the_values() {
        // By hand in `metrics::confidence`: 3 ± 1.96324.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (low, high) = certainty(Statistic::Mean, &values).interval(Level::Shown).unwrap();
        assert!((low - 1.036_76).abs() < 1e-4 && (high - 4.963_24).abs() < 1e-4, "{low} {high}");
        let of_five = certainty(Statistic::Median, &values).interval(Level::Shown).unwrap();
        assert_eq!(of_five, (low, high), "too few for the order");
        // Conover 1999, table A3: of 6 values the smallest and the largest, of 20 the 6th and the 15th.
        for (n, place) in [(6, 0), (8, 0), (9, 1), (20, 5)] {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            let interval = certainty(Statistic::Median, &values).interval(Level::Shown);
            assert_eq!(interval, Some((f64::from(place), f64::from(n - 1 - place))), "{n}");
        }
        assert_eq!(certainty(Statistic::Min, &values).interval(Level::Shown), None);
        assert_eq!(certainty(Statistic::Mean, &[1.0]).interval(Level::Shown), None);
    }

    #[test]
    fn both_ways_to_the_interval_of_a_median_leave_out_about_as_many() {
        for level in [Level::Shown, Level::Early] {
            let exact = values_left_out(MAX_BINOMIAL, level).unwrap();
            let normal = values_left_out(MAX_BINOMIAL + 1, level).unwrap();
            assert!(exact.abs_diff(normal) <= 1, "{exact} {normal}");
        }
    }

    #[test]
    fn a_repetition_that_does_not_know_the_figure_ends_the_interval_of_the_median_where_it_counts() {
        let mut values = vec![f64::NEG_INFINITY];
        values.extend((1..6).map(f64::from));
        let certainty = certainty(Statistic::Median, &values);
        assert_eq!(certainty.interval(Level::Shown), Some((f64::NEG_INFINITY, 5.0)));
    }

    #[test]
    fn about_95_of_a_hundred_intervals_hold_the_mean_and_the_median() {
        let mut stream = Seed::new(51).stream("coverage");
        for (statistic, truth) in [(Statistic::Mean, 1.0), (Statistic::Median, core::f64::consts::LN_2)] {
            let held = (0..400).filter(|_| {
                let mut values: Vec<f64> = (0..40).map(|_| stream.exponential()).collect();
                values.sort_by(f64::total_cmp);
                let (low, high) = certainty(statistic, &values).interval(Level::Shown).unwrap();
                low <= truth && truth <= high
            });
            let percent = held.count() as f64 / 4.0;
            assert!((90.0..=98.0).contains(&percent), "{statistic}: {percent} %");
        }
    }

    #[test]
    fn as_many_repetitions_as_are_needed_decide_if_the_values_go_on_as_they_are() {
        let values = [3.4, 3.5, 3.7, 3.8, 3.9];
        for (statistic, bound) in [(Statistic::Mean, 3.6), (Statistic::Median, 3.55)] {
            let before = certainty(statistic, &values);
            let (low, high) = before.interval(Level::Shown).unwrap();
            assert!(low < bound && bound < high, "{statistic}: undecided");
            let needed = before.repetitions_needed(bound, Level::Shown).unwrap() as usize;
            // The order of discrete values moves in steps, so a fifth more is taken.
            let taken = (needed + needed / 5).next_multiple_of(values.len());
            let mut more: Vec<f64> = values.iter().copied().cycle().take(taken).collect();
            more.sort_by(f64::total_cmp);
            let (low, high) = certainty(statistic, &more).interval(Level::Shown).unwrap();
            assert!(bound <= low || high <= bound, "{statistic}: {needed} {low} {high}");
        }
        assert_eq!(
            certainty(Statistic::Mean, &values).repetitions_needed(3.66, Level::Shown),
            None,
            "at the bound"
        );
        assert_eq!(certainty(Statistic::Mean, &[3.0]).repetitions_needed(3.6, Level::Shown), None);
    }

    #[test]
    fn the_interval_of_a_share_holds_that_of_its_messages() {
        let of = |messages| Certainty {
            messages: Some(messages),
            possible: (0.0, 1.0),
            ..certainty(Statistic::Mean, &[0.0, 0.0])
        };
        assert_eq!(of(300.0).interval(Level::Shown), Some((0.0, 0.01)));
        assert_eq!(of(300.0).interval_of_repetitions(Level::Shown), Some((0.0, 0.0)));
    }
}
