//! Workloads as state machines: when each message is due and how large it is.
//!
//! | workload | clock | a message |
//! | --- | --- | --- |
//! | [`Voice`] | the codec's | the speech of each `ptime`, or of talkspurts alone |
//! | [`Cbr`] | `rate` and the mean size, without drift | `size` bytes, or drawn for each message |
//! | [`Bulk`] | none: waits for room | as large as fits |
//! | file, as [`Bulk`] | none | as large as fits, up to `size` |
//! | [`Burst`] | none within a burst, `gap` between bursts | `size` bytes |
//!
//! [`AnyWorkload`] is any workload: dispatch is by match.
//!
//! Nothing is due at or after the stop that [`AnyWorkload::new`] is given. Left out: what the far end does
//! with a message (echo), which is the application's part.

mod bulk;
mod burst;
mod cbr;
mod source;
mod voice;

use talkpath_model::WorkloadConfig;
use talkpath_units::{Bytes, Instant, Seed};
use talkpath_wire::Message;

pub use bulk::Bulk;
pub use burst::Burst;
pub use cbr::Cbr;
pub use source::{Awaits, Workload};
pub use voice::Voice;

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
    /// The workload that `config` describes. Nothing is due at or after `stop` (the run's duration). What it
    /// draws, it draws from `seed`.
    pub fn new(config: &WorkloadConfig, seed: Seed, stop: Instant) -> Self {
        match *config {
            WorkloadConfig::File { size, .. } => {
                Self::Bulk(Bulk::new(config.transfer_size(), stop).with_largest_message(size))
            }
            WorkloadConfig::Voice(ref voice) => Self::Voice(Voice::new(voice, seed, stop)),
            WorkloadConfig::Cbr { rate, size } => Self::Cbr(Cbr::new(rate, size, seed, stop)),
            WorkloadConfig::Bulk { bytes } => Self::Bulk(Bulk::new(bytes, stop)),
            WorkloadConfig::Burst { count, size, repeat, gap } => {
                Self::Burst(Burst::new(count, size, repeat, gap, stop))
            }
        }
    }

    /// Whether messages come on a clock, whatever the room.
    #[inline]
    pub fn is_clocked(&self) -> bool {
        self.awaits() == Awaits::Clock
    }
}

macro_rules! each {
    ($any:expr, $workload:ident => $call:expr) => {
        match $any {
            AnyWorkload::Voice($workload) => $call,
            AnyWorkload::Cbr($workload) => $call,
            AnyWorkload::Bulk($workload) => $call,
            AnyWorkload::Burst($workload) => $call,
        }
    };
}

impl Workload for AnyWorkload {
    #[inline]
    fn awaits(&self) -> Awaits {
        each!(self, workload => workload.awaits())
    }

    fn limit_messages(&mut self, size: Bytes) {
        each!(self, workload => workload.limit_messages(size));
    }

    #[inline]
    fn wants_room_until(&self) -> Instant {
        each!(self, workload => workload.wants_room_until())
    }

    fn open(&mut self, now: Instant) {
        each!(self, workload => workload.open(now));
    }

    #[inline]
    fn poll_message(&mut self, writable: Bytes, now: Instant) -> Option<Message> {
        each!(self, workload => workload.poll_message(writable, now))
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, workload => workload.poll_timeout())
    }

    #[inline]
    fn is_finished(&self) -> bool {
        each!(self, workload => workload.is_finished())
    }
}

#[cfg(test)]
mod tests {
    use talkpath_model::MessageSize;
    use talkpath_units::{Duration, Rate};

    use super::*;

    #[test]
    fn the_machine_waits_for_a_clock_if_its_configuration_says_so_and_makes_messages_of_its_sizes() {
        let size = Bytes::new(160);
        let drawn = MessageSize::Uniform { min: Bytes::new(8), max: size };
        let configs = [
            WorkloadConfig::G711,
            WorkloadConfig::Cbr { rate: Rate::from_bps(64_000), size: size.into() },
            WorkloadConfig::Cbr { rate: Rate::from_bps(64_000), size: drawn },
            WorkloadConfig::Bulk { bytes: None },
            WorkloadConfig::Burst { count: 2, size, repeat: 1, gap: Duration::ZERO },
            WorkloadConfig::File { source: String::new(), bytes: size, size, header: Bytes::new(8) },
        ];
        for config in configs {
            let mut workload = AnyWorkload::new(&config, Seed::new(1), Instant::from_secs(1));
            assert_eq!(workload.is_clocked(), config.is_clocked(), "{config:?}");
            workload.open(Instant::ZERO);
            let room = if workload.is_clocked() { Bytes::ZERO } else { Bytes::MAX };
            let message = workload.poll_message(room, Instant::ZERO).unwrap();
            assert!(config.sizes().is_none_or(|sizes| sizes.allows(message.size)), "{config:?}");
            assert_eq!(workload.poll_message(Bytes::ZERO, Instant::ZERO), None, "{config:?}");
        }
    }
}
