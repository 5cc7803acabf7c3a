//! Makes records from the rows of record files again, so that a run can be drawn and counted again.
//!
//! The files do not hold everything. The window, the seed, the clock, the links and the counters have their
//! defaults, and so has everything about a flow except its name. The reads of a stream are missing. The
//! arrivals are in the order of `received_ns` and then `seq`, and each extra copy comes right after the first
//! one. So messages that were read at the same time lose the order in which they were read.

use std::collections::BTreeMap;

use talkpath_units::Instant;

use super::RecordError;
use super::rows::{PacketRow, SeriesRow};
use crate::{Fate, FlowInfo, FlowRecord, Leg, MessageRecord, RunRecord, Series, Terms};

/// How many copies of a message are restored. A damaged count must not fill the memory, and only the arrival
/// of the first copy matters to a metric.
const MAX_COPIES: usize = 2;

/// Returns a record of each repetition, in the order of cells and repetitions, from the rows of both files.
///
/// # Errors
/// Returns the errors of the rows, and [`RecordError::Inconsistent`] if the messages of a leg are not in the
/// order of `seq`.
pub fn restore_runs(
    packets: impl IntoIterator<Item = Result<PacketRow, RecordError>>,
    series: impl IntoIterator<Item = Result<SeriesRow, RecordError>>,
) -> Result<Vec<RunRecord>, RecordError> {
    let mut runs = RunsByCell::new();
    for row in packets {
        let row = row?;
        add_message(find_or_add_run(&mut runs, row.cell, row.repetition), &row)?;
    }
    for row in series {
        let row = row?;
        add_point(find_or_add_run(&mut runs, row.cell, row.repetition), &row);
    }
    let mut runs: Vec<RunRecord> = runs.into_values().collect();
    for flow in runs.iter_mut().flat_map(|run| &mut run.flows) {
        flow.forward.arrivals = arrivals(&flow.forward.messages);
        if let Some(echo) = &mut flow.echo {
            echo.arrivals = arrivals(&echo.messages);
        }
    }
    Ok(runs)
}

/// The records by the index of their cell and the number of their repetition.
type RunsByCell = BTreeMap<(u64, u64), RunRecord>;

fn find_or_add_run(runs: &mut RunsByCell, cell: u64, repetition: u64) -> &mut RunRecord {
    runs.entry((cell, repetition)).or_insert_with(|| RunRecord {
        cell,
        repetition,
        window_end: Instant::MAX,
        ..RunRecord::default()
    })
}

fn add_message(run: &mut RunRecord, row: &PacketRow) -> Result<(), RecordError> {
    // The rows of a flow follow each other, so the flow is mostly the last one.
    let index = match run.flows.iter().rposition(|flow| *flow.info.name == *row.flow) {
        Some(index) => index,
        None => {
            run.flows.push(empty_flow(&row.flow));
            run.flows.len() - 1
        }
    };
    let flow = &mut run.flows[index];
    let leg = match row.leg {
        Leg::Forward => &mut flow.forward,
        Leg::Return => flow.echo.get_or_insert_default(),
    };
    if leg.messages.last().is_some_and(|previous| previous.seq >= row.message.seq) {
        let what = format!("message {} of the {} leg is out of order", row.message.seq, row.leg.name());
        return Err(RecordError::Inconsistent { flow: row.flow.to_string(), what });
    }
    leg.messages.push(row.message);
    Ok(())
}

fn add_point(run: &mut RunRecord, row: &SeriesRow) {
    let SeriesRow { ref entity, kind, at, value, .. } = *row;
    match run.series.last_mut() {
        Some(last) if *last.entity == **entity && last.kind == kind => last.points.push((at, value)),
        _ => run.series.push(Series { entity: entity.to_string(), kind, points: vec![(at, value)] }),
    }
}

fn empty_flow(name: &str) -> FlowRecord {
    FlowRecord::new(FlowInfo {
        name: name.to_owned(),
        group: name.to_owned(),
        transport: String::new(),
        cc: None,
        start: Instant::ZERO,
        clocked: false,
        bounded: false,
        burst: false,
        terms: Terms::default(),
        clock_trusted: true,
    })
}

/// Returns the numbers of the delivered messages in the order of their arrival.
fn arrivals(messages: &[MessageRecord]) -> Vec<u64> {
    let mut delivered: Vec<&MessageRecord> =
        messages.iter().filter(|row| row.fate == Fate::Delivered && row.received.is_some()).collect();
    delivered.sort_by_key(|row| (row.received, row.seq));
    let mut arrivals = Vec::with_capacity(delivered.len());
    for row in delivered {
        let copies = usize::try_from(row.copies).unwrap_or(usize::MAX).min(MAX_COPIES);
        arrivals.extend(core::iter::repeat_n(row.seq, copies));
    }
    arrivals
}
