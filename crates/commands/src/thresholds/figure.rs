//! Reads a figure in one repetition.
//!
//! - A *figure* is a number or a flag of summary.json. Its *owner* is a flow, a link, or the *group* of all
//!   copies of a flow. Each kind of owner has a table with a row for each figure (`measure::figures`).
//! - The *path* of a figure is the list of keys that lead to its value: `call.mos`, `queue_delay_ms.p95`.
//! - A *count by name* is a figure whose last key is in no table, because the run makes up the names. For
//!   example, `ip.forward.dscp.EF` counts the packets with the mark EF.
//!
//! Begin to read with [`RepetitionFigure::read`].

use talkpath_measure::figures::{Figure, Getter, Table, Value};

use super::outcome::ShareMessages;

/// A figure in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RepetitionFigure {
    pub(super) value: FigureValue,
    /// The messages that the figure is a share of, if it is a share.
    pub(super) messages: Option<ShareMessages>,
    /// The smallest and the largest possible value.
    pub(super) possible: (f64, f64),
}

/// The possible values of a figure of which nothing else is known.
pub(super) const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
/// The possible values of a flag, and of its mean.
const FLAG: (f64, f64) = (0.0, 1.0);
/// The possible values of a count.
const NOT_NEGATIVE: (f64, f64) = (0.0, f64::INFINITY);

/// The value of a figure in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FigureValue {
    Number(f64),
    Flag(bool),
    /// The value is `null`, because the repetition could not measure the figure.
    Null,
    /// The repetition has no such owner, or no counts by name.
    OwnerMissing,
    /// No number or flag has this path.
    NoSuchFigure,
}

impl FigureValue {
    /// Returns the value as a number: `true` is 1 and `false` is 0. Returns `None` if there is no value.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Flag(flag) => Some(f64::from(u8::from(flag))),
            Self::Null | Self::OwnerMissing | Self::NoSuchFigure => None,
        }
    }
}

impl RepetitionFigure {
    /// The figure of an owner that the repetition does not have.
    pub(super) const OWNER_MISSING: Self =
        Self { value: FigureValue::OwnerMissing, messages: None, possible: ANY };

    /// Reads the figure at `path` of `owner`, which is `None` if the repetition has no such owner.
    pub(super) fn read<T>(table: &'static Table<T>, owner: Option<&T>, path: &str) -> Self {
        let possible = table.find(path).map_or(NOT_NEGATIVE, |row| match row.get {
            Getter::Flag(_) => FLAG,
            _ => row.range,
        });
        let mut figure = Self { value: read_value(table, owner, path), messages: None, possible };
        if let (Some(owner), Some(share)) = (owner, table.messages(path)) {
            let (counted, unfinished) = ((share.count)(owner), (share.left_out)(owner));
            let independent = share.independent(owner);
            figure.messages = Some(ShareMessages { counted, independent, unfinished });
        }
        figure
    }
}

fn read_value<T>(table: &'static Table<T>, owner: Option<&T>, path: &str) -> FigureValue {
    if let Some((read_counts, name)) = table.counts(path) {
        let Some(counts) = owner.and_then(read_counts) else { return FigureValue::OwnerMissing };
        return counts
            .get(name)
            .map_or(FigureValue::NoSuchFigure, |&count| FigureValue::Number(count as f64));
    }
    let row = table.find(path).filter(|row| is_number_or_flag(row));
    let Some(row) = row else { return FigureValue::NoSuchFigure };
    let Some(owner) = owner else { return FigureValue::OwnerMissing };
    match row.value(owner) {
        Some(Value::Number(number)) => FigureValue::Number(number),
        Some(Value::Flag(flag)) => FigureValue::Flag(flag),
        Some(Value::Word(_)) | None => FigureValue::Null,
    }
}

/// Returns whether the row describes a number or a flag. Only these can be compared with a bound. A word
/// cannot, and a row of counts by name stands for many figures.
pub(super) const fn is_number_or_flag<T>(row: &Figure<T>) -> bool {
    match row.get {
        Getter::Count(_) | Getter::Number(_) | Getter::Flag(_) => true,
        Getter::Word(_) | Getter::Counts(_) => false,
    }
}
