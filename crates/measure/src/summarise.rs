//! From records to summaries: which metric goes into which field.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use talkpath_units::{Duration, Instant};

pub use self::numbers::flow_metrics;
use self::numbers::{Column, Columns};
use crate::metrics::call::{CallCounter, Clocks};
use crate::metrics::confidence::Confidence;
use crate::metrics::delay_in_words::DelayInWords;
use crate::metrics::delay_variation::Interarrivals;
use crate::metrics::histogram::{delay_ms, ipdv_ms, state_age_ms};
use crate::metrics::loss::{self, LossCounts};
use crate::metrics::settling::Seconds;
use crate::metrics::time_to_receive::{self, Stamps};
use crate::metrics::{delay, delay_variation, fairness, goodput, in_time, reordering, state_age, trip};
use crate::summary::{
    BreakSummary, CellSummary, Clock, DelayMs, DropsByCause, EcnSummary, FileSummary, FlowSummary,
    GroupSummary, IpdvMs, LateMs, LegsSummary, LinkSummary, LossRuns, MachineSummary, MeanMax, QueueDelayMs,
    QueuePackets, RunSummary, Settling, Spreads, StateAgeMs, TurnRoundMs,
};
use crate::{
    BreakRecord, ClockRecord, EcnRecord, FileRecord, FlowCounters, FlowInfo, FlowRecord, FlowTally,
    LatenessRecord, LinkRecord, MachineRecord, QueueDelayRecord, RunRecord, TurnRoundRecord, judge,
};

/// Every figure of one repetition; `sweep` holds the cell's keys and values.
pub fn summarise(record: &RunRecord, sweep: &BTreeMap<String, serde_json::Value>) -> RunSummary {
    let mut flows = summarise_flows(record, &(record.window_start..record.window_end));
    for turns in record.machine.iter().flat_map(|machine| &machine.turn_rounds) {
        if let Some(flow) = flows.get_mut(&turns.flow) {
            flow.turn_round_ms = Some(summarise_turns(turns));
        }
    }
    RunSummary {
        cell: record.cell,
        sweep: sweep.clone().into(),
        repetition: record.repetition,
        seed: record.seed,
        groups: groups(record, &flows),
        flows,
        links: record.links.iter().map(|link| (link.name.clone(), Box::new(summarise_link(link)))).collect(),
        machine: record.machine.as_ref().map(|it| Box::new(summarise_machine(it, record.valid))),
    }
}

/// Every figure of each flow over the messages due within `window`, by name.
pub fn summarise_flows(record: &RunRecord, window: &Range<Instant>) -> BTreeMap<String, Box<FlowSummary>> {
    let summarised = |flow: &FlowRecord| (flow.info.name.clone(), Box::new(summarise_flow(flow, window)));
    let mut flows = record.flows.iter().map(summarised).collect();
    rate_by_halves(record, window, &mut flows);
    flows
}

/// The most copies of a flow whose figures summary.json has one by one, unless the user wants each. Chosen: a
/// page with a row for each of more is no longer read, and each has 4 kB of figures.
pub const MAX_LISTED_COPIES: u64 = 500;

/// Takes the single figures out of `summary`, that of `record`, of each flow that has more than
/// [`MAX_LISTED_COPIES`] copies, unless one of them is `wanted` by its name: the group stays.
pub fn sum_up_copies(summary: &mut RunSummary, record: &RunRecord, wanted: &BTreeSet<&str>) {
    let infos = record.flows.iter().map(|flow| &flow.info);
    let listed: BTreeSet<&str> =
        infos.filter(|info| wanted.contains(info.name.as_str())).map(|info| info.group.as_str()).collect();
    // The two directions of a copy are one copy.
    let mut copies: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for FlowInfo { name, group, .. } in record.flows.iter().map(|flow| &flow.info) {
        copies.entry(group).or_default().insert(judge::conversation(group, name));
    }
    for (name, group) in &mut summary.groups {
        let count = copies.get(name.as_str()).map_or(0, BTreeSet::len) as u64;
        group.summed_up = count > MAX_LISTED_COPIES && !listed.contains(name.as_str());
    }
    if summary.summed_up().next().is_none() {
        return;
    }
    for FlowInfo { name, group, .. } in record.flows.iter().map(|flow| &flow.info) {
        if summary.groups.get(group).is_some_and(|group| group.summed_up) {
            summary.flows.remove(name);
        }
    }
}

/// Every figure of one flow over the messages due within `window`.
pub fn summarise_flow(flow: &FlowRecord, window: &Range<Instant>) -> FlowSummary {
    let figures = match &flow.tally {
        Some(tally) => of_tally(tally),
        None => of_rows(flow, window),
    };
    let Figures { counts, stamps, .. } = figures;
    let is_echo = flow.echo.is_some();
    // A round trip is read off one clock; anything one-way needs two that agree.
    let trip_clock_trusted = is_echo || flow.info.clock_trusted;
    let net_rate_pps =
        stamps.first_to_last_received().and_then(|span| time_to_receive::net_rate_pps(counts.received, span));
    let one_way_delay_ms = figures.one_way_delay_ms.filter(|_| flow.info.clock_trusted);
    let round_trip_delay_ms = figures.round_trip_delay_ms;
    let verdict = || {
        DelayInWords::of_flow(counts.received, one_way_delay_ms.as_ref(), round_trip_delay_ms.as_ref()).word()
    };
    let verdict = flow.info.burst.then(|| verdict().to_owned());
    let terms = flow.info.terms;
    // Without a deadline nothing is late: without a clock of its own a message is due when there is room for
    // it.
    let is_timed = terms.deadline.is_some() && trip_clock_trusted && flow.end_is_known();
    FlowSummary {
        transport: flow.info.transport.clone(),
        cc: flow.info.cc.clone(),
        sent: counts.sent,
        received: counts.received,
        lost: counts.lost(),
        lost_forward: Some(counts.lost_forward),
        lost_return: is_echo.then_some(counts.lost_return),
        loss_rate: counts.loss_rate(),
        duplicates: counts.duplicates,
        reordered: figures.reordered,
        unfinished: counts.unfinished,
        refused: counts.refused,
        expired: counts.expired,
        ledger: Some(counts.ledger()),
        opening_ms: flow.counters.opening.map(Duration::as_millis_f64),
        loss_runs: figures.loss_runs,
        in_time: in_time::share(figures.in_time, &counts).filter(|_| is_timed),
        deadline_ms: terms.deadline.map(Duration::as_millis_f64),
        call: figures.call.and_then(|call| call.finish(call_floor(flow))).map(Box::new),
        floor: terms.floor,
        state_age_ms: figures.state_age_ms.filter(|_| trip_clock_trusted),
        one_way_delay_ms,
        round_trip_delay_ms,
        turn_round_ms: None,
        ipdv_ms: figures.ipdv_ms.filter(|_| trip_clock_trusted),
        rtp_jitter_ms: figures.interarrivals.jitter_ms().filter(|_| trip_clock_trusted),
        rtp_stream: figures.interarrivals.stream().filter(|_| trip_clock_trusted),
        goodput_bps: figures.goodput_bps,
        settling: figures.settling,
        net_rate_pps,
        error_adjusted_rate_pps: net_rate_pps
            .and_then(|rate| time_to_receive::error_adjusted_rate_pps(rate, &counts)),
        first_sent_to_last_received_ms: trip_clock_trusted
            .then(|| stamps.first_sent_to_last_received_ns())
            .flatten()
            .map(|ns| ns as f64 / 1e6),
        first_to_last_received_ms: stamps.first_to_last_received().map(Duration::as_millis_f64),
        blocked_ms: flow.counters.blocked.map(Duration::as_millis_f64),
        retransmit_rate: retransmit_rate(&flow.counters),
        retransmissions: flow.counters.retransmissions,
        timeouts: flow.counters.timeouts,
        cwnd_packets: flow.counters.cwnd_packets_mean.filter(|mean| mean.is_finite()),
        window_packets: flow.counters.window_packets_mean.filter(|mean| mean.is_finite()),
        send_buffer_bytes: send_buffer(&flow.counters),
        ecn: flow.ecn.map(summarise_ecn),
        ip: flow.counters.ip.clone().map(Box::new),
        multipath: flow.counters.multipath,
        legs: legs(flow).map(Box::new),
        breaks: flow.counters.breaks.iter().map(summarise_break).collect(),
        verdict,
        file: flow.file.as_ref().map(summarise_file).map(Box::new),
    }
}

/// The least score of a usable call.
fn call_floor(flow: &FlowRecord) -> f64 {
    flow.info.terms.floor.unwrap_or(judge::CALL_FLOOR)
}

/// Its directions. Nothing is late between clocks that are not trusted: they may be found out after the
/// count.
fn legs(flow: &FlowRecord) -> Option<LegsSummary> {
    let mut legs = flow.counters.legs.clone()?;
    if !flow.info.clock_trusted {
        legs.forward.late = None;
        legs.back.iter_mut().for_each(|back| back.late = None);
    }
    Some(legs)
}

/// What the metrics say of a flow's messages, wherever they come from.
struct Figures {
    counts: LossCounts,
    in_time: u64,
    call: Option<CallCounter>,
    state_age_ms: Option<StateAgeMs>,
    loss_runs: LossRuns,
    stamps: Stamps,
    one_way_delay_ms: Option<DelayMs>,
    round_trip_delay_ms: Option<DelayMs>,
    ipdv_ms: Option<IpdvMs>,
    interarrivals: Interarrivals,
    reordered: u64,
    goodput_bps: Option<f64>,
    settling: Option<Settling>,
}

fn of_rows(flow: &FlowRecord, window: &Range<Instant>) -> Figures {
    let trips = flow.trips(window);
    let arrivals = &flow.echo.as_ref().unwrap_or(&flow.forward).arrivals;
    let delays = delay::statistics(&delay::sorted_delays(&trips));
    let (one_way_delay_ms, round_trip_delay_ms) = match flow.echo {
        Some(_) => {
            let out = trip::one_way_trips(&flow.forward, window);
            (delay::statistics(&delay::sorted_delays(&out)), delays)
        }
        None => (delays, None),
    };
    Figures {
        counts: LossCounts::of(&trips),
        in_time: flow.info.terms.deadline.map_or(0, |deadline| in_time::count(&trips, deadline)),
        call: call_of_rows(flow, window),
        state_age_ms: flow.info.terms.is_state.then(|| state_age_of_rows(flow, window)).flatten(),
        loss_runs: loss::runs(&trips),
        stamps: Stamps::of(&trips),
        one_way_delay_ms,
        round_trip_delay_ms,
        ipdv_ms: delay_variation::statistics(&delay_variation::sorted_ipdv(&trips)),
        interarrivals: Interarrivals::of(&trips, arrivals),
        reordered: reordering::reordered(&trips, arrivals),
        goodput_bps: goodput::goodput_bps(flow, window),
        settling: flow.settling(window),
    }
}

/// States from before the window are there in it.
fn state_age_of_rows(flow: &FlowRecord, window: &Range<Instant>) -> Option<StateAgeMs> {
    state_age::statistics(&flow.trips(&(Instant::ZERO..Instant::MAX)), |trip| window.contains(&trip.due))
}

/// `None` without a call, and if nobody knows what was heard of it. Where only the round trips are known,
/// their halves are rated.
fn call_of_rows(flow: &FlowRecord, window: &Range<Instant>) -> Option<CallCounter> {
    let terms = flow.info.terms.call.filter(|_| flow.end_is_known())?;
    let knows_each_way = flow.info.clock_trusted && !flow.forward.arrivals_unknown;
    let clocks = if knows_each_way { Clocks::Trusted } else { Clocks::Untrusted };
    let mut call = CallCounter::new(terms, flow.echo.is_some(), clocks);
    let mut echoes = flow.echo.iter().flat_map(|echo| &echo.messages).peekable();
    for row in flow.forward.messages.iter().filter(|row| window.contains(&row.due)) {
        while echoes.next_if(|back| back.seq < row.seq).is_some() {}
        call.add(row, echoes.next_if(|back| back.seq == row.seq));
    }
    Some(call)
}

/// Two flows of a call, one each way, between clocks that are not trusted: each is rated by half the round
/// trip. Such clocks have an arena that keeps rows.
fn rate_by_halves(
    record: &RunRecord,
    window: &Range<Instant>,
    flows: &mut BTreeMap<String, Box<FlowSummary>>,
) {
    let is_one_way =
        |flow: &&FlowRecord| !flow.info.clock_trusted && flow.echo.is_none() && flow.tally.is_none();
    let mut talks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for flow in record.flows.iter().filter(is_one_way) {
        let Some(counter) = call_of_rows(flow, window) else { continue };
        let (group, name) = (flow.info.group.as_str(), flow.info.name.as_str());
        talks.entry((group, judge::conversation(group, name))).or_default().push((name, counter));
    }
    for ways in talks.values() {
        let [(up, above), (down, below)] = ways.as_slice() else { continue };
        for (name, this, other) in [(up, above, below), (down, below, above)] {
            if let Some(flow) = flows.get_mut(*name) {
                let floor = flow.floor.unwrap_or(judge::CALL_FLOOR);
                flow.call = this.halve(other, floor).map(Box::new);
            }
        }
    }
}

fn of_tally(tally: &FlowTally) -> Figures {
    Figures {
        counts: tally.counts,
        in_time: tally.in_time,
        call: tally.call.clone(),
        state_age_ms: tally.state.as_ref().and_then(|(_, ages)| state_age_ms(ages)),
        loss_runs: tally.runs.clone().finish(),
        stamps: tally.stamps,
        one_way_delay_ms: delay_ms(&tally.one_way),
        round_trip_delay_ms: tally.round_trip.as_ref().and_then(delay_ms),
        ipdv_ms: ipdv_ms(&tally.ipdv),
        interarrivals: tally.interarrivals,
        reordered: tally.reordered,
        goodput_bps: tally.goodput_bps(),
        settling: tally.seconds.as_ref().and_then(Seconds::settling),
    }
}

/// One entry a cell, in order of `cell`: every number of every flow and group over the cell's repetitions.
pub fn cell_summaries<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<CellSummary> {
    let mut cells: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
    for run in runs {
        cells.entry(run.cell).or_default().push(run);
    }
    let mut summaries: Vec<CellSummary> = Vec::with_capacity(cells.len());
    for (cell, runs) in cells {
        summaries.push(summarise_cell(cell, &runs, summaries.last()));
    }
    summaries
}

/// The figures of `cell`. Most often they have the same paths as those of the cell `before` it.
fn summarise_cell(cell: u64, runs: &[&RunSummary], before: Option<&CellSummary>) -> CellSummary {
    let mut flows: BTreeMap<&str, Columns> = BTreeMap::new();
    let mut groups: BTreeMap<&str, Columns> = BTreeMap::new();
    for run in runs {
        for (name, flow) in &run.flows {
            flows.entry(name).or_default().add(flow);
        }
        for (name, group) in &run.groups {
            groups.entry(name).or_default().add_group(group);
        }
    }
    let mut confidence = Confidence::default();
    let mut spreads = |columns: &Columns, before: Option<&Spreads>| {
        let spread = |column: &Column| {
            let Column { path, values, .. } = column;
            let mut spread = confidence.spread(values)?;
            spread.n = (values.len() < runs.len()).then_some(values.len() as u64);
            // Student's t knows no bounds: what was never below the least is not there by a few wide
            // repetitions, and no share or score is above the most that there is. A delay between two clocks
            // may be below zero.
            if let Some((low, high)) = &mut spread.ci95 {
                let (least, most) = columns.possible(column);
                if values.iter().all(|&value| value >= least) {
                    *low = low.max(least);
                }
                *high = high.min(most);
                // Repetitions that are the same say nothing of what one message less would have done.
                if let Some((from, to)) = columns.interval_of_messages(path, spread.mean) {
                    (*low, *high) = (low.min(from), high.max(to));
                }
            }
            Some((*path, spread))
        };
        Spreads::new(columns.iter().filter_map(spread).collect(), before)
    };
    let mut named = |columns: &BTreeMap<&str, Columns>, before: Option<&BTreeMap<String, Spreads>>| {
        let of = |(&name, columns): (&&str, &Columns)| {
            (name.to_owned(), spreads(columns, before.and_then(|before| before.get(name))))
        };
        columns.iter().map(of).collect()
    };
    CellSummary {
        cell,
        sweep: runs.first().map(|run| run.sweep.clone()).unwrap_or_default(),
        n: runs.len() as u64,
        flows: named(&flows, before.map(|before| &before.flows)),
        groups: named(&groups, before.map(|before| &before.groups)),
    }
}

/// Groups of more than one flow, by name.
fn groups(
    record: &RunRecord,
    flows: &BTreeMap<String, Box<FlowSummary>>,
) -> BTreeMap<String, Box<GroupSummary>> {
    let mut copies: BTreeMap<&str, Vec<(&str, &FlowSummary)>> = BTreeMap::new();
    for flow in &record.flows {
        let named = flows.get_key_value(&flow.info.name);
        let named = named.map(|(name, flow)| (name.as_str(), flow.as_ref()));
        copies.entry(&flow.info.group).or_default().extend(named);
    }
    copies
        .into_iter()
        .filter(|(_, flows)| flows.len() > 1)
        .map(|(name, flows)| (name.to_owned(), Box::new(fairness::group(name, &flows))))
        .collect()
}

fn summarise_link(link: &LinkRecord) -> LinkSummary {
    // The two floats are quotients over the window, which an empty one would make undefined.
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
        utilisation: finite(link.utilisation),
    }
}

fn summarise_machine(machine: &MachineRecord, is_valid: bool) -> MachineSummary {
    let late = |late: Option<LatenessRecord>| {
        late.map(|late| LateMs {
            p50: late.p50.as_millis_f64(),
            p99: late.p99.as_millis_f64(),
            max: late.max.as_millis_f64(),
        })
    };
    MachineSummary {
        valid: Some(is_valid),
        ran_again: 0,
        emulator_late_ms: late(machine.emulator_late),
        emulator_backlog_ms: late(machine.emulator_backlog),
        senders_late_ms: late(machine.senders_late),
        far_senders_late_ms: late(machine.far_senders_late),
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
    }
}

fn summarise_turns(turns: &TurnRoundRecord) -> TurnRoundMs {
    let [p50, p90, p99, max] = [turns.p50, turns.p90, turns.p99, turns.max].map(Duration::as_millis_f64);
    TurnRoundMs { p50, p90, p99, max }
}

fn summarise_file(file: &FileRecord) -> FileSummary {
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

fn summarise_break(it: &BreakRecord) -> BreakSummary {
    let seconds = |at: Instant| at.since(Instant::ZERO).as_millis_f64() / 1e3;
    BreakSummary { from_s: seconds(it.from), to_s: it.to.map(seconds), why: it.why.clone() }
}

const fn summarise_ecn(ecn: EcnRecord) -> EcnSummary {
    let EcnRecord { capable, marked_forward, marked_return, echoed_forward, echoed_return } = ecn;
    EcnSummary { capable, marked_forward, marked_return, echoed_forward, echoed_return }
}

fn retransmit_rate(counters: &FlowCounters) -> Option<f64> {
    loss::rate(counters.retransmissions?, counters.data_packets?)
}

fn send_buffer(counters: &FlowCounters) -> Option<MeanMax> {
    let mean = counters.send_buffer_mean.filter(|mean| mean.is_finite())?;
    Some(MeanMax { mean, max: counters.send_buffer_max? as f64 })
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

mod numbers;
#[cfg(test)]
mod tests;
