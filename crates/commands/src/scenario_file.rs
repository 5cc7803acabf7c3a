//! Reading a scenario and the files that it names: one clear line for every way in which a file can be no
//! scenario, and every mistake in one that is.

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
use talkpath_experiment::run_dir::SCENARIO;

/// Reads and understands `path`.
pub fn load_file(path: &Path, options: &Options) -> Result<Plan, Failure> {
    let (source, understood) = diagnose_file(path, options)?;
    understood.map_err(|diagnostics| failure(&source, &diagnostics))
}

/// The text of `path`, and what it says or its mistakes.
///
/// # Errors
/// Only if the file cannot be read.
pub(crate) fn diagnose_file(
    path: &Path,
    options: &Options,
) -> Result<(Source, Result<Plan, Diagnostics>), Failure> {
    let source = Source::new(path.display().to_string(), read(path)?);
    let understood = load_with_files(&source, options, &beside(path));
    Ok((source, understood))
}

/// Understands `source`, which names no files.
pub(crate) fn load_source(source: &Source, options: &Options) -> Result<Plan, Failure> {
    understand(source, options, &ThisMachine)
}

/// Understands `source`, which names files beside `path`.
pub(crate) fn load_source_beside(path: &Path, source: &Source, options: &Options) -> Result<Plan, Failure> {
    understand(source, options, &beside(path))
}

/// Understands `text`, which is `plan`'s resolved form with something changed.
pub(crate) fn load_changed(plan: &Plan, text: String) -> Result<Plan, Failure> {
    understand(&Source::new(SCENARIO, text), &Options::default(), &Resolved(plan))
}

/// The files beside the scenario file `path`.
fn beside(path: &Path) -> Beside {
    Beside { folder: path.parent().unwrap_or(Path::new("")).to_path_buf() }
}

fn understand(source: &Source, options: &Options, files: &dyn Files) -> Result<Plan, Failure> {
    load_with_files(source, options, files).map_err(|diagnostics| failure(source, &diagnostics))
}

/// The files that a scenario names, found from the scenario's own folder.
struct Beside {
    folder: PathBuf,
}

impl Files for Beside {
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
        // The file is opened, and not only its metadata read: a file without read permission cannot be sent.
        let meta = File::open(&path).and_then(|file| file.metadata()).map_err(|why| phrase(&why))?;
        if !meta.is_file() {
            return Err("no regular file".to_owned());
        }
        let path = path.into_os_string().into_string().map_err(|_| "its path is not UTF-8".to_owned())?;
        Ok(Located { path, size: Bytes::new(meta.len()) })
    }

    fn this_kernel(&self) -> Result<KernelProfile, String> {
        ThisMachine.this_kernel()
    }
}

/// The files that a plan's resolved form names: its traces, and files to be sent by their whole paths.
struct Resolved<'a>(&'a Plan);

impl Files for Resolved<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let trace = self.0.traces.iter().find(|trace| trace.name == name);
        trace.map(|trace| trace.text.clone()).ok_or_else(|| "no such trace".to_owned())
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        beside(Path::new("")).locate(name)
    }
}

/// No files, but the kernel that runs.
struct ThisMachine;

impl Files for ThisMachine {
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

/// Why a file cannot be had, without its name.
fn phrase(why: &std::io::Error) -> String {
    match why.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        ErrorKind::IsADirectory => "a directory, not a file".to_owned(),
        _ => why.to_string(),
    }
}

/// The text of the scenario file `path`.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let file = File::open(path).map_err(|why| match why.kind() {
        ErrorKind::NotFound => Failure::Usage(format!("{name}: no such file")),
        ErrorKind::PermissionDenied => Failure::Usage(format!("{name}: no permission to read it")),
        _ => Failure::read(path, &why),
    })?;
    let mut bytes = Vec::new();
    // A pipe has no size to check: read no further than the largest scenario.
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

/// The failure by which a command ends on such a scenario.
pub(crate) fn failure(source: &Source, diagnostics: &Diagnostics) -> Failure {
    let mistakes = diagnostics.iter().map(|diagnostic| show(source, diagnostic)).collect();
    let in_options = diagnostics.iter().all(|diagnostic| diagnostic.option.is_some());
    let file = if in_options { String::new() } else { source.name.clone() };
    Failure::Scenario { file, mistakes }
}

/// `FILE:LINE:COLUMN: KEY: MESSAGE`, the line with the place underlined, and the help.
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

fn underlined(line: &str, diagnostic: &Diagnostic) -> String {
    let before = diagnostic.column.saturating_sub(1);
    let wanted = diagnostic.span.len().max(1);
    // Far along a very long line only the surroundings of the place are shown.
    let skipped = before.saturating_sub(MAX_SHOWN / 2);
    let shown: String = line.chars().skip(skipped).take(MAX_SHOWN).map(printable).collect();
    let before = before - skipped;
    let marks = wanted.min(shown.chars().count().saturating_sub(before).max(1));
    let gutter = " ".repeat(diagnostic.line.to_string().len());
    format!(
        "\n{gutter} |\n{} | {shown}\n{gutter} | {}{}",
        diagnostic.line,
        " ".repeat(before),
        "^".repeat(marks)
    )
}

/// Control characters of a hostile file must not reach the terminal.
fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        other if other.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

const MAX_BYTES: u64 = LARGEST_FILE as u64;

/// The same for a trace: hours at hundreds of megabits a second take less.
const MAX_TRACE_BYTES: u64 = 256 << 20;

/// Characters of a source line that are shown.
const MAX_SHOWN: usize = 120;

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
