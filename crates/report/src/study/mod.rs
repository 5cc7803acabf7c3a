//! A study's outcome for a person: the table of claims in the terminal, and one page with the figures drawn again.
//!
//! As everywhere here, nothing is computed: medians, intervals and verdicts stand in the [`Outcome`].

mod figure;
mod page;
mod text;

use talkpath_study::{CheckOutcome, Kind, Outcome, Stands, Tolerance, shown, shown_value};

pub use page::study_page;
pub use text::study_table;

/// What a check asks for: `9.3 ± 1`, `rises`.
fn must(check: &CheckOutcome) -> String {
    let metric = &check.metric;
    match check.must {
        Kind::Near { value, within: Tolerance::Absolute(most) } => {
            format!("{} ± {}", shown(metric, value), shown(metric, most))
        }
        Kind::Near { value, within } => format!("{} ± {within}", shown(metric, value)),
        Kind::Rising => "rises".to_owned(),
        Kind::Falling => "falls".to_owned(),
        Kind::Same { within } => format!("same ± {within}"),
        Kind::AtMost { value } => format!("≤ {}", shown(metric, value)),
        Kind::AtLeast { value } => format!("≥ {}", shown(metric, value)),
    }
}

/// The medians of a check, in the order of its cells.
fn medians(check: &CheckOutcome) -> String {
    let values: Vec<_> = check.values.iter().map(|value| shown_value(&check.metric, value)).collect();
    values.join(" → ")
}

/// Whether the check holds, and whether the confidence intervals leave a doubt; too few repetitions have none.
fn mark(check: &CheckOutcome) -> &'static str {
    let has_intervals = check.values.iter().all(|value| value.ci95.is_some());
    match (check.holds, check.certain || !has_intervals) {
        (None, _) => "not run",
        (Some(true), true) => "holds",
        (Some(true), false) => "holds, within the intervals' overlap",
        (Some(false), true) => "fails",
        (Some(false), false) => "fails, within the intervals' overlap",
    }
}

/// `under all sets`, `under some`.
const fn stands(stands: Stands) -> &'static str {
    match stands {
        Stands::All => "under all assumption sets",
        Stands::Some => "under some assumption sets",
        Stands::None => "under no assumption set",
        Stands::Unknown => "",
    }
}

/// What the figures rest on.
fn about(outcome: &Outcome) -> String {
    let quick = if outcome.quick { "--quick: " } else { "" };
    format!(
        "{quick}medians over {} start phases a cell and assumption set, with 95 % confidence intervals, in {}",
        outcome.phases, outcome.arena
    )
}
