//! `talkpath ui` opens a window: a page on loopback from which the program is started and read.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use talkpath_commands::args::{Common, UiArgs};
use talkpath_commands::failure::Failure;
use talkpath_commands::terminal::{Terminal, shell_word};
use talkpath_ui::{Ended, OpenError, Options, Window};

/// The program that opens a file as the user has chosen (xdg-utils).
const OPENER: &str = "xdg-open";

/// Opens the window, and serves it until the user ends it.
pub(crate) fn run(args: &UiArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let program = env::current_exe().map_err(|why| {
        Failure::unavailable(format!("cannot find this program's own file: {why}"), "call it by its path")
    })?;
    let options = Options {
        port: args.port,
        out: common.out.clone(),
        program,
        version: env!("CARGO_PKG_VERSION"),
        quote: shell_word,
    };
    let window = Window::open(&options).map_err(failure)?;
    // A user who asked for no words still needs the address.
    talkpath_commands::terminal::print(format!("{}\n", window.address()).as_bytes())?;
    terminal
        .note("The window is at this address until Ctrl-C. Keep it to yourself: it lets in whoever has it.");
    if !args.no_open && has_display() {
        open(window.entry(), terminal);
    }
    let Ended { left } = window.serve(Box::new(move |line| terminal.note(line))).map_err(|why| {
        Failure::unavailable(format!("cannot serve the window: {why}"), talkpath_arena::NO_THREAD_HELP)
    })?;
    if !left.is_empty() {
        terminal.note(&format!("left running:\n  {}", left.join("\n  ")));
    }
    Ok(())
}

/// Returns whether a browser could show a window of its own.
fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Opens the file that leads to the page. Its address, with the token, is in no command line.
fn open(entry: &Path, terminal: Terminal) {
    let mut opener = Command::new(OPENER);
    opener.arg(entry).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(why) = opener.spawn() {
        terminal.note(&format!("no browser was opened ({OPENER}: {why}): open the address above"));
    }
}

fn failure(why: OpenError) -> Failure {
    match why {
        OpenError::Port { .. } => Failure::unavailable(
            why.to_string(),
            "--port N chooses another port; without it the system finds one",
        ),
        OpenError::Second { .. } => {
            Failure::Usage(format!("{why}\nhelp: use that one, or name another folder by --out DIR"))
        }
        OpenError::Folder(why) => Failure::from(why).with_help("`--out DIR` names another folder for runs"),
        OpenError::System(_) => Failure::unavailable(why.to_string(), talkpath_arena::NO_THREAD_HELP),
    }
}
