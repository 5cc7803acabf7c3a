//! Makes the record of one flow from the logs of its ends, and from what the emulator and the sockets
//! observed.
//!
//! - *leader*: the first of the flows that share a connection. The packets and sockets of the connection
//!   belong to the leader. A flow with a connection of its own is its own leader.
//! - *tolerated stop*: the longest stop of the emulator that does not change the figures of a flow.
//! - *turn-round*: the time from the arrival of a message at the receiver to its echo.

use std::ops::Range;

use talkpath_kernel::join::{
    RunEnd, early_echo_warnings, file_warnings, flow_record, multipath_warnings, no_network_warnings,
    quic_warnings, series, short_number_warnings, unsent_warnings,
};
use talkpath_kernel::log::EndLog;
use talkpath_kernel::spec::{ChannelKind, SessionSpec};
use talkpath_measure::metrics::legs;
use talkpath_measure::{FlowRecord, LateFlow, LinkRecord, Series, TurnRoundRecord};
use talkpath_model::{Flow, Scenario};
use talkpath_units::{Duration, Histogram, Instant, SignedDuration};

use super::super::ends::SessionEnds;
use super::super::threads::Disturbance;
use crate::emulator::EmuFlow;
use crate::report::ENDPOINT_INVALID;
use crate::stops::FlowLateness;

/// A stop of less than a thousandth of the window does not matter. We chose 1000, because such a stop changes
/// a mean by no more than a thousandth.
const SHORT_STOPS_PER_WINDOW: u64 = 1000;

/// The sources of the records of all flows.
pub(super) struct FlowJoiner<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) session: &'a SessionSpec,
    pub(super) ends: &'a SessionEnds,
    /// What the emulator observed of each flow.
    pub(super) emulated: &'a [EmuFlow],
    pub(super) disturbance: &'a Disturbance,
    pub(super) links: &'a [LinkRecord],
    pub(super) window: &'a Range<Instant>,
    /// True if the user asked for time series.
    pub(super) has_series: bool,
}

/// The record of a flow, and what its ends report besides.
pub(super) struct JoinedFlow {
    pub(super) record: FlowRecord,
    pub(super) series: Vec<Series>,
    /// `None` if the flow has no echo, or if the scenario makes the receiver slow.
    pub(super) turn_round: Option<TurnRoundRecord>,
    /// How late the sender handed its messages over.
    pub(super) sender_lateness: Histogram,
    /// How many packets the machine made late, and which stop the flow tolerates.
    pub(super) lateness: FlowLateness,
    pub(super) warnings: Vec<String>,
}

impl FlowJoiner<'_> {
    /// Joins everything about the flow with this `index`.
    pub(super) fn join(&self, index: usize) -> JoinedFlow {
        let (flow, spec) = (&self.scenario.flows[index], &self.session.flows[index]);
        let (near, far) = (self.ends.flows[index].near.lock(), self.ends.flows[index].far.lock());
        let mut record = self.join_record(index, &near.log, &far.log);
        record.info.terms.path_changes = !self.scenario.changes.is_empty();
        let logs = [("the sender", Some(&near.log)), ("the receiver", Some(&far.log))];
        let is_leader = self.session.is_leader(index);
        let warnings = [
            if is_leader { quic_warnings(&flow.name, &logs) } else { Vec::new() },
            multipath_warnings(&record),
            early_echo_warnings(&record),
            file_warnings(&record, None),
            short_number_warnings(&record, spec, &logs),
            no_network_warnings(&flow.name, &logs),
            unsent_warnings(&flow.name, &logs),
        ];
        let mut sender_lateness = Histogram::new();
        near.add_lateness(&mut sender_lateness);
        let late_packets = self.emulated[self.session.leader(index)].late;
        let lateness = FlowLateness {
            packets: LateFlow {
                name: flow.name.clone(),
                messages: record.forward.messages.len() as u64,
                late: late_packets.saturating_add(count_late_messages(&sender_lateness)),
            },
            tolerated_stop: self.tolerated_stop(flow),
        };
        // The scenario sets the time that a slow receiver takes, so that time says nothing about the machine.
        let turn_round = far.log.totals.turn_round.filter(|_| flow.receiver.service.is_zero());
        JoinedFlow {
            series: if self.has_series { series(&flow.name, &near.log) } else { Vec::new() },
            turn_round: turn_round.map(|turn_round| turn_round.record(&flow.name)),
            sender_lateness,
            lateness,
            warnings: warnings.into_iter().flatten().collect(),
            record,
        }
    }

    /// Joins the logs of both ends, and completes the record by what the emulator and the sockets observed.
    fn join_record(&self, index: usize, near: &EndLog, far: &EndLog) -> FlowRecord {
        let (flow, spec) = (&self.scenario.flows[index], &self.session.flows[index]);
        let mut record = flow_record(flow, spec, Some(near), Some(far), self.window, RunEnd::Drained, true);
        if spec.transport.channel_kind() == ChannelKind::Connection
            && let Some(ecn) = &mut record.ecn
        {
            // The kernel does not report how many segments of a connection came with the ECN mark. The
            // emulator does.
            let [forward, back] = self.emulated[index].marked;
            ecn.marked_forward = Some(forward);
            ecn.marked_return = record.echo.is_some().then_some(back);
        }
        let leader = self.session.leader(index);
        let place = self.session.place_in_connection(index);
        let [forward_watch, back_watch] = &self.emulated[leader].watches;
        let [receiver_socket, sender_socket] = &self.disturbance.sockets[leader];
        let is_drained = !self.disturbance.is_interrupted;
        forward_watch.complete(place, &mut record.forward, receiver_socket.as_ref(), is_drained);
        if let Some(echo) = &mut record.echo {
            back_watch.complete(place, echo, sender_socket.as_ref(), is_drained);
        }
        // Only now it is known which messages a socket or the path still held, so the legs are counted again.
        legs::recount(&mut record, self.window);
        record
    }

    /// Returns the tolerated stop of `flow`: the time that the longest of its queues holds, or a thousandth
    /// of the window if that is longer. Returns `None` if the flow has a clock, because then each late
    /// message counts.
    fn tolerated_stop(&self, flow: &Flow) -> Option<Duration> {
        if flow.workload.is_clocked() {
            return None;
        }
        let window_ns = self.window.end.since(self.window.start).as_nanos();
        let short_stop = Duration::from_nanos(window_ns / SHORT_STOPS_PER_WINDOW);
        let route = flow.route.iter().chain(&flow.return_route);
        let links = route.filter_map(|link| self.links.get(link.0 as usize));
        Some(links.map(|link| link.queue_delay.p99).fold(short_stop, Duration::max))
    }
}

/// Counts the messages that a sender handed over later than the limit for senders.
fn count_late_messages(lateness: &Histogram) -> u64 {
    let limit = SignedDuration::from_nanos(i64::try_from(ENDPOINT_INVALID.as_nanos()).unwrap_or(i64::MAX));
    lateness.buckets().filter(|(span, _)| *span > limit).map(|(_, count)| count).sum()
}
