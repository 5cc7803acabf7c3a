//! The defaults: a tree with every key written out, in the order of the key tables.
//!
//! Also what the resolved file may say: of the defaults, those that every cell of a sweep shares
//! ([`keep_common`]). One that follows a swept key (a stack's `min_rto`, say) is left to follow it.

use super::set::expand_tagged;
use crate::diagnostic::{Log, Place};
use crate::keys::ROOT;
use crate::read::{self, At};
use crate::reading::Reading;
use crate::spec::{Default, Key, Kind, TableSpec, Tagged};
use crate::transports;
use crate::tree::{Entry, Meaning, Node, Table, Value, parse_value};

/// `cell` with its defaults.
pub(crate) fn fill_cell(cell: Table, _: &mut Reading<'_>) -> Table {
    fill_table(cell, &ROOT, &Place::START)
}

/// `table` with the defaults of `spec`; keys that `spec` does not know are left out.
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

/// Puts the default `text` of `key` into `table`, with what it means.
fn set_default(table: &mut Table, key: &'static Key, text: &str, place: &Place) {
    let Some(node) = parse_value(text, place) else { return };
    let mut node = fill_value(node, &key.kind);
    // A default has no mistakes: a test reads every key's.
    if let Some(meaning) = read::meaning(&node, &key.kind, At::ROOT, &mut Log::default()) {
        node.meaning = Some(meaning);
    }
    node.is_default = true;
    table.set(key.name, node);
}

/// `node`, a value of this kind, with its defaults.
pub(crate) fn fill_value(mut node: Node, kind: &Kind) -> Node {
    if let Kind::Tagged(tagged) = kind {
        expand_tagged(&mut node, tagged);
    }
    let value = match (kind, node.value) {
        (Kind::Table(spec) | Kind::Path(spec), Value::Table(inner)) => {
            Value::Table(fill_table(inner, spec, &node.place))
        }
        (Kind::Map(spec), Value::Table(inner)) => {
            let entries = inner.entries.into_iter().map(|entry| named(entry, spec)).collect();
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

/// A named table of a map, a flow say, with its defaults.
fn named(mut entry: Entry, spec: &'static TableSpec) -> Entry {
    if let Value::Table(inner) = &mut entry.node.value {
        *inner = fill_table(core::mem::take(inner), spec, &entry.place);
    }
    entry
}

/// The table of a variant, with the variant's defaults. Without a variant that is known it stays as it is.
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

/// The file as resolved: what `root` says, and of the defaults those that all cells share (`common`), but for
/// the `swept` keys.
pub(crate) fn resolved<'a>(
    root: &Table,
    mut common: Table,
    swept: impl Iterator<Item = &'a [String]>,
) -> Table {
    let mut written = root.clone();
    let sweep = written.remove("sweep");
    for names in swept {
        take_out(&mut common, names);
    }
    overlay(&mut common, &written);
    if let Some(sweep) = sweep {
        common.set("sweep", sweep);
    }
    common
}

/// Takes out of `common` what `other` does not have alike.
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

/// Takes the key `names` out, if it is there.
fn take_out(table: &mut Table, names: &[String]) {
    match names {
        [] => {}
        [name] => drop(table.remove(name)),
        [name, rest @ ..] => {
            if let Some(Value::Table(inner)) = table.get_mut(name).map(|node| &mut node.value) {
                take_out(inner, rest);
            }
        }
    }
}

/// Puts what the file says over `common`, also a value that a sweep replaces.
fn overlay(common: &mut Table, written: &Table) {
    for entry in &written.entries {
        match (common.get_mut(&entry.name).map(|node| &mut node.value), &entry.node.value) {
            (Some(Value::Table(inner)), Value::Table(written)) => overlay(inner, written),
            // A shorthand that the common part has written out.
            (Some(Value::Table(inner)), Value::Text(_) | Value::Number(_))
                if is_written_out(inner, &entry.node) => {}
            _ => common.set(&entry.name, entry.node.clone()),
        }
    }
}

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

    /// The keys of `table` whose values have no meaning, of those that one value says.
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
