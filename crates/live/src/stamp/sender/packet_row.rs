//! What a sender knows about a packet.

use talkpath_units::Instant;

/// A packet and its first answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketRow {
    /// T1 by the clock of the run. `None` if the socket refused the packet.
    pub(super) t1: Option<Instant>,
    pub(super) answer: Option<Answer>,
    /// The number of answers, with duplicates.
    pub(super) copies: u32,
}

/// An answer of the reflector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The number that the reflector gave to the answer. A stateless reflector copies the number of the
    /// packet.
    pub(super) reflector_sequence: u32,
    /// T2, ns since 1970 by the reflector's clock.
    pub(super) t2_ns: i64,
    /// T3, ns since 1970 by the reflector's clock.
    pub(super) t3_ns: i64,
    /// T4 by the clock of the run.
    pub(super) t4: Instant,
}
