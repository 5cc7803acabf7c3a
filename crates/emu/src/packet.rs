//! The IPv4 packets of the two hosts: whose flow they are of, and how they are cut (RFC 791 §3.1, RFC 768,
//! RFC 9293 §3.1).
//!
//! Ports name the flow: both ends of flow f use port [`FIRST_PORT`] + f. A fragment beyond the first has no
//! ports and is matched by its identification, since a kernel sends a datagram's fragments in a row.
//!
//! Left out: IP options (no kernel here sends any; they would not be counted as carried bytes) and IPv6. What
//! is not TCP or UDP between the flows' ports (ICMP, multicast) does not cross the path.

use talkpath_path::{Direction, FragmentRange};
use talkpath_units::Ecn;

/// What the emulator needs to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    /// Bytes of the IPv4 header.
    pub(super) header: usize,
    /// Bytes of the packet.
    pub(super) length: usize,
    pub(super) part: FragmentRange,
    /// The ECN field (RFC 3168 §5).
    pub(super) ecn: Ecn,
    pub(super) identification: u16,
    pub(super) protocol: Protocol,
    /// Source and destination port; absent in a fragment beyond the first.
    pub(super) ports: Option<(u16, u16)>,
}

/// What the flows speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// The first: where flows with direction up begin.
    First,
    /// The second.
    Second,
}

impl Host {
    /// The other one.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// 0 or 1.
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Which way a packet that leaves here goes in a flow whose sender is `sender`.
    pub(super) fn direction(self, sender: Self) -> Direction {
        if self == sender { Direction::Out } else { Direction::Back }
    }
}

/// Reads the headers of an IPv4 packet; `None` for everything else.
pub(super) fn parse(packet: &[u8]) -> Option<Parsed> {
    let first = *packet.first()?;
    let header = usize::from(first & 0x0f) * 4;
    let length = usize::from(u16_at(packet, 2)?);
    if first >> 4 != 4 || header < 20 || length < header || length > packet.len() {
        return None;
    }
    let protocol = match packet[9] {
        6 => Protocol::Tcp,
        17 => Protocol::Udp,
        _ => return None,
    };
    let flags = u16_at(packet, 6)?;
    let offset = u32::from(flags & OFFSET_MASK) * 8;
    let part = FragmentRange {
        offset,
        length: u32::try_from(length - header).ok()?,
        more: flags & MORE_FRAGMENTS != 0,
    };
    let ports = match offset {
        0 => Some((u16_at(packet, header)?, u16_at(packet, header + 2)?)),
        _ => None,
    };
    let ecn = match packet[1] & ECN_MASK {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    Some(Parsed { header, length, part, ecn, identification: u16_at(packet, 4)?, protocol, ports })
}

/// Sets Congestion Experienced in the header of an IPv4 packet, and makes its checksum right again. The
/// transports' checksums do not cover the field.
pub(super) fn set_ce(packet: &mut [u8], header: usize) {
    packet[1] |= ECN_MASK;
    write_header_checksum(packet, header);
}

/// Makes the checksum of an IPv4 header of `header` bytes right (RFC 791 §3.1).
fn write_header_checksum(packet: &mut [u8], header: usize) {
    packet[10..12].fill(0);
    let checksum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the piece `part` of the parsed `packet` into `out`.
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
    // The don't-fragment flag goes: the model's links do not know it.
    out[6..8].copy_from_slice(&flags.to_be_bytes());
    write_header_checksum(out, parsed.header);
}

/// The number of the first payload byte, whether it carries SYN, and how many bytes it carries: of an
/// unfragmented TCP segment.
pub(super) fn tcp_sequence(packet: &[u8], parsed: &Parsed) -> Option<(u32, bool, u32)> {
    let segment = packet.get(parsed.header..parsed.length)?;
    let sequence = u32::from_be_bytes(segment.get(4..8)?.try_into().ok()?);
    let header = usize::from(*segment.get(12)? >> 4) * 4;
    let is_syn = *segment.get(13)? & 0x02 != 0;
    let payload = u32::try_from(segment.len().checked_sub(header)?).ok()?;
    Some((sequence, is_syn, payload))
}

/// RFC 1071: the ones' complement of the ones' complement sum.
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

/// Both ends of flow 0 use this port, those of flow f the f-th after it.
pub(super) const FIRST_PORT: u16 = 1024;
/// The number of flows for which there are ports.
pub(super) const MAX_FLOWS: usize = 65_536 - FIRST_PORT as usize;
/// A UDP header (RFC 768).
pub(super) const UDP_HEADER: usize = 8;
/// RFC 791 §3.1: the flags and the offset share 16 bits.
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;
/// RFC 3168 §5: the ECN field is the two lowest bits of the second byte; both are Congestion Experienced.
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
            set_ce(&mut packet, 20);
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

    #[test]
    fn what_is_cut_short_or_not_ipv4_is_nobodys() {
        let packet = datagram(10);
        for length in 0..packet.len() {
            assert_eq!(parse(&packet[..length]), None, "{length} bytes");
        }
        let mut other = packet.clone();
        other[0] = 0x65;
        assert_eq!(parse(&other), None);
        let mut icmp = packet;
        icmp[9] = 1;
        assert_eq!(parse(&icmp), None);
    }
}
