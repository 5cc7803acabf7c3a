//! The command line of `talkpath rate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::{DemandArgs, ReadingArgs, TableArgs, heading};

#[derive(Debug, Args)]
pub struct RateArgs {
    /// The capture, in the format pcap or pcapng
    #[arg(value_name = "CALL.pcapng")]
    pub capture: PathBuf,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Print the addresses and ports of the streams, and keep them in the page and in summary.json
    #[arg(help_heading = heading::FILES, long, value_parser = FalseyValueParser::new())]
    pub names: bool,
    #[command(flatten)]
    pub tables: TableArgs,
    #[command(flatten)]
    pub demand: DemandArgs,
}
