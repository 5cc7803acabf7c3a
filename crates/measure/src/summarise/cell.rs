//! The figures of a cell over its repetitions.

use std::collections::BTreeMap;

use super::numbers::{Column, Columns};
use crate::ClockRecord;
use crate::metrics::certainty::{around_both, within_possible};
use crate::metrics::confidence::Confidence;
use crate::summary::{CellSummary, Clock, RunSummary, SUMMARY_FORMAT, Spread, Spreads, Summary, Understood};

/// Computes the spread of every figure over the repetitions of each cell, for every flow and every group of
/// copies. The cells are in the order of their numbers.
pub fn cell_summaries<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<CellSummary> {
    let mut runs_by_cell: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
    for run in runs {
        runs_by_cell.entry(run.cell).or_default().push(run);
    }
    let mut summaries: Vec<CellSummary> = Vec::with_capacity(runs_by_cell.len());
    for (cell, runs) in runs_by_cell {
        let summary = summarise_cell(cell, &runs, summaries.last());
        summaries.push(summary);
    }
    summaries
}

/// Makes the summary of a valid run `name` from the figures of its repetitions. All else is empty.
pub fn summary_of_runs(name: &str, runs: Vec<RunSummary>) -> Summary {
    let mut summary = Summary {
        format: SUMMARY_FORMAT,
        talkpath: String::new(),
        name: name.to_owned(),
        arena: String::new(),
        started: String::new(),
        wall_s: 0.0,
        cpu_s: 0.0,
        valid: true,
        warnings: Vec::new(),
        percentiles: String::new(),
        clock: Clock::from(&ClockRecord::default()),
        program: None,
        runs,
        cells: Vec::new(),
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood::default(),
    };
    summary.cells = cell_summaries(summary.counted_runs());
    summary
}

/// Computes the spreads of one cell. `previous` is the cell before this one. It usually has the same
/// figures, so both cells then share one list of the figures' paths.
fn summarise_cell(cell: u64, runs: &[&RunSummary], previous: Option<&CellSummary>) -> CellSummary {
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
    let program = spreads_of_program(runs, &mut confidence);
    CellSummary {
        cell,
        sweep: runs.first().map(|run| run.sweep.clone()).unwrap_or_default(),
        n: runs.len() as u64,
        flows: spreads_by_name(&flows, runs.len(), previous.map(|cell| &cell.flows), &mut confidence),
        groups: spreads_by_name(&groups, runs.len(), previous.map(|cell| &cell.groups), &mut confidence),
        program,
    }
}

/// Computes the spreads of each flow or group.
fn spreads_by_name(
    columns_by_name: &BTreeMap<&str, Columns>,
    repetitions: usize,
    previous: Option<&BTreeMap<String, Spreads>>,
    confidence: &mut Confidence,
) -> BTreeMap<String, Spreads> {
    let mut spreads_by_name = BTreeMap::new();
    for (&name, columns) in columns_by_name {
        let mut spreads = Vec::new();
        for column in columns.iter() {
            if let Some(spread) = spread(columns, column, repetitions, confidence) {
                spreads.push((column.path, spread));
            }
        }
        let previous = previous.and_then(|previous| previous.get(name));
        spreads_by_name.insert(name.to_owned(), Spreads::new(spreads, previous));
    }
    spreads_by_name
}

/// Computes the spread of each figure of the program of the user.
fn spreads_of_program(runs: &[&RunSummary], confidence: &mut Confidence) -> Spreads {
    let mut values_by_name: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (name, value) in runs.iter().filter_map(|run| run.program.as_ref()).flat_map(|run| &run.figures) {
        values_by_name.entry(name).or_default().extend(value);
    }
    let mut spreads = BTreeMap::new();
    for (name, values) in values_by_name {
        if let Some(mut spread) = confidence.spread(&values) {
            spread.n = (values.len() < runs.len()).then_some(values.len() as u64);
            spreads.insert(name.clone(), spread);
        }
    }
    Spreads::of_names(spreads)
}

/// Computes the spread of one figure. Returns `None` if no repetition knows the figure.
fn spread(
    columns: &Columns,
    column: &Column,
    repetitions: usize,
    confidence: &mut Confidence,
) -> Option<Spread> {
    let values = &column.values;
    let mut spread = confidence.spread(values)?;
    if values.len() < repetitions {
        spread.n = Some(values.len() as u64);
    }
    let Some(interval) = spread.ci95 else { return Some(spread) };
    let interval = within_possible(interval, values, columns.possible(column));
    // Repetitions with equal shares have an interval of no width, although one lost message more was
    // possible. The interval is therefore at least as wide as the number of messages allows.
    spread.ci95 = Some(around_both(interval, column.interval_of_messages(spread.mean)));
    Some(spread)
}
