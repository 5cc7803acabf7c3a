//! Taking a reduction back that was not needed (tcp_try_undo_recovery and its kin; RFC 3522, RFC 3708, RFC 4015 in spirit).
//!
//! Two things prove it: an acknowledgement that echoes a timestamp older than the first retransmission (Eifel), or a duplicate
//! reported for every retransmission (DSACK).

use super::connection::Tcp;
use crate::cc::CongestionControl;
use crate::{Segment, Stack};

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

impl Tcp {
    /// tcp_may_undo.
    pub(super) fn may_undo(&self, segment: &Segment) -> bool {
        let undo = &self.undo;
        self.config.stack == Stack::Linux
            && (undo.is_proved_by_duplicates() || undo.is_proved_by_echo(self.echo(segment)))
    }

    fn echo(&self, segment: &Segment) -> Option<u32> {
        segment.timestamps().filter(|_| self.timestamps).map(|(_, echo)| echo)
    }

    /// tcp_try_undo_partial. Returns whether recovery needs nothing more now.
    pub(super) fn undo_partially(&mut self, segment: &Segment) -> bool {
        let proved = self.undo.is_proved_by_echo(self.echo(segment));
        if self.config.stack != Stack::Linux || !proved {
            return false;
        }
        if self.sender.board.again.segments == 0 {
            self.sender.unmark_lost();
            self.take_back();
            self.recovery.leave();
        }
        true
    }

    /// tcp_try_undo_dsack.
    pub(super) fn undo_by_duplicates(&mut self) -> bool {
        let undoes = self.config.stack == Stack::Linux && self.undo.is_proved_by_duplicates();
        if undoes {
            self.take_back();
        }
        undoes
    }

    /// tcp_undo_cwnd_reduction.
    pub(super) fn take_back(&mut self) {
        if let Some((cwnd, ssthresh)) = self.undo.take() {
            if self.config.steers {
                self.controller.on_undo();
            } else {
                self.restore_window(cwnd, ssthresh);
            }
        }
        self.selective.rack.look_again();
    }

    fn restore_window(&mut self, cwnd: u64, ssthresh: u64) {
        let window = self.controller.window_mut();
        let (cwnd, ssthresh) = (cwnd.max(window.cwnd()), ssthresh.max(window.ssthresh()));
        window.set_cwnd(cwnd);
        window.set_ssthresh(ssthresh);
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
