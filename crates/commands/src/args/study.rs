//! The command line of `talkpath study`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::key_value;

#[derive(Debug, Args)]
pub struct StudyArgs {
    #[command(subcommand)]
    pub command: StudyCommand,
}

#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// List the studies that are built in
    List,
    /// Print what a study asks, assumes, claims and expects
    Show {
        /// Its name, its folder, or the path of a study.toml
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Report every mistake of a study, each with line and column; nothing runs
    Check {
        /// Its folder, the path of a study.toml, or a built-in study's name
        #[arg(value_name = "DIR")]
        name: String,
    },
    /// Write a smallest study that runs, to begin one's own with
    New {
        /// The folder to write it to, which must not exist yet; its name is the study's
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Say which claims' verdicts change from one run to others; the exit code is 1 if one does
    Diff(StudyDiffArgs),
    /// Write what pages quote of a run to a file, with the verdicts of runs with other seeds
    Keep(StudyKeepArgs),
    /// Write the marked figures of pages from runs, or with --check say where they differ
    Fill(StudyFillArgs),
    /// Run a study's cells and judge its claims; the exit code is 1 if a verdict is not the expected one
    Run(StudyRunArgs),
    /// Judge a study's claims by what a campaign measured; nothing runs, and exit codes are those of run
    Judge(StudyJudgeArgs),
}

#[derive(Debug, Args)]
pub struct StudyJudgeArgs {
    /// Its name, its folder, or the path of a study.toml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The campaign's directory
    #[arg(long, value_name = "DIR")]
    pub campaign: PathBuf,
    /// Judge only this claim; may be given again
    #[arg(long = "claim", value_name = "ID")]
    pub claims: Vec<String>,
    /// Where to write the page (default: NAME.html in the campaign's directory)
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    /// Exit with 1 also if the machine disturbed measurements so that a claim has no verdict
    #[arg(long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct StudyDiffArgs {
    /// The run that the others are held against: its directory or its study.json
    #[arg(value_name = "RUN")]
    pub first: PathBuf,
    /// Runs of the same study
    #[arg(value_name = "OTHER", required = true)]
    pub others: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StudyKeepArgs {
    /// The run's directory or its study.json
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The file to write; compressed by gzip if its name ends with .gz
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A run that differs in its seed alone; may be given again. A verdict that it contradicts is not robust
    #[arg(long = "seed-of", value_name = "RUN")]
    pub seeds: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StudyFillArgs {
    /// The pages
    #[arg(value_name = "PAGE", required = true)]
    pub pages: Vec<PathBuf>,
    /// A run's directory, its study.json, or what `study keep` wrote; may be given again, once for each study
    /// and arena
    #[arg(long, value_name = "RUN", required = true)]
    pub from: Vec<PathBuf>,
    /// Write nothing: name each place that differs, with exit code 1
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct StudyRunArgs {
    /// Its name, its folder, or the path of a study.toml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Run only this claim and the cells that it reads; may be given again
    #[arg(long = "claim", value_name = "ID")]
    pub claims: Vec<String>,
    /// Where the cells run: sim, emu, or both; the verdict of the first is shown first
    #[arg(
        long,
        value_name = "A[,B]",
        value_enum,
        value_delimiter = ',',
        env = "TALKPATH_ARENA",
        default_value = "sim"
    )]
    pub arena: Vec<StudyArena>,
    /// Take fewer start phases under fewer assumption sets, and leave some checks out; a claim that these
    /// would decide is partly-judged
    #[arg(long, env = "TALKPATH_QUICK", value_parser = FalseyValueParser::new())]
    pub quick: bool,
    /// Derive the seed of each repetition from this one instead of the scenarios' own; the verdicts should
    /// stay
    #[arg(long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Set a key in the scenarios of all cells, after what the study sets, such as `duration=50 s`; may be
    /// given again
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Continue the newest run of this study, seed and --set under --out; undisturbed repetitions are kept
    #[arg(long)]
    pub resume: bool,
    /// Exit with 1 also if the machine disturbed runs so that a claim has no verdict; claims that --quick
    /// judges only in part do not change the exit code
    #[arg(long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
}

/// Where a study's cells run: where the path is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyArena {
    /// Our protocol machines and our path model under a virtual clock
    Sim,
    /// The kernel's protocols over our path model between two network namespaces
    Emu,
}
