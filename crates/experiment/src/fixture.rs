//! Plans, records, arenas and listeners for tests.

use talkpath_measure::summary::Summary;
use talkpath_measure::{Fate, FlowInfo, FlowRecord, LegRecord, MessageRecord, RunRecord};
use talkpath_scenario::{Options, Plan, Source, load};
use talkpath_units::{Bytes, Duration, Instant};

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
    let message = |seq: u64| {
        let due = Instant::from_millis(20 * seq);
        let is_lost = seq % 7 == 6;
        MessageRecord {
            seq,
            size: Bytes::new(160),
            due,
            sent: Some(due),
            wire: None,
            received: (!is_lost).then(|| Instant::from_millis(20 * seq + 3)),
            fate: if is_lost { Fate::Missing } else { Fate::Delivered },
            drop_cause: None,
            copies: u32::from(!is_lost),
            transmissions: 0,
        }
    };
    let messages: Vec<_> = (0..ms.div_ceil(20)).map(message).collect();
    let arrivals = messages.iter().filter(|row| row.copies > 0).map(|row| row.seq).collect();
    let forward = LegRecord { messages, arrivals, ..LegRecord::default() };
    RunRecord {
        window_end: Instant::ZERO.saturating_add(Duration::from_millis(ms)),
        flows: vec![FlowRecord { forward, ..FlowRecord::new(FlowInfo::on_a_clock("call")) }],
        valid: true,
        ..RunRecord::default()
    }
}
