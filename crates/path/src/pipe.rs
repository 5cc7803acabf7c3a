//! The third of a link's three places, the pipe. A packet stays in it for the propagation delay, plus what
//! the delay variation adds.
//!
//! ```text
//!   arrival = end of service + delay + variation        if packets may overtake each other
//!           = the same, or the arrival of the packet before it if that is later        otherwise
//! ```
//!
//! A packet enters when its service begins, because the end of its service and its arrival are known then.
//! Lost packets pass the pipe, too, and come out as lost when they would have arrived: nobody can know of the
//! loss earlier, and a loss changes the delay of no other packet.
//!
//! Packets in order are in a queue. If they may overtake each other, they are in a heap, which is ordered by
//! arrival and then by entry.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use talkpath_units::{Duration, Instant, Stream};

use crate::config::DelayVariation;
use crate::delay_variation::Variation;
use crate::reordering::{Reorderer, Reordering};

/// Propagation delay and its variation.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    delay: Duration,
    /// When the next packet leaves the pipe. [`Instant::MAX`] if none ever leaves.
    next: Instant,
    /// All packets, if none may overtake. Otherwise empty.
    in_order: VecDeque<Traveller<T>>,
    /// The latest arrival of a packet that was not held back.
    latest: Instant,
    /// `None` on most links. Boxed, so that a pipe with a constant delay stays small.
    varied: Option<Box<Varied<T>>>,
}

/// What a pipe has whose delay varies, or whose packets may overtake each other.
#[derive(Debug)]
struct Varied<T> {
    variation: Variation,
    /// `None` if no packet is held back.
    reorderer: Option<Reorderer>,
    /// All packets, if they may overtake. `None` if they may not.
    overtaking: Option<Overtaking<T>>,
}

/// Packets that leave in the order of their arrivals. Of equal arrivals the first to enter leaves first.
#[derive(Debug)]
struct Overtaking<T> {
    heap: BinaryHeap<Numbered<T>>,
    /// The number of packets that have entered.
    entered: u64,
    /// True if each packet may overtake the packet before it. Otherwise a packet overtakes only the packets
    /// before a change.
    each_may_overtake: bool,
}

/// A packet in the pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traveller<T> {
    /// When the packet is at the far end. [`Instant::MAX`] means never.
    pub(crate) arrival: Instant,
    pub(crate) packet: T,
    pub(crate) wire: WireFate,
}

/// What the wire does to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireFate {
    /// The packet does not arrive.
    pub(crate) is_lost: bool,
    /// A copy arrives with the packet.
    pub(crate) is_repeated: bool,
    /// Bits of the packet have changed. If the link notices, the packet is lost.
    pub(crate) is_damaged: bool,
}

#[derive(Debug)]
struct Numbered<T> {
    number: u64,
    traveller: Traveller<T>,
}

impl<T: Copy> Pipe<T> {
    /// An empty pipe.
    pub(crate) fn new(delay: Duration, model: &DelayVariation, stream: Stream) -> Self {
        let may_overtake = match *model {
            DelayVariation::None => None,
            DelayVariation::Normal { reorder, .. }
            | DelayVariation::Uniform { reorder, .. }
            | DelayVariation::Pareto { reorder, .. }
            | DelayVariation::Trace { reorder, .. } => Some(reorder),
        };
        let varied = may_overtake.map(|may| {
            let overtaking = may.then(|| Overtaking::new(true));
            Box::new(Varied { variation: Variation::new(delay, model, stream), reorderer: None, overtaking })
        });
        Self { delay, next: Instant::MAX, in_order: VecDeque::new(), latest: Instant::ZERO, varied }
    }

    /// Prepares for changes after which packets may overtake earlier packets. The pipe must be empty.
    pub(crate) fn expect_overtaking(&mut self, stream: Stream) {
        let delay = self.delay;
        let varied = self.varied.get_or_insert_with(|| {
            Box::new(Varied {
                variation: Variation::new(delay, &DelayVariation::None, stream),
                reorderer: None,
                overtaking: None,
            })
        });
        varied.overtaking.get_or_insert_with(|| Overtaking::new(false));
    }

    /// Holds packets back by the rule `reordering`. The pipe must be empty.
    pub(crate) fn reorder(&mut self, reordering: Reordering, stream: Stream) {
        // A variation that this makes adds nothing, so it draws nothing from the stream.
        self.expect_overtaking(stream.clone());
        if let Some(varied) = &mut self.varied {
            varied.reorderer = Some(Reorderer::new(reordering, stream));
        }
    }

    /// Sets the propagation delay of the packets that enter from now on. If `overtake` is true, and the pipe
    /// is prepared for it, they may arrive before the packets that entered earlier.
    pub(crate) fn set_delay(&mut self, delay: Duration, overtake: bool) {
        self.delay = delay;
        let Some(varied) = &mut self.varied else { return };
        varied.variation.set_delay(delay);
        if overtake && varied.overtaking.is_some() {
            self.latest = Instant::ZERO;
        }
    }

    /// Takes a packet whose service ends at `at`.
    #[inline(always)]
    pub(crate) fn enter(&mut self, packet: T, wire: WireFate, at: Instant) {
        if self.varied.is_some() {
            return self.enter_varied(packet, wire, at);
        }
        self.enter_in_order(packet, wire, at.saturating_add(self.delay));
    }

    /// As [`Self::enter`], if the delay varies.
    #[cold]
    fn enter_varied(&mut self, packet: T, wire: WireFate, at: Instant) {
        let Some(varied) = &mut self.varied else { return };
        let arrival = at.saturating_add(varied.variation.delay());
        let Some(overtaking) = &mut varied.overtaking else {
            return self.enter_in_order(packet, wire, arrival);
        };
        if let Some(by) = varied.reorderer.as_mut().and_then(Reorderer::hold_back) {
            // The packets behind it do not wait for it, so `latest` stays.
            let arrival = arrival.saturating_add(by);
            overtaking.enter(Traveller { arrival, packet, wire });
            self.next = self.next.min(arrival);
            return;
        }
        let arrival = if overtaking.each_may_overtake { arrival } else { arrival.max(self.latest) };
        self.latest = arrival;
        overtaking.enter(Traveller { arrival, packet, wire });
        self.next = self.next.min(arrival);
    }

    /// Takes a packet that arrives at `arrival`, or with its predecessor if that arrives later.
    #[inline(always)]
    fn enter_in_order(&mut self, packet: T, wire: WireFate, arrival: Instant) {
        self.latest = self.latest.max(arrival);
        self.next = self.next.min(self.latest);
        self.in_order.push_back(Traveller { arrival: self.latest, packet, wire });
    }

    /// Returns when the next packet leaves the pipe. [`Instant::MAX`] if none ever leaves.
    #[inline(always)]
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Takes out the next packet, when its time [`Self::next`] has come.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Traveller<T>> {
        let Some(traveller) = self.in_order.pop_front() else { return self.pop_overtaking() };
        self.next = self.in_order.front().map_or(Instant::MAX, |next| next.arrival);
        Some(traveller)
    }

    /// As [`Self::pop`], if packets may overtake.
    #[cold]
    fn pop_overtaking(&mut self) -> Option<Traveller<T>> {
        let heap = &mut self.varied.as_mut()?.overtaking.as_mut()?.heap;
        let traveller = heap.pop()?.traveller;
        self.next = heap.peek().map_or(Instant::MAX, |next| next.traveller.arrival);
        Some(traveller)
    }

    /// True if a packet may leave before a packet that entered earlier.
    pub(crate) fn may_overtake(&self) -> bool {
        self.overtaking().is_some()
    }

    /// The number of packets in the pipe.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.overtaking().map_or(0, |overtaking| overtaking.heap.len())
    }

    fn overtaking(&self) -> Option<&Overtaking<T>> {
        self.varied.as_ref()?.overtaking.as_ref()
    }
}

impl<T> Overtaking<T> {
    const fn new(each_may_overtake: bool) -> Self {
        Self { heap: BinaryHeap::new(), entered: 0, each_may_overtake }
    }

    fn enter(&mut self, traveller: Traveller<T>) {
        self.heap.push(Numbered { number: self.entered, traveller });
        self.entered += 1;
    }
}

impl<T> Numbered<T> {
    fn key(&self) -> (Instant, u64) {
        (self.traveller.arrival, self.number)
    }
}

impl<T> Ord for Numbered<T> {
    /// Reversed, because a `BinaryHeap` returns the greatest element first, and the earliest packet is
    /// wanted.
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

    fn pipe(model: &DelayVariation) -> Pipe<u32> {
        Pipe::new(Duration::from_millis(1), model, talkpath_units::Seed::new(1).stream("x"))
    }

    fn drain(pipe: &mut Pipe<u32>) -> Vec<(u32, Instant)> {
        core::iter::from_fn(|| pipe.pop()).map(|out| (out.packet, out.arrival)).collect()
    }

    #[test]
    fn in_order_a_packet_arrives_not_before_its_predecessor() {
        let additions = "9\n4\n0\n".parse().unwrap();
        let mut pipe = pipe(&DelayVariation::Trace { additions, reorder: false });
        for packet in 0..3 {
            pipe.enter(packet, WireFate::default(), at(u64::from(packet)));
        }
        assert_eq!((pipe.len(), pipe.next()), (3, at(10)));
        assert_eq!(drain(&mut pipe), [(0, at(10)), (1, at(10)), (2, at(10))]);
        pipe.enter(3, WireFate { is_lost: true, ..WireFate::default() }, at(20));
        assert!(pipe.pop().unwrap().wire.is_lost);
        assert_eq!((pipe.len(), pipe.next()), (0, Instant::MAX));
    }

    #[test]
    fn a_heap_gives_ties_in_the_order_of_entry() {
        let mut pipe = pipe(&DelayVariation::Uniform { max: Duration::ZERO, reorder: true });
        for packet in 0..20 {
            pipe.enter(packet, WireFate::default(), at(5));
        }
        pipe.enter(20, WireFate::default(), at(3));
        let order: Vec<_> = drain(&mut pipe).into_iter().map(|(packet, _)| packet).collect();
        assert_eq!(order, core::iter::once(20).chain(0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_packet_that_is_held_back_is_overtaken_by_those_of_that_time_and_the_others_keep_their_order() {
        let mut pipe = pipe(&DelayVariation::None);
        let reordering = Reordering { share: 0.1, by: Duration::from_millis(25) };
        pipe.reorder(reordering, talkpath_units::Seed::new(1).stream("r"));
        let count: u32 = 20_000;
        for packet in 0..count {
            pipe.enter(packet, WireFate::default(), at(10 * u64::from(packet)));
        }
        let out = drain(&mut pipe);
        let due = |packet: u32| at(10 * u64::from(packet) + 1);
        let mut kept: Vec<&(u32, Instant)> = out.iter().collect();
        let mut held = kept.clone();
        kept.retain(|(packet, arrived)| *arrived == due(*packet));
        held.retain(|(packet, arrived)| *arrived != due(*packet));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(held.iter().all(|(packet, arrived)| *arrived == due(*packet) + Duration::from_millis(25)));
        // Binomial, four standard errors.
        let share = held.len() as f64 / f64::from(count);
        assert!((share - 0.1).abs() < 4.0 * (0.1 * 0.9 / f64::from(count)).sqrt(), "{share}");
        // 25 ms are two packets and a half: a packet that is held back alone comes two places later.
        let is_held = |packet: u32| held.iter().any(|(other, _)| *other == packet);
        let place = |packet: u32| out.iter().position(|(other, _)| *other == packet).unwrap();
        let alone = (10..200_u32).filter(|n| is_held(*n) && !(n - 4..n + 5).any(|m| m != *n && is_held(m)));
        assert!(alone.inspect(|n| assert_eq!(place(*n), *n as usize + 2)).count() > 3);
    }

    #[test]
    fn what_never_arrives_has_no_deadline() {
        let mut pipe = pipe(&DelayVariation::None);
        pipe.enter(0, WireFate::default(), Instant::MAX);
        assert_eq!((pipe.next(), pipe.len()), (Instant::MAX, 1));
    }
}
