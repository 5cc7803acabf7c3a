//! The claims of a publication. A claim consists of checks, and a check compares medians of metrics of cells.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arena::ArenaName;
use crate::fit::{fit, slope};

/// One claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The id of the claim, such as `S1`.
    pub id: String,
    /// What the publication says, in our words.
    pub text: String,
    /// The figures of the claim, as the publication prints them.
    pub published: String,
    /// The arenas where the claim is judged.
    pub arenas: Vec<ArenaName>,
    /// The verdict that the study's author found in each arena. If a run disagrees, its exit code is 1.
    pub expected: BTreeMap<ArenaName, Verdict>,
    /// What the expected verdict rests on: what is fitted, assumed or predicted, and the mechanism of a
    /// difference.
    pub why: String,
    /// The checks. All of them must hold.
    pub checks: Vec<Check>,
}

impl Claim {
    /// Returns whether a check compares arenas with each other. Such a claim is judged once, for all arenas
    /// together.
    pub fn compares_arenas(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.kind, ClaimKind::Agree { .. }))
    }

    /// Returns the names of the cells that the checks read.
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
    /// All checks that `--quick` judged hold, but `--quick` left other checks out, which may fail in a whole
    /// run.
    PartlyJudged,
    /// At least one check does not hold.
    Differs,
    /// The claim was not tested, because its cells did not run, or too few repetitions did.
    NotTested,
    /// The cells ran, but the machine disturbed them past its stated limits.
    Disturbed,
}

impl fmt::Display for Verdict {
    /// Writes the name that the JSON has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Whether the verdict of a claim is the same under the other assumption sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The verdict is the same under every set, and with every other seed that was tried.
    Robust,
    /// The claim holds under the base set, but fails under at least one other set or with another seed.
    Fragile,
    /// The claim fails under the base set, but holds under at least one other set or with another seed.
    OnlyUnder,
}

impl fmt::Display for Standing {
    /// Writes the name that the JSON has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What the figure of a check rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A parameter of the set-up was chosen so that the figure comes out, or the figure is computed from such
    /// parameters.
    Fitted,
    /// The figure follows from an assumption about something that the publication does not say.
    Assumed,
    /// Nothing in the set-up was chosen because of the figure.
    Predicted,
}

impl fmt::Display for Basis {
    /// Writes the name that the JSON has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One comparison of medians.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is compared, for a person.
    pub name: String,
    /// The operands, in the order of the comparison. The operands of a line are x and y of each point by
    /// turns.
    pub operands: Vec<Operand>,
    /// What must hold of their medians.
    pub kind: ClaimKind,
    /// What the figure of the check rests on.
    pub basis: Basis,
    /// The reason why the bound has only one end, if it has only one.
    pub one_sided: Option<String>,
    /// The arenas of the claim where the check is judged.
    pub arenas: Vec<ArenaName>,
    /// The arenas where `--quick` judges the check.
    pub quick_arenas: Vec<ArenaName>,
}

impl Check {
    /// Returns the names of the cells that the check reads.
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        self.operands.iter().map(|operand| operand.cell.as_str())
    }
}

/// A metric of a cell that a check reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operand {
    /// The name of the cell.
    pub cell: String,
    /// A path into the summary of a run, such as `links.wan.queue_packets.mean`, or the name of a metric that
    /// the study computes.
    pub metric: String,
}

/// What must hold of the medians of a check's operands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// One figure that is made from the medians lies within a bound.
    Figure {
        /// How the figure is made.
        #[serde(rename = "of")]
        formula: Formula,
        /// The bound.
        bound: Bound,
    },
    /// Each median lies above the median before.
    Rising,
    /// Each median lies below the median before.
    Falling,
    /// The share of single repetitions in which the values rise or fall at each step lies within a bound. It
    /// is for claims about most of the days, where each repetition is a day.
    Share {
        /// The order of the values of one repetition.
        order: Order,
        /// Where the share of the repetitions must lie.
        bound: Bound,
        /// How many values each order has, if several orders are pooled (`pool`): the repetitions of all
        /// orders count together. `None` if there is one order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<usize>,
    },
    /// All medians lie within the tolerance of the first median.
    Same {
        /// How far off the other medians may be.
        within: Tolerance,
    },
    /// The medians of the one operand in two arenas agree. They do if the median in the earlier arena lies
    /// within the tolerance of the median in the later arena, which is nearer to the world. They also do if
    /// the spread over the seeds is too wide to decide.
    Agree {
        /// How far off the median in the earlier arena may be.
        within: Tolerance,
    },
}

/// The order of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each value lies above the value before.
    Rising,
    /// Each value lies below the value before.
    Falling,
}

impl Order {
    /// Returns whether `values` have this order.
    fn holds(self, values: &[f64]) -> bool {
        match self {
            Self::Rising => values.windows(2).all(|pair| pair[0] < pair[1]),
            Self::Falling => values.windows(2).all(|pair| pair[0] > pair[1]),
        }
    }
}

/// How one figure is made from several medians.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Formula {
    /// The median of the one operand.
    Median,
    /// The first median divided by the second.
    Ratio,
    /// The first median less the second.
    Difference,
    /// The slope of the line through points (x, y). The operands are x and y by turns.
    Slope,
    /// The share of the variance of y that the same line explains.
    RSquared,
}

/// Where a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Within the tolerance of a published value.
    Near {
        /// The published value, in the unit of the figure.
        value: f64,
        /// How far off the figure may be.
        within: Tolerance,
    },
    /// Not above a bound.
    AtMost {
        /// The bound.
        value: f64,
    },
    /// Not below a bound.
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
    /// A difference in the unit of the value.
    Absolute(f64),
    /// A share of the value that the other is compared with.
    Relative(f64),
}

impl Tolerance {
    /// Returns the largest allowed difference from `value`.
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
    /// Returns whether `figure` lies within the bound.
    pub fn holds(self, figure: f64) -> bool {
        let (low, high) = self.ends();
        low <= figure && figure <= high
    }

    /// Returns the lowest and the highest figure that lie within the bound.
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

impl Formula {
    /// Computes the figure from the medians of the operands. Returns `None` if there is no figure, because of
    /// a division by zero, too few points for a line, or points that do not vary.
    pub fn compute(self, medians: &[f64]) -> Option<f64> {
        let figure = match (self, medians) {
            (Self::Median, [only]) => *only,
            (Self::Ratio, [first, second]) => first / second,
            (Self::Difference, [first, second]) => first - second,
            (Self::Slope, _) => slope(&points(medians))?.slope,
            (Self::RSquared, _) => fit(&points(medians))?.r_squared,
            (Self::Median | Self::Ratio | Self::Difference, _) => return None,
        };
        figure.is_finite().then_some(figure)
    }
}

/// Makes points from the operands of a line, which are x and y by turns.
pub(crate) fn points(values: &[f64]) -> Vec<(f64, f64)> {
    values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

impl ClaimKind {
    /// Returns whether the check holds for `values`. There is one value for each operand, or for `Agree` one
    /// for each arena in the order of arenas. For `Agree` only the tolerance counts here, and for `Share` the
    /// values are those of one repetition. Returns `None` if the values do not make the figure.
    pub fn holds(&self, values: &[f64]) -> Option<bool> {
        let first = *values.first()?;
        Some(match *self {
            Self::Figure { formula, bound } => bound.holds(formula.compute(values)?),
            Self::Rising => Order::Rising.holds(values),
            Self::Falling => Order::Falling.holds(values),
            Self::Share { order, .. } => order.holds(values),
            Self::Same { within } => values.iter().all(|other| (other - first).abs() <= within.around(first)),
            Self::Agree { within } => match values {
                [model, .., measure] => (model - measure).abs() <= within.around(*measure),
                _ => return None,
            },
        })
    }

    /// Computes the figure that is judged, if there is one. For `Agree` it is the difference of the earlier
    /// arena from the later one, as a share of the later one.
    pub fn figure(&self, values: &[f64]) -> Option<f64> {
        match (*self, values) {
            (Self::Figure { formula, .. }, _) => formula.compute(values),
            (Self::Agree { .. }, [model, .., measure]) if *measure != 0.0 => {
                Some((model - measure) / measure.abs())
            }
            _ => None,
        }
    }

    /// Returns the bound of the figure, if there is one.
    pub const fn bound(&self) -> Option<Bound> {
        match *self {
            Self::Figure { bound, .. } | Self::Share { bound, .. } => Some(bound),
            Self::Rising | Self::Falling | Self::Same { .. } | Self::Agree { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, within: Tolerance) -> ClaimKind {
        ClaimKind::Figure { formula: Formula::Median, bound: Bound::Near { value, within } }
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
        let ratio =
            ClaimKind::Figure { formula: Formula::Ratio, bound: Bound::Between { low: 2.0, high: 3.0 } };
        assert_eq!(ratio.holds(&[290.0, 100.0]), Some(true));
        assert_eq!(ratio.holds(&[310.0, 100.0]), Some(false));
        assert_eq!(ratio.holds(&[310.0, 0.0]), None);
        let less = ClaimKind::Figure { formula: Formula::Difference, bound: Bound::AtMost { value: 4.0 } };
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
        let slope = ClaimKind::Figure { formula: Formula::Slope, bound: Bound::AtLeast { value: 1.9 } };
        assert_eq!(slope.holds(&[0.0, 1.0, 1.0, 3.0, 2.0, 5.0]), Some(true));
        assert_eq!(Formula::RSquared.compute(&[0.0, 1.0, 1.0, 3.0, 2.0, 5.0]), Some(1.0));
        assert_eq!(slope.holds(&[0.0, 1.0]), None);
        assert_eq!(slope.holds(&[0.0, 0.1, 1.0, 0.1, 2.0, 0.1]), Some(false));
    }
}
