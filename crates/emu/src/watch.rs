//! Watches each flow's messages as they pass the emulator: when each message left its host, and what became
//! of it.
//!
//! Datagrams carry their sequence number (`wire.rs`). A stream's messages are found from the TCP sequence
//! numbers of its segments, which count the stream's bytes from the SYN on.

use std::sync::Arc;

use talkpath_config::TransportKind;
use talkpath_kernel::end::{PacketNotes, message_in};
use talkpath_kernel::wire::read_header;
use talkpath_measure::{DropCause, Fate, LegRecord, MessageRecord};
use talkpath_units::{Instant, SeqNum};

use crate::packet::SegmentRange;

/// The watch of one direction of one flow.
#[derive(Debug)]
pub(super) enum LegWatch {
    /// The datagrams of UDP, or of a protocol of ours in UDP.
    Datagrams {
        token: u32,
        /// The transport whose packets the datagrams are.
        transport: TransportKind,
        /// True if messages wait in their sender's own queue before they leave.
        is_queued: bool,
        /// True if a message that the path drops is sent again. The path then does not decide the message's
        /// fate.
        is_reliable: bool,
        /// The number that the next message probably has.
        expected: u64,
        /// What was seen of each message, by its number.
        seen: Vec<Seen>,
    },
    /// Encrypted packets with messages that are not sent again. The sender notes the messages in each packet.
    Packets {
        notes: Arc<PacketNotes>,
        /// For each packet its messages: the place of each message's flow in the connection, and the
        /// message's number.
        packets: Vec<Vec<(u32, u64)>>,
        /// The flows of the connection.
        members: Vec<Member>,
    },
    /// TCP, and encrypted packets whose data is sent again. The ends report what became of their messages.
    Stream {
        /// The first sequence number after the SYN.
        begin: Option<u32>,
        expected: u64,
        segments: Vec<Segment>,
    },
}

/// A segment of a stream that left its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// The offset of the segment's first byte in the stream.
    begin: u64,
    /// The offset behind the segment's last byte.
    end: u64,
    /// When the segment left its host.
    left_at: Instant,
}

/// One flow of a connection with encrypted packets.
#[derive(Debug)]
pub(super) struct Member {
    /// True if the flow's messages are sent again. The path then does not decide their fate.
    is_reliable: bool,
    /// What was seen of each message, by its number.
    seen: Vec<Seen>,
}

/// What was seen of one datagram message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    wire: Option<Instant>,
    transmissions: u32,
    drop_cause: Option<DropCause>,
    /// The bytes behind the IP header that were handed to the far host.
    departed: u64,
}

/// The datagrams that a socket has not handed to its end when the run is over.
#[derive(Clone, Debug)]
pub(super) struct SocketRest {
    /// The number of datagrams that the socket dropped. `None` if the kernel does not report it.
    pub(super) drops: Option<u32>,
    /// The numbers of the messages that wait in the socket.
    pub(super) unread: Vec<u64>,
}

impl Seen {
    /// Takes note that the message left its host, for the first time or again.
    fn note_transmission(&mut self, now: Instant) {
        self.wire.get_or_insert(now);
        self.transmissions = self.transmissions.saturating_add(1);
    }
}

impl LegWatch {
    /// Watches the messages with `token` in datagrams of `transport`. If `is_queued` is true, messages wait
    /// in their sender's own queue before they leave.
    pub(super) const fn datagrams(token: u32, transport: TransportKind, is_queued: bool) -> Self {
        let is_reliable = transport.features().is_reliable;
        Self::Datagrams { token, transport, is_queued, is_reliable, expected: 0, seen: Vec::new() }
    }

    /// Watches a stream.
    pub(super) const fn stream() -> Self {
        Self::Stream { begin: None, expected: 0, segments: Vec::new() }
    }

    /// Watches the encrypted packets of a connection. `are_reliable` says for each flow of the connection
    /// whether its messages are sent again.
    pub(super) fn packets(notes: Arc<PacketNotes>, are_reliable: Vec<bool>) -> Self {
        let member = |is_reliable| Member { is_reliable, seen: Vec::new() };
        Self::Packets { notes, packets: Vec::new(), members: are_reliable.into_iter().map(member).collect() }
    }

    /// Takes note that a datagram, or its first fragment, leaves its host. Returns the number of the message
    /// in the datagram, or the number of an encrypted packet.
    pub(super) fn on_datagram(&mut self, payload: &[u8], now: Instant) -> Option<u64> {
        if let Self::Packets { notes, packets, .. } = self {
            let messages = notes.take(payload).filter(|_| packets.len() < MAX_MESSAGES)?;
            packets.push(messages);
            let number = packets.len() as u64 - 1;
            self.each_in(number, |_, message| message.note_transmission(now));
            return Some(number);
        }
        let Self::Datagrams { token, transport, expected, seen, .. } = self else { return None };
        let seq = read_header(message_in(*transport, payload)?, *token, *expected)?;
        let message = place(seen, seq)?;
        *expected = (*expected).max(seq + 1);
        message.note_transmission(now);
        Some(seq)
    }

    /// Takes note that a segment leaves its host.
    pub(super) fn on_segment(&mut self, range: &SegmentRange, now: Instant) {
        let Self::Stream { begin, expected, segments } = self else { return };
        let SegmentRange { sequence, is_syn, payload } = *range;
        if is_syn {
            *begin = Some(sequence.wrapping_add(1));
        }
        let Some(begin) = begin.filter(|_| payload > 0) else { return };
        let start = SeqNum::new(sequence.wrapping_sub(begin)).extend(*expected);
        let end = start + u64::from(payload);
        *expected = (*expected).max(end);
        if segments.len() < MAX_MESSAGES {
            segments.push(Segment { begin: start, end, left_at: now });
        }
    }

    /// Takes note that a piece of datagram `seq` was dropped or lost. Calls `lost` for each message that is
    /// lost only now, with the place of the message's flow in the connection.
    pub(super) fn on_dropped(&mut self, seq: u64, cause: DropCause, mut lost: impl FnMut(usize)) {
        if matches!(self, Self::Datagrams { is_reliable: true, .. }) {
            return;
        }
        self.each_in(seq, |member, message| {
            if message.drop_cause.replace(message.drop_cause.unwrap_or(cause)).is_none() {
                lost(member);
            }
        });
    }

    /// Takes note that a piece of datagram `seq` of `bytes` bytes is handed to the far host.
    pub(super) fn on_departed(&mut self, seq: u64, bytes: u64) {
        self.each_in(seq, |_, message| message.departed += bytes);
    }

    /// Adds what was seen to the record `leg` of the connection's flow `member`: wire stamps, transmissions,
    /// drop causes, and the messages that are still inside the path.
    ///
    /// `socket` is the receiving socket, if this process has it and it takes datagrams. `is_drained` is false
    /// if the run was cut short, so that the receiver would have read more messages.
    pub(super) fn complete(
        &self,
        member: usize,
        leg: &mut LegRecord,
        socket: Option<&SocketRest>,
        is_drained: bool,
    ) {
        match self {
            Self::Datagrams { seen, is_queued, is_reliable, .. } => {
                for row in &mut leg.messages {
                    let index = usize::try_from(row.seq).unwrap_or(usize::MAX);
                    let seen = seen.get(index).copied().unwrap_or_default();
                    // A message that waits in its sender's own queue has not entered the path.
                    if *is_queued && row.wire.is_none() {
                        continue;
                    }
                    row.wire = seen.wire;
                    row.transmissions = seen.transmissions;
                    if !is_reliable {
                        complete_datagram(row, seen, socket, is_drained);
                    }
                }
            }
            Self::Packets { members, .. } => {
                let Some(Member { is_reliable: false, seen }) = members.get(member) else { return };
                // A message without a wire stamp has not entered the path: it waits in its sender's own
                // queue, or it expired in the queue.
                for row in leg.messages.iter_mut().filter(|row| row.wire.is_some()) {
                    let index = usize::try_from(row.seq).unwrap_or(usize::MAX);
                    let seen = seen.get(index).copied().unwrap_or_default();
                    (row.wire, row.transmissions) = (seen.wire, seen.transmissions);
                    complete_datagram(row, seen, socket, is_drained);
                }
            }
            Self::Stream { segments, .. } if segments.is_empty() => {}
            Self::Stream { segments, .. } => complete_stream(leg, segments),
        }
    }

    /// Calls `apply` for each message that the emulator knows under `number`, with the place of the message's
    /// flow in the connection.
    fn each_in(&mut self, number: u64, mut apply: impl FnMut(usize, &mut Seen)) {
        let Ok(index) = usize::try_from(number) else { return };
        match self {
            Self::Datagrams { seen, .. } => {
                seen.get_mut(index).into_iter().for_each(|message| apply(0, message));
            }
            Self::Packets { packets, members, .. } => {
                for &(member, seq) in packets.get(index).into_iter().flatten() {
                    let member = member as usize;
                    let seen = members.get_mut(member).and_then(|it| place(&mut it.seen, seq));
                    seen.into_iter().for_each(|message| apply(member, message));
                }
            }
            Self::Stream { .. } => {}
        }
    }
}

/// The entry of message `seq`. `None` if the number is beyond [`MAX_MESSAGES`].
fn place(seen: &mut Vec<Seen>, seq: u64) -> Option<&mut Seen> {
    let index = usize::try_from(seq).ok().filter(|&index| index < MAX_MESSAGES)?;
    if seen.len() <= index {
        seen.resize(index + 1, Seen::default());
    }
    seen.get_mut(index)
}

fn complete_datagram(row: &mut MessageRecord, seen: Seen, socket: Option<&SocketRest>, is_drained: bool) {
    let is_known = matches!(row.fate, Fate::Delivered | Fate::Refused | Fate::NoNetwork | Fate::NotOpen)
        || row.drop_cause.is_some();
    if is_known || row.sent.is_none() {
        return;
    }
    let is_through = seen.departed >= row.size.get() + super::packet::UDP_HEADER as u64;
    let is_unread = socket.is_some_and(|socket| socket.unread.contains(&row.seq));
    let has_dropped = socket.is_some_and(|socket| socket.drops > Some(0));
    (row.fate, row.drop_cause) = match seen.drop_cause {
        Some(cause) => (Fate::Missing, Some(cause)),
        // The message waits in the receiver's socket.
        None if is_unread => (Fate::Unfinished, None),
        None if is_through && has_dropped => (Fate::Missing, Some(DropCause::SocketBuffer)),
        // The far host got the message, and its socket dropped nothing. A QUIC end discards a packet for
        // which it has no keys (RFC 9001 §5.7), and nobody reports that.
        None if is_through && is_drained => (Fate::Missing, None),
        None if is_through => (Fate::Unfinished, None),
        // The message never came to the emulator, because its host's device had no room. The run has a
        // warning.
        None if seen.wire.is_none() => (Fate::Missing, None),
        None => (Fate::Unfinished, None),
    };
}

/// Adds wire stamps and transmissions to the messages of a stream. A message leaves when a segment with its
/// first byte leaves, and each further segment with that byte is a transmission of the message.
fn complete_stream(leg: &mut LegRecord, segments: &[Segment]) {
    let mut starts: Vec<u64> = Vec::new();
    let mut rows: Vec<usize> = Vec::new();
    let mut offset = 0;
    for (index, row) in leg.messages.iter().enumerate().filter(|(_, row)| row.sent.is_some()) {
        starts.push(offset);
        rows.push(index);
        offset += row.size.get();
    }
    for segment in segments {
        let first = starts.partition_point(|&start| start < segment.begin);
        let past = starts.partition_point(|&start| start < segment.end);
        for &row in &rows[first..past] {
            let row = &mut leg.messages[row];
            row.wire.get_or_insert(segment.left_at);
            row.transmissions = row.transmissions.saturating_add(1);
        }
    }
}

/// The largest number of messages or segments that are watched in one direction of a flow (chosen: half a
/// gigabyte).
const MAX_MESSAGES: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use talkpath_units::Bytes;

    use super::*;
    use talkpath_kernel::wire::{filling, write_header};

    fn row(seq: u64, size: u64) -> MessageRecord {
        MessageRecord {
            seq,
            size: Bytes::new(size),
            due: Instant::ZERO,
            sent: Some(Instant::ZERO),
            wire: None,
            received: None,
            fate: Fate::Missing,
            drop_cause: None,
            copies: 0,
            transmissions: 0,
        }
    }

    fn leg(messages: Vec<MessageRecord>) -> LegRecord {
        LegRecord { messages, ..LegRecord::default() }
    }

    /// The socket had no room for a datagram.
    const FULL: SocketRest = SocketRest { drops: Some(1), unread: Vec::new() };

    /// The flows of the messages that are lost by the drop of `number`.
    fn lost(watch: &mut LegWatch, number: u64, cause: DropCause) -> Vec<usize> {
        let mut members = Vec::new();
        watch.on_dropped(number, cause, |member| members.push(member));
        members
    }

    #[test]
    fn every_datagram_that_did_not_arrive_has_the_fate_that_the_path_gave_it() {
        let mut watch = LegWatch::datagrams(7, TransportKind::Udp, false);
        for seq in 0..4 {
            let mut payload = filling(160);
            write_header(&mut payload, 7, seq);
            assert_eq!(watch.on_datagram(&payload, Instant::from_millis(seq)), Some(seq));
        }
        assert_eq!(
            (lost(&mut watch, 0, DropCause::Loss), lost(&mut watch, 0, DropCause::Queue)),
            (vec![0], vec![])
        );
        watch.on_departed(1, 168);
        watch.on_departed(3, 100);
        let mut record = leg((0..5).map(|seq| row(seq, 160)).collect());
        watch.complete(0, &mut record, Some(&FULL), true);
        let fates: Vec<_> = record.messages.iter().map(|row| (row.fate, row.drop_cause)).collect();
        assert_eq!(
            fates,
            [
                (Fate::Missing, Some(DropCause::Loss)),
                (Fate::Missing, Some(DropCause::SocketBuffer)),
                (Fate::Unfinished, None),
                (Fate::Unfinished, None),
                (Fate::Missing, None),
            ]
        );
        assert_eq!(record.messages[2].wire, Some(Instant::from_millis(2)));
    }

    /// Two messages were handed to the far host, and nobody read them. The second one waits in the socket.
    #[test]
    fn only_a_socket_that_dropped_datagrams_is_the_cause_of_what_is_missing() {
        let fates = |drops, is_drained| {
            let mut watch = LegWatch::datagrams(7, TransportKind::Udp, false);
            for seq in 0..2 {
                let mut payload = filling(160);
                write_header(&mut payload, 7, seq);
                assert_eq!(watch.on_datagram(&payload, Instant::ZERO), Some(seq));
                watch.on_departed(seq, 168);
            }
            let mut record = leg(vec![row(0, 160), row(1, 160)]);
            watch.complete(0, &mut record, Some(&SocketRest { drops, unread: vec![1] }), is_drained);
            let fate = |row: &MessageRecord| (row.fate, row.drop_cause);
            assert_eq!(fate(&record.messages[1]), (Fate::Unfinished, None));
            fate(&record.messages[0])
        };
        for is_drained in [true, false] {
            assert_eq!(fates(Some(3), is_drained), (Fate::Missing, Some(DropCause::SocketBuffer)));
        }
        for drops in [Some(0), None] {
            assert_eq!(fates(drops, true), (Fate::Missing, None));
            assert_eq!(fates(drops, false), (Fate::Unfinished, None), "it may be on its way to the reader");
        }
    }

    #[test]
    fn a_lost_packet_loses_each_message_that_its_sender_noted_in_it() {
        let notes = Arc::new(PacketNotes::default());
        let mut watch = LegWatch::packets(Arc::clone(&notes), vec![false, false, true]);
        let packet = |number: u8| [[7; 400], [number; 400]].concat();
        for number in 0..3 {
            let first = u64::from(number) * 2;
            // The second flow's messages, and one of the first's.
            notes.note(&packet(number), vec![(1, first), (1, first + 1), (0, number.into())]);
        }
        for number in 0..3 {
            let at = Instant::from_millis(number.into());
            assert_eq!(watch.on_datagram(&packet(number), at), Some(number.into()));
        }
        // An acknowledgement.
        assert_eq!(watch.on_datagram(&packet(9), Instant::ZERO), None);
        assert_eq!(
            (lost(&mut watch, 1, DropCause::Loss), lost(&mut watch, 1, DropCause::Loss)),
            (vec![1, 1, 0], vec![])
        );
        watch.on_departed(0, 800);
        watch.on_departed(2, 800);
        let left = |seq| MessageRecord { wire: Some(Instant::ZERO), ..row(seq, 160) };
        let delivered = |seq| MessageRecord { fate: Fate::Delivered, ..left(seq) };
        let expired = MessageRecord { fate: Fate::Expired, ..row(6, 160) };
        let mut record =
            leg(vec![delivered(0), delivered(1), left(2), left(3), left(4), delivered(5), expired]);
        watch.complete(1, &mut record, None, false);
        let fates: Vec<_> = record.messages.iter().map(|row| (row.fate, row.drop_cause)).collect();
        let (there, lost) = ((Fate::Delivered, None), (Fate::Missing, Some(DropCause::Loss)));
        let unread = (Fate::Unfinished, None);
        assert_eq!(fates, [there, there, lost, lost, unread, there, (Fate::Expired, None)]);
        assert_eq!(record.messages[3].wire, Some(Instant::from_millis(1)));
        // Messages of the same numbers in another flow of the connection have their own fates.
        for (member, fates) in
            [(0, [there, lost, unread]), (2, [there, (Fate::Missing, None), (Fate::Missing, None)])]
        {
            let mut record = leg(vec![delivered(0), left(1), left(2)]);
            watch.complete(member, &mut record, None, false);
            let found: Vec<_> = record.messages.iter().map(|row| (row.fate, row.drop_cause)).collect();
            assert_eq!(found, fates, "flow {member}");
        }
    }

    #[test]
    fn a_reliable_message_that_the_path_dropped_has_no_fate_by_that() {
        let mut watch = LegWatch::datagrams(7, TransportKind::Udp, false);
        if let LegWatch::Datagrams { is_reliable, .. } = &mut watch {
            *is_reliable = true;
        }
        let mut payload = filling(160);
        write_header(&mut payload, 7, 0);
        for at in [1, 2] {
            assert_eq!(watch.on_datagram(&payload, Instant::from_millis(at)), Some(0));
            assert_eq!(lost(&mut watch, 0, DropCause::Loss), Vec::<usize>::new());
        }
        let mut record = leg(vec![MessageRecord { fate: Fate::Unfinished, ..row(0, 160) }]);
        watch.complete(0, &mut record, Some(&FULL), true);
        let message = record.messages[0];
        assert_eq!((message.fate, message.drop_cause), (Fate::Unfinished, None));
        assert_eq!((message.wire, message.transmissions), (Some(Instant::from_millis(1)), 2));
    }

    #[test]
    fn a_stream_message_leaves_with_the_segment_of_its_first_byte_also_past_the_wrap() {
        let mut watch = LegWatch::stream();
        let isn = u32::MAX - 100;
        let mut segment = |sequence, is_syn, payload, ms| {
            watch.on_segment(&SegmentRange { sequence, is_syn, payload }, Instant::from_millis(ms));
        };
        segment(isn, true, 0, 0);
        segment(isn.wrapping_add(1), false, 200, 1);
        segment(isn.wrapping_add(201), false, 280, 2);
        segment(isn.wrapping_add(1), false, 200, 3);
        let mut record = leg((0..3).map(|seq| row(seq, 160)).collect());
        watch.complete(0, &mut record, None, false);
        let wire: Vec<_> = record.messages.iter().map(|row| (row.wire, row.transmissions)).collect();
        let at = |ms| Some(Instant::from_millis(ms));
        assert_eq!(wire, [(at(1), 2), (at(1), 2), (at(2), 1)]);
    }
}
