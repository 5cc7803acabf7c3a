//! The warnings of an outcome: what the runs warned of, and which repetitions, cells and metrics are not
//! judged.

use std::collections::BTreeSet;

use talkpath_units::{counted, is_or_are, is_same_but_for_plural};

use super::cells::{CellKey, JudgedCells};
use crate::arena::ArenaName;
use crate::reuse::EarlierRun;
use crate::sample::CellSamples;
use crate::study::{Cell, Study};

/// A warning names at most this many cells. We chose 5 so that it stays on two lines of a terminal.
const MAX_NAMED_CELLS: usize = 5;

/// Lists the warnings of an outcome. `unjudged` are the cells that are not judged, of `selected` cells of the
/// run.
pub(super) fn list(
    cells: &JudgedCells<'_>,
    samples: &[CellSamples],
    unjudged: &[&Cell],
    selected: usize,
) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(set_keys(cells.study));
    warnings.extend(merge_alike(samples.iter().flat_map(|cell| &cell.warnings)));
    warnings.extend(disturbed_repetitions(samples));
    warnings.extend(unjudged_cells(unjudged, selected));
    warnings.extend(partly_known_metrics(cells));
    for earlier in cells.earlier.into_iter().flat_map(EarlierRun::warnings) {
        if !warnings.contains(earlier) {
            warnings.push(earlier.clone());
        }
    }
    warnings
}

/// Warns of scenario keys that the user set over the keys of the study.
fn set_keys(study: &Study) -> Option<String> {
    let keys = &study.changes.set;
    if keys.is_empty() {
        return None;
    }
    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    Some(format!("set in every cell, over what the study sets: {}", keys.join(", ")))
}

/// Warns of each cell with repetitions that the machine disturbed past its stated limits.
fn disturbed_repetitions(samples: &[CellSamples]) -> Vec<String> {
    let mut warnings = Vec::new();
    for cell in samples {
        let reasons: Vec<&String> =
            cell.samples.iter().filter_map(|sample| sample.disturbed.as_ref()).collect();
        let Some(first_reason) = reasons.first() else { continue };
        warnings.push(format!(
            "{}: {}: {} of {} disturbed past the limits, not judged: {first_reason}",
            cell.arena,
            cell.cell,
            reasons.len(),
            counted(cell.samples.len(), "repetition")
        ));
    }
    warnings
}

/// Warns of the cells that are not judged. `selected` is the number of cells of the run.
fn unjudged_cells(unjudged: &[&Cell], selected: usize) -> Vec<String> {
    let (of_campaign, others): (Vec<&Cell>, Vec<&Cell>) =
        unjudged.iter().copied().partition(|cell| cell.arena == ArenaName::Campaign);
    let mut warnings = Vec::new();
    if !of_campaign.is_empty() {
        let names: Vec<&str> =
            of_campaign.iter().take(MAX_NAMED_CELLS).map(|cell| cell.name.as_str()).collect();
        let more = if of_campaign.len() > MAX_NAMED_CELLS { ", ..." } else { "" };
        warnings.push(format!(
            "{} of {} {} not in the campaign's records, or disturbed in more than half of the repetitions: {}{more}",
            of_campaign.len(),
            counted(selected, "cell"),
            is_or_are(of_campaign.len() as u64),
            names.join(", ")
        ));
    }
    if !others.is_empty() {
        warnings.push(format!(
            "{} of {} did not run to the end, or the machine disturbed more than half of the repetitions; --resume \
             runs what is missing and what was disturbed",
            others.len(),
            counted(selected, "cell")
        ));
    }
    warnings
}

/// Warns of medians that leave repetitions out, because these repetitions do not know the metric.
fn partly_known_metrics(cells: &JudgedCells<'_>) -> Vec<String> {
    // Several claims may read the same metric of the same cell.
    let mut warnings = BTreeSet::new();
    for claim in cells.selection.claims(cells.study) {
        let arenas = cells.selection.arenas_of(claim);
        let checks = cells.selection.checks(claim, &arenas).judged;
        for operand in checks.iter().flat_map(|check| &check.operands) {
            for &arena in &arenas {
                for (set, assumption) in cells.study.assumptions.iter().enumerate() {
                    let key = CellKey { arena, assumption: set, cell: &operand.cell };
                    let share = cells.known_share(key, &operand.metric);
                    let Some(share) = share.filter(|share| share.known < share.judged) else { continue };
                    let unknown = share.judged - share.known;
                    warnings.insert(format!(
                        "{arena}: {} under {}: {unknown} of {} {} no {}; its median is of the others",
                        operand.cell,
                        assumption.name,
                        counted(share.judged, "repetition"),
                        if unknown == 1 { "has" } else { "have" },
                        operand.metric
                    ));
                }
            }
        }
    }
    merge_alike(warnings.iter())
}

/// Keeps the first of the warnings that differ only in their numbers, and says how many there are.
fn merge_alike<'a>(warnings: impl Iterator<Item = &'a String>) -> Vec<String> {
    struct Kind<'a> {
        first: &'a String,
        count: u64,
    }
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for warning in warnings {
        match kinds.iter_mut().find(|kind| differ_only_in_numbers(kind.first, warning)) {
            Some(kind) => kind.count += 1,
            None => kinds.push(Kind { first: warning, count: 1 }),
        }
    }
    let mut merged = Vec::new();
    for Kind { first, count } in kinds {
        merged.push(if count == 1 { first.clone() } else { format!("{first} (the first of {count} such)") });
    }
    merged
}

/// Returns whether two warnings differ only in their numbers. A noun after a number may differ in its plural:
/// `1 packet came` and `3 packets came` differ only in their numbers.
fn differ_only_in_numbers(one: &str, other: &str) -> bool {
    let without_digits = |word: &str| word.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    let one_words: Vec<String> = one.split(' ').map(without_digits).collect();
    let other_words: Vec<String> = other.split(' ').map(without_digits).collect();
    if one_words.len() != other_words.len() {
        return false;
    }
    let mut is_after_number = false;
    for (word, other_word) in one_words.iter().zip(&other_words) {
        let is_same_noun = is_after_number && is_same_but_for_plural(word, other_word);
        if word != other_word && !is_same_noun {
            return false;
        }
        // Nothing is left of a number without its digits.
        is_after_number = word.is_empty();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_that_differ_in_their_numbers_alone_are_one_and_a_noun_after_a_number_is_no_difference() {
        let warnings =
            ["could not send 1 packet: 2.5 ms", "could not send 31 packets: 0.4 ms", "late by 2 ms"];
        let all: Vec<String> = warnings.map(str::to_owned).to_vec();
        let merged = merge_alike(all.iter());
        assert_eq!(merged, ["could not send 1 packet: 2.5 ms (the first of 2 such)", "late by 2 ms"]);
        assert!(!differ_only_in_numbers("1 packet lost", "3 messages lost"));
        assert!(!differ_only_in_numbers("1 packet lost", "1 packet lost again"));
    }
}
