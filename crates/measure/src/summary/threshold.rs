//! The outcome of the thresholds, as summary.json has it. A *threshold* is a bound on a figure, for example
//! `call.mos >= 3.6`.

use serde::{Deserialize, Serialize};

use crate::statistic::Statistic;

/// The outcome of one threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdSummary {
    /// The figure as the user wrote it: `call.mos@path.up.loss=0.01`.
    pub figure: String,
    /// The bound: `>= 3.6`.
    pub bound: String,
    /// Whether the figure keeps to the bound.
    pub outcome: ThresholdOutcome,
    /// The statistic over the repetitions that was compared with the bound. `None` if the figure is a flag,
    /// which must hold in each repetition.
    pub statistic: Option<Statistic>,
    /// The value of the figure in the cell where the margin is smallest. `None` if it is unknown.
    pub found: Option<f64>,
    /// The copy or the direction of the flow with this value, if it is not the flow itself.
    pub flow: Option<String>,
    /// The label of the cell with this value. Empty if the run has one cell.
    pub cell: String,
    /// The number of repetitions of the cell.
    pub repetitions: u64,
    /// The number of cells that have the figure.
    pub cells: u64,
    /// The number of cells in which the threshold fails.
    pub failing: u64,
    /// The number of cells in which the threshold is undecided.
    pub undecided: u64,
    /// The number of messages that the figure is a share of, in the same cell. `None` if the figure is not a
    /// share of messages.
    pub messages: Option<u64>,
    /// The 95 % interval of the value. The threshold is undecided if the bound lies in it. `None` if the
    /// value alone decides: with one repetition of a figure that is no share of messages, of `p10` and
    /// `min`, and for a bound at an end of what is possible. `None` in files of earlier versions.
    #[serde(default)]
    pub interval: Option<(f64, f64)>,
    /// About how many messages are needed to decide, with those of the run. `None` unless the threshold is
    /// undecided because of its messages.
    pub needed: Option<u64>,
    /// About how many repetitions are needed to decide, with those of the run. `None` unless the threshold
    /// is undecided because its repetitions differ.
    #[serde(default)]
    pub needed_repetitions: Option<u64>,
    /// The outcome in one line for the user.
    pub text: String,
}

/// Whether a threshold holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdOutcome {
    /// The threshold holds in each cell.
    Holds,
    /// The threshold fails in at least one cell. The exit code is 5.
    Fails,
    /// The bound lies in the interval of the figure, or most messages are unfinished. The exit code is 6.
    Undecided,
    /// There is no such figure. The exit code is 2.
    Unknown,
}
