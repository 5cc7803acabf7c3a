//! A segment in the retransmission queue, and what is known about it.

use talkpath_units::Instant;

/// A new segment that leaves.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct NewSegment {
    /// The number of unsent bytes that the segment carries.
    pub(in crate::tcp) payload: u32,
    /// True if the segment carries the FIN.
    pub(in crate::tcp) fin: bool,
    /// True if the segment leaves in one burst with the segment before it.
    pub(in crate::tcp) in_burst: bool,
}

impl NewSegment {
    /// A segment that a probe forces out: it has no FIN, and is a burst of its own.
    pub(in crate::tcp) const fn forced(payload: u32) -> Self {
        Self { payload, fin: false, in_burst: false }
    }
}

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct SentSegment {
    /// The offset one past the segment's last byte. Its FIN takes an offset, too.
    end: u64,
    /// When the segment was last sent.
    sent_at: Instant,
    /// In bytes.
    payload: u32,
    fin: bool,
    /// True if the segment left in one burst with the segment before it.
    in_burst: bool,
    /// True if the segment has the PSH bit: when it was first sent, no written byte was left behind it. A
    /// retransmission has the bit, too.
    pushed: bool,
    marks: Marks,
}

/// The latest transmission of a segment.
///
/// Of two transmissions the newer is the one that left later. If both left at the same time, it is the one
/// whose segment ends higher (RFC 8985 §6.2 step 2: RACK_sent_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tcp) struct Transmission {
    /// RACK.xmit_ts.
    pub(in crate::tcp) sent_at: Instant,
    /// The offset at which the segment ends (RACK.end_seq).
    pub(in crate::tcp) end: u64,
}

/// What is known of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u8);

impl Marks {
    /// The far end has received the segment beyond a gap.
    pub(super) const SACKED: Self = Self(1);
    /// The segment is marked as lost.
    pub(super) const LOST: Self = Self(2);
    /// The segment is marked as lost, and its retransmission is in flight.
    pub(super) const RESENT: Self = Self(4);
    /// The segment was sent more than once, whatever its other marks are. It gives no round-trip sample
    /// (Karn's algorithm).
    const RETRANSMITTED: Self = Self(8);
}

impl SentSegment {
    /// The new `segment`, which ends at `end` and leaves `now`. It has the PSH bit if `pushed` is true.
    #[inline]
    pub(super) const fn new(end: u64, segment: NewSegment, pushed: bool, now: Instant) -> Self {
        let NewSegment { payload, fin, in_burst } = segment;
        Self { end, sent_at: now, payload, fin, in_burst, pushed, marks: Marks(0) }
    }

    #[inline]
    pub(in crate::tcp) const fn start(&self) -> u64 {
        self.end - self.size()
    }

    /// The offset one past the segment's last one.
    #[inline]
    pub(in crate::tcp) const fn end(&self) -> u64 {
        self.end
    }

    #[inline]
    pub(in crate::tcp) const fn payload(&self) -> u32 {
        self.payload
    }

    #[inline]
    pub(in crate::tcp) const fn fin(&self) -> bool {
        self.fin
    }

    #[inline]
    pub(in crate::tcp) const fn pushed(&self) -> bool {
        self.pushed
    }

    /// When the segment was last sent.
    #[inline]
    pub(in crate::tcp) const fn sent_at(&self) -> Instant {
        self.sent_at
    }

    #[inline]
    pub(super) const fn transmission(&self) -> Transmission {
        Transmission { sent_at: self.sent_at, end: self.end }
    }

    /// True if the segment was sent more than once.
    #[inline]
    pub(in crate::tcp) const fn was_retransmitted(&self) -> bool {
        self.has(Marks::RETRANSMITTED)
    }

    /// The number of offsets that the segment takes: its bytes, and one for a FIN.
    #[inline]
    pub(super) const fn size(&self) -> u64 {
        self.payload as u64 + self.fin as u64
    }

    #[inline]
    pub(super) const fn in_burst(&self) -> bool {
        self.in_burst
    }

    #[inline]
    pub(super) const fn has(&self, mark: Marks) -> bool {
        self.marks.0 & mark.0 != 0
    }

    /// True if `retransmission` is the segment's latest one and is still in flight. A tail loss probe is such
    /// a retransmission without a mark of loss.
    pub(super) fn is_in_flight(&self, retransmission: Transmission) -> bool {
        let waits_to_be_resent = self.has(Marks::LOST) && !self.has(Marks::RESENT);
        self.transmission() == retransmission && !waits_to_be_resent && !self.has(Marks::SACKED)
    }

    /// True if the segment was sent once and has no mark.
    #[inline]
    pub(super) const fn is_unmarked(&self) -> bool {
        self.marks.0 == 0
    }

    pub(super) const fn mark(&mut self, mark: Marks) {
        self.marks.0 |= mark.0;
    }

    pub(super) const fn unmark(&mut self, mark: Marks) {
        self.marks.0 &= !mark.0;
    }

    /// Marks the segment as sent again.
    pub(super) const fn send_again(&mut self, now: Instant) {
        self.mark(Marks::RETRANSMITTED);
        self.sent_at = now;
    }

    /// Removes the first `bytes`, because the far end has acknowledged them.
    pub(super) const fn trim(&mut self, bytes: u64) {
        self.payload -= bytes as u32;
    }
}
