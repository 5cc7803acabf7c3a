//! Writes the defaults of all keys into a tree, in the order of the key tables.
//!
//! It also makes the *resolved form*, the file with its defaults. The resolved form has only the defaults
//! that all cells of a sweep share ([`keep_common`]). A default that follows a swept key, such as the
//! `min_rto` of a stack, is left out, so that it follows the key again when the resolved form is loaded.

use super::set::expand_tagged;
use crate::diagnostic::{Log, Place};
use crate::keys::ROOT;
use crate::read::{self, KeyPath};
use crate::reading::Reading;
use crate::spec::{Default, Key, Kind, TableSpec, Tagged};
use crate::transports;
use crate::tree::{Entry, Meaning, Node, Table, Value, parse_value};

/// Fills a cell with its defaults.
pub(crate) fn fill_cell(cell: Table, _: &mut Reading<'_>) -> Table {
    fill_table(cell, &ROOT, &Place::START)
}

/// Fills a table with the defaults of `spec`. Keys that `spec` does not have are removed.
pub(crate) fn fill_table(table: Table, spec: &'static TableSpec, place: &Place) -> Table {
    fill_keys(table, spec.keys, place)
}

fn fill_keys(mut table: Table, keys: &'static [Key], place: &Place) -> Table {
    let mut filled = Table::default();
    for key in keys {
        match table.take(key.name) {
            Some(entry) => {
                filled.entries.push(Entry { node: fill_value(entry.node, &key.kind), ..entry });
            }
            None => {
                if let Default::Is(text) = key.default {
                    set_default(&mut filled, key, text, place);
                }
            }
        }
    }
    filled
}

/// Sets `key` to its default `text`, with its meaning.
fn set_default(table: &mut Table, key: &'static Key, text: &str, place: &Place) {
    let Some(node) = parse_value(text, place) else { return };
    let mut node = fill_value(node, &key.kind);
    // A test reads the default of every key, so it has no mistakes.
    if let Some(meaning) = read::meaning(&node, &key.kind, KeyPath::ROOT, &mut Log::default()) {
        node.meaning = Some(meaning);
    }
    node.is_default = true;
    table.set(key.name, node);
}

/// Fills a value of this kind with the defaults of the tables inside.
pub(crate) fn fill_value(mut node: Node, kind: &Kind) -> Node {
    if let Kind::Tagged(tagged) = kind {
        expand_tagged(&mut node, tagged);
    }
    let value = match (kind, node.value) {
        (Kind::Table(spec) | Kind::Path(spec), Value::Table(inner)) => {
            Value::Table(fill_table(inner, spec, &node.place))
        }
        (Kind::Map(spec), Value::Table(inner)) => {
            let entries = inner.entries.into_iter().map(|entry| fill_named(entry, spec)).collect();
            Value::Table(Table { entries })
        }
        (Kind::List(spec), Value::List(list)) => {
            let filled = |item: Node| match item.value {
                Value::Table(inner) => {
                    let value = Value::Table(fill_table(inner, spec, &item.place));
                    Node { value, place: item.place, meaning: item.meaning, is_default: item.is_default }
                }
                _ => item,
            };
            Value::List(list.into_iter().map(filled).collect())
        }
        (Kind::Tagged(tagged), Value::Table(inner)) => return fill_tagged(inner, tagged, node.place),
        (_, value) => value,
    };
    Node { value, ..node }
}

/// Fills a table that has a name, such as `[flow.call]`.
fn fill_named(mut entry: Entry, spec: &'static TableSpec) -> Entry {
    if let Value::Table(inner) = &mut entry.node.value {
        *inner = fill_table(core::mem::take(inner), spec, &entry.place);
    }
    entry
}

/// Fills the table of a variant. A table without a known `kind` stays as it is.
fn fill_tagged(table: Table, tagged: &'static Tagged, place: Place) -> Node {
    let variant = table.get("kind").and_then(Node::as_text).and_then(|kind| tagged.variant(kind));
    let (Some(variant), Some(kind)) = (variant, table.get("kind").cloned()) else {
        return Node::new(Value::Table(table), place);
    };
    let mut filled = Table::default();
    filled.set("kind", kind);
    filled.entries.extend(fill_keys(table, variant.keys, &place).entries);
    if variant.keys.iter().any(|key| matches!(key.default, Default::Follows(_))) {
        for (name, text) in transports::defaults(variant.name, &filled) {
            if filled.get(name).is_none()
                && let Some(key) = variant.key(name)
            {
                set_default(&mut filled, key, &text, &place);
            }
        }
        let position = |name: &str| variant.keys.iter().position(|key| key.name == name);
        filled.entries.sort_by_key(|entry| position(&entry.name));
    }
    Node { meaning: Some(Meaning::Variant(variant)), ..Node::new(Value::Table(filled), place) }
}

/// Returns the resolved form. It has the keys of the file `root`, and the values that all cells share
/// (`common`) except for the `swept` keys.
pub(crate) fn resolved<'a>(
    root: &Table,
    mut common: Table,
    swept: impl Iterator<Item = &'a [String]>,
) -> Table {
    let mut file_keys = root.clone();
    let sweep = file_keys.remove("sweep");
    for names in swept {
        remove_key(&mut common, names);
    }
    overlay(&mut common, &file_keys);
    if let Some(sweep) = sweep {
        common.set("sweep", sweep);
    }
    common
}

/// Removes the values of `common` that differ in `other`, or that `other` does not have.
pub(crate) fn keep_common(common: &mut Table, other: &Table) {
    common.entries.retain_mut(|entry| match (other.get(&entry.name), &mut entry.node.value) {
        (Some(Node { value: Value::Table(other), .. }), Value::Table(inner)) => {
            keep_common(inner, other);
            true
        }
        (Some(other), _) => other.is_same(&entry.node),
        (None, _) => false,
    });
}

/// Removes the key with these names, if it is there.
fn remove_key(table: &mut Table, names: &[String]) {
    match names {
        [] => {}
        [name] => drop(table.remove(name)),
        [name, rest @ ..] => {
            if let Some(Value::Table(inner)) = table.get_mut(name).map(|node| &mut node.value) {
                remove_key(inner, rest);
            }
        }
    }
}

/// Sets the keys of the file in `common`, including a value that a sweep replaces.
fn overlay(common: &mut Table, file_keys: &Table) {
    for entry in &file_keys.entries {
        match (common.get_mut(&entry.name).map(|node| &mut node.value), &entry.node.value) {
            (Some(Value::Table(inner)), Value::Table(file_keys)) => overlay(inner, file_keys),
            // The file has a shorthand, and `common` has its table.
            (Some(Value::Table(inner)), Value::Text(_) | Value::Number(_))
                if is_written_out(inner, &entry.node) => {}
            _ => common.set(&entry.name, entry.node.clone()),
        }
    }
}

/// Whether `table` is the shorthand `node` written out.
fn is_written_out(table: &Table, node: &Node) -> bool {
    table.get("kind").is_some_and(|kind| match &node.value {
        Value::Text(_) => kind.is_same(node),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::check::{self, Checks};
    use crate::tree;

    /// Collects the keys of `table` whose values should have a meaning and have none.
    fn without_meaning(table: &Table, keys: &'static [Key], above: &str, into: &mut Vec<String>) {
        for key in keys {
            let Some(node) = table.get(key.name) else { continue };
            let at = format!("{above}.{}", key.name);
            match (key.kind, node.meaning, node.as_table()) {
                (Kind::Table(spec) | Kind::Path(spec), _, Some(inner)) => {
                    without_meaning(inner, spec.keys, &at, into);
                }
                (Kind::Map(spec), _, Some(inner)) => {
                    for inner in inner.entries.iter().filter_map(|entry| entry.node.as_table()) {
                        without_meaning(inner, spec.keys, &at, into);
                    }
                }
                (Kind::Tagged(_), Some(Meaning::Variant(variant)), Some(inner)) => {
                    without_meaning(inner, variant.keys, &at, into);
                }
                (_, Some(_), _) => {}
                (_, None, _) => into.push(at),
            }
        }
    }

    #[test]
    fn every_value_and_every_default_of_a_scenario_without_mistakes_has_its_meaning() {
        for variant in transports::TRANSPORT.variants {
            let text = format!(
                "duration = \"1 s\"\nkernel = \"debian-12\"\npath = {{ up = {{ loss = 0.1, queue = \"fq\" }}, \
                 down = {{ jitter = {{ kind = \"pareto\", mean = \"1 ms\" }} }} }}\n[far_clock]\n\
                 [flow.a]\ncount = 2\nstart = {{ from = \"0 s\", step = \"1 ms\" }}\n\
                 transport = \"{}\"\nworkload = \"voice\"\n",
                variant.name
            );
            let mut log = Log::default();
            let root = check::check(tree::parse(&text, &mut log), &ROOT, Checks::ALL, &mut log);
            let filled = fill_table(root, &ROOT, &Place::START);
            let mut without = Vec::new();
            without_meaning(&filled, ROOT.keys, "", &mut without);
            assert_eq!(without, Vec::<String>::new(), "{}", variant.name);
        }
    }
}
