//! The window that this end offers (RCV.WND).
//!
//! ```text
//!         read_to         rcv_nxt                        edge
//!   read    │ unread         │ offered and not used        │ not offered
//! ──────────┴────────────────┴─────────────────────────────┴──────────────►
//!           ├──────────────── buffer ──────────────────────────────┤
//! ```
//!
//! The window is the distance from RCV.NXT to the edge. The edge never moves back. It moves forward only by
//! amounts that are worth a segment, which is the receiver's half of silly window avoidance. There are two
//! rules: that of RFC 9293 §3.8.6.2.2, and Linux's (__tcp_select_window). Window fields are scaled (RFC 7323
//! §2) if both SYNs agreed. The part that the scale cuts off is offered later.

use talkpath_units::Bytes;

use super::tuning::Tuning;
use crate::tcp::send::MAX_SHIFT;

/// The rule by which the edge of the offered window moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferRule {
    /// RFC 9293 §3.8.6.2.2.
    Rfc9293,
    /// __tcp_select_window.
    Linux,
}

/// The window that this end offers, and the buffer behind it. Amounts are in bytes.
#[derive(Clone, Debug)]
pub(super) struct OfferedWindow {
    /// The offset one past the last byte that the far end may send, as last offered.
    edge: u64,
    rule: OfferRule,
    /// The shift of our SYN's window scale option. It applies if `is_scaled` is true.
    shift: u8,
    /// True if both SYNs carried the option.
    is_scaled: bool,
    /// The receive buffer (RCV.BUFF).
    buffer: u64,
    /// The part of the buffer that may be offered so far.
    tuning: Tuning,
}

impl OfferedWindow {
    /// The window of an empty `buffer`. Linux's rule offers `initial` bytes at first.
    pub(super) fn new(rule: OfferRule, buffer: Bytes, initial: Bytes) -> Self {
        let buffer = buffer.get().clamp(1, LARGEST_SCALED_WINDOW);
        // Linux's shift can express the memory of the buffer (tcp_rmem[2]), half of which is overhead
        // (tcp_select_initial_window).
        let (largest, tuning) = match rule {
            OfferRule::Rfc9293 => (buffer, Tuning::fixed(buffer)),
            OfferRule::Linux => (2 * buffer, Tuning::growing(initial.get(), buffer)),
        };
        let shift = (0..MAX_SHIFT).find(|shift| largest >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT);
        Self { rule, buffer, shift, is_scaled: false, edge: 0, tuning }
    }

    /// The value of the window scale option on our SYN.
    pub(super) const fn shift(&self) -> u8 {
        self.shift
    }

    /// Scales the window field from now on, because both SYNs carried the option.
    pub(super) const fn enable_scaling(&mut self) {
        self.is_scaled = true;
    }

    pub(super) const fn is_scaled(&self) -> bool {
        self.is_scaled
    }

    /// The offset one past the last byte that the far end may send.
    #[inline]
    pub(super) const fn edge(&self) -> u64 {
        self.edge
    }

    /// The window that an empty buffer could offer.
    pub(super) const fn full(&self) -> u64 {
        self.tuning.clamp()
    }

    #[inline]
    pub(super) const fn tuning_mut(&mut self) -> &mut Tuning {
        &mut self.tuning
    }

    /// Returns the window field of a SYN, which is never scaled (RFC 7323 §2.2), and moves the edge.
    pub(super) fn offer_on_syn(&mut self, rcv_nxt: u64) -> u16 {
        let field = self.tuning.threshold().min(u64::from(u16::MAX)) as u16;
        self.edge = self.edge.max(rcv_nxt.saturating_add(u64::from(field)));
        field
    }

    /// Returns the window field of a segment that leaves now, and moves the edge. Everything before `rcv_nxt`
    /// has arrived, and everything before `read_to` was read.
    #[inline]
    pub(super) fn offer(&mut self, rcv_nxt: u64, read_to: u64, mss: u32) -> u16 {
        let window = self.select(rcv_nxt, read_to, mss);
        let shift = self.shift_in_use();
        let field = (window >> shift).min(u64::from(u16::MAX));
        self.edge = self.edge.max(rcv_nxt + (field << shift));
        field as u16
    }

    /// Returns the window that the rule would offer now. It is never less than what was offered and is not
    /// used.
    #[inline]
    pub(super) fn select(&self, rcv_nxt: u64, read_to: u64, mss: u32) -> u64 {
        let offered = self.offered(rcv_nxt);
        let free = self.free(rcv_nxt, read_to);
        let window = match self.rule {
            OfferRule::Rfc9293 => self.select_rfc(free, offered, mss),
            OfferRule::Linux => self.select_linux(free, offered, mss),
        };
        let largest = u64::from(u16::MAX) << self.shift_in_use();
        window.max(offered).min(largest)
    }

    /// The rule of RFC 9293 §3.8.6.2.2: the edge stays until it can move by a segment, or by half of the
    /// buffer if that is less.
    #[inline]
    fn select_rfc(&self, free: u64, offered: u64, mss: u32) -> u64 {
        let mss = u64::from(mss).min(self.full());
        if free.saturating_sub(offered) >= mss.min(self.buffer / 2) { free } else { offered }
    }

    /// Linux's rule (__tcp_select_window):
    ///
    /// - If less than half of the buffer is free, and less than a segment or a sixteenth of the buffer, the
    ///   window is zero.
    /// - Otherwise a scaled window is what is free, rounded to the unit of the field.
    /// - Otherwise an unscaled window has whole segments, and stays if it would move by less than a segment.
    #[inline]
    fn select_linux(&self, free: u64, offered: u64, mss: u32) -> u64 {
        let full = self.full();
        let mss = u64::from(mss).min(full);
        let shift = self.shift_in_use();
        let below_unit = (1_u64 << shift) - 1;
        let mut free = free;
        if free < full / 2 {
            // Rounded down to the field's unit, so that no more is offered than is free.
            free &= !below_unit;
            if free < full / 16 || free < mss {
                return 0;
            }
        }
        let free = free.min(self.tuning.threshold());
        if shift > 0 {
            // Rounded up to the field's unit, so that the field cuts nothing off.
            return (free + below_unit) & !below_unit;
        }
        if offered + mss <= free || offered > free {
            return free / mss * mss;
        }
        if mss == full && free > offered + full / 2 { free } else { offered }
    }

    /// The number of bytes that were offered and are not used.
    #[inline]
    pub(super) const fn offered(&self, rcv_nxt: u64) -> u64 {
        self.edge.saturating_sub(rcv_nxt)
    }

    /// True if less than half of the buffer is free.
    #[inline]
    pub(super) const fn is_half_full(&self, rcv_nxt: u64, read_to: u64) -> bool {
        self.free(rcv_nxt, read_to) < self.full() / 2
    }

    /// The number of free bytes in the buffer. Data beyond a gap does not count, because it lies inside the
    /// window.
    const fn free(&self, rcv_nxt: u64, read_to: u64) -> u64 {
        read_to.saturating_add(self.tuning.clamp()).saturating_sub(rcv_nxt)
    }

    const fn shift_in_use(&self) -> u8 {
        if self.is_scaled { self.shift } else { 0 }
    }
}

/// The largest window that a field can express (RFC 7323 §2.2).
const LARGEST_SCALED_WINDOW: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(rule: OfferRule, buffer: u64) -> OfferedWindow {
        let mut window = OfferedWindow::new(rule, Bytes::new(buffer), Bytes::new(64 << 10));
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

    /// __tcp_select_window: only a buffer that is half full says nothing of less than a segment.
    #[test]
    fn linux_offers_half_of_a_buffer_that_is_smaller_than_a_segment() {
        let window = window(OfferRule::Linux, 1000);
        assert_eq!((window.select(1001, 601, 1448), window.select(1001, 401, 1448)), (600, 0));
    }

    /// RFC 7323 §2.2: the option holds the smallest shift that shows the buffer.
    #[test]
    fn scaling_shows_large_buffers_and_never_shrinks_the_window() {
        let mut window = window(OfferRule::Linux, 3 << 20);
        assert_eq!(window.shift(), 7);
        window.enable_scaling();
        let field = window.offer(1, 1, 1448);
        assert_eq!(u64::from(field) << 7, 65_536);
        let edge = window.edge();
        // Unread data takes its room, but what was offered stands.
        window.offer(75_001, 1, 1448);
        assert_eq!(window.edge(), edge.max(75_001 + 6912));
    }

    /// tcp_select_initial_window: a kernel with tcp_rmem[2] = 6 MiB shows 7 (`ss -i`: wscale), one with 32
    /// MiB shows 10. The model's buffer is half of that.
    #[test]
    fn linux_shows_the_memory_of_its_buffer() {
        let shift = |rule, buffer| window(rule, buffer).shift();
        assert_eq!((shift(OfferRule::Linux, 3 << 20), shift(OfferRule::Linux, 16 << 20)), (7, 10));
        assert_eq!((shift(OfferRule::Linux, 1 << 14), shift(OfferRule::Linux, 1 << 30)), (0, 14));
        assert_eq!((shift(OfferRule::Rfc9293, 3 << 20), shift(OfferRule::Rfc9293, 65_535)), (6, 0));
    }

    /// __tcp_select_window: of 81,920 B of room, 40,000 B are less than half, and 41,000 B are more. The
    /// field counts in units of 128 B.
    #[test]
    fn linux_rounds_the_room_of_a_half_full_buffer_down() {
        let mut window = window(OfferRule::Linux, 3 << 20);
        window.enable_scaling();
        assert_eq!((window.full(), window.select(40_921, 1, 1448)), (81_920, 41_088));
        assert_eq!(window.select(41_921, 1, 1448), 39_936);
        assert!(window.is_half_full(41_921, 1) && !window.is_half_full(40_921, 1));
    }

    /// RFC 7323 §2.4: the field shows 54 bytes less than was offered before.
    #[test]
    fn what_the_scale_cuts_off_stays_offered() {
        let mut window = window(OfferRule::Rfc9293, 3 << 20);
        window.enable_scaling();
        window.offer(1, 1, 1448);
        let edge = window.edge();
        let field = window.offer(11, 1, 1448);
        assert_eq!(11 + (u64::from(field) << 6), edge - 54);
        assert_eq!(window.edge(), edge);
    }
}
