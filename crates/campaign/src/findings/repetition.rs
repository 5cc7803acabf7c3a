//! One repetition of a measurement over one transport, and its figures.

use serde_json::Value;
use talkpath_measure::figures::FLOW;
use talkpath_measure::summary::{Clock, FlowSummary, RunSummary};

use super::record::Recorded;
use crate::plan::Measurement;

/// One repetition over one transport.
pub(super) struct Repetition<'a> {
    pub(super) measurement: &'a Measurement,
    pub(super) transport: String,
    /// The flow that the run is about ([`main_flow`]).
    pub(super) flow: &'a FlowSummary,
    /// How well the clocks of the two hosts were compared.
    pub(super) clock: &'a Clock,
}

/// A pair of hosts and the measure that runs between them. Its order is that of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PairKey<'a> {
    pub(crate) near: &'a str,
    pub(crate) far: &'a str,
    pub(crate) measure: &'a str,
}

impl<'a> Repetition<'a> {
    /// Lists the repetitions of a measurement from which figures are computed.
    pub(super) fn list(record: &Recorded<'a>) -> Vec<Self> {
        let Recorded { measurement, summary } = *record;
        let mut repetitions = Vec::new();
        for run in record.judged_runs() {
            let Some(name) = main_flow(run) else { continue };
            let Some(flow) = run.flows.get(name) else { continue };
            let transport = transport_name(run, name, flow);
            repetitions.push(Self { measurement, transport, flow, clock: &summary.clock });
        }
        repetitions
    }

    pub(super) fn pair(&self) -> PairKey<'a> {
        PairKey::new(self.measurement)
    }

    /// Returns the figure at this path of a flow in summary.json, or `None` if it is not known.
    pub(super) fn figure(&self, path: &str) -> Option<f64> {
        FLOW.row(path).number(self.flow)
    }

    /// Returns a statistic of the delay, such as `p90`. The delay is that of the round trip if the far host
    /// sends messages back, and otherwise the one-way delay, which is known only if the clocks are trusted.
    /// If no echo came back, there is no delay, because a one-way delay could not be compared with round
    /// trips.
    pub(super) fn delay_ms(&self, statistic: &str) -> Option<f64> {
        let delay = if self.is_round_trip() { "round_trip_delay_ms" } else { "one_way_delay_ms" };
        self.figure(&format!("{delay}.{statistic}"))
    }

    /// Returns whether the far host sends messages back.
    pub(super) const fn is_round_trip(&self) -> bool {
        self.flow.lost_return.is_some() || self.flow.round_trip_delay_ms.is_some()
    }

    /// Returns the hour of the planned time, which is a text such as `2026-12-01 06:00:00`.
    pub(super) fn planned_hour(&self) -> u64 {
        let hour = self.measurement.local.split([' ', ':']).nth(1);
        // The plan is written by this program, so the hour is always there.
        hour.and_then(|hour| hour.parse().ok()).unwrap_or(0)
    }
}

impl<'a> PairKey<'a> {
    pub(crate) fn new(measurement: &'a Measurement) -> Self {
        Self { near: &measurement.near, far: &measurement.far, measure: &measurement.measure }
    }
}

/// Returns the name of the flow that a run is about. It is the flow whose transport is swept, or else the
/// first call, or else the first flow.
pub(crate) fn main_flow(run: &RunSummary) -> Option<&str> {
    for key in run.sweep.keys() {
        let swept = key.strip_prefix("flow.").and_then(|key| key.strip_suffix(".transport"));
        if let Some(name) = swept
            && run.flows.contains_key(name)
        {
            return Some(name);
        }
    }
    let first_call = run.flows.iter().find(|(_, flow)| flow.call.is_some()).map(|(name, _)| name);
    first_call.or_else(|| run.flows.keys().next()).map(String::as_str)
}

/// Returns the transport of the flow called `name`, in the words of the scenario. If the transport is swept,
/// these are the words of the sweep, so that two variants of one transport have different names.
pub(crate) fn transport_name(run: &RunSummary, name: &str, flow: &FlowSummary) -> String {
    match run.sweep.get(&format!("flow.{name}.transport")) {
        Some(Value::String(word)) => word.clone(),
        Some(Value::Object(keys)) => {
            let words =
                keys.values().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            words.collect::<Vec<_>>().join(" ")
        }
        _ => flow.transport.clone(),
    }
}
