//! Warns about what the score of a call hides: gaps that make the call unusable whatever its score is, a
//! second receiver with which a threshold on the score would fail, and scales that are not comparable.
//!
//! The user demanded a score, so the threshold holds. But the user must learn that the answer calls the call
//! unusable.

use std::collections::BTreeMap;

use talkpath_measure::summary::{CallSummary, FlowSummary, RunSummary};
use talkpath_scenario::{Operator, Threshold, ThresholdSubject};
use talkpath_units::counted;

use super::CellRuns;

/// The path of the score of a call.
const SCORE: &str = "call.mos";

/// Writes the warning at the end of the line of a threshold. Returns `None` if there is nothing to warn
/// about, if the threshold is not about the score of a call, or if it demands less than a usable score.
pub(super) fn text(threshold: &Threshold, runs_of_cells: &CellRuns<'_>) -> Option<String> {
    let ThresholdSubject::Flow { name, members } = &threshold.subject else { return None };
    let is_on_score = threshold.path == SCORE || threshold.path.starts_with("call.mos.");
    if !is_on_score || !matches!(threshold.bound.operator, Operator::AtLeast | Operator::Above) {
        return None;
    }
    let mut calls: Vec<Call<'_>> = Vec::new();
    for runs in threshold.cells.iter().filter_map(|cell| runs_of_cells.get(cell)) {
        calls.extend(members.iter().filter_map(|member| Call::find(member, runs)));
    }
    let scales = scales_text(&calls);
    let usable_score =
        calls.iter().flat_map(|call| &call.flows).filter_map(|flow| flow.floor).fold(0.0, f64::max);
    if threshold.bound.value < usable_score {
        return scales;
    }
    let mut text = String::new();
    let barred = calls.iter().filter(|call| call.is_barred()).count();
    if barred > 0 {
        let calls = counted(calls.len(), "call");
        text.push_str(&format!(
            "; but gaps bar {barred} of {calls} from being usable, whatever the score is"
        ));
    }
    let receivers = calls.iter().filter_map(Call::second_receiver);
    let failing = receivers.filter(|receiver| !threshold.bound.holds(receiver.mean_score));
    if let Some(worst) = failing.min_by(|a, b| a.mean_score.total_cmp(&b.mean_score)) {
        let SecondReceiver { playout, mean_score } = worst;
        text.push_str(&format!("; but with the receiver `{playout}` it is {mean_score:.2}"));
    }
    if !text.is_empty() {
        text.push_str(&format!(": {name}.usable == true demands that the call is usable"));
    }
    text.extend(scales);
    (!text.is_empty()).then_some(text)
}

/// Writes the scales of the scores and the least usable score on each, if there are several scales.
fn scales_text(calls: &[Call<'_>]) -> Option<String> {
    let mut scales: BTreeMap<&str, f64> = BTreeMap::new();
    for flow in calls.iter().flat_map(|call| &call.flows) {
        let scale = flow.call.as_ref().map_or("", |call| call.scale.as_str());
        if let Some(floor) = flow.floor.filter(|_| !scale.is_empty()) {
            scales.insert(scale, floor);
        }
    }
    let listed: Vec<String> =
        scales.iter().map(|(scale, floor)| format!("{scale} (usable from {floor:.2} on)")).collect();
    (listed.len() > 1).then(|| {
        format!("; but one score is demanded on scales that are not comparable: {}", listed.join(", "))
    })
}

/// A flow of a cell that is a call, in the repetitions in which it is one.
struct Call<'a> {
    flows: Vec<&'a FlowSummary>,
}

/// The receiver with the second way of playout.
struct SecondReceiver<'a> {
    playout: &'a str,
    /// The mean score with this receiver.
    mean_score: f64,
}

impl<'a> Call<'a> {
    /// Finds the call `member` in the repetitions of a cell. Returns `None` if the flow is a call in none of
    /// them.
    fn find(member: &str, runs: &[&'a RunSummary]) -> Option<Self> {
        let flows = runs.iter().filter_map(|run| run.flows.get(member)).map(|flow| &**flow);
        let flows: Vec<&FlowSummary> = flows.filter(|flow| flow.call.is_some()).collect();
        if flows.is_empty() { None } else { Some(Self { flows }) }
    }

    fn repetitions(&self) -> impl Iterator<Item = &'a CallSummary> {
        self.flows.iter().filter_map(|flow| flow.call.as_deref())
    }

    /// Whether gaps make the call unusable in half of the repetitions or more, by the same rule as in the
    /// answer.
    fn is_barred(&self) -> bool {
        2 * self.repetitions().filter(|call| call.is_barred()).count() >= self.flows.len()
    }

    fn second_receiver(&self) -> Option<SecondReceiver<'a>> {
        let receivers = self.repetitions().filter_map(|call| call.other_receiver.as_ref());
        let scored: Vec<_> =
            receivers.filter_map(|receiver| Some((receiver.playout.as_str(), receiver.mos?))).collect();
        let (playout, _) = *scored.first()?;
        let sum: f64 = scored.iter().map(|(_, score)| score).sum();
        Some(SecondReceiver { playout, mean_score: sum / scored.len() as f64 })
    }
}
