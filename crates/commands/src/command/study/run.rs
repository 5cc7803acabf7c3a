//! `talkpath study run` runs the scenarios of a study, judges its claims, and writes the page.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

use talkpath_experiment::choice::{ArenaKind, Records};
use talkpath_experiment::json::json;
use talkpath_experiment::observer::{Event, Observer as _};
use talkpath_experiment::part::REPORT;
use talkpath_experiment::place::Place;
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::store::whole::write_bytes;
use talkpath_report::{Animation, study_page};
use talkpath_study::{
    ArenaName, CellSamples, Changes, EarlierRun, Outcome, Selection, Study, arena_list, judge_with,
};

use super::find::find;
use super::folder::{Identity, STUDY_COPY, StudyDir};
use super::runner::{ConnectedArena, Runner};
use super::{OUTCOME, check_verdicts, kept, print_outcome, select};
use crate::arenas::Arenas;
use crate::args::{Common, StudyArena, StudyRunArgs};
use crate::command::allowed::{check_program, has_program};
use crate::command::{Context, jobs};
use crate::failure::Failure;
use crate::interrupt;
use crate::network::network;
use crate::running::TerminalObserver;
use crate::terminal::{Terminal, shell_word};

/// The number of concurrent runs in real time, unless `--jobs` says otherwise. We chose 16: far fewer runs of
/// most scenarios fit on a machine, and each run takes about a hundred descriptors and ten threads.
const MAX_CONCURRENT_RUNS: usize = 16;
/// The index of the base set in the assumption sets of a study.
const BASE_SET: usize = 0;

/// Runs the scenarios of a study, judges its claims, and writes the page.
pub(super) fn run(args: &StudyRunArgs, context: Context<'_>) -> Result<(), Failure> {
    let Context { common, arenas, terminal } = context;
    let mut study = find(&args.name, &Changes { seed: args.seed, set: args.set.clone() })?;
    let selection = select(&study, arena_names(&args.arena, &study), args.quick, &args.claims)?;
    let selected = selection.cells(&study).into_iter().filter_map(|cell| selection.runs(cell));
    let scenarios = selected.map(|runs| &*runs.scenario);
    check_program(&format!("the study {}", study.name), scenarios, args.allow_program)?;
    let earlier = match &args.reuse {
        Some(path) => Some(earlier_run(path, &study, &selection)?),
        None => None,
    };
    let stop = interrupt::install()?;
    // All arenas are connected first, so that a missing one is reported before anything runs.
    let mut connected = Vec::new();
    for &arena in &selection.arenas {
        connected.push(connect(arena, common, arenas)?);
    }
    let identity = Identity::new(&study, args.quick);
    let folder = if args.resume {
        StudyDir::newest(&common.out, &identity)?
    } else {
        StudyDir::create(&common.out, &Stopwatch::start().started_for_file_name(), &identity)?
    };
    let copy = folder.keep_study(&study)?;
    study.send_files_from(&copy);
    let progress = TerminalObserver::new(terminal, common.records());
    progress.observe(Event::Directory(folder.path()));
    let runner = Runner {
        study: &study,
        selection: &selection,
        earlier: earlier.as_ref(),
        folder: &folder,
        arenas,
        terminal,
        progress: &progress,
        stop: &stop,
        // Rows of all repetitions are many, so a study keeps none unless the user asks for them.
        records: common.records.unwrap_or(Records::None),
    };
    let (samples, failure) = runner.run(&mut connected)?;
    let mut outcome = judge_with(&study, &selection, &samples, earlier.as_ref());
    // A run in real time is quoted with its day.
    if selection.arenas.iter().any(|arena| arena.is_real_time()) {
        outcome.day = folder.day();
        if let Some(day) = earlier.as_ref().and_then(EarlierRun::day) {
            outcome.warnings.extend(cells_of_another_day(&samples, outcome.day.as_deref(), day));
            outcome.day = Some(day.to_owned());
        }
    }
    let printed = write_outcome(&study, &outcome, args, &folder, common, terminal);
    // The verdicts of a run that ended early are not the final ones.
    let judged = if failure.is_some() { Ok(()) } else { check_verdicts(&outcome, args.strict, terminal) };
    terminal.end_with([failure, judged.err(), printed.err()])
}

/// Reads the run that `--reuse` names.
fn earlier_run(path: &Path, study: &Study, selection: &Selection) -> Result<EarlierRun, Failure> {
    EarlierRun::new(kept::read(path)?, study, selection)
        .map_err(|why| Failure::Usage(format!("--reuse {}: {why}", path.display())))
}

/// Says which cells ran in real time on another day than the earlier run.
fn cells_of_another_day(samples: &[CellSamples], today: Option<&str>, day: &str) -> Option<String> {
    let real_time = samples.iter().filter(|cell| cell.arena.is_real_time());
    let names: BTreeSet<&str> = real_time.map(|cell| cell.cell.as_str()).collect();
    if names.is_empty() || today == Some(day) {
        return None;
    }
    let names: Vec<&str> = names.into_iter().collect();
    let today = today.unwrap_or("another day");
    Some(format!("the run of {day}, with cells that ran on {today}: {}", names.join(", ")))
}

fn connect(arena: ArenaName, common: &Common, arenas: &dyn Arenas) -> Result<ConnectedArena, Failure> {
    // Keeping the processors awake needs no privilege.
    let place = Place { keep_awake: arena.is_real_time(), ..Place::new(arena_kind(arena), None) };
    let max_workers = if arena.is_real_time() {
        common.jobs.map_or(MAX_CONCURRENT_RUNS, NonZeroUsize::get)
    } else {
        jobs(common)
    };
    let workers = arenas.connect(&place, max_workers)?;
    Ok(ConnectedArena { arena, place, workers })
}

/// Writes the outcome and the page of a run into its directory, and prints the result.
fn write_outcome(
    study: &Study,
    outcome: &Outcome,
    args: &StudyRunArgs,
    folder: &StudyDir,
    common: &Common,
    terminal: Terminal,
) -> Result<(), Failure> {
    write_bytes(&folder.file(OUTCOME), &json(outcome))?;
    let command = same_command(args, outcome);
    let page = study_page(outcome, &networks(study), env!("CARGO_PKG_VERSION"), &command);
    write_bytes(&folder.file(REPORT), page.as_bytes())?;
    print_outcome(outcome, &folder.file(REPORT), common, terminal)
}

/// Returns the command that makes the same run again, for the page. It names the copy of the study beside the
/// page, because whoever has the page also has the copy.
fn same_command(args: &StudyRunArgs, outcome: &Outcome) -> String {
    let name = shell_word(&format!("{STUDY_COPY}/{}", outcome.study));
    let mut command = format!("# In this directory, which holds the study:\ntalkpath study run {name}");
    for id in &args.claims {
        command += &format!(" --claim {}", shell_word(id));
    }
    command += &format!(" --arena {}", arena_list(&outcome.arenas));
    if args.quick {
        command += " --quick";
    }
    if args.allow_program {
        command += " --allow-program";
    }
    if let Some(seed) = args.seed {
        command += &format!(" --seed {seed}");
    }
    for (key, value) in &args.set {
        command += &format!(" --set {}", shell_word(&format!("{key}={value}")));
    }
    command
}

/// The network of a scenario, as a picture of the page.
struct DrawnNetwork {
    animation: Animation,
    /// The largest number of hosts and routers among the cells of the scenario.
    most_nodes: usize,
}

/// Draws the network of each scenario under the base assumptions. If cells of one scenario have different
/// networks, the network of the first cell is drawn, and its text says how large the others are.
fn networks(study: &Study) -> Vec<Animation> {
    let mut networks: Vec<DrawnNetwork> = Vec::new();
    for cell in study.cells.iter().filter(|cell| cell.assumption == BASE_SET) {
        let found = network(&cell.full_runs.scenario);
        let nodes = found.nodes.len();
        if let Some(known) = networks.iter_mut().find(|known| known.animation.name == found.name) {
            known.most_nodes = nodes.max(known.most_nodes);
        } else {
            let about = format!("As in the cell {}, under the base assumptions.", cell.name);
            networks.push(DrawnNetwork { animation: Animation { about, ..found }, most_nodes: nodes });
        }
    }
    let mut animations = Vec::new();
    for DrawnNetwork { mut animation, most_nodes } in networks {
        if animation.nodes.len() < most_nodes {
            animation.about += &format!(" Other cells have up to {most_nodes} hosts and routers.");
        }
        animations.push(animation);
    }
    animations
}

/// Returns the arenas that `--arena` selects, each once. Without `--arena` it is the simulator, or the
/// emulator if a scenario has a program, which can run only there.
pub(super) fn arena_names(kinds: &[StudyArena], study: &Study) -> Vec<ArenaName> {
    if kinds.is_empty() {
        let scenarios = study.cells.iter().map(|cell| &*cell.full_runs.scenario);
        return vec![if has_program(scenarios) { ArenaName::Emu } else { ArenaName::Sim }];
    }
    let mut arenas = Vec::new();
    for kind in kinds {
        let arena = match kind {
            StudyArena::Sim => ArenaName::Sim,
            StudyArena::Emu => ArenaName::Emu,
        };
        if !arenas.contains(&arena) {
            arenas.push(arena);
        }
    }
    arenas
}

pub(super) const fn arena_kind(arena: ArenaName) -> ArenaKind {
    match arena {
        ArenaName::Sim => ArenaKind::Sim,
        ArenaName::Emu => ArenaKind::Emu,
        // `study run --arena` does not accept this arena. A campaign measures between live hosts.
        ArenaName::Campaign => ArenaKind::Live,
    }
}
