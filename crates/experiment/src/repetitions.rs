//! The loop of every experiment. It runs the repetitions that are missing, hands each result to a [`Keeper`],
//! and then runs the disturbed repetitions again.
//!
//! ```text
//! cells ─► missing repetitions ─► tasks ─► workers, each with an arena ─► attempts in the room ─► Keeper
//!                                   ▲                                                              │
//!                                   └──────── disturbed repetitions, while there is time ◄─────────┘
//! ```
//!
//! Begin to read with [`Repetitions::run`]. The loop knows neither figures nor files: the keeper of a run
//! makes parts of the results (`keeping.rs`), and the keeper of a study makes samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use chrono::{DateTime, Utc};
use talkpath_measure::RunRecord;
use talkpath_system::keep_awake::KeepAwake;
use talkpath_units::Duration;

use crate::attempt::{AttemptPlan, AttemptResult, Attempts, RecordContents};
use crate::disturbed::{PastReruns, RerunBudget};
use crate::observer::{Disturbed, Event, Observer};
use crate::place::{Place, Worker};
use crate::run_dir::PartId;
use crate::tasks::{CellPlan, Order, Task, cell_at, in_order};
use crate::workers::{locked, run_on_workers};
use crate::{Error, FailedRun};

/// The repetitions to run, and how to run them.
pub struct Repetitions<'a> {
    /// The cells, in the order of their indices.
    pub cells: &'a [CellPlan<'a>],
    /// The order in which the repetitions run.
    pub order: Order,
    /// Returns whether a repetition runs on this machine. The other repetitions run on other machines.
    pub is_here: &'a (dyn Fn(PartId) -> bool + Sync),
    /// The arena, the far host and the options of the runs.
    pub place: &'a Place,
    /// What happens if the arena does not support a cell. If true, the loop goes on with the other cells. If
    /// false, the loop ends with [`Error::Unsupported`].
    pub skips_unsupported: bool,
    /// Receives the result of each attempt.
    pub keeper: &'a dyn Keeper,
    /// Receives the events of the run.
    pub observer: &'a dyn Observer,
    /// Becomes true when the user wants to stop.
    pub stop: &'a AtomicBool,
}

/// Turns finished attempts into figures and keeps the figures. Several threads call the methods at once.
pub trait Keeper: Sync {
    /// Returns what the record of the repetition `id` must contain.
    fn record_contents(&self, id: PartId) -> RecordContents;

    /// Returns whether the figures that the keeper reads from `record` describe the path. They do not if the
    /// machine disturbed the run past its stated limits. `record` is the record of the repetition `id`.
    fn is_usable(&self, id: PartId, record: &RunRecord) -> bool;

    /// Keeps the figures of `attempt`, in place of those of an earlier attempt at the same repetition.
    /// `worker` is the worker that ran the attempt.
    ///
    /// # Errors
    /// Returns the error of a failed write. It ends the loop.
    fn keep(&self, attempt: FinishedAttempt, worker: &mut Worker) -> Result<Acceptance, Error>;
}

/// An attempt at a repetition that has a record.
pub struct FinishedAttempt {
    /// The repetition.
    pub id: PartId,
    /// The record that the arena made.
    pub record: RunRecord,
    /// The date and time at the run's instant zero.
    pub began: DateTime<Utc>,
    /// The largest number of other runs during the attempt; 0 in virtual time.
    pub other_runs: u64,
    /// How many times the repetition has run again, this attempt included; 0 for the first attempt.
    pub reruns: u64,
    /// Whether the run ended before the scenario's duration was over.
    pub is_cut_short: bool,
}

/// Whether the keeper accepts an attempt as the result of its repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The repetition needs no other attempt.
    Accepted,
    /// The machine disturbed the attempt, as these warnings say. The repetition runs again if the budget
    /// allows it.
    Disturbed(Vec<String>),
}

/// The repetitions that have finished so far.
#[derive(Debug)]
pub struct Progress {
    finished: BTreeMap<PartId, FinishedRepetition>,
    rerun_budget: RerunBudget,
    /// By the index of a cell: the packets per second that the emulator carried for its last repetition.
    packets_per_s: BTreeMap<u64, f64>,
}

/// A repetition of which at least one attempt ran to its end.
#[derive(Clone, Copy, Debug)]
struct FinishedRepetition {
    reruns: u64,
    is_disturbed: bool,
    /// How many other runs are allowed during the next attempt, if there is one.
    max_other_runs: u64,
}

/// A repetition that an earlier process has run.
#[derive(Clone, Copy, Debug)]
pub struct EarlierRepetition<'e> {
    /// The repetition.
    pub id: PartId,
    /// The fingerprint of the repetition's cell at that time.
    pub fingerprint: &'e str,
    /// How many times the repetition has run again.
    pub reruns: u64,
    /// Whether the machine disturbed the last attempt past its stated limits.
    pub is_disturbed: bool,
}

/// The result of [`Repetitions::run`].
#[derive(Debug)]
pub struct LoopResult {
    /// The number of repetitions that have finished, those of earlier processes included. A repetition that
    /// ran again is counted once.
    pub finished: u64,
    /// The number of repetitions that this machine has to run in all.
    pub planned: u64,
    /// The number of attempts that were not the first of their repetition.
    pub reruns: u64,
    /// The largest number of runs at the same time; 0 in virtual time.
    pub peak: u64,
    /// Why the loop ended early; `None` if it did not.
    pub failure: Option<Error>,
}

/// What the workers share while they run one list of tasks.
struct Pass<'p> {
    progress: &'p mut Progress,
    /// How many tasks ran to their end.
    finished: u64,
    /// The indices of the cells that the arena does not support.
    unsupported_cells: BTreeSet<u64>,
}

/// The result of one list of tasks.
struct PassResult {
    finished: u64,
    peak: u64,
    failure: Option<Error>,
}

impl Progress {
    /// Returns a progress in which nothing has run yet. `rerun_budget` is the path time that disturbed
    /// repetitions may take when they run again. If it is `None`, they may take as long as all repetitions
    /// take once, and at least a minute.
    pub const fn new(rerun_budget: Option<Duration>) -> Self {
        Self {
            finished: BTreeMap::new(),
            rerun_budget: RerunBudget::new(rerun_budget),
            packets_per_s: BTreeMap::new(),
        }
    }

    /// Adds a repetition that an earlier process has run, and returns true. If the repetition's cell is not
    /// in `cells` or was edited since, this adds nothing and returns false, so the repetition runs anew.
    pub fn add(&mut self, cells: &[CellPlan<'_>], earlier: EarlierRepetition<'_>) -> bool {
        let EarlierRepetition { id, fingerprint, reruns, is_disturbed } = earlier;
        let Some(cell) = cell_at(cells, id.cell) else { return false };
        if cell.fingerprint != fingerprint {
            return false;
        }
        self.rerun_budget.charge(PastReruns { duration: cell.scenario.duration, reruns });
        self.finished.insert(id, FinishedRepetition { reruns, is_disturbed, max_other_runs: u64::MAX });
        true
    }

    /// Returns how many repetitions of `cell` have not finished.
    pub fn missing(&self, cell: CellPlan<'_>) -> u64 {
        cell.ids().filter(|id| !self.finished.contains_key(id)).count() as u64
    }
}

impl Repetitions<'_> {
    /// Runs the repetitions that have not finished. Then runs the disturbed ones again, pass after pass,
    /// until none is disturbed or the budget is used up.
    pub fn run(&self, workers: &mut [Worker], progress: &mut Progress) -> LoopResult {
        let ids: Vec<PartId> =
            self.cells.iter().flat_map(|cell| cell.ids()).filter(|id| (self.is_here)(*id)).collect();
        let missing = ids.iter().copied().filter(|id| !progress.finished.contains_key(id));
        let tasks = in_order(self.cells, missing, self.order);

        let first_pass = self.run_tasks(&tasks, workers, progress);
        let mut result = LoopResult {
            finished: (ids.len() - tasks.len()) as u64 + first_pass.finished,
            planned: ids.len() as u64,
            reruns: 0,
            peak: first_pass.peak,
            failure: first_pass.failure,
        };
        while result.failure.is_none() {
            let tasks = self.tasks_to_run_again(progress);
            if tasks.is_empty() {
                break;
            }
            let pass = self.run_tasks(&tasks, workers, progress);
            result.reruns += pass.finished;
            result.peak = result.peak.max(pass.peak);
            result.failure = pass.failure;
        }
        result
    }

    /// Returns a task for each disturbed repetition that the budget allows to run again, and charges the
    /// budget with these tasks.
    fn tasks_to_run_again(&self, progress: &mut Progress) -> Vec<Task<'_>> {
        let mut disturbed = progress.finished.clone();
        disturbed.retain(|_, repetition| repetition.is_disturbed);
        let mut tasks = in_order(self.cells, disturbed.keys().copied(), self.order);
        for task in &mut tasks {
            if let Some(repetition) = disturbed.get(&task.id) {
                task.reruns = repetition.reruns + 1;
                task.max_other_runs = repetition.max_other_runs;
            }
        }

        let budget = &mut progress.rerun_budget;
        let past_reruns = |task: &Task<'_>| PastReruns {
            duration: task.cell.scenario.duration,
            // The rerun that the task is about has not happened yet.
            reruns: task.reruns.saturating_sub(1),
        };
        // The budget is asked before the tasks are charged, so that the user hears of what they cost, too.
        let at_most = budget.at_most(self.cells, tasks.iter().map(past_reruns));
        tasks.retain(|task| budget.grant(self.cells, past_reruns(task)));
        if !tasks.is_empty() {
            let (disturbed, again) = (disturbed.len(), tasks.len());
            self.observer.observe(Event::RunsAgain { disturbed, again, at_most });
        }
        tasks
    }

    /// Runs `tasks` on `workers`. After the first failure no task begins, and the running tasks end.
    fn run_tasks(&self, tasks: &[Task<'_>], workers: &mut [Worker], progress: &mut Progress) -> PassResult {
        let mut path_time = Duration::ZERO;
        for task in tasks {
            path_time = path_time.saturating_add(task.cell.scenario.duration);
        }
        self.observer.observe(Event::Begun {
            cells: self.cells.len() as u64,
            repetitions: tasks.len() as u64,
            whole: path_time,
        });
        let concurrent_runs = self.place.is_real_time().then_some(workers.len());
        let attempts = Attempts::new(self.observer, concurrent_runs, self.stop);

        // If the processors cannot be kept awake, the run goes on: its record shows how late it was.
        let awake = self.place.keep_awake.then(KeepAwake::begin);
        if let Some(Err(why)) = &awake {
            self.observer.observe(Event::NotKeptAwake(&why.to_string()));
        }
        let pass = Mutex::new(Pass { progress, finished: 0, unsupported_cells: BTreeSet::new() });
        let failure =
            run_on_workers(workers, tasks, |worker, task| self.run_task(task, worker, &attempts, &pass));
        drop(awake);

        self.observer.observe(Event::Over);
        PassResult { finished: locked(&pass).finished, peak: attempts.peak(), failure }
    }

    /// Makes one attempt at a repetition, hands the result to the keeper, and notes it in `pass`.
    fn run_task(
        &self,
        task: &Task<'_>,
        worker: &mut Worker,
        attempts: &Attempts<'_>,
        pass: &Mutex<Pass<'_>>,
    ) -> Result<(), Error> {
        let Task { id, cell, reruns, max_other_runs } = *task;
        if locked(pass).unsupported_cells.contains(&id.cell) {
            return Ok(());
        }

        // 1. Run.
        let plan = AttemptPlan {
            id,
            scenario: cell.scenario,
            contents: self.keeper.record_contents(id),
            is_usable: &|record| self.keeper.is_usable(id, record),
            packets_per_s: locked(pass).progress.packets_per_s.get(&id.cell).copied(),
            max_other_runs,
        };
        let Some(result) = attempts.run(worker, plan) else { return Err(Error::interrupted()) };
        let AttemptResult { outcome, treatment, other_runs, began, path_clock } = result;
        let (record, failure) = match outcome {
            Ok(record) => (Some(record), None),
            Err(why) => {
                let FailedRun { partial, error } = why.into();
                (partial, Some(error))
            }
        };

        // 2. Keep the record. A repetition that was cut short is kept only in real time, where it cannot be
        // made again, and only if it is the first attempt: an earlier attempt was whole, so that one stays.
        let is_cut_short = failure.is_some();
        let is_kept = !is_cut_short || (self.place.is_real_time() && reruns == 0);
        let mut packets = None;
        let mut acceptance = Acceptance::Accepted;
        if let Some(record) = record {
            packets = record.machine.as_ref().and_then(|machine| machine.packets);
            if is_kept {
                let attempt = FinishedAttempt { id, record, began, other_runs, reruns, is_cut_short };
                match self.keeper.keep(attempt, worker) {
                    Ok(answer) => acceptance = answer,
                    Err(write_error) => return Err(self.observer.graver(failure, write_error)),
                }
            }
        }

        // 3. End here if the attempt failed.
        match failure {
            None => {}
            Some(why @ Error::Unsupported(_)) if self.skips_unsupported => {
                if locked(pass).unsupported_cells.insert(id.cell) {
                    self.observer.observe(Event::CannotRun { cell: id.cell, why: &why });
                }
                return Ok(());
            }
            Some(why) => return Err(why),
        }
        path_clock.finish();

        // 4. Note that the repetition has finished.
        let repetition = FinishedRepetition {
            reruns,
            is_disturbed: acceptance != Acceptance::Accepted,
            max_other_runs: treatment.next_max_other_runs(other_runs, max_other_runs),
        };
        let packets_per_s = packets.map(|packets| packets as f64 / cell.scenario.duration.as_secs_f64());
        locked(pass).note_finished(id, repetition, packets_per_s);

        let disturbed = match &acceptance {
            Acceptance::Accepted => None,
            Acceptance::Disturbed(warnings) => Some(Disturbed { other_runs, warnings }),
        };
        let seed = cell.scenario.seed.repetition(id.repetition);
        self.observer.observe(Event::Ended { id, seed, disturbed });
        Ok(())
    }
}

impl Pass<'_> {
    /// Notes that `id` has finished. `packets_per_s` is the packet rate that the emulator measured, if it
    /// did.
    fn note_finished(&mut self, id: PartId, repetition: FinishedRepetition, packets_per_s: Option<f64>) {
        self.finished += 1;
        self.progress.finished.insert(id, repetition);
        if let Some(rate) = packets_per_s {
            self.progress.packets_per_s.insert(id.cell, rate);
        }
    }
}

#[cfg(test)]
#[path = "repetitions_tests.rs"]
mod tests;
