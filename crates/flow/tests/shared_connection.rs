//! Two flows on one connection, one of whose messages expire: what the `Channel` trait must carry for a
//! protocol like QUIC.
//!
//! The connection is one queue before one line. A voice call and a transfer share it, each with an
//! application and taps of its own. A frame of the call is of no use 50 ms after it was due.

use std::collections::{BTreeMap, VecDeque};

use talkpath_config::Features;
use talkpath_flow::workload::{Bulk, Voice};
use talkpath_flow::{AnyWorkload, Application, Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_measure::{Ending, Fate, LegRecord, MessageRecord};
use talkpath_model::Receiver;
use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::{Delivery, Message, Observation};

/// A connection that carries messages one way: what was written waits in a queue, and leaves on a line of a
/// fixed rate.
#[derive(Default)]
struct Connection {
    queue: VecDeque<Write>,
    line_free_at: Instant,
    /// On their way, in order: when each arrives.
    line: VecDeque<(Instant, FlowId, Message)>,
    /// What the applications do not know yet of their flows.
    notes: BTreeMap<FlowId, Vec<Note>>,
    expired_when_written: u64,
}

enum Note {
    Left(u64, Instant),
    Expired(u64),
}

impl Channel for Connection {
    fn is_open(&self) -> bool {
        true
    }

    fn write(&mut self, write: &Write, now: Instant) -> WriteOutcome {
        if write.expires.is_some_and(|expires| expires <= now) {
            self.expired_when_written += 1;
            return WriteOutcome::Expired;
        }
        if self.writable(write.flow) < write.message.size {
            return WriteOutcome::NoRoom;
        }
        self.queue.push_back(*write);
        WriteOutcome::Taken(write.message.size)
    }

    fn read(&mut self, flow: FlowId, _limit: Bytes, now: Instant) -> Option<Read<'_>> {
        let (_, _, message) = self.line.pop_front_if(|(at, of, _)| *at <= now && *of == flow)?;
        let delivery = Delivery::Message { seq: message.seq, size: message.size };
        Some(Read { delivery, came_at: None, held_since: None, begun: &[], data: &[] })
    }

    fn writable(&mut self, _flow: FlowId) -> Bytes {
        let queued: u64 = self.queue.iter().map(|write| write.message.size.get()).sum();
        QUEUE.saturating_sub(Bytes::new(queued))
    }

    fn flush(&mut self, flow: FlowId, side: Side, taps: &mut FlowTaps, now: Instant) {
        let notes = &mut self.notes;
        self.queue.retain(|write| {
            let is_expired = write.expires.is_some_and(|expires| expires <= now);
            if is_expired {
                notes.entry(write.flow).or_default().push(Note::Expired(write.message.seq));
            }
            !is_expired
        });
        while self.line_free_at <= now
            && let Some(Write { flow, message, .. }) = self.queue.pop_front()
        {
            self.line_free_at = now + NANOS_A_BYTE * message.size.get();
            self.line.push_back((self.line_free_at, flow, message));
            notes.entry(flow).or_default().push(Note::Left(message.seq, now));
        }
        let Some(tap) = taps.written_by(side) else { return };
        for note in notes.remove(&flow).unwrap_or_default() {
            match note {
                Note::Left(seq, at) => tap.on_wire(seq, at),
                Note::Expired(seq) => tap.on_expired(seq),
            }
        }
    }

    fn poll_timeout(&self) -> Instant {
        let leaves = if self.queue.is_empty() { Instant::MAX } else { self.line_free_at };
        self.line.front().map_or(leaves, |(at, ..)| leaves.min(*at))
    }

    fn observe(&self) -> Observation {
        Observation::default()
    }
}

/// Both ends of a flow.
struct Flow {
    near: Application,
    far: Application,
    taps: FlowTaps,
}

impl Flow {
    fn new(id: u32, workload: AnyWorkload, lifetime: Option<Duration>) -> Self {
        let window = || Instant::ZERO..STOP;
        let near = Application::near(DATAGRAMS, workload, window()).as_flow(FlowId(id));
        let near = match lifetime {
            Some(lifetime) => near.expiring_after(lifetime),
            None => near,
        };
        let far = Application::far(DATAGRAMS, None, Receiver::default(), window()).as_flow(FlowId(id));
        Self { near, far, taps: FlowTaps::shared(false) }
    }

    fn record(self) -> LegRecord {
        self.taps.forward.finish(Ending::Unreliable { every_drop_known: true, is_queued: true })
    }
}

/// Runs both flows over one connection until nothing is due; gives their records and the connection.
fn run(mut flows: [Flow; 2]) -> ([LegRecord; 2], Connection) {
    let mut connection = Connection::default();
    let mut now = Instant::ZERO;
    while now < Instant::MAX {
        // A head of the line that one flow does not read is the other's: both get a turn until neither moves.
        for _ in 0..2 {
            for Flow { near, far, taps } in &mut flows {
                near.advance(&mut connection, Side::Near, taps, now);
                far.advance(&mut connection, Side::Far, taps, now);
            }
        }
        let next = flows.iter().map(|flow| flow.near.next().min(flow.far.next())).min();
        let next = next.unwrap_or(Instant::MAX).min(connection.poll_timeout());
        assert!(next > now, "nothing is left behind at {now}");
        now = next;
    }
    (flows.map(Flow::record), connection)
}

fn call() -> AnyWorkload {
    AnyWorkload::Voice(Voice::of_one_size(Duration::from_millis(20), Bytes::new(160), STOP))
}

fn transfer() -> AnyWorkload {
    AnyWorkload::Bulk(Bulk::new(Some(Bytes::new(20_000)), STOP).with_largest_message(Bytes::new(1000)))
}

#[test]
fn flows_of_one_connection_keep_their_messages_and_records_apart() {
    let ([call, transfer], _) = run([Flow::new(4, call(), None), Flow::new(8, transfer(), None)]);
    assert_eq!((call.messages.len(), transfer.messages.len()), (100, 20));
    for leg in [&call, &transfer] {
        assert!(leg.messages.iter().all(|row| row.fate == Fate::Delivered && row.transmissions == 1));
        assert!(leg.arrivals.iter().copied().eq(0..leg.messages.len() as u64));
    }
    // The line is never idle while the transfer lasts: both together take what their bytes take.
    let last = transfer.messages.iter().filter_map(|row| row.received).max().unwrap();
    let before: u64 = [&call, &transfer]
        .iter()
        .flat_map(|leg| &leg.messages)
        .filter(|row| row.received.is_some_and(|at| at <= last))
        .map(|row| row.size.get())
        .sum();
    assert_eq!(last, Instant::ZERO + NANOS_A_BYTE * before);
}

#[test]
fn messages_that_expire_are_dropped_before_they_leave_and_the_other_flow_loses_nothing() {
    let lifetime = Duration::from_millis(50);
    let flows = [Flow::new(4, call(), Some(lifetime)), Flow::new(8, transfer(), None)];
    let ([call, transfer], connection) = run(flows);
    assert!(transfer.messages.iter().all(|row| row.fate == Fate::Delivered));
    let (delivered, expired): (Vec<&MessageRecord>, Vec<&MessageRecord>) =
        call.messages.iter().partition(|row| row.fate == Fate::Delivered);
    assert!(delivered.len() > 20 && expired.len() > 20, "{} and {}", delivered.len(), expired.len());
    for row in &expired {
        assert_eq!((row.fate, row.drop_cause), (Fate::Expired, None));
        assert_eq!((row.wire, row.received), (None, None));
    }
    for row in &delivered {
        let left = row.wire.unwrap();
        assert!(left < row.due + lifetime, "{} left at {left}, due at {}", row.seq, row.due);
    }
    // Some expired while they waited for room, the others in the connection's own queue.
    let never_taken = expired.iter().filter(|row| row.sent.is_none()).count() as u64;
    assert_eq!(never_taken, connection.expired_when_written);
    assert!(never_taken > 0 && never_taken < expired.len() as u64, "{never_taken} of {}", expired.len());
}

/// What the connection above provides.
const DATAGRAMS: Features =
    Features { keeps_messages: true, is_reliable: false, is_acknowledged: false, is_fragmented: false };
/// 16 kB a second: a message of the transfer takes longer than a frame of the call may wait.
const NANOS_A_BYTE: Duration = Duration::from_nanos(62_500);
/// Four messages of the transfer.
const QUEUE: Bytes = Bytes::new(4000);
const STOP: Instant = Instant::from_secs(2);
