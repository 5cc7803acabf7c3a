//! One end of a flow: an application on a transport, with taps.
//!
//! ```text
//!  workload ─► backlog ─► transport ─► poll_transmit          near end: a workload, and a reader where there is an echo
//!  reader  ◄────────────  transport ◄─ handle_packet          far end: a reader, and a writer where there is an echo
//!     └─ echo ─► backlog
//! ```
//!
//! What the application does in one step, and in which order, is told in `application`.

use core::mem::offset_of;
use core::ops::Range;

use talkpath_measure::LegTap;
use talkpath_scenario::workload::AnyWorkload;
use talkpath_scenario::{EchoWrite, Receiver};
use talkpath_transport::tcp::Tcp;
use talkpath_transport::{AnyTransport, Counters, Ecn, Levels, Observation, Outlet, Packet, Transport};
use talkpath_units::{Bytes, Duration, Instant, Stream};

use crate::application::Application;

/// What a step of an end exchanges with the network: the packet that has arrived, if one has, and those that leave.
pub trait Exchange: Outlet {
    /// The packet that has arrived and was not taken in yet.
    fn arrived(&self) -> Option<(&Packet, Ecn)>;
    /// It was taken in, and is needed no more.
    fn release(&mut self);
}

/// An application on a transport.
#[repr(C)]
pub struct Endpoint {
    application: Application,
    transport: AnyTransport,
}

impl Endpoint {
    /// The end that sends: its workload begins when the transport is open.
    pub fn near(transport: AnyTransport, workload: AnyWorkload, window: (Instant, Instant)) -> Self {
        let workload = match transport.largest_message() {
            Some(size) => workload.with_largest_message(size),
            None => workload,
        };
        let (stream, receiver) = (transport.is_stream(), Receiver::default());
        let application = Application::new(Side::Near, stream, Some(workload), None, receiver, window);
        Self { transport, application }
    }

    /// The end that reads, and writes everything back where `echo` is given.
    pub fn far(
        transport: AnyTransport,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: (Instant, Instant),
    ) -> Self {
        let stream = transport.is_stream();
        let application = Application::new(Side::Far, stream, None, echo, receiver, window);
        Self { transport, application }
    }

    /// The same, with an application that wakes up a time uniform in [0, `most`) after something came, and answers another such time
    /// after that, drawn from `stream`.
    #[must_use]
    pub fn waking_up_within(mut self, most: Duration, stream: Stream) -> Self {
        self.application.wake_up_within(most, stream);
        self
    }

    /// The same, with an application that writes what its clock says a time uniform in [0, `most`) late, drawn from `stream`.
    #[must_use]
    pub fn late_by(mut self, most: Duration, stream: Stream) -> Self {
        self.application.late_by(most, stream);
        self
    }

    /// The bytes of an end that a sender's step looks at, for who wants to ask memory for them beforehand.
    pub const AT_NEAR_STEP: [Range<usize>; 4] = {
        let [first, flight, window] = Tcp::AT_SENDING;
        [Application::AT_NEAR_STEP, Self::transport(first), Self::transport(flight), Self::transport(window)]
    };
    /// What it looks at besides while something [`Self::is_amiss`].
    pub const AT_REPAIR: Range<usize> = Self::transport(Tcp::AT_REPAIR);
    /// The same of a receiver's.
    pub const AT_FAR_STEP: [Range<usize>; 2] = [Application::AT_FAR_STEP, Self::transport(Tcp::AT_RECEIVING)];

    /// Where in an end those bytes of a TCP are: what stands before it in the [`AnyTransport`], its kind, is looked at, too.
    const fn transport(tcp: Range<usize>) -> Range<usize> {
        let (start, kind) = (offset_of!(Self, transport), size_of::<AnyTransport>() - size_of::<Tcp>());
        let before = if tcp.start == 0 { 0 } else { kind };
        start + before + tcp.start..start + kind + tcp.end
    }

    /// Whether a step may look at [`Self::AT_REPAIR`].
    #[inline]
    pub const fn is_amiss(&self) -> bool {
        self.transport.is_amiss()
    }

    /// Where in memory lies what most steps look at and is not in here, for who wants to ask for it beforehand.
    #[inline]
    pub fn places(&self) -> [*const u8; 2] {
        self.transport.places()
    }

    /// Begins to connect.
    pub fn open(&mut self, now: Instant) {
        self.transport.open(now);
    }

    /// When [`Endpoint::handle_timeout`] wants to be called; [`Instant::MAX`] is never.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        self.application.next().min(self.transport.poll_timeout().unwrap_or(Instant::MAX))
    }

    /// The deadline has come; call [`Endpoint::step`] after it.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.transport.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.transport.handle_timeout(now);
        }
    }

    /// Takes in what has arrived, and moves everything that can move at `now`; returns when [`Endpoint::handle_timeout`] wants to be
    /// called, which may be at once, or [`Instant::MAX`] where never. On which `side` of its flow it is, the caller knows when it is
    /// compiled, so that what only the other one does is not asked for.
    #[inline(always)]
    pub fn step(
        &mut self,
        side: Side,
        taps: &mut FlowTaps,
        now: Instant,
        exchange: &mut impl Exchange,
    ) -> Instant {
        let application = &mut self.application;
        // Told apart once for the whole step.
        match &mut self.transport {
            AnyTransport::Tcp(tcp) => application.step(tcp, side, taps, now, exchange),
            AnyTransport::Udp(udp) => application.step(udp, side, taps, now, exchange),
            AnyTransport::Dccp(dccp) => application.step(&mut **dccp, side, taps, now, exchange),
        }
    }

    /// The part of the transport's state that is averaged.
    #[inline]
    pub fn levels(&self) -> Levels {
        self.transport.levels()
    }

    /// What two of [`Endpoint::levels`] follow from ([`Transport::windows_key`]).
    #[inline]
    pub fn windows_key(&self) -> (u64, u64) {
        self.transport.windows_key()
    }

    /// The third of [`Endpoint::levels`].
    #[inline]
    pub fn send_buffer(&self) -> Bytes {
        self.transport.send_buffer()
    }

    /// The transport's state, for the series.
    #[inline]
    pub fn observe(&self) -> Observation {
        self.transport.observe()
    }

    /// What the transport counted.
    pub fn counters(&self) -> Counters {
        self.transport.counters()
    }

    /// Time inside the window during which the application had a message and the transport no room, up to `now`.
    pub fn blocked(&mut self, now: Instant) -> Duration {
        self.application.blocked(now)
    }
}

/// The taps of one flow: both ends write to them.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct FlowTaps {
    /// Echoes on their way back; `None` without echo. Apart, since each step asks whether it is there, and few flows have one.
    pub echo: Option<Box<LegTap>>,
    /// Messages on their way out.
    pub forward: LegTap,
}

impl FlowTaps {
    /// Messages and echoes that are neither delivered nor known to be dropped nor refused.
    #[inline]
    pub fn pending(&self) -> u64 {
        if self.echo.is_some() { self.pending_both_ways() } else { self.forward.pending() }
    }

    /// Apart, as few flows have an echo.
    #[inline(never)]
    fn pending_both_ways(&self) -> u64 {
        self.forward.pending() + self.echo.as_deref().map_or(0, LegTap::pending)
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

impl FlowTaps {
    #[inline]
    pub(crate) fn written_by(&mut self, side: Side) -> Option<&mut LegTap> {
        match side {
            Side::Near => Some(&mut self.forward),
            Side::Far => self.echo.as_deref_mut(),
        }
    }

    #[inline]
    pub(crate) fn read_by(&mut self, side: Side) -> Option<&mut LegTap> {
        match side {
            Side::Near => self.echo.as_deref_mut(),
            Side::Far => Some(&mut self.forward),
        }
    }
}
