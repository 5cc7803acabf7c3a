//! The QUIC connections of a simulated run as qlog, as one end of each has seen them.
//!
//! A run is a function of scenario and seed, so it is made again for it. Connections are told apart by the
//! events' `group_id`.

use std::io::{self, Write};

use talkpath_arena::RunPlan;
use talkpath_model::Scenario;
use talkpath_quic::write_qlog;

use crate::build;
use crate::tap::CaptureEnd;

/// Runs `scenario` and writes what the `end` of each of its connections saw to `out`. An interrupt of the
/// `plan` ends the log there.
///
/// # Errors
/// Those of `out`.
pub fn qlog(scenario: &Scenario, plan: &RunPlan<'_>, end: CaptureEnd, out: &mut dyn Write) -> io::Result<()> {
    let probed = talkpath_arena::far_clock::with_probes(scenario);
    let scenario = probed.as_ref().unwrap_or(scenario);
    let mut simulation = build::build(scenario, plan);
    simulation.connections.keep_qlog(end);
    simulation.run(plan, &mut |_| {});
    let logs = simulation.connections.take_qlog(end);
    write_qlog(&scenario.name, end == CaptureEnd::Near, &logs, out)
}
