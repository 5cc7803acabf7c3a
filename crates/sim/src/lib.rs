//! The simulated arena: our transports over our path model under a virtual clock.
//!
//! A run is a function of scenario and seed: two runs give identical records, in debug and release, on any
//! number of jobs. Nothing here draws random numbers but the start of a flow; links and transports have their
//! own streams.

mod build;
pub mod capture;
mod connections;
mod flow;
pub mod journey;
mod packets;
#[cfg(test)]
mod properties;
pub mod qlog;
mod shared;
mod simulation;
mod tap;

use talkpath_arena::{Arena, ArenaError, RunPlan, far_clock};
use talkpath_measure::RunRecord;
use talkpath_scenario::{Flow, IpVersion, Scenario};
use talkpath_transport::UDP_OVER_IPV4;

/// The simulator as an arena. It has no state: any number may run side by side.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimArena;

impl SimArena {
    /// A simulator.
    pub const fn new() -> Self {
        Self
    }
}

impl Arena for SimArena {
    fn run(&mut self, scenario: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError> {
        scenario.path_is_known().map_err(ArenaError::Unsupported)?;
        check_datagrams(scenario).map_err(ArenaError::Unsupported)?;
        check_multipath(scenario).map_err(ArenaError::Unsupported)?;
        let probed = far_clock::with_probes(scenario);
        let scenario = probed.as_ref().unwrap_or(scenario);
        // Stamps can only be corrected once all probes are back: of a wrong clock rows are kept until then.
        let plan = RunPlan { rows: plan.rows || probed.is_some(), ..plan };
        let mut simulation = build::build(scenario, &plan);
        let end = simulation.run(&plan, &mut |_| {});
        let mut record = simulation.finish(end.at, &plan, scenario);
        far_clock::see_through(&mut record, scenario);
        if end.was_interrupted {
            // The figures' window ends where the run did.
            record.window_end = record.window_end.min(end.at);
            record.valid = false;
            return Err(ArenaError::Interrupted { partial: Some(Box::new(record)) });
        }
        Ok(record)
    }
}

/// Whether no flow wants Multipath TCP (RFC 8684), which has no model here: how a kernel shares a connection
/// out over its paths is left to the kernel by the RFC.
///
/// # Errors
/// Which flow does.
fn check_multipath(scenario: &Scenario) -> Result<(), String> {
    match scenario.flows.iter().find(|flow| flow.transport.wants_multipath()) {
        None => Ok(()),
        Some(flow) => Err(format!(
            "flow {}: multipath = true: the simulator has no Multipath TCP, since its scheduler and path manager are the kernel's; \
             use --arena emu or --to HOST, or leave `multipath` out",
            flow.name
        )),
    }
}

/// Whether every datagram fits the path if it travels over IPv6, where the path's model cannot cut it: the
/// source does, with a header of its own in each piece (RFC 8200 §4.5).
///
/// # Errors
/// Which flow's datagrams do not.
fn check_datagrams(scenario: &Scenario) -> Result<(), String> {
    if scenario.ip == IpVersion::V4 {
        return Ok(());
    }
    let too_large = |flow: &&Flow| {
        let is_fragmented = flow.transport.kind().features().is_fragmented;
        // Messages that room alone bounds fill the largest datagrams, up to all that there is to send.
        let size = flow.workload.demand().largest_message().or(flow.workload.transfer_size());
        is_fragmented && size.is_none_or(|size| size + UDP_OVER_IPV4 > scenario.path_mtu(flow))
    };
    match scenario.flows.iter().find(too_large) {
        None => Ok(()),
        Some(flow) => Err(format!(
            "flow {}: the simulator does not fragment IPv6's datagrams; make its messages smaller than the smallest mtu \
             of its routes by 48 B, or use ip = \"ipv4\" or --arena emu",
            flow.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    #[test]
    fn multipath_tcp_is_refused_with_what_to_do_instead() {
        let text = "duration = \"1 s\"\npath = \"lan\"\n[flow.a]\ntransport = { kind = \"tcp\", multipath = true }\n\
                    workload = \"bulk\"\n";
        let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
        let scenario = &plan.cells[0].scenario;
        let why = check_multipath(scenario).unwrap_err();
        assert!(why.starts_with("flow a: multipath = true: ") && why.contains("--arena emu"), "{why}");
    }
}
