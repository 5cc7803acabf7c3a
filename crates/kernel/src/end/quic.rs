//! A flow's channel over QUIC (RFC 9000). Each packet is in a UDP datagram of the flow's own sockets.
//!
//! ```text
//!  write ─► engine ─► flush: packets ─► train ─► datagrams    the pacer calls at the engine's deadlines
//!  read  ◄─ engine ◄───────────────────────────  datagrams    the receiving thread calls for each datagram
//! ```
//!
//! A packet arrives at the time of the kernel's receive stamp, so that a late thread of this host makes no
//! round trip longer. The engine's time never goes back, so a stamp before that time counts as that time. The
//! client opens and closes the connection, and the server answers.
//!
//! The number of a message is in the message's own bytes (`wire.rs`), which only the two ends can read. If
//! one stream carries all messages, it carries bytes without numbers, as TCP does.
//!
//! **Several flows of one connection.** Each flow has a channel of its own. The flows share the engine and
//! the sockets ([`connection`]). A flow that begins later than the connection waits for its own start.
//!
//! **ECN.** The engine says for each packet whether it leaves with ECT(0). If the path does not pass ECT(0),
//! the engine stops using it for good, and the ECN field of the socket (client) or of the route (server)
//! changes.
//!
//! **Trains.** Packets of one size that leave in one turn leave by one system call ([`super::train`]), if the
//! arena allows it and if at least one flow of the connection has messages without a clock.

mod connection;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes as Data;
use talkpath_config::{Carry, QuicCongestionControl};
use talkpath_flow::{Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_measure::{DropCause, Fate};
use talkpath_quic::QlogEvent;
use talkpath_units::{Bytes, Duration, Ecn, Histogram, Instant};
use talkpath_wire::{Delivery, Observation, PayloadRange, Refused};

use super::channel::{HostChannel, Occasion};
use super::frames::{Frames, NO_MESSAGE};
use super::lifecycle::Lifecycle;
use super::messages::{Incoming, Outgoing};
use super::packets::PacketNotes;
use super::route::{SendFailure, UdpRoute};
use super::sampling::Sampling;
use super::setup::ChannelSetup;
use crate::clock::RunClock;
use crate::join::shorten_reason;
use crate::log::EndTotals;
use crate::progress::EndProgress;
use crate::spec::{FlowSpec, QuicSpec};
use crate::sys::Received;
use crate::wire::{FILE_HEADER, stream_filling};
use connection::{SendOutcome, SharedConnection, lock};

pub use connection::QuicConnections;

/// The shortest time after which a missing answer is a failure. A client's first packets leave after 0, 1 and
/// 3 s (RFC 9002 §6.2.2 assumes a round trip of 333 ms), so three packets had no answer by then.
const MIN_PATIENCE: Duration = Duration::from_secs(3);

/// A QUIC flow's channel.
pub(super) struct QuicChannel {
    spec: FlowSpec,
    carry: Carry,
    cc: QuicCongestionControl,
    connection: SharedConnection,
    /// The flow's place among the flows of the connection. The first flow leads: it has the engine's
    /// deadlines and the sockets.
    index: usize,
    clock: RunClock,
    is_sender: bool,
    life: Lifecycle,
    /// When the sender of a flow on a shared connection begins. Another flow may have opened the connection
    /// earlier. `None` once the flow has begun, and for a flow with a connection of its own.
    begins: Option<Instant>,
    /// When the flow began, if the connection was already open then.
    began: Option<Instant>,
    outgoing: Outgoing,
    incoming: Incoming,
    /// The frames that separate the messages of one stream. `None` if all messages have one size.
    frames: Option<Frames>,
    /// The data that was read last.
    piece: Data,
    /// The number of messages that the engine took and that did not expire. On one stream for all messages,
    /// the number of bytes.
    sent: u64,
    /// The number of bytes that were read from one stream for all messages.
    received: u64,
    /// The number of messages that the engine refused, for each reason.
    refusals: BTreeMap<String, u64>,
    /// How late the engine's timers fired.
    lateness: Histogram,
    sampling: Sampling,
}

impl Channel for QuicChannel {
    /// The number of messages that a flow writes before another flow gets its turn. We chose 64, which take
    /// some 500 us of encryption and system calls.
    const MAX_TURN: usize = 64;

    /// Returns the time now on the engine's clock.
    fn now(&mut self, _began: Instant) -> Instant {
        lock(&self.connection).tick(self.clock.now())
    }

    fn is_open(&self) -> bool {
        let is_over = self.life.is_broken() && self.spec.is_clocked();
        let is_wanted = !self.life.is_closing && self.begins.is_none();
        let is_usable = || {
            let engine = &lock(&self.connection).engine;
            engine.is_open() && engine.stream_failure(self.index).is_none()
        };
        is_wanted && (is_over || is_usable())
    }

    fn opened_at(&self, now: Instant) -> Instant {
        self.began.unwrap_or(now)
    }

    fn write(&mut self, write: &Write, now: Instant) -> WriteOutcome {
        if write.expires.is_some_and(|expires| expires <= now) {
            return WriteOutcome::Expired;
        }
        if self.life.is_broken() {
            return WriteOutcome::NotOpen;
        }
        let data = match self.carry {
            Carry::Stream => self.stream_bytes(write),
            Carry::Datagram | Carry::StreamPerMessage => {
                let message = write.message;
                Data::copy_from_slice(self.outgoing.fill(&self.spec, message.size.get(), message.seq))
            }
        };
        match lock(&self.connection).engine.write_bytes(self.index, write.message, data, write.expires) {
            Ok(taken) => {
                if let Some(frames) = &mut self.frames {
                    frames.on_taken(taken.get());
                }
                self.sent += if self.carry == Carry::Stream { taken.get() } else { 1 };
                WriteOutcome::Taken(taken)
            }
            Err(Refused::NoRoom) => WriteOutcome::NoRoom,
            Err(why) => {
                *self.refusals.entry(why.to_string()).or_default() += 1;
                WriteOutcome::Refused
            }
        }
    }

    fn read(&mut self, _flow: FlowId, limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        let mut connection = lock(&self.connection);
        let (delivery, came_at) = loop {
            let held = self.frames.as_ref().map_or(0, Frames::held);
            let limit = limit.saturating_sub(Bytes::new(held as u64)).max(Bytes::new(1));
            let (piece, came_at) = connection.engine.read_stamped(self.index, limit)?;
            self.piece = piece;
            let size = Bytes::new(self.piece.len() as u64);
            if self.carry == Carry::Stream {
                self.received += size.get();
                let readable = match &mut self.frames {
                    Some(frames) => frames.take(&self.spec, &self.piece, came_at),
                    None => Some(size.get()),
                };
                match readable {
                    // The data is only a part of a frame, and the engine may hold more of it.
                    Some(0) => continue,
                    Some(readable) => break (Delivery::Stream { bytes: Bytes::new(readable) }, came_at),
                    None => {
                        self.life.fail(NO_MESSAGE.to_owned());
                        return None;
                    }
                }
            }
            // Data without a number of this flow is no message of this flow, and is skipped.
            if let Some(seq) = self.incoming.number_in(&self.spec, &self.piece, came_at) {
                self.incoming.note(seq);
                break (Delivery::Message { seq, size }, came_at);
            }
        };
        let header = if self.carry == Carry::Stream { 0 } else { FILE_HEADER as usize };
        let data = self.piece.get(header..).unwrap_or_default();
        let begun = self.frames.as_ref().map_or(&[][..], Frames::begun);
        Some(Read { delivery, came_at: Some(came_at), held_since: None, begun, data })
    }

    /// Returns the room for bytes. For datagrams it is the room for one datagram of the largest size, or
    /// zero, because all datagrams of a transfer but the last have the same size.
    fn writable(&mut self, _flow: FlowId) -> Bytes {
        if self.life.is_closing {
            return Bytes::ZERO;
        }
        let connection = lock(&self.connection);
        let room = connection.engine.writable(self.index);
        match connection.engine.largest_in_transfer(self.index) {
            Some(whole) if room < whole => Bytes::ZERO,
            Some(whole) => whole,
            None => room,
        }
    }

    fn takes(&mut self, _flow: FlowId, size: Bytes) -> bool {
        !self.life.is_closing && lock(&self.connection).engine.takes(self.index, size)
    }

    fn flush(&mut self, _flow: FlowId, side: Side, taps: &mut FlowTaps, _now: Instant) {
        let mut tap = taps.written_by(side);
        let mut connection = lock(&self.connection);
        let was_ready = connection.engine.is_ready(self.index);
        connection.flush(self.index, self.clock);
        if !was_ready {
            // The flow was not ready before. What its own packets have changed, it handles in this turn.
            connection.engine.clear_ready(self.index);
        }
        let (mut gone, mut given_back) = (0, 0);
        for outcome in connection.take_outcomes(self.index) {
            gone += u64::from(!matches!(outcome, SendOutcome::Left(..)));
            given_back += u64::from(matches!(outcome, SendOutcome::GivenBack(_)));
            let Some(tap) = &mut tap else { continue };
            match outcome {
                SendOutcome::Left(PayloadRange::Message { seq }, at) => tap.on_wire(seq, at),
                SendOutcome::Left(PayloadRange::Stream { start, end }, at) => {
                    tap.on_wire_stream(start, end, at);
                }
                SendOutcome::Expired(seq) => tap.on_expired(seq),
                SendOutcome::GivenBack(seq) => tap.on_given_back(seq, Fate::Refused),
                SendOutcome::Stopped(seq) => tap.on_dropped(seq, DropCause::Stopped),
                SendOutcome::Unsent(seq, SendFailure::NoNetwork) => tap.on_no_network(seq),
                SendOutcome::Unsent(seq, _) => tap.on_unsent(seq),
            }
        }
        if given_back > 0 {
            let limit = connection.engine.largest_message(self.index).unwrap_or(Bytes::ZERO);
            *self.refusals.entry(Refused::TooLarge { limit }.to_string()).or_default() += given_back;
        }
        // A message that did not leave does not count as sent, so that nobody waits for its arrival.
        self.sent = self.sent.saturating_sub(gone);
    }

    fn poll_dropped(&mut self, _flow: FlowId) -> Option<(u64, DropCause)> {
        let mut connection = lock(&self.connection);
        loop {
            let data = connection.engine.poll_dropped_bytes(self.index)?;
            if let Some(seq) = self.incoming.number_in(&self.spec, &data, connection.now) {
                return Some((seq, DropCause::SocketBuffer));
            }
        }
    }

    fn poll_timeout(&self) -> Instant {
        let engine = self.leads().then(|| lock(&self.connection).engine.poll_timeout()).flatten();
        [self.life.poll_timeout(), self.begins, engine].into_iter().flatten().min().unwrap_or(Instant::MAX)
    }

    fn observe(&self) -> Observation {
        lock(&self.connection).engine.observe(self.index)
    }
}

impl HostChannel for QuicChannel {
    fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
    }

    fn handle_timeout(&mut self, now: Instant) {
        let leads = self.leads();
        let mut connection = lock(&self.connection);
        connection.tick(now);
        if self.life.take_opening(now) {
            let now = connection.now;
            connection.engine.open(now);
            // With a 0-RTT ticket the connection is open at once. It counts as open from the flow's start,
            // even if this host is late.
            self.began = Some(self.start()).filter(|_| connection.engine.is_open());
        }
        if self.begins.is_some_and(|begins| begins <= now) {
            let begun = self.begins.take();
            // Messages are due from the flow's start on, even if this host is late. If the connection is not
            // open yet, the flow begins when it opens.
            self.began = begun.filter(|_| connection.was_open || connection.engine.is_open());
        }
        self.life.give_up(now, MIN_PATIENCE, || connection.no_answer());
        let late = if leads { connection.handle_timeout() } else { None };
        late.into_iter().for_each(|late| self.lateness.record_unsigned(late));
    }

    fn discard(&mut self) {
        let mut connection = lock(&self.connection);
        while connection.engine.poll_dropped_bytes(self.index).is_some() {}
        while connection.engine.read_bytes(self.index, Bytes::MAX).is_some() {}
    }

    fn was_open(&self) -> bool {
        self.life.was_open()
    }

    fn progress(&self, has_written: bool, is_over: bool) -> EndProgress {
        let is_done = (has_written && self.is_empty()) || (is_over && !self.life.was_open());
        let received = match self.carry {
            Carry::Stream => self.received,
            Carry::Datagram | Carry::StreamPerMessage => self.incoming.unique(),
        };
        EndProgress { is_done, sent: self.sent, received }
    }

    fn paid_rows(&self) -> u64 {
        self.incoming.paid_rows() + self.frames.as_ref().map_or(0, Frames::paid_rows)
    }

    fn count(&self, totals: &mut EndTotals) {
        let connection = lock(&self.connection);
        let counters = connection.engine.counters(self.index);
        totals.data_packets = Some(counters.data_packets);
        totals.retransmissions = Some(counters.retransmissions);
        totals.timeouts = counters.timeouts;
        totals.held = counters.held.into();
        totals.takes_marks = Some(connection.ecn != Some(Ecn::NotEct));
        totals.marked = Some(counters.ecn.marked).filter(|_| connection.headers.are_whole());
        let path_mtu = connection.route.as_ref().and_then(UdpRoute::path_mtu);
        totals.headers = connection.headers.figures(path_mtu);
        totals.refusals.clone_from(&self.refusals);
        totals.gap_ns = self.incoming.gap().map(Duration::as_nanos);
        // Packets belong to the connection, so only its first flow counts them.
        if self.leads() {
            totals.unsent.clone_from(&connection.unsent);
        }
        totals.cc = Some(self.cc.name().to_owned());
        totals.quic_path = connection.engine.path_report();
        totals.handshake_ns = connection.engine.handshake().map(Duration::as_nanos);
    }

    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)> {
        let connection = lock(&self.connection);
        let is_wanted = match occasion {
            Occasion::Turn => true,
            Occasion::Visit => connection.is_shared(),
            Occasion::Timeout | Occasion::Interval => false,
        };
        if !is_wanted {
            return None;
        }
        self.sampling.note(connection.engine.observe(self.index), connection.now)
    }

    fn take_failure(&mut self) -> Option<String> {
        self.life.take_failure()
    }

    fn token(&self) -> Option<u32> {
        Some(self.outgoing.token())
    }

    fn set_route(&mut self, route: UdpRoute) {
        lock(&self.connection).set_route(route);
    }

    fn handle_datagram(&mut self, datagram: &Received<'_>, _wants_data: bool) -> bool {
        lock(&self.connection).handle_datagram(datagram, self.clock.stamped(datagram.stamp_ns))
    }

    fn finish_turn(&mut self, _has_read_all: bool, is_finished: bool) {
        let mut connection = lock(&self.connection);
        connection.was_open |= connection.engine.is_open();
        self.life.note_open(connection.engine.is_established());
        drop(connection);
        self.notice_end(is_finished);
    }

    /// Closes the flow. The client closes the connection when its last flow closes. The server sends no
    /// answer (RFC 9000 §10.2), so `is_closed` is always true.
    fn close(&mut self, _has_written_all: bool) -> bool {
        self.life.is_closing = true;
        if self.life.is_client {
            let mut connection = lock(&self.connection);
            connection.tick(self.clock.now());
            connection.close(self.index);
        }
        true
    }

    fn lateness(&self) -> Option<&Histogram> {
        Some(&self.lateness)
    }
}

impl QuicChannel {
    /// Makes an end of a flow. `spec` is the flow's transport.
    pub(super) fn new(setup: &ChannelSetup<'_>, spec: &QuicSpec) -> Self {
        let ChannelSetup { session, flow, place, bound, common } = *setup;
        let (connection, index) = common.connections.of(session, place);
        let start = Instant::from_nanos(flow.start_ns);
        Self {
            spec: flow.clone(),
            carry: spec.carry(),
            cc: spec.cc(),
            index,
            clock: common.clock,
            is_sender: place.is_sender,
            life: Lifecycle::new(place.is_client, start, session.stop()),
            begins: (place.is_sender && lock(&connection).is_shared()).then_some(start),
            began: None,
            connection,
            outgoing: Outgoing::new(place),
            incoming: Incoming::new(flow, place, bound, common),
            frames: Frames::new(flow, place, bound, common),
            piece: Data::new(),
            sent: 0,
            received: 0,
            refusals: BTreeMap::new(),
            lateness: Histogram::new(),
            sampling: Sampling::new(setup.sample_interval()),
        }
    }

    /// Makes the channel write to `notes` from now on which messages each packet carries.
    pub(super) fn note_packets(&mut self, notes: Arc<PacketNotes>) {
        lock(&self.connection).note_packets(notes);
    }

    /// Fetches the ticket of a client whose first messages leave in 0-RTT packets. It opens a connection
    /// before the run and waits for the ticket until `is_over` returns true. Does nothing for other flows.
    ///
    /// # Errors
    /// Returns the reason if there is no ticket.
    pub(super) fn fetch_ticket(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), String> {
        lock(&self.connection).fetch_ticket(self.clock, is_over)
    }

    /// Records that the application's turn begins. In this turn the flow handles everything new of the
    /// connection.
    pub(super) fn begin_turn(&mut self) {
        lock(&self.connection).engine.clear_ready(self.index);
    }

    /// Takes the index of a flow for which the connection has something new. The caller gives that flow a
    /// turn.
    pub(super) fn take_ready(&self) -> Option<usize> {
        lock(&self.connection).take_ready()
    }

    /// Takes what the connection has logged. Only its first flow has it.
    pub(super) fn take_qlog(&mut self) -> Option<(String, Vec<QlogEvent>)> {
        if self.leads() { lock(&self.connection).engine.take_qlog() } else { None }
    }

    /// Sends a PING if the connection waits for nothing.
    pub(super) fn ping(&mut self) {
        lock(&self.connection).engine.ping();
    }

    fn start(&self) -> Instant {
        Instant::from_nanos(self.spec.start_ns)
    }

    /// Returns true if this is the first flow of the connection.
    const fn leads(&self) -> bool {
        self.index == 0
    }

    /// Returns true if no data waits to be sent or acknowledged.
    fn is_empty(&self) -> bool {
        lock(&self.connection).engine.send_buffer(self.index) == Bytes::ZERO
    }

    /// Makes the next bytes of one stream for all messages, at most as many as `write` asks for. They are
    /// bytes of the file if the flow carries a file.
    fn stream_bytes(&mut self, write: &Write) -> Data {
        if let Some(frames) = &mut self.frames {
            return Data::copy_from_slice(frames.next(write));
        }
        let size = usize::try_from(write.message.size.get()).unwrap_or(usize::MAX);
        match self.spec.file.as_ref().filter(|_| self.is_sender) {
            Some(file) => {
                let sent = usize::try_from(self.sent).unwrap_or(usize::MAX);
                let rest = file.content.get(sent..).unwrap_or_default();
                Data::copy_from_slice(&rest[..size.min(rest.len())])
            }
            None => {
                let filling = stream_filling();
                Data::from_static(&filling[..size.min(filling.len())])
            }
        }
    }

    /// Notes a failure if the connection has ended while the flow still needs it, or if the far end has
    /// stopped or reset the stream of the flow.
    fn notice_end(&mut self, is_finished: bool) {
        let connection = lock(&self.connection);
        if let Some(why) = connection.engine.stream_failure(self.index)
            && !self.life.is_closing
        {
            self.life.fail(why.to_string());
        }
        let Some(why) = connection.engine.lost() else { return };
        let is_orderly = self.life.is_closing || (connection.engine.was_closed_by_peer() && is_finished);
        if !is_orderly {
            // The far end may have written the reason, so it is shortened to printable characters.
            self.life.fail(format!("the QUIC connection was lost: {}", shorten_reason(why)));
        }
    }
}

#[cfg(test)]
mod tests;
