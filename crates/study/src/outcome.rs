//! What a study's run found: the JSON of `talkpath study run NAME --json`, and what the tables and the page
//! show.

use serde::{Deserialize, Serialize};
use talkpath_measure::figures::Unit;

use crate::arena::ArenaName;
use crate::band::TraceBand;
use crate::claim::{Basis, ClaimKind, Figure, Operand, Standing, Verdict};
use crate::fit::Fit;
use crate::metric::figure_at;
use crate::sample::{LossRun, TraceLine};
use crate::stretch::Stretch;
use crate::study::Level;
use crate::table::{PublishedRow, Role};

/// Everything that a run of a study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The study's name.
    pub study: String,
    /// The publication's title.
    pub title: String,
    /// Where it ran; the first arena if there are several, in which claims are judged first.
    pub arena: ArenaName,
    /// Every arena, that of `arena` first.
    pub arenas: Vec<ArenaName>,
    /// Whether it was the shorter run.
    pub quick: bool,
    /// What all repetitions' seeds are derived from; `null` if each scenario has its own.
    pub seed: Option<u64>,
    /// Scenario keys that were set in every cell after what the study sets.
    pub set: Vec<(String, String)>,
    /// The day on which a run with an arena in real time began, UTC: another run gives other figures. `null`
    /// for the simulator, which repeats itself, and for a campaign, which has many days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// Whether every cell ran to its end on an undisturbed machine.
    pub valid: bool,
    /// In words for a person.
    pub warnings: Vec<String>,
    /// The assumption sets that ran: name and text.
    pub assumptions: Vec<(String, String)>,
    /// One a claim, in the study's order.
    pub claims: Vec<ClaimOutcome>,
    /// One a cell and assumption set.
    pub cells: Vec<CellOutcome>,
    /// The publication's figures, drawn again.
    pub figures: Vec<FigureOutcome>,
    /// Its printed figures beside ours.
    pub tables: Vec<TableOutcome>,
    /// Its figures and tables without a cell in this run.
    #[serde(default)]
    pub not_shown: Vec<String>,
}

/// One claim's verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimOutcome {
    /// `S1`.
    pub id: String,
    /// What the publication says.
    pub claim: String,
    /// Its figures, as printed.
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
    /// The verdicts in all arenas, in the order of the run.
    pub fn verdicts(&self) -> impl Iterator<Item = &ArenaVerdict> {
        core::iter::once(&self.in_first_arena).chain(&self.in_other_arenas)
    }

    /// The verdicts in all arenas, to change them.
    pub(crate) fn verdicts_mut(&mut self) -> impl Iterator<Item = &mut ArenaVerdict> {
        core::iter::once(&mut self.in_first_arena).chain(&mut self.in_other_arenas)
    }
}

/// A claim's verdict in one arena; if the claim compares arenas, in all together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaVerdict {
    /// `sim`, `emu`, or for a claim that compares them `sim,emu`.
    pub arena: String,
    /// Ours under the base assumptions, in words.
    pub reproduced: String,
    /// The verdict, that under the base assumptions.
    pub verdict: Verdict,
    /// How it fares under the other sets; `null` if it has none, if there is no other set, or if sets that
    /// could change it did not run.
    pub standing: Option<Standing>,
    /// The study's own.
    pub expected: Verdict,
    /// Whether it holds under the base assumptions; `null` if these were not judged, or partly and held so
    /// far.
    pub holds_under_base: Option<bool>,
    /// Under which assumption sets it holds and fails, in words, the base first; empty if none was judged.
    pub under: String,
    /// The assumption sets under which it holds, in the study's order.
    pub holds_under: Vec<String>,
    /// The sets under which it fails: at least one check does, even if the set does not run the cells of
    /// other checks.
    pub fails_under: Vec<String>,
    /// The sets that leave it open: the checks that decide hold or fail by less than the medians' intervals.
    /// If the base is such a set, it is also in one of the two lists above, by its medians.
    pub undecided_under: Vec<String>,
    /// The sets whose runs of its cells equal the base's in every repetition. They are no evidence.
    pub without_effect: Vec<String>,
    /// Why: what the verdict rests on (fitted, assumed or predicted figures), why it differs, or why it was
    /// not tested.
    pub why: String,
    /// Checks that `--quick` left out.
    pub checks_left_out: u64,
    /// The sets under which a whole run judges the claim and this one, with `--quick`, did not.
    pub sets_left_out: Vec<String>,
    /// The sets whose cells should have run and did not, or not to their end.
    pub sets_not_run: Vec<String>,
    /// The sets whose cells ran, but under which a check has no figure: a division by zero, points without
    /// spread, or no number for a metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets_without_figure: Vec<String>,
    /// Repetitions behind each median: the fewest.
    pub n: u64,
    /// Whether it was not tested because its cells were not selected for this run: no disagreement.
    pub left_out: bool,
    /// What runs that differ in their seed alone found. Empty but in what `talkpath study keep` put together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_seed: Vec<SeedVerdict>,
    /// The checks of a claim that was not judged anywhere, without values: what would be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<CheckOutcome>,
    /// What each assumption set gave.
    pub by_assumption: Vec<UnderAssumption>,
}

impl ArenaVerdict {
    /// Whether it disagrees with the study. A claim that this run did not select does not, and neither does a
    /// claim that the machine disturbed. What was judged in part is still open between `reproduced` and
    /// `differs`, and disagrees with neither.
    pub fn is_unexpected(&self) -> bool {
        match self.verdict {
            _ if self.left_out => false,
            Verdict::Disturbed => false,
            Verdict::PartlyJudged => self.expected == Verdict::NotTested,
            found => found != self.expected,
        }
    }
}

/// A claim's verdict with another seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedVerdict {
    /// The seed.
    pub seed: u64,
    /// The verdict, that under the base assumptions.
    pub verdict: Verdict,
    /// How it fares under the other sets.
    pub standing: Option<Standing>,
}

/// One claim under one assumption set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderAssumption {
    /// The set's name.
    pub assumption: String,
    /// Whether all checks hold; `None` if a cell or a check's figure is missing, and no other check fails.
    pub holds: Option<bool>,
    /// Each check.
    pub checks: Vec<CheckOutcome>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckOutcome {
    /// What is compared.
    pub name: String,
    /// The metric's path: that of the first thing compared.
    pub metric: String,
    /// The unit of a metric of the study's own, if it has one; the table of figures has that of a figure.
    #[serde(rename = "unit", default, skip_serializing_if = "Option::is_none")]
    pub own_unit: Option<Unit>,
    /// What must hold.
    pub must: ClaimKind,
    /// What its figure rests on.
    pub basis: Basis,
    /// Why its bound has one end, if it has.
    pub one_sided: Option<String>,
    /// What is compared, in the order of the comparison; what did not run is absent.
    pub values: Vec<Value>,
    /// The cell and metric of each, if one did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Operand>,
    /// The one figure made from the values, if one is judged: a ratio, a difference, a slope, by how much an
    /// arena is off.
    pub figure: Option<f64>,
    /// Of that figure; `null` below 6 repetitions, or 5 of an agreement.
    pub ci95: Option<(f64, f64)>,
    /// Whether it holds of the medians; `None` if a value is missing, or if they do not make the figure.
    pub holds: Option<bool>,
    /// If arenas agree, by what they do; `null` otherwise.
    #[serde(default)]
    pub held_by: Option<HeldBy>,
    /// Whether it would also hold (or fail) anywhere within the medians' confidence intervals.
    pub certain: bool,
    /// In how many single repetitions it holds: listed, never judged by.
    pub single_hits: u64,
    /// Of how many.
    pub single_runs: u64,
}

impl CheckOutcome {
    /// The unit of what it compares; `None` if that has none.
    pub fn unit(&self) -> Option<Unit> {
        unit_of(self.own_unit, &self.metric)
    }

    /// The unit of its figure: none of a ratio, a slope or a share.
    pub fn figure_unit(&self) -> Option<Unit> {
        match self.must {
            ClaimKind::Figure { of: Figure::Ratio | Figure::Slope | Figure::RSquared, .. }
            | ClaimKind::Agree { .. } => None,
            _ => self.unit(),
        }
    }

    /// Whether all that it compares has a value, and these do not make its figure.
    pub(crate) fn lacks_figure(&self) -> bool {
        // What is compared is listed if a value is missing.
        self.holds.is_none() && self.compared.is_empty() && !self.values.is_empty()
    }

    /// Whether the medians' confidence intervals contain values with the other answer than the medians'.
    /// Fewer than 6 repetitions have no intervals. An agreement of arenas is never undecided: they differ
    /// only if they do anywhere within the intervals.
    pub fn is_undecided(&self) -> bool {
        let has_intervals = self.values.iter().all(|value| value.ci95.is_some());
        let compares_arenas = matches!(self.must, ClaimKind::Agree { .. });
        !compares_arenas && self.holds.is_some() && has_intervals && !self.certain
    }
}

impl Value {
    /// The unit of its metric; `None` if that has none.
    pub fn unit(&self) -> Option<Unit> {
        unit_of(self.own_unit, &self.metric)
    }
}

impl RowOutcome {
    /// The unit of its metric; `None` if that has none.
    pub fn unit(&self) -> Option<Unit> {
        unit_of(self.own_unit, &self.row.metric)
    }
}

fn unit_of(own: Option<Unit>, metric: &str) -> Option<Unit> {
    own.or_else(|| figure_at(metric).map(|(unit, _)| unit))
}

/// By what two arenas agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBy {
    /// Their medians lie within the tolerance.
    Tolerance,
    /// They do not, but the seeds' spread is too wide to decide: some values within the medians' intervals
    /// do.
    Spread,
}

/// A table with what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableOutcome {
    /// What it shows.
    pub title: String,
    /// In the file's order; rows whose cell did not run have no values.
    pub rows: Vec<RowOutcome>,
}

/// One printed figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowOutcome {
    /// As printed.
    #[serde(flatten)]
    pub row: PublishedRow,
    /// The unit of a metric of the study's own, if it has one; the table of figures has that of a figure.
    #[serde(rename = "unit", default, skip_serializing_if = "Option::is_none")]
    pub own_unit: Option<Unit>,
    /// Under the base assumptions, one an arena in the order of the run's.
    pub values: Vec<Value>,
    /// By how much our first value is off, as a share of the printed figures' mean; `null` if that mean is 0.
    pub off: Option<f64>,
}

/// A metric of one cell over its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The cell.
    pub cell: String,
    /// Where it ran.
    pub arena: ArenaName,
    /// The metric's path.
    pub metric: String,
    /// The unit of a metric of the study's own, if it has one; the table of figures has that of a figure.
    #[serde(rename = "unit", default, skip_serializing_if = "Option::is_none")]
    pub own_unit: Option<Unit>,
    /// Repetitions.
    pub n: u64,
    /// Over the repetitions.
    pub median: f64,
    /// Of the median; `null` below 6 repetitions.
    pub ci95: Option<(f64, f64)>,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// One cell in one arena under one assumption set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellOutcome {
    /// The publication's cell.
    pub cell: String,
    /// Where it ran.
    pub arena: ArenaName,
    /// The set's name.
    pub assumption: String,
    /// Repetitions that are judged.
    pub n: u64,
    /// Repetitions that are not: the machine disturbed them past its stated limits.
    pub disturbed: u64,
    /// The most other runs that ran beside one of its repetitions in real time.
    pub beside: u64,
    /// By metric path.
    pub metrics: std::collections::BTreeMap<String, Value>,
}

/// A figure's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureOutcome {
    /// As the publication numbers it.
    pub number: String,
    /// What it shows.
    pub title: String,
    /// The horizontal axis; empty if it has names.
    pub x_title: String,
    /// The vertical axis.
    pub y_title: String,
    /// What a reader should know; may be empty.
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
        /// One, or one for each kind of run.
        panels: Vec<TracePanel>,
        /// The horizontal range.
        seconds: Stretch,
        /// Printed figures, across all panels.
        levels: Vec<Level>,
    },
    /// Medians over a number.
    Lines {
        /// One a label.
        lines: Vec<FigureLine>,
    },
    /// Medians over names: groups of bars. A point's `x` is the index of its name.
    Groups {
        /// Of the groups.
        names: Vec<String>,
        /// The bars of one colour each.
        lines: Vec<FigureLine>,
    },
    /// Quantiles of one arena over those of another, both axes alike.
    Quantiles {
        /// One a flow.
        lines: Vec<FigureLine>,
    },
    /// Medians over medians, a point a cell.
    Scatter {
        /// The points of one label each.
        lines: Vec<FigureLine>,
        /// The line through all points; `null` below 2 points.
        fit: Option<Fit>,
    },
    /// Not drawn again.
    Absent {
        /// Why.
        why: String,
    },
}

/// State over time in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracePanel {
    /// Which kind of run, how many runs are of this kind, and which one is shown; empty if it is the only
    /// panel.
    pub title: String,
    /// The value of the metric that distinguishes kinds; `null` if the figure knows none.
    pub kind: Option<f64>,
    /// Which repetition is shown.
    pub repetition: u64,
    /// How many repetitions it stands for.
    pub runs: RunShare,
    /// Series of flows and links.
    pub steps: Vec<TraceLine>,
    /// Loss runs; empty for the other series.
    pub loss_runs: Vec<LossRun>,
    /// Where the lines of all repetitions (of its kind) lie; empty if they are few, or of several arenas.
    #[serde(default)]
    pub bands: Vec<TraceBand>,
}

/// Repetitions of one kind among all; in JSON `[of_kind, all]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct RunShare {
    /// Those of the kind; 1 if the runs are of no kinds, and one of them is shown.
    pub of_kind: u64,
    /// All that are judged.
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
    /// Its label.
    pub label: String,
    /// In the order of x.
    pub points: Vec<FigurePoint>,
}

/// One cell's place in a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigurePoint {
    /// On the horizontal axis.
    pub x: f64,
    /// Over the repetitions.
    pub median: f64,
    /// Of the median; `null` below 6 repetitions.
    pub ci95: Option<(f64, f64)>,
    /// What the publication prints for it; empty if nothing.
    #[serde(default)]
    pub published: Vec<f64>,
    /// What the printed figures were used for.
    #[serde(default)]
    pub role: Role,
}

impl FigurePoint {
    /// A point without printed figures.
    pub const fn new(x: f64, median: f64, ci95: Option<(f64, f64)>) -> Self {
        Self { x, median, ci95, published: Vec::new(), role: Role::Predicted }
    }
}
