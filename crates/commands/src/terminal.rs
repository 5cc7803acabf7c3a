//! Printing: results go to standard output, and everything else goes to standard error.
//!
//! If the reader of standard output closes it, `println!` would panic. The functions of this module return
//! [`Failure::OutputClosed`] instead.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use talkpath_report::Style;
use talkpath_units::printable;

use crate::args::{Common, ProgressForm, TableArgs};
use crate::failure::Failure;

/// How much a command prints on standard error, and whether in colours.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    quiet: bool,
    verbose: bool,
    color_on_error: bool,
    /// Whether standard error has one JSON object a line (`--progress json`).
    json: bool,
    /// Whether `--tui` is given and standard error is a terminal.
    dashboard: bool,
}

impl Terminal {
    /// Reads the flags `--quiet` and `--verbose`, and whether standard error can show colours.
    pub fn new(common: &Common) -> Self {
        Self {
            quiet: common.quiet,
            verbose: common.verbose > 0 && !common.quiet,
            color_on_error: io::stderr().is_terminal() && colors_wanted(),
            json: common.progress == ProgressForm::Json,
            dashboard: common.tui && io::stderr().is_terminal(),
        }
    }

    /// Makes a terminal without colours that prints no details, for messages before the flags are known.
    pub fn plain() -> Self {
        Self { quiet: false, verbose: false, color_on_error: false, json: false, dashboard: false }
    }

    /// Returns whether to show a progress bar. It is shown only if standard error is a terminal, where a
    /// person watches.
    pub fn shows_progress(self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }

    /// Returns whether a run is drawn over the whole terminal while it runs.
    pub(crate) const fn shows_dashboard(self) -> bool {
        self.dashboard && !self.quiet && !self.json
    }

    /// Returns whether details are printed.
    pub(crate) const fn is_verbose(self) -> bool {
        self.verbose
    }

    /// Returns whether standard error has one JSON object a line.
    pub const fn is_json(self) -> bool {
        self.json && !self.quiet
    }

    /// Prints an event for a program, if `--progress json` is given and `--quiet` is not. The key `event` has
    /// the name of the event.
    pub(crate) fn event(self, event: &serde_json::Value) {
        if self.is_json() {
            // If standard error is closed, nobody can read the event.
            let _ = writeln!(io::stderr().lock(), "{event}");
        }
    }

    /// Returns whether `--quiet` is given.
    pub const fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Prints a result for a person on standard output.
    pub fn result(self, text: &str) -> Result<(), Failure> {
        if self.quiet { Ok(()) } else { print(text.as_bytes()) }
    }

    /// Prints a message about the progress.
    pub fn note(self, text: &str) {
        if !self.quiet {
            self.say(Kind::Note, text);
        }
    }

    /// Prints a detail of the progress if `--verbose` was given.
    pub fn detail(self, text: &str) {
        if self.verbose {
            self.say(Kind::Note, text);
        }
    }

    /// Prints a warning, such as one about something that may falsify the figures.
    pub fn warning(self, text: &str) {
        if !self.quiet {
            self.say(Kind::Warning, text);
        }
    }

    /// Returns the gravest of `failures`, with which the command ends, and prints the others.
    ///
    /// # Errors
    /// Returns the gravest failure if there is one.
    pub fn end_with(self, failures: impl IntoIterator<Item = Option<Failure>>) -> Result<(), Failure> {
        Failure::gravest(failures, |failure| self.error(&failure.to_string())).map_or(Ok(()), Err)
    }

    /// Prints an error.
    pub fn error(self, text: &str) {
        self.say(Kind::Error, text);
    }

    fn say(self, kind: Kind, text: &str) {
        if self.json {
            let event = serde_json::json!({ "event": kind.event(), "text": text });
            let _ = writeln!(io::stderr().lock(), "{event}");
            return;
        }
        let (color, label) = kind.color_and_label();
        let label = if self.color_on_error && !label.is_empty() {
            format!("\x1b[1;{color}m{label}\x1b[0m")
        } else {
            label.to_owned()
        };
        // If standard error is closed, nobody can read the message.
        let _ = writeln!(io::stderr().lock(), "{label}{}", printable_lines(text));
    }
}

/// The kind of a message on standard error.
#[derive(Clone, Copy)]
enum Kind {
    Note,
    Warning,
    Error,
}

impl Kind {
    /// The name of the event in JSON (docs/reference/interface.md).
    const fn event(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The number of an ANSI colour, and what stands before the message.
    const fn color_and_label(self) -> (&'static str, &'static str) {
        match self {
            Self::Note => ("", ""),
            Self::Warning => ("33", "warning: "),
            Self::Error => ("31", "error: "),
        }
    }
}

/// Escapes every character that controls a terminal, except for line feeds. The text may quote a file, a name
/// or a message of another host, and none of them may move the cursor.
fn printable_lines(text: &str) -> String {
    text.split('\n').map(|line| printable(line, usize::MAX)).collect::<Vec<_>>().join("\n")
}

/// Returns the name by which the user called the program, as a word of a shell. Proposed commands begin with
/// it.
pub fn program() -> String {
    std::env::args_os()
        .next()
        .map_or_else(|| "talkpath".to_owned(), |name| shell_word(&name.to_string_lossy()))
}

/// Quotes `text` so that a POSIX shell reads it as one word.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // Within quotes a shell has no escape for a quote. So the word ends, an escaped quote follows, and the
    // word goes on.
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Quotes `path` so that a POSIX shell reads it as one word.
pub fn shell_path(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

/// Writes all of `bytes` to standard output.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).map_err(output_failure)
}

/// Makes the failure for a failed write to standard output.
pub fn output_failure(why: io::Error) -> Failure {
    match why.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::write(Path::new("standard output"), why),
    }
}

/// Returns the style of tables on standard output.
pub fn style() -> Style {
    let is_terminal = io::stdout().is_terminal();
    Style { width: width(is_terminal), color: is_terminal && colors_wanted(), explain: false }
}

/// Returns the style of a run's tables on standard output.
pub fn table_style(tables: TableArgs) -> Style {
    Style { explain: tables.explain, ..style() }
}

/// Returns the number of columns of the terminal. A file or a pipe gets the lines of a wide terminal.
fn width(is_terminal: bool) -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
    match columns {
        Ok(columns) if is_terminal && columns > 0 => columns,
        _ => 120,
    }
}

/// Returns whether the user allows colours. A variable `NO_COLOR` that is not empty forbids them
/// (no-color.org).
fn colors_wanted() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !no_color && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_moves_no_cursor_and_keeps_its_lines() {
        let quoted = "unknown variant `\u{1b}[2J\u{9b}1A`\nhelp: a\r\u{202e}b";
        assert_eq!(printable_lines(quoted), "unknown variant `\\u{1b}[2J\\u{9b}1A`\nhelp: a\\r\\u{202e}b");
    }
}
