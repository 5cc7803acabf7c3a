//! Taps: what an application and its channel call as messages pass, to build one leg's record.
//!
//! ```text
//!  writing end ── due, sent, wire, unsent, dropped ───► its half ──┐
//!                                                                  ├─ join ─► LegRecord
//!  reading end ── received, read, dropped in its inbox ─► its half ┘
//! ```
//!
//! In the simulator both ends of a leg write into one tap, so the halves are joined as the run proceeds. Over
//! real sockets each end has a tap of its own, and [`LegTap::join`] replays the reading end's half into the
//! writing end's: the same code.
//!
//! Datagram transports name messages by `seq`. Stream transports name bytes: the tap keeps where each
//! accepted message ends in the stream and translates, so that a message counts as sent with its first byte
//! and received with its last.
//!
//! A reading end with a tap of its own has to find the messages in a stream ([`ReadMessages`]). If all are of
//! one size it counts bytes, and the join finds the messages from the reads. If they are not, a frame says
//! the number and the size of each ([`LegTap::on_begun`]), and the two halves are joined by number, as those
//! of datagrams are.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use crate::{DropCause, Fate, LegRecord, MessageRecord};

/// Builds the record of one leg. What each read needs comes first in memory, then what each packet needs:
/// with thousands of flows each cache line is waited for.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct LegTap {
    /// Stream bytes read by the far application.
    read: u64,
    /// No message is whole before this many bytes were read.
    whole_at: u64,
    /// How many reads and arrivals are noted below.
    waiting: usize,
    reads: Vec<(Instant, Bytes)>,
    /// The first byte of the message before `on_wire`, and one past its last: most packets lie within it.
    wire_span: (u64, u64),
    /// Index into `accepted` of the message that holds the first byte not on the wire yet.
    on_wire: usize,
    /// How many of `accepted` were read whole.
    read_whole: usize,
    /// Messages that are due and whose fate is still open.
    pending: u64,
    /// Messages that the far application has read, each once.
    delivered: u64,
    arrivals: Vec<u64>,
    /// By `seq`, from `first_row` on; `None` if the far application never wrote that echo.
    rows: VecDeque<Option<MessageRecord>>,
    /// Rows before this were given away ([`crate::FlowTally`]).
    first_row: u64,
    /// Stream transports: the accepted messages in order, each with the offset one past its last byte, from
    /// the position `first_accepted` on.
    accepted: VecDeque<(u64, u64)>,
    first_accepted: usize,
    /// One past the last byte accepted.
    accepted_end: u64,
    /// One past the last byte of the messages before `first_accepted`.
    forgotten_end: u64,
    /// What the reading end keeps if the writing end has a tap of its own.
    reading: Option<Box<ReadingHalf>>,
}

/// How a reading end with a tap of its own finds the messages in what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMessages {
    /// The transport keeps messages whole, and each carries its number.
    #[default]
    Whole,
    /// Each message of the stream has this size; one without any counts as one byte.
    OfSize(Bytes),
    /// Each message of the stream begins with a frame of this size, reported by [`LegTap::on_begun`].
    Framed(Bytes),
}

/// What a reading end keeps for [`LegTap::join`], besides arrivals and reads.
#[derive(Clone, Debug, Default)]
struct ReadingHalf {
    messages: ReadMessages,
    /// How many messages of one size are in `accepted` already: all that were read at least in part.
    expected: u64,
    /// When each of the arrivals was read.
    times: Vec<Instant>,
    /// Messages that found no room in the receiving socket's buffer.
    dropped: Vec<u64>,
}

/// What the end of the run means for a message that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The transport is reliable, and would still have delivered it, in order or not: it is unfinished.
    Reliable,
    /// Nobody sends it again.
    Unreliable {
        /// Whether the arena reports every drop: then a message without one is still under way, and
        /// unfinished.
        every_drop_known: bool,
        /// Whether a message without a wire stamp is still in its sender's own queue, and so unfinished.
        is_queued: bool,
    },
}

impl LegTap {
    /// A leg on which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// The reading end of a leg whose writing end has a tap of its own, which finds its messages so.
    pub fn reading(messages: ReadMessages) -> Self {
        let half = ReadingHalf { messages, ..ReadingHalf::default() };
        let mut tap = Self { reading: Some(Box::new(half)), ..Self::default() };
        tap.expect_messages();
        tap.whole_at = tap.accepted_end;
        tap
    }

    /// Joins the writing end's half, which this is, with what `reader` saw at the other end. An arrival
    /// counts only for a message that was sent: a far end may report anything.
    #[must_use]
    pub fn join(mut self, reader: &Self) -> Self {
        for &(at, bytes) in &reader.reads {
            if reader.is_framed() {
                // Its arrivals say which messages were read.
                self.note_read(bytes, at);
            } else {
                self.on_read(bytes, at);
            }
        }
        for (seq, at) in reader.arrival_times() {
            if self.get(seq).is_some_and(|row| row.sent.is_some()) {
                self.on_received(seq, at);
            }
        }
        for &seq in reader.reading.iter().flat_map(|half| &half.dropped) {
            self.on_dropped(seq, DropCause::SocketBuffer);
        }
        self
    }

    /// The writing end's half of a stream that counts its messages from 0 on, with the numbers that they have
    /// at the other end: `numbers` has them in the order of the stream. A message beyond them is none.
    #[must_use]
    pub fn renumbered(mut self, numbers: &[u64]) -> Self {
        let number = |seq: u64| usize::try_from(seq).ok().and_then(|seq| numbers.get(seq)).copied();
        let rows = core::mem::take(&mut self.rows);
        for row in rows.into_iter().flatten() {
            let Some((seq, index)) = number(row.seq).and_then(|seq| Some((seq, usize::try_from(seq).ok()?)))
            else {
                continue;
            };
            if self.rows.len() <= index {
                self.rows.resize(index + 1, None);
            }
            self.rows[index] = Some(MessageRecord { seq, ..row });
        }
        let known = self.accepted.iter().take_while(|(seq, _)| number(*seq).is_some()).count();
        self.accepted.truncate(known);
        self.accepted.iter_mut().for_each(|(seq, _)| *seq = number(*seq).unwrap_or(*seq));
        self.accepted_end = self.accepted.back().map_or(self.forgotten_end, |&(_, end)| end);
        self
    }

    /// The reading end's half without the arrivals that `is_impossible`, by number and time, and how many
    /// these are.
    pub fn without(&self, mut is_impossible: impl FnMut(u64, Instant) -> bool) -> (Self, u64) {
        let mut tap = self.clone();
        let Some(half) = &mut tap.reading else { return (tap, 0) };
        let arrivals = core::mem::take(&mut tap.arrivals);
        let times = core::mem::take(&mut half.times);
        let count = arrivals.len();
        for (seq, at) in arrivals.into_iter().zip(times) {
            if !is_impossible(seq, at) {
                tap.arrivals.push(seq);
                half.times.push(at);
            }
        }
        let dropped = (count - tap.arrivals.len()) as u64;
        (tap, dropped)
    }

    /// The workload (or the echoing application) wants message `seq` of `size` sent, as of `due`.
    pub fn on_due(&mut self, seq: u64, size: Bytes, due: Instant) {
        let Some(index) = seq.checked_sub(self.first_row) else { return };
        let index = usize::try_from(index).expect("a run has fewer messages than memory has bytes");
        let row = Some(MessageRecord {
            seq,
            size,
            due,
            sent: None,
            wire: None,
            received: None,
            fate: Fate::Unfinished,
            drop_cause: None,
            copies: 0,
            transmissions: 0,
        });
        // Most are due in order.
        if self.rows.len() == index {
            self.rows.push_back(row);
        } else {
            if self.rows.len() <= index {
                self.rows.resize(index + 1, None);
            }
            // A duplicated request is echoed again: the first one keeps the row.
            if self.rows[index].is_some() {
                return;
            }
            self.rows[index] = row;
        }
        self.pending += 1;
    }

    /// The transport took message `seq`.
    pub fn on_sent(&mut self, seq: u64, now: Instant) {
        if let Some(row) = self.row(seq) {
            row.sent.get_or_insert(now);
        }
    }

    /// A stream transport took message `seq`: its bytes follow those of the messages taken before.
    pub fn on_sent_stream(&mut self, seq: u64, now: Instant) {
        self.on_sent(seq, now);
        let size = self.row(seq).map_or(0, |row| row.size.get());
        self.accepted_end += size;
        self.accepted.push_back((seq, self.accepted_end));
    }

    /// The transport would not take message `seq`.
    pub fn on_refused(&mut self, seq: u64) {
        self.settle(seq, Fate::Refused);
    }

    /// The connection was not open when message `seq` was due, or wanted to leave: it is never sent.
    pub fn on_not_open(&mut self, seq: u64) {
        self.settle(seq, Fate::NotOpen);
    }

    /// This host had no network for message `seq`, or was not allowed to send it.
    pub fn on_no_network(&mut self, seq: u64) {
        self.settle(seq, Fate::NoNetwork);
    }

    /// The transport took message `seq`, and gave it back: it would not take it after all.
    pub fn on_given_back(&mut self, seq: u64) {
        if let Some(row) = self.row(seq) {
            row.sent = None;
        }
        self.on_refused(seq);
    }

    /// The transport took message `seq`, and gave it back: its host had no network for it.
    pub fn on_taken_back(&mut self, seq: u64) {
        if let Some(row) = self.row(seq) {
            row.sent = None;
        }
        self.on_no_network(seq);
    }

    /// This host's kernel would not take the packet of message `seq`, of which nothing else will come.
    pub fn on_unsent(&mut self, seq: u64) {
        self.settle(seq, Fate::Missing);
    }

    /// It is decided what becomes of message `seq`, unless it was before.
    fn settle(&mut self, seq: u64, fate: Fate) {
        if let Some(row) = self.row(seq)
            && is_pending(row)
        {
            row.fate = fate;
            self.pending -= 1;
        }
    }

    /// Message `seq` left the host.
    pub fn on_wire(&mut self, seq: u64, now: Instant) {
        if let Some(row) = self.row(seq) {
            row.wire.get_or_insert(now);
            row.transmissions += 1;
        }
    }

    /// Stream bytes `start..end` left the host, for the first time or again.
    #[inline]
    pub fn on_wire_stream(&mut self, start: u64, end: u64, now: Instant) {
        if start <= self.wire_span.0 || self.wire_span.1 < end {
            self.on_wire_beyond(start, end, now);
        }
    }

    fn on_wire_beyond(&mut self, start: u64, end: u64, now: Instant) {
        // New data starts in the message before the cursor or in the one behind it; a retransmission lies
        // further back and is found by search.
        let (cursor, before) = (self.on_wire, self.wire_span);
        let (mut position, mut first) = match cursor.checked_sub(1) {
            Some(last) if before.0 <= start && start < before.1 => (last, before.0),
            _ if start == before.1 => (cursor, start),
            _ => {
                let position = self.holding(start);
                (position, self.first_byte(position))
            }
        };
        while first < end
            && let Some((seq, past)) = self.accepted_at(position)
        {
            if first >= start {
                self.on_wire(seq, now);
            }
            if position >= cursor {
                self.wire_span = (first, past);
            }
            first = past;
            position += 1;
        }
        self.on_wire = cursor.max(position);
    }

    /// The far application read message `seq`.
    pub fn on_received(&mut self, seq: u64, now: Instant) {
        self.arrivals.push(seq);
        self.waiting += 1;
        if let Some(row) = self.row(seq) {
            let was_pending = is_pending(row);
            row.copies = row.copies.saturating_add(1);
            row.fate = Fate::Delivered;
            // Another copy of the message was dropped, and this one arrived.
            row.drop_cause = None;
            row.received.get_or_insert(now);
            self.pending -= u64::from(was_pending);
            self.delivered += u64::from(was_pending);
        } else if let Some(half) = &mut self.reading {
            half.times.push(now);
        }
    }

    /// The far application read `bytes` more of the stream; returns the messages that this completed, as a
    /// range of positions for [`LegTap::accepted_message`].
    #[inline]
    pub fn on_read(&mut self, bytes: Bytes, now: Instant) -> core::ops::Range<usize> {
        self.note_read(bytes, now);
        if self.read < self.whole_at { self.read_whole..self.read_whole } else { self.on_read_whole(now) }
    }

    #[inline]
    fn note_read(&mut self, bytes: Bytes, now: Instant) {
        self.reads.push((now, bytes));
        self.waiting += 1;
        self.read += bytes.get();
    }

    /// The far application is about to read the frame of message `seq` of the stream, which has `size` bytes,
    /// frame and all.
    pub fn on_begun(&mut self, seq: u64, size: Bytes) {
        self.accepted_end = self.accepted_end.saturating_add(size.get());
        self.accepted.push_back((seq, self.accepted_end));
    }

    fn on_read_whole(&mut self, now: Instant) -> core::ops::Range<usize> {
        self.expect_messages();
        let first = self.read_whole;
        while let Some((seq, end)) = self.accepted_at(self.read_whole)
            && end <= self.read
        {
            // A reading end with a tap of its own keeps the reads, from which the join finds messages of one
            // size.
            if self.reading.is_none() || self.is_framed() {
                self.on_received(seq, now);
            }
            self.read_whole += 1;
        }
        self.whole_at = self.accepted_at(self.read_whole).map_or(0, |(_, end)| end);
        first..self.read_whole
    }

    /// How many of the stream's messages the far application has read at least one byte of.
    pub fn begun(&self) -> usize {
        let next = self.read_whole;
        next + usize::from(self.accepted_at(next).is_some() && self.first_byte(next) < self.read)
    }

    /// The `position`-th message that the stream took: its `seq` and size.
    pub fn accepted_message(&self, position: usize) -> Option<(u64, Bytes)> {
        let (seq, end) = self.accepted_at(position)?;
        Some((seq, Bytes::new(end - self.first_byte(position))))
    }

    /// Something dropped or lost a packet of message `seq` (datagram transports: nobody sends it again), or
    /// the receiver stopped its stream.
    pub fn on_dropped(&mut self, seq: u64, cause: DropCause) {
        if let Some(half) = &mut self.reading {
            half.dropped.push(seq);
        } else if let Some(row) = self.row(seq)
            && is_pending(row)
        {
            row.drop_cause = Some(cause);
            self.pending -= 1;
        }
    }

    /// Message `seq` expired, taken or not, and the sender gave it up.
    pub fn on_expired(&mut self, seq: u64) {
        self.settle(seq, Fate::Expired);
    }

    /// Messages that are due and whose fate is still open.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Messages that the far application has read, each once.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Stream bytes still to be read until one more message is whole, or its frame if that was not read yet;
    /// at least 1.
    pub fn until_next_message(&self) -> Bytes {
        let end = match (self.accepted_at(self.read_whole), self.reading.as_deref()) {
            (Some((_, end)), _) => end,
            (None, Some(ReadingHalf { messages: ReadMessages::Framed(frame), .. })) => {
                self.accepted_end.saturating_add(frame.get())
            }
            (None, _) => u64::MAX,
        };
        Bytes::new(end.saturating_sub(self.read).max(1))
    }

    /// Ends the leg: what was sent, is not there and will not come is missing; the rest is unfinished.
    pub fn finish(mut self, ending: Ending) -> LegRecord {
        for row in
            self.rows.iter_mut().flatten().filter(|row| row.fate == Fate::Unfinished && row.sent.is_some())
        {
            let is_missing = match ending {
                Ending::Reliable => row.drop_cause == Some(DropCause::Stopped),
                Ending::Unreliable { .. } if row.drop_cause.is_some() => true,
                Ending::Unreliable { every_drop_known: true, .. } => false,
                Ending::Unreliable { is_queued, .. } => !is_queued || row.wire.is_some(),
            };
            if is_missing {
                row.fate = Fate::Missing;
            }
        }
        LegRecord {
            messages: Vec::from(self.rows).into_iter().flatten().collect(),
            arrivals: self.arrivals,
            reads: self.reads,
            arrivals_unknown: false,
        }
    }

    /// How many rows and events it holds.
    pub fn held(&self) -> usize {
        let dropped = self.reading.as_ref().map_or(0, |half| half.dropped.len());
        self.rows.len() + self.arrivals.len() + self.reads.len() + dropped
    }

    /// Stream bytes that were read, and when.
    pub fn reads(&self) -> &[(Instant, Bytes)] {
        &self.reads
    }

    /// What a reading end with a tap of its own saw arrive, and when.
    pub fn arrival_times(&self) -> impl Iterator<Item = (u64, Instant)> {
        let times = self.reading.as_ref().map_or(&[][..], |half| &half.times);
        self.arrivals.iter().copied().zip(times.iter().copied())
    }

    /// What a reading end with a tap of its own had no room for.
    pub fn dropped_on_arrival(&self) -> &[u64] {
        self.reading.as_ref().map_or(&[], |half| &half.dropped)
    }

    /// All rows that were not given away, in order.
    pub fn rows(&self) -> impl Iterator<Item = &MessageRecord> {
        self.rows.iter().flatten()
    }

    /// Whether only the reading end's half of a stream is here, with frames that say which message is which.
    fn is_framed(&self) -> bool {
        self.reading.as_deref().is_some_and(|half| matches!(half.messages, ReadMessages::Framed(_)))
    }

    /// If only the reading end's half of a stream is here, and its messages are of one size: notes where they
    /// end as far as was read, and where the next one does. Of what was read whole before it keeps one.
    fn expect_messages(&mut self) {
        let Some(half) = self.reading.as_mut().filter(|half| half.messages != ReadMessages::Whole) else {
            return;
        };
        while self.first_accepted + 1 < self.read_whole
            && let Some((_, end)) = self.accepted.pop_front()
        {
            self.first_accepted += 1;
            self.forgotten_end = end;
        }
        let ReadMessages::OfSize(size) = half.messages else { return };
        while self.accepted_end <= self.read && self.accepted_end < u64::MAX {
            self.accepted_end = self.accepted_end.saturating_add(size.get().max(1));
            self.accepted.push_back((half.expected, self.accepted_end));
            half.expected += 1;
        }
    }

    /// The row of message `seq`, if there is one and it was not given away.
    pub(crate) fn get(&self, seq: u64) -> Option<&MessageRecord> {
        self.rows.get(self.index(seq)?)?.as_ref()
    }

    /// The number of the first row that was not given away, and that row.
    pub(crate) fn first(&self) -> Option<(u64, Option<&MessageRecord>)> {
        Some((self.first_row, self.rows.front()?.as_ref()))
    }

    /// Gives the first row away; whatever happens to that message afterwards is passed over.
    pub(crate) fn give_first(&mut self) -> Option<MessageRecord> {
        let row = self.rows.pop_front().flatten();
        self.first_row += 1;
        row
    }

    /// How much waits to be given away.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes the room of what [`LegTap::give_events`] gave back.
    pub(crate) fn take_room(&mut self, mut arrivals: Vec<u64>, mut reads: Vec<(Instant, Bytes)>) {
        arrivals.clear();
        reads.clear();
        (self.arrivals, self.reads) = (arrivals, reads);
    }

    /// Gives away the arrivals and the reads since the last time.
    pub(crate) fn give_events(&mut self) -> (Vec<u64>, Vec<(Instant, Bytes)>) {
        self.waiting = 0;
        (core::mem::take(&mut self.arrivals), core::mem::take(&mut self.reads))
    }

    /// Forgets where the messages lie in the stream that were read and were on the wire long ago.
    pub(crate) fn forget_accepted(&mut self) {
        while self.first_accepted + 1 < self.read_whole.min(self.on_wire)
            && let Some((_, end)) = self.accepted.pop_front()
        {
            self.first_accepted += 1;
            self.forgotten_end = end;
        }
    }

    fn index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.first_row)?).ok()
    }

    fn row(&mut self, seq: u64) -> Option<&mut MessageRecord> {
        let index = self.index(seq)?;
        self.rows.get_mut(index)?.as_mut()
    }

    #[inline]
    fn accepted_at(&self, position: usize) -> Option<(u64, u64)> {
        self.accepted.get(position.checked_sub(self.first_accepted)?).copied()
    }

    fn first_byte(&self, position: usize) -> u64 {
        let before = position.checked_sub(1).and_then(|before| self.accepted_at(before));
        before.map_or(self.forgotten_end, |(_, end)| end)
    }

    /// The position of the accepted message that holds stream byte `offset`.
    fn holding(&self, offset: u64) -> usize {
        self.first_accepted + self.accepted.partition_point(|&(_, end)| end <= offset)
    }
}

/// Whether the message's fate is still open.
fn is_pending(row: &MessageRecord) -> bool {
    row.fate == Fate::Unfinished && row.drop_cause.is_none()
}

#[cfg(test)]
mod tests;
