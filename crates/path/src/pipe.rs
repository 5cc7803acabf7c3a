//! The pipe: what is on the wire stays there for the propagation delay, plus what the delay variation adds.
//!
//! Lost packets travel too and are told as lost where they would have arrived: nobody can know earlier, and what a
//! loss model eats changes nobody else's delay.
//!
//! In order, a packet arrives at the later of its own arrival and its predecessor's. The foremost is held by the pipe itself, as on
//! most links it is alone, and those behind it by a ring. Where overtaking is asked for, a heap ordered by (arrival, number) holds all.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use talkpath_units::{Bytes, Duration, Instant, Stream};

use crate::config::DelayVariation;
use crate::delay_variation::Variation;
use crate::link::Carried;
use crate::ring::Ring;
use crate::serialiser::later;

/// Propagation delay and its variation.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Pipe<T> {
    delay: Duration,
    /// All packets, but for those in `overtaking`.
    in_order: InOrder<T>,
    /// Apart, since most links have neither.
    varied: Option<Box<Varied<T>>>,
}

/// What makes a pipe more than a delay.
#[derive(Debug)]
struct Varied<T> {
    variation: Variation,
    /// Where packets may overtake: they, and how many there were.
    overtaking: Option<(BinaryHeap<Numbered<T>>, u64)>,
    /// The sizes of packets that entered and when they were on the wire, which their arrivals do not tell here.
    entered: Ring<(Bytes, Instant)>,
}

/// What leaves the pipe.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Traveller<T> {
    /// When it is at the far end; [`Instant::MAX`] is never.
    pub(crate) arrival: Instant,
    pub(crate) fate: Fate<T>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate<T> {
    Arrives(T),
    /// The wire ate it.
    Lost(T),
    /// There is no packet.
    Nothing,
}

/// Packets that arrive in the order in which they entered.
#[derive(Debug)]
#[repr(C)]
struct InOrder<T> {
    /// The next one to arrive.
    foremost: Traveller<T>,
    /// Those behind it.
    ring: Ring<Traveller<T>>,
    /// The latest arrival given out, but to those that took the plain way in.
    latest: Instant,
}

/// A traveller that may overtake; number breaks ties of arrival.
#[derive(Debug)]
struct Numbered<T> {
    number: u64,
    traveller: Traveller<T>,
}

impl<T: Carried> Pipe<T> {
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
            let overtaking = may.then(|| (BinaryHeap::new(), 0));
            Box::new(Varied {
                variation: Variation::new(delay, model, stream),
                overtaking,
                entered: Ring::new(),
            })
        });
        Self { in_order: InOrder::new(), delay, varied }
    }

    /// A packet that came at `now` is on the wire, whole, at `at`. Where that makes it the next one to leave the pipe, returns when.
    pub(crate) fn enter(&mut self, packet: T, lost: bool, at: Instant, now: Instant) -> Option<Instant> {
        let fate = if lost { Fate::Lost(packet) } else { Fate::Arrives(packet) };
        let Some(varied) = &mut self.varied else {
            return self.in_order.enter(Traveller { arrival: at.saturating_add(self.delay), fate });
        };
        while varied.entered.pop_front_if(|&(_, before)| before <= now).is_some() {}
        varied.entered.push_back((packet.wire_size(), at));
        let traveller = Traveller { arrival: at.saturating_add(varied.variation.delay()), fate };
        let Some((heap, entered)) = &mut varied.overtaking else {
            return self.in_order.enter(traveller);
        };
        let number = *entered;
        heap.push(Numbered { number, traveller });
        *entered += 1;
        let is_next = heap.peek().is_some_and(|next| next.number == number);
        if is_next { self.poll_timeout() } else { None }
    }

    /// As [`Self::enter`], for a packet that is not lost, in a pipe whose delay does not vary: `at` never goes back, so
    /// neither does the arrival.
    #[inline(always)]
    pub(crate) fn enter_plain(&mut self, packet: T, at: Instant) -> Option<Instant> {
        let arrival = later(at, self.delay.as_nanos());
        self.in_order.enter_last(Traveller { arrival, fate: Fate::Arrives(packet) })
    }

    /// Of the `back`-th last packet that entered, 1 being the last, its size and when it was or will be on the wire, whole. It is
    /// known as long as that time had not come when the last one entered, of packets that found another in the pipe: as all do that
    /// had to wait before it.
    #[inline(always)]
    pub(crate) fn entered(&self, back: u32) -> Option<(Bytes, Instant)> {
        if let Some(varied) = &self.varied {
            return varied.entered.put_before(back).copied();
        }
        let traveller = self.in_order.ring.put_before(back)?;
        let at = match traveller.arrival {
            Instant::MAX => Instant::MAX,
            // It entered with the delay added.
            arrival => Instant::from_nanos(arrival.as_nanos() - self.delay.as_nanos()),
        };
        Some((traveller.fate.packet()?.wire_size(), at))
    }

    /// The packet that leaves the pipe after `ahead` others, where none overtakes.
    #[inline(always)]
    pub(crate) fn ahead(&self, ahead: u32) -> Option<&T> {
        let traveller = match ahead.checked_sub(1) {
            None => &self.in_order.foremost,
            Some(behind) => self.in_order.ring.ahead(behind)?,
        };
        traveller.fate.packet()
    }

    /// Where the second of the packets is that leave the pipe next.
    #[inline(always)]
    pub(crate) fn second_place(&self) -> Option<&Traveller<T>> {
        self.in_order.ring.front()
    }

    /// Where the next packet that enters is put, as long as there is room and it is not the only one.
    #[inline(always)]
    pub(crate) fn free_place(&self) -> Option<&Traveller<T>> {
        self.in_order.ring.free_place()
    }

    /// When the next packet leaves the pipe, if any ever does.
    #[inline(always)]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let next = match self.in_order.foremost {
            Traveller { fate: Fate::Nothing, .. } => self.overtaking()?.peek()?.traveller.arrival,
            Traveller { arrival, .. } => arrival,
        };
        (next < Instant::MAX).then_some(next)
    }

    /// The packet whose time to leave the pipe has come, and when it was, where it was not lost and none overtakes; and when the one
    /// behind it leaves, [`Instant::MAX`] where there is none. Only to be called when [`Self::poll_timeout`] has come.
    #[inline(always)]
    pub(crate) fn poll_arrival(&mut self) -> Option<(T, Instant, Instant)> {
        let Traveller { arrival, fate: Fate::Arrives(packet) } = self.in_order.foremost else { return None };
        Some((packet, arrival, self.in_order.advance()))
    }

    /// The next packet that left the pipe by `now`.
    pub(crate) fn poll_output(&mut self, now: Instant) -> Option<Traveller<T>> {
        let next = self.in_order.foremost;
        if matches!(next.fate, Fate::Nothing) {
            return self.overtaking_output(now);
        }
        if next.arrival > now {
            return None;
        }
        self.in_order.advance();
        Some(next)
    }

    /// Packets inside.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.overtaking().map_or(0, BinaryHeap::len)
    }

    fn overtaking(&self) -> Option<&BinaryHeap<Numbered<T>>> {
        self.varied.as_ref()?.overtaking.as_ref().map(|(heap, _)| heap)
    }

    fn overtaking_output(&mut self, now: Instant) -> Option<Traveller<T>> {
        let (heap, _) = self.varied.as_mut()?.overtaking.as_mut()?;
        if heap.peek()?.traveller.arrival > now {
            return None;
        }
        heap.pop().map(|next| next.traveller)
    }
}

impl<T> Fate<T> {
    /// The packet, if there is one.
    #[inline(always)]
    const fn packet(&self) -> Option<&T> {
        match self {
            Self::Arrives(packet) | Self::Lost(packet) => Some(packet),
            Self::Nothing => None,
        }
    }
}

impl<T: Copy> InOrder<T> {
    /// Without packets.
    fn new() -> Self {
        let foremost = Traveller { arrival: Instant::MAX, fate: Fate::Nothing };
        Self { foremost, ring: Ring::new(), latest: Instant::ZERO }
    }

    fn len(&self) -> usize {
        self.foremost.fate.packet().map_or(0, |_| 1 + self.ring.len())
    }

    /// Holds the packet until its arrival, or its predecessor's where that is later. Where it is the next one to arrive, returns when.
    fn enter(&mut self, traveller: Traveller<T>) -> Option<Instant> {
        self.latest = self.latest.max(traveller.arrival);
        self.enter_last(Traveller { arrival: self.latest, ..traveller })
    }

    /// As [`Self::enter`], for a packet that does not arrive before its predecessor.
    #[inline(always)]
    fn enter_last(&mut self, traveller: Traveller<T>) -> Option<Instant> {
        if !matches!(self.foremost.fate, Fate::Nothing) {
            self.ring.push_back(traveller);
            return None;
        }
        self.foremost = traveller;
        (traveller.arrival < Instant::MAX).then_some(traveller.arrival)
    }

    /// The foremost has left: returns when the one behind it does, if any.
    #[inline(always)]
    fn advance(&mut self) -> Instant {
        if !self.ring.pop_front_into(&mut self.foremost) {
            self.foremost = Traveller { arrival: Instant::MAX, fate: Fate::Nothing };
        }
        self.foremost.arrival
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

    #[derive(Clone, Copy)]
    struct Frame(u64);

    impl Carried for Frame {
        fn wire_size(&self) -> Bytes {
            Bytes::new(100 + self.0)
        }
    }

    /// Whatever the pipe adds to its delay.
    #[test]
    fn when_a_packet_was_on_the_wire_is_known_until_the_next_one_enters() {
        for jitter in [
            DelayVariation::None,
            DelayVariation::Uniform { max: Duration::from_millis(7), reorder: false },
            DelayVariation::Uniform { max: Duration::from_millis(7), reorder: true },
        ] {
            let mut pipe =
                Pipe::new(Duration::from_millis(1), &jitter, talkpath_units::Seed::new(1).stream("x"));
            for number in 0..40 {
                // Three are on their way to the wire at any time.
                pipe.enter(Frame(number), false, at(number + 3), at(number));
                while pipe.poll_output(at(number)).is_some() {}
                // The first one found the pipe empty.
                for back in 0..3.min(number) {
                    let expected = (Bytes::new(100 + number - back), at(number + 3 - back));
                    assert_eq!(pipe.entered(back as u32 + 1), Some(expected), "{jitter:?}");
                }
            }
        }
    }

    #[test]
    fn in_order_a_packet_arrives_not_before_its_predecessor() {
        let mut in_order = InOrder::new();
        for (packet, arrival) in [(0, at(9)), (1, at(4)), (2, at(12))] {
            in_order.enter(Traveller { arrival, fate: Fate::Arrives(packet) });
        }
        let held = in_order.len();
        let arrivals: Vec<_> = (0..3)
            .map(|_| {
                let Traveller { arrival, fate } = in_order.foremost;
                in_order.advance();
                (fate.packet().copied(), arrival)
            })
            .collect();
        assert_eq!(arrivals, [(Some(0), at(9)), (Some(1), at(9)), (Some(2), at(12))]);
        assert_eq!((held, in_order.len(), in_order.advance()), (3, 0, Instant::MAX));
    }

    #[test]
    fn a_heap_gives_ties_in_the_order_of_entry() {
        let reordering = DelayVariation::Uniform { max: Duration::ZERO, reorder: true };
        let mut pipe =
            Pipe::new(Duration::from_millis(1), &reordering, talkpath_units::Seed::new(1).stream("x"));
        for packet in 0..20 {
            pipe.enter(Frame(packet), false, at(5), at(0));
        }
        pipe.enter(Frame(20), false, at(3), at(0));
        let out: Vec<_> = std::iter::from_fn(|| pipe.poll_output(at(6)))
            .filter_map(|out| out.fate.packet().map(|frame| frame.0))
            .collect();
        assert_eq!(out, std::iter::once(20).chain(0..20).collect::<Vec<_>>());
    }

    #[test]
    fn what_never_arrives_has_no_deadline() {
        let mut pipe = Pipe::new(
            Duration::from_millis(1),
            &DelayVariation::None,
            talkpath_units::Seed::new(1).stream("x"),
        );
        pipe.enter(Frame(0), false, Instant::MAX, at(0));
        assert_eq!((pipe.poll_timeout(), pipe.len()), (None, 1));
    }
}
