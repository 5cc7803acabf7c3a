//! A stream of the engine: its ID, and how it is read.

use quinn_proto::{Connection, ReadError, StreamId, VarInt};

/// How a read of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// There may be more.
    Limit,
    /// More may come.
    Blocked,
    Finished,
    /// The sender gave it up, or it was read before.
    Reset,
}

/// The stream of this number. A packet cannot name one above the largest [`VarInt`] (RFC 9000 §16).
pub(crate) fn stream_id(id: u64) -> StreamId {
    StreamId::from(VarInt::from_u64(id).unwrap_or(VarInt::MAX))
}

/// Hands to `take` what came of a stream, at most `limit` bytes in all.
pub(crate) fn read_stream(
    connection: &mut Connection,
    id: u64,
    limit: usize,
    mut take: impl FnMut(&[u8]),
) -> StreamEnd {
    let mut stream = connection.recv_stream(stream_id(id));
    // It is closed: a packet came again whose stream was read whole.
    let Ok(mut chunks) = stream.read(true) else { return StreamEnd::Reset };
    let mut left = limit;
    let end = loop {
        if left == 0 {
            break StreamEnd::Limit;
        }
        match chunks.next(left) {
            Ok(Some(chunk)) => {
                left -= chunk.bytes.len();
                take(&chunk.bytes);
            }
            Ok(None) => break StreamEnd::Finished,
            Err(ReadError::Blocked) => break StreamEnd::Blocked,
            Err(ReadError::Reset(_)) => break StreamEnd::Reset,
        }
    };
    // `poll_transmit` asks the engine whether a packet is due.
    let _transmits = chunks.finalize();
    end
}
