//! A plan becomes a run directory: every repetition of every cell, in any order, on any number of jobs and of
//! machines, then one summary over all of them in the plan's order.
//!
//! ```text
//! Plan ─► shard ─► tasks ─► workers, each with an arena ─► parts in a folder ┐
//!                                                another machine's folder ┴► merge
//!      ─► summary.json, packets.parquet, ..., report.html
//! ```
//!
//! A run of one machine has one shard, and its parts are merged at its end. Of several machines each leaves
//! its parts, and `talkpath merge` does the same over all their folders.
//!
//! In real time the machine may disturb a repetition past its stated limits. Such ones run again after all
//! others (`disturbed.rs`), and what stays disturbed is left out of the figures (`merge.rs`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summary::Summary;
use talkpath_scenario::Plan;
use talkpath_system::keep_awake::KeepAwake;
use talkpath_units::Duration;

use crate::Error;
use crate::attempt::{Attempt, Attempts, Neighbours, Wanted};
use crate::choice::{Choice, Records};
use crate::disturbed::TimeAgain;
use crate::findings::Findings;
use crate::journal;
use crate::json::json;
use crate::keeping::Keeping;
use crate::merge::{self, Merged, Merging};
use crate::observer::{Disturbed, Event, Observer};
use crate::part::{Fresh, Kept, PART, Part, all_parts};
use crate::place::{Connect, Place, Worker};
use crate::provenance::provenance;
use crate::resumable::{Resumable, plan_file};
use crate::run_dir::{PartId, RunDir, SCENARIO};
use crate::shard::Shard;
use crate::stopwatch::{Stopwatch, stamps_from};
use crate::store::whole::{read_json, write_bytes};
use crate::tasks::{Task, ids, in_turn};
use crate::workers::share_out;

/// Everything that is to be run, and how.
pub struct Experiment<'a> {
    /// What to begin with.
    pub plan: &'a Plan,
    /// What to go on with, once all of a plan has run.
    pub growth: Option<&'a Growth<'a>>,
    /// Whether the cells take turns, repetition by repetition, in an order that is drawn anew each time: what
    /// a network does for a while then falls on all of them.
    pub takes_turns: bool,
    /// Which part of the run it is; `None` if it is all of it.
    pub shard: Option<Shard>,
    /// Where it runs.
    pub place: Place,
    /// Who runs it there.
    pub arenas: &'a dyn Connect,
    /// What is written of the rows.
    pub records: Records,
    /// Whether figures come from all rows, also of a simulation that writes none.
    pub exact: bool,
    /// How states over time are sampled.
    pub series: SeriesDetail,
    /// Repetitions that run at a time; in real time fewer, where the machine has no room for them.
    pub at_once: usize,
    /// Threads that write the summary.
    pub jobs: usize,
    /// Hears what happens meanwhile.
    pub observer: Box<dyn Observer>,
    /// What is made of the figures.
    pub findings: &'a dyn Findings,
}

/// A larger plan that begins with the same cells and repetitions, or nothing if the summary says enough.
pub type Growth<'a> = dyn Fn(&Plan, &Summary) -> Result<Option<Plan>, Error> + Sync + 'a;

/// What came of it. A run that ended early has both: what was measured, and why it ended.
pub struct Outcome {
    /// Its directory; it has parts as long as it can go on.
    pub dir: RunDir,
    /// Its figures.
    pub summary: Summary,
    /// Why it ended early, or what could not be written.
    pub failure: Option<Error>,
}

/// What came of a part of a run, which only `merge` gives a summary.
pub struct PartOutcome {
    /// Its directory.
    pub dir: RunDir,
    /// Repetitions that are whole, and those that the part has.
    pub done: (u64, u64),
    /// Real time, s.
    pub wall_s: f64,
    /// CPU time of the whole process, s.
    pub cpu_s: f64,
    /// Why it ended early, or what could not be written.
    pub failure: Option<Error>,
}

/// Where a run directory is to be made.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    /// In this folder, with a name after the time and the scenario.
    Under(&'a Path),
    /// Just there.
    At(&'a Path),
}

/// What came of some tasks.
#[derive(Default)]
struct Ran {
    /// What is kept in memory.
    fresh: Fresh,
    /// How many repetitions came to their end.
    finished: u64,
    failure: Option<Error>,
    /// Beside how many others at most each may run, should it run again.
    beside: BTreeMap<PartId, u64>,
}

/// What came of a task.
struct Ended {
    /// What is kept of it.
    part: Option<Part>,
    /// Why it ended early, if it did.
    failure: Option<Error>,
    /// Beside how many others at most it may run, should it run again.
    beside: u64,
}

/// A process at work in a run directory.
struct Work<'s> {
    dir: RunDir,
    begun: Resumable,
    workers: Vec<Worker>,
    watch: Stopwatch,
    /// Becomes true when the user wants to stop.
    stop: &'s AtomicBool,
}

/// What it has measured, with what was there before.
struct Collected<'p> {
    plan: Cow<'p, Plan>,
    /// What need not be read from folders; of a part nothing, because only `merge` takes its figures.
    kept: Fresh,
    /// Repetitions that are whole, and those that were to be.
    done: (u64, u64),
    failure: Option<Error>,
    /// What could not be written of a run whose figures are in memory.
    unwritten: Option<Error>,
}

/// What is put together.
struct Measured<'m> {
    plan: &'m Plan,
    kept: Fresh,
    failure: Option<&'m Error>,
    unwritten: Option<Error>,
}

impl Experiment<'_> {
    /// Runs everything in a new directory.
    pub fn run(&self, folder: Destination<'_>, stop: &AtomicBool) -> Result<Outcome, Error> {
        let work = self.start(folder, stop)?;
        self.run_in(work)
    }

    /// Runs what is missing in the run directory `dir`, which `begun` describes.
    pub fn resume(&self, dir: RunDir, begun: Resumable, stop: &AtomicBool) -> Result<Outcome, Error> {
        let work = self.go_on(dir, begun, stop)?;
        self.run_in(work)
    }

    /// Runs one part of a run in a new directory.
    pub fn run_part(&self, folder: Destination<'_>, stop: &AtomicBool) -> Result<PartOutcome, Error> {
        let work = self.start(folder, stop)?;
        self.run_part_in(work)
    }

    /// Runs what is missing of a part of a run.
    pub fn resume_part(
        &self,
        dir: RunDir,
        begun: Resumable,
        stop: &AtomicBool,
    ) -> Result<PartOutcome, Error> {
        let work = self.go_on(dir, begun, stop)?;
        self.run_part_in(work)
    }

    fn start<'s>(&self, folder: Destination<'_>, stop: &'s AtomicBool) -> Result<Work<'s>, Error> {
        let watch = Stopwatch::start();
        // A far end that is not there is found out before anything is written.
        let workers = self.arenas.connect(&self.place, self.at_once)?;
        let (dir, begun) = self.open(folder, &watch)?;
        Ok(Work { dir, begun, workers, watch, stop })
    }

    /// A new run directory with what describes the run, and no repetition yet.
    pub fn open(&self, folder: Destination<'_>, watch: &Stopwatch) -> Result<(RunDir, Resumable), Error> {
        let name = match self.shard {
            None => self.plan.name.clone(),
            Some(shard) => format!("{} {}", self.plan.name, shard.for_file_name()),
        };
        let mut dir = match folder {
            Destination::Under(out) => RunDir::create(out, &watch.started_for_file_name(), &name)?,
            Destination::At(path) => RunDir::create_at(path)?,
        };
        let begun = self.resumable(watch.started());
        match self.begin(&mut dir, &begun) {
            Ok(()) => {
                self.observer.observe(Event::Directory(dir.path()));
                Ok((dir, begun))
            }
            Err(failure) => {
                dir.discard_if_new();
                Err(failure)
            }
        }
    }

    /// Puts the repetitions together that somebody else put into `dir`, of which `kept` are those in its
    /// journal; the plan says how many they are in all.
    pub fn close(
        &self,
        dir: &mut RunDir,
        kept: Fresh,
        begun: &Resumable,
        watch: &Stopwatch,
    ) -> Result<(), Error> {
        write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())?;
        let measured = Measured { plan: self.plan, kept, failure: None, unwritten: None };
        let (_, unwritten) = self.put_together(measured, dir, begun, watch)?;
        unwritten.map_or(Ok(()), Err)
    }

    /// One run of what was measured, in `dir` and in memory; and what could not be written of it.
    fn put_together(
        &self,
        measured: Measured<'_>,
        dir: &mut RunDir,
        begun: &Resumable,
        watch: &Stopwatch,
    ) -> Result<(Summary, Option<Error>), Error> {
        let Measured { plan, kept, failure, unwritten } = measured;
        let (jobs, provenance) = (self.jobs, provenance(self.arenas.revision()));
        // Where the rows of some repetitions could not be written, those of the others are no run's records.
        let has_rows = unwritten.is_none();
        let merging = Merging {
            plan,
            demanded: self.plan,
            begun,
            jobs,
            watch,
            failure,
            has_rows,
            provenance,
            findings: self.findings,
        };
        let Merged { summary, is_whole, unwritten: unmerged } = merging.finish(dir, &[&*dir], kept)?;
        let mut unwritten = unwritten.or(unmerged);
        if is_whole && unwritten.is_none() {
            unwritten = dir.remove_parts().err();
        }
        Ok((summary, unwritten))
    }

    fn go_on<'s>(&self, mut dir: RunDir, begun: Resumable, stop: &'s AtomicBool) -> Result<Work<'s>, Error> {
        let watch = Stopwatch::start();
        dir.lock()?;
        let workers = self.arenas.connect(&self.place, self.at_once)?;
        Ok(Work { dir, begun, workers, watch, stop })
    }

    fn begin(&self, dir: &mut RunDir, begun: &Resumable) -> Result<(), Error> {
        dir.lock_new()?;
        write_bytes(&dir.file(&plan_file()), &json(begun))?;
        for trace in &self.plan.traces {
            dir.write_trace(trace)?;
        }
        write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())
    }

    fn run_in(&self, mut work: Work<'_>) -> Result<Outcome, Error> {
        let collected = self.measure(&mut work)?;
        let Work { mut dir, begun, watch, .. } = work;
        let Collected { plan, kept, failure, unwritten, .. } = collected;
        let failure = match failure {
            Some(failure) if is_in_vain(&failure, &dir, &kept) => {
                dir.discard_if_new();
                return Err(failure);
            }
            failure => failure.map(|failure| with_count(&plan, failure, &dir, &kept)),
        };
        let closed = self.nothing_opened(&dir, &kept);
        let measured = Measured { plan: &plan, kept, failure: failure.as_ref(), unwritten };
        let put_together = self.put_together(measured, &mut dir, &begun, &watch);
        let failure = failure.or(closed);
        match put_together {
            Ok((summary, unwritten)) => {
                let failure = match unwritten {
                    Some(why) => Some(self.graver(failure, why)),
                    None => failure,
                };
                Ok(Outcome { dir, summary, failure })
            }
            Err(why) => Err(self.graver(failure, why)),
        }
    }

    /// That no flow of any repetition opened, over a real network.
    fn nothing_opened(&self, dir: &RunDir, kept: &Fresh) -> Option<Error> {
        let why = kept.values().next()?.why_closed()?;
        let is_all = kept.values().all(|part| part.why_closed().is_some())
            && all_parts(dir, kept).is_ok_and(|all| all.len() == kept.len());
        let to = self.place.to.as_deref().unwrap_or("the far end");
        is_all.then(|| Error::FarEnd(format!("nothing got through to {to}: {why}")))
    }

    fn run_part_in(&self, mut work: Work<'_>) -> Result<PartOutcome, Error> {
        let Collected { kept, done, failure, .. } = self.measure(&mut work)?;
        let Work { mut dir, watch, .. } = work;
        let failure = match failure {
            Some(failure) if done.0 == 0 && is_in_vain(&failure, &dir, &kept) => {
                dir.discard_if_new();
                return Err(failure);
            }
            Some(Error::Interrupted(what)) => {
                let (kept, all) = done;
                Some(Error::Interrupted(format!("{what}; {kept} of {all} repetitions are kept")))
            }
            failure => failure,
        };
        Ok(PartOutcome { dir, done, wall_s: watch.wall_s(), cpu_s: watch.cpu_s(), failure })
    }

    /// Runs what is missing, what the machine disturbed once more, and what the plan grows by.
    fn measure(&self, work: &mut Work<'_>) -> Result<Collected<'_>, Error> {
        let Work { dir, workers, stop, .. } = work;
        let mut kept = self.kept_before(dir)?;
        let mut plan = Cow::Borrowed(self.plan);
        let mut time = TimeAgain::new(self.place.run_again, &plan, &kept);
        let keeping = Keeping::new(dir, self.records);
        loop {
            // Every repetition that neither the directory holds yet nor is among the kept.
            let ids = ids(&plan, self.shard);
            let (all, finished) = (ids.len() as u64, all_parts(dir, &kept)?);
            let missing = ids.into_iter().filter(|id| !finished.contains(&(*id, false)));
            let tasks = in_turn(&plan, missing, self.takes_turns);
            if self.shard.is_some() {
                kept = Fresh::new();
            }
            let Ran { mut fresh, finished, mut failure, mut beside } =
                self.run_tasks(&tasks, workers, &keeping, stop);
            kept.append(&mut fresh);
            let done = (all - (tasks.len() as u64).saturating_sub(finished), all);
            // What the machine disturbed, pass after pass, until none is left or its time is over.
            while failure.is_none() {
                let again = self.to_run_again(&plan, &kept, &mut time, &beside);
                if again.is_empty() {
                    break;
                }
                let ran = self.run_tasks(&again, workers, &keeping, stop);
                kept.extend(ran.fresh);
                (failure, beside) = (ran.failure, ran.beside);
            }
            let larger = match (&failure, self.growth) {
                (None, Some(growth)) => growth(&plan, &merge::so_far(&plan, &kept))?,
                _ => None,
            };
            let Some(larger) = larger else {
                let unwritten = keeping.unwritten();
                return Ok(Collected { plan, kept, done, failure, unwritten });
            };
            plan = Cow::Owned(larger);
            if let Err(why) = write_bytes(&dir.file(SCENARIO), plan.resolved.as_bytes()) {
                keeping.fail(why);
            }
        }
    }

    /// What earlier processes kept, as far as it need not be read from folders at the end. In real time that
    /// is all: only a part itself says whether it was disturbed.
    fn kept_before(&self, dir: &RunDir) -> Result<Fresh, Error> {
        let mut kept = journal::read(dir)?;
        if self.place.is_real_time() {
            for (id, unfinished) in dir.parts()? {
                let part: Part = read_json(&dir.part(id, unfinished).join(PART))?;
                // An attempt with few rows is in the journal, one with many has a folder.
                let is_older = |it: &Part| part.ran_again() < it.ran_again();
                if !kept.get(&(id, unfinished)).is_some_and(is_older) {
                    kept.insert((id, unfinished), part);
                }
            }
        }
        Ok(kept)
    }

    /// Those of the `kept` that were disturbed, and for which there is `time`, as tasks. Beside how many
    /// others at most each may run, `beside` says.
    fn to_run_again<'p>(
        &self,
        plan: &'p Plan,
        kept: &Fresh,
        time: &mut TimeAgain,
        beside: &BTreeMap<PartId, u64>,
    ) -> Vec<Task<'p>> {
        let disturbed = kept.iter().filter(|((_, unfinished), part)| !unfinished && part.is_disturbed());
        let times: BTreeMap<PartId, u64> = disturbed.map(|((id, _), part)| (*id, part.ran_again())).collect();
        let mut tasks = in_turn(plan, times.keys().copied(), self.takes_turns);
        let each = tasks.iter().map(|task| (task.cell.scenario.duration, times.get(&task.id).copied()));
        let most = time.at_most(plan, each.map(|(duration, times)| (duration, times.unwrap_or(0))));
        tasks.retain_mut(|task| {
            let ran_again = times.get(&task.id).copied().unwrap_or(0);
            task.ran_again = ran_again + 1;
            task.most_others = beside.get(&task.id).copied().unwrap_or(u64::MAX);
            time.grant(plan, task.cell.scenario.duration, ran_again)
        });
        if !tasks.is_empty() {
            let (disturbed, again) = (times.len(), tasks.len());
            self.observer.observe(Event::RunsAgain { disturbed, again, at_most: most });
        }
        tasks
    }

    /// Runs `tasks` on the workers; the first failure ends it, after the repetitions that are under way.
    fn run_tasks(
        &self,
        tasks: &[Task<'_>],
        workers: &mut [Worker],
        keeping: &Keeping<'_>,
        stop: &AtomicBool,
    ) -> Ran {
        let duration = |sum: Duration, task: &Task<'_>| sum.saturating_add(task.cell.scenario.duration);
        let whole = tasks.iter().fold(Duration::ZERO, duration);
        let beside = self.place.is_real_time().then_some(workers.len());
        let attempts = Attempts::new(&*self.observer, (tasks.len() as u64, whole), beside, stop);
        // Where it cannot be had, the run's lateness shows it.
        let awake = self.place.keep_awake.then(KeepAwake::begin);
        if let Some(Err(why)) = &awake {
            self.observer.observe(Event::NotKeptAwake(&why.to_string()));
        }
        let ran = Mutex::new(Ran::default());
        let failure = share_out(workers, tasks, |worker, task| {
            let Ended { part, failure, beside } = self.run_task(task, worker, &attempts, keeping);
            let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
            ran.finished += u64::from(part.is_some() && failure.is_none());
            if self.place.is_real_time() {
                ran.beside.insert(task.id, beside);
            }
            // The figures of a part are on disk; many small cells of them need not fit in memory here.
            if let Some(part) = part.filter(|_| self.shard.is_none()) {
                ran.fresh.insert((task.id, failure.is_some()), part);
            }
            failure.map_or(Ok(()), Err)
        });
        drop(awake);
        attempts.finish();
        let ran = ran.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ran { failure, ..ran }
    }

    /// Runs one repetition, and keeps it.
    fn run_task(
        &self,
        task: &Task<'_>,
        worker: &mut Worker,
        attempts: &Attempts<'_>,
        keeping: &Keeping<'_>,
    ) -> Ended {
        let Task { id, cell, ran_again, most_others } = *task;
        let wanted = Wanted {
            id,
            series: (self.exact || self.records != Records::None).then_some(self.series),
            rows: self.exact || self.records >= Records::All,
            stands: &|record| record.valid,
        };
        let neighbours = Neighbours { packets_per_s: None, most_others };
        let Some(attempt) = attempts.run(worker, &cell.scenario, wanted, neighbours) else {
            return Ended { part: None, failure: Some(Error::interrupted()), beside: most_others };
        };
        let Attempt { outcome, peace, others, began, shown } = attempt;
        let beside = peace.next_beside(others, most_others);
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
        let part = record.filter(|_| keeps).map(|record| {
            let kept = Kept { arrivals: worker.take_arrival_log(), capture: worker.take_capture() };
            let mut part = Part::new(&record, self.plan, cell, self.place.per_flow, stamps_from(began));
            part.set_ran_again(ran_again);
            if failure.is_none() {
                part.warn_of_silence();
            }
            let saved = keeping.save(&mut part, &record, &kept, failure.is_some());
            (part, saved)
        });
        let part = match part {
            // A part's figures are nowhere but in its folder.
            Some((_, Err(why))) if self.shard.is_some() => {
                return Ended { part: None, failure: Some(self.graver(failure, why)), beside };
            }
            // The figures are in memory: the run goes on, and says at its end what it could not write.
            Some((part, saved)) => {
                saved.unwrap_or_else(|why| keeping.fail(why));
                Some(part)
            }
            None => None,
        };
        if failure.is_none() {
            shown.finish();
            let disturbed = part.as_ref().filter(|part| part.is_disturbed());
            let disturbed = disturbed.map(|part| Disturbed { others, warnings: &part.warnings });
            let seed = cell.scenario.seed.repetition(id.repetition);
            self.observer.observe(Event::Ended { id, seed, disturbed });
        }
        Ended { part, failure, beside }
    }

    /// What ended the run, or what could not be written after it; of both the second is only told.
    fn graver(&self, failure: Option<Error>, unwritten: Error) -> Error {
        match failure {
            Some(failure) => {
                self.observer.observe(Event::AlsoFailed(unwritten));
                failure
            }
            None => unwritten,
        }
    }

    fn resumable(&self, started: String) -> Resumable {
        Resumable {
            talkpath: env!("CARGO_PKG_VERSION").to_owned(),
            started,
            arena: self.place.arena.word().to_owned(),
            to: self.place.to.clone(),
            records: self.records.word().to_owned(),
            exact: self.exact,
            series: self.series.word().to_owned(),
            per_flow: self.place.per_flow,
            rounds: self.takes_turns,
            key_file: self.place.key_file.clone(),
            clocks_synchronised: self.place.clocks_synchronised,
            capture: self.place.capture,
            keep_awake: self.place.keep_awake,
            run_again_ns: self.place.run_again.map(Duration::as_nanos),
            shard: self.shard.map(|shard| shard.to_string()),
            provenance: Some(provenance(self.arenas.revision())),
        }
    }
}

/// Whether nothing was measured, because the scenario or the arena does not allow it.
fn is_in_vain(failure: &Error, dir: &RunDir, kept: &Fresh) -> bool {
    let nothing_measured = || kept.is_empty() && dir.parts().is_ok_and(|parts| parts.is_empty());
    matches!(failure, Error::Unsupported(_) | Error::Unavailable { .. }) && nothing_measured()
}

/// `failure`, with how much of `plan` is kept all the same.
fn with_count(plan: &Plan, failure: Error, dir: &RunDir, kept: &Fresh) -> Error {
    let parts = all_parts(dir, kept).unwrap_or_default();
    let kept = parts.iter().filter(|(_, unfinished)| !unfinished).count();
    let all = plan.cells.len() as u64 * plan.repeat;
    let told = |what: String| format!("{what}; {kept} of {all} repetitions are kept");
    match failure {
        Error::Interrupted(what) => Error::Interrupted(told(what)),
        Error::FarEnd(what) => Error::FarEnd(told(what)),
        other => other,
    }
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;
