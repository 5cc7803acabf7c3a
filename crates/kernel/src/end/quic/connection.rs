//! The part of a QUIC connection's end that its flows share: the engine, the sockets, and which message
//! leaves in which packet.
//!
//! ```text
//!  flow 0 ─┐ write         ┌─► train ─► datagrams
//!  flow 1 ─┼─────► engine ─┤
//!  flow 2 ─┘ read  ◄───────┴─── datagrams       each flow takes the outcomes of its own messages
//! ```
//!
//! A packet may carry data of several flows. So a flow that has its turn sends all packets that may leave.
//! The time at which each message left is kept until the message's own flow takes it. The first flow of a
//! connection is the leader. It has the engine's deadlines and the sockets.
//!
//! A thread locks the end of a flow before the connection. During a run it holds at most one lock of each
//! kind.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkpath_config::{Carry, SMALLEST_QUIC_MTU};
use talkpath_quic::{Arrival, EarlierEnd, End, FAR, HostKeys, IdOwner, IdTable, SendEvent};
use talkpath_units::{Bytes, Duration, Ecn, Instant};
use talkpath_wire::{Packet, PayloadRange, QuicPacket};

use crate::clock::RunClock;
use crate::end::headers::HeaderCount;
use crate::end::packets::PacketNotes;
use crate::end::place::EndPlace;
use crate::end::route::{SendFailure, UdpRoute};
use crate::end::train::{Train, Unsent};
use crate::join::shorten_reason;
use crate::spec::{FlowSpec, QuicSpec, SessionSpec};
use crate::sys::{Received, set_tos};

/// The size of a packet above which it carries messages or is a probe, bytes (RFC 9000 §14.1, §14.4).
const SMALLEST_PACKET: usize = 1200;
/// The number of events that the qlog of a connection keeps. We chose 200,000, which take some 60 MB: an hour
/// of a call both ways, or 70 MB of a transfer.
const MOST_EVENTS: usize = 200_000;
/// The longest wait for a ticket. We chose 5 s, which allow some retransmissions.
const TICKET_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of datagrams that are read before the timers run again. We chose 64, as in a turn of a flow.
const MAX_AT_ONCE: usize = 64;
/// The longest wait for a datagram before the timers run again.
const TICKET_SLICE: Duration = Duration::from_millis(5);

/// The QUIC connections of a run. The ends look up their connections here while they are made.
#[derive(Default)]
pub struct QuicConnections {
    all: Mutex<BTreeMap<ConnectionEnd, SharedConnection>>,
    ids: IdTable,
    keeps_qlogs: bool,
}

/// The place of the first flow of a connection in the session, and true for the client's end.
type ConnectionEnd = (usize, bool);

/// One end of a connection, as its flows share it.
pub(super) type SharedConnection = Arc<Mutex<QuicConnection>>;

impl QuicConnections {
    /// Makes an empty set of connections at a socket that other runs share. The connection IDs of its servers
    /// are noted in `ids`, each with the token of the connection's first flow.
    pub fn at_shared_socket(ids: IdTable) -> Self {
        Self { ids, ..Self::default() }
    }

    /// Makes the clients' ends keep a qlog, if `keeps_qlogs` is true.
    #[must_use]
    pub fn keeping_qlogs(mut self, keeps_qlogs: bool) -> Self {
        self.keeps_qlogs = keeps_qlogs;
        self
    }

    /// Returns the end of the connection of the flow at `place`, and the place of the flow among the flows of
    /// the connection. The first flow that asks makes the connection.
    pub(super) fn of(&self, session: &SessionSpec, place: &EndPlace) -> (SharedConnection, usize) {
        let leader = session.leader(place.index);
        let members = session.members(place.index);
        let index = session.place_in_connection(place.index);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let ids = IdOwner { table: self.ids.clone(), token: place.token };
        let make = || {
            let mut connection = QuicConnection::new(session, &members, place, &ids);
            if self.keeps_qlogs && place.is_client {
                connection.engine.keep_qlog(MOST_EVENTS);
            }
            Arc::new(Mutex::new(connection))
        };
        let connection = Arc::clone(all.entry((leader, place.is_client)).or_insert_with(make));
        if members.len() > 1 && session.flows[place.index].is_named() {
            lock(&connection).engine.name_flow(index, place.token);
        }
        (connection, index)
    }
}

/// Locks the connection. A lock that a panicking thread held is taken all the same, because the counts so far
/// are still true.
pub(super) fn lock(connection: &SharedConnection) -> MutexGuard<'_, QuicConnection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of a connection.
pub(super) struct QuicConnection {
    pub(super) engine: End,
    /// The connection before the run, from which the client has its 0-RTT ticket. `None` once the run's own
    /// connection has begun.
    earlier: Option<EarlierEnd>,
    is_client: bool,
    pub(super) route: Option<UdpRoute>,
    /// The byte of the IP header with DSCP and ECN field, for packets without ECT(0) and for packets with it.
    tos: [u8; 2],
    /// The ECN field that is set on `route`. `None` if it is not set yet.
    pub(super) ecn: Option<Ecn>,
    /// The packets that wait to leave by one system call.
    train: Train,
    /// The number of the next packet.
    packets: u64,
    /// The messages that leave in this turn.
    leaving: Vec<Leaving>,
    /// The notes for the emulator about the messages in each packet. `None` without an emulator.
    notes: Option<Arc<PacketNotes>>,
    pub(super) headers: HeaderCount,
    /// The engine's time. It never goes back, although a receive stamp may lie before a timer that has fired.
    pub(super) now: Instant,
    /// The number of packets that did not leave, for each text of the system's errors.
    pub(super) unsent: BTreeMap<String, u64>,
    /// True if the engine is or was open.
    pub(super) was_open: bool,
    flows: Vec<FlowState>,
}

/// A message, or a part of a stream, that leaves in this turn.
struct Leaving {
    /// The number of the packet that carries it.
    packet: u64,
    flow: usize,
    range: PayloadRange,
    /// When the engine gave the packet out.
    at: Instant,
}

/// The state that the connection keeps for one of its flows.
struct FlowState {
    carry: Carry,
    /// What became of the flow's messages, in order, since the flow last took it.
    outcomes: Vec<SendOutcome>,
    is_closing: bool,
}

/// What became of a message that the engine took.
pub(super) enum SendOutcome {
    /// The message, or this range of the stream, left at this time.
    Left(PayloadRange, Instant),
    /// The message expired before it left.
    Expired(u64),
    /// The message is too large for a datagram of the far end. This was known only after the handshake.
    GivenBack(u64),
    /// The far end stopped the message's stream.
    Stopped(u64),
    /// The kernel did not take the message's packet, and the message is not sent again.
    Unsent(u64, SendFailure),
}

impl QuicConnection {
    /// Makes the end of the connection that the flows `members` of the session share. `place` is the place of
    /// one of these flows.
    fn new(session: &SessionSpec, members: &[usize], place: &EndPlace, ids: &IdOwner) -> Self {
        let flows = || members.iter().map(|&member| &session.flows[member]);
        let quic = |flow: &FlowSpec| flow.transport.as_quic().cloned();
        let specs: Vec<QuicSpec> = flows().filter_map(quic).collect();
        let setups = specs.iter().map(|spec| spec.flow_setup(place.is_sender)).collect();
        let is_clocked = flows().all(FlowSpec::is_clocked);
        let keys = place.quic_keys.unwrap_or(HostKeys::Seeded { is_client: place.is_client });
        let first = specs.first().unwrap_or_else(|| unreachable!("its flows are over QUIC"));
        let window = session.receive_window(members[0]);
        let ends = End::after_another(&first.setup(setups, place.seed), keys, window, ids);
        let (mut engine, earlier) =
            ends.unwrap_or_else(|why| unreachable!("nothing of it comes from outside: {why}"));
        engine.keep_half_messages(session.half_message_room(members[0]));
        let tos = |is_ect| session.flows[members[0]].tos_with(is_ect).unwrap_or(0);
        let state =
            |spec: &QuicSpec| FlowState { carry: spec.carry(), outcomes: Vec::new(), is_closing: false };
        Self {
            engine,
            earlier,
            is_client: place.is_client,
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

    /// Sets the route that datagrams are sent over from now on.
    pub(super) fn set_route(&mut self, mut route: UdpRoute) {
        // RFC 9000 §14: no packet of QUIC is fragmented.
        route.keep_whole();
        (self.route, self.ecn) = (Some(route), None);
    }

    /// Makes the connection write to `notes` from now on which messages each packet carries.
    pub(super) fn note_packets(&mut self, notes: Arc<PacketNotes>) {
        self.notes = Some(notes);
    }

    /// Moves the engine's clock to `now` and returns its time. The clock never goes back.
    pub(super) fn tick(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Does what the engine has to do by now. Returns how late that is, or `None` if nothing was due.
    pub(super) fn handle_timeout(&mut self) -> Option<Duration> {
        let deadline = self.engine.poll_timeout().filter(|deadline| *deadline <= self.now)?;
        self.engine.handle_timeout(self.now);
        Some(self.now.since(deadline))
    }

    /// Takes a datagram that came at `stamp`. Returns false if it belongs to the connection before the run.
    pub(super) fn handle_datagram(&mut self, datagram: &Received<'_>, stamp: Instant) -> bool {
        let packet = QuicPacket { bytes: datagram.payload.to_vec(), pieces: Vec::new() };
        // A client's socket takes datagrams of its server alone.
        let from = datagram.from.filter(|_| !self.is_client).unwrap_or(FAR);
        let arrival = Arrival { from, ecn: datagram.ecn(), at: stamp };
        if let Some(earlier) = &mut self.earlier {
            // The engine of the connection before the run has the time of the stamp.
            if earlier.handle_packet(&packet, &arrival) {
                send_all(earlier, self.route.as_ref(), stamp);
                return false;
            }
            self.earlier = None;
        }
        self.headers.note_datagram(datagram);
        self.tick(stamp);
        self.engine.handle_arrival(&packet, &arrival, self.now);
        true
    }

    /// Opens a connection before the run, over this client's own socket, and keeps its 0-RTT ticket. Does
    /// nothing if the run needs no ticket. The wait ends early when `is_over` returns true.
    pub(super) fn fetch_ticket(&mut self, clock: RunClock, is_over: &dyn Fn() -> bool) -> Result<(), String> {
        let (Some(mut earlier), Some(route)) = (self.earlier.take(), &self.route) else { return Ok(()) };
        let mut buffer = vec![0; 1 << 16];
        let begun = clock.now();
        earlier.open(begun);
        while !earlier.has_ticket() && !is_over() {
            let now = clock.now();
            if let Some(why) = earlier.lost() {
                return Err(format!("the connection for a 0-RTT ticket was lost: {}", shorten_reason(why)));
            }
            if now.since(begun) > TICKET_TIMEOUT {
                return Err("no 0-RTT ticket came: its packets have no answer".to_owned());
            }
            earlier.handle_timeout(now);
            send_all(&mut earlier, Some(route), now);
            // The socket may report an error of an earlier datagram. It ends the reads of this round.
            if route.wait_readable(TICKET_SLICE) {
                // The reads of one round are limited, so that the timers run even if datagrams keep coming.
                for _ in 0..MAX_AT_ONCE {
                    let Ok(size) = route.socket.recv(&mut buffer) else { break };
                    let packet = QuicPacket { bytes: buffer[..size].to_vec(), pieces: Vec::new() };
                    let arrival = Arrival { from: FAR, ecn: Ecn::NotEct, at: clock.now() };
                    earlier.handle_packet(&packet, &arrival);
                }
            }
        }
        earlier.close(clock.now());
        send_all(&mut earlier, Some(route), clock.now());
        Ok(())
    }

    /// Explains why the connection did not open.
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

    /// Takes a flow for which the connection has something new. The caller gives the flow a turn.
    pub(super) fn take_ready(&mut self) -> Option<usize> {
        let flow = self.engine.next_ready(0)?;
        self.engine.clear_ready(flow);
        Some(flow)
    }

    /// Returns true if several flows share the connection.
    pub(super) const fn is_shared(&self) -> bool {
        self.flows.len() > 1
    }

    /// Takes note that `flow` no longer needs the connection. When no flow needs it, the connection is
    /// closed.
    pub(super) fn close(&mut self, flow: usize) {
        let was_closing = core::mem::replace(&mut self.flows[flow].is_closing, true);
        if !was_closing && self.flows.iter().all(|flow| flow.is_closing) {
            self.engine.close(self.now);
        }
    }

    /// Sends all packets that may leave now, in the turn of `flow`. The packets may carry data of any flow.
    pub(super) fn flush(&mut self, flow: usize, clock: RunClock) {
        loop {
            let now = self.tick(clock.now());
            let Some((transmit, to)) = self.engine.poll_transmit_to(now) else { break };
            if let Packet::Quic(packet) = transmit.packet {
                self.aim(to);
                self.send(flow, &packet, transmit.ecn);
            }
        }
        // If messages have expired, there may be no packet to send, and the events are taken only here.
        self.take_send_events(flow);
        self.leave();
    }

    /// Takes what became of the messages of `flow` since the last call.
    pub(super) fn take_outcomes(&mut self, flow: usize) -> std::vec::Drain<'_, SendOutcome> {
        self.flows[flow].outcomes.drain(..)
    }

    /// Sends a packet in the turn of `flow`, or adds it to the train. A packet that the kernel does not take
    /// counts as lost on this host, as if a full queue had dropped it.
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
        // A packet without messages that is larger than other such packets is a probe: a PING and padding
        // that searches for a larger MTU. EMSGSIZE from this host is then a result of the search and no
        // failure.
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

    /// Takes the engine's events about messages, for `flow` and for every flow that the engine has something
    /// new for. A message that was sent left with the newest packet.
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

    /// Sends the train, and notes for each flow which of its messages left in this turn.
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

    /// Takes note that the packets with these numbers did not leave. The datagram messages in them are lost.
    /// The engine sends the data of streams again.
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

    /// Sets the address that datagrams leave for from now on. A client's socket is connected to its server.
    fn aim(&mut self, to: SocketAddr) {
        let aim = |route: &UdpRoute| route.unconnected.map(|unconnected| unconnected.to);
        if to == FAR || self.route.as_ref().and_then(aim).is_none_or(|aimed| aimed == to) {
            return;
        }
        self.leave();
        if let Some(unconnected) = self.route.as_mut().and_then(|route| route.unconnected.as_mut()) {
            unconnected.to = to;
        }
    }

    /// Sets the ECN field that datagrams leave with from now on.
    fn mark(&mut self, ecn: Ecn) {
        let Some(route) = &mut self.route else { return };
        self.ecn = Some(ecn);
        let tos = self.tos[usize::from(ecn == Ecn::Ect0)];
        match &mut route.unconnected {
            Some(unconnected) => unconnected.tos = Some(tos),
            None => {
                let is_v6 = route.socket.local_addr().is_ok_and(|address| address.is_ipv6());
                // The error is ignored. If the system refuses, no packet has ECT(0), and the engine finds
                // that out.
                let _ = set_tos(route.socket.as_fd(), is_v6, tos);
            }
        }
    }
}

/// Sends all packets of the connection before the run. A packet that does not leave is lost.
fn send_all(earlier: &mut EarlierEnd, route: Option<&UdpRoute>, now: Instant) {
    while let Some(packet) = earlier.poll_transmit(now) {
        let _ = route.map(|route| route.send(&packet));
    }
}
