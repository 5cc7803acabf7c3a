//! `talkpath completions` and `talkpath man`: generated from the command line's own definition.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::terminal::{output_failure, print};

/// The completion script for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "talkpath", &mut script);
    print(&script)
}

/// The manual page, in roff.
pub(crate) fn man() -> Result<(), Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(output_failure)?;
    print(&page)
}
