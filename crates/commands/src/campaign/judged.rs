//! Judges the thresholds of a campaign's measures over all measurements of a pair of hosts, as those of a run
//! are judged over its repetitions.

use std::collections::BTreeMap;

use talkpath_campaign::{PairThresholds, Plan};
use talkpath_measure::metrics::confidence::Level;
use talkpath_measure::summary::{RunSummary, Summary, ThresholdSummary};

use super::load::Loaded;
use crate::failure::Failure;
use crate::thresholds::{self, judge_runs};

/// Judges the thresholds of each measure for each pair. `summaries` has each summary with the index of its
/// measurement in `plan`. A measurement that is not valid is left out, and so is a pair without any other.
pub(crate) fn judge(loaded: &Loaded, plan: &Plan, summaries: &[(usize, Summary)]) -> Vec<PairThresholds> {
    let mut runs_of_pairs: BTreeMap<(&str, &str, &str), Vec<&RunSummary>> = BTreeMap::new();
    for (index, summary) in summaries.iter().filter(|(_, summary)| summary.valid) {
        let measurement = &plan.measurements[*index];
        let pair = (measurement.measure.as_str(), measurement.near.as_str(), measurement.far.as_str());
        runs_of_pairs.entry(pair).or_default().extend(summary.counted_runs());
    }
    let mut judged = Vec::new();
    for ((measure, near, far), runs) in runs_of_pairs {
        let host = loaded.campaign.hosts.iter().find(|host| host.name == far);
        let Some(prepared) = host.and_then(|host| loaded.prepared(measure, host)) else { continue };
        if prepared.plan.thresholds.is_empty() {
            continue;
        }
        judged.push(PairThresholds {
            measure: measure.to_owned(),
            near: near.to_owned(),
            far: far.to_owned(),
            thresholds: judge_runs(&prepared.plan, runs.into_iter(), Level::Shown),
        });
    }
    judged
}

/// Writes a line for each threshold of each pair, below the pair.
pub(crate) fn text(judged: &[PairThresholds]) -> String {
    let mut text = String::new();
    for PairThresholds { measure, near, far, thresholds } in judged {
        let lines = thresholds::lines(thresholds);
        text.push_str(&format!("\n{near} > {far}, {measure}:\n"));
        lines.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

/// Returns the failure with which the campaign ends: exit code 5 if a threshold fails, else 6 if one is
/// undecided.
pub(crate) fn failure(judged: &[PairThresholds]) -> Option<Failure> {
    let all: Vec<ThresholdSummary> = judged.iter().flat_map(|pair| pair.thresholds.clone()).collect();
    thresholds::failure(&all, false)
}
