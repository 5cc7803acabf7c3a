//! From the text of a study to a [`Study`]: names looked up, axes multiplied out, every scenario resolved.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use talkpath_scenario::{Diagnostics, Options, Source, load as load_scenario};
use toml::Spanned;

use crate::claim::{Check, Claim, Kind, Tolerance};
use crate::file::{CellsEntry, CheckEntry, ClaimEntry, FigureEntry, File, Settings, Within};
use crate::place::{Mistakes, known};
use crate::study::{Assumption, Cell, Figure, FigureKind, Quick, Study};

/// Reads the study `name`; `files` are the scenarios beside it.
///
/// # Errors
/// Every mistake in it, each at its line and column; a syntax error or an unknown key ends the reading.
pub fn load(name: &str, source: &Source, files: &[Source]) -> Result<Study, Diagnostics> {
    let mut mistakes = Mistakes::new(source);
    let file: File = match toml::from_str(&source.text) {
        Ok(file) => file,
        Err(error) => {
            mistakes.add(error.span().unwrap_or(0..0), "", error.message(), None);
            return Err(mistakes.finish());
        }
    };
    let study = Loader { file: &file, files, mistakes: &mut mistakes }.study(name);
    if mistakes.is_clean() { Ok(study) } else { Err(mistakes.finish()) }
}

struct Loader<'a, 'm> {
    file: &'a File,
    files: &'a [Source],
    mistakes: &'m mut Mistakes<'a>,
}

/// A scenario key, its value as TOML, and where the study says so.
struct Setting {
    key: String,
    value: String,
    span: Range<usize>,
}

impl Loader<'_, '_> {
    fn study(&mut self, name: &str) -> Study {
        let file = self.file;
        let assumptions = self.assumptions();
        for (repeat, key) in [(&file.repeat, "repeat"), (&file.quick.repeat, "quick.repeat")] {
            self.at_least_one(repeat, key);
        }
        let mut cells = self.cells();
        let names: BTreeSet<String> = cells.iter().map(|cell| cell.name.clone()).collect();
        let claims = self.claims(&names);
        let figures: Vec<_> = file.figure.iter().filter_map(|entry| self.figure(entry, &names)).collect();
        for figure in &figures {
            if let FigureKind::Trace { cell: name, seconds, .. } = &figure.kind {
                let traced = cells.iter_mut().filter(|cell| cell.assumption == 0 && cell.name == *name);
                traced.for_each(|cell| cell.trace = Some(widened(cell.trace, *seconds)));
            }
        }
        let metrics = metrics(&claims, &figures, &file.also);
        for cell in &mut cells {
            cell.fingerprint = fingerprint(&format!("{:?} {:?} {metrics:?}", cell.scenario, cell.trace));
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
            quick: Quick {
                repeat: *file.quick.repeat.get_ref(),
                assumptions: self.assumption_list(&file.quick.assumptions, "quick.assumptions"),
            },
            sensitivity: self.assumption_list(&file.sensitivity, "sensitivity"),
            metrics,
            assumptions,
            cells,
            claims,
            figures,
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

    /// Every cell under every set that it runs under.
    fn cells(&mut self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for entry in &self.file.cells {
            let under = match &entry.assumptions {
                Some(names) => self.assumption_list(names, "cells.assumptions"),
                None => (0..self.file.assumption.len()).collect(),
            };
            for (name, settings) in self.combinations(entry) {
                if cells.iter().any(|cell| cell.name == name) {
                    let message = format!("the cell \"{name}\" stands twice");
                    self.mistakes.add(entry.name.span(), "cells.name", message, None);
                    continue;
                }
                for &assumption in &under {
                    cells.extend(self.cell(entry, &name, &settings, assumption));
                }
            }
        }
        // Stable: within a set, the file's order stays.
        cells.sort_by_key(|cell| cell.assumption);
        for (index, cell) in cells.iter_mut().enumerate() {
            cell.index = index as u64;
        }
        cells
    }

    /// The names of an entry's cells and what they set.
    fn combinations(&mut self, entry: &CellsEntry) -> Vec<(String, Vec<Setting>)> {
        let mut cells = vec![(entry.name.get_ref().clone(), settings(&entry.set))];
        for (axis, values) in &entry.axes {
            let Some(known_values) = self.file.axis.get(axis) else {
                let message = format!("there is no axis called \"{axis}\"");
                let known = known(self.file.axis.keys().map(String::as_str));
                self.mistakes.add(entry.name.span(), &format!("cells.axes.{axis}"), message, known);
                continue;
            };
            let mut next = Vec::new();
            for (name, set) in &cells {
                for value in values {
                    let Some(more) = known_values.get(value.get_ref()) else {
                        let message = format!("the axis \"{axis}\" has no value \"{}\"", value.get_ref());
                        let known = known(known_values.keys().map(String::as_str));
                        self.mistakes.add(value.span(), &format!("cells.axes.{axis}"), message, known);
                        continue;
                    };
                    let name = name.replace(&format!("{{{axis}}}"), value.get_ref());
                    next.push((name, copied(set).chain(settings(more)).collect()));
                }
            }
            cells = next;
        }
        cells
    }

    fn cell(&mut self, entry: &CellsEntry, name: &str, set: &[Setting], assumption: usize) -> Option<Cell> {
        let file_name = entry.scenario.get_ref();
        let Some(source) = self.files.iter().find(|source| source.name == *file_name) else {
            let message = format!("there is no file \"{file_name}\" beside the study");
            let known = known(self.files.iter().map(|source| source.name.as_str()));
            self.mistakes.add(entry.scenario.span(), "cells.scenario", message, known);
            return None;
        };
        if let Some(repeat) = &entry.repeat {
            self.at_least_one(repeat, "cells.repeat");
        }
        let set: Vec<Setting> = copied(set).chain(settings(&self.file.assumption[assumption].set)).collect();
        let options = Options {
            set: set.iter().map(|it| (it.key.clone(), it.value.clone())).collect(),
            ..Options::default()
        };
        let plan = match load_scenario(source, &options) {
            Ok(plan) => plan,
            Err(diagnostics) => {
                self.scenario_mistakes(&diagnostics, entry, &set);
                return None;
            }
        };
        let [only] = plan.cells.as_slice() else {
            let message = format!("{file_name} has a sweep; here the study's axes take its place");
            self.mistakes.add(entry.scenario.span(), "cells.scenario", message, None);
            return None;
        };
        Some(Cell {
            index: 0,
            name: name.to_owned(),
            assumption,
            repeat: *entry.repeat.as_ref().unwrap_or(&self.file.repeat).get_ref(),
            quick: entry.quick,
            trace: None,
            scenario: only.scenario.clone(),
            fingerprint: String::new(),
        })
    }

    /// A scenario's mistakes stand where the study sets the key, or else where it names the file.
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

    fn claims(&mut self, cells: &BTreeSet<String>) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        for entry in &self.file.claim {
            if claims.iter().any(|claim| claim.id == *entry.id.get_ref()) {
                self.mistakes.add(entry.id.span(), "claim.id", "this claim stands twice", None);
            }
            claims.push(self.claim(entry, cells));
        }
        claims
    }

    fn claim(&mut self, entry: &ClaimEntry, cells: &BTreeSet<String>) -> Claim {
        let mut checks = Vec::new();
        for check in &entry.check {
            let Some((kind, names)) = self.kind(check) else { continue };
            for values in products(&check.get_ref().each) {
                let fill = |text: &str| {
                    values.iter().fold(text.to_owned(), |text, (axis, value)| {
                        text.replace(&format!("{{{axis}}}"), value)
                    })
                };
                let filled: Vec<String> = names.iter().map(|name| fill(name.get_ref())).collect();
                for (name, filled) in names.iter().zip(&filled) {
                    self.known_cell(filled, name.span(), "claim.check", cells);
                }
                let CheckEntry { name, metric, .. } = check.get_ref();
                checks.push(Check { name: fill(name), metric: metric.clone(), cells: filled, kind });
            }
        }
        Claim {
            id: entry.id.get_ref().clone(),
            text: entry.text.clone(),
            published: entry.published.clone(),
            expected: entry.expected,
            why: entry.why.clone(),
            checks,
        }
    }

    fn known_cell(&mut self, name: &str, span: Range<usize>, key: &str, cells: &BTreeSet<String>) {
        if !cells.contains(name) && self.mistakes.is_clean() {
            let message = format!("there is no cell called \"{name}\"");
            self.mistakes.add(span, key, message, known(cells.iter().map(String::as_str)));
        }
    }

    /// What a check asks for, and of which cells.
    fn kind<'c>(&mut self, check: &'c Spanned<CheckEntry>) -> Option<(Kind, Vec<&'c Spanned<String>>)> {
        let entry = check.get_ref();
        let within = match &entry.within {
            Some(within) => Some(self.tolerance(within)?),
            None => None,
        };
        let one: Vec<_> = entry.cell.iter().collect();
        let form = (entry.value, entry.at_most, entry.at_least, &entry.rising, &entry.falling, &entry.same);
        let (kind, cells) = match (form, within, one.len()) {
            ((Some(value), None, None, None, None, None), Some(within), 1) => {
                (Kind::Near { value, within }, one)
            }
            ((None, Some(value), None, None, None, None), None, 1) => (Kind::AtMost { value }, one),
            ((None, None, Some(value), None, None, None), None, 1) => (Kind::AtLeast { value }, one),
            ((None, None, None, Some(cells), None, None), None, 0) => (Kind::Rising, cells.iter().collect()),
            ((None, None, None, None, Some(cells), None), None, 0) => (Kind::Falling, cells.iter().collect()),
            ((None, None, None, None, None, Some(cells)), Some(within), 0) => {
                (Kind::Same { within }, cells.iter().collect())
            }
            _ => {
                self.mistakes.add(check.span(), "claim.check", FORMS, None);
                return None;
            }
        };
        if cells.len() < 2 && kind.value().is_none() {
            self.mistakes.add(check.span(), "claim.check", "expected at least two cells to compare", None);
            return None;
        }
        Some((kind, cells))
    }

    fn tolerance(&mut self, within: &Spanned<Within>) -> Option<Tolerance> {
        let tolerance = match within.get_ref() {
            Within::Number(most) => Some(Tolerance::Absolute(*most)),
            Within::Share(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                percent.map(|percent| Tolerance::Relative(percent / 100.0))
            }
        };
        let is_positive = |tolerance: &Tolerance| match *tolerance {
            Tolerance::Absolute(most) | Tolerance::Relative(most) => most.is_finite() && most > 0.0,
        };
        let tolerance = tolerance.filter(is_positive);
        if tolerance.is_none() {
            let message = "expected a number above 0 in the metric's unit, or a share such as \"3%\"";
            self.mistakes.add(within.span(), "claim.check.within", message, None);
        }
        tolerance
    }

    fn figure(&mut self, entry: &FigureEntry, cells: &BTreeSet<String>) -> Option<Figure> {
        let kind = match (&entry.trace, &entry.medians) {
            (Some(trace), None) => {
                self.known_cell(trace.cell.get_ref(), trace.cell.span(), "figure.trace.cell", cells);
                if !SERIES.contains(&trace.series.get_ref().as_str()) {
                    let message = format!(
                        "found \"{}\", expected one of {}",
                        trace.series.get_ref(),
                        SERIES.join(", ")
                    );
                    self.mistakes.add(trace.series.span(), "figure.trace.series", message, None);
                }
                FigureKind::Trace {
                    series: trace.series.get_ref().clone(),
                    entity: trace.entity.clone(),
                    cell: trace.cell.get_ref().clone(),
                    seconds: trace.seconds,
                }
            }
            (None, Some(medians)) => {
                for line in &medians.lines {
                    for name in line.cells.get_ref() {
                        self.known_cell(name, line.cells.span(), "figure.medians.lines", cells);
                    }
                    if line.cells.get_ref().len() != medians.x.len() {
                        let message =
                            format!("expected {} cells, one for each value of `x`", medians.x.len());
                        self.mistakes.add(line.cells.span(), "figure.medians.lines", message, None);
                    }
                }
                FigureKind::Cells {
                    metric: medians.metric.clone(),
                    x_title: medians.x_title.clone(),
                    y_title: medians.y_title.clone(),
                    x: medians.x.clone(),
                    lines: medians
                        .lines
                        .iter()
                        .map(|it| (it.label.clone(), it.cells.get_ref().clone()))
                        .collect(),
                }
            }
            _ => {
                let message = "expected either `trace` or `medians`";
                self.mistakes.add(entry.number.span(), "figure", message, None);
                return None;
            }
        };
        Some(Figure { number: entry.number.get_ref().clone(), title: entry.title.clone(), kind })
    }
}

fn settings(set: &Settings) -> Vec<Setting> {
    let text = |value: &toml::Value| value.to_string();
    set.iter()
        .map(|(key, value)| Setting { key: key.clone(), value: text(value.get_ref()), span: value.span() })
        .collect()
}

fn copied(set: &[Setting]) -> impl Iterator<Item = Setting> + '_ {
    set.iter().map(|it| Setting { key: it.key.clone(), value: it.value.clone(), span: it.span.clone() })
}

/// Every combination of the axes' values; one empty one without axes.
fn products(each: &BTreeMap<String, Vec<String>>) -> Vec<Vec<(&str, &str)>> {
    each.iter().fold(vec![Vec::new()], |before, (axis, values)| {
        let with = |so_far: &Vec<(_, _)>| {
            let so_far = so_far.clone();
            values
                .iter()
                .map(move |value| so_far.iter().copied().chain([(axis.as_str(), value.as_str())]).collect())
        };
        before.iter().flat_map(with).collect()
    })
}

fn metrics(claims: &[Claim], figures: &[Figure], also: &[String]) -> Vec<String> {
    let of_claims = claims.iter().flat_map(|claim| &claim.checks).map(|check| &check.metric);
    let of_figures = figures.iter().filter_map(|figure| match &figure.kind {
        FigureKind::Cells { metric, .. } => Some(metric),
        FigureKind::Trace { .. } => None,
    });
    let all: BTreeSet<&String> = of_claims.chain(of_figures).chain(also).collect();
    all.into_iter().cloned().collect()
}

fn widened(before: Option<(f64, f64)>, (from, to): (f64, f64)) -> (f64, f64) {
    before.map_or((from, to), |before| (before.0.min(from), before.1.max(to)))
}

/// FNV-1a (Fowler, Noll and Vo), 64 bits: told apart is all that it has to be.
fn fingerprint(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The forms of a check.
const FORMS: &str = "expected one of: `cell` with `value` and `within`; `cell` with `at_most` or `at_least`; `rising` or \
                     `falling` with a list of cells; `same` with a list of cells and `within`";

/// What a trace may show.
const SERIES: [&str; 3] = ["cwnd", "queue", "loss-runs"];
