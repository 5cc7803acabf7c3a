//! Writes the table of figures for readers: a Markdown table for each kind of entry, the descriptions in the
//! schema of summary.json, and the list of the Python package. Tests compare docs/reference and that list
//! with the table.
//!
//! A *figure* is a number, a flag or a word of summary.json, and its *path* is its place there, such as
//! `call.mouth_to_ear_ms.p50`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use talkpath_config::Codec;

use super::clock::CLOCK;
use super::flow::FLOW;
use super::group::GROUP;
use super::link::LINK;
use super::machine::MACHINE;
use super::row::{Figure, Getter, Table};
use super::unit::{Better, Scale};
use crate::summary::JudgedBy;

/// A row of the table of figures, without the type that it is a figure of.
struct Entry {
    path: &'static str,
    value_type: ValueType,
    /// The unit of a number. Empty if there is none.
    unit: &'static str,
    title: String,
    definition: &'static str,
    better: Better,
    /// From the number in summary.json to the number that is shown.
    factor: f64,
    decimals: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Count,
    Number,
    Flag,
    Word,
    CountsByName,
}

impl ValueType {
    const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Number => "number",
            Self::Flag => "flag",
            Self::Word => "word",
            Self::CountsByName => "counts by name",
        }
    }

    /// Returns the type in a JSON Schema.
    const fn json_type(self) -> &'static str {
        match self {
            Self::Count => "integer",
            Self::Number => "number",
            Self::Flag => "boolean",
            Self::Word => "string",
            Self::CountsByName => "object",
        }
    }

    const fn is_number(self) -> bool {
        matches!(self, Self::Count | Self::Number)
    }
}

impl<T: 'static> From<&'static Figure<T>> for Entry {
    fn from(figure: &'static Figure<T>) -> Self {
        let value_type = match figure.get {
            Getter::Count(_) => ValueType::Count,
            Getter::Number(_) => ValueType::Number,
            Getter::Flag(_) => ValueType::Flag,
            Getter::Word(_) => ValueType::Word,
            Getter::Counts(_) => ValueType::CountsByName,
        };
        let scale = figure.scale();
        Self {
            path: figure.path,
            value_type,
            unit: if value_type.is_number() { figure.unit.name() } else { "" },
            title: figure.title(),
            definition: figure.definition,
            better: figure.better,
            factor: scale.factor,
            decimals: scale.decimals,
        }
    }
}

/// The figures of one kind of entry, such as flows.
struct KindTable {
    /// The name of an entry: `flow`.
    name: &'static str,
    /// The type of an entry in the schema: `FlowSummary`.
    schema_type: &'static str,
    entries: Vec<Entry>,
}

impl KindTable {
    fn new<T: 'static>(name: &'static str, schema_type: &'static str, table: &'static Table<T>) -> Self {
        Self { name, schema_type, entries: table.rows().map(Entry::from).collect() }
    }
}

fn flow_table() -> KindTable {
    KindTable::new("flow", "FlowSummary", &FLOW)
}

fn group_table() -> KindTable {
    KindTable::new("group", "GroupSummary", &GROUP)
}

fn all_tables() -> [KindTable; 5] {
    [
        flow_table(),
        group_table(),
        KindTable::new("link", "LinkSummary", &LINK),
        KindTable::new("machine", "MachineSummary", &MACHINE),
        KindTable::new("clock", "Clock", &CLOCK),
    ]
}

/// Returns a Markdown table for each kind of entry.
pub fn markdown() -> String {
    let mut out = String::new();
    for KindTable { name, entries, .. } in all_tables() {
        out.push_str(&format!(
            "### Of a {name}\n\n| figure | unit | meaning | better |\n| --- | --- | --- | --- |\n"
        ));
        for entry in entries {
            let Entry { path, value_type, unit, definition, better, .. } = entry;
            // A number without a unit has an empty cell. A flag or a word has its type there.
            let unit =
                if unit.is_empty() && value_type != ValueType::Number { value_type.name() } else { unit };
            let definition = definition.replace('|', "\\|");
            out.push_str(&format!("| `{path}` | {unit} | {definition} | {} |\n", better.word()));
        }
        out.push('\n');
    }
    out
}

/// Returns what the Python package needs to write and draw the numbers of flows and groups: for each number a
/// line with its title and its scale.
pub fn python() -> String {
    let mut lines: BTreeMap<&str, String> = BTreeMap::new();
    for entry in [flow_table(), group_table()].into_iter().flat_map(|table| table.entries) {
        if !entry.value_type.is_number() {
            continue;
        }
        let Entry { path, title, unit, factor, decimals, better, .. } = entry;
        // The package shows means, and the mean of counts is no whole number.
        let decimals = if unit == "count" { None } else { decimals };
        let mut text =
            json!({ "title": title, "factor": factor, "decimals": decimals, "better": better.word() });
        if let Some(by) = JudgedBy::ALL.into_iter().find(|by| by.path() == Some(path)) {
            text["judged"] = judged_figure(by);
        }
        // A group has some paths of a flow. The flow's entry stays.
        lines.entry(path).or_insert_with(|| format!("  {}: {text}", json!(path)));
    }
    format!("{{\n{}\n}}\n", Vec::from_iter(lines.into_values()).join(",\n"))
}

/// Returns how a figure that ranks transports is written and drawn. `ends` are the ends of its axis, if they
/// are fixed.
fn judged_figure(by: JudgedBy) -> Json {
    let Scale { factor, decimals, .. } = by.scale();
    let (smallest, largest) = by.possible();
    let ends = largest.is_finite().then_some([smallest, largest]);
    json!({ "title": by.title(), "factor": factor, "decimals": decimals, "ends": ends })
}

/// Returns a module of the Python package with the words that its types name.
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

/// Returns `schema` with the keys and descriptions of all figures, and with a list of all figures under
/// `figures`. A figure that the schema lacks gets a property behind the property of the row before, and may
/// be null.
///
/// A type with several meanings keeps its own description, for example `DelayMs`, which is used for one-way
/// delays and for round trips. The list has each figure.
pub fn described(schema: &Json) -> Json {
    let mut schema = schema.clone();
    for KindTable { schema_type, entries, .. } in all_tables() {
        add_missing_keys(&mut schema, schema_type, &entries);
    }
    add_descriptions(&mut schema);
    let figures = all_tables()
        .map(|table| (table.name.to_owned(), table.entries.iter().map(Entry::to_json).collect::<Json>()));
    schema["figures"] = Json::Object(figures.into_iter().collect());
    schema
}

/// Describes each property of the schema that is a figure. A property with several descriptions keeps its
/// own.
fn add_descriptions(schema: &mut Json) {
    let mut descriptions: BTreeMap<SchemaKey, BTreeSet<String>> = BTreeMap::new();
    for KindTable { schema_type, entries, .. } in all_tables() {
        for entry in entries {
            if let Some(key) = find_key(schema, schema_type, entry.path) {
                descriptions.entry(key).or_default().insert(entry.description());
            }
        }
    }
    for (SchemaKey { owner, key }, descriptions) in descriptions {
        let property = schema["$defs"][owner]["properties"][key].as_object_mut();
        if let (Some(property), [description]) = (property, Vec::from_iter(descriptions).as_slice()) {
            property.insert("description".to_owned(), json!(description));
        }
    }
}

impl Entry {
    /// Returns a sentence for the schema.
    fn description(&self) -> String {
        let Self { definition, unit, better, .. } = self;
        let mut text: String = definition.chars().take(1).flat_map(char::to_uppercase).collect();
        text.extend(definition.chars().skip(1));
        text.push('.');
        // The definition of a count says what is counted, so its unit would repeat that.
        if !unit.is_empty() && *unit != "count" {
            text.push_str(&format!(" Unit: {unit}."));
        }
        match better {
            Better::More => text.push_str(" More is better."),
            Better::Less => text.push_str(" Less is better."),
            Better::Neither => {}
        }
        text
    }

    /// Returns the type of a new key in the schema. Each figure may be unknown.
    const fn schema_type(&self) -> [&'static str; 2] {
        [self.value_type.json_type(), "null"]
    }

    fn to_json(&self) -> Json {
        let Self { path, value_type, unit, title, definition, better, factor, decimals } = self;
        let mut entry = Map::new();
        let type_name = value_type.name();
        for (key, text) in [
            ("path", *path),
            ("type", type_name),
            ("unit", unit),
            ("title", title),
            ("definition", definition),
        ] {
            entry.insert(key.to_owned(), json!(text));
        }
        if *better != Better::Neither {
            entry.insert("better".to_owned(), json!(better.word()));
        }
        if value_type.is_number() {
            entry.insert("factor".to_owned(), json!(factor));
            entry.insert("decimals".to_owned(), json!(decimals));
        }
        Json::Object(entry)
    }
}

/// A property in the schema.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SchemaKey {
    /// The name of a type in `$defs`.
    owner: String,
    /// The property of that type.
    key: &'static str,
}

/// Adds the keys that `schema` lacks of the figures `entries` of `schema_type`.
fn add_missing_keys(schema: &mut Json, schema_type: &str, entries: &[Entry]) {
    // The key of the latest row in each type. A new key gets its place behind it.
    let mut latest_keys: BTreeMap<String, &str> = BTreeMap::new();
    for entry in entries {
        let Some(keys) = keys_on_path(schema, schema_type, entry.path) else { continue };
        if let Some(SchemaKey { owner, key }) = keys.last()
            && schema["$defs"][owner]["properties"].get(key).is_none()
        {
            let previous = latest_keys.get(owner).copied();
            add_key(&mut schema["$defs"][owner], previous, key, &json!({ "type": entry.schema_type() }));
        }
        latest_keys.extend(keys.into_iter().map(|SchemaKey { owner, key }| (owner, key)));
    }
}

/// Adds `key` to the schema of a type, behind the key `previous`, or as the first key.
fn add_key(type_schema: &mut Json, previous: Option<&str>, key: &str, property: &Json) {
    if let Some(properties) = type_schema["properties"].as_object_mut() {
        let previous_index = properties.keys().position(|name| Some(name.as_str()) == previous);
        properties.shift_insert(index_after(previous_index), key.to_owned(), property.clone());
    }
    if let Some(required) = type_schema["required"].as_array_mut() {
        let previous_index = required.iter().position(|name| name.as_str() == previous);
        required.insert(index_after(previous_index), json!(key));
    }
}

fn index_after(index: Option<usize>) -> usize {
    index.map_or(0, |index| index + 1)
}

/// Returns the property of the figure at `path` of `schema_type`. Returns `None` if the schema lacks it.
fn find_key(schema: &Json, schema_type: &str, path: &'static str) -> Option<SchemaKey> {
    let found = keys_on_path(schema, schema_type, path)?.pop()?;
    schema["$defs"][&found.owner]["properties"].get(found.key)?;
    Some(found)
}

/// Returns the properties on the way to the figure at `path` of `schema_type`. The last one may be missing in
/// the schema.
fn keys_on_path(schema: &Json, schema_type: &str, path: &'static str) -> Option<Vec<SchemaKey>> {
    let owner = schema_type.to_owned();
    let Some((key, rest)) = path.split_once('.') else {
        return Some(vec![SchemaKey { owner, key: path }]);
    };
    let property = schema["$defs"][schema_type]["properties"].get(key)?;
    // A property that may be null has the reference in one of its alternatives.
    let alternatives = property["anyOf"].as_array().into_iter().flatten();
    let reference = property["$ref"]
        .as_str()
        .or_else(|| alternatives.filter_map(|alternative| alternative["$ref"].as_str()).next())?;
    let referenced_type = reference.rsplit('/').next()?;
    let mut keys = vec![SchemaKey { owner, key }];
    keys.extend(keys_on_path(schema, referenced_type, rest)?);
    Some(keys)
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
            let type_schema = &mut lacking["$defs"][kind];
            type_schema["properties"].as_object_mut().unwrap().shift_remove(key).unwrap();
            type_schema["required"].as_array_mut().unwrap().retain(|name| name != key);
        }
        // By hand the types of two of the three are narrower, because they are never null.
        let mut expected = whole;
        expected["$defs"]["DelayMs"]["properties"]["p95"]["type"] = json!(["number", "null"]);
        expected["$defs"]["LinkSummary"]["properties"]["discipline"]["type"] = json!(["string", "null"]);
        let added = described(&lacking);
        for kind in ["FlowSummary", "LinkSummary", "DelayMs"] {
            let (added, expected) = (&added["$defs"][kind], &expected["$defs"][kind]);
            assert_eq!(added["required"], expected["required"], "{kind}");
            let keys =
                |schema: &Json| Vec::from_iter(schema["properties"].as_object().unwrap().keys().cloned());
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
        for KindTable { schema_type, entries, .. } in all_tables() {
            for entry in entries {
                let key = find_key(&schema, schema_type, entry.path);
                assert!(key.is_some(), "{schema_type} has no {}", entry.path);
            }
        }
    }
}
