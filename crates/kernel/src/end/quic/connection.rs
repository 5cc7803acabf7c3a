//! What the flows of one QUIC connection share at one end: the engine, the sockets, and what leaves in which
//! packet.
//!
//! ```text
//!  flow 0 ─┐ write         ┌─► train ─► datagrams
//!  flow 1 ─┼─────► engine ─┤
//!  flow 2 ─┘ read  ◄───────┴─── datagrams       what became of its messages: each flow takes its own
//! ```
//!
//! A packet carries data of several flows. So a flow that has its turn sends all packets that may leave, and
//! the time at which each message left is kept until its own flow takes it. The first flow of a connection,
//! its leader, has the engine's deadlines and the sockets.
//!
//! A flow's end is locked before its connection, and a thread locks one of each at most
//! during a run.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkpath_config::{Carry, SMALLEST_QUIC_MTU};
use talkpath_quic::{EarlierEnd, End, HostKeys, SendEvent};
use talkpath_units::{Bytes, Duration, Ecn, Instant};
use talkpath_wire::{Packet, PayloadRange, QuicPacket};

use crate::clock::RunClock;
use crate::end::headers::HeaderCount;
use crate::end::packets::PacketNotes;
use crate::end::place::EndPlace;
use crate::end::route::{SendFailure, UdpRoute};
use crate::end::train::{Train, Unsent};
use crate::join::few_words;
use crate::spec::{FlowSpec, QuicSpec, SessionSpec};
use crate::sys::{Received, set_tos};

/// The QUIC connections of a run's ends, while the ends are made.
#[derive(Default)]
pub struct QuicConnections(Mutex<BTreeMap<ConnectionEnd, SharedConnection>>);

/// The first flow of a connection, and whether it is the client's end.
type ConnectionEnd = (usize, bool);

/// One end of a connection, as its flows share it.
pub(super) type SharedConnection = Arc<Mutex<QuicConnection>>;

impl QuicConnections {
    /// The end of the connection of the flow at `place`, and which of its flows this is. The first flow of a
    /// connection makes it.
    pub(super) fn of(&self, session: &SessionSpec, place: &EndPlace) -> (SharedConnection, usize) {
        let leader = session.leader(place.index);
        let members = session.members(place.index);
        let index = session.place_in_connection(place.index);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(Mutex::new(QuicConnection::new(session, &members, place)));
        let connection = Arc::clone(all.entry((leader, place.is_client)).or_insert_with(make));
        if members.len() > 1 && session.flows[place.index].is_named() {
            lock(&connection).engine.name_flow(index, place.token);
        }
        (connection, index)
    }
}

/// Exclusive use; a thread that panicked while it had it has made the counts no less true.
pub(super) fn lock(connection: &SharedConnection) -> MutexGuard<'_, QuicConnection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of a connection.
pub(super) struct QuicConnection {
    pub(super) engine: End,
    /// The connection before the run, until the run's own begins: the client has its ticket from it.
    earlier: Option<EarlierEnd>,
    pub(super) route: Option<UdpRoute>,
    /// The byte of the IP header of packets without ECT(0), and with it.
    tos: [u8; 2],
    /// What datagrams leave with now, as the engine wants it; `None` if it is not set on `route` yet.
    pub(super) ecn: Option<Ecn>,
    /// What leaves together.
    train: Train,
    /// The number of the next packet.
    packets: u64,
    /// The messages that leave in this turn.
    leaving: Vec<Leaving>,
    /// Who else wants to know what is in the packets.
    notes: Option<Arc<PacketNotes>>,
    pub(super) headers: HeaderCount,
    /// The engine's time: it never goes back, though a receive stamp may lie before a timer that has fired.
    pub(super) now: Instant,
    /// Why packets did not leave: the system's words, and how many each.
    pub(super) unsent: BTreeMap<String, u64>,
    /// Whether the engine is or was open.
    pub(super) was_open: bool,
    flows: Vec<FlowState>,
}

/// A message, or a part of a stream, that leaves in this turn.
struct Leaving {
    /// The number of its packet.
    packet: u64,
    flow: usize,
    range: PayloadRange,
    /// When the engine gave the packet out.
    at: Instant,
}

/// What the connection keeps for one of its flows.
struct FlowState {
    carry: Carry,
    /// What became of its messages, in order.
    outcomes: Vec<SendOutcome>,
    is_closing: bool,
}

/// What became of a message that the engine took.
pub(super) enum SendOutcome {
    /// It left, or these bytes of the stream did, at that time.
    Left(PayloadRange, Instant),
    /// It expired before it left.
    Expired(u64),
    /// The far end takes no datagram of its size, as was known only once the handshake was over.
    GivenBack(u64),
    /// The far end stopped its stream.
    Stopped(u64),
    /// The kernel would not take its packet, and it is not sent again.
    Unsent(u64, SendFailure),
}

impl QuicConnection {
    /// The end of the connection that `members` of the session share, at the place of one of them.
    fn new(session: &SessionSpec, members: &[usize], place: &EndPlace) -> Self {
        let flows = || members.iter().map(|&member| &session.flows[member]);
        let quic = |flow: &FlowSpec| flow.transport.as_quic().cloned();
        let specs: Vec<QuicSpec> = flows().filter_map(quic).collect();
        let setups = specs.iter().map(|spec| spec.flow_setup(place.is_sender)).collect();
        let is_clocked = flows().all(FlowSpec::is_clocked);
        let keys = place.quic_keys.unwrap_or(HostKeys::Seeded { is_client: place.is_client });
        let first = specs.first().unwrap_or_else(|| unreachable!("its flows are over QUIC"));
        let window = session.receive_window(members[0]);
        let ends = End::after_another(&first.setup(setups, place.seed), keys, window);
        let (mut engine, earlier) =
            ends.unwrap_or_else(|why| unreachable!("nothing of it comes from outside: {why}"));
        engine.keep_half_messages(session.half_message_room(members[0]));
        let tos = |is_ect| session.flows[members[0]].tos_with(is_ect).unwrap_or(0);
        let state =
            |spec: &QuicSpec| FlowState { carry: spec.carry(), outcomes: Vec::new(), is_closing: false };
        Self {
            engine,
            earlier,
            route: None,
            tos: [false, true].map(tos),
            ecn: None,
            train: Train::new(place.has_trains && !is_clocked),
            packets: 0,
            leaving: Vec::new(),
            notes: None,
            headers: HeaderCount::new(),
            now: Instant::ZERO,
            unsent: BTreeMap::new(),
            was_open: false,
            flows: specs.iter().map(state).collect(),
        }
    }

    /// From now on datagrams are sent over `route`.
    pub(super) fn set_route(&mut self, mut route: UdpRoute) {
        // RFC 9000 §14: no packet of QUIC is fragmented.
        route.keep_whole();
        (self.route, self.ecn) = (Some(route), None);
    }

    /// From now on `notes` says which messages each packet carries.
    pub(super) fn note_packets(&mut self, notes: Arc<PacketNotes>) {
        self.notes = Some(notes);
    }

    /// The time now, on the engine's clock.
    pub(super) fn tick(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Does what the engine has to do by now; returns how late that is, if it has something to do.
    pub(super) fn handle_timeout(&mut self) -> Option<Duration> {
        let deadline = self.engine.poll_timeout().filter(|deadline| *deadline <= self.now)?;
        self.engine.handle_timeout(self.now);
        Some(self.now.since(deadline))
    }

    /// Takes a datagram, which came at `stamp`. Returns false if it is one of the connection before the run.
    pub(super) fn handle_datagram(&mut self, datagram: &Received<'_>, stamp: Instant) -> bool {
        let packet = QuicPacket { bytes: datagram.payload.to_vec(), pieces: Vec::new() };
        if let Some(earlier) = &mut self.earlier {
            // Its time is the end's, not the run's.
            if earlier.handle_packet(&packet, datagram.ecn(), stamp) {
                send_all(earlier, self.route.as_ref(), stamp);
                return false;
            }
            self.earlier = None;
        }
        self.headers.note_datagram(datagram);
        self.tick(stamp);
        self.engine.handle_stamped(&packet, datagram.ecn(), stamp, self.now);
        true
    }

    /// If the run begins with a 0-RTT ticket: opens a connection before the run, over this client's own
    /// socket, and keeps its ticket. `is_over` ends the wait early.
    pub(super) fn fetch_ticket(&mut self, clock: RunClock, is_over: &dyn Fn() -> bool) -> Result<(), String> {
        let (Some(mut earlier), Some(route)) = (self.earlier.take(), &self.route) else { return Ok(()) };
        let mut buffer = vec![0; 1 << 16];
        let begun = clock.now();
        earlier.open(begun);
        while !earlier.has_ticket() && !is_over() {
            let now = clock.now();
            if let Some(why) = earlier.lost() {
                return Err(format!("the connection for a 0-RTT ticket was lost: {}", few_words(why)));
            }
            if now.since(begun) > TICKET_PATIENCE {
                return Err("no 0-RTT ticket came: its packets have no answer".to_owned());
            }
            earlier.handle_timeout(now);
            send_all(&mut earlier, Some(route), now);
            // An error is news of something sent before.
            if route.wait_readable(TICKET_SLICE) {
                // Whoever sends without end is not read without end.
                for _ in 0..MAX_AT_ONCE {
                    let Ok(size) = route.socket.recv(&mut buffer) else { break };
                    let packet = QuicPacket { bytes: buffer[..size].to_vec(), pieces: Vec::new() };
                    earlier.handle_packet(&packet, Ecn::NotEct, clock.now());
                }
            }
        }
        earlier.close(clock.now());
        send_all(&mut earlier, Some(route), clock.now());
        Ok(())
    }

    /// Why the connection did not open, in words.
    pub(super) fn no_answer(&self) -> String {
        let is_v6 = self.route.as_ref().is_some_and(UdpRoute::is_over_v6);
        let needs = (SMALLEST_QUIC_MTU + Bytes::new(if is_v6 { 20 } else { 0 })).get();
        let known = self.route.as_ref().and_then(UdpRoute::path_mtu).filter(|mtu| u64::from(*mtu) < needs);
        let begin = "the QUIC connection did not open: no answer to its first packets";
        if self.route.is_none() {
            return "the QUIC connection did not open: nothing came back over UDP before it, so it sent nothing".to_owned();
        }
        match known {
            Some(mtu) => format!(
                "{begin} of {needs} B; this host's kernel knows a path MTU of {mtu} B to there (`ip route get`), and \
                 QUIC needs {needs} B (RFC 9000 §14)"
            ),
            None => format!(
                "{begin} of {needs} B; the path may drop UDP, or packets of that size, and QUIC needs it (RFC 9000 §14)"
            ),
        }
    }

    /// Takes a flow for which there is something new. Whoever takes it gives it a turn.
    pub(super) fn take_ready(&mut self) -> Option<usize> {
        let flow = self.engine.next_ready(0)?;
        self.engine.clear_ready(flow);
        Some(flow)
    }

    /// Whether several flows share it.
    pub(super) const fn is_shared(&self) -> bool {
        self.flows.len() > 1
    }

    /// `flow` wants no more of the connection. With the last of its flows it is closed, once.
    pub(super) fn close(&mut self, flow: usize) {
        let was_closing = core::mem::replace(&mut self.flows[flow].is_closing, true);
        if !was_closing && self.flows.iter().all(|flow| flow.is_closing) {
            self.engine.close(self.now);
        }
    }

    /// Sends all packets that may leave now, whatever flows their data is of, in the turn of `flow`.
    pub(super) fn flush(&mut self, flow: usize, clock: RunClock) {
        loop {
            let now = self.tick(clock.now());
            let Some(transmit) = self.engine.poll_transmit(now) else { break };
            if let Packet::Quic(packet) = transmit.packet {
                self.send(flow, &packet, transmit.ecn);
            }
        }
        // What expired may leave nothing to send.
        self.take_send_events(flow);
        self.leave();
    }

    /// What became of the messages of `flow` since the last call.
    pub(super) fn take_outcomes(&mut self, flow: usize) -> std::vec::Drain<'_, SendOutcome> {
        self.flows[flow].outcomes.drain(..)
    }

    /// Sends a packet in the turn of `flow`, or has it leave with the train. One that the kernel will not
    /// take is lost on this host, as on a full queue of any other.
    fn send(&mut self, flow: usize, packet: &QuicPacket, ecn: Ecn) {
        if self.ecn != Some(ecn) {
            self.leave();
            self.mark(ecn);
        }
        let number = self.packets;
        self.packets += 1;
        self.take_send_events(flow);
        if let Some(notes) = &self.notes {
            notes.note(&packet.bytes, packet.messages().collect());
        }
        // A PING and padding, larger than any packet before it. That this host has no room for it either is
        // what it was to find out.
        let is_probe = packet.pieces.is_empty() && packet.bytes.len() > SMALLEST_PACKET;
        if is_probe {
            self.leave();
        }
        let result = match &self.route {
            Some(route) if is_probe => {
                route.send_whole(&packet.bytes).or_else(|error| match error.raw_os_error() {
                    Some(libc::EMSGSIZE) => Ok(()),
                    _ => Err(error),
                })
            }
            Some(route) if self.train.takes(packet.bytes.len() as u64) => {
                self.train.push(number, &packet.bytes, route);
                Ok(())
            }
            Some(route) => route.send_whole(&packet.bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        if let Err(why) = result {
            *self.unsent.entry(why.to_string()).or_default() += 1;
            self.lose(&BTreeMap::from([(number, SendFailure::of(&why))]));
        }
    }

    /// What the engine says of messages, of `flow` and of those for which there is something new: messages
    /// that left did so with the newest packet.
    fn take_send_events(&mut self, flow: usize) {
        let packet = self.packets.saturating_sub(1);
        let mut next = Some(flow);
        let mut from = 0;
        while let Some(flow) = next {
            while let Some(event) = self.engine.poll_send_event(flow) {
                match event {
                    SendEvent::Sent(range) => {
                        self.leaving.push(Leaving { packet, flow, range, at: self.now });
                    }
                    SendEvent::Expired { seq } => self.flows[flow].outcomes.push(SendOutcome::Expired(seq)),
                    SendEvent::GivenBack { seq } => {
                        self.flows[flow].outcomes.push(SendOutcome::GivenBack(seq));
                    }
                    SendEvent::Stopped { seq } => self.flows[flow].outcomes.push(SendOutcome::Stopped(seq)),
                }
            }
            next = self.engine.next_ready(from);
            from = next.map_or(from, |ready| ready + 1);
        }
    }

    /// All that waits in the train leaves, and what left in this turn is noted.
    fn leave(&mut self) {
        let Some(route) = &self.route else { return };
        self.train.leave(route);
        let mut lost = BTreeMap::new();
        for Unsent { seq: number, failure, why } in self.train.take_unsent() {
            *self.unsent.entry(why).or_default() += 1;
            lost.insert(number, failure);
        }
        self.lose(&lost);
        for Leaving { flow, range, at, .. } in self.leaving.drain(..) {
            self.flows[flow].outcomes.push(SendOutcome::Left(range, at));
        }
    }

    /// The packets of these numbers did not leave: their datagrams are lost. Streams are sent again.
    fn lose(&mut self, numbers: &BTreeMap<u64, SendFailure>) {
        if numbers.is_empty() {
            return;
        }
        let flows = &mut self.flows;
        self.leaving.retain(|Leaving { packet, flow, range, .. }| {
            let failure = numbers.get(packet);
            let flow = &mut flows[*flow];
            if let Some(failure) = failure
                && flow.carry == Carry::Datagram
                && let PayloadRange::Message { seq } = range
            {
                flow.outcomes.push(SendOutcome::Unsent(*seq, *failure));
            }
            failure.is_none()
        });
    }

    /// From now on datagrams leave with `ecn`.
    fn mark(&mut self, ecn: Ecn) {
        let Some(route) = &mut self.route else { return };
        self.ecn = Some(ecn);
        let tos = self.tos[usize::from(ecn == Ecn::Ect0)];
        match &mut route.unconnected {
            Some(unconnected) => unconnected.tos = Some(tos),
            None => {
                let is_v6 = route.socket.local_addr().is_ok_and(|address| address.is_ipv6());
                // If the system does not let it, the path takes no marks; the engine finds that out.
                let _ = set_tos(route.socket.as_fd(), is_v6, tos);
            }
        }
    }
}

/// Lets leave what the connection before the run has to send. What does not leave is lost.
fn send_all(earlier: &mut EarlierEnd, route: Option<&UdpRoute>, now: Instant) {
    while let Some(packet) = earlier.poll_transmit(now) {
        let _ = route.map(|route| route.send(&packet));
    }
}

/// A packet that is larger than this carries messages or is a probe (RFC 9000 §14.1, §14.4).
const SMALLEST_PACKET: usize = 1200;
/// How long a ticket may take (chosen, as for the registration of a flow: some retransmissions).
const TICKET_PATIENCE: Duration = Duration::from_secs(5);
/// Datagrams that are read before it is seen what is due (chosen).
const MAX_AT_ONCE: usize = 64;
/// How often the wait for it looks for what is due.
const TICKET_SLICE: Duration = Duration::from_millis(5);
