//! `study.toml` as it is written. Unknown keys are mistakes; values that need the rest of the file to be
//! understood keep their place in it.

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

/// Scenario keys and their values.
pub(crate) type Settings = BTreeMap<String, Spanned<toml::Value>>;

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
    /// What an arena does otherwise.
    #[serde(default)]
    pub(crate) arena: BTreeMap<ArenaName, ArenaEntry>,
    #[serde(default)]
    pub(crate) sensitivity: Vec<Spanned<String>>,
    /// Metrics that no claim reads and the cells' table shows all the same.
    #[serde(default)]
    pub(crate) also: Vec<Spanned<String>>,
    /// Numbers that the study makes of a run's own.
    #[serde(default)]
    pub(crate) metric: BTreeMap<String, Spanned<MetricEntry>>,
    /// Value names and the scenario keys behind them, by the axis's name.
    #[serde(default)]
    pub(crate) axis: BTreeMap<String, BTreeMap<String, Settings>>,
    pub(crate) assumption: Vec<AssumptionEntry>,
    pub(crate) cells: Vec<CellsEntry>,
    /// Which measurements of a campaign are which cells.
    #[serde(default)]
    pub(crate) campaign: Vec<CampaignEntry>,
    pub(crate) claim: Vec<ClaimEntry>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureEntry>,
    #[serde(default)]
    pub(crate) table: Vec<TableEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuickEntry {
    pub(crate) repeat: Spanned<u64>,
    pub(crate) assumptions: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArenaEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    /// The only sets that run there; all without it.
    pub(crate) assumptions: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) set: Settings,
    pub(crate) quick: Option<ArenaQuickEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArenaQuickEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    pub(crate) assumptions: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) set: Settings,
}

/// What the cells of an entry do otherwise in one arena.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsArenaEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) set: Settings,
    pub(crate) quick: Option<CellsQuick>,
}

/// Whether and how the shorter run has the cells.
#[derive(Debug)]
pub(crate) enum CellsQuick {
    Whether(bool),
    How(CellsQuickEntry),
}

/// By hand: an untagged enum would lose the places of what is set.
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsQuickEntry {
    pub(crate) repeat: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) set: Settings,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricEntry {
    pub(crate) ratio: Option<(String, String)>,
    pub(crate) difference: Option<(String, String)>,
    pub(crate) sum: Option<OneOrMany>,
    pub(crate) mean: Option<OneOrMany>,
    pub(crate) scaled: Option<String>,
    /// With `scaled`: the factor.
    pub(crate) by: Option<f64>,
    pub(crate) share: Option<OneOrMany>,
    /// With `share`: of what lies above this.
    pub(crate) above: Option<f64>,
    /// A flow with copies: how alike their windows move.
    pub(crate) correlation: Option<String>,
    /// With `correlation`: the receiver's window, packets.
    pub(crate) cap: Option<f64>,
    /// A flow with copies: the share of losses that hit all copies.
    pub(crate) shared_losses: Option<String>,
    /// With `shared_losses`: how long an episode lasts, s.
    pub(crate) within: Option<f64>,
    /// Of a `queue`'s waiting packets.
    pub(crate) quantile: Option<f64>,
    /// With `quantile`: the link.
    pub(crate) queue: Option<String>,
    /// Of these three: what of the run they read.
    pub(crate) seconds: Option<Stretch>,
    /// The name of a unit of figures.
    pub(crate) unit: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssumptionEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) set: Settings,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsEntry {
    /// With `{AXIS}` for each axis.
    pub(crate) name: Spanned<String>,
    /// A scenario file beside the study.
    pub(crate) scenario: Spanned<String>,
    #[serde(default)]
    pub(crate) axes: BTreeMap<String, Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) set: Settings,
    /// The only sets it runs under; all without it.
    pub(crate) assumptions: Option<Vec<Spanned<String>>>,
    pub(crate) repeat: Option<Spanned<u64>>,
    pub(crate) quick: Option<CellsQuick>,
    /// The only arenas where it runs; all without it.
    pub(crate) arenas: Option<Vec<ArenaName>>,
    pub(crate) sim: Option<CellsArenaEntry>,
    pub(crate) emu: Option<CellsArenaEntry>,
}

impl CellsEntry {
    /// What is otherwise in `arena`.
    pub(crate) const fn arena(&self, arena: ArenaName) -> Option<&CellsArenaEntry> {
        match arena {
            ArenaName::Sim => self.sim.as_ref(),
            ArenaName::Emu => self.emu.as_ref(),
            // It does not run.
            ArenaName::Campaign => None,
        }
    }
}

/// Cells that a campaign measures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CampaignEntry {
    /// A cell's name, with `{AXIS}` for each axis of `each`.
    pub(crate) cell: Spanned<String>,
    /// Hosts of the campaign.
    pub(crate) near: Spanned<String>,
    pub(crate) far: Spanned<String>,
    /// `[measure.NAME]` of the campaign.
    pub(crate) measure: Spanned<String>,
    /// Its day, from 1; all days without it.
    pub(crate) day: Option<Spanned<String>>,
    /// The cell's flows, and the transport over which the campaign measured each.
    pub(crate) flows: BTreeMap<String, Spanned<String>>,
    /// The entry is made for each combination of these values, as a check is.
    #[serde(default)]
    pub(crate) each: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimEntry {
    pub(crate) id: Spanned<String>,
    pub(crate) text: String,
    pub(crate) published: String,
    /// The only arenas where it is judged. Without it: all where cells run, and `campaign` if `expected`
    /// names that.
    pub(crate) arenas: Option<Vec<ArenaName>>,
    pub(crate) expected: Spanned<ExpectedEntry>,
    /// Every claim needs one; optional here so that its absence is reported together with the other mistakes.
    pub(crate) why: Option<String>,
    /// Of the checks that name none of their own.
    pub(crate) basis: Option<Basis>,
    #[serde(default)]
    pub(crate) check: Vec<Spanned<CheckEntry>>,
}

/// One verdict, or one an arena.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum ExpectedEntry {
    Everywhere(Verdict),
    ByArena(BTreeMap<ArenaName, Verdict>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckEntry {
    pub(crate) name: String,
    /// What its figure rests on; without it, the claim's.
    pub(crate) basis: Option<Basis>,
    /// Of every operand that names none of its own.
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
    /// Why its bound has one end.
    pub(crate) one_sided: Option<String>,
    /// The only arenas where it is judged; all of the claim's without it.
    pub(crate) arenas: Option<Vec<ArenaName>>,
    /// The only arenas where the shorter run judges it; everywhere without this.
    pub(crate) quick: Option<Vec<ArenaName>>,
    /// The check is made for each combination of these values. `{AXIS}` in names becomes the value.
    #[serde(default)]
    pub(crate) each: BTreeMap<String, Vec<String>>,
}

/// A cell of the check's metric, or a metric of its own.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OperandEntry {
    Cell(String),
    Full(FullOperandEntry),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FullOperandEntry {
    pub(crate) cell: Option<String>,
    pub(crate) metric: Option<String>,
}

/// A line through one point a cell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineOfCells {
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) cells: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Within {
    Number(f64),
    Share(String),
}

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
    /// Why it is not drawn again.
    pub(crate) absent: Option<String>,
}

/// One point a cell, and a line through all points.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScatterEntry {
    pub(crate) x: Spanned<String>,
    pub(crate) y: Spanned<String>,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    pub(crate) points: Vec<LineEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableEntry {
    pub(crate) title: String,
    /// A CSV file beside the study.
    pub(crate) rows: Spanned<String>,
    /// Of its rows those that have this in the column `table`; all without it.
    pub(crate) number: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuantilesEntry {
    pub(crate) cell: Spanned<String>,
    /// Flows, or groups of copies.
    pub(crate) flows: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceEntry {
    pub(crate) series: Spanned<String>,
    pub(crate) entity: String,
    pub(crate) cell: Spanned<String>,
    pub(crate) seconds: Stretch,
    /// The most that a value can mean: of `cwnd` the receiver's window, packets.
    pub(crate) cap: Option<f64>,
    /// One panel for each kind of run.
    pub(crate) kinds: Option<KindsEntry>,
    /// Printed figures, as lines across.
    #[serde(default)]
    pub(crate) levels: Vec<Level>,
}

/// What distinguishes kinds of runs: runs of one value of `metric` are one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindsEntry {
    pub(crate) metric: Spanned<String>,
    /// What the value is multiplied by for a person.
    #[serde(default = "once")]
    pub(crate) times: f64,
    /// What follows the value: `of 6 connections lose`.
    pub(crate) what: String,
}

const fn once() -> f64 {
    1.0
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediansEntry {
    /// Of the lines that name none of their own.
    pub(crate) metric: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    /// Numbers on the horizontal axis, or else names: groups of bars.
    pub(crate) x: Option<Vec<f64>>,
    pub(crate) names: Option<Vec<String>>,
    /// A CSV file of printed figures: those of a line's cells and metric are drawn beside ours.
    pub(crate) published: Option<Spanned<String>>,
    pub(crate) lines: Vec<LineEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineEntry {
    pub(crate) label: String,
    pub(crate) metric: Option<Spanned<String>>,
    pub(crate) cells: Spanned<Vec<String>>,
}
