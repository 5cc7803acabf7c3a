//! The closed enum over all workloads: dispatch by match.

use talkpath_scenario::WorkloadConfig;
use talkpath_transport::Message;
use talkpath_units::{Bytes, Instant};

use super::bulk::Bulk;
use super::burst::Burst;
use super::cbr::Cbr;
use super::source::Workload;
use super::voice::Voice;

/// Any workload.
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

    /// The same over a transport whose messages are bounded: `bulk` makes none that it would not take, nor
    /// waits for more room than it ever has.
    #[must_use]
    pub fn with_largest_message(self, size: Bytes) -> Self {
        match self {
            Self::Bulk(bulk) => Self::Bulk(bulk.with_largest_message(size)),
            other => other,
        }
    }

    /// Whether messages come on a clock, whatever the room.
    #[inline]
    pub const fn is_clocked(&self) -> bool {
        matches!(self, Self::Voice(_) | Self::Cbr(_))
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
    /// Until when a poll without room changes nothing, and nothing but room is waited for; zero where that is
    /// not so.
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
