//! Replaces values that stand for others, in the file and in its sweep.
//!
//! | value in the file | replaced by |
//! | --- | --- |
//! | a percentage, `"1%"` | the share, 0.01 |
//! | the name of a trace, or of a file to be sent | its resolved name ([`crate::contents`]) |
//! | `kernel = "this"` | the values of this machine's kernel, as `measured` |
//!
//! A bare 1 on the command line is refused as a share. Other programs (netem, SIPp) have losses in per cent,
//! so 1 could mean 1 % as well as everything.

use talkpath_model::KernelProfile;

use crate::diagnostic::{Log, Place};
use crate::keys::{KERNEL, ROOT};
use crate::quantity::{self, Problem, quote};
use crate::read::KeyPath;
use crate::reading::Reading;
use crate::spec::{FileKind, Kind, TAG, TableSpec, Tagged, is_same_word};
use crate::tree::{Node, Table, Value, linked_keys, parse_value, split};

pub(crate) fn replace_values(mut root: Table, reading: &mut Reading<'_>) -> Table {
    replace_in_table(&mut root, &ROOT, KeyPath::ROOT, reading);
    if let Some(Value::Table(sweep)) = root.get_mut("sweep").map(|node| &mut node.value) {
        replace_in_sweep(sweep, &mut Vec::new(), KeyPath::ROOT.key("sweep"), reading);
    }
    root
}

fn replace_in_table(table: &mut Table, spec: &'static TableSpec, at: KeyPath<'_>, reading: &mut Reading<'_>) {
    for entry in &mut table.entries {
        if let Some(key) = spec.key(&entry.name) {
            replace_value(&mut entry.node, &key.kind, at.key(&entry.name), reading);
        }
    }
}

fn replace_value(node: &mut Node, kind: &'static Kind, at: KeyPath<'_>, reading: &mut Reading<'_>) {
    if kind.is_share() {
        return replace_share(node, at, &mut reading.log);
    }
    if matches!(kind, Kind::Tagged(tagged) if core::ptr::eq(*tagged, &KERNEL)) && is_this(node) {
        return replace_this_kernel(node, reading);
    }
    match (kind, &mut node.value) {
        (Kind::File(kind), _) => replace_file_name(node, *kind, at, reading),
        (Kind::LinkRate { .. }, Value::Table(rate)) => {
            if let Some(trace) = rate.get_mut("trace") {
                replace_file_name(trace, FileKind::RateTrace, at.key("trace"), reading);
            }
        }
        (Kind::Table(spec) | Kind::Path(spec), Value::Table(inner)) => {
            replace_in_table(inner, spec, at, reading);
        }
        (Kind::Map(spec), Value::Table(inner)) => {
            for entry in &mut inner.entries {
                if let Value::Table(inner) = &mut entry.node.value {
                    replace_in_table(inner, spec, at.key(&entry.name), reading);
                }
            }
        }
        (Kind::List(spec), Value::List(tables)) => {
            for (number, item) in (1..).zip(tables) {
                if let Value::Table(inner) = &mut item.value {
                    replace_in_table(inner, spec, at.key(&u64::to_string(&number)), reading);
                }
            }
        }
        (Kind::Tagged(tagged), Value::Table(inner)) => replace_in_tagged(inner, tagged, at, reading),
        // A bare number, or a percentage, stands for one key of one variant.
        (Kind::Tagged(Tagged { number: Some(_), .. }), Value::Number(_) | Value::Text(_)) => {
            replace_share(node, at, &mut reading.log);
        }
        _ => {}
    }
}

fn replace_in_tagged(inner: &mut Table, tagged: &'static Tagged, at: KeyPath<'_>, reading: &mut Reading<'_>) {
    let variant = inner.get(TAG).and_then(Node::as_text).and_then(|kind| tagged.variant(kind));
    for entry in &mut inner.entries {
        // If the kind is not known, for example because a sweep sets it, a key of any variant is taken.
        let known_key = variant.and_then(|variant| variant.key(&entry.name));
        if let Some(key) = known_key.or_else(|| tagged.any_key(&entry.name)) {
            replace_value(&mut entry.node, &key.kind, at.key(&entry.name), reading);
        }
    }
}

/// Replaces the values in the lines of a sweep. `above` is the names of the tables around.
fn replace_in_sweep(table: &mut Table, above: &mut Vec<String>, at: KeyPath<'_>, reading: &mut Reading<'_>) {
    for entry in &mut table.entries {
        let depth = above.len();
        above.extend(split(&entry.name).into_iter().map(str::to_owned));
        match &mut entry.node.value {
            Value::Table(inner) => replace_in_sweep(inner, above, at, reading),
            Value::List(list) => {
                let line = above.join(".");
                let keys: Vec<&str> = linked_keys(&line).collect();
                for node in list {
                    replace_in_sweep_value(node, &keys, at, reading);
                }
            }
            _ => {}
        }
        above.truncate(depth);
    }
}

/// Replaces what a value in a line with these keys has for each of them.
fn replace_in_sweep_value(node: &mut Node, keys: &[&str], at: KeyPath<'_>, reading: &mut Reading<'_>) {
    let mut replace = |node: &mut Node, key: &str| {
        if let Some(kind) = kind_in_table(&ROOT, &split(key)) {
            replace_value(node, kind, at.key(key), reading);
        }
    };
    if let [key] = keys {
        return replace(node, key);
    }
    if let Value::List(values) = &mut node.value {
        values.iter_mut().zip(keys).for_each(|(value, key)| replace(value, key));
    }
}

/// Returns the kind of the key that has these names from the root.
fn kind_in_table(spec: &'static TableSpec, names: &[&str]) -> Option<&'static Kind> {
    let [first, rest @ ..] = names else { return None };
    kind_below(&spec.key(first)?.kind, rest)
}

fn kind_below(kind: &'static Kind, names: &[&str]) -> Option<&'static Kind> {
    let [first, rest @ ..] = names else { return Some(kind) };
    match kind {
        Kind::Table(spec) => kind_in_table(spec, names),
        // `*` stands for `up` and `down`, which have the same keys.
        Kind::Path(spec) if *first == "*" => kind_below(&spec.keys.first()?.kind, rest),
        Kind::Path(spec) => kind_in_table(spec, names),
        Kind::Map(spec) | Kind::List(spec) => kind_in_table(spec, rest),
        Kind::Tagged(tagged) => kind_below(&tagged.any_key(first)?.kind, rest),
        Kind::LinkRate { .. } if names == ["trace"] => Some(&Kind::File(FileKind::RateTrace)),
        _ => None,
    }
}

fn replace_share(node: &mut Node, at: KeyPath<'_>, log: &mut Log) {
    match &node.value {
        Value::Text(text) => {
            let Some(share) = quantity::percentage(text) else { return };
            if !(0.0..=1.0).contains(&share) {
                let problem = Problem::new(format!("found {}, expected from 0% to 100%", quote(text)));
                log.mistake(&node.place, at, problem);
            }
            // The share is limited to its range, so that it is not reported again.
            node.value = Value::Number(share.clamp(0.0, 1.0).to_string());
        }
        Value::Number(text) if matches!(node.place, Place::Option(_)) => {
            if let Some(problem) = quantity::bare_one(text) {
                log.mistake(&node.place, at, problem);
            }
        }
        _ => {}
    }
}

/// Reads the file that `node` names, and replaces the name by the resolved name.
fn replace_file_name(node: &mut Node, kind: FileKind, at: KeyPath<'_>, reading: &mut Reading<'_>) {
    let Value::Text(name) = &mut node.value else { return };
    match reading.contents.read(kind, name, reading.files) {
        Ok(resolved) => *name = resolved,
        Err(problem) => reading.log.mistake(&node.place, at, problem),
    }
}

/// Whether `node`, the value of `kernel`, is `this`.
fn is_this(node: &Node) -> bool {
    let kind = node.as_table().map_or(Some(node), |table| table.get(TAG));
    kind.and_then(Node::as_text).is_some_and(|kind| is_same_word(kind, "this"))
}

fn replace_this_kernel(node: &mut Node, reading: &mut Reading<'_>) {
    match reading.contents.this_kernel(reading.files) {
        Ok(profile) => set_profile(node, profile),
        Err(why) => {
            let help = format!("there are: {}", kernel_names().collect::<Vec<_>>().join(", "));
            reading.log.mistake(&node.place, "kernel", Problem::new(why).with_help(help));
        }
    }
}

/// Replaces `this` by the values of `profile`. A key that the file has beside `this` keeps its value.
fn set_profile(node: &mut Node, profile: &KernelProfile) {
    let mut table = Table::default();
    table.set(TAG, Node::text("measured", node.place.clone()));
    for (key, text) in profile.values() {
        if let Some(value) = parse_value(&text, &node.place) {
            table.set(key, value);
        }
    }
    for entry in node.as_table().into_iter().flat_map(|table| &table.entries) {
        if entry.name != TAG {
            table.set(&entry.name, entry.node.clone());
        }
    }
    node.value = Value::Table(table);
}

/// Returns the names of the profiles that do not need a machine, for messages.
fn kernel_names() -> impl Iterator<Item = &'static str> {
    KERNEL.variants.iter().map(|variant| variant.name).filter(|name| !matches!(*name, "this" | "measured"))
}
