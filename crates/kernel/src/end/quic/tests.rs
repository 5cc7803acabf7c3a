use talkpath_config::QuicConfig;
use talkpath_measure::{Ending, Fate, MessageRecord, SeriesKind};
use talkpath_model::{Due, MessageSize, WorkloadConfig};
use talkpath_quic::{Fingerprint, HostKeys};
use talkpath_scenario::{Options, Source, load};
use talkpath_units::{Rate, Seed};

use super::*;
use crate::end::any::AnyChannel;
use crate::end::fixtures;
use crate::end::pair::{Pair, datagram};
use crate::log::{Chunk, EndLog};
use crate::spec::{SessionSpec, TransportSpec};

const SECRET: [u8; 32] = [3; 32];

/// A flow of `ms` whose receiver sends each message back if it `echoes`.
fn session(config: &QuicConfig, workload: WorkloadConfig, ms: u64, echoes: bool) -> SessionSpec {
    let spec = QuicSpec::new(config, None, Bytes::new(1500));
    let flow = if echoes {
        fixtures::echoing(TransportSpec::Quic(spec), workload)
    } else {
        fixtures::flow(TransportSpec::Quic(spec), workload)
    };
    fixtures::session(&flow, ms * 1_000_000)
}

fn call(carry: Carry, ms: u64) -> SessionSpec {
    session(&QuicConfig::new(carry), WorkloadConfig::G711, ms, true)
}

/// Both ends; the client has the fingerprint of the certificate that `secret` makes.
fn pair_with(session: &SessionSpec, secret: &[u8; 32]) -> Pair {
    let client = HostKeys::Client(Fingerprint::of_secret(secret).unwrap());
    Pair::with_keys(session, [Some(client), Some(HostKeys::Server(SECRET))], true)
}

fn pair(session: &SessionSpec) -> Pair {
    pair_with(session, &SECRET)
}

/// Returns true if the far end of an end has closed the connection.
fn is_closed(pair: &Pair, end: usize) -> bool {
    match &pair.ends[end].lock().channel {
        AnyChannel::Quic(channel) => lock(&channel.connection).engine.was_closed_by_peer(),
        _ => false,
    }
}

/// What an end counted of the kernel's own, once the run is over.
fn totals(pair: &Pair, end: usize) -> EndTotals {
    let mut end = pair.ends[end].lock();
    end.finish();
    end.log.totals.clone()
}

fn tos_of(pair: &Pair, end: usize) -> u32 {
    socket2::SockRef::from(&*pair.sockets[end]).tos_v4().unwrap()
}

#[test]
fn a_call_is_echoed_whatever_carries_it_and_is_closed_in_order() {
    for carry in Carry::ALL {
        let pair = pair(&call(carry, 200));
        pair.drive(Pair::is_answered);
        let [near, far] = pair.progress();
        assert!(near.sent > 0 && near.sent == far.received && near.received == far.sent, "{carry:?}");
        pair.ends[0].close();
        pair.drive(|pair| is_closed(pair, 1));
        assert_eq!((pair.failure(0), pair.failure(1)), (None, None), "{carry:?}");
        let totals = totals(&pair, 0);
        assert_eq!(totals.cc.as_deref(), Some("cubic"));
        assert_eq!((totals.retransmissions, totals.unsent.len()), (Some(0), 0), "{carry:?}");
        let end = pair.ends[0].lock();
        let has_left = |row: &MessageRecord| row.sent.is_some() && row.transmissions == 1;
        assert!(end.log.taps.forward.rows().all(has_left), "{carry:?}");
        assert!(end.log.samples.iter().any(|sample| sample.cwnd.is_some_and(|cwnd| cwnd > 0)), "{carry:?}");
    }
}

/// About 100 messages a second of 8 to 1000 B.
fn drawn() -> WorkloadConfig {
    let size = MessageSize::Uniform { min: Bytes::new(8), max: Bytes::new(1000) };
    WorkloadConfig::Cbr { rate: Rate::from_bps(400_000), size }
}

#[test]
fn messages_of_drawn_sizes_come_back_by_number_whatever_carries_them() {
    for (carry, per_read) in Carry::ALL.into_iter().flat_map(|carry| [(carry, true), (carry, false)]) {
        let mut session = session(&QuicConfig::new(carry), drawn(), 300, true);
        (session.flows[0].echo_per_read, session.flows[0].due) = (Some(per_read), Due::Start);
        let pair = pair(&session);
        pair.drive(Pair::is_answered);
        let ends = [0, 1].map(|end| pair.ends[end].lock());
        let messages = |tap: &talkpath_measure::LegTap| {
            let sent = tap.rows().filter(|row| row.sent.is_some());
            sent.map(|row| (row.seq, row.size.get())).collect::<Vec<_>>()
        };
        let sent = messages(&ends[0].log.taps.forward);
        assert!(sent.len() > 5 && sent.windows(2).any(|pair| pair[0].1 != pair[1].1), "{sent:?}");
        assert_eq!(messages(ends[1].log.taps.echo.as_ref().unwrap()), sent, "{carry:?}");
        let back = ends[0].log.taps.echo.as_ref().unwrap();
        let numbers: Vec<_> = back.arrival_times().map(|(seq, _)| seq).collect();
        assert_eq!(numbers, sent.iter().map(|&(seq, _)| seq).collect::<Vec<_>>(), "{carry:?}");
    }
}

/// As a far host may do that is no talkpath: it sends messages without frames.
#[test]
fn a_stream_without_the_frames_of_drawn_sizes_ends_the_flow_with_the_reason() {
    let stream = QuicConfig::new(Carry::Stream);
    let [near, far] = [WorkloadConfig::G711, drawn()].map(|load| session(&stream, load, 60_000, false));
    let client = HostKeys::Client(Fingerprint::of_secret(&SECRET).unwrap());
    let pair = Pair::of([&near, &far], [Some(client), Some(HostKeys::Server(SECRET))], true);
    pair.drive(|pair| pair.failure(1).is_some());
    assert_eq!(pair.failure(1).as_deref(), Some(NO_MESSAGE));
}

#[test]
fn another_certificate_is_refused_and_the_flow_says_so() {
    let pair = pair_with(&call(Carry::Datagram, 60_000), &[4; 32]);
    pair.drive(|pair| pair.failure(0).is_some());
    let why = pair.failure(0).unwrap();
    assert!(why.contains("certificate"), "{why}");
    assert_eq!(pair.progress()[0].sent, 0);
}

/// RFC 9000 §10.2: the far end's close ends a connection that was wanted.
#[test]
fn a_close_of_the_far_end_is_a_failure_of_who_still_sends() {
    let pair = pair(&call(Carry::Datagram, 60_000));
    pair.drive(|pair| pair.ends[1].lock().progress().received > 2);
    if let AnyChannel::Quic(channel) = &mut pair.ends[1].lock().channel {
        lock(&channel.connection).engine.close(pair.clock.now());
    }
    pair.drive(|pair| pair.failure(0).is_some());
    let why = pair.failure(0).unwrap();
    assert!(why.contains("closed by peer"), "{why}");
    // Each message that is due is never sent from now on, and counts as lost.
    pair.drive(|pair| {
        let end = pair.ends[0].lock();
        end.log.taps.forward.rows().any(|row| row.fate == Fate::NotOpen)
    });
}

/// Two ends that do not agree on what carries a message, as our program and another one may not.
fn at_odds(carries: [Carry; 2], workload: &WorkloadConfig, ms: u64) -> Pair {
    let [near, far] = carries.map(|carry| session(&QuicConfig::new(carry), workload.clone(), ms, false));
    let client = HostKeys::Client(Fingerprint::of_secret(&SECRET).unwrap());
    Pair::of([&near, &far], [Some(client), Some(HostKeys::Server(SECRET))], true)
}

/// RFC 9000 §3.5, §19.5.
#[test]
fn a_flow_whose_only_stream_the_far_end_stops_has_failed() {
    let carries = [Carry::Stream, Carry::Datagram];
    let why = Some("the far end stopped the QUIC stream, with code 2".to_owned());
    let pair = at_odds(carries, &WorkloadConfig::G711, 60_000);
    pair.drive(|pair| pair.failure(0).is_some());
    assert_eq!(pair.failure(0), why);
    // Each message that is due is never sent from now on, as after a lost connection.
    pair.drive(|pair| {
        let end = pair.ends[0].lock();
        end.log.taps.forward.rows().any(|row| row.fate == Fate::NotOpen)
    });
    let totals = totals(&pair, 0);
    assert_eq!((totals.failure, totals.failed_ns.is_some()), (why.clone(), true));
    // A transfer has nobody to refuse its messages to, and ends.
    let pair = at_odds(carries, &WorkloadConfig::Bulk { bytes: None }, 60_000);
    pair.drive(|pair| pair.failure(0).is_some());
    assert_eq!(pair.failure(0), why);
    assert!(!channel(&mut pair.ends[0].lock()).is_open());
}

/// RFC 9000 §3.5: a stream is one message's, and the next one has another.
#[test]
fn a_message_whose_stream_the_far_end_stops_is_missing_with_its_cause_and_the_flow_goes_on() {
    // A message of several packets is stopped before all its packets are acknowledged.
    let load = WorkloadConfig::Cbr { rate: Rate::from_bps(2_000_000), size: Bytes::new(5000).into() };
    let pair = at_odds([Carry::StreamPerMessage, Carry::Datagram], &load, 200);
    // Nobody waits for a message that was stopped.
    pair.drive(|pair| pair.progress()[0].is_done && pair.progress()[0].sent == 0);
    assert_eq!((pair.failure(0), pair.failure(1), pair.progress()[1].received), (None, None, 0));
    let end = pair.ends[0].lock();
    let rows: Vec<_> = end.log.taps.forward.rows().collect();
    assert_eq!(rows.len(), 10);
    let is_stopped = |row: &&MessageRecord| row.drop_cause == Some(DropCause::Stopped);
    assert!(rows.iter().all(is_stopped), "{rows:?}");
    let mut leg = end.log.taps.forward.clone();
    leg.on_received(3, Instant::from_secs(1));
    let fates: Vec<_> = leg.finish(Ending::Reliable).messages.iter().map(|row| row.fate).collect();
    assert_eq!(fates[2..5], [Fate::Missing, Fate::Delivered, Fate::Missing]);
}

#[test]
fn a_transfer_leaves_in_trains_and_arrives_whole() {
    for carry in Carry::ALL {
        // A socket's buffer of 208 KiB holds the whole load, so that no datagram is lost however late it is
        // read.
        let bulk = WorkloadConfig::Bulk { bytes: Some(Bytes::new(100_000)) };
        let pair = pair(&session(&QuicConfig::new(carry), bulk, 60_000, false));
        pair.drive(|pair| {
            let [near, far] = pair.progress();
            near.is_done && near.sent == far.received
        });
        let end = pair.ends[1].lock();
        let bytes: u64 = match carry {
            Carry::Stream => end.progress().received,
            _ => pair.ends[0].lock().log.taps.forward.rows().map(|row| row.size.get()).sum(),
        };
        assert_eq!(bytes, 100_000, "{carry:?}");
        drop(end);
        assert!(totals(&pair, 0).unsent.is_empty(), "{carry:?}");
    }
}

/// RFC 9000 §14: UDP datagrams with QUIC packets must not be fragmented.
#[test]
fn the_sockets_of_a_connection_never_fragment() {
    let pair = pair(&call(Carry::Datagram, 1_000));
    for socket in &pair.sockets {
        let mode = rustix::net::sockopt::ip_mtu_discover(&**socket).unwrap();
        assert_eq!(mode, rustix::net::sockopt::Ipv4PathMtuDiscovery::PROBE);
    }
}

/// The series of a connection that the simulator has (`sim/src/flow.rs`): QUIC's own, and no RTO.
#[test]
fn the_series_of_a_connection_are_the_simulators() {
    let bulk = WorkloadConfig::Bulk { bytes: Some(Bytes::new(300_000)) };
    let pair = pair(&session(&QuicConfig::new(Carry::Stream), bulk, 60_000, false));
    pair.drive(|pair| {
        let [near, far] = pair.progress();
        near.is_done && near.sent == far.received
    });
    let end = pair.ends[0].lock();
    let all = crate::join::series("transfer", &end.log);
    let points = |kind: SeriesKind| {
        let line = all.iter().find(|line| line.kind == kind);
        line.map(|line| line.points.iter().map(|point| point.1).collect::<Vec<_>>())
    };
    assert_eq!(points(SeriesKind::Rto), None);
    // srtt + max(4 rttvar, 1 ms) + max_ack_delay, which is 25 ms (RFC 9002 §6.2.1).
    let pto = points(SeriesKind::Pto).unwrap();
    assert!(pto.iter().all(|ms| (26.0..5_000.0).contains(ms)), "{pto:?}");
    let in_flight = points(SeriesKind::BytesInFlight).unwrap();
    assert!(in_flight.iter().any(|bytes| *bytes >= 1200.0), "{in_flight:?}");
    assert_eq!(points(SeriesKind::LostPackets).unwrap()[0], 0.0);
    // They cross the control connection (`live`) with the other rows.
    let spec = pair.ends[1].lock().spec.clone();
    let mut rows = Chunk::default();
    end.log.chunks().for_each(|chunk| rows.extend(chunk));
    let copy = EndLog::from_chunk(&rows, Side::Near, &spec, 1 << 20, &|at| Instant::from_nanos(at));
    assert_eq!(copy.recovery, end.log.recovery);
}

#[test]
fn marks_leave_until_the_far_end_does_not_echo_them() {
    let pair = pair(&call(Carry::Datagram, 300));
    pair.drive(|pair| pair.ends[0].lock().poll_timeout().is_some() && pair.clock.now() > Instant::ZERO);
    pair.drive(|pair| tos_of(pair, 0) == 0b10);
    // What is handed in says nothing of an ECN field, so acknowledgements come without counts.
    pair.drive(Pair::is_answered);
    assert_eq!((tos_of(&pair, 0), totals(&pair, 0).takes_marks), (0, Some(false)));
}

#[test]
fn what_is_no_packet_of_the_connection_changes_nothing() {
    let pair = pair(&call(Carry::StreamPerMessage, 60_000));
    pair.drive(|pair| pair.ends[1].lock().progress().received > 0);
    let answer = crate::wire::registered(7);
    for junk in [&[][..], &[0x40], &[0xff; 1200], &[0x00; 1200], &answer, &[0x5a; 64]] {
        pair.ends[0].handle_datagram(&datagram(junk));
    }
    let before = pair.ends[1].lock().progress().received;
    pair.drive(|pair| pair.ends[1].lock().progress().received > before + 2);
    assert_eq!((pair.failure(0), pair.failure(1)), (None, None));
}

#[test]
fn first_packets_without_an_answer_are_a_failure_when_sending_would_stop() {
    let mut pair = pair(&call(Carry::Stream, 3_100));
    pair.drops_datagrams = true;
    pair.drive(|pair| pair.failure(0).is_some());
    assert!(pair.clock.now() >= Instant::from_millis(3_100));
    assert!(pair.ends[0].lock().progress().is_done, "nobody waits for it");
    let why = pair.failure(0).unwrap();
    assert!(why.contains("did not open") && why.contains("the path may drop UDP, or packets"), "{why}");
}

/// RFC 9221 §5.4: what has waited too long is not put into a packet, and is a fate of its own.
#[test]
fn what_expires_in_the_queue_is_counted_as_that_and_waited_for_by_nobody() {
    for carry in [Carry::Datagram, Carry::StreamPerMessage] {
        let config = QuicConfig { expire: Some(Duration::from_millis(30)), ..QuicConfig::new(carry) };
        // Ten times the initial window in a second, without an answer.
        let load = WorkloadConfig::Cbr { rate: Rate::from_bps(1_000_000), size: Bytes::new(1000).into() };
        let mut pair = pair(&session(&config, load, 1000, false));
        pair.drive(|pair| pair.ends[1].lock().progress().received > 2);
        pair.drops_datagrams = true;
        let is_expired = |row: &&MessageRecord| row.fate == Fate::Expired;
        let expired = |pair: &Pair| {
            let end = pair.ends[0].lock();
            end.log.taps.forward.rows().filter(is_expired).count()
        };
        pair.drive(|pair| expired(pair) > 10);
        pair.drive(|pair| pair.progress()[0].is_done);
        let end = pair.ends[0].lock();
        let taken = end.log.taps.forward.rows().filter(|row| row.sent.is_some() && !is_expired(row)).count();
        assert_eq!(end.progress().sent, taken as u64, "{carry:?}");
        let in_time = |row: &MessageRecord| {
            row.wire.is_none_or(|wire| wire.since(row.due) < Duration::from_millis(30 + LATE_MS))
        };
        assert!(end.log.taps.forward.rows().all(in_time), "{carry:?}");
    }
}

/// What a turn of the test may be late by.
const LATE_MS: u64 = 20;

#[test]
fn the_emulator_learns_which_messages_are_in_a_packet() {
    let pair = pair(&call(Carry::Datagram, 200));
    let notes = Arc::new(PacketNotes::default());
    pair.ends[0].lock().note_packets(Arc::clone(&notes));
    let mut found = Vec::new();
    while found.len() < 5 {
        pair.drive_once(&mut |end, packet| {
            if end == 1 {
                found.extend(notes.take(packet).into_iter().flatten());
            }
        });
    }
    assert_eq!(found[..5], [0, 1, 2, 3, 4].map(|seq| (0, seq)));
}

/// A session of flows that share a connection, as a scenario has them.
fn shared(flows: &[(&str, &str, &str)], seconds: u64) -> SessionSpec {
    let mut text = format!(
        "name = \"shared\"\nduration = \"{seconds} s\"\n[path]\nup = {{ rate = \"100 Mbps\", delay = \"1 ms\" }}\n\
         down = {{ rate = \"100 Mbps\", delay = \"1 ms\" }}\n"
    );
    for (name, transport, rest) in flows {
        text += &format!("[flow.{name}]\ntransport = {{ connection = \"c\", {transport} }}\n{rest}\n");
    }
    let plan = load(&Source::new("shared.toml", &text), &Options::default()).unwrap();
    SessionSpec::new(&plan.cells[0].scenario, Seed::new(1), None).unwrap()
}

const CALL: &str = "workload = { kind = \"voice\", codec = \"g711\", echo = true }";

/// What both ends of the flow at `place` of the others count.
fn progress_of(pair: &Pair, place: usize) -> [EndProgress; 2] {
    [0, 1].map(|end| pair.others[place][end].lock().progress())
}

fn is_through([near, far]: [EndProgress; 2]) -> bool {
    near.is_done && near.sent > 0 && far.received == near.sent
}

#[test]
fn a_call_and_a_transfer_share_a_connection_whatever_carries_them_and_it_closes_once() {
    for (call, transfer) in
        [("datagram", "stream"), ("stream-per-message", "datagram"), ("stream", "stream-per-message")]
    {
        let [call, transfer] = [call, transfer].map(|carry| format!("kind = \"quic-{carry}\""));
        let session = shared(
            &[
                ("call", &call, CALL),
                (
                    "bulk",
                    &transfer,
                    "workload = { kind = \"bulk\", bytes = \"150000 B\" }\nstart = \"100 ms\"",
                ),
                ("late", &call, &format!("{CALL}\nstart = \"300 ms\"")),
            ],
            1,
        );
        let pair = pair(&session);
        pair.drive(|pair| is_through(progress_of(pair, 0)));
        pair.drive(|pair| pair.is_answered() && is_through(progress_of(pair, 1)));
        pair.drive(|pair| progress_of(pair, 1).map(|end| end.received).iter().all(|count| *count > 30));
        let bytes: u64 = pair.others[0][0].lock().log.taps.forward.rows().map(|row| row.size.get()).sum();
        assert_eq!(bytes, 150_000, "{transfer}");
        let late = pair.others[1][0].lock();
        let first = late.log.taps.forward.rows().next().unwrap();
        // It is due from its start on, not from the connection's.
        assert_eq!(first.due, Instant::from_millis(300));
        drop(late);
        // The client's flows close one by one, and the last of them closes the connection.
        pair.ends[0].close();
        pair.others[0][0].close();
        pair.drive_once(&mut |_, _| {});
        assert!(!is_closed(&pair, 1));
        pair.others[1][0].close();
        pair.drive(|pair| is_closed(pair, 1));
        for end in pair.ends.iter().chain(pair.others.iter().flatten()) {
            assert_eq!(end.lock().failure, None, "{call}, {transfer}");
        }
    }
}

/// What leaves is the choice of one engine: of two flows whose messages wait, the higher priority is first.
#[test]
fn priority_decides_which_flow_of_a_connection_leaves_first() {
    let left = |first: u8, second: u8| {
        let burst = "workload = { kind = \"burst\", count = 100, size = \"1000 B\" }";
        let [first, second] =
            [first, second].map(|priority| format!("kind = \"quic-datagram\", priority = {priority}"));
        let session = shared(&[("first", &first, burst), ("second", &second, burst)], 10);
        let pair = pair(&session);
        pair.drive(|pair| is_through(pair.progress()) && is_through(progress_of(pair, 0)));
        [&pair.ends[0], &pair.others[0][0]].map(|end| {
            let end = end.lock();
            let wires: Vec<_> = end.log.taps.forward.rows().filter_map(|row| row.wire).collect();
            assert_eq!(wires.len(), 100);
            wires.iter().max().copied().unwrap()
        })
    };
    let [first, second] = left(1, 0);
    assert!(first < second, "{first} {second}");
    let [first, second] = left(0, 1);
    assert!(first > second, "{first} {second}");
}

#[test]
fn the_emulator_learns_whose_message_is_in_a_packet_of_a_shared_connection() {
    let datagram = "kind = \"quic-datagram\"";
    let session = shared(&[("stream", "kind = \"quic-stream\"", CALL), ("call", datagram, CALL)], 1);
    let pair = pair(&session);
    let notes = Arc::new(PacketNotes::default());
    pair.ends[0].lock().note_packets(Arc::clone(&notes));
    let mut found = Vec::new();
    while found.len() < 5 {
        pair.drive_once(&mut |end, packet| {
            if end == 1 {
                found.extend(notes.take(packet).into_iter().flatten());
            }
        });
    }
    // Message 0 was due before the connection was open, and was never sent.
    assert_eq!(found[..5], [1, 2, 3, 4, 5].map(|seq| (1, seq)));
}

#[test]
fn an_early_message_leaves_before_the_handshake_is_over() {
    let first = |zero_rtt: bool| {
        let config = QuicConfig { zero_rtt, ..QuicConfig::new(Carry::Datagram) };
        let session = session(&config, WorkloadConfig::G711, 200, true);
        let mut pair = Pair::with_keys(&session, [None; 2], false);
        // Both draw the same keys, as in the emulator.
        pair.drops_datagrams = true;
        pair.drive(|pair| pair.clock.now() > Instant::from_millis(50));
        let end = pair.ends[0].lock();
        end.log.taps.forward.rows().filter(|row| row.wire.is_some()).count()
    };
    assert!(first(true) > 0);
    assert_eq!(first(false), 0);
}

/// The channel of an end.
fn channel(end: &mut crate::end::FlowEnd) -> &mut QuicChannel {
    match &mut end.channel {
        AnyChannel::Quic(channel) => channel,
        _ => panic!("QUIC alone"),
    }
}

/// The pacer may give a flow its turn while the receiving thread takes a packet with a message of it, and
/// again before the flow has read it.
#[test]
fn a_message_keeps_the_stamp_of_its_packet_whoever_has_a_turn_between() {
    for carry in ["datagram", "stream", "stream-per-message"] {
        let kind = format!("kind = \"quic-{carry}\"");
        let session = shared(&[("first", &kind, CALL), ("second", &kind, CALL)], 60);
        let pair = pair(&session);
        pair.drive(|pair| progress_of(pair, 0)[1].received > 2);
        let far = &pair.others[0][1];
        let mut stamps = Vec::new();
        let mut buffer = [0; 2048];
        while stamps.len() < 2 {
            for near in [&pair.ends[0], &pair.others[0][0]] {
                let mut near = near.lock();
                if near.poll_timeout().is_some_and(|deadline| deadline <= pair.clock.now()) {
                    near.handle_timeout(pair.clock.now());
                }
            }
            while let Ok(size) = pair.sockets[1].recv(&mut buffer) {
                let stamp = pair.clock.now();
                let mut end = far.lock();
                let channel = channel(&mut end);
                let mut connection = lock(&channel.connection);
                connection.handle_datagram(&datagram(&buffer[..size]), stamp);
                if connection.engine.is_ready(1) {
                    connection.engine.clear_ready(1);
                    stamps.push(stamp);
                }
                drop(connection);
                // The flow's turn ends.
                channel.finish_turn(true, false);
            }
            std::thread::yield_now();
        }
        let mut end = far.lock();
        let now = pair.clock.now();
        let mut read = Vec::new();
        while let Some(Read { came_at, .. }) = channel(&mut end).read(FlowId(1), Bytes::MAX, now) {
            read.push(came_at);
        }
        // The bytes of one stream are readable with the last packet.
        let expected = if carry == "stream" { &stamps[stamps.len() - 1..] } else { &stamps[..] };
        assert_eq!(read, expected.iter().copied().map(Some).collect::<Vec<_>>(), "{carry}");
    }
}

/// RFC 9000 §10.2: the connection is each flow's, also that of one which has not begun.
#[test]
fn a_connection_that_is_lost_is_a_failure_of_each_of_its_flows() {
    let datagram = "kind = \"quic-datagram\"";
    let late = format!("{CALL}\nstart = \"50 s\"");
    let flows =
        [("first", datagram, CALL), ("second", "kind = \"quic-stream\"", CALL), ("late", datagram, &late)];
    let pair = pair(&shared(&flows, 60));
    pair.drive(|pair| progress_of(pair, 0)[1].received > 2);
    lock(&channel(&mut pair.ends[1].lock()).connection).engine.close(pair.clock.now());
    pair.drive(|pair| pair.failure(0).is_some());
    for other in &pair.others {
        let why = other[0].lock().failure.clone().expect("each flow says so");
        assert!(why.contains("closed by peer"), "{why}");
    }
}

/// A flow that is over leaves the connection to the others, and they go on.
#[test]
fn a_flow_that_closes_leaves_the_connection_to_the_others() {
    let flows = [("first", "kind = \"quic-datagram\"", CALL), ("second", "kind = \"quic-stream\"", CALL)];
    let pair = pair(&shared(&flows, 60));
    pair.drive(|pair| pair.ends[1].lock().progress().received > 2);
    // The leader's, which has the sockets and the engine's deadlines.
    pair.ends[0].close();
    pair.ends[1].close();
    let [_, far] = progress_of(&pair, 0);
    pair.drive(|pair| progress_of(pair, 0)[1].received > far.received + 1600);
    assert_eq!(pair.ends.iter().map(|end| end.lock().failure.clone()).collect::<Vec<_>>(), [None, None]);
}
