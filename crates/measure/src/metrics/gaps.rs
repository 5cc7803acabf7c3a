//! Gaps of a call: consecutive frames that were not played, because they were late or missing.
//!
//! A mean score hides a gap. One second without speech lowers the score of a minute less than random losses
//! of 2 % do, but nobody can go on talking through it. So a second rule applies. A call is not usable if it
//! has
//!
//! - a gap of [`LONGEST`] or more, or
//! - two gaps of [`LONG`] or more that begin within [`MINUTE`].
//!
//! We chose both limits, because whole words are missing in either case. The length of a gap is the length of
//! its frames.

use std::collections::VecDeque;

use talkpath_units::Duration;

/// One gap of this length makes a call unusable.
pub const LONGEST: Duration = Duration::from_secs(1);
/// Two gaps of this length within a minute make a call unusable.
pub const LONG: Duration = Duration::from_millis(200);
/// The time between the beginnings of two long gaps must be shorter than this, if both are to count.
pub const MINUTE: Duration = Duration::from_secs(60);

/// Counts the gaps that one listener hears.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gaps {
    frame: Duration,
    /// The number of frames so far.
    frames: u64,
    /// The number of gaps so far.
    pub(crate) count: u64,
    /// The length of the current gap in frames. 0 if the last frame was played.
    current_length: u64,
    /// The length of the longest gap in frames.
    longest: u64,
    /// The numbers of the first frames of the long gaps that began within the last minute.
    recent_long_gaps: VecDeque<u64>,
    /// The largest number of long gaps that began within a minute.
    most_in_a_minute: usize,
}

impl Gaps {
    /// Makes the counters for a call with a frame every `frame`.
    pub(crate) fn new(frame: Duration) -> Self {
        Self { frame, ..Self::default() }
    }

    /// Adds the next `count` frames that were due, all of which were played, or none.
    pub(crate) fn add(&mut self, is_played: bool, count: u64) {
        let number = self.frames;
        self.frames += count;
        if is_played && count > 0 {
            self.current_length = 0;
        }
        if is_played || count == 0 {
            return;
        }
        let before = self.current_length;
        self.current_length += count;
        self.count += u64::from(before == 0);
        self.longest = self.longest.max(self.current_length);
        let long = self.frames_in(LONG);
        if before < long && self.current_length >= long {
            self.add_long_gap(number - before);
        }
    }

    fn add_long_gap(&mut self, first_frame: u64) {
        let minute = self.frames_in(MINUTE);
        while self.recent_long_gaps.front().is_some_and(|earlier| first_frame - earlier >= minute) {
            self.recent_long_gaps.pop_front();
        }
        self.recent_long_gaps.push_back(first_frame);
        self.most_in_a_minute = self.most_in_a_minute.max(self.recent_long_gaps.len());
    }

    /// Returns the length of the longest gap.
    pub(crate) fn longest_ms(&self) -> f64 {
        self.longest as f64 * self.frame.as_millis_f64()
    }

    /// Returns the largest number of gaps of [`LONG`] or more that began within a minute.
    pub(crate) const fn most_in_a_minute(&self) -> u64 {
        self.most_in_a_minute as u64
    }

    /// Returns the smallest number of frames that last for `time` or longer.
    fn frames_in(&self, time: Duration) -> u64 {
        time.as_nanos().div_ceil(self.frame.as_nanos().max(1))
    }
}

/// Returns whether gaps make a call unusable. `most_in_a_minute` is the largest number of long gaps within a
/// minute.
pub fn make_unusable(longest_ms: f64, most_in_a_minute: u64) -> bool {
    longest_ms >= LONGEST.as_millis_f64() || most_in_a_minute >= 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gaps of 20 ms frames, of which `is_gap` says which are in one.
    fn counted(frames: u64, is_gap: impl Fn(u64) -> bool) -> Gaps {
        let mut gaps = Gaps::new(Duration::from_millis(20));
        (0..frames).for_each(|number| gaps.add(!is_gap(number), 1));
        gaps
    }

    fn are_unusable(gaps: &Gaps) -> bool {
        make_unusable(gaps.longest_ms(), gaps.most_in_a_minute())
    }

    #[test]
    fn a_gap_of_one_second_makes_a_call_unusable_and_a_gap_of_one_frame_less_does_not() {
        let second = counted(500, |number| (100..150).contains(&number));
        assert_eq!((second.count, second.longest_ms(), second.most_in_a_minute()), (1, 1000.0, 1));
        assert!(are_unusable(&second));
        let less = counted(500, |number| (100..149).contains(&number));
        assert_eq!((less.longest_ms(), are_unusable(&less)), (980.0, false));
    }

    #[test]
    fn two_gaps_of_200_ms_within_a_minute_make_a_call_unusable_and_two_further_apart_do_not() {
        // The second begins one frame before a minute after the first, or a minute after it.
        let two =
            |second: u64| counted(9_000, |n| (50..60).contains(&n) || (second..second + 10).contains(&n));
        assert_eq!((two(3_049).most_in_a_minute(), are_unusable(&two(3_049))), (2, true));
        assert_eq!((two(3_050).most_in_a_minute(), are_unusable(&two(3_050))), (1, false));
        // Many shorter ones are no hole.
        let short = counted(9_000, |number| number % 100 < 9);
        assert_eq!((short.longest_ms(), short.most_in_a_minute(), are_unusable(&short)), (180.0, 0, false));
    }

    #[test]
    fn a_gap_of_frames_that_do_not_divide_200_ms_is_long_from_there_on() {
        let mut gaps = Gaps::new(Duration::from_millis(30));
        (0..6).for_each(|_| gaps.add(false, 1));
        assert_eq!((gaps.longest_ms(), gaps.most_in_a_minute()), (180.0, 0));
        gaps.add(false, 1);
        assert_eq!((gaps.longest_ms(), gaps.most_in_a_minute()), (210.0, 1));
    }

    proptest! {
        /// Against a count by hand over the whole call.
        #[test]
        fn the_longest_gap_and_the_long_ones_within_a_minute_are_those_of_the_frames(
            runs in proptest::collection::vec((1_u64..2_000, 1_u64..80), 1..12),
        ) {
            let mut gaps = Gaps::new(Duration::from_millis(20));
            let (mut begins, mut at) = (Vec::new(), 0);
            for &(played, lost) in &runs {
                gaps.add(true, played);
                (0..lost).for_each(|_| gaps.add(false, 1));
                begins.extend((lost >= 10).then_some(at + played));
                at += played + lost;
            }
            let within = |begin: &u64| begins.iter().filter(|it| (*begin..begin + 3_000).contains(*it)).count();
            let most = begins.iter().map(within).max().unwrap_or(0) as u64;
            let longest = runs.iter().map(|(_, lost)| lost).max().unwrap();
            prop_assert_eq!((gaps.count, gaps.most_in_a_minute()), (runs.len() as u64, most));
            prop_assert_eq!(gaps.longest_ms(), *longest as f64 * 20.0);
            prop_assert_eq!(are_unusable(&gaps), *longest >= 50 || most >= 2);
            let mut at_once = Gaps::new(Duration::from_millis(20));
            for &(played, lost) in &runs {
                at_once.add(true, played);
                at_once.add(false, lost / 2);
                at_once.add(false, lost - lost / 2);
            }
            prop_assert_eq!(at_once, gaps);
        }
    }
}
