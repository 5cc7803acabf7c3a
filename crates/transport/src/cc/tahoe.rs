//! Tahoe: 4.3BSD-Tahoe of 1988, slow start and congestion avoidance (RFC 5681 §3.1) with fast retransmit and
//! nothing after it.
//!
//! The third duplicate acknowledgement acts as an early timeout: everything in flight is marked as lost, and
//! slow start begins again from one segment (V. Jacobson, "Congestion Avoidance and Control", 1988). Left
//! out: a form with selective acknowledgements, which are younger. If both ends agreed on SACK, recovery is
//! SACK's, and this behaves as Reno.

use super::{Ack, RecoveryAck, Window, WindowBased};

/// 4.3BSD-Tahoe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tahoe;

impl WindowBased for Tahoe {
    /// There is no fast recovery in which an acknowledgement could come.
    fn on_recovery_ack(&mut self, _window: &mut Window, _ack: Ack, _full: bool) -> RecoveryAck {
        RecoveryAck::Leave
    }
}
