//! The program `talkpath`: the commands of docs/reference/interface.md over the crates below.
//!
//! ```text
//! args ─► command/* ─► scenario_file ─► experiment ─► run_dir, part ─► terminal
//!                                        └─► arenas (sim, live)
//! ```
//!
//! A command returns a [`failure::Failure`] or nothing; only `main` turns that into text and an exit code.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod again;
mod arenas;
mod args;
mod campaign;
mod command;
mod experiment;
mod failure;
mod interrupt;
mod journal;
mod json;
mod linked;
mod monitor;
mod network;
mod packets;
mod part;
mod progress;
mod provenance;
mod resumable;
mod run_dir;
mod scenario_file;
mod shard;
mod stopwatch;
mod summary_file;
mod terminal;
mod thresholds;
mod watched;

use std::process::ExitCode;

use args::{Cli, Command};
use failure::Failure;
use linked::Linked;
use terminal::Terminal;

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
    match run(&cli, terminal) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure, terminal);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: &Cli, terminal: Terminal) -> Result<(), Failure> {
    let common = &cli.common;
    match &cli.command {
        Command::Compare(args) => command::compare::run(args, common, &Linked, terminal),
        Command::Run(args) => command::run::run(args, common, &Linked, terminal),
        Command::Plan(args) => command::plan::run(args, common, terminal),
        Command::Merge(args) => command::merge::run(args, common, &Linked, terminal),
        Command::Send(args) => command::transfer::send(args, common, &Linked, terminal),
        Command::Burst(args) => command::transfer::burst(args, common, &Linked, terminal),
        Command::Check(args) => command::check::run(args, common, terminal),
        Command::Serve(args) => command::serve::run(args, terminal),
        Command::Monitor(args) => command::monitor::run(args, common, &Linked, terminal),
        Command::Stamp(args) => command::stamp::run(args, common, terminal),
        Command::Campaign(args) => command::campaign::run(args, common, terminal),
        Command::Study(args) => command::study::run(args, common, &Linked, terminal),
        Command::Report(args) => command::report::run(args, terminal),
        Command::Export(args) => command::export::run(args, &Linked, terminal),
        Command::Play(args) => command::play::run(args, terminal),
        Command::Replay(args) => command::replay::run(args, terminal),
        Command::Mos(args) => command::mos::run(args, common, terminal),
        Command::Doctor => command::doctor::run(common, terminal),
        Command::Completions { shell } => command::shell::completions(*shell),
        Command::Man { command } => command::shell::man(command.as_deref()),
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
