//! The application of one end: its writer, its reader and its echo, on whatever transport it is given.
//!
//! The backlog is the application's own: a message that a stream has no room for waits there with its due time, so that
//! a blocked sender cannot hide its delay. It is written when the transport becomes writable again.
//!
//! The order within one step is the transport contract's: what an input released leaves first, then the application
//! reads, then it writes, and so on until nothing moves. Each write is an input of its own: what it releases leaves
//! before the next write, which is why an echo of three writes meets Nagle's algorithm otherwise than one write of all.
//!
//! A sleeping application may take a while to wake up when something comes (`wake_up`): whatever comes meanwhile is processed by
//! the transport before the application reads and writes, which decides what Nagle's algorithm finds in flight. It may be late to its
//! own clock, too (`clock_jitter`): what was due then keeps its due time.

mod writing;

use core::mem::offset_of;
use core::ops::Range;
use std::collections::VecDeque;

use talkpath_measure::DropCause;
use talkpath_scenario::workload::{AnyWorkload, Workload};
use talkpath_scenario::{EchoWrite, Receiver};
use talkpath_transport::{Delivery, Message, Outlet, Packet, PayloadRange, Transmit, Transport};
use talkpath_units::{Bytes, Duration, Instant, Stream};

use crate::endpoint::{Exchange, FlowTaps, Side};
use crate::late::Late;

/// What runs on one end's transport. What each step looks at comes first in memory, as in [`talkpath_transport::tcp::Tcp`], and fills
/// one cache line (64 B on most machines).
#[repr(C, align(64))]
pub(crate) struct Application {
    side: Side,
    is_stream: bool,
    /// The application takes each time all that a stream has, at once, and keeps it.
    reads_plainly: bool,
    /// Whether the application ever writes: it has a workload or an echo.
    writes: bool,
    workload_open: bool,
    /// The application neither takes a while to wake up nor to read.
    is_prompt: bool,
    echo: Option<EchoWrite>,
    /// A greedy workload that found no room, and waits for nothing else, would write before this; zero where none waits so.
    wants_room_until: Instant,
    /// When the application next looks; zero where nothing keeps it from it.
    reading_again_at: Instant,
    /// When what was read is answered; zero where nothing waits for it.
    answering_at: Instant,
    blocked_since: Option<Instant>,
    /// How long at most the application takes to wake up, and where that is drawn from; `None` reads at once.
    wake_up: Option<Box<(Duration, Stream)>>,
    /// How it is late to its clock; `None` never is.
    late: Option<Box<Late>>,
    workload: Option<AnyWorkload>,
    /// Messages that the application wants to write and the transport had no room for.
    backlog: VecDeque<Message>,
    /// A part of the first of them was written: its size is what is left of it.
    is_begun: bool,
    /// What an echo per read over a stream has still to write.
    stream_echo: StreamEcho,
    receiver: Receiver,
    blocked: Duration,
    /// Blocked time counts inside this window only.
    window: (Instant, Instant),
}

/// An echo of a stream's bytes as they were read, whatever messages they belong to.
#[derive(Debug, Default)]
struct StreamEcho {
    /// Bytes read and not yet written back.
    unwritten: Bytes,
    /// Bytes written back.
    written: u64,
    /// Messages read at least in part.
    begun: usize,
    /// Where the last of them ends in the stream.
    begun_end: u64,
    /// Of these, the ones of which no byte was written back: `seq` and offset of the first byte.
    unsent: VecDeque<(u64, u64)>,
}

impl Application {
    /// What a step looks at of a sender's application, and of a receiver's.
    pub(crate) const AT_NEAR_STEP: Range<usize> = 0..offset_of!(Self, answering_at);
    pub(crate) const AT_FAR_STEP: Range<usize> = 0..offset_of!(Self, workload);

    pub(crate) fn new(
        side: Side,
        is_stream: bool,
        workload: Option<AnyWorkload>,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: (Instant, Instant),
    ) -> Self {
        let writes = workload.is_some() || echo.is_some();
        Self {
            side,
            is_stream,
            reads_plainly: is_stream && receiver.service.is_zero() && echo.is_none() && side == Side::Far,
            writes,
            workload_open: false,
            is_prompt: receiver.service.is_zero(),
            wants_room_until: Instant::ZERO,
            workload,
            echo,
            reading_again_at: Instant::ZERO,
            answering_at: Instant::ZERO,
            backlog: VecDeque::new(),
            is_begun: false,
            stream_echo: StreamEcho::default(),
            receiver,
            wake_up: None,
            late: None,
            blocked_since: None,
            blocked: Duration::ZERO,
            window,
        }
    }

    /// It wakes up a time uniform in [0, `most`) after something came, and answers another such time after that.
    pub(crate) fn wake_up_within(&mut self, most: Duration, stream: Stream) {
        self.wake_up = (!most.is_zero()).then(|| Box::new((most, stream)));
        self.is_prompt &= self.wake_up.is_none();
    }

    /// It writes what its clock says a time uniform in [0, `most`) after that was due.
    pub(crate) fn late_by(&mut self, most: Duration, stream: Stream) {
        self.late = (!most.is_zero()).then(|| Box::new(Late::new(most, stream)));
    }

    /// `packet` is coming to the transport.
    #[inline]
    fn on_packet(&mut self, packet: &Packet, now: Instant) {
        if let Some(wake_up) = &mut self.wake_up
            && self.reading_again_at == Instant::ZERO
            && carries_data(packet)
        {
            let (most, stream) = &mut **wake_up;
            self.reading_again_at = now + stream.span(Duration::ZERO, *most);
        }
    }

    /// When it wants to look again, or its next message is due; [`Instant::MAX`] where it waits for the transport alone.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        if self.is_prompt & (!self.workload_open | (self.wants_room_until > Instant::ZERO)) {
            return Instant::MAX;
        }
        self.next_at_length()
    }

    #[inline]
    fn next_at_length(&self) -> Instant {
        let mut deadline = Instant::MAX;
        if self.reading_again_at > Instant::ZERO {
            deadline = self.reading_again_at;
        }
        if self.answering_at > Instant::ZERO {
            deadline = deadline.min(self.answering_at);
        }
        if self.workload_open
            && let Some(due) = self.workload.as_ref().and_then(AnyWorkload::poll_timeout)
        {
            deadline = deadline.min(self.late.as_ref().map_or(due, |late| late.wakes(due)));
        }
        deadline
    }

    /// Whether it has not woken up for its clock's next message, or that is not due.
    #[inline]
    fn oversleeps(&mut self, now: Instant) -> bool {
        let Some(late) = &mut self.late else { return false };
        self.workload.as_ref().and_then(AnyWorkload::poll_timeout).is_some_and(|due| late.sleeps(due, now))
    }

    /// Gives what has come at `now` to the transport, and moves everything that can move then; returns when there is more to do,
    /// [`Instant::MAX`] where never.
    #[inline(always)]
    pub(crate) fn step<T: Transport>(
        &mut self,
        transport: &mut T,
        side: Side,
        taps: &mut FlowTaps,
        now: Instant,
        exchange: &mut impl Exchange,
    ) -> Instant {
        debug_assert!(side == self.side, "the end is on the other side");
        if let Some((packet, ecn)) = exchange.arrived() {
            self.on_packet(packet, now);
            transport.handle_packet(packet, ecn, now);
            exchange.release();
        }
        self.advance(transport, side, taps, now, exchange);
        self.next().min(transport.poll_timeout().unwrap_or(Instant::MAX))
    }

    /// Moves everything that can move at `now`, giving each packet to `out`.
    ///
    /// One pass is enough: reading makes room to write back, but nothing that is written gives more to read.
    #[inline(always)]
    fn advance<T: Transport>(
        &mut self,
        transport: &mut T,
        side: Side,
        taps: &mut FlowTaps,
        now: Instant,
        out: &mut impl Outlet,
    ) {
        self.transmit_all(transport, side, taps, now, out);
        if taps.read_by(side).is_some() && self.read(transport, side, taps, now) {
            // A read may open the window or send an acknowledgement.
            self.transmit_all(transport, side, taps, now, out);
        }
        if self.writes && !self.still_wants_room(transport, now) && self.may_answer(now) {
            self.write(transport, taps, now, out);
            self.account_blocking(now);
        }
    }

    /// Whether a greedy workload that waited for room still does: then [`Self::write`] would change nothing, nor would
    /// [`Self::account_blocking`].
    #[inline(always)]
    fn still_wants_room<T: Transport>(&self, transport: &T, now: Instant) -> bool {
        now < self.wants_room_until && transport.writable() == Bytes::ZERO
    }

    /// Time inside the window during which it had a message and the transport no room, up to `now`.
    pub(crate) fn blocked(&mut self, now: Instant) -> Duration {
        if let Some(since) = self.blocked_since.replace(now) {
            self.blocked += clipped(since, now, self.window);
        }
        self.blocked
    }

    #[inline(always)]
    fn transmit_all<T: Transport>(
        &self,
        transport: &mut T,
        side: Side,
        taps: &mut FlowTaps,
        now: Instant,
        out: &mut impl Outlet,
    ) {
        if transport.may_transmit() {
            match side {
                Side::Near => transmit_what_may::<T, false>(transport, taps, now, out),
                Side::Far => transmit_what_may::<T, true>(transport, taps, now, out),
            }
        }
    }

    /// Whether an application that answers has come so far.
    fn may_answer(&mut self, now: Instant) -> bool {
        let may = now >= self.answering_at;
        if may {
            self.answering_at = Instant::ZERO;
        }
        may
    }

    /// Reads what the application is ready for; returns whether anything was read.
    #[inline(always)]
    fn read<T: Transport>(
        &mut self,
        transport: &mut T,
        side: Side,
        taps: &mut FlowTaps,
        now: Instant,
    ) -> bool {
        // Only the far end's application does.
        if side == Side::Near || !self.reads_plainly || now < self.reading_again_at {
            return self.read_at_length(transport, taps, now);
        }
        self.reading_again_at = Instant::ZERO;
        let Some(Delivery::Stream { bytes }) = transport.poll_delivery(Bytes::MAX, now) else {
            return false;
        };
        taps.forward.on_read(bytes, now);
        true
    }

    fn read_at_length<T: Transport>(&mut self, transport: &mut T, taps: &mut FlowTaps, now: Instant) -> bool {
        let Some(tap) = taps.read_by(self.side) else { return false };
        if !self.is_stream {
            while let Some(seq) = transport.poll_dropped() {
                tap.on_dropped(seq, DropCause::SocketBuffer);
            }
        }
        let slow = !self.receiver.service.is_zero();
        if now < self.reading_again_at {
            return false;
        }
        self.reading_again_at = Instant::ZERO;
        let mut any = false;
        while let Some(tap) = taps.read_by(self.side) {
            let limit = if slow && self.is_stream && !self.receiver.per_read {
                tap.until_next_message()
            } else {
                Bytes::MAX
            };
            let Some(delivery) = transport.poll_delivery(limit, now) else { break };
            any = true;
            let whole_messages = match delivery {
                Delivery::Message { seq, size } => {
                    tap.on_received(seq, now);
                    self.write_back(taps, seq, size, now);
                    1
                }
                Delivery::Stream { bytes } => {
                    let completed = tap.on_read(bytes, now);
                    match self.echo {
                        Some(EchoWrite::PerRead) => self.write_back_bytes(taps, bytes, now),
                        Some(EchoWrite::PerMessage) => {
                            for position in completed.clone() {
                                if let Some((seq, size)) = taps.forward.accepted_message(position) {
                                    self.write_back(taps, seq, size, now);
                                }
                            }
                        }
                        None => {}
                    }
                    completed.len()
                }
            };
            if slow && (whole_messages > 0 || self.receiver.per_read) {
                self.reading_again_at = now + self.receiver.service;
                break;
            }
            if self.is_stream && !slow {
                // One read without a limit takes all that there is.
                break;
            }
        }
        if any
            && self.echo.is_some()
            && let Some(wake_up) = &mut self.wake_up
        {
            let (most, stream) = &mut **wake_up;
            self.answering_at = self.answering_at.max(now + stream.span(Duration::ZERO, *most));
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

    /// What one read returned is to be written back in one write, whole messages or not.
    fn write_back_bytes(&mut self, taps: &mut FlowTaps, bytes: Bytes, now: Instant) {
        let FlowTaps { forward, echo: Some(echo) } = taps else { return };
        let unread = self.stream_echo.begun..forward.begun();
        self.stream_echo.begun = unread.end;
        for (seq, size) in unread.filter_map(|position| forward.accepted_message(position)) {
            echo.on_due(seq, size, now);
            self.stream_echo.unsent.push_back((seq, self.stream_echo.begun_end));
            self.stream_echo.begun_end += size.get();
        }
        self.stream_echo.unwritten += bytes;
    }
}

/// Gives all that may leave to `out`; at the `FAR` end or at the near one.
#[inline(never)]
fn transmit_what_may<T: Transport, const FAR: bool>(
    transport: &mut T,
    taps: &mut FlowTaps,
    now: Instant,
    out: &mut impl Outlet,
) {
    let mut out = Tapped::<_, FAR> { taps, now, out };
    while let Some(seq) = transport.poll_discarded() {
        if let Some(tap) = out.taps.written_by(Tapped::<(), FAR>::SIDE) {
            tap.on_dropped(seq, DropCause::SendQueue);
        }
    }
    transport.transmit_all(now, &mut out);
}

/// Notes what leaves, on its way to `out`.
struct Tapped<'a, O, const FAR: bool> {
    taps: &'a mut FlowTaps,
    now: Instant,
    out: &'a mut O,
}

impl<O, const FAR: bool> Tapped<'_, O, FAR> {
    const SIDE: Side = if FAR { Side::Far } else { Side::Near };
}

impl<O: Outlet, const FAR: bool> Outlet for Tapped<'_, O, FAR> {
    #[inline(always)]
    fn take(&mut self, transmit: Transmit) {
        if let Some(payload) = transmit.payload
            && let Some(tap) = self.taps.written_by(Self::SIDE)
        {
            match payload {
                PayloadRange::Stream { start, end } => tap.on_wire_stream(start, end, self.now),
                PayloadRange::Message { seq } => tap.on_wire(seq, self.now),
            }
        }
        self.out.take(transmit);
    }
}

/// Whether the application may have something to read when `packet` has come.
const fn carries_data(packet: &Packet) -> bool {
    match packet {
        Packet::Udp(_) => true,
        Packet::Tcp(segment) => segment.payload > 0,
        Packet::Dccp(packet) => packet.payload > 0,
    }
}

/// The part of `from..to` that lies inside `window`.
fn clipped(from: Instant, to: Instant, window: (Instant, Instant)) -> Duration {
    to.min(window.1).since(from.max(window.0))
}
