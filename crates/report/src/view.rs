//! Reading a [`Summary`]: which cells belong side by side, what they are called, and which figure stands for a flow.
//!
//! With one repetition the figure is the run's own; with several it is the cell's median with its 95 % interval, as
//! `measure` computed them.

use serde_json::Value;
use talkpath_measure::summary::{CellSummary, FlowSummary, RunSummary, Summary};

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
    /// 90th percentile of the unsigned IPDV: the tables' "jitter".
    Ipdv90,
    LossRate,
    GoodputBps,
    RetransmitRate,
}

/// Which point of a delay's distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantile {
    P50,
    P90,
    P95,
    P99,
    P999,
    Max,
}

/// A figure, and its 95 % interval where there are repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub value: f64,
    pub ci95: Option<(f64, f64)>,
}

/// One cell of the sweep with its first run, which names transports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellView<'a> {
    pub cell: &'a CellSummary,
    /// Repetition 0, or the first that was finished.
    pub run: Option<&'a RunSummary>,
}

/// Cells that differ in one flow's transport only, and so can be compared.
#[derive(Debug)]
pub(crate) struct Condition<'a> {
    /// What they share, as `path.up.loss = 0.01`; empty where only the transport is swept.
    pub label: String,
    pub cells: Vec<CellView<'a>>,
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

    /// `rtt` or `owd`, for narrow columns.
    pub(crate) fn abbreviation(self) -> &'static str {
        match self {
            Self::RoundTrip => "rtt",
            Self::OneWay => "owd",
        }
    }
}

impl Metric {
    /// The metric's key in [`CellSummary::flows`].
    fn key(self) -> String {
        match self {
            Self::Delay(DelayKind::RoundTrip, quantile) => format!("round_trip_delay_ms.{}", quantile.key()),
            Self::Delay(DelayKind::OneWay, quantile) => format!("one_way_delay_ms.{}", quantile.key()),
            Self::Ipdv90 => "ipdv_ms.p90".to_owned(),
            Self::LossRate => "loss_rate".to_owned(),
            Self::GoodputBps => "goodput_bps".to_owned(),
            Self::RetransmitRate => "retransmit_rate".to_owned(),
        }
    }

    /// The metric of one repetition.
    fn of(self, flow: &FlowSummary) -> Option<f64> {
        match self {
            Self::Delay(kind, quantile) => {
                let delay = match kind {
                    DelayKind::RoundTrip => flow.round_trip_delay_ms.as_ref()?,
                    DelayKind::OneWay => flow.one_way_delay_ms.as_ref()?,
                };
                Some(match quantile {
                    Quantile::P50 => delay.p50,
                    Quantile::P90 => delay.p90,
                    Quantile::P95 => delay.p95,
                    Quantile::P99 => delay.p99,
                    Quantile::P999 => delay.p999,
                    Quantile::Max => delay.max,
                })
            }
            Self::Ipdv90 => flow.ipdv_ms.as_ref().map(|ipdv| ipdv.p90),
            Self::LossRate => flow.loss_rate,
            Self::GoodputBps => flow.goodput_bps,
            Self::RetransmitRate => flow.retransmit_rate,
        }
    }
}

impl Quantile {
    fn key(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
        }
    }
}

impl<'a> CellView<'a> {
    /// Every cell of the summary, in the sweep's order.
    pub(crate) fn all(summary: &'a Summary) -> Vec<Self> {
        let first_run = |cell: &CellSummary| {
            summary.runs.iter().filter(|run| run.cell == cell.cell).min_by_key(|run| run.repetition)
        };
        summary.cells.iter().map(|cell| Self { cell, run: first_run(cell) }).collect()
    }

    /// The flow's entry in the first run.
    pub(crate) fn flow(&self, name: &str) -> Option<&'a FlowSummary> {
        self.run?.flows.get(name)
    }

    /// The flow called `name`, or the first of its copies (`name-1`, `name-up`).
    pub(crate) fn resolve(&self, name: &str) -> Option<&'a str> {
        let flows = &self.run?.flows;
        let copy = |key: &&String| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        let exact = flows.get_key_value(name).map(|(key, _)| key);
        exact.or_else(|| flows.keys().find(copy)).map(String::as_str)
    }

    /// The figure that stands for this cell; `None` where it is not known.
    pub(crate) fn figure(&self, flow: &str, metric: Metric) -> Option<Figure> {
        if self.cell.n <= 1 {
            let value = metric.of(self.flow(flow)?)?;
            return Some(Figure { value, ci95: None });
        }
        let spread = self.cell.flows.get(flow)?.get(&metric.key())?;
        Some(Figure { value: spread.median, ci95: spread.ci95 })
    }

    /// Just the number of [`CellView::figure`].
    pub(crate) fn value(&self, flow: &str, metric: Metric) -> Option<f64> {
        self.figure(flow, metric).map(|figure| figure.value)
    }

    /// Round trip where the flow has an echo, else one way.
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
        let recorded =
            self.resolve(flow).and_then(|name| self.flow(name)).map(|flow| flow.transport.as_str());
        let mut view = match swept {
            Some(value) => transport_of(value, recorded.unwrap_or_default()),
            None => transport_of(&Value::from(recorded.unwrap_or_default()), ""),
        };
        if let Some(run) = self.cell.sweep.get(RUN_KEY) {
            view.label = format!("{}, {}", view.label, plain(run));
        }
        view
    }

    /// Whether it is one of several runs' cells on a page.
    pub(crate) fn is_of_several(&self) -> bool {
        self.cell.sweep.contains_key(RUN_KEY)
    }

    /// The sweep's keys and values without those in `leave_out`, as `path.up.loss = 0.01`.
    pub(crate) fn sweep_label(&self, leave_out: &[&str]) -> String {
        let rest = self.cell.sweep.iter().filter(|(key, _)| !leave_out.contains(&key.as_str()));
        rest.map(|(key, value)| format!("{key} = {}", plain(value))).collect::<Vec<_>>().join(", ")
    }
}

/// Groups the cells so that within a group only the transport of `flow` differs.
pub(crate) fn conditions<'a>(summary: &'a Summary, flow: &str) -> Vec<Condition<'a>> {
    let mut conditions: Vec<Condition<'a>> = Vec::new();
    for cell in CellView::all(summary) {
        let label = cell.sweep_label(&[&transport_key(flow), RUN_KEY]);
        match conditions.iter_mut().find(|condition| condition.label == label) {
            Some(condition) => condition.cells.push(cell),
            None => conditions.push(Condition { label, cells: vec![cell] }),
        }
    }
    conditions
}

/// The flow that a reader of this summary cares about: the one whose transport is swept, else `call`, else the first.
pub(crate) fn main_flow(summary: &Summary) -> String {
    let mut keys = summary.cells.iter().flat_map(|cell| cell.sweep.keys());
    let swept = keys.find_map(|key| key.strip_prefix("flow.")?.strip_suffix(".transport"));
    let first = || summary.runs.first().and_then(|run| run.flows.keys().next()).map(String::as_str);
    let call = || summary.runs.iter().any(|run| run.flows.contains_key("call")).then_some("call");
    swept.or_else(call).or_else(first).unwrap_or("call").to_owned()
}

/// The sweep key that tells several runs on one page apart; no scenario key has this name.
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
            let options = map.iter().map(|(key, value)| format!("{key} {}", plain(value)));
            options.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// A transport is a string, or a table with `kind` and options, which then belong to its name.
fn transport_of(value: &Value, recorded: &str) -> TransportView {
    let (kind, options) = match value {
        Value::Object(map) => {
            let kind = map.get("kind").and_then(Value::as_str).unwrap_or(recorded);
            let options = map.iter().filter(|(key, _)| *key != "kind");
            (kind, options.map(|(key, value)| format!("{key} {}", plain(value))).collect::<Vec<_>>())
        }
        Value::String(kind) => (kind.as_str(), Vec::new()),
        _ => (recorded, Vec::new()),
    };
    let display = display::display(kind);
    let name = if display.name.is_empty() { kind } else { display.name };
    let label = match options.as_slice() {
        [] => name.to_owned(),
        options => format!("{name} ({})", options.join(", ")),
    };
    TransportView { kind: kind.to_owned(), label, display }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn one_repetition_shows_its_own_figures_and_several_their_median() {
        let one = fixture::summary(1);
        let cell = CellView::all(&one)[0];
        let p90 = Metric::Delay(DelayKind::RoundTrip, Quantile::P90);
        let own = one.runs[0].flows["call"].round_trip_delay_ms.as_ref().unwrap().p90;
        assert_eq!(cell.figure("call", p90), Some(Figure { value: own, ci95: None }));

        let five = fixture::summary(5);
        let cell = CellView::all(&five)[0];
        let spread = &five.cells[0].flows["call"]["round_trip_delay_ms.p90"];
        assert!(spread.ci95.is_some());
        assert_eq!(cell.figure("call", p90), Some(Figure { value: spread.median, ci95: spread.ci95 }));
    }

    #[test]
    fn a_transport_with_options_is_named_with_them() {
        let value = serde_json::json!({ "kind": "tcp", "cc": "reno" });
        let view = transport_of(&value, "");
        assert_eq!((view.label.as_str(), view.display.kind), ("TCP (cc reno)", "tcp"));
        assert_eq!(transport_of(&Value::from("pigeon"), "").label, "pigeon");
    }

    #[test]
    fn cells_that_differ_in_more_than_the_transport_are_not_compared() {
        let mut summary = fixture::summary(1);
        for (index, cell) in summary.cells.iter_mut().enumerate() {
            cell.sweep.insert("path.up.loss".to_owned(), Value::from(if index == 2 { 0.01 } else { 0.0 }));
        }
        let labels =
            conditions(&summary, "call").iter().map(|c| (c.label.clone(), c.cells.len())).collect::<Vec<_>>();
        assert_eq!(labels, [("path.up.loss = 0.0".to_owned(), 2), ("path.up.loss = 0.01".to_owned(), 1)]);
    }

    #[test]
    fn the_swept_flow_is_the_one_to_look_at() {
        assert_eq!(main_flow(&fixture::summary(1)), "call");
        let mut summary = fixture::summary(1);
        summary.cells[0].sweep = [(transport_key("upload"), Value::from("tcp"))].into();
        assert_eq!(main_flow(&summary), "upload");
    }

    #[test]
    fn a_copied_flow_is_found_by_its_groups_name() {
        let mut summary = fixture::summary(1);
        let call = summary.runs[0].flows.remove("call").unwrap();
        summary.runs[0].flows.insert("call-1".to_owned(), call);
        assert_eq!(CellView::all(&summary)[0].resolve("call"), Some("call-1"));
    }
}
