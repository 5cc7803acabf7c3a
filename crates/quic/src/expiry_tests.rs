//! No message older than its expiry is put into a packet, nor any new byte of it, whatever the link does and
//! however many flows share the connection.

use std::collections::BTreeMap;

use proptest::prelude::*;
use talkpath_config::QuicConfig;
use talkpath_units::{Seed, Stream};

use super::*;
use crate::ends::Ends;
use crate::setup::FlowSetup;

/// What a flow writes: a message of `size` bytes every `gap_ms`, which is of no use `expire_ms` after it was
/// due.
#[derive(Clone, Copy, Debug)]
struct Load {
    carry: Carry,
    priority: u8,
    size: u64,
    gap_ms: u64,
    expire_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    kbps: u64,
    delay_ms: u64,
    loss: f64,
}

/// What a run saw.
#[derive(Debug, Default)]
struct Seen {
    /// By flow: messages that left whole or in part, that expired, and that arrived.
    counts: Vec<[u64; 3]>,
    /// New bytes of a message left when it had expired: when, its flow, and its number.
    late: Vec<(Instant, usize, u64)>,
}

/// One direction of the link: a rate, a queue without end, a delay, and losses.
struct Line {
    path: Path,
    chance: Stream,
    free_at: Instant,
    under_way: VecDeque<(Instant, Box<QuicPacket>, Ecn)>,
}

impl Line {
    fn new(path: Path, chance: Stream) -> Self {
        Self { path, chance, free_at: Instant::ZERO, under_way: VecDeque::new() }
    }

    fn take(&mut self, packet: Box<QuicPacket>, ecn: Ecn, now: Instant) {
        let nanos = packet.bytes.len() as u64 * 8_000_000 / self.path.kbps;
        self.free_at = self.free_at.max(now) + Duration::from_nanos(nanos);
        if !self.chance.chance(self.path.loss) {
            let arrives = self.free_at + Duration::from_millis(self.path.delay_ms);
            self.under_way.push_back((arrives, packet, ecn));
        }
    }
}

/// Both ends for two seconds of writing, and a second after it.
fn run(loads: &[Load], zero_rtt: bool, path: Path, seed: u64) -> Seen {
    let flow = |load: &Load| FlowSetup { carry: load.carry, priority: load.priority, receive_buffer: None };
    let setup = Setup {
        config: QuicConfig { encryption: false, zero_rtt, ..QuicConfig::new(loads[0].carry) },
        flows: loads.iter().map(flow).collect(),
        path_mtu: Bytes::new(1500),
        seed: Seed::new(seed),
    };
    let Ends { client, server, .. } = End::pair(&setup).expect("the configurations are our own");
    let mut ends = [client, server];
    let mut lines = ["up", "down"].map(|name| Line::new(path, Seed::new(seed).stream(name)));
    let mut seen = Seen { counts: vec![[0; 3]; loads.len()], late: Vec::new() };
    let mut left = BTreeMap::new();
    let mut next_seq = vec![0; loads.len()];
    let due = |flow: usize, seq: u64| Instant::from_millis(loads[flow].gap_ms * seq);
    let mut now = Instant::ZERO;
    ends[0].open(now);
    while now < Instant::from_secs(3) {
        for side in 0..2 {
            while let Some((_, packet, ecn)) = lines[side].under_way.pop_front_if(|packet| packet.0 <= now) {
                ends[1 - side].handle_packet(&packet, ecn, now);
            }
            if ends[side].poll_timeout().is_some_and(|deadline| deadline <= now) {
                ends[side].handle_timeout(now);
            }
        }
        for (flow, load) in loads.iter().enumerate() {
            if due(flow, next_seq[flow]) == now && now < Instant::from_secs(2) {
                let message = Message { seq: next_seq[flow], size: Bytes::new(load.size), due: now };
                // What finds no room, or no connection yet, is another layer's.
                let _taken = ends[0].write(flow, message, Some(now + Duration::from_millis(load.expire_ms)));
                next_seq[flow] += 1;
            }
            while ends[1].read(flow, Bytes::MAX).is_some() {
                seen.counts[flow][2] += 1;
            }
        }
        for side in 0..2 {
            while let Some(Transmit { packet: Packet::Quic(packet), ecn, .. }) = ends[side].poll_transmit(now)
            {
                if side == 0 {
                    for (flow, seq) in fresh(&ends[0].frames, &packet.pieces, &mut left) {
                        if now >= due(flow, seq) + Duration::from_millis(loads[flow].expire_ms) {
                            seen.late.push((now, flow, seq));
                        }
                    }
                }
                lines[side].take(packet, ecn, now);
            }
        }
        for (flow, counts) in seen.counts.iter_mut().enumerate() {
            while let Some(event) = ends[0].poll_send_event(flow) {
                counts[usize::from(matches!(event, SendEvent::Expired { .. }))] += 1;
            }
        }
        let arrivals = lines.iter().filter_map(|line| line.under_way.front().map(|packet| packet.0));
        let timeouts = ends.iter().filter_map(End::poll_timeout);
        let writes = (0..loads.len()).map(|flow| due(flow, next_seq[flow]));
        let next = arrivals.chain(timeouts).chain(writes).filter(|at| *at > now).min();
        now = next.unwrap_or(Instant::MAX);
    }
    seen
}

/// The messages of which a packet with these frames carries bytes that did not leave before, by flow and
/// number. `left` is where of each message that is.
fn fresh(
    frames: &[DataFrame],
    pieces: &[QuicPiece],
    left: &mut BTreeMap<(usize, u64), u64>,
) -> Vec<(usize, u64)> {
    let mut datagrams = pieces.iter().filter(|piece| piece.stream.is_none());
    let mut all = Vec::new();
    for frame in frames {
        let (piece, end) = match frame {
            DataFrame::Datagram { size } => (datagrams.next(), *size),
            DataFrame::Stream { id, end, .. } => {
                (pieces.iter().find(|piece| piece.stream == Some(*id)), *end)
            }
        };
        let Some(piece) = piece else { continue };
        let message = (piece.flow as usize, piece.seq);
        let before = left.entry(message).or_default();
        if end > *before {
            *before = end;
            all.push(message);
        }
    }
    all
}

fn any_load() -> impl Strategy<Value = Load> {
    let carried = prop_oneof![
        // Some have no room in a 0-RTT packet.
        (Just(Carry::Datagram), prop_oneof![20_u64..1400, 1380_u64..1415]),
        // Of several packets, so that a message can expire when a part of it has left.
        (Just(Carry::StreamPerMessage), 20_u64..6000),
    ];
    (carried, 0_u8..3, 2_u64..80, 2_u64..400).prop_map(|((carry, size), priority, gap_ms, expire_ms)| Load {
        carry,
        priority,
        size,
        gap_ms,
        expire_ms,
    })
}

proptest! {
    #![proptest_config(talkpath_testing::properties(64))]

    #[test]
    fn no_byte_of_a_message_leaves_for_the_first_time_when_it_has_expired(
        loads in proptest::collection::vec(any_load(), 1..6),
        zero_rtt in any::<bool>(),
        kbps in 40_u64..4000,
        delay_ms in 1_u64..150,
        loss in prop_oneof![Just(0.0), 0.0..0.25],
        seed in 0_u64..1000,
    ) {
        let seen = run(&loads, zero_rtt, Path { kbps, delay_ms, loss }, seed);
        prop_assert!(seen.late.is_empty(), "{:?}", seen.late);
    }
}

/// The property above is about something: messages of each flow leave, and others expire.
#[test]
fn messages_of_either_carry_leave_and_expire_on_a_narrow_link_that_loses_packets() {
    let load = |carry, size| Load { carry, priority: 0, size, gap_ms: 20, expire_ms: 100 };
    let loads = [load(Carry::Datagram, 400), load(Carry::StreamPerMessage, 3000)];
    for (shared, kbps) in [(&loads[..], 300), (&loads[..1], 100), (&loads[1..], 900)] {
        let seen = run(shared, false, Path { kbps, delay_ms: 20, loss: 0.05 }, 1);
        let total = |at: usize| seen.counts.iter().map(|counts| counts[at]).sum::<u64>();
        assert!(seen.counts.iter().all(|counts| counts[0] > 5), "{seen:?}");
        assert!(total(1) > 5 && total(2) > 5, "{seen:?}");
    }
}
