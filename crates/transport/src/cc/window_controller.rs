//! A window and the algorithm that moves it, with the rules that all algorithms share: the third duplicate
//! acknowledgement and those after it inflate `cwnd`, and a timeout leaves one segment.

use talkpath_config::CongestionControlKind;
use talkpath_units::{Duration, Instant};

use super::cubic::Cubic;
use super::newreno::NewReno;
use super::reno::Reno;
use super::tahoe::Tahoe;
use super::window_based::WindowBased;
use super::{Ack, RecoveryAck, RttSample, Window};

/// A window and the algorithm that moves it.
#[derive(Clone, Debug)]
pub struct WindowController {
    window: Window,
    algorithm: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Tahoe(Tahoe),
    Reno(Reno),
    NewReno(NewReno),
    Cubic(Cubic),
}

macro_rules! each {
    ($any:expr, $algorithm:ident => $call:expr) => {
        match $any {
            Algorithm::Tahoe($algorithm) => $call,
            Algorithm::Reno($algorithm) => $call,
            Algorithm::NewReno($algorithm) => $call,
            Algorithm::Cubic($algorithm) => $call,
        }
    };
}

impl WindowController {
    /// A controller of `kind` with `window`. `is_paced` is true if the transport paces segments.
    ///
    /// # Panics
    /// If `kind` is BBR, which is not window-based.
    pub(super) fn new(kind: CongestionControlKind, window: Window, is_paced: bool) -> Self {
        let algorithm = match kind {
            CongestionControlKind::Tahoe => Algorithm::Tahoe(Tahoe),
            CongestionControlKind::Reno => Algorithm::Reno(Reno),
            CongestionControlKind::NewReno => Algorithm::NewReno(NewReno),
            CongestionControlKind::Cubic => Algorithm::Cubic(Cubic::new(is_paced)),
            CongestionControlKind::Bbr => unreachable!("BBR is rate-based"),
        };
        Self { window, algorithm }
    }

    #[inline]
    pub(super) const fn window(&self) -> &Window {
        &self.window
    }

    #[inline]
    pub(super) const fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Duration, sample: RttSample) {
        each!(&mut self.algorithm, algorithm => algorithm.on_rtt(&mut self.window, rtt, sample));
    }

    #[inline]
    pub(super) fn on_ack(&mut self, ack: Ack) {
        each!(&mut self.algorithm, algorithm => algorithm.on_ack(&mut self.window, ack));
    }

    /// True for Tahoe, which has no fast recovery.
    pub(super) const fn goes_back(&self) -> bool {
        matches!(self.algorithm, Algorithm::Tahoe(_))
    }

    pub(super) fn reduce(&mut self, flight_size: u64) {
        each!(&mut self.algorithm, algorithm => algorithm.reduce(&mut self.window, flight_size));
    }

    pub(super) fn on_third_duplicate(&mut self, flight_size: Option<u64>) {
        if let Some(flight_size) = flight_size {
            self.reduce(flight_size);
        }
        if self.goes_back() {
            self.window.collapse();
        } else {
            self.window.inflate_for_recovery();
        }
    }

    pub(super) const fn on_duplicate_ack(&mut self) {
        self.window.inflate();
    }

    pub(super) fn on_recovery_ack(&mut self, ack: Ack, is_full_ack: bool) -> RecoveryAck {
        each!(&mut self.algorithm, algorithm => algorithm.on_recovery_ack(&mut self.window, ack, is_full_ack))
    }

    /// True for Tahoe and Reno. Reno's fast recovery ends with the first acknowledgement of new data, so each
    /// further loss in the same window begins another recovery.
    pub(super) const fn may_recover_again(&self) -> bool {
        match &self.algorithm {
            Algorithm::Tahoe(_) | Algorithm::Reno(_) => true,
            Algorithm::NewReno(_) | Algorithm::Cubic(_) => false,
        }
    }

    /// Lowers `ssthresh` if the loss is new, and sets `cwnd` to one segment (RFC 5681 §3.1).
    pub(super) fn on_rto(&mut self, flight_size: u64, is_new_loss: bool) {
        if is_new_loss {
            self.reduce(flight_size);
        }
        each!(&mut self.algorithm, algorithm => algorithm.on_timeout());
        self.window.collapse();
    }

    pub(super) fn on_flight_start(&mut self, idle: Duration, now: Instant) {
        each!(&mut self.algorithm, algorithm => algorithm.on_flight_start(idle, now));
    }
}
