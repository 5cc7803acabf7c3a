//! What the dashboard shows of an experiment.

use std::collections::{BTreeMap, VecDeque};

use talkpath_measure::figures::FLOW;
use talkpath_measure::summary::{FlowSummary, RunSummary};

use crate::run_state::RunState;

/// How many repetitions the line of a flow's delays shows. We chose 30, which fit beside the figures.
pub(super) const SHOWN_DELAYS: usize = 30;
/// How many rows are kept. We chose 200, because no terminal shows more.
pub(super) const MAX_ROWS: usize = 200;

/// What a monitor or a campaign shows after one more interval or measurement.
pub(crate) struct Reading<'a> {
    /// The figures by flow, each over its transport.
    pub(crate) runs: &'a [RunSummary],
    /// Where the figures are from, such as a pair of hosts. Empty if there is one place.
    pub(crate) place: &'a str,
    /// What is clear already, a line each.
    pub(crate) lines: Vec<String>,
    /// The last line: how far it is.
    pub(crate) last_line: String,
    /// Which part of the whole is done. `None` if there is no end.
    pub(crate) share: Option<f64>,
}

/// What is drawn.
#[derive(Default)]
pub(super) struct View {
    pub(super) run: RunState,
    /// The rows by flow, other swept values, and transport.
    pub(super) rows: BTreeMap<(String, String, String), Row>,
    /// The answers after the repetitions that have ended, each a line.
    pub(super) answers: Vec<String>,
    /// Of a monitor or a campaign, how far it is.
    pub(super) reading: Option<Progress>,
}

/// How far a monitor or a campaign is.
pub(super) struct Progress {
    pub(super) last_line: String,
    /// `None` if there is no end.
    pub(super) share: Option<f64>,
}

/// A flow over one transport.
#[derive(Default)]
pub(super) struct Row {
    pub(super) repetitions: u64,
    /// Whether the delays are those of round trips.
    pub(super) is_round_trip: bool,
    pub(super) median_ms: Mean,
    pub(super) tail_ms: Mean,
    pub(super) loss: Mean,
    pub(super) rate_bps: Mean,
    /// The median delays of the latest repetitions, in ms.
    pub(super) medians_ms: VecDeque<f64>,
}

/// The mean of the repetitions that know a figure.
#[derive(Clone, Copy, Default)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl View {
    /// Takes the state of a monitor or a campaign. The figures of a row are those of its last interval or
    /// measurement.
    pub(super) fn show(&mut self, reading: Reading<'_>) {
        let Reading { runs, place, lines, last_line, share } = reading;
        for run in runs {
            for (name, flow) in &run.flows {
                self.row(name, place, flow, Row::forget_means);
            }
        }
        for run in runs {
            for (name, flow) in &run.flows {
                self.row(name, place, flow, |row| row.add(flow));
            }
        }
        self.answers = lines;
        self.reading = Some(Progress { last_line, share: share.map(|share| share.clamp(0.0, 1.0)) });
    }

    /// Calls `change` with the row of a flow, if there is room for one.
    fn row(&mut self, name: &str, place: &str, flow: &FlowSummary, change: impl FnOnce(&mut Row)) {
        let key = (name.to_owned(), place.to_owned(), flow.transport.clone());
        if self.rows.len() < MAX_ROWS || self.rows.contains_key(&key) {
            change(self.rows.entry(key).or_default());
        }
    }

    /// Adds the figures of a repetition.
    pub(super) fn add(&mut self, repetition: &RunSummary) {
        for (name, flow) in &repetition.flows {
            let swept: Vec<String> = repetition
                .sweep
                .iter()
                .filter(|(key, _)| **key != format!("flow.{name}.transport"))
                .map(|(key, value)| format!("{key}={}", plain(value)))
                .collect();
            self.row(name, &swept.join(", "), flow, |row| row.add(flow));
        }
        if let Some(answers) = self.run.add_figures(repetition) {
            self.answers = answers.comparisons.into_iter().map(|comparison| comparison.answer.line).collect();
        }
    }
}

impl Row {
    /// Begins the means anew.
    fn forget_means(&mut self) {
        for mean in [&mut self.median_ms, &mut self.tail_ms, &mut self.loss, &mut self.rate_bps] {
            *mean = Mean::default();
        }
    }

    fn add(&mut self, flow: &FlowSummary) {
        self.repetitions += 1;
        self.is_round_trip = flow.round_trip_delay_ms.is_some();
        let delay = if self.is_round_trip { "round_trip_delay_ms" } else { "one_way_delay_ms" };
        let figure = |path: &str| FLOW.find(path).and_then(|row| row.number(flow));
        let median = figure(&format!("{delay}.p50"));
        self.median_ms.add(median);
        self.tail_ms.add(figure(&format!("{delay}.p99")));
        self.loss.add(figure("loss_rate"));
        self.rate_bps.add(figure("goodput_bps"));
        self.medians_ms.extend(median);
        if self.medians_ms.len() > SHOWN_DELAYS {
            self.medians_ms.pop_front();
        }
    }
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    pub(super) fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Writes a swept value without the quotes of a string.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
