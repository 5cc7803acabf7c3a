//! Works with the outcomes of earlier runs of studies.
//!
//! - `study diff` compares the verdicts of runs.
//! - `study keep` reduces a run to the figures that pages quote. The *kept run* is a file that is committed.
//! - `study fill` writes the figures of kept runs into pages, and the charts beside them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use talkpath_report::{PageMistake, Picture, fill_page, page_pictures, study_changes};
use talkpath_study::{ArenaName, Outcome, Standing, Verdict, VerdictChange, arena_list};
use talkpath_units::{counted, printable};

use super::OUTCOME;
use crate::args::{Common, StudyDiffArgs, StudyFillArgs, StudyKeepArgs};
use crate::failure::Failure;
use crate::output_file::{refuse_records, write_named_bytes};
use crate::scenario_file;
use crate::terminal::{Terminal, print, program};
use talkpath_experiment::json::json;
use talkpath_experiment::run_dir::PARTS;
use talkpath_experiment::store::whole::{open_file, read_json, unexpected_json};

/// The largest size of a run after it is unpacked, in bytes. Without a limit, a small compressed file could
/// unpack without an end. We chose eighty times the size of the largest committed run.
const MAX_UNPACKED_BYTES: u64 = 100_000_000;
/// The name of a study or a claim in a file is cut after this many characters, because the file may be
/// damaged. We chose 200, which is longer than any name.
const MAX_NAME_CHARS: usize = 200;

/// Prints which verdicts change from the first run to each of the others.
pub(super) fn diff(args: &StudyDiffArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let first = read(&args.first)?;
    let (mut text, mut entries) = (String::new(), Vec::new());
    let mut contradicted: BTreeSet<String> = BTreeSet::new();
    for path in &args.others {
        let later = read(path)?;
        let changes =
            first.changes(&later).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
        text.push_str(&study_changes(&first, &later, &changes));
        for change in changes.iter().filter(|change| change.contradicts) {
            contradicted.insert(printable(&format!("{}/{}", first.study, change.claim), MAX_NAME_CHARS));
        }
        let changes: Vec<_> = changes.iter().map(change_entry).collect();
        entries.push(serde_json::json!({ "run": path.to_string_lossy(), "changes": changes }));
    }
    let printed = if common.json() { print(&json(&entries)) } else { terminal.result(&text) };
    let failure = if contradicted.is_empty() {
        None
    } else {
        let claims = contradicted.into_iter().collect::<Vec<_>>().join(", ");
        Some(Failure::NotHeld(format!("changed: {claims}")))
    };
    terminal.end_with([failure, printed.err()])
}

/// Writes a change in the form of `study diff --json`.
fn change_entry(change: &VerdictChange) -> serde_json::Value {
    let entry = |(verdict, standing): (Verdict, Option<Standing>)| serde_json::json!({ "verdict": verdict, "standing": standing });
    serde_json::json!({
        "claim": change.claim,
        "arena": change.arena,
        "before": entry(change.before),
        "after": entry(change.after),
        "contradicts": change.contradicts,
    })
}

/// Writes the figures of a run that pages quote.
pub(super) fn keep(args: &StudyKeepArgs, terminal: Terminal) -> Result<(), Failure> {
    let mut outcome = read_quotable(&args.run)?;
    let mut others = Vec::new();
    for path in &args.seeds {
        others.push(read_quotable(path)?);
    }
    for path in core::iter::once(&args.run).chain(&args.seeds) {
        if let Some(directory) = run_directory(path) {
            refuse_records("study keep", &args.file, &[directory], None)?;
        }
    }
    outcome.add_seeds(&others).map_err(Failure::Usage)?;
    let outcome = outcome.for_pages();
    let text = json_lines(&outcome)?;
    let bytes = if is_compressed(&args.file) {
        compress(&text).map_err(|error| Failure::write(&args.file, error))?
    } else {
        text
    };
    write_named_bytes(&args.file, &bytes)?;
    let (claims, seeds) = (counted(outcome.claims.len(), "claim"), counted(others.len(), "other seed"));
    terminal.result(&format!("{}: {claims}, {seeds}\n", args.file.display()))
}

/// Reads a run, and checks that pages may quote it.
fn read_quotable(path: &Path) -> Result<Outcome, Failure> {
    let outcome = read(path)?;
    check_quotable(&outcome).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    Ok(outcome)
}

/// Returns the directory of the run that the user names by its directory, or by a file in the directory.
/// Returns `None` if the file is not in the directory of a run.
fn run_directory(path: &Path) -> Option<&Path> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    folder.join(PARTS).is_dir().then_some(folder)
}

/// Checks that pages may quote the run. The error says why they may not.
fn check_quotable(outcome: &Outcome) -> Result<(), String> {
    let quick = if outcome.quick { " --quick" } else { "" };
    let seed = outcome.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
    let (name, arenas) = (&outcome.study, arena_list(&outcome.arenas));
    let resume = format!("`{} study run {name} --arena {arenas}{quick}{seed} --resume`", program());
    // A campaign may have missing measurements: its claims are judged by the others.
    if !outcome.valid && outcome.arena != ArenaName::Campaign {
        let problem = "the run is not valid: cells did not run to their end, or the machine disturbed them";
        return Err(format!("{problem}; {resume} runs what is missing"));
    }
    if outcome.arenas.contains(&ArenaName::Emu) && outcome.day.is_none() {
        let problem = "it has no day, and a run in real time is quoted with its day";
        let condition = "its directory still has its first name";
        return Err(format!("{problem}; if {condition}, {resume} judges it again and writes the day"));
    }
    Ok(())
}

/// Writes the figures of runs into the pages, and writes the pictures that the pages show.
pub(super) fn fill(args: &StudyFillArgs, terminal: Terminal) -> Result<(), Failure> {
    let mut outcomes = Vec::new();
    for path in &args.from {
        outcomes.push(read(path)?);
    }
    refuse_ambiguous_runs(&args.from, &outcomes)?;
    let mut filling = Filling { outcomes: &outcomes, only_checks: args.check, ..Filling::default() };
    for page in &args.pages {
        filling.fill(page)?;
    }
    if !filling.mistakes.is_empty() {
        return Err(Failure::Usage(filling.mistakes.join("\n")));
    }
    if !filling.differences.is_empty() {
        return Err(Failure::NotHeld(filling.differences.join("\n")));
    }
    let pages = counted(args.pages.len(), "page");
    terminal.result(&format!("{pages}, {} pages and pictures written\n", filling.written))
}

/// The pages that are filled, and what was found in them so far.
#[derive(Default)]
struct Filling<'a> {
    outcomes: &'a [Outcome],
    /// Whether the pages are only compared with the runs, and nothing is written (`--check`).
    only_checks: bool,
    /// The mistakes of pages, such as a figure that no run has.
    mistakes: Vec<String>,
    /// The pages and pictures that differ from the runs.
    differences: Vec<String>,
    /// The number of pages and pictures that were written.
    written: u64,
}

impl Filling<'_> {
    /// Fills one page, and draws its pictures.
    fn fill(&mut self, page: &Path) -> Result<(), Failure> {
        let text = scenario_file::read_text(page)?;
        let filled = match fill_page(&text, self.outcomes) {
            Ok(filled) => filled,
            Err(mistakes) => {
                for PageMistake { line, why } in mistakes {
                    self.mistakes.push(format!("{}:{line}: {why}", page.display()));
                }
                return Ok(());
            }
        };
        if filled != text {
            if self.only_checks {
                self.differences.push(first_difference(page, &text, &filled));
            } else {
                write_named_bytes(page, filled.as_bytes())?;
                self.written += 1;
            }
        }
        for picture in page_pictures(&text, self.outcomes) {
            self.write_picture(page, &picture)?;
        }
        Ok(())
    }

    fn write_picture(&mut self, page: &Path, picture: &Picture) -> Result<(), Failure> {
        let file = page.with_file_name(&picture.path);
        let svg = picture.svg.as_bytes();
        if fs::read(&file).is_ok_and(|bytes| bytes == svg) {
            return Ok(());
        }
        if self.only_checks {
            self.differences.push(format!("{}: not the chart of the run", file.display()));
            return Ok(());
        }
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| Failure::folder(folder, error))?;
        write_named_bytes(&file, svg)?;
        self.written += 1;
        Ok(())
    }
}

/// Refuses two runs of the same study in the same arena, because a page could quote either of them. Each path
/// is that of the outcome at the same position.
fn refuse_ambiguous_runs(paths: &[PathBuf], outcomes: &[Outcome]) -> Result<(), Failure> {
    let runs: Vec<(&PathBuf, &Outcome)> = paths.iter().zip(outcomes).collect();
    for (index, (path, run)) in runs.iter().enumerate() {
        for (earlier_path, earlier) in &runs[..index] {
            if run.study != earlier.study {
                continue;
            }
            if let Some(arena) = run.arenas.iter().find(|arena| earlier.arenas.contains(arena)) {
                return Err(Failure::Usage(format!(
                    "--from {} and --from {} are both runs of {} in {arena}; give one for each arena",
                    earlier_path.display(),
                    path.display(),
                    run.study
                )));
            }
        }
    }
    Ok(())
}

/// Says in which line a page first differs from the filled page.
fn first_difference(page: &Path, text: &str, filled: &str) -> String {
    let page = page.display();
    for (index, (line, filled_line)) in text.lines().zip(filled.lines()).enumerate() {
        if line != filled_line {
            return format!("{page}:{}: shows `{line}` where the run has `{filled_line}`", index + 1);
        }
    }
    format!("{page}: the run has another number of lines")
}

/// Reads a run, given by its directory or by its file.
pub(super) fn read(path: &Path) -> Result<Outcome, Failure> {
    if is_compressed(path) && !path.is_dir() {
        return read_compressed(path);
    }
    if !path.is_dir() {
        return Ok(read_json(path)?);
    }
    let outcome = path.join(OUTCOME);
    if !outcome.is_file() {
        return Err(Failure::Usage(format!(
            "{}: no {OUTCOME} in it, so it is not the directory of a study's run that has ended; `{} study run` makes one",
            path.display(),
            program()
        )));
    }
    Ok(read_json(&outcome)?)
}

/// Returns whether the name of the file says that it is compressed by gzip (RFC 1952).
fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

/// Compresses `text` by gzip. The file has no time in it, so the same run gives the same file.
fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text)?;
    encoder.finish()
}

fn read_compressed(path: &Path) -> Result<Outcome, Failure> {
    let file = open_file(path).map_err(|error| Failure::read(path, &error))?;
    let mut text = Vec::new();
    // One more byte than the limit is read, to see whether the text is longer.
    GzDecoder::new(file)
        .take(MAX_UNPACKED_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| Failure::Usage(format!("{}: not a whole gzip file: {error}", path.display())))?;
    if text.len() as u64 > MAX_UNPACKED_BYTES {
        let limit_mb = MAX_UNPACKED_BYTES / 1_000_000;
        return Err(Failure::Usage(format!("{}: larger than {limit_mb} MB when unpacked", path.display())));
    }
    serde_json::from_slice(&text).map_err(|error| unexpected_json(path, &error).into())
}

/// Writes JSON with a line for each claim, cell, figure and table, so that a changed claim is one changed
/// line.
///
/// # Errors
/// Returns a [`Failure`] if `outcome` is not a JSON object.
fn json_lines(outcome: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let Ok(serde_json::Value::Object(entries)) = serde_json::to_value(outcome) else {
        return Err(Failure::Usage("the kept run is not a JSON object".to_owned()));
    };
    let mut texts = Vec::new();
    for (key, value) in &entries {
        texts.push(match value {
            serde_json::Value::Array(items) if items.iter().any(serde_json::Value::is_object) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                format!("\"{key}\": [\n{}\n]", items.join(",\n"))
            }
            value => format!("\"{key}\": {value}"),
        });
    }
    Ok(format!("{{\n{}\n}}\n", texts.join(",\n")).into_bytes())
}
