//! Where the messages of a stream lie: stream transports carry bytes, and this finds the messages among them.
//!
//! ```text
//! stream bytes   0          160         320        480
//!                |  seq 0    |  seq 1    |  seq 3   |
//! position            0           1           2            the order in the stream; seq 2 was refused
//! ```

use std::collections::VecDeque;

/// A message of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedMessage {
    pub(super) seq: u64,
    /// The offset after the last byte of the message.
    pub(super) end: u64,
}

/// A range of stream bytes. The byte at `end` is not included.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByteRange {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The messages of a stream in order. Old messages can be forgotten; the positions of the others stay.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct StreamLayout {
    messages: VecDeque<PlacedMessage>,
    /// The position of the first message in `messages`.
    first_position: usize,
    /// The offset after the last byte of all messages.
    end: u64,
    /// The offset of the first byte of the first message in `messages`.
    start: u64,
}

impl StreamLayout {
    /// Adds message `seq` of `size` bytes after the messages before it.
    pub(super) fn push(&mut self, seq: u64, size: u64) {
        self.end = self.end.saturating_add(size);
        self.messages.push_back(PlacedMessage { seq, end: self.end });
    }

    /// Returns the offset after the last byte of all messages.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Returns the message at `position`. Returns `None` if it was forgotten, or is not in the stream yet.
    #[inline]
    pub(super) fn message(&self, position: usize) -> Option<PlacedMessage> {
        self.messages.get(position.checked_sub(self.first_position)?).copied()
    }

    /// Returns the offset of the first byte of the message at `position`.
    pub(super) fn first_byte(&self, position: usize) -> u64 {
        let before = position.checked_sub(1).and_then(|before| self.message(before));
        before.map_or(self.start, |message| message.end)
    }

    /// Returns the position of the message that has the byte at `offset`.
    pub(super) fn position_of_byte(&self, offset: u64) -> usize {
        self.first_position + self.messages.partition_point(|message| message.end <= offset)
    }

    /// Forgets all messages before `position`, but keeps the last of them.
    pub(super) fn forget_before(&mut self, position: usize) {
        while self.first_position + 1 < position
            && let Some(message) = self.messages.pop_front()
        {
            self.first_position += 1;
            self.start = message.end;
        }
    }

    /// Gives each message the number that `new_number` returns for its old one. The stream ends before the
    /// first message without a new number.
    pub(super) fn renumber(&mut self, new_number: impl Fn(u64) -> Option<u64>) {
        let mut renumbered = VecDeque::new();
        for message in &self.messages {
            let Some(seq) = new_number(message.seq) else { break };
            renumbered.push_back(PlacedMessage { seq, ..*message });
        }
        self.end = renumbered.back().map_or(self.start, |message| message.end);
        self.messages = renumbered;
    }

    /// Returns how many messages are kept in memory.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }
}
