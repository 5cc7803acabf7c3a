//! The packets under way. The network carries handles of them, since a packet is as large as a cache line.

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
        self.free.push(handle);
    }

    /// How many packets are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
