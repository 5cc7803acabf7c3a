//! What the path decides about each packet that enters it.
//!
//! The network decides the same from the same arrivals, however late it is polled, since each decision
//! carries the virtual time at which it holds. So the emulator only has to keep promised departures, and a
//! replay of the arrivals makes every decision again.

use talkpath_arena::links::{self, QueueSeries, link_records};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{LinkRecord, Series};
use talkpath_model::Scenario;
use talkpath_path::{Carried, Direction, DropCause, FragmentRange, Network, NetworkEvent, PathPacket};
use talkpath_units::{Ecn, Instant, Seed};

/// A packet that enters the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) flow: u32,
    pub(crate) direction: Direction,
    /// Which part of its datagram it is; the sending kernel may have cut it.
    pub(crate) part: FragmentRange,
    /// Its ECN field.
    pub(crate) ecn: Ecn,
}

/// What became of a packet, or of one of its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The arrival, counted from 0.
    pub(crate) number: u64,
    /// What the driver gave with the arrival.
    pub(crate) tag: u32,
    pub(crate) part: FragmentRange,
    /// When this holds: for a departure, when the packet is to be at the far host.
    pub(crate) at: Instant,
    pub(crate) outcome: PacketOutcome,
}

/// See [`Decision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    /// It is at the end of its route.
    Departs {
        /// Whether it carries Congestion Experienced, from a queue of the path or as it arrived.
        is_ce: bool,
    },
    /// The queue of this link dropped it.
    Dropped {
        /// Index in the scenario; host delays follow.
        link: u32,
        /// Why.
        cause: DropCause,
    },
    /// The wire of this link ate it.
    Lost {
        /// Index in the scenario.
        link: u32,
    },
}

/// The network of a scenario, and how many packets have entered it.
pub(crate) struct DecidingNetwork {
    network: Network<Arrived>,
    queue_series: Option<QueueSeries>,
    arrivals: u64,
    /// Everything up to here is decided.
    now: Instant,
}

/// Identifies a packet in the network.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    number: u64,
    tag: u32,
}

impl DecidingNetwork {
    /// The network of `scenario`, its random streams drawn from `seed`; records the queues' lengths if there
    /// are to be `series`.
    pub(crate) fn new(scenario: &Scenario, seed: Seed, series: Option<SeriesDetail>) -> Self {
        Self {
            network: links::network(scenario, seed, 0, series.is_some()),
            queue_series: series.map(|detail| QueueSeries::new(scenario, detail)),
            arrivals: 0,
            now: Instant::ZERO,
        }
    }

    /// A packet enters at `now`; what is decided up to then, and at once, goes to `decisions`. Returns its
    /// number.
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
        let Arrival { flow, direction, part, ecn } = arrival;
        let packet = PathPacket::new(flow, direction, part, ecn, Arrived { number, tag });
        self.network.handle_packet(packet, self.now);
        self.advance(now, decisions);
        number
    }

    /// Everything up to here is decided.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// When the next decision may be made, if there is anything to decide.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.network.poll_timeout()
    }

    /// Decides everything up to `now`; the decisions go to `decisions`, in order of time.
    pub(crate) fn advance(&mut self, now: Instant, decisions: &mut Vec<Decision>) {
        while let Some(output) = self.network.poll_output(now) {
            let (packet, outcome) = match output.event {
                NetworkEvent::Arrived(packet) => {
                    (packet, PacketOutcome::Departs { is_ce: packet.ecn() == Ecn::Ce })
                }
                NetworkEvent::Dropped { packet, link, cause } => {
                    (packet, PacketOutcome::Dropped { link, cause })
                }
                NetworkEvent::Lost { packet, link } => (packet, PacketOutcome::Lost { link }),
                // The kernels of the hosts have their own timers, and hops are not observed.
                NetworkEvent::Timer(_) | NetworkEvent::Entered { .. } => continue,
            };
            let Arrived { number, tag } = packet.tag;
            decisions.push(Decision { number, tag, part: packet.part(), at: output.at, outcome });
        }
        if let Some(series) = &mut self.queue_series {
            series.take(&mut self.network);
        }
        self.now = self.now.max(now);
    }

    /// What the links of `scenario` did and how their queues went, as of `end`.
    pub(crate) fn finish(mut self, scenario: &Scenario, end: Instant) -> (Vec<LinkRecord>, Vec<Series>) {
        // Its reports begin the services that were due.
        let links = link_records(&mut self.network, scenario, end);
        if let Some(series) = &mut self.queue_series {
            series.take(&mut self.network);
        }
        (links, self.queue_series.into_iter().flat_map(QueueSeries::finish).collect())
    }
}
