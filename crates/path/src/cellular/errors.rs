//! Errors of blocks, and their repetitions (HARQ).

use talkpath_units::{Duration, Stream};

use super::config::{Harq, ttis};

/// Draws how often each block is sent.
#[derive(Debug)]
pub(super) struct Errors {
    harq: Harq,
    stream: Stream,
}

/// What becomes of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockFate {
    /// The number of repetitions before the block is read or given up.
    pub(super) repeats: u32,
    /// How much later than its first transmission it is read.
    pub(super) later: Duration,
}

/// The number of rounds of RLC after which a block is read, whatever the draw. With the errors that a
/// scenario may have (one half at most) it happens once in 2^64 blocks.
const MOST_ROUNDS: u64 = 16;

impl Errors {
    /// A repetition comes a whole number of `tti` after its block.
    pub(super) fn new(harq: &Harq, tti: Duration, stream: Stream) -> Self {
        let delay = tti.saturating_mul(ttis(harq.delay, tti));
        Self { harq: Harq { delay, ..*harq }, stream }
    }

    /// Draws the fate of the next block.
    pub(super) fn draw(&mut self) -> BlockFate {
        let Harq { block_error, delay, recovery, .. } = self.harq;
        // Without errors nothing is drawn.
        if block_error <= 0.0 {
            return BlockFate::default();
        }
        let mut later = Duration::ZERO;
        let (first, mut is_read) = self.round();
        let mut repeats = first;
        for _ in 0..MOST_ROUNDS {
            later = later.saturating_add(delay.saturating_mul(u64::from(repeats)));
            if is_read {
                break;
            }
            later = later.saturating_add(recovery);
            (repeats, is_read) = self.round();
        }
        BlockFate { repeats: first, later }
    }

    /// Draws the number of repetitions of one round, and whether the block is read in it.
    fn round(&mut self) -> (u32, bool) {
        let mut is_read = !self.stream.chance(self.harq.block_error);
        let mut repeats = 0;
        while !is_read && repeats + 1 < self.harq.attempts {
            repeats += 1;
            is_read = !self.stream.chance(self.harq.repeat_error);
        }
        (repeats, is_read)
    }
}
