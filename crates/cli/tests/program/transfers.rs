//! `send` and `burst`: one line each, to a server.

use std::fs;

use crate::harness::{Bench, Served, read_json};

#[test]
fn a_file_arrives_intact_over_tcp_and_over_udp() {
    let bench = Bench::new();
    fs::create_dir(bench.path("kept")).unwrap();
    let served = Served::start(&bench, &["--open", "--keep", "kept"]);
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    bench.file("photo.raw", &content);
    let seen = bench.run(&[
        "send",
        "photo.raw",
        "--to",
        &served.address,
        "--require",
        "transfer.file.intact == true",
    ]);
    assert!(seen.succeeds().out.contains("holds  transfer.file.intact"), "{}", seen.out);
    assert!(seen.out.contains("\nphoto.raw, 800000 B: intact, SHA-256 "), "{}", seen.out);
    let summary = read_json(&bench.only_run().join("summary.json"));
    let flow = &summary["runs"][0]["flows"]["transfer"];
    assert_eq!((&flow["transport"], &flow["file"]["bytes"]), (&"tcp".into(), &800_000.into()));
    assert_eq!(summary["name"], format!("photo.raw to {}", served.address));
    let kept = flow["file"]["kept_as"].as_str().unwrap();
    assert_eq!(fs::read(bench.path("kept").join(kept)).unwrap(), content);
    let over_udp = [
        "send",
        "photo.raw",
        "--to",
        &served.address,
        "--transport",
        "udp",
        "--duration",
        "2s",
        "--json=runs",
    ];
    let seen = bench.run(&over_udp);
    let summary = seen.summary();
    let flow = &summary["runs"][0]["flows"]["transfer"];
    assert_eq!((&flow["transport"], &flow["file"]["bytes"]), (&"udp".into(), &800_000.into()));
    let is_whole = flow["file"]["intact"] == true;
    assert_eq!(seen.code, Some(if is_whole { 0 } else { 1 }), "{}", seen.err);
}

#[test]
fn a_file_that_did_not_arrive_whole_is_exit_code_1() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["--open"]);
    // More than a millisecond can send.
    bench.file("large.raw", vec![0; 50_000_000]);
    let seen = bench.run(&["send", "large.raw", "--to", &served.address, "--duration", "1ms"]);
    seen.fails(1, &["the file did not arrive whole"]);
    assert!(seen.out.contains("NOT intact"), "{}", seen.out);
}

#[test]
fn a_burst_is_counted_over_udp_and_over_tcp() {
    let bench = Bench::new();
    let served = Served::start(&bench, &["--open"]);
    for transport in ["udp", "tcp"] {
        let burst =
            ["burst", "--size", "128", "--count", "500", "--to", &served.address, "--transport", transport];
        let seen = bench.run(&[&burst[..], &["--duration", "2s", "--json=runs"]].concat());
        let summary = seen.succeeds().summary();
        let flow = &summary["runs"][0]["flows"]["transfer"];
        assert_eq!((&flow["transport"], &flow["sent"]), (&transport.into(), &500.into()), "{flow}");
        assert!(flow["verdict"].is_string(), "Foderaro's words are for bursts: {flow}");
    }
}

#[test]
fn a_burst_prints_the_figures_of_foderaro_and_spoor_and_the_receiver_logs_its_own() {
    let bench = Bench::new();
    fs::create_dir(bench.path("kept")).unwrap();
    let served = Served::start(&bench, &["--open", "--keep", "kept"]);
    let burst = ["burst", "--size", "1KB", "--count", "10", "--to", &served.address, "--transport", "tcp"];
    let seen = bench.run(&[&burst[..], &["--repeat", "2"]].concat());
    let out = &seen.succeeds().out;
    assert!(out.contains("10 messages of 1KB (a KB is 1024 B) to "), "{out}");
    let row = |name: &str| {
        let line =
            out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {out}"));
        line[name.len()..].trim().split("  ").map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>()
    };
    let pairs = [
        ("packet size, B", "1024"),
        ("packets sent", "10"),
        ("received of expected", "10 of 10"),
        ("protocol", "TCP"),
        ("packets lost, %", "0.00"),
        ("in words", "great"),
    ];
    for (name, value) in pairs {
        assert_eq!(row(name), [value; 2], "{name}: {out}");
    }
    for name in [
        "day, UTC",
        "start",
        "end",
        "transfer time, ms",
        "time to receive, s",
        "mean delay, ms",
        "largest delay, ms",
        "net rate, packets/s",
        "error-adjusted, packets/s",
    ] {
        assert_eq!(row(name).len(), 2, "{name}: {out}");
    }
    // The receiver wrote its own log before it gave its report to the client.
    let log = fs::read_to_string(bench.path("kept/receive-log.txt")).unwrap();
    let fields = "Packet size: 1024 bytes\nPackets received: 10\nPackets expected: 10\nProtocol: TCP\n";
    assert_eq!(log.matches(fields).count(), 2, "{log}");
    let arrivals: Vec<f64> =
        log.lines().filter_map(|line| line.strip_prefix("Start timestamp: ")).map(second_of_day).collect();
    // Both ends say when it was by the same clock here.
    let summary = read_json(&bench.only_run().join("summary.json"));
    let sent = |at: usize| summary["runs"][at]["flows"]["transfer"]["transfer"]["start"].as_str().unwrap();
    for (at, arrival) in arrivals.iter().enumerate() {
        // Midnight may lie between, and the hosts compare their clocks to some 10 us.
        let took = (arrival - second_of_day(sent(at)) + 43_200.0).rem_euclid(86_400.0) - 43_200.0;
        assert!(took.abs() < 0.05, "sent at {}, and arrived {took} s later: {log}", sent(at));
    }
    assert_eq!(arrivals.len(), 2, "{log}");
}

/// The time of `2026-11-29 20:04:20.429982`, in s since midnight.
fn second_of_day(stamp: &str) -> f64 {
    let (_, clock) = stamp.split_once(' ').unwrap();
    clock.split(':').fold(0.0, |seconds, part| 60.0 * seconds + part.parse::<f64>().unwrap())
}

#[test]
fn a_mistake_names_the_flag_that_made_it() {
    let bench = Bench::new();
    let to = ["--to", "localhost:1"];
    let wrong: [(&[&str], &str); 5] = [
        (&["send", "none.raw"], "send none.raw: flow.transfer.workload.source"),
        (&["burst", "--size", "huge"], "--size huge: flow.transfer.workload.size"),
        (&["burst", "--count", "0"], "--count 0: flow.transfer.workload.count"),
        (&["burst", "--transport", "tpc"], "--transport tpc: flow.transfer.transport"),
        (&["burst", "--duration", "5"], "--duration 5: duration"),
    ];
    for (arguments, says) in wrong {
        bench.run(&[arguments, &to].concat()).fails(2, &[says, "in the options"]);
    }
    bench.run(&["burst"]).fails(2, &["--to"]);
    assert!(bench.runs().is_empty());
}
