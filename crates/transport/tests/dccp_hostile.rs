//! Hostile peers: an end of our DCCP answers strangers no more than it must, and keeps nothing of them.
#![allow(clippy::tests_outside_test_module, reason = "an integration test")]

use proptest::prelude::*;
use talkpath_config::{CcidKind, DccpConfig, Role};
use talkpath_transport::dccp::{Dccp, State};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed};
use talkpath_wire::dccp::{DccpOption, DccpPacket, Options, PacketKind, Reset, ResetCode, Seq, ServiceCode};
use talkpath_wire::encapsulated::EncapsulatedPacket;
use talkpath_wire::{Message, Packet, Transport};

fn end(ccid: CcidKind, role: Role, init_cookie: bool) -> Dccp {
    let config = DccpConfig { init_cookie, ..DccpConfig::new(ccid) };
    Dccp::new(&config, role, Bytes::new(1500), Seed::new(9), None)
}

/// Everything that `from` has to say at `now`, given to `to`; how many packets that was.
fn pass(from: &mut Dccp, to: &mut Dccp, now: Instant) -> usize {
    let mut count = 0;
    while let Some(transmit) = from.poll_transmit(now) {
        to.handle_packet(&transmit.packet, Ecn::NotEct, now);
        count += 1;
    }
    count
}

/// Two ends with an open connection over a path of 10 ms each way, at [`START`], with data that went each
/// way.
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

/// An attacker who guesses numbers (RFC 4340 §7.5.5): eight answers a second at the most, and the connection
/// lives.
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
                end.handle_packet(&Packet::Encapsulated(packet.into()), Ecn::NotEct, now);
                while let Some(transmit) = end.poll_transmit(now) {
                    let Packet::Encapsulated(EncapsulatedPacket::Dccp(answer)) = transmit.packet else {
                        panic!("DCCP alone")
                    };
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

/// RFC 4340 §8.1.4: a flood of Requests, each answered, leaves a server as it was, and the true client gets
/// in.
#[test]
fn a_request_flood_leaves_a_server_with_cookies_as_it_was() {
    let mut server = end(CcidKind::Ccid2, Role::Passive, true);
    let now = Instant::from_secs(3);
    for n in 0..10_000_u64 {
        let request = DccpPacket::new(kind(0, 0), Seq::new(n << 20), Seq::new(0));
        server.handle_packet(&Packet::Encapsulated(request.into()), Ecn::NotEct, now);
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

/// Without cookies a server's end belongs to the first Request (RFC 4340 §8.5, step 3): a flood finds it
/// taken, adds nothing to it, and has it no longer than a handshake may last (§8.1.5). Cookies are there for
/// servers that shall be open meanwhile.
#[test]
fn a_request_flood_takes_a_plain_server_once_and_adds_nothing() {
    for fetches in [true, false] {
        let mut server = end(CcidKind::Ccid2, Role::Passive, false);
        let start = Instant::from_secs(3);
        let mut random = Seed::new(7).stream("flood");
        let (mut answers, mut waiting) = ([0; 2], 0);
        let mut now = start;
        for n in 0..10_000_u64 {
            now = start + Duration::from_micros(100 * n);
            // The same Request over and over, its numbers going on, and others.
            let seq = if n % 2 == 0 { Seq::new(5 + n / 2) } else { Seq::new(random.bits()) };
            let request = DccpPacket::new(kind(0, 0), seq, Seq::new(0));
            server.handle_packet(&Packet::Encapsulated(request.into()), Ecn::NotEct, now);
            while fetches && let Some(transmit) = server.poll_transmit(now) {
                let Packet::Encapsulated(EncapsulatedPacket::Dccp(answer)) = transmit.packet else {
                    panic!("DCCP alone")
                };
                match answer.kind {
                    PacketKind::Response { .. } => answers[0] += 1,
                    PacketKind::Sync => answers[1] += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        while server.poll_transmit(now).is_some() {
            waiting += 1;
        }
        // A valid Request has its Response (step 11), a stranger's a Sync, eight a second at the most.
        assert!(answers[0] <= 5000 && answers[1] <= 2 * 8, "{answers:?}");
        assert!(waiting <= 1 + 2 * 8, "{waiting}");
        assert_eq!(server.state(), State::Respond);
        fire(&mut server, now + Duration::from_secs(480));
        assert_eq!(server.state(), State::Closed);
    }
}

/// One end of a connection whose peer is ours to play.
struct Victim {
    end: Dccp,
    now: Instant,
    /// The last numbers that the peer and the end have used.
    peers: Seq,
    own: Seq,
    timeouts: u64,
    packets: u64,
}

/// What the peer does next: waits so many microseconds, and sends a packet of this kind whose acknowledgement
/// number lies so far back, that says it held the acknowledgement for so many units of 10 us, with these
/// bytes for options as well.
type Step = (u64, u8, u64, Option<u32>, Vec<u8>);

impl Victim {
    fn new(ccid: CcidKind, at_client: bool) -> Self {
        let [client, server] = connected(ccid);
        let (end, peer) = if at_client { (client, server) } else { (server, client) };
        let numbers = Seq::new(0);
        let mut victim = Self { end, now: START, peers: numbers, own: numbers, timeouts: 0, packets: 0 };
        victim.learn_numbers(peer);
        victim
    }

    /// Lets the true peer send one packet more, and sends one back.
    fn learn_numbers(&mut self, mut peer: Dccp) {
        let message = Message { seq: 1, size: Bytes::new(160), due: self.now };
        assert_eq!(peer.handle_message(message, self.now), Ok(()));
        while let Some(transmit) = peer.poll_transmit(self.now) {
            let Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)) = &transmit.packet else {
                panic!("DCCP alone")
            };
            self.peers = packet.seq;
            self.end.handle_packet(&transmit.packet, Ecn::NotEct, self.now);
        }
        self.write();
        self.drain();
        assert_ne!((self.peers, self.own), (Seq::new(0), Seq::new(0)));
    }

    /// The application has something to say, if it is let.
    fn write(&mut self) {
        let message = Message { seq: self.packets, size: Bytes::new(160), due: self.now };
        let _refused_or_not = self.end.handle_message(message, self.now);
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.end.poll_transmit(self.now) {
            let Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)) = transmit.packet else {
                panic!("DCCP alone")
            };
            self.own = packet.seq;
            self.packets += 1;
        }
        while self.end.poll_delivery(Bytes::MAX, self.now).is_some() {}
    }

    /// Answers every deadline up to `until`; false where there are too many.
    fn run(&mut self, until: Instant) -> bool {
        while let Some(deadline) = self.end.poll_timeout().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.end.handle_timeout(self.now);
            self.timeouts += 1;
            self.drain();
            if self.timeouts > self.most_timeouts() {
                return false;
            }
        }
        self.now = until;
        true
    }

    /// A few for each packet that came or went, for pacing, feedback and halving a rate down; and a few a
    /// second.
    fn most_timeouts(&self) -> u64 {
        20 * self.packets + 20 * (self.now.since(START).as_nanos() / 1_000_000_000 + 1)
    }

    fn hear(&mut self, &(_, number, back, elapsed, ref bytes): &Step) {
        self.peers = self.peers.next();
        let mut packet = DccpPacket::new(kind(number, 0), self.peers, self.own.wrapping_sub(back));
        packet.payload = if packet.kind.is_data() { 160 } else { 0 };
        packet.ccval = number;
        packet.options = match elapsed {
            Some(units) => feedback(units, bytes),
            None => Options::from_wire(bytes),
        };
        self.packets += 1;
        self.end.handle_packet(&Packet::Encapsulated(packet.into()), Ecn::NotEct, self.now);
        self.drain();
    }
}

/// RFC 4342 §6: what makes an acknowledgement feedback, from numbers of the peer's choice.
fn feedback(elapsed: u32, bytes: &[u8]) -> Options {
    let mut options = Options::EMPTY;
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let rate = [byte(0), byte(1), byte(2), byte(3)];
    let intervals: Vec<u8> = (3..13).map(byte).collect();
    assert!(options.push(DccpOption::ElapsedTime(elapsed)));
    assert!(options.push(DccpOption::Ccid { kind: RECEIVE_RATE, data: &rate }));
    assert!(options.push(DccpOption::Ccid { kind: LOSS_INTERVALS, data: &intervals }));
    options
}

fn step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![Just(0_u64), 0_u64..50, 0_u64..300_000];
    // Data, Ack and DataAck for the most part.
    let number = prop_oneof![4 => 2_u8..5, 1 => 2_u8..10];
    let elapsed =
        prop_oneof![Just(None), Just(Some(0)), any::<u32>().prop_map(Some), (0_u32..9).prop_map(Some)];
    (wait, number, 0_u64..4, elapsed, prop::collection::vec(any::<u8>(), 0..40))
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    /// A peer with the right numbers may say what it likes, and when: no end panics, and none wakes more
    /// often than a few times for each packet and second.
    #[test]
    fn no_valid_peer_makes_an_end_panic_or_spin(
        ccid in 0_usize..3, at_client: bool, steps in prop::collection::vec(step(), 1..40),
    ) {
        let ccid = [CcidKind::Ccid2, CcidKind::Ccid3, CcidKind::Ccid4][ccid];
        let mut victim = Victim::new(ccid, at_client);
        for step in &steps {
            victim.write();
            victim.drain();
            let next = victim.now + Duration::from_micros(step.0);
            prop_assert!(victim.run(next), "{} timeouts by {:?}", victim.timeouts, victim.now);
            victim.hear(step);
        }
        // And then it falls silent, and so does the application.
        let end = victim.now + Duration::from_secs(20);
        prop_assert!(victim.run(end), "{} timeouts by {:?}", victim.timeouts, victim.now);
    }
}

/// RFC 4342 §8.
const RECEIVE_RATE: u8 = 194;
const LOSS_INTERVALS: u8 = 193;
