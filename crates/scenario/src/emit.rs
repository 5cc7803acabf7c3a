//! A tree as TOML text.
//!
//! The shape is that of the documentation's examples: single values first, then a table for each end of the
//! path, each link, each flow, and the sweep; what a flow or a link has inside is written in line if it is
//! short.

use core::fmt::Write as _;

use crate::tree::{Node, Table, Value};

/// The whole scenario.
pub(crate) fn scenario(root: &Table) -> String {
    let mut text = String::new();
    for entry in root.entries.iter().filter(|entry| entry.node.as_table().is_none()) {
        assignment(&mut text, &entry.name, &entry.node);
    }
    for entry in &root.entries {
        let Some(table) = entry.node.as_table() else { continue };
        if entry.name == "sweep" {
            header(&mut text, &[&entry.name]);
            for entry in &table.entries {
                assignment(&mut text, &entry.name, &entry.node);
            }
            continue;
        }
        for inner in &table.entries {
            let Some(keys) = inner.node.as_table() else { continue };
            section(&mut text, &[&entry.name, &inner.name], keys);
        }
    }
    text
}

/// One table; what is too long for a line inside it follows as a table of its own.
fn section(text: &mut String, names: &[&str], keys: &Table) {
    header(text, names);
    let is_long = |node: &Node| {
        let mut line = String::new();
        value(&mut line, node);
        node.as_table().is_some() && line.len() > LONGEST_LINE
    };
    for entry in keys.entries.iter().filter(|entry| !is_long(&entry.node)) {
        assignment(text, &entry.name, &entry.node);
    }
    for entry in keys.entries.iter().filter(|entry| is_long(&entry.node)) {
        let names: Vec<_> = names.iter().copied().chain([entry.name.as_str()]).collect();
        header(text, &names);
        for entry in entry.node.as_table().map(|table| table.entries.as_slice()).unwrap_or_default() {
            assignment(text, &entry.name, &entry.node);
        }
    }
}

fn header(text: &mut String, names: &[&str]) {
    let names: Vec<_> = names.iter().map(|name| key(name)).collect();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(text, "\n[{}]", names.join("."));
}

fn assignment(text: &mut String, name: &str, node: &Node) {
    let _ = write!(text, "{} = ", key(name));
    value(text, node);
    text.push('\n');
}

fn value(text: &mut String, node: &Node) {
    match &node.value {
        Value::Text(inner) => string(text, inner),
        Value::Number(inner) | Value::Date(inner) => text.push_str(inner),
        Value::Flag(inner) => text.push_str(if *inner { "true" } else { "false" }),
        Value::List(list) => {
            text.push('[');
            for (index, item) in list.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                value(text, item);
            }
            text.push(']');
        }
        Value::Table(table) if table.entries.is_empty() => text.push_str("{}"),
        Value::Table(table) => {
            text.push_str("{ ");
            for (index, entry) in table.entries.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                text.push_str(&key(&entry.name));
                text.push_str(" = ");
                value(text, &entry.node);
            }
            text.push_str(" }");
        }
    }
}

/// A key, in quotes if it is not a bare key.
fn key(name: &str) -> String {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        return name.to_owned();
    }
    let mut quoted = String::new();
    string(&mut quoted, name);
    quoted
}

/// A basic string (TOML 1.0, "String").
pub(crate) fn string(text: &mut String, inner: &str) {
    text.push('"');
    for c in inner.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c if c.is_control() => drop(write!(text, "\\u{:04X}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
}

/// Longer tables are not written in line.
const LONGEST_LINE: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Log;

    #[test]
    fn any_text_reads_back() {
        for text in ["plain", "\"quoted\" \\ back", "line\nbreak\ttab\r", "µ \u{7f} \u{1} \u{85}", "{n}", ""]
        {
            let mut table = Table::default();
            table.set("name", Node::text(text, crate::diagnostic::Place::START));
            let mut log = Log::default();
            let read = crate::tree::parse(&scenario(&table), &mut log);
            assert!(log.is_clean(), "{}", scenario(&table));
            assert_eq!(read.get("name").and_then(Node::as_text), Some(text));
        }
    }
}
