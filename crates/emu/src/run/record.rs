//! The record of a repetition: what both ends logged, joined with what the emulator saw and what the machine
//! did.

use talkpath_arena::RunPlan;
use talkpath_kernel::join::{
    RunEnd, file_warnings, flow_record, multipath_warnings, series, unsent_warnings,
};
use talkpath_kernel::spec::{ChannelKind, SessionSpec};
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_measure::RunRecord;
use talkpath_measure::warning;
use talkpath_scenario::Scenario;
use talkpath_units::{Histogram, Instant};

use super::{Disturbance, Done, Ends, FlowEnds, LEAD};
use crate::capture::MAX_BYTES;
use crate::emulator::Emulated;
use crate::report::{EmuReport, LatenessFigures};

/// The record of a run that is over.
pub(super) fn record(
    scenario: &Scenario,
    spec: &SessionSpec,
    plan: &RunPlan<'_>,
    ends: &Ends,
    emulated: Emulated,
    disturbance: Disturbance,
    mut warnings: Vec<String>,
) -> Done {
    let is_interrupted = disturbance.is_interrupted;
    let window = (Instant::from_nanos(spec.warm_up_ns), spec.stop());
    let mut lateness = Histogram::new();
    let (mut flows, mut all_series, mut turn_rounds) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (flow, flow_spec)) in scenario.flows.iter().zip(&spec.flows).enumerate() {
        let near = ends.flows[index].near.lock();
        // Packets of a shared connection are its first flow's.
        let watches = &emulated.flows[spec.leader(index)].watches;
        let member = spec.place_in_connection(index);
        near.add_lateness(&mut lateness);
        if plan.series.is_some() {
            all_series.extend(series(&flow.name, &near.log));
        }
        let far = ends.flows[index].far.lock();
        // A slow application's own time is the scenario's.
        let turns = far.log.totals.turn_round.filter(|_| flow.receiver.service.is_zero());
        turn_rounds.extend(turns.map(|turns| turns.record(&flow.name)));
        let (sender, receiver) = (Some(&near.log), Some(&far.log));
        let mut record = flow_record(flow, flow_spec, sender, receiver, window, RunEnd::Drained, true);
        if flow_spec.transport.channel_kind() == ChannelKind::Connection
            && let Some(ecn) = &mut record.ecn
        {
            // A kernel does not say how many of a connection's segments came marked.
            let [forward, back] = emulated.flows[index].marked;
            ecn.marked_forward = Some(forward);
            ecn.marked_return = record.echo.is_some().then_some(back);
        }
        watches[0].complete(member, &mut record.forward, !is_interrupted, &disturbance.unread[index]);
        if let Some(echo) = &mut record.echo {
            watches[1].complete(member, echo, !is_interrupted, &[]);
        }
        warnings.extend(multipath_warnings(&record));
        warnings.extend(file_warnings(&record, None));
        let logs = [("the sender", sender), ("the receiver", receiver)];
        warnings.extend(unsent_warnings(&flow.name, &logs));
        flows.push(record);
    }
    let end = emulated.end.max(window.1);
    let (links, queues) = emulated.network.finish(scenario, if is_interrupted { emulated.end } else { end });
    all_series.extend(queues);
    // If the scenario bounds a socket's buffer, or slows its reader, drops for want of room there are the
    // scenario's doing.
    let bounds_sockets = scenario
        .flows
        .iter()
        .any(|flow| flow.receiver.socket_buffer.is_some() || !flow.receiver.service.is_zero());
    let report = EmuReport {
        emulator: LatenessFigures::of(&emulated.totals.lateness),
        backlog: LatenessFigures::of(&emulated.totals.backlog),
        endpoints: LatenessFigures::of(&lateness),
        packets: emulated.totals.packets,
        device_drops: disturbance.device_drops + emulated.totals.refused,
        overruns: emulated.totals.overruns,
        udp: UdpDrops::new(
            disturbance.by_sockets.filter(|_| !bounds_sockets).or(Some(0)),
            disturbance.udp_errors,
        ),
        cpu_share: emulated.totals.cpu_ns as f64 / (emulated.end.as_nanos() + LEAD.as_nanos()) as f64,
        not_real_time: emulated.totals.realtime_denied.clone(),
        stolen_share: disturbance.stolen_share,
        turn_rounds,
    };
    let valid = report.judge(&mut warnings) && !is_interrupted && disturbance.trouble.is_empty();
    warnings.extend(disturbance.trouble.into_iter().map(|what| warning::invalid(format!("emu: {what}"))));
    let capture = emulated.capture.map(|(file, left_out)| {
        if left_out > 0 {
            warnings.push(format!(
                "emu: {left_out} packets are not in the capture, which holds {} MiB at most",
                MAX_BYTES >> 20
            ));
        }
        file
    });
    let record = RunRecord {
        cell: plan.cell,
        repetition: plan.repetition,
        seed: plan.seed.get(),
        window_start: window.0,
        window_end: if is_interrupted { window.1.min(emulated.end) } else { window.1 },
        flows,
        links,
        series: all_series,
        drain: scenario.drain,
        machine: Some(report.record()),
        valid,
        warnings,
        ..RunRecord::default()
    };
    let beside = ends.flows.iter().find_map(FlowEnds::beside);
    Done { record, log: emulated.log, capture, report, is_interrupted, beside }
}
