//! The uncertainty of a share that is measured with few messages, or with messages that depend on each other:
//! its 95 % interval, and how many messages are needed to test a bound.
//!
//! ```text
//!  none of n     [0, 3/n]        rule of three: (1 - p)^n = 0.05 has p = 3/n, as ln 0.05 = -3.0
//!  all of n      [1 - 3/n, 1]    the same rule for the complement
//!  k of n        score interval  E. B. Wilson, Probable Inference, JASA 22 (1927), pp. 209-212
//! ```
//!
//! NIST/SEMATECH e-Handbook of Statistical Methods §7.2.4.1 has the score interval. All three are for
//! messages that are lost independently of each other.
//!
//! # Losses in runs
//!
//! If losses come in runs with a mean length of L messages, n messages tell as much as [`independent`] ones:
//!
//! ```text
//!  n / (2L - 1)     variance of a mean under autocorrelation rᵏ: (1 + r) / (1 - r) with r = 1 - 1/L
//! ```
//!
//! The autocorrelation is that of Gilbert's model (*Capacity of a Burst-Noise Channel*, Bell System Technical
//! Journal 39, 1960) with few losses: a run goes on with the probability 1 - 1/L. Priestley, *Spectral
//! Analysis and Time Series*, 1981, §5.3.2 has the variance. The length of the runs is itself measured, so
//! the interval is a little too narrow if there are few runs. Messages that are late in runs, and not lost,
//! are taken as independent.

/// -ln 0.05, rounded.
const RULE_OF_THREE: f64 = 3.0;
/// The 97.5 % quantile of the normal distribution.
const NORMAL_95: f64 = 1.959_963_984_540_054;
/// A tolerance for rounding errors. A share and its complement are rounded in their last bits, so 1 - 0.9 is
/// less than 0.1.
const ROUNDING: f64 = 1e-6;

/// Returns how many independent messages tell as much as `messages` whose losses come in runs with this mean
/// length. It is at least 1 if there are messages.
pub fn independent(messages: u64, mean_run: f64) -> f64 {
    let n = messages as f64;
    (n / (2.0 * mean_run.max(1.0) - 1.0)).max(n.min(1.0))
}

/// Returns the 95 % interval of a `share` that was measured with this many `independent` messages. Returns
/// `None` if there are no messages.
pub fn interval(share: f64, independent: f64) -> Option<(f64, f64)> {
    let n = independent;
    if n <= 0.0 {
        return None;
    }
    let three_of_n = (RULE_OF_THREE / n).min(1.0);
    if share <= 0.0 {
        return Some((0.0, three_of_n));
    }
    if share >= 1.0 {
        return Some((1.0 - three_of_n, 1.0));
    }
    // Wilson's score interval.
    let (p, z) = (share, NORMAL_95);
    let middle = p + z * z / (2.0 * n);
    let half_width = z * libm::sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    let scale = 1.0 + z * z / n;
    Some((((middle - half_width) / scale).max(0.0), ((middle + half_width) / scale).min(1.0)))
}

/// Returns whether a `bound` on a share is too fine to be tested with this many `independent` messages: it
/// lies nearer to none or to all than one message does. For example, 0.1 % of 200 messages is too fine,
/// because one message is 0.5 %. A bound of none or of all is not too fine, because a count decides it.
pub fn is_finer_than_one(bound: f64, independent: f64) -> bool {
    distance(bound).is_some_and(|distance| distance * independent < 1.0 - ROUNDING)
}

/// Returns how many independent messages are needed to show that a share keeps to `bound`, if all of them do:
/// 3,000 for 0.1 % or 99.9 %. The end of the interval is then at the bound. Returns `None` if `bound` is not
/// a share between none and all.
pub fn needed(bound: f64) -> Option<u64> {
    // The result fits into 64 bits, because it is below 1e19 for every share that a float can distinguish
    // from 0.
    distance(bound).map(|distance| libm::ceil(RULE_OF_THREE / distance - ROUNDING) as u64)
}

/// Returns the distance of the bound to none or to all, whichever is smaller.
fn distance(bound: f64) -> Option<f64> {
    (0.0 < bound && bound < 1.0).then(|| bound.min(1.0 - bound))
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Seed, Stream};

    use super::*;

    /// The interval of `hits` among `messages` that are independent.
    fn of_independent(hits: u64, messages: u64) -> Option<(f64, f64)> {
        interval(hits as f64 / messages as f64, messages as f64)
    }

    /// Loses messages by Gilbert's model: runs with a mean length of `mean_run`, and `loss` of all messages.
    fn gilbert(stream: &mut Stream, messages: u64, loss: f64, mean_run: f64) -> (f64, f64) {
        let ends = 1.0 / mean_run;
        let begins = ends * loss / (1.0 - loss);
        let (mut is_lost, mut lost, mut runs) = (stream.unit() < loss, 0_u64, 0_u64);
        for number in 0..messages {
            let was_lost = is_lost && number > 0;
            if number > 0 {
                is_lost = if is_lost { stream.unit() >= ends } else { stream.unit() < begins };
            }
            lost += u64::from(is_lost);
            runs += u64::from(is_lost && !was_lost);
        }
        let mean_run = if runs == 0 { 1.0 } else { lost as f64 / runs as f64 };
        (lost as f64 / messages as f64, mean_run)
    }

    #[test]
    fn the_interval_of_losses_in_runs_holds_the_true_share_in_90_to_97_per_cent_of_runs() {
        let mut stream = Seed::new(5).stream("gilbert");
        for (messages, loss, run) in
            [(3_000, 0.03, 1.0), (3_000, 0.03, 3.0), (10_000, 0.02, 8.0), (20_000, 0.05, 20.0)]
        {
            let (mut covered, mut covered_as_independent) = (0, 0);
            for _ in 0..400 {
                let (share, mean_run) = gilbert(&mut stream, messages, loss, run);
                let holds = |independent: f64| {
                    let (low, high) = interval(share, independent).unwrap();
                    low <= loss && loss <= high
                };
                covered += u32::from(holds(independent(messages, mean_run)));
                covered_as_independent += u32::from(holds(messages as f64));
            }
            let percent = f64::from(covered) / 4.0;
            assert!((90.0..=97.5).contains(&percent), "runs of {run}: {percent} %");
            assert!(
                run < 2.0 || covered_as_independent < 340,
                "runs of {run}: {covered_as_independent} of 400"
            );
        }
    }

    #[test]
    fn messages_in_runs_tell_less_and_one_message_tells_something() {
        assert_eq!((independent(1_000, 1.0), independent(1_000, 3.0)), (1_000.0, 200.0));
        assert_eq!((independent(5, 100.0), independent(0, 1.0), independent(7, 0.0)), (1.0, 0.0, 7.0));
    }

    #[test]
    fn no_loss_in_200_messages_leaves_up_to_1_5_per_cent_and_the_same_holds_from_the_other_end() {
        assert_eq!(of_independent(0, 200), Some((0.0, 0.015)));
        assert_eq!(of_independent(200, 200), Some((0.985, 1.0)));
        assert_eq!(of_independent(0, 2), Some((0.0, 1.0)));
        assert_eq!(interval(0.0, 0.0), None);
    }

    #[test]
    fn the_score_interval_is_wilsons() {
        // By hand: 10 of 100: (0.1 + 0.019207 ± 1.96 sqrt(0.0009 + 0.00009604)) / 1.038415.
        let (low, high) = of_independent(10, 100).unwrap();
        assert!((low - 0.055_229).abs() < 1e-5 && (high - 0.174_366).abs() < 1e-5, "{low} {high}");
        for messages in 1..200 {
            for hits in 0..=messages {
                let (low, high) = of_independent(hits, messages).unwrap();
                let share = hits as f64 / messages as f64;
                assert!(0.0 <= low && low <= share && share <= high && high <= 1.0, "{hits} {messages}");
                assert!(low < high, "few messages leave no interval without width");
            }
        }
    }

    #[test]
    fn more_losses_never_end_lower() {
        for messages in [1, 5, 50, 1000] {
            let ends: Vec<_> = (0..=messages).map(|hits| of_independent(hits, messages).unwrap()).collect();
            assert!(ends.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        }
    }

    #[test]
    fn a_bound_finer_than_one_message_needs_three_times_as_many_without_any() {
        assert!(is_finer_than_one(0.001, 200.0) && is_finer_than_one(0.999, 200.0));
        assert!(!is_finer_than_one(0.001, 1000.0) && !is_finer_than_one(0.999, 1000.0));
        assert!(!is_finer_than_one(0.9, 10.0) && !is_finer_than_one(0.1, 10.0));
        assert!(!is_finer_than_one(0.0, 1.0) && !is_finer_than_one(1.0, 1.0), "none and all are counts");
        assert!(!is_finer_than_one(3.1, 1.0), "no share");
        assert_eq!([0.001, 0.999, 0.9, 0.0].map(needed), [Some(3000), Some(3000), Some(30), None]);
        let (_, high) = of_independent(0, needed(0.001).unwrap()).unwrap();
        assert!(high <= 0.001);
    }
}
