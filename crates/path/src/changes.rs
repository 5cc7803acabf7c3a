//! How a queue's length and delay went: each change, until the network's owner takes it.
//!
//! A change costs one entry here, and no output of the network. Whoever observes queues takes the changes now
//! and then, many at a time.

use talkpath_units::{Duration, Instant};

/// Changes of one queue that nobody has taken yet, in order of time.
#[derive(Debug)]
pub struct QueueChanges {
    /// How many packets wait from this instant on. Of several at one instant the last holds.
    pub lengths: Vec<(Instant, u32)>,
    /// When a service began, and how long its packet had waited; if that differs from the packet before.
    pub delays: Vec<(Instant, Duration)>,
    length: Option<u32>,
    delay: Option<Duration>,
}

impl QueueChanges {
    /// None so far.
    pub(crate) const fn new() -> Self {
        Self { lengths: Vec::new(), delays: Vec::new(), length: None, delay: None }
    }

    /// `length` packets wait from `now` on.
    #[inline(never)]
    pub(crate) fn note_length(&mut self, length: u32, now: Instant) {
        if self.length != Some(length) {
            self.length = Some(length);
            self.lengths.push((now, length));
        }
    }

    /// A packet goes into service at `now` that has waited for `delay`.
    #[inline(never)]
    pub(crate) fn note_delay(&mut self, delay: Duration, now: Instant) {
        if self.delay != Some(delay) {
            self.delay = Some(delay);
            self.delays.push((now, delay));
        }
    }
}
