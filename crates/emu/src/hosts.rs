//! What a scenario asks of the two hosts: devices, sockets, settings of their kernels and congestion
//! controls.
//!
//! Begin to read with [`HostsPlan`]. `world.rs` makes the hosts from the plan.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use talkpath_arena::ArenaError;
use talkpath_kernel::host::path_manager::PathManager;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::sys::report_arrivals;
use talkpath_kernel::unsupported::{check_congestion_control, check_multipath, check_multipath_mss};
use talkpath_model::{Direction, Flow, IpVersion, Scenario};
use talkpath_units::Bytes;

use crate::host_tcp::{HostTcp, usual_rwnd};
use crate::packet::Host;
use crate::realtime::{OwnProcessor, STEERING};
use crate::world::{Families, SecondAddresses, Setting, SocketPlan, World, WorldPlan};

/// The files of [`program_settings`] (icmp(7); Documentation/networking/ip-sysctl.rst of the kernel).
const PROGRAM_SETTINGS: [&CStr; 2] =
    [c"/proc/sys/net/ipv4/ping_group_range", c"/proc/sys/net/ipv4/ip_unprivileged_port_start"];

/// The plan of the two hosts of a scenario.
pub(super) struct HostsPlan<'a> {
    families: Families,
    /// The MTU of each host, bytes.
    mtu: [u16; 2],
    sockets: Vec<SocketPlan<'a>>,
    settings: Vec<Setting>,
    host_tcp: HostTcp,
    second_addresses: Option<SecondAddresses>,
}

impl<'a> HostsPlan<'a> {
    /// Plans the hosts for the flows of `scenario`, and for a program of the user if there is one. The hosts'
    /// kernels do their work beside the emulator's `processor`.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unsupported`] if the emulator cannot carry the scenario, and
    /// [`ArenaError::Unavailable`] if this kernel lacks what the scenario needs.
    pub(super) fn new(
        scenario: &Scenario,
        session: &'a SessionSpec,
        processor: &OwnProcessor,
        has_program: bool,
    ) -> Result<Self, ArenaError> {
        let host_tcp = HostTcp::new(scenario);
        let mut settings = host_tcp.sysctls();
        settings.extend(processor.steering());
        let (mtu, families) = if has_program {
            settings.extend(program_settings());
            ([program_mtu(scenario)?; 2], Families::Both(scenario.ip))
        } else {
            let mtu = Host::BOTH.map(|host| device_mtu(scenario, host));
            (mtu, Families::Only(scenario.ip))
        };
        let sockets = socket_plans(scenario, session, mtu);
        let second_addresses = second_addresses(scenario, session)?;
        check_segment_sizes(&sockets).map_err(ArenaError::Unsupported)?;
        Ok(Self { families, mtu, sockets, settings, host_tcp, second_addresses })
    }

    /// Makes the hosts.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unavailable`], which says what this machine does not allow.
    pub(super) fn build(&self) -> Result<World, ArenaError> {
        World::build(&WorldPlan {
            families: self.families,
            mtu: self.mtu,
            sockets: &self.sockets,
            settings: &self.settings,
            route: self.host_tcp.route(),
            second_addresses: self.second_addresses,
            ..WorldPlan::bare()
        })
    }

    /// Makes the warnings about values that the scenario asks of the hosts' kernels, and that `world` does
    /// not have.
    pub(super) fn warnings(&self, scenario: &Scenario, world: &World) -> Vec<String> {
        let mut warnings = self.host_tcp.warnings(scenario);
        for ((path, _), &is_unset) in self.settings.iter().zip(&world.unset) {
            // Missing packet steering has no warning, because the lateness in the report shows its effect:
            // the emulator's thread then does the hosts' work too. A missing setting for programs has no
            // warning either, because only older kernels lack it.
            if is_unset && *path != STEERING && !PROGRAM_SETTINGS.contains(path) {
                let path = path.to_string_lossy();
                warnings.push(format!("emu: {path} cannot be written; the kernel's own value holds"));
            }
        }
        if world.route_is_unset {
            warnings.push(
                "emu: the routes cannot be made; the kernel's own initial_window and delayed_ack hold"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Makes the kernel report the stamps and headers of datagrams that arrive at `sockets`, the sockets of
    /// the plan. Returns a warning for each thing that this kernel does not report.
    pub(super) fn report_arrivals(&self, sockets: &[OwnedFd]) -> Vec<String> {
        let is_v6 = self.families.of_flows() == IpVersion::V6;
        let planned = sockets.iter().zip(&self.sockets);
        let unreported: BTreeSet<_> = planned
            .filter(|(_, plan)| plan.transport.channel_kind().is_udp())
            .flat_map(|(socket, _)| report_arrivals(socket.as_fd(), is_v6))
            .collect();
        unreported.into_iter().map(|what| format!("emu: this host's kernel {what}")).collect()
    }
}

/// Plans the sender's socket and the receiver's socket of each flow. A flow that shares an earlier flow's
/// connection has none.
fn socket_plans<'a>(scenario: &Scenario, spec: &'a SessionSpec, mtu: [u16; 2]) -> Vec<SocketPlan<'a>> {
    let mut plans = Vec::with_capacity(2 * scenario.flows.len());
    for (index, (flow, flow_spec)) in scenario.flows.iter().zip(&spec.flows).enumerate() {
        if !spec.is_leader(index) {
            continue;
        }
        let path_mtu = scenario.path_mtu(flow) + scenario.ip.extra_header();
        let tcp = flow.transport.as_tcp();
        // A socket of Multipath TCP takes neither of these two options.
        let tcp = tcp.filter(|config| !config.multipath);
        let window_clamp = tcp
            .filter(|config| config.rwnd != usual_rwnd(scenario))
            .map(|config| u32::try_from(config.rwnd.get()).unwrap_or(u32::MAX));
        let is_paced = tcp.is_some_and(|config| config.pacing);
        for is_sender in [true, false] {
            let host = if is_sender { sender(flow) } else { sender(flow).other() };
            let is_narrower = path_mtu < Bytes::new(u64::from(mtu[host.index()]));
            let transport = &flow_spec.transport;
            plans.push(SocketPlan {
                flow: index,
                host,
                transport,
                tos: flow_spec.tos(),
                is_sender,
                path_mtu: is_narrower.then_some(path_mtu.get() as u32),
                window_clamp,
                is_paced,
            });
        }
    }
    plans
}

/// Checks that the kernel takes the segment sizes of the planned sockets of Multipath TCP.
fn check_segment_sizes(plans: &[SocketPlan<'_>]) -> Result<(), String> {
    let has_size = |plan: &SocketPlan<'_>| plan.path_mtu.is_some() || plan.transport.mss().is_some();
    if plans.iter().any(|plan| plan.transport.is_multipath() && has_size(plan)) {
        check_multipath_mss("this host")
            .map_err(|why| format!("{why}; a link with another `mtu` than the others sets one, too"))
    } else {
        Ok(())
    }
}

/// The MTU of the device of `host`: the largest MTU of the links that packets from the host enter first. The
/// host's kernel fragments larger packets.
fn device_mtu(scenario: &Scenario, host: Host) -> u16 {
    let first_links = scenario.flows.iter().flat_map(|flow| {
        let second = flow.second_path.as_ref();
        if sender(flow) == host {
            [flow.route.first(), second.and_then(|path| path.route.first())]
        } else {
            [flow.return_route.first(), second.and_then(|path| path.return_route.first())]
        }
    });
    let first_links = first_links.flatten();
    let largest =
        first_links.map(|link| scenario.links[link.0 as usize].config.mtu.get()).max().unwrap_or(1500);
    u16::try_from(largest).unwrap_or(u16::MAX).max(scenario.ip.min_mtu().get() as u16)
}

/// The MTU of both devices if programs of the user run on the path: the smallest MTU of all links. No link
/// then has to cut a packet, as if each program had discovered the path's MTU (RFC 1191, RFC 8201).
///
/// # Errors
/// Returns an error if the scenario has no links `up` and `down`.
fn program_mtu(scenario: &Scenario) -> Result<u16, ArenaError> {
    let has = |name: &str| scenario.links.iter().any(|link| link.name == name);
    if !has("up") || !has("down") {
        return Err(ArenaError::Unsupported(
            "a program of the user needs a `path`, with the links `up` and `down`".to_owned(),
        ));
    }
    let smallest = scenario.links.iter().map(|link| link.config.mtu.get()).min().unwrap_or(1500);
    let mtu = u16::try_from(smallest).unwrap_or(u16::MAX);
    // RFC 8200 §5. The hosts have addresses of both versions.
    let least = IpVersion::V6.min_mtu();
    if Bytes::new(mtu.into()) < least {
        return Err(ArenaError::Unsupported(format!(
            "a program of the user needs links with an mtu of {least} or more, because its network has IPv6"
        )));
    }
    Ok(mtu)
}

/// The settings of hosts on which programs of the user run. Each user may send pings, as most distributions
/// allow it, and may serve every port, because no other user can reach the network.
fn program_settings() -> Vec<Setting> {
    let group = rustix::process::getegid().as_raw();
    let [pings, ports] = PROGRAM_SETTINGS;
    vec![(pings, format!("{group} {group}").into_bytes().into()), (ports, Cow::Borrowed(&b"0"[..]))]
}

/// The host that the flow's sender is on.
pub(super) fn sender(flow: &Flow) -> Host {
    match flow.direction {
        Direction::Up => Host::First,
        Direction::Down => Host::Second,
    }
}

/// The second addresses of the hosts. `None` if no flow has a second path.
///
/// # Errors
/// Returns an error if a flow wants Multipath TCP and the kernel does not have it.
fn second_addresses(scenario: &Scenario, spec: &SessionSpec) -> Result<Option<SecondAddresses>, ArenaError> {
    if spec.flows.iter().any(|flow| flow.transport.is_multipath()) {
        check_multipath("this host").map_err(ArenaError::Unsupported)?;
    }
    let with_second = || scenario.flows.iter().filter(|flow| flow.second_path.is_some());
    if with_second().next().is_none() {
        return Ok(None);
    }
    let manager = PathManager::find().map_err(|error| ArenaError::Unavailable {
        what: format!("the kernel's path manager of Multipath TCP is not there: {error}"),
        how: "the kernel needs CONFIG_MPTCP (Linux 5.6)".to_owned(),
    })?;
    let opens = Host::BOTH.map(|host| with_second().any(|flow| sender(flow) == host));
    Ok(Some(SecondAddresses { manager, opens }))
}

/// The token that the datagrams of flow `index` carry.
pub(super) fn token(index: usize) -> u32 {
    // The token of a small index cannot be the beginning of a registration, whose first byte is a letter
    // (wire.rs).
    index as u32
}

/// Checks that the kernel has the congestion controls that the flows name. A socket of an emulated host may
/// use every congestion control of the kernel, because this process is root there. An ordinary socket of this
/// user may use only those in tcp_allowed_congestion_control.
pub(super) fn check_congestion_controls(spec: &SessionSpec) -> Result<(), String> {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let available = available.unwrap_or_default();
    let is_there = |cc: &&str| available.split_ascii_whitespace().any(|name| name == *cc);
    spec.flows
        .iter()
        .filter_map(|flow| flow.transport.cc())
        .filter(|cc| !is_there(cc))
        .try_for_each(|cc| check_congestion_control(cc, "this host"))
}
