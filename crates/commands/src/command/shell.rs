//! `talkpath completions` and `talkpath man`: generated from the command line's own definition.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use talkpath_path::QueueName;
use talkpath_scenario::{presets, transport_names};
use talkpath_study::embedded;

use crate::args::Cli;
use crate::failure::Failure;
use crate::terminal::{output_failure, print};

/// Prints the completion script for `shell`.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_words(), "talkpath", &mut script);
    print(&script)
}

/// The manual page of the program, or of one of its commands, in roff.
pub fn man(command: Option<&str>) -> Result<(), Failure> {
    let mut all = Cli::command();
    all.build();
    let described = match command {
        None => Cli::command(),
        Some(name) => {
            let Some(found) = all.find_subcommand(name) else {
                let names: Vec<_> = all.get_subcommands().map(Command::get_name).collect();
                let known = names.join(", ");
                return Err(Failure::Usage(format!(
                    "man {name}: there is no such command; there are {known}"
                )));
            };
            found.clone().version(env!("CARGO_PKG_VERSION"))
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(described).render(&mut page).map_err(output_failure)?;
    print(&page)
}

/// The command line with the words that a shell can offer. Only there: what else a value may be (a file, a
/// list, a study's folder) the commands check themselves.
fn with_words() -> Command {
    let transports = transport_names();
    let paths: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
    let studies: Vec<&str> = embedded().iter().map(|study| study.name).collect();
    let queues = QueueName::ALL.iter().map(|queue| queue.word()).collect();
    // Those of the key `cc`.
    let controls = vec!["cubic", "reno", "newreno", "tahoe", "bbr"];
    let with = |words: Vec<&'static str>| move |arg: Arg| arg.value_parser(PossibleValuesParser::new(words));
    let all: Vec<&str> = transports.iter().copied().chain(["all"]).collect();
    Cli::command()
        .mut_subcommand("compare", |compare| {
            let compare = compare.mut_arg("transports", with(all)).mut_arg("path", with(paths));
            compare.mut_arg("queue", with(queues)).mut_arg("cc", with(controls))
        })
        .mut_subcommand("send", |send| send.mut_arg("transport", with(transports.clone())))
        .mut_subcommand("burst", |burst| burst.mut_arg("transport", with(transports.clone())))
        .mut_subcommand("study", |study| {
            let named = |command: Command| command.mut_arg("name", with(studies.clone()));
            ["run", "judge", "show", "check"]
                .iter()
                .fold(study, |study, name| study.mut_subcommand(name, named))
        })
}
