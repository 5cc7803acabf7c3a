//! Runs of the emulated arena, one at a time, each replayed.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test program uses a part of this")]
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

#[path = "../../../live/tests/support/quiet.rs"]
pub mod quiet;
#[path = "../../../live/tests/support/shared.rs"]
pub mod shared;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talkpath_arena::{Arena, ArenaError};
use talkpath_emu::{EmuArena, EmuReport, replay};
use talkpath_kernel::keep_awake::KeepAwake;
use talkpath_measure::{DropCause, Fate, FlowRecord, LegRecord, LinkRecord, RunRecord};
use talkpath_scenario::{Options, Scenario, Source, load};

use quiet::skip;
use shared::plan;

/// What a run leaves.
pub struct Ran {
    pub record: RunRecord,
    pub report: EmuReport,
    pub log: Vec<u8>,
    pub scenario: Scenario,
}

impl Ran {
    pub fn link(&self, name: &str) -> &LinkRecord {
        self.record.links.iter().find(|link| link.name == name).expect("the link has a record")
    }

    pub fn flow(&self, name: &str) -> &FlowRecord {
        self.record.flows.iter().find(|flow| flow.info.name == name).expect("the flow has a record")
    }
}

/// Messages of `leg` that ended so.
pub fn count(leg: &LegRecord, fate: Fate, cause: Option<DropCause>) -> usize {
    leg.messages.iter().filter(|row| row.fate == fate && row.drop_cause == cause).count()
}

/// One run at a time: they would disturb each other's timing.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn scenario(text: &str) -> Scenario {
    let source = Source::new("test.toml", text);
    let plan = load(&source, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    plan.cells.into_iter().next().expect("a scenario has a cell").scenario
}

/// Runs the only cell of `text` and replays its log; `None` where the machine does not allow it, which is
/// printed.
pub fn run(text: &str) -> Option<Ran> {
    let _alone = alone();
    let _awake = KeepAwake::begin();
    let mut arena = match EmuArena::open() {
        Ok(arena) => arena,
        Err(why @ ArenaError::Unavailable { .. }) => {
            skip(why);
            return None;
        }
        Err(why) => panic!("{why}"),
    };
    let scenario = scenario(text);
    let interrupt = AtomicBool::new(false);
    let record = arena.run(&scenario, plan(&interrupt, &|_| {})).unwrap_or_else(|why| panic!("{why}"));
    let log = arena.take_arrival_log().expect("every run has a log");
    let report = arena.report().expect("every run has a report").clone();
    eprintln!("{report}; {:?}", record.warnings);
    let replayed = replay(&log, &scenario).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(replayed.arrivals, report.packets, "every packet is in the log");
    Some(Ran { record, report, log, scenario })
}
