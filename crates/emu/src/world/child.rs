//! The life of the child. It enters one namespace after the other, makes the devices and sockets of the
//! namespace, and hands the descriptors over.
//!
//! All functions here run after the fork (see `talkpath_kernel::host::fork`), except those that make a
//! [`Wanted`]. They do not allocate, lock or panic.

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use talkpath_kernel::host::cable::{
    Between, CableRequests, FAR_ENDS, TunRequests, loopback_request, route_request,
};
use talkpath_kernel::host::netlink::{NetlinkRequest, Route, route_socket};
use talkpath_kernel::host::path_manager::generic_socket;
use talkpath_kernel::host::{fork, ring};
use talkpath_model::IpVersion;

use super::failure::Step;
use super::socket::{SocketPlan, make_socket};
use super::{Families, Kind, Means, SecondAddresses, Setting, address, second_address};
use crate::packet::Host;

/// The devices, settings and sockets that the child makes. Everything here is allocated before the fork.
pub(super) struct Wanted<'a> {
    devices: Devices,
    plan: &'a [SocketPlan<'a>],
    settings: &'a [Setting],
    /// The requests that set the path manager of each host. Empty if connections have no second paths.
    paths: [Vec<NetlinkRequest>; 2],
    maps: IdentityMaps,
    families: Families,
    /// The request that brings up a host's loopback device.
    loopback: NetlinkRequest,
}

/// The hosts' devices.
enum Devices {
    Cables { between: Between, hosts: [(CableRequests, Vec<RouteRequest>); 2] },
    Tuns([TunRequests; 2]),
}

/// The route to the other host.
struct RouteRequest {
    request: NetlinkRequest,
    /// True if packets may be too large for the path without the route.
    is_needed: bool,
}

impl<'a> Wanted<'a> {
    /// Prepares what [`World::build_with`](super::World::build_with) makes.
    ///
    /// # Errors
    /// Returns the system's error if a placeholder descriptor cannot be opened.
    pub(super) fn new(
        kind: Kind,
        families: Families,
        mtu: [u16; 2],
        plan: &'a [SocketPlan<'a>],
        settings: &'a [Setting],
        route: Option<Route>,
        second: Option<SecondAddresses>,
    ) -> io::Result<Self> {
        let hosts = [Host::First, Host::Second];
        let ip = families.of_flows();
        let all = |host: Host| -> Vec<IpAddr> {
            let second = second.map(|_| second_address(host, ip));
            families.addresses(host).into_iter().chain(second).collect()
        };
        let devices = match kind {
            Kind::Tun => {
                Devices::Tuns(hosts.map(|host| TunRequests::new(address(host, ip), mtu[host.index()])))
            }
            Kind::Cable => {
                let between = Between::placeholder()?;
                let largest = mtu[0].max(mtu[1]);
                let hosts = hosts.map(|host| {
                    let cable = CableRequests::new(&between, FAR_ENDS[host.index()], &all(host), largest);
                    let there = all(host.other()).into_iter();
                    let routes =
                        there.filter_map(|it| RouteRequest::new(it, mtu[host.index()], largest, route));
                    (cable, routes.collect())
                });
                Devices::Cables { between, hosts }
            }
        };
        let paths = hosts.map(|host| second.map_or_else(Vec::new, |second| second.requests(host, ip)));
        Ok(Self {
            devices,
            plan,
            settings,
            paths,
            maps: IdentityMaps::new(),
            families,
            loopback: loopback_request(),
        })
    }
}

impl SecondAddresses {
    /// The requests that set the path manager of `host`. A connection has one more subflow besides its first
    /// one, from the second address of the host that opened the connection.
    fn requests(self, host: Host, ip: IpVersion) -> Vec<NetlinkRequest> {
        let limit = self.manager.limit(1);
        let endpoint = self.opens[host.index()].then(|| self.manager.endpoint(second_address(host, ip)));
        core::iter::once(limit).chain(endpoint).collect()
    }
}

impl RouteRequest {
    /// The request for the route to the host `there`. `None` if the route has nothing to set.
    fn new(there: IpAddr, mtu: u16, largest: u16, route: Option<Route>) -> Option<Self> {
        // A device does not receive packets larger than its own MTU. So both devices have the larger MTU, and
        // the host with the smaller MTU has it on its route.
        let mtu = if mtu == largest { 0 } else { u32::from(mtu) };
        if route.is_none() && mtu == 0 {
            return None;
        }
        let route = Route { mtu, ..route.unwrap_or_default() };
        Some(Self { request: route_request(there, route), is_needed: mtu > 0 })
    }

    /// Makes the route. If it cannot be made and is not needed, it is noted in `found`. After fork.
    fn make(&self, found: &mut Found) -> io::Result<()> {
        match route_socket().and_then(|here| self.request.send(&here)) {
            Err(error) if self.is_needed => return Err(error),
            Err(_) => found.unset |= ROUTE_UNSET,
            Ok(()) => {}
        }
        Ok(())
    }
}

/// The facts that the child reports.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) means: Means,
    /// A bit for each setting that could not be made, and [`ROUTE_UNSET`].
    pub(super) unset: u16,
}

/// Runs the child: makes the hosts and sends the descriptors over `channel`, or the step and the error. After
/// fork.
pub(super) fn be_helper(channel: &OwnedFd, wanted: &mut Wanted<'_>, made: &mut Vec<OwnedFd>) {
    fork::die_with_parent();
    let mut found = Found { means: Means::Privilege, unset: 0 };
    let result = make_hosts(wanted, made, &mut found);
    let [low, high] = found.unset.to_ne_bytes();
    let told = match result {
        Ok(()) => {
            let message = [Step::Done as u8, found.means as u8, low, high];
            let mut rest = made.as_slice();
            let mut sent = Ok(());
            while !rest.is_empty() && sent.is_ok() {
                let (now, later) = rest.split_at(rest.len().min(fork::MAX_DESCRIPTORS));
                sent = fork::send_descriptors(channel.as_fd(), &message, now);
                rest = later;
            }
            sent.map_err(|error| (Step::Send, error))
        }
        Err(why) => Err(why),
    };
    if let Err((step, error)) = told {
        let number = error.raw_os_error().unwrap_or(0).to_ne_bytes();
        let message = [step as u8, found.means as u8, low, high, number[0], number[1], number[2], number[3]];
        // The error is ignored. If this fails too, the parent sees that the channel closes.
        let _ = fork::send_descriptors(channel.as_fd(), &message, &[]);
    }
}

/// Makes both hosts, one after the other: a device, its counters, the sockets. After fork.
fn make_hosts(
    wanted: &mut Wanted<'_>,
    made: &mut Vec<OwnedFd>,
    found: &mut Found,
) -> Result<(), (Step, io::Error)> {
    let at = |step: Step| move |error: io::Error| (step, error);
    let as_we_are = fork::unshare(false)
        .map_err(at(Step::UserNamespace))
        .and_then(|()| ring::tap().map(drop).map_err(at(Step::Tap)));
    if let Err((step, why)) = as_we_are {
        found.means = Means::UserNamespace;
        // If namespaces are allowed and packet sockets are not, the error is about packet sockets.
        enter_user_namespace(&wanted.maps)
            .map_err(|error| (step, if step == Step::Tap { why } else { error }))?;
    }
    for (path, text) in QUIET {
        let _ = fork::write_file(path, text);
    }
    let taps = match &mut wanted.devices {
        Devices::Cables { between, .. } => {
            between.be_here().map_err(at(Step::Namespace))?;
            let tap = || ring::tap().map(Some).map_err(at(Step::Tap));
            [tap()?, tap()?]
        }
        Devices::Tuns(_) => [None, None],
    };
    for (host, tap) in [Host::First, Host::Second].into_iter().zip(taps) {
        fork::unshare(false).map_err(at(Step::Namespace))?;
        // Errors are ignored. If /proc/sys cannot be written, the emulator ignores the packets of IPv6
        // itself, and a connection learns from an earlier connection of the run.
        let of_ip: &[QuietSetting] = match wanted.families {
            Families::Only(IpVersion::V4) => &QUIET,
            Families::Only(IpVersion::V6) | Families::Both(_) => &QUIET_V6,
        };
        for (path, text) in of_ip {
            let _ = fork::write_file(path, text);
        }
        for (place, (path, text)) in wanted.settings.iter().enumerate() {
            if fork::write_file(path, text).is_err() {
                found.unset |= 1 << place.min(14);
            }
        }
        if matches!(wanted.families, Families::Both(_)) {
            let loopback = route_socket().and_then(|here| wanted.loopback.send(&here));
            loopback.map_err(at(Step::Device))?;
        }
        made.push(fork::open_file(c"/proc/thread-self/ns/net").map_err(at(Step::Namespace))?);
        let device = make_device(&wanted.devices, host, tap, found);
        made.push(device.map_err(at(Step::Device))?);
        set_paths(&wanted.paths[host.index()]).map_err(at(Step::PathManager))?;
        // The files are opened in this namespace, so they show this namespace for ever.
        made.push(fork::open_file(c"/proc/thread-self/net/dev").map_err(at(Step::Counters))?);
        let errors = match wanted.families.of_flows() {
            IpVersion::V4 => c"/proc/thread-self/net/snmp",
            IpVersion::V6 => c"/proc/thread-self/net/snmp6",
        };
        made.push(fork::open_file(errors).map_err(at(Step::Counters))?);
        for socket in wanted.plan.iter().filter(|socket| socket.host == host) {
            made.push(make_socket(socket, wanted.families.of_flows()).map_err(at(Step::Socket))?);
        }
    }
    made.push(fork::open_file(c"/proc/thread-self/ns/user").map_err(at(Step::Namespace))?);
    Ok(())
}

/// Makes a host's TUN device, or the host's cable with the packet socket `tap` and its routes. After fork.
fn make_device(
    devices: &Devices,
    host: Host,
    tap: Option<OwnedFd>,
    found: &mut Found,
) -> io::Result<OwnedFd> {
    match (devices, tap) {
        (Devices::Tuns(hosts), _) => hosts[host.index()].open(),
        (Devices::Cables { .. }, None) => Err(io::ErrorKind::InvalidInput.into()),
        (Devices::Cables { between, hosts }, Some(tap)) => {
            let (cable, routes) = &hosts[host.index()];
            between.attach(cable, &tap)?;
            for route in routes {
                route.make(found)?;
            }
            Ok(tap)
        }
    }
}

/// Sets the path manager of the caller's namespace. After fork.
fn set_paths(requests: &[NetlinkRequest]) -> io::Result<()> {
    if requests.is_empty() {
        return Ok(());
    }
    let here = generic_socket()?;
    requests.iter().try_for_each(|request| request.send(&here))
}

/// Enters a new user namespace that maps only the caller. The process has all capabilities in the namespace
/// until it runs another program. After fork.
fn enter_user_namespace(maps: &IdentityMaps) -> io::Result<()> {
    fork::unshare(true)?;
    // Without this the group map cannot be written (user_namespaces(7)). The error is ignored, because
    // kernels before 3.19 do not have the file.
    let _ = fork::write_file(c"/proc/self/setgroups", b"deny");
    fork::write_file(c"/proc/self/uid_map", &maps.user)?;
    fork::write_file(c"/proc/self/gid_map", &maps.group)
}

/// The lines for uid_map and gid_map. They map the caller to itself, so that a program of the user that
/// enters the namespace keeps its user and has no capabilities.
struct IdentityMaps {
    user: Vec<u8>,
    group: Vec<u8>,
}

impl IdentityMaps {
    fn new() -> Self {
        let line = |id: u32| format!("{id} {id} 1").into_bytes();
        Self {
            user: line(rustix::process::geteuid().as_raw()),
            group: line(rustix::process::getegid().as_raw()),
        }
    }
}

/// A file under /proc/sys/net and the text that is written to it.
type QuietSetting = (&'static CStr, &'static [u8]);
/// The settings of hosts with IPv4: no packets of IPv6, and no connection that learns from an earlier one.
const QUIET: [QuietSetting; 3] = [
    (c"/proc/sys/net/ipv6/conf/all/disable_ipv6", b"1"),
    (c"/proc/sys/net/ipv6/conf/default/disable_ipv6", b"1"),
    (c"/proc/sys/net/ipv4/tcp_no_metrics_save", b"1"),
];
/// The settings of hosts with IPv6: the kernel makes no addresses by itself (`addr_gen_mode` 1 of the
/// kernel's ip-sysctl.rst), sends no router solicitations, and no connection learns from an earlier one.
const QUIET_V6: [QuietSetting; 4] = [
    (c"/proc/sys/net/ipv6/conf/default/addr_gen_mode", b"1"),
    (c"/proc/sys/net/ipv6/conf/default/accept_ra", b"0"),
    (c"/proc/sys/net/ipv6/conf/default/router_solicitations", b"0"),
    (c"/proc/sys/net/ipv4/tcp_no_metrics_save", b"1"),
];
/// The bit of `Found::unset` for the routes.
pub(super) const ROUTE_UNSET: u16 = 1 << 15;
