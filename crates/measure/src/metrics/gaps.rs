//! Gaps of a call: consecutive frames that were not played in time, because they were late or missing.
//!
//! A mean score hides a hole: of a minute, one second without speech takes less from it than 2 % of losses at
//! random, and nobody talks on through it. So a second rule applies. A call is not usable with
//!
//! - a gap of [`LONGEST`] or more, or
//! - two gaps of [`LONG`] or more that began within [`MINUTE`].
//!
//! Both are chosen: whole words are missing in either. A gap is as long as its frames are.

use std::collections::VecDeque;

use talkpath_units::Duration;

/// A gap this long bars "usable" by itself. Chosen.
pub const LONGEST: Duration = Duration::from_secs(1);
/// Two gaps this long within a minute bar "usable". Chosen.
pub const LONG: Duration = Duration::from_millis(200);
/// From the beginning of one gap to that of the other. Chosen.
pub const MINUTE: Duration = Duration::from_secs(60);

/// Counts the gaps of one listener.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gaps {
    frame: Duration,
    /// Frames so far.
    frames: u64,
    /// Gaps so far.
    pub(crate) count: u64,
    /// Frames of the gap that the last frame is in; 0 if it was played.
    current: u64,
    /// Frames of the longest gap.
    longest: u64,
    /// The first frame of each long gap that began within the last minute.
    recent: VecDeque<u64>,
    /// The most of these at any time.
    most_recent: usize,
}

impl Gaps {
    /// Of a call whose frames are `frame` apart.
    pub(crate) fn new(frame: Duration) -> Self {
        Self { frame, ..Self::default() }
    }

    /// The next frame that was due.
    pub(crate) fn add(&mut self, is_played: bool) {
        let number = self.frames;
        self.frames += 1;
        if is_played {
            self.current = 0;
            return;
        }
        self.current += 1;
        self.count += u64::from(self.current == 1);
        self.longest = self.longest.max(self.current);
        if self.current == self.frames_of(LONG) {
            self.add_long(number + 1 - self.current);
        }
    }

    /// A long gap whose first frame is number `first`.
    fn add_long(&mut self, first: u64) {
        let minute = self.frames_of(MINUTE);
        while self.recent.front().is_some_and(|before| first - before >= minute) {
            self.recent.pop_front();
        }
        self.recent.push_back(first);
        self.most_recent = self.most_recent.max(self.recent.len());
    }

    /// The longest gap.
    pub(crate) fn longest_ms(&self) -> f64 {
        self.longest as f64 * self.frame.as_millis_f64()
    }

    /// The most gaps of [`LONG`] or more that began within a minute.
    pub(crate) const fn most_in_a_minute(&self) -> u64 {
        self.most_recent as u64
    }

    /// The fewest frames that last as long as `time`.
    fn frames_of(&self, time: Duration) -> u64 {
        time.as_nanos().div_ceil(self.frame.as_nanos().max(1))
    }
}

/// Whether gaps bar a call from being usable: its longest, ms, and the most long ones within a minute.
pub fn bar(longest_ms: f64, in_a_minute: u64) -> bool {
    longest_ms >= LONGEST.as_millis_f64() || in_a_minute >= 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gaps of 20 ms frames, of which `is_gap` says which are in one.
    fn counted(frames: u64, is_gap: impl Fn(u64) -> bool) -> Gaps {
        let mut gaps = Gaps::new(Duration::from_millis(20));
        (0..frames).for_each(|number| gaps.add(!is_gap(number)));
        gaps
    }

    fn bars(gaps: &Gaps) -> bool {
        bar(gaps.longest_ms(), gaps.most_in_a_minute())
    }

    #[test]
    fn a_gap_of_one_second_bars_and_one_of_a_frame_less_does_not() {
        let second = counted(500, |number| (100..150).contains(&number));
        assert_eq!((second.count, second.longest_ms(), second.most_in_a_minute()), (1, 1000.0, 1));
        assert!(bars(&second));
        let less = counted(500, |number| (100..149).contains(&number));
        assert_eq!((less.longest_ms(), bars(&less)), (980.0, false));
    }

    #[test]
    fn two_gaps_of_200_ms_within_a_minute_bar_and_two_further_apart_do_not() {
        // The second begins one frame before a minute after the first, or a minute after it.
        let two =
            |second: u64| counted(9_000, |n| (50..60).contains(&n) || (second..second + 10).contains(&n));
        assert_eq!((two(3_049).most_in_a_minute(), bars(&two(3_049))), (2, true));
        assert_eq!((two(3_050).most_in_a_minute(), bars(&two(3_050))), (1, false));
        // Many shorter ones are no hole.
        let short = counted(9_000, |number| number % 100 < 9);
        assert_eq!((short.longest_ms(), short.most_in_a_minute(), bars(&short)), (180.0, 0, false));
    }

    #[test]
    fn a_gap_of_frames_that_do_not_divide_200_ms_is_long_from_there_on() {
        let mut gaps = Gaps::new(Duration::from_millis(30));
        (0..6).for_each(|_| gaps.add(false));
        assert_eq!((gaps.longest_ms(), gaps.most_in_a_minute()), (180.0, 0));
        gaps.add(false);
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
                (0..played).for_each(|_| gaps.add(true));
                (0..lost).for_each(|_| gaps.add(false));
                begins.extend((lost >= 10).then_some(at + played));
                at += played + lost;
            }
            let within = |begin: &u64| begins.iter().filter(|it| (*begin..begin + 3_000).contains(*it)).count();
            let most = begins.iter().map(within).max().unwrap_or(0) as u64;
            let longest = runs.iter().map(|(_, lost)| lost).max().unwrap();
            prop_assert_eq!((gaps.count, gaps.most_in_a_minute()), (runs.len() as u64, most));
            prop_assert_eq!(gaps.longest_ms(), *longest as f64 * 20.0);
            prop_assert_eq!(bars(&gaps), *longest >= 50 || most >= 2);
        }
    }
}
