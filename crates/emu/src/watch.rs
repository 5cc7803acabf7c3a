//! Watches the messages of each flow as they pass through the emulator.
//!
//! The logs of the ends say which messages were sent and which arrived. A watch knows the rest: when a
//! message left its host, how often it was transmitted, and what became of a message that did not arrive.
//! After the run, [`LegWatch::complete`] adds this to the record.
//!
//! | watch | what it watches | how it finds the messages in a packet |
//! | --- | --- | --- |
//! | [`DatagramWatch`] | UDP, and unencrypted protocols in UDP | each datagram has its message's number |
//! | [`PacketWatch`] | encrypted packets that are not sent again | the sender notes each packet's messages |
//! | [`StreamWatch`] | TCP | TCP's sequence numbers count the stream's bytes |
//!
//! Encrypted packets whose data is sent again have a [`StreamWatch`] that sees no segments. Their ends report
//! what became of each message.

mod datagrams;
mod messages;
mod packets;
mod stream;

use std::sync::Arc;

use talkpath_config::TransportKind;
use talkpath_kernel::end::PacketNotes;
use talkpath_measure::{DropCause, LegRecord};
use talkpath_units::Instant;

use self::datagrams::DatagramWatch;
pub(super) use self::messages::DrainedSocket;
use self::messages::ReceiverState;
use self::packets::PacketWatch;
use self::stream::StreamWatch;
use crate::packet::SegmentRange;

/// The watch of one direction of one connection. Several flows may share a connection. A flow is identified
/// by its index in the connection, which is 0 if the flow has the connection for itself.
#[derive(Debug)]
pub(super) enum LegWatch {
    Datagrams(DatagramWatch),
    Packets(PacketWatch),
    Stream(StreamWatch),
}

impl LegWatch {
    /// Watches the messages with `token` in datagrams of `transport`. If `is_queued` is true, messages wait
    /// in their sender's own queue before they leave.
    pub(super) const fn datagrams(token: u32, transport: TransportKind, is_queued: bool) -> Self {
        Self::Datagrams(DatagramWatch::new(token, transport, is_queued))
    }

    /// Watches the encrypted packets of a connection. `are_reliable` says for each flow of the connection
    /// whether its messages are sent again.
    pub(super) fn packets(notes: Arc<PacketNotes>, are_reliable: Vec<bool>) -> Self {
        Self::Packets(PacketWatch::new(notes, are_reliable))
    }

    /// Watches a stream.
    pub(super) const fn stream() -> Self {
        Self::Stream(StreamWatch::new())
    }

    /// Records that a datagram, or its first fragment, leaves its host. Returns the number under which the
    /// watch knows it: the number of its message, or of the encrypted packet. Returns `None` if the watch
    /// does not know it.
    pub(super) fn on_datagram(&mut self, payload: &[u8], now: Instant) -> Option<u64> {
        match self {
            Self::Datagrams(watch) => watch.on_datagram(payload, now),
            Self::Packets(watch) => watch.on_packet(payload, now),
            Self::Stream(_) => None,
        }
    }

    /// Records that a TCP segment leaves its host.
    pub(super) fn on_segment(&mut self, range: &SegmentRange, now: Instant) {
        match self {
            Self::Stream(watch) => watch.on_segment(range, now),
            Self::Datagrams(_) | Self::Packets(_) => {}
        }
    }

    /// Records that the path has dropped or lost a piece of datagram `number`. Calls `lost` with the index of
    /// the flow for each message that is lost by this piece. A message that has lost several pieces is lost
    /// only once.
    pub(super) fn on_dropped(&mut self, number: u64, cause: DropCause, lost: impl FnMut(usize)) {
        match self {
            Self::Datagrams(watch) => watch.on_dropped(number, cause, lost),
            Self::Packets(watch) => watch.on_dropped(number, cause, lost),
            Self::Stream(_) => {}
        }
    }

    /// Records that a piece of datagram `number` is handed to the far host. The piece has `bytes` bytes.
    pub(super) fn on_departed(&mut self, number: u64, bytes: u64) {
        match self {
            Self::Datagrams(watch) => watch.on_departed(number, bytes),
            Self::Packets(watch) => watch.on_departed(number, bytes),
            Self::Stream(_) => {}
        }
    }

    /// Adds the observations to the record `leg` of the flow with the index `flow`. `socket` is the receiving
    /// socket, if this process has it. `is_drained` is false if the run was cut short, so that the receiver
    /// would have read more messages.
    pub(super) fn complete(
        &self,
        flow: usize,
        leg: &mut LegRecord,
        socket: Option<&DrainedSocket>,
        is_drained: bool,
    ) {
        let receiver = ReceiverState { socket, is_drained };
        match self {
            Self::Datagrams(watch) => watch.complete(leg, receiver),
            Self::Packets(watch) => watch.complete(flow, leg, receiver),
            Self::Stream(watch) => watch.complete(leg),
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_kernel::wire::{filling, write_header};
    use talkpath_measure::{Fate, MessageRecord};
    use talkpath_units::Bytes;

    use super::*;

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
    const FULL: DrainedSocket = DrainedSocket { drops: Some(1), unread: Vec::new() };

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
            watch.complete(0, &mut record, Some(&DrainedSocket { drops, unread: vec![1] }), is_drained);
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
        if let LegWatch::Datagrams(watch) = &mut watch {
            watch.is_reliable = true;
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
