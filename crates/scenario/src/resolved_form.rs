//! Makes the resolved form of a scenario: its file as TOML, with the defaults written out.
//!
//! The resolved form has only the defaults that all cells of a sweep share ([`keep_common`]). A default that
//! follows a swept key, such as the `min_rto` of a stack, is left out, so that it follows the key again when
//! the resolved form is loaded.
//!
//! The text has the shape of the examples in the documentation. Single values come first. Tables follow for
//! the far clock, the kernel, each direction of the path, each link, each flow, and the sweep. A table inside
//! a flow or a link is written in one line if it is short.

use toml_edit::{Array, DocumentMut, InlineTable, Item};

use crate::spec::TAG;
use crate::tree::{Node, Table, Value};

/// Returns the resolved form as TOML. It has the keys of the file `root`, and the values that all cells share
/// (`common`) except for the `swept` keys.
pub(crate) fn resolved_form<'a>(
    root: &Table,
    mut common: Table,
    swept: impl Iterator<Item = &'a [String]>,
) -> String {
    let mut file_keys = root.clone();
    let sweep = file_keys.remove("sweep");
    for names in swept {
        remove_key(&mut common, names);
    }
    overlay(&mut common, &file_keys);
    if let Some(sweep) = sweep {
        common.set("sweep", sweep);
    }
    to_toml(&common)
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
    table.get(TAG).is_some_and(|tag| match &node.value {
        Value::Text(_) => tag.is_same(node),
        _ => true,
    })
}

/// Writes a whole scenario.
fn to_toml(root: &Table) -> String {
    let mut document = DocumentMut::new();
    for entry in &root.entries {
        let item = match entry.node.as_table() {
            None => tables(&entry.node).unwrap_or_else(|| Item::Value(value(&entry.node))),
            Some(sweep) if entry.name == "sweep" => Item::Table(in_line(sweep)),
            Some(table) if table.entries.iter().all(|entry| entry.node.as_table().is_some()) => {
                Item::Table(sections(table))
            }
            Some(keys) => Item::Table(section(keys)),
        };
        document.insert(&entry.name, item);
    }
    document.to_string()
}

/// Returns a list of tables as one table after the other: `[[change]]`. `None` if `node` is anything else.
fn tables(node: &Node) -> Option<Item> {
    let Value::List(list) = &node.value else { return None };
    let tables: Option<Vec<_>> = list.iter().map(|node| node.as_table().map(section)).collect();
    let tables = tables.filter(|tables| !tables.is_empty())?;
    Some(Item::ArrayOfTables(tables.into_iter().collect()))
}

/// Writes the tables of `table`: `[flow.call]`, but no header `[flow]`.
fn sections(table: &Table) -> toml_edit::Table {
    let mut sections = toml_edit::Table::new();
    // The header of an empty table is all that shows that the table is there.
    sections.set_implicit(!table.entries.is_empty());
    for entry in &table.entries {
        if let Some(keys) = entry.node.as_table() {
            sections.insert(&entry.name, Item::Table(section(keys)));
        }
    }
    sections
}

/// Writes one table. A table inside it that is too long for a line follows as a table of its own.
fn section(keys: &Table) -> toml_edit::Table {
    let mut section = toml_edit::Table::new();
    for entry in &keys.entries {
        let value = value(&entry.node);
        let item = match entry.node.as_table() {
            Some(table) if value.to_string().len() > LONGEST_LINE => Item::Table(in_line(table)),
            _ => Item::Value(value),
        };
        section.insert(&entry.name, item);
    }
    section
}

fn in_line(keys: &Table) -> toml_edit::Table {
    let mut table = toml_edit::Table::new();
    for entry in &keys.entries {
        table.insert(&entry.name, Item::Value(value(&entry.node)));
    }
    table
}

fn value(node: &Node) -> toml_edit::Value {
    match &node.value {
        Value::Text(text) => text.into(),
        Value::Number(text) | Value::Date(text) => as_written(text),
        Value::Flag(flag) => (*flag).into(),
        Value::List(list) => list.iter().map(value).collect::<Array>().into(),
        Value::Table(table) => {
            let pairs = table.entries.iter().map(|entry| (entry.name.as_str(), value(&entry.node)));
            pairs.collect::<InlineTable>().into()
        }
    }
}

/// Writes a number or a date with the digits of the file. An integer beyond 64 bits becomes a float.
fn as_written(text: &str) -> toml_edit::Value {
    let value = text.parse::<toml_edit::Value>().or_else(|_| text.parse::<f64>().map(Into::into));
    value.unwrap_or_else(|_| text.into())
}

/// The longest table that is written in one line, in characters. We chose 120.
const LONGEST_LINE: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Log;

    #[test]
    fn each_kind_of_value_is_written_as_the_examples_are() {
        let text = concat!(
            "name = \"a\"\nseed = 9223372036854775807\nshare = 1e-3\non = 1979-05-27\nlist = []\n\n",
            "[flow.call]\ntransport = { kind = \"tcp\", \"a b\" = [1, 2.50] }\nstart = {}\n\n",
            "[flow.\"call 2\"]\necho = true\n\n",
            "[far_clock]\noffset = \"1 s\"\nskew = 4\n\n",
            "[[change]]\nat = \"5 s\"\nqueue = { limit = 3 }\n\n[[change]]\nat = \"9 s\"\n\n",
            "[sweep]\n\"flow.call.transport\" = [\"udp\", { kind = \"tcp\" }]\n",
        );
        let mut log = Log::default();
        assert_eq!(to_toml(&crate::tree::parse(text, &mut log)), text);
        assert!(log.is_clean());
    }

    #[test]
    fn a_long_table_in_a_flow_becomes_a_table_of_its_own_behind_the_rest() {
        let long = "x".repeat(LONGEST_LINE);
        let text = format!("a = 1\n\n[flow.call]\nworkload = {{ text = \"{long}\" }}\nstart = 2\n");
        let expected =
            format!("a = 1\n\n[flow.call]\nstart = 2\n\n[flow.call.workload]\ntext = \"{long}\"\n");
        assert_eq!(to_toml(&crate::tree::parse(&text, &mut Log::default())), expected);
    }

    #[test]
    fn any_text_reads_back() {
        for text in ["plain", "\"quoted\" \\ back", "line\nbreak\ttab\r", "µ \u{7f} \u{1} \u{85}", "{n}", ""]
        {
            let mut table = Table::default();
            table.set("name", Node::text(text, crate::diagnostic::Place::START));
            let mut log = Log::default();
            let read = crate::tree::parse(&to_toml(&table), &mut log);
            assert!(log.is_clean(), "{}", to_toml(&table));
            assert_eq!(read.get("name").and_then(Node::as_text), Some(text));
        }
    }
}
