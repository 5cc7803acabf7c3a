//! The child process that makes the hosts. It enters one namespace after the other, makes the devices and
//! sockets of the namespace, and sends the descriptors to the parent.
//!
//! All that needs memory is made before the fork, as [`ChildRequests`]. Everything that [`run_child`] calls
//! is *fork-safe*: it allocates no memory and takes no lock, and does not panic (see
//! `talkpath_kernel::host::fork`).

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

use super::failure::{SetupError, SetupStep};
use super::socket::make_socket;
use super::{DeviceKind, Families, Means, SecondAddresses, WorldPlan, address, second_address};
use crate::packet::Host;

/// A file under /proc/sys/net, and the text that is written to it.
type QuietSetting = (&'static CStr, &'static [u8]);

/// The settings of hosts with IPv4: no packets of IPv6, and no connection learns from an
/// earlier one.
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
/// The bit of [`SetupReport::unset`] for the routes.
pub(super) const ROUTE_UNSET: u16 = 1 << 15;
/// The highest bit of [`SetupReport::unset`] for a setting.
const LAST_SETTING_BIT: usize = 14;

/// The requests that the child sends to the kernel, and the plan of the hosts.
pub(super) struct ChildRequests<'a> {
    plan: &'a WorldPlan<'a>,
    devices: DeviceRequests,
    /// The requests that set the path manager of each host. Empty if connections have no second paths.
    path_managers: [Vec<NetlinkRequest>; 2],
    identity_maps: IdentityMaps,
    /// The request that brings up a host's loopback device.
    loopback: NetlinkRequest,
}

/// The requests for the hosts' devices.
enum DeviceRequests {
    Cables { between: Between, hosts: [CableHostRequests; 2] },
    Tuns([TunRequests; 2]),
}

struct CableHostRequests {
    cable: CableRequests,
    routes: Vec<RouteRequest>,
}

/// The request for the route to an address of the other host.
struct RouteRequest {
    request: NetlinkRequest,
    /// True if packets may be too large for the path without the route.
    is_needed: bool,
}

/// The report of the child to its parent.
#[derive(Clone, Copy)]
pub(super) struct SetupReport {
    /// The step that failed, or [`SetupStep::Done`].
    pub(super) step: SetupStep,
    pub(super) means: Means,
    /// A bit for each setting that could not be made, and [`ROUTE_UNSET`].
    pub(super) unset: u16,
    /// The system's error number of the failed step.
    pub(super) error_number: i32,
}

impl<'a> ChildRequests<'a> {
    /// Prepares the requests for the hosts of `plan`.
    ///
    /// # Errors
    /// Returns the system's error if a placeholder descriptor cannot be opened.
    pub(super) fn new(plan: &'a WorldPlan<'a>) -> io::Result<Self> {
        let ip = plan.families.of_flows();
        let second = plan.second_addresses;
        let devices = match plan.device {
            DeviceKind::Tun => DeviceRequests::Tuns(
                Host::BOTH.map(|host| TunRequests::new(address(host, ip), plan.mtu[host.index()])),
            ),
            DeviceKind::Cable => {
                let between = Between::placeholder()?;
                let hosts = Host::BOTH.map(|host| CableHostRequests::new(plan, &between, host));
                DeviceRequests::Cables { between, hosts }
            }
        };
        let path_managers =
            Host::BOTH.map(|host| second.map_or_else(Vec::new, |second| second.requests(host, ip)));
        let (identity_maps, loopback) = (IdentityMaps::new(), loopback_request());
        Ok(Self { plan, devices, path_managers, identity_maps, loopback })
    }
}

impl CableHostRequests {
    fn new(plan: &WorldPlan<'_>, between: &Between, host: Host) -> Self {
        let addresses = |host: Host| -> Vec<IpAddr> {
            let second = plan.second_addresses.map(|_| second_address(host, plan.families.of_flows()));
            plan.families.addresses(host).into_iter().chain(second).collect()
        };
        // A device does not receive packets larger than its own MTU. So both devices have the larger MTU, and
        // the host with the smaller MTU has it on its routes.
        let largest = plan.largest_mtu();
        let mtu = plan.mtu[host.index()];
        let route_mtu = if mtu == largest { 0 } else { u32::from(mtu) };
        let routes =
            if plan.route.is_none() && route_mtu == 0 { Vec::new() } else { addresses(host.other()) };
        let route = Route { mtu: route_mtu, ..plan.route.unwrap_or_default() };
        let request = |to| RouteRequest { request: route_request(to, route), is_needed: route_mtu > 0 };
        Self {
            cable: CableRequests::new(between, FAR_ENDS[host.index()], &addresses(host), largest),
            routes: routes.into_iter().map(request).collect(),
        }
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

impl SetupReport {
    /// The size of the report in the child's message, bytes.
    pub(super) const SIZE: usize = 8;

    /// The report of a child that has not failed and did not need a user namespace.
    pub(super) const DONE: Self =
        Self { step: SetupStep::Done, means: Means::Privilege, unset: 0, error_number: 0 };

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let [low, high] = self.unset.to_ne_bytes();
        let [a, b, c, d] = self.error_number.to_ne_bytes();
        [self.step as u8, self.means as u8, low, high, a, b, c, d]
    }

    pub(super) fn from_bytes([step, means, low, high, a, b, c, d]: [u8; Self::SIZE]) -> Self {
        let is_user_namespace = means == Means::UserNamespace as u8;
        Self {
            step: SetupStep::from_number(step).unwrap_or(SetupStep::Send),
            means: if is_user_namespace { Means::UserNamespace } else { Means::Privilege },
            unset: u16::from_ne_bytes([low, high]),
            error_number: i32::from_ne_bytes([a, b, c, d]),
        }
    }
}

/// Runs the child: makes the hosts, and sends the report with the descriptors `made` over `channel`.
pub(super) fn run_child(channel: &OwnedFd, requests: &mut ChildRequests<'_>, made: &mut Vec<OwnedFd>) {
    fork::die_with_parent();
    let mut report = SetupReport::DONE;
    let send = |report: SetupReport, descriptors: &[OwnedFd]| {
        fork::send_descriptors(channel.as_fd(), &report.to_bytes(), descriptors)
    };
    let outcome = make_hosts(requests, made, &mut report).and_then(|()| {
        let mut messages = made.chunks(fork::MAX_DESCRIPTORS);
        messages.try_for_each(|descriptors| send(report, descriptors)).at(SetupStep::Send)
    });
    if let Err(SetupError { step, error }) = outcome {
        let error_number = error.raw_os_error().unwrap_or(0);
        // The error is ignored. If this fails too, the parent sees that the channel closes.
        let _ = send(SetupReport { step, error_number, ..report }, &[]);
    }
}

/// Makes both hosts, one after the other, and adds their descriptors to `made`.
fn make_hosts(
    requests: &mut ChildRequests<'_>,
    made: &mut Vec<OwnedFd>,
    report: &mut SetupReport,
) -> Result<(), SetupError> {
    enter_first_namespace(&requests.identity_maps, report)?;
    // The errors of these settings are ignored. If /proc/sys cannot be written, the emulator ignores the
    // packets of IPv6 itself, and a connection learns from an earlier connection of the run.
    write_settings(&QUIET);
    let taps = match &mut requests.devices {
        DeviceRequests::Cables { between, .. } => {
            between.use_callers_namespace().at(SetupStep::Namespace)?;
            [Some(ring::tap().at(SetupStep::Tap)?), Some(ring::tap().at(SetupStep::Tap)?)]
        }
        DeviceRequests::Tuns(_) => [None, None],
    };
    for (host, tap) in Host::BOTH.into_iter().zip(taps) {
        make_host(requests, host, tap, made, report)?;
    }
    made.push(fork::open_file(c"/proc/thread-self/ns/user").at(SetupStep::Namespace)?);
    Ok(())
}

/// Enters the namespace between the hosts, and first a user namespace if this process has not the privilege.
fn enter_first_namespace(maps: &IdentityMaps, report: &mut SetupReport) -> Result<(), SetupError> {
    let privileged = fork::enter_network_namespace()
        .at(SetupStep::UserNamespace)
        .and_then(|()| ring::tap().map(drop).at(SetupStep::Tap));
    let Err(SetupError { step, error }) = privileged else { return Ok(()) };
    report.means = Means::UserNamespace;
    enter_user_namespace(maps).map_err(|user_error| match step {
        // If namespaces are allowed and packet sockets are not, the error is about packet sockets.
        SetupStep::Tap => SetupError { step, error },
        _ => SetupError { step, error: user_error },
    })
}

/// Makes a host: its namespace with settings, its device with the packet socket `tap`, and its sockets. Adds
/// the descriptors to `made` in the order in which [`World::build`](super::World::build) sorts them.
fn make_host(
    requests: &ChildRequests<'_>,
    host: Host,
    tap: Option<OwnedFd>,
    made: &mut Vec<OwnedFd>,
    report: &mut SetupReport,
) -> Result<(), SetupError> {
    let plan = requests.plan;
    fork::enter_network_namespace().at(SetupStep::Namespace)?;
    match plan.families {
        Families::Only(IpVersion::V4) => write_settings(&QUIET),
        Families::Only(IpVersion::V6) | Families::Both(_) => write_settings(&QUIET_V6),
    }
    for (index, (path, text)) in plan.settings.iter().enumerate() {
        if fork::write_file(path, text).is_err() {
            report.unset |= 1 << index.min(LAST_SETTING_BIT);
        }
    }
    if matches!(plan.families, Families::Both(_)) {
        route_socket().and_then(|socket| requests.loopback.send(&socket)).at(SetupStep::Device)?;
    }
    made.push(fork::open_file(c"/proc/thread-self/ns/net").at(SetupStep::Namespace)?);
    made.push(make_device(&requests.devices, host, tap, report).at(SetupStep::Device)?);
    set_path_manager(&requests.path_managers[host.index()]).at(SetupStep::PathManager)?;
    // The files are opened in this namespace, so they show this namespace for ever.
    made.push(fork::open_file(c"/proc/thread-self/net/dev").at(SetupStep::Counters)?);
    let ip = plan.families.of_flows();
    let udp_counters = match ip {
        IpVersion::V4 => c"/proc/thread-self/net/snmp",
        IpVersion::V6 => c"/proc/thread-self/net/snmp6",
    };
    made.push(fork::open_file(udp_counters).at(SetupStep::Counters)?);
    for socket in plan.sockets.iter().filter(|socket| socket.host == host) {
        made.push(make_socket(socket, ip).at(SetupStep::Socket)?);
    }
    Ok(())
}

fn write_settings(settings: &[QuietSetting]) {
    for (path, text) in settings {
        let _ = fork::write_file(path, text);
    }
}

/// Makes a host's TUN device, or the host's cable with the packet socket `tap` and its routes.
fn make_device(
    devices: &DeviceRequests,
    host: Host,
    tap: Option<OwnedFd>,
    report: &mut SetupReport,
) -> io::Result<OwnedFd> {
    match (devices, tap) {
        (DeviceRequests::Tuns(hosts), _) => hosts[host.index()].open(),
        (DeviceRequests::Cables { .. }, None) => Err(io::ErrorKind::InvalidInput.into()),
        (DeviceRequests::Cables { between, hosts }, Some(tap)) => {
            let CableHostRequests { cable, routes } = &hosts[host.index()];
            between.attach(cable, &tap)?;
            for route in routes {
                match route_socket().and_then(|socket| route.request.send(&socket)) {
                    Err(error) if route.is_needed => return Err(error),
                    Err(_) => report.unset |= ROUTE_UNSET,
                    Ok(()) => {}
                }
            }
            Ok(tap)
        }
    }
}

/// Sets the path manager of the caller's namespace.
fn set_path_manager(requests: &[NetlinkRequest]) -> io::Result<()> {
    if requests.is_empty() {
        return Ok(());
    }
    let socket = generic_socket()?;
    requests.iter().try_for_each(|request| request.send(&socket))
}

/// Enters a new user namespace that maps only the caller, and a new network namespace. The process has all
/// capabilities in them until it runs another program.
fn enter_user_namespace(maps: &IdentityMaps) -> io::Result<()> {
    fork::enter_user_and_network_namespace()?;
    // Without this the group map cannot be written (user_namespaces(7)). The error is ignored, because
    // kernels before 3.19 do not have the file.
    let _ = fork::write_file(c"/proc/self/setgroups", b"deny");
    fork::write_file(c"/proc/self/uid_map", &maps.user)?;
    fork::write_file(c"/proc/self/gid_map", &maps.group)
}

/// An extension that names the step at which an error happened.
trait AtStep<T> {
    fn at(self, step: SetupStep) -> Result<T, SetupError>;
}

impl<T> AtStep<T> for io::Result<T> {
    fn at(self, step: SetupStep) -> Result<T, SetupError> {
        self.map_err(|error| SetupError { step, error })
    }
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
