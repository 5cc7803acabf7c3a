//! The program `talkpath`. It links the commands with the arenas.
//!
//! ```text
//! main ─► talkpath_commands ─► Arenas (linked.rs) ─► sim, emu, live
//!    └──► command/*, which need the types of one arena
//! ```
//!
//! - *arena*: a place where a scenario can run. Only this crate knows all three.
//! - *linked*: the arenas that the program gives to the commands, and its state machines for real sockets.
//! - *watched*: the numbers that `talkpath play` would show of a run. A study checks them.
//!
//! A command returns a [`Failure`] or nothing. Only `main` turns a failure into text and an exit code. Begin
//! to read with `dispatch` below.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod command;
mod linked;
mod packets;
mod watched;

use std::process::ExitCode;
use std::sync::Arc;

use talkpath_commands::args::{self, Cli, Command, StudyArgs, StudyCommand};
use talkpath_commands::command::{
    Context, campaign, check, compare, export, listen, merge, monitor, mos, plan, rate, report, run, shell,
    study, trace, transfer,
};
use talkpath_commands::failure::Failure;
use talkpath_commands::terminal::Terminal;
use talkpath_emu::shell::Nursery;

use crate::command::{doctor, path_shell, play, replay, serve, stamp, ui};
use crate::linked::Linked;

fn main() -> ExitCode {
    explain_panics();
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(failure) => {
            print_failure(&failure, Terminal::plain());
            return ExitCode::from(failure.exit_code());
        }
    };
    let terminal = Terminal::new(&cli.common);
    match dispatch(&cli, terminal) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print_failure(&failure, terminal);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Runs the command of the command line.
fn dispatch(cli: &Cli, terminal: Terminal) -> Result<(), Failure> {
    let common = &cli.common;
    let linked = &Linked { terminal, nursery: nursery(&cli.command)? };
    let context = Context { common, arenas: linked, terminal };
    match &cli.command {
        Command::Compare(args) => compare::run(args, context),
        Command::Run(args) => run::run(args, context),
        Command::Shell(args) => path_shell::run(args, common, linked, terminal),
        Command::Plan(args) => plan::run(args, common, terminal),
        Command::Merge(args) => merge::run(args, context),
        Command::Send(args) => transfer::send(args, context),
        Command::Burst(args) => transfer::burst(args, context),
        Command::Check(args) => check::run(args, common, terminal),
        Command::Serve(args) => serve::run(args, terminal),
        Command::Monitor(args) => monitor::run(args, common, linked, terminal),
        Command::Stamp(args) => stamp::run(args, common, terminal),
        Command::Campaign(args) => campaign::run(args, common, terminal),
        Command::Study(args) => study::run(args, context),
        Command::Report(args) => report::run(args, linked, terminal),
        Command::Export(args) => export::run(args, linked, terminal),
        Command::Play(args) => play::run(args, terminal),
        Command::Replay(args) => replay::run(args, terminal),
        Command::Rate(args) => rate::run(args, context),
        Command::Listen(args) => listen::run(args, context),
        Command::Ui(args) => ui::run(args, common, terminal),
        Command::Mos(args) => mos::run(args, common, terminal),
        Command::Trace(args) => trace::run(args, context),
        Command::Doctor => doctor::run(common, terminal),
        Command::Completions { shell } => shell::completions(*shell),
        Command::Man { command } => shell::man(command.as_deref()),
    }
}

/// Splits the nursery of programs off if the command may run some. This process has one thread yet.
fn nursery(command: &Command) -> Result<Option<Arc<Nursery>>, Failure> {
    match command {
        Command::Run(args) if args.allow_program => path_shell::nursery().map(Some),
        Command::Study(StudyArgs { command: StudyCommand::Run(args) }) if args.allow_program => {
            path_shell::nursery().map(Some)
        }
        _ => Ok(None),
    }
}

/// Prints a failure. Nothing is printed if the reader of standard output has gone.
fn print_failure(failure: &Failure, terminal: Terminal) {
    match failure {
        Failure::OutputClosed | Failure::Program(_) => {}
        Failure::NotRun(why) => print_failure(why, terminal),
        Failure::Scenario { mistakes, .. } => {
            for mistake in mistakes {
                terminal.error(mistake);
            }
            terminal.error(&failure.to_string());
        }
        other => terminal.error(&other.to_string()),
    }
}

/// Adds a line to the message of a panic. No input may cause a panic, so the line tells the user that a panic
/// is not their mistake.
fn explain_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        Terminal::plain()
            .error("this is a bug in talkpath: please report the lines above, the command and the scenario");
    }));
}
