//! The emulated arena on this machine's kernel, each test in namespaces of its own.
//!
//! Where the machine allows no namespaces a test prints why and checks nothing. Timing is checked against the
//! median and from below, since a busy machine delays but never hurries; what has to be exact (decisions,
//! counts) is exact anyhow.

mod changes;
mod dccp;
mod files;
mod life;
mod multipath;
mod quic;
mod sizes;
mod stranger;
#[path = "../support/mod.rs"]
mod support;
mod wifi;
mod wires;

use std::collections::BTreeMap;

use support::quiet::undisturbed;
use support::{Ran, count, judge_lone_run, judge_run, run, run_alone};
use talkpath_emu::{ReplayError, log_header, replay};
use talkpath_measure::summarise::summarise;
use talkpath_measure::{DropCause, Fate, LegRecord, SeriesKind};
use talkpath_units::{Duration, Instant};

/// Round-trip delay of flow `name`: minimum, p50 and p90, ms.
fn round_trip(ran: &Ran, name: &str) -> (f64, f64, f64) {
    let summary = summarise(&ran.record, &Default::default());
    let delay = summary.flows[name].round_trip_delay_ms.clone().expect("echoes came back");
    (delay.min, delay.p50, delay.p90)
}

#[test]
fn an_echo_over_udp_takes_the_paths_round_trip() {
    undisturbed(|| {
        // Serialisation at 1 Gbps: 188 B each way, 1.5 us.
        let path = 40.003;
        let Some(ran) = run_alone(
            r#"
            name = "echo"
            duration = "4 s"
            [path]
            up = { rate = "1 Gbps", delay = "15 ms" }
            down = { rate = "1 Gbps", delay = "25 ms" }
            [flow.call]
            transport = "udp"
            workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
            due = "opening"
            "#,
        ) else {
            return;
        };
        let (min, p50, p90) = round_trip(&ran, "call");
        eprintln!(
            "above the path's {path} ms: min {:.3}, p50 {:.3}, p90 {:.3}",
            min - path,
            p50 - path,
            p90 - path
        );
        tell_where_time_goes(&ran);
        assert!(min >= path, "nothing is faster than its path: {min} ms");
        let flow = &ran.record.flows[0];
        assert_eq!(flow.forward.messages.len(), 200);
        assert!(flow.forward.messages.iter().all(|row| row.wire.is_some() && row.transmissions == 1));
        assert!(flow.forward.messages.iter().all(|row| row.due <= row.sent.unwrap() && row.sent <= row.wire));
        // How soon the far application answers is its own affair; all else is the path's.
        let travelled = travelled_p50(&ran);
        assert!(travelled >= path - 0.001, "{travelled}");
        assert!(travelled <= path + 0.3, "p50 {travelled} ms on the way; {}", ran.report);
    });
}

/// The median of the round trips less the far application's time, ms.
fn travelled_p50(ran: &Ran) -> f64 {
    let flow = &ran.record.flows[0];
    let legs = flow.forward.messages.iter().zip(&flow.echo.as_ref().expect("it echoes").messages);
    let mut spans: Vec<u64> = legs
        .filter_map(|(out, back)| {
            let there = out.received?.since(out.due);
            Some((there + back.received?.since(back.sent?)).as_nanos())
        })
        .collect();
    spans.sort_unstable();
    spans[spans.len() / 2] as f64 / 1e6
}

/// Prints the medians of what an echo waits for besides the path: on a quiet machine all are wake-ups of
/// threads.
fn tell_where_time_goes(ran: &Ran) {
    let flow = &ran.record.flows[0];
    let (out, back) = (&flow.forward.messages, &flow.echo.as_ref().expect("it echoes").messages);
    let median = |mut spans: Vec<u64>| {
        spans.sort_unstable();
        spans.get(spans.len() / 2).map_or(0, |span| span / 1000)
    };
    let waits = |rows: &[talkpath_measure::MessageRecord], path_us: u64| {
        let of = |from: fn(&talkpath_measure::MessageRecord) -> Option<Instant>,
                  to: fn(&talkpath_measure::MessageRecord) -> Option<Instant>| {
            median(rows.iter().filter_map(|row| Some(to(row)?.since(from(row)?).as_nanos())).collect())
        };
        let carried = of(|row| row.wire, |row| row.received);
        (
            of(|row| Some(row.due), |row| row.sent),
            of(|row| row.sent, |row| row.wire),
            carried.saturating_sub(path_us),
        )
    };
    eprintln!(
        "medians, us, (due to sent, sent to the emulator, late at the far host): out {:?}, back {:?}",
        waits(out, 15_001),
        waits(back, 25_001)
    );
}

#[test]
fn a_far_clock_that_jumps_is_found_and_costs_the_one_way_figures_alone() {
    let scenario = r#"
        duration = "3 s"
        far_clock = { offset = "2 s", jump = "800 ms", jump_every = "1 s" }
        [path]
        up = { rate = "1 Gbps", delay = "10 ms" }
        down = { rate = "1 Gbps", delay = "10 ms" }
        [flow.call]
        transport = "udp"
        workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
        due = "opening"
    "#;
    judge_run(scenario, |ran| {
        // The machine would have to hold every probe back for longer than the jump to hide it.
        let clock = &ran.record.clock;
        assert!(!clock.trusted, "{}", clock.why);
        assert_eq!(ran.record.flows.len(), 1, "the probes are no flow of the scenario");
        let summary = summarise(&ran.record, &Default::default());
        assert!(summary.flows["call"].one_way_delay_ms.is_none());
        assert!(round_trip(ran, "call").0 >= 20.0, "round trips need one clock");
    });
}

#[test]
fn nagle_costs_what_the_kernel_holds_and_nodelay_nothing() {
    let scenario = r#"
        name = "echo"
        duration = "9 s"
        warm_up = "2 s"
        [path]
        up = { rate = "1 Gbps", delay = "50 ms" }
        down = { rate = "1 Gbps", delay = "50 ms" }
        [flow.udp]
        transport = "udp"
        workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
        due = "opening"
        [flow.nodelay]
        transport = "tcp-nodelay"
        workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
        due = "opening"
        [flow.read]
        transport = "tcp"
        workload = { kind = "voice", rtp = false, codec = "g711", echo = true, echo_write = "per-read" }
        due = "opening"
        [flow.message]
        transport = "tcp"
        workload = { kind = "voice", rtp = false, codec = "g711", echo = true, echo_write = "per-message" }
        due = "opening"
        "#;
    judge_run(scenario, |ran| {
        let p90 = |name| round_trip(ran, name).2 / 100.0;
        eprintln!(
            "p90 in round trips: udp {:.3}, nodelay {:.3}, nagle per read {:.3}, per message {:.3}",
            p90("udp"),
            p90("nodelay"),
            p90("read"),
            p90("message")
        );
        assert!((1.0..1.1).contains(&p90("udp")) && (1.0..1.1).contains(&p90("nodelay")));
        assert!((1.7..2.1).contains(&p90("read")), "{}", p90("read"));
        assert!((2.6..3.1).contains(&p90("message")), "{}", p90("message"));
    });
}

#[test]
fn losses_and_drops_are_those_of_the_links_message_by_message() {
    let scenario = r#"
        name = "loss"
        duration = "4 s"
        [path]
        up = { rate = "50 Mbps", delay = "5 ms", loss = 0.03, queue = { kind = "drop-tail", limit = "100 packets" } }
        down = { rate = "1 Gbps", delay = "5 ms", loss = { kind = "periodic", period = 10 } }
        [flow.burst]
        transport = "udp"
        workload = { kind = "burst", count = 400, size = "160 B", repeat = 3, gap = "500 ms" }
        [flow.call]
        transport = "udp"
        workload = { kind = "cbr", rate = "128 kbps", size = "160 B", echo = true }
        due = "opening"
        "#;
    judge_run(scenario, |ran| {
        let burst = &ran.record.flows[0].forward;
        let (call, echo) = (&ran.record.flows[1].forward, ran.record.flows[1].echo.as_ref().unwrap());
        assert_eq!((burst.messages.len(), call.messages.len()), (1200, 400));
        let missing = |cause| {
            [burst, call, echo]
                .into_iter()
                .map(|leg| count(leg, Fate::Missing, Some(cause)) as u64)
                .sum::<u64>()
        };
        let replayed = replay(&ran.log, &ran.scenario).unwrap();
        assert_eq!((missing(DropCause::Loss), missing(DropCause::Queue)), (replayed.lost, replayed.dropped));
        // The links count what happened before the duration's end, and the last milliseconds' packets come
        // after it.
        let (up, down) = (ran.link("up"), ran.link("down"));
        assert!((replayed.lost - 2..=replayed.lost).contains(&(up.lost + down.lost)), "{up:?} {down:?}");
        assert_eq!(up.dropped + down.dropped, replayed.dropped);
        assert!(up.lost > 5 && down.lost > 20, "{up:?} {down:?}");
        let arrived = |leg: &LegRecord| count(leg, Fate::Delivered, None) as u64;
        assert_eq!(arrived(burst) + arrived(call) + arrived(echo), replayed.departed);
        for leg in [burst, call, echo] {
            let is_told = |row: &talkpath_measure::MessageRecord| {
                (row.fate == Fate::Missing) == row.drop_cause.is_some()
            };
            assert!(leg.messages.iter().all(|row| row.fate != Fate::Unfinished && is_told(row)));
        }
    });
}

#[test]
fn flows_take_their_own_routes_and_large_datagrams_are_fragmented_on_the_way() {
    let scenario = r#"
        name = "routes"
        duration = "3 s"
        [link."access{n}"]
        delay = { from = "10 ms", step = "20 ms" }
        rate = "100 Mbps"
        [link.wan]
        rate = "100 Mbps"
        delay = "5 ms"
        mtu = "576 B"
        [link.back]
        rate = "100 Mbps"
        delay = "5 ms"
        [flow.call]
        count = 3
        transport = "udp"
        workload = { kind = "cbr", rate = "400 kbps", size = "4000 B", echo = true }
        due = "opening"
        route = ["access{n}", "wan"]
        return_route = ["back"]
        [flow.get]
        transport = "tcp"
        direction = "down"
        workload = { kind = "bulk", bytes = "200 kB" }
        route = ["back"]
        return_route = ["wan"]
        "#;
    judge_run(scenario, |ran| {
        for (name, rtt) in [("call-1", 20.0), ("call-2", 40.0), ("call-3", 60.0)] {
            // At 80 ns a byte the last of eight pieces is out 455 us after the datagram began, and the echo's
            // last of three fragments 325 us after that. The routes are 20 ms apart; how late a busy machine
            // is shows in the median, so the fastest echo names the route.
            let (min, _, _) = round_trip(ran, name);
            assert!((rtt + 0.78..rtt + 10.0).contains(&min), "{name}: {min}");
        }
        let summary = summarise(&ran.record, &Default::default());
        assert!(["call-1", "call-2", "call-3"].iter().all(|name| summary.flows[*name].lost == 0));
        // 4028 B are 3 fragments of 1500 B, each of the first two is 3 pieces of 576 B, the last 2: 8 in all.
        let calls =
            summary.flows["call-1"].sent + summary.flows["call-2"].sent + summary.flows["call-3"].sent;
        assert_eq!(ran.link("access1").forwarded, 3 * summary.flows["call-1"].sent);
        assert!(ran.link("wan").forwarded > 8 * calls, "and the acknowledgements of the download");
        let get = ran.flow("get");
        assert_eq!(get.forward.reads.iter().map(|read| read.1.get()).sum::<u64>(), 200_000);
    });
}

#[test]
fn a_slow_receiver_pushes_back_over_tcp_and_drops_over_udp() {
    let scenario = r#"
        name = "slow"
        duration = "4 s"
        drain = "1 s"
        [path]
        up = { rate = "10 Mbps", delay = "5 ms" }
        down = { rate = "10 Mbps", delay = "5 ms" }
        [flow.tcp]
        transport = "tcp"
        workload = { kind = "cbr", rate = "800 kbps", size = "1000 B" }
        due = "opening"
        receiver = { service = "20 ms", socket_buffer = "8 kB" }
        [flow.udp]
        transport = "udp"
        workload = { kind = "cbr", rate = "800 kbps", size = "1000 B" }
        due = "opening"
        receiver = { service = "20 ms", socket_buffer = "8 kB" }
        "#;
    judge_run(scenario, |ran| {
        let udp = ran.flow("udp");
        let count = |fate| udp.forward.messages.iter().filter(|row| row.fate == fate).count();
        // 100 messages a second come, and each takes 20 ms: 250 fit into the run, beside what waits at its
        // end. On a machine that holds the receiver up for longer than its socket's buffer lasts, fewer.
        let served = count(Fate::Delivered);
        assert!(served <= 260, "{served} served");
        let mut read: Vec<Instant> = udp.forward.messages.iter().filter_map(|row| row.received).collect();
        read.sort_unstable();
        assert_works_without_rest(&read);
        assert!(count(Fate::Missing) > 100);
        assert!(
            udp.forward
                .messages
                .iter()
                .all(|row| { row.fate != Fate::Missing || row.drop_cause == Some(DropCause::SocketBuffer) })
        );
        assert_eq!(ran.link("up").dropped + ran.link("up").lost, 0);
        let tcp = ran.flow("tcp");
        assert!(tcp.forward.messages.iter().all(|row| row.fate != Fate::Missing), "a stream loses nothing");
        let mut bytes = 0;
        let completed = tcp.forward.reads.iter().filter_map(|(at, size)| {
            let before = bytes / 1000;
            bytes += size.get();
            (bytes / 1000 > before).then_some(*at)
        });
        assert_works_without_rest(&completed.collect::<Vec<_>>());
        let has_send_buffer = |series: &talkpath_measure::Series| {
            series.entity == "tcp"
                && series.kind == SeriesKind::SendBuffer
                && series.points.iter().any(|it| it.1 > 1000.0)
        };
        assert!(ran.record.series.iter().any(has_send_buffer), "what waits in the send buffer is seen");
        // What a slow receiver leaves unread at the end must not reset the connection under its sender.
        assert!(!ran.record.warnings.iter().any(|it| it.contains("closed")), "{:?}", ran.record.warnings);
    });
}

/// A receiver that takes 20 ms for each message begins none before its time, and the next one, as a rule, at
/// once.
fn assert_works_without_rest(read: &[Instant]) {
    for (messages, at) in read.iter().enumerate() {
        assert!(at.since(read[0]) >= Duration::from_millis(20) * messages as u64, "{messages} before {at}");
    }
    let mut gaps: Vec<Duration> = read.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    gaps.sort_unstable();
    let median = gaps[gaps.len() / 2];
    assert!(median < Duration::from_millis(25), "{} ms", median.as_millis_f64());
    let span = read[read.len() - 1].since(read[0]);
    assert!(span > Duration::from_secs(3), "{} ms", span.as_millis_f64());
}

#[test]
fn a_burst_whose_gap_ends_while_the_stream_is_blocked_is_due_when_there_is_room() {
    let scenario = r#"
        name = "burst"
        duration = "4 s"
        drain = "1 s"
        [path]
        up = { rate = "200 kbps", delay = "5 ms" }
        down = { rate = "200 kbps", delay = "5 ms" }
        [flow.burst]
        transport = { kind = "tcp", send_buffer = "8 kB" }
        workload = { kind = "burst", count = 1, size = "1000 B", repeat = 4000, gap = "1 ms" }
        "#;
    judge_run(scenario, |ran| {
        let summary = summarise(&ran.record, &Default::default());
        let burst = &summary.flows["burst"];
        assert!(burst.received > 60, "{} received", burst.received);
        // The kernel doubles 8 kB: 16 kB take 0.64 s. By the gap's clock the delay would grow to 4 s.
        let delay = burst.one_way_delay_ms.as_ref().expect("messages came").p90;
        assert!(delay < 1500.0, "{delay} ms");
    });
}

#[test]
fn a_burst_that_finds_room_again_goes_on_at_its_own_pace() {
    let scenario = r#"
            name = "burst"
            duration = "2 s"
            warm_up = "500 ms"
            [path]
            up = { rate = "16 Mbps", delay = "1 ms" }
            down = { rate = "16 Mbps", delay = "1 ms" }
            [flow.burst]
            transport = { kind = "tcp", send_buffer = "8 kB" }
            workload = { kind = "burst", count = 1, size = "1000 B", repeat = 10000, gap = "0.3 ms" }
            "#;
    judge_lone_run(scenario, |ran| {
        // The buffer holds 16 kB, 8 ms of the link, and says that there is room when a third is free: who
        // then waits 20 ms for his clock instead of 0.3 ms leaves the link idle for most of the time.
        let utilisation = ran.link("up").utilisation;
        eprintln!("utilisation {utilisation:.3}");
        assert!(utilisation > 0.75, "the link was busy for {utilisation} of the time; {}", ran.report);
    });
}

#[test]
fn bulk_fills_the_bottleneck_and_its_queue() {
    let scenario = r#"
        name = "bulk"
        duration = "5 s"
        warm_up = "2 s"
        [path]
        up = { rate = "10 Mbps", delay = "10 ms", queue = { kind = "drop-tail", limit = "64 kB" } }
        down = { rate = "10 Mbps", delay = "10 ms" }
        [flow.upload]
        transport = { kind = "tcp", cc = "reno" }
        workload = { kind = "bulk" }
        "#;
    judge_run(scenario, |ran| {
        let summary = summarise(&ran.record, &Default::default());
        let goodput = summary.flows["upload"].goodput_bps.unwrap();
        // 1448 B of 1500 B at most; a queue of more than one bandwidth-delay product keeps the link busy.
        assert!(goodput <= 10e6 * 1448.0 / 1500.0 * 1.01, "{goodput}");
        assert!(goodput > 9e6, "{goodput}");
        let up = ran.link("up");
        assert!(up.utilisation > 0.95 && up.queue_packets_mean > 5.0 && up.queue_packets_max <= 44, "{up:?}");
        assert!(up.dropped > 0);
        let upload = &ran.record.flows[0];
        assert!(upload.counters.retransmissions.unwrap() >= up.dropped, "{:?} {up:?}", upload.counters);
        assert!(upload.counters.blocked.unwrap().as_secs_f64() > 2.0, "a greedy sender waits for room");
        assert!(
            upload.forward.messages.iter().filter(|row| row.sent.is_some()).all(|row| row.wire.is_some())
        );
    });
}

/// RFC 3168: the kernel's TCP halves its window for a mark as for a loss, and has nothing to send again.
#[test]
fn a_kernels_tcp_with_ecn_answers_the_marks_of_the_emulated_queue() {
    for ip in ["ipv4", "ipv6"] {
        let scenario = r#"
            name = "ecn"
            ip = "IP"
            duration = "5 s"
            [path]
            up = { rate = "10 Mbps", delay = "10 ms", queue = { kind = "drop-tail", limit = "400 packets", mark_at = "20 packets" } }
            down = { rate = "10 Mbps", delay = "10 ms" }
            [flow.upload]
            transport = { kind = "tcp", cc = "reno", ecn = true }
            workload = { kind = "bulk" }
            "#.replace("IP", ip);
        judge_run(&scenario, |ran| {
            let up = ran.link("up");
            eprintln!("{up:?}");
            assert!(up.marked > 5, "{up:?}");
            assert_eq!((up.dropped, ran.record.flows[0].counters.retransmissions), (0, Some(0)), "{up:?}");
            let ecn = ran.record.flows[0].ecn.unwrap();
            eprintln!("{ecn:?}");
            // The link counts until the end of the run, the flow until it has drained. Echoes go on until the
            // sender has answered (RFC 3168 §6.1.3).
            assert_eq!(ecn.capable, Some(true));
            assert!(
                ecn.marked_forward >= Some(up.marked) && ecn.echoed_forward >= ecn.marked_forward,
                "{ecn:?}"
            );
            // Slow start overshoots by as much as a window for a round trip; without an answer the queue
            // would fill.
            assert!(up.queue_packets_mean < 30.0 && up.utilisation > 0.8, "{up:?}");
            let replayed = replay(&ran.log, &ran.scenario).unwrap();
            assert_eq!((replayed.dropped, replayed.departed), (0, replayed.arrivals));
        });
    }
}

/// RFC 3168 §5: datagrams leave ECN-capable, and the receiver reads the mark that the emulator wrote.
#[test]
fn the_receiver_of_datagrams_counts_the_marks_of_the_emulated_queue() {
    for ip in ["ipv4", "ipv6"] {
        let scenario = r#"
            name = "marks"
            ip = "IP"
            duration = "2 s"
            [path]
            up = { rate = "10 Mbps", delay = "10 ms", queue = { kind = "drop-tail", limit = "400 packets", mark_at = "20 packets" } }
            down = { rate = "10 Mbps", delay = "10 ms" }
            [flow.burst]
            transport = { kind = "udp", ecn = true }
            workload = { kind = "burst", count = 300, size = "1000 B" }
            "#.replace("IP", ip);
        judge_run(&scenario, |ran| {
            let (up, ecn) = (ran.link("up"), ran.record.flows[0].ecn.unwrap());
            let there = count(&ran.record.flows[0].forward, Fate::Delivered, None);
            eprintln!("{there} delivered, {up:?} {ecn:?}");
            assert_eq!(there, 300);
            assert!(up.marked > 200 && up.dropped == 0, "{up:?}");
            assert_eq!((ecn.capable, ecn.marked_forward), (Some(true), Some(up.marked)));
        });
    }
}

/// The queue that makes a call unusable, and the one that cures it. The simulator's test has the same
/// bounds (crates/sim/tests/queues.rs).
#[test]
fn fq_codel_on_the_uplink_cures_the_call_beside_a_kernels_upload() {
    undisturbed(|| {
        let round_trip = |path: &str| {
            let ran = run(&format!(
                "name = \"adsl\"\nduration = \"10 s\"\nwarm_up = \"4 s\"\npath = \"{path}\"\n\
                 [flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\", rtp = false, echo = true }}\ndue = \"opening\"\n\
                 [flow.upload]\ntransport = {{ kind = \"tcp\", cc = \"cubic\" }}\nworkload = \"bulk\"\n"
            ))?;
            let summary = summarise(&ran.record, &BTreeMap::new());
            let up = &summary.links["up"];
            eprintln!("{path}: {:?} {up:?}", summary.flows["call"].round_trip_delay_ms);
            let p50 = summary.flows["call"].round_trip_delay_ms.as_ref().unwrap().p50;
            Some((p50, up.dropped_by.clone()))
        };
        let Some((sick, at_tail)) = round_trip("home-adsl") else { return };
        let (cured, at_signal) = round_trip("home-adsl-fq").unwrap();
        assert!(sick > 400.0 && cured < 70.0, "{sick} ms and {cured} ms");
        assert!(at_tail.aqm == 0 && at_signal.aqm > 0, "{at_tail:?} {at_signal:?}");
    });
}

/// RFC 8200 §4.5: the source fragments, for the smallest MTU of the flow's own route. §3: 40 B of header. The
/// second host's device may be as narrow as that route, and the first host's be wider.
#[test]
fn datagrams_and_segments_over_ipv6_have_their_true_sizes_and_are_cut_by_their_source() {
    for back in ["1500 B", "1280 B"] {
        let scenario = r#"
            name = "ipv6"
            ip = "ipv6"
            duration = "3 s"
            [link.wide]
            rate = "100 Mbps"
            delay = "5 ms"
            [link.narrow]
            rate = "100 Mbps"
            delay = "5 ms"
            mtu = "1280 B"
            [link.back]
            rate = "100 Mbps"
            delay = "5 ms"
            mtu = "BACK"
            [flow.small]
            transport = "udp"
            workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
            due = "opening"
            route = ["wide"]
            return_route = ["back"]
            [flow.large]
            transport = "udp"
            workload = { kind = "cbr", rate = "400 kbps", size = "4000 B" }
            due = "opening"
            route = ["wide", "narrow"]
            return_route = ["back"]
            [flow.get]
            transport = "tcp"
            direction = "down"
            workload = { kind = "bulk", bytes = "200 kB" }
            route = ["back"]
            return_route = ["wide"]
            [flow.dccp]
            transport = "dccp-ccid2"
            workload = { kind = "voice", rtp = false, codec = "g711" }
            due = "opening"
            route = ["wide"]
            return_route = ["back"]
            "#
        .replace("BACK", back);
        judge_lone_run(&scenario, |ran| {
            let summary = summarise(&ran.record, &Default::default());
            for flow in ["small", "large", "dccp"] {
                let found = &summary.flows[flow];
                assert!(found.sent > 30 && found.lost == 0, "{flow}: {} of {} lost", found.lost, found.sent);
            }
            let (min, _, _) = round_trip(ran, "small");
            // Serialisation at 100 Mbps: 160 + 8 + 40 B each way.
            assert!(min >= 10.0 + 2.0 * 208.0 * 8.0 / 100_000.0, "{min} ms");
            // 1280 B hold 40 B of header, 8 B of fragment header and 1232 B: 4008 B make four fragments,
            // which no link cuts again.
            assert_eq!(ran.link("narrow").forwarded, 4 * summary.flows["large"].sent);
            let get = ran.flow("get");
            assert_eq!(get.forward.reads.iter().map(|read| read.1.get()).sum::<u64>(), 200_000);
            let replayed = replay(&ran.log, &ran.scenario).unwrap();
            assert_eq!(replayed.departed, replayed.arrivals);
            let is_about_the_machine = |line: &str| {
                ["stood still", "the machine made", "the far application held"]
                    .iter()
                    .any(|&words| line.contains(words))
            };
            let about_the_run: Vec<_> =
                ran.record.warnings.iter().filter(|line| !is_about_the_machine(line)).collect();
            assert!(about_the_run.is_empty(), "{about_the_run:?}");
        });
    }
}

#[test]
fn a_log_of_another_path_is_told() {
    let Some(mut ran) = run(r#"
        name = "echo"
        duration = "1 s"
        [path]
        up = { rate = "1 Mbps", delay = "5 ms" }
        down = { rate = "1 Mbps", delay = "5 ms" }
        [flow.call]
        transport = "udp"
        workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
        due = "opening"
        "#)
    else {
        return;
    };
    assert_eq!(log_header(&ran.log).unwrap().seed, 5);
    ran.scenario.links[0].config.delay = Duration::from_millis(6);
    assert!(matches!(replay(&ran.log, &ran.scenario), Err(ReplayError::Differs { number: 0, .. })));
    ran.scenario.links.pop();
    assert!(matches!(replay(&ran.log, &ran.scenario), Err(ReplayError::OtherScenario(1, 2))));
}
