//! DCCP's options (RFC 4340), and how two real hosts say them to each other.

use serde::{Deserialize, Serialize};
use talkpath_units::{Bytes, Packets};

use super::options::EncapsulatedOptions;
use crate::features::Features;
use crate::words;
use crate::{LARGEST_INITIAL_WINDOW, LARGEST_WINDOW};

/// DCCP's options, the same at both ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DccpConfig {
    /// The congestion control of both half-connections; as text its number.
    pub ccid: CcidKind,
    /// Initial congestion window; `None` takes the RFC's.
    pub initial_window: Option<Packets>,
    /// Initial slow start threshold; `None` is unlimited.
    pub initial_ssthresh: Option<Packets>,
    /// The Ack Ratio that a sender begins with (RFC 4340 §11.3).
    pub ack_ratio: u16,
    /// Messages that may wait to be sent; `None` is unlimited.
    pub send_queue: Option<Packets>,
    /// Which message a full queue has no room for; as text whether it is the oldest.
    #[serde(rename = "drops_oldest")]
    pub send_queue_policy: QueuePolicy,
    /// Whether the window grows though the application does not fill it.
    pub app_limited_growth: bool,
    /// Whether slow start opens CCID 2's window by a packet for each one acknowledged, and not for two
    /// (RFC 4341 §5).
    pub growth_by_each: bool,
    /// Packet size that windows and rates are worked out for; `None` takes the messages'.
    pub segment_size: Option<Bytes>,
    /// Which specification a rate follows (CCIDs 3 and 4); as text whether it is RFC 3448.
    #[serde(rename = "follows_rfc3448")]
    pub tfrc: Revision,
    /// Room of the receiving socket, in bytes of payload.
    pub socket_buffer: Bytes,
    /// Whether packets may be marked instead of dropped (RFC 4340 §12). Real hosts do not exchange it.
    #[serde(skip)]
    pub ecn: bool,
    /// Whether a server keeps no state before the handshake is complete (RFC 4340 §8.1.4).
    pub init_cookie: bool,
    /// Whether data and acknowledgements carry short sequence numbers (RFC 4340 §7.6).
    pub short_seqnos: bool,
    /// Whether data carries a checksum of its own, and the peer must verify it (RFC 4340 §9.3).
    pub data_checksum: bool,
    /// Whether a rate gives way to a growing round trip at once (RFC 5348 §4.5; CCIDs 3 and 4).
    pub oscillation_prevention: bool,
    /// Whether a long time without loss makes the loss intervals before it count for less (RFC 5348 §5.5).
    pub history_discounting: bool,
    /// Checksum Coverage of data packets, and the least that is accepted: 0 for all (RFC 4340 §9.2).
    pub checksum_coverage: u8,
}

words! {
    /// A DCCP congestion control (RFC 4340 §10).
    #[derive(Serialize, Deserialize)]
    #[serde(try_from = "u8", into = "u8")]
    pub enum CcidKind {
        /// TCP-like (RFC 4341).
        Ccid2 = "ccid2",
        /// TCP-friendly rate control (RFC 4342).
        Ccid3 = "ccid3",
        /// TCP-friendly rate control for small packets (RFC 5622).
        Ccid4 = "ccid4",
    }
}

words! {
    /// Which specification the rate follows.
    #[derive(Serialize, Deserialize)]
    #[serde(from = "bool", into = "bool")]
    pub enum Revision {
        /// RFC 5348.
        Rfc5348 = "rfc5348",
        /// RFC 3448, obsoleted by RFC 5348.
        Rfc3448 = "rfc3448",
    }
}

words! {
    /// Which message a full send queue has no room for.
    #[derive(Serialize, Deserialize)]
    #[serde(from = "bool", into = "bool")]
    pub enum QueuePolicy {
        /// The new one, which is refused.
        DropNewest = "drop-newest",
        /// The one that has waited longest, for data that ages.
        DropOldest = "drop-oldest",
    }
}

impl DccpConfig {
    /// The transports of a scenario that are DCCP.
    pub const TRANSPORT_NAMES: &[&str] = &[
        CcidKind::Ccid2.transport_name(),
        CcidKind::Ccid3.transport_name(),
        CcidKind::Ccid4.transport_name(),
    ];

    /// What it provides to an application.
    pub const FEATURES: Features =
        Features { keeps_messages: true, is_reliable: false, is_acknowledged: true, is_fragmented: false };

    /// What the largest packet of IPv4 (65,535 B, RFC 791) holds behind IP's header of 20 B and DCCP's of
    /// 16 B (RFC 4340 §5.1).
    pub const LARGEST_SEGMENT: Bytes = Bytes::new(65_499);

    /// Linux's `net.core.rmem_default`, of payload: what waits is kept by this library and not by a kernel.
    const DEFAULT_ROOM: Bytes = Bytes::new(212_992);

    /// What `ccid` does if the scenario says nothing.
    pub const fn new(ccid: CcidKind) -> Self {
        Self {
            ccid,
            initial_window: None,
            initial_ssthresh: None,
            // RFC 4340 §11.3.
            ack_ratio: 2,
            send_queue: None,
            send_queue_policy: QueuePolicy::DropNewest,
            // RFC 4341 §5.1.
            app_limited_growth: true,
            growth_by_each: false,
            segment_size: None,
            tfrc: Revision::Rfc5348,
            socket_buffer: Self::DEFAULT_ROOM,
            // A queue marks if the scenario says so.
            ecn: false,
            init_cookie: false,
            short_seqnos: false,
            data_checksum: false,
            // RFC 5348 §4.5 advises it, §5.5 leaves discounting open.
            oscillation_prevention: true,
            history_discounting: false,
            checksum_coverage: 0,
        }
    }
}

impl CcidKind {
    /// The transport's name in scenarios and records: `dccp-` and the word.
    pub const fn transport_name(self) -> &'static str {
        match self {
            Self::Ccid2 => "dccp-ccid2",
            Self::Ccid3 => "dccp-ccid3",
            Self::Ccid4 => "dccp-ccid4",
        }
    }

    /// The CCID's number (RFC 4340 §10, table 6).
    pub const fn number(self) -> u8 {
        match self {
            Self::Ccid2 => 2,
            Self::Ccid3 => 3,
            Self::Ccid4 => 4,
        }
    }

    /// Whether a sender needs Ack Vectors (RFC 4341 §4); the rate-based ones have options of their own
    /// instead.
    pub const fn needs_ack_vector(self) -> bool {
        matches!(self, Self::Ccid2)
    }

    /// Whether a receiver needs NDP Counts, to distinguish lost data from lost acknowledgements
    /// (RFC 4342 §6.1).
    pub const fn needs_ndp_count(self) -> bool {
        !matches!(self, Self::Ccid2)
    }
}

impl EncapsulatedOptions for DccpConfig {
    fn largest_message(&self, path_mtu: Bytes) -> Bytes {
        largest_dccp_message(path_mtu)
    }

    fn socket_buffer(&self) -> Bytes {
        self.socket_buffer
    }

    fn wants_ecn(&self) -> bool {
        self.ecn
    }

    fn leave_out_ecn(&mut self) {
        self.ecn = false;
    }

    /// RFC 4340 §8.1.4.
    fn keep_no_state(&mut self) {
        self.init_cookie = true;
    }

    fn ignored(&self) -> Vec<&'static str> {
        if self.ecn { vec!["ecn"] } else { Vec::new() }
    }

    fn need(&self) -> Option<&'static str> {
        let is_within =
            |value: Option<Packets>, most| value.is_none_or(|it| (Packets::new(1)..=most).contains(&it));
        let fits = |size: Bytes| (Bytes::new(1)..=Self::LARGEST_SEGMENT).contains(&size);
        let values = [
            (
                is_within(self.initial_window, LARGEST_INITIAL_WINDOW),
                "an initial_window of 1 to 1,000,000 packets",
            ),
            (is_within(self.initial_ssthresh, LARGEST_WINDOW), "an initial_ssthresh of 1 to 1e9 packets"),
            (self.ack_ratio > 0, "an ack_ratio of at least 1"),
            (is_within(self.send_queue, LARGEST_WINDOW), "a send_queue of 1 to 1e9 packets"),
            (self.segment_size.is_none_or(fits), "a segment_size of 1 to 65,499 B"),
            (self.checksum_coverage < 16, "a checksum coverage of four bits"),
        ];
        values.into_iter().find(|(is_right, _)| !is_right).map(|(_, need)| need)
    }
}

impl From<CcidKind> for u8 {
    fn from(ccid: CcidKind) -> Self {
        ccid.number()
    }
}

impl TryFrom<u8> for CcidKind {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        Self::ALL.into_iter().find(|ccid| ccid.number() == number).ok_or("DCCP needs a CCID of 2, 3 or 4")
    }
}

impl From<Revision> for bool {
    fn from(revision: Revision) -> Self {
        revision == Revision::Rfc3448
    }
}

impl From<bool> for Revision {
    fn from(follows_rfc3448: bool) -> Self {
        if follows_rfc3448 { Self::Rfc3448 } else { Self::Rfc5348 }
    }
}

impl From<QueuePolicy> for bool {
    fn from(policy: QueuePolicy) -> Self {
        policy == QueuePolicy::DropOldest
    }
}

impl From<bool> for QueuePolicy {
    fn from(drops_oldest: bool) -> Self {
        if drops_oldest { Self::DropOldest } else { Self::DropNewest }
    }
}

/// The largest DCCP message on a path of this MTU: DCCP neither fragments nor joins (RFC 4340 §14).
pub const fn largest_dccp_message(path_mtu: Bytes) -> Bytes {
    path_mtu.saturating_sub(DCCP_HEADERS)
}

/// Beside a message in its IP packet: IPv4 20, UDP 8 if DCCP is encapsulated (RFC 6773), a DataAck's header
/// 24, and 8 for options. The same in every arena, so that what fits in one fits in all.
const DCCP_HEADERS: Bytes = Bytes::new(60);
