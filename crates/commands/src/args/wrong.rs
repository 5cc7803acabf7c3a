//! What clap alone cannot say of a command line that is wrong.

use std::error::Error as _;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseIntError};

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use talkpath_scenario::{not_yet_help, transport_names};

use super::{CampaignCommand, Command, StudyCommand};
use crate::failure::Failure;

/// What is wrong; where clap says it best, and for help, clap prints it and ends the process.
pub(super) fn wrong_usage(error: &Error) -> Failure {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (error.kind(), context(ContextKind::InvalidSubcommand), context(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(name), _) if LATER.contains(&name) => {
            Failure::Usage(format!("`{name}` is not available yet; `talkpath --help` lists what is"))
        }
        (ErrorKind::UnknownArgument, _, Some(name)) if transport_names().contains(&name) => {
            let help = "transports stand in one list, as in `talkpath compare --transports udp,tcp`";
            Failure::Usage(format!("unexpected argument '{name}' found\nhelp: {help}"))
        }
        (ErrorKind::InvalidValue, _, Some(argument)) if refused_word(error).is_some() => {
            let (word, help) = refused_word(error).unwrap_or_default();
            Failure::Usage(format!("invalid value '{word}' for '{argument}'\nhelp: {help}"))
        }
        (ErrorKind::UnknownArgument, _, Some("--shard")) => Failure::Usage(
            "--shard belongs to `run`: `compare` adds repetitions and cells by what the ones before show, and a \
             study judges all of its runs, so no machine knows its part beforehand\n\
             help: `talkpath run --shard` a scenario with a fixed `repeat`"
                .to_owned(),
        ),
        (ErrorKind::MissingRequiredArgument, ..) if is_missing(error, "--shard") => Failure::Usage(
            "-o, --output is the directory of a part, and needs --shard\n\
             help: `--out DIR` is the folder in which each run gets a directory of its own"
                .to_owned(),
        ),
        _ => match expected(error) {
            Some(failure) => failure,
            None => error.exit(),
        },
    }
}

/// A value that names something that is not built yet, and the page that says so.
fn refused_word(error: &Error) -> Option<(&str, String)> {
    match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(word)) => Some((word, not_yet_help(word)?)),
        _ => None,
    }
}

/// Whether what is missing is `option` alone.
fn is_missing(error: &Error, option: &str) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.len() == 1 && missing[0].starts_with(option),
        _ => false,
    }
}

/// What would be right in place of a value that is no whole number, or no address: the words of the standard
/// library name what its parser met.
fn expected(error: &Error) -> Option<Failure> {
    let why = error.source()?;
    let expected = match why.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::Zero) => "expected a whole number from 1 on",
        Some(IntErrorKind::PosOverflow) => "the number is too large",
        Some(_) => "expected a whole number, such as 3",
        None if why.is::<AddrParseError>() => "expected ADDR:PORT, as in 127.0.0.1:9160 or [::1]:9160",
        None => return None,
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    Some(Failure::Usage(format!("invalid value '{value}' for '{argument}': {expected}")))
}

/// Why `command` refuses `--json`; `None` for commands that print JSON, or that say it themselves.
pub(super) fn refused_json(command: &Command) -> Option<Failure> {
    let (name, help) = match command {
        Command::Monitor(_) => ("monitor", "--json-stream prints events"),
        Command::Serve(_) => ("serve", "the client's `run --json` has the figures"),
        Command::Report(_) => ("report", "the figures are in summary.json of each run directory"),
        Command::Export(_) => ("export", "`--format jsonl` writes a JSON object for each row"),
        Command::Play(_) => ("play", "the figures are in summary.json of the run directory"),
        Command::Replay(_) => ("replay", "the exit code says whether there is a difference"),
        Command::Completions { .. } => ("completions", "it prints a script for a shell"),
        Command::Man { .. } => ("man", "it prints a manual page"),
        Command::Campaign(args) => match args.command {
            CampaignCommand::Check(ref args) if !args.hosts => {
                ("campaign check", "the exit code says whether the file is valid")
            }
            CampaignCommand::Check(_)
            | CampaignCommand::Run(_)
            | CampaignCommand::Status(_)
            | CampaignCommand::Push(_)
            | CampaignCommand::Report(_) => return None,
        },
        Command::Study(args) => match args.command {
            StudyCommand::Show { .. } => ("study show", "the study is TOML: read its study.toml"),
            StudyCommand::Check { .. } => ("study check", "the exit code says whether the study is valid"),
            StudyCommand::New { .. } => ("study new", "it writes a folder"),
            StudyCommand::Keep(_) => ("study keep", "the file that it writes is JSON"),
            StudyCommand::Fill(_) => ("study fill", "with --check the exit code says whether pages differ"),
            StudyCommand::List | StudyCommand::Diff(_) | StudyCommand::Run(_) | StudyCommand::Judge(_) => {
                return None;
            }
        },
        Command::Check(args) if args.keys => {
            ("check --keys", "`check --schema` prints the keys as JSON Schema")
        }
        Command::Stamp(args) if args.reflect => {
            ("stamp --reflect", "the sender's `stamp --json` has the figures")
        }
        Command::Compare(_)
        | Command::Run(_)
        | Command::Plan(_)
        | Command::Merge(_)
        | Command::Send(_)
        | Command::Burst(_)
        | Command::Check(_)
        | Command::Stamp(_)
        | Command::Mos(_)
        | Command::Doctor => return None,
    };
    Some(Failure::Usage(format!("`{name}` has no result to print as JSON: leave out --json\nhelp: {help}")))
}

/// Commands that docs/reference/interface.md promises and that are not built yet.
const LATER: [&str; 4] = ["advise", "fit", "listen", "ui"];
