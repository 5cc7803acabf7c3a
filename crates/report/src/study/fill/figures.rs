//! The figures of claims and cells, as a text within a line.

use talkpath_measure::figures::Unit;
use talkpath_study::{
    CheckOutcome, ClaimOutcome, Drawing, Outcome, SetOutcome, Value, matches_pattern, unit_suffix,
};

use super::find::find_cells;
use super::options::Options;

/// The figure of a check, or one of the values that it compares.
struct CheckFigure<'a> {
    check_name: &'a str,
    metric: &'a str,
    unit: Option<Unit>,
    /// `None` if the check was not judged.
    median: Option<f64>,
    ci95: Option<(f64, f64)>,
}

impl<'a> CheckFigure<'a> {
    fn new(check: &'a CheckOutcome, options: &Options) -> Self {
        match options.value_number {
            None => Self::of_check(check),
            Some(number) => match number.checked_sub(1).and_then(|index| check.values.get(index)) {
                Some(value) => Self::of_value(check, value),
                None => Self { median: None, ci95: None, ..Self::of_check(check) },
            },
        }
    }

    fn of_check(check: &'a CheckOutcome) -> Self {
        Self {
            check_name: &check.name,
            metric: &check.metric,
            unit: check.figure_unit(),
            // A check of one value has no figure of its own.
            median: check.figure.or_else(|| check.values.first().map(|value| value.median)),
            ci95: check.ci95,
        }
    }

    fn of_value(check: &'a CheckOutcome, value: &'a Value) -> Self {
        Self {
            check_name: &check.name,
            metric: &value.metric,
            unit: value.unit(),
            median: Some(value.median),
            ci95: value.ci95,
        }
    }

    fn describe(&self) -> String {
        let quantity = if self.unit.is_none() { "a number" } else { self.metric };
        format!("`{}` is {quantity}", self.check_name)
    }
}

pub(super) fn claim_figure(claim: &ClaimOutcome, pattern: &str, options: &Options) -> Result<String, String> {
    let checks = find_checks(claim, pattern, options)?;
    if options.counts_held_checks {
        let held = checks.iter().filter(|check| check.holds == Some(true)).count();
        return Ok(format!("{held} of {}", checks.len()));
    }
    let figures: Vec<CheckFigure<'_>> =
        checks.into_iter().map(|check| CheckFigure::new(check, options)).collect();
    let unit = common_unit(pattern, &figures)?;
    let mut values = Vec::new();
    for CheckFigure { median, ci95, .. } in &figures {
        if options.shows_interval {
            values.extend(ci95.iter().flat_map(|(low, high)| [low, high]));
        } else {
            values.extend(median);
        }
    }
    options.range(unit, &values)
}

/// The checks under the assumption set of `options` whose names match `pattern`.
fn find_checks<'a>(
    claim: &'a ClaimOutcome,
    pattern: &str,
    options: &Options,
) -> Result<Vec<&'a CheckOutcome>, String> {
    let set_outcome = find_set_outcome(claim, options)?;
    let checks: Vec<&CheckOutcome> =
        set_outcome.checks.iter().filter(|check| matches_pattern(pattern, &check.name)).collect();
    if checks.is_empty() {
        let known: Vec<&str> = set_outcome.checks.iter().map(|check| check.name.as_str()).collect();
        return Err(format!("{} has no check `{pattern}`; it has {}", claim.id, known.join("; ")));
    }
    Ok(checks)
}

/// Finds the outcome under the assumption set that `options` names. If it names none, the first set with an
/// outcome is taken.
fn find_set_outcome<'a>(claim: &'a ClaimOutcome, options: &Options) -> Result<&'a SetOutcome, String> {
    let verdict = &claim.in_first_arena;
    match &options.assumption_set {
        Some(set) => verdict.under_set(set).ok_or_else(|| format!("{} was not judged under {set}", claim.id)),
        None => verdict.by_assumption.first().ok_or_else(|| format!("{} was not judged", claim.id)),
    }
}

/// Returns the unit of all figures. Returns an error if they have different units, because a range of them
/// would mean nothing.
fn common_unit(pattern: &str, figures: &[CheckFigure<'_>]) -> Result<Option<Unit>, String> {
    let Some(first) = figures.first() else { return Ok(None) };
    match figures.iter().find(|figure| unit_suffix(figure.unit) != unit_suffix(first.unit)) {
        None => Ok(first.unit),
        Some(other) => Err(format!(
            "`{pattern}` fits figures in different units: {}, {}; name those of one unit",
            first.describe(),
            other.describe()
        )),
    }
}

/// Writes the medians of `metric` in the cells whose names match `pattern`.
pub(super) fn cell_figure(
    outcome: &Outcome,
    pattern: &str,
    metric: &str,
    options: &Options,
) -> Result<String, String> {
    let cells = find_cells(outcome, pattern)?;
    let values: Vec<&Value> = cells.iter().filter_map(|cell| cell.metrics.get(metric)).collect();
    let Some(first) = values.first() else {
        let known: Vec<&str> = cells[0].metrics.keys().map(String::as_str).collect();
        return Err(format!("{} has no {metric}; it has {}", cells[0].cell, known.join(", ")));
    };
    let figures: Vec<f64> = if options.shows_interval {
        values.iter().filter_map(|value| value.ci95).flat_map(|(low, high)| [low, high]).collect()
    } else {
        values.iter().map(|value| value.median).collect()
    };
    options.range(first.unit(), &figures)
}

/// Writes the kinds of runs in a figure over time, and how many runs are of each kind.
pub(super) fn run_kinds(outcome: &Outcome, figure_number: &str) -> Result<String, String> {
    let figure = outcome.figures.iter().find(|figure| figure.number == figure_number);
    match figure.map(|figure| &figure.drawing) {
        Some(Drawing::Traces { panels, .. }) if panels.iter().any(|panel| !panel.title.is_empty()) => {
            let titles = panels.iter().map(|panel| panel.title.split(';').next().unwrap_or_default());
            Ok(titles.collect::<Vec<_>>().join("; "))
        }
        _ => Err(format!("no figure {figure_number} with kinds of runs")),
    }
}
