//! A tap at one end of every flow, or at one host or router: what a capture is made of.

use std::collections::BTreeSet;

use talkpath_flow::Side;
use talkpath_model::{LinkIndex, Scenario, Topology};
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

/// Where a tap is.
#[derive(Clone, Debug)]
pub(crate) enum TapPlace {
    /// At one end of every flow, whose host differs from flow to flow.
    End(CaptureEnd),
    /// At one host or router.
    Node(TappedNode),
}

/// A host or a router.
#[derive(Clone, Debug)]
pub(crate) struct TappedNode {
    /// The end of each flow that is at the node. `None` if the node is a router to the flow.
    ends: Vec<Option<CaptureEnd>>,
    /// The links that begin at the node.
    links: BTreeSet<u32>,
}

impl TappedNode {
    /// The node at which `link` begins. Returns `None` if no flow uses the link.
    pub(crate) fn at_beginning_of(link: LinkIndex, scenario: &Scenario) -> Option<Self> {
        let topology = Topology::new(scenario);
        let node = (*topology.links.get(link.0 as usize)?)?.from;
        let begins_here = |link: &u32| topology.links[*link as usize].is_some_and(|ends| ends.from == node);
        let mut ends = vec![None; scenario.flows.len()];
        for (flows, end) in [
            (&topology.nodes[node].senders, CaptureEnd::Near),
            (&topology.nodes[node].receivers, CaptureEnd::Far),
        ] {
            flows.iter().for_each(|flow| ends[*flow] = Some(end));
        }
        Some(Self { ends, links: (0..topology.links.len() as u32).filter(begins_here).collect() })
    }

    /// Whether the node is a router to a flow.
    pub(crate) fn is_router(&self) -> bool {
        self.ends.iter().any(Option::is_none)
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
    place: TapPlace,
    pub(crate) seen: Vec<Sighting>,
}

/// The way of a packet that is at the tap: its flow, its direction and its ECN field.
pub(crate) type Way = (u32, Direction, Ecn);

impl Tap {
    pub(crate) const fn new(place: TapPlace) -> Self {
        Self { place, seen: Vec::new() }
    }

    /// Whether the tap is at this end of the flow.
    fn is_at(&self, flow: u32, end: CaptureEnd) -> bool {
        match &self.place {
            TapPlace::End(of_all) => *of_all == end,
            TapPlace::Node(node) => node.ends.get(flow as usize) == Some(&Some(end)),
        }
    }

    /// A packet leaves its sender.
    pub(crate) fn on_departure(&mut self, packet: &SimPacket, way: Way, now: Instant) {
        let sender = if way.1 == Direction::Out { CaptureEnd::Near } else { CaptureEnd::Far };
        if self.is_at(way.0, sender) {
            self.see(packet, way, now);
        }
    }

    /// A packet has arrived whole.
    pub(crate) fn on_arrival(&mut self, packet: &SimPacket, way: Way, now: Instant) {
        let receiver = if way.1 == Direction::Out { CaptureEnd::Far } else { CaptureEnd::Near };
        if self.is_at(way.0, receiver) {
            self.see(packet, way, now);
        }
    }

    /// A packet comes to a link. A router sees it before its queue.
    pub(crate) fn on_link(&mut self, packet: &SimPacket, way: Way, link: u32, now: Instant) {
        let TapPlace::Node(node) = &self.place else { return };
        if node.links.contains(&link) && node.ends.get(way.0 as usize) == Some(&None) {
            self.see(packet, way, now);
        }
    }

    fn see(&mut self, packet: &SimPacket, (flow, direction, ecn): Way, at: Instant) {
        let SimPacket { packet, identification, .. } = packet;
        let (packet, identification) = (packet.clone(), *identification);
        self.seen.push(Sighting { at, packet, ecn, flow, direction, identification });
    }
}
