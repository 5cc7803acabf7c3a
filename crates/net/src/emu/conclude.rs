//! The record of a repetition: what both ends logged, joined with what the emulator saw and what the machine did.

use talkpath_arena::RunPlan;
use talkpath_measure::RunRecord;
use talkpath_scenario::Scenario;
use talkpath_units::Instant;

use super::emulator::Emulated;
use super::report::{EmuReport, LatenessFigures};
use super::run::{Disturbance, Done, Ends, Far, LEAD};
use crate::join::{RunEnd, Timed, file_warnings, flow_record, series, unsent_warnings};
use crate::lateness::Lateness;
use crate::log::FlowLog;
use crate::spec::SessionSpec;

/// The record of a run that is over.
pub(super) fn conclude(
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
    let ours = |at: u64| Instant::from_nanos(at);
    let mut lateness = Lateness::new();
    let (mut flows, mut all_series) = (Vec::new(), Vec::new());
    for (index, (flow, flow_spec)) in scenario.flows.iter().zip(&spec.flows).enumerate() {
        let (near, watches) = (ends.flows[index].near.lock(), &emulated.flows[index].watches);
        lateness.merge(&near.base.lateness);
        let near = Timed { log: &near.base.log, to_ours: &ours };
        if plan.series {
            all_series.extend(series(&flow.name, &near));
        }
        let joined = |log: &FlowLog| {
            let far = Timed { log, to_ours: &ours };
            flow_record(flow, flow_spec, Some(&near), Some(&far), window, RunEnd::Drained, true)
        };
        let mut record = match &ends.flows[index].far {
            Far::Prompt(end) => joined(&end.lock().base.log),
            Far::Slow(end) => joined(&end.log()),
        };
        watches[0].complete(&mut record.forward, !is_interrupted, &disturbance.unread[index]);
        if let Some(echo) = &mut record.echo {
            watches[1].complete(echo, !is_interrupted, &[]);
        }
        warnings.extend(file_warnings(&record, None));
        if let Far::Prompt(far) = &ends.flows[index].far {
            let logs = [("the sender", Some(near.log)), ("the receiver", Some(&far.lock().base.log))];
            warnings.extend(unsent_warnings(&flow.name, &logs));
        }
        flows.push(record);
    }
    let end = emulated.end.max(window.1);
    let (links, queues) = emulated.network.finish(if is_interrupted { emulated.end } else { end });
    all_series.extend(queues);
    // Where the scenario bounds a socket's buffer, or has it read slowly, what finds no room there is its own doing.
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
        socket_drops: if bounds_sockets { 0 } else { disturbance.socket_drops },
        cpu_share: emulated.totals.cpu_ns as f64 / (emulated.end.as_nanos() + LEAD.as_nanos()) as f64,
        not_real_time: emulated.totals.ordinary.clone(),
        stolen_share: disturbance.stolen_share,
    };
    let valid = report.judge(&mut warnings) && !is_interrupted && disturbance.trouble.is_empty();
    warnings.extend(disturbance.trouble.into_iter().map(|what| format!("emu: {what}")));
    let capture = emulated.capture.map(|(file, left_out)| {
        if left_out > 0 {
            warnings.push(format!(
                "emu: {left_out} packets are not in the capture, which holds {} MiB at most",
                super::capture::MOST_BYTES >> 20
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
    Done { record, log: emulated.log, capture, report, is_interrupted }
}
