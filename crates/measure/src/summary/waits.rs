//! How long messages waited at their sender and for lost data, as summary.json has it.

use serde::{Deserialize, Serialize};

/// How long messages waited on the way to the receiver (`metrics/waits.rs`). A field is `None` if no message
/// waited, or if it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitsSummary {
    /// From the moment when a message was due until the transport took it. `None` if the transport always had
    /// room.
    pub for_room_ms: Option<WaitMs>,
    /// From there until the first byte of the message left. `None` for the kernel's TCP.
    pub in_transport_ms: Option<WaitMs>,
    /// For data that was lost and sent again: the message's own, or earlier data of its stream. `None` for
    /// the kernel's TCP.
    pub for_lost_ms: Option<WaitMs>,
    /// How long the transport held unsent data back, for each cause, over the whole run.
    pub held_ms: Option<HeldMs>,
}

/// Waits of messages, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitMs {
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest wait.
    pub max: f64,
}

/// How long each cause held unsent data back, ms. A field is `None` if the cause never did, or if it is
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeldMs {
    /// The congestion window had no room.
    pub congestion_window: Option<f64>,
    /// The far end's receive window had no room.
    pub receiver_window: Option<f64>,
    /// Nagle's algorithm waited for an acknowledgement.
    pub nagle: Option<f64>,
    /// The pause between two paced packets was not over, or a rate allowed no packet yet.
    pub pacing: Option<f64>,
}
