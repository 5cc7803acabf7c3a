//! What is to run, cell by cell, and in which order.

use std::cmp::Reverse;

use talkpath_scenario::{Cell, Plan, Scenario};
use talkpath_units::{Duration, Seed};

use crate::run_dir::PartId;

/// A cell as it runs, with a number of repetitions and a fingerprint of its own. The cells of a [`Plan`] have
/// both in common; those of a study differ in both.
#[derive(Clone, Copy, Debug)]
pub struct CellPlan<'p> {
    /// Which.
    pub index: u64,
    /// What runs.
    pub scenario: &'p Scenario,
    /// How often, each time with a seed of its own.
    pub repetitions: u64,
    /// Distinguishes what runs from what ran before somebody edited it: only what was kept with this
    /// fingerprint counts.
    pub fingerprint: &'p str,
}

/// In which order repetitions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Cell by cell.
    ByCell,
    /// Repetition by repetition. Each has the cells in an order that is drawn from this seed: what a network
    /// does for a while then falls on all of them.
    InTurns(Seed),
    /// Cell by cell, those that take longest first: the short ones at the end fill what is left of the time.
    LongestFirst,
}

/// A repetition to run.
#[derive(Clone, Copy)]
pub(crate) struct Task<'p> {
    pub(crate) id: PartId,
    pub(crate) cell: CellPlan<'p>,
    /// How often it runs again, this time included: 0 the first time.
    pub(crate) ran_again: u64,
    /// Beside how many others at most it may run.
    pub(crate) most_others: u64,
}

impl<'p> CellPlan<'p> {
    /// The cells of `plan`. A run directory holds repetitions of one plan alone, so that all cells have the
    /// fingerprint [`ONE_PLAN`].
    pub fn all_of(plan: &'p Plan) -> Vec<Self> {
        let cell = |cell: &'p Cell| Self {
            index: cell.index,
            scenario: &cell.scenario,
            repetitions: plan.repeat,
            fingerprint: ONE_PLAN,
        };
        plan.cells.iter().map(cell).collect()
    }

    /// Its repetitions, in order.
    pub(crate) fn ids(self) -> impl Iterator<Item = PartId> {
        (0..self.repetitions).map(move |repetition| PartId { cell: self.index, repetition })
    }

    /// What all its repetitions take by their scenario.
    pub(crate) fn path_time(self) -> Duration {
        self.scenario.duration.saturating_mul(self.repetitions)
    }
}

/// The cell of `cells` with this `index`; they are in the order of their indices.
pub(crate) fn cell_at<'p>(cells: &[CellPlan<'p>], index: u64) -> Option<CellPlan<'p>> {
    let at = cells.binary_search_by_key(&index, |cell| cell.index).ok()?;
    cells.get(at).copied()
}

/// The repetitions `ids` of `cells` as tasks, in this `order`.
pub(crate) fn in_order<'p>(
    cells: &[CellPlan<'p>],
    ids: impl Iterator<Item = PartId>,
    order: Order,
) -> Vec<Task<'p>> {
    let task =
        |id: PartId| Some(Task { id, cell: cell_at(cells, id.cell)?, ran_again: 0, most_others: u64::MAX });
    let mut tasks: Vec<_> = ids.filter_map(task).collect();
    match order {
        Order::ByCell => {}
        Order::InTurns(seed) => tasks.sort_by_cached_key(|task| {
            let PartId { cell, repetition } = task.id;
            (repetition, seed.repetition(repetition).stream(&format!("turn/{cell}")).bits())
        }),
        // Stable: of cells that take equally long each stays whole.
        Order::LongestFirst => tasks.sort_by_key(|task| Reverse(task.cell.path_time())),
    }
    tasks
}

/// The fingerprint of all cells where a directory holds repetitions of one plan alone.
pub const ONE_PLAN: &str = "";
