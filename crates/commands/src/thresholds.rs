//! Thresholds: the figures of summary.json held against what the scenario, `--require` and `--fail-if`
//! demand.
//!
//! ```text
//! Plan.thresholds ─► refuse_unknown_figures: is there such a figure?
//!            └─► + Summary ─► judge ─► one line each, JUnit's XML, exit code 5
//! ```
//!
//! A threshold is about one or more cells, and in each about a flow, with its copies and directions, or a
//! link. Its figure in a cell is a statistic over the repetitions: the one that it names, else that of the
//! tables (`measure::statistic`); a flag must hold in each repetition. The threshold must hold in each cell
//! that has the flow or link and such a figure. The line shows the figure with the least margin.
//!
//! A bound on a share that is finer than one message of the run neither holds nor fails, unless what was seen
//! is clear all the same: it is undecided (`measure::metrics::share`). A bound on the share of lost messages
//! is undecided, too, if more messages are unfinished than ended, unless the unfinished ones cannot change
//! the outcome.

mod figure;
mod junit;
mod unheard;

use core::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use talkpath_measure::figures::statistic_of;
use talkpath_measure::figures::text::significant;
use talkpath_measure::metrics::share;
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{RunSummary, Summary, ThresholdOutcome, ThresholdSummary};
use talkpath_scenario::{Bound, Operator, Plan, Scenario, Threshold, ThresholdOf};
use talkpath_units::counted;

use self::figure::{Looked, Observed, flow_figure, group_figure, known_before, link_figure, no_such_figure};
use crate::failure::Failure;
use crate::output_file::write_named_bytes;

/// A threshold, held against a run.
#[derive(Debug, PartialEq)]
struct Judgement {
    /// As it was written: `call.mos`.
    figure: String,
    bound: Bound,
    /// Where the margin is least.
    found: Found,
    /// How many cells have such a figure.
    cells: usize,
    /// In how many of these cells the threshold fails.
    failing: usize,
    /// In how many of these cells the threshold is undecided.
    undecided: usize,
    /// Why there is nothing to judge: no cell has such a figure.
    unknown: Option<String>,
    /// What it does not see although it holds.
    unheard: Option<String>,
}

/// A figure in one cell.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    /// The statistic over the repetitions, or of flags the worst; `None` if it is not known.
    value: Option<f64>,
    /// `None` of a flag, which must hold in all repetitions.
    statistic: Option<Statistic>,
    /// The copy or direction of the flow, if it is not the flow itself.
    member: Option<String>,
    /// The cell's label.
    cell: String,
    repetitions: usize,
    /// Of how many messages it is a share, if it is one.
    messages: Option<u64>,
    /// How many messages the share leaves out, as they were unfinished at the end.
    unfinished: u64,
    outcome: ThresholdOutcome,
}

/// Refuses a threshold about a figure that no run of `plan` can have. Nothing has run yet.
pub(crate) fn refuse_unknown_figures(plan: &Plan) -> Result<(), Failure> {
    plan.thresholds.iter().try_for_each(|threshold| known_before(threshold).map_err(Failure::Usage))
}

/// Holds `summary` against each threshold of `plan`, whose cells are those that are judged: a cure that is
/// tried beside them is not.
pub(crate) fn judge(plan: &Plan, summary: &Summary) -> Vec<ThresholdSummary> {
    let mut runs: CellRuns<'_> = BTreeMap::new();
    for run in summary.counted_runs() {
        runs.entry(run.cell).or_default().push(run);
    }
    let judged = |threshold| {
        let mut judgement = judge_one(threshold, plan, &runs);
        if judgement.outcome() == ThresholdOutcome::Holds {
            judgement.unheard = unheard::warning(threshold, &runs);
        }
        judgement.summary()
    };
    plan.thresholds.iter().map(judged).collect()
}

impl Judgement {
    fn outcome(&self) -> ThresholdOutcome {
        match (&self.unknown, self.failing, self.undecided) {
            (Some(_), ..) => ThresholdOutcome::Unknown,
            (None, 1.., _) => ThresholdOutcome::Fails,
            // What no cell knows does not hold.
            (None, 0, 0) if self.cells == 0 => ThresholdOutcome::Fails,
            (None, 0, 0) => ThresholdOutcome::Holds,
            (None, 0, 1..) => ThresholdOutcome::Undecided,
        }
    }

    fn summary(self) -> ThresholdSummary {
        let text = match &self.unknown {
            // This text also says what would be right.
            Some(why) => why.clone(),
            None => self.text(),
        };
        let outcome = self.outcome();
        let is_mostly_unfinished = self.found.is_mostly_unfinished();
        let Self { figure, bound, found, cells, failing, undecided, .. } = self;
        ThresholdSummary {
            figure,
            bound: bound.to_string(),
            outcome,
            statistic: found.statistic,
            found: found.value.filter(|value| value.is_finite()),
            flow: found.member,
            cell: found.cell,
            repetitions: found.repetitions as u64,
            cells: cells as u64,
            failing: failing as u64,
            undecided: undecided as u64,
            messages: found.messages,
            needed: share::needed(bound.value)
                .filter(|_| outcome == ThresholdOutcome::Undecided && !is_mostly_unfinished),
            text,
        }
    }

    /// The figure that was found, and what must hold where.
    fn text(&self) -> String {
        let Found { value, statistic, member, cell, repetitions, .. } = &self.found;
        let found =
            value.map_or_else(|| "is not known (null)".to_owned(), |value| significant(value, DIGITS));
        let over = statistic.map_or("worst", Statistic::word);
        let cells = match (self.cells, self.failing, self.undecided) {
            (0 | 1, ..) => None,
            (cells, 0, 0) => Some(format!("least margin of {cells} cells")),
            (cells, 0, undecided) => Some(format!("undecided in {undecided} of {cells} cells")),
            (cells, failing, _) => Some(format!("fails in {failing} of {cells} cells")),
        };
        let place = [
            member.clone(),
            Some(cell.clone()).filter(|cell| !cell.is_empty()),
            (*repetitions > 0).then(|| format!("{over} of {}", counted(*repetitions, "repetition"))),
            cells,
        ];
        let place = place.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        let unheard = self.unheard.as_deref().unwrap_or_default();
        format!("{} {found}, must be {}{place}{}{unheard}", self.figure, self.bound, self.why_undecided())
    }

    /// What is lacking, if something is.
    fn why_undecided(&self) -> String {
        let Found { unfinished, messages, .. } = self.found;
        if self.outcome() == ThresholdOutcome::Undecided && self.found.is_mostly_unfinished() {
            let all = messages.unwrap_or(0) + unfinished;
            return format!(
                ": {unfinished} of {} were still queued or in flight at the end, and what becomes of them decides",
                counted(all, "message")
            );
        }
        let known = self.found.messages.zip(share::needed(self.bound.value));
        let Some((messages, needed)) = known.filter(|_| self.outcome() == ThresholdOutcome::Undecided) else {
            return String::new();
        };
        let one = significant(100.0 / messages.max(1) as f64, DIGITS);
        format!(
            ": {} cannot show it, as one of them is {one} %; at least {needed} are needed",
            counted(messages, "message")
        )
    }
}

/// A line for each threshold.
pub(crate) fn lines(judged: &[ThresholdSummary]) -> String {
    let line = |threshold: &ThresholdSummary| match threshold.outcome {
        ThresholdOutcome::Holds => format!("holds  {}\n", threshold.text),
        ThresholdOutcome::Fails => format!("FAILS  {}\n", threshold.text),
        ThresholdOutcome::Undecided => format!("UNDECIDED  {}\n", threshold.text),
        // The error says more.
        ThresholdOutcome::Unknown => {
            format!("FAILS  {} is no figure of this run, must be {}\n", threshold.figure, threshold.bound)
        }
    };
    judged.iter().map(line).collect()
}

/// Why the exit code is 5 or 6, if it is; `with_lines` if nobody has read the lines yet. A threshold that
/// fails goes before one that is undecided.
pub(crate) fn failure(judged: &[ThresholdSummary], with_lines: bool) -> Option<Failure> {
    let with = |outcome| judged.iter().filter(move |threshold| threshold.outcome == outcome);
    let report = |outcome, singular: &str, plural: &str| {
        let count = match (judged.len(), with(outcome).count()) {
            (1, _) => format!("the threshold {singular}"),
            (all, n) => format!("{n} of {all} thresholds {plural}"),
        };
        let why = with(outcome).map(|threshold| format!("\n  {}", threshold.text)).collect::<String>();
        if with_lines { format!("{count}:{why}") } else { count }
    };
    let fails = || report(ThresholdOutcome::Fails, "does not hold", "do not hold");
    let undecided = || report(ThresholdOutcome::Undecided, "is undecided", "are undecided");
    match (with(ThresholdOutcome::Fails).next(), with(ThresholdOutcome::Undecided).next()) {
        (None, None) => None,
        (Some(_), None) => Some(Failure::Threshold(fails())),
        (None, Some(_)) => Some(Failure::Undecided(undecided())),
        (Some(_), Some(_)) => Some(Failure::Threshold(format!("{}\n{}", fails(), undecided()))),
    }
}

/// Why the exit code is 2, if it is: thresholds about figures that are in no cell.
pub(crate) fn unknown(judged: &[ThresholdSummary]) -> Option<Failure> {
    let unknown = judged.iter().filter(|it| it.outcome == ThresholdOutcome::Unknown);
    let why: Vec<_> = unknown.map(|it| it.text.as_str()).collect();
    (!why.is_empty()).then(|| Failure::Usage(why.join("\n")))
}

/// Writes JUnit's XML.
pub(crate) fn write_junit(path: &Path, name: &str, judged: &[ThresholdSummary]) -> Result<(), Failure> {
    let text = junit::xml(name, judged).map_err(|why| Failure::write(path, why))?;
    write_named_bytes(path, &text)
}

/// The repetitions of each cell.
type CellRuns<'a> = BTreeMap<u64, Vec<&'a RunSummary>>;

/// A key of summary.json may be called as a statistic is (`round_trip_delay_ms.min`): what is there as it is
/// written goes first.
fn judge_one(threshold: &Threshold, plan: &Plan, by_cell: &CellRuns<'_>) -> Judgement {
    let path = threshold.path.as_str();
    let whole = judge_at(threshold, (path, None), plan, by_cell);
    let split = || Statistic::split(path).map(|(path, statistic)| (path, Some(statistic)));
    match whole.unknown.is_some().then(split).flatten() {
        None => whole,
        Some(shorter) => {
            let shorter = judge_at(threshold, shorter, plan, by_cell);
            if shorter.unknown.is_none() { shorter } else { whole }
        }
    }
}

/// The threshold with its figure at `path`, by the statistic that it asks for.
fn judge_at(
    threshold: &Threshold,
    (path, asked): (&str, Option<Statistic>),
    plan: &Plan,
    by_cell: &CellRuns<'_>,
) -> Judgement {
    let bound = threshold.bound;
    let mut cells: Vec<Vec<Found>> = Vec::new();
    let mut seen: Vec<Looked> = Vec::new();
    for &index in &threshold.cells {
        let cell = plan.cell(index);
        if cell.is_some_and(|cell| !is_in(&threshold.of, &cell.scenario)) {
            continue;
        }
        let runs = by_cell.get(&index).map_or(&[][..], Vec::as_slice);
        let label = cell.map_or("", |cell| cell.label.as_str());
        let figures = figures(&threshold.of, path, runs);
        seen.extend(figures.iter().flat_map(|(_, values)| values).map(|value| value.looked));
        let is_unknown = |value: &Observed| value.looked == Looked::Unknown;
        if figures.iter().all(|(_, values)| values.iter().all(is_unknown)) {
            continue;
        }
        let asked = asked.map_or_else(|| Asked::Shown(statistic_of(path)), Asked::Named);
        let found = |(member, values): (Option<String>, Vec<Observed>)| {
            Found::new(member, label, &values, bound, asked)
        };
        cells.push(figures.into_iter().map(found).collect());
    }
    // Whether there is a figure below a `null` is not known: a cell that knows, and has no figure there,
    // decides.
    let is_none = seen.contains(&Looked::Unknown)
        && seen.iter().all(|value| matches!(value, Looked::Unknown | Looked::Below));
    let unknown = is_none.then(|| no_such_figure(threshold));
    if is_none {
        cells.clear();
    }
    let with = |outcome| {
        let outcome_of = |cell: &&Vec<Found>| cell.iter().map(Found::rank).min() == Some(rank(outcome));
        cells.iter().filter(outcome_of).count()
    };
    let (failing, undecided) = (with(ThresholdOutcome::Fails), with(ThresholdOutcome::Undecided));
    let count = cells.len();
    let worst = cells.into_iter().flatten().min_by(|a, b| {
        a.rank().cmp(&b.rank()).then(margin(a.value, bound).total_cmp(&margin(b.value, bound)))
    });
    let found = worst.unwrap_or_else(|| Found::new(None, "", &[], bound, Asked::Shown(statistic_of(path))));
    Judgement {
        figure: threshold.figure.clone(),
        bound,
        found,
        cells: count,
        failing,
        undecided,
        unknown,
        unheard: None,
    }
}

/// Whether the flow or the link is in this cell: a sweep may give a flow directions, or the path links, that
/// not all cells have.
fn is_in(subject: &ThresholdOf, scenario: &Scenario) -> bool {
    match subject {
        ThresholdOf::Flow { members, .. } => scenario.flows.iter().any(|flow| members.contains(&flow.name)),
        ThresholdOf::Link { name } => scenario.links.iter().any(|link| link.name == *name),
    }
}

/// A copy or direction, if it is not the flow itself, and its figure in each repetition.
type Figures = Vec<(Option<String>, Vec<Observed>)>;

/// The figure of each copy and direction, or of the link, in the repetitions of one cell.
fn figures(subject: &ThresholdOf, path: &str, runs: &[&RunSummary]) -> Figures {
    let below = Observed::from(Looked::Below);
    // A cell without a repetition has no figure.
    if runs.is_empty() {
        return vec![(None, vec![below])];
    }
    let mut figures: Figures = match subject {
        ThresholdOf::Link { name } => {
            let value = |run: &&RunSummary| link_figure(run.links.get(name).map(Box::as_ref), path);
            vec![(None, runs.iter().map(value).collect())]
        }
        ThresholdOf::Flow { name, members } => {
            // The group of copies has figures that no single copy has.
            let is_group_figure = runs.iter().all(|run| {
                let mut flows = members.iter().filter_map(|member| run.flows.get(member));
                flows.all(|flow| flow_figure(Some(flow), path).looked == Looked::Unknown)
                    && run.groups.contains_key(name)
            });
            if is_group_figure {
                let value = |run: &&RunSummary| group_figure(run.groups.get(name).map(Box::as_ref), path);
                vec![(None, runs.iter().map(value).collect())]
            } else {
                let is_there = |member: &&String| runs.iter().any(|run| run.flows.contains_key(*member));
                let values = |member: &String| {
                    let value = |run: &&RunSummary| flow_figure(run.flows.get(member).map(Box::as_ref), path);
                    (Some(member.clone()).filter(|member| member != name), runs.iter().map(value).collect())
                };
                members.iter().filter(is_there).map(values).collect()
            }
        }
    };
    figures.extend(worst_of_each(path, &figures));
    match figures.is_empty() {
        true => vec![(None, vec![below; runs.len()])],
        false => figures,
    }
}

/// The worst copy or direction in each repetition, if the flow is judged by this figure. The tables and the
/// answer have the mean of these worst values. It is below the mean of every copy if the copies take turns in
/// being the worst.
fn worst_of_each(path: &str, figures: &Figures) -> Option<(Option<String>, Vec<Observed>)> {
    let is_judged = ["call.mos", "in_time", "goodput_bps"].contains(&path);
    let (_, first) = figures.first().filter(|_| is_judged && figures.len() > 1)?;
    let worst_in = |repetition: usize| {
        let each = figures.iter().filter_map(|(_, values)| values.get(repetition));
        let known = each.filter(|value| value.looked.number().is_some()).copied();
        known.min_by(|a, b| a.looked.number().partial_cmp(&b.looked.number()).unwrap_or(Ordering::Equal))
    };
    let worst: Option<Vec<Observed>> = (0..first.len()).map(worst_in).collect();
    Some((Some(WORST.to_owned()), worst?))
}

impl Found {
    /// What `values`, one a repetition, are together: the statistic that is asked for. Of flags, if none is
    /// named, the one that holds least, as a single file that is damaged shall not pass among others.
    fn new(member: Option<String>, cell: &str, values: &[Observed], bound: Bound, asked: Asked) -> Self {
        let has_flag = values.iter().any(|value| matches!(value.looked, Looked::Flag(_)));
        let statistic = match asked {
            Asked::Shown(_) if has_flag => None,
            Asked::Shown(statistic) | Asked::Named(statistic) => Some(statistic),
        };
        let numbers: Vec<Option<f64>> = values.iter().map(|value| value.looked.number()).collect();
        let least = |a: &&Option<f64>, b: &&Option<f64>| margin(**a, bound).total_cmp(&margin(**b, bound));
        let value = match statistic {
            None => numbers.iter().min_by(least).copied().flatten(),
            Some(statistic) => over(statistic, &numbers, bound),
        };
        // A mean of shares is one of all messages; any other statistic is the share of one repetition.
        let (messages, unfinished) = match statistic {
            Some(Statistic::Mean) => {
                let messages = values.iter().map(|value| value.messages).sum();
                (messages, values.iter().map(|value| value.unfinished).sum())
            }
            _ => {
                let fewest = values.iter().min_by_key(|value| value.messages);
                fewest.map_or((None, 0), |value| (value.messages, value.unfinished))
            }
        };
        let outcome = outcome(value, messages.filter(|_| !values.is_empty()), unfinished, bound);
        Self {
            value,
            statistic,
            member,
            cell: cell.to_owned(),
            repetitions: values.len(),
            messages,
            unfinished,
            outcome,
        }
    }

    fn rank(&self) -> u8 {
        rank(self.outcome)
    }

    fn is_mostly_unfinished(&self) -> bool {
        self.messages.is_some_and(|messages| is_mostly_unfinished(messages, self.unfinished))
    }
}

/// The worst first.
const fn rank(outcome: ThresholdOutcome) -> u8 {
    match outcome {
        ThresholdOutcome::Fails | ThresholdOutcome::Unknown => 0,
        ThresholdOutcome::Undecided => 1,
        ThresholdOutcome::Holds => 2,
    }
}

/// Which statistic a threshold's figure is.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// That of the tables, as the threshold names none.
    Shown(Statistic),
    /// The one that it names.
    Named(Statistic),
}

/// Whether `value` holds the bound. If the bound is finer than one message of the share, the share's interval
/// decides, provided that it lies on one side. If more messages are unfinished than ended, every outcome that
/// they can have must agree.
fn outcome(value: Option<f64>, messages: Option<u64>, unfinished: u64, bound: Bound) -> ThresholdOutcome {
    let holds = |holds| if holds { ThresholdOutcome::Holds } else { ThresholdOutcome::Fails };
    let interval = match (value, messages) {
        (value, Some(messages)) if is_mostly_unfinished(messages, unfinished) => {
            Some(whatever_becomes_of(unfinished, value.unwrap_or(0.0), messages))
        }
        (None, _) => return ThresholdOutcome::Fails,
        (Some(value), Some(messages)) if share::is_finer_than_one(bound.value, messages) => {
            share::interval((value * messages as f64).round().max(0.0) as u64, messages)
        }
        (Some(value), _) => return holds(bound.holds(value)),
    };
    let Some((low, high)) = interval else { return ThresholdOutcome::Undecided };
    let is_clear = match bound.operator {
        Operator::Equal | Operator::Different => bound.value < low || high < bound.value,
        _ => bound.holds(low) == bound.holds(high),
    };
    if is_clear { holds(bound.holds(value.unwrap_or(low))) } else { ThresholdOutcome::Undecided }
}

/// Whether a share of `messages` that ended says little of all: more are unfinished.
const fn is_mostly_unfinished(messages: u64, unfinished: u64) -> bool {
    unfinished > messages
}

/// The least and the most that the share `value` of `messages` can be once the `unfinished` ones have ended.
fn whatever_becomes_of(unfinished: u64, value: f64, messages: u64) -> (f64, f64) {
    let (hits, all) = (value * messages as f64, (messages + unfinished) as f64);
    (hits / all, (hits + unfinished as f64) / all)
}

/// The statistic of the repetitions. One whose figure is not known counts as worse than all others; if the
/// statistic rests on such a one, it is not known either.
fn over(statistic: Statistic, values: &[Option<f64>], bound: Bound) -> Option<f64> {
    let worst = match bound.operator {
        Operator::AtMost | Operator::Below => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    };
    let mut values: Vec<f64> = values.iter().map(|value| value.unwrap_or(worst)).collect();
    values.sort_by(f64::total_cmp);
    statistic.over(&values).filter(|value| value.is_finite())
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

/// Significant digits of a figure: enough to be distinguished from its bound. Chosen.
const DIGITS: i32 = 6;

/// Of the copies of a flow the one that is worst, repetition by repetition.
const WORST: &str = "the worst of each repetition";

#[cfg(test)]
mod tests;
