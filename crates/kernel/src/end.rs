//! One end of a flow: the application on a kernel socket, or on a transport of our own over one, and the log
//! of what it saw.
//!
//! Client and server run the same code; who sends the messages is a matter of the flow's direction. Three
//! threads call in, one at a time behind the flow's lock: the pacer when something is due, the UDP receiver
//! with datagrams, the TCP loop when a connection is readable or writable. Each call gives the channel its
//! input, and then the application its turn. If several flows share a connection, the others get a turn if
//! the connection has something new for them: a datagram may carry their messages, and a packet that left
//! makes room for their next ones.

mod any;
mod channel;
mod context;
mod dial;
mod encapsulated;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(not(test), expect(dead_code, reason = "the tests use more of it"))]
pub(crate) mod fixtures;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod headers;
mod lifecycle;
mod messages;
mod packets;
#[cfg(any(test, feature = "fuzzing"))]
#[expect(clippy::unwrap_used, reason = "the sockets are a test's")]
#[cfg_attr(not(test), expect(dead_code, reason = "the tests use more of it"))]
mod pair;
mod place;
mod quic;
mod route;
mod sampling;
mod setup;
mod tcp;
mod train;
mod udp;

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use talkpath_flow::file::FileSink;
use talkpath_flow::{AnyWorkload, Application, Channel as _, Side};
use talkpath_measure::ReadMessages;
use talkpath_model::{Due, EchoWrite, Receiver};
use talkpath_units::wheel::Key;
use talkpath_units::{Bytes, Histogram, Instant};

use any::{AnyChannel, each};
use channel::{DatagramChannel, HostChannel as _, Occasion};
pub use context::EndContext;
pub use dial::{Dial, apply_options};
pub use messages::message_in;
pub use packets::PacketNotes;
pub use place::{EndPlace, unforeseen_seed};
pub use quic::QuicConnections;
pub use route::{UdpRoute, Unconnected};
use setup::ChannelSetup;
pub use talkpath_quic::{Fingerprint, HostKeys, server_identity};
use udp::UdpChannel;

use crate::alarm::Alarm;
use crate::clock::RunClock;
use crate::log::{EndLog, RowBudget};
use crate::progress::EndProgress;
use crate::spec::{FlowSpec, SessionSpec};
use crate::sys::Received;
use crate::wire::{FRAMED, registered};

/// One end of a flow, shared by the threads that serve it.
pub struct SharedEnd {
    end: Mutex<FlowEnd>,
    /// Of the pacer that serves this end.
    alarm: Arc<Alarm>,
    /// The flows of its connection, itself among them, in their order. Empty if it shares none.
    members: OnceLock<Vec<Weak<SharedEnd>>>,
    /// Datagrams that came to its socket, of whatever kind.
    heard: AtomicU64,
}

/// One end of a flow.
pub struct FlowEnd {
    /// The flow, as both hosts know it.
    pub spec: FlowSpec,
    /// Whether this end sends the workload's messages; the other end reads them, and echoes if the flow has
    /// an echo.
    pub is_sender: bool,
    /// What this end saw.
    pub log: EndLog,
    /// What ended this flow before its time. The other flows of the run continue.
    pub failure: Option<String>,
    /// When that was.
    failed_at: Option<Instant>,
    /// How often the far end has answered that it knows this end's address.
    registered: u64,
    clock: RunClock,
    application: Application,
    channel: AnyChannel,
    /// Whether its application lets messages wait to be read.
    is_slow: bool,
    /// There was more to do than one turn allows, and no event will say so.
    is_unfinished: bool,
    budget: Arc<RowBudget>,
    /// Rows of the log that were taken out of the budget here.
    charged: u64,
    stop: Instant,
    /// As whom the pacer knows this end, and for when it is armed there; `None` before there is a pacer.
    paced: Option<(Key, Instant)>,
}

impl SharedEnd {
    /// An end of a flow of `session` whose socket is not open yet; `receiver` says how the end that reads the
    /// messages does so.
    pub fn new(
        session: &SessionSpec,
        spec: &FlowSpec,
        place: &EndPlace,
        receiver: Receiver,
        common: &EndContext,
    ) -> Self {
        let stop = session.stop();
        let window = Instant::from_nanos(session.warm_up_ns)..stop;
        let echo = spec
            .echo_per_read
            .map(|per_read| if per_read { EchoWrite::PerRead } else { EchoWrite::PerMessage });
        let (side, application) = if place.is_sender {
            let workload = AnyWorkload::new(&spec.workload, spec.workload_seed(), stop);
            (Side::Near, Application::near(spec.features(), workload, window))
        } else {
            (Side::Far, Application::far(spec.features(), echo, receiver, window))
        };
        let application = match spec.transport.lifetime() {
            Some(lifetime) => application.expiring_after(lifetime),
            None => application,
        };
        let application = match spec.due {
            Due::Start => application.with_clock_from(Instant::from_nanos(spec.start_ns)),
            Due::Opening => application,
        };
        let bound = match spec.message_bound(session.duration_ns) {
            0 => MAX_UNBOUNDED,
            bound => bound,
        };
        let messages = match spec.workload.sizes() {
            _ if spec.features().keeps_messages => ReadMessages::Whole,
            Some(sizes) => sizes.constant().map_or(FRAMED, ReadMessages::OfSize),
            // A greedy sender writes as much as fits: its receiver counts in messages of the largest size.
            None => ReadMessages::OfSize(GREEDY_MESSAGE),
        };
        let end = FlowEnd {
            spec: spec.clone(),
            is_sender: place.is_sender,
            log: EndLog::new(side, echo.is_some(), messages),
            failure: None,
            failed_at: None,
            registered: 0,
            clock: common.clock,
            application: application.on_host(),
            channel: AnyChannel::new(&ChannelSetup { session, flow: spec, place, bound, common }),
            is_slow: !receiver.service.is_zero() && !place.is_sender,
            is_unfinished: false,
            budget: Arc::clone(&common.budget),
            charged: 0,
            stop,
            paced: None,
        };
        let (alarm, heard) = (Arc::clone(&common.alarm), AtomicU64::new(0));
        Self { end: Mutex::new(end), alarm, members: OnceLock::new(), heard }
    }

    /// Lets those of `ends` that share a connection know each other. They are the ends of one host, all of
    /// them, in the order of the session.
    pub fn introduce(session: &SessionSpec, ends: &[Arc<Self>]) {
        for (index, end) in ends.iter().enumerate() {
            let members = session.members(index);
            if members.len() < 2 {
                continue;
            }
            let member = |index: usize| ends.get(index).map_or_else(Weak::new, Arc::downgrade);
            // It is called once for all ends.
            let _ = end.members.set(members.into_iter().map(member).collect());
        }
    }

    /// The same end, receiving the flow's file; `keeps` if its bytes are wanted after the check.
    pub fn receiving_file(self, keeps: bool) -> Self {
        let Self { end, alarm, members, heard } = self;
        let mut end = end.into_inner().unwrap_or_else(PoisonError::into_inner);
        end.application = end.application.receiving_file(end.spec.file_sink(keeps));
        Self { end: Mutex::new(end), alarm, members, heard }
    }

    /// Exclusive use; a thread that panicked while it had it has made the log no less true.
    pub fn lock(&self) -> MutexGuard<'_, FlowEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the end in another thread than the pacer's. The pacer is woken if something is due
    /// sooner for it: the next packet of a connection that an acknowledgement released, the next message of a
    /// workload that waited for room.
    pub fn work<T>(&self, work: impl FnOnce(&mut FlowEnd) -> T) -> T {
        let mut end = self.lock();
        let result = work(&mut end);
        if let Some((key, armed)) = end.paced
            && let Some(deadline) = end.poll_timeout()
            && deadline < armed
        {
            end.note_armed(deadline);
            self.alarm.bring_forward(key, deadline);
        }
        result
    }

    /// A datagram came for this flow, or for another of its connection.
    pub fn handle_datagram(&self, datagram: &Received<'_>) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        if self.work(|end| end.handle_datagram(datagram)) {
            self.step_ready();
        }
    }

    /// How many datagrams have come to this end's socket, of whatever kind.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// This end had its turn. The flows of its connection for which there is something new now have theirs.
    pub(crate) fn step_ready(&self) {
        let Some(members) = self.members.get() else { return };
        while let Some(place) = self.take_ready() {
            if let Some(member) = members.get(place).and_then(Weak::upgrade) {
                member.work(FlowEnd::take_turn);
            }
        }
        // Each turn may have moved the engine's deadline, which is the leader's.
        if let Some(leader) = members.first().and_then(Weak::upgrade) {
            leader.work(|_| ());
        }
    }

    /// Takes a flow of its connection for which there is something new, by its place. No lock is held after
    /// it, because the flow may be this one.
    fn take_ready(&self) -> Option<usize> {
        self.lock().channel.quic_mut()?.take_ready()
    }

    /// The connection may be readable or writable, and since `looked` this thread would have seen it, had it
    /// run; returns whether there is more to do at once.
    pub(crate) fn handle_ready(&self, looked: Instant) -> bool {
        self.work(|end| end.handle_ready(looked))
    }

    /// The run is over: a connection of our own transports is closed.
    pub fn close(&self) {
        self.work(FlowEnd::close);
    }
}

impl FlowEnd {
    /// When the pacer is wanted next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.budget.is_spent() {
            return None;
        }
        if self.is_unfinished {
            return Some(Instant::ZERO);
        }
        let (is_open, channel) = each!(&self.channel, channel => (channel.is_open(), channel.poll_timeout()));
        let application =
            if is_open { self.application.next() } else { self.next_read().unwrap_or(Instant::MAX) };
        Some(application.min(channel)).filter(|deadline| *deadline < Instant::MAX)
    }

    /// From now on a pacer serves this end, and asks it at once.
    pub(crate) fn pace_as(&mut self, key: Key) {
        self.paced = Some((key, Instant::ZERO));
    }

    /// The pacer wakes for this end at `deadline`.
    pub(crate) fn note_armed(&mut self, deadline: Instant) {
        if let Some((_, armed)) = &mut self.paced {
            *armed = deadline;
        }
    }

    /// When a slow application reads again; `None` if it does so as soon as something comes.
    pub(crate) fn next_read(&self) -> Option<Instant> {
        self.application.next_read()
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        each!(&mut self.channel, channel => channel.handle_timeout(now));
        self.advance(now);
        self.note_state(Occasion::Timeout);
    }

    /// Returns true if the datagram was the flow's, or its connection's.
    fn handle_datagram(&mut self, datagram: &Received<'_>) -> bool {
        if self.is_registered_by(datagram.payload) {
            self.registered += 1;
            return false;
        }
        // No turn would take it out of the channel again, and the run ends anyhow.
        if self.budget.is_spent() {
            return false;
        }
        let wants_data = self.application.sink().is_some();
        let Some(channel) = self.channel.datagrams_mut() else { return false };
        let is_taken = channel.handle_datagram(datagram, wants_data);
        if is_taken {
            self.take_turn();
        }
        is_taken
    }

    /// Whether `payload` is the far end's answer to the registration of this end's address.
    pub fn is_registered_by(&self, payload: &[u8]) -> bool {
        self.token().is_some_and(|token| payload == registered(token))
    }

    /// How often such an answer has come during the run.
    pub const fn registered(&self) -> u64 {
        self.registered
    }

    /// A turn for what came, if anything did.
    fn take_turn(&mut self) {
        self.advance(self.clock.now());
        self.discard();
    }

    /// Reads what came to a socket that this end reads by itself.
    pub(crate) fn handle_readable(&mut self) {
        self.advance(self.clock.now());
    }

    fn handle_ready(&mut self, looked: Instant) -> bool {
        if self.channel.tcp_mut().is_some_and(|connection| connection.handle_ready(looked)) {
            self.advance(self.clock.now());
            self.discard();
        }
        self.take_failure();
        // The caller calls again at once, so the pacer need not.
        std::mem::take(&mut self.is_unfinished)
    }

    /// What comes to an end that reads nothing is thrown away, so that it does not pile up and a close is
    /// noticed.
    fn discard(&mut self) {
        if self.log.taps.read_by(self.side()).is_some() {
            return;
        }
        each!(&mut self.channel, channel => channel.discard());
        self.take_failure();
    }

    fn close(&mut self) {
        if let Some(protocol) = self.channel.own_protocol_mut() {
            protocol.close(self.application.has_written_all());
            self.advance(self.clock.now());
        }
    }

    /// The application's turn, which begins at `now`.
    fn advance(&mut self, now: Instant) {
        if self.budget.is_spent() {
            return;
        }
        let side = self.side();
        let taps = &mut self.log.taps;
        if let Some(connection) = self.channel.quic_mut() {
            connection.begin_turn();
        }
        each!(&mut self.channel, channel => self.application.advance(&mut **channel, side, taps, now));
        if let Some(datagrams) = self.channel.udp_mut() {
            datagrams.depart(taps.written_by(side));
        }
        self.is_unfinished = self.application.is_unfinished();
        let (has_read_all, is_finished) = (!self.is_slow, self.is_workload_finished());
        if let Some(protocol) = self.channel.own_protocol_mut() {
            protocol.finish_turn(has_read_all, is_finished);
        }
        self.note_state(Occasion::Turn);
        self.charge();
        self.take_failure();
    }

    /// Notes the state of a connection on which other flows may have moved while this one was silent.
    pub(crate) fn note_visit(&mut self) {
        self.note_state(Occasion::Visit);
    }

    fn take_failure(&mut self) {
        let failure = each!(&mut self.channel, channel => channel.take_failure());
        if self.failure.is_none() && failure.is_some() {
            (self.failure, self.failed_at) = (failure, Some(self.clock.now()));
        }
    }

    /// Takes from the memory budget what the log has grown by. The rows that the channel paid for earlier do
    /// not count.
    fn charge(&mut self) {
        let paid = each!(&self.channel, channel => channel.paid_rows());
        let held = self.log.held().saturating_sub(paid);
        if held > self.charged {
            self.budget.take(held - self.charged);
            self.charged = held;
        }
    }

    fn note_state(&mut self, occasion: Occasion) {
        if let Some((seen, at)) = each!(&mut self.channel, channel => channel.sample(occasion)) {
            self.log.on_observed(&seen, at);
            self.charge();
        }
    }

    /// The run's clock is known now.
    pub fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
        each!(&mut self.channel, channel => channel.set_clock(clock));
    }

    /// From now on this flow's datagrams are sent over `route`.
    pub fn set_route(&mut self, route: UdpRoute) {
        if let Some(channel) = self.channel.datagrams_mut() {
            channel.set_route(route);
        }
    }

    /// This end reads its datagrams from its own socket when its application is ready, so that what waits,
    /// waits there.
    pub fn read_from(&mut self, route: UdpRoute) {
        if let Some(datagrams) = self.channel.udp_mut() {
            datagrams.read_from(route);
        }
    }

    /// Says in `notes` which messages each packet carries, where nobody can read it there.
    pub fn note_packets(&mut self, notes: Arc<PacketNotes>) {
        if let Some(connection) = self.channel.quic_mut() {
            connection.note_packets(notes);
        }
    }

    /// Before the run: has the connection that a QUIC client's 0-RTT ticket comes from, over the socket of
    /// its route. Waits for the ticket until `is_over`.
    ///
    /// # Errors
    /// Why there is no ticket.
    pub fn fetch_ticket(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), String> {
        self.channel.quic_mut().map_or(Ok(()), |connection| connection.fetch_ticket(is_over))
    }

    /// Says whom a client's connection is opened to when the flow starts.
    pub fn set_dial(&mut self, dial: Dial) {
        if let Some(connection) = self.channel.tcp_mut() {
            connection.set_dial(dial);
        }
    }

    /// Gives this end a connection that is open already, of which `unread` was read with the opening line: a
    /// sender's first message is due now. An end that has its connection lets go of another.
    ///
    /// # Errors
    /// The system's, if the connection cannot be watched.
    pub fn adopt(
        &mut self,
        socket: TcpStream,
        unread: &[u8],
        epoll: &OwnedFd,
        index: u64,
    ) -> std::io::Result<()> {
        if let Some(channel) = self.channel.tcp_mut()
            && channel.adopt(socket, unread, epoll, index)?
        {
            self.advance(self.clock.now());
        }
        Ok(())
    }

    /// What this flow's datagrams carry; `None` for a connection of the kernel's.
    pub fn token(&self) -> Option<u32> {
        self.channel.datagrams().map(DatagramChannel::token)
    }

    /// Whether there is nothing to wait for once the run is over.
    pub fn is_closed(&self) -> bool {
        let has_written_all = self.application.has_written_all();
        self.channel.own_protocol().is_none_or(|protocol| protocol.is_closed(has_written_all))
    }

    /// A datagram that this end sent came back with the time when it left, headers and all.
    pub(crate) fn handle_sent(&mut self, packet: &[u8], stamp_ns: Option<i64>) {
        let side = self.side();
        if let Some(datagrams) = self.channel.udp_mut()
            && let Some((seq, at)) = datagrams.sent_message(packet, stamp_ns)
            && let Some(tap) = self.log.taps.written_by(side)
        {
            tap.on_wire(seq, at);
        }
    }

    /// Notes the state of a connection that has no turns of its own while nothing moves.
    pub fn sample(&mut self) {
        self.note_state(Occasion::Interval);
    }

    /// Whether the flow's connection is or was open.
    pub fn was_open(&self) -> bool {
        each!(&self.channel, channel => channel.was_open())
    }

    /// How far this end is.
    pub fn progress(&self) -> EndProgress {
        let has_written = self.is_workload_finished() && self.application.has_written_all();
        let is_over = self.clock.now() >= self.stop;
        each!(&self.channel, channel => channel.progress(has_written, is_over))
    }

    /// Whether this end's workload, if it has one, will send nothing more. A flow that starts after the stop
    /// never sends.
    fn is_workload_finished(&self) -> bool {
        let never_starts = Instant::from_nanos(self.spec.start_ns) >= self.stop;
        never_starts || self.application.is_workload_finished()
    }

    /// When something last arrived.
    pub fn last_arrival(&self) -> Instant {
        self.application.host().map_or(Instant::ZERO, talkpath_flow::HostMeter::last_arrival)
    }

    /// Adds how late this end was to `all`.
    pub fn add_lateness(&self, all: &mut Histogram) {
        if let Some(host) = self.application.host() {
            all.merge(host.lateness());
        }
        if let Some(protocol) = self.channel.own_protocol() {
            all.merge(protocol.lateness());
        }
    }

    /// The file that this end receives.
    pub fn sink(&self) -> Option<&FileSink> {
        self.application.sink()
    }

    /// The numbers of the datagrams that still wait in the socket of an end that reads by itself. Call it
    /// when the run is over.
    pub fn drain_socket(&mut self) -> Vec<u64> {
        self.channel.udp_mut().map(UdpChannel::drain_socket).unwrap_or_default()
    }

    /// The run is over: counts what is to be counted.
    pub fn finish(&mut self) {
        let now = self.clock.now();
        self.application.finish(&mut self.log.taps, now.min(self.stop));
        self.charge();
        let totals = &mut self.log.totals;
        let start = Instant::from_nanos(self.spec.start_ns);
        totals.opening_ns = self.application.opened().map(|opened| opened.since(start).as_nanos());
        each!(&self.channel, channel => channel.count(totals));
        totals.blocked_ns = self.application.blocked(now).as_nanos();
        totals.failure.clone_from(&self.failure);
        totals.failed_ns = self.failed_at.map(Instant::as_nanos);
        totals.turn_round = self.application.host().and_then(|host| host.turn_rounds().figures());
        totals.file = self.application.sink().map(FileSink::outcome);
    }

    const fn side(&self) -> Side {
        if self.is_sender { Side::Near } else { Side::Far }
    }
}

/// Messages of a greedy flow without an end, by which a far end's numbers are bounded (chosen: a bit each is
/// 2 MB).
const MAX_UNBOUNDED: u64 = 1 << 24;
/// A message of a bulk transfer is 64 KiB at most (docs/reference/scenario.md).
const GREEDY_MESSAGE: Bytes = Bytes::new(64 * 1024);

#[cfg(test)]
mod tests;
