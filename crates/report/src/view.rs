//! Reading a [`Summary`]: which cells belong side by side, what they are called, and which figure represents
//! a flow.
//!
//! With one repetition the figure is the run's own; with several it is the mean or the median over them
//! (`measure::statistic` says which), as `measure` computed it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use talkpath_measure::figures::{FLOW, GROUP, statistic_of};
use talkpath_measure::judge::{Receiver, judge, judge_with};
use talkpath_measure::metrics::confidence::Confidence;
use talkpath_measure::ranking::clusters::{Clusters, clusters};
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{
    CellSummary, FlowSummary, GroupSummary, JudgedBy, JudgedFigure, LinkSummary, RunSummary, Spread, Summary,
};

use crate::display::{self, Display};

/// What a delay was measured between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DelayKind {
    RoundTrip,
    OneWay,
}

/// The figures that tables and sentences show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    Delay(DelayKind, Quantile),
    /// 99th percentile of what the echoing host took.
    TurnRound99,
    /// 90th percentile of the unsigned IPDV: the tables' "jitter".
    Ipdv90,
    Sent,
    Lost,
    LossRate,
    /// Share of the messages sent that were still queued or in flight at the end.
    Unfinished,
    InTime,
    /// Opinion score of a call.
    Mos,
    /// The same with the second receiver.
    OtherMos,
    /// Median from a speaker's mouth to the listener's ear.
    MouthToEar50,
    /// Share of a call's frames that were late or missing at their playout.
    NotPlayed,
    GoodputBps,
    RetransmitRate,
    /// From the flow's start to the moment from which a message could leave.
    Opening,
    /// A figure of a flow's copies together, by its path: its flow is the name of their group.
    Group(&'static str),
}

/// Which point of a delay's distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantile {
    Min,
    P50,
    P90,
    P99,
}

/// One cell of the sweep with its runs.
#[derive(Clone, Debug)]
pub(crate) struct CellView<'a> {
    pub cell: &'a CellSummary,
    /// Every finished repetition, in order.
    pub runs: Vec<&'a RunSummary>,
}

/// How a cell's transport is named and drawn.
#[derive(Clone, Debug)]
pub(crate) struct TransportView {
    /// As the user wrote it: `tcp-nodelay`.
    pub kind: String,
    /// For people, with the options that the sweep sets: `TCP (cc reno)`.
    pub label: String,
    pub display: &'static Display,
}

impl DelayKind {
    /// `round trip`, for column heads and sentences.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trip",
            Self::OneWay => "one way",
        }
    }

    /// How often it crosses the path.
    pub(crate) const fn trips(self) -> f64 {
        match self {
            Self::RoundTrip => 2.0,
            Self::OneWay => 1.0,
        }
    }

    /// `rtt` or `owd`, for narrow columns.
    pub(crate) fn abbreviation(self) -> &'static str {
        match self {
            Self::RoundTrip => "rtt",
            Self::OneWay => "owd",
        }
    }
}

impl Metric {
    /// The path of its figure below a flow of summary.json; `None` of what is made of several figures, for
    /// which the cell's figures have no entry, and of a group's.
    const fn path(self) -> Option<&'static str> {
        Some(match self {
            Self::Delay(DelayKind::RoundTrip, Quantile::Min) => "round_trip_delay_ms.min",
            Self::Delay(DelayKind::RoundTrip, Quantile::P50) => "round_trip_delay_ms.p50",
            Self::Delay(DelayKind::RoundTrip, Quantile::P90) => "round_trip_delay_ms.p90",
            Self::Delay(DelayKind::RoundTrip, Quantile::P99) => "round_trip_delay_ms.p99",
            Self::Delay(DelayKind::OneWay, Quantile::Min) => "one_way_delay_ms.min",
            Self::Delay(DelayKind::OneWay, Quantile::P50) => "one_way_delay_ms.p50",
            Self::Delay(DelayKind::OneWay, Quantile::P90) => "one_way_delay_ms.p90",
            Self::Delay(DelayKind::OneWay, Quantile::P99) => "one_way_delay_ms.p99",
            Self::TurnRound99 => "turn_round_ms.p99",
            Self::Ipdv90 => "ipdv_ms.p90",
            Self::Sent => "sent",
            Self::Lost => "lost",
            Self::LossRate => "loss_rate",
            Self::InTime => "in_time",
            Self::Mos => "call.mos",
            Self::OtherMos => "call.other_receiver.mos",
            Self::MouthToEar50 => "call.mouth_to_ear_ms.p50",
            Self::NotPlayed | Self::Unfinished | Self::Group(_) => return None,
            Self::GoodputBps => "goodput_bps",
            Self::RetransmitRate => "retransmit_rate",
            Self::Opening => "opening_ms",
        })
    }

    /// The metric of one repetition.
    fn of_flow(self, flow: &FlowSummary) -> Option<f64> {
        if self == Self::Unfinished {
            return (flow.sent > 0).then(|| flow.unfinished as f64 / flow.sent as f64);
        }
        let Some(path) = self.path() else {
            let call = flow.call.as_ref()?;
            let due = call.played + call.late + call.missing;
            return (due > 0).then(|| (call.late + call.missing) as f64 / due as f64);
        };
        FLOW.find(path)?.number(flow)
    }

    /// The metric of `run`: of the flow, or of the copies that are summed up under its name.
    pub(crate) fn of_run(self, run: &RunSummary, flow: &str) -> Option<f64> {
        if let Self::Group(path) = self {
            return GROUP.find(path)?.number(run.groups.get(flow)?);
        }
        match run.flows.get(flow) {
            Some(flow) => self.of_flow(flow),
            None => self.of_group(run.groups.get(flow).filter(|group| group.summed_up)?)?.1,
        }
    }

    /// The metric of copies that are summed up: its path in [`CellSummary::groups`], and its value in one
    /// repetition, whose copies are `group`. Counts and goodput are sums, delays the mean of the copies'
    /// medians, and what they are judged by is its median. `None` if they have no such metric.
    fn of_group(self, group: &GroupSummary) -> Option<(&'static str, Option<f64>)> {
        let is_judged_by = |by| group.judged.as_ref().is_some_and(|judged| judged.by == by);
        let path = match self {
            Self::InTime if is_judged_by(JudgedBy::InTime) => "judged.median",
            Self::Mos if is_judged_by(JudgedBy::Mos) => "judged.median",
            Self::OtherMos => "judged_with_other_receiver.median",
            Self::Delay(DelayKind::RoundTrip, Quantile::P50) => "round_trip_delay_ms_p50_mean",
            Self::Delay(DelayKind::OneWay, Quantile::P50) => "one_way_delay_ms_p50_mean",
            Self::Sent | Self::Lost | Self::LossRate | Self::GoodputBps | Self::RetransmitRate => {
                self.path()?
            }
            Self::Delay(..)
            | Self::TurnRound99
            | Self::Ipdv90
            | Self::InTime
            | Self::Mos
            | Self::MouthToEar50
            | Self::NotPlayed
            | Self::Unfinished
            | Self::Opening
            | Self::Group(_) => return None,
        };
        Some((path, GROUP.find(path)?.number(group)))
    }
}

impl<'a> CellView<'a> {
    /// Every cell of the summary, in the sweep's order.
    pub(crate) fn all(summary: &'a Summary) -> Vec<Self> {
        let mut runs: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
        summary.counted_runs().for_each(|run| runs.entry(run.cell).or_default().push(run));
        runs.values_mut().for_each(|runs| runs.sort_by_key(|run| run.repetition));
        let view = |cell| Self { cell, runs: runs.remove(&cell.cell).unwrap_or_default() };
        summary.cells.iter().map(view).collect()
    }

    /// The cell `number` alone; `None` if the summary has none.
    pub(crate) fn of(summary: &'a Summary, number: u64) -> Option<Self> {
        let cell = summary.cells.iter().find(|cell| cell.cell == number)?;
        let mut runs: Vec<_> = summary.counted_runs().filter(|run| run.cell == number).collect();
        runs.sort_by_key(|run| run.repetition);
        Some(Self { cell, runs })
    }

    /// The first repetition that counts; it names transports.
    pub(crate) fn run(&self) -> Option<&'a RunSummary> {
        self.runs.first().copied()
    }

    /// The flow's entry in the first run.
    pub(crate) fn flow(&self, name: &str) -> Option<&'a FlowSummary> {
        self.run()?.flows.get(name).map(Box::as_ref)
    }

    /// The names of the first run's flows; those whose copies are summed up last.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.run().into_iter().flat_map(names)
    }

    /// The names of the flows that have copies.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.run().into_iter().flat_map(|run| run.groups.keys())
    }

    /// The copies of the flow `name` together, if they are summed up.
    pub(crate) fn summed_up(&self, name: &str) -> Option<&'a GroupSummary> {
        self.run()?.groups.get(name).map(Box::as_ref).filter(|group| group.summed_up)
    }

    /// As [`Self::summed_up`], also if `name` is that of one of the copies, as figures have.
    fn of_copies(&self, name: &str) -> Option<&'a GroupSummary> {
        let is_of = |group: &str| group == name || is_copy(name, group);
        self.run()?.summed_up().find(|(group, _)| is_of(group)).map(|(_, group)| group)
    }

    /// The flow called `name`, or of its copies (`name-1`, `name-up`) the one that most repetitions are
    /// judged by: a call is as good as its worse direction. Of copies that are not judged, the one with the
    /// highest p90.
    pub(crate) fn resolve(&self, name: &str) -> Option<&'a str> {
        let flows = &self.run()?.flows;
        if let Some((key, _)) = flows.get_key_value(name) {
            return Some(key);
        }
        if self.summed_up(name).is_some() {
            return self.run()?.groups.get_key_value(name).map(|(key, _)| key.as_str());
        }
        let worst: Vec<String> =
            self.runs.iter().filter_map(|run| Some(judge(run, name)?.worst_flow)).collect();
        let rank = |key: &str| {
            let p90 = self.value(key, Metric::Delay(self.delay_kind(key), Quantile::P90));
            (worst.iter().filter(|copy| *copy == key).count(), p90.unwrap_or(f64::INFINITY))
        };
        let worse = |a: &&str, b: &&str| {
            let (a, b) = (rank(a), rank(b));
            b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
        };
        flows.keys().map(String::as_str).filter(|key| is_copy(key, name)).min_by(worse)
    }

    /// The figure that represents this cell: the only repetition's own, or the mean or the median as the
    /// summary has it; `None` if it is not known.
    pub(crate) fn value(&self, flow: &str, metric: Metric) -> Option<f64> {
        let (kept, path) = match (metric, self.summed_up(flow)) {
            (Metric::Group(path), _) => (&self.cell.groups, Some(path)),
            (_, Some(group)) => (&self.cell.groups, Some(metric.of_group(group)?.0)),
            (_, None) => (&self.cell.flows, metric.path()),
        };
        if self.cell.n <= 1 {
            return metric.of_run(self.run()?, flow);
        }
        let kept = path.and_then(|path| kept.get(flow)?.get(path));
        match kept {
            Some(spread) => Some(shown(path, spread)),
            // Summaries of earlier versions have no groups, and of the frames that were not played no entry.
            None => Some(shown(path, &Confidence::default().spread(&self.values(flow, metric))?)),
        }
    }

    /// The share of unfinished messages, if it is so large that a share of losses says little without it.
    pub(crate) fn many_unfinished(&self, flow: &str) -> Option<f64> {
        self.value(flow, Metric::Unfinished).filter(|share| *share > MANY_UNFINISHED)
    }

    /// `metric` in each repetition that knows it.
    pub(crate) fn values(&self, flow: &str, metric: Metric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| metric.of_run(run, flow)).collect()
    }

    /// The two clusters of `metric` over the repetitions, if their means differ by `gap` or more.
    pub(crate) fn two_outcomes(&self, flow: &str, metric: Metric, gap: f64) -> Option<Clusters> {
        clusters(&self.values(flow, metric), gap)
    }

    /// Whether not one message of `flow` was delivered in any repetition.
    pub(crate) fn is_silent(&self, flow: &str) -> bool {
        let Some(flow) = self.resolve(flow) else { return false };
        let received = |run: &RunSummary| match run.flows.get(flow) {
            Some(flow) => flow.received,
            None => run.groups.get(flow).map_or(0, |group| group.received),
        };
        self.runs.iter().all(|run| received(run) == 0)
    }

    /// Whether the connection of `flow` opened in no repetition.
    pub(crate) fn is_unopened(&self, flow: &str) -> bool {
        let Some(flow) = self.resolve(flow) else { return false };
        let never = |run: &RunSummary| {
            let flow = run.flows.get(flow);
            flow.is_some_and(|flow| {
                flow.opening_ms.is_none() && flow.ledger.is_some_and(|ledger| ledger.not_open > 0)
            })
        };
        !self.runs.is_empty() && self.runs.iter().all(|run| never(run))
    }

    /// What `flow` is judged by in each repetition.
    pub(crate) fn judged_figures(&self, flow: &str) -> BTreeMap<u64, JudgedFigure> {
        self.judged_figures_with(flow, Receiver::Own)
    }

    /// The same with this receiver: nothing of the second one if there is none.
    pub(crate) fn judged_figures_with(&self, flow: &str, receiver: Receiver) -> BTreeMap<u64, JudgedFigure> {
        let judged = |run: &&RunSummary| Some((run.repetition, judge_with(run, flow, receiver)?));
        self.runs.iter().filter_map(judged).collect()
    }

    /// A figure of each link, as the median over the repetitions; links that do not know it are left out.
    pub(crate) fn links(&self, figure: impl Fn(&LinkSummary) -> Option<f64>) -> BTreeMap<&'a str, f64> {
        let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, link) in self.runs.iter().flat_map(|run| &run.links) {
            values.entry(name).or_default().extend(figure(link));
        }
        let median = |values: &[f64]| Some(Confidence::default().spread(values)?.median);
        values.into_iter().filter_map(|(name, values)| Some((name, median(&values)?))).collect()
    }

    /// Round trip if the flow has an echo, else one way.
    pub(crate) fn delay_kind(&self, flow: &str) -> DelayKind {
        let has = |kind| self.value(flow, Metric::Delay(kind, Quantile::P50)).is_some();
        match has(DelayKind::RoundTrip) {
            true => DelayKind::RoundTrip,
            false => DelayKind::OneWay,
        }
    }

    /// The transport of `flow` in this cell: the sweep's value, else what the run recorded.
    pub(crate) fn transport(&self, flow: &str) -> TransportView {
        let swept = self.cell.sweep.get(&transport_key(flow));
        let mut flows = self.run().into_iter().flat_map(|run| &run.flows);
        let recorded = flows.find(|(name, _)| *name == flow || is_copy(name, flow));
        // A flow that wants Multipath TCP says how it went.
        let is_multipath = recorded.is_some_and(|(_, flow)| flow.multipath.is_some());
        let recorded = recorded.map(|(_, flow)| flow.transport.as_str());
        let recorded = recorded.or_else(|| Some(self.of_copies(flow)?.transport.as_str()));
        let mut view = match swept {
            Some(value) => transport_of(value, recorded.unwrap_or_default(), is_multipath),
            None => transport_of(&Value::from(recorded.unwrap_or_default()), "", is_multipath),
        };
        if let Some(run) = self.cell.sweep.get(RUN_KEY) {
            view.label = format!("{}, {}", view.label, plain(run));
        }
        view
    }

    /// Whether it is one of several runs' cells on a page.
    pub(crate) fn is_of_several_runs(&self) -> bool {
        self.cell.sweep.contains_key(RUN_KEY)
    }

    /// The sweep's keys and values without those in `leave_out`, as `path.up.loss = 0.01`.
    pub(crate) fn sweep_label(&self, leave_out: &[&str]) -> String {
        let rest = self.cell.sweep.iter().filter(|(key, _)| !leave_out.contains(&key.as_str()));
        rest.map(|(key, value)| format!("{key} = {}", plain(value))).collect::<Vec<_>>().join(", ")
    }
}

/// Chosen: with a tenth of the messages unfinished, the true share of losses can be far from that among the
/// others, and a queue of some hundred milliseconds leaves fewer.
const MANY_UNFINISHED: f64 = 0.1;

/// The statistic of the figure at `path` that represents a cell; without a path the figure is a share.
fn shown(path: Option<&str>, spread: &Spread) -> f64 {
    match path.map_or(Statistic::Mean, statistic_of) {
        Statistic::Median => spread.median,
        // No other statistic represents a figure unless somebody asks for it.
        Statistic::Mean | Statistic::P10 | Statistic::Min => spread.mean,
    }
}

/// The names of a run's flows; those whose copies are summed up last.
pub(crate) fn names(run: &RunSummary) -> impl Iterator<Item = &String> {
    run.flows.keys().chain(run.summed_up().map(|(name, _)| name))
}

/// Whether `name` is that of a copy of `flow`: `flow-1`, `flow-up`, `flow-1-up`
/// (docs/reference/interface.md).
pub(crate) fn is_copy(name: &str, flow: &str) -> bool {
    let Some(rest) = name.strip_prefix(flow).and_then(|rest| rest.strip_prefix('-')) else { return false };
    let number = rest.strip_suffix("-up").or(rest.strip_suffix("-down")).unwrap_or(rest);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number || matches!(rest, "up" | "down")
}

/// Whether `name` is that of a copy of `flow` by its number alone: `flow-1`.
pub(crate) fn is_numbered_copy(name: &str, flow: &str) -> bool {
    let number = name.strip_prefix(flow).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The flows whose transports are compared: those whose transport is swept; without any `call`, else the
/// first.
pub(crate) fn judged_flows(summary: &Summary) -> Vec<String> {
    let keys = summary.cells.iter().flat_map(|cell| cell.sweep.keys());
    let swept = keys.filter_map(|key| key.strip_prefix("flow.")?.strip_suffix(".transport"));
    let swept: BTreeSet<&str> = swept.collect();
    if !swept.is_empty() {
        return swept.into_iter().map(str::to_owned).collect();
    }
    let first = || summary.runs.first().and_then(|run| names(run).next()).map(String::as_str);
    let call = || summary.runs.iter().flat_map(names).any(|name| name == "call").then_some("call");
    vec![call().or_else(first).unwrap_or("call").to_owned()]
}

/// The first of the flows that are compared, which the figures over time show.
pub(crate) fn main_flow(summary: &Summary) -> String {
    judged_flows(summary).swap_remove(0)
}

/// The sweep key that distinguishes several runs on one page; no scenario key has this name.
pub(crate) const RUN_KEY: &str = "run";

/// The sweep's key for a flow's transport.
pub(crate) fn transport_key(flow: &str) -> String {
    format!("flow.{flow}.transport")
}

/// A sweep's value as a person writes it: strings without their quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(map) => {
            let options = map.iter().map(|(key, value)| match key.as_str() {
                "kind" => plain(value),
                _ => format!("{key} {}", plain(value)),
            });
            options.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// A transport is a string, or a table with `kind` and options, which then belong to its name. Multipath TCP
/// has a name of its own.
fn transport_of(value: &Value, recorded: &str, is_multipath: bool) -> TransportView {
    let is_multipath = is_multipath || value.get("multipath").and_then(Value::as_bool) == Some(true);
    let (kind, options) = match value {
        Value::Object(map) => {
            let kind = map.get("kind").and_then(Value::as_str).unwrap_or(recorded);
            let options =
                map.iter().filter(|(key, _)| *key != "kind" && !(is_multipath && *key == "multipath"));
            (kind, options.map(|(key, value)| format!("{key} {}", plain(value))).collect::<Vec<_>>())
        }
        Value::String(kind) => (kind.as_str(), Vec::new()),
        _ => (recorded, Vec::new()),
    };
    let multipath = display::multipath(kind).filter(|_| is_multipath);
    let display = multipath.unwrap_or_else(|| display::display(kind));
    let name = if display.name.is_empty() { kind } else { display.name };
    let label = match options.as_slice() {
        [] => name.to_owned(),
        options => format!("{name} ({})", options.join(", ")),
    };
    TransportView { kind: kind.to_owned(), label, display }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::MachineSummary;

    use super::*;
    use crate::fixture;

    #[test]
    fn what_was_disturbed_is_in_no_view_of_a_valid_run_and_in_those_of_one_that_is_not() {
        let mut summary = fixture::summary(3);
        let machine = MachineSummary { valid: Some(false), ..MachineSummary::default() };
        summary.runs[1].machine = Some(Box::new(machine));
        for (valid, count) in [(true, 2), (false, 3)] {
            summary.valid = valid;
            assert_eq!(CellView::all(&summary)[0].runs.len(), count);
            assert_eq!(CellView::of(&summary, 0).unwrap().runs.len(), count);
        }
    }

    #[test]
    fn one_repetition_shows_its_own_figures_and_several_their_mean_or_median() {
        let one = fixture::summary(1);
        let cell = &CellView::all(&one)[0];
        let p90 = Metric::Delay(DelayKind::RoundTrip, Quantile::P90);
        let own = one.runs[0].flows["call"].round_trip_delay_ms.as_ref().unwrap().p90;
        assert_eq!(cell.value("call", p90), Some(own));

        let five = fixture::summary(5);
        let cell = &CellView::all(&five)[0];
        let spread = &five.cells[0].flows["call"]["round_trip_delay_ms.p90"];
        assert_eq!(cell.value("call", p90), Some(spread.median));
        let spread = &five.cells[0].flows["call"]["call.mos"];
        assert_eq!(cell.value("call", Metric::Mos), Some(spread.mean));
    }

    #[test]
    fn a_copy_of_copies_that_are_summed_up_has_their_transport() {
        let mut summary = fixture::summary(1);
        let group = serde_json::json!({
            "flows": 600, "summed_up": true, "transport": "udp", "sent": 10, "received": 10, "lost": 0,
        });
        let group: GroupSummary = serde_json::from_value(group).unwrap();
        summary.runs[0].flows.remove("call");
        summary.runs[0].groups.insert("call".to_owned(), Box::new(group));
        let cell = &CellView::all(&summary)[0];
        assert_eq!(cell.transport("call-7").display.name, "UDP");
        assert_eq!(cell.transport("call-7").label, cell.transport("call").label);
    }

    #[test]
    fn copies_that_are_summed_up_show_the_mean_that_the_summary_has() {
        let mut summary = fixture::summary(3);
        for run in &mut summary.runs {
            let group = serde_json::json!({
                "flows": 600, "summed_up": true, "sent": 10, "received": 10, "lost": 0,
                "goodput_bps": 1e6, "one_way_delay_ms_p50_mean": 40.0,
            });
            let group: GroupSummary = serde_json::from_value(group).unwrap();
            run.flows.remove("call");
            run.groups.insert("call".to_owned(), Box::new(group));
        }
        fixture::refresh(&mut summary);
        let goodput = |summary: &Summary| CellView::all(summary)[0].value("call", Metric::GoodputBps);
        assert_eq!(goodput(&summary), Some(1e6));
        summary.cells[0].groups.get_mut("call").unwrap().get_mut("goodput_bps").unwrap().mean = 2e6;
        assert_eq!(goodput(&summary), Some(2e6), "as it stands, not computed again");
        // A summary of an earlier version.
        summary.cells[0].groups.clear();
        assert_eq!(goodput(&summary), Some(1e6));
        let cell = &CellView::all(&summary)[0];
        assert_eq!(cell.value("call", Metric::Delay(DelayKind::OneWay, Quantile::P50)), Some(40.0));
        assert_eq!(cell.value("call", Metric::Delay(DelayKind::OneWay, Quantile::P99)), None);
    }

    #[test]
    fn only_a_copys_name_is_taken_for_one() {
        for name in ["call-1", "call-12", "call-up", "call-down", "call-3-up", "call-3-down"] {
            assert!(is_copy(name, "call"), "{name}");
        }
        for name in ["call", "call-center", "call-", "call-up-1", "call-1-", "recall-1", "call--up"] {
            assert!(!is_copy(name, "call"), "{name}");
        }
    }

    #[test]
    fn a_transport_with_options_is_named_with_them() {
        let value = serde_json::json!({ "kind": "tcp", "cc": "reno" });
        let view = transport_of(&value, "", false);
        assert_eq!((view.label.as_str(), view.display.kind), ("TCP (cc reno)", "tcp"));
        assert_eq!(transport_of(&Value::from("pigeon"), "", false).label, "pigeon");
    }

    #[test]
    fn multipath_tcp_is_named_so_whether_the_sweep_or_the_run_says_it() {
        let swept = serde_json::json!({ "kind": "tcp-nodelay", "multipath": true, "cc": "reno" });
        let view = transport_of(&swept, "", false);
        assert_eq!((view.label.as_str(), view.kind.as_str()), ("MPTCP_NODELAY (cc reno)", "tcp-nodelay"));
        let off = serde_json::json!({ "kind": "tcp", "multipath": false });
        assert_eq!(transport_of(&off, "", false).display.kind, "tcp");
        let mut summary = fixture::summary(1);
        summary.cells.iter_mut().for_each(|cell| cell.sweep.clear());
        for run in &mut summary.runs {
            for flow in run.flows.values_mut() {
                flow.transport = "tcp".to_owned();
                flow.multipath = Some(talkpath_measure::summary::MultipathSummary {
                    fell_back: Some(false),
                    subflows_max: Some(2),
                });
            }
        }
        let view = CellView::all(&summary)[0].transport("call");
        assert_eq!((view.label.as_str(), view.display.kind), ("MPTCP", "mptcp"));
    }

    #[test]
    fn every_swept_flow_is_judged_and_the_first_is_the_one_to_look_at() {
        assert_eq!(main_flow(&fixture::summary(1)), "call");
        let mut summary = fixture::summary(1);
        summary.cells[0].sweep = [(transport_key("upload"), Value::from("tcp"))].into();
        assert_eq!(judged_flows(&summary), ["call", "upload"]);
        assert_eq!(main_flow(&summary), "call");
    }

    #[test]
    fn of_two_directions_the_worse_one_stands_for_the_flow() {
        let mut summary = fixture::summary(1);
        let down = summary.runs[0].flows.remove("call").unwrap();
        let mut up = down.clone();
        let delay = up.round_trip_delay_ms.as_mut().unwrap();
        (delay.p50, delay.p90, delay.p99, delay.max) = (457.0, 510.0, 522.0, 530.0);
        summary.runs[0].flows.insert("call-down".to_owned(), down);
        summary.runs[0].flows.insert("call-up".to_owned(), up);
        assert_eq!(CellView::all(&summary)[0].resolve("call"), Some("call-up"));
    }

    #[test]
    fn a_copied_flow_is_found_by_its_groups_name() {
        let mut summary = fixture::summary(1);
        let call = summary.runs[0].flows.remove("call").unwrap();
        summary.runs[0].flows.insert("call-1".to_owned(), call);
        assert_eq!(CellView::all(&summary)[0].resolve("call"), Some("call-1"));
    }
}
