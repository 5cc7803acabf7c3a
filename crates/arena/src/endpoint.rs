//! One end of a flow: an application on a transport, with taps.
//!
//! ```text
//!  workload ─► backlog ─► transport ─► poll_transmit          near end: a workload, and a reader where there is an echo
//!  reader  ◄────────────  transport ◄─ handle_packet          far end: a reader, and a writer where there is an echo
//!     └─ echo ─► backlog
//! ```
//!
//! The backlog is the application's own: a message that a stream has no room for waits there with its due time, so that
//! a blocked sender cannot hide its delay. It is written when the transport becomes writable again.
//!
//! The order within one step is the transport contract's: what an input released leaves first, then the application
//! reads, then it writes, and so on until nothing moves.

use std::collections::VecDeque;

use talkpath_measure::{DropCause, LegTap};
use talkpath_scenario::workload::{AnyWorkload, Workload};
use talkpath_scenario::{EchoWrite, Receiver};
use talkpath_transport::{
    AnyTransport, Counters, Delivery, Ecn, Message, Observation, Packet, PayloadRange, Refused, Transmit,
    Transport,
};
use talkpath_units::{Bytes, Duration, Instant};

/// The taps of one flow: both ends write to them.
#[derive(Clone, Debug, Default)]
pub struct FlowTaps {
    /// Messages on their way out.
    pub forward: LegTap,
    /// Echoes on their way back; `None` without echo.
    pub echo: Option<LegTap>,
}

impl FlowTaps {
    /// Messages and echoes that are neither delivered nor known to be dropped nor refused.
    pub fn pending(&self) -> u64 {
        self.forward.pending() + self.echo.as_ref().map_or(0, LegTap::pending)
    }
}

/// Which end of its flow an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the workload is.
    Near,
    /// Where the messages go.
    Far,
}

/// An application on a transport.
pub struct Endpoint {
    side: Side,
    transport: AnyTransport,
    is_stream: bool,
    workload: Option<AnyWorkload>,
    workload_open: bool,
    echo: Option<EchoWrite>,
    /// Messages that the application wants to write and the transport had no room for.
    backlog: VecDeque<Message>,
    receiver: Receiver,
    reading_again_at: Instant,
    blocked_since: Option<Instant>,
    blocked: Duration,
    /// Blocked time counts inside this window only.
    window: (Instant, Instant),
}

impl Endpoint {
    /// The end that sends: its workload begins when the transport is open.
    pub fn near(transport: AnyTransport, workload: AnyWorkload, window: (Instant, Instant)) -> Self {
        Self::new(Side::Near, transport, Some(workload), None, Receiver::default(), window)
    }

    /// The end that reads, and writes everything back where `echo` is given.
    pub fn far(
        transport: AnyTransport,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: (Instant, Instant),
    ) -> Self {
        Self::new(Side::Far, transport, None, echo, receiver, window)
    }

    fn new(
        side: Side,
        transport: AnyTransport,
        workload: Option<AnyWorkload>,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: (Instant, Instant),
    ) -> Self {
        let is_stream = transport.is_stream();
        Self {
            side,
            transport,
            is_stream,
            workload,
            workload_open: false,
            echo,
            backlog: VecDeque::new(),
            receiver,
            reading_again_at: Instant::ZERO,
            blocked_since: None,
            blocked: Duration::ZERO,
            window,
        }
    }

    /// Begins to connect.
    pub fn open(&mut self, now: Instant) {
        self.transport.open(now);
    }

    /// A packet has arrived; call [`Endpoint::advance`] after it.
    pub fn handle_packet(&mut self, packet: Packet, ecn: Ecn, now: Instant) {
        self.transport.handle_packet(packet, ecn, now);
    }

    /// When [`Endpoint::handle_timeout`] wants to be called, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let reading = (!self.receiver.service.is_zero() && self.reading_again_at > Instant::ZERO)
            .then_some(self.reading_again_at);
        let workload = match &self.workload {
            Some(workload) if self.workload_open => workload.poll_timeout(),
            _ => None,
        };
        [self.transport.poll_timeout(), workload, reading].into_iter().flatten().min()
    }

    /// The deadline has come; call [`Endpoint::advance`] after it.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.transport.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.transport.handle_timeout(now);
        }
    }

    /// Moves everything that can move at `now`, giving each packet to `transmit`.
    pub fn advance(&mut self, taps: &mut FlowTaps, now: Instant, mut transmit: impl FnMut(Transmit)) {
        loop {
            self.transmit_all(taps, now, &mut transmit);
            let read = self.read(taps, now);
            let wrote = self.write(taps, now);
            if !read && !wrote {
                break;
            }
        }
        self.account_blocking(now);
    }

    /// The transport's state, for the series.
    pub fn observe(&self) -> Observation {
        self.transport.observe()
    }

    /// What the transport counted.
    pub fn counters(&self) -> Counters {
        self.transport.counters()
    }

    /// Time inside the window during which the application had a message and the transport no room, up to `now`.
    pub fn blocked(&mut self, now: Instant) -> Duration {
        if let Some(since) = self.blocked_since.replace(now) {
            self.blocked += clipped(since, now, self.window);
        }
        self.blocked
    }

    fn transmit_all(&mut self, taps: &mut FlowTaps, now: Instant, transmit: &mut impl FnMut(Transmit)) {
        while let Some(packet) = self.transport.poll_transmit(now) {
            if let Some(tap) = taps.written_by(self.side) {
                match packet.payload {
                    Some(PayloadRange::Message { seq }) => tap.on_wire(seq, now),
                    Some(PayloadRange::Stream { start, end }) => tap.on_wire_stream(start, end, now),
                    None => {}
                }
            }
            transmit(packet);
        }
    }

    /// Reads what the application is ready for; returns whether anything was read.
    fn read(&mut self, taps: &mut FlowTaps, now: Instant) -> bool {
        let slow = !self.receiver.service.is_zero();
        if slow && now < self.reading_again_at {
            return false;
        }
        self.reading_again_at = Instant::ZERO;
        let mut any = false;
        loop {
            while let Some(seq) = self.transport.poll_dropped() {
                if let Some(tap) = taps.read_by(self.side) {
                    tap.on_dropped(seq, DropCause::SocketBuffer);
                }
            }
            let Some(tap) = taps.read_by(self.side) else { break };
            let limit = if slow && self.is_stream { tap.until_next_message() } else { Bytes::MAX };
            let Some(delivery) = self.transport.poll_delivery(limit, now) else { break };
            any = true;
            let whole_messages = match delivery {
                Delivery::Message { seq, size } => {
                    tap.on_received(seq, now);
                    self.write_back(taps, seq, size, now);
                    1
                }
                Delivery::Stream { bytes } => {
                    let completed = tap.on_read(bytes, now);
                    for position in completed.clone() {
                        let message = taps.read_by(self.side).and_then(|tap| tap.accepted_message(position));
                        if let Some((seq, size)) = message {
                            self.write_back(taps, seq, size, now);
                        }
                    }
                    completed.len()
                }
            };
            if slow && whole_messages > 0 {
                self.reading_again_at = now + self.receiver.service;
                break;
            }
        }
        any
    }

    fn write_back(&mut self, taps: &mut FlowTaps, seq: u64, size: Bytes, now: Instant) {
        if self.echo.is_some()
            && let Some(tap) = &mut taps.echo
        {
            tap.on_due(seq, size, now);
            self.backlog.push_back(Message { seq, size, due: now });
        }
    }

    /// Writes what is due and fits; returns whether anything was written.
    fn write(&mut self, taps: &mut FlowTaps, now: Instant) -> bool {
        if !self.transport.is_open() {
            return false;
        }
        let mut any = self.write_backlog(taps, now);
        let Some(workload) = &mut self.workload else { return any };
        if !self.workload_open {
            workload.open(now);
            self.workload_open = true;
        }
        // While older messages wait there is no room for newer ones.
        while let Some(message) = self.workload.as_mut().and_then(|workload| {
            let room = if self.backlog.is_empty() { self.transport.writable() } else { Bytes::ZERO };
            workload.poll_message(room, now)
        }) {
            taps.forward.on_due(message.seq, message.size, message.due);
            self.backlog.push_back(message);
            any |= self.write_backlog(taps, now);
        }
        any
    }

    fn write_backlog(&mut self, taps: &mut FlowTaps, now: Instant) -> bool {
        let mut any = false;
        while let Some(&first) = self.backlog.front() {
            let (count, write) = self.next_write(first);
            let outcome = self.transport.handle_message(write, now);
            if outcome == Err(Refused::NoRoom) {
                break;
            }
            any = true;
            for message in self.backlog.drain(..count) {
                let Some(tap) = taps.written_by(self.side) else { continue };
                match outcome {
                    Ok(()) if self.is_stream => tap.on_sent_stream(message.seq, now),
                    Ok(()) => tap.on_sent(message.seq, now),
                    Err(_) => tap.on_refused(message.seq),
                }
            }
        }
        any
    }

    /// The next write: one message, or for an echo per read as many waiting ones as fit, in one piece.
    fn next_write(&self, first: Message) -> (usize, Message) {
        if !(self.is_stream && self.echo == Some(EchoWrite::PerRead)) {
            return (1, first);
        }
        let room = self.transport.writable();
        let mut write = first;
        let mut count = 1;
        for message in self.backlog.iter().skip(1) {
            if write.size + message.size > room {
                break;
            }
            write.size += message.size;
            count += 1;
        }
        (count, write)
    }

    fn account_blocking(&mut self, now: Instant) {
        let greedy_waits = self.workload_open
            && self
                .workload
                .as_ref()
                .is_some_and(|workload| !workload.is_finished() && workload.poll_timeout().is_none());
        let is_blocked = !self.backlog.is_empty() || greedy_waits;
        match (self.blocked_since, is_blocked) {
            (None, true) => self.blocked_since = Some(now),
            (Some(since), false) => {
                self.blocked += clipped(since, now, self.window);
                self.blocked_since = None;
            }
            _ => {}
        }
    }
}

impl FlowTaps {
    fn written_by(&mut self, side: Side) -> Option<&mut LegTap> {
        match side {
            Side::Near => Some(&mut self.forward),
            Side::Far => self.echo.as_mut(),
        }
    }

    fn read_by(&mut self, side: Side) -> Option<&mut LegTap> {
        match side {
            Side::Near => self.echo.as_mut(),
            Side::Far => Some(&mut self.forward),
        }
    }
}

/// The part of `from..to` that lies inside `window`.
fn clipped(from: Instant, to: Instant, window: (Instant, Instant)) -> Duration {
    to.min(window.1).since(from.max(window.0))
}
