//! The command line of `talkpath trace`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The file, or a line of tc in quotes
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What the file is (default: by its first line)
    #[arg(long = "as", value_enum, value_name = "KIND")]
    pub kind: Option<TraceKind>,
    /// The unit of the times of a mahimahi trace (default: milliseconds, or what the times are since 1970)
    #[arg(long, value_enum, value_name = "UNIT")]
    pub unit: Option<TimeUnit>,
    /// Write it as a scenario reads it: a trace from zero in milliseconds, a table of times and values, or
    /// for lines of tc a path file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What a file of a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceKind {
    /// A time in each line, at which a packet may be delivered
    Mahimahi,
    /// A table of times and values with a header, as `file` of a change reads it
    Csv,
    /// JSON of the crate netem-trace: constant steps of a rate, a delay or a loss, and patterns of them
    NetemTrace,
    /// Lines of Linux's tc: netem, tbf, htb or police
    Tc,
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimeUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

impl TimeUnit {
    /// Nanoseconds in one unit.
    pub const fn nanos(self) -> u64 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }

    /// The word of the unit in options and messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::S => "s",
            Self::Ms => "ms",
            Self::Us => "us",
            Self::Ns => "ns",
        }
    }
}
