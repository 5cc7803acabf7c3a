//! What the flows of an end send on streams: one stream a flow, or one a message.
//!
//! What is written before the handshake is over (0-RTT) the far end may reject. Then the engine has forgotten
//! all streams, and their numbers begin anew. So that data is kept until the far end has taken it. What was
//! rejected counts as lost and is written again, in its order, before anything else (RFC 9001 §4.6.2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quinn_proto::{Connection, Dir, StreamId, VarInt};
use talkpath_config::Carry;
use talkpath_units::{Bytes, Instant};
use talkpath_wire::{Message, PayloadRange, Refused};

use crate::content::Content;
use crate::ready::ReadyFlows;
use crate::setup::FlowSetup;
use crate::stream::stream_id;

/// The flows as they send, and their streams.
#[derive(Debug)]
pub(crate) struct Sending {
    flows: Vec<FlowState>,
    /// By ID: all that the far end has not acknowledged whole.
    streams: BTreeMap<u64, SentStream>,
    /// When the messages of `streams` expire that have not left whole.
    expiries: BTreeSet<(Instant, u64)>,
    /// Flows with a message that is written in part.
    with_rest: BTreeSet<usize>,
    /// Flows that wait until the far end allows another stream.
    without_stream: BTreeSet<usize>,
    /// Whether the far end knows a flow on one stream by the stream's ID.
    names_streams: bool,
    /// Flows before this one have their stream open, if they are on one stream and the far end knows it by
    /// its ID.
    named: usize,
    /// By stream: what was written before the handshake was over.
    early: BTreeMap<u64, Vec<Content>>,
    /// The streams of `early`, if the far end rejected it, as far as they are not written again.
    rejected: VecDeque<RejectedStream>,
}

#[derive(Debug)]
struct FlowState {
    carry: Carry,
    priority: u8,
    /// The stream of all messages, once it is open.
    stream: Option<StreamId>,
    /// The last message's stream and what is still to be written on it.
    rest: Option<(StreamId, Content)>,
    /// True while the engine takes no more bytes.
    is_blocked: bool,
    /// The far end's code, once it has stopped the stream of all messages.
    stopped: Option<VarInt>,
    /// Bytes that were taken and have not left yet.
    unsent: u64,
}

#[derive(Clone, Copy, Debug)]
struct SentStream {
    flow: usize,
    /// The message; 0 of a stream that carries all.
    seq: u64,
    /// Its size, if it carries one message.
    size: Option<u64>,
    /// When the message is given up; `None` once it has left whole.
    expires: Option<Instant>,
    /// One past the last byte that left.
    left: u64,
}

/// A stream whose data the far end rejected before the handshake was over.
#[derive(Debug)]
struct RejectedStream {
    stream: SentStream,
    /// Once it is open again.
    id: Option<StreamId>,
    /// What is still to be written on it.
    contents: VecDeque<Content>,
}

/// What left on a stream.
pub(crate) struct Sent {
    pub(crate) flow: usize,
    pub(crate) seq: u64,
    /// The part that the records count; `None` without the first byte of a message, or without any.
    pub(crate) range: Option<PayloadRange>,
    /// Whether any byte was sent before.
    pub(crate) is_again: bool,
}

/// What became of a message that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendEvent {
    /// It was put into a packet, or these bytes of the flow's stream were, for the first time or again.
    Sent(PayloadRange),
    /// It expired before it had left whole, or would have expired after the connection was lost. It will not
    /// arrive.
    Expired {
        /// [`Message::seq`].
        seq: u64,
    },
    /// It was taken before it was known that no packet has room for it: before the handshake's end (RFC 9001
    /// §4.6), and the far end takes no datagram of its size (RFC 9221 §3), or before the end of the search
    /// for the path's MTU (RFC 8899). It will not arrive.
    GivenBack {
        /// [`Message::seq`].
        seq: u64,
    },
    /// The far end stopped the stream of this message alone (RFC 9000 §3.5): bytes that have not arrived will
    /// not.
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
            stream: None,
            rest: None,
            is_blocked: false,
            stopped: None,
            unsent: 0,
        };
        Self {
            flows: flows.iter().map(state).collect(),
            streams: BTreeMap::new(),
            expiries: BTreeSet::new(),
            with_rest: BTreeSet::new(),
            without_stream: BTreeSet::new(),
            names_streams: false,
            named: 0,
            early: BTreeMap::new(),
            rejected: VecDeque::new(),
        }
    }

    /// From now on the flows on one stream open theirs in their order, and before all streams of a single
    /// message. So the IDs of these streams follow from the flows, and the far end needs no other name.
    pub(crate) fn name_streams(&mut self) {
        self.names_streams = true;
    }

    pub(crate) fn carry(&self, flow: usize) -> Carry {
        self.flows[flow].carry
    }

    pub(crate) fn priority(&self, flow: usize) -> u8 {
        self.flows[flow].priority
    }

    /// Bytes of a flow that were taken and have not left yet.
    pub(crate) fn unsent(&self, flow: usize) -> Bytes {
        Bytes::new(self.flows[flow].unsent)
    }

    /// The far end's code, if it has stopped the stream of all messages of a flow.
    pub(crate) fn stopped(&self, flow: usize) -> Option<u64> {
        self.flows[flow].stopped.map(VarInt::into_inner)
    }

    /// When the next message on a stream expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let is_closed = |rejected: &&RejectedStream| rejected.id.is_none();
        let rejected = self.rejected.iter().filter(is_closed).filter_map(|rejected| rejected.stream.expires);
        rejected.chain(self.expiries.first().map(|first| first.0)).min()
    }

    /// Room for the next message of a flow on streams.
    pub(crate) fn writable(&self, flow: usize) -> Bytes {
        let flow = &self.flows[flow];
        let is_behind = flow.rest.is_some() || !self.rejected.is_empty();
        let is_full = flow.is_blocked || is_behind || flow.unsent >= UNSENT;
        if is_full { Bytes::ZERO } else { Bytes::new(UNSENT) }
    }

    /// Room for the next message of a flow on datagrams, at most `largest`.
    pub(crate) fn datagram_room(&self, flow: usize, largest: Bytes) -> Bytes {
        Bytes::new(DATAGRAMS.saturating_sub(self.flows[flow].unsent)).min(largest)
    }

    /// A message of `flow` waits to leave as a datagram.
    pub(crate) fn on_queued(&mut self, flow: usize, size: Bytes) {
        self.flows[flow].unsent += size.get();
    }

    /// It waits no longer.
    pub(crate) fn on_unqueued(&mut self, flow: usize, size: Bytes) {
        self.flows[flow].unsent -= size.get();
    }

    /// Writes what there is room for of `content` on the stream of `flow`.
    pub(crate) fn write_stream(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        mut content: Content,
    ) -> Result<Bytes, Refused> {
        if !self.rejected.is_empty() {
            return Err(Refused::NoRoom);
        }
        if self.names_streams {
            self.open_named(connection);
        } else if self.flows[flow].stream.is_none() {
            self.open_one(connection, flow);
        }
        let state = &mut self.flows[flow];
        let Some(id) = state.stream else {
            return self.wait_for_stream(flow);
        };
        let early = connection.is_handshaking().then(|| content.clone());
        let written = write(connection, id, &mut content);
        state.is_blocked = content.len() > 0;
        if written == 0 {
            return Err(Refused::NoRoom);
        }
        if let Some(early) = early {
            self.early.entry(id.into()).or_default().push(early.first(written));
        }
        self.on_queued(flow, Bytes::new(written));
        Ok(Bytes::new(written))
    }

    /// Opens the stream of all messages of `flow`, if the far end allows another.
    fn open_one(&mut self, connection: &mut Connection, flow: usize) -> Option<StreamId> {
        let state = &mut self.flows[flow];
        let id = open(connection, state.priority)?;
        state.stream = Some(id);
        let all = SentStream { flow, seq: 0, size: None, expires: None, left: 0 };
        self.streams.insert(id.into(), all);
        Some(id)
    }

    /// Opens the streams that have a name and are not open, in their order. Returns true if all are open.
    fn open_named(&mut self, connection: &mut Connection) -> bool {
        while let Some(state) = self.flows.get(self.named) {
            if state.carry == Carry::Stream && self.open_one(connection, self.named).is_none() {
                return false;
            }
            self.named += 1;
        }
        true
    }

    /// The far end allows no other stream now.
    fn wait_for_stream(&mut self, flow: usize) -> Result<Bytes, Refused> {
        self.flows[flow].is_blocked = true;
        self.without_stream.insert(flow);
        Err(Refused::NoRoom)
    }

    /// Takes a whole message, on a stream of its own.
    pub(crate) fn write_message(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        message: Message,
        content: Content,
        expires: Option<Instant>,
    ) -> Result<Bytes, Refused> {
        if self.flows[flow].rest.is_some() || !self.rejected.is_empty() {
            return Err(Refused::NoRoom);
        }
        let is_free = !self.names_streams || self.open_named(connection);
        let state = &mut self.flows[flow];
        let Some(id) = is_free.then(|| open(connection, state.priority)).flatten() else {
            return self.wait_for_stream(flow);
        };
        let size = message.size.get();
        let stream = SentStream { flow, seq: message.seq, size: Some(size), expires, left: 0 };
        self.streams.insert(id.into(), stream);
        self.expiries.extend(expires.map(|expires| (expires, id.into())));
        if connection.is_handshaking() {
            self.early.insert(id.into(), vec![content.clone()]);
        }
        state.rest = Some((id, content));
        if !write_rest(connection, state) {
            self.with_rest.insert(flow);
        }
        self.on_queued(flow, message.size);
        Ok(message.size)
    }

    /// Writes what is left of messages that were taken.
    pub(crate) fn write_rest(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        self.with_rest.retain(|&flow| {
            let is_whole = write_rest(connection, &mut self.flows[flow]);
            if is_whole {
                ready.mark(flow);
            }
            !is_whole
        });
    }

    /// The handshake is over, and what was written before it is accepted, or has to be written again.
    pub(crate) fn on_connected(&mut self, is_early_accepted: bool) {
        let mut early = core::mem::take(&mut self.early);
        if is_early_accepted {
            return;
        }
        self.expiries.clear();
        self.with_rest.clear();
        for flow in &mut self.flows {
            (flow.stream, flow.rest) = (None, None);
        }
        let rejected = |(id, stream)| RejectedStream {
            stream,
            id: None,
            contents: early.remove(&id).unwrap_or_default().into(),
        };
        self.rejected = core::mem::take(&mut self.streams).into_iter().map(rejected).collect();
    }

    /// Writes again what the far end rejected, as far as there is room. As with other messages, what has
    /// expired by `now` and had not left whole is given up. Returns true when everything is written again:
    /// then all flows may go on.
    pub(crate) fn write_rejected(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        expired: &mut impl FnMut(usize, u64),
    ) -> bool {
        if self.rejected.is_empty() {
            return false;
        }
        self.give_up_rejected(now, expired);
        while let Some(mut first) = self.rejected.pop_front() {
            if !self.write_first_rejected(connection, &mut first) {
                self.rejected.push_front(first);
                return false;
            }
        }
        self.without_stream.clear();
        self.flows.iter_mut().for_each(|flow| flow.is_blocked = false);
        true
    }

    /// Opens the stream, if it is not open, and writes what there is room for; true once all is written.
    fn write_first_rejected(&mut self, connection: &mut Connection, first: &mut RejectedStream) -> bool {
        let state = &mut self.flows[first.stream.flow];
        let Some(id) = first.id.or_else(|| open(connection, state.priority)) else { return false };
        let is_message = first.stream.size.is_some();
        if first.id.replace(id).is_none() {
            if !is_message {
                state.stream = Some(id);
            }
            self.expiries.extend(first.stream.expires.map(|expires| (expires, id.into())));
            self.streams.insert(id.into(), first.stream);
        }
        while let Some(content) = first.contents.front_mut() {
            write(connection, id, content);
            if content.len() > 0 {
                return false;
            }
            first.contents.pop_front();
        }
        if is_message {
            // If the far end has stopped it, `on_stopped` has reset it, or will.
            let _finished = connection.send_stream(id).finish();
        }
        true
    }

    /// Gives up what was rejected, is on no stream again and has expired by `now`.
    fn give_up_rejected(&mut self, now: Instant, expired: &mut impl FnMut(usize, u64)) {
        let Self { flows, rejected, .. } = self;
        rejected.retain(|RejectedStream { stream, id, .. }| {
            let is_expired = id.is_none() && stream.expires.is_some_and(|expires| expires <= now);
            if is_expired {
                flows[stream.flow].unsent -= stream.size.unwrap_or(0).saturating_sub(stream.left);
                expired(stream.flow, stream.seq);
            }
            !is_expired
        });
    }

    /// Resets the streams of messages that have expired by `now` and have not left whole, and gives their
    /// flows and numbers to `expired`. What has left whole may arrive at any moment, so it is no longer given
    /// up.
    pub(crate) fn reset_expired(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        expired: &mut impl FnMut(usize, u64),
    ) {
        while self.next_expiry().is_some_and(|expires| expires <= now)
            && let Some((_, id)) = self.expiries.pop_first()
        {
            // The message has not left whole, so the stream is not closed.
            let _reset = connection.send_stream(stream_id(id)).reset(EXPIRED);
            self.forget(id, expired);
        }
    }

    /// The far end wants no more of a stream, and says `code`. Returns the stream's flow, and the number of
    /// the message if the stream carries one. The flow's next message has another stream then. A flow on one
    /// stream has failed.
    pub(crate) fn on_stopped(
        &mut self,
        connection: &mut Connection,
        id: u64,
        code: VarInt,
    ) -> Option<(usize, Option<u64>)> {
        // RFC 9000 §3.5: the sender resets the stream, with the code that it was stopped with. That holds
        // also if the message has left whole: lost bytes are not sent again.
        let _reset = connection.send_stream(stream_id(id)).reset(code);
        let SentStream { flow, seq, size, expires, .. } = *self.streams.get(&id)?;
        if let Some(expires) = expires {
            self.expiries.remove(&(expires, id));
        }
        self.forget(id, &mut |_, _| {});
        if size.is_none() {
            (self.flows[flow].stopped, self.flows[flow].unsent) = (Some(code), 0);
        }
        Some((flow, size.map(|_| seq)))
    }

    /// Nothing leaves any more: gives the flows and numbers of the messages that would expire to `expired`.
    pub(crate) fn give_up(&mut self, expired: &mut impl FnMut(usize, u64)) {
        while let Some((_, id)) = self.expiries.pop_first() {
            self.forget(id, expired);
        }
        self.give_up_rejected(Instant::MAX, expired);
    }

    fn forget(&mut self, id: u64, expired: &mut impl FnMut(usize, u64)) {
        let Some(stream) = self.streams.remove(&id) else { return };
        self.early.remove(&id);
        self.rejected.retain(|rejected| rejected.id.map(u64::from) != Some(id));
        let flow = &mut self.flows[stream.flow];
        flow.rest = flow.rest.take().filter(|(rest, _)| u64::from(*rest) != id);
        self.on_unqueued(stream.flow, Bytes::new(stream.size.unwrap_or(0).saturating_sub(stream.left)));
        expired(stream.flow, stream.seq);
    }

    /// Bytes `start..end` of a stream left.
    pub(crate) fn on_sent(&mut self, id: u64, start: u64, end: u64) -> Option<Sent> {
        let stream = self.streams.get_mut(&id)?;
        let fresh = end.saturating_sub(stream.left.max(start));
        let is_again = start < stream.left.min(end);
        stream.left = stream.left.max(end);
        if stream.size.is_some_and(|size| size <= stream.left)
            && let Some(expires) = stream.expires.take()
        {
            self.expiries.remove(&(expires, id));
        }
        let (flow, seq) = (stream.flow, stream.seq);
        let range = match stream.size {
            _ if start == end => None,
            Some(_) => (start == 0).then_some(PayloadRange::Message { seq }),
            None => Some(PayloadRange::Stream { start, end }),
        };
        self.on_unqueued(flow, Bytes::new(fresh));
        Some(Sent { flow, seq, range, is_again })
    }

    /// The far end has all of a stream.
    pub(crate) fn on_acknowledged(&mut self, id: u64) {
        self.streams.remove(&id);
    }

    /// A stream takes data again.
    pub(crate) fn on_writable(&mut self, id: u64, ready: &mut ReadyFlows) {
        if let Some(stream) = self.streams.get(&id) {
            self.flows[stream.flow].is_blocked = false;
            ready.mark(stream.flow);
        }
    }

    /// Streams may be opened again.
    pub(crate) fn on_stream_available(&mut self, ready: &mut ReadyFlows) {
        for flow in core::mem::take(&mut self.without_stream) {
            self.flows[flow].is_blocked = false;
            ready.mark(flow);
        }
    }
}

fn open(connection: &mut Connection, priority: u8) -> Option<StreamId> {
    let id = connection.streams().open(Dir::Uni)?;
    // It was opened just now.
    let _open = connection.send_stream(id).set_priority(i32::from(priority));
    Some(id)
}

/// Writes the remaining bytes of a flow's last message. Returns true if none remain.
fn write_rest(connection: &mut Connection, flow: &mut FlowState) -> bool {
    let Some((id, content)) = &mut flow.rest else { return true };
    let id = *id;
    write(connection, id, content);
    let is_whole = content.len() == 0;
    if is_whole {
        flow.rest = None;
        // If the far end has stopped it, `on_stopped` has reset it, or will.
        let _finished = connection.send_stream(id).finish();
    }
    is_whole
}

/// Writes what there is room for of `content`; returns how many bytes were taken.
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

/// What an application's message says to the far end when it is given up: ours.
const EXPIRED: VarInt = VarInt::from_u32(1);

/// Unsent bytes of a flow on datagrams: quinn's `datagram_send_buffer_size`, a flow of the connection.
const DATAGRAMS: u64 = 1 << 20;

/// Unsent bytes of a flow up to which it has room for more. Chosen, twice the largest message of `bulk`: the
/// engine would take megabytes ahead, which only wait.
const UNSENT: u64 = 128 << 10;
