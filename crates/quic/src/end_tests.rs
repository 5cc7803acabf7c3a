//! An end of a connection beside its other end, over links of a test.

use std::sync::Arc;

use talkpath_config::QuicConfig;
use talkpath_units::Seed;

use super::*;
use crate::configs::{Protection, watched};
use crate::earlier::pass;
use crate::ends::Ends;
use crate::setup::FlowSetup;
use crate::setup::engine_config;
use crate::watch::Watch;

/// A connection of flows that are carried so.
fn setup(carries: &[Carry]) -> Setup {
    let flow = |carry: &Carry| FlowSetup { carry: *carry, priority: 0, receive_buffer: None };
    Setup {
        config: QuicConfig { encryption: false, ..QuicConfig::new(carries[0]) },
        flows: carries.iter().map(flow).collect(),
        path_mtu: Bytes::new(1500),
        seed: Seed::new(1),
    }
}

/// Both ends of a connection of flows that are carried so, open.
fn connected(carries: &[Carry]) -> (End, End) {
    let Ends { mut client, mut server, .. } =
        End::pair(&setup(carries)).expect("the configurations are our own");
    client.open(Instant::ZERO);
    while pass(&mut client, &mut server, Instant::ZERO) | pass(&mut server, &mut client, Instant::ZERO) {}
    assert!(client.is_open() && server.is_open());
    (client, server)
}

/// How many streams of the far end it remembers.
fn streams(end: &End) -> usize {
    match &end.inbound {
        Inbound::Numbered(receiving) => receiving.streams(),
        Inbound::Real(_) => panic!("an end of the simulator"),
    }
}

fn message(seq: u64) -> Message {
    Message { seq, size: Bytes::new(160), due: Instant::ZERO }
}

#[test]
fn a_stream_that_comes_again_is_forgotten_again() {
    let (mut client, mut server) = connected(&[Carry::StreamPerMessage]);
    let now = Instant::from_millis(1);
    for seq in 0..5 {
        client.write(0, message(seq), None).expect("there is room");
    }
    let mut packets = Vec::new();
    while let Some(sent) = client.poll_transmit(now) {
        let Packet::Quic(packet) = sent.packet else { panic!("QUIC alone") };
        packets.push((packet, sent.ecn));
    }
    for copy in 0..3 {
        packets.iter().for_each(|(packet, ecn)| server.handle_packet(packet, *ecn, now));
        let read = core::iter::from_fn(|| server.read(0, Bytes::MAX)).count();
        assert_eq!((read, streams(&server)), (if copy == 0 { 5 } else { 0 }, 0), "copy {copy}");
    }
}

/// What a flow's messages were dropped for, in the order in which it is known.
fn dropped(end: &mut End) -> Vec<(u64, DiscardCause)> {
    core::iter::from_fn(|| end.poll_dropped(0)).collect()
}

#[test]
fn a_copy_of_a_packet_is_no_packet_without_keys() {
    let (mut client, mut server) = connected(&[Carry::Datagram]);
    let now = Instant::from_millis(1);
    client.write(0, message(0), None).expect("there is room");
    let sent = client.poll_transmit(now).expect("a packet leaves");
    let Packet::Quic(packet) = sent.packet else { panic!("QUIC alone") };
    server.handle_packet(&packet, sent.ecn, now);
    assert_eq!(server.read(0, Bytes::MAX), Some(Delivery::Message { seq: 0, size: Bytes::new(160) }));
    server.handle_packet(&packet, sent.ecn, now);
    assert_eq!(dropped(&mut server), [], "its message was read");
    assert_eq!(server.read(0, Bytes::MAX), None);
}

#[test]
fn a_packet_before_the_handshakes_end_has_no_keys() {
    let setup = setup(&[Carry::Datagram]);
    let Ends { mut client, mut server, .. } = End::pair(&setup).expect("the configurations are our own");
    let now = Instant::ZERO;
    client.open(now);
    pass(&mut client, &mut server, now);
    pass(&mut server, &mut client, now);
    // The client's last flight is late.
    let late: Vec<_> = core::iter::from_fn(|| client.poll_transmit(now)).collect();
    assert!(!late.is_empty() && client.is_open() && !server.is_open());
    client.write(0, message(0), None).expect("the client has finished its handshake");
    pass(&mut client, &mut server, now);
    assert_eq!(dropped(&mut server), [(0, DiscardCause::NoKeys)]);
}

#[test]
fn each_flow_of_a_connection_has_a_send_buffer_of_its_own() {
    let (mut client, _) = connected(&[Carry::Datagram, Carry::Stream, Carry::StreamPerMessage]);
    for flow in [0, 1, 1] {
        client.write(flow, message(0), None).expect("there is room");
    }
    let held = [0, 1, 2].map(|flow| client.send_buffer(flow).get());
    assert_eq!(held, [160, 320, 0]);
    let plotted = [0, 1, 2].map(|flow| client.observe(flow).send_buffer.get());
    assert_eq!((plotted, client.levels(1).send_buffer.get()), (held, 320));
}

#[test]
fn bytes_in_flight_are_those_of_packets_that_ask_for_an_acknowledgement() {
    let (mut client, mut server) = connected(&[Carry::Datagram]);
    let in_flight = |end: &End| end.observe(0).loss_recovery.expect("it has a connection").bytes_in_flight;
    let mut now = Instant::from_millis(100);
    // The first acknowledgement takes away what was left of the handshake.
    client.write(0, message(0), None).expect("there is room");
    pass(&mut client, &mut server, now);
    now += Duration::from_millis(30);
    server.handle_timeout(now);
    pass(&mut server, &mut client, now);
    assert_eq!(in_flight(&client), Bytes::ZERO);
    let mut sent = Bytes::ZERO;
    for seq in 1..4 {
        client.write(0, message(seq), None).expect("there is room");
        let Some(Transmit { packet: Packet::Quic(packet), ecn, .. }) = client.poll_transmit(now) else {
            panic!("a packet of QUIC leaves")
        };
        sent += Bytes::new(packet.bytes.len() as u64);
        assert_eq!(in_flight(&client), sent);
        server.handle_packet(&packet, ecn, now);
        now += Duration::from_millis(1);
    }
    // Acknowledgements alone count nowhere, and take all away.
    now += Duration::from_millis(30);
    server.handle_timeout(now);
    while pass(&mut server, &mut client, now) {}
    assert_eq!((in_flight(&client), in_flight(&server)), (Bytes::ZERO, Bytes::ZERO));
}

#[test]
fn a_lost_connection_waits_for_no_expiry_and_says_what_expired() {
    let (mut client, mut server) = connected(&[Carry::Datagram, Carry::StreamPerMessage, Carry::Datagram]);
    let now = Instant::from_millis(1);
    let expires = Instant::from_millis(2);
    for flow in 0..2 {
        for seq in 0..3 {
            client.write(flow, message(seq), Some(expires)).expect("there is room");
        }
    }
    client.write(2, message(0), None).expect("there is room");
    let (_, connection) = server.connection.as_mut().expect("it is connected");
    connection.close(engine_time(now), VarInt::from_u32(0), bytes::Bytes::new());
    pass(&mut server, &mut client, now);
    assert!(!client.is_open());
    assert!(client.poll_timeout().is_none_or(|at| at > expires), "{:?}", client.poll_timeout());
    for flow in 0..2 {
        let events: Vec<_> = core::iter::from_fn(|| client.poll_send_event(flow)).collect();
        assert_eq!(events, [0, 1, 2].map(|seq| SendEvent::Expired { seq }), "flow {flow}");
    }
    assert_eq!(client.poll_send_event(2), None);
    assert_eq!(client.send_buffer(2), Bytes::new(160));
}

/// The flows for which there is something new at an end, each once.
fn ready(end: &mut End) -> Vec<usize> {
    let all: Vec<_> = core::iter::successors(end.next_ready(0), |&flow| end.next_ready(flow + 1)).collect();
    all.iter().for_each(|&flow| end.clear_ready(flow));
    all
}

#[test]
fn a_packet_is_news_for_the_flows_that_it_is_about_and_for_no_other() {
    for carry in Carry::ALL {
        let (mut client, mut server) = connected(&[carry; 5]);
        // An opened connection is news for all.
        assert_eq!((ready(&mut client), ready(&mut server)), (vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3, 4]));
        let now = Instant::from_millis(1);
        for flow in [3, 1] {
            client.write(flow, message(0), None).expect("there is room");
            assert!(ready(&mut client).is_empty(), "{carry:?}: nothing left yet");
        }
        pass(&mut client, &mut server, now);
        // They left here, and came there.
        assert_eq!((ready(&mut client), ready(&mut server)), (vec![1, 3], vec![1, 3]), "{carry:?}");
        for flow in 0..5 {
            let is_written = flow == 1 || flow == 3;
            assert_eq!(server.read(flow, Bytes::MAX).is_some(), is_written, "{carry:?}");
        }
        // An acknowledgement frees no room here.
        pass(&mut server, &mut client, Instant::from_millis(40));
        assert!(ready(&mut client).is_empty(), "{carry:?}");
    }
}

#[test]
fn what_expires_is_news_for_its_flow_and_a_lost_connection_for_all() {
    let (mut client, mut server) = connected(&[Carry::Datagram, Carry::StreamPerMessage, Carry::Stream]);
    ready(&mut client);
    let expires = Instant::from_millis(2);
    client.write(1, message(0), Some(expires)).expect("there is room");
    while client.poll_transmit(expires).is_some() {}
    assert_eq!(ready(&mut client), [1]);
    assert_eq!(client.poll_send_event(1), Some(SendEvent::Expired { seq: 0 }));
    server.close(expires);
    pass(&mut server, &mut client, expires);
    assert_eq!(ready(&mut client), [0, 1, 2]);
}

#[test]
fn the_only_flow_of_a_connection_is_not_listed() {
    let (mut client, mut server) = connected(&[Carry::Datagram]);
    client.write(0, message(0), None).expect("there is room");
    pass(&mut client, &mut server, Instant::from_millis(1));
    assert_eq!((ready(&mut client), ready(&mut server)), (vec![], vec![]));
}

/// Both ends of a connection of one flow of datagrams, the client's open with a ticket.
fn early() -> (End, End) {
    let mut setup = setup(&[Carry::Datagram]);
    setup.config.zero_rtt = true;
    let Ends { mut client, server, .. } = End::pair(&setup).expect("the configurations are our own");
    client.open(Instant::ZERO);
    assert!(client.is_open(), "it has a ticket");
    (client, server)
}

/// Writes messages of these sizes, numbered from 0.
fn write_sizes(end: &mut End, sizes: &[u64]) {
    for (seq, &size) in (0..).zip(sizes) {
        let message = Message { size: Bytes::new(size), ..message(seq) };
        end.write(0, message, None).expect("there is room");
    }
}

fn left(end: &mut End) -> Vec<u64> {
    let seq = |event| match event {
        SendEvent::Sent(PayloadRange::Message { seq }) => seq,
        other => panic!("it leaves, and is not {other:?}"),
    };
    core::iter::from_fn(|| end.poll_send_event(0)).map(seq).collect()
}

/// A packet has 1200 B at first. A 0-RTT packet's header has up to 41 of them (RFC 9000 §17.2.3): flags,
/// version, 1 + 20 B and 1 + 8 B of connection IDs, 2 B of length and 4 B of number. A frame of 3 + 1140 B
/// and a tag of 16 B are the rest.
#[test]
fn a_datagram_leaves_in_0_rtt_if_a_packet_has_room_for_it_beside_the_long_header() {
    for (size, count) in [(1140, 5), (1141, 0), (1150, 0), (1151, 0), (1162, 0)] {
        let (mut client, mut server) = early();
        write_sizes(&mut client, &[size; 5]);
        let now = Instant::ZERO;
        let mut packets = 0;
        while let Some(Transmit { packet: Packet::Quic(packet), ecn, .. }) = client.poll_transmit(now) {
            packets += 1;
            server.handle_packet(&packet, ecn, now);
        }
        // The first one has the Initial.
        assert_eq!((left(&mut client).len(), packets), (count, 1 + count), "{size} B");
        let arrived = core::iter::from_fn(|| server.read(0, Bytes::MAX)).count();
        assert_eq!(arrived, count, "{size} B");
        while pass(&mut server, &mut client, now) | pass(&mut client, &mut server, now) {}
        let now = Instant::from_millis(1);
        while pass(&mut client, &mut server, now) | pass(&mut server, &mut client, now) {}
        assert_eq!(left(&mut client).len(), 5 - count, "{size} B");
        let arrived = core::iter::from_fn(|| server.read(0, Bytes::MAX)).count();
        assert_eq!((arrived, client.send_buffer(0)), (5 - count, Bytes::ZERO), "{size} B");
    }
}

#[test]
fn smaller_datagrams_pass_what_has_no_room_in_0_rtt() {
    let (mut client, mut server) = early();
    write_sizes(&mut client, &[1162, 100, 1141, 200, 1140]);
    let now = Instant::ZERO;
    pass(&mut client, &mut server, now);
    assert_eq!(left(&mut client), [1, 3, 4]);
    while pass(&mut server, &mut client, now) | pass(&mut client, &mut server, now) {}
    assert_eq!(left(&mut client), [0, 2]);
    let read = core::iter::from_fn(|| server.read(0, Bytes::MAX)).count();
    assert_eq!(read, 5);
}

/// Another server in the place of `server`, which knows no ticket and takes datagrams of up to `frame` bytes
/// with their type and length; `None` takes none.
fn taking(frame: Option<usize>, server: End) -> End {
    let (setup, watch) = (setup(&[Carry::Datagram]), Watch::default());
    let mut config = watched(setup.seed.get(), Protection::SizesOnly, &watch).expect("it is our own").server;
    let mut engine = engine_config(&setup, &SharedRecovery::new(&watch.server));
    engine.datagram_receive_buffer_size(frame);
    config.transport_config(Arc::new(engine));
    let mut server = End { watch: watch.server, ..server };
    server.endpoint.set_server_config(Some(Arc::new(config)));
    server
}

fn carry_all(client: &mut End, server: &mut End, now: Instant) {
    while pass(client, server, now) | pass(server, client, now) {}
}

/// RFC 9221 §3: a DATAGRAM frame is at most as large as the far end says. The engine reserves 9 B of that.
#[test]
fn a_datagram_that_the_far_end_does_not_take_is_refused_and_blocks_none() {
    for (frame, limit) in [(None, 0), (Some(500), 491), (Some(60_000), 1414)] {
        let Ends { mut client, server, .. } =
            End::pair(&setup(&[Carry::Datagram])).expect("the configurations are our own");
        let mut server = taking(frame, server);
        client.open(Instant::ZERO);
        carry_all(&mut client, &mut server, Instant::ZERO);
        let limit = Bytes::new(limit);
        assert_eq!(client.largest_message(0), Some(limit), "{frame:?}");
        let larger = Message { size: limit + Bytes::new(1), ..message(0) };
        assert!(!client.takes(0, larger.size));
        assert_eq!(client.write(0, larger, None), Err(Refused::TooLarge { limit }), "{frame:?}");
        if limit > Bytes::ZERO {
            write_sizes(&mut client, &[limit.get(), 100]);
            carry_all(&mut client, &mut server, Instant::from_millis(1));
            assert_eq!(left(&mut client), [0, 1], "{frame:?}");
        }
    }
}

#[test]
fn a_datagram_that_waits_for_a_far_end_that_does_not_take_it_is_given_back() {
    for (frame, limit) in [(None, 0), (Some(500), 491)] {
        let (mut client, server) = early();
        let mut server = taking(frame, server);
        let expires = Some(Instant::from_secs(1));
        client.write(0, Message { size: Bytes::new(1160), ..message(0) }, expires).expect("there is room");
        carry_all(&mut client, &mut server, Instant::ZERO);
        assert!(client.is_established(), "it rejects what came before the handshake's end");
        let events: Vec<_> = core::iter::from_fn(|| client.poll_send_event(0)).collect();
        assert_eq!(events, [SendEvent::GivenBack { seq: 0 }]);
        assert_eq!((client.send_buffer(0), client.datagrams.next_expiry()), (Bytes::ZERO, None));
        assert_eq!(client.largest_message(0), Some(Bytes::new(limit)));
    }
}

#[test]
fn all_that_wait_expire_also_if_the_far_end_takes_small_datagrams_alone() {
    let Ends { mut client, server, .. } =
        End::pair(&setup(&[Carry::Datagram])).expect("the configurations are our own");
    let mut server = taking(Some(500), server);
    client.open(Instant::ZERO);
    carry_all(&mut client, &mut server, Instant::ZERO);
    for seq in 0..100 {
        let message = Message { size: Bytes::new(400), ..message(seq) };
        client.write(0, message, Some(Instant::from_millis(2))).expect("there is room");
    }
    let now = Instant::from_millis(1);
    let mut packets = Vec::new();
    while let Some(Transmit { packet: Packet::Quic(packet), ecn, .. }) = client.poll_transmit(now) {
        packets.push((packet, ecn));
    }
    let before = left(&mut client).len();
    assert!((10..50).contains(&before), "the window holds {before}");
    let now = Instant::from_millis(3);
    assert!(client.poll_transmit(now).is_none(), "the window is full");
    let expired = core::iter::from_fn(|| client.poll_send_event(0)).count();
    assert_eq!(expired, 100 - before);
    packets.iter().for_each(|(packet, ecn)| server.handle_packet(packet, *ecn, now));
    carry_all(&mut client, &mut server, now);
    assert_eq!((left(&mut client).len(), client.send_buffer(0)), (0, Bytes::ZERO));
    assert!(client.poll_timeout().is_none_or(|at| at > now));
}
