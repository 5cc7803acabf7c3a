//! Refuses thresholds on the score of a call that has none: nobody published the impairment of its coding, or
//! a capture does not show the coding.

use talkpath_measure::Codec;
use talkpath_measure::statistic::Statistic;
use talkpath_scenario::{Flow, Judging, Plan, Threshold, ThresholdSubject};

use super::cell::names_program_flow;

/// The last words of the paths below `call` that rest on the score.
const OF_SCORE: [&str; 3] = ["mos", "r", "usable"];

/// A call of a capture without a score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScorelessCall<'a> {
    /// The name of the flow.
    pub(crate) flow: &'a str,
    /// Why it has none.
    pub(crate) why: &'a str,
}

/// Checks that the threshold is not about the score of one of `calls`, which are those of a capture without a
/// score.
///
/// # Errors
/// Returns a message with the call, the reason, and the figures that such a call has.
pub(super) fn check_captured(threshold: &Threshold, calls: &[ScorelessCall<'_>]) -> Result<(), String> {
    let ThresholdSubject::ProgramFlows { name } = &threshold.subject else { return Ok(()) };
    if !is_of_score(&threshold.path) {
        return Ok(());
    }
    match calls.iter().find(|call| names_program_flow(name, call.flow)) {
        None => Ok(()),
        Some(ScorelessCall { flow, why }) => Err(format!(
            "threshold {}: {flow} has no score: {why}\n  = help: {OTHER_FIGURES}; `call-1.mos` is about one call",
            threshold.figure
        )),
    }
}

/// The figures of a call without a score.
const OTHER_FIGURES: &str = "a call without a score has `call.concealed`, `call.longest_gap_ms` and \
                             `call.mouth_to_ear_ms.p50`";

/// Checks that no cell of the threshold has a call without a score, if the threshold is about the score.
///
/// # Errors
/// Returns a message with the cell, and the figures that such a call has.
pub(super) fn check(threshold: &Threshold, plan: &Plan) -> Result<(), String> {
    let ThresholdSubject::Flow { members, .. } = &threshold.subject else { return Ok(()) };
    if !is_of_score(&threshold.path) {
        return Ok(());
    }
    for cell in threshold.cells.iter().filter_map(|index| plan.cell(*index)) {
        let mut flows = cell.scenario.flows.iter().filter(|flow| members.contains(&flow.name));
        let Some(codec) = flows.find_map(unrated_codec) else { continue };
        let place = if plan.cells.len() > 1 { format!(" in the cell {}", cell.label) } else { String::new() };
        return Err(format!(
            "threshold {}: the call has no score{place}, because nobody published the impairment of {} in this form; \
             published are {}\n  = help: {OTHER_FIGURES}; @KEY=VALUE selects cells of a sweep",
            threshold.figure,
            codec.name(),
            Codec::OPUS_PUBLISHED
        ));
    }
    Ok(())
}

/// Whether the figure at `path` is the score of a call, or rests on it. A statistic may follow.
fn is_of_score(path: &str) -> bool {
    let path = Statistic::split(path).map_or(path, |(path, _)| path);
    path.strip_prefix("call.")
        .and_then(|path| path.rsplit('.').next())
        .is_some_and(|word| OF_SCORE.contains(&word))
}

/// Returns the codec of a call that is not rated. Returns `None` of any other flow.
fn unrated_codec(flow: &Flow) -> Option<Codec> {
    if !matches!(flow.judging, Judging::Call { .. }) {
        return None;
    }
    // Whether frames are concealed matters to no codec without published figures.
    let coding = flow.workload.voice()?.coding;
    coding.rated(true).is_none().then_some(coding.codec)
}
