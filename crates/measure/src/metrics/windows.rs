//! Rates a call in windows, and makes one score of them.
//!
//! ```text
//!  call      │ window of 10 s │ window of 10 s │ window of 10 s │
//!                  R = 88           R = 40           R = 88          E-model for each window
//!  perceived       88 ──────────╲______ 46 ______╱──────── 67        time constants of 5 s down, 15 s up
//!  R of the call = mean of the perceived R over time
//! ```
//!
//! The E-model holds for a connection that stays the same (ITU-T G.107 §1), so it rates windows of 8 to 10 s.
//! A listener's opinion follows the quality with a delay. It falls with a time constant of 5 s and recovers
//! with one of 15 s, and the score of the call is the mean of this opinion over time. This is the extended
//! E-model: ETSI TS 101 329-5, Annex E; A. Clark, "Modeling the effects of burst packet loss and recency on
//! subjective voice quality", IP Telephony Workshop 2001. We could read neither text. The time constants and
//! the mean are those of OPAL's `metrics.cxx`, which implements the same model. There the impairment by loss
//! is averaged in this way. We average R, because the delay of an adaptive receiver changes, too. The model's
//! further term for the age of the last burst (30 s) is left out, so that a score does not depend on the
//! moment at which a run ends.
//!
//! # More loss never raises the score
//!
//! This holds as long as the frames that are played keep their delay. If a call loses its slowest frames, its
//! mean delay falls, and R may rise.
//!
//! - The averaged R rises with the R of each window, because a listener whose opinion is lower at one time
//!   and who hears nothing better later never has a higher opinion.
//! - Within a window the E-model alone has no such property: single lost frames beside one long gap lower the
//!   burst ratio, and with it the impairment. So a window is rated by the worst of its parts: the longest gap
//!   alone, the two longest gaps, and so on to all gaps.
//! - A window outside the model on its bad side has R = 0.
//!
//! A call that is shorter than 8 s is one window. A call of 10 to 16 s has two windows of 8 s, which overlap.
//! The caller leaves the opening second out.

use talkpath_config::Rated;
use talkpath_units::Duration;

use super::e_model;
use super::timeline::Timeline;

/// The shortest window of a call that lasts at least as long. We chose 8 to 10 s, because listeners judge
/// samples of about 8 s in tests after ITU-T P.800.
pub const SHORTEST_WINDOW: Duration = Duration::from_secs(8);
/// The longest window.
pub const LONGEST_WINDOW: Duration = Duration::from_secs(10);

/// The time constant in s with which the opinion falls (ETSI TS 101 329-5, Annex E).
const FALL_S: f64 = 5.0;
/// The time constant in s with which the opinion recovers (the same).
const RECOVERY_S: f64 = 15.0;

/// The windows of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Windows {
    /// The rating factor of the call.
    pub(crate) r: f64,
    pub(crate) count: u64,
    /// The length of a window.
    pub(crate) seconds: f64,
}

/// The part of a rating that the windows of a call have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowTerms {
    /// The delay from mouth to ear of a frame that is played as soon as it is due, in ms. `None` if the
    /// delays are not known, so that the loss alone decides.
    pub(crate) least_delay_ms: Option<f64>,
    pub(crate) codec: Rated,
}

/// Rates `call`. Returns `None` if it has no unit.
pub(crate) fn rate(call: &Timeline, terms: &WindowTerms) -> Option<Windows> {
    let units = call.units();
    if units == 0 {
        return None;
    }
    let count = units.div_ceil(call.units_in(LONGEST_WINDOW));
    let length = units.div_ceil(count).max(call.units_in(SHORTEST_WINDOW)).min(units);
    let ratings: Vec<f64> = (0..count)
        .map(|number| {
            // Windows of 8 s overlap if the call is too short for so many of them.
            let begin = if count == 1 { 0 } else { (units - length) * number / (count - 1) };
            rate_window(&call.part(begin..begin + length), terms)
        })
        .collect();
    let r = perceived_mean(&ratings, call.seconds() / count as f64);
    let seconds = call.seconds() * length as f64 / units as f64;
    Some(Windows { r, count, seconds })
}

/// Returns the R of a window.
fn rate_window(window: &Timeline, terms: &WindowTerms) -> f64 {
    let Some(delay) = window.mouth_to_ear_ms(terms.least_delay_ms.unwrap_or(0.0)) else { return 0.0 };
    let knows_delay = terms.least_delay_ms.is_some();
    let call = e_model::Call {
        // A clock that is a little off can make a delay negative.
        mouth_to_ear_ms: if knows_delay { delay.mean.max(0.0) } else { 0.0 },
        loss: window.frames().loss().unwrap_or(1.0),
        burst_ratio: 1.0,
        codec: terms.codec,
    };
    if call.is_beyond() { 0.0 } else { rate_worst_part(window, &call) }
}

/// Rates the worst among the longest gap of a window, the two longest gaps, and so on.
fn rate_worst_part(window: &Timeline, call: &e_model::Call) -> f64 {
    let mut gaps = window.gap_lengths();
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    let units = window.units() as f64;
    let mut least = e_model::Call { loss: 0.0, ..*call }.rate().r;
    let mut lost = 0;
    for (number, gap) in (1..).zip(gaps) {
        lost += gap;
        let loss = lost as f64 / units;
        let burst_ratio = (window.frames_of(lost) / f64::from(number) * (1.0 - loss)).max(1.0);
        least = least.min(e_model::Call { loss, burst_ratio, ..*call }.rate().r);
    }
    least
}

/// Returns the mean over time of an opinion that follows `ratings`, each of which lasts for `seconds`. The
/// opinion begins with the first rating.
fn perceived_mean(ratings: &[f64], seconds: f64) -> f64 {
    let Some(first) = ratings.first() else { return 0.0 };
    let mut opinion = *first;
    let mut sum = 0.0;
    for rating in ratings {
        let time_constant = if *rating < opinion { FALL_S } else { RECOVERY_S };
        let remaining = (-seconds / time_constant).exp();
        let distance = opinion - rating;
        sum += rating * seconds + distance * time_constant * (1.0 - remaining);
        opinion = rating + distance * remaining;
    }
    sum / (seconds * ratings.len() as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talkpath_config::{Codec, Impairment};

    use super::*;
    use crate::metrics::playout::Heard;

    const FRAME: Duration = Duration::from_millis(20);

    fn terms(codec: Rated) -> WindowTerms {
        WindowTerms { least_delay_ms: Some(20.0), codec }
    }

    fn narrow(ie: f64, bpl: f64) -> Rated {
        Rated { impairment: Impairment { ie, bpl }, ..Codec::G711.rated(true).unwrap() }
    }

    fn timeline(is_played: impl IntoIterator<Item = bool>) -> Timeline {
        let mut timeline = Timeline::new(FRAME, FRAME);
        for is_played in is_played {
            timeline.push(if is_played { Heard::Played } else { Heard::Missing }, 50_000_000, 1);
        }
        timeline
    }

    fn r(is_played: impl IntoIterator<Item = bool>) -> f64 {
        rate(&timeline(is_played), &terms(Codec::G711.rated(true).unwrap())).unwrap().r
    }

    #[test]
    fn windows_last_8_to_10_seconds_and_a_short_call_is_one() {
        let windows = |seconds: u64| {
            let call = timeline((0..seconds * 50).map(|_| true));
            let windows = rate(&call, &terms(Codec::G711.rated(true).unwrap())).unwrap();
            (windows.count, windows.seconds)
        };
        assert_eq!([2, 7, 8, 10].map(windows), [(1, 2.0), (1, 7.0), (1, 8.0), (1, 10.0)]);
        assert_eq!([12, 16, 19, 60].map(windows), [(2, 8.0), (2, 8.0), (2, 9.5), (6, 10.0)]);
        for seconds in 8..100 {
            assert!((8.0..=10.0).contains(&windows(seconds).1), "{seconds}");
        }
    }

    #[test]
    fn an_even_call_has_the_rating_of_each_window() {
        let whole = e_model::Call {
            mouth_to_ear_ms: 70.0,
            loss: 0.02,
            burst_ratio: 1.0,
            codec: Codec::G711.rated(true).unwrap(),
        };
        assert!((r((0..3_000).map(|number| number % 50 != 7)) - whole.rate().r).abs() < 1e-9);
    }

    #[test]
    fn the_opinion_falls_with_a_time_constant_of_5_s_and_recovers_with_15_s() {
        let by_hand = |first: f64, second: f64, time: f64| {
            (first * 10.0 + second * 10.0 + (first - second) * time * (1.0 - (-10.0 / time).exp())) / 20.0
        };
        assert!((perceived_mean(&[80.0, 40.0], 10.0) - by_hand(80.0, 40.0, 5.0)).abs() < 1e-9);
        assert!((perceived_mean(&[40.0, 80.0], 10.0) - by_hand(40.0, 80.0, 15.0)).abs() < 1e-9);
        assert!((perceived_mean(&[40.0; 7], 9.0) - 40.0).abs() < 1e-9);
    }

    /// A gap of 23 frames of 500, and then 59 single frames more: the E-model alone finds the second better.
    #[test]
    fn single_losses_beside_a_long_gap_do_not_raise_the_score() {
        let codec = Codec::G711.rated(false).unwrap();
        let alone = |lost: f64, gaps: f64| {
            let loss = lost / 500.0;
            let burst_ratio = lost / gaps * (1.0 - loss);
            e_model::Call { mouth_to_ear_ms: 70.0, loss, burst_ratio, codec }.rate().r
        };
        assert!(alone(82.0, 60.0) > alone(23.0, 1.0) + 5.0);
        let gap = |number: usize| !(100..123).contains(&number);
        let more = |number: usize| {
            gap(number) && !((130..=478).contains(&number) && (number - 130).is_multiple_of(6))
        };
        assert_eq!((0..500).filter(|&number| !more(number)).count(), 82);
        let score = |pattern: &dyn Fn(usize) -> bool| {
            rate(&timeline((0..500).map(pattern)), &terms(codec)).unwrap().r
        };
        let (gap_alone, with_more) = (score(&gap), score(&more));
        assert!(with_more <= gap_alone && gap_alone > 0.0, "{gap_alone} {with_more}");
    }

    #[test]
    fn a_window_in_which_more_than_a_fifth_is_lost_has_no_rating_left() {
        assert!(r((0..500).map(|number| number % 5 != 0)) > 20.0);
        assert_eq!(r((0..500).map(|number| number % 4 != 0)).to_bits(), 0_f64.to_bits());
    }

    /// Gaps of some frames, anywhere, and further lost frames.
    fn any_pattern() -> impl Strategy<Value = (Vec<bool>, Vec<usize>)> {
        (1_usize..2_000).prop_flat_map(|frames| {
            let gaps = proptest::collection::vec((0..frames, 1_usize..150), 0..30);
            let more = proptest::collection::vec(0..frames, 1..60);
            (gaps, more).prop_map(move |(gaps, more)| {
                let mut pattern = vec![true; frames];
                for (begin, length) in gaps {
                    pattern[begin..(begin + length).min(frames)].fill(false);
                }
                (pattern, more)
            })
        })
    }

    proptest! {
        #![proptest_config(talkpath_testing::properties(512))]

        #[test]
        fn more_lost_frames_never_raise_the_score(
            (pattern, more) in any_pattern(), bpl in 4.3..40_f64, ie in 0.0..40_f64,
        ) {
            let terms = terms(narrow(ie, bpl));
            let before = rate(&timeline(pattern.iter().copied()), &terms).unwrap().r;
            let mut worse = pattern;
            more.into_iter().for_each(|lost| worse[lost] = false);
            let after = rate(&timeline(worse), &terms).unwrap().r;
            prop_assert!(after <= before + 1e-9, "{before} {after}");
        }

        #[test]
        fn a_longer_gap_never_raises_the_score(
            (pattern, more) in any_pattern(), bpl in 4.3..40_f64, longer in 1_usize..100,
        ) {
            // The gap that begins at the first lost frame becomes longer.
            let terms = terms(narrow(0.0, bpl));
            let mut pattern = pattern;
            pattern[more[0]] = false;
            let before = rate(&timeline(pattern.iter().copied()), &terms).unwrap().r;
            let end = (more[0] + longer).min(pattern.len());
            pattern[more[0]..end].fill(false);
            let after = rate(&timeline(pattern), &terms).unwrap().r;
            prop_assert!(after <= before + 1e-9, "{before} {after}");
        }

        #[test]
        fn the_mean_opinion_rises_with_each_rating(
            ratings in proptest::collection::vec(0.0..93.2_f64, 1..12), which in 0_usize..12, by in 0.0..50_f64,
        ) {
            let mut better = ratings.clone();
            let which = which % better.len();
            better[which] += by;
            let (before, after) = (perceived_mean(&ratings, 9.0), perceived_mean(&better, 9.0));
            prop_assert!(after >= before - 1e-9);
            let (least, most) = (0.0, ratings.iter().copied().fold(0.0, f64::max));
            prop_assert!((least..=most + 1e-9).contains(&before));
        }
    }
}
