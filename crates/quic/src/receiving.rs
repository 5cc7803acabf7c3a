//! The data that has arrived for the flows of a simulated end, until their applications read it.
//!
//! | carried on | a message is known by | delivered |
//! | --- | --- | --- |
//! | datagrams | the pieces of its packet, in the order of the frames | when it is read |
//! | a stream of its own | the first piece with the stream's ID | when the stream is finished |
//! | the stream of all messages | - | as bytes |
//!
//! The bytes of messages are zeros, so only their number is kept.

use std::collections::{BTreeMap, VecDeque};

use quinn_proto::{Connection, Dir, ReadableError};
use talkpath_config::Carry;
use talkpath_units::Bytes;
use talkpath_wire::{Delivery, QuicPiece};

use crate::inbox::Inbox;
use crate::ready::ReadyFlows;
use crate::setup::FlowSetup;
use crate::stream::{StreamEnd, read_stream, stream_id};

/// The flows of an end as receivers, and the far end's streams. A flow is named by its index.
#[derive(Debug)]
pub(crate) struct Receiving {
    flows: Vec<FlowState>,
    /// The streams that are not read to their end, by ID.
    streams: BTreeMap<u64, ReceivedStream>,
}

#[derive(Debug)]
struct FlowState {
    carry: Carry,
    /// The numbers of the datagrams that are not read.
    inbox: Inbox<u64>,
    /// The numbers of the messages that will not be read, and why.
    dropped: VecDeque<(u64, DiscardCause)>,
    /// The streams that may have something to read, each once.
    readable: VecDeque<u64>,
}

#[derive(Debug)]
struct ReceivedStream {
    flow: usize,
    seq: u64,
    /// The number of bytes that were read from the engine.
    read: u64,
    /// True if the stream is in [`FlowState::readable`].
    is_listed: bool,
}

/// Why a message that has arrived will not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardCause {
    /// The inbox was full, and the message was the oldest in it.
    NoRoom,
    /// The engine discarded the packet, because it does not have the keys yet, may not use them before the
    /// handshake is over (RFC 9001 §5.7), or has discarded them (§4.9.3).
    NoKeys,
}

impl Receiving {
    pub(crate) fn new(flows: &[FlowSetup]) -> Self {
        let state = |flow: &FlowSetup| FlowState {
            carry: flow.carry,
            inbox: Inbox::new(flow.receive_buffer),
            dropped: VecDeque::new(),
            readable: VecDeque::new(),
        };
        Self { flows: flows.iter().map(state).collect(), streams: BTreeMap::new() }
    }

    /// Learns the flows and messages of the streams in a packet that is about to be handled.
    pub(crate) fn learn(&mut self, pieces: &[QuicPiece]) {
        for piece in pieces {
            let flow = piece.flow as usize;
            if let Some(id) = piece.stream
                && flow < self.flows.len()
            {
                let stream = ReceivedStream { flow, seq: piece.seq, read: 0, is_listed: false };
                self.streams.entry(id).or_insert(stream);
            }
        }
    }

    /// Takes the data of a packet that the engine has handled. `is_read` is true if the engine had its keys.
    pub(crate) fn on_handled(
        &mut self,
        mut connection: Option<&mut Connection>,
        pieces: &[QuicPiece],
        is_read: bool,
        ready: &mut ReadyFlows,
    ) {
        self.take_datagrams(connection.as_deref_mut(), pieces, is_read, ready);
        if let Some(connection) = connection {
            self.forget_closed(connection, pieces);
        }
    }

    /// Forgets the streams of a packet that the engine has closed before. No more data is read from them.
    fn forget_closed(&mut self, connection: &mut Connection, pieces: &[QuicPiece]) {
        for id in pieces.iter().filter_map(|piece| piece.stream) {
            let is_unread = self.streams.get(&id).is_some_and(|stream| !stream.is_listed && stream.read == 0);
            if is_unread && is_closed(connection, id) {
                self.streams.remove(&id);
            }
        }
    }

    /// Takes the datagrams of a packet out of the engine. If the engine could not read the packet, its
    /// datagrams are dropped, because they are not sent again. If the engine could read the packet but took
    /// no datagram from it, the packet is a copy (RFC 9000 §12.3), and the datagrams were taken from the
    /// first one.
    fn take_datagrams(
        &mut self,
        mut connection: Option<&mut Connection>,
        pieces: &[QuicPiece],
        is_read: bool,
        ready: &mut ReadyFlows,
    ) {
        let mut numbers = pieces.iter().filter(|piece| piece.stream.is_none());
        while let Some(data) = connection.as_mut().and_then(|connection| connection.datagrams().recv()) {
            // An empty datagram is padding of the sender.
            if data.is_empty() {
                continue;
            }
            let Some(&QuicPiece { flow, seq, .. }) = numbers.next() else { continue };
            let Some(FlowState { inbox, dropped, .. }) = self.flows.get_mut(flow as usize) else { continue };
            ready.mark(flow as usize);
            let size = Bytes::new(data.len() as u64);
            inbox.push(seq, size, |oldest| dropped.push_back((oldest, DiscardCause::NoRoom)));
        }
        for piece in numbers.filter(|_| !is_read) {
            if let Some(flow) = self.flows.get_mut(piece.flow as usize) {
                flow.dropped.push_back((piece.seq, DiscardCause::NoKeys));
                ready.mark(piece.flow as usize);
            }
        }
    }

    /// Returns the number of streams that are not read to their end.
    #[cfg(test)]
    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Handles the streams that the far end has opened.
    pub(crate) fn accept(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.on_readable(connection, id.into(), ready);
        }
    }

    /// Takes note that a stream has something to read, or was reset.
    pub(crate) fn on_readable(&mut self, connection: &mut Connection, id: u64, ready: &mut ReadyFlows) {
        match self.streams.get_mut(&id) {
            Some(stream) => {
                ready.mark(stream.flow);
                if !stream.is_listed {
                    stream.is_listed = true;
                    self.flows[stream.flow].readable.push_back(id);
                }
            }
            // The stream was reset before any of its data came. Once the reset is read, the far end may open
            // another stream.
            None => drop(count_stream(connection, id, u64::MAX)),
        }
    }

    /// True if a flow may have something to read.
    pub(crate) fn is_readable(&self, flow: usize) -> bool {
        !self.flows[flow].inbox.is_empty() || !self.flows[flow].readable.is_empty()
    }

    /// See [`crate::End::poll_dropped`].
    pub(crate) fn poll_dropped(&mut self, flow: usize) -> Option<(u64, DiscardCause)> {
        self.flows[flow].dropped.pop_front()
    }

    /// Reads a whole message of a flow, or at most `limit` bytes of its stream.
    pub(crate) fn read(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        limit: Bytes,
    ) -> Option<Delivery> {
        if self.flows[flow].carry == Carry::Datagram {
            let (seq, size) = self.flows[flow].inbox.pop()?;
            return Some(Delivery::Message { seq, size });
        }
        let is_whole = self.flows[flow].carry == Carry::StreamPerMessage;
        while let Some(&id) = self.flows[flow].readable.front() {
            let limit = if is_whole { u64::MAX } else { limit.get() };
            let (bytes, end) = count_stream(connection, id, limit);
            let Some(stream) = self.streams.get_mut(&id) else {
                self.flows[flow].readable.pop_front();
                continue;
            };
            stream.read += bytes;
            let (seq, size) = (stream.seq, Bytes::new(stream.read));
            // After the limit the stream has more data for the next read.
            if end != StreamEnd::Limit {
                stream.is_listed = false;
                self.flows[flow].readable.pop_front();
            }
            if matches!(end, StreamEnd::Finished | StreamEnd::Reset(_) | StreamEnd::Closed) {
                self.streams.remove(&id);
            }
            if is_whole && end == StreamEnd::Finished {
                return Some(Delivery::Message { seq, size });
            }
            if !is_whole && bytes > 0 {
                return Some(Delivery::Stream { bytes: Bytes::new(bytes) });
            }
        }
        None
    }
}

/// Reads at most `limit` bytes of a stream. Returns their number, and why the read ended.
fn count_stream(connection: &mut Connection, id: u64, limit: u64) -> (u64, StreamEnd) {
    let mut read = 0;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let end = read_stream(connection, id, limit, |bytes| read += bytes.len() as u64);
    (read, end)
}

/// True if the engine has forgotten a stream, because it was read to its end or reset.
fn is_closed(connection: &mut Connection, id: u64) -> bool {
    let mut stream = connection.recv_stream(stream_id(id));
    stream.read(true).is_err_and(|error| error == ReadableError::ClosedStream)
}
