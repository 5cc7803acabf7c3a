//! Both ends of a connection over a slow link that loses packets: what must hold whatever the link does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use talkpath_config::{Carry, QuicConfig};
use talkpath_quic::{End, Ends, FlowSetup, SendEvent, Setup};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed, Stream};
use talkpath_wire::{Delivery, Message, Packet, QuicPacket, Refused};

/// One direction of the link: a rate, a queue without end, a delay, and losses.
struct Line {
    nanos_a_byte: u64,
    delay: Duration,
    loss: f64,
    chance: Stream,
    free_at: Instant,
    under_way: VecDeque<(Instant, Box<QuicPacket>, Ecn)>,
}

/// What a run was.
#[derive(Default, Debug)]
struct Seen {
    /// Messages put into packets: when, the flow, and the number.
    left: Vec<(Instant, u32, u64)>,
    expired: BTreeMap<(usize, u64), u32>,
    delivered: Vec<(usize, u64, Bytes)>,
    written: u64,
    refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    kbps: u64,
    delay_ms: u64,
    loss: f64,
}

/// Writes a message of `size` bytes each 20 ms on each of two flows for 4 s, and reads for as long as
/// anything moves, up to a minute.
fn run(carries: [Carry; 2], size: u64, expire: Option<Duration>, path: Path, seed: u64) -> Seen {
    let config = QuicConfig { encryption: false, ..QuicConfig::new(carries[0]) };
    let flows = carries.map(|carry| FlowSetup { carry, priority: 0, receive_buffer: None });
    let setup = Setup { config, flows: flows.into(), path_mtu: Bytes::new(1500), seed: Seed::new(seed) };
    let Ends { client, server, .. } = End::pair(&setup).expect("the configurations are our own");
    let mut ends = [client, server];
    let line = |name: &str| Line {
        nanos_a_byte: 8_000_000 / path.kbps,
        delay: Duration::from_millis(path.delay_ms),
        loss: path.loss,
        chance: Seed::new(seed).stream(name),
        free_at: Instant::ZERO,
        under_way: VecDeque::new(),
    };
    let mut lines = [line("up"), line("down")];
    let mut seen = Seen::default();
    let mut now = Instant::ZERO;
    let mut next_write = Some(Instant::ZERO);
    ends[0].open(now);
    loop {
        for side in 0..2 {
            while lines[side].under_way.front().is_some_and(|packet| packet.0 <= now) {
                let (_, packet, ecn) = lines[side].under_way.pop_front().expect("it is there");
                ends[1 - side].handle_packet(&packet, ecn, now);
            }
            if ends[side].poll_timeout().is_some_and(|deadline| deadline <= now) {
                ends[side].handle_timeout(now);
            }
        }
        if next_write == Some(now) {
            for flow in 0..2 {
                let message = Message { seq: seen.written, size: Bytes::new(size), due: now };
                match ends[0].write(flow, message, expire.map(|expire| now + expire)) {
                    Ok(taken) => assert_eq!(taken, message.size),
                    Err(Refused::NotOpen | Refused::NoRoom) => seen.refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            seen.written += 1;
            next_write = Some(now + Duration::from_millis(20)).filter(|at| *at < Instant::from_secs(4));
        }
        for flow in 0..2 {
            while let Some(delivery) = ends[1].read(flow, Bytes::MAX) {
                match delivery {
                    Delivery::Message { seq, size } => seen.delivered.push((flow, seq, size)),
                    Delivery::Stream { bytes } => seen.delivered.push((flow, u64::MAX, bytes)),
                }
            }
        }
        for (end, line) in ends.iter_mut().zip(&mut lines) {
            while let Some(transmit) = end.poll_transmit(now) {
                let Packet::Quic(packet) = transmit.packet else { panic!("QUIC alone") };
                seen.left.extend(packet.pieces.iter().map(|piece| (now, piece.flow, piece.seq)));
                line.free_at = line.free_at.max(now)
                    + Duration::from_nanos(line.nanos_a_byte) * packet.bytes.len() as u64;
                if !line.chance.chance(line.loss) {
                    line.under_way.push_back((line.free_at + line.delay, packet, transmit.ecn));
                }
            }
        }
        for flow in 0..2 {
            while let Some(event) = ends[0].poll_send_event(flow) {
                if let SendEvent::Expired { seq } = event {
                    *seen.expired.entry((flow, seq)).or_default() += 1;
                }
            }
        }
        let arrivals = lines.iter().filter_map(|line| line.under_way.front().map(|packet| packet.0));
        let next = arrivals.chain(ends.iter().filter_map(End::poll_timeout)).chain(next_write).min();
        match next {
            Some(at) if at < Instant::from_secs(60) => now = at.max(now),
            _ => return seen,
        }
    }
}

proptest! {
    #![proptest_config(talkpath_testing::properties(24))]

    #[test]
    fn no_message_older_than_its_expiry_begins_to_leave_and_none_that_expired_arrives(
        carries in prop_oneof![
            Just([Carry::Datagram, Carry::Datagram]),
            Just([Carry::StreamPerMessage, Carry::StreamPerMessage]),
            Just([Carry::Datagram, Carry::StreamPerMessage]),
        ],
        kbps in 40_u64..400,
        delay_ms in 1_u64..120,
        loss in prop_oneof![Just(0.0), 0.0..0.2],
        expire_ms in 20_u64..400,
        size in 20_u64..1200,
        seed in 0_u64..1000,
    ) {
        let expire = Duration::from_millis(expire_ms);
        let seen = run(carries, size, Some(expire), Path { kbps, delay_ms, loss }, seed);
        let mut first = BTreeSet::new();
        for &(at, flow, seq) in &seen.left {
            // Streams repeat what left in time.
            if !first.insert((flow, seq)) && carries[flow as usize] != Carry::Datagram {
                continue;
            }
            let due = Instant::from_millis(20 * seq);
            prop_assert!(at < due + expire, "message {seq} of flow {flow}, due at {due}, left at {at}");
        }
        prop_assert!(seen.expired.values().all(|times| *times == 1), "{:?}", seen.expired);
        prop_assert!(seen.delivered.iter().all(|row| row.2 == Bytes::new(size)));
        let both = seen.delivered.iter().find(|row| seen.expired.contains_key(&(row.0, row.1)));
        prop_assert!(both.is_none(), "expired and delivered: {both:?}");
    }

    #[test]
    fn streams_deliver_everything_and_datagrams_each_at_most_once(
        kbps in 200_u64..2000,
        delay_ms in 1_u64..100,
        loss in 0.0..0.15,
        seed in 0_u64..1000,
    ) {
        let carries = [Carry::Datagram, Carry::StreamPerMessage];
        let seen = run(carries, 160, None, Path { kbps, delay_ms, loss }, seed);
        let of = |flow| {
            let mut numbers: Vec<_> =
                seen.delivered.iter().filter(|row| row.0 == flow).map(|row| row.1).collect();
            numbers.sort_unstable();
            numbers
        };
        let refused = seen.refused / 2;
        prop_assert_eq!(of(1), (refused..seen.written).collect::<Vec<_>>());
        let datagrams = of(0);
        prop_assert!(datagrams.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(datagrams.len() as u64 * 10 > (seen.written - refused) * 6, "{} came", datagrams.len());
    }
}

#[test]
fn messages_expire_where_the_link_is_too_slow_and_the_others_arrive() {
    let path = Path { kbps: 100, delay_ms: 20, loss: 0.0 };
    for carry in [Carry::Datagram, Carry::StreamPerMessage] {
        let seen = run([carry, carry], 300, Some(Duration::from_millis(200)), path, 1);
        let taken = 2 * seen.written - seen.refused;
        assert!(seen.expired.len() > 30, "{carry:?}: {} expired", seen.expired.len());
        assert!(seen.delivered.len() > 20, "{carry:?}: {} delivered", seen.delivered.len());
        let ended = seen.expired.len() + seen.delivered.len();
        assert_eq!(ended as u64, taken, "{carry:?}");
    }
}

#[test]
fn one_stream_gives_its_bytes_in_order_and_without_gaps() {
    let path = Path { kbps: 500, delay_ms: 30, loss: 0.05 };
    let seen = run([Carry::Stream, Carry::Stream], 160, None, path, 7);
    let bytes: u64 = seen.delivered.iter().filter(|row| row.0 == 0).map(|row| row.2.get()).sum();
    assert_eq!(bytes, 160 * (seen.written - seen.refused / 2));
}
