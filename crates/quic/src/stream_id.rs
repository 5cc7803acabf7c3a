//! A stream's ID as the engine has it.

use quinn_proto::{StreamId, VarInt};

/// The stream of this number. A packet cannot name one above the largest [`VarInt`] (RFC 9000 §16).
pub(crate) fn stream_id(id: u64) -> StreamId {
    StreamId::from(VarInt::from_u64(id).unwrap_or(VarInt::MAX))
}
