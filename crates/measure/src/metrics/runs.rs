//! How much a share tells if what it counts comes in runs: losses in bursts, or messages that are late while
//! a queue is long.
//!
//! ```text
//!  message   . . . . x x x . . . . . . x . . . x x x x . .
//!            └ good ┘└bad┘└── good ──┘ │                       x: lost, or not in time
//!                                     bad
//! ```
//!
//! A share of n messages that depend on each other is as uncertain as a share of fewer messages that do not.
//! Good and bad runs alternate. If their lengths do not depend on each other, the variance of the number of
//! bad messages grows with n as follows. B and G are the mean lengths of bad and of good runs, and σb and σg
//! their standard deviations:
//!
//! ```text
//!  n (σb² G² + σg² B²) / (B + G)³
//! ```
//!
//! (D. R. Cox, *Renewal Theory*, 1962, chapter 7; L. Takács, *On certain sojourn time problems*, Acta
//! Mathematica Hungarica 8, 1957). Independent messages with the same share B / (B + G) have the variance n
//! B G / (B + G)², so n messages count as
//!
//! ```text
//!  n B G (B + G) / (σb² G² + σg² B²)   independent messages
//! ```
//!
//! The lengths are themselves measured, k of each kind, so the number is multiplied by (z / t(k - 1))² with
//! the quantiles of the normal and of Student's distribution: the interval is then as much wider as
//! Student's is.
//!
//! Fewer than [`MIN_RUNS`] runs say too little about σb and σg. The lengths then count as those of Gilbert's
//! model (*Capacity of a Burst-Noise Channel*, Bell System Technical Journal 39, 1960), whose runs end at
//! each message with the same probability. The number is then n / (2 B G / (B + G) - 1).

use super::confidence::NORMAL_95;

/// The smallest number of bad runs, and of good ones, whose standard deviation is used. We chose 10:
/// Student's quantile is then less than a sixth above that of the normal distribution.
const MIN_RUNS: u64 = 10;

/// The runs of a sequence of messages, each of which is good or bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    good: Lengths,
    bad: Lengths,
    /// The length of the current run.
    current: u64,
    is_bad: bool,
}

/// The lengths of some runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lengths {
    runs: u64,
    sum: u64,
    sum_of_squares: u128,
}

impl Runs {
    /// Adds the next message.
    #[inline]
    pub(crate) fn add(&mut self, is_bad: bool) {
        if is_bad != self.is_bad {
            self.end_run();
            self.is_bad = is_bad;
        }
        self.current += 1;
    }

    /// Ends the current run, if there is one.
    fn end_run(&mut self) {
        let length = core::mem::take(&mut self.current);
        if length > 0 {
            let lengths = if self.is_bad { &mut self.bad } else { &mut self.good };
            lengths.runs += 1;
            lengths.sum += length;
            lengths.sum_of_squares += u128::from(length) * u128::from(length);
        }
    }

    /// Returns how many independent messages tell as much about the share of bad ones. It is at least 1, and
    /// at most the number of messages. Returns `None` if there are no messages.
    pub(crate) fn independent(mut self) -> Option<f64> {
        self.end_run();
        let Self { good, bad, .. } = self;
        let n = (good.sum + bad.sum) as f64;
        if n <= 0.0 {
            return None;
        }
        if good.runs == 0 || bad.runs == 0 {
            return Some(n);
        }
        let (g, b) = (good.mean(), bad.mean());
        let runs = good.runs.min(bad.runs);
        let independent = if runs < MIN_RUNS {
            n / (2.0 * b * good.sum as f64 / n - 1.0).max(1.0)
        } else {
            let spread = bad.variance() * g * g + good.variance() * b * b;
            let ratio = NORMAL_95 / student_95((runs - 1) as f64);
            // Runs that are all of the same length have no spread, and the quotient is then infinite.
            n * b * g * (b + g) / spread * ratio * ratio
        };
        Some(independent.clamp(1.0, n))
    }
}

impl Lengths {
    fn mean(self) -> f64 {
        self.sum as f64 / self.runs as f64
    }

    /// The sample variance, with the divisor of one less than there are runs.
    fn variance(self) -> f64 {
        let mean = self.mean();
        ((self.sum_of_squares as f64 - self.sum as f64 * mean) / (self.runs - 1) as f64).max(0.0)
    }
}

/// Returns t(0.975) of Student's distribution, for nine or more degrees of freedom. It is computed for each
/// flow of each repetition, so it is an expansion with an error below 0.005 (Abramowitz and Stegun 26.7.5).
fn student_95(degrees: f64) -> f64 {
    let z = NORMAL_95;
    let (z3, z5) = (z * z * z, z * z * z * z * z);
    z + (z3 + z) / (4.0 * degrees) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * degrees * degrees)
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Seed, Stream};

    use super::*;
    use crate::metrics::confidence::{Level, student_t_quantile};
    use crate::metrics::share;

    fn independent(messages: impl IntoIterator<Item = bool>) -> Option<f64> {
        let mut runs = Runs::default();
        messages.into_iter().for_each(|is_bad| runs.add(is_bad));
        runs.independent()
    }

    #[test]
    fn messages_in_runs_tell_less_and_messages_without_runs_tell_all() {
        assert_eq!(independent([]), None);
        assert_eq!(independent([false; 200]), Some(200.0));
        assert_eq!(independent([true; 200]), Some(200.0));
        // One lost message among a thousand: 2 · 1 · 0.999 - 1 is below 1.
        assert_eq!(independent((0..1_000).map(|number| number == 500)), Some(1_000.0));
        // One run of 100 among 1,000, by hand: 1,000 / (2 · 100 · 0.9 - 1).
        let run = independent((0..1_000).map(|number| (300..400).contains(&number))).unwrap();
        assert!((run - 1_000.0 / 179.0).abs() < 1e-9, "{run}");
        assert_eq!(independent((0..2_000).map(|number| number % 20 == 0)), Some(2_000.0), "the same lengths");
    }

    #[test]
    fn the_expansion_of_students_quantile_is_near_enough() {
        for degrees in [9.0, 20.0, 100.0, 10_000.0] {
            let error = (student_95(degrees) - student_t_quantile(0.975, degrees)).abs();
            assert!(error < 0.005, "{degrees}: {error}");
        }
    }

    /// A sequence of messages: `true` is a bad one.
    type Sequence = fn(&mut Stream, usize) -> Vec<bool>;

    /// Gilbert's model: runs with a mean length of `mean_run`, and `share` of all messages.
    fn gilbert(stream: &mut Stream, messages: usize, share: f64, mean_run: f64) -> Vec<bool> {
        let ends = 1.0 / mean_run;
        let begins = ends * share / (1.0 - share);
        let mut is_bad = stream.unit() < share;
        let mut sequence = vec![is_bad];
        while sequence.len() < messages {
            is_bad = if is_bad { stream.unit() >= ends } else { stream.unit() < begins };
            sequence.push(is_bad);
        }
        sequence
    }

    /// A queue that a window fills and leaves: ramps of 150 to 450 messages, the last part of which, 0 to 60
    /// %, waits longer than allowed. The first ramp is cut at a random message.
    fn ramps(stream: &mut Stream, messages: usize) -> Vec<bool> {
        let mut sequence = Vec::new();
        let mut skipped = (stream.unit() * 300.0) as usize;
        while sequence.len() < messages + skipped {
            let length = (300.0 * (0.5 + stream.unit())) as usize;
            let late = (length as f64 * 0.6 * stream.unit()) as usize;
            sequence.extend((0..length).map(|position| position >= length - late));
        }
        skipped = skipped.min(sequence.len() - messages);
        sequence[skipped..skipped + messages].to_vec()
    }

    /// A queue that bursts of cross traffic fill: a burst each 40 messages in the mean, which takes 20
    /// messages in the mean to send (exponential). A message that waits for more than 40 is late.
    fn bursts(stream: &mut Stream, messages: usize) -> Vec<bool> {
        let mut backlog = 0.0;
        let mut sequence = Vec::new();
        for number in 0..messages + 2_000 {
            backlog = f64::max(0.0, backlog - 1.0);
            if stream.unit() < 1.0 / 40.0 {
                backlog += 20.0 * stream.exponential();
            }
            // The first messages only bring the queue into its usual state.
            if number >= 2_000 {
                sequence.push(backlog > 40.0);
            }
        }
        sequence
    }

    #[test]
    fn the_interval_of_a_share_holds_the_true_share_in_90_to_97_per_cent_of_runs() {
        let mut stream = Seed::new(5).stream("runs");
        let cases: [(&str, Sequence, usize, Option<f64>); 7] = [
            ("losses alone", |stream, messages| gilbert(stream, messages, 0.03, 1.0), 3_000, Some(0.03)),
            ("runs of 3", |stream, messages| gilbert(stream, messages, 0.03, 3.0), 3_000, Some(0.03)),
            ("runs of 8", |stream, messages| gilbert(stream, messages, 0.02, 8.0), 10_000, Some(0.02)),
            ("runs of 20", |stream, messages| gilbert(stream, messages, 0.05, 20.0), 20_000, Some(0.05)),
            ("a third in runs", |stream, messages| gilbert(stream, messages, 0.3, 10.0), 3_000, Some(0.3)),
            ("ramps", ramps, 3_000, None),
            ("bursts", bursts, 10_000, None),
        ];
        for (name, sequence, messages, known) in cases {
            let share_of = |sequence: &[bool]| {
                sequence.iter().filter(|is_bad| **is_bad).count() as f64 / sequence.len() as f64
            };
            // Where no formula has the true share, that of a million messages stands for it.
            let truth = known.unwrap_or_else(|| share_of(&sequence(&mut stream, 1_000_000)));
            let (mut covered, mut covered_as_independent) = (0, 0);
            for _ in 0..300 {
                let sequence = sequence(&mut stream, messages);
                let share = share_of(&sequence);
                let holds = |independent: f64| {
                    let (low, high) = share::interval(share, independent, Level::Shown).unwrap();
                    low <= truth && truth <= high
                };
                covered += u32::from(holds(independent(sequence).unwrap()));
                covered_as_independent += u32::from(holds(messages as f64));
            }
            let percent = f64::from(covered) / 3.0;
            assert!((90.0..=97.5).contains(&percent), "{name}: {percent} %");
            let is_alone = name == "losses alone";
            assert!(is_alone || covered_as_independent < 255, "{name}: {covered_as_independent} of 300");
        }
    }
}
