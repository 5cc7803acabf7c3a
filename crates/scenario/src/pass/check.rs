//! The checks that the key tables alone decide: unknown and missing keys, types, units, bounds, words.
//!
//! What is right gets its meaning, so that nothing reads it again.
//!
//! What two keys say together (a route's links, a message and its transport) is [`crate::resolve`]'s part.

use crate::bound;
use crate::diagnostic::{Log, Place};
use crate::form::{form, table_form};
use crate::keys::{LINK, ROOT};
use crate::names;
use crate::options::{Options, PercentOf};
use crate::preset::presets;
use crate::quantity::{self, Problem};
use crate::read::{self, KeyPath, or_list, wrong};
use crate::reading::Reading;
use crate::spec::{Default, Key, Kind, TableSpec, Tagged, Variant};
use crate::tree::{Entry, Meaning, Node, Table, Value};

/// What is expected of the tree as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// Whether an absent required key is a mistake: not if the sweep may still bring it.
    missing: bool,
    /// Whether quantities may step from copy to copy.
    steps: bool,
    /// Which figures are shares.
    percent_of: Option<PercentOf>,
}

impl Checks {
    /// All checks, as for a cell.
    pub(crate) const ALL: Self = Self { missing: true, steps: false, percent_of: None };
    /// All but for what is missing.
    pub(crate) const PRESENT: Self = Self { missing: false, ..Self::ALL };

    /// With the shares that `options` knows of thresholds.
    pub(crate) const fn with(self, options: &Options) -> Self {
        Self { percent_of: options.percent_of, ..self }
    }
}

/// `cell` with the meaning of each value that is right.
pub(crate) fn check_cell(cell: Table, reading: &mut Reading<'_>) -> Table {
    check(cell, &ROOT, Checks::ALL.with(reading.options), &mut reading.log)
}

/// `root` with the meaning of each value that is right; the mistakes go to `log`.
pub(crate) fn check(mut root: Table, spec: &'static TableSpec, checks: Checks, log: &mut Log) -> Table {
    check_table(&mut root, spec, &Place::START, KeyPath::ROOT, checks, log);
    root
}

/// Checks the keys and values of `table`, which begins at `place`.
fn check_table(
    table: &mut Table,
    spec: &'static TableSpec,
    place: &Place,
    at: KeyPath<'_>,
    checks: Checks,
    log: &mut Log,
) {
    for entry in &mut table.entries {
        match spec.key(&entry.name) {
            Some(key) => value(&mut entry.node, &key.kind, at.key(key.name), checks, log),
            None => unknown_key(entry, at, spec.noun, spec.keys, None, log),
        }
    }
    missing_keys(table, spec.keys, place, at, checks, log);
}

/// Checks one value, and writes down what it means.
fn value(node: &mut Node, kind: &'static Kind, at: KeyPath<'_>, checks: Checks, log: &mut Log) {
    if checks.steps && is_step(node, kind) {
        node.meaning = step(node, kind, at, log);
        return;
    }
    match kind {
        Kind::Table(spec) => match &mut node.value {
            Value::Table(inner) => check_table(inner, spec, &node.place, at, checks, log),
            _ => log.problem(&node.place, at, wrong(node, &table_form(spec))),
        },
        Kind::Tagged(tagged) => self::tagged(node, tagged, at, checks, log),
        Kind::Map(spec) => map(node, spec, at, checks, log),
        Kind::List(spec) => list(node, spec, at, checks, log),
        Kind::Path(spec) => path(node, spec, at, checks, log),
        Kind::Thresholds => threshold_bounds(node, at, checks, log),
        // The sweep's own part reads it.
        Kind::Sweep => {}
        _ => node.meaning = read::meaning(node, kind, at, log),
    }
}

/// Reports an unknown key, and the known key that was probably meant.
fn unknown_key(
    entry: &Entry,
    at: KeyPath<'_>,
    noun: &str,
    keys: &'static [Key],
    extra: Option<&'static str>,
    log: &mut Log,
) {
    let problem = names::unknown_key(&entry.name, noun, keys.iter().map(|key| key.name).chain(extra));
    log.problem(&entry.place, at.key(&entry.name), problem);
}

fn missing_keys(
    table: &Table,
    keys: &'static [Key],
    place: &Place,
    at: KeyPath<'_>,
    checks: Checks,
    log: &mut Log,
) {
    if !checks.missing {
        return;
    }
    for key in keys {
        if matches!(key.default, Default::Required) && table.get(key.name).is_none() {
            let message = format!("missing; expected {}", form(&key.kind));
            log.mistake(place, &at.key(key.name).to_string(), message, Some(key.doc.to_owned()));
        }
    }
}

/// Whether `node` is `{ from, step }` of a quantity.
fn is_step(node: &Node, kind: &Kind) -> bool {
    let is_quantity = matches!(kind, Kind::Quantity { .. } | Kind::LinkRate { .. } | Kind::Start(_));
    is_quantity && node.as_table().and_then(read::as_step).is_some()
}

/// `{ from, step }`: both parts are quantities of the key's kind, the step possibly zero.
fn step(node: &Node, kind: &'static Kind, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    let (from, step) = node.as_table().and_then(read::as_step)?;
    let (Kind::Quantity { ranges, .. } | Kind::LinkRate { ranges, .. } | Kind::Start(ranges)) = kind else {
        return None;
    };
    let first = read::amount(from, ranges, at.key("from"), log);
    let any: Vec<_> = ranges.iter().map(|range| quantity::DimensionRange { least: 0, ..*range }).collect();
    let by = read::amount(step, &any, at.key("step"), log);
    let (from, by) = (first?, by?);
    if from.dimension != by.dimension {
        let message = format!("found a step of {by} from {from}, expected both in the same kind of unit");
        log.problem(&step.place, at, Problem::new(message));
        return None;
    }
    Some(Meaning::Step { kind, from, by: by.count })
}

fn tagged(node: &mut Node, tagged: &'static Tagged, at: KeyPath<'_>, checks: Checks, log: &mut Log) {
    if let (Value::Number(_), Some((variant, key))) = (&node.value, tagged.number) {
        if let Some(key) = tagged.variant(variant).and_then(|variant| variant.key(key)) {
            value(node, &key.kind, at, checks, log);
        }
        return;
    }
    let Some(variant) = variant(node, tagged, at, checks, log) else { return };
    let Node { value: inner, place, .. } = node;
    let Value::Table(inner) = inner else {
        return missing_keys(&Table::default(), variant.keys, place, at, checks, log);
    };
    for entry in inner.entries.iter_mut().filter(|entry| entry.name != "kind") {
        match variant.key(&entry.name) {
            Some(key) => value(&mut entry.node, &key.kind, at.key(key.name), checks, log),
            None => unknown_key(entry, at, variant.name, variant.keys, Some("kind"), log),
        }
    }
    missing_keys(inner, variant.keys, place, at, checks, log);
}

/// The variant that a tagged table, or the word in its place, says it is.
fn variant(
    node: &Node,
    tagged: &'static Tagged,
    at: KeyPath<'_>,
    checks: Checks,
    log: &mut Log,
) -> Option<&'static Variant> {
    let kinds = tagged.variants.iter().map(|variant| variant.name);
    let kind_at = at.key("kind");
    let (word, word_at) = match node.as_table() {
        None => (node, at),
        Some(inner) => match inner.get("kind") {
            Some(kind) => (kind, kind_at),
            None => {
                if checks.missing {
                    let message = format!("missing; expected {}: {}", tagged.noun, or_list(kinds));
                    log.mistake(&node.place, &kind_at.to_string(), message, None);
                }
                return None;
            }
        },
    };
    match read::one_of(word, tagged.noun, kinds, tagged.later) {
        Ok(name) => tagged.variant(name),
        Err(problem) => {
            let line = if node.as_table().is_none() { quantity_line(node, tagged, at) } else { None };
            let problem = Problem { help: line.or(problem.help), message: problem.message };
            log.problem(&word.place, word_at, problem);
            None
        }
    }
}

/// The line to write if the file has a quantity where a table belongs: `jitter = "20 ms"`.
fn quantity_line(node: &Node, tagged: &Tagged, at: KeyPath<'_>) -> Option<String> {
    let (variant, key) = tagged.quantity?;
    let (Kind::Quantity { ranges, .. }, at) = (&tagged.variant(variant)?.key(key)?.kind, at) else {
        return None;
    };
    let amount = match &node.value {
        Value::Text(text) => match quantity::parse(text, ranges) {
            Ok(amount) => quantity::in_largest_unit(amount),
            Err(_) => read::proposal(text, ranges, at.key(key))?,
        },
        Value::Number(text) => read::proposal(text, ranges, at.key(key))?,
        _ => return None,
    };
    Some(format!("write {} = {{ kind = \"{variant}\", {key} = \"{amount}\" }}", at.name()))
}

fn map(node: &mut Node, spec: &'static TableSpec, at: KeyPath<'_>, checks: Checks, log: &mut Log) {
    let Value::Table(tables) = &mut node.value else {
        log.problem(&node.place, at, wrong(node, &format!("tables, each {} by its name", spec.noun)));
        return;
    };
    for Entry { name, place, node } in &mut tables.entries {
        if let Some(problem) = bad_name(name, spec) {
            log.problem(place, at, problem);
        }
        let at = at.key(name);
        match &mut node.value {
            Value::Table(inner) => {
                check_table(inner, spec, place, at, Checks { steps: true, ..checks }, log);
            }
            _ => log.problem(&node.place, at, wrong(node, &table_form(spec))),
        }
    }
}

fn list(node: &mut Node, spec: &'static TableSpec, at: KeyPath<'_>, checks: Checks, log: &mut Log) {
    let Value::List(tables) = &mut node.value else {
        let form = format!("a list of tables, each [[{}]]", at.name());
        return log.problem(&node.place, at, wrong(node, &form));
    };
    for (number, table) in (1..).zip(tables) {
        let number: String = u64::to_string(&number);
        let at = at.key(&number);
        match &mut table.value {
            Value::Table(inner) => check_table(inner, spec, &table.place, at, checks, log),
            _ => log.problem(&table.place, at, wrong(table, &table_form(spec))),
        }
    }
}

fn threshold_bounds(node: &Node, at: KeyPath<'_>, checks: Checks, log: &mut Log) {
    let Some(figures) = node.as_table() else {
        log.problem(&node.place, at, wrong(node, &form(&Kind::Thresholds)));
        return;
    };
    for entry in &figures.entries {
        let at = at.key(&entry.name).to_string();
        bound::check(&entry.node, &entry.name, &at, checks.percent_of, log);
    }
}

/// Names go into file names, tables and other names, so only plain ones are taken.
fn bad_name(name: &str, spec: &TableSpec) -> Option<Problem> {
    const LONGEST: usize = 64;
    let is_link = core::ptr::eq(spec, &LINK);
    let plain = if is_link { name.replacen("{n}", "", 1) } else { name.to_owned() };
    let fits = plain.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (!fits || name.is_empty() || name.len() > LONGEST).then(|| {
        let also = if is_link { ", and {n} once" } else { "" };
        let found = quantity::quote(name);
        Problem::new(format!(
            "found the name {found}, expected at most {LONGEST} letters, digits, - and _{also}"
        ))
    })
}

fn path(node: &mut Node, spec: &'static TableSpec, at: KeyPath<'_>, checks: Checks, log: &mut Log) {
    match &mut node.value {
        Value::Table(inner) => check_table(inner, spec, &node.place, at, checks, log),
        Value::Text(_) => {
            let names = presets().iter().map(|preset| preset.name);
            if let Err(problem) = read::one_of(node, "the name of a path", names, &[]) {
                log.problem(&node.place, at, problem);
            }
        }
        _ => log.problem(&node.place, at, wrong(node, "the name of a path, or a table with `up` and `down`")),
    }
}
