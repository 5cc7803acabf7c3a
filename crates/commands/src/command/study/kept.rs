//! Works with kept runs of studies: compares them, reduces them to the figures that pages quote, and writes
//! these figures into pages.

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

/// How large a compressed run may be when it is unpacked, in bytes (chosen: eighty times the largest
/// committed run). Without a limit, a small file could unpack without an end.
const MAX_TEXT: u64 = 100_000_000;
/// How many characters are shown of the name of a study or a claim in a file (chosen).
const MAX_NAME_CHARS: usize = 200;

/// Prints which verdicts change from the first run to each of the others.
pub(super) fn diff(args: &StudyDiffArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let first = read(&args.first)?;
    let (mut text, mut all) = (String::new(), Vec::new());
    let mut changed = Vec::new();
    for path in &args.others {
        let later = read(path)?;
        let changes =
            first.changes(&later).map_err(|why| Failure::Usage(format!("{}: {why}", path.display())))?;
        text.push_str(&study_changes(&first, &later, &changes));
        for change in changes.iter().filter(|change| change.contradicts) {
            changed.push(printable(&format!("{}/{}", first.study, change.claim), MAX_NAME_CHARS));
        }
        let changes: Vec<_> = changes.iter().map(change_entry).collect();
        all.push(serde_json::json!({ "run": path.to_string_lossy(), "changes": changes }));
    }
    let printed = if common.json() { print(&json(&all)) } else { terminal.result(&text) };
    changed.sort();
    changed.dedup();
    let changed = (!changed.is_empty()).then(|| Failure::NotHeld(format!("changed: {}", changed.join(", "))));
    terminal.end_with([changed, printed.err()])
}

/// Writes a change in the form of `study diff --json`.
fn change_entry(change: &VerdictChange) -> serde_json::Value {
    let found = |(verdict, standing): (Verdict, Option<Standing>)| serde_json::json!({ "verdict": verdict, "standing": standing });
    serde_json::json!({
        "claim": change.claim,
        "arena": change.arena,
        "before": found(change.before),
        "after": found(change.after),
        "contradicts": change.contradicts,
    })
}

/// Writes the figures of a run that pages quote.
pub(super) fn keep(args: &StudyKeepArgs, terminal: Terminal) -> Result<(), Failure> {
    let mut outcome = read(&args.run)?;
    let others = args.seeds.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    for (path, run) in core::iter::once((&args.run, &outcome)).chain(args.seeds.iter().zip(&others)) {
        check_quotable(run).map_err(|why| Failure::Usage(format!("{}: {why}", path.display())))?;
    }
    for run in core::iter::once(&args.run).chain(&args.seeds) {
        // The user names a run by its directory, or by a file in the directory.
        let folder = if run.is_dir() { Some(run.as_path()) } else { run.parent() };
        let folder = folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        let folder = folder.filter(|folder| folder.join(PARTS).is_dir());
        refuse_records("study keep", &args.file, folder.as_slice(), None)?;
    }
    outcome.add_seeds(&others).map_err(Failure::Usage)?;
    let outcome = outcome.for_pages();
    let text = by_lines(&outcome)?;
    let bytes = if is_compressed(&args.file) {
        compress(&text).map_err(|why| Failure::write(&args.file, why))?
    } else {
        text
    };
    write_named_bytes(&args.file, &bytes)?;
    let (claims, seeds) = (counted(outcome.claims.len(), "claim"), counted(others.len(), "other seed"));
    terminal.result(&format!("{}: {claims}, {seeds}\n", args.file.display()))
}

/// Checks that pages may quote the run. The error says why they may not.
fn check_quotable(outcome: &Outcome) -> Result<(), String> {
    let quick = if outcome.quick { " --quick" } else { "" };
    let seed = outcome.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
    let (name, arenas) = (&outcome.study, arena_list(&outcome.arenas));
    let resume = format!("`{} study run {name} --arena {arenas}{quick}{seed} --resume`", program());
    // A campaign may have missing measurements: its claims are judged by the others.
    if !outcome.valid && outcome.arena != ArenaName::Campaign {
        let what = "the run is not valid: cells did not run to their end, or the machine disturbed them";
        return Err(format!("{what}; {resume} runs what is missing"));
    }
    if outcome.arenas.contains(&ArenaName::Emu) && outcome.day.is_none() {
        let what = "no day in it, and a run in real time is quoted with its day";
        let renamed = "its directory is named as when it was made";
        return Err(format!("{what}; if {renamed}, {resume} judges it again and writes the day"));
    }
    Ok(())
}

/// Writes the figures of runs into the pages, and writes the pictures that the pages show.
pub(super) fn fill(args: &StudyFillArgs, terminal: Terminal) -> Result<(), Failure> {
    let outcomes = args.from.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<(&Path, &Outcome)> = args.from.iter().map(PathBuf::as_path).zip(&outcomes).collect();
    refuse_ambiguous_runs(&runs)?;
    let (mut mistakes, mut different, mut written) = (Vec::new(), Vec::new(), 0);
    for page in &args.pages {
        let text = scenario_file::read(page)?;
        match fill_page(&text, &outcomes) {
            Err(found) => {
                let shown = |PageMistake { line, why }| format!("{}:{line}: {why}", page.display());
                mistakes.extend(found.into_iter().map(shown));
                continue;
            }
            Ok(filled) if filled == text => {}
            Ok(filled) if args.check => different.push(first_difference(page, &text, &filled)),
            Ok(filled) => {
                write_named_bytes(page, filled.as_bytes())?;
                written += 1;
            }
        }
        for Picture { path, svg } in page_pictures(&text, &outcomes) {
            let file = page.with_file_name(path);
            if fs::read(&file).is_ok_and(|found| found == svg.as_bytes()) {
                continue;
            }
            if args.check {
                different.push(format!("{}: not the chart of the run", file.display()));
                continue;
            }
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).map_err(|why| Failure::folder(folder, why))?;
            write_named_bytes(&file, svg.as_bytes())?;
            written += 1;
        }
    }
    if !mistakes.is_empty() {
        return Err(Failure::Usage(mistakes.join("\n")));
    }
    if !different.is_empty() {
        return Err(Failure::NotHeld(different.join("\n")));
    }
    let pages = counted(args.pages.len(), "page");
    terminal.result(&format!("{pages}, {written} pages and pictures written\n"))
}

/// Refuses two runs of the same study in the same arena, because a page could quote either of them.
fn refuse_ambiguous_runs(runs: &[(&Path, &Outcome)]) -> Result<(), Failure> {
    for (index, (path, run)) in runs.iter().enumerate() {
        for (earlier, other) in &runs[..index] {
            let shared = run.arenas.iter().find(|arena| other.arenas.contains(arena));
            if let Some(arena) = shared.filter(|_| run.study == other.study) {
                return Err(Failure::Usage(format!(
                    "--from {} and --from {} are both runs of {} in {arena}; give one for each arena",
                    earlier.display(),
                    path.display(),
                    run.study
                )));
            }
        }
    }
    Ok(())
}

fn first_difference(page: &Path, shown: &str, wanted: &str) -> String {
    let lines = shown.lines().zip(wanted.lines()).enumerate();
    let line = lines.into_iter().find(|(_, (shown, wanted))| shown != wanted);
    let (at, (shown, wanted)) = line.unwrap_or_default();
    format!("{}:{}: shows `{shown}` where the run has `{wanted}`", page.display(), at + 1)
}

/// Reads a run, given by its directory or by its file.
fn read(path: &Path) -> Result<Outcome, Failure> {
    if !path.is_dir() {
        return if is_compressed(path) { read_compressed(path) } else { Ok(read_json(path)?) };
    }
    let outcome = path.join(OUTCOME);
    if !outcome.is_file() {
        return Err(Failure::Usage(format!(
            "{}: no {OUTCOME} in it: not the directory of a study's run that has ended; `{} study run` makes one",
            path.display(),
            program()
        )));
    }
    Ok(read_json(&outcome)?)
}

/// Whether the name of the file says that it is compressed by gzip (RFC 1952).
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
    let file = open_file(path).map_err(|why| Failure::read(path, &why))?;
    let mut text = Vec::new();
    let read = GzDecoder::new(file).take(MAX_TEXT + 1).read_to_end(&mut text);
    read.map_err(|why| Failure::Usage(format!("{}: not a whole file of gzip: {why}", path.display())))?;
    if text.len() as u64 > MAX_TEXT {
        let most = MAX_TEXT / 1_000_000;
        return Err(Failure::Usage(format!("{}: more than {most} MB of text are in it", path.display())));
    }
    serde_json::from_slice(&text).map_err(|why| unexpected_json(path, &why).into())
}

/// Writes JSON with a line for each claim, cell, figure and table, so that a changed claim is one changed
/// line.
///
/// # Errors
/// Returns a [`Failure`] if `outcome` is not a JSON object.
fn by_lines(outcome: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let Ok(serde_json::Value::Object(entries)) = serde_json::to_value(outcome) else {
        return Err(Failure::Usage("what is kept of the run is no JSON object".to_owned()));
    };
    let entries = entries.iter().map(|(key, value)| match value {
        serde_json::Value::Array(items) if items.iter().any(serde_json::Value::is_object) => {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            format!("\"{key}\": [\n{}\n]", items.join(",\n"))
        }
        other => format!("\"{key}\": {other}"),
    });
    Ok(format!("{{\n{}\n}}\n", entries.collect::<Vec<_>>().join(",\n")).into_bytes())
}
