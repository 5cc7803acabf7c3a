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

pub(crate) mod attempt;
mod disturbed;
mod keeping;
pub(crate) mod merge;
pub(crate) mod room;
mod tasks;
#[cfg(test)]
mod tests;
mod warnings;
pub(crate) mod workers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use talkpath_measure::summary::Summary;
use talkpath_scenario::Plan;
use talkpath_system::keep_awake::KeepAwake;
use talkpath_units::Duration;

use self::attempt::{Attempt, Attempts, Neighbours, Wanted};
use self::disturbed::TimeAgain;
use self::keeping::Keeping;
use self::merge::{Merged, Merging};
use self::tasks::{Task, ids, in_turn};
use self::workers::share_out;
use crate::arenas::{self, Arenas, Place, Worker};
use crate::failure::Failure;
use crate::interrupt;
use crate::json::json;
use crate::terminal::{Terminal, counted, program, shell_path, shell_word};
use talkpath_experiment::choice::{ArenaKind, Choice, Records};
use talkpath_experiment::journal;
use talkpath_experiment::part::{Fresh, Kept, PART, Part, all_parts};
use talkpath_experiment::provenance::provenance;
use talkpath_experiment::resumable::{Resumable, plan_file};
use talkpath_experiment::run_dir::{PartId, RunDir, SCENARIO};
use talkpath_experiment::shard::Shard;
use talkpath_experiment::stopwatch::{Stopwatch, stamps_from};
use talkpath_experiment::store::whole::{read_json, write_bytes};
use talkpath_measure::series::SeriesDetail;

/// Everything that is to be run, and how.
pub(crate) struct Experiment<'a> {
    /// What to begin with.
    pub(crate) plan: &'a Plan,
    /// What to go on with, once all of a plan has run.
    pub(crate) growth: Option<&'a Growth<'a>>,
    /// Whether the cells take turns, repetition by repetition, in an order that is drawn anew each time: what
    /// a network does for a while then falls on all of them.
    pub(crate) takes_turns: bool,
    /// Which part of the run it is; `None` if it is all of it.
    pub(crate) shard: Option<Shard>,
    pub(crate) place: Place,
    pub(crate) arenas: &'a dyn Arenas,
    /// What is written of the rows.
    pub(crate) records: Records,
    /// Whether figures come from all rows, also of a simulation that writes none.
    pub(crate) exact: bool,
    pub(crate) series: SeriesDetail,
    /// Repetitions that run at a time; in real time fewer, where the machine has no room for them.
    pub(crate) at_once: usize,
    /// Threads that write the summary.
    pub(crate) jobs: usize,
    pub(crate) terminal: Terminal,
}

/// A larger plan that begins with the same cells and repetitions, or nothing if the summary says enough.
pub(crate) type Growth<'a> = dyn Fn(&Plan, &Summary) -> Result<Option<Plan>, Failure> + Sync + 'a;

/// What came of it. A run that ended early has both: what was measured, and why it ended.
pub(crate) struct Outcome {
    pub(crate) dir: RunDir,
    pub(crate) summary: Summary,
    pub(crate) failure: Option<Failure>,
}

/// What came of a part of a run, which only `merge` gives a summary.
pub(crate) struct PartOutcome {
    pub(crate) dir: RunDir,
    /// Repetitions that are whole, and those that the part has.
    pub(crate) done: (u64, u64),
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) failure: Option<Failure>,
}

/// Where a run directory is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Destination<'a> {
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
    failure: Option<Failure>,
    /// Beside how many others at most each may run, should it run again.
    beside: BTreeMap<PartId, u64>,
}

/// What came of a task.
struct Ended {
    /// What is kept of it.
    part: Option<Part>,
    /// Why it ended early, if it did.
    failure: Option<Failure>,
    /// Beside how many others at most it may run, should it run again.
    beside: u64,
}

/// A process at work in a run directory.
struct Work {
    dir: RunDir,
    begun: Resumable,
    workers: Vec<Worker>,
    watch: Stopwatch,
    stop: Arc<AtomicBool>,
}

/// What it has measured, with what was there before.
struct Collected<'p> {
    plan: Cow<'p, Plan>,
    /// What need not be read from folders; of a part nothing, because only `merge` takes its figures.
    kept: Fresh,
    /// Repetitions that are whole, and those that were to be.
    done: (u64, u64),
    failure: Option<Failure>,
    /// What could not be written of a run whose figures are in memory.
    unwritten: Option<Failure>,
}

/// What is put together.
struct Measured<'m> {
    plan: &'m Plan,
    kept: Fresh,
    failure: Option<&'m Failure>,
    unwritten: Option<Failure>,
}

impl Experiment<'_> {
    /// Runs everything in a new directory.
    pub(crate) fn run(&self, folder: Destination<'_>) -> Result<Outcome, Failure> {
        let work = self.start(folder)?;
        self.run_in(work)
    }

    /// Runs what is missing in the run directory `dir`, which `begun` describes.
    pub(crate) fn resume(&self, dir: RunDir, begun: Resumable) -> Result<Outcome, Failure> {
        let work = self.go_on(dir, begun)?;
        self.run_in(work)
    }

    /// Runs one part of a run in a new directory.
    pub(crate) fn run_part(&self, folder: Destination<'_>) -> Result<PartOutcome, Failure> {
        let work = self.start(folder)?;
        self.run_part_in(work)
    }

    /// Runs what is missing of a part of a run.
    pub(crate) fn resume_part(&self, dir: RunDir, begun: Resumable) -> Result<PartOutcome, Failure> {
        let work = self.go_on(dir, begun)?;
        self.run_part_in(work)
    }

    fn start(&self, folder: Destination<'_>) -> Result<Work, Failure> {
        let watch = Stopwatch::start();
        let stop = interrupt::install()?;
        // A far end that is not there is found out before anything is written.
        let workers = self.arenas.connect(&self.place, self.at_once)?;
        let (dir, begun) = self.open(folder, &watch)?;
        Ok(Work { dir, begun, workers, watch, stop })
    }

    /// A new run directory with what describes the run, and no repetition yet.
    pub(crate) fn open(
        &self,
        folder: Destination<'_>,
        watch: &Stopwatch,
    ) -> Result<(RunDir, Resumable), Failure> {
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
                self.terminal.detail(&format!("run directory: {}", dir.path().display()));
                Ok((dir, begun))
            }
            Err(failure) => {
                dir.discard_if_new();
                Err(self.with_way_out(failure))
            }
        }
    }

    /// Puts the repetitions together that somebody else put into `dir`, of which `kept` are those in its
    /// journal; the plan says how many they are in all.
    pub(crate) fn close(
        &self,
        dir: &mut RunDir,
        kept: Fresh,
        begun: &Resumable,
        watch: &Stopwatch,
    ) -> Result<(), Failure> {
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
    ) -> Result<(Summary, Option<Failure>), Failure> {
        let Measured { plan, kept, failure, unwritten } = measured;
        let (jobs, provenance) = (self.jobs, provenance(self.arenas.revision()));
        // Where the rows of some repetitions could not be written, those of the others are no run's records.
        let has_rows = unwritten.is_none();
        let merging =
            Merging { plan, demanded: self.plan, begun, jobs, watch, failure, has_rows, provenance };
        let Merged { summary, is_whole, unwritten: unmerged } = merging.finish(dir, &[&*dir], kept)?;
        let mut unwritten = unwritten.or(unmerged);
        if is_whole && unwritten.is_none() {
            unwritten = dir.remove_parts().err().map(Failure::from);
        }
        Ok((summary, unwritten))
    }

    fn go_on(&self, mut dir: RunDir, begun: Resumable) -> Result<Work, Failure> {
        let watch = Stopwatch::start();
        let stop = interrupt::install()?;
        dir.lock()?;
        let workers = self.arenas.connect(&self.place, self.at_once)?;
        Ok(Work { dir, begun, workers, watch, stop })
    }

    fn begin(&self, dir: &mut RunDir, begun: &Resumable) -> Result<(), Failure> {
        dir.lock_new()?;
        write_bytes(&dir.file(&plan_file()), &json(begun))?;
        for trace in &self.plan.traces {
            dir.write_trace(trace)?;
        }
        Ok(write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())?)
    }

    fn run_in(&self, mut work: Work) -> Result<Outcome, Failure> {
        let collected = self.measure(&mut work)?;
        let Work { mut dir, begun, watch, .. } = work;
        let Collected { plan, kept, failure, unwritten, .. } = collected;
        let failure = match failure {
            Some(failure) if is_in_vain(&failure, &dir, &kept) => {
                dir.discard_if_new();
                return Err(failure);
            }
            failure => failure.map(|failure| with_way_on(&plan, failure, &dir, &kept, &self.place)),
        };
        let closed = self.nothing_opened(&dir, &kept);
        let measured = Measured { plan: &plan, kept, failure: failure.as_ref(), unwritten };
        let put_together = self.put_together(measured, &mut dir, &begun, &watch);
        let failure = failure.or(closed);
        match put_together {
            Ok((summary, unwritten)) => {
                let failure = match unwritten.map(|why| self.with_way_out(why)) {
                    Some(why) => Some(self.graver(failure, why)),
                    None => failure,
                };
                Ok(Outcome { dir, summary, failure })
            }
            Err(why) => Err(self.graver(failure, self.with_way_out(why))),
        }
    }

    /// That no flow of any repetition opened, over a real network.
    fn nothing_opened(&self, dir: &RunDir, kept: &Fresh) -> Option<Failure> {
        let why = kept.values().next()?.why_closed()?;
        let is_all = kept.values().all(|part| part.why_closed().is_some())
            && all_parts(dir, kept).is_ok_and(|all| all.len() == kept.len());
        let to = self.place.to.as_deref().unwrap_or("the far end");
        is_all.then(|| Failure::FarEnd(format!("nothing got through to {to}: {why}")))
    }

    /// What could not be written for want of room, with what helps.
    fn with_way_out(&self, failure: Failure) -> Failure {
        if !failure.is_want_of_room() {
            return failure;
        }
        let fewer = match self.records {
            Records::None => "",
            Records::Summary | Records::All => "`--records none` writes the figures alone; ",
        };
        failure.with_help(format!("{fewer}`--out DIR` names another folder for runs"))
    }

    fn run_part_in(&self, mut work: Work) -> Result<PartOutcome, Failure> {
        let Collected { kept, done, failure, .. } = self.measure(&mut work)?;
        let Work { mut dir, watch, .. } = work;
        let failure = match failure.map(|failure| self.with_way_out(failure)) {
            Some(failure) if done.0 == 0 && is_in_vain(&failure, &dir, &kept) => {
                dir.discard_if_new();
                return Err(failure);
            }
            Some(Failure::Interrupted(what)) => Some(Failure::Interrupted(format!(
                "{what}; {} of {} repetitions are kept\nhelp: {} run --resume {}",
                done.0,
                done.1,
                program(),
                shell_path(dir.path())
            ))),
            failure => failure,
        };
        Ok(PartOutcome { dir, done, wall_s: watch.wall_s(), cpu_s: watch.cpu_s(), failure })
    }

    /// Runs what is missing, what the machine disturbed once more, and what the plan grows by.
    fn measure(&self, work: &mut Work) -> Result<Collected<'_>, Failure> {
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
                keeping.fail(why.into());
            }
        }
    }

    /// What earlier processes kept, as far as it need not be read from folders at the end. In real time that
    /// is all: only a part itself says whether it was disturbed.
    fn kept_before(&self, dir: &RunDir) -> Result<Fresh, Failure> {
        let mut kept = journal::read(dir)?;
        if self.is_real_time() {
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

    fn is_real_time(&self) -> bool {
        self.place.arena != ArenaKind::Sim
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
            let which = match tasks.len() {
                all if all == times.len() => "run".to_owned(),
                some => format!("{some} of them run"),
            };
            let count = counted(times.len(), "repetition");
            let at_most = most.as_nanos().div_ceil(1_000_000_000);
            self.terminal.note(&format!(
                "{count} disturbed past the stated limits: {which} again, which adds at most {at_most} s of path \
                 time in all (--run-again)"
            ));
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
        let beside = self.is_real_time().then_some(workers.len());
        let attempts = Attempts::new(self.terminal, (tasks.len() as u64, whole), beside, stop);
        // Where it cannot be had, the run's lateness shows it.
        let awake = self.place.keep_awake.then(KeepAwake::begin);
        if let Some(Err(why)) = &awake {
            self.terminal.warning(&format!("--keep-awake does nothing: {why}"));
        }
        let ran = Mutex::new(Ran::default());
        let failure = share_out(workers, tasks, |worker, task| {
            let Ended { part, failure, beside } = self.run_task(task, worker, &attempts, keeping);
            let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
            ran.finished += u64::from(part.is_some() && failure.is_none());
            if self.is_real_time() {
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
        };
        let neighbours = Neighbours { packets_per_s: None, most_others };
        let Some(attempt) = attempts.run(worker, &cell.scenario, wanted, neighbours) else {
            return Ended { part: None, failure: Some(arenas::interrupted()), beside: most_others };
        };
        let Attempt { outcome, peace, others, began, shown } = attempt;
        let beside = peace.next_beside(others, most_others);
        let (record, failure) = match outcome {
            Ok(record) => (Some(record), None),
            Err(why) => {
                let (partial, failure) = arenas::failure(why);
                (partial, Some(failure))
            }
        };
        // In `sim` a repetition that was cut short is no repetition; over a network it is what there is,
        // unless it runs again: then the whole one stays.
        let keeps = failure.is_none() || self.is_real_time() && ran_again == 0;
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
            let told = match part.as_ref().filter(|part| part.is_disturbed()) {
                None => "done".to_owned(),
                Some(part) => format!("disturbed beside {others} others: {}", part.warnings.join("; ")),
            };
            let seed = cell.scenario.seed.repetition(id.repetition).get();
            self.terminal
                .detail(&format!("cell {} repetition {} seed {seed}: {told}", id.cell, id.repetition));
        }
        Ended { part, failure, beside }
    }

    /// What ended the run, or what could not be written after it; the other is told.
    fn graver(&self, failure: Option<Failure>, unwritten: Failure) -> Failure {
        let told = |failure: &Failure| self.terminal.error(&failure.to_string());
        match failure {
            Some(failure) if failure.goes_before(&unwritten) => {
                told(&unwritten);
                failure
            }
            failure => {
                failure.iter().for_each(told);
                unwritten
            }
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
fn is_in_vain(failure: &Failure, dir: &RunDir, kept: &Fresh) -> bool {
    let nothing_measured = || kept.is_empty() && dir.parts().is_ok_and(|parts| parts.is_empty());
    matches!(failure, Failure::Usage(_) | Failure::Unavailable { .. }) && nothing_measured()
}

fn with_way_on(plan: &Plan, failure: Failure, dir: &RunDir, kept: &Fresh, place: &Place) -> Failure {
    let parts = all_parts(dir, kept).unwrap_or_default();
    let kept = parts.iter().filter(|(_, unfinished)| !unfinished).count();
    let all = plan.cells.len() as u64 * plan.repeat;
    let (program, path) = (program(), shell_path(dir.path()));
    let to = place.to.as_ref().map_or_else(String::new, |to| format!(" --to {}", shell_word(to)));
    let way_on = format!("{kept} of {all} repetitions are kept\nhelp: {program} run --resume {path}{to}");
    match failure {
        Failure::Interrupted(what) => Failure::Interrupted(format!("{what}; {way_on}")),
        Failure::FarEnd(what) => Failure::FarEnd(format!("{what}; {way_on}")),
        other => other,
    }
}
