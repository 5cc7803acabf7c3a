//! The contract between a link and its queue discipline.

use core::fmt::Debug;
use std::collections::VecDeque;

use talkpath_units::{Bytes, Ecn, Instant};

use crate::carried::{Carried, DropCause, Dropped};
use crate::occupancy::Window;
use crate::queue::limit::QueueLimit;
use crate::wifi::AccessCategory;

/// Holds the packets that wait for the serialiser. A discipline may drop or mark packets at two moments: when
/// a packet arrives, and when the next packet goes into service.
pub(crate) trait Discipline<T>: Debug {
    /// Takes a packet that arrives while the serialiser is busy with a packet of `in_service` bytes. The
    /// discipline may drop the new packet, or another packet in its place.
    fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant, signals: &mut Signals<T>);

    /// Takes out the packet to send next, when the serialiser becomes free. The discipline may first drop
    /// packets.
    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>>;

    /// Takes a packet that arrives while no packet waits and the serialiser is idle. Returns the packet,
    /// which then goes into service at once, or `None` if it is dropped. The link does not call `dequeue`
    /// when it becomes idle, so with this call the discipline also learns that the link is idle.
    fn pass(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        self.enqueue(packet, Bytes::ZERO, now, signals);
        self.dequeue(now, signals).map(|queued| queued.packet)
    }

    /// Changes how much may wait. If more waits now, the discipline drops packets by the rule by which it
    /// makes room for a packet that comes. The serialiser is busy with a packet of `in_service` bytes.
    fn set_limit(&mut self, limit: QueueLimit, in_service: Bytes, now: Instant, signals: &mut Signals<T>);

    /// The number of packets that wait.
    fn len(&self) -> u32;

    /// The number of packets that wait in an access category. A discipline without categories has one queue
    /// for all.
    fn len_of(&self, _category: AccessCategory) -> u32 {
        self.len()
    }

    /// Lets `dequeue` give packets of this access category from now on.
    fn serve(&mut self, _category: AccessCategory) {}

    /// True if `dequeue` may drop packets. The link then calls `dequeue` at the time at which service begins,
    /// so that the drop is reported at its time. For other disciplines the link calls `dequeue` later, at its
    /// next event, with the time at which service began (see `link`).
    fn drops_at_dequeue(&self) -> bool {
        false
    }
}

/// A packet in the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queued<T> {
    pub(crate) packet: T,
    /// When the packet arrived at the queue.
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

/// The congestion signals of a queue: its drops and its marks.
#[derive(Debug)]
pub(crate) struct Signals<T> {
    /// The dropped packets that the link has not yet reported, in the order in which they were dropped.
    dropped: VecDeque<(Instant, Dropped<T>)>,
    /// The earliest time in `dropped`. [`Instant::MAX`] if `dropped` is empty.
    next_drop: Instant,
    /// Marks are counted within this window.
    window: Window,
    /// The number of packets that were marked within the window.
    marked: u64,
}

impl<T> Signals<T> {
    /// No drops and no marks. Marks will be counted within `window`.
    pub(crate) const fn new(window: Window) -> Self {
        Self { dropped: VecDeque::new(), next_drop: Instant::MAX, window, marked: 0 }
    }

    /// Drops `packet`.
    #[cold]
    pub(crate) fn drop(&mut self, packet: T, cause: DropCause, now: Instant) {
        self.dropped.push_back((now, Dropped { packet, cause }));
        self.next_drop = self.next_drop.min(now);
    }

    /// Marks `packet` (RFC 3168 §5). Counts it, unless it was marked before: by an earlier link, or by this
    /// queue for another reason. Returns false, and changes nothing, if its transport takes no marks.
    #[cold]
    pub(crate) fn mark(&mut self, packet: &mut T, now: Instant) -> bool
    where
        T: Carried,
    {
        let was_marked = packet.ecn() == Ecn::Ce;
        let is_marked = packet.mark();
        self.marked += u64::from(is_marked && !was_marked && self.window.contains(now));
        is_marked
    }

    /// When the first unreported packet was dropped. [`Instant::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_drop(&self) -> Instant {
        self.next_drop
    }

    /// Takes the first unreported drop, and when it happened.
    #[cold]
    pub(crate) fn pop_drop(&mut self) -> Option<(Instant, Dropped<T>)> {
        let first = self.dropped.pop_front();
        self.next_drop = self.dropped.front().map_or(Instant::MAX, |(at, _)| *at);
        first
    }

    /// The number of dropped packets that the link has not yet reported.
    pub(crate) fn drops(&self) -> usize {
        self.dropped.len()
    }

    /// The number of packets that were marked within the window.
    pub(crate) const fn marked(&self) -> u64 {
        self.marked
    }
}
