//! The links between the endpoints, and the packets on them.

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

/// A packet, or a fragment of one, with what a router needs to send it on: plain data, moved from ring to ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) packet: Packet,
    pub(crate) ecn: Ecn,
    pub(crate) direction: Direction,
    /// How many links of the route lie behind it.
    pub(crate) hop: u16,
    pub(crate) flow: u32,
    /// Identification field (RFC 791 §3.1), counted by the sending endpoint; only fragments use it.
    pub(crate) identification: u32,
    /// Which part of the packet this is: all of it, or one fragment.
    pub(crate) part: FragmentRange,
}

impl Carried for Parcel {
    fn wire_size(&self) -> Bytes {
        self.part.wire_size()
    }
}
