//! The first of a link's three places: packets wait in a queue until the serialiser is free.
//!
//! What becomes of them is the discipline's decision (`queue`). How many waited for how long is accounted
//! here, for every discipline alike.

use talkpath_units::{Bytes, Instant};

use crate::carried::{Carried, Dropped};
use crate::config::QueueKind;
use crate::occupancy::{Levels, Occupancy, Window};
use crate::queue::{Discipline, Drops, Queue};

/// A queue, what it dropped, and its length over time.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    queue: Queue<T>,
    /// What was dropped and has not come out of the link yet.
    drops: Drops<T>,
    occupancy: Occupancy,
}

impl<T: Carried> Waiting<T> {
    /// Nothing waits; the whole run is measured.
    pub(crate) fn new(kind: &QueueKind) -> Self {
        Self { queue: Queue::new(kind), drops: Drops::new(), occupancy: Occupancy::default() }
    }

    /// Measures in `window` from now on.
    pub(crate) fn measure(&mut self, window: Window) {
        self.occupancy = Occupancy::new(window);
    }

    /// The same place with another discipline.
    #[cfg(test)]
    pub(crate) fn set_queue(&mut self, queue: Queue<T>) {
        self.queue = queue;
    }

    /// A packet comes while `in_service` bytes are being sent: it waits, or is dropped.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant) {
        self.occupancy.hold(self.queue.len(), now);
        self.queue.enqueue(packet, in_service, now, &mut self.drops);
    }

    /// A packet comes while nothing waits and the serialiser is idle; returns it, unless it is dropped.
    #[inline(always)]
    pub(crate) fn pass(&mut self, packet: T, now: Instant) -> Option<T> {
        self.queue.pass(packet, now, &mut self.drops)
    }

    /// The serialiser is free: the packet to send next.
    #[inline(always)]
    pub(crate) fn dequeue(&mut self, now: Instant) -> Option<T> {
        self.occupancy.hold(self.queue.len(), now);
        self.queue.dequeue(now, &mut self.drops)
    }

    /// Packets that wait.
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.queue.len()
    }

    /// Whether the beginning of a service must be waited for, since packets may be dropped then.
    #[inline(always)]
    pub(crate) fn drops_at_dequeue(&self) -> bool {
        self.queue.drops_at_dequeue()
    }

    /// When the first packet was dropped that has not come out yet; [`Instant::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_drop(&self) -> Instant {
        self.drops.next()
    }

    /// Takes out the first packet that was dropped, and when.
    pub(crate) fn pop_drop(&mut self) -> Option<(Instant, Dropped<T>)> {
        self.drops.pop()
    }

    /// Packets inside: waiting, or dropped and not taken yet.
    pub(crate) fn held(&self) -> usize {
        self.queue.len() as usize + self.drops.len()
    }

    /// How many waited for how long, up to `now`.
    pub(crate) fn levels(&mut self, now: Instant) -> Levels {
        self.occupancy.hold(self.queue.len(), now);
        self.occupancy.levels()
    }
}
