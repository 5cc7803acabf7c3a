//! Cells: the axes multiplied out, and each one's scenario in every arena and under every assumption set.

use std::collections::BTreeMap;
use std::sync::Arc;

use talkpath_model::Scenario;
use talkpath_scenario::{Diagnostics, Options, load as load_scenario};
use toml::Spanned;

use super::{Loader, Setting, settings};
use crate::arena::ArenaName;
use crate::file::{ArenaEntry, CellsEntry, CellsQuick, CellsQuickEntry};
use crate::place::known;
use crate::study::{Cell, Form, Kept};

/// Scenarios that were resolved already, by what was set.
type Resolved = BTreeMap<String, Option<Arc<Scenario>>>;

impl<'a> Loader<'a, '_> {
    /// Every cell in every arena and under every set that it runs under.
    pub(super) fn cells(&mut self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for entry in &self.file.cells {
            let under = match &entry.assumptions {
                Some(names) => self.assumption_list(names, "cells.assumptions"),
                None => (0..self.file.assumption.len()).collect(),
            };
            self.check_counts(entry);
            for (name, set) in self.combinations(entry) {
                if !self.names.insert(name.clone()) {
                    let message = format!("the cell \"{name}\" stands twice");
                    self.mistakes.add(entry.name.span(), "cells.name", message, None);
                    continue;
                }
                for &assumption in &under {
                    let mut resolved = Resolved::new();
                    for arena in ArenaName::RUNNABLE {
                        cells.extend(self.cell(entry, &name, &set, assumption, arena, &mut resolved));
                    }
                }
            }
        }
        // Stable: within a set, the file's order stays.
        cells.sort_by_key(|cell| (cell.arena, cell.assumption));
        for (index, cell) in cells.iter_mut().enumerate() {
            cell.index = index as u64;
        }
        cells
    }

    /// The names of an entry's cells and what they set.
    fn combinations(&mut self, entry: &CellsEntry) -> Vec<(String, Vec<Setting>)> {
        let mut cells = vec![(entry.name.get_ref().clone(), settings(&entry.set).collect::<Vec<_>>())];
        for (axis, values) in &entry.axes {
            let Some(known_values) = self.file.axis.get(axis) else {
                let message = format!("there is no axis called \"{axis}\"");
                let known = known(self.file.axis.keys().map(String::as_str));
                self.mistakes.add(entry.name.span(), &format!("cells.axes.{axis}"), message, known);
                self.is_named = false;
                continue;
            };
            let mut next = Vec::new();
            for (name, set) in &cells {
                for value in values {
                    let Some(more) = known_values.get(value.get_ref()) else {
                        let message = format!("the axis \"{axis}\" has no value \"{}\"", value.get_ref());
                        let known = known(known_values.keys().map(String::as_str));
                        self.mistakes.add(value.span(), &format!("cells.axes.{axis}"), message, known);
                        self.is_named = false;
                        continue;
                    };
                    let name = name.replace(&format!("{{{axis}}}"), value.get_ref());
                    next.push((name, set.iter().cloned().chain(settings(more)).collect()));
                }
            }
            cells = next;
        }
        cells
    }

    fn check_counts(&mut self, entry: &CellsEntry) {
        let quick = |quick: &Option<CellsQuick>| match quick {
            Some(CellsQuick::How(how)) => how.repeat.clone(),
            _ => None,
        };
        let arenas = ArenaName::RUNNABLE.map(|arena| entry.arena(arena));
        let of_arenas = arenas.iter().flatten().flat_map(|it| [it.repeat.clone(), quick(&it.quick)]);
        let counts = [entry.repeat.clone(), quick(&entry.quick)];
        for count in counts.into_iter().chain(of_arenas).flatten() {
            self.at_least_one(&count, "cells.repeat");
        }
        for arena in self.file.arena.values() {
            let counts = [&arena.repeat, &arena.quick.as_ref().and_then(|quick| quick.repeat.clone())];
            for count in counts.into_iter().flatten() {
                self.at_least_one(count, "arena.repeat");
            }
        }
    }

    /// `None` if it does not run there, or its scenario has mistakes.
    fn cell(
        &mut self,
        entry: &'a CellsEntry,
        name: &str,
        set: &[Setting],
        assumption: usize,
        arena: ArenaName,
        resolved: &mut Resolved,
    ) -> Option<Cell> {
        let by_arena = self.file.arena.get(&arena);
        let here = entry.arena(arena);
        let is_under = match by_arena.and_then(|it| it.assumptions.as_ref()) {
            Some(names) => self.assumption_list(names, "arena.assumptions").contains(&assumption),
            None => true,
        };
        if !is_under || entry.arenas.as_ref().is_some_and(|arenas| !arenas.contains(&arena)) {
            return None;
        }
        let mut set = set.to_vec();
        set.extend(settings(&self.file.assumption[assumption].set));
        set.extend(by_arena.into_iter().flat_map(|it| settings(&it.set)));
        set.extend(here.into_iter().flat_map(|it| settings(&it.set)));
        let repeat = repeat(entry, by_arena, arena).unwrap_or(*self.file.repeat.get_ref());
        let full = self.form(entry, &set, repeat, resolved)?;
        let quick = match self.quick(entry, assumption, arena, &set, repeat) {
            Some((set, repeat)) => Some(self.form(entry, &set, repeat, resolved)?),
            None => None,
        };
        let name = name.to_owned();
        Some(Cell { index: 0, name, arena, assumption, full, quick, kept: Kept::default() })
    }

    /// What the shorter run sets, and how often it runs; `None` if it leaves the cell out.
    fn quick(
        &mut self,
        entry: &CellsEntry,
        assumption: usize,
        arena: ArenaName,
        full: &[Setting],
        full_repeat: u64,
    ) -> Option<(Vec<Setting>, u64)> {
        let by_arena = self.file.arena.get(&arena).and_then(|it| it.quick.as_ref());
        let under = by_arena.and_then(|it| it.assumptions.as_ref()).unwrap_or(&self.file.quick.assumptions);
        let is_under = self.assumption_list(under, "quick.assumptions").contains(&assumption);
        let here = entry.arena(arena).and_then(|it| it.quick.as_ref());
        let how = [entry.quick.as_ref(), here];
        if !is_under || matches!(here.or(entry.quick.as_ref()), Some(CellsQuick::Whether(false))) {
            return None;
        }
        let entries = how.into_iter().flatten().filter_map(|it| match it {
            CellsQuick::How(how) => Some(how),
            CellsQuick::Whether(_) => None,
        });
        let entries: Vec<&CellsQuickEntry> = entries.collect();
        let mut set = full.to_vec();
        set.extend(by_arena.into_iter().flat_map(|it| settings(&it.set)));
        set.extend(entries.iter().flat_map(|it| settings(&it.set)));
        let count = |repeat: &Option<Spanned<u64>>| repeat.as_ref().map(|it| *it.get_ref());
        let own = entries.iter().rev().find_map(|it| count(&it.repeat));
        let usual = by_arena.and_then(|it| count(&it.repeat)).unwrap_or(*self.file.quick.repeat.get_ref());
        Some((set, own.unwrap_or_else(|| usual.min(full_repeat))))
    }

    fn form(
        &mut self,
        entry: &CellsEntry,
        set: &[Setting],
        repeat: u64,
        resolved: &mut Resolved,
    ) -> Option<Form> {
        let key: String = set.iter().map(|it| format!("{}={}\n", it.key, it.value)).collect();
        let scenario = match resolved.get(&key) {
            Some(known) => known.clone(),
            None => {
                let scenario = self.scenario(entry, set).map(Arc::new);
                resolved.insert(key, scenario.clone());
                scenario
            }
        }?;
        Some(Form { repeat, scenario, fingerprint: String::new() })
    }

    fn scenario(&mut self, entry: &CellsEntry, set: &[Setting]) -> Option<Scenario> {
        let file_name = entry.scenario.get_ref();
        let Some(source) = self.files.iter().find(|source| source.name == *file_name) else {
            let message = format!("there is no file \"{file_name}\" beside the study");
            let known = known(self.files.iter().map(|source| source.name.as_str()));
            self.mistakes.add(entry.scenario.span(), "cells.scenario", message, known);
            return None;
        };
        let of_study = set.iter().map(|it| (it.key.clone(), it.value.clone()));
        let options = Options {
            set: of_study
                .chain(self.changes.set.iter().cloned())
                .map(talkpath_scenario::Setting::from)
                .collect(),
            seed: self.changes.seed,
            ..Options::default()
        };
        let plan = match load_scenario(source, &options) {
            Ok(plan) => plan,
            Err(diagnostics) => {
                self.scenario_mistakes(&diagnostics, entry, set);
                return None;
            }
        };
        let [only] = plan.cells.as_slice() else {
            let message = format!("{file_name} has a sweep; here the study's axes take its place");
            self.mistakes.add(entry.scenario.span(), "cells.scenario", message, None);
            return None;
        };
        Some(only.scenario.clone())
    }

    /// A scenario's mistakes are reported where the study sets the key, or else where it names the file.
    fn scenario_mistakes(&mut self, diagnostics: &Diagnostics, entry: &CellsEntry, set: &[Setting]) {
        for mistake in diagnostics.iter() {
            let option = mistake.option.as_deref();
            let setting =
                set.iter().rev().find(|it| option == Some(&format!("--set {}={}", it.key, it.value)));
            match setting {
                Some(it) => {
                    self.mistakes.add(it.span.clone(), &mistake.key, &*mistake.message, mistake.help.clone());
                }
                None => {
                    let message = format!("in {}:{mistake}", diagnostics.source);
                    self.mistakes.add(entry.scenario.span(), "cells.scenario", message, None);
                }
            }
        }
    }
}

/// How often an entry's cells run in `arena`: as the entry says for this arena, else the smaller of the
/// counts that the entry and the arena give.
fn repeat(entry: &CellsEntry, by_arena: Option<&ArenaEntry>, arena: ArenaName) -> Option<u64> {
    let count = |repeat: &Option<Spanned<u64>>| repeat.as_ref().map(|it| *it.get_ref());
    entry.arena(arena).and_then(|it| count(&it.repeat)).or_else(|| {
        [count(&entry.repeat), by_arena.and_then(|it| count(&it.repeat))].into_iter().flatten().min()
    })
}
