//! What each transport provides to an application: its transport features (RFC 8303 §2), in one table.
//!
//! | | messages stay whole | reliable | acknowledged | IP may fragment a message |
//! | --- | --- | --- | --- | --- |
//! | UDP | yes | no | no | yes |
//! | TCP | no | yes | yes | no |
//! | DCCP | yes | no | yes | no |
//! | QUIC, datagrams | yes | no | yes | no |
//! | QUIC, a stream | no | yes | yes | no |
//! | QUIC, a stream a message | yes | yes | yes | no |
//!
//! Order is not in the table. Bytes of a stream come in order, or they would not be a stream; a message
//! carries its number, and is counted alike whether it comes in order or not.

use crate::{Carry, QuicConfig, TcpConfig, TransportConfig};

/// Every transport, without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// UDP (RFC 768).
    Udp,
    /// TCP (RFC 9293).
    Tcp,
    /// DCCP (RFC 4340).
    Dccp,
    /// QUIC (RFC 9000, RFC 9221), which carries messages so.
    Quic(Carry),
}

/// What a transport provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// A read returns one whole message, with its number. If not, messages are bytes of one stream: a read
    /// returns bytes of several messages, or a part of one.
    pub keeps_messages: bool,
    /// What is lost is sent again until it is delivered or the connection ends, so that a message that has
    /// not come may still come. If not, nobody sends it again.
    pub is_reliable: bool,
    /// The far end acknowledges what came. That bounds what is in flight, so a fast sender has to wait, and
    /// a timeout fires if no acknowledgement comes. If not, the transport takes whatever it is given.
    pub is_acknowledged: bool,
    /// A message leaves in one datagram however large it is, and IP fragments what exceeds the path's MTU. If
    /// not, no packet exceeds the MTU.
    pub is_fragmented: bool,
}

impl TransportKind {
    /// What it provides.
    pub const fn features(self) -> Features {
        match self {
            Self::Udp => Features {
                keeps_messages: true,
                is_reliable: false,
                is_acknowledged: false,
                is_fragmented: true,
            },
            Self::Tcp => Features {
                keeps_messages: false,
                is_reliable: true,
                is_acknowledged: true,
                is_fragmented: false,
            },
            Self::Dccp => Features {
                keeps_messages: true,
                is_reliable: false,
                is_acknowledged: true,
                is_fragmented: false,
            },
            Self::Quic(carry) => Features {
                keeps_messages: !matches!(carry, Carry::Stream),
                is_reliable: !matches!(carry, Carry::Datagram),
                is_acknowledged: true,
                is_fragmented: false,
            },
        }
    }
}

impl TransportConfig {
    /// Which transport it configures.
    pub const fn kind(&self) -> TransportKind {
        match self {
            Self::Udp(_) => TransportKind::Udp,
            Self::Tcp(_) => TransportKind::Tcp,
            Self::Dccp(_) => TransportKind::Dccp,
            Self::Quic(config) => TransportKind::Quic(config.carry),
        }
    }

    /// TCP's options, if it is TCP.
    pub const fn as_tcp(&self) -> Option<&TcpConfig> {
        match self {
            Self::Tcp(config) => Some(config),
            Self::Udp(_) | Self::Dccp(_) | Self::Quic(_) => None,
        }
    }

    /// QUIC's options, if it is QUIC.
    pub const fn as_quic(&self) -> Option<&QuicConfig> {
        match self {
            Self::Quic(config) => Some(config),
            Self::Udp(_) | Self::Tcp(_) | Self::Dccp(_) => None,
        }
    }
}
