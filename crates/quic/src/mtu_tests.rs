//! A connection opens with packets of 1200 B and searches for what the path carries (RFC 9000 §14.1, §14.3;
//! RFC 8899), also over a path that drops larger packets and says nothing.

use talkpath_config::QuicConfig;
use talkpath_units::Seed;

use super::*;
use crate::ends::Ends;
use crate::setup::FlowSetup;

/// What a run saw: what the client wrote, by number.
#[derive(Debug, Default)]
struct Seen {
    /// Sizes of the UDP payloads that each end sent, in their order.
    packets: [Vec<usize>; 2],
    /// When the first message was taken.
    opened: Option<Instant>,
    arrived: Vec<u64>,
    given_back: Vec<u64>,
    refused: Vec<u64>,
    /// The engine's packet size and the largest message that is taken, at the end.
    found: (u16, u64),
}

/// The client writes messages of these sizes in turn, one each 20 ms for 6 s, over 20 ms each way. Its host
/// expects a path of `expected`, and the path drops silently what is larger than `path`.
fn run(carry: Carry, sizes: &[u64], expected: u64, path: usize) -> Seen {
    let setup = Setup {
        config: QuicConfig { encryption: false, ..QuicConfig::new(carry) },
        flows: vec![FlowSetup { carry, priority: 0, receive_buffer: None }],
        path_mtu: Bytes::new(expected),
        seed: Seed::new(1),
    };
    let Ends { client, server, .. } = End::pair(&setup).expect("the configurations are our own");
    let mut ends = [client, server];
    let mut lines: [VecDeque<(Instant, Box<QuicPacket>, Ecn)>; 2] = Default::default();
    let mut seen = Seen::default();
    let (mut now, mut due, mut seq) = (Instant::ZERO, Instant::ZERO, 0);
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
        if due <= now {
            let size = Bytes::new(sizes[(seq % sizes.len() as u64) as usize]);
            if ends[0].is_open() {
                seen.opened.get_or_insert(now);
                match ends[0].write(0, Message { seq, size, due: now }, None) {
                    Ok(taken) => assert_eq!(taken, size),
                    Err(Refused::TooLarge { .. }) => seen.refused.push(seq),
                    Err(other) => panic!("{other}"),
                }
                seq += 1;
            }
            due = if seq < 300 { now + Duration::from_millis(20) } else { Instant::MAX };
        }
        while let Some(delivery) = ends[1].read(0, Bytes::MAX) {
            if let Delivery::Message { seq, .. } = delivery {
                seen.arrived.push(seq);
            }
        }
        for side in 0..2 {
            while let Some(Transmit { packet: Packet::Quic(packet), ecn, .. }) = ends[side].poll_transmit(now)
            {
                seen.packets[side].push(packet.bytes.len());
                if packet.bytes.len() + 28 <= path {
                    lines[side].push_back((now + Duration::from_millis(20), packet, ecn));
                }
            }
        }
        while let Some(event) = ends[0].poll_send_event(0) {
            if let SendEvent::GivenBack { seq } = event {
                seen.given_back.push(seq);
            }
        }
        let arrivals = lines.iter().filter_map(|line| line.front().map(|packet| packet.0));
        let timeouts = ends.iter().filter_map(End::poll_timeout);
        now = arrivals.chain(timeouts).chain([due]).min().unwrap_or(Instant::MAX);
    }
    let mtu = ends[0].connection.as_ref().map_or(0, |(_, connection)| connection.current_mtu());
    seen.found = (mtu, ends[0].largest_message(0).map_or(0, Bytes::get));
    seen
}

#[test]
fn a_call_opens_at_once_over_every_path_that_carries_1200_octets_and_says_nothing_of_larger_packets() {
    for carry in [Carry::Datagram, Carry::StreamPerMessage] {
        for path in [1228, 1229, 1240, 1280, 1300, 1420, 1480, 1492, 1500] {
            for expected in [path as u64, 1500] {
                let seen = run(carry, &[160], expected, path);
                let case = format!("{carry:?} over {path}, expected {expected}");
                // A round trip of the handshake, and a frame's clock.
                assert!(
                    seen.opened.is_some_and(|at| at <= Instant::from_millis(60)),
                    "{case}: {:?}",
                    seen.opened
                );
                assert_eq!(seen.arrived.len(), 300, "{case}");
                for packets in &seen.packets {
                    let first = packets.iter().position(|size| *size > 1200).unwrap_or(packets.len());
                    assert!(first >= 2, "{case}: the handshake's packets have 1200 B at most");
                    let probes = packets.iter().filter(|size| **size > 1200).count();
                    // Four sizes, three tries each.
                    assert!(probes <= 12, "{case}: {probes} probes");
                }
                let size = path - 28;
                let found = usize::from(seen.found.0);
                // What is not known beforehand is found to within two steps of the engine's search.
                let short = if expected == path as u64 { 0 } else { 2 * 20 };
                assert!(
                    (size.min(1452).saturating_sub(short).max(1200)..=size).contains(&found),
                    "{case}: {found}"
                );
            }
        }
    }
}

#[test]
fn messages_without_room_in_1200_octets_wait_until_the_search_is_over_and_smaller_ones_pass_them() {
    let seen = run(Carry::Datagram, &[1400, 160, 1162, 1163], 1500, 1500);
    assert_eq!((seen.found, seen.given_back.len()), ((1452, 1414), 0));
    let mut arrived = seen.arrived.clone();
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(0..300), "all of them arrive");
    assert_eq!(seen.arrived[..2], [1, 2], "what has room passes");
    let first_large = seen.arrived.iter().position(|seq| *seq == 0).unwrap();
    assert!((5..60).contains(&first_large), "some round trips later: {first_large}");
}

#[test]
fn what_the_search_finds_no_room_for_is_given_back_and_refused_from_then_on() {
    let sizes = [160, 1300];
    let seen = run(Carry::Datagram, &sizes, 1500, 1500);
    assert_eq!((seen.arrived.len(), seen.given_back.len(), seen.refused.len()), (300, 0, 0));
    // At most 1252 B of payload, which hold a message of 1214 B.
    let seen = run(Carry::Datagram, &sizes, 1500, 1280);
    assert!((1162..=1214).contains(&seen.found.1), "{:?}", seen.found);
    assert!(seen.given_back.len() > 5 && seen.refused.len() > 50, "{seen:?}");
    let gone: Vec<u64> = seen.given_back.iter().chain(&seen.refused).copied().collect();
    assert!(gone.into_iter().eq((1..300).step_by(2)), "each large one is one of the two: {seen:?}");
    let mut arrived = seen.arrived.clone();
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq((0..300).step_by(2)), "the small ones arrive: {seen:?}");
}
