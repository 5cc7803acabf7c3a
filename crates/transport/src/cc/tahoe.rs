//! Tahoe: 4.3BSD-Tahoe of 1988, slow start and congestion avoidance (RFC 5681 §3.1) with fast retransmit and nothing after it.
//!
//! The third duplicate acknowledgement is a timeout that came early: everything in flight is taken for lost, and slow start
//! begins anew from one segment (V. Jacobson, "Congestion Avoidance and Control", 1988). Left out: a form with selective
//! acknowledgements, which are younger; where both ends agreed on them, recovery is theirs, and this is Reno.

use talkpath_units::Duration;

use super::{Ack, CongestionControl, RecoveryAck, Window};

/// 4.3BSD-Tahoe.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Tahoe {
    window: Window,
}

impl Tahoe {
    /// Tahoe over a fresh `window`.
    pub const fn new(window: Window) -> Self {
        Self { window }
    }
}

impl CongestionControl for Tahoe {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn goes_back(&self) -> bool {
        true
    }

    fn on_ack(&mut self, ack: Ack) {
        self.window.grow(ack);
    }

    fn on_loss(&mut self, flight_size: u64) {
        self.window.halve(flight_size);
        self.window.collapse();
    }

    fn reduce(&mut self, flight_size: u64) {
        self.window.halve(flight_size);
    }

    /// Not called: there is no fast recovery.
    fn on_duplicate_ack(&mut self) {}

    fn on_recovery_ack(&mut self, _ack: Ack, _full: bool) -> RecoveryAck {
        RecoveryAck::Leave
    }

    fn may_recover_again(&self) -> bool {
        true
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
