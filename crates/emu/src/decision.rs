//! The path's decisions about each packet that enters it.
//!
//! From the same arrivals the network makes the same decisions, however late it is polled, because each
//! decision carries the virtual time at which it holds. So the emulator only has to write packets at their
//! decided departures, and a replay of the arrivals makes every decision again.

use talkpath_arena::links::{self, QueueSeries, link_records};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{LinkRecord, Series};
use talkpath_model::Scenario;
use talkpath_path::{Carried, Direction, DropCause, Dscp, FragmentRange, Network, NetworkEvent, PathPacket};
use talkpath_units::{Ecn, Instant, Seed};

/// The number of lanes of a network that carries the packets of the user's programs. Each conversation has
/// one lane, so that a queue that has one queue for each flow takes conversations for flows. We chose 1024,
/// which is the number of queues of fq_codel (RFC 8290 §5.2.4). More conversations share lanes.
pub(crate) const LANES: u32 = 1024;

/// A packet that enters the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) flow: u32,
    pub(crate) direction: Direction,
    /// The part of the datagram that the packet carries. The sending kernel may have fragmented the datagram.
    pub(crate) part: FragmentRange,
    /// The packet's ECN field.
    pub(crate) ecn: Ecn,
    pub(crate) dscp: Dscp,
}

/// The decision about a packet, or about one of its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The number of the packet's arrival, counted from 0.
    pub(crate) number: u64,
    /// The tag that the caller gave with the arrival.
    pub(crate) tag: u32,
    pub(crate) part: FragmentRange,
    /// When the decision holds. For a departure, this is when the packet has to be at the far host.
    pub(crate) at: Instant,
    pub(crate) outcome: PacketOutcome,
}

/// What the path decided about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    /// The packet has come to the end of its route.
    Departs {
        /// True if the packet carries the ECN mark CE, from a queue of the path or from its arrival on.
        is_ce: bool,
        /// True if a wire of the path damaged the packet, and no link noticed.
        is_damaged: bool,
    },
    /// The queue of a link dropped the packet.
    Dropped {
        /// The link's index in the scenario. The indices of host delays follow those of the links.
        link: u32,
        /// The cause of the drop.
        cause: DropCause,
    },
    /// The wire of a link repeated the packet. Further decisions are about the packet and its copy, which the
    /// path does not tell apart.
    Repeated {
        /// The link's index in the scenario.
        link: u32,
    },
    /// The wire of a link lost the packet.
    Lost {
        /// The link's index in the scenario.
        link: u32,
    },
}

/// The network of a scenario, and the number of packets that have entered it.
pub(crate) struct DecidingNetwork {
    network: Network<Arrived>,
    queue_series: Option<QueueSeries>,
    arrivals: u64,
    /// The time up to which everything is decided.
    now: Instant,
    /// The services that nobody has taken yet: the tag of the packet, and when its service began. `None` if
    /// nobody asks for them.
    services: Option<Vec<(u32, Instant)>>,
    links: u32,
}

/// Identifies a packet in the network.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    number: u64,
    tag: u32,
}

impl DecidingNetwork {
    /// Makes the network of `scenario`. Its random streams are drawn from `seed`. If `series` is given, it
    /// records the lengths of the queues.
    pub(crate) fn new(scenario: &Scenario, seed: Seed, series: Option<SeriesDetail>) -> Self {
        let has_lanes = scenario.program.is_some();
        let lanes = if has_lanes { LANES } else { 0 };
        let mut network = links::network_with_lanes(scenario, seed, 0, series.is_some(), lanes);
        if has_lanes {
            network.observe_hops();
        }
        Self {
            network,
            services: has_lanes.then(Vec::new),
            links: u32::try_from(scenario.links.len()).unwrap_or(u32::MAX),
            queue_series: series.map(|detail| QueueSeries::new(scenario, detail)),
            arrivals: 0,
            now: Instant::ZERO,
        }
    }

    /// Lets a packet enter the network at `now`. All decisions up to and at this time are added to
    /// `decisions`. Returns the number of the packet's arrival.
    pub(crate) fn handle_arrival(
        &mut self,
        arrival: Arrival,
        tag: u32,
        now: Instant,
        decisions: &mut Vec<Decision>,
    ) -> u64 {
        self.advance(now, decisions);
        let number = self.arrivals;
        self.arrivals += 1;
        let Arrival { flow, direction, part, ecn, dscp } = arrival;
        let packet = PathPacket::new(flow, direction, part, ecn, Arrived { number, tag }).with_dscp(dscp);
        self.network.handle_packet(packet, self.now);
        self.advance(now, decisions);
        number
    }

    /// The time up to which everything is decided.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// The time at which the network may make its next decision. `None` if there is nothing to decide.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.network.poll_timeout()
    }

    /// Makes all decisions up to `now` and adds them to `decisions` in order of time.
    pub(crate) fn advance(&mut self, now: Instant, decisions: &mut Vec<Decision>) {
        while let Some(output) = self.network.poll_output(now) {
            let (packet, outcome) = match output.event {
                NetworkEvent::Arrived(packet) => {
                    let (is_ce, is_damaged) = (packet.ecn() == Ecn::Ce, packet.is_damaged());
                    (packet, PacketOutcome::Departs { is_ce, is_damaged })
                }
                NetworkEvent::Dropped { packet, link, cause } => {
                    (packet, PacketOutcome::Dropped { link, cause })
                }
                NetworkEvent::Lost { packet, link } => (packet, PacketOutcome::Lost { link }),
                NetworkEvent::Repeated { packet, link } => {
                    self.network.handle_copy(packet);
                    (packet, PacketOutcome::Repeated { link })
                }
                // The network's timers are not used, because the hosts' kernels have their own. Entries into
                // single links are not recorded.
                NetworkEvent::Timer(_) | NetworkEvent::Entered { .. } => continue,
            };
            let Arrived { number, tag } = packet.tag;
            decisions.push(Decision { number, tag, part: packet.part(), at: output.at, outcome });
        }
        if let Some(series) = &mut self.queue_series {
            series.take(&mut self.network);
        }
        if let Some(services) = &mut self.services {
            for link in 0..self.links {
                let begun = self.network.services(link).into_iter().flat_map(|begun| begun.drain(..));
                services.extend(begun.map(|service| (service.packet.tag.tag, service.began)));
            }
        }
        self.now = self.now.max(now);
    }

    /// Takes the services that began since the last call: the tag of the packet, and when its service began.
    /// Only a network with lanes has services. The tag of a packet that has departed is used again only after
    /// the next arrival.
    pub(crate) fn services(&mut self) -> impl Iterator<Item = (u32, Instant)> {
        self.services.iter_mut().flat_map(|services| services.drain(..))
    }

    /// Returns the records of the links of `scenario` and the series of their queues, as of `end`.
    pub(crate) fn finish(mut self, scenario: &Scenario, end: Instant) -> (Vec<LinkRecord>, Vec<Series>) {
        // The records of the links begin the services that were due, so the series are taken after them.
        let links = link_records(&mut self.network, scenario, end);
        if let Some(series) = &mut self.queue_series {
            series.take(&mut self.network);
        }
        (links, self.queue_series.into_iter().flat_map(QueueSeries::finish).collect())
    }
}
