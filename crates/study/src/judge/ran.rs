//! The cells that ran to their end, and their medians.

use std::collections::BTreeMap;

use crate::arena::ArenaName;
use crate::outcome::{CellOutcome, Value};
use crate::sample::CellSamples;
use crate::selection::Selection;
use crate::stats::median;
use crate::study::{Cell, Study};

/// Every cell that ran to its end, and of whose repetitions at least half may be judged.
pub(super) struct Ran<'a> {
    pub(super) study: &'a Study,
    pub(super) selection: &'a Selection,
    cells: BTreeMap<(ArenaName, usize, &'a str), &'a CellSamples>,
}

impl<'a> Ran<'a> {
    pub(super) fn new(study: &'a Study, selection: &'a Selection, samples: &'a [CellSamples]) -> Self {
        let by_name: BTreeMap<_, _> =
            samples.iter().map(|it| ((it.arena, it.assumption.as_str(), it.cell.as_str()), it)).collect();
        let mut cells = BTreeMap::new();
        for cell in &study.cells {
            let assumption = study.assumptions[cell.assumption].name.as_str();
            let Some(form) = selection.form(cell) else { continue };
            let Some(&found) = by_name.get(&(cell.arena, assumption, cell.name.as_str())) else { continue };
            let judged = found.valid().count() as u64;
            if found.samples.len() as u64 >= form.repeat && 2 * judged >= form.repeat {
                cells.insert((cell.arena, cell.assumption, cell.name.as_str()), found);
            }
        }
        Self { study, selection, cells }
    }

    pub(super) fn get(&self, cell: &str, arena: ArenaName, assumption: usize) -> Option<&'a CellSamples> {
        self.cells.get(&(arena, assumption, cell)).copied()
    }

    pub(super) fn value(
        &self,
        cell: &str,
        arena: ArenaName,
        assumption: usize,
        metric: &str,
    ) -> Option<Value> {
        let values = self.get(cell, arena, assumption)?.values(metric);
        let found = median(&values)?;
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(found.median);
        Some(Value {
            cell: cell.to_owned(),
            arena,
            metric: metric.to_owned(),
            n: found.n,
            median: found.median,
            ci95: found.ci95,
            min: fold(f64::min),
            max: fold(f64::max),
        })
    }

    pub(super) fn cell_outcome(&self, cell: &Cell) -> Option<CellOutcome> {
        let samples = self.get(&cell.name, cell.arena, cell.assumption)?;
        let value = |metric: &String| {
            Some((metric.clone(), self.value(&cell.name, cell.arena, cell.assumption, metric)?))
        };
        let judged = samples.valid().count();
        Some(CellOutcome {
            cell: cell.name.clone(),
            arena: cell.arena,
            assumption: samples.assumption.clone(),
            n: judged as u64,
            disturbed: (samples.samples.len() - judged) as u64,
            beside: samples.samples.iter().map(|sample| sample.beside).max().unwrap_or(0),
            metrics: self.study.metrics.iter().filter_map(value).collect(),
        })
    }
}
