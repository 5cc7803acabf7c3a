//! Shards: a run that is divided among several machines.
//!
//! ```text
//! Plan ─► ShardAssignment ─► run --shard 1/2 ─► folder ┐
//!                            run --shard 2/2 ─► folder ┴► merge ─► the run that one machine would make
//! ```
//!
//! A *shard* holds some of the repetitions of a plan. Which repetitions it holds depends on the plan and on
//! the number of shards only, so the machines need not talk to each other. A run on one machine is shard 1 of
//! 1.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use talkpath_scenario::{Cell, Plan};

use crate::run_dir::PartId;

/// The largest number of shards. We chose a number that is above the size of any cluster, and for which a
/// list of all shards still fits into memory.
const MAX_SHARDS: u64 = 1_000_000;

/// The shards that one machine runs: one of them, or several that follow each other. The user writes `2/4` or
/// `2-3/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of the first shard. The numbers begin with 1.
    pub first: u64,
    /// The number of the last shard, which is included.
    pub last: u64,
    /// The number of shards into which the run is divided.
    pub total: u64,
}

impl Shard {
    /// Returns whether all shards are included, so that one machine runs everything.
    pub fn is_whole_run(self) -> bool {
        self.first == 1 && self.last == self.total
    }

    /// Returns whether the shard with this `number` is included.
    pub fn contains(self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// Returns the shards as a part of the name of a directory: `2-of-4`.
    pub fn for_file_name(self) -> String {
        self.to_string().replace('/', "-of-")
    }

    fn is_valid(self) -> bool {
        1 <= self.first && self.first <= self.last && self.last <= self.total && self.total <= MAX_SHARDS
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, total } = self;
        if first == last { write!(f, "{first}/{total}") } else { write!(f, "{first}-{last}/{total}") }
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Parses `I/N`, or `I-J/N` for the shards from I to J.
    fn from_str(text: &str) -> Result<Self, String> {
        parse_shard(text)
            .filter(|shard| shard.is_valid())
            .ok_or_else(|| format!("expected I/N with 1 <= I <= N <= {MAX_SHARDS}, as in 2/4, or I-J/N"))
    }
}

fn parse_shard(text: &str) -> Option<Shard> {
    let (numbers, total) = text.split_once('/')?;
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let number = |text: &str| text.trim().parse::<u64>().ok();
    Some(Shard { first: number(first)?, last: number(last)?, total: number(total)? })
}

/// The number of the shard that each repetition of a plan belongs to.
pub struct ShardAssignment {
    repeat: u64,
    /// The numbers of the shards, from 1. All repetitions of the first cell come first.
    shards: Vec<u64>,
}

/// A repetition that has no shard yet.
///
/// The order of the fields is the order in which repetitions are assigned: the one that costs most comes
/// first. The `position` decides only if two random numbers are the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Unassigned {
    cost: Reverse<u64>,
    /// Repetitions of the same cost come in random order. Otherwise one shard could get all repetitions with
    /// the same value of a swept key.
    random: u64,
    /// The index in [`ShardAssignment::shards`].
    position: usize,
}

/// The work of one shard so far. The shard with the lowest cost compares as the least, and of several the one
/// with the lowest number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ShardLoad {
    cost: u64,
    number: u64,
}

impl ShardAssignment {
    /// Divides `plan` into `total` shards of about the same cost. The repetition that costs most is assigned
    /// first, and each repetition goes to the shard with the lowest cost so far (Graham's LPT rule, 1969).
    pub fn new(plan: &Plan, total: u64) -> Self {
        let unassigned = repetitions_by_cost(plan);
        // The shards beyond the number of repetitions stay empty, so they need no load.
        let used_shards = total.min(unassigned.len() as u64);
        let mut loads: BinaryHeap<Reverse<ShardLoad>> =
            (1..=used_shards).map(|number| Reverse(ShardLoad { cost: 0, number })).collect();
        let mut shards = vec![1; unassigned.len()];
        for Unassigned { cost: Reverse(cost), position, .. } in unassigned {
            // The heap returns the largest item, which is the lowest cost because of `Reverse`.
            let Some(Reverse(mut load)) = loads.pop() else { break };
            shards[position] = load.number;
            load.cost = load.cost.saturating_add(cost);
            loads.push(Reverse(load));
        }
        Self { repeat: plan.repeat, shards }
    }

    /// Returns the number of the shard that a repetition belongs to. Returns 1 if the plan does not have the
    /// repetition.
    pub fn shard_of(&self, id: PartId) -> u64 {
        self.position(id).and_then(|position| self.shards.get(position)).copied().unwrap_or(1)
    }

    fn position(&self, id: PartId) -> Option<usize> {
        let position = id.cell.checked_mul(self.repeat)?.checked_add(id.repetition)?;
        usize::try_from(position).ok()
    }
}

/// Returns all repetitions of `plan` in the order in which they are assigned.
fn repetitions_by_cost(plan: &Plan) -> Vec<Unassigned> {
    let mut repetitions = Vec::new();
    for cell in &plan.cells {
        let cost = Reverse(cell.scenario.cost());
        for repetition in 0..plan.repeat {
            let position = repetitions.len();
            repetitions.push(Unassigned { cost, random: random_number(plan, cell, repetition), position });
        }
    }
    repetitions.sort_unstable();
    repetitions
}

/// Returns a random number that depends on the seed of the plan and on the repetition.
fn random_number(plan: &Plan, cell: &Cell, repetition: u64) -> u64 {
    plan.seed.repetition(repetition).stream(&format!("shard/{}", cell.index)).bits()
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    fn plan(repeat: u64) -> Plan {
        let text = "duration = \"1 s\"\npath = \"lan\"\n\
            [flow.call]\ntransport = \"udp\"\nworkload = { kind = \"voice\" }\n\
            [sweep]\nduration = [\"1 s\", \"2 s\", \"9 s\"]\n\"path.up.loss\" = [0.0, 0.1, 0.2, 0.3]\n";
        load(&Source::new("x.toml", text), &Options { repeat: Some(repeat), ..Options::default() }).unwrap()
    }

    #[test]
    fn a_shard_is_written_as_it_is_parsed() {
        for text in ["1/1", "2/4", "2-3/4", "1-4/4"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/4", "5/4", "3-2/4", "2-5/4", "a/4", "1/0", "1/1000001", "-1/4"] {
            assert!(text.parse::<Shard>().unwrap_err().contains("as in 2/4"), "{text}");
        }
        assert!("1/1".parse::<Shard>().unwrap().is_whole_run());
        assert!("1-4/4".parse::<Shard>().unwrap().is_whole_run());
        assert!(!"2/4".parse::<Shard>().unwrap().is_whole_run());
    }

    #[test]
    fn every_repetition_is_in_one_shard_and_shards_have_about_the_same_cost() {
        let plan = plan(5);
        for total in [1_u64, 2, 3, 7] {
            let assignment = ShardAssignment::new(&plan, total);
            let mut costs = vec![0; usize::try_from(total).unwrap()];
            for cell in &plan.cells {
                for repetition in 0..5 {
                    let shard = assignment.shard_of(PartId { cell: cell.index, repetition });
                    costs[usize::try_from(shard - 1).unwrap()] += cell.scenario.cost();
                }
            }
            let (lowest, highest) = (*costs.iter().min().unwrap(), *costs.iter().max().unwrap());
            // LPT: a shard costs at most one repetition more than the cheapest shard.
            let one_repetition = plan.cells.iter().map(|cell| cell.scenario.cost()).max().unwrap();
            assert!(lowest > 0 && highest - lowest <= one_repetition, "{total}: {costs:?}");
        }
    }

    #[test]
    fn no_shard_has_only_one_value_of_a_swept_key() {
        let plan = plan(8);
        let assignment = ShardAssignment::new(&plan, 4);
        for shard in 1..=4 {
            let is_in_shard = |cell, repetition| assignment.shard_of(PartId { cell, repetition }) == shard;
            let cells = plan.cells.iter().map(|cell| cell.index);
            let mut losses: Vec<u64> = cells
                .filter(|&cell| (0..8).any(|repetition| is_in_shard(cell, repetition)))
                .map(|cell| cell % 4)
                .collect();
            losses.sort_unstable();
            losses.dedup();
            assert_eq!(losses, [0, 1, 2, 3], "shard {shard}");
        }
    }

    #[test]
    fn shards_without_a_repetition_are_allowed() {
        let assignment = ShardAssignment::new(&plan(1), 100);
        let mut shards: Vec<u64> =
            (0..12).map(|cell| assignment.shard_of(PartId { cell, repetition: 0 })).collect();
        shards.sort_unstable();
        assert_eq!(shards, (1..=12).collect::<Vec<_>>());
    }
}
