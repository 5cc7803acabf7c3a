//! Segments that wait for the next poll, and counts of the segments that have left.
//!
//! A segment waits here if it was made while an arriving segment was processed. It acknowledges only the data
//! that had arrived by then.

use std::collections::VecDeque;

use talkpath_wire::Transmit;

/// Segments that wait for the next poll, and counts of the segments that have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Transmit>,
    /// The number of packets with data that have left.
    data_packets: u64,
    /// The number of these packets whose data had been sent before.
    retransmissions: u64,
}

/// What a poll returns.
#[derive(Clone, Debug)]
pub(super) enum Polled {
    /// A segment. More may follow.
    Next(Transmit),
    /// The last segment before the next input.
    Last(Transmit),
    /// No segment leaves before the next input.
    Nothing,
}

impl Outbox {
    /// Returns the number of packets with data that have left, and the number of retransmissions among them.
    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.data_packets, self.retransmissions)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    #[inline]
    pub(super) fn count(&mut self, data_packets: u64, retransmissions: u64) {
        self.data_packets += data_packets;
        self.retransmissions += retransmissions;
    }

    pub(super) fn push(&mut self, segment: Transmit) {
        self.waiting.push_back(segment);
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn pop(&mut self) -> Option<Transmit> {
        self.waiting.pop_front()
    }
}
