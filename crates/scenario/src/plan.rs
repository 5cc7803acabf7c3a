//! From text to cells that an arena can run.

use std::collections::BTreeMap;

use talkpath_units::Seed;

use crate::{Diagnostic, Diagnostics, Scenario, Source};

/// What the command line changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `--set KEY=VALUE`: the value is read as TOML where it is some, else as a string.
    pub set: Vec<(String, String)>,
    /// `--seed`, over the file's `seed`.
    pub seed: Option<u64>,
    /// `--repeat`, over the file's `repeat`.
    pub repeat: Option<u64>,
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
    /// The file as resolved: every default written out. Loading it gives an equal plan.
    pub resolved: String,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// One combination of the sweep's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// From 0; the last key of the sweep moves fastest.
    pub index: u64,
    /// The sweep's keys and this cell's values.
    pub sweep: BTreeMap<String, serde_json::Value>,
    /// For a person: `flow.call.transport=udp, path.up.loss=0.01`; empty without a sweep.
    pub label: String,
    /// What to run.
    pub scenario: Scenario,
}

/// Reads a scenario.
///
/// # Errors
/// Every mistake in it, in the order of the file.
pub fn load(source: &Source, options: &Options) -> Result<Plan, Diagnostics> {
    let mut log = crate::diagnostic::Log::default();
    let _ = options;
    log.mistake(&crate::diagnostic::Place::START, "", "scenario files are not read yet", None);
    log.warning(&crate::diagnostic::Place::START, "", "");
    let (list, _) = log.finish(source, &[]);
    Err(Diagnostics { source: source.name.clone(), list })
}
