//! Judges the claims that compare arenas by the outcomes of two runs, one in each arena.
//!
//! A run in real time and one in the simulator are often made on different days, and are kept in files of
//! their own. The medians in these files are all that a comparison of arenas needs. Single repetitions are
//! not in them, so they are not counted.

use super::check::answer_by_medians;
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, ClaimKind, Operand, Verdict};
use crate::outcome::{ArenaVerdict, CheckOutcome, ClaimOutcome, Outcome, SetOutcome, Value};
use crate::words;

/// Judges each claim of `first` that compares arenas and was left out there, because the run had one arena.
/// `other` is a run of the same study in another arena. A claim stays left out if a cell did not run in one
/// of them.
pub fn judge_across(first: &mut Outcome, other: &Outcome) {
    if first.study != other.study || first.arenas.contains(&other.arena) {
        return;
    }
    let mut claims = core::mem::take(&mut first.claims);
    for claim in &mut claims {
        judge_claim(claim, first, other);
    }
    first.claims = claims;
}

fn judge_claim(claim: &mut ClaimOutcome, first: &Outcome, other: &Outcome) {
    let verdict = &mut claim.in_first_arena;
    let compares_arenas =
        verdict.not_judged.iter().any(|check| matches!(check.must, ClaimKind::Agree { .. }));
    if !verdict.left_out || !compares_arenas {
        return;
    }
    let judged: Option<Vec<CheckOutcome>> =
        verdict.not_judged.iter().map(|check| judge_check(check, first, other)).collect();
    let Some(checks) = judged else { return };
    let is_fitted = checks.iter().all(|check| check.basis == Basis::Fitted);
    let holds = if checks.iter().any(|check| check.holds == Some(false)) {
        Some(false)
    } else {
        checks.iter().all(|check| check.holds == Some(true)).then_some(true)
    };
    let found = match holds {
        Some(true) if is_fitted => Verdict::Consistent,
        Some(true) => Verdict::Reproduced,
        Some(false) => Verdict::Differs,
        None => return,
    };
    let mut arenas = vec![first.arena, other.arena];
    arenas.sort_unstable();
    let n = checks.iter().flat_map(|check| &check.values).map(|value| value.n).min().unwrap_or(0);
    let assumption = first.assumptions.first().map(|(name, _)| name.clone()).unwrap_or_default();
    let outcome = SetOutcome { assumption, holds, checks };
    *verdict = ArenaVerdict {
        arena: arena_list(&arenas),
        reproduced: words::describe_figures(&outcome, 0),
        verdict: found,
        holds_under_base: holds,
        // The study's own words are in neither file, because neither run has judged the claim.
        why: "judged by the medians of both runs".to_owned(),
        n,
        left_out: false,
        by_assumption: vec![outcome],
        not_judged: Vec::new(),
        ..verdict.clone()
    };
}

/// Judges a check by the medians of both runs. Returns `None` if one of them lacks a median.
fn judge_check(check: &CheckOutcome, first: &Outcome, other: &Outcome) -> Option<CheckOutcome> {
    let mut values: Vec<Value> = Vec::new();
    if let ClaimKind::Agree { .. } = check.must {
        let operand = check.compared.first()?;
        let mut runs = [first, other];
        // The order of arenas is from the model to the world.
        runs.sort_by_key(|run| run.arena);
        for run in runs {
            values.push(median(run, operand)?);
        }
    } else {
        for operand in &check.compared {
            values.push(median(first, operand)?);
        }
    }
    let answer = answer_by_medians(check.must, &values);
    Some(CheckOutcome {
        certain: answer.is_certain,
        figure: answer.figure,
        ci95: answer.interval.map(|interval| (interval.low, interval.high)),
        compared: Vec::new(),
        values,
        holds: answer.holds,
        held_by: answer.held_by,
        ..check.clone()
    })
}

/// Finds the median of a metric under the base, in the first arena of `run`.
fn median(run: &Outcome, operand: &Operand) -> Option<Value> {
    let (base, _) = run.assumptions.first()?;
    let arena: ArenaName = run.arena;
    let cell = run
        .cells
        .iter()
        .find(|cell| cell.cell == operand.cell && cell.arena == arena && cell.assumption == *base)?;
    cell.metrics.get(&operand.metric).cloned()
}
