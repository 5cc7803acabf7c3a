//! Warns about two things that a threshold on the score of a call does not see: gaps that make the call
//! unusable whatever its score is, and a second receiver with which the threshold would fail.
//!
//! The user demanded a score, so the threshold holds. But the user must learn that the answer calls the call
//! unusable.

use talkpath_measure::summary::{CallSummary, FlowSummary, RunSummary};
use talkpath_scenario::{Operator, Threshold, ThresholdSubject};
use talkpath_units::counted;

use super::CellRuns;

/// Writes the warning at the end of the line of a threshold. Returns `None` if there is nothing to warn
/// about, if the threshold is not about the score of a call, or if it demands less than a usable score.
pub(super) fn warning(threshold: &Threshold, by_cell: &CellRuns<'_>) -> Option<String> {
    let ThresholdSubject::Flow { name, members } = &threshold.subject else { return None };
    let is_on_score = threshold.path == SCORE || threshold.path.starts_with("call.mos.");
    if !is_on_score || !matches!(threshold.bound.operator, Operator::AtLeast | Operator::Above) {
        return None;
    }
    let cells = threshold.cells.iter().filter_map(|cell| by_cell.get(cell));
    let flows: Vec<Vec<&FlowSummary>> = cells
        .flat_map(|runs| members.iter().map(|member| calls_of(runs, member)))
        .filter(|flows| !flows.is_empty())
        .collect();
    let least = flows.iter().flatten().filter_map(|flow| flow.floor).fold(0.0, f64::max);
    if threshold.bound.value < least {
        return None;
    }
    let barred = flows.iter().filter(|flows| is_barred(flows)).count();
    let others: Vec<(&str, f64)> = flows.iter().filter_map(|flows| second_receiver(flows)).collect();
    let worst =
        others.iter().filter(|(_, mos)| !threshold.bound.holds(*mos)).min_by(|a, b| a.1.total_cmp(&b.1));
    let mut text = String::new();
    if barred > 0 {
        text.push_str(&format!(
            "; but gaps bar {} of {} from being usable, whatever the score is",
            barred,
            counted(flows.len(), "call")
        ));
    }
    if let Some((playout, mos)) = worst {
        text.push_str(&format!("; but with the receiver `{playout}` it is {mos:.2}"));
    }
    if text.is_empty() {
        return None;
    }
    text.push_str(&format!(": {name}.usable == true demands that the call is usable"));
    Some(text)
}

/// The flow `member` in the repetitions in which it is a call.
fn calls_of<'a>(runs: &[&'a RunSummary], member: &str) -> Vec<&'a FlowSummary> {
    let flows = runs.iter().filter_map(|run| run.flows.get(member));
    flows.map(|flow| &**flow).filter(|flow| flow.call.is_some()).collect()
}

/// The figures of the calls.
fn calls<'a>(flows: &[&'a FlowSummary]) -> impl Iterator<Item = &'a CallSummary> {
    flows.iter().filter_map(|flow| flow.call.as_deref())
}

/// Whether gaps make the call unusable in half of the repetitions or more, by the same rule as in the answer.
fn is_barred(flows: &[&FlowSummary]) -> bool {
    2 * calls(flows).filter(|call| call.is_barred()).count() >= flows.len()
}

/// The name of the second receiver, and the mean score with it.
fn second_receiver<'a>(flows: &[&'a FlowSummary]) -> Option<(&'a str, f64)> {
    let others: Vec<_> = calls(flows).filter_map(|call| call.other_receiver.as_ref()).collect();
    let first = others.first()?;
    Some((first.playout.as_str(), others.iter().map(|other| other.mos).sum::<f64>() / others.len() as f64))
}

const SCORE: &str = "call.mos";
