//! The simulated arena: our transports over our path model under a virtual clock.
//!
//! A run is a function of scenario and seed: two runs give identical records, in debug and release, on any
//! number of jobs. Nothing here draws random numbers but the start of a flow; links and transports have their
//! own streams.
//!
//! - *endpoint*: one end of a flow: an application on a transport.
//! - *member*: one end of a flow on a QUIC connection, which several flows may share.
//! - *step*: what an endpoint does at a packet or a timer: input, then reads, then writes.
//! - *drain*: after `duration` the run goes on until nothing is under way any more.
//! - *slot*: the place of a packet under way; the network carries its number.
//! - *hop*: a packet on one link. *Journey*: the hops of all packets, for an animation.
//! - *capture*, *qlog*, *journey*: made by running the same scenario and seed once more.
//!
//! Begin to read with `simulation.rs`, then `endpoint.rs`.

mod build;
pub mod capture;
mod connections;
mod endpoint;
mod exchange;
mod flow;
pub mod journey;
mod member;
mod packets;
#[cfg(test)]
mod properties;
pub mod qlog;
mod shared;
mod simulation;
mod tap;

pub use talkpath_flow::flow_info;

use talkpath_arena::{Arena, ArenaError, RunPlan, far_clock};
use talkpath_config::UDP_OVER_IPV4;
use talkpath_measure::RunRecord;
use talkpath_model::{Flow, IpVersion, Scenario};
use talkpath_units::Instant;

use crate::simulation::{EndCause, Simulation};

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
        scenario.check_path_is_known().map_err(ArenaError::Unsupported)?;
        scenario.has_no_program().map_err(ArenaError::Unsupported)?;
        check_datagrams(scenario).map_err(ArenaError::Unsupported)?;
        check_multipath(scenario).map_err(ArenaError::Unsupported)?;
        let probed = far_clock::with_probes(scenario);
        let scenario = probed.as_ref().unwrap_or(scenario);
        // Stamps can only be corrected once all probes are back: of a wrong clock rows are kept until then.
        let plan = RunPlan { rows: plan.rows || probed.is_some(), ..plan };
        let mut simulation = build::build(scenario, &plan);
        let end = simulation.run(&plan, &mut |_| {});
        if end.cause == EndCause::Overfull {
            return Err(ArenaError::Unsupported(overfull(&simulation, scenario, end.at)));
        }
        let mut record = simulation.finish(end.at, &plan, scenario);
        far_clock::apply_far_clock(&mut record, scenario);
        if end.cause == EndCause::Interrupted {
            // The figures' window ends where the run did.
            record.window_end = record.window_end.min(end.at);
            record.valid = false;
            return Err(ArenaError::Interrupted { partial: Some(Box::new(record)) });
        }
        Ok(record)
    }
}

/// What is said of a run that ended at `at` because too many packets were under way.
fn overfull(simulation: &Simulation, scenario: &Scenario, at: Instant) -> String {
    let most = (simulation.flows.iter().zip(&scenario.flows)).max_by_key(|(flow, _)| flow.taps.pending());
    let name = most.map_or("", |(_, flow)| flow.name.as_str());
    format!(
        "flow {name}: more than {} packets are under way at {:.3} s: nothing on its route holds them back; give its links a \
         `rate`, their queues a smaller `limit`, or its workload an end",
        simulation.most_under_way,
        at.as_secs_f64()
    )
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
    use core::sync::atomic::AtomicBool;

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

    #[test]
    fn a_run_whose_window_nothing_bounds_ends_with_what_to_do() {
        let text = "duration = \"60 s\"\n[path]\nup = { delay = \"50 ms\" }\ndown = { delay = \"50 ms\" }\n\
                    [flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n\
                    [flow.a]\ntransport = \"quic-datagram\"\nworkload = \"bulk\"\n";
        let scenario = load(&Source::new("x.toml", text), &Options::default()).unwrap();
        let scenario = &scenario.cells[0].scenario;
        let plan = RunPlan {
            cell: 0,
            repetition: 0,
            seed: scenario.seed.repetition(0),
            series: None,
            rows: false,
            interrupt: &AtomicBool::new(false),
            progress: &|_| {},
        };
        let mut simulation = build::build(scenario, &plan);
        simulation.most_under_way = 5000;
        let end = simulation.run(&plan, &mut |_| {});
        assert_eq!(end.cause, EndCause::Overfull);
        let why = overfull(&simulation, scenario, end.at);
        assert!(why.starts_with("flow a: more than 5000 packets are under way at 1."), "{why}");
    }
}
