//! An acknowledgement as recovery reads it.

use talkpath_units::Duration;

use crate::tcp::offset_range::OffsetRange;

/// An acknowledgement, in offsets.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct IncomingAck {
    /// All offsets before this one have arrived.
    pub(in crate::tcp) ack: u64,
    /// The blocks of the SACK option. Only the first `block_count` are valid.
    pub(in crate::tcp) blocks: [OffsetRange; 3],
    pub(in crate::tcp) block_count: usize,
    /// The timestamp that the segment echoes. `None` without timestamps.
    pub(in crate::tcp) echo: Option<u32>,
    /// The round trip that `echo` measures.
    pub(in crate::tcp) echo_rtt: Option<Duration>,
    /// True if the segment carries data.
    pub(in crate::tcp) has_data: bool,
    /// True if the segment changed the send window.
    pub(in crate::tcp) is_window_update: bool,
    /// True if the segment has ECE: it echoes a CE mark (RFC 3168 §6.1.3).
    pub(in crate::tcp) echoes_mark: bool,
}
