//! A study after it was loaded. Every cell has its scenario under every assumption set, and every check is
//! written out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use talkpath_model::{Scenario, WorkloadConfig};

use crate::arena::ArenaName;
use crate::claim::Claim;
use crate::metric::{Metrics, Units};
use crate::stretch::Stretch;
use crate::table::{PublishedTable, Role};

/// The index of the base set in [`Study::assumptions`].
pub(crate) const BASE_SET: usize = 0;

/// A study, ready to run and to judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The name of the study for `talkpath study run`, such as `sawashima-1997`.
    pub name: String,
    /// The title of the publication.
    pub title: String,
    /// The authors of the publication.
    pub authors: Vec<String>,
    /// The year of the publication.
    pub year: u32,
    /// The journal or conference where the publication appeared.
    pub source: String,
    /// The question that the publication answers.
    pub question: String,
    /// What the publication simulated or measured, and with which means.
    pub set_up: String,
    /// The number of repetitions of a cell, unless the cell states another. Each repetition has its own start
    /// phases.
    pub repeat: u64,
    /// The assumption sets. The first one is the base.
    pub assumptions: Vec<Assumption>,
    /// The indices of the sets that are shown with each claim as its sensitivity.
    pub sensitivity: Vec<usize>,
    /// Every cell in every arena and under every assumption set. They are sorted by arena, then by set, then
    /// by their order in the file.
    pub cells: Vec<Cell>,
    /// The measurements of a campaign that are cells of [`ArenaName::Campaign`].
    pub campaign: Vec<CampaignCell>,
    /// The claims of the publication.
    pub claims: Vec<Claim>,
    /// The figures of the publication that are drawn again.
    pub figures: Vec<Figure>,
    /// The tables of the publication that are compared with the run, cell by cell.
    pub tables: Vec<PublishedTable>,
    /// Every metric that a claim or a figure reads.
    pub metrics: Vec<String>,
    /// The metrics that the study computes from others.
    pub derived: Metrics,
    /// The units of the computed metrics that have a unit.
    pub units: Units,
    /// The files of the study as (name, text): `study.toml`, and the scenarios and tables that it names.
    pub files: Vec<(String, String)>,
    /// The changes that the command line made to every cell.
    pub changes: Changes,
}

/// What the command line changes in every cell of a study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The seed from which the seeds of all repetitions are derived, in place of the seeds of the scenarios.
    pub seed: Option<u64>,
    /// Scenario keys with their values, which win over all settings of the study.
    pub set: Vec<(String, String)>,
}

/// One answer to what the publication leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The name of the set in tables.
    pub name: String,
    /// What is assumed, and why the publication leaves it open.
    pub text: String,
}

/// One cell of the publication in one arena under one assumption set.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The number of the cell among all cells of the study, from 0.
    pub index: u64,
    /// The name of the cell, such as `udp-hom-6-320-64`.
    pub name: String,
    /// The arena where the cell runs.
    pub arena: ArenaName,
    /// Index into [`Study::assumptions`].
    pub assumption: usize,
    /// What a full run runs.
    pub full_runs: CellRuns,
    /// What `--quick` runs, or `None` if `--quick` leaves the cell out.
    pub quick_runs: Option<CellRuns>,
    /// What is kept of the repetitions for the figures and claims that need more than metrics.
    pub kept: Kept,
}

/// The measurements of a campaign that are one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignCell {
    /// The name of the cell.
    pub cell: String,
    /// The host that starts the measurements.
    pub near: String,
    /// The host that the measurements go to.
    pub far: String,
    /// The name of the measurement in the campaign file: `[measure.NAME]`.
    pub measure: String,
    /// The day of the campaign, from 1, or `None` for all days.
    pub day: Option<u64>,
    /// The transport over which each flow of the cell was measured, by the name of the flow.
    pub flows: BTreeMap<String, String>,
}

/// A cell's scenario and how often it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CellRuns {
    /// The number of repetitions.
    pub repeat: u64,
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// What the scenario was made of.
    pub source: Arc<CellSource>,
    /// A text that changes if the scenario changes, or what is kept of it. A resumed run keeps only
    /// repetitions with the same fingerprint.
    pub fingerprint: String,
    /// A hash of what the scenario is made of: its file without comments, the files that it names, the keys
    /// that the study sets, the cell's own seed, and the number of repetitions. Unlike the fingerprint it is
    /// the same in each version of talkpath, and whatever is read of the cell.
    pub origin: String,
}

/// The scenario file of a cell, and the keys that the study sets in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellSource {
    /// The name of the file beside the study.
    pub file: String,
    /// The keys with their values as TOML. A later setting of a key wins.
    pub set: Vec<(String, String)>,
    /// The seed of repetition 0, if the cell has one of its own.
    pub seed: Option<u64>,
}

/// The series of what the flows send over a link in each second. It is counted packet by packet, which the
/// simulator alone can. In a trace the name of the link follows it, after a space.
pub(crate) const THROUGHPUT: &str = "throughput";

/// Returns the link of a series of throughput, or `None` if it is another series.
pub(crate) fn throughput_link(series: &str) -> Option<&str> {
    series.strip_prefix(THROUGHPUT)?.strip_prefix(' ')
}

/// What is kept of the repetitions of a cell in addition to its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The stretch of run time that a kept trace covers, by series.
    pub traces: BTreeMap<String, Stretch>,
    /// The metrics whose values distinguish kinds of runs. The first repetition of each kind keeps a trace.
    pub kinds: BTreeSet<String>,
    /// The metrics over time that claims read from this cell. Every repetition keeps its whole series until
    /// these metrics are computed.
    pub over_time: Vec<String>,
    /// Whether a claim reads what is watched of the runs packet by packet.
    pub watched: bool,
    /// The flows, or groups of copies, whose delay percentiles every repetition keeps.
    pub delays: Vec<String>,
}

impl Kept {
    /// Returns whether a repetition is watched packet by packet. `is_drawn` says whether its trace is kept.
    pub fn is_watched(&self, is_drawn: bool) -> bool {
        self.watched || (is_drawn && self.traces.keys().any(|series| throughput_link(series).is_some()))
    }
}

/// A figure of the publication, drawn again.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The number of the figure in the publication.
    pub number: String,
    /// The title, which says what the figure shows.
    pub title: String,
    /// A note that a reader should know. It may be empty.
    pub note: String,
    /// What is drawn, and how.
    pub kind: FigureKind,
}

/// A printed figure as a line across a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The label, which says what the figure is.
    pub label: String,
    /// The value, in the unit of the vertical axis.
    pub value: f64,
}

/// What distinguishes kinds of runs in a trace. All runs with the same value of a metric are one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Kinds {
    /// The metric.
    pub metric: String,
    /// The factor by which the value is multiplied in the title of a panel.
    pub times: f64,
    /// The words that follow the value in the title: `of 6 connections lose`.
    pub what: String,
}

/// The horizontal axis of a figure of medians.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureAxis {
    /// The numbers of the points. The title of the axis says what is counted.
    Numbers(Vec<f64>),
    /// The names of groups of bars.
    Names(Vec<String>),
}

/// A line of medians, or the bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianLine {
    /// The label of the line in the legend.
    pub label: String,
    /// The metric that is read of each cell.
    pub metric: String,
    /// The names of the cells, one for each value of the axis.
    pub cells: Vec<String>,
    /// The figures that the publication prints, one entry for each cell. It is empty if nothing is printed.
    pub published: Vec<Printed>,
}

/// The figures that the publication prints for one cell and metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// The printed figures. There are several if the publication measured several times.
    pub values: Vec<f64>,
    /// What the printed figures were used for in the study.
    pub role: Role,
}

/// The titles of the axes of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisTitles {
    /// The title of the horizontal axis.
    pub x: String,
    /// The title of the vertical axis.
    pub y: String,
}

/// Cells whose points have the same colour and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledCells {
    /// The label of the points in the legend.
    pub label: String,
    /// The names of the cells.
    pub cells: Vec<String>,
}

/// What a figure draws.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureKind {
    /// A series over time under the base set, of the first repetition or of the first of each kind of run.
    Trace {
        /// The series: `cwnd`, `queue`, `loss-runs` or `goodput`.
        series: String,
        /// The beginning of the names of the flows or links that are drawn.
        entity: String,
        /// The name of the cell.
        cell: String,
        /// The stretch of the run that is shown.
        seconds: Stretch,
        /// The largest value that has an effect. Larger values are drawn as this value.
        cap: Option<f64>,
        /// What distinguishes kinds of runs. If it is given, the figure has one panel for each kind.
        kinds: Option<Kinds>,
        /// Printed figures, drawn as horizontal lines.
        levels: Vec<Level>,
    },
    /// Medians of a metric over cells under the base set, with one line for each label.
    Cells {
        /// The horizontal axis.
        x: FigureAxis,
        /// The titles of the axes. The title of the horizontal axis may be empty.
        titles: AxisTitles,
        /// The lines. Each has one cell for each value of `x`.
        lines: Vec<MedianLine>,
    },
    /// Medians of one metric over medians of another, with one point for each cell and a line through all
    /// points.
    Scatter {
        /// The metric on the horizontal axis.
        x: String,
        /// The metric on the vertical axis.
        y: String,
        /// The titles of the axes.
        titles: AxisTitles,
        /// The cells, by the label of their points.
        points: Vec<LabelledCells>,
    },
    /// The figure is not drawn again, for this reason.
    Absent(String),
    /// The delay quantiles of flows in one arena over those in another, under the base set.
    Quantiles {
        /// The name of the cell.
        cell: String,
        /// The names of the flows, or of groups of copies.
        flows: Vec<String>,
    },
}

impl Study {
    /// Makes the runs send the files beside the study from `folder`, where [`Study::files`] were written. A
    /// study names such a file by its name alone, because its folder may be in another place on each machine.
    pub fn send_files_from(&mut self, folder: &str) {
        for cell in &mut self.cells {
            for runs in core::iter::once(&mut cell.full_runs).chain(&mut cell.quick_runs) {
                if runs.scenario.flows.iter().any(|flow| sent_file(&flow.workload).is_some()) {
                    for flow in &mut Arc::make_mut(&mut runs.scenario).flows {
                        if let WorkloadConfig::File { source, .. } = &mut flow.workload {
                            *source = format!("{folder}/{source}");
                        }
                    }
                }
            }
        }
    }

    /// Finds the cell called `name` in `arena` under the assumption set with index `assumption`.
    pub fn cell(&self, name: &str, arena: ArenaName, assumption: usize) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.arena == arena && cell.assumption == assumption && cell.name == name)
    }

    /// Returns the figures that draw curves of the cell called `cell_name`.
    pub(crate) fn figures_of_curves<'s>(&'s self, cell_name: &str) -> impl Iterator<Item = &'s Figure> {
        let draws = move |figure: &&Figure| matches!(&figure.kind, FigureKind::Trace { cell, .. } if *cell == cell_name);
        self.figures.iter().filter(draws)
    }

    /// Returns the index of the assumption set called `name`.
    pub(crate) fn assumption_index(&self, name: &str) -> Option<usize> {
        self.assumptions.iter().position(|set| set.name == name)
    }
}

/// Returns the name of the file that a workload sends.
pub(crate) fn sent_file(workload: &WorkloadConfig) -> Option<&str> {
    match workload {
        WorkloadConfig::File { source, .. } => Some(source),
        _ => None,
    }
}
