//! Congestion control: how much may be in flight, and what losses and acknowledgements do to that.
//!
//! A controller owns `cwnd` and `ssthresh` and hears what happened; which segments to send, and when fast recovery
//! begins, is the transport's. One algorithm a file; dispatch is a closed enum. CUBIC (RFC 9438) has its place in
//! [`Controller::new`] and as a file of its own.

mod newreno;
mod reno;
mod window;

use talkpath_units::{Bytes, Packets};

pub use newreno::NewReno;
pub use reno::Reno;
pub use window::{Counting, Window};

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
    fn allowance(&self) -> Allowance;
    /// The window's state.
    fn window(&self) -> &Window;
    /// New data was acknowledged outside fast recovery.
    fn on_ack(&mut self, ack: Ack);
    /// The third duplicate acknowledgement told of a loss with `flight_size` in flight: fast recovery begins.
    fn on_loss(&mut self, flight_size: u64);
    /// One more duplicate acknowledgement during fast recovery: a segment has left the network.
    fn on_duplicate_ack(&mut self);
    /// New data was acknowledged during fast recovery; `full` when all that was sent before the loss was noticed is.
    fn on_recovery_ack(&mut self, ack: Ack, full: bool) -> RecoveryAck;
    /// Whether losses below the point that the last recovery ended at may begin another one.
    fn may_recover_again(&self) -> bool;
    /// The retransmission timer fired with `flight_size` in flight; `first` unless it fired for this data before.
    fn on_rto(&mut self, flight_size: u64, first: bool);
    /// Nothing was sent for longer than an RTO and something is about to be.
    fn on_idle(&mut self);
}

/// Any congestion control.
#[derive(Clone, Debug)]
pub enum Controller {
    /// RFC 5681.
    Reno(Reno),
    /// RFC 6582.
    NewReno(NewReno),
}

impl Controller {
    /// The controller of `kind` over a fresh `window`.
    ///
    /// CUBIC is not here yet: it runs as NewReno, and the arena that would show it refuses it before.
    pub const fn new(kind: CongestionControlKind, window: Window) -> Self {
        match kind {
            CongestionControlKind::Reno => Self::Reno(Reno::new(window)),
            CongestionControlKind::NewReno | CongestionControlKind::Cubic => {
                Self::NewReno(NewReno::new(window))
            }
        }
    }
}

macro_rules! each {
    ($any:expr, $controller:ident => $call:expr) => {
        match $any {
            Controller::Reno($controller) => $call,
            Controller::NewReno($controller) => $call,
        }
    };
}

impl CongestionControl for Controller {
    #[inline]
    fn allowance(&self) -> Allowance {
        each!(self, controller => controller.allowance())
    }

    #[inline]
    fn window(&self) -> &Window {
        each!(self, controller => controller.window())
    }

    #[inline]
    fn on_ack(&mut self, ack: Ack) {
        each!(self, controller => controller.on_ack(ack));
    }

    fn on_loss(&mut self, flight_size: u64) {
        each!(self, controller => controller.on_loss(flight_size));
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

    fn on_idle(&mut self) {
        each!(self, controller => controller.on_idle());
    }
}
