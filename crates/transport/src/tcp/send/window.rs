//! The window that the far end offers (SND.WND, RFC 9293 §3.10.7.4).

/// What the far end lets us send.
#[derive(Clone, Debug, Default)]
pub(super) struct SendWindow {
    /// SND.WND as an offset: one past the last byte that may be sent.
    edge: u64,
    /// SND.WL1 and SND.WL2: the segment that the window came from.
    from_seq: u64,
    from_ack: u64,
    /// The far end's shift.
    shift: u8,
    /// Max(SND.WND): the max_offered window ever offered.
    max_offered: u64,
}

impl SendWindow {
    /// The window of a SYN, which is unscaled. `shift` applies from the next segment on.
    pub(super) const fn start(&mut self, field: u16, seq: u64, ack: u64, shift: u8) {
        self.edge = ack + field as u64;
        self.from_seq = seq;
        self.from_ack = ack;
        self.max_offered = field as u64;
        self.shift = shift;
    }

    /// RFC 9293 §3.10.7.4, fifth: takes the window of a segment that is not older than the last one. Returns
    /// whether the window changed.
    #[inline]
    pub(super) fn update(&mut self, field: u16, seq: u64, ack: u64) -> bool {
        if seq < self.from_seq || (seq == self.from_seq && ack < self.from_ack) {
            return false;
        }
        let window = u64::from(field) << self.shift;
        let before = self.edge - self.from_ack;
        self.from_seq = seq;
        self.from_ack = ack;
        self.edge = ack + window;
        self.max_offered = self.max_offered.max(window);
        window != before
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

/// RFC 7323 §2.3: a larger shift is taken as this.
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
