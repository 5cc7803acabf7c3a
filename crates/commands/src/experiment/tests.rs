//! Runs that go on, by arenas that run nothing.

use talkpath_scenario::{Options, Source};

use super::*;
use crate::arenas::NoArenas;
use crate::monitor::interval::tests::session;
use crate::scenario_file::load_source;

fn plan() -> Plan {
    let text = "name = \"a call\"\nduration = \"1 s\"\n[flow.call]\ntransport = \"udp\"\n\
                workload = { kind = \"voice\", codec = \"g711\" }\n";
    load_source(&Source::new("call.toml", text), &Options::default()).unwrap()
}

fn experiment(plan: &Plan) -> Experiment<'_> {
    let place = Place::of(ArenaKind::Live, Some("host"));
    Experiment {
        plan,
        growth: None,
        takes_turns: false,
        shard: None,
        place,
        arenas: &NoArenas,
        records: Records::All,
        exact: false,
        series: SeriesPoints::Sampled,
        jobs: 1,
        terminal: Terminal::plain(),
    }
}

/// Keeps the plan's repetition in `dir`, of one message more than `sent`.
fn keep(dir: &RunDir, plan: &Plan, sent: u64, unfinished: bool) {
    let record = session(0, 0, 1_000, 7).record.unwrap();
    let mut part = Part::new(&record, plan, &plan.cells[0], false, stamps());
    part.summary.flows.values_mut().for_each(|flow| flow.sent = sent);
    part.save(dir, &record, &Kept { arrivals: None, capture: None }, Records::All, unfinished).unwrap();
}

#[test]
fn a_repetition_that_was_cut_short_is_in_the_run_until_it_has_run_again() {
    let (out, plan) = (tempfile::tempdir().unwrap(), plan());
    let experiment = experiment(&plan);
    let (dir, begun) = experiment.open(Destination::Under(out.path()), &Stopwatch::start()).unwrap();
    keep(&dir, &plan, 391, true);
    let path = dir.path().to_path_buf();
    drop(dir);
    let sent = |outcome: &Outcome| -> Vec<u64> {
        let runs = outcome.summary.runs.iter();
        runs.flat_map(|run| run.flows.values().map(|flow| flow.sent)).collect()
    };
    // The repetition cannot begin.
    for _ in 0..2 {
        let outcome = experiment.resume(RunDir::open(&path).unwrap(), begun.clone()).unwrap();
        assert_eq!(sent(&outcome), [391]);
        assert!(outcome.dir.has_parts() && !outcome.summary.valid);
    }
    let dir = RunDir::open(&path).unwrap();
    // A process that died before it removed what this one takes the place of.
    keep(&dir, &plan, 500, false);
    let outcome = experiment.resume(dir, begun).unwrap();
    assert_eq!(sent(&outcome), [500]);
    assert!(!outcome.dir.has_parts());
}
