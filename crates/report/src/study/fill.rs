//! Pages whose figures come from a study's run: each marked place is written from its outcome.
//!
//! ```text
//! <!-- study foderaro-1995 claim F7: TCP largest delay ; times 0.001 ; digits 1 ; bare -->1.9<!-- end -->
//! ```
//!
//! The first words are the study and what is shown of it; options follow, each after ` ; ` (a bar would end
//! the cell of a table). A place in a line is text; `verdicts`, `tables`, `cells` and `figure` are Markdown
//! tables between lines of their own, `pictures` are the charts, each a file beside the page.

use talkpath_measure::figures::Unit;
use talkpath_study::{
    ArenaName, ArenaVerdict, CellOutcome, CheckOutcome, ClaimOutcome, Drawing, FigureLine, Outcome,
    TableOutcome, median, shown, shown_range, shown_unit,
};

use super::pictures::{Picture, picture_links, pictures};
use super::published::{Here, off, ours, printed};
use super::{count, medians_over, verdict_words};
use crate::number::{UNKNOWN, list};

/// What begins a marked place, and what ends it.
const BEGIN: &str = "<!-- study ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";
/// The place that shows every chart.
const PICTURES: &str = "pictures";

/// A marked place that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMistake {
    /// Of the page, from 1.
    pub line: usize,
    /// In words for a person.
    pub why: String,
}

/// `page` with every marked place written from the outcome of its study.
///
/// # Errors
/// Each place that names nothing.
pub fn fill_page(page: &str, outcomes: &[Outcome]) -> Result<String, Vec<PageMistake>> {
    let (mut filled, mut mistakes) = (String::new(), Vec::new());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        filled.push_str(before);
        // Of the page as it is: what is filled in may have more lines than what it replaces, or fewer.
        let read = page.len() - after.len();
        let line = page[..read].matches('\n').count() + 1;
        let Some((marker, body)) = after.split_once(CLOSE) else {
            mistakes.push(PageMistake { line, why: "this place's marker does not end".to_owned() });
            break;
        };
        let Some((old, later)) = body.split_once(END) else {
            mistakes.push(PageMistake { line, why: format!("no `{END}` ends this place") });
            break;
        };
        let text = match shown_at(marker, outcomes) {
            Ok(text) => text,
            Err(why) => {
                mistakes.push(PageMistake { line, why: format!("{marker}: {why}") });
                old.to_owned()
            }
        };
        filled.push_str(&format!("{BEGIN}{marker}{CLOSE}{text}{END}"));
        rest = later;
    }
    filled.push_str(rest);
    if mistakes.is_empty() { Ok(filled) } else { Err(mistakes) }
}

/// The pictures that `page` shows at its places `<!-- study STUDY pictures -->`: charts of the first run.
pub fn page_pictures(page: &str, outcomes: &[Outcome]) -> Vec<Picture> {
    let is_shown = |outcome: &&Outcome| {
        let runs = runs_of(&outcome.study, outcomes).unwrap_or_default();
        let is_first = runs.first().is_some_and(|first| core::ptr::eq(*first, *outcome));
        is_first && page.contains(&format!("{BEGIN}{} {PICTURES}{CLOSE}", outcome.study))
    };
    outcomes.iter().filter(is_shown).flat_map(pictures).collect()
}

/// What a marker asks for.
fn shown_at(marker: &str, outcomes: &[Outcome]) -> Result<String, String> {
    let mut parts = marker.split(" ; ").map(str::trim);
    let query = parts.next().unwrap_or_default();
    let options = Options::read(parts)?;
    let (study, query) = query.split_once(' ').ok_or("what is shown is missing")?;
    let runs = runs_of(study, outcomes)?;
    let outcome = options.run_of(&runs)?;
    let (word, what) = query.split_once(' ').unwrap_or((query, ""));
    let parted = || what.split_once(": ").ok_or_else(|| format!("`{word} ID: NAME` expected"));
    match word {
        // With an arena, of that arena alone.
        "verdicts" if options.arena.is_some() => Ok(verdicts(outcome, &[])),
        "verdicts" => Ok(verdicts(outcome, &runs[1..])),
        "tables" => Ok(tables(outcome)),
        PICTURES => Ok(picture_links(outcome)),
        "count" => Ok(count(outcome)),
        "kinds" => kinds(outcome, what),
        "figure" => table_of_figure(outcome, what, &options),
        "verdict" => Ok(verdict_words(&claim(outcome, what)?.in_first_arena)),
        "claim" => {
            let (id, name) = parted()?;
            of_claim(claim(outcome, id)?, name, &options)
        }
        "cell" => {
            let (name, metric) = parted()?;
            of_cells(outcome, name, metric, &options)
        }
        "cells" => {
            let (name, metrics) = parted()?;
            table_of_cells(outcome, name, metrics, &options)
        }
        other => Err(format!(
            "no `{other}`; there are claim, cell, cells, figure, verdict, verdicts, tables, pictures, count and kinds"
        )),
    }
}

/// The runs of `study`, from the simulator on; without an arena a place shows the first.
fn runs_of<'a>(study: &str, outcomes: &'a [Outcome]) -> Result<Vec<&'a Outcome>, String> {
    let mut runs: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.study == study).collect();
    runs.sort_by_key(|outcome| outcome.arena);
    if runs.is_empty() {
        let mut known: Vec<_> = outcomes.iter().map(|outcome| outcome.study.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        return Err(format!("no run of {study} is given; there are {}", known.join(", ")));
    }
    Ok(runs)
}

/// How a figure is shown.
#[derive(Default)]
struct Options {
    /// Of which run; of the first without.
    arena: Option<String>,
    /// The assumption set; the base without.
    set: Option<String>,
    /// Which of the values that a check compares, from 1; its one figure without.
    value: Option<usize>,
    /// What the figure is multiplied by; it has no unit then.
    times: Option<f64>,
    digits: Option<usize>,
    /// Without a unit.
    bare: bool,
    /// How many of the checks hold, instead of their figures.
    held: bool,
    /// The 95 % confidence interval instead of the median.
    interval: bool,
    /// The median of all figures instead of their range.
    median: bool,
}

impl Options {
    fn read<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut options = Self::default();
        for part in parts {
            let (word, value) = part.split_once(' ').unwrap_or((part, ""));
            let wrong = || format!("; {part}: a number expected");
            match word {
                "in" => options.arena = Some(value.to_owned()),
                "under" => options.set = Some(value.to_owned()),
                "value" => options.value = Some(value.parse().map_err(|_| wrong())?),
                "times" => options.times = Some(value.parse().map_err(|_| wrong())?),
                "digits" => options.digits = Some(value.parse().map_err(|_| wrong())?),
                "bare" => options.bare = true,
                "held" => options.held = true,
                "interval" => options.interval = true,
                "median" => options.median = true,
                _ => {
                    let known =
                        "in ARENA, under SET, value N, times X, digits N, bare, held, interval, median";
                    return Err(format!("no option `{word}`; there are {known}"));
                }
            }
        }
        Ok(options)
    }

    /// The run that is shown, of those of one study, from the simulator on.
    fn run_of<'a>(&self, runs: &[&'a Outcome]) -> Result<&'a Outcome, String> {
        let found =
            runs.iter().find(|outcome| self.arena.as_ref().is_none_or(|arena| arena == outcome.arena.name()));
        found.copied().ok_or_else(|| {
            let known: Vec<_> = runs.iter().map(|outcome| outcome.arena.name()).collect();
            let arena = self.arena.as_deref().unwrap_or_default();
            format!("no run in `{arena}` is given; there is {}", known.join(", "))
        })
    }

    /// The smallest and the largest of `values`, as one figure if they are shown alike.
    fn range(&self, unit: Option<Unit>, values: &[f64]) -> Result<String, String> {
        let middle = if self.median { median(values).map(|value| value.median) } else { None };
        let values = middle.as_ref().map_or(values, core::slice::from_ref);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() {
            return Err("it has no figure".to_owned());
        }
        if let Some(times) = self.times {
            return Ok(shown_range(None, (low * times, high * times), self.digits));
        }
        let text = shown_range(unit, (low, high), self.digits);
        let left_out = if self.bare { shown_unit(unit) } else { "" };
        Ok(text.strip_suffix(left_out).unwrap_or(&text).to_owned())
    }
}

fn claim<'a>(outcome: &'a Outcome, id: &str) -> Result<&'a ClaimOutcome, String> {
    let known = || outcome.claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>().join(", ");
    let found = outcome.claims.iter().find(|claim| claim.id == id);
    found.ok_or_else(|| format!("{} has no claim {id}; it has {}", outcome.study, known()))
}

/// The figures of the checks whose names fit `name`.
fn of_claim<'a>(claim: &'a ClaimOutcome, name: &str, options: &Options) -> Result<String, String> {
    let verdict: &ArenaVerdict = &claim.in_first_arena;
    let under = match &options.set {
        Some(set) => verdict.under_set(set).ok_or_else(|| format!("{} was not judged under {set}", claim.id)),
        None => verdict.by_assumption.first().ok_or_else(|| format!("{} was not judged", claim.id)),
    }?;
    let checks: Vec<&CheckOutcome> = under.checks.iter().filter(|check| fits(name, &check.name)).collect();
    if checks.is_empty() {
        let known: Vec<_> = under.checks.iter().map(|check| check.name.as_str()).collect();
        return Err(format!("{} has no check `{name}`; it has {}", claim.id, known.join("; ")));
    }
    if options.held {
        let held = checks.iter().filter(|check| check.holds == Some(true)).count();
        return Ok(format!("{held} of {}", checks.len()));
    }
    let mut values = Vec::new();
    for check in &checks {
        let value = options.value.map(|at| check.values.get(at.wrapping_sub(1)));
        let (figure, ci95) = match value {
            Some(value) => (value.map(|value| value.median), value.and_then(|value| value.ci95)),
            None => (check.figure.or_else(|| Some(check.values.first()?.median)), check.ci95),
        };
        match options.interval {
            true => values.extend(ci95.into_iter().flat_map(|(low, high)| [low, high])),
            false => values.extend(figure),
        }
    }
    let metric = |check: &'a CheckOutcome| {
        let value = options.value.and_then(|at| check.values.get(at.wrapping_sub(1)));
        let (metric, unit) = match value {
            Some(value) => (value.metric.as_str(), value.unit()),
            None => (check.metric.as_str(), check.figure_unit()),
        };
        Named { name: &check.name, metric, unit }
    };
    options.range(one_unit(name, checks.iter().copied().map(metric))?, &values)
}

/// A figure that a name fits, with its metric and unit.
#[derive(Clone, Copy)]
struct Named<'a> {
    name: &'a str,
    metric: &'a str,
    unit: Option<Unit>,
}

/// The unit of the figures that `name` fits, if they have one unit.
fn one_unit<'a>(name: &str, figures: impl IntoIterator<Item = Named<'a>>) -> Result<Option<Unit>, String> {
    let mut figures = figures.into_iter();
    let Some(first) = figures.next() else { return Ok(None) };
    let what = |figure: &Named<'_>| {
        if figure.unit.is_none() { "a number".to_owned() } else { figure.metric.to_owned() }
    };
    match figures.find(|other| shown_unit(other.unit) != shown_unit(first.unit)) {
        None => Ok(first.unit),
        Some(other) => Err(format!(
            "`{name}` fits figures in different units: `{}` is {}, `{}` is {}; name those of one unit",
            first.name,
            what(&first),
            other.name,
            what(&other),
        )),
    }
}

/// The cells under the base whose names fit `name`.
fn cells<'a>(outcome: &'a Outcome, name: &str) -> Result<Vec<&'a CellOutcome>, String> {
    let base = outcome.assumptions.first().map(|it| it.0.as_str()).unwrap_or_default();
    let cells = outcome.cells.iter().filter(|cell| cell.assumption == base && cell.arena == outcome.arena);
    let found: Vec<_> = cells.filter(|cell| fits(name, &cell.cell)).collect();
    if found.is_empty() { Err(format!("no cell `{name}` ran under {base}")) } else { Ok(found) }
}

/// The medians of `metric` over the cells whose names fit `name`.
fn of_cells(outcome: &Outcome, name: &str, metric: &str, options: &Options) -> Result<String, String> {
    let found = cells(outcome, name)?;
    let values: Vec<_> = found.iter().filter_map(|cell| cell.metrics.get(metric)).collect();
    if values.is_empty() {
        let known: Vec<_> = found[0].metrics.keys().map(String::as_str).collect();
        return Err(format!("{} has no {metric}; it has {}", found[0].cell, known.join(", ")));
    }
    let of: Vec<f64> = match options.interval {
        true => values.iter().filter_map(|value| value.ci95).flat_map(|(low, high)| [low, high]).collect(),
        false => values.iter().map(|value| value.median).collect(),
    };
    options.range(values[0].unit(), &of)
}

/// A Markdown table of the medians of `metrics`, a row for each cell whose name fits `name`.
fn table_of_cells(outcome: &Outcome, name: &str, metrics: &str, options: &Options) -> Result<String, String> {
    let metrics: Vec<&str> = metrics.split(", ").collect();
    let mut text = String::from("\n\n");
    text.push_str(&row(&[&["cell"][..], metrics.as_slice()].concat()));
    text.push_str(&row(&vec!["---"; metrics.len() + 1]));
    for cell in cells(outcome, name)? {
        let mut columns = vec![cell.cell.clone()];
        for metric in &metrics {
            let value = cell.metrics.get(*metric).ok_or_else(|| format!("{} has no {metric}", cell.cell))?;
            columns.push(options.range(value.unit(), &[value.median])?);
        }
        text.push_str(&row(&columns.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    text.push('\n');
    Ok(text)
}

/// A figure of medians as a Markdown table: a row for each line, a column for each place on its axis. The
/// first cell says what the numbers are, with their unit.
fn table_of_figure(outcome: &Outcome, number: &str, options: &Options) -> Result<String, String> {
    let Some(figure) = outcome.figures.iter().find(|figure| figure.number == number) else {
        let known: Vec<_> = outcome.figures.iter().map(|figure| figure.number.as_str()).collect();
        return Err(format!("no figure {number}; there are {}", known.join(", ")));
    };
    let (places, lines): (Vec<AxisPlace>, &[FigureLine]) = match &figure.drawing {
        Drawing::Lines { lines } => (AxisPlace::of_numbers(lines), lines),
        Drawing::Groups { names, lines } => (AxisPlace::of_names(names), lines),
        _ => return Err(format!("figure {number} does not show medians over an axis")),
    };
    let mut text = String::from("\n\n");
    let heads: Vec<&str> = places.iter().map(|place| place.head.as_str()).collect();
    let head = match figure.x_title.as_str() {
        "" => figure.y_title.clone(),
        x_title => format!("{}, by {x_title}", figure.y_title),
    };
    text.push_str(&row(&[&[head.as_str()][..], &heads].concat()));
    text.push_str(&row(&vec!["---"; heads.len() + 1]));
    for line in lines {
        let mut columns = vec![line.label.clone()];
        for AxisPlace { x, .. } in &places {
            let point = line.points.iter().find(|point| point.x.total_cmp(x).is_eq());
            columns.push(match point {
                Some(point) => options.range(None, &[point.median])?,
                None => UNKNOWN.to_owned(),
            });
        }
        text.push_str(&row(&columns.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    text.push('\n');
    Ok(text)
}

/// A place on the horizontal axis of a figure: a column of its table.
struct AxisPlace {
    /// The `x` of the points there.
    x: f64,
    head: String,
}

impl AxisPlace {
    /// The numbers at which `lines` have points, ascending.
    fn of_numbers(lines: &[FigureLine]) -> Vec<Self> {
        let mut numbers: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.into_iter().map(|x| Self { x, head: shown(None, x) }).collect()
    }

    fn of_names(names: &[String]) -> Vec<Self> {
        let place = |(at, name): (usize, &String)| Self { x: at as f64, head: name.clone() };
        names.iter().enumerate().map(place).collect()
    }
}

/// Whether `name` is `pattern`, in which a `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last.is_some_and(|part| part.is_empty() || name.ends_with(part))
}

/// Which kinds of runs a figure has, and how many there are of each.
fn kinds(outcome: &Outcome, number: &str) -> Result<String, String> {
    let figure = outcome.figures.iter().find(|figure| figure.number == number);
    match figure.map(|figure| &figure.drawing) {
        Some(Drawing::Traces { panels, .. }) if panels.iter().any(|panel| !panel.title.is_empty()) => {
            let titles = panels.iter().map(|panel| panel.title.split(';').next().unwrap_or_default());
            Ok(titles.collect::<Vec<_>>().join("; "))
        }
        _ => Err(format!("no figure {number} with kinds of runs")),
    }
}

/// Every claim, as a Markdown table; below it what came out in the other arenas, each a table of its own.
fn verdicts(outcome: &Outcome, elsewhere: &[&Outcome]) -> String {
    let mut text = String::from(
        "\n\n| claim | what it says | published | here | verdict |\n| --- | --- | --- | --- | --- |\n",
    );
    for claim in &outcome.claims {
        let words = verdict_words(&claim.in_first_arena);
        let cells = [&claim.id, &claim.claim, &claim.published, &claim.in_first_arena.reproduced, &words];
        text.push_str(&row(&cells.map(String::as_str)));
    }
    text.push('\n');
    text.push_str(&about_runs(outcome));
    for other in elsewhere {
        text.push_str(&verdicts_in(other));
    }
    text.push('\n');
    text
}

/// The claims in a further arena. What they say and what was published stands in the first table.
fn verdicts_in(outcome: &Outcome) -> String {
    let arena = outcome.arena;
    let mut text = format!("\n**{}**\n\n", heading(arena));
    text.push_str(&format!("| claim | in `{arena}` | verdict |\n| --- | --- | --- |\n"));
    let (absent, judged): (Vec<_>, Vec<_>) =
        outcome.claims.iter().partition(|claim| claim.in_first_arena.left_out);
    for claim in judged {
        text.push_str(&row(&[
            &claim.id,
            &claim.in_first_arena.reproduced,
            &verdict_words(&claim.in_first_arena),
        ]));
    }
    text.push('\n');
    text.push_str(&about_runs(outcome));
    if !absent.is_empty() {
        let ids: Vec<String> = absent.iter().map(|claim| claim.id.clone()).collect();
        text.push_str(&format!("Not part of this run: {}.\n", list(&ids)));
    }
    text
}

/// What a further table of verdicts is called.
const fn heading(arena: ArenaName) -> &'static str {
    match arena {
        ArenaName::Sim => "In the simulator",
        ArenaName::Emu => "Over real sockets",
        ArenaName::Campaign => "Between hosts of a campaign",
    }
}

/// On what the verdicts stand.
fn about_runs(outcome: &Outcome) -> String {
    let length = if outcome.quick { " in the short form (`--quick`)" } else { "" };
    let count = count(outcome);
    let over = medians_over(outcome).replacen('m', "M", 1);
    format!(
        "{count} {over}{length} in `{}`; in brackets 95 % confidence intervals, from 6 repetitions on.{}\n",
        outcome.arena,
        one_day(outcome)
    )
}

/// That a run in real time is of its day, and what the machine disturbed in it; nothing of other runs.
fn one_day(outcome: &Outcome) -> String {
    let Some(day) = &outcome.day else { return String::new() };
    let disturbed: u64 = outcome.cells.iter().map(|cell| cell.disturbed).sum();
    let left_out = match disturbed {
        0 => String::new(),
        1 => " 1 repetition is left out, because the machine disturbed it past the stated limits.".to_owned(),
        many => {
            format!(
                " {many} repetitions are left out, because the machine disturbed them past the stated limits."
            )
        }
    };
    format!(
        " One run, of {day}: real sockets do not repeat themselves, and another run gives other figures.{left_out}"
    )
}

/// Printed figures beside ours, as Markdown tables.
fn tables(outcome: &Outcome) -> String {
    let here = Here { heading: String::new(), is_one_arena: outcome.arenas.len() == 1 };
    let mut text = String::from("\n\n");
    for table in &outcome.tables {
        text.push_str(&format!("**{}**\n\n", table.title));
        text.push_str(&one_table(table, &here));
        text.push('\n');
    }
    text
}

fn one_table(table: &TableOutcome, here: &Here) -> String {
    let has_columns = table.rows.iter().any(|row| !row.row.column.is_empty());
    let has_notes = table.rows.iter().any(|row| !row.row.note.is_empty());
    let column = if has_columns { &["column"][..] } else { &[] };
    let note = if has_notes { &["note"][..] } else { &[] };
    let heads = [&["what"][..], column, &["printed", "here", "off by", "role"], note].concat();
    let mut text = row(&heads);
    text.push_str(&row(&vec!["---"; heads.len()]));
    for outcome in &table.rows {
        let own = &outcome.row;
        let what =
            if own.what.is_empty() { format!("{}, {}", own.cell, own.metric) } else { own.what.clone() };
        let mut cells = vec![what];
        if has_columns {
            cells.push(own.column.clone());
        }
        cells.extend([printed(outcome), ours(outcome, here), off(outcome, here), own.role.to_string()]);
        if has_notes {
            cells.push(own.note.clone());
        }
        text.push_str(&row(&cells.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    text
}

fn row(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
#[path = "fill_tests.rs"]
pub(super) mod tests;
