//! The command line of `talkpath check`.

use std::path::PathBuf;

use clap::Args;

use super::{ChangeArgs, heading};

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A scenario file, or a file of a path: its tables `up` and `down`, or what `--path` of `compare` takes
    #[arg(value_name = "SCENARIO.toml|PATH", required_unless_present_any = ["schema", "keys", "path"])]
    pub scenario: Option<PathBuf>,
    /// Another path than the scenario's: a preset or a file. Without a scenario the path is checked alone
    #[arg(help_heading = heading::PATH, long, value_name = "PRESET|FILE", conflicts_with_all = ["schema", "keys"])]
    pub path: Option<String>,
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Print the JSON Schema of scenario files, for an editor
    #[arg(long, conflicts_with_all = ["scenario", "set", "sweep"])]
    pub schema: bool,
    /// Print all keys of scenario files as Markdown tables, with their values, defaults and meanings
    #[arg(long, conflicts_with_all = ["scenario", "schema", "set", "sweep"])]
    pub keys: bool,
}
