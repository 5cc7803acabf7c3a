//! What a sender does when its retransmission timer expires (RFC 6298 §5.4 to §5.6), and F-RTO, which finds
//! out afterwards whether the timeout was needed (RFC 5682 §2 and §3).
//!
//! ```text
//!   timeout ─► resend the first segment ─► an acknowledgement advances ─► send new data, resend nothing
//!                                            │
//!        a segment from before the timeout   ├─► the timeout was needless: undo it
//!        is acknowledged                     │
//!        a duplicate acknowledgement comes   └─► the timeout was needed: resend what is lost
//! ```
//!
//! A timeout is needless if the segments were only late. The sender then restores the window from before the
//! timeout.

use talkpath_config::Stack;

use super::outcome::AckOutcome;
use super::rack::ReorderingTimer;
use super::{Context, Recovery, RecoveryState};

/// The state of F-RTO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Frto {
    /// F-RTO does not judge a timeout.
    #[default]
    Off,
    /// A timeout happened, and the next acknowledgements will show whether it was needed.
    Watching,
    /// As `Watching`. In addition, retransmissions wait until new data has left (RFC 5682 §2.1 step 2b).
    NewDataFirst,
}

impl Recovery {
    /// True if retransmissions wait until new data has left.
    #[inline]
    pub(in crate::tcp) fn tries_new_data_first(&self) -> bool {
        self.frto == Frto::NewDataFirst
    }

    /// Ends F-RTO if it waits for new data, but no new data has left since the timeout. The caller calls this
    /// function when no new data may leave. Returns true if F-RTO ended, so that retransmissions may leave.
    pub(in crate::tcp) fn give_up_new_data_first(&mut self, snd_max: u64) -> bool {
        let gives_up = self.tries_new_data_first() && snd_max <= self.episode.recover();
        if gives_up {
            self.frto = Frto::Off;
        }
        gives_up
    }

    /// A SYN or SYN-ACK was not acknowledged in time.
    pub(in crate::tcp) const fn on_handshake_timeout(&mut self) {
        self.episode.count_timeout();
    }

    /// The retransmission timer expired with something unacknowledged.
    pub(in crate::tcp) fn on_retransmission_timeout(&mut self, context: &mut Context<'_>) {
        // Several timeouts in a row may be for the same data.
        let is_first_for_data = self.episode.note_timeout_at(context.scoreboard.snd_una());
        let may_reduce = self.begin_reduction(context);
        if self.has_sack() {
            self.enter_loss_with_sack(may_reduce, is_first_for_data, context);
        } else {
            // RFC 5681 §3.1 halves the window once for the same data. BSD halves it at each timeout.
            let halves = (may_reduce && is_first_for_data) || self.stack == Stack::BsdReno;
            let base = self.loss_base(0, context);
            context.congestion.control_mut().on_rto(base, halves, context.scoreboard.losses());
            self.enter_loss(context.scoreboard.snd_max());
            context.scoreboard.go_back();
        }
        // RFC 6298 §5.4: the first segment leaves now. The timeout leaves a window of one segment. If RACK
        // counts a segment as in flight, that segment fills the window, so the first segment has to leave
        // in spite of the window. The stack `linux` has enlarged the window instead.
        let is_window_full = !self.is_linux() && context.scoreboard.in_flight_segments() > 0;
        self.episode.request_first_retransmission(is_window_full);
        self.episode.count_timeout();
        context.rtt.back_off();
    }

    /// Marks every segment that was not sacked as lost (tcp_enter_loss, RFC 6675 §5.1). `may_reduce` is false
    /// if an echo of congestion has already reduced this window. `is_first_for_data` is false if the timer
    /// has already expired for the same data.
    fn enter_loss_with_sack(&mut self, may_reduce: bool, is_first_for_data: bool, context: &mut Context<'_>) {
        let state = self.state();
        // A timeout reduces the window, unless it was reduced for the same data before: by an echo of
        // congestion, by the fast recovery that is under way (Linux), or by an earlier timeout.
        let reduces = match state {
            RecoveryState::Open => may_reduce,
            RecoveryState::Fast if self.is_linux() => self.episode.covers(context.scoreboard.snd_una()),
            RecoveryState::Fast | RecoveryState::Loss => is_first_for_data,
        };
        // Linux judges a timeout that begins a recovery, and a repeated timeout for the same data.
        let is_judged = self.is_linux() && (state == RecoveryState::Open || !is_first_for_data);
        self.frto = if is_judged { Frto::Watching } else { Frto::Off };
        if reduces {
            self.remember(true, context);
        }
        // First the segments are marked, so that congestion control counts these losses (tcp_enter_loss).
        let rack = self.sack.by_time().then_some(&self.rack);
        context.scoreboard.mark_all_lost(rack, context.now);
        let flight_size = context.congestion.flight_size(context.scoreboard);
        context.congestion.control_mut().on_rto(flight_size, reduces, context.scoreboard.losses());
        if self.is_linux() {
            // Room for the segments that RACK counts as in flight, and for the segment that leaves now.
            let in_flight = context.congestion.in_flight(context.scoreboard);
            context.congestion.set_cwnd(in_flight + 1);
        }
        self.probe.forget();
        self.sack.forget_duplicates();
        self.enter_loss(context.scoreboard.snd_max());
    }

    /// Continues the recovery from a timeout when an acknowledgement has arrived, with F-RTO (RFC 5682 §3.1;
    /// Linux: tcp_process_loss).
    pub(super) fn recover_from_timeout(
        &mut self,
        outcome: &AckOutcome,
        context: &mut Context<'_>,
    ) -> ReorderingTimer {
        // RFC 5682 §3.1 step 3.b: a segment from before the timeout has arrived.
        let frto_finds_needless = self.frto != Frto::Off && outcome.has_original;
        if frto_finds_needless || (outcome.advanced && self.may_undo(outcome)) {
            self.undo_timeout(context);
        } else {
            self.try_new_data(outcome, context);
            if self.episode.covers(outcome.incoming.ack) && !self.tries_new_data_first() {
                self.undo_or_accept(outcome, context);
                self.frto = Frto::Off;
                self.leave();
            }
        }
        let old_resent = context.scoreboard.resent_segments();
        let reordering_timer = self.find_losses(outcome, context);
        let lost_again = context.scoreboard.resent_segments() < old_resent;
        let may_begin = self.state() == RecoveryState::Open || lost_again;
        if may_begin && context.scoreboard.lost_segments() > 0 {
            self.begin_fast(context);
        }
        reordering_timer
    }

    /// Decides whether new data leaves before retransmissions: after the first acknowledgement that advances
    /// (RFC 5682 §3.1 step 2.b). Once new data has left, a duplicate acknowledgement shows that the timeout
    /// was needed (step 3.a).
    fn try_new_data(&mut self, outcome: &AckOutcome, context: &Context<'_>) {
        if self.frto == Frto::Off {
            return;
        }
        let new_data_has_left = context.scoreboard.snd_max() > self.episode.recover();
        if new_data_has_left {
            if outcome.has_sacked || outcome.is_bare_duplicate() {
                self.frto = Frto::Off;
            }
        } else if outcome.advanced && !self.episode.covers(outcome.incoming.ack) {
            let can_send = context.sender.can_send_new(context.scoreboard);
            self.frto = if can_send { Frto::NewDataFirst } else { Frto::Off };
        }
    }

    /// Undoes a needless timeout: no segment is lost, and the window is restored (tcp_try_undo_loss).
    fn undo_timeout(&mut self, context: &mut Context<'_>) {
        context.scoreboard.unmark_lost();
        self.restore(context);
        self.frto = Frto::Off;
        self.episode.forget_timeout();
        self.leave();
    }

    /// Lets retransmissions leave without waiting for new data.
    pub(super) fn stop_trying_new_data(&mut self) {
        if self.frto == Frto::NewDataFirst {
            self.frto = Frto::Watching;
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Instant, Seed};

    use crate::cc::Controller;
    use crate::tcp::core::Core;
    use crate::tcp::send::NewSegment;
    use talkpath_config::{CongestionControlKind, Role, Stack, TcpConfig};

    /// tcp_enter_loss: BBR learns of the timeout when the segments are marked as lost (bbr_lt_bw_sampling).
    #[test]
    fn bbr_counts_the_losses_of_a_timeout() {
        let preset = TcpConfig::preset(Stack::Rfc, false);
        let config = TcpConfig { cc: Some(CongestionControlKind::Bbr), ..preset };
        let mut core = Core::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        core.scoreboard.on_syn_sent();
        core.scoreboard.on_established();
        core.sender.on_established(1000);
        core.recovery.on_syn(true);
        for _ in 0..10 {
            core.sender.send_new(NewSegment::forced(1000), &mut core.scoreboard, Instant::ZERO);
        }
        let (recovery, mut context) = core.recovery_context(Instant::from_millis(1000));
        recovery.on_retransmission_timeout(&mut context);
        let Controller::Rate(bbr) = core.congestion.control() else { panic!("BBR is rate-based") };
        assert_eq!(bbr.lost(), 10);
    }
}
