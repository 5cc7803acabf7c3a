//! The QUIC connections of a simulated run as qlog, as one end of each has seen them.
//!
//! A run is a function of scenario and seed, so it is made again for it. Connections are told apart by the
//! events' `group_id`.

use std::io::{self, Write};

use talkpath_arena::RunPlan;
use talkpath_model::Scenario;
use talkpath_quic::begin_qlog;

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
    begin_qlog(&scenario.name, end == CaptureEnd::Near, out)?;
    let logs = simulation.connections.take_qlog(end);
    let mut events: Vec<_> =
        logs.iter().flat_map(|(name, events)| events.iter().map(move |event| (name, event))).collect();
    // Those of one instant stay in the connections' order.
    events.sort_by_key(|(_, event)| event.at);
    events.into_iter().try_for_each(|(name, event)| event.write(name, out))
}
