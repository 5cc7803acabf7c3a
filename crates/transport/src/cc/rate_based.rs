//! Controls that pace segments at a rate and set `cwnd` from a model of the path: BBR.
//!
//! They see each segment that leaves and everything that an acknowledgement reports, instead of losses and
//! acknowledged amounts alone.

use talkpath_units::{Duration, Instant, Rate};

/// What the transport reports to a rate-based control. Amounts are in segments.
pub trait RateBased {
    /// The handshake is done, and data may flow.
    fn begin(&mut self, initial: InitialState);
    /// The application writes after it had left room in `cwnd`, with `in_flight` segments in flight: what is
    /// delivered until then says nothing of the path's rate.
    fn on_app_limited(&mut self, in_flight: u64);
    /// A segment leaves.
    fn on_sent(&mut self, sent: SentSegment);
    /// An acknowledgement was processed.
    fn on_feedback(&mut self, feedback: &Feedback);
    /// A loss was found, and recovery begins.
    fn on_loss(&mut self);
    /// The retransmission timer expired. `first` unless it had expired for the same data before.
    /// `total_losses` as in [`Feedback`], those of this timeout included.
    fn on_rto(&mut self, first: bool, total_losses: u64);
    /// A reduction was needless.
    fn on_undo(&mut self);
    /// Data is about to leave with nothing in flight.
    fn on_flight_start(&mut self, now: Instant);
    /// How fast segments leave.
    fn pacing_rate(&self) -> Rate;
    /// The bottleneck's rate as estimated, payload alone.
    fn bottleneck_rate(&self) -> Rate;
    /// The smallest number of segments that leave together.
    fn min_burst(&self) -> u32;
}

/// What a connection knows when data may flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialState {
    /// When that is.
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
    /// When it leaves.
    pub now: Instant,
    /// One past its last offset.
    pub end: u64,
    /// True if nothing else is unacknowledged.
    pub is_alone: bool,
}

/// What the sender does about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Open,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Loss,
}

/// Everything that an acknowledgement reported. Amounts are in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// When it arrived.
    pub now: Instant,
    /// Newly acknowledged or selectively acknowledged.
    pub delivered: u64,
    /// Newly marked as lost.
    pub losses: u64,
    /// How often a segment was marked as lost since the connection began, also by timers between two
    /// acknowledgements (Linux: tp->lost).
    pub total_losses: u64,
    /// One past the last offset of the delivered segment that was sent last.
    pub newest: Option<u64>,
    /// The first unacknowledged offset.
    pub snd_una: u64,
    /// In flight before it.
    pub prior_in_flight: u64,
    /// In flight after it.
    pub in_flight: u64,
    /// The round trip that it measured.
    pub rtt: Option<Duration>,
    /// True if the far end may have delayed it: it acknowledges one small segment alone.
    pub is_ack_delayed: bool,
    /// The shortest round trip of the last minutes.
    pub min_rtt: Duration,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// What the sender does about losses after it.
    pub phase: Phase,
    /// When pacing lets the next segment leave.
    pub departs: Instant,
}
