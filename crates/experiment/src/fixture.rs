//! Plans, arenas and listeners for tests.

use talkpath_fixtures::call_record;
use talkpath_measure::RunRecord;
use talkpath_measure::summary::Summary;
use talkpath_scenario::{Options, Plan, Source, load};

use crate::Error;
use crate::findings::{Findings, FinishedRun};
use crate::observer::{Event, Observer};
use crate::place::{Connect, Place, Worker};

/// A call over a fast path; `more` stands before its flow.
pub(crate) fn plan(more: &str) -> Plan {
    let text = format!(
        "name = \"a\"\nduration = \"1 s\"\npath = \"lan\"\n{more}\n[flow.call]\ntransport = \"udp\"\n\
         workload = {{ kind = \"voice\" }}\n"
    );
    load(&Source::new("a.toml", text), &Options::default()).unwrap()
}

/// The workers that a function makes for a number of threads.
pub(crate) struct TestArenas<'a>(pub(crate) &'a (dyn Fn(usize) -> Vec<Worker> + Sync));

/// Connects to nothing.
pub(crate) static NO_ARENAS: TestArenas<'static> = TestArenas(&|_| Vec::new());

impl Connect for TestArenas<'_> {
    fn connect(&self, _: &Place, jobs: usize) -> Result<Vec<Worker>, Error> {
        Ok((self.0)(jobs))
    }

    fn revision(&self) -> Option<String> {
        None
    }
}

/// Nobody listens.
pub(crate) struct Silent;

impl Observer for Silent {
    fn observe(&self, _: Event<'_>) {}
}

/// Nothing is found, and the page names the repetitions that it would draw.
pub(crate) struct NoFindings;

impl Findings for NoFindings {
    fn judge(&self, _: &Plan, _: &mut Summary) {}

    fn page(&self, run: &FinishedRun<'_>) -> String {
        run.figures.iter().map(|drawn| format!("{}-{} ", drawn.cell, drawn.repetition)).collect()
    }
}

/// A repetition of a call of this many milliseconds: a message every 20 ms, of which every seventh is
/// missing.
pub(crate) fn record(ms: u64) -> RunRecord {
    call_record(ms, 7)
}
