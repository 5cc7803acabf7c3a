//! Reads `[sweep]`, and makes the cells of a scenario.
//!
//! - An *axis* is one line of `[sweep]`: a key and the list of its values. A line with several keys, as in
//!   `"path.up.rate, path.up.delay"`, sets them together: each of its values is a list with a value for each
//!   key.
//! - A *cell* has one value of each axis. The cells are all combinations, and the last axis changes fastest.
//! - The *base* is the scenario without its `[sweep]`. A cell is the base with the values of the cell.
//!
//! Begin to read with [`Sweep::read`], then [`Sweep::cell`].

use std::collections::{BTreeMap, BTreeSet};

use super::check::{self, Checks};
use super::set::{self, flatten};
use crate::diagnostic::{Log, Place};
use crate::keys::ROOT;
use crate::options::Options;
use crate::quantity::{self, Problem};
use crate::read::wrong;
use crate::tree::{Entry, Node, Table, Value, linked_keys, split};

/// All axes, in the order of the file.
#[derive(Debug)]
pub(crate) struct Sweep {
    axes: Vec<Axis>,
    base: Table,
    has_mistakes: bool,
}

/// One line of `[sweep]`.
#[derive(Debug)]
struct Axis {
    /// The keys as the file writes them.
    key: String,
    /// The keys of the line. Most lines have one.
    keys: Vec<SweptKey>,
    place: Place,
    /// Each value of the line has a value for each of `keys`.
    values: Vec<Vec<Node>>,
}

/// A key of a line.
#[derive(Debug)]
struct SweptKey {
    key: String,
    /// The keys that `key` stands for, each split into its names. A key with `*` stands for several.
    targets: Vec<Vec<String>>,
}

/// One combination of the axes' values.
pub(crate) struct SweptCell {
    /// The base with the values of the cell.
    pub(crate) root: Table,
    /// The values of the cell, by key.
    pub(crate) values: BTreeMap<String, serde_json::Value>,
    /// The keys and values for a person.
    pub(crate) label: String,
}

impl Sweep {
    /// Reads the `[sweep]` of `root`.
    ///
    /// The cells are checked later, one by one. The values that the sweep replaces are in no cell, so the
    /// whole of `root` is checked here.
    pub(crate) fn read(root: &Table, options: &Options, log: &mut Log) -> Self {
        let mut sweep = Self { axes: Vec::new(), base: root.clone(), has_mistakes: false };
        let Some(node) = sweep.base.remove("sweep") else { return sweep };
        check::check(root.clone(), &ROOT, Checks::PRESENT.with(options), log);
        let Some(table) = node.as_table() else {
            log.mistake(&node.place, "sweep", wrong(&node, "a table of \"KEY\" = [VALUES]"));
            return Self { has_mistakes: true, ..sweep };
        };
        let mut lines = Vec::new();
        flatten(table, "", &mut lines);
        for (key, entry) in lines {
            sweep.add_axis(&key, entry, log);
        }
        let cells = sweep.cells();
        if cells > MOST_CELLS {
            let message = format!("found {cells} combinations, expected at most {MOST_CELLS} cells");
            log.mistake(&node.place, "sweep", message);
            return Self { axes: Vec::new(), has_mistakes: true, ..sweep };
        }
        sweep
    }

    /// Adds the axis of one line. A mistake in it goes to `log`.
    fn add_axis(&mut self, key: &str, line: &Entry, log: &mut Log) {
        let axis = Axis::read(key, line, &self.base).and_then(|axis| self.check_is_new(axis, &line.place));
        match axis {
            Ok(axis) => self.axes.push(axis),
            Err(AxisMistake { place, problem }) => {
                self.has_mistakes = true;
                log.mistake(place, format!("sweep.{key}"), problem);
            }
        }
    }

    /// Returns `axis` if no other axis has one of its keys.
    fn check_is_new<'a>(&self, axis: Axis, place: &'a Place) -> Result<Axis, AxisMistake<'a>> {
        let shares_a_key = |other: &&Axis| other.targets().any(|key| axis.targets().any(|own| own == key));
        let Some(other) = self.axes.iter().find(shares_a_key) else { return Ok(axis) };
        let message = if other.key == axis.key {
            "is swept already, by another line or option; expected all its values in one".to_owned()
        } else {
            format!("`{}` sweeps over the same key", other.key)
        };
        Err(AxisMistake { place, problem: Problem::new(message) })
    }

    /// Whether there are mistakes in `[sweep]`.
    pub(crate) const fn has_mistakes(&self) -> bool {
        self.has_mistakes
    }

    pub(crate) fn cells(&self) -> u64 {
        self.axes.iter().fold(1, |cells, axis| cells.saturating_mul(axis.values.len() as u64))
    }

    /// Returns every key that is swept, split into its names.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[String]> {
        self.axes.iter().flat_map(Axis::targets).map(Vec::as_slice)
    }

    pub(crate) fn cell(&self, index: u64, log: &mut Log) -> SweptCell {
        let key_values = self.key_values(index);
        let values =
            key_values.iter().map(|chosen| (chosen.key.key.clone(), chosen.value.to_json())).collect();
        let label: Vec<String> = key_values
            .iter()
            .map(|chosen| format!("{}={}", chosen.key.key, label_of(chosen.value)))
            .collect();
        SweptCell { root: self.with_values(key_values, log), values, label: label.join(", ") }
    }

    /// Returns the value of each key in the cell `index`. The positions of the axes' values are the digits of
    /// the index; the last axis is the lowest digit.
    fn key_values(&self, index: u64) -> Vec<KeyValue<'_>> {
        let mut higher_digits = index;
        let mut by_axis = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            let value_count = axis.values.len().max(1) as u64;
            let position = usize::try_from(higher_digits % value_count).ok();
            if let Some(values) = position.and_then(|position| axis.values.get(position)) {
                by_axis.push((axis, values));
            }
            higher_digits /= value_count;
        }
        let mut key_values = Vec::new();
        for (axis, values) in by_axis.into_iter().rev() {
            let chosen = axis.keys.iter().zip(values).map(|(key, value)| KeyValue { axis, key, value });
            key_values.extend(chosen);
        }
        key_values
    }

    /// Returns the base with these values.
    fn with_values(&self, mut key_values: Vec<KeyValue<'_>>, log: &mut Log) -> Table {
        let mut root = self.base.clone();
        // A whole table, such as `path`, is set before a key inside it, whatever their order in the file.
        key_values.sort_by_key(|chosen| chosen.key.targets.first().map_or(0, Vec::len));
        for KeyValue { axis, key, value } in key_values {
            for target in &key.targets {
                if let Err(problem) = set::set(&mut root, target, value.clone()) {
                    log.mistake(&axis.place, format!("sweep.{}", axis.key), problem);
                }
            }
            set::expand_path(&mut root);
        }
        root
    }
}

/// We chose at most 100,000 cells in a plan; see docs/reference/scenario.md.
const MOST_CELLS: u64 = 100_000;

/// The value of one key of an axis in a cell.
struct KeyValue<'a> {
    axis: &'a Axis,
    key: &'a SweptKey,
    value: &'a Node,
}

/// A mistake in one line of `[sweep]`.
struct AxisMistake<'a> {
    place: &'a Place,
    problem: Problem,
}

impl Axis {
    /// Reads one line. Its keys must be some that can be set in `base`.
    fn read<'a>(key: &str, line: &'a Entry, base: &Table) -> Result<Self, AxisMistake<'a>> {
        let at_key = |problem| AxisMistake { place: &line.place, problem };
        let mut keys: Vec<SweptKey> = Vec::new();
        for key in linked_keys(key) {
            let swept = SweptKey::read(key, base).map_err(at_key)?;
            let is_known = |target| keys.iter().any(|earlier| earlier.targets.contains(target));
            if swept.targets.iter().any(is_known) {
                return Err(at_key(Problem::new(format!("`{key}` sets a key that this line has already"))));
            }
            keys.push(swept);
        }
        let values = read_values(&line.node)?;
        let values = match keys.len() {
            1 => values.iter().map(|value| vec![value.clone()]).collect(),
            several => {
                values.iter().map(|value| values_of_keys(value, several)).collect::<Result<Vec<_>, _>>()?
            }
        };
        for (swept, first) in keys.iter().zip(values.first().into_iter().flatten()) {
            for target in &swept.targets {
                set::set(&mut base.clone(), target, first.clone()).map_err(at_key)?;
            }
        }
        Ok(Self { key: key.to_owned(), keys, place: line.place.clone(), values })
    }

    /// Iterates over every key that the line sets.
    fn targets(&self) -> impl Iterator<Item = &Vec<String>> {
        self.keys.iter().flat_map(|key| &key.targets)
    }
}

impl SweptKey {
    fn read(key: &str, base: &Table) -> Result<Self, Problem> {
        let names = split(key);
        check_can_be_swept(&names)?;
        Ok(Self { key: key.to_owned(), targets: set::expand_star(base, &names)? })
    }
}

/// Reads a value of a line with `count` keys: a list with a value for each key.
fn values_of_keys(node: &Node, count: usize) -> Result<Vec<Node>, AxisMistake<'_>> {
    match &node.value {
        Value::List(values) if values.len() == count => Ok(values.clone()),
        found => {
            let found = match found {
                Value::List(values) => format!("found {} values", values.len()),
                _ => format!("found {}", node.to_json()),
            };
            let message = format!("{found}, expected a list of {count}: a value for each key of the line");
            Err(AxisMistake { place: &node.place, problem: Problem::new(message) })
        }
    }
}

/// Refuses keys that have one value for the whole plan.
fn check_can_be_swept(names: &[&str]) -> Result<(), Problem> {
    match names {
        [name @ ("name" | "repeat" | "seed" | "sweep" | "thresholds"), ..] => {
            Err(Problem::new(format!("`{name}` is the same for all cells; it cannot be swept")))
        }
        ["flow", "*", "transport", ..] => {
            Err(Problem::new("the transports of several flows cannot be swept together")
                .with_help("a comparison is of one flow: `flow.NAME.transport`"))
        }
        _ => Ok(()),
    }
}

/// Reads a list of values that are all different. There is at least one.
fn read_values(node: &Node) -> Result<&[Node], AxisMistake<'_>> {
    let mistake = |place, problem| Err(AxisMistake { place, problem });
    let Value::List(values) = &node.value else {
        let mixed_shares = node.as_text().and_then(quantity::mixed_shares);
        return mistake(&node.place, mixed_shares.unwrap_or_else(|| wrong(node, "a list of values")));
    };
    if values.is_empty() {
        return mistake(&node.place, Problem::new("found an empty list, expected at least one value"));
    }
    let mut earlier_values = BTreeSet::new();
    for value in values {
        let json = value.to_json().to_string();
        if earlier_values.contains(&json) {
            let problem = Problem::new(format!("found {json} twice, expected each value once"));
            return mistake(&value.place, problem);
        }
        earlier_values.insert(json);
    }
    Ok(values)
}

/// Writes a value in a label, without the quotes of a text.
fn label_of(value: &Node) -> String {
    match value.as_text() {
        Some(text) => text.to_owned(),
        None => value.to_json().to_string(),
    }
}
