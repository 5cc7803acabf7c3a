//! What a queue discipline is to the link that it belongs to.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use crate::carried::{DropCause, Dropped};

/// Holds the packets that wait for the serialiser. It may drop or mark when a packet comes and when service
/// begins.
pub(crate) trait Discipline<T> {
    /// A packet comes while `in_service` bytes are being sent. It waits, unless it is dropped. The discipline
    /// may drop another one instead.
    fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant, drops: &mut Drops<T>);

    /// The serialiser is free: takes out the packet to send next, after those that the discipline drops at
    /// this moment.
    fn dequeue(&mut self, now: Instant, drops: &mut Drops<T>) -> Option<T>;

    /// A packet comes while nothing waits and the serialiser is idle. Returns the packet, unless it is
    /// dropped.
    fn pass(&mut self, packet: T, now: Instant, drops: &mut Drops<T>) -> Option<T> {
        self.enqueue(packet, Bytes::ZERO, now, drops);
        self.dequeue(now, drops)
    }

    /// Packets that wait.
    fn len(&self) -> u32;

    /// Whether the discipline may drop at `dequeue`. The link then wakes up whenever service begins, so that
    /// the drop comes out at its time. Of other disciplines it begins services late, with the same result.
    fn drops_at_dequeue(&self) -> bool;
}

/// What a queue dropped and nobody has taken yet, in order of time.
#[derive(Debug)]
pub(crate) struct Drops<T> {
    dropped: VecDeque<(Instant, Dropped<T>)>,
    /// When the first of them was dropped; [`Instant::MAX`] if there is none.
    next: Instant,
}

impl<T> Drops<T> {
    pub(crate) const fn new() -> Self {
        Self { dropped: VecDeque::new(), next: Instant::MAX }
    }

    #[cold]
    pub(crate) fn push(&mut self, packet: T, cause: DropCause, now: Instant) {
        self.dropped.push_back((now, Dropped { packet, cause }));
        self.next = self.next.min(now);
    }

    /// When the first of them was dropped; [`Instant::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    #[cold]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Dropped<T>)> {
        let first = self.dropped.pop_front();
        self.next = self.dropped.front().map_or(Instant::MAX, |(at, _)| *at);
        first
    }

    pub(crate) fn len(&self) -> usize {
        self.dropped.len()
    }
}
