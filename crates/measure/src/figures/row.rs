//! A row of the table: one figure.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::text;
use super::unit::{Better, Scale, Unit};

/// A figure of a `T`: of one flow, group, link, machine or clock in one repetition.
pub struct Figure<T: 'static> {
    /// Its place in summary.json, below its flow, group or link: `call.mouth_to_ear_ms.p50`.
    pub path: &'static str,
    /// The unit of the number there.
    pub unit: Unit,
    /// How many decimals it has in [`Unit::scale`]; `None` for as many as its size needs.
    pub decimals: Option<usize>,
    /// The title of its column.
    pub short: &'static str,
    /// Its name where there is room.
    pub name: &'static str,
    /// What it is, as the end of a sentence without a full stop.
    pub definition: &'static str,
    /// Which way is better.
    pub better: Better,
    /// The least and the most that it can be, in `unit`.
    pub range: (f64, f64),
    /// Its type, and where its value is.
    pub get: Getter<T>,
    /// The messages that it is a share of; `None` if it is no share of messages.
    pub messages: Option<Messages<T>>,
}

/// The messages that a figure is a share of.
pub struct Messages<T: 'static> {
    /// How many there are.
    pub count: fn(&T) -> u64,
    /// How many more the share leaves out because nobody knows yet what becomes of them.
    pub left_out: fn(&T) -> u64,
}

/// The type of a figure, with what reads it: `None` if it is not known (`null` in summary.json).
pub enum Getter<T: 'static> {
    /// A whole number from 0 on.
    Count(fn(&T) -> Option<u64>),
    /// Any number.
    Number(fn(&T) -> Option<f64>),
    /// True or false.
    Flag(fn(&T) -> Option<bool>),
    /// A word, or a name that somebody gave.
    Word(fn(&T) -> Option<&str>),
    /// Counts by names that the path or the scenario gives, each at `PATH.NAME`.
    Counts(Counts<T>),
}

/// What reads counts by name.
pub type Counts<T> = fn(&T) -> Option<&BTreeMap<String, u64>>;

/// The value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A count or another number; finite.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A word.
    Word(&'a str),
}

/// The figures of a `T`, in the order of summary.json.
pub struct Table<T: 'static> {
    sections: &'static [&'static [Figure<T>]],
    /// In the order of their paths, for [`Self::find`].
    by_path: OnceLock<Vec<&'static Figure<T>>>,
}

impl<T: 'static> Table<T> {
    pub(crate) const fn new(sections: &'static [&'static [Figure<T>]]) -> Self {
        Self { sections, by_path: OnceLock::new() }
    }

    /// Every row.
    pub fn rows(&'static self) -> impl Iterator<Item = &'static Figure<T>> {
        self.sections.iter().copied().flatten()
    }

    /// The row at `path`; `None` if there is no such figure.
    pub fn find(&'static self, path: &str) -> Option<&'static Figure<T>> {
        let by_path = self.by_path.get_or_init(|| {
            let mut rows: Vec<_> = self.rows().collect();
            rows.sort_by_key(|figure| figure.path);
            rows
        });
        let place = by_path.binary_search_by_key(&path, |figure| figure.path).ok()?;
        by_path.get(place).copied()
    }

    /// The row at `path`, for who knows that there is one.
    ///
    /// # Panics
    /// There is no such figure.
    pub fn row(&'static self, path: &str) -> &'static Figure<T> {
        self.find(path).unwrap_or_else(|| panic!("no figure {path}"))
    }

    /// The messages that the figure at `path` is a share of; `None` if it is no share of messages.
    pub fn messages(&'static self, path: &str) -> Option<&'static Messages<T>> {
        self.find(path)?.messages.as_ref()
    }

    /// The counts that the one at `path` belongs to, and its name there: `EF` of `ip.forward.dscp.EF`.
    pub fn counts<'p>(&'static self, path: &'p str) -> Option<(Counts<T>, &'p str)> {
        self.rows().find_map(|figure| match figure.get {
            Getter::Counts(get) => Some((get, path.strip_prefix(figure.path)?.strip_prefix('.')?)),
            _ => None,
        })
    }

    /// Hands over every number of `of` that is known.
    pub fn each_number(&'static self, of: &T, mut each: impl FnMut(&'static Figure<T>, f64)) {
        for figure in self.rows() {
            if let Some(value) = figure.number(of) {
                each(figure, value);
            }
        }
    }
}

impl<T: 'static> Figure<T> {
    /// The figure if it is a number and known. What JSON cannot write is not known (RFC 8259 §6).
    pub fn number(&self, of: &T) -> Option<f64> {
        match self.get {
            Getter::Count(get) => get(of).map(|count| count as f64),
            Getter::Number(get) => get(of).filter(|value| value.is_finite()),
            Getter::Flag(_) | Getter::Word(_) | Getter::Counts(_) => None,
        }
    }

    /// The figure; `None` if it is not known.
    pub fn value<'a>(&self, of: &'a T) -> Option<Value<'a>> {
        match self.get {
            Getter::Count(_) | Getter::Number(_) => self.number(of).map(Value::Number),
            Getter::Flag(get) => get(of).map(Value::Flag),
            Getter::Word(get) => get(of).map(Value::Word),
            Getter::Counts(_) => None,
        }
    }

    /// The figure for people, without its unit; [`text::UNKNOWN`] if it is not known.
    pub fn text(&self, of: &T) -> String {
        if let Getter::Counts(get) = self.get
            && let Some(counts) = get(of).filter(|counts| !counts.is_empty())
        {
            let each = counts.iter().take(MOST_NAMES);
            let mut each: Vec<String> =
                each.map(|(name, count)| format!("{name} {}", text::count(*count))).collect();
            each.extend((counts.len() > MOST_NAMES).then(|| "…".to_owned()));
            return each.join(", ");
        }
        match self.value(of) {
            // Summaries of earlier versions have words that are empty.
            None | Some(Value::Word("")) => text::UNKNOWN.to_owned(),
            Some(Value::Number(value)) => self.written(value),
            Some(Value::Flag(true)) => "yes".to_owned(),
            Some(Value::Flag(false)) => "no".to_owned(),
            Some(Value::Word(word)) => word.to_owned(),
        }
    }

    /// `value` of this figure for people, without its unit. A mean of counts may lie between two whole
    /// numbers.
    pub fn written(&self, value: f64) -> String {
        let scale = self.scale();
        let is_whole = value >= 0.0 && value.fract().abs().total_cmp(&0.0).is_eq();
        match self.get {
            Getter::Count(_) if scale.factor.total_cmp(&1.0).is_eq() && is_whole => text::count(value as u64),
            Getter::Count(_) if scale.factor.total_cmp(&1.0).is_eq() => text::fixed(Some(value), 1),
            _ => scale.text(Some(value)),
        }
    }

    /// How it is written by itself.
    pub const fn scale(&self) -> Scale {
        match (&self.get, self.unit) {
            // As of an MTU.
            (Getter::Count(_), Unit::Bytes) => Scale::BYTES,
            _ => Scale { decimals: self.decimals, ..self.unit.scale() },
        }
    }

    /// Its name and the unit that [`Self::text`] has: `round trip p90, ms`.
    pub fn title(&self) -> String {
        match self.scale().unit {
            "" => self.name.to_owned(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    /// Whether it is a number.
    pub const fn is_number(&self) -> bool {
        matches!(self.get, Getter::Count(_) | Getter::Number(_))
    }

    const fn new(
        path: &'static str,
        unit: Unit,
        name: &'static str,
        definition: &'static str,
        get: Getter<T>,
    ) -> Self {
        let decimals = unit.scale().decimals;
        Self {
            path,
            unit,
            decimals,
            short: name,
            name,
            definition,
            better: Better::Neither,
            range: unit.range(),
            get,
            messages: None,
        }
    }

    pub(crate) const fn count(
        path: &'static str,
        name: &'static str,
        definition: &'static str,
        get: fn(&T) -> Option<u64>,
    ) -> Self {
        Self::new(path, Unit::Count, name, definition, Getter::Count(get))
    }

    /// A whole number of another unit than [`Unit::Count`].
    pub(crate) const fn whole(
        path: &'static str,
        unit: Unit,
        name: &'static str,
        definition: &'static str,
        get: fn(&T) -> Option<u64>,
    ) -> Self {
        Self::new(path, unit, name, definition, Getter::Count(get))
    }

    pub(crate) const fn number_of(
        path: &'static str,
        unit: Unit,
        name: &'static str,
        definition: &'static str,
        get: fn(&T) -> Option<f64>,
    ) -> Self {
        Self::new(path, unit, name, definition, Getter::Number(get))
    }

    pub(crate) const fn flag(
        path: &'static str,
        name: &'static str,
        definition: &'static str,
        get: fn(&T) -> Option<bool>,
    ) -> Self {
        Self::new(path, Unit::One, name, definition, Getter::Flag(get))
    }

    pub(crate) const fn word(
        path: &'static str,
        name: &'static str,
        definition: &'static str,
        get: fn(&T) -> Option<&str>,
    ) -> Self {
        Self::new(path, Unit::One, name, definition, Getter::Word(get))
    }

    pub(crate) const fn counts(
        path: &'static str,
        name: &'static str,
        definition: &'static str,
        get: Counts<T>,
    ) -> Self {
        Self::new(path, Unit::Count, name, definition, Getter::Counts(get))
    }

    /// With another title than its name.
    pub(crate) const fn short(self, short: &'static str) -> Self {
        Self { short, ..self }
    }

    /// The more, the better.
    pub(crate) const fn more(self) -> Self {
        Self { better: Better::More, ..self }
    }

    /// The less, the better.
    pub(crate) const fn less(self) -> Self {
        Self { better: Better::Less, ..self }
    }

    /// With this number of decimals in the unit for people.
    pub(crate) const fn decimals(self, decimals: usize) -> Self {
        Self { decimals: Some(decimals), ..self }
    }

    /// With a least and a most that its unit does not say.
    pub(crate) const fn within(self, least: f64, most: f64) -> Self {
        Self { range: (least, most), ..self }
    }

    /// A share of this many messages. Its interval over repetitions and its thresholds go by that number.
    pub(crate) const fn of_messages(self, count: fn(&T) -> u64) -> Self {
        Self { messages: Some(Messages { count, left_out: |_| 0 }), ..self }
    }

    /// A share of this many messages, which leaves out those that nobody knows yet what becomes of.
    pub(crate) const fn of_ended_messages(self, count: fn(&T) -> u64, left_out: fn(&T) -> u64) -> Self {
        Self { messages: Some(Messages { count, left_out }), ..self }
    }
}

/// Names that the text of counts by name has. Chosen: what a cell holds.
const MOST_NAMES: usize = 8;
