//! Live runs between two network namespaces with an impairing bridge between: our counts equal those of the
//! bridge's own log and of a capture, exactly. Needs root and /dev/net/tun; a skip says why.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::bridge::{Bridge, FAR, Impairment, Namespace, Way, measured};
use crate::support::quiet::{skip, undisturbed};
use crate::support::{self, MACHINES, Serving, cbr, down, echo, echoed, run, scenario, voice};
use talkpath_config::{Carry, QuicConfig, TransportConfig};
use talkpath_live::{Limits, ServeOptions, Server};
use talkpath_measure::summary::LegSummary;
use talkpath_measure::{Fate, LegRecord, RunRecord};
use talkpath_model::{EchoWrite, Flow, Scenario, WorkloadConfig};
use talkpath_units::{Duration, Instant};

/// Counts of one leg.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    missing: usize,
    duplicates: usize,
    /// RFC 4737 §3: arrivals below one that came before.
    reordered: usize,
}

/// The counts of what `sent` and `arrived` say.
fn counts(sent: usize, arrived: &[u64]) -> Counts {
    let mut unique = arrived.to_vec();
    unique.sort_unstable();
    unique.dedup();
    let mut highest = 0;
    let mut reordered = 0;
    for &seq in arrived {
        reordered += usize::from(seq < highest);
        highest = highest.max(seq);
    }
    Counts { missing: sent - unique.len(), duplicates: arrived.len() - unique.len(), reordered }
}

/// The counts of first copies alone.
fn first_copies(arrived: &[u64]) -> Counts {
    let mut seen = BTreeSet::new();
    let first: Vec<u64> = arrived.iter().copied().filter(|&seq| seen.insert(seq)).collect();
    counts(first.len(), &first)
}

/// Lost, duplicate and reordered messages of one direction.
fn of_leg(leg: &LegSummary) -> (usize, usize, usize) {
    (leg.lost as usize, leg.duplicates as usize, leg.reordered as usize)
}

/// The counts that the record's own fates and copies say.
fn recorded(leg: &LegRecord) -> Counts {
    Counts {
        missing: leg.count(Fate::Missing),
        duplicates: leg.messages.iter().map(|row| (row.copies as usize).saturating_sub(1)).sum(),
        reordered: counts(usize::MAX, &leg.arrivals).reordered,
    }
}

/// A capture of one namespace's device.
struct Capture {
    child: Child,
    file: PathBuf,
}

impl Capture {
    /// Starts tcpdump where this thread is; `None` where it is not installed.
    fn start(file: PathBuf) -> Option<Self> {
        let mut child = Command::new("tcpdump")
            .args(["-i", "tp0", "-n", "-U", "--immediate-mode", "-B", "8192", "-Z", "root", "-w"])
            .arg(&file)
            .arg("udp")
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let mut errors = BufReader::new(child.stderr.take()?);
        while !line.contains("listening on") {
            line.clear();
            if errors.read_line(&mut line).ok()? == 0 {
                return None;
            }
        }
        // Whatever it says later must not block it.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Some(Self { child, file })
    }

    /// Ends it and gives the sequence numbers of measured datagrams that came to `address`, in order.
    fn finish(mut self, address: &str, size: usize) -> Vec<u64> {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap();
        arrived(&std::fs::read(&self.file).unwrap(), address, size)
    }
}

/// Reads a pcap file (draft-ietf-opsawg-pcap: 24 B of header, then 16 B before each packet) of raw IP
/// packets.
fn arrived(pcap: &[u8], address: &str, size: usize) -> Vec<u64> {
    let to = address.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let u32_at = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap());
    assert_eq!(u32_at(0), 0xa1b2_c3d4, "little-endian pcap with microseconds");
    assert!([12, 101].contains(&u32_at(20)), "LINKTYPE_RAW");
    let (mut at, mut seqs) = (24, Vec::new());
    while at + 16 <= pcap.len() {
        let length = u32_at(at + 8) as usize;
        let packet = &pcap[at + 16..at + 16 + length];
        if let Some(seq) = measured(packet, size).filter(|_| packet[16..20] == to) {
            seqs.push(u64::from(seq));
        }
        at += 16 + length;
    }
    seqs
}

struct Outcome {
    record: RunRecord,
    bridge: support::bridge::Log,
    /// What the capture saw arrive at the far host and at the near one.
    captured: Option<(Vec<u64>, Vec<u64>)>,
}

/// Runs `scenario` from the near namespace to a server in the far one. If that is not possible here, prints
/// why and returns `None`.
fn measure(impairment: Impairment, scenario: Scenario, name: &str) -> Option<Outcome> {
    let bridge = match Bridge::new(impairment) {
        Ok(bridge) => bridge,
        Err(why) => {
            println!("SKIP: no namespaces here: {why}");
            return None;
        }
    };
    let file = |side: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{side}.pcap"));
    let (near_file, far_file) = (file("near"), file("far"));
    let near = bridge.near.run(move || Capture::start(near_file));
    let far = bridge.far.run(move || Capture::start(far_file));
    if near.is_none() || far.is_none() {
        println!("SKIP of the comparison with a capture: tcpdump does not run here");
    }
    let address: SocketAddr = format!("{FAR}:7160").parse().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let served = bridge.far.start({
        let stop = Arc::clone(&stop);
        move || {
            let server = Server::bind(ServeOptions {
                bind: vec![address],
                machines: MACHINES,
                ..ServeOptions::default()
            });
            server.unwrap().run(&stop).unwrap();
        }
    });
    let record = bridge.near.run(move || {
        // The far thread binds meanwhile.
        let mut tries = 0;
        loop {
            match run(address, &scenario) {
                Err(error) if error.to_string().contains("refused the connection") && tries < 50 => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                result => return result,
            }
        }
    });
    stop.store(true, Ordering::Relaxed);
    served.recv().unwrap();
    let captured = far.zip(near).map(|(far, near)| {
        (far.finish(FAR, impairment.size), near.finish(support::bridge::NEAR, impairment.size))
    });
    Some(Outcome { record: record.unwrap(), bridge: bridge.log(), captured })
}

fn impaired(seed: u64) -> Impairment {
    Impairment {
        loss: 0.05,
        duplicate: 0.04,
        reorder: 0.06,
        extra: Duration::from_millis(17),
        seed,
        ..Impairment::delay(Duration::from_millis(10))
    }
}

#[test]
fn loss_duplicates_and_reordering_of_an_echo_equal_the_bridges_log_and_a_capture() {
    undisturbed(|| {
        // 300 messages, 5 ms apart.
        let flow = echo(cbr("call", "udp", 256, 160), EchoWrite::PerMessage);
        let Some(outcome) = measure(impaired(7), scenario(1500, vec![flow]), "echo") else { return };
        let flow = &outcome.record.flows[0];
        let (there, back) = (&flow.forward, flow.echo.as_ref().unwrap());
        assert_eq!(there.messages.len(), 300);
        assert!(there.messages.iter().all(|row| row.sent.is_some()));
        // The bridge took what we sent, in order, and gave what we received, in order: every loss, copy and
        // overtaking.
        assert_eq!(outcome.bridge.taken(Way::Up), (0..300).collect::<Vec<_>>());
        assert_eq!(there.arrivals, outcome.bridge.given(Way::Up));
        assert_eq!(
            outcome.bridge.taken(Way::Down),
            there.arrivals,
            "every arrival is echoed, duplicates too"
        );
        assert_eq!(back.arrivals, outcome.bridge.given(Way::Down));
        let up = counts(300, &outcome.bridge.given(Way::Up));
        let down = counts(back.messages.len(), &outcome.bridge.given(Way::Down));
        println!("bridge: up {up:?}, down {down:?}");
        assert!(up.missing > 0 && up.duplicates > 0 && up.reordered > 0, "the bridge impaired: {up:?}");
        assert_eq!(recorded(there), up);
        // No round trip is shorter than the bridge's delay: nothing left before the run began.
        for row in &back.messages {
            let due = there.messages[usize::try_from(row.seq).unwrap()].due;
            assert!(row.received.is_none_or(|received| received.since(due).as_millis() >= 20), "{}", row.seq);
        }
        // A message whose echo went out twice is one message: the duplicates of the way there come on top.
        assert_eq!(recorded(back).missing, down.missing);
        assert_eq!(recorded(back), down);
        let legs = flow.counters.legs.as_ref().unwrap();
        let (given_up, given_down) = (outcome.bridge.given(Way::Up), outcome.bridge.given(Way::Down));
        let copies = |given: &[u64], seq: u64| given.iter().filter(|&&it| it == seq).count();
        let out = (up.missing, up.duplicates, first_copies(&given_up).reordered);
        assert_eq!(of_leg(&legs.forward), out, "the way out");
        // What the way out doubled, the far host sent twice.
        let doubled = |seq| copies(&given_down, seq).saturating_sub(copies(&given_up, seq).max(1));
        let again = (down.missing, (0..300).map(doubled).sum(), first_copies(&given_down).reordered);
        assert_eq!(of_leg(legs.back.as_ref().unwrap()), again, "the way back");
        if let Some((far, near)) = &outcome.captured {
            println!("capture: up {:?}, down {:?}", counts(300, far), counts(back.messages.len(), near));
            assert_eq!(*far, there.arrivals);
            assert_eq!(*near, back.arrivals);
        }
        assert!(outcome.record.clock.trusted, "{}", outcome.record.clock.why);
        // One machine: whatever the probes say is the offset must be zero within what they claim to know.
        let clock = &outcome.record.clock;
        assert!(clock.offset_ms.unwrap().abs() <= clock.uncertainty_ms.unwrap());
    });
}

#[test]
fn counts_of_a_flow_downwards_equal_too() {
    undisturbed(|| {
        let flow = down(cbr("call", "udp", 256, 160));
        let Some(outcome) = measure(impaired(8), scenario(1000, vec![flow]), "down") else { return };
        let leg = &outcome.record.flows[0].forward;
        assert_eq!(leg.messages.len(), 200);
        assert_eq!(outcome.bridge.taken(Way::Down), (0..200).collect::<Vec<_>>());
        assert_eq!(leg.arrivals, outcome.bridge.given(Way::Down));
        let expected = counts(200, &outcome.bridge.given(Way::Down));
        println!("bridge: {expected:?}");
        assert!(expected.missing > 0 && expected.duplicates > 0 && expected.reordered > 0);
        assert_eq!(recorded(leg), expected);
        if let Some((_, near)) = &outcome.captured {
            assert_eq!(*near, leg.arrivals);
        }
    });
}

#[test]
fn an_address_of_one_link_is_reached_by_every_transport() {
    let host = match Namespace::of_one_link() {
        Ok(host) => host,
        Err(why) => return skip(format_args!("no namespaces here: {why}")),
    };
    let record = host.run(|| {
        // The interface of index 1 is loopback.
        let server = Serving::at("[fe80::1%1]:0", None, Limits::default());
        let calls = ["udp", "tcp", "quic-datagram"].map(|name| echoed(name, name));
        run(server.address, &scenario(200, calls.to_vec()))
    });
    for flow in &record.unwrap().flows {
        assert_eq!(flow.echo.as_ref().unwrap().count(Fate::Delivered), 10, "{}", flow.info.name);
    }
}

/// A call over UDP, one over TCP, and a bulk over TCP, for `ms`.
fn three_flows(ms: u64) -> Scenario {
    let calls = ["udp", "tcp-nodelay"].map(|name| echoed(name, name));
    let workload = WorkloadConfig::Bulk { bytes: None };
    let bulk = Flow { workload, ..voice("bulk", "tcp") };
    scenario(ms, calls.into_iter().chain([bulk]).collect())
}

#[test]
fn an_outage_of_the_path_is_a_break_of_each_flow_and_no_end_of_the_run() {
    undisturbed(|| {
        let outage = (Duration::from_secs(2), Duration::from_secs(6));
        let impairment = Impairment { outage: Some(outage), ..Impairment::delay(Duration::from_millis(5)) };
        let Some(outcome) = measure(impairment, three_flows(14_000), "outage") else { return };
        let record = &outcome.record;
        for flow in &record.flows {
            let breaks = &flow.counters.breaks;
            assert_eq!(breaks.len(), 1, "{}: {breaks:?}", flow.info.name);
            // TCP sends again when its timeout has doubled past the outage, up to as much later.
            let length = breaks[0].to.unwrap().since(breaks[0].from).as_millis();
            assert!((3_900..8_500).contains(&length), "{}: {breaks:?}", flow.info.name);
        }
        let warnings = record.warnings.join("\n");
        assert!(warnings.contains("the far end was silent for"), "{warnings}");
        assert!(record.clock.trusted, "{}", record.clock.why);
    });
}

#[test]
fn a_ticket_of_a_connection_before_the_run_saves_a_round_trip() {
    undisturbed(|| {
        let mut received = [Instant::ZERO; 2];
        for (zero_rtt, received) in [true, false].into_iter().zip(&mut received) {
            let config = QuicConfig { zero_rtt, ..QuicConfig::new(Carry::Datagram) };
            let call = Flow { transport: TransportConfig::Quic(config), ..voice("call", "quic-datagram") };
            let scenario = scenario(1000, vec![echo(call, EchoWrite::PerMessage)]);
            let Some(outcome) = measure(Impairment::delay(Duration::from_millis(40)), scenario, "early")
            else {
                return;
            };
            let flow = &outcome.record.flows[0];
            let leg = &flow.forward;
            assert!(leg.messages.iter().all(|row| row.fate == Fate::Delivered), "0-RTT {zero_rtt}");
            *received = leg.messages[0].received.unwrap();
        }
        let [with, without] = received;
        // One way, with what the machine and the comparison of the clocks add.
        assert!(with < Instant::from_millis(65), "{with}");
        assert!(without.since(with) >= Duration::from_millis(60), "{with} with 0-RTT, {without} without");
    });
}

#[test]
fn a_path_that_drops_large_packets_stops_the_bulk_alone_and_it_says_so() {
    undisturbed(|| {
        let impairment = Impairment { largest: 1200, ..Impairment::delay(Duration::from_millis(5)) };
        let Some(outcome) = measure(impairment, three_flows(4_000), "black-hole") else { return };
        let [udp, tcp, bulk] = &outcome.record.flows[..] else { panic!() };
        for flow in [udp, tcp] {
            assert_eq!(flow.counters.breaks, [], "{}", flow.info.name);
            assert!(
                flow.forward.messages.iter().all(|row| row.fate == Fate::Delivered),
                "{}",
                flow.info.name
            );
        }
        let breaks = &bulk.counters.breaks;
        assert_eq!(breaks.len(), 1, "{breaks:?}");
        assert_eq!(breaks[0].to, None);
        assert!(breaks[0].why.contains("nothing came any more"), "it was open, and not given up: {breaks:?}");
        assert!(bulk.counters.timeouts > Some(0));
    });
}

/// RFC 4340 §1.1: what the network copies or turns round reaches the application so, as it does over UDP.
#[test]
fn what_dccp_loses_and_overtakes_equals_the_bridges_log() {
    undisturbed(|| {
        let flows = ["dccp-ccid2", "dccp-ccid3", "dccp-ccid4"];
        let outcomes = std::thread::scope(|scope| {
            let start = |(name, seed): (&'static str, u64)| {
                let scenario = scenario(2500, vec![cbr("call", name, 64, 160)]);
                scope.spawn(move || measure(impaired(seed), scenario, name))
            };
            let runs: Vec<_> = flows.into_iter().zip(11..).map(start).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
        });
        for (name, outcome) in flows.into_iter().zip(outcomes) {
            let Some(outcome) = outcome else { return };
            let leg = &outcome.record.flows[0].forward;
            // What the congestion control still held at the end never left.
            let left: Vec<u64> =
                leg.messages.iter().filter(|row| row.wire.is_some()).map(|row| row.seq).collect();
            assert!(left.len() > 50, "{name}: {}", left.len());
            assert_eq!(outcome.bridge.taken(Way::Up), left, "{name}: each once, in order");
            let given = outcome.bridge.given(Way::Up);
            assert_eq!(leg.arrivals, given, "{name}");
            let expected = counts(left.len(), &given);
            println!("{name}: {expected:?}");
            assert!(expected.missing > 0 && expected.duplicates > 0, "{name}: the bridge impaired");
            assert_eq!(recorded(leg), expected, "{name}");
        }
    });
}

/// A segment that waits behind a lost one carries a stamp of when it came; the wait is the network's all the
/// same.
#[test]
fn what_a_stream_waits_behind_a_lost_segment_is_not_the_far_hosts_turn_round() {
    undisturbed(|| {
        let impairment =
            Impairment { tcp_loss: 0.03, seed: 4, ..Impairment::delay(Duration::from_millis(100)) };
        let flow = echoed("call", "tcp-nodelay");
        // Which packets are lost depends on their order. In 3 s a lost SYN left 72 messages, and none waited.
        let Some(outcome) = measure(impairment, scenario(6000, vec![flow]), "behind") else { return };
        let there = &outcome.record.flows[0].forward.messages;
        let late = |row: &&talkpath_measure::MessageRecord| {
            row.received.is_some_and(|at| at.since(row.due) > Duration::from_millis(250))
        };
        let late = there.iter().filter(late).count();
        assert!(late > there.len() / 20, "{late} of {} waited behind a lost segment", there.len());
        let turns = &outcome.record.machine.as_ref().unwrap().turn_rounds[0];
        println!("{late} of {} waited; {turns:?}", there.len());
        assert_eq!((turns.flow.as_str(), turns.count), ("call", there.len() as u64));
        assert!(turns.p99 < Duration::from_millis(100), "{turns:?}");
    });
}

/// RFC 3168: the receiver of datagrams reads their marks, and a kernel's TCP counts what was delivered under
/// the echo of one.
#[test]
fn what_the_path_marks_is_what_the_hosts_say_of_marks() {
    undisturbed(|| {
        let with_ecn = |mut flow: Flow| {
            match &mut flow.transport {
                TransportConfig::Udp(config) => config.ecn = true,
                TransportConfig::Tcp(config) => config.ecn = true,
                TransportConfig::Encapsulated(_) | TransportConfig::Quic(_) => {}
            }
            flow
        };
        let marking = Impairment { mark: 0.2, seed: 5, ..Impairment::delay(Duration::from_millis(5)) };
        let run = |flow, name| measure(marking, scenario(1500, vec![flow]), name);
        let call = echo(with_ecn(cbr("call", "udp", 64, 160)), EchoWrite::PerMessage);
        let Some(outcome) = run(call, "marks-udp") else { return };
        let of = |way| Some(outcome.bridge.marked.iter().filter(|marked| **marked == way).count() as u64);
        let ecn = outcome.record.flows[0].ecn.unwrap();
        println!("{ecn:?}");
        assert!(of(Way::Up) > Some(3) && of(Way::Down) > Some(3), "{:?}", outcome.bridge.marked);
        assert_eq!((ecn.marked_forward, ecn.marked_return), (of(Way::Up), of(Way::Down)));
        assert_eq!((ecn.capable, ecn.echoed_forward), (Some(true), None));
        // A flow that does not want marks has none.
        let outcome = run(cbr("call", "udp", 64, 160), "marks-none").unwrap();
        assert_eq!((outcome.record.flows[0].ecn, outcome.bridge.marked.len()), (None, 0));
        for direction in [|flow| flow, down] {
            let flow = with_ecn(direction(cbr("call", "tcp-nodelay", 256, 160)));
            let outcome = run(flow, "marks-tcp").unwrap();
            let ecn = outcome.record.flows[0].ecn.unwrap();
            println!("{ecn:?}");
            let marked = outcome.bridge.marked.len() as u64;
            assert!(marked > 3 && ecn.echoed_forward >= Some(marked), "{marked} {ecn:?}");
            assert_eq!((ecn.capable, ecn.marked_forward), (Some(true), None));
        }
    });
}

/// RFC 1122 §4.1.3.4: a datagram with a wrong checksum is discarded. The path lost it, not the host.
#[test]
fn a_datagram_that_the_path_damages_is_missing_and_no_sign_of_a_full_socket() {
    undisturbed(|| {
        let impairment = Impairment { corrupt: 0.2, seed: 21, ..Impairment::delay(Duration::from_millis(1)) };
        let call = echo(cbr("call", "udp", 64, 160), EchoWrite::PerMessage);
        let Some(outcome) = measure(impairment, scenario(2000, vec![call]), "damaged") else { return };
        let of = |way| outcome.bridge.corrupted.iter().filter(|entry| entry.0 == way).count();
        let (up, down) = (of(Way::Up), of(Way::Down));
        assert!(up > 5 && down > 5, "{up} and {down}");
        let call = &outcome.record.flows[0];
        assert_eq!(recorded(&call.forward).missing, up);
        assert_eq!(recorded(call.echo.as_ref().unwrap()).missing, down);
        let machine = outcome.record.machine.as_ref().unwrap();
        assert_eq!(machine.socket_drops, Some(0), "{:?}", outcome.record.warnings);
        assert_eq!(
            (machine.checksum_errors, machine.far_checksum_errors),
            (Some(down as u64), Some(up as u64))
        );
        let told = |part: &str| outcome.record.warnings.iter().filter(|line| line.contains(part)).count();
        assert_eq!((told("wrong checksum"), told("no room")), (2, 0), "{:?}", outcome.record.warnings);
    });
}

#[test]
fn a_strangers_damaged_datagram_is_no_word_against_the_run() {
    undisturbed(|| {
        let impairment = Impairment { forged: 3, ..Impairment::delay(Duration::from_millis(1)) };
        let Some(outcome) = measure(impairment, scenario(500, vec![cbr("call", "udp", 64, 160)]), "forged")
        else {
            return;
        };
        let machine = outcome.record.machine.as_ref().unwrap();
        assert_eq!((machine.socket_drops, machine.far_checksum_errors), (Some(0), Some(3)));
        assert_eq!(recorded(&outcome.record.flows[0].forward).missing, 0);
        assert!(!outcome.record.warnings.iter().any(|line| line.contains("no room")));
    });
}

/// docs/reference/interface.md: a connection opens at `start` and its first message is due when it is open.
#[test]
fn flows_start_in_time_on_a_long_path_and_a_first_message_waits_for_its_connection_only() {
    undisturbed(|| {
        let streams = ["tcp", "tcp-nodelay"]
            .into_iter()
            .flat_map(|name| [echoed(&format!("{name} up"), name), down(voice(name, name))]);
        let flows = streams.chain([voice("udp", "udp"), down(voice("udp down", "udp"))]).collect();
        let impairment = Impairment::delay(Duration::from_millis(150));
        let Some(outcome) = measure(impairment, scenario(1500, flows), "first") else { return };
        // In round trips. What a run that begins before its threads would take is a half more, and so is a
        // word between the hosts; what Nagle's wait for an acknowledgement takes, or an exchange before the
        // message, a whole one.
        let within = |taken: Duration, from: f64, to: f64| (from..to).contains(&(taken.as_secs_f64() / 0.3));
        for flow in &outcome.record.flows {
            let (name, first) = (&flow.info.name, &flow.forward.messages[0]);
            let opened = first.due.since(Instant::ZERO);
            let handed_over = first.sent.unwrap().since(first.due);
            let there = first.received.unwrap().since(first.due);
            println!("{name}: due after {opened}, handed over {handed_over} and there {there} later");
            let is_up = !name.contains("down") && (name.contains("up") || name == "udp");
            // The far host's stamps are known to within a few ms.
            let takes = match (flow.info.transport.as_str(), is_up) {
                ("udp", _) => 0.0,
                (_, true) => 1.0,
                (_, false) => 1.45,
            };
            assert!(within(opened, takes, takes + 0.45), "{name}: {opened}");
            assert!(within(handed_over, 0.0, 0.4), "{name}: {handed_over}");
            assert!(within(there, 0.45, 0.95), "{name}: {there}");
            if let Some(back) = &flow.echo {
                let back = back.messages[0].received.unwrap().since(first.due);
                assert!(within(back, 1.0, 1.45), "{name}: back {back}");
            }
        }
    });
}

#[test]
fn a_stream_over_a_lossy_path_loses_nothing_and_counts_its_retransmissions() {
    undisturbed(|| {
        let impairment =
            Impairment { tcp_loss: 0.03, seed: 9, ..Impairment::delay(Duration::from_millis(5)) };
        let flow = cbr("call", "tcp-nodelay", 256, 160);
        let Some(outcome) = measure(impairment, scenario(1500, vec![flow]), "stream") else { return };
        let flow = &outcome.record.flows[0];
        // The connection takes a round trip of 10 ms, more where one of its segments is lost: the first of
        // what would be 300 messages is due after that.
        let messages = &flow.forward.messages;
        assert!(messages[0].due >= Instant::from_millis(10), "{}", messages[0].due);
        assert!((50..=298).contains(&messages.len()), "{}", messages.len());
        assert!(messages.iter().all(|row| row.fate == Fate::Delivered));
        let counters = &flow.counters;
        println!("data packets {:?}, retransmissions {:?}", counters.data_packets, counters.retransmissions);
        assert!(counters.retransmissions.unwrap() > 0 && counters.data_packets.unwrap() >= 50);
        assert!(counters.cwnd_packets_mean.unwrap() >= 1.0);
        assert!(outcome.record.series.iter().any(|series| series.kind == talkpath_measure::SeriesKind::Srtt
            && series.points.iter().any(|point| point.1 >= 10.0)));
    });
}
