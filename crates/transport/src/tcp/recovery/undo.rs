//! Undoing a needless reduction (RFC 3522, RFC 3708; compare RFC 4015; Linux: tcp_try_undo_recovery and
//! related functions).
//!
//! | proof | why the reduction was needless |
//! | --- | --- |
//! | by echo (Eifel): an ACK echoes a timestamp older than the first retransmission | the original arrived |
//! | by duplicates: a D-SACK for every retransmission | all originals arrived |
//!
//! Either proof suffices. Only the `linux` stack undoes reductions.

use super::outcome::AckOutcome;
use super::{Context, Recovery};
use crate::cc::PriorWindow;
use crate::tcp::timestamps;

/// The window before the last recovery, and the evidence that the recovery was needless.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA when the recovery began. `None` if there is no recovery to undo (undo_marker).
    marker: Option<u64>,
    /// The number of retransmissions for which no D-SACK has come. `None` before the first retransmission.
    unproved: Option<u64>,
    /// The window before the recovery. `None` if the recovery did not reduce it, because an ECN echo had done
    /// so before (tcp_enter_recovery: a prior_ssthresh of 0).
    prior: Option<PriorWindow>,
    /// The timestamp of the first retransmission.
    first_retransmission: Option<u32>,
}

impl Undo {
    /// Begins a recovery at `snd_una`, with this number of `retransmissions` in flight.
    pub(super) fn begin(&mut self, snd_una: u64, retransmissions: u64, prior: Option<PriorWindow>) {
        let first_retransmission = self.first_retransmission.filter(|_| retransmissions > 0);
        let unproved = (retransmissions > 0).then_some(retransmissions);
        *self = Self { marker: Some(snd_una), unproved, prior, first_retransmission };
    }

    /// Takes note that a lost segment leaves again, with this timestamp.
    pub(super) fn on_sent_again(&mut self, timestamp: u32) {
        self.first_retransmission.get_or_insert(timestamp);
        self.unproved = Some(self.unproved.unwrap_or(0) + 1);
    }

    /// Takes note of a D-SACK: the far end received the segment that ends at `end` twice.
    pub(super) fn on_duplicate(&mut self, end: u64) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unproved) = &mut self.unproved
        {
            *unproved = unproved.saturating_sub(1);
        }
    }

    /// True if D-SACKs show that every retransmission was needless.
    pub(super) const fn is_proved_by_duplicates(&self) -> bool {
        self.marker.is_some() && matches!(self.unproved, Some(0))
    }

    /// True if the acknowledgement that echoes the timestamp `echo` was for the original of a segment,
    /// because that timestamp is older than the first retransmission.
    pub(super) fn is_proved_by_echo(&self, echo: Option<u32>) -> bool {
        match (self.marker, self.first_retransmission, echo) {
            (Some(_), Some(first), Some(echo)) => (echo.wrapping_sub(first) as i32) < 0,
            _ => false,
        }
    }

    /// Forgets the first retransmission, because none is in flight. The next retransmission is the first of
    /// another recovery.
    pub(super) const fn forget_retransmissions(&mut self) {
        self.first_retransmission = None;
    }

    /// Forgets the recovery, because the window is now reduced for another cause than a loss.
    pub(super) const fn forget(&mut self) {
        self.marker = None;
    }

    /// True if the last recovery can be undone: that has not happened yet, and no ECN echo has reduced the
    /// window since.
    pub(super) const fn is_possible(&self) -> bool {
        self.marker.is_some()
    }

    /// Undoes the recovery. Returns the window as it was before, if the recovery reduced it.
    pub(super) fn take(&mut self) -> Option<PriorWindow> {
        self.marker.take().and(self.prior)
    }
}

impl Recovery {
    /// Keeps the window for an undo, as a recovery begins. If the recovery `reduces` nothing, there is no
    /// window to keep (Linux: tcp_init_undo).
    pub(super) fn remember(&mut self, reduces: bool, context: &Context<'_>) {
        let window = context.congestion.window();
        let (cwnd, ssthresh) = (window.cwnd(), window.remembered_ssthresh());
        let prior = reduces.then_some(PriorWindow { cwnd, ssthresh });
        let retransmissions = context.scoreboard.resent_segments() + self.probe.retransmissions();
        self.undo.begin(context.scoreboard.snd_una(), retransmissions, prior);
    }

    /// Takes note that a segment left again.
    pub(super) fn note_retransmission(&mut self, context: &Context<'_>) {
        self.undo.on_sent_again(timestamps::clock(context.now));
    }

    /// True if there is a proof that the reduction was needless (Linux: tcp_may_undo).
    pub(super) fn may_undo(&self, outcome: &AckOutcome) -> bool {
        self.is_linux()
            && (self.undo.is_proved_by_duplicates() || self.undo.is_proved_by_echo(outcome.incoming.echo))
    }

    /// Undoes the reduction at the end of recovery if it was needless. Otherwise RACK learns of the recovery.
    pub(super) fn undo_or_accept(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) {
        if self.may_undo(outcome) {
            self.restore(context);
        } else {
            self.rack.on_recovered();
        }
    }

    /// Processes a partial acknowledgement in fast recovery. Returns true if the segments were late and not
    /// lost, so that no loss has to be searched. The reduction is undone once no retransmission is in flight
    /// (Linux: tcp_try_undo_partial).
    pub(super) fn undo_partially(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) -> bool {
        if !self.is_linux() || !self.undo.is_proved_by_echo(outcome.incoming.echo) {
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

    /// Undoes the reduction if duplicates prove that it was needless, and returns true if so (Linux:
    /// tcp_try_undo_dsack).
    pub(super) fn undo_by_duplicates(&mut self, context: &mut Context<'_>) -> bool {
        let is_proved = self.is_linux() && self.undo.is_proved_by_duplicates();
        if is_proved {
            self.restore(context);
        }
        is_proved
    }

    /// Restores `cwnd` and `ssthresh`, and requests a search for losses (Linux: tcp_undo_cwnd_reduction).
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

    const PRIOR: PriorWindow = PriorWindow { cwnd: 10, ssthresh: 20 };

    /// RFC 3522 §3.2.
    #[test]
    fn an_echo_from_before_the_retransmission_proves_it_needless() {
        let mut undo = Undo::default();
        undo.begin(1, 0, Some(PRIOR));
        assert!(!undo.is_proved_by_echo(Some(5)));
        undo.on_sent_again(100);
        undo.on_sent_again(110);
        assert!(undo.is_proved_by_echo(Some(99)));
        assert!(!undo.is_proved_by_echo(Some(100)) && !undo.is_proved_by_echo(None));
        assert_eq!((undo.take(), undo.take()), (Some(PRIOR), None));
        assert!(!undo.is_proved_by_echo(Some(99)));
    }

    /// RFC 3708 §2.
    #[test]
    fn a_duplicate_for_each_retransmission_proves_them_needless() {
        let mut undo = Undo::default();
        undo.begin(1001, 0, Some(PRIOR));
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
