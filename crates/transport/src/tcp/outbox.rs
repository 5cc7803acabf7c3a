//! What waits to leave, and what left.

use std::collections::VecDeque;

use crate::Transmit;

/// Segments that were decided on and wait for the next poll, and counts of what left.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    repairs: VecDeque<Transmit>,
    data_packets: u64,
    retransmissions: u64,
}

/// What a poll gives.
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
    /// Packets with data that left, and how many of them carried data that was sent before.
    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.data_packets, self.retransmissions)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.repairs.is_empty()
    }

    #[inline]
    pub(super) fn count(&mut self, data_packets: u64, retransmissions: u64) {
        self.data_packets += data_packets;
        self.retransmissions += retransmissions;
    }

    pub(super) fn push(&mut self, repair: Transmit) {
        self.repairs.push_back(repair);
    }

    /// The connection has ended.
    pub(super) fn clear(&mut self) {
        self.repairs.clear();
    }

    pub(super) fn pop(&mut self) -> Option<Transmit> {
        self.repairs.pop_front()
    }
}
