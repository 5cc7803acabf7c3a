//! Workloads as state machines: when each message is due and how large it is.
//!
//! | workload | clock | a message |
//! | --- | --- | --- |
//! | [`Voice`] | the codec's | a frame every `ptime` |
//! | [`Cbr`] | `rate` and `size`, without drift | `size` bytes |
//! | [`Bulk`] | none: waits for room | as large as fits |
//! | file, as [`Bulk`] | none | as large as fits, up to `size` |
//! | [`Burst`] | none within a burst, `gap` between bursts | `size` bytes |
//!
//! Nothing is due at or after the stop that [`AnyWorkload::new`] is given. Left out: what the far end does with a
//! message (echo), which is the endpoint's part.

mod bulk;
mod burst;
mod cbr;
mod voice;

use talkpath_transport::Message;
use talkpath_units::{Bytes, Instant};

pub use bulk::Bulk;
pub(crate) use bulk::LEAST_ROOM_BYTES;
pub use burst::Burst;
pub use cbr::Cbr;
pub use voice::Voice;

use crate::WorkloadConfig;

/// A source of messages.
///
/// Clocked workloads (voice, cbr) give a message when its due time has come, whatever `writable` says: what the
/// transport then refuses is recorded as refused. Greedy ones (bulk, burst) give one only where it fits.
pub trait Workload {
    /// The connection is open: the first message is due at `now`.
    fn open(&mut self, now: Instant);
    /// The next message that is due at `now`, given room for `writable` bytes; call until `None`.
    fn poll_message(&mut self, writable: Bytes, now: Instant) -> Option<Message>;
    /// When the next clocked message is due; `None` where the workload waits for room, or has ended.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Whether no message will ever come again.
    fn is_finished(&self) -> bool;
}

/// Any workload: dispatch by match.
#[derive(Clone, Debug)]
pub enum AnyWorkload {
    /// `voice`.
    Voice(Voice),
    /// `cbr`.
    Cbr(Cbr),
    /// `bulk`.
    Bulk(Bulk),
    /// `burst`.
    Burst(Burst),
}

impl AnyWorkload {
    /// The workload that `config` describes, of which nothing is due at or after `stop` (the run's duration).
    pub fn new(config: &WorkloadConfig, stop: Instant) -> Self {
        match *config {
            WorkloadConfig::File { size, .. } => {
                Self::Bulk(Bulk::new(config.transfer_size(), stop).with_largest_message(size))
            }
            WorkloadConfig::Voice { ptime, size, .. } => Self::Voice(Voice::new(ptime, size, stop)),
            WorkloadConfig::Cbr { rate, size } => Self::Cbr(Cbr::new(rate, size, stop)),
            WorkloadConfig::Bulk { bytes } => Self::Bulk(Bulk::new(bytes, stop)),
            WorkloadConfig::Burst { count, size, repeat, gap } => {
                Self::Burst(Burst::new(count, size, repeat, gap, stop))
            }
        }
    }

    /// The same over a transport whose messages are bounded: `bulk` makes none that it would not take, nor waits for more
    /// room than it ever has.
    #[must_use]
    pub fn with_largest_message(self, size: Bytes) -> Self {
        match self {
            Self::Bulk(bulk) => Self::Bulk(bulk.with_largest_message(size)),
            other => other,
        }
    }

    /// How large the message is for which room is waited for, where the workload says it and not the room.
    pub const fn waits_for(&self) -> Option<Bytes> {
        match self {
            Self::Burst(burst) => Some(burst.size()),
            Self::Voice(_) | Self::Cbr(_) | Self::Bulk(_) => None,
        }
    }
}

impl AnyWorkload {
    /// Until when a poll without room changes nothing, and nothing but room is waited for; zero where that is not so.
    pub fn wants_room_until(&self) -> Instant {
        match self {
            Self::Bulk(bulk) => bulk.wants_room_until(),
            Self::Voice(_) | Self::Cbr(_) | Self::Burst(_) => Instant::ZERO,
        }
    }
}

impl Workload for AnyWorkload {
    fn open(&mut self, now: Instant) {
        match self {
            Self::Voice(workload) => workload.open(now),
            Self::Cbr(workload) => workload.open(now),
            Self::Bulk(workload) => workload.open(now),
            Self::Burst(workload) => workload.open(now),
        }
    }

    #[inline]
    fn poll_message(&mut self, writable: Bytes, now: Instant) -> Option<Message> {
        match self {
            Self::Voice(workload) => workload.poll_message(writable, now),
            Self::Cbr(workload) => workload.poll_message(writable, now),
            Self::Bulk(workload) => workload.poll_message(writable, now),
            Self::Burst(workload) => workload.poll_message(writable, now),
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Voice(workload) => workload.poll_timeout(),
            Self::Cbr(workload) => workload.poll_timeout(),
            Self::Bulk(workload) => workload.poll_timeout(),
            Self::Burst(workload) => workload.poll_timeout(),
        }
    }

    #[inline]
    fn is_finished(&self) -> bool {
        match self {
            Self::Voice(workload) => workload.is_finished(),
            Self::Cbr(workload) => workload.is_finished(),
            Self::Bulk(workload) => workload.is_finished(),
            Self::Burst(workload) => workload.is_finished(),
        }
    }
}
