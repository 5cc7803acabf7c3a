//! Judges one threshold over all its cells, and writes its line.

use talkpath_measure::figures::statistic_of;
use talkpath_measure::figures::text::significant;
use talkpath_measure::metrics::share;
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{ThresholdOutcome, ThresholdSummary};
use talkpath_scenario::{Bound, Plan, Scenario, Threshold, ThresholdSubject};
use talkpath_units::counted;

use super::CellRuns;
use super::cell::{CellFigure, MemberFigures, StatisticChoice, member_figures};
use super::figure::{Lookup, no_such_figure};
use super::outcome::{margin, rank};

/// The number of significant digits of a figure in a message. We chose 6, so that a figure does not look
/// equal to its bound if it is not.
const DIGITS: i32 = 6;

/// A judged threshold.
#[derive(Debug, PartialEq)]
pub(super) struct Judgement {
    /// The name of the figure as the user wrote it, such as `call.mos`.
    figure: String,
    bound: Bound,
    /// The figure with the smallest margin.
    worst: CellFigure,
    /// The number of cells that have such a figure.
    cells: usize,
    /// The number of these cells in which the threshold fails.
    failing: usize,
    /// The number of these cells in which the threshold is undecided.
    undecided: usize,
    /// The message if no cell has such a figure, so that there is nothing to judge.
    unknown: Option<String>,
    /// The warning if the threshold holds, but does not see something that the answer sees.
    pub(super) unheard: Option<String>,
}

impl Judgement {
    /// Judges a threshold. Its path may end in a statistic over the repetitions, such as `call.mos.p10`. But
    /// a key of summary.json may have the same ending, such as `round_trip_delay_ms.min`, and such a key
    /// wins.
    pub(super) fn new(threshold: &Threshold, plan: &Plan, runs_of_cells: &CellRuns<'_>) -> Self {
        let path = threshold.path.as_str();
        let choice = StatisticChoice::Usual(statistic_of(path));
        let by_whole_path = Self::at_path(threshold, path, choice, plan, runs_of_cells);
        if by_whole_path.unknown.is_none() {
            return by_whole_path;
        }
        if let Some((shorter_path, statistic)) = Statistic::split(path) {
            let choice = StatisticChoice::Named(statistic);
            let by_statistic = Self::at_path(threshold, shorter_path, choice, plan, runs_of_cells);
            if by_statistic.unknown.is_none() {
                return by_statistic;
            }
        }
        by_whole_path
    }

    /// Judges a threshold by the figure at `path`.
    fn at_path(
        threshold: &Threshold,
        path: &str,
        choice: StatisticChoice,
        plan: &Plan,
        runs_of_cells: &CellRuns<'_>,
    ) -> Self {
        let bound = threshold.bound;
        let mut cells: Vec<Vec<CellFigure>> = Vec::new();
        let mut lookups: Vec<Lookup> = Vec::new();
        for &index in &threshold.cells {
            let cell = plan.cell(index);
            if cell.is_some_and(|cell| !has_subject(&cell.scenario, &threshold.subject)) {
                continue;
            }
            let runs = runs_of_cells.get(&index).map_or(&[][..], Vec::as_slice);
            let members = member_figures(&threshold.subject, path, runs);
            lookups.extend(members.iter().flat_map(MemberFigures::lookups));
            if members.iter().flat_map(MemberFigures::lookups).all(|lookup| lookup == Lookup::Unknown) {
                continue;
            }
            let label = cell.map_or("", |cell| cell.label.as_str());
            cells.push(
                members.into_iter().map(|member| CellFigure::new(member, label, bound, choice)).collect(),
            );
        }
        // A cell with `null` at a key does not show which keys would be below it. So cells that show their
        // keys decide whether there is such a figure.
        let is_unknown = lookups.contains(&Lookup::Unknown)
            && lookups.iter().all(|lookup| matches!(lookup, Lookup::Unknown | Lookup::Below));
        if is_unknown {
            cells.clear();
        }
        let count = |outcome| {
            let has_outcome =
                |cell: &&Vec<CellFigure>| cell.iter().map(CellFigure::rank).min() == Some(rank(outcome));
            cells.iter().filter(has_outcome).count()
        };
        let (failing, undecided) = (count(ThresholdOutcome::Fails), count(ThresholdOutcome::Undecided));
        let cell_count = cells.len();
        let worst = cells.into_iter().flatten().min_by(|a, b| {
            a.rank().cmp(&b.rank()).then(margin(a.value, bound).total_cmp(&margin(b.value, bound)))
        });
        Self {
            figure: threshold.figure.clone(),
            bound,
            worst: worst.unwrap_or_else(|| CellFigure::new(MemberFigures::default(), "", bound, choice)),
            cells: cell_count,
            failing,
            undecided,
            unknown: is_unknown.then(|| no_such_figure(threshold)),
            unheard: None,
        }
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
        let needs_messages = outcome == ThresholdOutcome::Undecided && !self.worst.is_mostly_unfinished();
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
            messages: worst.messages,
            needed: share::needed(bound.value).filter(|_| needs_messages),
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
        let unheard = self.unheard.as_deref().unwrap_or_default();
        format!("{} {value}, must be {}{place}{}{unheard}", self.figure, self.bound, self.why_undecided())
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
            (cells, failing, _) => parts.push(format!("fails in {failing} of {cells} cells")),
        }
        parts.join("; ")
    }

    /// Says why the threshold is undecided. The text is empty if it is not.
    fn why_undecided(&self) -> String {
        if self.outcome() != ThresholdOutcome::Undecided {
            return String::new();
        }
        let CellFigure { unfinished, messages, .. } = self.worst;
        if self.worst.is_mostly_unfinished() {
            let all = messages.unwrap_or(0) + unfinished;
            return format!(
                ": {unfinished} of {} were still queued or in flight at the end, and what becomes of them decides",
                counted(all, "message")
            );
        }
        let (Some(messages), Some(needed)) = (messages, share::needed(self.bound.value)) else {
            return String::new();
        };
        let percent_of_one = significant(100.0 / messages.max(1) as f64, DIGITS);
        format!(
            ": {} cannot show it, as one of them is {percent_of_one} %; at least {needed} are needed",
            counted(messages, "message")
        )
    }
}

/// Whether the scenario has the flow or the link. In a sweep some cells may have directions or links that
/// others lack.
fn has_subject(scenario: &Scenario, subject: &ThresholdSubject) -> bool {
    match subject {
        ThresholdSubject::Flow { members, .. } => {
            scenario.flows.iter().any(|flow| members.contains(&flow.name))
        }
        ThresholdSubject::ProgramFlows { .. } => scenario.program.is_some(),
        ThresholdSubject::Link { name } => scenario.links.iter().any(|link| link.name == *name),
    }
}
