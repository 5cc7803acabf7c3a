//! What every arena shares: the trait, the errors, and the comparison of two hosts' clocks.
//!
//! - *arena*: a place where a scenario can run: the simulator, the emulator, or the network between two
//!   hosts.
//! - *cell*: one combination of a sweep's values; *repetition*: one run of a cell, with a seed of its own.
//! - *far host*: the second of two hosts. Its *stamps* are times that it reads off its own clock.
//! - *probe*: a packet there and back with the four stamps of both hosts (RFC 5905 §8).
//! - *bound*: how far the far clock can be ahead or behind at most, by one probe.
//! - *offset*: the far clock minus ours, a straight line over the run. It lies between all bounds.
//! - *session*, *outage*: a monitor makes one run after the other, each a session; in an outage none could
//!   begin.
//!
//! Begin to read with [`Arena`]; `offset.rs` has the picture of the bounds.

pub mod far_clock;
pub mod links;
mod monitor;
pub mod offset;

use core::sync::atomic::AtomicBool;

use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_model::Scenario;
use talkpath_units::{Instant, Seed};

pub use monitor::{Happening, MonitorSession};

/// One repetition of one cell, to be run.
#[derive(Clone, Copy)]
pub struct RunPlan<'a> {
    /// Index of the cell in the sweep.
    pub cell: u64,
    /// Repetition, from 0.
    pub repetition: u64,
    /// The repetition's own seed.
    pub seed: Seed,
    /// Whether state over time is recorded, and in how many points. Live hosts sample theirs in either case.
    pub series: Option<SeriesDetail>,
    /// Whether a row a message is kept. An arena that can do without keeps a [`talkpath_measure::FlowTally`]
    /// instead, and memory does not grow with the run; the others keep their rows.
    pub rows: bool,
    /// Becomes true when the user wants to stop; the arena then ends the run and returns what it has.
    pub interrupt: &'a AtomicBool,
    /// Called now and then with the run's own time.
    pub progress: &'a (dyn Fn(Instant) + Sync),
}

/// A place where a scenario can run.
pub trait Arena {
    /// Runs one repetition.
    ///
    /// # Errors
    /// [`ArenaError`] says what is missing, wrong or gone; what was measured before a far end went away is in
    /// it.
    fn run(&mut self, scenario: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError>;

    /// The last run's arrivals at its path and what became of them, once, if the arena owns a path whose
    /// decisions can be computed again from them (`talkpath replay`).
    fn take_arrival_log(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// The last run's packets as pcapng, once, if the arena was set to keep them.
    fn take_capture(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// The scenario needs something that this arena cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The arena is not available on this machine.
    #[error("{what}; {how}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// How to get it.
        how: String,
    },
    /// The far end failed or went away.
    #[error("{what}")]
    FarEnd {
        /// What happened.
        what: String,
        /// What was measured until then.
        partial: Option<Box<RunRecord>>,
    },
    /// The far end is there, and it and this host will not talk: the keys differ, one has none, or they speak
    /// other versions. Waiting does not change that.
    #[error("{0}")]
    Unwelcome(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted {
        /// What was measured until then.
        partial: Option<Box<RunRecord>>,
    },
}

/// Where the system's limits of threads are.
pub const NO_THREAD_HELP: &str =
    "see the limits of this user's processes (ulimit -u) and of the control group (pids.max)";

impl ArenaError {
    /// The far end failed before anything was measured.
    pub fn far_end(what: String) -> Self {
        Self::FarEnd { what, partial: None }
    }

    /// It cannot go on for want of a thread; `error` is the system's.
    pub fn no_thread(error: impl core::fmt::Display) -> Self {
        Self::Unavailable {
            what: format!("this host gives no thread: {error}"),
            how: NO_THREAD_HELP.to_owned(),
        }
    }
}
