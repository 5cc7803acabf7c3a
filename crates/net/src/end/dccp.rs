//! A flow's end on our own DCCP (RFC 4340), each packet in a UDP datagram (RFC 6773) of the flow's own sockets.
//!
//! ```text
//!  workload ─► backlog ─► state machine ─► encode ─► datagram       driven by: the pacer, at the machine's deadlines;
//!  log  ◄──── deliveries ◄── machine ◄── decode ◄── datagram        the receiving thread, with what arrives
//! ```
//!
//! The order within one step is that of the simulator's endpoint: what an input released leaves, then the application
//! reads, then it writes. A packet is timed by the kernel's receive stamp where that is later than all before it, so that
//! a late thread of this host makes no round trip longer. The client opens and closes; the server answers.
//!
//! After RFC 6773: the DCCP header is unchanged, its checksum zero, UDP's covers all (§3.3). The ports below are the
//! connection's own; which UDP ports carry it is agreed by the arena, not 6511 (§5.1 allows that). Left out: ECN (the
//! sockets neither set nor read the codepoint, so the machine is told that packets are not capable), and the reduced
//! MTU that ICMP may tell of: the MTU is given.

use std::collections::VecDeque;
use std::io;

use talkpath_transport::dccp::codec::{Carrier, Ports, decode, encode};
use talkpath_transport::dccp::{Dccp, ResetCode, State};
use talkpath_transport::{Delivery, Ecn, Message, Packet, PayloadRange, Refused, Role, Transmit, Transport};
use talkpath_units::{Bytes, Duration, Instant, Seed};

use super::messages::{Incoming, Outgoing};
use super::{Base, Place, UdpRoute};
use crate::log::{DropPlace, Sample};
use crate::protocol::Progress;
use crate::spec::DccpSpec;

/// A DCCP flow's end.
pub(crate) struct Connection {
    machine: Dccp,
    /// Whether this end opens and closes the connection.
    is_client: bool,
    route: Option<UdpRoute>,
    /// As packets of this end carry them.
    ports: Ports,
    outgoing: Outgoing,
    incoming: Incoming,
    encoded: Vec<u8>,
    /// The machine's time: it never goes back, though a receive stamp may lie before a timer that has fired.
    now: Instant,
    is_requested: bool,
    /// The connection was open.
    is_begun: bool,
    /// It was not when sending stopped.
    is_given_up: bool,
    is_closing: bool,
    /// What the application wants to send and the machine had no room for, with its row in the log.
    backlog: VecDeque<(Message, Option<usize>)>,
    /// There was more to do than one turn allows.
    is_unfinished: bool,
    /// A receiver that works so long on each message.
    service: Duration,
    reading_again_at: Instant,
    /// Pieces of a file that arrived and were not read yet.
    unread: VecDeque<(u64, Vec<u8>)>,
    /// Messages that the kernel took.
    sent: u64,
    blocked_since: Option<Instant>,
    sampling: Sampling,
}

/// When the connection's state is noted: where a window changed or the queue is longer than ever, and else this often.
struct Sampling {
    interval: Duration,
    next: Instant,
    windows: (u32, u32),
    most_queued: u64,
}

impl Connection {
    /// An end of the connection that `spec` describes, whose messages are numbered below `bound`.
    pub(crate) fn new(spec: &DccpSpec, place: &Place, bound: u64, interval: Duration) -> Self {
        let role = if place.is_client { Role::Active } else { Role::Passive };
        let receive_buffer = spec.receive_buffer().filter(|_| !place.is_sender);
        let client = CLIENT_PORTS + ((place.index + 1) % (1 << 14)) as u16;
        let (source, destination) =
            if place.is_client { (client, SERVER_PORT) } else { (SERVER_PORT, client) };
        Self {
            machine: Dccp::new(&spec.config(), role, spec.mtu(), place.seed, receive_buffer),
            is_client: place.is_client,
            route: None,
            ports: Ports { source, destination },
            outgoing: Outgoing::new(place.token),
            incoming: Incoming::new(place.token, bound),
            encoded: Vec::new(),
            now: Instant::ZERO,
            is_requested: false,
            is_begun: false,
            is_given_up: false,
            is_closing: false,
            backlog: VecDeque::new(),
            is_unfinished: false,
            service: Duration::ZERO,
            reading_again_at: Instant::ZERO,
            unread: VecDeque::new(),
            sent: 0,
            blocked_since: None,
            sampling: Sampling {
                interval,
                next: Instant::ZERO,
                windows: (u32::MAX, u32::MAX),
                most_queued: 0,
            },
        }
    }

    /// What this flow's messages carry.
    pub(crate) const fn token(&self) -> u32 {
        self.outgoing.token()
    }

    /// From now on datagrams go this way.
    pub(crate) fn set_route(&mut self, route: UdpRoute) {
        self.route = Some(route);
    }

    /// The application takes `service` for each message that it reads.
    pub(crate) fn set_service(&mut self, service: Duration) {
        self.service = service;
    }

    pub(crate) fn poll_timeout(&self, base: &Base) -> Option<Instant> {
        if self.is_unfinished {
            return Some(Instant::ZERO);
        }
        let asks = self.is_client && !self.is_requested && !self.is_closing;
        let start = asks.then(|| Instant::from_nanos(base.spec.start_ns));
        let gives_up = (asks || self.is_requested) && !self.is_begun && !self.is_given_up;
        let gives_up = gives_up.then_some(base.stop);
        let reads = (self.reading_again_at > Instant::ZERO).then_some(self.reading_again_at);
        let writes = base.workload_timeout().filter(|_| self.is_begun && self.machine.is_open());
        [start, gives_up, reads, writes, self.machine.poll_timeout()].into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, base: &mut Base, now: Instant) {
        self.now = self.now.max(now);
        if self.is_client && !self.is_requested && !self.is_closing && now.as_nanos() >= base.spec.start_ns {
            self.is_requested = true;
            self.machine.open(self.now);
        }
        if self.is_client && !self.is_begun && now >= base.stop {
            self.give_up(base);
        }
        if let Some(deadline) = self.machine.poll_timeout().filter(|deadline| *deadline <= self.now) {
            base.lateness.on_sent(now.since(deadline).as_nanos());
            self.machine.handle_timeout(self.now);
        }
        self.advance(base, None);
    }

    /// A datagram came from the other end's socket.
    pub(crate) fn handle_datagram(&mut self, base: &mut Base, payload: &[u8], stamp_ns: Option<i64>) {
        // Anything else (a registration's answer, a stranger's idea) is no packet of this connection.
        let Ok(decoded) = decode(payload, Carrier::Udp) else { return };
        let Ports { source, destination } = decoded.ports;
        if (destination, source) != (self.ports.source, self.ports.destination) {
            return;
        }
        let mut packet = decoded.packet;
        if !decoded.data.is_empty() {
            packet.message = self.incoming.number(&base.spec, decoded.data).unwrap_or(UNKNOWN);
            if base.sink.is_some() {
                self.unread.push_back((packet.message, decoded.data.to_vec()));
            }
        }
        let stamp = base.clock.stamped(stamp_ns);
        self.now = self.now.max(stamp);
        self.machine.handle_packet(&Packet::Dccp(Box::new(packet)), Ecn::NotEct, self.now);
        self.advance(base, Some(stamp));
        if self.service.is_zero() {
            // What was not read by now was no data, or a copy.
            self.unread.clear();
        }
    }

    /// The application is done: the connection ends, where nothing waits to be sent on it any more. What the run left
    /// behind is not sent after it.
    pub(crate) fn close(&mut self, base: &mut Base) {
        self.is_closing = true;
        if self.is_empty() {
            let now = self.tick(base);
            self.machine.close(now);
            self.advance(base, None);
        }
    }

    /// Whether the other end has heard that it is over, where it is to hear that.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.machine.state(), State::Closed | State::TimeWait | State::Listen) || !self.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.backlog.is_empty() && self.machine.observe().send_buffer == Bytes::ZERO
    }

    pub(crate) fn progress(&self, base: &Base) -> Progress {
        let never_opened = !self.is_begun && base.clock.now() >= base.stop;
        let is_done = (base.is_workload_finished() && self.is_empty()) || never_opened;
        Progress { is_done, sent: self.sent, received: self.incoming.unique() }
    }

    pub(crate) fn finish(&mut self, base: &mut Base, now: Instant) {
        if let Some(since) = self.blocked_since.take() {
            base.add_blocked(since, now);
        }
        let counters = self.machine.counters();
        base.log.totals.data_packets = Some(counters.data_packets);
        base.log.totals.timeouts = Some(counters.timeouts);
    }

    /// The time now, on the machine's clock.
    fn tick(&mut self, base: &Base) -> Instant {
        self.now = self.now.max(base.clock.now());
        self.now
    }

    /// Moves everything that can move; `arrived` is when the packet came that is to be read, if one did.
    fn advance(&mut self, base: &mut Base, arrived: Option<Instant>) {
        self.transmit(base);
        if self.read(base, arrived) {
            self.transmit(base);
        }
        self.write(base);
        self.account_blocking(base);
        self.sample(base);
        self.notice_end(base);
    }

    fn transmit(&mut self, base: &mut Base) {
        while let Some(seq) = self.machine.poll_discarded() {
            base.log.on_drop(seq, DropPlace::SendQueue);
        }
        loop {
            let now = self.tick(base);
            let Some(transmit) = self.machine.poll_transmit(now) else { return };
            self.send(base, &transmit, now);
        }
    }

    /// A packet that the kernel will not take is lost on this host, as on a full queue of any other.
    fn send(&mut self, base: &mut Base, transmit: &Transmit, now: Instant) {
        let Packet::Dccp(packet) = &transmit.packet else { return };
        let data = match packet.payload {
            0 => &[],
            size => self.outgoing.fill(&base.spec, u64::from(size), packet.message),
        };
        self.encoded.clear();
        encode(packet, self.ports, data, Carrier::Udp, &mut self.encoded);
        let unconnected = || Err(io::ErrorKind::NotConnected.into());
        let result = self.route.as_ref().map_or_else(unconnected, |route| route.send(&self.encoded));
        if let Err(why) = &result {
            base.log.on_unsent(why);
        }
        let Some(PayloadRange::Message { seq }) = transmit.payload else { return };
        match result {
            Ok(()) => {
                self.sent += 1;
                base.log.on_wire(seq, now);
            }
            Err(_) => base.log.on_drop(seq, DropPlace::Kernel),
        }
    }

    /// Reads what the application is ready for; returns whether there was anything.
    fn read(&mut self, base: &mut Base, arrived: Option<Instant>) -> bool {
        while let Some(seq) = self.machine.poll_dropped() {
            base.log.on_drop(seq, DropPlace::Inbox);
        }
        let is_slow = !self.service.is_zero();
        if is_slow && self.now < self.reading_again_at {
            return false;
        }
        self.reading_again_at = Instant::ZERO;
        let mut any = false;
        while let Some(Delivery::Message { seq, .. }) = self.machine.poll_delivery(Bytes::MAX, self.now) {
            any = true;
            // A slow application's message counts when it is read, a prompt one's when it came.
            self.deliver(base, seq, arrived.filter(|_| !is_slow).unwrap_or(self.now));
            if is_slow {
                self.reading_again_at = self.now + self.service;
                break;
            }
        }
        any
    }

    fn deliver(&mut self, base: &mut Base, seq: u64, at: Instant) {
        let mut piece = None;
        while let Some((number, data)) = self.unread.pop_front() {
            if number == seq {
                piece = Some(data);
                break;
            }
        }
        if seq == UNKNOWN || !base.log.on_arrival(seq, at) {
            return;
        }
        base.last_arrival = base.last_arrival.max(at);
        self.incoming.note(seq);
        if let (Some(sink), Some(data)) = (&mut base.sink, piece) {
            sink.on_piece(seq, data.get(FILE_HEADER..).unwrap_or_default());
        }
        if !base.is_sender && base.spec.echo_per_read.is_some() {
            let size = base.spec.datagram_size(seq).unwrap_or(0);
            let row = base.log.on_due(seq, size, at);
            self.backlog.push_back((Message { seq, size: Bytes::new(size), due: at }, row));
        }
    }

    /// Writes what is due and fits.
    fn write(&mut self, base: &mut Base) {
        self.is_unfinished = false;
        if self.is_closing || !self.machine.is_open() {
            return;
        }
        self.write_backlog(base);
        if !self.is_begun {
            self.is_begun = true;
            base.open_workload(self.now);
        }
        for _ in 0..MOST_IN_A_TURN {
            // While older messages wait there is no room for newer ones.
            let room = if self.backlog.is_empty() { self.machine.writable() } else { Bytes::ZERO };
            let now = self.tick(base);
            let Some((message, row)) = base.poll_message(room.get(), now) else { return };
            base.on_paced(message.due, now);
            self.backlog.push_back((message, row));
            self.write_backlog(base);
        }
        self.is_unfinished = true;
    }

    fn write_backlog(&mut self, base: &mut Base) {
        while let Some(&(message, row)) = self.backlog.front() {
            let now = self.tick(base);
            let outcome = self.machine.handle_message(message, now);
            if outcome == Err(Refused::NoRoom) {
                return;
            }
            self.backlog.pop_front();
            match (outcome, row) {
                (Ok(()), Some(row)) => base.log.on_sent(row, now),
                (Err(why), Some(row)) => base.log.on_refused(row, &why),
                (_, None) => {}
            }
            self.transmit(base);
        }
    }

    fn account_blocking(&mut self, base: &mut Base) {
        let greedy_waits = self.is_begun && !base.is_workload_finished() && base.workload_timeout().is_none();
        match (self.blocked_since, !self.backlog.is_empty() || greedy_waits) {
            (None, true) => self.blocked_since = Some(self.now),
            (Some(since), false) => {
                base.add_blocked(since, self.now);
                self.blocked_since = None;
            }
            _ => {}
        }
    }

    fn sample(&mut self, base: &mut Base) {
        let seen = self.machine.observe();
        let packets = |value: Option<f64>| {
            value.filter(|value| *value < f64::from(u32::MAX)).map_or(u32::MAX, |value| value as u32)
        };
        let micros = |span: Option<Duration>| {
            span.map_or(u32::MAX, |span| u32::try_from(span.as_micros()).unwrap_or(u32::MAX))
        };
        let windows = (packets(seen.cwnd), packets(seen.ssthresh));
        let queued = seen.send_buffer.get();
        let sampling = &mut self.sampling;
        let is_wanted =
            self.now >= sampling.next || windows != sampling.windows || queued > sampling.most_queued;
        if !is_wanted {
            return;
        }
        sampling.next = self.now.saturating_add(sampling.interval);
        sampling.windows = windows;
        sampling.most_queued = sampling.most_queued.max(queued);
        let rate = seen.pacing_rate.map_or(u64::MAX, talkpath_units::Rate::as_bps);
        base.log.on_sample(Sample(
            self.now.as_nanos(),
            windows.0,
            windows.1,
            micros(seen.srtt),
            micros(seen.rto),
            queued,
            u32::MAX,
            rate,
        ));
    }

    /// A connection that ends while it is wanted has failed.
    fn notice_end(&self, base: &mut Base) {
        let Some(code) = self.machine.ended_by().filter(|_| base.failure.is_none()) else { return };
        let is_orderly = self.is_closing || (code == ResetCode::CLOSED && base.is_workload_finished());
        if !is_orderly {
            base.failure = Some(format!("the DCCP connection was reset: {}", reason(code)));
        }
    }

    /// Sending would stop now, and the connection is not open.
    fn give_up(&mut self, base: &mut Base) {
        let is_first = !std::mem::replace(&mut self.is_given_up, true);
        let waited = base.stop.since(Instant::from_nanos(base.spec.start_ns));
        // Less is no time for an answer where the first Request was lost.
        if is_first && base.failure.is_none() && waited >= LEAST_PATIENCE {
            base.failure = Some("the DCCP connection did not open: no answer to its Requests".to_owned());
        }
    }
}

/// What a Reset Code means (RFC 4340 §5.6, RFC 6773 §3.8).
fn reason(code: ResetCode) -> String {
    let word = match code {
        ResetCode::CLOSED => "the far end closed it",
        ResetCode::ABORTED => "no progress",
        ResetCode::NO_CONNECTION => "no such connection",
        ResetCode::PACKET_ERROR => "an unexpected packet",
        ResetCode::OPTION_ERROR | ResetCode::MANDATORY_ERROR => "an option in error",
        ResetCode::CONNECTION_REFUSED => "the far end refused it",
        ResetCode::BAD_SERVICE_CODE => "another service code",
        ResetCode::TOO_BUSY => "the far end is too busy",
        ResetCode::BAD_INIT_COOKIE => "a bad Init Cookie",
        ResetCode::AGGRESSION_PENALTY => "misbehaviour",
        ResetCode::ENCAPSULATED_PORT_REUSE => "its UDP ports are another connection's",
        _ => "no reason given",
    };
    format!("{word} (Reset Code {})", code.0)
}

/// The seed of a connection that nobody shall foresee: its initial sequence number and its secrets.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn unforeseen_seed() -> io::Result<Seed> {
    Ok(Seed::new(u64::from_be_bytes(crate::key::random::<8>()?)))
}

/// Of data that is no message of this flow.
const UNKNOWN: u64 = u64::MAX;
/// Of a file's piece.
const FILE_HEADER: usize = crate::wire::FILE_HEADER as usize;
/// As in captures of simulated runs: dynamic ports for clients (RFC 6335 §6), talkpath's own for servers.
const CLIENT_PORTS: u16 = 49_152;
const SERVER_PORT: u16 = crate::live::DEFAULT_PORT;
/// Messages that a flow takes before another flow gets its turn (chosen: some 200 us of system calls).
const MOST_IN_A_TURN: usize = 64;
/// Requests leave after 0, 1 and 3 s (RFC 4340 §8.1.1): where three found no answer there is none.
const LEAST_PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
