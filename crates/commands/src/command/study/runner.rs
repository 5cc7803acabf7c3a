//! Runs a study's cells, arena by arena, by the loop of every experiment (`experiment/src/repetitions.rs`).
//! Here is what a study adds: what it keeps of a repetition, and what is said meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use serde_json::Value as Json;
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summarise::summarise;
use talkpath_study::{ArenaName, Cell, CellSamples, Form, Sample, Sampled, Selection, StateTrace, Study};
use talkpath_units::counted;

use super::folder::{CellName, StudyDir};
use crate::arenas::Arenas;
use crate::failure::Failure;
use crate::running::{TerminalObserver, runs_again};
use crate::terminal::Terminal;
use talkpath_experiment::observer::{Disturbed, Event, Observer};
use talkpath_experiment::place::{Place, Worker};
use talkpath_experiment::repetitions::{Judged, Keeper, KeptBefore, Progress, Ran, Repetitions};
use talkpath_experiment::run_dir::PartId;
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::{CellPlan, Error, Order, Wanted};

/// What is to be run, and where it is kept.
pub(super) struct Runner<'a> {
    pub(super) study: &'a Study,
    pub(super) selection: &'a Selection,
    pub(super) folder: &'a StudyDir,
    pub(super) arenas: &'a dyn Arenas,
    pub(super) terminal: Terminal,
    /// Hears how far the repetitions are.
    pub(super) told: &'a TerminalObserver,
    pub(super) stop: &'a AtomicBool,
}

/// An arena in which cells run, and who runs them there.
pub(super) struct Stand {
    pub(super) arena: ArenaName,
    pub(super) place: Place,
    pub(super) workers: Vec<Worker>,
}

impl Runner<'_> {
    /// Runs what the folder does not hold yet; returns all cells that it holds whole then, and why it ended
    /// early if it did.
    pub(super) fn run(&self, stands: &mut [Stand]) -> Result<(Vec<CellSamples>, Option<Failure>), Failure> {
        let (mut samples, mut failure) = (Vec::new(), None);
        for stand in stands {
            let stage = Stage::new(self, stand.arena);
            let plans: Vec<CellPlan<'_>> = stage.cells.iter().map(|it| it.plan()).collect();
            let mut progress = stage.kept(&plans);
            if failure.is_none() {
                failure = stage.run(&plans, stand, &mut progress);
            }
            samples.extend(stage.whole(&progress));
        }
        match failure {
            Some(failure @ Error::Unavailable { .. }) => Err(failure.into()),
            failure => Ok((samples, failure.map(ended))),
        }
    }
}

/// One arena's part of the study.
struct Stage<'a> {
    runner: &'a Runner<'a>,
    arena: ArenaName,
    /// In the order of their indices.
    cells: Vec<StageCell<'a>>,
}

/// A cell, in the form in which it runs.
#[derive(Clone, Copy)]
struct StageCell<'a> {
    cell: &'a Cell,
    form: &'a Form,
    /// What its assumption set is called.
    assumption: &'a str,
}

impl<'a> StageCell<'a> {
    fn plan(self) -> CellPlan<'a> {
        CellPlan {
            index: self.cell.index,
            scenario: &self.form.scenario,
            repetitions: self.form.repeat,
            fingerprint: &self.form.fingerprint,
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
            Some(StageCell { cell, form: runner.selection.form(cell)?, assumption })
        };
        let cells = runner.selection.cells(runner.study).into_iter();
        let cells = cells.filter(|cell| cell.arena == arena).filter_map(stage_cell).collect();
        Self { runner, arena, cells }
    }

    fn cell(&self, index: u64) -> Option<StageCell<'a>> {
        let at = self.cells.binary_search_by_key(&index, |it| it.cell.index).ok()?;
        self.cells.get(at).copied()
    }

    /// What earlier processes kept. What the machine spoiled something of does not count, and runs again.
    fn kept(&self, plans: &[CellPlan<'_>]) -> Progress {
        let mut progress = Progress::new(None);
        for it in &self.cells {
            let counts = |one: &CellSamples| {
                let [sample] = one.samples.as_slice() else { return false };
                let id = PartId { cell: it.cell.index, repetition: sample.repetition };
                let fingerprint = &one.fingerprint;
                let kept = KeptBefore { id, fingerprint, ran_again: 0, is_disturbed: false };
                sample.is_whole() && progress.add(plans, kept)
            };
            self.runner.folder.cell(it.name(), |repetitions| repetitions.retain(counts));
        }
        let whole = plans.iter().filter(|plan| progress.missing(**plan) == 0).count();
        if whole > 0 {
            let arena = self.arena;
            self.runner.terminal.note(&format!("{arena}: kept {whole} of {}", counted(plans.len(), "cell")));
        }
        progress
    }

    /// The cells of which every repetition has come to its end.
    fn whole(&self, progress: &Progress) -> Vec<CellSamples> {
        let whole = self.cells.iter().filter(|it| progress.missing(it.plan()) == 0);
        let joined = |it: &StageCell<'_>| self.runner.folder.cell(it.name(), |kept| kept.joined());
        whole.filter_map(joined).collect()
    }

    /// Runs what is missing; returns why it ended early, if it did.
    fn run(&self, plans: &[CellPlan<'_>], stand: &mut Stand, progress: &mut Progress) -> Option<Error> {
        let Stand { place, workers, .. } = stand;
        let (arena, terminal) = (self.arena, self.runner.terminal);
        let teller = Teller::new(self, plans, progress);
        let runs: u64 = plans.iter().map(|plan| progress.missing(*plan)).sum();
        let is_told = arena.is_real_time() && runs > 0;
        if is_told {
            terminal.note(&format!(
                "{arena}: {} in real time, {} of path time; at most {} beside each other, fewer where the \
                 machine is late",
                counted(runs, "repetition"),
                in_words(teller.whole_ms / 1000),
                workers.len()
            ));
        }
        let came = Repetitions {
            cells: plans,
            order: if arena.is_real_time() { Order::LongestFirst } else { Order::ByCell },
            is_here: &|_| true,
            place,
            // Other cells may not need what this machine lacks.
            skips_unsupported: true,
            keeper: self,
            observer: &teller,
            stop: self.runner.stop,
        }
        .run(workers, progress);
        if is_told {
            terminal.note(&format!(
                "{arena}: took {}; at most {} at a time; {} ran again",
                in_words(teller.began.wall_s().ceil() as u64),
                counted(came.peak, "run"),
                came.ran_again
            ));
        }
        came.failure
    }
}

impl Keeper for Stage<'_> {
    fn wanted(&self, id: PartId) -> Wanted {
        let has_series = self.cell(id.cell).is_some_and(|it| {
            let is_traced =
                || self.runner.folder.cell(it.name(), |kept| kept.wants_series(it.cell, id.repetition));
            !it.cell.kept.over_time.is_empty() || is_traced()
        });
        Wanted { series: has_series.then_some(SeriesDetail::Full), rows: true }
    }

    fn stands(&self, id: PartId, record: &RunRecord) -> bool {
        let is_whole = |it: StageCell<'_>| {
            let summary = summarise(record, &BTreeMap::new());
            Sample::of(record, &summary, self.runner.study, it.cell, Json::Null).is_whole()
        };
        record.valid || self.cell(id.cell).is_some_and(is_whole)
    }

    fn keep(&self, ran: Ran, _: &mut Worker) -> Result<Judged, Error> {
        let Ran { id: PartId { cell, repetition }, record, others, is_cut_short, .. } = ran;
        // A study judges whole repetitions alone.
        let Some(it) = self.cell(cell).filter(|_| !is_cut_short) else { return Ok(Judged::Counts) };
        let (StageCell { cell, form, assumption }, runner) = (it, self.runner);
        let watched = match cell.kept.watched && cell.arena == ArenaName::Sim {
            true => {
                let seed = form.scenario.seed.repetition(repetition);
                runner.arenas.watched(&form.scenario, seed, runner.stop).ok_or_else(Error::interrupted)?
            }
            false => Json::Null,
        };
        let is_drawn = runner.folder.cell(it.name(), |kept| kept.wants_trace(cell, repetition));
        let trace = is_drawn.then(|| StateTrace::of(&record, cell)).flatten();
        let instants = trace.as_ref().map(|trace| trace.instants(cell)).unwrap_or_default();
        let summary = summarise(&record, &BTreeMap::new());
        let sample = Sample::of(&record, &summary, runner.study, cell, watched);
        let sample = Sample { beside: others, instants, ..sample };
        let judged = match record.valid || sample.is_whole() {
            true => Judged::Counts,
            false => Judged::Disturbed(record.warnings.clone()),
        };
        let sampled = Sampled { sample, trace, warnings: &record.warnings };
        runner.folder.keep(cell, CellSamples::of_one(cell, assumption, &form.fingerprint, sampled))?;
        Ok(judged)
    }
}

/// Says how far a stage is.
struct Teller<'a> {
    stage: &'a Stage<'a>,
    began: Stopwatch,
    /// Cells that are to run.
    cells: usize,
    /// The path time of what is to run, ms; again is not counted.
    whole_ms: u64,
    left: Mutex<Left>,
}

/// What has not ended yet.
struct Left {
    /// Of each cell how many repetitions.
    missing: BTreeMap<u64, u64>,
    /// Cells that are done.
    done: usize,
    /// Path time.
    ms: u64,
}

impl<'a> Teller<'a> {
    fn new(stage: &'a Stage<'a>, plans: &[CellPlan<'_>], progress: &Progress) -> Self {
        let missing = plans.iter().map(|plan| (plan.index, progress.missing(*plan)));
        let missing: BTreeMap<u64, u64> = missing.filter(|(_, missing)| *missing > 0).collect();
        let of_cell = |plan: &CellPlan<'_>| {
            let count = missing.get(&plan.index).copied().unwrap_or(0);
            plan.scenario.duration.as_millis().saturating_mul(count)
        };
        let ms = plans.iter().map(of_cell).fold(0, u64::saturating_add);
        let (cells, began) = (missing.len(), Stopwatch::start());
        Self { stage, began, cells, whole_ms: ms, left: Mutex::new(Left { missing, done: 0, ms }) }
    }

    /// A repetition of `it` has ended.
    fn ended(&self, it: StageCell<'_>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        // What runs again has ended before.
        let Some(missing) = left.missing.get_mut(&it.cell.index).filter(|missing| **missing > 0) else {
            return;
        };
        *missing -= 1;
        let is_done = *missing == 0;
        left.ms = left.ms.saturating_sub(it.form.scenario.duration.as_millis());
        if !is_done {
            return;
        }
        left.done += 1;
        let (arena, terminal) = (self.stage.arena, self.stage.runner.terminal);
        let told = format!("{arena}: {} under {}: done", it.cell.name, it.assumption);
        match arena.is_real_time() {
            true => {
                let (done, cells, time) = (left.done, self.cells, in_words(self.seconds_for(left.ms)));
                terminal.note(&format!("{told}, {done} of {}; about {time} left", counted(cells, "cell")));
            }
            false => terminal.detail(&told),
        }
    }

    /// How long `left_ms` of path time take at the pace until now, s.
    fn seconds_for(&self, left_ms: u64) -> u64 {
        let done = self.whole_ms.saturating_sub(left_ms);
        let each = if done == 0 { 0.001 } else { self.began.wall_s() / done as f64 };
        (left_ms as f64 * each).ceil() as u64
    }
}

impl Observer for Teller<'_> {
    fn observe(&self, event: Event<'_>) {
        let (arena, Runner { terminal, told, .. }) = (self.stage.arena, self.stage.runner);
        let cell = |index: u64| self.stage.cell(index);
        match event {
            Event::Ended { id, disturbed, .. } => {
                let Some(it) = cell(id.cell) else { return };
                if let Some(Disturbed { others, warnings }) = disturbed {
                    let beside = match others {
                        0 => String::new(),
                        others => format!(" beside {}", counted(others, "other")),
                    };
                    let why = warnings.join("; ");
                    terminal.note(&format!("{arena}: {}: disturbed{beside}: {why}", it.cell.name));
                }
                self.ended(it);
            }
            Event::RunsAgain { disturbed, again, at_most } => {
                terminal.note(&format!("{arena}: {}", runs_again(disturbed, again, at_most)));
            }
            Event::CannotRun { cell: index, why } => {
                let name = cell(index).map_or("", |it| it.cell.name.as_str());
                terminal.warning(&format!("{arena}: {name} cannot run here: {why}"));
            }
            // Nobody asked for it. Where there are no threads for it, the runs' lateness shows it.
            Event::NotKeptAwake(_) => {}
            other => told.observe(other),
        }
    }
}

/// What ended the runs, as the command ends by it.
fn ended(why: Error) -> Failure {
    match why {
        Error::Interrupted(what) => {
            let way_on = "what ran to its end is kept\nhelp: the same command with --resume goes on";
            Failure::interrupted(format!("{what}; {way_on}"))
        }
        other => other.into(),
    }
}

/// `1 h 12 min`, `3 min 20 s`.
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
