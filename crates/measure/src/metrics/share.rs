//! The uncertainty of a share that is measured with few messages: its 95 % interval, and how many messages
//! are needed to test a bound.
//!
//! ```text
//!  none of n     [0, 3/n]        rule of three: (1 - p)^n = 0.05 has p = 3/n, as ln 0.05 = -3.0
//!  all of n      [1 - 3/n, 1]    the same rule for the complement
//!  k of n        score interval  E. B. Wilson, Probable Inference, JASA 22 (1927), pp. 209-212
//! ```
//!
//! NIST/SEMATECH e-Handbook of Statistical Methods §7.2.4.1 has the score interval. All three assume that
//! messages are lost independently of each other. If losses come in runs with a mean length of L messages,
//! the variance is about 2L - 1 times as large, and the intervals here are too narrow.

/// -ln 0.05, rounded.
const RULE_OF_THREE: f64 = 3.0;
/// The 97.5 % quantile of the normal distribution.
const NORMAL_95: f64 = 1.959_963_984_540_054;
/// A tolerance for rounding errors. A share and its complement are rounded in their last bits, so 1 - 0.9 is
/// less than 0.1.
const ROUNDING: f64 = 1e-6;

/// Returns the 95 % interval of a share of which `hits` of `messages` were measured. Returns `None` if there
/// are no messages.
pub fn interval(hits: u64, messages: u64) -> Option<(f64, f64)> {
    if messages == 0 {
        return None;
    }
    let n = messages as f64;
    let three_of_n = (RULE_OF_THREE / n).min(1.0);
    if hits == 0 {
        return Some((0.0, three_of_n));
    }
    if hits >= messages {
        return Some((1.0 - three_of_n, 1.0));
    }
    // Wilson's score interval.
    let (p, z) = (hits as f64 / n, NORMAL_95);
    let middle = p + z * z / (2.0 * n);
    let half_width = z * libm::sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    let scale = 1.0 + z * z / n;
    Some((((middle - half_width) / scale).max(0.0), ((middle + half_width) / scale).min(1.0)))
}

/// Returns whether a `bound` on a share is too fine to be tested with `messages`: it lies nearer to none or
/// to all than one message does. For example, 0.1 % of 200 messages is too fine, because one message is 0.5
/// %. A bound of none or of all is not too fine, because a count decides it.
pub fn is_finer_than_one(bound: f64, messages: u64) -> bool {
    distance(bound).is_some_and(|distance| distance * (messages as f64) < 1.0 - ROUNDING)
}

/// Returns how many messages are needed to show that a share keeps to `bound`, if all of them do: 3,000 for
/// 0.1 % or 99.9 %. The end of the interval is then at the bound. Returns `None` if `bound` is not a share
/// between none and all.
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
    use super::*;

    #[test]
    fn no_loss_in_200_messages_leaves_up_to_1_5_per_cent_and_the_same_holds_from_the_other_end() {
        assert_eq!(interval(0, 200), Some((0.0, 0.015)));
        assert_eq!(interval(200, 200), Some((0.985, 1.0)));
        assert_eq!(interval(0, 2), Some((0.0, 1.0)));
        assert_eq!(interval(0, 0), None);
    }

    #[test]
    fn the_score_interval_is_wilsons() {
        // By hand: 10 of 100: (0.1 + 0.019207 ± 1.96 sqrt(0.0009 + 0.00009604)) / 1.038415.
        let (low, high) = interval(10, 100).unwrap();
        assert!((low - 0.055_229).abs() < 1e-5 && (high - 0.174_366).abs() < 1e-5, "{low} {high}");
        for messages in 1..200 {
            for hits in 0..=messages {
                let (low, high) = interval(hits, messages).unwrap();
                let share = hits as f64 / messages as f64;
                assert!(0.0 <= low && low <= share && share <= high && high <= 1.0, "{hits} {messages}");
                assert!(low < high, "few messages leave no interval without width");
            }
        }
    }

    #[test]
    fn more_losses_never_end_lower() {
        for messages in [1, 5, 50, 1000] {
            let ends: Vec<_> = (0..=messages).map(|hits| interval(hits, messages).unwrap()).collect();
            assert!(ends.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        }
    }

    #[test]
    fn a_bound_finer_than_one_message_needs_three_times_as_many_without_any() {
        assert!(is_finer_than_one(0.001, 200) && is_finer_than_one(0.999, 200));
        assert!(!is_finer_than_one(0.001, 1000) && !is_finer_than_one(0.999, 1000));
        assert!(!is_finer_than_one(0.9, 10) && !is_finer_than_one(0.1, 10));
        assert!(!is_finer_than_one(0.0, 1) && !is_finer_than_one(1.0, 1), "none and all are counts");
        assert!(!is_finer_than_one(3.1, 1), "no share");
        assert_eq!([0.001, 0.999, 0.9, 0.0].map(needed), [Some(3000), Some(3000), Some(30), None]);
        let (_, high) = interval(0, needed(0.001).unwrap()).unwrap();
        assert!(high <= 0.001);
    }
}
