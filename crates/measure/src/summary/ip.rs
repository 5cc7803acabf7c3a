//! What the IP headers of a flow's packets carried, as summary.json has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The DSCP, the ECN field and the TTL of a flow's packets at their arrival, and the MTU of the path, over
/// the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IpSummary {
    /// The DSCP that the scenario sets for the flow. `None` if the system chooses it.
    pub dscp: Option<String>,
    /// The packets from the sender to the receiver.
    pub forward: IpSeen,
    /// The packets of the echoes. `None` if the flow has no echo.
    #[serde(rename = "return")]
    pub back: Option<IpSeen>,
    /// How long the packets waited in the first queue of their direction. Only of flows of a program of the
    /// user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_delay_ms: Option<OnPathMs>,
    /// TCP's round trips as seen on the wire at the sender's end of the path (RFC 6298 §3). Only of flows of
    /// a program of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<OnPathMs>,
    /// The address and the port at the near end, if the user wants names in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<String>,
    /// The address and the port at the far end, if the user wants names in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<String>,
    /// The name under which the program found one of the two addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The median, the 99th percentile and the largest of the times of some packets, by nearest rank, ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct OnPathMs {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// The headers of the packets that arrived in one direction. The kernel does not show the headers of a
/// stream, so the counts of a stream are empty. A count is `None` if the kernel should show the headers but
/// does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpSeen {
    /// The number of datagrams with each DSCP. The key is the name of the DSCP, or its number if it has no
    /// name.
    pub dscp: Option<BTreeMap<String, u64>>,
    /// The number of datagrams with each ECN field: `not-ect`, `ect0`, `ect1`, `ce`.
    pub ecn: Option<BTreeMap<String, u64>>,
    /// The smallest number of hops that a datagram had left (TTL or hop limit).
    pub ttl_min: Option<u8>,
    /// The largest number of hops that a datagram had left.
    pub ttl_max: Option<u8>,
    /// The MTU of the path as the sending host knows it, bytes. `None` if its socket is not connected, for
    /// example the socket of a server over UDP.
    pub path_mtu_bytes: Option<u32>,
}
