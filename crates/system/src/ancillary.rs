//! Reads and writes the ancillary data of sendmsg(2) and recvmsg(2) as bytes.
//!
//! rustix knows only descriptors and credentials, and socket2 gives the bytes to its caller. The layout is
//! the kernel's (`struct cmsghdr` of linux/socket.h, cmsg(3)). Each message begins at the end of the message
//! before it, rounded up to a machine word:
//!
//! ```text
//!  length: size_t (of header and payload) │ level: int │ type: int │ payload
//! ```
//!
//! Left out: all types but those that this crate asks the kernel for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::c_int;
use talkpath_units::Ecn;

/// The size of the buffer for the messages of one packet: stamps, and a packet info or an address.
pub(crate) const CAPACITY: usize = 256;

/// A buffer for ancillary data. It is aligned as `cmsghdr` is, which the kernel does not need but libc's
/// macros do.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Buffer(pub [u8; CAPACITY]);

/// One control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlMessage {
    /// SCM_TIMESTAMPNS or SCM_TIMESTAMPING: when the kernel took or sent the packet, ns of CLOCK_REALTIME.
    Stamp(i64),
    /// IP_PKTINFO or IPV6_PKTINFO: the address of this host that the packet came to.
    To(IpAddr),
    /// IP_TOS or IPV6_TCLASS: the byte with DSCP and ECN field that the packet came with.
    Tos(u8),
    /// IP_TTL or IPV6_HOPLIMIT: the TTL (or hop limit) of the packet.
    Ttl(u8),
}

impl Buffer {
    /// An empty buffer.
    pub(crate) const fn new() -> Self {
        Self([0; CAPACITY])
    }

    /// Writes the message that makes `from` the source address of a datagram, from byte `at` on. Returns the
    /// place of the next message.
    pub(crate) fn put_source(&mut self, at: usize, from: IpAddr) -> usize {
        match from {
            IpAddr::V4(ip) => {
                // in_pktinfo: interface, source address, destination address.
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                self.put(at, libc::IPPROTO_IP, libc::IP_PKTINFO, &info)
            }
            IpAddr::V6(ip) => {
                // in6_pktinfo: source address, interface.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                self.put(at, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info)
            }
        }
    }

    /// Writes the message that sets the byte with DSCP and ECN field of a datagram, from byte `at` on.
    /// `is_v6` is true for a datagram to an IPv6 address. Returns the place of the next message.
    pub(crate) fn put_tos(&mut self, at: usize, is_v6: bool, tos: u8) -> usize {
        let (level, kind) =
            if is_v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        self.put(at, level, kind, &c_int::from(tos).to_ne_bytes())
    }

    /// Writes the message that makes the kernel cut a payload into datagrams of `size` bytes, from byte `at`
    /// on. Returns the place of the next message.
    pub(crate) fn put_segment(&mut self, at: usize, size: u16) -> usize {
        self.put(at, libc::SOL_UDP, libc::UDP_SEGMENT, &size.to_ne_bytes())
    }

    fn put(&mut self, at: usize, level: c_int, kind: c_int, payload: &[u8]) -> usize {
        let length = HEADER + payload.len();
        let message = &mut self.0[at..at + length];
        message[..LEVEL].copy_from_slice(&length.to_ne_bytes());
        message[LEVEL..KIND].copy_from_slice(&level.to_ne_bytes());
        message[KIND..HEADER].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER..].copy_from_slice(payload);
        at + length.next_multiple_of(WORD)
    }
}

/// Lists the messages in `bytes`. Messages of other types are left out.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = ControlMessage> {
    core::iter::from_fn(move || {
        let (header, _) = bytes.split_at_checked(HEADER)?;
        let length = usize::from_ne_bytes(header[..LEVEL].try_into().ok()?);
        let level = c_int::from_ne_bytes(header[LEVEL..KIND].try_into().ok()?);
        let kind = c_int::from_ne_bytes(header[KIND..].try_into().ok()?);
        let payload = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(WORD)..).unwrap_or(&[]);
        Some(parse(level, kind, payload))
    })
    .flatten()
}

fn parse(level: c_int, kind: c_int, payload: &[u8]) -> Option<ControlMessage> {
    match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => nanoseconds(payload).map(ControlMessage::Stamp),
        // Three stamps. The first is the kernel's own, and zero if it made none.
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
            nanoseconds(&payload[..payload.len() / 3]).filter(|stamp| *stamp != 0).map(ControlMessage::Stamp)
        }
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let ip: [u8; 4] = payload.get(8..12)?.try_into().ok()?;
            Some(ControlMessage::To(IpAddr::V4(Ipv4Addr::from(ip))))
        }
        // A byte.
        (libc::IPPROTO_IP, libc::IP_TOS) => Some(ControlMessage::Tos(*payload.first()?)),
        // An int.
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => low_byte(payload).map(ControlMessage::Tos),
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
            low_byte(payload).map(ControlMessage::Ttl)
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let ip: [u8; 16] = payload.get(..16)?.try_into().ok()?;
            Some(ControlMessage::To(Ipv6Addr::from(ip).to_canonical()))
        }
        _ => None,
    }
}

/// Reads a byte that the kernel gives as an int.
fn low_byte(payload: &[u8]) -> Option<u8> {
    u8::try_from(c_int::from_ne_bytes(payload.get(..4)?.try_into().ok()?)).ok()
}

/// The ECN field, the two lowest bits of `byte` (RFC 3168 §5).
pub const fn ecn(byte: u8) -> Ecn {
    match byte & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// The codepoint ECT(0) in the byte that has the ECN field.
pub const ECT_0: c_int = 0b10;

/// Reads a `timespec`. Its two fields have 64 bits, or 32 bits on a machine of 32 bits.
fn nanoseconds(timespec: &[u8]) -> Option<i64> {
    let field = |bytes: &[u8]| match bytes.len() {
        8 => bytes.try_into().ok().map(i64::from_ne_bytes),
        4 => bytes.try_into().ok().map(i32::from_ne_bytes).map(i64::from),
        _ => None,
    };
    let (seconds, rest) = timespec.split_at(timespec.len() / 2);
    Some(field(seconds)?.saturating_mul(1_000_000_000).saturating_add(field(rest)?))
}

/// The places of the parts of a header.
const LEVEL: usize = size_of::<usize>();
const KIND: usize = LEVEL + size_of::<c_int>();
const HEADER: usize = KIND + size_of::<c_int>();
/// The end of each message is rounded up to a multiple of this.
const WORD: usize = size_of::<usize>();

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: c_int, kind: c_int, payload: &[u8]) -> Vec<u8> {
        let mut buffer = Buffer::new();
        let end = buffer.put(0, level, kind, payload);
        buffer.0[..end].to_vec()
    }

    fn timespec(seconds: i64, nanoseconds: i64) -> Vec<u8> {
        [seconds.to_ne_bytes(), nanoseconds.to_ne_bytes()].concat()
    }

    #[test]
    fn a_message_has_the_layout_of_the_c_macros() {
        let mut buffer = Buffer::new();
        let v4 = buffer.put_source(0, IpAddr::V4(Ipv4Addr::LOCALHOST));
        let v6 = buffer.put_source(0, IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!((v4, v6), (16 + 16, 16 + 24), "CMSG_SPACE of 12 and of 20 bytes");
        assert_eq!(buffer.0[..8], 36_u64.to_ne_bytes(), "CMSG_LEN of 20 bytes");
    }

    #[test]
    fn stamps_and_addresses_are_found_among_messages_of_other_types() {
        let mut bytes = message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &[1, 2, 3, 4]);
        bytes.extend(message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &timespec(3, 5)));
        let info = [1, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 7];
        bytes.extend(message(libc::IPPROTO_IP, libc::IP_PKTINFO, &info));
        let to = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        let found: Vec<_> = messages(&bytes).collect();
        assert_eq!(found, [ControlMessage::Stamp(3_000_000_005), ControlMessage::To(to)]);
    }

    #[test]
    fn dscp_ecn_and_ttl_are_found_in_ipv4s_byte_and_in_ipv6s_int() {
        for (field, expected) in
            [(0b00, Ecn::NotEct), (0b01, Ecn::Ect1), (0b10, Ecn::Ect0), (0b11, Ecn::Ce), (0xbb, Ecn::Ce)]
        {
            assert_eq!(ecn(field), expected);
            let int = c_int::from(field).to_ne_bytes();
            for (level, kind, payload, found) in [
                (libc::IPPROTO_IP, libc::IP_TOS, &[field][..], ControlMessage::Tos(field)),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &int, ControlMessage::Tos(field)),
                (libc::IPPROTO_IP, libc::IP_TTL, &int, ControlMessage::Ttl(field)),
                (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &int, ControlMessage::Ttl(field)),
            ] {
                let bytes = message(level, kind, payload);
                assert_eq!(messages(&bytes).collect::<Vec<_>>(), [found], "{field:#b}");
            }
        }
    }

    #[test]
    fn a_mapped_address_is_read_as_ipv4() {
        let mut info = Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped().octets().to_vec();
        info.extend([0; 4]);
        let bytes = message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        let to = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        assert_eq!(messages(&bytes).collect::<Vec<_>>(), [ControlMessage::To(to)]);
    }

    #[test]
    fn of_three_stamps_the_kernels_own_counts_and_zero_is_none() {
        let three = |first: Vec<u8>| [first, timespec(0, 0), timespec(9, 9)].concat();
        let read = |payload: &[u8]| {
            messages(&message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, payload)).collect::<Vec<_>>()
        };
        assert_eq!(read(&three(timespec(1, 2))), [ControlMessage::Stamp(1_000_000_002)]);
        assert_eq!(read(&three(timespec(0, 0))), []);
    }

    #[test]
    fn lengths_that_lie_end_the_list() {
        let whole = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &timespec(3, 5));
        assert_eq!(messages(&whole).count(), 1);
        for length in [0, 15, 1 << 20, u64::MAX] {
            let mut bytes = whole.clone();
            bytes[..8].copy_from_slice(&length.to_ne_bytes());
            bytes.extend(&whole);
            assert_eq!(messages(&bytes).count(), 0, "{length}");
        }
        assert_eq!(messages(&whole[..whole.len() - 1]).count(), 0, "cut short");
    }
}
