//! The flags of runs that are divided among several machines: `run --shard`, `plan` and `merge`.

use std::path::PathBuf;

use clap::Args;

use super::{ChangeArgs, TableArgs, heading};
use talkpath_experiment::shard::Shard;

/// The part of a run that this machine runs, and the directory of the part.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// sim: run only part I of N, or only the parts I to J. `talkpath merge` makes one run of all parts
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "I[-J]/N", conflicts_with_all = ["resume", "until_decided"])]
    pub(crate) shard: Option<Shard>,
    /// With --shard: the part's directory (default: a new one under --out). If the part was begun there, its
    /// missing repetitions are run
    #[arg(help_heading = heading::FILES, short, long, value_name = "DIR", requires = "shard")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The scenario file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Seed of the first repetition
    #[arg(long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// How many repetitions (default: the number in the scenario)
    #[arg(long, value_name = "N", env = "TALKPATH_REPEAT", allow_negative_numbers = true)]
    pub repeat: Option<u64>,
    /// Also write the resolved scenario and the traces that it names into DIR, for the machines that run the
    /// parts
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The directories of all parts
    #[arg(value_name = "DIR", required = true)]
    pub parts: Vec<PathBuf>,
    /// The run directory to make
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Merge the repetitions that are there. If some are missing, the run is not valid; without this flag
    /// that is an error
    #[arg(long)]
    pub partial: bool,
    #[command(flatten)]
    pub tables: TableArgs,
}
