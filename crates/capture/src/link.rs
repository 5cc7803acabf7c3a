//! From a captured packet to the datagram in it: Ethernet, Linux cooked captures, VLAN, IPv4, IPv6 and UDP,
//! by the library `etherparse`.

use core::net::IpAddr;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::file::CapturedPacket;

/// What is in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// A whole datagram of UDP, or what the capture kept of it.
    Udp(Datagram<'a>),
    /// A segment of TCP with data.
    Tcp(&'a [u8]),
    /// A fragment of a packet of IP.
    Fragment,
    /// Another protocol.
    Other,
    /// The link layer is not known, or the headers are damaged.
    Unknown,
}

/// A datagram of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) from: (IpAddr, u16),
    pub(crate) to: (IpAddr, u16),
    /// The bytes of the payload that were kept.
    pub(crate) kept: &'a [u8],
    /// The size of the whole payload.
    pub(crate) length: usize,
}

/// Finds the datagram in a packet.
pub(crate) fn content<'a>(packet: &CapturedPacket<'a>) -> Content<'a> {
    match slices(packet.link_type, packet.bytes) {
        Some(slices) => of_slices(&slices),
        None => Content::Unknown,
    }
}

/// Cuts a packet into its headers, by the number of its link layer (LINKTYPE_).
fn slices(link_type: i32, bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    match link_type {
        // NULL and LOOP: four bytes with the family of the protocol.
        0 | 108 => LaxSlicedPacket::from_ip(bytes.get(4..)?).ok(),
        // Ethernet.
        1 => LaxSlicedPacket::from_ethernet(bytes).ok(),
        // RAW with its older numbers, IPV4 and IPV6.
        12 | 14 | 101 | 228 | 229 => LaxSlicedPacket::from_ip(bytes).ok(),
        // LINUX_SLL: the type of the protocol behind 14 bytes.
        113 => of_ether_type(bytes.get(14..16)?, bytes.get(16..)?),
        // LINUX_SLL2: the type of the protocol comes first.
        276 => of_ether_type(bytes.get(..2)?, bytes.get(20..)?),
        _ => None,
    }
}

fn of_ether_type<'a>(ether_type: &[u8], payload: &'a [u8]) -> Option<LaxSlicedPacket<'a>> {
    let ether_type = u16::from_be_bytes(ether_type.try_into().ok()?);
    Some(LaxSlicedPacket::from_ether_type(EtherType(ether_type), payload))
}

fn of_slices<'a>(slices: &LaxSlicedPacket<'a>) -> Content<'a> {
    let (from, to, is_fragment): (IpAddr, IpAddr, bool) = match &slices.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), ip.is_payload_fragmented())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), ip.is_payload_fragmented())
        }
        Some(LaxNetSlice::Arp(_)) => return Content::Other,
        None => return if slices.stop_err.is_some() { Content::Unknown } else { Content::Other },
    };
    if is_fragment {
        return Content::Fragment;
    }
    match &slices.transport {
        Some(TransportSlice::Udp(udp)) => {
            let kept = udp.payload();
            // A length of 0 or below 8 says nothing (RFC 768 has 8 at the least).
            let stated = usize::from(udp.length()).saturating_sub(UDP_HEADER);
            let length = stated.max(kept.len());
            Content::Udp(Datagram {
                from: (from, udp.source_port()),
                to: (to, udp.destination_port()),
                kept,
                length,
            })
        }
        Some(TransportSlice::Tcp(tcp)) if !tcp.payload().is_empty() => Content::Tcp(tcp.payload()),
        Some(_) => Content::Other,
        None => {
            if slices.stop_err.is_some() {
                Content::Unknown
            } else {
                Content::Other
            }
        }
    }
}

/// The size of UDP's header (RFC 768).
const UDP_HEADER: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of IPv4 with a datagram of 4 bytes from port 4000 to port 5004.
    const V4: &[u8] = &[
        0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x0f, 0xa0, 0x13, 0x8c, 0, 12, 0,
        0, 1, 2, 3, 4,
    ];

    fn v6() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 12, 17, 64];
        for last in [1, 2] {
            packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend(&V4[20..]);
        packet
    }

    fn content_of(link_type: i32, header: &[u8], packet: &[u8]) -> Option<(IpAddr, u16, Vec<u8>, usize)> {
        let bytes = [header, packet].concat();
        match content(&CapturedPacket { at_ns: 0, link_type, bytes: &bytes }) {
            Content::Udp(datagram) => {
                Some((datagram.to.0, datagram.to.1, datagram.kept.to_vec(), datagram.length))
            }
            _ => None,
        }
    }

    #[test]
    fn the_datagram_is_found_behind_every_link_layer() {
        let v4 = Some((IpAddr::from([10, 0, 0, 2]), 5004, vec![1, 2, 3, 4], 4));
        let address: IpAddr = "2001:db8::2".parse().unwrap();
        let in_v6 = Some((address, 5004, vec![1, 2, 3, 4], 4));
        let ether = |kind: &[u8]| [&[0; 12], kind].concat();
        assert_eq!(content_of(1, &ether(&[0x08, 0]), V4), v4, "Ethernet");
        assert_eq!(content_of(1, &ether(&[0x86, 0xdd]), &v6()), in_v6, "Ethernet");
        assert_eq!(content_of(1, &ether(&[0x81, 0, 0, 7, 0x08, 0]), V4), v4, "VLAN");
        assert_eq!(
            content_of(1, &ether(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 7, 0x86, 0xdd]), &v6()),
            in_v6,
            "two tags"
        );
        assert_eq!(content_of(113, &[&[0; 14][..], &[0x08, 0]].concat(), V4), v4, "SLL");
        assert_eq!(content_of(276, &[&[0x86, 0xdd][..], &[0; 18]].concat(), &v6()), in_v6, "SLL2");
        assert_eq!(content_of(101, &[], V4), v4, "RAW");
        assert_eq!(content_of(229, &[], &v6()), in_v6, "IPV6");
        assert_eq!(content_of(0, &[2, 0, 0, 0], V4), v4, "NULL");
        assert_eq!(content_of(105, &[], V4), None, "802.11");
    }

    #[test]
    fn a_cut_datagram_keeps_its_size_and_a_fragment_is_none() {
        assert_eq!(content_of(101, &[], &V4[..30]).unwrap().2, [1, 2]);
        assert_eq!(content_of(101, &[], &V4[..30]).unwrap().3, 4);
        let mut fragment = V4.to_vec();
        fragment[6] = 0x20;
        let packet = CapturedPacket { at_ns: 0, link_type: 101, bytes: &fragment };
        assert_eq!(content(&packet), Content::Fragment);
        for length in 0..20 {
            assert_eq!(content_of(101, &[], &V4[..length]), None);
        }
    }
}
