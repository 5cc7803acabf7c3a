//! Messages that wait to leave as DATAGRAM frames.
//!
//! The engine sends the datagrams of its own queue in order, and forgets none. Our messages expire and have
//! priorities. So they wait outside of the engine, and the engine's queue holds only the messages that fit
//! the next packet. A message that may not leave any more is taken back from there
//! (`Datagrams::discard_unsent`, which our copy of the engine has).
//!
//! ```text
//!  waiting (by priority, then in order) ─► inside (the engine's queue, one packet's) ─► a packet
//!      ▲                                      │
//!      └────── taken back: one expired ◄──────┘
//! ```
//!
//! A connection begins with packets of 1200 B, and the engine searches for the largest packet that the path
//! carries (RFC 9000 §14.3). A message that has no room yet waits until the first search is over, and smaller
//! messages pass it. A message that has no room then is given back. Before the handshake is over (0-RTT) a
//! packet also has a long header, and less room than the engine says. A message that has no room there waits
//! until the handshake is over.

use std::collections::{BTreeSet, VecDeque};

use quinn_proto::Connection;
use talkpath_config::{largest_quic_datagram, quic_packet_size};
use talkpath_units::{Bytes, Instant};

use crate::content::Content;

/// A message that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The index of its flow.
    pub(crate) flow: usize,
    /// Its number within the flow.
    pub(crate) seq: u64,
    pub(crate) size: Bytes,
    pub(crate) content: Content,
    /// When the message is given up if it has not left. `None` if it never expires.
    pub(crate) expires: Option<Instant>,
    /// A message of higher priority leaves first.
    pub(crate) priority: u8,
}

/// All messages of a connection that wait to leave as datagrams.
#[derive(Debug)]
pub(crate) struct DatagramQueue {
    /// The UDP payload of the largest packet that is searched for.
    packet_size: u16,
    /// The largest message that such a packet has room for.
    largest: usize,
    /// The largest message that is accepted. Once connected, the far end bounds it, too.
    limit: usize,
    /// What the engine last said of the path. `None` until the handshake is over.
    path: Option<PathState>,
    /// The messages outside of the engine, by priority and then in order.
    waiting: VecDeque<Waiting>,
    /// The messages in the engine's queue, in order.
    inside: VecDeque<Waiting>,
    /// The messages that expire, the earliest first.
    expiries: BTreeSet<Expiry>,
}

/// What the engine knows of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathState {
    /// The UDP payload of the largest packet.
    mtu: u16,
    /// True once the first search for the path's MTU is over.
    is_search_over: bool,
}

/// When a message expires, and which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expiry {
    at: Instant,
    flow: usize,
    seq: u64,
}

impl Waiting {
    fn expiry(&self) -> Option<Expiry> {
        self.expires.map(|at| Expiry { at, flow: self.flow, seq: self.seq })
    }
}

impl DatagramQueue {
    /// An empty queue, for a path with this MTU.
    pub(crate) fn new(path_mtu: Bytes) -> Self {
        let largest = usize::try_from(largest_quic_datagram(path_mtu).get()).unwrap_or(usize::MAX);
        Self {
            packet_size: u16::try_from(quic_packet_size(path_mtu).get()).unwrap_or(u16::MAX),
            largest,
            limit: largest,
            path: None,
            waiting: VecDeque::new(),
            inside: VecDeque::new(),
            expiries: BTreeSet::new(),
        }
    }

    /// Returns the room of the engine's own queue, which holds a full datagram.
    pub(crate) fn engine_room(&self) -> usize {
        self.largest + OVERHEAD
    }

    /// Returns whether a message fits the next packet, and waits for it to leave.
    pub(crate) fn has_inside(&self) -> bool {
        !self.inside.is_empty()
    }

    /// Returns the largest message that is accepted.
    pub(crate) fn largest(&self) -> Bytes {
        Bytes::new(self.limit as u64)
    }

    /// Once the handshake is over, learns the largest datagram that the far end accepts (RFC 9221 §3) and the
    /// size of packets. Messages that will have no room are removed, and `given_back` gets each.
    pub(crate) fn follow_path(&mut self, connection: &mut Connection, mut given_back: impl FnMut(&Waiting)) {
        if connection.is_handshaking() {
            return;
        }
        let mtu = connection.current_mtu();
        let was_search_over = self.path.is_some_and(|path| path.is_search_over);
        let is_search_over = was_search_over || connection.is_mtu_search_over();
        let old = self.path.replace(PathState { mtu, is_search_over });
        if self.path == old {
            return;
        }
        if old.is_some_and(|old| mtu < old.mtu) {
            // The engine has thrown away the messages that have no room in smaller packets.
            self.take_back(connection);
        }
        let reached = if is_search_over { mtu } else { self.packet_size };
        self.limit = connection.datagrams().max_size_at(reached).unwrap_or(0).min(self.largest);
        let (limit, expiries) = (self.limit as u64, &mut self.expiries);
        self.waiting.retain(|message| {
            let has_room = message.size.get() <= limit;
            if !has_room {
                if let Some(expiry) = message.expiry() {
                    expiries.remove(&expiry);
                }
                given_back(message);
            }
            has_room
        });
    }

    /// Adds a message for which there is room.
    pub(crate) fn push(&mut self, message: Waiting) {
        self.expiries.extend(message.expiry());
        let place = self.waiting.partition_point(|other| other.priority >= message.priority);
        self.waiting.insert(place, message);
    }

    /// Returns when the next message expires. `None` if no message expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.first().map(|expiry| expiry.at)
    }

    /// Removes the messages that have expired by `now`, and `expired` gets each. Then fills the engine's
    /// queue with the messages that fit the next packet.
    pub(crate) fn refill(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        mut expired: impl FnMut(&Waiting),
    ) {
        let is_expired = |message: &Waiting| message.expires.is_some_and(|expires| expires <= now);
        if self.next_expiry().is_some_and(|expires| expires <= now) {
            if self.inside.iter().any(is_expired) {
                self.take_back(connection);
            }
            for message in self.waiting.iter().filter(|message| is_expired(message)) {
                expired(message);
            }
            self.waiting.retain(|message| !is_expired(message));
            self.expiries = self.expiries.split_off(&Expiry { at: now, flow: usize::MAX, seq: u64::MAX });
        }
        let Some(room) = packet_room(connection) else { return };
        let is_overtaken = |last: &Waiting| {
            self.next(room).is_some_and(|place| self.waiting[place].priority > last.priority)
        };
        if self.inside.back().is_some_and(is_overtaken) {
            self.take_back(connection);
        }
        while self.give_next(connection, room) {}
    }

    /// Returns the place of the next waiting message of at most `room` bytes. `None` if there is none.
    fn next(&self, room: usize) -> Option<usize> {
        self.waiting.iter().position(|message| message.size.get() <= room as u64)
    }

    /// Removes and returns the messages that would expire, because no message leaves any more.
    pub(crate) fn give_up(&mut self) -> VecDeque<Waiting> {
        self.expiries.clear();
        let all = self.inside.drain(..).chain(self.waiting.drain(..));
        let (expiring, rest): (VecDeque<_>, VecDeque<_>) = all.partition(|message| message.expires.is_some());
        self.waiting = rest;
        expiring
    }

    /// Empties the engine's queue. Its messages wait again, before the others of their priority.
    fn take_back(&mut self, connection: &mut Connection) {
        for message in core::mem::take(&mut self.inside).into_iter().rev() {
            let place = self.waiting.partition_point(|other| other.priority > message.priority);
            self.waiting.insert(place, message);
        }
        connection.datagrams().discard_unsent();
    }

    /// Gives the engine the next message of at most `room` bytes. Returns false if there is none, or if the
    /// engine does not take it.
    fn give_next(&mut self, connection: &mut Connection, room: usize) -> bool {
        let Some(place) = self.next(room) else { return false };
        let message = &self.waiting[place];
        let mut datagrams = connection.datagrams();
        let has_space = datagrams.send_buffer_space() as u64 >= message.size.get();
        if !has_space || datagrams.send(message.content.piece(), false).is_err() {
            return false;
        }
        self.inside.extend(self.waiting.remove(place));
        true
    }

    /// Returns the message that left in a DATAGRAM frame of `size` bytes. `None` if no message was given to
    /// the engine.
    pub(crate) fn on_sent(&mut self, size: u64) -> Option<Waiting> {
        let message = self.inside.pop_front()?;
        debug_assert_eq!(message.size.get(), size, "datagrams leave in order");
        if let Some(expiry) = message.expiry() {
            self.expiries.remove(&expiry);
        }
        Some(message)
    }
}

/// Returns the largest message that fits the next packet. `None` if the far end accepts no datagrams (RFC
/// 9221 §3).
///
/// Before the handshake is over the engine takes messages that its own 0-RTT packets have no room for. It
/// counts with a short header, and sends such a packet without the message, again and again.
fn packet_room(connection: &mut Connection) -> Option<usize> {
    let is_handshaking = connection.is_handshaking();
    let room = connection.datagrams().max_size()?;
    Some(if is_handshaking { room.saturating_sub(LONG_HEADER - SPARE) } else { room })
}

/// The bytes that the header of a 0-RTT packet has more than a short header (RFC 9000 §17.2.3, §17.3.1): the
/// version, the lengths of both connection IDs, our connection ID of 8 B, and the packet's length in 2 B.
const LONG_HEADER: usize = 4 + 1 + 1 + 8 + 2;

/// The bytes that the engine reserves for the length of a DATAGRAM frame, and that a packet does not need. It
/// reserves 8 B, and 2 B are enough for less than 16,384 B (RFC 9000 §16).
const SPARE: usize = 8 - 2;

/// The bytes that the engine's queue counts for a datagram in addition to its data.
const OVERHEAD: usize = size_of::<quinn_proto::Datagram>();
