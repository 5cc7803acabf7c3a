//! What an application measures of the real host that it runs on: simulated hosts are on time.

use talkpath_units::{Histogram, Instant};

use crate::turn_round::TurnRounds;

/// How late the host handed over clocked messages, how long it held what it echoed, and when something last
/// came.
#[derive(Debug, Default)]
pub struct HostMeter {
    pub(super) lateness: Histogram,
    pub(super) turn_rounds: TurnRounds,
    pub(super) last_arrival: Instant,
}

impl HostMeter {
    /// How late clocked messages were handed over.
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// How long echoes were held.
    pub fn turn_rounds(&self) -> &TurnRounds {
        &self.turn_rounds
    }

    /// When something last arrived.
    pub fn last_arrival(&self) -> Instant {
        self.last_arrival
    }
}
