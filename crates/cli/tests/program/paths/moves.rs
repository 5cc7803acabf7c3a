//! A client whose address changes in mid run, and a client with two versions of IP.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::lab::{Host, Lab, SERVER};
use crate::harness::{Bench, Seen, calls};

/// The client gets another address, as with a new lease.
fn change_address(lab: &Lab) {
    lab.ip(Host::Client, "addr del 10.66.1.2/24 dev toserver");
    lab.ip(Host::Client, "addr add 10.66.1.77/24 dev toserver");
    lab.ip(Host::Client, "route replace default via 10.66.1.1");
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_run_follows_its_host_to_another_address_with_udp_dccp_and_quic_and_without_tcp() {
    // With a key the new control connection has to show it, too.
    let keys = Bench::new();
    let key = keys.file("key", "0123456789abcdef0123456789abcdef").display().to_string();
    let Some(open) = Lab::new() else { return };
    let Some(locked) = Lab::serving(&["--key-file", &key]) else { return };
    for (lab, words) in [(&open, &[][..]), (&locked, &["--key-file", &key])] {
        let flows = [
            ("udp", "\"udp\""),
            ("dccp", "\"dccp-ccid2\""),
            ("quic", "\"quic\""),
            ("stream", "\"quic-stream\""),
            ("tcp", "\"tcp-nodelay\""),
        ];
        lab.bench.file("calls.toml", calls("12 s", &flows));
        let all = [&["run", "calls.toml", "--json=runs", "--run-again", "0s"], words].concat();
        let mut run = lab.client_command(SERVER, &all);
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_secs(5));
        change_address(lab);
        let seen = Seen::of_child(run);
        let summary = seen.succeeds().summary();
        let flows = &summary["runs"][0]["flows"];
        for name in ["udp", "dccp", "quic", "stream", "tcp"] {
            println!(
                "{name}: {} of {}, {}",
                flows[name]["received"], flows[name]["sent"], flows[name]["breaks"]
            );
        }
        let received = |name: &str| flows[name]["received"].as_u64().unwrap();
        // Of 600 frames those of the two or three seconds in which the run follows.
        for name in ["udp", "quic"] {
            assert!((350..=595).contains(&received(name)), "{name}: {}", flows[name]);
        }
        assert!(received("stream") >= 350, "{}", flows["stream"]);
        assert!(received("tcp") <= 350, "TCP ended with the old address: {}", flows["tcp"]);
        let says = "this host's address changed from 10.66.1.2 to 10.66.1.77";
        assert!(seen.err.contains(says) && seen.err.contains("the run continued from there"), "{}", seen.err);
        assert!(!seen.err.contains("as a translator's"), "{}", seen.err);
    }
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn both_versions_of_ip_are_compared_in_one_run_and_the_one_without_udp_says_so() {
    let Some(lab) = Lab::new() else { return };
    lab.rule("meta nfproto ipv6 meta l4proto udp drop");
    let words = [
        "compare",
        "-4",
        "-6",
        "--transports",
        "udp,tcp-nodelay",
        "--duration",
        "1s",
        "--repeat",
        "1",
        "--json=runs",
    ];
    let seen = Seen::of(lab.client_to_name(&words).output().unwrap());
    let summary = seen.succeeds().summary();
    let mut found = Vec::new();
    for run in summary["runs"].as_array().unwrap() {
        let text = |key: &str| run["sweep"][key].as_str().unwrap().to_owned();
        let received = run["flows"]["call"]["received"].as_u64().unwrap();
        let version = run["path"]["version"].as_u64();
        assert!(version.is_none() || version == Some(if text("ip") == "ipv4" { 4 } else { 6 }), "{run}");
        found.push((text("ip"), text("flow.call.transport"), received > 40));
    }
    found.sort();
    let row = |ip: &str, transport: &str, gets_through| (ip.to_owned(), transport.to_owned(), gets_through);
    let expected = vec![
        row("ipv4", "tcp-nodelay", true),
        row("ipv4", "udp", true),
        row("ipv6", "tcp-nodelay", true),
        row("ipv6", "udp", false),
    ];
    assert_eq!(found, expected, "{}", seen.err);
    // As a person reads it.
    let words: Vec<&str> = words.iter().copied().filter(|word| *word != "--json=runs").collect();
    println!("{}", Seen::of(lab.client_to_name(&words).output().unwrap()).succeeds().out);
    // A command that measures over one version refuses both.
    lab.client(&["burst", "-4", "-6"]).fails(2, &["-4 with -6", "leave one of them out"]);
    // A version over which there is no server is named.
    lab.rule("meta nfproto ipv6 drop");
    Seen::of(lab.client_to_name(&words).output().unwrap()).fails(4, &["over IPv6: ", "-4 alone"]);
}
