//! A part of a run: some of the repetitions of some of its cells, for one of several machines.
//!
//! ```text
//! Plan ─► Division into N parts ─► run --shard 1/N ─► folder ┐
//!                                  run --shard 2/N ─► folder ┴► merge ─► the run of one machine
//! ```
//!
//! Which repetition lies in which part follows from the plan and N alone, so machines need not talk to each
//! other. A run of one machine is part 1 of 1.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use talkpath_scenario::Plan;

use crate::run_dir::PartId;

/// Some parts of a run that is divided: those from `first` to `last`, counted from 1, of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The first part, from 1.
    pub first: u64,
    /// The last one, itself included.
    pub last: u64,
    /// How many parts there are in all.
    pub of: u64,
}

impl Shard {
    /// Whether it is all there is.
    pub fn is_whole(self) -> bool {
        (self.first, self.last) == (1, self.of)
    }

    /// Whether part `number` belongs to it.
    pub fn holds(self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// As a word of a directory's name: `2-of-4`.
    pub fn for_file_name(self) -> String {
        self.to_string().replace('/', "-of-")
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}/{}", self.first, self.of),
            false => write!(f, "{}-{}/{}", self.first, self.last, self.of),
        }
    }
}

impl FromStr for Shard {
    type Err = String;

    /// `I/N`, or `I-J/N` for several parts that follow each other.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected I/N with 1 <= I <= N <= {MOST_PARTS}, as in 2/4, or I-J/N");
        let (parts, of) = text.split_once('/').ok_or_else(wrong)?;
        let (first, last) = parts.split_once('-').unwrap_or((parts, parts));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let shard = Self { first: number(first)?, last: number(last)?, of: number(of)? };
        let is_sound = 1 <= shard.first && shard.first <= shard.last && shard.last <= shard.of;
        if is_sound && shard.of <= MOST_PARTS { Ok(shard) } else { Err(wrong()) }
    }
}

/// Which part each repetition belongs to.
pub struct Division {
    repeat: u64,
    /// By cell and then by repetition.
    parts: Vec<u64>,
}

impl Division {
    /// Divides `plan` into `of` parts of about the same cost: the dearest repetition first, each to the part
    /// that has cost least so far (Graham's LPT rule, 1969). Repetitions of the same cost come in an order
    /// that is drawn from the plan's seed, so that no part has one value of a swept key alone.
    pub fn new(plan: &Plan, of: u64) -> Self {
        let repeat = plan.repeat;
        let mut tasks = Vec::new();
        for (at, cell) in (0_u64..).zip(&plan.cells) {
            let cost = cell.scenario.cost();
            for repetition in 0..repeat {
                let mut order = plan.seed.repetition(repetition).stream(&format!("shard/{}", cell.index));
                tasks.push((Reverse(cost), order.bits(), at * repeat + repetition));
            }
        }
        tasks.sort_unstable();
        let mut parts = vec![1; tasks.len()];
        // No more parts than repetitions can hold anything.
        let used = of.min(tasks.len() as u64);
        let mut loads: BinaryHeap<_> = (1..=used).map(|part| Reverse((0_u64, part))).collect();
        for (Reverse(cost), _, task) in tasks {
            let Some(Reverse((load, part))) = loads.pop() else { break };
            if let Some(place) = usize::try_from(task).ok().and_then(|task| parts.get_mut(task)) {
                *place = part;
            }
            loads.push(Reverse((load.saturating_add(cost), part)));
        }
        Self { repeat, parts }
    }

    /// The part of a repetition; the first if the plan has no such one.
    pub fn part(&self, id: PartId) -> u64 {
        let at = id.cell.checked_mul(self.repeat).and_then(|at| at.checked_add(id.repetition));
        at.and_then(|at| usize::try_from(at).ok()).and_then(|at| self.parts.get(at)).copied().unwrap_or(1)
    }
}

/// Chosen: more than any cluster has, few enough to hold in memory.
const MOST_PARTS: u64 = 1_000_000;

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
    fn a_part_is_written_as_it_is_read() {
        for text in ["1/1", "2/4", "2-3/4", "1-4/4"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/4", "5/4", "3-2/4", "2-5/4", "a/4", "1/0", "1/1000001", "-1/4"] {
            assert!(text.parse::<Shard>().unwrap_err().contains("as in 2/4"), "{text}");
        }
        assert!("1/1".parse::<Shard>().unwrap().is_whole() && "1-4/4".parse::<Shard>().unwrap().is_whole());
        assert!(!"2/4".parse::<Shard>().unwrap().is_whole());
    }

    #[test]
    fn every_repetition_lies_in_one_part_and_parts_cost_alike() {
        let plan = plan(5);
        for of in [1_u64, 2, 3, 7] {
            let division = Division::new(&plan, of);
            let mut costs = vec![0; usize::try_from(of).unwrap()];
            for cell in &plan.cells {
                for repetition in 0..5 {
                    let part = division.part(PartId { cell: cell.index, repetition });
                    costs[usize::try_from(part - 1).unwrap()] += cell.scenario.cost();
                }
            }
            let (least, most) = (*costs.iter().min().unwrap(), *costs.iter().max().unwrap());
            // LPT: no part is longer than the shortest by more than one repetition.
            let dearest = plan.cells.iter().map(|cell| cell.scenario.cost()).max().unwrap();
            assert!(least > 0 && most - least <= dearest, "{of}: {costs:?}");
        }
    }

    #[test]
    fn no_part_has_one_value_of_a_swept_key_alone() {
        let plan = plan(8);
        let division = Division::new(&plan, 4);
        for part in 1..=4 {
            let mut losses: Vec<_> = plan
                .cells
                .iter()
                .filter(|cell| {
                    (0..8).any(|repetition| division.part(PartId { cell: cell.index, repetition }) == part)
                })
                .map(|cell| cell.index % 4)
                .collect();
            losses.sort_unstable();
            losses.dedup();
            assert_eq!(losses, [0, 1, 2, 3], "part {part}");
        }
    }

    #[test]
    fn parts_without_a_repetition_are_allowed() {
        let division = Division::new(&plan(1), 100);
        let mut parts: Vec<_> = (0..12).map(|cell| division.part(PartId { cell, repetition: 0 })).collect();
        parts.sort_unstable();
        assert_eq!(parts, (1..=12).collect::<Vec<_>>());
    }
}
