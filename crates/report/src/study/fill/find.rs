//! Finds the runs, claims, cells and figures that a marker names. An error names those that there are.

use talkpath_study::{CellOutcome, ClaimOutcome, FigureOutcome, Outcome, matches_pattern};

/// The runs of `study`. The run in the simulator is the first.
pub(super) fn runs_of<'a>(study: &str, outcomes: &'a [Outcome]) -> Result<Vec<&'a Outcome>, String> {
    let mut runs: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.study == study).collect();
    runs.sort_by_key(|outcome| outcome.arena);
    if runs.is_empty() {
        let mut known: Vec<&str> = outcomes.iter().map(|outcome| outcome.study.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        return Err(format!("no run of {study} is given; there are {}", known.join(", ")));
    }
    Ok(runs)
}

pub(super) fn find_claim<'a>(outcome: &'a Outcome, id: &str) -> Result<&'a ClaimOutcome, String> {
    outcome.claims.iter().find(|claim| claim.id == id).ok_or_else(|| {
        let known: Vec<&str> = outcome.claims.iter().map(|claim| claim.id.as_str()).collect();
        format!("{} has no claim {id}; it has {}", outcome.study, known.join(", "))
    })
}

/// The cells under the base whose names match `pattern`.
pub(super) fn find_cells<'a>(outcome: &'a Outcome, pattern: &str) -> Result<Vec<&'a CellOutcome>, String> {
    let base = outcome.assumptions.first().map(|(name, _)| name.as_str()).unwrap_or_default();
    let cells = outcome.cells.iter().filter(|cell| cell.assumption == base && cell.arena == outcome.arena);
    let found: Vec<&CellOutcome> = cells.filter(|cell| matches_pattern(pattern, &cell.cell)).collect();
    if found.is_empty() { Err(format!("no cell `{pattern}` ran under {base}")) } else { Ok(found) }
}

pub(super) fn find_figure<'a>(outcome: &'a Outcome, number: &str) -> Result<&'a FigureOutcome, String> {
    outcome.figures.iter().find(|figure| figure.number == number).ok_or_else(|| {
        let known: Vec<&str> = outcome.figures.iter().map(|figure| figure.number.as_str()).collect();
        format!("no figure {number}; there are {}", known.join(", "))
    })
}
