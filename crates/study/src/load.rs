//! Reads `study.toml` into a [`Study`]: names are resolved, axes are multiplied out, and each cell gets its
//! scenario.
//!
//! [`load`] collects all mistakes and returns them together. It reads in this order, because each step needs
//! the steps before it:
//!
//! 1. the assumption sets, and the metrics that the study computes (`metrics.rs`);
//! 2. the cells with their scenarios (`cells.rs`), and the cells that a campaign measures (`campaign.rs`);
//! 3. claims, figures and tables, which name cells and metrics (`claims.rs`, `figures.rs`, `tables.rs`);
//! 4. what each cell must keep of its runs for the claims and figures (`readings.rs`).

mod axes;
mod beside;
mod campaign;
mod cells;
mod claims;
mod falsifiable;
mod figures;
mod lookup;
mod metrics;
mod readings;
mod tables;

use core::ops::Range;
use std::collections::BTreeSet;

use talkpath_scenario::{Diagnostics, Source};
use toml::Spanned;

use crate::file::{File, Settings};
use crate::form;
use crate::mistakes::{Mistakes, names_help};
use crate::stretch::Stretch;
use crate::study::{Assumption, Changes, Study};

use self::beside::FilesBeside;
use self::lookup::Lookup;
use self::readings::Readings;

/// Reads the study called `name`. `files` are the scenarios and tables in the folder of the study.
///
/// # Errors
/// Returns every mistake with its line and column. If the file is not valid TOML, or if a key at its top is
/// wrong, only the mistakes of form are returned.
pub fn load(name: &str, source: &Source, files: &[Source]) -> Result<Study, Diagnostics> {
    load_with(name, source, files, &Changes::default())
}

/// Reads the study called `name`, and applies `changes` to every cell.
///
/// # Errors
/// Returns the same mistakes as [`load`]. A mistake in a change is reported where the study names the
/// scenario.
pub fn load_with(
    name: &str,
    source: &Source,
    files: &[Source],
    changes: &Changes,
) -> Result<Study, Diagnostics> {
    let mut mistakes = Mistakes::new(source);
    let mut is_whole = true;
    let file = match toml::from_str::<File>(&source.text) {
        Ok(file) => file,
        Err(error) => {
            is_whole = false;
            // The parser stops at the first mistake, so each entry is read again by itself.
            let readable = form::add_mistakes(&source.text, &mut mistakes);
            if mistakes.is_empty() {
                mistakes.add(error.span().unwrap_or(0..0), "", error.message());
            }
            let Some(file) = readable else { return Err(mistakes.finish()) };
            file
        }
    };
    form::add_unusable(&source.text, &mut mistakes);
    let loader = Loader {
        file: &file,
        text: &source.text,
        files,
        beside: FilesBeside::new(files),
        changes,
        mistakes: &mut mistakes,
        cell_names: BTreeSet::new(),
        has_all_names: is_whole,
        is_whole,
    };
    let study = loader.study(name);
    if mistakes.is_empty() { Ok(study) } else { Err(mistakes.finish()) }
}

struct Loader<'a, 'm> {
    file: &'a File,
    text: &'a str,
    files: &'a [Source],
    /// The same files, as scenarios name them.
    beside: FilesBeside<'a>,
    changes: &'a Changes,
    mistakes: &'m mut Mistakes<'a>,
    /// The names of all cells, also of cells whose scenarios have mistakes.
    cell_names: BTreeSet<String>,
    /// Whether `cell_names` is complete. If it is not, an unknown name is not a mistake.
    has_all_names: bool,
    /// Whether every entry of the file could be read. If not, an entry that seems to be missing is not a
    /// mistake.
    is_whole: bool,
}

/// A scenario key and its value as TOML, which the study sets at `span`.
#[derive(Clone)]
struct Setting {
    key: String,
    value: String,
    span: Range<usize>,
}

impl Loader<'_, '_> {
    fn study(mut self, name: &str) -> Study {
        let file = self.file;
        self.require_repetitions(&file.repeat, "repeat");
        self.require_repetitions(&file.quick.repeat, "quick.repeat");
        let assumptions = self.assumptions();
        self.require_base_set();
        self.require_unchanged_assumptions();
        let derived = self.derived_metrics();
        let units = self.units(&derived);
        let mut cells = self.cells();
        let campaign = self.add_campaign_cells(&mut cells);
        let lookup = Lookup::new(&cells, &derived);
        let claims = self.claims(&lookup);
        let figures: Vec<_> = file.figure.iter().filter_map(|entry| self.figure(entry, &lookup)).collect();
        let tables: Vec<_> = file.table.iter().filter_map(|entry| self.table(entry, &lookup)).collect();
        for metric in &file.also {
            self.require_metric_somewhere(metric, &lookup);
        }
        let readings = Readings::new(&claims, &figures, &tables, &file.also);
        let metrics = readings.metrics();
        for cell in &mut cells {
            readings.complete_cell(cell, &figures, &derived);
        }
        Study {
            name: name.to_owned(),
            title: file.title.clone(),
            authors: file.authors.clone(),
            year: file.year,
            source: file.source.clone(),
            question: file.question.clone(),
            set_up: file.set_up.clone(),
            repeat: *file.repeat.get_ref(),
            sensitivity: self.assumption_indices(&file.sensitivity, "sensitivity"),
            metrics,
            derived,
            units,
            assumptions,
            cells,
            campaign,
            claims,
            figures,
            tables,
            files: self.used_files(),
            changes: self.changes.clone(),
        }
    }

    fn assumptions(&mut self) -> Vec<Assumption> {
        let mut names = BTreeSet::new();
        let mut assumptions = Vec::new();
        for entry in &self.file.assumption {
            let name = entry.name.get_ref();
            if !names.insert(name) {
                let message = format!("duplicate assumption set \"{name}\"");
                self.mistakes.add(entry.name.span(), "assumption.name", message);
            }
            assumptions.push(Assumption { name: name.clone(), text: entry.text.clone() });
        }
        assumptions
    }

    /// Returns the indices of the assumption sets with these names.
    fn assumption_indices(&mut self, names: &[Spanned<String>], key: &str) -> Vec<usize> {
        let mut indices = Vec::new();
        for name in names {
            let index = self.file.assumption.iter().position(|entry| entry.name.get_ref() == name.get_ref());
            if let Some(index) = index {
                indices.push(index);
            } else if self.is_whole {
                let message = format!("there is no assumption set called \"{}\"", name.get_ref());
                let help = names_help(self.file.assumption.iter().map(|entry| entry.name.get_ref().as_str()));
                self.mistakes.add_with_help(name.span(), key, message, help);
            }
        }
        indices
    }

    /// Returns the name and the text of `study.toml` and of each file that it names.
    fn used_files(&self) -> Vec<(String, String)> {
        let mut names: BTreeSet<&String> = BTreeSet::new();
        names.extend(self.file.cells.iter().map(|entry| entry.scenario.get_ref()));
        names.extend(self.file.table.iter().map(|entry| entry.rows.get_ref()));
        for figure in &self.file.figure {
            let published = figure.medians.as_ref().and_then(|medians| medians.published.as_ref());
            names.extend(published.map(Spanned::get_ref));
        }
        let named_by_scenarios = self.beside.used();
        names.extend(&named_by_scenarios);
        let mut used = vec![("study.toml".to_owned(), self.text.to_owned())];
        let named = self.files.iter().filter(|source| names.contains(&source.name));
        used.extend(named.map(|source| (source.name.clone(), source.text.clone())));
        used
    }

    /// Records a mistake if there is no base set, or if an arena or `--quick` leaves it out. A verdict is
    /// that under the base set, so every run needs it.
    fn require_base_set(&mut self) {
        if !self.is_whole {
            return;
        }
        let Some(base) = self.file.assumption.first() else {
            let message = "no assumption set: expected at least one, the base";
            self.mistakes.add(0..0, "assumption", message);
            return;
        };
        let mut lists = vec![&self.file.quick.assumptions];
        for arena in self.file.arena.values() {
            lists.extend(&arena.assumptions);
            lists.extend(arena.quick.as_ref().and_then(|quick| quick.assumptions.as_ref()));
        }
        for names in lists {
            if !names.iter().any(|name| name.get_ref() == base.name.get_ref()) {
                let span = names.first().map_or(0..0, Spanned::span);
                let message = format!(
                    "the first set, \"{}\", is missing: a verdict is that under the first set",
                    base.name.get_ref()
                );
                self.mistakes.add(span, "assumptions", message);
            }
        }
    }

    /// Records a mistake if the command line changes a key of an assumption set. The set would no longer
    /// assume what its text says.
    fn require_unchanged_assumptions(&mut self) {
        for (key, value) in &self.changes.set {
            for entry in &self.file.assumption {
                let changed = entry.set.iter().find(|(own_key, _)| keys_overlap(own_key, key));
                let Some((own_key, own_value)) = changed else { continue };
                let message = format!(
                    "--set {key}={value} changes {own_key}, by which the set \"{}\" differs: it would no longer assume what it says",
                    entry.name.get_ref()
                );
                let help =
                    "change it in a copy of the study; the directory of each run holds one, under study/";
                self.mistakes.add_with_help(
                    own_value.span(),
                    "assumption.set",
                    message,
                    Some(help.to_owned()),
                );
            }
        }
    }

    /// Records a mistake if a number of repetitions is 0.
    fn require_repetitions(&mut self, count: &Spanned<u64>, key: &str) {
        if *count.get_ref() == 0 {
            self.mistakes.add(count.span(), key, "found 0, expected at least 1");
        }
    }

    /// Records a mistake if a stretch of run time begins before the run, or ends before it begins.
    fn require_stretch(&mut self, stretch: Stretch, span: Range<usize>, key: &str) {
        if !stretch.is_within_a_run() {
            let Stretch { from, to } = stretch;
            let message =
                format!("found [{from}, {to}], expected a stretch of run time, from 0 on: [from, to]");
            self.mistakes.add(span, key, message);
        }
    }
}

/// Returns whether two scenario keys are the same, or one is a table that contains the other.
fn keys_overlap(first: &str, second: &str) -> bool {
    let is_in_table = |key: &str, table: &str| {
        key.strip_prefix(table).is_some_and(|after| after.is_empty() || after.starts_with('.'))
    };
    is_in_table(first, second) || is_in_table(second, first)
}

fn settings(set: &Settings) -> impl Iterator<Item = Setting> + '_ {
    set.iter().map(|(key, value)| Setting {
        key: key.clone(),
        value: value.get_ref().to_string(),
        span: value.span(),
    })
}
