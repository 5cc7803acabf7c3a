//! QUIC in the emulated arena: over real sockets and a path that is ours, so that every packet's fate is
//! known.

use talkpath_emu::replay;
use talkpath_measure::{DropCause, Fate, SeriesKind};
use talkpath_units::{Duration, Instant};

use super::support::quiet::undisturbed;
use super::support::{Ran, count, judge_run, run};

const CARRIES: [&str; 3] = ["quic-datagram", "quic-stream", "quic-stream-per-message"];

#[test]
fn calls_come_back_whole_in_both_directions_whatever_carries_them() {
    undisturbed(|| {
        let mut flows = String::new();
        for carry in CARRIES {
            for direction in ["up", "down"] {
                flows += &format!(
                    "\n[flow.{carry}-{direction}]\ntransport = \"{carry}\"\ndirection = \"{direction}\"\n\
                     workload = {{ kind = \"voice\", rtp = false, codec = \"g711\", echo = true }}\ndue = \"opening\"\n"
                );
            }
        }
        let Some(ran) = run(&format!(
            "name = \"calls\"\nduration = \"2 s\"\n[path]\n\
             up = {{ rate = \"3 Mbps\", delay = \"10 ms\" }}\ndown = {{ rate = \"3 Mbps\", delay = \"10 ms\" }}\n{flows}"
        )) else {
            return;
        };
        assert_eq!(ran.record.flows.len(), 6);
        for flow in &ran.record.flows {
            let name = &flow.info.name;
            assert_eq!(flow.info.cc.as_deref(), Some("cubic"), "{name}");
            for leg in [&flow.forward, flow.echo.as_ref().unwrap()] {
                // A handshake of a round trip, and 98 frames; a busy machine opens later.
                assert!((50..=99).contains(&leg.messages.len()), "{name}: {}", leg.messages.len());
                for row in &leg.messages {
                    assert_eq!((row.fate, row.copies), (Fate::Delivered, 1), "{name}");
                    assert!(row.due <= row.sent.unwrap() && row.sent <= row.wire, "{name}: {row:?}");
                    // 10 ms, and 160 B with headers at 3 Mbps.
                    let way = row.received.unwrap().since(row.wire.unwrap());
                    assert!(way.as_nanos() >= 10_500_000, "{name}: {way}");
                }
            }
        }
        let kinds = [SeriesKind::Cwnd, SeriesKind::Pto, SeriesKind::BytesInFlight, SeriesKind::LostPackets];
        for kind in kinds {
            let count = ran.record.series.iter().filter(|line| line.kind == kind).count();
            assert_eq!(count, 6, "{kind:?}");
        }
    });
}

/// Each packet that the path lost or dropped is the loss of the messages that its sender put into it, and of
/// no others.
#[test]
fn what_is_missing_at_3_percent_loss_is_what_the_arrival_log_lost() {
    let scenario = r#"
        name = "loss"
        duration = "8 s"
        drain = "2 s"
        [path]
        up = { rate = "10 Mbps", delay = "10 ms", loss = 0.03 }
        down = { rate = "10 Mbps", delay = "10 ms", loss = 0.03 }
        [flow.datagram]
        transport = "quic-datagram"
        workload = { kind = "cbr", rate = "160 kbps", size = "160 B" }
        due = "opening"
        "#;
    judge_run(scenario, |ran| {
        let leg = &ran.record.flows[0].forward;
        let lost = count(leg, Fate::Missing, Some(DropCause::Loss));
        let replayed = replay(&ran.log, &ran.scenario).unwrap();
        let (up, down) = (ran.link("up"), ran.link("down"));
        // 1000 messages upwards and some 500 acknowledgements downwards.
        assert!(leg.messages.len() > 950, "{}", leg.messages.len());
        assert!(lost > 10, "{lost}");
        assert!((replayed.lost - 2..=replayed.lost).contains(&(up.lost + down.lost)), "{up:?} {down:?}");
        // A message has its own packet, but for those that waited for the window or the first
        // acknowledgement.
        let data = ran.record.flows[0].counters.data_packets.unwrap();
        let arrived = count(leg, Fate::Delivered, None);
        // The receiving end discards what comes before it has the keys, and says so to nobody.
        let other = count(leg, Fate::Missing, None);
        assert_eq!(lost + arrived + other, leg.messages.len(), "each has a fate");
        assert!(other <= 3, "only what came before the handshake's end: {other}");
        assert!(data as usize <= leg.messages.len(), "{data}");
        // Packets upwards without a message are few, so nearly all losses upwards are of messages.
        assert!((up.lost.saturating_sub(8)..=up.lost + 8).contains(&(lost as u64)), "{lost} of {up:?}");
    });
}

#[test]
fn streams_lose_nothing_at_3_percent_loss_and_say_what_was_sent_again() {
    undisturbed(|| {
        let mut flows = String::new();
        for carry in &CARRIES[1..] {
            flows += &format!(
                "\n[flow.{carry}]\ntransport = \"{carry}\"\nworkload = {{ kind = \"cbr\", rate = \"160 kbps\", size = \"160 B\" }}\ndue = \"opening\"\n"
            );
        }
        let Some(ran) = run(&format!(
            "name = \"again\"\nduration = \"6 s\"\n[path]\n\
             up = {{ rate = \"10 Mbps\", delay = \"10 ms\", loss = 0.03 }}\ndown = {{ rate = \"10 Mbps\", delay = \"10 ms\" }}\n{flows}"
        )) else {
            return;
        };
        for flow in &ran.record.flows {
            let name = &flow.info.name;
            let delivered = count(&flow.forward, Fate::Delivered, None);
            let odd: Vec<_> =
                flow.forward.messages.iter().filter(|row| row.fate != Fate::Delivered).collect();
            assert!(
                odd.is_empty(),
                "{name}: {odd:?} of {}; {:?}",
                flow.forward.messages.len(),
                ran.record.warnings
            );
            assert!(delivered > 700, "{name}: {delivered}");
            let again = flow.forward.messages.iter().filter(|row| row.transmissions > 1).count();
            assert!(again > 3, "{name}: {again} of {delivered}");
            // One packet may send several messages again.
            let resent = flow.counters.retransmissions.unwrap();
            assert!(resent > 3, "{name}: {resent}, {again} messages");
        }
    });
}

#[test]
fn what_waits_longer_than_it_may_expires_and_never_meets_the_path() {
    let scenario = r#"
        name = "expiry"
        duration = "4 s"
        [path]
        up = { rate = "400 kbps", delay = "10 ms", queue = { kind = "drop-tail", limit = "10 packets" } }
        down = { rate = "1 Mbps", delay = "10 ms" }
        [flow.call]
        transport = { kind = "quic-datagram", expire = "100 ms" }
        workload = { kind = "cbr", rate = "800 kbps", size = "1000 B" }
        due = "opening"
        "#;
    judge_run(scenario, |ran| {
        let leg = &ran.record.flows[0].forward;
        let expired: Vec<_> = leg.messages.iter().filter(|row| row.fate == Fate::Expired).collect();
        assert!(expired.len() > 50, "{} of {}", expired.len(), leg.messages.len());
        assert!(expired.iter().all(|row| row.wire.is_none() && row.transmissions == 0));
        // What a turn of the machine may be late by is allowed for.
        let waited = leg.messages.iter().filter_map(|row| Some(row.wire?.since(row.due))).max().unwrap();
        assert!(waited <= Duration::from_millis(110), "{waited}");
    });
}

/// A call beside a transfer: 2 Mbps and a queue of 20 packets, which the transfer fills. `call` and
/// `transfer` are what is in the tables of their transports.
fn beside_a_transfer(call: &str, transfer: &str) -> String {
    format!(
        "name = \"beside\"\nduration = \"5 s\"\ndrain = \"2 s\"\n[path]\n\
         up = {{ rate = \"2 Mbps\", delay = \"10 ms\", queue = {{ kind = \"drop-tail\", limit = \"20 packets\" }} }}\n\
         down = {{ rate = \"2 Mbps\", delay = \"10 ms\" }}\n\
         [flow.transfer]\ntransport = {{ {transfer} }}\nworkload = {{ kind = \"bulk\", bytes = \"600 kB\" }}\n\
         start = \"1 s\"\n\
         [flow.call]\ntransport = {{ {call} }}\nworkload = {{ kind = \"voice\", rtp = false, codec = \"g711\", echo = true }}\ndue = \"opening\"\n"
    )
}

/// The first flow of the connection begins a second after the other one, and has its sockets.
#[test]
fn a_call_and_a_transfer_in_one_connection_have_their_own_counts() {
    undisturbed(|| {
        for (call, transfer) in
            [("datagram", "stream"), ("stream-per-message", "datagram"), ("stream", "stream")]
        {
            let keys = |carry: &str| format!("kind = \"quic-{carry}\", connection = \"one\"");
            let Some(ran) = run(&beside_a_transfer(&keys(call), &keys(transfer))) else { return };
            let name = format!("{call} beside {transfer}");
            let failed = |what: &&String| what.contains("the QUIC connection");
            assert_eq!(ran.record.warnings.iter().find(failed), None, "{name}");
            let moved = &ran.flow("transfer").forward;
            assert_eq!(moved.messages.iter().map(|row| row.size.get()).sum::<u64>(), 600_000, "{name}");
            let begins = moved.messages.iter().map(|row| row.due).min().unwrap();
            assert!(begins >= Instant::from_secs(1), "{name}: the transfer begins at {begins}");
            let spoken = ran.flow("call");
            let legs = [moved, &spoken.forward, spoken.echo.as_ref().unwrap()];
            let mut lost = 0;
            for (leg, carry) in legs.into_iter().zip([transfer, call, call]) {
                let of_queue = count(leg, Fate::Missing, Some(DropCause::Queue));
                assert!(carry == "datagram" || of_queue == 0, "{name}: {of_queue} are sent again");
                lost += of_queue;
                let delivered = count(leg, Fate::Delivered, None);
                assert_eq!(delivered + of_queue, leg.messages.len(), "{name}: each has a fate, and a cause");
            }
            assert!((190..=250).contains(&legs[1].messages.len()), "{name}: {}", legs[1].messages.len());
            // A packet holds some messages of a call, or one of a transfer.
            let dropped = ran.link("up").dropped as usize;
            assert!(lost <= dropped * 9, "{name}: {lost} messages of {dropped} packets");
            let echoed = legs[2].messages.len();
            assert_eq!(echoed, count(legs[1], Fate::Delivered, None), "{name}: each that came is echoed");
            // One connection: the same packets on the wire for both, and each flow counts its own.
            assert!(spoken.counters.data_packets.unwrap() <= legs[1].messages.len() as u64 * 2, "{name}");
        }
    });
}

/// The 95th percentile of how long a message of the call's way out waited before it left its host.
fn wait(ran: &Ran) -> Duration {
    let rows = &ran.flow("call").forward.messages;
    let mut waits: Vec<_> = rows.iter().filter_map(|row| Some(row.wire?.since(row.due))).collect();
    waits.sort_unstable();
    waits[waits.len() * 95 / 100]
}

/// What fills the connection keeps the call waiting at its own host. A connection of its own does not, and
/// priority nearly does not.
#[test]
fn a_transfer_in_the_calls_connection_keeps_it_waiting_and_priority_brings_it_before() {
    undisturbed(|| {
        let shared = "kind = \"quic-stream\", connection = \"one\"";
        let first = format!("{shared}, priority = 1");
        let alone = "kind = \"quic-stream\"";
        let mut waits = [Duration::ZERO; 3];
        for (wait_of, (call, transfer)) in
            waits.iter_mut().zip([(alone, alone), (shared, shared), (first.as_str(), shared)])
        {
            let Some(ran) = run(&beside_a_transfer(call, transfer)) else { return };
            *wait_of = wait(&ran);
        }
        let [alone, alike, first] = waits;
        eprintln!("p95 from due to wire: {alone} alone, {alike} in one connection, {first} with priority");
        assert!(first < alike, "{first} with priority, {alike} without");
        assert!(alike > alone + Duration::from_millis(10), "{alike} in one connection, {alone} alone");
    });
}

/// Each packet that the path lost is the loss of the messages of each flow that were in it.
#[test]
fn what_two_flows_of_a_connection_miss_at_5_percent_loss_is_what_the_arrival_log_lost() {
    undisturbed(|| {
        let flow = |name: &str| {
            format!(
                "[flow.{name}]\ntransport = {{ kind = \"quic-datagram\", connection = \"one\" }}\n\
                 workload = {{ kind = \"cbr\", rate = \"80 kbps\", size = \"200 B\" }}\ndue = \"opening\"\n"
            )
        };
        let Some(ran) = run(&format!(
            "name = \"loss\"\nduration = \"8 s\"\ndrain = \"2 s\"\n[path]\n\
             up = {{ rate = \"10 Mbps\", delay = \"10 ms\", loss = 0.05 }}\n\
             down = {{ rate = \"10 Mbps\", delay = \"10 ms\" }}\n{}{}",
            flow("a"),
            flow("b")
        )) else {
            return;
        };
        let mut lost = 0;
        for flow in &ran.record.flows {
            let (leg, name) = (&flow.forward, &flow.info.name);
            let (of_wire, arrived) =
                (count(leg, Fate::Missing, Some(DropCause::Loss)), count(leg, Fate::Delivered, None));
            assert!(of_wire > 5, "{name}: {of_wire}");
            // Those that came before the handshake's end were discarded by the engine.
            let other = leg.messages.len() - of_wire - arrived;
            assert!(other <= 3, "{name}: {other}");
            lost += of_wire as u64;
        }
        let up = ran.link("up");
        // Both have a message every 20 ms, which leave in one packet or in two. Some packets have none.
        assert!((up.lost.saturating_sub(12)..=2 * up.lost).contains(&lost), "{lost} of {up:?}");
    });
}

#[test]
fn a_ticket_of_an_earlier_connection_saves_a_round_trip() {
    undisturbed(|| {
        let mut received = [Instant::ZERO; 2];
        for (zero_rtt, received) in [true, false].into_iter().zip(&mut received) {
            let Some(ran) = run(&format!(
                "name = \"early\"\nduration = \"1 s\"\n[path]\n\
                 up = {{ rate = \"10 Mbps\", delay = \"40 ms\" }}\ndown = {{ rate = \"10 Mbps\", delay = \"40 ms\" }}\n\
                 [flow.call]\ntransport = {{ kind = \"quic-datagram\", zero_rtt = {zero_rtt} }}\n\
                 workload = {{ kind = \"voice\", rtp = false, codec = \"g711\", echo = true }}\ndue = \"opening\"\n"
            )) else {
                return;
            };
            *received = ran.flow("call").forward.messages[0].received.unwrap();
        }
        let [with, without] = received;
        // One way, with what a machine adds.
        assert!(with < Instant::from_millis(60), "{with}");
        assert!(without.since(with) >= Duration::from_millis(60), "{with} with 0-RTT, {without} without");
    });
}
