//! Everything that ends a command early, and the exit code that docs/reference/interface.md promises for it.

use std::io;
use std::path::Path;

/// Why a command failed. Its text is for a person, without `error:` before it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A threshold or `--strict` did not hold.
    #[error("{0}")]
    NotHeld(String),
    /// Results could not be written.
    #[error("cannot write {what}: {why}")]
    Write {
        /// Which file or stream.
        what: String,
        /// What the system said.
        why: io::Error,
    },
    /// Whoever read our standard output has gone; nothing is wrong.
    #[error("standard output was closed")]
    OutputClosed,
    /// The command line, a file it names or the scenario is wrong.
    #[error("{0}")]
    Usage(String),
    /// The scenario has mistakes; each is a finished text of its own.
    #[error("{} in {file}", count(mistakes.len()))]
    Scenario {
        /// The file's name.
        file: String,
        /// `FILE:LINE:COLUMN: ...` with the source line below.
        mistakes: Vec<String>,
    },
    /// The arena is not available here.
    #[error("{what}\nhelp: {how}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// How to get it.
        how: String,
    },
    /// The far end failed or went away.
    #[error("{0}")]
    FarEnd(String),
    /// The user stopped it.
    #[error("{0}")]
    Interrupted(String),
}

impl Failure {
    /// The process's exit code.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::NotHeld(_) | Self::Write { .. } => 1,
            Self::Usage(_) | Self::Scenario { .. } => 2,
            Self::Unavailable { .. } => 3,
            Self::FarEnd(_) => 4,
            Self::Interrupted(_) => 130,
        }
    }

    /// A file or folder that could not be written.
    pub(crate) fn write(path: &Path, why: io::Error) -> Self {
        Self::Write { what: path.display().to_string(), why }
    }

    /// A file or folder, named on the command line, that could not be read.
    pub(crate) fn read(path: &Path, why: &io::Error) -> Self {
        Self::Usage(format!("cannot read {}: {why}", path.display()))
    }
}

fn count(mistakes: usize) -> String {
    if mistakes == 1 { "1 mistake".to_owned() } else { format!("{mistakes} mistakes") }
}
