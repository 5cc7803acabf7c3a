//! What a study keeps of a run: the metrics that its claims read, and of the first repetition what its
//! figures draw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use talkpath_measure::log::log_txt;
use talkpath_measure::metrics::percentile::{PerMille, nearest_rank};
use talkpath_measure::metrics::{delay, goodput};
use talkpath_measure::summary::{Clock, FlowSummary, RunSummary};
use talkpath_measure::{Fate, FlowRecord, LateFlow, RunRecord};
use talkpath_units::Instant;

use crate::arena::ArenaName;
use crate::band::{at_steps, is_banded};
use crate::late;
use crate::metric::{self, Derived};
use crate::over_time::is_flow_of;
use crate::stretch::Stretch;
use crate::study::{Cell, Study};

/// The repetitions of one cell. A line of a study's journal is one of one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSamples {
    /// The cell's name.
    pub cell: String,
    /// Where it ran.
    pub arena: ArenaName,
    /// The assumption set's name.
    pub assumption: String,
    /// The cell's own, when it ran.
    pub fingerprint: String,
    /// One a repetition, in order.
    pub samples: Vec<Sample>,
    /// Of the first repetition, or of the first of each kind, if a figure shows it; by repetition.
    #[serde(default)]
    pub traces: Vec<KeptTrace>,
    /// What bent the runs, in words for a person.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl CellSamples {
    /// Before the first repetition of `cell`, whose assumption set is called `assumption`.
    pub fn begin(cell: &Cell, assumption: &str, fingerprint: &str) -> Self {
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

    /// Adds a repetition in its place.
    pub fn add(&mut self, sample: Sample) {
        let at = self.samples.partition_point(|before| before.repetition < sample.repetition);
        self.samples.insert(at, sample);
    }

    /// The repetitions that the machine did not disturb past its stated limits: the ones that are judged.
    pub fn valid(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.disturbed.is_none())
    }

    /// Whether the machine bent `metric` in one of the repetitions.
    pub(crate) fn is_bent(&self, metric: &str) -> bool {
        self.samples.iter().any(|sample| sample.bent.iter().any(|bent| bent == metric))
    }

    /// One metric by repetition, for repetitions that are judged and know it.
    pub(crate) fn figures(&self, metric: &str) -> BTreeMap<u64, f64> {
        self.valid().filter_map(|sample| Some((sample.repetition, *sample.values.get(metric)?))).collect()
    }

    /// One metric over the repetitions that are judged and know it.
    pub(crate) fn values(&self, metric: &str) -> Vec<f64> {
        self.figures(metric).into_values().collect()
    }
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
    /// The most other runs of the study that stood beside it; 0 in virtual time.
    #[serde(default)]
    pub beside: u64,
    /// Why this repetition is not judged: the machine disturbed it past its stated limits.
    #[serde(default)]
    pub disturbed: Option<String>,
    /// Metrics that are absent, since the machine made packets late and they are not the path's alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bent: Vec<String>,
    /// Delays in ms at every percentile from 1 to 99, by flow; of the flows that a figure shows.
    #[serde(default)]
    pub delays: BTreeMap<String, Vec<f64>>,
    /// What is drawn of the cell over time, at equal steps, by series and entity: every repetition's, for the
    /// band beside the one that is shown.
    #[serde(default)]
    pub instants: BTreeMap<String, Vec<f64>>,
}

/// The trace of one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptTrace {
    /// Which.
    pub repetition: u64,
    /// Its values of the metrics that distinguish kinds of runs; none if the figures know no kinds.
    pub kinds: Vec<(String, f64)>,
    /// What the figures draw.
    pub trace: StateTrace,
}

/// State over time within a figure's stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateTrace {
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
    /// `cwnd`, `queue`, `goodput`.
    pub kind: String,
    /// (time in s, value).
    pub points: Vec<(f64, f64)>,
}

impl TraceLine {
    /// What it is called among a repetition's `instants`.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.kind, self.entity)
    }
}

/// Consecutive missing messages of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossRun {
    /// Which flow.
    pub flow: String,
    /// When the first message was due, s.
    pub at_s: f64,
    /// How many.
    pub length: u64,
}

/// Which run a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId {
    /// From 0.
    pub repetition: u64,
    /// What it ran with.
    pub seed: u64,
}

impl Sample {
    /// What `study` reads from `record`, a run of `cell`: from its summary, and from what was `watched`
    /// packet by packet (`null` if nothing was). The caller adds its `instants`, from
    /// [`StateTrace::instants`].
    pub fn of(record: &RunRecord, run: &RunSummary, study: &Study, cell: &Cell, watched: Json) -> Self {
        let mut json = serde_json::to_value(run).unwrap_or_default();
        json["clock"] = serde_json::to_value(Clock::from(&record.clock)).unwrap_or_default();
        json["log"] = logged(record, study);
        json[metric::WATCHED] = watched;
        json[metric::OVER_TIME] = over_time(record, study, cell);
        let id = RunId { repetition: run.repetition, seed: run.seed };
        let whole = Self::of_json(&json, id, study);
        let late_flows = record.machine.as_ref().map_or(&[][..], |machine| &machine.late_flows);
        late::take_out(&mut json, late_flows);
        let stands = |metric: &String| metric::value(&json, metric, &study.derived).is_some();
        let (values, bent): (BTreeMap<_, _>, BTreeMap<_, _>) =
            whole.values.into_iter().partition(|(metric, _)| stands(metric));
        Self {
            values,
            bent: bent.into_keys().collect(),
            disturbed: (!record.valid && late_flows.is_empty()).then(|| disturbance(&record.warnings)),
            delays: delays(record, &cell.kept.delays, late_flows),
            ..whole
        }
    }

    /// Whether the machine spoiled nothing that is read of this repetition.
    pub fn is_whole(&self) -> bool {
        self.disturbed.is_none() && self.bent.is_empty()
    }

    /// What `study` reads of one repetition that a campaign measured: its `flows`, and its measurement's
    /// `clock`. `disturbing` has the warnings if the machine disturbed it past its stated limits.
    pub fn of_campaign(
        flows: &BTreeMap<&str, &FlowSummary>,
        clock: &Clock,
        run: RunId,
        disturbing: Option<&[String]>,
        study: &Study,
    ) -> Self {
        let json = serde_json::json!({ "flows": flows, "clock": clock });
        let disturbed = disturbing.map(disturbance);
        Self { disturbed, ..Self::of_json(&json, run, study) }
    }

    fn of_json(json: &Json, run: RunId, study: &Study) -> Self {
        let value = |path: &String| Some((path.clone(), metric::value(json, path, &study.derived)?));
        let RunId { repetition, seed } = run;
        Self {
            repetition,
            seed,
            values: study.metrics.iter().filter_map(value).collect(),
            beside: 0,
            disturbed: None,
            bent: Vec::new(),
            delays: BTreeMap::new(),
            instants: BTreeMap::new(),
        }
    }
}

/// The fields of the run's log.txt by flow, with the stamps in ms of run time; `null` if the study reads
/// none.
fn logged(record: &RunRecord, study: &Study) -> Json {
    let derived = study.derived.values().flat_map(Derived::parts);
    if !study.metrics.iter().map(String::as_str).chain(derived).any(|metric| metric.starts_with("log.")) {
        return Json::Null;
    }
    let text = log_txt(record, |at| format!("{} ms", at.as_nanos() as f64 / 1e6));
    let mut flows = serde_json::Map::new();
    for block in text.split("\n\n") {
        let fields: serde_json::Map<String, Json> = block.lines().filter_map(field).collect();
        if let Some(Json::String(flow)) = fields.get("flow") {
            flows.insert(flow.clone(), Json::Object(fields));
        }
    }
    Json::Object(flows)
}

/// `Packets received: 10` as (`packets_received`, 10): the first word, as a number if it is one.
fn field(line: &str) -> Option<(String, Json)> {
    let (name, value) = line.split_once(": ")?;
    let first = value.split_whitespace().next()?;
    let value = first.parse::<f64>().map_or_else(|_| Json::from(first), Json::from);
    Some((name.to_lowercase().replace(' ', "_"), value))
}

/// What the claims read of the series of a run of `cell`.
fn over_time(record: &RunRecord, study: &Study, cell: &Cell) -> Json {
    let figure = |name: &String| match study.derived.get(name)? {
        Derived::OverTime(over_time) => Some((name.clone(), Json::from(over_time.of(record)?))),
        _ => None,
    };
    Json::Object(cell.kept.over_time.iter().filter_map(figure).collect())
}

fn disturbance(warnings: &[String]) -> String {
    match warnings {
        [] => "the machine disturbed it past its stated limits".to_owned(),
        warnings => warnings.join("; "),
    }
}

/// Percentiles 1 to 99 of the trips of the flows that `names` mean; of a flow that was `late`, as far as it
/// bears them.
fn delays(record: &RunRecord, names: &[String], late: &[LateFlow]) -> BTreeMap<String, Vec<f64>> {
    let window = record.window_start..record.window_end;
    let is_kept = |name: &str| names.iter().any(|wanted| is_flow_of(name, wanted));
    let kept = record.flows.iter().filter(|flow| is_kept(&flow.info.name));
    let quantiles = |flow: &FlowRecord| {
        let sorted = delay::sorted_delays(&flow.trips(&window));
        let late = late.iter().find(|late| late.name == flow.info.name);
        let is_borne = |quantile: &PerMille| late.is_none_or(|late| late.bears(*quantile));
        let at = |quantile: PerMille| Some(nearest_rank(&sorted, quantile)?.as_millis_f64());
        (1..100).map(|percent| PerMille(10 * percent)).take_while(is_borne).filter_map(at).collect()
    };
    kept.map(|flow| (flow.info.name.clone(), quantiles(flow))).collect()
}

impl StateTrace {
    /// What the figures draw from `record`, a run of `cell`; `None` if they draw nothing from it.
    pub fn of(record: &RunRecord, cell: &Cell) -> Option<Self> {
        let kept = &cell.kept.traces;
        if kept.is_empty() {
            return None;
        }
        let state = record.series.iter().filter_map(|series| {
            let kind = series.kind.name();
            let stretch = *kept.get(kind)?;
            let points = series.points.iter().map(|(at, value)| (seconds(at.as_nanos()), *value));
            Some(TraceLine {
                entity: series.entity.clone(),
                kind: kind.to_owned(),
                points: cut(points, stretch),
            })
        });
        let goodput = kept.get("goodput").copied();
        let goodput = goodput
            .into_iter()
            .flat_map(|stretch| record.flows.iter().map(move |flow| goodput_line(flow, stretch)));
        let loss_runs = kept.get("loss-runs").map(|stretch| loss_runs(record, *stretch));
        Some(Self { lines: state.chain(goodput).collect(), loss_runs: loss_runs.unwrap_or_default() })
    }

    /// What the banded lines have at each step of the stretch that figures of `cell` show, by series and
    /// entity.
    pub fn instants(&self, cell: &Cell) -> BTreeMap<String, Vec<f64>> {
        let at = |line: &TraceLine| {
            let stretch = *cell.kept.traces.get(&line.kind)?;
            Some((line.key(), at_steps(&line.points, stretch)))
        };
        self.lines.iter().filter(|line| is_banded(&line.kind)).filter_map(at).collect()
    }
}

fn loss_runs(record: &RunRecord, stretch: Stretch) -> Vec<LossRun> {
    let mut loss_runs = Vec::new();
    for flow in record.flows.iter().filter(|flow| flow.info.clocked) {
        let mut run: Option<LossRun> = None;
        for message in &flow.forward.messages {
            match message.fate {
                Fate::Missing | Fate::Expired | Fate::NoNetwork | Fate::NotOpen => {
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
    loss_runs.retain(|run| stretch.holds(run.at_s));
    loss_runs
}

/// kb/s that a flow delivered in each whole second.
fn goodput_line(flow: &FlowRecord, stretch: Stretch) -> TraceLine {
    let bits = goodput::bits_per_second(flow, &(Instant::ZERO..Instant::from_secs(stretch.to.ceil() as u64)));
    let points = bits.iter().enumerate().map(|(second, &bits)| (second as f64, bits as f64 / 1e3));
    TraceLine { entity: flow.info.name.clone(), kind: "goodput".to_owned(), points: cut(points, stretch) }
}

/// The points of the stretch, the first of them at `from` with the value that held there.
pub(crate) fn cut(points: impl Iterator<Item = (f64, f64)>, stretch: Stretch) -> Vec<(f64, f64)> {
    let Stretch { from, to } = stretch;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_a_field() {
        let of = |line| field(line).map(|(name, value)| format!("{name} {value}"));
        assert_eq!(of("Packet size: 1024 bytes").as_deref(), Some("packet_size 1024.0"));
        assert_eq!(of("Protocol: tcp-nodelay").as_deref(), Some("protocol \"tcp-nodelay\""));
        assert_eq!(of("End timestamp: none").as_deref(), Some("end_timestamp \"none\""));
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_cut_begins_with_the_value_that_held() {
        let points = [(0.0, 1.0), (4.0, 2.0), (6.0, 3.0), (11.0, 4.0)];
        let stretch = Stretch { from: 5.0, to: 10.0 };
        assert_eq!(cut(points.into_iter(), stretch), [(5.0, 2.0), (6.0, 3.0)]);
    }
}
