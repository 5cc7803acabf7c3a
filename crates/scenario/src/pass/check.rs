//! Checks keys and values by the key tables alone: unknown and missing keys, types, units, bounds and words.
//!
//! - The *meaning* of a right value goes into the tree, so that no value is read twice.
//! - A *tagged* table has a `kind` that determines its other keys. Each kind is a *variant*.
//! - A *map* is tables whose names the user chooses, such as `[link.NAME]`.
//! - A value *steps* if it is `{ from, step }`, so that it differs from copy to copy.
//!
//! Rules for several keys together, such as a route and its links, are checked in [`crate::resolve`]. Begin
//! to read with [`check`].

use crate::bound;
use crate::diagnostic::{Log, Place};
use crate::form::{form, table_form};
use crate::keys::{LINK, ROOT};
use crate::names;
use crate::options::{Options, PercentOf};
use crate::pass::set::implied_variant;
use crate::preset::presets;
use crate::quantity::{self, Problem};
use crate::read::{self, KeyPath, or_list, wrong};
use crate::reading::Reading;
use crate::spec::{Default, Key, Kind, TableSpec, Tagged, Variant};
use crate::tree::{Entry, Meaning, Node, Table, Value};

/// The rules for the whole tree.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// Whether a required key must be present. In a file with a sweep the sweep may set it.
    requires_keys: bool,
    /// Whether quantities may step from copy to copy.
    allows_steps: bool,
    /// The function that tells which figures are shares.
    percent_of: Option<PercentOf>,
}

impl Checks {
    /// The rules for a cell.
    pub(crate) const ALL: Self = Self { requires_keys: true, allows_steps: false, percent_of: None };
    /// The rules for a file whose keys may be incomplete.
    pub(crate) const PRESENT: Self = Self { requires_keys: false, ..Self::ALL };

    /// Adds the knowledge of figures that `options` have.
    pub(crate) const fn with(self, options: &Options) -> Self {
        Self { percent_of: options.percent_of, ..self }
    }
}

/// Checks a cell, and notes the meaning of each right value.
pub(crate) fn check_cell(cell: Table, reading: &mut Reading<'_>) -> Table {
    check(cell, &ROOT, Checks::ALL.with(reading.options), &mut reading.log)
}

/// Checks `root`, and notes the meaning of each right value. The mistakes go to `log`.
pub(crate) fn check(mut root: Table, spec: &'static TableSpec, checks: Checks, log: &mut Log) -> Table {
    Checker { checks, log }.check_table(&mut root, spec, &Place::START, KeyPath::ROOT);
    root
}

/// Checks tables and values, each with the key path `at`.
struct Checker<'a> {
    checks: Checks,
    log: &'a mut Log,
}

impl Checker<'_> {
    /// Checks the keys and values of a table that begins at `place`.
    fn check_table(&mut self, table: &mut Table, spec: &'static TableSpec, place: &Place, at: KeyPath<'_>) {
        for entry in &mut table.entries {
            match spec.key(&entry.name) {
                Some(key) => self.check_value(&mut entry.node, &key.kind, at.key(key.name)),
                None => {
                    let known = spec.keys.iter().map(|key| key.name);
                    let problem = names::unknown_key(&entry.name, spec.noun, known);
                    self.log.problem(&entry.place, at.key(&entry.name), problem);
                }
            }
        }
        self.check_required_keys(table, spec.keys, place, at);
    }

    fn check_required_keys(&mut self, table: &Table, keys: &'static [Key], place: &Place, at: KeyPath<'_>) {
        if !self.checks.requires_keys {
            return;
        }
        for key in keys {
            if matches!(key.default, Default::Required) && table.get(key.name).is_none() {
                let message = format!("missing; expected {}", form(&key.kind));
                self.log.mistake(place, &at.key(key.name).to_string(), message, Some(key.doc.to_owned()));
            }
        }
    }

    /// Checks one value, and notes its meaning.
    fn check_value(&mut self, node: &mut Node, kind: &'static Kind, at: KeyPath<'_>) {
        if self.checks.allows_steps && is_step(node, kind) {
            node.meaning = self.read_step(node, kind, at);
            return;
        }
        match kind {
            Kind::Table(spec) => match &mut node.value {
                Value::Table(inner) => self.check_table(inner, spec, &node.place, at),
                _ => self.log.problem(&node.place, at, wrong(node, &table_form(spec))),
            },
            Kind::Tagged(tagged) => self.check_tagged(node, tagged, at),
            Kind::Map(spec) => self.check_map(node, spec, at),
            Kind::List(spec) => self.check_list(node, spec, at),
            Kind::Path(spec) => self.check_path(node, spec, at),
            Kind::Thresholds => self.check_thresholds(node, at),
            // The pass `sweep` reads the sweep.
            Kind::Sweep => {}
            _ => node.meaning = read::meaning(node, kind, at, self.log),
        }
    }

    /// Reads `{ from, step }`. Both parts are quantities of the key's kind, and the step may be zero.
    fn read_step(&mut self, node: &Node, kind: &'static Kind, at: KeyPath<'_>) -> Option<Meaning> {
        let (from, step) = node.as_table().and_then(read::as_step)?;
        let (Kind::Quantity { ranges, .. } | Kind::LinkRate { ranges, .. } | Kind::Start(ranges)) = kind
        else {
            return None;
        };
        let first = read::amount(from, ranges, at.key("from"), self.log);
        let from_zero: Vec<_> =
            ranges.iter().map(|range| quantity::DimensionRange { least: 0, ..*range }).collect();
        let by = read::amount(step, &from_zero, at.key("step"), self.log);
        let (from, by) = (first?, by?);
        if from.dimension != by.dimension {
            let message = format!("found a step of {by} from {from}, expected both in the same kind of unit");
            self.log.problem(&step.place, at, Problem::new(message));
            return None;
        }
        Some(Meaning::Step { kind, from, by: by.count })
    }

    fn check_tagged(&mut self, node: &mut Node, tagged: &'static Tagged, at: KeyPath<'_>) {
        if let (Value::Number(_), Some((variant, key))) = (&node.value, tagged.number) {
            // A bare number is the value of this key: `loss = 0.01`.
            if let Some(key) = tagged.variant(variant).and_then(|variant| variant.key(key)) {
                self.check_value(node, &key.kind, at);
            }
            return;
        }
        let Some(variant) = self.read_variant(node, tagged, at) else { return };
        let Node { value, place, .. } = node;
        let Value::Table(table) = value else {
            // A word in place of the table has no keys.
            return self.check_required_keys(&Table::default(), variant.keys, place, at);
        };
        for entry in table.entries.iter_mut().filter(|entry| entry.name != "kind") {
            match variant.key(&entry.name) {
                Some(key) => self.check_value(&mut entry.node, &key.kind, at.key(key.name)),
                None => {
                    let known = variant.keys.iter().map(|key| key.name).chain(["kind"]);
                    let problem = names::unknown_key(&entry.name, variant.name, known);
                    self.log.problem(&entry.place, at.key(&entry.name), problem);
                }
            }
        }
        self.check_required_keys(table, variant.keys, place, at);
    }

    /// Reads the kind of a tagged table, or the word in its place.
    fn read_variant(
        &mut self,
        node: &Node,
        tagged: &'static Tagged,
        at: KeyPath<'_>,
    ) -> Option<&'static Variant> {
        let kinds = tagged.variants.iter().map(|variant| variant.name);
        let kind_at = at.key("kind");
        let (word, word_at) = match node.as_table() {
            None => (node, at),
            Some(table) => match table.get("kind") {
                Some(kind) => (kind, kind_at),
                None => {
                    if let Some(variant) = implied_variant(table, tagged) {
                        return Some(variant);
                    }
                    if self.checks.requires_keys {
                        let message = format!("missing; expected {}: {}", tagged.noun, or_list(kinds));
                        self.log.mistake(&node.place, &kind_at.to_string(), message, None);
                    }
                    return None;
                }
            },
        };
        match read::one_of(word, tagged.noun, kinds, tagged.later) {
            Ok(name) => tagged.variant(name),
            Err(mut problem) => {
                if node.as_table().is_none()
                    && let Some(line) = line_for_quantity(node, tagged, at)
                {
                    problem.help = Some(line);
                }
                self.log.problem(&word.place, word_at, problem);
                None
            }
        }
    }

    fn check_map(&mut self, node: &mut Node, spec: &'static TableSpec, at: KeyPath<'_>) {
        let Value::Table(tables) = &mut node.value else {
            let form = format!("tables, each {} by its name", spec.noun);
            return self.log.problem(&node.place, at, wrong(node, &form));
        };
        for Entry { name, place, node } in &mut tables.entries {
            if let Err(problem) = check_name(name, spec) {
                self.log.problem(place, at, problem);
            }
            let at = at.key(name);
            match &mut node.value {
                Value::Table(inner) => {
                    let checks = Checks { allows_steps: true, ..self.checks };
                    Checker { checks, log: self.log }.check_table(inner, spec, place, at);
                }
                _ => self.log.problem(&node.place, at, wrong(node, &table_form(spec))),
            }
        }
    }

    fn check_list(&mut self, node: &mut Node, spec: &'static TableSpec, at: KeyPath<'_>) {
        let Value::List(tables) = &mut node.value else {
            let form = format!("a list of tables, each [[{}]]", at.name());
            return self.log.problem(&node.place, at, wrong(node, &form));
        };
        for (number, table) in (1_u64..).zip(tables) {
            let number = number.to_string();
            let at = at.key(&number);
            match &mut table.value {
                Value::Table(inner) => self.check_table(inner, spec, &table.place, at),
                _ => self.log.problem(&table.place, at, wrong(table, &table_form(spec))),
            }
        }
    }

    fn check_path(&mut self, node: &mut Node, spec: &'static TableSpec, at: KeyPath<'_>) {
        match &mut node.value {
            Value::Table(inner) => self.check_table(inner, spec, &node.place, at),
            Value::Text(_) => {
                let names = presets().iter().map(|preset| preset.name);
                if let Err(problem) = read::one_of(node, "the name of a path", names, &[]) {
                    self.log.problem(&node.place, at, problem);
                }
            }
            _ => {
                let form = "the name of a path, or a table with `up` and `down`";
                self.log.problem(&node.place, at, wrong(node, form));
            }
        }
    }

    fn check_thresholds(&mut self, node: &Node, at: KeyPath<'_>) {
        let Some(figures) = node.as_table() else {
            return self.log.problem(&node.place, at, wrong(node, &form(&Kind::Thresholds)));
        };
        for entry in &figures.entries {
            let key = at.key(&entry.name).to_string();
            bound::check(&entry.node, &entry.name, &key, self.checks.percent_of, self.log);
        }
    }
}

/// Whether `node` is `{ from, step }` of a quantity.
fn is_step(node: &Node, kind: &Kind) -> bool {
    let is_quantity = matches!(kind, Kind::Quantity { .. } | Kind::LinkRate { .. } | Kind::Start(_));
    is_quantity && node.as_table().and_then(read::as_step).is_some()
}

/// Returns the line to write if the file has a quantity in place of a table: `jitter = "20 ms"`.
fn line_for_quantity(node: &Node, tagged: &Tagged, at: KeyPath<'_>) -> Option<String> {
    let (variant, key) = tagged.quantity?;
    let Kind::Quantity { ranges, .. } = &tagged.variant(variant)?.key(key)?.kind else { return None };
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

/// Checks the name of a table in a map. Such names go into file names, tables and other names, so only plain
/// names are allowed.
fn check_name(name: &str, spec: &TableSpec) -> Result<(), Problem> {
    const MAX_LEN: usize = 64;
    let is_link = core::ptr::eq(spec, &LINK);
    // `{n}` in the name of a link is replaced by a number.
    let without_number = if is_link { name.replacen("{n}", "", 1) } else { name.to_owned() };
    let is_plain = without_number.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_plain && !name.is_empty() && name.len() <= MAX_LEN {
        return Ok(());
    }
    let and_number = if is_link { ", and {n} once" } else { "" };
    let found = quantity::quote(name);
    Err(Problem::new(format!(
        "found the name {found}, expected at most {MAX_LEN} letters, digits, - and _{and_number}"
    )))
}
