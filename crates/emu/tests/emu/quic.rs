//! QUIC in the emulated arena: over real sockets and a path that is ours, so that every packet's fate is
//! known.

use talkpath_emu::replay;
use talkpath_measure::{DropCause, Fate, SeriesKind};
use talkpath_units::Duration;

use super::support::quiet::undisturbed;
use super::support::{count, run};

const CARRIES: [&str; 3] = ["quic-datagram", "quic-stream", "quic-stream-per-message"];

#[test]
fn calls_come_back_whole_in_both_directions_whatever_carries_them() {
    undisturbed(|| {
        let mut flows = String::new();
        for carry in CARRIES {
            for direction in ["up", "down"] {
                flows += &format!(
                    "\n[flow.{carry}-{direction}]\ntransport = \"{carry}\"\ndirection = \"{direction}\"\n\
                     workload = {{ kind = \"voice\", codec = \"g711\", echo = true }}\n"
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
    undisturbed(|| {
        let Some(ran) = run(r#"
        name = "loss"
        duration = "8 s"
        drain = "2 s"
        [path]
        up = { rate = "10 Mbps", delay = "10 ms", loss = 0.03 }
        down = { rate = "10 Mbps", delay = "10 ms", loss = 0.03 }
        [flow.datagram]
        transport = "quic-datagram"
        workload = { kind = "cbr", rate = "160 kbps", size = "160 B" }
        "#) else {
            return;
        };
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
        let other = count(leg, Fate::Missing, Some(DropCause::SocketBuffer));
        assert_eq!(lost + arrived + other, leg.messages.len(), "each has a fate, and a cause");
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
                "\n[flow.{carry}]\ntransport = \"{carry}\"\nworkload = {{ kind = \"cbr\", rate = \"160 kbps\", size = \"160 B\" }}\n"
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
    undisturbed(|| {
        let Some(ran) = run(r#"
        name = "expiry"
        duration = "4 s"
        [path]
        up = { rate = "400 kbps", delay = "10 ms", queue = { kind = "drop-tail", limit = "10 packets" } }
        down = { rate = "1 Mbps", delay = "10 ms" }
        [flow.call]
        transport = { kind = "quic-datagram", expire = "100 ms" }
        workload = { kind = "cbr", rate = "800 kbps", size = "1000 B" }
        "#) else {
            return;
        };
        let leg = &ran.record.flows[0].forward;
        let expired: Vec<_> = leg.messages.iter().filter(|row| row.fate == Fate::Expired).collect();
        assert!(expired.len() > 50, "{} of {}", expired.len(), leg.messages.len());
        assert!(expired.iter().all(|row| row.wire.is_none() && row.transmissions == 0));
        // What a turn of the machine may be late by is allowed for.
        let waited = leg.messages.iter().filter_map(|row| Some(row.wire?.since(row.due))).max().unwrap();
        assert!(waited <= Duration::from_millis(110), "{waited}");
    });
}
