//! Which transport it is, without its options.

use crate::encapsulated::EncapsulatedKind;
use crate::features::Features;
use crate::quic::Carry;
use crate::{QuicConfig, TcpConfig, TransportConfig};

/// Every transport, without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// UDP (RFC 768).
    Udp,
    /// TCP (RFC 9293).
    Tcp,
    /// A protocol of ours that real hosts carry in UDP datagrams.
    Encapsulated(EncapsulatedKind),
    /// QUIC (RFC 9000, RFC 9221), which carries messages so.
    Quic(Carry),
}

impl TransportKind {
    /// What it provides.
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
    /// Which transport it configures.
    pub const fn kind(&self) -> TransportKind {
        match self {
            Self::Udp(_) => TransportKind::Udp,
            Self::Tcp(_) => TransportKind::Tcp,
            Self::Encapsulated(config) => TransportKind::Encapsulated(config.kind()),
            Self::Quic(config) => TransportKind::Quic(config.carry),
        }
    }

    /// TCP's options, if it is TCP.
    pub const fn as_tcp(&self) -> Option<&TcpConfig> {
        match self {
            Self::Tcp(config) => Some(config),
            Self::Udp(_) | Self::Encapsulated(_) | Self::Quic(_) => None,
        }
    }

    /// QUIC's options, if it is QUIC.
    pub const fn as_quic(&self) -> Option<&QuicConfig> {
        match self {
            Self::Quic(config) => Some(config),
            Self::Udp(_) | Self::Tcp(_) | Self::Encapsulated(_) => None,
        }
    }
}
