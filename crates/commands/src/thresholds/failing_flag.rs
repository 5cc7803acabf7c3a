//! Says in which repetitions a flag of a flow fails, and why a call is not usable there.
//!
//! A flag must hold in each repetition. The line of its threshold has the worst value, which is only `0` or
//! `1`, so it also names the repetitions.

use talkpath_measure::figures::FLOW;
use talkpath_measure::figures::text::significant;
use talkpath_measure::metrics::gaps;
use talkpath_measure::summary::{FlowSummary, RunSummary};
use talkpath_scenario::{Threshold, ThresholdSubject};
use talkpath_units::counted;

use super::cell::{CellFigure, WORST_MEMBER};
use super::figure::RepetitionFigure;

/// The path of the flag that says whether a call is usable.
const USABLE: &str = "call.usable";
/// The most repetitions that are named. We chose it, so that a line stays a line.
const MAX_NAMED: usize = 6;

/// Writes the end of the line of a threshold that fails: in which of the cell's `runs` the flag fails.
/// Returns `None` if the figure is no flag, if it is not about one flow, or if it fails in no repetition.
pub(super) fn text(threshold: &Threshold, worst: &CellFigure, runs: &[&RunSummary]) -> Option<String> {
    let ThresholdSubject::Flow { name, members } = &threshold.subject else { return None };
    if worst.statistic.is_some() {
        return None;
    }
    let names: Vec<&String> = match &worst.member {
        Some(member) if member == WORST_MEMBER => members.iter().collect(),
        Some(member) => vec![member],
        None => vec![name],
    };
    let mut failing: Vec<(u64, &String, &FlowSummary)> = Vec::new();
    for run in runs {
        let fails = |flow: &FlowSummary| {
            let flag = RepetitionFigure::read(&FLOW, Some(flow), &threshold.path).value.number();
            flag.is_some_and(|flag| !threshold.bound.holds(flag))
        };
        let mut flows = names.iter().filter_map(|name| Some((*name, &**run.flows.get(*name)?)));
        if let Some((name, flow)) = flows.find(|(_, flow)| fails(flow)) {
            failing.push((run.repetition, name, flow));
        }
    }
    let (first, first_name, first_flow) = *failing.first()?;
    let named: Vec<String> = failing.iter().take(MAX_NAMED).map(|(number, ..)| number.to_string()).collect();
    let more = match failing.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if failing.len() == 1 { "repetition" } else { "repetitions" };
    let is_on_usable = threshold.path == USABLE && threshold.bound.holds(1.0);
    let is_usable = |run: &&&RunSummary| {
        let mut calls = names.iter().map(|name| run.flows.get(*name).and_then(|flow| flow.call.as_ref()));
        calls.all(|call| call.is_some_and(|call| call.usable == Some(true)))
    };
    let usable = runs.iter().filter(is_usable).count();
    let share = if is_on_usable && 2 * usable >= runs.len() {
        // A share is rounded down, so that a threshold of it holds.
        let percent = 100 * usable / runs.len();
        format!("; usable in {percent} %, and {name}.usable.mean demands a share")
    } else {
        String::new()
    };
    let mut text = format!("{share}; not in {noun} {}{more}", named.join(", "));
    if is_on_usable {
        let of_member = if names.len() > 1 { format!(" of {first_name}") } else { String::new() };
        text.push_str(&format!("; in {first}{of_member}, {}", why_not_usable(first_flow)?));
    }
    Some(text)
}

/// Says why a call is not usable, by the rule of `measure::metrics::gaps` and then by its score.
fn why_not_usable(flow: &FlowSummary) -> Option<String> {
    let call = flow.call.as_ref()?;
    let longest_ms = call.longest_gap_ms.unwrap_or(0.0);
    let often = call.gaps_in_a_minute.unwrap_or(0);
    Some(if longest_ms >= gaps::LONGEST.as_millis_f64() {
        format!("speech stops for {} ms", significant(longest_ms, 4))
    } else if gaps::make_unusable(longest_ms, often) {
        format!(
            "{} of {} ms or more begin within a minute, the longest of {} ms",
            counted(often, "gap"),
            gaps::LONG.as_millis(),
            significant(longest_ms, 4)
        )
    } else if let Some(outside) = call.outside_model.first().filter(|_| call.mos.is_none()) {
        format!("the call is beyond the model of the score: {}", outside.text())
    } else {
        let mos = call.mos.map_or("unknown".to_owned(), |mos| format!("{mos:.2}"));
        let floor = flow.floor.map_or("the floor".to_owned(), |floor| format!("{floor:.2}"));
        format!("MOS is {mos}, below {floor}")
    })
}
