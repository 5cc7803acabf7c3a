//! What a path between two hosts did to probes before a live run, as summary.json has it.

use serde::{Deserialize, Serialize};

/// What the path does to packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSummary {
    /// The version of IP: 4 or 6.
    pub version: u8,
    /// The address and port of this host.
    pub near: String,
    /// The address and port of this host as the far host saw them. They differ behind a translator.
    pub mapped: String,
    /// How long the path keeps the mapping of a UDP flow to which this host sends nothing. `None` unless the
    /// run was to find out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<MappingSummary>,
    /// The way to the far host.
    pub forward: PathWaySummary,
    /// The way back.
    pub back: PathWaySummary,
}

/// How long a translator or a firewall keeps a mapping (RFC 4787 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingSummary {
    /// The longest pause, in seconds, after which a packet of the far host still arrived. `None` if none did.
    pub lasts_s: Option<u64>,
    /// The shortest longer pause, in seconds, after which none arrived. `None` if the run was too short for a
    /// longer pause.
    pub is_gone_s: Option<u64>,
}

/// What one direction of the path does to packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathWaySummary {
    /// The largest packet that was tried and passes, with its IP header. `None` if none is known to pass.
    pub passes_bytes: Option<u64>,
    /// The smallest packet above it that was tried, and does not pass. `None` if the largest one passes.
    pub fails_bytes: Option<u64>,
    /// Whether a router reports that larger packets are too big. `None` on the way back, where routers
    /// report to the far host, and if all sizes pass.
    pub is_reported: Option<bool>,
    /// The smallest TTL or hop limit with which a packet arrived.
    pub ttl: Option<u8>,
    /// The ECN fields with which packets with ECT(0) arrived. Empty if none arrived, or if the host does not
    /// say.
    pub ecn: Vec<String>,
    /// The DSCPs with which packets with EF arrived. Empty as above.
    pub dscp: Vec<String>,
}
