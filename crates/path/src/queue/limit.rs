//! How much may wait in a queue.

use talkpath_units::{Bytes, Packets};

/// The room of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This many packets, whatever their size.
    Packets(Packets),
    /// Packets of this many bytes in all, IP headers included.
    Bytes(Bytes),
}

impl QueueLimit {
    /// Whether a queue may hold this many packets of this many bytes in all.
    #[inline]
    pub(crate) fn holds(self, packets: u64, bytes: Bytes) -> bool {
        match self {
            Self::Packets(limit) => packets <= limit.get(),
            Self::Bytes(limit) => bytes <= limit,
        }
    }
}
