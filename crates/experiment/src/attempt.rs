//! One attempt at a repetition of an experiment.
//!
//! ```text
//!   wait until the machine has processor time to spare ─► run ─► was the machine late? ─► AttemptResult
//! ```
//!
//! In real time the program measures the path with the clock of the machine. If the machine is too busy, it
//! is late, and the figures describe the machine and not the path: the attempt is *disturbed*. The caller
//! then decides whether the repetition runs again.
//!
//! Begin to read with [`Attempts::run`].

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chrono::{DateTime, Utc};
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::Scenario;
use talkpath_units::{Duration, Instant};

use crate::observer::{Event, Observer};
use crate::place::Worker;
use crate::room::{Room, Treatment, packets_per_s, processor_share};
use crate::run_dir::PartId;

/// What the record of a repetition contains beside its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordContents {
    /// How the states over time are sampled; `None` if the record has no states over time.
    pub series: Option<SeriesDetail>,
    /// Whether the record has a row for each message.
    pub rows: bool,
}

/// What all attempts of one pass share.
pub(crate) struct Attempts<'a> {
    observer: &'a dyn Observer,
    /// Admits a run once the machine has enough processor time to spare. `None` in virtual time, where a slow
    /// machine does not change the figures.
    room: Option<Room>,
    stop: &'a AtomicBool,
}

/// The repetition to run, and what is known about it before it runs.
#[derive(Clone, Copy)]
pub(crate) struct AttemptPlan<'a> {
    pub(crate) id: PartId,
    pub(crate) scenario: &'a Scenario,
    pub(crate) contents: RecordContents,
    /// Returns false if the machine was so late that the figures of a record do not describe the path.
    pub(crate) is_usable: &'a dyn Fn(&RunRecord) -> bool,
    /// The packets per second that the emulator carried in an earlier repetition of the cell; `None` if there
    /// was none, so that the rate is estimated from the scenario.
    pub(crate) packets_per_s: Option<f64>,
    /// How many other runs are allowed during the attempt. It has no effect in virtual time.
    pub(crate) max_other_runs: u64,
}

pub(crate) struct AttemptResult<'a> {
    /// The record of the run, or why there is none.
    pub(crate) outcome: Result<RunRecord, ArenaError>,
    /// Whether the machine disturbed the run. `Undisturbed` if the run failed, because an error says nothing
    /// about the machine.
    pub(crate) treatment: Treatment,
    /// The largest number of other runs during the attempt. 0 in virtual time, and if the run failed.
    pub(crate) other_runs: u64,
    /// The date and time at the run's instant zero.
    pub(crate) began: DateTime<Utc>,
    /// The caller calls [`PathClock::finish`] if the repetition ran to its end.
    pub(crate) path_clock: PathClock<'a>,
}

impl<'a> Attempts<'a> {
    /// `concurrent_runs` is the largest number of runs at the same time in real time, and `None` in virtual
    /// time. The attempts end early once `stop` is true.
    pub(crate) fn new(
        observer: &'a dyn Observer,
        concurrent_runs: Option<usize>,
        stop: &'a AtomicBool,
    ) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let room = concurrent_runs.map(|most| Room::new(most, processors));
        Self { observer, room, stop }
    }

    /// Runs a repetition once. Returns `None` if the user stopped the attempt before it began.
    pub(crate) fn run(&self, worker: &mut Worker, attempt: AttemptPlan<'_>) -> Option<AttemptResult<'_>> {
        let AttemptPlan { id, scenario, contents, is_usable, .. } = attempt;
        let admitted_run = match &self.room {
            Some(room) => {
                let rate = attempt.packets_per_s.unwrap_or_else(|| packets_per_s(scenario));
                // `enter` returns `None` if the user stops the attempt while it waits.
                Some(room.enter(processor_share(rate), attempt.max_other_runs, self.stop)?)
            }
            None if self.stop.load(Ordering::Relaxed) => return None,
            None => None,
        };

        let path_clock = PathClock {
            observer: self.observer,
            reached_ms: AtomicU64::new(0),
            end_ms: scenario.duration.as_millis(),
        };
        let called = Utc::now();
        let plan = RunPlan {
            cell: id.cell,
            repetition: id.repetition,
            seed: scenario.seed.repetition(id.repetition),
            series: contents.series,
            rows: contents.rows,
            interrupt: self.stop,
            progress: &|now: Instant| path_clock.advance_to(now.as_nanos() / 1_000_000),
        };
        let outcome = worker.run(scenario, plan);
        // A live run begins when both hosts have agreed on it. The far host's log counts from there, too.
        let began = worker.take_start_ns().map_or(called, DateTime::from_timestamp_nanos);

        let (treatment, other_runs) = match &outcome {
            Ok(record) => {
                let treatment = Treatment::of(record, is_usable(record));
                (treatment, admitted_run.map_or(0, |run| run.leave(treatment)))
            }
            // A failed run does not change how many runs are admitted beside each other.
            Err(_) => (Treatment::Undisturbed, 0),
        };
        Some(AttemptResult { outcome, treatment, other_runs, began, path_clock })
    }

    /// Returns the largest number of runs at the same time; 0 in virtual time.
    pub(crate) fn peak(&self) -> u64 {
        self.room.as_ref().map_or(0, Room::peak)
    }
}

/// How far an attempt has come in path time. Each step is reported to the observer.
pub(crate) struct PathClock<'a> {
    observer: &'a dyn Observer,
    reached_ms: AtomicU64,
    end_ms: u64,
}

impl PathClock<'_> {
    /// Reports the remaining path time, and that the repetition ran to its end.
    pub(crate) fn finish(self) {
        self.advance_to(self.end_ms);
        self.observer.observe(Event::Counted);
    }

    fn advance_to(&self, path_time_ms: u64) {
        let now = path_time_ms.min(self.end_ms);
        let before = self.reached_ms.fetch_max(now, Ordering::Relaxed);
        if now > before {
            self.observer.observe(Event::Advanced(Duration::from_millis(now - before)));
        }
    }
}
