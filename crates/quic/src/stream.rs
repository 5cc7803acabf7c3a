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
    /// The sender gave it up, with this code (RFC 9000 §3.2).
    Reset(VarInt),
    /// Its end was read before, or this end stopped it.
    Closed,
}

/// Why the stream of all messages of a flow carries nothing more, with the far end's code. What a code means
/// is the application's (RFC 9000 §20.2), and the far end may be another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFailure {
    /// The far end reads no more: STOP_SENDING (RFC 9000 §19.5).
    Stopped(u64),
    /// The far end sends no more on it: RESET_STREAM (RFC 9000 §19.4).
    Reset(u64),
}

impl core::fmt::Display for StreamFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Stopped(code) => write!(f, "the far end stopped the QUIC stream, with code {code}"),
            Self::Reset(code) => write!(f, "the far end reset its QUIC stream, with code {code}"),
        }
    }
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
    // A packet came again whose stream was read whole, for one.
    let Ok(mut chunks) = stream.read(true) else { return StreamEnd::Closed };
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
            Err(ReadError::Reset(code)) => break StreamEnd::Reset(code),
        }
    };
    // `poll_transmit` asks the engine whether a packet is due.
    let _transmits = chunks.finalize();
    end
}
