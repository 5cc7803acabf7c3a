//! Undoing a needless reduction (tcp_try_undo_recovery and related functions; RFC 3522, RFC 3708, in the
//! spirit of RFC 4015).
//!
//! Two things prove that a reduction was needless: an acknowledgement that echoes a timestamp older than the
//! first retransmission (Eifel), or a duplicate reported for every retransmission (DSACK). Only the `linux`
//! stack undoes.

use super::sack::Arrived;
use super::{Context, Recovery};
use crate::tcp::timestamps;

/// The window before the last recovery, and the evidence that the recovery was needless.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA when the recovery began. `None` if there is none to undo (undo_marker).
    marker: Option<u64>,
    /// Retransmissions for which no duplicate was reported. `None` before the first.
    unproved: Option<u64>,
    /// `cwnd` and `ssthresh` before, in the window's unit. `None` if the recovery did not reduce them,
    /// because an ECN echo had done so before (tcp_enter_recovery: a prior_ssthresh of 0).
    prior: Option<(u64, u64)>,
    /// The timestamp of the first retransmission.
    first_again: Option<u32>,
}

impl Undo {
    /// A recovery begins at `snd_una`, with `again` retransmissions in flight.
    pub(super) fn begin(&mut self, snd_una: u64, again: u64, prior: Option<(u64, u64)>) {
        let first_again = self.first_again.filter(|_| again > 0);
        let unproved = (again > 0).then_some(again);
        *self = Self { marker: Some(snd_una), unproved, prior, first_again };
    }

    /// A lost segment leaves again, with this timestamp.
    pub(super) fn on_sent_again(&mut self, timestamp: u32) {
        self.first_again.get_or_insert(timestamp);
        self.unproved = Some(self.unproved.unwrap_or(0) + 1);
    }

    /// The far end received what ends at `end` twice.
    pub(super) fn on_duplicate(&mut self, end: u64) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unproved) = &mut self.unproved
        {
            *unproved = unproved.saturating_sub(1);
        }
    }

    /// True if every retransmission was needless.
    pub(super) const fn is_proved_by_duplicates(&self) -> bool {
        self.marker.is_some() && matches!(self.unproved, Some(0))
    }

    /// True if the acknowledgement that echoes `echo` was sent before any retransmission could arrive.
    pub(super) fn is_proved_by_echo(&self, echo: Option<u32>) -> bool {
        match (self.marker, self.first_again, echo) {
            (Some(_), Some(first), Some(echo)) => (echo.wrapping_sub(first) as i32) < 0,
            _ => false,
        }
    }

    /// No retransmission is in flight. The next one is the first of another recovery.
    pub(super) const fn forget_retransmissions(&mut self) {
        self.first_again = None;
    }

    /// What is reduced now has another cause than a loss.
    pub(super) const fn forget(&mut self) {
        self.marker = None;
    }

    /// True if the last recovery was not undone, nor followed by a reduction for an ECN echo.
    pub(super) const fn stands(&self) -> bool {
        self.marker.is_some()
    }

    /// Undoes the recovery. Returns `cwnd` and `ssthresh` as they were before, if the recovery reduced them.
    pub(super) fn take(&mut self) -> Option<(u64, u64)> {
        self.marker.take().and(self.prior)
    }
}

impl Recovery {
    /// A recovery begins: the window is kept for an undo, if the recovery `reduces` it (tcp_init_undo).
    pub(super) fn remember(&mut self, reduces: bool, context: &Context<'_>) {
        let window = context.congestion.window();
        let prior = reduces.then(|| (window.cwnd(), window.remembered_ssthresh()));
        let again = context.scoreboard.resent_segments() + self.probe.retransmissions();
        self.undo.begin(context.scoreboard.snd_una(), again, prior);
    }

    /// A segment left again.
    pub(super) fn note_retransmission(&mut self, context: &Context<'_>) {
        self.undo.on_sent_again(timestamps::clock(context.now));
    }

    /// True if the reduction was needless (tcp_may_undo).
    pub(super) fn may_undo(&self, arrived: Arrived) -> bool {
        self.is_linux()
            && (self.undo.is_proved_by_duplicates() || self.undo.is_proved_by_echo(arrived.incoming().echo))
    }

    /// Recovery ends: the reduction is undone if it was needless, and stays otherwise.
    pub(super) fn undo_or_accept(&mut self, arrived: Arrived, context: &mut Context<'_>) {
        if self.may_undo(arrived) {
            self.restore(context);
        } else {
            self.rack.on_recovered();
        }
    }

    /// A partial acknowledgement in fast recovery. Returns true if recovery needs nothing more now
    /// (tcp_try_undo_partial).
    pub(super) fn undo_partially(&mut self, arrived: Arrived, context: &mut Context<'_>) -> bool {
        if !self.is_linux() || !self.undo.is_proved_by_echo(arrived.incoming().echo) {
            return false;
        }
        if context.scoreboard.resent_segments() == 0 {
            context.scoreboard.unmark_lost();
            self.stop_trying_new_data();
            self.restore(context);
            self.leave();
        }
        true
    }

    /// Undoes the reduction if duplicates prove it needless (tcp_try_undo_dsack).
    pub(super) fn undo_by_duplicates(&mut self, context: &mut Context<'_>) -> bool {
        let is_proved = self.is_linux() && self.undo.is_proved_by_duplicates();
        if is_proved {
            self.restore(context);
        }
        is_proved
    }

    /// The recovery is undone, and `cwnd` and `ssthresh` are restored (tcp_undo_cwnd_reduction).
    pub(super) fn restore(&mut self, context: &mut Context<'_>) {
        if let Some(prior) = self.undo.take() {
            context.ecn.on_undone();
            context.congestion.control_mut().undo(prior);
        }
        self.rack.search_again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3522 §3.2.
    #[test]
    fn an_echo_from_before_the_retransmission_proves_it_needless() {
        let mut undo = Undo::default();
        undo.begin(1, 0, Some((10, 20)));
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
        undo.begin(1001, 0, Some((10, 20)));
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
