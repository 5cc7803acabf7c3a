//! Paths that change in mid connection: a smaller MTU of which nothing says so (RFC 9000 §14.3, RFC 8899
//! §4.3), another port or address of the client (RFC 9000 §9.3), and marks that do not pass (RFC 9000
//! §13.4.2).

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use talkpath_config::{Carry, QuicConfig};
use talkpath_quic::{Arrival, EcnFailure, End, Ends, FAR, FlowSetup, PathReport, Setup};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed, Stream};
use talkpath_wire::{Delivery, Message, Observation, Packet, QuicPacket, Refused};

/// What a packet is to the path: when it leaves, its UDP payload, and its ECN field.
#[derive(Clone, Copy, Debug)]
struct Passing {
    at: Instant,
    size: usize,
    ecn: Ecn,
}

/// What a path does to a packet: it returns the ECN field with which the packet arrives, or `None` if it is
/// lost.
type Pass = fn(Passing, &mut Stream) -> Option<Ecn>;

/// A client that writes messages of one size in turn, a server that may echo them, and the path between them.
struct Lab {
    carry: Carry,
    sizes: Vec<u64>,
    is_echo: bool,
    /// Messages flow from the server to the client alone.
    is_down: bool,
    interval: Duration,
    messages: u64,
    until: Instant,
    /// The client's address as the server sees it.
    address: fn(Instant) -> SocketAddr,
    /// What becomes of the ECN field; `None` if the packet is lost.
    pass: Pass,
    /// Whether a client that hears nothing for a second pings, as its host has it.
    pings: bool,
    /// Copies of the client's packets that come from here, before the originals.
    thief: Option<fn(Instant) -> Option<SocketAddr>>,
    seed: u64,
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    /// When each message was read by the end that does not write.
    read: Vec<(u64, Instant)>,
    /// When the client read each echo.
    echoes: Vec<Instant>,
    too_large: u64,
    /// Packets of each end above 1200 B, and when each left.
    large: [Vec<Instant>; 2],
    /// UDP payloads that the server has had from and sent to each address.
    exchanged: BTreeMap<SocketAddr, [u64; 2]>,
    /// What the server sent to an address before it was validated, beyond what came from there.
    excess: u64,
    sent_ect: [u64; 2],
    sent: [u64; 2],
    reports: [Option<PathReport>; 2],
    /// The server's state each time before the client's address changes, and at the end.
    states: Vec<Observation>,
}

impl Lab {
    fn new(carry: Carry) -> Self {
        Self {
            carry,
            sizes: vec![160],
            is_echo: true,
            is_down: false,
            interval: Duration::from_millis(20),
            messages: 500,
            until: Instant::from_secs(12),
            address: |_| HOME,
            pass: |passing, _| Some(passing.ecn),
            pings: false,
            thief: None,
            seed: 1,
        }
    }

    /// The end that writes the messages.
    fn writer(&self) -> usize {
        usize::from(self.is_down)
    }

    fn run(&self) -> Seen {
        let setup = Setup {
            config: QuicConfig { encryption: false, ..QuicConfig::new(self.carry) },
            flows: vec![FlowSetup { carry: self.carry, priority: 0, receive_buffer: None }],
            path_mtu: Bytes::new(1500),
            seed: Seed::new(self.seed),
        };
        let Ends { client, server, .. } = End::pair(&setup).expect("the configurations are our own");
        let mut run = Run {
            lab: self,
            ends: [client, server],
            lines: Default::default(),
            draws: Seed::new(self.seed).stream("paths"),
            now: Instant::ZERO,
            due: Instant::ZERO,
            seq: 0,
            heard: Instant::ZERO,
            address: (self.address)(Instant::ZERO),
            validated: vec![HOME],
            seen: Seen::default(),
        };
        run.ends[0].open(Instant::ZERO);
        while run.now < self.until {
            run.receive();
            run.follow_client();
            run.write();
            run.read();
            run.send();
            run.now = run.next();
        }
        let Run { ends, mut seen, .. } = run;
        assert_eq!([ends[0].lost(), ends[1].lost()], [None; 2]);
        seen.states.push(ends[1].observe(0));
        seen.reports = [ends[0].path_report(), ends[1].path_report()];
        seen
    }
}

/// A run of a lab: the client is end 0, the server end 1.
struct Run<'a> {
    lab: &'a Lab,
    ends: [End; 2],
    /// What is on its way from each end, and when it arrives.
    lines: [VecDeque<(Instant, Box<QuicPacket>, Arrival)>; 2],
    draws: Stream,
    now: Instant,
    /// When the next message is due.
    due: Instant,
    seq: u64,
    /// When the client last heard the server, or pinged it.
    heard: Instant,
    address: SocketAddr,
    /// The addresses that the server has validated.
    validated: Vec<SocketAddr>,
    seen: Seen,
}

impl Run<'_> {
    fn receive(&mut self) {
        for side in 0..2 {
            while let Some((_, packet, arrival)) =
                self.lines[side].pop_front_if(|packet| packet.0 <= self.now)
            {
                if side == 0 {
                    self.seen.exchanged.entry(arrival.from).or_default()[0] += packet.bytes.len() as u64;
                } else {
                    self.heard = self.now;
                }
                self.ends[1 - side].handle_arrival(&packet, &arrival, self.now);
                let moves = self.ends[1].path_report().map_or(0, |report| report.moves) as usize;
                if moves >= self.validated.len() {
                    self.validated.push(arrival.from);
                }
            }
            if self.ends[side].poll_timeout().is_some_and(|deadline| deadline <= self.now) {
                self.ends[side].handle_timeout(self.now);
            }
        }
    }

    /// The client's address may change, and a client that hears nothing pings.
    fn follow_client(&mut self) {
        let address = (self.lab.address)(self.now);
        if core::mem::replace(&mut self.address, address) != address {
            self.seen.states.push(self.ends[1].observe(0));
        }
        if self.next_ping() <= self.now {
            self.heard = self.now;
            self.ends[0].ping();
        }
    }

    fn next_ping(&self) -> Instant {
        match self.lab.pings && self.ends[0].is_established() {
            true => self.heard + Duration::from_secs(1),
            false => Instant::MAX,
        }
    }

    fn write(&mut self) {
        if self.due > self.now {
            return;
        }
        let writer = &mut self.ends[self.lab.writer()];
        if !writer.is_open() {
            self.due = self.now + Duration::from_millis(1);
            return;
        }
        let size = Bytes::new(self.lab.sizes[(self.seq % self.lab.sizes.len() as u64) as usize]);
        match writer.write(0, Message { seq: self.seq, size, due: self.now }, None) {
            Ok(_) | Err(Refused::NoRoom) => {}
            Err(Refused::TooLarge { .. }) => self.seen.too_large += 1,
            Err(other) => panic!("{other}"),
        }
        self.seq += 1;
        self.due = if self.seq < self.lab.messages { self.now + self.lab.interval } else { Instant::MAX };
    }

    fn read(&mut self) {
        for side in 0..2 {
            while let Some(delivery) = self.ends[side].read(0, Bytes::new(1 << 20)) {
                let Delivery::Message { seq, size } = delivery else { continue };
                if side == self.lab.writer() {
                    self.seen.echoes.push(self.now);
                    continue;
                }
                self.seen.read.push((seq, self.now));
                if self.lab.is_echo {
                    let _full = self.ends[side].write(0, Message { seq, size, due: self.now }, None);
                }
            }
        }
    }

    fn send(&mut self) {
        let (now, at) = (self.now, self.now + Duration::from_millis(20));
        for side in 0..2 {
            while let Some((transmit, to)) = self.ends[side].poll_transmit_to(now) {
                let Packet::Quic(packet) = transmit.packet else { panic!("QUIC alone") };
                self.note_sent(side, packet.bytes.len(), transmit.ecn, to);
                let passing = Passing { at: now, size: packet.bytes.len(), ecn: transmit.ecn };
                let Some(ecn) = (self.lab.pass)(passing, &mut self.draws) else { continue };
                if side == 0 {
                    let thief = self.lab.thief.and_then(|thief| thief(now));
                    for from in thief.into_iter().chain([self.address]) {
                        self.lines[0].push_back((at, packet.clone(), Arrival { from, ecn, at }));
                    }
                } else if to == (self.lab.address)(at) {
                    self.lines[1].push_back((at, packet, Arrival { from: FAR, ecn, at }));
                }
            }
        }
    }

    fn note_sent(&mut self, side: usize, size: usize, ecn: Ecn, to: SocketAddr) {
        let seen = &mut self.seen;
        seen.sent[side] += 1;
        seen.sent_ect[side] += u64::from(ecn == Ecn::Ect0);
        if size > 1200 {
            seen.large[side].push(self.now);
        }
        if side == 1 {
            let exchanged = seen.exchanged.entry(to).or_default();
            exchanged[1] += size as u64;
            if !self.validated.contains(&to) {
                seen.excess = seen.excess.max(exchanged[1].saturating_sub(exchanged[0]));
            }
        }
    }

    fn next(&self) -> Instant {
        let arrivals = self.lines.iter().filter_map(|line| line.front().map(|packet| packet.0));
        let timeouts = self.ends.iter().filter_map(End::poll_timeout);
        // The client's address may change with each of these.
        let tick = self.now + Duration::from_millis(100);
        arrivals.chain(timeouts).chain([self.due, self.next_ping(), tick]).min().unwrap_or(Instant::MAX)
    }
}

impl Seen {
    fn report(&self, side: usize) -> PathReport {
        self.reports[side].expect("there is a connection")
    }

    /// The longest time without an echo between two.
    fn longest_silence(&self) -> Duration {
        let gaps = self.echoes.windows(2).map(|pair| pair[1].since(pair[0]));
        gaps.max().unwrap_or(Duration::ZERO)
    }
}

/// From the third second on the path drops packets above 1280 B, and says nothing.
fn shrinks(passing: Passing, _: &mut Stream) -> Option<Ecn> {
    let mtu = if passing.at < Instant::from_secs(3) { 1500 } else { 1280 };
    (passing.size + IP_AND_UDP <= mtu).then_some(passing.ecn)
}

#[test]
fn a_stream_goes_on_within_seconds_of_a_black_hole_and_finds_the_new_mtu_a_minute_later() {
    let lab = Lab {
        is_echo: false,
        sizes: vec![100_000],
        interval: Duration::from_millis(400),
        messages: 200,
        until: Instant::from_secs(85),
        pass: shrinks,
        ..Lab::new(Carry::StreamPerMessage)
    };
    let seen = lab.run();
    let report = seen.report(0);
    assert_eq!((report.black_holes, seen.report(1).black_holes), (1, 0), "{report:?}");
    // What the search finds above 1200 B lies within two of its steps of 20 B below 1252 B.
    assert!((1212..=1252).contains(&report.packet_size), "{report:?}");
    let after = |from: u64, to: u64| {
        let within = |at: &&Instant| (Instant::from_secs(from)..Instant::from_secs(to)).contains(*at);
        seen.large[0].iter().filter(within).count()
    };
    assert!(after(1, 3) > 100 && after(8, 60) == 0 && after(64, 85) > 100, "{report:?}");
    let mut numbers: Vec<_> = seen.read.iter().map(|(seq, _)| *seq).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>(), "all of them arrive");
    let late = seen.read.iter().map(|&(seq, at)| at.since(Instant::from_millis(400 * seq))).max().unwrap();
    assert!(late < Duration::from_secs(6), "{late:?}");
}

#[test]
fn datagrams_that_a_black_hole_has_no_room_for_are_refused_and_smaller_ones_pass_it() {
    let lab = Lab { sizes: vec![160, 1300], is_echo: false, pass: shrinks, ..Lab::new(Carry::Datagram) };
    let seen = lab.run();
    assert_eq!(seen.report(0).black_holes, 1, "{:?}", seen.report(0));
    assert_eq!(seen.report(0).packet_size, 1200);
    let read = |from: u64, to: u64| {
        let within = |at: Instant| (Instant::from_secs(from)..Instant::from_secs(to)).contains(&at);
        seen.read.iter().filter(|(_, at)| within(*at)).fold([0, 0], |mut counts, (seq, _)| {
            counts[usize::from(seq % 2 == 1)] += 1;
            counts
        })
    };
    let [small, large] = read(1, 3);
    assert!(small >= 49 && large >= 49, "{small} {large}");
    let [small, large] = read(5, 10);
    assert!(small >= 124 && large == 0, "{small} {large}");
    assert!(seen.too_large > 100, "{}", seen.too_large);
}

/// Losses that have nothing to do with the size are no black hole.
#[test]
fn a_path_that_loses_packets_of_every_size_keeps_its_mtu() {
    for seed in 1..=5 {
        let lab = Lab {
            is_echo: false,
            sizes: vec![20_000],
            interval: Duration::from_millis(200),
            messages: 100,
            until: Instant::from_secs(30),
            pass: |passing, draws| (!draws.chance(0.05)).then_some(passing.ecn),
            seed,
            ..Lab::new(Carry::StreamPerMessage)
        };
        let seen = lab.run();
        assert_eq!(seen.report(0).black_holes, 0, "{seed}: {:?}", seen.report(0));
        assert_eq!(seen.read.len(), 100, "{seed}");
    }
}

/// From the fifth second on the client has another port.
fn another_port(at: Instant) -> SocketAddr {
    if at < Instant::from_secs(5) { HOME } else { SocketAddr::new(HOME.ip(), 50_001) }
}

/// From the fifth second on the client has another address.
fn another_address(at: Instant) -> SocketAddr {
    if at < Instant::from_secs(5) { HOME } else { ELSEWHERE }
}

#[test]
fn a_call_goes_on_at_a_new_port_without_a_break_and_its_round_trip_is_kept() {
    for carry in [Carry::Datagram, Carry::StreamPerMessage] {
        let seen = Lab { address: another_port, ..Lab::new(carry) }.run();
        let case = format!("{carry:?}: {:?}, {:?}", seen.report(1), seen.exchanged);
        assert_eq!((seen.report(0).moves, seen.report(1).moves), (0, 1), "{case}");
        assert_eq!(seen.read.len(), 500, "{case}: what the client sends arrives from either port");
        // Echoes of the last round trip before the change go to the old port.
        assert!(seen.echoes.len() >= 495, "{case}: {}", seen.echoes.len());
        assert!(seen.longest_silence() <= Duration::from_millis(150), "{case}: {:?}", seen.longest_silence());
        assert_eq!(seen.excess, 0, "{case}");
        // RFC 9000 §9.4.
        let [before, after] = &seen.states[..] else { panic!("{case}") };
        let [before_rtt, after_rtt] = [before, after].map(|state| state.srtt.expect("there were samples"));
        assert!(
            after_rtt.max(before_rtt).saturating_sub(after_rtt.min(before_rtt)) < Duration::from_millis(8)
        );
    }
}

#[test]
fn the_window_is_kept_at_a_new_port_and_begins_anew_at_a_new_address() {
    let bulk = |address| {
        Lab {
            address,
            is_echo: false,
            is_down: true,
            sizes: vec![30_000],
            interval: Duration::from_millis(50),
            messages: 100,
            pings: true,
            // What the server sends until it knows of the change goes to the old port, and is lost.
            until: Instant::from_secs(8),
            ..Lab::new(Carry::StreamPerMessage)
        }
        .run()
    };
    let [before, _] = &bulk(another_port).states[..] else { panic!() };
    assert!(before.cwnd > Some(20.0), "{before:?}");
    for (address, is_kept) in [(another_port as fn(Instant) -> SocketAddr, true), (another_address, false)] {
        let seen = bulk(address);
        assert_eq!(seen.report(1).moves, 1, "{:?}", seen.report(1));
        let [before, after] = [&seen.states[0], seen.states.last().unwrap()];
        // A reduction for the losses of the change at most (CUBIC: 0.7).
        let is_large = after.cwnd.unwrap() >= before.cwnd.unwrap() * 0.6;
        assert_eq!(is_large, is_kept, "{before:?} {after:?}");
        assert_eq!(seen.read.len(), 100, "all of them arrive");
        assert_eq!(seen.excess, 0);
    }
}

/// A server that sends alone cannot know of a change. Its client pings when it has heard nothing for a
/// second.
#[test]
fn a_flow_downwards_goes_on_when_its_client_pings_from_the_new_port() {
    for carry in [Carry::Datagram, Carry::StreamPerMessage] {
        let down =
            Lab { address: another_port, is_down: true, is_echo: false, pings: true, ..Lab::new(carry) };
        let seen = down.run();
        assert_eq!(seen.report(1).moves, 1, "{carry:?}: {:?}", seen.exchanged);
        let in_time = seen.read.iter().filter(|(_, at)| *at > Instant::from_secs(7)).count();
        assert!(in_time >= 140, "{carry:?}: {in_time}, {:?}", seen.read.last());
        assert_eq!(seen.excess, 0, "{carry:?}");
    }
}

/// Each second another port, over a path that loses packets.
#[test]
fn a_call_survives_a_new_port_each_second_on_a_path_that_loses_a_tenth() {
    for seed in 1..=10 {
        let lab = Lab {
            // Not in the handshake, in which a server follows nobody (RFC 9000 §9).
            address: |at| {
                let changes = (at.as_nanos() / 1_000_000_000).saturating_sub(3) as u16;
                SocketAddr::new(HOME.ip(), HOME.port() + changes)
            },
            pass: |passing, draws| (!draws.chance(0.1)).then_some(passing.ecn),
            seed,
            ..Lab::new(Carry::Datagram)
        };
        let seen = lab.run();
        assert!((6..=8).contains(&seen.report(1).moves), "{seed}: {:?}", seen.report(1));
        // 0.9 x 0.9 of 500, less a round trip for each change.
        assert!(seen.echoes.len() >= 330, "{seed}: {}", seen.echoes.len());
        assert_eq!(seen.excess, 0, "{seed}: {:?}", seen.exchanged);
    }
}

/// Somebody on the path repeats the client's packets from an address of his choice, and is faster (RFC 9000
/// §9.3.2): that address gets no more than he sends from there, and the call goes on.
#[test]
fn an_address_that_a_thief_writes_into_copies_gets_no_more_bytes_than_came_from_it() {
    for carry in Carry::ALL {
        for seed in 1..=5 {
            let lab = Lab {
                thief: Some(|at| {
                    let is_at_work = (Instant::from_secs(3)..Instant::from_secs(6)).contains(&at);
                    is_at_work.then_some(ELSEWHERE)
                }),
                is_echo: carry != Carry::Stream,
                seed,
                ..Lab::new(carry)
            };
            let seen = lab.run();
            let [from, to] = seen.exchanged[&ELSEWHERE];
            assert!(from > 0 && to <= from, "{carry:?}: {from} B from there, {to} B to there");
            assert_eq!(seen.excess, 0, "{carry:?}");
            if carry != Carry::Stream {
                let later = seen.echoes.iter().filter(|at| **at > Instant::from_secs(7)).count();
                assert!(later >= 140, "{carry:?}: {later}");
            }
        }
    }
}

#[test]
fn a_path_that_spoils_the_ecn_field_fails_validation_with_its_reason_and_the_call_goes_on() {
    let cases: [(&str, Pass, Option<EcnFailure>); 6] = [
        ("kept", |passing, _| Some(passing.ecn), None),
        ("half marked", |passing, draws| Some(if draws.chance(0.5) { Ecn::Ce } else { passing.ecn }), None),
        ("all marked", |_, _| Some(Ecn::Ce), Some(EcnFailure::AllMarked)),
        ("cleared", |_, _| Some(Ecn::NotEct), Some(EcnFailure::NotReported)),
        (
            "cleared later",
            |passing, _| Some(if passing.at < Instant::from_secs(3) { passing.ecn } else { Ecn::NotEct }),
            Some(EcnFailure::Changed),
        ),
        ("made ECT(1)", |_, _| Some(Ecn::Ect1), Some(EcnFailure::Changed)),
    ];
    for (name, pass, failure) in cases {
        let seen = Lab { pass, ..Lab::new(Carry::Datagram) }.run();
        for side in 0..2 {
            assert_eq!(seen.report(side).ecn_failure, failure, "{name}");
            let [ect, sent] = [seen.sent_ect[side], seen.sent[side]];
            let most = if name == "cleared later" { 300 } else { 40 };
            assert!(if failure.is_none() { ect == sent } else { ect <= most }, "{name}: {ect} of {sent}");
        }
        assert_eq!(seen.echoes.len(), 500, "{name}");
    }
}

/// IPv4 and UDP.
const IP_AND_UDP: usize = 28;
const HOME: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 50_000);
/// As a hand-over gives another, or a thief has it.
const ELSEWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 7)), 40_000);
