//! Checks before a run: what a real arena cannot do with a scenario. It is an error if the figures would be
//! wrong, and a warning if the figures stay right.

use std::net::{IpAddr, SocketAddr};

use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::this_kernel::profile_warning;
use talkpath_kernel::unsupported::{
    check_congestion_control, check_multipath, check_multipath_mss, ignored_keys,
};
use talkpath_model::{IpVersion, Scenario};

/// Checks that this kernel has every congestion control that a flow names.
///
/// # Errors
/// Returns which congestion control is missing, and which ones this kernel has.
pub(super) fn congestion_controls(session: &SessionSpec) -> Result<(), String> {
    session
        .flows
        .iter()
        .filter_map(|flow| flow.transport.cc())
        .try_for_each(|cc| check_congestion_control(cc, "this host"))
}

/// Checks that this kernel has Multipath TCP if a flow uses it, and that the kernel accepts the segment size
/// of such a flow. The far host needs no check here: without Multipath TCP it falls back to TCP, and the
/// server checks the segment sizes.
///
/// # Errors
/// Returns what is missing, and what the user can do about it.
pub(super) fn multipath(session: &SessionSpec) -> Result<(), String> {
    if session.flows.iter().any(|flow| flow.transport.is_multipath()) {
        check_multipath("this host")?;
    }
    if session.flows.iter().any(|flow| flow.transport.sets_multipath_mss()) {
        check_multipath_mss("this host")
    } else {
        Ok(())
    }
}

/// Checks that the far host's address has the version of IP that the scenario names. Only `ip = "ipv6"` can
/// be violated, because `ipv4` is the default of a scenario without the key.
///
/// # Errors
/// Returns the address if it is an IPv4 address and the scenario wants IPv6.
pub(super) fn ip(scenario: &Scenario, address: SocketAddr, host: &str) -> Result<(), String> {
    match (scenario.ip, address.ip().to_canonical()) {
        (IpVersion::V6, IpAddr::V4(ip)) => Err(format!(
            "ip = \"ipv6\", but {host} is reached at {ip}: give its IPv6 address with --to, or leave `ip` out"
        )),
        _ => Ok(()),
    }
}

/// Checks that every file goes from this host to the far host. The far host does not have the user's files.
///
/// # Errors
/// Returns the flow whose file goes the other direction.
pub(super) fn files(scenario: &Scenario, session: &SessionSpec) -> Result<(), String> {
    let mut flows = scenario.flows.iter().zip(&session.flows);
    match flows.find(|(_, spec)| spec.file.is_some() && !spec.is_up) {
        Some((flow, _)) => Err(format!(
            "flow {}: over a real network a file goes up, from this host to the far one; use bulk with `bytes`",
            flow.name
        )),
        None => Ok(()),
    }
}

/// Checks that nothing on the path changes by the scenario. Nobody can change the real network at stated
/// times.
///
/// # Errors
/// Returns what to do instead, if the scenario has changes.
pub(super) fn changes(scenario: &Scenario) -> Result<(), String> {
    match scenario.changes.as_slice() {
        [] => Ok(()),
        _ => Err("the scenario, or a preset such as starlink, has [[change]] tables, which a real network does not follow; run it with --arena sim or emu".to_owned()),
    }
}

/// Returns warnings about the parts of the scenario that the run ignores.
pub(super) fn warnings(scenario: &Scenario) -> Vec<String> {
    let mut warnings = Vec::new();
    if scenario.has_path {
        warnings.push("live: the network itself is the path; the scenario's path is ignored".to_owned());
    }
    if scenario.far_clock.is_some() {
        warnings.push("live: the far host reads its own clock; far_clock is ignored".to_owned());
    }
    for flow in &scenario.flows {
        let ignored = ignored_keys(flow, scenario.kernel.as_ref());
        if !ignored.is_empty() {
            warnings.push(format!(
                "flow {}: a real arena cannot set {}; the kernel's own holds",
                flow.name,
                ignored.join(", ")
            ));
        }
    }
    warnings.extend(profile_warning(scenario));
    warnings
}
