//! The transport features of each transport: what it provides to an application (RFC 8303 §2).
//!
//! | | messages stay whole | reliable | acknowledged | IP may fragment a message |
//! | --- | --- | --- | --- | --- |
//! | UDP | yes | no | no | yes |
//! | TCP | no | yes | yes | no |
//! | QUIC, datagrams | yes | no | yes | no |
//! | QUIC, a stream | no | yes | yes | no |
//! | QUIC, a stream for each message | yes | yes | yes | no |
//!
//! The features of encapsulated protocols are in `encapsulated`.
//!
//! The table says nothing about order. The bytes of a stream always come in order. A message carries its
//! number, and is counted in the same way whether it comes in order or not.

use crate::quic::Carry;

/// The features of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Whether a read returns one whole message with its number. If not, messages are bytes of one stream,
    /// and a read returns bytes of several messages, or a part of one.
    pub keeps_messages: bool,
    /// Whether lost data is sent again until it is delivered or the connection ends. If so, a message that
    /// has not arrived yet may still arrive.
    pub is_reliable: bool,
    /// Whether the far end acknowledges what has arrived. If so, the data in flight is limited, a fast sender
    /// has to wait, and a timeout fires if no acknowledgement comes. If not, the transport takes everything
    /// that it is given.
    pub is_acknowledged: bool,
    /// Whether a message of any size is sent in one datagram, so that IP has to fragment a datagram that
    /// exceeds the MTU of the path. If not, no packet exceeds the MTU.
    pub is_fragmented: bool,
}

impl Features {
    /// The features of UDP.
    pub(crate) const UDP: Self =
        Self { keeps_messages: true, is_reliable: false, is_acknowledged: false, is_fragmented: true };

    /// The features of TCP.
    pub(crate) const TCP: Self =
        Self { keeps_messages: false, is_reliable: true, is_acknowledged: true, is_fragmented: false };

    /// The features of QUIC if it carries messages in this way.
    pub(crate) const fn quic(carry: Carry) -> Self {
        Self {
            keeps_messages: !matches!(carry, Carry::Stream),
            is_reliable: !matches!(carry, Carry::Datagram),
            is_acknowledged: true,
            is_fragmented: false,
        }
    }
}
