//! What holds for TCP whatever the path does: every byte arrives, in order and once; windows are kept;
//! nothing stalls; both ends close. The windows and timers are watched by `pair_net` at every step.

use crate::pair_net::{A, B, Event, Fate, Pair, Wire};
use proptest::collection::vec;
use proptest::prelude::*;
use talkpath_transport::tcp::Tcp;
use talkpath_transport::{
    AnyTransport, CongestionControlKind, DelayedAck, NagleKind, Role, Stack, TcpConfig, Transport,
};
use talkpath_units::{Bytes, Duration, Packets, Seed, SeqNum, Stream};

/// What the wire does to the first packets; later ones pass, so that every run ends.
#[derive(Clone, Copy, Debug)]
struct Impairment {
    seed: u64,
    loss: f64,
    duplication: f64,
    reordering: Duration,
    packets: u64,
}

#[derive(Clone, Debug)]
struct Case {
    config: TcpConfig,
    iss: u32,
    one_way_delay: Duration,
    impairment: Impairment,
    /// Sizes of what each end writes.
    writes: [Vec<u64>; 2],
    /// What each application reads every 10 ms.
    reads: [u64; 2],
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let stack = prop_oneof![Just(Stack::Linux), Just(Stack::Rfc), Just(Stack::BsdReno)];
    let nagle = prop_oneof![Just(NagleKind::Off), Just(NagleKind::Classic), Just(NagleKind::Minshall)];
    let cc = prop_oneof![
        Just(CongestionControlKind::Reno),
        Just(CongestionControlKind::Tahoe),
        Just(CongestionControlKind::NewReno),
        Just(CongestionControlKind::Cubic),
        Just(CongestionControlKind::Bbr)
    ];
    let delayed_ack = prop_oneof![
        Just(DelayedAck::Off),
        Just(DelayedAck::After { timeout: Duration::from_millis(200) }),
        Just(DelayedAck::Tick { period: Duration::from_millis(200) }),
        Just(DelayedAck::Linux),
    ];
    let sizes = (LEAST_MSS..1460, 1_u64..200_000, 1_u64..20, prop::option::of(2_u64..50));
    let send_buffer = prop::option::of(5_000_u64..100_000);
    (stack, nagle, cc, delayed_ack, sizes, send_buffer, any::<bool>(), any::<[bool; 3]>()).prop_map(
        |(stack, nagle, cc, delayed_ack, sizes, send_buffer, timestamps, [limited_transmit, pacing, ecn])| {
            let (mss, rwnd, initial_window, initial_ssthresh) = sizes;
            TcpConfig {
                nagle,
                cc: Some(cc),
                delayed_ack,
                mss: Some(Bytes::new(mss)),
                rwnd: Bytes::new(rwnd),
                initial_window: Packets::new(initial_window),
                initial_ssthresh: initial_ssthresh.map(Packets::new),
                send_buffer: send_buffer.map(Bytes::new),
                timestamps,
                limited_transmit,
                pacing,
                ecn,
                ..TcpConfig::preset(stack, false)
            }
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let impairment = (any::<u64>(), 0.0..0.25, 0.0..0.1, 0_u64..60, 0_u64..400).prop_map(
        |(seed, loss, duplication, reordering_ms, packets)| Impairment {
            seed,
            loss,
            duplication,
            reordering: Duration::from_millis(reordering_ms),
            packets,
        },
    );
    let writes = || vec(1_u64..5_000, 0..40);
    let reads = || prop_oneof![Just(u64::MAX), 1_u64..5_000];
    (config(), any::<u32>(), 0_u64..150, impairment, [writes(), writes()], [reads(), reads()]).prop_map(
        |(config, iss, delay_ms, impairment, writes, reads)| Case {
            config,
            iss,
            one_way_delay: Duration::from_millis(delay_ms),
            impairment,
            writes,
            reads,
        },
    )
}

fn wire(impairment: Impairment) -> Wire {
    let mut stream: Stream = Seed::new(impairment.seed).stream("wire");
    let mut packets = 0;
    Box::new(move |_, _, _| -> Fate {
        packets += 1;
        if packets > impairment.packets {
            return [Some(Duration::ZERO), None];
        }
        let mut copy =
            |chance| stream.chance(chance).then(|| stream.span(Duration::ZERO, impairment.reordering));
        [copy(1.0 - impairment.loss), copy(impairment.duplication)]
    })
}

/// TCP_MIN_MSS of Linux (include/net/tcp.h), the least that TCP_MAXSEG takes: of much less the options leave
/// a byte a segment, and a case of 200 kB becomes one of 200,000 segments.
const LEAST_MSS: u64 = 88;
const READ_INTERVAL: Duration = Duration::from_millis(10);

/// Runs both applications until each has written all, read all and closed; returns what each has read.
fn run(case: &Case) -> [u64; 2] {
    let end = |role, iss| {
        let tcp = Tcp::new(&case.config, role, Bytes::new(1500), Seed::new(1), None);
        AnyTransport::Tcp(tcp.with_initial_sequence(SeqNum::new(iss)))
    };
    let ends = [end(Role::Active, case.iss), end(Role::Passive, case.iss.wrapping_mul(3))];
    let mut pair = Pair::of(ends, case.one_way_delay, wire(case.impairment));
    pair.smss = case.config.mss.map_or(1460, Bytes::get);
    let mut written = [0; 2];
    let mut read = [0; 2];
    let mut opened = [false; 2];
    let mut closed = [false; 2];
    pair.schedule(pair.now, Event::App { at: A });
    // Through a window of one byte each takes a round trip of up to some twenty steps.
    let bytes: u64 = case.writes.iter().flatten().sum();
    for _ in 0..2_000_000 + 64 * bytes {
        let Some(event) = pair.step() else { break };
        let Event::App { .. } = event else { continue };
        let mut done = true;
        for at in [A, B] {
            read[at] += pair.read(at, case.reads[at]);
            opened[at] |= pair.ends[at].is_open();
            while let Some(&size) = case.writes[at].get(written[at])
                && pair.write(at, size)
            {
                written[at] += 1;
            }
            if opened[at] && written[at] == case.writes[at].len() && !closed[at] {
                closed[at] = true;
                pair.shutdown(at);
            }
            done &= closed[at] && read[at] >= case.writes[1 - at].iter().sum();
        }
        if !done {
            pair.schedule(pair.now + READ_INTERVAL, Event::App { at: A });
        }
    }
    assert!(pair.step().is_none(), "the run does not end");
    for at in [A, B] {
        assert!(closed[at] && !pair.ends[at].is_open() && pair.ends[at].poll_timeout().is_none());
    }
    read
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_both_ends_close(case in case()) {
        let read = run(&case);
        prop_assert_eq!(read[B], case.writes[A].iter().sum::<u64>());
        prop_assert_eq!(read[A], case.writes[B].iter().sum::<u64>());
    }
}
