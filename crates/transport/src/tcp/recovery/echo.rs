//! Reductions without a loss: an acknowledgement echoes a congestion mark (RFC 3168 §6.1.2; Linux:
//! tcp_enter_cwr).
//!
//! | sender | `ssthresh` | `cwnd` |
//! | --- | --- | --- |
//! | `linux` with SACK | falls as for a loss | PRR moves it to `ssthresh` over a round trip |
//! | `linux` without SACK, `rfc`, `bsd-reno` | falls as for a loss | is set to `ssthresh` at once |
//! | BBR version 1, as in Linux | stays | stays |
//!
//! As for a loss, Reno and NewReno halve `ssthresh`, and CUBIC reduces it to 0.7 (RFC 9438 §4.6). At most one
//! mark in each window counts, and none during recovery, which has reduced the window already. All senders
//! set CWR on their next new data, BBR too.

use super::{Context, Recovery, RecoveryState};
use crate::tcp::ecn::ReducedBy;

impl Recovery {
    /// True while PRR moves `cwnd` after an echo.
    #[inline]
    pub(in crate::tcp) const fn reduces_for_echo(&self) -> bool {
        self.reduces_for_echo
    }

    /// Reduces the window for an acknowledgement that echoes a mark. The caller has found no loss.
    pub(super) fn on_echo(&mut self, context: &mut Context<'_>) {
        let snd_una = context.scoreboard.snd_una();
        if self.state() != RecoveryState::Open || context.ecn.is_reduced(snd_una) {
            return;
        }
        context.ecn.on_reduced(context.scoreboard.snd_max(), ReducedBy::Echo);
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
        // This reduction has no retransmission as its cause, so a needless retransmission must not undo it.
        self.undo.forget();
        if self.is_linux() && self.has_sack() {
            self.prr.begin(cwnd);
            self.reduces_for_echo = true;
        } else {
            context.congestion.lower_to_ssthresh();
        }
    }

    /// Ends the reduction once data that was sent after its beginning is acknowledged (Linux:
    /// tcp_end_cwnd_reduction).
    pub(super) fn end_reduction_for_echo(&mut self, context: &mut Context<'_>) {
        if self.reduces_for_echo && !context.ecn.is_reduced(context.scoreboard.snd_una()) {
            self.reduces_for_echo = false;
            context.congestion.lower_to_ssthresh();
        }
    }

    /// Begins the reduction for a loss or a timeout. Returns false if the window stays, because an echo has
    /// reduced it since the lost data was sent. BBR learns of each loss, so it gets true always.
    pub(super) fn begin_reduction(&mut self, context: &mut Context<'_>) -> bool {
        self.reduces_for_echo = false;
        let is_reduced = context.ecn.is_reduced_by_echo(context.scoreboard.snd_una());
        context.ecn.on_reduced(context.scoreboard.snd_max(), ReducedBy::Loss);
        !is_reduced || context.congestion.is_rate_based()
    }
}
