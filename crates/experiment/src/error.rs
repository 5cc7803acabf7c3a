//! Why an experiment cannot go on, cannot be kept, or cannot be read again.

use std::io;
use std::path::{Path, PathBuf};

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
}

impl Error {
    /// A file or folder that could not be written.
    pub fn write(path: &Path, why: io::Error) -> Self {
        Self::Write { what: path.display().to_string(), why }
    }

    /// A file or folder that could not be read.
    pub fn read(path: &Path, why: io::Error) -> Self {
        Self::Read { path: path.to_path_buf(), why }
    }
}
