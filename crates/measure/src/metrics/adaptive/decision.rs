//! What the receiver does for the next block.

use super::stretching::{Change, wanted_change};
use super::{BLOCK_MS, FADED_MS, JitterBuffer};

/// The time in ms by which the speech that waits may exceed the target during a hole, before the rest of the
/// hole is skipped (NetEq, `decision_logic.cc`).
const WAITING_BEYOND_TARGET_MS: i64 = 50;

/// What the receiver does for the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Plays the speech that follows.
    Play,
    /// Plays speech that does not follow, after concealment.
    Merge,
    /// Makes up speech, if too little of it is decoded.
    Conceal,
    /// Plays the speech that follows, and makes it longer or shorter.
    Stretch(Change),
}

impl JitterBuffer {
    pub(super) fn decide(&self) -> Decision {
        let Some((&timestamp, _)) = self.packets.first_key_value() else { return Decision::Conceal };
        if self.begins_stream {
            return Decision::Play;
        }
        if self.waits_for_half_of_target() {
            return Decision::Conceal;
        }
        if timestamp == self.next_timestamp {
            self.decide_without_hole()
        } else {
            self.decide_in_hole(timestamp)
        }
    }

    /// The next packet follows what was decoded. After concealment it is played as it is.
    fn decide_without_hole(&self) -> Decision {
        if self.is_concealing {
            return Decision::Play;
        }
        let next_to_play = self.next_timestamp - self.ahead;
        let delay_ms = self.history.relative_delay_ms(next_to_play, self.now_ms());
        let (largest_ms, is_pause_over) = (self.history.largest_delay_ms(), self.pause.is_over(self.block));
        match wanted_change(delay_ms, self.target_ms, largest_ms, is_pause_over) {
            Some(change) => Decision::Stretch(change),
            None => Decision::Play,
        }
    }

    /// Speech is missing before the next packet. It is concealed for as long as it would have lasted, unless
    /// too much speech waits behind it.
    fn decide_in_hole(&self, timestamp: i64) -> Decision {
        let is_concealed = timestamp - self.next_timestamp <= self.concealed_blocks * self.block_samples();
        let is_too_much = self.waiting_ms() > i64::from(self.target_ms) + WAITING_BEYOND_TARGET_MS;
        if (is_concealed || is_too_much) && self.is_concealing { Decision::Merge } else { Decision::Conceal }
    }

    /// Whether a long concealment goes on, because less than half of the target has arrived.
    fn waits_for_half_of_target(&self) -> bool {
        let is_faded = self.concealed_blocks * BLOCK_MS > FADED_MS;
        self.is_concealing && is_faded && self.waiting_ms() < i64::from(self.target_ms / 2)
    }

    /// How much speech waits: from the first timestamp in the buffer to the last one, and the time for which
    /// the last packet has been there.
    fn waiting_ms(&self) -> i64 {
        let first_and_last = self.packets.first_key_value().zip(self.packets.last_key_value());
        let Some(((first, _), (last, packet))) = first_and_last else { return 0 };
        (last - first) / self.samples_per_ms + (self.block - packet.block) * BLOCK_MS
    }
}
