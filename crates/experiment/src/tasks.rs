//! The cells of an experiment, and their repetitions as a list of tasks in the order in which they run.

use std::cmp::Reverse;

use talkpath_scenario::{Cell, Plan, Scenario};
use talkpath_units::{Duration, Seed};

use crate::run_dir::PartId;

/// The fingerprint of all cells in a directory that holds the repetitions of one plan only.
pub const ONE_PLAN: &str = "";

/// A cell with its number of repetitions and its fingerprint. In a [`Plan`] all cells have the same number
/// and fingerprint; in a study each cell has its own.
#[derive(Clone, Copy, Debug)]
pub struct CellPlan<'p> {
    /// The index of the cell in its plan or study.
    pub index: u64,
    /// The scenario that each repetition runs.
    pub scenario: &'p Scenario,
    /// The number of repetitions. Each has a seed of its own.
    pub repetitions: u64,
    /// A digest of the scenario. A repetition that an earlier process kept counts only if it was kept with
    /// the same fingerprint: otherwise somebody has edited the cell since.
    pub fingerprint: &'p str,
}

/// The order in which repetitions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All repetitions of the first cell, then those of the second cell, and so on.
    ByCell,
    /// The first repetition of all cells, then the second of all cells, and so on. For each repetition the
    /// order of the cells is drawn anew from this seed, so that a slow hour of the network falls on all
    /// cells.
    InTurns(Seed),
    /// Cell by cell. The cells that take the most path time run first, so that short cells fill the workers
    /// at the end.
    LongestFirst,
}

/// A repetition that is to run.
#[derive(Clone, Copy)]
pub(crate) struct Task<'p> {
    pub(crate) id: PartId,
    pub(crate) cell: CellPlan<'p>,
    /// How many times the repetition will have run again after this task; 0 for the first attempt.
    pub(crate) reruns: u64,
    /// How many other runs are allowed at the same time.
    pub(crate) max_other_runs: u64,
}

impl<'p> CellPlan<'p> {
    /// Returns the cells of `plan`. They have the fingerprint [`ONE_PLAN`], because a run directory holds the
    /// repetitions of one plan only.
    pub fn all_of(plan: &'p Plan) -> Vec<Self> {
        let cell_plan = |cell: &'p Cell| Self {
            index: cell.index,
            scenario: &cell.scenario,
            repetitions: plan.repeat,
            fingerprint: ONE_PLAN,
        };
        plan.cells.iter().map(cell_plan).collect()
    }

    /// Returns the cell's repetitions, in order.
    pub(crate) fn ids(self) -> impl Iterator<Item = PartId> {
        (0..self.repetitions).map(move |repetition| PartId { cell: self.index, repetition })
    }

    /// Returns the sum of the durations of all repetitions.
    pub(crate) fn path_time(self) -> Duration {
        self.scenario.duration.saturating_mul(self.repetitions)
    }
}

/// Returns the cell with this `index`. `cells` must be in the order of their indices.
pub(crate) fn cell_at<'p>(cells: &[CellPlan<'p>], index: u64) -> Option<CellPlan<'p>> {
    let position = cells.binary_search_by_key(&index, |cell| cell.index).ok()?;
    cells.get(position).copied()
}

/// Returns a task for each of `ids`, in `order`. A repetition whose cell is not in `cells` gets no task.
pub(crate) fn in_order<'p>(
    cells: &[CellPlan<'p>],
    ids: impl Iterator<Item = PartId>,
    order: Order,
) -> Vec<Task<'p>> {
    let mut tasks = Vec::new();
    for id in ids {
        if let Some(cell) = cell_at(cells, id.cell) {
            tasks.push(Task { id, cell, reruns: 0, max_other_runs: u64::MAX });
        }
    }
    match order {
        Order::ByCell => {}
        Order::InTurns(seed) => tasks.sort_by_cached_key(|task| {
            let PartId { cell, repetition } = task.id;
            (repetition, seed.repetition(repetition).stream(&format!("turn/{cell}")).bits())
        }),
        // The sort is stable, so the repetitions of one cell stay together.
        Order::LongestFirst => tasks.sort_by_key(|task| Reverse(task.cell.path_time())),
    }
    tasks
}
