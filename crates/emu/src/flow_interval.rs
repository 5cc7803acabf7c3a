//! What happened to a flow of a program in an interval of the run.

use talkpath_units::{Duration, Instant};

/// The packets of one direction of a conversation in an interval. Each event counts in the interval in which
/// it happened: a packet may be sent in one interval and received in the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInterval {
    /// The name of the flow in the record.
    pub flow: String,
    /// The beginning of the interval, from the beginning of the run.
    pub from: Instant,
    /// The end of the interval.
    pub to: Instant,
    /// The number of packets that entered the path.
    pub sent: u64,
    /// The bytes of these packets, with their IP headers.
    pub bytes: u64,
    /// The number of packets that were handed to the other host.
    pub received: u64,
    /// The number of packets that the path dropped or lost.
    pub lost: u64,
    /// The mean time in the queue of the packets whose service began. `None` if there were none.
    pub mean_wait: Option<Duration>,
    /// The longest time in the queue of these packets.
    pub longest_wait: Option<Duration>,
}
