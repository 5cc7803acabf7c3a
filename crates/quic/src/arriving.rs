//! What came for the flows of an end on a real host, with its bytes, until their applications read it. No
//! number travels beside a packet there: which message it is, its bytes say.
//!
//! If several flows share the connection, what comes names its flow, and no byte is added for that:
//!
//! - A datagram or a stream of one message by the flow's token: the first 4 B of each message of [`NAMED`]
//!   bytes or more.
//! - The stream of all messages of a flow by its ID: these streams are opened first, in the order of their
//!   flows. So the only flow of a connection, if it is on one stream, has the far end's first one.
//!
//! One flow at most has no token: whatever has no other flow's is that one's. The only flow of a connection
//! is such a flow. A stream that is no flow's is stopped (RFC 9000 §3.5). No flow has a bidirectional
//! stream, and none can be opened.
//!
//! With what a flow reads comes the time of the packet that brought it: of a datagram its own, of a stream
//! the newest one with data of it before the read. The time is kept beside the message until then, because
//! another thread may read the flow than the one that took the packet. A packet that repeats data of a stream
//! counts, too: the engine reports the stream for it and does not show whether a byte is new.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quinn_proto::{Connection, Dir, VarInt};
use talkpath_config::Carry;
use talkpath_units::{Bytes as Size, Instant};

use crate::inbox::Inbox;
use crate::ready::ReadyFlows;
use crate::setup::FlowSetup;
use crate::stream::{StreamEnd, read_stream, stream_id};

/// What came for the flows of an end.
#[derive(Debug)]
pub(crate) struct Arriving {
    flows: Vec<FlowState>,
    /// With what the messages of each flow begin.
    tokens: BTreeMap<u32, usize>,
    /// The flow that takes what has no other flow's token.
    unnamed: Option<usize>,
    /// When the packet came that is handled now.
    came_at: Instant,
    /// The flows on one stream, in the order of their streams.
    one_stream: Vec<usize>,
    /// By ID: streams of one message that were read from the engine in part.
    begun: BTreeMap<u64, Begun>,
    /// Bytes in `begun`.
    begun_bytes: usize,
    /// Bytes that may be in `begun`. Beyond it the largest message is given up.
    begun_room: u64,
}

#[derive(Debug)]
struct FlowState {
    carry: Carry,
    /// Whether its messages begin with a token.
    is_named: bool,
    /// Datagrams that came and were not read, and when.
    inbox: Inbox<(Bytes, Instant)>,
    /// Datagrams that gave way.
    dropped: VecDeque<Bytes>,
    /// Streams that may have something to read, each once, and when the newest packet with its data came.
    readable: VecDeque<(u64, Instant)>,
    /// The far end's code, once it has reset the stream of all messages.
    reset: Option<VarInt>,
}

/// What was read from the engine of a message on a stream of its own.
#[derive(Debug, Default)]
struct Begun {
    /// `None` while too little came to know it.
    flow: Option<usize>,
    message: Vec<u8>,
    /// The message is whole.
    is_finished: bool,
}

impl Arriving {
    /// The far end may send `window` bytes on streams that nobody has read (RFC 9000 §4.1).
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
            begun: BTreeMap::new(),
            begun_bytes: 0,
            begun_room: 2 * u64::from(window),
        }
    }

    /// Each message of `flow` begins with `token`.
    pub(crate) fn name_flow(&mut self, flow: usize, token: u32) {
        self.flows[flow].is_named = true;
        self.tokens.entry(token).or_insert(flow);
        self.unnamed = self.flows.iter().position(|flow| !flow.is_named);
    }

    /// See [`crate::End::keep_half_messages`].
    pub(crate) fn keep_half_messages(&mut self, room: u64) {
        self.begun_room = room;
    }

    /// What comes from now on came in a packet at `came_at`.
    pub(crate) fn note_arrival(&mut self, came_at: Instant) {
        self.came_at = came_at;
    }

    /// Takes the datagrams out of the engine. If there is no room, the oldest ones give way, as in quinn.
    pub(crate) fn take_datagrams(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        while let Some(data) = connection.datagrams().recv() {
            // An empty one is the sender's filling. On streams no datagram is a message.
            let flow = if data.is_empty() { None } else { self.flow_of(&data, Carry::Datagram) };
            let Some(flow) = flow else { continue };
            let FlowState { inbox, dropped, .. } = &mut self.flows[flow];
            let size = Size::new(data.len() as u64);
            inbox.push((data, self.came_at), size, |(oldest, _)| dropped.push_back(oldest));
            ready.mark(flow);
        }
    }

    /// The far end opened streams.
    pub(crate) fn accept(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.on_readable(connection, id.into(), ready);
        }
    }

    /// A stream has something to read, or was reset.
    pub(crate) fn on_readable(&mut self, connection: &mut Connection, id: u64, ready: &mut ReadyFlows) {
        let Some(flow) = self.flow_of_stream(connection, id) else { return };
        let readable = &mut self.flows[flow].readable;
        match readable.iter_mut().find(|stream| stream.0 == id) {
            Some((_, came_at)) => *came_at = self.came_at,
            None => readable.push_back((id, self.came_at)),
        }
        ready.mark(flow);
    }

    /// A datagram of `flow` that gave way, one a call.
    pub(crate) fn poll_dropped(&mut self, flow: usize) -> Option<Bytes> {
        self.flows[flow].dropped.pop_front()
    }

    /// The far end's code, once it was read that the stream of all messages of `flow` is reset.
    pub(crate) fn reset(&self, flow: usize) -> Option<u64> {
        self.flows[flow].reset.map(VarInt::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        let is_read = self.flows.iter().all(|flow| flow.readable.is_empty());
        self.begun.is_empty() && is_read && self.begun_bytes == 0
    }

    /// One read of `flow`: a whole message, or at most `limit` bytes of the stream, and the time of the
    /// packet that brought it.
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
        while let Some((id, came_at)) = self.flows[flow].readable.pop_front() {
            let read = match carry {
                Carry::Stream => self.read_chunks(connection, (id, flow), limit),
                Carry::Datagram | Carry::StreamPerMessage => self.read_message(connection, id),
            };
            if let Some(read) = read {
                // There may be more of the stream; a message is all of its own.
                if carry == Carry::Stream {
                    self.flows[flow].readable.push_front((id, came_at));
                }
                return Some((read, came_at));
            }
        }
        None
    }

    /// The flow whose message begins with `beginning` and is carried so; `None` if it is none of theirs.
    fn flow_of(&self, beginning: &[u8], carry: Carry) -> Option<usize> {
        let token = beginning.first_chunk().filter(|_| beginning.len() >= NAMED);
        let named = token.and_then(|octets| self.tokens.get(&u32::from_be_bytes(*octets)).copied());
        let flow = named.or(self.unnamed)?;
        (self.flows[flow].carry == carry).then_some(flow)
    }

    /// The flow of a stream; `None` while too little of the stream has come to tell, or if it is no flow's.
    fn flow_of_stream(&mut self, connection: &mut Connection, id: u64) -> Option<usize> {
        // RFC 9000 §2.1: the last two bits are the kind of the stream. Here it is always the same: the far
        // end's unidirectional streams.
        let number = usize::try_from(id >> 2).unwrap_or(usize::MAX);
        if let Some(&flow) = self.one_stream.get(number) {
            return Some(flow);
        }
        // Whoever shares nothing names nothing: the far end may be another program.
        if let [FlowState { carry: Carry::StreamPerMessage, .. }] = self.flows[..] {
            return Some(0);
        }
        let mut begun = self.take_begun(id);
        if begun.flow.is_none() {
            let missing = NAMED.saturating_sub(begun.message.len());
            match read_stream(connection, id, missing, |bytes| begun.message.extend_from_slice(bytes)) {
                StreamEnd::Reset(_) | StreamEnd::Closed => return None,
                StreamEnd::Blocked => {}
                end @ (StreamEnd::Limit | StreamEnd::Finished) => {
                    begun.flow = self.flow_of(&begun.message, Carry::StreamPerMessage);
                    begun.is_finished = matches!(end, StreamEnd::Finished);
                    if begun.flow.is_none() {
                        // It is nobody's. To stop it lets the far end open another.
                        let _stopped = connection.recv_stream(stream_id(id)).stop(NOBODYS);
                        return None;
                    }
                }
            }
        }
        let flow = begun.flow;
        self.keep_begun(connection, id, begun);
        flow
    }

    /// All that came of the stream of `flow`, at most `limit` bytes: an application reads once a turn.
    fn read_chunks(
        &mut self,
        connection: &mut Connection,
        (id, flow): (u64, usize),
        limit: usize,
    ) -> Option<Bytes> {
        let mut read = Vec::new();
        if let StreamEnd::Reset(code) =
            read_stream(connection, id, limit, |bytes| read.extend_from_slice(bytes))
        {
            self.flows[flow].reset = Some(code);
        }
        (!read.is_empty()).then(|| read.into())
    }

    /// The message on a stream, if it came whole.
    fn read_message(&mut self, connection: &mut Connection, id: u64) -> Option<Bytes> {
        let mut begun = self.take_begun(id);
        if begun.is_finished {
            return Some(begun.message.into());
        }
        match read_stream(connection, id, usize::MAX, |bytes| begun.message.extend_from_slice(bytes)) {
            StreamEnd::Finished => return Some(begun.message.into()),
            // It is lost, and the flow goes on. The sender knows why.
            StreamEnd::Reset(_) | StreamEnd::Closed => {}
            StreamEnd::Limit | StreamEnd::Blocked => self.keep_begun(connection, id, begun),
        }
        None
    }

    /// What was read of the message on a stream.
    fn take_begun(&mut self, id: u64) -> Begun {
        let begun = self.begun.remove(&id).unwrap_or_default();
        self.begun_bytes -= begun.message.len();
        begun
    }

    /// Keeps what was read of the message on a stream. If there is no room for it, the largest message is
    /// given up and its stream is stopped (RFC 9000 §3.5): the engine gives nothing more of a stopped stream,
    /// so that later bytes are never read as a message.
    fn keep_begun(&mut self, connection: &mut Connection, id: u64, begun: Begun) {
        self.begun_bytes += begun.message.len();
        self.begun.insert(id, begun);
        while self.begun_bytes as u64 > self.begun_room
            && let Some((&largest, _)) = self.begun.iter().max_by_key(|(_, begun)| begun.message.len())
        {
            self.take_begun(largest);
            let _stopped = connection.recv_stream(stream_id(largest)).stop(NO_ROOM);
        }
    }
}

/// The shortest message that names its flow, bytes: a shorter one has no room for the token beside its
/// number.
pub const NAMED: usize = 8;

/// What the far end of a stream that is no flow's is stopped with: ours.
const NOBODYS: VarInt = VarInt::from_u32(2);

/// The code that the far end gets if its message finds no room among the half messages. Chosen.
const NO_ROOM: VarInt = VarInt::from_u32(3);
