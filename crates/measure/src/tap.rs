//! Taps build the record of a leg. An application and its channel call a tap at each event of a message.
//!
//! ```text
//!  writing end ── due, sent, wire, unsent, dropped ───► its half ──┐
//!                                                                  ├─ join ─► LegRecord
//!  reading end ── received, read, dropped in its inbox ─► its half ┘
//! ```
//!
//! A *leg* is one direction of a flow, and a *row* is what is known of one message on the leg. In the
//! simulator both ends of a leg write into the same tap. Over real sockets each end has a tap of its own,
//! which holds one half of the leg. After the run, [`LegTap::join`] repeats the events of the reading end in
//! the tap of the writing end.
//!
//! A datagram transport reports messages by their number, `seq`. A stream transport reports bytes, so the tap
//! remembers where each message lies in the stream (`tap/stream.rs`). A message counts as sent when its
//! first byte leaves, and as received when its last byte is read.
//!
//! The tap of a reading end does not know the messages of the writing end, so [`ReadMessages`] says how it
//! finds them in a stream. If all messages have one size, it counts bytes, and the join finds the messages
//! from the reads. If the sizes vary, a frame before each message says the number and the size. The halves
//! are then joined by number, in the same way as the halves of a leg with datagrams.
//!
//! Begin to read with [`LegTap::on_due`], [`LegTap::on_sent`] and [`LegTap::on_received`].

mod stream;

use core::mem;
use core::ops::Range;
use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use self::stream::{ByteRange, PlacedMessage, StreamLayout};
use crate::{DropCause, Fate, LegRecord, MessageRecord};

/// Builds the record of one leg.
///
/// The fields are in the order of their use, because with thousands of flows the processor waits for each
/// cache line. What each read needs comes first, and then what each packet needs.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct LegTap {
    /// How many stream bytes the reading application has read.
    read_bytes: u64,
    /// The number of read bytes at which the next message is complete. 0 if it is unknown.
    next_complete_at: u64,
    /// How many reads and arrivals were noted since they were last taken out.
    new_events: usize,
    reads: Vec<(Instant, Bytes)>,
    /// The bytes of the message before `next_on_wire`. Most packets carry bytes of this message.
    newest_on_wire: ByteRange,
    /// The position of the first message of which no byte has left the host.
    next_on_wire: usize,
    /// How many messages of the stream were read completely.
    complete_messages: usize,
    /// How many messages are due and undecided.
    undecided: u64,
    /// How many different messages were received.
    delivered: u64,
    /// The number of each message that arrived, duplicates included, in the order of arrival.
    arrivals: Vec<u64>,
    /// The rows by `seq`, beginning with `first_row`. A row is `None` if the message was never due on this
    /// leg, for example an echo that the far application did not write.
    rows: VecDeque<Option<MessageRecord>>,
    /// The number of the first row that is still here. A [`crate::FlowTally`] takes out earlier rows.
    first_row: u64,
    /// The messages that a stream transport took.
    stream: StreamLayout,
    /// What the tap of a reading end keeps for the join. `None` if the tap belongs to both ends, or to the
    /// writing end.
    reading_half: Option<Box<ReadingHalf>>,
}

/// How the tap of a reading end finds the messages in what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMessages {
    /// The transport keeps messages whole, and each message carries its number.
    #[default]
    Whole,
    /// Each message of the stream has this size. An empty message counts as one byte.
    OfSize(Bytes),
    /// Each message of the stream begins with a frame of this size. [`LegTap::on_frame`] reports the frame.
    Framed(Bytes),
}

/// What the tap of a reading end keeps for [`LegTap::join`], besides arrivals and reads.
#[derive(Clone, Debug, Default)]
struct ReadingHalf {
    messages: ReadMessages,
    /// The number of the next message that is added to the stream, if all messages have one size.
    next_seq: u64,
    /// The time of each arrival.
    arrival_times: Vec<Instant>,
    /// The messages that were dropped because the buffer of the receiving socket was full.
    dropped: Vec<u64>,
}

/// What the end of the run means for a message that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The transport is reliable and would have delivered the message later, so the message is unfinished.
    Reliable,
    /// Nobody sends the message again.
    Unreliable {
        /// Whether the arena reports every drop. If it does, a message without a drop is still under way, so
        /// it is unfinished. If it does not, the message is missing.
        every_drop_known: bool,
        /// Whether a message without a wire time is still in its sender's own queue. Such a message is
        /// unfinished, too.
        is_queued: bool,
    },
}

/// The events of the writing end.
impl LegTap {
    /// Makes the tap of a writing end, or of both ends.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that the workload, or the echoing application, wants message `seq` of `size` to be sent at
    /// `due`.
    ///
    /// A duplicated request is echoed twice. The first echo keeps the row.
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
        // Most messages are due in the order of their numbers.
        if self.rows.len() == index {
            self.rows.push_back(row);
        } else {
            if self.rows.len() <= index {
                self.rows.resize(index + 1, None);
            }
            if self.rows[index].is_some() {
                return;
            }
            self.rows[index] = row;
        }
        self.undecided += 1;
    }

    /// Notes that the transport took message `seq`.
    pub fn on_sent(&mut self, seq: u64, now: Instant) {
        if let Some(row) = self.row_mut(seq) {
            row.sent.get_or_insert(now);
        }
    }

    /// Notes that a stream transport took message `seq`. Its bytes follow the bytes of the messages before.
    pub fn on_sent_stream(&mut self, seq: u64, now: Instant) {
        self.on_sent(seq, now);
        let size = self.row_mut(seq).map_or(0, |row| row.size.get());
        self.stream.push(seq, size);
    }

    /// Notes that the transport refused message `seq`.
    pub fn on_refused(&mut self, seq: u64) {
        self.decide(seq, Fate::Refused);
    }

    /// Notes that message `seq` is never sent, because the connection was not open when it was due or wanted
    /// to leave.
    pub fn on_not_open(&mut self, seq: u64) {
        self.decide(seq, Fate::NotOpen);
    }

    /// Notes that this host had no network for message `seq`, or was not allowed to send it.
    pub fn on_no_network(&mut self, seq: u64) {
        self.decide(seq, Fate::NoNetwork);
    }

    /// Notes that the transport took message `seq` and gave it back unsent. The reason is `fate`.
    pub fn on_given_back(&mut self, seq: u64, fate: Fate) {
        if let Some(row) = self.row_mut(seq) {
            row.sent = None;
        }
        self.decide(seq, fate);
    }

    /// Notes that the kernel of this host did not send the only packet of message `seq`.
    pub fn on_unsent(&mut self, seq: u64) {
        self.decide(seq, Fate::Missing);
    }

    /// Notes that the sender gave up message `seq` because it had expired.
    pub fn on_expired(&mut self, seq: u64) {
        self.decide(seq, Fate::Expired);
    }

    /// Gives message `seq` its fate, unless something else decided it before.
    fn decide(&mut self, seq: u64, fate: Fate) {
        if let Some(row) = self.row_mut(seq)
            && is_undecided(row)
        {
            row.fate = fate;
            self.undecided -= 1;
        }
    }

    /// Notes that message `seq` left the host, for the first time or again.
    pub fn on_wire(&mut self, seq: u64, now: Instant) {
        if let Some(row) = self.row_mut(seq) {
            row.wire.get_or_insert(now);
            row.transmissions += 1;
        }
    }

    /// Notes that the stream bytes `start..end` left the host, for the first time or again.
    #[inline]
    pub fn on_wire_stream(&mut self, start: u64, end: u64, now: Instant) {
        let is_inside_newest_message = self.newest_on_wire.start < start && end <= self.newest_on_wire.end;
        // A message counts with its first byte, so bytes from the middle of a message change nothing.
        if !is_inside_newest_message {
            self.note_messages_on_wire(ByteRange { start, end }, now);
        }
    }

    /// Notes each message whose first byte is in `sent`.
    fn note_messages_on_wire(&mut self, sent: ByteRange, now: Instant) {
        let next = self.next_on_wire;
        let (mut position, mut first_byte) = self.message_at_byte(sent.start);
        while first_byte < sent.end
            && let Some(PlacedMessage { seq, end }) = self.stream.message(position)
        {
            if first_byte >= sent.start {
                self.on_wire(seq, now);
            }
            if position >= next {
                self.newest_on_wire = ByteRange { start: first_byte, end };
            }
            first_byte = end;
            position += 1;
        }
        self.next_on_wire = next.max(position);
    }

    /// Returns the position and the first byte of the message that has the byte at `offset`.
    fn message_at_byte(&self, offset: u64) -> (usize, u64) {
        let (newest, next) = (self.newest_on_wire, self.next_on_wire);
        // New data starts in the newest message on the wire, or in the next one. Only a retransmission has to
        // be searched for.
        match next.checked_sub(1) {
            Some(position) if newest.start <= offset && offset < newest.end => (position, newest.start),
            _ if offset == newest.end => (next, offset),
            _ => {
                let position = self.stream.position_of_byte(offset);
                (position, self.stream.first_byte(position))
            }
        }
    }

    /// Notes that a packet of message `seq` was dropped or lost, or that the receiver stopped the stream of
    /// the message. Only datagram transports report this, because a stream transport sends lost bytes again.
    pub fn on_dropped(&mut self, seq: u64, cause: DropCause) {
        if let Some(half) = &mut self.reading_half {
            half.dropped.push(seq);
        } else if let Some(row) = self.row_mut(seq)
            && is_undecided(row)
        {
            row.drop_cause = Some(cause);
            self.undecided -= 1;
        }
    }
}

/// The events of the reading end.
impl LegTap {
    /// Makes the tap of a reading end whose writing end has a tap of its own. `messages` says how the tap
    /// finds the messages in what is read.
    pub fn reading_end(messages: ReadMessages) -> Self {
        let half = ReadingHalf { messages, ..ReadingHalf::default() };
        let mut tap = Self { reading_half: Some(Box::new(half)), ..Self::default() };
        tap.add_expected_messages();
        tap.next_complete_at = tap.stream.end();
        tap
    }

    /// Notes that the application read message `seq`.
    pub fn on_received(&mut self, seq: u64, now: Instant) {
        self.arrivals.push(seq);
        self.new_events += 1;
        if let Some(row) = self.row_mut(seq) {
            let was_undecided = is_undecided(row);
            row.copies = row.copies.saturating_add(1);
            row.fate = Fate::Delivered;
            // If another copy of the message was dropped, that does not matter any more.
            row.drop_cause = None;
            row.received.get_or_insert(now);
            self.undecided -= u64::from(was_undecided);
            self.delivered += u64::from(was_undecided);
        } else if let Some(half) = &mut self.reading_half {
            half.arrival_times.push(now);
        }
    }

    /// Notes that the application read `bytes` more of the stream. Returns the positions of the messages that
    /// are complete now, for [`LegTap::stream_message`].
    #[inline]
    pub fn on_read(&mut self, bytes: Bytes, now: Instant) -> Range<usize> {
        self.note_read(bytes, now);
        if self.read_bytes < self.next_complete_at {
            self.complete_messages..self.complete_messages
        } else {
            self.note_complete_messages(now)
        }
    }

    #[inline]
    fn note_read(&mut self, bytes: Bytes, now: Instant) {
        self.reads.push((now, bytes));
        self.new_events += 1;
        self.read_bytes += bytes.get();
    }

    fn note_complete_messages(&mut self, now: Instant) -> Range<usize> {
        self.add_expected_messages();
        let first = self.complete_messages;
        while let Some(PlacedMessage { seq, end }) = self.stream.message(self.complete_messages)
            && end <= self.read_bytes
        {
            // The join finds messages of one size from the reads, so the tap of a reading end does not keep
            // them as arrivals, too.
            if self.reading_half.is_none() || self.is_framed() {
                self.on_received(seq, now);
            }
            self.complete_messages += 1;
        }
        self.next_complete_at = self.stream.message(self.complete_messages).map_or(0, |message| message.end);
        first..self.complete_messages
    }

    /// Notes that the application is about to read the frame of message `seq`. The message has `size` bytes,
    /// and these include the frame.
    pub fn on_frame(&mut self, seq: u64, size: Bytes) {
        self.stream.push(seq, size.get());
    }

    /// Adds the messages that the reading end can expect: if all messages of the stream have one size, those
    /// that were read at least in part, and the next one. Messages that were read completely are forgotten,
    /// but for the last of them.
    fn add_expected_messages(&mut self) {
        let Some(half) = &mut self.reading_half else { return };
        if half.messages == ReadMessages::Whole {
            return;
        }
        self.stream.forget_before(self.complete_messages);
        if let ReadMessages::OfSize(size) = half.messages {
            while self.stream.end() <= self.read_bytes && self.stream.end() < u64::MAX {
                self.stream.push(half.next_seq, size.get().max(1));
                half.next_seq += 1;
            }
        }
    }

    /// Returns whether this is the tap of a reading end whose messages have frames.
    fn is_framed(&self) -> bool {
        self.reading_half.as_ref().is_some_and(|half| matches!(half.messages, ReadMessages::Framed(_)))
    }

    /// Returns how many messages of the stream were read at least in part.
    pub fn begun_messages(&self) -> usize {
        let next = self.complete_messages;
        let is_begun = self.stream.message(next).is_some() && self.stream.first_byte(next) < self.read_bytes;
        next + usize::from(is_begun)
    }

    /// Returns the number and the size of the message at `position` of the stream.
    pub fn stream_message(&self, position: usize) -> Option<(u64, Bytes)> {
        let PlacedMessage { seq, end } = self.stream.message(position)?;
        Some((seq, Bytes::new(end - self.stream.first_byte(position))))
    }

    /// Returns how many stream bytes must still be read until the next message is complete, or until its
    /// frame is, if the frame was not read yet. Returns at least 1.
    pub fn until_next_message(&self) -> Bytes {
        let end = match (self.stream.message(self.complete_messages), self.reading_half.as_deref()) {
            (Some(message), _) => message.end,
            (None, Some(ReadingHalf { messages: ReadMessages::Framed(frame), .. })) => {
                self.stream.end().saturating_add(frame.get())
            }
            (None, _) => u64::MAX,
        };
        Bytes::new(end.saturating_sub(self.read_bytes).max(1))
    }
}

/// The join of two halves, and the end of the run.
impl LegTap {
    /// Joins this half, which is the writing end's, with the half of the reading end.
    ///
    /// A far host may report anything, so an arrival counts only for a message that was sent.
    #[must_use]
    pub fn join(mut self, reader: &Self) -> Self {
        for &(at, bytes) in &reader.reads {
            if reader.is_framed() {
                // The arrivals of the reader say which messages were read.
                self.note_read(bytes, at);
            } else {
                self.on_read(bytes, at);
            }
        }
        for (seq, at) in reader.arrival_times() {
            if self.row(seq).is_some_and(|row| row.sent.is_some()) {
                self.on_received(seq, at);
            }
        }
        for &seq in reader.dropped_on_arrival() {
            self.on_dropped(seq, DropCause::SocketBuffer);
        }
        self
    }

    /// Gives the messages of this half other numbers. Its writing end has counted the messages of the stream
    /// from 0, and `numbers` has their numbers at the other end, in the order of the stream. The messages
    /// beyond `numbers` are removed.
    #[must_use]
    pub fn renumbered(mut self, numbers: &[u64]) -> Self {
        let new_number = |seq: u64| usize::try_from(seq).ok().and_then(|index| numbers.get(index)).copied();
        for row in mem::take(&mut self.rows).into_iter().flatten() {
            let Some(seq) = new_number(row.seq) else { continue };
            let Ok(index) = usize::try_from(seq) else { continue };
            if self.rows.len() <= index {
                self.rows.resize(index + 1, None);
            }
            self.rows[index] = Some(MessageRecord { seq, ..row });
        }
        self.stream.renumber(new_number);
        self
    }

    /// Returns the half of a reading end without some of its arrivals, and how many arrivals were removed.
    /// `is_impossible` is called with the number and the time of each arrival.
    pub fn without_arrivals(&self, mut is_impossible: impl FnMut(u64, Instant) -> bool) -> (Self, u64) {
        let mut tap = self.clone();
        let Some(half) = &mut tap.reading_half else { return (tap, 0) };
        let arrivals = mem::take(&mut tap.arrivals);
        let times = mem::take(&mut half.arrival_times);
        let mut removed = 0;
        for (seq, at) in arrivals.into_iter().zip(times) {
            if is_impossible(seq, at) {
                removed += 1;
            } else {
                tap.arrivals.push(seq);
                half.arrival_times.push(at);
            }
        }
        (tap, removed)
    }

    /// Ends the leg. A message that was sent, did not arrive and will not arrive is missing. Every other
    /// message without a fate is unfinished.
    pub fn finish(mut self, ending: Ending) -> LegRecord {
        for row in self.rows.iter_mut().flatten() {
            if row.fate == Fate::Unfinished && row.sent.is_some() && ending.makes_missing(row) {
                row.fate = Fate::Missing;
            }
        }
        LegRecord {
            messages: Vec::from(self.rows).into_iter().flatten().collect(),
            arrivals: self.arrivals,
            reads: self.reads,
            ..LegRecord::default()
        }
    }
}

/// What others read from a tap.
impl LegTap {
    /// Returns how many messages are due and undecided.
    pub fn pending(&self) -> u64 {
        self.undecided
    }

    /// Returns how many different messages the reading application has read.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns how many rows and events the tap keeps in memory.
    pub fn held(&self) -> usize {
        self.rows.len() + self.arrivals.len() + self.reads.len() + self.dropped_on_arrival().len()
    }

    /// Returns the time and the size of each read of a stream.
    pub fn reads(&self) -> &[(Instant, Bytes)] {
        &self.reads
    }

    /// Returns the number and the time of each arrival at the tap of a reading end.
    pub fn arrival_times(&self) -> impl Iterator<Item = (u64, Instant)> {
        let times = self.reading_half.as_ref().map_or(&[][..], |half| &half.arrival_times);
        self.arrivals.iter().copied().zip(times.iter().copied())
    }

    /// Returns the messages that the socket of a reading end had no room for.
    pub fn dropped_on_arrival(&self) -> &[u64] {
        self.reading_half.as_ref().map_or(&[], |half| &half.dropped)
    }

    /// Returns the rows that are still here, in order.
    pub fn rows(&self) -> impl Iterator<Item = &MessageRecord> {
        self.rows.iter().flatten()
    }

    /// Returns the row of message `seq`, if it is still here.
    pub(crate) fn row(&self, seq: u64) -> Option<&MessageRecord> {
        self.rows.get(self.row_index(seq)?)?.as_ref()
    }

    fn row_mut(&mut self, seq: u64) -> Option<&mut MessageRecord> {
        let index = self.row_index(seq)?;
        self.rows.get_mut(index)?.as_mut()
    }

    fn row_index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.first_row)?).ok()
    }
}

/// What a [`crate::FlowTally`] takes out of a tap during the run.
impl LegTap {
    /// Returns how many reads and arrivals can be taken out.
    pub(crate) fn new_events(&self) -> usize {
        self.new_events
    }

    /// Takes out the arrivals and the reads since the last call.
    pub(crate) fn take_events(&mut self) -> (Vec<u64>, Vec<(Instant, Bytes)>) {
        self.new_events = 0;
        (mem::take(&mut self.arrivals), mem::take(&mut self.reads))
    }

    /// Uses the memory of lists that [`LegTap::take_events`] returned for the next events.
    pub(crate) fn reuse_memory(&mut self, mut arrivals: Vec<u64>, mut reads: Vec<(Instant, Bytes)>) {
        arrivals.clear();
        reads.clear();
        (self.arrivals, self.reads) = (arrivals, reads);
    }

    /// Returns the number of the first row, and the row.
    pub(crate) fn first_row(&self) -> Option<(u64, Option<&MessageRecord>)> {
        Some((self.first_row, self.rows.front()?.as_ref()))
    }

    /// Removes the first row. Later events of its message are ignored.
    pub(crate) fn remove_first_row(&mut self) {
        self.rows.pop_front();
        self.first_row += 1;
    }

    /// Forgets where the messages lay in the stream that were read and left the host long ago.
    pub(crate) fn forget_old_messages(&mut self) {
        self.stream.forget_before(self.complete_messages.min(self.next_on_wire));
    }
}

impl Ending {
    /// Returns whether a message that was sent and did not arrive is missing.
    fn makes_missing(self, row: &MessageRecord) -> bool {
        match self {
            Self::Reliable => row.drop_cause == Some(DropCause::Stopped),
            Self::Unreliable { .. } if row.drop_cause.is_some() => true,
            Self::Unreliable { every_drop_known: true, .. } => false,
            Self::Unreliable { is_queued, .. } => !is_queued || row.wire.is_some(),
        }
    }
}

/// Returns whether nothing has decided what becomes of a message.
fn is_undecided(row: &MessageRecord) -> bool {
    row.fate == Fate::Unfinished && row.drop_cause.is_none()
}

#[cfg(test)]
mod tests;
