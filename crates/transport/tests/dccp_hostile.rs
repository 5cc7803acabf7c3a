//! Hostile peers: an end of our DCCP answers strangers no more than it must, and keeps nothing of them.
#![allow(clippy::tests_outside_test_module, reason = "an integration test")]

use talkpath_transport::dccp::{Dccp, DccpPacket, PacketKind, Reset, ResetCode, Seq, ServiceCode, State};
use talkpath_transport::{CcidKind, DccpConfig, Ecn, Message, Packet, Role, Transport};
use talkpath_units::{Bytes, Duration, Instant, Seed};

fn end(ccid: CcidKind, role: Role, init_cookie: bool) -> Dccp {
    let config = DccpConfig { init_cookie, ..DccpConfig::new(ccid) };
    Dccp::new(&config, role, Bytes::new(1500), Seed::new(9), None)
}

/// Everything that `from` has to say at `now`, given to `to`; how many packets that was.
fn pass(from: &mut Dccp, to: &mut Dccp, now: Instant) -> usize {
    let mut count = 0;
    while let Some(transmit) = from.poll_transmit(now) {
        to.handle_packet(transmit.packet, Ecn::NotEct, now);
        count += 1;
    }
    count
}

/// Two ends with an open connection over a path of 10 ms each way, at [`START`], with data that went each way.
fn connected(ccid: CcidKind) -> [Dccp; 2] {
    let (mut client, mut server) = (end(ccid, Role::Active, false), end(ccid, Role::Passive, false));
    client.open(Instant::ZERO);
    let mut now = Instant::ZERO;
    while now < START {
        now += Duration::from_millis(10);
        let message = Message { seq: 0, size: Bytes::new(160), due: now };
        if now == Instant::from_millis(1010) {
            assert_eq!(client.handle_message(message, now), Ok(()));
            assert_eq!(server.handle_message(message, now), Ok(()));
        }
        fire(&mut client, now);
        pass(&mut client, &mut server, now);
        now += Duration::from_millis(10);
        fire(&mut server, now);
        pass(&mut server, &mut client, now);
    }
    assert_eq!((client.state(), server.state()), (State::Open, State::Open));
    [client, server]
}

/// Answers a deadline that has come.
fn fire(end: &mut Dccp, now: Instant) {
    if end.poll_timeout().is_some_and(|deadline| deadline <= now) {
        end.handle_timeout(now);
    }
}

/// When the stories begin.
const START: Instant = Instant::from_secs(4);

fn kind(number: u8, byte: u8) -> PacketKind {
    let service = ServiceCode(0);
    match number {
        0 => PacketKind::Request { service },
        1 => PacketKind::Response { service },
        2 => PacketKind::Data,
        3 => PacketKind::Ack,
        4 => PacketKind::DataAck,
        5 => PacketKind::CloseReq,
        6 => PacketKind::Close,
        7 => PacketKind::Reset(Reset { code: ResetCode(byte), data: [byte; 3] }),
        8 => PacketKind::Sync,
        _ => PacketKind::SyncAck,
    }
}

/// An attacker who guesses numbers (RFC 4340 §7.5.5): eight answers a second at the most, and the connection lives.
#[test]
fn blind_guesses_draw_eight_syncs_a_second_and_change_nothing() {
    for ccid in [CcidKind::Ccid2, CcidKind::Ccid3, CcidKind::Ccid4] {
        let [mut client, mut server] = connected(ccid);
        let mut random = Seed::new(5).stream("attack");
        let start = START + Duration::from_secs(1);
        let mut answers = 0;
        for n in 0..10_000_u64 {
            let now = start + Duration::from_micros(100 * n);
            let bits = random.bits();
            let seq = Seq::new(random.bits());
            let packet =
                DccpPacket::new(kind((bits % 10) as u8, (bits >> 8) as u8), seq, Seq::new(random.bits()));
            for end in [&mut client, &mut server] {
                end.handle_packet(Packet::Dccp(packet), Ecn::NotEct, now);
                while let Some(transmit) = end.poll_transmit(now) {
                    let Packet::Dccp(answer) = transmit.packet else { panic!("DCCP alone") };
                    // The peer's own acknowledgement timer may fire; nothing else but Syncs.
                    answers += u32::from(matches!(answer.kind, PacketKind::Sync));
                    assert!(matches!(answer.kind, PacketKind::Sync | PacketKind::Ack), "{answer:?}");
                }
            }
        }
        assert_eq!((client.state(), server.state()), (State::Open, State::Open));
        assert!(answers <= 2 * 2 * 8, "{answers}");
    }
}

/// RFC 4340 §8.1.4: a flood of Requests, each answered, leaves a server as it was, and the true client gets in.
#[test]
fn a_request_flood_leaves_a_server_with_cookies_as_it_was() {
    let mut server = end(CcidKind::Ccid2, Role::Passive, true);
    let now = Instant::from_secs(3);
    for n in 0..10_000_u64 {
        let request = DccpPacket::new(kind(0, 0), Seq::new(n << 20), Seq::new(0));
        server.handle_packet(Packet::Dccp(request), Ecn::NotEct, now);
        // Not even the answers pile up where nobody fetches them.
        if n % 3 == 0 {
            let answer = server.poll_transmit(now).expect("an answer");
            // RFC 4340 §8.1.4: a Response is not a multiple of the Request that may have been forged.
            assert!(answer.packet.wire_size() <= Bytes::new(20 + 28 + 132));
            assert_eq!(server.poll_transmit(now), None);
        }
    }
    assert_eq!(server.state(), State::Listen);
    while server.poll_transmit(now).is_some() {}
    let mut client = end(CcidKind::Ccid2, Role::Active, true);
    client.open(now);
    while pass(&mut client, &mut server, now) + pass(&mut server, &mut client, now) > 0 {}
    assert_eq!(server.state(), State::Open);
    assert!(client.is_open() && server.is_open());
}
