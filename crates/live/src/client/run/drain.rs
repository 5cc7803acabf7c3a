//! The time limit of the drain of a run.
//!
//! The data that TCP or DCCP took before the stop may need long to arrive. For example, 4 MiB of a send
//! buffer take nine minutes at 64 kbps. As long as data arrives, the server is not gone, so each arrival
//! moves the deadline. But a false server might only claim that data arrives. So only [`MAX_DRAINED`] bytes
//! move the deadline.

use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::spec::FlowSpec;
use talkpath_units::{Duration, Instant};

use crate::protocol::OUTAGE_S;

/// If nothing is delivered, a run drains for at most this many times `drain`, plus [`DRAIN_GRACE`].
const LONGEST_DRAIN: u64 = 10;
/// The time that is added to [`LONGEST_DRAIN`] times `drain`. We chose the longest outage that a run
/// tolerates.
const DRAIN_GRACE: Duration = Duration::from_secs(OUTAGE_S);
/// The slowest delivery that a run waits for. We chose 8 kbps, which is the rate of the slowest codecs of
/// speech.
const MIN_DRAIN_BYTES_PER_S: u64 = 1000;
/// The largest amount of data that a run waits for at that rate, bytes. We chose 16 MiB, which is several
/// times the data of a connection that the kernels of both hosts hold by default (net.ipv4.tcp_wmem and
/// tcp_rmem). It takes less than five hours.
const MAX_DRAINED: u64 = 16 << 20;

/// The deadline of a run that drains.
pub(super) struct DrainDeadline {
    /// The end of sending.
    stop: Instant,
    /// The deadline if nothing arrives after the stop.
    first: Instant,
    /// The payload bytes that had arrived at the stop. `None` before the stop.
    arrived_at_stop: Option<u64>,
    /// The payload bytes that have arrived since the stop, at most [`MAX_DRAINED`].
    drained: u64,
}

impl DrainDeadline {
    /// Makes the deadline of a run that stops sending at `stop`. `drain` is the time without a delivery after
    /// which the run is drained.
    pub(super) fn new(stop: Instant, drain: Duration) -> Self {
        let first = stop.saturating_add(drain.saturating_mul(LONGEST_DRAIN)).saturating_add(DRAIN_GRACE);
        Self { stop, first, arrived_at_stop: None, drained: 0 }
    }

    /// Notes that `arrived` payload bytes have arrived by `now`, at both hosts together.
    pub(super) fn note(&mut self, arrived: u64, now: Instant) {
        if now < self.stop {
            return;
        }
        let at_stop = *self.arrived_at_stop.get_or_insert(arrived);
        self.drained = self.drained.max(arrived.saturating_sub(at_stop)).min(MAX_DRAINED);
    }

    /// Returns why the run has to end at `now` although data is missing. Returns `None` if the drain may go
    /// on.
    pub(super) fn overrun(&self, now: Instant) -> Option<String> {
        let patience = Duration::from_millis(self.drained.saturating_mul(1000) / MIN_DRAIN_BYTES_PER_S);
        if now <= self.first.saturating_add(patience) {
            return None;
        }
        let seconds = now.since(self.stop).as_nanos() / 1_000_000_000;
        Some(format!(
            "still had messages of the run on their way after {seconds} s, in which {} B arrived: that is too slow to wait \
             for the rest",
            self.drained
        ))
    }
}

/// Returns the payload bytes of a flow that have arrived at both ends together. A false server may claim any
/// number, so at most the data that this host has sent counts as arrived there.
pub(super) fn arrived_bytes(spec: &FlowSpec, near: EndProgress, far: EndProgress) -> u64 {
    // The progress of datagram flows is in messages. Each message is counted as if it had the largest size.
    let size = if spec.features().keeps_messages { spec.largest_size().unwrap_or(1) } else { 1 };
    near.received.saturating_add(far.received.min(near.sent)).saturating_mul(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: Instant = Instant::from_secs(10);

    fn at(seconds: u64) -> Instant {
        STOP.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn a_far_end_that_delivers_is_waited_for_and_one_that_does_not_is_left() {
        // `drain` of 2 s: 80 s without a delivery.
        let mut deadline = DrainDeadline::new(STOP, Duration::from_secs(2));
        deadline.note(5_000_000, Instant::from_secs(9));
        deadline.note(5_000_000, at(0));
        assert_eq!((deadline.overrun(at(80)), deadline.overrun(at(81)).is_some()), (None, true));
        // 4 MiB at 64 kbps.
        for second in 0..524 {
            deadline.note(5_000_000 + second * 8000, at(second));
            assert_eq!(deadline.overrun(at(second)), None, "after {second} s");
        }
        // A stall at 400 kB lasts until 8 kbps would have brought as much.
        let mut stalled = DrainDeadline::new(STOP, Duration::from_secs(2));
        stalled.note(0, at(0));
        stalled.note(400_000, at(50));
        assert_eq!(stalled.overrun(at(480)), None);
        let why = stalled.overrun(at(481)).unwrap();
        assert!(why.contains("after 481 s") && why.contains("400000 B"), "{why}");
    }

    #[test]
    fn a_far_end_that_always_delivers_more_is_left_in_the_end() {
        let mut deadline = DrainDeadline::new(STOP, Duration::from_secs(2));
        deadline.note(0, at(0));
        deadline.note(u64::MAX, at(1));
        assert_eq!(deadline.overrun(at(16_000)), None);
        assert!(deadline.overrun(at(17_000)).is_some());
    }

    #[test]
    fn a_far_end_has_received_no_more_than_was_sent() {
        let spec: FlowSpec = serde_json::from_value(serde_json::json!({
            "transport": { "udp": { "receive_buffer": null } },
            "workload": { "voice": { "ptime_ns": 20_000_000, "size": 160 } },
            "echo_per_read": false, "is_up": true, "start_ns": 0, "due": "start", "file": null,
        }))
        .unwrap();
        let near = EndProgress { is_done: true, sent: 50, received: 20 };
        let far = EndProgress { is_done: false, sent: 20, received: 1 << 60 };
        assert_eq!(arrived_bytes(&spec, near, far), 70 * 160);
    }
}
