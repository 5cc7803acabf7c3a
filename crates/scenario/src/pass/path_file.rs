//! Replaces `path = "FILE"` by what the file describes: the tables `up` and `down`, and the changes.
//!
//! A name with a point or a slash is that of a file, not of a preset. A mistake in a path file is reported at
//! its line there. [`Files::path`](crate::Files) makes a path of other files, such as tables and traces.

use std::sync::Arc;

use crate::contents::PathText;
use crate::diagnostic::{Place, Source};
use crate::keys::ROOT;
use crate::preset::preset;
use crate::quantity::Problem;
use crate::reading::Reading;
use crate::spec::{FileKind, Key, Kind, TableSpec};
use crate::tree::{self, CHANGES, Node, Table, Value};

/// Replaces the path of the scenario, if it is the name of a file. A file that cannot be read is a mistake.
pub(crate) fn expand_path_file(root: &mut Table, reading: &mut Reading<'_>) {
    let Some(node) = root.get("path") else { return };
    let Some(name) = node.as_text().filter(|name| is_file_name(name)).map(str::to_owned) else { return };
    let place = node.place.clone();
    let described = match reading.files.path(&name) {
        Ok(described) => described,
        Err(why) => {
            let help = "a path file has the tables [up] and [down]; also read are tables of rates over time, mahimahi's traces, \
                        JSON of netem-trace, lines of tc and captures: `talkpath trace FILE` says what a file is";
            reading.log.mistake(&place, "path", Problem::new(why).with_help(help));
            return;
        }
    };
    for doubt in &described.doubts {
        reading.log.warning(&place, "path", format!("{name}: {doubt}"));
    }
    let mut table = read_text(&described, &place, reading);
    let changes = table.remove(CHANGES);
    root.set("path", Node::new(Value::Table(table), place));
    if let Some(changes) = changes {
        add_changes(root, changes);
    }
    for (name, text) in described.made {
        reading.contents.supply(name, text);
    }
    reading.path_notes.extend(described.notes);
    reading.assumes_queues = described.assumes_queues;
    reading.lacks_rate = described.lacks_rate;
}

/// Whether a path of this name is a file.
fn is_file_name(name: &str) -> bool {
    preset(name).is_none() && name.contains(['.', '/', '\\'])
}

/// Reads the text of a path. `place` is that of its name.
fn read_text(described: &PathText, place: &Place, reading: &mut Reading<'_>) -> Table {
    let mut table = match &described.file {
        Some(file) => {
            reading.log.include(Arc::new(Source::new(file.as_str(), described.text.as_str())));
            tree::parse_included(&described.text, &mut reading.log)
        }
        None => {
            // The text is ours.
            let mut table =
                Node::new(Value::Table(tree::parse(&described.text, &mut reading.log)), place.clone());
            table.set_place(place);
            match table.value {
                Value::Table(table) => table,
                _ => Table::default(),
            }
        }
    };
    if described.file.is_some()
        && let Some(entry) =
            table.entries.iter().find(|entry| ["flow", "path", "link"].contains(&entry.name.as_str()))
    {
        let message = format!(
            "found `{}`, so the file is a scenario; expected [up], [down] and [[change]] alone",
            entry.name
        );
        reading.log.mistake(&entry.place, "path", message);
        table.entries.retain(|entry| ["up", "down", CHANGES].contains(&entry.name.as_str()));
    }
    if !described.folder.is_empty() {
        let mut root = Table::default();
        if let Some(changes) = table.remove(CHANGES) {
            root.set(CHANGES, changes);
        }
        root.set("path", Node::new(Value::Table(table), place.clone()));
        name_from(&mut root, &ROOT, &described.folder);
        let changes = root.remove(CHANGES);
        table = match root.remove("path").map(|node| node.value) {
            Some(Value::Table(table)) => table,
            _ => Table::default(),
        };
        if let Some(changes) = changes {
            table.set(CHANGES, changes);
        }
    }
    table
}

/// Puts `folder` before the names of files in `table` that are relative.
fn name_from(table: &mut Table, spec: &TableSpec, folder: &str) {
    for entry in &mut table.entries {
        if let Some(key) = spec.key(&entry.name) {
            name_from_in(&mut entry.node, &key.kind, folder);
        }
    }
}

fn name_from_in(node: &mut Node, kind: &Kind, folder: &str) {
    match (kind, &mut node.value) {
        (Kind::File(kind), Value::Text(name)) if *kind != FileKind::Source && !name.starts_with('/') => {
            *name = format!("{folder}{name}");
        }
        (Kind::LinkRate { .. }, Value::Table(rate)) => {
            if let Some(trace) = rate.get_mut("trace") {
                name_from_in(trace, &Kind::File(FileKind::RateTrace), folder);
            }
        }
        (Kind::Table(spec) | Kind::Path(spec), Value::Table(inner)) => name_from(inner, spec, folder),
        (Kind::List(spec), Value::List(tables)) => {
            for item in tables {
                if let Value::Table(inner) = &mut item.value {
                    name_from(inner, spec, folder);
                }
            }
        }
        (Kind::Tagged(tagged), Value::Table(inner)) => {
            for entry in &mut inner.entries {
                if let Some(Key { kind, .. }) = tagged.any_key(&entry.name) {
                    name_from_in(&mut entry.node, kind, folder);
                }
            }
        }
        _ => {}
    }
}

/// Adds the changes of a path behind those of the scenario.
pub(crate) fn add_changes(root: &mut Table, mut changes: Node) {
    let Some(present) = root.get_mut(CHANGES) else { return root.set(CHANGES, changes) };
    // Anything else than two lists is a mistake of the scenario, which is reported later.
    if let (Value::List(present), Value::List(of_path)) = (&mut present.value, &mut changes.value) {
        present.append(of_path);
    }
}

/// Reports a path that has no rate, because its file has none and nothing else says it.
pub(crate) fn report_lacking_rate(root: &Table, reading: &mut Reading<'_>) {
    let Some(lacks_rate) = reading.lacks_rate.clone() else { return };
    let Some(path) = root.get("path") else { return };
    let has_rate =
        |link: &str| path.as_table().and_then(|path| path.get(link)?.as_table()?.get("rate")).is_some();
    if !(has_rate("up") && has_rate("down")) {
        reading.log.mistake(&path.place, "path", lacks_rate);
    }
}
