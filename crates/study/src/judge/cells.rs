//! The cells of a run that can be judged, and the medians of their metrics.
//!
//! A cell is judged if it ran to its end, and if the machine disturbed at most half of its repetitions. A
//! metric of such a cell has a median if at least half of the undisturbed repetitions know the metric.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::statistic::is_enough;

use crate::arena::ArenaName;
use crate::claim::{Check, ClaimKind, Operand};
use crate::outcome::{CellOutcome, Value};
use crate::reuse::{EarlierRun, Singles};
use crate::sample::{CellSamples, Sample};
use crate::selection::Selection;
use crate::stats::median;
use crate::study::{BASE_SET, Cell, Study};

/// The cells of a run that can be judged.
pub(super) struct JudgedCells<'a> {
    pub(super) study: &'a Study,
    pub(super) selection: &'a Selection,
    by_key: BTreeMap<CellKey<'a>, &'a CellSamples>,
    /// The cells that ran to their end, but are not judged because the machine disturbed more than half of
    /// their repetitions.
    disturbed: BTreeSet<CellKey<'a>>,
    /// The run whose medians take the place of samples.
    pub(super) earlier: Option<&'a EarlierRun>,
    /// The cells without samples whose medians are those of the earlier run.
    taken: BTreeSet<CellKey<'a>>,
}

/// One cell in one arena under one assumption set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellKey<'a> {
    pub(super) arena: ArenaName,
    /// Index into [`Study::assumptions`].
    pub(super) assumption: usize,
    pub(super) cell: &'a str,
}

impl<'a> CellKey<'a> {
    pub(super) fn of(cell: &'a Cell) -> Self {
        Self { arena: cell.arena, assumption: cell.assumption, cell: &cell.name }
    }

    /// Returns the key of the cell under the base set.
    pub(super) const fn base(cell: &'a str, arena: ArenaName) -> Self {
        Self { arena, assumption: BASE_SET, cell }
    }
}

/// In how many repetitions of a cell a metric is known.
pub(super) struct KnownShare {
    /// The repetitions that know the metric.
    pub(super) known: usize,
    /// The repetitions that are judged.
    pub(super) judged: usize,
}

impl<'a> JudgedCells<'a> {
    /// Finds the samples of each cell of `study` that the run selected, and sorts out the cells that cannot
    /// be judged.
    pub(super) fn new(
        study: &'a Study,
        selection: &'a Selection,
        samples: &'a [CellSamples],
        earlier: Option<&'a EarlierRun>,
    ) -> Self {
        let mut samples_by_key = BTreeMap::new();
        for cell in samples {
            // Samples of a set that the study does not have are not judged.
            if let Some(assumption) = study.assumption_index(&cell.assumption) {
                samples_by_key.insert(CellKey { arena: cell.arena, assumption, cell: &cell.cell }, cell);
            }
        }
        let mut by_key = BTreeMap::new();
        let mut disturbed = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for cell in &study.cells {
            let Some(plan) = selection.runs(cell) else { continue };
            let key = CellKey::of(cell);
            let Some(&samples) = samples_by_key.get(&key) else {
                if earlier.is_some_and(|earlier| earlier.covers(study, selection, cell)) {
                    taken.insert(key);
                }
                continue;
            };
            let ran = samples.samples.len() as u64;
            if ran < plan.repeat {
                continue;
            }
            // A campaign may have more rounds than the study asks for.
            let all = ran.max(plan.repeat);
            let undisturbed = samples.valid().count() as u64;
            if is_enough(undisturbed, all) {
                by_key.insert(key, samples);
            } else {
                disturbed.insert(key);
            }
        }
        Self { study, selection, by_key, disturbed, earlier, taken }
    }

    /// Returns whether a cell is judged, by its samples or by the medians of the earlier run.
    pub(super) fn is_judged(&self, key: CellKey<'_>) -> bool {
        self.by_key.contains_key(&key) || self.taken.contains(&key)
    }

    /// Returns the earlier run if the medians of the cell are taken from it.
    pub(super) fn taken_from(&self, key: CellKey<'_>) -> Option<&'a EarlierRun> {
        if self.taken.contains(&key) { self.earlier } else { None }
    }

    /// Returns how single repetitions answered a check of the earlier run that compared the same `values`. No
    /// repetition is counted if it had no such check.
    pub(super) fn earlier_singles(&self, kind: ClaimKind, values: &[Value], assumption: usize) -> Singles {
        let set = &self.study.assumptions[assumption].name;
        self.earlier.and_then(|earlier| earlier.singles(set, kind, values)).unwrap_or_default()
    }

    fn set_name(&self, key: CellKey<'_>) -> &'a str {
        &self.study.assumptions[key.assumption].name
    }

    /// Returns the samples of a cell that is judged.
    pub(super) fn samples(&self, key: CellKey<'_>) -> Option<&'a CellSamples> {
        self.by_key.get(&key).copied()
    }

    /// Computes the median of one metric of a cell. Returns `None` if the cell is not judged or the metric
    /// has no median.
    pub(super) fn value(&self, key: CellKey<'_>, metric: &str) -> Option<Value> {
        let own_unit = self.study.units.get(metric).copied();
        if let Some(earlier) = self.taken_from(key) {
            let taken = earlier.value(key.arena, self.set_name(key), key.cell, metric)?;
            return Some(Value { own_unit, ..taken.clone() });
        }
        let values = judged_values(self.samples(key)?, metric)?;
        let found = median(&values)?;
        Some(Value {
            cell: key.cell.to_owned(),
            arena: key.arena,
            metric: metric.to_owned(),
            own_unit,
            n: found.n,
            median: found.median,
            ci95: found.ci95,
            min: values.iter().copied().reduce(f64::min).unwrap_or(found.median),
            max: values.iter().copied().reduce(f64::max).unwrap_or(found.median),
        })
    }

    /// Counts the repetitions of a cell that know `metric`. Returns `None` if the metric has no median.
    pub(super) fn known_share(&self, key: CellKey<'_>, metric: &str) -> Option<KnownShare> {
        let samples = self.samples(key)?;
        let values = judged_values(samples, metric)?;
        Some(KnownShare { known: values.len(), judged: samples.valid().count() })
    }

    /// Returns the medians of all metrics of `cell`, or `None` if the cell is not judged.
    pub(super) fn cell_outcome(&self, cell: &Cell) -> Option<CellOutcome> {
        let key = CellKey::of(cell);
        if let Some(earlier) = self.taken_from(key) {
            let mut taken = earlier.cell(key.arena, self.set_name(key), key.cell)?.clone();
            taken.metrics.retain(|metric, _| self.study.metrics.contains(metric));
            return Some(taken);
        }
        let samples = self.samples(CellKey::of(cell))?;
        let mut metrics = BTreeMap::new();
        for metric in &self.study.metrics {
            if let Some(value) = self.value(CellKey::of(cell), metric) {
                metrics.insert(metric.clone(), value);
            }
        }
        let judged = samples.valid().count();
        Some(CellOutcome {
            cell: cell.name.clone(),
            arena: cell.arena,
            assumption: samples.assumption.clone(),
            n: judged as u64,
            disturbed: (samples.samples.len() - judged) as u64,
            beside: samples.samples.iter().map(|sample| sample.beside).max().unwrap_or(0),
            metrics,
        })
    }

    /// Returns whether `checks` have no verdict under the base set only because the machine disturbed their
    /// runs: every cell ran to its end, but one cell is disturbed, or one metric has no median because the
    /// machine bent it.
    pub(super) fn lacks_only_disturbed(&self, checks: &[&Check], arenas: &[ArenaName]) -> bool {
        let mut has_disturbed_cell = false;
        for check in checks {
            for operand in &check.operands {
                for &arena in arenas {
                    let key = CellKey::base(&operand.cell, arena);
                    if self.disturbed.contains(&key) {
                        has_disturbed_cell = true;
                    } else if !self.is_judged(key) {
                        return false;
                    }
                }
            }
        }
        has_disturbed_cell || self.has_bent_operand(checks, arenas)
    }

    /// Returns whether a metric that `checks` read under the base set has no median, and the machine bent
    /// this metric in at least one repetition.
    fn has_bent_operand(&self, checks: &[&Check], arenas: &[ArenaName]) -> bool {
        checks.iter().flat_map(|check| &check.operands).any(|operand| {
            self.base_samples(operand, arenas).any(|samples| {
                judged_values(samples, &operand.metric).is_none() && samples.is_bent(&operand.metric)
            })
        })
    }

    /// Finds an operand of `checks` whose cell is judged under the base set, but whose metric has no median.
    pub(super) fn operand_without_median<'c>(
        &self,
        checks: &[&'c Check],
        arenas: &[ArenaName],
    ) -> Option<&'c Operand> {
        checks.iter().flat_map(|check| &check.operands).find(|operand| {
            self.base_samples(operand, arenas)
                .any(|samples| judged_values(samples, &operand.metric).is_none())
        })
    }

    /// Returns the samples of the cell of `operand` under the base set, in each of `arenas` where the cell is
    /// judged.
    fn base_samples<'s>(
        &'s self,
        operand: &'s Operand,
        arenas: &'s [ArenaName],
    ) -> impl Iterator<Item = &'a CellSamples> + 's {
        arenas.iter().filter_map(|&arena| self.samples(CellKey::base(&operand.cell, arena)))
    }

    /// Returns whether at least one cell of `checks` is not judged under the set with index `assumption`.
    pub(super) fn lacks_cells(&self, checks: &[&Check], arenas: &[ArenaName], assumption: usize) -> bool {
        checks
            .iter()
            .flat_map(|check| check.cells())
            .any(|cell| arenas.iter().any(|&arena| !self.is_judged(CellKey { arena, assumption, cell })))
    }

    /// Returns whether every cell of `checks` that is judged under the set with index `assumption` measured
    /// exactly what it measured under the base set. The base set itself, and a set without a judged cell, do
    /// not count as equal.
    ///
    /// Of cells that are taken from the earlier run it returns what that run found for the claim called
    /// `claim`. If that run did not judge the claim under the set, it compares the medians, their intervals
    /// and their ranges.
    pub(super) fn equals_base(
        &self,
        claim: &str,
        checks: &[&Check],
        arenas: &[ArenaName],
        assumption: usize,
    ) -> bool {
        if assumption == BASE_SET {
            return false;
        }
        let mut has_compared = false;
        for operand in checks.iter().flat_map(|check| &check.operands) {
            for &arena in arenas {
                let key = CellKey { arena, assumption, cell: &operand.cell };
                if !self.is_judged(key) {
                    continue;
                }
                if !self.measures_as_base(claim, key, &operand.metric) {
                    return false;
                }
                has_compared = true;
            }
        }
        has_compared
    }

    /// Returns whether a cell measured under its set what it measured under the base set.
    fn measures_as_base(&self, claim: &str, key: CellKey<'_>, metric: &str) -> bool {
        let base = CellKey::base(key.cell, key.arena);
        if let (Some(samples), Some(of_base)) = (self.samples(key), self.samples(base)) {
            return judged_metrics(of_base).eq(judged_metrics(samples));
        }
        let found_earlier = match (self.taken_from(key), self.taken_from(base)) {
            (Some(earlier), Some(_)) => earlier.equals_base(claim, key.arena.name(), self.set_name(key)),
            _ => None,
        };
        found_earlier
            .unwrap_or_else(|| self.is_judged(base) && self.value(key, metric) == self.value(base, metric))
    }
}

/// Returns the metrics of each repetition that is judged.
fn judged_metrics(samples: &CellSamples) -> impl Iterator<Item = &BTreeMap<String, f64>> {
    samples.valid().map(|sample: &Sample| &sample.values)
}

/// Returns the values of `metric` in the repetitions that know it. Returns `None` if fewer than half of the
/// judged repetitions know it, because a median of so few says nothing about the others.
fn judged_values(samples: &CellSamples, metric: &str) -> Option<Vec<f64>> {
    let values = samples.values(metric);
    let judged = samples.valid().count() as u64;
    let has_median = !values.is_empty() && is_enough(values.len() as u64, judged);
    has_median.then_some(values)
}
