//! Reads and cuts the packets of the two hosts, and finds the flow that a packet belongs to (RFC 791 §3.1,
//! RFC 8200, RFC 768, RFC 9293 §3.1).
//!
//! Ports name the flow: both ends of flow f use the port [`FIRST_PORT`] + f. A fragment beyond the first has
//! no ports. It is matched by its identification, because a kernel sends the fragments of a datagram in a
//! row. The lower 16 of IPv6's 32 bits of identification are enough, because a kernel draws them at random
//! for each datagram.
//!
//! The path's model adds an IPv4 header of 20 B to each payload. So it gets an IPv6 packet as a payload that
//! is 20 B smaller than the packet, and a link carries, queues and limits the true size of the packet.
//!
//! The extension headers of IPv6 (RFC 8200 §4) before the transport's header are skipped: hop-by-hop options,
//! routing, destination options and fragments. A packet with another extension header (authentication,
//! encryption, mobility) belongs to no flow, as ICMP does not. Only the source
//! cuts an IPv6 packet (RFC 8200 §4.5). The hosts know the path's MTU and never get a Packet Too Big
//! (`world/socket.rs`).
//!
//! Left out: IPv4 options, which would not be counted as carried bytes (no kernel here sends any), and jumbo
//! payloads (RFC 2675). A packet of no flow crosses the path only if it is one of the user's programs
//! (`lanes.rs`).

use std::net::IpAddr;

use talkpath_model::IpVersion;
use talkpath_path::{Direction, FragmentRange, IPV4_HEADER};
use talkpath_units::Ecn;

/// The headers of a packet, as far as the emulator needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) ip: IpVersion,
    /// The bytes of the IP header, with the extension headers of IPv6.
    pub(super) header: usize,
    /// The bytes of the whole packet.
    pub(super) length: usize,
    /// The part of the datagram that the packet carries, in the form of the path's model.
    pub(super) part: FragmentRange,
    /// The ECN field (RFC 3168 §5).
    pub(super) ecn: Ecn,
    pub(super) identification: u16,
    pub(super) protocol: Protocol,
    /// The source and destination port. `None` in a fragment beyond the first.
    pub(super) ports: Option<(u16, u16)>,
}

impl Parsed {
    /// The bytes of the transport's header and payload in the piece `part` of this packet.
    pub(super) fn transport_bytes(&self, part: FragmentRange) -> u32 {
        match self.ip {
            IpVersion::V4 => part.length,
            // The path never cuts an IPv6 packet, so the piece is the whole packet.
            IpVersion::V6 => (self.length - self.header) as u32,
        }
    }

    /// The DSCP of the parsed `packet` (RFC 2474 §3).
    pub(super) fn dscp(&self, packet: &[u8]) -> u8 {
        match (self.ip, packet) {
            (IpVersion::V4, [_, byte, ..]) => byte >> 2,
            (IpVersion::V6, [first, second, ..]) => (first << 4 | second >> 4) >> 2,
            _ => 0,
        }
    }

    /// Returns true if the packet can be in a train of datagrams. It must be a whole datagram without
    /// extension headers, because a train has only one set of headers.
    pub(super) fn fits_in_train(&self) -> bool {
        let has_extensions = self.ip == IpVersion::V6 && self.header > IPV6_HEADER;
        self.protocol == Protocol::Udp && self.part.is_whole() && !has_extensions
    }
}

/// The transport protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
    /// Any other protocol, by its number. Only packets of the user's programs have one.
    Other(u8),
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    /// The first host, on which flows with direction up begin.
    First,
    /// The second host.
    Second,
}

impl Host {
    /// The first host and the second host.
    pub(super) const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// The other host.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// The index of the host, 0 or 1.
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// The direction of a packet that leaves this host, in a flow whose sender is on the host `sender`.
    pub(super) fn direction(self, sender: Self) -> Direction {
        if self == sender { Direction::Out } else { Direction::Back }
    }
}

impl Protocol {
    const fn numbered(number: u8) -> Self {
        match number {
            TCP => Self::Tcp,
            UDP => Self::Udp,
            other => Self::Other(other),
        }
    }

    /// The number of the protocol, which IANA assigns.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Tcp => TCP,
            Self::Udp => UDP,
            Self::Other(number) => number,
        }
    }

    /// Returns true if the first bytes behind the IP header are two ports.
    const fn has_ports(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }
}

/// Reads the headers of a packet. `None` if the packet is cut short or is no packet of IP.
pub(super) fn parse(packet: &[u8]) -> Option<Parsed> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

fn parse_v4(packet: &[u8]) -> Option<Parsed> {
    let header = usize::from(packet[0] & 0x0f) * 4;
    let length = usize::from(u16_at(packet, 2)?);
    if header < 20 || length < header || length > packet.len() {
        return None;
    }
    let protocol = Protocol::numbered(packet[9]);
    let flags = u16_at(packet, 6)?;
    let offset = u32::from(flags & OFFSET_MASK) * 8;
    let part = FragmentRange {
        offset,
        length: u32::try_from(length - header).ok()?,
        more: flags & MORE_FRAGMENTS != 0,
    };
    let ports = match offset {
        0 if protocol.has_ports() => Some((u16_at(packet, header)?, u16_at(packet, header + 2)?)),
        _ => None,
    };
    let (ip, ecn, identification) = (IpVersion::V4, ecn(packet[1]), u16_at(packet, 4)?);
    Some(Parsed { ip, header, length, part, ecn, identification, protocol, ports })
}

fn parse_v6(packet: &[u8]) -> Option<Parsed> {
    let length = IPV6_HEADER + usize::from(u16_at(packet, 4)?);
    let packet = packet.get(..length)?;
    let (mut next, mut header) = (packet[6], IPV6_HEADER);
    let (mut offset, mut more, mut identification) = (0, false, 0);
    let protocol = loop {
        match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                next = *packet.get(header)?;
                header += (usize::from(*packet.get(header + 1)?) + 1) * 8;
            }
            FRAGMENT => {
                next = *packet.get(header)?;
                let place = u16_at(packet, header + 2)?;
                (offset, more) = (u32::from(place & !0b111), place & 1 != 0);
                identification = u16_at(packet, header + 6)?;
                header += 8;
            }
            _ => break Protocol::numbered(next),
        }
        // A later fragment carries only payload behind its headers, even if the payload looks like a header.
        if offset > 0 {
            break Protocol::numbered(next);
        }
    };
    let ports = match offset {
        0 if protocol.has_ports() => Some((u16_at(packet, header)?, u16_at(packet, header + 2)?)),
        _ => None,
    };
    let carried = length.checked_sub(IPV4_HEADER.get() as usize)?;
    let part = FragmentRange { offset, length: u32::try_from(carried).ok()?, more };
    let (ip, ecn) = (IpVersion::V6, ecn(packet[1] >> 4));
    (header <= length).then_some(Parsed { ip, header, length, part, ecn, identification, protocol, ports })
}

/// Returns true if a router would not forward the packet: its destination is link-local multicast or the
/// limited broadcast address (RFC 5771 §4, RFC 4291 §2.7, RFC 919 §7).
pub(super) fn stays_on_link(packet: &[u8], ip: IpVersion) -> bool {
    match ip {
        IpVersion::V4 => packet.get(16..20).is_some_and(|to| to[..3] == [224, 0, 0] || to == [0xff; 4]),
        IpVersion::V6 => packet.get(24..26).is_some_and(|to| to[0] == 0xff && to[1] & 0x0f <= 2),
    }
}

/// The source and destination address of a packet.
pub(super) fn addresses(packet: &[u8], ip: IpVersion) -> Option<(IpAddr, IpAddr)> {
    fn at<const N: usize>(packet: &[u8], from: usize) -> Option<IpAddr>
    where
        IpAddr: From<[u8; N]>,
    {
        let octets: [u8; N] = packet.get(from..from + N)?.try_into().ok()?;
        Some(octets.into())
    }
    match ip {
        // RFC 791 §3.1, RFC 8200 §3.
        IpVersion::V4 => at::<4>(packet, 12).zip(at::<4>(packet, 16)),
        IpVersion::V6 => at::<16>(packet, 8).zip(at::<16>(packet, 24)),
    }
}

/// The ECN field in the two lowest bits of `byte` (RFC 3168 §5).
const fn ecn(byte: u8) -> Ecn {
    match byte & ECN_MASK {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Sets Congestion Experienced in the parsed `packet`, and makes an IPv4 header's checksum right again. IPv6
/// has none, and the transports' checksums do not cover the field.
pub(super) fn set_ce(packet: &mut [u8], parsed: &Parsed) {
    match parsed.ip {
        IpVersion::V4 => {
            packet[1] |= ECN_MASK;
            write_header_checksum(packet, parsed.header);
        }
        // The traffic class begins in the middle of the first byte (RFC 8200 §3).
        IpVersion::V6 => packet[1] |= ECN_MASK << 4,
    }
}

/// Makes the checksum of an IPv4 header of `header` bytes right (RFC 791 §3.1).
fn write_header_checksum(packet: &mut [u8], header: usize) {
    packet[10..12].fill(0);
    let checksum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the piece `part` of the parsed IPv4 `packet` into `out`.
pub(super) fn write_fragment(packet: &[u8], parsed: &Parsed, part: FragmentRange, out: &mut Vec<u8>) {
    let from = parsed.header + (part.offset - parsed.part.offset) as usize;
    let payload = &packet[from..from + part.length as usize];
    out.clear();
    out.extend_from_slice(&packet[..parsed.header]);
    out.extend_from_slice(payload);
    // A datagram has at most 65,535 bytes and its offset 13 bits, so neither cast cuts.
    let length = out.len() as u16;
    let flags = (part.offset / 8) as u16 | if part.more { MORE_FRAGMENTS } else { 0 };
    out[2..4].copy_from_slice(&length.to_be_bytes());
    // The don't-fragment flag is cleared, because the model's links do not know it.
    out[6..8].copy_from_slice(&flags.to_be_bytes());
    write_header_checksum(out, parsed.header);
}

/// The range of its stream that a TCP segment carries.
pub(super) struct SegmentRange {
    /// The sequence number in its header.
    pub(super) sequence: u32,
    pub(super) is_syn: bool,
    /// The number of bytes of the stream that the segment carries.
    pub(super) payload: u32,
}

/// The range of an unfragmented TCP segment.
pub(super) fn segment_range(packet: &[u8], parsed: &Parsed) -> Option<SegmentRange> {
    let segment = packet.get(parsed.header..parsed.length)?;
    let sequence = u32::from_be_bytes(segment.get(4..8)?.try_into().ok()?);
    let header = usize::from(*segment.get(12)? >> 4) * 4;
    let is_syn = *segment.get(13)? & 0x02 != 0;
    let payload = u32::try_from(segment.len().checked_sub(header)?).ok()?;
    Some(SegmentRange { sequence, is_syn, payload })
}

/// The acknowledgement number of a TCP segment (RFC 9293 §3.1). `None` if the segment acknowledges nothing,
/// or if `packet` is a later fragment or no packet of TCP.
pub(super) fn acknowledgement(packet: &[u8], parsed: &Parsed) -> Option<u32> {
    if parsed.protocol != Protocol::Tcp || parsed.part.offset > 0 {
        return None;
    }
    let segment = packet.get(parsed.header..parsed.length)?;
    let is_acknowledging = *segment.get(13)? & 0x10 != 0;
    is_acknowledging.then_some(u32::from_be_bytes(segment.get(8..12)?.try_into().ok()?))
}

/// Computes the ones' complement of the ones' complement sum (RFC 1071).
pub(super) fn checksum(bytes: &[u8]) -> u16 {
    let sum = sum(bytes);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// The sum of the 16-bit words of `bytes`, at most 64 KiB, an odd one filled up with zero.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn u16_at(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?))
}

/// The port of both ends of flow 0. Both ends of flow f use the f-th port after it.
pub(super) const FIRST_PORT: u16 = 1024;
/// The number of flows for which there are ports.
pub(super) const MAX_FLOWS: usize = 65_536 - FIRST_PORT as usize;
/// A UDP header (RFC 768).
pub(super) const UDP_HEADER: usize = 8;
/// RFC 791 §3.1: the flags and the offset share 16 bits.
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;
/// An IPv6 header without extension headers (RFC 8200 §3).
pub(super) const IPV6_HEADER: usize = 40;
/// Protocols and extension headers by IANA's numbers (RFC 9293, RFC 768, RFC 8200 §4).
const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
/// RFC 3168 §5: the ECN field is the two lowest bits of IPv4's second byte and of IPv6's traffic class; both
/// are Congestion Experienced.
const ECN_MASK: u8 = 0b11;

#[cfg(test)]
mod tests {
    use talkpath_path::fragments;
    use talkpath_units::Bytes;

    use super::*;

    /// A UDP datagram of `payload` bytes, as a kernel would send it.
    fn datagram(payload: usize) -> Vec<u8> {
        let length = (28 + payload) as u16;
        let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(&[4, 0, 4, 1]);
        packet.extend((0..payload + 4).map(|byte| byte as u8));
        packet
    }

    #[test]
    fn pieces_of_a_packet_carry_all_its_bytes_once_and_valid_headers() {
        let packet = datagram(4000);
        let parsed = parse(&packet).unwrap();
        assert_eq!((parsed.ports, parsed.identification), (Some((1024, 1025)), 0x1234));
        let (mut out, mut payload) = (Vec::new(), Vec::new());
        for part in fragments(Bytes::new(packet.len() as u64), Bytes::new(576)) {
            write_fragment(&packet, &parsed, part, &mut out);
            let piece = parse(&out).unwrap();
            assert_eq!((piece.part, piece.length), (part, out.len()));
            assert_eq!(checksum(&out[..20]), 0, "a header with its checksum sums up to all ones");
            assert_eq!(piece.ports.is_some(), part.offset == 0);
            payload.extend_from_slice(&out[20..]);
        }
        assert_eq!(payload, packet[20..]);
    }

    #[test]
    fn a_mark_changes_the_ecn_field_alone_and_leaves_a_valid_header() {
        for (bits, ecn) in [(0b00, Ecn::NotEct), (0b01, Ecn::Ect1), (0b10, Ecn::Ect0), (0b11, Ecn::Ce)] {
            let mut packet = datagram(100);
            // Expedited forwarding (RFC 3246) stays.
            packet[1] = 0xb8 | bits;
            assert_eq!(parse(&packet).unwrap().ecn, ecn);
            let before = packet.clone();
            let parsed = parse(&packet).unwrap();
            set_ce(&mut packet, &parsed);
            assert_eq!((packet[1], parse(&packet).unwrap().ecn), (0xbb, Ecn::Ce));
            assert_eq!(checksum(&packet[..20]), 0, "a header with its checksum sums up to all ones");
            assert_eq!((&packet[2..10], &packet[12..]), (&before[2..10], &before[12..]));
        }
    }

    #[test]
    fn a_piece_of_a_piece_keeps_its_place_in_the_datagram() {
        let packet = datagram(4000);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let middle = fragments(Bytes::new(4028), Bytes::new(1500)).nth(1).unwrap();
        write_fragment(&packet, &parse(&packet).unwrap(), middle, &mut first);
        let part = middle.fragments(Bytes::new(576)).nth(2).unwrap();
        write_fragment(&first, &parse(&first).unwrap(), part, &mut second);
        assert_eq!(second[20..], packet[20 + 2584..20 + 2584 + 376]);
        assert_eq!(parse(&second).unwrap().part, part);
    }

    /// A datagram of `payload` bytes in IPv6 behind these extension headers, of which the first is `next`.
    fn datagram_v6(next: u8, extensions: &[u8], payload: usize) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        packet[4..6].copy_from_slice(&((extensions.len() + 8 + payload) as u16).to_be_bytes());
        packet.extend([0x20; 32]);
        packet.extend_from_slice(extensions);
        packet.extend_from_slice(&[4, 0, 4, 1]);
        packet.extend((0..payload + 4).map(|byte| byte as u8));
        packet
    }

    /// RFC 8200 §4: headers that are passed over, and those behind which nobody looks.
    #[test]
    fn extension_headers_are_passed_over_as_far_as_ports() {
        let options = [UDP, 0, 1, 4, 0, 0, 0, 0];
        let two = [[DESTINATION_OPTIONS, 0, 1, 4, 0, 0, 0, 0], options].concat();
        let long = [&[UDP, 1][..], &[0; 14]].concat();
        let cases: [(u8, &[u8]); 5] = [
            (UDP, &[]),
            (DESTINATION_OPTIONS, &options),
            (HOP_BY_HOP, &options),
            (HOP_BY_HOP, &two),
            (ROUTING, &long),
        ];
        for (next, extensions) in cases {
            let packet = datagram_v6(next, extensions, 100);
            let parsed = parse(&packet).unwrap();
            assert_eq!((parsed.header, parsed.length), (40 + extensions.len(), packet.len()));
            assert_eq!((parsed.ports, parsed.protocol), (Some((1024, 1025)), Protocol::Udp));
            assert_eq!(
                parsed.part.wire_size(),
                Bytes::new(packet.len() as u64),
                "the path carries all of it"
            );
            assert_eq!(parsed.transport_bytes(parsed.part), 108);
            assert_eq!(parsed.fits_in_train(), extensions.is_empty());
            for length in 0..packet.len() {
                assert_eq!(parse(&packet[..length]), None, "{length} bytes");
            }
        }
        // Encapsulation, authentication, ICMP, no next header, mobility.
        for next in [50, 51, 58, 59, 135] {
            let parsed = parse(&datagram_v6(next, &options, 100)).unwrap();
            assert_eq!((parsed.ports, parsed.protocol), (None, Protocol::Other(next)));
        }
    }

    /// RFC 8200 §4.5.
    #[test]
    fn a_fragment_of_ipv6_has_its_place_and_after_the_first_no_ports() {
        let piece = |place: u16| {
            let [high, low] = place.to_be_bytes();
            let header = [UDP, 0, high, low, 0xab, 0xcd, 0x12, 0x34];
            parse(&datagram_v6(FRAGMENT, &header, 1400)).unwrap()
        };
        let (first, later, last, atomic) = (piece(1), piece(1448 | 1), piece(2896), piece(0));
        assert_eq!((first.ports, first.part.offset, first.part.more), (Some((1024, 1025)), 0, true));
        assert_eq!((later.ports, later.part.offset, later.part.more), (None, 1448, true));
        assert_eq!((last.ports, last.part.offset, last.part.more), (None, 2896, false));
        assert!(atomic.part.is_whole() && !atomic.fits_in_train());
        assert!([first, later, last].iter().all(|it| it.identification == 0x1234 && it.header == 48));
    }

    /// RFC 3168 §5: the same field of IPv6's traffic class; no checksum covers it.
    #[test]
    fn a_mark_changes_two_bits_of_an_ipv6_packet() {
        for (bits, ecn) in [(0b00, Ecn::NotEct), (0b01, Ecn::Ect1), (0b10, Ecn::Ect0), (0b11, Ecn::Ce)] {
            let mut packet = datagram_v6(UDP, &[], 100);
            // Expedited forwarding (RFC 3246), and a flow label.
            packet[0..4].copy_from_slice(&[0x6b, 0x8a | bits << 4, 0xbc, 0xde]);
            let parsed = parse(&packet).unwrap();
            assert_eq!(parsed.ecn, ecn);
            let before = packet.clone();
            set_ce(&mut packet, &parsed);
            assert_eq!((packet[0], packet[1], parse(&packet).unwrap().ecn), (0x6b, 0xba, Ecn::Ce));
            assert_eq!(packet[2..], before[2..]);
        }
    }

    #[test]
    fn what_is_cut_short_or_no_ip_is_nobodys() {
        let packet = datagram(10);
        for length in 0..packet.len() {
            assert_eq!(parse(&packet[..length]), None, "{length} bytes");
        }
        let mut other = packet.clone();
        other[0] = 0x55;
        assert_eq!(parse(&other), None);
        let mut icmp = packet;
        icmp[9] = 1;
        assert_eq!(parse(&icmp).map(|it| (it.ports, it.protocol)), Some((None, Protocol::Other(1))));
    }

    #[test]
    fn link_local_multicast_stays_on_its_link_and_wider_multicast_does_not() {
        let to = |to: [u8; 4]| {
            let mut packet = datagram(10);
            packet[16..20].copy_from_slice(&to);
            stays_on_link(&packet, IpVersion::V4)
        };
        assert!(to([224, 0, 0, 251]) && to([255; 4]) && !to([239, 1, 2, 3]) && !to([192, 0, 2, 2]));
        let to_v6 = |scope: u8| {
            let mut packet = datagram_v6(UDP, &[], 10);
            packet[24..26].copy_from_slice(&[0xff, scope]);
            stays_on_link(&packet, IpVersion::V6)
        };
        assert!(to_v6(1) && to_v6(2) && !to_v6(5) && !to_v6(0x0e));
        assert!(!stays_on_link(&datagram_v6(UDP, &[], 10), IpVersion::V6));
    }
}
