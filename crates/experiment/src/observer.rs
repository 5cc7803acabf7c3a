//! The events of an experiment, and the trait of those who receive them. An event holds no text for the
//! user: the observer chooses the words.

use std::path::Path;

use talkpath_measure::summary::RunSummary;
use talkpath_units::{Duration, Seed};

use crate::Error;
use crate::run_dir::PartId;

/// Receives the events of an experiment. Several threads call it at once.
pub trait Observer: Sync {
    /// Takes note of an event that has just happened.
    fn observe(&self, event: Event<'_>);

    /// Returns the graver of two errors, and reports the other one. A failure of the run is graver than
    /// `write_error`, the error of a file that could not be written.
    fn graver(&self, failure: Option<Error>, write_error: Error) -> Error {
        match failure {
            Some(failure) => {
                self.observe(Event::AlsoFailed(write_error));
                failure
            }
            None => write_error,
        }
    }
}

/// Something that happened in an experiment.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run directory was made.
    Directory(&'a Path),
    /// A list of repetitions begins.
    Begun {
        /// The number of cells of the plan.
        cells: u64,
        /// The number of repetitions.
        repetitions: u64,
        /// The sum of their durations in path time.
        whole: Duration,
    },
    /// A repetition has advanced by this much path time.
    Advanced(Duration),
    /// A repetition ran to its end.
    Counted,
    /// The list of repetitions is over.
    Over,
    /// A repetition ran to its end, and its result is kept.
    Ended {
        /// The repetition.
        id: PartId,
        /// The seed of the repetition.
        seed: Seed,
        /// How the machine disturbed the repetition; `None` if the machine kept to its stated limits.
        disturbed: Option<Disturbed<'a>>,
    },
    /// These are the figures of a repetition that ran to its end. Of a repetition that runs again the last
    /// event counts. A study has no such event, because it keeps no summaries.
    Figures(&'a RunSummary),
    /// Disturbed repetitions run again.
    RunsAgain {
        /// The number of disturbed repetitions.
        disturbed: usize,
        /// The number of disturbed repetitions that run again now.
        again: usize,
        /// The largest path time that these reruns and any later ones add.
        at_most: Duration,
    },
    /// The arena does not support a cell. The other cells go on.
    CannotRun {
        /// The index of the cell.
        cell: u64,
        /// What the arena does not support.
        why: &'a Error,
    },
    /// The processors could not be kept from sleeping, for this reason.
    NotKeptAwake(&'a str),
    /// This error happened, too, after the one that ends the run.
    AlsoFailed(Error),
}

/// A repetition that the machine disturbed past its stated limits.
#[derive(Clone, Copy, Debug)]
pub struct Disturbed<'a> {
    /// The largest number of other runs during the repetition.
    pub other_runs: u64,
    /// The warnings of the repetition.
    pub warnings: &'a [String],
}
