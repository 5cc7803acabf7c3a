//! What the values of one table mean, each as the type that its key has.

use talkpath_units::{Bytes, Duration, Packets};

use crate::diagnostic::{Log, Place};
use crate::quantity::{Amount, Dimension, Problem};
use crate::read::{self, At};
use crate::spec::Key;
use crate::tree::{Entry, Meaning, Node, Table, Value};

/// A table, the keys that it may have, and its place in the file.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    table: &'a Table,
    keys: &'static [Key],
    pub(crate) at: At<'a>,
    pub(crate) place: &'a Place,
}

impl<'a> Section<'a> {
    pub(crate) const fn new(table: &'a Table, keys: &'static [Key], at: At<'a>, place: &'a Place) -> Self {
        Self { table, keys, at, place }
    }

    pub(crate) fn node(&self, name: &str) -> Option<&'a Node> {
        self.table.get(name)
    }

    /// Whether a table of this kind may have the key `name`.
    pub(crate) fn has_key(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// What the value of `name` means. `None` if it is absent, or wrong: its mistake is reported already.
    pub(crate) fn meaning(&self, name: &str) -> Option<Meaning> {
        self.table.get(name)?.meaning
    }

    /// Records `problem` with the value of `name`, or with the table if the value is absent.
    pub(crate) fn problem(&self, name: &str, problem: Problem, log: &mut Log) {
        let place = self.table.get(name).map_or(self.place, |node| &node.place);
        log.mistake(place, &self.at.key(name).to_string(), problem.message, problem.help);
    }

    /// Records that the value of `name` is allowed but probably not meant.
    pub(crate) fn warning(&self, name: &str, message: &str, log: &mut Log) {
        let place = self.table.get(name).map_or(self.place, |node| &node.place);
        log.warning(place, &self.at.key(name).to_string(), message);
    }

    fn amount(&self, name: &str, dimension: Dimension) -> Option<Option<u64>> {
        match self.meaning(name)? {
            Meaning::Amount(Amount { dimension: found, count }) if found == dimension => Some(Some(count)),
            Meaning::Word(_) => Some(None),
            _ => None,
        }
    }

    /// A duration, or (`None` inside) its word.
    pub(crate) fn duration_or_word(&self, name: &str) -> Option<Option<Duration>> {
        Some(self.amount(name, Dimension::Duration)?.map(Duration::from_nanos))
    }

    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        self.duration_or_word(name)?
    }

    /// A size, or (`None` inside) its word.
    pub(crate) fn bytes_or_word(&self, name: &str) -> Option<Option<Bytes>> {
        Some(self.amount(name, Dimension::Size)?.map(Bytes::new))
    }

    pub(crate) fn bytes(&self, name: &str) -> Option<Bytes> {
        self.bytes_or_word(name)?
    }

    /// Packets, or (`None` inside) their word.
    pub(crate) fn packets_or_word(&self, name: &str) -> Option<Option<Packets>> {
        Some(self.amount(name, Dimension::Packets)?.map(Packets::new))
    }

    /// A whole number.
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

    /// A flag, or `own`, that of the transport's stack.
    pub(crate) fn flag_or(&self, name: &str, own: bool) -> Option<bool> {
        match self.meaning(name)? {
            Meaning::Flag(flag) => Some(flag),
            Meaning::OfStack => Some(own),
            _ => None,
        }
    }

    /// A number or a share.
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

    /// The names of a list, each with its place.
    pub(crate) fn names(&self, name: &str) -> Option<impl Iterator<Item = (&'a str, &'a Place)> + use<'a>> {
        self.table.get(name)?.names()
    }

    /// One of a choice, as the key tables spell it.
    pub(crate) fn choice(&self, name: &str) -> Option<&'static str> {
        match self.meaning(name)? {
            Meaning::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The variant's word of the tagged table `name`, as the key tables spell it, and its own section.
    pub(crate) fn tagged<'s>(&'s self, name: &'s str) -> Option<(&'static str, Section<'s>)> {
        let node = self.table.get(name)?;
        let Some(Meaning::Variant(variant)) = node.meaning else { return None };
        Some((variant.name, Section::new(node.as_table()?, variant.keys, self.at.key(name), &node.place)))
    }
}

/// `table`, which lies at `at`, for copy `number` (from 1): each `{ from, step }` becomes from + (number - 1)
/// step. One that goes beyond its key's bounds is a mistake.
pub(crate) fn for_copy(table: &Table, number: u64, at: At<'_>, log: &mut Log) -> Table {
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

/// Whether any value of `table` steps from copy to copy; if so, the first one.
pub(crate) fn first_step(table: &Table) -> Option<&Node> {
    table.entries.iter().find_map(|entry| match entry.node.as_table() {
        Some(inner) if read::as_step(inner).is_some() => Some(&entry.node),
        Some(inner) => first_step(inner),
        None => None,
    })
}
