//! Typed access to the values of one table.

use talkpath_units::{Bytes, Duration, Packets};

use crate::diagnostic::{Log, Place};
use crate::quantity::{Amount, Dimension, Problem};
use crate::read::{self, At, Reading};
use crate::spec::{Key, Kind};
use crate::tree::{Entry, Node, Table, Value};

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

    /// Value and key of `name`; a value that is still a step has mistakes, which are reported already.
    fn entry(&self, name: &str) -> Option<(&'a Node, &'static Key)> {
        let node = self.table.get(name).filter(|node| node.as_table().and_then(read::as_step).is_none())?;
        Some((node, self.keys.iter().find(|key| key.name == name)?))
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

    /// A quantity or its word.
    pub(crate) fn reading(&self, name: &str, log: &mut Log) -> Option<Reading> {
        let (node, key) = self.entry(name)?;
        match key.kind {
            Kind::Quantity { measures, words } => {
                read::quantity(node, measures, words, self.at.key(key.name), log)
            }
            Kind::LinkRate { measures, words } => {
                read::link_rate(node, measures, words, self.at.key(key.name), log)
            }
            _ => None,
        }
    }

    fn amount(&self, name: &str, dimension: Dimension, log: &mut Log) -> Option<Option<u64>> {
        match self.reading(name, log)? {
            Reading::Amount(Amount { dimension: found, count }) if found == dimension => Some(Some(count)),
            Reading::Amount(_) => None,
            Reading::Word(_) => Some(None),
        }
    }

    /// A duration, or (`None` inside) its word.
    pub(crate) fn duration_or_word(&self, name: &str, log: &mut Log) -> Option<Option<Duration>> {
        Some(self.amount(name, Dimension::Duration, log)?.map(Duration::from_nanos))
    }

    pub(crate) fn duration(&self, name: &str, log: &mut Log) -> Option<Duration> {
        self.duration_or_word(name, log)?
    }

    /// A size, or (`None` inside) its word.
    pub(crate) fn bytes_or_word(&self, name: &str, log: &mut Log) -> Option<Option<Bytes>> {
        Some(self.amount(name, Dimension::Size, log)?.map(Bytes::new))
    }

    pub(crate) fn bytes(&self, name: &str, log: &mut Log) -> Option<Bytes> {
        self.bytes_or_word(name, log)?
    }

    /// Packets, or (`None` inside) their word.
    pub(crate) fn packets_or_word(&self, name: &str, log: &mut Log) -> Option<Option<Packets>> {
        Some(self.amount(name, Dimension::Packets, log)?.map(Packets::new))
    }

    pub(crate) fn count(&self, name: &str, log: &mut Log) -> Option<u64> {
        match self.entry(name)? {
            (node, Key { kind: Kind::Count { least, most }, name, .. }) => {
                read::count(node, *least, *most, self.at.key(name), log)
            }
            _ => None,
        }
    }

    pub(crate) fn seed(&self, name: &str, log: &mut Log) -> Option<u64> {
        self.entry(name).and_then(|(node, key)| read::seed(node, self.at.key(key.name), log))
    }

    pub(crate) fn flag(&self, name: &str, log: &mut Log) -> Option<bool> {
        self.entry(name).and_then(|(node, key)| read::flag(node, self.at.key(key.name), log))
    }

    pub(crate) fn flag_or_default(&self, name: &str, log: &mut Log) -> Option<Option<bool>> {
        self.entry(name).and_then(|(node, key)| read::flag_or_default(node, self.at.key(key.name), log))
    }

    pub(crate) fn probability(&self, name: &str, log: &mut Log) -> Option<f64> {
        self.entry(name).and_then(|(node, key)| read::probability(node, self.at.key(key.name), log))
    }

    pub(crate) fn number(&self, name: &str, log: &mut Log) -> Option<f64> {
        match self.entry(name)? {
            (node, Key { kind: Kind::Number { above, most }, name, .. }) => {
                read::bounded(node, *above, *most, self.at.key(name), log)
            }
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str, log: &mut Log) -> Option<&'a str> {
        match self.entry(name)? {
            (node, Key { kind: Kind::Text { longest }, name, .. }) => {
                read::text(node, *longest, self.at.key(name), log)
            }
            _ => None,
        }
    }

    pub(crate) fn choice(&self, name: &str, log: &mut Log) -> Option<&'static str> {
        match self.entry(name)? {
            (node, Key { kind: Kind::Choice(words), name, .. }) => {
                read::choice(node, words, self.at.key(name), log)
            }
            _ => None,
        }
    }

    /// The kind of the tagged table `name`, as the key tables spell it, and its own section.
    pub(crate) fn tagged<'s>(&'s self, name: &str) -> Option<(&'static str, Section<'s>)> {
        let (node, key) = self.entry(name)?;
        let Kind::Tagged(tagged) = key.kind else { return None };
        let table = node.as_table()?;
        let variant = tagged.variant(table.get("kind")?.as_text()?)?;
        Some((variant.name, Section::new(table, variant.keys, self.at.key(key.name), &node.place)))
    }
}

/// `node` for copy `number` (from 1): each `{ from, step }` becomes from + (number - 1) step.
pub(crate) fn for_copy(node: &Node, number: u64) -> Node {
    let value = match &node.value {
        Value::Table(table) => {
            match read::as_step(table).and_then(|(from, step)| stepped(from, step, number)) {
                Some(amount) => Value::Text(amount.to_string()),
                None => Value::Table(for_copy_table(table, number)),
            }
        }
        other => other.clone(),
    };
    Node { value, place: node.place.clone() }
}

/// As [`for_copy`], for a whole table.
pub(crate) fn for_copy_table(table: &Table, number: u64) -> Table {
    let entry = |entry: &Entry| Entry { node: for_copy(&entry.node, number), ..entry.clone() };
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

fn stepped(from: &Node, step: &Node, number: u64) -> Option<Amount> {
    use crate::quantity::Measure;
    let any = Dimension::ALL.map(|dimension| Measure { dimension, least: 0, most: u64::MAX });
    let from = crate::quantity::parse(from.as_text()?, &any).ok()?;
    let step = crate::quantity::parse(step.as_text()?, &any).ok()?;
    let by = step.count.saturating_mul(number.saturating_sub(1));
    (from.dimension == step.dimension).then_some(Amount { count: from.count.saturating_add(by), ..from })
}
