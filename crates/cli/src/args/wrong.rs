//! What clap alone cannot say of a command line that is wrong.

use std::process::exit;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use talkpath_scenario::transport_names;

use crate::terminal::Terminal;

/// Says what is wrong, and ends the process with clap's exit code: 2, or 0 after help.
pub(super) fn wrong_usage(error: &Error) -> ! {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (error.kind(), context(ContextKind::InvalidSubcommand), context(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(name), _) if LATER.contains(&name) => {
            Terminal::plain()
                .error(&format!("`{name}` is not available yet; `talkpath --help` lists what is"));
        }
        (ErrorKind::UnknownArgument, _, Some(name)) if transport_names().contains(&name) => {
            let say = |text: &str| Terminal::plain().error(text);
            say(&format!(
                "unexpected argument '{name}' found\nhelp: transports stand in one list, as in `talkpath compare --transports udp,tcp`"
            ));
        }
        _ => error.exit(),
    }
    exit(error.exit_code())
}

/// Commands that docs/reference/interface.md promises and that are not built yet.
const LATER: [&str; 9] = ["advise", "campaign", "fit", "listen", "merge", "monitor", "plan", "play", "ui"];
