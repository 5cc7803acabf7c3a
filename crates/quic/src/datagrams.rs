//! Messages that wait to leave as DATAGRAM frames.
//!
//! The engine sends the datagrams of its own queue in order and forgets none of them. Here messages expire
//! and have priorities, so they wait outside, and the engine's queue holds what fits one packet. What may not
//! leave any more is taken back from there: the queue takes a new datagram in the place of old ones if it has
//! no room (`Datagrams::send` with `drop`), and has room for one full datagram.
//!
//! ```text
//!  waiting (by priority, then in order) ─► inside (the engine's queue, one packet's) ─► a packet
//!      ▲                                      │
//!      └────── taken back: one expired ◄──────┘
//! ```
//!
//! Before the handshake's end (0-RTT) a packet has a long header and less room than the engine says. What has
//! no room there waits for the handshake's end, and smaller messages pass it.

use std::collections::{BTreeSet, VecDeque};

use quinn_proto::Connection;
use talkpath_units::{Bytes, Instant};

use crate::content::{Content, zeros};

/// A message that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Its flow, by number.
    pub(crate) flow: usize,
    /// Its number within the flow.
    pub(crate) seq: u64,
    /// Bytes.
    pub(crate) size: Bytes,
    /// What it is made of.
    pub(crate) content: Content,
    /// It is of no use from then on.
    pub(crate) expires: Option<Instant>,
    /// The higher leaves first.
    pub(crate) priority: u8,
}

/// All messages of a connection that wait to leave as datagrams.
#[derive(Debug)]
pub(crate) struct DatagramQueue {
    /// The largest message that the path has room for.
    largest: usize,
    /// The largest message that is taken: once connected, what the far end takes as well.
    limit: usize,
    waiting: VecDeque<Waiting>,
    inside: VecDeque<Waiting>,
    /// True if an empty datagram stands in the engine's queue, where nothing could take an old one's place.
    is_filled: bool,
    /// When those that expire do, with flow and number.
    expiries: BTreeSet<(Instant, usize, u64)>,
}

impl DatagramQueue {
    pub(crate) fn new(largest: Bytes) -> Self {
        let largest = usize::try_from(largest.get()).unwrap_or(usize::MAX);
        Self {
            largest,
            limit: largest,
            waiting: VecDeque::new(),
            inside: VecDeque::new(),
            is_filled: false,
            expiries: BTreeSet::new(),
        }
    }

    /// The room of the engine's own queue: a full datagram.
    pub(crate) fn engine_room(&self) -> usize {
        self.largest + OVERHEAD
    }

    /// The largest message that is taken.
    pub(crate) fn largest(&self) -> Bytes {
        Bytes::new(self.limit as u64)
    }

    /// The handshake is over, so it is known what the far end takes (RFC 9221 §3). Gives what is larger to
    /// `given_back`.
    pub(crate) fn on_connected(&mut self, connection: &mut Connection, mut given_back: impl FnMut(&Waiting)) {
        self.limit = connection.datagrams().max_size().unwrap_or(0).min(self.largest);
        let (limit, expiries) = (self.limit as u64, &mut self.expiries);
        self.waiting.retain(|message| {
            let is_taken = message.size.get() <= limit;
            if !is_taken {
                if let Some(expires) = message.expires {
                    expiries.remove(&(expires, message.flow, message.seq));
                }
                given_back(message);
            }
            is_taken
        });
    }

    /// Takes a message for which there is room.
    pub(crate) fn push(&mut self, message: Waiting) {
        if let Some(expires) = message.expires {
            self.expiries.insert((expires, message.flow, message.seq));
        }
        insert(&mut self.waiting, message);
    }

    /// When the next message expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.first().map(|first| first.0)
    }

    /// Gives to `expired` what has expired by `now`, and puts into the engine's queue what fits the next
    /// packet.
    pub(crate) fn refill(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        mut expired: impl FnMut(&Waiting),
    ) {
        let is_expired = |message: &Waiting| message.expires.is_some_and(|expires| expires <= now);
        let can_take_back = self.can_take_back(connection);
        if self.next_expiry().is_some_and(|expires| expires <= now) {
            if can_take_back && self.inside.iter().any(is_expired) {
                self.take_back(connection);
            }
            for message in self.waiting.iter().filter(|message| is_expired(message)) {
                expired(message);
            }
            self.waiting.retain(|message| !is_expired(message));
            self.expiries = self.expiries.split_off(&(now, usize::MAX, u64::MAX));
        }
        let Some(room) = packet_room(connection) else { return };
        let overtakes = |inside: &Waiting| self.next(room).is_some_and(|it| it.1 > inside.priority);
        if can_take_back && self.inside.back().is_some_and(overtakes) {
            self.take_back(connection);
        }
        if self.is_filled && self.next(room).is_some() {
            self.displace(connection, self.largest);
            self.is_filled = !self.give_next(connection, room, true);
            if self.is_filled {
                self.displace(connection, 0);
            }
        }
        // What cannot be taken back goes in alone.
        while (can_take_back || self.inside.is_empty()) && self.give_next(connection, room, false) {}
    }

    /// The place and the priority of the next message that waits and is at most `room` bytes.
    fn next(&self, room: usize) -> Option<(usize, u8)> {
        let fits = |message: &Waiting| message.size.get() <= room as u64;
        let place = self.waiting.iter().position(fits)?;
        Some((place, self.waiting[place].priority))
    }

    /// Whether one datagram of filling takes the place of all that the engine's queue has. It does not if the
    /// far end takes much smaller datagrams than the path. Then what is inside leaves, however late.
    fn can_take_back(&self, connection: &mut Connection) -> bool {
        let filling = connection.datagrams().max_size().map(|size| size.min(self.largest));
        filling.is_some_and(|size| size + OVERHEAD > self.largest)
    }

    /// Nothing leaves any more: takes out the messages that would expire.
    pub(crate) fn give_up(&mut self) -> VecDeque<Waiting> {
        self.expiries.clear();
        let all = self.inside.drain(..).chain(self.waiting.drain(..));
        let (expiring, rest): (VecDeque<_>, VecDeque<_>) = all.partition(|message| message.expires.is_some());
        self.waiting = rest;
        expiring
    }

    /// Empties the engine's queue but for an empty datagram.
    fn take_back(&mut self, connection: &mut Connection) {
        for message in core::mem::take(&mut self.inside).into_iter().rev() {
            let place = self.waiting.partition_point(|other| other.priority > message.priority);
            self.waiting.insert(place, message);
        }
        self.displace(connection, self.largest);
        self.displace(connection, 0);
        self.is_filled = true;
    }

    /// Puts `size` bytes of filling in the place of all that is there.
    fn displace(&self, connection: &mut Connection, size: usize) {
        // With 0-RTT the far end's connection ID is longer at first.
        let size = size.min(connection.datagrams().max_size().unwrap_or(0));
        let sent = connection.datagrams().send(zeros(size), true);
        debug_assert!(sent.is_ok(), "a datagram of {size} B fits: {sent:?}");
    }

    /// Gives the engine the next message of at most `room` bytes, in the place of what it has or beside it;
    /// false if none fits.
    fn give_next(&mut self, connection: &mut Connection, room: usize, displaces: bool) -> bool {
        let Some((place, _)) = self.next(room) else { return false };
        let message = &self.waiting[place];
        let mut datagrams = connection.datagrams();
        if !displaces && (datagrams.send_buffer_space() as u64) < message.size.get() {
            return false;
        }
        if datagrams.send(message.content.piece(), displaces).is_err() {
            return false;
        }
        self.inside.extend(self.waiting.remove(place));
        true
    }

    /// A DATAGRAM frame of `size` bytes left: which message it was; `None` if none.
    pub(crate) fn on_sent(&mut self, size: u64) -> Option<Waiting> {
        if size == 0 && self.is_filled {
            self.is_filled = false;
            return None;
        }
        let message = self.inside.pop_front()?;
        debug_assert_eq!(message.size.get(), size, "datagrams leave in order");
        if let Some(expires) = message.expires {
            self.expiries.remove(&(expires, message.flow, message.seq));
        }
        Some(message)
    }
}

/// Behind all of its priority.
fn insert(queue: &mut VecDeque<Waiting>, message: Waiting) {
    let place = queue.partition_point(|other| other.priority >= message.priority);
    queue.insert(place, message);
}

/// The largest message that fits the next packet; `None` if the far end takes no datagram (RFC 9221 §3).
///
/// Before the handshake's end the engine takes messages that its own 0-RTT packets have no room for: it
/// counts with a short header, and sends such a packet without the message, again and again.
fn packet_room(connection: &mut Connection) -> Option<usize> {
    let is_early = connection.is_handshaking();
    let room = connection.datagrams().max_size()?;
    Some(if is_early { room.saturating_sub(LONG_HEADER - SPARE) } else { room })
}

/// What a 0-RTT packet's header has beside a short one's (RFC 9000 §17.2.3, §17.3.1): the version, the
/// lengths of both connection IDs, our connection ID of 8 B, and the packet's length in 2 B.
const LONG_HEADER: usize = 4 + 1 + 1 + 8 + 2;

/// What the engine reserves for the type and the length of a DATAGRAM frame, and a packet does not need: it
/// counts 8 B of length, and 2 B are enough below 16,384 B (RFC 9000 §16).
const SPARE: usize = 8 - 2;

/// What the engine's queue takes for a datagram besides its data.
const OVERHEAD: usize = size_of::<quinn_proto::Datagram>();
