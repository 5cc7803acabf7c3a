//! What a flow over real sockets went through in each direction, and when it delivered nothing.

use serde::{Deserialize, Serialize};

/// What became of a flow's messages in each direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LegsSummary {
    /// From the sender to the receiver.
    pub forward: LegSummary,
    /// The echoes; `None` for a flow without echo.
    #[serde(rename = "return")]
    pub back: Option<LegSummary>,
}

/// What became of the messages of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LegSummary {
    /// Messages that were sent.
    pub sent: u64,
    /// Of these, delivered.
    pub received: u64,
    /// Of these, missing.
    pub lost: u64,
    /// Still queued or in flight at the end.
    pub unfinished: u64,
    /// Extra copies that arrived; of echoes, beyond those that the echoing host sent.
    pub duplicates: u64,
    /// Of those delivered, the ones whose delay in this direction was longer than the flow's deadline; with
    /// an echo, than half of it. `None` without a deadline, and between clocks that are not trusted.
    #[serde(default)]
    pub late: Option<u64>,
    /// First copies whose sequence number is below one that came before (RFC 4737 §3).
    pub reordered: u64,
    /// Bursts and gaps of losses.
    pub bursts: LossBursts,
}

/// Bursts and gaps of losses (RFC 3611 §4.7.2, Gmin 16).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossBursts {
    /// Bursts of two losses or more.
    pub count: u64,
    /// Lost messages / messages, within bursts.
    pub density: Option<f64>,
    /// Mean length of a burst, from its first loss to its last, both counted, in messages.
    pub messages_mean: Option<f64>,
    /// The same from when the first is due until the message after the last is, milliseconds.
    pub ms_mean: Option<f64>,
    /// Lost messages / messages, outside of bursts.
    pub gap_density: Option<f64>,
}

/// A time in which a flow delivered nothing although it should have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakSummary {
    /// When it began, seconds since the run's start.
    pub from_s: f64,
    /// When something was delivered again; `None` if nothing was.
    pub to_s: Option<f64>,
    /// What happened.
    pub why: String,
}
