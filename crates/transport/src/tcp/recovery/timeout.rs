//! The retransmission timer expired: RFC 6298 §5.4 to §5.6, and F-RTO, which finds out whether it had to
//! (RFC 5682 §2 and §3).
//!
//! ```text
//!   timeout ──► send the first segment ──► progress: send new data before anything else is sent again
//!                                            ├── what was sent before the timeout arrives: it was needless
//!                                            └── a duplicate: it was not
//! ```

use talkpath_config::Stack;

use super::outcome::AckOutcome;
use super::sack::Arrived;
use super::{Context, Recovery, RecoveryState};

/// The state of F-RTO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Frto {
    /// No timeout is in question.
    #[default]
    Off,
    /// A timeout happened, and acknowledgements will show whether it was needed.
    Watching,
    /// The same, and lost segments wait until new data was tried (RFC 5682 §2.1 step 2b).
    NewDataFirst,
}

impl Frto {
    /// An acknowledgement arrived: retransmissions no longer wait.
    pub(super) fn on_ack(&mut self) {
        if *self == Self::NewDataFirst {
            *self = Self::Watching;
        }
    }
}

impl Recovery {
    /// True if lost segments wait until new data was tried.
    #[inline]
    pub(in crate::tcp) fn tries_new_data_first(&self) -> bool {
        self.frto == Frto::NewDataFirst
    }

    /// Ends F-RTO if it waits for new data to leave and has sent none since the timeout. The caller calls
    /// this if no new data may leave. Returns true if F-RTO ended, so that retransmissions may leave.
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
        let first = self.episode.note_timeout_at(context.scoreboard.snd_una());
        if self.has_sack() {
            self.enter_loss_with_sack(first, context);
        } else {
            // BSD halves at each timeout, RFC 5681 §3.1 once for the same data.
            let halves = (self.begin_reduction(context) && first) || self.stack == Stack::BsdReno;
            let base = self.loss_base(0, context);
            context.congestion.control_mut().on_rto(base, halves, context.scoreboard.losses());
            self.enter_loss(context.scoreboard.snd_max());
            context.scoreboard.go_back();
        }
        // RFC 6298 §5.4: the first segment leaves now. RACK may hold others for in flight, which fill the
        // window of one segment that a timeout leaves. `linux` makes the window larger by them.
        let is_full = !self.is_linux() && context.scoreboard.in_flight_segments() > 0;
        self.episode.request_first_retransmission(is_full);
        self.episode.count_timeout();
        context.rtt.back_off();
    }

    /// Everything that was not sacked is marked as lost (tcp_enter_loss, RFC 6675 §5.1).
    fn enter_loss_with_sack(&mut self, first: bool, context: &mut Context<'_>) {
        let reduces = self.begin_reduction(context);
        let is_new = match self.state() {
            RecoveryState::Open => reduces,
            RecoveryState::Fast if self.is_linux() => self.episode.covers(context.scoreboard.snd_una()),
            RecoveryState::Fast | RecoveryState::Loss => first,
        };
        let is_watched = self.is_linux() && (self.state() == RecoveryState::Open || !first);
        self.frto = if is_watched { Frto::Watching } else { Frto::Off };
        if is_new {
            self.remember(true, context);
        }
        // The segments are marked first, so that congestion control learns of these losses (tcp_enter_loss).
        let rack = self.sack.by_time().then_some(&self.rack);
        context.scoreboard.mark_all_lost(rack, context.now);
        let flight_size = context.congestion.flight_size(context.scoreboard);
        context.congestion.control_mut().on_rto(flight_size, is_new, context.scoreboard.losses());
        if self.is_linux() {
            // What RACK holds for in flight, and the segment that leaves now.
            let in_flight = context.congestion.in_flight(context.scoreboard);
            context.congestion.set_cwnd(in_flight + 1);
        }
        self.probe.forget();
        self.sack.forget_duplicates();
        self.enter_loss(context.scoreboard.snd_max());
    }

    /// Recovery after a timeout, with F-RTO (RFC 5682 §3.1; Linux: tcp_process_loss). Returns as
    /// [`Recovery::find_losses`].
    pub(super) fn recover_from_timeout(
        &mut self,
        arrived: Arrived,
        outcome: &AckOutcome,
        context: &mut Context<'_>,
    ) -> bool {
        // Step 3.b: what was sent before the timeout still arrives.
        let is_needless = self.frto != Frto::Off && outcome.has_original();
        if is_needless || (arrived.advanced() && self.may_undo(arrived)) {
            self.undo_timeout(context);
        } else {
            self.try_new_data(arrived, outcome, context);
            if self.episode.covers(arrived.incoming().ack) && !self.tries_new_data_first() {
                self.undo_or_accept(arrived, context);
                self.frto = Frto::Off;
                self.leave();
            }
        }
        let old_resent = context.scoreboard.resent_segments();
        let waits_for_reordering = self.find_losses(arrived, outcome, context);
        let lost_again = context.scoreboard.resent_segments() < old_resent;
        let may_begin = self.state() == RecoveryState::Open || lost_again;
        if may_begin && context.scoreboard.lost_segments() > 0 {
            self.begin_fast(context);
        }
        waits_for_reordering
    }

    /// RFC 5682 §3.1 steps 2.b and 3.a: after the first progress new data is sent before anything else is
    /// sent again.
    fn try_new_data(&mut self, arrived: Arrived, outcome: &AckOutcome, context: &Context<'_>) {
        if self.frto == Frto::Off {
            return;
        }
        let was_tried = context.scoreboard.snd_max() > self.episode.recover();
        if was_tried {
            if outcome.has_sacked() || arrived.is_bare_duplicate() {
                self.frto = Frto::Off;
            }
        } else if arrived.advanced() && !self.episode.covers(arrived.incoming().ack) {
            let can_send = context.sender.can_send_new(context.scoreboard);
            self.frto = if can_send { Frto::NewDataFirst } else { Frto::Off };
        }
    }

    /// The timeout was needless (tcp_try_undo_loss).
    fn undo_timeout(&mut self, context: &mut Context<'_>) {
        context.scoreboard.unmark_lost();
        self.restore(context);
        self.frto = Frto::Off;
        self.episode.forget_timeout();
        self.leave();
    }

    /// The losses were none: nothing waits for new data any longer.
    pub(super) fn stop_trying_new_data(&mut self) {
        self.frto.on_ack();
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
