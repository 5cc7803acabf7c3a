//! What went over a link, and how long it waited there.

use serde::{Deserialize, Serialize};

/// One link in one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// The discipline of the queue, as the scenario calls it: `drop-tail`, `fq_codel`.
    #[serde(default)]
    pub discipline: String,
    /// Waiting packets, weighted by time.
    pub queue_packets: QueuePackets,
    /// How long packets waited, from their entry into the queue to the begin of their service; absent in
    /// summaries of versions that did not measure it.
    #[serde(default)]
    pub queue_delay_ms: Option<QueueDelayMs>,
    /// Arrived at the far end.
    pub forwarded: u64,
    /// Dropped by the queue, for any cause.
    pub dropped: u64,
    /// The same, by cause.
    #[serde(default)]
    pub dropped_by: DropsByCause,
    /// Marked by the queue (RFC 3168 §5).
    #[serde(default)]
    pub marked: u64,
    /// Eaten by the wire.
    pub lost: u64,
    /// Busy share of the serialiser, 0 to 1.
    pub utilisation: f64,
}

/// Waiting packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct QueuePackets {
    pub mean: f64,
    pub p99: u64,
    pub max: u64,
}

/// Queueing delays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct QueueDelayMs {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

/// Why a queue dropped packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropsByCause {
    /// There was no room.
    pub full: u64,
    /// The discipline signalled congestion (active queue management): CoDel's drops.
    pub aqm: u64,
}
