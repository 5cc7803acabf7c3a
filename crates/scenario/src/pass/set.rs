//! Sets keys in the tree of a scenario, for the command line and for the cells of a sweep.
//!
//! - A *key* is the names from the root to a value, with points between them: `path.up.loss`.
//! - A *shorthand* is a value in place of a table: the name of a preset, or `transport = "tcp"`. Before a key
//!   inside is set, the shorthand is written out: `{ kind = "tcp" }`.
//! - `*` in the second place of a key stands for every name: both directions of a path, or each link or flow.
//!
//! Begin to read with [`set_options`], then [`set`] and [`expand_star`].

use std::collections::BTreeSet;

use crate::bound;
use crate::diagnostic::{Log, Place};
use crate::keys::ROOT;
use crate::names::unknown_key;
use crate::options::{Setting, name_of_file};
use crate::pass::path_file::{add_changes, expand_path_file, report_lacking_rate};
use crate::preset::preset;
use crate::quantity::{Problem, percentage};
use crate::read;
use crate::read::unknown_name;
use crate::reading::Reading;
use crate::spec::{Key, Kind, TAG, TableSpec, Tagged, Variant};
use crate::tree::{self, CHANGES, Entry, Node, Table, Value, linked_keys, split};

/// Sets the keys of the command line. A scenario without a name gets the name of its file, and a path's name
/// is written out as its tables.
pub(crate) fn set_options(mut root: Table, reading: &mut Reading<'_>) -> Table {
    for Setting { key, value: text, option } in &reading.options.set {
        let place = Place::Option(reading.labels.len());
        reading.labels.push(option.clone());
        let value =
            tree::parse_value(text, &place).unwrap_or_else(|| Node::text(text.as_str(), place.clone()));
        if key.starts_with("path.") || key.starts_with("change.") {
            expand_path_file(&mut root, reading);
        }
        if let Err(problem) = set_option(&mut root, key, value, &place, &mut reading.log) {
            reading.log.mistake(&place, key, problem);
        }
    }
    expand_path_file(&mut root, reading);
    report_lacking_rate(&root, reading);
    let Reading { source, options, labels, .. } = reading;
    for (key, value) in [("seed", options.seed), ("repeat", options.repeat)] {
        if let Some(value) = value {
            let place = Place::Option(labels.len());
            labels.push(format!("--{key} {value}"));
            root.set(key, Node::new(Value::Number(value.to_string()), place));
        }
    }
    if root.get("name").is_none() {
        root.set("name", Node::text(name_of_file(&source.name), Place::START));
    }
    if let Some(Node { value, .. }) = root.get_mut("seed")
        && let Value::Number(text) = value
        && read::as_seed(text).is_some_and(|seed| i64::try_from(seed).is_err())
    {
        // TOML's integers end at 2^63, so the resolved form has the seed as a text.
        *value = Value::Text(core::mem::take(text));
    }
    // If the sweep sets the path, the changes of another preset are in no cell.
    if !sweeps_path(&root) {
        expand_path(&mut root);
    }
    root
}

/// Sets one key of the command line. The lines of the sweep over the same key are removed.
fn set_option(root: &mut Table, key: &str, value: Node, place: &Place, log: &mut Log) -> Result<(), Problem> {
    let names = split(key);
    if let Some(swept) = key.strip_prefix("sweep.") {
        let keys = swept_keys(root, swept);
        remove_sweep_lines(root, &keys, |line| matches!(line, Place::File(_)));
        return set(root, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), value);
    }
    let keys = expand_star(root, &names)?;
    for line in remove_sweep_lines(root, &keys, |_| true) {
        log.warning(place, &line, "the sweep over this key is left out");
    }
    for key in &keys {
        set(root, key, value.clone())?;
    }
    Ok(())
}

/// Removes the lines of `[sweep]` that sweep over one of `keys` and whose place `fits`. Returns the keys of
/// these lines as the file writes them.
fn remove_sweep_lines(root: &mut Table, keys: &[Vec<String>], fits: fn(&Place) -> bool) -> Vec<String> {
    let Some(table) = root.get("sweep").and_then(Node::as_table) else { return Vec::new() };
    let mut lines = Vec::new();
    flatten(table, "", &mut lines);
    let mut removed = Vec::new();
    let mut remaining = Vec::new();
    for (key, entry) in lines {
        let swept_keys = swept_keys(root, &key);
        if fits(&entry.place) && swept_keys.iter().any(|swept| keys.contains(swept)) {
            removed.push(key);
        } else {
            remaining.push(Entry { name: key, ..entry.clone() });
        }
    }
    if removed.is_empty() {
        return removed;
    }
    if remaining.is_empty() {
        root.remove("sweep");
    } else if let Some(Value::Table(table)) = root.get_mut("sweep").map(|node| &mut node.value) {
        table.entries = remaining;
    }
    removed
}

/// Returns the keys that the line `key` of a sweep sets. A `*` that stands for nothing is reported when the
/// sweep is read.
fn swept_keys(root: &Table, key: &str) -> Vec<Vec<String>> {
    linked_keys(key).flat_map(|key| expand_star(root, &split(key)).unwrap_or_default()).collect()
}

/// Collects the lines of a sweep with their keys. TOML reads a key without quotes as tables in tables, so the
/// names are joined again. `parent` is the joined names of the tables around.
pub(crate) fn flatten<'a>(table: &'a Table, parent: &str, lines: &mut Vec<(String, &'a Entry)>) {
    for entry in &table.entries {
        let key = if parent.is_empty() { entry.name.clone() } else { format!("{parent}.{}", entry.name) };
        match entry.node.as_table() {
            Some(inner) => flatten(inner, &key, lines),
            None => lines.push((key, entry)),
        }
    }
}

/// Returns the keys that `names` stands for. Without a `*` that is one key, and each key is a list of names.
///
/// # Errors
/// Returns the reason if `*` stands for nothing, or if no name follows it.
pub(crate) fn expand_star(root: &Table, names: &[&str]) -> Result<Vec<Vec<String>>, Problem> {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let [first, EVERY, rest @ ..] = names else { return Ok(vec![owned(names)]) };
    let star_names: Vec<String> = match ROOT.key(first).map(|key| &key.kind) {
        Some(Kind::Path(spec)) => spec.keys.iter().map(|key| key.name.to_owned()).collect(),
        Some(Kind::Map(_)) => {
            let table = root.get(first).and_then(Node::as_table);
            table.into_iter().flat_map(|table| &table.entries).map(|entry| entry.name.clone()).collect()
        }
        _ => return Ok(vec![owned(names)]),
    };
    if rest.is_empty() {
        return Err(
            Problem::new("found no key after `*`").with_help("as in `path.*.loss`, for both directions")
        );
    }
    if star_names.is_empty() {
        return Err(Problem::new(format!("there is no {first} for `*` to stand for")));
    }
    Ok(star_names.into_iter().map(|name| [owned(&[first]), vec![name], owned(rest)].concat()).collect())
}

/// Sets one key of the whole scenario, given by its names.
///
/// # Errors
/// Returns the first name that does not exist, with the most similar name that does.
pub(crate) fn set(root: &mut Table, names: &[String], value: Node) -> Result<(), Problem> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if let ["path", _, ..] = names.as_slice() {
        expand_path(root);
    }
    set_in_table(root, &ROOT, &names, value)
}

fn set_in_table(table: &mut Table, spec: &TableSpec, names: &[&str], value: Node) -> Result<(), Problem> {
    let unknown = |name: &str| unknown_key(name, spec.noun, spec.keys.iter().map(|key| key.name));
    set_key(table, |name| spec.key(name), unknown, names, value)
}

/// Sets a key of a tagged table, which may be one of any variant, because the variant may follow.
fn set_in_tagged(node: &mut Node, tagged: &Tagged, names: &[&str], value: Node) -> Result<(), Problem> {
    expand_tagged(node, tagged);
    let table = become_table(node);
    if let [TAG, rest @ ..] = names {
        if !rest.is_empty() {
            return Err(no_keys(TAG));
        }
        table.set(TAG, value);
        return Ok(());
    }
    let unknown = |name: &str| {
        let keys = tagged.variants.iter().flat_map(|variant| variant.keys);
        let known: BTreeSet<_> = keys.map(|key| key.name).chain([TAG]).collect();
        unknown_key(name, tagged.noun, known.iter().copied())
    };
    set_key(table, |name| tagged.any_key(name), unknown, names, value)
}

/// Sets a key of `table`, or a key inside it. `find_key` describes the keys of the table, and `unknown` is
/// the problem of any other key.
fn set_key(
    table: &mut Table,
    find_key: impl Fn(&str) -> Option<&'static Key>,
    unknown: impl Fn(&str) -> Problem,
    names: &[&str],
    value: Node,
) -> Result<(), Problem> {
    let [first, rest @ ..] = names else { return Ok(()) };
    let key = find_key(first).ok_or_else(|| unknown(first))?;
    if rest.is_empty() {
        check_single_value(&key.kind, &value)?;
        table.set(first, value);
        return Ok(());
    }
    if table.get(first).is_none() {
        table.set(first, Node::new(Value::Table(Table::default()), value.place.clone()));
    }
    match table.get_mut(first) {
        Some(node) => set_in_node(node, &key.kind, first, rest, value),
        None => Ok(()),
    }
}

/// Refuses a list for a key of one value. It is probably meant as a sweep, so the help says how to write one.
fn check_single_value(kind: &Kind, value: &Node) -> Result<(), Problem> {
    match (kind, &value.value) {
        (Kind::Names(_) | Kind::Thresholds | Kind::List(_), _) => Ok(()),
        (_, Value::List(_)) => Err(Problem::new("found a list, expected one value").with_help(
            "to run a cell with each value of a list: `--sweep KEY=A,B`, or `\"KEY\" = [A, B]` under [sweep]",
        )),
        _ => Ok(()),
    }
}

fn set_in_node(
    node: &mut Node,
    kind: &'static Kind,
    name: &str,
    names: &[&str],
    value: Node,
) -> Result<(), Problem> {
    match kind {
        Kind::Table(spec) | Kind::Path(spec) => set_in_table(become_table(node), spec, names, value),
        Kind::Tagged(tagged) => set_in_tagged(node, tagged, names, value),
        Kind::Map(spec) => set_in_map(node, spec, name, names, value),
        Kind::List(spec) => set_in_list(node, spec, name, names, value),
        Kind::Sweep => {
            // A second line over the same key is reported when the sweep is read.
            let (name, place) = (names.join("."), value.place.clone());
            become_table(node).entries.push(Entry { name, place, node: value });
            Ok(())
        }
        Kind::Thresholds => {
            bound::add(become_table(node), &names.join("."), value);
            Ok(())
        }
        Kind::LinkRate { .. } if names == ["trace"] => {
            become_table(node).set("trace", value);
            Ok(())
        }
        // The parts of a range, a step or a tick.
        _ => match (&mut node.value, names) {
            (Value::Table(table), [part @ ("from" | "to" | "step" | "tick")])
                if table.get(part).is_some() =>
            {
                table.set(part, value);
                Ok(())
            }
            _ => Err(no_keys(name)),
        },
    }
}

/// Sets a key of a table with a name, such as `[link.wan]`. `name` is the key of the map, `link`.
fn set_in_map(
    node: &mut Node,
    spec: &TableSpec,
    name: &str,
    names: &[&str],
    value: Node,
) -> Result<(), Problem> {
    let [first, rest @ ..] = names else { return Ok(()) };
    let tables = become_table(node);
    let Some(inner) = tables.get_mut(first) else {
        let known: Vec<_> = tables.entries.iter().map(|entry| entry.name.clone()).collect();
        return Err(unknown_name(first, name, &known));
    };
    set_in_inner(inner, spec, rest, value)
}

/// Sets a key of a table in a list, such as `[[change]]`. The first name is the number of the table, from 1.
/// `name` is the key of the list, `change`.
fn set_in_list(
    node: &mut Node,
    spec: &TableSpec,
    name: &str,
    names: &[&str],
    value: Node,
) -> Result<(), Problem> {
    let [first, rest @ ..] = names else { return Ok(()) };
    let tables = match &mut node.value {
        Value::List(tables) => tables.as_mut_slice(),
        _ => &mut [],
    };
    let count = tables.len();
    let index = first.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let Some(inner) = index.and_then(|index| tables.get_mut(index)) else {
        return Err(Problem::new(if count == 0 {
            format!("the scenario has no [[{name}]] that `{name}.{first}` could mean")
        } else {
            format!("found `{name}.{first}`, expected the number of a [[{name}]], from 1 to {count}")
        }));
    };
    set_in_inner(inner, spec, rest, value)
}

/// Sets a whole table of a map or a list, or a key in it.
fn set_in_inner(inner: &mut Node, spec: &TableSpec, names: &[&str], value: Node) -> Result<(), Problem> {
    if names.is_empty() {
        *inner = value;
        return Ok(());
    }
    set_in_table(become_table(inner), spec, names, value)
}

fn no_keys(name: &str) -> Problem {
    Problem::new(format!("`{name}` has no keys of its own"))
}

/// The name that stands for every name.
const EVERY: &str = "*";

/// Replaces the name of a preset by its tables, and adds its changes to those of the scenario. Any other
/// path stays as it is.
pub(crate) fn expand_path(root: &mut Table) {
    let Some(path) = root.get_mut("path") else { return };
    let Some(preset) = path.as_text().and_then(preset) else { return };
    // A test reads every preset, so its text has no mistakes.
    let mut table = tree::parse(preset.text, &mut Log::default());
    let changes = table.remove(CHANGES);
    let place = path.place.clone();
    path.value = Value::Table(table);
    path.set_place(&place);
    if let Some(mut changes) = changes {
        changes.set_place(&place);
        add_changes(root, changes);
    }
}

/// Whether the sweep sets the whole path, and not keys inside it.
fn sweeps_path(root: &Table) -> bool {
    let lines = root.get("sweep").and_then(Node::as_table).map_or(&[][..], |sweep| &sweep.entries);
    let sets_path = |line: &Entry| linked_keys(&line.name).any(|key| key == "path");
    lines.iter().any(|line| line.node.as_table().is_none() && sets_path(line))
}

/// Replaces the shorthand of a tagged table by the table. The shorthand is the kind alone, a bare number, a
/// percentage, or a table without its kind.
pub(crate) fn expand_tagged(node: &mut Node, tagged: &Tagged) {
    let tag = |variant: &str| Node::text(variant, node.place.clone());
    let table = match (&node.value, tagged.number) {
        (Value::Text(variant), number) if number.is_none() || percentage(variant).is_none() => {
            Table::with_key(TAG, tag(variant))
        }
        (Value::Text(_) | Value::Number(_), Some(number)) => {
            let mut table = Table::with_key(TAG, tag(number.variant));
            table.set(number.key, node.clone());
            table
        }
        (Value::Table(written), _) => {
            let Some(variant) = implied_variant(written, tagged) else { return };
            let mut table = written.clone();
            table.set(TAG, tag(variant.name));
            table
        }
        _ => return,
    };
    node.value = Value::Table(table);
}

/// Returns the variant of a table without `kind`, if a key of the table says it.
pub(crate) fn implied_variant(table: &Table, tagged: &Tagged) -> Option<&'static Variant> {
    let implied = tagged.by_key?;
    let is_implied = table.get(TAG).is_none() && table.get(implied.key).is_some();
    tagged.variant(implied.variant).filter(|_| is_implied)
}

/// Returns the table of `node`. A value that is no table is replaced by an empty one.
fn become_table(node: &mut Node) -> &mut Table {
    if node.as_table().is_none() {
        node.value = Value::Table(Table::default());
    }
    match &mut node.value {
        Value::Table(table) => table,
        _ => unreachable!("the value is a table now"),
    }
}
