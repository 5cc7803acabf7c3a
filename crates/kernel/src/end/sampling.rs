//! Decides when the state of a connection of our own protocols is noted.

use talkpath_units::{Duration, Instant};
use talkpath_wire::Observation;

use crate::log::StateSample;

/// Notes a connection's state at a regular interval. The state is noted earlier if a window has changed, if a
/// packet was declared lost, or if the queue is longer than ever before.
pub(super) struct Sampling {
    interval: Duration,
    next: Instant,
    windows: (Option<u32>, Option<u32>),
    max_queued: u64,
    lost_packets: u64,
}

impl Sampling {
    pub(super) const fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::ZERO, windows: (None, None), max_queued: 0, lost_packets: 0 }
    }

    /// Returns `observation` with its time `now` if it is to be noted.
    pub(super) fn note(&mut self, observation: Observation, now: Instant) -> Option<(Observation, Instant)> {
        let sample = StateSample::new(&observation, now);
        let (windows, queued) = ((sample.cwnd, sample.ssthresh), sample.queued);
        let lost_packets = observation.loss_recovery.map_or(0, |recovery| recovery.lost_packets);
        let is_wanted = now >= self.next
            || windows != self.windows
            || queued > self.max_queued
            || lost_packets != self.lost_packets;
        is_wanted.then(|| {
            self.next = now.saturating_add(self.interval);
            (self.windows, self.lost_packets) = (windows, lost_packets);
            self.max_queued = self.max_queued.max(queued);
            (observation, now)
        })
    }
}
