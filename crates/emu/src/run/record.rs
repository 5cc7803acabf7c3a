//! Makes the record of a repetition after its threads have ended.
//!
//! ```text
//!  logs of both ends of a flow ──┐
//!  what the emulator observed ───┼─► record/flow.rs ─► records of flows ──┐
//!  what sockets still held ──────┘                                        │
//!  links of the network ──────────────────────────────────────────────────┼─► RunRecord
//!  packets of the user's programs ─► lanes/record.rs ─► records of flows ─┤
//!  disturbances by the machine ─► EmuReport ─► Judgement ─────────────────┘
//! ```
//!
//! The *window* is the part of the run whose messages the figures count. A run *ends early* if the user
//! interrupts it. A run with a program of the user counts as ended early too, because nobody knows before how
//! long the program runs. The window then ends when the emulator stops.
//!
//! Begin to read with [`EndedRun::into_results`].

mod flow;

use talkpath_arena::RunPlan;
use talkpath_kernel::end::qlog_of;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_measure::{MachineRecord, RunRecord, warning};
use talkpath_model::Scenario;
use talkpath_units::{Histogram, Instant};

use self::flow::{FlowJoiner, JoinedFlow};
use super::ends::{FlowEnds, SessionEnds};
use super::threads::Disturbance;
use super::{LEAD, RunResults};
use crate::emulator::{Emulated, Totals};
use crate::lanes::record::ProgramRecord;
use crate::report::{EmuReport, lateness_record};
use crate::watch::DrainedSocket;

/// A run whose threads have ended.
pub(super) struct EndedRun<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) session: &'a SessionSpec,
    pub(super) plan: &'a RunPlan<'a>,
    pub(super) ends: &'a SessionEnds,
    pub(super) emulated: Emulated,
    pub(super) disturbance: Disturbance,
}

impl EndedRun<'_> {
    /// Makes the results. `warnings` has the warnings from before the run.
    pub(super) fn into_results(self, warnings: Vec<String>) -> RunResults {
        let Self { scenario, session, plan, ends, emulated, disturbance } = self;
        let stopped_at = emulated.stopped_at;
        let ends_early = disturbance.is_interrupted || emulated.lanes.is_some();
        let start = Instant::from_nanos(session.warm_up_ns);
        let stop = if ends_early { session.stop().min(stopped_at).max(start) } else { session.stop() };
        let window = start..stop;
        // The records of the links reach to the end of the window, unless the run ends early.
        let path_end = if ends_early { stopped_at } else { stopped_at.max(window.end) };
        let (links, queue_series) = emulated.network.finish(scenario, path_end);
        let joiner = FlowJoiner {
            scenario,
            session,
            ends,
            emulated: &emulated.flows,
            disturbance: &disturbance,
            links: &links,
            window: &window,
            has_series: plan.series.is_some(),
        };
        let flows = (0..scenario.flows.len()).map(|index| joiner.join(index)).collect();
        let mut report = make_report(session, &emulated.totals, stopped_at, &disturbance);
        let mut record = RunRecord {
            cell: plan.cell,
            repetition: plan.repetition,
            seed: plan.seed.get(),
            window_start: window.start,
            window_end: window.end,
            links,
            drain: scenario.drain,
            warnings,
            ..RunRecord::default()
        };
        add_flows(&mut record, &mut report, flows);
        record.series.extend(queue_series);
        add_judgement(&mut record, &report, &disturbance);
        let capture = emulated.capture.map(|capture| {
            record.warnings.extend(capture.warning());
            capture.file
        });
        if let Some(lanes) = &emulated.lanes {
            let programs = ProgramRecord::of(lanes, &record.links);
            record.flows.extend(programs.flows);
            record.series.extend(programs.series);
            record.warnings.extend(programs.warnings);
        }
        RunResults {
            record,
            log: emulated.log,
            capture,
            qlog: qlog_of(&scenario.name, ends.flows.iter().map(|flow| &flow.near)),
            report,
            is_interrupted: disturbance.is_interrupted,
            our_end: ends.flows.iter().find_map(FlowEnds::our_end),
        }
    }
}

/// Makes the report about how the machine disturbed the run. [`add_flows`] adds what is known of each flow.
fn make_report(
    session: &SessionSpec,
    totals: &Totals,
    stopped_at: Instant,
    disturbance: &Disturbance,
) -> EmuReport {
    EmuReport {
        packets: totals.packets,
        emulator: lateness_record(&totals.lateness),
        backlog: lateness_record(&totals.backlog),
        overruns: totals.overruns,
        strays: totals.strays,
        cpu_share: totals.cpu_ns as f64 / (stopped_at.as_nanos() + LEAD.as_nanos()) as f64,
        not_real_time: totals.realtime_denied.clone(),
        stops: totals.stops,
        device_drops: disturbance.device_drops + totals.refused,
        udp: UdpDrops::new(count_socket_drops(session, &disturbance.sockets), disturbance.udp_errors),
        stolen_share: disturbance.stolen_share,
        ..EmuReport::default()
    }
}

/// Adds the flows to the record, and the lateness of their packets and senders to the report.
fn add_flows(record: &mut RunRecord, report: &mut EmuReport, flows: Vec<JoinedFlow>) {
    let mut sender_lateness = Histogram::new();
    for flow in flows {
        sender_lateness.merge(&flow.sender_lateness);
        report.flows.push(flow.lateness);
        report.turn_rounds.extend(flow.turn_round);
        record.flows.push(flow.record);
        record.series.extend(flow.series);
        record.warnings.extend(flow.warnings);
    }
    report.endpoints = lateness_record(&sender_lateness);
}

/// Judges which figures are valid, and adds the judgement with its warnings to `record`.
fn add_judgement(record: &mut RunRecord, report: &EmuReport, disturbance: &Disturbance) {
    let judgement = report.judge();
    let is_sound = judgement.is_sound && !disturbance.is_interrupted && disturbance.failures.is_empty();
    record.valid = is_sound && judgement.late_flows.is_empty();
    // If no figure is valid, no flow has to be named.
    let late_flows = if is_sound { judgement.late_flows } else { Vec::new() };
    record.machine = Some(MachineRecord { late_flows, ..report.record() });
    record.warnings.extend(judgement.warnings);
    let failures = disturbance.failures.iter();
    record.warnings.extend(failures.map(|failure| warning::invalid(format!("emu: {failure}"))));
}

/// Counts the datagrams that the flows' sockets dropped. Returns `None` if the kernel does not report the
/// drops of a socket. The drops of a receiver's socket do not count if the scenario sets the socket's buffer,
/// because then the scenario causes the drops, and not the machine.
fn count_socket_drops(session: &SessionSpec, sockets: &[[Option<DrainedSocket>; 2]]) -> Option<u64> {
    let has_bounded_buffer = session.flows.iter().map(|flow| flow.transport.datagram_buffer().is_some());
    sum_drops(sockets.iter().zip(has_bounded_buffer))
}

fn sum_drops<'a>(flows: impl Iterator<Item = (&'a [Option<DrainedSocket>; 2], bool)>) -> Option<u64> {
    let mut sum = 0;
    for ([receiver, sender], has_bounded_buffer) in flows {
        let receiver = if has_bounded_buffer { &None } else { receiver };
        for socket in [receiver, sender].into_iter().flatten() {
            sum += u64::from(socket.drops?);
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_receive_buffer_that_the_scenario_sets_are_not_the_machines() {
        let socket = |drops| Some(DrainedSocket { drops, unread: Vec::new() });
        let sum = |flows: &[([Option<DrainedSocket>; 2], bool)]| {
            sum_drops(flows.iter().map(|(sockets, has_bounded_buffer)| (sockets, *has_bounded_buffer)))
        };
        let bounded = ([socket(Some(1000)), socket(Some(1))], true);
        let unbounded = ([socket(Some(20)), socket(Some(300))], false);
        let connection = ([None, None], false);
        assert_eq!(sum(&[bounded.clone(), unbounded, connection.clone()]), Some(321));
        assert_eq!(sum(&[bounded, ([socket(None), None], false)]), None, "the kernel does not report it");
        assert_eq!(sum(&[connection]), Some(0));
    }
}
