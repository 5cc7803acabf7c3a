//! The packets on the links: plain records in a slab that nobody looks at between the two ends. A link's rings hold
//! tickets: the slot, and beside it the little that a router needs, the size and the next link.

use talkpath_path::{Carried, FragmentRange};
use talkpath_transport::{Ecn, Packet};
use talkpath_units::Bytes;

/// Which way a packet travels in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the near end to the far one.
    Out,
    /// From the far end to the near one.
    Back,
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
    /// Takes a packet in, or a piece of one, whose next link stands at `next_hop` of [`Routes`].
    #[inline(always)]
    pub(crate) fn admit(&mut self, parcel: Parcel, next_hop: u32) -> Ticket {
        let size = match parcel.part {
            None => parcel.packet.wire_size(),
            Some(part) => part.wire_size(),
        };
        // An IPv4 packet has at most 65,535 bytes (RFC 791 §3.1).
        let wire_size = size.get() as u32;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = parcel;
                slot
            }
            None => {
                self.slots.push(parcel);
                (self.slots.len() - 1) as u32
            }
        };
        Ticket { slot, wire_size, next_hop }
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
