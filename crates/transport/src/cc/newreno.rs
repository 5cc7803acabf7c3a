//! NewReno: RFC 6582. As Reno, but fast recovery lasts until all that was in flight at its beginning is acknowledged.
//!
//! An acknowledgement of part of it tells of the next loss, which is repaired at once, one a round trip. What the
//! last recovery covered cannot begin another one (§3.2 step 1), so that retransmissions that were not needed are
//! not taken for losses. Left out: the heuristics of §4, which are optional.

use talkpath_units::Duration;

use super::{Ack, CongestionControl, Counting, RecoveryAck, Window};

/// RFC 6582.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct NewReno {
    window: Window,
}

impl NewReno {
    /// NewReno over a fresh `window`.
    pub const fn new(window: Window) -> Self {
        Self { window }
    }
}

impl CongestionControl for NewReno {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_ack(&mut self, ack: Ack) {
        self.window.grow(ack);
    }

    fn on_loss(&mut self, flight_size: u64) {
        self.window.halve(flight_size);
        self.window.inflate_for_recovery();
    }

    fn reduce(&mut self, flight_size: u64) {
        self.window.halve(flight_size);
    }

    fn on_duplicate_ack(&mut self) {
        self.window.inflate();
    }

    /// RFC 6582 §3.2 step 3. Of the two windows that a full acknowledgement may leave, the RFC's own counting takes
    /// the first, Linux (tcp_end_cwnd_reduction) the second. Where each acknowledgement opens the window the full one does too, as BSD's
    /// and ns-2's do, which treat it like any other once recovery is over.
    fn on_recovery_ack(&mut self, ack: Ack, full: bool) -> RecoveryAck {
        if !full {
            self.window.deflate_partially(ack.acked);
            return RecoveryAck::Stay;
        }
        match self.window.counting() {
            Counting::Bytes { .. } => self.window.deflate_without_burst(ack.flight_size),
            Counting::Packets => self.window.deflate(),
        }
        self.window.grow_after_recovery(ack);
        RecoveryAck::Leave
    }

    fn may_recover_again(&self) -> bool {
        false
    }

    fn on_rto(&mut self, flight_size: u64, first: bool) {
        if first {
            self.window.halve(flight_size);
        }
        self.window.collapse();
    }

    fn on_idle(&mut self, idle: Duration, rto: Duration) {
        self.window.restart(idle, rto);
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Instant, Packets};

    use super::*;
    use crate::cc::Growth;

    fn ack(acked: u64, flight_size: u64) -> Ack {
        Ack { acked, flight_size, cwnd_limited: true, now: Instant::ZERO }
    }

    /// RFC 6582 §3.2 step 3.
    #[test]
    fn a_partial_acknowledgement_deflates_and_keeps_recovering() {
        let counting = Counting::Bytes { smss: 1000 };
        let mut newreno = NewReno::new(Window::new(counting, Packets::new(10), None));
        newreno.on_loss(10_000);
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
            let mut newreno = NewReno::new(window);
            newreno.on_loss(10_000);
            assert_eq!(newreno.on_recovery_ack(ack(9_000, 6_000), true), RecoveryAck::Leave);
            assert_eq!(newreno.window().cwnd(), cwnd, "{growth:?}");
        }
    }

    /// tcp_slow_start, tcp_reno_ssthresh, tcp_end_cwnd_reduction.
    #[test]
    fn counting_packets_follows_linux() {
        let mut newreno =
            NewReno::new(Window::new(Counting::Packets, Packets::new(10), Some(Packets::new(12))));
        newreno.on_ack(ack(2, 8));
        assert_eq!(newreno.window().cwnd(), 12);
        newreno.on_loss(4);
        assert_eq!(newreno.window().ssthresh_packets(), 6.0);
        newreno.on_recovery_ack(ack(4, 0), true);
        assert_eq!(newreno.window().cwnd(), 6);
    }
}
