//! The command line of `talkpath shell`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{CaptureArgs, DemandArgs, LinkArgs, TableArgs, heading};

#[derive(Debug, Args)]
pub struct ShellArgs {
    /// The command and its arguments, after `--` (default: your shell, $SHELL). Its whole network is the path
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<OsString>,
    /// The name of the pair. The shell with a path is its near end. Each shell without a path joins the far
    /// end of the path that has this name, or waits until there is one
    #[arg(help_heading = heading::WHERE, long, value_name = "NAME")]
    pub pair: Option<String>,
    /// A preset or a file, as for `compare`: a path file, a table of rates over time, a trace or lines of tc.
    /// `up` leads from the near end to the far end
    #[arg(help_heading = heading::PATH, long, value_name = "PRESET|FILE")]
    pub path: Option<String>,
    #[command(flatten)]
    pub links: LinkArgs,
    /// Run this beside the command: `bulk` is an upload over TCP
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "bulk", value_parser = ["bulk"])]
    pub beside: Option<String>,
    /// Run the flows of this scenario beside the command, on the scenario's path unless a path is given here
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "FILE.toml", conflicts_with = "beside")]
    pub background: Option<PathBuf>,
    /// Let the command reach nothing but the path, also where pasta could carry it to this machine's network
    #[arg(help_heading = heading::WHERE, long)]
    pub isolated: bool,
    /// Seed of the path's random losses and delays
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Keep the whole command in the record, the addresses of flows, and the names that were looked up.
    /// Without it the record has the name of the program alone
    #[arg(help_heading = heading::FILES, long)]
    pub names: bool,
    /// Write a line of JSON for each second and flow to FILE, which may be a pipe, while the command runs
    #[arg(help_heading = heading::OUTPUT, long, value_name = "FILE")]
    pub json_stream: Option<PathBuf>,
    #[command(flatten)]
    pub tables: TableArgs,
    #[command(flatten)]
    pub demand: DemandArgs,
}

impl ShellArgs {
    /// Whether the command line says what the path is, so that this shell is the near end.
    pub const fn has_path(&self) -> bool {
        self.path.is_some()
            || self.links.up.is_some()
            || self.links.down.is_some()
            || self.background.is_some()
    }

    /// The first option that only a near end can have, if one is given.
    pub fn option_of_near_end(&self) -> Option<&'static str> {
        let options = [
            ("--queue", self.links.queue.is_some()),
            ("--loss", self.links.loss.is_some()),
            ("--beside", self.beside.is_some()),
            ("--names", self.names),
            ("--isolated", self.isolated),
            ("--json-stream", self.json_stream.is_some()),
            ("--require or --fail-if", self.demand.settings().next().is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}
