//! Congestion control: how much may be in flight, and what losses and acknowledgements do to that.
//!
//! ```text
//!   Controller ─┬─ Window   cwnd grows with acknowledgements and falls with losses (window_based)
//!               │             tahoe, reno, newreno, cubic
//!               └─ Rate     cwnd and a pacing rate follow a model of the path (rate_based)
//!                             bbr
//! ```
//!
//! A controller owns `cwnd` and `ssthresh`. The transport decides which segments leave and when fast recovery
//! begins. Each algorithm is one file (BBR: one folder).

mod ack;
mod bbr;
mod cubic;
mod delivery;
mod hystart;
mod newreno;
mod rate_based;
mod reno;
mod tahoe;
pub(crate) mod usage;
mod window;
mod window_based;
mod window_controller;

use talkpath_config::CongestionControlKind;
use talkpath_units::{Duration, Instant, Rate, Seed};

pub use ack::{Ack, Allowance, RecoveryAck, RttSample};
pub use bbr::Bbr;
pub use rate_based::{Feedback, InitialState, Phase, RateBased, SentSegment};
pub use talkpath_config::Growth;
pub use window::{Counting, Window};
pub use window_based::WindowBased;
pub use window_controller::WindowController;

/// Any congestion control.
#[derive(Clone, Debug)]
pub enum Controller {
    /// Tahoe, Reno, NewReno or CUBIC.
    Window(WindowController),
    /// BBR. In a box, because it is ten times as large as the others.
    Rate(Box<Bbr>),
}

impl Controller {
    /// The controller of `kind` with a fresh `window`, which counts packets for CUBIC and BBR. `is_paced` if
    /// the transport paces segments. Random choices follow from `seed`.
    pub fn new(kind: CongestionControlKind, window: Window, is_paced: bool, seed: Seed) -> Self {
        match kind {
            CongestionControlKind::Bbr => {
                Self::Rate(Box::new(Bbr::new(window, seed.stream("tcp/bbr/cycle"))))
            }
            kind => Self::Window(WindowController::new(kind, window, is_paced)),
        }
    }

    /// True for a control that sets `cwnd` and a pacing rate from a model of the path, in recovery too.
    #[inline]
    pub const fn is_rate_based(&self) -> bool {
        matches!(self, Self::Rate(_))
    }

    /// `cwnd` and `ssthresh`.
    #[inline]
    pub fn window(&self) -> &Window {
        match self {
            Self::Window(controller) => controller.window(),
            Self::Rate(bbr) => bbr.window(),
        }
    }

    /// The window, for a recovery that sets `cwnd` itself (PRR).
    #[inline]
    pub fn window_mut(&mut self) -> &mut Window {
        match self {
            Self::Window(controller) => controller.window_mut(),
            Self::Rate(bbr) => bbr.window_mut(),
        }
    }

    /// A segment that was sent once was acknowledged after `rtt`.
    #[inline]
    pub fn on_rtt(&mut self, rtt: Duration, sample: RttSample) {
        if let Self::Window(controller) = self {
            controller.on_rtt(rtt, sample);
        }
    }

    /// New data was acknowledged outside of fast recovery.
    #[inline]
    pub fn on_ack(&mut self, ack: Ack) {
        if let Self::Window(controller) = self {
            controller.on_ack(ack);
        }
    }

    /// True for Tahoe: after the third duplicate everything in flight is sent again, as after a timeout.
    pub const fn goes_back(&self) -> bool {
        matches!(self, Self::Window(controller) if controller.goes_back())
    }

    /// The third duplicate acknowledgement came with `flight_size` in flight: `ssthresh` falls, and `cwnd` is
    /// inflated by the three segments that have left the network (RFC 5681 §3.2 steps 2 and 3). Without a
    /// `flight_size` it fell before, for a mark of the same window.
    pub fn on_third_duplicate(&mut self, flight_size: Option<u64>) {
        match self {
            Self::Window(controller) => controller.on_third_duplicate(flight_size),
            Self::Rate(bbr) => bbr.on_loss(),
        }
    }

    /// SACK or RACK found a loss: `ssthresh` falls, and recovery moves `cwnd` there.
    pub fn reduce(&mut self, flight_size: u64) {
        match self {
            Self::Window(controller) => controller.reduce(flight_size),
            Self::Rate(bbr) => bbr.on_loss(),
        }
    }

    /// A further duplicate acknowledgement during fast recovery: a segment has left the network
    /// (RFC 5681 §3.2 step 4).
    pub fn on_duplicate_ack(&mut self) {
        match self {
            Self::Window(controller) => controller.on_duplicate_ack(),
            Self::Rate(bbr) => bbr.window_mut().inflate(),
        }
    }

    /// New data was acknowledged during fast recovery. `full` if that is all that was sent before the loss
    /// was noticed.
    pub fn on_recovery_ack(&mut self, ack: Ack, full: bool) -> RecoveryAck {
        match self {
            Self::Window(controller) => controller.on_recovery_ack(ack, full),
            Self::Rate(_) if full => RecoveryAck::Leave,
            Self::Rate(_) => RecoveryAck::Stay,
        }
    }

    /// True if losses below the end of the last recovery may begin a further one. RFC 6582 §3.2 step 1
    /// forbids it.
    pub const fn may_recover_again(&self) -> bool {
        matches!(self, Self::Window(controller) if controller.may_recover_again())
    }

    /// The retransmission timer expired with `flight_size` in flight. `first` unless it had expired for the
    /// same data before. Segments were marked as lost `total_losses` times since the connection began, those
    /// of this timeout included.
    pub fn on_rto(&mut self, flight_size: u64, first: bool, total_losses: u64) {
        match self {
            Self::Window(controller) => controller.on_rto(flight_size, first),
            Self::Rate(bbr) => bbr.on_rto(first, total_losses),
        }
    }

    /// Data is about to leave after `idle`, longer than `rto`, without any (RFC 5681 §4.1). BBR keeps its
    /// window, because pacing prevents a burst.
    pub fn on_idle(&mut self, idle: Duration, rto: Duration) {
        if let Self::Window(controller) = self {
            controller.window_mut().restart(idle, rto);
        }
    }

    /// Data is about to leave with nothing in flight, `idle` after the last.
    pub fn on_flight_start(&mut self, idle: Duration, now: Instant) {
        match self {
            Self::Window(controller) => controller.on_flight_start(idle, now),
            Self::Rate(bbr) => bbr.on_flight_start(now),
        }
    }

    /// A reduction was needless. `cwnd` and `ssthresh` are restored to `prior` at least (RFC 5682, RFC 3522).
    pub fn undo(&mut self, (cwnd, ssthresh): (u64, u64)) {
        match self {
            Self::Window(controller) => {
                let window = controller.window_mut();
                let (cwnd, ssthresh) = (cwnd.max(window.cwnd()), ssthresh.max(window.ssthresh()));
                window.set_cwnd(cwnd);
                window.set_ssthresh(ssthresh);
            }
            Self::Rate(bbr) => bbr.on_undo(),
        }
    }

    /// The rate-based control, for the calls that it alone receives.
    pub fn rate_based(&mut self) -> Option<&mut impl RateBased> {
        match self {
            Self::Window(_) => None,
            Self::Rate(bbr) => Some(bbr.as_mut()),
        }
    }

    /// How fast segments leave. `None` if that follows from the window.
    pub fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Window(_) => None,
            Self::Rate(bbr) => Some(bbr.pacing_rate()),
        }
    }

    /// The bottleneck's rate as estimated, payload alone.
    pub fn bottleneck_rate(&self) -> Option<Rate> {
        match self {
            Self::Window(_) => None,
            Self::Rate(bbr) => Some(bbr.bottleneck_rate()),
        }
    }

    /// The smallest number of segments that leave together (net.ipv4.tcp_min_tso_segs).
    #[inline]
    pub fn min_burst(&self) -> u32 {
        match self {
            Self::Window(_) => MIN_TSO_SEGS,
            Self::Rate(bbr) => bbr.min_burst(),
        }
    }
}

/// net.ipv4.tcp_min_tso_segs.
const MIN_TSO_SEGS: u32 = 2;

#[cfg(test)]
mod tests {
    use talkpath_units::Packets;

    use super::*;

    /// RFC 9438 §4.9.2.
    #[test]
    fn what_is_taken_back_never_lowers_the_window() {
        let window = Window::new(Counting::Packets, Packets::new(30), Some(Packets::new(25)));
        let mut control = Controller::new(CongestionControlKind::Cubic, window, false, Seed::new(1));
        control.undo((20, 28));
        assert_eq!((control.window().cwnd(), control.window().ssthresh()), (30, 28));
        control.undo((40, 10));
        assert_eq!((control.window().cwnd(), control.window().ssthresh()), (40, 28));
    }
}
