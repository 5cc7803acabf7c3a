//! What links and queues see of a packet.

use core::fmt::Debug;

use talkpath_units::{Bytes, Ecn};

use crate::dscp::Dscp;

/// What the owner of packets may know them by: anything small that can be copied and printed.
pub trait Tag: Copy + Debug + Send + 'static {}

impl<T: Copy + Debug + Send + 'static> Tag for T {}

/// A packet as a router sees it: the fields of its IP header that decide what becomes of it.
pub trait Carried: Tag {
    /// Bytes of the IPv4 packet, header included.
    fn wire_size(&self) -> Bytes;

    /// Packets of one flow that travel in one direction have the same number (RFC 8290 §4.1: the five-tuple).
    fn flow_id(&self) -> u32;

    /// The DSCP, by which disciplines with classes tell packets apart. By default a packet has none.
    fn dscp(&self) -> Dscp {
        Dscp::BEST_EFFORT
    }

    /// The ECN field.
    fn ecn(&self) -> Ecn;

    /// Sets the ECN field to Congestion Experienced.
    fn set_ce(&mut self);

    /// Notes that a wire damaged the packet, and that the link did not notice.
    fn damage(&mut self) {}

    /// Marks the packet instead of dropping it (RFC 3168 §5). Returns false, and changes nothing, if its
    /// transport takes no marks.
    fn mark(&mut self) -> bool {
        match self.ecn() {
            Ecn::NotEct => return false,
            Ecn::Ect0 | Ecn::Ect1 => self.set_ce(),
            Ecn::Ce => {}
        }
        true
    }
}

/// A packet that a queue dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<T> {
    /// The packet.
    pub packet: T,
    /// Why.
    pub cause: DropCause,
}

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue had no room for it.
    QueueFull,
    /// The discipline dropped it to signal congestion (active queue management, RFC 7567).
    Congestion,
}
