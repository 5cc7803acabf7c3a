//! From the text of a study to a [`Study`]: names resolved, axes multiplied out, every scenario resolved.

mod cells;
mod claims;
mod figures;
mod tables;

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use talkpath_scenario::{Diagnostics, Source};
use toml::Spanned;

use crate::claim::Claim;
use crate::file::{File, MetricEntry, OneOrMany, Settings};
use crate::form;
use crate::metric::{Derived, Metrics};
use crate::place::{Mistakes, known};
use crate::study::{Assumption, Cell, Changes, Figure, FigureKind, Kept, Study};
use crate::table::PublishedTable;

/// Reads the study `name`; `files` are the scenarios beside it.
///
/// # Errors
/// Every mistake in it, each at its line and column: first those of form (syntax, unknown keys, wrong types),
/// and if there are none, what the rest of the file and the scenarios say against it.
pub fn load(name: &str, source: &Source, files: &[Source]) -> Result<Study, Diagnostics> {
    load_with(name, source, files, &Changes::default())
}

/// Reads the study `name` with `changes` in every cell.
///
/// # Errors
/// As [`load`]; what a change has wrong stands where the study names the scenario.
pub fn load_with(
    name: &str,
    source: &Source,
    files: &[Source],
    changes: &Changes,
) -> Result<Study, Diagnostics> {
    let mut mistakes = Mistakes::new(source);
    let file: File = match toml::from_str(&source.text) {
        Ok(file) => file,
        Err(error) => {
            form::add_mistakes(&source.text, &mut mistakes);
            if mistakes.is_clean() {
                mistakes.add(error.span().unwrap_or(0..0), "", error.message(), None);
            }
            return Err(mistakes.finish());
        }
    };
    let loader = Loader {
        file: &file,
        files,
        changes,
        mistakes: &mut mistakes,
        names: BTreeSet::new(),
        is_named: true,
    };
    let study = loader.study(name);
    if mistakes.is_clean() { Ok(study) } else { Err(mistakes.finish()) }
}

struct Loader<'a, 'm> {
    file: &'a File,
    files: &'a [Source],
    changes: &'a Changes,
    mistakes: &'m mut Mistakes<'a>,
    /// What the cells are called, also those whose scenarios have mistakes.
    names: BTreeSet<String>,
    /// Whether `names` has them all.
    is_named: bool,
}

/// A scenario key, its value as TOML, and where the study says so.
#[derive(Clone)]
struct Setting {
    key: String,
    value: String,
    span: Range<usize>,
}

impl Loader<'_, '_> {
    fn study(mut self, name: &str) -> Study {
        let file = self.file;
        let assumptions = self.assumptions();
        for (repeat, key) in [(&file.repeat, "repeat"), (&file.quick.repeat, "quick.repeat")] {
            self.at_least_one(repeat, key);
        }
        let derived = self.derived();
        let mut cells = self.cells();
        let claims = self.claims();
        let figures: Vec<_> = file.figure.iter().filter_map(|entry| self.figure(entry)).collect();
        let tables: Vec<_> = file.table.iter().filter_map(|entry| self.table(entry)).collect();
        let metrics = metrics(&claims, &figures, &tables, &file.also);
        for cell in &mut cells {
            cell.kept = kept(cell, &figures);
            let what = format!("{:?} {metrics:?} {derived:?}", cell.kept);
            for form in core::iter::once(&mut cell.full).chain(&mut cell.quick) {
                form.fingerprint = fingerprint(&format!("{:?} {what}", form.scenario));
            }
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
            sensitivity: self.assumption_list(&file.sensitivity, "sensitivity"),
            metrics,
            derived,
            assumptions,
            cells,
            claims,
            figures,
            tables,
            changes: self.changes.clone(),
        }
    }

    fn assumptions(&mut self) -> Vec<Assumption> {
        let mut seen = BTreeSet::new();
        for entry in &self.file.assumption {
            if !seen.insert(entry.name.get_ref()) {
                self.mistakes.add(entry.name.span(), "assumption.name", "this name stands twice", None);
            }
        }
        let entries = self.file.assumption.iter();
        entries.map(|it| Assumption { name: it.name.get_ref().clone(), text: it.text.clone() }).collect()
    }

    fn assumption_list(&mut self, names: &[Spanned<String>], key: &str) -> Vec<usize> {
        let mut list = Vec::new();
        for name in names {
            let found = self.file.assumption.iter().position(|it| it.name.get_ref() == name.get_ref());
            match found {
                Some(index) => list.push(index),
                None => {
                    let message = format!("there is no assumption set called \"{}\"", name.get_ref());
                    let known = known(self.file.assumption.iter().map(|it| it.name.get_ref().as_str()));
                    self.mistakes.add(name.span(), key, message, known);
                }
            }
        }
        list
    }

    fn at_least_one(&mut self, count: &Spanned<u64>, key: &str) {
        if *count.get_ref() == 0 {
            self.mistakes.add(count.span(), key, "found 0, expected at least 1", None);
        }
    }

    fn derived(&mut self) -> Metrics {
        let mut metrics = Metrics::new();
        for (name, entry) in &self.file.metric {
            match derived(entry.get_ref()) {
                Some(derived) => {
                    metrics.insert(name.clone(), derived);
                }
                None => {
                    let message = "expected one of: `ratio` or `difference` with two paths; `sum` or `mean` with paths; \
                                   `share` with paths and `above`";
                    self.mistakes.add(entry.span(), &format!("metric.{name}"), message, None);
                }
            }
        }
        metrics
    }

    fn known_cell(&mut self, name: &str, span: Range<usize>, key: &str) {
        if self.is_named && !self.names.contains(name) {
            let message = format!("there is no cell called \"{name}\"");
            self.mistakes.add(span, key, message, known(self.names.iter().map(String::as_str)));
        }
    }
}

fn derived(entry: &MetricEntry) -> Option<Derived> {
    let list = |paths: &OneOrMany| match paths {
        OneOrMany::One(path) => vec![path.clone()],
        OneOrMany::Many(paths) => paths.clone(),
    };
    let MetricEntry { ratio, difference, sum, mean, share, above } = entry;
    Some(match (ratio, difference, sum, mean, share, above) {
        (Some((first, second)), None, None, None, None, None) => {
            Derived::Ratio(first.clone(), second.clone())
        }
        (None, Some((first, second)), None, None, None, None) => {
            Derived::Difference(first.clone(), second.clone())
        }
        (None, None, Some(paths), None, None, None) => Derived::Sum(list(paths)),
        (None, None, None, Some(paths), None, None) => Derived::Mean(list(paths)),
        (None, None, None, None, Some(paths), Some(above)) => {
            Derived::Share { paths: list(paths), above: *above }
        }
        _ => return None,
    })
}

fn settings(set: &Settings) -> impl Iterator<Item = Setting> + '_ {
    set.iter().map(|(key, value)| Setting {
        key: key.clone(),
        value: value.get_ref().to_string(),
        span: value.span(),
    })
}

fn metrics(claims: &[Claim], figures: &[Figure], tables: &[PublishedTable], also: &[String]) -> Vec<String> {
    let operands = claims.iter().flat_map(|claim| &claim.checks).flat_map(|check| &check.operands);
    let of_figures = figures.iter().filter_map(|figure| match &figure.kind {
        FigureKind::Cells { metric, .. } => Some(metric),
        FigureKind::Trace { .. } | FigureKind::Quantiles { .. } => None,
    });
    let of_tables = tables.iter().flat_map(|table| &table.rows).map(|row| &row.metric);
    let all: BTreeSet<&String> =
        operands.map(|operand| &operand.metric).chain(of_figures).chain(of_tables).chain(also).collect();
    all.into_iter().cloned().collect()
}

/// What the figures draw of `cell` beside its metrics.
fn kept(cell: &Cell, figures: &[Figure]) -> Kept {
    let mut kept = Kept::default();
    for figure in figures.iter().filter(|_| cell.assumption == 0) {
        match &figure.kind {
            FigureKind::Trace { cell: name, seconds, .. } if cell.name == *name => {
                kept.trace = Some(widened(kept.trace, *seconds));
            }
            FigureKind::Quantiles { cell: name, flows } if cell.name == *name => {
                kept.delays.extend(flows.iter().cloned());
            }
            _ => {}
        }
    }
    kept
}

fn widened(before: Option<(f64, f64)>, (from, to): (f64, f64)) -> (f64, f64) {
    before.map_or((from, to), |before| (before.0.min(from), before.1.max(to)))
}

/// Every combination of the axes' values; one empty one without axes. Axes whose names are joined by `/` step
/// together: `"n/rtt" = ["1/10", "2/39"]`.
fn products(each: &BTreeMap<String, Vec<String>>) -> Vec<Vec<(&str, &str)>> {
    each.iter().fold(vec![Vec::new()], |before, (axis, values)| {
        let with = |so_far: &Vec<(_, _)>| {
            let so_far = so_far.clone();
            values.iter().map(move |value| {
                so_far.iter().copied().chain(axis.split('/').zip(value.split('/'))).collect()
            })
        };
        before.iter().flat_map(with).collect()
    })
}

/// FNV-1a (Fowler, Noll and Vo), 64 bits: different texts need different fingerprints, and nothing more.
fn fingerprint(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
