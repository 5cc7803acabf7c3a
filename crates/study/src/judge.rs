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
mod verdict;

use std::collections::BTreeSet;
use talkpath_units::{counted, is_or_are, is_same_but_for_plural};

use crate::arena::ArenaName;
use crate::claim::{Claim, Operand, Verdict};
use crate::outcome::{ArenaVerdict, ClaimOutcome, FigureOutcome, Outcome, TableOutcome};
use crate::sample::CellSamples;
use crate::selection::Selection;
use crate::study::{Cell, Study};

use self::ran::Ran;
use self::verdict::JudgedClaim;

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
            "{} of {} {} not in the campaign's records, or disturbed in more than half of the repetitions: {}{more}",
            measured.len(),
            counted(wanted, "cell"),
            is_or_are(measured.len() as u64),
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
                            "{arena}: {cell} under {}: {} of {} {} no {metric}; its median is of the others",
                            assumption.name,
                            all - known,
                            counted(all, "repetition"),
                            if all - known == 1 { "has" } else { "have" }
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
        true => vec![JudgedClaim::new(claim, &arenas, ran).verdict()],
        false => arenas.iter().map(|&arena| JudgedClaim::new(claim, &[arena], ran).verdict()).collect(),
    };
    if verdicts.is_empty() {
        verdicts.push(JudgedClaim::new(claim, &[], ran).verdict());
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

/// Cells that a warning names. Chosen.
const MOST_NAMED: usize = 5;

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
