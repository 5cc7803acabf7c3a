//! The two hosts: network namespaces without a name. Only the emulator joins them.
//!
//! ```text
//!   this process                      a child, for some milliseconds
//!    plan the sockets ── fork ──►      unshare ─► between the hosts: a packet socket for each
//!    receive          ◄── SCM_RIGHTS   unshare ─► first host:  cable to its packet socket, address, sockets
//!    wait for the child                unshare ─► second host: the same
//!                                      exit
//! ```
//!
//! A network namespace lives as long as a descriptor from it is open. This process has the only descriptors.
//! So however this process ends, the kernel removes the namespaces, devices, addresses and routes. Nothing
//! has a name on disk, and there is nothing to clean up.
//!
//! The child makes it possible to run without root. Only a process with one thread may enter a user namespace
//! (unshare(2), EINVAL), and this process has several. A socket stays in the namespace in which it was made,
//! so this process can use the sockets that the child has made.

mod child;
mod failure;
mod socket;

use std::borrow::Cow;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use talkpath_arena::ArenaError;
use talkpath_kernel::descriptors;
use talkpath_kernel::host::fork;
use talkpath_kernel::host::netlink::Route;
use talkpath_kernel::host::path_manager::PathManager;
use talkpath_kernel::host::ring;
use talkpath_kernel::udp_drops::UdpErrors;
use talkpath_model::IpVersion;

use crate::packet::{FIRST_PORT, Host};
use child::{Found, ROUTE_UNSET, Wanted, be_helper};
use failure::{Step, unavailable};
pub(super) use socket::SocketPlan;

/// The two hosts.
pub(super) struct World {
    /// The packet sockets at the emulator's ends of the hosts' cables, or the TUN devices. The first host's
    /// comes first.
    pub(super) devices: [OwnedFd; 2],
    /// The size of the largest packet of either host. The rings of the packet sockets are made for it.
    pub(super) mtu: u16,
    /// The hosts' sockets in the order of the plan.
    pub(super) sockets: Vec<OwnedFd>,
    kind: Kind,
    /// The open file /proc/net/dev of each host.
    counters: [File; 2],
    /// The open file /proc/net/snmp or snmp6 of each host.
    errors: [File; 2],
    ip: IpVersion,
    /// The number of packets that found no free frame in a ring, until the kernel was last asked.
    unread: u64,
    /// The means by which the namespaces were made.
    pub(super) means: Means,
    /// For each wanted setting, true if it could not be made.
    pub(super) unset: Vec<bool>,
    /// True if the TCP settings of the routes could not be made.
    pub(super) route_is_unset: bool,
    /// The namespaces of both hosts.
    pub(super) namespaces: Namespaces,
}

/// The descriptors of the hosts' namespaces, with which another process of this user can enter them.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// The network namespace of each host, the first host's first.
    pub(super) hosts: [OwnedFd; 2],
    /// The user namespace that owns the network namespaces. A process without privilege has to enter it
    /// first.
    pub(super) user: OwnedFd,
}

/// The versions of IP that the hosts have addresses of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Families {
    /// Only this version, which carries the flows.
    Only(IpVersion),
    /// Both versions, for programs of the user. The loopback devices are up, too. The flows of the scenario
    /// have this version.
    Both(IpVersion),
}

impl Families {
    /// The version of the flows' sockets.
    pub(super) const fn of_flows(self) -> IpVersion {
        match self {
            Self::Only(ip) | Self::Both(ip) => ip,
        }
    }

    /// The addresses of `host`: that of the flows comes first.
    fn addresses(self, host: Host) -> Vec<IpAddr> {
        match self {
            Self::Only(ip) => vec![address(host, ip)],
            Self::Both(ip) => {
                let other = if ip == IpVersion::V4 { IpVersion::V6 } else { IpVersion::V4 };
                vec![address(host, ip), address(host, other)]
            }
        }
    }
}

/// The kind of device that leads from a host to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A cable to a packet socket with a ring.
    Cable,
    /// A TUN device.
    Tun,
}

/// A file under /proc/sys/net and the text to write to it. Each namespace has its own file.
pub(super) type Setting = (&'static CStr, Cow<'static, [u8]>);

/// The second addresses of the hosts, for connections with second paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecondAddresses {
    pub(super) manager: PathManager,
    /// For each host, true if it opens such connections. The host that opens a connection adds the second
    /// path.
    pub(super) opens: [bool; 2],
}

/// The means by which this process may make namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// With CAP_SYS_ADMIN.
    Privilege,
    /// In a user namespace of our own.
    UserNamespace,
}

/// The numbers of packets that the devices dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceDrops {
    /// On the way from the host to the emulator.
    pub(super) from_host: u64,
    /// On the way from the emulator to the host.
    pub(super) to_host: u64,
}

impl World {
    /// Makes both hosts with addresses of these `families`, the MTU of each host, the sockets of `plan` and
    /// at most 15 `settings`. `route` has the TCP settings of the routes. `second` makes second addresses.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unavailable`], which says what this machine does not allow and how to get it.
    pub(super) fn build(
        families: Families,
        mtu: [u16; 2],
        plan: &[SocketPlan<'_>],
        settings: &[Setting],
        route: Option<Route>,
        second: Option<SecondAddresses>,
    ) -> Result<Self, ArenaError> {
        Self::build_with(Kind::Cable, families, mtu, plan, settings, route, second)
    }

    /// As [`World::build`], with devices of this `kind`. A host with a TUN device has no `route` and no
    /// second address.
    ///
    /// # Errors
    /// As [`World::build`].
    pub(super) fn build_with(
        kind: Kind,
        families: Families,
        mtu: [u16; 2],
        plan: &[SocketPlan<'_>],
        settings: &[Setting],
        route: Option<Route>,
        second: Option<SecondAddresses>,
    ) -> Result<Self, ArenaError> {
        let failed = |error: &io::Error| unavailable(Step::Send, error);
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| failed(&error.into()))?;
        // Each flow needs two descriptors, and twice as many while the child has them too. The usual soft
        // limit may be smaller.
        descriptors::raise_to((plan.len() as u64 + 64) * 2 + 256);
        // The child must not allocate memory, so everything is allocated before the fork.
        let mut wanted = Wanted::new(kind, families, mtu, plan, settings, route, second)
            .map_err(|error| failed(&error))?;
        let mut made = Vec::with_capacity(plan.len() + FIXED);
        let child = match fork::fork().map_err(|error| failed(&error))? {
            fork::Forked::Child => {
                be_helper(&theirs, &mut wanted, &mut made);
                fork::exit_now()
            }
            fork::Forked::Parent(child) => child,
        };
        drop((theirs, wanted));
        let outcome = receive(&ours, plan.len() + FIXED);
        drop(ours);
        fork::reap(child);
        let (found, fds) = outcome?;
        let mut world = Self::sort(kind, families.of_flows(), plan, fds)
            .ok_or_else(|| failed(&io::ErrorKind::UnexpectedEof.into()))?;
        world.mtu = mtu[0].max(mtu[1]);
        world.means = found.means;
        world.unset = (0..settings.len()).map(|place| found.unset >> place & 1 != 0).collect();
        world.route_is_unset = found.unset & ROUTE_UNSET != 0;
        Ok(world)
    }

    /// Sorts the descriptors that the child made, host after host. `None` if there are too few.
    fn sort(kind: Kind, ip: IpVersion, plan: &[SocketPlan<'_>], fds: Vec<OwnedFd>) -> Option<Self> {
        let mut fds = fds.into_iter();
        let mut sockets: Vec<Option<OwnedFd>> = plan.iter().map(|_| None).collect();
        let mut host = |host: Host| {
            let (namespace, device) = (fds.next()?, fds.next()?);
            let (counters, errors) = (fds.next()?, fds.next()?);
            for (socket, _) in sockets.iter_mut().zip(plan).filter(|(_, plan)| plan.host == host) {
                *socket = Some(fds.next()?);
            }
            Some(SortedHost { namespace, device, counters: counters.into(), errors: errors.into() })
        };
        let (first, second) = (host(Host::First)?, host(Host::Second)?);
        let user = fds.next()?;
        Some(Self {
            devices: [first.device, second.device],
            mtu: 0,
            sockets: sockets.into_iter().collect::<Option<_>>()?,
            kind,
            counters: [first.counters, second.counters],
            errors: [first.errors, second.errors],
            ip,
            unread: 0,
            means: Means::Privilege,
            unset: Vec::new(),
            route_is_unset: false,
            namespaces: Namespaces { hosts: [first.namespace, second.namespace], user },
        })
    }

    /// Reads the number of packets that the devices and the rings have dropped since they were made.
    ///
    /// # Errors
    /// Returns the system's error if the counters cannot be read.
    pub(super) fn device_drops(&mut self) -> io::Result<DeviceDrops> {
        let mut drops = DeviceDrops::default();
        for file in &mut self.counters {
            let (from_host, to_host) = parse_drops(&whole(file)?).ok_or(io::ErrorKind::InvalidData)?;
            drops.from_host += from_host;
            drops.to_host += to_host;
        }
        if self.kind == Kind::Cable {
            for tap in &self.devices {
                self.unread += ring::take_drops(tap)?;
            }
        }
        drops.from_host += self.unread;
        Ok(drops)
    }

    /// Reads the UDP errors of both hosts since they were made. `None` if the kernel does not report them.
    pub(super) fn udp_errors(&mut self) -> Option<UdpErrors> {
        let ip = self.ip;
        let of_host = |file: &mut File| {
            let text = whole(file).ok()?;
            match ip {
                IpVersion::V4 => UdpErrors::parse(&text, ""),
                IpVersion::V6 => UdpErrors::parse("", &text),
            }
        };
        let [first, second] = self.errors.each_mut().map(of_host);
        Some(first?.plus(second?))
    }
}

/// The descriptors of one host, sorted.
struct SortedHost {
    namespace: OwnedFd,
    device: OwnedFd,
    counters: File,
    errors: File,
}

/// Reads the current text of an open file of /proc.
fn whole(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The address of a host.
pub(super) const fn address(host: Host, ip: IpVersion) -> IpAddr {
    // The addresses are from TEST-NET-1 (RFC 5737) and from the range for documentation (RFC 3849). They hide
    // no route of this machine, because the namespaces have none of its routes.
    let number = host as u8 + 1;
    match ip {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number as u16)),
    }
}

/// The second address of a host whose connections have second paths. It is in another network than the first
/// address.
pub(super) const fn second_address(host: Host, ip: IpVersion) -> IpAddr {
    let number = host as u8 + 5;
    match ip {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number as u16)),
    }
}

/// The number of descriptors that the child hands over besides the sockets: a namespace, a device and two
/// files for each host, and the user namespace.
const FIXED: usize = 9;

/// The address and port of flow `flow` at `host`.
pub(super) fn endpoint(host: Host, ip: IpVersion, flow: usize) -> SocketAddr {
    let port = u16::try_from(usize::from(FIRST_PORT) + flow).unwrap_or(u16::MAX);
    SocketAddr::new(address(host, ip), port)
}

/// Reads the TX and RX drops of the host's device in the text of /proc/net/dev. A line has the device's name,
/// eight columns about receiving and eight about sending, and the fourth column of each are drops. The device
/// receives what the emulator writes.
fn parse_drops(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("talkpath:"))?;
    let columns: Vec<u64> = line.split_ascii_whitespace().map_while(|column| column.parse().ok()).collect();
    Some((*columns.get(11)?, *columns.get(3)?))
}

/// Receives the descriptors that the child made, until there are `wanted` of them.
fn receive(channel: &OwnedFd, wanted: usize) -> Result<(Found, Vec<OwnedFd>), ArenaError> {
    let mut fds = Vec::with_capacity(wanted);
    let mut found = Found { means: Means::Privilege, unset: 0 };
    while fds.len() < wanted {
        let mut message = [0; 8];
        match fork::receive_descriptors(channel.as_fd(), &mut message, &mut fds) {
            Ok(0) => return Err(unavailable(Step::Send, &io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(unavailable(Step::Send, &error)),
        }
        let [step, means, low, high, number @ ..] = message;
        if means == Means::UserNamespace as u8 {
            found.means = Means::UserNamespace;
        }
        found.unset = u16::from_ne_bytes([low, high]);
        if step != Step::Done as u8 {
            let step = Step::from_number(step).unwrap_or(Step::Send);
            return Err(unavailable(step, &io::Error::from_raw_os_error(i32::from_ne_bytes(number))));
        }
    }
    Ok((found, fds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_device_are_made_for_both_hosts() {
        for (kind, ip) in
            [(Kind::Cable, IpVersion::V4), (Kind::Cable, IpVersion::V6), (Kind::Tun, IpVersion::V4)]
        {
            match World::build_with(kind, Families::Only(ip), [1400, 1500], &[], &[], None, None) {
                Err(why) => eprintln!("SKIP: {kind:?}: {why}"),
                Ok(mut world) => {
                    for file in &mut world.counters {
                        assert_eq!(parse_drops(&whole(file).unwrap()), Some((0, 0)), "{kind:?}");
                    }
                    assert_eq!(world.device_drops().unwrap(), DeviceDrops::default());
                }
            }
        }
    }

    /// A host whose processor a hypervisor stops takes nothing meanwhile. The default buffer holds 1 ms of a
    /// gigabit a second.
    #[test]
    fn what_a_stopped_host_has_not_taken_has_room_at_the_emulators_end() {
        let world = match World::build(Families::Only(IpVersion::V4), [1500; 2], &[], &[], None, None) {
            Err(why) => return eprintln!("SKIP: {why}"),
            Ok(world) => world,
        };
        let least = match world.means {
            Means::Privilege => 16 << 20,
            // At most twice net.core.wmem_max, whose default is that of a socket's buffer.
            Means::UserNamespace => 2 * 212_992,
        };
        for tap in &world.devices {
            let room = rustix::net::sockopt::socket_send_buffer_size(tap).unwrap();
            assert!(room >= least, "{room} B, {:?}", world.means);
        }
    }

    #[test]
    fn drops_are_read_from_the_devices_own_line() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n    \
                    lo:       0       0    0    9    0     0          0         0        0       0    0    9\n\
                    talkpath: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(parse_drops(text), Some((12, 4)));
        assert_eq!(parse_drops("talkpath: 1 2"), None);
    }
}
