//! Reads a scenario and the files that it names. A file that cannot be a scenario gets one line of text; a
//! scenario with mistakes gets a text for each mistake.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use talkpath_scenario::{
    Diagnostic, Diagnostics, Files, KernelProfile, LARGEST_FILE, Located, NoFiles, Options, Plan, Source,
    load_with_files,
};
use talkpath_system::this_kernel::this_kernel;
use talkpath_units::Bytes;

use crate::failure::Failure;
use crate::shares::percent_of;
use talkpath_experiment::run_dir::SCENARIO;

/// The largest scenario file, in bytes.
const MAX_BYTES: u64 = LARGEST_FILE as u64;

/// The largest trace, in bytes. We chose 256 MiB because a trace of hours at hundreds of megabits per second
/// is smaller.
const MAX_TRACE_BYTES: u64 = 256 << 20;

/// A source line is cut after this many characters. We chose 120 because a terminal is rarely wider.
const MAX_LINE_CHARS: usize = 120;

/// Reads the scenario file `path` and makes its plan.
pub fn load_file(path: &Path, options: &Options) -> Result<Plan, Failure> {
    let (source, plan) = diagnose_file(path, options)?;
    plan.map_err(|diagnostics| failure(&source, &diagnostics))
}

/// Reads the scenario file `path`, and returns its text together with its plan or its mistakes.
///
/// # Errors
/// Returns a [`Failure`] only if the file cannot be read.
pub(crate) fn diagnose_file(
    path: &Path,
    options: &Options,
) -> Result<(Source, Result<Plan, Diagnostics>), Failure> {
    let source = Source::new(path.display().to_string(), read(path)?);
    let plan = load_with_figures(&source, options, &FolderFiles::beside(path));
    Ok((source, plan))
}

/// Makes the plan of `source`, which cannot name files.
pub(crate) fn load_source(source: &Source, options: &Options) -> Result<Plan, Failure> {
    load(source, options, &KernelOnly)
}

/// Makes the plan of `source`. The files that it names are in the folder of `path`.
pub(crate) fn load_source_beside(path: &Path, source: &Source, options: &Options) -> Result<Plan, Failure> {
    load(source, options, &FolderFiles::beside(path))
}

/// Makes the plan of `text`, which is the resolved scenario of `plan` with a change.
pub(crate) fn load_changed(plan: &Plan, text: String) -> Result<Plan, Failure> {
    load(&Source::new(SCENARIO, text), &Options::default(), &PlanFiles(plan))
}

fn load(source: &Source, options: &Options, files: &dyn Files) -> Result<Plan, Failure> {
    load_with_figures(source, options, files).map_err(|diagnostics| failure(source, &diagnostics))
}

/// Calls [`load_with_files`] with the table of figures, by which thresholds are checked.
fn load_with_figures(source: &Source, options: &Options, files: &dyn Files) -> Result<Plan, Diagnostics> {
    let options = Options { percent_of: Some(percent_of), ..options.clone() };
    load_with_files(source, &options, files)
}

/// The files that a scenario names, by their paths from a folder.
struct FolderFiles {
    folder: PathBuf,
}

impl FolderFiles {
    /// Makes the files of the scenario file `path`, by their paths from its folder.
    fn beside(path: &Path) -> Self {
        Self { folder: path.parent().unwrap_or(Path::new("")).to_path_buf() }
    }
}

impl Files for FolderFiles {
    fn text(&self, name: &str) -> Result<String, String> {
        let file = File::open(self.folder.join(name)).map_err(|why| phrase(&why))?;
        let mut bytes = Vec::new();
        file.take(MAX_TRACE_BYTES + 1).read_to_end(&mut bytes).map_err(|why| phrase(&why))?;
        if bytes.len() as u64 > MAX_TRACE_BYTES {
            return Err(format!("larger than {} MiB: no trace", MAX_TRACE_BYTES >> 20));
        }
        String::from_utf8(bytes).map_err(|_| "not UTF-8 text: no trace".to_owned())
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        let path = self.folder.join(name).canonicalize().map_err(|why| phrase(&why))?;
        // The file is opened, because a file without read permission can be found but not sent.
        let meta = File::open(&path).and_then(|file| file.metadata()).map_err(|why| phrase(&why))?;
        if !meta.is_file() {
            return Err("no regular file".to_owned());
        }
        let path = path.into_os_string().into_string().map_err(|_| "its path is not UTF-8".to_owned())?;
        Ok(Located { path, size: Bytes::new(meta.len()) })
    }

    fn this_kernel(&self) -> Result<KernelProfile, String> {
        KernelOnly.this_kernel()
    }
}

/// The files of a resolved scenario: the traces, which the plan holds, and the files to be sent, which are
/// named by their absolute paths.
struct PlanFiles<'a>(&'a Plan);

impl Files for PlanFiles<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let trace = self.0.traces.iter().find(|trace| trace.name == name);
        trace.map(|trace| trace.text.clone()).ok_or_else(|| "no such trace".to_owned())
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        FolderFiles::beside(Path::new("")).locate(name)
    }
}

/// No files, but the kernel of this machine.
struct KernelOnly;

impl Files for KernelOnly {
    fn text(&self, name: &str) -> Result<String, String> {
        NoFiles.text(name)
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        NoFiles.locate(name)
    }

    fn this_kernel(&self) -> Result<KernelProfile, String> {
        this_kernel().map_err(|why| format!("this machine's kernel cannot be read: {why}"))
    }
}

/// Says why a file cannot be read. The text does not name the file.
fn phrase(why: &std::io::Error) -> String {
    match why.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        ErrorKind::IsADirectory => "a directory, not a file".to_owned(),
        _ => why.to_string(),
    }
}

/// Reads the text of the scenario file `path`.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let file = File::open(path).map_err(|why| match why.kind() {
        ErrorKind::NotFound => Failure::Usage(format!("{name}: no such file")),
        ErrorKind::PermissionDenied => Failure::Usage(format!("{name}: no permission to read it")),
        _ => Failure::read(path, &why),
    })?;
    let mut bytes = Vec::new();
    // A pipe has no size that could be checked, so no more is read than the largest scenario has.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|why| match why.kind() {
        ErrorKind::IsADirectory => Failure::Usage(format!("{name}: a directory, not a scenario file")),
        _ => Failure::read(path, &why),
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::Usage(format!(
            "{name}: larger than {} MiB: not a scenario file",
            MAX_BYTES >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        let line_start = valid.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&valid[line_start..]).chars().count() + 1;
        Failure::Usage(format!("{name}:{line}:{column}: not UTF-8 text"))
    })
}

/// Makes the failure for a scenario with mistakes.
pub(crate) fn failure(source: &Source, diagnostics: &Diagnostics) -> Failure {
    let mistakes = diagnostics.iter().map(|diagnostic| show(source, diagnostic)).collect();
    let in_options = diagnostics.iter().all(|diagnostic| diagnostic.option.is_some());
    let file = if in_options { String::new() } else { source.name.clone() };
    Failure::Scenario { file, mistakes }
}

/// Writes a mistake: `FILE:LINE:COLUMN: KEY: MESSAGE`, the source line with the mistake underlined, and the
/// help.
pub(crate) fn show(source: &Source, diagnostic: &Diagnostic) -> String {
    let key = if diagnostic.key.is_empty() { String::new() } else { format!("{}: ", diagnostic.key) };
    let mut text = match &diagnostic.option {
        Some(option) => format!("{option}: {key}{}", diagnostic.message),
        None => {
            let Diagnostic { line, column, message, .. } = diagnostic;
            format!("{}:{line}:{column}: {key}{message}", source.name)
        }
    };
    if diagnostic.option.is_none()
        && let Some(line) = source.text.lines().nth(diagnostic.line.saturating_sub(1))
    {
        text.push_str(&underlined(line, diagnostic));
    }
    if let Some(help) = &diagnostic.help {
        text.push_str("\n  = help: ");
        text.push_str(help);
    }
    text
}

/// Writes the source line with the mistake underlined.
fn underlined(line: &str, diagnostic: &Diagnostic) -> String {
    let column = diagnostic.column.saturating_sub(1);
    // Of a very long line only the surroundings of the mistake are shown.
    let skipped = column.saturating_sub(MAX_LINE_CHARS / 2);
    let shown: String = line.chars().skip(skipped).take(MAX_LINE_CHARS).map(printable).collect();
    let before = column - skipped;
    let shown_after = shown.chars().count().saturating_sub(before);
    let marks = diagnostic.span.len().max(1).min(shown_after.max(1));
    let gutter = " ".repeat(diagnostic.line.to_string().len());
    format!(
        "\n{gutter} |\n{} | {shown}\n{gutter} | {}{}",
        diagnostic.line,
        " ".repeat(before),
        "^".repeat(marks)
    )
}

/// Replaces control characters, because a hostile file must not control the terminal.
fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        other if other.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::with_repetitions;

    use super::*;

    fn diagnostic(line: usize, column: usize, length: usize) -> Diagnostic {
        Diagnostic {
            span: 0..length,
            line,
            column,
            option: None,
            key: "drain".to_owned(),
            message: "expected a time".to_owned(),
            help: Some("write \"5 s\"".to_owned()),
        }
    }

    #[test]
    fn a_mistake_is_shown_under_its_line() {
        let source = Source::new("call.toml", "name = \"x\"\ndrain = 5\n");
        let expected = "call.toml:2:9: drain: expected a time\n  |\n2 | drain = 5\n  |         ^\n  = help: write \"5 s\"";
        assert_eq!(show(&source, &diagnostic(2, 9, 1)), expected);
    }

    #[test]
    fn a_changed_plan_is_read_with_the_traces_that_it_has() {
        struct Trace;
        impl Files for Trace {
            fn text(&self, _: &str) -> Result<String, String> {
                Ok("1\n2\n".to_owned())
            }

            fn locate(&self, name: &str) -> Result<Located, String> {
                NoFiles.locate(name)
            }
        }
        let text = "duration = \"1 s\"\npath.up = { rate = { trace = \"a/up.trace\" } }\npath.down = {}\n\
            [flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";
        let plan = load_with_files(&Source::new("x.toml", text), &Options::default(), &Trace).unwrap();
        let more = load_changed(&plan, with_repetitions(&plan.resolved, 40)).unwrap();
        assert_eq!((more.repeat, &more.traces), (40, &plan.traces));
        assert_eq!(more.cells[0].scenario.links, plan.cells[0].scenario.links);
    }

    #[test]
    fn a_long_line_and_control_characters_are_tamed() {
        let source = Source::new("f", format!("{}\x1b[2Jy", "x".repeat(5_000)));
        let shown = show(&source, &diagnostic(1, 5_001, 9_999));
        assert!(shown.len() < 600 && !shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn a_place_past_the_end_is_shown_all_the_same() {
        let source = Source::new("f", "");
        assert!(show(&source, &diagnostic(1, 1, 0)).starts_with("f:1:1: "));
        assert!(show(&source, &diagnostic(9, 40, 3)).starts_with("f:9:40: "));
    }
}
