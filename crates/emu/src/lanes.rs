//! The packets of the user's programs, which belong to no flow of the scenario.
//!
//! ```text
//!  packet ─► conversation (protocol, both addresses and ports) ─► lane of the network
//!                 └─ leg (one direction) ─► a row for each packet
//! ```
//!
//! - *conversation*: all packets between two endpoints, in both directions. There are three exceptions.
//!   A packet without ports (ICMP) belongs to the conversation of its two addresses. A later fragment belongs
//!   to the conversation of its first fragment. If a QUIC connection changes its port, its datagrams stay in
//!   the conversation that began the connection, as long as their connection IDs show it (`quic.rs`).
//! - *leg*: the packets of one direction of a conversation.
//! - *row*: what happened to one packet of a leg. It is the packet's entry into the path, its wait in the
//!   queue, and its departure or the cause of its loss.
//! - *lane*: the number that the path's network sees instead of a flow's number. Each conversation has a
//!   lane, so a queue with one queue for each flow (FQ-CoDel) has one queue for each conversation. There are
//!   [`LANES`] lanes. If there are more conversations, several share a lane.
//! - *flow*: what a report calls a leg.
//!
//! Memory is limited. After [`MAX_ROWS`] rows, later packets have no row. After [`MAX_CONVERSATIONS`]
//! conversations, later packets belong to the last conversation. Such packets cross the path as all others
//! do, and the record says how many there were.
//!
//! Begin to read with [`Lanes::on_arrival`].

mod dns;
mod quic;
pub(super) mod record;
mod rtp;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::Sender;

use talkpath_measure::rtp::{RtpHeader, RtpSources};
use talkpath_measure::{DropCause, Fate, MessageRecord};
use talkpath_units::{Bytes, Duration, Ecn, Instant};

use self::dns::LookedUp;
use self::quic::QuicConnections;
use crate::decision::LANES;
use crate::flow_interval::FlowInterval;
use crate::packet::{Host, Parsed, Protocol, UDP_HEADER, acknowledgement, addresses, segment_range};

/// The length of the intervals in which flows are reported while they run. We chose 1 s, as iperf3 and irtt
/// did.
const INTERVAL: Duration = Duration::from_secs(1);
/// The largest number of rows. We chose 4 million, which take half a gigabyte.
const MAX_ROWS: usize = 4_000_000;
/// The largest number of conversations. We chose 4096, because a browser opens some hundred.
const MAX_CONVERSATIONS: usize = 4096;
/// The port of DNS (RFC 1035 §4.2.1).
const DNS_PORT: u16 = 53;

/// All conversations of a run.
pub(super) struct Lanes {
    /// The number that the network gives to the first of these lanes.
    first_lane: u32,
    /// The index of each conversation in `conversations`.
    by_endpoints: BTreeMap<Endpoints, u32>,
    /// The QUIC connections, whose endpoints may change.
    quic: QuicConnections,
    /// The names that were looked up. `None` if the record has neither names nor addresses.
    names: Option<LookedUp>,
    pub(super) conversations: Vec<Conversation>,
    /// The number of rows of all legs.
    row_count: usize,
    /// The number of packets that have no row, because there were [`MAX_ROWS`] rows already.
    pub(super) without_row: u64,
    /// The channel to the thread that shows the intervals during the run. `None` if no intervals are shown.
    interval_sender: Option<Sender<FlowInterval>>,
    /// The end of the interval that is being counted.
    interval_end: Instant,
}

/// The endpoints of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoints {
    pub(super) protocol: u8,
    /// The address and port on the first host's side. The port is 0 if the protocol has none.
    pub(super) near: (IpAddr, u16),
    /// The address and port on the second host's side.
    pub(super) far: (IpAddr, u16),
}

/// All packets between two endpoints.
pub(super) struct Conversation {
    pub(super) endpoints: Endpoints,
    /// The host that sent the first packet.
    pub(super) begun_by: Host,
    /// The packets that the first host sent, then the packets that the second host sent ([`Host::index`]).
    pub(super) legs: [Leg; 2],
}

/// The packets of one direction of a conversation.
#[derive(Default)]
pub(super) struct Leg {
    /// The rows of the packets. A row has the form of a message's record, so that the same metrics apply. Its
    /// `due` is the time at which the packet entered the path, `wire` is the time at which its service began,
    /// and `size` is the size of the IP packet with its headers.
    pub(super) rows: Vec<MessageRecord>,
    /// The time that each packet waited in the queue. A packet whose service never began has no entry.
    pub(super) waits: Vec<Duration>,
    /// The bytes of all packets. Packets without a row are included.
    pub(super) bytes: u64,
    /// The number of packets that their sender declared ECN-capable.
    pub(super) ecn_capable: u64,
    /// The number of packets that left the path with the ECN mark CE.
    pub(super) marked: u64,
    /// The number of packets with each DSCP.
    pub(super) dscp: BTreeMap<u8, u64>,
    /// The number of TCP segments with data.
    pub(super) data_segments: u64,
    /// The number of TCP segments that carried only data that was sent before.
    pub(super) retransmissions: u64,
    /// The TCP sequence number that follows the newest data.
    next_sequence: Option<u32>,
    /// The TCP acknowledgement number in the packet of each row. The list is empty if the leg is not of TCP.
    acknowledgements: Vec<Option<u32>>,
    /// The segment whose round trip is being measured. Only one segment is timed at a time, as in a TCP
    /// sender (RFC 6298 §3).
    timed_segment: Option<TimedSegment>,
    pub(super) round_trips: Vec<RoundTrip>,
    /// The sources of RTP among the datagrams.
    rtp: RtpSources,
    /// What happened since the last report ([`Lanes::report`]).
    since_report: IntervalCounts,
}

/// A TCP segment whose round trip is being measured.
struct TimedSegment {
    /// The sequence number that follows the data of the segment.
    end_sequence: u32,
    /// The time at which the segment entered the path.
    entered: Instant,
}

/// A round trip of TCP, as its sender would measure it at the entry of the path. It begins when a segment
/// enters the path, and ends when the acknowledgement of the segment departs from the path.
pub(super) struct RoundTrip {
    pub(super) ended: Instant,
    pub(super) time: Duration,
}

/// What happened to the packets of a leg in an interval.
#[derive(Clone, Copy, Default)]
struct IntervalCounts {
    sent: u64,
    bytes: u64,
    received: u64,
    lost: u64,
    served: u64,
    waited: Duration,
    longest_wait: Duration,
}

/// The place of a packet's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketRow {
    conversation: u32,
    /// The host that sent the packet.
    sender: Host,
    /// The index of the row in its leg. `None` if the packet has no row.
    index: Option<u32>,
}

/// A packet that enters the path.
pub(super) struct Entered {
    /// The lane of the packet.
    pub(super) lane: u32,
    pub(super) conversation: u32,
    pub(super) row: PacketRow,
}

impl Lanes {
    /// Returns lanes without conversations. The network numbers the lanes from `first_lane`, because the
    /// flows of the scenario have the numbers below.
    pub(super) fn new(first_lane: u32) -> Self {
        Self {
            first_lane,
            by_endpoints: BTreeMap::new(),
            quic: QuicConnections::default(),
            names: None,
            conversations: Vec::new(),
            row_count: 0,
            without_row: 0,
            interval_sender: None,
            interval_end: Instant::ZERO.saturating_add(INTERVAL),
        }
    }

    /// Makes these lanes send an interval to `interval_sender` after each [`INTERVAL`].
    pub(super) fn reporting(mut self, interval_sender: Option<Sender<FlowInterval>>) -> Self {
        self.interval_sender = interval_sender;
        self
    }

    /// If `keeps_names` is true, the record of these lanes will have the addresses of the conversations, and
    /// the names that the programs looked up.
    pub(super) fn keeping_names(mut self, keeps_names: bool) -> Self {
        self.names = keeps_names.then(LookedUp::default);
        self
    }

    /// Reports the interval that is being counted, if it has ended by `now`. Legs to which nothing happened
    /// are left out.
    pub(super) fn report(&mut self, now: Instant) {
        if self.interval_sender.is_none() || now < self.interval_end {
            return;
        }
        let end = self.interval_end;
        self.send_interval(end);
        let passed_intervals = now.since(end).as_nanos() / INTERVAL.as_nanos() + 1;
        self.interval_end = end.saturating_add(INTERVAL * passed_intervals);
    }

    /// Reports all that was not reported, because the run ends at `end`. The last interval is shorter than
    /// the others.
    pub(super) fn report_last_interval(&mut self, end: Instant) {
        self.report(end);
        self.send_interval(end);
    }

    /// Sends what happened in the interval that is being counted, which ends at `to`.
    fn send_interval(&mut self, to: Instant) {
        let Some(interval_sender) = &self.interval_sender else { return };
        let from = self.interval_end.saturating_sub(INTERVAL);
        for (index, conversation) in self.conversations.iter_mut().enumerate() {
            for host in Host::BOTH {
                let counts = core::mem::take(&mut conversation.legs[host.index()].since_report);
                if counts.is_empty() {
                    continue;
                }
                let flow = format!("{}-{}", conversation.name(index), link_of(host));
                // An error says that the receiver has gone, so that nobody needs the reports.
                let _ = interval_sender.send(counts.interval(flow, from, to));
            }
        }
    }

    /// Records that a packet of `host` enters the path at `now`. If the packet is a later fragment,
    /// `conversation` is the conversation of its first fragment. Returns `None` if the packet has no
    /// addresses.
    pub(super) fn on_arrival(
        &mut self,
        host: Host,
        packet: &[u8],
        parsed: &Parsed,
        conversation: Option<u32>,
        now: Instant,
    ) -> Option<Entered> {
        let conversation = match conversation {
            Some(of_first_fragment) => of_first_fragment,
            None => self.find_or_begin_conversation(host, packet, parsed)?,
        };
        self.read_datagram(host, packet, parsed, conversation);
        let leg = &mut self.conversations.get_mut(conversation as usize)?.legs[host.index()];
        leg.count_headers(packet, parsed, now);
        let size = Bytes::new(parsed.length as u64);
        leg.since_report.sent += 1;
        leg.since_report.bytes += size.get();
        let index = if self.row_count < MAX_ROWS { leg.add_row(size, now) } else { None };
        match index {
            Some(index) => {
                self.row_count += 1;
                leg.read_packet_of_row(index, packet, parsed);
            }
            None => self.without_row += 1,
        }
        let row = PacketRow { conversation, sender: host, index };
        Some(Entered { lane: self.lane_of(conversation), conversation, row })
    }

    /// Returns the lane of a conversation in the network.
    const fn lane_of(&self, conversation: u32) -> u32 {
        self.first_lane + conversation % LANES
    }

    /// Reads what a datagram says about later packets: the connection IDs of QUIC, and the names in answers
    /// of DNS.
    fn read_datagram(&mut self, host: Host, packet: &[u8], parsed: &Parsed, conversation: u32) {
        let Some(payload) = datagram_payload(packet, parsed) else { return };
        let Some((from, (from_port, _))) = addresses(packet, parsed.ip).zip(parsed.ports) else { return };
        self.quic.note((host, (from.0, from_port)), payload, conversation);
        if let Some(names) = self.names.as_mut().filter(|_| host == Host::Second && from_port == DNS_PORT) {
            names.note(payload);
        }
    }

    /// Records that the service of a packet began at `began`, which ended its wait in the queue.
    pub(super) fn on_service(&mut self, row: PacketRow, began: Instant) {
        let Some((leg, index)) = self.find_row(row) else { return };
        let packet = &mut leg.rows[index];
        packet.wire = Some(began);
        let wait = began.since(packet.due);
        leg.waits.push(wait);
        let counts = &mut leg.since_report;
        counts.served += 1;
        counts.waited = counts.waited.saturating_add(wait);
        counts.longest_wait = counts.longest_wait.max(wait);
    }

    /// Records that a packet departed from the path to its host at `now`. `is_marked` is true if the packet
    /// has the ECN mark CE.
    pub(super) fn on_departed(&mut self, row: PacketRow, is_marked: bool, now: Instant) {
        let Some((leg, index)) = self.find_row(row) else { return };
        leg.marked += u64::from(is_marked);
        leg.since_report.received += 1;
        let packet = &mut leg.rows[index];
        packet.received.get_or_insert(now);
        packet.fate = Fate::Delivered;
        packet.copies = packet.copies.saturating_add(1);
        if let Some(acknowledgement) = leg.acknowledgements.get(index).copied().flatten() {
            let conversation = &mut self.conversations[row.conversation as usize];
            conversation.legs[row.sender.other().index()].on_acknowledged(acknowledgement, now);
        }
    }

    /// Records that the path dropped or lost a packet.
    pub(super) fn on_dropped(&mut self, row: PacketRow, cause: DropCause) {
        let Some((leg, index)) = self.find_row(row) else { return };
        let packet = &mut leg.rows[index];
        packet.fate = Fate::Missing;
        packet.drop_cause = Some(cause);
        leg.since_report.lost += 1;
    }

    /// Finds the conversation of a packet. If there is none, begins one.
    fn find_or_begin_conversation(&mut self, host: Host, packet: &[u8], parsed: &Parsed) -> Option<u32> {
        let (from, to) = addresses(packet, parsed.ip)?;
        let (from_port, to_port) = parsed.ports.unwrap_or((0, 0));
        let (sender, receiver) = ((from, from_port), (to, to_port));
        let (near, far) = match host {
            Host::First => (sender, receiver),
            Host::Second => (receiver, sender),
        };
        let endpoints = Endpoints { protocol: parsed.protocol.number(), near, far };
        if let Some(known) = self.by_endpoints.get(&endpoints) {
            return Some(*known);
        }
        let same_connection = datagram_payload(packet, parsed)
            .and_then(|payload| self.quic.find((host.other(), receiver), payload));
        if let Some(known) = same_connection {
            self.by_endpoints.insert(endpoints, known);
            return Some(known);
        }
        if self.conversations.len() >= MAX_CONVERSATIONS {
            return u32::try_from(MAX_CONVERSATIONS - 1).ok();
        }
        let number = u32::try_from(self.conversations.len()).ok()?;
        self.by_endpoints.insert(endpoints, number);
        self.conversations.push(Conversation { endpoints, begun_by: host, legs: Default::default() });
        Some(number)
    }

    /// Returns the leg of a row, and the index of the row in it.
    fn find_row(&mut self, row: PacketRow) -> Option<(&mut Leg, usize)> {
        let index = usize::try_from(row.index?).ok()?;
        let leg = &mut self.conversations.get_mut(row.conversation as usize)?.legs[row.sender.index()];
        (index < leg.rows.len()).then_some((leg, index))
    }
}

impl Conversation {
    /// The number of bytes of both directions.
    pub(super) fn bytes(&self) -> u64 {
        self.legs.iter().map(|leg| leg.bytes).sum()
    }

    /// The word for the protocol of the packets.
    pub(super) fn transport(&self) -> String {
        protocol_name(self.endpoints.protocol)
    }

    /// The name of the conversation, which is the one with this index.
    pub(super) fn name(&self, index: usize) -> String {
        let transport = self.transport();
        match self.service_port() {
            0 => format!("{transport}-{}", index + 1),
            port => format!("{transport}-{port}-{}", index + 1),
        }
    }

    /// The port of the endpoint that did not begin the conversation, which names the service.
    const fn service_port(&self) -> u16 {
        match self.begun_by {
            Host::First => self.endpoints.far.1,
            Host::Second => self.endpoints.near.1,
        }
    }
}

/// The payload of a datagram that is whole. `None` for other packets.
fn datagram_payload<'a>(packet: &'a [u8], parsed: &Parsed) -> Option<&'a [u8]> {
    let is_datagram = parsed.protocol == Protocol::Udp && parsed.part.is_whole();
    packet.get(parsed.header + UDP_HEADER..parsed.length).filter(|_| is_datagram)
}

/// The link that packets of this host enter first.
const fn link_of(host: Host) -> &'static str {
    match host {
        Host::First => "up",
        Host::Second => "down",
    }
}

/// The word for a protocol by IANA's number.
fn protocol_name(number: u8) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmpv6".to_owned(),
        132 => "sctp".to_owned(),
        other => format!("ip-{other}"),
    }
}

impl Leg {
    /// Counts what the headers of a packet say.
    fn count_headers(&mut self, packet: &[u8], parsed: &Parsed, now: Instant) {
        self.bytes += parsed.length as u64;
        self.ecn_capable += u64::from(parsed.ecn != Ecn::NotEct);
        *self.dscp.entry(parsed.dscp(packet)).or_default() += 1;
        if parsed.protocol != Protocol::Tcp || !parsed.part.is_whole() {
            return;
        }
        let Some(segment) = segment_range(packet, parsed).filter(|segment| segment.payload > 0) else {
            return;
        };
        self.data_segments += 1;
        let end = segment.sequence.wrapping_add(segment.payload);
        let is_new = self.next_sequence.is_none_or(|next| sequence_distance(next, end) > 0);
        if is_new {
            self.next_sequence = Some(end);
            self.timed_segment.get_or_insert(TimedSegment { end_sequence: end, entered: now });
        } else {
            self.retransmissions += 1;
            // Nobody can know which of the two copies is acknowledged (RFC 6298 §3, Karn's algorithm).
            self.timed_segment = None;
        }
    }

    /// Records that the sender of this leg got an acknowledgement of all data before `acknowledgement` at
    /// `now`.
    fn on_acknowledged(&mut self, acknowledgement: u32, now: Instant) {
        let is_acknowledged =
            |timed: &mut TimedSegment| sequence_distance(timed.end_sequence, acknowledgement) >= 0;
        if let Some(timed) = self.timed_segment.take_if(is_acknowledged) {
            self.round_trips.push(RoundTrip { ended: now, time: now.since(timed.entered) });
        }
    }

    /// Reads the acknowledgement number or the RTP header of the packet that has the row with this index.
    fn read_packet_of_row(&mut self, index: u32, packet: &[u8], parsed: &Parsed) {
        if parsed.protocol == Protocol::Tcp {
            self.acknowledgements.push(acknowledgement(packet, parsed));
        } else if let Some(header) = datagram_payload(packet, parsed).and_then(RtpHeader::read) {
            self.rtp.note(header, index);
        }
    }

    /// Adds the row of a packet that entered the path at `now`. Returns the index of the row.
    fn add_row(&mut self, size: Bytes, now: Instant) -> Option<u32> {
        let index = u32::try_from(self.rows.len()).ok()?;
        self.rows.push(MessageRecord {
            seq: u64::from(index),
            size,
            due: now,
            sent: Some(now),
            wire: None,
            received: None,
            fate: Fate::Unfinished,
            drop_cause: None,
            copies: 0,
            transmissions: 1,
        });
        Some(index)
    }
}

/// Returns how far the TCP sequence number `to` is after `from` (RFC 9293 §3.4: modulo 2^32). The distance is
/// negative if `to` is before `from`.
const fn sequence_distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

impl IntervalCounts {
    const fn is_empty(&self) -> bool {
        self.sent + self.received + self.lost + self.served == 0
    }

    fn interval(self, flow: String, from: Instant, to: Instant) -> FlowInterval {
        let Self { sent, bytes, received, lost, served, waited, longest_wait } = self;
        let mean_wait = (served > 0).then(|| waited / served);
        let longest_wait = (served > 0).then_some(longest_wait);
        FlowInterval { flow, from, to, sent, bytes, received, lost, mean_wait, longest_wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::parse;

    /// A datagram over IPv4 between the client 192.0.2.1 and the server 192.0.2.2.
    fn datagram(from: Host, client_port: u16, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(28 + payload.len()).unwrap();
        let (mut addresses, mut ports) = ([[192, 0, 2, 1], [192, 0, 2, 2]], [client_port, 443]);
        if from == Host::Second {
            addresses.reverse();
            ports.reverse();
        }
        let mut bytes = vec![0x45, 0];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        bytes.extend(addresses.concat());
        bytes.extend(ports.map(u16::to_be_bytes).concat());
        bytes.extend((length - 20).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_connection_of_quic_whose_client_gets_another_port_stays_one_conversation() {
        let mut lanes = Lanes::new(0);
        let mut arrive = |from, port, payload: &[u8]| {
            let packet = datagram(from, port, payload);
            let parsed = parse(&packet).unwrap();
            lanes.on_arrival(from, &packet, &parsed, None, Instant::ZERO).unwrap().conversation
        };
        let long = |source: u8| [&[0xc3, 0, 0, 0, 1, 4, 9, 9, 9, 9, 8][..], &[source; 8], &[0; 30]].concat();
        let short = |destination: u8| [&[0x41][..], &[destination; 8], &[0; 30]].concat();
        assert_eq!(arrive(Host::First, 5000, &long(1)), 0);
        assert_eq!(arrive(Host::Second, 5000, &long(2)), 0);
        assert_eq!(arrive(Host::First, 5000, &short(2)), 0);
        assert_eq!(arrive(Host::First, 5001, &short(2)), 0, "another port, the same ID");
        assert_eq!(arrive(Host::Second, 5001, &short(1)), 0, "and back");
        assert_eq!(arrive(Host::First, 5002, &short(3)), 1, "an ID that nobody has shown");
        let legs = &lanes.conversations[0].legs;
        assert_eq!(legs.each_ref().map(|leg| leg.rows.len()), [3, 2]);
    }
}
