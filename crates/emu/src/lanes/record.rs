//! Makes the records of conversations. Each direction of a conversation is a flow, and each packet is a
//! message.
//!
//! A packet is due and sent when it enters the path. It is received when the emulator has handed it to the
//! far host. So the one-way delay of such a flow is the delay of the path and the lateness of the emulator.
//! The size of a message is that of its IP packet.
//!
//! A stream of RTP among the packets of a conversation is a further flow (`rtp.rs`).
//!
//! The record names the [`MAX_NAMED`] conversations with the most bytes. All other conversations together are
//! one flow in each direction.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summary::{IpSeen, IpSummary, OnPathMs};
use talkpath_measure::{
    EcnRecord, Fate, FlowCounters, FlowInfo, FlowRecord, LegRecord, LinkRecord, MessageRecord, Series,
    SeriesKind, SeriesTap, warning,
};
use talkpath_model::Dscp;
use talkpath_path::QueueName;
use talkpath_units::{Duration, Instant, counted};

use super::{Conversation, Endpoints, Lanes, Leg, MAX_CONVERSATIONS, RoundTrip, link_of, rtp};
use crate::packet::Host;

/// The largest number of conversations with a name in the record. We chose 32, because a person still reads a
/// table of 32 rows.
const MAX_NAMED: usize = 32;
/// The largest number of flows in the note about the waits. We chose 3, because the note is one sentence.
const MAX_LISTED: usize = 3;
/// A shorter wait does not count as a wait. We chose 1 ms, which is the precision of the emulator.
const NO_WAIT: Duration = Duration::from_millis(1);
/// From this median wait on, another queue is worth a trial. We chose 20 ms, the length of a call's frame.
const LONG_WAIT: Duration = Duration::from_millis(20);

/// The records of all conversations of a run.
pub(crate) struct ProgramRecord {
    pub(crate) flows: Vec<FlowRecord>,
    /// TCP's smoothed round-trip times.
    pub(crate) series: Vec<Series>,
    pub(crate) warnings: Vec<String>,
}

/// A flow of the record, with the legs of its conversations.
struct ProgramFlow<'a> {
    /// The name of the conversation, or "others".
    group: String,
    transport: String,
    leg: Host,
    legs: Vec<&'a Leg>,
    /// The endpoints, if the record has addresses.
    endpoints: Option<Endpoints>,
    /// The name under which the program found one of the two addresses.
    looked_up: Option<&'a str>,
}

impl ProgramRecord {
    /// Makes the records of `lanes`, whose packets crossed `links`.
    pub(crate) fn of(lanes: &Lanes, links: &[LinkRecord]) -> Self {
        let flows = program_flows(lanes);
        let mut warnings = vec![warning::note(describe_waits(&flows))];
        warnings.extend(advise_queue(&flows, links).map(warning::note));
        if lanes.without_row > 0 {
            warnings.push(format!(
                "the record is full: {} crossed the path without a row; the figures are those of the packets before",
                counted(lanes.without_row, "packet")
            ));
        }
        if lanes.conversations.len() >= MAX_CONVERSATIONS {
            warnings.push(format!(
                "there were {MAX_CONVERSATIONS} flows of programs or more: the later ones are counted as one"
            ));
        }
        let streams = rtp_streams(&flows);
        Self {
            flows: flows.iter().map(ProgramFlow::record).chain(streams).collect(),
            series: flows.iter().filter_map(ProgramFlow::round_trip_series).collect(),
            warnings,
        }
    }
}

/// Makes the flows of all conversations. The smallest conversations share a flow if there are more than
/// [`MAX_NAMED`].
fn program_flows(lanes: &Lanes) -> Vec<ProgramFlow<'_>> {
    let names = lanes.names.as_ref();
    let mut by_size: Vec<(usize, &Conversation)> = lanes.conversations.iter().enumerate().collect();
    by_size.sort_by_key(|(number, conversation)| (core::cmp::Reverse(conversation.bytes()), *number));
    let (large, others) = by_size.split_at(by_size.len().min(MAX_NAMED));
    let mut large = large.to_vec();
    large.sort_by_key(|(number, _)| *number);
    let mut flows = Vec::new();
    for (number, conversation) in large {
        let transport = conversation.transport();
        let group = conversation.name(number);
        let endpoints = conversation.endpoints;
        let looked_up = names
            .and_then(|names| names.name_of(endpoints.far.0).or_else(|| names.name_of(endpoints.near.0)));
        for leg in Host::BOTH {
            flows.push(ProgramFlow {
                group: group.clone(),
                transport: transport.clone(),
                leg,
                legs: vec![&conversation.legs[leg.index()]],
                endpoints: names.map(|_| endpoints),
                looked_up,
            });
        }
    }
    if !others.is_empty() {
        for leg in Host::BOTH {
            let legs = others.iter().map(|(_, conversation)| &conversation.legs[leg.index()]).collect();
            flows.push(ProgramFlow {
                group: "others".to_owned(),
                transport: "several".to_owned(),
                leg,
                legs,
                endpoints: None,
                looked_up: None,
            });
        }
    }
    flows.retain(|flow| flow.legs.iter().any(|leg| !leg.rows.is_empty()));
    flows
}

/// Makes the records of the streams of RTP in the flows that are one conversation.
fn rtp_streams(flows: &[ProgramFlow<'_>]) -> Vec<FlowRecord> {
    let mut streams = Vec::new();
    for flow in flows {
        let [leg] = flow.legs[..] else { continue };
        for (_, source) in leg.rtp.streams() {
            let name = format!("rtp-{}-{}-{}", source.payload_type(), streams.len() + 1, flow.link());
            streams.push(rtp::record(source, &name, name.clone(), &leg.rows));
        }
    }
    streams
}

impl ProgramFlow<'_> {
    /// Describes the waits of this flow in the note, with its missing packets and its round trip.
    fn describe_waits(&self, waits: &QueueWaits) -> String {
        let missing = match self.missing() {
            0 => String::new(),
            missing => format!(", and {} did not arrive", counted(missing as u64, "packet")),
        };
        let round_trip = on_path(self.round_trips()).map_or_else(String::new, |times| {
            format!(", and its round trips took {:.1} ms in the median", times.p50)
        });
        let rest = self.median_delay().map_or_else(String::new, |delay| {
            let rest = delay.saturating_sub(waits.median);
            format!(" (without the wait the path takes about {:.1} ms)", rest.as_millis_f64())
        });
        let name = self.looked_up.map_or_else(String::new, |name| format!(" ({name})"));
        format!(
            "{}{name} in the queue of {}, {:.1} ms in the median and {:.1} ms at the 99th percentile{rest}{missing}{round_trip}",
            self.group,
            self.link(),
            waits.median.as_millis_f64(),
            waits.p99.as_millis_f64()
        )
    }

    /// The name of the flow. The links of the path are `up` and `down`.
    fn name(&self) -> String {
        format!("{}-{}", self.group, self.link())
    }

    const fn link(&self) -> &'static str {
        link_of(self.leg)
    }

    fn record(&self) -> FlowRecord {
        let mut packets: Vec<MessageRecord> =
            self.legs.iter().flat_map(|leg| leg.rows.iter().copied()).collect();
        packets.sort_by_key(|packet| packet.due);
        for (number, packet) in (0..).zip(&mut packets) {
            packet.seq = number;
        }
        let mut arrivals: Vec<(Instant, u64)> =
            packets.iter().filter_map(|packet| Some((packet.received?, packet.seq))).collect();
        arrivals.sort();
        let start = packets.first().map_or(Instant::ZERO, |packet| packet.due);
        let sum = |count: fn(&Leg) -> u64| self.legs.iter().map(|leg| count(leg)).sum::<u64>();
        let is_tcp = self.transport == "tcp";
        let capable = sum(|leg| leg.ecn_capable) > 0;
        let info = FlowInfo {
            name: self.name(),
            // Each direction is a group of its own, because the two directions of a program are no copies.
            group: self.name(),
            transport: self.transport.clone(),
            start,
            clocked: false,
            bounded: true,
            ..FlowInfo::on_a_clock("")
        };
        FlowRecord {
            forward: LegRecord {
                messages: packets,
                arrivals: arrivals.into_iter().map(|(_, seq)| seq).collect(),
                ..LegRecord::default()
            },
            counters: FlowCounters {
                data_packets: is_tcp.then(|| sum(|leg| leg.data_segments)),
                retransmissions: is_tcp.then(|| sum(|leg| leg.retransmissions)),
                ip: Some(self.ip()),
                ..FlowCounters::default()
            },
            ecn: capable.then(|| EcnRecord {
                capable: Some(true),
                marked_forward: Some(sum(|leg| leg.marked)),
                ..EcnRecord::default()
            }),
            ..FlowRecord::new(info)
        }
    }

    fn ip(&self) -> IpSummary {
        let mut dscp: BTreeMap<String, u64> = BTreeMap::new();
        for (&number, count) in self.legs.iter().flat_map(|leg| &leg.dscp) {
            *dscp.entry(Dscp::from_byte(number << 2).to_string()).or_default() += count;
        }
        let text = |(address, port): (IpAddr, u16)| match port {
            0 => address.to_string(),
            port => SocketAddr::new(address, port).to_string(),
        };
        IpSummary {
            forward: IpSeen { dscp: Some(dscp), ..IpSeen::default() },
            queue_delay_ms: on_path(self.queue_delays()),
            round_trip_ms: on_path(self.round_trips()),
            near: self.endpoints.map(|endpoints| text(endpoints.near)),
            far: self.endpoints.map(|endpoints| text(endpoints.far)),
            name: self.looked_up.map(str::to_owned),
            ..IpSummary::default()
        }
    }

    /// The median time that the packets took over the path. `None` if none arrived.
    fn median_delay(&self) -> Option<Duration> {
        let packets = self.legs.iter().flat_map(|leg| &leg.rows);
        let mut delays: Vec<_> =
            packets.filter_map(|packet| Some(packet.received?.since(packet.due))).collect();
        delays.sort_unstable();
        nearest_rank(&delays, 50)
    }

    /// The waits of the packets in the queue, for the packets whose service has begun.
    fn queue_delays(&self) -> Vec<Duration> {
        self.legs.iter().flat_map(|leg| leg.waits.iter().copied()).collect()
    }

    /// Computes how long the packets waited in the queue. Returns `None` if no service began.
    fn waits(&self) -> Option<QueueWaits> {
        let mut waits = self.queue_delays();
        waits.sort_unstable();
        let total = waits.iter().fold(Duration::ZERO, |total, wait| total.saturating_add(*wait));
        Some(QueueWaits { median: nearest_rank(&waits, 50)?, p99: nearest_rank(&waits, 99)?, total })
    }

    /// The smoothed round-trip time of TCP as seen on the wire, in milliseconds (RFC 6298 §2). `None` if no
    /// round trip was seen. The flow of several conversations has none.
    fn round_trip_series(&self) -> Option<Series> {
        let [leg] = self.legs[..] else { return None };
        let mut tap = SeriesTap::new(self.name(), SeriesKind::Srtt, SeriesDetail::Sampled);
        let mut smoothed = leg.round_trips.first()?.time.as_millis_f64();
        for RoundTrip { ended: at, time: round_trip } in &leg.round_trips {
            smoothed += (round_trip.as_millis_f64() - smoothed) / 8.0;
            tap.push(smoothed, *at);
        }
        Some(tap.finish())
    }

    /// The round trips of TCP as seen on the wire.
    fn round_trips(&self) -> Vec<Duration> {
        self.legs.iter().flat_map(|leg| leg.round_trips.iter().map(|round_trip| round_trip.time)).collect()
    }

    /// Counts the packets that the path dropped or lost.
    fn missing(&self) -> usize {
        let packets = self.legs.iter().flat_map(|leg| &leg.rows);
        packets.filter(|packet| packet.fate == Fate::Missing).count()
    }
}

/// How long the packets of a flow waited in the queue.
struct QueueWaits {
    median: Duration,
    p99: Duration,
    /// The waits of all packets together.
    total: Duration,
}

/// Computes the figures of some times of packets. Returns `None` if there are none.
fn on_path(mut times: Vec<Duration>) -> Option<OnPathMs> {
    times.sort_unstable();
    let percentile = |percent| nearest_rank(&times, percent).map(Duration::as_millis_f64);
    Some(OnPathMs { p50: percentile(50)?, p99: percentile(99)?, max: percentile(100)? })
}

/// Returns a percentile of `sorted` by nearest rank. Returns `None` if there is no value.
fn nearest_rank(sorted: &[Duration], percent: usize) -> Option<Duration> {
    sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied()
}

/// Makes the note that says which flows waited, and in which queue.
fn describe_waits(flows: &[ProgramFlow<'_>]) -> String {
    let mut waited: Vec<_> = flows.iter().filter_map(|flow| Some((flow, flow.waits()?))).collect();
    waited.sort_by_key(|(_, waits)| core::cmp::Reverse(waits.total));
    let Some(longest) = waited.iter().map(|(_, waits)| waits.p99).max() else {
        return "no packet of a program crossed the path".to_owned();
    };
    if longest < NO_WAIT {
        return format!(
            "none of the flows waited: 99 % of the packets of each were less than {:.1} ms in a queue",
            NO_WAIT.as_millis_f64()
        );
    }
    waited.retain(|(_, waits)| waits.p99 >= NO_WAIT);
    let listed = waited.iter().take(MAX_LISTED).map(|(flow, waits)| flow.describe_waits(waits));
    format!("the flows that waited most: {}", listed.collect::<Vec<_>>().join("; "))
}

/// Makes the note that names another queue for the link where the packets of a program waited longest. There
/// is none if they waited for a short time, or if the queue is no drop-tail queue.
fn advise_queue(flows: &[ProgramFlow<'_>], links: &[LinkRecord]) -> Option<String> {
    let waits = flows.iter().filter_map(|flow| Some((flow, flow.waits()?)));
    let (longest, waits) = waits.max_by_key(|(_, waits)| waits.median)?;
    let link = links.iter().find(|link| link.name == longest.link())?;
    if waits.median < LONG_WAIT || link.discipline != QueueName::DropTail.word() {
        return None;
    }
    let (link, queue) = (&link.name, QueueName::FqCodel.word());
    Some(format!(
        "the queue of {link} is drop-tail, so a flow waits behind all others; to try one that serves flows in turn: \
         `shell --queue {queue}`, or `path.{link}.queue = \"{queue}\"` in a scenario"
    ))
}
