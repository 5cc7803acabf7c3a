//! What a publication claims, as checks over metrics of cells.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arena::ArenaName;
use crate::fit::{fit, slope};

/// One claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// `S1`.
    pub id: String,
    /// What the publication says, in our words.
    pub text: String,
    /// Its figures, as printed.
    pub published: String,
    /// Where it is judged.
    pub arenas: Vec<ArenaName>,
    /// The verdict that the study's author found in each arena. If a run disagrees, its exit code is 1.
    pub expected: BTreeMap<ArenaName, Expected>,
    /// What the expected verdict rests on: what is fitted, assumed or predicted, and the mechanism of a
    /// difference.
    pub why: String,
    /// Checks that must all hold.
    pub checks: Vec<Check>,
}

/// The verdict that is expected.
pub type Expected = Verdict;

impl Claim {
    /// Whether a check holds arenas against each other: such a claim is judged once.
    pub fn compares_arenas(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.kind, ClaimKind::Agree { .. }))
    }

    /// The names of the cells that it reads.
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().flat_map(Check::cells)
    }
}

/// Whether a claim holds under the base set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All its checks hold, and at least one was not fitted.
    Reproduced,
    /// All judged checks hold, and all were fitted: the set-up was chosen so that they hold.
    Consistent,
    /// The checks that `--quick` judged hold. It left others out, so that a whole run may find otherwise.
    PartlyJudged,
    /// At least one check does not hold.
    Differs,
    /// It was not run, or not often enough.
    NotTested,
    /// It ran, and the machine disturbed it past its stated limits.
    Disturbed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::Consistent => "consistent",
            Self::PartlyJudged => "partly-judged",
            Self::Differs => "differs",
            Self::NotTested => "not-tested",
            Self::Disturbed => "disturbed",
        })
    }
}

/// How a claim's verdict fares under the other assumption sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The verdict is the same under every set, and with every other seed that was tried.
    Robust,
    /// The claim holds under the base and fails under at least one other, or with another seed.
    Fragile,
    /// The claim fails under the base and holds under at least one other, or with another seed.
    OnlyUnder,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Robust => "robust",
            Self::Fragile => "fragile",
            Self::OnlyUnder => "only-under",
        })
    }
}

/// What the figure of a check rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A parameter was chosen so that it comes out, or it is arithmetic of such parameters.
    Fitted,
    /// It follows from something that was put in and that the publication does not say.
    Assumed,
    /// Nothing in the set-up was chosen by it.
    Predicted,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
            Self::Predicted => "predicted",
        })
    }
}

/// One comparison of medians.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is compared, for a person.
    pub name: String,
    /// What is read, in the order of the comparison; for a line, x and y by turns.
    pub operands: Vec<Operand>,
    /// What must hold of their medians.
    pub kind: ClaimKind,
    /// What its figure rests on.
    pub basis: Basis,
    /// Why its bound has one end, if it has.
    pub one_sided: Option<String>,
    /// Where it is judged, of its claim's arenas.
    pub arenas: Vec<ArenaName>,
    /// Where `--quick` judges it.
    pub quick: Vec<ArenaName>,
}

impl Check {
    /// Whether it is judged in all of `arenas`.
    pub(crate) fn is_of(&self, arenas: &[ArenaName]) -> bool {
        arenas.iter().all(|arena| self.arenas.contains(arena))
    }

    /// The names of the cells that it reads.
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        self.operands.iter().map(|operand| operand.cell.as_str())
    }
}

/// A metric of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operand {
    /// The cell's name.
    pub cell: String,
    /// Path into a run's summary, `links.wan.queue_packets.mean`, or a name of the study's own metrics.
    pub metric: String,
}

/// What must hold of the medians of a check's operands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// One figure that is made from the medians lies within a bound.
    Figure {
        /// How it is made.
        of: Figure,
        /// Where it must lie.
        bound: Bound,
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
    /// The one operand's medians in two arenas lie within the tolerance of the later arena's, which is nearer
    /// to the world; or the seeds' spread is too wide to decide whether they do.
    Agree {
        /// How far off it may be.
        within: Tolerance,
    },
}

/// One figure from several medians.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// The one operand's.
    Median,
    /// The first over the second.
    Ratio,
    /// The first less the second.
    Difference,
    /// Of the line through (x, y), operands by turns.
    Slope,
    /// Of the same line: the share of the variance of y that it explains.
    RSquared,
}

/// Where a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Within the tolerance of a published value.
    Near {
        /// As published, in the metric's unit.
        value: f64,
        /// How far off it may be.
        within: Tolerance,
    },
    /// Not above this.
    AtMost {
        /// The bound.
        value: f64,
    },
    /// Not below this.
    AtLeast {
        /// The bound.
        value: f64,
    },
    /// Within a published range, its ends included.
    Between {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
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

impl Bound {
    /// Whether `figure` lies there.
    pub fn holds(self, figure: f64) -> bool {
        let (low, high) = self.ends();
        low <= figure && figure <= high
    }

    /// The lowest and the highest figure that it lets pass.
    pub fn ends(self) -> (f64, f64) {
        match self {
            Self::Near { value, within } => {
                let most = within.around(value);
                (value - most, value + most)
            }
            Self::AtMost { value } => (f64::NEG_INFINITY, value),
            Self::AtLeast { value } => (value, f64::INFINITY),
            Self::Between { low, high } => (low, high),
        }
    }
}

impl Figure {
    /// The figure of `values`; `None` if they have none (a division by zero, too few points for a line,
    /// points without spread).
    pub fn of(self, values: &[f64]) -> Option<f64> {
        let made = match (self, values) {
            (Self::Median, [only]) => *only,
            (Self::Ratio, [first, second]) => first / second,
            (Self::Difference, [first, second]) => first - second,
            (Self::Slope, _) => slope(&pairs(values))?.0,
            (Self::RSquared, _) => fit(&pairs(values))?.r_squared,
            (Self::Median | Self::Ratio | Self::Difference, _) => return None,
        };
        made.is_finite().then_some(made)
    }
}

/// x and y by turns, as points.
pub(crate) fn pairs(values: &[f64]) -> Vec<(f64, f64)> {
    values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

impl ClaimKind {
    /// Whether it holds of `values`, one an operand (of `Agree`: one an arena, in their order); `None` if
    /// they do not make the figure that it needs. Of `Agree` it answers for the tolerance alone.
    pub fn holds(&self, values: &[f64]) -> Option<bool> {
        let first = *values.first()?;
        Some(match *self {
            Self::Figure { of, bound } => bound.holds(of.of(values)?),
            Self::Rising => values.windows(2).all(|pair| pair[0] < pair[1]),
            Self::Falling => values.windows(2).all(|pair| pair[0] > pair[1]),
            Self::Same { within } => values.iter().all(|other| (other - first).abs() <= within.around(first)),
            Self::Agree { within } => match values {
                [model, .., measure] => (model - measure).abs() <= within.around(*measure),
                _ => return None,
            },
        })
    }

    /// The one figure that is judged, if there is one: of `Agree`, by how much of the measure the model is
    /// off.
    pub fn figure(&self, values: &[f64]) -> Option<f64> {
        match (*self, values) {
            (Self::Figure { of, .. }, _) => of.of(values),
            (Self::Agree { .. }, [model, .., measure]) if *measure != 0.0 => {
                Some((model - measure) / measure.abs())
            }
            _ => None,
        }
    }

    /// The bound of its figure, if there is one.
    pub const fn bound(&self) -> Option<Bound> {
        match *self {
            Self::Figure { bound, .. } => Some(bound),
            Self::Rising | Self::Falling | Self::Same { .. } | Self::Agree { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, within: Tolerance) -> ClaimKind {
        ClaimKind::Figure { of: Figure::Median, bound: Bound::Near { value, within } }
    }

    #[test]
    fn an_order_needs_strict_steps_and_every_one_of_them() {
        assert_eq!(ClaimKind::Rising.holds(&[1.0, 2.0, 3.0]), Some(true));
        assert_eq!(ClaimKind::Rising.holds(&[1.0, 3.0, 2.0]), Some(false));
        assert_eq!(ClaimKind::Rising.holds(&[0.0, 0.0]), Some(false));
        assert_eq!(ClaimKind::Falling.holds(&[3.0, 2.0]), Some(true));
        assert_eq!(ClaimKind::Rising.holds(&[]), None);
    }

    #[test]
    fn a_relative_tolerance_is_a_share_of_what_was_published() {
        let rate = near(1_370_000.0, Tolerance::Relative(0.03));
        assert_eq!(rate.holds(&[1_330_000.0]), Some(true));
        assert_eq!(rate.holds(&[1_328_000.0]), Some(false));
        let same = ClaimKind::Same { within: Tolerance::Relative(0.10) };
        assert_eq!(same.holds(&[0.10, 0.109]), Some(true));
        assert_eq!(same.holds(&[0.10, 0.112]), Some(false));
    }

    #[test]
    fn a_ratio_is_held_against_its_range_and_needs_a_divisor() {
        let ratio = ClaimKind::Figure { of: Figure::Ratio, bound: Bound::Between { low: 2.0, high: 3.0 } };
        assert_eq!(ratio.holds(&[290.0, 100.0]), Some(true));
        assert_eq!(ratio.holds(&[310.0, 100.0]), Some(false));
        assert_eq!(ratio.holds(&[310.0, 0.0]), None);
        let less = ClaimKind::Figure { of: Figure::Difference, bound: Bound::AtMost { value: 4.0 } };
        assert_eq!((less.holds(&[9.0, 5.0]), less.figure(&[9.0, 5.0])), (Some(true), Some(4.0)));
    }

    #[test]
    fn agreement_is_a_share_of_the_later_arena_s_value() {
        let agree = ClaimKind::Agree { within: Tolerance::Relative(0.05) };
        assert_eq!(agree.holds(&[95.0, 100.0]), Some(true));
        assert_eq!(agree.holds(&[100.0, 95.0]), Some(false));
        assert_eq!(agree.figure(&[94.0, 100.0]), Some(-0.06));
        assert_eq!(agree.holds(&[95.0]), None);
    }

    #[test]
    fn a_line_takes_its_operands_by_turns() {
        let slope = ClaimKind::Figure { of: Figure::Slope, bound: Bound::AtLeast { value: 1.9 } };
        assert_eq!(slope.holds(&[0.0, 1.0, 1.0, 3.0, 2.0, 5.0]), Some(true));
        assert_eq!(Figure::RSquared.of(&[0.0, 1.0, 1.0, 3.0, 2.0, 5.0]), Some(1.0));
        assert_eq!(slope.holds(&[0.0, 1.0]), None);
        assert_eq!(slope.holds(&[0.0, 0.1, 1.0, 0.1, 2.0, 0.1]), Some(false));
    }
}
