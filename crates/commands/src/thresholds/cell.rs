//! The figure of a threshold in one cell: read in each repetition, and then computed over the repetitions.
//!
//! - A *cell* is one combination of swept values, and a *repetition* is one run of it.
//! - A *member* of a flow is one of its copies or directions. A threshold about a flow must hold for each
//!   member.
//!
//! Begin to read with [`member_figures`].

use std::collections::BTreeSet;

use talkpath_measure::figures::{FLOW, GROUP, LINK, Table};
use talkpath_measure::metrics::certainty::Certainty;
use talkpath_measure::metrics::confidence::Level;
use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{RunSummary, ThresholdOutcome};
use talkpath_scenario::{Bound, ThresholdSubject};

use super::figure::{ANY, FigureValue, RepetitionFigure};
use super::figure_names::StatisticChoice;
use super::outcome::{Judged, Needed, ShareMessages, margin, rank, sorted_values};

/// The paths of the figures by which a flow is judged in the tables.
const JUDGED_PATHS: [&str; 4] = ["call.mos", "call.usable", "in_time", "goodput_bps"];
/// The name of the worst member of each repetition among the members of a flow.
pub(super) const WORST_MEMBER: &str = "the worst of each repetition";

/// The figure of a member of a flow, or of a link, in each repetition of a cell.
#[derive(Default)]
pub(super) struct MemberFigures {
    /// The name of the copy or direction. It is `None` for the flow itself, for all copies together, and for
    /// a link.
    pub(super) member: Option<String>,
    pub(super) repetitions: Vec<RepetitionFigure>,
}

impl MemberFigures {
    pub(super) fn has_such_figure(&self) -> bool {
        self.repetitions.iter().any(|figure| figure.value != FigureValue::NoSuchFigure)
    }
}

/// Reads the figure of the link, or of each member of the flow, in the repetitions of one cell. Returns at
/// least one entry.
pub(super) fn member_figures(
    subject: &ThresholdSubject,
    path: &str,
    runs: &[&RunSummary],
) -> Vec<MemberFigures> {
    let one_entry = |repetitions| vec![MemberFigures { member: None, repetitions }];
    if runs.is_empty() {
        return one_entry(vec![RepetitionFigure::OWNER_MISSING]);
    }
    let flow_figures = |flow: &str| read_each(&FLOW, runs, path, |run| run.flows.get(flow));
    let mut figures = match subject {
        ThresholdSubject::Link { name } => one_entry(read_each(&LINK, runs, path, |run| run.links.get(name))),
        ThresholdSubject::Flow { name, members } if is_group_figure(name, members, path, runs) => {
            one_entry(read_each(&GROUP, runs, path, |run| run.groups.get(name)))
        }
        ThresholdSubject::Flow { name, members } => {
            let mut figures = Vec::new();
            for member in
                members.iter().filter(|member| runs.iter().any(|run| run.flows.contains_key(*member)))
            {
                let differs = member != name;
                figures.push(MemberFigures {
                    member: differs.then(|| member.clone()),
                    repetitions: flow_figures(member),
                });
            }
            figures
        }
        ThresholdSubject::Program { .. } => {
            one_entry(runs.iter().map(|run| program_figure(run, path)).collect())
        }
        ThresholdSubject::ProgramFlows { name } => {
            let flows: BTreeSet<&String> = runs.iter().flat_map(|run| run.flows.keys()).collect();
            let mut figures = Vec::new();
            for flow in flows.into_iter().filter(|flow| names_program_flow(name, flow)) {
                figures.push(MemberFigures { member: Some(flow.clone()), repetitions: flow_figures(flow) });
            }
            figures
        }
    };
    if let Some(worst) = worst_member(path, &figures) {
        // Of members with equal margins the first is shown. A flag has its failing repetitions beside it,
        // and those of the worst member are those of all members.
        let is_flag = worst.repetitions.iter().any(|figure| matches!(figure.value, FigureValue::Flag(_)));
        figures.insert(if is_flag { 0 } else { figures.len() }, worst);
    }
    if figures.is_empty() {
        return one_entry(vec![RepetitionFigure::OWNER_MISSING; runs.len()]);
    }
    figures
}

/// Reads the figure at `path` in each repetition. `owner` finds the figure's flow, group or link in a
/// repetition.
fn read_each<'a, T: 'static>(
    table: &'static Table<T>,
    runs: &[&'a RunSummary],
    path: &str,
    owner: impl Fn(&'a RunSummary) -> Option<&'a Box<T>>,
) -> Vec<RepetitionFigure> {
    runs.iter().map(|run| RepetitionFigure::read(table, owner(run).map(Box::as_ref), path)).collect()
}

/// The figure of the program in a repetition. It is `null` if the repetition has failed.
fn program_figure(run: &RunSummary, name: &str) -> RepetitionFigure {
    let figure = run.program.as_ref().map(|program| program.figures.get(name));
    let value = match figure {
        None => FigureValue::OwnerMissing,
        Some(None) => FigureValue::NoSuchFigure,
        Some(Some(None)) => FigureValue::Null,
        Some(Some(Some(number))) => FigureValue::Number(*number),
    };
    RepetitionFigure { value, messages: None, possible: ANY }
}

/// Returns whether `name` names the `flow` of a program. Flows are called PROTOCOL-PORT-NUMBER-DIRECTION,
/// without the port if the protocol has none, and `others-DIRECTION`. A name may leave the number and the
/// direction out.
pub(super) fn names_program_flow(name: &str, flow: &str) -> bool {
    let Some((conversation, direction)) = flow.rsplit_once('-') else { return false };
    let service = conversation.rsplit_once('-').map_or(conversation, |(service, _)| service);
    [flow, conversation, service].contains(&name) || name == format!("{service}-{direction}")
}

/// Returns whether the figure belongs to all copies of a flow together, and no single copy has it.
fn is_group_figure(name: &str, members: &[String], path: &str, runs: &[&RunSummary]) -> bool {
    runs.iter().all(|run| {
        let mut flows = members.iter().filter_map(|member| run.flows.get(member));
        let copy_lacks_figure =
            |flow| RepetitionFigure::read(&FLOW, Some(flow), path).value == FigureValue::NoSuchFigure;
        run.groups.contains_key(name) && flows.all(|flow| copy_lacks_figure(flow.as_ref()))
    })
}

/// Returns the worst member of each repetition, if the flow is judged by this figure. The tables and the
/// answer have the mean of these worst values. It is below the mean of every member if the members take
/// turns in being the worst. Of the two directions of a call it is the conversation, which is usable if both
/// directions are.
fn worst_member(path: &str, members: &[MemberFigures]) -> Option<MemberFigures> {
    if members.len() < 2 || !JUDGED_PATHS.contains(&path) {
        return None;
    }
    let mut repetitions = Vec::new();
    for index in 0..members[0].repetitions.len() {
        let figures = members.iter().filter_map(|member| member.repetitions.get(index));
        let numbers = figures.filter_map(|figure| Some((figure.value.number()?, *figure)));
        // If no member knows the figure in this repetition, none of its members is the worst.
        let (_, worst) = numbers.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        repetitions.push(worst);
    }
    Some(MemberFigures { member: Some(WORST_MEMBER.to_owned()), repetitions })
}

/// A cell of the plan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CellName<'a> {
    pub(super) index: u64,
    pub(super) label: &'a str,
}

/// The figure of a threshold in one cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CellFigure {
    /// The value over the repetitions, or `None` if it is unknown. The value of a flag is the worst one.
    pub(super) value: Option<f64>,
    /// The statistic of the value, or `None` for a flag, which must hold in all repetitions.
    pub(super) statistic: Option<Statistic>,
    /// The copy or direction that the figure is about, if it is not the flow itself.
    pub(super) member: Option<String>,
    /// The index of the cell in the plan.
    pub(super) cell_index: u64,
    /// The label of the cell.
    pub(super) cell: String,
    /// The number of repetitions.
    pub(super) repetitions: usize,
    /// The messages that the figure is a share of, if it is a share.
    pub(super) messages: Option<ShareMessages>,
    /// The interval of the value that decides. `None` if the value alone decides.
    pub(super) interval: Option<(f64, f64)>,
    /// How much more would decide.
    pub(super) needed: Needed,
    outcome: ThresholdOutcome,
}

impl CellFigure {
    /// Computes the figure of a member over the repetitions, and judges it by intervals of the `level`. If
    /// no statistic is named, the value of a flag is the worst one, because a damaged file must not pass
    /// among files that are intact.
    pub(super) fn new(
        figures: MemberFigures,
        cell: CellName<'_>,
        bound: Bound,
        choice: StatisticChoice,
        level: Level,
    ) -> Self {
        let MemberFigures { member, repetitions } = figures;
        let has_flag = repetitions.iter().any(|figure| matches!(figure.value, FigureValue::Flag(_)));
        let statistic = match choice {
            StatisticChoice::Usual(_) if has_flag => None,
            StatisticChoice::Usual(statistic) | StatisticChoice::Named(statistic) => Some(statistic),
        };
        let numbers: Vec<Option<f64>> = repetitions.iter().map(|figure| figure.value.number()).collect();
        let sorted = sorted_values(&numbers, bound);
        // If the statistic depends on a repetition whose figure is unknown, it is unknown, too.
        let value = match statistic {
            Some(statistic) => statistic.over(&sorted).filter(|value| value.is_finite()),
            None => worst_number(&numbers, bound),
        };
        let messages = share_messages(&repetitions, statistic);
        let certainty = match (statistic, value) {
            (Some(statistic), Some(value)) => Some(Certainty {
                statistic,
                value,
                sorted: &sorted,
                possible: repetitions.first().map_or(ANY, |figure| figure.possible),
                messages: messages.map(|messages| messages.independent),
            }),
            _ => None,
        };
        let judged = Judged { certainty, value, messages, bound };
        let (outcome, interval, needed) =
            (judged.outcome(level), judged.interval(level), judged.needed(level));
        Self {
            value,
            statistic,
            member,
            cell_index: cell.index,
            cell: cell.label.to_owned(),
            repetitions: repetitions.len(),
            messages,
            interval,
            needed,
            outcome,
        }
    }

    /// Returns the rank of the outcome. The worst outcome has the lowest rank.
    pub(super) const fn rank(&self) -> u8 {
        rank(self.outcome)
    }

    pub(super) fn is_mostly_unfinished(&self) -> bool {
        self.messages.is_some_and(ShareMessages::is_mostly_unfinished)
    }
}

/// Returns the number with the smallest margin. An unknown number has the smallest margin of all.
fn worst_number(numbers: &[Option<f64>], bound: Bound) -> Option<f64> {
    let by_margin = |a: &Option<f64>, b: &Option<f64>| margin(*a, bound).total_cmp(&margin(*b, bound));
    numbers.iter().copied().min_by(by_margin).flatten()
}

/// Returns the messages that a share over the repetitions is about. The mean of shares is a share of the
/// messages of all repetitions. Any other statistic is the share of one repetition, so the repetition with
/// the fewest messages is returned.
fn share_messages(repetitions: &[RepetitionFigure], statistic: Option<Statistic>) -> Option<ShareMessages> {
    let mut messages = Vec::new();
    for figure in repetitions {
        messages.push(figure.messages?);
    }
    let messages = messages.into_iter();
    match statistic {
        Some(Statistic::Mean) => messages.reduce(ShareMessages::plus),
        _ => messages.min_by_key(|messages| messages.counted),
    }
}
