//! The failures that end a command early, and the exit codes that docs/reference/interface.md promises for
//! them.

use std::io;
use std::path::Path;

use talkpath_experiment::Error;
use talkpath_units::counted;

/// Why a command failed. Its text is for a person, without `error:` before it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A threshold of the scenario, of `--require` or of `--fail-if` did not hold.
    #[error("{0}")]
    Threshold(String),
    /// A threshold is undecided, and no threshold fails. It is undecided if its bound lies in the interval of
    /// the figure, or if most messages are unfinished.
    #[error("{0}")]
    Undecided(String),
    /// `--strict` or a verdict that a study expects did not hold, or a file that was sent did not arrive
    /// whole.
    #[error("{0}")]
    NotHeld(String),
    /// An error that can also end an experiment: results could not be written, a file could not be used, the
    /// arena is not available, the far host failed, or the user stopped the command.
    #[error("{}", with_help(error, help))]
    Experiment {
        /// The error.
        error: Error,
        /// What the user can do about it. The text is empty if nothing is known, or if the error says it.
        help: String,
    },
    /// The program that read our standard output has closed it. This is not an error.
    #[error("standard output was closed")]
    OutputClosed,
    /// The command line, a file that it names or the scenario is wrong.
    #[error("{0}")]
    Usage(String),
    /// The program that `shell` ran has ended with this exit code. It has said why.
    #[error("the program ended with {0}")]
    Program(u8),
    /// What kept `shell` from running the program.
    #[error("{0}")]
    NotRun(Box<Self>),
    /// The scenario has mistakes. The text of the failure counts them.
    #[error("{}", count_text(mistakes.len(), file))]
    Scenario {
        /// The name of the file. It is empty if all mistakes are in options of the command line.
        file: String,
        /// Each mistake as `FILE:LINE:COLUMN: ...`, with the source line below.
        mistakes: Vec<String>,
    },
}

impl Failure {
    /// Returns the exit code of the process.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::NotHeld(_) => 1,
            Self::Usage(_) | Self::Scenario { .. } => 2,
            Self::Threshold(_) => 5,
            Self::Undecided(_) => 6,
            Self::Program(code) => *code,
            Self::NotRun(_) => 125,
            Self::Experiment { error, .. } => match error {
                Error::Write { .. } | Error::NoRunDirectory { .. } => 1,
                Error::Read { .. } | Error::Unusable(_) | Error::Busy(_) | Error::Unsupported(_) => 2,
                Error::Unavailable { .. } => 3,
                Error::FarEnd(_) => 4,
                Error::Interrupted(_) => 130,
            },
        }
    }

    /// Returns the rank of the failure among several, as docs/reference/interface.md orders them. The lowest
    /// rank decides the exit code: first a failure that cut the work short, then a threshold, then everything
    /// else.
    const fn rank(&self) -> u8 {
        match self {
            Self::Experiment { error: Error::Write { .. } | Error::NoRunDirectory { .. }, .. }
            | Self::NotHeld(_) => 3,
            Self::Experiment { .. }
            | Self::Usage(_)
            | Self::Scenario { .. }
            | Self::Program(_)
            | Self::NotRun(_) => 0,
            Self::Threshold(_) => 1,
            Self::Undecided(_) => 2,
            Self::OutputClosed => 4,
        }
    }

    /// Returns the failure that ends the command: the gravest one, and the first of several that are equally
    /// grave. The other failures are given to `print`, except for a closed standard output.
    pub fn gravest(failures: impl IntoIterator<Item = Option<Self>>, print: impl Fn(&Self)) -> Option<Self> {
        let mut failures: Vec<Self> = failures.into_iter().flatten().collect();
        failures.sort_by_key(Self::rank);
        let mut failures = failures.into_iter();
        let gravest = failures.next();
        for other in failures {
            if !matches!(other, Self::OutputClosed) {
                print(&other);
            }
        }
        gravest
    }

    /// Makes the failure for a file or folder that could not be written.
    pub fn write(path: &Path, why: io::Error) -> Self {
        Error::write(path, why).into()
    }

    /// Makes the failure for a folder that could not be made.
    pub fn folder(path: &Path, why: io::Error) -> Self {
        Error::Write { what: format!("the folder {}, which cannot be made", path.display()), why }.into()
    }

    /// Makes the failure for an arena, or another need, that this machine does not have. `what` says what is
    /// missing, and `how` says how to get it.
    pub fn unavailable(what: impl Into<String>, how: impl Into<String>) -> Self {
        Error::Unavailable { what: what.into(), how: how.into() }.into()
    }

    /// Makes the failure for a far host that failed or went away.
    pub fn far_end(what: impl Into<String>) -> Self {
        Error::FarEnd(what.into()).into()
    }

    /// Makes the failure for a command that the user stopped.
    pub fn interrupted(what: impl Into<String>) -> Self {
        Error::Interrupted(what.into()).into()
    }

    /// Returns the whole text, with each mistake of a scenario.
    pub(crate) fn in_full(&self) -> String {
        match self {
            Self::Scenario { mistakes, .. } => mistakes.join("\n"),
            other => other.to_string(),
        }
    }

    /// Adds what the user can do about a failed write. Other failures stay as they are.
    pub fn with_help(self, text: impl Into<String>) -> Self {
        match self {
            Self::Experiment {
                error: error @ (Error::Write { .. } | Error::NoRunDirectory { .. }), ..
            } => Self::Experiment { error, help: text.into() },
            other => other,
        }
    }

    /// Makes the failure for a file or folder on the command line that could not be read.
    pub fn read(path: &Path, why: &io::Error) -> Self {
        Self::Usage(format!("cannot read {}: {why}", path.display()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let help = match error {
            Error::NoRunDirectory { .. } => "`--out DIR` names another folder for runs",
            _ => "",
        };
        Self::Experiment { error, help: help.to_owned() }
    }
}

/// Writes `error` and what the user can do about it.
fn with_help(error: &Error, help: &str) -> String {
    match (error, help) {
        (Error::Unavailable { what, how }, _) => format!("{what}\nhelp: {how}"),
        (error, "") => error.to_string(),
        (error, help) => format!("{error}\nhelp: {help}"),
    }
}

/// Says how many mistakes are in `file`, or in the options if `file` is empty.
fn count_text(mistakes: usize, file: &str) -> String {
    let count = counted(mistakes, "mistake");
    if file.is_empty() { format!("{count} in the options") } else { format!("{count} in {file}") }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_gravest_failure_ends_the_command_wherever_it_stands() {
        let far = || Some(Failure::far_end("gone"));
        let threshold = || Some(Failure::Threshold("call.mos".to_owned()));
        let undecided = || Some(Failure::Undecided("call.loss_rate".to_owned()));
        let unwritten = || Some(Failure::write(Path::new("junit.xml"), io::Error::other("full")));
        let strict = || Some(Failure::NotHeld("--strict".to_owned()));
        let closed = || Some(Failure::OutputClosed);
        for (failures, code, printed) in [
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
            assert_eq!((ended.exit_code(), count.get()), (code, printed), "{ended}");
        }
        assert!(Failure::gravest([None, None], |_| ()).is_none());
    }

    #[test]
    fn what_ends_an_experiment_has_its_exit_code_and_says_what_helps() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let unmade = Error::NoRunDirectory { what: "runs".to_owned(), why: full() };
        let unavailable = Error::Unavailable { what: "no namespaces".to_owned(), how: "be root".to_owned() };
        for (error, code, end) in [
            (unmade, 1, "\nhelp: `--out DIR` names another folder for runs"),
            (Error::Busy("run".into()), 2, "run: another process works on it"),
            (unavailable, 3, "no namespaces\nhelp: be root"),
            (Error::FarEnd("gone".to_owned()), 4, "gone"),
            (Error::interrupted(), 130, "interrupted"),
        ] {
            let failure = Failure::from(error);
            assert!(failure.exit_code() == code && failure.to_string().ends_with(end), "{failure}");
        }
        let helped = Failure::write(Path::new("a"), full()).with_help("b");
        assert!(helped.to_string().ends_with("\nhelp: b"), "{helped}");
        assert_eq!(Failure::far_end("gone").with_help("b").to_string(), "gone", "nothing was to be written");
    }
}
