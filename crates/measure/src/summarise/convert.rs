//! Turns the records of a run into parts of its summary, where no metric is needed.

use talkpath_units::{Duration, Instant};

use crate::metrics::waits::WaitCounters;
use crate::summary::{
    BreakSummary, Clock, DropsByCause, EcnSummary, FileSummary, HeldMs, LateMs, LinkSummary, MachineSummary,
    OpeningSummary, ProgramRunSummary, QueueDelayMs, QueuePackets, TurnRoundMs, WaitsSummary,
};
use crate::{
    BreakRecord, ClockRecord, EcnRecord, FileRecord, FlowCounters, HeldRecord, LatenessRecord, LinkRecord,
    MachineRecord, OpeningRecord, ProgramOutcome, QueueDelayRecord, TurnRoundRecord,
};

/// Summarises the figures of one link.
pub(super) fn summarise_link(link: &LinkRecord) -> LinkSummary {
    // The mean and the utilisation are quotients over the window. In an empty window both are undefined.
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let QueueDelayRecord { mean, p50, p95, p99 } = link.queue_delay;
    LinkSummary {
        discipline: link.discipline.to_owned(),
        queue_packets: QueuePackets {
            mean: finite(link.queue_packets_mean),
            p99: link.queue_packets_p99,
            max: link.queue_packets_max,
        },
        queue_delay_ms: Some(QueueDelayMs {
            mean: mean.as_millis_f64(),
            p50: p50.as_millis_f64(),
            p95: p95.as_millis_f64(),
            p99: p99.as_millis_f64(),
        }),
        forwarded: link.forwarded,
        dropped: link.dropped,
        dropped_by: DropsByCause {
            full: link.dropped.saturating_sub(link.dropped_by_aqm),
            aqm: link.dropped_by_aqm,
        },
        marked: link.marked,
        lost: link.lost,
        repeated: link.repeated,
        damaged: link.damaged,
        utilisation: finite(link.utilisation),
    }
}

/// Summarises how long messages waited. Over real sockets a message is also taken later than it was due if
/// its host was late, so only a transport that had no room makes messages wait for room.
pub(super) fn summarise_waits(waits: &WaitCounters, counters: &FlowCounters) -> Option<WaitsSummary> {
    let was_full = counters.blocked.is_some_and(|blocked| blocked > Duration::ZERO);
    let HeldRecord { congestion_window, receiver_window, nagle, pacing } = counters.held;
    let held = |time: Duration| (time > Duration::ZERO).then(|| time.as_millis_f64());
    let held_ms = HeldMs {
        congestion_window: held(congestion_window),
        receiver_window: held(receiver_window),
        nagle: held(nagle),
        pacing: held(pacing),
    };
    let summary = WaitsSummary {
        for_room_ms: waits.for_room.wait_ms().filter(|_| was_full),
        in_transport_ms: waits.in_transport.wait_ms(),
        for_lost_ms: waits.for_lost.wait_ms(),
        held_ms: (held_ms != HeldMs::default()).then_some(held_ms),
    };
    (summary != WaitsSummary::default()).then_some(summary)
}

/// Summarises how a flow opened. `knows_arrivals` says whether it is known when messages came to their end:
/// between clocks that are not trusted it is not. Returns `None` if no part is known.
pub(super) fn summarise_opening(record: &OpeningRecord, knows_arrivals: bool) -> Option<OpeningSummary> {
    let ms = |part: Option<Duration>| part.map(Duration::as_millis_f64);
    let parts = OpeningSummary {
        name_ms: ms(record.name),
        socket_ms: ms(record.socket),
        handshake_ms: ms(record.handshake),
        first_delivered_ms: ms(record.first_delivered.filter(|_| knows_arrivals)),
    };
    (parts != OpeningSummary::default()).then_some(parts)
}

/// Summarises how the machine kept up with real time.
pub(super) fn summarise_machine(machine: &MachineRecord, is_valid: bool) -> MachineSummary {
    let in_ms = |lateness: LatenessRecord| LateMs {
        p50: lateness.p50.as_millis_f64(),
        p99: lateness.p99.as_millis_f64(),
        max: lateness.max.as_millis_f64(),
    };
    MachineSummary {
        valid: Some(is_valid),
        ran_again: 0,
        emulator_late_ms: machine.emulator_late.map(in_ms),
        emulator_backlog_ms: machine.emulator_backlog.map(in_ms),
        senders_late_ms: machine.senders_late.map(in_ms),
        far_senders_late_ms: machine.far_senders_late.map(in_ms),
        packets: machine.packets,
        device_drops: machine.device_drops,
        socket_drops: machine.socket_drops,
        checksum_errors: machine.checksum_errors,
        far_checksum_errors: machine.far_checksum_errors,
        emulator_cpu_share: machine.emulator_cpu_share.filter(|share| share.is_finite()),
        real_time: machine.real_time,
        stolen_share: machine.stolen_share.filter(|share| share.is_finite()),
        stops: machine.stops,
        longest_stop_ms: machine.longest_stop.map(Duration::as_millis_f64),
        late_flows: machine.late_flows.clone(),
    }
}

/// Summarises how long the echoing host took to answer.
pub(super) fn summarise_turn_rounds(record: &TurnRoundRecord) -> TurnRoundMs {
    let [p50, p90, p99, max] = [record.p50, record.p90, record.p99, record.max].map(Duration::as_millis_f64);
    TurnRoundMs { p50, p90, p99, max }
}

pub(super) fn summarise_file(file: &FileRecord) -> FileSummary {
    FileSummary {
        name: file.name.clone(),
        bytes: file.bytes.get(),
        sha256: file.sha256.clone(),
        received_bytes: file.received.map(talkpath_units::Bytes::get),
        intact: file.intact,
        missing: file.missing.clone(),
        missing_ranges: file.missing_ranges,
        kept_as: file.kept_as.clone(),
    }
}

/// Summarises a time in which a flow delivered nothing.
pub(super) fn summarise_break(record: &BreakRecord) -> BreakSummary {
    let seconds = |instant: Instant| instant.since(Instant::ZERO).as_millis_f64() / 1e3;
    BreakSummary { from_s: seconds(record.from), to_s: record.to.map(seconds), why: record.why.clone() }
}

/// Counts the packets with ECN marks.
pub(super) const fn summarise_ecn(ecn: EcnRecord) -> EcnSummary {
    let EcnRecord { capable, marked_forward, marked_return, echoed_forward, echoed_return } = ecn;
    EcnSummary { capable, marked_forward, marked_return, echoed_forward, echoed_return }
}

impl From<&ClockRecord> for Clock {
    fn from(clock: &ClockRecord) -> Self {
        let ClockRecord {
            offset_ms,
            skew_ppm,
            uncertainty_ms,
            change_uncertainty_ms,
            synchronised,
            trusted,
            ref why,
        } = *clock;
        let why = why.clone();
        Self { offset_ms, skew_ppm, uncertainty_ms, change_uncertainty_ms, synchronised, trusted, why }
    }
}

/// The outcome of a program, without its output.
pub(super) fn summarise_program(outcome: &ProgramOutcome) -> ProgramRunSummary {
    let ProgramOutcome { failure, seconds, figures, output: _ } = outcome;
    ProgramRunSummary { failure: failure.clone(), seconds: *seconds, figures: figures.clone() }
}
