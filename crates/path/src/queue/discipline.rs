//! What a queue discipline is to the link that it belongs to.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use crate::carried::{Carried, DropCause, Dropped};
use crate::occupancy::Window;

/// Holds the packets that wait for the serialiser. It may drop or mark when a packet comes and when service
/// begins.
pub(crate) trait Discipline<T> {
    /// A packet comes while `in_service` bytes are being sent. It waits, unless it is dropped. The discipline
    /// may drop another one instead.
    fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant, signals: &mut Signals<T>);

    /// The serialiser is free: takes out the packet to send next, after those that the discipline drops at
    /// this moment.
    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>>;

    /// A packet comes while nothing waits and the serialiser is idle. Returns the packet, unless it is
    /// dropped.
    fn pass(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        self.enqueue(packet, Bytes::ZERO, now, signals);
        self.dequeue(now, signals).map(|queued| queued.packet)
    }

    /// Packets that wait.
    fn len(&self) -> u32;

    /// Whether the discipline may drop at `dequeue`. The link then wakes up whenever service begins, so that
    /// the drop comes out at its time. With other disciplines the link begins services late, each at its own
    /// time (see `link`), so what they do by the clock they do at the next call.
    fn drops_at_dequeue(&self) -> bool;
}

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queued<T> {
    pub(crate) packet: T,
    /// When it came to the queue.
    pub(crate) entered: Instant,
}

/// What a discipline knows of the link that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkFacts {
    /// The largest packet that the link takes whole.
    pub(crate) mtu: Bytes,
    /// 64 random bits of the link's own, from its stream `link/NAME/queue`.
    pub(crate) perturbation: u64,
}

/// How a queue signals congestion: what it dropped and nobody has taken yet, in order of time, and how many
/// packets it marked within the measuring window.
#[derive(Debug)]
pub(crate) struct Signals<T> {
    dropped: VecDeque<(Instant, Dropped<T>)>,
    /// When the first of them was dropped; [`Instant::MAX`] if there is none.
    next: Instant,
    window: Window,
    marked: u64,
}

impl<T> Signals<T> {
    /// None so far; marks are counted within `window`.
    pub(crate) const fn new(window: Window) -> Self {
        Self { dropped: VecDeque::new(), next: Instant::MAX, window, marked: 0 }
    }

    #[cold]
    pub(crate) fn drop(&mut self, packet: T, cause: DropCause, now: Instant) {
        self.dropped.push_back((now, Dropped { packet, cause }));
        self.next = self.next.min(now);
    }

    /// Marks `packet` (RFC 3168 §5) and counts it. Returns false, and changes nothing, if its transport takes
    /// no marks.
    #[cold]
    pub(crate) fn mark(&mut self, packet: &mut T, now: Instant) -> bool
    where
        T: Carried,
    {
        let is_marked = packet.mark();
        self.marked += u64::from(is_marked && self.window.contains(now));
        is_marked
    }

    /// When the first of them was dropped; [`Instant::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_drop(&self) -> Instant {
        self.next
    }

    #[cold]
    pub(crate) fn pop_drop(&mut self) -> Option<(Instant, Dropped<T>)> {
        let first = self.dropped.pop_front();
        self.next = self.dropped.front().map_or(Instant::MAX, |(at, _)| *at);
        first
    }

    /// Dropped packets that nobody has taken.
    pub(crate) fn drops(&self) -> usize {
        self.dropped.len()
    }

    /// Packets marked within the measuring window.
    pub(crate) const fn marked(&self) -> u64 {
        self.marked
    }
}
