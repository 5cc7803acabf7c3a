//! The words for verdicts, checks and runs that the terminal and the pages have in common.

use talkpath_study::{
    ArenaVerdict, CheckOutcome, ClaimKind, HeldBy, Outcome, Standing, Value, Verdict, arena_list,
    format_figure, format_median, format_number, value_labels,
};
use talkpath_units::numbered;

use crate::number::{counted, list};

/// The most values of a check that are listed. More values are counted. We chose 6 because they fill a line.
const MAX_LISTED_VALUES: usize = 6;

/// Writes the figure of a check, with the medians that it compares in brackets. A check without a figure of
/// its own has only the medians.
pub(super) fn check_figure(check: &CheckOutcome) -> String {
    let medians = list_medians(check);
    match format_figure(check) {
        Some(figure) => format!("{figure} ({medians})"),
        None => medians,
    }
}

fn list_medians(check: &CheckOutcome) -> String {
    if check.values.len() > MAX_LISTED_VALUES {
        return format!("{} values", check.values.len());
    }
    let is_between_arenas = matches!(check.must, ClaimKind::Agree { .. });
    let mut medians = Vec::new();
    for (value, label) in check.values.iter().zip(value_labels(check)) {
        medians.push(if is_between_arenas {
            format!("{} {}", value.arena, format_median(value))
        } else if check.values.len() == 1 {
            format_median(value)
        } else {
            format!("{label}: {}", format_median(value))
        });
    }
    medians.join(", ")
}

/// Writes the smallest and the largest value over the repetitions.
pub(super) fn spread(value: &Value) -> String {
    format!("{} to {}", format_number(value.unit(), value.min), format_number(value.unit(), value.max))
}

/// Says whether a check holds, and whether the confidence intervals leave a doubt. If there are too few
/// repetitions for intervals, there is no doubt.
pub(super) fn check_result(check: &CheckOutcome) -> &'static str {
    if check.held_by == Some(HeldBy::Spread) {
        return "holds by the seeds' spread alone";
    }
    let is_agreement = matches!(check.must, ClaimKind::Agree { .. });
    match (check.holds, check.is_undecided()) {
        (None, _) => "not run",
        (Some(true), true) => "undecided: the medians hold, their intervals do not exclude the contrary",
        (Some(false), true) => "undecided: the medians fail, their intervals do not exclude the contrary",
        (Some(true), _) if is_agreement && check.ci95.is_some() && !check.certain => {
            "holds by the medians; their intervals allow more than the tolerance"
        }
        (Some(true), false) => "holds",
        (Some(false), false) => "fails",
    }
}

/// Writes a verdict with its standing, the sets and the seeds: `reproduced, fragile: holds under base alone`.
pub(super) fn verdict_in_words(verdict: &ArenaVerdict) -> String {
    format!("{}{}", verdict.verdict, after_verdict(verdict, ""))
}

/// Writes a verdict as [`verdict_in_words`] does, without the seeds that agree: a table lists these once.
pub(super) fn verdict_in_table(verdict: &ArenaVerdict) -> String {
    format!("{}{}{}", verdict.verdict, comma_standing(verdict), before_seeds(verdict, ""))
}

/// Writes what follows the word of a verdict: its standing, and what follows that. `in_arena` is ` in ARENA`,
/// or empty if there is one arena.
pub(super) fn after_verdict(verdict: &ArenaVerdict, in_arena: &str) -> String {
    format!("{}{}", comma_standing(verdict), after_standing(verdict, in_arena))
}

fn comma_standing(verdict: &ArenaVerdict) -> String {
    standing_in_words(verdict).map_or_else(String::new, |standing| format!(", {standing}"))
}

/// Writes what follows the standing of a verdict: the arena, the verdict that was expected, the sets under
/// which the claim holds and fails, and the verdicts with other seeds.
pub(super) fn after_standing(verdict: &ArenaVerdict, in_arena: &str) -> String {
    let mut text = before_seeds(verdict, in_arena);
    let seeds = agreeing_seeds(verdict);
    if !seeds.is_empty() {
        text.push_str(&format!("; the same with {}", seeds_in_words(&seeds)));
    }
    text
}

/// Writes what [`after_standing`] does, without the seeds that agree.
fn before_seeds(verdict: &ArenaVerdict, in_arena: &str) -> String {
    let mut text = in_arena.to_owned();
    if verdict.is_unexpected() {
        text.push_str(&format!(" (expected {})", verdict.expected));
    }
    if !verdict.under.is_empty() {
        text.push_str(&format!(": {}", verdict.under));
    }
    text.push_str(&with_contradicting_seeds(verdict));
    text
}

/// ` in ARENA` if the study ran in several arenas. Otherwise it is empty.
pub(super) fn in_arena(verdict: &ArenaVerdict, outcome: &Outcome) -> String {
    if outcome.arenas.len() > 1 { format!(" in {}", verdict.arena) } else { String::new() }
}

pub(super) fn standing_in_words(verdict: &ArenaVerdict) -> Option<String> {
    let standing = verdict.standing?;
    if fails_under_every_set(verdict) {
        return Some(SAME_UNDER_SETS.to_owned());
    }
    Some(standing.to_string())
}

/// Whether a claim fails under every set. Its standing is `robust`, but nobody would call such a claim
/// robust.
pub(super) fn fails_under_every_set(verdict: &ArenaVerdict) -> bool {
    verdict.verdict == Verdict::Differs && verdict.standing == Some(Standing::Robust)
}

/// The standing of a claim that fails under every set.
pub(super) const SAME_UNDER_SETS: &str = "the same under every set that changes something";

/// Returns the seeds with which a claim has the same verdict, if no other seed contradicts it.
pub(super) fn agreeing_seeds(verdict: &ArenaVerdict) -> Vec<u64> {
    let is_judged = !matches!(verdict.verdict, Verdict::NotTested | Verdict::Disturbed);
    if !is_judged || verdict.contradicting_seeds().next().is_some() {
        return Vec::new();
    }
    let agreeing = verdict.by_seed.iter().filter(|other| other.verdict == verdict.verdict);
    agreeing.map(|other| other.seed).collect()
}

/// Writes `seed 2` or `seeds 2 and 3`.
pub(super) fn seeds_in_words(seeds: &[u64]) -> String {
    let names: Vec<String> = seeds.iter().map(u64::to_string).collect();
    format!("{} {}", numbered(seeds.len() as u64, "seed"), list(&names))
}

/// Writes the verdicts of the seeds that contradict a verdict. Empty if there are none.
fn with_contradicting_seeds(verdict: &ArenaVerdict) -> String {
    if matches!(verdict.verdict, Verdict::NotTested | Verdict::Disturbed) {
        return String::new();
    }
    let mut text = String::new();
    for other in verdict.contradicting_seeds() {
        // If the verdict is the same, its standing differs.
        let found = match other.standing {
            Some(standing) if other.verdict == verdict.verdict => standing.to_string(),
            _ => other.verdict.to_string(),
        };
        text.push_str(&format!("; {found} with seed {}", other.seed));
    }
    text
}

/// Counts the claims by their verdicts in the first arena: `3 reproduced (2 robust, 1 fragile), 1 differ (1
/// open).`
pub(super) fn claim_counts(outcome: &Outcome) -> String {
    let words = [
        (Verdict::Reproduced, "reproduced"),
        (Verdict::Consistent, "consistent"),
        (Verdict::PartlyJudged, "partly judged"),
        (Verdict::Differs, "differ"),
        (Verdict::NotTested, "not tested"),
        (Verdict::Disturbed, "disturbed"),
    ];
    let mut counts = Vec::new();
    for (verdict, word) in words {
        let claims = outcome.claims.iter().map(|claim| &claim.in_first_arena);
        let claims: Vec<&ArenaVerdict> = claims.filter(|claim| claim.verdict == verdict).collect();
        let has_standing = matches!(verdict, Verdict::Reproduced | Verdict::Consistent | Verdict::Differs);
        if !claims.is_empty() && has_standing {
            counts.push(format!("{} {word} ({})", claims.len(), standing_counts(verdict, &claims)));
        } else if !claims.is_empty() || matches!(verdict, Verdict::Reproduced | Verdict::Differs) {
            counts.push(format!("{} {word}", claims.len()));
        }
    }
    let arena = if outcome.arenas.len() > 1 { format!(" in {}", outcome.arena) } else { String::new() };
    format!("{}{arena}.", counts.join(", "))
}

fn standing_counts(verdict: Verdict, claims: &[&ArenaVerdict]) -> String {
    let standings = [Some(Standing::Robust), Some(Standing::Fragile), Some(Standing::OnlyUnder), None];
    let mut counts = Vec::new();
    for standing in standings {
        let count = claims.iter().filter(|claim| claim.standing == standing).count();
        let word = match standing {
            Some(Standing::Robust) if verdict == Verdict::Differs => "the same under every set".to_owned(),
            Some(standing) => standing.to_string(),
            None => "open".to_owned(),
        };
        if count > 0 {
            counts.push(format!("{count} {word}"));
        }
    }
    counts.join(", ")
}

/// The line below a study's title: the repetitions, and the arenas.
pub(super) fn about_study(outcome: &Outcome) -> String {
    let quick = if outcome.quick { "--quick: " } else { "" };
    let arenas = arena_list(&outcome.arenas);
    if outcome.cells.is_empty() {
        return format!("{quick}no cell ran in {arenas}");
    }
    let medians = medians_over(outcome);
    format!("{quick}{medians}, with 95 % confidence intervals from 6 repetitions on, in {arenas}")
}

pub(super) fn medians_over(outcome: &Outcome) -> String {
    format!("medians over {} of a cell", repetitions(outcome))
}

/// Writes how many repetitions the cells have: `3 to 6 repetitions`.
pub(super) fn repetitions(outcome: &Outcome) -> String {
    let counts = || outcome.cells.iter().map(|cell| cell.n);
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (min, max) if min == max => counted(max, "repetition"),
        (min, max) => format!("{min} to {max} repetitions"),
    }
}
