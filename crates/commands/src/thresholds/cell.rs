//! The figure of a threshold in one cell: found in each repetition, and then computed over the repetitions.

use core::cmp::Ordering;
use std::collections::BTreeSet;

use talkpath_measure::statistic::Statistic;
use talkpath_measure::summary::{RunSummary, ThresholdOutcome};
use talkpath_scenario::{Bound, ThresholdSubject};

use super::figure::{Lookup, RepetitionFigure, flow_figure, group_figure, link_figure};
use super::outcome::{is_mostly_unfinished, margin, outcome, over_repetitions, rank};

/// The paths of the figures by which a flow is judged in the tables.
const JUDGED_PATHS: [&str; 3] = ["call.mos", "in_time", "goodput_bps"];
/// The name of the worst member of each repetition among the members of a flow.
const WORST_MEMBER: &str = "the worst of each repetition";

/// The figure of a member of a flow, or of a link, in each repetition of a cell.
#[derive(Default)]
pub(super) struct MemberFigures {
    /// The name of the copy or direction. It is `None` for the flow itself, for all copies together, and for
    /// a link.
    pub(super) member: Option<String>,
    pub(super) repetitions: Vec<RepetitionFigure>,
}

impl MemberFigures {
    pub(super) fn lookups(&self) -> impl Iterator<Item = Lookup> {
        self.repetitions.iter().map(|figure| figure.lookup)
    }
}

/// Finds the figure of the link, or of each member of the flow, in the repetitions of one cell.
pub(super) fn member_figures(
    subject: &ThresholdSubject,
    path: &str,
    runs: &[&RunSummary],
) -> Vec<MemberFigures> {
    let absent = RepetitionFigure::from(Lookup::Below);
    if runs.is_empty() {
        // A cell without a repetition has no figure.
        return vec![MemberFigures { member: None, repetitions: vec![absent] }];
    }
    let mut figures = match subject {
        ThresholdSubject::Link { name } => {
            let figure = |run: &&RunSummary| link_figure(run.links.get(name).map(Box::as_ref), path);
            vec![MemberFigures { member: None, repetitions: runs.iter().map(figure).collect() }]
        }
        ThresholdSubject::Flow { name, members } if is_group_figure(name, members, path, runs) => {
            let figure = |run: &&RunSummary| group_figure(run.groups.get(name).map(Box::as_ref), path);
            vec![MemberFigures { member: None, repetitions: runs.iter().map(figure).collect() }]
        }
        ThresholdSubject::ProgramFlows { name } => {
            let flow_names: BTreeSet<&String> = runs.iter().flat_map(|run| run.flows.keys()).collect();
            let mut figures = Vec::new();
            for flow in flow_names.into_iter().filter(|flow| names_program_flow(name, flow)) {
                let figure = |run: &&RunSummary| flow_figure(run.flows.get(flow).map(Box::as_ref), path);
                let repetitions = runs.iter().map(figure).collect();
                figures.push(MemberFigures { member: Some(flow.clone()), repetitions });
            }
            figures
        }
        ThresholdSubject::Flow { name, members } => {
            let mut figures = Vec::new();
            for member in members {
                if runs.iter().any(|run| run.flows.contains_key(member)) {
                    let figure =
                        |run: &&RunSummary| flow_figure(run.flows.get(member).map(Box::as_ref), path);
                    figures.push(MemberFigures {
                        member: (member != name).then(|| member.clone()),
                        repetitions: runs.iter().map(figure).collect(),
                    });
                }
            }
            figures
        }
    };
    figures.extend(worst_member(path, &figures));
    if figures.is_empty() {
        figures.push(MemberFigures { member: None, repetitions: vec![absent; runs.len()] });
    }
    figures
}

/// Whether `name` names the `flow` of a program. Flows are called PROTOCOL-PORT-NUMBER-DIRECTION, without the
/// port if the protocol has none, and `others-DIRECTION`. A name may leave the number and the direction out.
fn names_program_flow(name: &str, flow: &str) -> bool {
    let Some((conversation, direction)) = flow.rsplit_once('-') else { return false };
    let service = conversation.rsplit_once('-').map_or(conversation, |(service, _)| service);
    [flow, conversation, service].contains(&name) || name == format!("{service}-{direction}")
}

/// Whether the figure belongs to all copies of a flow together, and no single copy has it.
fn is_group_figure(name: &str, members: &[String], path: &str, runs: &[&RunSummary]) -> bool {
    runs.iter().all(|run| {
        let mut flows = members.iter().filter_map(|member| run.flows.get(member));
        run.groups.contains_key(name)
            && flows.all(|flow| flow_figure(Some(flow), path).lookup == Lookup::Unknown)
    })
}

/// Returns the worst member of each repetition, if the flow is judged by this figure. The tables and the
/// answer have the mean of these worst values. It is below the mean of every member if the members take turns
/// in being the worst.
fn worst_member(path: &str, members: &[MemberFigures]) -> Option<MemberFigures> {
    if members.len() < 2 || !JUDGED_PATHS.contains(&path) {
        return None;
    }
    let mut repetitions = Vec::new();
    for index in 0..members[0].repetitions.len() {
        let figures = members.iter().filter_map(|member| member.repetitions.get(index));
        let known = figures.filter(|figure| figure.lookup.number().is_some()).copied();
        // The figure is not known in this repetition, so nothing is the worst over all repetitions.
        let worst = known
            .min_by(|a, b| a.lookup.number().partial_cmp(&b.lookup.number()).unwrap_or(Ordering::Equal))?;
        repetitions.push(worst);
    }
    Some(MemberFigures { member: Some(WORST_MEMBER.to_owned()), repetitions })
}

/// The statistic over the repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) enum StatisticChoice {
    /// The statistic of the tables, because the threshold names none.
    Usual(Statistic),
    /// The statistic that the threshold names.
    Named(Statistic),
}

/// The figure of a threshold in one cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CellFigure {
    /// The value over the repetitions, or `None` if it is not known. The value of a flag is the worst one.
    pub(super) value: Option<f64>,
    /// The statistic of the value, or `None` for a flag, which must hold in all repetitions.
    pub(super) statistic: Option<Statistic>,
    /// The copy or direction that the figure is about, if it is not the flow itself.
    pub(super) member: Option<String>,
    /// The label of the cell.
    pub(super) cell: String,
    /// The number of repetitions.
    pub(super) repetitions: usize,
    /// The number of messages that the figure is a share of, if it is a share.
    pub(super) messages: Option<u64>,
    /// The number of messages that the share leaves out because they were unfinished at the end.
    pub(super) unfinished: u64,
    outcome: ThresholdOutcome,
}

impl CellFigure {
    /// Computes the figure of a member over the repetitions. If no statistic is named, the value of a flag is
    /// the worst one, because a damaged file must not pass among files that are intact.
    pub(super) fn new(figures: MemberFigures, cell: &str, bound: Bound, choice: StatisticChoice) -> Self {
        let MemberFigures { member, repetitions } = figures;
        let has_flag = repetitions.iter().any(|figure| matches!(figure.lookup, Lookup::Flag(_)));
        let statistic = match choice {
            StatisticChoice::Usual(_) if has_flag => None,
            StatisticChoice::Usual(statistic) | StatisticChoice::Named(statistic) => Some(statistic),
        };
        let numbers: Vec<Option<f64>> = repetitions.iter().map(|figure| figure.lookup.number()).collect();
        let value = match statistic {
            Some(statistic) => over_repetitions(statistic, &numbers, bound),
            None => {
                let by_margin =
                    |a: &Option<f64>, b: &Option<f64>| margin(*a, bound).total_cmp(&margin(*b, bound));
                numbers.into_iter().min_by(by_margin).flatten()
            }
        };
        let (messages, unfinished) = match statistic {
            // The mean of shares is a share of all messages.
            Some(Statistic::Mean) => (
                repetitions.iter().map(|figure| figure.messages).sum(),
                repetitions.iter().map(|figure| figure.unfinished).sum(),
            ),
            // Any other statistic is the share of one repetition.
            _ => {
                let fewest = repetitions.iter().min_by_key(|figure| figure.messages);
                fewest.map_or((None, 0), |figure| (figure.messages, figure.unfinished))
            }
        };
        let judged_messages = messages.filter(|_| !repetitions.is_empty());
        Self {
            value,
            statistic,
            member,
            cell: cell.to_owned(),
            repetitions: repetitions.len(),
            messages,
            unfinished,
            outcome: outcome(value, judged_messages, unfinished, bound),
        }
    }

    /// The rank of the outcome. The worst outcome has the lowest rank.
    pub(super) const fn rank(&self) -> u8 {
        rank(self.outcome)
    }

    pub(super) fn is_mostly_unfinished(&self) -> bool {
        self.messages.is_some_and(|messages| is_mostly_unfinished(messages, self.unfinished))
    }
}
