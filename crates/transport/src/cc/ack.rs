//! What the transport reports of acknowledgements to a congestion control, and what the control allows.

use talkpath_units::{Bytes, Instant, Packets};

/// How much may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// A number of payload bytes.
    Window(Bytes),
    /// A number of packets of any size.
    WindowPackets(Packets),
}

/// An acknowledgement of new data. Amounts are in the controller's unit: bytes, or packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The amount that was newly acknowledged.
    pub acked: u64,
    /// The amount in flight after this acknowledgement.
    pub flight_size: u64,
    /// True if `cwnd` limited the sender, and not the application or the receiver.
    pub cwnd_limited: bool,
    /// When the acknowledgement arrived.
    pub now: Instant,
}

/// The state of the connection when a round trip was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// The first unacknowledged offset after the acknowledgement.
    pub snd_una: u64,
    /// The offset one past the highest one ever sent.
    pub snd_max: u64,
}

/// What an acknowledgement of new data means during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryAck {
    /// Recovery is over.
    Leave,
    /// More was lost: the first unacknowledged segment has to be sent again (RFC 6582 §3.2 step 3).
    Stay,
}
