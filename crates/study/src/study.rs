//! A study as loaded: every cell under every assumption set resolved to a scenario, every check written out.

use std::sync::Arc;

use talkpath_scenario::Scenario;

use crate::arena::ArenaName;
use crate::claim::Claim;
use crate::metric::Metrics;
use crate::table::PublishedTable;

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
    /// The sets that stand beside each claim as its sensitivity, by index.
    pub sensitivity: Vec<usize>,
    /// Every cell in every arena and under every assumption set, by arena, assumption and then in the file's
    /// order.
    pub cells: Vec<Cell>,
    /// What the publication says.
    pub claims: Vec<Claim>,
    /// What is drawn again.
    pub figures: Vec<Figure>,
    /// What is printed beside ours, cell by cell.
    pub tables: Vec<PublishedTable>,
    /// Every metric that a claim or a figure reads.
    pub metrics: Vec<String>,
    /// Those that the study makes of others.
    pub derived: Metrics,
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

/// A cell's scenario and how often it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Repetitions.
    pub repeat: u64,
    /// What runs.
    pub scenario: Arc<Scenario>,
    /// Distinguishes what runs, and what is kept of it, from an edited cell. A resumed run compares it.
    pub fingerprint: String,
}

/// What figures draw of a cell beside its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The stretch of run time in seconds of which the first repetition keeps a trace.
    pub trace: Option<(f64, f64)>,
    /// The study's figures of state over time that claims read of it: every repetition keeps whole series
    /// until they are made.
    pub over_time: Vec<String>,
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
    /// How.
    pub kind: FigureKind,
}

/// How a figure is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureKind {
    /// A series of the first repetition under the base assumptions, over `seconds`.
    Trace {
        /// `cwnd`, `queue`, `loss-runs` or `goodput`.
        series: String,
        /// Which flows or links, by the beginning of their names.
        entity: String,
        /// The cell.
        cell: String,
        /// From and to.
        seconds: (f64, f64),
    },
    /// A metric's medians over cells, one line a label, under the base assumptions.
    Cells {
        /// The metric.
        metric: String,
        /// The horizontal axis: what it counts.
        x_title: String,
        /// The vertical axis.
        y_title: String,
        /// Its values.
        x: Vec<f64>,
        /// Each line's label and its cells, one for each value of `x`.
        lines: Vec<(String, Vec<String>)>,
    },
    /// The quantiles of flows' delays in one arena against those in another, under the base assumptions.
    Quantiles {
        /// The cell.
        cell: String,
        /// Which flows, or groups of copies.
        flows: Vec<String>,
    },
}

impl Study {
    /// The cell called `name` in `arena` under assumption set number `assumption`.
    pub fn cell(&self, name: &str, arena: ArenaName, assumption: usize) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| (cell.arena, cell.assumption) == (arena, assumption) && cell.name == name)
    }
}
