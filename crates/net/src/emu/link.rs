//! The hosts' devices: a virtual Ethernet cable (veth(4)) from each host to the emulator, addresses and routes.
//!
//! ```text
//!  host's namespace                                 namespace between the hosts, for the emulator's ends alone
//!   talkpath, 192.0.2.x ─── cable ───────────────── host1, host2: no address, nobody but the packet socket listens
//! ```
//!
//! No end asks for hardware addresses (IFF_NOARP): the kernel then puts its own into what it sends, and the emulator the one
//! that all hosts have here into what it hands over. A host's end does not offer to cut super-packets (TSO, USO), so that the
//! kernel cuts them before its device and each packet of them is stamped; the emulator's end does offer, for trains.
//!
//! The benchmark that carries packets as mahimahi does has its TUN devices.
//!
//! Everything here is "after fork" (`sys.rs`): it allocates nothing and takes no lock. Left out: IPv6, queues (a cable has
//! none), hardware receive offload (GRO is off, as veth has it: segments stay one by one).
#![expect(unsafe_code, reason = "ioctl and rtnetlink have no safe wrapper; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::ring::{self, Layout};
use super::sys::{check, open, open_file};

/// Where the emulator's ends of the cables are: the namespace that the caller was in when it was made.
pub(super) struct Between {
    namespace: OwnedFd,
    /// A socket from there, by which devices there are spoken of from anywhere.
    control: OwnedFd,
}

/// What a route says; zero leaves it to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    /// `initcwnd` (ip-route(8)): TCP's initial congestion window, in segments.
    pub(super) initial_window: u32,
    /// `quickack`: whether every TCP segment is acknowledged at once.
    pub(super) quick_acks: bool,
    /// `mtu`: the largest packet, where that is less than the device's.
    pub(super) mtu: u32,
}

/// `struct ifreq` of linux/if.h: a name and 24 bytes of whatever the request is about.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; 16],
    value: [u8; 24],
}

impl Between {
    /// The namespace that the caller is in.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn here() -> io::Result<Self> {
        Ok(Self { namespace: open_file(c"/proc/thread-self/ns/net")?, control: control_socket()? })
    }

    /// Lays a cable from the namespace that the caller is in now to the emulator, whose end has the packet socket `tap`, made
    /// in the namespace between. The host gets `address`. Returns the index of the host's device.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn attach(
        &self,
        (name, peer): (&CStr, &CStr),
        tap: &OwnedFd,
        address: Ipv4Addr,
        mtu: u16,
    ) -> io::Result<i32> {
        self.lay_cable(name, peer, mtu)?;
        let here = control_socket()?;
        // This end first: a device that comes up beside one that is down waits for the kernel's link watch, up to a second.
        bring_up(&self.control, peer)?;
        // A packet socket that is bound to a device that is down has an error waiting.
        ring::listen(tap, index(&self.control, peer)?, Layout::of(mtu))?;
        set(&here, name, libc::SIOCSIFADDR, &inet_address(address))?;
        set(&here, name, libc::SIOCSIFNETMASK, &inet_address(NETWORK_OF_FOUR))?;
        cut_in_software(&here, name)?;
        bring_up(&here, name)?;
        index(&here, name)
    }

    fn lay_cable(&self, name: &CStr, peer: &CStr, mtu: u16) -> io::Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Request::new(libc::RTM_NEWLINK, flags, &[0; INTERFACE_INFO]);
        let mtu = u32::from(mtu).to_ne_bytes();
        let one = 1_u32.to_ne_bytes();
        request.attribute(libc::IFLA_IFNAME, name.to_bytes_with_nul());
        request.attribute(libc::IFLA_ADDRESS, &HOST_HARDWARE);
        request.attribute(libc::IFLA_MTU, &mtu);
        request.attribute(libc::IFLA_NUM_TX_QUEUES, &one);
        request.attribute(libc::IFLA_NUM_RX_QUEUES, &one);
        let info = request.open(libc::IFLA_LINKINFO);
        request.attribute(libc::IFLA_INFO_KIND, b"veth");
        let data = request.open(libc::IFLA_INFO_DATA);
        let other = request.open(VETH_INFO_PEER);
        request.put(&[0; INTERFACE_INFO]);
        request.attribute(libc::IFLA_IFNAME, peer.to_bytes_with_nul());
        request.attribute(libc::IFLA_MTU, &mtu);
        request.attribute(libc::IFLA_NUM_TX_QUEUES, &one);
        request.attribute(libc::IFLA_NUM_RX_QUEUES, &one);
        request.attribute(libc::IFLA_NET_NS_FD, &self.namespace.as_raw_fd().to_ne_bytes());
        for nest in [other, data, info] {
            request.close(nest);
        }
        request.send()
    }
}

/// Makes a TUN device (Documentation/networking/tuntap.rst of the kernel) of the namespace that the caller is in, with the
/// address of its host.
///
/// # Errors
/// The system's.
pub(super) fn open_tun(name: &CStr, address: Ipv4Addr, mtu: u16) -> io::Result<OwnedFd> {
    let tun = open(c"/dev/net/tun", libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC)?;
    let mut request = InterfaceRequest::new(name);
    request.value[..2].copy_from_slice(&(libc::IFF_TUN as i16).to_ne_bytes());
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which `request` is.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let here = control_socket()?;
    let mut head = [0; INTERFACE_INFO];
    head[4..8].copy_from_slice(&index(&here, name)?.to_ne_bytes());
    let mut request = Request::new(libc::RTM_NEWLINK, 0, &head);
    request.attribute(libc::IFLA_MTU, &u32::from(mtu).to_ne_bytes());
    request.attribute(libc::IFLA_TXQLEN, &TUN_QUEUE.to_ne_bytes());
    request.send()?;
    set(&here, name, libc::SIOCSIFADDR, &inet_address(address))?;
    set(&here, name, libc::SIOCSIFNETMASK, &inet_address(NETWORK_OF_FOUR))?;
    bring_up(&here, name)?;
    Ok(tun)
}

/// Makes a route to the host `to` over the device `index`.
///
/// # Errors
/// The system's.
pub(super) fn add_route(index: i32, to: Ipv4Addr, route: Route) -> io::Result<()> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    // rtmsg: family, length of the destination and of the source, type of service, table, protocol, scope, type, flags.
    let mut head = [0; 12];
    head[0] = libc::AF_INET as u8;
    head[1] = 32;
    head[4] = libc::RT_TABLE_MAIN;
    head[5] = libc::RTPROT_STATIC;
    head[6] = libc::RT_SCOPE_LINK;
    head[7] = libc::RTN_UNICAST;
    let mut request = Request::new(libc::RTM_NEWROUTE, flags, &head);
    request.attribute(libc::RTA_DST, &to.octets());
    request.attribute(libc::RTA_OIF, &index.to_ne_bytes());
    let metrics = request.open(libc::RTA_METRICS);
    for (kind, value) in [
        (RTAX_MTU, route.mtu),
        (RTAX_INITCWND, route.initial_window),
        (RTAX_QUICKACK, u32::from(route.quick_acks)),
    ] {
        if value != 0 {
            request.attribute(kind, &value.to_ne_bytes());
        }
    }
    request.close(metrics);
    request.send()
}

/// Has the kernel cut super-packets before this device: a packet of its own on the cable for each.
fn cut_in_software(control: &OwnedFd, name: &CStr) -> io::Result<()> {
    // ethtool_gstrings: command, which set, how many; then the names, each in 32 bytes.
    let mut strings = Words([0; 3 + 8 * MOST_FEATURES]);
    strings.0[..2].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES]);
    // ethtool_sset_info: command, reserved, a mask of sets, then how many strings the set has.
    let mut set_info = Words([0; 6]);
    set_info.0[0] = ETHTOOL_GSSET_INFO;
    set_info.0[2..4].copy_from_slice(&words_of(1 << ETH_SS_FEATURES));
    ethtool(control, name, &mut set_info)?;
    let count = set_info.0[4] as usize;
    if count > MOST_FEATURES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    strings.0[2] = count as u32;
    ethtool(control, name, &mut strings)?;
    // ethtool_sfeatures: command, how many blocks; for each 32 features which are meant, and which of them shall be on.
    let mut features = Words([0; 2 + 2 * MOST_FEATURES / 32]);
    features.0[..2].copy_from_slice(&[ETHTOOL_SFEATURES, count.div_ceil(32) as u32]);
    for (feature, words) in strings.0[3..].chunks_exact(8).take(count).enumerate() {
        let mut text = [0; 32];
        for (to, word) in text.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        if text.starts_with(b"tx-tcp") || text.starts_with(b"tx-udp-segmentation") {
            features.0[2 + 2 * (feature / 32)] |= 1 << (feature % 32);
        }
    }
    ethtool(control, name, &mut features)
}

/// The halves of a 64-bit field among 32-bit ones.
fn words_of(value: u64) -> [u32; 2] {
    let bytes = value.to_ne_bytes();
    let half = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    [u32::from_ne_bytes(half(0)), u32::from_ne_bytes(half(4))]
}

/// A command of linux/ethtool.h with its fields.
#[repr(C, align(8))]
struct Words<const N: usize>([u32; N]);

fn ethtool<const N: usize>(control: &OwnedFd, name: &CStr, words: &mut Words<N>) -> io::Result<()> {
    let mut request = InterfaceRequest::new(name);
    request.value[..size_of::<usize>()].copy_from_slice(&(&raw mut *words).addr().to_ne_bytes());
    (&raw mut *words).expose_provenance();
    // SAFETY: SIOCETHTOOL reads one `ifreq`, which `request` is; the command behind its pointer is in `words`, exclusively
    // borrowed, and each of the callers above gives it the room that the kernel writes for it.
    check(unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) }.min(0))
}

fn bring_up(control: &OwnedFd, name: &CStr) -> io::Result<()> {
    let flags = (libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_NOARP) as i16;
    set(control, name, libc::SIOCSIFFLAGS, &flags.to_ne_bytes())
}

fn set(control: &OwnedFd, name: &CStr, what: libc::c_ulong, value: &[u8]) -> io::Result<()> {
    let mut interface = InterfaceRequest::new(name);
    interface.value[..value.len()].copy_from_slice(value);
    // SAFETY: each of the callers' requests reads one `ifreq`, which `interface` is.
    check(unsafe { libc::ioctl(control.as_raw_fd(), what as _, &raw mut interface) })
}

fn index(control: &OwnedFd, name: &CStr) -> io::Result<i32> {
    let mut interface = InterfaceRequest::new(name);
    // SAFETY: SIOCGIFINDEX writes one `ifreq`, which `interface` is.
    check(unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCGIFINDEX as _, &raw mut interface) })?;
    let [a, b, c, d, ..] = interface.value;
    Ok(i32::from_ne_bytes([a, b, c, d]))
}

fn control_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)
}

/// A socket of the namespace that the caller is in.
///
/// # Errors
/// The system's.
pub(super) fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: `socket` takes no pointers.
    let fd = unsafe { libc::socket(family, kind, protocol) };
    check(fd.min(0))?;
    // SAFETY: the call has just given us this descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A request to rtnetlink(7): nlmsghdr, a fixed part, attributes, some of which hold others.
struct Request {
    bytes: [u8; 256],
    length: usize,
}

impl Request {
    fn new(kind: u16, flags: libc::c_int, head: &[u8]) -> Self {
        let mut request = Self { bytes: [0; 256], length: NETLINK_HEADER };
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        request.bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        request.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        request.put(head);
        request
    }

    /// Appends bytes, and what fills them up to four; all that is put here fits by far.
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len().next_multiple_of(4);
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let at = self.open(kind);
        self.put(value);
        let length = (ATTRIBUTE_HEADER + value.len()) as u16;
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
    }

    /// Begins an attribute that holds others; returns what closes it.
    fn open(&mut self, kind: u16) -> usize {
        let at = self.length;
        self.bytes[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        self.length += ATTRIBUTE_HEADER;
        at
    }

    fn close(&mut self, at: usize) {
        let length = (self.length - at) as u16;
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
    }

    /// Sends it and reads the answer.
    fn send(mut self) -> io::Result<()> {
        let length = (self.length as u32).to_ne_bytes();
        self.bytes[..4].copy_from_slice(&length);
        let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE)?;
        // SAFETY: the pointer is to `self.length` live bytes of the request, which the kernel reads.
        let sent = unsafe { libc::send(socket.as_raw_fd(), self.bytes.as_ptr().cast(), self.length, 0) };
        if sent != self.length as isize {
            return Err(io::Error::last_os_error());
        }
        let mut answer = [0_u8; 512];
        // SAFETY: the pointer is to 512 live bytes, exclusively borrowed, which the kernel writes at most.
        let received = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        if received < 20 {
            return Err(io::Error::last_os_error());
        }
        // nlmsgerr: zero, or the error's number below zero.
        match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// The first 8 bytes of a `sockaddr_in`: family, no port, address.
fn inet_address(address: Ipv4Addr) -> [u8; 8] {
    let family = (libc::AF_INET as u16).to_ne_bytes();
    let [a, b, c, d] = address.octets();
    [family[0], family[1], 0, 0, a, b, c, d]
}

impl InterfaceRequest {
    fn new(name: &CStr) -> Self {
        let mut request = Self { name: [0; 16], value: [0; 24] };
        // The last byte stays zero: names are shorter.
        for (to, from) in request.name[..15].iter_mut().zip(name.to_bytes()) {
            *to = *from;
        }
        request
    }
}

/// The hardware address of every host: locally administered (IEEE 802), and no two hosts are on one cable.
pub(super) const HOST_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Sizes of `nlmsghdr`, `ifinfomsg` and `rtattr`.
const NETLINK_HEADER: usize = 16;
const INTERFACE_INFO: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// Packets that wait in a TUN device (chosen: a flood's of some tens of milliseconds).
const TUN_QUEUE: u32 = 32_768;
/// linux/veth.h.
const VETH_INFO_PEER: u16 = 1;
/// linux/ethtool.h.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// Twice what Linux 6.18 has.
const MOST_FEATURES: usize = 128;
/// RTAX_MTU, RTAX_INITCWND and RTAX_QUICKACK of linux/rtnetlink.h.
const RTAX_MTU: u16 = 2;
const RTAX_INITCWND: u16 = 11;
const RTAX_QUICKACK: u16 = 15;
/// 255.255.255.252: the two hosts and nobody else.
const NETWORK_OF_FOUR: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 252);
