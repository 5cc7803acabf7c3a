//! `talkpath study` lists, shows, checks and runs studies, and judges their claims.

mod campaign;
mod folder;
mod kept;
mod runner;

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use talkpath_report::{Animation, study_page, study_table};
use talkpath_scenario::Source;
use talkpath_study::{
    ArenaName, Changes, Claim, ClaimOutcome, Embedded, Outcome, Selection, Study, arena_list, embedded,
    judge, load_with,
};

use self::folder::{Identity, STUDY_COPY, StudyDir};
use self::runner::{ConnectedArena, Runner, in_words};
use super::jobs;
use crate::arenas::Arenas;
use crate::args::{Common, StudyArena, StudyArgs, StudyCommand, StudyRunArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::network::network;
use crate::running::TerminalObserver;
use crate::scenario_file;
use crate::terminal::{self, Terminal, program, shell_path, shell_word};
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::json::json;
use talkpath_experiment::part::REPORT;
use talkpath_experiment::place::Place;
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::store::whole::write_bytes;
use talkpath_units::counted;

/// Runs the subcommand.
pub fn run(
    args: &StudyArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    match &args.command {
        StudyCommand::List => list(common, terminal),
        StudyCommand::Show { name } => terminal.result(&describe(&find(name, &Changes::default())?)),
        StudyCommand::Check { name } => check(name, terminal),
        StudyCommand::New { folder } => new(folder, terminal),
        StudyCommand::Diff(args) => kept::diff(args, common, terminal),
        StudyCommand::Keep(args) => kept::keep(args, terminal),
        StudyCommand::Fill(args) => kept::fill(args, terminal),
        StudyCommand::Run(args) => run_study(args, common, arenas, terminal),
        StudyCommand::Judge(args) => campaign::run(args, common, terminal),
    }
}

fn list(common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let (mut text, mut all) = (String::new(), Vec::new());
    for entry in embedded() {
        let study = load_embedded(entry, &Changes::default())?;
        all.push(
            serde_json::json!({ "study": study.name, "title": study.title, "claims": study.claims.len() }),
        );
        let claims = counted(study.claims.len(), "claim");
        text.push_str(&format!("{}  {} ({claims})\n", study.name, study.title));
    }
    if common.json() { terminal::print(&json(&all)) } else { terminal.result(&text) }
}

/// Reports every mistake of a study. If there is none, it says what the study has.
fn check(name: &str, terminal: Terminal) -> Result<(), Failure> {
    let study = find(name, &Changes::default())?;
    for contradiction in study.basis_contradictions() {
        terminal.warning(&contradiction);
    }
    let checks: usize = study.claims.iter().map(|claim| claim.checks.len()).sum();
    let cells: BTreeSet<&str> = study.cells.iter().map(|cell| cell.name.as_str()).collect();
    terminal.result(&format!(
        "{}: valid: {}, {}, {}, {}\n",
        study.name,
        counted(cells.len(), "cell"),
        counted(study.assumptions.len(), "assumption set"),
        counted(study.claims.len(), "claim"),
        counted(checks, "check")
    ))
}

/// Writes the smallest study into a new folder.
fn new(folder: &Path, terminal: Terminal) -> Result<(), Failure> {
    if folder.exists() {
        return Err(Failure::Usage(format!("{}: is there already; name a new folder", folder.display())));
    }
    fs::create_dir_all(folder).map_err(|why| Failure::write(folder, why))?;
    for (name, text) in SMALLEST {
        write_bytes(&folder.join(name), text.as_bytes())?;
    }
    let (program, shown, word) = (program(), folder.display(), shell_path(folder));
    terminal.result(&format!(
        "{shown}: a study of one claim\nnext: `{program} study check {word}`, then `{program} study run {word}`\n"
    ))
}

/// The files of the smallest study. It has one claim, which gets the verdict that it expects.
const SMALLEST: [(&str, &str); 2] =
    [(STUDY_FILE, include_str!("smallest/study.toml")), ("call.toml", include_str!("smallest/call.toml"))];

/// The name of the file of a study.
const STUDY_FILE: &str = "study.toml";

/// Runs the scenarios of a study, judges its claims, and writes the page.
fn run_study(
    args: &StudyRunArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let study = find(&args.name, &Changes { seed: args.seed, set: args.set.clone() })?;
    let selection = select(&study, arena_names(&args.arena), args.quick, &args.claims)?;
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
    folder.keep_study(&study)?;
    terminal.detail(&format!("run directory: {}", folder.path().display()));
    let progress = TerminalObserver::new(terminal, common.records());
    let runner = Runner {
        study: &study,
        selection: &selection,
        folder: &folder,
        arenas,
        terminal,
        progress: &progress,
        stop: &stop,
    };
    let (samples, failure) = runner.run(&mut connected)?;
    let mut outcome = judge(&study, &selection, &samples);
    // A run in real time is quoted with its day.
    if selection.arenas.iter().any(|arena| arena.is_real_time()) {
        outcome.day = folder.day();
    }
    let printed = write_outcome(&study, &outcome, args, &folder, common, terminal);
    // The verdicts of a run that ended early are not the final ones.
    let judged = if failure.is_some() { Ok(()) } else { check_verdicts(&outcome, args.strict, terminal) };
    terminal.end_with([failure, judged.err(), printed.err()])
}

/// Connects to an arena.
fn connect(arena: ArenaName, common: &Common, arenas: &dyn Arenas) -> Result<ConnectedArena, Failure> {
    // Keeping the processors awake needs no privilege.
    let place = Place { keep_awake: arena.is_real_time(), ..Place::new(kind(arena), None) };
    let most_workers = if arena.is_real_time() {
        common.jobs.map_or(MOST_CONCURRENT_RUNS, NonZeroUsize::get)
    } else {
        jobs(common)
    };
    let workers = arenas.connect(&place, most_workers)?;
    Ok(ConnectedArena { arena, place, workers })
}

/// Selects the claims that `ids` name, or all claims if there are no `ids`. A claim may be named with its
/// study (`STUDY/CLAIM`) or without it.
fn select(study: &Study, arenas: Vec<ArenaName>, quick: bool, ids: &[String]) -> Result<Selection, Failure> {
    let prefix = format!("{}/", study.name);
    let claims = ids.iter().map(|id| id.strip_prefix(&prefix).unwrap_or(id).to_owned());
    let selection = Selection { arenas, quick, claims: claims.collect() };
    let is_known = |id: &&String| study.claims.iter().any(|claim| claim.id == **id);
    if let Some(unknown) = selection.claims.iter().find(|id| !is_known(id)) {
        let known: Vec<_> = study.claims.iter().map(|claim| claim.id.as_str()).collect();
        return Err(Failure::Usage(format!("--claim {unknown}: {} has {}", study.name, known.join(", "))));
    }
    Ok(selection)
}

/// Returns a failure if a verdict is not the expected one. With `strict` it also fails if a claim has no
/// verdict because the machine disturbed its runs; without `strict` that is a warning.
fn check_verdicts(outcome: &Outcome, strict: bool, terminal: Terminal) -> Result<(), Failure> {
    let name = |claim: &ClaimOutcome| format!("{}/{}", outcome.study, claim.id);
    let has_several_arenas = outcome.arenas.len() > 1;
    let mut mistakes: Vec<String> = Vec::new();
    for (claim, found) in outcome.unexpected() {
        let place = if has_several_arenas { format!(" in {}", found.arena) } else { String::new() };
        mistakes.push(format!("{} {}{place}, expected {}", name(claim), found.verdict, found.expected));
    }
    // A claim that --quick judges only in part does not change the exit code, not even with --strict. The
    // warning says that the run has not judged everything.
    let partly_judged: Vec<_> = outcome.partly_judged().map(|(claim, _)| name(claim)).collect();
    if !partly_judged.is_empty() {
        let open = "partly judged, so neither reproduced nor found to differ: run without --quick";
        terminal.warning(&format!("{}: {open}", partly_judged.join(", ")));
    }
    let disturbed: Vec<_> = outcome.disturbed().map(|(claim, _)| name(claim)).collect();
    if !disturbed.is_empty() {
        let message = format!("no verdict, since the machine disturbed their runs: {}", disturbed.join(", "));
        if strict {
            mistakes.push(format!("--strict: {message}"));
        } else {
            terminal.warning(&message);
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::NotHeld(mistakes.join("; "))) }
}

/// The arenas that `--arena` selects, each once.
fn arena_names(kinds: &[StudyArena]) -> Vec<ArenaName> {
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

const fn kind(arena: ArenaName) -> ArenaKind {
    match arena {
        ArenaName::Sim => ArenaKind::Sim,
        ArenaName::Emu => ArenaKind::Emu,
        // `study run --arena` does not take this one. A campaign measures between live hosts.
        ArenaName::Campaign => ArenaKind::Live,
    }
}

/// Draws the network of each scenario under the base assumptions. If cells of one scenario have different
/// networks, the network of the first cell is drawn, and its text says how large the others are.
fn networks(study: &Study) -> Vec<Animation> {
    let mut networks: Vec<(Animation, usize)> = Vec::new();
    for cell in study.cells.iter().filter(|cell| cell.assumption == 0) {
        let found = network(&cell.full.scenario);
        let nodes = found.nodes.len();
        match networks.iter_mut().find(|(known, _)| known.name == found.name) {
            Some((_, most)) => *most = nodes.max(*most),
            None => {
                let about = format!("As in the cell {}, under the base assumptions.", cell.name);
                networks.push((Animation { about, ..found }, nodes));
            }
        }
    }
    let mut drawn = Vec::new();
    for (mut network, most) in networks {
        if network.nodes.len() < most {
            network.about += &format!(" Other cells have up to {most} hosts and routers.");
        }
        drawn.push(network);
    }
    drawn
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
    let claims: String = args.claims.iter().map(|id| format!(" --claim {}", shell_word(id))).collect();
    let quick = if args.quick { " --quick" } else { "" };
    let seed = args.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
    let set = |(key, value): &(_, _)| format!(" --set {}", shell_word(&format!("{key}={value}")));
    let set: String = args.set.iter().map(set).collect();
    let arenas = arena_list(&outcome.arenas);
    // The command names the copy of the study beside the page, because whoever has the page also has the
    // copy.
    let name = shell_word(&format!("{STUDY_COPY}/{}", outcome.study));
    let command = format!(
        "# In this directory, which holds the study:\ntalkpath study run {name}{claims} --arena {arenas}{quick}{seed}{set}"
    );
    write_bytes(&folder.file(OUTCOME), &json(outcome))?;
    let page = study_page(outcome, &networks(study), env!("CARGO_PKG_VERSION"), &command);
    write_bytes(&folder.file(REPORT), page.as_bytes())?;
    print_outcome(outcome, &folder.file(REPORT), common, terminal)
}

/// Prints the warnings, and then the table or the JSON. `page` is the file of the report.
fn print_outcome(outcome: &Outcome, page: &Path, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    for warning in &outcome.warnings {
        terminal.warning(warning);
    }
    if common.json() {
        return terminal::print(&json(outcome));
    }
    let table = study_table(outcome, &terminal::style());
    terminal.result(&format!("{table}\nReport: {}\n", page.display()))
}

/// Finds a study by the name of a built-in study, by its folder or by its file.
fn find(name: &str, changes: &Changes) -> Result<Study, Failure> {
    if let Some(entry) = embedded().iter().find(|entry| entry.name == name) {
        return load_embedded(entry, changes);
    }
    let path = Path::new(name);
    if path.is_dir() {
        return load_file(&path.join(STUDY_FILE), changes);
    }
    if !name.ends_with(".toml") && !path.exists() {
        let known: Vec<_> = embedded().iter().map(|entry| entry.name).collect();
        let program = program();
        return Err(Failure::Usage(format!(
            "no study \"{name}\"; there are {}\nhelp: `{program} study list`, or give the folder of a study",
            known.join(", ")
        )));
    }
    load_file(path, changes)
}

fn load_embedded(entry: &Embedded, changes: &Changes) -> Result<Study, Failure> {
    load_texts(entry.name, &entry.source(), &entry.files(), changes)
}

/// Reads a study file, with the scenarios and tables in its folder.
fn load_file(path: &Path, changes: &Changes) -> Result<Study, Failure> {
    let source = Source::new(path.display().to_string(), scenario_file::read(path)?);
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in fs::read_dir(beside).map_err(|why| Failure::read(beside, &why))? {
        let other = entry.map_err(|why| Failure::read(beside, &why))?.path();
        let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_read = other.extension().is_some_and(|ending| ending == "toml" || ending == "csv");
        if is_read && other.file_name() != path.file_name() {
            match scenario_file::read(&other) {
                Ok(text) => files.push(Source::new(name, text)),
                // Which files the study names is known only after it has been loaded. A file whose name is
                // nowhere in the text of the study does not belong to it, so the error does not matter. If
                // only a comment has the name, the study is refused without need, but nothing goes wrong.
                Err(_) if !source.text.contains(&name) => {}
                Err(why) => return Err(why),
            }
        }
    }
    let folder = beside.canonicalize().unwrap_or_else(|_| beside.to_path_buf());
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    load_texts(if name.is_empty() { "study" } else { &name }, &source, &files, changes)
}

fn load_texts(name: &str, source: &Source, files: &[Source], changes: &Changes) -> Result<Study, Failure> {
    load_with(name, source, files, changes).map_err(|diagnostics| Failure::Scenario {
        file: source.name.clone(),
        mistakes: diagnostics.iter().map(|mistake| scenario_file::show(source, mistake)).collect(),
    })
}

/// Describes a study for a person.
fn describe(study: &Study) -> String {
    let mut text = format!(
        "{}: {}\n{}, {} ({})\n\n{}\n\n{}\n\nAssumption sets:\n",
        study.name,
        study.title,
        study.authors.join(", "),
        study.year,
        study.source,
        study.question,
        study.set_up
    );
    for assumption in &study.assumptions {
        text.push_str(&format!("  {}: {}\n", assumption.name, assumption.text));
    }
    text.push_str("\nClaims:\n");
    for claim in &study.claims {
        text.push_str(&format!(
            "  {}/{}  {}\n      published: {}\n      expected:  {}\n      why:       {}\n",
            study.name,
            claim.id,
            claim.text,
            claim.published,
            expected(claim),
            claim.why
        ));
    }
    text.push_str(&format!(
        "\nRuns ({} start phases each unless a cell or an arena says otherwise):\n",
        study.repeat
    ));
    for arena in ArenaName::RUNNABLE {
        let selection = |quick| Selection { arenas: vec![arena], quick, claims: Vec::new() };
        let full = length(study, &selection(false));
        let quick = length(study, &selection(true));
        text.push_str(&format!("  --arena {arena}: {full}; with --quick: {quick}\n"));
    }
    text
}

/// Writes the expected verdicts of a claim, such as `reproduced`. If the arenas differ, it writes for example
/// `sim reproduced, emu differs`.
fn expected(claim: &Claim) -> String {
    let mut verdicts = claim.expected.values();
    if let Some(first) = verdicts.next()
        && verdicts.all(|other| other == first)
    {
        return first.to_string();
    }
    let by_arena = claim.expected.iter().map(|(arena, verdict)| format!("{arena} {verdict}"));
    by_arena.collect::<Vec<_>>().join(", ")
}

/// Writes how much is selected, such as `40 cells, 200 runs, 1 h 12 min of path time`.
fn length(study: &Study, selection: &Selection) -> String {
    let cells = selection.cells(study);
    let forms: Vec<_> = cells.iter().filter_map(|cell| selection.form(cell)).collect();
    let runs: u64 = forms.iter().map(|form| form.repeat).sum();
    let seconds: u64 =
        forms.iter().map(|form| form.repeat.saturating_mul(form.scenario.duration.as_millis() / 1000)).sum();
    format!("{}, {}, {} of path time", counted(cells.len(), "cell"), counted(runs, "run"), in_words(seconds))
}

/// How many runs in real time are concurrent at most, unless `--jobs` says otherwise (chosen). Far fewer of
/// most scenarios fit on a machine, and each run takes about a hundred descriptors and ten threads.
const MOST_CONCURRENT_RUNS: usize = 16;
/// The file of the outcome, in the form in which `--json` prints it.
const OUTCOME: &str = "study.json";
