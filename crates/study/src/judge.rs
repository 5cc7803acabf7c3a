//! Judges the claims of a study by the samples of its repetitions, and returns the [`Outcome`].
//!
//! 1. A check compares medians over the repetitions. Repetitions that the machine disturbed past its stated
//!    limits are left out, and a warning says so. Single repetitions are counted, but decide nothing
//!    (`check.rs`).
//! 2. A claim holds under an assumption set if all its checks hold.
//! 3. The verdict of a claim is its answer under the base set (`verdict.rs`):
//!    - `reproduced` if all checks hold,
//!    - `consistent` if all checks hold and all of them were fitted,
//!    - `partly-judged` if all judged checks hold, but `--quick` left checks out,
//!    - `differs` if a check fails.
//! 4. The standing of a claim says whether the verdict is the same under the other sets. A set whose runs
//!    equal the runs under the base is no evidence. The standing is open if a set gives no figure, or if the
//!    checks that decide hold or fail by less than the confidence intervals of the medians.
//!
//! Each arena has a verdict of its own, but a claim that compares arenas has one verdict for all of them.

mod across;
mod cells;
mod check;
mod draw;
mod verdict;
mod warnings;

use crate::again::lower_standing_by_seeds;
use crate::arena::ArenaName;
use crate::claim::{Claim, Verdict};
use crate::outcome::{ArenaVerdict, ClaimOutcome, FigureOutcome, Outcome, SetOutcome, TableOutcome};
use crate::reuse::{EarlierRun, origins};
use crate::sample::CellSamples;
use crate::selection::Selection;
use crate::study::{Cell, Study};

pub use self::across::judge_across;
use self::cells::{CellKey, JudgedCells};
use self::verdict::JudgedClaim;

/// Judges the claims of `study` by `samples`. A cell is not judged if repetitions are missing, or if the
/// machine disturbed more than half of its repetitions.
pub fn judge(study: &Study, selection: &Selection, samples: &[CellSamples]) -> Outcome {
    judge_with(study, selection, samples, None)
}

/// Judges the claims of `study` by `samples`, and by the medians of the `earlier` run for the cells that it
/// covers and that have no samples.
pub fn judge_with(
    study: &Study,
    selection: &Selection,
    samples: &[CellSamples],
    earlier: Option<&EarlierRun>,
) -> Outcome {
    let cells = JudgedCells::new(study, selection, samples, earlier);
    let selected = selection.cells(study);
    let is_judged = |cell: &Cell| cells.is_judged(CellKey::of(cell));
    let (judged, unjudged): (Vec<&Cell>, Vec<&Cell>) =
        selected.iter().copied().partition(|cell| is_judged(cell));
    let figures: Vec<_> = study.figures.iter().filter_map(|figure| draw::draw(figure, &cells)).collect();
    let tables: Vec<_> = study.tables.iter().filter_map(|table| draw::fill(table, &cells)).collect();
    Outcome {
        study: study.name.clone(),
        title: study.title.clone(),
        arena: selection.arenas.first().copied().unwrap_or(ArenaName::Sim),
        arenas: selection.arenas.clone(),
        quick: selection.is_quick,
        seed: study.changes.seed,
        set: study.changes.set.clone(),
        day: None,
        valid: unjudged.is_empty(),
        warnings: warnings::list(&cells, samples, &unjudged, selected.len()),
        assumptions: study.assumptions.iter().map(|set| (set.name.clone(), set.text.clone())).collect(),
        claims: selection.claims(study).map(|claim| judge_claim(claim, &cells)).collect(),
        cells: selected.iter().filter_map(|cell| cells.cell_outcome(cell)).collect(),
        not_shown: not_shown(study, &figures, &tables),
        figures,
        tables,
        origins: origins(study, selection, judged.into_iter()),
    }
}

/// Judges `claim` in each arena of the run, or once if the claim compares arenas.
fn judge_claim(claim: &Claim, cells: &JudgedCells<'_>) -> ClaimOutcome {
    let arenas = cells.selection.arenas_of(claim);
    let verdict_in = |arenas: &[ArenaName]| {
        let mut verdict = JudgedClaim::new(claim, arenas, cells).verdict();
        add_earlier_seeds(&mut verdict, claim, cells.earlier);
        verdict
    };
    let (in_first_arena, in_other_arenas) = match arenas.split_first() {
        Some((first, others)) if !claim.compares_arenas() => {
            (verdict_in(&[*first]), others.iter().map(|arena| verdict_in(&[*arena])).collect())
        }
        // The verdict of a claim without an arena says that the claim was not tested, and why.
        _ => (verdict_in(&arenas), Vec::new()),
    };
    let study = cells.study;
    ClaimOutcome {
        id: claim.id.clone(),
        claim: claim.text.clone(),
        published: claim.published.clone(),
        in_first_arena,
        in_other_arenas,
        sensitivity: study.sensitivity.iter().map(|&set| study.assumptions[set].name.clone()).collect(),
    }
}

/// Adds what other seeds gave in the earlier run, if the claim has the same checks with the same answers
/// under the base as there. The names of checks do not count.
fn add_earlier_seeds(verdict: &mut ArenaVerdict, claim: &Claim, earlier: Option<&EarlierRun>) {
    let Some(before) = earlier.and_then(|earlier| earlier.verdict(&claim.id, &verdict.arena)) else { return };
    if without_names(verdict.by_assumption.first()) == without_names(before.by_assumption.first()) {
        verdict.by_seed.clone_from(&before.by_seed);
        lower_standing_by_seeds(verdict);
    }
}

fn without_names(outcome: Option<&SetOutcome>) -> Option<SetOutcome> {
    let mut outcome = outcome?.clone();
    outcome.checks.iter_mut().for_each(|check| check.name.clear());
    Some(outcome)
}

/// Lists the figures and tables of the publication for which no cell ran, by their numbers and titles.
fn not_shown(study: &Study, figures: &[FigureOutcome], tables: &[TableOutcome]) -> Vec<String> {
    let mut absent = Vec::new();
    for figure in &study.figures {
        if !figures.iter().any(|drawn| drawn.number == figure.number) {
            absent.push(format!("figure {} ({})", figure.number, figure.title));
        }
    }
    for table in &study.tables {
        if !tables.iter().any(|filled| filled.title == table.title) {
            absent.push(format!("table \"{}\"", table.title));
        }
    }
    absent
}

impl Outcome {
    /// Returns the claims whose verdict disagrees with the verdict that the study expects
    /// ([`ArenaVerdict::is_unexpected`]).
    pub fn unexpected(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.verdicts().filter(|(_, verdict)| verdict.is_unexpected())
    }

    /// Returns the claims of which `--quick` left out checks that decide.
    pub fn partly_judged(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.verdicts().filter(|(_, verdict)| verdict.verdict == Verdict::PartlyJudged)
    }

    /// Returns the claims with the verdict [`Verdict::Disturbed`].
    pub fn disturbed(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.verdicts().filter(|(_, verdict)| verdict.verdict == Verdict::Disturbed)
    }

    /// Every claim with its verdict in every arena.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.claims.iter().flat_map(|claim| claim.verdicts().map(move |verdict| (claim, verdict)))
    }
}
