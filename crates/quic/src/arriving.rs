//! What came for the flow of an end on a real host, with its bytes, until its application reads it. No number
//! travels beside a packet there: which message it is, its bytes say.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quinn_proto::{Connection, Dir, ReadError};
use talkpath_config::Carry;

use crate::receiving::ROOM;
use crate::setup::FlowSetup;
use crate::stream_id::stream_id;

/// What came for the only flow of an end.
#[derive(Debug)]
pub(crate) struct Arriving {
    carry: Carry,
    /// Datagrams that came and were not read.
    inbox: VecDeque<Bytes>,
    /// Bytes in `inbox`.
    held: usize,
    /// Bytes that may be in `inbox`.
    room: usize,
    /// Datagrams that gave way.
    dropped: VecDeque<Bytes>,
    /// Streams that may have something to read, each once.
    readable: VecDeque<u64>,
    /// By ID: streams of one message, of which a part was read from the engine.
    begun: BTreeMap<u64, Vec<u8>>,
    /// Bytes in `begun`.
    begun_bytes: usize,
    /// Bytes that may be in `begun`. A peer that sends more of messages without their ends loses them all.
    begun_room: usize,
}

impl Arriving {
    pub(crate) fn new(flow: &FlowSetup, begun_room: usize) -> Self {
        Self {
            carry: flow.carry,
            inbox: VecDeque::new(),
            held: 0,
            room: usize::try_from(flow.receive_buffer.unwrap_or(ROOM).get()).unwrap_or(usize::MAX),
            dropped: VecDeque::new(),
            readable: VecDeque::new(),
            begun: BTreeMap::new(),
            begun_bytes: 0,
            begun_room,
        }
    }

    /// Takes the datagrams out of the engine. If there is no room, the oldest ones give way, as in quinn.
    pub(crate) fn take_datagrams(&mut self, connection: &mut Connection) {
        while let Some(data) = connection.datagrams().recv() {
            // An empty one is the sender's filling. On streams no datagram is a message.
            if data.is_empty() || self.carry != Carry::Datagram {
                continue;
            }
            while self.held + data.len() > self.room
                && let Some(oldest) = self.inbox.pop_front()
            {
                self.held -= oldest.len();
                self.dropped.push_back(oldest);
            }
            self.held += data.len();
            self.inbox.push_back(data);
        }
    }

    /// The far end opened streams.
    pub(crate) fn accept(&mut self, connection: &mut Connection) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.on_readable(id.into());
        }
    }

    /// A stream has something to read, or was reset.
    pub(crate) fn on_readable(&mut self, id: u64) {
        if !self.readable.contains(&id) {
            self.readable.push_back(id);
        }
    }

    /// A datagram that gave way, one a call.
    pub(crate) fn poll_dropped(&mut self) -> Option<Bytes> {
        self.dropped.pop_front()
    }

    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.begun.is_empty() && self.readable.is_empty() && self.begun_bytes == 0
    }

    /// One read: a whole message, or at most `limit` bytes of the stream.
    pub(crate) fn read(&mut self, connection: &mut Connection, limit: usize) -> Option<Bytes> {
        if self.carry == Carry::Datagram {
            let data = self.inbox.pop_front()?;
            self.held -= data.len();
            return Some(data);
        }
        while let Some(id) = self.readable.pop_front() {
            let read = match self.carry {
                Carry::Stream => read_chunks(connection, id, limit),
                Carry::Datagram | Carry::StreamPerMessage => self.read_message(connection, id),
            };
            if read.is_some() {
                // There may be more of the stream; a message is all of its own.
                if self.carry == Carry::Stream {
                    self.readable.push_front(id);
                }
                return read;
            }
        }
        None
    }

    /// The message on a stream, if all of it came.
    fn read_message(&mut self, connection: &mut Connection, id: u64) -> Option<Bytes> {
        let mut message = self.begun.remove(&id).unwrap_or_default();
        self.begun_bytes -= message.len();
        let end = read_into(connection, id, &mut message);
        match end {
            StreamEnd::Finished => return Some(message.into()),
            StreamEnd::Reset => {}
            StreamEnd::Blocked => {
                self.begun_bytes += message.len();
                self.begun.insert(id, message);
                // No sender of ours comes near it.
                if self.begun_bytes > self.begun_room {
                    self.begun.clear();
                    self.begun_bytes = 0;
                }
            }
        }
        None
    }
}

/// How a read of a stream ended.
enum StreamEnd {
    Finished,
    /// The sender gave it up, or it was read before.
    Reset,
    /// More will come.
    Blocked,
}

/// Appends to `message` what came of a stream.
fn read_into(connection: &mut Connection, id: u64, message: &mut Vec<u8>) -> StreamEnd {
    let mut stream = connection.recv_stream(stream_id(id));
    let Ok(mut chunks) = stream.read(true) else { return StreamEnd::Reset };
    let end = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => message.extend_from_slice(&chunk.bytes),
            Ok(None) => break StreamEnd::Finished,
            Err(ReadError::Blocked) => break StreamEnd::Blocked,
            Err(ReadError::Reset(_)) => break StreamEnd::Reset,
        }
    };
    // `poll_transmit` asks the engine whether a packet is due.
    let _transmits = chunks.finalize();
    end
}

/// All that came of a stream, at most `limit` bytes: an application reads once a turn.
fn read_chunks(connection: &mut Connection, id: u64, limit: usize) -> Option<Bytes> {
    let mut stream = connection.recv_stream(stream_id(id));
    let mut chunks = stream.read(true).ok()?;
    let mut read = Vec::new();
    while read.len() < limit
        && let Ok(Some(chunk)) = chunks.next(limit - read.len())
    {
        read.extend_from_slice(&chunk.bytes);
    }
    let _transmits = chunks.finalize();
    (!read.is_empty()).then(|| read.into())
}
