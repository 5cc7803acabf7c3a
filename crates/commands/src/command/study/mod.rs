//! `talkpath study` lists, shows, checks and runs studies, and judges their claims. Each subcommand with more
//! than a few lines has a file of its own.

mod campaign;
mod cell;
mod describe;
mod find;
mod folder;
mod kept;
mod run;
mod runner;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use talkpath_experiment::json::json;
use talkpath_experiment::store::whole::write_bytes;
use talkpath_report::study_table;
use talkpath_study::{ArenaName, Changes, ClaimOutcome, Outcome, Selection, Study, embedded};
use talkpath_units::counted;

use self::find::{find, load_embedded};
use crate::args::{Common, StudyArgs, StudyCommand};
use crate::command::Context;
use crate::failure::Failure;
use crate::terminal::{self, Terminal, program, shell_path};

/// The name of the file of a study.
const STUDY_FILE: &str = "study.toml";
/// The file of the outcome of a run, in the form in which `--json` prints it.
const OUTCOME: &str = "study.json";
/// The files of the smallest study. It has one claim, which gets the verdict that it expects.
const SMALLEST_STUDY: [(&str, &str); 2] =
    [(STUDY_FILE, include_str!("smallest/study.toml")), ("call.toml", include_str!("smallest/call.toml"))];

/// Runs the subcommand.
pub fn run(args: &StudyArgs, context: Context<'_>) -> Result<(), Failure> {
    let Context { common, terminal, .. } = context;
    match &args.command {
        StudyCommand::List => list(common, terminal),
        StudyCommand::Show { name } => {
            terminal.result(&describe::describe(&find(name, &Changes::default())?))
        }
        StudyCommand::Check { name } => check(name, terminal),
        StudyCommand::New { folder } => write_smallest(folder, terminal),
        StudyCommand::Diff(args) => kept::diff(args, common, terminal),
        StudyCommand::Keep(args) => kept::keep(args, terminal),
        StudyCommand::Fill(args) => kept::fill(args, terminal),
        StudyCommand::Run(args) => run::run(args, context),
        StudyCommand::Cell(args) => cell::run(args, context),
        StudyCommand::Judge(args) => campaign::run(args, common, terminal),
    }
}

fn list(common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let (mut text, mut entries) = (String::new(), Vec::new());
    for entry in embedded() {
        let Study { name, title, claims, .. } = load_embedded(entry, &Changes::default())?;
        entries.push(serde_json::json!({ "study": name, "title": title, "claims": claims.len() }));
        text.push_str(&format!("{name}  {title} ({})\n", counted(claims.len(), "claim")));
    }
    if common.json() { terminal::print(&json(&entries)) } else { terminal.result(&text) }
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
fn write_smallest(folder: &Path, terminal: Terminal) -> Result<(), Failure> {
    if folder.exists() {
        return Err(Failure::Usage(format!(
            "{}: the folder exists already; name a new one",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    for (name, text) in SMALLEST_STUDY {
        write_bytes(&folder.join(name), text.as_bytes())?;
    }
    let (program, word) = (program(), shell_path(folder));
    terminal.result(&format!(
        "{}: a study of one claim\nnext: `{program} study check {word}`, then `{program} study run {word}`\n",
        folder.display()
    ))
}

/// Selects the claims that `ids` name, or all claims if there are no `ids`. A claim may be named with its
/// study (`STUDY/CLAIM`) or without it.
fn select(study: &Study, arenas: Vec<ArenaName>, quick: bool, ids: &[String]) -> Result<Selection, Failure> {
    let prefix = format!("{}/", study.name);
    let claims = ids.iter().map(|id| id.strip_prefix(&prefix).unwrap_or(id).to_owned());
    let selection = Selection { arenas, is_quick: quick, claim_ids: claims.collect() };
    let is_known = |id: &&String| study.claims.iter().any(|claim| claim.id == **id);
    if let Some(unknown) = selection.claim_ids.iter().find(|id| !is_known(id)) {
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
    let mut unexpected: Vec<String> = Vec::new();
    for (claim, verdict) in outcome.unexpected() {
        let place = if has_several_arenas { format!(" in {}", verdict.arena) } else { String::new() };
        unexpected.push(format!("{} {}{place}, expected {}", name(claim), verdict.verdict, verdict.expected));
    }
    // A claim that --quick judges only in part does not change the exit code, not even with --strict. The
    // warning says that the run has not judged everything.
    let partly_judged: Vec<_> = outcome.partly_judged().map(|(claim, _)| name(claim)).collect();
    if !partly_judged.is_empty() {
        let remedy = "partly judged, so neither reproduced nor found to differ: run without --quick";
        terminal.warning(&format!("{}: {remedy}", partly_judged.join(", ")));
    }
    let disturbed: Vec<_> = outcome.disturbed().map(|(claim, _)| name(claim)).collect();
    if !disturbed.is_empty() {
        let message = format!("no verdict, since the machine disturbed their runs: {}", disturbed.join(", "));
        if strict {
            unexpected.push(format!("--strict: {message}"));
        } else {
            terminal.warning(&message);
        }
    }
    if unexpected.is_empty() { Ok(()) } else { Err(Failure::NotHeld(unexpected.join("; "))) }
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
