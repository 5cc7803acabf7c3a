//! `talkpath check` reports every mistake of a scenario or of a path, and when the path changes. It can also
//! print the schema for an editor, or the table of all keys.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use talkpath_scenario::{
    Diagnostic, NamedLink, Options, Plan, Source, Timeline, TimelineChange, has_path_alone, key_tables,
    schema,
};

use crate::args::{CheckArgs, Common};
use crate::failure::Failure;
use crate::path_changes::describe_link;
use crate::path_file::{guess_kind, is_toml, rtp};
use crate::scenario_file::{diagnose_file, diagnose_path, path_setting, read_text, scenario_failure};
use crate::terminal::{Terminal, print};
use talkpath_experiment::json::json as to_bytes;
use talkpath_units::{Duration, counted};

/// Validates the scenario, or prints the schema or the keys.
pub fn run(args: &CheckArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    if args.keys {
        return print(key_tables().as_bytes());
    }
    let path_alone = match (&args.scenario, &args.path) {
        (None, Some(path)) => Some(path.clone()),
        (Some(file), None) => describes_path(file).then(|| file.display().to_string()),
        _ => None,
    };
    let Some(path) = args.scenario.clone().or_else(|| path_alone.as_ref().map(PathBuf::from)) else {
        let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
        return print(format!("{text}\n").as_bytes());
    };
    let settings = args.change.settings();
    let (source, plan) = match &path_alone {
        Some(name) => diagnose_path(name, &Options { set: settings.collect(), ..Options::default() }),
        None => {
            let other_path = args.path.as_ref().map(|other| path_setting(other, Some(&path)));
            let set = other_path.into_iter().chain(settings).collect();
            diagnose_file(&path, &Options { set, ..Options::default() })?
        }
    };
    match plan {
        Ok(plan) if common.json() => print(&to_bytes(&valid_as_json(&source, &plan, path_alone.is_some()))),
        Ok(plan) => print_valid(&path, &plan, path_alone.is_some(), terminal),
        Err(diagnostics) => {
            let mut printed = Ok(());
            if common.json() {
                printed = print(&to_bytes(&mistakes_as_json(&source, &diagnostics.list)));
            }
            terminal.end_with([Some(scenario_failure(&source, &diagnostics)), printed.err()])
        }
    }
}

/// Whether a file describes a path and is not a scenario. A file that cannot be read does not.
fn describes_path(file: &Path) -> bool {
    let is_capture = rtp::is_capture(file);
    let Ok(text) = read_text(file) else { return is_capture };
    guess_kind(&text).is_some() || (is_toml(&text) && has_path_alone(&text))
}

/// Prints what a valid scenario would run, or the links of a path, and the warnings.
fn print_valid(path: &Path, plan: &Plan, is_path: bool, terminal: Terminal) -> Result<(), Failure> {
    let file = path.display();
    for warning in &plan.warnings {
        // A path file has its name in the warning.
        let has_place = warning.included.is_some() || warning.option.is_some();
        let of_file = if has_place || is_path { String::new() } else { format!("{file}:") };
        terminal.warning(&format!("{of_file}{warning}"));
    }
    for note in &plan.understood.path {
        terminal.note(note);
    }
    for (key, message) in plan.understood.not_in_sim.iter().chain(&plan.understood.renamed) {
        terminal.warning(&format!("{file}: {key}: {message}"));
    }
    let cells = plan.cells.len();
    let repetitions = plan.repeat.saturating_mul(cells as u64);
    let is_live_only = plan.cells.iter().any(|cell| !cell.scenario.has_path);
    let live = if is_live_only { "; without a `path` it runs between live hosts alone" } else { "" };
    let mut text = match is_path {
        true => format!("{file}: valid: a path\n{}", links_in_words(plan)),
        false => format!(
            "{file}: valid: \"{}\", {}, {} in all{live}\n",
            plan.name,
            counted(cells, "cell"),
            counted(repetitions, "repetition")
        ),
    };
    if let Some(timeline) = &plan.understood.timeline {
        let of_first = if cells > 1 { " (in the first cell)" } else { "" };
        text += &format!("The path changes{of_first}:\n");
        for line in timeline.lines() {
            text += &format!("  {line}\n");
        }
    }
    for line in plan.understood.lines() {
        text += &format!("{line}\n");
    }
    terminal.result(&text)
}

/// The links of a path, a line each.
fn links_in_words(plan: &Plan) -> String {
    let Some(cell) = plan.cells.first() else { return String::new() };
    let link = |link: &NamedLink| format!("  {}: {}\n", link.name, describe_link(&link.config));
    cell.scenario.links.iter().map(link).collect()
}

/// The timeline of a path as JSON.
fn timeline_as_json(timeline: &Timeline) -> Value {
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    let change = |change: &TimelineChange| {
        json!({
            "change": change.number,
            "name": change.name,
            "links": change.links,
            "first_s": seconds(change.first),
            "every_s": seconds(change.every),
            "times": change.times,
            "when": change.when,
            "what": change.what,
        })
    };
    let extremes = |(link, text): &(String, String)| json!({ "link": link, "values": text });
    json!({
        "changes": timeline.changes.iter().map(change).collect::<Vec<_>>(),
        "extremes": timeline.extremes.iter().map(extremes).collect::<Vec<_>>(),
    })
}

/// Returns the object that `--json` prints for a valid scenario (docs/reference/interface.md). A path has no
/// cells.
fn valid_as_json(source: &Source, plan: &Plan, is_path: bool) -> Value {
    let mut warnings = findings(source, &plan.warnings);
    for (key, message) in plan.understood.not_in_sim.iter().chain(&plan.understood.renamed) {
        // The line of the key is not known here.
        let nowhere = Value::Null;
        warnings.push(json!({
            "file": source.name, "option": nowhere, "line": nowhere, "column": nowhere, "text": nowhere,
            "key": key, "message": message, "help": nowhere,
        }));
    }
    let cells = plan.cells.len();
    json!({
        "file": source.name,
        "valid": true,
        "name": plan.name,
        "cells": (!is_path).then_some(cells),
        "repetitions": (!is_path).then(|| plan.repeat.saturating_mul(cells as u64)),
        "mistakes": [],
        "warnings": warnings,
        "understood": plan.understood.path.iter().chain(plan.understood.lines()).collect::<Vec<_>>(),
        "timeline": plan.understood.timeline.as_ref().map(timeline_as_json),
    })
}

/// Returns the object that `--json` prints for a scenario with mistakes.
fn mistakes_as_json(source: &Source, mistakes: &[Diagnostic]) -> Value {
    json!({
        "file": source.name,
        "valid": false,
        "name": null,
        "cells": null,
        "repetitions": null,
        "mistakes": findings(source, mistakes),
        "warnings": [],
        "understood": [],
        "timeline": null,
    })
}

/// Returns the mistakes or warnings as objects. A mistake in an option of the command line has no line, no
/// column and no text.
fn findings(source: &Source, diagnostics: &[Diagnostic]) -> Vec<Value> {
    let mut findings = Vec::new();
    for Diagnostic { line, column, option, included, key, message, help, .. } in diagnostics {
        let is_in_file = option.is_none();
        let source = included.as_deref().unwrap_or(source);
        let text = source.text.lines().nth(line.saturating_sub(1));
        findings.push(json!({
            "file": source.name,
            "option": option,
            "line": is_in_file.then_some(line),
            "column": is_in_file.then_some(column),
            "text": text.filter(|_| is_in_file),
            "key": key,
            "message": message,
            "help": help,
        }));
    }
    findings
}
