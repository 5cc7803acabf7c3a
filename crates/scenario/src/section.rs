//! Gives access to the values of one table, each in the type of its key.
//!
//! The pass `check` has noted the meaning of each right value. A getter returns `None` if the key is absent
//! or wrong; a wrong value is already in the log. A getter named `..._or_word` returns `Some(None)` for a key
//! that has a word in place of a quantity, such as `"default"`.

use talkpath_units::{Bytes, Duration, Packets, Rate};

use crate::diagnostic::{Log, Place};
use crate::quantity::{Amount, Dimension, Problem};
use crate::read::{self, KeyPath};
use crate::spec::Key;
use crate::tree::{Entry, Meaning, Node, Table, Value};

/// A table with the description of its keys and its place in the file.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    table: &'a Table,
    keys: &'static [Key],
    pub(crate) at: KeyPath<'a>,
    pub(crate) place: &'a Place,
}

impl<'a> Section<'a> {
    pub(crate) const fn new(
        table: &'a Table,
        keys: &'static [Key],
        at: KeyPath<'a>,
        place: &'a Place,
    ) -> Self {
        Self { table, keys, at, place }
    }

    pub(crate) fn node(&self, name: &str) -> Option<&'a Node> {
        self.table.get(name)
    }

    /// Whether tables of this kind may have the key `name`.
    pub(crate) fn has_key(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    pub(crate) fn meaning(&self, name: &str) -> Option<Meaning> {
        self.table.get(name)?.meaning
    }

    /// Records a problem with the value of `name`. If the value is absent, the message has the place of the
    /// table.
    pub(crate) fn problem(&self, name: &str, problem: impl Into<Problem>, log: &mut Log) {
        let place = self.table.get(name).map_or(self.place, |node| &node.place);
        log.mistake(place, self.at.key(name), problem);
    }

    /// Records a warning that the value of `name` is allowed but probably not meant.
    pub(crate) fn warning(&self, name: &str, message: &str, log: &mut Log) {
        let place = self.table.get(name).map_or(self.place, |node| &node.place);
        log.warning(place, self.at.key(name), message);
    }

    /// Returns the number of base units, or `Some(None)` for a word.
    fn amount_or_word(&self, name: &str, dimension: Dimension) -> Option<Option<u64>> {
        match self.meaning(name)? {
            Meaning::Amount(Amount { dimension: found, count }) if found == dimension => Some(Some(count)),
            Meaning::Word(_) => Some(None),
            _ => None,
        }
    }

    pub(crate) fn duration_or_word(&self, name: &str) -> Option<Option<Duration>> {
        Some(self.amount_or_word(name, Dimension::Duration)?.map(Duration::from_nanos))
    }

    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        self.duration_or_word(name)?
    }

    pub(crate) fn bytes_or_word(&self, name: &str) -> Option<Option<Bytes>> {
        Some(self.amount_or_word(name, Dimension::Size)?.map(Bytes::new))
    }

    pub(crate) fn bytes(&self, name: &str) -> Option<Bytes> {
        self.bytes_or_word(name)?
    }

    pub(crate) fn rate(&self, name: &str) -> Option<Rate> {
        Some(Rate::from_bps(self.amount_or_word(name, Dimension::Rate)??))
    }

    pub(crate) fn packets_or_word(&self, name: &str) -> Option<Option<Packets>> {
        Some(self.amount_or_word(name, Dimension::Packets)?.map(Packets::new))
    }

    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        match self.meaning(name)? {
            Meaning::Count(count) => Some(count),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.meaning(name)? {
            Meaning::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// Returns a flag. If the value is the default of the transport's stack, returns `stack_default`.
    pub(crate) fn flag_or(&self, name: &str, stack_default: bool) -> Option<bool> {
        match self.meaning(name)? {
            Meaning::Flag(flag) => Some(flag),
            Meaning::StackDefault => Some(stack_default),
            _ => None,
        }
    }

    /// Returns a number or a share.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        match self.meaning(name)? {
            Meaning::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let node = self.table.get(name)?;
        node.meaning.and_then(|_| node.as_text())
    }

    pub(crate) fn names(&self, name: &str) -> Option<impl Iterator<Item = (&'a str, &'a Place)> + use<'a>> {
        self.table.get(name)?.names()
    }

    /// Returns a word of a choice, in the spelling of the key tables.
    pub(crate) fn choice(&self, name: &str) -> Option<&'static str> {
        match self.meaning(name)? {
            Meaning::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns the kind of a tagged table, in the spelling of the key tables, and the section with its keys.
    pub(crate) fn tagged<'s>(&'s self, name: &'s str) -> Option<(&'static str, Section<'s>)> {
        let node = self.table.get(name)?;
        let Some(Meaning::Variant(variant)) = node.meaning else { return None };
        Some((variant.name, Section::new(node.as_table()?, variant.keys, self.at.key(name), &node.place)))
    }
}

/// Returns the table of copy `number`, from 1. Each `{ from, step }` becomes from + (number - 1) * step. A
/// value beyond the bounds of its key is a mistake. `at` is the key of the table.
pub(crate) fn for_copy(table: &Table, number: u64, at: KeyPath<'_>, log: &mut Log) -> Table {
    let entry = |entry: &Entry| {
        let Node { value, place, meaning, is_default } = &entry.node;
        let at = at.key(&entry.name);
        let node = match (*meaning, value) {
            (Some(Meaning::Step { kind, from, by }), _) => {
                let by = by.saturating_mul(number.saturating_sub(1));
                let amount = Amount { count: from.count.saturating_add(by), ..from };
                let mut node = Node::text(amount.to_string(), place.clone());
                node.meaning = read::meaning(&node, kind, at, log);
                node
            }
            (meaning, Value::Table(inner)) => {
                let value = Value::Table(for_copy(inner, number, at, log));
                Node { value, place: place.clone(), meaning, is_default: *is_default }
            }
            _ => entry.node.clone(),
        };
        Entry { name: entry.name.clone(), place: entry.place.clone(), node }
    };
    Table { entries: table.entries.iter().map(entry).collect() }
}

/// Returns the first `{ from, step }` in the table, or `None` if no value steps from copy to copy.
pub(crate) fn first_step(table: &Table) -> Option<&Node> {
    table.entries.iter().find_map(|entry| match entry.node.as_table() {
        Some(inner) if read::as_step(inner).is_some() => Some(&entry.node),
        Some(inner) => first_step(inner),
        None => None,
    })
}
