//! `study.toml` as it is written. Unknown keys are mistakes; values that need the rest of the file to be understood keep
//! their place in it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::outcome::Verdict;

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
    #[serde(default)]
    pub(crate) sensitivity: Vec<Spanned<String>>,
    /// Metrics that no claim reads and the cells' table shows all the same.
    #[serde(default)]
    pub(crate) also: Vec<String>,
    /// Value names and the scenario keys behind them, by the axis's name.
    #[serde(default)]
    pub(crate) axis: BTreeMap<String, BTreeMap<String, Settings>>,
    pub(crate) assumption: Vec<AssumptionEntry>,
    pub(crate) cells: Vec<CellsEntry>,
    pub(crate) claim: Vec<ClaimEntry>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuickEntry {
    pub(crate) repeat: Spanned<u64>,
    pub(crate) assumptions: Vec<Spanned<String>>,
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
    #[serde(default = "yes")]
    pub(crate) quick: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimEntry {
    pub(crate) id: Spanned<String>,
    pub(crate) text: String,
    pub(crate) published: String,
    pub(crate) expected: Verdict,
    pub(crate) why: Option<String>,
    #[serde(default)]
    pub(crate) check: Vec<Spanned<CheckEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckEntry {
    pub(crate) name: String,
    pub(crate) metric: String,
    pub(crate) cell: Option<Spanned<String>>,
    pub(crate) value: Option<f64>,
    pub(crate) at_most: Option<f64>,
    pub(crate) at_least: Option<f64>,
    pub(crate) rising: Option<Vec<Spanned<String>>>,
    pub(crate) falling: Option<Vec<Spanned<String>>>,
    pub(crate) same: Option<Vec<Spanned<String>>>,
    pub(crate) within: Option<Spanned<Within>>,
    /// The check is made for each combination of these, `{AXIS}` in names standing for the value.
    #[serde(default)]
    pub(crate) each: BTreeMap<String, Vec<String>>,
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
    pub(crate) trace: Option<TraceEntry>,
    pub(crate) medians: Option<MediansEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceEntry {
    pub(crate) series: Spanned<String>,
    pub(crate) entity: String,
    pub(crate) cell: Spanned<String>,
    pub(crate) seconds: (f64, f64),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediansEntry {
    pub(crate) metric: String,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    pub(crate) x: Vec<f64>,
    pub(crate) lines: Vec<LineEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineEntry {
    pub(crate) label: String,
    pub(crate) cells: Spanned<Vec<String>>,
}

const fn yes() -> bool {
    true
}
