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
use child::{ChildRequests, ROUTE_UNSET, SetupReport, run_child};
use failure::{SetupStep, unavailable};
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
    kind: DeviceKind,
    counters: [HostCounters; 2],
    ip: IpVersion,
    /// The number of packets that found no free frame in a ring, until the kernel was last asked.
    ring_drops: u64,
    /// The means by which the namespaces were made.
    pub(super) means: Means,
    /// For each wanted setting, true if it could not be made.
    pub(super) unset: Vec<bool>,
    /// True if the TCP settings of the routes could not be made.
    pub(super) route_is_unset: bool,
    /// The namespaces of both hosts.
    pub(super) namespaces: Namespaces,
}

/// The open files of a host in which the kernel counts.
struct HostCounters {
    /// /proc/net/dev.
    devices: File,
    /// /proc/net/snmp for IPv4, or /proc/net/snmp6 for IPv6.
    udp: File,
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

    /// The addresses of `host`. The address of the flows comes first.
    fn addresses(self, host: Host) -> Vec<IpAddr> {
        let versions: &[IpVersion] = match self {
            Self::Only(IpVersion::V4) => &[IpVersion::V4],
            Self::Only(IpVersion::V6) => &[IpVersion::V6],
            Self::Both(IpVersion::V4) => &[IpVersion::V4, IpVersion::V6],
            Self::Both(IpVersion::V6) => &[IpVersion::V6, IpVersion::V4],
        };
        versions.iter().map(|&ip| address(host, ip)).collect()
    }
}

/// The kind of device that leads from a host to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceKind {
    /// A cable to a packet socket with a ring.
    Cable,
    /// A TUN device.
    Tun,
}

/// A file under /proc/sys/net and the text to write to it. Each namespace has its own file.
pub(super) type Setting = (&'static CStr, Cow<'static, [u8]>);

/// The second addresses of both hosts, for connections with second paths.
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

/// The plan of two hosts.
#[derive(Clone, Copy)]
pub(super) struct WorldPlan<'a> {
    pub(super) device: DeviceKind,
    pub(super) families: Families,
    /// The MTU of each host, bytes.
    pub(super) mtu: [u16; 2],
    pub(super) sockets: &'a [SocketPlan<'a>],
    /// The settings of both hosts, 15 at most.
    pub(super) settings: &'a [Setting],
    /// The TCP settings of the routes. `None` leaves the kernel's own. A host with a TUN device has no route.
    pub(super) route: Option<Route>,
    /// The second addresses of hosts with cables. `None` if no connection has a second path.
    pub(super) second_addresses: Option<SecondAddresses>,
}

impl WorldPlan<'_> {
    /// The plan of two hosts with cables, IPv4 and an MTU of 1500 bytes, without sockets and settings.
    pub(super) const fn bare() -> Self {
        Self {
            device: DeviceKind::Cable,
            families: Families::Only(IpVersion::V4),
            mtu: [1500; 2],
            sockets: &[],
            settings: &[],
            route: None,
            second_addresses: None,
        }
    }

    /// The number of descriptors that the child sends. Besides the sockets these are a namespace, a device
    /// and two files for each host, and the user namespace.
    const fn descriptors(&self) -> usize {
        self.sockets.len() + 9
    }

    /// The larger MTU of the hosts.
    fn largest_mtu(&self) -> u16 {
        self.mtu[0].max(self.mtu[1])
    }
}

impl World {
    /// Makes both hosts.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unavailable`], which says what this machine does not allow and how to get it.
    pub(super) fn build(plan: &WorldPlan<'_>) -> Result<Self, ArenaError> {
        let failed = |error: &io::Error| unavailable(SetupStep::Send, error);
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| failed(&error.into()))?;
        // Each flow needs two descriptors, and twice as many while the child has them too. The usual soft
        // limit may be smaller.
        descriptors::raise_to((plan.sockets.len() as u64 + 64) * 2 + 256);
        // The child must not allocate memory, so everything is allocated before the fork.
        let mut requests = ChildRequests::new(plan).map_err(|error| failed(&error))?;
        let mut made = Vec::with_capacity(plan.descriptors());
        let child = match fork::fork().map_err(|error| failed(&error))? {
            fork::Forked::Child => {
                run_child(&theirs, &mut requests, &mut made);
                fork::exit_now()
            }
            fork::Forked::Parent(child) => child,
        };
        drop((theirs, requests));
        let received = receive(&ours, plan.descriptors());
        drop(ours);
        fork::reap(child);
        let (report, descriptors) = received?;
        Self::sort(plan, report, descriptors).ok_or_else(|| failed(&io::ErrorKind::UnexpectedEof.into()))
    }

    /// Sorts the descriptors that the child made, host after host. Returns `None` if there are too few.
    fn sort(plan: &WorldPlan<'_>, report: SetupReport, descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut sockets: Vec<Option<OwnedFd>> = plan.sockets.iter().map(|_| None).collect();
        let mut sort_host = |host: Host| {
            let (namespace, device) = (descriptors.next()?, descriptors.next()?);
            let counters =
                HostCounters { devices: descriptors.next()?.into(), udp: descriptors.next()?.into() };
            for (socket, _) in sockets.iter_mut().zip(plan.sockets).filter(|(_, plan)| plan.host == host) {
                *socket = Some(descriptors.next()?);
            }
            Some((namespace, device, counters))
        };
        let (first_namespace, first_device, first_counters) = sort_host(Host::First)?;
        let (second_namespace, second_device, second_counters) = sort_host(Host::Second)?;
        Some(Self {
            devices: [first_device, second_device],
            mtu: plan.largest_mtu(),
            sockets: sockets.into_iter().collect::<Option<_>>()?,
            kind: plan.device,
            counters: [first_counters, second_counters],
            ip: plan.families.of_flows(),
            ring_drops: 0,
            means: report.means,
            unset: (0..plan.settings.len()).map(|index| report.unset >> index & 1 != 0).collect(),
            route_is_unset: report.unset & ROUTE_UNSET != 0,
            namespaces: Namespaces { hosts: [first_namespace, second_namespace], user: descriptors.next()? },
        })
    }

    /// Reads the number of packets that the devices and the rings have dropped since they were made.
    ///
    /// # Errors
    /// Returns the system's error if the counters cannot be read.
    pub(super) fn device_drops(&mut self) -> io::Result<DeviceDrops> {
        let mut drops = DeviceDrops::default();
        for counters in &mut self.counters {
            let host = parse_drops(&read_again(&mut counters.devices)?).ok_or(io::ErrorKind::InvalidData)?;
            drops.from_host += host.from_host;
            drops.to_host += host.to_host;
        }
        if self.kind == DeviceKind::Cable {
            // The kernel counts the drops of a ring from zero each time that it is asked.
            for device in &self.devices {
                self.ring_drops += ring::take_drops(device)?;
            }
        }
        drops.from_host += self.ring_drops;
        Ok(drops)
    }

    /// Reads the UDP errors of both hosts since they were made. `None` if the kernel does not report them.
    pub(super) fn udp_errors(&mut self) -> Option<UdpErrors> {
        let [first, second] = self.counters.each_mut().map(|counters| {
            let text = read_again(&mut counters.udp).ok()?;
            match self.ip {
                IpVersion::V4 => UdpErrors::parse(&text, ""),
                IpVersion::V6 => UdpErrors::parse("", &text),
            }
        });
        Some(first?.plus(second?))
    }
}

/// Reads the current text of an open file of /proc.
fn read_again(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The address of a host.
pub(super) const fn address(host: Host, ip: IpVersion) -> IpAddr {
    documentation_address(host as u8 + 1, ip)
}

/// The second address of a host whose connections have second paths. It is in another network than the first
/// address.
pub(super) const fn second_address(host: Host, ip: IpVersion) -> IpAddr {
    documentation_address(host as u8 + 5, ip)
}

/// The address with this last byte in TEST-NET-1 (RFC 5737) or in the range for documentation (RFC 3849).
/// These addresses hide no route of this machine, because the namespaces have none of its routes.
const fn documentation_address(last_byte: u8, ip: IpVersion) -> IpAddr {
    match ip {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::new(192, 0, 2, last_byte)),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last_byte as u16)),
    }
}

/// The address and port of flow `flow` at `host`.
pub(super) fn endpoint(host: Host, ip: IpVersion, flow: usize) -> SocketAddr {
    let port = u16::try_from(usize::from(FIRST_PORT) + flow).unwrap_or(u16::MAX);
    SocketAddr::new(address(host, ip), port)
}

/// Reads the drops of the host's device in the text of /proc/net/dev. A line has the device's name, eight
/// columns about receiving and eight about sending. The fourth column of each eight is the number of drops.
/// The device receives what the emulator writes to the host.
fn parse_drops(text: &str) -> Option<DeviceDrops> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("talkpath:"))?;
    let columns: Vec<u64> = line.split_ascii_whitespace().map_while(|column| column.parse().ok()).collect();
    Some(DeviceDrops { from_host: *columns.get(11)?, to_host: *columns.get(3)? })
}

/// Receives the child's report and its descriptors, until there are `count` of them.
fn receive(channel: &OwnedFd, count: usize) -> Result<(SetupReport, Vec<OwnedFd>), ArenaError> {
    let mut descriptors = Vec::with_capacity(count);
    let mut report = SetupReport::DONE;
    while descriptors.len() < count {
        let mut message = [0; SetupReport::SIZE];
        let length = fork::receive_descriptors(channel.as_fd(), &mut message, &mut descriptors)
            .map_err(|error| unavailable(SetupStep::Send, &error))?;
        if length == 0 {
            return Err(unavailable(SetupStep::Send, &io::ErrorKind::UnexpectedEof.into()));
        }
        report = SetupReport::from_bytes(message);
        if report.step != SetupStep::Done {
            return Err(unavailable(report.step, &io::Error::from_raw_os_error(report.error_number)));
        }
    }
    Ok((report, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_device_are_made_for_both_hosts() {
        for (kind, ip) in [
            (DeviceKind::Cable, IpVersion::V4),
            (DeviceKind::Cable, IpVersion::V6),
            (DeviceKind::Tun, IpVersion::V4),
        ] {
            let families = Families::Only(ip);
            match World::build(&WorldPlan { device: kind, families, mtu: [1400, 1500], ..WorldPlan::bare() })
            {
                Err(why) => eprintln!("SKIP: {kind:?}: {why}"),
                Ok(mut world) => {
                    for counters in &mut world.counters {
                        let drops = parse_drops(&read_again(&mut counters.devices).unwrap());
                        assert_eq!(drops, Some(DeviceDrops::default()), "{kind:?}");
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
        let world = match World::build(&WorldPlan::bare()) {
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
        assert_eq!(parse_drops(text), Some(DeviceDrops { from_host: 12, to_host: 4 }));
        assert_eq!(parse_drops("talkpath: 1 2"), None);
    }
}
