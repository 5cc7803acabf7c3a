//! The state of an experiment while it runs: how far it is, and the answers so far. `--progress json` prints
//! it, and `--tui` draws it.

use std::collections::BTreeMap;
use std::time::Instant;

use talkpath_experiment::observer::Event;
use talkpath_measure::summarise::summary_of_runs;
use talkpath_measure::summary::{Comparison, RunSummary};
use talkpath_report::comparisons;
use talkpath_units::Duration as PathTime;

/// Beyond this number of repetitions there are no further answers while a run goes on. We chose 10,000,
/// which take about 100 MB, because a run of more is a sweep, and nobody waits before it for an answer.
const MAX_REPETITIONS: usize = 10_000;

/// How far an experiment is, and its figures so far.
#[derive(Default)]
pub(crate) struct RunState {
    cells: u64,
    /// The repetitions of the list that runs now.
    pub(crate) repetitions: u64,
    /// Those of them that have finished.
    pub(crate) finished: u64,
    whole: PathTime,
    advanced: PathTime,
    begun: Option<Instant>,
    /// The figures of each repetition, by cell and number.
    figures: BTreeMap<(u64, u64), RunSummary>,
    /// The number of repetitions of all cells at the last answer.
    answered: usize,
}

/// The answers after some repetitions of each cell.
pub(crate) struct Answers {
    pub(crate) repetitions: usize,
    pub(crate) comparisons: Vec<Comparison>,
}

impl RunState {
    /// Takes what an event says about the progress. Other events change nothing.
    pub(crate) fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Begun { cells, repetitions, whole } => {
                (self.cells, self.repetitions, self.whole) = (*cells, *repetitions, *whole);
                (self.finished, self.advanced) = (0, PathTime::ZERO);
                self.begun = Some(Instant::now());
            }
            Event::Advanced(path_time) => self.advanced = self.advanced.saturating_add(*path_time),
            Event::Counted => self.finished += 1,
            _ => {}
        }
    }

    /// Returns the share of the path time that is over.
    pub(crate) fn share(&self) -> f64 {
        if self.whole > PathTime::ZERO {
            (self.advanced.as_secs_f64() / self.whole.as_secs_f64()).min(1.0)
        } else {
            0.0
        }
    }

    /// Returns for how many seconds more the list runs, if it goes on as until `now`. Returns `None` if
    /// nothing has run yet.
    pub(crate) fn left_s(&self, now: Instant) -> Option<f64> {
        let elapsed = self.begun.map_or(0.0, |begun| (now - begun).as_secs_f64());
        let share = self.share();
        (share > 0.0).then(|| elapsed * (1.0 - share) / share)
    }

    /// Adds the figures of a repetition. Returns the answers so far whenever every cell has run equally
    /// often and more often than at the last answers.
    pub(crate) fn add_figures(&mut self, repetition: &RunSummary) -> Option<Answers> {
        if self.figures.len() >= MAX_REPETITIONS {
            return None;
        }
        self.figures.insert((repetition.cell, repetition.repetition), repetition.clone());
        let mut repetitions_of: BTreeMap<u64, usize> = BTreeMap::new();
        for (cell, _) in self.figures.keys() {
            *repetitions_of.entry(*cell).or_default() += 1;
        }
        let all_cells = repetitions_of.len() as u64 == self.cells;
        let least = repetitions_of.values().min().copied().filter(|_| all_cells)?;
        let is_even = repetitions_of.values().all(|count| *count == least);
        if !is_even || self.figures.len() <= self.answered {
            return None;
        }
        self.answered = self.figures.len();
        let comparisons = comparisons(&summary_of_runs("", self.figures.values().cloned().collect()));
        Some(Answers { repetitions: least, comparisons })
    }
}
