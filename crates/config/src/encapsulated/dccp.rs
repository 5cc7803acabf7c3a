//! The options of DCCP (RFC 4340). Two real hosts exchange them as JSON.

use serde::{Deserialize, Serialize};
use talkpath_units::{Bytes, Packets};

use super::options::EncapsulatedOptions;
use crate::features::Features;
use crate::words;
use crate::{LARGEST_INITIAL_WINDOW, LARGEST_WINDOW};

/// The options of DCCP, which are the same at both ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DccpConfig {
    /// The congestion control of both half-connections. In JSON it is a number.
    pub ccid: CcidKind,
    /// The initial congestion window. `None` is that of the RFC.
    pub initial_window: Option<Packets>,
    /// The initial slow start threshold. `None` is unlimited.
    pub initial_ssthresh: Option<Packets>,
    /// The Ack Ratio that a sender begins with (RFC 4340 §11.3).
    pub ack_ratio: u16,
    /// The largest number of messages that wait to be sent. `None` is unlimited.
    pub send_queue: Option<Packets>,
    /// The message that a full send queue drops. In JSON it is whether that is the oldest.
    #[serde(rename = "drops_oldest")]
    pub send_queue_policy: QueuePolicy,
    /// Whether the window grows while the application does not fill it.
    pub app_limited_growth: bool,
    /// Whether slow start of CCID 2 opens the window by a packet for each acknowledged packet, and not for
    /// every two (RFC 4341 §5).
    pub growth_by_each: bool,
    /// The packet size from which windows and rates are computed. `None` is the size of the messages.
    pub segment_size: Option<Bytes>,
    /// The specification of the rate (CCIDs 3 and 4). In JSON it is whether that is RFC 3448.
    #[serde(rename = "follows_rfc3448")]
    pub tfrc: Revision,
    /// The size of the receiving socket's buffer, in bytes of payload.
    pub socket_buffer: Bytes,
    /// Whether queues may mark packets instead of dropping them (RFC 4340 §12). Real hosts do not exchange
    /// the value.
    #[serde(skip)]
    pub ecn: bool,
    /// Whether a server keeps no state before the handshake is complete (RFC 4340 §8.1.4).
    pub init_cookie: bool,
    /// Whether data and acknowledgements carry short sequence numbers (RFC 4340 §7.6).
    pub short_seqnos: bool,
    /// Whether data carries a checksum of its own, and the peer must verify it (RFC 4340 §9.3).
    pub data_checksum: bool,
    /// Whether the rate falls at once when the round trip grows (RFC 5348 §4.5; CCIDs 3 and 4).
    pub oscillation_prevention: bool,
    /// Whether a long time without loss reduces the weight of earlier loss intervals (RFC 5348 §5.5).
    pub history_discounting: bool,
    /// The Checksum Coverage of data packets, and the smallest that is accepted. 0 covers everything (RFC
    /// 4340 §9.2).
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
    /// The specification of TCP-friendly rate control.
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
    /// The message that a full send queue drops.
    #[derive(Serialize, Deserialize)]
    #[serde(from = "bool", into = "bool")]
    pub enum QueuePolicy {
        /// The new message, which is refused.
        DropNewest = "drop-newest",
        /// The message that has waited longest. This is for data that loses its value with time.
        DropOldest = "drop-oldest",
    }
}

impl DccpConfig {
    /// The names of the transports of scenarios that are DCCP.
    pub const TRANSPORT_NAMES: &[&str] = &[
        CcidKind::Ccid2.transport_name(),
        CcidKind::Ccid3.transport_name(),
        CcidKind::Ccid4.transport_name(),
    ];

    /// The features for an application.
    pub const FEATURES: Features =
        Features { keeps_messages: true, is_reliable: false, is_acknowledged: true, is_fragmented: false };

    /// The largest payload: the largest packet of IPv4 (65,535 B, RFC 791) less the headers of IP, 20 B, and
    /// of DCCP, 16 B (RFC 4340 §5.1).
    pub const LARGEST_SEGMENT: Bytes = Bytes::new(65_499);

    /// Linux's `net.core.rmem_default`. It counts payload here, because this library holds the waiting
    /// messages and not a kernel.
    const DEFAULT_ROOM: Bytes = Bytes::new(212_992);

    /// Returns the options of `ccid` if the scenario sets none.
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
            // A scenario must ask for marks.
            ecn: false,
            init_cookie: false,
            short_seqnos: false,
            data_checksum: false,
            // RFC 5348 §4.5 recommends it. Discounting is optional in §5.5.
            oscillation_prevention: true,
            history_discounting: false,
            checksum_coverage: 0,
        }
    }
}

impl CcidKind {
    /// Returns the name of the transport in scenarios and records: `dccp-` and the word.
    pub const fn transport_name(self) -> &'static str {
        match self {
            Self::Ccid2 => "dccp-ccid2",
            Self::Ccid3 => "dccp-ccid3",
            Self::Ccid4 => "dccp-ccid4",
        }
    }

    /// Returns the number of the CCID (RFC 4340 §10, table 6).
    pub const fn number(self) -> u8 {
        match self {
            Self::Ccid2 => 2,
            Self::Ccid3 => 3,
            Self::Ccid4 => 4,
        }
    }

    /// Whether a sender needs Ack Vectors (RFC 4341 §4). The rate-based CCIDs have other options.
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
        let is_within = |packets: Option<Packets>, most| {
            packets.is_none_or(|packets| (Packets::new(1)..=most).contains(&packets))
        };
        let fits = |size: Bytes| (Bytes::new(1)..=Self::LARGEST_SEGMENT).contains(&size);
        // Each condition, with the phrase if it does not hold.
        let conditions = [
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
        conditions.into_iter().find(|(holds, _)| !holds).map(|(_, need)| need)
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

/// Returns the largest DCCP message on a path with this MTU. DCCP sends each message in one packet (RFC 4340
/// §14).
pub const fn largest_dccp_message(path_mtu: Bytes) -> Bytes {
    path_mtu.saturating_sub(DCCP_HEADERS)
}

/// The headers around a message: IPv4 20 B, UDP 8 B if DCCP is encapsulated (RFC 6773), the header of a
/// DataAck 24 B, and options 8 B. All arenas use the same sum, so that a message that fits in one arena fits
/// in all.
const DCCP_HEADERS: Bytes = Bytes::new(60);
