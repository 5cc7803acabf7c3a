//! Thresholds: the figures of summary.json held against what the scenario, `--require` and `--fail-if`
//! demand.
//!
//! ```text
//! Plan.thresholds ─► before_the_run: is there such a figure?
//!            └─► + Summary ─► judge ─► one line each, JUnit's XML, exit code 5
//! ```
//!
//! A threshold is about one or more cells, and in each about a flow, with its copies and directions, or a
//! link. Its figure in a cell is the median over the repetitions; in each of them the threshold must hold.
//! The line shows the figure with the least margin.

mod figure;
mod junit;

use std::path::Path;

use talkpath_measure::summary::{RunSummary, Summary};
use talkpath_scenario::{Bound, Operator, Plan, Threshold, ThresholdOf};

use self::figure::{Looked, known_before, look_up, no_such_figure};
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
    /// How many cells it is about.
    cells: usize,
    /// In how many of them it does not hold.
    failing: usize,
}

/// A figure in one cell.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    /// The median over the repetitions; `None` if it is not known.
    value: Option<f64>,
    /// The copy or direction of the flow, if it is not the flow itself.
    member: Option<String>,
    /// The cell's label.
    cell: String,
    repetitions: usize,
}

/// Refuses what is known not to be there before anything runs.
pub(crate) fn before_the_run(plan: &Plan) -> Result<(), Failure> {
    plan.thresholds.iter().try_for_each(|threshold| known_before(threshold).map_err(Failure::Usage))
}

/// Holds `summary` against each threshold of `plan`.
pub(crate) fn judge(plan: &Plan, summary: &Summary) -> Result<Vec<Judgement>, Failure> {
    plan.thresholds.iter().map(|threshold| judge_one(threshold, plan, summary)).collect()
}

impl Judgement {
    fn holds(&self) -> bool {
        self.failing == 0
    }

    /// The figure that was found, and what must hold where.
    fn text(&self) -> String {
        let found = self.found.value.map_or("is not known (null)".to_owned(), number);
        let several = self.found.repetitions > 1;
        let place = [
            self.found.member.clone(),
            Some(self.found.cell.clone()).filter(|cell| !cell.is_empty()),
            several.then(|| format!("median of {} repetitions", self.found.repetitions)),
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
    let failing: Vec<_> = judged.iter().filter(|it| !it.holds()).collect();
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

/// Writes JUnit's XML.
pub(crate) fn write_junit(path: &Path, name: &str, judged: &[Judgement]) -> Result<(), Failure> {
    let text = junit::xml(name, judged).map_err(|why| Failure::write(path, why))?;
    write_bytes(path, &text)
}

fn judge_one(threshold: &Threshold, plan: &Plan, summary: &Summary) -> Result<Judgement, Failure> {
    let bound = threshold.bound;
    let mut cells: Vec<Vec<Found>> = Vec::new();
    for &index in &threshold.cells {
        let runs: Vec<&RunSummary> = summary.runs.iter().filter(|run| run.cell == index).collect();
        let label = plan.cells.iter().find(|cell| cell.index == index).map_or("", |cell| cell.label.as_str());
        let found = figures(threshold, &runs)?.into_iter().map(|(member, values)| Found {
            value: median(&values, bound),
            member,
            cell: label.to_owned(),
            repetitions: values.len(),
        });
        cells.push(found.collect());
    }
    let fails = |found: &Found| !found.value.is_some_and(|value| bound.holds(value));
    let failing = cells.iter().filter(|cell| cell.iter().any(fails)).count();
    let count = cells.len();
    let worst =
        cells.into_iter().flatten().min_by(|a, b| margin(a.value, bound).total_cmp(&margin(b.value, bound)));
    let nothing = Found { value: None, member: None, cell: String::new(), repetitions: 0 };
    let found = worst.unwrap_or(nothing);
    Ok(Judgement { figure: threshold.figure.clone(), bound, found, cells: count, failing })
}

/// A copy or direction, if it is not the flow itself, and its figure in each repetition.
type Figures = Vec<(Option<String>, Vec<Option<f64>>)>;

/// The figure of each copy and direction, or of the link, in the repetitions of one cell.
fn figures(threshold: &Threshold, runs: &[&RunSummary]) -> Result<Figures, Failure> {
    // A cell of which nothing was kept has no figure.
    if runs.is_empty() {
        return Ok(vec![(None, vec![None])]);
    }
    let path = threshold.path.as_str();
    let (name, members) = match &threshold.of {
        ThresholdOf::Link { name } => {
            let values = runs.iter().map(|run| look_up(run.links.get(name), path));
            return Ok(vec![(None, known(values, threshold, runs)?)]);
        }
        ThresholdOf::Flow { name, members } => (name, members),
    };
    // Of the copies together there are figures that none of them has.
    let is_of_group = runs.iter().all(|run| {
        let of_members = members.iter().filter_map(|member| run.flows.get(member));
        of_members.clone().all(|flow| look_up(Some(flow), path) == Looked::Unknown)
            && run.groups.contains_key(name)
    });
    if is_of_group {
        let values = runs.iter().map(|run| look_up(run.groups.get(name), path));
        return Ok(vec![(None, known(values, threshold, runs)?)]);
    }
    let there = members.iter().filter(|member| runs.iter().any(|run| run.flows.contains_key(*member)));
    let of_member = |member: &String| {
        let values = runs.iter().map(|run| look_up(run.flows.get(member), path));
        Ok((Some(member.clone()).filter(|member| member != name), known(values, threshold, runs)?))
    };
    there.map(of_member).collect()
}

/// The figures, if they are figures.
fn known(
    values: impl Iterator<Item = Looked>,
    threshold: &Threshold,
    runs: &[&RunSummary],
) -> Result<Vec<Option<f64>>, Failure> {
    let value = |looked| match looked {
        Looked::Figure(value) => Ok(Some(value)),
        Looked::Null => Ok(None),
        Looked::Unknown => Err(Failure::Usage(no_such_figure(threshold, runs))),
    };
    values.map(value).collect()
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
