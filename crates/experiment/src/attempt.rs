//! One attempt at a repetition: it waits until the machine has room for it, runs, and says how the machine
//! treated it. Whether it counts, or runs again, is for the caller to decide.

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
use crate::room::{Peace, Room, packets_per_s, share};
use crate::run_dir::PartId;

/// What the record of a repetition is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How states over time are sampled; `None` keeps none.
    pub series: Option<SeriesDetail>,
    /// Whether every message is kept.
    pub rows: bool,
}

/// What the attempts of one arena share.
pub(crate) struct Attempts<'a> {
    observer: &'a dyn Observer,
    /// In real time, the machine. Virtual time waits for every processor, so nothing is shared there.
    room: Option<Room>,
    stop: &'a AtomicBool,
}

/// The repetition that is to run.
#[derive(Clone, Copy)]
pub(crate) struct Attempted<'a> {
    /// Which.
    pub(crate) id: PartId,
    /// What runs.
    pub(crate) scenario: &'a Scenario,
    /// What its record is to hold.
    pub(crate) wanted: Wanted,
    /// Whether all figures that are read of its record are the path's.
    pub(crate) stands: &'a dyn Fn(&RunRecord) -> bool,
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
    /// What the arena gave.
    pub(crate) outcome: Result<RunRecord, ArenaError>,
    /// How the machine treated it.
    pub(crate) peace: Peace,
    /// The most other runs that were beside it.
    pub(crate) others: u64,
    /// When it began: the run's instant zero.
    pub(crate) began: DateTime<Utc>,
    /// To be finished if it came to its end.
    pub(crate) shown: Shown<'a>,
}

impl<'a> Attempts<'a> {
    /// `count` repetitions that take `whole` of their own time in all. In real time at most `beside` of them
    /// run at a time; `None` in virtual time. They end early once `stop` is true.
    pub(crate) fn new(
        observer: &'a dyn Observer,
        (count, whole): (u64, Duration),
        beside: Option<usize>,
        stop: &'a AtomicBool,
    ) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let room = beside.map(|most| Room::new(most, processors));
        observer.observe(Event::Begun { repetitions: count, whole });
        Self { observer, room, stop }
    }

    /// Runs a repetition once. `None` if the user stopped it before it began.
    pub(crate) fn run(
        &self,
        worker: &mut Worker,
        attempted: Attempted<'_>,
        beside: Neighbours,
    ) -> Option<Attempt<'_>> {
        let Attempted { id: PartId { cell, repetition }, scenario, wanted, stands } = attempted;
        let stay = match &self.room {
            Some(room) => {
                let packets = beside.packets_per_s.unwrap_or_else(|| packets_per_s(scenario));
                Some(room.enter(share(packets), beside.most_others, self.stop)?)
            }
            None if self.stop.load(Ordering::Relaxed) => return None,
            None => None,
        };
        let (reached_ms, end_ms) = (AtomicU64::new(0), scenario.duration.as_millis());
        let shown = Shown { observer: self.observer, reached_ms, end_ms };
        let began = Utc::now();
        let progress = |now: Instant| shown.reach(now.as_nanos() / 1_000_000);
        let seed = scenario.seed.repetition(repetition);
        let Wanted { series, rows } = wanted;
        let plan =
            RunPlan { cell, repetition, seed, series, rows, interrupt: self.stop, progress: &progress };
        let outcome = worker.run(scenario, plan);
        let peace = outcome.as_ref().map_or(Peace::Kept, |record| Peace::of(record, stands(record)));
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

    /// All of them are over.
    pub(crate) fn finish(&self) {
        self.observer.observe(Event::Over);
    }
}

/// How far an attempt is, as it is observed.
pub(crate) struct Shown<'a> {
    observer: &'a dyn Observer,
    reached_ms: AtomicU64,
    end_ms: u64,
}

impl Shown<'_> {
    /// The repetition came to its end.
    pub(crate) fn finish(self) {
        self.reach(self.end_ms);
        self.observer.observe(Event::Counted);
    }

    /// The attempt's path time is `millis`, ms.
    fn reach(&self, millis: u64) {
        let now = millis.min(self.end_ms);
        let before = self.reached_ms.fetch_max(now, Ordering::Relaxed);
        if now > before {
            self.observer.observe(Event::Advanced(Duration::from_millis(now - before)));
        }
    }
}
