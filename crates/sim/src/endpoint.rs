//! The channel over a simulated transport, and one end of a simulated flow.
//!
//! ```text
//!  workload ─► backlog ─► transport ─► poll_transmit    near end: a workload, and a reader if the flow has an echo
//!  reader  ◄────────────  transport ◄─ handle_packet    far end: a reader, and a writer if the flow has an echo
//!     └─ echo ─► backlog
//! ```

use std::ops::Range;

use talkpath_config::Features;
use talkpath_flow::{
    AnyWorkload, Application, Channel, FlowId, FlowTaps, Read, Side, Workload as _, Write, WriteOutcome,
};
use talkpath_measure::DropCause;
use talkpath_model::{EchoWrite, Receiver};
use talkpath_transport::{AnyTransport, EndVisitor};
use talkpath_units::{Bytes, Duration, Instant, Stream};
use talkpath_wire::{Counters, Levels, Observation, Outlet, PayloadRange, Refused, Transmit, Transport};

use crate::exchange::Exchange;
use crate::member::{self, Member};

/// An application on a transport.
#[repr(C)]
pub(crate) struct Endpoint {
    application: Application,
    transport: EndpointTransport,
}

/// The transport of an end.
#[expect(clippy::large_enum_variant, reason = "as AnyTransport: a box would cost each call")]
pub(crate) enum EndpointTransport {
    /// One of our state machines.
    Ours(AnyTransport),
    /// A QUIC connection, which several flows may share.
    Quic(Member),
}

impl EndpointTransport {
    fn features(&self) -> Features {
        match self {
            Self::Ours(transport) => transport.kind().features(),
            Self::Quic(member) => member.features(),
        }
    }

    fn largest_message(&self) -> Option<Bytes> {
        match self {
            Self::Ours(transport) => transport.largest_message(),
            Self::Quic(member) => member.largest_message(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Ours(transport) => transport.poll_timeout(),
            Self::Quic(member) => member.end().poll_timeout(),
        }
    }

    /// `application` as it writes to this.
    fn prepare(&self, application: Application) -> Application {
        match self {
            Self::Ours(_) => application,
            Self::Quic(member) => member.prepare(application),
        }
    }
}

impl Endpoint {
    /// The end that sends: its workload begins when the transport is open, unless it has a clock that begins
    /// by itself.
    pub(crate) fn near(
        transport: EndpointTransport,
        mut workload: AnyWorkload,
        window: Range<Instant>,
    ) -> Self {
        if let Some(size) = transport.largest_message() {
            workload.limit_messages(size);
        }
        let application = transport.prepare(Application::near(transport.features(), workload, window));
        Self { transport, application }
    }

    /// The end that reads, and writes everything back if the flow has an `echo`.
    pub(crate) fn far(
        transport: EndpointTransport,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: Range<Instant>,
    ) -> Self {
        let application = transport.prepare(Application::far(transport.features(), echo, receiver, window));
        Self { transport, application }
    }

    /// The same, with an application that wakes up a time uniform in [0, `max`) after something came, and
    /// answers another such time after that, drawn from `stream`.
    #[must_use]
    pub(crate) fn waking_up_within(mut self, max: Duration, stream: Stream) -> Self {
        self.application.wake_up_within(max, stream);
        self
    }

    /// The same, with an application that writes what its clock says a time uniform in [0, `max`) late, drawn
    /// from `stream`.
    #[must_use]
    pub(crate) fn late_by(mut self, max: Duration, stream: Stream) -> Self {
        self.application.late_by(max, stream);
        self
    }

    /// The same with a clock that begins at `start`, if the workload has one.
    #[must_use]
    pub(crate) fn with_clock_from(mut self, start: Instant) -> Self {
        self.application = self.application.with_clock_from(start);
        self
    }

    /// The run is over at `now`: notes in `taps` what was due and never sent because the transport did not
    /// open.
    pub(crate) fn finish(&mut self, taps: &mut FlowTaps, now: Instant) {
        self.application.finish(taps, now);
    }

    /// From when on a message could leave; `None` if none ever could.
    pub(crate) fn opened(&self) -> Option<Instant> {
        self.application.opened()
    }

    /// When a whole message came first; `None` if none did.
    pub(crate) fn first_read(&self) -> Option<Instant> {
        self.application.first_read()
    }

    /// How long the handshake took, of a transport that has one and a flow that opened after `opening`. With
    /// a ticket a QUIC connection opens before its handshake is over.
    pub(crate) fn handshake(&self, opening: Option<Duration>) -> Option<Duration> {
        match &self.transport {
            EndpointTransport::Ours(transport) => {
                opening.filter(|_| transport.kind().features().is_acknowledged)
            }
            EndpointTransport::Quic(member) => member.end().handshake(),
        }
    }

    /// Begins to connect.
    pub(crate) fn open(&mut self, now: Instant) {
        match &mut self.transport {
            EndpointTransport::Ours(transport) => transport.open(now),
            EndpointTransport::Quic(member) => member.end().open(now),
        }
    }

    /// When [`Endpoint::handle_timeout`] wants to be called; [`Instant::MAX`] is never.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.application.next().min(self.transport.poll_timeout().unwrap_or(Instant::MAX))
    }

    /// Whether the application's clock has made a message due before `now` that is not handed over yet.
    pub(crate) fn owes(&self, now: Instant) -> bool {
        self.application.owes(now)
    }

    /// When the application wants its next step, whatever the transport does; [`Instant::MAX`] is never. Of
    /// flows that share a connection each has its own, and the connection's deadline is nobody's.
    pub(crate) fn next_turn(&self) -> Instant {
        self.application.next()
    }

    /// The deadline has come; call [`Endpoint::step`] after it.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.transport.poll_timeout().is_some_and(|deadline| deadline <= now) {
            match &mut self.transport {
                EndpointTransport::Ours(transport) => transport.handle_timeout(now),
                EndpointTransport::Quic(member) => member.end().handle_timeout(now),
            }
        }
    }

    /// Takes in what has arrived, and moves everything that can move at `now`; returns when
    /// [`Endpoint::handle_timeout`] wants to be called, which may be at once, or [`Instant::MAX`] for never.
    /// The caller knows at compile time on which `side` of its flow the end is, so that no work of the other
    /// side is checked for.
    #[inline(always)]
    pub(crate) fn step(
        &mut self,
        side: Side,
        taps: &mut FlowTaps,
        now: Instant,
        exchange: &mut impl Exchange,
    ) -> Instant {
        let application = &mut self.application;
        match &mut self.transport {
            EndpointTransport::Ours(transport) => {
                transport.visit(Step { application, side, taps, now, exchange })
            }
            EndpointTransport::Quic(member) => member::step(application, member, side, taps, now, exchange),
        }
    }

    /// The part of the transport's state that is averaged.
    #[inline]
    pub(crate) fn levels(&self) -> Levels {
        match &self.transport {
            EndpointTransport::Ours(transport) => transport.levels(),
            EndpointTransport::Quic(member) => member.levels(),
        }
    }

    /// What two of [`Endpoint::levels`] follow from ([`Transport::windows_key`]).
    #[inline]
    pub(crate) fn windows_key(&self) -> (u64, u64) {
        match &self.transport {
            EndpointTransport::Ours(transport) => transport.windows_key(),
            EndpointTransport::Quic(member) => member.end().windows_key(),
        }
    }

    /// The third of [`Endpoint::levels`].
    #[inline]
    pub(crate) fn send_buffer(&self) -> Bytes {
        match &self.transport {
            EndpointTransport::Ours(transport) => transport.send_buffer(),
            EndpointTransport::Quic(member) => member.send_buffer(),
        }
    }

    /// The transport's state, for the series.
    #[inline]
    pub(crate) fn observe(&self) -> Observation {
        match &self.transport {
            EndpointTransport::Ours(transport) => transport.observe(),
            EndpointTransport::Quic(member) => member.observe(),
        }
    }

    /// What the transport counted.
    pub(crate) fn counters(&self) -> Counters {
        match &self.transport {
            EndpointTransport::Ours(transport) => transport.counters(),
            EndpointTransport::Quic(member) => member.counters(),
        }
    }

    /// When and why its connection was lost; `None` if it was not.
    pub(crate) fn lost(&self) -> Option<(Instant, String)> {
        match &self.transport {
            EndpointTransport::Ours(_) => None,
            EndpointTransport::Quic(member) => member.lost(),
        }
    }

    /// Time inside the window during which the application had a message and the transport no room, up to
    /// `now`.
    pub(crate) fn blocked(&mut self, now: Instant) -> Duration {
        self.application.blocked(now)
    }
}

/// What [`step`] takes besides the transport.
struct Step<'a, E> {
    application: &'a mut Application,
    side: Side,
    taps: &'a mut FlowTaps,
    now: Instant,
    exchange: &'a mut E,
}

impl<E: Exchange> EndVisitor for Step<'_, E> {
    type Output = Instant;

    #[inline(always)]
    fn visit<T: Transport>(self, transport: &mut T) -> Instant {
        let Self { application, side, taps, now, exchange } = self;
        step(application, transport, side, taps, now, exchange)
    }
}

#[inline(always)]
fn step<T: Transport>(
    application: &mut Application,
    transport: &mut T,
    side: Side,
    taps: &mut FlowTaps,
    now: Instant,
    exchange: &mut impl Exchange,
) -> Instant {
    if let Some((packet, ecn)) = exchange.arrived() {
        if application.has_to_wake_up() && packet.carries_data() {
            application.on_arrival(now);
        }
        transport.handle_packet(packet, ecn, now);
        exchange.release();
    }
    let mut channel = Simulated { transport, out: exchange };
    application.advance(&mut channel, side, taps, now);
    application.next().min(channel.poll_timeout())
}

/// A simulated transport as a channel, for one step. Its connection has one flow.
struct Simulated<'a, T, O> {
    transport: &'a mut T,
    /// Where packets leave to.
    out: &'a mut O,
}

impl<T: Transport, O: Outlet> Channel for Simulated<'_, T, O> {
    #[inline(always)]
    fn is_open(&self) -> bool {
        self.transport.is_open()
    }

    #[inline(always)]
    fn write(&mut self, write: &Write, now: Instant) -> WriteOutcome {
        if !write.is_begun {
            match self.transport.handle_message(write.message, now) {
                Ok(()) => return WriteOutcome::Taken(write.message.size),
                Err(Refused::NoRoom) => {}
                Err(_) => return WriteOutcome::Refused,
            }
        }
        self.write_part(write)
    }

    #[inline(always)]
    fn read(&mut self, _flow: FlowId, limit: Bytes, now: Instant) -> Option<Read<'_>> {
        let delivery = self.transport.poll_delivery(limit, now)?;
        Some(Read { delivery, came_at: None, held_since: None, begun: &[], data: &[] })
    }

    #[inline(always)]
    fn writable(&mut self, _flow: FlowId) -> Bytes {
        self.transport.writable()
    }

    fn takes(&mut self, _flow: FlowId, size: Bytes) -> bool {
        self.transport.takes(size)
    }

    #[inline(always)]
    fn flush(&mut self, _flow: FlowId, side: Side, taps: &mut FlowTaps, now: Instant) {
        if self.transport.may_transmit() {
            match side {
                Side::Near => self.transmit::<false>(taps, now),
                Side::Far => self.transmit::<true>(taps, now),
            }
        }
    }

    fn poll_dropped(&mut self, _flow: FlowId) -> Option<(u64, DropCause)> {
        Some((self.transport.poll_dropped()?, DropCause::SocketBuffer))
    }

    #[inline(always)]
    fn poll_timeout(&self) -> Instant {
        self.transport.poll_timeout().unwrap_or(Instant::MAX)
    }

    fn observe(&self) -> Observation {
        self.transport.observe()
    }
}

impl<T: Transport, O: Outlet> Simulated<'_, T, O> {
    /// Writes what a stream has room for of a message that is begun already, or that not even an empty buffer
    /// holds.
    fn write_part(&mut self, write: &Write) -> WriteOutcome {
        let size = write.message.size;
        // After the first part, what left may have made room at once.
        let may_take = write.written > Bytes::ZERO
            || if write.is_begun {
                self.transport.writable() > Bytes::ZERO
            } else {
                self.transport.takes(size)
            };
        match may_take.then(|| self.transport.handle_part(size, write.written)) {
            Some(part) if part > Bytes::ZERO => WriteOutcome::Taken(part),
            _ => WriteOutcome::NoRoom,
        }
    }

    /// Gives all that may leave to the network; at the `FAR` end or at the near one.
    #[inline(never)]
    fn transmit<const FAR: bool>(&mut self, taps: &mut FlowTaps, now: Instant) {
        let mut out = Tapped::<_, FAR> { taps, now, out: &mut *self.out };
        while let Some(seq) = self.transport.poll_discarded() {
            if let Some(tap) = out.taps.written_by(Tapped::<(), FAR>::SIDE) {
                tap.on_dropped(seq, DropCause::SendQueue);
            }
        }
        self.transport.transmit_all(now, &mut out);
    }
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
