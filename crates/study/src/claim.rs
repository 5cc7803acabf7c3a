//! What a publication claims, as checks over metrics of cells.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::outcome::Verdict;

/// One claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// `S1`.
    pub id: String,
    /// What the publication says, in our words.
    pub text: String,
    /// Its figures, as printed.
    pub published: String,
    /// The verdict that the study's author found; where a run disagrees, it exits with 1.
    pub expected: Expected,
    /// The mechanism behind a difference, and what a reproduction depends on.
    pub why: Option<String>,
    /// All of them must hold under one assumption set.
    pub checks: Vec<Check>,
}

/// The verdict that is expected.
pub type Expected = Verdict;

/// One comparison of medians.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is compared, for a person.
    pub name: String,
    /// Path into a run's summary: `links.wan.queue_packets.mean`.
    pub metric: String,
    /// The cells, in the order of the comparison.
    pub cells: Vec<String>,
    /// What must hold of their medians.
    pub kind: Kind,
}

/// What must hold of the medians of a check's cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The one cell's lies within the tolerance of a published value.
    Near {
        /// As published, in the metric's unit.
        value: f64,
        /// How far off it may be.
        within: Tolerance,
    },
    /// Each lies above the one before.
    Rising,
    /// Each lies below the one before.
    Falling,
    /// All lie within the tolerance of the first.
    Same {
        /// How far off they may be.
        within: Tolerance,
    },
    /// The one cell's is not above this.
    AtMost {
        /// The bound.
        value: f64,
    },
    /// The one cell's is not below this.
    AtLeast {
        /// The bound.
        value: f64,
    },
}

/// How far off a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tolerance {
    /// In the metric's unit.
    Absolute(f64),
    /// As a share of the value that it is held against.
    Relative(f64),
}

impl Tolerance {
    /// The largest allowed difference from `value`.
    pub fn around(self, value: f64) -> f64 {
        match self {
            Self::Absolute(most) => most,
            Self::Relative(share) => share * value.abs(),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(most) => write!(f, "{most}"),
            Self::Relative(share) => write!(f, "{} %", (share * 1e4).round() / 100.0),
        }
    }
}

impl Kind {
    /// Whether it holds of `values`, one a cell; `None` for an empty list.
    pub fn holds(&self, values: &[f64]) -> Option<bool> {
        let first = *values.first()?;
        Some(match *self {
            Self::Near { value, within } => (first - value).abs() <= within.around(value),
            Self::Rising => values.windows(2).all(|pair| pair[0] < pair[1]),
            Self::Falling => values.windows(2).all(|pair| pair[0] > pair[1]),
            Self::Same { within } => values.iter().all(|other| (other - first).abs() <= within.around(first)),
            Self::AtMost { value } => first <= value,
            Self::AtLeast { value } => first >= value,
        })
    }

    /// The published value, where there is one.
    pub const fn value(&self) -> Option<f64> {
        match *self {
            Self::Near { value, .. } | Self::AtMost { value } | Self::AtLeast { value } => Some(value),
            Self::Rising | Self::Falling | Self::Same { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_needs_strict_steps_and_every_one_of_them() {
        assert_eq!(Kind::Rising.holds(&[1.0, 2.0, 3.0]), Some(true));
        assert_eq!(Kind::Rising.holds(&[1.0, 3.0, 2.0]), Some(false));
        assert_eq!(Kind::Rising.holds(&[0.0, 0.0]), Some(false));
        assert_eq!(Kind::Falling.holds(&[3.0, 2.0]), Some(true));
        assert_eq!(Kind::Rising.holds(&[]), None);
    }

    #[test]
    fn a_relative_tolerance_is_a_share_of_what_was_published() {
        let near = Kind::Near { value: 1_370_000.0, within: Tolerance::Relative(0.03) };
        assert_eq!(near.holds(&[1_330_000.0]), Some(true));
        assert_eq!(near.holds(&[1_328_000.0]), Some(false));
        let same = Kind::Same { within: Tolerance::Relative(0.10) };
        assert_eq!(same.holds(&[0.10, 0.109]), Some(true));
        assert_eq!(same.holds(&[0.10, 0.112]), Some(false));
    }
}
