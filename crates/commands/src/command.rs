//! One module a command; what `compare` and `run` print at the end is here.

pub mod campaign;
pub mod check;
pub mod compare;
pub mod export;
pub mod merge;
pub mod monitor;
pub mod mos;
pub mod plan;
pub mod report;
pub mod run;
pub mod shell;
pub mod study;
pub mod transfer;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use serde_json::Value;
use talkpath_measure::summary::Summary;
use talkpath_measure::warning;

use crate::args::{Common, JsonDetail};
use crate::failure::Failure;
use crate::running::Outcome;
use crate::terminal::{self, Terminal, program, shell_path};
use crate::thresholds;
use talkpath_experiment::json::json;
use talkpath_experiment::part::REPORT;
use talkpath_experiment::run_dir::{RunDir, SCENARIO};

/// `--jobs`, or one for each core.
fn jobs(common: &Common) -> usize {
    common.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// The commands that write a sweep's figures as files, and the figures of its cells as a table.
fn files_of_sweep(dir: &RunDir, summary: &Summary) -> String {
    let mut values: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for (key, value) in summary.cells.iter().flat_map(|cell| &cell.sweep) {
        let known = values.entry(key).or_default();
        if known.len() < 2 && !known.contains(&value) {
            known.push(value);
        }
    }
    // Transports are the colours of a map.
    let axes = values.iter().filter(|(key, values)| !key.ends_with(".transport") && values.len() > 1);
    let maps = if axes.count() > 1 { ", heat maps among them" } else { "" };
    let (program, dir) = (program(), shell_path(dir.path()));
    format!(
        "The report's figures as files{maps}: {program} report --figures DIR {dir}\n\
         The figures of every cell as a table: {program} export --table cells --format csv {dir}\n"
    )
}

/// The line that says to a shell how to make the run in `dir` again; `flags` begin with a space.
fn again(dir: &RunDir, flags: &str) -> String {
    format!("Again: {} run {}{flags}\n", program(), shell_path(&dir.file(SCENARIO)))
}

/// The summary without its repetitions: there may be many.
fn without_runs(summary: &Summary) -> Vec<u8> {
    let mut value = serde_json::to_value(summary).unwrap_or_default();
    if let Value::Object(keys) = &mut value {
        keys.shift_remove("runs");
    }
    json(&value)
}

/// Prints what a run has shown, `table` being its words for a person, writes `--junit`'s file, and decides
/// how the command ends.
fn conclude(
    outcome: Outcome,
    table: &str,
    next_commands: &str,
    junit: Option<&Path>,
    common: &Common,
    strict: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let Outcome { dir, summary, failure } = outcome;
    let judged = summary.thresholds.as_slice();
    let lines = thresholds::lines(judged);
    let printed = if common.json() {
        // The heading of the tables has the warnings. A note helps to read figures, and is printed beside
        // them.
        for warning in summary.warnings.iter().filter(|warning| !warning::is_note(warning)) {
            terminal.warning(warning);
        }
        terminal::print(&match common.json_detail {
            Some(JsonDetail::Runs) => json(&summary),
            _ => without_runs(&summary),
        })
    } else {
        let report = dir.file(REPORT);
        let lines = if lines.is_empty() { lines } else { format!("\n{lines}") };
        // On a full disk there is none.
        let page = if report.exists() { format!("Report: {}\n", report.display()) } else { String::new() };
        terminal.result(&format!("{}\n{lines}\n{page}{next_commands}", table.trim_end()))
    };
    let junit = junit.map(|path| thresholds::write_junit(path, &summary.name, judged));
    let unwritten = junit.and_then(Result::err);
    let unknown = thresholds::unknown(judged);
    let threshold = thresholds::failure(judged, common.json() || common.quiet);
    let invalid = (strict && !summary.valid)
        .then(|| Failure::NotHeld("--strict: the run is not valid; the warnings say why".to_owned()));
    terminal.end_with([failure, unknown, threshold, printed.err(), unwritten, invalid])
}
