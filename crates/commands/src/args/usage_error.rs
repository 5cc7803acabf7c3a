//! The messages for a wrong command line of which clap alone does not say enough.

use std::error::Error as _;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseIntError};

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use talkpath_scenario::{not_yet_help, transport_names};

use super::{CampaignCommand, Command, StudyCommand};
use crate::failure::Failure;

/// Makes the failure for a wrong command line. If clap's own message is good enough, and if the user asked
/// for help, clap prints its text here and ends the process.
pub(super) fn usage_failure(error: &Error) -> Failure {
    match own_failure(error) {
        Some(failure) => failure,
        None => error.exit(),
    }
}

/// Returns a failure with our own message, or `None` if clap's message is good enough.
fn own_failure(error: &Error) -> Option<Failure> {
    let argument = text_of(error, ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = text_of(error, ContextKind::InvalidSubcommand)?;
            let is_later = LATER_COMMANDS.contains(&name);
            let message = format!("`{name}` is not available yet; `talkpath --help` lists what is");
            is_later.then_some(Failure::Usage(message))
        }
        ErrorKind::UnknownArgument => unknown_argument(argument?),
        ErrorKind::MissingRequiredArgument if is_only_missing(error, "--shard") => Some(usage(
            "-o, --output is the directory of a part, and needs --shard",
            "`--out DIR` is the folder in which each run gets a directory of its own",
        )),
        _ => invalid_value(argument?, error),
    }
}

/// The message for an argument that the command does not have, if the argument shows what the user meant.
fn unknown_argument(argument: &str) -> Option<Failure> {
    if transport_names().contains(&argument) {
        return Some(usage(
            &format!("unexpected argument '{argument}' found"),
            "transports stand in one list, as in `talkpath compare --transports udp,tcp`",
        ));
    }
    if argument == "--shard" {
        return Some(usage(
            "--shard belongs to `run`: `compare` adds repetitions and cells by what the ones before show, and a \
             study judges all of its runs, so no machine knows its part beforehand",
            "`talkpath run --shard` a scenario with a fixed `repeat`",
        ));
    }
    None
}

/// The message for a value that is not right for `argument`.
fn invalid_value(argument: &str, error: &Error) -> Option<Failure> {
    let value = text_of(error, ContextKind::InvalidValue)?;
    if error.kind() == ErrorKind::InvalidValue
        && let Some(help) = not_yet_help(value)
    {
        return Some(usage(&format!("invalid value '{value}' for '{argument}'"), &help));
    }
    let expected = expected_value(error)?;
    Some(Failure::Usage(format!("invalid value '{value}' for '{argument}': {expected}")))
}

/// Says what would be right in place of a value that is not a whole number, or not an address. The messages
/// of the standard library name only what its parser found.
fn expected_value(error: &Error) -> Option<&'static str> {
    let source = error.source()?;
    if source.is::<AddrParseError>() {
        return Some("expected ADDR:PORT, as in 127.0.0.1:9160 or [::1]:9160");
    }
    match source.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::Zero => Some("expected a whole number from 1 on"),
        IntErrorKind::PosOverflow => Some("the number is too large"),
        _ => Some("expected a whole number, such as 3"),
    }
}

/// The text that clap has of an error under `kind`.
fn text_of(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Whether `option` is the only argument that is missing.
fn is_only_missing(error: &Error, option: &str) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.len() == 1 && missing[0].starts_with(option),
        _ => false,
    }
}

fn usage(wrong: &str, help: &str) -> Failure {
    Failure::Usage(format!("{wrong}\nhelp: {help}"))
}

/// Returns the failure for `--json` if `command` has no JSON result. It returns `None` for commands that
/// print JSON, and for commands that refuse the flag themselves.
pub(super) fn json_refusal(command: &Command) -> Option<Failure> {
    let (name, help) = match command {
        Command::Monitor(_) => ("monitor", "--json-stream prints events"),
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
        | Command::Shell(_)
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

/// Commands that docs/reference/interface.md promises for later versions.
const LATER_COMMANDS: [&str; 4] = ["advise", "fit", "listen", "ui"];
