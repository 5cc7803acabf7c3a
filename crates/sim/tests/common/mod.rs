//! Runs scenarios from their text.

use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_scenario::{Options, Source, load};
use talkpath_sim::SimArena;

/// The record of repetition 0 of every cell.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn run_cells(text: &str) -> Vec<RunRecord> {
    run_each(text, true)
}

fn run_each(text: &str, rows: bool) -> Vec<RunRecord> {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let plan = load(&source, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    plan.cells
        .iter()
        .map(|cell| {
            let run = RunPlan {
                cell: cell.index,
                repetition: 0,
                seed: plan.seed,
                series: true,
                rows,
                interrupt: &AtomicBool::new(false),
                progress: &|_| {},
            };
            SimArena::new().run(&cell.scenario, run).expect("the simulator can run it")
        })
        .collect()
}

/// The record of the only cell.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn run(text: &str) -> RunRecord {
    only(run_each(text, true))
}

/// The same without a row a message.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn run_without_rows(text: &str) -> RunRecord {
    only(run_each(text, false))
}

fn only(mut records: Vec<RunRecord>) -> RunRecord {
    assert_eq!(records.len(), 1);
    records.remove(0)
}
