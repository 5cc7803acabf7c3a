//! Rules of the RFCs that an exchange script cannot tell: what no segment carries, segments that arrive
//! together, options that are missing, and hours of silence. Each is a row of docs/models/rules.

use talkpath_config::{NagleKind, Role, Stack, TcpConfig};
use talkpath_transport::tcp::Tcp;
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed, SeqNum};
use talkpath_wire::{Flags, Message, Packet, Segment, SegmentOptions, Transport};

/// The far end's SYN options, as a host sends them that knows them all.
fn offer() -> SegmentOptions {
    SegmentOptions::default()
        .with_mss(1460)
        .with_window_scale(Some(0))
        .with_sack_permitted(true)
        .with_timestamps(Some((1, 0)))
}

/// A connection between a far end, whose SYN has `options`, and our passive end, open since time 0.
fn accepted(config: &TcpConfig, options: SegmentOptions) -> Tcp {
    let mut tcp = Tcp::new(config, Role::Passive, Bytes::new(1500), Seed::new(1), None)
        .with_initial_sequence(SeqNum::new(0));
    let now = Instant::ZERO;
    tcp.open(now);
    let syn = Segment { flags: Flags::SYN, window: u16::MAX, options, ..Segment::default() };
    tcp.handle_packet(&Packet::Tcp(syn), Ecn::NotEct, now);
    let answer = left(&mut tcp, now);
    assert!(matches!(&answer[..], [syn] if syn.flags == Flags::SYN.with(Flags::ACK)));
    arrive(&mut tcp, segment(1, 0), now);
    assert!(tcp.is_open() && left(&mut tcp, now).is_empty());
    tcp
}

fn rfc() -> TcpConfig {
    TcpConfig { nagle: NagleKind::Off, ..TcpConfig::preset(Stack::Rfc, false) }
}

/// Data of the far end from `start` on, which acknowledges our SYN.
fn segment(start: u32, payload: u32) -> Segment {
    let options = SegmentOptions::default().with_timestamps(Some((1, 0)));
    let (seq, ack) = (SeqNum::new(start), SeqNum::new(1));
    Segment { seq, ack, flags: Flags::ACK, window: u16::MAX, payload, options, ..Segment::default() }
}

fn arrive(tcp: &mut Tcp, segment: Segment, now: Instant) {
    tcp.handle_packet(&Packet::Tcp(segment), Ecn::NotEct, now);
}

fn left(tcp: &mut Tcp, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| tcp.poll_transmit(now))
        .map(|transmit| match transmit.packet {
            Packet::Tcp(segment) => segment,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn write(tcp: &mut Tcp, size: u64, now: Instant) {
    tcp.handle_message(Message { seq: 0, size: Bytes::new(size), due: now }, now).expect("there is room");
}

/// Lets the next timer fire. Returns when it did.
fn fire(tcp: &mut Tcp) -> Instant {
    let deadline = tcp.poll_timeout().expect("a timer runs");
    tcp.handle_timeout(deadline);
    deadline
}

/// RFC 9293 §3.7.1 (MUST-65), RFC 2018 §2, RFC 7323 §2.2 and §3.2.
#[test]
fn after_the_handshake_segments_carry_timestamps_and_no_option_of_a_syn() {
    let mut tcp = accepted(&rfc(), offer());
    let now = Instant::ZERO;
    write(&mut tcp, 3000, now);
    arrive(&mut tcp, segment(1001, 1000), now);
    let mut sent = left(&mut tcp, now);
    let later = fire(&mut tcp);
    sent.extend(left(&mut tcp, later));
    tcp.shutdown(later);
    sent.extend(left(&mut tcp, later));
    assert!(sent.len() >= 4, "data, an acknowledgement and a repetition: {sent:?}");
    for segment in sent {
        assert!(segment.timestamps().is_some(), "{segment:?}");
        assert_eq!((segment.mss(), segment.window_scale(), segment.sack_permitted()), (None, None, false));
    }
}

/// RFC 9293 §3.10.7.4 (MUST-58, MUST-59).
#[test]
fn segments_that_arrive_together_have_one_acknowledgement() {
    let (mut tcp, now) = (accepted(&rfc(), offer()), Instant::from_millis(1));
    for start in [1, 1449, 2897, 4345] {
        arrive(&mut tcp, segment(start, 1448), now);
    }
    let mut sent = left(&mut tcp, now);
    if sent.is_empty() {
        let end = fire(&mut tcp);
        assert_eq!(end, now, "the application did not read");
        sent = left(&mut tcp, now);
    }
    assert!(matches!(&sent[..], [ack] if ack.ack == SeqNum::new(5793) && ack.payload == 0), "{sent:?}");
}

/// RFC 2018 §4.
#[test]
fn nothing_is_sacked_to_an_end_that_did_not_permit_it() {
    for permitted in [true, false] {
        let (mut tcp, now) = (accepted(&rfc(), offer().with_sack_permitted(permitted)), Instant::ZERO);
        arrive(&mut tcp, segment(1001, 1000), now);
        let sent = left(&mut tcp, now);
        assert!(matches!(&sent[..], [ack] if ack.sack_count == u8::from(permitted)), "{sent:?}");
    }
}

/// RFC 7323 §3.2.
#[test]
fn a_segment_without_its_timestamp_does_not_end_the_connection() {
    let (mut tcp, now) = (accepted(&rfc(), offer()), Instant::ZERO);
    arrive(&mut tcp, Segment { options: SegmentOptions::default(), ..segment(1, 100) }, now);
    assert!(tcp.is_open() && left(&mut tcp, now).iter().all(|sent| !sent.flags.contains(Flags::RST)));
}

/// RFC 9293 §3.8.6.1 (MUST-36, MUST-37, SHLD-29, SHLD-30): each probe of a closed window is answered, for
/// half a day.
#[test]
fn a_closed_window_is_probed_for_hours_and_the_connection_stays_open() {
    let (mut tcp, mut now) = (accepted(&rfc(), offer()), Instant::ZERO);
    let closed = |ack| Segment { ack: SeqNum::new(ack), window: 0, ..segment(1, 0) };
    arrive(&mut tcp, closed(1), now);
    write(&mut tcp, 1000, now);
    assert!(left(&mut tcp, now).is_empty());
    let mut waits = Vec::new();
    while now < Instant::ZERO + Duration::from_secs(12 * 3600) {
        let at = fire(&mut tcp);
        waits.push(at.since(now));
        now = at;
        assert_eq!(left(&mut tcp, now).len(), 1);
        arrive(&mut tcp, closed(1), now);
        assert!(left(&mut tcp, now).is_empty());
    }
    assert_eq!(waits[..4], [1, 2, 4, 8].map(Duration::from_secs));
    assert!(tcp.is_open() && waits[10..].iter().all(|&wait| wait == Duration::from_secs(60)));
}
