//! `talkpath check` reports every mistake of a scenario. It can also print the schema for an editor, or the
//! table of all keys.

use std::path::Path;

use serde_json::{Value, json};
use talkpath_scenario::{Diagnostic, Options, Plan, Source, key_tables, schema};

use crate::args::{CheckArgs, Common};
use crate::failure::Failure;
use crate::scenario_file::{diagnose_file, scenario_failure};
use crate::terminal::{Terminal, print};
use talkpath_experiment::json::json as to_bytes;
use talkpath_units::counted;

/// Validates the scenario, or prints the schema or the keys.
pub fn run(args: &CheckArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    if args.keys {
        return print(key_tables().as_bytes());
    }
    let Some(path) = &args.scenario else {
        let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
        return print(format!("{text}\n").as_bytes());
    };
    let options = Options { set: args.change.settings().collect(), ..Options::default() };
    let (source, plan) = diagnose_file(path, &options)?;
    match plan {
        Ok(plan) if common.json() => print(&to_bytes(&valid_as_json(&source, &plan))),
        Ok(plan) => print_valid(path, &plan, terminal),
        Err(diagnostics) => {
            let mut printed = Ok(());
            if common.json() {
                printed = print(&to_bytes(&mistakes_as_json(&source, &diagnostics.list)));
            }
            terminal.end_with([Some(scenario_failure(&source, &diagnostics)), printed.err()])
        }
    }
}

/// Prints what a valid scenario would run, and its warnings.
fn print_valid(path: &Path, plan: &Plan, terminal: Terminal) -> Result<(), Failure> {
    let file = path.display();
    for warning in &plan.warnings {
        terminal.warning(&format!("{file}:{warning}"));
    }
    for (key, message) in plan.understood.not_in_sim.iter().chain(&plan.understood.renamed) {
        terminal.warning(&format!("{file}: {key}: {message}"));
    }
    let cells = plan.cells.len();
    let repetitions = plan.repeat.saturating_mul(cells as u64);
    let is_live_only = plan.cells.iter().any(|cell| !cell.scenario.has_path);
    let live = if is_live_only { "; without a `path` it runs between live hosts alone" } else { "" };
    let mut text = format!(
        "{file}: valid: \"{}\", {}, {} in all{live}\n",
        plan.name,
        counted(cells, "cell"),
        counted(repetitions, "repetition")
    );
    for line in plan.understood.lines() {
        text += &format!("{line}\n");
    }
    terminal.result(&text)
}

/// Returns the object that `--json` prints for a valid scenario (docs/reference/interface.md).
fn valid_as_json(source: &Source, plan: &Plan) -> Value {
    let mut warnings = findings(source, &plan.warnings);
    for (key, message) in plan.understood.not_in_sim.iter().chain(&plan.understood.renamed) {
        // The line of the key is not known here.
        let nowhere = Value::Null;
        warnings.push(json!({
            "option": nowhere, "line": nowhere, "column": nowhere, "text": nowhere,
            "key": key, "message": message, "help": nowhere,
        }));
    }
    let cells = plan.cells.len();
    json!({
        "file": source.name,
        "valid": true,
        "name": plan.name,
        "cells": cells,
        "repetitions": plan.repeat.saturating_mul(cells as u64),
        "mistakes": [],
        "warnings": warnings,
        "understood": plan.understood.lines().collect::<Vec<_>>(),
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
    })
}

/// Returns the mistakes or warnings as objects. A mistake in an option of the command line has no line, no
/// column and no text.
fn findings(source: &Source, diagnostics: &[Diagnostic]) -> Vec<Value> {
    let mut findings = Vec::new();
    for Diagnostic { line, column, option, key, message, help, .. } in diagnostics {
        let is_in_file = option.is_none();
        let text = source.text.lines().nth(line.saturating_sub(1));
        findings.push(json!({
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
