//! A path that marks packets CE (RFC 3168), as broken boxes mark all of them: no packet answers one that
//! elicits no acknowledgement (RFC 9000 §13.2.1), and a path on which no first packet arrives unmarked fails
//! ECN validation (RFC 9000 §13.4.2, §A.4).

use std::collections::VecDeque;

use serde_json::Value;
use talkpath_config::{Carry, QuicConfig};
use talkpath_quic::{End, Ends, FlowSetup, QlogEvent, Setup};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed};
use talkpath_wire::{Delivery, Message, Packet, QuicPacket};

/// What an end sent and received.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// UDP datagrams that it sent, and how many of them with ECT(0).
    sent: u64,
    sent_ect: u64,
    /// QUIC packets that it sent of ACK frames alone.
    ack_only: u64,
    /// QUIC packets that it received and that elicit an acknowledgement (RFC 9000 §13.2).
    eliciting: u64,
    /// Messages that it read.
    read: u64,
}

/// A call of 250 frames with an echo, over 7 ms each way. The path marks this share of the packets up and
/// down, whatever they came with.
fn call(carry: Carry, marked: [f64; 2]) -> [Counts; 2] {
    let setup = Setup {
        config: QuicConfig { encryption: false, ..QuicConfig::new(carry) },
        flows: vec![FlowSetup { carry, priority: 0, receive_buffer: None }],
        path_mtu: Bytes::new(1500),
        seed: Seed::new(1),
    };
    let Ends { client, server, .. } = End::pair(&setup).expect("the configurations are our own");
    let mut ends = [client, server];
    ends.iter_mut().for_each(|end| end.keep_qlog(usize::MAX));
    let mut chance = ["up", "down"].map(|name| Seed::new(1).stream(name));
    let mut lines: [VecDeque<(Instant, Box<QuicPacket>, Ecn)>; 2] = Default::default();
    let mut counts = [Counts::default(); 2];
    let message = |seq| Message { seq, size: FRAME, due: Instant::ZERO };
    let (mut now, mut due, mut seq) = (Instant::ZERO, Some(Instant::from_millis(100)), 0);
    ends[0].open(now);
    while now < Instant::from_secs(8) {
        for side in 0..2 {
            while let Some((_, packet, ecn)) = lines[side].pop_front_if(|packet| packet.0 <= now) {
                ends[1 - side].handle_packet(&packet, ecn, now);
            }
            if ends[side].poll_timeout().is_some_and(|deadline| deadline <= now) {
                ends[side].handle_timeout(now);
            }
        }
        if due == Some(now) {
            ends[0].write(0, message(seq), None).expect("there is room");
            seq += 1;
            due = Some(now + Duration::from_millis(20)).filter(|_| seq < FRAMES);
        }
        for side in 0..2 {
            while let Some(delivery) = ends[side].read(0, FRAME) {
                let bytes = match delivery {
                    Delivery::Message { size, .. } => size,
                    Delivery::Stream { bytes } => bytes,
                };
                assert_eq!(bytes, FRAME, "frames are read as they were written");
                if side == 1 {
                    ends[1].write(0, message(counts[1].read), None).expect("there is room");
                }
                counts[side].read += 1;
            }
            while let Some(transmit) = ends[side].poll_transmit(now) {
                let Packet::Quic(packet) = transmit.packet else { panic!("QUIC alone") };
                counts[side].sent += 1;
                counts[side].sent_ect += u64::from(transmit.ecn == Ecn::Ect0);
                let ecn = if chance[side].chance(marked[side]) { Ecn::Ce } else { transmit.ecn };
                lines[side].push_back((now + Duration::from_millis(7), packet, ecn));
            }
        }
        let arrivals = lines.iter().filter_map(|line| line.front().map(|packet| packet.0));
        now = arrivals
            .chain(ends.iter().filter_map(End::poll_timeout))
            .chain(due)
            .min()
            .unwrap_or(Instant::MAX);
    }
    for (end, counts) in ends.iter_mut().zip(&mut counts) {
        for event in end.take_qlog().expect("it is kept").1 {
            count_packet(&event, counts);
        }
    }
    counts
}

fn count_packet(event: &QlogEvent, counts: &mut Counts) {
    let mut record = Vec::new();
    event.write("", &mut record).expect("it is written to memory");
    let record: Value = serde_json::from_slice(&record[1..]).expect("a record of JSON");
    let Some(frames) = record["data"]["frames"].as_array() else { return };
    let kinds: Vec<_> = frames.iter().map(|frame| frame["frame_type"].as_str().unwrap_or_default()).collect();
    let elicits = kinds.iter().any(|kind| !["ack", "padding", "connection_close"].contains(kind));
    match record["name"].as_str() {
        Some("quic:packet_received") => counts.eliciting += u64::from(elicits),
        Some("quic:packet_sent") => counts.ack_only += u64::from(!elicits && kinds.contains(&"ack")),
        _ => {}
    }
}

#[test]
fn an_end_sends_at_most_one_packet_of_acks_alone_for_each_that_elicits_one_however_many_are_marked() {
    for carry in Carry::ALL {
        let plain = call(carry, [0.0, 0.0]);
        for up in [0.0, 0.5, 0.9, 1.0] {
            for down in [0.0, 0.5, 0.9, 1.0] {
                let counts = call(carry, [up, down]);
                for (end, plain) in counts.iter().zip(&plain) {
                    let case = format!("{carry:?}, {up} up, {down} down: {counts:?}, unmarked {plain:?}");
                    assert!(end.ack_only <= end.eliciting, "{case}");
                    assert_eq!(end.read, FRAMES, "{case}");
                    // A marked frame is acknowledged at once (RFC 9000 §13.2.1), and the others with the next
                    // frame: that is one packet more for each frame at most.
                    assert!(end.sent <= plain.sent + FRAMES, "{case}");
                }
            }
        }
    }
}

#[test]
fn a_path_that_marks_all_of_the_first_packets_fails_ecn_validation_and_one_that_marks_most_does_not() {
    for (marked, is_capable) in [(0.0, true), (0.5, true), (1.0, false)] {
        for end in call(Carry::Datagram, [marked, marked]) {
            if is_capable {
                assert_eq!(end.sent_ect, end.sent, "{marked}: {end:?}");
            } else {
                // Ten that are reported as marked, of which some share a datagram, and those that left in
                // the meantime.
                assert!((5..30).contains(&end.sent_ect), "{end:?}");
            }
        }
    }
}

/// G.711 in frames of 20 ms (RFC 3551 §4.5.14).
const FRAME: Bytes = Bytes::new(160);
const FRAMES: u64 = 250;
