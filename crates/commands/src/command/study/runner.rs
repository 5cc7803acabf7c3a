//! Runs the cells of a study, arena by arena, with the loop that all experiments share
//! (`experiment/src/repetitions.rs`). This file says what a study keeps of a repetition, and what it prints
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use serde_json::Value as Json;
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summarise::summarise;
use talkpath_study::{
    ArenaName, Cell, CellRuns, CellSamples, EarlierRun, Sample, Sampled, Selection, StateTrace, Study,
};
use talkpath_units::counted;

use super::folder::{CellName, StudyDir};
use crate::arenas::Arenas;
use crate::failure::Failure;
use crate::running::{TerminalObserver, runs_again};
use crate::terminal::Terminal;
use talkpath_experiment::choice::Records;
use talkpath_experiment::observer::{Disturbed, Event, Observer};
use talkpath_experiment::part::PROGRAM;
use talkpath_experiment::place::{Place, Worker};
use talkpath_experiment::repetitions::{
    Acceptance, EarlierRepetition, FinishedAttempt, Keeper, Progress, Repetitions,
};
use talkpath_experiment::run_dir::PartId;
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::{CellPlan, Error, Order, RecordContents};

/// Everything that a run of a study needs.
pub(super) struct Runner<'a> {
    pub(super) study: &'a Study,
    pub(super) selection: &'a Selection,
    /// The run whose medians take the place of the cells that it covers.
    pub(super) earlier: Option<&'a EarlierRun>,
    pub(super) folder: &'a StudyDir,
    pub(super) arenas: &'a dyn Arenas,
    pub(super) terminal: Terminal,
    /// Shows the progress of the repetitions.
    pub(super) progress: &'a TerminalObserver,
    pub(super) stop: &'a AtomicBool,
    /// Which record files of each repetition are written.
    pub(super) records: Records,
}

/// An arena in which cells run, and its workers.
pub(super) struct ConnectedArena {
    pub(super) arena: ArenaName,
    pub(super) place: Place,
    pub(super) workers: Vec<Worker>,
}

impl Runner<'_> {
    /// Runs the repetitions that the folder does not hold yet. Returns all cells whose repetitions are
    /// complete, and why the run ended early if it did.
    pub(super) fn run(
        &self,
        connected: &mut [ConnectedArena],
    ) -> Result<(Vec<CellSamples>, Option<Failure>), Failure> {
        let (mut samples, mut failure) = (Vec::new(), None);
        for arena in connected {
            let stage = Stage::new(self, arena.arena);
            let plans: Vec<CellPlan<'_>> = stage.cells.iter().map(|cell| cell.plan()).collect();
            let mut progress = stage.kept_progress(&plans);
            if failure.is_none() {
                failure = stage.run(&plans, arena, &mut progress);
            }
            samples.extend(stage.complete_cells(&progress));
        }
        match failure {
            Some(failure @ Error::Unavailable { .. }) => Err(failure.into()),
            failure => Ok((samples, failure.map(early_end))),
        }
    }
}

/// The part of a study that runs in one arena.
struct Stage<'a> {
    runner: &'a Runner<'a>,
    arena: ArenaName,
    /// The cells in the order of their indices.
    cells: Vec<StageCell<'a>>,
}

/// A cell with its scenario and repetitions in this run.
#[derive(Clone, Copy)]
struct StageCell<'a> {
    cell: &'a Cell,
    runs: &'a CellRuns,
    /// The name of its set of assumptions.
    assumption: &'a str,
}

impl<'a> StageCell<'a> {
    fn plan(self) -> CellPlan<'a> {
        CellPlan {
            index: self.cell.index,
            scenario: &self.runs.scenario,
            repetitions: self.runs.repeat,
            fingerprint: &self.runs.fingerprint,
        }
    }

    fn name(self) -> CellName<'a> {
        CellName { arena: self.cell.arena, assumption: self.assumption, cell: &self.cell.name }
    }
}

impl<'a> Stage<'a> {
    fn new(runner: &'a Runner<'a>, arena: ArenaName) -> Self {
        let stage_cell = |cell: &'a Cell| {
            let assumption = &runner.study.assumptions.get(cell.assumption)?.name;
            Some(StageCell { cell, runs: runner.selection.runs(cell)?, assumption })
        };
        let mut selected = runner.selection.cells(runner.study);
        selected.retain(|cell| cell.arena == arena);
        let all = selected.len();
        let is_taken = |cell: &Cell| {
            runner.earlier.is_some_and(|earlier| earlier.covers(runner.study, runner.selection, cell))
        };
        selected.retain(|cell| !is_taken(cell));
        if runner.earlier.is_some() {
            let (taken, cells) = (all - selected.len(), counted(all, "cell"));
            runner.terminal.note(&format!("{arena}: {taken} of {cells} are those of the earlier run"));
        }
        let cells = selected.into_iter().filter_map(stage_cell).collect();
        Self { runner, arena, cells }
    }

    fn cell(&self, index: u64) -> Option<StageCell<'a>> {
        let at = self.cells.binary_search_by_key(&index, |cell| cell.cell.index).ok()?;
        self.cells.get(at).copied()
    }

    /// Counts the repetitions that earlier processes kept. A repetition whose figures the machine disturbed
    /// does not count, and runs again.
    fn kept_progress(&self, plans: &[CellPlan<'_>]) -> Progress {
        let mut progress = Progress::new(None);
        for cell in &self.cells {
            let counts = |kept: &CellSamples| {
                let [sample] = kept.samples.as_slice() else { return false };
                let id = PartId { cell: cell.cell.index, repetition: sample.repetition };
                let fingerprint = &kept.fingerprint;
                let earlier = EarlierRepetition { id, fingerprint, reruns: 0, is_disturbed: false };
                sample.is_whole() && progress.add(plans, earlier)
            };
            self.runner.folder.cell(cell.name(), |repetitions| repetitions.retain(counts));
        }
        let complete = plans.iter().filter(|plan| progress.missing(**plan) == 0).count();
        if complete > 0 {
            let (arena, cells) = (self.arena, counted(plans.len(), "cell"));
            self.runner.terminal.note(&format!("{arena}: kept {complete} of {cells}"));
        }
        progress
    }

    /// Returns the samples of the cells of which every repetition has ended.
    fn complete_cells(&self, progress: &Progress) -> Vec<CellSamples> {
        let complete = self.cells.iter().filter(|cell| progress.missing(cell.plan()) == 0);
        complete.filter_map(|cell| self.runner.folder.cell(cell.name(), |kept| kept.joined())).collect()
    }

    /// Runs the missing repetitions. Returns why the run ended early, if it did.
    fn run(
        &self,
        plans: &[CellPlan<'_>],
        connected: &mut ConnectedArena,
        progress: &mut Progress,
    ) -> Option<Error> {
        let ConnectedArena { place, workers, .. } = connected;
        let (arena, terminal) = (self.arena, self.runner.terminal);
        let observer = StageObserver::new(self, plans, progress);
        let runs: u64 = plans.iter().map(|plan| progress.missing(*plan)).sum();
        let shows_time = arena.is_real_time() && runs > 0;
        if shows_time {
            terminal.note(&format!(
                "{arena}: {} in real time, {} of path time; at most {} beside each other, fewer where the \
                 machine is late",
                counted(runs, "repetition"),
                in_words(observer.path_time_ms / 1000),
                workers.len()
            ));
        }
        let result = Repetitions {
            cells: plans,
            order: if arena.is_real_time() { Order::LongestFirst } else { Order::ByCell },
            is_here: &|_| true,
            place,
            // This machine may lack something that only some cells need.
            skips_unsupported: true,
            keeper: self,
            observer: &observer,
            stop: self.runner.stop,
        }
        .run(workers, progress);
        if shows_time {
            terminal.note(&format!(
                "{arena}: took {}; at most {} at a time; {} ran again",
                in_words(observer.began.wall_s().ceil() as u64),
                counted(result.peak, "run"),
                result.reruns
            ));
        }
        result.failure
    }
}

impl Keeper for Stage<'_> {
    fn record_contents(&self, id: PartId) -> RecordContents {
        let has_series = self.cell(id.cell).is_some_and(|cell| {
            let is_traced =
                || self.runner.folder.cell(cell.name(), |kept| kept.wants_series(cell.cell, id.repetition));
            !cell.cell.kept.over_time.is_empty() || is_traced()
        });
        let has_series = has_series || self.runner.records >= Records::Summary;
        RecordContents { series: has_series.then_some(SeriesDetail::Full), rows: true }
    }

    fn is_usable(&self, id: PartId, record: &RunRecord) -> bool {
        let is_whole = |cell: StageCell<'_>| {
            let summary = summarise(record, &BTreeMap::new());
            Sample::from_run(record, &summary, self.runner.study, cell.cell, Json::Null).is_whole()
        };
        record.valid || self.cell(id.cell).is_some_and(is_whole)
    }

    fn keep(&self, attempt: FinishedAttempt, _: &mut Worker) -> Result<Acceptance, Error> {
        let FinishedAttempt { id: PartId { cell, repetition }, record, other_runs, is_cut_short, .. } =
            attempt;
        // A study does not keep a repetition that was cut short.
        let Some(stage_cell) = self.cell(cell).filter(|_| !is_cut_short) else {
            return Ok(Acceptance::Accepted);
        };
        let (StageCell { cell, runs, assumption }, runner) = (stage_cell, self.runner);
        let is_drawn = runner.folder.cell(stage_cell.name(), |kept| kept.wants_trace(cell, repetition));
        let watched = if cell.kept.is_watched(is_drawn) && cell.arena == ArenaName::Sim {
            let seed = runs.scenario.seed.repetition(repetition);
            runner.arenas.watched(&runs.scenario, seed, runner.stop).ok_or_else(Error::interrupted)?
        } else {
            Json::Null
        };
        let trace = is_drawn.then(|| StateTrace::from_run(&record, cell, &watched)).flatten();
        let instants = trace.as_ref().map(|trace| trace.instants(cell)).unwrap_or_default();
        let summary = summarise(&record, &BTreeMap::new());
        let mut warnings = record.warnings.clone();
        if let (Some(outcome), Some(printed)) = (&summary.program, &record.program) {
            let title = format!("{} under {assumption}, repetition {repetition}", cell.name);
            runner.folder.keep_output(&(outcome.with_output(&title, &printed.output) + "\n"))?;
            warnings.extend(outcome.failure.as_ref().map(|why| {
                format!("the program failed ({why}), so its figures are not known; what it printed is in {PROGRAM}")
            }));
        }
        let sample = Sample::from_run(&record, &summary, runner.study, cell, watched);
        let sample = Sample { beside: other_runs, instants, ..sample };
        let acceptance = if record.valid || sample.is_whole() {
            Acceptance::Accepted
        } else {
            Acceptance::Disturbed(record.warnings.clone())
        };
        if runner.records >= Records::Summary {
            runner.folder.write_records(stage_cell.name(), &record, runner.records)?;
        }
        let sampled = Sampled { sample, trace, warnings: &warnings };
        runner.folder.keep(cell, CellSamples::of_one(cell, assumption, &runs.fingerprint, sampled))?;
        Ok(acceptance)
    }
}

/// Prints the progress of a stage.
struct StageObserver<'a> {
    stage: &'a Stage<'a>,
    began: Stopwatch,
    /// The number of cells that are to run.
    cells: usize,
    /// The path time of all missing repetitions, in ms. Repetitions that run again are not counted.
    path_time_ms: u64,
    remaining: Mutex<Remaining>,
}

/// The repetitions that have not ended yet.
struct Remaining {
    /// The number of missing repetitions of each cell, by the index of the cell.
    repetitions: BTreeMap<u64, u64>,
    done_cells: usize,
    /// The path time of the missing repetitions, in ms.
    path_time_ms: u64,
}

impl<'a> StageObserver<'a> {
    fn new(stage: &'a Stage<'a>, plans: &[CellPlan<'_>], progress: &Progress) -> Self {
        let mut repetitions = BTreeMap::new();
        let mut path_time_ms = 0_u64;
        for plan in plans {
            let missing = progress.missing(*plan);
            if missing > 0 {
                repetitions.insert(plan.index, missing);
                let cell_ms = plan.scenario.duration.as_millis().saturating_mul(missing);
                path_time_ms = path_time_ms.saturating_add(cell_ms);
            }
        }
        let cells = repetitions.len();
        let remaining = Mutex::new(Remaining { repetitions, done_cells: 0, path_time_ms });
        Self { stage, began: Stopwatch::start(), cells, path_time_ms, remaining }
    }

    /// Counts a repetition of `cell` that has ended, and prints the progress if it was the last one of the
    /// cell.
    fn count(&self, cell: StageCell<'_>) {
        let mut remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        // A repetition that runs again was counted when it ended for the first time.
        let Some(missing) = remaining.repetitions.get_mut(&cell.cell.index).filter(|missing| **missing > 0)
        else {
            return;
        };
        *missing -= 1;
        let is_done = *missing == 0;
        remaining.path_time_ms =
            remaining.path_time_ms.saturating_sub(cell.runs.scenario.duration.as_millis());
        if !is_done {
            return;
        }
        remaining.done_cells += 1;
        let (arena, terminal) = (self.stage.arena, self.stage.runner.terminal);
        let message = format!("{arena}: {} under {}: done", cell.cell.name, cell.assumption);
        if arena.is_real_time() {
            let (done, cells) = (remaining.done_cells, counted(self.cells, "cell"));
            let time = in_words(self.seconds_for(remaining.path_time_ms));
            terminal.note(&format!("{message}, {done} of {cells}; about {time} left"));
        } else {
            terminal.detail(&message);
        }
    }

    /// Returns the seconds that the remaining path time takes if the runs go on at the same pace.
    fn seconds_for(&self, remaining_ms: u64) -> u64 {
        let done_ms = self.path_time_ms.saturating_sub(remaining_ms);
        // Before the first repetition has ended, a run is taken to last as long as its path time.
        let seconds_per_ms = if done_ms == 0 { 0.001 } else { self.began.wall_s() / done_ms as f64 };
        (remaining_ms as f64 * seconds_per_ms).ceil() as u64
    }
}

impl Observer for StageObserver<'_> {
    fn observe(&self, event: Event<'_>) {
        let (arena, Runner { terminal, progress, .. }) = (self.stage.arena, self.stage.runner);
        match event {
            Event::Ended { id, disturbed, .. } => {
                let Some(cell) = self.stage.cell(id.cell) else { return };
                if let Some(Disturbed { other_runs, warnings }) = disturbed {
                    let beside = match other_runs {
                        0 => String::new(),
                        others => format!(" beside {}", counted(others, "other")),
                    };
                    let why = warnings.join("; ");
                    terminal.note(&format!("{arena}: {}: disturbed{beside}: {why}", cell.cell.name));
                }
                self.count(cell);
            }
            Event::RunsAgain { disturbed, again, at_most } => {
                terminal.note(&format!("{arena}: {}", runs_again(disturbed, again, at_most)));
            }
            Event::CannotRun { cell: index, why } => {
                let name = self.stage.cell(index).map_or("", |cell| cell.cell.name.as_str());
                terminal.warning(&format!("{arena}: {name} cannot run here: {why}"));
            }
            // The user did not ask to keep the processors awake. If they sleep, runs may be disturbed, and
            // that is reported.
            Event::NotKeptAwake(_) => {}
            other => progress.observe(other),
        }
    }
}

/// Makes the failure for the error that ended the runs early.
fn early_end(error: Error) -> Failure {
    match error {
        Error::Interrupted(what) => {
            let help = "what ran to its end is kept\nhelp: the same command with --resume goes on";
            Failure::interrupted(format!("{what}; {help}"))
        }
        other => other.into(),
    }
}

/// Writes a time such as `1 h 12 min` or `3 min 20 s`.
pub(super) fn in_words(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
