//! Whole runs against what must hold for any: capacity, conservation, repeatability, independence of streams.

use crate::common;
use talkpath_measure::summarise::summarise;
use talkpath_measure::{DropCause, Fate, MessageRecord, RunRecord};

const ADSL: &str = r#"
    name = "voice beside an upload"
    duration = "40 s"
    warm_up = "10 s"
    [path]
    up = { rate = "1 Mbps", delay = "20 ms", queue = { kind = "drop-tail", limit = "64 kB" } }
    down = { rate = "8 Mbps", delay = "20 ms", loss = 0.01, jitter = { kind = "normal", sd = "2 ms" } }
    [flow.call]
    transport = "udp"
    workload = { kind = "voice", rtp = false, codec = "g711", echo = true }
    [flow.upload]
    transport = "tcp"
    workload = { kind = "bulk" }
    start = "1 s"
"#;

#[test]
fn an_upload_fills_the_uplink_and_no_more() {
    let record = common::run(ADSL);
    let summary = summarise(&record, &Default::default());
    // 50 frames a second of 160 + 28 bytes leave the rest to segments of 1448 payload bytes in packets of
    // 1500.
    let left_over = (1e6 - 50.0 * 188.0 * 8.0) * 1448.0 / 1500.0;
    let goodput = summary.flows["upload"].goodput_bps.expect("bytes were read");
    assert!(goodput <= left_over * 1.001, "{goodput} of {left_over}");
    assert!(goodput > left_over * 0.95, "{goodput} of {left_over}");
    let up = &summary.links["up"];
    assert!(up.utilisation > 0.99 && up.utilisation <= 1.0, "{}", up.utilisation);
}

/// RFC 8200 §3: 40 B of header; the segments are smaller by as much as the header is larger.
#[test]
fn packets_over_ipv6_are_twenty_bytes_larger() {
    let record = common::run(&ADSL.replace("[path]", "ip = \"ipv6\"\n    [path]"));
    let summary = summarise(&record, &Default::default());
    let left_over = (1e6 - 50.0 * 208.0 * 8.0) * 1428.0 / 1500.0;
    let goodput = summary.flows["upload"].goodput_bps.expect("bytes were read");
    assert!((left_over * 0.95..=left_over * 1.001).contains(&goodput), "{goodput} of {left_over}");
    let (alone, _) = ADSL.split_once("[flow.upload]").expect("it has an upload");
    let record = common::run(&alone.replace("[path]", "ip = \"ipv6\"\n    [path]"));
    let summary = summarise(&record, &Default::default());
    let delay = summary.flows["call"].one_way_delay_ms.as_ref().expect("frames arrived");
    assert!((delay.min - 21.664).abs() < 1e-6, "20 ms and 208 B at 1 Mbps: {}", delay.min);
}

#[test]
fn the_queue_before_the_uplink_is_what_the_call_waits_for() {
    let record = common::run(ADSL);
    let summary = summarise(&record, &Default::default());
    let delay = summary.flows["call"].one_way_delay_ms.as_ref().expect("frames arrived");
    // An empty path costs 20 ms and 1.504 ms of serialisation; a full queue of 64 kB 512 ms more and the
    // packet in service.
    assert!(delay.min >= 21.504 - 1e-6, "{}", delay.min);
    assert!(delay.max <= 21.504 + 512.0 + 12.0 + 1e-6, "{}", delay.max);
    assert!(delay.p50 > 100.0, "a Reno upload keeps the queue standing: {}", delay.p50);
}

#[test]
fn every_missing_frame_has_its_cause_and_the_links_agree() {
    let record = common::run(ADSL);
    let call = &record.flows[0];
    let missing = |leg: &talkpath_measure::LegRecord, cause| {
        leg.messages.iter().filter(|row| row.fate == Fate::Missing && row.drop_cause == Some(cause)).count()
    };
    let echo = call.echo.as_ref().expect("the call has an echo");
    assert_eq!(call.forward.count(Fate::Missing), missing(&call.forward, DropCause::Queue));
    assert_eq!(echo.count(Fate::Missing), missing(echo, DropCause::Loss));
    assert!(echo.count(Fate::Missing) > 0, "one percent of a thousand echoes");
    let delivered = call.forward.count(Fate::Delivered);
    assert_eq!(delivered, echo.messages.len(), "what arrived was written back");
}

#[test]
fn one_seed_gives_one_record_and_another_seed_another() {
    assert_eq!(common::run(ADSL), common::run(ADSL));
    let other = ADSL.replacen("name", "seed = 2\nname", 1);
    assert_ne!(common::run(ADSL).flows, common::run(&other).flows);
}

#[test]
fn a_random_element_more_changes_no_other_elements_draws() {
    let lost_echoes = |record: &RunRecord| -> Vec<u64> {
        let echo = record.flows[0].echo.as_ref().expect("the call has an echo");
        echo.messages.iter().filter(|row| row.fate == Fate::Missing).map(|row| row.seq).collect()
    };
    let alone = ADSL.split("[flow.upload]").next().expect("the call comes first").to_owned();
    let jittery = alone.replacen(
        "delay = \"20 ms\", queue",
        "delay = \"20 ms\", jitter = { kind = \"normal\", sd = \"1 ms\" }, queue",
        1,
    );
    assert_ne!(alone, jittery);
    // Jitter on the way up moves every frame but reorders none, so the same echoes meet the same draws of the
    // way down.
    assert_eq!(lost_echoes(&common::run(&alone)), lost_echoes(&common::run(&jittery)));
}

#[test]
fn a_datagram_above_the_mtu_travels_in_fragments_and_one_lost_piece_loses_it() {
    let record = common::run(
        r#"
        name = "fragments"
        duration = "20 s"
        [path]
        up = { rate = "10 Mbps", delay = "5 ms", loss = { kind = "periodic", period = 10 } }
        down = { rate = "10 Mbps", delay = "5 ms" }
        [flow.blocks]
        transport = "udp"
        workload = { kind = "cbr", rate = "320 kbps", size = "4000 B" }
        "#,
    );
    let blocks = &record.flows[0].forward.messages;
    // 4000 B + 8 B of UDP header need three fragments; of any ten consecutive fragments one is lost.
    assert_eq!(blocks.len(), 200);
    assert_eq!(record.links[0].forwarded + record.links[0].lost, 600);
    assert_eq!(record.links[0].lost, 60);
    let missing: Vec<_> = blocks.iter().filter(|row| row.fate == Fate::Missing).collect();
    assert_eq!(missing.len(), 60, "no datagram of three fragments loses two of them");
    assert!(missing.iter().all(|row| row.drop_cause == Some(DropCause::Fragment)));
    // The last piece ends serialisation 4068 B after the first began: 3254.4 us at 10 Mb/s.
    let first = blocks.iter().find(|row| row.received.is_some()).expect("most arrive");
    let owd = first.received.expect("it arrived").since(first.due);
    assert_eq!(owd.as_nanos(), 5_000_000 + 3_254_400);
}

/// Its 15 fragments need 67 s at 1 kb/s, and after 30 s the first ones are thrown away.
#[test]
fn a_datagram_whose_fragments_come_too_late_is_missing() {
    let record = common::run(
        r#"
        name = "late fragments"
        duration = "300 s"
        [path]
        up = { rate = "1 kbps", delay = "5 ms", mtu = "576 B" }
        down = { rate = "10 Mbps", delay = "5 ms" }
        [flow.blocks]
        transport = "udp"
        workload = { kind = "cbr", message_rate = "0.01 Hz", size = "8000 B" }
        "#,
    );
    let blocks = &record.flows[0].forward.messages;
    assert_eq!((blocks.len(), record.links[0].dropped, record.links[0].lost), (3, 0, 0));
    let causes: Vec<_> = blocks.iter().map(|row| (row.fate, row.drop_cause)).collect();
    assert_eq!(causes, [(Fate::Missing, Some(DropCause::Fragment)); 3]);
}

#[test]
fn a_slow_receiver_drops_datagrams_but_pushes_a_stream_back() {
    let run = |transport: &str| {
        common::run(&format!(
            r#"
            name = "slow receiver"
            duration = "10 s"
            drain = "30 s"
            [path]
            up = {{ rate = "10 Mbps", delay = "1 ms" }}
            down = {{ rate = "10 Mbps", delay = "1 ms" }}
            [flow.work]
            transport = {transport}
            workload = {{ kind = "cbr", rate = "1024 kbps", size = "128 B" }}
            receiver = {{ service = "1500 us", socket_buffer = "12800 B" }}
            "#
        ))
    };
    let udp = run("\"udp\"");
    let delivered = |record: &RunRecord| record.flows[0].forward.count(Fate::Delivered);
    let sent = udp.flows[0].forward.messages.len();
    assert_eq!(sent, 10_000);
    // One message each 1.5 ms: 6667 in ten seconds, and the thirty that the socket holds at the end.
    assert!((6_660..=6_770).contains(&delivered(&udp)), "{}", delivered(&udp));
    let dropped =
        udp.flows[0].forward.messages.iter().filter(|row| row.drop_cause == Some(DropCause::SocketBuffer));
    assert_eq!(dropped.count(), sent - delivered(&udp));

    let tcp = run(r#"{ kind = "tcp-nodelay", send_buffer = "16 kB" }"#);
    // The connection takes a round trip to open, in which three frames are due.
    assert_eq!(tcp.flows[0].forward.messages.len(), 10_000);
    assert_eq!(delivered(&tcp), 9_997, "a stream delivers all");
    assert!(tcp.flows[0].counters.blocked.expect("the simulator knows").as_secs_f64() > 1.0);
}

#[test]
fn a_receiver_whose_work_is_by_the_read_keeps_up_with_a_stream_and_not_with_datagrams() {
    let last_arrival = |transport: &str| {
        let record = common::run(&format!(
            r#"
            name = "work by the read"
            duration = "10 s"
            drain = "30 s"
            path = "lan"
            [flow.work]
            transport = {transport}
            workload = {{ kind = "cbr", rate = "1024 kbps", size = "128 B" }}
            receiver = {{ service = "2 ms", service_per = "read" }}
            "#
        ));
        record.flows[0].forward.messages.iter().filter_map(|row| row.received).max().expect("some arrive")
    };
    // 10,000 messages: a datagram is a read, and 5,000 of them are read in 10 s; the socket holds the next
    // 192 to 256.
    assert!(last_arrival("\"udp\"").as_nanos() > 10_380_000_000);
    assert!(last_arrival("\"tcp-nodelay\"").as_nanos() < 10_100_000_000);
}

#[test]
fn a_message_larger_than_the_whole_send_buffer_is_written_as_room_comes() {
    for transport in [
        r#""tcp""#,
        r#"{ kind = "tcp", send_buffer = "20 kB" }"#,
        r#"{ kind = "tcp", rwnd = "1 kB" }"#,
        r#"{ kind = "tcp", stack = "bsd-reno", send_buffer = "8 kB" }"#,
        r#""quic-stream""#,
        r#""quic-stream-per-message""#,
    ] {
        let record = common::run(&format!(
            r#"
            name = "large writes"
            duration = "30 s"
            [path]
            up = {{ rate = "50 Mbps", delay = "10 ms" }}
            down = {{ rate = "50 Mbps", delay = "10 ms" }}
            [flow.t]
            transport = {transport}
            workload = {{ kind = "burst", count = 2, size = "300 kB" }}
            "#
        ));
        let messages = &record.flows[0].forward.messages;
        assert_eq!(messages.len(), 2, "{transport}");
        assert!(messages.iter().all(|row| row.fate == Fate::Delivered), "{transport}: {messages:?}");
    }
}

/// Linux 6.18 over the emulated path, median delay of five messages: 718, 591 and 527 ms.
#[test]
fn a_small_send_buffer_holds_large_messages_up_as_long_as_a_kernels_does() {
    for (send_buffer, kernel_ms) in [("16 kB", 718.0), ("64 kB", 591.0), ("256 kB", 527.0)] {
        let record = common::run(&format!(
            r#"
            name = "large messages"
            duration = "9 s"
            [path]
            up = {{ rate = "60 Mbps", delay = "60 ms", queue = {{ kind = "drop-tail", limit = "500 kB" }} }}
            down = {{ rate = "6 Mbps", delay = "12 ms", queue = {{ kind = "drop-tail", limit = "64 kB" }} }}
            [flow.t]
            transport = {{ kind = "tcp", send_buffer = "{send_buffer}", header_room = "192 B" }}
            workload = {{ kind = "cbr", size = "1 MB", rate = "4 Mbps" }}
            "#
        ));
        let delay = |row: &MessageRecord| row.received.map(|at| at.since(row.due).as_secs_f64() * 1e3);
        let mut delays: Vec<f64> = record.flows[0].forward.messages.iter().filter_map(delay).collect();
        delays.sort_by(f64::total_cmp);
        let median = delays[delays.len() / 2];
        assert!((median / kernel_ms - 1.0).abs() < 0.01, "{send_buffer}: {delays:?}");
    }
}

/// Linux 6.18 over the emulated path, HZ = 250 and 192 B for headers: 122.6 ms at the median. What waits is
/// the autotuned send buffer: two windows of segments, each as large as one alone in its memory, 2304 B there
/// and 4352 B where 320 B are kept free for headers (tcp_sndbuf_expand). Only the profile says which.
#[test]
fn what_waits_in_an_autotuned_send_buffer_is_as_much_as_in_the_kernel_of_the_profile() {
    let median = |kernel: &str| {
        let record = common::run(&format!(
            r#"
            duration = "12 s"
            warm_up = "2 s"
            seed = 90217
            {kernel}
            [path]
            up = {{ rate = "17 Mbps", delay = "23 ms", queue = "fq_codel" }}
            down = {{ rate = "40 Mbps", delay = "9 ms", queue = "fq_codel" }}
            [flow.call]
            transport = "udp"
            workload = {{ kind = "voice", rtp = false, codec = "g711", echo = true }}
            [flow.upload]
            transport = "tcp"
            workload = "bulk"
            start = {{ from = "0 s", to = "1 s" }}
            "#
        ));
        let upload = &summarise(&record, &Default::default()).flows["upload"];
        upload.one_way_delay_ms.as_ref().expect("bytes were read").p50
    };
    let lean = median(r#"kernel = { kind = "linux-6.18", header_room = "192 B", small_head = "576 B" }"#);
    assert!((lean / 122.6 - 1.0).abs() < 0.02, "{lean}");
    let distribution = median(r#"kernel = "linux-6.18""#);
    // The path takes 23 ms of both.
    let waits = (distribution - 23.0) / (lean - 23.0);
    assert!((waits / (4352.0 / 2304.0) - 1.0).abs() < 0.1, "{distribution} and {lean}");
}

/// RFC 3168 §5: a queue that marks from 20 packets on, and has room for 400, is kept short without a loss.
/// The path holds 17.7 packets, and half of the window at the mark, 38 packets, fills it still. Linux's Reno
/// with SACK falls to a quarter: PRR lets the segment with CWR leave at once, so that it meets the queue at
/// its longest and is marked, and its echo is of the next window.
#[test]
fn a_queue_that_marks_is_kept_short_without_a_loss() {
    for (transport, utilisation) in [
        (r#"{ kind = "tcp", ecn = true }"#, 0.97),
        (r#"{ kind = "tcp", ecn = true, cc = "reno" }"#, 0.9),
        (r#"{ kind = "tcp", ecn = true, cc = "reno", sack = false }"#, 0.97),
        (r#"{ kind = "tcp", ecn = true, stack = "rfc" }"#, 0.97),
    ] {
        let text = format!(
            r#"
            duration = "30 s"
            warm_up = "10 s"
            [path]
            up = {{ rate = "5 Mbps", delay = "20 ms", queue = {{ kind = "drop-tail", limit = "400 packets", mark_at = "20 packets" }} }}
            down = {{ rate = "5 Mbps", delay = "20 ms" }}
            [flow.upload]
            transport = {transport}
            workload = "bulk"
            "#
        );
        let marked = summarise(&common::run(&text), &Default::default());
        let dropped =
            summarise(&common::run(&text.replace("ecn = true", "ecn = false")), &Default::default());
        let (up, upload) = (&marked.links["up"], &marked.flows["upload"]);
        assert_eq!((upload.retransmissions, up.dropped), (Some(0), 0), "{transport}");
        assert!(up.utilisation > utilisation, "{transport}: {}", up.utilisation);
        // A window grows by a packet a round trip, and answers a round trip after the first mark.
        let longest = up.queue_packets.max;
        assert!(longest <= 23, "{transport}: {longest} packets");
        let without = dropped.links["up"].queue_packets.max;
        assert!(without > 100, "{transport}: without ECN the same queue holds {without} packets");
    }
}
