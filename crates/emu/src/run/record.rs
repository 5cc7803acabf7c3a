//! Makes the record of a repetition. It joins the logs of both ends with what the emulator saw, and judges
//! how the machine disturbed the run.

use std::ops::Range;

use talkpath_arena::RunPlan;
use talkpath_kernel::join::{
    RunEnd, early_echo_warnings, file_warnings, flow_record, multipath_warnings, no_network_warnings, series,
    short_number_warnings, unsent_warnings,
};
use talkpath_kernel::log::EndLog;
use talkpath_kernel::spec::{ChannelKind, SessionSpec};
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_measure::metrics::legs;
use talkpath_measure::{
    FlowRecord, LateFlow, LinkRecord, MachineRecord, RunRecord, Series, TurnRoundRecord, warning,
};
use talkpath_model::{Flow, Scenario};
use talkpath_units::{Duration, Histogram, Instant, SignedDuration, counted};

use super::{Disturbance, Done, Ends, FlowEnds, LEAD};
use crate::capture::MAX_BYTES;
use crate::emulator::Emulated;
use crate::report::{ENDPOINT_INVALID, EmuReport, LatenessFigures};
use crate::stops::FlowLateness;
use crate::watch::SocketRest;

/// Makes the record of a run that is over.
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
    let finished = FinishedRun {
        scenario,
        spec,
        has_series: plan.series.is_some(),
        ends,
        emulated: &emulated,
        disturbance: &disturbance,
        window: &window,
    };
    let recorded: Vec<RecordedFlow> = (0..scenario.flows.len()).map(|index| finished.flow(index)).collect();
    let end = emulated.end.max(window.end);
    let (links, queues) = emulated.network.finish(scenario, if is_interrupted { emulated.end } else { end });
    let mut lateness = Histogram::new();
    let (mut flows, mut all_series, mut turn_rounds) = (Vec::new(), Vec::new(), Vec::new());
    let mut late_flows = Vec::new();
    for (flow, recorded) in scenario.flows.iter().zip(recorded) {
        lateness.merge(&recorded.lateness);
        late_flows.push(FlowLateness {
            packets: LateFlow {
                name: flow.name.clone(),
                messages: recorded.record.forward.messages.len() as u64,
                late: recorded.late,
            },
            bears: bears(flow, &links, &window),
        });
        flows.push(recorded.record);
        all_series.extend(recorded.series);
        turn_rounds.extend(recorded.turns);
        warnings.extend(recorded.warnings);
    }
    all_series.extend(queues);
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
                "emu: {} did not fit into the capture, which holds {} MiB at most",
                counted(left_out, "packet"),
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

/// The results of a run from which the records of its flows are made.
struct FinishedRun<'a> {
    scenario: &'a Scenario,
    spec: &'a SessionSpec,
    has_series: bool,
    ends: &'a Ends,
    emulated: &'a Emulated,
    disturbance: &'a Disturbance,
    window: &'a Range<Instant>,
}

/// A flow's record, and what its ends report besides.
struct RecordedFlow {
    record: FlowRecord,
    series: Vec<Series>,
    /// How long the flow's receiver held messages before it echoed them. `None` if the scenario makes the
    /// receiver slow.
    turns: Option<TurnRoundRecord>,
    /// How late the flow's sender handed messages over.
    lateness: Histogram,
    /// The number of packets that the emulator carried too late, plus the number of messages that the sender
    /// handed over too late.
    late: u64,
    warnings: Vec<String>,
}

impl FinishedRun<'_> {
    fn flow(&self, index: usize) -> RecordedFlow {
        let (flow, spec) = (&self.scenario.flows[index], &self.spec.flows[index]);
        let (near, far) = (self.ends.flows[index].near.lock(), self.ends.flows[index].far.lock());
        let mut lateness = Histogram::new();
        near.add_lateness(&mut lateness);
        let record = self.joined(index, &near.log, &far.log);
        let mut warnings = multipath_warnings(&record);
        warnings.extend(early_echo_warnings(&record));
        warnings.extend(file_warnings(&record, None));
        let logs = [("the sender", Some(&near.log)), ("the receiver", Some(&far.log))];
        warnings.extend(short_number_warnings(&record, spec, &logs));
        warnings.extend(no_network_warnings(&flow.name, &logs));
        warnings.extend(unsent_warnings(&flow.name, &logs));
        // The scenario sets the time that a slow application takes, so the machine is not judged by it.
        let turns = far.log.totals.turn_round.filter(|_| flow.receiver.service.is_zero());
        RecordedFlow {
            record,
            series: if self.has_series { series(&flow.name, &near.log) } else { Vec::new() },
            turns: turns.map(|turns| turns.record(&flow.name)),
            late: self.emulated.flows[self.spec.leader(index)].late.saturating_add(sent_late(&lateness)),
            lateness,
            warnings,
        }
    }

    /// Joins the logs of both ends of a flow, and completes the record by what the emulator and the sockets
    /// saw.
    fn joined(&self, index: usize, near: &EndLog, far: &EndLog) -> FlowRecord {
        let (flow, spec) = (&self.scenario.flows[index], &self.spec.flows[index]);
        let mut record = flow_record(flow, spec, Some(near), Some(far), self.window, RunEnd::Drained, true);
        if spec.transport.channel_kind() == ChannelKind::Connection
            && let Some(ecn) = &mut record.ecn
        {
            // The kernel does not report how many segments of a connection came with the ECN mark. The
            // emulator does.
            let [forward, back] = self.emulated.flows[index].marked;
            ecn.marked_forward = Some(forward);
            ecn.marked_return = record.echo.is_some().then_some(back);
        }
        // The packets and sockets of a shared connection belong to its first flow.
        let leader = self.spec.leader(index);
        let member = self.spec.place_in_connection(index);
        let watches = &self.emulated.flows[leader].watches;
        let [there, back] = self.disturbance.sockets[leader].each_ref().map(Option::as_ref);
        let is_drained = !self.disturbance.is_interrupted;
        watches[0].complete(member, &mut record.forward, there, is_drained);
        if let Some(echo) = &mut record.echo {
            watches[1].complete(member, echo, back, is_drained);
        }
        // Only now it is known which messages a socket or the path still held, so the legs are counted again.
        legs::recount(&mut record, self.window);
        record
    }
}

/// The longest stop of the path that does not change the figures of `flow`. `None` if the flow has a clock,
/// because then each late message counts.
fn bears(flow: &Flow, links: &[LinkRecord], window: &Range<Instant>) -> Option<Duration> {
    if flow.workload.is_clocked() {
        return None;
    }
    let least = Duration::from_nanos(window.end.since(window.start).as_nanos() / SHORT_STOP);
    let route = flow.route.iter().chain(&flow.return_route);
    let queues = route.filter_map(|link| links.get(link.0 as usize)).map(|link| link.queue_delay.p99);
    Some(queues.max().unwrap_or(Duration::ZERO).max(least))
}

/// The number of messages that a flow's sender handed over later than the limit for senders.
fn sent_late(lateness: &Histogram) -> u64 {
    let limit = SignedDuration::from_nanos(i64::try_from(ENDPOINT_INVALID.as_nanos()).unwrap_or(i64::MAX));
    lateness.buckets().filter(|(span, _)| *span > limit).map(|(_, count)| count).sum()
}

/// A stop of less than one part in this many of the run changes no mean of the run by more than that part
/// (chosen).
const SHORT_STOP: u64 = 1000;

/// Counts the datagrams that sockets dropped, without the sockets whose buffers the scenario sets. `None` if
/// the kernel does not report the drops. `flows` has for each flow the sockets of receiver and sender, and
/// true if the scenario sets the buffer of the receiver's socket. The scenario causes the drops of such a
/// socket, and not the machine.
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
