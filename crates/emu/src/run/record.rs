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
use crate::lanes::record::ProgramRecord;
use crate::report::{ENDPOINT_INVALID, EmuReport, LatenessFigures};
use crate::stops::FlowLateness;
use crate::watch::SocketRest;

/// A run that is over.
pub(super) struct FinishedRun<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) spec: &'a SessionSpec,
    pub(super) plan: &'a RunPlan<'a>,
    pub(super) ends: &'a Ends,
    pub(super) emulated: Emulated,
    pub(super) disturbance: Disturbance,
}

impl FinishedRun<'_> {
    /// What it leaves behind; `warnings` are those that it began with.
    pub(super) fn done(self, mut warnings: Vec<String>) -> Done {
        let (scenario, plan, window) = (self.scenario, self.plan, self.window());
        let is_interrupted = self.disturbance.is_interrupted;
        let beside = self.ends.flows.iter().find_map(FlowEnds::beside);
        let mut flows = self.flows();
        let mut report = self.report(&flows.lateness);
        let Emulated { network, log, capture, lanes, end: stopped, .. } = self.emulated;
        // A run with a program ends with the program.
        let ends_early = is_interrupted || lanes.is_some();
        let end = if ends_early { stopped } else { stopped.max(window.end) };
        let (links, queues) = network.finish(scenario, end);
        flows.series.extend(queues);
        report.flows = flows.judged_by_lateness(scenario, &links, &window);
        report.turn_rounds = flows.turn_rounds;
        warnings.extend(flows.warnings);
        let judgement = report.judge();
        warnings.extend(judgement.warnings);
        let is_sound = judgement.is_sound && !is_interrupted && self.disturbance.trouble.is_empty();
        let valid = is_sound && judgement.late_flows.is_empty();
        let late_flows = if is_sound { judgement.late_flows } else { Vec::new() };
        let trouble = self.disturbance.trouble.into_iter();
        warnings.extend(trouble.map(|what| warning::invalid(format!("emu: {what}"))));
        let capture = capture.map(|(file, left_out)| {
            warnings.extend(incomplete_capture(left_out));
            file
        });
        if let Some(lanes) = lanes {
            let programs = ProgramRecord::of(&lanes);
            flows.records.extend(programs.flows);
            flows.series.extend(programs.series);
            warnings.extend(programs.warnings);
        }
        let record = RunRecord {
            cell: plan.cell,
            repetition: plan.repetition,
            seed: plan.seed.get(),
            window_start: window.start,
            window_end: if ends_early { window.end.min(stopped) } else { window.end },
            flows: flows.records,
            links,
            series: flows.series,
            drain: scenario.drain,
            machine: Some(MachineRecord { late_flows, ..report.record() }),
            valid,
            warnings,
            ..RunRecord::default()
        };
        Done { record, log, capture, report, is_interrupted, beside }
    }

    /// Of the messages that are judged.
    fn window(&self) -> Range<Instant> {
        Instant::from_nanos(self.spec.warm_up_ns)..self.spec.stop()
    }

    fn flows(&self) -> RecordedFlows {
        let mut flows = RecordedFlows::new();
        (0..self.scenario.flows.len()).for_each(|index| flows.add(self.flow(index)));
        flows
    }

    /// What the machine did, but for what is known of each flow. `lateness` is that of all senders.
    fn report(&self, lateness: &Histogram) -> EmuReport {
        let Self { emulated: Emulated { totals, end, .. }, disturbance, .. } = self;
        let is_bounded = self.spec.flows.iter().map(|flow| flow.transport.datagram_buffer().is_some());
        let by_sockets = drops_of_unbounded(disturbance.sockets.iter().zip(is_bounded));
        EmuReport {
            emulator: LatenessFigures::of(&totals.lateness),
            backlog: LatenessFigures::of(&totals.backlog),
            endpoints: LatenessFigures::of(lateness),
            packets: totals.packets,
            device_drops: disturbance.device_drops + totals.refused,
            overruns: totals.overruns,
            strays: totals.strays,
            udp: UdpDrops::new(by_sockets, disturbance.udp_errors),
            cpu_share: totals.cpu_ns as f64 / (end.as_nanos() + LEAD.as_nanos()) as f64,
            not_real_time: totals.realtime_denied.clone(),
            stolen_share: disturbance.stolen_share,
            stops: totals.stops,
            flows: Vec::new(),
            turn_rounds: Vec::new(),
        }
    }
}

/// The records of all flows, and what else their ends say.
struct RecordedFlows {
    records: Vec<FlowRecord>,
    series: Vec<Series>,
    turn_rounds: Vec<TurnRoundRecord>,
    /// How late all senders handed messages over.
    lateness: Histogram,
    /// By flow ([`RecordedFlow::late`]).
    late: Vec<u64>,
    warnings: Vec<String>,
}

impl RecordedFlows {
    fn new() -> Self {
        Self {
            records: Vec::new(),
            series: Vec::new(),
            turn_rounds: Vec::new(),
            lateness: Histogram::new(),
            late: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn add(&mut self, flow: RecordedFlow) {
        self.records.push(flow.record);
        self.series.extend(flow.series);
        self.turn_rounds.extend(flow.turns);
        self.lateness.merge(&flow.lateness);
        self.late.push(flow.late);
        self.warnings.extend(flow.warnings);
    }

    /// Returns how the machine disturbed each flow, and what the flow tolerates.
    fn judged_by_lateness(
        &self,
        scenario: &Scenario,
        links: &[LinkRecord],
        window: &Range<Instant>,
    ) -> Vec<FlowLateness> {
        let flows = scenario.flows.iter().zip(&self.records).zip(&self.late);
        let lateness = |((flow, record), late): ((&Flow, &FlowRecord), &u64)| FlowLateness {
            packets: LateFlow {
                name: flow.name.clone(),
                messages: record.forward.messages.len() as u64,
                late: *late,
            },
            tolerated_stop: tolerated_stop(flow, links, window),
        };
        flows.map(lateness).collect()
    }
}

/// That a capture lacks `left_out` packets.
fn incomplete_capture(left_out: u64) -> Option<String> {
    let what = || {
        format!(
            "emu: {} did not fit into the capture, which holds {} MiB at most",
            counted(left_out, "packet"),
            MAX_BYTES >> 20
        )
    };
    (left_out > 0).then(what)
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
            series: if self.plan.series.is_some() { series(&flow.name, &near.log) } else { Vec::new() },
            turns: turns.map(|turns| turns.record(&flow.name)),
            late: self.emulated.flows[self.spec.leader(index)].late.saturating_add(sent_late(&lateness)),
            lateness,
            warnings,
        }
    }

    /// Joins the logs of both ends of a flow, and completes the record by what the emulator and the sockets
    /// saw.
    fn joined(&self, index: usize, near: &EndLog, far: &EndLog) -> FlowRecord {
        let window = self.window();
        let (flow, spec) = (&self.scenario.flows[index], &self.spec.flows[index]);
        let mut record = flow_record(flow, spec, Some(near), Some(far), &window, RunEnd::Drained, true);
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
        legs::recount(&mut record, &window);
        record
    }
}

/// The longest stop of the path that does not change the figures of `flow`. `None` if the flow has a clock,
/// because then each late message counts.
fn tolerated_stop(flow: &Flow, links: &[LinkRecord], window: &Range<Instant>) -> Option<Duration> {
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
