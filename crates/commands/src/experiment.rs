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
use talkpath_measure::RunRecord;
use talkpath_measure::summary::Summary;
use talkpath_scenario::{Cell, Plan};
use talkpath_system::keep_awake::KeepAwake;
use talkpath_units::Duration;

use self::merge::{Merged, Merging};
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
    /// What is written of the rows.
    pub(crate) records: Records,
    /// Whether figures come from all rows, also of a simulation that writes none.
    pub(crate) exact: bool,
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

/// The journal of a worker, and whether anything can still be written.
struct Keeping<'w> {
    journal: Journal,
    /// What could not be written first: after it nothing is tried.
    unwritten: &'w Mutex<Option<Failure>>,
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
                Err(self.with_way_out(failure))
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
        let measured = Measured { plan: self.plan, kept: Fresh::new(), failure: None, unwritten: None };
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
            unwritten = dir.remove_parts().err();
        }
        Ok((summary, unwritten))
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

    /// Runs what is missing, and what the plan grows by.
    fn measure(&self, work: &mut Work) -> Result<Collected<'_>, Failure> {
        let Work { dir, workers, stop, .. } = work;
        let mut kept = journal::read(dir)?;
        let mut plan = Cow::Borrowed(self.plan);
        let unwritten = Mutex::new(None);
        loop {
            let (tasks, all) = self.tasks(&plan, dir, &kept)?;
            if self.shard.is_some() {
                kept = Fresh::new();
            }
            let (mut fresh, finished, failure) = self.run_tasks((dir, &unwritten), &tasks, workers, stop);
            kept.append(&mut fresh);
            let done = (all - (tasks.len() as u64).saturating_sub(finished), all);
            let larger = match (&failure, self.growth) {
                (None, Some(growth)) => growth(&plan, &merge::so_far(&plan, &kept))?,
                _ => None,
            };
            let Some(larger) = larger else {
                let unwritten = unwritten.into_inner().unwrap_or_else(PoisonError::into_inner);
                return Ok(Collected { plan, kept, done, failure, unwritten });
            };
            plan = Cow::Owned(larger);
            if let Err(why) = write_bytes(&dir.file(SCENARIO), plan.resolved.as_bytes()) {
                unwritten.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
            }
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
        (dir, unwritten): (&RunDir, &Mutex<Option<Failure>>),
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
            let mut keeping = Keeping { journal: Journal::default(), unwritten };
            while first_failure().is_none() {
                let Some(&(id, cell)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let (part, why) = match stop.load(Ordering::Relaxed) {
                    true => (None, Some(arenas::interrupted())),
                    false => self.run_task((dir, &mut keeping), id, cell, worker, &progress, stop),
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
        (dir, keeping): (&RunDir, &mut Keeping<'_>),
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
            series: (self.exact || self.records != Records::None).then_some(self.series.detail()),
            rows: self.exact || self.records >= Records::All,
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
            let saved = self.save((dir, keeping), &part, &record, &kept, failure.is_some());
            (part, saved)
        });
        let part = match part {
            // A part's figures are nowhere but in its folder.
            Some((_, Err(why))) if self.shard.is_some() => return (None, Some(self.graver(failure, why))),
            // The figures are in memory: the run goes on, and says at its end what it could not write.
            Some((part, saved)) => {
                if let Err(why) = saved {
                    keeping.unwritten.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                }
                Some(part)
            }
            None => None,
        };
        if failure.is_none() {
            repetition.finish();
            let seed = seed.get();
            self.terminal.detail(&format!("cell {} repetition {} seed {seed}: done", id.cell, id.repetition));
        }
        (part, failure)
    }

    /// Keeps `part` in `dir`, unless something could not be written there before.
    fn save(
        &self,
        (dir, keeping): (&RunDir, &mut Keeping<'_>),
        part: &Part,
        record: &RunRecord,
        kept: &Kept,
        is_cut_short: bool,
    ) -> Result<(), Failure> {
        if keeping.unwritten.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        match self.records == Records::None && kept.capture.is_none() && !is_cut_short {
            true => keeping.journal.append(dir, part)?,
            false => part.save(dir, record, kept, self.records, is_cut_short)?,
        }
        if is_cut_short { Ok(()) } else { dir.discard_unfinished(part.id()) }
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
            exact: self.exact,
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
