//! The loop of every experiment: repetitions run, each is kept as it ends, and what the machine disturbed
//! runs again after all others.
//!
//! ```text
//! cells ─► what is not kept yet ─► tasks ─► workers, each with an arena ─► attempts in the room ─► Keeper
//!                                    ▲                                                              │
//!                                    └───── disturbed past the stated limits, and there is time ◄───┘
//! ```
//!
//! It knows neither figures nor files. A run makes parts of its repetitions (`keeping.rs`), a study samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use chrono::{DateTime, Utc};
use talkpath_measure::RunRecord;
use talkpath_system::keep_awake::KeepAwake;
use talkpath_units::Duration;

use crate::Error;
use crate::attempt::{Attempt, Attempted, Attempts, Neighbours, Wanted};
use crate::disturbed::TimeAgain;
use crate::observer::{Disturbed, Event, Observer};
use crate::place::{Place, Worker};
use crate::run_dir::PartId;
use crate::tasks::{CellPlan, Order, Task, cell_at, in_order};
use crate::workers::{locked, share_out};

/// Repetitions that are to run, and how.
pub struct Repetitions<'a> {
    /// The cells, in the order of their indices.
    pub cells: &'a [CellPlan<'a>],
    /// In which order their repetitions run.
    pub order: Order,
    /// Which of them run here; the others run on other machines.
    pub is_here: &'a (dyn Fn(PartId) -> bool + Sync),
    /// Where.
    pub place: &'a Place,
    /// Whether the other cells run on if the arena cannot do what a cell needs. Else that ends the loop.
    pub skips_unsupported: bool,
    /// Makes figures of what ran, and keeps them.
    pub keeper: &'a dyn Keeper,
    /// Hears what happens meanwhile.
    pub observer: &'a dyn Observer,
    /// Becomes true when the user wants to stop.
    pub stop: &'a AtomicBool,
}

/// What becomes of repetitions. Several threads ask at once.
pub trait Keeper: Sync {
    /// What the record of the repetition `id` is to hold.
    fn wanted(&self, id: PartId) -> Wanted;

    /// Whether all figures that are read of `record`, that of the repetition `id`, are the path's.
    fn stands(&self, id: PartId, record: &RunRecord) -> bool;

    /// Makes of `ran` what is known of it, and keeps that. What is kept of an earlier attempt goes. `worker`
    /// ran it.
    ///
    /// # Errors
    /// What ends the loop: it could not be kept.
    fn keep(&self, ran: Ran, worker: &mut Worker) -> Result<Judged, Error>;
}

/// A repetition that ran.
pub struct Ran {
    /// Which.
    pub id: PartId,
    /// What the arena gave.
    pub record: RunRecord,
    /// When it began: the run's instant zero.
    pub began: DateTime<Utc>,
    /// The most other runs that were beside it; 0 in virtual time.
    pub others: u64,
    /// How often it ran again, this time included: 0 the first time.
    pub ran_again: u64,
    /// Whether it ended before its time.
    pub is_cut_short: bool,
}

/// Whether a repetition counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It does.
    Counts,
    /// The machine disturbed it, as these warnings say: it runs again if there is time.
    Disturbed(Vec<String>),
}

/// What has come to its end until now.
#[derive(Debug)]
pub struct Progress {
    ended: BTreeMap<PartId, EndedRepetition>,
    time: TimeAgain,
    /// Packets a second that the emulator carried for a cell's last repetition.
    packets_per_s: BTreeMap<u64, f64>,
}

/// A repetition that came to its end.
#[derive(Clone, Copy, Debug)]
struct EndedRepetition {
    ran_again: u64,
    is_disturbed: bool,
    /// Beside how many others at most it may run, should it run again.
    most_others: u64,
}

/// What an earlier process kept of a repetition.
#[derive(Clone, Copy, Debug)]
pub struct KeptBefore<'k> {
    /// Which.
    pub id: PartId,
    /// The fingerprint that its cell had.
    pub fingerprint: &'k str,
    /// How often it ran again.
    pub ran_again: u64,
    /// Whether the machine disturbed it past its stated limits.
    pub is_disturbed: bool,
}

/// What came of [`Repetitions`].
#[derive(Debug)]
pub struct Came {
    /// Repetitions that are whole, and those that were to be; what runs again is counted once.
    pub done: (u64, u64),
    /// How many times repetitions ran again.
    pub ran_again: u64,
    /// The most that ran at a time; 0 in virtual time.
    pub peak: u64,
    /// Why it ended early, if it did.
    pub failure: Option<Error>,
}

/// Some tasks under way.
struct Pass<'p> {
    progress: &'p mut Progress,
    /// How many came to their end.
    ended: u64,
    /// Cells that need what the arena cannot do.
    unsupported: BTreeSet<u64>,
}

/// What came of some tasks.
struct PassEnd {
    ended: u64,
    peak: u64,
    failure: Option<Error>,
}

impl Progress {
    /// Nothing has run yet. What the machine disturbs may run again for as long as is `stated`, in path time;
    /// `None`: for as long as all repetitions take once, and a minute at least.
    pub const fn new(stated: Option<Duration>) -> Self {
        Self { ended: BTreeMap::new(), time: TimeAgain::new(stated), packets_per_s: BTreeMap::new() }
    }

    /// Takes in what an earlier process `kept` of a repetition of `cells`. Returns whether it counts: else
    /// its cell is gone or was edited since, and it is as if it had not run.
    pub fn add(&mut self, cells: &[CellPlan<'_>], kept: KeptBefore<'_>) -> bool {
        let KeptBefore { id, fingerprint, ran_again, is_disturbed } = kept;
        let Some(cell) = cell_at(cells, id.cell).filter(|cell| cell.fingerprint == fingerprint) else {
            return false;
        };
        self.time.charge(cell.scenario.duration, ran_again);
        self.ended.insert(id, EndedRepetition { ran_again, is_disturbed, most_others: u64::MAX });
        true
    }

    /// How many repetitions of `cell` have not come to their end.
    pub fn missing(&self, cell: CellPlan<'_>) -> u64 {
        cell.ids().filter(|id| !self.ended.contains_key(id)).count() as u64
    }
}

impl Repetitions<'_> {
    /// Runs what has not come to its end yet, and then again what the machine disturbed: pass after pass,
    /// until nothing is left that may run again.
    pub fn run(&self, workers: &mut [Worker], progress: &mut Progress) -> Came {
        let here = || self.cells.iter().flat_map(|cell| cell.ids()).filter(|id| (self.is_here)(*id));
        let all = here().count() as u64;
        let tasks = in_order(self.cells, here().filter(|id| !progress.ended.contains_key(id)), self.order);
        let before = all - tasks.len() as u64;
        let PassEnd { ended, peak, failure } = self.run_tasks(&tasks, workers, progress);
        let mut came = Came { done: (before + ended, all), ran_again: 0, peak, failure };
        while came.failure.is_none() {
            let again = self.to_run_again(progress);
            if again.is_empty() {
                break;
            }
            let PassEnd { ended, peak, failure } = self.run_tasks(&again, workers, progress);
            came = Came { ran_again: came.ran_again + ended, peak: came.peak.max(peak), failure, ..came };
        }
        came
    }

    /// Those that were disturbed, and for which there is time, as tasks.
    fn to_run_again(&self, progress: &mut Progress) -> Vec<Task<'_>> {
        let Progress { ended, time, .. } = progress;
        let disturbed: BTreeMap<PartId, EndedRepetition> =
            ended.iter().filter(|(_, it)| it.is_disturbed).map(|(id, it)| (*id, *it)).collect();
        let mut tasks = in_order(self.cells, disturbed.keys().copied(), self.order);
        for task in &mut tasks {
            if let Some(before) = disturbed.get(&task.id) {
                (task.ran_again, task.most_others) = (before.ran_again + 1, before.most_others);
            }
        }
        let times = |task: &Task<'_>| (task.cell.scenario.duration, task.ran_again.saturating_sub(1));
        let at_most = time.at_most(self.cells, tasks.iter().map(times));
        tasks.retain(|task| {
            let (duration, ran_again) = times(task);
            time.grant(self.cells, duration, ran_again)
        });
        if !tasks.is_empty() {
            let (disturbed, again) = (disturbed.len(), tasks.len());
            self.observer.observe(Event::RunsAgain { disturbed, again, at_most });
        }
        tasks
    }

    /// Runs `tasks` on the workers; the first failure ends it, after the repetitions that are under way.
    fn run_tasks(&self, tasks: &[Task<'_>], workers: &mut [Worker], progress: &mut Progress) -> PassEnd {
        let duration = |sum: Duration, task: &Task<'_>| sum.saturating_add(task.cell.scenario.duration);
        let whole = tasks.iter().fold(Duration::ZERO, duration);
        let beside = self.place.is_real_time().then_some(workers.len());
        let attempts = Attempts::new(self.observer, (tasks.len() as u64, whole), beside, self.stop);
        // Where it cannot be had, the run's lateness shows it.
        let awake = self.place.keep_awake.then(KeepAwake::begin);
        if let Some(Err(why)) = &awake {
            self.observer.observe(Event::NotKeptAwake(&why.to_string()));
        }
        let pass = Mutex::new(Pass { progress, ended: 0, unsupported: BTreeSet::new() });
        let failure = share_out(workers, tasks, |worker, task| self.run_task(task, worker, &attempts, &pass));
        drop(awake);
        attempts.finish();
        PassEnd { ended: locked(&pass).ended, peak: attempts.peak(), failure }
    }

    /// Runs one repetition, and has it kept.
    fn run_task(
        &self,
        task: &Task<'_>,
        worker: &mut Worker,
        attempts: &Attempts<'_>,
        pass: &Mutex<Pass<'_>>,
    ) -> Result<(), Error> {
        let Task { id, cell, ran_again, most_others } = *task;
        let packets_per_s = {
            let pass = locked(pass);
            if pass.unsupported.contains(&id.cell) {
                return Ok(());
            }
            pass.progress.packets_per_s.get(&id.cell).copied()
        };
        let stands = |record: &RunRecord| self.keeper.stands(id, record);
        let wanted = self.keeper.wanted(id);
        let attempted = Attempted { id, scenario: cell.scenario, wanted, stands: &stands };
        let attempt = attempts.run(worker, attempted, Neighbours { packets_per_s, most_others });
        let Attempt { outcome, peace, others, began, shown } = attempt.ok_or_else(Error::interrupted)?;
        let (record, failure) = match outcome {
            Ok(record) => (Some(record), None),
            Err(why) => {
                let (partial, failure) = Error::ended(why);
                (partial, Some(failure))
            }
        };
        // In `sim` a repetition that was cut short is no repetition; over a network it is what there is,
        // unless it runs again: then the whole one stays.
        let keeps = failure.is_none() || self.place.is_real_time() && ran_again == 0;
        let carried = record.as_ref().and_then(|record| record.machine.as_ref()?.packets);
        let is_cut_short = failure.is_some();
        let kept = record.filter(|_| keeps).map(|record| {
            self.keeper.keep(Ran { id, record, began, others, ran_again, is_cut_short }, worker)
        });
        let judged = match kept.transpose() {
            Ok(judged) => judged.unwrap_or(Judged::Counts),
            Err(unkept) => return Err(self.observer.graver(failure, unkept)),
        };
        match failure {
            None => {}
            Some(why @ Error::Unsupported(_)) if self.skips_unsupported => {
                if locked(pass).unsupported.insert(id.cell) {
                    self.observer.observe(Event::CannotRun { cell: id.cell, why: &why });
                }
                return Ok(());
            }
            Some(why) => return Err(why),
        }
        shown.finish();
        let mut pass = locked(pass);
        pass.ended += 1;
        let is_disturbed = judged != Judged::Counts;
        let most_others = peace.next_beside(others, most_others);
        pass.progress.ended.insert(id, EndedRepetition { ran_again, is_disturbed, most_others });
        if let Some(packets) = carried {
            let rate = packets as f64 / cell.scenario.duration.as_secs_f64();
            pass.progress.packets_per_s.insert(id.cell, rate);
        }
        drop(pass);
        let disturbed = match &judged {
            Judged::Counts => None,
            Judged::Disturbed(warnings) => Some(Disturbed { others, warnings }),
        };
        let seed = cell.scenario.seed.repetition(id.repetition);
        self.observer.observe(Event::Ended { id, seed, disturbed });
        Ok(())
    }
}

#[cfg(test)]
#[path = "repetitions_tests.rs"]
mod tests;
