//! A study's stage, by an arena that runs nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talkpath_arena::{Arena, ArenaError, RunPlan};
use talkpath_experiment::choice::{ArenaKind, Records};
use talkpath_fixtures::call_record;
use talkpath_measure::{LateFlow, MachineRecord, warning};
use talkpath_scenario::{Scenario, Source};
use talkpath_study::load;

use super::super::folder::Identity;
use super::*;
use crate::arenas::NO_ARENAS;

/// A call of three repetitions and one of two; `METRIC` is what the claim reads of both.
const STUDY: &str = r#"
title = "t"
authors = ["a"]
year = 2026
source = "s"
question = "q"
set_up = "u"
repeat = 3
quick = { repeat = 1, assumptions = ["base"] }
[[assumption]]
name = "base"
text = "t"
[axis.loss]
no = {}
some = { "path.up.loss" = 0.1 }
[[cells]]
name = "call-{loss}"
scenario = "call.toml"
axes = { loss = ["no"] }
[[cells]]
name = "call-{loss}"
scenario = "call.toml"
axes = { loss = ["some"] }
repeat = 2
[[claim]]
id = "C1"
text = "t"
published = "p"
expected = "reproduced"
why = "w"
basis = "assumed"
check = [{ name = "n", metric = "METRIC", rising = ["call-no", "call-some"] }]
"#;

fn study(metric: &str) -> Study {
    let call = "duration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\n\
                workload = { kind = \"voice\" }\n";
    let text = STUDY.replace("METRIC", metric);
    let source = Source::new("study.toml", text.as_str());
    load("mine", &source, &[Source::new("call.toml", call)]).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// How the machine treats attempts, in the order in which they run.
#[derive(Clone, Copy, PartialEq)]
enum Treats {
    Well,
    /// Packets of the flow were late, so that the figures of its tail are not the path's.
    Late,
    /// Past its limits in everything.
    Badly,
    /// The user stops it.
    Stopped,
    /// It cannot do what the cell needs.
    Unsupported,
}

/// An arena whose attempts are treated as the list says, and then well; with what ran.
#[derive(Default)]
struct Machine {
    treats: Vec<Treats>,
    ran: Mutex<Vec<PartId>>,
}

struct OnMachine(Arc<Machine>);

impl Arena for OnMachine {
    fn run(&mut self, _: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError> {
        let id = PartId { cell: plan.cell, repetition: plan.repetition };
        let mut ran = self.0.ran.lock().unwrap();
        let treats = self.0.treats.get(ran.len()).copied().unwrap_or(Treats::Well);
        ran.push(id);
        let mut record = call_record(1_000, 10);
        (record.cell, record.repetition) = (id.cell, id.repetition);
        let late = LateFlow { name: "call".to_owned(), messages: 50, late: 5 };
        let late_flows = if treats == Treats::Late { vec![late] } else { Vec::new() };
        record.machine = Some(MachineRecord { late_flows, ..MachineRecord::default() });
        match treats {
            Treats::Well => {}
            Treats::Late | Treats::Badly => {
                record.valid = false;
                record.warnings.push(warning::invalid("the machine was late"));
            }
            Treats::Stopped => {
                plan.interrupt.store(true, Ordering::Relaxed);
                return Err(ArenaError::Interrupted { partial: Some(Box::new(record)) });
            }
            Treats::Unsupported => return Err(ArenaError::Unsupported("no such thing".to_owned())),
        }
        Ok(record)
    }
}

struct Came {
    /// Cell, from 0, and repetition.
    ran: Vec<(u64, u64)>,
    /// The cells that are whole.
    whole: Vec<CellSamples>,
    failure: Option<Failure>,
}

/// What came of `study` in emu, in `folder`, where the machine treats the attempts so.
fn run(study: &Study, folder: &StudyDir, treats: &[Treats]) -> Came {
    let machine = Arc::new(Machine { treats: treats.to_vec(), ..Machine::default() });
    let selection = Selection { arenas: vec![ArenaName::Emu], ..Selection::default() };
    let (stop, terminal) = (AtomicBool::new(false), Terminal::plain());
    let progress = TerminalObserver::new(terminal, Records::All);
    let runner = Runner {
        study,
        selection: &selection,
        earlier: None,
        folder,
        arenas: &NO_ARENAS,
        terminal,
        progress: &progress,
        stop: &stop,
        records: Records::None,
    };
    let workers = vec![Box::new(OnMachine(Arc::clone(&machine))) as Worker];
    let place = Place::new(ArenaKind::Emu, None);
    let (whole, failure) =
        runner.run(&mut [ConnectedArena { arena: ArenaName::Emu, place, workers }]).unwrap();
    let first = study.cells.iter().find(|cell| cell.arena == ArenaName::Emu).map_or(0, |cell| cell.index);
    let ran = machine.ran.lock().unwrap().iter().map(|id| (id.cell - first, id.repetition)).collect();
    Came { ran, whole, failure }
}

fn begin(out: &Path, study: &Study) -> StudyDir {
    StudyDir::create(out, "2026-11-21T19-05-07Z", &Identity::new(study, false)).unwrap()
}

fn again(out: &Path, study: &Study) -> StudyDir {
    StudyDir::newest(out, &Identity::new(study, false)).unwrap()
}

/// How many repetitions each cell has, and how many of them the machine spoiled.
fn counts(came: &Came) -> Vec<(&str, usize, usize)> {
    let spoiled = |cell: &CellSamples| cell.samples.iter().filter(|sample| !sample.is_whole()).count();
    came.whole.iter().map(|cell| (cell.cell.as_str(), cell.samples.len(), spoiled(cell))).collect()
}

const ALL: [(u64, u64); 5] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)];

#[test]
fn a_repetition_of_which_the_machine_bent_a_figure_runs_again_only_where_a_claim_reads_it() {
    let out = tempfile::tempdir().unwrap();
    let late = [Treats::Well, Treats::Late];
    let counted = study("flows.call.loss_rate");
    let came = run(&counted, &begin(out.path(), &counted), &late);
    assert_eq!((&came.ran[..], counts(&came)), (&ALL[..], vec![("call-no", 3, 0), ("call-some", 2, 0)]));
    let warnings = &came.whole[0].warnings;
    assert_eq!(*warnings, ["the machine was late"], "it counts, and says what bent the rest");
    let tail = study("flows.call.rtp_jitter_ms");
    let came = run(&tail, &begin(out.path(), &tail), &late);
    assert_eq!(came.ran, [&ALL[..], &[(0, 1)]].concat(), "after all others");
    assert_eq!(counts(&came), [("call-no", 3, 0), ("call-some", 2, 0)]);
    assert!(came.failure.is_none() && came.whole[0].warnings.is_empty(), "{:?}", came.whole[0].warnings);
}

#[test]
fn what_stays_disturbed_is_in_its_cell_and_runs_again_when_the_study_goes_on() {
    let (out, study) = (tempfile::tempdir().unwrap(), study("flows.call.loss_rate"));
    let mut treats = vec![Treats::Well; 4];
    treats.resize(4 + 6, Treats::Badly);
    let came = run(&study, &begin(out.path(), &study), &treats);
    assert_eq!(came.ran, [&ALL[..], &[(1, 1); 5]].concat(), "five times more");
    assert_eq!(counts(&came), [("call-no", 3, 0), ("call-some", 2, 1)]);
    let why = came.whole[1].samples[1].disturbed.as_deref().unwrap();
    assert!(why.contains("the machine was late"), "{why}");
    let came = run(&study, &again(out.path(), &study), &[]);
    assert_eq!((&came.ran[..], counts(&came)), (&[(1, 1)][..], vec![("call-no", 3, 0), ("call-some", 2, 0)]));
}

#[test]
fn a_study_that_is_stopped_has_its_whole_cells_and_goes_on_with_what_is_missing() {
    let (out, study) = (tempfile::tempdir().unwrap(), study("flows.call.loss_rate"));
    let treats = [Treats::Well, Treats::Well, Treats::Well, Treats::Well, Treats::Stopped];
    let came = run(&study, &begin(out.path(), &study), &treats);
    assert_eq!(counts(&came), [("call-no", 3, 0)]);
    let failure = came.failure.expect("it was stopped");
    assert!(
        failure.exit_code() == 130 && failure.to_string().contains("what ran to its end is kept"),
        "{failure}"
    );
    let came = run(&study, &again(out.path(), &study), &[]);
    assert_eq!((&came.ran[..], counts(&came)), (&[(1, 1)][..], vec![("call-no", 3, 0), ("call-some", 2, 0)]));
}

#[test]
fn a_cell_that_this_machine_cannot_run_leaves_the_others() {
    let (out, study) = (tempfile::tempdir().unwrap(), study("flows.call.loss_rate"));
    let came = run(&study, &begin(out.path(), &study), &[Treats::Unsupported]);
    assert_eq!((&came.ran[..], counts(&came)), (&[(0, 0), (1, 0), (1, 1)][..], vec![("call-some", 2, 0)]));
    assert!(came.failure.is_none());
}
