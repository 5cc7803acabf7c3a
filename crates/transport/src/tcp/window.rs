//! The two flow-control windows: what this end offers, and what the far end offered.
//!
//! The offered window never takes back its right edge, and moves it only by amounts worth sending for, which is the
//! receiver's half of silly window avoidance: by the rule of RFC 9293 §3.8.6.2.2, or by Linux's (__tcp_select_window).
//! Window fields are scaled by RFC 7323 §2 where both SYNs agreed; what scaling cuts off is offered later.

use talkpath_units::Bytes;

use super::tuning::Tuning;

/// Whose rule says by how much the offered window's edge moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferRule {
    /// RFC 9293 §3.8.6.2.2.
    Rfc9293,
    /// __tcp_select_window.
    Linux,
}

/// What this end lets the far end send.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct ReceiveWindow {
    /// One past the last byte that may be sent to us, as last offered.
    edge: u64,
    rule: OfferRule,
    /// The shift that is on our SYN; in use once `scaled`.
    shift: u8,
    scaled: bool,
    /// The receive buffer (RCV.BUFF).
    buffer: u64,
    /// How much of the buffer is in use so far.
    pub(super) tuning: Tuning,
    /// What the latest room was found for by Linux's rule with scaling, and that room: it is the same for most segments.
    latest: (Basis, u64),
}

impl ReceiveWindow {
    pub(crate) fn new(rule: OfferRule, buffer: Bytes) -> Self {
        let buffer = buffer.get().clamp(1, LARGEST_SCALED_WINDOW);
        let shift = (0..MAX_SHIFT).find(|shift| buffer >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT);
        let tuning = match rule {
            OfferRule::Rfc9293 => Tuning::fixed(buffer),
            OfferRule::Linux => Tuning::growing(buffer),
        };
        Self { rule, buffer, shift, scaled: false, edge: 0, tuning, latest: NOTHING_FOUND }
    }

    /// The window scale option's value on our SYN.
    pub(crate) const fn shift(&self) -> u8 {
        self.shift
    }

    /// Both SYNs carried the option.
    pub(crate) const fn enable_scaling(&mut self) {
        self.latest = NOTHING_FOUND;
        self.scaled = true;
    }

    /// One past the last byte that may arrive.
    pub(crate) const fn edge(&self) -> u64 {
        self.edge
    }

    /// The window that an empty buffer could offer.
    pub(crate) const fn full(&self) -> u64 {
        self.tuning.clamp()
    }

    /// The field of a SYN, which is never scaled (RFC 7323 §2.2).
    pub(crate) fn offer_on_syn(&mut self, rcv_nxt: u64) -> u16 {
        let field = self.tuning.threshold().min(u64::from(u16::MAX)) as u16;
        self.edge = self.edge.max(rcv_nxt.saturating_add(u64::from(field)));
        field
    }

    /// The field of a segment that leaves now, given what has arrived and what of it was read; moves the edge.
    #[inline(always)]
    pub(crate) fn offer(&mut self, rcv_nxt: u64, read: u64, mss: u32) -> u16 {
        let window = self.select(rcv_nxt, read, mss);
        let shift = self.shift_in_use();
        let field = (window >> shift).min(u64::from(u16::MAX));
        self.edge = self.edge.max(rcv_nxt + (field << shift));
        field as u16
    }

    /// The window that the rule would offer now, in bytes: at least what was offered and not used.
    #[inline(always)]
    pub(crate) fn select(&mut self, rcv_nxt: u64, read: u64, mss: u32) -> u64 {
        let offered = self.offered(rcv_nxt);
        let window = match self.rule {
            OfferRule::Rfc9293 => self.select_rfc(self.free(rcv_nxt, read), offered, mss),
            OfferRule::Linux => self.select_linux(rcv_nxt, read, mss),
        };
        let largest = u64::from(u16::MAX) << self.shift_in_use();
        window.max(offered).min(largest)
    }

    /// RFC 9293 §3.8.6.2.2.
    #[inline(always)]
    fn select_rfc(&self, free: u64, offered: u64, mss: u32) -> u64 {
        let mss = u64::from(mss).min(self.full());
        if free.saturating_sub(offered) >= mss.min(self.buffer / 2) { free } else { offered }
    }

    /// __tcp_select_window. With scaling it follows from what is unread and from the buffer alone, which most segments find as the one
    /// before did.
    #[inline(always)]
    fn select_linux(&mut self, rcv_nxt: u64, read: u64, mss: u32) -> u64 {
        let from = (rcv_nxt.wrapping_sub(read), mss, self.full(), self.tuning.threshold());
        if self.latest.0 != from {
            let window = self.find_linux(rcv_nxt, read, mss);
            if self.shift_in_use() == 0 {
                return window;
            }
            self.latest = (from, window);
        }
        debug_assert_eq!(
            self.latest.1,
            self.find_linux(rcv_nxt, read, mss),
            "the same buffer, another window"
        );
        self.latest.1
    }

    #[inline(never)]
    fn find_linux(&self, rcv_nxt: u64, read: u64, mss: u32) -> u64 {
        let (full, free, offered) = (self.full(), self.free(rcv_nxt, read), self.offered(rcv_nxt));
        let mss = u64::from(mss).min(full);
        if free < full / 16 || free < mss {
            return 0;
        }
        let free = free.min(self.tuning.threshold());
        if self.shift_in_use() > 0 {
            // Up to a multiple of what the field counts in.
            let unit = self.unit();
            return (free + (unit - 1)) & !(unit - 1);
        }
        if offered + mss <= free || offered > free {
            return free / mss * mss;
        }
        if mss == full && free > offered + full / 2 { free } else { offered }
    }

    /// What was offered and is not used up.
    pub(crate) const fn offered(&self, rcv_nxt: u64) -> u64 {
        self.edge.saturating_sub(rcv_nxt)
    }

    /// Room in the buffer: data out of order lies inside the window and takes none of it.
    const fn free(&self, rcv_nxt: u64, read: u64) -> u64 {
        read.saturating_add(self.tuning.clamp()).saturating_sub(rcv_nxt)
    }

    /// What the field counts in.
    pub(crate) const fn unit(&self) -> u64 {
        1 << self.shift_in_use()
    }

    const fn shift_in_use(&self) -> u8 {
        if self.scaled { self.shift } else { 0 }
    }
}

/// What the far end lets us send.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendWindow {
    /// SND.WND as an offset: one past the last byte that may be sent.
    edge: u64,
    /// SND.WL1 and SND.WL2: the segment that the window came from.
    from_seq: u64,
    from_ack: u64,
    /// The far end's shift.
    shift: u8,
    /// The field that the window was shifted from.
    field: Option<u16>,
    /// Max(SND.WND): the largest window ever offered.
    largest: u64,
}

impl SendWindow {
    /// The window of a SYN, unscaled; `shift` applies from the next segment on.
    pub(crate) const fn start(&mut self, field: u16, seq: u64, ack: u64, shift: u8) {
        self.edge = ack + field as u64;
        self.from_seq = seq;
        self.from_ack = ack;
        self.largest = field as u64;
        self.shift = shift;
        self.field = None;
    }

    /// RFC 9293 §3.10.7.4: takes the window of a segment that is not older than the last one. Returns whether the
    /// window changed.
    #[inline(always)]
    pub(crate) fn update(&mut self, field: u16, seq: u64, ack: u64) -> bool {
        if seq < self.from_seq || (seq == self.from_seq && ack < self.from_ack) {
            return false;
        }
        // Most data comes with the same.
        if ack == self.from_ack && self.field == Some(field) {
            self.from_seq = seq;
            return false;
        }
        let window = u64::from(field) << self.shift;
        let before = self.edge - self.from_ack;
        self.field = Some(field);
        self.from_seq = seq;
        self.from_ack = ack;
        self.edge = ack + window;
        self.largest = self.largest.max(window);
        window != before
    }

    pub(crate) const fn edge(&self) -> u64 {
        self.edge
    }

    pub(crate) const fn largest(&self) -> u64 {
        self.largest
    }
}

/// What the room in a buffer follows from: what is unread, the segment size, and how much of the buffer is in use.
type Basis = (u64, u32, u64, u64);
/// No buffer is empty.
const NOTHING_FOUND: (Basis, u64) = ((0, 0, 0, 0), 0);
/// RFC 7323 §2.3: a larger shift is taken as this.
pub(crate) const MAX_SHIFT: u8 = 14;
/// RFC 7323 §2.2: 2^30.
const LARGEST_SCALED_WINDOW: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(rule: OfferRule, buffer: u64) -> ReceiveWindow {
        let mut window = ReceiveWindow::new(rule, Bytes::new(buffer));
        window.offer_on_syn(1);
        window
    }

    /// RFC 9293 §3.8.6.2.2.
    #[test]
    fn the_edge_waits_until_a_segment_more_fits() {
        let mut window = window(OfferRule::Rfc9293, 4000);
        assert_eq!(window.offer(4001, 1, 1000), 0);
        assert_eq!(window.offer(4001, 1000, 1000), 0);
        assert_eq!(window.offer(4001, 1001, 1000), 1000);
        assert_eq!(window.edge(), 5001);
    }

    /// __tcp_select_window without scaling.
    #[test]
    fn linux_offers_whole_segments() {
        let mut window = window(OfferRule::Linux, 4500);
        assert_eq!(window.offer(4501, 2001, 1000), 2000);
        assert_eq!(window.offer(4501, 2501, 1000), 2000);
    }

    /// RFC 7323 §2.2: the option holds the smallest shift that shows the buffer.
    #[test]
    fn scaling_shows_large_buffers_and_never_shrinks_the_window() {
        let mut window = window(OfferRule::Linux, 3 << 20);
        assert_eq!(window.shift(), 6);
        window.enable_scaling();
        let field = window.offer(1, 1, 1448);
        assert_eq!(u64::from(field) << 6, 65_536);
        let edge = window.edge();
        // Unread data takes its room, but what was offered stands.
        window.offer(75_001, 1, 1448);
        assert_eq!(window.edge(), edge.max(75_001 + 6976));
    }

    /// RFC 9293 §3.10.7.4, SND.WL1 and SND.WL2.
    #[test]
    fn an_older_segment_does_not_change_the_window() {
        let mut window = SendWindow::default();
        window.start(1000, 0, 1, 0);
        assert!(window.update(500, 10, 1));
        assert!(!window.update(900, 9, 1));
        assert_eq!(window.edge(), 501);
        assert_eq!(window.largest(), 1000);
    }
}
