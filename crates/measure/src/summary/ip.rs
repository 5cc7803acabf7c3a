//! What the IP headers of a flow's packets carried.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// DSCP, ECN field and TTL of a flow's packets as they came, and the path's MTU; over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpSummary {
    /// The DSCP that the scenario wants for it; `None` leaves the system's.
    pub dscp: Option<String>,
    /// From the sender to the receiver.
    pub forward: IpSeen,
    /// The way of the echoes; `None` for a flow without echo.
    #[serde(rename = "return")]
    pub back: Option<IpSeen>,
}

/// What came in one direction. Of a stream the kernel shows no headers: the counts are empty. Where it should
/// show them and does not, they are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpSeen {
    /// Datagrams that came, by DSCP: its name, or its number if it has none.
    pub dscp: Option<BTreeMap<String, u64>>,
    /// The same by ECN field: `not-ect`, `ect0`, `ect1`, `ce`.
    pub ecn: Option<BTreeMap<String, u64>>,
    /// The fewest hops that one had left (TTL, hop limit).
    pub ttl_min: Option<u8>,
    /// The most.
    pub ttl_max: Option<u8>,
    /// The MTU of the path as the sending host knows it, bytes; `None` if its socket is not connected, as a
    /// server's over UDP.
    pub path_mtu_bytes: Option<u32>,
}
