//! Congestion control: how much may be in flight, and how losses and acknowledgements change that amount.
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

/// The window before a reduction, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorWindow {
    /// `cwnd` before the reduction.
    pub cwnd: u64,
    /// `ssthresh` before the reduction.
    pub ssthresh: u64,
}

impl Controller {
    /// A controller of `kind` with a fresh `window`, which has to count packets for CUBIC and BBR. `is_paced`
    /// is true if the transport paces segments. The random choices of BBR follow from `seed`.
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

    /// The window: `cwnd` and `ssthresh`.
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

    /// True for Tahoe, which sends everything in flight again after the third duplicate acknowledgement, as
    /// after a timeout.
    pub const fn goes_back(&self) -> bool {
        matches!(self, Self::Window(controller) if controller.goes_back())
    }

    /// The third duplicate acknowledgement came with `flight_size` in flight: `ssthresh` falls, and `cwnd` is
    /// inflated by the three segments that have left the network (RFC 5681 §3.2 steps 2 and 3). `None` if a
    /// congestion mark on the same window has lowered `ssthresh` already.
    pub fn on_third_duplicate(&mut self, flight_size: Option<u64>) {
        match self {
            Self::Window(controller) => controller.on_third_duplicate(flight_size),
            Self::Rate(bbr) => bbr.on_loss(),
        }
    }

    /// SACK or RACK found a loss, or a congestion mark was echoed: `ssthresh` falls. The caller moves `cwnd`.
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

    /// New data was acknowledged during fast recovery. The acknowledgement is full (`is_full_ack`) if it is
    /// for everything that was sent before the loss was noticed, and otherwise partial (RFC 6582 §3.2).
    pub fn on_recovery_ack(&mut self, ack: Ack, is_full_ack: bool) -> RecoveryAck {
        match self {
            Self::Window(controller) => controller.on_recovery_ack(ack, is_full_ack),
            Self::Rate(_) if is_full_ack => RecoveryAck::Leave,
            Self::Rate(_) => RecoveryAck::Stay,
        }
    }

    /// True if losses below the end of the last recovery may begin a further one. RFC 6582 §3.2 step 1
    /// forbids it.
    pub const fn may_recover_again(&self) -> bool {
        matches!(self, Self::Window(controller) if controller.may_recover_again())
    }

    /// The retransmission timer expired with `flight_size` in flight. `is_new_loss` is false if `ssthresh`
    /// was lowered for the same loss before. Segments were marked as lost `total_losses` times since the
    /// connection began, those of this timeout included.
    pub fn on_rto(&mut self, flight_size: u64, is_new_loss: bool, total_losses: u64) {
        match self {
            Self::Window(controller) => controller.on_rto(flight_size, is_new_loss),
            Self::Rate(bbr) => bbr.on_rto(is_new_loss, total_losses),
        }
    }

    /// Data is about to leave after an `idle` time that is longer than `rto` (RFC 5681 §4.1). BBR keeps its
    /// window, because pacing prevents a burst.
    pub fn on_idle(&mut self, idle: Duration, rto: Duration) {
        if let Self::Window(controller) = self {
            controller.window_mut().restart(idle, rto);
        }
    }

    /// Data is about to leave with nothing in flight. The last data left `idle` ago.
    pub fn on_flight_start(&mut self, idle: Duration, now: Instant) {
        match self {
            Self::Window(controller) => controller.on_flight_start(idle, now),
            Self::Rate(bbr) => bbr.on_flight_start(now),
        }
    }

    /// Undoes a needless reduction: raises `cwnd` and `ssthresh` to their values before it (RFC 5682,
    /// RFC 3522). Neither falls.
    pub fn undo(&mut self, prior: PriorWindow) {
        match self {
            Self::Window(controller) => {
                let window = controller.window_mut();
                window.set_cwnd(prior.cwnd.max(window.cwnd()));
                window.set_ssthresh(prior.ssthresh.max(window.ssthresh()));
            }
            Self::Rate(bbr) => bbr.on_undo(),
        }
    }

    /// The rate-based control. `None` for a window-based one.
    pub fn rate_based(&mut self) -> Option<&mut impl RateBased> {
        match self {
            Self::Window(_) => None,
            Self::Rate(bbr) => Some(bbr.as_mut()),
        }
    }

    /// The rate at which segments leave. `None` for a window-based control, whose pacing follows from `cwnd`.
    pub fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Window(_) => None,
            Self::Rate(bbr) => Some(bbr.pacing_rate()),
        }
    }

    /// The estimate of the bottleneck's rate, payload alone. `None` for a window-based control.
    pub fn bottleneck_rate(&self) -> Option<Rate> {
        match self {
            Self::Window(_) => None,
            Self::Rate(bbr) => Some(bbr.bottleneck_rate()),
        }
    }

    /// The smallest number of segments that leave together.
    #[inline]
    pub fn min_burst(&self) -> u32 {
        match self {
            Self::Window(_) => MIN_TSO_SEGS,
            Self::Rate(bbr) => bbr.min_burst(),
        }
    }
}

/// The smallest number of segments in a burst (Linux: net.ipv4.tcp_min_tso_segs).
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
        control.undo(PriorWindow { cwnd: 20, ssthresh: 28 });
        assert_eq!((control.window().cwnd(), control.window().ssthresh()), (30, 28));
        control.undo(PriorWindow { cwnd: 40, ssthresh: 10 });
        assert_eq!((control.window().cwnd(), control.window().ssthresh()), (40, 28));
    }
}
