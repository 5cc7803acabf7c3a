//! The streams on which an end sends its flows' messages.
//!
//! - *flow stream*: the one stream that carries all messages of a flow ([`Carry::Stream`]).
//! - *message stream*: a stream that carries a single message ([`Carry::StreamPerMessage`]).
//! - *accepted*: this end has taken the bytes from the application. Some of them may not be written yet.
//! - *written*: the engine has the bytes.
//! - *departed*: the engine has put the bytes into a packet.
//! - *unsent*: accepted and not departed.
//! - *early data*: what was written before the handshake was over (0-RTT).
//!
//! The far end may reject early data. Then the engine forgets all streams, and the stream IDs begin again at
//! the lowest. So a copy of early data is kept until the handshake is over. Rejected data counts as lost. It
//! is written again in the old order before any other data (RFC 9001 §4.6.2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quinn_proto::{Connection, Dir, StreamId, VarInt};
use talkpath_config::Carry;
use talkpath_units::{Bytes, Instant};
use talkpath_wire::{Message, PayloadRange, Refused};

use crate::content::Content;
use crate::ready::ReadyFlows;
use crate::setup::FlowSetup;
use crate::stream::stream_id;

/// The error code with which the stream of an expired message is reset. Its meaning is talkpath's own (RFC
/// 9000 §20.2).
const EXPIRED: VarInt = VarInt::from_u32(1);
/// The largest number of unsent bytes of a flow on datagrams. It is quinn's `datagram_send_buffer_size`, for
/// each flow of the connection.
const DATAGRAM_UNSENT_LIMIT: u64 = 1 << 20;
/// The number of unsent bytes from which a flow on streams has no room. We chose twice the largest message of
/// `bulk`, because the engine would accept megabytes, which would only wait in it.
const STREAM_UNSENT_LIMIT: u64 = 128 << 10;

/// The flows of an end as senders, and their streams. A flow is named by its index.
#[derive(Debug)]
pub(crate) struct Sending {
    flows: Vec<FlowState>,
    /// The streams, by stream ID, until the far end has acknowledged all their bytes.
    streams: BTreeMap<u64, SentStream>,
    /// The expiry and the stream ID of each message that has not departed as a whole.
    expiries: BTreeSet<(Instant, u64)>,
    /// The flows with a message of which the engine has only a part.
    partly_written: BTreeSet<usize>,
    /// The flows that wait until the far end allows another stream.
    waiting_for_stream: BTreeSet<usize>,
    /// True if the order of the flows decides the IDs of the flow streams ([`Self::open_in_flow_order`]).
    opens_in_flow_order: bool,
    /// The first flow whose flow stream has not been opened in the order of the flows.
    next_to_open: usize,
    /// Copies of early data, by stream ID.
    early_contents: BTreeMap<u64, Vec<Content>>,
    /// The streams of rejected early data that is not written again yet.
    rejected_streams: VecDeque<RejectedStream>,
}

#[derive(Debug)]
struct FlowState {
    carry: Carry,
    priority: u8,
    /// The flow stream, once it is open.
    flow_stream: Option<StreamId>,
    /// The part of the last message that the engine does not have yet.
    unwritten: Option<Unwritten>,
    /// True while the engine takes no more bytes.
    is_blocked: bool,
    /// The far end's error code, once the far end has stopped the flow stream.
    stop_code: Option<VarInt>,
    /// The number of unsent bytes.
    unsent: u64,
}

/// The bytes of a message that are still to be written on its stream.
#[derive(Debug)]
struct Unwritten {
    stream: StreamId,
    content: Content,
}

#[derive(Clone, Copy, Debug)]
struct SentStream {
    flow: usize,
    /// The message of a message stream. `None` for a flow stream.
    message: Option<StreamMessage>,
    /// The time at which the message is given up. `None` if it never expires, or once it has departed as a
    /// whole.
    expires: Option<Instant>,
    /// The offset after the last byte that has departed.
    departed: u64,
}

#[derive(Clone, Copy, Debug)]
struct StreamMessage {
    seq: u64,
    size: u64,
}

impl SentStream {
    /// Returns the number of the message on the stream. It is zero for a flow stream.
    fn seq(&self) -> u64 {
        self.message.map_or(0, |message| message.seq)
    }

    /// Returns the number of unsent bytes of a message stream. It is zero for a flow stream.
    fn unsent(&self) -> u64 {
        self.message.map_or(0, |message| message.size.saturating_sub(self.departed))
    }
}

/// A stream whose early data the far end rejected.
#[derive(Debug)]
struct RejectedStream {
    stream: SentStream,
    /// The new ID, once the stream is open again.
    id: Option<StreamId>,
    /// The data that is still to be written again.
    contents: VecDeque<Content>,
}

/// The bytes of a stream that departed in one packet.
pub(crate) struct Sent {
    pub(crate) flow: usize,
    /// The number of the message. It is zero for a flow stream.
    pub(crate) seq: u64,
    /// The part that a record of the run counts. A message counts when its first byte departs, so this is
    /// `None` for its other bytes. It is also `None` if there are no bytes.
    pub(crate) range: Option<PayloadRange>,
    /// True if any of the bytes departed before.
    pub(crate) is_retransmission: bool,
}

/// What happened to a message after it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendEvent {
    /// The engine put the message, or these bytes of the flow's one stream, into a packet. The event comes
    /// again for a retransmission.
    Sent(PayloadRange),
    /// The message expired before all its bytes had departed. After the connection was lost, all such
    /// messages that have an expiry count as expired at once. The message will not arrive.
    Expired {
        /// [`Message::seq`].
        seq: u64,
    },
    /// The message is too large for a datagram, but this became known only after the message was accepted. It
    /// will not arrive. There are two cases:
    ///
    /// - The message was accepted before the end of the handshake (RFC 9001 §4.6), and the far end then
    ///   allowed only smaller datagrams (RFC 9221 §3).
    /// - The message was accepted before the search for the path's MTU ended (RFC 8899), and the path carries
    ///   only smaller packets.
    GivenBack {
        /// [`Message::seq`].
        seq: u64,
    },
    /// The far end stopped the stream that carries only this message (RFC 9000 §3.5). Those bytes that have
    /// not arrived yet will never arrive.
    Stopped {
        /// [`Message::seq`].
        seq: u64,
    },
}

impl Sending {
    pub(crate) fn new(flows: &[FlowSetup]) -> Self {
        let state = |flow: &FlowSetup| FlowState {
            carry: flow.carry,
            priority: flow.priority,
            flow_stream: None,
            unwritten: None,
            is_blocked: false,
            stop_code: None,
            unsent: 0,
        };
        Self {
            flows: flows.iter().map(state).collect(),
            streams: BTreeMap::new(),
            expiries: BTreeSet::new(),
            partly_written: BTreeSet::new(),
            waiting_for_stream: BTreeSet::new(),
            opens_in_flow_order: false,
            next_to_open: 0,
            early_contents: BTreeMap::new(),
            rejected_streams: VecDeque::new(),
        }
    }

    /// From now on, opens the flow streams in the order of the flows, and before any message stream. The IDs
    /// of the flow streams then follow from that order. So the far end knows the flow of such a stream by the
    /// stream's ID.
    pub(crate) fn open_in_flow_order(&mut self) {
        self.opens_in_flow_order = true;
    }

    pub(crate) fn carry(&self, flow: usize) -> Carry {
        self.flows[flow].carry
    }

    pub(crate) fn priority(&self, flow: usize) -> u8 {
        self.flows[flow].priority
    }

    /// Returns the number of unsent bytes of `flow`.
    pub(crate) fn unsent(&self, flow: usize) -> Bytes {
        Bytes::new(self.flows[flow].unsent)
    }

    /// Returns whether bytes of any flow are unsent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.flows.iter().any(|flow| flow.unsent > 0)
    }

    /// Returns the far end's error code, if the far end has stopped the flow stream of `flow`.
    pub(crate) fn stop_code(&self, flow: usize) -> Option<u64> {
        self.flows[flow].stop_code.map(VarInt::into_inner)
    }

    /// Returns the time at which the next message on a stream expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        // `expiries` has the streams that are open, also those that were opened again.
        let not_open_again = self.rejected_streams.iter().filter(|rejected| rejected.id.is_none());
        let rejected_expiries = not_open_again.filter_map(|rejected| rejected.stream.expires);
        let first_open = self.expiries.first().map(|&(expires, _)| expires);
        rejected_expiries.chain(first_open).min()
    }

    /// Returns the room for the next message of `flow` on streams. It is the whole limit or zero, because a
    /// stream that has any room accepts a message of any size, at least in part.
    pub(crate) fn writable(&self, flow: usize) -> Bytes {
        let flow = &self.flows[flow];
        let has_older_data = flow.unwritten.is_some() || !self.rejected_streams.is_empty();
        let is_full = flow.is_blocked || has_older_data || flow.unsent >= STREAM_UNSENT_LIMIT;
        if is_full { Bytes::ZERO } else { Bytes::new(STREAM_UNSENT_LIMIT) }
    }

    /// Returns the room for the next message of `flow` on datagrams, which is at most `largest`.
    pub(crate) fn datagram_room(&self, flow: usize, largest: Bytes) -> Bytes {
        Bytes::new(DATAGRAM_UNSENT_LIMIT.saturating_sub(self.flows[flow].unsent)).min(largest)
    }

    /// Counts `size` bytes of `flow` as unsent, because they were accepted.
    pub(crate) fn add_unsent(&mut self, flow: usize, size: Bytes) {
        self.flows[flow].unsent += size.get();
    }

    /// Counts `size` bytes of `flow` as unsent no longer, because they have departed or were given up.
    pub(crate) fn remove_unsent(&mut self, flow: usize, size: Bytes) {
        self.flows[flow].unsent -= size.get();
    }

    /// Writes as much of `content` on the flow stream of `flow` as the engine has room for. Returns the
    /// number of bytes that were accepted.
    pub(crate) fn write_stream(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        mut content: Content,
    ) -> Result<Bytes, Refused> {
        if !self.rejected_streams.is_empty() {
            return Err(Refused::NoRoom);
        }
        if self.opens_in_flow_order {
            self.open_flow_streams(connection);
        } else if self.flows[flow].flow_stream.is_none() {
            self.open_flow_stream(connection, flow);
        }
        let state = &mut self.flows[flow];
        let Some(id) = state.flow_stream else {
            return self.wait_for_stream(flow);
        };
        let early_content = connection.is_handshaking().then(|| content.clone());
        let written = write(connection, id, &mut content);
        state.is_blocked = content.len() > 0;
        if written == 0 {
            return Err(Refused::NoRoom);
        }
        if let Some(early_content) = early_content {
            self.early_contents.entry(id.into()).or_default().push(early_content.first(written));
        }
        self.add_unsent(flow, Bytes::new(written));
        Ok(Bytes::new(written))
    }

    /// Opens the flow stream of `flow`. Returns `None` if the far end allows no other stream now.
    fn open_flow_stream(&mut self, connection: &mut Connection, flow: usize) -> Option<StreamId> {
        let state = &mut self.flows[flow];
        let id = open(connection, state.priority)?;
        state.flow_stream = Some(id);
        let stream = SentStream { flow, message: None, expires: None, departed: 0 };
        self.streams.insert(id.into(), stream);
        Some(id)
    }

    /// Opens the flow streams that are not open, in the order of the flows. Returns true if all are open.
    fn open_flow_streams(&mut self, connection: &mut Connection) -> bool {
        while let Some(state) = self.flows.get(self.next_to_open) {
            if state.carry == Carry::Stream && self.open_flow_stream(connection, self.next_to_open).is_none()
            {
                return false;
            }
            self.next_to_open += 1;
        }
        true
    }

    /// Makes `flow` wait until the far end allows another stream.
    fn wait_for_stream(&mut self, flow: usize) -> Result<Bytes, Refused> {
        self.flows[flow].is_blocked = true;
        self.waiting_for_stream.insert(flow);
        Err(Refused::NoRoom)
    }

    /// Accepts a message as a whole, on a stream of its own.
    pub(crate) fn write_message(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        message: Message,
        content: Content,
        expires: Option<Instant>,
    ) -> Result<Bytes, Refused> {
        if self.flows[flow].unwritten.is_some() || !self.rejected_streams.is_empty() {
            return Err(Refused::NoRoom);
        }
        let may_open = !self.opens_in_flow_order || self.open_flow_streams(connection);
        let state = &mut self.flows[flow];
        let Some(id) = may_open.then(|| open(connection, state.priority)).flatten() else {
            return self.wait_for_stream(flow);
        };
        let stream_message = StreamMessage { seq: message.seq, size: message.size.get() };
        let stream = SentStream { flow, message: Some(stream_message), expires, departed: 0 };
        self.streams.insert(id.into(), stream);
        self.expiries.extend(expires.map(|expires| (expires, id.into())));
        if connection.is_handshaking() {
            self.early_contents.insert(id.into(), vec![content.clone()]);
        }
        state.unwritten = Some(Unwritten { stream: id, content });
        if !write_remaining(connection, state) {
            self.partly_written.insert(flow);
        }
        self.add_unsent(flow, message.size);
        Ok(message.size)
    }

    /// Writes the remaining bytes of messages of which the engine has only a part. Marks each flow whose
    /// message is written as a whole.
    pub(crate) fn continue_messages(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        self.partly_written.retain(|&flow| {
            let is_complete = write_remaining(connection, &mut self.flows[flow]);
            if is_complete {
                ready.mark(flow);
            }
            !is_complete
        });
    }

    /// Ends the handshake. If the far end rejected the early data, this data has to be written again.
    pub(crate) fn on_connected(&mut self, is_early_accepted: bool) {
        let mut early_contents = core::mem::take(&mut self.early_contents);
        if is_early_accepted {
            return;
        }
        self.expiries.clear();
        self.partly_written.clear();
        for flow in &mut self.flows {
            flow.flow_stream = None;
            flow.unwritten = None;
        }
        for (id, stream) in core::mem::take(&mut self.streams) {
            let contents = early_contents.remove(&id).unwrap_or_default().into();
            self.rejected_streams.push_back(RejectedStream { stream, id: None, contents });
        }
    }

    /// Writes rejected data again, as much as the engine has room for. A message that has expired by `now` is
    /// given up before its stream is opened again, and `expired` gets its flow and number. Returns true when
    /// all rejected data is written again. Then all flows may go on.
    pub(crate) fn write_rejected(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        expired: &mut impl FnMut(usize, u64),
    ) -> bool {
        if self.rejected_streams.is_empty() {
            return false;
        }
        self.give_up_rejected(now, expired);
        while let Some(mut rejected) = self.rejected_streams.pop_front() {
            if !self.rewrite_stream(connection, &mut rejected) {
                self.rejected_streams.push_front(rejected);
                return false;
            }
        }
        self.waiting_for_stream.clear();
        self.flows.iter_mut().for_each(|flow| flow.is_blocked = false);
        true
    }

    /// Opens the stream again if it is not open, and writes as much of its data as the engine has room for.
    /// Returns true if all its data is written.
    fn rewrite_stream(&mut self, connection: &mut Connection, rejected: &mut RejectedStream) -> bool {
        let state = &mut self.flows[rejected.stream.flow];
        let Some(id) = rejected.id.or_else(|| open(connection, state.priority)) else { return false };
        let is_message = rejected.stream.message.is_some();
        if rejected.id.replace(id).is_none() {
            if !is_message {
                state.flow_stream = Some(id);
            }
            self.expiries.extend(rejected.stream.expires.map(|expires| (expires, id.into())));
            self.streams.insert(id.into(), rejected.stream);
        }
        while let Some(content) = rejected.contents.front_mut() {
            write(connection, id, content);
            if content.len() > 0 {
                return false;
            }
            rejected.contents.pop_front();
        }
        if is_message {
            // An error says that the far end has stopped the stream. `on_stopped` resets the stream then.
            let _finished = connection.send_stream(id).finish();
        }
        true
    }

    /// Gives up the rejected messages that have expired by `now` and whose streams are not open again.
    fn give_up_rejected(&mut self, now: Instant, expired: &mut impl FnMut(usize, u64)) {
        let Self { flows, rejected_streams, .. } = self;
        rejected_streams.retain(|RejectedStream { stream, id, .. }| {
            let is_expired = id.is_none() && stream.expires.is_some_and(|expires| expires <= now);
            if is_expired {
                flows[stream.flow].unsent -= stream.unsent();
                expired(stream.flow, stream.seq());
            }
            !is_expired
        });
    }

    /// Resets the streams of the messages that have expired by `now`. `expired` gets the flow and the number
    /// of each such message. A message that has departed as a whole does not expire, because it may arrive at
    /// any moment.
    pub(crate) fn reset_expired(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        expired: &mut impl FnMut(usize, u64),
    ) {
        while self.next_expiry().is_some_and(|expires| expires <= now)
            && let Some((_, id)) = self.expiries.pop_first()
        {
            // This cannot fail. The message has not departed as a whole, so its stream is still open.
            let _reset = connection.send_stream(stream_id(id)).reset(EXPIRED);
            self.forget(id, expired);
        }
    }

    /// Handles a stream that the far end stopped with the error code `code`. Returns the flow of the stream,
    /// and the number of the message if it is a message stream. The next message of that flow has another
    /// stream. If it is a flow stream, the flow has failed. Returns `None` for an unknown stream.
    pub(crate) fn on_stopped(
        &mut self,
        connection: &mut Connection,
        id: u64,
        code: VarInt,
    ) -> Option<(usize, Option<u64>)> {
        // RFC 9000 §3.5: the sender resets the stream with the same code, also if all bytes have departed
        // once. Lost bytes are not sent again.
        let _reset = connection.send_stream(stream_id(id)).reset(code);
        let SentStream { flow, message, expires, .. } = *self.streams.get(&id)?;
        if let Some(expires) = expires {
            self.expiries.remove(&(expires, id));
        }
        self.forget(id, &mut |_, _| {});
        if message.is_none() {
            self.flows[flow].stop_code = Some(code);
            self.flows[flow].unsent = 0;
        }
        Some((flow, message.map(|message| message.seq)))
    }

    /// Gives up all messages that have an expiry and have not departed as a whole, because the connection is
    /// lost. `expired` gets the flow and the number of each.
    pub(crate) fn give_up(&mut self, expired: &mut impl FnMut(usize, u64)) {
        while let Some((_, id)) = self.expiries.pop_first() {
            self.forget(id, expired);
        }
        self.give_up_rejected(Instant::MAX, expired);
    }

    /// Removes a stream. `expired` gets the flow and the number of its message.
    fn forget(&mut self, id: u64, expired: &mut impl FnMut(usize, u64)) {
        let Some(stream) = self.streams.remove(&id) else { return };
        self.early_contents.remove(&id);
        self.rejected_streams.retain(|rejected| rejected.id.map(u64::from) != Some(id));
        let flow = &mut self.flows[stream.flow];
        flow.unwritten.take_if(|unwritten| u64::from(unwritten.stream) == id);
        self.remove_unsent(stream.flow, Bytes::new(stream.unsent()));
        expired(stream.flow, stream.seq());
    }

    /// Records that the bytes `start..end` of a stream departed. Returns `None` for an unknown stream.
    pub(crate) fn on_sent(&mut self, id: u64, start: u64, end: u64) -> Option<Sent> {
        let stream = self.streams.get_mut(&id)?;
        let new_bytes = end.saturating_sub(stream.departed.max(start));
        let is_retransmission = start < stream.departed.min(end);
        stream.departed = stream.departed.max(end);
        if stream.message.is_some_and(|message| message.size <= stream.departed)
            && let Some(expires) = stream.expires.take()
        {
            self.expiries.remove(&(expires, id));
        }
        let (flow, seq) = (stream.flow, stream.seq());
        let range = match stream.message {
            _ if start == end => None,
            Some(_) => (start == 0).then_some(PayloadRange::Message { seq }),
            None => Some(PayloadRange::Stream { start, end }),
        };
        self.remove_unsent(flow, Bytes::new(new_bytes));
        Some(Sent { flow, seq, range, is_retransmission })
    }

    /// Forgets a stream, because the far end has acknowledged all its bytes.
    pub(crate) fn on_acknowledged(&mut self, id: u64) {
        self.streams.remove(&id);
    }

    /// Marks the flow of a stream for which the engine has room again.
    pub(crate) fn on_writable(&mut self, id: u64, ready: &mut ReadyFlows) {
        if let Some(stream) = self.streams.get(&id) {
            self.flows[stream.flow].is_blocked = false;
            ready.mark(stream.flow);
        }
    }

    /// Marks the flows that waited for a stream, because the far end allows more streams now.
    pub(crate) fn on_stream_available(&mut self, ready: &mut ReadyFlows) {
        for flow in core::mem::take(&mut self.waiting_for_stream) {
            self.flows[flow].is_blocked = false;
            ready.mark(flow);
        }
    }
}

/// Opens a stream. Returns `None` if the far end allows no other stream now.
fn open(connection: &mut Connection, priority: u8) -> Option<StreamId> {
    let id = connection.streams().open(Dir::Uni)?;
    // This cannot fail, because the stream was opened just now.
    let _is_set = connection.send_stream(id).set_priority(i32::from(priority));
    Some(id)
}

/// Writes the remaining bytes of a flow's last message. Returns true if the message is written as a whole.
fn write_remaining(connection: &mut Connection, flow: &mut FlowState) -> bool {
    let Some(Unwritten { stream, content }) = &mut flow.unwritten else { return true };
    let id = *stream;
    write(connection, id, content);
    let is_complete = content.len() == 0;
    if is_complete {
        flow.unwritten = None;
        // An error says that the far end has stopped the stream. `on_stopped` resets the stream then.
        let _finished = connection.send_stream(id).finish();
    }
    is_complete
}

/// Writes as much of `content` as the engine has room for, and removes these bytes from `content`. Returns
/// their number.
fn write(connection: &mut Connection, id: StreamId, content: &mut Content) -> u64 {
    let mut written = 0;
    while content.len() > 0 {
        match connection.send_stream(id).write_chunks(&mut [content.piece()]) {
            Ok(taken) if taken.bytes > 0 => {
                written += taken.bytes as u64;
                content.skip(taken.bytes);
            }
            _ => break,
        }
    }
    written
}
