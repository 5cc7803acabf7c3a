//! Runs a study's cells, arena by arena, a whole cell a worker at a time, and keeps each one that came to its
//! end; in real time each repetition. There as many cells run beside each other as the machine has room for
//! (`experiment/src/room.rs`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::RunSummary;
use talkpath_measure::warning;
use talkpath_study::{ArenaName, Cell, CellSamples, Form, Sample, Selection, Study};
use talkpath_units::Duration;

use super::folder::StudyDir;
use crate::arenas::{self, Arenas};
use crate::failure::Failure;
use crate::running::Told;
use crate::terminal::Terminal;
use talkpath_experiment::attempt::{Attempts, Neighbours, Wanted};
use talkpath_experiment::place::Worker;
use talkpath_experiment::room::Peace;
use talkpath_experiment::run_dir::PartId;
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::workers::share_out;

/// What is to be run, and where it is kept.
pub(super) struct Runner<'a> {
    pub(super) study: &'a Study,
    pub(super) selection: &'a Selection,
    pub(super) folder: &'a StudyDir,
    pub(super) arenas: &'a dyn Arenas,
    pub(super) terminal: Terminal,
    /// Hears what the attempts say.
    pub(super) told: &'a Told,
    pub(super) stop: &'a AtomicBool,
}

/// A cell that is not whole yet.
struct Task<'a> {
    cell: &'a Cell,
    form: &'a Form,
    /// What is kept of it.
    begun: Option<CellSamples>,
}

impl Task<'_> {
    fn missing(&self) -> u64 {
        let kept = self.begun.as_ref().map_or(0, |begun| begun.samples.len() as u64);
        self.form.repeat.saturating_sub(kept)
    }

    /// Packets a second that the last repetition carried.
    fn packets_per_s(&self, samples: &CellSamples) -> Option<f64> {
        let packets = samples.samples.last()?.packets?;
        Some(packets as f64 / self.form.scenario.duration.as_secs_f64())
    }

    /// How long what is missing takes in the path's own time.
    fn span(&self) -> Duration {
        Duration::from_nanos(self.form.scenario.duration.as_nanos().saturating_mul(self.missing()))
    }
}

/// One arena's part of the study.
struct Stage<'a> {
    tasks: &'a [Task<'a>],
    attempts: Attempts<'a>,
    /// Of the path's own time, ms.
    whole_ms: u64,
    left_ms: AtomicU64,
    began: Stopwatch,
    done: AtomicUsize,
    /// Repetitions that ran again.
    again: AtomicU64,
}

impl Stage<'_> {
    /// How long the rest takes at the pace until now, s.
    fn left_s(&self) -> u64 {
        let left = self.left_ms.load(Ordering::Relaxed);
        let done = self.whole_ms.saturating_sub(left);
        let each = if done == 0 { 0.001 } else { self.began.wall_s() / done as f64 };
        (left as f64 * each).ceil() as u64
    }
}

impl Runner<'_> {
    /// Runs what the folder does not hold yet; returns all that it holds then, and why it ended early if it
    /// did.
    pub(super) fn run(
        &self,
        workers: &mut [(ArenaName, Vec<Worker>)],
    ) -> Result<(Vec<CellSamples>, Option<Failure>), Failure> {
        let wanted = self.selection.cells(self.study);
        let (mut samples, mut failure) = (Vec::new(), None);
        for (arena, workers) in workers {
            let mut tasks = Vec::new();
            let mut whole = 0;
            for &cell in wanted.iter().filter(|cell| cell.arena == *arena) {
                let Some(form) = self.selection.form(cell) else { continue };
                let assumption = &self.study.assumptions[cell.assumption].name;
                let begun = self.folder.samples(cell, assumption, form).map(CellSamples::undisturbed);
                let task = Task { cell, form, begun };
                if task.missing() == 0 {
                    whole += 1;
                    samples.extend(task.begun);
                } else {
                    tasks.push(task);
                }
            }
            if whole > 0 {
                self.terminal.note(&format!("{arena}: {whole} of {} cells are kept", whole + tasks.len()));
            }
            if failure.is_some() {
                continue;
            }
            if arena.is_real_time() {
                // The longest first, so that none is left to run on alone.
                tasks.sort_by_key(|task| std::cmp::Reverse(task.span()));
            }
            let (mut fresh, ended) = self.run_stage(*arena, &tasks, workers);
            samples.append(&mut fresh);
            failure = ended;
        }
        match failure {
            Some(failure @ Failure::Unavailable { .. }) => Err(failure),
            failure => Ok((samples, failure)),
        }
    }

    fn run_stage(
        &self,
        arena: ArenaName,
        tasks: &[Task<'_>],
        workers: &mut [Worker],
    ) -> (Vec<CellSamples>, Option<Failure>) {
        let whole = tasks.iter().map(Task::span).fold(Duration::ZERO, Duration::saturating_add);
        let runs = tasks.iter().map(Task::missing).sum();
        if arena.is_real_time() && runs > 0 {
            let time = in_words(whole.as_millis() / 1000);
            self.terminal.note(&format!(
                "{arena}: {runs} repetitions in real time, {time} of path time; at most {} beside each other, fewer where the \
                 machine is late",
                workers.len()
            ));
        }
        let beside = arena.is_real_time().then_some(workers.len());
        let stage = Stage {
            tasks,
            attempts: Attempts::new(self.told, (runs, whole), beside, self.stop),
            whole_ms: whole.as_millis(),
            left_ms: AtomicU64::new(whole.as_millis()),
            began: Stopwatch::start(),
            done: AtomicUsize::new(0),
            again: AtomicU64::new(0),
        };
        let done = Mutex::new(Vec::new());
        let failure = share_out(workers, tasks, |worker, task| match self.run_cell(task, worker, &stage) {
            Ok(samples) => {
                done.lock().unwrap_or_else(PoisonError::into_inner).push(samples);
                Ok(())
            }
            // The machine lacks something that this cell needs; other cells may not need it.
            Err(Failure::Usage(why)) => {
                self.terminal.warning(&format!("{arena}: {} cannot run here: {why}", task.cell.name));
                Ok(())
            }
            Err(failure) => Err(failure),
        });
        stage.attempts.finish();
        if arena.is_real_time() && runs > 0 {
            self.terminal.note(&format!(
                "{arena}: took {}; at most {} runs at a time; {} ran again",
                in_words(stage.began.wall_s().ceil() as u64),
                stage.attempts.peak(),
                stage.again.load(Ordering::Relaxed)
            ));
        }
        (done.into_inner().unwrap_or_else(PoisonError::into_inner), failure)
    }

    fn run_cell(
        &self,
        task: &Task<'_>,
        worker: &mut Worker,
        stage: &Stage<'_>,
    ) -> Result<CellSamples, Failure> {
        let Task { cell, form, begun } = task;
        let assumption = &self.study.assumptions[cell.assumption].name;
        let mut samples =
            begun.clone().unwrap_or_else(|| CellSamples::begin(cell, assumption, &form.fingerprint));
        let kept: Vec<u64> = samples.samples.iter().map(|sample| sample.repetition).collect();
        let is_new = |repetition: u64| !kept.contains(&repetition);
        for repetition in (0..form.repeat).filter(|repetition| is_new(*repetition)) {
            let packets_per_s = task.packets_per_s(&samples);
            let is_traced = samples.wants_series(cell, repetition);
            let run = self.run_repetition(task, repetition, (is_traced, packets_per_s), worker, stage);
            if run.is_err() && !cell.arena.is_real_time() {
                // What ran of the cell until now is not lost.
                self.folder.keep(&samples.only(is_new))?;
            }
            let Ran { record, summary, beside } = run?;
            let watched = match cell.kept.watched && cell.arena == ArenaName::Sim {
                true => self
                    .arenas
                    .watched(&form.scenario, form.scenario.seed.repetition(repetition), self.stop)
                    .ok_or_else(|| self.interrupted())?,
                false => serde_json::Value::Null,
            };
            let trace = samples.trace(&record, cell, repetition);
            let instants = trace.as_ref().map(|trace| trace.instants(cell)).unwrap_or_default();
            let sample =
                Sample { beside, instants, ..Sample::of(&record, &summary, self.study, cell, watched) };
            let counts = sample.disturbed.is_none();
            if let Some(trace) = trace.filter(|_| counts) {
                samples.keep_trace(trace, cell, &sample);
            }
            samples.add(sample);
            // Why a repetition does not count stands with it.
            for warning in record.warnings.iter().filter(|_| counts) {
                // What made some figures of a run invalid left the others as they are.
                let warning = warning::reason(warning).unwrap_or(warning);
                if !samples.warnings.iter().any(|kept| kept == warning) {
                    samples.warnings.push(warning.to_owned());
                }
            }
            let took = form.scenario.duration.as_millis();
            stage.left_ms.fetch_sub(took, Ordering::Relaxed);
            if cell.arena.is_real_time() {
                self.folder.keep(&samples.only(|it| it == repetition))?;
            }
        }
        if !cell.arena.is_real_time() {
            self.folder.keep(&samples.only(is_new))?;
        }
        let done = stage.done.fetch_add(1, Ordering::Relaxed) + 1;
        let told = format!("{}: {} under {assumption}: done", cell.arena, cell.name);
        match cell.arena.is_real_time() {
            true => self.terminal.note(&format!(
                "{told}, {done} of {} cells; about {} left",
                stage.tasks.len(),
                in_words(stage.left_s())
            )),
            false => self.terminal.detail(&told),
        }
        Ok(samples)
    }

    /// One repetition. If the machine spoiled something of it that the study reads, it runs again beside
    /// fewer, and then alone; beside as many if it was a hypervisor's doing.
    fn run_repetition(
        &self,
        task: &Task<'_>,
        repetition: u64,
        (is_traced, packets_per_s): (bool, Option<f64>),
        worker: &mut Worker,
        stage: &Stage<'_>,
    ) -> Result<Ran, Failure> {
        let Task { cell, form, .. } = task;
        let summary_of = |record: &RunRecord| summarise(record, &BTreeMap::new());
        let stands = |record: &RunRecord| {
            record.valid
                || Sample::of(record, &summary_of(record), self.study, cell, serde_json::Value::Null)
                    .is_whole()
        };
        let wanted = Wanted {
            id: PartId { cell: cell.index, repetition },
            series: (is_traced || !cell.kept.over_time.is_empty()).then_some(SeriesDetail::Full),
            rows: true,
            stands: &stands,
        };
        let (mut tries, mut most_others) = (0, u64::MAX);
        loop {
            let beside = Neighbours { packets_per_s, most_others };
            let attempt = stage.attempts.run(worker, &form.scenario, wanted, beside);
            let attempt = attempt.ok_or_else(|| self.interrupted())?;
            let (others, peace) = (attempt.others, attempt.peace);
            let record = attempt.outcome.map_err(|why| match arenas::failure(why).1 {
                Failure::Interrupted(_) => self.interrupted(),
                other => other,
            })?;
            tries += 1;
            if peace == Peace::Kept || (others == 0 && tries >= TRIES_ALONE) || tries == MOST_TRIES {
                attempt.shown.finish();
                return Ok(Ran { summary: summary_of(&record), record, beside: others });
            }
            attempt.shown.take_back();
            stage.again.fetch_add(1, Ordering::Relaxed);
            most_others = match peace.next_beside(others, most_others) {
                _ if peace != Peace::Stolen && tries + 1 == MOST_TRIES => 0,
                most_others => most_others,
            };
            let beside = match (others, most_others) {
                _ if peace == Peace::Stolen => " by the hypervisor, runs again".to_owned(),
                (0, _) => ", runs again".to_owned(),
                (_, 0) => format!(" beside {others} others, runs again alone"),
                _ => format!(" beside {others} others, runs again beside {most_others} at most"),
            };
            let why = record.warnings.join("; ");
            self.terminal.note(&format!("{}: {}: disturbed{beside}: {why}", cell.arena, cell.name));
        }
    }

    fn interrupted(&self) -> Failure {
        let way_on = "what ran to its end is kept\nhelp: the same command with --resume goes on";
        Failure::Interrupted(format!("interrupted; {way_on}"))
    }
}

/// A repetition that ran.
struct Ran {
    record: RunRecord,
    summary: RunSummary,
    /// In real time the most other runs that were beside it.
    beside: u64,
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

/// How often a repetition that the machine disturbs runs before it is kept as disturbed. Chosen: beside
/// others, beside fewer, alone; a machine that is too busy for one run twice in a row is too busy.
const MOST_TRIES: u32 = 3;
const TRIES_ALONE: u32 = 2;
