//! From text to cells that an arena can run.

use std::collections::BTreeMap;
use std::sync::Arc;

use talkpath_units::{Seed, printable};

use crate::check::{self, Checks};
use crate::demand::{self, Judged, Names, Threshold};
use crate::diagnostic::{Log, Place};
use crate::files::{Contents, Files, NoFiles, Trace};
use crate::keys::{LONGEST_NAME, ROOT};
use crate::quantity::Problem;
use crate::read::{self, At};
use crate::sweep::{self, Sweep};
use crate::tree::{self, Node, Table, Value};
use crate::understood::{self, Understood};
use crate::{Diagnostic, Diagnostics, Scenario, Source, edit, emit, fill, kernel, quantity, resolve, shares};

/// What the command line changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Keys that it sets, in this order.
    pub set: Vec<Setting>,
    /// `--seed`, over the file's `seed`.
    pub seed: Option<u64>,
    /// `--repeat`, over the file's `repeat`.
    pub repeat: Option<u64>,
}

/// A key that the command line sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// From the root, with points between: `path.up.rate`.
    pub key: String,
    /// Read as TOML if it is valid TOML, else as a string.
    pub value: String,
    /// The option that sets it. A mistake in the value names it instead of a place in the file.
    pub option: String,
}

impl Setting {
    /// `--set KEY=VALUE`.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        Self { option: format!("--set {key}={value}"), key, value }
    }

    /// `--sweep KEY=A,B,...`. The values are a TOML list, TOML values between commas, or else words between
    /// commas.
    pub fn sweep(key: &str, values: &str) -> Self {
        let is_list = |text: &str| {
            tree::parse_value(text, &Place::START).is_some_and(|node| matches!(node.value, Value::List(_)))
        };
        let words = || {
            let quoted = values.split(',').map(|word| match word.trim() {
                word if tree::parse_value(word, &Place::START).is_some() => word.to_owned(),
                word => toml_edit::Value::from(word).to_string(),
            });
            quoted.collect::<Vec<_>>().join(", ")
        };
        let value = match format!("[{values}]") {
            // Also what is meant as a list or a table and is none: the mistake shows it whole.
            _ if is_list(values) || values.starts_with('[') => values.to_owned(),
            _ if quantity::mixed_shares(values).is_some() => values.to_owned(),
            list if is_list(&list) || values.contains(['[', '{']) => list,
            _ => format!("[{}]", words()),
        };
        Self { option: format!("--sweep {key}={values}"), key: format!("sweep.{key}"), value }
    }

    /// A key that `option` sets in words of its own.
    pub fn by(option: &str, key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), option: option.to_owned() }
    }
}

impl From<(String, String)> for Setting {
    /// `--set KEY=VALUE`.
    fn from((key, value): (String, String)) -> Self {
        Self::new(key, value)
    }
}

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
    /// The cell of this index. Cells stand in the order of their indices, so no search is needed.
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
    let mut log = Log::default();
    let mut labels = Vec::new();
    let plan = read(source, options, files, &mut labels, &mut log);
    let (mistakes, warnings) = log.finish(source, &labels);
    match plan {
        Some(plan) if mistakes.is_empty() => Ok(Plan { warnings, ..plan }),
        _ => Err(Diagnostics { source: source.name.clone(), list: mistakes }),
    }
}

/// The plan without its warnings; `None` if `log` has mistakes.
fn read(
    source: &Source,
    options: &Options,
    files: &dyn Files,
    labels: &mut Vec<String>,
    log: &mut Log,
) -> Option<Plan> {
    if source.text.len() > LARGEST_FILE {
        let message =
            format!("found {} bytes, expected a scenario of at most {LARGEST_FILE}", source.text.len());
        log.mistake(&Place::START, "", message, None);
        return None;
    }
    let mut root = tree::parse(&source.text, log);
    let is_toml = log.is_clean();
    if let Some(key) = source.under {
        root = Table::of(key, Node { value: Value::Table(root), place: Place::START });
    }
    if is_toml && root.entries.is_empty() {
        let message =
            "found nothing; a scenario needs a `duration`, a `path` or `link` tables, and a [flow.NAME]";
        log.mistake(&Place::START, "", message, None);
        return None;
    }
    apply(&mut root, options, labels, log);
    if root.get("name").is_none() {
        root.set("name", Node::text(stem(&source.name), Place::START));
    }
    if let Some(Node { value, .. }) = root.get_mut("seed")
        && let Value::Number(text) = value
        && read::as_seed(text).is_some_and(|seed| i64::try_from(seed).is_err())
    {
        // No integer of TOML: the resolved form has it as text.
        *value = Value::Text(core::mem::take(text));
    }
    if let Some(path) = root.get_mut("path") {
        edit::expand_path(path);
    }
    shares::take_in(&mut root, log);
    let contents = Contents::take_in(&mut root, files, log);
    check::table(&root, &ROOT, &Place::START, At::ROOT, Checks::PRESENT, log);
    let sweep = Sweep::read(&root, log);
    if !is_toml {
        // What was understood is half a scenario: what seems missing may stand in the line whose syntax is
        // wrong.
        return None;
    }
    let Some((cells, common, assumed_queues)) = cells(&root, &sweep, &contents, log) else {
        tell_wrong_thresholds(&root, log);
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
    let resolved = resolved(&root, common, &sweep);
    if resolved.len() > LARGEST_FILE {
        let message = format!(
            "found a scenario of {} bytes with its defaults written out, expected at most {LARGEST_FILE}",
            resolved.len()
        );
        log.mistake(&Place::START, "", message, None);
        return None;
    }
    let scenarios: Vec<&Scenario> = cells.iter().map(|cell| &cell.scenario).collect();
    let understood = Understood { assumed_queues, ..understood::understood(&contents, &scenarios) };
    let (traces, warnings) = (contents.traces, Vec::new());
    Some(Plan { name, repeat, seed, cells, resolved, thresholds, traces, warnings, understood })
}

/// Every cell, the values that all of them share, defaults included, and the links whose queues are assumed.
fn cells(
    root: &Table,
    sweep: &Sweep,
    contents: &Contents,
    log: &mut Log,
) -> Option<(Vec<Cell>, Table, Vec<String>)> {
    let mut cells = Vec::new();
    let mut assumed: Vec<String> = Vec::new();
    let mut common: Option<Table> = None;
    let mut flows = 0_usize;
    let mut base = root.clone();
    base.remove("sweep");
    for index in 0..sweep.cells() {
        let (mut cell, values, label) = sweep.cell(&base, index, log);
        kernel::apply(&mut cell);
        check::table(&cell, &ROOT, &Place::START, At::ROOT, Checks::ALL, log);
        resolve::link::tell_missing_rates(&cell, log);
        let filled = fill::table(&cell, &ROOT, &Place::START);
        let scenario = resolve::scenario(&filled, contents, log);
        if log.is_full() {
            return None;
        }
        match &mut common {
            Some(common) => fill::keep_common(common, &filled),
            None => common = Some(filled),
        }
        if scenario.is_none() && log.is_clean() {
            let message = "this cannot be run, and talkpath does not know why: please report it";
            log.mistake(&Place::START, "", message, None);
        }
        let Some(scenario) = scenario.filter(|_| log.is_clean()) else { continue };
        for link in understood::assumed_queues(&cell) {
            if !assumed.contains(&link) {
                assumed.push(link);
            }
        }
        understood::warn_of_traces(&cell, scenario.duration, contents, log);
        flows += scenario.flows.len();
        if flows > MOST_FLOWS {
            let message = format!("found more than {MOST_FLOWS} flows in all cells together");
            log.mistake(&Place::START, "sweep", message, None);
            return None;
        }
        cells.push(Cell { index, sweep: values.into(), label, scenario });
    }
    log.is_clean().then_some((cells, common?, assumed))
}

/// Mistakes in the thresholds of a file that has others, as far as they can be known.
fn tell_wrong_thresholds(root: &Table, log: &mut Log) {
    let mut of_sweep = Log::default();
    let sweep = Sweep::read(root, &mut of_sweep);
    let mut base = root.clone();
    base.remove("sweep");
    if base.get("thresholds").is_none() {
        return;
    }
    let cells: Vec<_> = (0..sweep.cells()).map(|index| sweep.cell(&base, index, &mut of_sweep).1).collect();
    if of_sweep.is_clean() {
        let names = Names::Written(root);
        let judged: Vec<_> =
            cells.iter().zip(0..).map(|(sweep, index)| Judged { index, sweep, names }).collect();
        demand::thresholds(root, &judged, log);
    }
}

/// The file as resolved: what it says, and of the defaults those that all cells share.
fn resolved(root: &Table, mut common: Table, sweep: &Sweep) -> String {
    let mut written = root.clone();
    let sweep_table = written.remove("sweep");
    for names in sweep.keys() {
        edit::remove(&mut common, names);
    }
    fill::overlay(&mut common, &written);
    if let Some(node) = sweep_table {
        common.set("sweep", node);
    }
    emit::scenario(&common)
}

/// Sets `key`, which `place` of the command line names. Lines of the sweep over a key that this sets are left
/// out.
fn set(root: &mut Table, key: &str, value: Node, place: &Place, log: &mut Log) -> Result<(), Problem> {
    let names = edit::split(key);
    if let ["sweep", swept @ ..] = names.as_slice() {
        // A `*` that stands for nothing is a mistake of the sweep, which is read later.
        let keys = edit::keys(root, swept).unwrap_or_default();
        sweep::leave_out(root, &keys, |line| matches!(line, Place::File(_)));
        return edit::set(root, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), value);
    }
    let keys = edit::keys(root, &names)?;
    for line in sweep::leave_out(root, &keys, |_| true) {
        log.warning(place, &line, "the sweep over this key is left out");
    }
    keys.iter().try_for_each(|key| edit::set(root, key, value.clone()))
}

/// Changes `root` as the command line says.
fn apply(root: &mut Table, options: &Options, labels: &mut Vec<String>, log: &mut Log) {
    for Setting { key, value: text, option } in &options.set {
        let place = Place::Option(labels.len());
        labels.push(option.clone());
        let value =
            tree::parse_value(text, &place).unwrap_or_else(|| Node::text(text.as_str(), place.clone()));
        if let Err(problem) = set(root, key, value, &place, log) {
            log.mistake(&place, key, problem.message, problem.help);
        }
    }
    for (key, value) in [("seed", options.seed), ("repeat", options.repeat)] {
        if let Some(value) = value {
            let place = Place::Option(labels.len());
            labels.push(format!("--{key} {value}"));
            root.set(key, Node { value: Value::Number(value.to_string()), place });
        }
    }
}

/// The file's name without its folder and its ending.
fn stem(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if name.trim().is_empty() { "scenario".to_owned() } else { fitting_name(name) }
}

/// `text`, from a file's name say, as a scenario's `name`: control characters escaped, and cut to its length.
pub fn fitting_name(text: &str) -> String {
    printable(text, LONGEST_NAME)
}

/// The largest scenario, in bytes, as written and with its defaults. Chosen: anything larger is a wrong file,
/// refused before it fills the memory.
pub const LARGEST_FILE: usize = 4 << 20;

/// Flows of all cells together. Chosen: they fit in memory.
const MOST_FLOWS: usize = 1_000_000;

/// Repetitions of all cells together. Chosen: a run lists them before it begins, in about 100 B each, 1 GB.
const MOST_REPETITIONS: u64 = 10_000_000;
