//! What an experiment says while it runs. It has no words: whoever runs it finds them.

use std::path::Path;

use talkpath_units::{Duration, Seed};

use crate::Error;
use crate::run_dir::PartId;

/// Hears what happens in an experiment; several threads speak at once.
pub trait Observer: Sync {
    /// `event` has just happened.
    fn observe(&self, event: Event<'_>);

    /// What ended the run, or what could not be written after it; of both the second is only told.
    fn graver(&self, failure: Option<Error>, unwritten: Error) -> Error {
        match failure {
            Some(failure) => {
                self.observe(Event::AlsoFailed(unwritten));
                failure
            }
            None => unwritten,
        }
    }
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run directory is there.
    Directory(&'a Path),
    /// Repetitions begin.
    Begun {
        /// How many.
        repetitions: u64,
        /// What they take of path time together.
        whole: Duration,
    },
    /// A repetition has come so much further in path time.
    Advanced(Duration),
    /// A repetition came to its end.
    Counted,
    /// All that had begun is over.
    Over,
    /// A repetition came to its end, and is kept.
    Ended {
        /// Which.
        id: PartId,
        /// What it ran with.
        seed: Seed,
        /// How the machine disturbed it, if it did so past its stated limits.
        disturbed: Option<Disturbed<'a>>,
    },
    /// What the machine disturbed runs again.
    RunsAgain {
        /// How many repetitions were disturbed.
        disturbed: usize,
        /// How many of them run again now.
        again: usize,
        /// The path time that this, and what follows it, adds at most.
        at_most: Duration,
    },
    /// A cell needs what the arena cannot do; the others run on.
    CannotRun {
        /// Its index.
        cell: u64,
        /// What it needs.
        why: &'a Error,
    },
    /// Processors may sleep although none should; this is why.
    NotKeptAwake(&'a str),
    /// This failed, too, beside what ends the run.
    AlsoFailed(Error),
}

/// A repetition that the machine disturbed.
#[derive(Clone, Copy, Debug)]
pub struct Disturbed<'a> {
    /// The most other runs that were beside it.
    pub others: u64,
    /// What it warns of.
    pub warnings: &'a [String],
}
