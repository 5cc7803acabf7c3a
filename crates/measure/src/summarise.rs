//! Turns the record of a run into its summary: this module says which metric goes into which field.
//!
//! - `message_figures`: the figures of a flow's messages, from their rows or from a tally.
//! - `convert`: the fields that a record already holds.
//! - `cell`: the figures of a cell over its repetitions.

mod cell;
mod convert;
mod message_figures;
mod numbers;
#[cfg(test)]
mod tests;

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use talkpath_units::{Duration, Instant};

pub use self::cell::{cell_summaries, summary_of_runs};
use self::convert::{
    summarise_break, summarise_ecn, summarise_file, summarise_link, summarise_machine, summarise_opening,
    summarise_program, summarise_turn_rounds, summarise_waits,
};
use self::message_figures::{MessageFigures, rate_calls_by_half_round_trips};
pub use self::numbers::flow_metrics;
use crate::metrics::delay_in_words::DelayInWords;
use crate::metrics::{fairness, loss};
use crate::summary::{FlowSummary, GroupSummary, LegsSummary, MeanMax, RunSummary};
use crate::{FlowCounters, FlowRecord, RunRecord, judge};

/// Computes every figure of one repetition. `sweep` holds the swept keys and values of the cell.
pub fn summarise(record: &RunRecord, sweep: &BTreeMap<String, serde_json::Value>) -> RunSummary {
    let mut flows = summarise_flows(record, &(record.window_start..record.window_end));
    if let Some(machine) = &record.machine {
        for turn_rounds in &machine.turn_rounds {
            if let Some(flow) = flows.get_mut(&turn_rounds.flow) {
                flow.turn_round_ms = Some(summarise_turn_rounds(turn_rounds));
            }
        }
    }
    let links = record.links.iter().map(|link| (link.name.clone(), Box::new(summarise_link(link))));
    let machine = record.machine.as_ref();
    RunSummary {
        cell: record.cell,
        sweep: sweep.clone().into(),
        repetition: record.repetition,
        seed: record.seed,
        groups: summarise_groups(record, &flows),
        flows,
        links: links.collect(),
        machine: machine.map(|machine| Box::new(summarise_machine(machine, record.valid))),
        path: record.path.clone(),
        program: record.program.as_ref().map(|outcome| Box::new(summarise_program(outcome))),
        // The record does not say how the path changes.
        changes: None,
    }
}

/// Computes every figure of each flow, by the name of the flow. Only messages that are due within `window`
/// count.
pub fn summarise_flows(record: &RunRecord, window: &Range<Instant>) -> BTreeMap<String, Box<FlowSummary>> {
    let mut flows = BTreeMap::new();
    for flow in &record.flows {
        flows.insert(flow.info.name.clone(), Box::new(summarise_flow(flow, window)));
    }
    rate_calls_by_half_round_trips(record, window, &mut flows);
    flows
}

/// Computes every figure of one flow. Only messages that are due within `window` count. The tally of a flow
/// that keeps no rows was counted over a window of its own, so for such a flow `window` changes nothing.
pub fn summarise_flow(flow: &FlowRecord, window: &Range<Instant>) -> FlowSummary {
    let mut figures = match &flow.tally {
        Some(tally) => MessageFigures::from_tally(tally),
        None => MessageFigures::from_rows(flow, window),
    };
    figures.remove_untrusted(flow);

    let (info, counters) = (&flow.info, &flow.counters);
    let is_echo = flow.echo.is_some();
    let delay_in_words = DelayInWords::of_flow(
        figures.trips.counts.received,
        figures.one_way_delay_ms.as_ref(),
        figures.round_trip_delay_ms.as_ref(),
    );
    let usual_floor =
        || info.terms.call.and_then(|call| call.rated).map_or(judge::CALL_FLOOR, |rated| rated.scale.floor());
    let call_floor = info.terms.floor.unwrap_or_else(usual_floor);
    let waits = summarise_waits(&figures.waits, counters);
    let of_trips = figures.trips.figures();
    FlowSummary {
        transport: info.transport.clone(),
        cc: info.cc.clone(),
        lost_return: of_trips.lost_return.filter(|_| is_echo),
        reordered: figures.reordered,
        opening_ms: counters.opening.open.map(Duration::as_millis_f64),
        opening: summarise_opening(&counters.opening, is_echo || info.clock_trusted).map(Box::new),
        deadline_ms: info.terms.deadline.map(Duration::as_millis_f64),
        call: figures.call.and_then(|call| call.finish(call_floor)).map(Box::new),
        floor: info.terms.floor,
        state_age_ms: figures.state_age_ms,
        one_way_delay_ms: figures.one_way_delay_ms,
        round_trip_delay_ms: figures.round_trip_delay_ms,
        // The record of the machine holds this figure ([`summarise`]).
        turn_round_ms: None,
        ipdv_ms: figures.ipdv_ms,
        rtp_jitter_ms: figures.interarrivals.and_then(|interarrivals| interarrivals.jitter_ms()),
        rtp_stream: figures.interarrivals.and_then(|interarrivals| interarrivals.stream()),
        goodput_bps: figures.goodput_bps,
        settling: figures.settling,
        first_sent_to_last_received_ms: figures.first_sent_to_last_received_ns.map(|ns| ns as f64 / 1e6),
        blocked_ms: counters.blocked.map(Duration::as_millis_f64),
        retransmit_rate: retransmit_rate(counters),
        retransmissions: counters.retransmissions,
        timeouts: counters.timeouts,
        cwnd_packets: counters.cwnd_packets_mean.filter(|mean| mean.is_finite()),
        window_packets: counters.window_packets_mean.filter(|mean| mean.is_finite()),
        send_buffer_bytes: send_buffer(counters),
        waits: waits.map(Box::new),
        ecn: flow.ecn.map(summarise_ecn),
        ip: counters.ip.clone().map(Box::new),
        multipath: counters.multipath,
        legs: directions(flow).map(Box::new),
        breaks: counters.breaks.iter().map(summarise_break).collect(),
        verdict: info.burst.then(|| delay_in_words.word().to_owned()),
        file: flow.file.as_ref().map(summarise_file).map(Box::new),
        // The figures that are counted message by message (`metrics/mod.rs`).
        ..of_trips
    }
}

/// The figures of each direction of a flow. Between clocks that are not trusted it is not known which
/// messages came late. The clocks may be found untrusted only after late messages were counted, so the counts
/// are removed here.
fn directions(flow: &FlowRecord) -> Option<LegsSummary> {
    let mut directions = flow.counters.legs.clone()?;
    if !flow.info.clock_trusted {
        directions.forward.late = None;
        if let Some(back) = &mut directions.back {
            back.late = None;
        }
    }
    Some(directions)
}

fn retransmit_rate(counters: &FlowCounters) -> Option<f64> {
    loss::rate(counters.retransmissions?, counters.data_packets?)
}

fn send_buffer(counters: &FlowCounters) -> Option<MeanMax> {
    let mean = counters.send_buffer_mean.filter(|mean| mean.is_finite())?;
    Some(MeanMax { mean, max: counters.send_buffer_max? as f64 })
}

/// Computes the figures of each group of copies, by the name of the group. A flow without copies is not a
/// group.
fn summarise_groups(
    record: &RunRecord,
    flows: &BTreeMap<String, Box<FlowSummary>>,
) -> BTreeMap<String, Box<GroupSummary>> {
    let mut copies_by_group: BTreeMap<&str, Vec<(&str, &FlowSummary)>> = BTreeMap::new();
    for flow in &record.flows {
        let copies = copies_by_group.entry(&flow.info.group).or_default();
        if let Some((name, summary)) = flows.get_key_value(&flow.info.name) {
            copies.push((name, summary));
        }
    }
    let mut groups = BTreeMap::new();
    for (name, copies) in copies_by_group {
        if copies.len() > 1 {
            groups.insert(name.to_owned(), Box::new(fairness::group(name, &copies)));
        }
    }
    groups
}

/// A group with more copies than this has no figures of single copies in summary.json, unless the user wants
/// them. Chosen: nobody reads a page with more rows, and the figures of each copy take 4 kB.
pub const MAX_LISTED_COPIES: u64 = 500;

/// Removes the figures of single copies from `summary`, for each group with more than [`MAX_LISTED_COPIES`]
/// copies. The figures of the group stay. A group keeps the figures of its copies if one copy is named in
/// `wanted_flows`. `record` is the record that the summary was made of.
pub fn remove_figures_of_copies(summary: &mut RunSummary, record: &RunRecord, wanted_flows: &BTreeSet<&str>) {
    let mut copies_by_group: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut wanted_groups: BTreeSet<&str> = BTreeSet::new();
    for flow in &record.flows {
        let (name, group) = (flow.info.name.as_str(), flow.info.group.as_str());
        // The two directions of a copy count as one copy.
        copies_by_group.entry(group).or_default().insert(judge::conversation(group, name));
        if wanted_flows.contains(name) {
            wanted_groups.insert(group);
        }
    }
    for (name, group) in &mut summary.groups {
        let copies = copies_by_group.get(name.as_str()).map_or(0, BTreeSet::len) as u64;
        group.summed_up = copies > MAX_LISTED_COPIES && !wanted_groups.contains(name.as_str());
    }
    for flow in &record.flows {
        if let Some(group) = summary.groups.get(&flow.info.group)
            && group.summed_up
        {
            summary.flows.remove(&flow.info.name);
        }
    }
}
