//! The slots that hold packets on their way.

use std::ops::{Index, IndexMut};

use talkpath_model::IpVersion;
use talkpath_path::{Direction, FragmentRange};
use talkpath_units::Ecn;

use crate::lanes::PacketRow;
use crate::packet::{Host, Parsed, Protocol};

/// A buffer that holds a packet until each of its pieces has departed, or was dropped or lost.
pub(super) struct Slot {
    pub(super) bytes: Box<[u8]>,
    pub(super) parsed: Parsed,
    /// True if the checksum of TCP or UDP is not complete, so that the receiving host has to complete it.
    pub(super) needs_checksum: bool,
    /// The packet's flow. `None` if it is a packet of one of the user's programs.
    pub(super) flow: Option<u32>,
    /// The row of a packet of one of the user's programs.
    pub(super) row: Option<PacketRow>,
    /// True if the packet has left the path with the ECN mark CE.
    pub(super) has_left_marked: bool,
    pub(super) direction: Direction,
    /// The number under which the flow's watch knows the packet's datagram, if it does.
    pub(super) datagram: Option<u64>,
    pub(super) to: Host,
    /// The weight of the parts for which the path has no decision yet ([`weight`]).
    pub(super) undecided: u32,
    /// True if a wire of the path repeated the packet or a part of it.
    pub(super) is_repeated: bool,
    /// True if the packet, a copy of it or a part of it has departed.
    pub(super) has_departed: bool,
}

/// How much a part of a packet weighs in [`Slot::undecided`]: its payload bytes. A packet without payload
/// weighs 1, so that its copies are waited for.
pub(super) fn weight(part: FragmentRange) -> u32 {
    part.length.max(1)
}

/// All slots. A slot is identified by its index.
pub(super) struct SlotTable {
    slots: Vec<Slot>,
    /// The slots that hold no packet.
    free: Vec<u32>,
    /// The size of a slot's buffer, bytes.
    slot_size: usize,
    max_slots: usize,
}

impl SlotTable {
    /// Makes a table whose buffers have `slot_size` bytes each and `max_memory` bytes together.
    pub(super) fn new(slot_size: usize, max_memory: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), slot_size, max_slots: max_memory / slot_size.max(1) }
    }

    /// Returns a slot for a packet. Returns `None` if all slots are taken.
    pub(super) fn allocate(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.slots.len() >= self.max_slots {
            return None;
        }
        self.slots.push(Slot::empty(self.slot_size));
        u32::try_from(self.slots.len() - 1).ok()
    }

    /// Takes a slot back whose packet is done.
    pub(super) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

impl Index<u32> for SlotTable {
    type Output = Slot;

    fn index(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }
}

impl IndexMut<u32> for SlotTable {
    fn index_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }
}

impl Slot {
    /// The parsed packet enters the path, towards the host `to`.
    pub(super) fn enter_path(&mut self, to: Host) {
        self.to = to;
        self.undecided = weight(self.parsed.part);
        (self.is_repeated, self.has_departed) = (false, false);
    }

    fn empty(size: usize) -> Self {
        let parsed = Parsed {
            ip: IpVersion::V4,
            header: 0,
            length: 0,
            part: FragmentRange { offset: 0, length: 0, more: false },
            ecn: Ecn::NotEct,
            identification: 0,
            protocol: Protocol::Udp,
            ports: None,
        };
        Self {
            bytes: vec![0; size].into_boxed_slice(),
            parsed,
            needs_checksum: false,
            flow: None,
            row: None,
            has_left_marked: false,
            direction: Direction::Out,
            datagram: None,
            to: Host::First,
            undecided: 0,
            is_repeated: false,
            has_departed: false,
        }
    }
}
