//! The data that has arrived for the flows of an end on a real host, until their applications read it. The
//! number of a message is in the message's bytes. (In the simulator it is beside the packet.)
//!
//! Several flows may share a connection. Their data names its flow without an additional byte:
//!
//! | carried on | names its flow by |
//! | --- | --- |
//! | a datagram, or a stream of one message | its token: the first 4 B of a message of [`NAMED`] B or more |
//! | a stream of all messages of the flow | the stream's ID: these are opened first, in the order of flows |
//!
//! So if the only flow of a connection is on one stream, it has the far end's first stream. At most one flow
//! has no token. It gets the data that has no other flow's token. The only flow of a connection is such a
//! flow. A stream that belongs to no flow is stopped (RFC 9000 §3.5). No flow has a bidirectional stream, and
//! none can be opened.
//!
//! A read also returns when the data came: for a datagram, when its packet came, and for a stream, when the
//! newest packet came that had data of the stream before the read. The time is kept beside the data, because
//! one thread may take the packet and another read the flow. A packet that repeats data of a stream counts,
//! too: the engine reports the stream, and does not show whether a byte is new.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quinn_proto::{Connection, Dir, VarInt};
use talkpath_config::Carry;
use talkpath_units::{Bytes as Size, Instant};

use crate::inbox::Inbox;
use crate::ready::ReadyFlows;
use crate::setup::FlowSetup;
use crate::stream::{StreamEnd, read_stream, stream_id};

/// The data that has arrived for the flows of an end. A flow is named by its index.
#[derive(Debug)]
pub(crate) struct Arriving {
    flows: Vec<FlowState>,
    /// The flow of each token.
    tokens: BTreeMap<u32, usize>,
    /// The flow that gets the data which has no other flow's token. `None` if all flows have a token.
    unnamed: Option<usize>,
    /// When the packet came that is being handled.
    came_at: Instant,
    /// The flows on one stream, in the order of their streams.
    one_stream: Vec<usize>,
    /// The messages on streams of their own of which this end has read a part from the engine, by stream ID.
    partial: BTreeMap<u64, PartialMessage>,
    /// The number of bytes in `partial`.
    partial_bytes: usize,
    /// The largest number of bytes in `partial`. Beyond it the largest message is given up.
    partial_limit: u64,
}

#[derive(Debug)]
struct FlowState {
    carry: Carry,
    /// True if the messages of the flow begin with a token.
    is_named: bool,
    /// The datagrams that are not read, and when each came.
    inbox: Inbox<(Bytes, Instant)>,
    /// The datagrams that were dropped because the inbox was full.
    dropped: VecDeque<Bytes>,
    /// The streams that may have something to read, each once.
    readable: VecDeque<ReadableStream>,
    /// The far end's error code, once it has reset the stream of all messages.
    reset: Option<VarInt>,
}

/// A stream that may have something to read.
#[derive(Clone, Copy, Debug)]
struct ReadableStream {
    id: u64,
    /// When the newest packet with data of the stream came.
    came_at: Instant,
}

/// The part of a message on a stream of its own that was read from the engine.
#[derive(Debug, Default)]
struct PartialMessage {
    /// `None` while too few bytes have come to know the flow.
    flow: Option<usize>,
    bytes: Vec<u8>,
    /// True if all bytes of the message are read.
    is_finished: bool,
}

impl Arriving {
    /// Holds twice `window` bytes of messages that are read in part. `window` is the number of bytes that the
    /// far end may send on streams before this end reads them (RFC 9000 §4.1).
    pub(crate) fn new(flows: &[FlowSetup], window: u32) -> Self {
        let state = |flow: &FlowSetup| FlowState {
            carry: flow.carry,
            is_named: false,
            inbox: Inbox::new(flow.receive_buffer),
            dropped: VecDeque::new(),
            readable: VecDeque::new(),
            reset: None,
        };
        let is_one_stream = |&flow: &usize| flows[flow].carry == Carry::Stream;
        Self {
            flows: flows.iter().map(state).collect(),
            tokens: BTreeMap::new(),
            unnamed: (!flows.is_empty()).then_some(0),
            came_at: Instant::ZERO,
            one_stream: (0..flows.len()).filter(is_one_stream).collect(),
            partial: BTreeMap::new(),
            partial_bytes: 0,
            partial_limit: 2 * u64::from(window),
        }
    }

    /// Takes note that each message of `flow` begins with `token`.
    pub(crate) fn name_flow(&mut self, flow: usize, token: u32) {
        self.flows[flow].is_named = true;
        self.tokens.entry(token).or_insert(flow);
        self.unnamed = self.flows.iter().position(|flow| !flow.is_named);
    }

    /// See [`crate::End::keep_half_messages`].
    pub(crate) fn keep_half_messages(&mut self, room: u64) {
        self.partial_limit = room;
    }

    /// Takes note that the packet which is handled next came at `came_at`.
    pub(crate) fn note_arrival(&mut self, came_at: Instant) {
        self.came_at = came_at;
    }

    /// Takes the datagrams out of the engine. If an inbox is full, its oldest datagrams are dropped, as in
    /// quinn.
    pub(crate) fn take_datagrams(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        while let Some(data) = connection.datagrams().recv() {
            // An empty datagram is padding of the sender. No datagram is a message of a flow on streams.
            let flow = if data.is_empty() { None } else { self.flow_of(&data, Carry::Datagram) };
            let Some(flow) = flow else { continue };
            let FlowState { inbox, dropped, .. } = &mut self.flows[flow];
            let size = Size::new(data.len() as u64);
            inbox.push((data, self.came_at), size, |(oldest, _)| dropped.push_back(oldest));
            ready.mark(flow);
        }
    }

    /// Handles the streams that the far end has opened.
    pub(crate) fn accept(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.on_readable(connection, id.into(), ready);
        }
    }

    /// Takes note that a stream has something to read, or was reset.
    pub(crate) fn on_readable(&mut self, connection: &mut Connection, id: u64, ready: &mut ReadyFlows) {
        let Some(flow) = self.flow_of_stream(connection, id) else { return };
        let readable = &mut self.flows[flow].readable;
        match readable.iter_mut().find(|stream| stream.id == id) {
            Some(stream) => stream.came_at = self.came_at,
            None => readable.push_back(ReadableStream { id, came_at: self.came_at }),
        }
        ready.mark(flow);
    }

    /// Returns a datagram of `flow` that was dropped. One per call.
    pub(crate) fn poll_dropped(&mut self, flow: usize) -> Option<Bytes> {
        self.flows[flow].dropped.pop_front()
    }

    /// Returns the far end's error code, if a read has found the stream of all messages of `flow` reset.
    pub(crate) fn reset(&self, flow: usize) -> Option<u64> {
        self.flows[flow].reset.map(VarInt::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        let is_read = self.flows.iter().all(|flow| flow.readable.is_empty());
        self.partial.is_empty() && is_read && self.partial_bytes == 0
    }

    /// Reads a whole message of `flow`, or at most `limit` bytes of its stream. Returns also when the packet
    /// came that brought the data.
    pub(crate) fn read(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        limit: usize,
    ) -> Option<(Bytes, Instant)> {
        let carry = self.flows[flow].carry;
        if carry == Carry::Datagram {
            return self.flows[flow].inbox.pop().map(|(datagram, _)| datagram);
        }
        while let Some(stream) = self.flows[flow].readable.pop_front() {
            let read = match carry {
                Carry::Stream => self.read_chunks(connection, stream.id, flow, limit),
                Carry::Datagram | Carry::StreamPerMessage => self.read_message(connection, stream.id),
            };
            if let Some(read) = read {
                // A stream of all messages may have more data. A stream of one message is read to its end.
                if carry == Carry::Stream {
                    self.flows[flow].readable.push_front(stream);
                }
                return Some((read, stream.came_at));
            }
        }
        None
    }

    /// Returns the flow of a message that begins with `beginning`. `None` if no flow that is carried by
    /// `carry` has such messages.
    fn flow_of(&self, beginning: &[u8], carry: Carry) -> Option<usize> {
        let token = beginning.first_chunk().filter(|_| beginning.len() >= NAMED);
        let named = token.and_then(|octets| self.tokens.get(&u32::from_be_bytes(*octets)).copied());
        let flow = named.or(self.unnamed)?;
        (self.flows[flow].carry == carry).then_some(flow)
    }

    /// Returns the flow of a stream. `None` while too few bytes of the stream have come, or if the stream
    /// belongs to no flow.
    fn flow_of_stream(&mut self, connection: &mut Connection, id: u64) -> Option<usize> {
        // The last two bits of an ID are the type of the stream (RFC 9000 §2.1), which is the same for all
        // unidirectional streams of the far end.
        let number = usize::try_from(id >> 2).unwrap_or(usize::MAX);
        if let Some(&flow) = self.one_stream.get(number) {
            return Some(flow);
        }
        // The only flow of a connection needs no token: the far end may be another program.
        if let [FlowState { carry: Carry::StreamPerMessage, .. }] = self.flows[..] {
            return Some(0);
        }
        let mut partial = self.take_partial(id);
        if partial.flow.is_none() {
            let missing = NAMED.saturating_sub(partial.bytes.len());
            match read_stream(connection, id, missing, |bytes| partial.bytes.extend_from_slice(bytes)) {
                StreamEnd::Reset(_) | StreamEnd::Closed => return None,
                StreamEnd::Blocked => {}
                end @ (StreamEnd::Limit | StreamEnd::Finished) => {
                    partial.flow = self.flow_of(&partial.bytes, Carry::StreamPerMessage);
                    partial.is_finished = matches!(end, StreamEnd::Finished);
                    if partial.flow.is_none() {
                        // The stream belongs to no flow. Once it is stopped, the far end may open another.
                        let _stopped = connection.recv_stream(stream_id(id)).stop(NO_FLOW);
                        return None;
                    }
                }
            }
        }
        let flow = partial.flow;
        self.keep_partial(connection, id, partial);
        flow
    }

    /// Reads at most `limit` bytes of the stream of `flow`. `None` if there are none now.
    fn read_chunks(
        &mut self,
        connection: &mut Connection,
        id: u64,
        flow: usize,
        limit: usize,
    ) -> Option<Bytes> {
        let mut read = Vec::new();
        let end = read_stream(connection, id, limit, |bytes| read.extend_from_slice(bytes));
        if let StreamEnd::Reset(code) = end {
            self.flows[flow].reset = Some(code);
        }
        (!read.is_empty()).then(|| read.into())
    }

    /// Reads the message on a stream. `None` if the message has not come as a whole.
    fn read_message(&mut self, connection: &mut Connection, id: u64) -> Option<Bytes> {
        let mut partial = self.take_partial(id);
        if partial.is_finished {
            return Some(partial.bytes.into());
        }
        match read_stream(connection, id, usize::MAX, |bytes| partial.bytes.extend_from_slice(bytes)) {
            StreamEnd::Finished => return Some(partial.bytes.into()),
            // The message is lost, and the flow goes on. The sender knows why.
            StreamEnd::Reset(_) | StreamEnd::Closed => {}
            StreamEnd::Limit | StreamEnd::Blocked => self.keep_partial(connection, id, partial),
        }
        None
    }

    /// Takes out the part of a message that was read. It is empty if nothing was read.
    fn take_partial(&mut self, id: u64) -> PartialMessage {
        let partial = self.partial.remove(&id).unwrap_or_default();
        self.partial_bytes -= partial.bytes.len();
        partial
    }

    /// Keeps the part of a message that was read. If there is no room for it, the largest message is given
    /// up, and its stream is stopped (RFC 9000 §3.5). The engine returns no more data of a stopped stream, so
    /// that later bytes are never read as a message.
    fn keep_partial(&mut self, connection: &mut Connection, id: u64, partial: PartialMessage) {
        self.partial_bytes += partial.bytes.len();
        self.partial.insert(id, partial);
        while self.partial_bytes as u64 > self.partial_limit
            && let Some((&largest, _)) = self.partial.iter().max_by_key(|(_, partial)| partial.bytes.len())
        {
            self.take_partial(largest);
            let _stopped = connection.recv_stream(stream_id(largest)).stop(NO_ROOM);
        }
    }
}

/// The length of the shortest message that names its flow, in bytes. A shorter message has no room for the
/// token beside its number.
pub const NAMED: usize = 8;

/// The error code for a stream that belongs to no flow. Its meaning is talkpath's own (RFC 9000 §20.2).
const NO_FLOW: VarInt = VarInt::from_u32(2);

/// The error code for a message that has no room among the messages which are read in part. Its meaning is
/// talkpath's own (RFC 9000 §20.2).
const NO_ROOM: VarInt = VarInt::from_u32(3);
