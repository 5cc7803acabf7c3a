//! The packets under way. The network carries handles of them, since a packet is as large as a cache line.
//!
//! A wire may repeat a packet. The copy has a slot of its own, because it goes its own way. A message is lost
//! if the packet and all its copies are, so the loss of a copy alone counts for nothing: the copy is the
//! *heir* of its packet. If the packet is lost first, the loss of the heir counts in its place.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_path::FragmentRange;
use talkpath_wire::{Datagram, Packet};

/// A packet that has left its sender: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct SimPacket {
    pub(crate) packet: Packet,
    /// Identification field (RFC 791 §3.1), counted by the sending endpoint; only fragments use it.
    pub(crate) identification: u32,
    /// Payload bytes of the IP packet that are still on the path. They may travel as several fragments.
    on_path: u32,
}

const _: () = assert!(size_of::<SimPacket>() == 64, "a packet is one cache line");

/// Which packet: its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHandle(usize);

impl PacketHandle {
    /// Which slot: no two packets that are under way have the same.
    pub(crate) const fn slot(self) -> usize {
        self.0
    }
}

/// All packets under way. Slots are used again, the latest freed first, so that they stay in the cache.
#[derive(Debug, Default)]
pub(crate) struct SimPackets {
    slots: Vec<SimPacket>,
    free: Vec<PacketHandle>,
    /// The heir of each packet that has one, by their slots.
    heirs: BTreeMap<usize, usize>,
    /// The slots of the copies whose loss counts for nothing.
    copies: BTreeSet<usize>,
}

impl SimPackets {
    /// Takes a packet in, which travels as `whole`.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        packet: Packet,
        identification: u32,
        whole: FragmentRange,
    ) -> PacketHandle {
        let handle = match self.free.pop() {
            Some(handle) => handle,
            None => self.add_slot(),
        };
        self.slots[handle.0] = SimPacket { packet, identification, on_path: whole.length };
        handle
    }

    /// Adds an empty slot. The packet is no argument: as such it would lie on the stack, which would be
    /// aligned for it at each packet.
    #[cold]
    fn add_slot(&mut self) -> PacketHandle {
        let packet = Packet::Udp(Datagram { seq: 0, payload: 0 });
        self.slots.push(SimPacket { packet, identification: 0, on_path: 0 });
        PacketHandle(self.slots.len() - 1)
    }

    /// Takes in a copy of a packet, of which this `part` travels on.
    #[cold]
    pub(crate) fn copy(&mut self, of: PacketHandle, part: FragmentRange) -> PacketHandle {
        let SimPacket { packet, identification, .. } = self.get(of).clone();
        let copy = self.insert(packet, identification, part);
        self.copies.insert(copy.0);
        // The heir of the packet before is now the heir of this copy.
        if let Some(earlier) = self.heirs.insert(of.0, copy.0) {
            self.heirs.insert(copy.0, earlier);
        }
        copy
    }

    /// Returns true if the loss of the packet is that of its messages: no other copy of it is under way. If
    /// the packet has an heir, the loss of the heir counts from now on.
    pub(crate) fn counts_if_lost(&mut self, handle: PacketHandle) -> bool {
        if self.copies.contains(&handle.0) {
            return false;
        }
        match self.heirs.remove(&handle.0) {
            Some(heir) => {
                self.copies.remove(&heir);
                false
            }
            None => true,
        }
    }

    /// The packet of a handle.
    #[inline(always)]
    pub(crate) fn get(&self, handle: PacketHandle) -> &SimPacket {
        &self.slots[handle.0]
    }

    /// A part of the packet has left the path. Returns whether it was the last one.
    pub(crate) fn take_off_path(&mut self, handle: PacketHandle, part: FragmentRange) -> bool {
        let packet = &mut self.slots[handle.0];
        packet.on_path -= part.length;
        packet.on_path == 0
    }

    /// The packet is needed no longer: its slot is free again.
    #[inline(always)]
    pub(crate) fn remove(&mut self, handle: PacketHandle) {
        if !self.copies.is_empty() || !self.heirs.is_empty() {
            self.forget_copies(handle);
        }
        self.free.push(handle);
    }

    /// Forgets the heir of a packet, and that the packet is an heir.
    #[cold]
    fn forget_copies(&mut self, handle: PacketHandle) {
        self.copies.remove(&handle.0);
        let own_heir = self.heirs.remove(&handle.0);
        // A packet whose heir this is gets the next heir.
        let before = self.heirs.iter().find(|(_, heir)| **heir == handle.0).map(|(slot, _)| *slot);
        match (before, own_heir) {
            (Some(before), Some(heir)) => drop(self.heirs.insert(before, heir)),
            (Some(before), None) => drop(self.heirs.remove(&before)),
            (None, _) => {}
        }
    }

    /// How many packets are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
