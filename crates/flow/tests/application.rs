//! What the application does by itself, whatever the channel: shown on a socket that is cut as it likes and
//! on time that moves.

use std::collections::VecDeque;

use talkpath_config::{Features, TransportKind};
use talkpath_flow::workload::{Bulk, Voice};
use talkpath_flow::{AnyWorkload, Application, Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_measure::{Ending, Fate, ReadMessages};
use talkpath_model::{EchoWrite, Receiver};
use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::{Delivery, Observation};

/// A stream's socket: what it has to read, read by read, and how much each write takes.
#[derive(Default)]
struct Socket {
    is_closed: bool,
    looks: u64,
    unread: VecDeque<u64>,
    /// How much the next writes take; nothing after that.
    room: VecDeque<u64>,
    written: Vec<u64>,
}

impl Channel for Socket {
    const MAX_TURN: usize = 4;
    const IN_PARTS: bool = true;

    /// Each look at the clock is a microsecond later.
    fn now(&mut self, began: Instant) -> Instant {
        self.looks += 1;
        began + Duration::from_micros(self.looks)
    }

    fn is_open(&self) -> bool {
        !self.is_closed
    }

    fn write(&mut self, write: &Write, _now: Instant) -> WriteOutcome {
        let Some(room) = self.room.pop_front() else { return WriteOutcome::NoRoom };
        let part = write.message.size.get().min(room);
        self.written.push(part);
        WriteOutcome::Taken(Bytes::new(part))
    }

    fn read(&mut self, _flow: FlowId, limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        let first = self.unread.front_mut()?;
        let bytes = limit.get().min(*first);
        *first -= bytes;
        if *first == 0 {
            self.unread.pop_front();
        }
        let delivery = Delivery::Stream { bytes: Bytes::new(bytes) };
        Some(Read { delivery, came_at: None, held_since: None, begun: &[], data: &[] })
    }

    fn writable(&mut self, _flow: FlowId) -> Bytes {
        if self.room.is_empty() { Bytes::ZERO } else { Bytes::MAX }
    }

    fn flush(&mut self, _flow: FlowId, _side: Side, _taps: &mut FlowTaps, _now: Instant) {}

    fn poll_timeout(&self) -> Instant {
        Instant::MAX
    }

    fn observe(&self) -> Observation {
        Observation::default()
    }
}

const TCP: Features = TransportKind::Tcp.features();

fn far(echo: Option<EchoWrite>, receiver: Receiver) -> (Application, FlowTaps) {
    let application = Application::far(TCP, echo, receiver, Instant::ZERO..STOP).on_host();
    (application, FlowTaps::of_one_end(Side::Far, echo.is_some(), ReadMessages::OfSize(Bytes::new(160))))
}

#[test]
fn a_slow_reader_begins_its_next_work_when_the_last_is_done_however_late_it_wakes_up() {
    let service = Duration::from_millis(10);
    let (mut reader, mut taps) = far(None, Receiver { service, ..Receiver::default() });
    let mut socket = Socket { unread: [480].into(), ..Socket::default() };
    reader.advance(&mut socket, Side::Far, &mut taps, Instant::from_millis(5));
    let first = reader.next_read().unwrap();
    assert!(first.since(Instant::from_millis(15)) < Duration::from_millis(1));
    assert_eq!(socket.unread, [320], "one message is worked on, the others wait in the socket");
    // It wakes up 4 ms late, and another time in between, when it is not ready.
    reader.advance(&mut socket, Side::Far, &mut taps, Instant::from_millis(12));
    assert_eq!(socket.unread, [320]);
    reader.advance(&mut socket, Side::Far, &mut taps, first + Duration::from_millis(4));
    assert_eq!(reader.next_read(), Some(first + service));
    // The last message, and then nothing: a message that comes later is begun when it comes.
    reader.advance(&mut socket, Side::Far, &mut taps, first + service);
    reader.advance(&mut socket, Side::Far, &mut taps, first + service * 2);
    assert_eq!((reader.next_read(), socket.unread.len()), (None, 0));
    socket.unread.push_back(160);
    reader.advance(&mut socket, Side::Far, &mut taps, Instant::from_millis(500));
    assert!(reader.next_read().unwrap() > Instant::from_millis(510));
}

#[test]
fn an_echo_per_read_writes_each_read_back_before_the_next_and_one_per_message_each_message() {
    for (echo, expected) in
        [(EchoWrite::PerRead, vec![200, 100, 20]), (EchoWrite::PerMessage, vec![160, 160])]
    {
        let (mut reader, mut taps) = far(Some(echo), Receiver::default());
        let room = VecDeque::from([u64::MAX; 8]);
        let mut socket = Socket { unread: [200, 100, 20].into(), room, ..Socket::default() };
        reader.advance(&mut socket, Side::Far, &mut taps, Instant::from_millis(5));
        assert_eq!(socket.written, expected, "{echo:?}");
        let turns = reader.host().unwrap().turn_rounds().figures().unwrap();
        assert_eq!(turns.count, 2, "{echo:?}: each of two messages was turned round");
        assert_eq!(taps.echo.unwrap().rows().filter(|row| row.sent.is_some()).count(), 2);
    }
}

#[test]
fn a_message_that_is_cut_short_continues_and_is_sent_when_its_first_byte_was_taken() {
    let voice = Voice::of_one_size(Duration::from_millis(20), Bytes::new(160), STOP);
    let mut sender = Application::near(TCP, AnyWorkload::Voice(voice), Instant::ZERO..STOP).on_host();
    let mut taps = FlowTaps::of_one_end(Side::Near, false, ReadMessages::Whole);
    let mut socket = Socket { room: [100].into(), ..Socket::default() };
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(1));
    assert!(!sender.has_written_all());
    // Nothing fits, and the next frame is due.
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(21));
    socket.room = [20, 500, 500].into();
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(31));
    assert!(sender.has_written_all());
    assert_eq!(socket.written, [100, 20, 40, 160]);
    let rows = taps.forward.finish(Ending::Reliable).messages;
    let sent: Vec<_> = rows.iter().map(|row| row.sent.unwrap().since(Instant::ZERO).as_millis()).collect();
    assert_eq!(sent, [1, 31]);
    assert_eq!(rows[1].due, Instant::from_millis(21), "what waited keeps its due time");
    let blocked = sender.blocked(Instant::from_millis(40));
    assert!(blocked.as_millis() == 30 || blocked.as_millis() == 29, "{blocked}");
}

#[test]
fn a_message_that_is_taken_in_parts_leaves_nothing_behind_for_the_one_that_waits_next() {
    let voice = Voice::of_one_size(Duration::from_millis(20), Bytes::new(160), STOP);
    let mut sender = Application::near(TCP, AnyWorkload::Voice(voice), Instant::ZERO..STOP).on_host();
    let mut taps = FlowTaps::of_one_end(Side::Near, false, ReadMessages::Whole);
    let mut socket = Socket { room: [100, 60].into(), ..Socket::default() };
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(1));
    assert!(sender.has_written_all());
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(21));
    socket.room = [160].into();
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(31));
    assert_eq!(socket.written, [100, 60, 160]);
    let rows = taps.forward.finish(Ending::Reliable).messages;
    assert!(rows.iter().all(|row| row.sent.is_some()), "{rows:?}");
}

#[test]
fn what_is_due_on_a_connection_that_has_ended_is_never_sent() {
    let voice = Voice::of_one_size(Duration::from_millis(20), Bytes::new(160), STOP);
    let mut sender = Application::near(TCP, AnyWorkload::Voice(voice), Instant::ZERO..STOP);
    let mut taps = FlowTaps::of_one_end(Side::Near, false, ReadMessages::Whole);
    let mut socket = Socket { room: [160].into(), ..Socket::default() };
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(1));
    socket.is_closed = true;
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(41));
    assert_eq!(sender.next(), Instant::from_millis(61), "its clock goes on");
    let rows = taps.forward.finish(Ending::Reliable).messages;
    let fates: Vec<_> = rows.iter().map(|row| row.fate).collect();
    assert_eq!(fates, [Fate::Unfinished, Fate::NotOpen, Fate::NotOpen]);
}

#[test]
fn what_a_clock_has_due_before_the_connection_is_open_is_never_sent_and_the_rest_is_due_as_before() {
    let calls = [10, 45].map(|opens_ms| {
        let voice = Voice::of_one_size(Duration::from_millis(20), Bytes::new(160), STOP);
        let sender = Application::near(TCP, AnyWorkload::Voice(voice), Instant::ZERO..STOP);
        let mut sender = sender.with_clock_from(Instant::from_millis(10));
        let mut taps = FlowTaps::of_one_end(Side::Near, false, ReadMessages::Whole);
        let mut socket = Socket { is_closed: true, room: [160; 9].into(), ..Socket::default() };
        sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(9));
        assert_eq!(
            (sender.next(), sender.opened()),
            (Instant::MAX, None),
            "nobody wakes up for what is lost"
        );
        socket.is_closed = false;
        let opens = Instant::from_millis(opens_ms);
        sender.advance(&mut socket, Side::Near, &mut taps, opens);
        assert_eq!(sender.opened(), Some(opens));
        sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(50));
        let rows = taps.forward.finish(Ending::Reliable).messages;
        rows.iter().map(|row| (row.due.since(Instant::ZERO).as_millis(), row.fate)).collect::<Vec<_>>()
    });
    let (there, lost) = (Fate::Unfinished, Fate::NotOpen);
    assert_eq!(calls, [[(10, there), (30, there), (50, there)], [(10, lost), (30, lost), (50, there)]]);
}

#[test]
fn of_a_connection_that_never_opens_every_message_until_the_end_is_noted_as_never_sent() {
    let voice = Voice::of_one_size(Duration::from_millis(20), Bytes::new(160), STOP);
    let sender = Application::near(TCP, AnyWorkload::Voice(voice), Instant::ZERO..STOP);
    let mut sender = sender.with_clock_from(Instant::from_millis(500));
    let mut taps = FlowTaps::of_one_end(Side::Near, false, ReadMessages::Whole);
    sender.finish(&mut taps, Instant::from_secs(9));
    assert_eq!(taps.forward.rows().filter(|row| row.fate == Fate::NotOpen).count(), 75);
    assert_eq!((taps.pending(), sender.opened()), (0, None));
}

#[test]
fn a_turn_ends_after_its_messages_and_the_rest_is_no_blocked_time() {
    let bulk = Bulk::new(Some(Bytes::new(6 * 65_536)), STOP);
    let mut sender = Application::near(TCP, AnyWorkload::Bulk(bulk), Instant::ZERO..STOP).on_host();
    let mut taps = FlowTaps::of_one_end(Side::Near, false, ReadMessages::Whole);
    let mut socket = Socket { room: [65_536; 8].into(), ..Socket::default() };
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(1));
    assert_eq!((socket.written.len(), sender.is_unfinished()), (4, true));
    sender.advance(&mut socket, Side::Near, &mut taps, Instant::from_millis(9));
    assert_eq!((socket.written.len(), sender.is_unfinished()), (6, false));
    assert!(sender.is_workload_finished() && sender.has_written_all());
    assert_eq!(sender.blocked(Instant::from_millis(20)), Duration::ZERO);
}

const STOP: Instant = Instant::from_secs(2);
