//! Which repetitions are to run, and in which order.

use talkpath_scenario::{Cell, Plan};

use crate::run_dir::PartId;
use crate::shard::{Division, Shard};

/// A repetition to run.
pub(crate) struct Task<'p> {
    pub(crate) id: PartId,
    pub(crate) cell: &'p Cell,
    /// How often it runs again, this time included: 0 the first time.
    pub(crate) ran_again: u64,
    /// Beside how many others at most it may run.
    pub(crate) most_others: u64,
}

/// The repetitions of a part of `plan`, or of all of it, in the plan's order.
pub(crate) fn ids(plan: &Plan, shard: Option<Shard>) -> Vec<PartId> {
    let id = |cell: u64| move |repetition: u64| PartId { cell, repetition };
    let ids = plan.cells.iter().flat_map(|cell| (0..plan.repeat).map(id(cell.index)));
    match shard.filter(|shard| !shard.is_whole()) {
        None => ids.collect(),
        Some(shard) => {
            let division = Division::new(plan, shard.of);
            ids.filter(|&id| shard.holds(division.part(id))).collect()
        }
    }
}

/// The repetitions `ids` of `plan` as tasks, in this order. If the cells take turns, each repetition has them
/// in an order that is drawn from the plan's seed.
pub(crate) fn in_turn(plan: &Plan, ids: impl Iterator<Item = PartId>, takes_turns: bool) -> Vec<Task<'_>> {
    let task = |id: PartId| {
        let cell = plan.cell(id.cell)?;
        Some(Task { id, cell, ran_again: 0, most_others: u64::MAX })
    };
    let mut tasks: Vec<_> = ids.filter_map(task).collect();
    if takes_turns {
        let turn = |id: PartId| {
            let mut order = plan.seed.repetition(id.repetition).stream(&format!("turn/{}", id.cell));
            (id.repetition, order.bits())
        };
        tasks.sort_by_cached_key(|task| turn(task.id));
    }
    tasks
}
