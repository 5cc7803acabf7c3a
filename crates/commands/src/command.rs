//! Each command has a module. The text that several commands print at their end is made here.

mod allowed;
pub mod campaign;
pub mod check;
pub mod compare;
pub mod export;
pub mod listen;
pub mod merge;
pub mod monitor;
pub mod mos;
pub mod plan;
pub mod program;
pub mod rate;
pub mod report;
pub mod run;
pub mod shell;
pub mod study;
pub mod trace;
pub mod transfer;
mod until_decided;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::thread;

use serde_json::Value;
use talkpath_measure::summary::Summary;
use talkpath_measure::warning;
use talkpath_units::counted;

use crate::arenas::Arenas;
use crate::args::{Common, DemandArgs, JsonDetail};
use crate::failure::Failure;
use crate::running::Outcome;
use crate::terminal::{self, Terminal, program, shell_path};
use crate::thresholds;
use talkpath_experiment::json::json;
use talkpath_experiment::part::{PROGRAM, REPORT};
use talkpath_experiment::run_dir::{RunDir, SCENARIO};

/// What every command that runs an experiment needs.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The flags that every command has.
    pub common: &'a Common,
    /// The arenas of the program.
    pub arenas: &'a dyn Arenas,
    /// Where messages are printed.
    pub terminal: Terminal,
}

/// What a command prints about a finished run, and by what it judges the run.
struct Conclusion<'a> {
    /// The tables of the run, for a person.
    table: &'a str,
    /// The commands that the user may type next, each on a line.
    next_commands: &'a str,
    /// What the user demands of the run. `None` if the command has no such flags.
    demand: Option<&'a DemandArgs>,
}

/// Prints the result of a run, writes the file of `--junit`, and returns the failure with which the command
/// ends.
fn conclude(outcome: Outcome, conclusion: &Conclusion<'_>, context: Context<'_>) -> Result<(), Failure> {
    let Context { common, terminal, .. } = context;
    let Outcome { dir, summary, failure } = outcome;
    let printed = if common.json() {
        print_as_json(&summary, common, terminal)
    } else {
        print_as_text(&dir, &summary, conclusion, terminal)
    };
    end_run(&summary, conclusion.demand, [failure, printed.err()], common, terminal)
}

/// Writes the file of `--junit`, and returns the failure with which a command ends after it has printed a
/// run. `failures` are the failures of the run and of printing.
fn end_run(
    summary: &Summary,
    demand: Option<&DemandArgs>,
    failures: [Option<Failure>; 2],
    common: &Common,
    terminal: Terminal,
) -> Result<(), Failure> {
    let judged = summary.thresholds.as_slice();
    let [failure, unprinted] = failures;
    let junit = demand.and_then(|demand| demand.junit.as_deref());
    let unwritten = junit.and_then(|path| thresholds::write_junit(path, &summary.name, judged).err());
    // The text of the result holds a line for each threshold. If that text was not printed, the error holds
    // the lines.
    let threshold = thresholds::failure(judged, common.json() || common.quiet);
    let is_strict = demand.is_some_and(|demand| demand.strict);
    let invalid = (is_strict && !summary.valid)
        .then(|| Failure::NotHeld("--strict: the run is not valid; the warnings say why".to_owned()));
    let failed_program = failed_program(summary);
    terminal.end_with([
        failure,
        thresholds::unknown(judged),
        threshold,
        failed_program,
        unprinted,
        unwritten,
        invalid,
    ])
}

/// The failure for repetitions in which the program of the user failed.
fn failed_program(summary: &Summary) -> Option<Failure> {
    let outcomes = || summary.runs.iter().filter_map(|run| run.program.as_ref());
    let failed = outcomes().filter(|outcome| outcome.failure.is_some()).count();
    (failed > 0).then(|| {
        let all = counted(outcomes().count(), "repetition");
        Failure::NotHeld(format!("the program failed in {failed} of {all}; {PROGRAM} has what it printed"))
    })
}

/// Prints the summary as JSON on standard output, and its warnings on standard error.
fn print_as_json(summary: &Summary, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    // A note only helps to read the tables, so it is left out together with them.
    for warning in summary.warnings.iter().filter(|warning| !warning::is_note(warning)) {
        terminal.warning(warning);
    }
    let text = match common.json_detail {
        Some(JsonDetail::WithRuns) => json(summary),
        _ => json_without_runs(summary),
    };
    terminal::print(&text)
}

/// Prints the tables, the thresholds, the place of the report and the next commands.
fn print_as_text(
    dir: &RunDir,
    summary: &Summary,
    conclusion: &Conclusion<'_>,
    terminal: Terminal,
) -> Result<(), Failure> {
    let mut text = format!("{}\n", conclusion.table.trim_end());
    let threshold_lines = thresholds::lines(&summary.thresholds);
    if !threshold_lines.is_empty() {
        text += &format!("\n{threshold_lines}");
    }
    text.push('\n');
    let report = dir.file(REPORT);
    // The report is missing if the disk was full.
    if report.exists() {
        text += &format!("Report: {}\n", report.display());
    }
    text += conclusion.next_commands;
    terminal.result(&text)
}

/// Returns the summary as JSON without the figures of each repetition, of which there may be many.
fn json_without_runs(summary: &Summary) -> Vec<u8> {
    let mut value = serde_json::to_value(summary).unwrap_or_default();
    if let Value::Object(keys) = &mut value {
        keys.shift_remove("runs");
    }
    json(&value)
}

/// Writes the line that tells the user how to make the run in `dir` again. `flags` begin with a space.
fn again(dir: &RunDir, flags: &str) -> String {
    format!("Again: {} run {}{flags}\n", program(), shell_path(&dir.file(SCENARIO)))
}

/// Writes the commands that put the figures of a sweep into files.
fn files_of_sweep(dir: &RunDir, summary: &Summary) -> String {
    let maps = if has_heat_maps(summary) { ", heat maps among them" } else { "" };
    let (program, dir) = (program(), shell_path(dir.path()));
    format!(
        "The report's figures as files{maps}: {program} report --figures DIR {dir}\n\
         The figures of every cell as a table: {program} export --table cells --format csv {dir}\n"
    )
}

/// Returns whether the report of a sweep has heat maps. A heat map needs two keys with several values each.
/// Transports are not such a key, because a heat map shows them as colours.
fn has_heat_maps(summary: &Summary) -> bool {
    let mut values_of_key: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for (key, value) in summary.cells.iter().flat_map(|cell| &cell.sweep) {
        let values = values_of_key.entry(key).or_default();
        // Two different values are enough to know.
        if values.len() < 2 && !values.contains(&value) {
            values.push(value);
        }
    }
    let axes = values_of_key.iter().filter(|(key, values)| !key.ends_with(".transport") && values.len() > 1);
    axes.count() > 1
}

/// Returns the value of `--jobs`. The default is one job for each core.
fn jobs(common: &Common) -> usize {
    common.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}
