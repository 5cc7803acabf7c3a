//! Warns of cells whose repetitions are identical.
//!
//! If nothing random affects a cell, every repetition has the same figures. An interval over them has no
//! width, which suggests a certainty that nobody measured.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::summary::RunSummary;
use talkpath_measure::warning;

/// A cell in which messages were delivered.
struct DeliveringCell<'a> {
    /// The swept keys and the values that the cell has.
    sweep: &'a BTreeMap<String, Value>,
    has_identical_repetitions: bool,
}

/// A swept value that all cells with identical repetitions have.
struct CommonValue<'a> {
    key: &'a str,
    value: &'a Value,
    /// The number of cells that have the value, with identical repetitions or not.
    cells: usize,
}

/// Warns if the repetitions of a cell are identical. If other cells vary, the warning is a note that names
/// the cells, because the figures of the others are sound. Returns `None` if the repetitions of each cell
/// differ.
pub(crate) fn identical_warning<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Option<String> {
    let cells = delivering_cells(runs);
    let identical = cells.iter().filter(|cell| cell.has_identical_repetitions).count();
    if identical == 0 {
        return None;
    }
    if identical == cells.len() {
        return Some(
            "all repetitions are the same: nothing random touched them, and intervals over them say nothing; \
             give a flow `start = { from = \"0 s\", to = \"1 s\" }` or `send_jitter` to see how much hangs on chance"
                .to_owned(),
        );
    }
    Some(warning::note(format!(
        "the repetitions of {} are the same, because nothing random happens there: their intervals have no width. \
         `--set 'flow.*.start={{ from = \"0 s\", to = \"1 s\" }}'` varies them.",
        describe_identical(&cells)
    )))
}

/// Returns the cells in which at least one message was delivered. The repetitions of the other cells are
/// identical, too, but these cells have no figures that an interval could belong to.
fn delivering_cells<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<DeliveringCell<'a>> {
    let mut runs_by_cell: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
    for run in runs {
        runs_by_cell.entry(run.cell).or_default().push(run);
    }
    let mut cells = Vec::new();
    for runs in runs_by_cell.values() {
        let [first, others @ ..] = runs.as_slice() else { continue };
        if runs.iter().any(|run| has_delivered(run)) {
            let has_identical_repetitions =
                !others.is_empty() && others.iter().all(|run| has_same_figures(run, first));
            cells.push(DeliveringCell { sweep: &first.sweep, has_identical_repetitions });
        }
    }
    cells
}

/// Returns whether any message of any flow was delivered.
fn has_delivered(run: &RunSummary) -> bool {
    run.flows.values().any(|flow| flow.received > 0) || run.groups.values().any(|group| group.received > 0)
}

fn has_same_figures(run: &RunSummary, other: &RunSummary) -> bool {
    run.flows == other.flows && run.links == other.links
}

/// Describes the cells with identical repetitions, by a swept value if they have one in common: `all cells
/// with path.*.loss=0`, `3 of the 6 cells with path.*.loss=0`, or `3 of 12 cells`.
fn describe_identical(cells: &[DeliveringCell<'_>]) -> String {
    let identical: Vec<&DeliveringCell<'_>> =
        cells.iter().filter(|cell| cell.has_identical_repetitions).collect();
    let count = identical.len();
    let Some(CommonValue { key, value, cells: cells_with_value }) = rarest_common_value(&identical, cells)
    else {
        return format!("{count} of {} cells", cells.len());
    };
    let value = match value {
        // The text of a string without the quotation marks of JSON.
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if count == cells_with_value {
        format!("all cells with {key}={value}")
    } else {
        format!("{count} of the {cells_with_value} cells with {key}={value}")
    }
}

/// Returns the swept value that all `identical` cells have and that the fewest of all `cells` have. A value
/// that all `cells` have distinguishes nothing, so it is not returned.
fn rarest_common_value<'a>(
    identical: &[&DeliveringCell<'a>],
    cells: &[DeliveringCell<'_>],
) -> Option<CommonValue<'a>> {
    let mut rarest: Option<CommonValue<'_>> = None;
    for (key, value) in identical.first()?.sweep {
        let cells_with_value = cells.iter().filter(|cell| cell.sweep.get(key) == Some(value)).count();
        let is_common = identical.iter().all(|cell| cell.sweep.get(key) == Some(value));
        let is_rarer = rarest.as_ref().is_none_or(|rarest| cells_with_value < rarest.cells);
        if is_common && is_rarer && cells_with_value < cells.len() {
            rarest = Some(CommonValue { key, value, cells: cells_with_value });
        }
    }
    rarest
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::FlowSummary;

    use super::*;

    #[test]
    fn cells_with_identical_repetitions_are_named() {
        let run = |cell, repetition, received, loss: f64, delay: &str| RunSummary {
            cell,
            repetition,
            seed: repetition,
            sweep: [("path.*.loss".to_owned(), loss.into()), ("path.*.delay".to_owned(), delay.into())]
                .into(),
            flows: [("call".to_owned(), Box::new(FlowSummary { received, ..FlowSummary::default() }))].into(),
            groups: BTreeMap::new(),
            links: BTreeMap::new(),
            machine: None,
            path: None,
            program: None,
            changes: None,
        };
        let identical =
            |cell, loss, delay: &str| [run(cell, 0, 50, loss, delay), run(cell, 1, 50, loss, delay)];
        let varied = |cell, loss, delay: &str| [run(cell, 0, 49, loss, delay), run(cell, 1, 48, loss, delay)];
        let check_beginning = |runs: &[[RunSummary; 2]], text: &str| {
            let warning = identical_warning(&runs.concat()).expect("some repetitions are identical");
            assert!(warning.starts_with(text), "{warning}");
        };
        check_beginning(&[identical(0, 0.0, "1ms")], "all repetitions are the same:");
        check_beginning(
            &[
                identical(0, 0.0, "1ms"),
                identical(1, 0.0, "2ms"),
                varied(2, 0.1, "1ms"),
                varied(3, 0.1, "2ms"),
            ],
            "note: the repetitions of all cells with path.*.loss=0.0 are the same, ",
        );
        check_beginning(
            &[identical(0, 0.0, "1ms"), varied(1, 0.0, "1ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of 1 of the 2 cells with path.*.loss=0.0 are the same, ",
        );
        check_beginning(
            &[identical(0, 0.0, "1ms"), identical(1, 0.1, "2ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of 2 of 3 cells are the same, ",
        );
        // A cell that delivered nothing is neither counted nor named.
        let silent = |cell, loss, delay: &str| [run(cell, 0, 0, loss, delay), run(cell, 1, 0, loss, delay)];
        check_beginning(
            &[identical(0, 0.0, "1ms"), silent(1, 1.0, "1ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of all cells with path.*.loss=0.0 are the same, ",
        );
        assert_eq!(identical_warning(&[silent(0, 1.0, "1ms"), silent(1, 1.0, "2ms")].concat()), None);
        assert_eq!(identical_warning(&[silent(0, 1.0, "1ms"), varied(1, 0.1, "1ms")].concat()), None);
        assert_eq!(identical_warning(&varied(1, 0.1, "1ms")), None);
        assert_eq!(identical_warning(&identical(0, 0.0, "1ms")[..1]), None, "one repetition has no interval");
    }
}
