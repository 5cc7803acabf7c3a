//! Paths that UDP does not get through, one way, both ways, or by another address than TCP.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::lab::{Lab, TooBig};
use crate::harness::{Seen, calls};

/// Three seconds of a call over UDP.
fn call() -> String {
    calls("3 s", &[("call", "\"udp\"")])
}

const COMPARE: [&str; 5] = ["compare", "--duration", "1s", "--repeat", "2"];

/// The repetitions of each transport, and what of them was received.
fn received(summary: &Value) -> Vec<(String, Vec<u64>)> {
    let mut all: Vec<(String, Vec<u64>)> = Vec::new();
    for run in summary["runs"].as_array().unwrap() {
        let call = &run["flows"]["call"];
        let name = run["sweep"]["flow.call.transport"].as_str().unwrap().to_owned();
        let count = call["received"].as_u64().unwrap();
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, counts)) => counts.push(count),
            None => all.push((name, vec![count])),
        }
    }
    all
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn where_udp_is_blocked_a_comparison_says_so_once_and_ranks_what_gets_through() {
    let Some(lab) = Lab::new() else { return };
    lab.block_udp();
    let transports = "udp,tcp,tcp-nodelay,quic";
    let begun = Instant::now();
    let seen = lab
        .client(&[&COMPARE[..], &["--transports", transports, "--json=runs", "--run-again", "0s"]].concat());
    let summary = seen.succeeds().summary();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    for (name, counts) in received(&summary) {
        assert_eq!(counts.len(), 2, "{name}: every repetition is kept");
        assert!(counts.iter().all(|&count| (count > 40) == name.starts_with("tcp")), "{name}: {counts:?}");
    }
    assert_eq!(seen.err.matches("nothing comes back over UDP port 7160").count(), 1, "{}", seen.err);
    assert!(seen.err.contains("did not open: nothing came back over UDP port 7160"), "{}", seen.err);
    // As a person reads it.
    let seen = lab.client(&[&COMPARE[..], &["--transports", transports]].concat());
    println!("{}", seen.succeeds().out);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn where_nothing_gets_through_a_run_ends_with_exit_code_4_and_the_port() {
    let Some(lab) = Lab::new() else { return };
    lab.block_udp();
    lab.bench.file("call.toml", call());
    let seen = lab.client(&["run", "call.toml"]);
    seen.fails(
        4,
        &["nothing got through to 10.66.3.2", "UDP port 7160", "nothing of it arrived at the server"],
    );
    assert!(!lab.bench.only_run().join("parts").exists(), "what was measured is a whole run");
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn where_udp_is_blocked_on_the_way_back_it_says_that_it_arrives_at_the_server() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("call.toml", call());
    lab.rule("iifname \"toserver\" meta l4proto udp drop");
    lab.client(&["run", "call.toml"])
        .fails(4, &["it arrives at the server, and the answers do not come back"]);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn where_large_datagrams_alone_are_dropped_calls_over_udp_are_measured_and_quic_says_why_it_does_not_open() {
    let Some(lab) = Lab::new() else { return };
    lab.tunnel(1100, TooBig::Silent);
    let seen = lab
        .client(&[&COMPARE[..], &["--transports", "udp,quic", "--json=runs", "--run-again", "0s"]].concat());
    let summary = seen.succeeds().summary();
    for (name, counts) in received(&summary) {
        assert!(
            counts.iter().all(|&count| count == if name == "udp" { 50 } else { 0 }),
            "{name}: {counts:?}"
        );
    }
    assert!(seen.err.contains("though small datagrams over UDP port 7160 do"), "{}", seen.err);
    let seen = lab.client(&[&COMPARE[..], &["--transports", "udp,quic"]].concat());
    println!("{}", seen.succeeds().out);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn udp_that_is_let_through_later_opens_a_second_later() {
    let Some(lab) = Lab::new() else { return };
    lab.block_udp();
    lab.bench.file("call.toml", call().replace("\"3 s\"", "\"6 s\""));
    let run =
        lab.client_command(super::lab::SERVER, &["run", "call.toml", "--json=runs", "--run-again", "0s"]);
    let run = { run }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The path's exploration and the registrations take some 5 s before the run.
    thread::sleep(Duration::from_secs(8));
    lab.clear();
    let call = Seen::of_child(run).succeeds().summary()["runs"][0]["flows"]["call"].take();
    let received = call["received"].as_u64().unwrap();
    assert!((60..=250).contains(&received), "{call}");
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn udp_that_is_blocked_midway_is_told_of_and_the_rest_is_kept() {
    let Some(lab) = Lab::new() else { return };
    lab.bench.file("call.toml", call().replace("\"3 s\"", "\"6 s\""));
    let run =
        lab.client_command(super::lab::SERVER, &["run", "call.toml", "--json=runs", "--run-again", "0s"]);
    let run = { run }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(2));
    lab.block_udp();
    let seen = Seen::of_child(run);
    let call = seen.succeeds().summary()["runs"][0]["flows"]["call"].take();
    assert!((20..=150).contains(&call["received"].as_u64().unwrap()), "{call}");
    assert!(seen.err.contains("nothing came over UDP port 7160"), "{}", seen.err);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn a_connection_whose_port_is_closed_before_it_opens_blames_the_port_and_not_the_mtu() {
    let Some(lab) = Lab::new() else { return };
    let late = "name = \"late\"\nduration = \"8 s\"\ndrain = \"1 s\"\npath = \"lan\"\n\n[flow.call]\n\
                transport = \"quic\"\nstart = \"3 s\"\nworkload = { kind = \"voice\", echo = true }\n";
    lab.bench.file("late.toml", late);
    let run =
        lab.client_command(super::lab::SERVER, &["run", "late.toml", "--json=runs", "--run-again", "0s"]);
    let run = { run }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(1500));
    lab.block_udp();
    let seen = Seen::of_child(run);
    assert!(seen.err.contains("on nothing came over UDP port 7160, small datagrams neither"), "{}", seen.err);
    assert!(!seen.err.contains("MTU"), "{}", seen.err);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn with_two_lines_it_says_which_addresses_udp_and_tcp_come_from_at_both_ends() {
    let Some(mut lab) = Lab::new() else { return };
    lab.two_lines();
    lab.bench.file("call.toml", call());
    let says = "your UDP comes from 10.66.2.9, your TCP from 10.66.2.1: a router with two lines, or a carrier's \
                translator";
    lab.client(&["run", "call.toml"]).fails(4, &[says, "UDP port 7160"]);
    let log = lab.server_log();
    assert!(log.contains("10.66.2.1: its UDP comes from 10.66.2.9"), "{log}");
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn where_tcp_is_blocked_nothing_can_run_and_it_says_what_tcp_is_for() {
    let Some(lab) = Lab::new() else { return };
    lab.rule("meta l4proto tcp drop");
    lab.bench.file("call.toml", call());
    lab.client(&["run", "call.toml"]).fails(4, &["did not answer within 5 s over TCP"]);
}

/// UDP and TCP_NODELAY, and QUIC, for three seconds.
fn three_calls() -> String {
    calls("3 s", &[("udp", "\"udp\""), ("quic", "\"quic\""), ("tcp", "\"tcp-nodelay\"")])
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn where_udp_is_blocked_on_the_first_port_the_run_uses_another_one_only_if_the_server_offers_it() {
    for (words, is_offered) in [(&["--open", "--also", "443"][..], true), (&["--open"], false)] {
        let Some(lab) = Lab::serving(words) else { return };
        lab.rule("udp dport 7160 drop");
        lab.rule("udp sport 7160 drop");
        lab.bench.file("call.toml", three_calls());
        let run = ["run", "call.toml", "--repeat", "2", "--json=runs", "--run-again", "0s"];
        let seen = lab.client(&run);
        let summary = seen.succeeds().summary();
        for run in summary["runs"].as_array().unwrap() {
            for (name, gets_through) in [("udp", is_offered), ("quic", is_offered), ("tcp", true)] {
                let call = &run["flows"][name];
                let received = call["received"].as_u64().unwrap();
                assert_eq!(received >= 140, gets_through, "{words:?} {name}: {call}");
            }
            assert_eq!(run["path"].is_object(), is_offered, "the path is explored over the other port");
        }
        let says = "back over UDP port 7160 (nothing of it arrived at the server, so a firewall may drop UDP on the \
                    way there); the flows over UDP use its port 443, which it offers as well";
        assert_eq!(seen.err.contains(says), is_offered, "{}", seen.err);
    }
}
