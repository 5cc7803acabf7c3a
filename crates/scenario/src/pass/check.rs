//! The checks that the key tables alone decide: unknown and missing keys, types, units, bounds, words.
//!
//! What two keys say together (a route's links, a message and its transport) is [`crate::resolve`]'s part.

use crate::diagnostic::{Log, Place};
use crate::form::{form, table_form};
use crate::keys::LINK;
use crate::names;
use crate::preset::presets;
use crate::quantity::{self, Problem};
use crate::read::{self, At, or_list, wrong};
use crate::spec::{Default, Key, Kind, TableSpec, Tagged};
use crate::threshold;
use crate::tree::{Node, Table, Value};

/// What is expected of the tree as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// Whether an absent required key is a mistake: not if the sweep may still bring it.
    missing: bool,
    /// Whether quantities may step from copy to copy.
    steps: bool,
}

impl Checks {
    /// All checks, as for a cell.
    pub(crate) const ALL: Self = Self { missing: true, steps: false };
    /// All but for what is missing.
    pub(crate) const PRESENT: Self = Self { missing: false, steps: false };
}

/// Checks the keys and values of `table`, which begins at `place`.
pub(crate) fn check_table(
    table: &Table,
    spec: &'static TableSpec,
    place: &Place,
    at: At<'_>,
    checks: Checks,
    log: &mut Log,
) {
    for entry in &table.entries {
        match spec.key(&entry.name) {
            Some(key) => value(&entry.node, &key.kind, at.key(key.name), checks, log),
            None => unknown_key(&entry.name, &entry.place, at, spec.noun, spec.keys, None, log),
        }
    }
    missing_keys(table, spec.keys, place, at, checks, log);
}

/// Checks one value.
fn value(node: &Node, kind: &'static Kind, at: At<'_>, checks: Checks, log: &mut Log) {
    if let (true, Some((from, step))) = (checks.steps, node.as_table().and_then(read::as_step)) {
        return step_value(from, step, node, kind, at, checks, log);
    }
    match kind {
        Kind::Text { longest } => drop(read::text(node, *longest, at, log)),
        Kind::Flag => drop(read::flag(node, at, log)),
        Kind::Count { least, most } => drop(read::count(node, *least, *most, at, log)),
        Kind::Seed => drop(read::seed(node, at, log)),
        Kind::Probability => drop(read::probability(node, at, log)),
        Kind::Number { above, most } => drop(read::bounded(node, *above, *most, at, log)),
        Kind::Quantity { measures, words } => drop(read::quantity(node, measures, words, at, log)),
        Kind::LinkRate { measures, words } => drop(read::link_rate(node, measures, words, at, log)),
        Kind::Choice(words) => drop(read::choice(node, words, at, log)),
        Kind::FlagOrDefault => drop(read::flag_or_default(node, at, log)),
        Kind::DelayedAck(measures) => drop(read::delayed_ack(node, measures, at, log)),
        Kind::Start(measures) => drop(read::start(node, measures, at, log)),
        Kind::Names(listed) => drop(read::names(node, listed, at, log)),
        Kind::Table(spec) => match node.as_table() {
            Some(inner) => check_table(inner, spec, &node.place, at, checks, log),
            None => log.problem(&node.place, at, wrong(node, &table_form(spec))),
        },
        Kind::Tagged(tagged) => self::tagged(node, tagged, at, checks, log),
        Kind::Map(spec) => map(node, spec, at, checks, log),
        Kind::Path(spec) => path(node, spec, at, checks, log),
        Kind::Thresholds => threshold_bounds(node, at, log),
        // The sweep's own part reads it.
        Kind::Sweep => {}
    }
}

/// Reports an unknown key, and the known key that was probably meant.
fn unknown_key(
    name: &str,
    place: &Place,
    at: At<'_>,
    noun: &str,
    keys: &'static [Key],
    extra: Option<&'static str>,
    log: &mut Log,
) {
    let problem = names::unknown_key(name, noun, keys.iter().map(|key| key.name).chain(extra));
    log.problem(place, at.key(name), problem);
}

fn missing_keys(
    table: &Table,
    keys: &'static [Key],
    place: &Place,
    at: At<'_>,
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

/// `{ from, step }`: both parts are quantities of the key's kind, the step possibly zero.
fn step_value(
    from: &Node,
    step: &Node,
    node: &Node,
    kind: &'static Kind,
    at: At<'_>,
    checks: Checks,
    log: &mut Log,
) {
    let measures = match kind {
        Kind::Quantity { measures, .. } | Kind::LinkRate { measures, .. } | Kind::Start(measures) => {
            *measures
        }
        _ => return value(node, kind, at, Checks { steps: false, ..checks }, log),
    };
    let from_amount = read::quantity(from, measures, &[], at.key("from"), log);
    let any: Vec<_> = measures.iter().map(|measure| quantity::Measure { least: 0, ..*measure }).collect();
    let step_amount = read::quantity(step, &any, &[], at.key("step"), log);
    if let (Some(read::Reading::Amount(from)), Some(read::Reading::Amount(step_by))) =
        (from_amount, step_amount)
        && from.dimension != step_by.dimension
    {
        let message =
            format!("found a step of {step_by} from {from}, expected both in the same kind of unit");
        log.problem(&step.place, at, Problem::new(message));
    }
}

fn tagged(node: &Node, tagged: &'static Tagged, at: At<'_>, checks: Checks, log: &mut Log) {
    let kinds = tagged.variants.iter().map(|variant| variant.name);
    let (kind_node, inner) = match (&node.value, tagged.number) {
        (Value::Table(inner), _) => match inner.get("kind") {
            Some(kind) => (kind, Some(inner)),
            None => {
                if checks.missing {
                    let message = format!("missing; expected {}: {}", tagged.noun, or_list(kinds));
                    log.mistake(&node.place, &at.key("kind").to_string(), message, None);
                }
                return;
            }
        },
        (Value::Number(_), Some((variant, key))) => {
            if let Some(key) = tagged.variant(variant).and_then(|variant| variant.key(key)) {
                value(node, &key.kind, at, checks, log);
            }
            return;
        }
        _ => (node, None),
    };
    let kind_at = at.key("kind");
    let name = match read::one_of(kind_node, tagged.noun, kinds, tagged.later) {
        Ok(name) => name,
        Err(problem) => {
            let line = if inner.is_none() { quantity_line(node, tagged, at) } else { None };
            let problem = Problem { help: line.or(problem.help), message: problem.message };
            log.problem(&kind_node.place, if inner.is_some() { kind_at } else { at }, problem);
            return;
        }
    };
    let Some(variant) = tagged.variant(name) else { return };
    let empty = Table::default();
    let inner = inner.unwrap_or(&empty);
    for entry in inner.entries.iter().filter(|entry| entry.name != "kind") {
        match variant.key(&entry.name) {
            Some(key) => value(&entry.node, &key.kind, at.key(key.name), checks, log),
            None => unknown_key(&entry.name, &entry.place, at, variant.name, variant.keys, Some("kind"), log),
        }
    }
    missing_keys(inner, variant.keys, &node.place, at, checks, log);
}

/// The line to write if the file has a quantity where a table belongs: `jitter = "20 ms"`.
fn quantity_line(node: &Node, tagged: &Tagged, at: At<'_>) -> Option<String> {
    let (variant, key) = tagged.quantity?;
    let (Kind::Quantity { measures, .. }, at) = (&tagged.variant(variant)?.key(key)?.kind, at) else {
        return None;
    };
    let amount = match &node.value {
        Value::Text(text) => match quantity::parse(text, measures) {
            Ok(amount) => quantity::plainly(amount),
            Err(_) => read::proposal(text, measures, at.key(key))?,
        },
        Value::Number(text) => read::proposal(text, measures, at.key(key))?,
        _ => return None,
    };
    Some(format!("write {} = {{ kind = \"{variant}\", {key} = \"{amount}\" }}", at.name()))
}

fn map(node: &Node, spec: &'static TableSpec, at: At<'_>, checks: Checks, log: &mut Log) {
    let Some(entries) = node.as_table() else {
        log.problem(&node.place, at, wrong(node, &format!("tables, each {} by its name", spec.noun)));
        return;
    };
    for entry in &entries.entries {
        if let Some(problem) = bad_name(&entry.name, spec) {
            log.problem(&entry.place, at, problem);
        }
        let at = at.key(&entry.name);
        match entry.node.as_table() {
            Some(inner) => {
                check_table(inner, spec, &entry.place, at, Checks { steps: true, ..checks }, log);
            }
            None => log.problem(&entry.node.place, at, wrong(&entry.node, &table_form(spec))),
        }
    }
}

fn threshold_bounds(node: &Node, at: At<'_>, log: &mut Log) {
    let Some(figures) = node.as_table() else {
        log.problem(&node.place, at, wrong(node, &form(&Kind::Thresholds)));
        return;
    };
    for entry in &figures.entries {
        threshold::check(&entry.node, &entry.name, &at.key(&entry.name).to_string(), log);
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

fn path(node: &Node, spec: &'static TableSpec, at: At<'_>, checks: Checks, log: &mut Log) {
    match &node.value {
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
