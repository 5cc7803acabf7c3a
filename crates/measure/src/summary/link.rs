//! The figures of a link, as summary.json has them.

use serde::{Deserialize, Serialize};

/// One link in one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// The queueing discipline, as the scenario names it: `drop-tail`, `fq_codel`.
    #[serde(default)]
    pub discipline: String,
    /// The number of waiting packets, weighted by time.
    pub queue_packets: QueuePackets,
    /// How long packets waited, from their entry into the queue to the start of their service. `None` in
    /// summaries of versions that did not measure this.
    #[serde(default)]
    pub queue_delay_ms: Option<QueueDelayMs>,
    /// Packets that arrived at the far end, copies included.
    pub forwarded: u64,
    /// Packets that the queue dropped, for any cause.
    pub dropped: u64,
    /// Packets that the queue dropped, by cause.
    #[serde(default)]
    pub dropped_by: DropsByCause,
    /// Packets that the queue marked (RFC 3168 §5).
    #[serde(default)]
    pub marked: u64,
    /// Packets that the wire lost.
    pub lost: u64,
    /// Copies that the wire made.
    #[serde(default)]
    pub repeated: u64,
    /// Packets that the wire damaged. Those that the link noticed are among `lost`.
    #[serde(default)]
    pub damaged: u64,
    /// The share of time during which the link was sending, 0 to 1.
    pub utilisation: f64,
}

/// The number of waiting packets.
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

/// The packets that a queue dropped, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropsByCause {
    /// Packets for which the queue had no room.
    pub full: u64,
    /// Packets that the discipline dropped to signal congestion (active queue management), as CoDel does.
    pub aqm: u64,
}
