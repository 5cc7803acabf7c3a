//! From samples to verdicts.
//!
//! A check is held against the medians over repetitions; single repetitions are counted beside it and decide
//! nothing, and those that the machine disturbed past its stated limits are reported and left out. A claim
//! holds under an assumption set if all its checks do. Its verdict is that under the base set: `reproduced`
//! if it holds there (`consistent` if every check that is judged was fitted, `partly-judged` if `--quick`
//! left checks out), else `differs`. Its standing says whether the verdict is the same under the other sets.
//! A set whose runs equal the base's is no evidence. A set leaves the standing open if it gives no figure, or
//! if the checks that decide under it hold or fail by less than the medians' intervals. Each arena has a
//! verdict of its own; a claim that compares arenas has one for all.

mod check;
mod draw;
mod ran;

use std::collections::BTreeSet;
use talkpath_units::{counted, is_same_but_for_plural};

use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, Check, Claim, Operand, Standing, Verdict};
use crate::outcome::{
    ArenaVerdict, CheckOutcome, ClaimOutcome, FigureOutcome, Outcome, TableOutcome, UnderAssumption,
};
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
    let figures: Vec<_> = study.figures.iter().filter_map(|figure| draw::draw(figure, &ran)).collect();
    let tables: Vec<_> = study.tables.iter().filter_map(|table| draw::fill(table, &ran)).collect();
    Outcome {
        study: study.name.clone(),
        title: study.title.clone(),
        arena: selection.arenas.first().copied().unwrap_or(ArenaName::Sim),
        arenas: selection.arenas.clone(),
        quick: is_quick,
        seed: study.changes.seed,
        set: study.changes.set.clone(),
        day: None,
        valid: missing.is_empty(),
        warnings: changed(study)
            .into_iter()
            .chain(warnings(samples, wanted.len(), &missing))
            .chain(alike(partly_known(selection.claims(study), &ran).iter()))
            .collect(),
        assumptions: study.assumptions.iter().map(|it| (it.name.clone(), it.text.clone())).collect(),
        claims: selection.claims(study).map(|claim| judge_claim(claim, &ran)).collect(),
        cells: wanted.iter().filter_map(|cell| ran.cell_outcome(cell)).collect(),
        not_shown: not_shown(study, &figures, &tables),
        figures,
        tables,
    }
}

/// The publication's figures and tables for which no cell ran, by their numbers and titles.
fn not_shown(study: &Study, figures: &[FigureOutcome], tables: &[TableOutcome]) -> Vec<String> {
    let is_drawn = |number: &str| figures.iter().any(|drawn| drawn.number == number);
    let is_filled = |title: &str| tables.iter().any(|filled| filled.title == title);
    let figures = study.figures.iter().filter(|figure| !is_drawn(&figure.number));
    let tables = study.tables.iter().filter(|table| !is_filled(&table.title));
    let figures = figures.map(|figure| format!("figure {} ({})", figure.number, figure.title));
    figures.chain(tables.map(|table| format!("table \"{}\"", table.title))).collect()
}

impl Outcome {
    /// The claims whose verdict disagrees with the expected one, with the arena
    /// ([`ArenaVerdict::is_unexpected`]).
    pub fn unexpected(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.all().filter(|(_, verdict)| verdict.is_unexpected())
    }

    /// The claims whose deciding checks `--quick` left out, with the arena.
    pub fn partly_judged(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.all().filter(|(_, verdict)| verdict.verdict == Verdict::PartlyJudged)
    }

    /// The claims that have no verdict since the machine disturbed their runs, with the arena.
    pub fn disturbed(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.all().filter(|(_, verdict)| verdict.verdict == Verdict::Disturbed)
    }

    fn all(&self) -> impl Iterator<Item = (&ClaimOutcome, &ArenaVerdict)> {
        self.claims.iter().flat_map(|claim| claim.verdicts().map(move |verdict| (claim, verdict)))
    }
}

/// A warning that keys were set over the study's own, if any were.
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
            "{arena}: {name}: {count} of {} disturbed past the limits, not judged: {why}",
            counted(all, "repetition")
        ));
    }
    let (measured, missing): (Vec<&&Cell>, Vec<&&Cell>) =
        missing.iter().copied().partition(|cell| cell.arena == ArenaName::Campaign);
    if !measured.is_empty() {
        let names: Vec<&str> = measured.iter().take(MOST_NAMED).map(|cell| cell.name.as_str()).collect();
        let more = if measured.len() > MOST_NAMED { ", ..." } else { "" };
        warnings.push(format!(
            "{} of {} not in the campaign's records, or disturbed in more than half of the repetitions: {}{more}",
            measured.len(),
            counted(wanted, "cell"),
            names.join(", ")
        ));
    }
    if !missing.is_empty() {
        warnings.push(format!(
            "{} of {} did not run to the end, or the machine disturbed more than half of the repetitions; --resume \
             runs what is missing and what was disturbed",
            missing.len(),
            counted(wanted, "cell")
        ));
    }
    warnings
}

/// Which medians that are judged leave repetitions out that have no such number.
fn partly_known<'s>(claims: impl Iterator<Item = &'s Claim>, ran: &Ran<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for claim in claims {
        let arenas = ran.selection.arenas_of(claim);
        let checks = ran.selection.checks(claim, &arenas);
        for Operand { cell, metric } in checks.iter().flat_map(|check| &check.operands) {
            for &arena in &arenas {
                for (set, assumption) in ran.study.assumptions.iter().enumerate() {
                    if let Some((known, all)) = ran.known(cell, arena, set, metric)
                        && known < all
                    {
                        found.insert(format!(
                            "{arena}: {cell} under {}: {} of {} without {metric}; its median is of the others",
                            assumption.name,
                            all - known,
                            counted(all, "repetition")
                        ));
                    }
                }
            }
        }
    }
    found
}

/// Warnings that differ in their numbers alone are listed once, with their count.
fn alike<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    struct Alike<'a> {
        first: &'a String,
        count: u64,
    }
    let mut kinds: Vec<Alike<'_>> = Vec::new();
    for warning in all {
        match kinds.iter_mut().find(|kind| differ_in_numbers_alone(kind.first, warning)) {
            Some(kind) => kind.count += 1,
            None => kinds.push(Alike { first: warning, count: 1 }),
        }
    }
    let told = |Alike { first, count }: Alike<'_>| match count {
        1 => first.clone(),
        _ => format!("{first} (the first of {count} such)"),
    };
    kinds.into_iter().map(told).collect()
}

/// Whether two warnings say the same of other numbers: `1 packet came` and `3 packets came` do.
fn differ_in_numbers_alone(a: &str, b: &str) -> bool {
    let without_digits = |word: &str| word.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    let (mut words, mut others) = (a.split(' '), b.split(' '));
    let mut is_after_number = false;
    loop {
        let (word, other) = match (words.next(), others.next()) {
            (None, None) => return true,
            (Some(word), Some(other)) => (without_digits(word), without_digits(other)),
            _ => return false,
        };
        if word != other && !(is_after_number && is_same_but_for_plural(&word, &other)) {
            return false;
        }
        is_after_number = word.is_empty();
    }
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
    let base = &study.assumptions[0].name;
    let answers: Vec<(&String, Answer)> = by_assumption
        .iter()
        .filter_map(|it| Some((&it.assumption, answer(it, &checks, arenas, ran)?)))
        .collect();
    let names = |wanted: Answer| -> Vec<String> {
        let these = answers.iter().filter(|(_, answer)| *answer == wanted);
        these.map(|(name, _)| (*name).clone()).collect()
    };
    let (mut holds_under, mut fails_under) = (names(Answer::Holds), names(Answer::Fails));
    let (undecided_under, without_effect) = (names(Answer::Undecided), names(Answer::AsBase));
    // The verdict is that of the base's medians, whatever their intervals say.
    if undecided_under.contains(base) {
        let by_medians = by_assumption.iter().find(|it| it.assumption == *base).and_then(|it| it.holds);
        let list = if by_medians == Some(true) { &mut holds_under } else { &mut fails_under };
        list.insert(0, base.clone());
    }
    let under_base = by_assumption.iter().find(|it| it.assumption == *base);
    let left_out_checks = ran.selection.checks_left_out(claim, arenas);
    let (verdict, not_tested) = match under_base.and_then(|it| it.holds) {
        Some(false) => (Verdict::Differs, None),
        // Checks that hold say nothing about the checks that were left out.
        Some(true) if !left_out_checks.is_empty() => (Verdict::PartlyJudged, None),
        // The claim may have others, which another arena judges.
        Some(true) if checks.iter().all(|check| check.basis == Basis::Fitted) => (Verdict::Consistent, None),
        Some(true) => (Verdict::Reproduced, None),
        None => {
            let why = not_tested(claim, &checks, arenas, under_base, ran);
            let is_disturbed = matches!(why, NotTested::Disturbed);
            (if is_disturbed { Verdict::Disturbed } else { Verdict::NotTested }, Some(why))
        }
    };
    let left_out = matches!(not_tested, Some(NotTested::Arena(_) | NotTested::LeftOut { .. }));
    let expected = arenas.first().or(claim.arenas.first()).and_then(|arena| claim.expected.get(arena));
    let expected = expected.copied().unwrap_or(Verdict::NotTested);
    let n = by_assumption.iter().flat_map(|it| &it.checks).flat_map(|it| &it.values).map(|it| it.n).min();
    let name = |set: usize| study.assumptions[set].name.clone();
    let sets_left_out: Vec<String> =
        ran.selection.sets_left_out(study, claim, arenas).into_iter().map(name).collect();
    let is_judged = |set: &String| answers.iter().any(|(name, _)| *name == set);
    let wanted = ran.selection.sets(study, &checks, arenas).into_iter().map(name);
    let (sets_not_run, sets_without_figure): (Vec<String>, Vec<String>) =
        wanted.filter(|set| !is_judged(set)).partition(|set| ran.lacks_cells(&checks, arenas, set));
    let sets = Sets {
        base,
        holding: &holds_under,
        failing: &fails_under,
        undecided: &undecided_under,
        without_effect: &without_effect,
        left_out: sets_left_out.len(),
        not_run: sets_not_run.len(),
        without_figure: sets_without_figure.len(),
    };
    let part =
        (verdict == Verdict::PartlyJudged).then(|| (checks.len(), checks.len() + left_out_checks.len()));
    let holds_under_base = under_base.and_then(|it| it.holds);
    let finding = words::Finding { verdict, not_tested, expected, left_out: &left_out_checks };
    ArenaVerdict {
        arena: arena_list(if arenas.is_empty() { &claim.arenas } else { arenas }),
        reproduced: by_assumption
            .iter()
            .find(|it| it.holds.is_some())
            .map_or_else(String::new, |it| words::reproduced(it, left_out_checks.len())),
        verdict,
        standing: standing(verdict, &sets),
        expected,
        holds_under_base: holds_under_base.filter(|holds| verdict != Verdict::PartlyJudged || !holds),
        under: words::under(&sets, part),
        why: words::why(claim, &finding, under_base),
        checks_left_out: left_out_checks.len() as u64,
        n: n.unwrap_or(0),
        left_out,
        holds_under,
        fails_under,
        undecided_under,
        without_effect,
        sets_left_out,
        sets_not_run,
        sets_without_figure,
        by_seed: Vec::new(),
        not_judged: if by_assumption.is_empty() { not_judged(claim, study) } else { Vec::new() },
        by_assumption,
    }
}

/// What one set says of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Holds,
    Fails,
    /// The checks that decide lie within the medians' intervals.
    Undecided,
    /// Every run equals the base's, so this set is no evidence.
    AsBase,
}

fn answer(under: &UnderAssumption, checks: &[&Check], arenas: &[ArenaName], ran: &Ran<'_>) -> Option<Answer> {
    let holds = under.holds?;
    if ran.equals_base(checks, arenas, &under.assumption) {
        return Some(Answer::AsBase);
    }
    let mut deciding = under.checks.iter().filter(|check| check.holds == Some(holds));
    Some(match holds {
        true if deciding.any(CheckOutcome::is_undecided) => Answer::Undecided,
        false if deciding.all(CheckOutcome::is_undecided) => Answer::Undecided,
        true => Answer::Holds,
        false => Answer::Fails,
    })
}

/// How a verdict fares under the other sets; `None` if that is open.
fn standing(verdict: Verdict, sets: &Sets<'_>) -> Option<Standing> {
    let others = sets.holding.len() + sets.failing.len() > 1;
    let are_all_judged = sets.unjudged() == 0 && sets.undecided.is_empty();
    match verdict {
        Verdict::Reproduced | Verdict::Consistent if !sets.failing.is_empty() => Some(Standing::Fragile),
        Verdict::Differs if !sets.holding.is_empty() => Some(Standing::OnlyUnder),
        Verdict::Reproduced | Verdict::Consistent | Verdict::Differs => {
            (others && are_all_judged).then_some(Standing::Robust)
        }
        Verdict::PartlyJudged | Verdict::NotTested | Verdict::Disturbed => None,
    }
}

/// What a claim without a verdict would compare.
fn not_judged(claim: &Claim, study: &Study) -> Vec<CheckOutcome> {
    let metric =
        |check: &Check| check.operands.first().map(|operand| operand.metric.clone()).unwrap_or_default();
    let without_values = |check: &Check| CheckOutcome {
        name: check.name.clone(),
        metric: metric(check),
        own_unit: study.units.get(&metric(check)).copied(),
        must: check.kind,
        basis: check.basis,
        one_sided: check.one_sided.clone(),
        values: Vec::new(),
        compared: check.operands.clone(),
        figure: None,
        ci95: None,
        holds: None,
        held_by: None,
        certain: false,
        single_hits: 0,
        single_runs: 0,
    };
    claim.checks.iter().map(without_values).collect()
}

/// Why the base set gives no verdict.
fn not_tested(
    claim: &Claim,
    checks: &[&Check],
    arenas: &[ArenaName],
    under_base: Option<&UnderAssumption>,
    ran: &Ran<'_>,
) -> NotTested {
    let lacks_arena = arenas.is_empty() || (claim.compares_arenas() && arenas.len() < 2);
    let has_cells = || arenas.iter().all(|&arena| ran.selection.has_cells_of(ran.study, checks, arena));
    if claim.checks.is_empty() {
        NotTested::NoCheck
    } else if lacks_arena {
        NotTested::Arena(claim.arenas.clone())
    } else if !has_cells() {
        NotTested::LeftOut { quick: ran.selection.quick }
    } else if ran.lacks_only_disturbed(checks, arenas) {
        NotTested::Disturbed
    } else if let Some(operand) = ran.without_value(checks, arenas) {
        NotTested::NoValue { cell: operand.cell.clone(), metric: operand.metric.clone() }
    } else if let Some(check) = under_base.and_then(|it| it.checks.iter().find(|it| it.lacks_figure())) {
        NotTested::NoFigure { check: check.name.clone() }
    } else {
        NotTested::NotRun { is_campaign: arenas == [ArenaName::Campaign] }
    }
}

/// Cells that a warning names. Chosen.
const MOST_NAMED: usize = 5;

fn under(checks: &[&Check], arenas: &[ArenaName], assumption: usize, ran: &Ran<'_>) -> UnderAssumption {
    let checks: Vec<_> = checks.iter().map(|it| judge_check(it, arenas, assumption, ran)).collect();
    let all: Option<Vec<bool>> = checks.iter().map(|check| check.holds).collect();
    let whole = all.filter(|all| !all.is_empty()).map(|all| all.iter().all(|holds| *holds));
    // One check that fails makes the claim fail, whatever the others say. The claim holds only if all do.
    let fails = checks.iter().any(|check| check.holds == Some(false));
    UnderAssumption {
        assumption: ran.study.assumptions[assumption].name.clone(),
        holds: whole.or(fails.then_some(false)),
        checks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_that_differ_in_their_numbers_alone_are_one_and_a_noun_after_a_number_is_no_difference() {
        let warnings =
            ["could not send 1 packet: 2.5 ms", "could not send 31 packets: 0.4 ms", "late by 2 ms"];
        let all: Vec<String> = warnings.map(str::to_owned).to_vec();
        let told = alike(all.iter());
        assert_eq!(told, ["could not send 1 packet: 2.5 ms (the first of 2 such)", "late by 2 ms"]);
        assert!(!differ_in_numbers_alone("1 packet lost", "3 messages lost"));
        assert!(!differ_in_numbers_alone("1 packet lost", "1 packet lost again"));
    }
}
