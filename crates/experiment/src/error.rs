//! The errors of experiments.

use std::io;
use std::path::{Path, PathBuf};

use talkpath_arena::ArenaError;
use talkpath_measure::RunRecord;

/// The reason why an experiment failed. The text says what happened. The program adds what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be written.
    #[error("cannot write {what}: {why}")]
    Write {
        /// The path, and what was to be written if the path does not say so.
        what: String,
        /// The error of the system.
        why: io::Error,
    },
    /// No run directory could be made.
    #[error("cannot write {what}: {why}")]
    NoRunDirectory {
        /// The path of the run directory, or of the folder that it should be in.
        what: String,
        /// The error of the system.
        why: io::Error,
    },
    /// A file or folder could not be read.
    #[error("cannot read {}: {why}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// A file or folder does not have the expected contents. The text begins with the path.
    #[error("{0}")]
    Unusable(String),
    /// Another process works in this run directory.
    #[error("{}: another process works on it", .0.display())]
    Busy(PathBuf),
    /// The arena cannot do something that the scenario needs.
    #[error("{0}")]
    Unsupported(String),
    /// This machine does not have the arena.
    #[error("{what}; {how}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// How the user gets it.
        how: String,
    },
    /// The far host does not answer, refuses this host, or failed during the run.
    #[error("{0}")]
    FarEnd(String),
    /// The user interrupted the experiment.
    #[error("{0}")]
    Interrupted(String),
}

/// A run that an arena could not finish.
#[derive(Debug)]
pub struct FailedRun {
    /// What was measured before the failure, if the arena could save it.
    pub partial: Option<RunRecord>,
    /// The reason for the failure.
    pub error: Error,
}

impl Error {
    /// Returns the error for a file or folder that could not be written.
    pub fn write(path: &Path, why: io::Error) -> Self {
        Self::Write { what: path.display().to_string(), why }
    }

    /// Returns the error for a file or folder that could not be read.
    pub fn read(path: &Path, why: io::Error) -> Self {
        Self::Read { path: path.to_path_buf(), why }
    }

    /// Returns the error for a thread that could not be started. `why` is the error of the system.
    pub fn no_thread(why: &io::Error) -> Self {
        ArenaError::no_thread(why).into()
    }

    /// Returns the error for an experiment that the user interrupted.
    pub fn interrupted() -> Self {
        Self::Interrupted("interrupted".to_owned())
    }

    /// Returns whether the disk is full, or the user's quota of the disk is used up.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match self {
            Self::Write { why, .. } | Self::NoRunDirectory { why, .. } => {
                matches!(why.kind(), StorageFull | QuotaExceeded | FileTooLarge)
            }
            _ => false,
        }
    }
}

impl From<ArenaError> for FailedRun {
    fn from(error: ArenaError) -> Self {
        let (partial, error) = match error {
            ArenaError::Unsupported(what) => (None, Error::Unsupported(what)),
            ArenaError::Unavailable { what, how } => (None, Error::Unavailable { what, how }),
            ArenaError::FarEnd { what, partial } => (partial, Error::FarEnd(what)),
            ArenaError::Unwelcome(what) => (None, Error::FarEnd(what)),
            ArenaError::Interrupted { partial } => (partial, Error::interrupted()),
        };
        Self { partial: partial.map(|record| *record), error }
    }
}

impl From<ArenaError> for Error {
    fn from(error: ArenaError) -> Self {
        FailedRun::from(error).error
    }
}
