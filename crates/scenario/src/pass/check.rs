//! Checks the keys and values of a tree against the key tables, and writes the defaults of absent keys.
//!
//! - A *key table* lists the keys of one table of the file, each with the kind of its values and its default.
//! - The *meaning* of a value is the value in the Rust type of its kind, for example a duration in
//!   nanoseconds. A right value gets its meaning here. A wrong value has a mistake in the log instead.
//! - The *place* of a value is its position in the file. Its *key path* is the names from the root to the
//!   value, such as `path.up.rate`. Every mistake has both.
//! - A *tagged* table has a key `kind`, and each `kind` has keys of its own. A `kind` with its keys is a
//!   *variant*. A *shorthand* is a single value in place of a tagged table: `transport = "tcp"`.
//! - A *map* is a table of tables whose names the user chooses, such as `[link.NAME]`.
//! - A *step* is `{ from, step }`: a quantity that grows from one copy of a flow or link to the next.
//!
//! Rules that compare several keys, such as a route and its links, are in [`crate::resolve`]. Begin to read
//! with [`check`].

use super::set::{expand_tagged, implied_variant};
use crate::bound;
use crate::diagnostic::{Log, Place};
use crate::form::{form, or_list, table_form};
use crate::keys::{KERNEL, LINK};
use crate::names;
use crate::options::{Options, PercentOf};
use crate::preset::presets;
use crate::quantity::{self, DimensionRange, Problem};
use crate::read::{self, KeyPath, wrong};
use crate::spec::{Default, Key, Kind, TAG, TableSpec, Tagged, Variant};
use crate::transports::{self, TRANSPORT};
use crate::tree::{Entry, Meaning, Node, Table, Value, parse_value};

/// The rules for a whole tree.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// Whether a required key must be present. It may be absent from a file whose sweep sets it.
    requires_keys: bool,
    /// Whether a quantity may be a step.
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

/// Returns the table with its defaults, and each right value with its meaning. The keys are in the order of
/// the key table `spec`. Mistakes go to `log`, and unknown keys are left out.
pub(crate) fn check(mut table: Table, spec: &TableSpec, checks: Checks, log: &mut Log) -> Table {
    Checker { checks, kernel: None, log }.check_table(&mut table, spec, &Place::START, KeyPath::ROOT);
    table
}

/// Checks tables and values in place.
struct Checker<'a> {
    checks: Checks,
    /// The checked value of the key `kernel`, whose keys are defaults of Linux transports. `None` before the
    /// key, which comes before the flows, and without it.
    kernel: Option<Table>,
    log: &'a mut Log,
}

impl Checker<'_> {
    fn check_table(&mut self, table: &mut Table, spec: &TableSpec, place: &Place, at: KeyPath<'_>) {
        self.report_unknown(table, spec.noun, &names_of(spec.keys), at);
        self.check_keys(table, spec.keys, place, at);
    }

    fn report_unknown(&mut self, table: &Table, noun: &str, known: &[&str], at: KeyPath<'_>) {
        for entry in &table.entries {
            if !known.contains(&entry.name.as_str()) {
                let problem = names::unknown_key(&entry.name, noun, known.iter().copied());
                self.log.mistake(&entry.place, at.key(&entry.name), problem);
            }
        }
    }

    /// Checks the values of `keys`, adds the defaults of absent keys, and removes all other keys.
    fn check_keys(&mut self, table: &mut Table, keys: &'static [Key], place: &Place, at: KeyPath<'_>) {
        let mut written = core::mem::take(table);
        for key in keys {
            match (written.take(key.name), key.default) {
                (Some(mut entry), _) => {
                    self.check_value(&mut entry.node, &key.kind, at.key(key.name));
                    table.entries.push(entry);
                }
                (None, Default::Required) if self.checks.requires_keys => {
                    let problem = Problem::new(format!("missing; expected {}", form(&key.kind)));
                    self.log.mistake(place, at.key(key.name), problem.with_help(key.doc));
                }
                (None, Default::Is(toml)) => self.set_default(table, key, toml, place, at),
                (None, Default::Required | Default::Follows(_) | Default::Absent(_)) => {}
            }
        }
    }

    /// Sets `key` to its default, which is the text `toml`.
    fn set_default(
        &mut self,
        table: &mut Table,
        key: &'static Key,
        toml: &str,
        place: &Place,
        at: KeyPath<'_>,
    ) {
        let Some(mut node) = parse_value(toml, place) else { return };
        self.check_value(&mut node, &key.kind, at.key(key.name));
        node.is_default = true;
        table.set(key.name, node);
    }

    /// Checks one value, and sets its meaning.
    fn check_value(&mut self, node: &mut Node, kind: &'static Kind, at: KeyPath<'_>) {
        if self.checks.allows_steps && is_step(node, kind) {
            node.meaning = self.read_step(node, kind, at);
            return;
        }
        match kind {
            Kind::Table(spec) => self.check_inner_table(node, spec, None, at),
            Kind::Tagged(tagged) => self.check_tagged(node, tagged, at),
            Kind::Map(spec) => self.check_map(node, spec, at),
            Kind::List(spec) => self.check_list(node, spec, at),
            Kind::Path(spec) => self.check_path(node, spec, at),
            Kind::Thresholds => self.check_thresholds(node, at),
            // `super::sweep` has checked `[sweep]` and removed it from the cells.
            Kind::Sweep => {}
            _ => node.meaning = read::meaning(node, kind, at, self.log),
        }
    }

    /// Checks a value that must be a table. `header` is the place of the table's name, if it has one.
    fn check_inner_table(
        &mut self,
        node: &mut Node,
        spec: &TableSpec,
        header: Option<&Place>,
        at: KeyPath<'_>,
    ) {
        match &mut node.value {
            Value::Table(inner) => self.check_table(inner, spec, header.unwrap_or(&node.place), at),
            _ => self.log.mistake(&node.place, at, wrong(node, &table_form(spec))),
        }
    }

    /// Reads a step. `from` must be in the ranges of the key, and `step` may be zero.
    fn read_step(&mut self, node: &Node, kind: &'static Kind, at: KeyPath<'_>) -> Option<Meaning> {
        let (from, step) = node.as_table().and_then(read::as_step)?;
        let ranges = step_ranges(kind)?;
        let from_zero: Vec<_> = ranges.iter().map(|range| DimensionRange { least: 0, ..*range }).collect();
        let first_amount = read::amount(from, ranges, at.key("from"), self.log);
        let step_amount = read::amount(step, &from_zero, at.key("step"), self.log);
        let (first_amount, step_amount) = (first_amount?, step_amount?);
        if first_amount.dimension != step_amount.dimension {
            let message = format!(
                "found a step of {step_amount} from {first_amount}, expected both in the same kind of unit"
            );
            self.log.mistake(&step.place, at, message);
            return None;
        }
        Some(Meaning::Step { kind, from: first_amount, by: step_amount.count })
    }

    /// Checks a tagged table. A shorthand is written out as its table.
    fn check_tagged(&mut self, node: &mut Node, tagged: &'static Tagged, at: KeyPath<'_>) {
        let variant = match (&node.value, tagged.number) {
            (Value::Number(_), Some(number)) => {
                // The mistakes of a bare number (`loss = 7`) have the key path in the file, `path.up.loss`.
                // The check of the table finds them again at `path.up.loss.rate`, and the log drops repeats.
                if let Some(key) = tagged.variant(number.variant).and_then(|variant| variant.key(number.key))
                {
                    self.check_value(node, &key.kind, at);
                }
                tagged.variant(number.variant)
            }
            _ => self.read_variant(node, tagged, at),
        };
        let Some(variant) = variant else { return };
        expand_tagged(node, tagged);
        let Node { value: Value::Table(table), place, meaning, .. } = node else { return };
        if let Some(kernel) = self.kernel.as_ref().filter(|_| core::ptr::eq(tagged, &TRANSPORT)) {
            set_kernel_values(table, variant, kernel);
        }
        self.report_unknown(table, variant.name, &[&names_of(variant.keys)[..], &[TAG]].concat(), at);
        let tag = table.take(TAG);
        self.check_keys(table, variant.keys, place, at);
        self.set_followers(table, variant, place, at);
        if core::ptr::eq(tagged, &KERNEL) {
            self.kernel = Some(table.clone());
        }
        table.entries.splice(0..0, tag);
        *meaning = Some(Meaning::Variant(variant));
    }

    /// Sets the absent keys of a variant whose defaults follow other keys.
    fn set_followers(
        &mut self,
        table: &mut Table,
        variant: &'static Variant,
        place: &Place,
        at: KeyPath<'_>,
    ) {
        if !variant.keys.iter().any(|key| matches!(key.default, Default::Follows(_))) {
            return;
        }
        for (name, toml) in transports::defaults(variant.name, table) {
            if table.get(name).is_none()
                && let Some(key) = variant.key(name)
            {
                self.set_default(table, key, &toml, place, at);
            }
        }
        let position = |name: &str| variant.keys.iter().position(|key| key.name == name);
        table.entries.sort_by_key(|entry| position(&entry.name));
    }

    /// Returns the variant that a tagged table, or the word in its place, names.
    fn read_variant(
        &mut self,
        node: &Node,
        tagged: &'static Tagged,
        at: KeyPath<'_>,
    ) -> Option<&'static Variant> {
        let names = tagged.variants.iter().map(|variant| variant.name);
        let tag_path = at.key(TAG);
        let (word, word_path) = match node.as_table() {
            None => (node, at),
            Some(table) => match table.get(TAG) {
                Some(tag) => (tag, tag_path),
                None => {
                    let implied = implied_variant(table, tagged);
                    if implied.is_none() && self.checks.requires_keys {
                        let message = format!("missing; expected {}: {}", tagged.noun, or_list(names));
                        self.log.mistake(&node.place, tag_path, message);
                    }
                    return implied;
                }
            },
        };
        match read::one_of(word, tagged.noun, names, tagged.later) {
            Ok(name) => tagged.variant(name),
            Err(mut problem) => {
                if node.as_table().is_none()
                    && let Some(line) = table_of_quantity(node, tagged, at)
                {
                    problem.help = Some(line);
                }
                self.log.mistake(&word.place, word_path, problem);
                None
            }
        }
    }

    fn check_map(&mut self, node: &mut Node, spec: &TableSpec, at: KeyPath<'_>) {
        let Value::Table(tables) = &mut node.value else {
            let form = format!("tables, each {} by its name", spec.noun);
            return self.log.mistake(&node.place, at, wrong(node, &form));
        };
        // Flows and links are the tables that may have copies, so steps are for maps alone.
        self.checks.allows_steps = true;
        for Entry { name, place, node } in &mut tables.entries {
            if let Err(problem) = check_name(name, spec) {
                self.log.mistake(place, at, problem);
            }
            self.check_inner_table(node, spec, Some(place), at.key(name));
        }
        self.checks.allows_steps = false;
    }

    fn check_list(&mut self, node: &mut Node, spec: &TableSpec, at: KeyPath<'_>) {
        let Value::List(tables) = &mut node.value else {
            let form = format!("a list of tables, each [[{}]]", at.name());
            return self.log.mistake(&node.place, at, wrong(node, &form));
        };
        // The values of a list are the same for all copies.
        let allows_steps = core::mem::replace(&mut self.checks.allows_steps, false);
        for (number, table) in (1_u64..).zip(tables) {
            self.check_inner_table(table, spec, None, at.key(&number.to_string()));
        }
        self.checks.allows_steps = allows_steps;
    }

    fn check_path(&mut self, node: &mut Node, spec: &'static TableSpec, at: KeyPath<'_>) {
        match &mut node.value {
            Value::Table(inner) => self.check_table(inner, spec, &node.place, at),
            // A file that cannot be read.
            Value::Text(_) if self.log.has_mistake_in(&at.to_string()) => {}
            Value::Text(_) => {
                let names = presets().iter().map(|preset| preset.name);
                if let Err(mut problem) = read::one_of(node, "the name of a path", names, &[]) {
                    problem.message += "; a path file's name has a point or a slash, as in line.toml or ./line, and a sweep takes presets alone";
                    self.log.mistake(&node.place, at, problem);
                }
            }
            _ => self.log.mistake(&node.place, at, wrong(node, &form(&Kind::Path(spec)))),
        }
    }

    fn check_thresholds(&mut self, node: &Node, at: KeyPath<'_>) {
        let Some(figures) = node.as_table() else {
            return self.log.mistake(&node.place, at, wrong(node, &form(&Kind::Thresholds)));
        };
        for entry in &figures.entries {
            let key = at.key(&entry.name).to_string();
            bound::check(&entry.node, &entry.name, &key, self.checks.percent_of, self.log);
        }
    }
}

fn names_of(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// Sets the keys that the file leaves open in a transport with `stack = "linux"` to the values of the kernel:
/// what the build of a kernel and its administrator determine. The stack follows Linux 6.18 with every
/// kernel, because changes of TCP itself between versions are left out.
fn set_kernel_values(transport: &mut Table, variant: &Variant, kernel: &Table) {
    let is_linux = transport.get("stack").map_or(Some("linux"), Node::as_text) == Some("linux");
    if variant.key("stack").is_none() || !is_linux {
        return;
    }
    for entry in &kernel.entries {
        let is_right = entry.node.meaning.is_some();
        if is_right && transport.get(&entry.name).is_none() && variant.key(&entry.name).is_some() {
            transport.set(&entry.name, entry.node.clone());
        }
    }
}

/// Returns the ranges of a kind whose values may be steps.
const fn step_ranges(kind: &Kind) -> Option<&'static [DimensionRange]> {
    match kind {
        Kind::Quantity { ranges, .. } | Kind::LinkRate { ranges, .. } | Kind::Start(ranges) => Some(ranges),
        _ => None,
    }
}

fn is_step(node: &Node, kind: &Kind) -> bool {
    step_ranges(kind).is_some() && node.as_table().and_then(read::as_step).is_some()
}

/// Returns the line that was probably meant by a quantity in place of a tagged table: for `jitter = "20 ms"`
/// it is `write jitter = { kind = "normal", sd = "20 ms" }`.
fn table_of_quantity(node: &Node, tagged: &Tagged, at: KeyPath<'_>) -> Option<String> {
    let meant = tagged.quantity?;
    let key = tagged.variant(meant.variant)?.key(meant.key)?;
    let Kind::Quantity { ranges, .. } = &key.kind else { return None };
    let (Value::Text(text) | Value::Number(text)) = &node.value else { return None };
    let amount = match quantity::parse(text, ranges) {
        Ok(amount) => quantity::in_largest_unit(amount),
        Err(_) => read::proposal(text, ranges, at.key(key.name))?,
    };
    Some(format!("write {} = {{ kind = \"{}\", {} = \"{amount}\" }}", at.name(), meant.variant, key.name))
}

/// Checks the name of a table in a map. Such names go into file names, tables and other names, so only plain
/// names are allowed.
fn check_name(name: &str, spec: &TableSpec) -> Result<(), Problem> {
    const MAX_LEN: usize = 64;
    let is_link = spec.noun == LINK.noun;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ROOT;
    use crate::tree;

    /// Collects the keys of `table` whose values should have a meaning and have none.
    fn without_meaning(table: &Table, keys: &'static [Key], above: &str, into: &mut Vec<String>) {
        for key in keys {
            let Some(node) = table.get(key.name) else { continue };
            let at = format!("{above}.{}", key.name);
            match (key.kind, node.meaning, node.as_table()) {
                (Kind::Table(spec) | Kind::Path(spec), _, Some(inner)) => {
                    without_meaning(inner, spec.keys, &at, into);
                }
                (Kind::Map(spec), _, Some(inner)) => {
                    for inner in inner.entries.iter().filter_map(|entry| entry.node.as_table()) {
                        without_meaning(inner, spec.keys, &at, into);
                    }
                }
                (Kind::Tagged(_), Some(Meaning::Variant(variant)), Some(inner)) => {
                    without_meaning(inner, variant.keys, &at, into);
                }
                (_, Some(_), _) => {}
                (_, None, _) => into.push(at),
            }
        }
    }

    #[test]
    fn every_value_and_every_default_of_a_scenario_without_mistakes_has_its_meaning() {
        for variant in TRANSPORT.variants {
            let text = format!(
                "duration = \"1 s\"\nkernel = \"debian-12\"\npath = {{ up = {{ loss = 0.1, queue = \"fq\" }}, \
                 down = {{ jitter = {{ kind = \"pareto\", mean = \"1 ms\" }} }} }}\n[far_clock]\n\
                 [flow.a]\ncount = 2\nstart = {{ from = \"0 s\", step = \"1 ms\" }}\n\
                 transport = \"{}\"\nworkload = \"voice\"\n",
                variant.name
            );
            let mut log = Log::default();
            let checked = check(tree::parse(&text, &mut log), &ROOT, Checks::ALL, &mut log);
            assert!(log.is_clean(), "{}: {log:?}", variant.name);
            let mut without = Vec::new();
            without_meaning(&checked, ROOT.keys, "", &mut without);
            assert_eq!(without, Vec::<String>::new(), "{}", variant.name);
        }
    }
}
