//! The record of a repetition: what both ends logged, joined with what the emulator saw and what the machine
//! did.

use talkpath_arena::RunPlan;
use talkpath_kernel::join::{
    RunEnd, early_echo_warnings, file_warnings, flow_record, multipath_warnings, no_network_warnings, series,
    short_number_warnings, unsent_warnings,
};
use talkpath_kernel::spec::{ChannelKind, SessionSpec};
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_measure::metrics::legs;
use talkpath_measure::{LateFlow, MachineRecord, RunRecord, warning};
use talkpath_model::Scenario;
use talkpath_units::{Duration, Histogram, Instant, SignedDuration};

use super::{Disturbance, Done, Ends, FlowEnds, LEAD};
use crate::capture::MAX_BYTES;
use crate::emulator::Emulated;
use crate::report::{ENDPOINT_INVALID, EmuReport, LatenessFigures};
use crate::stops::FlowLateness;
use crate::watch::SocketRest;

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
    let window = Instant::from_nanos(spec.warm_up_ns)..spec.stop();
    let mut lateness = Histogram::new();
    let (mut flows, mut all_series, mut turn_rounds) = (Vec::new(), Vec::new(), Vec::new());
    let mut late_flows = Vec::new();
    for (index, (flow, flow_spec)) in scenario.flows.iter().zip(&spec.flows).enumerate() {
        let near = ends.flows[index].near.lock();
        // Packets and sockets of a shared connection are its first flow's.
        let leader = spec.leader(index);
        let watches = &emulated.flows[leader].watches;
        let [there, back] = disturbance.sockets[leader].each_ref().map(Option::as_ref);
        let member = spec.place_in_connection(index);
        let mut own_lateness = Histogram::new();
        near.add_lateness(&mut own_lateness);
        lateness.merge(&own_lateness);
        if plan.series.is_some() {
            all_series.extend(series(&flow.name, &near.log));
        }
        let far = ends.flows[index].far.lock();
        // A slow application's own time is the scenario's.
        let turns = far.log.totals.turn_round.filter(|_| flow.receiver.service.is_zero());
        turn_rounds.extend(turns.map(|turns| turns.record(&flow.name)));
        let (sender, receiver) = (Some(&near.log), Some(&far.log));
        let mut record = flow_record(flow, flow_spec, sender, receiver, &window, RunEnd::Drained, true);
        if flow_spec.transport.channel_kind() == ChannelKind::Connection
            && let Some(ecn) = &mut record.ecn
        {
            // A kernel does not say how many of a connection's segments came marked.
            let [forward, back] = emulated.flows[index].marked;
            ecn.marked_forward = Some(forward);
            ecn.marked_return = record.echo.is_some().then_some(back);
        }
        watches[0].complete(member, &mut record.forward, there, !is_interrupted);
        if let Some(echo) = &mut record.echo {
            watches[1].complete(member, echo, back, !is_interrupted);
        }
        // What a socket or the path still held is known only now.
        legs::recount(&mut record, &window);
        warnings.extend(multipath_warnings(&record));
        warnings.extend(early_echo_warnings(&record));
        warnings.extend(file_warnings(&record, None));
        let logs = [("the sender", sender), ("the receiver", receiver)];
        warnings.extend(short_number_warnings(&record, flow_spec, &logs));
        warnings.extend(no_network_warnings(&flow.name, &logs));
        warnings.extend(unsent_warnings(&flow.name, &logs));
        late_flows.push(FlowLateness {
            packets: LateFlow {
                name: flow.name.clone(),
                messages: record.forward.messages.len() as u64,
                late: emulated.flows[leader].late.saturating_add(sent_late(&own_lateness)),
            },
            bears: None,
        });
        flows.push(record);
    }
    let end = emulated.end.max(window.end);
    let (links, queues) = emulated.network.finish(scenario, if is_interrupted { emulated.end } else { end });
    all_series.extend(queues);
    let least = Duration::from_nanos(window.end.since(window.start).as_nanos() / SHORT_STOP);
    for (late, flow) in late_flows.iter_mut().zip(&scenario.flows) {
        if !flow.workload.is_clocked() {
            let ways = flow.route.iter().chain(&flow.return_route);
            let queues = ways.filter_map(|link| links.get(link.0 as usize)).map(|link| link.queue_delay.p99);
            late.bears = Some(queues.max().unwrap_or(Duration::ZERO).max(least));
        }
    }
    let is_bounded = spec.flows.iter().map(|flow| flow.transport.datagram_buffer().is_some());
    let by_sockets = drops_of_unbounded(disturbance.sockets.iter().zip(is_bounded));
    let report = EmuReport {
        emulator: LatenessFigures::of(&emulated.totals.lateness),
        backlog: LatenessFigures::of(&emulated.totals.backlog),
        endpoints: LatenessFigures::of(&lateness),
        packets: emulated.totals.packets,
        device_drops: disturbance.device_drops + emulated.totals.refused,
        overruns: emulated.totals.overruns,
        strays: emulated.totals.strays,
        udp: UdpDrops::new(by_sockets, disturbance.udp_errors),
        cpu_share: emulated.totals.cpu_ns as f64 / (emulated.end.as_nanos() + LEAD.as_nanos()) as f64,
        not_real_time: emulated.totals.realtime_denied.clone(),
        stolen_share: disturbance.stolen_share,
        stops: emulated.totals.stops,
        flows: late_flows,
        turn_rounds,
    };
    let judgement = report.judge(&mut warnings);
    let is_sound = judgement.is_sound && !is_interrupted && disturbance.trouble.is_empty();
    let valid = is_sound && judgement.late_flows.is_empty();
    let late_flows = if is_sound { judgement.late_flows } else { Vec::new() };
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
        window_start: window.start,
        window_end: if is_interrupted { window.end.min(emulated.end) } else { window.end },
        flows,
        links,
        series: all_series,
        drain: scenario.drain,
        machine: Some(MachineRecord { late_flows, ..report.record() }),
        valid,
        warnings,
        ..RunRecord::default()
    };
    let beside = ends.flows.iter().find_map(FlowEnds::beside);
    Done { record, log: emulated.log, capture, report, is_interrupted, beside }
}

/// How many messages a flow's sender handed over later than the limit for senders.
fn sent_late(lateness: &Histogram) -> u64 {
    let limit = SignedDuration::from_nanos(i64::try_from(ENDPOINT_INVALID.as_nanos()).unwrap_or(i64::MAX));
    lateness.buckets().filter(|(span, _)| *span > limit).map(|(_, count)| count).sum()
}

/// A stop of less than this part of the run changes no mean of it by more (chosen: a thousandth).
const SHORT_STOP: u64 = 1000;

/// Datagrams that were dropped by sockets whose buffers the scenario leaves to the tool; `None` if the kernel
/// does not report it. Of each flow: its sockets, there and back, and whether the scenario bounds the first
/// one. What that one drops for want of room is the scenario's doing.
fn drops_of_unbounded<'a>(flows: impl Iterator<Item = (&'a [Option<SocketRest>; 2], bool)>) -> Option<u64> {
    let unbounded = flows.flat_map(|([there, back], is_bounded)| {
        there.as_ref().filter(|_| !is_bounded).into_iter().chain(back)
    });
    unbounded.map(|socket| socket.drops.map(u64::from)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_the_scenario_bounds_excuses_its_own_drops_alone() {
        let rest = |drops| Some(SocketRest { drops, unread: Vec::new() });
        let drops = |flows: &[([Option<SocketRest>; 2], bool)]| {
            drops_of_unbounded(flows.iter().map(|(sockets, is_bounded)| (sockets, *is_bounded)))
        };
        let bounded = ([rest(Some(1000)), rest(Some(1))], true);
        let prompt = ([rest(Some(20)), rest(Some(300))], false);
        let connection = ([None, None], false);
        assert_eq!(drops(&[bounded.clone(), prompt, connection.clone()]), Some(321));
        assert_eq!(drops(&[bounded, ([rest(None), None], false)]), None, "the kernel does not report it");
        assert_eq!(drops(&[connection]), Some(0));
    }
}
