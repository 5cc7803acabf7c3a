//! Tahoe: 4.3BSD-Tahoe of 1988, slow start and congestion avoidance (RFC 5681 §3.1) with fast retransmit and
//! nothing after it.
//!
//! The third duplicate acknowledgement acts as an early timeout: everything in flight is marked as lost, and
//! slow start begins again from one segment (V. Jacobson, "Congestion Avoidance and Control", 1988). Left
//! out: a form with selective acknowledgements, which are younger. If both ends agreed on SACK, SACK recovers
//! losses and Tahoe behaves as Reno.

use super::{Ack, RecoveryAck, Window, WindowBased};

/// Tahoe keeps no state besides the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tahoe;

impl WindowBased for Tahoe {
    /// Tahoe has no fast recovery, so this is never called.
    fn on_recovery_ack(&mut self, _window: &mut Window, _ack: Ack, _is_full_ack: bool) -> RecoveryAck {
        RecoveryAck::Leave
    }
}
