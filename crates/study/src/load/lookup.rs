//! Finds a cell and its metrics by the names that a study file uses, and records unknown names as mistakes.

use core::ops::Range;
use std::collections::BTreeMap;

use serde_json::Value as Json;
use talkpath_model::Scenario;
use toml::Spanned;

use super::Loader;
use crate::metric::{Metrics, unknown_metric};
use crate::mistakes::names_help;
use crate::shape::summary_shape;
use crate::study::Cell;

/// The names that claims, figures and tables can use.
pub(super) struct Lookup<'a> {
    /// All cells of the study.
    pub(super) cells: &'a [Cell],
    /// The metrics that the study computes.
    pub(super) derived: &'a Metrics,
    by_name: BTreeMap<&'a str, NamedCell<'a>>,
}

/// A metric of a cell, both as a study file names them.
#[derive(Clone, Copy)]
pub(super) struct CellMetric<'a> {
    pub(super) cell: &'a str,
    pub(super) metric: &'a str,
}

/// What the lookup knows of the cells with one name.
struct NamedCell<'a> {
    /// The scenario under the base set, or under the first set that the cell runs under.
    scenario: &'a Scenario,
    /// A summary with every path that the summary of a run of this scenario can have.
    summary_shape: Json,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(cells: &'a [Cell], derived: &'a Metrics) -> Self {
        let mut by_name = BTreeMap::new();
        // The cells are sorted by arena, then by set. The first cell of a name is the one under the base set
        // in the simulator.
        for cell in cells {
            by_name.entry(cell.name.as_str()).or_insert_with(|| {
                let scenario = &*cell.full_runs.scenario;
                NamedCell { scenario, summary_shape: summary_shape(scenario) }
            });
        }
        Self { cells, derived, by_name }
    }

    pub(super) fn scenario(&self, cell: &str) -> Option<&'a Scenario> {
        self.by_name.get(cell).map(|named| named.scenario)
    }

    /// Returns the duration of a run of `cell`, in s.
    pub(super) fn duration_s(&self, cell: &str) -> Option<f64> {
        self.scenario(cell).map(|scenario| scenario.duration.as_secs_f64())
    }
}

impl Loader<'_, '_> {
    /// Records a mistake if the study has no cell called `name`.
    pub(super) fn require_cell(&mut self, name: &str, span: Range<usize>, key: &str) {
        if self.has_all_names && !self.cell_names.contains(name) {
            let message = format!("there is no cell called \"{name}\"");
            let help = names_help(self.cell_names.iter().map(String::as_str));
            self.mistakes.add_with_help(span, key, message, help);
        }
    }

    /// Records a mistake if a run of the cell does not have the metric. An unknown cell is ignored here,
    /// because [`Self::require_cell`] records it.
    pub(super) fn require_metric(
        &mut self,
        wanted: CellMetric<'_>,
        span: Range<usize>,
        key: &str,
        lookup: &Lookup<'_>,
    ) {
        let Some(named) = lookup.by_name.get(wanted.cell) else { return };
        if let Some(unknown) = unknown_metric(&named.summary_shape, wanted.metric, lookup.derived) {
            self.mistakes.add_with_help(span, key, unknown.message, unknown.help);
        }
    }

    /// Records a mistake if no cell at all has `metric`.
    pub(super) fn require_metric_somewhere(&mut self, metric: &Spanned<String>, lookup: &Lookup<'_>) {
        let mut first_unknown = None;
        for named in lookup.by_name.values() {
            let Some(unknown) = unknown_metric(&named.summary_shape, metric.get_ref(), lookup.derived) else {
                return;
            };
            first_unknown.get_or_insert(unknown);
        }
        if let Some(unknown) = first_unknown {
            self.mistakes.add_with_help(metric.span(), "also", unknown.message, unknown.help);
        }
    }
}
