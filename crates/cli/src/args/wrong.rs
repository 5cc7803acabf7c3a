//! What clap alone cannot say of a command line that is wrong.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use talkpath_scenario::transport_names;

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
        (ErrorKind::UnknownArgument, _, Some("--shard")) => Failure::Usage(
            "--shard belongs to `run`: `compare` adds repetitions and cells by what the ones before show, and a \
             study judges all of its runs, so no machine knows its part beforehand\n\
             help: `talkpath run --shard` a scenario with a fixed `repeat`"
                .to_owned(),
        ),
        _ => error.exit(),
    }
}

/// Commands that docs/reference/interface.md promises and that are not built yet.
const LATER: [&str; 4] = ["advise", "fit", "listen", "ui"];
