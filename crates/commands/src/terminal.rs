//! What is printed: results on standard output, everything else on standard error.
//!
//! Nothing here panics when the reader of a stream has gone, as `println!` would.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use talkpath_report::Style;
use talkpath_units::printable;

use crate::args::{Common, TableArgs};
use crate::failure::Failure;

/// How talkative to be, and with which colours.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    quiet: bool,
    verbose: bool,
    color_on_error: bool,
}

impl Terminal {
    /// As the flags and the environment say.
    pub fn new(common: &Common) -> Self {
        Self {
            quiet: common.quiet,
            verbose: common.verbose > 0 && !common.quiet,
            color_on_error: io::stderr().is_terminal() && colors_wanted(),
        }
    }

    /// Before the flags are known.
    pub fn plain() -> Self {
        Self { quiet: false, verbose: false, color_on_error: false }
    }

    /// Whether to show moving progress: only to a person who watches.
    pub fn shows_progress(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Whether `--quiet` is given.
    pub const fn is_quiet(self) -> bool {
        self.quiet
    }

    /// A result for a person.
    pub fn result(self, text: &str) -> Result<(), Failure> {
        if self.quiet { Ok(()) } else { print(text.as_bytes()) }
    }

    /// A message about the progress.
    pub fn note(self, text: &str) {
        if !self.quiet {
            self.say("", "", text);
        }
    }

    /// A detail of the progress, printed with `--verbose` only.
    pub fn detail(self, text: &str) {
        if self.verbose {
            self.say("", "", text);
        }
    }

    /// What may bend the figures.
    pub fn warning(self, text: &str) {
        if !self.quiet {
            self.say("33", "warning: ", text);
        }
    }

    /// The gravest of `failures` ends the command; the others are printed here.
    ///
    /// # Errors
    /// That failure, if there is one.
    pub fn end_with(self, failures: impl IntoIterator<Item = Option<Failure>>) -> Result<(), Failure> {
        Failure::gravest(failures, |failure| self.error(&failure.to_string())).map_or(Ok(()), Err)
    }

    /// What ended the command.
    pub fn error(self, text: &str) {
        self.say("31", "error: ", text);
    }

    fn say(self, color: &str, label: &str, text: &str) {
        let label = match self.color_on_error && !label.is_empty() {
            true => format!("\x1b[1;{color}m{label}\x1b[0m"),
            false => label.to_owned(),
        };
        // If standard error is closed, nobody can read the message.
        let _ = writeln!(io::stderr().lock(), "{label}{}", printable_lines(text));
    }
}

/// `text` without anything but its line feeds that steers a terminal: it may quote a file, a name or another
/// host's words.
fn printable_lines(text: &str) -> String {
    text.split('\n').map(|line| printable(line, usize::MAX)).collect::<Vec<_>>().join("\n")
}

/// The program as it was called, for command lines in hints: what the user can type again.
pub fn program() -> String {
    std::env::args_os()
        .next()
        .map_or_else(|| "talkpath".to_owned(), |name| shell_word(&name.to_string_lossy()))
}

/// `text` as one word of a POSIX shell's command line.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// `path` as one word of a POSIX shell's command line.
pub fn shell_path(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

/// Writes `bytes` to standard output, whole.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).map_err(output_failure)
}

/// What a failed write to standard output means.
pub fn output_failure(why: io::Error) -> Failure {
    match why.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::write(Path::new("standard output"), why),
    }
}

/// How tables are drawn on standard output.
pub fn style() -> Style {
    let is_terminal = io::stdout().is_terminal();
    Style { width: width(is_terminal), color: is_terminal && colors_wanted(), explain: false }
}

/// How a run's tables are drawn on standard output.
pub fn table_style(tables: TableArgs) -> Style {
    Style { explain: tables.explain, ..style() }
}

/// The terminal's columns; a file or a pipe gets lines as wide as a wide terminal.
fn width(is_terminal: bool) -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
    match columns {
        Ok(columns) if is_terminal && columns > 0 => columns,
        _ => 120,
    }
}

/// `NO_COLOR` (no-color.org): present and not empty means none.
fn colors_wanted() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !no_color && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_quotes_moves_no_cursor_and_its_lines_stay() {
        let quoted = "unknown variant `\u{1b}[2J\u{9b}1A`\nhelp: a\r\u{202e}b";
        assert_eq!(printable_lines(quoted), "unknown variant `\\u{1b}[2J\\u{9b}1A`\nhelp: a\\r\\u{202e}b");
    }
}
