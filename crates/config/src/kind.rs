//! Transports without their options.

use crate::encapsulated::EncapsulatedKind;
use crate::features::Features;
use crate::quic::Carry;
use crate::{QuicConfig, TcpConfig, TransportConfig};

/// A transport without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// UDP (RFC 768).
    Udp,
    /// TCP (RFC 9293).
    Tcp,
    /// A protocol of ours that real hosts carry in UDP datagrams.
    Encapsulated(EncapsulatedKind),
    /// QUIC (RFC 9000, RFC 9221), with the way in which it carries messages.
    Quic(Carry),
}

impl TransportKind {
    /// The features of the transport.
    pub const fn features(self) -> Features {
        match self {
            Self::Udp => Features::UDP,
            Self::Tcp => Features::TCP,
            Self::Encapsulated(kind) => kind.features(),
            Self::Quic(carry) => Features::quic(carry),
        }
    }
}

impl TransportConfig {
    /// The transport of these options.
    pub const fn kind(&self) -> TransportKind {
        match self {
            Self::Udp(_) => TransportKind::Udp,
            Self::Tcp(_) => TransportKind::Tcp,
            Self::Encapsulated(config) => TransportKind::Encapsulated(config.kind()),
            Self::Quic(config) => TransportKind::Quic(config.carry),
        }
    }

    /// The options of TCP, if the transport is TCP.
    pub const fn as_tcp(&self) -> Option<&TcpConfig> {
        match self {
            Self::Tcp(config) => Some(config),
            Self::Udp(_) | Self::Encapsulated(_) | Self::Quic(_) => None,
        }
    }

    /// The options of QUIC, if the transport is QUIC.
    pub const fn as_quic(&self) -> Option<&QuicConfig> {
        match self {
            Self::Quic(config) => Some(config),
            Self::Udp(_) | Self::Tcp(_) | Self::Encapsulated(_) => None,
        }
    }
}
