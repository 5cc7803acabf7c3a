//! `talkpath check` reports every mistake of a scenario. It can also print the schema for an editor, or the
//! table of all keys.

use std::path::Path;

use serde::Serialize;
use talkpath_scenario::{Diagnostic, Options, Plan, Source, key_tables, schema};

use crate::args::{CheckArgs, Common};
use crate::failure::Failure;
use crate::scenario_file::{diagnose_file, failure};
use crate::terminal::{Terminal, print};
use talkpath_experiment::json::json;
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
        Ok(plan) if common.json() => print(&json(&CheckResult::valid(&source, &plan))),
        Ok(plan) => print_valid(path, &plan, terminal),
        Err(diagnostics) => {
            let mut printed = Ok(());
            if common.json() {
                printed = print(&json(&CheckResult::with_mistakes(&source, &diagnostics.list)));
            }
            terminal.end_with([Some(failure(&source, &diagnostics)), printed.err()])
        }
    }
}

/// Prints what a valid scenario would run, and its warnings.
fn print_valid(path: &Path, plan: &Plan, terminal: Terminal) -> Result<(), Failure> {
    let file = path.display();
    for warning in &plan.warnings {
        terminal.warning(&format!("{file}:{warning}"));
    }
    for (key, message) in &plan.understood.not_in_sim {
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

/// The object that `--json` prints (docs/reference/interface.md).
#[derive(Serialize)]
struct CheckResult<'a> {
    file: &'a str,
    valid: bool,
    /// The name of the scenario, or `null` if the scenario has mistakes.
    name: Option<&'a str>,
    /// The number of cells, or `null` if the scenario has mistakes.
    cells: Option<usize>,
    /// The number of repetitions of all cells together, or `null` if the scenario has mistakes.
    repetitions: Option<u64>,
    mistakes: Vec<Finding<'a>>,
    warnings: Vec<Finding<'a>>,
    /// Lines for a person that say how traces and large losses were understood.
    understood: Vec<&'a str>,
}

/// A mistake or a warning.
#[derive(Serialize)]
struct Finding<'a> {
    /// The option of the command line that the finding is about. The line, the column and the text are `null`
    /// in that case.
    option: Option<&'a str>,
    /// The line in the file, from 1.
    line: Option<usize>,
    /// The column in characters, from 1.
    column: Option<usize>,
    /// The text of the line.
    text: Option<&'a str>,
    /// The whole key, such as `flow.call.transport`. It is empty if the finding is about the whole file.
    key: &'a str,
    message: &'a str,
    help: Option<&'a str>,
}

impl<'a> CheckResult<'a> {
    fn valid(source: &'a Source, plan: &'a Plan) -> Self {
        let cells = plan.cells.len();
        let mut warnings = Finding::from_diagnostics(source, &plan.warnings);
        for (key, message) in &plan.understood.not_in_sim {
            warnings.push(Finding::about_key(key, message));
        }
        Self {
            file: &source.name,
            valid: true,
            name: Some(&plan.name),
            cells: Some(cells),
            repetitions: Some(plan.repeat.saturating_mul(cells as u64)),
            mistakes: Vec::new(),
            warnings,
            understood: plan.understood.lines().map(String::as_str).collect(),
        }
    }

    fn with_mistakes(source: &'a Source, mistakes: &'a [Diagnostic]) -> Self {
        Self {
            file: &source.name,
            valid: false,
            name: None,
            cells: None,
            repetitions: None,
            mistakes: Finding::from_diagnostics(source, mistakes),
            warnings: Vec::new(),
            understood: Vec::new(),
        }
    }
}

impl<'a> Finding<'a> {
    /// A finding about a key whose line in the file is not known.
    const fn about_key(key: &'a str, message: &'a str) -> Self {
        Self { option: None, line: None, column: None, text: None, key, message, help: None }
    }

    fn from_diagnostics(source: &'a Source, diagnostics: &'a [Diagnostic]) -> Vec<Self> {
        diagnostics.iter().map(|diagnostic| Self::from_diagnostic(source, diagnostic)).collect()
    }

    fn from_diagnostic(source: &'a Source, diagnostic: &'a Diagnostic) -> Self {
        let Diagnostic { line, column, option, key, message, help, .. } = diagnostic;
        let is_in_file = option.is_none();
        let text = source.text.lines().nth(line.saturating_sub(1));
        Self {
            option: option.as_deref(),
            line: is_in_file.then_some(*line),
            column: is_in_file.then_some(*column),
            text: text.filter(|_| is_in_file),
            key,
            message,
            help: help.as_deref(),
        }
    }
}
