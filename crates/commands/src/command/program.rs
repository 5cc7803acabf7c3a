//! `talkpath shell`, as far as it is an experiment: a plan with one repetition, in which a program of the
//! user runs on the path, and what is printed of it. The processes are the program's own (`command/shell.rs`
//! of the crate `cli`).
//!
//! Everything is printed on standard error but for JSON, because standard output belongs to the command.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::place::{Connect, Place};
use talkpath_experiment::{Destination, Experiment};
use talkpath_report::run_table;
use talkpath_scenario::{Options, Plan, Setting, fitting_name};
use talkpath_units::Duration;

use super::compare::path::{ComparedPath, apply_line};
use super::{end_run, print_as_json};
use crate::args::{Common, ShellArgs, quoted};
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::page::Pages;
use crate::running::{self, Outcome, TerminalObserver};
use crate::scenario_file::{load_source_beside, note_path, path_setting, read_text};
use crate::terminal::{self, Terminal};
use crate::thresholds;
use talkpath_experiment::part::REPORT;
use talkpath_scenario::Source;

/// The option in messages about what this command sets by itself.
const OURS: &str = "talkpath shell";
/// The upload of `--beside bulk`.
const BULK: &str = "{ upload = { transport = \"tcp\", workload = \"bulk\" } }";
/// How long the path lasts at most (chosen: ten days, near the longest duration of a scenario).
const LONGEST: &str = "\"240 h\"";

/// Makes the plan of a run of `command` on the path that the options choose, and says what is assumed about
/// the path.
///
/// # Errors
/// What is wrong with the options, or with a file that they name.
pub fn plan(args: &ShellArgs, command: &[String], terminal: Terminal) -> Result<Plan, Failure> {
    refuse_junit(args.demand.junit.as_deref(), &[])?;
    if let Some(line) = &args.links.line {
        terminal.note(&line.assumptions());
    }
    let plan = match &args.background {
        Some(file) => plan_with_background(args, file, command)?,
        None => plan_of_path(args, command, terminal)?,
    };
    if plan.cells.len() > 1 {
        return Err(Failure::Usage(
            "--background: the scenario has a sweep, and a command runs once: take out the sweep".to_owned(),
        ));
    }
    thresholds::refuse_unknown_figures(&plan)?;
    Ok(plan)
}

fn plan_of_path(args: &ShellArgs, command: &[String], terminal: Terminal) -> Result<Plan, Failure> {
    let path = ComparedPath::described(args.path.as_deref(), &args.links)?;
    let mut set = args.links.settings();
    let program = command.first().map_or("shell", String::as_str);
    let beside = if args.beside.is_some() { " beside an upload" } else { "" };
    let name = fitting_name(&format!("{program} on {}{beside}", path.name()));
    if args.beside.is_some() {
        set.push(Setting::by(OURS, "flow", BULK));
    }
    set.extend([Setting::by(OURS, "name", quoted(&name)), Setting::by(OURS, "kernel", "this")]);
    set.extend(common_settings(args, command));
    let mut plan = path.load(&Options { set, seed: args.seed, repeat: Some(1), ..Options::default() })?;
    apply_line(args.path.as_deref(), &args.links, false, &mut plan)?;
    note_path(&plan, terminal);
    Ok(plan)
}

/// Returns the flows of the scenario `file`, on its path unless the options choose another one.
fn plan_with_background(args: &ShellArgs, file: &Path, command: &[String]) -> Result<Plan, Failure> {
    let mut set = Vec::new();
    if let Some(path) = &args.path {
        set.push(path_setting(path, Some(file)));
    }
    set.extend(args.links.settings());
    set.extend(common_settings(args, command));
    let source = Source::new(file.display().to_string(), read_text(file)?);
    load_source_beside(
        file,
        &source,
        &Options { set, seed: args.seed, repeat: Some(1), ..Options::default() },
    )
}

fn common_settings(args: &ShellArgs, command: &[String]) -> Vec<Setting> {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let mut set = vec![
        Setting::by(OURS, "duration", LONGEST),
        Setting::by(OURS, "program", format!("{{ command = [{}], shell = true }}", words.join(", "))),
    ];
    set.extend(args.demand.settings());
    set
}

/// Runs the program on the path, and prints what came of it. It runs until it has ended, or `stop` ends it.
///
/// # Errors
/// Why there is no record, or the gravest of what did not hold.
pub fn measure(
    args: &ShellArgs,
    plan: &Plan,
    common: &Common,
    arenas: &dyn Connect,
    stop: &AtomicBool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let records = common.records();
    let place = Place {
        capture: args.capture.snaplen,
        // The program cannot run again.
        run_again: Some(Duration::ZERO),
        ..Place::new(ArenaKind::Emu, None)
    };
    let observer = Box::new(TerminalObserver::without_bar(terminal, records));
    let defaults = Experiment::new(plan, place, arenas, observer, &Pages);
    let experiment = Experiment { records, series: common.series, ..defaults };
    let outcome = running::run_until(&experiment, Destination::Under(&common.out), stop)?;
    conclude(outcome, args, common, terminal)
}

fn conclude(outcome: Outcome, args: &ShellArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let Outcome { dir, summary, failure } = outcome;
    let printed = if common.json() {
        print_as_json(&summary, common, terminal)
    } else {
        let table = run_table(&summary, &terminal::table_style(args.tables));
        let report = dir.file(REPORT);
        let page = if report.exists() { format!("\nReport: {}", report.display()) } else { String::new() };
        let lines = thresholds::lines(&summary.thresholds);
        terminal.note(&format!("\n{}\n{lines}{page}", table.trim_end()));
        Ok(())
    };
    end_run(&summary, Some(&args.demand), [failure, printed.err()], common, terminal)
}
