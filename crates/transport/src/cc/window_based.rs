//! Controls that move `cwnd` with each acknowledgement and reduce it at each loss (RFC 5681 and its
//! successors).
//!
//! An algorithm says how `cwnd` grows and how far a loss reduces it. What all algorithms do is in
//! `window_controller`.

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
    /// New data was acknowledged during fast recovery. `full` if that is all that was sent before the loss
    /// was noticed.
    fn on_recovery_ack(&mut self, window: &mut Window, ack: Ack, full: bool) -> RecoveryAck;
    /// The retransmission timer expired: what was learnt of the path no longer holds.
    fn on_timeout(&mut self) {}
    /// Data is about to leave with nothing in flight, `idle` after the last.
    fn on_flight_start(&mut self, _idle: Duration, _now: Instant) {}
}
