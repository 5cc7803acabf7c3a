use talkpath_config::{TransportConfig, UdpConfig};
use talkpath_flow::Side;
use talkpath_measure::{Fate, ReadMessages};
use talkpath_model::{EchoWrite, MessageSize, WorkloadConfig};
use talkpath_units::Rate;

use super::*;
use crate::end::fixtures::{UDP, echoing, tcp};
use crate::log::{Chunk, DropPlace, HostDrop, SentRow};
use crate::wire::FRAMED;

fn flow() -> Flow {
    let transport = TransportConfig::Udp(UdpConfig { socket_buffer: Bytes::new(1), ..UdpConfig::LINUX });
    Flow { echo: Some(EchoWrite::PerMessage), ..Flow::new("call", "udp", transport, WorkloadConfig::G711) }
}

fn spec() -> FlowSpec {
    echoing(UDP, WorkloadConfig::G711)
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Five messages, the echoes of 0, 1 and 3 back after 50 ms.
fn sender() -> EndLog {
    let mut log = EndLog::new(Side::Near, true, ReadMessages::Whole);
    let tap = &mut log.taps.forward;
    for seq in 0..5 {
        tap.on_due(seq, Bytes::new(160), ms(20 * seq));
        tap.on_sent(seq, ms(20 * seq));
    }
    for seq in [0, 1, 3] {
        log.taps.echo.as_mut().unwrap().on_received(seq, ms(20 * seq + 50));
    }
    log
}

/// What a far end reports, whose clock is 1 ms behind.
fn far(rows: &Chunk, bound: u64) -> EndLog {
    EndLog::from_chunk(rows, Side::Far, &spec(), bound, &|at| Instant::from_nanos(at + 1_000_000))
}

fn join(sender: &EndLog, receiver: Option<&Chunk>, end: RunEnd) -> FlowRecord {
    let bound = sender.taps.forward.rows().count() as u64;
    let receiver = receiver.map(|rows| far(rows, bound));
    flow_record(&flow(), &spec(), Some(sender), receiver.as_ref(), &(ms(0)..ms(100)), end, true)
}

/// A message that its end sent.
fn sent_row(seq: u64, size: u32, due_ns: u64, sent_ns: u64) -> SentRow {
    SentRow { seq, size, due_ns, sent_ns: Some(sent_ns), not_taken: None }
}

#[test]
fn both_logs_give_both_legs_on_the_senders_clock() {
    let mut receiver = Chunk::default();
    for seq in [0, 1, 3, 3] {
        let at = ms(20 * seq + 20).as_nanos();
        receiver.arrivals.push((seq, at).into());
        receiver.sent.push(sent_row(seq, 160, at, at + 1_000_000));
    }
    let record = join(&sender(), Some(&receiver), RunEnd::Drained);
    let fates: Vec<_> = record.forward.messages.iter().map(|row| row.fate).collect();
    use Fate::{Delivered, Missing};
    assert_eq!(fates, [Delivered, Delivered, Missing, Delivered, Missing]);
    assert_eq!(record.forward.messages[0].received, Some(ms(21)), "20 ms on a clock 1 ms behind");
    assert_eq!(record.forward.messages[3].copies, 2);
    let echo = record.echo.unwrap();
    assert_eq!(echo.messages.iter().map(|row| row.seq).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(echo.messages[2].received, Some(ms(110)));
}

#[test]
fn without_the_far_log_an_echo_still_knows_its_round_trips() {
    let record = join(&sender(), None, RunEnd::Cut);
    let fates: Vec<_> = record.forward.messages.iter().map(|row| row.fate).collect();
    use Fate::{Delivered, Missing, Unfinished};
    assert_eq!(
        fates,
        [Delivered, Delivered, Missing, Delivered, Unfinished],
        "the last may still be on its way"
    );
    assert_eq!(record.forward.messages[0].received, None, "nobody knows when");
    let echo = record.echo.unwrap();
    assert_eq!(echo.messages.len(), 3);
    assert_eq!(echo.messages[2].received, Some(ms(110)));
}

#[test]
fn what_arrived_is_unknown_without_the_log_of_an_end_that_knew_it() {
    let receiver = Chunk { arrivals: vec![(0, ms(20).as_nanos()).into()], ..Chunk::default() };
    assert!(!join(&sender(), Some(&receiver), RunEnd::Drained).forward.arrivals_unknown);
    let alone = join(&sender(), None, RunEnd::Cut);
    assert!(alone.forward.arrivals_unknown && !alone.echo.unwrap().arrivals_unknown);
    // Who only receives does not know which datagrams there were.
    let receiver = far(&receiver, 5);
    let spec = FlowSpec { echo_per_read: None, ..spec() };
    let window = &(ms(0)..ms(100));
    let record = flow_record(&flow(), &spec, None, Some(&receiver), window, RunEnd::Cut, true);
    assert!(record.forward.arrivals_unknown);
}

#[test]
fn an_echo_that_came_before_its_message_was_sent_is_none_and_is_counted() {
    let receiver = || {
        let mut receiver = Chunk::default();
        for seq in 0..5 {
            let at = ms(20 * seq + 5).as_nanos();
            receiver.arrivals.push((seq, at).into());
            receiver.sent.push(sent_row(seq, 160, at, at));
        }
        receiver
    };
    let honest = join(&sender(), Some(&receiver()), RunEnd::Drained);
    assert_eq!((honest.counters.early_echoes, early_echo_warnings(&honest).len()), (0, 0));
    let mut sender = sender();
    // The last message was sent at 80 ms.
    sender.taps.echo.as_mut().unwrap().on_received(4, ms(21));
    let record = join(&sender, Some(&receiver()), RunEnd::Drained);
    assert_eq!(record.counters.early_echoes, 1);
    assert!(early_echo_warnings(&record)[0].contains("an echo came before its message was sent"));
    assert_eq!(record.echo, honest.echo);
}

#[test]
fn a_far_log_that_makes_no_sense_does_no_harm() {
    let mut sender = sender();
    sender.taps.forward.on_due(5, Bytes::new(160), ms(100));
    sender.taps.forward.on_refused(5);
    let mut receiver = Chunk::default();
    for seq in [u64::MAX, 1 << 40, 7, 5, 2] {
        receiver.arrivals.push((seq, u64::MAX - 2_000_000).into());
        receiver.sent.push(sent_row(seq, u32::MAX, 0, 0));
        receiver.wires.push((seq, 0).into());
        receiver.drops.push(HostDrop { seq, place: DropPlace::Inbox });
    }
    let record = join(&sender, Some(&receiver), RunEnd::Drained);
    assert_eq!(record.forward.arrivals, [2]);
    assert_eq!(record.forward.messages[5].fate, Fate::Refused);
    assert_eq!(record.forward.messages.len(), 6);
}

/// A flow over TCP whose messages have sizes of their own: the two that were due before its connection was
/// open have numbers, and no byte of the stream.
#[test]
fn logs_of_a_stream_with_frames_are_joined_by_the_numbers_in_them() {
    let size = MessageSize::Uniform { min: Bytes::new(8), max: Bytes::new(1000) };
    let spec = echoing(tcp("reno"), WorkloadConfig::Cbr { rate: Rate::from_bps(100_000), size });
    let sizes = [100, 200, 300, 8, 500, 600];
    let mut sender = EndLog::new(Side::Near, true, FRAMED);
    for (seq, size) in (0..).zip(sizes) {
        let tap = &mut sender.taps.forward;
        tap.on_due(seq, Bytes::new(size), ms(20 * seq));
        match seq {
            0 | 1 => tap.on_not_open(seq),
            _ => tap.on_sent_stream(seq, ms(20 * seq)),
        }
    }
    let echo = sender.taps.echo.as_mut().unwrap();
    echo.on_frame(2, Bytes::new(300));
    echo.on_frame(3, Bytes::new(8));
    echo.on_read(Bytes::new(308), ms(110));
    // Message 5 came in part.
    let mut far = Chunk::default();
    for (seq, size, at_ms) in [(2, 300, 60), (3, 8, 80), (4, 500, 100)] {
        let at = ms(at_ms).as_nanos();
        far.arrivals.push((seq, at).into());
        far.reads.push((at, size).into());
        far.sent.push(sent_row(seq, size as u32, at, at));
    }
    far.reads.push((ms(101).as_nanos(), 50).into());
    let receiver = EndLog::from_chunk(&far, Side::Far, &spec, 6, &Instant::from_nanos);
    let window = &(ms(0)..ms(200));
    let record = flow_record(&flow(), &spec, Some(&sender), Some(&receiver), window, RunEnd::Drained, true);
    let fates: Vec<_> = record.forward.messages.iter().map(|row| row.fate).collect();
    use Fate::{Delivered, NotOpen, Unfinished};
    assert_eq!(fates, [NotOpen, NotOpen, Delivered, Delivered, Delivered, Unfinished]);
    assert_eq!(record.forward.messages[4].received, Some(ms(100)));
    assert_eq!((record.forward.arrivals.as_slice(), record.forward.reads.len()), (&[2, 3, 4][..], 4));
    let echo = record.echo.unwrap();
    let back: Vec<_> = echo.messages.iter().map(|row| (row.seq, row.size.get(), row.fate)).collect();
    assert_eq!(back, [(2, 300, Delivered), (3, 8, Delivered), (4, 500, Unfinished)]);
    // Without the far log the echoes' numbers say what arrived.
    let record = flow_record(&flow(), &spec, Some(&sender), None, window, RunEnd::Cut, true);
    let fates: Vec<_> = record.forward.messages.iter().map(|row| row.fate).collect();
    assert_eq!(fates, [NotOpen, NotOpen, Delivered, Delivered, Unfinished, Unfinished]);
}

#[test]
fn a_far_end_names_no_congestion_control_that_could_not_be_one() {
    for (said, shown) in [
        ("bbr", Some("bbr")),
        ("=HYPERLINK(\"http://x\",1)", None),
        ("\u{1b}[2J", None),
        ("\u{202e}", None),
        ("", None),
        ("a name of more than fifteen", None),
    ] {
        let mut far = EndLog::new(Side::Far, true, ReadMessages::Whole);
        far.totals.cc = Some(said.to_owned());
        let (spec, run_end) = (spec(), RunEnd::Drained);
        let logs = FlowLogs { spec: &spec, sender: Some(&far), receiver: None, run_end };
        assert_eq!(info(&flow(), logs, true).cc.as_deref(), shown, "{said:?}");
    }
}
