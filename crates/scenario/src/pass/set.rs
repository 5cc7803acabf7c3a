//! What the command line sets; and changes to the tree by key, which a sweep makes too.
//!
//! A key is a path of names with points between, as in `path.up.loss`. Shorthands on the way are written out
//! first: a preset's name becomes its tables, `transport = "tcp"` becomes `{ kind = "tcp" }`.
//!
//! [`keys`] writes out a key with `*`, such as `path.*.loss`: both directions of a path, or each link or
//! flow.

use crate::bound;
use crate::diagnostic::{Log, Place};
use crate::keys::ROOT;
use crate::names::{unknown_key, unknown_name};
use crate::options::{Setting, name_of_file};
use crate::preset::preset;
use crate::quantity::{Problem, percentage};
use crate::read;
use crate::reading::Reading;
use crate::spec::{Kind, TableSpec, Tagged};
use crate::tree::{self, Entry, Node, Table, Value, split};

/// `root` as the command line changes it. A scenario without a name has its file's, and the name of a path is
/// written out as its tables.
pub(crate) fn set_options(mut root: Table, reading: &mut Reading<'_>) -> Table {
    let Reading { source, options, labels, log, .. } = reading;
    for Setting { key, value: text, option } in &options.set {
        let place = Place::Option(labels.len());
        labels.push(option.clone());
        let value =
            tree::parse_value(text, &place).unwrap_or_else(|| Node::text(text.as_str(), place.clone()));
        if let Err(problem) = set_option(&mut root, key, value, &place, log) {
            log.mistake(&place, key, problem.message, problem.help);
        }
    }
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
        // No integer of TOML: the resolved form has it as text.
        *value = Value::Text(core::mem::take(text));
    }
    if let Some(path) = root.get_mut("path") {
        expand_path(path);
    }
    root
}

/// Sets `key`, which `place` of the command line names. Lines of the sweep over a key that this sets are left
/// out.
fn set_option(root: &mut Table, key: &str, value: Node, place: &Place, log: &mut Log) -> Result<(), Problem> {
    let names = split(key);
    if let ["sweep", swept @ ..] = names.as_slice() {
        // A `*` that matches nothing is a mistake of the sweep, which is read later.
        let keys = keys(root, swept).unwrap_or_default();
        leave_out(root, &keys, |line| matches!(line, Place::File(_)));
        return set(root, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), value);
    }
    let keys = keys(root, &names)?;
    for line in leave_out(root, &keys, |_| true) {
        log.warning(place, &line, "the sweep over this key is left out");
    }
    keys.iter().try_for_each(|key| set(root, key, value.clone()))
}

/// Takes the lines that sweep over one of `keys` out of `[sweep]`, if `fits` holds for their place. Returns
/// their keys as they were written.
fn leave_out(root: &mut Table, keys: &[Vec<String>], fits: fn(&Place) -> bool) -> Vec<String> {
    let Some(table) = root.get("sweep").and_then(Node::as_table) else { return Vec::new() };
    let mut lines = Vec::new();
    flatten(table, "", &mut lines);
    let is_left_out = |key: &str, entry: &Entry| {
        let swept = self::keys(root, &split(key)).unwrap_or_default();
        fits(&entry.place) && swept.iter().any(|key| keys.contains(key))
    };
    let (out, kept): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(key, entry)| is_left_out(key, entry));
    let out: Vec<String> = out.into_iter().map(|(key, _)| key).collect();
    let entries: Vec<Entry> = kept.into_iter().map(|(name, entry)| Entry { name, ..entry.clone() }).collect();
    if out.is_empty() {
        return out;
    }
    if entries.is_empty() {
        root.remove("sweep");
    } else if let Some(Value::Table(table)) = root.get_mut("sweep").map(|node| &mut node.value) {
        table.entries = entries;
    }
    out
}

/// Keys without quotes come as tables in tables: their names are joined again.
pub(crate) fn flatten<'a>(table: &'a Table, before: &str, into: &mut Vec<(String, &'a Entry)>) {
    for entry in &table.entries {
        let key = if before.is_empty() { entry.name.clone() } else { format!("{before}.{}", entry.name) };
        match entry.node.as_table() {
            Some(inner) => flatten(inner, &key, into),
            None => into.push((key, entry)),
        }
    }
}

/// The keys that `names` means, each as its names. `*` in the second place means both directions of the path,
/// or every link or flow that `root` has.
///
/// # Errors
/// If `*` matches nothing, or no key comes after it.
pub(crate) fn keys(root: &Table, names: &[&str]) -> Result<Vec<Vec<String>>, Problem> {
    let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let [first, EVERY, rest @ ..] = names else { return Ok(vec![all(names)]) };
    let each: Vec<String> = match ROOT.key(first).map(|key| &key.kind) {
        Some(Kind::Path(spec)) => spec.keys.iter().map(|key| key.name.to_owned()).collect(),
        Some(Kind::Map(_)) => {
            let table = root.get(first).and_then(Node::as_table);
            table.into_iter().flat_map(|table| &table.entries).map(|entry| entry.name.clone()).collect()
        }
        _ => return Ok(vec![all(names)]),
    };
    if rest.is_empty() {
        return Err(
            Problem::new("found no key after `*`").with_help("as in `path.*.loss`, for both directions")
        );
    }
    if each.is_empty() {
        return Err(Problem::new(format!("there is no {first} for `*` to stand for")));
    }
    Ok(each.into_iter().map(|name| [all(&[first]), vec![name], all(rest)].concat()).collect())
}

/// Puts `value` at a key of the whole scenario, given by its names.
///
/// # Errors
/// The name on the way that does not exist, with the nearest that does.
pub(crate) fn set(root: &mut Table, names: &[String], value: Node) -> Result<(), Problem> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    set_in_table(root, &ROOT, &names, value)
}

fn set_in_table(
    table: &mut Table,
    spec: &'static TableSpec,
    names: &[&str],
    value: Node,
) -> Result<(), Problem> {
    let [first, rest @ ..] = names else { return Ok(()) };
    let Some(key) = spec.key(first) else {
        return Err(unknown_key(first, spec.noun, spec.keys.iter().map(|key| key.name)));
    };
    if rest.is_empty() {
        takes(&key.kind, &value)?;
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

/// Refuses a list for a key of one value, which is checked here because a list is probably meant as a sweep.
fn takes(kind: &Kind, value: &Node) -> Result<(), Problem> {
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
        Kind::Table(spec) => set_in_table(become_table(node), spec, names, value),
        Kind::Path(spec) => {
            expand_path(node);
            set_in_table(become_table(node), spec, names, value)
        }
        Kind::Tagged(tagged) => {
            expand_tagged(node, tagged);
            set_in_tagged(node, tagged, names, value)
        }
        Kind::Map(spec) => {
            let [first, rest @ ..] = names else { return Ok(()) };
            let entries = become_table(node);
            let Some(inner) = entries.get_mut(first) else {
                let names: Vec<_> = entries.entries.iter().map(|entry| entry.name.clone()).collect();
                return Err(unknown_name(first, name, &names));
            };
            if rest.is_empty() {
                *inner = value;
                return Ok(());
            }
            set_in_table(become_table(inner), spec, rest, value)
        }
        Kind::List(spec) => {
            let [first, rest @ ..] = names else { return Ok(()) };
            let tables = match &mut node.value {
                Value::List(tables) => tables.as_mut_slice(),
                _ => &mut [],
            };
            let count = tables.len();
            let number = first.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let Some(inner) = number.and_then(|number| tables.get_mut(number)) else {
                let message =
                    format!("found `{name}.{first}`, expected the number of a [[{name}]], from 1 to {count}");
                let none = format!("the scenario has no [[{name}]] that `{name}.{first}` could mean");
                return Err(Problem::new(if count == 0 { none } else { message }));
            };
            if rest.is_empty() {
                *inner = value;
                return Ok(());
            }
            set_in_table(become_table(inner), spec, rest, value)
        }
        Kind::Sweep => {
            // Beside a line over the same key, which the sweep's own part refuses.
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
        // The parts of a range or a step.
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

fn no_keys(name: &str) -> Problem {
    Problem::new(format!("`{name}` has no keys of its own"))
}

fn set_in_tagged(
    node: &mut Node,
    tagged: &'static Tagged,
    names: &[&str],
    value: Node,
) -> Result<(), Problem> {
    let [first, rest @ ..] = names else { return Ok(()) };
    let keys = || tagged.variants.iter().flat_map(|variant| variant.keys).filter(|key| key.name == *first);
    if *first != "kind" && keys().next().is_none() {
        let known = tagged.variants.iter().flat_map(|variant| variant.keys).map(|key| key.name);
        let mut known: Vec<_> = known.chain(["kind"]).collect();
        known.sort_unstable();
        known.dedup();
        return Err(unknown_key(first, tagged.noun, known.iter().copied()));
    }
    let table = become_table(node);
    match (rest, keys().next()) {
        ([], key) => {
            key.map_or(Ok(()), |key| takes(&key.kind, &value))?;
            table.set(first, value);
            Ok(())
        }
        (_, Some(key)) => {
            if table.get(first).is_none() && matches!(key.kind, Kind::Table(_) | Kind::Tagged(_)) {
                table.set(first, Node::new(Value::Table(Table::default()), value.place.clone()));
            }
            match table.get_mut(first) {
                Some(inner) => set_in_node(inner, &key.kind, first, rest, value),
                None => Err(no_keys(first)),
            }
        }
        _ => Err(no_keys(first)),
    }
}

/// The name that matches every name.
const EVERY: &str = "*";

/// Writes a preset's name out as its tables; leaves what is no preset's name as it is.
pub(crate) fn expand_path(node: &mut Node) {
    let Some(preset) = node.as_text().and_then(preset) else { return };
    // A test reads every preset: its text has no mistakes.
    let table = tree::parse(preset.text, &mut Log::default());
    let place = node.place.clone();
    node.value = Value::Table(table);
    node.set_place(&place);
}

/// Writes the shorthands of a tagged table out: its kind alone, or a bare number.
pub(crate) fn expand_tagged(node: &mut Node, tagged: &Tagged) {
    let place = node.place.clone();
    let mut table = Table::default();
    match (&node.value, tagged.number) {
        (Value::Text(share), Some((kind, key))) if percentage(share).is_some() => {
            table.set("kind", Node::text(kind, place));
            table.set(key, node.clone());
        }
        (Value::Text(kind), _) => table.set("kind", Node::text(kind.as_str(), place)),
        (Value::Number(_), Some((kind, key))) => {
            table.set("kind", Node::text(kind, place));
            table.set(key, node.clone());
        }
        _ => return,
    }
    node.value = Value::Table(table);
}

/// The table that `node` is, or becomes in place of something that has no keys.
fn become_table(node: &mut Node) -> &mut Table {
    if node.as_table().is_none() {
        node.value = Value::Table(Table::default());
    }
    match &mut node.value {
        Value::Table(table) => table,
        _ => unreachable!("it was made a table just now"),
    }
}
