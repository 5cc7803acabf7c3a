//! Makes records of conversations: two flows each, one a direction, with a message a packet.
//!
//! A packet is due, and sent, when it enters the path. It is received when the emulator has handed it to the
//! far host. So the one-way delay of such a flow is that of the path, with the emulator's lateness. Sizes are
//! those of IP packets.
//!
//! A stream of RTP among the packets of a conversation is a further flow (`rtp.rs`).
//!
//! The record has at most [`MOST_NAMED`] conversations by name, those with the most bytes. The others are one
//! flow each way together.

use std::collections::BTreeMap;

use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summary::{IpSeen, IpSummary};
use talkpath_measure::{
    EcnRecord, Fate, FlowCounters, FlowInfo, FlowRecord, LegRecord, MessageRecord, Series, SeriesKind,
    SeriesTap, warning,
};
use talkpath_model::Dscp;
use talkpath_units::{Duration, Instant, counted};

use super::{Conversation, Lanes, Leg, MAX_CONVERSATIONS, link_of};
use crate::packet::Host;

/// The records of all conversations of a run.
pub(crate) struct ProgramRecord {
    pub(crate) flows: Vec<FlowRecord>,
    /// TCP's smoothed round-trip times.
    pub(crate) series: Vec<Series>,
    pub(crate) warnings: Vec<String>,
}

/// The legs of one flow of the record. The flow of several conversations has the legs of all of them.
struct Named<'a> {
    /// The name of the conversation.
    group: String,
    transport: String,
    leg: Host,
    legs: Vec<&'a Leg>,
}

impl ProgramRecord {
    /// Makes the records of `lanes`.
    pub(crate) fn of(lanes: &Lanes) -> Self {
        let named = named(&lanes.conversations);
        let mut warnings = vec![warning::note(waiting(&named))];
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
        let streams = rtp_streams(&named);
        Self {
            flows: named.iter().map(Named::record).chain(streams).collect(),
            series: named.iter().filter_map(Named::round_trip_series).collect(),
            warnings,
        }
    }
}

/// Names the conversations, and puts those beyond [`MOST_NAMED`] together.
fn named(conversations: &[Conversation]) -> Vec<Named<'_>> {
    let mut by_size: Vec<(usize, &Conversation)> = conversations.iter().enumerate().collect();
    by_size.sort_by_key(|(number, conversation)| (core::cmp::Reverse(conversation.bytes()), *number));
    let (large, others) = by_size.split_at(by_size.len().min(MOST_NAMED));
    let mut large = large.to_vec();
    large.sort_by_key(|(number, _)| *number);
    let mut all = Vec::new();
    for (number, conversation) in large {
        let transport = conversation.transport();
        let group = conversation.name(number);
        for leg in [Host::First, Host::Second] {
            let legs = vec![&conversation.legs[leg.index()]];
            all.push(Named { group: group.clone(), transport: transport.clone(), leg, legs });
        }
    }
    if !others.is_empty() {
        for leg in [Host::First, Host::Second] {
            let legs = others.iter().map(|(_, conversation)| &conversation.legs[leg.index()]).collect();
            all.push(Named { group: "others".to_owned(), transport: "several".to_owned(), leg, legs });
        }
    }
    all.retain(|flow| flow.legs.iter().any(|leg| !leg.packets.is_empty()));
    all
}

/// Makes the records of the streams of RTP in the flows that are one conversation.
fn rtp_streams(flows: &[Named<'_>]) -> Vec<FlowRecord> {
    let mut streams = Vec::new();
    for flow in flows {
        let [leg] = flow.legs[..] else { continue };
        for (payload_type, source) in leg.rtp.streams() {
            let group = format!("rtp-{payload_type}-{}", streams.len() + 1);
            let name = format!("{group}-{}", flow.link());
            streams.push(source.record(payload_type, &name, group, &leg.packets));
        }
    }
    streams
}

impl Named<'_> {
    /// The name of the flow. The links of the path are `up` and `down`.
    fn name(&self) -> String {
        format!("{}-{}", self.group, self.link())
    }

    const fn link(&self) -> &'static str {
        link_of(self.leg)
    }

    fn record(&self) -> FlowRecord {
        let mut packets: Vec<MessageRecord> =
            self.legs.iter().flat_map(|leg| leg.packets.iter().copied()).collect();
        packets.sort_by_key(|packet| packet.due);
        for (number, packet) in (0..).zip(&mut packets) {
            packet.seq = number;
        }
        let mut arrivals: Vec<(Instant, u64)> =
            packets.iter().filter_map(|packet| Some((packet.received?, packet.seq))).collect();
        arrivals.sort();
        let start = packets.first().map_or(Instant::ZERO, |packet| packet.due);
        let sum = |of: fn(&Leg) -> u64| self.legs.iter().map(|leg| of(leg)).sum::<u64>();
        let is_tcp = self.transport == "tcp";
        let capable = sum(|leg| leg.capable) > 0;
        let info = FlowInfo {
            name: self.name(),
            group: self.group.clone(),
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
        IpSummary { forward: IpSeen { dscp: Some(dscp), ..IpSeen::default() }, ..IpSummary::default() }
    }

    /// The median and the 99th percentile of the waits in the queue, nearest rank, and their sum. `None` if
    /// no service began.
    fn waits(&self) -> Option<(Duration, Duration, Duration)> {
        let mut waits: Vec<Duration> = self.legs.iter().flat_map(|leg| leg.waits.iter().copied()).collect();
        waits.sort_unstable();
        let at = |percent: usize| waits.get((waits.len() * percent).div_ceil(100).max(1) - 1).copied();
        let sum = waits.iter().fold(Duration::ZERO, |sum, wait| sum.saturating_add(*wait));
        Some((at(50)?, at(99)?, sum))
    }

    /// TCP's smoothed round-trip time as seen on the wire, in milliseconds (RFC 6298 §2). `None` if no round
    /// trip was seen. The flow of several conversations has none.
    fn round_trip_series(&self) -> Option<Series> {
        let [leg] = self.legs[..] else { return None };
        let mut tap = SeriesTap::new(self.name(), SeriesKind::Srtt, SeriesDetail::Sampled);
        let mut smoothed = leg.round_trips.first()?.1.as_millis_f64();
        for (at, round_trip) in &leg.round_trips {
            smoothed += (round_trip.as_millis_f64() - smoothed) / 8.0;
            tap.push(smoothed, *at);
        }
        Some(tap.finish())
    }

    /// The median of TCP's round trips, nearest rank. `None` if none was seen.
    fn round_trip(&self) -> Option<Duration> {
        let mut all: Vec<Duration> =
            self.legs.iter().flat_map(|leg| leg.round_trips.iter().map(|(_, time)| *time)).collect();
        all.sort_unstable();
        all.get(all.len().div_ceil(2).max(1) - 1).copied()
    }

    /// How many packets the path dropped or lost, and how many were still inside at the end.
    fn gone(&self) -> (u64, u64) {
        let packets = || self.legs.iter().flat_map(|leg| &leg.packets);
        let with = |fate: Fate| packets().filter(|packet| packet.fate == fate).count() as u64;
        (with(Fate::Missing), with(Fate::Unfinished))
    }
}

/// The answer to the question which flows waited, and where.
fn waiting(flows: &[Named<'_>]) -> String {
    let mut waited: Vec<_> = flows.iter().filter_map(|flow| Some((flow, flow.waits()?))).collect();
    // The flow with the most waiting comes first.
    waited.sort_by_key(|(_, (_, _, sum))| core::cmp::Reverse(*sum));
    let Some((_, (_, longest, _))) = waited.iter().max_by_key(|(_, (_, p99, _))| *p99) else {
        return "no packet of a program crossed the path".to_owned();
    };
    if *longest < NO_WAIT {
        return format!(
            "none of the flows waited: 99 % of the packets of each were less than {:.1} ms in a queue",
            NO_WAIT.as_millis_f64()
        );
    }
    let line = |(flow, (p50, p99, _)): &(&Named<'_>, (Duration, Duration, Duration))| {
        let (gone, _) = flow.gone();
        let gone = match gone {
            0 => String::new(),
            gone => format!(", and {} did not arrive", counted(gone, "packet")),
        };
        let round_trip = flow.round_trip().map_or_else(String::new, |time| {
            format!(", and its round trips took {:.1} ms in the median", time.as_millis_f64())
        });
        format!(
            "{} in the queue of {}, {:.1} ms in the median and {:.1} ms at the 99th percentile{gone}{round_trip}",
            flow.group,
            flow.link(),
            p50.as_millis_f64(),
            p99.as_millis_f64()
        )
    };
    let lines: Vec<String> =
        waited.iter().filter(|(_, (_, p99, _))| *p99 >= NO_WAIT).take(MOST_LINES).map(line).collect();
    format!("the flows that waited most: {}", lines.join("; "))
}

/// The largest number of conversations with a name in the record (chosen: a table that a person still reads).
const MOST_NAMED: usize = 32;
/// The largest number of flows in the answer (chosen).
const MOST_LINES: usize = 3;
/// A shorter wait is no wait (chosen: the emulator's own precision).
const NO_WAIT: Duration = Duration::from_millis(1);
