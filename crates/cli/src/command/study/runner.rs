//! Runs a study's cells, a whole cell a worker at a time, and keeps each one that came to its end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use talkpath_arena::RunPlan;
use talkpath_measure::summarise::summarise;
use talkpath_study::{Cell, CellSamples, Sample, Selection, Study, Trace};
use talkpath_units::Duration;

use super::folder::Folder;
use crate::arenas::{self, Worker};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// What is to be run, and where it is kept.
pub(super) struct Runner<'a> {
    pub(super) study: &'a Study,
    pub(super) selection: &'a Selection,
    pub(super) folder: &'a Folder,
    pub(super) terminal: Terminal,
    pub(super) stop: &'a AtomicBool,
}

impl Runner<'_> {
    /// Runs what the folder does not hold yet; returns all that it holds then, and why it ended early if it did.
    pub(super) fn run(&self, workers: &mut [Worker]) -> Result<(Vec<CellSamples>, Option<Failure>), Failure> {
        let wanted = self.selection.cells(self.study);
        let (mut samples, mut missing) = (Vec::new(), Vec::new());
        for cell in &wanted {
            match self.folder.samples(cell, self.repeat(cell)) {
                Some(kept) => samples.push(kept),
                None => missing.push(*cell),
            }
        }
        if !samples.is_empty() {
            self.terminal.note(&format!("{} of {} cells are kept", samples.len(), wanted.len()));
        }
        let (mut fresh, failure) = self.run_cells(&missing, workers);
        samples.append(&mut fresh);
        match failure {
            Some(failure @ (Failure::Usage(_) | Failure::Unavailable { .. })) => Err(failure),
            failure => Ok((samples, failure)),
        }
    }

    fn run_cells(&self, cells: &[&Cell], workers: &mut [Worker]) -> (Vec<CellSamples>, Option<Failure>) {
        let span = |cell: &&Cell| {
            let each = cell.scenario.duration.as_nanos();
            Duration::from_nanos(each.saturating_mul(self.repeat(cell)))
        };
        let whole = cells.iter().map(span).fold(Duration::ZERO, Duration::saturating_add);
        let runs = cells.iter().map(|cell| self.repeat(cell)).sum();
        let progress = Progress::new(self.terminal, runs, whole);
        let next = AtomicUsize::new(0);
        let done = Mutex::new((Vec::new(), None));
        let shared = || done.lock().unwrap_or_else(PoisonError::into_inner);
        let work = |worker: &mut Worker| {
            while shared().1.is_none() {
                let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let result = self.run_cell(cell, worker, &progress).and_then(|samples| {
                    self.folder.keep(cell, &samples)?;
                    Ok(samples)
                });
                match result {
                    Ok(samples) => shared().0.push(samples),
                    Err(failure) => {
                        shared().1.get_or_insert(failure);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for worker in workers {
                scope.spawn(|| work(worker));
            }
        });
        progress.finish();
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_cell(
        &self,
        cell: &Cell,
        worker: &mut Worker,
        progress: &Progress,
    ) -> Result<CellSamples, Failure> {
        let assumption = &self.study.assumptions[cell.assumption].name;
        let mut samples = CellSamples {
            cell: cell.name.clone(),
            assumption: assumption.clone(),
            fingerprint: cell.fingerprint.clone(),
            valid: true,
            ..CellSamples::default()
        };
        for repetition in 0..self.repeat(cell) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(self.interrupted());
            }
            let shown = progress.repetition(cell.scenario.duration);
            let plan = RunPlan {
                cell: cell.index,
                repetition,
                seed: cell.scenario.seed.repetition(repetition),
                series: repetition == 0 && cell.trace.is_some(),
                interrupt: self.stop,
                progress: &|now| shown.reach(now),
            };
            let record = worker.run(&cell.scenario, plan).map_err(|why| match arenas::failure(why).1 {
                Failure::Interrupted(_) => self.interrupted(),
                other => other,
            })?;
            let summary = summarise(&record, &std::collections::BTreeMap::new());
            samples.samples.push(Sample::of(&summary, self.study));
            if repetition == 0 {
                samples.trace = Trace::of(&record, cell);
            }
            samples.valid &= record.valid;
            for warning in record.warnings {
                if !samples.warnings.contains(&warning) {
                    samples.warnings.push(warning);
                }
            }
            shown.finish();
        }
        self.terminal.detail(&format!("{} under {assumption}: done", cell.name));
        Ok(samples)
    }

    fn repeat(&self, cell: &Cell) -> u64 {
        self.selection.repeat(self.study, cell)
    }

    fn interrupted(&self) -> Failure {
        let way_on = "cells that ran to their end are kept\nhelp: the same command with --resume goes on";
        Failure::Interrupted(format!("interrupted; {way_on}"))
    }
}
