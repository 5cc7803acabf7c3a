//! Runs scenarios from their text.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena, RunPlan};
use talkpath_measure::figures::{FLOW, Figure, LINK, Table};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summarise::summarise;
use talkpath_measure::{HeldRecord, OpeningRecord, PlayoutRule, RunRecord, SeriesKind};
use talkpath_scenario::{Flow, Judging, Options, Playout, Source, load};
use talkpath_sim::SimArena;

/// The record of repetition 0 of every cell.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn run_cells(text: &str) -> Vec<RunRecord> {
    run_each(text, true)
}

fn run_each(text: &str, rows: bool) -> Vec<RunRecord> {
    run_each_with(text, rows, |_| {})
}

/// The same with a change of each flow.
fn run_each_with(text: &str, rows: bool, change: impl Fn(&mut Flow)) -> Vec<RunRecord> {
    let source = Source::new("test.toml", text);
    let plan = load(&source, &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    plan.cells
        .iter()
        .map(|cell| {
            let mut scenario = cell.scenario.clone();
            scenario.flows.iter_mut().for_each(&change);
            let run = RunPlan {
                cell: cell.index,
                repetition: 0,
                seed: plan.seed,
                series: Some(SeriesDetail::Full),
                rows,
                interrupt: &AtomicBool::new(false),
                progress: &|_| {},
            };
            SimArena::new().run(&scenario, run).expect("the simulator can run it")
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

/// A number that changes when anything in the records of the scenario does, with every row and series. What
/// links record of their queues' delay, drops and marks, and flows of their marks, is not in it, but in
/// [`link_digest`]: they are older. When connections opened has tests of its own.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn digest_with_rows(text: &str) -> u64 {
    let mut digest = Digest::new();
    let mut records = run_each(text, true);
    let mut links = Vec::new();
    for record in &mut records {
        record.series.retain(|series| series.kind != SeriesKind::QueueDelay);
        for flow in &mut record.flows {
            flow.ecn = None;
            flow.counters.opening = OpeningRecord::default();
            flow.counters.held = HeldRecord::default();
            // How a call is rated is no part of what happened.
            if let Some(call) = &mut flow.info.terms.call {
                (call.is_concealed, call.others, call.rated) = (false, false, None);
                call.playout = PlayoutRule::Adaptive;
            }
        }
        let taken = core::mem::take(&mut record.links);
        links.push(format!("{:?}", taken.into_iter().map(LinkRecord::from).collect::<Vec<_>>()));
    }
    let records = format!("{records:?}");
    let rest = LATER.iter().fold(records, |text, later| text.replace(later, ""));
    let mut rest = rest.split("links: []");
    digest.take(rest.next().expect("a split text has a first part"));
    for (links, rest) in links.iter().zip(rest) {
        digest.take(&format!("links: {links}{rest}"));
    }
    digest.0
}

/// A number that changes when one of the figures of the scenario's runs without rows does that stand in
/// `digests/figures.txt`, or one of their series.
///
/// The figures have names there, and what a run keeps of its messages until it has them is not read: so a new
/// metric moves no line. `without_rows.rs` holds its figure against that of a run with rows.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn digest_without_rows(text: &str) -> u64 {
    let mut digest = Digest::new();
    for record in run_each_with(text, false, judge_as_the_digests_were) {
        let mut summary = summarise(&record, &BTreeMap::new());
        for (name, flow) in &mut summary.flows {
            if let Some(call) = &mut flow.call {
                // The name that this receiver had.
                "adaptive".clone_into(&mut call.playout);
                // The patient receiver had no say.
                let second = call.other_receiver.as_ref().map(|second| second.playout.clone());
                call.receiver_matters.take_if(|matters| Some(&matters.playout) != second.as_ref());
            }
            digest.take(&format!("flow {name}"));
            named(&FLOW).for_each(|figure| digest.figure(figure, flow));
        }
        for (name, link) in &summary.links {
            digest.take(&format!("link {name}"));
            named(&LINK).for_each(|figure| digest.figure(figure, link));
        }
        for series in record.series.iter().filter(|series| series.kind != SeriesKind::QueueDelay) {
            digest.take(&format!("{series:?}"));
        }
    }
    digest.0
}

/// Calls were judged with the receiver of 1994 and others when the digests were made.
#[allow(dead_code, reason = "each test file is a program of its own")]
fn judge_as_the_digests_were(flow: &mut Flow) {
    if let Judging::Call { playout, others, .. } = &mut flow.judging {
        (*playout, *others) = (Playout::Ramjee, true);
    }
}

/// The rows of `table` whose paths stand in `digests/figures.txt`.
///
/// # Panics
/// A path there is in no table.
#[allow(dead_code, reason = "each test file is a program of its own")]
fn named<T>(table: &'static Table<T>) -> impl Iterator<Item = &'static Figure<T>> {
    FIGURES.lines().filter_map(|path| {
        assert!(FLOW.find(path).is_some() || LINK.find(path).is_some(), "{path} is no figure any more");
        table.find(path)
    })
}

#[allow(dead_code, reason = "each test file is a program of its own")]
const FIGURES: &str = include_str!("../digests/figures.txt");

/// Fields that records have had only since: of a call's terms, of a flow and its directions, of its counts
/// and trips, and of a clock.
#[allow(dead_code, reason = "each test file is a program of its own")]
const LATER: [&str; 19] = [
    ", brought_later: {}",
    ", held: HeldRecord { congestion_window: Duration(0), receiver_window: Duration(0), nagle: Duration(0), pacing: Duration(0) }",
    ", path: None",
    "codec: g711, ",
    ", path_changes: false",
    ", path_changes: true",
    ", program: None",
    "rated: None, ",
    "carriage: Carriage { copies: 1, earlier: 0 }, ",
    ", others: false",
    ", arrivals_unknown: false",
    ", ecn: None",
    ", breaks: [], legs: None, ip: None, multipath: None",
    ", opening: OpeningRecord { open: None, name: None, socket: None, handshake: None, first_delivered: None }, \
     early_echoes: 0",
    ", expired: 0",
    ", no_network: 0, not_open: 0",
    ", loss: Missing",
    ", change_uncertainty_ms: Some(0.0), synchronised: false",
    ", change_uncertainty_ms: None, synchronised: false",
];

/// A number that changes when anything does that the links record, or the series of their delays, or the
/// flows of their marks.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn link_digest(text: &str) -> u64 {
    let mut digest = Digest::new();
    for record in run_each(text, false) {
        let delays = record.series.iter().filter(|series| series.kind == SeriesKind::QueueDelay);
        // The digests are older than these two counts, which are zero on the links of their scenarios.
        let links = format!("{:?}", record.links).replace(" repeated: 0, damaged: 0,", "");
        digest.take(&format!("{links} {:?}", delays.collect::<Vec<_>>()));
        for ecn in record.flows.iter().filter_map(|flow| flow.ecn) {
            digest.take(&format!("{ecn:?}"));
        }
    }
    digest.0
}

/// What [`digest_with_rows`] takes of a link.
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

/// FNV-1a, 64 bits.
struct Digest(u64);

#[allow(dead_code, reason = "each test file is a program of its own")]
impl Digest {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn take(&mut self, text: &str) {
        let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.0 = text.bytes().fold(self.0, fold);
    }

    fn figure<T>(&mut self, figure: &Figure<T>, of: &T) {
        let value = figure.value(of);
        self.take(&format!("{} {value:?}", figure.path));
    }
}

fn only(mut records: Vec<RunRecord>) -> RunRecord {
    assert_eq!(records.len(), 1);
    records.remove(0)
}
