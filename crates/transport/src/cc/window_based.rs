//! Controls that move `cwnd` with each acknowledgement and reduce it at each loss (RFC 5681 and its
//! successors).
//!
//! An algorithm says how `cwnd` grows and how far a loss reduces it. The rules that all algorithms share are
//! in `window_controller`.

use talkpath_units::{Duration, Instant};

use super::{Ack, RecoveryAck, RttSample, Window};

/// How an algorithm moves a [`Window`]. Amounts are in the window's unit.
pub trait WindowBased {
    /// A segment that was sent once was acknowledged after `rtt`.
    fn on_rtt(&mut self, _window: &mut Window, _rtt: Duration, _sample: RttSample) {}
    /// New data was acknowledged outside of fast recovery.
    fn on_ack(&mut self, window: &mut Window, ack: Ack) {
        window.grow(ack);
    }
    /// A loss was found with `flight_size` in flight: `ssthresh` falls.
    fn reduce(&mut self, window: &mut Window, flight_size: u64) {
        window.halve(flight_size);
    }
    /// New data was acknowledged during fast recovery. The acknowledgement is full (`is_full_ack`) if it is
    /// for everything that was sent before the loss was noticed, and otherwise partial (RFC 6582 §3.2).
    fn on_recovery_ack(&mut self, window: &mut Window, ack: Ack, is_full_ack: bool) -> RecoveryAck;
    /// The retransmission timer expired: what the algorithm learnt of the path may no longer hold.
    fn on_timeout(&mut self) {}
    /// Data is about to leave with nothing in flight. The last data left `idle` ago.
    fn on_flight_start(&mut self, _idle: Duration, _now: Instant) {}
}
