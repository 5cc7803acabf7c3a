//! From the text of a study to a [`Study`]: names resolved, axes multiplied out, every scenario resolved.

mod campaign;
mod cells;
mod claims;
mod each;
mod figures;
mod sense;
mod tables;

use core::ops::Range;
use std::collections::BTreeSet;

use talkpath_measure::figures::Unit;
use talkpath_scenario::{Diagnostics, Source};
use talkpath_units::fnv1a;
use toml::Spanned;

use crate::claim::Claim;
use crate::file::{File, MetricEntry, OneOrMany, Settings};
use crate::form;
use crate::metric::{self, Derived, Metrics, Units};
use crate::over_time::{OverTime, TimeFigure};
use crate::place::{Mistakes, known};
use crate::stretch::Stretch;
use crate::study::{Assumption, Cell, Changes, Figure, FigureKind, Kept, Study};
use crate::table::PublishedTable;

use self::sense::Known;

/// Reads the study `name`; `files` are the scenarios beside it.
///
/// # Errors
/// Every mistake in it, each at its line and column: those of form (unknown keys, wrong types),
/// and what the rest of the file and the scenarios say against it. After a mistake of syntax nothing else
/// is looked for, nor after one in the keys at the top.
pub fn load(name: &str, source: &Source, files: &[Source]) -> Result<Study, Diagnostics> {
    load_with(name, source, files, &Changes::default())
}

/// Reads the study `name` with `changes` in every cell.
///
/// # Errors
/// As [`load`]; a mistake in a change is reported where the study names the scenario.
pub fn load_with(
    name: &str,
    source: &Source,
    files: &[Source],
    changes: &Changes,
) -> Result<Study, Diagnostics> {
    let mut mistakes = Mistakes::new(source);
    let (file, is_whole) = match toml::from_str::<File>(&source.text) {
        Ok(file) => (file, true),
        Err(error) => {
            let file = form::add_mistakes(&source.text, &mut mistakes);
            if mistakes.is_clean() {
                mistakes.add(error.span().unwrap_or(0..0), "", error.message(), None);
            }
            match file {
                Some(file) => (file, false),
                None => return Err(mistakes.finish()),
            }
        }
    };
    form::add_unusable(&source.text, &mut mistakes);
    let loader = Loader {
        file: &file,
        text: &source.text,
        files,
        changes,
        mistakes: &mut mistakes,
        names: BTreeSet::new(),
        is_named: is_whole,
        is_whole,
    };
    let study = loader.study(name);
    if mistakes.is_clean() { Ok(study) } else { Err(mistakes.finish()) }
}

struct Loader<'a, 'm> {
    file: &'a File,
    text: &'a str,
    files: &'a [Source],
    changes: &'a Changes,
    mistakes: &'m mut Mistakes<'a>,
    /// What the cells are called, also those whose scenarios have mistakes.
    names: BTreeSet<String>,
    /// Whether `names` has them all.
    is_named: bool,
    /// Whether every entry could be read, so that what is not there is missing.
    is_whole: bool,
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
        self.has_base(&assumptions);
        self.changes_no_assumption();
        let derived = self.derived();
        let units = self.units(&derived);
        let mut cells = self.cells();
        let campaign = self.campaign(&mut cells);
        let known = Known::new(&cells, &derived);
        let claims = self.claims(&cells, &known);
        let figures: Vec<_> = file.figure.iter().filter_map(|entry| self.figure(entry, &known)).collect();
        let tables: Vec<_> = file.table.iter().filter_map(|entry| self.table(entry, &known)).collect();
        for metric in &file.also {
            self.known_somewhere(metric, &known);
        }
        let also: Vec<String> = file.also.iter().map(|it| it.get_ref().clone()).collect();
        let reads = reads(&claims, &figures, &tables, &also);
        let metrics: BTreeSet<&String> = reads.iter().map(|read| read.metric).collect();
        let metrics: Vec<String> = metrics.into_iter().cloned().collect();
        for cell in &mut cells {
            let read = read_of(&cell.name, &reads, &derived);
            let is_over_time = |name: &&&str| matches!(derived.get(**name), Some(Derived::OverTime(_)));
            let over_time = read.iter().filter(is_over_time).map(|name| (*name).to_owned());
            cell.kept = kept(cell, &figures);
            cell.kept.over_time = over_time.collect();
            cell.kept.watched = read.iter().any(|name| name.split('.').next() == Some(metric::WATCHED));
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
            units,
            assumptions,
            cells,
            campaign,
            claims,
            figures,
            tables,
            files: self.used(),
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
                None if !self.is_whole => {}
                None => {
                    let message = format!("there is no assumption set called \"{}\"", name.get_ref());
                    let known = known(self.file.assumption.iter().map(|it| it.name.get_ref().as_str()));
                    self.mistakes.add(name.span(), key, message, known);
                }
            }
        }
        list
    }

    /// The study's own text and that of each file that it names.
    fn used(&self) -> Vec<(String, String)> {
        let scenarios = self.file.cells.iter().map(|entry| entry.scenario.get_ref());
        let medians = self.file.figure.iter().filter_map(|entry| entry.medians.as_ref());
        let printed = medians.filter_map(|medians| Some(medians.published.as_ref()?.get_ref()));
        let names: BTreeSet<&String> = scenarios
            .chain(self.file.table.iter().map(|entry| entry.rows.get_ref()))
            .chain(printed)
            .collect();
        let named = self.files.iter().filter(|source| names.contains(&source.name));
        let own = ("study.toml".to_owned(), self.text.to_owned());
        core::iter::once(own).chain(named.map(|it| (it.name.clone(), it.text.clone()))).collect()
    }

    /// A verdict is that under the first set, which the shorter runs therefore have too.
    fn has_base(&mut self, assumptions: &[Assumption]) {
        if !self.is_whole {
            return;
        }
        let Some(base) = assumptions.first() else {
            self.mistakes.add(0..0, "assumption", "there is none; expected at least one, the base", None);
            return;
        };
        let of_arenas = self.file.arena.values().flat_map(|arena| {
            [arena.assumptions.as_ref(), arena.quick.as_ref().and_then(|quick| quick.assumptions.as_ref())]
        });
        for names in core::iter::once(Some(&self.file.quick.assumptions)).chain(of_arenas).flatten() {
            if !names.iter().any(|name| *name.get_ref() == base.name) {
                let span = names.first().map_or(0..0, Spanned::span);
                let message = format!(
                    "the first set, \"{}\", is missing: a verdict is that under the first set",
                    base.name
                );
                self.mistakes.add(span, "assumptions", message, None);
            }
        }
    }

    /// A set whose keys the caller changes would no longer assume what it says.
    fn changes_no_assumption(&mut self) {
        for (key, value) in &self.changes.set {
            for entry in &self.file.assumption {
                let touched = entry.set.iter().find(|(own, _)| is_within(own, key) || is_within(key, own));
                let Some((own, at)) = touched else { continue };
                let message = format!(
                    "--set {key}={value} changes {own}, by which the set \"{}\" differs: it would no longer assume what it says",
                    entry.name.get_ref()
                );
                let help =
                    "change it in a copy of the study; the directory of each run holds one, under study/";
                self.mistakes.add(at.span(), "assumption.set", message, Some(help.to_owned()));
            }
        }
    }

    fn at_least_one(&mut self, count: &Spanned<u64>, key: &str) {
        if *count.get_ref() == 0 {
            self.mistakes.add(count.span(), key, "found 0, expected at least 1", None);
        }
    }

    fn derived(&mut self) -> Metrics {
        let mut metrics = Metrics::new();
        for (name, entry) in &self.file.metric {
            if let Some(seconds) = entry.get_ref().seconds {
                self.stretch(seconds, entry.span(), &format!("metric.{name}.seconds"));
            }
            match derived(entry.get_ref()) {
                Some(Derived::Ratio(first, second) | Derived::Difference(first, second))
                    if first == second =>
                {
                    let message = format!("it compares \"{first}\" with itself");
                    self.mistakes.add(entry.span(), &format!("metric.{name}"), message, None);
                }
                Some(derived) => {
                    metrics.insert(name.clone(), derived);
                }
                None => {
                    let message = "expected one of: `ratio` or `difference` with two paths; `sum` or `mean` with paths; \
                                   `share` with paths and `above`; `scaled` with a path and `by`; with `seconds`, `correlation` and `cap`, `shared_losses` and \
                                   `within`, or `quantile` and `queue`";
                    self.mistakes.add(entry.span(), &format!("metric.{name}"), message, None);
                }
            }
        }
        metrics
    }

    /// The units of the study's own metrics, as far as they have one.
    fn units(&mut self, metrics: &Metrics) -> Units {
        let mut stated = Units::new();
        for (name, entry) in &self.file.metric {
            let Some(word) = &entry.get_ref().unit else { continue };
            let key = format!("metric.{name}.unit");
            match Unit::named(word.get_ref()).filter(|unit| STATED.contains(unit)) {
                Some(unit) => drop(stated.insert(name.clone(), unit)),
                None => {
                    let known = STATED.map(Unit::name).join(", ");
                    let message = format!("found \"{}\", expected one of {known}", word.get_ref());
                    self.mistakes.add(word.span(), &key, message, None);
                }
            }
        }
        for (name, unit) in &stated {
            let Some(word) = self.file.metric.get(name).and_then(|it| it.get_ref().unit.as_ref()) else {
                continue;
            };
            let others = stated.iter().filter(|(other, _)| *other != name);
            let others: Units = others.map(|(name, unit)| (name.clone(), *unit)).collect();
            if let Some(of_parts) = metric::unit(name, metrics, &others).filter(|of_parts| of_parts != unit) {
                let message = format!("found \"{}\", but it is made of {}", unit.name(), of_parts.name());
                let help = "`scaled` and `by` convert a unit".to_owned();
                self.mistakes.add(word.span(), &format!("metric.{name}.unit"), message, Some(help));
            }
        }
        let unit = |name: &String| Some((name.clone(), metric::unit(name, metrics, &stated)?));
        metrics.keys().filter_map(unit).collect()
    }

    /// A stretch of run time has a beginning and an end.
    fn stretch(&mut self, stretch: Stretch, span: Range<usize>, key: &str) {
        if !stretch.is_within_a_run() {
            let Stretch { from, to } = stretch;
            let message =
                format!("found [{from}, {to}], expected a stretch of run time, from 0 on: [from, to]");
            self.mistakes.add(span, key, message, None);
        }
    }

    fn known_cell(&mut self, name: &str, span: Range<usize>, key: &str) {
        if self.is_named && !self.names.contains(name) {
            let message = format!("there is no cell called \"{name}\"");
            self.mistakes.add(span, key, message, known(self.names.iter().map(String::as_str)));
        }
    }
}

/// The metric that `entry` describes; `None` unless it has the keys of one form, and no others.
fn derived(entry: &MetricEntry) -> Option<Derived> {
    let MetricEntry {
        ratio,
        difference,
        sum,
        mean,
        scaled,
        by,
        share,
        above,
        correlation,
        cap,
        shared_losses,
        within,
        quantile,
        queue,
        seconds,
        unit: _,
    } = entry;
    let given = [
        ratio.is_some(),
        difference.is_some(),
        sum.is_some(),
        mean.is_some(),
        scaled.is_some(),
        by.is_some(),
        share.is_some(),
        above.is_some(),
        correlation.is_some(),
        cap.is_some(),
        shared_losses.is_some(),
        within.is_some(),
        quantile.is_some(),
        queue.is_some(),
        seconds.is_some(),
    ];
    let given = given.into_iter().filter(|is_given| *is_given).count();
    let list = |paths: &OneOrMany| match paths {
        OneOrMany::One(path) => vec![path.clone()],
        OneOrMany::Many(paths) => paths.clone(),
    };
    let over_time = |figure: TimeFigure, entity: &String| {
        Some(Derived::OverTime(OverTime { figure, entity: entity.clone(), seconds: (*seconds)? }))
    };
    let (correlation, shared_losses) = (correlation.as_ref().zip(*cap), shared_losses.as_ref().zip(*within));
    let quantile = queue.as_ref().zip(quantile.filter(|share| (0.0..=1.0).contains(share)));
    // Each form, and how many keys it has.
    let forms = [
        (1, ratio.as_ref().map(|(first, second)| Derived::Ratio(first.clone(), second.clone()))),
        (1, difference.as_ref().map(|(first, second)| Derived::Difference(first.clone(), second.clone()))),
        (1, sum.as_ref().map(|paths| Derived::Sum(list(paths)))),
        (1, mean.as_ref().map(|paths| Derived::Mean(list(paths)))),
        (2, scaled.as_ref().zip(*by).map(|(path, by)| Derived::Scaled(path.clone(), by))),
        (2, share.as_ref().zip(*above).map(|(paths, above)| Derived::Share { paths: list(paths), above })),
        (3, correlation.and_then(|(flow, cap)| over_time(TimeFigure::Correlation { cap }, flow))),
        (3, shared_losses.and_then(|(flow, within)| over_time(TimeFigure::SharedLosses { within }, flow))),
        (3, quantile.and_then(|(link, share)| over_time(TimeFigure::Quantile(share), link))),
    ];
    forms.into_iter().find_map(|(keys, form)| form.filter(|_| keys == given))
}

/// The units that a study may state of a metric of its own.
const STATED: [Unit; 10] = [
    Unit::Ms,
    Unit::Seconds,
    Unit::Bps,
    Unit::Pps,
    Unit::Share,
    Unit::Packets,
    Unit::Bytes,
    Unit::Count,
    Unit::Score,
    Unit::Ppm,
];

/// Whether `key` is `table` or lies in it.
fn is_within(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn settings(set: &Settings) -> impl Iterator<Item = Setting> + '_ {
    set.iter().map(|(key, value)| Setting {
        key: key.clone(),
        value: value.get_ref().to_string(),
        span: value.span(),
    })
}

/// A metric that the study reads.
struct Read<'a> {
    /// Of which cell; `None` if of all.
    cell: Option<&'a str>,
    metric: &'a String,
}

fn reads<'a>(
    claims: &'a [Claim],
    figures: &'a [Figure],
    tables: &'a [PublishedTable],
    also: &'a [String],
) -> Vec<Read<'a>> {
    fn of_cell<'a>(cell: &'a str, metric: &'a String) -> Read<'a> {
        Read { cell: Some(cell), metric }
    }
    let operands = claims.iter().flat_map(|claim| &claim.checks).flat_map(|check| &check.operands);
    let of_claims = operands.map(|operand| of_cell(&operand.cell, &operand.metric));
    let of_figures = figures.iter().flat_map(|figure| match &figure.kind {
        FigureKind::Cells { lines, .. } => {
            lines.iter().flat_map(|line| line.cells.iter().map(|cell| of_cell(cell, &line.metric))).collect()
        }
        FigureKind::Scatter { x, y, points, .. } => {
            let cells = points.iter().flat_map(|labelled| &labelled.cells);
            cells.flat_map(|cell| [of_cell(cell, x), of_cell(cell, y)]).collect()
        }
        FigureKind::Trace { kinds, cell, .. } => {
            kinds.iter().map(|kinds| of_cell(cell, &kinds.metric)).collect()
        }
        FigureKind::Quantiles { .. } | FigureKind::Absent(_) => Vec::new(),
    });
    let of_tables = tables.iter().flat_map(|table| &table.rows).map(|row| of_cell(&row.cell, &row.metric));
    let of_all = also.iter().map(|metric| Read { cell: None, metric });
    of_claims.chain(of_figures).chain(of_tables).chain(of_all).collect()
}

/// What is read of the cell called `cell`, and all that the study makes it of.
fn read_of<'a>(cell: &str, reads: &[Read<'a>], derived: &'a Metrics) -> BTreeSet<&'a str> {
    let is_read = |read: &&Read<'_>| read.cell.is_none_or(|of| of == cell);
    let mut open: Vec<&str> = reads.iter().filter(is_read).map(|read| read.metric.as_str()).collect();
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            open.extend(derived.get(name).into_iter().flat_map(Derived::parts));
        }
    }
    found
}

/// What the figures draw of `cell` beside its metrics.
fn kept(cell: &Cell, figures: &[Figure]) -> Kept {
    let mut kept = Kept::default();
    for figure in figures.iter().filter(|_| cell.assumption == 0) {
        match &figure.kind {
            FigureKind::Trace { series, cell: name, seconds, kinds, .. } if cell.name == *name => {
                let before = kept.traces.get(series);
                let stretch = before.map_or(*seconds, |before| before.joined(*seconds));
                kept.traces.insert(series.clone(), stretch);
                kept.kinds.extend(kinds.iter().map(|kinds| kinds.metric.clone()));
            }
            FigureKind::Quantiles { cell: name, flows } if cell.name == *name => {
                kept.delays.extend(flows.iter().cloned());
            }
            _ => {}
        }
    }
    kept
}

/// Different texts need different fingerprints, and nothing more.
fn fingerprint(text: &str) -> String {
    format!("{:016x}", fnv1a(text.bytes()))
}
