//! `talkpath study`: which there are, what one says, and running it.

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
use self::runner::{Runner, Stand, in_words};
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

/// Lists, shows or runs.
pub fn run(
    args: &StudyArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    match &args.command {
        StudyCommand::List => list(common, terminal),
        StudyCommand::Show { name } => terminal.result(&shown(&find(name, &Changes::default())?)),
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

/// Finds every mistake, and says what there is if there is none.
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

/// Writes the smallest study.
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

/// A study of one claim that runs and comes out as it expects.
const SMALLEST: [(&str, &str); 2] =
    [(STUDY_FILE, include_str!("smallest/study.toml")), ("call.toml", include_str!("smallest/call.toml"))];

/// What a study's own file is called.
const STUDY_FILE: &str = "study.toml";

fn run_study(
    args: &StudyRunArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let study = find(&args.name, &Changes { seed: args.seed, set: args.set.clone() })?;
    let selection = selected(&study, arena_names(&args.arena), args.quick, &args.claims)?;
    let stop = interrupt::install()?;
    // An arena that is not available here is found out before anything runs.
    let mut stands = Vec::new();
    for &arena in &selection.arenas {
        // It needs no privilege to keep processors awake.
        let place = Place { keep_awake: arena.is_real_time(), ..Place::of(kind(arena), None) };
        let most = match arena.is_real_time() {
            true => common.jobs.map_or(MOST_BESIDE, NonZeroUsize::get),
            false => jobs(common),
        };
        let workers = arenas.connect(&place, most)?;
        stands.push(Stand { arena, place, workers });
    }
    let identity = Identity::new(&study, args.quick);
    let folder = match args.resume {
        true => StudyDir::newest(&common.out, &identity)?,
        false => StudyDir::create(&common.out, &Stopwatch::start().started_for_file_name(), &identity)?,
    };
    folder.keep_study(&study)?;
    terminal.detail(&format!("run directory: {}", folder.path().display()));
    let told = TerminalObserver::new(terminal, common.records());
    let runner = Runner {
        study: &study,
        selection: &selection,
        folder: &folder,
        arenas,
        terminal,
        told: &told,
        stop: &stop,
    };
    let (samples, failure) = runner.run(&mut stands)?;
    let real_time = selection.arenas.iter().any(|arena| arena.is_real_time());
    let day = real_time.then(|| folder.day()).flatten();
    let outcome = Outcome { day, ..judge(&study, &selection, &samples) };
    let shown = conclude((&study, &outcome), args, &folder, common, terminal);
    let judged = match failure {
        Some(_) => Ok(()),
        None => verdicts(&outcome, args.strict, terminal),
    };
    terminal.end_with([failure, judged.err(), shown.err()])
}

/// The claims that `ids` name, all if there are none: as they are shown, with their study, or by themselves.
fn selected(
    study: &Study,
    arenas: Vec<ArenaName>,
    quick: bool,
    ids: &[String],
) -> Result<Selection, Failure> {
    let of_study = format!("{}/", study.name);
    let claims = ids.iter().map(|id| id.strip_prefix(&of_study).unwrap_or(id).to_owned());
    let selection = Selection { arenas, quick, claims: claims.collect() };
    let is_known = |id: &&String| study.claims.iter().any(|claim| claim.id == **id);
    if let Some(unknown) = selection.claims.iter().find(|id| !is_known(id)) {
        let known: Vec<_> = study.claims.iter().map(|claim| claim.id.as_str()).collect();
        return Err(Failure::Usage(format!("--claim {unknown}: {} has {}", study.name, known.join(", "))));
    }
    Ok(selection)
}

/// What is to be said of the verdicts, and the exit code; with `strict`, also if claims have none.
fn verdicts(outcome: &Outcome, strict: bool, terminal: Terminal) -> Result<(), Failure> {
    let of_study = format!("{}/", outcome.study);
    let several = outcome.arenas.len() > 1;
    let unexpected = outcome.unexpected().map(|(claim, found)| {
        let place = if several { format!(" in {}", found.arena) } else { String::new() };
        format!("{of_study}{} {}{place}, expected {}", claim.id, found.verdict, found.expected)
    });
    let mut unexpected: Vec<_> = unexpected.collect();
    // No verdict to exit by, with --strict either; but a run that ends with 0 must not pass for one that
    // judged everything.
    let named = |claim: &ClaimOutcome| format!("{of_study}{}", claim.id);
    let partly: Vec<_> = outcome.partly_judged().map(|(claim, _)| named(claim)).collect();
    if !partly.is_empty() {
        let open = "partly judged, so neither reproduced nor found to differ: run without --quick";
        terminal.warning(&format!("{}: {open}", partly.join(", ")));
    }
    let disturbed: Vec<_> = outcome.disturbed().map(|(claim, _)| named(claim)).collect();
    if !disturbed.is_empty() {
        let told = format!("no verdict, since the machine disturbed their runs: {}", disturbed.join(", "));
        match strict {
            true => unexpected.push(format!("--strict: {told}")),
            false => terminal.warning(&told),
        }
    }
    if unexpected.is_empty() { Ok(()) } else { Err(Failure::NotHeld(unexpected.join("; "))) }
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
        // Not among those that --arena takes.
        ArenaName::Campaign => ArenaKind::Live,
    }
}

/// The network of each scenario: that of the first cell that runs it under the base. If another of its cells
/// has more hosts and routers, its text says how many.
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
    let told = |(network, most): (Animation, usize)| match network.nodes.len() {
        nodes if nodes < most => Animation {
            about: format!("{} Other cells have up to {most} hosts and routers.", network.about),
            ..network
        },
        _ => network,
    };
    networks.into_iter().map(told).collect()
}

fn conclude(
    (study, outcome): (&Study, &Outcome),
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
    // Of the copy beside the page, which whoever has the page has too.
    let name = shell_word(&format!("{STUDY_COPY}/{}", outcome.study));
    let command = format!(
        "# In this directory, which holds the study:\ntalkpath study run {name}{claims} --arena {arenas}{quick}{seed}{set}"
    );
    write_bytes(&folder.file(OUTCOME), &json(outcome))?;
    let page = study_page(outcome, &networks(study), env!("CARGO_PKG_VERSION"), &command);
    write_bytes(&folder.file(REPORT), page.as_bytes())?;
    conclude_page(outcome, &folder.file(REPORT), common, terminal)
}

/// Prints the warnings, and the table or the JSON; `page` is where the report is.
fn conclude_page(outcome: &Outcome, page: &Path, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    for warning in &outcome.warnings {
        terminal.warning(warning);
    }
    if common.json() {
        return terminal::print(&json(outcome));
    }
    let table = study_table(outcome, &terminal::style());
    terminal.result(&format!("{table}\nReport: {}\n", page.display()))
}

/// The study that is built in under this name, or the one in a file.
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

/// A study file with the scenarios and tables beside it.
fn load_file(path: &Path, changes: &Changes) -> Result<Study, Failure> {
    let source = Source::new(path.display().to_string(), scenario_file::read(path)?);
    let beside = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in fs::read_dir(beside).map_err(|why| Failure::read(beside, &why))? {
        let other = entry.map_err(|why| Failure::read(beside, &why))?.path();
        let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_read = other.extension().is_some_and(|it| it == "toml" || it == "csv");
        if is_read && other.file_name() != path.file_name() {
            match scenario_file::read(&other) {
                Ok(text) => files.push(Source::new(name, text)),
                // Which files a study names is known once it is loaded. One whose name stands nowhere in it
                // is not the study's; one that only a comment names is refused, which is the safe mistake.
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

/// A study for a person.
fn shown(study: &Study) -> String {
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
        let selected = |quick| Selection { arenas: vec![arena], quick, claims: Vec::new() };
        let [full, quick] = [false, true].map(|quick| length(study, &selected(quick)));
        text.push_str(&format!("  --arena {arena}: {full}; with --quick: {quick}\n"));
    }
    text
}

/// `reproduced`, or if arenas differ `sim reproduced, emu differs`.
fn expected(claim: &Claim) -> String {
    let mut verdicts = claim.expected.iter();
    match verdicts.next() {
        Some((_, first)) if verdicts.all(|(_, other)| other == first) => first.to_string(),
        _ => {
            let each = claim.expected.iter().map(|(arena, verdict)| format!("{arena} {verdict}"));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// `40 cells, 200 runs, 1 h 12 min of path time`.
fn length(study: &Study, selection: &Selection) -> String {
    let cells = selection.cells(study);
    let forms: Vec<_> = cells.iter().filter_map(|cell| selection.form(cell)).collect();
    let runs: u64 = forms.iter().map(|form| form.repeat).sum();
    let seconds: u64 =
        forms.iter().map(|form| form.repeat.saturating_mul(form.scenario.duration.as_millis() / 1000)).sum();
    format!("{}, {}, {} of path time", counted(cells.len(), "cell"), counted(runs, "run"), in_words(seconds))
}

/// The most runs in real time beside each other if `--jobs` does not say (chosen: by far fewer of most fit a
/// machine, and each takes some hundred descriptors and ten threads).
const MOST_BESIDE: usize = 16;
/// What the run found, as `--json` prints it.
const OUTCOME: &str = "study.json";
