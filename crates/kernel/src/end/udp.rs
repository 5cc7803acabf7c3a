//! A flow's channel over the kernel's UDP.
//!
//! Every datagram's own send error is recorded: EAGAIN and ENOBUFS (no room), EMSGSIZE and what else the
//! kernel objects to are refusals of that message. ECONNREFUSED is no answer to the datagram being sent but
//! the news of an earlier ICMP error on a connected socket: the datagram is sent again.
//!
//! Datagrams are handed in as they arrive. A slow receiver's are not: they wait in its own socket, which
//! drops what finds no room, and are read from there when the application is ready.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use talkpath_flow::{Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_transport::{Delivery, Observation};
use talkpath_units::{Bytes, Duration, Instant};

use super::channel::{HostChannel, Occasion};
use super::messages::{Incoming, Outgoing};
use super::place::EndPlace;
use super::route::UdpRoute;
use crate::clock::RunClock;
use crate::log::{EndTotals, StateSample};
use crate::progress::EndProgress;
use crate::spec::FlowSpec;
use crate::sys::send_queue;
use crate::wire::{FILE_HEADER, MAX_UDP_PAYLOAD, read_header};

/// A UDP flow's channel.
pub(super) struct UdpChannel {
    spec: FlowSpec,
    is_sender: bool,
    is_echoing: bool,
    clock: RunClock,
    route: Option<UdpRoute>,
    /// When a sender opens; `None` once it is open, and for the end that only answers.
    opens_at: Option<Instant>,
    /// A greedy workload waits for room until then.
    retry: Option<Instant>,
    outgoing: Outgoing,
    incoming: Incoming,
    /// The message that came and was not read yet.
    arrived: Option<Arrived>,
    /// The last datagram, if somebody wants its bytes.
    buffer: Vec<u8>,
    /// The message that was read last, whose echo carries its bytes; `None` if this end does not echo.
    read_last: Option<u64>,
    /// Whether the application's reads go to the socket.
    reads_socket: bool,
    taken: u64,
    /// Why messages were refused: the system's words, and how many each.
    refusals: BTreeMap<String, u64>,
}

/// A message that came.
#[derive(Clone, Copy)]
struct Arrived {
    seq: u64,
    size: usize,
    /// When the kernel received it; `None` if that is not when it counts.
    at: Option<Instant>,
}

impl Channel for UdpChannel {
    const MAX_TURN: usize = 64;

    fn now(&mut self, _began: Instant) -> Instant {
        self.clock.now()
    }

    fn is_open(&self) -> bool {
        self.opens_at.is_none()
    }

    fn write(&mut self, write: &Write, _now: Instant) -> WriteOutcome {
        let size = write.message.size.get().min(MAX_UDP_PAYLOAD);
        let payload = match self.buffer.get(..usize::try_from(size).unwrap_or(usize::MAX)) {
            Some(read) if self.read_last == Some(write.message.seq) => read,
            _ => self.outgoing.fill(&self.spec, size, write.message.seq),
        };
        let unconnected = || Err(io::ErrorKind::NotConnected.into());
        match self.route.as_ref().map_or_else(unconnected, |route| route.send(payload)) {
            Ok(()) => {
                self.taken += 1;
                WriteOutcome::Taken(write.message.size)
            }
            Err(why) => {
                *self.refusals.entry(why.to_string()).or_default() += 1;
                WriteOutcome::Refused
            }
        }
    }

    fn read(&mut self, _flow: FlowId, _limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        let Arrived { seq, size, at } = self.arrived.take().or_else(|| self.receive())?;
        self.incoming.note(seq);
        self.read_last = self.is_echoing.then_some(seq);
        let data = self.buffer.get(FILE_HEADER as usize..size).unwrap_or_default();
        let delivery = Delivery::Message { seq, size: Bytes::new(size as u64) };
        Some(Read { delivery, came_at: at, held_since: None, data })
    }

    /// Only a greedy workload asks.
    fn writable(&mut self, _flow: FlowId) -> Bytes {
        if self.route.as_ref().is_some_and(UdpRoute::is_writable) {
            return Bytes::new(MAX_UDP_PAYLOAD);
        }
        self.retry = Some(self.clock.now().saturating_add(RETRY));
        Bytes::ZERO
    }

    fn flush(&mut self, _flow: FlowId, _side: Side, _taps: &mut FlowTaps, _now: Instant) {}

    fn poll_timeout(&self) -> Instant {
        self.opens_at.or(self.retry).unwrap_or(Instant::MAX)
    }

    /// What of the datagrams the socket still holds.
    fn observe(&self) -> Observation {
        let queued = self.route.as_ref().and_then(|route| send_queue(route.socket.as_fd()).ok());
        Observation { send_buffer: Bytes::new(queued.unwrap_or(0)), ..Observation::default() }
    }
}

impl HostChannel for UdpChannel {
    fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
    }

    fn token(&self) -> Option<u32> {
        Some(self.outgoing.token())
    }

    fn set_route(&mut self, route: UdpRoute) {
        self.route = Some(route);
    }

    fn read_from(&mut self, route: UdpRoute) {
        self.route = Some(route);
        self.reads_socket = true;
        self.buffer = vec![0; MAX_DATAGRAM];
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.retry = None;
        if self.opens_at.is_some_and(|at| at <= now) {
            self.opens_at = None;
        }
    }

    fn handle_datagram(&mut self, payload: &[u8], stamp_ns: Option<i64>, _wants_data: bool) -> bool {
        let Some(seq) = self.incoming.number(&self.spec, payload) else { return false };
        if self.is_echoing || self.spec.file.is_some() {
            payload.clone_into(&mut self.buffer);
        }
        self.arrived = Some(Arrived { seq, size: payload.len(), at: Some(self.clock.stamped(stamp_ns)) });
        true
    }

    fn take_unread(&mut self) -> Vec<u64> {
        let mut unread = Vec::new();
        while let Some(arrived) = self.receive() {
            self.incoming.expect_after(arrived.seq);
            unread.push(arrived.seq);
        }
        unread
    }

    fn read_sent(&self, packet: &[u8], stamp_ns: Option<i64>) -> Option<(u64, Instant)> {
        let size = usize::try_from(self.spec.constant_size()?).ok()?;
        let payload = packet.get(packet.len().checked_sub(size)?..)?;
        let seq = read_header(payload, self.outgoing.token(), self.taken)?;
        Some((seq, self.clock.stamped(Some(stamp_ns?))))
    }

    fn progress(&self, has_written: bool, _is_over: bool) -> EndProgress {
        EndProgress { is_done: has_written, sent: self.taken, received: self.incoming.unique() }
    }

    fn count(&self, totals: &mut EndTotals) {
        totals.data_packets = Some(self.taken);
        totals.refusals.clone_from(&self.refusals);
    }

    fn was_open(&self) -> bool {
        self.is_open()
    }

    /// What the socket still holds of what a sender without a clock gave it.
    fn sample(&mut self, occasion: Occasion) -> Option<StateSample> {
        (occasion == Occasion::Timeout && self.is_sender && !self.spec.is_clocked())
            .then(|| StateSample::of(&self.observe(), self.clock.now()))
    }
}

impl UdpChannel {
    pub(super) fn new(spec: &FlowSpec, place: &EndPlace, bound: u64, clock: RunClock) -> Self {
        Self {
            spec: spec.clone(),
            is_sender: place.is_sender,
            clock,
            route: None,
            opens_at: place.is_sender.then_some(Instant::from_nanos(spec.start_ns)),
            retry: None,
            outgoing: Outgoing::new(place.token),
            incoming: Incoming::new(place.token, bound),
            arrived: None,
            buffer: Vec::new(),
            read_last: None,
            is_echoing: !place.is_sender && spec.echo_per_read.is_some(),
            reads_socket: false,
            taken: 0,
            refusals: BTreeMap::new(),
        }
    }

    /// The next message that waits in the socket, if this end reads it by itself.
    fn receive(&mut self) -> Option<Arrived> {
        let route = self.route.as_ref().filter(|_| self.reads_socket)?;
        loop {
            match route.socket.recv(&mut self.buffer) {
                Ok(size) => {
                    if let Some(seq) = self.incoming.number(&self.spec, &self.buffer[..size]) {
                        return Some(Arrived { seq, size, at: None });
                    }
                }
                // The news of something sent before.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// How soon a greedy sender looks again whether the socket has room (chosen: the time of two full packets at
/// 100 Mbps).
const RETRY: Duration = Duration::from_micros(250);
/// No datagram is larger (RFC 768: a length of 16 bit).
const MAX_DATAGRAM: usize = 65_536;
