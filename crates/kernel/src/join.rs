//! Joins the logs of both ends of a flow into the flow's record, on the client's clock.
//!
//! ```text
//!  sender's log:    messages due and sent, echoes received ─┐
//!                                                           ├─► flow_record ─► forward leg, echo leg, counters
//!  receiver's log:  messages received, echoes sent ─────────┘
//! ```
//!
//! The log of the far end is missing if the far end went away. A flow with an echo then still knows its round
//! trips. A message whose fate neither end knows stays *unfinished*, and no figure counts it
//! ([`LegRecord::arrivals_unknown`](talkpath_measure::LegRecord::arrivals_unknown)).
//!
//! - *leg*: one direction of a flow: the messages (forward), or their echoes.
//! - *break*: a time in which a flow delivered nothing, or the early end of its connection.
//! - *window*: the part of the run that the figures are computed from.
//!
//! Begin to read with [`flow_record`]. `join/legs.rs` pairs the messages.

mod flow_logs;
mod ip;
mod legs;
mod quic;
mod series;
mod warnings;

use std::ops::Range;

use talkpath_flow::file::MAX_RANGES;
use talkpath_flow::flow_info;
use talkpath_measure::breaks::outages;
use talkpath_measure::metrics::legs as leg_figures;
use talkpath_measure::summary::MultipathSummary;
use talkpath_measure::{
    BreakRecord, EcnRecord, FileRecord, FlowCounters, FlowInfo, FlowRecord, HeldRecord, OpeningRecord,
};
use talkpath_model::{Flow, WorkloadConfig};
use talkpath_units::{Bytes, Duration, Instant, printable};

use self::flow_logs::FlowLogs;
use self::legs::Legs;
use self::series::StepFunction;
use crate::log::{EndLog, EndTotals, HeldTotals};
use crate::spec::{FlowSpec, is_congestion_control};

pub use self::flow_logs::RunEnd;
pub use self::ip::{dscp_warnings, ecn_warnings};
pub use self::quic::quic_warnings;
pub use self::series::series;
pub use self::warnings::{
    MAX_REASONS, early_echo_warnings, file_warnings, multipath_warnings, no_network_warnings,
    short_number_warnings, shorten_reason, unsent_warnings,
};

/// The longest name of a file on Linux (NAME_MAX).
const MAX_FILE_NAME: usize = 255;

/// Makes the record of `flow` from the logs of its two ends. A log is `None` if that end went away.
pub fn flow_record(
    flow: &Flow,
    spec: &FlowSpec,
    sender: Option<&EndLog>,
    receiver: Option<&EndLog>,
    window: &Range<Instant>,
    run_end: RunEnd,
    clock_trusted: bool,
) -> FlowRecord {
    let logs = FlowLogs { spec, sender, receiver, run_end };
    let Legs { forward, echo, early_echoes } = Legs::join(logs);
    let mut record = FlowRecord {
        info: info(flow, logs, clock_trusted),
        forward,
        echo,
        counters: counters(logs, window),
        ecn: ecn(flow, logs),
        file: file(spec, receiver),
        tally: None,
    };
    // Without the receiver's log and without an echo nobody knows what arrived, so nobody knows the outages.
    if receiver.is_some() || record.echo.is_some() {
        record.counters.breaks = breaks(&record, logs, window.end);
    }
    record.counters.early_echoes = early_echoes;
    record.counters.opening = opening(logs);
    record.counters.ip = Some(ip::summary(flow, logs));
    record.counters.multipath = multipath(flow, logs);
    if sender.is_some() && receiver.is_some() {
        record.counters.legs = Some(leg_figures::of(&record, window));
    }
    record
}

fn info(flow: &Flow, logs: FlowLogs<'_>, clock_trusted: bool) -> FlowInfo {
    // The name of the congestion control may come from the far host, which may send anything.
    let reported =
        logs.sender.and_then(|log| log.totals.cc.clone()).filter(|name| is_congestion_control(name));
    let cc = reported.or_else(|| logs.spec.transport.cc().map(str::to_owned));
    flow_info(flow, cc, Instant::from_nanos(logs.spec.start_ns), clock_trusted)
}

/// Makes the flow's counters. They are empty without the sender's log.
fn counters(logs: FlowLogs<'_>, window: &Range<Instant>) -> FlowCounters {
    let Some(sender) = logs.sender else { return FlowCounters::default() };
    // A receiver sends messages only if it echoes. Otherwise it has no packets of its own to count.
    let echoing = logs.receiver.filter(|_| logs.has_echo());
    let sum = |count: fn(&EndTotals) -> Option<u64>| {
        let echoes = match echoing {
            Some(receiver) => count(&receiver.totals)?,
            None => 0,
        };
        Some(count(&sender.totals)?.saturating_add(echoes))
    };
    let samples = sender.samples.as_slice();
    let cwnd = StepFunction::new(samples, |sample| sample.cwnd.map(f64::from));
    // Only a reliable transport has a receive window. Other transports drop what finds no room at the
    // receiver.
    let is_reliable = logs.spec.features().is_reliable;
    let offered_window = StepFunction::new(samples, |sample| {
        let cwnd = sample.cwnd.filter(|_| is_reliable)?;
        Some(f64::from(sample.window.map_or(cwnd, |window| cwnd.min(window))))
    });
    let send_buffer = StepFunction::new(samples, |sample| Some(sample.queued as f64));
    FlowCounters {
        data_packets: sum(|totals| totals.data_packets),
        retransmissions: sum(|totals| totals.retransmissions),
        timeouts: sum(|totals| totals.timeouts),
        cwnd_packets_mean: cwnd.mean(window),
        window_packets_mean: offered_window.mean(window),
        send_buffer_mean: send_buffer.mean(window),
        send_buffer_max: send_buffer.max(window),
        blocked: Some(Duration::from_nanos(sender.totals.blocked_ns)),
        held: held(sender.totals.held),
        ..FlowCounters::default()
    }
}

fn held(totals: HeldTotals) -> HeldRecord {
    HeldRecord {
        congestion_window: Duration::from_nanos(totals.congestion_window_ns),
        receiver_window: Duration::from_nanos(totals.receiver_window_ns),
        nagle: Duration::from_nanos(totals.nagle_ns),
        pacing: Duration::from_nanos(totals.pacing_ns),
    }
}

/// Makes the record of the flow's opening. Only the client's end knows its socket and the handshake. The end
/// of a message's way is the sender if the flow has an echo, and otherwise the receiver.
fn opening(logs: FlowLogs<'_>) -> OpeningRecord {
    let of_client = |part: fn(&EndTotals) -> Option<u64>| logs.present().find_map(|log| part(&log.totals));
    let of_end = |log: Option<&EndLog>, part: fn(&EndTotals) -> Option<u64>| part(&log?.totals);
    let last = if logs.has_echo() { logs.sender } else { logs.receiver };
    let [open, socket, handshake, first_delivered] = [
        of_end(logs.sender, |totals| totals.opening_ns),
        of_client(|totals| totals.socket_ns),
        of_client(|totals| totals.handshake_ns),
        of_end(last, |totals| totals.first_read_ns),
    ]
    .map(|ns| ns.map(Duration::from_nanos));
    OpeningRecord { open, name: None, socket, handshake, first_delivered }
}

/// Makes the flow's record of ECN marks from the counts of both ends. Returns `None` if the flow does not use
/// ECN.
fn ecn(flow: &Flow, logs: FlowLogs<'_>) -> Option<EcnRecord> {
    let sender = logs.sender.map(|log| &log.totals);
    let receiver = logs.receiver.map(|log| &log.totals);
    let capable = sender.and_then(|totals| totals.takes_marks);
    if !flow.transport.wants_ecn() && capable != Some(true) {
        return None;
    }
    Some(EcnRecord {
        capable,
        marked_forward: receiver.and_then(|totals| totals.marked),
        marked_return: sender.and_then(|totals| totals.marked).filter(|_| logs.has_echo()),
        echoed_forward: sender.and_then(|totals| totals.echoed),
        echoed_return: receiver.and_then(|totals| totals.echoed).filter(|_| logs.has_echo()),
    })
}

/// Returns what both ends know about the connection's paths. Returns `None` unless the scenario asks for
/// Multipath TCP.
fn multipath(flow: &Flow, logs: FlowLogs<'_>) -> Option<MultipathSummary> {
    if !flow.transport.wants_multipath() {
        return None;
    }
    let reports = || logs.present().filter_map(|log| log.totals.multipath);
    Some(MultipathSummary {
        // If one end fell back to plain TCP, the connection is plain TCP.
        fell_back: reports().map(|report| report.fell_back).max(),
        // The kernel that opens a subflow counts it before the other end has answered, so the smaller of the
        // two numbers is right.
        subflows_max: reports().map(|report| report.subflows).min(),
    })
}

/// Lists the outages of the flow, and the end of its connection if the connection ended early.
fn breaks(record: &FlowRecord, logs: FlowLogs<'_>, stop: Instant) -> Vec<BreakRecord> {
    let last_due = record.forward.messages.last().map_or(Instant::ZERO, |message| message.due);
    let until = match logs.run_end {
        RunEnd::Drained => stop,
        RunEnd::Cut => stop.min(last_due),
    };
    let mut breaks = outages(record, logs.spec.features().is_reliable, until);
    if let Some(mut failure) = first_failure(logs) {
        // An outage that lasts until the connection's end is the same break. It began before an end noticed
        // that the connection had failed.
        if let Some(outage) = breaks.pop_if(|outage| outage.to.is_none()) {
            failure.from = failure.from.min(outage.from);
        }
        breaks.push(failure);
    }
    breaks
}

/// Returns the failure of the connection that an end noticed first.
fn first_failure(logs: FlowLogs<'_>) -> Option<BreakRecord> {
    let failure = |log: &EndLog| {
        let from = Instant::from_nanos(log.totals.failed_ns?);
        Some(BreakRecord { from, to: None, why: shorten_reason(log.totals.failure.as_deref()?) })
    };
    logs.present().filter_map(failure).min_by_key(|failure| failure.from)
}

/// Makes the record of the flow's file from what the receiver reports. The receiver may be a far end, which
/// may report anything, so impossible values are limited or left out.
fn file(spec: &FlowSpec, receiver: Option<&EndLog>) -> Option<FileRecord> {
    let (WorkloadConfig::File { bytes, .. }, Some(file)) = (&spec.workload, &spec.file) else { return None };
    let bytes = bytes.get();
    let printable_name = |name: &String| printable(name, MAX_FILE_NAME);
    let outcome = receiver.and_then(|receiver| receiver.totals.file.as_ref());
    let record = FileRecord {
        name: printable_name(&file.name),
        bytes: Bytes::new(bytes),
        sha256: file.sha256.clone(),
        ..FileRecord::default()
    };
    let Some(outcome) = outcome else { return Some(record) };
    Some(FileRecord {
        received: Some(Bytes::new(outcome.received.min(bytes))),
        intact: Some(outcome.is_intact),
        missing: outcome
            .missing
            .iter()
            .copied()
            .filter(|&(from, to)| from < to && to <= bytes)
            .take(MAX_RANGES)
            .collect(),
        missing_ranges: outcome.missing_ranges,
        kept_as: outcome.kept_as.as_ref().map(printable_name),
        ..record
    })
}

#[cfg(test)]
mod tests;
