//! What holds for TCP whatever the path does: every byte arrives, in order and once; windows are kept;
//! nothing stalls; both ends close. The windows and timers are watched by `pair_net` at every step.

use talkpath_config::{CongestionControlKind, DelayedAck, Growth, NagleKind, Role, Stack, TcpConfig};
use talkpath_transport::AnyTransport;
use talkpath_transport::tcp::Tcp;
use talkpath_units::{Bytes, Duration, Packets, Seed, SeqNum, Stream};
use talkpath_wire::Transport;

use crate::pair_net::{A, B, Event, Fate, Pair, Wire};
use proptest::collection::vec;
use proptest::prelude::*;

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
    let ms = |range: core::ops::Range<u64>| range.prop_map(Duration::from_millis);
    let delayed_ack = prop_oneof![
        Just(DelayedAck::Off),
        ms(1..500).prop_map(|timeout| DelayedAck::After { timeout }),
        ms(1..500).prop_map(|period| DelayedAck::Tick { period }),
        Just(DelayedAck::Linux),
    ];
    let growth = prop_oneof![Just(Growth::Counted), Just(Growth::EachAck), Just(Growth::Bsd)];
    let rwnd = prop_oneof![1 => LEAST..1_500, 3 => LEAST..200_000];
    let sizes = (LEAST..1460, rwnd, LEAST..200_000, 1_u64..20, prop::option::of(1_u64..50));
    let send_buffer = prop::option::of(LEAST_SEND_BUFFER..100_000);
    let timers = (prop::option::of(ms(1..3_000)), prop::option::of(ms(0..600)));
    let words = (stack, nagle, cc, delayed_ack, growth);
    (words, sizes, send_buffer, timers, any::<[Option<bool>; 9]>()).prop_map(
        |(words, sizes, send_buffer, (min_rto, timer_granularity), flags)| {
            let (stack, nagle, cc, delayed_ack, growth) = words;
            let (mss, rwnd, initial_rwnd, initial_window, initial_ssthresh) = sizes;
            let preset = TcpConfig::preset(stack, false);
            let [
                timestamps,
                limited_transmit,
                pacing,
                ecn,
                sack,
                tlp,
                window_scaling,
                cwnd_validation,
                overfill,
            ] = flags;
            TcpConfig {
                nagle,
                cc: Some(cc),
                delayed_ack,
                growth: if stack == Stack::Linux { preset.growth } else { growth },
                mss: Some(Bytes::new(mss)),
                rwnd: Bytes::new(rwnd),
                initial_rwnd: Bytes::new(initial_rwnd),
                initial_window: Packets::new(initial_window),
                initial_ssthresh: initial_ssthresh.map(Packets::new),
                send_buffer: send_buffer.map(Bytes::new),
                min_rto: min_rto.unwrap_or(preset.min_rto),
                timer_granularity: timer_granularity.unwrap_or(preset.timer_granularity),
                timestamps: timestamps.unwrap_or(preset.timestamps),
                limited_transmit: limited_transmit.unwrap_or(preset.limited_transmit),
                pacing: pacing.unwrap_or(preset.pacing),
                ecn: ecn.unwrap_or(preset.ecn),
                sack: sack.unwrap_or(preset.sack),
                tlp: tlp.unwrap_or(preset.tlp),
                window_scaling: window_scaling.unwrap_or(preset.window_scaling),
                cwnd_validation: cwnd_validation.unwrap_or(preset.cwnd_validation),
                overfill: overfill.unwrap_or(preset.overfill),
                ..preset
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

/// The least that scenarios take for `mss` and `rwnd`, in bytes (`scenario/src/transports/tcp.rs`).
const LEAST: u64 = 48;
/// The least that scenarios take for `send_buffer` (`scenario::MIN_BULK_ROOM`).
const LEAST_SEND_BUFFER: u64 = 1024;
/// Far more than any case takes: the longest of 18,000 took 250,000. Chosen.
const MOST_STEPS: u32 = 4_000_000;
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
    // Of each end's messages those that are written, and what of the next one is.
    let mut written = [0; 2];
    let mut begun = [0; 2];
    let mut read = [0; 2];
    let mut opened = [false; 2];
    let mut closed = [false; 2];
    pair.schedule(pair.now, Event::App { at: A });
    for _ in 0..MOST_STEPS {
        let Some(event) = pair.step() else { break };
        let Event::App { .. } = event else { continue };
        let mut done = true;
        for at in [A, B] {
            read[at] += pair.read(at, case.reads[at]);
            opened[at] |= pair.ends[at].is_open();
            while opened[at]
                && let Some(&size) = case.writes[at].get(written[at])
            {
                begun[at] += pair.write_parts(at, size - begun[at], begun[at] > 0);
                if begun[at] < size {
                    break;
                }
                written[at] += 1;
                begun[at] = 0;
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
    #![proptest_config(talkpath_testing::properties(256))]

    #[test]
    fn every_byte_arrives_once_and_both_ends_close(case in case()) {
        let read = run(&case);
        prop_assert_eq!(read[B], case.writes[A].iter().sum::<u64>());
        prop_assert_eq!(read[A], case.writes[B].iter().sum::<u64>());
    }
}
