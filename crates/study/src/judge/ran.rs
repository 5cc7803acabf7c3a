//! The cells that ran to their end, and their medians.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::statistic::is_enough;

use crate::arena::ArenaName;
use crate::claim::{Check, Operand};
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
    /// Those that ran to their end and were disturbed in more than half of their repetitions.
    disturbed: BTreeSet<(ArenaName, usize, &'a str)>,
}

impl<'a> Ran<'a> {
    pub(super) fn new(study: &'a Study, selection: &'a Selection, samples: &'a [CellSamples]) -> Self {
        let by_name: BTreeMap<_, _> =
            samples.iter().map(|it| ((it.arena, it.assumption.as_str(), it.cell.as_str()), it)).collect();
        let mut cells = BTreeMap::new();
        let mut disturbed = BTreeSet::new();
        for cell in &study.cells {
            let assumption = study.assumptions[cell.assumption].name.as_str();
            let Some(form) = selection.form(cell) else { continue };
            let Some(&found) = by_name.get(&(cell.arena, assumption, cell.name.as_str())) else { continue };
            let judged = found.valid().count() as u64;
            let ran = found.samples.len() as u64;
            let is_whole = ran >= form.repeat;
            let key = (cell.arena, cell.assumption, cell.name.as_str());
            // A campaign has as many rounds as it has.
            if is_whole && is_enough(judged, form.repeat.max(ran)) {
                cells.insert(key, found);
            } else if is_whole {
                disturbed.insert(key);
            }
        }
        Self { study, selection, cells, disturbed }
    }

    /// Whether `checks` could be judged under the base set but for cells that the machine disturbed, or of
    /// whose figures it bent one in more than half of the repetitions.
    pub(super) fn lacks_only_disturbed(&self, checks: &[&Check], arenas: &[ArenaName]) -> bool {
        let keys = || {
            let names = checks.iter().flat_map(|check| check.cells());
            names.flat_map(|name| arenas.iter().map(move |&arena| (arena, 0, name)))
        };
        let ended =
            |key: &(ArenaName, usize, &str)| self.cells.contains_key(key) || self.disturbed.contains(key);
        let is_bent = |operand: &Operand| {
            let ran = arenas.iter().filter_map(|&arena| self.get(&operand.cell, arena, 0));
            ran.into_iter().any(|samples| {
                judged_values(samples, &operand.metric).is_none() && samples.is_bent(&operand.metric)
            })
        };
        let mut operands = checks.iter().flat_map(|check| &check.operands);
        keys().all(|key| ended(&key))
            && (keys().any(|key| self.disturbed.contains(&key)) || operands.any(is_bent))
    }

    /// What a check reads of a cell that ran to its end under the base set, and what has no median there.
    pub(super) fn without_value<'c>(
        &self,
        checks: &[&'c Check],
        arenas: &[ArenaName],
    ) -> Option<&'c Operand> {
        let lacks = |operand: &&Operand| {
            let ran = arenas.iter().filter_map(|&arena| self.get(&operand.cell, arena, 0));
            ran.into_iter().any(|samples| judged_values(samples, &operand.metric).is_none())
        };
        checks.iter().flat_map(|check| &check.operands).find(lacks)
    }

    /// Whether one of the cells of `checks` did not run under `set` to its end, or is not judged.
    pub(super) fn lacks_cells(&self, checks: &[&Check], arenas: &[ArenaName], set: &str) -> bool {
        let Some(set) = self.study.assumptions.iter().position(|it| it.name == set) else { return false };
        let mut names = checks.iter().flat_map(|check| check.cells());
        names.any(|name| arenas.iter().any(|&arena| self.get(name, arena, set).is_none()))
    }

    /// Whether each repetition of those cells of `checks` that ran under `set`, another set than the base,
    /// gave what it gave under the base.
    pub(super) fn equals_base(&self, checks: &[&Check], arenas: &[ArenaName], set: &str) -> bool {
        let Some(set) = self.study.assumptions.iter().position(|it| it.name == set) else { return false };
        let equals = |(name, arena): (&str, ArenaName)| {
            let other = self.get(name, arena, set)?;
            let values = |cell: &'a CellSamples| cell.valid().map(|sample| &sample.values);
            Some(self.get(name, arena, 0).is_some_and(|base| values(base).eq(values(other))))
        };
        let names = checks.iter().flat_map(|check| check.cells());
        let places = names.flat_map(|name| arenas.iter().map(move |&arena| (name, arena)));
        let mut compared = places.filter_map(equals).peekable();
        set > 0 && compared.peek().is_some() && compared.all(|is_equal| is_equal)
    }

    pub(super) fn get(&self, cell: &str, arena: ArenaName, assumption: usize) -> Option<&'a CellSamples> {
        self.cells.get(&(arena, assumption, cell)).copied()
    }

    /// In how many repetitions `metric` is known, and how many there are; `None` if it has no median.
    pub(super) fn known(
        &self,
        cell: &str,
        arena: ArenaName,
        assumption: usize,
        metric: &str,
    ) -> Option<(usize, usize)> {
        let samples = self.get(cell, arena, assumption)?;
        Some((judged_values(samples, metric)?.len(), samples.valid().count()))
    }

    pub(super) fn value(
        &self,
        cell: &str,
        arena: ArenaName,
        assumption: usize,
        metric: &str,
    ) -> Option<Value> {
        let values = judged_values(self.get(cell, arena, assumption)?, metric)?;
        let found = median(&values)?;
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(found.median);
        Some(Value {
            cell: cell.to_owned(),
            arena,
            metric: metric.to_owned(),
            own_unit: self.study.units.get(metric).copied(),
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

/// One metric over the repetitions that know it, if they are enough: the median says nothing about the
/// others.
fn judged_values(samples: &CellSamples, metric: &str) -> Option<Vec<f64>> {
    let values = samples.values(metric);
    let is_known = !values.is_empty() && is_enough(values.len() as u64, samples.valid().count() as u64);
    is_known.then_some(values)
}
