//! Segments that wait for the next poll, and counts of the segments that have left.

use std::collections::VecDeque;

use talkpath_wire::Transmit;

/// Segments that wait for the next poll, and counts of the segments that have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    /// Segments that were made while an acknowledgement was processed, before anybody polled.
    repairs: VecDeque<Transmit>,
    /// Packets with data that have left.
    data_packets: u64,
    /// Those of `data_packets` whose data had been sent before.
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
    /// Packets with data that left, and how many carried data that was sent before.
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
