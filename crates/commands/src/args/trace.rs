//! The command line of `talkpath trace`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use talkpath_units::Duration;

use super::reading::parse_one_way;
use super::{FamilyArgs, heading};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub action: Option<TraceAction>,
    #[command(flatten)]
    pub described: DescribedTrace,
}

/// What `talkpath trace` does beside describing a file.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Measure the line to a host that runs `talkpath serve`, and write it as a path for --path
    Record(RecordArgs),
}

/// The flags of `talkpath trace record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The host that runs `talkpath serve`; port 7160 unless given
    #[arg(help_heading = heading::WHERE, long, value_name = "HOST[:PORT]", env = "TALKPATH_TO", value_hint = ValueHint::Hostname)]
    pub to: String,
    /// The file with the key, the same as for `talkpath serve --key-file`
    #[arg(help_heading = heading::WHERE, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    #[command(flatten)]
    pub family: FamilyArgs,
    /// How long each of the three measurements takes: the delay, the upload and the download
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME", default_value = "15 s")]
    pub duration: String,
    /// The path file. A table of each direction is written beside it: line.up.csv and line.down.csv
    #[arg(long, short, value_name = "FILE.toml", default_value = "line.toml")]
    pub output: PathBuf,
}

/// A file to describe, and its flags.
#[derive(Debug, Args)]
pub struct DescribedTrace {
    /// The file, or a line of tc in quotes
    #[arg(value_name = "FILE", required = true)]
    pub file: Option<PathBuf>,
    /// What the file is (default: by its first line)
    #[arg(long = "as", value_enum, value_name = "KIND")]
    pub kind: Option<TraceKind>,
    /// The unit of the times of a mahimahi trace (default: milliseconds, or what the times are since 1970)
    #[arg(long, value_enum, value_name = "UNIT")]
    pub unit: Option<TimeUnit>,
    /// The stream of RTP to take from a capture, as `talkpath rate` names it. Its values are then those of
    /// both directions (default: the longest, and the other direction of its conversation)
    #[arg(long, value_name = "NAME")]
    pub stream: Option<String>,
    /// The one-way delay of the fastest packet in a capture, which does not have it (default: half of RTCP's
    /// smallest round trip if both ends report, or else 50 ms)
    #[arg(long, value_name = "TIME", value_parser = parse_one_way)]
    pub one_way: Option<Duration>,
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
    /// A capture, pcap or pcapng, of which a stream of RTP is taken
    Rtp,
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

impl DescribedTrace {
    /// The file that the user named. The parser demands it.
    pub fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }
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
