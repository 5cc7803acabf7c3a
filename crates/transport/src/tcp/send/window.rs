//! The window that the far end offers (SND.WND, RFC 9293 §3.10.7.4).

/// The window that the far end offers.
#[derive(Clone, Debug, Default)]
pub(super) struct SendWindow {
    /// The offset one past the last byte that may be sent. SND.WND is its distance from SND.UNA.
    edge: u64,
    /// The offset at which the segment began that brought the window (SND.WL1).
    from_seq: u64,
    /// The offset that this segment acknowledged (SND.WL2).
    from_ack: u64,
    /// The far end's shift for window fields.
    shift: u8,
    /// The largest window that was ever offered, in bytes (Max(SND.WND)).
    max_offered: u64,
}

impl SendWindow {
    /// Takes the window of a SYN, which is unscaled. `shift` applies from the next segment on.
    pub(super) const fn start(&mut self, field: u16, seq: u64, ack: u64, shift: u8) {
        self.edge = ack + field as u64;
        self.from_seq = seq;
        self.from_ack = ack;
        self.max_offered = field as u64;
        self.shift = shift;
    }

    /// Takes the window of a segment, unless a newer segment brought a window before (RFC 9293 §3.10.7.4,
    /// fifth). Returns true if the window changed.
    #[inline]
    pub(super) fn update(&mut self, field: u16, seq: u64, ack: u64) -> bool {
        if seq < self.from_seq || (seq == self.from_seq && ack < self.from_ack) {
            return false;
        }
        let window = u64::from(field) << self.shift;
        let old_window = self.edge - self.from_ack;
        self.from_seq = seq;
        self.from_ack = ack;
        self.edge = ack + window;
        self.max_offered = self.max_offered.max(window);
        window != old_window
    }

    /// True if a duplicate acknowledgement at `seq` would open the window (tcp_may_update_window).
    pub(super) fn would_open(&self, field: u16, seq: u64) -> bool {
        let window = u64::from(field) << self.shift;
        seq > self.from_seq || (seq == self.from_seq && window > self.edge - self.from_ack)
    }

    pub(super) const fn edge(&self) -> u64 {
        self.edge
    }

    pub(super) const fn max_offered(&self) -> u64 {
        self.max_offered
    }
}

/// The largest shift. A larger value of the option counts as this one (RFC 7323 §2.3).
pub(in crate::tcp) const MAX_SHIFT: u8 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293 §3.10.7.4, SND.WL1 and SND.WL2.
    #[test]
    fn an_older_segment_does_not_change_the_window() {
        let mut window = SendWindow::default();
        window.start(1000, 0, 1, 0);
        assert!(window.update(500, 10, 1));
        assert!(!window.update(900, 9, 1));
        assert_eq!(window.edge(), 501);
        assert_eq!(window.max_offered(), 1000);
    }
}
