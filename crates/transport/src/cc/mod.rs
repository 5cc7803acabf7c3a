//! Congestion control: how much may be in flight, and what losses and acknowledgements do to that.
//!
//! A controller owns `cwnd` and `ssthresh` and hears what happened; which segments to send, and when fast recovery
//! begins, is the transport's. One algorithm a file; dispatch is a closed enum.

mod bbr;
mod cubic;
mod delivery;
mod hystart;
mod newreno;
mod reno;
mod tahoe;
mod window;

use talkpath_units::{Bytes, Duration, Instant, Packets, Rate, Seed};

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use newreno::NewReno;
pub use reno::Reno;
pub use tahoe::Tahoe;
pub use window::{Counting, Growth, Window};

use crate::CongestionControlKind;

/// How much may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// So many payload bytes.
    Window(Bytes),
    /// So many packets, whatever their size.
    WindowPackets(Packets),
}

/// An acknowledgement of new data. Amounts are in the controller's unit: bytes, or packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Newly acknowledged.
    pub acked: u64,
    /// In flight after this acknowledgement.
    pub flight_size: u64,
    /// Whether the window, and not the application or the receiver, held the sender back.
    pub cwnd_limited: bool,
    /// When it arrived.
    pub now: Instant,
}

/// Where the connection stood when a round trip was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// The first unacknowledged offset after it.
    pub snd_una: u64,
    /// One past the highest offset ever sent.
    pub snd_max: u64,
}

/// What a connection knows when data may flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outset {
    /// When that is.
    pub now: Instant,
    /// Payload bytes of a full segment.
    pub smss: u32,
    /// The smoothed round trip of the handshake, where it was measured.
    pub srtt: Option<Duration>,
    /// The shortest one.
    pub min_rtt: Option<Duration>,
}

/// A segment that leaves, for the first time or again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// When.
    pub now: Instant,
    /// One past its last offset.
    pub end: u64,
    /// Whether nothing else is unacknowledged.
    pub is_alone: bool,
}

/// What the sender is doing about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Open,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Loss,
}

/// All that an acknowledgement brought, for a control that sets `cwnd` by itself. Amounts are in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// When it arrived.
    pub now: Instant,
    /// Newly acknowledged or selectively acknowledged.
    pub delivered: u64,
    /// Newly taken for lost.
    pub losses: u64,
    /// One past the last offset of what was sent last of all that was delivered.
    pub newest: Option<u64>,
    /// The first unacknowledged offset.
    pub snd_una: u64,
    /// In flight before it.
    pub prior_in_flight: u64,
    /// In flight after it.
    pub in_flight: u64,
    /// The round trip that it measured.
    pub rtt: Option<Duration>,
    /// Whether the far end may have delayed it: it is for one small segment alone.
    pub is_ack_delayed: bool,
    /// The shortest round trip of the last minutes.
    pub min_rtt: Duration,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// What is being done about losses after it.
    pub phase: Phase,
    /// When pacing lets the next segment leave.
    pub departs: Instant,
}

/// What an acknowledgement of new data means during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryAck {
    /// Recovery is over.
    Leave,
    /// More was lost: the first unacknowledged segment has to be sent again (RFC 6582 §3.2 step 3).
    Stay,
}

/// What the transport tells a congestion control. Amounts are in the controller's unit.
pub trait CongestionControl {
    /// How much may be in flight now.
    #[inline]
    fn allowance(&self) -> Allowance {
        self.window().allowance()
    }
    /// The window's state.
    fn window(&self) -> &Window;
    /// The window, for recoveries that set it themselves.
    fn window_mut(&mut self) -> &mut Window;
    /// A segment that was sent once took `rtt` to be acknowledged.
    fn on_rtt(&mut self, _rtt: Duration, _sample: RttSample) {}
    /// New data was acknowledged outside fast recovery.
    fn on_ack(&mut self, ack: Ack);
    /// Whether a loss is repaired as after a timeout, by sending again all that is in flight, and not by fast recovery.
    fn goes_back(&self) -> bool {
        false
    }
    /// The third duplicate acknowledgement told of a loss with `flight_size` in flight: fast recovery begins.
    fn on_loss(&mut self, flight_size: u64);
    /// A loss was found by selective acknowledgements: `ssthresh` falls, and recovery leads `cwnd` there.
    fn reduce(&mut self, flight_size: u64);
    /// One more duplicate acknowledgement during fast recovery: a segment has left the network.
    fn on_duplicate_ack(&mut self);
    /// New data was acknowledged during fast recovery; `full` when all that was sent before the loss was noticed is.
    fn on_recovery_ack(&mut self, ack: Ack, full: bool) -> RecoveryAck;
    /// Whether losses below the point that the last recovery ended at may begin another one.
    fn may_recover_again(&self) -> bool;
    /// The retransmission timer fired with `flight_size` in flight; `first` unless it fired for this data before.
    fn on_rto(&mut self, flight_size: u64, first: bool);
    /// Nothing was sent for `idle`, longer than `rto`, and something is about to be.
    fn on_idle(&mut self, idle: Duration, rto: Duration);
    /// Something is about to be sent with nothing in flight, `idle` after the last time.
    fn on_flight_start(&mut self, _idle: Duration, _now: Instant) {}
    /// Whether it sets `cwnd` by itself from [`Self::on_feedback`], in recovery too; the methods from here on are called for such
    /// a control alone.
    fn steers(&self) -> bool {
        false
    }
    /// Data may flow.
    fn begin(&mut self, _outset: Outset) {}
    /// The application writes, and had left the network with `in_flight` segments and room for more.
    fn on_app_limited(&mut self, _in_flight: u64) {}
    /// A segment leaves.
    fn on_departure(&mut self, _departed: Departed) {}
    /// An acknowledgement was processed.
    fn on_feedback(&mut self, _feedback: &Feedback) {}
    /// A reduction proved to be needless.
    fn on_undo(&mut self) {}
    /// How fast segments leave; `None` where that follows from the window.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// The bottleneck's rate as far as known, payload alone.
    fn bottleneck_rate(&self) -> Option<Rate> {
        None
    }
    /// The least number of segments that leave together where they are paced (net.ipv4.tcp_min_tso_segs).
    fn least_burst(&self) -> u32 {
        2
    }
    /// How many windows an autotuned send buffer has room for (tcp_sndbuf_expand).
    fn buffered_windows(&self) -> u64 {
        2
    }
}

/// Any congestion control. Which one stands in a byte of its own, and each but BBR has its window at the same place behind that: the
/// window, which is asked for in each step, is found without a look at whose it is.
#[derive(Clone, Debug)]
#[repr(u8)]
pub enum Controller {
    /// 4.3BSD-Tahoe.
    Tahoe(Tahoe),
    /// RFC 5681.
    Reno(Reno),
    /// RFC 6582.
    NewReno(NewReno),
    /// RFC 9438.
    Cubic(Cubic),
    /// draft-cardwell-iccrg-bbr-congestion-control-00; apart, so that its size is nobody else's.
    Bbr(Box<Bbr>),
}

impl Controller {
    /// The controller of `kind` over a fresh `window`; CUBIC's and BBR's have to count packets. What is random follows from
    /// `seed`.
    pub fn new(kind: CongestionControlKind, window: Window, seed: Seed) -> Self {
        match kind {
            CongestionControlKind::Tahoe => Self::Tahoe(Tahoe::new(window)),
            CongestionControlKind::Reno => Self::Reno(Reno::new(window)),
            CongestionControlKind::NewReno => Self::NewReno(NewReno::new(window)),
            CongestionControlKind::Cubic => Self::Cubic(Cubic::new(window)),
            CongestionControlKind::Bbr => Self::Bbr(Box::new(Bbr::new(window, seed.stream("tcp/bbr/cycle")))),
        }
    }
}

macro_rules! each {
    ($any:expr, $controller:ident => $call:expr) => {
        match $any {
            Controller::Tahoe($controller) => $call,
            Controller::Reno($controller) => $call,
            Controller::NewReno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Bbr($controller) => $call,
        }
    };
}

impl CongestionControl for Controller {
    #[inline(always)]
    fn allowance(&self) -> Allowance {
        self.window().allowance()
    }

    #[inline(always)]
    fn window(&self) -> &Window {
        // BBR is told apart first: the others have theirs at one place.
        match self {
            Self::Bbr(bbr) => bbr.window(),
            others => each!(others, controller => controller.window()),
        }
    }

    #[inline]
    fn window_mut(&mut self) -> &mut Window {
        each!(self, controller => controller.window_mut())
    }

    #[inline]
    fn on_rtt(&mut self, rtt: Duration, sample: RttSample) {
        each!(self, controller => controller.on_rtt(rtt, sample));
    }

    #[inline]
    fn on_ack(&mut self, ack: Ack) {
        each!(self, controller => controller.on_ack(ack));
    }

    fn goes_back(&self) -> bool {
        each!(self, controller => controller.goes_back())
    }

    fn on_loss(&mut self, flight_size: u64) {
        each!(self, controller => controller.on_loss(flight_size));
    }

    fn reduce(&mut self, flight_size: u64) {
        each!(self, controller => controller.reduce(flight_size));
    }

    fn on_duplicate_ack(&mut self) {
        each!(self, controller => controller.on_duplicate_ack());
    }

    fn on_recovery_ack(&mut self, ack: Ack, full: bool) -> RecoveryAck {
        each!(self, controller => controller.on_recovery_ack(ack, full))
    }

    fn may_recover_again(&self) -> bool {
        each!(self, controller => controller.may_recover_again())
    }

    fn on_rto(&mut self, flight_size: u64, first: bool) {
        each!(self, controller => controller.on_rto(flight_size, first));
    }

    fn on_idle(&mut self, idle: Duration, rto: Duration) {
        each!(self, controller => controller.on_idle(idle, rto));
    }

    fn on_flight_start(&mut self, idle: Duration, now: Instant) {
        each!(self, controller => controller.on_flight_start(idle, now));
    }

    #[inline]
    fn steers(&self) -> bool {
        matches!(self, Self::Bbr(_))
    }

    fn begin(&mut self, outset: Outset) {
        each!(self, controller => controller.begin(outset));
    }

    fn on_app_limited(&mut self, in_flight: u64) {
        each!(self, controller => controller.on_app_limited(in_flight));
    }

    fn on_departure(&mut self, departed: Departed) {
        each!(self, controller => controller.on_departure(departed));
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        each!(self, controller => controller.on_feedback(feedback));
    }

    fn on_undo(&mut self) {
        each!(self, controller => controller.on_undo());
    }

    fn pacing_rate(&self) -> Option<Rate> {
        each!(self, controller => controller.pacing_rate())
    }

    fn bottleneck_rate(&self) -> Option<Rate> {
        each!(self, controller => controller.bottleneck_rate())
    }

    fn least_burst(&self) -> u32 {
        each!(self, controller => controller.least_burst())
    }

    fn buffered_windows(&self) -> u64 {
        each!(self, controller => controller.buffered_windows())
    }
}
