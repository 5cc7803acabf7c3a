//! Reads figures and names out of a [`Summary`].
//!
//! - A *cell* is one combination of swept values, and a *repetition* is a run of a cell with a seed of its
//!   own. A cell with one repetition shows the figures of that repetition. A cell with several repetitions
//!   shows the mean or the median over them, as `measure` computed it (`measure::statistic` says which of the
//!   two).
//! - A flow with `count` or with two directions has *copies*: `call-1`, `call-up`. All copies of a flow are a
//!   *group*. Copies are *summed up* if the summary has the figures of the group alone.
//! - The *judged figure* of a flow says in one number how well the flow was served (`measure::judge`).
//!
//! Begin to read with [`CellView`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use talkpath_measure::judge::{Receiver, judge, judge_with};
use talkpath_measure::metrics::confidence::Confidence;
use talkpath_measure::ranking::clusters::{Clusters, clusters};
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{
    CellSummary, FlowSummary, GroupSummary, JudgedBy, JudgedFigure, LinkSummary, RunSummary, Spread, Summary,
};

use crate::display::{self, Display};
use crate::metric::{DelayKind, Metric, Quantile};

/// One cell of the sweep, and its repetitions.
#[derive(Clone, Debug)]
pub(crate) struct CellView<'a> {
    pub cell: &'a CellSummary,
    /// The repetitions that count, in order.
    pub runs: Vec<&'a RunSummary>,
}

/// How a cell's transport is named and drawn.
#[derive(Clone, Debug)]
pub(crate) struct TransportView {
    /// The name in the scenario: `tcp-nodelay`.
    pub kind: String,
    /// The name for people, with the options that the sweep sets: `TCP (cc reno)`.
    pub label: String,
    pub display: &'static Display,
}

impl<'a> CellView<'a> {
    /// Every cell of the summary, in the order of the sweep.
    pub(crate) fn all(summary: &'a Summary) -> Vec<Self> {
        let mut runs_by_cell: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
        for run in summary.counted_runs() {
            runs_by_cell.entry(run.cell).or_default().push(run);
        }
        let mut views = Vec::new();
        for cell in &summary.cells {
            let mut runs = runs_by_cell.remove(&cell.cell).unwrap_or_default();
            runs.sort_by_key(|run| run.repetition);
            views.push(Self { cell, runs });
        }
        views
    }

    /// The cell with this number. Returns `None` if the summary does not have this cell.
    pub(crate) fn find(summary: &'a Summary, number: u64) -> Option<Self> {
        let cell = summary.cells.iter().find(|cell| cell.cell == number)?;
        let mut runs: Vec<_> = summary.counted_runs().filter(|run| run.cell == number).collect();
        runs.sort_by_key(|run| run.repetition);
        Some(Self { cell, runs })
    }

    /// The first repetition that counts. All repetitions have the same flows.
    pub(crate) fn run(&self) -> Option<&'a RunSummary> {
        self.runs.first().copied()
    }

    /// The flow `name` in the first repetition.
    pub(crate) fn flow(&self, name: &str) -> Option<&'a FlowSummary> {
        self.run()?.flows.get(name).map(Box::as_ref)
    }

    /// The names of all flows. The names of flows whose copies are summed up come last.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.run().into_iter().flat_map(names)
    }

    /// The names of the flows that have copies.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.run().into_iter().flat_map(|run| run.groups.keys())
    }

    /// All copies of the flow `name` together, in the first repetition. Returns `None` if the summary has the
    /// figures of each copy.
    pub(crate) fn summed_up(&self, name: &str) -> Option<&'a GroupSummary> {
        self.run()?.groups.get(name).map(Box::as_ref).filter(|group| group.summed_up)
    }

    /// All copies of a flow together, in the first repetition, if they are summed up. `name` is the name of
    /// the flow or of one of its copies. The chart data names single copies.
    fn summed_up_with_copy(&self, name: &str) -> Option<&'a GroupSummary> {
        let mut groups = self.run()?.summed_up();
        let (_, group) = groups.find(|(group, _)| *group == name || is_copy(name, group))?;
        Some(group)
    }

    /// The name of the flow that represents `name`: the flow of this name, or else its worst copy (`name-1`,
    /// `name-up`). The worst copy is the copy that decides the judged figure in most repetitions, because a
    /// call is as good as its worse direction. If the copies are not judged, it is the copy with the highest
    /// p90 of the delay.
    pub(crate) fn resolve(&self, name: &str) -> Option<&'a str> {
        let run = self.run()?;
        if let Some((flow, _)) = run.flows.get_key_value(name) {
            return Some(flow);
        }
        if self.summed_up(name).is_some() {
            return run.groups.get_key_value(name).map(|(group, _)| group.as_str());
        }
        let mut worst_copies: Vec<String> = Vec::new();
        for run in &self.runs {
            worst_copies.extend(judge(run, name).map(|judged| judged.worst_flow));
        }
        let times_worst = |copy: &str| worst_copies.iter().filter(|worst| *worst == copy).count();
        let p90 = |copy: &str| {
            let p90 = self.value(copy, Metric::delay(self.delay_kind(copy), Quantile::P90));
            // A copy without a delay delivered nothing.
            p90.unwrap_or(f64::INFINITY)
        };
        let copies = run.flows.keys().map(String::as_str).filter(|flow| is_copy(flow, name));
        // The worst copy is the least one in this order, and among equal copies the first one.
        copies.min_by(|a, b| times_worst(b).cmp(&times_worst(a)).then_with(|| p90(b).total_cmp(&p90(a))))
    }

    /// The value of `metric` that represents this cell. Returns `None` if the value is not known.
    pub(crate) fn value(&self, flow: &str, metric: Metric) -> Option<f64> {
        let metric = match self.summed_up(flow) {
            Some(group) if !matches!(metric, Metric::Group(_)) => metric.in_group(group)?,
            _ => metric,
        };
        if self.cell.n <= 1 {
            return metric.of_run(self.run()?, flow);
        }
        let spreads = match metric {
            Metric::Group(_) => &self.cell.groups,
            Metric::Flow(_) | Metric::Share(_) => &self.cell.flows,
        };
        let spread = metric.path().and_then(|path| spreads.get(flow)?.get(path));
        if let Some(spread) = spread {
            return Some(mean_or_median(metric, spread));
        }
        // The summary has no spread of a share that is computed here, and summaries of earlier versions have
        // no spreads of groups.
        let spread = Confidence::default().spread(&self.values(flow, metric))?;
        Some(mean_or_median(metric, &spread))
    }

    /// The share of unfinished messages, if it is large. The share of lost messages then says little without
    /// it.
    pub(crate) fn many_unfinished(&self, flow: &str) -> Option<f64> {
        self.value(flow, Metric::UNFINISHED).filter(|share| *share > MANY_UNFINISHED)
    }

    /// The value of `metric` in each repetition that knows it.
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
        let received = |run: &RunSummary| match (run.flows.get(flow), run.groups.get(flow)) {
            (Some(flow), _) => flow.received,
            (None, Some(group)) => group.received,
            (None, None) => 0,
        };
        self.runs.iter().all(|run| received(run) == 0)
    }

    /// Whether the connection of `flow` opened in no repetition.
    pub(crate) fn is_unopened(&self, flow: &str) -> bool {
        let Some(flow) = self.resolve(flow) else { return false };
        let never_opened = |run: &&RunSummary| {
            let Some(flow) = run.flows.get(flow) else { return false };
            let has_unsent_messages = flow.ledger.is_some_and(|ledger| ledger.not_open > 0);
            flow.opening_ms.is_none() && has_unsent_messages
        };
        !self.runs.is_empty() && self.runs.iter().all(never_opened)
    }

    pub(crate) fn judged_figures(&self, flow: &str) -> BTreeMap<u64, JudgedFigure> {
        self.judged_figures_with(flow, Receiver::Own)
    }

    /// The judged figure of `flow` with `receiver`, in each repetition. Empty if the flow does not have this
    /// receiver.
    pub(crate) fn judged_figures_with(&self, flow: &str, receiver: Receiver) -> BTreeMap<u64, JudgedFigure> {
        let judged = |run: &&RunSummary| Some((run.repetition, judge_with(run, flow, receiver)?));
        self.runs.iter().filter_map(judged).collect()
    }

    /// The judged figure of the conversation that `flow` belongs to, with `receiver`, in each repetition. It
    /// is the figure of the worse direction, and the gaps of either direction bar the call.
    pub(crate) fn conversation_figures_with(
        &self,
        flow: &str,
        receiver: Receiver,
    ) -> BTreeMap<u64, JudgedFigure> {
        let mut figures = self.judged_figures_with(flow, receiver);
        let Some(other) = self.other_direction(flow) else { return figures };
        for (repetition, other) in self.judged_figures_with(other, receiver) {
            let Some(judged) = figures.get_mut(&repetition) else { continue };
            let barred = judged.barred || other.barred;
            if other.worst < judged.worst {
                *judged = other;
            }
            judged.barred = barred;
        }
        figures
    }

    /// The other direction of the conversation of which `flow` is one direction.
    pub(crate) fn other_direction(&self, flow: &str) -> Option<&'a str> {
        let (conversation, direction) = flow.rsplit_once('-')?;
        let other = match direction {
            "up" => "down",
            "down" => "up",
            _ => return None,
        };
        let (name, _) = self.run()?.flows.get_key_value(&format!("{conversation}-{other}"))?;
        Some(name)
    }

    /// The figures of the call `flow` by what is heard of it, in each repetition, also if the call has a
    /// score. Empty if the flow is no call, and for copies.
    pub(crate) fn heard_figures(&self, flow: &str) -> BTreeMap<u64, JudgedFigure> {
        let mut figures = self.judged_figures(flow);
        figures.retain(|repetition, judged| {
            let run = self.runs.iter().find(|run| run.repetition == *repetition);
            let call = run.and_then(|run| run.flows.get(flow)?.call.as_deref());
            let Some(concealed) = call.and_then(|call| call.concealed) else { return false };
            let heard = 1.0 - concealed;
            (judged.by, judged.median, judged.worst, judged.floor) = (JudgedBy::Heard, heard, heard, 0.0);
            true
        });
        figures
    }

    /// The median of a figure over the repetitions, for each link. A link that does not know the figure is
    /// left out.
    pub(crate) fn links(&self, figure: impl Fn(&LinkSummary) -> Option<f64>) -> BTreeMap<&'a str, f64> {
        let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, link) in self.runs.iter().flat_map(|run| &run.links) {
            values.entry(name).or_default().extend(figure(link));
        }
        let median = |values: &[f64]| Some(Confidence::default().spread(values)?.median);
        values.into_iter().filter_map(|(name, values)| Some((name, median(&values)?))).collect()
    }

    /// The kind of delay that is shown for `flow`: the round trip if the flow has an echo, else one way.
    pub(crate) fn delay_kind(&self, flow: &str) -> DelayKind {
        let round_trip = self.value(flow, Metric::delay(DelayKind::RoundTrip, Quantile::P50));
        if round_trip.is_some() { DelayKind::RoundTrip } else { DelayKind::OneWay }
    }

    /// The transport of `flow` in this cell. If the transport is swept, the sweep names it with its options.
    /// Otherwise it is the transport that the run recorded.
    pub(crate) fn transport(&self, flow: &str) -> TransportView {
        let mut flows = self.run().into_iter().flat_map(|run| &run.flows);
        let recorded_flow =
            flows.find(|(name, _)| *name == flow || is_copy(name, flow)).map(|(_, flow)| flow);
        // A flow that asks for Multipath TCP has this entry.
        let is_multipath = recorded_flow.is_some_and(|flow| flow.multipath.is_some());
        let recorded = match (recorded_flow, self.summed_up_with_copy(flow)) {
            (Some(flow), _) => flow.transport.as_str(),
            (None, Some(group)) => group.transport.as_str(),
            (None, None) => "",
        };
        let mut transport = match self.cell.sweep.get(&transport_key(flow)) {
            Some(swept) => transport_of(swept, recorded, is_multipath),
            None => transport_of(&Value::from(recorded), "", is_multipath),
        };
        if let Some(run) = self.cell.sweep.get(RUN_KEY) {
            transport.label = format!("{}, {}", transport.label, plain(run));
        }
        transport
    }

    /// Whether the page shows several runs, and this cell is from one of them.
    pub(crate) fn is_of_several_runs(&self) -> bool {
        self.cell.sweep.contains_key(RUN_KEY)
    }

    /// The swept keys and values but those in `leave_out`, as `path.up.loss = 0.01`.
    pub(crate) fn sweep_label(&self, leave_out: &[&str]) -> String {
        let rest = self.cell.sweep.iter().filter(|(key, _)| !leave_out.contains(&key.as_str()));
        rest.map(|(key, value)| format!("{key} = {}", plain(value))).collect::<Vec<_>>().join(", ")
    }
}

/// Tables show the share of unfinished messages from a tenth on. We chose a tenth because the share of lost
/// messages can then be far from the truth. A queue of some hundred ms leaves fewer messages unfinished.
const MANY_UNFINISHED: f64 = 0.1;

/// The statistic of `spread` that represents a cell: the mean or the median, depending on the figure.
fn mean_or_median(metric: Metric, spread: &Spread) -> f64 {
    match metric.statistic() {
        Statistic::Median => spread.median,
        // The last two are statistics that only thresholds ask for.
        Statistic::Mean | Statistic::P10 | Statistic::Min => spread.mean,
    }
}

/// The names of a run's flows. The names of flows whose copies are summed up come last.
pub(crate) fn names(run: &RunSummary) -> impl Iterator<Item = &String> {
    run.flows.keys().chain(run.summed_up().map(|(name, _)| name))
}

/// Whether `name` is the name of a copy of `flow`: `flow-1`, `flow-up` or `flow-1-up`
/// (docs/reference/interface.md).
pub(crate) fn is_copy(name: &str, flow: &str) -> bool {
    let Some(suffix) = copy_suffix(name, flow) else { return false };
    let number = suffix.strip_suffix("-up").or(suffix.strip_suffix("-down")).unwrap_or(suffix);
    matches!(suffix, "up" | "down") || is_number(number)
}

/// Whether `name` is the name of a numbered copy of `flow` without a direction: `flow-1`.
pub(crate) fn is_numbered_copy(name: &str, flow: &str) -> bool {
    copy_suffix(name, flow).is_some_and(is_number)
}

/// The part of `name` behind `flow-`.
fn copy_suffix<'a>(name: &'a str, flow: &str) -> Option<&'a str> {
    name.strip_prefix(flow)?.strip_prefix('-')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The names of the flows whose transports are compared. These are the flows whose transport is swept. If no
/// transport is swept, it is the flow `call`. If there is no such flow, it is the conversation of the user's
/// program that took longest over the path, and else the first flow.
pub(crate) fn judged_flows(summary: &Summary) -> Vec<String> {
    let keys = summary.cells.iter().flat_map(|cell| cell.sweep.keys());
    let swept = keys.filter_map(|key| key.strip_prefix("flow.")?.strip_suffix(".transport"));
    let swept: BTreeSet<&str> = swept.collect();
    if !swept.is_empty() {
        return swept.into_iter().map(str::to_owned).collect();
    }
    let has_call = summary.runs.iter().flat_map(names).any(|name| name == "call");
    if has_call {
        return vec!["call".to_owned()];
    }
    let first = summary.runs.first().and_then(|run| names(run).next());
    let flow = slowest_conversation(summary).or_else(|| first.cloned());
    vec![flow.unwrap_or_else(|| "call".to_owned())]
}

/// The conversation of the user's program whose packets took longest over the path, at the 90th percentile:
/// the name of its flows without the direction. Returns `None` if no program ran.
fn slowest_conversation(summary: &Summary) -> Option<String> {
    let mut slowest: Option<(&str, f64)> = None;
    for (name, flow) in summary.runs.iter().flat_map(|run| &run.flows) {
        let Some(delay) = flow.one_way_delay_ms.as_ref().filter(|_| is_of_program(flow)) else { continue };
        if slowest.is_none_or(|(_, longest)| delay.p90 > longest) {
            slowest = Some((name, delay.p90));
        }
    }
    let (name, _) = slowest?;
    let conversation = name.strip_suffix("-up").or(name.strip_suffix("-down")).unwrap_or(name);
    Some(conversation.to_owned())
}

/// Whether the packets of `flow` are those of a program of the user. Only such a flow has the waits of its
/// packets in a queue.
pub(crate) fn is_of_program(flow: &FlowSummary) -> bool {
    flow.ip.as_ref().is_some_and(|ip| ip.queue_delay_ms.is_some())
}

/// The first of the compared flows. The figures over time show this flow.
pub(crate) fn main_flow(summary: &Summary) -> String {
    judged_flows(summary).swap_remove(0)
}

/// The sweep key that tells several runs on one page apart. The name is not a key of a scenario.
pub(crate) const RUN_KEY: &str = "run";

pub(crate) fn transport_key(flow: &str) -> String {
    format!("flow.{flow}.transport")
}

/// Writes a swept value as a person writes it, for example without quotes.
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

/// Makes the name and the look of a transport from its value in a scenario. The value is a string, or a table
/// with `kind` and options, which become a part of the name. Multipath TCP has a name of its own. `recorded`
/// is the transport that the run recorded, for a table without `kind`.
fn transport_of(value: &Value, recorded: &str, is_multipath: bool) -> TransportView {
    let is_named = |kind: &str| !display::display(kind).name.is_empty();
    let is_multipath = is_multipath || value.get("multipath").and_then(Value::as_bool) == Some(true);
    let (kind, options) = match value {
        Value::Object(map) => {
            let kind = map.get("kind").and_then(Value::as_str).unwrap_or(recorded);
            let options =
                map.iter().filter(|(key, _)| *key != "kind" && !(is_multipath && *key == "multipath"));
            (kind, options.map(|(key, value)| format!("{key} {}", plain(value))).collect::<Vec<_>>())
        }
        // A word that stands for several transports, as `quic` does, is no transport's name.
        Value::String(kind) if !is_named(kind) && is_named(recorded) => (recorded, Vec::new()),
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
    use talkpath_measure::summary::{IpSummary, MachineSummary, OnPathMs};

    use super::*;
    use crate::fixture;

    #[test]
    fn a_word_that_stands_for_several_transports_is_shown_as_the_one_that_ran() {
        let label = |swept: &str, recorded| transport_of(&Value::from(swept), recorded, false).label;
        assert_eq!(label("quic", "quic-datagram"), "QUIC datagrams");
        assert_eq!(label("tcp", "quic-datagram"), "TCP");
        assert_eq!(label("unheard-of", ""), "unheard-of");
    }

    #[test]
    fn what_was_disturbed_is_in_no_view_of_a_valid_run_and_in_those_of_one_that_is_not() {
        let mut summary = fixture::summary(3);
        let machine = MachineSummary { valid: Some(false), ..MachineSummary::default() };
        summary.runs[1].machine = Some(Box::new(machine));
        for (valid, count) in [(true, 2), (false, 3)] {
            summary.valid = valid;
            assert_eq!(CellView::all(&summary)[0].runs.len(), count);
            assert_eq!(CellView::find(&summary, 0).unwrap().runs.len(), count);
        }
    }

    #[test]
    fn one_repetition_shows_its_own_figures_and_several_their_mean_or_median() {
        let one = fixture::summary(1);
        let cell = &CellView::all(&one)[0];
        let p90 = Metric::delay(DelayKind::RoundTrip, Quantile::P90);
        let own = one.runs[0].flows["call"].round_trip_delay_ms.as_ref().unwrap().p90;
        assert_eq!(cell.value("call", p90), Some(own));

        let five = fixture::summary(5);
        let cell = &CellView::all(&five)[0];
        let spread = &five.cells[0].flows["call"]["round_trip_delay_ms.p90"];
        assert_eq!(cell.value("call", p90), Some(spread.median));
        let spread = &five.cells[0].flows["call"]["call.mos"];
        assert_eq!(cell.value("call", Metric::MOS), Some(spread.mean));
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
        let goodput = |summary: &Summary| CellView::all(summary)[0].value("call", Metric::GOODPUT);
        assert_eq!(goodput(&summary), Some(1e6));
        summary.cells[0].groups.get_mut("call").unwrap().get_mut("goodput_bps").unwrap().mean = 2e6;
        assert_eq!(goodput(&summary), Some(2e6), "as it stands, not computed again");
        // A summary of an earlier version.
        summary.cells[0].groups.clear();
        assert_eq!(goodput(&summary), Some(1e6));
        let cell = &CellView::all(&summary)[0];
        assert_eq!(cell.value("call", Metric::delay(DelayKind::OneWay, Quantile::P50)), Some(40.0));
        assert_eq!(cell.value("call", Metric::delay(DelayKind::OneWay, Quantile::P99)), None);
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
    fn without_a_call_the_slowest_conversation_of_a_program_is_the_one_to_look_at() {
        let mut summary = fixture::summary(1);
        let mut packets = summary.runs[0].flows["call"].as_ref().clone();
        packets.one_way_delay_ms = packets.round_trip_delay_ms.take();
        packets.ip = Some(Box::new(IpSummary {
            queue_delay_ms: Some(OnPathMs { p50: 400.0, p99: 500.0, max: 510.0 }),
            ..IpSummary::default()
        }));
        let with_delay = |p90: f64| {
            let mut flow = packets.clone();
            flow.one_way_delay_ms.as_mut().unwrap().p90 = p90;
            Box::new(flow)
        };
        for run in &mut summary.runs {
            run.sweep.clear();
            run.flows = [
                ("icmp-2-down".to_owned(), with_delay(20.0)),
                ("icmp-2-up".to_owned(), with_delay(450.0)),
                ("tcp-1-down".to_owned(), with_delay(25.0)),
            ]
            .into();
        }
        summary.cells.iter_mut().for_each(|cell| cell.sweep.clear());
        assert_eq!(main_flow(&summary), "icmp-2");
        assert_eq!(CellView::all(&summary)[0].resolve("icmp-2"), Some("icmp-2-up"));
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
