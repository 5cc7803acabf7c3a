//! How fast speech may be stretched.
//!
//! NetEq removes or repeats one pitch period where the signal allows it. A pitch period is 2.5 to 15 ms long,
//! and at least 60 ms lie between two of them (`decision_logic.h`). We have no signal. Instead each removal
//! or repetition is [`CHANGE_MS`] long, and it always succeeds. So the delay changes by 83 ms in a second.
//! With recorded speech NetEq changes it by up to 140 ms in a second, and by less where the signal does not
//! allow it.

use super::BLOCK_MS;

/// The speech that is removed or repeated at once, in ms. We chose it: with 6 ms a delay that grows by 100 ms
/// in a second is followed with less than half of the concealment that NetEq needs (`ramps-500` in
/// `tests/neteq.rs`).
pub(super) const CHANGE_MS: i64 = 5;

/// The speech that must be decoded before it can be stretched, in ms (NetEq, `accelerate.cc`).
pub(super) const NEEDED_MS: i64 = 30;

/// The number of blocks between two changes. NetEq waits for five blocks from the block after the change.
const PAUSE: i64 = 60 / BLOCK_MS;

/// The change of the delay that the receiver wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The delay is above the upper limit: speech is removed.
    Shrink,
    /// The delay is below the target: speech is repeated.
    Grow,
}

/// The pause between two changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pause {
    /// The number of the block with the last change. 0 if there was none, because a stream begins with a
    /// pause, too.
    last_change: i64,
}

impl Pause {
    pub(super) const fn is_over(self, block: i64) -> bool {
        block - self.last_change >= PAUSE
    }

    pub(super) const fn begin(&mut self, block: i64) {
        self.last_change = block;
    }
}

/// Returns the change that brings a delay to the target. The delay may be above the target by the largest
/// relative delay of the last two seconds and by the step of a change (NetEq, `decision_logic.cc`). Four
/// times this limit needs no pause.
pub(super) fn wanted_change(
    delay_ms: u32,
    target_ms: u32,
    largest_delay_ms: u32,
    is_pause_over: bool,
) -> Option<Change> {
    let upper_limit = target_ms + largest_delay_ms + STEP_MS;
    if delay_ms >= 4 * upper_limit || (is_pause_over && delay_ms >= upper_limit) {
        Some(Change::Shrink)
    } else if is_pause_over && delay_ms < target_ms {
        Some(Change::Grow)
    } else {
        None
    }
}

/// The step of a change for the upper limit, in ms: 15 ms, rounded up to whole blocks (NetEq,
/// `decision_logic.cc`).
const STEP_MS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_may_lie_between_the_target_and_the_upper_limit() {
        let wanted = |delay_ms| wanted_change(delay_ms, 60, 30, true);
        assert_eq!([59, 60, 109, 110].map(wanted), [Some(Change::Grow), None, None, Some(Change::Shrink)]);
    }

    #[test]
    fn four_times_the_upper_limit_shrinks_without_a_pause() {
        let wanted = |delay_ms| wanted_change(delay_ms, 60, 30, false);
        assert_eq!([59, 110, 439, 440].map(wanted), [None, None, None, Some(Change::Shrink)]);
    }

    #[test]
    fn a_change_may_follow_60_ms_after_another() {
        let mut pause = Pause::default();
        assert!(!pause.is_over(5) && pause.is_over(6));
        pause.begin(6);
        assert!(!pause.is_over(11) && pause.is_over(12));
    }
}
