//! The flags of `talkpath campaign`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct CampaignArgs {
    #[command(subcommand)]
    pub command: CampaignCommand,
}

#[derive(Debug, Subcommand)]
pub enum CampaignCommand {
    /// Validate a campaign file and the scenarios it names: every mistake at once
    Check(CampaignCheckArgs),
    /// Measure what is planned, and go on after a kill or a reboot; ends when all is done
    Run(CampaignRunArgs),
    /// What ran, what is due, what failed and why
    Status(CampaignFileArgs),
    /// Copy what is measured by the file's `store_command`, as far as it was not copied before
    Push(CampaignPushArgs),
    /// Write the report of all records
    Report(CampaignReportArgs),
}

#[derive(Debug, Args)]
pub struct CampaignCheckArgs {
    /// The campaign file
    #[arg(value_name = "FILE.toml", required_unless_present = "keys")]
    pub file: Option<PathBuf>,
    /// Reach the hosts too: start talkpath where the campaign does, and make a call of a fifth of a second
    /// between each pair
    #[arg(long, conflicts_with = "keys")]
    pub hosts: bool,
    /// Print every key of campaign files as Markdown tables
    #[arg(long, conflicts_with = "file")]
    pub keys: bool,
}

#[derive(Debug, Args)]
pub struct CampaignFileArgs {
    /// The campaign file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// The campaign's directory (default: campaign-NAME in the folder of --out)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CampaignRunArgs {
    #[command(flatten)]
    pub file: CampaignFileArgs,
    /// Exit with 1 if a measurement is missing at the end, or is not valid
    #[arg(long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct CampaignPushArgs {
    #[command(flatten)]
    pub file: CampaignFileArgs,
    /// Copy all of it again: the store has lost something
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct CampaignReportArgs {
    #[command(flatten)]
    pub file: CampaignFileArgs,
    /// Where to write it (default: report.html in the campaign's directory)
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
}
