//! Why an experiment cannot begin, cannot go on, cannot be kept, or cannot be read again.

use std::io;
use std::path::{Path, PathBuf};

use talkpath_arena::ArenaError;
use talkpath_measure::RunRecord;

/// What failed. Its text is for a person; what helps is known to whoever runs the experiment.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something could not be written.
    #[error("cannot write {what}: {why}")]
    Write {
        /// Which file or folder.
        what: String,
        /// What the system said.
        why: io::Error,
    },
    /// No run directory could be made in the folder for them.
    #[error("cannot write {what}: {why}")]
    NoRunDirectory {
        /// Which folder.
        what: String,
        /// What the system said.
        why: io::Error,
    },
    /// Something could not be read.
    #[error("cannot read {}: {why}", path.display())]
    Read {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// A file or folder is not what it should be; the text begins with its path.
    #[error("{0}")]
    Unusable(String),
    /// Another process works in this run directory.
    #[error("{}: another process works on it", .0.display())]
    Busy(PathBuf),
    /// The scenario needs something that the arena cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The arena is not available on this machine.
    #[error("{what}; {how}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// How to get it.
        how: String,
    },
    /// The far end is not there, failed or went away.
    #[error("{0}")]
    FarEnd(String),
    /// The user stopped it.
    #[error("{0}")]
    Interrupted(String),
}

impl Error {
    /// A file or folder that could not be written.
    pub fn write(path: &Path, why: io::Error) -> Self {
        Self::Write { what: path.display().to_string(), why }
    }

    /// What an arena's error means, with what was measured until then.
    pub fn ended(error: ArenaError) -> (Option<RunRecord>, Self) {
        match error {
            ArenaError::Unsupported(what) => (None, Self::Unsupported(what)),
            ArenaError::Unavailable { what, how } => (None, Self::Unavailable { what, how }),
            ArenaError::FarEnd { what, partial } => (partial.map(|it| *it), Self::FarEnd(what)),
            ArenaError::Unwelcome(what) => (None, Self::FarEnd(what)),
            ArenaError::Interrupted { partial } => (partial.map(|it| *it), Self::interrupted()),
        }
    }

    /// This machine gives no thread; `why` is the system's.
    pub fn no_thread(why: &io::Error) -> Self {
        Self::ended(ArenaError::no_thread(why)).1
    }

    /// The user stopped it.
    pub fn interrupted() -> Self {
        Self::Interrupted("interrupted".to_owned())
    }

    /// Whether a disk, or this user's part of it, is full.
    pub fn is_want_of_room(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Self::Write { why, .. } | Self::NoRunDirectory { why, .. }
            if matches!(why.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }

    /// A file or folder that could not be read.
    pub fn read(path: &Path, why: io::Error) -> Self {
        Self::Read { path: path.to_path_buf(), why }
    }
}
