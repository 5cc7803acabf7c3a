//! Runs scenarios from their text.

use std::fmt::{self, Write as _};
use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena, RunPlan};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{RunRecord, SeriesKind};
use talkpath_scenario::{Options, Source, load};
use talkpath_sim::SimArena;

/// The record of repetition 0 of every cell.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn run_cells(text: &str) -> Vec<RunRecord> {
    run_each(text, true)
}

fn run_each(text: &str, rows: bool) -> Vec<RunRecord> {
    let source = Source::new("test.toml", text);
    let plan = load(&source, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    plan.cells
        .iter()
        .map(|cell| {
            let run = RunPlan {
                cell: cell.index,
                repetition: 0,
                seed: plan.seed,
                series: Some(SeriesDetail::Full),
                rows,
                interrupt: &AtomicBool::new(false),
                progress: &|_| {},
            };
            SimArena::new().run(&cell.scenario, run).expect("the simulator can run it")
        })
        .collect()
}

/// Why the simulator does not run the only cell.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn refusal(text: &str) -> String {
    let plan = load(&Source::new("test.toml", text), &Options::default());
    let plan = plan.unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let run = RunPlan {
        cell: 0,
        repetition: 0,
        seed: plan.seed,
        series: None,
        rows: true,
        interrupt: &AtomicBool::new(false),
        progress: &|_| {},
    };
    SimArena::new().run(&plan.cells[0].scenario, run).expect_err("a refusal").to_string()
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
/// without rows. What links record of their queues' delay, drops and marks, and flows of their marks, is not
/// in them, but in [`link_digest`]: they are older. When connections opened has tests of its own.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn digests(text: &str) -> [u64; 2] {
    [true, false].map(|rows| {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        let mut records = run_each(text, rows);
        let mut links = Vec::new();
        for record in &mut records {
            record.series.retain(|series| series.kind != SeriesKind::QueueDelay);
            for flow in &mut record.flows {
                (flow.ecn, flow.counters.opening) = (None, None);
                // How a call is rated is no part of what happened.
                if let Some(call) = &mut flow.info.terms.call {
                    (call.is_concealed, call.other_wait) = (false, None);
                }
            }
            let taken = core::mem::take(&mut record.links);
            links.push(format!("{:?}", taken.into_iter().map(LinkRecord::from).collect::<Vec<_>>()));
        }
        let records = without_call_counters(&format!("{records:?}"));
        let rest = LATER.iter().fold(records, |text, later| text.replace(later, ""));
        let mut rest = rest.split("links: []");
        digest
            .write_str(rest.next().expect("a split text has a first part"))
            .expect("a digest takes all text");
        for (links, rest) in links.iter().zip(rest) {
            write!(digest, "links: {links}{rest}").expect("a digest takes all text");
        }
        digest.0
    })
}

/// Fields that records have had only since: of a call's terms, of a flow and its directions, of its counts
/// and trips, and of a clock.
#[allow(dead_code, reason = "each test file is a program of its own")]
const LATER: [&str; 11] = [
    "codec: g711, ",
    ", other_wait: None",
    ", arrivals_unknown: false",
    ", ecn: None",
    ", breaks: [], legs: None, ip: None, multipath: None",
    ", opening: None, early_echoes: 0",
    ", expired: 0",
    ", no_network: 0, not_open: 0",
    ", loss: Missing",
    ", change_uncertainty_ms: Some(0.0), synchronised: false",
    ", change_uncertainty_ms: None, synchronised: false",
];

/// The text of records without what tallies keep of calls to rate them: how much that is, is a matter of
/// memory.
#[allow(dead_code, reason = "each test file is a program of its own")]
fn without_call_counters(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = ["OneWay(", "BothWays(", "Halves("].iter().filter_map(|it| rest.find(it)).min() {
        let (before, counter) = rest.split_at(at);
        kept.push_str(before);
        let mut depth = 0;
        let end = counter.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        });
        rest = end.map_or("", |end| &counter[end + 1..]);
    }
    kept + rest
}

/// A number that changes when anything does that the links record, or the series of their delays, or the
/// flows of their marks.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn link_digest(text: &str) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for record in run_each(text, false) {
        let delays = record.series.iter().filter(|series| series.kind == SeriesKind::QueueDelay);
        write!(digest, "{:?} {:?}", record.links, delays.collect::<Vec<_>>())
            .expect("a digest takes all text");
        for ecn in record.flows.iter().filter_map(|flow| flow.ecn) {
            write!(digest, "{ecn:?}").expect("a digest takes all text");
        }
    }
    digest.0
}

/// What [`digests`] take of a link.
#[derive(Debug)]
#[expect(dead_code, reason = "its text is what is read")]
struct LinkRecord {
    name: String,
    queue_packets_mean: f64,
    queue_packets_p99: u64,
    queue_packets_max: u64,
    forwarded: u64,
    dropped: u64,
    lost: u64,
    utilisation: f64,
}

impl From<talkpath_measure::LinkRecord> for LinkRecord {
    fn from(link: talkpath_measure::LinkRecord) -> Self {
        Self {
            name: link.name,
            queue_packets_mean: link.queue_packets_mean,
            queue_packets_p99: link.queue_packets_p99,
            queue_packets_max: link.queue_packets_max,
            forwarded: link.forwarded,
            dropped: link.dropped,
            lost: link.lost,
            utilisation: link.utilisation,
        }
    }
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
