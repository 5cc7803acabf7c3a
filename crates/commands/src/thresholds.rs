//! Judges thresholds: the demands of the scenario, of `--require` and of `--fail-if` on the figures of
//! summary.json.
//!
//! ```text
//! Plan.thresholds ─► refuse_unknown_figures
//!            └─► + Summary ─► judge ─► one line each, JUnit's XML, exit code 5
//! ```
//!
//! - A *threshold* is a figure with a bound, such as `call.mos >= 3.6`. It is about one or more cells, and
//!   in each cell about a link, or about a flow (`figure.rs`, `figure_names.rs`). It is not about the score
//!   of a call that has none (`unrated.rs`).
//! - A *member* of a flow is one of its copies or directions.
//! - The *figure in a cell* is a statistic over the repetitions: the statistic that the threshold names, or
//!   that of the tables if it names none (`measure::statistic`). A flag must hold in each repetition
//!   (`cell.rs`).
//! - The *margin* is the distance of a figure from its bound. It is negative if the threshold does not hold.
//!
//! A threshold must hold in each cell that has such a figure. Its line shows the figure with the smallest
//! margin (`judgement.rs`).
//!
//! A threshold is undecided if its bound lies in the 95 % interval of the figure
//! (`measure::metrics::certainty`). It is also undecided if more messages of a share are unfinished than
//! have ended, unless the unfinished messages cannot change the outcome (`outcome.rs`).

mod cell;
mod failing_flag;
mod figure;
mod figure_names;
mod judgement;
mod junit;
mod outcome;
mod score_warning;
mod unrated;

use std::collections::BTreeMap;
use std::path::Path;

use talkpath_measure::metrics::confidence::Level;
use talkpath_measure::summary::{RunSummary, Summary, ThresholdOutcome, ThresholdSummary};
use talkpath_scenario::Plan;

use self::figure_names::check_figure;
use self::judgement::Judgement;
pub(crate) use self::unrated::ScorelessCall;
use crate::failure::Failure;
use crate::output_file::write_named_bytes;

/// The repetitions of each cell, by the index of the cell.
type CellRuns<'a> = BTreeMap<u64, Vec<&'a RunSummary>>;

/// Refuses a threshold about a figure that no run of `plan` can have. Nothing has run yet.
pub(crate) fn refuse_unknown_figures(plan: &Plan) -> Result<(), Failure> {
    for threshold in &plan.thresholds {
        check_figure(threshold).map_err(Failure::Usage)?;
        unrated::check(threshold, plan).map_err(Failure::Usage)?;
    }
    Ok(())
}

/// Refuses a threshold about the score of one of `calls`, which a capture has without a score.
pub(crate) fn refuse_scoreless(plan: &Plan, calls: &[ScorelessCall<'_>]) -> Result<(), Failure> {
    plan.thresholds
        .iter()
        .try_for_each(|threshold| unrated::check_captured(threshold, calls))
        .map_err(Failure::Usage)
}

/// Judges each threshold of `plan` by the figures of `summary`. Only the cells of `plan` are judged. Cells
/// that `compare` added with another queue are not.
pub(crate) fn judge(plan: &Plan, summary: &Summary) -> Vec<ThresholdSummary> {
    judge_at(plan, summary, Level::Shown)
}

/// Judges each threshold of `plan` as [`judge`] does, by intervals of the `level`.
pub(crate) fn judge_at(plan: &Plan, summary: &Summary, level: Level) -> Vec<ThresholdSummary> {
    judge_runs(plan, summary.counted_runs(), level)
}

/// Judges each threshold of `plan` by the figures of `runs`.
pub(crate) fn judge_runs<'a>(
    plan: &Plan,
    runs: impl Iterator<Item = &'a RunSummary>,
    level: Level,
) -> Vec<ThresholdSummary> {
    let mut runs_of_cells = CellRuns::new();
    for run in runs {
        runs_of_cells.entry(run.cell).or_default().push(run);
    }
    let mut judged = Vec::new();
    for threshold in &plan.thresholds {
        let mut judgement = Judgement::new(threshold, plan, &runs_of_cells, level);
        judgement.remark = match judgement.outcome() {
            ThresholdOutcome::Holds => score_warning::text(threshold, &runs_of_cells),
            ThresholdOutcome::Fails => {
                let runs = runs_of_cells.get(&judgement.worst.cell_index);
                failing_flag::text(threshold, &judgement.worst, runs.map_or(&[], Vec::as_slice))
            }
            ThresholdOutcome::Undecided | ThresholdOutcome::Unknown => None,
        };
        judged.push(judgement.summary());
    }
    judged
}

/// Writes a line for each threshold.
pub(crate) fn lines(judged: &[ThresholdSummary]) -> String {
    let mut text = String::new();
    for threshold in judged {
        text.push_str(&match threshold.outcome {
            ThresholdOutcome::Holds => format!("holds  {}\n", threshold.text),
            ThresholdOutcome::Fails => format!("FAILS  {}\n", threshold.text),
            ThresholdOutcome::Undecided => format!("UNDECIDED  {}\n", threshold.text),
            // The error message says more about it.
            ThresholdOutcome::Unknown => {
                format!("FAILS  {} is no figure of this run, must be {}\n", threshold.figure, threshold.bound)
            }
        });
    }
    text
}

/// Returns the failure for thresholds that fail (exit code 5) or are undecided (exit code 6). If some fail
/// and others are undecided, the exit code is 5. With `with_lines` the message holds the lines of the
/// thresholds, for a user who has not read them yet.
pub(crate) fn failure(judged: &[ThresholdSummary], with_lines: bool) -> Option<Failure> {
    let count = |thresholds: &[&ThresholdSummary], singular: &str, plural: &str| match judged.len() {
        1 => format!("the threshold {singular}"),
        all => format!("{} of {all} thresholds {plural}", thresholds.len()),
    };
    let failing = with_outcome(judged, ThresholdOutcome::Fails);
    let undecided = with_outcome(judged, ThresholdOutcome::Undecided);
    let mut messages = Vec::new();
    for (thresholds, singular, plural) in
        [(&failing, "does not hold", "do not hold"), (&undecided, "is undecided", "are undecided")]
    {
        if thresholds.is_empty() {
            continue;
        }
        let mut message = count(thresholds, singular, plural);
        if with_lines {
            let lines: Vec<_> = thresholds.iter().map(|threshold| threshold.text.as_str()).collect();
            message = format!("{message}:\n  {}", lines.join("\n  "));
        }
        messages.push(message);
    }
    let message = messages.join("\n");
    if !failing.is_empty() {
        return Some(Failure::Threshold(message));
    }
    (!undecided.is_empty()).then_some(Failure::Undecided(message))
}

fn with_outcome(judged: &[ThresholdSummary], outcome: ThresholdOutcome) -> Vec<&ThresholdSummary> {
    judged.iter().filter(|threshold| threshold.outcome == outcome).collect()
}

/// Returns the failure for thresholds about figures that no cell has (exit code 2).
pub(crate) fn unknown(judged: &[ThresholdSummary]) -> Option<Failure> {
    let unknown = with_outcome(judged, ThresholdOutcome::Unknown);
    if unknown.is_empty() {
        return None;
    }
    let messages: Vec<&str> = unknown.iter().map(|threshold| threshold.text.as_str()).collect();
    Some(Failure::Usage(messages.join("\n")))
}

/// Writes the file of `--junit`.
pub(crate) fn write_junit(path: &Path, name: &str, judged: &[ThresholdSummary]) -> Result<(), Failure> {
    let text = junit::xml(name, judged).map_err(|error| Failure::write(path, error))?;
    write_named_bytes(path, &text)
}

#[cfg(test)]
mod tests;
