//! The code that all arenas share: the trait, the errors, and the comparison of two hosts' clocks.
//!
//! - *arena*: a place where a scenario can run: the simulator, the emulator, or the network between two
//!   hosts.
//! - *cell*: one combination of a sweep's values.
//! - *repetition*: one run of a cell, with a seed of its own.
//! - *far host*: the second of two hosts. Its *stamps* are times that it reads off its own clock.
//! - *probe*: a packet there and back with the four stamps of both hosts (RFC 5905 §8).
//! - *our clock*: the clock of this host, the first of two hosts.
//! - *bound*: the most by which the far clock can be ahead of ours, or behind ours, according to one probe.
//! - *offset*: the far clock minus ours, as a straight line over the run. The line lies between all bounds.
//! - *session*: one of the runs that a monitor makes one after the other.
//! - *outage*: a time in which no session of a monitor could begin.
//!
//! Begin to read with [`Arena`]. The drawing of the bounds is in `offset.rs`.

pub mod far_clock;
pub mod links;
mod monitor;
pub mod offset;

use core::sync::atomic::AtomicBool;

use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_model::Scenario;
use talkpath_units::{Instant, Seed};

pub use monitor::{MonitorEvent, MonitorSession};

/// The plan of one repetition of one cell.
#[derive(Clone, Copy)]
pub struct RunPlan<'a> {
    /// The index of the cell in the sweep.
    pub cell: u64,
    /// The number of the repetition, from 0.
    pub repetition: u64,
    /// The seed of the repetition.
    pub seed: Seed,
    /// The number of points in which state over time is recorded. With `None` the record has no state over
    /// time. A live host samples its state in both cases.
    pub series: Option<SeriesDetail>,
    /// True if the arena has to keep a row for each message. Without rows, some arenas keep a
    /// [`talkpath_measure::FlowTally`] instead, so that the memory does not grow with the run. The other
    /// arenas keep their rows in both cases.
    pub rows: bool,
    /// Becomes true when the user wants to stop. The arena then ends the run and returns what it has
    /// measured.
    pub interrupt: &'a AtomicBool,
    /// The arena calls this function now and then with the time since the run's beginning.
    pub progress: &'a (dyn Fn(Instant) + Sync),
}

/// A place where a scenario can run.
pub trait Arena {
    /// Runs one repetition of `scenario`, and returns its record.
    ///
    /// # Errors
    /// Returns [`ArenaError`] if the arena cannot run the scenario, or if the run was cut short. If something
    /// was measured until then, the error holds it.
    fn run(&mut self, scenario: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError>;

    /// Returns the log of the last run's arrivals at the path, with the decision on each arrival. Only an
    /// arena whose decisions can be computed again from the log has one (`talkpath replay`). A second call
    /// returns `None`.
    fn take_arrival_log(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Returns the instant zero of the last run by this host's clock, in ns since 1970. Only an arena whose
    /// runs begin some time after the call of [`Arena::run`] has it. A second call returns `None`.
    fn take_start_ns(&mut self) -> Option<i64> {
        None
    }

    /// Returns the last run's packets as pcapng, if the arena was told to keep them. A second call returns
    /// `None`.
    fn take_capture(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Returns what the near ends of the last run's QUIC connections logged, as qlog, if the arena was told
    /// to keep it and there was such a connection. A second call returns `None`.
    fn take_qlog(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// The reason why a run did not reach its end.
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
    /// The far end answers, but it refuses this host or this host refuses it. The keys differ, only one side
    /// has a key, or the versions differ. Waiting does not change that.
    #[error("{0}")]
    Unwelcome(String),
    /// The user stopped the run.
    #[error("interrupted")]
    Interrupted {
        /// What was measured until then.
        partial: Option<Box<RunRecord>>,
    },
}

/// The words that tell the user where the system's limits of threads are.
pub const NO_THREAD_HELP: &str =
    "see the limits of this user's processes (ulimit -u) and of the control group (pids.max)";

impl ArenaError {
    /// Makes the error for a far end that failed before anything was measured.
    pub fn far_end(what: String) -> Self {
        Self::FarEnd { what, partial: None }
    }

    /// Makes the error for a thread that cannot be started. `error` is the system's error.
    pub fn no_thread(error: impl core::fmt::Display) -> Self {
        Self::Unavailable { what: format!("cannot start a thread: {error}"), how: NO_THREAD_HELP.to_owned() }
    }
}
