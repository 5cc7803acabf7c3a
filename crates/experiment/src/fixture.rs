//! Plans, arenas and observers for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, Mutex};

use talkpath_arena::{Arena, ArenaError, RunPlan};
use talkpath_fixtures::call_record;
use talkpath_measure::summary::Summary;
use talkpath_measure::{MachineRecord, RunRecord, warning};
use talkpath_scenario::{Options, Plan, Scenario, Source, load};

use crate::Error;
use crate::findings::{Findings, FinishedRun};
use crate::observer::{Event, Observer};
use crate::place::{Connect, Place, Worker};
use crate::run_dir::PartId;

/// Returns a plan for a call over a fast path. `keys_before_flow` are more lines of the scenario.
pub(crate) fn plan(keys_before_flow: &str) -> Plan {
    let text = format!(
        "name = \"a\"\nduration = \"1 s\"\npath = \"lan\"\n{keys_before_flow}\n[flow.call]\ntransport = \"udp\"\n\
         workload = {{ kind = \"voice\" }}\n"
    );
    load(&Source::new("a.toml", text), &Options::default()).unwrap()
}

/// Arenas whose workers a function makes. It is called with the number of threads.
pub(crate) struct TestArenas<'a>(pub(crate) &'a (dyn Fn(usize) -> Vec<Worker> + Sync));

/// Arenas without workers.
pub(crate) static NO_ARENAS: TestArenas<'static> = TestArenas(&|_| Vec::new());

impl Connect for TestArenas<'_> {
    fn connect(&self, _: &Place, jobs: usize) -> Result<Vec<Worker>, Error> {
        Ok((self.0)(jobs))
    }

    fn revision(&self) -> Option<String> {
        None
    }
}

/// An observer that ignores all events.
pub(crate) struct Silent;

impl Observer for Silent {
    fn observe(&self, _: Event<'_>) {}
}

/// Findings that judge nothing. Their page names the repetitions that it would draw.
pub(crate) struct NoFindings;

impl Findings for NoFindings {
    fn judge(&self, _: &Plan, _: &mut Summary) {}

    fn page(&self, run: &FinishedRun<'_>) -> String {
        run.chart_data.iter().map(|data| format!("{}-{} ", data.cell, data.repetition)).collect()
    }
}

/// Returns the record of a call of so many milliseconds. It has a message every 20 ms, and every seventh
/// message is missing.
pub(crate) fn record(ms: u64) -> RunRecord {
    call_record(ms, 7)
}

/// Returns the record of a repetition of 1 s, as an arena in real time makes it.
pub(crate) fn record_of(id: PartId, is_disturbed: bool) -> RunRecord {
    let mut record = record(1_000);
    (record.cell, record.repetition) = (id.cell, id.repetition);
    record.machine = Some(MachineRecord::default());
    record.valid = !is_disturbed;
    if is_disturbed {
        record.warnings.push(warning::invalid("the senders were late"));
    }
    record
}

/// A machine that disturbs chosen repetitions.
#[derive(Default)]
pub(crate) struct Machine {
    /// How many more times the machine disturbs a repetition.
    pub(crate) disturbs: Mutex<BTreeMap<PartId, u64>>,
    /// The repetition that the user interrupts, and in which of its attempts, counted from 1.
    pub(crate) stopped: Option<(PartId, usize)>,
    /// The cells that the machine does not support.
    pub(crate) unsupported: BTreeSet<u64>,
    /// The repetitions that ran, in order.
    pub(crate) ran: Mutex<Vec<PartId>>,
    /// Each run waits here for the others, if there is a barrier.
    pub(crate) meeting: Option<Barrier>,
}

impl Machine {
    pub(crate) fn disturbing<const N: usize>(disturbs: [(PartId, u64); N]) -> Self {
        Self { disturbs: Mutex::new(disturbs.into()), ..Self::default() }
    }

    pub(crate) fn workers(self: &Arc<Self>) -> impl Fn(usize) -> Vec<Worker> + Sync + use<> {
        let machine = Arc::clone(self);
        move |count| (0..count).map(|_| Box::new(OnMachine(Arc::clone(&machine))) as Worker).collect()
    }

    pub(crate) fn ran(&self) -> Vec<PartId> {
        self.ran.lock().unwrap().clone()
    }
}

struct OnMachine(Arc<Machine>);

impl Arena for OnMachine {
    fn run(&mut self, _: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError> {
        let (id, machine) = (at(plan.cell, plan.repetition), &self.0);
        if let Some(meeting) = &machine.meeting {
            meeting.wait();
        }
        let mut ran = machine.ran.lock().unwrap();
        ran.push(id);
        if machine.unsupported.contains(&id.cell) {
            return Err(ArenaError::Unsupported("it has no such congestion control".to_owned()));
        }
        if machine.stopped == Some((id, ran.iter().filter(|attempt| **attempt == id).count())) {
            plan.interrupt.store(true, Ordering::Relaxed);
            return Err(ArenaError::Interrupted { partial: Some(Box::new(record_of(id, true))) });
        }
        let mut disturbs = machine.disturbs.lock().unwrap();
        let remaining = disturbs.entry(id).or_default();
        let is_disturbed = *remaining > 0;
        *remaining = remaining.saturating_sub(1);
        Ok(record_of(id, is_disturbed))
    }
}

pub(crate) const fn at(cell: u64, repetition: u64) -> PartId {
    PartId { cell, repetition }
}
