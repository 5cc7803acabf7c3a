//! A tap at one end of every flow: what a capture is made of.

use talkpath_flow::Side;
use talkpath_path::Direction;
use talkpath_units::{Ecn, Instant};
use talkpath_wire::Packet;

use crate::packets::SimPacket;

/// An end of all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    /// The sending application's.
    Near,
    /// The receiving application's.
    Far,
}

impl CaptureEnd {
    /// The side of every flow at which it is.
    pub(crate) const fn side(self) -> Side {
        match self {
            Self::Near => Side::Near,
            Self::Far => Side::Far,
        }
    }
}

/// A packet at the tap.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) at: Instant,
    pub(crate) packet: Packet,
    pub(crate) ecn: Ecn,
    pub(crate) flow: u32,
    pub(crate) direction: Direction,
    pub(crate) identification: u32,
}

/// The tap: what was seen and not taken yet.
#[derive(Clone, Debug)]
pub(crate) struct Tap {
    end: CaptureEnd,
    pub(crate) seen: Vec<Sighting>,
}

/// The way of a packet that is at the tap: its flow, its direction and its ECN field.
pub(crate) type Way = (u32, Direction, Ecn);

impl Tap {
    pub(crate) const fn new(end: CaptureEnd) -> Self {
        Self { end, seen: Vec::new() }
    }

    /// A packet leaves its sender.
    pub(crate) fn on_departure(&mut self, packet: &SimPacket, way: Way, now: Instant) {
        let sender = if way.1 == Direction::Out { CaptureEnd::Near } else { CaptureEnd::Far };
        if sender == self.end {
            self.see(packet, way, now);
        }
    }

    /// A packet has arrived whole.
    pub(crate) fn on_arrival(&mut self, packet: &SimPacket, way: Way, now: Instant) {
        let receiver = if way.1 == Direction::Out { CaptureEnd::Far } else { CaptureEnd::Near };
        if receiver == self.end {
            self.see(packet, way, now);
        }
    }

    fn see(&mut self, packet: &SimPacket, (flow, direction, ecn): Way, at: Instant) {
        let SimPacket { packet, identification, .. } = packet;
        let (packet, identification) = (packet.clone(), *identification);
        self.seen.push(Sighting { at, packet, ecn, flow, direction, identification });
    }
}
