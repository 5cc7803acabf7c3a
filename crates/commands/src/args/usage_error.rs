//! Our own messages for a wrong command line.
//!
//! clap finds the mistakes and has a message for each. In a few cases that message does not say what would be
//! right, and this file replaces it.

use std::error::Error as _;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseIntError};

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use talkpath_scenario::{not_yet_help, transport_names};

use super::{CampaignCommand, Command, StudyCommand};
use crate::failure::Failure;

/// The commands that docs/reference/interface.md promises for later versions.
const LATER_COMMANDS: [&str; 2] = ["advise", "fit"];

/// Makes the failure for a wrong command line.
///
/// If this file has no message for the error, clap prints its own message and ends the process. clap also
/// does so if the user asked for help or for the version, which clap treats as errors.
pub(super) fn usage_failure(error: &Error) -> Failure {
    match our_failure(error) {
        Some(failure) => failure,
        None => error.exit(),
    }
}

/// Returns the failure with our message, or `None` if clap's message is good enough.
fn our_failure(error: &Error) -> Option<Failure> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => later_command(error),
        ErrorKind::UnknownArgument => unknown_argument(error),
        ErrorKind::MissingRequiredArgument => missing_shard(error),
        _ => invalid_value(error),
    }
}

/// The failure for a command that a later version will have.
fn later_command(error: &Error) -> Option<Failure> {
    let name = context_text(error, ContextKind::InvalidSubcommand)?;
    if !LATER_COMMANDS.contains(&name) {
        return None;
    }
    Some(Failure::Usage(format!("`{name}` is not available yet; `talkpath --help` lists the commands")))
}

/// The failure for an argument that the command does not have, if we know what the user meant.
fn unknown_argument(error: &Error) -> Option<Failure> {
    let argument = context_text(error, ContextKind::InvalidArg)?;
    if transport_names().contains(&argument) {
        return Some(usage(
            &format!("unexpected argument '{argument}' found"),
            "separate transports by commas, as in `talkpath compare --transports udp,tcp`",
        ));
    }
    if argument == "--shard" {
        return Some(usage(
            "only `run` has --shard: `compare` adds repetitions by the first results, and a study judges all its \
             runs together, so neither can be divided beforehand",
            "run one scenario with a fixed `repeat` on several machines: `talkpath run --shard I/N`",
        ));
    }
    None
}

/// The failure for `run -o DIR` without --shard. The user probably means `--out`.
fn missing_shard(error: &Error) -> Option<Failure> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    match missing.as_slice() {
        [only] if only.starts_with("--shard") => Some(usage(
            "-o, --output is the directory of one part of a run, and needs --shard",
            "`--out DIR` sets where the directories of runs are made",
        )),
        _ => None,
    }
}

/// The failure for a wrong value.
fn invalid_value(error: &Error) -> Option<Failure> {
    let argument = context_text(error, ContextKind::InvalidArg)?;
    let value = context_text(error, ContextKind::InvalidValue)?;
    let message = format!("invalid value '{value}' for '{argument}'");
    // The value may be a transport or a codec of a later version.
    if error.kind() == ErrorKind::InvalidValue
        && let Some(help) = not_yet_help(value)
    {
        return Some(usage(&message, &help));
    }
    let expected = expected_value(error)?;
    Some(Failure::Usage(format!("{message}: {expected}")))
}

/// Returns what would be right in place of a wrong number or address. The messages of the standard library
/// say only what is wrong.
fn expected_value(error: &Error) -> Option<&'static str> {
    let cause = error.source()?;
    if cause.is::<AddrParseError>() {
        return Some("expected ADDR:PORT, as in 127.0.0.1:9160 or [::1]:9160");
    }
    match cause.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::Zero => Some("expected a whole number, at least 1"),
        IntErrorKind::PosOverflow => Some("the number is too large"),
        _ => Some("expected a whole number, such as 3"),
    }
}

/// Returns what clap knows of an error, such as the name of the argument.
fn context_text(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

fn usage(message: &str, help: &str) -> Failure {
    Failure::Usage(format!("{message}\nhelp: {help}"))
}

/// Returns the failure for `--json` if `command` has no JSON result. Returns `None` for a command that prints
/// JSON, and for a command that refuses the flag itself.
///
/// The `match` has no arm for all other commands, so whoever adds a command decides here whether it prints
/// JSON.
pub(super) fn json_refusal(command: &Command) -> Option<Failure> {
    let (name, help) = match command {
        Command::Monitor(_) => ("monitor", "--json-stream prints events"),
        Command::Ui(_) => ("ui", "each run that it makes has its summary.json"),
        Command::Serve(_) => ("serve", "the client's `run --json` has the figures"),
        Command::Report(_) => ("report", "the figures are in summary.json of each run directory"),
        Command::Export(_) => ("export", "`--format jsonl` writes a JSON object for each row"),
        Command::Play(_) => ("play", "the figures are in summary.json of the run directory"),
        Command::Replay(_) => ("replay", "the exit code says whether there is a difference"),
        Command::Trace(_) => ("trace", "`check --json` has what a scenario's traces hold"),
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
            StudyCommand::List
            | StudyCommand::Diff(_)
            | StudyCommand::Run(_)
            | StudyCommand::Cell(_)
            | StudyCommand::Judge(_) => {
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
        | Command::Shell(_)
        | Command::Plan(_)
        | Command::Merge(_)
        | Command::Send(_)
        | Command::Burst(_)
        | Command::Check(_)
        | Command::Stamp(_)
        | Command::Rate(_)
        | Command::Listen(_)
        | Command::Mos(_)
        | Command::Doctor => return None,
    };
    Some(Failure::Usage(format!("`{name}` has no result to print as JSON: leave out --json\nhelp: {help}")))
}
