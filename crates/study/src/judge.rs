//! From samples to verdicts.
//!
//! A check is held against the medians over repetitions; single repetitions are counted beside it and decide
//! nothing, and those that the machine disturbed past its stated limits are reported and left out. A claim
//! holds under an assumption set if all its checks do, is `reproduced` if it holds under at least one, and
//! `differs` if it was tested and holds under none. If `--quick` left checks out and the others hold under at
//! least one, it is `partly-judged`. Each arena has a verdict of its own; a claim that compares arenas has
//! one for all.

mod check;
mod draw;
mod ran;

use crate::arena::{ArenaName, arena_list};
use crate::claim::{Check, Claim, Verdict};
use crate::outcome::{ArenaVerdict, ClaimOutcome, Outcome, Stands, UnderAssumption};
use crate::sample::CellSamples;
use crate::selection::Selection;
use crate::study::{Cell, Study};
use crate::words::{self, NotTested, Sets};

use self::check::judge_check;
use self::ran::Ran;

/// Judges what `samples` hold; a cell without all its repetitions counts as not run.
pub fn judge(study: &Study, selection: &Selection, samples: &[CellSamples]) -> Outcome {
    let ran = Ran::new(study, selection, samples);
    let wanted = selection.cells(study);
    let missing: Vec<&&Cell> =
        wanted.iter().filter(|cell| ran.get(&cell.name, cell.arena, cell.assumption).is_none()).collect();
    let is_quick = selection.quick;
    let usual = study.cells.iter().filter_map(|cell| selection.form(cell)).map(|form| form.repeat).max();
    Outcome {
        study: study.name.clone(),
        title: study.title.clone(),
        arena: selection.arenas.first().copied().unwrap_or(ArenaName::Sim),
        arenas: selection.arenas.clone(),
        quick: is_quick,
        seed: study.changes.seed,
        set: study.changes.set.clone(),
        phases: if is_quick { usual.unwrap_or(study.repeat).min(study.repeat) } else { study.repeat },
        valid: missing.is_empty(),
        warnings: changed(study).into_iter().chain(warnings(samples, wanted.len(), &missing)).collect(),
        assumptions: study.assumptions.iter().map(|it| (it.name.clone(), it.text.clone())).collect(),
        claims: selection.claims(study).map(|claim| judge_claim(claim, &ran)).collect(),
        cells: wanted.iter().filter_map(|cell| ran.cell_outcome(cell)).collect(),
        figures: study.figures.iter().filter_map(|figure| draw::draw(figure, &ran)).collect(),
        tables: study.tables.iter().filter_map(|table| draw::fill(table, &ran)).collect(),
    }
}

impl Outcome {
    /// The claims whose verdict disagrees with the expected one, with the arena
    /// ([`ArenaVerdict::is_unexpected`]).
    pub fn unexpected(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.all().filter(|(_, verdict)| verdict.is_unexpected())
    }

    /// The claims of which `--quick` left deciding checks out, with the arena.
    pub fn partly_judged(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.all().filter(|(_, verdict)| verdict.verdict == Verdict::PartlyJudged)
    }

    /// The claims that have no verdict since the machine disturbed their runs, with the arena.
    pub fn disturbed(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.all().filter(|(_, verdict)| verdict.disturbed)
    }

    fn all(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.claims.iter().flat_map(|claim| claim.verdicts().map(move |verdict| (claim, verdict)))
    }
}

/// That this is not the study as it stands, if keys were set over its own.
fn changed(study: &Study) -> Option<String> {
    let set: Vec<_> = study.changes.set.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let is_changed = !set.is_empty();
    is_changed.then(|| format!("set in every cell, over what the study sets: {}", set.join(", ")))
}

/// What the runs said, each thing once, and which repetitions and cells are not judged.
fn warnings(samples: &[CellSamples], wanted: usize, missing: &[&&Cell]) -> Vec<String> {
    let mut warnings = alike(samples.iter().flat_map(|cell| &cell.warnings));
    for cell in samples {
        let mut disturbed = cell.samples.iter().filter_map(|sample| sample.disturbed.as_ref()).peekable();
        let Some(&why) = disturbed.peek() else { continue };
        let (count, all) = (disturbed.count(), cell.samples.len());
        let (arena, name) = (cell.arena, &cell.cell);
        warnings.push(format!(
            "{arena}: {name}: {count} of {all} repetitions were disturbed past the limits and are not judged: {why}"
        ));
    }
    if !missing.is_empty() {
        warnings.push(format!(
            "{} of {wanted} cells did not run to their end, or were disturbed in more than half of their repetitions; --resume \
             runs what is missing and what was disturbed",
            missing.len()
        ));
    }
    warnings
}

/// Warnings that differ in their numbers alone are listed once, with their count.
fn alike<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut kinds: Vec<(String, &String, u64)> = Vec::new();
    for warning in all {
        let shape: String = warning.chars().filter(|it| !it.is_ascii_digit() && *it != '.').collect();
        match kinds.iter_mut().find(|kind| kind.0 == shape) {
            Some(kind) => kind.2 += 1,
            None => kinds.push((shape, warning, 1)),
        }
    }
    let told = |(_, first, count): (String, &String, u64)| match count {
        1 => first.clone(),
        _ => format!("{first} (the first of {count} such)"),
    };
    kinds.into_iter().map(told).collect()
}

fn judge_claim(claim: &Claim, ran: &Ran<'_>) -> ClaimOutcome {
    let arenas = ran.selection.arenas_of(claim);
    let mut verdicts: Vec<ArenaVerdict> = match claim.compares_arenas() {
        true => vec![judge_in(claim, &arenas, ran)],
        false => arenas.iter().map(|&arena| judge_in(claim, &[arena], ran)).collect(),
    };
    if verdicts.is_empty() {
        verdicts.push(judge_in(claim, &[], ran));
    }
    let base = verdicts.remove(0);
    let sensitivity = ran.study.sensitivity.iter().map(|&index| ran.study.assumptions[index].name.clone());
    ClaimOutcome {
        id: claim.id.clone(),
        claim: claim.text.clone(),
        published: claim.published.clone(),
        base,
        elsewhere: verdicts,
        sensitivity: sensitivity.collect(),
    }
}

/// The verdict in one arena, or over several for a claim that compares them.
fn judge_in(claim: &Claim, arenas: &[ArenaName], ran: &Ran<'_>) -> ArenaVerdict {
    let study = ran.study;
    let checks = ran.selection.checks(claim, arenas);
    let lacks_arena = arenas.is_empty() || (claim.compares_arenas() && arenas.len() < 2);
    let by_assumption: Vec<UnderAssumption> = (0..study.assumptions.len())
        .filter(|_| !lacks_arena)
        .map(|assumption| under(&checks, arenas, assumption, ran))
        .filter(|it| it.checks.iter().any(|check| !check.values.is_empty()))
        .collect();
    let names = |holds: bool| -> Vec<String> {
        let these = by_assumption.iter().filter(|it| it.holds == Some(holds));
        these.map(|it| it.assumption.clone()).collect()
    };
    let (holding, failing) = (names(true), names(false));
    // A check that fails shows a difference whatever was left out; checks that hold show nothing of those
    // that were.
    let left_out_checks = ran.selection.checks_left_out(claim, arenas);
    let so_far = if left_out_checks.is_empty() { Verdict::Reproduced } else { Verdict::PartlyJudged };
    let (verdict, stands) = match (holding.is_empty(), failing.is_empty()) {
        (false, true) => (so_far, Stands::All),
        (false, false) => (so_far, Stands::Some),
        (true, false) => (Verdict::Differs, Stands::None),
        (true, true) => (Verdict::NotTested, Stands::Unknown),
    };
    let has_cells = || arenas.iter().all(|&arena| ran.selection.has_cells_of(study, &checks, arena));
    let not_tested = match verdict {
        Verdict::NotTested if claim.checks.is_empty() => Some(NotTested::NoCheck),
        Verdict::NotTested if lacks_arena => Some(NotTested::Arena(claim.arenas.clone())),
        Verdict::NotTested if !has_cells() => Some(NotTested::LeftOut { quick: ran.selection.quick }),
        Verdict::NotTested if ran.lacks_only_disturbed(&checks, arenas) => Some(NotTested::Disturbed),
        Verdict::NotTested => Some(NotTested::NotRun),
        Verdict::Reproduced | Verdict::PartlyJudged | Verdict::Differs => None,
    };
    let left_out = matches!(not_tested, Some(NotTested::Arena(_) | NotTested::LeftOut { .. }));
    let disturbed = matches!(not_tested, Some(NotTested::Disturbed));
    let expected = arenas.first().or(claim.arenas.first()).and_then(|arena| claim.expected.get(arena));
    let expected = expected.copied().unwrap_or(Verdict::NotTested);
    let n = by_assumption.iter().flat_map(|it| &it.checks).flat_map(|it| &it.values).map(|it| it.n).min();
    let base = &study.assumptions[0].name;
    let under_base = by_assumption.iter().find(|it| it.assumption == *base).and_then(|it| it.holds);
    let sets_left_out = ran.selection.sets_left_out(study, claim, arenas);
    let sets_left_out: Vec<String> =
        sets_left_out.into_iter().map(|set| study.assumptions[set].name.clone()).collect();
    let sets = Sets { base, holding: &holding, failing: &failing, left_out: sets_left_out.len() };
    let part = (verdict == Verdict::PartlyJudged).then_some((checks.len(), claim.checks.len()));
    ArenaVerdict {
        holds_under_base: under_base.filter(|holds| verdict != Verdict::PartlyJudged || !holds),
        under: words::under(&sets, part),
        arena: arena_list(if arenas.is_empty() { &claim.arenas } else { arenas }),
        reproduced: by_assumption
            .iter()
            .find(|it| it.holds.is_some())
            .map_or_else(String::new, |it| words::reproduced(it, left_out_checks.len())),
        verdict,
        expected,
        why: words::why(
            claim,
            &words::Found {
                verdict,
                not_tested,
                expected,
                tested: holding.len() + failing.len(),
                left_out: &left_out_checks,
            },
            &by_assumption,
        ),
        assumptions: if holding.is_empty() { failing } else { holding },
        checks_left_out: left_out_checks.len() as u64,
        sets_left_out,
        n: n.unwrap_or(0),
        stands,
        left_out,
        disturbed,
        by_assumption,
    }
}

fn under(checks: &[&Check], arenas: &[ArenaName], assumption: usize, ran: &Ran<'_>) -> UnderAssumption {
    let checks: Vec<_> = checks.iter().map(|it| judge_check(it, arenas, assumption, ran)).collect();
    let all: Option<Vec<bool>> = checks.iter().map(|check| check.holds).collect();
    UnderAssumption {
        assumption: ran.study.assumptions[assumption].name.clone(),
        holds: all.filter(|all| !all.is_empty()).map(|all| all.iter().all(|holds| *holds)),
        checks,
    }
}
