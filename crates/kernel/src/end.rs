//! One end of a flow: the application, its channel and its log.
//!
//! ```text
//!   pacer ─────────────── a deadline has come ────┐
//!   datagram thread ───── a datagram has arrived ─┼─► SharedEnd (lock) ─► FlowEnd: application ◄─► channel
//!   connection thread ─── a connection is ready ──┘                                └─── log ───┘
//! ```
//!
//! Client and server run the same code. The flow's direction decides which of the two ends is the sender.
//!
//! - *application*: writes the messages of the workload, or reads and echoes them.
//! - *channel*: a kernel's socket, or a protocol of talkpath over a UDP socket.
//! - *turn*: one call of the application, in which it writes what is due and reads what has arrived.
//!   An event first gives the channel its input, and then gives the application a turn.
//! - *row budget*: a limit on the rows of all logs of a session. If it is spent, the ends have no more turns.
//! - *members*: the flows that share a QUIC connection. If the connection has something new for a member,
//!   that member also gets a turn: a datagram may carry messages of several flows, and a packet that leaves
//!   makes room for more messages.
//!
//! Begin to read with [`FlowEnd`]. `channel.rs` lists what an end asks of its channel.

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
mod qlogs;
mod quic;
mod route;
mod sampling;
mod setup;
mod shared_end;
mod tcp;
mod train;
mod transfer;
mod udp;

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use talkpath_flow::file::FileSink;
use talkpath_flow::{AnyWorkload, Application, Channel as _, Side};
use talkpath_measure::ReadMessages;
use talkpath_model::{Due, EchoWrite, Receiver};
use talkpath_units::wheel::Key;
use talkpath_units::{Bytes, Duration, Histogram, Instant};

use any::{AnyChannel, each};
use channel::{HostChannel as _, Occasion};
pub use context::EndContext;
pub use dial::{Dial, apply_options};
pub use messages::message_in;
pub use packets::PacketNotes;
pub use place::{EndPlace, unforeseen_seed};
pub use qlogs::qlog_of;
pub use quic::QuicConnections;
pub use route::{UdpRoute, Unconnected};
use setup::ChannelSetup;
pub use shared_end::SharedEnd;
use talkpath_quic::QlogEvent;
pub use talkpath_quic::{Fingerprint, HostKeys, IdTable, server_identity};
pub use transfer::ReceivedTransfer;
use udp::UdpChannel;

use crate::clock::RunClock;
use crate::log::{EndLog, RowBudget};
use crate::progress::EndProgress;
use crate::spec::{FlowSpec, SessionSpec};
use crate::sys::Received;
use crate::wire::{FRAMED, registered};

/// The bound on message numbers of a greedy flow, which has no end. We chose 2^24, for which one bit a number
/// takes 2 MB.
const MAX_UNBOUNDED: u64 = 1 << 24;
/// The largest message of a bulk transfer (docs/reference/scenario.md).
const GREEDY_MESSAGE: Bytes = Bytes::new(64 * 1024);

/// One end of a flow.
pub struct FlowEnd {
    /// The flow as both hosts know it.
    pub spec: FlowSpec,
    /// True if this end sends the workload's messages. The other end reads the messages, and sends each one
    /// back if the flow has an echo.
    pub is_sender: bool,
    /// The log of this end.
    pub log: EndLog,
    /// The reason why this flow ended early. The other flows of the run continue.
    pub failure: Option<String>,
    failed_at: Option<Instant>,
    /// The time that the kernel took to make the socket of this end's datagrams, if that is known.
    socket_time: Option<Duration>,
    /// The number of times that the far end has confirmed the registration of this end's address.
    registration_answers: u64,
    clock: RunClock,
    application: Application,
    channel: AnyChannel,
    /// True if the application takes time for each message, so that other messages wait to be read.
    is_slow: bool,
    /// True if the last turn left work over. No event announces this work, so the end asks for another turn
    /// at once.
    is_unfinished: bool,
    /// The row budget of the session.
    budget: Arc<RowBudget>,
    /// The number of this log's rows that the budget has paid for.
    charged_rows: u64,
    /// The end of sending.
    stop: Instant,
    /// The end's entry in the calendar of a pacer. `None` before a pacer serves this end.
    pacer_entry: Option<PacerEntry>,
}

/// An end's entry in the calendar of its pacer.
#[derive(Clone, Copy)]
struct PacerEntry {
    key: Key,
    /// The deadline for which the pacer will wake.
    armed: Instant,
}

impl FlowEnd {
    /// Makes an end of the flow `spec` of `session`. Its socket is not open yet. `receiver` says how the
    /// reading end reads the messages.
    fn new(
        session: &SessionSpec,
        spec: &FlowSpec,
        place: &EndPlace,
        receiver: Receiver,
        context: &EndContext,
    ) -> Self {
        let bound = spec.message_bound(session.duration_ns).unwrap_or(MAX_UNBOUNDED);
        let side = if place.is_sender { Side::Near } else { Side::Far };
        Self {
            spec: spec.clone(),
            is_sender: place.is_sender,
            log: EndLog::new(side, spec.has_echo(), messages_read_by(spec)),
            failure: None,
            failed_at: None,
            socket_time: None,
            registration_answers: 0,
            clock: context.clock,
            application: application(session, spec, place, receiver),
            channel: AnyChannel::new(&ChannelSetup { session, flow: spec, place, bound, common: context }),
            is_slow: !receiver.service.is_zero() && !place.is_sender,
            is_unfinished: false,
            budget: Arc::clone(&context.budget),
            charged_rows: 0,
            stop: session.stop(),
            pacer_entry: None,
        }
    }

    /// Returns the time at which the pacer has to call this end next. Returns `None` if nothing will be due.
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

    /// Records that from now on a pacer serves this end under `key`. The pacer asks this end for its deadline
    /// at once.
    pub(crate) fn set_pacer_key(&mut self, key: Key) {
        self.pacer_entry = Some(PacerEntry { key, armed: Instant::ZERO });
    }

    /// Records that the pacer wakes for this end at `deadline`.
    pub(crate) fn note_armed(&mut self, deadline: Instant) {
        if let Some(entry) = &mut self.pacer_entry {
            entry.armed = deadline;
        }
    }

    /// Returns the pacer's key of this end and the end's next deadline, if the deadline is earlier than the
    /// pacer knows. Records that the pacer then knows the deadline.
    fn take_earlier_deadline(&mut self) -> Option<(Key, Instant)> {
        let entry = self.pacer_entry?;
        let deadline = self.poll_timeout().filter(|deadline| *deadline < entry.armed)?;
        self.note_armed(deadline);
        Some((entry.key, deadline))
    }

    /// Returns the time at which a slow application reads again. Returns `None` if the application reads as
    /// soon as something arrives.
    pub(crate) fn next_read(&self) -> Option<Instant> {
        self.application.next_read()
    }

    /// Does what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        each!(&mut self.channel, channel => channel.handle_timeout(now));
        self.advance(now);
        self.sample_channel(Occasion::Timeout);
    }

    /// Hands a datagram to the channel and gives the application a turn. Returns true if the datagram belongs
    /// to the flow or to the flow's connection.
    fn handle_datagram(&mut self, datagram: &Received<'_>) -> bool {
        if self.is_registered_by(datagram.payload) {
            self.registration_answers += 1;
            return false;
        }
        // Without rows left, no turn would take the message out of the channel. The run ends in any case.
        if self.budget.is_spent() {
            return false;
        }
        let wants_data = self.application.sink().is_some();
        let is_ours = each!(&mut self.channel, channel => channel.handle_datagram(datagram, wants_data));
        if is_ours {
            self.take_turn();
        }
        is_ours
    }

    /// Returns true if `payload` is the far end's answer to the registration of this end's address.
    pub fn is_registered_by(&self, payload: &[u8]) -> bool {
        self.token().is_some_and(|token| payload == registered(token))
    }

    /// Returns the number of these answers during the run.
    pub const fn registration_answers(&self) -> u64 {
        self.registration_answers
    }

    /// Gives the application a turn. Then an end that reads no messages discards what has arrived.
    fn take_turn(&mut self) {
        self.advance(self.clock.now());
        self.discard();
    }

    /// Gives the application a turn, in which it reads the socket that belongs to this end alone.
    pub(crate) fn handle_readable(&mut self) {
        self.advance(self.clock.now());
    }

    /// Handles an event of a TCP connection, as [`SharedEnd::handle_ready`] describes.
    fn handle_ready(&mut self, woke_at: Instant) -> bool {
        if self.channel.tcp_mut().is_some_and(|connection| connection.handle_ready(woke_at)) {
            self.advance(self.clock.now());
            self.discard();
        }
        self.take_failure();
        // The caller calls again at once, so the pacer does not have to.
        std::mem::take(&mut self.is_unfinished)
    }

    /// Discards what has arrived at an end that reads no messages. Otherwise the data would pile up, and the
    /// end would not notice that the far end has closed the connection.
    fn discard(&mut self) {
        if self.log.taps.read_by(self.side()).is_some() {
            return;
        }
        each!(&mut self.channel, channel => channel.discard());
        self.take_failure();
    }

    /// Closes the connection, as [`SharedEnd::close`] describes.
    fn close(&mut self) {
        let has_written_all = self.application.has_written_all();
        if each!(&mut self.channel, channel => channel.close(has_written_all)) {
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
        each!(&mut self.channel, channel => channel.finish_turn(has_read_all, is_finished));
        self.sample_channel(Occasion::Turn);
        self.charge();
        self.take_failure();
    }

    /// Samples the state of a shared connection. Other flows may have changed it while this flow was silent.
    pub(crate) fn note_visit(&mut self) {
        self.sample_channel(Occasion::Visit);
    }

    /// Takes the channel's failure. If the flow has failed before, its first failure stays.
    fn take_failure(&mut self) {
        let failure = each!(&mut self.channel, channel => channel.take_failure());
        if self.failure.is_none() && failure.is_some() {
            (self.failure, self.failed_at) = (failure, Some(self.clock.now()));
        }
    }

    /// Charges the row budget for the rows by which the log has grown. The channel has already paid for some
    /// of them.
    fn charge(&mut self) {
        let paid = each!(&self.channel, channel => channel.paid_rows());
        let rows = self.log.held().saturating_sub(paid);
        if rows > self.charged_rows {
            self.budget.take(rows - self.charged_rows);
            self.charged_rows = rows;
        }
    }

    fn sample_channel(&mut self, occasion: Occasion) {
        if let Some((observation, at)) = each!(&mut self.channel, channel => channel.sample(occasion)) {
            self.log.on_observed(&observation, at);
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
        each!(&mut self.channel, channel => channel.set_route(route));
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

    /// Makes a QUIC connection that waits for nothing send a PING, because nothing has come for a while. Does
    /// nothing for other flows.
    pub fn ping(&mut self) {
        if let Some(connection) = self.channel.quic_mut() {
            connection.ping();
            self.advance(self.clock.now());
        }
    }

    /// Takes what a client's end of a QUIC connection has logged: the name of the connection, and its events.
    fn take_qlog(&mut self) -> Option<(String, Vec<QlogEvent>)> {
        self.channel.quic_mut()?.take_qlog()
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

    /// Notes that the TCP connection which this end will be given begins to open now.
    pub fn note_dialled(&mut self) {
        if let Some(connection) = self.channel.tcp_mut() {
            connection.note_dialled();
        }
    }

    /// Notes that the kernel took `time` to make the socket of this end's datagrams.
    pub const fn note_socket(&mut self, time: Duration) {
        self.socket_time = Some(time);
    }

    /// Returns the token that this flow's datagrams carry. Returns `None` for TCP.
    pub fn token(&self) -> Option<u32> {
        each!(&self.channel, channel => channel.token())
    }

    /// Returns true if nothing is left to wait for after the run. That is always so for UDP and TCP.
    pub fn is_closed(&self) -> bool {
        let has_written_all = self.application.has_written_all();
        each!(&self.channel, channel => channel.is_closed(has_written_all))
    }

    /// Handles the kernel's copy of a datagram that this end has sent. The copy has all headers, and shows
    /// when the datagram left the host.
    pub(crate) fn handle_sent(&mut self, packet: &[u8], stamp_ns: Option<i64>) {
        let side = self.side();
        if let Some(datagrams) = self.channel.udp_mut()
            && let Some((seq, at)) = datagrams.sent_message(packet, stamp_ns)
            && let Some(tap) = self.log.taps.written_by(side)
        {
            tap.on_wire(seq, at);
        }
    }

    /// Samples the state of a kernel's connection. Call it at regular intervals, because the connection may
    /// change while the end has no turns.
    pub fn sample(&mut self) {
        self.sample_channel(Occasion::Interval);
    }

    /// Returns true if the flow's channel is open or has been open.
    pub fn was_open(&self) -> bool {
        each!(&self.channel, channel => channel.was_open())
    }

    /// Returns the progress of this end.
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

    /// Returns the time of the last arrival, or zero if nothing has arrived.
    pub fn last_arrival(&self) -> Instant {
        self.application.host().map_or(Instant::ZERO, talkpath_flow::HostMeter::last_arrival)
    }

    /// Adds the lateness of this end's application and of its protocol's timers to `lateness`.
    pub fn add_lateness(&self, lateness: &mut Histogram) {
        if let Some(host) = self.application.host() {
            lateness.merge(host.lateness());
        }
        if let Some(timers) = each!(&self.channel, channel => channel.lateness()) {
            lateness.merge(timers);
        }
    }

    /// Returns the file that this end receives, if it receives one.
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
        totals.socket_ns = self.socket_time.map(Duration::as_nanos);
        totals.first_read_ns = self.application.first_read().map(|read| read.since(start).as_nanos());
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

/// Makes the application of an end.
fn application(session: &SessionSpec, spec: &FlowSpec, place: &EndPlace, receiver: Receiver) -> Application {
    let stop = session.stop();
    let window = Instant::from_nanos(session.warm_up_ns)..stop;
    let mut application = if place.is_sender {
        let workload = AnyWorkload::new(&spec.workload, spec.workload_seed(), stop);
        Application::near(spec.features(), workload, window)
    } else {
        let echo = spec
            .echo_per_read
            .map(|is_per_read| if is_per_read { EchoWrite::PerRead } else { EchoWrite::PerMessage });
        Application::far(spec.features(), echo, receiver, window)
    };
    if let Some(lifetime) = spec.transport.lifetime() {
        application = application.expiring_after(lifetime);
    }
    if spec.due == Due::Start {
        application = application.with_clock_from(Instant::from_nanos(spec.start_ns));
    }
    application.on_host()
}

/// Returns how an end finds the messages of the flow in the data that it reads.
fn messages_read_by(spec: &FlowSpec) -> ReadMessages {
    if spec.features().keeps_messages {
        return ReadMessages::Whole;
    }
    match spec.workload.sizes() {
        Some(sizes) => sizes.constant().map_or(FRAMED, ReadMessages::OfSize),
        // A greedy sender writes as much as fits, so its messages have no fixed size. The receiver counts the
        // bytes of the stream in messages of the largest size.
        None => ReadMessages::OfSize(GREEDY_MESSAGE),
    }
}

#[cfg(test)]
mod tests;
