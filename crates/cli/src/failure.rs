//! Everything that ends a command early, and the exit code that docs/reference/interface.md promises for it.

use std::io;
use std::path::Path;

/// Why a command failed. Its text is for a person, without `error:` before it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A threshold of the scenario, of `--require` or of `--fail-if` did not hold.
    #[error("{0}")]
    Threshold(String),
    /// `--strict`, or what a study expects, did not hold.
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
    #[error("{}", in_all(mistakes.len(), file))]
    Scenario {
        /// The file's name; empty if no mistake is in the file, but each in an option.
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
            Self::Threshold(_) => 5,
            Self::Interrupted(_) => 130,
        }
    }

    /// A file or folder that could not be written.
    pub(crate) fn write(path: &Path, why: io::Error) -> Self {
        Self::Write { what: path.display().to_string(), why }
    }

    /// A folder that could not be made.
    pub(crate) fn folder(path: &Path, why: io::Error) -> Self {
        Self::Write { what: format!("the folder {}, which cannot be made", path.display()), why }
    }

    /// A file or folder, named on the command line, that could not be read.
    pub(crate) fn read(path: &Path, why: &io::Error) -> Self {
        Self::Usage(format!("cannot read {}: {why}", path.display()))
    }
}

fn in_all(mistakes: usize, file: &str) -> String {
    let count = if mistakes == 1 { "1 mistake".to_owned() } else { format!("{mistakes} mistakes") };
    if file.is_empty() { format!("{count} in the options") } else { format!("{count} in {file}") }
}
