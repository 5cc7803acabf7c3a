//! The flags of `talkpath study`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::{TableArgs, parse_key_value};

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
        /// The study: its name, its folder, or the path of its study.toml
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Report every mistake of a study with its line and column. Nothing runs
    Check {
        /// The study: its folder, the path of its study.toml, or the name of a built-in study
        #[arg(value_name = "DIR")]
        name: String,
    },
    /// Write the smallest study that runs, as the beginning of your own
    New {
        /// The folder to write the study to, which must not exist yet. The study gets the name of the folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Say which claims have another verdict in other runs. The exit code is 1 if a verdict changes
    Diff(StudyDiffArgs),
    /// Write the figures of a run that pages quote to a file, with the verdicts of runs with other seeds
    Keep(StudyKeepArgs),
    /// Write figures of runs into the marked places of pages, or with --check say where they differ
    Fill(StudyFillArgs),
    /// Run the scenarios of a study and judge its claims. The exit code is 1 if a verdict is not the expected
    /// one
    Run(StudyRunArgs),
    /// Run one cell of a study as an ordinary run, with its records, tables and page
    Cell(StudyCellArgs),
    /// Judge the claims of a study by the measurements of a campaign. Nothing runs; the exit codes are those
    /// of `study run`
    Judge(StudyJudgeArgs),
}

#[derive(Debug, Args)]
pub struct StudyJudgeArgs {
    /// The study: its name, its folder, or the path of its study.toml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The campaign's directory
    #[arg(long, value_name = "DIR")]
    pub campaign: PathBuf,
    /// Judge only this claim. The flag may be given several times
    #[arg(long = "claim", value_name = "ID")]
    pub claims: Vec<String>,
    /// Where to write the page (default: NAME.html in the campaign's directory)
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    /// Exit with 1 also if a claim has no verdict because a machine disturbed its measurements
    #[arg(long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct StudyDiffArgs {
    /// The run with which the others are compared: its directory or its study.json
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
    /// The file to write. It is compressed by gzip if its name ends in .gz
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A run that differs only in its seed. A verdict that such a run contradicts is not robust. The flag may
    /// be given several times
    #[arg(long = "seed-of", value_name = "RUN")]
    pub seeds: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StudyFillArgs {
    /// The pages
    #[arg(value_name = "PAGE", required = true)]
    pub pages: Vec<PathBuf>,
    /// The directory of a run, its study.json, or the file that `study keep` wrote. The flag may be given
    /// once for each study and arena
    #[arg(long, value_name = "RUN", required = true)]
    pub from: Vec<PathBuf>,
    /// Write nothing, but name each place that differs and exit with 1
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct StudyRunArgs {
    /// The study: its name, its folder, or the path of its study.toml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Run only the scenarios that this claim reads, and judge only this claim. The flag may be given several
    /// times
    #[arg(long = "claim", value_name = "ID")]
    pub claims: Vec<String>,
    /// Where the scenarios run: sim, emu, or both. The verdict of the first one is shown first (default:
    /// sim, or emu if a scenario has a program)
    #[arg(long, value_name = "A[,B]", value_enum, value_delimiter = ',', env = "TALKPATH_ARENA")]
    pub arena: Vec<StudyArena>,
    /// Run fewer start phases under fewer sets of assumptions, and leave some checks out. A claim that needs
    /// a check that was left out is partly-judged
    #[arg(long, env = "TALKPATH_QUICK", value_parser = FalseyValueParser::new())]
    pub quick: bool,
    /// Derive the seed of each repetition from this one instead of the seed of its scenario. The verdicts
    /// should not change
    #[arg(long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Set a key in all scenarios, such as `duration=50 s`. It wins over the values of the study. The flag
    /// may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub set: Vec<(String, String)>,
    /// Continue the newest run under --out that has the same study, seed and --set. Repetitions that nothing
    /// disturbed are kept
    #[arg(long)]
    pub resume: bool,
    /// Run only the cells that an earlier run does not have, and take the medians of the others from it: its
    /// directory, its study.json, or what `study keep` wrote. It must have the same --arena, --quick, --seed
    /// and --set, and the program must simulate as it did then
    #[arg(long, value_name = "RUN")]
    pub reuse: Option<PathBuf>,
    /// Exit with 1 also if a claim has no verdict because the machine disturbed its runs. Claims that --quick
    /// judges only in part do not change the exit code
    #[arg(long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
    /// Run the programs of scenarios with `[program]`, on this machine and with all rights of your user
    #[arg(long)]
    pub allow_program: bool,
}

#[derive(Debug, Args)]
pub struct StudyCellArgs {
    /// The study: its name, its folder, or the path of its study.toml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The name of the cell
    #[arg(value_name = "CELL")]
    pub cell: String,
    /// The assumption set under which the cell runs (default: the base)
    #[arg(long, value_name = "SET")]
    pub under: Option<String>,
    /// Where the cell runs (default: sim, or emu if a scenario of the study has a program)
    #[arg(long, value_name = "A", value_enum, env = "TALKPATH_ARENA")]
    pub arena: Option<StudyArena>,
    /// How many repetitions (default: those of the study)
    #[arg(long, value_name = "N", env = "TALKPATH_REPEAT")]
    pub repeat: Option<u64>,
    /// Derive the seed of each repetition from this one instead of the seed of the scenario, as `study run`
    /// does
    #[arg(long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Set a key of the scenario, such as `duration=50 s`. It wins over the values of the study. The flag may
    /// be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub set: Vec<(String, String)>,
    /// Run the program of a scenario with `[program]`, on this machine and with all rights of your user
    #[arg(long)]
    pub allow_program: bool,
    #[command(flatten)]
    pub tables: TableArgs,
}

/// The arenas in which the scenarios of a study can run. Both have our path model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyArena {
    /// Our protocol machines and our path model under a virtual clock
    Sim,
    /// The kernel's protocols over our path model between two network namespaces
    Emu,
}
