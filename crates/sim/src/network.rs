//! The packets on the links: plain records in a slab, named by slot, so that a link's rings hold eight bytes a packet.

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

/// A packet, or a fragment of one, with what a router needs to send it on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) packet: Packet,
    pub(crate) ecn: Ecn,
    pub(crate) direction: Direction,
    pub(crate) flow: u32,
    /// Where in [`Routes`] the next link stands.
    pub(crate) next_hop: u32,
    /// Identification field (RFC 791 §3.1), counted by the sending endpoint; only fragments use it.
    pub(crate) identification: u32,
    /// Which part of the packet this is: all of it, or one fragment.
    pub(crate) part: FragmentRange,
}

/// A parcel on a link: its slot, and its size beside it so that the link need not look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) slot: u32,
    wire_size: u32,
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
    /// Takes a parcel in.
    #[inline]
    pub(crate) fn admit(&mut self, parcel: Parcel) -> Ticket {
        // An IPv4 packet has at most 65,535 bytes (RFC 791 §3.1).
        let wire_size = parcel.part.wire_size().get() as u32;
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
        Ticket { slot, wire_size }
    }

    /// Gives a parcel out; its slot is free again.
    #[inline]
    pub(crate) fn release(&mut self, ticket: Ticket) -> Parcel {
        self.free.push(ticket.slot);
        self.slots[ticket.slot as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> &mut Parcel {
        &mut self.slots[ticket.slot as usize]
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
