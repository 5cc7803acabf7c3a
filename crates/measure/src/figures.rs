//! What the report draws, computed here so that the report only draws.

use serde::{Deserialize, Serialize};

/// Everything drawn about one flow of one run (repetition 0 of a cell).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Flow name.
    pub flow: String,
    /// Transport as the user wrote it; names and colours come from the report's one table.
    pub transport: String,
    /// Whether `delay` and `cdf` are round trips (an echo flow) or one way.
    pub round_trip: bool,
    /// Complementary distribution: (delay in ms, share of sent messages later than that or never), thinned to at most
    /// 400 points spaced by rank so that the tail keeps its last messages. Loss stays as the floor.
    pub ccdf: Vec<(f64, f64)>,
    /// (due in s, delay in ms) thinned to at most 1,500 points: the minimum and the maximum of each time bucket.
    pub delay: Vec<(f64, f64)>,
    /// Due times in s of missing messages, at most 1,500.
    pub losses: Vec<f64>,
    /// How many runs of length 1, 2, 3, ...
    pub loss_runs: Vec<u64>,
}

/// A step line over time: (time in s, value), thinned to at most 1,500 points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    /// Flow or link.
    pub entity: String,
    /// `cwnd`, `queue`, ...
    pub kind: String,
    /// Steps.
    pub points: Vec<(f64, f64)>,
}

/// Everything drawn about one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellFigures {
    /// Index in the sweep.
    pub cell: u64,
    /// What tells this cell from the others, for a legend: `udp`, `loss 0.01`; empty without a sweep.
    pub label: String,
    /// By flow.
    pub flows: Vec<FlowFigures>,
    /// cwnd, queue, send buffer.
    pub lines: Vec<StepLine>,
}
