//! NewReno: RFC 6582. As Reno, but fast recovery lasts until all that was in flight at its beginning is
//! acknowledged.
//!
//! A partial acknowledgement is for a part of that flight, and so reveals the next loss. The lost segment is
//! sent again at once: one loss is repaired in each round trip. Losses below the end of the last recovery
//! begin no further recovery (§3.2 step 1), because their duplicate acknowledgements may come from needless
//! retransmissions. Left out: the heuristics of §4, which are optional.

use super::{Ack, Counting, RecoveryAck, Window, WindowBased};

/// NewReno keeps no state besides the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewReno;

impl WindowBased for NewReno {
    /// Moves `cwnd` (RFC 6582 §3.2 step 3). The RFC offers two values after a full acknowledgement: a window
    /// that counts bytes takes the first, a window that counts packets takes the second, as Linux does
    /// (tcp_end_cwnd_reduction). If each acknowledgement opens the window, the full one does too: BSD and
    /// ns-2 treat it like any other, because recovery is over.
    fn on_recovery_ack(&mut self, window: &mut Window, ack: Ack, is_full_ack: bool) -> RecoveryAck {
        if !is_full_ack {
            window.deflate_partially(ack.acked);
            return RecoveryAck::Stay;
        }
        match window.counting() {
            Counting::Bytes { .. } => window.deflate_without_burst(ack.flight_size),
            Counting::Packets => window.deflate(),
        }
        window.grow_after_recovery(ack);
        RecoveryAck::Leave
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Instant, Packets};

    use super::*;
    use crate::cc::{Growth, WindowController};
    use talkpath_config::CongestionControlKind;

    fn newreno(window: Window) -> WindowController {
        WindowController::new(CongestionControlKind::NewReno, window, false)
    }

    fn ack(acked: u64, flight_size: u64) -> Ack {
        Ack { acked, flight_size, cwnd_limited: true, now: Instant::ZERO }
    }

    /// RFC 6582 §3.2 step 3.
    #[test]
    fn a_partial_acknowledgement_deflates_and_keeps_recovering() {
        let counting = Counting::Bytes { smss: 1000 };
        let mut newreno = newreno(Window::new(counting, Packets::new(10), None));
        newreno.on_third_duplicate(Some(10_000));
        for _ in 0..5 {
            newreno.on_duplicate_ack();
        }
        assert_eq!(newreno.window().cwnd(), 13_000);
        assert_eq!(newreno.on_recovery_ack(ack(4_000, 9_000), false), RecoveryAck::Stay);
        assert_eq!(newreno.window().cwnd(), 10_000);
        assert_eq!(newreno.on_recovery_ack(ack(9_000, 2_000), true), RecoveryAck::Leave);
        assert_eq!(newreno.window().cwnd(), 3_000);
    }

    /// BSD's tcp_input and ns-2's recv_newack_helper: 1,000 B of 5,000 B more, a share of 200 B.
    #[test]
    fn where_each_acknowledgement_opens_the_window_the_full_one_does_too() {
        let counting = Counting::Bytes { smss: 1000 };
        for (growth, cwnd) in [(Growth::Counted, 5_000), (Growth::EachAck, 5_200)] {
            let window = Window::new(counting, Packets::new(10), None).with_growth(growth);
            let mut newreno = newreno(window);
            newreno.on_third_duplicate(Some(10_000));
            assert_eq!(newreno.on_recovery_ack(ack(9_000, 6_000), true), RecoveryAck::Leave);
            assert_eq!(newreno.window().cwnd(), cwnd, "{growth:?}");
        }
    }

    /// tcp_slow_start, tcp_reno_ssthresh, tcp_end_cwnd_reduction.
    #[test]
    fn counting_packets_follows_linux() {
        let mut newreno = newreno(Window::new(Counting::Packets, Packets::new(10), Some(Packets::new(12))));
        newreno.on_ack(ack(2, 8));
        assert_eq!(newreno.window().cwnd(), 12);
        newreno.on_third_duplicate(Some(4));
        assert_eq!(newreno.window().ssthresh_packets(), 6.0);
        newreno.on_recovery_ack(ack(4, 0), true);
        assert_eq!(newreno.window().cwnd(), 6);
    }
}
