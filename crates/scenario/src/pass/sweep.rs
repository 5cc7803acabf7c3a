//! The sweep: which keys take which values, and every combination of these values.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{self, Checks};
use super::set::{self, flatten};
use crate::diagnostic::{Log, Place};
use crate::keys::ROOT;
use crate::options::Options;
use crate::quantity::{self, Problem};
use crate::read::wrong;
use crate::tree::{Entry, Node, Table, Value, split};

/// One key and its values.
#[derive(Debug)]
pub(crate) struct Axis {
    /// As the file writes it.
    key: String,
    /// The keys that `key` means, each as its names: several if it has a `*`.
    keys: Vec<Vec<String>>,
    place: Place,
    values: Vec<Node>,
}

/// All axes, in the order of the file, and what they are swept over.
#[derive(Debug)]
pub(crate) struct Sweep {
    axes: Vec<Axis>,
    /// The scenario without its `[sweep]`.
    base: Table,
    /// Whether there are mistakes in `[sweep]`.
    is_wrong: bool,
}

/// One combination of the axes' values.
pub(crate) struct SweptCell {
    /// The scenario with these values.
    pub(crate) root: Table,
    /// The values, by key.
    pub(crate) values: BTreeMap<String, serde_json::Value>,
    /// The same for a person.
    pub(crate) label: String,
}

impl Sweep {
    /// Takes `[sweep]` out of `root`, in which its keys are looked up. The cells are checked one by one; the
    /// values that they do not hold, because the sweep replaces them, are checked here.
    pub(crate) fn read(root: &Table, options: &Options, log: &mut Log) -> Self {
        let mut sweep = Self { axes: Vec::new(), base: root.clone(), is_wrong: false };
        let Some(node) = sweep.base.remove("sweep") else { return sweep };
        check::check(root.clone(), &ROOT, Checks::PRESENT.with(options), log);
        let Some(table) = node.as_table() else {
            log.mistake(&node.place, "sweep", wrong(&node, "a table of \"KEY\" = [VALUES]").message, None);
            return Self { is_wrong: true, ..sweep };
        };
        let mut entries = Vec::new();
        flatten(table, "", &mut entries);
        for (key, entry) in entries {
            let axis = axis(&sweep.base, key, entry, log).filter(|axis| sweep.is_new(axis, log));
            match axis {
                Some(axis) => sweep.axes.push(axis),
                None => sweep.is_wrong = true,
            }
        }
        if sweep.cells() > MOST_CELLS {
            let message =
                format!("found {} combinations, expected at most {MOST_CELLS} cells", sweep.cells());
            log.mistake(&node.place, "sweep", message, None);
            return Self { axes: Vec::new(), is_wrong: true, ..sweep };
        }
        sweep
    }

    /// Whether no axis sweeps over a key of `axis` already.
    fn is_new(&self, axis: &Axis, log: &mut Log) -> bool {
        let twice = self.axes.iter().find(|other| other.keys.iter().any(|key| axis.keys.contains(key)));
        let Some(other) = twice else { return true };
        let message = if other.key == axis.key {
            "is swept already, by another line or option; expected all its values in one".to_owned()
        } else {
            format!("`{}` sweeps over the same key", other.key)
        };
        log.mistake(&axis.place, &format!("sweep.{}", axis.key), message, None);
        false
    }

    /// Whether there are mistakes in `[sweep]`.
    pub(crate) const fn is_wrong(&self) -> bool {
        self.is_wrong
    }

    /// How many combinations there are.
    pub(crate) fn cells(&self) -> u64 {
        self.axes.iter().fold(1, |cells, axis| cells.saturating_mul(axis.values.len() as u64))
    }

    /// Every key that is swept, as its names.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[String]> {
        self.axes.iter().flat_map(|axis| &axis.keys).map(Vec::as_slice)
    }

    /// Cell `index`: the scenario without its `[sweep]` and with the cell's values.
    pub(crate) fn cell(&self, index: u64, log: &mut Log) -> SweptCell {
        let mut rest = index;
        let mut chosen = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            let count = axis.values.len().max(1) as u64;
            if let Some(value) = usize::try_from(rest % count).ok().and_then(|at| axis.values.get(at)) {
                chosen.push((axis, value));
            }
            rest /= count;
        }
        chosen.reverse();
        let values = chosen.iter().map(|(axis, value)| (axis.key.clone(), value.to_json())).collect();
        let label = chosen.iter().map(|(axis, value)| format!("{}={}", axis.key, plain(value)));
        let label = label.collect::<Vec<_>>().join(", ");
        let mut root = self.base.clone();
        // A whole path before one of its keys, whatever their order in the file.
        chosen.sort_by_key(|(axis, _)| axis.keys.first().map_or(0, Vec::len));
        for (axis, value) in chosen {
            for key in &axis.keys {
                if let Err(problem) = set::set(&mut root, key, value.clone()) {
                    log.mistake(&axis.place, &format!("sweep.{}", axis.key), problem.message, problem.help);
                }
            }
            if let Some(path) = root.get_mut("path") {
                set::expand_path(path);
            }
        }
        SweptCell { root, values, label }
    }
}

/// Checks one line of the sweep.
fn axis(root: &Table, key: String, entry: &Entry, log: &mut Log) -> Option<Axis> {
    let at = format!("sweep.{key}");
    let mut mistake = |place: &Place, problem: Problem| {
        log.mistake(place, &at, problem.message, problem.help);
        None
    };
    let names = split(&key);
    if let [name @ ("name" | "repeat" | "seed" | "sweep" | "thresholds"), ..] = names.as_slice() {
        return mistake(
            &entry.place,
            Problem::new(format!("`{name}` is the same for all cells; it cannot be swept")),
        );
    }
    if let ["flow", "*", "transport", ..] = names.as_slice() {
        return mistake(
            &entry.place,
            Problem::new("the transports of several flows cannot be swept together")
                .with_help("a comparison is of one flow: `flow.NAME.transport`"),
        );
    }
    let keys = match set::keys(root, &names) {
        Ok(keys) => keys,
        Err(problem) => return mistake(&entry.place, problem),
    };
    let Value::List(values) = &entry.node.value else {
        let mixed = entry.node.as_text().and_then(quantity::mixed_shares);
        return mistake(&entry.node.place, mixed.unwrap_or_else(|| wrong(&entry.node, "a list of values")));
    };
    let Some(first) = values.first() else {
        return mistake(&entry.node.place, Problem::new("found an empty list, expected at least one value"));
    };
    let mut known = BTreeSet::new();
    if let Some(twice) = values.iter().find(|value| !known.insert(value.to_json().to_string())) {
        let message = format!("found {} twice, expected each value once", twice.to_json());
        return mistake(&twice.place, Problem::new(message));
    }
    for key in &keys {
        if let Err(problem) = set::set(&mut root.clone(), key, first.clone()) {
            return mistake(&entry.place, problem);
        }
    }
    Some(Axis { key, keys, place: entry.place.clone(), values: values.clone() })
}

/// A value as a label shows it.
fn plain(value: &Node) -> String {
    match value.as_text() {
        Some(text) => text.to_owned(),
        None => value.to_json().to_string(),
    }
}

/// Cells of one plan. Chosen; see docs/reference/scenario.md.
const MOST_CELLS: u64 = 100_000;
