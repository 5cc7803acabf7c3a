//! Reads a scenario file and the files that it names, and makes a plan of them.
//!
//! - A scenario can name two kinds of files: *traces*, whose text becomes a part of the plan, and *files to
//!   be sent*, of which the plan has only the path and the size.
//! - The plan keeps the *resolved scenario*: the text with all defaults filled in and with absolute paths of
//!   the files to be sent.
//! - A *diagnostic* is one mistake in a scenario, with its place in the text.
//!
//! If the file cannot be a scenario, the error is one line. If the scenario has mistakes, each diagnostic
//! becomes a text with the source line.
//!
//! Begin to read with [`load_file`].

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use talkpath_scenario::{
    Diagnostic, Diagnostics, Files, KernelProfile, LARGEST_FILE, Located, NoFiles, Options, PathText, Plan,
    Setting, Source, load_with_files, preset,
};
use talkpath_system::this_kernel::this_kernel;
use talkpath_units::Bytes;

use crate::args::quoted;
use crate::failure::Failure;
use crate::path_file::read_path;
use crate::shares::percent_of;
use crate::terminal::Terminal;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::run_dir::{PARTS, PLAN, SCENARIO};

/// The largest scenario file, in bytes.
const MAX_SCENARIO_BYTES: u64 = LARGEST_FILE as u64;

/// The largest trace, in bytes. We chose 256 MiB because a trace of hours at hundreds of megabits per second
/// is smaller.
const MAX_TRACE_BYTES: u64 = 256 << 20;

/// A diagnostic shows at most this many characters of its source line. We chose 120 because a terminal is
/// rarely wider.
const MAX_LINE_CHARS: usize = 120;

/// Reads the scenario file `path` and makes its plan.
pub fn load_file(path: &Path, options: &Options) -> Result<Plan, Failure> {
    let (source, plan) = diagnose_file(path, options)?;
    plan.map_err(|diagnostics| scenario_failure(&source, &diagnostics))
}

/// Reads the scenario file `path`, and returns its text together with its plan or its diagnostics.
///
/// # Errors
/// Returns a [`Failure`] only if the file cannot be read.
pub(crate) fn diagnose_file(
    path: &Path,
    options: &Options,
) -> Result<(Source, Result<Plan, Diagnostics>), Failure> {
    let source = Source::new(path.display().to_string(), read_text(path)?);
    let options = Options { is_recorded: is_in_run_directory(path), ..options.clone() };
    let plan = load_and_check_thresholds(&source, &options, &FolderFiles::beside(path));
    Ok((source, plan))
}

/// Returns whether `path` is the resolved scenario of a run directory, finished or not.
fn is_in_run_directory(path: &Path) -> bool {
    let has = |name: &str| path.with_file_name(name).is_file();
    path.file_name() == Some(SCENARIO.as_ref()) && (has(SUMMARY) || has(&format!("{PARTS}/{PLAN}")))
}

/// Reads the path of `name`, which is a preset or a file that describes a path.
///
/// # Errors
/// As [`diagnose_file`] does.
pub(crate) fn diagnose_path(name: &str, options: &Options) -> (Source, Result<Plan, Diagnostics>) {
    let source = Source::new(name, PATH_ALONE);
    let mut set = vec![path_setting(name, None)];
    set.extend(options.set.iter().cloned());
    let options = Options { set, is_path_alone: true, ..options.clone() };
    let plan = load_and_check_thresholds(&source, &options, &FolderFiles { folder: PathBuf::new() });
    (source, plan)
}

/// The scenario of a path that is read alone. It is the default.
const PATH_ALONE: &str = "drain = \"5 s\"";

/// Returns the setting of `--path PATH`. A file is relative to the working directory. If the scenario is in
/// another folder, the setting has the whole name of the file.
pub(crate) fn path_setting(path: &str, scenario: Option<&Path>) -> Setting {
    let is_elsewhere = scenario.and_then(Path::parent).is_some_and(|folder| !folder.as_os_str().is_empty());
    let whole = || std::path::absolute(path).ok()?.into_os_string().into_string().ok();
    // A name without a point or a slash is not taken for that of a file.
    let is_here = || !path.contains(['.', '/']) && Path::new(path).is_file();
    let named = match preset(path) {
        Some(_) => path.to_owned(),
        None if is_elsewhere => whole().unwrap_or_else(|| path.to_owned()),
        None if is_here() => format!("./{path}"),
        None => path.to_owned(),
    };
    Setting::by(&format!("--path {path}"), "path", quoted(&named))
}

/// Prints what is assumed of the path that a file describes.
pub(crate) fn note_path(plan: &Plan, terminal: Terminal) {
    for note in &plan.understood.path {
        terminal.note(note);
    }
}

/// Makes the plan of a scenario that is not in a file. It cannot name files, because there is no folder to
/// look in.
pub(crate) fn load_source(source: &Source, options: &Options) -> Result<Plan, Failure> {
    load(source, options, &NoFolder)
}

/// Makes the plan of `source`. The files that it names are in the folder of `path`.
pub(crate) fn load_source_beside(path: &Path, source: &Source, options: &Options) -> Result<Plan, Failure> {
    load(source, options, &FolderFiles::beside(path))
}

/// Makes the plan of `text`, which is the resolved scenario of `plan` with a change. The traces are taken
/// from `plan`, so their files are not read again.
///
/// The warnings, the notes on the path and the assumed queues are those of `plan`: the text states every
/// size, and does not have the names that the user wrote.
pub(crate) fn load_changed(plan: &Plan, text: String) -> Result<Plan, Failure> {
    let mut changed = load(&Source::new(SCENARIO, text), &Options::default(), &PlanFiles { plan })?;
    let Plan { warnings, understood, .. } = plan;
    changed.warnings.clone_from(warnings);
    changed.understood.path.clone_from(&understood.path);
    changed.understood.assumes_queues = understood.assumes_queues;
    changed.understood.assumed_queues.clone_from(&understood.assumed_queues);
    Ok(changed)
}

/// Makes the plan of `source`, whose files `files` finds.
pub(crate) fn load(source: &Source, options: &Options, files: &dyn Files) -> Result<Plan, Failure> {
    load_and_check_thresholds(source, options, files)
        .map_err(|diagnostics| scenario_failure(source, &diagnostics))
}

/// Makes the plan of `source`. The loader checks the thresholds of the scenario, so it needs to know which
/// figure is a percentage of which other figure.
fn load_and_check_thresholds(
    source: &Source,
    options: &Options,
    files: &dyn Files,
) -> Result<Plan, Diagnostics> {
    let options = Options { percent_of: Some(percent_of), ..options.clone() };
    load_with_files(source, &options, files)
}

/// Finds the files that a scenario names by paths relative to a folder.
pub(crate) struct FolderFiles {
    folder: PathBuf,
}

impl FolderFiles {
    /// Finds files relative to the folder of the scenario file `path`.
    pub(crate) fn beside(path: &Path) -> Self {
        Self { folder: path.parent().unwrap_or(Path::new("")).to_path_buf() }
    }
}

impl Files for FolderFiles {
    fn text(&self, name: &str) -> Result<String, String> {
        let file = File::open(self.folder.join(name)).map_err(|error| describe_io_error(&error))?;
        let bytes = read_at_most(file, MAX_TRACE_BYTES).map_err(|error| describe_io_error(&error))?;
        let Some(bytes) = bytes else {
            return Err(format!("larger than {} MiB, which no trace is", MAX_TRACE_BYTES >> 20));
        };
        String::from_utf8(bytes).map_err(|_| "not UTF-8 text, so not a trace".to_owned())
    }

    fn path(&self, name: &str) -> Result<PathText, String> {
        read_path(&self.folder.join(name), name)
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        locate_file(&self.folder.join(name))
    }

    fn this_kernel(&self) -> Result<KernelProfile, String> {
        read_kernel_profile()
    }
}

/// Finds the files that the resolved scenario of a plan names. The texts of the traces are in the plan. The
/// files to be sent have absolute paths, so no folder is needed.
struct PlanFiles<'a> {
    plan: &'a Plan,
}

impl Files for PlanFiles<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        match self.plan.traces.iter().find(|trace| trace.name == name) {
            Some(trace) => Ok(trace.text.clone()),
            None => Err("no such trace".to_owned()),
        }
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        locate_file(Path::new(name))
    }
}

/// Refuses all files, because the scenario is not in a folder. Such a scenario can still ask for the settings
/// of this machine's kernel.
struct NoFolder;

impl Files for NoFolder {
    fn text(&self, name: &str) -> Result<String, String> {
        NoFiles.text(name)
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        NoFiles.locate(name)
    }

    fn this_kernel(&self) -> Result<KernelProfile, String> {
        read_kernel_profile()
    }
}

/// Returns the absolute path and the size of a file to be sent.
fn locate_file(path: &Path) -> Result<Located, String> {
    let absolute_path = path.canonicalize().map_err(|error| describe_io_error(&error))?;
    // A file without read permission can be found, but not sent. Opening the file shows this early.
    let metadata = File::open(&absolute_path)
        .and_then(|file| file.metadata())
        .map_err(|error| describe_io_error(&error))?;
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    let path =
        absolute_path.into_os_string().into_string().map_err(|_| "its path is not UTF-8".to_owned())?;
    Ok(Located { path, size: Bytes::new(metadata.len()) })
}

fn read_kernel_profile() -> Result<KernelProfile, String> {
    this_kernel().map_err(|error| format!("this machine's kernel cannot be read: {error}"))
}

/// Says why a file cannot be read, without the name of the file: the caller has the name.
fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        ErrorKind::IsADirectory => "a directory, not a file".to_owned(),
        _ => error.to_string(),
    }
}

/// Reads the text of the scenario file `path`.
///
/// # Errors
/// Returns [`Failure::Usage`] if the user named a wrong file, and another [`Failure`] if the system cannot
/// read it.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let read_error = |error: io::Error| match error.kind() {
        ErrorKind::IsADirectory => Failure::Usage(format!("{name}: a directory, not a scenario file")),
        ErrorKind::NotFound | ErrorKind::PermissionDenied => {
            Failure::Usage(format!("{name}: {}", describe_io_error(&error)))
        }
        _ => Failure::read(path, &error),
    };
    let file = File::open(path).map_err(read_error)?;
    let Some(bytes) = read_at_most(file, MAX_SCENARIO_BYTES).map_err(read_error)? else {
        let largest_mib = MAX_SCENARIO_BYTES >> 20;
        return Err(Failure::Usage(format!("{name}: larger than {largest_mib} MiB: not a scenario file")));
    };
    String::from_utf8(bytes).map_err(|error| {
        let (line, column) = place_of_invalid_byte(&error);
        Failure::Usage(format!("{name}:{line}:{column}: not UTF-8 text"))
    })
}

/// Reads the whole file, or returns `None` if it has more than `max_bytes`. The size of a pipe is not known
/// before it is read, so at most one byte above the limit is read.
fn read_at_most(file: File, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
}

/// Returns the line and the column of the first byte that is not UTF-8, both from 1.
fn place_of_invalid_byte(error: &FromUtf8Error) -> (usize, usize) {
    let text_before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = text_before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start = text_before.iter().rposition(|byte| *byte == b'\n').map_or(0, |line_feed| line_feed + 1);
    let column = String::from_utf8_lossy(&text_before[line_start..]).chars().count() + 1;
    (line, column)
}

/// Turns the diagnostics of a scenario into the error that the command prints. The error does not name the
/// file if all mistakes are in options of the command line.
pub(crate) fn scenario_failure(source: &Source, diagnostics: &Diagnostics) -> Failure {
    let mistakes = diagnostics.iter().map(|diagnostic| format_diagnostic(source, diagnostic)).collect();
    let are_all_in_options = diagnostics.iter().all(|diagnostic| diagnostic.option.is_some());
    let file = if are_all_in_options { String::new() } else { source.name.clone() };
    Failure::Scenario { file, mistakes }
}

/// Writes a diagnostic: `FILE:LINE:COLUMN: KEY: MESSAGE`, the source line with the mistake underlined, and
/// the help. A mistake in an option of the command line is written as `OPTION: KEY: MESSAGE`, without a
/// source line.
pub(crate) fn format_diagnostic(source: &Source, diagnostic: &Diagnostic) -> String {
    let key = if diagnostic.key.is_empty() { String::new() } else { format!("{}: ", diagnostic.key) };
    let of_file = diagnostic.included.as_deref().unwrap_or(source);
    let mut text = match &diagnostic.option {
        Some(option) => format!("{option}: {key}{}", diagnostic.message),
        None => {
            let Diagnostic { line, column, message, .. } = diagnostic;
            format!("{}:{line}:{column}: {key}{message}", of_file.name)
        }
    };
    if diagnostic.option.is_none()
        && let Some(line) = of_file.text.lines().nth(diagnostic.line.saturating_sub(1))
    {
        text.push_str(&underline_mistake(line, diagnostic));
    }
    if let Some(help) = &diagnostic.help {
        text.push_str("\n  = help: ");
        text.push_str(help);
    }
    text
}

/// Writes the source line with the mistake underlined. If the line is longer than [`MAX_LINE_CHARS`], only
/// the characters around the mistake are shown.
fn underline_mistake(line: &str, diagnostic: &Diagnostic) -> String {
    let mistake_start = diagnostic.column.saturating_sub(1);
    let hidden_before = mistake_start.saturating_sub(MAX_LINE_CHARS / 2);
    let excerpt: String = line.chars().skip(hidden_before).take(MAX_LINE_CHARS).map(printable).collect();
    let shown_before = mistake_start - hidden_before;
    let shown_from_mistake = excerpt.chars().count().saturating_sub(shown_before);
    // The marks do not go past the excerpt. A mistake at the end of the line, where something is missing,
    // gets one mark behind the last character.
    let mark_count = diagnostic.span.len().max(1).min(shown_from_mistake.max(1));
    let line_number = diagnostic.line;
    let gutter = " ".repeat(line_number.to_string().len());
    let indent = " ".repeat(shown_before);
    let marks = "^".repeat(mark_count);
    format!("\n{gutter} |\n{line_number} | {excerpt}\n{gutter} | {indent}{marks}")
}

/// Replaces a control character, because a hostile file could control the terminal with it. A tab becomes one
/// blank, so that the marks stay below the mistake.
fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
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
            included: None,
            key: "drain".to_owned(),
            message: "expected a time".to_owned(),
            help: Some("write \"5 s\"".to_owned()),
        }
    }

    #[test]
    fn a_mistake_is_shown_under_its_line() {
        let source = Source::new("call.toml", "name = \"x\"\ndrain = 5\n");
        let expected = "call.toml:2:9: drain: expected a time\n  |\n2 | drain = 5\n  |         ^\n  = help: write \"5 s\"";
        assert_eq!(format_diagnostic(&source, &diagnostic(2, 9, 1)), expected);
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
        let shown = format_diagnostic(&source, &diagnostic(1, 5_001, 9_999));
        assert!(shown.len() < 600 && !shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn a_place_past_the_end_is_shown_all_the_same() {
        let source = Source::new("f", "");
        assert!(format_diagnostic(&source, &diagnostic(1, 1, 0)).starts_with("f:1:1: "));
        assert!(format_diagnostic(&source, &diagnostic(9, 40, 3)).starts_with("f:9:40: "));
    }
}
