//! The answers of summary.json: which transport is best for a flow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Cells that differ in the transport of one flow only, and the answer which transport is best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The flow, by the scenario's name.
    pub flow: String,
    /// The swept keys and values that the cells have in common.
    pub sweep: BTreeMap<String, serde_json::Value>,
    /// The numbers of the compared cells.
    pub cells: Vec<u64>,
    /// The answer.
    pub answer: Answer,
}

/// The answer which transport is best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The best transports, as the scenario names them. There are several if they serve alike, or if the
    /// repetitions do not decide. If nothing is usable, it is the least bad one. If the answer depends on the
    /// receiver, these are the best transports of each receiver with which a transport is usable.
    pub best: Vec<String>,
    /// How sure the answer is.
    pub outcome: AnswerKind,
    /// The answer in one line.
    pub line: String,
    /// The reasons, in one line.
    #[serde(default)]
    pub why: String,
    /// The transports whose repetitions fall into two clusters, so that no repetition has their mean.
    #[serde(default)]
    pub two_outcomes: Vec<TwoOutcomes>,
    /// How the flows fared that ran at the same time, in one line. `None` if there are no such flows.
    #[serde(default)]
    pub neighbours: Option<String>,
    /// About how many more repetitions would decide. `None` if the answer is not undecided.
    #[serde(default)]
    pub more: Option<u64>,
    /// The change that makes the flow usable. `None` if the flow is usable, or if the run did not try such a
    /// change.
    #[serde(default)]
    pub cure: Option<Cure>,
    /// Each change that the run tried beside what was asked for, and how the flow fares with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedChange>,
    /// The answer with each of the two receivers of a call. Empty if both receivers name the same transports.
    #[serde(default)]
    pub receivers: Vec<ReceiverAnswer>,
}

/// The answer with one of the two receivers of a call whose scenario names none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverAnswer {
    /// How the receiver chooses its playout delay, in the words of `call.playout`.
    pub playout: String,
    /// [`Answer::best`] with this receiver.
    pub best: Vec<String>,
    /// [`Answer::outcome`] with this receiver.
    pub outcome: AnswerKind,
    /// [`Answer::line`] with this receiver.
    pub line: String,
}

/// The two clusters of a transport's repetitions (Hartigan's dip test, `ranking/clusters.rs`). The means are
/// judged figures: opinion scores, shares in time, or bits per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoOutcomes {
    /// The transport, as the scenario names it.
    pub transport: String,
    /// The number of the transport's cell.
    pub cell: u64,
    /// The mean of the lower cluster.
    pub low: f64,
    /// The mean of the higher cluster.
    pub high: f64,
    /// The share of the repetitions in the lower cluster, 0 to 1.
    pub low_share: f64,
}

/// How sure an answer is (`ranking`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// One transport is best.
    Distinct,
    /// Several transports are best, and differ by no more than the tolerance.
    Alike,
    /// The repetitions do not decide which of several transports is best, or there was one repetition only.
    Undecided,
    /// Not even the best transport is usable.
    Unusable,
    /// The two receivers of a call lead to different answers.
    DependsOnReceiver,
}

/// A change of the scenario that makes a flow usable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cure {
    /// The scenario's keys and their values.
    pub change: BTreeMap<String, serde_json::Value>,
    /// The transports that are best with the change.
    pub best: Vec<String>,
    /// The mean opinion score of the best transport. `None` if the flow is not a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// The share in time of the best transport. `None` if the flow is judged by another figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_time: Option<f64>,
}

/// A change of the scenario that the same run tried, and how the flow fares with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedChange {
    /// The scenario's keys and their values.
    pub change: BTreeMap<String, serde_json::Value>,
    /// The change in words: `with fq_codel on the uplink`.
    #[serde(default)]
    pub what: String,
    /// Who can make the change: `the router`. `None` if that is known without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Whether the flow is usable with the change. `None` if that depends on the receiver.
    pub usable: Option<bool>,
    /// The transports that are best with the change.
    pub best: Vec<String>,
    /// The mean opinion score of the best transport. `None` if the flow is not a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// The share in time of the best transport. `None` if the flow is judged by another figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_time: Option<f64>,
    /// The median delay of the best transport in ms, as the flow is judged: round trip or one way. `None` if
    /// the flow is not judged by its share in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<f64>,
    /// The goodput in bit/s of each other flow, or group of copies, beside the best transport.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others_bps: BTreeMap<String, f64>,
}
