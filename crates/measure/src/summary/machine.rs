//! How the machine kept up with real time, as summary.json has it.

use serde::{Deserialize, Serialize};

use crate::late_flow::LateFlow;

/// How the machine kept up with real time in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSummary {
    /// Whether the machine stayed within the stated limits, so that the figures describe the network. `None`
    /// in files of versions that did not write this for each repetition.
    #[serde(default)]
    pub valid: Option<bool>,
    /// How often the repetition ran again because the machine had disturbed it. All figures are those of the
    /// last time.
    #[serde(default)]
    pub ran_again: u64,
    /// The time from the departure that the path model gives a packet to the emulator's write.
    pub emulator_late_ms: Option<LateMs>,
    /// An upper bound of the time that packets waited behind others before the emulator read them.
    pub emulator_backlog_ms: Option<LateMs>,
    /// The time from the moment when a clocked message was due to its hand-over to the socket, on this host.
    pub senders_late_ms: Option<LateMs>,
    /// The same time on the far host.
    pub far_senders_late_ms: Option<LateMs>,
    /// Packets that the emulator carried.
    pub packets: Option<u64>,
    /// Packets that were dropped because a device had no room, or the emulator no memory.
    pub device_drops: Option<u64>,
    /// A lower bound of the datagrams that were dropped because the buffer of a socket had no room. Only
    /// sockets whose buffer size the scenario leaves open count.
    pub socket_drops: Option<u64>,
    /// UDP datagrams with a wrong checksum, at all sockets of this host, or of both emulated hosts.
    #[serde(default)]
    pub checksum_errors: Option<u64>,
    /// UDP datagrams with a wrong checksum at the far host.
    #[serde(default)]
    pub far_checksum_errors: Option<u64>,
    /// The share of one processor that the emulator's thread used, 0 to 1.
    pub emulator_cpu_share: Option<f64>,
    /// Whether the timed threads had real-time priority.
    pub real_time: Option<bool>,
    /// The share of all processors' time that a hypervisor gave to other machines during the run, 0 to 1.
    #[serde(default)]
    pub stolen_share: Option<f64>,
    /// How often the emulator's thread did not run for more than a millisecond. The whole path stood still
    /// then. `None` if no emulator ran.
    #[serde(default)]
    pub stops: Option<u64>,
    /// The longest of these stops.
    #[serde(default)]
    pub longest_stop_ms: Option<f64>,
    /// The flows whose packets the machine made late, if it disturbed the repetition in no other way. The
    /// quantiles of delay that a flow bears ([`LateFlow::bears`]) still describe the path. Empty in a valid
    /// repetition, and in files of versions that did not write the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_flows: Vec<LateFlow>,
}

/// Quantiles of a lateness, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LateMs {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}
