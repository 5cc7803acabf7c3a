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

/// What the attempts of one arena share.
pub struct Attempts<'a> {
    observer: &'a dyn Observer,
    /// In real time, the machine. Virtual time waits for every processor, so nothing is shared there.
    room: Option<Room>,
    stop: &'a AtomicBool,
}

/// The repetition that is to run, and what its record is to hold.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Which.
    pub id: PartId,
    /// How states over time are sampled; `None` keeps none.
    pub series: Option<SeriesDetail>,
    /// Whether every message is kept.
    pub rows: bool,
    /// Whether all figures that are read of the record are the path's.
    pub stands: &'a dyn Fn(&RunRecord) -> bool,
}

/// What is known of a repetition before it runs. In virtual time it says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    /// Packets a second that the emulator will carry for it; `None` if only the scenario tells.
    pub packets_per_s: Option<f64>,
    /// Beside how many others at most it may run.
    pub most_others: u64,
}

/// What came of an attempt.
pub struct Attempt<'a> {
    /// What the arena gave.
    pub outcome: Result<RunRecord, ArenaError>,
    /// How the machine treated it.
    pub peace: Peace,
    /// The most other runs that were beside it.
    pub others: u64,
    /// When it began: the run's instant zero.
    pub began: DateTime<Utc>,
    /// To be finished if it counts, and to be taken back if not.
    pub shown: Shown<'a>,
}

impl<'a> Attempts<'a> {
    /// `count` repetitions that take `whole` of their own time in all. In real time at most `beside` of them
    /// run at a time; `None` in virtual time. They end early once `stop` is true.
    pub fn new(
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

    /// Runs `scenario` once, as the repetition that is `wanted`. `None` if the user stopped it before it
    /// began.
    pub fn run(
        &self,
        worker: &mut Worker,
        scenario: &Scenario,
        wanted: Wanted<'_>,
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
        let (reached_ms, end_ms) = (AtomicU64::new(0), scenario.duration.as_millis());
        let shown = Shown { observer: self.observer, reached_ms, end_ms };
        let began = Utc::now();
        let progress = |now: Instant| shown.reach(now.as_nanos() / 1_000_000);
        let Wanted { id: PartId { cell, repetition }, series, rows, stands } = wanted;
        let seed = scenario.seed.repetition(repetition);
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
    pub fn peak(&self) -> u64 {
        self.room.as_ref().map_or(0, Room::peak)
    }

    /// All of them are over.
    pub fn finish(&self) {
        self.observer.observe(Event::Over);
    }
}

/// How far an attempt is, as it is observed.
pub struct Shown<'a> {
    observer: &'a dyn Observer,
    reached_ms: AtomicU64,
    end_ms: u64,
}

impl Shown<'_> {
    /// The repetition is over, and counts.
    pub fn finish(self) {
        self.reach(self.end_ms);
        self.observer.observe(Event::Counted);
    }

    /// The repetition does not count: it runs again.
    pub fn take_back(self) {
        let reached = self.reached_ms.load(Ordering::Relaxed);
        self.observer.observe(Event::TakenBack(Duration::from_millis(reached)));
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
