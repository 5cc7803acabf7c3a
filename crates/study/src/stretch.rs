//! A stretch of run time, which a figure shows or a metric reads.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The time from one moment of a run to a later one. Both moments belong to the stretch. It is `[from, to]`
/// in study.toml and in JSON.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Stretch {
    /// The first moment, in s of run time.
    pub from: f64,
    /// The last moment, in s of run time.
    pub to: f64,
}

impl Stretch {
    /// Returns whether the stretch has a length, and does not begin before the run.
    pub(crate) fn is_within_a_run(self) -> bool {
        0.0 <= self.from && self.from < self.to
    }

    /// Returns whether the moment `at_s` lies in the stretch.
    pub(crate) fn holds(self, at_s: f64) -> bool {
        self.from <= at_s && at_s <= self.to
    }

    /// Makes the shortest stretch that contains both stretches.
    pub(crate) const fn joined(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

/// The text is that of a pair. It is a part of the fingerprint of a cell, so a run could not be resumed if
/// the text changed.
impl fmt::Debug for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.from, self.to).fmt(f)
    }
}

impl From<(f64, f64)> for Stretch {
    fn from((from, to): (f64, f64)) -> Self {
        Self { from, to }
    }
}

impl From<Stretch> for (f64, f64) {
    fn from(stretch: Stretch) -> Self {
        (stretch.from, stretch.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_a_pair_in_json_and_in_the_text_of_a_fingerprint() {
        let stretch: Stretch = serde_json::from_str("[0, 100.5]").unwrap();
        assert_eq!(stretch, Stretch { from: 0.0, to: 100.5 });
        assert_eq!(serde_json::to_string(&stretch).unwrap(), "[0.0,100.5]");
        assert_eq!(format!("{stretch:?}"), "(0.0, 100.5)");
    }

    #[test]
    fn both_ends_lie_in_a_stretch_and_a_stretch_without_length_is_none() {
        let stretch = Stretch { from: 1.0, to: 2.0 };
        assert!(stretch.holds(1.0) && stretch.holds(2.0) && !stretch.holds(2.5));
        assert_eq!(stretch.joined(Stretch { from: 0.5, to: 1.5 }), Stretch { from: 0.5, to: 2.0 });
        assert!(!Stretch { from: 1.0, to: 1.0 }.is_within_a_run());
        assert!(!Stretch { from: -1.0, to: 1.0 }.is_within_a_run());
    }
}
