//! Reads a scenario file into a plan, whose cells an arena can run.
//!
//! - A *cell* is one combination of the values in `[sweep]`. Without a sweep there is one cell.
//! - A *repetition* runs one cell once, with a seed of its own.
//! - The *tree* is the file as keys and values (`crate::tree`). A *pass* makes a changed tree of a tree
//!   (`crate::pass`).
//! - The *resolved form* is the file with all its defaults written out. A run directory keeps it.
//!
//! Begin to read with [`load_with_files`]. `read_plan` has all steps in their order.

use std::collections::BTreeMap;
use std::sync::Arc;

use talkpath_model::Scenario;
use talkpath_units::Seed;

use crate::contents::{Files, NoFiles, Trace};
use crate::diagnostic::{Diagnostic, Diagnostics, Log, Place, Source};
use crate::keys::ROOT;
use crate::options::Options;
use crate::pass::check::{self, Checks};
use crate::pass::sweep::{Sweep, SweptCell};
use crate::pass::{recorded, set, values};
use crate::quantity::{Amount, Dimension};
use crate::reading::Reading;
use crate::resolve;
use crate::resolved_form::{keep_common, resolved_form};
use crate::threshold::{self, SubjectNames, Threshold, ThresholdCell};
use crate::timeline::{self, Doubt, DoubtSubject, Followed, Timeline};
use crate::tree::{self, CHANGES, Document, Entry, LARGEST_FILE, Meaning, Table, Value};
use crate::understood::{self, Understood};

/// A scenario file without mistakes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The file's `name`.
    pub name: String,
    /// The number of repetitions of each cell.
    pub repeat: u64,
    /// The seed of repetition 0.
    pub seed: Seed,
    /// The cells, in the order of their indices. There is at least one.
    pub cells: Vec<Cell>,
    /// The resolved form, as TOML. Loading it together with its traces gives an equal plan.
    pub resolved: String,
    /// The requirements on the figures of a run.
    pub thresholds: Vec<Threshold>,
    /// The traces that the resolved form names. They must be kept together with it.
    pub traces: Vec<Trace>,
    /// The values that are allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// Sentences on how traces, large losses and missing values were understood.
    pub understood: Understood,
}

impl Plan {
    /// Returns the cell with this index.
    pub fn cell(&self, index: u64) -> Option<&Cell> {
        // Cells are in the order of their indices, so no search is needed.
        usize::try_from(index).ok().and_then(|at| self.cells.get(at)).filter(|cell| cell.index == index)
    }
}

/// One combination of the values in `[sweep]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The number of the cell, from 0. The last key of the sweep changes fastest from cell to cell.
    pub index: u64,
    /// The swept keys with the values of this cell. The summaries of all repetitions share the map.
    pub sweep: Arc<BTreeMap<String, serde_json::Value>>,
    /// The swept keys and values for a person, as in `flow.call.transport=udp, path.up.loss=0.01`. Without a
    /// sweep the label is empty.
    pub label: String,
    /// The scenario to run.
    pub scenario: Scenario,
}

/// Reads a scenario that names no files.
///
/// # Errors
/// Returns every mistake in the scenario, in the order of the file.
pub fn load(source: &Source, options: &Options) -> Result<Plan, Diagnostics> {
    load_with_files(source, options, &NoFiles)
}

/// Reads a scenario and the files that it names, which come from `files`.
///
/// # Errors
/// Returns every mistake in the scenario, in the order of the file. A mistake in a trace also has the name of
/// the trace and the line in it.
pub fn load_with_files(source: &Source, options: &Options, files: &dyn Files) -> Result<Plan, Diagnostics> {
    let mut reading = Reading::new(source, options, files);
    let plan = read_plan(&mut reading);
    let Reading { labels, log, .. } = reading;
    let (mistakes, warnings) = log.finish(source, &labels);
    match plan {
        Some(plan) if mistakes.is_empty() => Ok(Plan { warnings, ..plan }),
        _ => Err(Diagnostics { source: source.name.clone(), list: mistakes }),
    }
}

/// Reads a plan without its warnings. All mistakes go to the log of `reading`.
fn read_plan(reading: &mut Reading<'_>) -> Option<Plan> {
    let Document { root, is_toml } = tree::document(reading.source, &mut reading.log)?;
    let mut root = FILE_PASSES.iter().fold(root, |tree, pass| pass(tree, reading));
    let has_run = !(reading.options.is_path_alone && root.get("duration").is_none());
    if reading.options.is_path_alone {
        add_run(&mut root);
    }
    let sweep = Sweep::read(&root, reading.options, &mut reading.log);
    if !is_toml {
        // A key that seems to be missing may be in the line with the wrong syntax, so only present keys are
        // checked.
        check::check(root, &ROOT, Checks::PRESENT.with(reading.options), &mut reading.log);
        return None;
    }
    let Some(Cells { cells, common, assumed_queues, renamed, timeline }) =
        resolve_cells(&sweep, has_run, reading)
    else {
        threshold::check_without_cells(&root, &sweep, &mut reading.log);
        return None;
    };
    let Reading { contents, log, path_notes, assumes_queues, lacks_rate, .. } = reading;
    let Scenario { name, repeat, seed, .. } = &cells.first()?.scenario;
    let (name, repeat, seed) = (name.clone(), *repeat, *seed);
    check_repetitions(repeat, cells.len(), &root, log);
    let thresholds = read_thresholds(&root, &cells, log);
    let resolved = resolved_form(&root, common, sweep.keys());
    check_resolved_size(&resolved, log);
    let scenarios: Vec<&Scenario> = cells.iter().map(|cell| &cell.scenario).collect();
    let understood = Understood {
        path: core::mem::take(path_notes),
        assumes_queues: *assumes_queues,
        path_lacks_rate: lacks_rate.is_some(),
        timeline,
        assumed_queues,
        renamed,
        ..understood::understood(contents, &scenarios)
    };
    let (traces, warnings) = (core::mem::take(&mut contents.traces), Vec::new());
    Some(Plan { name, repeat, seed, cells, resolved, thresholds, traces, warnings, understood })
}

/// Adds a flow and a duration to a path that is read alone, where it has none.
fn add_run(root: &mut Table) {
    let mut nothing = Log::default();
    for Entry { name, node, .. } in tree::parse(RUN_OF_A_PATH, &mut nothing).entries {
        if root.get(&name).is_none() {
            root.set(&name, node);
        }
    }
}

/// A flow that any path carries. The duration is that of no run.
const RUN_OF_A_PATH: &str = "duration = \"1 h\"\n[flow.probe]\ntransport = \"udp\"\n\
                             workload = { kind = \"cbr\", message_rate = \"1 Hz\", size = \"64 B\" }\n";

/// A step that makes the next tree of a tree. Its mistakes and warnings go to the log of the reading.
type Pass = fn(Table, &mut Reading<'_>) -> Table;

/// The passes over a file, in order. The sweep then makes the cells. Each cell is checked and resolved.
const FILE_PASSES: [Pass; 3] = [recorded::keep_older_calls, set::set_options, values::replace_values];

/// The cells of a scenario.
struct Cells {
    cells: Vec<Cell>,
    /// The values that all cells share, defaults included.
    common: Table,
    /// The links whose queue has the default limit ([`Understood::assumed_queues`]).
    assumed_queues: Vec<String>,
    /// The keys whose value has another meaning than before ([`Understood::renamed`]).
    renamed: Vec<(String, String)>,
    /// When the links of the first cell change.
    timeline: Option<Timeline>,
}

/// Makes every cell. Returns `None` if a cell has mistakes.
fn resolve_cells(sweep: &Sweep, has_run: bool, reading: &mut Reading<'_>) -> Option<Cells> {
    let mut cells = Vec::new();
    let mut timeline = None;
    let mut assumed_queues: Vec<String> = Vec::new();
    let mut renamed: Vec<(String, String)> = Vec::new();
    let mut common: Option<Table> = None;
    let mut flow_count = 0;
    for index in 0..sweep.cells() {
        let SweptCell { root, values, label } = sweep.cell(index, &mut reading.log);
        let cell_renamed = understood::adaptive_receivers(&root);
        let tree = check::check(root, &ROOT, Checks::ALL.with(reading.options), &mut reading.log);
        let (scenario, timeline_of_cell) = resolve_cell(&tree, has_run, reading).unzip();
        if index == 0 {
            timeline = timeline_of_cell.flatten();
        }
        if reading.log.is_full() {
            return None;
        }
        let cell_queues = understood::assumed_queues(&tree);
        for key in cell_renamed {
            if !renamed.contains(&key) {
                renamed.push(key);
            }
        }
        match &mut common {
            Some(common) => keep_common(common, &tree),
            None => common = Some(tree),
        }
        // After a mistake the remaining cells are only read for their mistakes.
        let Some(scenario) = scenario else { continue };
        for link in cell_queues {
            if !assumed_queues.contains(&link) {
                assumed_queues.push(link);
            }
        }
        flow_count += scenario.flows.len();
        if flow_count > MOST_FLOWS {
            let message = format!("found more than {MOST_FLOWS} flows in all cells together");
            reading.log.mistake(&Place::START, "sweep", message);
            return None;
        }
        cells.push(Cell { index, sweep: values.into(), label, scenario });
    }
    let common = common?;
    reading.log.is_clean().then_some(Cells { cells, common, assumed_queues, renamed, timeline })
}

/// Makes the scenario of one cell, and says when its links change. Returns `None` if there is a mistake in
/// this cell or in an earlier cell.
fn resolve_cell(
    tree: &Table,
    has_run: bool,
    reading: &mut Reading<'_>,
) -> Option<(Scenario, Option<Timeline>)> {
    let Reading { contents, log, assumes_queues, .. } = reading;
    let scenario = resolve::scenario(tree, has_run, contents, log);
    if scenario.is_none() && log.is_clean() {
        let message = "this cannot be run, and talkpath does not know why: please report it";
        log.mistake(&Place::START, "", message);
    }
    let scenario = scenario.filter(|_| log.is_clean())?;
    understood::warn_of_traces(tree, scenario.duration, contents, log);
    let spans = resolve::change_spans(tree, &scenario.links, contents);
    let followed = Followed { scenario: &scenario, spans: &spans, has_run };
    let timeline = timeline::timeline(&followed).map(|(timeline, doubts)| {
        for doubt in doubts {
            // Whoever assumes a queue says what it is at the lowest rate.
            if !(*assumes_queues && matches!(doubt.subject, DoubtSubject::Queue(_))) {
                warn_of_doubt(tree, &doubt, log);
            }
        }
        timeline
    });
    Some((scenario, timeline))
}

/// Warns about a change or a queue that is probably not meant.
fn warn_of_doubt(tree: &Table, Doubt { subject, message }: &Doubt, log: &mut Log) {
    match subject {
        DoubtSubject::Change(number, key) => {
            let tables = tree.get(CHANGES).and_then(|node| match &node.value {
                Value::List(tables) => tables.get(usize::try_from(number - 1).ok()?),
                _ => None,
            });
            let Some(table) = tables else { return };
            let node = table.as_table().and_then(|table| table.get(key)).unwrap_or(table);
            log.warning(&node.place, format!("change.{number}.{key}"), message.as_str());
        }
        DoubtSubject::Queue(link) => {
            let queue = ["path", "link"].iter().find_map(|links| {
                let link = tree.get(links)?.as_table()?.get(link)?.as_table()?;
                Some((*links, link.get("queue")?.as_table()?.get("limit")?))
            });
            let Some((links, limit)) = queue else { return };
            let is_time =
                matches!(limit.meaning, Some(Meaning::Amount(Amount { dimension: Dimension::Duration, .. })));
            if is_time {
                log.warning(&limit.place, format!("{links}.{link}.queue.limit"), message.as_str());
            }
        }
    }
}

/// We chose at most a million flows in all cells together, because all cells are in memory.
const MOST_FLOWS: usize = 1_000_000;

fn check_repetitions(repeat: u64, cell_count: usize, root: &Table, log: &mut Log) {
    let repetitions = repeat.saturating_mul(cell_count as u64);
    if repetitions > MOST_REPETITIONS {
        let place = root.get("repeat").map_or(&Place::START, |node| &node.place);
        let message = format!(
            "found {repetitions} repetitions of all cells together, expected at most {MOST_REPETITIONS}"
        );
        log.mistake(place, "repeat", message);
    }
}

/// We chose at most ten million repetitions, because a run lists all of them before it begins. With about 100
/// B each, the list takes 1 GB.
const MOST_REPETITIONS: u64 = 10_000_000;

fn read_thresholds(root: &Table, cells: &[Cell], log: &mut Log) -> Vec<Threshold> {
    let threshold_cells: Vec<_> = cells
        .iter()
        .map(|Cell { index, sweep, scenario, .. }| ThresholdCell {
            index: *index,
            sweep,
            subjects: SubjectNames::Scenario(scenario),
        })
        .collect();
    threshold::read_thresholds(root, &threshold_cells, log)
}

/// Reports a resolved form that could not be loaded again.
fn check_resolved_size(resolved: &str, log: &mut Log) {
    if resolved.len() > LARGEST_FILE {
        let message = format!(
            "found a scenario of {} bytes with its defaults written out, expected at most {LARGEST_FILE}",
            resolved.len()
        );
        log.mistake(&Place::START, "", message);
    }
}
