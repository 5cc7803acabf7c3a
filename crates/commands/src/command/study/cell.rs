//! `talkpath study cell` runs one cell of a study as an ordinary run, with all records and tables of such a
//! run.
//!
//! The scenario is that of `study run`: the same file with the same keys set, and the same seed for each
//! repetition. So the figures of a repetition are the same, and the run shows what the study's medians are
//! made of.

use std::collections::BTreeSet;

use talkpath_experiment::place::Place;
use talkpath_report::run_table;
use talkpath_scenario::{Files, Located, NoFiles, Options, Plan, Setting, Source, fitting_name};
use talkpath_study::{ArenaName, Cell, CellSource, Changes, Study};

use super::find::{find, path_of};
use super::run::{arena_kind, arena_names};
use crate::args::{StudyCellArgs, quoted};
use crate::command::allowed::{check_program, scenarios};
use crate::command::run::run_plan;
use crate::command::{Conclusion, Context, again, conclude};
use crate::failure::Failure;
use crate::place;
use crate::scenario_file::{FolderFiles, load};
use crate::terminal::table_style;

/// The largest number of names that an error lists. We chose 12, because a terminal's line has room for as
/// many.
const MAX_NAMES: usize = 12;

/// Runs the cell, and prints the tables of the run.
pub(super) fn run(args: &StudyCellArgs, context: Context<'_>) -> Result<(), Failure> {
    let changes = Changes { seed: args.seed, set: args.set.clone() };
    let study = find(&args.name, &changes)?;
    let arena = arena_names(args.arena.as_slice(), &study).first().copied().unwrap_or(ArenaName::Sim);
    let cell = find_cell(&study, args, arena)?;
    let plan = plan_of(&study, cell, args)?;
    check_program(&format!("the study {}", study.name), scenarios(&plan), args.allow_program)?;
    let place = Place::new(arena_kind(arena), None);
    let outcome = run_plan(&plan, place.clone(), false, None, context)?;
    let table = run_table(&outcome.summary, &table_style(args.tables));
    let next_commands = again(&outcome.dir, &place::as_flags(&place));
    conclude(outcome, &Conclusion { table: &table, next_commands: &next_commands, demand: None }, context)
}

/// Finds the cell that the flags name. An error lists the names that there are.
fn find_cell<'s>(study: &'s Study, args: &StudyCellArgs, arena: ArenaName) -> Result<&'s Cell, Failure> {
    let set_name = args.under.as_deref().unwrap_or_else(|| &study.assumptions[0].name);
    let Some(set) = study.assumptions.iter().position(|set| set.name == set_name) else {
        let names = study.assumptions.iter().map(|set| set.name.as_str());
        return Err(Failure::Usage(format!("--under {set_name}: {} has {}", study.name, listed(names))));
    };
    if let Some(cell) = study.cell(&args.cell, arena, set) {
        return Ok(cell);
    }
    let of_name: Vec<&Cell> = study.cells.iter().filter(|cell| cell.name == args.cell).collect();
    if of_name.is_empty() {
        let in_arena = study.cells.iter().filter(|cell| cell.arena == arena && cell.assumption == set);
        let mut names: Vec<&str> = in_arena.map(|cell| cell.name.as_str()).collect();
        names.sort_by_key(|name| characters_beyond_common_beginning(name, &args.cell));
        return Err(Failure::Usage(format!(
            "no cell \"{}\" in {}; there are {}",
            args.cell,
            study.name,
            listed(names.into_iter())
        )));
    }
    let places: BTreeSet<String> = of_name
        .iter()
        .map(|cell| format!("{} under {}", cell.arena, study.assumptions[cell.assumption].name))
        .collect();
    Err(Failure::Usage(format!(
        "{} does not run in {arena} under {set_name}; it runs in {}",
        args.cell,
        listed(places.iter().map(String::as_str))
    )))
}

/// Returns how many characters of `wanted` follow the beginning that it has in common with `name`.
fn characters_beyond_common_beginning(name: &str, wanted: &str) -> usize {
    let common = name.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    wanted.chars().count().saturating_sub(common)
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Makes the plan of the cell: the scenario file of the study with the keys that the study sets.
fn plan_of(study: &Study, cell: &Cell, args: &StudyCellArgs) -> Result<Plan, Failure> {
    let runs = &cell.full_runs;
    let CellSource { file, set, seed } = &*runs.source;
    let text = study.files.iter().find(|(name, _)| name == file).map(|(_, text)| text.as_str());
    let source = Source::new(file.clone(), text.unwrap_or_default());
    let assumption = &study.assumptions[cell.assumption].name;
    let name = format!("{} of {}, under {assumption}", cell.name, study.name);
    let mut settings = vec![Setting::by("talkpath", "name", quoted(&fitting_name(&name)))];
    settings.extend(set.iter().chain(&args.set).cloned().map(Setting::from));
    let options = Options {
        set: settings,
        seed: seed.or(args.seed),
        repeat: Some(args.repeat.unwrap_or(runs.repeat)),
        ..Options::default()
    };
    match path_of(&args.name) {
        Some(path) => load(&source, &options, &FolderFiles::beside(&path)),
        None => load(&source, &options, &FilesOfBuiltIn { study }),
    }
}

/// The files of a built-in study. They are not on the disk, so their texts can be read, and they cannot be
/// sent.
struct FilesOfBuiltIn<'a> {
    study: &'a Study,
}

impl Files for FilesOfBuiltIn<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        match self.study.files.iter().find(|(known, _)| known == name) {
            Some((_, text)) => Ok(text.clone()),
            None => NoFiles.text(name),
        }
    }

    fn locate(&self, _: &str) -> Result<Located, String> {
        Err("the file is inside of this program; `study run` keeps a copy of the study under study/, whose folder \
             can be named in place of the study"
            .to_owned())
    }
}
