//! Runs scenarios from their text.

use std::fmt::{self, Write as _};
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

/// Two numbers that change when anything in the records of the scenario does: with every row and series, and
/// without rows.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn digests(text: &str) -> [u64; 2] {
    [true, false].map(|rows| {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        write!(digest, "{:?}", run_each(text, rows)).expect("a digest takes all text");
        digest.0
    })
}

/// FNV-1a, 64 bits, of the text that is written to it.
struct Digest(u64);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.0 = text.bytes().fold(self.0, fold);
        Ok(())
    }
}

fn only(mut records: Vec<RunRecord>) -> RunRecord {
    assert_eq!(records.len(), 1);
    records.remove(0)
}
