//! What the ends of a simulated flow exchange with the network.

use talkpath_units::Ecn;
use talkpath_wire::{Outlet, Packet};

/// What a step of an end exchanges with the network: the packet that has arrived, if one has, and those that
/// leave.
pub(crate) trait Exchange: Outlet {
    /// The packet that has arrived and was not taken in yet.
    fn arrived(&self) -> Option<(&Packet, Ecn)>;
    /// It was taken in, and is no longer needed.
    fn release(&mut self);
}
