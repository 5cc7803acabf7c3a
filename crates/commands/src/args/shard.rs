//! Flags of runs that are divided among machines.

use std::path::PathBuf;

use clap::Args;

use super::{ChangeArgs, TableArgs, heading};
use talkpath_experiment::shard::Shard;

/// Which part of a run, and where.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// sim: run part I of N alone, or parts I to J; `talkpath merge` makes one run of all parts
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "I[-J]/N", conflicts_with = "resume")]
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
    /// How many repetitions (default: the scenario's)
    #[arg(long, value_name = "N", env = "TALKPATH_REPEAT", allow_negative_numbers = true)]
    pub repeat: Option<u64>,
    /// Also write the resolved scenario and the traces it names into DIR: what every machine runs its part of
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
    /// Merge what is there: missing repetitions make the run invalid, instead of an error
    #[arg(long)]
    pub partial: bool,
    #[command(flatten)]
    pub tables: TableArgs,
}
