//! A plan becomes a run directory: every repetition of every cell, in any order, on any number of jobs and of
//! machines, then one summary over all of them in the plan's order.
//!
//! ```text
//! Plan ─► shard ─► the loop (`repetitions.rs`) ─► parts in a folder ┐
//!                                          another machine's folder ┴► merge
//!      ─► summary.json, packets.parquet, ..., report.html
//! ```
//!
//! A run of one machine has one shard, and its parts are merged at its end. Of several machines each leaves
//! its parts, and `talkpath merge` does the same over all their folders.
//!
//! In real time the machine may disturb a repetition past its stated limits. Such ones run again after all
//! others (`disturbed.rs`), and what stays disturbed is left out of the figures (`merge.rs`).

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
use crate::keeping::{Keeping, PartKeeper};
use crate::merge::{self, Merged, Merging};
use crate::observer::{Event, Observer};
use crate::part::{Fresh, PART, Part, all_parts};
use crate::place::{Connect, Place, Worker};
use crate::provenance::provenance;
use crate::repetitions::{Came, KeptBefore, Progress, Repetitions};
use crate::resumable::{Resumable, plan_file};
use crate::run_dir::{PartId, RunDir, SCENARIO};
use crate::shard::{Division, Shard};
use crate::stopwatch::Stopwatch;
use crate::store::whole::{read_json, write_bytes};
use crate::tasks::{CellPlan, ONE_PLAN, Order};

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
                    Some(why) => Some(self.observer.graver(failure, why)),
                    None => failure,
                };
                Ok(Outcome { dir, summary, failure })
            }
            Err(why) => Err(self.observer.graver(failure, why)),
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
                Some(Error::Interrupted(format!("{what}; {}", kept_of(kept, all))))
            }
            failure => failure,
        };
        Ok(PartOutcome { dir, done, wall_s: watch.wall_s(), cpu_s: watch.cpu_s(), failure })
    }

    /// Runs what is missing, what the machine disturbed once more, and what the plan grows by.
    fn measure(&self, work: &mut Work<'_>) -> Result<Collected<'_>, Error> {
        let Work { dir, workers, stop, .. } = work;
        let mut kept = self.kept_before(dir)?;
        let mut progress = self.progress(dir, &kept)?;
        if self.shard.is_some() {
            kept = Fresh::new();
        }
        let mut plan = Cow::Borrowed(self.plan);
        let keeping = Keeping::new(dir, self.records);
        loop {
            let (fresh, Came { done, failure, .. }) =
                self.run_plan(&plan, &keeping, workers, &mut progress, stop);
            kept.extend(fresh);
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

    /// What of it the loop has to know. In virtual time no machine disturbs anything, so what lies in folders
    /// need not be read.
    fn progress(&self, dir: &RunDir, kept: &Fresh) -> Result<Progress, Error> {
        let (cells, mut progress) = (CellPlan::all_of(self.plan), Progress::new(self.place.run_again));
        for at in all_parts(dir, kept)? {
            let (id, unfinished) = at;
            let part = kept.get(&at);
            let ran_again = part.map_or(0, Part::ran_again);
            let is_disturbed = part.is_some_and(Part::is_disturbed);
            // What was cut short runs once more.
            if !unfinished {
                progress.add(&cells, KeptBefore { id, fingerprint: ONE_PLAN, ran_again, is_disturbed });
            }
        }
        Ok(progress)
    }

    /// Runs what is missing of `plan`; returns what is kept in memory, too.
    fn run_plan(
        &self,
        plan: &Plan,
        keeping: &Keeping<'_>,
        workers: &mut [Worker],
        progress: &mut Progress,
        stop: &AtomicBool,
    ) -> (Fresh, Came) {
        let shard = self.shard.filter(|shard| !shard.is_whole());
        let divided = shard.map(|shard| (shard, Division::new(plan, shard.of)));
        let is_here = |id: PartId| divided.as_ref().is_none_or(|(shard, parts)| shard.holds(parts.part(id)));
        let keeper = PartKeeper {
            keeping,
            plan,
            demanded: self.plan,
            series: (self.exact || self.records != Records::None).then_some(self.series),
            rows: self.exact || self.records >= Records::All,
            per_flow: self.place.per_flow,
            in_memory: self.shard.is_none(),
            fresh: Mutex::default(),
        };
        let came = Repetitions {
            cells: &CellPlan::all_of(plan),
            order: if self.takes_turns { Order::InTurns(plan.seed) } else { Order::ByCell },
            is_here: &is_here,
            place: &self.place,
            skips_unsupported: false,
            keeper: &keeper,
            observer: &*self.observer,
            stop,
        }
        .run(workers, progress);
        (keeper.into_fresh(), came)
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

/// `3 of 5 repetitions are kept`
fn kept_of(kept: u64, all: u64) -> String {
    format!("{kept} of {} {} kept", counted(all, "repetition"), is_or_are(kept))
}

/// `failure`, with how much of `plan` is kept all the same.
fn with_count(plan: &Plan, failure: Error, dir: &RunDir, kept: &Fresh) -> Error {
    let parts = all_parts(dir, kept).unwrap_or_default();
    let kept = parts.iter().filter(|(_, unfinished)| !unfinished).count();
    let all = plan.cells.len() as u64 * plan.repeat;
    let told = |what: String| format!("{what}; {}", kept_of(kept as u64, all));
    match failure {
        Error::Interrupted(what) => Error::Interrupted(told(what)),
        Error::FarEnd(what) => Error::FarEnd(told(what)),
        other => other,
    }
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;
