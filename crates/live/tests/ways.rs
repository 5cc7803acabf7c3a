//! Ways of UDP that do not open, open late, or change: over loopback, with a relay between.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use talkpath_arena::ArenaError;
use talkpath_measure::{FlowRecord, RunRecord};
use talkpath_path::{Change, ChangeTimes, LinkValues};

use crate::support::relay::Relay;
use crate::support::{Serving, down, echoed, run, scenario, voice};

/// How many messages came to the end of their way.
fn received(flow: &FlowRecord) -> usize {
    flow.echo.as_ref().unwrap_or(&flow.forward).messages.iter().filter(|row| row.received.is_some()).count()
}

fn says(record: &RunRecord, part: &str) -> bool {
    record.warnings.iter().any(|line| line.contains(part))
}

/// Sets `flag` to `value` after a while, meanwhile runs.
fn while_set(
    flag: &Arc<AtomicBool>,
    after: Duration,
    value: bool,
    run: impl FnOnce() -> RunRecord,
) -> RunRecord {
    let flag = Arc::clone(flag);
    thread::spawn(move || {
        thread::sleep(after);
        flag.store(value, Ordering::Relaxed);
    });
    run()
}

#[test]
fn a_scenario_whose_path_changes_is_refused_before_anything_is_sent() {
    let when = ChangeTimes { first: Duration::from_millis(100).into(), every: None, random_phase: false };
    let to = LinkValues { delay: Some(Duration::from_millis(9).into()), ..LinkValues::default() };
    let change = Change { link: 0, when, to, ramp: None, outage: None, overtake: false };
    let mut scenario = scenario(200, vec![voice("call", "udp")]);
    scenario.changes = vec![change];
    let server = Serving::loopback();
    let Err(ArenaError::Unsupported(why)) = run(server.address, &scenario) else { panic!("it ran") };
    assert!(why.contains("[[change]] tables, which a real network does not follow"), "{why}");
    assert!(why.contains("--arena sim or emu"), "{why}");
}

#[test]
fn where_no_datagram_gets_through_flows_over_tcp_are_measured_and_the_others_are_named() {
    let server = Serving::loopback();
    let relay = Relay::default();
    relay.drops_datagrams.store(true, Ordering::Relaxed);
    let address = relay.start(server.address);
    let flows = ["udp", "tcp", "quic-datagram", "dccp-ccid2"]
        .map(|name| echoed(name, name))
        .into_iter()
        .chain([down(voice("down", "udp"))]);
    let record = run(address, &scenario(1000, flows.collect())).unwrap();
    for flow in &record.flows {
        let name = &flow.info.name;
        let is_open = name == "tcp";
        assert_eq!(received(flow) > 40, is_open, "{name}");
        let port = address.port();
        let line = format!("flow {name}: did not open: nothing came back over UDP port {port}");
        assert_eq!(says(&record, &line), !is_open, "{line} in {:?}", record.warnings);
    }
}

#[test]
fn datagrams_that_are_let_through_later_open_their_flows_during_the_run() {
    let server = Serving::loopback();
    let relay = Relay::default();
    relay.drops_datagrams.store(true, Ordering::Relaxed);
    let drops = Arc::clone(&relay.drops_datagrams);
    let address = relay.start(server.address);
    let flows = vec![echoed("echo", "udp"), down(voice("down", "udp"))];
    // They are waited for before the run as well.
    let record =
        while_set(&drops, Duration::from_secs(4), false, || run(address, &scenario(5000, flows)).unwrap());
    for flow in &record.flows {
        assert!((20..=240).contains(&received(flow)), "{}: {}", flow.info.name, received(flow));
    }
    assert!(!says(&record, "did not open"), "{:?}", record.warnings);
}

#[test]
fn flows_that_a_translator_gives_another_port_register_anew_after_a_second_and_quic_goes_on_at_once() {
    let server = Serving::loopback();
    let relay = Relay::default();
    let forgets = Arc::clone(&relay.forgets);
    let address = relay.start(server.address);
    let flows = vec![
        echoed("echo", "udp"),
        voice("up", "udp"),
        down(voice("down", "udp")),
        echoed("dccp", "dccp-ccid2"),
        echoed("quic", "quic-datagram"),
    ];
    let record =
        while_set(&forgets, Duration::from_secs(2), true, || run(address, &scenario(6000, flows)).unwrap());
    for flow in &record.flows {
        let name = &flow.info.name;
        // Of 300, those of a second or two are lost; of QUIC those that were on their way back.
        let expected = if name == "quic" { 290..=300 } else { 150..=290 };
        assert!(expected.contains(&received(flow)), "{name}: {}", received(flow));
        assert!(
            says(&record, &format!("flow {name}: its address or port changed once")),
            "{:?}",
            record.warnings
        );
    }
    assert!(says(
        &record,
        "flow quic: its address or port changed once during the run; the QUIC connection followed"
    ));
}

/// The server lets other strangers go after 2 s without a word.
#[test]
fn a_flow_whose_opening_line_is_lost_for_long_goes_on_as_soon_as_it_comes() {
    let server = Serving::loopback();
    let relay = Relay { opening_takes: Duration::from_secs(4), ..Relay::default() };
    let address = relay.start(server.address);
    let record = run(address, &scenario(6000, vec![voice("tcp", "tcp-nodelay")])).unwrap();
    // All but those that were due before the client's end had opened.
    assert!(received(&record.flows[0]) >= 280, "{}: {:?}", received(&record.flows[0]), record.warnings);
}
