//! The program `talkpath`: the commands, linked with the arenas.
//!
//! ```text
//! main ─► talkpath_commands ─► Arenas (linked.rs) ─► sim, emu, live
//!    └──► command/*, which need one arena's own types
//! ```
//!
//! - *arena*: a place where a scenario can run. This crate alone knows all three.
//! - *linked*: what the program hands to the commands: its arenas, and its state machines for real sockets.
//! - *watched*: what `talkpath play` would show of a run, as numbers, for a study to check.
//!
//! A command returns a [`Failure`] or nothing; only `main` turns that into text and an exit code. Begin to
//! read with `dispatch` below.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod command;
mod linked;
mod packets;
mod watched;

use std::process::ExitCode;

use talkpath_commands::args::{self, Cli, Command};
use talkpath_commands::command::{
    campaign, check, compare, export, merge, monitor, mos, plan, report, run, shell, study, transfer,
};
use talkpath_commands::failure::Failure;
use talkpath_commands::terminal::Terminal;

use crate::command::{doctor, play, replay, serve, stamp};
use crate::linked::Linked;

fn main() -> ExitCode {
    say_whose_fault_a_panic_is();
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(failure) => {
            tell(&failure, Terminal::plain());
            return ExitCode::from(failure.exit_code());
        }
    };
    let terminal = Terminal::new(&cli.common);
    match dispatch(&cli, terminal) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure, terminal);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(cli: &Cli, terminal: Terminal) -> Result<(), Failure> {
    let common = &cli.common;
    let linked = &Linked { terminal };
    match &cli.command {
        Command::Compare(args) => compare::run(args, common, linked, terminal),
        Command::Run(args) => run::run(args, common, linked, terminal),
        Command::Plan(args) => plan::run(args, common, terminal),
        Command::Merge(args) => merge::run(args, common, linked, terminal),
        Command::Send(args) => transfer::send(args, common, linked, terminal),
        Command::Burst(args) => transfer::burst(args, common, linked, terminal),
        Command::Check(args) => check::run(args, common, terminal),
        Command::Serve(args) => serve::run(args, terminal),
        Command::Monitor(args) => monitor::run(args, common, linked, terminal),
        Command::Stamp(args) => stamp::run(args, common, terminal),
        Command::Campaign(args) => campaign::run(args, common, terminal),
        Command::Study(args) => study::run(args, common, linked, terminal),
        Command::Report(args) => report::run(args, linked, terminal),
        Command::Export(args) => export::run(args, linked, terminal),
        Command::Play(args) => play::run(args, terminal),
        Command::Replay(args) => replay::run(args, terminal),
        Command::Mos(args) => mos::run(args, common, terminal),
        Command::Doctor => doctor::run(common, terminal),
        Command::Completions { shell } => shell::completions(*shell),
        Command::Man { command } => shell::man(command.as_deref()),
    }
}

fn tell(failure: &Failure, terminal: Terminal) {
    match failure {
        Failure::OutputClosed => {}
        Failure::Scenario { mistakes, .. } => {
            for mistake in mistakes {
                terminal.error(mistake);
            }
            terminal.error(&failure.to_string());
        }
        other => terminal.error(&other.to_string()),
    }
}

/// Input never panics; if it does all the same, the user learns that it is not their mistake.
fn say_whose_fault_a_panic_is() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        Terminal::plain()
            .error("this is a bug in talkpath: please report the lines above, the command and the scenario");
    }));
}
