//! The figures of each direction of a flow over real sockets, and the breaks of the flow, as summary.json has
//! them. `metrics/legs.rs` computes the directions, and `breaks.rs` finds the breaks.

use serde::{Deserialize, Serialize};

/// What became of a flow's messages in each direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LegsSummary {
    /// The messages from the sender to the receiver.
    pub forward: LegSummary,
    /// The echoes. `None` if the flow has no echo.
    #[serde(rename = "return")]
    pub back: Option<LegSummary>,
}

/// What became of the messages of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LegSummary {
    /// Messages that were sent.
    pub sent: u64,
    /// Messages that were delivered.
    pub received: u64,
    /// Messages that are missing.
    pub lost: u64,
    /// Messages that were still queued or in flight at the end.
    pub unfinished: u64,
    /// Extra copies that arrived. For echoes, copies that the echoing host sent do not count.
    pub duplicates: u64,
    /// Delivered messages whose delay in this direction was longer than the flow's deadline, or longer than
    /// half of it if the flow has an echo. `None` without a deadline, or if the clocks are not trusted.
    #[serde(default)]
    pub late: Option<u64>,
    /// First copies with a lower sequence number than a message that came before (RFC 4737 §3).
    pub reordered: u64,
    /// Bursts and gaps of losses.
    pub bursts: LossBursts,
}

/// Bursts and gaps of losses (RFC 3611 §4.7.2, Gmin 16).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossBursts {
    /// Bursts of two losses or more.
    pub count: u64,
    /// The share of lost messages within bursts.
    pub density: Option<f64>,
    /// The mean length of a burst in messages, from its first loss to its last, both included.
    pub messages_mean: Option<f64>,
    /// The mean length of a burst in milliseconds, from the due time of its first loss to the due time of the
    /// message after its last loss.
    pub ms_mean: Option<f64>,
    /// The share of lost messages outside of bursts.
    pub gap_density: Option<f64>,
}

/// A time in which a flow delivered nothing although it should have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakSummary {
    /// The beginning, in seconds since the start of the run.
    pub from_s: f64,
    /// The time of the next delivery. `None` if there was none.
    pub to_s: Option<f64>,
    /// What happened, in words for the user.
    pub why: String,
}
