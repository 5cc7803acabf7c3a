//! What lies between the ends: the links, the packets on them, and the event queue.
//!
//! Packets are plain records in a slab that nobody looks at between the two ends. A link's ring holds
//! tickets: the slot, and beside it the little that a router needs, the size and the next link, or the end where the route does.

use core::num::NonZeroU64;

use talkpath_measure::series::SeriesTap;
use talkpath_path::{Carried, Dropped, FragmentRange, Link};
use talkpath_transport::{Datagram, Ecn, Packet};
use talkpath_units::{Bytes, Instant};

use crate::capture::Tap;
use crate::prefetch;
use crate::queue::{Entity, EventQueue};

/// The links, and what happens when.
pub(crate) struct Network {
    pub(crate) queue: EventQueue,
    /// The link that is asked, packet after packet, when its next one comes out, and need not be scheduled meanwhile. Others say
    /// it as they are woken.
    pub(crate) awake: Entity,
    /// Those of the scenario, then the hosts' own delays. A link is the entity of its index.
    pub(crate) links: Vec<Link<Ticket>>,
    /// By link: its queue over time, where the plan asks for it.
    pub(crate) queue_series: Vec<SeriesTap>,
    pub(crate) parcels: Parcels,
    pub(crate) routes: Routes,
    /// What queues had no room for and whose flows were not told yet, in order.
    pub(crate) dropped: Vec<Ticket>,
    /// Where a capture is made of the run.
    pub(crate) tap: Option<Box<Tap>>,
}

/// Which way a packet travels in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the near end to the far one.
    Out,
    /// From the far end to the near one.
    Back,
}

/// A packet, or a fragment of one: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Parcel {
    pub(crate) packet: Packet,
    pub(crate) origin: Origin,
    /// Identification field (RFC 791 §3.1), counted by the sending endpoint; only fragments use it.
    pub(crate) identification: u32,
}

const _: () = assert!(size_of::<Parcel>() == prefetch::LINE, "a parcel is one cache line");

/// Who sent a packet and how it is marked, from the lowest bit on: the ECN field, the direction, the flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin(u32);

/// A parcel on a link: its slot, and beside it what a router needs to send it on. Two words, which fit into registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    /// From the lowest bit on: one that is set, so that there may be no ticket in as many words; the slot; whether the parcel is a
    /// piece of a packet; the size.
    parcel: NonZeroU64,
    pub(crate) next: Step,
}

/// A step of a route: in the lower half where it leads, in the upper one what comes after that where it is an end, and otherwise where
/// in [`Routes`] that stands. Before a route's last link a packet thus needs no look at the table, which is out of the cache where
/// there are thousands of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step(u64);

/// Where a step leads.
pub(crate) enum Place {
    Link(u32),
    /// The end of `flow` whose packets travel in this direction.
    End(usize, Direction),
}

impl Ticket {
    /// Set where the parcel is a piece of a packet; below it is the slot, and below that a bit that is always set.
    const PIECE: u64 = 1 << 31;

    #[inline(always)]
    fn new(slot: u32, is_piece: bool, wire_size: u32, next: Step) -> Self {
        let piece = if is_piece { Self::PIECE } else { 0 };
        let parcel = NonZeroU64::MIN | u64::from(wire_size) << 32 | piece | u64::from(slot) << 1;
        Self { parcel, next }
    }

    #[inline(always)]
    const fn slot(self) -> usize {
        ((self.parcel.get() & (Self::PIECE - 1)) >> 1) as usize
    }

    #[inline(always)]
    pub(crate) const fn is_piece(self) -> bool {
        self.parcel.get() & Self::PIECE != 0
    }
}

impl Step {
    /// Set where the step leads to an end.
    const END: u64 = 1 << 31;

    /// Where it leads.
    #[inline(always)]
    pub(crate) const fn place(self) -> Place {
        if self.0 & Self::END == 0 {
            return Place::Link(self.0 as u32);
        }
        let direction = if self.0 & 1 == 0 { Direction::Out } else { Direction::Back };
        Place::End((self.0 & (Self::END - 1)) as usize / 2, direction)
    }
}

impl Origin {
    const ECN: u32 = 3;
    const DIRECTION_BITS: u32 = 2;
    const FLOW_BITS: u32 = 3;
    /// So many flows can be told apart.
    pub(crate) const FLOWS: usize = 1 << (u32::BITS - Self::FLOW_BITS);

    #[inline(always)]
    pub(crate) const fn new(flow: u32, direction: Direction, ecn: Ecn) -> Self {
        Self(flow << Self::FLOW_BITS | (direction as u32) << Self::DIRECTION_BITS | ecn as u32)
    }

    #[inline(always)]
    pub(crate) const fn ecn(self) -> Ecn {
        match self.0 & Self::ECN {
            0 => Ecn::NotEct,
            1 => Ecn::Ect0,
            2 => Ecn::Ect1,
            _ => Ecn::Ce,
        }
    }

    pub(crate) const fn direction(self) -> Direction {
        if self.0 >> Self::DIRECTION_BITS & 1 == 0 { Direction::Out } else { Direction::Back }
    }

    pub(crate) const fn flow(self) -> u32 {
        self.0 >> Self::FLOW_BITS
    }
}

impl Network {
    /// A parcel leaves its host by the link of its route's `first` step; its next step is the one after that.
    #[inline(always)]
    pub(crate) fn depart(&mut self, first: Step, ticket: Ticket, now: Instant) {
        if let Some(tap) = &mut self.tap {
            tap.on_departure(self.parcels.get(ticket), now);
        }
        if let Place::Link(link) = first.place() {
            self.enter_on_its_way(link, ticket, now);
        }
    }

    /// A parcel comes to the link that is its next step. Returns whether `dropped` holds something.
    #[inline(always)]
    pub(crate) fn enter(&mut self, index: u32, ticket: Ticket, now: Instant) -> bool {
        let ticket = Ticket { next: self.routes.after(ticket.next), ..ticket };
        self.enter_on_its_way(index, ticket, now)
    }

    /// As [`Self::enter`], for a parcel whose next step is the one after that link.
    #[inline(always)]
    fn enter_on_its_way(&mut self, index: u32, ticket: Ticket, now: Instant) -> bool {
        let link = &mut self.links[index as usize];
        if !link.is_plain_for(ticket.wire_size()) {
            return self.enter_at_length(index, ticket, now);
        }
        match link.handle_packet(ticket, now) {
            Ok(Some(at)) => {
                debug_assert!(index != self.awake.0, "what comes out of a plain link is a plain arrival");
                self.queue.schedule(Entity(index), at);
            }
            Ok(None) => {}
            Err(Dropped { packet, .. }) => {
                self.dropped.push(packet);
                return true;
            }
        }
        false
    }

    /// As [`Self::enter`]; in pieces where the link's MTU asks for it. All packets of a link whose queue is a series come this way
    /// ([`Link::looked_at`]).
    #[cold]
    #[inline(never)]
    fn enter_at_length(&mut self, index: u32, ticket: Ticket, now: Instant) -> bool {
        let link = &mut self.links[index as usize];
        let before = link.poll_timeout();
        if ticket.wire_size() > link.mtu() {
            self.enter_in_pieces(index, ticket, now);
        } else {
            if link.marks(now) {
                self.parcels.mark(ticket);
            }
            if let Err(Dropped { packet, .. }) = link.handle_packet(ticket, now) {
                self.dropped.push(packet);
            }
        }
        self.observe_queue(index, now);
        let (entity, after) = (Entity(index), self.links[index as usize].poll_timeout());
        match (before, after) {
            _ if entity == self.awake => {}
            (None, Some(at)) => self.queue.schedule(entity, at),
            // It overtakes.
            (Some(before), Some(at)) if at < before => self.queue.reschedule(entity, before, at),
            _ => {}
        }
        !self.dropped.is_empty()
    }

    fn enter_in_pieces(&mut self, index: u32, ticket: Ticket, now: Instant) {
        let (parcel, whole) = (self.parcels.get(ticket).clone(), self.parcels.part(ticket));
        self.parcels.release(ticket);
        let link = &mut self.links[index as usize];
        for part in whole.fragments(link.mtu()) {
            let ticket = self.parcels.admit_piece(parcel.clone(), part, ticket.next);
            if let Err(Dropped { packet, .. }) = link.handle_packet(ticket, now) {
                self.dropped.push(packet);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn observe_queue(&mut self, index: u32, now: Instant) {
        if !self.queue_series.is_empty() {
            self.note_queue(index, now);
        }
    }

    #[inline(never)]
    fn note_queue(&mut self, index: u32, now: Instant) {
        if let Some(series) = self.queue_series.get_mut(index as usize) {
            series.push(self.links[index as usize].waiting(now) as f64, now);
        }
    }

    /// The entity of the end of `flow` whose packets travel in `direction`.
    #[inline]
    pub(crate) fn endpoint(&self, flow: usize, direction: Direction) -> Entity {
        Entity((self.links.len() + 2 * flow + direction as usize) as u32)
    }
}

impl Carried for Ticket {
    #[inline]
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.parcel.get() >> 32)
    }
}

/// All parcels under way. Slots are used again, the latest freed first, so that they stay warm.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    slots: Vec<Parcel>,
    free: Vec<u32>,
    /// By slot, as far as there were pieces of packets: which part of its packet one is. Stale where the slot holds a whole one.
    parts: Vec<FragmentRange>,
}

impl Parcels {
    /// Takes a packet in, of `wire_size` bytes, that goes on as `next` says.
    #[inline(always)]
    pub(crate) fn admit(&mut self, parcel: Parcel, wire_size: u32, next: Step) -> Ticket {
        Ticket::new(self.slot_for(parcel), false, wire_size, next)
    }

    /// Takes a piece of a packet in, that goes on as `next` says.
    #[inline(never)]
    fn admit_piece(&mut self, parcel: Parcel, part: FragmentRange, next: Step) -> Ticket {
        let slot = self.slot_for(parcel);
        if self.parts.len() <= slot as usize {
            self.parts.resize(self.slots.len(), part);
        }
        self.parts[slot as usize] = part;
        Ticket::new(slot, true, part.wire_size().get() as u32, next)
    }

    #[inline(always)]
    fn slot_for(&mut self, parcel: Parcel) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.one_more_slot(),
        };
        self.slots[slot as usize] = parcel;
        slot
    }

    /// Room for one more. What is put into it is no argument: as such it would lie on the stack, which would be aligned for it at each
    /// packet.
    #[cold]
    #[inline(never)]
    fn one_more_slot(&mut self) -> u32 {
        assert!(
            self.slots.len() < Ticket::PIECE as usize,
            "fewer than 2^31 packets are under way: they would need 128 GB"
        );
        let packet = Packet::Udp(Datagram { seq: 0, payload: 0 });
        self.slots.push(Parcel { packet, origin: Origin(0), identification: 0 });
        (self.slots.len() - 1) as u32
    }

    /// The parcel of a ticket.
    #[inline]
    pub(crate) fn get(&self, ticket: Ticket) -> &Parcel {
        &self.slots[ticket.slot()]
    }

    /// Asks memory for the parcel of a ticket.
    #[inline(always)]
    pub(crate) fn ask_for(&self, ticket: Ticket) {
        if let Some(parcel) = self.slots.get(ticket.slot()) {
            prefetch::ask_for_first(parcel);
        }
    }

    /// A queue marks the parcel: Congestion Experienced, where its ends take marks (RFC 3168 §5). Pieces of a packet are
    /// not marked.
    #[cold]
    pub(crate) fn mark(&mut self, ticket: Ticket) {
        let parcel = &mut self.slots[ticket.slot()];
        let origin = parcel.origin;
        if matches!(origin.ecn(), Ecn::Ect0 | Ecn::Ect1) {
            parcel.origin = Origin::new(origin.flow(), origin.direction(), Ecn::Ce);
        }
    }

    /// The part of its packet that a parcel is.
    pub(crate) fn part(&self, ticket: Ticket) -> FragmentRange {
        if ticket.is_piece() {
            return self.parts[ticket.slot()];
        }
        FragmentRange::whole(ticket.wire_size())
    }

    /// How many parcels are under way.
    #[cfg(test)]
    pub(crate) fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The parcel has left the network: its slot is free again.
    #[inline]
    pub(crate) fn release(&mut self, ticket: Ticket) {
        self.free.push(ticket.slot() as u32);
    }
}

/// All routes, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    steps: Vec<Step>,
}

impl Routes {
    /// Adds the route of what travels through `links` to the end of `flow` whose packets travel in `answers`; returns its first step.
    pub(crate) fn add(&mut self, links: &[u32], flow: usize, answers: Direction) -> Step {
        assert!(!links.is_empty(), "a scenario's route has at least one link");
        let first = self.steps.len();
        let end = Step::END | (2 * flow as u64) | answers as u64;
        let last = links.len() - 1;
        for (place, &link) in links.iter().enumerate() {
            let after = if place == last { end } else { self.steps.len() as u64 + 1 };
            self.steps.push(Step(after << 32 | u64::from(link)));
        }
        self.steps[first]
    }

    /// The step after `step`, which leads to a link.
    #[inline(always)]
    pub(crate) fn after(&self, step: Step) -> Step {
        let after = step.0 >> 32;
        if after & Step::END != 0 { Step(after) } else { self.steps[after as usize] }
    }
}

const _: () = assert!(size_of::<Link<Ticket>>() == 5 * prefetch::LINE, "a link has grown by a cache line");
