//! Shares: a number from 0 to 1, in files and options also in per cent, as `"1%"`.
//!
//! This goes over the scenario once, before anything else reads it, and leaves plain numbers: `"1%"` becomes
//! 0.01. A bare 1 of the command line is refused: elsewhere (netem, SIPp) loss is in per cent, and whoever
//! types 1 means 1 % as often as all.

use crate::diagnostic::{Log, Place};
use crate::keys::ROOT;
use crate::quantity::{self, Problem, quote};
use crate::read::At;
use crate::spec::{Kind, TableSpec, Tagged};
use crate::tree::{Node, Table, Value, split};

/// `root` with numbers for all shares, those of its sweep too.
pub(crate) fn number_shares(mut root: Table, log: &mut Log) -> Table {
    table(&mut root, &ROOT, At::ROOT, log);
    if let Some(Value::Table(sweep)) = root.get_mut("sweep").map(|node| &mut node.value) {
        swept(sweep, &mut Vec::new(), At::ROOT.key("sweep"), log);
    }
    root
}

fn table(table: &mut Table, spec: &'static TableSpec, at: At<'_>, log: &mut Log) {
    for entry in &mut table.entries {
        if let Some(key) = spec.key(&entry.name) {
            value(&mut entry.node, &key.kind, at.key(&entry.name), log);
        }
    }
}

fn value(node: &mut Node, kind: &'static Kind, at: At<'_>, log: &mut Log) {
    if kind.is_share() {
        return share(node, at, log);
    }
    match (kind, &mut node.value) {
        (Kind::Table(spec) | Kind::Path(spec), Value::Table(inner)) => table(inner, spec, at, log),
        (Kind::Map(spec), Value::Table(inner)) => {
            for entry in &mut inner.entries {
                if let Value::Table(inner) = &mut entry.node.value {
                    table(inner, spec, at.key(&entry.name), log);
                }
            }
        }
        (Kind::Tagged(tagged), Value::Table(inner)) => self::tagged(inner, tagged, at, log),
        // A bare number, or a percentage, stands for one key of one variant.
        (Kind::Tagged(Tagged { number: Some(_), .. }), Value::Number(_) | Value::Text(_)) => {
            share(node, at, log);
        }
        _ => {}
    }
}

fn tagged(inner: &mut Table, tagged: &'static Tagged, at: At<'_>, log: &mut Log) {
    let variant = inner.get("kind").and_then(Node::as_text).and_then(|kind| tagged.variant(kind));
    for entry in &mut inner.entries {
        // Without a kind that is known, as where a sweep brings it, any variant's key of this name.
        let of_variant = variant.and_then(|variant| variant.key(&entry.name));
        let any = || tagged.variants.iter().find_map(|variant| variant.key(&entry.name));
        if let Some(key) = of_variant.or_else(any) {
            value(&mut entry.node, &key.kind, at.key(&entry.name), log);
        }
    }
}

/// The lines of a sweep: each is a list of values for the key that its names lead to.
fn swept(table: &mut Table, above: &mut Vec<String>, at: At<'_>, log: &mut Log) {
    for entry in &mut table.entries {
        let depth = above.len();
        above.extend(split(&entry.name).into_iter().map(str::to_owned));
        match &mut entry.node.value {
            Value::Table(inner) => swept(inner, above, at, log),
            Value::List(list) => {
                let names: Vec<&str> = above.iter().map(String::as_str).collect();
                if let Some(kind) = kind_in_table(&ROOT, &names) {
                    list.iter_mut().for_each(|node| value(node, kind, at.key(&above.join(".")), log));
                }
            }
            _ => {}
        }
        above.truncate(depth);
    }
}

/// The kind of the key that `names` lead to.
fn kind_in_table(spec: &'static TableSpec, names: &[&str]) -> Option<&'static Kind> {
    let [first, rest @ ..] = names else { return None };
    kind_below(&spec.key(first)?.kind, rest)
}

fn kind_below(kind: &'static Kind, names: &[&str]) -> Option<&'static Kind> {
    let [first, rest @ ..] = names else { return Some(kind) };
    match kind {
        Kind::Table(spec) => kind_in_table(spec, names),
        // `*` stands for `up` and `down`, which are the same.
        Kind::Path(spec) if *first == "*" => kind_below(&spec.keys.first()?.kind, rest),
        Kind::Path(spec) => kind_in_table(spec, names),
        Kind::Map(spec) => kind_in_table(spec, rest),
        Kind::Tagged(tagged) => {
            let key = tagged.variants.iter().find_map(|variant| variant.key(first))?;
            kind_below(&key.kind, rest)
        }
        _ => None,
    }
}

fn share(node: &mut Node, at: At<'_>, log: &mut Log) {
    match &node.value {
        Value::Text(text) => {
            let Some(share) = quantity::percentage(text) else { return };
            if !(0.0..=1.0).contains(&share) {
                let problem = Problem::new(format!("found {}, expected from 0% to 100%", quote(text)));
                log.problem(&node.place, at, problem);
            }
            // Clamped, so that no reader reports it again.
            node.value = Value::Number(share.clamp(0.0, 1.0).to_string());
        }
        Value::Number(text) if matches!(node.place, Place::Option(_)) => {
            if let Some(problem) = quantity::bare_one(text) {
                log.problem(&node.place, at, problem);
            }
        }
        _ => {}
    }
}
