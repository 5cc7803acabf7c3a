//! A flow's channel over one of our own protocols, such as DCCP (RFC 4340). Each packet is in a UDP datagram
//! (RFC 6773) of the flow's own sockets.
//!
//! ```text
//!  write ─► state machine ─► flush: encode ─► datagram    driven by: the pacer, at the machine's deadlines;
//!  read  ◄─ state machine ◄──────── decode ◄─ datagram    the receiving thread, with what arrives
//! ```
//!
//! A packet arrives at the time of the kernel's receive stamp, so that a late thread of this host makes no
//! round trip longer. The machine's time never goes back, so a stamp before that time counts as that time.
//! The client opens and closes the connection, and the server answers.
//!
//! RFC 6773 leaves the packet's header unchanged. Its checksum is zero, because the checksum of UDP covers
//! the whole packet (§3.3). The ports in the packet are the connection's own. The arena decides which UDP
//! ports carry the packets, and not port 6511 (§5.1 allows that).
//!
//! Left out: ECN, because the sockets neither set nor read the ECN field, so the machine takes the packets
//! for not ECN-capable. Left out as well: the smaller MTU that ICMP may report, because the scenario gives
//! the MTU.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use talkpath_config::{EncapsulatedKind, Role};
use talkpath_flow::{Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_measure::{DropCause, LegTap};
use talkpath_units::{Bytes, Duration, Ecn, Histogram, Instant};
use talkpath_wire::carrier::{Carrier, Ports};
use talkpath_wire::encapsulated::{DecodedPacket, decode};
use talkpath_wire::machine::{Machine, Silence};
use talkpath_wire::{Delivery, Observation, Packet, PayloadRange, Refused, Transmit};

use super::channel::{HostChannel, Occasion};
use super::headers::HeaderCount;
use super::lifecycle::Lifecycle;
use super::messages::{Incoming, Outgoing};
use super::route::{SendFailure, UdpRoute};
use super::sampling::Sampling;
use super::setup::ChannelSetup;
use crate::clock::RunClock;
use crate::log::EndTotals;
use crate::progress::EndProgress;
use crate::spec::{EncapsulatedSpec, FlowSpec};
use crate::sys::Received;
use crate::wire::FILE_HEADER;

/// The message number of data that is no message of this flow.
const UNKNOWN: u64 = u64::MAX;
/// The first port of clients, which is a dynamic port (RFC 6335 §6). Captures of simulated runs have the same
/// ports.
const CLIENT_PORTS: u16 = 49_152;
const SERVER_PORT: u16 = crate::ports::DEFAULT_PORT;

/// The channel of a flow over one of our own protocols.
pub(super) struct EncapsulatedChannel {
    spec: FlowSpec,
    kind: EncapsulatedKind,
    machine: Box<dyn Machine + Send>,
    clock: RunClock,
    life: Lifecycle,
    /// When the client began to open the connection, and when the connection was open.
    handshake: (Option<Instant>, Option<Instant>),
    route: Option<UdpRoute>,
    /// The ports in the packets of this end.
    ports: Ports,
    outgoing: Outgoing,
    incoming: Incoming,
    headers: HeaderCount,
    encoded: Vec<u8>,
    /// The machine's time. It never goes back, although a receive stamp may lie before a timer that has
    /// fired.
    now: Instant,
    /// When the packet came whose messages are being read.
    arrived: Option<Instant>,
    /// The pieces of a file that have arrived and are not read yet, with their message numbers.
    unread: VecDeque<(u64, Vec<u8>)>,
    /// The piece of a file that was read last.
    piece: Vec<u8>,
    /// The number of messages that the kernel took.
    sent: u64,
    /// The number of messages that the machine refused, for each reason.
    refusals: BTreeMap<String, u64>,
    /// The number of packets that did not leave, for each text of the system's errors.
    unsent: BTreeMap<String, u64>,
    /// How late the machine's timers fired.
    lateness: Histogram,
    sampling: Sampling,
}

impl Channel for EncapsulatedChannel {
    /// The number of messages that a flow writes before another flow gets its turn. We chose 64, which take
    /// some 200 us of system calls.
    const MAX_TURN: usize = 64;

    /// Returns the time now on the machine's clock.
    fn now(&mut self, _began: Instant) -> Instant {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    fn is_open(&self) -> bool {
        let is_over = self.life.is_broken() && self.spec.is_clocked();
        !self.life.is_closing && (self.machine.is_open() || is_over)
    }

    fn write(&mut self, write: &Write, now: Instant) -> WriteOutcome {
        if self.life.is_broken() {
            return WriteOutcome::NotOpen;
        }
        match self.machine.handle_message(write.message, now) {
            Ok(()) => WriteOutcome::Taken(write.message.size),
            Err(Refused::NoRoom) => WriteOutcome::NoRoom,
            Err(why) => {
                *self.refusals.entry(why.to_string()).or_default() += 1;
                WriteOutcome::Refused
            }
        }
    }

    fn read(&mut self, _flow: FlowId, limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        loop {
            let Delivery::Message { seq, size } = self.machine.poll_delivery(limit, self.now)? else {
                return None;
            };
            if seq == UNKNOWN {
                continue;
            }
            self.piece.clear();
            while let Some((number, data)) = self.unread.pop_front() {
                if number == seq {
                    self.piece = data;
                    break;
                }
            }
            self.incoming.note(seq);
            let data = self.piece.get(FILE_HEADER as usize..).unwrap_or_default();
            let delivery = Delivery::Message { seq, size };
            return Some(Read { delivery, came_at: self.arrived, held_since: None, begun: &[], data });
        }
    }

    fn writable(&mut self, _flow: FlowId) -> Bytes {
        if !self.life.is_closing && self.machine.is_open() { self.machine.writable() } else { Bytes::ZERO }
    }

    fn flush(&mut self, _flow: FlowId, side: Side, taps: &mut FlowTaps, now: Instant) {
        let mut tap = taps.written_by(side);
        while let Some(seq) = self.machine.poll_discarded() {
            if let Some(tap) = &mut tap {
                tap.on_dropped(seq, DropCause::SendQueue);
            }
        }
        loop {
            let now = Channel::now(self, now);
            let Some(transmit) = self.machine.poll_transmit(now) else { return };
            self.send(&transmit, tap.as_deref_mut(), now);
        }
    }

    fn poll_dropped(&mut self, _flow: FlowId) -> Option<(u64, DropCause)> {
        Some((self.machine.poll_dropped()?, DropCause::SocketBuffer))
    }

    fn poll_timeout(&self) -> Instant {
        [self.life.poll_timeout(), self.machine.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Instant::MAX)
    }

    fn observe(&self) -> Observation {
        self.machine.observe()
    }
}

impl HostChannel for EncapsulatedChannel {
    fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.life.take_opening(now) {
            self.machine.open(self.now);
            self.handshake.0 = Some(self.now);
        }
        let Silence { patience, why } = self.machine.silence();
        self.life.give_up(now, patience, || why.to_owned());
        if let Some(deadline) = self.machine.poll_timeout().filter(|deadline| *deadline <= self.now) {
            self.lateness.record_unsigned(now.since(deadline));
            self.machine.handle_timeout(self.now);
        }
    }

    fn discard(&mut self) {
        while self.machine.poll_dropped().is_some() {}
        while self.machine.poll_delivery(Bytes::MAX, self.now).is_some() {}
    }

    fn was_open(&self) -> bool {
        self.life.was_open()
    }

    fn progress(&self, has_written: bool, is_over: bool) -> EndProgress {
        let is_done = (has_written && self.is_empty()) || (is_over && !self.life.was_open());
        EndProgress { is_done, sent: self.sent, received: self.incoming.unique() }
    }

    fn paid_rows(&self) -> u64 {
        self.incoming.paid_rows()
    }

    fn count(&self, totals: &mut EndTotals) {
        let counters = self.machine.counters();
        totals.data_packets = Some(counters.data_packets);
        totals.timeouts = counters.timeouts;
        totals.held = counters.held.into();
        // ECN is left out: see the documentation of this module.
        totals.takes_marks = Some(false);
        totals.headers = self.headers.figures(self.route.as_ref().and_then(UdpRoute::path_mtu));
        totals.refusals.clone_from(&self.refusals);
        totals.gap_ns = self.incoming.gap().map(Duration::as_nanos);
        totals.unsent.clone_from(&self.unsent);
        let (begun, open) = self.handshake;
        totals.handshake_ns = begun.zip(open).map(|(begun, open)| open.since(begun).as_nanos());
    }

    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)> {
        if occasion != Occasion::Turn {
            return None;
        }
        // The far end of our own protocols announces no receive window.
        self.sampling.note(Observation { window: None, ..self.machine.observe() }, self.now)
    }

    fn take_failure(&mut self) -> Option<String> {
        self.life.take_failure()
    }

    fn token(&self) -> Option<u32> {
        Some(self.outgoing.token())
    }

    fn set_route(&mut self, route: UdpRoute) {
        self.route = Some(route);
    }

    fn handle_datagram(&mut self, datagram: &Received<'_>, wants_data: bool) -> bool {
        // Another payload, such as the answer to a registration, is no packet of this connection.
        let Some(decoded) = decode(self.kind, datagram.payload) else { return false };
        let DecodedPacket { mut packet, ports: Ports { source, destination }, data } = decoded;
        if (destination, source) != (self.ports.source, self.ports.destination) {
            return false;
        }
        let stamp = self.clock.stamped(datagram.stamp_ns);
        self.headers.note_datagram(datagram);
        if !data.is_empty() {
            let number = self.incoming.number_in(&self.spec, data, stamp);
            packet.set_message(number.unwrap_or(UNKNOWN));
            // Data that is no message of this flow is not kept, because it is never read.
            if let Some(number) = number.filter(|_| wants_data) {
                self.unread.push_back((number, data.to_vec()));
            }
        }
        self.now = self.now.max(stamp);
        self.arrived = Some(stamp);
        self.machine.handle_packet(&Packet::Encapsulated(packet), Ecn::NotEct, self.now);
        true
    }

    fn finish_turn(&mut self, has_read_all: bool, is_finished: bool) {
        self.arrived = None;
        if self.machine.is_open() {
            self.handshake.1.get_or_insert(self.now);
        }
        self.life.note_open(self.is_open());
        if has_read_all {
            // The application has read all messages. The pieces that are left belong to duplicates.
            self.unread.clear();
        }
        self.notice_end(is_finished);
    }

    fn close(&mut self, has_written_all: bool) -> bool {
        self.life.is_closing = true;
        if has_written_all && self.is_empty() {
            let now = self.clock.now();
            self.now = self.now.max(now);
            self.machine.close(self.now);
        }
        true
    }

    /// Returns true if the close is complete. An end with messages left does not close the connection, so
    /// there is nothing to wait for in that case either.
    fn is_closed(&self, has_written_all: bool) -> bool {
        self.machine.is_over() || !self.is_empty() || !has_written_all
    }

    fn lateness(&self) -> Option<&Histogram> {
        Some(&self.lateness)
    }
}

impl EncapsulatedChannel {
    /// Makes an end of the connection. `spec` is the flow's transport.
    pub(super) fn new(setup: &ChannelSetup<'_>, spec: &EncapsulatedSpec) -> Self {
        let ChannelSetup { flow, place, bound, common, .. } = *setup;
        let role = if place.is_client { Role::Active } else { Role::Passive };
        let receive_buffer = spec.receive_buffer().filter(|_| !place.is_sender);
        let client = CLIENT_PORTS + ((place.index + 1) % (1 << 14)) as u16;
        let (source, destination) =
            if place.is_client { (client, SERVER_PORT) } else { (SERVER_PORT, client) };
        Self {
            spec: flow.clone(),
            kind: spec.kind(),
            machine: common.machines.make(spec.config(), role, spec.mtu(), place.seed, receive_buffer),
            clock: common.clock,
            life: Lifecycle::new(place.is_client, Instant::from_nanos(flow.start_ns), setup.session.stop()),
            handshake: (None, None),
            route: None,
            ports: Ports { source, destination },
            outgoing: Outgoing::new(place),
            incoming: Incoming::new(flow, place, bound, common),
            headers: HeaderCount::new(),
            encoded: Vec::new(),
            now: Instant::ZERO,
            arrived: None,
            unread: VecDeque::new(),
            piece: Vec::new(),
            sent: 0,
            refusals: BTreeMap::new(),
            unsent: BTreeMap::new(),
            lateness: Histogram::new(),
            sampling: Sampling::new(setup.sample_interval()),
        }
    }

    /// Returns true if no message waits to be sent or acknowledged.
    fn is_empty(&self) -> bool {
        self.machine.observe().send_buffer == Bytes::ZERO
    }

    /// Sends a packet. A packet that the kernel does not take counts as lost on this host, as if a full queue
    /// had dropped it.
    fn send(&mut self, transmit: &Transmit, tap: Option<&mut LegTap>, now: Instant) {
        let Packet::Encapsulated(packet) = &transmit.packet else { return };
        let data = match packet.payload() {
            0 => &[],
            size => self.outgoing.fill(&self.spec, u64::from(size), packet.message()),
        };
        self.encoded.clear();
        packet.encode(self.ports, data, Carrier::Udp, &mut self.encoded);
        let unconnected = || Err(io::ErrorKind::NotConnected.into());
        let result = self.route.as_ref().map_or_else(unconnected, |route| route.send(&self.encoded));
        if let Err(why) = &result {
            *self.unsent.entry(why.to_string()).or_default() += 1;
        }
        let Some(PayloadRange::Message { seq }) = transmit.payload else { return };
        self.sent += u64::from(result.is_ok());
        match (result, tap) {
            (Ok(()), Some(tap)) => tap.on_wire(seq, now),
            (Err(why), Some(tap)) if SendFailure::of(&why) == SendFailure::NoNetwork => {
                tap.on_no_network(seq);
            }
            (Err(_), Some(tap)) => tap.on_unsent(seq),
            (_, None) => {}
        }
    }

    /// Notes a failure if the connection has ended while the flow still needs it.
    fn notice_end(&mut self, is_finished: bool) {
        if self.life.is_closing {
            return;
        }
        let Some(ending) = self.machine.ending() else { return };
        let is_orderly = ending.is_close && is_finished;
        if !is_orderly {
            self.life.fail(ending.why);
        }
    }
}

#[cfg(test)]
mod tests;
