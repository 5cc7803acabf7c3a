//! Which transport is best for a flow, as summary.json has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One flow over the transports of some cells, and the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The flow, by the scenario's name.
    pub flow: String,
    /// The sweep's other keys and values, which the cells have in common.
    pub sweep: BTreeMap<String, serde_json::Value>,
    /// The cells that were compared, by index.
    pub cells: Vec<u64>,
    /// What came out.
    pub answer: Answer,
}

/// Which transport is best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Transports as the scenario has them; more than one if they serve alike, or if the repetitions do not
    /// decide; of an unusable flow the least bad. If the answer depends on the receiver, those of
    /// either in whose answer one is usable.
    pub best: Vec<String>,
    /// How sure that is.
    pub outcome: AnswerKind,
    /// The answer in one line.
    pub line: String,
    /// Why, in one line.
    #[serde(default)]
    pub why: String,
    /// Transports whose repetitions fall into two clusters: no repetition has their mean.
    #[serde(default)]
    pub two_outcomes: Vec<TwoOutcomes>,
    /// What the flows beside it got, in one line; `None` if there are none.
    #[serde(default)]
    pub neighbours: Option<String>,
    /// About how many more repetitions would decide, if it is undecided.
    #[serde(default)]
    pub more: Option<u64>,
    /// What makes it usable, if it is not and the same run tried it.
    #[serde(default)]
    pub cure: Option<Cure>,
    /// If the two receivers of a call do not name the same transports: the answer with each. Else empty.
    #[serde(default)]
    pub receivers: Vec<ReceiverAnswer>,
}

/// The answer with one of the two receivers of a call whose scenario names none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverAnswer {
    /// How it chooses its playout delay, as `call.playout` has it.
    pub playout: String,
    /// As of the answer.
    pub best: Vec<String>,
    /// As of the answer.
    pub outcome: AnswerKind,
    /// As of the answer.
    pub line: String,
}

/// The two clusters of a transport's repetitions (Hartigan's dip test, `ranking/clusters.rs`), in the unit of
/// what the flow is judged by: opinion score, share in time, or bits a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoOutcomes {
    /// The transport as the scenario has it.
    pub transport: String,
    /// Its cell, by index.
    pub cell: u64,
    /// Mean of the lower cluster.
    pub low: f64,
    /// Mean of the higher cluster.
    pub high: f64,
    /// Share of the repetitions in the lower one, 0 to 1.
    pub low_share: f64,
}

/// How sure an answer is (`ranking`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// One is best.
    Distinct,
    /// Several are best, and differ by no more than the tolerance.
    Alike,
    /// The repetitions do not decide which of several is best, or there was but one repetition.
    Undecided,
    /// Even the best is not usable.
    Unusable,
    /// With one of two receivers of a call the answer is another one than with the other.
    DependsOnReceiver,
}

/// A change of the scenario that makes a flow usable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cure {
    /// The scenario's keys and their values.
    pub change: BTreeMap<String, serde_json::Value>,
    /// The transports that are then best.
    pub best: Vec<String>,
    /// The mean opinion score of the best of them, if the flow is judged by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Its share of messages in time, if the flow is judged by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_time: Option<f64>,
}
