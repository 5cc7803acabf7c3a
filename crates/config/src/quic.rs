//! What carries a message over QUIC (RFC 9000, RFC 9221), and what of the path's MTU is left to it.

use talkpath_units::Bytes;

use crate::size::UDP_OVER_IPV4;

/// What carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// A DATAGRAM frame (RFC 9221): unreliable.
    Datagram,
    /// One stream for all messages of the flow, in order.
    Stream,
    /// A stream of its own, so that a lost message delays no other.
    StreamPerMessage,
}

impl Carry {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Datagram, Self::Stream, Self::StreamPerMessage];

    /// The word in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Stream => "stream",
            Self::StreamPerMessage => "stream-per-message",
        }
    }

    /// The transport's name in records: `quic-` and the word.
    pub const fn transport_name(self) -> &'static str {
        match self {
            Self::Datagram => "quic-datagram",
            Self::Stream => "quic-stream",
            Self::StreamPerMessage => "quic-stream-per-message",
        }
    }
}

/// A congestion control of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicCongestionControl {
    /// RFC 9002 §7.
    NewReno,
    /// RFC 8312.
    Cubic,
}

impl QuicCongestionControl {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NewReno, Self::Cubic];

    /// The name that scenarios and summaries use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
        }
    }
}

/// The UDP payload of a full packet on a path of this MTU.
pub fn quic_packet_size(mtu: Bytes) -> Bytes {
    mtu.saturating_sub(UDP_OVER_IPV4).min(LARGEST_PACKET)
}

/// The largest message that a DATAGRAM frame carries on a path of this MTU.
pub fn largest_quic_datagram(mtu: Bytes) -> Bytes {
    quic_packet_size(mtu).saturating_sub(DATAGRAM_OVERHEAD)
}

/// The smallest MTU of a path that carries QUIC: UDP payloads of 1200 B (RFC 9000 §14).
pub const SMALLEST_QUIC_MTU: Bytes = Bytes::new(1200 + UDP_OVER_IPV4.get());

/// What quinn searches up to (`MtuDiscoveryConfig::upper_bound`): Ethernet with IPv6 and UDP.
const LARGEST_PACKET: Bytes = Bytes::new(1452);

/// A short header with a connection ID of 8 B and a packet number of 4 B, AES-GCM's tag of 16 B, and what
/// quinn reserves for the frame's type and length (9 B).
const DATAGRAM_OVERHEAD: Bytes = Bytes::new(1 + 8 + 4 + 16 + 9);
