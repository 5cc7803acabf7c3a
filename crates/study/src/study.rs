//! A study as loaded: every cell under every assumption set resolved to a scenario, every check written out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use talkpath_model::Scenario;

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
    /// What `talkpath study run` calls it: `sawashima-1997`.
    pub name: String,
    /// The publication's title.
    pub title: String,
    /// Who wrote it.
    pub authors: Vec<String>,
    /// When.
    pub year: u32,
    /// Where it appeared.
    pub source: String,
    /// The question that it answers.
    pub question: String,
    /// What it simulated or measured, and with what.
    pub set_up: String,
    /// Repetitions, each with start phases of its own, unless a cell says otherwise.
    pub repeat: u64,
    /// What the publication leaves open; the first is the base.
    pub assumptions: Vec<Assumption>,
    /// The sets that are shown with each claim as its sensitivity, by index.
    pub sensitivity: Vec<usize>,
    /// Every cell in every arena and under every assumption set, by arena, assumption and then in the file's
    /// order.
    pub cells: Vec<Cell>,
    /// Which measurements of a campaign are cells of [`ArenaName::Campaign`].
    pub campaign: Vec<CampaignCell>,
    /// What the publication says.
    pub claims: Vec<Claim>,
    /// What is drawn again.
    pub figures: Vec<Figure>,
    /// What is printed beside ours, cell by cell.
    pub tables: Vec<PublishedTable>,
    /// Every metric that a claim or a figure reads.
    pub metrics: Vec<String>,
    /// The metrics that the study computes from others.
    pub derived: Metrics,
    /// The units of these metrics, as far as they have one.
    pub units: Units,
    /// Its files: `study.toml`, and the scenarios and tables that it names. (name, text)
    pub files: Vec<(String, String)>,
    /// What was changed in every cell when it was loaded.
    pub changes: Changes,
}

/// What the command line changes in every cell of a study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The seed that all repetitions' seeds are derived from, over the scenarios' own.
    pub seed: Option<u64>,
    /// Scenario keys and their values, after everything that the study sets.
    pub set: Vec<(String, String)>,
}

/// One answer to what the publication leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// What tables call it.
    pub name: String,
    /// What is assumed, and why it is open.
    pub text: String,
}

/// One cell of the publication in one arena under one assumption set.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// From 0, over all cells of the study.
    pub index: u64,
    /// The publication's cell: `udp-hom-6-320-64`.
    pub name: String,
    /// Where it runs.
    pub arena: ArenaName,
    /// Index into [`Study::assumptions`].
    pub assumption: usize,
    /// What runs.
    pub full: Form,
    /// What `--quick` runs; `None` if that leaves the cell out.
    pub quick: Option<Form>,
    /// What of the first repetition is kept for the figures that show it.
    pub kept: Kept,
}

/// Which measurements of a campaign are a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignCell {
    /// The cell's name.
    pub cell: String,
    /// The host that starts them.
    pub near: String,
    /// The host that they go to.
    pub far: String,
    /// `[measure.NAME]`.
    pub measure: String,
    /// Of this day, from 1; `None` for all days.
    pub day: Option<u64>,
    /// By the cell's flow, the transport over which it was measured.
    pub flows: BTreeMap<String, String>,
}

/// A cell's scenario and how often it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Repetitions.
    pub repeat: u64,
    /// What runs.
    pub scenario: Arc<Scenario>,
    /// Changes if what runs changes, or what is kept. A resumed run compares it.
    pub fingerprint: String,
}

/// What figures draw of a cell beside its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// By series, the stretch of run time of which the first repetition keeps a trace.
    pub traces: BTreeMap<String, Stretch>,
    /// The metrics whose values distinguish kinds of runs: the first repetition of each kind keeps a trace.
    pub kinds: BTreeSet<String>,
    /// The figures of state over time that claims read from this cell: every repetition keeps whole series
    /// until they are computed.
    pub over_time: Vec<String>,
    /// Whether a claim reads what is watched of its runs packet by packet.
    pub watched: bool,
    /// Flows, or groups of copies, of whose delays every repetition keeps the distribution.
    pub delays: Vec<String>,
}

/// A figure of the publication, drawn again.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// As the publication numbers it.
    pub number: String,
    /// What it shows.
    pub title: String,
    /// What a reader should know; may be empty.
    pub note: String,
    /// How.
    pub kind: FigureKind,
}

/// A printed figure as a line across a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// What it is.
    pub label: String,
    /// In the unit of the vertical axis.
    pub value: f64,
}

/// What distinguishes kinds of runs in a trace: runs of one value of a metric are one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Kinds {
    /// The metric.
    pub metric: String,
    /// What its value is multiplied by for a person.
    pub times: f64,
    /// What follows the value: `of 6 connections lose`.
    pub what: String,
}

/// The horizontal axis of a figure of medians.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureAxis {
    /// Numbers of what the axis' title counts.
    Numbers(Vec<f64>),
    /// Names of groups.
    Names(Vec<String>),
}

/// A line of medians, or the bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianLine {
    /// What the legend calls it.
    pub label: String,
    /// What is read of each cell.
    pub metric: String,
    /// One for each value of the axis.
    pub cells: Vec<String>,
    /// What the publication prints for each cell, and what that was used for; empty if it prints nothing.
    pub published: Vec<Printed>,
}

/// What the publication prints for one cell and metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// Each figure: several if it was measured several times.
    pub values: Vec<f64>,
    /// What they were used for.
    pub role: Role,
}

/// What the axes of a figure are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisTitles {
    /// Of the horizontal axis.
    pub x: String,
    /// Of the vertical axis.
    pub y: String,
}

/// Cells whose points have one colour and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledCells {
    /// What the legend calls them.
    pub label: String,
    /// Their names.
    pub cells: Vec<String>,
}

/// How a figure is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureKind {
    /// A series of the first repetition (or of the first of each kind) under the base assumptions, over
    /// `seconds`.
    Trace {
        /// `cwnd`, `queue`, `loss-runs` or `goodput`.
        series: String,
        /// Which flows or links, by the beginning of their names.
        entity: String,
        /// The cell.
        cell: String,
        /// What of the run it shows.
        seconds: Stretch,
        /// The most that a value can mean, if values are cut there.
        cap: Option<f64>,
        /// One panel for each kind of run, if runs are of several.
        kinds: Option<Kinds>,
        /// Printed figures, drawn across.
        levels: Vec<Level>,
    },
    /// A metric's medians over cells, one line a label, under the base assumptions.
    Cells {
        /// The horizontal axis.
        x: FigureAxis,
        /// What the axes are called; the horizontal one's may be empty.
        titles: AxisTitles,
        /// One for each value of `x`.
        lines: Vec<MedianLine>,
    },
    /// Medians of one metric over those of another, a point a cell, with the line through all points.
    Scatter {
        /// The metric on the horizontal axis.
        x: String,
        /// The metric on the vertical axis.
        y: String,
        /// What the axes are called.
        titles: AxisTitles,
        /// The cells, by the label that their points have.
        points: Vec<LabelledCells>,
    },
    /// Not drawn again, for this reason.
    Absent(String),
    /// The quantiles of flows' delays in one arena against those in another, under the base assumptions.
    Quantiles {
        /// The cell.
        cell: String,
        /// Which flows, or groups of copies.
        flows: Vec<String>,
    },
}

impl Study {
    /// Finds the cell called `name` in `arena` under the assumption set with index `assumption`.
    pub fn cell(&self, name: &str, arena: ArenaName, assumption: usize) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.arena == arena && cell.assumption == assumption && cell.name == name)
    }

    /// The index of the assumption set called `name`.
    pub(crate) fn assumption_index(&self, name: &str) -> Option<usize> {
        self.assumptions.iter().position(|set| set.name == name)
    }
}
