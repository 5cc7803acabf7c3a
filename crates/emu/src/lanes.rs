//! The packets of the user's programs. They belong to no flow of the scenario.
//!
//! ```text
//!  packet ─► conversation (protocol, both addresses and ports) ─► lane of the network
//!                 └─ leg (one direction) ─► a row for each packet
//! ```
//!
//! - *conversation*: all packets between two endpoints, in both directions. A packet without ports (ICMP)
//!   belongs to the conversation of its two addresses. A later fragment belongs to the conversation of its
//!   first fragment. Datagrams of a connection of QUIC from another port belong to the conversation that began
//!   the connection, while its connection IDs show it (`quic.rs`).
//! - *lane*: the flow that the network takes a conversation for. A queue that has one queue for each flow so
//!   has one queue for each conversation ([`LANES`]).
//! - *row*: the arrival of a packet, its wait in the queue, and its departure or the cause of its loss.
//!
//! Memory is limited. If there are [`MAX_ROWS`] rows, later packets have no row. If there are
//! [`MAX_CONVERSATIONS`] conversations, later packets share the last one. Such packets cross the path as all
//! others do, and the record says how many there were.

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
    /// The number of the first lane in the network.
    first: u32,
    by_endpoints: BTreeMap<Endpoints, u32>,
    /// The connections of QUIC, which may go on from other endpoints.
    quic: QuicConnections,
    /// The names that were looked up. `None` if the record has neither names nor addresses.
    names: Option<LookedUp>,
    pub(super) conversations: Vec<Conversation>,
    rows: usize,
    /// The number of packets without a row.
    pub(super) without_row: u64,
    /// The reader of the intervals, while the packets come.
    reader: Option<Sender<FlowInterval>>,
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
    /// The packets that the first host sent, and the packets that the second host sent.
    pub(super) legs: [Leg; 2],
}

/// The packets of one direction of a conversation.
#[derive(Default)]
pub(super) struct Leg {
    /// One row a packet. The size is that of the whole IP packet.
    pub(super) packets: Vec<MessageRecord>,
    /// How long the packets waited in the queue, for the packets whose service has begun.
    pub(super) waits: Vec<Duration>,
    /// The bytes of all packets, with the packets that have no row.
    pub(super) bytes: u64,
    /// The number of packets that their sender declared ECN-capable.
    pub(super) capable: u64,
    /// The number of packets that left the path with the ECN mark CE.
    pub(super) marked: u64,
    /// The number of packets with each DSCP.
    pub(super) dscp: BTreeMap<u8, u64>,
    /// The number of TCP segments with data.
    pub(super) data_segments: u64,
    /// The number of TCP segments that carried only data that was sent before.
    pub(super) retransmissions: u64,
    /// The TCP sequence number behind the data that was sent last.
    next: Option<u32>,
    /// The acknowledgement number of each row, of TCP only.
    acknowledgements: Vec<Option<u32>>,
    /// The segment that is timed: the sequence number behind its data, and when it entered the path. One
    /// segment is timed at a time, as in a sender (RFC 6298 §3).
    timed: Option<(u32, Instant)>,
    /// TCP's round trips at the sender's end of the path: the time from the entry of a segment to the
    /// departure of its acknowledgement. Each round trip has the time of the departure.
    pub(super) round_trips: Vec<(Instant, Duration)>,
    /// The sources of RTP among the datagrams.
    rtp: RtpSources,
    /// What happened since the last report ([`Lanes::report`]).
    since_report: IntervalCounts,
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

/// The row of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketRow {
    conversation: u32,
    leg: Host,
    /// The number of the row in its leg. `None` if the packet has no row.
    number: Option<u32>,
}

/// A packet that enters the path.
pub(super) struct Entered {
    /// The lane of the packet.
    pub(super) lane: u32,
    pub(super) conversation: u32,
    pub(super) row: PacketRow,
}

impl Lanes {
    /// Makes the lanes of a network whose first lane has the number `first`.
    pub(super) fn new(first: u32) -> Self {
        Self {
            first,
            by_endpoints: BTreeMap::new(),
            quic: QuicConnections::default(),
            names: None,
            conversations: Vec::new(),
            rows: 0,
            without_row: 0,
            reader: None,
            interval_end: Instant::ZERO.saturating_add(INTERVAL),
        }
    }

    /// Makes these lanes report to `reader` while packets come.
    pub(super) fn reporting(mut self, reader: Option<Sender<FlowInterval>>) -> Self {
        self.reader = reader;
        self
    }

    /// Makes the record of these lanes have the addresses of conversations, and the names that were looked up,
    /// if `keeps_names` is true.
    pub(super) fn keeping_names(mut self, keeps_names: bool) -> Self {
        self.names = keeps_names.then(LookedUp::default);
        self
    }

    /// Reports the last interval if it has ended at `now`. The report has each leg to which something
    /// happened in the interval.
    pub(super) fn report(&mut self, now: Instant) {
        if self.reader.is_none() || now < self.interval_end {
            return;
        }
        let end = self.interval_end;
        self.send_interval(end);
        let passed = now.since(end).as_nanos() / INTERVAL.as_nanos() + 1;
        self.interval_end = end.saturating_add(INTERVAL * passed);
    }

    /// Reports the last interval, which ends early because the run ends.
    pub(super) fn report_rest(&mut self, end: Instant) {
        self.report(end);
        self.send_interval(end);
    }

    fn send_interval(&mut self, to: Instant) {
        let Some(reader) = &self.reader else { return };
        let from = self.interval_end.saturating_sub(INTERVAL);
        for (index, conversation) in self.conversations.iter_mut().enumerate() {
            for host in Host::BOTH {
                let counts = core::mem::take(&mut conversation.legs[host.index()].since_report);
                if counts.is_empty() {
                    continue;
                }
                let flow = format!("{}-{}", conversation.name(index), link_of(host));
                // The error is ignored, because a reader that has gone needs no more reports.
                let _ = reader.send(counts.interval(flow, from, to));
            }
        }
    }

    /// Records that a packet of `host` enters the path at `now`. If the packet is a later fragment,
    /// `conversation` is that of its first fragment.
    pub(super) fn on_arrival(
        &mut self,
        host: Host,
        packet: &[u8],
        parsed: &Parsed,
        conversation: Option<u32>,
        now: Instant,
    ) -> Option<Entered> {
        let conversation = match conversation {
            Some(known) => known,
            None => self.find(host, packet, parsed)?,
        };
        self.note_datagram(host, packet, parsed, conversation);
        let leg = &mut self.conversations.get_mut(conversation as usize)?.legs[host.index()];
        leg.note(packet, parsed, now);
        leg.since_report.sent += 1;
        leg.since_report.bytes += parsed.length as u64;
        let size = Bytes::new(parsed.length as u64);
        let number = (self.rows < MAX_ROWS).then(|| leg.add(size, now)).flatten();
        match (number, parsed.protocol) {
            (Some(_), Protocol::Tcp) => leg.acknowledgements.push(acknowledgement(packet, parsed)),
            (Some(row), Protocol::Udp) => {
                if let Some(header) = datagram_payload(packet, parsed).and_then(RtpHeader::read) {
                    leg.rtp.note(header, row);
                }
            }
            _ => {}
        }
        match number {
            Some(_) => self.rows += 1,
            None => self.without_row += 1,
        }
        let row = PacketRow { conversation, leg: host, number };
        Some(Entered { lane: self.first + conversation % LANES, conversation, row })
    }

    /// Takes note of what a datagram says about other packets: the connection IDs of QUIC, and the names of
    /// addresses.
    fn note_datagram(&mut self, host: Host, packet: &[u8], parsed: &Parsed, conversation: u32) {
        let Some(payload) = datagram_payload(packet, parsed) else { return };
        let Some((from, (from_port, _))) = addresses(packet, parsed.ip).zip(parsed.ports) else { return };
        self.quic.note((host, (from.0, from_port)), payload, conversation);
        if let Some(names) = self.names.as_mut().filter(|_| host == Host::Second && from_port == DNS_PORT) {
            names.note(payload);
        }
    }

    /// Takes note that the service of a packet began at `began`.
    pub(super) fn on_service(&mut self, row: PacketRow, began: Instant) {
        if let Some((leg, number)) = self.row(row) {
            let entered = leg.packets[number].due;
            leg.packets[number].wire = Some(began);
            let wait = began.since(entered);
            leg.waits.push(wait);
            let counts = &mut leg.since_report;
            counts.served += 1;
            counts.waited = counts.waited.saturating_add(wait);
            counts.longest_wait = counts.longest_wait.max(wait);
        }
    }

    /// Takes note that a packet was handed to its host at `now`. `is_marked` is true if it has the ECN mark
    /// CE.
    pub(super) fn on_departed(&mut self, row: PacketRow, is_marked: bool, now: Instant) {
        if let Some((leg, number)) = self.row(row) {
            leg.marked += u64::from(is_marked);
            leg.since_report.received += 1;
            let packet = &mut leg.packets[number];
            (packet.received, packet.fate, packet.copies) = (Some(now), Fate::Delivered, 1);
            if let Some(acknowledged) = leg.acknowledgements.get(number).copied().flatten() {
                let conversation = &mut self.conversations[row.conversation as usize];
                conversation.legs[row.leg.other().index()].on_acknowledged(acknowledged, now);
            }
        }
    }

    /// Takes note that the path dropped or lost a packet.
    pub(super) fn on_dropped(&mut self, row: PacketRow, cause: DropCause) {
        if let Some((leg, number)) = self.row(row) {
            let packet = &mut leg.packets[number];
            (packet.fate, packet.drop_cause) = (Fate::Missing, Some(cause));
            leg.since_report.lost += 1;
        }
    }

    /// Finds the conversation of a packet, or begins it.
    fn find(&mut self, host: Host, packet: &[u8], parsed: &Parsed) -> Option<u32> {
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
        let known = datagram_payload(packet, parsed)
            .and_then(|payload| self.quic.find((host.other(), receiver), payload));
        if let Some(known) = known {
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

    fn row(&mut self, row: PacketRow) -> Option<(&mut Leg, usize)> {
        let number = usize::try_from(row.number?).ok()?;
        let leg = &mut self.conversations.get_mut(row.conversation as usize)?.legs[row.leg.index()];
        (number < leg.packets.len()).then_some((leg, number))
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
    fn note(&mut self, packet: &[u8], parsed: &Parsed, now: Instant) {
        self.bytes += parsed.length as u64;
        self.capable += u64::from(parsed.ecn != Ecn::NotEct);
        *self.dscp.entry(parsed.dscp(packet)).or_default() += 1;
        if parsed.protocol != Protocol::Tcp || !parsed.part.is_whole() {
            return;
        }
        let Some(segment) = segment_range(packet, parsed).filter(|segment| segment.payload > 0) else {
            return;
        };
        self.data_segments += 1;
        let end = segment.sequence.wrapping_add(segment.payload);
        // RFC 9293 §3.4: sequence numbers are compared modulo 2^32.
        let is_new = self.next.is_none_or(|next| end.wrapping_sub(next).cast_signed() > 0);
        if is_new {
            self.next = Some(end);
            self.timed.get_or_insert((end, now));
        } else {
            self.retransmissions += 1;
            // Which of the two segments is acknowledged cannot be known (RFC 6298 §3, Karn's algorithm).
            self.timed = None;
        }
    }

    /// Takes note that the sender of this leg got an acknowledgement of all data before `number` at `now`.
    fn on_acknowledged(&mut self, number: u32, now: Instant) {
        if let Some((_, sent)) = self.timed.take_if(|(end, _)| number.wrapping_sub(*end).cast_signed() >= 0) {
            self.round_trips.push((now, now.since(sent)));
        }
    }

    /// Adds the row of a packet that entered the path at `now`. Returns its number.
    fn add(&mut self, size: Bytes, now: Instant) -> Option<u32> {
        let number = u32::try_from(self.packets.len()).ok()?;
        self.packets.push(MessageRecord {
            seq: u64::from(number),
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
        Some(number)
    }
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
        assert_eq!(legs.each_ref().map(|leg| leg.packets.len()), [3, 2]);
    }
}
