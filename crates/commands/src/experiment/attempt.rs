//! One attempt at a repetition: it waits until the machine has room for it, runs, and says how the machine
//! treated it. Whether it counts, or runs again, is for the caller to decide.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use chrono::{DateTime, Utc};
use talkpath_arena::{ArenaError, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::Scenario;
use talkpath_units::Duration;

use super::room::{Peace, Room, packets_per_s, share};
use crate::arenas::Worker;
use crate::progress::{Progress, Repetition};
use crate::terminal::Terminal;
use talkpath_experiment::run_dir::PartId;

/// What the attempts of one arena share.
pub(crate) struct Attempts<'a> {
    progress: Progress,
    /// In real time, the machine. Virtual time waits for every processor, so nothing is shared there.
    room: Option<Room>,
    stop: &'a AtomicBool,
}

/// The repetition that is to run, and what its record is to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) id: PartId,
    /// How states over time are sampled; `None` keeps none.
    pub(crate) series: Option<SeriesDetail>,
    /// Whether every message is kept.
    pub(crate) rows: bool,
}

/// What is known of a repetition before it runs. In virtual time it says nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    /// Packets a second that the emulator will carry for it; `None` if only the scenario tells.
    pub(crate) packets_per_s: Option<f64>,
    /// Beside how many others at most it may run.
    pub(crate) most_others: u64,
}

/// What came of an attempt.
pub(crate) struct Attempt<'a> {
    pub(crate) outcome: Result<RunRecord, ArenaError>,
    pub(crate) peace: Peace,
    /// The most other runs that were beside it.
    pub(crate) others: u64,
    /// When it began: the run's instant zero.
    pub(crate) began: DateTime<Utc>,
    /// To be finished if it counts, and to be taken back if not.
    pub(crate) shown: Repetition<'a>,
}

impl<'a> Attempts<'a> {
    /// `count` repetitions that take `whole` of their own time in all. In real time at most `beside` of them
    /// run at a time; `None` in virtual time. They end early once `stop` is true.
    pub(crate) fn new(
        terminal: Terminal,
        (count, whole): (u64, Duration),
        beside: Option<usize>,
        stop: &'a AtomicBool,
    ) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let room = beside.map(|most| Room::new(most, processors));
        Self { progress: Progress::new(terminal, count, whole), room, stop }
    }

    /// Runs `scenario` once, as the repetition that is `wanted`. `None` if the user stopped it before it
    /// began.
    pub(crate) fn run(
        &self,
        worker: &mut Worker,
        scenario: &Scenario,
        wanted: Wanted,
        beside: Neighbours,
    ) -> Option<Attempt<'_>> {
        let stay = match &self.room {
            Some(room) => {
                let packets = beside.packets_per_s.unwrap_or_else(|| packets_per_s(scenario));
                Some(room.enter(share(packets), beside.most_others, self.stop)?)
            }
            None if self.stop.load(Ordering::Relaxed) => return None,
            None => None,
        };
        let shown = self.progress.repetition(scenario.duration);
        let began = Utc::now();
        let progress = |now| shown.reach(now);
        let Wanted { id: PartId { cell, repetition }, series, rows } = wanted;
        let seed = scenario.seed.repetition(repetition);
        let plan =
            RunPlan { cell, repetition, seed, series, rows, interrupt: self.stop, progress: &progress };
        let outcome = worker.run(scenario, plan);
        let peace = outcome.as_ref().map_or(Peace::Kept, Peace::of);
        let others = stay.map_or(0, |stay| match &outcome {
            Ok(_) => stay.leave(peace),
            // It says nothing of the machine.
            Err(_) => 0,
        });
        Some(Attempt { outcome, peace, others, began, shown })
    }

    /// The most runs that were beside each other, itself included; 0 in virtual time.
    pub(crate) fn peak(&self) -> u64 {
        self.room.as_ref().map_or(0, Room::peak)
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.progress.finish();
    }
}
