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
    /// Validate a campaign file and the scenarios that it names, and report every mistake
    Check(CampaignCheckArgs),
    /// Run the planned measurements until all are done. After a kill or a reboot the same command goes on
    Run(CampaignRunArgs),
    /// Print which measurements ran, which are due, and which failed and why
    Status(CampaignFileArgs),
    /// Copy the records by the file's `store_command`, but for those that were copied before
    Push(CampaignPushArgs),
    /// Write the report on all records
    Report(CampaignReportArgs),
}

#[derive(Debug, Args)]
pub struct CampaignCheckArgs {
    /// The campaign file
    #[arg(value_name = "FILE.toml", required_unless_present = "keys")]
    pub file: Option<PathBuf>,
    /// Also try the hosts: start talkpath on them as the campaign does, and make a call of 0.2 s between each
    /// pair
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
    /// Copy all records again, for example because the store has lost some
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct CampaignReportArgs {
    #[command(flatten)]
    pub file: CampaignFileArgs,
    /// Where to write the report (default: report.html in the campaign's directory)
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
}
