//! Runs of the emulated arena, each replayed: beside each other, or alone where a test judges delays below a
//! millisecond.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test program uses a part of this")]
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

#[path = "../../../live/tests/support/quiet.rs"]
pub mod quiet;
#[path = "../../../live/tests/support/shared.rs"]
pub mod shared;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use talkpath_arena::{Arena, ArenaError};
use talkpath_emu::{EmuArena, EmuReport, replay};
use talkpath_kernel::keep_awake::KeepAwake;
use talkpath_measure::{DropCause, Fate, FlowRecord, LegRecord, LinkRecord, RunRecord};
use talkpath_model::Scenario;
use talkpath_scenario::{Options, Source, load};
use talkpath_wire::machine::Machines;

use quiet::{skip, undisturbed};
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

/// Held by the runs that may be beside each other, and by who has to be alone.
static RUNS: RwLock<()> = RwLock::new(());

/// No other run of this program meanwhile: it would delay a thread, or be seen among the machine's devices.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    RUNS.write().unwrap_or_else(PoisonError::into_inner)
}

/// A run beside others: each has its own namespaces, and takes a tenth of a processor.
pub fn beside() -> RwLockReadGuard<'static, ()> {
    RUNS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the processors awake. Runs beside each other share it: one spinning thread for each processor is
/// enough.
fn awake() -> Option<Arc<KeepAwake>> {
    static SHARED: Mutex<Weak<KeepAwake>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(awake) = shared.upgrade() {
        return Some(awake);
    }
    let awake = Arc::new(KeepAwake::begin().ok()?);
    *shared = Arc::downgrade(&awake);
    Some(awake)
}

pub fn scenario(text: &str) -> Scenario {
    let source = Source::new("test.toml", text);
    let plan = load(&source, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    plan.cells.into_iter().next().expect("a scenario has a cell").scenario
}

/// Runs the only cell of `text` beside other runs and replays its log; `None` where the machine does not
/// allow it, which is printed.
pub fn run(text: &str) -> Option<Ran> {
    run_scenario(scenario(text))
}

/// Runs `scenario` in the same manner.
pub fn run_scenario(scenario: Scenario) -> Option<Ran> {
    let _beside = beside();
    run_now(scenario)
}

/// The same with no other run beside it.
pub fn run_alone(text: &str) -> Option<Ran> {
    let _alone = alone();
    run_now(scenario(text))
}

/// Runs the only cell of `text` beside other runs, and judges the run as [`undisturbed`] does.
pub fn judge_run(text: &str, judge: impl Fn(&Ran)) {
    undisturbed(|| run(text).iter().for_each(&judge));
}

/// Does the same with no other run beside it.
pub fn judge_lone_run(text: &str, judge: impl Fn(&Ran)) {
    undisturbed(|| run_alone(text).iter().for_each(&judge));
}

fn run_now(scenario: Scenario) -> Option<Ran> {
    let _awake = awake();
    let mut arena = match EmuArena::open() {
        Ok(arena) => arena.with_machines(Machines::made_by(talkpath_transport::new_machine)),
        Err(why @ ArenaError::Unavailable { .. }) => {
            skip(why);
            return None;
        }
        Err(why) => panic!("{why}"),
    };
    let interrupt = AtomicBool::new(false);
    let record = arena.run(&scenario, plan(&interrupt, &|_| {})).unwrap_or_else(|why| panic!("{why}"));
    let log = arena.take_arrival_log().expect("every run has a log");
    let report = arena.report().expect("every run has a report").clone();
    eprintln!("{report}; {:?}", record.warnings);
    let replayed = replay(&log, &scenario).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(replayed.arrivals, report.packets, "every packet is in the log");
    Some(Ran { record, report, log, scenario })
}
