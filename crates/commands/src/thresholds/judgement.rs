//! Judges one threshold over all its cells, and writes its line.

use talkpath_measure::figures::text::significant;
use talkpath_measure::metrics::confidence::Level;
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{ThresholdOutcome, ThresholdSummary};
use talkpath_scenario::{Bound, Plan, Scenario, Threshold, ThresholdSubject};
use talkpath_units::counted;

use super::CellRuns;
use super::cell::{CellFigure, CellName, MemberFigures, member_figures};
use super::figure::FigureValue;
use super::figure_names::{FigureName, StatisticChoice, figure_in_no_cell_message};
use super::outcome::{Needed, ShareMessages, margin, rank};

/// The number of significant digits of a figure in a message. We chose 6, so that a figure does not look
/// equal to its bound if it is not.
const DIGITS: i32 = 6;
/// The number of significant digits of the end of an interval, which is not surer than that.
const INTERVAL_DIGITS: i32 = 3;

/// A judged threshold.
#[derive(Debug, PartialEq)]
pub(super) struct Judgement {
    /// The name of the figure as the user wrote it, such as `call.mos`.
    figure: String,
    bound: Bound,
    /// The figure with the smallest margin.
    pub(super) worst: CellFigure,
    /// The number of cells that have such a figure.
    cells: usize,
    /// The number of these cells in which the threshold fails.
    failing: usize,
    /// The number of these cells in which the threshold is undecided.
    undecided: usize,
    /// The message if no cell has such a figure, so that there is nothing to judge.
    unknown: Option<String>,
    /// What the user must know besides: that the threshold holds although the answer calls the call
    /// unusable, or in which repetitions a flag fails.
    pub(super) remark: Option<String>,
}

impl Judgement {
    /// Judges a threshold. The last word of its name may be a statistic over the repetitions, such as
    /// `call.mos.p10`, or a key of summary.json, such as `round_trip_delay_ms.min`. If there is such a key,
    /// the threshold is about the key.
    pub(super) fn new(
        threshold: &Threshold,
        plan: &Plan,
        runs_of_cells: &CellRuns<'_>,
        level: Level,
    ) -> Self {
        let judge = |name: FigureName<'_>| {
            let cells = find_figure(threshold, name.path, plan, runs_of_cells);
            Self::of_cells(threshold, cells, name.statistic, level)
        };
        let judgement = judge(FigureName::whole(&threshold.path));
        if judgement.unknown.is_some()
            && let Some(name) = FigureName::with_statistic(&threshold.path)
        {
            let with_statistic = judge(name);
            if with_statistic.unknown.is_none() {
                return with_statistic;
            }
        }
        judgement
    }

    /// Judges a threshold by the figures that were found in its cells.
    fn of_cells(
        threshold: &Threshold,
        cells: Vec<FoundFigures<'_>>,
        choice: StatisticChoice,
        level: Level,
    ) -> Self {
        let bound = threshold.bound;
        let is_unknown = is_unknown_figure(&cells);
        let mut judgement = Self {
            figure: threshold.figure.clone(),
            bound,
            worst: CellFigure::new(MemberFigures::default(), CellName::default(), bound, choice, level),
            cells: 0,
            failing: 0,
            undecided: 0,
            unknown: is_unknown.then(|| figure_in_no_cell_message(threshold)),
            remark: None,
        };
        if is_unknown {
            return judgement;
        }
        let mut figures: Vec<CellFigure> = Vec::new();
        for cell in cells {
            if !cell.members.iter().any(MemberFigures::has_such_figure) {
                continue;
            }
            let members = cell.members.into_iter();
            let members: Vec<_> =
                members.map(|member| CellFigure::new(member, cell.name, bound, choice, level)).collect();
            let worst_rank = members.iter().map(CellFigure::rank).min();
            judgement.cells += 1;
            judgement.failing += usize::from(worst_rank == Some(rank(ThresholdOutcome::Fails)));
            judgement.undecided += usize::from(worst_rank == Some(rank(ThresholdOutcome::Undecided)));
            figures.extend(members);
        }
        let worst = figures.into_iter().min_by(|a, b| {
            a.rank().cmp(&b.rank()).then(margin(a.value, bound).total_cmp(&margin(b.value, bound)))
        });
        judgement.worst = worst.unwrap_or(judgement.worst);
        judgement
    }

    pub(super) fn outcome(&self) -> ThresholdOutcome {
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

    /// Returns the judgement as an entry of summary.json.
    pub(super) fn summary(self) -> ThresholdSummary {
        let text = match &self.unknown {
            // This message also says which figures there are.
            Some(message) => message.clone(),
            None => self.text(),
        };
        let outcome = self.outcome();
        let needed = self.needed();
        let Self { figure, bound, worst, cells, failing, undecided, .. } = self;
        ThresholdSummary {
            figure,
            bound: bound.to_string(),
            outcome,
            statistic: worst.statistic,
            found: worst.value.filter(|value| value.is_finite()),
            flow: worst.member,
            cell: worst.cell,
            repetitions: worst.repetitions as u64,
            cells: cells as u64,
            failing: failing as u64,
            undecided: undecided as u64,
            messages: worst.messages.map(|messages| messages.counted),
            interval: worst.interval.filter(|(low, high)| low.is_finite() && high.is_finite()),
            needed: needed.messages,
            needed_repetitions: needed.repetitions,
            text,
        }
    }

    /// Writes the figure that was found, what it must hold, and in which cell.
    fn text(&self) -> String {
        let value = match self.worst.value {
            Some(value) => significant(value, DIGITS),
            None => "is not known (null)".to_owned(),
        };
        let place = self.place();
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        let remark = self.remark.as_deref().unwrap_or_default();
        let reason = self.undecided_reason();
        format!("{} {value}, must be {}{place}{reason}{remark}", self.figure, self.bound)
    }

    /// Says of what the figure is: the member, the cell, the repetitions, and how many cells there are.
    fn place(&self) -> String {
        let CellFigure { statistic, member, cell, repetitions, .. } = &self.worst;
        let mut parts = Vec::new();
        parts.extend(member.clone());
        if !cell.is_empty() {
            parts.push(cell.clone());
        }
        if *repetitions > 0 {
            let statistic = statistic.map_or("worst", Statistic::word);
            parts.push(format!("{statistic} of {}", counted(*repetitions, "repetition")));
        }
        match (self.cells, self.failing, self.undecided) {
            (0 | 1, ..) => {}
            (cells, 0, 0) => parts.push(format!("least margin of {cells} cells")),
            (cells, 0, undecided) => parts.push(format!("undecided in {undecided} of {cells} cells")),
            (cells, failing, 0) => parts.push(format!("fails in {failing} of {cells} cells")),
            (cells, failing, undecided) => {
                parts.push(format!("fails in {failing} of {cells} cells, undecided in {undecided}"));
            }
        }
        parts.join("; ")
    }

    /// Returns how much more would decide an undecided threshold.
    fn needed(&self) -> Needed {
        if self.outcome() != ThresholdOutcome::Undecided || self.worst.is_mostly_unfinished() {
            return Needed::default();
        }
        self.worst.needed
    }

    /// Says why the threshold is undecided, and how much more would decide. The text is empty if it is
    /// decided.
    fn undecided_reason(&self) -> String {
        if self.outcome() != ThresholdOutcome::Undecided {
            return String::new();
        }
        if let Some(messages) = self.worst.messages.filter(|messages| messages.is_mostly_unfinished()) {
            let ShareMessages { counted: messages_counted, unfinished, .. } = messages;
            return format!(
                ": {unfinished} of {} were still queued or in flight at the end, and what becomes of them decides",
                counted(messages_counted + unfinished, "message")
            );
        }
        let Some((low, high)) = self.worst.interval else { return String::new() };
        let end = |value: f64| {
            if value.is_finite() { significant(value, INTERVAL_DIGITS) } else { "unknown".to_owned() }
        };
        let (low, high) = (end(low), end(high));
        format!(": its 95 % interval is {low} to {high}{}{}", self.basis(), self.advice())
    }

    /// Says how many messages the interval of a share rests on.
    fn basis(&self) -> String {
        let Some(ShareMessages { counted: all, independent, .. }) = self.worst.messages else {
            return String::new();
        };
        let messages = counted(all, "message");
        let independent = independent.round() as u64;
        if independent < all {
            format!(", as {messages} in runs tell as little as {independent}")
        } else {
            format!(" with {messages}")
        }
    }

    /// Says how much more would decide.
    fn advice(&self) -> String {
        let Needed { messages, repetitions } = self.needed();
        let all = self.worst.messages.map_or(0, |messages| messages.counted);
        let ran = self.worst.repetitions as u64;
        let more = match (repetitions, messages) {
            (Some(repetitions), messages) => {
                // As many repetitions as have the messages that are needed.
                let with_messages =
                    messages.map_or(0, |messages| messages.saturating_mul(ran).div_ceil(all.max(1)));
                counted_more(repetitions.max(with_messages).saturating_sub(ran), "repetition")
            }
            (None, Some(messages)) => counted_more(messages.saturating_sub(all), "message"),
            (None, None) => {
                return "; more of them would hardly decide, as the figure is at its bound".to_owned();
            }
        };
        format!("; about {more} would decide")
    }
}

/// Writes `1 repetition more`, or `12 messages more`. An estimate promises nothing, so it is never zero.
fn counted_more(more: u64, noun: &str) -> String {
    format!("{} more", counted(more.max(1), noun))
}

/// What a threshold found in one cell.
struct FoundFigures<'a> {
    name: CellName<'a>,
    members: Vec<MemberFigures>,
}

/// Reads the figure at `path` in the threshold's cells. In a sweep some cells may lack the flow or the link.
/// These cells are left out.
fn find_figure<'a>(
    threshold: &Threshold,
    path: &str,
    plan: &'a Plan,
    runs_of_cells: &CellRuns<'_>,
) -> Vec<FoundFigures<'a>> {
    let mut found = Vec::new();
    for &index in &threshold.cells {
        let cell = plan.cell(index);
        if cell.is_some_and(|cell| !has_subject(&cell.scenario, &threshold.subject)) {
            continue;
        }
        let runs = runs_of_cells.get(&index).map_or(&[][..], Vec::as_slice);
        let members = member_figures(&threshold.subject, path, runs);
        let label = cell.map_or("", |cell| cell.label.as_str());
        found.push(FoundFigures { name: CellName { index, label }, members });
    }
    found
}

/// Returns whether there is no such figure. A repetition without the figure's owner does not show whether
/// the owner would have it. So the other repetitions decide.
fn is_unknown_figure(cells: &[FoundFigures<'_>]) -> bool {
    let members = cells.iter().flat_map(|cell| &cell.members);
    let values = members.flat_map(|member| &member.repetitions).map(|figure| figure.value);
    let owned: Vec<_> = values.filter(|value| *value != FigureValue::OwnerMissing).collect();
    !owned.is_empty() && owned.iter().all(|value| *value == FigureValue::NoSuchFigure)
}

/// Returns whether the scenario has the flow or the link.
fn has_subject(scenario: &Scenario, subject: &ThresholdSubject) -> bool {
    match subject {
        ThresholdSubject::Flow { members, .. } => {
            scenario.flows.iter().any(|flow| members.contains(&flow.name))
        }
        ThresholdSubject::ProgramFlows { .. } | ThresholdSubject::Program { .. } => {
            scenario.program.is_some()
        }
        ThresholdSubject::Link { name } => scenario.links.iter().any(|link| link.name == *name),
    }
}
