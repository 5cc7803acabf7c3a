//! An address translator that forgets a flow, and gives it another port.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::lab::{Lab, SERVER};
use crate::harness::{Seen, calls};

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn the_lifetime_of_a_mapping_is_found_by_pauses_that_grow() {
    let Some(lab) = Lab::new() else { return };
    lab.translate();
    lab.keep_mappings_for(15);
    lab.bench.file("calls.toml", calls("24 s", &[("udp", "\"udp\"")]));
    let seen = lab.client(&["run", "calls.toml", "--json=runs", "--run-again", "0s", "--mapping-lifetime"]);
    let summary = seen.succeeds().summary();
    let mapping = &summary["runs"][0]["path"]["mapping"];
    assert_eq!((&mapping["lasts_s"], &mapping["is_gone_s"]), (&10.into(), &20.into()), "{mapping}");
    let sentence = "a mapping without packets from here lasts 10 s, and is gone after 20 s";
    assert!(summary["warnings"].to_string().contains(sentence), "{}", summary["warnings"]);
}

/// Calls that go one way alone.
const ONE_WAY: &str = r#"
[flow.up]
transport = "udp"
workload = { kind = "voice" }

[flow.down]
transport = "udp"
direction = "down"
workload = { kind = "voice" }

[flow.quic-down]
transport = "quic"
direction = "down"
workload = { kind = "voice" }
"#;

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn flows_over_udp_and_dccp_go_on_within_two_seconds_of_a_new_port_and_quic_goes_on_at_once() {
    let Some(lab) = Lab::new() else { return };
    lab.translate();
    let flows = [
        ("udp", "\"udp\""),
        ("dccp", "\"dccp-ccid2\""),
        ("quic", "\"quic\""),
        ("stream", "\"quic-stream\""),
        ("tcp", "\"tcp-nodelay\""),
    ];
    lab.bench.file("calls.toml", calls("10 s", &flows) + ONE_WAY);
    let mut run = lab.client_command(SERVER, &["run", "calls.toml", "--json=runs", "--run-again", "0s"]);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(4));
    lab.forget_mappings();
    let seen = Seen::of_child(run);
    let summary = seen.succeeds().summary();
    let flows = &summary["runs"][0]["flows"];
    for name in ["udp", "up", "down", "dccp", "quic", "stream", "quic-down", "tcp"] {
        println!("{name}: {} of {}, {}", flows[name]["received"], flows[name]["sent"], flows[name]["breaks"]);
    }
    for name in ["udp", "up", "down", "dccp"] {
        // Of 500 frames those of a second of silence and half a second more.
        let received = flows[name]["received"].as_u64().unwrap();
        assert!((350..=499).contains(&received), "{name}: {received}");
        assert!(seen.err.contains(&format!("flow {name}: its address or port changed")), "{}", seen.err);
    }
    // Its first frame is due before the connection is open.
    assert!(flows["tcp"]["received"].as_u64().unwrap() >= 499, "{}", flows["tcp"]);
    // The next packet after the change shows the new port: a frame or two are lost on the way back, of a
    // stream none.
    for (name, least) in [("quic", 480), ("stream", 499), ("quic-down", 350)] {
        let received = flows[name]["received"].as_u64().unwrap();
        assert!(received >= least, "{name}: {received}");
        let line = format!("flow {name}: its address or port changed once during the run; the QUIC");
        assert!(seen.err.contains(&line), "{}", seen.err);
    }
}

/// The same over DCCP and QUIC, from the third second on.
const LATER: &str = r#"
name = "a new mapping before the first packet"
duration = "9 s"
drain = "1 s"
path = "lan"

[flow.dccp]
transport = "dccp-ccid2"
start = "3 s"
workload = { kind = "voice", echo = true }

[flow.quic]
transport = "quic"
start = "3 s"
workload = { kind = "voice", echo = true }
"#;

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn connections_open_though_a_translator_has_forgotten_their_ports_before_their_first_packets() {
    let Some(lab) = Lab::new() else { return };
    lab.translate();
    lab.bench.file("calls.toml", LATER);
    let mut run = lab.client_command(SERVER, &["run", "calls.toml", "--json=runs", "--run-again", "0s"]);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(1500));
    lab.forget_mappings();
    let seen = Seen::of_child(run);
    let summary = seen.succeeds().summary();
    for name in ["dccp", "quic"] {
        let call = &summary["runs"][0]["flows"][name];
        // A second of silence, and the connection's next try after it (RFC 9002 §6.2.1: 1 s, 2 s; RFC 4340
        // §8.1.1: 1 s).
        let received = call["received"].as_u64().unwrap();
        assert!(received >= 100, "{name}: {call}");
        assert!(call["opening_ms"].as_f64().unwrap() < 4000.0, "{name}: {call}");
        assert!(seen.err.contains(&format!("flow {name}: its address or port changed once")), "{}", seen.err);
    }
    assert!(!seen.err.contains("small datagrams"), "{}", seen.err);
}
