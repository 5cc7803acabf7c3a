//! The uncertainty of a share that is measured with few messages: its interval, and how many messages are
//! needed to tell on which side of a bound it lies.
//!
//! ```text
//!  none of n     [0, 3/n]        rule of three: (1 - p)^n = 0.05 has p = 3/n, as ln 0.05 = -3.0
//!  all of n      [1 - 3/n, 1]    the same rule for the complement
//!  k of n        score interval  E. B. Wilson, Probable Inference, JASA 22 (1927), pp. 209-212
//! ```
//!
//! NIST/SEMATECH e-Handbook of Statistical Methods §7.2.4.1 has the score interval. All three are for
//! messages that are independent of each other. Messages in runs count as fewer (`metrics::runs`).

use super::confidence::Level;

/// A tolerance for rounding errors. A share and its complement are rounded in their last bits, so 1 - 0.9 is
/// less than 0.1.
const ROUNDING: f64 = 1e-6;
/// The largest number of messages that is said to be needed. We chose a million million, which takes a call
/// of 50 messages a second 600 years.
const MAX_NEEDED: f64 = 1e12;

/// Returns the interval of a `share` that was measured with this many `independent` messages. Returns `None`
/// if there are no messages.
pub fn interval(share: f64, independent: f64, level: Level) -> Option<(f64, f64)> {
    let n = independent;
    if n <= 0.0 {
        return None;
    }
    let three_of_n = (level.rule_of_three() / n).min(1.0);
    if share <= 0.0 {
        return Some((0.0, three_of_n));
    }
    if share >= 1.0 {
        return Some((1.0 - three_of_n, 1.0));
    }
    // Wilson's score interval.
    let (p, z) = (share, level.normal());
    let middle = p + z * z / (2.0 * n);
    let half_width = z * libm::sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    let scale = 1.0 + z * z / n;
    Some((((middle - half_width) / scale).max(0.0), ((middle + half_width) / scale).min(1.0)))
}

/// Returns how many independent messages are needed to tell on which side of `bound` a share lies, if it
/// stays as it is: as many as put an end of the interval at the bound. At 95 %, for none lost and a bound of
/// 0.1 %, they are 3,000. Returns `None` if the bound is not between none and all, and if the share is at
/// the bound or so near to it that more than `MAX_NEEDED` are needed.
///
/// The score interval of a share p ends at the bound b if (p - b)² = z² b (1 - b) / n.
pub fn needed(share: f64, bound: f64, level: Level) -> Option<f64> {
    if !(0.0 < bound && bound < 1.0) {
        return None;
    }
    let (z, distance) = (level.normal(), (share - bound).abs());
    let n = if share <= 0.0 || share >= 1.0 {
        level.rule_of_three() / distance
    } else {
        z * z * bound * (1.0 - bound) / (distance * distance)
    };
    (n <= MAX_NEEDED).then(|| libm::ceil(n - ROUNDING))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval of `hits` among `messages` that are independent.
    fn of_independent(hits: u64, messages: u64) -> Option<(f64, f64)> {
        interval(hits as f64 / messages as f64, messages as f64, Level::Shown)
    }

    #[test]
    fn no_loss_in_200_messages_leaves_up_to_1_5_per_cent_and_the_same_holds_from_the_other_end() {
        assert_eq!(of_independent(0, 200), Some((0.0, 0.015)));
        assert_eq!(of_independent(200, 200), Some((0.985, 1.0)));
        assert_eq!(of_independent(0, 2), Some((0.0, 1.0)));
        assert_eq!(interval(0.0, 0.0, Level::Shown), None);
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
    fn a_surer_interval_is_wider() {
        for hits in [0, 3, 50, 100] {
            let at = |level| interval(f64::from(hits) / 100.0, 100.0, level).unwrap();
            let ((low, high), (lower, higher)) = (at(Level::Shown), at(Level::Early));
            assert!(higher - lower > high - low, "{hits}");
        }
    }

    #[test]
    fn as_many_messages_as_are_needed_put_an_end_of_the_interval_at_the_bound() {
        assert_eq!(
            [0.001, 0.9, 0.0, 1.0].map(|bound| needed(0.0, bound, Level::Shown)),
            [Some(3000.0), Some(4.0), None, None]
        );
        assert_eq!([0.999, 0.9].map(|bound| needed(1.0, bound, Level::Shown)), [Some(3000.0), Some(30.0)]);
        assert_eq!(
            needed(0.25, 0.25, Level::Shown),
            None,
            "no number tells on which side of the bound the bound is"
        );
        for (share, bound) in [(0.02, 0.01), (0.005, 0.01), (0.9, 0.8), (0.5, 0.6)] {
            let n = needed(share, bound, Level::Shown).unwrap();
            let (low, high) = interval(share, n, Level::Shown).unwrap();
            let end = if share > bound { low } else { high };
            assert!((end - bound).abs() < 1e-3 * bound, "{share} {bound}: {n} {end}");
        }
    }
}
