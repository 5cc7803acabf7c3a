//! Controls that pace segments at a rate and set `cwnd` from a model of the path: BBR.
//!
//! A rate-based control sees each segment that leaves and everything that an acknowledgement reports. A
//! window-based control sees losses and acknowledged amounts alone.

use talkpath_units::{Duration, Instant, Rate};

/// What the transport reports to a rate-based control. Amounts are in segments.
pub trait RateBased {
    /// The handshake is done, and data may flow.
    fn begin(&mut self, initial: InitialState);
    /// The application writes again after a time in which it did not fill `cwnd`. The `in_flight` segments
    /// were sent at the application's rate, so their delivery does not show the path's rate.
    fn on_app_limited(&mut self, in_flight: u64);
    /// A segment leaves.
    fn on_sent(&mut self, sent: SentSegment);
    /// An acknowledgement was processed.
    fn on_feedback(&mut self, feedback: &Feedback);
    /// A loss was found, and recovery begins.
    fn on_loss(&mut self);
    /// The retransmission timer expired. `is_new_loss` is false if the timeout belongs to a loss that was
    /// reported before. `total_losses` is that of [`Feedback`], and contains the losses of this timeout.
    fn on_rto(&mut self, is_new_loss: bool, total_losses: u64);
    /// The last recovery was needless.
    fn on_undo(&mut self);
    /// Data is about to leave with nothing in flight.
    fn on_flight_start(&mut self, now: Instant);
    /// Returns the rate at which segments leave.
    fn pacing_rate(&self) -> Rate;
    /// Returns the estimate of the bottleneck's rate, payload alone.
    fn bottleneck_rate(&self) -> Rate;
    /// Returns the smallest number of segments that leave together.
    fn min_burst(&self) -> u32;
}

/// What a connection knows when the handshake is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialState {
    /// When the handshake was done.
    pub now: Instant,
    /// Payload bytes of a full segment.
    pub smss: u32,
    /// The smoothed round trip of the handshake, if it was measured.
    pub srtt: Option<Duration>,
    /// The shortest round trip, if one was measured.
    pub min_rtt: Option<Duration>,
}

/// A segment that leaves, for the first time or again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentSegment {
    /// When the segment leaves.
    pub now: Instant,
    /// The offset one past the segment's last one.
    pub end: u64,
    /// True if no other segment is unacknowledged.
    pub is_alone: bool,
}

/// What the sender does about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Loss,
}

/// Everything that an acknowledgement reported. Amounts are in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// The number of segments that it acknowledged or selectively acknowledged for the first time.
    pub delivered: u64,
    /// The number of segments that it caused to be marked as lost.
    pub losses: u64,
    /// How often a segment was marked as lost since the connection began, also by timers between two
    /// acknowledgements (Linux: tp->lost).
    pub total_losses: u64,
    /// The offset at which the newest delivered segment ends, which is the one that was sent last. `None` if
    /// nothing was delivered, or only retransmissions whose originals may have arrived instead.
    pub newest: Option<u64>,
    /// The first unacknowledged offset.
    pub snd_una: u64,
    /// The segments in flight before the acknowledgement.
    pub prior_in_flight: u64,
    /// The segments in flight after the acknowledgement.
    pub in_flight: u64,
    /// The round trip that the acknowledgement measured. `None` if it measured none.
    pub rtt: Option<Duration>,
    /// True if the far end may have delayed the acknowledgement, because it is for one small segment alone.
    pub is_ack_delayed: bool,
    /// The shortest round trip of the last minutes.
    pub min_rtt: Duration,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// What the sender does about losses after the acknowledgement.
    pub phase: Phase,
    /// When pacing lets the next segment leave.
    pub departs: Instant,
}
