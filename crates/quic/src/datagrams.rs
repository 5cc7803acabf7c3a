//! Messages that wait to leave as DATAGRAM frames.
//!
//! The engine sends the datagrams of its own queue in order and forgets none. Here messages expire and have
//! priorities, so they wait outside, and the engine's queue holds what fits one packet. What may not leave
//! any more is taken back from there (`Datagrams::discard_unsent`, which our copy of the engine has).
//!
//! ```text
//!  waiting (by priority, then in order) ─► inside (the engine's queue, one packet's) ─► a packet
//!      ▲                                      │
//!      └────── taken back: one expired ◄──────┘
//! ```
//!
//! A connection begins with packets of 1200 B, and the engine searches for what the path carries (RFC 9000
//! §14.3). A message that has no room yet waits until the first search is over, and smaller ones pass it.
//! What has no room then is given back. Before the handshake's end (0-RTT) a packet also has a long header
//! and less room than the engine says; what has no room there waits for the handshake's end.

use std::collections::{BTreeSet, VecDeque};

use quinn_proto::Connection;
use talkpath_config::{largest_quic_datagram, quic_packet_size};
use talkpath_units::{Bytes, Instant};

use crate::content::Content;

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
    /// The UDP payload of the largest packet that is searched for.
    packet_size: u16,
    /// The largest message that such a packet has room for.
    largest: usize,
    /// The largest message that is taken: once connected, what the far end takes as well.
    limit: usize,
    /// Whether the first search for the path's MTU is over.
    is_search_over: bool,
    /// The UDP payload of the engine's largest packet, as `limit` follows from it; `None` before the
    /// handshake's end.
    mtu: Option<u16>,
    waiting: VecDeque<Waiting>,
    inside: VecDeque<Waiting>,
    /// When those that expire do, with flow and number.
    expiries: BTreeSet<(Instant, usize, u64)>,
}

impl DatagramQueue {
    /// An empty queue, for a path with this MTU.
    pub(crate) fn new(path_mtu: Bytes) -> Self {
        let largest = usize::try_from(largest_quic_datagram(path_mtu).get()).unwrap_or(usize::MAX);
        Self {
            packet_size: u16::try_from(quic_packet_size(path_mtu).get()).unwrap_or(u16::MAX),
            largest,
            limit: largest,
            is_search_over: false,
            mtu: None,
            waiting: VecDeque::new(),
            inside: VecDeque::new(),
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

    /// Learns from the handshake's end on what the far end takes (RFC 9221 §3) and how large packets are, and
    /// gives what will have no room to `given_back`.
    pub(crate) fn follow_path(&mut self, connection: &mut Connection, mut given_back: impl FnMut(&Waiting)) {
        if connection.is_handshaking() {
            return;
        }
        let before = (self.mtu, self.is_search_over);
        let mtu = connection.current_mtu();
        self.mtu = Some(mtu);
        self.is_search_over |= connection.is_mtu_search_over();
        if (self.mtu, self.is_search_over) == before {
            return;
        }
        if before.0.is_some_and(|before| mtu < before) {
            // The engine has thrown away what has no room in smaller packets.
            self.take_back(connection);
        }
        let reached = if self.is_search_over { mtu } else { self.packet_size };
        self.limit = connection.datagrams().max_size_at(reached).unwrap_or(0).min(self.largest);
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
        if self.next_expiry().is_some_and(|expires| expires <= now) {
            if self.inside.iter().any(is_expired) {
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
        if self.inside.back().is_some_and(overtakes) {
            self.take_back(connection);
        }
        while self.give_next(connection, room) {}
    }

    /// The place and the priority of the next message that waits and is at most `room` bytes.
    fn next(&self, room: usize) -> Option<(usize, u8)> {
        let fits = |message: &Waiting| message.size.get() <= room as u64;
        let place = self.waiting.iter().position(fits)?;
        Some((place, self.waiting[place].priority))
    }

    /// Nothing leaves any more: takes out the messages that would expire.
    pub(crate) fn give_up(&mut self) -> VecDeque<Waiting> {
        self.expiries.clear();
        let all = self.inside.drain(..).chain(self.waiting.drain(..));
        let (expiring, rest): (VecDeque<_>, VecDeque<_>) = all.partition(|message| message.expires.is_some());
        self.waiting = rest;
        expiring
    }

    /// Empties the engine's queue: what was there waits again.
    fn take_back(&mut self, connection: &mut Connection) {
        for message in core::mem::take(&mut self.inside).into_iter().rev() {
            let place = self.waiting.partition_point(|other| other.priority > message.priority);
            self.waiting.insert(place, message);
        }
        connection.datagrams().discard_unsent();
    }

    /// Gives the engine the next message of at most `room` bytes; false if none fits.
    fn give_next(&mut self, connection: &mut Connection, room: usize) -> bool {
        let Some((place, _)) = self.next(room) else { return false };
        let message = &self.waiting[place];
        let mut datagrams = connection.datagrams();
        if (datagrams.send_buffer_space() as u64) < message.size.get() {
            return false;
        }
        if datagrams.send(message.content.piece(), false).is_err() {
            return false;
        }
        self.inside.extend(self.waiting.remove(place));
        true
    }

    /// A DATAGRAM frame of `size` bytes left: which message it was; `None` if none.
    pub(crate) fn on_sent(&mut self, size: u64) -> Option<Waiting> {
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
