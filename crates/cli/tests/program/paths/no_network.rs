//! A client whose network goes away during a run, as that of a laptop that changes the access point.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::lab::{Host, Lab, SERVER};
use crate::harness::{Seen, calls};

/// Runs the calls. After 3 s `gone` takes the client's network away, and 3 s later `back` gives it back.
fn through_an_outage(gone: &[&str], back: &[&str]) {
    let Some(lab) = Lab::new() else { return };
    let flows =
        [("udp", "\"udp\""), ("dccp", "\"dccp-ccid2\""), ("quic", "\"quic\""), ("tcp", "\"tcp-nodelay\"")];
    lab.bench.file("calls.toml", calls("12 s", &flows));
    // Run again, a repetition that the machine disturbed would miss the outage.
    let words = ["run", "calls.toml", "--json=runs", "--run-again", "0s", "--require", "udp.loss_rate <= 1%"];
    let mut run = lab.client_command(SERVER, &words);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(3));
    gone.iter().for_each(|words| lab.ip(Host::Client, words));
    thread::sleep(Duration::from_secs(3));
    back.iter().for_each(|words| lab.ip(Host::Client, words));
    let seen = Seen::of_child(run);
    assert_eq!(seen.code, Some(5), "the threshold does not hold: {}", seen.err);
    let summary = seen.summary();
    for name in ["udp", "dccp", "quic", "tcp"] {
        let flow = &summary["runs"][0]["flows"][name];
        let ledger = flow["ledger"].as_object().unwrap();
        println!("{name}: {ledger:?}, {}", flow["breaks"]);
        let classes = ledger.iter().filter(|(class, _)| *class != "due");
        let sum: u64 = classes.map(|(_, count)| count.as_u64().unwrap()).sum();
        assert_eq!(ledger["due"].as_u64().unwrap(), sum, "{name}");
        assert_eq!(ledger["due"], 600, "{name}");
        let breaks = flow["breaks"].as_array().unwrap();
        assert!(!breaks.is_empty(), "{name} has no break");
    }
    let udp = &summary["runs"][0]["flows"]["udp"];
    let no_network = udp["ledger"]["no_network"].as_u64().unwrap();
    assert!((100..=170).contains(&no_network), "{no_network}");
    assert!(udp["loss_rate"].as_f64().unwrap() > 0.15 && udp["in_time"].as_f64().unwrap() < 0.85, "{udp}");
    assert!(udp["lost"].as_u64().unwrap() >= no_network && udp["refused"] == 0, "{udp}");
    assert!(seen.err.contains("flow udp: this host had no network for"), "{}", seen.err);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn what_a_device_that_is_down_does_not_take_is_lost_and_breaks_the_call() {
    through_an_outage(
        &["link set toserver down"],
        &["link set toserver up", "route replace default via 10.66.1.1"],
    );
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn what_has_no_address_to_leave_from_is_lost_and_breaks_the_call() {
    through_an_outage(
        &["addr del 10.66.1.2/24 dev toserver"],
        &["addr add 10.66.1.2/24 dev toserver", "route replace default via 10.66.1.1"],
    );
}
