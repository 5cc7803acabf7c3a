//! The life of the child: it enters one namespace after the other, makes what belongs there, and hands the
//! descriptors over.
//!
//! After fork (see `talkpath_kernel::host::fork`): but for what makes a [`Wanted`], nothing here allocates,
//! locks or panics.

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use talkpath_kernel::host::cable::{Between, CableRequests, FAR_ENDS, TunRequests, route_request};
use talkpath_kernel::host::netlink::{NetlinkRequest, Route, route_socket};
use talkpath_kernel::host::path_manager::generic_socket;
use talkpath_kernel::host::{fork, ring};
use talkpath_model::IpVersion;

use super::failure::Step;
use super::socket::{SocketPlan, make_socket};
use super::{Kind, Means, SecondAddresses, Setting, address, second_address};
use crate::packet::Host;

/// What the child makes. Everything here is allocated before the fork.
pub(super) struct Wanted<'a> {
    devices: Devices,
    plan: &'a [SocketPlan<'a>],
    settings: &'a [Setting],
    /// For each host what its path manager is set to, if connections have second paths.
    paths: [Vec<NetlinkRequest>; 2],
    maps: IdentityMaps,
    ip: IpVersion,
}

/// The hosts' devices.
enum Devices {
    Cables { between: Between, hosts: [(CableRequests, Vec<RouteRequest>); 2] },
    Tuns([TunRequests; 2]),
}

/// The route to the other host.
struct RouteRequest {
    request: NetlinkRequest,
    /// Whether packets may be too large for the path without it.
    is_needed: bool,
}

impl<'a> Wanted<'a> {
    /// What [`World::build_with`](super::World::build_with) is to make.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn new(
        kind: Kind,
        ip: IpVersion,
        mtu: [u16; 2],
        plan: &'a [SocketPlan<'a>],
        settings: &'a [Setting],
        route: Option<Route>,
        second: Option<SecondAddresses>,
    ) -> io::Result<Self> {
        let hosts = [Host::First, Host::Second];
        let all = |host: Host| -> Vec<IpAddr> {
            let second = second.map(|_| second_address(host, ip));
            core::iter::once(address(host, ip)).chain(second).collect()
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
        Ok(Self { devices, plan, settings, paths, maps: IdentityMaps::new(), ip })
    }
}

impl SecondAddresses {
    /// What the path manager of `host` is set to: a connection has one subflow beside its first, from the
    /// second address of the host that opened it.
    fn requests(self, host: Host, ip: IpVersion) -> Vec<NetlinkRequest> {
        let limit = self.manager.limit(1);
        let endpoint = self.opens[host.index()].then(|| self.manager.endpoint(second_address(host, ip)));
        core::iter::once(limit).chain(endpoint).collect()
    }
}

impl RouteRequest {
    /// The route to the host `there`, if it says anything.
    fn new(there: IpAddr, mtu: u16, largest: u16, route: Option<Route>) -> Option<Self> {
        // A device takes nothing that is larger than what it sends, so the smaller MTU is the route's.
        let mtu = if mtu == largest { 0 } else { u32::from(mtu) };
        if route.is_none() && mtu == 0 {
            return None;
        }
        let route = Route { mtu, ..route.unwrap_or_default() };
        Some(Self { request: route_request(there, route), is_needed: mtu > 0 })
    }

    /// Makes the route, and notes one that cannot be made and is not needed. After fork.
    fn make(&self, found: &mut Found) -> io::Result<()> {
        match route_socket().and_then(|here| self.request.send(&here)) {
            Err(error) if self.is_needed => return Err(error),
            Err(_) => found.unset |= ROUTE_UNSET,
            Ok(()) => {}
        }
        Ok(())
    }
}

/// What the child found out.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) means: Means,
    /// A bit for each setting that could not be made, and [`ROUTE_UNSET`].
    pub(super) unset: u16,
}

/// The child's whole life. After fork (see `fork.rs`): nothing here allocates, locks or panics.
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
        // If this fails too, the parent sees the channel close.
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
        // If namespaces are allowed and packet sockets are not, packet sockets are what is missing.
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
        // If /proc/sys cannot be written, the emulator ignores what IPv6 sends, and connections that follow
        // each other in a run learn from each other.
        let of_ip: &[QuietSetting] = match wanted.ip {
            IpVersion::V4 => &QUIET,
            IpVersion::V6 => &QUIET_V6,
        };
        for (path, text) in of_ip {
            let _ = fork::write_file(path, text);
        }
        for (place, (path, text)) in wanted.settings.iter().enumerate() {
            if fork::write_file(path, text).is_err() {
                found.unset |= 1 << place.min(14);
            }
        }
        let device = make_device(&wanted.devices, host, tap, found);
        made.push(device.map_err(at(Step::Device))?);
        set_paths(&wanted.paths[host.index()]).map_err(at(Step::PathManager))?;
        // Opened here, the files keep showing this namespace.
        made.push(fork::open_file(c"/proc/thread-self/net/dev").map_err(at(Step::Counters))?);
        let errors = match wanted.ip {
            IpVersion::V4 => c"/proc/thread-self/net/snmp",
            IpVersion::V6 => c"/proc/thread-self/net/snmp6",
        };
        made.push(fork::open_file(errors).map_err(at(Step::Counters))?);
        for socket in wanted.plan.iter().filter(|socket| socket.host == host) {
            made.push(make_socket(socket, wanted.ip).map_err(at(Step::Socket))?);
        }
    }
    Ok(())
}

/// Makes a host's TUN device, or lays its cable, whose packet socket is `tap`, and makes its route. After
/// fork.
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

/// Sets the path manager of the host whose namespace the caller is in. After fork.
fn set_paths(requests: &[NetlinkRequest]) -> io::Result<()> {
    if requests.is_empty() {
        return Ok(());
    }
    let here = generic_socket()?;
    requests.iter().try_for_each(|request| request.send(&here))
}

/// Becomes root of a user namespace that maps nobody but the caller. After fork.
fn enter_user_namespace(maps: &IdentityMaps) -> io::Result<()> {
    fork::unshare(true)?;
    // Without this the group map cannot be written (user_namespaces(7)); kernels before 3.19 lack the file.
    let _ = fork::write_file(c"/proc/self/setgroups", b"deny");
    fork::write_file(c"/proc/self/uid_map", &maps.user)?;
    fork::write_file(c"/proc/self/gid_map", &maps.group)
}

/// Lines for uid_map and gid_map: root inside is the caller outside.
struct IdentityMaps {
    user: Vec<u8>,
    group: Vec<u8>,
}

impl IdentityMaps {
    fn new() -> Self {
        let line = |id: u32| format!("0 {id} 1").into_bytes();
        Self {
            user: line(rustix::process::geteuid().as_raw()),
            group: line(rustix::process::getegid().as_raw()),
        }
    }
}

/// A file under /proc/sys/net and what is written to it.
type QuietSetting = (&'static CStr, &'static [u8]);
/// No router solicitations on the devices, and no connection that learns from the one before it.
const QUIET: [QuietSetting; 3] = [
    (c"/proc/sys/net/ipv6/conf/all/disable_ipv6", b"1"),
    (c"/proc/sys/net/ipv6/conf/default/disable_ipv6", b"1"),
    (c"/proc/sys/net/ipv4/tcp_no_metrics_save", b"1"),
];
/// The same for hosts with IPv6: an address of theirs is the only one on its device (ip-sysctl.rst of the
/// kernel: `addr_gen_mode` 1 makes none).
const QUIET_V6: [QuietSetting; 4] = [
    (c"/proc/sys/net/ipv6/conf/default/addr_gen_mode", b"1"),
    (c"/proc/sys/net/ipv6/conf/default/accept_ra", b"0"),
    (c"/proc/sys/net/ipv6/conf/default/router_solicitations", b"0"),
    (c"/proc/sys/net/ipv4/tcp_no_metrics_save", b"1"),
];
/// The bit of `Found::unset` for the routes.
pub(super) const ROUTE_UNSET: u16 = 1 << 15;
