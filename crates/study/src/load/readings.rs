//! Finds out what the claims, figures and tables of a study read of each cell, so that a run keeps this and
//! nothing else.

use std::collections::BTreeSet;

use talkpath_units::fnv1a;
use toml::Spanned;

use super::lookup::CellMetric;
use crate::claim::Claim;
use crate::metric::{self, Derived, Metrics};
use crate::study::{BASE_SET, Cell, Figure, FigureKind, Kept};
use crate::table::PublishedTable;

/// The metrics that a study reads.
pub(super) struct Readings<'a> {
    of_cells: Vec<CellMetric<'a>>,
    /// The metrics that are read of every cell.
    of_all_cells: Vec<&'a str>,
}

impl<'a> Readings<'a> {
    pub(super) fn new(
        claims: &'a [Claim],
        figures: &'a [Figure],
        tables: &'a [PublishedTable],
        also: &'a [Spanned<String>],
    ) -> Self {
        let mut of_cells = Vec::new();
        for check in claims.iter().flat_map(|claim| &claim.checks) {
            for operand in &check.operands {
                of_cells.push(CellMetric { cell: &operand.cell, metric: &operand.metric });
            }
        }
        for figure in figures {
            add_figure(figure, &mut of_cells);
        }
        for row in tables.iter().flat_map(|table| &table.rows) {
            of_cells.push(CellMetric { cell: &row.cell, metric: &row.metric });
        }
        let of_all_cells = also.iter().map(|metric| metric.get_ref().as_str()).collect();
        Self { of_cells, of_all_cells }
    }

    /// Returns the names of all metrics that are read, sorted, each once.
    pub(super) fn metrics(&self) -> Vec<String> {
        let of_cells = self.of_cells.iter().map(|reading| reading.metric);
        let names: BTreeSet<&str> = of_cells.chain(self.of_all_cells.iter().copied()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Sets what the runs of `cell` keep, and the fingerprints of its forms.
    pub(super) fn complete_cell(&self, cell: &mut Cell, figures: &[Figure], derived: &Metrics) {
        let metrics = self.metrics_with_parts(&cell.name, derived);
        let is_over_time = |name: &&&str| matches!(derived.get(**name), Some(Derived::OverTime(_)));
        cell.kept = kept_for_figures(cell, figures);
        cell.kept.over_time = metrics.iter().filter(is_over_time).map(|&name| name.to_owned()).collect();
        cell.kept.watched = metrics.iter().any(|name| name.split('.').next() == Some(metric::WATCHED));
        // The names of fields are part of this text: renaming a field of `Kept` or of a derived metric
        // changes every fingerprint, so that no run could be resumed.
        let readings = format!("{:?} {:?} {derived:?}", cell.kept, self.metrics());
        for plan in core::iter::once(&mut cell.full_runs).chain(&mut cell.quick_runs) {
            let text = format!("{:?} {readings}", plan.scenario);
            plan.fingerprint = format!("{:016x}", fnv1a(text.bytes()));
        }
    }

    /// Returns the metrics that are read of the cell called `cell_name`, and all metrics that they are
    /// computed from.
    fn metrics_with_parts(&self, cell_name: &str, derived: &'a Metrics) -> BTreeSet<&'a str> {
        let of_cell = self.of_cells.iter().filter(|reading| reading.cell == cell_name);
        let mut unvisited: Vec<&str> = of_cell.map(|reading| reading.metric).collect();
        unvisited.extend(&self.of_all_cells);
        let mut found = BTreeSet::new();
        while let Some(name) = unvisited.pop() {
            if found.insert(name) {
                unvisited.extend(derived.get(name).into_iter().flat_map(Derived::parts));
            }
        }
        found
    }
}

fn add_figure<'a>(figure: &'a Figure, readings: &mut Vec<CellMetric<'a>>) {
    match &figure.kind {
        FigureKind::Cells { lines, .. } => {
            for line in lines {
                readings.extend(line.cells.iter().map(|cell| CellMetric { cell, metric: &line.metric }));
            }
        }
        FigureKind::Scatter { x, y, points, .. } => {
            for cell in points.iter().flat_map(|labelled| &labelled.cells) {
                readings.push(CellMetric { cell, metric: x });
                readings.push(CellMetric { cell, metric: y });
            }
        }
        FigureKind::Trace { kinds, cell, .. } => {
            readings.extend(kinds.as_ref().map(|kinds| CellMetric { cell, metric: &kinds.metric }));
        }
        FigureKind::Quantiles { .. } | FigureKind::Absent(_) => {}
    }
}

/// Returns what figures draw of a cell in addition to its metrics. Figures draw the base set alone.
fn kept_for_figures(cell: &Cell, figures: &[Figure]) -> Kept {
    let mut kept = Kept::default();
    if cell.assumption != BASE_SET {
        return kept;
    }
    for figure in figures {
        match &figure.kind {
            FigureKind::Trace { series, cell: cell_name, seconds, kinds, .. } if cell.name == *cell_name => {
                // Two figures of one series share a trace, which covers the stretches of both.
                let earlier = kept.traces.get(series);
                let stretch = earlier.map_or(*seconds, |earlier| earlier.joined(*seconds));
                kept.traces.insert(series.clone(), stretch);
                kept.kinds.extend(kinds.iter().map(|kinds| kinds.metric.clone()));
            }
            FigureKind::Quantiles { cell: cell_name, flows } if cell.name == *cell_name => {
                kept.delays.extend(flows.iter().cloned());
            }
            _ => {}
        }
    }
    kept
}
