//! Runs that go on, and runs that the machine disturbs, by arenas that run nothing.

use std::sync::{Arc, Barrier};

use chrono::Utc;
use talkpath_measure::summary::RunSummary;
use talkpath_measure::warning;
use talkpath_scenario::{Options, Source, load};

use super::*;
use crate::choice::ArenaKind;
use crate::fixture::{self, Machine, NO_ARENAS, NoFindings, Silent, TestArenas, at, record_of};
use crate::part::ExtraFiles;
use crate::stopwatch::instant_formatter;

/// What nobody stops.
fn never() -> AtomicBool {
    AtomicBool::new(false)
}

const CALL: &str = "name = \"a call\"\nduration = \"1 s\"\n[flow.call]\ntransport = \"udp\"\n\
                    workload = { kind = \"voice\", codec = \"g711\" }\n";

fn plan_of(text: &str) -> Plan {
    load(&Source::new("call.toml", text), &Options::default()).unwrap()
}

/// Three repetitions of two cells, each of 1 s.
fn two_cells() -> Plan {
    plan_of(&format!("repeat = 3\n{CALL}[sweep]\n\"flow.call.transport\" = [\"udp\", \"tcp\"]\n"))
}

fn experiment<'a>(plan: &'a Plan, arenas: &'a dyn Connect) -> Experiment<'a> {
    let place = Place::new(ArenaKind::Live, Some("host"));
    Experiment::new(plan, place, arenas, Box::new(Silent), &NoFindings)
}

/// Keeps the plan's repetition in `dir`, of one message more than `sent`.
fn keep(dir: &RunDir, plan: &Plan, sent: u64, unfinished: bool) {
    let record = fixture::record(1_000);
    let mut part = Part::new(&record, plan, &plan.cells[0], false, instant_formatter(Utc::now()));
    part.summary.flows.values_mut().for_each(|flow| flow.sent = sent);
    part.save(
        dir,
        &record,
        &ExtraFiles { arrivals: None, capture: None, qlog: None },
        Records::All,
        unfinished,
    )
    .unwrap();
}

/// How often each repetition ran again, and whether it is undisturbed.
fn again(summary: &Summary) -> Vec<(u64, bool)> {
    let machine = |run: &RunSummary| {
        run.machine.as_ref().map(|machine| (machine.ran_again, machine.valid == Some(true)))
    };
    summary.runs.iter().filter_map(machine).collect()
}

fn warns(summary: &Summary, text: &str) -> bool {
    summary.warnings.iter().any(|warning| warning.contains(text))
}

const CLEAN: (u64, bool) = (0, true);
const ALWAYS: u64 = u64::MAX;

#[test]
fn what_the_machine_disturbed_runs_again_after_all_others_until_it_is_clean() {
    let (out, plan) = (tempfile::tempdir().unwrap(), two_cells());
    let machine = Arc::new(Machine::disturbing([(at(0, 1), 1), (at(1, 0), 2)]));
    let workers = machine.workers();
    let arenas = TestArenas(&workers);
    let Outcome { summary, failure, dir } =
        experiment(&plan, &arenas).run(Destination::Under(out.path()), &never()).unwrap();
    let all = [at(0, 0), at(0, 1), at(0, 2), at(1, 0), at(1, 1), at(1, 2)];
    assert_eq!(machine.ran(), [&all[..], &[at(0, 1), at(1, 0)], &[at(1, 0)]].concat());
    assert!(failure.is_none() && summary.valid && !dir.has_parts(), "{:?}", summary.warnings);
    assert_eq!(again(&summary), [CLEAN, (1, true), CLEAN, (2, true), CLEAN, CLEAN]);
    assert!(warns(&summary, "note: 2 repetitions ran again, 3 times in all"), "{:?}", summary.warnings);
    assert!(!warns(&summary, "late"), "what does not count warns of nothing: {:?}", summary.warnings);
}

#[test]
fn the_page_draws_the_first_repetition_that_the_machine_did_not_disturb() {
    let (out, plan) = (tempfile::tempdir().unwrap(), two_cells());
    let machine = Arc::new(Machine::disturbing([(at(0, 0), ALWAYS), (at(1, 0), ALWAYS)]));
    let workers = machine.workers();
    let arenas = TestArenas(&workers);
    let mut experiment = experiment(&plan, &arenas);
    experiment.place.run_again = Some(Duration::ZERO);
    let Outcome { summary, dir, .. } = experiment.run(Destination::Under(out.path()), &never()).unwrap();
    assert!(summary.valid && warns(&summary, "rest on 4 of 6"), "{:?}", summary.warnings);
    let page = std::fs::read_to_string(dir.file(crate::part::REPORT)).unwrap();
    assert_eq!(page, "0-1 1-1 ");
}

#[test]
fn what_stays_disturbed_runs_again_five_times_and_is_left_out_by_name() {
    let (out, plan) = (tempfile::tempdir().unwrap(), two_cells());
    let machine = Arc::new(Machine::disturbing([(at(1, 2), ALWAYS)]));
    let workers = machine.workers();
    let arenas = TestArenas(&workers);
    let outcome = experiment(&plan, &arenas).run(Destination::Under(out.path()), &never()).unwrap();
    let summary = &outcome.summary;
    assert_eq!(machine.ran().iter().filter(|id| **id == at(1, 2)).count(), 6);
    assert!(summary.valid && outcome.failure.is_none() && !outcome.dir.has_parts());
    assert_eq!((summary.runs.len(), again(summary)[5]), (6, (5, false)));
    let counts: Vec<u64> = summary.cells.iter().map(|cell| cell.n).collect();
    assert_eq!(counts, [3, 2]);
    assert!(
        warns(summary, "the figures rest on 5 of 6 repetitions")
            && warns(summary, "flow.call.transport=tcp, repetition 2: the senders were late"),
        "{:?}",
        summary.warnings
    );
    assert!(summary.warnings.iter().all(|warning| warning::reason(warning).is_none()));
}

#[test]
fn disturbed_repetitions_have_the_time_that_is_stated_and_without_it_none_runs_again() {
    let plan = two_cells();
    for (time, times) in [(Duration::ZERO, 0), (Duration::from_millis(2_500), 2)] {
        let out = tempfile::tempdir().unwrap();
        let machine = Arc::new(Machine::disturbing([(at(0, 0), ALWAYS), (at(1, 1), ALWAYS)]));
        let workers = machine.workers();
        let arenas = TestArenas(&workers);
        let mut experiment = experiment(&plan, &arenas);
        experiment.place.run_again = Some(time);
        let summary = experiment.run(Destination::Under(out.path()), &never()).unwrap().summary;
        assert_eq!(machine.ran().len(), 6 + times);
        assert!(summary.valid && warns(&summary, "rest on 4 of 6"), "{:?}", summary.warnings);
    }
}

#[test]
fn a_run_of_which_a_cell_was_mostly_disturbed_is_not_valid_and_its_figures_are_of_all() {
    let (out, plan) = (tempfile::tempdir().unwrap(), two_cells());
    let machine = Arc::new(Machine::disturbing([(at(1, 0), ALWAYS), (at(1, 1), ALWAYS)]));
    let workers = machine.workers();
    let arenas = TestArenas(&workers);
    let summary = experiment(&plan, &arenas).run(Destination::Under(out.path()), &never()).unwrap().summary;
    assert!(!summary.valid && summary.cells.iter().all(|cell| cell.n == 3));
    assert!(warns(&summary, "invalid: the senders were late"), "{:?}", summary.warnings);
}

#[test]
fn a_run_that_was_killed_between_goes_on_with_what_is_still_disturbed() {
    for records in [Records::All, Records::None] {
        let (out, plan) = (tempfile::tempdir().unwrap(), two_cells());
        let machine = Arc::new(Machine::default());
        let workers = machine.workers();
        let arenas = TestArenas(&workers);
        let experiment = Experiment { records, ..experiment(&plan, &arenas) };
        let (dir, begun) = experiment.open(Destination::Under(out.path()), &Stopwatch::start()).unwrap();
        let writer = PartWriter::new(&dir, records);
        let keep = |id: PartId, is_disturbed: bool, times: u64| {
            let record = record_of(id, is_disturbed);
            let cell = plan.cell(id.cell).unwrap();
            let mut part = Part::new(&record, &plan, cell, false, instant_formatter(Utc::now()));
            part.set_reruns(times);
            let kept = ExtraFiles { arrivals: None, capture: None, qlog: None };
            writer.write(&mut part, &record, &kept, false).unwrap();
        };
        for id in [at(0, 0), at(0, 1), at(0, 2), at(1, 0), at(1, 1), at(1, 2)] {
            keep(id, [at(0, 1), at(1, 0), at(1, 1)].contains(&id), 0);
        }
        // One of them is clean already, and one ran again without being so.
        keep(at(0, 1), false, 1);
        keep(at(1, 0), true, 1);
        let path = dir.path().to_path_buf();
        drop(dir);
        let outcome = experiment.resume(RunDir::open(&path).unwrap(), begun, &never()).unwrap();
        assert_eq!(machine.ran(), [at(1, 0), at(1, 1)], "{records:?}");
        assert!(outcome.summary.valid && !outcome.dir.has_parts());
        assert_eq!(again(&outcome.summary), [CLEAN, (1, true), CLEAN, (2, true), (1, true), CLEAN]);
    }
}

#[test]
fn a_run_that_is_stopped_while_repetitions_run_again_answers_and_can_go_on() {
    let (out, plan) = (tempfile::tempdir().unwrap(), two_cells());
    let machine = Machine { stopped: Some((at(0, 1), 2)), ..Machine::disturbing([(at(0, 1), 1)]) };
    let machine = Arc::new(machine);
    let workers = machine.workers();
    let arenas = TestArenas(&workers);
    let experiment = experiment(&plan, &arenas);
    let outcome = experiment.run(Destination::Under(out.path()), &never()).unwrap();
    let failure = outcome.failure.expect("it was stopped");
    assert!(
        matches!(failure, Error::Interrupted(_))
            && failure.to_string().contains("6 of 6 repetitions are kept"),
        "{failure}"
    );
    assert!(outcome.summary.valid && warns(&outcome.summary, "rest on 5 of 6 repetitions"));
    let path = outcome.dir.path().to_path_buf();
    drop(outcome.dir);
    let dir = RunDir::open(&path).unwrap();
    let begun = RunOptions::read(&dir).unwrap();
    let outcome = experiment.resume(dir, begun, &never()).unwrap();
    assert!(outcome.failure.is_none() && outcome.summary.valid && !outcome.dir.has_parts());
    assert_eq!(again(&outcome.summary)[1], (1, true));
    assert!(!warns(&outcome.summary, "rest on"), "{:?}", outcome.summary.warnings);
}

#[test]
fn runs_in_real_time_stand_beside_each_other_if_they_may() {
    let (out, plan) = (tempfile::tempdir().unwrap(), two_cells());
    // Alone, a run would wait here for ever.
    let machine = Arc::new(Machine { meeting: Some(Barrier::new(2)), ..Machine::default() });
    let workers = machine.workers();
    let arenas = TestArenas(&workers);
    let experiment = Experiment { at_once: 2, ..experiment(&plan, &arenas) };
    let outcome = experiment.run(Destination::Under(out.path()), &never()).unwrap();
    assert_eq!((machine.ran().len(), outcome.summary.runs.len()), (6, 6));
}

#[test]
fn a_repetition_that_was_cut_short_is_in_the_run_until_it_has_run_again() {
    let (out, plan) = (tempfile::tempdir().unwrap(), plan_of(CALL));
    let experiment = experiment(&plan, &NO_ARENAS);
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
        let outcome = experiment.resume(RunDir::open(&path).unwrap(), begun.clone(), &never()).unwrap();
        assert_eq!(sent(&outcome), [391]);
        assert!(outcome.dir.has_parts() && !outcome.summary.valid);
    }
    let dir = RunDir::open(&path).unwrap();
    // A process that died before it removed what this one takes the place of.
    keep(&dir, &plan, 500, false);
    let outcome = experiment.resume(dir, begun, &never()).unwrap();
    assert_eq!(sent(&outcome), [500]);
    assert!(!outcome.dir.has_parts());
}
