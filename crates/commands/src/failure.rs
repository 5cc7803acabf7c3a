//! Everything that ends a command early, and the exit code that docs/reference/interface.md promises for it.

use std::io;
use std::path::Path;

use talkpath_experiment::Error;

/// Why a command failed. Its text is for a person, without `error:` before it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A threshold of the scenario, of `--require` or of `--fail-if` did not hold.
    #[error("{0}")]
    Threshold(String),
    /// A threshold is finer than one message of the run, or most messages are unfinished, and none fails.
    #[error("{0}")]
    Undecided(String),
    /// `--strict`, or what a study expects, did not hold; or a file that was sent did not arrive whole.
    #[error("{0}")]
    NotHeld(String),
    /// Results could not be written.
    #[error("cannot write {what}: {why}{}", help_line(help))]
    Write {
        /// Which file or stream.
        what: String,
        /// What the system said.
        why: io::Error,
        /// What helps; empty if nothing is known.
        help: String,
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
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::NotHeld(_) | Self::Write { .. } => 1,
            Self::Usage(_) | Self::Scenario { .. } => 2,
            Self::Unavailable { .. } => 3,
            Self::FarEnd(_) => 4,
            Self::Threshold(_) => 5,
            Self::Undecided(_) => 6,
            Self::Interrupted(_) => 130,
        }
    }

    /// Which goes first where several apply, 0 before all, as docs/reference/interface.md ranks them: what
    /// cut the work short, a threshold, the rest, and a reader that has gone last.
    const fn rank(&self) -> u8 {
        match self {
            Self::Interrupted(_)
            | Self::Usage(_)
            | Self::Scenario { .. }
            | Self::Unavailable { .. }
            | Self::FarEnd(_) => 0,
            Self::Threshold(_) => 1,
            Self::Undecided(_) => 2,
            Self::NotHeld(_) | Self::Write { .. } => 3,
            Self::OutputClosed => 4,
        }
    }

    /// The failure by which the command ends: of the gravest the first. The others are only told; not that a
    /// reader has gone, as nothing is wrong then.
    pub fn gravest(failures: impl IntoIterator<Item = Option<Self>>, tell: impl Fn(&Self)) -> Option<Self> {
        let mut failures: Vec<Self> = failures.into_iter().flatten().collect();
        failures.sort_by_key(Self::rank);
        let mut failures = failures.into_iter();
        let gravest = failures.next();
        failures.filter(|failure| !matches!(failure, Self::OutputClosed)).for_each(|failure| tell(&failure));
        gravest
    }

    /// A file or folder that could not be written.
    pub fn write(path: &Path, why: io::Error) -> Self {
        Self::Write { what: path.display().to_string(), why, help: String::new() }
    }

    /// A folder that could not be made.
    pub fn folder(path: &Path, why: io::Error) -> Self {
        let what = format!("the folder {}, which cannot be made", path.display());
        Self::Write { what, why, help: String::new() }
    }

    /// All that it says, also each mistake of a scenario.
    pub(crate) fn in_full(&self) -> String {
        match self {
            Self::Scenario { mistakes, .. } => mistakes.join("\n"),
            other => other.to_string(),
        }
    }

    /// A failure to write, with what helps.
    pub fn with_help(self, text: impl Into<String>) -> Self {
        match self {
            Self::Write { what, why, .. } => Self::Write { what, why, help: text.into() },
            other => other,
        }
    }

    /// A file or folder, named on the command line, that could not be read.
    pub fn read(path: &Path, why: &io::Error) -> Self {
        Self::Usage(format!("cannot read {}: {why}", path.display()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Write { what, why } => Self::Write { what, why, help: String::new() },
            Error::NoRunDirectory { what, why } => {
                let help = "`--out DIR` names another folder for runs".to_owned();
                Self::Write { what, why, help }
            }
            Error::Read { .. } | Error::Unusable(_) | Error::Busy(_) | Error::Unsupported(_) => {
                Self::Usage(error.to_string())
            }
            Error::Unavailable { what, how } => Self::Unavailable { what, how },
            Error::FarEnd(what) => Self::FarEnd(what),
            Error::Interrupted(what) => Self::Interrupted(what),
        }
    }
}

fn help_line(help: &str) -> String {
    if help.is_empty() { String::new() } else { format!("\nhelp: {help}") }
}

fn in_all(mistakes: usize, file: &str) -> String {
    let count = if mistakes == 1 { "1 mistake".to_owned() } else { format!("{mistakes} mistakes") };
    if file.is_empty() { format!("{count} in the options") } else { format!("{count} in {file}") }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_gravest_failure_ends_the_command_wherever_it_stands() {
        let far = || Some(Failure::FarEnd("gone".to_owned()));
        let threshold = || Some(Failure::Threshold("call.mos".to_owned()));
        let undecided = || Some(Failure::Undecided("call.loss_rate".to_owned()));
        let unwritten = || Some(Failure::write(Path::new("junit.xml"), io::Error::other("full")));
        let strict = || Some(Failure::NotHeld("--strict".to_owned()));
        let closed = || Some(Failure::OutputClosed);
        for (failures, code, told) in [
            ([far(), threshold(), None, strict()], 4, 2),
            ([unwritten(), threshold(), None, far()], 4, 2),
            ([unwritten(), threshold(), None, strict()], 5, 2),
            ([undecided(), threshold(), None, strict()], 5, 2),
            ([undecided(), None, None, strict()], 6, 1),
            ([None, threshold(), closed(), None], 5, 0),
            ([closed(), None, unwritten(), None], 1, 0),
            ([None, None, None, strict()], 1, 0),
            ([None, closed(), None, None], 0, 0),
        ] {
            let count = Cell::new(0);
            let ended = Failure::gravest(failures, |_| count.set(count.get() + 1)).unwrap();
            assert_eq!((ended.exit_code(), count.get()), (code, told), "{ended}");
        }
        assert!(Failure::gravest([None, None], |_| ()).is_none());
    }
}
