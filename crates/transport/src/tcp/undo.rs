//! Taking a reduction back that was not needed (tcp_try_undo_recovery and its kin; RFC 3522, RFC 3708, RFC 4015 in spirit).
//!
//! Two things prove it: an acknowledgement that echoes a timestamp older than the first retransmission (Eifel), or a duplicate
//! reported for every retransmission (DSACK).

/// What the window was before the last reduction, and what speaks for taking it back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// SND.UNA when it happened; `None` where there is nothing to take back.
    marker: Option<u64>,
    /// Retransmissions that no duplicate was reported for; `None` before the first.
    unproved: Option<u64>,
    /// `cwnd` and `ssthresh` before, in the window's unit.
    prior: (u64, u64),
    /// The timestamp of the first retransmission.
    first_again: Option<u32>,
}

impl Undo {
    /// A reduction happens at `snd_una`, with `again` retransmissions under way.
    pub(crate) fn begin(&mut self, snd_una: u64, again: u64, prior: (u64, u64)) {
        let first_again = self.first_again.filter(|_| again > 0);
        let unproved = (again > 0).then_some(again);
        *self = Self { marker: Some(snd_una), unproved, prior, first_again };
    }

    /// A lost segment is sent again, with this timestamp.
    pub(crate) fn on_sent_again(&mut self, timestamp: u32) {
        self.first_again.get_or_insert(timestamp);
        self.unproved = Some(self.unproved.unwrap_or(0) + 1);
    }

    /// The far end got what ends at `end` twice.
    pub(crate) fn on_duplicate(&mut self, end: u64) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unproved) = &mut self.unproved
        {
            *unproved = unproved.saturating_sub(1);
        }
    }

    /// Whether every retransmission was needless.
    pub(crate) const fn is_proved_by_duplicates(&self) -> bool {
        self.marker.is_some() && matches!(self.unproved, Some(0))
    }

    /// Whether the acknowledgement that echoes `echo` was sent before any retransmission could arrive.
    pub(crate) fn is_proved_by_echo(&self, echo: Option<u32>) -> bool {
        match (self.marker, self.first_again, echo) {
            (Some(_), Some(first), Some(echo)) => (echo.wrapping_sub(first) as i32) < 0,
            _ => false,
        }
    }

    /// Nothing that was sent again is under way.
    pub(crate) const fn forget_retransmissions(&mut self) {
        self.first_again = None;
    }

    /// Whether a reduction stands that could be taken back.
    pub(crate) const fn stands(&self) -> bool {
        self.marker.is_some()
    }

    /// `cwnd` and `ssthresh` as they were, once.
    pub(crate) fn take(&mut self) -> Option<(u64, u64)> {
        self.marker.take().map(|_| self.prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3522 §3.2.
    #[test]
    fn an_echo_from_before_the_retransmission_proves_it_needless() {
        let mut undo = Undo::default();
        undo.begin(1, 0, (10, 20));
        assert!(!undo.is_proved_by_echo(Some(5)));
        undo.on_sent_again(100);
        undo.on_sent_again(110);
        assert!(undo.is_proved_by_echo(Some(99)));
        assert!(!undo.is_proved_by_echo(Some(100)) && !undo.is_proved_by_echo(None));
        assert_eq!((undo.take(), undo.take()), (Some((10, 20)), None));
        assert!(!undo.is_proved_by_echo(Some(99)));
    }

    /// RFC 3708 §2.
    #[test]
    fn a_duplicate_for_each_retransmission_proves_them_needless() {
        let mut undo = Undo::default();
        undo.begin(1001, 0, (10, 20));
        undo.on_sent_again(1);
        undo.on_sent_again(2);
        undo.on_duplicate(2001);
        assert!(!undo.is_proved_by_duplicates());
        undo.on_duplicate(900);
        assert!(!undo.is_proved_by_duplicates());
        undo.on_duplicate(3001);
        assert!(undo.is_proved_by_duplicates());
    }
}
