//! The hosts' devices: a virtual Ethernet cable (veth(4)) from each host to the emulator, addresses and
//! routes.
//!
//! ```text
//!  host's namespace                         namespace between the hosts, for the emulator's ends alone
//!   talkpath, an address ── cable ───────── host1, host2: no address, nobody but the packet socket listens
//! ```
//!
//! No end resolves hardware addresses (IFF_NOARP). The kernel writes its own hardware address into the
//! packets that it sends. The emulator writes the hardware address that all hosts have here into the packets
//! that it hands over. A host's end does not offer to cut super-packets (TSO, USO), so the kernel cuts them
//! before its device and each packet is stamped. The emulator's end does offer it, for trains.
//!
//! The benchmark that carries packets as mahimahi does uses TUN devices.
//!
//! The requests that the child sends are built before the fork ([`CableRequests`], [`TunRequests`]). The
//! functions that send them are fork-safe (`fork.rs`). Queues are left out, because a cable has none.
//! Hardware receive offload is left out, because GRO is off at a veth and segments stay separate.
#![expect(unsafe_code, reason = "these ioctls have no safe wrapper; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::time::Timespec;
use talkpath_model::IpVersion;

use super::fork::open_file;
use super::netlink::{CableEnd, NetlinkRequest, Route, route_socket};
use super::ring::{self, Layout};

/// The name of the device on both hosts.
const DEVICE: &CStr = c"talkpath";
/// The index of the device on both hosts. Kernel modules may make devices of their own in each new namespace
/// (`sit0`, `tunl0`). Those devices have the lowest indices, so we chose a higher one.
const HOST_INDEX: u32 = 1000;
/// The loopback device has this index in each network namespace (net/core/dev.c).
const LOOPBACK_INDEX: u32 = 1;
/// The routing table for packets that a host forwards. We chose 100, which is free in a new namespace.
const FORWARDING_TABLE: u8 = 100;
const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// The emulator's end of the cable of each host.
pub const FAR_ENDS: [CableEnd<'_>; 2] =
    [CableEnd { name: c"host1", index: 1001 }, CableEnd { name: c"host2", index: 1002 }];
/// The largest number of packets that wait in a TUN device. We chose 32,768, which are the packets of a flood
/// in some tens of milliseconds.
const TUN_QUEUE: u32 = 32_768;
/// linux/ethtool.h.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// The beginnings of the names of the features that a host's end does not have (net/ethtool/common.c):
/// cutting of super-packets, and SCTP's checksum, whose place a `virtio_net_hdr` cannot say.
const LEFT_OUT_FEATURES: [&[u8]; 3] = [b"tx-tcp", b"tx-udp-segmentation", b"tx-checksum-sctp"];
/// The largest number of features of a device. We chose 128, which is twice the number of Linux 6.18.
const MAX_FEATURES: usize = 128;
/// The size of the buffer for the routes of a host with two devices, bytes. We chose 8192, because there are
/// some ten lines of 150 B.
const ROUTES_TEXT: usize = 8192;
/// The largest number of looks for an address. We chose 5000, which take 5 s, because a busy machine needed
/// 0.8 s.
const MAX_LOOKS: u32 = 5000;
/// The time between two looks.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The namespace with the emulator's ends of the cables.
pub struct Between {
    /// The descriptor of the namespace. The requests for cables contain its number. Before the fork it is a
    /// placeholder.
    namespace: OwnedFd,
    /// The socket for requests to the namespace. `None` before the namespace exists.
    requests: Option<OwnedFd>,
}

/// The requests to rtnetlink(7) for a host's cable.
pub struct CableRequests {
    make: NetlinkRequest,
    bring_up_far_end: NetlinkRequest,
    /// The requests for the host's address, and for its second address if it has one.
    addresses: Vec<NetlinkRequest>,
    bring_up: NetlinkRequest,
    /// The index of the emulator's end.
    far_index: u32,
    largest_packet: u16,
    /// The ethertype of the packets that the packet socket receives.
    ethertype: u16,
    /// The beginning of each IPv6 address's line in /proc/net/ipv6_route. Empty for IPv4.
    local_routes: Vec<Box<[u8]>>,
}

/// The requests to rtnetlink(7) for a host's TUN device.
pub struct TunRequests {
    limits: NetlinkRequest,
    address: NetlinkRequest,
    bring_up: NetlinkRequest,
}

/// `struct ifreq` of linux/if.h: the name of a device, and 24 bytes whose meaning depends on the request.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; 16],
    value: [u8; 24],
}

impl Between {
    /// Makes a placeholder for a namespace that does not exist yet.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn placeholder() -> io::Result<Self> {
        Ok(Self { namespace: open_file(c"/dev/null")?, requests: None })
    }

    /// Replaces the placeholder by the caller's namespace. Fork-safe.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn use_callers_namespace(&mut self) -> io::Result<()> {
        let here = open_file(c"/proc/thread-self/ns/net")?;
        rustix::io::dup3(here, &mut self.namespace, rustix::io::DupFlags::CLOEXEC)?;
        self.requests = Some(route_socket()?);
        Ok(())
    }

    /// Makes a cable from the namespace of the caller to this namespace. The emulator's end of the cable gets
    /// the packet socket `tap`, which was made in this namespace. Fork-safe.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn attach(&self, cable: &CableRequests, tap: &OwnedFd) -> io::Result<()> {
        let here = route_socket()?;
        let between = self.requests.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        cable.make.send(&here)?;
        // The emulator's end comes up first. A device that comes up while the other end is down waits for the
        // kernel's link watch, up to a second.
        cable.bring_up_far_end.send(between)?;
        // The packet socket is bound only now, because one that is bound to a device that is down gets an
        // error.
        ring::listen(tap, cable.far_index, cable.ethertype, Layout::of(cable.largest_packet))?;
        for address in &cable.addresses {
            address.send(&here)?;
        }
        cut_in_software(&control_socket()?, DEVICE)?;
        cable.bring_up.send(&here)?;
        cable.local_routes.iter().try_for_each(|route| await_address(route))
    }
}

impl CableRequests {
    /// Makes the requests for a host's cable to `between`, and for the host's `addresses`. There is at least
    /// one address. `far` is the emulator's end of the cable, one of [`FAR_ENDS`].
    pub fn new(between: &Between, far: CableEnd<'_>, addresses: &[IpAddr], largest_packet: u16) -> Self {
        let near = CableEnd { name: DEVICE, index: HOST_INDEX };
        Self {
            make: NetlinkRequest::cable(near, far, between.namespace.as_fd(), largest_packet),
            bring_up_far_end: NetlinkRequest::bring_up(far.index),
            addresses: addresses.iter().map(|to| NetlinkRequest::address(near.index, *to)).collect(),
            bring_up: NetlinkRequest::bring_up(near.index),
            far_index: far.index,
            largest_packet,
            ethertype: common_ethertype(addresses),
            local_routes: addresses
                .iter()
                .filter_map(|address| match address {
                    IpAddr::V4(_) => None,
                    IpAddr::V6(address) => Some(local_route(*address)),
                })
                .collect(),
        }
    }
}

/// The beginning of the line of `address` in /proc/net/ipv6_route. It has the destination in 32 hexadecimal
/// digits, and the length of the prefix, which is 128 bits.
fn local_route(address: Ipv6Addr) -> Box<[u8]> {
    format!("{:032x} 80 ", u128::from(address)).into_bytes().into()
}

/// Waits until the host takes packets to its IPv6 address. The kernel adds the address to its tables in a
/// thread of its own (`addrconf_dad_work` of net/ipv6/addrconf.c), late if the machine is busy. It drops
/// packets that come before. Fork-safe.
fn await_address(local_route: &[u8]) -> io::Result<()> {
    for _ in 0..MAX_LOOKS {
        let file = open_file(c"/proc/thread-self/net/ipv6_route")?;
        let (mut text, mut length) = ([0; ROUTES_TEXT], 0);
        while length < text.len() {
            match rustix::io::read(&file, &mut text[length..])? {
                0 => break,
                more => length += more,
            }
        }
        if text[..length].split(|byte| *byte == b'\n').any(|line| line.starts_with(local_route)) {
            return Ok(());
        }
        // A signal may end the sleep early. The next look is then sooner.
        let _ = rustix::thread::nanosleep(&LOOK_INTERVAL);
    }
    Err(rustix::io::Errno::TIMEDOUT.into())
}

impl TunRequests {
    /// Makes the requests for the device of a host with this address.
    pub fn new(address: IpAddr, mtu: u16) -> Self {
        Self {
            limits: NetlinkRequest::limits(HOST_INDEX, mtu, TUN_QUEUE),
            address: NetlinkRequest::address(HOST_INDEX, address),
            bring_up: NetlinkRequest::bring_up(HOST_INDEX),
        }
    }

    /// Makes the device (Documentation/networking/tuntap.rst of the kernel) in the namespace of the caller.
    /// Fork-safe.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let tun = rustix::fs::open(c"/dev/net/tun", flags, Mode::empty())?;
        let mut request = InterfaceRequest::new(DEVICE);
        request.value[..2].copy_from_slice(&(libc::IFF_TUN as i16).to_ne_bytes());
        let index = HOST_INDEX;
        // SAFETY: TUNSETIFINDEX reads one `unsigned int`. TUNSETIFF reads and writes one `ifreq`, which
        // `request` is.
        unsafe {
            check(libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFINDEX, &raw const index))?;
            check(libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request))?;
        }
        let here = route_socket()?;
        for request in [&self.limits, &self.address, &self.bring_up] {
            request.send(&here)?;
        }
        Ok(tun)
    }
}

/// The ethertype of the packets of this version of IP (RFC 894, RFC 2464).
pub const fn ethertype(is_v6: bool) -> u16 {
    (if is_v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP }) as u16
}

/// The ethertype of the packets between these addresses. If the addresses have both versions of IP, it is
/// ETH_P_ALL, with which a packet socket receives packets of each type. Such a socket does not receive what
/// it sends itself, because PACKET_QDISC_BYPASS is on.
fn common_ethertype(addresses: &[IpAddr]) -> u16 {
    let count = addresses.iter().filter(|address| address.is_ipv6()).count();
    if count > 0 && count < addresses.len() { libc::ETH_P_ALL as u16 } else { ethertype(count > 0) }
}

/// The request that brings up the loopback device of a namespace, which programs of the user need.
pub fn loopback_request() -> NetlinkRequest {
    NetlinkRequest::bring_up(LOOPBACK_INDEX)
}

/// The request for a route from a host to the host `to`, sent in the namespace of the former.
pub fn route_request(to: IpAddr, route: Route) -> NetlinkRequest {
    NetlinkRequest::route(HOST_INDEX, to, route)
}

/// The requests that give a host a default route to the other host, one for each version of IP. They are sent
/// in the namespace of the host.
pub fn default_route_requests() -> [NetlinkRequest; 2] {
    BOTH.map(|ip| NetlinkRequest::default_route(HOST_INDEX, ip, libc::RT_TABLE_MAIN))
}

/// The requests by which a host forwards packets from its cable to another device of this `index`, which has
/// no address and resolves none. They are sent in the namespace of the host. Packets of the host's own do not
/// go there.
pub fn forwarding_requests(index: u32) -> Vec<NetlinkRequest> {
    let routes = BOTH.into_iter().flat_map(|ip| {
        [
            NetlinkRequest::default_route(index, ip, FORWARDING_TABLE),
            NetlinkRequest::rule(DEVICE, ip, FORWARDING_TABLE),
        ]
    });
    core::iter::once(NetlinkRequest::bring_up(index)).chain(routes).collect()
}

/// Makes the kernel cut super-packets before the device `name`, so that each of their segments is a packet on
/// the cable. It uses ioctl(2), because ethtool's netlink family came only with Linux 5.6.
fn cut_in_software(control: &OwnedFd, name: &CStr) -> io::Result<()> {
    // ethtool_gstrings: command, set and number of names, and then the names of 32 bytes each.
    let mut strings = Words([0; 3 + 8 * MAX_FEATURES]);
    strings.0[..2].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES]);
    // ethtool_sset_info: command, reserved word, mask of sets, and then the number of names in the set.
    let mut set_info = Words([0; 6]);
    set_info.0[0] = ETHTOOL_GSSET_INFO;
    set_info.0[2..4].copy_from_slice(&words_of(1 << ETH_SS_FEATURES));
    ethtool(control, name, &mut set_info)?;
    let count = set_info.0[4] as usize;
    if count > MAX_FEATURES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    strings.0[2] = count as u32;
    ethtool(control, name, &mut strings)?;
    // ethtool_sfeatures: command and number of blocks. A block has two words for 32 features: which features
    // the command changes, and which of these are on. All that it changes here is off.
    let mut features = Words([0; 2 + 2 * MAX_FEATURES / 32]);
    features.0[..2].copy_from_slice(&[ETHTOOL_SFEATURES, count.div_ceil(32) as u32]);
    for (feature, words) in strings.0[3..].chunks_exact(8).take(count).enumerate() {
        let mut text = [0; 32];
        for (to, word) in text.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let is_left_out = |name: &&[u8]| text.starts_with(name);
        if LEFT_OUT_FEATURES.iter().any(is_left_out) {
            features.0[2 + 2 * (feature / 32)] |= 1 << (feature % 32);
        }
    }
    ethtool(control, name, &mut features)
}

/// The two words of a 64-bit field.
fn words_of(value: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

/// A command of linux/ethtool.h with its fields.
#[repr(C, align(8))]
struct Words<const N: usize>([u32; N]);

fn ethtool<const N: usize>(control: &OwnedFd, name: &CStr, words: &mut Words<N>) -> io::Result<()> {
    let mut request = InterfaceRequest::new(name);
    request.value[..size_of::<usize>()].copy_from_slice(&(&raw mut *words).addr().to_ne_bytes());
    (&raw mut *words).expose_provenance();
    // SAFETY: SIOCETHTOOL reads one `ifreq`, which `request` is. The pointer in `request` leads to the
    // command in `words`, which is borrowed exclusively. Each caller makes `words` as large as what the
    // kernel writes.
    check(unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })
}

fn control_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl InterfaceRequest {
    fn new(name: &CStr) -> Self {
        let mut request = Self { name: [0; 16], value: [0; 24] };
        // A name ends with a zero byte, so the last byte stays zero.
        for (to, from) in request.name[..15].iter_mut().zip(name.to_bytes()) {
            *to = *from;
        }
        request
    }
}
