//! A flow's channel over QUIC (RFC 9000), each packet in a UDP datagram of the flow's own sockets.
//!
//! ```text
//!  write ─► engine ─► flush: packets ─► train ─► datagrams    driven by: the pacer, at the engine's deadlines;
//!  read  ◄─ engine ◄───────────────────────────  datagrams    the receiving thread, with what arrives
//! ```
//!
//! A packet is timed by the kernel's receive stamp if that is later than all before it, so that a late thread
//! of this host makes no round trip longer. The client opens and closes; the server answers.
//!
//! A message's number is in its own bytes (`wire.rs`), which only the two ends can read. One stream for all
//! messages carries bytes without numbers, as TCP does.
//!
//! **ECN.** The engine says of each packet whether it leaves with ECT(0). It stops for good if the path does
//! not take it; then the socket, or the route of a server, is set anew.
//!
//! **Trains.** Packets of one size that leave in one turn leave by one call ([`super::train`]), where the
//! arena allows it and no clock paces the messages.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes as Data;
use talkpath_config::QuicCongestionControl;
use talkpath_flow::{Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_measure::{DropCause, LegTap};
use talkpath_quic::{End, HostKeys, SendEvent};
use talkpath_transport::{Carry, Delivery, Ecn, Observation, Packet, PayloadRange, QuicPacket, Refused};
use talkpath_units::{Bytes, Duration, Histogram, Instant};

use super::EndContext;
use super::channel::{HostChannel, Occasion};
use super::headers::HeaderCount;
use super::lifecycle::Lifecycle;
use super::messages::{Incoming, Outgoing};
use super::packets::PacketNotes;
use super::place::EndPlace;
use super::route::UdpRoute;
use super::sampling::Sampling;
use super::tcp::outgoing;
use super::train::Train;
use crate::clock::RunClock;
use crate::join::few_words;
use crate::log::EndTotals;
use crate::progress::EndProgress;
use crate::spec::{FlowSpec, QuicSpec, receive_window};
use crate::sys::{Received, set_tos};
use crate::wire::registered;

/// A QUIC flow's channel.
pub(super) struct QuicChannel {
    spec: FlowSpec,
    carry: Carry,
    cc: QuicCongestionControl,
    engine: End,
    clock: RunClock,
    is_sender: bool,
    life: Lifecycle,
    route: Option<UdpRoute>,
    /// What datagrams leave with now, as the engine wants it; `None` if it is not set on `route` yet.
    ecn: Option<Ecn>,
    /// What leaves together.
    train: Train,
    /// The messages that leave in this turn: the number of their packet, and when the engine gave it.
    leaving: Vec<(u64, PayloadRange, Instant)>,
    /// The number of the next packet.
    packets: u64,
    /// Who else wants to know what is in the packets.
    notes: Option<Arc<PacketNotes>>,
    outgoing: Outgoing,
    incoming: Incoming,
    headers: HeaderCount,
    /// The engine's time: it never goes back, though a receive stamp may lie before a timer that has fired.
    now: Instant,
    /// When the packet came that is being read.
    arrived: Option<Instant>,
    /// What was read last.
    piece: Data,
    /// Messages that the engine took and that did not expire; bytes of one stream.
    sent: u64,
    /// Bytes of one stream that were read.
    received: u64,
    /// Why the engine refused messages, and how many each.
    refusals: BTreeMap<String, u64>,
    /// Why packets did not leave: the system's words, and how many each.
    unsent: BTreeMap<String, u64>,
    /// How late the engine's timers fired.
    lateness: Histogram,
    sampling: Sampling,
}

impl Channel for QuicChannel {
    /// Messages that a flow writes before another flow gets its turn (chosen: some 500 us of encryption and
    /// system calls).
    const MAX_TURN: usize = 64;

    /// The time now, on the engine's clock.
    fn now(&mut self, _began: Instant) -> Instant {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    fn is_open(&self) -> bool {
        let refuses = self.life.is_broken() && self.spec.is_clocked();
        !self.life.is_closing && (self.engine.is_open() || refuses)
    }

    fn write(&mut self, write: &Write, now: Instant) -> WriteOutcome {
        if write.expires.is_some_and(|expires| expires <= now) {
            return WriteOutcome::Expired;
        }
        let data = match self.carry {
            Carry::Stream => self.stream_bytes(write.message.size),
            Carry::Datagram | Carry::StreamPerMessage => {
                let message = write.message;
                Data::copy_from_slice(self.outgoing.fill(&self.spec, message.size.get(), message.seq))
            }
        };
        match self.engine.write_bytes(write.message, data, write.expires) {
            Ok(taken) => {
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
        let came_at = self.arrived;
        let delivery = loop {
            self.piece = self.engine.read_bytes(limit)?;
            let size = Bytes::new(self.piece.len() as u64);
            if self.carry == Carry::Stream {
                self.received += size.get();
                break Delivery::Stream { bytes: size };
            }
            // Anything else is no message of this flow.
            if let Some(seq) = self.incoming.number_in(&self.spec, &self.piece, came_at.unwrap_or(self.now)) {
                self.incoming.note(seq);
                break Delivery::Message { seq, size };
            }
        };
        let header = if self.carry == Carry::Stream { 0 } else { FILE_HEADER };
        let data = self.piece.get(header..).unwrap_or_default();
        Some(Read { delivery, came_at, held_since: None, data })
    }

    /// Of datagrams room for a whole one, or none: a transfer cuts all its messages alike.
    fn writable(&mut self, _flow: FlowId) -> Bytes {
        if self.life.is_closing {
            return Bytes::ZERO;
        }
        let room = self.engine.writable(ONLY);
        let whole = self.engine.largest_message(ONLY).unwrap_or(Bytes::ZERO);
        if room < whole { Bytes::ZERO } else { room }
    }

    fn flush(&mut self, _flow: FlowId, side: Side, taps: &mut FlowTaps, now: Instant) {
        let mut tap = taps.written_by(side);
        loop {
            let now = Channel::now(self, now);
            let Some(transmit) = self.engine.poll_transmit(now) else { break };
            if let Packet::Quic(packet) = transmit.packet {
                self.send(&packet, transmit.ecn, tap.as_deref_mut());
            }
        }
        // What expired may leave nothing to send.
        self.take_send_events(tap.as_deref_mut());
        self.leave(tap);
    }

    fn poll_dropped(&mut self, _flow: FlowId) -> Option<(u64, DropCause)> {
        loop {
            let data = self.engine.poll_dropped_bytes()?;
            let seq = self.incoming.number_in(&self.spec, &data, self.arrived.unwrap_or(self.now));
            if let Some(seq) = seq {
                return Some((seq, DropCause::SocketBuffer));
            }
        }
    }

    fn poll_timeout(&self) -> Instant {
        [self.life.poll_timeout(), self.engine.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Instant::MAX)
    }

    fn observe(&self) -> Observation {
        self.engine.observe(ONLY)
    }
}

impl HostChannel for QuicChannel {
    fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
    }

    fn token(&self) -> Option<u32> {
        Some(self.outgoing.token())
    }

    fn set_route(&mut self, route: UdpRoute) {
        (self.route, self.ecn) = (Some(route), None);
    }

    fn note_packets(&mut self, notes: Arc<PacketNotes>) {
        self.notes = Some(notes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.life.asks(now) {
            self.engine.open(self.now);
        }
        self.life.give_up(now, MIN_PATIENCE, NO_ANSWER);
        if let Some(deadline) = self.engine.poll_timeout().filter(|deadline| *deadline <= self.now) {
            self.lateness.record_unsigned(now.since(deadline));
            self.engine.handle_timeout(self.now);
        }
    }

    fn handle_datagram(&mut self, datagram: &Received<'_>, _wants_data: bool) -> bool {
        // A registration's answer is no packet, though its first octet could be one's (RFC 9000 §17.3).
        if datagram.payload == registered(self.outgoing.token()) {
            return false;
        }
        let stamp = self.clock.stamped(datagram.stamp_ns);
        self.headers.note_datagram(datagram);
        self.now = self.now.max(stamp);
        self.arrived = Some(stamp);
        let packet = QuicPacket { bytes: datagram.payload.to_vec(), pieces: Vec::new() };
        self.engine.handle_packet(&packet, datagram.ecn(), self.now);
        true
    }

    fn discard(&mut self) {
        while self.engine.poll_dropped_bytes().is_some() {}
        while self.engine.read_bytes(Bytes::MAX).is_some() {}
    }

    fn finish_turn(&mut self, _has_read_all: bool, is_finished: bool) {
        self.arrived = None;
        self.life.note_open(self.engine.is_open());
        self.notice_end(is_finished);
    }

    /// The client sends its close once; nobody answers it (RFC 9000 §10.2).
    fn close(&mut self, _has_written_all: bool) -> bool {
        self.life.is_closing = true;
        if self.life.is_client {
            let now = self.clock.now();
            self.now = self.now.max(now);
            self.engine.close(self.now);
        }
        true
    }

    fn was_open(&self) -> bool {
        self.life.was_open()
    }

    fn lateness(&self) -> Option<&Histogram> {
        Some(&self.lateness)
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
        self.incoming.paid_rows()
    }

    fn count(&self, totals: &mut EndTotals) {
        let counters = self.engine.counters(ONLY);
        totals.data_packets = Some(counters.data_packets);
        totals.retransmissions = Some(counters.retransmissions);
        totals.timeouts = counters.timeouts;
        totals.takes_marks = Some(self.ecn != Some(Ecn::NotEct));
        totals.marked = Some(counters.ecn.marked);
        totals.headers = self.headers.figures(self.route.as_ref().and_then(UdpRoute::path_mtu));
        totals.refusals.clone_from(&self.refusals);
        totals.unsent.clone_from(&self.unsent);
        totals.cc = Some(self.cc.name().to_owned());
    }

    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)> {
        if occasion != Occasion::Turn {
            return None;
        }
        self.sampling.note(self.engine.observe(ONLY), self.now)
    }

    fn take_failure(&mut self) -> Option<String> {
        self.life.take_failure()
    }
}

impl QuicChannel {
    /// An end of the connection that `spec` describes, whose messages are numbered below `bound`; its state
    /// is noted every `interval`, and sending stops at `stop`.
    pub(super) fn new(
        (flow, spec): (&FlowSpec, &QuicSpec),
        place: &EndPlace,
        bound: u64,
        (interval, stop): (Duration, Instant),
        common: &EndContext,
    ) -> Self {
        let keys = place.quic_keys.unwrap_or(HostKeys::Seeded { is_client: place.is_client });
        let window = receive_window(flow.is_clocked());
        let engine = End::on_host(&spec.setup(place.is_sender, place.seed), keys, window);
        Self {
            spec: flow.clone(),
            carry: spec.carry(),
            cc: spec.cc(),
            engine: engine.unwrap_or_else(|why| unreachable!("nothing of it comes from outside: {why}")),
            clock: common.clock,
            is_sender: place.is_sender,
            life: Lifecycle::new(place.is_client, (Instant::from_nanos(flow.start_ns), stop)),
            route: None,
            ecn: None,
            train: Train::new(place.has_trains && !flow.is_clocked()),
            leaving: Vec::new(),
            packets: 0,
            notes: None,
            outgoing: Outgoing::new(place),
            incoming: Incoming::new(flow, place, bound, common),
            headers: HeaderCount::new(),
            now: Instant::ZERO,
            arrived: None,
            piece: Data::new(),
            sent: 0,
            received: 0,
            refusals: BTreeMap::new(),
            unsent: BTreeMap::new(),
            lateness: Histogram::new(),
            sampling: Sampling::new(interval),
        }
    }

    /// Whether nothing waits to be sent.
    fn is_empty(&self) -> bool {
        self.engine.send_buffer(ONLY) == Bytes::ZERO
    }

    /// The next `size` bytes of one stream for all messages: of the file, if there is one.
    fn stream_bytes(&self, size: Bytes) -> Data {
        let size = usize::try_from(size.get()).unwrap_or(usize::MAX);
        match self.spec.file.as_ref().filter(|_| self.is_sender) {
            Some(file) => {
                let sent = usize::try_from(self.sent).unwrap_or(usize::MAX);
                let rest = file.content.get(sent..).unwrap_or_default();
                Data::copy_from_slice(&rest[..size.min(rest.len())])
            }
            None => {
                let filling = outgoing();
                Data::from_static(&filling[..size.min(filling.len())])
            }
        }
    }

    /// Sends a packet, or has it leave with the train. One that the kernel will not take is lost on this
    /// host, as on a full queue of any other.
    fn send(&mut self, packet: &QuicPacket, ecn: Ecn, mut tap: Option<&mut LegTap>) {
        if self.ecn != Some(ecn) {
            self.leave(tap.as_deref_mut());
            self.mark(ecn);
        }
        let number = self.packets;
        self.packets += 1;
        self.take_send_events(tap.as_deref_mut());
        if let Some(notes) = self.notes.as_ref().filter(|_| !packet.pieces.is_empty()) {
            notes.note(&packet.bytes, packet.pieces.iter().map(|piece| piece.seq).collect());
        }
        let result = match &self.route {
            Some(route) if self.train.takes(packet.bytes.len() as u64) => {
                self.train.push(number, &packet.bytes, route);
                Ok(())
            }
            Some(route) => route.send(&packet.bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        if let Err(why) = result {
            *self.unsent.entry(why.to_string()).or_default() += 1;
            self.lose(&BTreeSet::from([number]), tap);
        }
    }

    /// What the engine says of messages: those that left did so with the packet that comes next.
    fn take_send_events(&mut self, mut tap: Option<&mut LegTap>) {
        while let Some(event) = self.engine.poll_send_event(ONLY) {
            match event {
                SendEvent::Sent(range) => {
                    self.leaving.push((self.packets.saturating_sub(1), range, self.now));
                }
                SendEvent::Expired { seq } => {
                    self.sent = self.sent.saturating_sub(1);
                    if let Some(tap) = &mut tap {
                        tap.on_expired(seq);
                    }
                }
            }
        }
    }

    /// All that waits in the train leaves, and what left in this turn is noted.
    fn leave(&mut self, mut tap: Option<&mut LegTap>) {
        let Some(route) = &self.route else { return };
        self.train.leave(route);
        let mut refused = BTreeSet::new();
        for (number, why) in self.train.take_refused() {
            *self.unsent.entry(why).or_default() += 1;
            refused.insert(number);
        }
        self.lose(&refused, tap.as_deref_mut());
        let Some(tap) = tap else { return self.leaving.clear() };
        for (_, range, left) in self.leaving.drain(..) {
            match range {
                PayloadRange::Message { seq } => tap.on_wire(seq, left),
                PayloadRange::Stream { start, end } => tap.on_wire_stream(start, end, left),
            }
        }
    }

    /// The packets of these numbers did not leave: their datagrams are lost. Streams are sent again.
    fn lose(&mut self, numbers: &BTreeSet<u64>, mut tap: Option<&mut LegTap>) {
        if numbers.is_empty() {
            return;
        }
        let is_datagram = self.carry == Carry::Datagram;
        let mut unsent = 0;
        self.leaving.retain(|(number, range, _)| {
            let is_lost = numbers.contains(number);
            if is_lost
                && is_datagram
                && let PayloadRange::Message { seq } = range
            {
                unsent += 1;
                if let Some(tap) = &mut tap {
                    tap.on_unsent(*seq);
                }
            }
            !is_lost
        });
        // Nobody waits for what did not leave.
        self.sent = self.sent.saturating_sub(unsent);
    }

    /// From now on datagrams leave with `ecn`.
    fn mark(&mut self, ecn: Ecn) {
        let Some(route) = &mut self.route else { return };
        self.ecn = Some(ecn);
        let tos = self.spec.tos_with(ecn == Ecn::Ect0).unwrap_or(0);
        match &mut route.unconnected {
            Some(unconnected) => unconnected.tos = Some(tos),
            None => {
                let is_v6 = route.socket.local_addr().is_ok_and(|address| address.is_ipv6());
                // If the system does not let it, the path takes no marks; the engine finds that out.
                let _ = set_tos(route.socket.as_fd(), is_v6, tos);
            }
        }
    }

    /// A connection that ends while it is wanted has failed.
    fn notice_end(&mut self, is_finished: bool) {
        let Some(why) = self.engine.lost() else { return };
        let is_orderly = self.life.is_closing || (self.engine.was_closed_by_peer() && is_finished);
        if !is_orderly {
            // The far end may have written it.
            self.life.fail(format!("the QUIC connection was lost: {}", few_words(why)));
        }
    }
}

/// The flow, as the engine counts those of a connection.
const ONLY: usize = 0;
/// Of a file's piece.
const FILE_HEADER: usize = crate::wire::FILE_HEADER as usize;
/// A client's first packets leave after 0, 1 and 3 s (RFC 9002 §6.2.2: a round trip of 333 ms is assumed): if
/// three find no answer, there is none.
const MIN_PATIENCE: Duration = Duration::from_secs(3);
const NO_ANSWER: &str = "the QUIC connection did not open: no answer to its first packets";

#[cfg(test)]
mod tests;
