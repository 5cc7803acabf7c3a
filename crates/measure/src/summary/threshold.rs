//! What became of the thresholds, as summary.json has it.

use serde::{Deserialize, Serialize};

use crate::statistic::Statistic;

/// One threshold, held against the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdSummary {
    /// The figure as it was written: `call.mos@path.up.loss=0.01`.
    pub figure: String,
    /// What must hold of it: `>= 3.6`.
    pub bound: String,
    /// Whether it does.
    pub outcome: ThresholdOutcome,
    /// The statistic over the repetitions that was held against the bound; `None` of a flag, which must hold
    /// in each of them.
    pub statistic: Option<Statistic>,
    /// The figure where the margin is least; `None` if it is not known.
    pub found: Option<f64>,
    /// The copy or direction of the flow that this is, if it is not the flow itself.
    pub flow: Option<String>,
    /// The label of the cell that this is; empty if the run has one cell.
    pub cell: String,
    /// Over how many repetitions.
    pub repetitions: u64,
    /// How many cells have such a figure.
    pub cells: u64,
    /// In how many of them it fails.
    pub failing: u64,
    /// In how many of them it is undecided.
    pub undecided: u64,
    /// Of how many messages the figure is a share there; `None` of another figure.
    pub messages: Option<u64>,
    /// How many messages decide, all of them on the right side, if it is undecided because the bound is finer
    /// than one.
    pub needed: Option<u64>,
    /// All this in one line.
    pub text: String,
}

/// How a threshold came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdOutcome {
    /// In each cell.
    Holds,
    /// Not in each cell: exit code 5.
    Fails,
    /// The bound is finer than one message of the run, or most messages are unfinished: exit code 6.
    Undecided,
    /// There is no such figure: exit code 2.
    Unknown,
}
