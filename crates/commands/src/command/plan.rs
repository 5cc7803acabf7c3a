//! `talkpath plan` prints what a scenario would run, and about how long each cell takes, before anything
//! runs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use talkpath_scenario::{Cell, NANOS_OF_A_HOP, Options, Plan};

use crate::args::{Common, PlanArgs};
use crate::failure::Failure;
use crate::output_file::is_run;
use crate::scenario_file::load_file;
use crate::terminal::{Terminal, print};
use talkpath_experiment::json as files;
use talkpath_experiment::run_dir::{SCENARIO, write_trace};
use talkpath_experiment::store::whole::write_bytes;
use talkpath_units::counted;

/// The text lists at most this many cells. We chose 24 so that the list fits on a screen.
const MAX_LISTED_CELLS: usize = 24;
/// The text lists at most this many seeds. We chose 3 because they fit on a line.
const MAX_LISTED_SEEDS: usize = 3;

/// Prints the plan, and writes the files that every machine needs to run its part.
pub fn run(args: &PlanArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let set = args.change.settings().collect();
    let options = Options { set, seed: args.seed, repeat: args.repeat, ..Options::default() };
    let plan = load_file(&args.scenario, &options)?;
    for warning in &plan.warnings {
        terminal.warning(&format!("{}:{warning}", args.scenario.display()));
    }
    if let Some(folder) = &args.output {
        write_inputs(folder, &plan)?;
    }
    if common.json() { print(&files::json(&as_json(&plan))) } else { terminal.result(&as_text(&plan)) }
}

/// Writes the resolved scenario and its traces into `folder`.
fn write_inputs(folder: &Path, plan: &Plan) -> Result<(), Failure> {
    if is_run(folder) {
        return Err(Failure::Usage(format!(
            "-o {}: a run is there, and its scenario would be lost; name another directory",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(|why| Failure::folder(folder, why))?;
    for trace in &plan.traces {
        write_trace(folder, trace)?;
    }
    Ok(write_bytes(&folder.join(SCENARIO), plan.resolved.as_bytes())?)
}

/// Returns the plan as JSON, with the keys of docs/reference/interface.md.
fn as_json(plan: &Plan) -> Value {
    let cell = |cell: &Cell| json!({ "cell": cell.index, "sweep": *cell.sweep, "cost_s": seconds(cell.scenario.cost()) });
    json!({
        "talkpath": env!("CARGO_PKG_VERSION"),
        "name": plan.name,
        "repeat": plan.repeat,
        "seeds": (0..plan.repeat).map(|index| plan.seed.repetition(index).get()).collect::<Vec<_>>(),
        "cost_s": seconds(total_cost(plan)),
        "cells": plan.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

/// Returns the plan as text for a person.
fn as_text(plan: &Plan) -> String {
    let (cells, repeat) = (plan.cells.len() as u64, plan.repeat);
    let seeds: Vec<_> = (0..repeat)
        .take(MAX_LISTED_SEEDS)
        .map(|index| plan.seed.repetition(index).get().to_string())
        .collect();
    let other_seeds = repeat.saturating_sub(seeds.len() as u64);
    let more = if other_seeds > 0 { format!(", and {other_seeds} more") } else { String::new() };
    let mut text = format!(
        "{}\n{} in all: {}, {} of each\nseeds: {}{more}\ncost: about {} of one core, an estimate\n\n",
        plan.name,
        counted(cells.saturating_mul(repeat), "repetition"),
        counted(cells, "cell"),
        counted(repeat, "repetition"),
        seeds.join(", "),
        span(total_cost(plan)),
    );
    let width = |cell: &Cell| span(cell.scenario.cost()).len();
    let width = plan.cells.iter().take(MAX_LISTED_CELLS).map(width).max().unwrap_or(0);
    for cell in plan.cells.iter().take(MAX_LISTED_CELLS) {
        let cost = span(cell.scenario.cost());
        text += format!("cell {:<5} {cost:>width$} a repetition  {}", cell.index, cell.label).trim_end();
        text.push('\n');
    }
    let other_cells = plan.cells.len().saturating_sub(MAX_LISTED_CELLS);
    if other_cells > 0 {
        text += &format!("and {}; --json has them all\n", counted(other_cells, "more cell"));
    }
    text
}

/// How many times a packet passes a link in all repetitions, estimated.
fn total_cost(plan: &Plan) -> u64 {
    let cells = plan.cells.iter().map(|cell| cell.scenario.cost()).fold(0, u64::saturating_add);
    cells.saturating_mul(plan.repeat)
}

/// How long the simulation of `hops` hops takes, in seconds of one core.
fn seconds(hops: u64) -> f64 {
    hops.saturating_mul(NANOS_OF_A_HOP) as f64 / 1e9
}

/// Writes how long the simulation of `hops` hops takes. It is an estimate, so only the first digits are
/// shown.
fn span(hops: u64) -> String {
    match seconds(hops) {
        time if time < 1.0 => format!("{:.1} ms", time * 1e3),
        time if time < 100.0 => format!("{time:.1} s"),
        time if time < 6_000.0 => format!("{:.0} min", time / 60.0),
        time => format!("{:.0} h", time / 3_600.0),
    }
}
