//! The run directories in the folder: their list, what a run's summary says, and which files of it the page
//! may show.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use talkpath_experiment::part::{REPORT, SUMMARY};
use talkpath_experiment::run_dir::{PARTS, RunDir, SCENARIO};
use talkpath_experiment::store::whole::read_json;

use crate::files::{GIVEN, RECEIVED, directory_within, read_plain};

/// The most runs in the list, the newest first. We chose 500, through which a person searches rather than
/// reads.
const MAX_LISTED: usize = 500;
/// The most bytes of a summary that is read for the list. Of more the list has the name alone.
const MAX_HEAD: u64 = 64 << 20;
/// The most bytes of a summary whose figures the page shows by itself. Others are read in the report.
const MAX_SUMMARY: u64 = 16 << 20;
/// The most cells whose figures the page shows by itself.
const MAX_CELLS: usize = 64;
/// The most bytes of a page or a text that is shown: a report of 2000 cells has 20 MB.
const MAX_PAGE: u64 = 64 << 20;
/// The most bytes of a text that is shown.
const MAX_TEXT: u64 = 4 << 20;
/// The file of a study's outcome.
const STUDY: &str = "study.json";
/// The page of a simulated run's packets.
const PLAY: &str = "play.html";
const LOG: &str = "log.txt";

/// A run in the list.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    name: String,
    title: String,
    arena: String,
    started: String,
    /// Whether the run is valid. `None` if it has not ended, or is a study.
    valid: Option<bool>,
    /// What was found, a line for each flow and condition, at most three.
    answers: Vec<String>,
    state: State,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It has a summary.
    Ended,
    /// A process works on it.
    Running,
    /// It began, no process works on it, and something is missing.
    Unfinished,
    /// It is a run of a study.
    Study,
}

/// The keys of summary.json that the list shows.
#[derive(Debug, Deserialize)]
struct Head {
    #[serde(default)]
    name: String,
    #[serde(default)]
    arena: String,
    #[serde(default)]
    started: String,
    valid: Option<bool>,
    #[serde(default)]
    comparisons: Vec<Comparison>,
}

#[derive(Debug, Deserialize)]
struct Comparison {
    answer: Answer,
}

#[derive(Debug, Deserialize)]
struct Answer {
    line: String,
}

/// The keys of study.json that the list shows.
#[derive(Debug, Deserialize)]
struct StudyHead {
    #[serde(default)]
    study: String,
    #[serde(default)]
    title: String,
}

/// A run's summary without its repetitions.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Shown {
    name: String,
    arena: String,
    started: String,
    valid: bool,
    warnings: Vec<String>,
    comparisons: Vec<Value>,
    #[serde(default)]
    thresholds: Vec<Value>,
    cells: Vec<Value>,
    /// What came of each file, in the order of the repetitions.
    #[serde(default)]
    files: Vec<FileWords>,
    /// The first repetition of each cell, for the words that a cell has not: transports and log figures.
    #[serde(default)]
    runs: Vec<RunWords>,
}

/// The repetition of a run, with figures that no cell sums up.
#[derive(Debug, Deserialize, Serialize)]
struct RunWords {
    cell: u64,
    #[serde(default)]
    repetition: u64,
    flows: Value,
}

/// What came of a file that a repetition sent.
#[derive(Debug, Deserialize, Serialize)]
struct FileWords {
    name: String,
    bytes: u64,
    /// `None` if the far end went away.
    intact: Option<bool>,
    sha256: String,
}

/// Lists the runs in `out` whose name, title, arena or answer has all words of `search`.
pub(crate) fn list(out: &Path, search: &str) -> Vec<Listed> {
    let Ok(entries) = fs::read_dir(out) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> =
        directories.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.') && !is_of_window(name));
    // A name begins with its time.
    names.sort_unstable_by(|one, other| other.cmp(one));
    let words: BTreeSet<String> = search.split_whitespace().map(str::to_lowercase).collect();
    let runs = names.iter().filter_map(|name| listed(out, name));
    let found = runs.filter(|run| {
        let text =
            format!("{} {} {} {}", run.name, run.title, run.arena, run.answers.join(" ")).to_lowercase();
        words.iter().all(|word| text.contains(word))
    });
    found.take(MAX_LISTED).collect()
}

/// Returns whether a folder is the window's and no run: a scenario file in it may be called as a run's is.
fn is_of_window(name: &str) -> bool {
    [GIVEN, RECEIVED].contains(&name)
}

fn listed(out: &Path, name: &str) -> Option<Listed> {
    let path = out.join(name);
    let is_small = |file: &str| fs::metadata(path.join(file)).is_ok_and(|found| found.len() <= MAX_HEAD);
    if is_small(STUDY) {
        let head: StudyHead = read_json(&path.join(STUDY)).ok()?;
        let title =
            if head.title.is_empty() { head.study } else { format!("{}: {}", head.study, head.title) };
        let started = started_of(name);
        let (arena, answers) = (String::new(), Vec::new());
        let state = State::Study;
        return Some(Listed { name: name.to_owned(), title, arena, started, valid: None, answers, state });
    }
    if !path.join(SCENARIO).is_file() {
        return None;
    }
    let head = if is_small(SUMMARY) { read_json::<Head>(&path.join(SUMMARY)).ok() } else { None };
    let state = state_of(&path);
    let Some(head) = head else {
        return Some(Listed {
            name: name.to_owned(),
            title: String::new(),
            arena: String::new(),
            started: started_of(name),
            valid: None,
            answers: Vec::new(),
            state,
        });
    };
    let answers = head.comparisons.into_iter().take(3).map(|comparison| comparison.answer.line).collect();
    Some(Listed {
        name: name.to_owned(),
        title: head.name,
        arena: head.arena,
        started: head.started,
        valid: head.valid,
        answers,
        state,
    })
}

/// The time in the name of a run directory: `2026-11-21T19-05-07Z-...`.
fn started_of(name: &str) -> String {
    let time = name.split_once("Z-").map_or("", |(time, _)| time);
    match time.split_once('T') {
        Some((day, clock)) => format!("{day}T{}Z", clock.replace('-', ":")),
        None => String::new(),
    }
}

fn state_of(path: &Path) -> State {
    if !path.join(PARTS).is_dir() {
        return if path.join(SUMMARY).is_file() { State::Ended } else { State::Unfinished };
    }
    let is_held = talkpath_experiment::store::lock::Lock::is_held(&path.join(PARTS).join("lock"));
    if is_held.unwrap_or(false) { State::Running } else { State::Unfinished }
}

/// The directory of the run `name`.
///
/// # Errors
/// Returns why it is none of the folder's runs.
pub(crate) fn directory(out: &Path, name: &str) -> Result<PathBuf, String> {
    let path = directory_within(out, name)?;
    let is_run = path.join(SCENARIO).is_file() || path.join(STUDY).is_file();
    if is_run && !is_of_window(name) { Ok(path) } else { Err(format!("{name:?}: is no run directory")) }
}

/// Reads what the page shows of a run's figures.
///
/// # Errors
/// Returns why they cannot be shown.
pub(crate) fn shown(out: &Path, name: &str) -> Result<Shown, String> {
    let path = directory(out, name)?;
    let bytes = read_plain(&path.join(SUMMARY), MAX_SUMMARY).map_err(|why| format!("{SUMMARY}: {why}"))?;
    let mut shown: Shown = serde_json::from_slice(&bytes).map_err(|why| format!("{SUMMARY}: {why}"))?;
    shown.cells.truncate(MAX_CELLS);
    let flows = shown.runs.iter().filter_map(|run| run.flows.as_object()).flat_map(|flows| flows.values());
    let files = flows.filter_map(|flow| serde_json::from_value(flow["file"].clone()).ok());
    shown.files = files.take(MAX_CELLS).collect();
    let mut seen = BTreeSet::new();
    shown.runs.retain(|run| seen.len() < MAX_CELLS && seen.insert(run.cell));
    Ok(shown)
}

/// Reads a page of a run that the page may show in a frame or in a tab.
///
/// # Errors
/// Returns why it cannot be shown.
pub(crate) fn page(out: &Path, name: &str, file: &str) -> Result<Vec<u8>, String> {
    if ![REPORT, PLAY].contains(&file) {
        return Err(format!("{file:?}: is no page of a run"));
    }
    read_plain(&directory(out, name)?.join(file), MAX_PAGE).map_err(|why| format!("{file}: {why}"))
}

/// Which of the pages a run has.
pub(crate) fn pages(path: &Path) -> Vec<&'static str> {
    [REPORT, PLAY].into_iter().filter(|file| path.join(file).is_file()).collect()
}

/// Reads the scenario or the log of a run.
///
/// # Errors
/// Returns why it cannot be shown.
pub(crate) fn text(out: &Path, name: &str, which: &str) -> Result<String, String> {
    let file = match which {
        "scenario" => SCENARIO,
        "log" => LOG,
        _ => return Err(format!("{which:?}: expected scenario or log")),
    };
    let bytes = read_plain(&directory(out, name)?.join(file), MAX_TEXT);
    let bytes = bytes.map_err(|why| format!("{file}: {why}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Deletes a run on which no process works.
///
/// # Errors
/// Returns why it is not deleted.
pub(crate) fn delete(out: &Path, name: &str) -> Result<(), String> {
    let path = directory(out, name)?;
    if state_of(&path) == State::Running {
        return Err(format!("{name}: a process works on it; cancel it first"));
    }
    // The name goes first, so that no list shows half a run. remove_dir_all follows no link.
    let hidden = out.join(format!(".deleted-{name}"));
    fs::rename(&path, &hidden).map_err(|why| format!("{name}: {why}"))?;
    fs::remove_dir_all(&hidden).map_err(|why| format!("{name}: {why}"))
}

/// Returns whether a run that has begun can be continued.
pub(crate) fn can_go_on(path: &Path) -> bool {
    RunDir::is_begun(path) && state_of(path) == State::Unfinished
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(out: &Path, name: &str, summary: &str) {
        fs::create_dir(out.join(name)).unwrap();
        fs::write(out.join(name).join(SCENARIO), "name = \"a\"\n").unwrap();
        fs::write(out.join(name).join(SUMMARY), summary).unwrap();
    }

    const RUN: &str = r#"{ "format": 3, "talkpath": "0", "name": "voice over lte", "arena": "sim",
        "started": "2026-11-21T19:05:07Z", "valid": true, "warnings": [],
        "comparisons": [ { "flow": "call", "answer": { "line": "Best over UDP." } } ],
        "cells": [ { "cell": 0, "flows": {} } ],
        "runs": [ { "cell": 0, "repetition": 0, "flows": { "f": { "file": { "name": "a", "bytes": 1, "intact": true,
            "sha256": "0" } } } }, { "cell": 0, "repetition": 1, "flows": {} } ] }"#;

    #[test]
    fn the_list_has_the_newest_first_and_is_searched_by_all_words() {
        let out = tempfile::tempdir().unwrap();
        run(out.path(), "2026-11-21T19-05-07Z-a", RUN);
        run(out.path(), "2026-11-22T19-05-07Z-b", RUN);
        fs::create_dir(out.path().join("no-run")).unwrap();
        run(out.path(), GIVEN, RUN);
        assert!(delete(out.path(), GIVEN).is_err());
        fs::create_dir(out.path().join(".hidden")).unwrap();
        let names = |search: &str| -> Vec<String> {
            list(out.path(), search).into_iter().map(|run| run.name).collect()
        };
        assert_eq!(names(""), ["2026-11-22T19-05-07Z-b", "2026-11-21T19-05-07Z-a"]);
        assert_eq!(names("LTE 21T"), ["2026-11-21T19-05-07Z-a"]);
        assert!(names("lte tcp").is_empty());
        assert_eq!(list(out.path(), "udp")[0].answers, ["Best over UDP."]);
    }

    #[test]
    fn a_run_shows_its_cells_and_the_first_repetition_of_each() {
        let out = tempfile::tempdir().unwrap();
        run(out.path(), "2026-a", RUN);
        let shown = shown(out.path(), "2026-a").unwrap();
        assert_eq!((shown.cells.len(), shown.runs.len(), shown.files.len()), (1, 1, 1));
        assert_eq!(shown.files[0].intact, Some(true));
        assert_eq!(started_of("2026-11-21T19-05-07Z-a"), "2026-11-21T19:05:07Z");
    }

    #[test]
    fn nothing_outside_of_the_folder_is_read_or_deleted() {
        let (out, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        run(elsewhere.path(), "victim", RUN);
        std::os::unix::fs::symlink(elsewhere.path().join("victim"), out.path().join("link")).unwrap();
        let up = format!("../{}/victim", elsewhere.path().file_name().unwrap().to_string_lossy());
        for name in [up.as_str(), "link", "..", elsewhere.path().join("victim").to_str().unwrap()] {
            assert!(shown(out.path(), name).is_err(), "{name}");
            assert!(text(out.path(), name, "scenario").is_err(), "{name}");
            assert!(page(out.path(), name, REPORT).is_err(), "{name}");
            assert!(delete(out.path(), name).is_err(), "{name}");
        }
        run(out.path(), "mine", RUN);
        std::os::unix::fs::symlink("/etc/passwd", out.path().join("mine").join(REPORT)).unwrap();
        assert!(page(out.path(), "mine", REPORT).is_err());
        assert!(page(out.path(), "mine", "../victim").is_err());
        delete(out.path(), "mine").unwrap();
        assert!(!out.path().join("mine").exists());
        assert!(elsewhere.path().join("victim").join(SUMMARY).exists());
    }
}
