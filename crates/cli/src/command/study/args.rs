//! The command line of `talkpath study`.

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};

use crate::args::{ArenaKind, key_value};

#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    pub(crate) command: StudyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// The studies that are built in
    List,
    /// What a study asks, assumes, claims and expects
    Show {
        /// Its name, or the path of a study.toml
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Run a study's cells and judge its claims; exits with 1 where a verdict is not the expected one
    Run(StudyRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StudyRunArgs {
    /// Its name, or the path of a study.toml
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Only this claim and the cells that it reads; may be given again
    #[arg(long = "claim", value_name = "ID")]
    pub(crate) claims: Vec<String>,
    /// Where the cells run: sim, emu, or both beside each other; claims are judged first in the first
    #[arg(
        long,
        value_name = "A[,B]",
        value_enum,
        value_delimiter = ',',
        env = "TALKPATH_ARENA",
        default_value = "sim"
    )]
    pub(crate) arena: Vec<ArenaKind>,
    /// Fewer start phases under fewer assumption sets, within a minute in sim
    #[arg(long, env = "TALKPATH_QUICK", value_parser = FalseyValueParser::new())]
    pub(crate) quick: bool,
    /// Derive every repetition's seed from this one instead of the scenarios' own: the verdicts should stay
    #[arg(long, value_name = "N", env = "TALKPATH_SEED", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Set a key that the scenarios of all cells have, after what the study sets, as `duration=50 s`; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Go on in the newest directory of this study, seed and --set under --out: what ran to its end undisturbed is kept
    #[arg(long)]
    pub(crate) resume: bool,
    /// Exit with 1 also where the machine disturbed runs so that a claim has no verdict
    #[arg(long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub(crate) strict: bool,
}
