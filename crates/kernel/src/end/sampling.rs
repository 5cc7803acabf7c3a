//! When the state of a connection of our own protocols is noted.

use talkpath_transport::Observation;
use talkpath_units::{Duration, Instant};

use crate::log::StateSample;

/// A connection's state is noted if a window changed or the queue is longer than ever, and else at a regular
/// interval.
pub(super) struct Sampling {
    interval: Duration,
    next: Instant,
    windows: (u32, u32),
    max_queued: u64,
}

impl Sampling {
    pub(super) const fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::ZERO, windows: (u32::MAX, u32::MAX), max_queued: 0 }
    }

    /// The sample of what was `seen` at `now`, if it is to be noted.
    pub(super) fn note(&mut self, seen: &Observation, now: Instant) -> Option<StateSample> {
        let sample = StateSample::of(seen, now);
        let (windows, queued) = ((sample.1, sample.2), sample.5);
        let is_wanted = now >= self.next || windows != self.windows || queued > self.max_queued;
        is_wanted.then(|| {
            self.next = now.saturating_add(self.interval);
            self.windows = windows;
            self.max_queued = self.max_queued.max(queued);
            sample
        })
    }
}
