//! The loop, by arenas that run nothing.

use std::sync::Arc;

use super::*;
use crate::choice::ArenaKind;
use crate::fixture::{self, Machine, at};

/// Counts what runs, and keeps nothing.
#[derive(Default)]
struct Counter {
    /// What ran, how often it ran again, and whether it was cut short.
    kept: Mutex<Vec<(PartId, u64, bool)>>,
    /// Cells that could not run.
    cannot_run: Mutex<Vec<u64>>,
}

impl Keeper for Counter {
    fn record_contents(&self, _: PartId) -> RecordContents {
        RecordContents { series: None, rows: true }
    }

    fn is_usable(&self, _: PartId, record: &RunRecord) -> bool {
        record.valid
    }

    fn keep(&self, attempt: FinishedAttempt, _: &mut Worker) -> Result<Acceptance, Error> {
        locked(&self.kept).push((attempt.id, attempt.reruns, attempt.is_cut_short));
        let record = attempt.record;
        Ok(if record.valid { Acceptance::Accepted } else { Acceptance::Disturbed(record.warnings) })
    }
}

impl Observer for Counter {
    fn observe(&self, event: Event<'_>) {
        if let Event::CannotRun { cell, .. } = event {
            locked(&self.cannot_run).push(cell);
        }
    }
}

/// What result of `cells` on `machine` after `kept`, what ran, and which cells could not.
fn run(
    cells: &[CellPlan<'_>],
    order: Order,
    machine: Machine,
    kept: &[EarlierRepetition<'_>],
) -> (LoopResult, Vec<PartId>, Counter) {
    let (counter, machine, stop) = (Counter::default(), Arc::new(machine), AtomicBool::new(false));
    let mut progress = Progress::new(None);
    for kept in kept {
        progress.add(cells, *kept);
    }
    let result = Repetitions {
        cells,
        order,
        is_here: &|_| true,
        place: &Place::new(ArenaKind::Emu, None),
        skips_unsupported: true,
        keeper: &counter,
        observer: &counter,
        stop: &stop,
    }
    .run(&mut machine.workers()(1), &mut progress);
    (result, machine.ran(), counter)
}

#[test]
fn a_cell_runs_as_often_as_it_says_and_what_was_kept_of_an_edited_one_does_not_count() {
    let plan = fixture::plan("");
    let scenario = &plan.cells[0].scenario;
    let cell = |index, repetitions, fingerprint| CellPlan { index, scenario, repetitions, fingerprint };
    let cells = [cell(3, 2, "as it was"), cell(7, 3, "edited"), cell(9, 1, "as it was")];
    let kept = |id| EarlierRepetition { id, fingerprint: "as it was", reruns: 0, is_disturbed: false };
    // Of cell 8, which is gone, nothing is needed.
    let before = [at(3, 0), at(7, 0), at(7, 1), at(8, 0)].map(kept);
    let (result, ran, _) = run(&cells, Order::ByCell, Machine::default(), &before);
    assert_eq!(ran, [at(3, 1), at(7, 0), at(7, 1), at(7, 2), at(9, 0)]);
    assert!((result.finished, result.planned) == (6, 6) && result.failure.is_none(), "{result:?}");
}

#[test]
fn cells_that_take_longest_begin_and_stay_whole() {
    let plan = fixture::plan("");
    let short = &plan.cells[0].scenario;
    let mut long = short.clone();
    long.duration = Duration::from_secs(5);
    let cell = |index, scenario, repetitions| CellPlan { index, scenario, repetitions, fingerprint: "" };
    let cells = [cell(0, short, 2), cell(1, &long, 1), cell(2, short, 4), cell(3, &long, 1)];
    let (_, ran, _) = run(&cells, Order::LongestFirst, Machine::default(), &[]);
    let expected = [at(1, 0), at(3, 0), at(2, 0), at(2, 1), at(2, 2), at(2, 3), at(0, 0), at(0, 1)];
    assert_eq!(ran, expected);
}

#[test]
fn a_cell_that_the_arena_cannot_run_is_left_out_once_and_the_others_run() {
    let plan = fixture::plan("repeat = 3\n[sweep]\n\"path.up.loss\" = [0.0, 0.1]\n");
    let machine = Machine { unsupported: [0].into(), ..Machine::default() };
    let (result, ran, counter) = run(&CellPlan::all_of(&plan), Order::ByCell, machine, &[]);
    assert_eq!(ran, [at(0, 0), at(1, 0), at(1, 1), at(1, 2)]);
    assert_eq!(*locked(&counter.cannot_run), [0]);
    assert!((result.finished, result.planned) == (3, 6) && result.failure.is_none(), "{result:?}");
}

#[test]
fn what_ran_again_in_an_earlier_process_is_charged_and_what_was_still_disturbed_goes_on() {
    let plan = fixture::plan("repeat = 2");
    let machine = Machine::disturbing([(at(0, 0), 1)]);
    let kept = |repetition, reruns, is_disturbed| EarlierRepetition {
        id: at(0, repetition),
        fingerprint: "",
        reruns,
        is_disturbed,
    };
    let before = [kept(0, 1, true), kept(1, 0, false)];
    let (result, ran, counter) = run(&CellPlan::all_of(&plan), Order::ByCell, machine, &before);
    assert_eq!(ran, [at(0, 0), at(0, 0)]);
    assert_eq!(*locked(&counter.kept), [(at(0, 0), 2, false), (at(0, 0), 3, false)]);
    assert_eq!((result.finished, result.planned, result.reruns, result.peak), (2, 2, 2, 1));
    // Five times in all.
    let before = [kept(0, 5, true), kept(1, 0, false)];
    let always = Machine::disturbing([(at(0, 0), u64::MAX)]);
    assert!(run(&CellPlan::all_of(&plan), Order::ByCell, always, &before).1.is_empty());
}
