//! A row of the table of figures, which describes one figure of summary.json.
//!
//! Adding a figure is adding a row. Begin to read with [`Figure`] and its constructors, such as
//! [`Figure::number_of`].

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::text;
use super::unit::{Better, Scale, Unit};

/// The largest number of names in the text of counts by name. We chose 8, because a cell of a table has no
/// room for more.
const MAX_NAMES: usize = 8;

/// A figure of a `T`, which is a flow, a group, a link, a machine or a clock in one repetition.
pub struct Figure<T: 'static> {
    /// The place of the figure in summary.json, below its `T`: `call.mouth_to_ear_ms.p50`.
    pub path: &'static str,
    /// The unit of the number in summary.json.
    pub unit: Unit,
    /// The number of decimals in [`Unit::scale`]. `None` if it depends on the size of the number.
    pub decimals: Option<usize>,
    /// The title of a column with the figure.
    pub short: &'static str,
    /// The full name of the figure.
    pub name: &'static str,
    /// The definition, as the end of a sentence without a full stop.
    pub definition: &'static str,
    /// Whether a larger or a smaller figure is better.
    pub better: Better,
    /// The smallest and the largest possible value, in `unit`.
    pub range: (f64, f64),
    /// The type of the figure, and the function that reads its value.
    pub get: Getter<T>,
    /// The messages that the figure is a share of. `None` if it is not a share of messages.
    pub messages: Option<Messages<T>>,
}

/// The messages that a figure is a share of.
pub struct Messages<T: 'static> {
    /// The number of messages.
    pub count: fn(&T) -> u64,
    /// How many more messages the share leaves out, because nobody knows yet what becomes of them.
    pub left_out: fn(&T) -> u64,
    /// How many independent messages tell as much. `None` if that is not known.
    pub independent: fn(&T) -> Option<f64>,
}

/// The type of a figure, with the function that reads its value. The function returns `None` if the figure
/// is unknown, which is `null` in summary.json.
pub enum Getter<T: 'static> {
    /// A whole number that is not negative.
    Count(fn(&T) -> Option<u64>),
    /// Any number.
    Number(fn(&T) -> Option<f64>),
    /// True or false.
    Flag(fn(&T) -> Option<bool>),
    /// A word, or a name that somebody gave.
    Word(fn(&T) -> Option<&str>),
    /// Counts by name. The count of the name NAME has the path `PATH.NAME`.
    Counts(Counts<T>),
}

/// A function that reads counts by name.
pub type Counts<T> = fn(&T) -> Option<&BTreeMap<String, u64>>;

/// The value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A count or another number, which is finite.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A word.
    Word(&'a str),
}

/// The figures of a `T`, in the order of summary.json.
pub struct Table<T: 'static> {
    sections: &'static [&'static [Figure<T>]],
    /// The rows in the order of their paths, for [`Self::find`].
    by_path: OnceLock<Vec<&'static Figure<T>>>,
}

impl<T: 'static> Table<T> {
    pub(crate) const fn new(sections: &'static [&'static [Figure<T>]]) -> Self {
        Self { sections, by_path: OnceLock::new() }
    }

    /// Iterates over all rows.
    pub fn rows(&'static self) -> impl Iterator<Item = &'static Figure<T>> {
        self.sections.iter().copied().flatten()
    }

    /// Returns the row at `path`. Returns `None` if there is no such figure.
    pub fn find(&'static self, path: &str) -> Option<&'static Figure<T>> {
        let by_path = self.by_path.get_or_init(|| {
            let mut rows: Vec<_> = self.rows().collect();
            rows.sort_by_key(|figure| figure.path);
            rows
        });
        let index = by_path.binary_search_by_key(&path, |figure| figure.path).ok()?;
        by_path.get(index).copied()
    }

    /// Returns the row at `path`, for a caller who knows that there is one.
    ///
    /// # Panics
    /// Panics if there is no such figure.
    pub fn row(&'static self, path: &str) -> &'static Figure<T> {
        self.find(path).unwrap_or_else(|| panic!("no figure {path}"))
    }

    /// Returns the messages that the figure at `path` is a share of. Returns `None` if it is not a share of
    /// messages.
    pub fn messages(&'static self, path: &str) -> Option<&'static Messages<T>> {
        self.find(path)?.messages.as_ref()
    }

    /// Returns the counts by name that `path` belongs to, and the name in the path: `EF` for
    /// `ip.forward.dscp.EF`.
    pub fn counts<'p>(&'static self, path: &'p str) -> Option<(Counts<T>, &'p str)> {
        self.rows().find_map(|figure| match figure.get {
            Getter::Counts(get) => Some((get, path.strip_prefix(figure.path)?.strip_prefix('.')?)),
            _ => None,
        })
    }

    /// Calls `visit` with each number of `entry` that is known.
    pub fn each_number(&'static self, entry: &T, mut visit: impl FnMut(&'static Figure<T>, f64)) {
        for figure in self.rows() {
            if let Some(value) = figure.number(entry) {
                visit(figure, value);
            }
        }
    }
}

impl<T: 'static> Messages<T> {
    /// Returns how many independent messages tell as much as those of the share. If that is not known, it is
    /// the number of messages.
    pub fn independent(&self, owner: &T) -> f64 {
        (self.independent)(owner).unwrap_or_else(|| (self.count)(owner) as f64)
    }
}

impl<T: 'static> Figure<T> {
    /// Returns the figure of `entry` if it is a number and is known. A number that JSON cannot write is
    /// unknown (RFC 8259 §6).
    pub fn number(&self, entry: &T) -> Option<f64> {
        match self.get {
            Getter::Count(get) => get(entry).map(|count| count as f64),
            Getter::Number(get) => get(entry).filter(|value| value.is_finite()),
            Getter::Flag(_) | Getter::Word(_) | Getter::Counts(_) => None,
        }
    }

    /// Returns the figure of `entry` if it is known.
    pub fn value<'a>(&self, entry: &'a T) -> Option<Value<'a>> {
        match self.get {
            Getter::Count(_) | Getter::Number(_) => self.number(entry).map(Value::Number),
            Getter::Flag(get) => get(entry).map(Value::Flag),
            Getter::Word(get) => get(entry).map(Value::Word),
            Getter::Counts(_) => None,
        }
    }

    /// Returns the figure of `entry` as text, without its unit. Returns [`text::UNKNOWN`] if it is unknown.
    pub fn text(&self, entry: &T) -> String {
        if let Getter::Counts(get) = self.get
            && let Some(counts) = get(entry).filter(|counts| !counts.is_empty())
        {
            return counts_text(counts);
        }
        match self.value(entry) {
            // Summaries of earlier versions may have an empty word.
            None | Some(Value::Word("")) => text::UNKNOWN.to_owned(),
            Some(Value::Number(value)) => self.written(value),
            Some(Value::Flag(true)) => "yes".to_owned(),
            Some(Value::Flag(false)) => "no".to_owned(),
            Some(Value::Word(word)) => word.to_owned(),
        }
    }

    /// Returns a `value` of this figure as text, without its unit. The mean of counts may be a fraction.
    pub fn written(&self, value: f64) -> String {
        let scale = self.scale();
        let is_whole = value >= 0.0 && value.fract().abs().total_cmp(&0.0).is_eq();
        let is_unscaled = scale.factor.total_cmp(&1.0).is_eq();
        match self.get {
            Getter::Count(_) if is_unscaled && is_whole => text::count(value as u64),
            Getter::Count(_) if is_unscaled => text::fixed(Some(value), 1),
            _ => scale.text(Some(value)),
        }
    }

    /// Returns how the figure is written if it stands alone.
    pub const fn scale(&self) -> Scale {
        match (&self.get, self.unit) {
            // A whole number of bytes is a size of packets, such as an MTU, and not an amount of data.
            (Getter::Count(_), Unit::Bytes) => Scale::BYTES,
            _ => Scale { decimals: self.decimals, ..self.unit.scale() },
        }
    }

    /// Returns the name of the figure with the unit of [`Self::text`]: `round trip p90, ms`.
    pub fn title(&self) -> String {
        match self.scale().unit {
            "" => self.name.to_owned(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    /// Returns whether the figure is a number.
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

    /// Makes a row for a whole number with another unit than [`Unit::Count`].
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

    /// Sets another title of the column than the name.
    pub(crate) const fn short(self, short: &'static str) -> Self {
        Self { short, ..self }
    }

    /// Says that a larger figure is better.
    pub(crate) const fn more(self) -> Self {
        Self { better: Better::More, ..self }
    }

    /// Says that a smaller figure is better.
    pub(crate) const fn less(self) -> Self {
        Self { better: Better::Less, ..self }
    }

    /// Sets the number of decimals in the unit that people see.
    pub(crate) const fn decimals(self, decimals: usize) -> Self {
        Self { decimals: Some(decimals), ..self }
    }

    /// Sets a possible range that differs from the range of the unit.
    pub(crate) const fn within(self, smallest: f64, largest: f64) -> Self {
        Self { range: (smallest, largest), ..self }
    }

    /// Says that the figure is a share of so many messages. Its interval over repetitions and its thresholds
    /// depend on this number.
    pub(crate) const fn of_messages(self, count: fn(&T) -> u64) -> Self {
        self.of_ended_messages(count, |_| 0)
    }

    /// Says that the figure is a share of so many messages. The share leaves out the messages of which
    /// nobody knows yet what becomes of them.
    pub(crate) const fn of_ended_messages(self, count: fn(&T) -> u64, left_out: fn(&T) -> u64) -> Self {
        Self { messages: Some(Messages { count, left_out, independent: |_| None }), ..self }
    }

    /// Says how many independent messages tell as much as those of the share, which come in runs
    /// (`metrics::runs`).
    pub(crate) const fn in_runs(self, independent: fn(&T) -> Option<f64>) -> Self {
        match self.messages {
            Some(Messages { count, left_out, .. }) => {
                Self { messages: Some(Messages { count, left_out, independent }), ..self }
            }
            None => self,
        }
    }
}

/// Returns counts by name as text: `EF 1200, CS0 3`.
fn counts_text(counts: &BTreeMap<String, u64>) -> String {
    let mut texts = Vec::new();
    for (name, count) in counts.iter().take(MAX_NAMES) {
        texts.push(format!("{name} {}", text::count(*count)));
    }
    if counts.len() > MAX_NAMES {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}
