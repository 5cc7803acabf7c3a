//! Reduces the record of a repetition to what a study needs.
//!
//! - A *sample* holds the metrics of one repetition that the claims of the study read.
//! - A *trace* holds the series over time of one repetition that the figures of the study draw. Only a few
//!   repetitions of a cell keep their trace.
//! - A *disturbed* repetition is one that the machine disturbed past its stated limits. It is not judged.
//! - A *bent* metric is one that the machine falsified, because it made packets late. The sample lacks it.
//!
//! Begin to read with [`Sample::from_run`] and [`StateTrace::from_run`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use talkpath_measure::log::log_txt;
use talkpath_measure::metrics::percentile::{PerMille, nearest_rank};
use talkpath_measure::metrics::{delay, goodput};
use talkpath_measure::summary::{Clock, FlowSummary, RunSummary};
use talkpath_measure::{Fate, FlowRecord, LateFlow, RunRecord};
use talkpath_units::{Instant, SignedDuration};

use crate::arena::ArenaName;
use crate::band::{at_steps, is_banded};
use crate::late;
use crate::metric::{self, Derived};
use crate::over_time::is_flow_or_copy;
use crate::stretch::Stretch;
use crate::study::{Cell, Study, throughput_link};

/// The samples of the repetitions of one cell. Each line of a study's journal is a `CellSamples` with one
/// repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSamples {
    /// The name of the cell.
    pub cell: String,
    /// The arena where the cell ran.
    pub arena: ArenaName,
    /// The name of the assumption set.
    pub assumption: String,
    /// The fingerprint that the cell had when it ran.
    pub fingerprint: String,
    /// One sample for each repetition, in the order of the repetitions.
    pub samples: Vec<Sample>,
    /// The traces that a figure shows, in the order of the repetitions: the trace of the first repetition, or
    /// of the first repetition of each kind of run.
    #[serde(default)]
    pub traces: Vec<KeptTrace>,
    /// The warnings of the runs, in words for a person.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl CellSamples {
    /// Returns the samples of `cell` before its first repetition. `assumption` is the name of the assumption
    /// set of the cell.
    pub fn new(cell: &Cell, assumption: &str, fingerprint: &str) -> Self {
        Self {
            cell: cell.name.clone(),
            arena: cell.arena,
            assumption: assumption.to_owned(),
            fingerprint: fingerprint.to_owned(),
            samples: Vec::new(),
            traces: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds the sample of a repetition, so that the samples stay in the order of the repetitions.
    pub fn add(&mut self, sample: Sample) {
        let index = self.samples.partition_point(|earlier| earlier.repetition < sample.repetition);
        self.samples.insert(index, sample);
    }

    /// Iterates over the samples that are judged, which are those of undisturbed repetitions.
    pub fn valid(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.disturbed.is_none())
    }

    /// Returns whether the machine bent `metric` in at least one repetition.
    pub(crate) fn is_bent(&self, metric: &str) -> bool {
        self.samples.iter().any(|sample| sample.bent.iter().any(|bent| bent == metric))
    }

    /// Returns the values of `metric` by repetition. Repetitions that are not judged or lack the metric are
    /// left out.
    pub(crate) fn values_by_repetition(&self, metric: &str) -> BTreeMap<u64, f64> {
        self.valid().filter_map(|sample| Some((sample.repetition, *sample.values.get(metric)?))).collect()
    }

    /// Returns the values of `metric` in the order of the repetitions. Repetitions that are not judged or
    /// lack the metric are left out.
    pub(crate) fn values(&self, metric: &str) -> Vec<f64> {
        self.values_by_repetition(metric).into_values().collect()
    }
}

/// The metrics of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The number of the repetition, from 0.
    pub repetition: u64,
    /// The seed that the repetition ran with.
    pub seed: u64,
    /// The values of the metrics, by path. A metric that the arena cannot measure is absent.
    pub values: BTreeMap<String, f64>,
    /// The largest number of other runs of the study that ran at the same time. It is 0 in virtual time.
    #[serde(default)]
    pub beside: u64,
    /// The reason why the repetition is disturbed, or `None` if it is not.
    #[serde(default)]
    pub disturbed: Option<String>,
    /// The metrics that are absent because the machine bent them. Their values would depend on the machine
    /// and not on the path alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bent: Vec<String>,
    /// The delays in ms at the percentiles 1 to 99, by flow, for the flows that a figure shows.
    #[serde(default)]
    pub delays: BTreeMap<String, Vec<f64>>,
    /// The values of the banded lines at equal steps of time, by series and entity
    /// ([`StateTrace::instants`]). Every repetition has them, because a band shows where the lines of all
    /// repetitions lie.
    #[serde(default)]
    pub instants: BTreeMap<String, Vec<f64>>,
}

/// The trace of one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptTrace {
    /// The number of the repetition.
    pub repetition: u64,
    /// The values of the metrics that distinguish kinds of runs. It is empty if no figure distinguishes
    /// kinds.
    pub kinds: Vec<(String, f64)>,
    /// The series and loss runs that the figures draw.
    pub trace: StateTrace,
}

/// State over time, within the stretch of time that figures show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateTrace {
    /// The series of flows and links.
    pub lines: Vec<TraceLine>,
    /// The runs of missing messages, in the order of time.
    pub loss_runs: Vec<LossRun>,
}

/// One quantity of one flow or link over time. The value of a point holds until the next point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// The name of the flow or link.
    pub entity: String,
    /// The series: `cwnd`, `queue` or `goodput`.
    pub kind: String,
    /// The points as (time in s, value).
    pub points: Vec<(f64, f64)>,
}

impl TraceLine {
    /// Returns the key of the line in [`Sample::instants`].
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.kind, self.entity)
    }
}

/// Consecutive missing messages of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossRun {
    /// The name of the flow.
    pub flow: String,
    /// The time when the first message was due, in s.
    pub at_s: f64,
    /// The number of messages.
    pub length: u64,
}

/// The repetition that a sample is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId {
    /// The number of the repetition, from 0.
    pub repetition: u64,
    /// The seed that the repetition ran with.
    pub seed: u64,
}

impl Sample {
    /// Makes the sample of a repetition of `cell` from its record and its summary. `watched` has the figures
    /// that were counted packet by packet, or is `null`. The caller fills in [`Self::instants`], from
    /// [`StateTrace::instants`].
    pub fn from_run(
        record: &RunRecord,
        summary: &RunSummary,
        study: &Study,
        cell: &Cell,
        watched: Json,
    ) -> Self {
        let mut json = serde_json::to_value(summary).unwrap_or_default();
        json["clock"] = serde_json::to_value(Clock::from(&record.clock)).unwrap_or_default();
        json["log"] = log_fields(record, study);
        json[metric::WATCHED] = watched;
        json[metric::OVER_TIME] = over_time(record, study, cell);
        let id = RunId { repetition: summary.repetition, seed: summary.seed };
        let mut sample = Self::from_json(&json, id, study);
        let late_flows = record.machine.as_ref().map_or(&[][..], |machine| &machine.late_flows);
        sample.remove_bent(&mut json, late_flows, study);
        // Late flows bend single metrics. Any other disturbance makes the whole repetition invalid.
        if !record.valid && late_flows.is_empty() {
            sample.disturbed = Some(disturbance(&record.warnings));
        }
        sample.delays = delay_percentiles(record, &cell.kept.delays, late_flows);
        sample
    }

    /// Removes the metrics that `late_flows` bent from the sample, and lists their names in `bent`. `json` is
    /// the summary of the repetition.
    fn remove_bent(&mut self, json: &mut Json, late_flows: &[LateFlow], study: &Study) {
        late::remove_bent_figures(json, late_flows);
        let is_known = |path: &String| metric::value(json, path, &study.derived).is_some();
        self.bent = self.values.keys().filter(|path| !is_known(path)).cloned().collect();
        for path in &self.bent {
            self.values.remove(path);
        }
    }

    /// Returns whether the machine neither disturbed this repetition nor bent a metric of it.
    pub fn is_whole(&self) -> bool {
        self.disturbed.is_none() && self.bent.is_empty()
    }

    /// Makes the sample of a repetition that a campaign measured, from the repetition's flows and the
    /// measurement's clock. The figures that the late packets of `late_flows` bent are left out. If the
    /// machine disturbed the repetition in another way, `disturbing` holds the warnings.
    pub fn from_campaign(
        flows: &BTreeMap<&str, &FlowSummary>,
        clock: &Clock,
        run: RunId,
        late_flows: &[LateFlow],
        disturbing: Option<&[String]>,
        study: &Study,
    ) -> Self {
        let mut json = serde_json::json!({ "flows": flows, "clock": clock });
        let mut sample = Self::from_json(&json, run, study);
        sample.remove_bent(&mut json, late_flows, study);
        sample.disturbed = disturbing.map(disturbance);
        sample
    }

    /// Reads the metrics of `study` from the summary of a repetition.
    fn from_json(json: &Json, run: RunId, study: &Study) -> Self {
        let mut values = BTreeMap::new();
        for path in &study.metrics {
            if let Some(value) = metric::value(json, path, &study.derived) {
                values.insert(path.clone(), value);
            }
        }
        let RunId { repetition, seed } = run;
        Self { repetition, seed, values, ..Self::default() }
    }
}

/// Reads the fields of log.txt by flow, with the time stamps in ms of run time. Returns `null` if the study
/// reads no field of it.
fn log_fields(record: &RunRecord, study: &Study) -> Json {
    let is_of_log = |metric: &str| metric.starts_with("log.");
    let is_read = study.metrics.iter().any(|metric| is_of_log(metric))
        || study.derived.values().flat_map(Derived::parts).any(is_of_log);
    if !is_read {
        return Json::Null;
    }
    let text = log_txt(record, |at| format!("{} ms", at.as_nanos() as f64 / 1e6));
    let mut flows = serde_json::Map::new();
    // The file has a block of lines for each flow.
    for block in text.split("\n\n") {
        let fields: serde_json::Map<String, Json> = block.lines().filter_map(log_field).collect();
        if let Some(Json::String(flow)) = fields.get("flow") {
            flows.insert(flow.clone(), Json::Object(fields));
        }
    }
    Json::Object(flows)
}

/// Reads a line of log.txt: `Packets received: 10` is (`packets_received`, 10). Only the first word of the
/// value is read, as a number if it is one.
fn log_field(line: &str) -> Option<(String, Json)> {
    let (name, value) = line.split_once(": ")?;
    let word = value.split_whitespace().next()?;
    let value = match word.parse::<f64>() {
        Ok(number) => Json::from(number),
        Err(_) => Json::from(word),
    };
    Some((name.to_lowercase().replace(' ', "_"), value))
}

/// Computes the figures over time that the claims read of `cell`.
fn over_time(record: &RunRecord, study: &Study, cell: &Cell) -> Json {
    let mut figures = serde_json::Map::new();
    for name in &cell.kept.over_time {
        let Some(Derived::OverTime(over_time)) = study.derived.get(name) else { continue };
        if let Some(figure) = over_time.value(record) {
            figures.insert(name.clone(), Json::from(figure));
        }
    }
    Json::Object(figures)
}

/// Says how the machine disturbed a repetition, from the warnings of the repetition.
fn disturbance(warnings: &[String]) -> String {
    match warnings {
        [] => "the machine disturbed it past its stated limits".to_owned(),
        warnings => warnings.join("; "),
    }
}

/// Computes the percentiles 1 to 99 of the delays of the flows called `names`, and of their copies. A flow
/// that was late has only the percentiles that it bears.
fn delay_percentiles(
    record: &RunRecord,
    names: &[String],
    late_flows: &[LateFlow],
) -> BTreeMap<String, Vec<f64>> {
    let window = record.window_start..record.window_end;
    let mut by_flow = BTreeMap::new();
    for flow in &record.flows {
        let name = &flow.info.name;
        if !names.iter().any(|wanted| is_flow_or_copy(name, wanted)) {
            continue;
        }
        let late_flow = late_flows.iter().find(|late| late.name == *name);
        let sorted = delay::sorted_delays(&flow.trips(&window));
        let mut delays = Vec::new();
        for percent in 1..100 {
            let percentile = PerMille(10 * percent);
            if late_flow.is_some_and(|late| !late.bears(percentile)) {
                break;
            }
            delays.extend(nearest_rank(&sorted, percentile).map(SignedDuration::as_millis_f64));
        }
        by_flow.insert(name.clone(), delays);
    }
    by_flow
}

impl StateTrace {
    /// Makes the trace of a repetition of `cell` from its record, and from what was `watched` of it packet by
    /// packet. Returns `None` if no figure draws the cell's traces.
    pub fn from_run(record: &RunRecord, cell: &Cell, watched: &Json) -> Option<Self> {
        let stretches = &cell.kept.traces;
        if stretches.is_empty() {
            return None;
        }
        let mut lines = Vec::new();
        for series in &record.series {
            let kind = series.kind.name();
            let Some(&stretch) = stretches.get(kind) else { continue };
            let points = series.points.iter().map(|(at, value)| (seconds(at.as_nanos()), *value));
            lines.push(TraceLine {
                entity: series.entity.clone(),
                kind: kind.to_owned(),
                points: clip(points, stretch),
            });
        }
        // The record has no series of the goodput. It is computed from the messages of the flows.
        if let Some(&stretch) = stretches.get("goodput") {
            lines.extend(record.flows.iter().map(|flow| goodput_line(flow, stretch)));
        }
        for (series, &stretch) in stretches {
            if let Some(link) = throughput_link(series) {
                lines.extend(throughput_lines(&watched["links"][link]["throughput_kbps"], series, stretch));
            }
        }
        let loss_runs = match stretches.get("loss-runs") {
            Some(&stretch) => loss_runs(record, stretch),
            None => Vec::new(),
        };
        Some(Self { lines, loss_runs })
    }

    /// Returns the values of the banded lines at equal steps of time, by series and entity
    /// (`TraceLine::key`). The steps divide the stretch that the figures of `cell` show.
    pub fn instants(&self, cell: &Cell) -> BTreeMap<String, Vec<f64>> {
        let mut instants = BTreeMap::new();
        for line in self.lines.iter().filter(|line| is_banded(&line.kind)) {
            if let Some(&stretch) = cell.kept.traces.get(&line.kind) {
                instants.insert(line.key(), at_steps(&line.points, stretch));
            }
        }
        instants
    }
}

/// Finds the runs of missing messages that begin within `stretch`, in the flows that send by a clock.
fn loss_runs(record: &RunRecord, stretch: Stretch) -> Vec<LossRun> {
    let mut loss_runs = Vec::new();
    for flow in record.flows.iter().filter(|flow| flow.info.clocked) {
        let mut current_run: Option<LossRun> = None;
        for message in &flow.forward.messages {
            match message.fate {
                Fate::Missing | Fate::Expired | Fate::NoNetwork | Fate::NotOpen => {
                    let run = current_run.get_or_insert_with(|| LossRun {
                        flow: flow.info.name.clone(),
                        at_s: seconds(message.due.as_nanos()),
                        length: 0,
                    });
                    run.length += 1;
                }
                Fate::Delivered => loss_runs.extend(current_run.take()),
                // Such a message neither lengthens a run nor ends it.
                Fate::Unfinished | Fate::Refused => {}
            }
        }
        loss_runs.extend(current_run);
    }
    loss_runs.retain(|run| stretch.holds(run.at_s));
    loss_runs
}

/// Computes the goodput of a flow in each whole second, in kb/s.
fn goodput_line(flow: &FlowRecord, stretch: Stretch) -> TraceLine {
    let time = Instant::ZERO..Instant::from_secs(stretch.to.ceil() as u64);
    let bits = goodput::bits_per_second(flow, &time);
    let points = bits.iter().enumerate().map(|(second, &bits)| (second as f64, bits as f64 / 1e3));
    TraceLine { entity: flow.info.name.clone(), kind: "goodput".to_owned(), points: clip(points, stretch) }
}

/// Reads the throughput of each flow in each second, in kb/s.
fn throughput_lines(by_flow: &Json, series: &str, stretch: Stretch) -> Vec<TraceLine> {
    let mut lines = Vec::new();
    for (flow, seconds) in by_flow.as_object().into_iter().flatten() {
        let values = seconds.as_array().into_iter().flatten().filter_map(Json::as_f64);
        let points = values.enumerate().map(|(second, value)| (second as f64, value));
        lines.push(TraceLine {
            entity: flow.clone(),
            kind: series.to_owned(),
            points: clip(points, stretch),
        });
    }
    lines
}

/// Returns the points within `stretch`. The first point is at the beginning of the stretch, and has the value
/// that held there.
pub(crate) fn clip(points: impl Iterator<Item = (f64, f64)>, stretch: Stretch) -> Vec<(f64, f64)> {
    let Stretch { from, to } = stretch;
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (at, value) in points.take_while(|point| point.0 <= to) {
        // An earlier value no longer holds when the stretch begins.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_a_field() {
        for (line, name, value) in [
            ("Packet size: 1024 bytes", "packet_size", Json::from(1024.0)),
            ("Protocol: tcp-nodelay", "protocol", Json::from("tcp-nodelay")),
            ("End timestamp: none", "end_timestamp", Json::from("none")),
        ] {
            assert_eq!(log_field(line), Some((name.to_owned(), value)));
        }
        assert_eq!(log_field(""), None);
    }

    #[test]
    fn the_throughput_of_a_link_has_a_line_for_each_flow() {
        let watched = serde_json::json!({ "call": [0.0, 64.0, 75.2], "ftp": [1.0, 2.0, 3.0] });
        let lines = throughput_lines(&watched, "throughput wan", Stretch { from: 1.0, to: 2.0 });
        let found: Vec<_> = lines.iter().map(|line| (line.entity.as_str(), line.points.as_slice())).collect();
        let (call, ftp) = ([(1.0, 64.0), (2.0, 75.2)], [(1.0, 2.0), (2.0, 3.0)]);
        assert_eq!(found, [("call", call.as_slice()), ("ftp", ftp.as_slice())]);
        assert_eq!(throughput_lines(&Json::Null, "throughput wan", Stretch { from: 0.0, to: 2.0 }), []);
    }

    #[test]
    fn a_clipped_line_begins_with_the_value_that_held() {
        let points = [(0.0, 1.0), (4.0, 2.0), (6.0, 3.0), (11.0, 4.0)];
        let stretch = Stretch { from: 5.0, to: 10.0 };
        assert_eq!(clip(points.into_iter(), stretch), [(5.0, 2.0), (6.0, 3.0)]);
    }
}
