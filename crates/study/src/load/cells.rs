//! Makes the cells of a study.
//!
//! A `[[cells]]` entry names a scenario file and axes. It stands for one cell for each combination of the
//! values of the axes. Each cell has a scenario in every arena and under every assumption set that it runs
//! under. The keys of a scenario are set in this order, and a later setting wins:
//!
//! 1. the scenario file;
//! 2. `set` of the `[[cells]]` entry, then the keys of the axes' values;
//! 3. the assumption set;
//! 4. the arena, then what the `[[cells]]` entry says for that arena;
//! 5. for the shorter run, what the arena and the entry say under `quick`;
//! 6. the changes of the command line.

use std::collections::BTreeMap;
use std::sync::Arc;

use talkpath_model::Scenario;
use talkpath_scenario::{Diagnostics, Options, Source, load_with_files};
use talkpath_units::Seed;
use toml::Spanned;

use super::{Loader, Setting, settings};
use crate::arena::ArenaName;
use crate::file::{ArenaEntry, CellsEntry, CellsQuick, CellsQuickEntry, Draws};
use crate::mistakes::names_help;
use crate::reuse::hash;
use crate::study::{Cell, CellRuns, CellSource, Kept};
use crate::words::matches_pattern;

/// A cell before its scenarios are made.
struct UnmadeCell<'a> {
    /// The `[[cells]]` entry that the cell comes from.
    entry: &'a CellsEntry,
    name: String,
    /// The settings of the entry and of the axes' values.
    set: Vec<Setting>,
}

/// One arena and one assumption set, for which a cell has a scenario.
#[derive(Clone, Copy)]
struct Conditions {
    arena: ArenaName,
    /// Index into `Study::assumptions`.
    assumption: usize,
}

/// The settings of a run, and its number of repetitions.
struct RunSettings {
    set: Vec<Setting>,
    repeat: u64,
}

/// The scenarios that were made already, by the text of their settings.
type ScenarioCache = BTreeMap<String, Option<MadeScenario>>;

/// A scenario, and what it was made of.
type MadeScenario = (Arc<Scenario>, Arc<CellSource>);

impl<'a> Loader<'a, '_> {
    /// Makes every cell in every arena and under every set that it runs under.
    pub(super) fn cells(&mut self) -> Vec<Cell> {
        self.require_repetitions_in_arenas();
        let mut cells: Vec<Cell> = Vec::new();
        for entry in &self.file.cells {
            self.require_repetitions_in_cells(entry);
            let assumptions = match &entry.assumptions {
                Some(names) => self.assumption_indices(names, "cells.assumptions"),
                None => (0..self.file.assumption.len()).collect(),
            };
            for source in self.cell_sources(entry) {
                if !self.cell_names.insert(source.name.clone()) {
                    let message = format!("duplicate cell \"{}\"", source.name);
                    self.mistakes.add(entry.name.span(), "cells.name", message);
                    continue;
                }
                for &assumption in &assumptions {
                    if !self.file.assumption[assumption].has_cell(&source.name) {
                        continue;
                    }
                    let mut cache = ScenarioCache::new();
                    for arena in ArenaName::RUNNABLE {
                        cells.extend(self.cell(&source, Conditions { arena, assumption }, &mut cache));
                    }
                }
            }
        }
        self.require_cells_of_sets();
        // The sort is stable: under one set the cells keep the order of the file.
        cells.sort_by_key(|cell| (cell.arena, cell.assumption));
        for (index, cell) in cells.iter_mut().enumerate() {
            cell.index = index as u64;
        }
        cells
    }

    /// Returns the cells of an entry, one for each combination of the values of its axes.
    fn cell_sources(&mut self, entry: &'a CellsEntry) -> Vec<UnmadeCell<'a>> {
        let (name, set) = (entry.name.get_ref().clone(), settings(&entry.set).collect());
        let mut cells = vec![UnmadeCell { entry, name, set }];
        for (axis, values) in &entry.axes {
            let key = format!("cells.axes.{axis}");
            let Some(known_values) = self.file.axis.get(axis) else {
                let message = format!("there is no axis called \"{axis}\"");
                let help = names_help(self.file.axis.keys().map(String::as_str));
                self.mistakes.add_with_help(entry.name.span(), &key, message, help);
                self.has_all_names = false;
                continue;
            };
            let mut extended = Vec::new();
            for cell in &cells {
                for value in values {
                    let Some(value_set) = known_values.get(value.get_ref()) else {
                        let message = format!("the axis \"{axis}\" has no value \"{}\"", value.get_ref());
                        let help = names_help(known_values.keys().map(String::as_str));
                        self.mistakes.add_with_help(value.span(), &key, message, help);
                        self.has_all_names = false;
                        continue;
                    };
                    extended.push(UnmadeCell {
                        entry,
                        name: cell.name.replace(&format!("{{{axis}}}"), value.get_ref()),
                        set: cell.set.iter().cloned().chain(settings(value_set)).collect(),
                    });
                }
            }
            cells = extended;
        }
        cells
    }

    /// Records a mistake if the cells of an assumption set match no cell.
    fn require_cells_of_sets(&mut self) {
        if !self.is_whole || !self.has_all_names {
            return;
        }
        for pattern in self.file.assumption.iter().flat_map(|entry| &entry.cells).flatten() {
            if !self.cell_names.iter().any(|name| matches_pattern(pattern.get_ref(), name)) {
                let message = format!("no cell is called \"{}\"", pattern.get_ref());
                let help = names_help(self.cell_names.iter().map(String::as_str));
                self.mistakes.add_with_help(pattern.span(), "assumption.cells", message, help);
            }
        }
    }

    fn require_repetitions_in_arenas(&mut self) {
        for count in self.file.assumption.iter().filter_map(|entry| entry.repeat.as_ref()) {
            self.require_repetitions(count, "assumption.repeat");
        }
        for arena in self.file.arena.values() {
            let quick = arena.quick.as_ref().and_then(|quick| quick.repeat.as_ref());
            for count in arena.repeat.iter().chain(quick) {
                self.require_repetitions(count, "arena.repeat");
            }
        }
    }

    fn require_repetitions_in_cells(&mut self, entry: &CellsEntry) {
        let mut counts: Vec<&Spanned<u64>> = Vec::new();
        counts.extend(&entry.repeat);
        counts.extend(quick_entry(entry.quick.as_ref()).and_then(|quick| quick.repeat.as_ref()));
        for in_arena in ArenaName::RUNNABLE.iter().filter_map(|arena| entry.arena(*arena)) {
            counts.extend(&in_arena.repeat);
            counts.extend(quick_entry(in_arena.quick.as_ref()).and_then(|quick| quick.repeat.as_ref()));
        }
        for count in counts {
            self.require_repetitions(count, "cells.repeat");
        }
    }

    /// Makes a cell for one arena and one set. Returns `None` if the cell does not run there, or if its
    /// scenario has mistakes.
    fn cell(
        &mut self,
        source: &UnmadeCell<'a>,
        conditions: Conditions,
        cache: &mut ScenarioCache,
    ) -> Option<Cell> {
        let Conditions { arena, assumption } = conditions;
        let entry = source.entry;
        let arena_entry = self.file.arena.get(&arena);
        if let Some(names) = arena_entry.and_then(|arena_entry| arena_entry.assumptions.as_ref())
            && !self.assumption_indices(names, "arena.assumptions").contains(&assumption)
        {
            return None;
        }
        if entry.arenas.as_ref().is_some_and(|arenas| !arenas.contains(&arena)) {
            return None;
        }
        let mut set = source.set.clone();
        set.extend(settings(&self.file.assumption[assumption].set));
        set.extend(arena_entry.into_iter().flat_map(|arena_entry| settings(&arena_entry.set)));
        set.extend(entry.arena(arena).into_iter().flat_map(|in_arena| settings(&in_arena.set)));
        let repeat = repetitions(entry, arena_entry, arena).unwrap_or(*self.file.repeat.get_ref());
        let under_set = stated(&self.file.assumption[assumption].repeat);
        let repeat = under_set.map_or(repeat, |at_most| at_most.min(repeat));
        let full_run = RunSettings { set, repeat };
        let full_runs = self.cell_runs(source, &full_run, cache)?;
        let quick_runs = match self.quick_run(entry, conditions, &full_run) {
            Some(quick_run) => Some(self.cell_runs(source, &quick_run, cache)?),
            None => None,
        };
        let name = source.name.clone();
        Some(Cell { index: 0, name, arena, assumption, full_runs, quick_runs, kept: Kept::default() })
    }

    /// Returns the settings and the repetitions of the quick run. Returns `None` if the quick run leaves the
    /// cell out.
    fn quick_run(
        &mut self,
        entry: &CellsEntry,
        conditions: Conditions,
        full_run: &RunSettings,
    ) -> Option<RunSettings> {
        let Conditions { arena, assumption } = conditions;
        let arena_quick = self.file.arena.get(&arena).and_then(|arena_entry| arena_entry.quick.as_ref());
        let names = arena_quick
            .and_then(|arena_quick| arena_quick.assumptions.as_ref())
            .unwrap_or(&self.file.quick.assumptions);
        if !self.assumption_indices(names, "quick.assumptions").contains(&assumption) {
            return None;
        }
        // What the entry says for the arena wins over what it says for all arenas.
        let for_all_arenas = entry.quick.as_ref();
        let for_arena = entry.arena(arena).and_then(|in_arena| in_arena.quick.as_ref());
        if let Some(CellsQuick::Whether(false)) = for_arena.or(for_all_arenas) {
            return None;
        }
        let (for_all_arenas, for_arena) = (quick_entry(for_all_arenas), quick_entry(for_arena));
        let mut set = full_run.set.clone();
        set.extend(arena_quick.into_iter().flat_map(|arena_quick| settings(&arena_quick.set)));
        for quick in [for_all_arenas, for_arena].into_iter().flatten() {
            set.extend(settings(&quick.set));
        }
        let stated_repeat = for_arena
            .and_then(|quick| stated(&quick.repeat))
            .or_else(|| for_all_arenas.and_then(|quick| stated(&quick.repeat)));
        // A quick run has never more repetitions than the full run, unless the entry states them.
        let usual_repeat = arena_quick
            .and_then(|arena_quick| stated(&arena_quick.repeat))
            .unwrap_or(*self.file.quick.repeat.get_ref());
        let repeat = stated_repeat.unwrap_or_else(|| usual_repeat.min(full_run.repeat));
        Some(RunSettings { set, repeat })
    }

    fn cell_runs(
        &mut self,
        cell: &UnmadeCell<'_>,
        run: &RunSettings,
        cache: &mut ScenarioCache,
    ) -> Option<CellRuns> {
        let entry = cell.entry;
        let key: String =
            run.set.iter().map(|setting| format!("{}={}\n", setting.key, setting.value)).collect();
        if !cache.contains_key(&key) {
            let made = self.scenario(entry, &run.set).map(|mut scenario| {
                let set = run.set.iter().map(|setting| (setting.key.clone(), setting.value.clone()));
                let seed = (entry.draws == Draws::Own).then(|| {
                    scenario.seed = seed_of_cell(scenario.seed, &cell.name);
                    scenario.seed.get()
                });
                let file = entry.scenario.get_ref().clone();
                (Arc::new(scenario), Arc::new(CellSource { file, set: set.collect(), seed }))
            });
            cache.insert(key.clone(), made);
        }
        let (scenario, source) = cache.get(&key)?.clone()?;
        let origin = self.origin(&source, run.repeat);
        // The fingerprint is computed when the claims have been read.
        Some(CellRuns { repeat: run.repeat, scenario, source, fingerprint: String::new(), origin })
    }

    /// Returns the hash of what a cell is made of ([`CellRuns::origin`]).
    fn origin(&self, source: &CellSource, repeat: u64) -> String {
        let text_of =
            |name: &str| self.files.iter().find(|file| file.name == name).map(|file| file.text.as_str());
        let scenario = text_of(&source.file).unwrap_or_default();
        // The parsed file has no comments, and its keys are in one order.
        let mut text = toml::from_str::<toml::Table>(scenario)
            .map_or_else(|_| scenario.to_owned(), |parsed| parsed.to_string());
        for (key, value) in &source.set {
            text.push_str(&format!("\n{key}={value}"));
        }
        let named: Vec<&Source> = self.files.iter().filter(|file| text.contains(&file.name)).collect();
        for file in named {
            text.push_str(&format!("\n{}:\n{}", file.name, file.text));
        }
        text.push_str(&format!("\nseed {:?}, {repeat} repetitions", source.seed));
        hash(&text)
    }

    fn scenario(&mut self, entry: &CellsEntry, set: &[Setting]) -> Option<Scenario> {
        let file_name = entry.scenario.get_ref();
        let Some(source) = self.files.iter().find(|source| source.name == *file_name) else {
            let message = format!("there is no file \"{file_name}\" beside the study");
            let help = names_help(self.files.iter().map(|source| source.name.as_str()));
            self.mistakes.add_with_help(entry.scenario.span(), "cells.scenario", message, help);
            return None;
        };
        let study_set = set.iter().map(|setting| (setting.key.clone(), setting.value.clone()));
        let command_line_set = self.changes.set.iter().cloned();
        let options = Options {
            set: study_set.chain(command_line_set).map(talkpath_scenario::Setting::from).collect(),
            seed: self.changes.seed,
            ..Options::default()
        };
        let plan = match load_with_files(source, &options, &self.beside) {
            Ok(plan) => plan,
            Err(diagnostics) => {
                self.add_scenario_mistakes(&diagnostics, entry, set);
                return None;
            }
        };
        let [only_cell] = plan.cells.as_slice() else {
            let message = format!("{file_name} has a sweep; here the study's axes take its place");
            self.mistakes.add(entry.scenario.span(), "cells.scenario", message);
            return None;
        };
        Some(only_cell.scenario.clone())
    }

    /// Reports the mistakes of a scenario where the study sets the wrong key. A mistake in another key is
    /// reported where the study names the scenario file.
    fn add_scenario_mistakes(&mut self, diagnostics: &Diagnostics, entry: &CellsEntry, set: &[Setting]) {
        for mistake in diagnostics.iter() {
            let is_wrong = |setting: &&Setting| {
                let option = format!("--set {}={}", setting.key, setting.value);
                mistake.option.as_deref() == Some(option.as_str())
            };
            // The last setting of a key is the one that counts.
            if let Some(setting) = set.iter().rev().find(is_wrong) {
                self.mistakes.add_with_help(
                    setting.span.clone(),
                    &mistake.key,
                    &*mistake.message,
                    mistake.help.clone(),
                );
            } else {
                let message = format!("in {}:{mistake}", diagnostics.source);
                self.mistakes.add(entry.scenario.span(), "cells.scenario", message);
            }
        }
    }
}

/// Returns the seed of a cell that has one of its own. It follows from the seed of the study and the cell's
/// name, so that the cell has it under every assumption set, and another `--seed` gives another.
fn seed_of_cell(seed: Seed, cell_name: &str) -> Seed {
    // A seed of a scenario file is at most 2^63 - 1, the largest integer of TOML.
    Seed::new(seed.stream(&format!("study/cell/{cell_name}")).bits() >> 1)
}

/// Returns the number of repetitions of an entry's cells in `arena`. What the entry says for this arena wins.
/// Otherwise it is the smaller of what the entry says for all arenas and what the arena says for all cells.
fn repetitions(entry: &CellsEntry, arena_entry: Option<&ArenaEntry>, arena: ArenaName) -> Option<u64> {
    let for_arena = entry.arena(arena).and_then(|in_arena| stated(&in_arena.repeat));
    if for_arena.is_some() {
        return for_arena;
    }
    let of_entry = stated(&entry.repeat);
    let of_arena = arena_entry.and_then(|arena_entry| stated(&arena_entry.repeat));
    of_entry.into_iter().chain(of_arena).min()
}

fn stated(repeat: &Option<Spanned<u64>>) -> Option<u64> {
    repeat.as_ref().map(|count| *count.get_ref())
}

/// Returns the changes of the shorter run, if the key `quick` has any.
const fn quick_entry(quick: Option<&CellsQuick>) -> Option<&CellsQuickEntry> {
    match quick {
        Some(CellsQuick::How(entry)) => Some(entry),
        Some(CellsQuick::Whether(_)) | None => None,
    }
}
