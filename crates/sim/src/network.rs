//! What lies between the ends: the links, the packets on them, and the event queue.
//!
//! Packets are plain records in a slab that nobody looks at between the two ends. A link's rings hold
//! tickets: the slot, and beside it the little that a router needs, the size and the next link.

use talkpath_measure::series::SeriesTap;
use talkpath_path::{Carried, Dropped, FragmentRange, Link};
use talkpath_transport::{Ecn, Packet};
use talkpath_units::{Bytes, Instant};

use crate::capture::Tap;
use crate::queue::{Entity, EventQueue};

/// The links, and what happens when.
pub(crate) struct Network {
    pub(crate) queue: EventQueue,
    /// Who was woken and has not settled yet: a link then says itself when its next packet comes out.
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
    pub(crate) tap: Option<Tap>,
}

/// Which way a packet travels in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the near end to the far one.
    Out,
    /// From the far end to the near one.
    Back,
}

impl Direction {
    #[inline]
    pub(crate) const fn opposite(self) -> Self {
        match self {
            Self::Out => Self::Back,
            Self::Back => Self::Out,
        }
    }
}

/// A packet, or a fragment of one.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) packet: Packet,
    pub(crate) ecn: Ecn,
    pub(crate) direction: Direction,
    pub(crate) flow: u32,
    /// Identification field (RFC 791 §3.1), counted by the sending endpoint; only fragments use it.
    pub(crate) identification: u32,
    /// Which part of the packet this is, where it is not all of it.
    pub(crate) part: Option<FragmentRange>,
}

/// A parcel on a link: its slot, and beside it what a router needs to send it on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    pub(crate) wire_size: u32,
    /// Where in [`Routes`] the next link stands.
    pub(crate) next_hop: u32,
}

impl Network {
    /// A parcel leaves its host by its first link.
    #[inline(always)]
    pub(crate) fn depart(&mut self, link: u32, ticket: Ticket, now: Instant) {
        if let Some(tap) = &mut self.tap {
            tap.on_departure(self.parcels.get(ticket), now);
        }
        self.enter(link, ticket, now);
    }

    /// A parcel comes to a link.
    #[inline(always)]
    pub(crate) fn enter(&mut self, index: u32, ticket: Ticket, now: Instant) {
        let link = &mut self.links[index as usize];
        if !link.is_plain_for(ticket.wire_size()) {
            return self.enter_at_length(index, ticket, now);
        }
        match link.handle_packet(ticket, now) {
            Ok(Some(at)) if index != self.awake.0 => self.queue.schedule(Entity(index), at),
            Ok(_) => {}
            Err(Dropped { packet, .. }) => self.dropped.push(packet),
        }
        self.observe_queue(index, now);
    }

    /// As [`Self::enter`]; in pieces where the link's MTU asks for it.
    #[inline(never)]
    fn enter_at_length(&mut self, index: u32, ticket: Ticket, now: Instant) {
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
    }

    fn enter_in_pieces(&mut self, index: u32, ticket: Ticket, now: Instant) {
        let (parcel, whole) = (self.parcels.get(ticket).clone(), self.parcels.part(ticket));
        self.parcels.release(ticket);
        let link = &mut self.links[index as usize];
        for part in whole.fragments(link.mtu()) {
            let ticket = self.parcels.admit(
                Parcel { part: Some(part), ..parcel.clone() },
                part.wire_size().get() as u32,
                ticket.next_hop,
            );
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
        Bytes::new(u64::from(self.wire_size))
    }
}

/// All parcels under way. Slots are used again, the latest freed first, so that they stay warm.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    slots: Vec<Parcel>,
    free: Vec<u32>,
}

impl Parcels {
    /// Takes a packet in, or a piece of one, of `wire_size` bytes, whose next link stands at `next_hop` of [`Routes`].
    #[inline(always)]
    pub(crate) fn admit(&mut self, parcel: Parcel, wire_size: u32, next_hop: u32) -> Ticket {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = parcel;
                slot
            }
            None => self.admit_one_more(parcel),
        };
        Ticket { slot, wire_size, next_hop }
    }

    #[inline(never)]
    fn admit_one_more(&mut self, parcel: Parcel) -> u32 {
        self.slots.push(parcel);
        (self.slots.len() - 1) as u32
    }

    /// The parcel of a ticket.
    #[inline]
    pub(crate) fn get(&self, ticket: Ticket) -> &Parcel {
        &self.slots[ticket.slot as usize]
    }

    /// A queue marks the parcel: Congestion Experienced, where its ends take marks (RFC 3168 §5). Pieces of a packet are
    /// not marked.
    #[cold]
    pub(crate) fn mark(&mut self, ticket: Ticket) {
        let parcel = &mut self.slots[ticket.slot as usize];
        if matches!(parcel.ecn, Ecn::Ect0 | Ecn::Ect1) {
            parcel.ecn = Ecn::Ce;
        }
    }

    /// The part of its packet that a parcel is.
    pub(crate) fn part(&self, ticket: Ticket) -> FragmentRange {
        let parcel = self.get(ticket);
        parcel.part.unwrap_or_else(|| FragmentRange::whole(parcel.packet.wire_size()))
    }

    /// How many parcels are under way.
    #[cfg(test)]
    pub(crate) fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The parcel has left the network: its slot is free again.
    #[inline]
    pub(crate) fn release(&mut self, ticket: Ticket) {
        self.free.push(ticket.slot);
    }
}

/// All routes, one after the other, each with [`Routes::END`] behind its last link.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    links: Vec<u32>,
}

impl Routes {
    /// Behind a route's last link: the parcel has arrived.
    pub(crate) const END: u32 = u32::MAX;

    /// Adds a route; returns where it begins.
    pub(crate) fn add(&mut self, links: &[u32]) -> u32 {
        assert!(!links.is_empty(), "a scenario's route has at least one link");
        let start = self.links.len() as u32;
        self.links.extend_from_slice(links);
        self.links.push(Self::END);
        start
    }

    /// The link at `place`, or [`Routes::END`].
    #[inline]
    pub(crate) fn link(&self, place: u32) -> u32 {
        self.links[place as usize]
    }
}
