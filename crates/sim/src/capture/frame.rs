//! Encodes the simulator's packets as the bytes of IPv4 packets, for a capture.
//!
//! The simulator's packets are values without bytes. For example, a segment of the simulator has a sequence
//! number and a payload size. This file adds what the bytes need besides:
//!
//! - **Addresses** show the flow and the end. Flows are numbered from 1. The near end of flow `k` has the
//!   address 10.0.a.b and its far end has 10.128.a.b, where a and b are the two bytes of `k`. The two
//!   directions of a call over UDP have the same two addresses.
//! - **Checksums** are computed, so that a decoder reports no error.
//! - **Voice** over a datagram transport is encoded as RTP with the payload type of its codec (RFC 3551 §6).
//!   If the scenario sets `rtp = false`, the simulated voice frames have no RTP header. Then the header
//!   replaces the first bytes of the frame, so that the packet keeps its simulated size.
//! - **Data** of a stream is zeros, because the simulator has no contents.

use talkpath_model::Dscp;
use talkpath_units::Ecn;
use talkpath_wire::carrier::{Carrier, Ports};
use talkpath_wire::encapsulated::{EncapsulatedPacket, native_form};
use talkpath_wire::{Datagram, Flags, Packet, Segment};

use super::rtp::RtpFrame;
use super::spoken::SpokenPackets;

/// The protocol numbers of RFC 9293 §3.1 and RFC 768.
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// The port of RTP (RFC 3551 §8).
const RTP_PORT: u16 = 5004;
/// The port of HTTP/3, by which decoders recognise QUIC (RFC 9114 §3.1).
const QUIC_PORT: u16 = 443;
/// The port of a server whose protocol has no port of its own. It is talkpath's default.
const DATA_PORT: u16 = 7160;
/// The first dynamic port (RFC 6335 §6), from which the clients' ports are counted.
const FIRST_CLIENT_PORT: u16 = 49_152;
/// The number of dynamic ports.
const CLIENT_PORTS: u16 = 16_384;
/// The TTL that RFC 1700 recommends.
const TTL: u8 = 64;
/// The size of an IPv4 header without options (RFC 791 §3.1).
const IPV4_HEADER: usize = 20;
/// The size of a UDP header (RFC 768).
const UDP_HEADER: usize = 8;
/// The size of a TCP header without options (RFC 9293 §3.1).
const TCP_HEADER: usize = 20;
/// The version and the header length of an IPv4 header without options: version 4, five words of 4 B.
const IPV4_VERSION_AND_LENGTH: u8 = 0x45;
/// The flag Don't Fragment in the upper byte of its field (RFC 791 §3.1).
const DONT_FRAGMENT: u8 = 0x40;
/// The size of an RTP header without extensions (RFC 3550 §5.1).
const RTP_HEADER: u32 = 12;
/// RTP's version 2 in the first byte of the header (RFC 3550 §5.1).
const RTP_VERSION: u8 = 0x80;
/// The bit X in the first byte of an RTP header, which says that extensions follow (RFC 3550 §5.1).
const RTP_HAS_EXTENSIONS: u8 = 0x10;
/// The bit M in the second byte of an RTP header, which marks the first packet of a talkspurt (RFC 3551
/// §4.1).
const RTP_MARKER: u8 = 0x80;
/// The word before RTP extensions whose own headers have one byte (RFC 8285 §4.2).
const RTP_ONE_BYTE_EXTENSIONS: [u8; 2] = [0xbe, 0xde];
/// The payload type of G.711 with the mu-law (RFC 3551 §6).
const PCMU: u8 = 0;
/// The mu-law's positive zero (ITU-T G.711).
const PCMU_SILENCE: u8 = 0xff;
/// The bits of a TCP header's flags (RFC 9293 §3.1, RFC 3168 §6.1). The bit 32 is URG, which no segment of
/// the simulator has.
const TCP_FLAGS: [(Flags, u8); 7] = [
    (Flags::FIN, 1),
    (Flags::SYN, 2),
    (Flags::RST, 4),
    (Flags::PSH, 8),
    (Flags::ACK, 16),
    (Flags::ECE, 64),
    (Flags::CWR, 128),
];
/// The kinds of TCP options (RFC 9293 §3.2, RFC 7323 §2 and §3, RFC 2018 §2 and §3).
const OPTION_NOP: u8 = 1;
const OPTION_MSS: u8 = 2;
const OPTION_WINDOW_SCALE: u8 = 3;
const OPTION_SACK_PERMITTED: u8 = 4;
const OPTION_SACK: u8 = 5;
const OPTION_TIMESTAMPS: u8 = 8;

/// What the bytes of a packet need besides the packet itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope<'a> {
    /// The number of the flow, or of the other direction of a call. The first flow is 1.
    pub(super) flow: u16,
    /// True if the packet travels from the first host to the second.
    pub(super) is_outward: bool,
    /// The identification of the IP packet (RFC 791 §3.1).
    pub(super) identification: u16,
    pub(super) ecn: Ecn,
    pub(super) dscp: Dscp,
    /// The RTP fields of the flow's messages. `None` if the messages are not encoded as RTP.
    pub(super) rtp: Option<RtpFrame>,
    /// The packets of the call. `None` if each message is a packet of RTP one packet time after another.
    pub(super) spoken: Option<&'a SpokenPackets>,
    /// True if DCCP is captured inside UDP (RFC 6773). Otherwise DCCP is a protocol of IP.
    pub(super) is_encapsulated: bool,
}

/// Encodes `packet` with its IPv4 header.
pub(super) fn encode_frame(packet: &Packet, envelope: &Envelope<'_>) -> Vec<u8> {
    match packet {
        Packet::Udp(datagram) => encode_datagram(datagram, envelope),
        Packet::Quic(packet) => {
            let udp = encode_udp(&flow_ports(envelope, QUIC_PORT), &packet.bytes, envelope);
            encode_ipv4(PROTOCOL_UDP, Fragmentation::Allowed, &udp, envelope)
        }
        Packet::Tcp(segment) => {
            let tcp = encode_tcp(segment, envelope);
            encode_ipv4(PROTOCOL_TCP, Fragmentation::Forbidden, &tcp, envelope)
        }
        Packet::Encapsulated(packet) => encode_encapsulated(packet, envelope),
    }
}

fn encode_datagram(datagram: &Datagram, envelope: &Envelope<'_>) -> Vec<u8> {
    let ports = match envelope.rtp {
        Some(_) => Ports { source: RTP_PORT, destination: RTP_PORT },
        None => flow_ports(envelope, DATA_PORT),
    };
    let udp = encode_udp(&ports, &encode_message(datagram.seq, datagram.payload, envelope), envelope);
    encode_ipv4(PROTOCOL_UDP, Fragmentation::Allowed, &udp, envelope)
}

/// Encodes a packet that can travel inside UDP. The packet is a protocol of IP instead if the protocol has
/// such a form, and if the capture does not ask for UDP.
fn encode_encapsulated(packet: &EncapsulatedPacket, envelope: &Envelope<'_>) -> Vec<u8> {
    let native = native_form(packet.kind());
    if let Some(form) = native.filter(|_| !envelope.is_encapsulated) {
        let Addresses { source, destination } = addresses(envelope);
        let body = encode_by_codec(packet, Carrier::Ipv4 { source, destination }, envelope);
        return encode_ipv4(form.protocol, Fragmentation::Forbidden, &body, envelope);
    }
    let port = native.map_or(DATA_PORT, |form| form.udp_port);
    let ports = Ports { source: port, destination: port };
    let udp = encode_udp(&ports, &encode_by_codec(packet, Carrier::Udp, envelope), envelope);
    encode_ipv4(PROTOCOL_UDP, Fragmentation::Forbidden, &udp, envelope)
}

/// Encodes a packet with the codec of its protocol.
fn encode_by_codec(packet: &EncapsulatedPacket, carrier: Carrier, envelope: &Envelope<'_>) -> Vec<u8> {
    let data = match packet.payload() {
        0 => Vec::new(),
        size => encode_message(packet.message(), size, envelope),
    };
    let mut bytes = Vec::with_capacity(packet.header_size() + data.len());
    packet.encode(flow_ports(envelope, DATA_PORT), &data, carrier, &mut bytes);
    bytes
}

/// Encodes a message of a datagram transport. The message has `size` bytes with its RTP header.
fn encode_message(seq: u64, size: u32, envelope: &Envelope<'_>) -> Vec<u8> {
    let mut message = Vec::with_capacity(size as usize);
    let is_pcmu = envelope.rtp.is_some_and(|rtp| rtp.payload_type == PCMU);
    let filling = if is_pcmu { PCMU_SILENCE } else { 0 };
    if let Some(rtp) = envelope.rtp
        && size >= RTP_HEADER + rtp.extensions
    {
        encode_rtp_header(&mut message, seq, rtp, envelope);
        match envelope.spoken.and_then(|spoken| Some((spoken, spoken.of_message(seq)?))) {
            Some((spoken, packet)) => spoken.encode(packet, rtp, filling, &mut message),
            None => message.extend(rtp.head.into_iter().flatten()),
        }
    }
    message.resize(size as usize, filling);
    message
}

/// Appends the RTP header (RFC 3550 §5.1) of the message with the number `seq` to `message`.
fn encode_rtp_header(message: &mut Vec<u8>, seq: u64, rtp: RtpFrame, envelope: &Envelope<'_>) {
    let has_extensions = rtp.extensions > 0;
    let spoken = envelope.spoken.and_then(|spoken| Some((spoken, spoken.of_message(seq)?)));
    let (number, slot, is_first_of_talkspurt, payload_type) = match spoken {
        Some((spoken, packet)) => {
            (packet.number, packet.slot, packet.is_first, spoken.payload_type(packet, rtp))
        }
        None => (seq, seq, seq == 0, rtp.payload_type),
    };
    let timestamp = (slot as u32).wrapping_mul(rtp.samples_per_packet);
    // The two directions of a flow are two sources of RTP.
    let source = u32::from(envelope.flow) << 1 | u32::from(envelope.is_outward);
    message.extend([
        RTP_VERSION | if has_extensions { RTP_HAS_EXTENSIONS } else { 0 },
        payload_type | if is_first_of_talkspurt { RTP_MARKER } else { 0 },
    ]);
    message.extend((number as u16).to_be_bytes());
    message.extend(timestamp.to_be_bytes());
    message.extend(source.to_be_bytes());
    if has_extensions {
        // The length counts words of 4 B without the word that holds the length (RFC 3550 §5.3.1). The
        // extensions are padding, which is zeros.
        message.extend(RTP_ONE_BYTE_EXTENSIONS);
        message.extend((rtp.extensions as u16 / 4 - 1).to_be_bytes());
        message.resize((RTP_HEADER + rtp.extensions) as usize, 0);
    }
}

/// Whether routers may cut an IP packet into fragments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fragmentation {
    Allowed,
    /// The sender has chosen the packet's size for the path, so the packet has the flag Don't Fragment.
    Forbidden,
}

/// Puts an IPv4 header (RFC 791 §3.1) before `body`.
fn encode_ipv4(protocol: u8, fragmentation: Fragmentation, body: &[u8], envelope: &Envelope<'_>) -> Vec<u8> {
    let Addresses { source, destination } = addresses(envelope);
    let total_length = (IPV4_HEADER + body.len()) as u16;
    let ecn = match envelope.ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    let flags = if fragmentation == Fragmentation::Forbidden { DONT_FRAGMENT } else { 0 };
    let mut bytes = Vec::with_capacity(IPV4_HEADER + body.len());
    bytes.extend([IPV4_VERSION_AND_LENGTH, envelope.dscp.byte() | ecn]);
    bytes.extend(total_length.to_be_bytes());
    bytes.extend(envelope.identification.to_be_bytes());
    bytes.extend([flags, 0, TTL, protocol]);
    bytes.extend([0; 2]);
    bytes.extend(source);
    bytes.extend(destination);
    let checksum = checksum(word_sum(&bytes));
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Puts a UDP header (RFC 768) before `payload`.
fn encode_udp(ports: &Ports, payload: &[u8], envelope: &Envelope<'_>) -> Vec<u8> {
    let length = UDP_HEADER + payload.len();
    let mut bytes = Vec::with_capacity(length);
    for field in [ports.source, ports.destination, length as u16, 0] {
        bytes.extend(field.to_be_bytes());
    }
    bytes.extend(payload);
    // A checksum of zero would say that there is no checksum. So 65,535 takes its place, which is equal to
    // zero in this arithmetic.
    let checksum = match checksum(pseudo_header_sum(PROTOCOL_UDP, length, envelope) + word_sum(&bytes)) {
        0 => u16::MAX,
        checksum => checksum,
    };
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Encodes a TCP segment (RFC 9293 §3.1). Its data is zeros.
fn encode_tcp(segment: &Segment, envelope: &Envelope<'_>) -> Vec<u8> {
    let options = encode_tcp_options(segment);
    let header_length = TCP_HEADER + options.len();
    let length = header_length + segment.payload as usize;
    let ports = flow_ports(envelope, DATA_PORT);
    let has_ack = segment.flags.contains(Flags::ACK);
    let set_flags = TCP_FLAGS.iter().filter(|(flag, _)| segment.flags.contains(*flag));
    let flags: u8 = set_flags.map(|(_, bit)| bit).sum();
    // The header's length in words of 4 B is the upper half of its byte.
    let data_offset = (header_length as u8 / 4) << 4;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(ports.source.to_be_bytes());
    bytes.extend(ports.destination.to_be_bytes());
    bytes.extend(segment.seq.get().to_be_bytes());
    bytes.extend(if has_ack { segment.ack.get() } else { 0 }.to_be_bytes());
    bytes.extend([data_offset, flags]);
    bytes.extend(segment.window.to_be_bytes());
    // The checksum, which is written below, and the urgent pointer.
    bytes.extend([0; 4]);
    bytes.extend(options);
    bytes.resize(length, 0);
    let checksum = checksum(pseudo_header_sum(PROTOCOL_TCP, length, envelope) + word_sum(&bytes));
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Encodes the options of a segment. They have the size that [`Segment::options_size`] counts, and the layout
/// that Linux chooses (tcp_options_write). The bytes before an option are NOPs, which align the option.
fn encode_tcp_options(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    if let Some(mss) = segment.mss() {
        options.extend([OPTION_MSS, 4]);
        options.extend(mss.to_be_bytes());
    }
    if let Some((value, echo)) = segment.timestamps() {
        options.extend(if segment.sack_permitted() { [OPTION_SACK_PERMITTED, 2] } else { [OPTION_NOP; 2] });
        options.extend([OPTION_TIMESTAMPS, 10]);
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    } else if segment.sack_permitted() {
        options.extend([OPTION_NOP, OPTION_NOP, OPTION_SACK_PERMITTED, 2]);
    }
    if let Some(shift) = segment.window_scale() {
        options.extend([OPTION_NOP, OPTION_WINDOW_SCALE, 3, shift]);
    }
    if segment.sack_count > 0 {
        options.extend([OPTION_NOP, OPTION_NOP, OPTION_SACK, 2 + 8 * segment.sack_count]);
        for block in segment.sack.iter().take(usize::from(segment.sack_count)) {
            options.extend(block.left.get().to_be_bytes());
            options.extend(block.right.get().to_be_bytes());
        }
    }
    options
}

/// The addresses of an IP packet.
struct Addresses {
    source: [u8; 4],
    destination: [u8; 4],
}

const fn addresses(envelope: &Envelope<'_>) -> Addresses {
    let [high, low] = envelope.flow.to_be_bytes();
    let (near, far) = ([10, 0, high, low], [10, 128, high, low]);
    if envelope.is_outward {
        Addresses { source: near, destination: far }
    } else {
        Addresses { source: far, destination: near }
    }
}

/// Returns the ports of a packet of the flow's connection. The server, at the far end, has the port
/// `server_port`.
const fn flow_ports(envelope: &Envelope<'_>, server_port: u16) -> Ports {
    let client_port = FIRST_CLIENT_PORT + envelope.flow % CLIENT_PORTS;
    if envelope.is_outward {
        Ports { source: client_port, destination: server_port }
    } else {
        Ports { source: server_port, destination: client_port }
    }
}

/// Returns the sum of the pseudo-header that the checksums of UDP and TCP include (RFC 768, RFC 9293 §3.1).
/// `length` is the size of the header and the data of UDP or TCP.
fn pseudo_header_sum(protocol: u8, length: usize, envelope: &Envelope<'_>) -> u32 {
    let Addresses { source, destination } = addresses(envelope);
    word_sum(&source) + word_sum(&destination) + u32::from(protocol) + length as u32
}

/// Returns the sum of the 16-bit words of `bytes`. A last odd byte is the upper byte of its word (RFC 1071).
/// The sum cannot overflow, because an IP packet has at most 65,535 B, whose sum is below 2^31.
fn word_sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|word| u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
    words.map(u32::from).sum()
}

/// Returns the Internet checksum (RFC 1071) of words with this sum.
const fn checksum(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
