//! The counts of one end of a flow over the whole run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talkpath_flow::TurnRound;
use talkpath_flow::file::FileOutcome;
use talkpath_quic::PathReport;
use talkpath_wire::HeldTimes;

/// The counts of one end of a flow over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTotals {
    /// The number of packets with application data that this end sent, including retransmissions.
    pub data_packets: Option<u64>,
    /// The number of retransmissions among the data packets.
    pub retransmissions: Option<u64>,
    /// The number of retransmission timeouts.
    pub timeouts: Option<u64>,
    /// True if this end's packets are ECN-capable, so that a router may mark them instead of dropping them.
    #[serde(default)]
    pub takes_marks: Option<bool>,
    /// The number of datagrams that came to this end with the ECN mark CE.
    #[serde(default)]
    pub marked: Option<u64>,
    /// The number of this end's segments that the far end acknowledged with an echo of the ECN mark.
    #[serde(default)]
    pub echoed: Option<u64>,
    /// The IP headers of the datagrams that came to this end, and the MTU of the path that this end sends
    /// over.
    #[serde(default)]
    pub headers: Headers,
    /// The time during which a message waited for room in the transport's send buffer, between the end of the
    /// warm-up and the end of the run's duration, ns.
    pub(crate) blocked_ns: u64,
    /// How long this end's transport held unsent data back, over the whole run.
    #[serde(default)]
    pub held: HeldTotals,
    /// The number of refused messages for each reason, in the system's words.
    pub refusals: BTreeMap<String, u64>,
    /// The number of messages without a network for each reason, in the system's words.
    #[serde(default)]
    pub no_network: BTreeMap<String, u64>,
    /// The time from the flow's start until this end's transport was ready to send a message, ns. `None` if
    /// it never was ready, or if this end does not send.
    #[serde(default)]
    pub opening_ns: Option<u64>,
    /// The time that this host took to make the flow's socket, ns. Only a client's end knows it.
    #[serde(default)]
    pub socket_ns: Option<u64>,
    /// The time from the first packet of the handshake until it was over, ns. Only a client's end knows it.
    #[serde(default)]
    pub handshake_ns: Option<u64>,
    /// The time from the flow's start until this end's application had read a whole message, ns.
    #[serde(default)]
    pub first_read_ns: Option<u64>,
    /// The longest time in which nothing arrived at this end, ns. Only short messages have it, because their
    /// numbers wrap around. It is present if half of all possible numbers were due within this time.
    #[serde(default)]
    pub gap_ns: Option<u64>,
    /// The number of packets of our own protocols that did not leave for each reason, in the system's words.
    pub unsent: BTreeMap<String, u64>,
    /// The time from the arrival of a message at this end to its echo. `None` if this end echoed nothing.
    pub turn_round: Option<TurnRound>,
    /// The name of the congestion control: TCP_CONGESTION of the kernel's TCP, or the one of QUIC.
    pub cc: Option<String>,
    /// The reason why this flow ended early.
    pub failure: Option<String>,
    /// When this flow failed, ns since the run's beginning.
    #[serde(default)]
    pub failed_ns: Option<u64>,
    /// The outcome of the file that this end received.
    pub file: Option<FileOutcome>,
    /// What this end of a QUIC connection has found out about its path. `None` for other transports.
    #[serde(default)]
    pub quic_path: Option<PathReport>,
    /// The paths of the connection. `None` unless the flow uses Multipath TCP.
    #[serde(default)]
    pub multipath: Option<Multipath>,
}

/// How long each cause held unsent data back at an end, ns. A time is zero if the cause never did, or if the
/// end does not know it: the kernel's TCP counts the receiver's window alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldTotals {
    /// The congestion window had no room.
    pub congestion_window_ns: u64,
    /// The far end's receive window had no room.
    pub receiver_window_ns: u64,
    /// Nagle's algorithm waited for an acknowledgement.
    pub nagle_ns: u64,
    /// The pause between two paced packets was not over, or a rate allowed no packet yet.
    pub pacing_ns: u64,
}

impl From<HeldTimes> for HeldTotals {
    fn from(times: HeldTimes) -> Self {
        let HeldTimes { congestion_window, receiver_window, nagle, pacing } = times;
        Self {
            congestion_window_ns: congestion_window.as_nanos(),
            receiver_window_ns: receiver_window.as_nanos(),
            nagle_ns: nagle.as_nanos(),
            pacing_ns: pacing.as_nanos(),
        }
    }
}

/// The paths of a connection for which the scenario asks for Multipath TCP (RFC 8684), as one end sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multipath {
    /// True if the connection is plain TCP, because the far end or something on the path does not speak
    /// Multipath TCP.
    pub fell_back: bool,
    /// The largest number of subflows that a sample of the connection showed.
    pub subflows: u32,
}

/// Counts of the IP headers of the datagrams that came to an end, and the MTU of the path that the end sends
/// over. The kernel does not show the headers of a TCP connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers {
    /// The number of datagrams for each value of the byte that holds the DSCP and the ECN field.
    pub tos: BTreeMap<u8, u64>,
    /// The number of datagrams for which the kernel did not report that byte.
    #[serde(default)]
    pub unreported: u64,
    /// The smallest and the largest TTL (or hop limit) of a datagram.
    pub ttl: Option<(u8, u8)>,
    /// The MTU of the path as this end's kernel knows it, B. `None` for a socket that is not connected.
    pub path_mtu: Option<u32>,
}
