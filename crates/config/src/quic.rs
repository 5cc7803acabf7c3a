//! What carries a message over QUIC (RFC 9000, RFC 9221), and what of the path's MTU is left to it.

use talkpath_units::Bytes;

use crate::size::UDP_OVER_IPV4;
use crate::words;

words! {
    /// What carries a message.
    pub enum Carry {
        /// A DATAGRAM frame (RFC 9221): unreliable.
        Datagram = "datagram",
        /// One stream for all messages of the flow, in order.
        Stream = "stream",
        /// A stream of its own, so that a lost message delays no other.
        StreamPerMessage = "stream-per-message",
    }
}

impl Carry {
    /// The transport's name in scenarios and records: `quic-` and the word.
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

/// The UDP payload of the largest packet on a path of this MTU, once the search for it is over. A connection
/// opens with 1200 B.
pub fn quic_packet_size(mtu: Bytes) -> Bytes {
    mtu.saturating_sub(UDP_OVER_IPV4).min(LARGEST_PACKET)
}

/// The largest message that a DATAGRAM frame carries on a path of this MTU, once the search for it is over.
pub fn largest_quic_datagram(mtu: Bytes) -> Bytes {
    quic_packet_size(mtu).saturating_sub(DATAGRAM_OVERHEAD)
}

/// The largest message that a DATAGRAM frame carries in a packet of 1200 B: on every path, from the end of
/// the handshake on. A transfer cuts its messages so.
pub const QUIC_DATAGRAM_AT_OPENING: Bytes = Bytes::new(1200 - DATAGRAM_OVERHEAD.get());

/// The smallest MTU of a path that carries QUIC: UDP payloads of 1200 B (RFC 9000 §14).
pub const SMALLEST_QUIC_MTU: Bytes = Bytes::new(1200 + UDP_OVER_IPV4.get());

/// What quinn searches up to (`MtuDiscoveryConfig::upper_bound`): Ethernet with IPv6 and UDP.
const LARGEST_PACKET: Bytes = Bytes::new(1452);

/// A short header with a connection ID of 8 B and a packet number of 4 B, AES-GCM's tag of 16 B, and what
/// quinn reserves for the frame's type and length (9 B).
const DATAGRAM_OVERHEAD: Bytes = Bytes::new(1 + 8 + 4 + 16 + 9);
