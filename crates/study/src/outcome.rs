//! The outcome of a study's run. It is the JSON that `talkpath study run NAME --json` prints, and the tables
//! and the page show it.
//!
//! - A *cell* is a scenario of the publication, in one *arena* (`sim`, `emu`, `live`) under one *assumption
//!   set*.
//! - A *claim* is a statement of the publication. It consists of *checks*, and each check compares the
//!   medians of some metrics of cells.
//! - The *verdict* on a claim comes from the base set. The *standing* says whether the other sets agree.
//!
//! Begin to read with [`Outcome`], then [`ClaimOutcome`] and [`ArenaVerdict`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talkpath_measure::figures::Unit;

use crate::arena::ArenaName;
use crate::band::TraceBand;
use crate::claim::{Basis, ClaimKind, Formula, Operand, Standing, Verdict};
use crate::fit::Fit;
use crate::metric::figure_at;
use crate::sample::{LossRun, TraceLine};
use crate::stretch::Stretch;
use crate::study::Level;
use crate::table::{PublishedRow, Role};

/// Everything that a run of a study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The name of the study.
    pub study: String,
    /// The title of the publication.
    pub title: String,
    /// The first arena of the run. Claims are judged there first.
    pub arena: ArenaName,
    /// Every arena of the run. The first one is `arena`.
    pub arenas: Vec<ArenaName>,
    /// Whether the run was made with `--quick`.
    pub quick: bool,
    /// The seed from which the seeds of all repetitions are derived, or `null` if each scenario has its own
    /// seed.
    pub seed: Option<u64>,
    /// The scenario keys and values that the user set in every cell, over the settings of the study.
    pub set: Vec<(String, String)>,
    /// The day (UTC) on which the run began, if an arena ran in real time, because another run gives other
    /// figures. It is `null` for the simulator, which repeats itself, and for a campaign, which has many
    /// days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// Whether every cell ran to its end on an undisturbed machine.
    pub valid: bool,
    /// The warnings, in words for a person.
    pub warnings: Vec<String>,
    /// The assumption sets of the study, as (name, text).
    pub assumptions: Vec<(String, String)>,
    /// One entry for each claim, in the order of the study.
    pub claims: Vec<ClaimOutcome>,
    /// One entry for each cell that is judged, in each arena and under each assumption set.
    pub cells: Vec<CellOutcome>,
    /// The figures of the publication, drawn again.
    pub figures: Vec<FigureOutcome>,
    /// The tables of the publication, with the medians of the run beside the printed figures.
    pub tables: Vec<TableOutcome>,
    /// The figures and tables of the publication for which no cell ran.
    #[serde(default)]
    pub not_shown: Vec<String>,
    /// Hashes of what the judged cells, the study's own metrics and the figures of curves are made of, by
    /// `ARENA SET CELL`, `metric NAME` and `figure NUMBER`. `study run --reuse` takes the medians of a cell
    /// only if its hash is the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<String, String>,
}

/// A claim and its verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimOutcome {
    /// The id of the claim, such as `S1`.
    pub id: String,
    /// What the publication says.
    pub claim: String,
    /// The figures of the claim, as the publication prints them.
    pub published: String,
    /// The verdict in the first arena of the run where the claim is judged. A claim that compares arenas has
    /// only this verdict.
    #[serde(flatten)]
    pub in_first_arena: ArenaVerdict,
    /// The verdicts in the other arenas where the claim is judged.
    #[serde(rename = "elsewhere")]
    pub in_other_arenas: Vec<ArenaVerdict>,
    /// The names of the assumption sets that show the sensitivity of the claim.
    pub sensitivity: Vec<String>,
}

impl ClaimOutcome {
    /// Iterates over the verdicts in all arenas, in the order of the run.
    pub fn verdicts(&self) -> impl Iterator<Item = &ArenaVerdict> {
        core::iter::once(&self.in_first_arena).chain(&self.in_other_arenas)
    }

    /// Iterates over the verdicts in all arenas, so that the caller can change them.
    pub(crate) fn verdicts_mut(&mut self) -> impl Iterator<Item = &mut ArenaVerdict> {
        core::iter::once(&mut self.in_first_arena).chain(&mut self.in_other_arenas)
    }
}

/// The verdict of a claim in one arena. A claim that compares arenas has one verdict for all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaVerdict {
    /// The arena: `sim` or `emu`, or `sim,emu` for a claim that compares them.
    pub arena: String,
    /// The figures of the run under the first set that judges the claim, in words. This is the base set if it
    /// judges the claim.
    pub reproduced: String,
    /// The verdict under the base set.
    pub verdict: Verdict,
    /// Whether the verdict is the same under the other sets. It is `null` if there is no verdict or no other
    /// set, or if sets that could change the verdict did not run.
    pub standing: Option<Standing>,
    /// The verdict that the study expects.
    pub expected: Verdict,
    /// Whether the claim holds under the base set. It is `null` if the base set was not judged, or if
    /// `--quick` left checks out and the other checks hold.
    pub holds_under_base: Option<bool>,
    /// The assumption sets under which the claim holds and fails, in words, the base set first. It is empty
    /// if no set was judged.
    pub under: String,
    /// The assumption sets under which the claim holds, in the order of the study.
    pub holds_under: Vec<String>,
    /// The sets under which the claim fails. One failing check is enough, even if the cells of other checks
    /// do not run under the set.
    pub fails_under: Vec<String>,
    /// The sets that leave the claim open, because the checks that decide hold or fail by less than the
    /// confidence intervals of the medians. If the base is such a set, its medians decide, and it is also in
    /// one of the two lists above.
    pub undecided_under: Vec<String>,
    /// The sets whose cells measured in every repetition what the base measured. They are no evidence.
    pub without_effect: Vec<String>,
    /// The reason of the verdict: what it rests on (fitted, assumed or predicted figures), why the claim
    /// differs, or why it was not tested.
    pub why: String,
    /// The number of checks that `--quick` left out.
    pub checks_left_out: u64,
    /// The sets under which a run without `--quick` judges the claim, but this run did not.
    pub sets_left_out: Vec<String>,
    /// The sets whose cells should have run, but did not run to their end.
    pub sets_not_run: Vec<String>,
    /// The sets whose cells ran, but under which a check has no figure, because of a division by zero, points
    /// without spread, or a metric without a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets_without_figure: Vec<String>,
    /// The smallest number of repetitions behind a median.
    pub n: u64,
    /// Whether the claim was not tested because this run did not select its arenas or its cells. Such a claim
    /// does not disagree with the expected verdict.
    pub left_out: bool,
    /// The verdicts of runs that differ only in their seed. Only `talkpath study keep` fills this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_seed: Vec<SeedVerdict>,
    /// The checks of a claim that no set judges, without values. They say what would be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<CheckOutcome>,
    /// The outcome under each assumption set with at least one value.
    pub by_assumption: Vec<SetOutcome>,
}

impl ArenaVerdict {
    /// Returns whether the verdict disagrees with the verdict that the study expects. A claim that this run
    /// did not select, or that the machine disturbed, does not disagree. A claim that was judged in part may
    /// still become `reproduced` or `differs`, and disagrees with neither.
    pub fn is_unexpected(&self) -> bool {
        match self.verdict {
            _ if self.left_out => false,
            Verdict::Disturbed => false,
            Verdict::PartlyJudged => self.expected == Verdict::NotTested,
            found => found != self.expected,
        }
    }
}

/// The verdict of a claim with another seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedVerdict {
    /// The seed.
    pub seed: u64,
    /// The verdict under the base set.
    pub verdict: Verdict,
    /// Whether the verdict is the same under the other sets.
    pub standing: Option<Standing>,
}

/// The outcome of a claim under one assumption set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetOutcome {
    /// The name of the assumption set.
    pub assumption: String,
    /// Whether all checks hold. It is `None` if no check fails, but a cell or the figure of a check is
    /// missing.
    pub holds: Option<bool>,
    /// The outcome of each check.
    pub checks: Vec<CheckOutcome>,
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckOutcome {
    /// The name of the check, which says what it compares.
    pub name: String,
    /// The path of the first operand's metric.
    pub metric: String,
    /// The unit of `metric`, if the study computes the metric and states its unit. The unit of any other
    /// metric is in the table of figures.
    #[serde(rename = "unit", default, skip_serializing_if = "Option::is_none")]
    pub own_unit: Option<Unit>,
    /// What must hold of the medians.
    pub must: ClaimKind,
    /// What the figure of the check rests on.
    pub basis: Basis,
    /// The reason why the bound has only one end, if it has only one.
    pub one_sided: Option<String>,
    /// The medians that are compared, in the order of the comparison. A median that is missing is absent.
    pub values: Vec<Value>,
    /// All operands of the check, if a median is missing, and otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Operand>,
    /// The one figure that is made of the medians, if the check judges one: a ratio, a difference, a slope,
    /// or the share by which one arena is off from the other. A check of a share of the repetitions has that
    /// share.
    pub figure: Option<f64>,
    /// The confidence interval of that figure. It is `null` below 6 repetitions, or below 5 for an agreement.
    pub ci95: Option<(f64, f64)>,
    /// Whether the check holds. It is `None` if a median is missing, or if the medians do not make the
    /// figure.
    pub holds: Option<bool>,
    /// The reason why arenas agree. It is `null` if they do not, and for a check that does not compare
    /// arenas.
    #[serde(default)]
    pub held_by: Option<HeldBy>,
    /// Whether all values within the confidence intervals of the medians give the same answer.
    pub certain: bool,
    /// The number of single repetitions in which the check holds. It is shown, and decides a check of the
    /// share of repetitions alone.
    pub single_hits: u64,
    /// The number of single repetitions that have all values of the check.
    pub single_runs: u64,
}

impl CheckOutcome {
    /// Returns the unit of the metric, or `None` if the metric has no unit.
    pub fn unit(&self) -> Option<Unit> {
        unit_of(self.own_unit, &self.metric)
    }

    /// Returns the unit of the figure. A ratio, a slope or a share has no unit.
    pub fn figure_unit(&self) -> Option<Unit> {
        match self.must {
            ClaimKind::Figure { formula: Formula::Ratio | Formula::Slope | Formula::RSquared, .. }
            | ClaimKind::Agree { .. } => None,
            ClaimKind::Share { .. } => Some(Unit::Share),
            _ => self.unit(),
        }
    }

    /// Returns whether all operands have a median, but the medians do not make the figure of the check.
    pub(crate) fn lacks_figure(&self) -> bool {
        // `compared` is empty only if no median is missing.
        self.holds.is_none() && self.compared.is_empty() && !self.values.is_empty()
    }

    /// Returns whether values within the confidence intervals would give another answer than the medians.
    /// Below 6 repetitions there are no intervals, and the medians decide. An agreement of arenas is never
    /// undecided, because arenas differ only if all values within the intervals differ.
    pub fn is_undecided(&self) -> bool {
        let has_intervals = self.values.iter().all(|value| value.ci95.is_some());
        let compares_arenas = matches!(self.must, ClaimKind::Agree { .. });
        !compares_arenas && self.holds.is_some() && has_intervals && !self.certain
    }
}

impl Value {
    /// Returns the unit of the metric, or `None` if the metric has no unit.
    pub fn unit(&self) -> Option<Unit> {
        unit_of(self.own_unit, &self.metric)
    }
}

impl RowOutcome {
    /// Returns the unit of the metric, or `None` if the metric has no unit.
    pub fn unit(&self) -> Option<Unit> {
        unit_of(self.own_unit, &self.published_row.metric)
    }
}

fn unit_of(own: Option<Unit>, metric: &str) -> Option<Unit> {
    own.or_else(|| figure_at(metric).map(|figure| figure.unit))
}

/// The reason why two arenas agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBy {
    /// The medians lie within the tolerance of each other.
    Tolerance,
    /// The medians do not, but some values within their intervals do, so that the spread over the seeds is
    /// too wide to decide.
    Spread,
}

/// A table of the publication with the medians of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableOutcome {
    /// The title, which says what the table shows.
    pub title: String,
    /// The rows in the order of the file. A row whose cell did not run has no values.
    pub rows: Vec<RowOutcome>,
}

/// A row of a table: the published values of one cell, and the medians of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowOutcome {
    /// The row of the publication.
    #[serde(flatten)]
    pub published_row: PublishedRow,
    /// The unit of the metric, if the study computes the metric and states its unit.
    #[serde(rename = "unit", default, skip_serializing_if = "Option::is_none")]
    pub own_unit: Option<Unit>,
    /// The medians under the base set, one for each arena in the order of the run.
    pub values: Vec<Value>,
    /// The difference of the first median from the mean of the printed figures, as a share of that mean. It
    /// is `null` if the mean is 0.
    pub off: Option<f64>,
}

/// The median of a metric of one cell over its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The name of the cell.
    pub cell: String,
    /// The arena where the cell ran.
    pub arena: ArenaName,
    /// The path of the metric.
    pub metric: String,
    /// The unit of the metric, if the study computes the metric and states its unit.
    #[serde(rename = "unit", default, skip_serializing_if = "Option::is_none")]
    pub own_unit: Option<Unit>,
    /// The number of repetitions that know the metric.
    pub n: u64,
    /// The median over these repetitions.
    pub median: f64,
    /// The 95 % confidence interval of the median. It is `null` below 6 repetitions.
    pub ci95: Option<(f64, f64)>,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

/// The medians of one cell in one arena under one assumption set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellOutcome {
    /// The name of the cell.
    pub cell: String,
    /// The arena where the cell ran.
    pub arena: ArenaName,
    /// The name of the assumption set.
    pub assumption: String,
    /// The number of repetitions that are judged.
    pub n: u64,
    /// The number of repetitions that are not judged, because the machine disturbed them past its stated
    /// limits.
    pub disturbed: u64,
    /// The largest number of other runs that ran at the same time as a repetition, in real time.
    pub beside: u64,
    /// The medians by the path of the metric.
    pub metrics: BTreeMap<String, Value>,
}

/// A figure of the publication, drawn from the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureOutcome {
    /// The number of the figure in the publication.
    pub number: String,
    /// The title, which says what the figure shows.
    pub title: String,
    /// The title of the horizontal axis. It is empty if the axis has names.
    pub x_title: String,
    /// The title of the vertical axis.
    pub y_title: String,
    /// A note that a reader should know. It may be empty.
    pub note: String,
    /// What is drawn.
    pub drawing: Drawing,
}

/// What a figure draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Drawing {
    /// State over time.
    Traces {
        /// One panel, or one panel for each kind of run.
        panels: Vec<TracePanel>,
        /// The range of the horizontal axis.
        seconds: Stretch,
        /// Printed figures, drawn as horizontal lines across all panels.
        levels: Vec<Level>,
    },
    /// Medians over numbers.
    Lines {
        /// One line for each label.
        lines: Vec<FigureLine>,
    },
    /// Medians over names, as groups of bars. The `x` of a point is the index of its name.
    Groups {
        /// The names of the groups.
        names: Vec<String>,
        /// The bars of one colour each.
        lines: Vec<FigureLine>,
    },
    /// Delay quantiles in one arena over those in another. Both axes have the same scale.
    Quantiles {
        /// One line for each flow.
        lines: Vec<FigureLine>,
    },
    /// Medians of one metric over medians of another, with one point for each cell.
    Scatter {
        /// The points of one label each.
        lines: Vec<FigureLine>,
        /// The line through all points, or `null` if there is none.
        fit: Option<Fit>,
    },
    /// The figure is not drawn again.
    Absent {
        /// The reason.
        why: String,
    },
}

/// A panel that shows state over time in one repetition of each arena.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracePanel {
    /// The title, which names the kind of run, how many runs are of this kind, and which one is shown. It is
    /// empty if the figure does not distinguish kinds.
    pub title: String,
    /// The value of the metric that distinguishes kinds, or `null` if the figure does not distinguish kinds.
    pub kind: Option<f64>,
    /// The number of the repetition that is shown.
    pub repetition: u64,
    /// The share of the repetitions that are of the shown kind.
    pub runs: RunShare,
    /// The series of flows and links. It is empty in a figure of loss runs.
    pub steps: Vec<TraceLine>,
    /// The loss runs. It is empty in a figure of any other series.
    pub loss_runs: Vec<LossRun>,
    /// The bands in which the lines of all repetitions of the kind lie. There are none if the repetitions are
    /// few, or of several arenas.
    #[serde(default)]
    pub bands: Vec<TraceBand>,
    /// Whether the curves are on the page of an earlier run, whose medians this run took.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_elsewhere: bool,
}

/// The number of repetitions of one kind, and of all. In JSON it is `[of_kind, all]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct RunShare {
    /// The number of repetitions of the kind. It is 1 if the figure does not distinguish kinds and shows one
    /// repetition.
    pub of_kind: u64,
    /// The number of all repetitions that are judged.
    pub all: u64,
}

impl From<(u64, u64)> for RunShare {
    fn from((of_kind, all): (u64, u64)) -> Self {
        Self { of_kind, all }
    }
}

impl From<RunShare> for (u64, u64) {
    fn from(runs: RunShare) -> Self {
        (runs.of_kind, runs.all)
    }
}

/// One line of medians.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureLine {
    /// The label of the line in the legend.
    pub label: String,
    /// One point for each cell or quantile.
    pub points: Vec<FigurePoint>,
}

/// A point of a line: one cell, or one quantile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigurePoint {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The median over the repetitions, which is the position on the vertical axis.
    pub median: f64,
    /// The 95 % confidence interval of the median. It is `null` below 6 repetitions.
    pub ci95: Option<(f64, f64)>,
    /// The figures that the publication prints for the cell. It is empty if there are none.
    #[serde(default)]
    pub published: Vec<f64>,
    /// What the printed figures were used for in the study.
    #[serde(default)]
    pub role: Role,
}

impl FigurePoint {
    /// Makes a point without printed figures.
    pub const fn new(x: f64, median: f64, ci95: Option<(f64, f64)>) -> Self {
        Self { x, median, ci95, published: Vec::new(), role: Role::Predicted }
    }
}
