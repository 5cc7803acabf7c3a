//! Takes the medians of unchanged cells from an earlier run. A study that grew by an assumption set or by a
//! claim then runs only the cells that the earlier run does not have.
//!
//! ```text
//! study.toml ─► cells ─► unchanged, all medians known? ── yes ─► medians of the earlier run ─┐
//!                                     └─ no ─► runs ─► samples ──────────────────────────────┴─► judge
//! ```
//!
//! A cell is *unchanged* if its scenario is made of the same (`CellRuns::origin`), and the metrics that are
//! read of it are computed as they were. What an earlier outcome lacks is left out:
//!
//! - It has no single repetitions. In a check that changed none are counted, and a set that is new equals the
//!   base if the medians, intervals and ranges of all figures do.
//! - The curves of a kept run were removed. A figure of curves is that of the earlier outcome.
//!
//! The caller answers for one thing: that the program simulates as it did when the earlier run was made.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_units::fnv1a;

use crate::arena::{ArenaName, arena_list};
use crate::claim::ClaimKind;
use crate::metric::Derived;
use crate::outcome::{ArenaVerdict, CellOutcome, ClaimOutcome, FigureOutcome, Outcome, Value};
use crate::selection::Selection;
use crate::study::{BASE_SET, Cell, Figure, FigureKind, Study};

/// An earlier run of the same study, whose medians take the place of runs.
#[derive(Clone, Debug)]
pub struct EarlierRun {
    outcome: Outcome,
    /// The medians of each cell by the path of the metric.
    medians: BTreeMap<CellId, BTreeMap<String, Value>>,
}

/// A cell in an arena under an assumption set, by the names of all three.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CellId {
    arena: ArenaName,
    assumption: String,
    cell: String,
}

/// How single repetitions answered a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Singles {
    /// The number of repetitions in which the check holds.
    pub(crate) hits: u64,
    /// The number of repetitions in which every operand has a figure.
    pub(crate) runs: u64,
}

impl EarlierRun {
    /// Takes `outcome` as the earlier run of what `selection` selects of `study`.
    ///
    /// # Errors
    /// Returns a message if the earlier run is not valid, says nothing of its scenarios, or differs in more
    /// than its cells: in the study, the arenas, `--quick`, `--seed` or `--set`.
    pub fn new(outcome: Outcome, study: &Study, selection: &Selection) -> Result<Self, String> {
        let differs = |what: &str, earlier: String, now: String| {
            (earlier != now).then(|| format!("it is a run with {what} {earlier}, and this run has {now}"))
        };
        let seed =
            |seed: Option<u64>| seed.map_or_else(|| "of each scenario".to_owned(), |seed| seed.to_string());
        let difference = differs("the study", outcome.study.clone(), study.name.clone())
            .or_else(|| differs("--arena", arena_list(&outcome.arenas), arena_list(&selection.arenas)))
            .or_else(|| differs("--quick", outcome.quick.to_string(), selection.is_quick.to_string()))
            .or_else(|| differs("the seed", seed(outcome.seed), seed(study.changes.seed)))
            .or_else(|| differs("--set", format!("{:?}", outcome.set), format!("{:?}", study.changes.set)));
        if let Some(difference) = difference {
            return Err(difference);
        }
        if !outcome.valid {
            return Err(
                "it is not valid: cells did not run to their end, or the machine disturbed them".to_owned()
            );
        }
        if outcome.origins.is_empty() {
            return Err("it does not say what its cells were made of (`origins`): an earlier version wrote it, so run the study whole".to_owned());
        }
        let medians = medians(&outcome);
        Ok(Self { outcome, medians })
    }

    /// Returns the day of the earlier run, if it ran in real time.
    pub fn day(&self) -> Option<&str> {
        self.outcome.day.as_deref()
    }

    /// Returns whether the earlier run has all that `selection` reads of `cell`, from the same scenario.
    pub fn covers(&self, study: &Study, selection: &Selection, cell: &Cell) -> bool {
        let (Some(runs), Some(set)) = (selection.runs(cell), study.assumptions.get(cell.assumption)) else {
            return false;
        };
        let key = origin_key(cell.arena, &set.name, &cell.name);
        if self.outcome.origins.get(&key) != Some(&runs.origin) {
            return false;
        }
        let id = CellId { arena: cell.arena, assumption: set.name.clone(), cell: cell.name.clone() };
        let has_median = |metric: &&str| {
            let medians = self.medians.get(&id);
            medians.is_some_and(|known| known.contains_key(*metric)) && self.computes_alike(study, metric)
        };
        let has_curves = cell.assumption != BASE_SET
            || study.figures_of_curves(&cell.name).all(|figure| self.draws_alike(figure));
        has_curves && selection.metrics_of(cell, study).iter().all(has_median)
    }

    /// Returns whether the earlier run drew `figure` of the same cell, flows and seconds.
    fn draws_alike(&self, figure: &Figure) -> bool {
        self.figure(&figure.number).is_some()
            && self.outcome.origins.get(&figure_key(figure)) == Some(&figure_origin(figure))
    }

    /// Returns whether the earlier run computed `metric`, and every metric that it is made of, as `study`
    /// does.
    fn computes_alike(&self, study: &Study, metric: &str) -> bool {
        let mut unvisited = vec![metric];
        let mut visited = BTreeSet::new();
        while let Some(name) = unvisited.pop() {
            let Some(derived) = study.derived.get(name) else { continue };
            if !visited.insert(name) {
                continue;
            }
            if self.outcome.origins.get(&metric_key(name)) != Some(&metric_origin(derived)) {
                return false;
            }
            unvisited.extend(derived.parts());
        }
        true
    }

    /// Returns the median of a metric of a cell.
    pub(crate) fn value(&self, arena: ArenaName, set: &str, cell: &str, metric: &str) -> Option<&Value> {
        let id = CellId { arena, assumption: set.to_owned(), cell: cell.to_owned() };
        self.medians.get(&id)?.get(metric)
    }

    /// Returns the outcome of a cell under the base set. A kept run has no other.
    pub(crate) fn cell(&self, arena: ArenaName, set: &str, cell: &str) -> Option<&CellOutcome> {
        let mut cells = self.outcome.cells.iter();
        cells.find(|found| found.arena == arena && found.assumption == set && found.cell == cell)
    }

    /// Returns the figure with this number.
    pub(crate) fn figure(&self, number: &str) -> Option<&FigureOutcome> {
        self.outcome.figures.iter().find(|figure| figure.number == number)
    }

    /// Returns the verdict of a claim.
    pub(crate) fn verdict(&self, claim: &str, arena: &str) -> Option<&ArenaVerdict> {
        self.outcome.verdict(claim, arena)
    }

    /// Returns how single repetitions under the set answered a check of this `kind` that compared `values`.
    /// It is `None` if the earlier run had no such check.
    pub(crate) fn singles(&self, set: &str, kind: ClaimKind, values: &[Value]) -> Option<Singles> {
        let verdicts = self.outcome.claims.iter().flat_map(ClaimOutcome::verdicts);
        let mut checks =
            verdicts.filter_map(|verdict| verdict.under_set(set)).flat_map(|under| &under.checks);
        let check = checks.find(|check| check.must == kind && check.values == values)?;
        Some(Singles { hits: check.single_hits, runs: check.single_runs })
    }

    /// Returns whether the runs of a claim under the set equalled those under the base, repetition by
    /// repetition. It is `None` if the earlier run did not judge the claim under the set.
    pub(crate) fn equals_base(&self, claim: &str, arena: &str, set: &str) -> Option<bool> {
        let verdict = self.verdict(claim, arena)?;
        let has = |sets: &[String]| sets.iter().any(|name| name == set);
        if has(&verdict.without_effect) {
            return Some(true);
        }
        let has_answer =
            has(&verdict.holds_under) || has(&verdict.fails_under) || has(&verdict.undecided_under);
        has_answer.then_some(false)
    }

    /// The warnings of the earlier run, which hold for the medians that are taken.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.outcome.warnings
    }
}

/// Collects the medians of an outcome. A kept run has the cells of the base alone; those under other sets are
/// in the checks of the claims.
fn medians(outcome: &Outcome) -> BTreeMap<CellId, BTreeMap<String, Value>> {
    let mut medians: BTreeMap<CellId, BTreeMap<String, Value>> = BTreeMap::new();
    for cell in &outcome.cells {
        let id = CellId { arena: cell.arena, assumption: cell.assumption.clone(), cell: cell.cell.clone() };
        medians.entry(id).or_default().extend(cell.metrics.clone());
    }
    for under in outcome.verdicts().flat_map(|(_, verdict)| &verdict.by_assumption) {
        for value in under.checks.iter().flat_map(|check| &check.values) {
            let id =
                CellId { arena: value.arena, assumption: under.assumption.clone(), cell: value.cell.clone() };
            medians.entry(id).or_default().insert(value.metric.clone(), value.clone());
        }
    }
    medians
}

/// Says what the cells and the metrics of a run were made of, for a later run that takes their medians.
pub(crate) fn origins<'c>(
    study: &Study,
    selection: &Selection,
    cells: impl Iterator<Item = &'c Cell>,
) -> BTreeMap<String, String> {
    let mut origins: BTreeMap<String, String> = BTreeMap::new();
    for cell in cells {
        let (Some(runs), Some(set)) = (selection.runs(cell), study.assumptions.get(cell.assumption)) else {
            continue;
        };
        origins.insert(origin_key(cell.arena, &set.name, &cell.name), runs.origin.clone());
    }
    origins.extend(study.derived.iter().map(|(name, derived)| (metric_key(name), metric_origin(derived))));
    let of_curves = study.figures.iter().filter(|figure| matches!(figure.kind, FigureKind::Trace { .. }));
    origins.extend(of_curves.map(|figure| (figure_key(figure), figure_origin(figure))));
    origins
}

fn origin_key(arena: ArenaName, set: &str, cell: &str) -> String {
    format!("{arena} {set} {cell}")
}

fn metric_key(name: &str) -> String {
    format!("metric {name}")
}

fn metric_origin(derived: &Derived) -> String {
    hash(&format!("{derived:?}"))
}

fn figure_key(figure: &Figure) -> String {
    format!("figure {}", figure.number)
}

fn figure_origin(figure: &Figure) -> String {
    hash(&format!("{:?}", figure.kind))
}

/// Returns the hash of a text as 16 hexadecimal digits.
pub(crate) fn hash(text: &str) -> String {
    format!("{:016x}", fnv1a(text.bytes()))
}
