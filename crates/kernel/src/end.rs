//! One end of a flow: the application, its channel and its log. The channel is a kernel's socket, or a
//! protocol of ours over a UDP socket. The log keeps what the end saw.
//!
//! Client and server run the same code. The flow's direction decides which of the two ends is the sender.
//! Three threads call an end, and the end's lock lets in one thread at a time:
//!
//! - the pacer, when a deadline has come,
//! - the UDP thread, with each datagram that arrives,
//! - the TCP thread, when a connection is readable or writable.
//!
//! Each call first gives the channel its input and then gives the application a turn. Several flows may share
//! a QUIC connection. A flow of the connection also gets a turn if the connection has something new for it:
//! a datagram may carry messages of several flows, and each packet that leaves makes room for more messages.

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
    /// The alarm of the pacer that serves this end.
    alarm: Arc<Alarm>,
    /// The ends of all flows that share this end's connection, in the order of the flows, with this end among
    /// them. Empty if the connection has only one flow.
    members: OnceLock<Vec<Weak<SharedEnd>>>,
    /// The number of datagrams that came to this end's socket, whatever they carried.
    heard: AtomicU64,
}

/// One end of a flow.
pub struct FlowEnd {
    /// The flow as both hosts know it.
    pub spec: FlowSpec,
    /// True if this end sends the workload's messages. The other end reads the messages, and sends each one
    /// back if the flow has an echo.
    pub is_sender: bool,
    /// What this end saw.
    pub log: EndLog,
    /// The reason why this flow ended before its time. The other flows of the run continue.
    pub failure: Option<String>,
    /// When the flow failed.
    failed_at: Option<Instant>,
    /// The number of the far end's answers that say that the far end knows this end's address.
    registered: u64,
    clock: RunClock,
    application: Application,
    channel: AnyChannel,
    /// True if the application takes time for each message, so that other messages wait to be read.
    is_slow: bool,
    /// True if the last turn ended with work left over. No event will announce this work, so the end asks for
    /// another turn at once.
    is_unfinished: bool,
    /// The memory budget of the session, in rows of the logs.
    budget: Arc<RowBudget>,
    /// The number of rows of the log for which this end has charged the budget.
    charged: u64,
    /// When sending stops.
    stop: Instant,
    /// The key under which the pacer knows this end, and the deadline for which the pacer will wake. `None`
    /// before a pacer serves this end.
    paced: Option<(Key, Instant)>,
}

impl SharedEnd {
    /// Makes an end of the flow `spec` of `session`. Its socket is not open yet. `receiver` says how the
    /// reading end reads the messages.
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
            // A greedy sender writes as much as fits, so its messages have no fixed size. The receiver counts
            // the bytes of the stream in messages of the largest size.
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

    /// Makes the ends that share a connection known to each other. `ends` are all ends of one host, in the
    /// order of the session's flows. Call it once.
    pub fn introduce(session: &SessionSpec, ends: &[Arc<Self>]) {
        for (index, end) in ends.iter().enumerate() {
            let members = session.members(index);
            if members.len() < 2 {
                continue;
            }
            let member = |index: usize| ends.get(index).map_or_else(Weak::new, Arc::downgrade);
            // The error of a second call is ignored, because there is only one call.
            let _ = end.members.set(members.into_iter().map(member).collect());
        }
    }

    /// Makes this end receive the flow's file. If `keeps` is true, the file's bytes are kept after the check.
    pub fn receiving_file(self, keeps: bool) -> Self {
        let Self { end, alarm, members, heard } = self;
        let mut end = end.into_inner().unwrap_or_else(PoisonError::into_inner);
        end.application = end.application.receiving_file(end.spec.file_sink(keeps));
        Self { end: Mutex::new(end), alarm, members, heard }
    }

    /// Locks the end. A lock that a panicking thread held is taken all the same, because what the end has
    /// logged so far is still true.
    pub fn lock(&self) -> MutexGuard<'_, FlowEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the end in another thread than the pacer's. Afterwards it wakes the pacer if the end's
    /// next deadline is now sooner than the one that the pacer sleeps to. For example, an acknowledgement may
    /// release the connection's next packet, or make room for a message that waits.
    pub fn work<T>(&self, work: impl FnOnce(&mut FlowEnd) -> T) -> T {
        let mut end = self.lock();
        let result = work(&mut end);
        if let Some((key, armed)) = end.paced
            && let Some(deadline) = end.poll_timeout()
            && deadline < armed
        {
            end.note_armed(deadline);
            self.alarm.move_forward(key, deadline);
        }
        result
    }

    /// Handles a datagram that came for this flow, or for another flow of the same connection.
    pub fn handle_datagram(&self, datagram: &Received<'_>) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        if self.work(|end| end.handle_datagram(datagram)) {
            self.step_ready();
        }
    }

    /// The number of datagrams that have come to this end's socket, whatever they carried.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Gives a turn to each flow of this end's connection for which the connection has something new. Call it
    /// after a turn of this end.
    pub(crate) fn step_ready(&self) {
        let Some(members) = self.members.get() else { return };
        while let Some(place) = self.take_ready() {
            if let Some(member) = members.get(place).and_then(Weak::upgrade) {
                member.work(FlowEnd::take_turn);
            }
        }
        // Each turn may have moved the deadline of the QUIC engine. The pacer knows that deadline as the
        // deadline of the connection's first flow, so `work` tells it.
        if let Some(leader) = members.first().and_then(Weak::upgrade) {
            leader.work(|_| ());
        }
    }

    /// Takes the place in `members` of a flow for which the connection has something new. The end's lock is
    /// released before the return, because that flow may be the end's own.
    fn take_ready(&self) -> Option<usize> {
        self.lock().channel.quic_mut()?.take_ready()
    }

    /// Handles an event of a TCP connection, which may be readable or writable. The calling thread woke up
    /// for the event at `woke_at`, or should have woken up then. Returns true if there is more to do at once.
    pub(crate) fn handle_ready(&self, woke_at: Instant) -> bool {
        self.work(|end| end.handle_ready(woke_at))
    }

    /// Closes the connection of a protocol of ours, because the run is over. Does nothing for UDP and TCP.
    pub fn close(&self) {
        self.work(FlowEnd::close);
    }
}

impl FlowEnd {
    /// When the pacer has to call this end next. `None` if nothing is due.
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

    /// Notes that from now on a pacer serves this end under `key`, and asks it for its deadline at once.
    pub(crate) fn set_pacer_key(&mut self, key: Key) {
        self.paced = Some((key, Instant::ZERO));
    }

    /// Notes that the pacer wakes for this end at `deadline`.
    pub(crate) fn note_armed(&mut self, deadline: Instant) {
        if let Some((_, armed)) = &mut self.paced {
            *armed = deadline;
        }
    }

    /// When a slow application reads again. `None` if the application reads as soon as something arrives.
    pub(crate) fn next_read(&self) -> Option<Instant> {
        self.application.next_read()
    }

    /// Does what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        each!(&mut self.channel, channel => channel.handle_timeout(now));
        self.advance(now);
        self.note_state(Occasion::Timeout);
    }

    /// Hands a datagram to the channel and gives the application a turn. Returns true if the datagram belongs
    /// to the flow or to the flow's connection.
    fn handle_datagram(&mut self, datagram: &Received<'_>) -> bool {
        if self.is_registered_by(datagram.payload) {
            self.registered += 1;
            return false;
        }
        // Without rows left, no turn would take the message out of the channel. The run ends in any case.
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

    /// Returns true if `payload` is the far end's answer to the registration of this end's address.
    pub fn is_registered_by(&self, payload: &[u8]) -> bool {
        self.token().is_some_and(|token| payload == registered(token))
    }

    /// The number of such answers that have come during the run.
    pub const fn registered(&self) -> u64 {
        self.registered
    }

    /// Gives the application a turn, after which an end that reads nothing throws away what came.
    fn take_turn(&mut self) {
        self.advance(self.clock.now());
        self.discard();
    }

    /// Gives the application a turn, in which it reads the socket that belongs to this end alone.
    pub(crate) fn handle_readable(&mut self) {
        self.advance(self.clock.now());
    }

    /// See [`SharedEnd::handle_ready`].
    fn handle_ready(&mut self, woke_at: Instant) -> bool {
        if self.channel.tcp_mut().is_some_and(|connection| connection.handle_ready(woke_at)) {
            self.advance(self.clock.now());
            self.discard();
        }
        self.take_failure();
        // The caller calls again at once, so the pacer need not.
        std::mem::take(&mut self.is_unfinished)
    }

    /// Throws away what came to an end that reads no messages. Otherwise the data would pile up, and the end
    /// would not notice that the far end has closed the connection.
    fn discard(&mut self) {
        if self.log.taps.read_by(self.side()).is_some() {
            return;
        }
        each!(&mut self.channel, channel => channel.discard());
        self.take_failure();
    }

    /// See [`SharedEnd::close`].
    fn close(&mut self) {
        if let Some(protocol) = self.channel.own_protocol_mut() {
            protocol.close(self.application.has_written_all());
            self.advance(self.clock.now());
        }
    }

    /// Gives the application a turn that begins at `now`.
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

    /// Notes the state of a shared connection. Other flows may have changed it while this flow was silent.
    pub(crate) fn note_visit(&mut self) {
        self.note_state(Occasion::Visit);
    }

    /// Takes the channel's failure. The first failure of the flow stays.
    fn take_failure(&mut self) {
        let failure = each!(&mut self.channel, channel => channel.take_failure());
        if self.failure.is_none() && failure.is_some() {
            (self.failure, self.failed_at) = (failure, Some(self.clock.now()));
        }
    }

    /// Charges the memory budget for the rows by which the log has grown. The rows that the channel has
    /// already paid for do not count.
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

    /// Sets the run's clock.
    pub fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
        each!(&mut self.channel, channel => channel.set_clock(clock));
    }

    /// Sets the route that this flow's datagrams are sent over from now on.
    pub fn set_route(&mut self, route: UdpRoute) {
        if let Some(channel) = self.channel.datagrams_mut() {
            channel.set_route(route);
        }
    }

    /// Makes this end read its datagrams from the socket of `route`, each time when its application is ready.
    /// Until then the datagrams wait in the socket's buffer.
    pub fn read_from(&mut self, route: UdpRoute) {
        if let Some(datagrams) = self.channel.udp_mut() {
            datagrams.read_from(route);
        }
    }

    /// Makes a QUIC end write to `notes` which messages each of its packets carries. The emulator cannot read
    /// the messages in the packets, because the packets are encrypted.
    pub fn note_packets(&mut self, notes: Arc<PacketNotes>) {
        if let Some(connection) = self.channel.quic_mut() {
            connection.note_packets(notes);
        }
    }

    /// Fetches the ticket for 0-RTT of a QUIC client, before the run. It opens a connection over the socket
    /// of the end's route and waits for the ticket until `is_over` returns true. Does nothing for other
    /// flows.
    ///
    /// # Errors
    /// Returns the reason if there is no ticket.
    pub fn fetch_ticket(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), String> {
        self.channel.quic_mut().map_or(Ok(()), |connection| connection.fetch_ticket(is_over))
    }

    /// Sets the address that a TCP client connects to when the flow starts.
    pub fn set_dial(&mut self, dial: Dial) {
        if let Some(connection) = self.channel.tcp_mut() {
            connection.set_dial(dial);
        }
    }

    /// Gives this end a TCP connection that is open already, and a turn to its application: the first message
    /// of a sender is due now. `unread` are the bytes that were read together with the opening line. If this
    /// end already has a connection, the new one is closed.
    ///
    /// # Errors
    /// Returns the system's error if `epoll` cannot watch the connection.
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

    /// The token that this flow's datagrams carry. `None` for TCP.
    pub fn token(&self) -> Option<u32> {
        self.channel.datagrams().map(DatagramChannel::token)
    }

    /// Returns true if nothing is left to wait for after the run. That is always so for UDP and TCP.
    pub fn is_closed(&self) -> bool {
        let has_written_all = self.application.has_written_all();
        self.channel.own_protocol().is_none_or(|protocol| protocol.is_closed(has_written_all))
    }

    /// Takes the kernel's copy of a datagram that this end sent, with all headers, and notes when it left the
    /// host.
    pub(crate) fn handle_sent(&mut self, packet: &[u8], stamp_ns: Option<i64>) {
        let side = self.side();
        if let Some(datagrams) = self.channel.udp_mut()
            && let Some((seq, at)) = datagrams.sent_message(packet, stamp_ns)
            && let Some(tap) = self.log.taps.written_by(side)
        {
            tap.on_wire(seq, at);
        }
    }

    /// Notes the state of a kernel's connection. Call it at regular intervals, because the connection may
    /// change while the end has no turns.
    pub fn sample(&mut self) {
        self.note_state(Occasion::Interval);
    }

    /// Returns true if the flow's channel is open or has been open.
    pub fn was_open(&self) -> bool {
        each!(&self.channel, channel => channel.was_open())
    }

    /// How far this end has come.
    pub fn progress(&self) -> EndProgress {
        let has_written = self.is_workload_finished() && self.application.has_written_all();
        let is_over = self.clock.now() >= self.stop;
        each!(&self.channel, channel => channel.progress(has_written, is_over))
    }

    /// Returns true if this end's workload will send nothing more. An end without a workload never sends, and
    /// neither does a flow that starts at the stop or later.
    fn is_workload_finished(&self) -> bool {
        let never_starts = Instant::from_nanos(self.spec.start_ns) >= self.stop;
        never_starts || self.application.is_workload_finished()
    }

    /// When something arrived last, or zero if nothing has arrived.
    pub fn last_arrival(&self) -> Instant {
        self.application.host().map_or(Instant::ZERO, talkpath_flow::HostMeter::last_arrival)
    }

    /// Adds to `all` how late this end's application and its protocol's timers were.
    pub fn add_lateness(&self, all: &mut Histogram) {
        if let Some(host) = self.application.host() {
            all.merge(host.lateness());
        }
        if let Some(protocol) = self.channel.own_protocol() {
            all.merge(protocol.lateness());
        }
    }

    /// The file that this end receives, if it receives one.
    pub fn sink(&self) -> Option<&FileSink> {
        self.application.sink()
    }

    /// Reads the numbers of the messages that still wait in the socket of a slow receiver. Call it when the
    /// run is over.
    pub fn drain_socket(&mut self) -> Vec<u64> {
        self.channel.udp_mut().map(UdpChannel::drain_socket).unwrap_or_default()
    }

    /// Writes all counts into the log's totals. Call it when the run is over.
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

/// The bound on message numbers of a greedy flow without an end (chosen: one bit for each number takes 2 MB).
const MAX_UNBOUNDED: u64 = 1 << 24;
/// The largest message of a bulk transfer (docs/reference/scenario.md).
const GREEDY_MESSAGE: Bytes = Bytes::new(64 * 1024);

#[cfg(test)]
mod tests;
