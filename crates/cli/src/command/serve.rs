//! `talkpath serve`: the far end of live runs.

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Serves until Ctrl-C.
pub(crate) fn run(_args: &ServeArgs, _terminal: Terminal) -> Result<(), Failure> {
    Err(crate::arenas::emu_is_missing())
}
