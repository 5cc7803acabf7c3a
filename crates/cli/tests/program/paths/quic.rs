//! QUIC through tunnels, and over paths that mark packets.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::lab::{Host, Lab, Marked, SERVER, SERVER_V6, TooBig};
use crate::harness::{Seen, calls};

/// A call both ways, 50 frames a second.
fn call(transport: &str, seconds: u64) -> String {
    calls(&format!("{seconds} s"), &[("call", &format!("\"{transport}\""))])
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_call_over_quic_opens_at_once_through_tunnels_that_say_what_is_too_big_and_through_silent_ones() {
    let Some(lab) = Lab::new() else { return };
    for mtu in [1280, 1420] {
        for too_big in [TooBig::Silent, TooBig::Reported] {
            for (to, transport) in
                [(SERVER, "quic-datagram"), (SERVER, "quic-stream"), (SERVER_V6, "quic-datagram")]
            {
                lab.tunnel(mtu, too_big);
                lab.bench.file("call.toml", call(transport, 1));
                let summary = lab.client_to(to, &["run", "call.toml", "--json=runs"]).succeeds().summary();
                let flow = &summary["runs"][0]["flows"]["call"];
                // Of 50 frames those of the handshake are missing, at most. A second would be most of them.
                let received = flow["received"].as_u64().unwrap();
                assert!(received >= 40, "MTU {mtu}, {too_big:?}, {transport} to {to}: {flow}");
            }
        }
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn transfers_over_quic_pass_a_tunnel_in_packets_that_nobody_fragments() {
    let Some(lab) = Lab::new() else { return };
    lab.rule("ip frag-off & 0x3fff != 0 counter");
    lab.rule("exthdr frag exists counter");
    for too_big in [TooBig::Silent, TooBig::Reported] {
        for to in [SERVER, SERVER_V6] {
            for direction in ["up", "down"] {
                lab.tunnel(1280, too_big);
                lab.bench.file(
                    "transfer.toml",
                    format!(
                        "name = \"transfer\"\nduration = \"5 s\"\npath = \"lan\"\n\n[flow.load]\n\
                         transport = \"quic-stream\"\ndirection = \"{direction}\"\n\
                         workload = {{ kind = \"bulk\", bytes = \"2 MB\" }}\n"
                    ),
                );
                let summary =
                    lab.client_to(to, &["run", "transfer.toml", "--json=runs"]).succeeds().summary();
                let flow = &summary["runs"][0]["flows"]["load"];
                let case = format!("{too_big:?}, {direction} to {to}: {flow}");
                assert!(flow["received"].as_u64().unwrap() > 0, "{case}");
                assert_eq!(flow["received"], flow["sent"], "{case}");
                assert_eq!(lab.counted(), 0, "fragments; {case}");
            }
        }
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn over_a_path_below_1228_octets_quic_says_which_size_does_not_pass() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("call.toml", call("quic-datagram", 4));
    for (too_big, says) in [
        (TooBig::Silent, "packets of 1228 B; the path may drop UDP, or packets of that size"),
        (TooBig::Reported, "packets of 1228 B; this host's kernel knows a path MTU of 1100 B to there"),
    ] {
        lab.tunnel(1100, too_big);
        lab.client(&["run", "call.toml"]).fails(4, &["the QUIC connection did not open", says]);
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn what_the_kernel_was_told_of_the_path_keeps_no_call_from_opening_and_is_named_if_messages_are_too_large() {
    let Some(lab) = Lab::new() else { return };
    // As after a forged "fragmentation needed".
    lab.ip(Host::Client, "route change default via 10.66.1.1 mtu 600");
    lab.bench.file("call.toml", call("quic-datagram", 1));
    let summary = lab.client(&["run", "call.toml", "--json=runs"]).succeeds().summary();
    let flow = &summary["runs"][0]["flows"]["call"];
    assert!(flow["received"].as_u64().unwrap() >= 40, "{flow}");
    let large = call("quic-datagram", 1).replace(
        "{ kind = \"voice\", echo = true }",
        "{ kind = \"cbr\", rate = \"500 kbps\", size = \"1300 B\" }",
    );
    lab.bench.file("large.toml", large);
    lab.client(&["run", "large.toml"]).fails(4, &["a message of 1300 B does not fit", "path MTU of 600 B"]);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_path_that_marks_packets_gets_one_acknowledgement_for_a_frame_and_not_thousands() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("call.toml", call("quic-datagram", 5));
    for (marked, to) in [
        (None, SERVER),
        (Some(Marked::All), SERVER),
        (Some(Marked::All), SERVER_V6),
        (Some(Marked::Half), SERVER),
    ] {
        lab.clear();
        if let Some(marked) = marked {
            lab.mark(marked);
        }
        let before = lab.client_counts();
        // Run again, a repetition that the machine disturbed would count twice.
        let words = ["run", "call.toml", "--json=runs", "--run-again", "0s"];
        let summary = lab.client_to(to, &words).succeeds().summary();
        let after = lab.client_counts();
        let (sent, received) = (after[0] - before[0], after[2] - before[2]);
        let flow = &summary["runs"][0]["flows"]["call"];
        assert!(flow["received"].as_u64().unwrap() >= 240, "{flow}");
        // A packet and an acknowledgement for each of 250 frames, and the control connection.
        for packets in [sent, received] {
            assert!((250..700).contains(&packets), "{marked:?} to {to}: {sent} sent, {received} received");
        }
    }
}

/// A call and a transfer upwards, each over a connection of its own, and large messages over datagrams.
const SHRINKING: &str = r#"
name = "a path that becomes smaller"
duration = "14 s"
drain = "2 s"
path = "lan"

[flow.call]
transport = "quic"
workload = { kind = "voice", echo = true }

[flow.load]
transport = "quic-stream"
workload = { kind = "cbr", rate = "2 Mbps", size = "20 kB" }

[flow.large]
transport = "quic"
workload = { kind = "cbr", rate = "500 kbps", size = "1300 B" }
"#;

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_path_that_becomes_smaller_in_a_run_and_says_nothing_holds_no_stream_up_for_long_and_is_named() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("shrinking.toml", SHRINKING);
    let words = ["run", "shrinking.toml", "--json=runs", "--run-again", "0s"];
    let mut run = lab.client_command(SERVER, &words);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(5));
    lab.tunnel(1280, TooBig::Silent);
    let seen = Seen::of_child(run);
    let summary = seen.succeeds().summary();
    let flows = &summary["runs"][0]["flows"];
    for name in ["call", "load", "large"] {
        println!("{name}: {} of {}, {}", flows[name]["received"], flows[name]["sent"], flows[name]["breaks"]);
    }
    let count = |name: &str, key: &str| flows[name][key].as_u64().unwrap();
    assert!(count("call", "received") >= 690, "its packets are small: {}", flows["call"]);
    // The first message is due before the connection is open.
    assert!(count("load", "received") >= count("load", "sent") - 1, "{}", flows["load"]);
    let ledger = |class: &str| flows["large"]["ledger"][class].as_u64().unwrap();
    assert!(ledger("refused") > 100 && ledger("missing") < 50, "{}", flows["large"]);
    let says = "packets of more than 1200 B from this host stopped getting through";
    for name in ["load", "large"] {
        assert!(seen.err.contains(&format!("flow {name}: during the run {says}")), "{name}: {}", seen.err);
    }
    assert!(!seen.err.contains(&format!("flow call: during the run {says}")), "{}", seen.err);
}
