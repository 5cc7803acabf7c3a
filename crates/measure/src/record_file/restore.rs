//! Records from record files, as far as these hold them: enough to draw and to count again.
//!
//! Not in the files, and left at their defaults: the window, seed, clock, links and counters; of a flow
//! everything but its name; a stream's reads. Arrivals come back in the order of `received_ns` and then
//! `seq`, each extra copy right after the first: messages read in one instant lose the order in which they
//! were read.

use std::collections::BTreeMap;

use talkpath_units::Instant;

use super::RecordError;
use super::rows::{PacketRow, SeriesRow};
use crate::{Fate, FlowInfo, FlowRecord, Leg, MessageRecord, RunRecord, Series, Terms};

/// One record a repetition, in order of cell and repetition, from the rows of both files.
///
/// # Errors
/// The rows' own, and [`RecordError::Inconsistent`] if a leg's messages are not in order of `seq`.
pub fn restore_runs(
    packets: impl IntoIterator<Item = Result<PacketRow, RecordError>>,
    series: impl IntoIterator<Item = Result<SeriesRow, RecordError>>,
) -> Result<Vec<RunRecord>, RecordError> {
    let mut runs: BTreeMap<(u64, u64), RunRecord> = BTreeMap::new();
    for row in packets {
        let row = row?;
        let run = run_of(&mut runs, row.cell, row.repetition);
        let index = match run.flows.iter().rposition(|flow| *flow.info.name == *row.flow) {
            Some(index) => index,
            None => {
                run.flows.push(named(&row.flow));
                run.flows.len() - 1
            }
        };
        let flow = &mut run.flows[index];
        let leg = match row.leg {
            Leg::Forward => &mut flow.forward,
            Leg::Return => flow.echo.get_or_insert_default(),
        };
        if leg.messages.last().is_some_and(|before| before.seq >= row.message.seq) {
            let what = format!("message {} of the {} leg is out of order", row.message.seq, row.leg.name());
            return Err(RecordError::Inconsistent { flow: row.flow.to_string(), what });
        }
        leg.messages.push(row.message);
    }
    for row in series {
        let SeriesRow { cell, repetition, entity, kind, at, value } = row?;
        let run = run_of(&mut runs, cell, repetition);
        match run.series.last_mut() {
            Some(last) if *last.entity == *entity && last.kind == kind => last.points.push((at, value)),
            _ => run.series.push(Series { entity: entity.to_string(), kind, points: vec![(at, value)] }),
        }
    }
    for leg in runs
        .values_mut()
        .flat_map(|run| &mut run.flows)
        .flat_map(|flow| core::iter::once(&mut flow.forward).chain(flow.echo.as_mut()))
    {
        leg.arrivals = arrivals(&leg.messages);
    }
    Ok(runs.into_values().collect())
}

fn run_of(runs: &mut BTreeMap<(u64, u64), RunRecord>, cell: u64, repetition: u64) -> &mut RunRecord {
    runs.entry((cell, repetition)).or_insert_with(|| RunRecord {
        cell,
        repetition,
        window_end: Instant::MAX,
        ..RunRecord::default()
    })
}

fn named(name: &str) -> FlowRecord {
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

fn arrivals(messages: &[MessageRecord]) -> Vec<u64> {
    let mut delivered: Vec<_> = messages
        .iter()
        .filter(|row| row.fate == Fate::Delivered)
        .filter_map(|row| Some((row.received?, row.seq, row.copies)))
        .collect();
    delivered.sort_unstable();
    let copies = |copies: u32| usize::try_from(copies).unwrap_or(usize::MAX).min(MOST_COPIES);
    delivered.into_iter().flat_map(|(_, seq, count)| core::iter::repeat_n(seq, copies(count))).collect()
}

/// The most copies of a message that are restored, lest a damaged count fill the memory; only the first
/// copy's place matters to any metric.
const MOST_COPIES: usize = 2;
