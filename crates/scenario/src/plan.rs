//! From text to cells that an arena can run.

use std::collections::BTreeMap;
use std::sync::Arc;

use talkpath_model::Scenario;
use talkpath_units::Seed;

use crate::contents::{Files, NoFiles, Trace};
use crate::demand::{self, Judged, Names, Threshold};
use crate::diagnostic::{Diagnostic, Diagnostics, Place, Source};
use crate::emit;
use crate::keys::ROOT;
use crate::options::Options;
use crate::pass::check::{self, Checks};
use crate::pass::sweep::{Sweep, SweptCell};
use crate::pass::{fill, kernel, set, values};
use crate::reading::Reading;
use crate::resolve;
use crate::tree::{self, Document, LARGEST_FILE, Table};
use crate::understood::{self, Understood};

/// A scenario file, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The file's `name`.
    pub name: String,
    /// How many repetitions each cell has.
    pub repeat: u64,
    /// The seed of repetition 0.
    pub seed: Seed,
    /// One per combination of the sweep's values; one in all without a sweep.
    pub cells: Vec<Cell>,
    /// The file as resolved: every default written out. Loading it, with its traces, gives an equal plan.
    pub resolved: String,
    /// What the figures must hold.
    pub thresholds: Vec<Threshold>,
    /// The traces that the resolved form names: they belong beside it.
    pub traces: Vec<Trace>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// As what the traces and large losses were understood.
    pub understood: Understood,
}

impl Plan {
    /// The cell with this index. Cells are in the order of their indices, so no search is needed.
    pub fn cell(&self, index: u64) -> Option<&Cell> {
        usize::try_from(index).ok().and_then(|at| self.cells.get(at)).filter(|cell| cell.index == index)
    }
}

/// One combination of the sweep's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// From 0; the last key of the sweep moves fastest.
    pub index: u64,
    /// The sweep's keys and this cell's values. The summaries of the cell's repetitions share them.
    pub sweep: Arc<BTreeMap<String, serde_json::Value>>,
    /// For a person: `flow.call.transport=udp, path.up.loss=0.01`; empty without a sweep.
    pub label: String,
    /// What to run.
    pub scenario: Scenario,
}

/// Reads a scenario that names no files.
///
/// # Errors
/// Every mistake in it, in the order of the file.
pub fn load(source: &Source, options: &Options) -> Result<Plan, Diagnostics> {
    load_with_files(source, options, &NoFiles)
}

/// Reads a scenario and the `files` that it names.
///
/// # Errors
/// Every mistake in it, in the order of the file; one in a trace names that file and its line too.
pub fn load_with_files(source: &Source, options: &Options, files: &dyn Files) -> Result<Plan, Diagnostics> {
    let mut reading = Reading::new(source, options, files);
    let plan = read(&mut reading);
    let Reading { labels, log, .. } = reading;
    let (mistakes, warnings) = log.finish(source, &labels);
    match plan {
        Some(plan) if mistakes.is_empty() => Ok(Plan { warnings, ..plan }),
        _ => Err(Diagnostics { source: source.name.clone(), list: mistakes }),
    }
}

/// The plan without its warnings; `None` if the log has mistakes.
fn read(reading: &mut Reading<'_>) -> Option<Plan> {
    let Document { root, is_toml } = tree::document(reading.source, &mut reading.log)?;
    let root = run(&OVER_FILE, root, reading);
    let sweep = Sweep::read(&root, reading.options, &mut reading.log);
    if !is_toml {
        // What was understood is half a scenario: what seems missing may be in the line whose syntax is
        // wrong.
        check::check(root, &ROOT, Checks::PRESENT.with(reading.options), &mut reading.log);
        return None;
    }
    let cells = cells(&sweep, reading);
    let Reading { contents, log, .. } = reading;
    let Some(Cells { cells, common, assumed_queues }) = cells else {
        demand::tell_wrong(&root, &sweep, log);
        return None;
    };
    let first = &cells.first()?.scenario;
    let (name, repeat, seed) = (first.name.clone(), first.repeat, first.seed);
    let repetitions = repeat.saturating_mul(cells.len() as u64);
    if repetitions > MOST_REPETITIONS {
        let place = root.get("repeat").map_or(&Place::START, |node| &node.place);
        let message = format!(
            "found {repetitions} repetitions of all cells together, expected at most {MOST_REPETITIONS}"
        );
        log.mistake(place, "repeat", message, None);
        return None;
    }
    let judged: Vec<_> = cells
        .iter()
        .map(|Cell { index, sweep, scenario, .. }| Judged {
            index: *index,
            sweep,
            names: Names::Of(scenario),
        })
        .collect();
    let thresholds = demand::thresholds(&root, &judged, log);
    let resolved = emit::to_toml(&fill::resolved(&root, common, sweep.keys()));
    if resolved.len() > LARGEST_FILE {
        let message = format!(
            "found a scenario of {} bytes with its defaults written out, expected at most {LARGEST_FILE}",
            resolved.len()
        );
        log.mistake(&Place::START, "", message, None);
        return None;
    }
    let scenarios: Vec<&Scenario> = cells.iter().map(|cell| &cell.scenario).collect();
    let understood = Understood { assumed_queues, ..understood::understood(contents, &scenarios) };
    let (traces, warnings) = (core::mem::take(&mut contents.traces), Vec::new());
    Some(Plan { name, repeat, seed, cells, resolved, thresholds, traces, warnings, understood })
}

/// A pass: of the tree it makes the next one. What it has to report goes to the log.
type Pass = fn(Table, &mut Reading<'_>) -> Table;

/// The passes over a file, in order. The sweep follows, which makes the cells.
const OVER_FILE: [Pass; 2] = [set::set_options, values::replace_values];

/// The passes over a cell, in order. Then [`resolve`] makes the model of it.
const OVER_CELL: [Pass; 3] = [kernel::apply_kernel, check::check_cell, fill::fill_cell];

/// The tree that `passes` make of `root`, one after the other.
fn run(passes: &[Pass], root: Table, reading: &mut Reading<'_>) -> Table {
    passes.iter().fold(root, |tree, pass| pass(tree, reading))
}

/// What the cells of a scenario are.
struct Cells {
    cells: Vec<Cell>,
    /// The values that all cells share, defaults included.
    common: Table,
    /// The links whose queues are as large as they are because nobody said how large.
    assumed_queues: Vec<String>,
}

/// Makes every cell; `None` if one has mistakes.
fn cells(sweep: &Sweep, reading: &mut Reading<'_>) -> Option<Cells> {
    let mut cells = Vec::new();
    let mut assumed: Vec<String> = Vec::new();
    let mut common: Option<Table> = None;
    let mut flows = 0_usize;
    for index in 0..sweep.cells() {
        let SweptCell { root, values, label } = sweep.cell(index, &mut reading.log);
        let cell = run(&OVER_CELL, root, reading);
        let Reading { contents, log, .. } = &mut *reading;
        let scenario = resolve::scenario(&cell, contents, log);
        if log.is_full() {
            return None;
        }
        if scenario.is_none() && log.is_clean() {
            let message = "this cannot be run, and talkpath does not know why: please report it";
            log.mistake(&Place::START, "", message, None);
        }
        let scenario = scenario.filter(|_| log.is_clean());
        if let Some(scenario) = &scenario {
            for link in understood::assumed_queues(&cell) {
                if !assumed.contains(&link) {
                    assumed.push(link);
                }
            }
            understood::warn_of_traces(&cell, scenario.duration, contents, log);
        }
        match &mut common {
            Some(common) => fill::keep_common(common, &cell),
            None => common = Some(cell),
        }
        let Some(scenario) = scenario else { continue };
        flows += scenario.flows.len();
        if flows > MOST_FLOWS {
            let message = format!("found more than {MOST_FLOWS} flows in all cells together");
            log.mistake(&Place::START, "sweep", message, None);
            return None;
        }
        cells.push(Cell { index, sweep: values.into(), label, scenario });
    }
    let common = common?;
    reading.log.is_clean().then_some(Cells { cells, common, assumed_queues: assumed })
}

/// Flows of all cells together. Chosen: they fit in memory.
const MOST_FLOWS: usize = 1_000_000;

/// Repetitions of all cells together. Chosen: a run lists them before it begins, in about 100 B each, 1 GB.
const MOST_REPETITIONS: u64 = 10_000_000;
