//! A study's outcome for a person: the table of claims in the terminal, and one page with the figures drawn
//! again.
//!
//! As everywhere here, nothing is computed: medians, intervals and verdicts are in the [`Outcome`].

mod changes;
mod chart;
mod fill;
mod guide;
mod links;
mod page;
mod pictures;
mod prose;
mod published;
mod text;

use talkpath_study::{
    ArenaVerdict, CheckOutcome, ClaimKind, HeldBy, Outcome, SeedVerdict, Standing, Value, Verdict,
    arena_list, shown, shown_figure, shown_value, value_labels,
};

use crate::number::{counted, list};

pub use changes::study_changes;
pub use fill::{PageMistake, fill_page, page_pictures};
pub use page::study_page;
pub use pictures::Picture;
pub use text::study_table;

/// The medians of a check, in the order of its comparison, and the figure that they make.
fn medians(check: &CheckOutcome) -> String {
    let is_between_arenas = matches!(check.must, ClaimKind::Agree { .. });
    let text = |(value, label): (&Value, &String)| match check.values.len() {
        _ if is_between_arenas => format!("{} {}", value.arena, shown_value(value)),
        1 => shown_value(value),
        _ => format!("{label}: {}", shown_value(value)),
    };
    let labels = value_labels(check);
    let values: Vec<_> = check.values.iter().zip(&labels).take(MOST_VALUES).map(text).collect();
    let more = check.values.len().saturating_sub(MOST_VALUES);
    let list = match more {
        0 => values.join(", "),
        _ => format!("{} values", check.values.len()),
    };
    match shown_figure(check) {
        Some(figure) => format!("{figure} ({list})"),
        None => list,
    }
}

/// Smallest and largest over the repetitions.
fn spread(value: &Value) -> String {
    format!("{} to {}", shown(value.unit(), value.min), shown(value.unit(), value.max))
}

/// Whether the check holds, and whether the confidence intervals leave a doubt; too few repetitions have
/// none.
fn mark(check: &CheckOutcome) -> &'static str {
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

/// The word of a verdict with its standing, what was expected if that is another, and under which sets it
/// holds and fails, the base first.
fn headline(verdict: &ArenaVerdict, word: &str, several: bool) -> String {
    let standing = standing(verdict).map_or_else(String::new, |standing| format!(", {standing}"));
    format!("{word}{standing}{}", after_standing(verdict, several))
}

/// A standing in words; of what fails under every set with their number, since `robust` would read as praise.
fn standing(verdict: &ArenaVerdict) -> Option<String> {
    let standing = verdict.standing?;
    Some(match guide::is_same_failure(verdict) {
        true => guide::same_failure(&verdict.fails_under.len().to_string()),
        false => standing.to_string(),
    })
}

/// What follows a verdict and its standing in a line.
fn after_standing(verdict: &ArenaVerdict, several: bool) -> String {
    let arena = if several { format!(" in {}", verdict.arena) } else { String::new() };
    let surprise = match verdict.is_unexpected() {
        true => format!(" (expected {})", verdict.expected),
        false => String::new(),
    };
    let under = if verdict.under.is_empty() { String::new() } else { format!(": {}", verdict.under) };
    format!("{arena}{surprise}{under}{}", by_seeds(verdict))
}

/// A verdict with its standing, the sets and the seeds.
fn verdict_words(verdict: &ArenaVerdict) -> String {
    headline(verdict, &verdict.verdict.to_string(), false)
}

/// What runs with other seeds found; nothing if there are none.
fn by_seeds(verdict: &ArenaVerdict) -> String {
    let seeds = |seeds: &[String]| {
        format!("{} {}", talkpath_units::numbered(seeds.len() as u64, "seed"), list(seeds))
    };
    if matches!(verdict.verdict, Verdict::NotTested | Verdict::Disturbed) {
        return String::new();
    }
    let others: Vec<_> = verdict.contradicting_seeds().collect();
    if others.is_empty() {
        let same = verdict.by_seed.iter().filter(|other| other.verdict == verdict.verdict);
        let same: Vec<String> = same.map(|other| other.seed.to_string()).collect();
        return if same.is_empty() { String::new() } else { format!("; the same with {}", seeds(&same)) };
    }
    let each = |other: &SeedVerdict| {
        let standing = other.standing.filter(|_| other.verdict == verdict.verdict);
        let found = standing.map_or_else(|| other.verdict.to_string(), |standing| standing.to_string());
        format!("; {found} with seed {}", other.seed)
    };
    others.into_iter().map(each).collect()
}

/// How many claims have which verdict in the base arena, and with which standing.
fn count(outcome: &Outcome) -> String {
    let with = |verdict| {
        let these: Vec<_> = outcome
            .claims
            .iter()
            .map(|claim| &claim.in_first_arena)
            .filter(|judged| judged.verdict == verdict)
            .collect();
        let standing = |standing: Option<Standing>| {
            let count = these.iter().filter(|judged| judged.standing == standing).count();
            let word = match standing {
                Some(Standing::Robust) if verdict == Verdict::Differs => {
                    "the same under every set".to_owned()
                }
                Some(standing) => standing.to_string(),
                None => "open".to_owned(),
            };
            (count > 0).then(|| format!("{count} {word}"))
        };
        let all = [Some(Standing::Robust), Some(Standing::Fragile), Some(Standing::OnlyUnder), None];
        (these.len(), all.into_iter().filter_map(standing).collect::<Vec<_>>().join(", "))
    };
    let has_standing =
        |verdict| matches!(verdict, Verdict::Reproduced | Verdict::Consistent | Verdict::Differs);
    let words = [
        (Verdict::Reproduced, "reproduced"),
        (Verdict::Consistent, "consistent"),
        (Verdict::PartlyJudged, "partly judged"),
        (Verdict::Differs, "differ"),
        (Verdict::NotTested, "not tested"),
        (Verdict::Disturbed, "disturbed"),
    ];
    let parts = words.into_iter().filter_map(|(verdict, word)| match with(verdict) {
        (0, _) if !matches!(verdict, Verdict::Reproduced | Verdict::Differs) => None,
        (count, standings) if count > 0 && has_standing(verdict) => {
            Some(format!("{count} {word} ({standings})"))
        }
        (count, _) => Some(format!("{count} {word}")),
    });
    let place = if outcome.arenas.len() > 1 { format!(" in {}", outcome.arena) } else { String::new() };
    format!("{}{place}.", parts.collect::<Vec<_>>().join(", "))
}

/// What the figures rest on.
fn about(outcome: &Outcome) -> String {
    let quick = if outcome.quick { "--quick: " } else { "" };
    let arenas = arena_list(&outcome.arenas);
    if outcome.cells.is_empty() {
        return format!("{quick}no cell ran in {arenas}");
    }
    let over = medians_over(outcome);
    format!("{quick}{over}, with 95 % confidence intervals from 6 repetitions on, in {arenas}")
}

/// What the medians are of.
fn medians_over(outcome: &Outcome) -> String {
    format!("medians over {} of a cell", repetitions(outcome))
}

/// How many repetitions the cells of `outcome` have; each cell has a number of its own.
fn repetitions(outcome: &Outcome) -> String {
    let counts = || outcome.cells.iter().map(|cell| cell.n);
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (min, max) if min == max => counted(max, "repetition"),
        (min, max) => format!("{min} to {max} repetitions"),
    }
}

/// Values that a check lists one by one. Chosen.
const MOST_VALUES: usize = 6;
