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

pub(crate) mod merge;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use talkpath_arena::RunPlan;
use talkpath_measure::summary::Summary;
use talkpath_scenario::{Cell, Plan};
use talkpath_system::keep_awake::KeepAwake;
use talkpath_units::Duration;

use self::merge::Merging;
use crate::arenas::{self, Arenas, Place};
use crate::args::{ArenaKind, Records, SeriesPoints, flag_word};
use crate::failure::Failure;
use crate::interrupt;
use crate::journal::{self, Journal};
use crate::json::json;
use crate::part::{Fresh, Kept, Part, all_parts};
use crate::progress::Progress;
use crate::provenance::provenance;
use crate::resumable::{Resumable, plan_file};
use crate::run_dir::{PartId, RunDir, SCENARIO, write_bytes};
use crate::shard::{Division, Shard};
use crate::stopwatch::{Stopwatch, stamps};
use crate::terminal::{Terminal, program, shell_path, shell_word};

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
    pub(crate) records: Records,
    pub(crate) series: SeriesPoints,
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

/// A repetition to run, and its cell.
type Task<'p> = (PartId, &'p Cell);

/// A process at work in a run directory.
struct Work {
    dir: RunDir,
    begun: Resumable,
    workers: Vec<arenas::Worker>,
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
        let workers = self.arenas.connect(&self.place, self.jobs)?;
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
                Err(failure)
            }
        }
    }

    /// Puts the repetitions together that somebody else put into `dir`; the plan says how many those are.
    pub(crate) fn close(
        &self,
        dir: &mut RunDir,
        begun: &Resumable,
        watch: &Stopwatch,
    ) -> Result<(), Failure> {
        write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())?;
        self.put_together(self.plan, (dir, Fresh::new()), begun, watch, None).map(drop)
    }

    /// One run of what was measured, in `dir` and in memory.
    fn put_together(
        &self,
        plan: &Plan,
        (dir, kept): (&mut RunDir, Fresh),
        begun: &Resumable,
        watch: &Stopwatch,
        failure: Option<&Failure>,
    ) -> Result<Summary, Failure> {
        let (jobs, provenance) = (self.jobs, provenance(self.arenas.revision()));
        let merging = Merging { plan, demanded: self.plan, begun, jobs, watch, failure, provenance };
        let (summary, is_whole) = merging.finish(dir, &[&*dir], kept)?;
        if is_whole {
            dir.remove_parts()?;
        }
        Ok(summary)
    }

    fn go_on(&self, mut dir: RunDir, begun: Resumable) -> Result<Work, Failure> {
        let watch = Stopwatch::start();
        let stop = interrupt::install()?;
        dir.lock()?;
        let workers = self.arenas.connect(&self.place, self.jobs)?;
        Ok(Work { dir, begun, workers, watch, stop })
    }

    fn begin(&self, dir: &mut RunDir, begun: &Resumable) -> Result<(), Failure> {
        dir.lock_new()?;
        write_bytes(&dir.file(&plan_file()), &json(begun))?;
        for trace in &self.plan.traces {
            dir.write_trace(trace)?;
        }
        write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())
    }

    fn run_in(&self, mut work: Work) -> Result<Outcome, Failure> {
        let Collected { plan, kept, failure, .. } = self.measure(&mut work)?;
        let Work { mut dir, begun, watch, .. } = work;
        let failure = match failure {
            Some(failure) if is_in_vain(&failure, &dir, &kept) => {
                dir.discard_if_new();
                return Err(failure);
            }
            failure => failure.map(|failure| with_way_on(&plan, failure, &dir, &kept, &self.place)),
        };
        let closed = self.nothing_opened(&dir, &kept);
        let summary = self.put_together(&plan, (&mut dir, kept), &begun, &watch, failure.as_ref());
        let failure = failure.or(closed);
        match summary {
            Ok(summary) => Ok(Outcome { dir, summary, failure }),
            Err(why) => Err(self.graver(failure, why)),
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

    fn run_part_in(&self, mut work: Work) -> Result<PartOutcome, Failure> {
        let Collected { kept, done, failure, .. } = self.measure(&mut work)?;
        let Work { mut dir, watch, .. } = work;
        let failure = match failure {
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

    /// Runs what is missing, and what the plan grows by.
    fn measure(&self, work: &mut Work) -> Result<Collected<'_>, Failure> {
        let Work { dir, workers, stop, .. } = work;
        let mut kept = journal::read(dir)?;
        let mut plan = Cow::Borrowed(self.plan);
        loop {
            let (tasks, all) = self.tasks(&plan, dir, &kept)?;
            if self.shard.is_some() {
                kept = Fresh::new();
            }
            let (mut fresh, finished, failure) = self.run_tasks(dir, &tasks, workers, stop);
            kept.append(&mut fresh);
            let done = (all - (tasks.len() as u64).saturating_sub(finished), all);
            let (None, Some(growth)) = (&failure, self.growth) else {
                return Ok(Collected { plan, kept, done, failure });
            };
            match growth(&plan, &merge::so_far(&plan, &kept))? {
                Some(larger) => plan = Cow::Owned(larger),
                None => return Ok(Collected { plan, kept, done, failure }),
            }
            write_bytes(&dir.file(SCENARIO), plan.resolved.as_bytes())?;
        }
    }

    /// The repetitions of the part, in the plan's order.
    fn shard_ids(&self, plan: &Plan) -> Vec<PartId> {
        let of_cell = |cell| (0..plan.repeat).map(move |repetition| id(cell, repetition));
        let ids = plan.cells.iter().flat_map(of_cell);
        match self.shard.filter(|shard| !shard.is_whole()) {
            None => ids.collect(),
            Some(shard) => {
                let division = Division::new(plan, shard.of);
                ids.filter(|&id| shard.holds(division.part(id))).collect()
            }
        }
    }

    /// Every repetition of every cell that neither `dir` holds yet nor is among the `kept`, in the plan's
    /// order, or taking turns; and how many there are with those.
    fn tasks<'p>(&self, plan: &'p Plan, dir: &RunDir, kept: &Fresh) -> Result<(Vec<Task<'p>>, u64), Failure> {
        let finished = all_parts(dir, kept)?;
        let is_missing = |id: &PartId| !finished.contains(&(*id, false));
        let ids = self.shard_ids(plan);
        let all = ids.len() as u64;
        let ids = ids.into_iter().filter(is_missing);
        let mut tasks: Vec<_> = ids.filter_map(|id| Some((id, plan.cell(id.cell)?))).collect();
        if self.takes_turns {
            let turn = |id: PartId| {
                let mut order = plan.seed.repetition(id.repetition).stream(&format!("turn/{}", id.cell));
                (id.repetition, order.bits())
            };
            tasks.sort_by_cached_key(|(id, _)| turn(*id));
        }
        Ok((tasks, all))
    }

    /// Runs `tasks` on the workers; the first failure ends it, after the repetitions that are under way.
    /// Returns what was kept, and how many repetitions it is.
    fn run_tasks(
        &self,
        dir: &RunDir,
        tasks: &[(PartId, &Cell)],
        workers: &mut [arenas::Worker],
        stop: &AtomicBool,
    ) -> (Fresh, u64, Option<Failure>) {
        let whole =
            tasks.iter().fold(Duration::ZERO, |sum, (_, cell)| sum.saturating_add(cell.scenario.duration));
        let progress = Progress::new(self.terminal, tasks.len() as u64, whole);
        // Where it cannot be had, the run's lateness shows it.
        let awake = self.place.keep_awake.then(KeepAwake::begin);
        if let Some(Err(why)) = &awake {
            self.terminal.warning(&format!("--keep-awake does nothing: {why}"));
        }
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let first_failure = || failure.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Mutex::new(Fresh::new());
        let finished = AtomicUsize::new(0);
        let work = |worker: &mut arenas::Worker| {
            let mut journal = Journal::default();
            while first_failure().is_none() {
                let Some(&(id, cell)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let (part, why) = match stop.load(Ordering::Relaxed) {
                    true => (None, Some(arenas::interrupted())),
                    false => self.run_task((dir, &mut journal), id, cell, worker, &progress, stop),
                };
                finished.fetch_add(usize::from(part.is_some() && why.is_none()), Ordering::Relaxed);
                // The figures of a part are on disk; many small cells of them need not fit in memory here.
                if let Some(part) = part.filter(|_| self.shard.is_none()) {
                    let mut fresh = fresh.lock().unwrap_or_else(PoisonError::into_inner);
                    fresh.insert((id, why.is_some()), part);
                }
                if let Some(why) = why {
                    first_failure().get_or_insert(why);
                }
            }
        };
        let mut started = 0;
        thread::scope(|scope| {
            for worker in workers.iter_mut().take(tasks.len()) {
                if let Err(why) = thread::Builder::new().spawn_scoped(scope, || work(worker)) {
                    // The threads that run share the rest. Without any, nothing would.
                    if started == 0 {
                        first_failure().get_or_insert_with(|| arenas::no_thread(&why));
                    }
                    break;
                }
                started += 1;
            }
        });
        drop(awake);
        progress.finish();
        let failure = first_failure().take();
        let fresh = fresh.into_inner().unwrap_or_else(PoisonError::into_inner);
        (fresh, finished.into_inner() as u64, failure)
    }

    /// Runs one repetition; returns what is kept of it, and why it ended early if it did.
    fn run_task(
        &self,
        (dir, journal): (&RunDir, &mut Journal),
        id: PartId,
        cell: &Cell,
        worker: &mut arenas::Worker,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> (Option<Part>, Option<Failure>) {
        let repetition = progress.repetition(cell.scenario.duration);
        let seed = cell.scenario.seed.repetition(id.repetition);
        let plan = RunPlan {
            cell: id.cell,
            repetition: id.repetition,
            seed,
            series: (self.records != Records::None).then_some(self.series.detail()),
            rows: self.records >= Records::All,
            interrupt: stop,
            progress: &|now| repetition.reach(now),
        };
        let stamp = stamps();
        let (record, failure) = match worker.run(&cell.scenario, plan) {
            Ok(record) => (Some(record), None),
            Err(why) => {
                let (partial, failure) = arenas::failure(why);
                (partial, Some(failure))
            }
        };
        // In `sim` a repetition that was cut short is no repetition; over a network it is what there is.
        let keeps = failure.is_none() || self.place.arena != ArenaKind::Sim;
        let part = record.filter(|_| keeps).map(|record| {
            let kept = Kept { arrivals: worker.take_arrival_log(), capture: worker.take_capture() };
            let mut part = Part::new(&record, self.plan, cell, self.place.per_flow, stamp);
            if failure.is_none() {
                part.warn_of_silence();
            }
            match self.records == Records::None && kept.capture.is_none() && failure.is_none() {
                true => journal.append(dir, &part)?,
                false => part.save(dir, &record, &kept, self.records, failure.is_some())?,
            }
            if failure.is_none() {
                dir.discard_unfinished(id)?;
            }
            Ok(part)
        });
        let part = match part.transpose() {
            Ok(part) => part,
            Err(why) => return (None, Some(self.graver(failure, why))),
        };
        if failure.is_none() {
            repetition.finish();
            let seed = seed.get();
            self.terminal.detail(&format!("cell {} repetition {} seed {seed}: done", id.cell, id.repetition));
        }
        (part, failure)
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
            arena: flag_word(&self.place.arena),
            to: self.place.to.clone(),
            records: flag_word(&self.records),
            series: flag_word(&self.series),
            per_flow: self.place.per_flow,
            rounds: self.takes_turns,
            key_file: self.place.key_file.clone(),
            clocks_synchronised: self.place.clocks_synchronised,
            capture: self.place.capture,
            keep_awake: self.place.keep_awake,
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

fn id(cell: &Cell, repetition: u64) -> PartId {
    PartId { cell: cell.index, repetition }
}
