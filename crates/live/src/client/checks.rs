//! What a real arena cannot do, reported before the run: an error if figures would be wrong, a warning if
//! harmless.

use std::net::{IpAddr, SocketAddr};

use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::this_kernel::profile_warning;
use talkpath_kernel::unsupported::{ignored, lacks_congestion_control, lacks_multipath, lacks_multipath_mss};
use talkpath_model::{IpVersion, Scenario};

/// Whether this kernel has every congestion control that a flow names.
///
/// # Errors
/// Which one is missing and which there are.
pub(super) fn congestion_controls(session: &SessionSpec) -> Result<(), String> {
    session
        .flows
        .iter()
        .filter_map(|flow| flow.transport.cc())
        .try_for_each(|cc| lacks_congestion_control(cc, "this host"))
}

/// Whether this kernel has Multipath TCP, if a flow wants it, and takes the segment size that the flow sets.
/// A far host without Multipath TCP falls back to TCP; its segment sizes it checks itself.
///
/// # Errors
/// What would give it.
pub(super) fn multipath(session: &SessionSpec) -> Result<(), String> {
    if session.flows.iter().any(|flow| flow.transport.is_multipath()) {
        lacks_multipath("this host")?;
    }
    if session.flows.iter().any(|flow| flow.transport.sets_multipath_mss()) {
        lacks_multipath_mss("this host")
    } else {
        Ok(())
    }
}

/// Whether the far host's address is of the version of IP that the scenario names; the default is none.
///
/// # Errors
/// What is the other's.
pub(super) fn ip(scenario: &Scenario, address: SocketAddr, host: &str) -> Result<(), String> {
    match (scenario.ip, address.ip().to_canonical()) {
        (IpVersion::V6, IpAddr::V4(ip)) => Err(format!(
            "ip = \"ipv6\", but {host} is reached at {ip}: give its IPv6 address with --to, or leave `ip` out"
        )),
        _ => Ok(()),
    }
}

/// Whether every file goes from here to the far host, which has none of ours.
///
/// # Errors
/// Which flow's does not.
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

/// What the run ignores.
pub(super) fn warnings(scenario: &Scenario) -> Vec<String> {
    let mut warnings = Vec::new();
    if scenario.has_path {
        warnings.push("live: the network itself is the path; the scenario's path is ignored".to_owned());
    }
    if scenario.far_clock.is_some() {
        warnings.push("live: the far host reads its own clock; far_clock is ignored".to_owned());
    }
    for flow in &scenario.flows {
        let ignored = ignored(flow, scenario.kernel.as_ref());
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
