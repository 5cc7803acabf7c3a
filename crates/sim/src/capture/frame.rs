//! IP packets from typed ones: the headers that our state machines speak of without writing them.
//!
//! Addresses tell flows and ends apart: flow k (from 1) is 10.0.k/256.k%256 at its near end and
//! 10.128.k/256.k%256 at its far one. Checksums are right. A voice frame over a datagram transport is RTP
//! with the payload type of its codec (RFC 3551 §6). In a flow with `rtp = false` the header and the samples
//! together have the frame's size, so that nothing on the wire changes length. A stream's bytes are zeros:
//! the simulator carries none.

use talkpath_model::VoiceConfig;
use talkpath_units::Ecn;
use talkpath_wire::carrier::{Carrier, Ports};
use talkpath_wire::encapsulated::{EncapsulatedPacket, native_form};
use talkpath_wire::{Datagram, Flags, Packet, Segment};

/// What a frame is made of besides the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    /// From 1.
    pub(super) flow: u16,
    /// From the near end to the far one.
    pub(super) outward: bool,
    pub(super) identification: u16,
    pub(super) ecn: Ecn,
    /// How the messages are packets of RTP, where the flow is voice with a codec of which we write RTP.
    pub(super) voice: Option<RtpFrame>,
    /// A protocol of ours in UDP, as DCCP (RFC 6773), instead of by itself.
    pub(super) encapsulated: bool,
}

/// The fields of RTP that all packets of a call share.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtpFrame {
    /// The payload type.
    pub(super) payload_type: u8,
    /// By how much the timestamp grows from packet to packet.
    pub(super) samples: u32,
    /// The header extensions, with their own header of 4 B.
    pub(super) extensions: u32,
}

impl RtpFrame {
    /// Returns the fields of a call, or `None` if its packets are no bare RTP: numbers of messages are those
    /// of RTP only if each message is one packet, with a clock that has no gaps.
    pub(super) fn of(voice: &VoiceConfig) -> Option<Self> {
        let is_plain = voice
            .sender
            .is_none_or(|sender| sender.silence.is_none() && sender.red == 0 && sender.copies <= 1);
        let row = voice.codec().row();
        let ticks = u128::from(voice.ptime.as_nanos()) * u128::from(row.clock_hz) / 1_000_000_000;
        let samples = u32::try_from(ticks).ok()?;
        let extensions = u32::try_from(voice.headers.extensions.get()).ok()?;
        is_plain.then_some(Self { payload_type: row.payload_type, samples, extensions })
    }
}

/// The IPv4 packet of `packet`.
pub(super) fn frame(packet: &Packet, envelope: &Envelope) -> Vec<u8> {
    match packet {
        Packet::Udp(datagram) => udp_frame(datagram, envelope),
        Packet::Quic(packet) => {
            ip(envelope, PROTOCOL_UDP, false, |pseudo| udp(ports(envelope, PORT_QUIC), &packet.bytes, pseudo))
        }
        Packet::Tcp(segment) => ip(envelope, PROTOCOL_TCP, true, |pseudo| tcp(segment, envelope, pseudo)),
        Packet::Encapsulated(packet) => encapsulated_frame(packet, envelope),
    }
}

/// As a protocol of IP, if the protocol has such a form and the capture wants it; else in UDP.
fn encapsulated_frame(packet: &EncapsulatedPacket, envelope: &Envelope) -> Vec<u8> {
    let native = native_form(packet.kind());
    if let Some(form) = native.filter(|_| !envelope.encapsulated) {
        let (source, destination) = addresses(envelope);
        return ip(envelope, form.protocol, true, |_| {
            encoded(packet, envelope, Carrier::Ipv4 { source, destination })
        });
    }
    let port = native.map_or(PORT_DATA, |form| form.udp_port);
    ip(envelope, PROTOCOL_UDP, true, |pseudo| {
        udp((port, port), &encoded(packet, envelope, Carrier::Udp), pseudo)
    })
}

fn udp_frame(datagram: &Datagram, envelope: &Envelope) -> Vec<u8> {
    let payload = message(datagram.seq, datagram.payload, envelope);
    let ports = if envelope.voice.is_some() { (PORT_RTP, PORT_RTP) } else { ports(envelope, PORT_DATA) };
    ip(envelope, PROTOCOL_UDP, false, |pseudo| udp(ports, &payload, pseudo))
}

/// One message of a datagram transport.
fn message(seq: u64, size: u32, envelope: &Envelope) -> Vec<u8> {
    let mut payload = Vec::with_capacity(size as usize);
    if let Some(RtpFrame { payload_type, samples, extensions }) = envelope.voice
        && size >= RTP_HEADER + extensions
    {
        // RFC 3550 §5.1: version 2 and whether there are extensions; the first packet of a talkspurt has the
        // marker.
        payload.extend([
            if extensions > 0 { 0x90 } else { 0x80 },
            payload_type | if seq == 0 { 0x80 } else { 0 },
        ]);
        payload.extend((seq as u16).to_be_bytes());
        payload.extend((seq as u32).wrapping_mul(samples).to_be_bytes());
        payload.extend((u32::from(envelope.flow) << 1 | u32::from(envelope.outward)).to_be_bytes());
        if extensions > 0 {
            // RFC 8285 §4.2: elements with a header of one byte, here padding alone.
            payload.extend([0xbe, 0xde]);
            payload.extend((extensions as u16 / 4 - 1).to_be_bytes());
            payload.resize((RTP_HEADER + extensions) as usize, 0);
        }
    }
    let is_pcmu = envelope.voice.is_some_and(|voice| voice.payload_type == PCMU);
    let fill = if is_pcmu { PCMU_SILENCE } else { 0 };
    payload.resize(size as usize, fill);
    payload
}

/// An IPv4 header (RFC 791 §3.1) before what `upper` makes of the pseudo-header's sum.
fn ip(envelope: &Envelope, protocol: u8, whole: bool, upper: impl FnOnce(u32) -> Vec<u8>) -> Vec<u8> {
    let (source, destination) = addresses(envelope);
    // The length, which belongs to the pseudo-header, is added where it is known.
    let pseudo = sum(&source) + sum(&destination) + u32::from(protocol);
    let body = upper(pseudo);
    let total = (body.len() + 20) as u16;
    let ecn = match envelope.ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    let mut bytes = vec![0x45, ecn];
    bytes.extend(total.to_be_bytes());
    bytes.extend(envelope.identification.to_be_bytes());
    // Don't Fragment, for what is cut to fit.
    bytes.extend([if whole { 0x40 } else { 0 }, 0, TTL, protocol, 0, 0]);
    bytes.extend(source);
    bytes.extend(destination);
    let check = fold(sum(&bytes));
    bytes[10..12].copy_from_slice(&check.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// A UDP datagram (RFC 768).
fn udp(ports: (u16, u16), payload: &[u8], pseudo: u32) -> Vec<u8> {
    let length = (payload.len() + 8) as u16;
    let mut bytes = Vec::with_capacity(payload.len() + 8);
    for field in [ports.0, ports.1, length, 0] {
        bytes.extend(field.to_be_bytes());
    }
    bytes.extend(payload);
    let check = match fold(pseudo + u32::from(length) + sum(&bytes)) {
        0 => u16::MAX,
        check => check,
    };
    bytes[6..8].copy_from_slice(&check.to_be_bytes());
    bytes
}

/// A TCP segment (RFC 9293 §3.1), its options laid out as Linux does.
fn tcp(segment: &Segment, envelope: &Envelope, pseudo: u32) -> Vec<u8> {
    let options = tcp_options(segment);
    let header = 20 + options.len();
    let ports = ports(envelope, PORT_DATA);
    let mut bytes = Vec::with_capacity(header + segment.payload as usize);
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend(segment.seq.get().to_be_bytes());
    let has_ack = segment.flags.contains(Flags::ACK);
    bytes.extend(if has_ack { segment.ack.get() } else { 0 }.to_be_bytes());
    let flags = [Flags::FIN, Flags::SYN, Flags::RST, Flags::PSH, Flags::ACK, Flags::ECE, Flags::CWR];
    let bits = flags.iter().zip([1_u8, 2, 4, 8, 16, 64, 128]);
    let flags = bits.filter(|(flag, _)| segment.flags.contains(**flag)).map(|(_, bit)| bit).sum();
    bytes.extend([(header as u8 / 4) << 4, flags]);
    bytes.extend(segment.window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(options);
    bytes.resize(header + segment.payload as usize, 0);
    let check = fold(pseudo + bytes.len() as u32 + sum(&bytes));
    bytes[16..18].copy_from_slice(&check.to_be_bytes());
    bytes
}

/// As [`Segment::options_size`] counts them.
fn tcp_options(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    if let Some(mss) = segment.mss() {
        options.extend([2, 4]);
        options.extend(mss.to_be_bytes());
    }
    if let Some((value, echo)) = segment.timestamps() {
        options.extend(if segment.sack_permitted() { [4, 2] } else { [1, 1] });
        options.extend([8, 10]);
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    } else if segment.sack_permitted() {
        options.extend([1, 1, 4, 2]);
    }
    if let Some(shift) = segment.window_scale() {
        options.extend([1, 3, 3, shift]);
    }
    if segment.sack_count > 0 {
        options.extend([1, 1, 5, 2 + 8 * segment.sack_count]);
        for block in segment.sack.iter().take(usize::from(segment.sack_count)) {
            options.extend(block.left.get().to_be_bytes());
            options.extend(block.right.get().to_be_bytes());
        }
    }
    options
}

/// A packet as its protocol's codec writes it.
fn encoded(packet: &EncapsulatedPacket, envelope: &Envelope, carrier: Carrier) -> Vec<u8> {
    let (source, destination) = ports(envelope, PORT_DATA);
    let data = match packet.payload() {
        0 => Vec::new(),
        size => message(packet.message(), size, envelope),
    };
    let mut bytes = Vec::with_capacity(packet.header_size() + data.len());
    packet.encode(Ports { source, destination }, &data, carrier, &mut bytes);
    bytes
}

/// Source and destination.
const fn addresses(envelope: &Envelope) -> ([u8; 4], [u8; 4]) {
    let [high, low] = envelope.flow.to_be_bytes();
    let (near, far) = ([10, 0, high, low], [10, 128, high, low]);
    if envelope.outward { (near, far) } else { (far, near) }
}

/// Source and destination of a flow's connection.
const fn ports(envelope: &Envelope, server: u16) -> (u16, u16) {
    let client = PORT_CLIENTS + envelope.flow % 16_384;
    if envelope.outward { (client, server) } else { (server, client) }
}

/// The Internet checksum's sum (RFC 1071) without the last complement.
fn sum(bytes: &[u8]) -> u32 {
    let pairs =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)));
    // 65,535 bytes sum to less than 2^31.
    pairs.sum()
}

const fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// RFC 9293, RFC 768: protocol numbers.
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// RFC 3551 §8.
const PORT_RTP: u16 = 5004;
/// HTTP/3's, by which decoders know QUIC (RFC 9114 §3.1).
const PORT_QUIC: u16 = 443;
/// Of a server that has none of its own: talkpath's default.
const PORT_DATA: u16 = 7160;
/// RFC 6335 §6: dynamic ports.
const PORT_CLIENTS: u16 = 49_152;
/// RFC 1700's recommendation.
const TTL: u8 = 64;
/// RFC 3550 §5.1.
const RTP_HEADER: u32 = 12;
/// RFC 3551 §6.
const PCMU: u8 = 0;
/// ITU-T G.711: positive zero of the mu-law.
const PCMU_SILENCE: u8 = 0xff;

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
