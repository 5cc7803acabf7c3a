//! Reductions without a loss: an acknowledgement echoes a mark (RFC 3168 §6.1.2; tcp_enter_cwr).
//!
//! A mark counts as a loss, once a window. The controller reduces `ssthresh` as for a loss: Reno and NewReno
//! to a half, CUBIC to 0.7 (RFC 9438 §4.6). With SACK the `linux` stack brings `cwnd` there by PRR, without
//! entering recovery. Everything else sets it at once, `linux` without SACK too. BBR version 1 keeps its
//! window, as in Linux, and says CWR all the same. In recovery the window is reduced already.

use super::{Context, Recovery, RecoveryState};

impl Recovery {
    /// True if PRR moves `cwnd` after an echo.
    #[inline]
    pub(in crate::tcp) const fn reduces_for_echo(&self) -> bool {
        self.reduces_for_echo
    }

    /// An acknowledgement that echoes a mark was processed, and no loss was found.
    pub(super) fn on_echo(&mut self, context: &mut Context<'_>) {
        let snd_una = context.scoreboard.snd_una();
        if self.state() != RecoveryState::Open || context.ecn.is_reduced(snd_una) {
            return;
        }
        context.ecn.on_reduced(context.scoreboard.snd_max(), true);
        if context.congestion.is_rate_based() {
            return;
        }
        let cwnd = context.congestion.window().cwnd();
        let base = if self.has_sack() {
            context.congestion.flight_size(context.scoreboard)
        } else {
            self.loss_base(0, context)
        };
        context.congestion.control_mut().reduce(base);
        // What was reduced for a mark was not reduced for a retransmission.
        self.undo.forget();
        if self.is_linux() && self.has_sack() {
            self.prr.begin(cwnd);
            self.reduces_for_echo = true;
        } else {
            context.congestion.lower_to_ssthresh();
        }
    }

    /// Something that was sent after the reduction is acknowledged: it is complete (tcp_end_cwnd_reduction).
    pub(super) fn end_reduction_for_echo(&mut self, context: &mut Context<'_>) {
        if self.reduces_for_echo && !context.ecn.is_reduced(context.scoreboard.snd_una()) {
            self.reduces_for_echo = false;
            context.congestion.lower_to_ssthresh();
        }
    }

    /// A loss or a timeout. Returns true if it is to reduce `cwnd`: an echo of the same window did not. BBR
    /// learns of each.
    pub(super) fn begin_reduction(&mut self, context: &mut Context<'_>) -> bool {
        self.reduces_for_echo = false;
        let is_reduced = context.ecn.is_reduced_by_echo(context.scoreboard.snd_una());
        context.ecn.on_reduced(context.scoreboard.snd_max(), false);
        !is_reduced || context.congestion.is_rate_based()
    }
}
