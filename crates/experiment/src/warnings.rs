//! Writes the warnings of a whole run.
//!
//! Each repetition has warnings of its own. The run repeats each of them once ([`combined`]), and adds what
//! only a comparison of the repetitions shows: repetitions that are missing, left out, run again or
//! identical.
//!
//! Begin to read with [`warnings_of_run`].

mod combined;
mod identical;
mod number_ranges;

use std::collections::BTreeMap;

use talkpath_measure::warning;
use talkpath_scenario::Plan;
use talkpath_units::{counted, is_or_are};

use self::combined::{FlowOfCopy, RepetitionWarnings, combine};
pub(crate) use self::identical::identical_warning;
use crate::Error;
use crate::part::{PROGRAM, Part, first_few};
use crate::run_dir::{PartId, SCENARIO};

/// Returns the warnings about the scenario file, and then the combined warnings of the repetitions `parts`.
pub(crate) fn warnings_of_run(plan: &Plan, parts: &[&Part]) -> Vec<String> {
    let mut warnings = Vec::new();
    for warning in &plan.warnings {
        let file = warning.included.as_ref().map_or(SCENARIO, |file| &file.name);
        warnings.push(format!("{file}: {}: {}", warning.key, warning.message));
    }
    let mut repetitions = Vec::new();
    for part in parts {
        repetitions.push(RepetitionWarnings { name: part_name(plan, part), warnings: &part.warnings });
    }
    warnings.extend(combine(&repetitions, &copies(plan)));
    warnings
}

/// Returns the copies of the plan's flows. A scenario with 700 calls names one flow, which has 700 copies.
fn copies(plan: &Plan) -> FlowOfCopy<'_> {
    let mut flow_of_copy = BTreeMap::new();
    for flow in plan.cells.iter().flat_map(|cell| &cell.scenario.flows) {
        if flow.name != flow.group {
            flow_of_copy.insert(flow.name.as_str(), flow.group.as_str());
        }
    }
    flow_of_copy
}

/// Warns that the figures do not include the repetitions `left_out`, because these stayed disturbed.
/// `total` is the number of all repetitions. Returns `None` if no repetition is left out.
pub(crate) fn left_out_warning(plan: &Plan, total: usize, left_out: &[&Part]) -> Option<String> {
    if left_out.is_empty() {
        return None;
    }
    let repetitions = first_few(left_out.iter().map(|part| name_with_reasons(plan, part)));
    Some(warning::left_out(total - left_out.len(), total, repetitions))
}

/// Returns the name of a repetition, and the reasons why it is not valid.
fn name_with_reasons(plan: &Plan, part: &Part) -> String {
    let name = part_name(plan, part);
    let reasons: Vec<&str> = part.warnings.iter().filter_map(|warning| warning::reason(warning)).collect();
    if reasons.is_empty() { name } else { format!("{name}: {}", reasons.join(", ")) }
}

/// Says how many repetitions ran again because the machine disturbed them. Returns `None` if none did.
pub(crate) fn rerun_note(parts: &[Part]) -> Option<String> {
    let (mut repetitions, mut reruns) = (0, 0);
    for part in parts {
        repetitions += u64::from(part.reruns() > 0);
        reruns += part.reruns();
    }
    if repetitions == 0 {
        return None;
    }
    let total = if reruns > repetitions { format!(", {reruns} times in all") } else { String::new() };
    let repetitions = counted(repetitions, "repetition");
    Some(warning::note(format!("{repetitions} ran again{total}: disturbed past the stated limits")))
}

/// Warns of the repetitions in which the program of the user has failed. Returns `None` if none has.
pub(crate) fn failed_program_warning(plan: &Plan, parts: &[Part]) -> Option<String> {
    let mut failed = Vec::new();
    for part in parts {
        if let Some(why) = part.summary.program.as_ref().and_then(|program| program.failure.as_ref()) {
            failed.push(format!("{}: {why}", part_name(plan, part)));
        }
    }
    if failed.is_empty() {
        return None;
    }
    let (count, total) = (failed.len(), counted(parts.len(), "repetition"));
    let names = first_few(failed.into_iter());
    Some(format!(
        "the program failed in {count} of {total}, whose figures of the program are not known; what it printed is in \
         {PROGRAM}: {names}"
    ))
}

/// Warns that the repetitions `missing` have no whole part, and says why if `failure` is the reason.
pub(crate) fn missing_warning(plan: &Plan, missing: &[PartId], failure: Option<&Error>) -> String {
    let reason = match failure {
        Some(failure) => format!(" ({})", failure.to_string().lines().next().unwrap_or_default()),
        None => String::new(),
    };
    let missing_count = missing.len() as u64;
    let total = counted(plan.cells.len() as u64 * plan.repeat, "repetition");
    let verb = is_or_are(missing_count);
    let names = first_few(missing.iter().map(|id| missing_name(plan, *id)));
    format!("{missing_count} of {total} {verb} missing or cut short{reason}: {names}")
}

/// Returns the name of a missing repetition: `transport = tcp repetition 3`.
fn missing_name(plan: &Plan, id: PartId) -> String {
    match cell_label(plan, id.cell) {
        "" => format!("repetition {}", id.repetition),
        label => format!("{label} repetition {}", id.repetition),
    }
}

/// Returns the name of a repetition that has a part: `transport = tcp, repetition 3`. The name leaves out
/// whatever all repetitions of the plan have in common.
pub(crate) fn part_name(plan: &Plan, part: &Part) -> String {
    let PartId { cell, repetition } = part.id();
    match cell_label(plan, cell) {
        "" => format!("repetition {repetition}"),
        label if plan.repeat > 1 => format!("{label}, repetition {repetition}"),
        label => label.to_owned(),
    }
}

/// Returns the swept values that distinguish a cell from the other cells. They are empty if there is one
/// cell only.
fn cell_label(plan: &Plan, cell: u64) -> &str {
    plan.cell(cell).map_or("", |cell| cell.label.as_str())
}
