//! One end of a QUIC connection that carries one flow or several, as a sans-IO machine of ours.
//!
//! ```text
//!  write ─► datagrams, streams ─► engine ─► poll_transmit     what left: poll_send_event, a flow at a time
//!  read  ◄─ inboxes, streams  ◄── engine ◄─ handle_packet
//! ```
//!
//! The engine is quinn-proto. Here is what it leaves to its user: messages in datagrams and streams, which
//! messages expire, which flow each belongs to, and when each left.
//!
//! As of other transports of the simulator, the number of a message is not on the wire:
//! [`QuicPacket::pieces`] has it. The bytes of messages are zeros.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event,
    StreamEvent, VarInt,
};
use talkpath_config::{Carry, QUIC_DATAGRAM_AT_OPENING, quic_packet_size};
use talkpath_units::{Bytes, Duration, Ecn, Instant, printable};
use talkpath_wire::{
    Counters, Delivery, EcnCounters, HoldCause, HoldClock, Levels, LossRecovery, Message, Observation,
    Packet, PayloadRange, QuicPacket, QuicPiece, Refused, Transmit,
};

use crate::clock::{engine_time, virtual_time};
use crate::codepoints::{LONG_HEADER, codepoint, field};
use crate::configs::SERVER_NAME;
use crate::content::Content;
use crate::datagrams::{DatagramQueue, Waiting};
use crate::far::{Arrival, FAR, FarEnd, PathReport};
use crate::inbound::Inbound;
use crate::qlog::Qlog;
use crate::ready::ReadyFlows;
use crate::receiving::DiscardCause;
use crate::recovery::SharedRecovery;
use crate::sending::{SendEvent, Sending};
use crate::setup::Setup;
use crate::watch::{DataFrame, PacketWatch};

/// One end of a connection.
pub struct End {
    pub(crate) endpoint: Endpoint,
    /// What a client connects with; `None` at the server.
    pub(crate) client_config: Option<ClientConfig>,
    pub(crate) connection: Option<(ConnectionHandle, Connection)>,
    pub(crate) far: FarEnd,
    /// Packets that the endpoint answers with by itself (Retry, Version Negotiation, stateless resets), and
    /// to whom.
    stateless_answers: VecDeque<(Vec<u8>, SocketAddr)>,
    pub(crate) watch: PacketWatch,
    /// Room for the frames of a packet.
    frames: Vec<DataFrame>,
    /// Room for a packet.
    buffer: Vec<u8>,
    datagrams: DatagramQueue,
    pub(crate) sending: Sending,
    /// What came and was not read.
    pub(crate) inbound: Inbound,
    /// What became of the messages of each flow.
    send_events: Vec<VecDeque<SendEvent>>,
    /// The flows that have something new.
    pub(crate) ready: ReadyFlows,
    is_open: bool,
    /// When the client began to connect, and when its handshake was over.
    handshake: (Option<Instant>, Option<Instant>),
    /// Another connection was to begin here, and found no place.
    has_refused_another: bool,
    /// Why the connection was lost, and when.
    lost: Option<(String, Instant)>,
    /// It was the far end's application that closed it, in order.
    was_closed: bool,
    deadline: Option<Instant>,
    /// UDP payload of a full packet.
    packet_size: f64,
    pub(crate) recovery: SharedRecovery,
    pub(crate) qlog: Option<Box<Qlog>>,
    /// What each flow counted of its own.
    flow_counters: Vec<FlowCounters>,
    /// Scratch space: the flows whose data a packet carries, and whether any data was sent before.
    sent_flows: Vec<(usize, bool)>,
    ecn: EcnCounters,
    /// How long unsent data was held back.
    held: HoldClock,
}

/// What an end counts of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct FlowCounters {
    /// Packets with the flow's data.
    data_packets: u64,
    /// Packets with data of the flow that was sent before.
    retransmissions: u64,
}

impl End {
    /// An end of a connection of the flows of `setup`; a server's without [`End::client_config`].
    pub(crate) fn new(
        endpoint: Endpoint,
        watch: PacketWatch,
        recovery: SharedRecovery,
        inbound: Inbound,
        setup: &Setup,
    ) -> Self {
        Self {
            endpoint,
            client_config: None,
            connection: None,
            far: FarEnd::default(),
            stateless_answers: VecDeque::new(),
            watch,
            frames: Vec::new(),
            buffer: Vec::new(),
            datagrams: DatagramQueue::new(setup.path_mtu),
            sending: Sending::new(&setup.flows),
            inbound,
            send_events: vec![VecDeque::new(); setup.flows.len()],
            ready: ReadyFlows::new(setup.flows.len()),
            is_open: false,
            handshake: (None, None),
            has_refused_another: false,
            lost: None,
            was_closed: false,
            deadline: None,
            packet_size: quic_packet_size(setup.path_mtu).get() as f64,
            recovery,
            qlog: None,
            flow_counters: vec![FlowCounters::default(); setup.flows.len()],
            sent_flows: Vec::new(),
            ecn: EcnCounters { capable: true, ..EcnCounters::default() },
            held: HoldClock::default(),
        }
    }

    /// The largest message of a flow, if the path bounds it: what the path is expected to carry, and from the
    /// end of the search for its MTU on what it was found to carry. Once connected, also what the far end
    /// takes as a datagram (RFC 9221 §3), 0 if it takes none.
    pub fn largest_message(&self, flow: usize) -> Option<Bytes> {
        (self.sending.carry(flow) == Carry::Datagram).then(|| self.datagrams.largest())
    }

    /// The largest message of a transfer of a flow, if a packet bounds it: what one holds from the end of the
    /// handshake on.
    pub fn largest_in_transfer(&self, flow: usize) -> Option<Bytes> {
        Some(self.largest_message(flow)?.min(QUIC_DATAGRAM_AT_OPENING))
    }

    /// Begins to connect, if it is the client and has not begun.
    pub fn open(&mut self, now: Instant) {
        if self.connection.is_some() {
            return;
        }
        let Some(config) = self.client_config.clone() else { return };
        let Ok((handle, connection)) = self.endpoint.connect(engine_time(now), config, FAR, SERVER_NAME)
        else {
            return;
        };
        // With a ticket, messages are taken at once.
        self.is_open = connection.has_0rtt();
        if self.is_open {
            self.ready.mark_all();
        }
        self.connection = Some((handle, connection));
        self.handshake.0 = Some(now);
        self.take_engine_events(now);
    }

    /// Closes the connection, and says so to the far end. What has not left does not leave.
    pub fn close(&mut self, now: Instant) {
        self.is_open = false;
        if let Some((_, connection)) = &mut self.connection {
            connection.close(engine_time(now), IN_ORDER, bytes::Bytes::new());
            self.qlog.iter_mut().for_each(|qlog| qlog.note_end(now, None));
        }
        self.take_engine_events(now);
    }

    /// Why the connection was lost; `None` while it was not, or if this end closed it. What the far end wrote
    /// is in it, fit for a terminal.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_ref().map(|(why, _)| why.as_str())
    }

    /// When it was lost.
    pub fn lost_at(&self) -> Option<Instant> {
        self.lost.as_ref().map(|(_, at)| *at)
    }

    /// Whether it was lost because the far end closed it, by [`End::close`].
    pub fn was_closed_by_peer(&self) -> bool {
        self.was_closed
    }

    /// Whether messages are taken and the handshake is over. With a ticket they are taken before that.
    pub fn is_established(&self) -> bool {
        self.is_open && self.connection.as_ref().is_some_and(|(_, connection)| !connection.is_handshaking())
    }

    /// How long the handshake took, by the client; `None` before its end, and at the server.
    pub fn handshake(&self) -> Option<Duration> {
        let (begun, over) = self.handshake;
        Some(over?.since(begun?))
    }

    /// Whether the packet of the last call of [`End::handle_packet`] would have begun another connection,
    /// which has no place at this end.
    pub fn has_refused_another(&self) -> bool {
        self.has_refused_another
    }

    /// Whether messages are taken.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes `message` of `flow`; on one stream for all messages, perhaps only its beginning.
    ///
    /// # Errors
    /// Why it takes nothing.
    pub fn write(
        &mut self,
        flow: usize,
        message: Message,
        expires: Option<Instant>,
    ) -> Result<Bytes, Refused> {
        self.take(flow, message, Content::Zeros(message.size.get()), expires)
    }

    /// The same with the message's bytes.
    pub(crate) fn take(
        &mut self,
        flow: usize,
        message: Message,
        content: Content,
        expires: Option<Instant>,
    ) -> Result<Bytes, Refused> {
        let is_open = self.is_open && self.stream_failure(flow).is_none();
        let Some((_, connection)) = self.connection.as_mut().filter(|_| is_open) else {
            return Err(Refused::NotOpen);
        };
        match self.sending.carry(flow) {
            Carry::Datagram => {
                let limit = self.datagrams.largest();
                if message.size > limit {
                    return Err(Refused::TooLarge { limit });
                }
                if self.sending.datagram_room(flow, limit) < message.size {
                    return Err(Refused::NoRoom);
                }
                let priority = self.sending.priority(flow);
                self.sending.add_unsent(flow, message.size);
                self.datagrams.push(Waiting {
                    flow,
                    seq: message.seq,
                    size: message.size,
                    content,
                    expires,
                    priority,
                });
                Ok(message.size)
            }
            Carry::Stream => self.sending.write_stream(connection, flow, content),
            Carry::StreamPerMessage => {
                self.sending.write_message(connection, flow, message, content, expires)
            }
        }
    }

    /// Room for the next message of `flow`; zero while it is not open.
    pub fn writable(&self, flow: usize) -> Bytes {
        match self.sending.carry(flow) {
            _ if !self.is_open || self.stream_failure(flow).is_some() => Bytes::ZERO,
            Carry::Datagram => self.sending.datagram_room(flow, self.datagrams.largest()),
            Carry::Stream | Carry::StreamPerMessage => self.sending.writable(flow),
        }
    }

    /// Whether a message of `size` of `flow` may be written now. A stream has room for a part of any, or for
    /// none.
    pub fn takes(&self, flow: usize, size: Bytes) -> bool {
        let room = self.writable(flow);
        match self.sending.carry(flow) {
            Carry::Datagram => room >= size,
            Carry::Stream | Carry::StreamPerMessage => room > Bytes::ZERO,
        }
    }

    /// One read of at most `limit` bytes of `flow` (a message counts as a whole).
    pub fn read(&mut self, flow: usize, limit: Bytes) -> Option<Delivery> {
        let (_, connection) = self.connection.as_mut()?;
        self.inbound.read(connection, flow, limit)
    }

    /// Whether `flow` may have something to read.
    pub fn is_readable(&self, flow: usize) -> bool {
        self.inbound.is_readable(flow)
    }

    /// The number of a message of `flow` that came and nobody will read, one a call, and why.
    pub fn poll_dropped(&mut self, flow: usize) -> Option<(u64, DiscardCause)> {
        self.inbound.poll_dropped(flow)
    }

    /// Takes one packet from the network, which comes now.
    pub fn handle_packet(&mut self, packet: &QuicPacket, ecn: Ecn, now: Instant) {
        self.handle_arrival(packet, &Arrival { from: FAR, ecn, at: now }, now);
    }

    /// Takes one packet, which came to the host as `arrival` says, perhaps before the end's own time. A
    /// packet from another address than before moves the connection there (RFC 9000 §9.3), if the far end
    /// made it.
    pub fn handle_arrival(&mut self, packet: &QuicPacket, arrival: &Arrival, now: Instant) {
        let Arrival { from, ecn, at: came_at } = *arrival;
        self.inbound.note_arrival(came_at);
        self.ecn.marked += u64::from(ecn == Ecn::Ce);
        self.inbound.learn(&packet.pieces);
        self.buffer.clear();
        self.has_refused_another = false;
        let (at, data) = (engine_time(now), BytesMut::from(packet.bytes.as_slice()));
        match self.endpoint.handle(at, from, None, codepoint(ecn), data, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.connection.is_some() {
                    self.has_refused_another = true;
                    self.endpoint.ignore(incoming);
                } else if let Ok(accepted) = self.endpoint.accept(incoming, at, &mut self.buffer, None) {
                    self.connection = Some(accepted);
                }
            }
            Some(DatagramEvent::Response(transmit)) if self.may_answer(packet, from) => {
                self.stateless_answers.push_back((self.buffer[..transmit.size].to_vec(), from));
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.take_engine_events(now);
        let mut connection = self.connection.as_mut().map(|(_, connection)| connection);
        let read = self.watch.take_read();
        let is_handshaking = connection.as_ref().is_none_or(|connection| connection.is_handshaking());
        // Before the handshake's end a 1-RTT packet is discarded, keys or not (RFC 9001 §5.7).
        let is_read = read.early || (read.one_rtt && !is_handshaking);
        self.inbound.on_handled(connection.as_deref_mut(), &packet.pieces, is_read, &mut self.ready);
        if let Some(connection) = connection {
            self.recovery.lock().on_smoothed_rtt(connection.rtt().into());
        }
        self.log(now);
    }

    /// The deadline that `poll_timeout` gave has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(engine_time(now));
        }
        self.take_engine_events(now);
        self.log(now);
    }

    /// When `handle_timeout` wants to be called, or a message expires.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiries = [self.datagrams.next_expiry(), self.sending.next_expiry()];
        // Only while it is open are they taken away.
        let expiry = expiries.into_iter().flatten().min().filter(|_| self.is_open);
        self.deadline.into_iter().chain(expiry).min()
    }

    /// The next packet to put on the wire.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.poll_transmit_to(now).map(|(transmit, _)| transmit)
    }

    /// The next packet to put on the wire, and the address that it is for.
    pub fn poll_transmit_to(&mut self, now: Instant) -> Option<(Transmit, SocketAddr)> {
        if let Some((bytes, to)) = self.stateless_answers.pop_front() {
            return Some((transmit(QuicPacket { bytes, pieces: Vec::new() }, Ecn::NotEct, false), to));
        }
        let (_, connection) = self.connection.as_mut()?;
        let (events, sending, ready) = (&mut self.send_events, &mut self.sending, &mut self.ready);
        if self.is_open {
            let mut expired = |flow: usize, seq| {
                events[flow].push_back(SendEvent::Expired { seq });
                ready.mark(flow);
            };
            sending.reset_expired(connection, now, &mut expired);
            self.datagrams.refill(connection, now, |message| {
                sending.remove_unsent(message.flow, message.size);
                expired(message.flow, message.seq);
            });
            if sending.write_rejected(connection, now, &mut expired) {
                ready.mark_all();
            }
            sending.continue_messages(connection, ready);
        }
        self.buffer.clear();
        let sent = connection.poll_transmit(engine_time(now), 1, &mut self.buffer);
        // A pacer that waits for less than a nanosecond waits for one.
        let later = now + Duration::from_nanos(1);
        self.deadline = connection.poll_timeout().map(|at| virtual_time(at).max(later));
        let Some(sent) = sent else {
            // Nothing else to send is when a search begins, goes on or ends.
            self.follow_path();
            self.held.note(self.hold_cause(), now);
            return None;
        };
        self.frames.clear();
        let in_flight = self.watch.take_sent(&mut self.frames);
        self.recovery.lock().on_sent(in_flight);
        let (pieces, is_again) = self.take_frames();
        let packet = QuicPacket { bytes: self.buffer[..sent.size].to_vec(), pieces };
        self.log(now);
        Some((transmit(packet, field(sent.ecn), is_again), sent.destination))
    }

    /// What holds unsent data back, now that no packet may leave. The engine does not say it. With less room
    /// in the congestion window than a full packet takes, the engine waits for acknowledgements. Otherwise
    /// datagrams wait for its pacer, because they have no flow control (RFC 9221 §5.4). For streams it may
    /// also be the far end's window, so nothing is said.
    fn hold_cause(&self) -> Option<HoldCause> {
        let (_, connection) = self.connection.as_ref().filter(|_| self.is_open)?;
        if !self.sending.has_unsent() {
            return None;
        }
        let full_packet = u64::from(connection.current_mtu());
        let in_flight = self.recovery.lock().bytes_in_flight();
        if in_flight + full_packet >= connection.congestion_state().window() {
            return Some(HoldCause::CongestionWindow);
        }
        self.datagrams.has_inside().then_some(HoldCause::Pacing)
    }

    /// Asks the far end for a sign of life by a PING, if nothing is on its way that asks for one (RFC 9000
    /// §10.1.2). So a far end finds an address that a translator has given this host anew.
    pub fn ping(&mut self) {
        let is_quiet = self.recovery.lock().bytes_in_flight() == 0;
        if let Some((_, connection)) = self.connection.as_mut().filter(|_| self.is_open && is_quiet) {
            connection.ping();
        }
    }

    /// What the connection has found out about its path; `None` before it began.
    pub fn path_report(&self) -> Option<PathReport> {
        self.connection.as_ref().map(|(_, connection)| self.far.report(connection))
    }

    /// Whether a `packet` from this address that belongs to no connection gets an answer. Another address
    /// than the connection's may be anybody's, and so may a packet that is for a connection before there is
    /// one.
    fn may_answer(&self, packet: &QuicPacket, from: SocketAddr) -> bool {
        match &self.connection {
            Some((_, connection)) => connection.remote_address() == from,
            None => packet.bytes.first().is_some_and(|first_byte| first_byte & LONG_HEADER != 0),
        }
    }

    /// What became of a message of `flow`, one a call, until `None`.
    pub fn poll_send_event(&mut self, flow: usize) -> Option<SendEvent> {
        self.send_events[flow].pop_front()
    }

    /// The state to plot, with the send buffer of `flow`. A full packet is the segment that `cwnd` counts in.
    pub fn observe(&self, flow: usize) -> Observation {
        let Levels { cwnd, window, send_buffer } = self.levels(flow);
        let Some((_, connection)) = &self.connection else {
            return Observation { send_buffer, ..Observation::default() };
        };
        let metrics = connection.congestion_state().metrics();
        let ssthresh = metrics.ssthresh.map(|bytes| match bytes {
            u64::MAX => f64::INFINITY,
            bytes => bytes as f64 / self.packet_size,
        });
        let recovery = *self.recovery.lock();
        let srtt = recovery.smoothed_rtt();
        let loss_recovery = Some(LossRecovery {
            pto: recovery.pto(),
            bytes_in_flight: Bytes::new(recovery.bytes_in_flight()),
            lost_packets: connection.stats().path.lost_packets,
        });
        Observation { cwnd, window, ssthresh, srtt, send_buffer, loss_recovery, ..Observation::default() }
    }

    /// The part of the state that is averaged, with the send buffer of `flow`.
    pub fn levels(&self, flow: usize) -> Levels {
        let window = self.connection.as_ref().map(|(_, connection)| connection.congestion_state().window());
        let cwnd = window.map(|bytes| bytes as f64 / self.packet_size);
        Levels { cwnd, window: cwnd, send_buffer: self.send_buffer(flow) }
    }

    /// What [`Levels::cwnd`] follows from.
    pub fn windows_key(&self) -> (u64, u64) {
        let window =
            self.connection.as_ref().map_or(0, |(_, connection)| connection.congestion_state().window());
        (window, 0)
    }

    /// [`Levels::send_buffer`]: bytes of `flow` that were taken and have not left yet.
    pub fn send_buffer(&self, flow: usize) -> Bytes {
        self.sending.unsent(flow)
    }

    /// The counts since the beginning: packets and retransmissions of `flow`, all else of the connection. A
    /// packet with data of several flows counts for each flow. The engine does not say how often its probe
    /// timeout fired.
    pub fn counters(&self, flow: usize) -> Counters {
        let events = self.connection.as_ref().map_or(0, |(_, it)| it.stats().path.congestion_events);
        let FlowCounters { data_packets, retransmissions } = self.flow_counters[flow];
        let capable = self.path_report().is_none_or(|report| report.ecn_failure.is_none());
        Counters {
            data_packets,
            retransmissions,
            fast_retransmits: events,
            held: self.held.times(),
            ecn: EcnCounters { capable, ..self.ecn },
            ..Counters::default()
        }
    }

    /// Takes what the frames of a packet carried; gives them as pieces, and whether any data was sent before.
    fn take_frames(&mut self) -> (Vec<QuicPiece>, bool) {
        let mut pieces = Vec::with_capacity(self.frames.len());
        self.sent_flows.clear();
        for &frame in &self.frames {
            let (piece, is_again) = match frame {
                DataFrame::Datagram { size } => {
                    let Some(message) = self.datagrams.on_sent(size) else { continue };
                    self.sending.remove_unsent(message.flow, message.size);
                    let Waiting { flow, seq, .. } = message;
                    self.send_events[flow].push_back(SendEvent::Sent(PayloadRange::Message { seq }));
                    (QuicPiece { flow: flow as u32, stream: None, seq }, false)
                }
                DataFrame::Stream { id, start, end } => {
                    let Some(sent) = self.sending.on_sent(id, start, end) else { continue };
                    self.send_events[sent.flow].extend(sent.range.map(SendEvent::Sent));
                    (
                        QuicPiece { flow: sent.flow as u32, stream: Some(id), seq: sent.seq },
                        sent.is_retransmission,
                    )
                }
            };
            pieces.push(piece);
            let flow = piece.flow as usize;
            // The flow has room to write again.
            self.ready.mark(flow);
            match self.sent_flows.iter_mut().find(|it| it.0 == flow) {
                Some(it) => it.1 |= is_again,
                None => self.sent_flows.push((flow, is_again)),
            }
        }
        for &(flow, is_again) in &self.sent_flows {
            self.flow_counters[flow].data_packets += 1;
            self.flow_counters[flow].retransmissions += u64::from(is_again);
        }
        (pieces, self.sent_flows.iter().any(|it| it.1))
    }

    /// Takes the events of the engine, until it has no more.
    fn take_engine_events(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            let Some(event) = connection.poll() else { break };
            match event {
                Event::Connected => {
                    self.sending.on_connected(connection.accepted_0rtt());
                    self.is_open = true;
                    self.handshake.1 = Some(now);
                    self.ready.mark_all();
                }
                Event::ConnectionLost { reason } => {
                    self.is_open = false;
                    self.ready.mark_all();
                    let code = match &reason {
                        ConnectionError::ApplicationClosed(close) => Some(close.error_code),
                        _ => None,
                    };
                    self.was_closed = code == Some(IN_ORDER);
                    self.lost = Some((printable(&reason.to_string(), MAX_REASON), now));
                    self.qlog.iter_mut().for_each(|qlog| qlog.note_end(now, Some(&reason)));
                    let (events, sending) = (&mut self.send_events, &mut self.sending);
                    let mut expired = |flow: usize, seq| events[flow].push_back(SendEvent::Expired { seq });
                    sending.give_up(&mut expired);
                    for message in self.datagrams.give_up() {
                        sending.remove_unsent(message.flow, message.size);
                        expired(message.flow, message.seq);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.inbound.accept(connection, &mut self.ready);
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.inbound.on_readable(connection, id.into(), &mut self.ready);
                }
                Event::Stream(StreamEvent::Writable { id }) => {
                    self.sending.on_writable(id.into(), &mut self.ready);
                }
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    if let Some((flow, seq)) = self.sending.on_stopped(connection, id.into(), error_code) {
                        self.send_events[flow].extend(seq.map(|seq| SendEvent::Stopped { seq }));
                        self.ready.mark(flow);
                    }
                }
                Event::Stream(StreamEvent::Finished { id }) => self.sending.on_acknowledged(id.into()),
                Event::Stream(StreamEvent::Available { dir: Dir::Uni }) => {
                    self.sending.on_stream_available(&mut self.ready);
                }
                Event::Stream(_)
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
        self.deadline = connection.poll_timeout().map(virtual_time);
        self.far.follow(connection);
        self.follow_path();
    }

    /// The datagrams follow what the path is known to carry.
    fn follow_path(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        let (events, sending, ready) = (&mut self.send_events, &mut self.sending, &mut self.ready);
        self.datagrams.follow_path(connection, |message| {
            sending.remove_unsent(message.flow, message.size);
            events[message.flow].push_back(SendEvent::GivenBack { seq: message.seq });
            ready.mark(message.flow);
        });
    }
}

fn transmit(packet: QuicPacket, ecn: Ecn, retransmission: bool) -> Transmit {
    let packet = Packet::Quic(Box::new(packet));
    let wire_size = packet.wire_size().get() as u32;
    // What it carries is in its pieces, and noted by flow.
    Transmit { packet, ecn, payload: None, retransmission, wire_size }
}

/// What [`End::close`] says to the far end: nothing is wrong. Ours.
const IN_ORDER: VarInt = VarInt::from_u32(0);

/// The longest reason of a close that is kept. A peer may have written it. Chosen: a few lines of a terminal.
const MAX_REASON: usize = 500;

#[cfg(test)]
#[path = "expiry_tests.rs"]
mod expiry_tests;
#[cfg(test)]
#[path = "mtu_tests.rs"]
mod mtu_tests;
#[cfg(test)]
#[path = "end_tests.rs"]
mod tests;
