//! Live runs over loopback: every transport, both directions, both kinds of flow.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use crate::support::quiet::undisturbed;
use crate::support::relay::Relay;
use crate::support::{Serving, TRANSPORTS, cbr, down, echo, echoed, run, scenario, usual_cc, voice};
use talkpath_arena::ArenaError;
use talkpath_config::{Carry, QuicConfig, TransportConfig};
use talkpath_measure::summarise::summarise_flow;
use talkpath_measure::summary::{IpSeen, MultipathSummary};
use talkpath_measure::{Fate, FlowRecord, RunRecord, SeriesKind};
use talkpath_model::{Dscp, Due, EchoWrite, Flow, Scenario, WorkloadConfig};
use talkpath_units::{Bytes, Duration, Instant};

/// Every message of every flow arrived, and its echo, in order, no earlier than it was sent.
fn assert_whole(record: &RunRecord) {
    for flow in &record.flows {
        for row in flow.echo.iter().flat_map(|leg| &leg.messages) {
            let due = flow.forward.messages[usize::try_from(row.seq).unwrap()].due;
            assert!(row.received.unwrap() > due, "{}: a round trip takes time", flow.info.name);
        }
        let legs = [Some(&flow.forward), flow.echo.as_ref()];
        for leg in legs.into_iter().flatten() {
            let name = &flow.info.name;
            assert_eq!(leg.messages.len(), flow.forward.messages.len(), "{name}");
            let odd: Vec<_> =
                leg.messages.iter().filter(|row| row.fate != Fate::Delivered || row.copies != 1).collect();
            assert!(odd.is_empty(), "{name}: {odd:?}; {:?}", record.warnings);
            assert!(leg.arrivals.is_sorted(), "{name}");
            for row in &leg.messages {
                let (sent, received) = (row.sent.unwrap(), row.received.unwrap());
                assert!(row.due <= sent, "{name}: due {} sent {sent}", row.due);
                // One machine, two anchors of one clock.
                assert!(
                    received.as_nanos() + uncertainty_ns(record) > sent.as_nanos(),
                    "{name}: sent {sent}, received {received}"
                );
                assert!(
                    // The link takes none of it: what is more than a moment is the machine's, unless clocks
                    // are mixed up.
                    received.since(row.due).as_millis() < 5_000,
                    "{name}: due {}, received {received}",
                    row.due
                );
            }
        }
    }
}

/// What the correction of the far host's clock is good for, by its own word.
fn uncertainty_ns(record: &RunRecord) -> u64 {
    1_000_000 + (record.clock.uncertainty_ms.unwrap() * 1e6) as u64
}

/// A run whose first flow passes: a busy machine may hold our threads up for the whole of a short run, but
/// not always.
fn in_time(server: &Serving, scenario: &Scenario, passes: impl Fn(&FlowRecord) -> bool) -> RunRecord {
    for _ in 0..10 {
        let record = run(server.address, scenario).unwrap();
        if passes(&record.flows[0]) {
            return record;
        }
    }
    panic!("not in ten runs");
}

/// 20 messages in 400 ms, fewer where a busy machine opens a connection late.
fn whole_runs(address: std::net::SocketAddr, flow: impl Fn(&str) -> Flow) {
    let flows = TRANSPORTS.map(flow).to_vec();
    let record = run(address, &scenario(400, flows)).unwrap();
    assert_whole(&record);
    for flow in &record.flows {
        let open = flow.forward.messages[0].due;
        let frames = Duration::from_millis(400)
            .saturating_sub(open.since(Instant::ZERO))
            .as_nanos()
            .div_ceil(20_000_000);
        assert_eq!(flow.forward.messages.len() as u64, frames, "{}, open at {open}", flow.info.name);
        assert!(frames >= 10);
    }
    assert!(record.clock.trusted, "{}", record.clock.why);
    assert!(record.clock.uncertainty_ms.unwrap() < 50.0);
}

#[test]
fn a_datagram_of_this_host_is_stamped_when_it_leaves() {
    undisturbed(|| {
        let server = Serving::loopback();
        let flows = vec![voice("up", "udp"), down(echoed("answer", "udp"))];
        let record = run(server.address, &scenario(400, flows)).unwrap();
        let sent_here = [&record.flows[0].forward, record.flows[1].echo.as_ref().unwrap()];
        for leg in sent_here {
            assert!(leg.messages.len() >= 19);
            for row in &leg.messages {
                let (sent, wire, received) = (row.sent.unwrap(), row.wire.unwrap(), row.received.unwrap());
                // The stamp is CLOCK_REALTIME, turned into an age on another clock: to a few us.
                assert!(sent.as_nanos() < wire.as_nanos() + 50_000, "sent {sent}, left {wire}");
                assert!(
                    wire.as_nanos() < received.as_nanos() + uncertainty_ns(&record),
                    "left {wire}, received {received}"
                );
                assert_eq!(row.transmissions, 1);
            }
        }
        assert!(
            record.flows[1].forward.messages.iter().all(|row| row.wire.is_none()),
            "the far host does not tell"
        );
    });
}

#[test]
fn dscp_ttl_and_path_mtu_are_seen_in_both_directions() {
    let server = Serving::loopback();
    let marked = |name: &str, dscp: &str| Flow { dscp: Dscp::named(dscp), ..voice(name, name) };
    let flows = vec![
        echo(marked("udp", "EF"), EchoWrite::PerMessage),
        down(echo(marked("dccp-ccid2", "AF41"), EchoWrite::PerMessage)),
        echo(marked("tcp", "CS5"), EchoWrite::PerMessage),
        voice("plain", "udp"),
    ];
    let record = run(server.address, &scenario(300, flows)).unwrap();
    let ip = |flow: usize| record.flows[flow].counters.ip.clone().unwrap();
    let names = |seen: &IpSeen| seen.dscp.iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    for (flow, dscp) in [(0, "EF"), (1, "AF41")] {
        let (ip, all) = (ip(flow), record.flows[flow].forward.messages.len() as u64);
        let back = ip.back.as_ref().unwrap();
        assert_eq!(
            (ip.dscp.as_deref(), names(&ip.forward), names(back)),
            (Some(dscp), vec![dscp.into()], vec![dscp.into()])
        );
        let count = |seen: &IpSeen| seen.dscp.as_ref().unwrap()[dscp];
        assert!(count(&ip.forward) >= all && count(back) >= all, "{ip:?} of {all}");
        assert!(ip.forward.ecn.as_ref().unwrap()["not-ect"] >= all);
        // Of a host's own packets no hop is taken.
        assert_eq!((back.ttl_min, back.ttl_max), (Some(64), Some(64)));
    }
    // The loopback device takes 64 KiB, an IPv4 packet has a byte less at most; who is connected knows it.
    let mtus =
        |flow: usize| (ip(flow).forward.path_mtu_bytes, ip(flow).back.and_then(|back| back.path_mtu_bytes));
    assert_eq!(
        (mtus(0), mtus(1), mtus(2)),
        ((Some(65_535), None), (None, Some(65_535)), (Some(65_535), Some(65_535)))
    );
    assert_eq!(ip(2).forward.dscp, Some([].into()), "a stream shows no headers");
    assert_eq!((ip(3).dscp, names(&ip(3).forward)), (None, vec!["CS0".to_owned()]));
    assert!(!record.warnings.iter().any(|line| line.contains("DSCP")), "{:?}", record.warnings);
}

/// A host that stands still for 4 ms again and again sends late, and finds late what came. What it took for
/// its echoes is no part of the round trip. What its sender took is, so then the run must not be valid.
#[test]
fn a_host_that_is_late_does_not_pass_for_the_path() {
    let server = Serving::loopback();
    let scenario = scenario(1000, vec![echoed("call", "udp")]);
    let mut was_late = false;
    for _ in 0..3 {
        let pulses =
            "sleep 0.3; for i in $(seq 50); do kill -STOP $0; sleep 0.004; kill -CONT $0; sleep 0.01; done";
        let own = std::process::id().to_string();
        let mut stopper = std::process::Command::new("sh").args(["-c", pulses, &own]).spawn().unwrap();
        let record = run(server.address, &scenario).unwrap();
        stopper.wait().unwrap();
        let summary = summarise_flow(&record.flows[0], &(record.window_start..record.window_end));
        let p99 = summary.round_trip_delay_ms.unwrap().p99;
        assert!(p99 < 1.0 || !record.valid, "p99 of {p99} ms, {:?}", record.warnings);
        was_late |= record.machine.unwrap().senders_late.unwrap().p99 > Duration::from_millis(1);
    }
    assert!(was_late, "it was to be late by some milliseconds");
}

#[test]
fn an_echo_comes_back_whole_over_every_transport() {
    undisturbed(|| {
        let server = Serving::loopback();
        whole_runs(server.address, |name| echoed(name, name));
        whole_runs(server.address, |name| echo(voice(name, name), EchoWrite::PerRead));
    });
}

#[test]
fn a_message_goes_up_and_down_over_every_transport() {
    undisturbed(|| {
        let server = Serving::loopback();
        whole_runs(server.address, |name| voice(name, name));
        whole_runs(server.address, |name| down(voice(name, name)));
        whole_runs(server.address, |name| down(echo(voice(name, name), EchoWrite::PerRead)));
    });
}

#[test]
fn small_messages_carry_what_fits() {
    undisturbed(|| {
        let server = Serving::loopback();
        for size in [1, 2, 4, 7, 8] {
            // 20 messages in 200 ms.
            let flow = echo(
                cbr("small", "udp", size * 8 / 10 + u64::from(size * 8 % 10 != 0), size),
                EchoWrite::PerMessage,
            );
            let record =
                in_time(&server, &scenario(200, vec![flow]), |flow| flow.forward.messages.len() > 10);
            assert_whole(&record);
        }
    });
}

#[test]
fn bulk_arrives_byte_for_byte_in_both_directions_beside_a_call() {
    undisturbed(|| {
        let server = Serving::loopback();
        let bulk = |name: &str| Flow {
            workload: WorkloadConfig::Bulk { bytes: Some(Bytes::new(3_000_001)) },
            ..voice(name, "tcp")
        };
        let flows = vec![bulk("upload"), down(bulk("download")), echoed("call", "udp")];
        let record = run(server.address, &scenario(400, flows)).unwrap();
        for flow in &record.flows[..2] {
            let leg = &flow.forward;
            assert!(leg.messages.iter().all(|row| row.fate == Fate::Delivered), "{}", flow.info.name);
            assert_eq!(leg.messages.iter().map(|row| row.size.get()).sum::<u64>(), 3_000_001);
            assert_eq!(leg.reads.iter().map(|read| read.1.get()).sum::<u64>(), 3_000_001);
            assert!(flow.counters.data_packets.unwrap() > 10 && flow.info.bounded);
            assert_eq!(flow.info.cc.as_deref(), Some(usual_cc().name()));
        }
        assert_eq!(record.flows[2].echo.as_ref().unwrap().arrivals.len(), 20);
    });
}

#[test]
fn unlimited_bulk_stops_at_the_duration_and_counts_the_time_it_waited_for_room() {
    undisturbed(|| {
        let server = Serving::loopback();
        let flow = Flow { workload: WorkloadConfig::Bulk { bytes: None }, ..voice("upload", "tcp") };
        let scenario = scenario(300, vec![flow]);
        let record = in_time(&server, &scenario, |flow| flow.counters.send_buffer_max.unwrap() > 0);
        let flow = &record.flows[0];
        let last = flow.forward.messages.iter().map(|row| row.due).max().unwrap();
        assert!(last.as_nanos() < 300_000_000, "{last}");
        assert!(flow.forward.messages.iter().all(|row| row.fate == Fate::Delivered));
        assert!(flow.counters.blocked.unwrap() <= Duration::from_millis(300));
    });
}

#[test]
fn bursts_leave_as_fast_as_there_is_room() {
    undisturbed(|| {
        let server = Serving::loopback();
        for transport in ["udp", "tcp"] {
            let workload = WorkloadConfig::Burst {
                count: 50,
                size: Bytes::new(500),
                repeat: 3,
                gap: Duration::from_millis(60),
            };
            let flow = Flow { workload, ..voice("burst", transport) };
            let record = run(server.address, &scenario(400, vec![flow])).unwrap();
            let rows = &record.flows[0].forward.messages;
            assert_eq!(rows.len(), 150, "{transport}");
            assert!(rows.iter().all(|row| row.fate == Fate::Delivered), "{transport}");
            let gap = rows[50].due.since(rows[49].due);
            assert!(gap >= Duration::from_millis(60), "{transport}: {gap}");
        }
    });
}

#[test]
fn bulk_over_dccp_goes_both_ways_under_its_congestion_control() {
    undisturbed(|| {
        let server = Serving::loopback();
        for name in ["dccp-ccid2", "dccp-ccid3", "dccp-ccid4"] {
            let bulk = |bytes| Flow { workload: WorkloadConfig::Bulk { bytes }, ..voice(name, name) };
            let flows =
                vec![bulk(Some(Bytes::new(30_001))), down(bulk(Some(Bytes::new(30_001)))), bulk(None)];
            let record = run(server.address, &scenario(2000, flows)).unwrap();
            for flow in &record.flows[..2] {
                let leg = &flow.forward;
                assert!(leg.messages.iter().all(|row| row.fate != Fate::Refused), "{name}");
                assert_eq!(leg.messages.iter().map(|row| row.size.get()).sum::<u64>(), 30_001, "{name}");
                // One message a packet: 1500 B less 60 B of headers.
                assert!(leg.messages.iter().rev().skip(1).all(|row| row.size.get() == 1440), "{name}");
                let delivered = leg.count(Fate::Delivered);
                let losses = leg.count(Fate::Missing);
                assert_eq!(delivered + losses, leg.messages.len(), "{name}: all left");
                assert!(delivered > 0, "{name}: {:?}", record.warnings);
            }
            let endless = &record.flows[2];
            let last = endless.forward.messages.iter().map(|row| row.due).max().unwrap();
            assert!(last.as_nanos() < 2_000_000_000, "{name}: {last}");
            assert!(endless.forward.arrivals.len() > 20, "{name}: {}", endless.forward.arrivals.len());
            assert_eq!(endless.counters.retransmissions, None, "{name} never resends");
            assert_eq!(endless.counters.cwnd_packets_mean.is_some(), name == "dccp-ccid2");
        }
    });
}

#[test]
fn a_dccp_message_says_when_it_left_at_either_end() {
    undisturbed(|| {
        let server = Serving::loopback();
        let flow = echoed("call", "dccp-ccid2");
        let record = run(server.address, &scenario(400, vec![flow])).unwrap();
        let flow = &record.flows[0];
        for row in flow.forward.messages.iter().chain(&flow.echo.as_ref().unwrap().messages) {
            assert!(row.sent.unwrap() <= row.wire.unwrap(), "{row:?}");
            assert_eq!(row.transmissions, 1);
        }
    });
}

/// A transfer takes no more than the connection lets it, and what carries it cuts the messages.
#[test]
fn bulk_over_quic_goes_both_ways_whatever_carries_it() {
    undisturbed(|| {
        let server = Serving::loopback();
        for name in &TRANSPORTS[6..] {
            let bulk = |bytes| Flow { workload: WorkloadConfig::Bulk { bytes }, ..voice(name, name) };
            let flows =
                vec![bulk(Some(Bytes::new(300_001))), down(bulk(Some(Bytes::new(300_001)))), bulk(None)];
            let record = run(server.address, &scenario(2000, flows)).unwrap();
            for flow in &record.flows[..2] {
                let leg = &flow.forward;
                assert!(leg.messages.iter().all(|row| row.fate != Fate::Refused), "{name}");
                assert_eq!(leg.messages.iter().map(|row| row.size.get()).sum::<u64>(), 300_001, "{name}");
                let delivered = leg.count(Fate::Delivered);
                // A socket of this host may be full; streams send again what it had no room for.
                let least =
                    if *name == "quic-datagram" { leg.messages.len() / 2 } else { leg.messages.len() };
                assert!(delivered >= least, "{name}: {delivered} of {}", leg.messages.len());
                assert_eq!(flow.info.cc.as_deref(), Some("cubic"));
            }
            // Those of the far sender come over the control connection.
            for kind in [SeriesKind::Pto, SeriesKind::BytesInFlight, SeriesKind::LostPackets] {
                let lines = record.series.iter().filter(|line| line.kind == kind).count();
                assert_eq!(lines, 3, "{name}: {kind:?}");
            }
            let endless = &record.flows[2];
            let last = endless.forward.messages.iter().map(|row| row.due).max().unwrap();
            assert!(last.as_nanos() < 2_000_000_000, "{name}: {last}");
            let moved: u64 = endless.forward.messages.iter().map(|row| row.size.get()).sum();
            assert!(moved > 1_000_000, "{name}: {moved}");
            assert!(endless.counters.cwnd_packets_mean.unwrap() > 1.0, "{name}");
        }
    });
}

/// `flow` over QUIC in the connection `one`.
fn sharing(flow: Flow, carry: Carry) -> Flow {
    let config = QuicConfig { connection: Some("one".to_owned()), ..QuicConfig::new(carry) };
    Flow { transport: TransportConfig::Quic(config), ..flow }
}

#[test]
fn a_call_and_a_transfer_share_a_connection_in_either_direction_and_have_their_own_counts() {
    undisturbed(|| {
        let server = Serving::loopback();
        for (call, transfer) in [
            (Carry::Datagram, Carry::Stream),
            (Carry::StreamPerMessage, Carry::Datagram),
            (Carry::Stream, Carry::StreamPerMessage),
        ] {
            for is_down in [false, true] {
                let workload = WorkloadConfig::Bulk { bytes: Some(Bytes::new(200_001)) };
                let start = (Duration::from_millis(200), Duration::from_millis(200));
                let bulk = Flow { workload, start, ..voice("bulk", "quic-stream") };
                let flows = vec![
                    sharing(bulk, transfer),
                    sharing(echoed("call", "quic-stream"), call),
                    voice("beside", "udp"),
                ];
                let flows = flows.into_iter().map(|flow| if is_down { down(flow) } else { flow });
                let record = run(server.address, &scenario(1000, flows.collect())).unwrap();
                let name = format!("{call:?} beside {transfer:?}, down {is_down}");
                let [bulk, call_flow, beside] = &record.flows[..] else { panic!() };
                let bytes: u64 = bulk.forward.messages.iter().map(|row| row.size.get()).sum();
                assert_eq!(bytes, 200_001, "{name}");
                let begins = bulk.forward.messages.iter().map(|row| row.due).min().unwrap();
                assert!(begins >= Instant::from_millis(200), "{name}: the transfer begins at {begins}");
                let calls = [&call_flow.forward, call_flow.echo.as_ref().unwrap(), &beside.forward];
                for leg in calls {
                    assert!((40..=51).contains(&leg.messages.len()), "{name}: {}", leg.messages.len());
                    // A socket of this host may have no room for a datagram of the transfer.
                    let (delivered, all) = (leg.count(Fate::Delivered), leg.messages.len());
                    assert!(delivered + 5 >= all, "{name}: {delivered} of {all}");
                }
                if transfer != Carry::Datagram {
                    assert_eq!(bulk.forward.count(Fate::Delivered), bulk.forward.messages.len(), "{name}");
                }
                assert!(call_flow.counters.data_packets.unwrap() <= 110, "{name}: {:?}", call_flow.counters);
            }
        }
    });
}

/// The far end says of its own messages which of them expired.
#[test]
fn what_expires_at_the_far_end_is_told_apart_from_what_was_lost() {
    undisturbed(|| {
        let server = Serving::loopback();
        // Older than that before any turn comes to it.
        let config = QuicConfig { expire: Some(Duration::from_nanos(1)), ..QuicConfig::new(Carry::Datagram) };
        let flow = Flow { transport: TransportConfig::Quic(config), ..down(voice("old", "quic-datagram")) };
        let record = run(server.address, &scenario(400, vec![flow])).unwrap();
        let rows = &record.flows[0].forward.messages;
        assert!(rows.len() >= 10, "{}", rows.len());
        // The first is written in the moment in which the connection opens.
        let expired = rows.iter().filter(|row| row.fate == Fate::Expired).count();
        assert!(expired + 1 >= rows.len(), "{expired} of {}", rows.len());
    });
}

/// RFC 8684 §3.1 and §3.7: both ends speak it, or the connection is plain TCP. Loopback has one path.
#[test]
fn a_connection_that_may_use_several_paths_says_whether_it_could() {
    let multipath = |name: &str| {
        let mut flow = echoed(name, "tcp-nodelay");
        let TransportConfig::Tcp(config) = &mut flow.transport else { panic!("a TCP flow") };
        config.multipath = true;
        flow
    };
    let server = Serving::loopback();
    let flows = vec![multipath("call"), down(multipath("answer")), voice("plain", "tcp")];
    let record = match run(server.address, &scenario(400, flows)) {
        Err(ArenaError::Unsupported(why)) => {
            assert!(why.contains("no Multipath TCP") && why.contains("net.mptcp.enabled"), "{why}");
            return eprintln!("SKIP: {why}");
        }
        record => record.unwrap(),
    };
    assert_whole(&record);
    let seen = |record: &RunRecord, flow: usize| record.flows[flow].counters.multipath;
    let one_path = MultipathSummary { fell_back: Some(false), subflows_max: Some(1) };
    assert_eq!(
        [seen(&record, 0), seen(&record, 1), seen(&record, 2)],
        [Some(one_path), Some(one_path), None]
    );
    let said =
        |record: &RunRecord, words: &str| record.warnings.iter().filter(|it| it.contains(words)).count();
    assert_eq!(
        (said(&record, "had one path"), said(&record, "was plain TCP")),
        (2, 0),
        "{:?}",
        record.warnings
    );
    assert!(record.flows[0].counters.data_packets.unwrap() >= 20, "{:?}", record.flows[0].counters);
    assert_eq!(record.flows[0].counters.retransmissions, Some(0));
    // A relay ends the connection of the client and opens one of its own: neither is more than TCP.
    let relayed =
        run(Relay::default().start(server.address), &scenario(400, vec![multipath("call")])).unwrap();
    assert_whole(&relayed);
    let fell_back = MultipathSummary { fell_back: Some(true), subflows_max: Some(1) };
    assert_eq!((seen(&relayed, 0), said(&relayed, "was plain TCP")), (Some(fell_back), 1));
}

#[test]
fn every_part_of_an_opening_is_known_of_the_transports_that_have_it() {
    undisturbed(|| {
        let server = Serving::loopback();
        let transports = ["udp", "tcp-nodelay", "dccp-ccid2", "quic-datagram"];
        for is_down in [false, true] {
            let flow = |name: &str| {
                let flow = Flow { due: Due::Start, ..echoed(name, name) };
                if is_down { down(flow) } else { flow }
            };
            let record = run(server.address, &scenario(400, transports.map(flow).to_vec())).unwrap();
            for flow in &record.flows {
                let parts = flow.counters.opening;
                let (name, handshake) = (&flow.info.name, parts.handshake);
                assert_eq!(handshake.is_some(), name != "udp", "{name}: {parts:?}");
                assert!(parts.name.is_none() && parts.socket.is_some(), "{name}: {parts:?}");
                assert!(parts.first_delivered > parts.open, "{name}: {parts:?}");
                // This host's side of the handshake is over before the far host may send over it.
                assert!(handshake <= parts.open || !is_down, "{name}: {parts:?}");
            }
        }
    });
}
