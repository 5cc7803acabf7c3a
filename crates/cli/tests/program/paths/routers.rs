//! What each helper of the lab does to packets, so that the other tests may rely on it.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::lab::{Lab, Marked, SERVER, SERVER_V6, TooBig};
use crate::harness::{Seen, calls};

/// A second of a call both ways.
fn call() -> String {
    calls("1 s", &[("call", "{ kind = \"udp\", ecn = true }")])
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_path_that_does_nothing_to_packets_loses_and_marks_none() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("call.toml", call());
    for to in [SERVER, SERVER_V6] {
        let summary = lab.client_to(to, &["run", "call.toml", "--json=runs"]).succeeds().summary();
        let call = &summary["runs"][0]["flows"]["call"];
        assert_eq!((&call["sent"], &call["lost"]), (&50.into(), &0.into()), "{call}");
        assert_eq!(call["ecn"]["marked_forward"], 0, "{call}");
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_name_is_reached_over_the_version_of_ip_that_is_asked_for() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("call.toml", call());
    for (flag, version, near) in [("-4", 4, "10.66.1.2:"), ("-6", 6, "[fd66:1::2]:")] {
        let output = lab.client_to_name(&["run", "call.toml", "--json=runs", flag]).output().unwrap();
        let summary = Seen::of(output).succeeds().summary();
        let path = &summary["runs"][0]["path"];
        assert_eq!((&path["version"], &path["near"]), (&version.into(), &path["mapped"]), "{flag}: {path}");
        assert!(path["near"].as_str().unwrap().starts_with(near), "{flag}: {path}");
        assert_eq!(
            (&path["forward"]["passes_bytes"], &path["back"]["fails_bytes"]),
            (&1500.into(), &Value::Null)
        );
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn all_packets_or_half_of_them_come_marked_over_ipv4_and_ipv6() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("call.toml", call());
    for (marked, range) in [(Marked::All, 50..=50), (Marked::Half, 8..=42)] {
        lab.clear();
        lab.mark(marked);
        for to in [SERVER, SERVER_V6] {
            let summary = lab.client_to(to, &["run", "call.toml", "--json=runs"]).succeeds().summary();
            let call = &summary["runs"][0]["flows"]["call"];
            let count = call["ecn"]["marked_forward"].as_u64().unwrap();
            assert!(range.contains(&count), "{marked:?} to {to}: {count} of 50");
        }
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_tunnel_takes_packets_of_its_mtu_and_no_larger_ones() {
    let Some(lab) = Lab::new() else { return };
    let call = call().replace("\"1 s\"", "\"300 ms\"");
    // The UDP payload that fits exactly, and one byte more.
    for mtu in [1280_u64, 1420, 1100] {
        for too_big in [TooBig::Silent, TooBig::Reported] {
            lab.tunnel(u32::try_from(mtu).unwrap(), too_big);
            let fits = mtu - 28;
            for (size, lost) in [(fits, 0), (fits + 1, 15)] {
                let workload =
                    format!("{{ kind = \"cbr\", rate = \"{} bps\", size = \"{size} B\" }}", size * 400);
                let text = call.replace("{ kind = \"voice\", echo = true }", &workload);
                lab.bench.file("large.toml", text);
                let summary = lab.client(&["run", "large.toml", "--json=runs"]).succeeds().summary();
                let call = &summary["runs"][0]["flows"]["call"];
                // Where a router says so, the host has learned it from the probes before the run, and cuts
                // them.
                let lost = if matches!(too_big, TooBig::Reported) { 0 } else { lost };
                assert_eq!(call["lost"], lost, "MTU {mtu}, {too_big:?}, {size} B: {call}");
            }
        }
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn where_udp_is_blocked_calls_over_tcp_are_measured() {
    let Some(lab) = Lab::new() else { return };
    lab.block_udp();
    let seen =
        lab.client(&["compare", "--duration", "1s", "--repeat", "1", "--transports", "tcp,tcp-nodelay"]);
    seen.succeeds();
    assert!(seen.out.contains("TCP"), "{}", seen.out);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_connection_whose_first_packet_is_lost_opens_a_second_later() {
    let Some(lab) = Lab::new() else { return };
    // RFC 6298 §2.1 and RFC 9002 §6.2.2: the first timeouts of TCP and QUIC are 1 s.
    for transport in ["tcp-nodelay", "quic"] {
        lab.clear();
        lab.lose_first_syns(1);
        lab.lose_first_large_datagrams(1);
        let text = call().replace("{ kind = \"udp\", ecn = true }", &format!("\"{transport}\""));
        lab.bench.file("call.toml", text.replace("\"1 s\"", "\"2 s\""));
        let summary =
            lab.client(&["run", "call.toml", "--json=runs", "--run-again", "0s"]).succeeds().summary();
        let call = &summary["runs"][0]["flows"]["call"];
        let unsent = call["ledger"]["not_open"].as_u64().unwrap();
        assert!((49..=70).contains(&unsent), "{transport}: {unsent} of 100 frames did not leave: {call}");
        assert!(call["opening_ms"].as_f64().unwrap() >= 990.0, "{transport}: {call}");
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_translator_lets_calls_through_and_the_log_names_its_address() {
    let Some(mut lab) = Lab::new() else { return };
    lab.translate();
    lab.bench.file("call.toml", call());
    let before = lab.client_counts();
    let summary = lab.client(&["run", "call.toml", "--json=runs"]).succeeds().summary();
    let sent = lab.client_counts()[0] - before[0];
    assert_eq!(summary["runs"][0]["flows"]["call"]["lost"], 0, "{summary}");
    assert!((50..500).contains(&sent), "{sent} packets left the client");
    let log = lab.server_log();
    assert!(log.contains("10.66.2.1:") && !log.contains("10.66.1.2:"), "{log}");
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_connection_outlives_a_translator_that_forgets_its_mappings_of_udp() {
    let Some(lab) = Lab::new() else { return };
    lab.translate();
    let text = call().replace("{ kind = \"udp\", ecn = true }", "\"tcp-nodelay\"");
    lab.bench.file("call.toml", text.replace("\"1 s\"", "\"2 s\""));
    let run = lab
        .client_command(SERVER, &["run", "call.toml", "--json=runs", "--run-again", "0s"])
        .stdout(Stdio::piped())
        .spawn();
    thread::sleep(Duration::from_millis(1500));
    lab.forget_mappings();
    let summary = Seen::of_child(run.unwrap()).succeeds().summary();
    let call = &summary["runs"][0]["flows"]["call"];
    // Its first frame is due before the connection is open.
    let ledger = &call["ledger"];
    assert_eq!((&ledger["due"], &ledger["missing"]), (&100.into(), &0.into()), "{call}");
    assert!(ledger["delivered"].as_u64().unwrap() >= 99, "{call}");
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn with_two_lines_connections_keep_the_address_of_the_first() {
    let Some(mut lab) = Lab::new() else { return };
    lab.two_lines();
    lab.bench.file("call.toml", call().replace("{ kind = \"udp\", ecn = true }", "\"tcp\""));
    lab.client(&["run", "call.toml"]).succeeds();
    let log = lab.server_log();
    assert!(log.contains("10.66.2.1:") && !log.contains("10.66.2.9:"), "{log}");
}
