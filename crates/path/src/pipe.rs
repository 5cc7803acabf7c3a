//! The pipe: what is on the wire stays there for the propagation delay, plus what the delay variation adds.
//!
//! Lost packets travel too and are told as lost where they would have arrived: nobody can know earlier, and what a
//! loss model eats changes nobody else's delay.
//!
//! In order, a packet arrives at the later of its own arrival and its predecessor's, so a ring holds them all. Where
//! overtaking is asked for, a heap ordered by (arrival, number) does.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use talkpath_units::{Duration, Instant, Stream};

use crate::config::DelayVariation;
use crate::delay_variation::Variation;
use crate::ring::Ring;

/// Propagation delay and its variation.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    variation: Variation,
    travelling: Travelling<T>,
}

/// What leaves the pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traveller<T> {
    /// When it is at the far end; [`Instant::MAX`] is never.
    pub(crate) arrival: Instant,
    /// Whether the wire ate it.
    pub(crate) lost: bool,
    pub(crate) packet: T,
}

#[derive(Debug)]
enum Travelling<T> {
    InOrder(InOrder<T>),
    Overtaking { heap: BinaryHeap<Numbered<T>>, entered: u64 },
}

/// Packets that arrive in the order in which they entered.
#[derive(Debug)]
pub(crate) struct InOrder<T> {
    ring: Ring<Traveller<T>>,
    /// The latest arrival given out.
    latest: Instant,
}

/// A traveller that may overtake; number breaks ties of arrival.
#[derive(Debug)]
struct Numbered<T> {
    number: u64,
    traveller: Traveller<T>,
}

impl<T: Copy> Pipe<T> {
    /// An empty pipe.
    pub(crate) fn new(delay: Duration, variation: &DelayVariation, stream: Stream) -> Self {
        let travelling = match *variation {
            DelayVariation::Normal { reorder: true, .. }
            | DelayVariation::Uniform { reorder: true, .. }
            | DelayVariation::Pareto { reorder: true, .. }
            | DelayVariation::Trace { reorder: true, .. } => {
                Travelling::Overtaking { heap: BinaryHeap::new(), entered: 0 }
            }
            DelayVariation::None
            | DelayVariation::Normal { .. }
            | DelayVariation::Uniform { .. }
            | DelayVariation::Pareto { .. }
            | DelayVariation::Trace { .. } => Travelling::InOrder(InOrder::new()),
        };
        Self { variation: Variation::new(delay, variation, stream), travelling }
    }

    /// A packet is on the wire, whole, at `at`. Where that makes it the next one to leave the pipe, returns when.
    #[inline]
    pub(crate) fn enter(&mut self, packet: T, lost: bool, at: Instant) -> Option<Instant> {
        let traveller = Traveller { arrival: at.saturating_add(self.variation.delay()), lost, packet };
        match &mut self.travelling {
            Travelling::InOrder(ring) => {
                let was_empty = ring.len() == 0;
                ring.enter(traveller);
                if was_empty { ring.poll_timeout() } else { None }
            }
            Travelling::Overtaking { heap, entered } => {
                let number = *entered;
                heap.push(Numbered { number, traveller });
                *entered += 1;
                let is_next = heap.peek().is_some_and(|next| next.number == number);
                if is_next { self.poll_timeout() } else { None }
            }
        }
    }

    /// As [`Self::enter`], for a packet that is not lost, in a pipe whose delay does not vary.
    #[inline]
    pub(crate) fn enter_plain(&mut self, packet: T, at: Instant) -> Option<Instant> {
        let arrival = at.saturating_add(self.variation.least());
        let Travelling::InOrder(ring) = &mut self.travelling else { return self.enter(packet, false, at) };
        let was_empty = ring.len() == 0;
        ring.enter(Traveller { arrival, lost: false, packet });
        (was_empty && arrival < Instant::MAX).then_some(arrival)
    }

    /// When the next packet leaves the pipe, if any ever does.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.travelling {
            Travelling::InOrder(ring) => ring.poll_timeout(),
            Travelling::Overtaking { heap, .. } => {
                heap.peek().map(|next| next.traveller.arrival).filter(|arrival| *arrival < Instant::MAX)
            }
        }
    }

    /// The next packet that left the pipe by `now`.
    #[inline]
    pub(crate) fn poll_output(&mut self, now: Instant) -> Option<Traveller<T>> {
        match &mut self.travelling {
            Travelling::InOrder(ring) => ring.poll_output(now),
            Travelling::Overtaking { heap, .. } => {
                if heap.peek()?.traveller.arrival > now {
                    return None;
                }
                heap.pop().map(|next| next.traveller)
            }
        }
    }

    /// Packets inside.
    pub(crate) fn len(&self) -> usize {
        match &self.travelling {
            Travelling::InOrder(ring) => ring.len(),
            Travelling::Overtaking { heap, .. } => heap.len(),
        }
    }
}

impl<T: Copy> InOrder<T> {
    /// An empty ring.
    pub(crate) fn new() -> Self {
        Self { ring: Ring::new(), latest: Instant::ZERO }
    }

    /// Holds the packet until its arrival, or its predecessor's where that is later.
    #[inline]
    pub(crate) fn enter(&mut self, traveller: Traveller<T>) {
        self.latest = self.latest.max(traveller.arrival);
        self.ring.push_back(Traveller { arrival: self.latest, ..traveller });
    }

    /// When the next packet arrives, if one ever does.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.ring.front().map(|next| next.arrival).filter(|arrival| *arrival < Instant::MAX)
    }

    /// The next packet that arrived by `now`.
    #[inline]
    pub(crate) fn poll_output(&mut self, now: Instant) -> Option<Traveller<T>> {
        if self.ring.front()?.arrival > now {
            return None;
        }
        self.ring.pop_front()
    }

    /// Packets inside.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }
}

impl<T> Numbered<T> {
    fn key(&self) -> (Instant, u64) {
        (self.traveller.arrival, self.number)
    }
}

impl<T> Ord for Numbered<T> {
    /// The earliest is the greatest: `BinaryHeap` gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> PartialOrd for Numbered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Numbered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Numbered<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_ring_holds_a_packet_until_its_predecessor_has_arrived() {
        let mut ring = InOrder::new();
        for (packet, arrival) in [(0, at(9)), (1, at(4)), (2, at(12))] {
            ring.enter(Traveller { arrival, lost: false, packet });
        }
        assert!(ring.poll_output(at(8)).is_none());
        assert_eq!(ring.poll_timeout(), Some(at(9)));
        let out: Vec<_> =
            std::iter::from_fn(|| ring.poll_output(at(9))).map(|out| (out.packet, out.arrival)).collect();
        assert_eq!(out, [(0, at(9)), (1, at(9))]);
        assert_eq!(ring.len(), 1);
    }

    #[test]
    fn a_heap_gives_ties_in_the_order_of_entry() {
        let reordering = DelayVariation::Uniform { max: Duration::ZERO, reorder: true };
        let mut pipe =
            Pipe::new(Duration::from_millis(1), &reordering, talkpath_units::Seed::new(1).stream("x"));
        for packet in 0..20 {
            pipe.enter(packet, false, at(5));
        }
        pipe.enter(20, false, at(3));
        let out: Vec<_> = std::iter::from_fn(|| pipe.poll_output(at(6))).map(|out| out.packet).collect();
        assert_eq!(out, std::iter::once(20).chain(0..20).collect::<Vec<_>>());
    }

    #[test]
    fn what_never_arrives_has_no_deadline() {
        let mut pipe = Pipe::new(
            Duration::from_millis(1),
            &DelayVariation::None,
            talkpath_units::Seed::new(1).stream("x"),
        );
        pipe.enter((), false, Instant::MAX);
        assert_eq!((pipe.poll_timeout(), pipe.len()), (None, 1));
    }
}
