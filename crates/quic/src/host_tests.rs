//! Ends with real keys, over links of a test.

use quinn_proto::{Dir, StreamId};
use talkpath_config::{Carry, QuicConfig};
use talkpath_units::{Duration, Ecn, Seed};
use talkpath_wire::{Packet, QuicPacket};

use super::*;
use crate::SendEvent;
use crate::clock::engine_time;
use crate::far::{Arrival, FAR};
use crate::setup::FlowSetup;

const SECRET: [u8; 32] = [7; 32];
const WINDOW: u32 = 1 << 20;

fn setup(carry: Carry, receive_buffer: Option<Bytes>) -> Setup {
    Setup {
        config: QuicConfig::new(carry),
        flows: vec![FlowSetup { carry, priority: 0, receive_buffer }],
        path_mtu: Bytes::new(1500),
        seed: Seed::new(1),
    }
}

/// As a packet of the only address comes now.
fn arrival(at: Instant) -> Arrival {
    Arrival { from: FAR, ecn: Ecn::NotEct, at }
}

/// Carries what `from` sends to `to`, as bytes alone; returns the datagrams.
fn pass(from: &mut End, to: &mut End, now: Instant) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(sent) = from.poll_transmit(now) {
        let Packet::Quic(packet) = sent.packet else { panic!("QUIC alone") };
        all.push(packet.bytes.clone());
        to.handle_packet(&QuicPacket { bytes: packet.bytes, pieces: Vec::new() }, sent.ecn, now);
    }
    all
}

fn ends(carry: Carry, buffer: Option<Bytes>, fingerprint: Fingerprint) -> (End, End) {
    let client = End::on_host(&setup(carry, None), HostKeys::Client(fingerprint), WINDOW).unwrap();
    let server = End::on_host(&setup(carry, buffer), HostKeys::Server(SECRET), WINDOW).unwrap();
    (client, server)
}

fn connect(client: &mut End, server: &mut End) {
    client.open(Instant::ZERO);
    while !pass(client, server, Instant::ZERO).is_empty() | !pass(server, client, Instant::ZERO).is_empty() {}
}

fn connected(carry: Carry, buffer: Option<Bytes>) -> (End, End) {
    let (mut client, mut server) = ends(carry, buffer, Fingerprint::of_secret(&SECRET).unwrap());
    connect(&mut client, &mut server);
    assert!(client.is_open() && server.is_open());
    (client, server)
}

fn message(seq: u64, size: u64) -> (Message, bytes::Bytes) {
    let message = Message { seq, size: Bytes::new(size), due: Instant::ZERO };
    (message, vec![seq as u8 + 1; size as usize].into())
}

#[test]
fn the_bytes_of_messages_arrive_as_they_were_written() {
    for (carry, size) in [(Carry::Datagram, 160), (Carry::StreamPerMessage, 3000), (Carry::Stream, 3000)] {
        let (mut client, mut server) = connected(carry, None);
        let now = Instant::from_millis(1);
        let mut written = Vec::new();
        for seq in 0..5 {
            let (message, data) = message(seq, size);
            written.push(data.clone());
            assert_eq!(client.write_bytes(0, message, data, None), Ok(Bytes::new(size)), "{carry:?}");
        }
        let mut read = Vec::new();
        while !pass(&mut client, &mut server, now).is_empty()
            | !pass(&mut server, &mut client, now).is_empty()
        {
            read.extend(std::iter::from_fn(|| server.read_bytes(0, Bytes::MAX)));
        }
        if carry == Carry::Stream {
            (read, written) = (vec![read.concat().into()], vec![written.concat().into()]);
        }
        // Streams take turns, and the first window does not hold all of them.
        read.sort();
        assert!(read == written, "{carry:?}: {} messages", read.len());
    }
}

/// A message of `size` bytes that begins with `token`.
fn named(token: u32, seq: u64, size: u64) -> (Message, bytes::Bytes) {
    let (message, mut data) = (message(seq, size).0, vec![seq as u8 + 1; size as usize]);
    data[..4].copy_from_slice(&token.to_be_bytes());
    (message, data.into())
}

/// Both ends of a connection of flows that are carried so, the first one without a name, connected.
fn sharing(carries: &[Carry]) -> [End; 2] {
    let flow = |&carry: &Carry| FlowSetup { carry, priority: 0, receive_buffer: None };
    let setup = Setup { flows: carries.iter().map(flow).collect(), ..setup(carries[0], None) };
    let fingerprint = Fingerprint::of_secret(&SECRET).unwrap();
    let keys = [HostKeys::Client(fingerprint), HostKeys::Server(SECRET)];
    let mut ends = keys.map(|keys| End::on_host(&setup, keys, WINDOW).unwrap());
    for end in &mut ends {
        (1..carries.len()).for_each(|flow| end.name_flow(flow, flow as u32));
    }
    let [client, server] = &mut ends;
    connect(client, server);
    ends
}

fn carry_all([client, server]: &mut [End; 2], now: Instant) {
    while !pass(client, server, now).is_empty() | !pass(server, client, now).is_empty() {}
}

fn read_all(end: &mut End, flow: usize) -> Vec<bytes::Bytes> {
    std::iter::from_fn(|| end.read_bytes(flow, Bytes::MAX)).collect()
}

#[test]
fn flows_of_one_connection_have_their_own_bytes_in_both_directions() {
    let carries = [
        Carry::StreamPerMessage,
        Carry::Datagram,
        Carry::Stream,
        Carry::StreamPerMessage,
        Carry::Datagram,
        Carry::Stream,
    ];
    let mut ends = sharing(&carries);
    for (sender, receiver, begin) in [(0, 1, 0), (1, 0, 2000)] {
        let mut written = vec![Vec::new(); carries.len()];
        for seq in 0..20 {
            for (flow, carry) in carries.iter().enumerate() {
                // The last of them has no room for a name, and is the first flow's.
                let size = if flow == 0 && seq == 19 { 3 } else { 100 + flow as u64 };
                let (message, data) = match (flow, carry) {
                    (0, _) | (_, Carry::Stream) => message(seq, size),
                    _ => named(flow as u32, seq, size),
                };
                written[flow].push(data.clone());
                let taken = ends[sender].write_bytes(flow, message, data, None);
                assert_eq!(taken, Ok(Bytes::new(size)), "flow {flow}");
            }
            carry_all(&mut ends, Instant::from_millis(begin + seq));
        }
        // What its pacer held back.
        carry_all(&mut ends, Instant::from_millis(begin + 1000));
        for (flow, carry) in carries.iter().enumerate() {
            let (mut read, mut written) = (read_all(&mut ends[receiver], flow), written[flow].clone());
            if *carry == Carry::Stream {
                (read, written) = (vec![read.concat().into()], vec![written.concat().into()]);
            }
            read.sort();
            written.sort();
            assert!(read == written, "flow {flow}, {carry:?}: {} messages", read.len());
        }
        let Inbound::Real(arriving) = &ends[receiver].inbound else { panic!("an end between hosts") };
        assert!(arriving.holds_nothing(), "{arriving:?}");
    }
}

/// The stream of all messages is known by its ID, though messages on streams of their own left first.
#[test]
fn a_flow_that_begins_later_has_the_stream_that_was_kept_for_it() {
    let mut ends = sharing(&[Carry::Stream, Carry::StreamPerMessage]);
    let (first, data) = named(1, 0, 100);
    ends[0].write_bytes(1, first, data.clone(), None).unwrap();
    carry_all(&mut ends, Instant::from_millis(1));
    let (late, late_data) = message(0, 100);
    ends[0].write_bytes(0, late, late_data.clone(), None).unwrap();
    carry_all(&mut ends, Instant::from_millis(2));
    assert_eq!((read_all(&mut ends[1], 0), read_all(&mut ends[1], 1)), (vec![late_data], vec![data]));
}

#[test]
fn what_no_flow_of_its_kind_has_is_thrown_away() {
    let mut ends = sharing(&[Carry::Stream, Carry::StreamPerMessage, Carry::Datagram]);
    // A stream that names the flow on datagrams, and a datagram that names nobody.
    let (message, data) = named(2, 0, 100);
    ends[0].write_bytes(1, message, data, None).unwrap();
    let (message, data) = named(9, 0, 100);
    ends[0].write_bytes(2, message, data, None).unwrap();
    carry_all(&mut ends, Instant::from_millis(1));
    for flow in 0..3 {
        assert_eq!(read_all(&mut ends[1], flow), Vec::<bytes::Bytes>::new(), "flow {flow}");
    }
    let Inbound::Real(arriving) = &ends[1].inbound else { panic!("an end between hosts") };
    assert!(arriving.holds_nothing(), "{arriving:?}");
}

/// The ID of the client's unidirectional stream of this number.
fn client_stream(number: u64) -> StreamId {
    StreamId::new(quinn_proto::Side::Client, Dir::Uni, number)
}

/// RFC 9000 §4.6: the limit of 0 is in the handshake.
#[test]
fn no_end_can_open_a_stream_of_both_directions() {
    for carry in Carry::ALL {
        let (mut client, mut server) = connected(carry, None);
        for end in [&mut client, &mut server] {
            let (_, engine) = end.connection.as_mut().unwrap();
            assert_eq!(engine.streams().open(Dir::Bi), None, "{carry:?}");
        }
    }
}

/// Another program may open more streams than the one that carries all messages, or one beside datagrams.
#[test]
fn a_stream_beside_that_of_the_only_flow_is_stopped() {
    for (carry, mine) in [(Carry::Stream, 1), (Carry::Datagram, 0)] {
        let (mut client, mut server) = connected(carry, None);
        for _ in 0..=mine {
            let (_, engine) = client.connection.as_mut().unwrap();
            let id = engine.streams().open(Dir::Uni).unwrap();
            engine.send_stream(id).write(&[id.index() as u8; 100]).unwrap();
            pass(&mut client, &mut server, Instant::from_millis(1));
        }
        let read: Vec<_> = std::iter::from_fn(|| server.read_bytes(0, Bytes::MAX)).collect();
        assert_eq!(read, vec![vec![0; 100]; mine], "{carry:?}");
        pass(&mut server, &mut client, Instant::from_millis(2));
        let (_, engine) = client.connection.as_mut().unwrap();
        let stopped = engine.send_stream(client_stream(mine as u64)).stopped();
        assert_eq!(stopped.map(|code| code.map(VarInt::into_inner)), Ok(Some(2)), "{carry:?}");
    }
}

fn send_events(end: &mut End, flow: usize) -> Vec<SendEvent> {
    std::iter::from_fn(|| end.poll_send_event(flow)).collect()
}

/// RFC 9000 §3.5.
#[test]
fn a_stream_that_the_far_end_stops_is_reset_with_its_code_and_holds_up_nothing_else() {
    let mut ends = sharing(&[Carry::Stream, Carry::StreamPerMessage]);
    let (first, data) = message(0, 100);
    ends[0].write_bytes(0, first, data, None).unwrap();
    // More than the far end's window, so that a rest waits outside the engine.
    let (large, data) = named(1, 0, 3_000_000);
    ends[0].write_bytes(1, large, data, Some(Instant::from_secs(9))).unwrap();
    let now = Instant::from_millis(1);
    let [client, server] = &mut ends;
    pass(client, server, now);
    assert_eq!(client.writable(1), Bytes::ZERO);
    for number in 0..2 {
        let (_, engine) = server.connection.as_mut().unwrap();
        engine.recv_stream(client_stream(number)).stop(VarInt::from_u32(9)).unwrap();
    }
    (0..2).for_each(|flow| client.clear_ready(flow));
    pass(server, client, now);
    assert!(client.is_ready(0) && client.is_ready(1));
    assert_eq!(client.stream_failure(0), Some(StreamFailure::Stopped(9)));
    assert_eq!(client.stream_failure(1), None);
    assert_eq!(send_events(client, 1).pop(), Some(SendEvent::Stopped { seq: 0 }));
    assert_eq!(client.sending.next_expiry(), None);
    assert_eq!([0, 1].map(|flow| client.send_buffer(flow)), [Bytes::ZERO; 2]);
    // The one flow takes nothing, the other one takes what comes next.
    let (next, data) = message(1, 100);
    assert_eq!(
        (client.writable(0), client.write_bytes(0, next, data, None)),
        (Bytes::ZERO, Err(Refused::NotOpen))
    );
    let (next, data) = named(1, 1, 100);
    client.write_bytes(1, next, data.clone(), None).unwrap();
    carry_all(&mut ends, Instant::from_millis(2));
    assert_eq!((read_all(&mut ends[1], 0).len(), read_all(&mut ends[1], 1)), (0, vec![data]));
    // The far end has had both resets, and so has forgotten the streams.
    let (_, engine) = ends[1].connection.as_mut().unwrap();
    assert_eq!(engine.streams().remote_open_streams(Dir::Uni), 0);
    assert!(send_events(&mut ends[0], 1).iter().all(|event| !matches!(event, SendEvent::Expired { .. })));
}

/// RFC 9000 §3.2: what came before the reset may be thrown away, and is.
#[test]
fn a_reset_of_the_stream_of_all_messages_is_the_flows_failure() {
    let mut ends = sharing(&[Carry::Stream, Carry::StreamPerMessage]);
    let (first, data) = message(0, 100);
    ends[0].write_bytes(0, first, data, None).unwrap();
    let (second, data) = named(1, 0, 100);
    ends[0].write_bytes(1, second, data.clone(), None).unwrap();
    carry_all(&mut ends, Instant::from_millis(1));
    assert_eq!((read_all(&mut ends[1], 0).len(), ends[1].stream_failure(0)), (1, None));
    let (_, engine) = ends[0].connection.as_mut().unwrap();
    engine.send_stream(client_stream(0)).reset(VarInt::from_u32(7)).unwrap();
    ends[1].clear_ready(0);
    carry_all(&mut ends, Instant::from_millis(2));
    assert!(ends[1].is_ready(0));
    assert_eq!((read_all(&mut ends[1], 0).len(), read_all(&mut ends[1], 1)), (0, vec![data]));
    assert_eq!([0, 1].map(|flow| ends[1].stream_failure(flow)), [Some(StreamFailure::Reset(7)), None]);
    // An echo would go on alone.
    let (echo, data) = message(0, 100);
    assert_eq!(ends[1].write_bytes(0, echo, data, None), Err(Refused::NotOpen));
}

#[test]
fn an_earlier_connection_of_both_seeded_ends_lets_messages_leave_at_once() {
    for zero_rtt in [true, false] {
        let config = QuicConfig { zero_rtt, ..QuicConfig::new(Carry::Datagram) };
        let setup = Setup { config, ..setup(Carry::Datagram, None) };
        let mut ends = [true, false]
            .map(|is_client| End::on_host(&setup, HostKeys::Seeded { is_client }, WINDOW).unwrap());
        ends[0].open(Instant::ZERO);
        assert_eq!(ends[0].is_open(), zero_rtt);
        if zero_rtt {
            let (message, data) = message(0, 160);
            ends[0].write_bytes(0, message, data.clone(), None).unwrap();
            // In the client's first flight.
            let [client, server] = &mut ends;
            pass(client, server, Instant::ZERO);
            assert_eq!(server.read_bytes(0, Bytes::MAX), Some(data));
        }
        carry_all(&mut ends, Instant::ZERO);
        assert!(ends.iter().all(|end| end.is_open() && end.lost().is_none()));
    }
}

fn packet(bytes: Vec<u8>) -> QuicPacket {
    QuicPacket { bytes, pieces: Vec::new() }
}

/// The flows of `setup` with 0-RTT.
fn with_zero_rtt(setup: Setup) -> Setup {
    Setup { config: QuicConfig { zero_rtt: true, ..setup.config }, ..setup }
}

/// Both ends with real keys, and those of the connection before, of which the client has its ticket, `now`.
fn ends_after_another(setup: &Setup) -> ([End; 2], [EarlierEnd; 2], Instant) {
    let keys = [HostKeys::Client(Fingerprint::of_secret(&SECRET).unwrap()), HostKeys::Server(SECRET)];
    let [(client, earlier), (server, its_earlier)] =
        keys.map(|keys| End::after_another(setup, keys, WINDOW, &IdOwner::default()).unwrap());
    let (mut earlier, mut its_earlier) = (earlier.unwrap(), its_earlier.unwrap());
    let mut now = Instant::ZERO;
    earlier.open(now);
    while !earlier.has_ticket() {
        assert!(now < Instant::from_secs(5), "it comes to an end");
        while let Some(bytes) = earlier.poll_transmit(now) {
            assert!(its_earlier.handle_packet(&packet(bytes), &arrival(now)));
        }
        while let Some(bytes) = its_earlier.poll_transmit(now) {
            assert!(earlier.handle_packet(&packet(bytes), &arrival(now)));
        }
        now += Duration::from_millis(1);
    }
    ([client, server], [earlier, its_earlier], now)
}

#[test]
fn the_ticket_of_an_earlier_connection_with_real_keys_lets_messages_leave_at_once() {
    let setup = with_zero_rtt(setup(Carry::Datagram, None));
    let ([mut client, mut server], [mut earlier, mut its_earlier], now) = ends_after_another(&setup);
    let ecn = Ecn::NotEct;
    // A guest may use this connection for messages: nobody reads them, and nothing is kept.
    let (unwanted, bytes) = message(0, 160);
    for _ in 0..3 {
        earlier.end_mut().write_bytes(0, unwanted, bytes.clone(), None).unwrap();
        while let Some(bytes) = earlier.poll_transmit(now) {
            assert!(its_earlier.handle_packet(&packet(bytes), &arrival(now)));
        }
        assert_eq!(its_earlier.end_mut().read_bytes(0, Bytes::MAX), None);
    }
    // The server never hears of the close.
    earlier.close(now);
    client.open(now);
    assert!(client.is_open());
    let (message, data) = message(0, 160);
    client.write_bytes(0, message, data.clone(), None).unwrap();
    let first = client.poll_transmit(now).unwrap();
    let Packet::Quic(first) = first.packet else { panic!("QUIC alone") };
    assert!(!its_earlier.handle_packet(&first, &arrival(now)), "it begins another connection");
    server.handle_packet(&first, ecn, now);
    pass(&mut client, &mut server, now);
    assert_eq!(server.read_bytes(0, Bytes::MAX), Some(data));
    let mut ends = [client, server];
    carry_all(&mut ends, now);
    assert!(ends.iter().all(|end| end.is_open() && end.lost().is_none()));
}

/// A client with a ticket, and a server that does not know the ticket and so rejects what comes with it.
fn rejecting(carries: &[Carry]) -> ([End; 2], Instant) {
    let flow = |&carry: &Carry| FlowSetup { carry, priority: 0, receive_buffer: None };
    let flows = carries.iter().map(flow).collect();
    let setup = with_zero_rtt(Setup { flows, ..setup(carries[0], None) });
    let ([client, _], _, now) = ends_after_another(&setup);
    let server = End::on_host(&setup, HostKeys::Server(SECRET), WINDOW).unwrap();
    let mut ends = [client, server];
    for end in &mut ends {
        (1..carries.len()).for_each(|flow| end.name_flow(flow, flow as u32));
    }
    ends[0].open(now);
    assert!(ends[0].is_open(), "it has a ticket");
    (ends, now)
}

/// RFC 9001 §4.6.2: the streams begin anew, and their data may be sent again. A datagram is never sent again.
#[test]
fn what_a_far_end_rejects_of_0_rtt_is_lost_and_streams_send_it_again() {
    for carries in [
        &[Carry::Stream][..],
        &[Carry::StreamPerMessage],
        &[Carry::StreamPerMessage, Carry::Datagram, Carry::Stream, Carry::StreamPerMessage, Carry::Stream],
    ] {
        let (mut ends, now) = rejecting(carries);
        let mut written = vec![Vec::new(); carries.len()];
        let mut write_all = |client: &mut End, seq| {
            for (flow, carry) in carries.iter().enumerate() {
                let (message, data) = match (flow, carry) {
                    (0, _) | (_, Carry::Stream) => message(seq, 1000),
                    _ => named(flow as u32, seq, 1000),
                };
                assert_eq!(client.write_bytes(flow, message, data.clone(), None), Ok(Bytes::new(1000)));
                written[flow].push(data);
            }
        };
        // A part leaves with the first flight, and a part waits for the window.
        (0..30).for_each(|seq| write_all(&mut ends[0], seq));
        carry_all(&mut ends, now);
        assert!(ends.iter().all(|end| end.is_established() && end.lost().is_none()), "{carries:?}");
        let (_, engine) = ends[0].connection.as_ref().unwrap();
        assert!(!engine.accepted_0rtt(), "{carries:?}");
        let sent_again = ends[0].counters(0).retransmissions;
        // It takes more now.
        write_all(&mut ends[0], 30);
        (1..100).for_each(|ms| carry_all(&mut ends, now + Duration::from_millis(ms)));
        for (flow, carry) in carries.iter().enumerate() {
            let (mut read, mut written) = (read_all(&mut ends[1], flow), written[flow].clone());
            assert_eq!((ends[0].send_buffer(flow), ends[1].stream_failure(flow)), (Bytes::ZERO, None));
            match carry {
                Carry::Datagram => {
                    assert!(read.len() < 31 && read.last() == written.last(), "{}", read.len());
                    continue;
                }
                Carry::Stream => {
                    (read, written) = (vec![read.concat().into()], vec![written.concat().into()]);
                }
                Carry::StreamPerMessage => {}
            }
            read.sort();
            written.sort();
            assert!(read == written, "flow {flow} of {carries:?}: {} messages", read.len());
        }
        assert!(sent_again > 0, "{carries:?}: what left twice is no new data");
    }
}

#[test]
fn a_message_that_expires_before_0_rtt_is_rejected_is_not_sent_again() {
    let (mut ends, now) = rejecting(&[Carry::StreamPerMessage]);
    let expires = [None, Some(now + Duration::from_millis(5)), Some(now + Duration::from_millis(40))];
    for (seq, expires) in expires.into_iter().enumerate() {
        // Larger than the first flight.
        let (message, data) = message(seq as u64, 30_000);
        assert_eq!(ends[0].write_bytes(0, message, data, expires), Ok(Bytes::new(30_000)));
    }
    let [client, server] = &mut ends;
    pass(client, server, now);
    let now = now + Duration::from_millis(10);
    carry_all(&mut ends, now);
    (1..100).for_each(|ms| carry_all(&mut ends, now + Duration::from_millis(ms)));
    let mut read: Vec<_> = read_all(&mut ends[1], 0).into_iter().map(|data| data[0] - 1).collect();
    read.sort_unstable();
    assert_eq!(read, [0, 2]);
    let expired = |event: &SendEvent| matches!(event, SendEvent::Expired { .. });
    let expired: Vec<_> = send_events(&mut ends[0], 0).into_iter().filter(expired).collect();
    assert_eq!(expired, [SendEvent::Expired { seq: 1 }]);
    assert_eq!((ends[0].send_buffer(0), ends[0].poll_timeout().is_some()), (Bytes::ZERO, true));
}

/// What a lost packet held up comes at once, and an application reads once a turn.
#[test]
fn one_read_of_a_stream_takes_all_that_is_there_up_to_its_limit() {
    let (mut client, mut server) = connected(Carry::Stream, None);
    for seq in 0..3 {
        let (message, data) = message(seq, 160);
        client.write_bytes(0, message, data, None).unwrap();
        pass(&mut client, &mut server, Instant::from_millis(seq));
    }
    assert_eq!(server.read_bytes(0, Bytes::new(100)).unwrap().len(), 100);
    assert_eq!(server.read_bytes(0, Bytes::MAX).unwrap().len(), 380);
    assert_eq!(server.read_bytes(0, Bytes::MAX), None);
}

#[test]
fn another_certificate_is_refused() {
    let other = Fingerprint::of_secret(&[8; 32]).unwrap();
    let (mut client, mut server) = ends(Carry::Datagram, None, other);
    connect(&mut client, &mut server);
    assert!(!client.is_open() && !server.is_open());
    let why = client.lost().unwrap();
    assert!(why.contains("certificate"), "{why}");
}

#[test]
fn no_two_connections_with_real_keys_are_alike() {
    let first = |keys: HostKeys| {
        let mut client = End::on_host(&setup(Carry::Datagram, None), keys, WINDOW).unwrap();
        client.open(Instant::ZERO);
        let Packet::Quic(packet) = client.poll_transmit(Instant::ZERO).unwrap().packet else {
            panic!("QUIC alone")
        };
        packet.bytes
    };
    let real = || first(HostKeys::Client(Fingerprint([0; 32])));
    assert_ne!(real(), real());
    let seeded = || first(HostKeys::Seeded { is_client: true });
    assert_eq!(seeded(), seeded());
}

#[test]
fn the_oldest_datagrams_give_way_to_what_comes_and_are_named() {
    let (mut client, mut server) = connected(Carry::Datagram, Some(Bytes::new(500)));
    let now = Instant::from_millis(1);
    for seq in 0..5 {
        let (message, data) = message(seq, 160);
        client.write_bytes(0, message, data, None).unwrap();
    }
    pass(&mut client, &mut server, now);
    let first = |data: bytes::Bytes| data[0];
    let dropped: Vec<_> = std::iter::from_fn(|| server.poll_dropped_bytes(0)).map(first).collect();
    let read: Vec<_> = std::iter::from_fn(|| server.read_bytes(0, Bytes::MAX)).map(first).collect();
    assert_eq!((dropped, read), (vec![1, 2], vec![3, 4, 5]));
}

#[test]
fn a_stream_that_was_reset_gives_no_message() {
    let (mut client, mut server) = connected(Carry::StreamPerMessage, None);
    let now = Instant::from_millis(1);
    // The window holds a part of it, and the rest expires.
    let (large, data) = message(0, 100_000);
    client.write_bytes(0, large, data, Some(Instant::from_millis(2))).unwrap();
    pass(&mut client, &mut server, now);
    assert_eq!(server.read_bytes(0, Bytes::MAX), None);
    let now = Instant::from_millis(3);
    client.handle_timeout(now);
    let (small, data) = message(1, 160);
    client.write_bytes(0, small, data.clone(), None).unwrap();
    while !pass(&mut client, &mut server, now).is_empty() | !pass(&mut server, &mut client, now).is_empty() {}
    assert_eq!(server.read_bytes(0, Bytes::MAX), Some(data));
    assert_eq!(server.read_bytes(0, Bytes::MAX), None);
    let Inbound::Real(arriving) = &server.inbound else { panic!("an end between hosts") };
    assert!(arriving.holds_nothing(), "{arriving:?}");
}

#[test]
fn a_second_connection_finds_no_place_and_leaves_nothing() {
    let (client, mut server) = connected(Carry::Datagram, None);
    let fingerprint = Fingerprint::of_secret(&SECRET).unwrap();
    let (mut other, _) = ends(Carry::Datagram, None, fingerprint);
    other.open(Instant::ZERO);
    let Packet::Quic(hello) = other.poll_transmit(Instant::ZERO).unwrap().packet else {
        panic!("QUIC alone")
    };
    for _ in 0..3 {
        server.handle_packet(&hello, Ecn::Ect0, Instant::ZERO);
    }
    assert!(server.poll_transmit(Instant::ZERO).is_none(), "it is not answered");
    assert_eq!(server.endpoint.open_connections(), 1);
    drop(client);
}

/// A peer may write anything into the reason (RFC 9000 §19.19), and logs and terminals show it.
#[test]
fn control_characters_in_the_reason_of_a_close_are_escaped() {
    let (mut client, mut server) = connected(Carry::Datagram, None);
    let now = Instant::from_millis(1);
    let reason = "it's \u{1b}[2Jover\r\n\0flow call: lost 0 \u{202e}\u{7f}\u{9b}".as_bytes();
    let (_, connection) = server.connection.as_mut().unwrap();
    connection.close(engine_time(now), VarInt::from_u32(7), bytes::Bytes::from_static(reason));
    pass(&mut server, &mut client, now);
    let why = client.lost().unwrap();
    assert!(!why.chars().any(|c| c.is_control() || c == '\u{202e}'), "{why:?}");
    let shown = r"it's \u{1b}[2Jover\r\n\0flow call: lost 0 \u{202e}\u{7f}\u{9b}";
    assert!(why.contains(shown), "{why}");
    assert!(!client.was_closed_by_peer(), "code 7 is not our close in order");
}

#[test]
fn a_close_is_told_to_the_other_end() {
    let (mut client, mut server) = connected(Carry::Stream, None);
    let now = Instant::from_millis(1);
    client.close(now);
    assert!(client.lost().is_none() && !client.is_open());
    assert!(!server.was_closed_by_peer());
    pass(&mut client, &mut server, now);
    assert!(server.lost().is_some() && server.was_closed_by_peer());
}

/// Carries packets for `ms` milliseconds while the server reads; returns the sizes and first bytes past the
/// token of the messages of each of two flows.
fn read_for(ends: &mut [End; 2], ms: u64) -> [Vec<(usize, u8)>; 2] {
    let mut read = [Vec::new(), Vec::new()];
    for at in 1..ms {
        let [client, server] = &mut *ends;
        let now = Instant::from_millis(at);
        for end in [&mut *client, &mut *server] {
            if end.poll_timeout().is_some_and(|deadline| deadline <= now) {
                end.handle_timeout(now);
            }
        }
        pass(client, server, now);
        for (flow, read) in read.iter_mut().enumerate() {
            read.extend(read_all(server, flow).iter().map(|data| (data.len(), data[4])));
        }
        pass(server, client, now);
    }
    read
}

#[test]
fn messages_of_1_mib_of_two_flows_arrive_side_by_side() {
    let mut ends = sharing(&[Carry::StreamPerMessage, Carry::StreamPerMessage]);
    let (first, data) = message(0, 1 << 20);
    ends[0].write_bytes(0, first, data, None).unwrap();
    let (second, data) = named(1, 1, 1 << 20);
    ends[0].write_bytes(1, second, data, None).unwrap();
    assert_eq!(read_for(&mut ends, 1000), [vec![(1 << 20, 1)], vec![(1 << 20, 2)]]);
    let Inbound::Real(arriving) = &ends[1].inbound else { panic!("an end between hosts") };
    assert!(arriving.holds_nothing(), "{arriving:?}");
}

#[test]
fn of_more_half_messages_than_there_is_room_for_the_largest_alone_is_given_up() {
    let mut ends = sharing(&[Carry::StreamPerMessage, Carry::StreamPerMessage]);
    ends[1].keep_half_messages(1 << 20);
    let (first, data) = message(0, 1_000_000);
    ends[0].write_bytes(0, first, data, None).unwrap();
    let (second, data) = named(1, 1, 1_000_000);
    ends[0].write_bytes(1, second, data, None).unwrap();
    let read = read_for(&mut ends, 1000);
    let is_stopped =
        |flow| send_events(&mut ends[0], flow).contains(&SendEvent::Stopped { seq: flow as u64 });
    let stopped = [0, 1].map(is_stopped);
    assert!(stopped[0] != stopped[1], "{stopped:?}");
    // Nothing but the other one arrives: no end of a message is one.
    let whole = |flow: usize| if stopped[flow] { vec![] } else { vec![(1_000_000, flow as u8 + 1)] };
    assert_eq!(read, [0, 1].map(whole));
    // What comes after it arrives, and nothing is kept.
    for flow in 0..2 {
        let (message, data) = named(flow, 9, 160);
        ends[0].write_bytes(flow as usize, message, data.clone(), None).unwrap();
        carry_all(&mut ends, Instant::from_secs(2));
        assert_eq!(read_all(&mut ends[1], flow as usize), [data]);
    }
    let Inbound::Real(arriving) = &ends[1].inbound else { panic!("an end between hosts") };
    assert!(arriving.holds_nothing(), "{arriving:?}");
}
