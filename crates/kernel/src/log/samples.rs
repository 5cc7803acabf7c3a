//! Samples of a connection's state.

use serde::{Deserialize, Serialize};
use talkpath_units::{Duration, Instant, Rate};
use talkpath_wire::{LossRecovery, Observation};

use super::tuple_form::tuple_form;

/// The state of a connection at one moment. A value that the transport does not know is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StateTuple", into = "StateTuple")]
pub struct StateSample {
    /// The time of the sample, ns.
    pub at_ns: u64,
    /// Congestion window, whole packets.
    pub cwnd: Option<u32>,
    /// Slow start threshold, whole packets. `None` while it is unlimited.
    pub ssthresh: Option<u32>,
    /// Smoothed round-trip time, us.
    pub srtt_us: Option<u32>,
    /// Retransmission timeout, us.
    pub rto_us: Option<u32>,
    /// The bytes in the send queue.
    pub queued: u64,
    /// [`Observation::window`], whole packets.
    pub window: Option<u32>,
    /// The pacing rate, bit/s.
    pub pacing_bps: Option<u64>,
}

/// The form of a [`StateSample`] on the control connection.
type StateTuple = (u64, Option<u32>, Option<u32>, Option<u32>, Option<u32>, u64, Option<u32>, Option<u64>);

tuple_form!(StateSample as StateTuple {
    at_ns, cwnd, ssthresh, srtt_us, rto_us, queued, window, pacing_bps
});

impl StateSample {
    /// Makes a sample of a connection at `now`.
    pub fn new(observation: &Observation, now: Instant) -> Self {
        Self {
            at_ns: now.as_nanos(),
            cwnd: whole_packets(observation.cwnd),
            ssthresh: whole_packets(observation.ssthresh),
            srtt_us: whole_micros(observation.srtt),
            rto_us: whole_micros(observation.rto),
            queued: observation.send_buffer.get(),
            window: whole_packets(observation.window),
            pacing_bps: observation.pacing_rate.map(Rate::as_bps),
        }
    }
}

/// The state of QUIC's loss recovery at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RecoveryTuple", into = "RecoveryTuple")]
pub struct RecoverySample {
    /// The time of the sample, ns.
    pub at_ns: u64,
    /// Probe timeout, us. `None` before the first round trip.
    pub pto_us: Option<u32>,
    /// [`LossRecovery::bytes_in_flight`].
    pub bytes_in_flight: u64,
    /// [`LossRecovery::lost_packets`].
    pub lost_packets: u64,
}

/// The form of a [`RecoverySample`] on the control connection.
type RecoveryTuple = (u64, Option<u32>, u64, u64);

tuple_form!(RecoverySample as RecoveryTuple { at_ns, pto_us, bytes_in_flight, lost_packets });

impl RecoverySample {
    pub(super) fn new(recovery: &LossRecovery, now: Instant) -> Self {
        Self {
            at_ns: now.as_nanos(),
            pto_us: whole_micros(recovery.pto),
            bytes_in_flight: recovery.bytes_in_flight.get(),
            lost_packets: recovery.lost_packets,
        }
    }
}

/// Converts a number of packets. Returns `None` if it is unknown or unlimited.
fn whole_packets(packets: Option<f64>) -> Option<u32> {
    packets.filter(|packets| *packets < f64::from(u32::MAX)).map(|packets| packets as u32)
}

/// Converts a time to us. Returns `None` if it is unknown or too long.
fn whole_micros(time: Option<Duration>) -> Option<u32> {
    u32::try_from(time?.as_micros()).ok()
}

/// A state with the time at which it was sampled.
pub(crate) trait Sample: Copy + PartialEq {
    /// Returns the time of the sample, ns.
    fn at_ns(&self) -> u64;

    /// Returns the same state with another time.
    fn with_time(self, at_ns: u64) -> Self;
}

impl Sample for StateSample {
    fn at_ns(&self) -> u64 {
        self.at_ns
    }

    fn with_time(self, at_ns: u64) -> Self {
        Self { at_ns, ..self }
    }
}

impl Sample for RecoverySample {
    fn at_ns(&self) -> u64 {
        self.at_ns
    }

    fn with_time(self, at_ns: u64) -> Self {
        Self { at_ns, ..self }
    }
}

/// Appends `sample`, unless it differs from the last sample only in its time.
pub(super) fn push_if_changed<S: Sample>(samples: &mut Vec<S>, sample: S) {
    let is_unchanged = samples.last().is_some_and(|last| last.with_time(sample.at_ns()) == sample);
    if !is_unchanged {
        samples.push(sample);
    }
}

/// Converts the times of a far end's samples.
pub(super) fn convert_times<S: Sample>(samples: &[S], to_our_clock: &dyn Fn(u64) -> Instant) -> Vec<S> {
    samples.iter().map(|sample| sample.with_time(to_our_clock(sample.at_ns()).as_nanos())).collect()
}
