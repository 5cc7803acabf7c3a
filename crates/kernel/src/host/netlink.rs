//! Requests to rtnetlink(7) that make the hosts' devices, addresses and routes.
//!
//! A request is built before the fork, where it may allocate, and sent after the fork. So it must contain
//! every number that it needs. The caller chooses the indices of the devices and the descriptor of the
//! namespace.

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    DefaultNla, Emitable, ErrorBuffer, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NLMSG_ERROR, NetlinkBuffer, NetlinkHeader,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};
use talkpath_model::IpVersion;

/// The size of `nlmsghdr`, bytes.
pub(super) const NETLINK_HEADER: usize = 16;
/// The size of `nlmsghdr` with the number of an error behind it, bytes.
const NLMSGERR: usize = NETLINK_HEADER + 4;
/// linux/veth.h.
const VETH_INFO_PEER: u16 = 1;
/// RTAX_MTU, RTAX_INITCWND and RTAX_QUICKACK of linux/rtnetlink.h.
const RTAX_MTU: u16 = 2;
const RTAX_INITCWND: u16 = 11;
const RTAX_QUICKACK: u16 = 15;
/// FR_ACT_TO_TBL, FRA_IIFNAME, FRA_PRIORITY and FRA_TABLE of linux/fib_rules.h.
const FR_ACT_TO_TBL: u8 = 1;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_TABLE: u16 = 15;
/// The priority of our rule. We chose 1000 because the kernel's rule of local addresses has 0, and the
/// kernel's rule of the main table has 32766.
const RULE_PRIORITY: u32 = 1000;
/// The hardware address of every host. It is locally administered (IEEE 802). All hosts may have the same
/// address, because no two hosts are on one cable.
pub const HOST_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A request in the bytes that the kernel reads.
pub struct NetlinkRequest(Vec<u8>);

/// One end of a cable.
#[derive(Clone, Copy)]
pub struct CableEnd<'a> {
    /// The device's name.
    pub name: &'a CStr,
    /// The device's index in its namespace.
    pub index: u32,
}

/// The settings of a route. A value of zero leaves the setting to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// `initcwnd` (ip-route(8)): TCP's initial congestion window, in segments.
    pub initial_window: u32,
    /// `quickack`: true if every TCP segment is acknowledged at once.
    pub quick_acks: bool,
    /// `mtu`: the largest packet, if that is less than the device's.
    pub mtu: u32,
}

impl NetlinkRequest {
    /// Makes a cable from a host, in whose namespace the request is sent, to the emulator in the namespace
    /// behind the descriptor `between`.
    pub(crate) fn cable(
        host: CableEnd<'_>,
        emulator: CableEnd<'_>,
        between: BorrowedFd<'_>,
        mtu: u16,
    ) -> Self {
        let common = |end: CableEnd<'_>| {
            [
                attribute(libc::IFLA_IFNAME, end.name.to_bytes_with_nul()),
                number(libc::IFLA_MTU, mtu.into()),
                number(libc::IFLA_NUM_TX_QUEUES, 1),
                number(libc::IFLA_NUM_RX_QUEUES, 1),
            ]
        };
        let mut peer = common(emulator).to_vec();
        peer.push(attribute(libc::IFLA_NET_NS_FD, &between.as_raw_fd().to_ne_bytes()));
        let peer = nest(VETH_INFO_PEER, &interface_info(emulator.index, 0), &peer);
        let kind = attribute(libc::IFLA_INFO_KIND, b"veth");
        let data = nest(libc::IFLA_INFO_DATA, &[], &[peer]);
        let mut attributes = common(host).to_vec();
        attributes.push(attribute(libc::IFLA_ADDRESS, &HOST_HARDWARE));
        attributes.push(nest(libc::IFLA_LINKINFO, &[], &[kind, data]));
        let head = interface_info(host.index, 0);
        Self::new(libc::RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, &attributes)
    }

    /// Sets the MTU of a TUN device, and the number of packets that may wait in it.
    pub fn limits(index: u32, mtu: u16, queue: u32) -> Self {
        let attributes = [number(libc::IFLA_MTU, mtu.into()), number(libc::IFLA_TXQLEN, queue)];
        Self::new(libc::RTM_SETLINK, 0, &interface_info(index, 0), &attributes)
    }

    /// Brings a device up, without address resolution.
    pub(crate) fn bring_up(index: u32) -> Self {
        let flags = libc::IFF_UP | libc::IFF_NOARP;
        Self::new(libc::RTM_SETLINK, 0, &interface_info(index, flags as u32), &[])
    }

    /// Gives a device an address in a network of four addresses. For IPv6 there is no search for duplicates
    /// (RFC 4862 §5.4), because no other host is there.
    pub fn address(index: u32, address: IpAddr) -> Self {
        let RawAddress { family, octets, bits } = address.into();
        let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
        // ifaddrmsg: family, length of the prefix, flags, scope (the whole world), index.
        let mut head = [family, bits - 2, flags, libc::RT_SCOPE_UNIVERSE, 0, 0, 0, 0];
        head[4..].copy_from_slice(&index.to_ne_bytes());
        let attributes = [attribute(libc::IFA_LOCAL, &octets), attribute(libc::IFA_ADDRESS, &octets)];
        Self::new(libc::RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &head, &attributes)
    }

    /// Makes a route to the host `to` over a device.
    pub fn route(index: u32, to: IpAddr, route: Route) -> Self {
        let RawAddress { family, octets, bits } = to.into();
        let metrics: Vec<_> = [
            (RTAX_MTU, route.mtu),
            (RTAX_INITCWND, route.initial_window),
            (RTAX_QUICKACK, u32::from(route.quick_acks)),
        ]
        .into_iter()
        .filter(|(_, value)| *value != 0)
        .map(|(kind, value)| number(kind, value))
        .collect();
        let attributes = [
            attribute(libc::RTA_DST, &octets),
            number(libc::RTA_OIF, index),
            nest(libc::RTA_METRICS, &[], &metrics),
        ];
        Self::new_route(family, bits, libc::RT_TABLE_MAIN, &attributes)
    }

    /// Makes a default route over a device, in the routing table `table`. It names no gateway, because the
    /// device takes packets to every address.
    pub(super) fn default_route(index: u32, ip: IpVersion, table: u8) -> Self {
        Self::new_route(family(ip), 0, table, &[number(libc::RTA_OIF, index)])
    }

    fn new_route(family: u8, destination_bits: u8, table: u8, attributes: &[DefaultNla]) -> Self {
        // rtmsg: family, length of the destination and of the source, type of service, table, protocol,
        // scope, type, flags.
        let (protocol, scope, kind) = (libc::RTPROT_STATIC, libc::RT_SCOPE_LINK, libc::RTN_UNICAST);
        let head = [family, destination_bits, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
        Self::new(libc::RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &head, attributes)
    }

    /// Makes a rule (ip-rule(8)): packets that came in by `device` are routed by the table `table`.
    pub(super) fn rule(device: &CStr, ip: IpVersion, table: u8) -> Self {
        // fib_rule_hdr: family, length of the destination and of the source, type of service, table, two
        // reserved bytes, action, flags.
        let mut head = [0; 12];
        head[0] = family(ip);
        head[4] = table;
        head[7] = FR_ACT_TO_TBL;
        let attributes = [
            attribute(FRA_IIFNAME, device.to_bytes_with_nul()),
            number(FRA_PRIORITY, RULE_PRIORITY),
            number(FRA_TABLE, table.into()),
        ];
        Self::new(libc::RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &head, &attributes)
    }

    /// Makes a command of a generic netlink family (linux/genetlink.h).
    pub(super) fn generic(family: u16, command: u8, version: u8, attributes: &[DefaultNla]) -> Self {
        Self::new(family, 0, &[command, version, 0, 0], attributes)
    }

    /// The bytes of the request.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn new(kind: u16, flags: u16, head: &[u8], attributes: &[DefaultNla]) -> Self {
        let mut header = NetlinkHeader::default();
        header.message_type = kind;
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let body = with_attributes(head, attributes);
        header.length = (header.buffer_len() + body.len()) as u32;
        let mut bytes = vec![0; header.buffer_len()];
        header.emit(&mut bytes);
        bytes.extend(body);
        Self(bytes)
    }

    /// Sends the request to the namespace of `socket` and reads the answer. Fork-safe (`fork.rs`).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn send(&self, socket: &OwnedFd) -> io::Result<()> {
        if rustix::net::send(socket, &self.0, SendFlags::empty())? != self.0.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let mut answer = [0_u8; 512];
        let (length, _) = rustix::net::recv(socket, &mut answer[..], RecvFlags::empty())?;
        parse_answer(&answer[..length])
    }
}

/// Reads the kernel's answer to a request, which is a success or an error. It must not allocate, so it checks
/// the length of the answer itself instead of using the library's check.
fn parse_answer(answer: &[u8]) -> io::Result<()> {
    let is_whole = answer.len() >= NLMSGERR && answer.len() >= NetlinkBuffer::new(answer).length() as usize;
    if !is_whole || NetlinkBuffer::new(answer).message_type() != NLMSG_ERROR {
        return Err(io::ErrorKind::InvalidData.into());
    }
    match ErrorBuffer::new(&answer[NETLINK_HEADER..]).code() {
        None => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code.get())),
    }
}

/// Makes a socket for requests to the caller's namespace. Fork-safe.
///
/// # Errors
/// Returns the system's error.
pub fn route_socket() -> io::Result<OwnedFd> {
    // NETLINK_ROUTE is the protocol with the number zero, which is also the number of no protocol.
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// An IP address in the form of netlink's messages.
struct RawAddress {
    /// AF_INET or AF_INET6.
    family: u8,
    octets: Vec<u8>,
    /// The number of bits of the address.
    bits: u8,
}

impl From<IpAddr> for RawAddress {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(ip) => Self { family: libc::AF_INET as u8, octets: ip.octets().to_vec(), bits: 32 },
            IpAddr::V6(ip) => Self { family: libc::AF_INET6 as u8, octets: ip.octets().to_vec(), bits: 128 },
        }
    }
}

pub(super) fn attribute(kind: u16, value: &[u8]) -> DefaultNla {
    DefaultNla::new(kind, value.to_vec())
}

pub(super) fn number(kind: u16, value: u32) -> DefaultNla {
    attribute(kind, &value.to_ne_bytes())
}

/// Makes an attribute that contains `head` and other attributes.
pub(super) fn nest(kind: u16, head: &[u8], attributes: &[DefaultNla]) -> DefaultNla {
    DefaultNla::new(kind, with_attributes(head, attributes))
}

fn with_attributes(head: &[u8], attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = head.to_vec();
    bytes.resize(head.len() + attributes.buffer_len(), 0);
    attributes.emit(&mut bytes[head.len()..]);
    bytes
}

/// Makes an `ifinfomsg`. Without a mask of changes, the device has exactly these flags afterwards.
fn interface_info(index: u32, flags: u32) -> [u8; 16] {
    // Family, padding, type, index, flags, mask of changes.
    let mut info = [0; 16];
    info[4..8].copy_from_slice(&index.to_ne_bytes());
    info[8..12].copy_from_slice(&flags.to_ne_bytes());
    info
}

const fn family(ip: IpVersion) -> u8 {
    match ip {
        IpVersion::V4 => libc::AF_INET as u8,
        IpVersion::V6 => libc::AF_INET6 as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u16, code: i32) -> Vec<u8> {
        let mut bytes = vec![0; NLMSGERR];
        bytes[..4].copy_from_slice(&(NLMSGERR as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[16..].copy_from_slice(&code.to_ne_bytes());
        bytes
    }

    #[test]
    fn an_answer_is_none_an_error_or_no_answer() {
        assert!(parse_answer(&answer(NLMSG_ERROR, 0)).is_ok());
        let refused = parse_answer(&answer(NLMSG_ERROR, -libc::EPERM)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        for bytes in [Vec::new(), answer(NLMSG_ERROR, 0)[..19].to_vec(), answer(libc::RTM_NEWLINK, 0)] {
            assert_eq!(parse_answer(&bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_request_is_as_long_as_its_header_says_and_its_attributes_are_aligned() {
        let NetlinkRequest(bytes) = NetlinkRequest::route(7, IpAddr::from([192, 0, 2, 1]), Route::default());
        assert_eq!(NetlinkBuffer::new(&bytes[..]).length() as usize, bytes.len());
        // Destination, device, and no metric.
        let attributes = [8, 0, 1, 0, 192, 0, 2, 1, 8, 0, 4, 0, 7, 0, 0, 0, 4, 0, 8, 0];
        assert_eq!(bytes[28..], attributes);
    }

    #[test]
    fn a_rule_names_its_device_and_its_table() {
        let NetlinkRequest(bytes) = NetlinkRequest::rule(c"abc", IpVersion::V6, 100);
        assert_eq!(NetlinkBuffer::new(&bytes[..]).length() as usize, bytes.len());
        assert_eq!(bytes[16..28], [10, 0, 0, 0, 100, 0, 0, 1, 0, 0, 0, 0]);
        let attributes =
            [8, 0, 3, 0, b'a', b'b', b'c', 0, 8, 0, 6, 0, 232, 3, 0, 0, 8, 0, 15, 0, 100, 0, 0, 0];
        assert_eq!(bytes[28..], attributes);
    }
}
