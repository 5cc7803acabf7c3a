//! Runs a plan: every repetition of every cell becomes a part in a run directory, and the parts become one
//! summary.
//!
//! ```text
//! Plan ─► shard ─► the loop (`repetitions.rs`) ─► parts in a directory     ┐
//!                                parts in the directory of another machine ┴► merge (`merge.rs`)
//!      ─► summary.json, packets.parquet, ..., report.html
//! ```
//!
//! A run on one machine merges its parts at its end. If several machines share a run, each runs a shard and
//! leaves its parts, and `talkpath merge` puts the directories together.
//!
//! In real time the machine may disturb a repetition past its stated limits. Disturbed repetitions run again
//! after all others (`disturbed.rs`). Those that stay disturbed are left out of the figures (`merge.rs`).
//!
//! Begin to read with [`Experiment::run`].

use std::borrow::Cow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summary::Summary;
use talkpath_scenario::Plan;
use talkpath_units::{Duration, counted, is_or_are};

use crate::Error;
use crate::choice::{Choice, Records};
use crate::findings::Findings;
use crate::journal;
use crate::json::json;
use crate::keeping::{PartKeeper, PartWriter};
use crate::merge::{self, Merged, Merging};
use crate::observer::{Event, Observer};
use crate::part::{PART, Part, PartsInMemory, add_latest, all_parts};
use crate::place::{Connect, Place, Worker};
use crate::provenance::provenance;
use crate::repetitions::{EarlierRepetition, LoopResult, Progress, Repetitions};
use crate::run_dir::{PartId, PartKey, RunDir, SCENARIO};
use crate::run_options::{RunOptions, plan_file};
use crate::shard::{Shard, ShardAssignment};
use crate::stopwatch::Stopwatch;
use crate::store::whole::{read_json, write_bytes};
use crate::tasks::{CellPlan, ONE_PLAN, Order};

/// A plan to run, and how to run it.
pub struct Experiment<'a> {
    /// The plan that the user started.
    pub plan: &'a Plan,
    /// Returns a larger plan once all of a plan has run; `None` if the run does not grow.
    pub growth: Option<&'a Growth<'a>>,
    /// Whether the cells take turns: the first repetition of each cell runs, then the second of each. The
    /// order of the cells is drawn anew each time, so that a slow hour of the network falls on all cells.
    pub takes_turns: bool,
    /// The share of the repetitions that runs on this machine; `None` if all of them do.
    pub shard: Option<Shard>,
    /// The arena, the far host and the options of the runs.
    pub place: Place,
    /// Makes the workers, each with an arena.
    pub arenas: &'a dyn Connect,
    /// The record files that the run leaves.
    pub records: Records,
    /// Whether figures are computed from all rows, even if a simulation writes no rows.
    pub exact: bool,
    /// How the states over time are sampled.
    pub series: SeriesDetail,
    /// The largest number of repetitions at the same time. In real time there are fewer while the machine has
    /// no room for them.
    pub at_once: usize,
    /// The number of threads that write the summary.
    pub jobs: usize,
    /// Receives the events of the run.
    pub observer: Box<dyn Observer>,
    /// Judges and draws the figures.
    pub findings: &'a dyn Findings,
}

/// Returns a larger plan that begins with the same cells and repetitions, or `None` if the summary of the
/// given plan says enough.
pub type Growth<'a> = dyn Fn(&Plan, &Summary) -> Result<Option<Plan>, Error> + Sync + 'a;

/// The result of a run. A run that ended early has both a summary and a failure.
pub struct Outcome {
    /// The run directory. It has parts as long as the run can be resumed.
    pub dir: RunDir,
    /// The figures of the run.
    pub summary: Summary,
    /// Why the run ended early, or which file could not be written.
    pub failure: Option<Error>,
}

/// The result of a shard. It has no summary, because `merge` makes the summary of all shards.
pub struct PartOutcome {
    /// The directory of the shard.
    pub dir: RunDir,
    /// The number of repetitions that have finished.
    pub finished: u64,
    /// The number of repetitions of the shard.
    pub planned: u64,
    /// Real time, s.
    pub wall_s: f64,
    /// CPU time of the whole process, s.
    pub cpu_s: f64,
    /// Why the shard ended early, or which file could not be written.
    pub failure: Option<Error>,
}

/// Where a run directory is made.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    /// In this folder. The name is made of the time and the scenario's name.
    Under(&'a Path),
    /// At this path.
    At(&'a Path),
}

/// A run directory that this process has locked, and the workers that run in it.
struct OpenRun<'s> {
    dir: RunDir,
    /// The options of the run, as plan.json has them.
    options: RunOptions,
    workers: Vec<Worker>,
    watch: Stopwatch,
    /// Becomes true when the user wants to stop.
    stop: &'s AtomicBool,
}

/// What this process and earlier ones have measured.
struct Measured<'p> {
    /// The plan that has run: the one that the user started, or the last larger one.
    plan: Cow<'p, Plan>,
    /// The parts that need not be read from their folders for the merge. Empty in a shard.
    in_memory: PartsInMemory,
    finished: u64,
    planned: u64,
    /// Why the run ended early.
    failure: Option<Error>,
    /// The first part that could not be written although its figures are in memory.
    write_error: Option<Error>,
}

/// The parts that become one run.
struct ToMerge<'m> {
    plan: &'m Plan,
    in_memory: PartsInMemory,
    failure: Option<&'m Error>,
    write_error: Option<Error>,
}

impl<'a> Experiment<'a> {
    /// Describes an experiment that runs all of `plan`, one repetition after the other, and keeps all
    /// records.
    pub fn new(
        plan: &'a Plan,
        place: Place,
        arenas: &'a dyn Connect,
        observer: Box<dyn Observer>,
        findings: &'a dyn Findings,
    ) -> Self {
        Self {
            plan,
            growth: None,
            takes_turns: false,
            shard: None,
            place,
            arenas,
            records: Records::All,
            exact: false,
            series: SeriesDetail::Sampled,
            at_once: 1,
            jobs: 1,
            observer,
            findings,
        }
    }

    /// Runs the whole plan in a new directory.
    pub fn run(&self, destination: Destination<'_>, stop: &AtomicBool) -> Result<Outcome, Error> {
        let run = self.start(destination, stop)?;
        self.run_to_summary(run)
    }

    /// Runs the repetitions that are missing in the run directory `dir`. `options` were read from its
    /// plan.json.
    pub fn resume(&self, dir: RunDir, options: RunOptions, stop: &AtomicBool) -> Result<Outcome, Error> {
        let run = self.reopen(dir, options, stop)?;
        self.run_to_summary(run)
    }

    /// Runs a shard in a new directory.
    pub fn run_part(&self, destination: Destination<'_>, stop: &AtomicBool) -> Result<PartOutcome, Error> {
        let run = self.start(destination, stop)?;
        self.run_shard(run)
    }

    /// Runs the repetitions that are missing in the directory `dir` of a shard.
    pub fn resume_part(
        &self,
        dir: RunDir,
        options: RunOptions,
        stop: &AtomicBool,
    ) -> Result<PartOutcome, Error> {
        let run = self.reopen(dir, options, stop)?;
        self.run_shard(run)
    }

    fn start<'s>(&self, destination: Destination<'_>, stop: &'s AtomicBool) -> Result<OpenRun<'s>, Error> {
        let watch = Stopwatch::start();
        // The workers connect first, so that nothing is written if the far host is not there.
        let workers = self.arenas.connect(&self.place, self.at_once)?;
        let (dir, options) = self.open(destination, &watch)?;
        Ok(OpenRun { dir, options, workers, watch, stop })
    }

    fn reopen<'s>(
        &self,
        mut dir: RunDir,
        options: RunOptions,
        stop: &'s AtomicBool,
    ) -> Result<OpenRun<'s>, Error> {
        let watch = Stopwatch::start();
        dir.lock()?;
        let workers = self.arenas.connect(&self.place, self.at_once)?;
        Ok(OpenRun { dir, options, workers, watch, stop })
    }

    /// Makes a run directory with the files that describe the run, and without any repetition.
    pub fn open(
        &self,
        destination: Destination<'_>,
        watch: &Stopwatch,
    ) -> Result<(RunDir, RunOptions), Error> {
        let name = match self.shard {
            None => self.plan.name.clone(),
            Some(shard) => format!("{} {}", self.plan.name, shard.for_file_name()),
        };
        let mut dir = match destination {
            Destination::Under(folder) => RunDir::create(folder, &watch.started_for_file_name(), &name)?,
            Destination::At(path) => RunDir::create_at(path)?,
        };
        let options = self.options(watch.started());
        if let Err(why) = self.write_description(&mut dir, &options) {
            dir.discard_if_new();
            return Err(why);
        }
        self.observer.observe(Event::Directory(dir.path()));
        Ok((dir, options))
    }

    fn write_description(&self, dir: &mut RunDir, options: &RunOptions) -> Result<(), Error> {
        dir.lock_new()?;
        write_bytes(&dir.file(&plan_file()), &json(options))?;
        for trace in &self.plan.traces {
            dir.write_trace(trace)?;
        }
        // The scenario is written last: a directory with a scenario has all other files, too.
        write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())
    }

    /// Runs the plan, and merges the parts into the files of the run.
    fn run_to_summary(&self, mut run: OpenRun<'_>) -> Result<Outcome, Error> {
        let measured = self.measure(&mut run)?;
        let OpenRun { mut dir, options, watch, .. } = run;
        let Measured { plan, in_memory, failure, write_error, .. } = measured;
        let failure = match failure {
            Some(failure) if is_in_vain(&failure, &dir, &in_memory) => {
                dir.discard_if_new();
                return Err(failure);
            }
            Some(failure) => Some(with_count(&plan, failure, &dir, &in_memory)),
            None => None,
        };
        let nothing_opened = self.nothing_opened(&dir, &in_memory);
        let to_merge = ToMerge { plan: &plan, in_memory, failure: failure.as_ref(), write_error };
        let merged = self.merge(to_merge, &mut dir, &options, &watch);
        let failure = failure.or(nothing_opened);
        match merged {
            Ok((summary, None)) => Ok(Outcome { dir, summary, failure }),
            Ok((summary, Some(write_error))) => {
                let failure = Some(self.observer.graver(failure, write_error));
                Ok(Outcome { dir, summary, failure })
            }
            Err(why) => Err(self.observer.graver(failure, why)),
        }
    }

    /// Runs a shard. Its parts stay in the directory for `talkpath merge`.
    fn run_shard(&self, mut run: OpenRun<'_>) -> Result<PartOutcome, Error> {
        let Measured { in_memory, finished, planned, failure, .. } = self.measure(&mut run)?;
        let OpenRun { mut dir, watch, .. } = run;
        let failure = match failure {
            Some(failure) if finished == 0 && is_in_vain(&failure, &dir, &in_memory) => {
                dir.discard_if_new();
                return Err(failure);
            }
            Some(Error::Interrupted(what)) => {
                Some(Error::Interrupted(format!("{what}; {}", count_of_kept(finished, planned))))
            }
            failure => failure,
        };
        let (wall_s, cpu_s) = (watch.wall_s(), watch.cpu_s());
        Ok(PartOutcome { dir, finished, planned, wall_s, cpu_s, failure })
    }

    /// Runs the repetitions that are missing and those that were disturbed. Then lets the plan grow, and runs
    /// the larger plan, until the plan grows no more or the run fails.
    fn measure(&self, run: &mut OpenRun<'_>) -> Result<Measured<'_>, Error> {
        let OpenRun { dir, workers, stop, .. } = run;
        let mut in_memory = self.earlier_parts(dir)?;
        let mut progress = self.progress(dir, &in_memory)?;
        if self.shard.is_some() {
            // `progress` has all that a shard needs of its parts, because only `talkpath merge` reads their
            // figures.
            in_memory = PartsInMemory::new();
        }
        let mut plan = Cow::Borrowed(self.plan);
        let writer = PartWriter::new(dir, self.records);
        loop {
            let (new_parts, LoopResult { finished, planned, failure, .. }) =
                self.run_plan(&plan, &writer, workers, &mut progress, stop);
            in_memory.extend(new_parts);
            let larger_plan = match self.growth {
                Some(growth) if failure.is_none() => {
                    growth(&plan, &merge::summary_so_far(&plan, &in_memory))?
                }
                _ => None,
            };
            let Some(larger_plan) = larger_plan else {
                let write_error = writer.into_failure();
                return Ok(Measured { plan, in_memory, finished, planned, failure, write_error });
            };
            plan = Cow::Owned(larger_plan);
            if let Err(why) = write_bytes(&dir.file(SCENARIO), plan.resolved.as_bytes()) {
                writer.stop_writing(why);
            }
        }
    }

    /// Reads the parts of earlier processes that the loop needs to know. Those are the parts in the journals
    /// and, in real time, the parts in folders as well: a part says whether the machine disturbed it. In
    /// virtual time the machine disturbs nothing, so the folders are read only for the merge.
    fn earlier_parts(&self, dir: &RunDir) -> Result<PartsInMemory, Error> {
        let mut parts = journal::read(dir)?;
        if self.place.is_real_time() {
            for key in dir.parts()? {
                let part: Part = read_json(&dir.part_folder(key).join(PART))?;
                add_latest(&mut parts, key, part);
            }
        }
        Ok(parts)
    }

    /// Returns the progress of earlier processes.
    fn progress(&self, dir: &RunDir, in_memory: &PartsInMemory) -> Result<Progress, Error> {
        let cells = CellPlan::all_of(self.plan);
        let mut progress = Progress::new(self.place.run_again);
        for key in all_parts(dir, in_memory)? {
            // A repetition that was cut short has not finished, so it runs anew.
            if key.is_cut_short {
                continue;
            }
            let part = in_memory.get(&key);
            let earlier = EarlierRepetition {
                id: key.id,
                fingerprint: ONE_PLAN,
                reruns: part.map_or(0, Part::reruns),
                is_disturbed: part.is_some_and(Part::is_disturbed),
            };
            progress.add(&cells, earlier);
        }
        Ok(progress)
    }

    /// Runs the repetitions of `plan` that have not finished. Returns the parts that stay in memory, and the
    /// result of the loop.
    fn run_plan(
        &self,
        plan: &Plan,
        writer: &PartWriter<'_>,
        workers: &mut [Worker],
        progress: &mut Progress,
        stop: &AtomicBool,
    ) -> (PartsInMemory, LoopResult) {
        let shard = self.shard.filter(|shard| !shard.is_whole_run());
        let shard_and_assignment = shard.map(|shard| (shard, ShardAssignment::new(plan, shard.total)));
        let is_here = |id: PartId| match &shard_and_assignment {
            Some((shard, assignment)) => shard.contains(assignment.shard_of(id)),
            None => true,
        };
        let keeper = PartKeeper {
            writer,
            plan,
            demanded: self.plan,
            series: (self.exact || self.records != Records::None).then_some(self.series),
            rows: self.exact || self.records >= Records::All,
            per_flow: self.place.per_flow,
            in_memory: self.shard.is_none(),
            parts: Mutex::default(),
            observer: &*self.observer,
        };
        let repetitions = Repetitions {
            cells: &CellPlan::all_of(plan),
            order: if self.takes_turns { Order::InTurns(plan.seed) } else { Order::ByCell },
            is_here: &is_here,
            place: &self.place,
            skips_unsupported: false,
            keeper: &keeper,
            observer: &*self.observer,
            stop,
        };
        let result = repetitions.run(workers, progress);
        (keeper.into_parts(), result)
    }

    /// Returns an error if no flow of any repetition opened a connection over a real network.
    fn nothing_opened(&self, dir: &RunDir, in_memory: &PartsInMemory) -> Option<Error> {
        let why = in_memory.values().next()?.why_closed()?;
        let all_in_memory_are_closed = in_memory.values().all(|part| part.why_closed().is_some());
        let all_are_in_memory = all_parts(dir, in_memory).is_ok_and(|keys| keys.len() == in_memory.len());
        if !all_in_memory_are_closed || !all_are_in_memory {
            return None;
        }
        let to = self.place.to.as_deref().unwrap_or("the far end");
        Some(Error::FarEnd(format!("nothing got through to {to}: {why}")))
    }

    /// Merges the parts that another program has put into `dir`. `in_journal` are those in its journal. The
    /// number of repetitions is the plan's.
    pub fn close(
        &self,
        dir: &mut RunDir,
        in_journal: PartsInMemory,
        options: &RunOptions,
        watch: &Stopwatch,
    ) -> Result<(), Error> {
        write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())?;
        let to_merge = ToMerge { plan: self.plan, in_memory: in_journal, failure: None, write_error: None };
        match self.merge(to_merge, dir, options, watch)? {
            (_, None) => Ok(()),
            (_, Some(write_error)) => Err(write_error),
        }
    }

    /// Merges the parts into the files of the run. Removes the parts if all of them are there and all files
    /// were written. Returns the summary, and the first file that could not be written.
    fn merge(
        &self,
        to_merge: ToMerge<'_>,
        dir: &mut RunDir,
        options: &RunOptions,
        watch: &Stopwatch,
    ) -> Result<(Summary, Option<Error>), Error> {
        let ToMerge { plan, in_memory, failure, write_error } = to_merge;
        let merging = Merging {
            plan,
            demanded: self.plan,
            options,
            jobs: self.jobs,
            watch,
            failure,
            // If the rows of some repetitions could not be written, the run has no files of rows, because
            // they would be incomplete.
            has_rows: write_error.is_none(),
            provenance: provenance(self.arenas.revision()),
            findings: self.findings,
        };
        let Merged { summary, is_complete, write_error: file_error } =
            merging.finish(dir, &[&*dir], in_memory)?;
        let mut write_error = write_error.or(file_error);
        if is_complete && write_error.is_none() {
            write_error = dir.remove_parts().err();
        }
        Ok((summary, write_error))
    }

    /// Returns the options of the run, as plan.json has them.
    fn options(&self, started: String) -> RunOptions {
        RunOptions {
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
            ip: self.place.ip.number(),
            clocks_synchronised: self.place.clocks_synchronised,
            capture: self.place.capture,
            qlog: self.place.qlog,
            keep_awake: self.place.keep_awake,
            run_again_ns: self.place.run_again.map(Duration::as_nanos),
            assumed_queues: self.plan.understood.assumed_queues.clone(),
            shard: self.shard.map(|shard| shard.to_string()),
            provenance: Some(provenance(self.arenas.revision())),
        }
    }
}

/// Returns whether the run failed before it measured anything, because the arena does not support the
/// scenario or is not available.
fn is_in_vain(failure: &Error, dir: &RunDir, in_memory: &PartsInMemory) -> bool {
    matches!(failure, Error::Unsupported(_) | Error::Unavailable { .. })
        && in_memory.is_empty()
        && dir.parts().is_ok_and(|parts| parts.is_empty())
}

/// Returns `3 of 5 repetitions are kept`.
fn count_of_kept(kept: u64, all: u64) -> String {
    format!("{kept} of {} {} kept", counted(all, "repetition"), is_or_are(kept))
}

/// Returns `failure` with the number of repetitions of `plan` that are kept nevertheless.
fn with_count(plan: &Plan, failure: Error, dir: &RunDir, in_memory: &PartsInMemory) -> Error {
    let is_whole = |key: &&PartKey| !key.is_cut_short;
    let kept = all_parts(dir, in_memory).unwrap_or_default().iter().filter(is_whole).count();
    let count = count_of_kept(kept as u64, plan.cells.len() as u64 * plan.repeat);
    match failure {
        Error::Interrupted(what) => Error::Interrupted(format!("{what}; {count}")),
        Error::FarEnd(what) => Error::FarEnd(format!("{what}; {count}")),
        other => other,
    }
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;
