//! What a study keeps of a run: the metrics that its claims read, and of the first repetition what its figures draw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use talkpath_measure::summary::RunSummary;
use talkpath_measure::{Fate, RunRecord};

use crate::study::{Cell, Study};

/// All repetitions of one cell: what a part file of a study's run holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellSamples {
    /// The cell's name.
    pub cell: String,
    /// The assumption set's name.
    pub assumption: String,
    /// The cell's own, when it ran.
    pub fingerprint: String,
    /// One a repetition, in order.
    pub samples: Vec<Sample>,
    /// Of the first repetition, where a figure shows it.
    pub trace: Option<Trace>,
    /// What bent the runs, in words for a person.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// False where the machine disturbed one of the runs past its stated limits.
    pub valid: bool,
}

/// The metrics of one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From 0.
    pub repetition: u64,
    /// What it ran with.
    pub seed: u64,
    /// By path; what the arena could not know is absent.
    pub values: BTreeMap<String, f64>,
}

/// State over time within a figure's stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Series of flows and links.
    pub lines: Vec<TraceLine>,
    /// Runs of missing messages, in order of time.
    pub loss_runs: Vec<LossRun>,
}

/// One quantity of one flow or link: the value holds from each instant to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// The flow or link.
    pub entity: String,
    /// `cwnd`, `queue`, ...
    pub kind: String,
    /// (time in s, value).
    pub points: Vec<(f64, f64)>,
}

/// Consecutive missing messages of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossRun {
    /// Which flow.
    pub flow: String,
    /// When the first of them was due, s.
    pub at_s: f64,
    /// How many.
    pub length: u64,
}

impl Sample {
    /// What `study` reads of `run`.
    pub fn of(run: &RunSummary, study: &Study) -> Self {
        let json = serde_json::to_value(run).unwrap_or_default();
        let values = study.metrics.iter().filter_map(|path| Some((path.clone(), metric(&json, path)?)));
        Self { repetition: run.repetition, seed: run.seed, values: values.collect() }
    }
}

impl Trace {
    /// What the figures draw of `record`, a run of `cell`; `None` where they draw nothing of it.
    pub fn of(record: &RunRecord, cell: &Cell) -> Option<Self> {
        let (from, to) = cell.trace?;
        let lines = record.series.iter().map(|series| TraceLine {
            entity: series.entity.clone(),
            kind: series.kind.name().to_owned(),
            points: cut(series.points.iter().map(|(at, value)| (seconds(at.as_nanos()), *value)), from, to),
        });
        let lines = lines.filter(|line| line.kind == "cwnd" || line.kind == "queue").collect();
        let mut loss_runs = Vec::new();
        for flow in record.flows.iter().filter(|flow| flow.info.clocked) {
            let mut run: Option<LossRun> = None;
            for message in &flow.forward.messages {
                match message.fate {
                    Fate::Missing => {
                        let at_s = seconds(message.due.as_nanos());
                        let name = || LossRun { flow: flow.info.name.clone(), at_s, length: 0 };
                        run.get_or_insert_with(name).length += 1;
                    }
                    Fate::Delivered => loss_runs.extend(run.take()),
                    Fate::Unfinished | Fate::Refused => {}
                }
            }
            loss_runs.extend(run);
        }
        loss_runs.retain(|run| run.at_s >= from && run.at_s <= to);
        Some(Self { lines, loss_runs })
    }
}

/// The points from `from` to `to`, the first of them at `from` with the value that held there.
fn cut(points: impl Iterator<Item = (f64, f64)>, from: f64, to: f64) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (at, value) in points.take_while(|point| point.0 <= to) {
        if at <= from {
            kept.clear();
        }
        kept.push((at.max(from), value));
    }
    kept
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// The number at `path` of a run's summary. A group of one copy is its flow: there, `groups.NAME.KEY` is
/// `flows.NAME.KEY`.
fn metric(run: &Json, path: &str) -> Option<f64> {
    let names: Vec<&str> = path.split('.').collect();
    let found = at(run, &names).and_then(Json::as_f64);
    match names.as_slice() {
        ["groups", rest @ ..] if found.is_none() => {
            let flow: Vec<&str> = core::iter::once("flows").chain(rest.iter().copied()).collect();
            at(run, &flow).and_then(Json::as_f64)
        }
        _ => found,
    }
}

fn at<'a>(json: &'a Json, names: &[&str]) -> Option<&'a Json> {
    names.iter().try_fold(json, |json, name| match json {
        Json::Array(list) => list.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_through_tables_and_lists_and_a_group_of_one_is_its_flow() {
        let run: Json = serde_json::json!({
            "flows": { "call": { "loss_rate": 0.25, "loss_runs": { "histogram": [7, 2] }, "rtt": null } },
            "groups": { "ftp": { "goodput_bps": 5.0 } },
        });
        assert_eq!(metric(&run, "flows.call.loss_runs.histogram.1"), Some(2.0));
        assert_eq!(metric(&run, "groups.call.loss_rate"), Some(0.25));
        assert_eq!(metric(&run, "groups.ftp.goodput_bps"), Some(5.0));
        assert_eq!(metric(&run, "flows.call.rtt"), None);
        assert_eq!(metric(&run, "links.wan.dropped"), None);
    }

    #[test]
    fn a_cut_begins_with_the_value_that_held() {
        let points = [(0.0, 1.0), (4.0, 2.0), (6.0, 3.0), (11.0, 4.0)];
        assert_eq!(cut(points.into_iter(), 5.0, 10.0), [(5.0, 2.0), (6.0, 3.0)]);
    }
}
