//! `talkpath check`: every mistake of a scenario at once, the schema for an editor, or the table of keys.

use serde::Serialize;
use talkpath_scenario::{Diagnostic, Options, Plan, Source, key_tables, schema};

use crate::args::{CheckArgs, Common};
use crate::failure::Failure;
use crate::scenario_file::{diagnose_file, failure};
use crate::terminal::{Terminal, print};
use talkpath_experiment::json::json;
use talkpath_units::counted;

/// Validates, or prints the schema or the keys.
pub fn run(args: &CheckArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    if args.keys {
        return print(key_tables().as_bytes());
    }
    let Some(path) = &args.scenario else {
        let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
        return print(format!("{text}\n").as_bytes());
    };
    let options = Options { set: args.change.settings().collect(), ..Options::default() };
    let (source, understood) = diagnose_file(path, &options)?;
    let plan = match understood {
        Ok(plan) => plan,
        Err(diagnostics) => {
            let printed = match common.json() {
                true => print(&json(&Checked::wrong(&source, &diagnostics.list))),
                false => Ok(()),
            };
            return terminal.end_with([Some(failure(&source, &diagnostics)), printed.err()]);
        }
    };
    if common.json() {
        return print(&json(&Checked::valid(&source, &plan)));
    }
    for warning in &plan.warnings {
        terminal.warning(&format!("{}:{warning}", path.display()));
    }
    for (key, message) in &plan.understood.not_in_sim {
        terminal.warning(&format!("{}: {key}: {message}", path.display()));
    }
    let cells = plan.cells.len();
    let repetitions = plan.repeat.saturating_mul(cells as u64);
    let (cells, runs) = (counted(cells, "cell"), counted(repetitions, "repetition"));
    let is_live = plan.cells.iter().any(|cell| !cell.scenario.has_path);
    let live = if is_live { "; without a `path` it runs between live hosts alone" } else { "" };
    let valid = format!("{}: valid: \"{}\", {cells}, {runs} in all{live}\n", path.display(), plan.name);
    let understood: String = plan.understood.lines().map(|line| format!("{line}\n")).collect();
    terminal.result(&(valid + &understood))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Checked<'a> {
    file: &'a str,
    valid: bool,
    /// `null` if the scenario has mistakes, and so the next two.
    name: Option<&'a str>,
    cells: Option<usize>,
    /// Of all cells together.
    repetitions: Option<u64>,
    mistakes: Vec<Finding<'a>>,
    warnings: Vec<Finding<'a>>,
    /// As what the traces and large losses were read, in lines for a person.
    understood: Vec<&'a str>,
}

/// A mistake or a warning.
#[derive(Serialize)]
struct Finding<'a> {
    /// The option that it is about, as typed on the command line; then line, column and text are `null`.
    option: Option<&'a str>,
    /// From 1.
    line: Option<usize>,
    /// From 1, in characters.
    column: Option<usize>,
    /// The line itself.
    text: Option<&'a str>,
    /// From the root: `flow.call.transport`; empty for the file as a whole.
    key: &'a str,
    message: &'a str,
    help: Option<&'a str>,
}

impl<'a> Checked<'a> {
    fn valid(source: &'a Source, plan: &'a Plan) -> Self {
        let cells = plan.cells.len();
        Self {
            file: &source.name,
            valid: true,
            name: Some(&plan.name),
            cells: Some(cells),
            repetitions: Some(plan.repeat.saturating_mul(cells as u64)),
            mistakes: Vec::new(),
            warnings: Finding::from_diagnostics(source, &plan.warnings)
                .into_iter()
                .chain(
                    plan.understood.not_in_sim.iter().map(|(key, message)| Finding::about_key(key, message)),
                )
                .collect(),
            understood: plan.understood.lines().map(String::as_str).collect(),
        }
    }

    fn wrong(source: &'a Source, mistakes: &'a [Diagnostic]) -> Self {
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
    /// About a key, without its place in the file.
    const fn about_key(key: &'a str, message: &'a str) -> Self {
        Self { option: None, line: None, column: None, text: None, key, message, help: None }
    }

    fn from_diagnostics(source: &'a Source, diagnostics: &'a [Diagnostic]) -> Vec<Self> {
        let told = |it: &'a Diagnostic| {
            let is_in_file = it.option.is_none();
            Self {
                option: it.option.as_deref(),
                line: is_in_file.then_some(it.line),
                column: is_in_file.then_some(it.column),
                text: is_in_file.then(|| source.text.lines().nth(it.line.saturating_sub(1))).flatten(),
                key: &it.key,
                message: &it.message,
                help: it.help.as_deref(),
            }
        };
        diagnostics.iter().map(told).collect()
    }
}
