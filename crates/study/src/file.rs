//! The types that `study.toml` is read into, key by key. An unknown key is a mistake. A value that is checked
//! only after the whole file was read keeps its place in the file (`Spanned`), so that a mistake can name the
//! line.

use core::fmt;
use std::collections::BTreeMap;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::arena::ArenaName;
use crate::claim::{Basis, Verdict};
use crate::stretch::Stretch;
use crate::study::Level;
use crate::words::matches_pattern;

/// Scenario keys with the values that they are set to.
pub(crate) type Settings = BTreeMap<String, Spanned<toml::Value>>;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) title: String,
    pub(crate) authors: Vec<String>,
    pub(crate) year: u32,
    pub(crate) source: String,
    pub(crate) question: String,
    pub(crate) set_up: String,
    pub(crate) repeat: Spanned<u64>,
    pub(crate) quick: QuickEntry,
    /// What differs in an arena, by the name of the arena.
    #[serde(default)]
    pub(crate) arena: BTreeMap<ArenaName, ArenaEntry>,
    /// The names of the assumption sets that are shown with each claim as its sensitivity.
    #[serde(default)]
    pub(crate) sensitivity: Vec<Spanned<String>>,
    /// Metrics that no claim reads, but that the table of the cells shows.
    #[serde(default)]
    pub(crate) also: Vec<Spanned<String>>,
    /// The metrics that the study computes from figures of a run, by name.
    #[serde(default)]
    pub(crate) metric: BTreeMap<String, Spanned<MetricEntry>>,
    /// The values of each axis, by the name of the axis. Each value has a name and the scenario keys that it
    /// sets.
    #[serde(default)]
    pub(crate) axis: BTreeMap<String, BTreeMap<String, Settings>>,
    pub(crate) assumption: Vec<AssumptionEntry>,
    pub(crate) cells: Vec<CellsEntry>,
    /// The measurements of a campaign that are cells of the study.
    #[serde(default)]
    pub(crate) campaign: Vec<CampaignEntry>,
    pub(crate) claim: Vec<ClaimEntry>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureEntry>,
    #[serde(default)]
    pub(crate) table: Vec<TableEntry>,
}

/// What `--quick` runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuickEntry {
    pub(crate) repeat: Spanned<u64>,
    pub(crate) assumptions: Vec<Spanned<String>>,
}

/// What differs in one arena.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArenaEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    /// The assumption sets that run in the arena. Without this key all sets run.
    pub(crate) assumptions: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) set: Settings,
    pub(crate) quick: Option<ArenaQuickEntry>,
}

/// What differs in one arena with `--quick`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArenaQuickEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    pub(crate) assumptions: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) set: Settings,
}

/// What differs for the cells of one entry in one arena.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsArenaEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) set: Settings,
    pub(crate) quick: Option<CellsQuick>,
}

/// The value of the key `quick` of cells.
#[derive(Debug)]
pub(crate) enum CellsQuick {
    /// Whether `--quick` runs the cells.
    Whether(bool),
    /// `--quick` runs the cells with these changes.
    How(CellsQuickEntry),
}

/// This is written by hand because an untagged enum would lose the places of the settings in the file.
impl<'de> Deserialize<'de> for CellsQuick {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WhetherOrHow;
        impl<'de> Visitor<'de> for WhetherOrHow {
            type Value = CellsQuick;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a table with `repeat` and `set`")
            }

            fn visit_bool<E>(self, whether: bool) -> Result<CellsQuick, E> {
                Ok(CellsQuick::Whether(whether))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CellsQuick, A::Error> {
                CellsQuickEntry::deserialize(MapAccessDeserializer::new(map)).map(CellsQuick::How)
            }
        }
        deserializer.deserialize_any(WhetherOrHow)
    }
}

/// What differs for cells with `--quick`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsQuickEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) set: Settings,
}

/// A metric that the study computes from figures of a run. It has exactly one of `ratio`, `difference`,
/// `sum`, `mean`, `scaled`, `share`, `correlation`, `shared_losses` and `quantile`. The other keys belong to
/// one of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricEntry {
    pub(crate) ratio: Option<(String, String)>,
    pub(crate) difference: Option<(String, String)>,
    pub(crate) sum: Option<OneOrMany>,
    pub(crate) mean: Option<OneOrMany>,
    pub(crate) scaled: Option<String>,
    /// The factor of `scaled`.
    pub(crate) by: Option<f64>,
    pub(crate) share: Option<OneOrMany>,
    /// The bound of `share`: it is the share of the values that lie above.
    pub(crate) above: Option<f64>,
    /// The name of a flow with copies. The metric says how alike the windows of the copies move.
    pub(crate) correlation: Option<String>,
    /// The receiver's window for `correlation`, in packets.
    pub(crate) cap: Option<f64>,
    /// The name of a flow with copies. The metric is the share of loss episodes that hit all copies.
    pub(crate) shared_losses: Option<String>,
    /// The length of an episode of `shared_losses`, in s.
    pub(crate) within: Option<f64>,
    /// The quantile of the packets that wait in `queue`.
    pub(crate) quantile: Option<f64>,
    /// The link of `quantile`.
    pub(crate) queue: Option<String>,
    /// The stretch of the run that `correlation`, `shared_losses` and `quantile` read.
    pub(crate) seconds: Option<Stretch>,
    /// The name of the metric's unit.
    pub(crate) unit: Option<Spanned<String>>,
}

impl MetricEntry {
    /// Returns the number of keys that the entry has. The unit is not counted, because every metric can have
    /// one.
    pub(crate) fn key_count(&self) -> usize {
        let Self {
            ratio,
            difference,
            sum,
            mean,
            scaled,
            by,
            share,
            above,
            correlation,
            cap,
            shared_losses,
            within,
            quantile,
            queue,
            seconds,
            unit: _,
        } = self;
        let has_key = [
            ratio.is_some(),
            difference.is_some(),
            sum.is_some(),
            mean.is_some(),
            scaled.is_some(),
            by.is_some(),
            share.is_some(),
            above.is_some(),
            correlation.is_some(),
            cap.is_some(),
            shared_losses.is_some(),
            within.is_some(),
            quantile.is_some(),
            queue.is_some(),
            seconds.is_some(),
        ];
        has_key.into_iter().filter(|has_key| *has_key).count()
    }
}

/// One path, or a list of paths.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn to_vec(&self) -> Vec<String> {
        match self {
            Self::One(path) => vec![path.clone()],
            Self::Many(paths) => paths.clone(),
        }
    }
}

/// One answer to what the publication leaves open. The first entry is the base.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssumptionEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) set: Settings,
    /// The cells that run under the set, by name; `*` stands for any text. All cells without this.
    pub(crate) cells: Option<Vec<Spanned<String>>>,
    /// At most this many repetitions of each cell under the set.
    pub(crate) repeat: Option<Spanned<u64>>,
}

impl AssumptionEntry {
    /// Returns whether the cell called `cell_name` runs under the set.
    pub(crate) fn has_cell(&self, cell_name: &str) -> bool {
        let matches = |pattern: &Spanned<String>| matches_pattern(pattern.get_ref(), cell_name);
        self.cells.as_ref().is_none_or(|patterns| patterns.iter().any(matches))
    }
}

/// The cells of one scenario, one for each combination of the values of its axes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsEntry {
    /// The name of the cells. `{AXIS}` stands for the value of each axis.
    pub(crate) name: Spanned<String>,
    /// The name of a scenario file in the folder of the study.
    pub(crate) scenario: Spanned<String>,
    #[serde(default)]
    pub(crate) axes: BTreeMap<String, Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) set: Settings,
    /// The assumption sets that the cells run under. Without this key they run under all sets.
    pub(crate) assumptions: Option<Vec<Spanned<String>>>,
    pub(crate) repeat: Option<Spanned<u64>>,
    pub(crate) quick: Option<CellsQuick>,
    /// The arenas where the cells run. Without this key they run in all arenas.
    pub(crate) arenas: Option<Vec<ArenaName>>,
    /// Whether the cells draw the same random numbers.
    #[serde(default)]
    pub(crate) draws: Draws,
    pub(crate) sim: Option<CellsArenaEntry>,
    pub(crate) emu: Option<CellsArenaEntry>,
}

/// Which random numbers the repetitions of a cell draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Draws {
    /// Those of the scenario's seed. Repetition k of all cells meets the same random events, so that a
    /// difference of two cells is due to their settings alone.
    #[default]
    Shared,
    /// Those of a seed of the cell's own. Each cell meets other random events, as measurements that were
    /// made one after the other do.
    Own,
}

impl CellsEntry {
    /// What differs in `arena`.
    pub(crate) const fn arena(&self, arena: ArenaName) -> Option<&CellsArenaEntry> {
        match arena {
            ArenaName::Sim => self.sim.as_ref(),
            ArenaName::Emu => self.emu.as_ref(),
            // The cells of a campaign are measured, so that nothing of them can differ.
            ArenaName::Campaign => None,
        }
    }
}

/// Cells that a campaign measures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CampaignEntry {
    /// The name of the cell. `{AXIS}` stands for the value of each axis of `each`.
    pub(crate) cell: Spanned<String>,
    /// The host of the campaign that starts the measurements.
    pub(crate) near: Spanned<String>,
    /// The host that the measurements go to.
    pub(crate) far: Spanned<String>,
    /// The name of the measurement in the campaign file: `[measure.NAME]`.
    pub(crate) measure: Spanned<String>,
    /// The day of the campaign, from 1. Without this key all days count.
    pub(crate) day: Option<Spanned<String>>,
    /// The transport over which the campaign measured each flow of the cell, by the name of the flow.
    pub(crate) flows: BTreeMap<String, Spanned<String>>,
    /// The axes of the entry with their values. The entry is made once for each combination of values.
    #[serde(default)]
    pub(crate) each: BTreeMap<String, Vec<String>>,
}

/// What the publication says, and the checks for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimEntry {
    pub(crate) id: Spanned<String>,
    pub(crate) text: String,
    pub(crate) published: String,
    /// The arenas where the claim is judged. Without this key it is judged in all arenas where cells run, and
    /// in `campaign` if `expected` names that arena.
    pub(crate) arenas: Option<Vec<ArenaName>>,
    pub(crate) expected: Spanned<ExpectedEntry>,
    /// The reason of the expected verdict. Every claim needs one. It is optional here, so that a missing
    /// reason is reported together with the other mistakes.
    pub(crate) why: Option<String>,
    /// The basis of the checks that name no basis.
    pub(crate) basis: Option<Basis>,
    #[serde(default)]
    pub(crate) check: Vec<Spanned<CheckEntry>>,
}

/// The expected verdict: one for all arenas, or one for each arena.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum ExpectedEntry {
    Everywhere(Verdict),
    ByArena(BTreeMap<ArenaName, Verdict>),
}

/// One comparison. One key says what is compared (`cell`, `ratio`, `difference`, `slope`, `r_squared`,
/// `rising`, `falling` or `same`). The bounds say where the figure must lie.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckEntry {
    pub(crate) name: String,
    /// What the figure of the check rests on. Without this key it is the basis of the claim.
    pub(crate) basis: Option<Basis>,
    /// The metric of the operands that name no metric.
    pub(crate) metric: Option<String>,
    pub(crate) cell: Option<Spanned<String>>,
    pub(crate) ratio: Option<Vec<Spanned<OperandEntry>>>,
    pub(crate) difference: Option<Vec<Spanned<OperandEntry>>>,
    pub(crate) slope: Option<LineOfCells>,
    pub(crate) r_squared: Option<LineOfCells>,
    pub(crate) value: Option<f64>,
    pub(crate) at_most: Option<f64>,
    pub(crate) at_least: Option<f64>,
    pub(crate) between: Option<(f64, f64)>,
    pub(crate) rising: Option<Vec<Spanned<OperandEntry>>>,
    pub(crate) falling: Option<Vec<Spanned<OperandEntry>>>,
    pub(crate) same: Option<Vec<Spanned<OperandEntry>>>,
    pub(crate) agree: Option<Spanned<Within>>,
    pub(crate) within: Option<Spanned<Within>>,
    /// The reason why the bound has only one end.
    pub(crate) one_sided: Option<String>,
    /// The arenas where the check is judged. Without this key these are all arenas of the claim.
    pub(crate) arenas: Option<Vec<ArenaName>>,
    /// The arenas where `--quick` judges the check. Without this key `--quick` judges it in all arenas.
    pub(crate) quick: Option<Vec<ArenaName>>,
    /// The axes of the check with their values. The check is made once for each combination of values, and
    /// `{AXIS}` in names becomes the value.
    #[serde(default)]
    pub(crate) each: BTreeMap<String, Vec<String>>,
    /// The axes over which a share of repetitions is pooled: the list of `rising` or `falling` is made once
    /// for each combination of values, and the repetitions of all lists count together.
    #[serde(default)]
    pub(crate) pool: BTreeMap<String, Vec<String>>,
}

/// The name of a cell whose metric is that of the check, or an operand with its own cell or metric.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OperandEntry {
    Cell(String),
    Full(FullOperandEntry),
}

/// An operand that names its cell or its metric. The check names the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FullOperandEntry {
    pub(crate) cell: Option<String>,
    pub(crate) metric: Option<String>,
}

/// A line through points. Each cell is one point, with the metric `x` over the metric `y`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineOfCells {
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) cells: Vec<Spanned<String>>,
}

/// A tolerance, as a number in the metric's unit or as a share (`"10%"`).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Within {
    Number(f64),
    Share(String),
}

/// A figure of the publication. It has exactly one of `trace`, `medians`, `quantiles`, `scatter` and
/// `absent`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureEntry {
    pub(crate) number: Spanned<String>,
    pub(crate) title: String,
    /// What a reader should know, such as that the publication prints a curve without figures.
    #[serde(default)]
    pub(crate) note: String,
    pub(crate) trace: Option<TraceEntry>,
    pub(crate) medians: Option<MediansEntry>,
    pub(crate) quantiles: Option<QuantilesEntry>,
    pub(crate) scatter: Option<ScatterEntry>,
    /// The reason why the figure is not drawn again.
    pub(crate) absent: Option<String>,
}

/// A figure with one point for each cell, and a line through all points.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScatterEntry {
    pub(crate) x: Spanned<String>,
    pub(crate) y: Spanned<String>,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    pub(crate) points: Vec<LineEntry>,
}

/// A table of the publication, which is printed beside the figures of the run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableEntry {
    pub(crate) title: String,
    /// The name of a CSV file in the folder of the study.
    pub(crate) rows: Spanned<String>,
    /// The value of the column `table` in the rows that are shown. Without this key all rows are shown.
    pub(crate) number: Option<Spanned<String>>,
}

/// A figure of the delay quantiles of flows in one arena over those in another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuantilesEntry {
    pub(crate) cell: Spanned<String>,
    /// The names of flows, or of groups of copies.
    pub(crate) flows: Vec<String>,
}

/// A figure of a series of one cell over time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceEntry {
    pub(crate) series: Spanned<String>,
    /// The link whose throughput is drawn.
    pub(crate) link: Option<Spanned<String>>,
    pub(crate) entity: String,
    pub(crate) cell: Spanned<String>,
    pub(crate) seconds: Stretch,
    /// The largest value that has an effect. For `cwnd` it is the receiver's window, in packets.
    pub(crate) cap: Option<f64>,
    /// What distinguishes kinds of runs. The figure has one panel for each kind.
    pub(crate) kinds: Option<KindsEntry>,
    /// Printed figures, which are drawn as horizontal lines.
    #[serde(default)]
    pub(crate) levels: Vec<Level>,
}

/// What distinguishes kinds of runs. All runs with the same value of `metric` are one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindsEntry {
    pub(crate) metric: Spanned<String>,
    /// The factor by which the value is multiplied in the title of a panel.
    #[serde(default = "factor_of_one")]
    pub(crate) times: f64,
    /// The words that follow the value in the title: `of 6 connections lose`.
    pub(crate) what: String,
}

const fn factor_of_one() -> f64 {
    1.0
}

/// A figure of medians over cells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediansEntry {
    /// The metric of the lines that name no metric.
    pub(crate) metric: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    /// The numbers on the horizontal axis.
    pub(crate) x: Option<Vec<f64>>,
    /// The names of groups of bars, instead of numbers.
    pub(crate) names: Option<Vec<String>>,
    /// The name of a CSV file of printed figures. The printed figures of a line's cells and metric are drawn
    /// beside the medians.
    pub(crate) published: Option<Spanned<String>>,
    pub(crate) lines: Vec<LineEntry>,
}

/// A line of a figure, with one point for each cell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineEntry {
    pub(crate) label: String,
    pub(crate) metric: Option<Spanned<String>>,
    pub(crate) cells: Spanned<Vec<String>>,
}
