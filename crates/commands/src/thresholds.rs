//! Judges thresholds: the demands of the scenario, of `--require` and of `--fail-if` on the figures of
//! summary.json.
//!
//! ```text
//! Plan.thresholds ─► refuse_unknown_figures: is there such a figure?
//!            └─► + Summary ─► judge ─► one line each, JUnit's XML, exit code 5
//! ```
//!
//! A threshold is about one or more cells. In each cell it is about a link, or about a flow with its copies
//! and directions. The figure in a cell is a statistic over the repetitions: the statistic that the threshold
//! names, or that of the tables if it names none (`measure::statistic`). A flag must hold in each repetition.
//! The threshold must hold in each cell that has such a figure. Its line shows the figure with the least
//! margin.
//!
//! A threshold on a share can be undecided. This is so if its bound is finer than one message of the run,
//! unless the share is clearly on one side of the bound (`measure::metrics::share`). It is also so if more
//! messages are unfinished than have ended, unless the unfinished messages cannot change the outcome.

mod figure;
mod junit;
mod unheard;

use core::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use talkpath_measure::figures::statistic_of;
use talkpath_measure::figures::text::significant;
use talkpath_measure::metrics::share;
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{RunSummary, Summary, ThresholdOutcome, ThresholdSummary};
use talkpath_scenario::{Bound, Operator, Plan, Scenario, Threshold, ThresholdSubject};
use talkpath_units::counted;

use self::figure::{Looked, Observed, check_figure, flow_figure, group_figure, link_figure, no_such_figure};
use crate::failure::Failure;
use crate::output_file::write_named_bytes;

/// A judged threshold.
#[derive(Debug, PartialEq)]
struct Judgement {
    /// The name of the figure as the user wrote it, such as `call.mos`.
    figure: String,
    bound: Bound,
    /// The figure with the least margin.
    found: Found,
    /// In how many cells there is such a figure.
    cells: usize,
    /// In how many of these cells the threshold fails.
    failing: usize,
    /// In how many of these cells the threshold is undecided.
    undecided: usize,
    /// The message if no cell has such a figure, so that there is nothing to judge.
    unknown: Option<String>,
    /// The warning if the threshold holds, but does not see something that the answer sees.
    unheard: Option<String>,
}

/// The figure of a threshold in one cell.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    /// The value over the repetitions, or `None` if it is not known. The value of a flag is the worst one.
    value: Option<f64>,
    /// The statistic of the value, or `None` for a flag, which must hold in all repetitions.
    statistic: Option<Statistic>,
    /// The copy or direction that the figure is about, if it is not the flow itself.
    member: Option<String>,
    /// The label of the cell.
    cell: String,
    repetitions: usize,
    /// If the figure is a share: of how many messages.
    messages: Option<u64>,
    /// How many messages the share leaves out because they were unfinished at the end.
    unfinished: u64,
    outcome: ThresholdOutcome,
}

/// Refuses a threshold about a figure that no run of `plan` can have. Nothing has run yet.
pub(crate) fn refuse_unknown_figures(plan: &Plan) -> Result<(), Failure> {
    for threshold in &plan.thresholds {
        check_figure(threshold).map_err(Failure::Usage)?;
    }
    Ok(())
}

/// Judges each threshold of `plan` by the figures of `summary`. Only the cells of `plan` are judged. Cells
/// that `compare` added with another queue are not.
pub(crate) fn judge(plan: &Plan, summary: &Summary) -> Vec<ThresholdSummary> {
    let mut runs: CellRuns<'_> = BTreeMap::new();
    for run in summary.counted_runs() {
        runs.entry(run.cell).or_default().push(run);
    }
    let mut judged = Vec::new();
    for threshold in &plan.thresholds {
        let mut judgement = judge_one(threshold, plan, &runs);
        if judgement.outcome() == ThresholdOutcome::Holds {
            judgement.unheard = unheard::warning(threshold, &runs);
        }
        judged.push(judgement.summary());
    }
    judged
}

impl Judgement {
    fn outcome(&self) -> ThresholdOutcome {
        if self.unknown.is_some() {
            return ThresholdOutcome::Unknown;
        }
        if self.failing > 0 {
            return ThresholdOutcome::Fails;
        }
        if self.undecided > 0 {
            return ThresholdOutcome::Undecided;
        }
        // If no cell knows the figure, the threshold does not hold.
        if self.cells == 0 { ThresholdOutcome::Fails } else { ThresholdOutcome::Holds }
    }

    fn summary(self) -> ThresholdSummary {
        let text = match &self.unknown {
            // This message also says which figures there are.
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

    /// Writes the figure that was found, what it must hold, and in which cell.
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

    /// Says why the threshold is undecided. The text is empty if it is not.
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

/// Writes a line for each threshold.
pub(crate) fn lines(judged: &[ThresholdSummary]) -> String {
    let line = |threshold: &ThresholdSummary| match threshold.outcome {
        ThresholdOutcome::Holds => format!("holds  {}\n", threshold.text),
        ThresholdOutcome::Fails => format!("FAILS  {}\n", threshold.text),
        ThresholdOutcome::Undecided => format!("UNDECIDED  {}\n", threshold.text),
        // The error message says more about it.
        ThresholdOutcome::Unknown => {
            format!("FAILS  {} is no figure of this run, must be {}\n", threshold.figure, threshold.bound)
        }
    };
    judged.iter().map(line).collect()
}

/// Returns the failure for thresholds that fail (exit code 5) or are undecided (exit code 6). If some fail,
/// the exit code is 5. With `with_lines` the message holds the lines of the thresholds, for a user who has
/// not read them yet.
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

/// Returns the failure for thresholds about figures that no cell has (exit code 2).
pub(crate) fn unknown(judged: &[ThresholdSummary]) -> Option<Failure> {
    let unknown = judged.iter().filter(|threshold| threshold.outcome == ThresholdOutcome::Unknown);
    let why: Vec<_> = unknown.map(|threshold| threshold.text.as_str()).collect();
    (!why.is_empty()).then(|| Failure::Usage(why.join("\n")))
}

/// Writes the file of `--junit`.
pub(crate) fn write_junit(path: &Path, name: &str, judged: &[ThresholdSummary]) -> Result<(), Failure> {
    let text = junit::xml(name, judged).map_err(|why| Failure::write(path, why))?;
    write_named_bytes(path, &text)
}

/// The repetitions of each cell.
type CellRuns<'a> = BTreeMap<u64, Vec<&'a RunSummary>>;

/// Judges a threshold. Its path may end in a statistic over the repetitions, such as `call.mos.p10`. But a
/// key of summary.json may have the same ending, such as `round_trip_delay_ms.min`, and such a key wins.
fn judge_one(threshold: &Threshold, plan: &Plan, by_cell: &CellRuns<'_>) -> Judgement {
    let path = threshold.path.as_str();
    let by_whole_path = judge_at(threshold, path, None, plan, by_cell);
    if by_whole_path.unknown.is_none() {
        return by_whole_path;
    }
    if let Some((shorter, statistic)) = Statistic::split(path) {
        let by_statistic = judge_at(threshold, shorter, Some(statistic), plan, by_cell);
        if by_statistic.unknown.is_none() {
            return by_statistic;
        }
    }
    by_whole_path
}

/// Judges a threshold by the figure at `path`. `asked` is the statistic that the threshold names, if it names
/// one.
fn judge_at(
    threshold: &Threshold,
    path: &str,
    asked: Option<Statistic>,
    plan: &Plan,
    by_cell: &CellRuns<'_>,
) -> Judgement {
    let bound = threshold.bound;
    let mut cells: Vec<Vec<Found>> = Vec::new();
    let mut seen: Vec<Looked> = Vec::new();
    for &index in &threshold.cells {
        let cell = plan.cell(index);
        if cell.is_some_and(|cell| !is_in(&threshold.subject, &cell.scenario)) {
            continue;
        }
        let runs = by_cell.get(&index).map_or(&[][..], Vec::as_slice);
        let label = cell.map_or("", |cell| cell.label.as_str());
        let figures = figures(&threshold.subject, path, runs);
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
    // A cell with `null` at a key does not show which keys would be below it. So cells that show their keys
    // decide whether there is such a figure.
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

/// Whether the cell of `scenario` has the flow or the link. In a sweep some cells may have directions or
/// links that others lack.
fn is_in(subject: &ThresholdSubject, scenario: &Scenario) -> bool {
    match subject {
        ThresholdSubject::Flow { members, .. } => {
            scenario.flows.iter().any(|flow| members.contains(&flow.name))
        }
        ThresholdSubject::ProgramFlows { .. } => scenario.program.is_some(),
        ThresholdSubject::Link { name } => scenario.links.iter().any(|link| link.name == *name),
    }
}

/// Whether `name` names the `flow` of a program. Flows are called PROTOCOL-PORT-NUMBER-DIRECTION, without the
/// port if the protocol has none, and `others-DIRECTION`. A name may leave the number and the direction out.
fn names_program_flow(name: &str, flow: &str) -> bool {
    let Some((conversation, direction)) = flow.rsplit_once('-') else { return false };
    let service = conversation.rsplit_once('-').map_or(conversation, |(service, _)| service);
    [flow, conversation, service].contains(&name) || name == format!("{service}-{direction}")
}

/// The copies or directions of a flow, or `None` for the flow itself, each with its figure in each
/// repetition.
type Figures = Vec<(Option<String>, Vec<Observed>)>;

/// Finds the figure of the link, or of each copy and direction of the flow, in the repetitions of one cell.
fn figures(subject: &ThresholdSubject, path: &str, runs: &[&RunSummary]) -> Figures {
    let below = Observed::from(Looked::Below);
    // A cell without a repetition has no figure.
    if runs.is_empty() {
        return vec![(None, vec![below])];
    }
    let mut figures: Figures = match subject {
        ThresholdSubject::Link { name } => {
            let value = |run: &&RunSummary| link_figure(run.links.get(name).map(Box::as_ref), path);
            vec![(None, runs.iter().map(value).collect())]
        }
        ThresholdSubject::ProgramFlows { name } => {
            let all: BTreeSet<&String> = runs.iter().flat_map(|run| run.flows.keys()).collect();
            let values = |flow: &String| {
                let value = |run: &&RunSummary| flow_figure(run.flows.get(flow).map(Box::as_ref), path);
                (Some(flow.clone()), runs.iter().map(value).collect())
            };
            all.into_iter().filter(|flow| names_program_flow(name, flow)).map(values).collect()
        }
        ThresholdSubject::Flow { name, members } => {
            // Some figures belong to all copies together, and no single copy has them.
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
    if figures.is_empty() { vec![(None, vec![below; runs.len()])] } else { figures }
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
    /// Makes the figure of a cell from `values`, one for each repetition. The value is the statistic that is
    /// asked for. The value of a flag is the worst one if no statistic is named, because a damaged file must
    /// not pass among files that are intact.
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
        // The mean of shares is a share of all messages. Any other statistic is the share of one repetition.
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

/// The order of outcomes, from the worst one.
const fn rank(outcome: ThresholdOutcome) -> u8 {
    match outcome {
        ThresholdOutcome::Fails | ThresholdOutcome::Unknown => 0,
        ThresholdOutcome::Undecided => 1,
        ThresholdOutcome::Holds => 2,
    }
}

/// The statistic of a threshold's figure.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// The statistic of the tables, because the threshold names none.
    Shown(Statistic),
    /// The statistic that the threshold names.
    Named(Statistic),
}

/// Judges `value` by the bound. If the bound is finer than one message of the share, the interval of the
/// share decides, and it must lie on one side of the bound. If more messages are unfinished than have ended,
/// the outcome must be the same whatever becomes of them.
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

/// Whether more messages are unfinished than have ended, so that a share of the ended ones says little.
const fn is_mostly_unfinished(messages: u64, unfinished: u64) -> bool {
    unfinished > messages
}

/// The smallest and the largest share that is possible when the `unfinished` messages have ended too. Now it
/// is `value` of `messages`.
fn whatever_becomes_of(unfinished: u64, value: f64, messages: u64) -> (f64, f64) {
    let (hits, all) = (value * messages as f64, (messages + unfinished) as f64);
    (hits / all, (hits + unfinished as f64) / all)
}

/// The statistic over the repetitions. A repetition whose figure is not known counts as worse than all
/// others. If the statistic depends on such a repetition, it is not known either.
fn over(statistic: Statistic, values: &[Option<f64>], bound: Bound) -> Option<f64> {
    let worst = match bound.operator {
        Operator::AtMost | Operator::Below => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    };
    let mut values: Vec<f64> = values.iter().map(|value| value.unwrap_or(worst)).collect();
    values.sort_by(f64::total_cmp);
    statistic.over(&values).filter(|value| value.is_finite())
}

/// How far a figure is from failing. Below 0 it fails.
fn margin(value: Option<f64>, bound: Bound) -> f64 {
    let Some(value) = value else { return f64::NEG_INFINITY };
    match bound.operator {
        Operator::AtLeast | Operator::Above => value - bound.value,
        Operator::AtMost | Operator::Below => bound.value - value,
        Operator::Equal => -(value - bound.value).abs(),
        Operator::Different => (value - bound.value).abs(),
    }
}

/// How many significant digits a figure has in messages (chosen: enough to distinguish it from its bound).
const DIGITS: i32 = 6;

/// The name of the worst copy of each repetition among the copies of a flow.
const WORST: &str = "the worst of each repetition";

#[cfg(test)]
mod tests;
