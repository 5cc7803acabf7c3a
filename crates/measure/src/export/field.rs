//! The columns of a table, and the values in its fields.

use std::sync::Arc;

/// A column: its name, and the kind of value in all of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name. It has only lower-case letters, digits and `_`, so that every tool accepts it.
    pub name: String,
    /// The kind of value in the fields. A field may also be unknown.
    pub kind: ColumnKind,
}

/// The kind of value in the fields of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnKind {
    /// `true` or `false`.
    Flag,
    /// A signed integer of 64 bits.
    Integer,
    /// An unsigned integer of 64 bits, for values that may use all 64 bits, such as a seed.
    Unsigned,
    /// A floating-point number of 64 bits.
    Number,
    /// A text.
    Text,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Not known. CSV leaves the field empty, and the other formats have `null`.
    Unknown,
    /// A value for a [`ColumnKind::Flag`].
    Flag(bool),
    /// A value for a [`ColumnKind::Integer`] or a [`ColumnKind::Number`].
    Integer(i64),
    /// A value for a [`ColumnKind::Unsigned`].
    Unsigned(u64),
    /// A value for a [`ColumnKind::Number`].
    Number(f64),
    /// A value for a [`ColumnKind::Text`].
    Text(Arc<str>),
}

impl Column {
    /// Makes a column whose name is `text` with `_` in place of all other characters: `path.up.rate` becomes
    /// `path_up_rate`.
    pub fn new(text: &str, kind: ColumnKind) -> Self {
        let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        Self { name: text.chars().map(allowed).collect(), kind }
    }
}

impl Field {
    /// Makes an integer. A value of 2⁶³ or more becomes the largest signed integer.
    pub fn integer(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// Makes a text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Returns the field if a column of `kind` can hold it. A number must also be finite.
    pub(super) fn if_of(&self, kind: ColumnKind) -> Option<&Self> {
        let can_hold = match (kind, self) {
            (ColumnKind::Number, Self::Number(value)) => value.is_finite(),
            (ColumnKind::Flag, Self::Flag(_))
            | (ColumnKind::Integer | ColumnKind::Number, Self::Integer(_))
            | (ColumnKind::Unsigned, Self::Unsigned(_))
            | (ColumnKind::Text, Self::Text(_)) => true,
            _ => false,
        };
        can_hold.then_some(self)
    }
}
