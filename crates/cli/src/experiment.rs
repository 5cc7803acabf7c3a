//! A plan becomes a run directory: every repetition of every cell, in any order and on any number of jobs,
//! then one summary over all of them in the plan's order.
//!
//! ```text
//! Plan ─► tasks ─► workers, each with an arena ─► parts ─► merge
//!      ─► summary.json, packets.parquet, ..., report.html
//! ```

mod merge;

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use talkpath_arena::RunPlan;
use talkpath_kernel::keep_awake::KeepAwake;
use talkpath_measure::summary::Summary;
use talkpath_scenario::{Cell, Plan};
use talkpath_units::Duration;

use crate::arenas::{self, Place};
use crate::args::{ArenaKind, Records, SeriesPoints, flag_word};
use crate::failure::Failure;
use crate::interrupt;
use crate::journal::{self, Journal};
use crate::json::json;
use crate::part::{Fresh, Kept, Part, all_parts};
use crate::progress::Progress;
use crate::run_dir::{PARTS, PLAN, PartId, RunDir, SCENARIO, read_json, write_bytes};
use crate::stopwatch::{Stopwatch, stamps};
use crate::terminal::Terminal;

/// Everything that is to be run, and how.
pub(crate) struct Experiment<'a> {
    /// What to begin with.
    pub(crate) plan: &'a Plan,
    /// What to go on with, once all of a plan has run.
    pub(crate) growth: Option<&'a Growth<'a>>,
    /// Whether the cells take turns, repetition by repetition, in an order that is drawn anew each time: what
    /// a network does for a while then falls on all of them.
    pub(crate) takes_turns: bool,
    pub(crate) place: Place,
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

/// What `--resume` has to know, beside the scenario.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Resumable {
    /// Another version may draw other numbers.
    pub(crate) talkpath: String,
    /// RFC 3339, UTC.
    pub(crate) started: String,
    /// `--arena`.
    arena: String,
    /// `--to`.
    pub(crate) to: Option<String>,
    /// `--records`.
    records: String,
    /// `--series`.
    series: String,
}

impl Resumable {
    /// The arena's name, as summary.json has it.
    pub(crate) fn arena_name(&self) -> &str {
        &self.arena
    }

    /// What runs `scenario` in the same place again.
    pub(crate) fn command(&self, scenario: &Path) -> String {
        let to = self.to.as_ref().map_or(String::new(), |to| format!(" --to {to}"));
        format!("talkpath run {} --arena {}{to}", scenario.display(), self.arena)
    }

    pub(crate) fn arena(&self) -> Result<ArenaKind, Failure> {
        flag_value(&self.arena)
    }

    pub(crate) fn records(&self) -> Result<Records, Failure> {
        flag_value(&self.records)
    }

    pub(crate) fn series(&self) -> Result<SeriesPoints, Failure> {
        flag_value(&self.series)
    }
}

impl Experiment<'_> {
    /// Runs everything in a new directory under `out`.
    pub(crate) fn run(&self, out: &Path) -> Result<Outcome, Failure> {
        let watch = Stopwatch::start();
        let stop = interrupt::install()?;
        // A far end that is not there is found out before anything is written.
        let mut workers = arenas::connect(&self.place, self.jobs)?;
        let mut dir = RunDir::create(out, &watch.started_for_file_name(), &self.plan.name)?;
        let begun = self.resumable(watch.started());
        if let Err(failure) = self.begin(&mut dir, &begun) {
            dir.discard_if_new();
            return Err(failure);
        }
        self.terminal.detail(&format!("run directory: {}", dir.path().display()));
        self.run_in(dir, &begun, &mut workers, &watch, &stop)
    }

    /// Runs what is missing in the run directory `dir`, which `begun` describes.
    pub(crate) fn resume(&self, mut dir: RunDir, begun: &Resumable) -> Result<Outcome, Failure> {
        let watch = Stopwatch::start();
        let stop = interrupt::install()?;
        dir.lock()?;
        dir.discard_unfinished_parts()?;
        let mut workers = arenas::connect(&self.place, self.jobs)?;
        self.run_in(dir, begun, &mut workers, &watch, &stop)
    }

    fn begin(&self, dir: &mut RunDir, begun: &Resumable) -> Result<(), Failure> {
        write_bytes(&dir.file(&plan_file()), &json(begun))?;
        dir.lock()?;
        for trace in &self.plan.traces {
            dir.write_trace(trace)?;
        }
        write_bytes(&dir.file(SCENARIO), self.plan.resolved.as_bytes())
    }

    fn run_in(
        &self,
        dir: RunDir,
        begun: &Resumable,
        workers: &mut [arenas::Worker],
        watch: &Stopwatch,
        stop: &AtomicBool,
    ) -> Result<Outcome, Failure> {
        let mut kept = journal::read(&dir)?;
        let mut plan = Cow::Borrowed(self.plan);
        let failure = loop {
            let tasks = self.tasks(&plan, &dir, &kept)?;
            let (mut fresh, failure) = self.run_tasks(&dir, &tasks, workers, stop);
            kept.append(&mut fresh);
            let (None, Some(growth)) = (&failure, self.growth) else { break failure };
            match growth(&plan, &merge::so_far(&plan, &kept))? {
                Some(larger) => plan = Cow::Owned(larger),
                None => break failure,
            }
            write_bytes(&dir.file(SCENARIO), plan.resolved.as_bytes())?;
        };
        let nothing_measured = kept.is_empty() && dir.parts().is_ok_and(|parts| parts.is_empty());
        match failure {
            Some(failure @ (Failure::Usage(_) | Failure::Unavailable { .. })) if nothing_measured => {
                dir.discard_if_new();
                Err(failure)
            }
            failure => {
                let failure = failure.map(|failure| with_way_on(&plan, failure, &dir, &kept));
                match merge::finish(self, &plan, &dir, kept, begun, watch, failure.as_ref()) {
                    Ok(summary) => Ok(Outcome { dir, summary, failure }),
                    Err(why) => Err(self.graver(failure, why)),
                }
            }
        }
    }

    /// Every repetition of every cell that neither `dir` holds yet nor is among the `kept`, in the plan's
    /// order, or taking turns.
    fn tasks<'p>(
        &self,
        plan: &'p Plan,
        dir: &RunDir,
        kept: &Fresh,
    ) -> Result<Vec<(PartId, &'p Cell)>, Failure> {
        let finished = all_parts(dir, kept)?;
        let is_missing = |id: &PartId| !finished.contains(&(*id, false));
        let of_cell = |cell| (0..plan.repeat).map(move |repetition| (id(cell, repetition), cell));
        let tasks = plan.cells.iter().flat_map(of_cell).filter(|(id, _)| is_missing(id));
        let mut tasks: Vec<_> = tasks.collect();
        if self.takes_turns {
            let turn = |id: PartId| {
                let mut order = plan.seed.repetition(id.repetition).stream(&format!("turn/{}", id.cell));
                (id.repetition, order.bits())
            };
            tasks.sort_by_cached_key(|(id, _)| turn(*id));
        }
        Ok(tasks)
    }

    /// Runs `tasks` on the workers; the first failure ends it, after the repetitions that are under way.
    /// Returns what was kept.
    fn run_tasks(
        &self,
        dir: &RunDir,
        tasks: &[(PartId, &Cell)],
        workers: &mut [arenas::Worker],
        stop: &AtomicBool,
    ) -> (Fresh, Option<Failure>) {
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
        let work = |worker: &mut arenas::Worker| {
            let mut journal = Journal::default();
            while first_failure().is_none() {
                let Some(&(id, cell)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let (part, why) = match stop.load(Ordering::Relaxed) {
                    true => (None, Some(arenas::interrupted())),
                    false => self.run_task((dir, &mut journal), id, cell, worker, &progress, stop),
                };
                if let Some(part) = part {
                    let mut fresh = fresh.lock().unwrap_or_else(PoisonError::into_inner);
                    fresh.insert((id, why.is_some()), part);
                }
                if let Some(why) = why {
                    first_failure().get_or_insert(why);
                }
            }
        };
        thread::scope(|scope| {
            for worker in workers {
                scope.spawn(|| work(worker));
            }
        });
        drop(awake);
        progress.finish();
        let failure = first_failure().take();
        (fresh.into_inner().unwrap_or_else(PoisonError::into_inner), failure)
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
            let part = Part::new(&record, self.plan, cell, stamp);
            match self.records == Records::None && kept.capture.is_none() && failure.is_none() {
                true => journal.append(dir, &part)?,
                false => part.save(dir, &record, &kept, self.records, failure.is_some())?,
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
        }
    }
}

fn with_way_on(plan: &Plan, failure: Failure, dir: &RunDir, kept: &Fresh) -> Failure {
    let parts = all_parts(dir, kept).unwrap_or_default();
    let kept = parts.iter().filter(|(_, unfinished)| !unfinished).count();
    let all = plan.cells.len() as u64 * plan.repeat;
    let path = dir.path().display();
    let way_on = format!("{kept} of {all} repetitions are kept\nhelp: talkpath run --resume {path}");
    match failure {
        Failure::Interrupted(what) => Failure::Interrupted(format!("{what}; {way_on}")),
        Failure::FarEnd(what) => Failure::FarEnd(format!("{what}; {way_on}")),
        other => other,
    }
}

fn id(cell: &Cell, repetition: u64) -> PartId {
    PartId { cell: cell.index, repetition }
}

fn flag_value<T: ValueEnum>(word: &str) -> Result<T, Failure> {
    T::from_str(word, false).map_err(|why| Failure::Usage(format!("{PLAN}: {why}")))
}

/// How the run in `dir` was started.
pub(crate) fn resumable(dir: &RunDir) -> Result<Resumable, Failure> {
    read_json(&dir.file(&plan_file()))
}

fn plan_file() -> String {
    format!("{PARTS}/{PLAN}")
}
