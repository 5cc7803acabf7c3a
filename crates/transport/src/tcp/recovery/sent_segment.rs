//! A segment in the retransmission queue, and what is known of it.

use talkpath_units::Instant;

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct SentSegment {
    /// One past its last offset, its FIN included.
    end: u64,
    /// When it was last sent.
    sent_at: Instant,
    payload: u32,
    fin: bool,
    /// It left in one burst with the segment before it.
    in_burst: bool,
    /// It ended what was written when it was first sent: its PSH, which it keeps when it is sent again.
    pushed: bool,
    marks: Marks,
}

/// What is known of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u8);

impl Marks {
    /// The far end has it, beyond a gap.
    pub(super) const SACKED: Self = Self(1);
    /// Marked as lost.
    pub(super) const LOST: Self = Self(2);
    /// Lost, and its retransmission is in flight.
    pub(super) const AGAIN: Self = Self(4);
    /// Sent more than once: it gives no round-trip sample (Karn's algorithm).
    const EVER_AGAIN: Self = Self(8);
}

impl SentSegment {
    /// A segment that ends at `end` leaves for the first time.
    #[inline]
    pub(super) const fn new(
        end: u64,
        payload: u32,
        fin: bool,
        in_burst: bool,
        pushed: bool,
        now: Instant,
    ) -> Self {
        Self { end, sent_at: now, payload, fin, in_burst, pushed, marks: Marks(0) }
    }

    #[inline]
    pub(in crate::tcp) const fn start(&self) -> u64 {
        self.end - self.size()
    }

    /// One past its last offset.
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

    /// When it was last sent.
    #[inline]
    pub(in crate::tcp) const fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// True if it was sent more than once.
    #[inline]
    pub(in crate::tcp) const fn was_retransmitted(&self) -> bool {
        self.has(Marks::EVER_AGAIN)
    }

    /// The number of offsets that it takes.
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

    /// True if it was sent once and nothing is known of it.
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

    /// It leaves again.
    pub(super) const fn send_again(&mut self, now: Instant) {
        self.mark(Marks::EVER_AGAIN);
        self.sent_at = now;
    }

    /// The far end took its first `bytes`.
    pub(super) const fn trim(&mut self, bytes: u64) {
        self.payload -= bytes as u32;
    }
}
