//! What each transport provides to an application: its transport features (RFC 8303 §2), in one table.
//!
//! | | messages stay whole | reliable | acknowledged | IP may fragment a message |
//! | --- | --- | --- | --- | --- |
//! | UDP | yes | no | no | yes |
//! | TCP | no | yes | yes | no |
//! | QUIC, datagrams | yes | no | yes | no |
//! | QUIC, a stream | no | yes | yes | no |
//! | QUIC, a stream a message | yes | yes | yes | no |
//!
//! Protocols of ours that real hosts carry in UDP datagrams say theirs in `encapsulated`.
//!
//! Order is not in the table. Bytes of a stream come in order, or they would not be a stream; a message
//! carries its number, and is counted alike whether it comes in order or not.

use crate::quic::Carry;

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

impl Features {
    /// UDP's.
    pub(crate) const UDP: Self =
        Self { keeps_messages: true, is_reliable: false, is_acknowledged: false, is_fragmented: true };

    /// TCP's.
    pub(crate) const TCP: Self =
        Self { keeps_messages: false, is_reliable: true, is_acknowledged: true, is_fragmented: false };

    /// QUIC's, if this carries a message.
    pub(crate) const fn quic(carry: Carry) -> Self {
        Self {
            keeps_messages: !matches!(carry, Carry::Stream),
            is_reliable: !matches!(carry, Carry::Datagram),
            is_acknowledged: true,
            is_fragmented: false,
        }
    }
}
