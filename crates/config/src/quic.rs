//! The parts of QUIC that carry messages (RFC 9000, RFC 9221), and the largest message on a path.

use talkpath_units::Bytes;

use crate::size::UDP_OVER_IPV4;
use crate::words;

words! {
    /// The part of QUIC that carries a message.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Carry {
        /// A DATAGRAM frame, which is not reliable (RFC 9221).
        Datagram = "datagram",
        /// One stream for all messages of the flow, in order.
        Stream = "stream",
        /// A stream for each message, so that a lost message does not delay another message.
        StreamPerMessage = "stream-per-message",
    }
}

impl Carry {
    /// The name of the transport in scenarios and records: `quic-` and the word.
    pub const fn transport_name(self) -> &'static str {
        match self {
            Self::Datagram => "quic-datagram",
            Self::Stream => "quic-stream",
            Self::StreamPerMessage => "quic-stream-per-message",
        }
    }
}

words! {
    /// A congestion control of QUIC.
    pub enum QuicCongestionControl {
        /// RFC 8312.
        Cubic = "cubic",
        /// RFC 9002 §7.
        NewReno = "newreno",
    }
}

/// The UDP payload of the largest packet on a path of this MTU, after QUIC has found out the MTU. A
/// connection begins with 1200 B.
pub fn quic_packet_size(mtu: Bytes) -> Bytes {
    mtu.saturating_sub(UDP_OVER_IPV4).min(LARGEST_PACKET)
}

/// The largest message that a DATAGRAM frame carries on a path of this MTU, after QUIC has found out the MTU.
pub fn largest_quic_datagram(mtu: Bytes) -> Bytes {
    quic_packet_size(mtu).saturating_sub(DATAGRAM_OVERHEAD)
}

/// The largest message that a DATAGRAM frame carries in a packet of 1200 B. Such a packet passes every path
/// from the end of the handshake on, so a transfer uses messages of this size.
pub const QUIC_DATAGRAM_AT_OPENING: Bytes = Bytes::new(1200 - DATAGRAM_OVERHEAD.get());

/// The smallest MTU of a path that carries QUIC: UDP payloads of 1200 B (RFC 9000 §14).
pub const SMALLEST_QUIC_MTU: Bytes = Bytes::new(1200 + UDP_OVER_IPV4.get());

/// The largest packet that quinn tries (`MtuDiscoveryConfig::upper_bound`): Ethernet with IPv6 and UDP.
const LARGEST_PACKET: Bytes = Bytes::new(1452);

/// The bytes of a packet that a message cannot use: a short header with a connection ID of 8 B and a packet
/// number of 4 B, the tag of AES-GCM of 16 B, and 9 B that quinn reserves for the type and the length of the
/// frame.
const DATAGRAM_OVERHEAD: Bytes = Bytes::new(1 + 8 + 4 + 16 + 9);
