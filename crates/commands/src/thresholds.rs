//! Thresholds: the figures of summary.json held against what the scenario, `--require` and `--fail-if`
//! demand.
//!
//! ```text
//! Plan.thresholds ─► before_the_run: is there such a figure?
//!            └─► + Summary ─► judge ─► one line each, JUnit's XML, exit code 5
//! ```
//!
//! A threshold is about one or more cells, and in each about a flow, with its copies and directions, or a
//! link. Its figure in a cell is the median over the repetitions, or of flags the worst; the threshold must
//! hold in each cell that has the flow or link and such a figure. The line shows the figure with the least
//! margin.

mod figure;
mod junit;

use std::collections::BTreeMap;
use std::path::Path;

use talkpath_measure::summary::{RunSummary, Summary};
use talkpath_scenario::{Bound, Operator, Plan, Scenario, Threshold, ThresholdOf};

use self::figure::{Looked, known_before, look_up, no_such_figure};
use crate::experiment::cell_of;
use crate::failure::Failure;
use crate::run_dir::write_bytes;

/// What a run must hold, and where else to write whether it did.
pub(crate) struct Demands<'a> {
    /// Its cells are those that are judged: a cure that is tried beside them is not.
    pub(crate) plan: &'a Plan,
    /// `--junit`.
    pub(crate) junit: Option<&'a Path>,
}

/// Whether a threshold holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Judgement {
    /// As it was written: `call.mos`.
    figure: String,
    bound: Bound,
    /// Where the margin is least.
    found: Found,
    /// How many cells have such a figure.
    cells: usize,
    /// In how many of them it does not hold.
    failing: usize,
    /// Why there is nothing to judge: no cell has such a figure.
    unknown: Option<String>,
}

/// A figure in one cell.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    /// The median over the repetitions, or of flags the worst; `None` if it is not known.
    value: Option<f64>,
    /// The copy or direction of the flow, if it is not the flow itself.
    member: Option<String>,
    /// The cell's label.
    cell: String,
    repetitions: usize,
    /// It is a flag: all repetitions must hold.
    all_hold: bool,
}

/// Refuses what is known not to be there before anything runs.
pub(crate) fn before_the_run(plan: &Plan) -> Result<(), Failure> {
    plan.thresholds.iter().try_for_each(|threshold| known_before(threshold).map_err(Failure::Usage))
}

/// Holds `summary` against each threshold of `plan`.
pub(crate) fn judge(plan: &Plan, summary: &Summary) -> Vec<Judgement> {
    let mut runs: CellRuns<'_> = BTreeMap::new();
    for run in &summary.runs {
        runs.entry(run.cell).or_default().push(run);
    }
    plan.thresholds.iter().map(|threshold| judge_one(threshold, plan, &runs)).collect()
}

impl Judgement {
    fn holds(&self) -> bool {
        self.failing == 0 && self.unknown.is_none()
    }

    /// The figure that was found, and what must hold where.
    fn text(&self) -> String {
        let found = match (&self.unknown, self.found.value) {
            (Some(_), _) => "is no figure of this run".to_owned(),
            (None, None) => "is not known (null)".to_owned(),
            (None, Some(value)) => number(value),
        };
        let over = if self.found.all_hold { "worst" } else { "median" };
        let several = self.found.repetitions > 1;
        let place = [
            self.found.member.clone(),
            Some(self.found.cell.clone()).filter(|cell| !cell.is_empty()),
            several.then(|| format!("{over} of {} repetitions", self.found.repetitions)),
            (self.cells > 1).then(|| match self.failing {
                0 => format!("least margin of {} cells", self.cells),
                failing => format!("fails in {failing} of {} cells", self.cells),
            }),
        ];
        let place = place.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        format!("{} {found}, must be {}{place}", self.figure, self.bound)
    }
}

/// A line for each threshold.
pub(crate) fn lines(judged: &[Judgement]) -> String {
    let word = |it: &Judgement| if it.holds() { "holds" } else { "FAILS" };
    judged.iter().map(|it| format!("{}  {}\n", word(it), it.text())).collect()
}

/// Why the exit code is 5, if it is; `with_lines` if nobody has read the lines yet.
pub(crate) fn failure(judged: &[Judgement], with_lines: bool) -> Option<Failure> {
    let failing: Vec<_> = judged.iter().filter(|it| it.failing > 0).collect();
    if failing.is_empty() {
        return None;
    }
    let count = match judged.len() {
        1 => "the threshold does not hold".to_owned(),
        all => format!("{} of {all} thresholds do not hold", failing.len()),
    };
    let why = failing.iter().map(|it| format!("\n  {}", it.text())).collect::<String>();
    Some(Failure::Threshold(if with_lines { format!("{count}:{why}") } else { count }))
}

/// Why the exit code is 2, if it is: thresholds about figures that are in no cell.
pub(crate) fn unknown(judged: &[Judgement]) -> Option<Failure> {
    let why: Vec<_> = judged.iter().filter_map(|it| it.unknown.as_deref()).collect();
    (!why.is_empty()).then(|| Failure::Usage(why.join("\n")))
}

/// Writes JUnit's XML.
pub(crate) fn write_junit(path: &Path, name: &str, judged: &[Judgement]) -> Result<(), Failure> {
    let text = junit::xml(name, judged).map_err(|why| Failure::write(path, why))?;
    write_bytes(path, &text)
}

/// The repetitions of each cell.
type CellRuns<'a> = BTreeMap<u64, Vec<&'a RunSummary>>;

fn judge_one(threshold: &Threshold, plan: &Plan, by_cell: &CellRuns<'_>) -> Judgement {
    let bound = threshold.bound;
    let mut cells: Vec<Vec<Found>> = Vec::new();
    let (mut all, mut seen): (Vec<&RunSummary>, Vec<Looked>) = Default::default();
    for &index in &threshold.cells {
        let cell = cell_of(plan, index);
        if cell.is_some_and(|cell| !is_in(&threshold.of, &cell.scenario)) {
            continue;
        }
        let runs = by_cell.get(&index).map_or(&[][..], Vec::as_slice);
        let label = cell.map_or("", |cell| cell.label.as_str());
        let figures = figures(threshold, runs);
        all.extend(runs);
        seen.extend(figures.iter().flat_map(|(_, values)| values));
        if figures.iter().all(|(_, values)| values.iter().all(|value| *value == Looked::Unknown)) {
            continue;
        }
        let found =
            |(member, values): (Option<String>, Vec<Looked>)| Found::of(member, label, &values, bound);
        cells.push(figures.into_iter().map(found).collect());
    }
    // What would stand below `null` may be a figure or not: a cell that can tell, and knows none, decides.
    let is_none = seen.contains(&Looked::Unknown)
        && seen.iter().all(|value| matches!(value, Looked::Unknown | Looked::Below));
    let unknown = is_none.then(|| no_such_figure(threshold, &all));
    if is_none {
        cells.clear();
    }
    let fails = |found: &Found| !found.value.is_some_and(|value| bound.holds(value));
    let failing = cells.iter().filter(|cell| cell.iter().any(fails)).count();
    let count = cells.len();
    let worst =
        cells.into_iter().flatten().min_by(|a, b| margin(a.value, bound).total_cmp(&margin(b.value, bound)));
    let found = worst.unwrap_or_else(|| Found::of(None, "", &[], bound));
    Judgement { figure: threshold.figure.clone(), bound, found, cells: count, failing, unknown }
}

/// Whether the flow or the link is in this cell: a sweep may give a flow directions, or the path links, that
/// not all cells have.
fn is_in(of: &ThresholdOf, scenario: &Scenario) -> bool {
    match of {
        ThresholdOf::Flow { members, .. } => scenario.flows.iter().any(|flow| members.contains(&flow.name)),
        ThresholdOf::Link { name } => scenario.links.iter().any(|link| link.name == *name),
    }
}

/// A copy or direction, if it is not the flow itself, and its figure in each repetition.
type Figures = Vec<(Option<String>, Vec<Looked>)>;

/// The figure of each copy and direction, or of the link, in the repetitions of one cell.
fn figures(threshold: &Threshold, runs: &[&RunSummary]) -> Figures {
    // A cell of which nothing was kept has no figure.
    if runs.is_empty() {
        return vec![(None, vec![Looked::Below])];
    }
    let path = threshold.path.as_str();
    let figures: Figures = match &threshold.of {
        ThresholdOf::Link { name } => {
            vec![(None, runs.iter().map(|run| look_up(run.links.get(name), path)).collect())]
        }
        ThresholdOf::Flow { name, members } => {
            // Of the copies together there are figures that none of them has.
            let is_of_group = runs.iter().all(|run| {
                let mut of_members = members.iter().filter_map(|member| run.flows.get(member));
                of_members.all(|flow| look_up(Some(flow), path) == Looked::Unknown)
                    && run.groups.contains_key(name)
            });
            if is_of_group {
                vec![(None, runs.iter().map(|run| look_up(run.groups.get(name), path)).collect())]
            } else {
                let is_there = |member: &&String| runs.iter().any(|run| run.flows.contains_key(*member));
                let of_member = |member: &String| {
                    let values = runs.iter().map(|run| look_up(run.flows.get(member), path)).collect();
                    (Some(member.clone()).filter(|member| member != name), values)
                };
                members.iter().filter(is_there).map(of_member).collect()
            }
        }
    };
    match figures.is_empty() {
        true => vec![(None, vec![Looked::Below; runs.len()])],
        false => figures,
    }
}

impl Found {
    /// What `values`, one a repetition, are together: the median of numbers, and of flags the one that holds
    /// least, as a single file that is damaged shall not pass among others.
    fn of(member: Option<String>, cell: &str, values: &[Looked], bound: Bound) -> Self {
        let all_hold = values.iter().any(|value| matches!(value, Looked::Flag(_)));
        let numbers: Vec<Option<f64>> = values.iter().map(|value| value.number()).collect();
        let least = |a: &&Option<f64>, b: &&Option<f64>| margin(**a, bound).total_cmp(&margin(**b, bound));
        let value = match all_hold {
            true => numbers.iter().min_by(least).copied().flatten(),
            false => median(&numbers, bound),
        };
        Self { value, member, cell: cell.to_owned(), repetitions: values.len(), all_hold }
    }
}

/// The median of the repetitions. One whose figure is not known counts as worse than all others; if the
/// median rests on such a one, it is not known either.
fn median(values: &[Option<f64>], bound: Bound) -> Option<f64> {
    let mut values = values.to_vec();
    let worst = match bound.operator {
        Operator::AtMost | Operator::Below => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    };
    values.sort_by(|a, b| a.unwrap_or(worst).total_cmp(&b.unwrap_or(worst)));
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some((lower? + upper?) / 2.0)
}

/// How far a figure is from failing; below 0 it fails.
fn margin(value: Option<f64>, bound: Bound) -> f64 {
    let Some(value) = value else { return f64::NEG_INFINITY };
    match bound.operator {
        Operator::AtLeast | Operator::Above => value - bound.value,
        Operator::AtMost | Operator::Below => bound.value - value,
        Operator::Equal => -(value - bound.value).abs(),
        Operator::Different => (value - bound.value).abs(),
    }
}

/// With six significant digits: enough to be told from a bound.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let digits = 5 - value.abs().log10().floor().clamp(-12.0, 5.0) as i32;
    let text = format!("{value:.*}", usize::try_from(digits).unwrap_or(0));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests;
