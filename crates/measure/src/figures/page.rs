//! The table of figures for readers: a Markdown table for each kind of entry, the descriptions of the schema
//! of summary.json, and the list that the Python package has. Tests hold docs/reference and that list against
//! the table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use talkpath_config::Codec;

use super::clock::CLOCK;
use super::flow::FLOW;
use super::group::GROUP;
use super::link::LINK;
use super::machine::MACHINE;
use super::row::{Figure, Getter, Table};
use super::unit::Scale;
use crate::summary::JudgedBy;

/// A row, whatever it is a figure of.
struct Entry {
    path: &'static str,
    /// `count`, `number`, `flag`, `word` or `counts by name`.
    kind: &'static str,
    unit: &'static str,
    title: String,
    definition: &'static str,
    better: &'static str,
    /// From the number in summary.json to the one that is shown.
    factor: f64,
    decimals: Option<usize>,
}

impl<T: 'static> From<&'static Figure<T>> for Entry {
    fn from(figure: &'static Figure<T>) -> Self {
        let (kind, is_number) = match figure.get {
            Getter::Count(_) => ("count", true),
            Getter::Number(_) => ("number", true),
            Getter::Flag(_) => ("flag", false),
            Getter::Word(_) => ("word", false),
            Getter::Counts(_) => ("counts by name", false),
        };
        let scale = figure.scale();
        Self {
            path: figure.path,
            kind,
            unit: if is_number { figure.unit.name() } else { "" },
            title: figure.title(),
            definition: figure.definition,
            better: figure.better.word(),
            factor: scale.factor,
            decimals: scale.decimals,
        }
    }
}

/// The figures of one kind of thing.
struct KindTable {
    /// What a repetition has of it: `flow`.
    name: &'static str,
    /// Its type in the schema: `FlowSummary`.
    schema_type: &'static str,
    entries: Vec<Entry>,
}

impl KindTable {
    fn new<T: 'static>(name: &'static str, schema_type: &'static str, table: &'static Table<T>) -> Self {
        Self { name, schema_type, entries: table.rows().map(Entry::from).collect() }
    }
}

/// What [`python`] has, flows and groups, stands first.
fn tables() -> [KindTable; 5] {
    [
        KindTable::new("flow", "FlowSummary", &FLOW),
        KindTable::new("group", "GroupSummary", &GROUP),
        KindTable::new("link", "LinkSummary", &LINK),
        KindTable::new("machine", "MachineSummary", &MACHINE),
        KindTable::new("clock", "Clock", &CLOCK),
    ]
}

/// A Markdown table of each kind of entry.
pub fn markdown() -> String {
    let mut out = String::new();
    for KindTable { name, entries, .. } in tables() {
        out.push_str(&format!(
            "### Of a {name}\n\n| figure | unit | meaning | better |\n| --- | --- | --- | --- |\n"
        ));
        for Entry { path, kind, unit, definition, better, .. } in entries {
            let unit = if unit.is_empty() && kind != "number" { kind } else { unit };
            let definition = definition.replace('|', "\\|");
            out.push_str(&format!("| `{path}` | {unit} | {definition} | {better} |\n"));
        }
        out.push('\n');
    }
    out
}

/// What the Python package writes and draws figures by: of each number of a flow or a group its title and how
/// it is scaled, a line each.
pub fn python() -> String {
    let mut lines: BTreeMap<&str, String> = BTreeMap::new();
    for KindTable { entries, .. } in tables().into_iter().take(2) {
        for entry in entries.iter().filter(|entry| entry.is_number()) {
            let Entry { path, title, unit, factor, decimals, better, .. } = entry;
            // The mean of counts is no whole number.
            let decimals = decimals.filter(|_| *unit != "count");
            let mut text =
                json!({ "title": title, "factor": factor, "decimals": decimals, "better": better });
            if let Some(by) = JudgedBy::ALL.into_iter().find(|by| by.path() == *path) {
                text["judged"] = judged(by);
            }
            lines.entry(path).or_insert_with(|| format!("  {}: {text}", json!(path)));
        }
    }
    format!("{{\n{}\n}}\n", Vec::from_iter(lines.into_values()).join(",\n"))
}

/// How a figure by which transports are ranked is written and drawn; the ends of its axis, if it has some.
fn judged(by: JudgedBy) -> Json {
    let Scale { factor, decimals, .. } = by.scale();
    let (least, most) = by.possible();
    let ends = most.is_finite().then_some([least, most]);
    json!({ "title": by.title(), "factor": factor, "decimals": decimals, "ends": ends })
}

/// The words that the Python package's types name, as a module of the package.
pub fn python_words() -> String {
    let codecs: Vec<String> = Codec::ALL.iter().map(|codec| format!("\"{}\"", codec.name())).collect();
    format!(
        "\"\"\"Words that the program knows. Printed by `cargo run -p talkpath-measure --example figure_table words`.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from typing import Literal\n\n\
         Codec = Literal[{}]\n\
         \"\"\"A voice codec.\"\"\"\n",
        codecs.join(", ")
    )
}

/// `schema` with the keys and descriptions of its figures, and a list of all under `figures`. A figure that
/// it lacks gets a property behind that of the row before, and may be null.
///
/// A type that has several meanings, as `DelayMs` of one way and of a round trip, keeps its own description;
/// the list has each figure.
pub fn described(schema: &Json) -> Json {
    let mut schema = schema.clone();
    for KindTable { schema_type, entries, .. } in tables() {
        add_keys(&mut schema, schema_type, &entries);
    }
    let mut found: BTreeMap<(String, &str), BTreeSet<String>> = BTreeMap::new();
    for KindTable { schema_type, entries, .. } in tables() {
        for entry in entries {
            if let Some(place) = place(&schema, schema_type, entry.path) {
                found.entry(place).or_default().insert(entry.description());
            }
        }
    }
    for ((kind, key), descriptions) in found {
        let property = &mut schema["$defs"][kind]["properties"][key];
        if let (Some(property), [description]) =
            (property.as_object_mut(), Vec::from_iter(descriptions).as_slice())
        {
            property.insert("description".to_owned(), json!(description));
        }
    }
    let list = tables().map(|table| (table.name.to_owned(), table.entries.iter().map(Entry::json).collect()));
    schema["figures"] = Json::Object(list.into_iter().collect());
    schema
}

impl Entry {
    /// A sentence for the schema.
    fn description(&self) -> String {
        let Self { definition, unit, better, .. } = self;
        let mut text: String = definition.chars().take(1).flat_map(char::to_uppercase).collect();
        text.extend(definition.chars().skip(1));
        text.push('.');
        // Of a count the definition says what is counted.
        if !unit.is_empty() && *unit != "count" {
            text.push_str(&format!(" Unit: {unit}."));
        }
        match *better {
            "more" => text.push_str(" More is better."),
            "less" => text.push_str(" Less is better."),
            _ => {}
        }
        text
    }

    /// The type of a new key in the schema. Each figure may be unknown.
    fn schema_type(&self) -> [&'static str; 2] {
        let name = match self.kind {
            "count" => "integer",
            "number" => "number",
            "flag" => "boolean",
            "word" => "string",
            _ => "object",
        };
        [name, "null"]
    }

    fn is_number(&self) -> bool {
        matches!(self.kind, "count" | "number")
    }

    fn json(&self) -> Json {
        let Self { path, kind, unit, title, definition, better, factor, decimals } = self;
        let mut entry = Map::new();
        for (key, text) in
            [("path", *path), ("type", kind), ("unit", unit), ("title", title), ("definition", definition)]
        {
            entry.insert(key.to_owned(), json!(text));
        }
        if !better.is_empty() {
            entry.insert("better".to_owned(), json!(better));
        }
        if self.is_number() {
            entry.insert("factor".to_owned(), json!(factor));
            entry.insert("decimals".to_owned(), json!(decimals));
        }
        Json::Object(entry)
    }
}

/// Adds the keys of those `entries` of the type `kind` that `schema` lacks.
fn add_keys(schema: &mut Json, kind: &str, entries: &[Entry]) {
    // By type, the key of the latest row: a new key stands behind it.
    let mut latest: BTreeMap<String, &str> = BTreeMap::new();
    for entry in entries {
        let Some(path) = places(schema, kind, entry.path) else { continue };
        if let Some((owner, key)) = path.last()
            && schema["$defs"][owner]["properties"].get(key).is_none()
        {
            let behind = latest.get(owner).copied();
            add_key(&mut schema["$defs"][owner], behind, key, &json!({ "type": entry.schema_type() }));
        }
        latest.extend(path);
    }
}

/// Adds `key` to a type, behind the key `behind`, or first.
fn add_key(of: &mut Json, behind: Option<&str>, key: &str, property: &Json) {
    if let Some(properties) = of["properties"].as_object_mut() {
        let after = |place: usize| place + 1;
        let at = properties.keys().position(|name| Some(name.as_str()) == behind).map_or(0, after);
        properties.shift_insert(at, key.to_owned(), property.clone());
    }
    if let Some(required) = of["required"].as_array_mut() {
        let at = required.iter().position(|name| name.as_str() == behind).map_or(0, |place| place + 1);
        required.insert(at, json!(key));
    }
}

/// Where the schema has the figure at `path` of the type `kind`: a type in `$defs`, and its key.
fn place(schema: &Json, kind: &str, path: &'static str) -> Option<(String, &'static str)> {
    let (owner, key) = places(schema, kind, path)?.pop()?;
    schema["$defs"][&owner]["properties"].get(key)?;
    Some((owner, key))
}

/// The types in `$defs` on the way to the figure at `path` of the type `kind`, each with the key there. The
/// last key may be missing in the schema.
fn places(schema: &Json, kind: &str, path: &'static str) -> Option<Vec<(String, &'static str)>> {
    let Some((key, rest)) = path.split_once('.') else {
        return Some(vec![(kind.to_owned(), path)]);
    };
    let property = schema["$defs"][kind]["properties"].get(key)?;
    let of_any = || property["anyOf"].as_array().into_iter().flatten().find_map(|it| it["$ref"].as_str());
    let reference = property["$ref"].as_str().or_else(of_any)?;
    let below = places(schema, reference.rsplit('/').next()?, rest)?;
    Some([vec![(kind.to_owned(), key)], below].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/reference/metrics.md");
    const PYTHON: &str = include_str!("../../../../python/talkpath/figures.json");
    const WORDS: &str = include_str!("../../../../python/talkpath/_words.py");
    const SCHEMA: &str = include_str!("../../../../docs/reference/summary.schema.json");

    #[test]
    fn the_page_has_the_table_of_figures() {
        assert!(
            PAGE.contains(markdown().trim_end()),
            "put what `cargo run -p talkpath-measure --example figure_table markdown` prints into docs/reference/metrics.md"
        );
    }

    #[test]
    fn the_python_package_has_each_number_of_a_flow_and_a_group() {
        assert!(
            PYTHON == python(),
            "write what `cargo run -p talkpath-measure --example figure_table python` prints to python/talkpath/figures.json"
        );
        let list: BTreeMap<String, Json> = serde_json::from_str(PYTHON).unwrap();
        assert_eq!(
            (&list["loss_rate"]["factor"], &list["jain_index"]["better"]),
            (&json!(100.0), &json!("more"))
        );
    }

    #[test]
    fn the_python_package_has_the_words_of_codecs() {
        assert!(
            WORDS == python_words(),
            "write what `cargo run -p talkpath-measure --example figure_table words` prints to python/talkpath/_words.py"
        );
    }

    #[test]
    fn a_figure_that_the_schema_lacks_is_added_behind_the_row_before() {
        let whole: Json = serde_json::from_str(SCHEMA).unwrap();
        let mut lacking = whole.clone();
        for (kind, key) in [("FlowSummary", "in_time"), ("DelayMs", "p95"), ("LinkSummary", "discipline")] {
            let of = &mut lacking["$defs"][kind];
            of["properties"].as_object_mut().unwrap().shift_remove(key).unwrap();
            of["required"].as_array_mut().unwrap().retain(|name| name != key);
        }
        // By hand the types of two of the three are narrower, because they are never null.
        let mut expected = whole;
        expected["$defs"]["DelayMs"]["properties"]["p95"]["type"] = json!(["number", "null"]);
        expected["$defs"]["LinkSummary"]["properties"]["discipline"]["type"] = json!(["string", "null"]);
        let added = described(&lacking);
        for kind in ["FlowSummary", "LinkSummary", "DelayMs"] {
            let (added, expected) = (&added["$defs"][kind], &expected["$defs"][kind]);
            assert_eq!(added["required"], expected["required"], "{kind}");
            let keys = |of: &Json| Vec::from_iter(of["properties"].as_object().unwrap().keys().cloned());
            assert_eq!(keys(added), keys(expected), "{kind}");
            for key in keys(expected) {
                assert_eq!(
                    added["properties"][&key]["type"], expected["properties"][&key]["type"],
                    "{kind}.{key}"
                );
            }
        }
    }

    #[test]
    fn the_schema_has_each_figure_with_its_description() {
        let schema: Json = serde_json::from_str(SCHEMA).unwrap();
        assert!(
            described(&schema) == schema,
            "write what `cargo run -p talkpath-measure --example figure_table schema` prints to \
             docs/reference/summary.schema.json"
        );
        for KindTable { schema_type, entries, .. } in tables() {
            for entry in entries {
                let place = place(&schema, schema_type, entry.path);
                assert!(place.is_some(), "{schema_type} has no {}", entry.path);
            }
        }
    }
}
