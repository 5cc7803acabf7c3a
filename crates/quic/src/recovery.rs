//! The state of the engine's loss recovery that the engine does not show: rttvar (RFC 9002 §5.3) and the
//! bytes in flight (RFC 9002 §B.2).
//!
//! ```text
//!   srtt'   = 7/8 srtt + 1/8 sample             so |srtt - sample| = 8 |srtt - srtt'|
//!   rttvar' = 3/4 rttvar + 1/4 |srtt - sample|      = 3/4 rttvar + 1/4 * 8 |srtt - srtt'|
//! ```
//!
//! The engine shows srtt, so rttvar follows from each change of it. The engine calls its congestion
//! controller at each step of its recovery. A [`WatchedController`] wraps the controller, and notes each
//! acknowledgement and loss. The end notes each packet that left, because the engine does not tell the
//! controller which packets count as in flight.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as EngineInstant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use talkpath_units::Duration;

use crate::watch::{PacketWatch, Space};

/// The state of one end's loss recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// srtt. `None` before the first sample.
    smoothed: Option<Duration>,
    rttvar: Duration,
    /// True from an acknowledgement with a sample until the engine shows the srtt after that sample.
    has_sample: bool,
    /// True if the ACK frame that the engine is handling acknowledges an ack-eliciting packet.
    acks_eliciting_packet: bool,
    /// The largest packet number of the last ACK frame, by packet number space.
    largest_acked: [Option<u64>; 3],
    bytes_in_flight: u64,
}

impl Recovery {
    /// Takes srtt as the engine shows it now, and moves rttvar if srtt has a new sample.
    pub(crate) fn on_smoothed_rtt(&mut self, smoothed: Duration) {
        let has_sample = core::mem::take(&mut self.has_sample);
        if !has_sample {
            return;
        }
        self.rttvar = match self.smoothed.replace(smoothed) {
            None => smoothed / 2,
            Some(before) => {
                // The engine rounds srtt to nanoseconds, so 8 times the difference is right to 8 ns.
                let moved = before.saturating_sub(smoothed).max(smoothed.saturating_sub(before));
                (self.rttvar.saturating_mul(3) + moved.saturating_mul(8)) / 4
            }
        };
    }

    /// Takes note that an ack-eliciting packet was acknowledged.
    fn on_packet_acked(&mut self) {
        self.acks_eliciting_packet = true;
    }

    /// Ends the processing of an ACK frame in `space`, whose largest packet number is `largest`. The frame is
    /// a sample if that number is new, and if one of the acknowledged packets was ack-eliciting (RFC 9002
    /// §5.1). Equal numbers in two spaces are two packets (RFC 9000 §12.3), also if both left at the same
    /// time.
    fn on_ack_frame(&mut self, space: Space, largest: Option<u64>, in_flight: u64) {
        self.bytes_in_flight = in_flight;
        let old_largest = core::mem::replace(&mut self.largest_acked[space as usize], largest);
        let acks_eliciting_packet = core::mem::take(&mut self.acks_eliciting_packet);
        self.has_sample |= old_largest != largest && acks_eliciting_packet;
    }

    /// Takes note that packets left that count `bytes` in flight.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.bytes_in_flight += bytes;
    }

    /// Returns the bytes of the packets that were sent and are neither acknowledged nor declared lost.
    /// Packets of the handshake whose keys were discarded count until the next acknowledgement.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Returns srtt. `None` before the first sample.
    pub(crate) fn smoothed_rtt(&self) -> Option<Duration> {
        self.smoothed
    }

    pub(crate) fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// Returns the probe timeout of 1-RTT packets before any backoff (RFC 9002 §6.2.1). `None` before the
    /// first sample.
    pub(crate) fn pto(&self) -> Option<Duration> {
        Some(self.smoothed? + self.rttvar.saturating_mul(4).max(GRANULARITY) + MAX_ACK_DELAY)
    }
}

/// The recovery of an end, which both the end and its congestion controller change.
#[derive(Clone, Debug)]
pub(crate) struct SharedRecovery {
    recovery: Arc<Mutex<Recovery>>,
    /// Knows the packet number space of the ACK frame that the engine is handling.
    watch: PacketWatch,
}

impl SharedRecovery {
    /// The recovery of the end whose packets `watch` reads.
    pub(crate) fn new(watch: &PacketWatch) -> Self {
        Self { recovery: Arc::default(), watch: watch.clone() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Recovery> {
        self.recovery.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a factory that wraps each controller of `inner` in a [`WatchedController`].
    pub(crate) fn watching(
        &self,
        inner: impl ControllerFactory + Send + Sync + 'static,
    ) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(WatchedFactory { inner: Arc::new(inner), recovery: self.clone() })
    }
}

struct WatchedFactory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    recovery: SharedRecovery,
}

impl ControllerFactory for WatchedFactory {
    fn build(self: Arc<Self>, now: EngineInstant, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, mtu);
        Box::new(WatchedController { inner, recovery: self.recovery.clone() })
    }
}

struct WatchedController {
    inner: Box<dyn Controller>,
    recovery: SharedRecovery,
}

impl Controller for WatchedController {
    fn on_sent(&mut self, now: EngineInstant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: EngineInstant,
        sent: EngineInstant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut recovery = self.recovery.lock();
        // The datagram may have another ACK frame before this one. `rtt` has the sample of that frame.
        recovery.on_smoothed_rtt(rtt.get().into());
        recovery.on_packet_acked();
        drop(recovery);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: EngineInstant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let space = self.recovery.watch.read_space();
        self.recovery.lock().on_ack_frame(space, largest, in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: EngineInstant,
        sent: EngineInstant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut recovery = self.recovery.lock();
        recovery.bytes_in_flight = recovery.bytes_in_flight.saturating_sub(lost_bytes);
        drop(recovery);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), recovery: self.recovery.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}

/// The granularity of timers (RFC 9002 §6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);

/// The longest time that the far end waits before it acknowledges (RFC 9000 §18.2). quinn and we take the
/// default.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK frame for the packet `number` of `space`, after which srtt is `smoothed` ms.
    fn ack(recovery: &mut Recovery, space: Space, number: u64, smoothed: u64) {
        recovery.on_packet_acked();
        recovery.on_ack_frame(space, Some(number), 0);
        recovery.on_smoothed_rtt(Duration::from_millis(smoothed));
    }

    /// What the probe timeout adds to srtt and max_ack_delay, in milliseconds.
    fn allowance(recovery: &Recovery) -> u64 {
        let pto = recovery.pto().expect("there was a sample");
        (pto - recovery.smoothed.expect("there was a sample") - MAX_ACK_DELAY).as_nanos() / 1_000_000
    }

    #[test]
    fn rttvar_follows_from_the_smoothed_round_trip() {
        let mut recovery = Recovery::default();
        recovery.on_smoothed_rtt(Duration::from_millis(333));
        assert_eq!(recovery.pto(), None, "quinn's guess is no sample");
        ack(&mut recovery, Space::Data, 1, 80);
        assert_eq!(allowance(&recovery), 160);
        // A sample of 120 ms: srtt 85 ms, rttvar 3/4 40 + 1/4 40.
        ack(&mut recovery, Space::Data, 2, 85);
        assert_eq!(allowance(&recovery), 160);
        // A sample of 93 ms: srtt 86 ms, rttvar 3/4 40 + 1/4 8.
        ack(&mut recovery, Space::Data, 3, 86);
        assert_eq!(allowance(&recovery), 128);
    }

    #[test]
    fn a_sample_that_moves_nothing_makes_rttvar_smaller() {
        let mut recovery = Recovery::default();
        for number in 1..=3 {
            ack(&mut recovery, Space::Data, number, 80);
        }
        // RFC 9002 §5.3: 40 ms, then three quarters of it, twice.
        assert_eq!(allowance(&recovery), 90);
        // What is no sample changes nothing: an acknowledgement without a new largest number.
        ack(&mut recovery, Space::Data, 3, 80);
        assert_eq!(allowance(&recovery), 90);
        // Nor one of packets that did not ask for it, whose number is known from then on.
        recovery.on_ack_frame(Space::Data, Some(4), 0);
        recovery.on_smoothed_rtt(Duration::from_millis(80));
        ack(&mut recovery, Space::Data, 4, 80);
        assert_eq!(allowance(&recovery), 90);
    }

    /// As Initial 0, Handshake 0 and 1-RTT 0 do that leave in one datagram.
    #[test]
    fn each_packet_number_space_has_its_samples_also_of_one_send_time() {
        let mut recovery = Recovery::default();
        for (space, expected) in [(Space::Initial, 160), (Space::Handshake, 120), (Space::Data, 90)] {
            ack(&mut recovery, space, 0, 80);
            assert_eq!(allowance(&recovery), expected);
        }
        ack(&mut recovery, Space::Handshake, 0, 80);
        assert_eq!(allowance(&recovery), 90, "it is known there");
    }
}
