//! The answer of a comparison: which transport served a flow best, and why.
//!
//! # The words of this module
//!
//! - A *condition* is a group of cells of the sweep that differ in one flow's transport only.
//! - A *candidate* is one transport of a condition. The *leader* is the candidate with the best mean.
//! - The *judged figure* says in one number how well a flow was served (`measure::judge`). It is the mean
//!   opinion score of a call, the share of messages in time of another flow on a clock, and the goodput of a
//!   transfer. If the flow has two directions or several copies, the worse one counts.
//! - The *floor* is the least judged figure with which a flow is usable.
//! - A *receiver* is the rule by which a call is played. A call whose scenario names no playout is judged
//!   with two receivers: the adaptive one, and the second one, which has a fixed buffer.
//! - A *variant* is the same condition with one change, such as `fq_codel` on a link. If the change can help,
//!   it is a *cure*.
//!
//! # The rule
//!
//! 1. Every candidate has one judged figure for each repetition.
//! 2. `measure::ranking` compares the candidates repetition by repetition. Its outcome is that one candidate
//!    is best, that several serve alike, or that the repetitions do not decide.
//! 3. If the leader is below the floor, nothing is usable. The answer then names the cause.
//! 4. If the same run tried variants, the answer says how the flow fares with each.
//! 5. If the two receivers of a call lead to different answers, the answer is that it depends on the
//!    receiver.
//!
//! docs/reference/metrics.md, "Which transport is best", states the tolerances.

mod cause;
mod held_back;
mod path_change;
mod ranked;
mod reasons;
mod receivers;
mod variant;
mod words;
mod writing;

use talkpath_measure::judge::Receiver;
use talkpath_measure::metrics::in_time;
use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::ranking::{Ranking, Standing};
use talkpath_measure::summary::{Answer, AnswerKind, Comparison, JudgedBy, JudgedFigure, Summary};

pub(crate) use self::cause::{Cause, wait};
pub(crate) use self::ranked::{MOS_CLUSTER_GAP, SHARE_CLUSTER_GAP, cluster_gap, measure};
use self::ranked::{RankedTransports, mean};
pub(crate) use self::variant::ChangeRow;
use self::variant::SizeTried;
pub use self::words::HOPELESS;
pub(crate) use self::writing::{FigureStyle, figure_style, rule};
use crate::condition::{Condition, conditions};
use crate::metric::{DelayKind, Metric, Quantile};
use crate::view::{CellView, judged_flows, transport_key};

/// One judged flow with its cells. The cells are grouped into conditions, within which only the flow's
/// transport differs.
pub(crate) struct FlowCells<'a> {
    pub flow: String,
    pub conditions: Vec<Condition<'a>>,
}

/// One judged flow, and the verdict for each condition.
pub(crate) struct JudgedFlow<'a> {
    pub flow: &'a str,
    pub conditions: Vec<ConditionVerdict<'a>>,
}

pub(crate) struct ConditionVerdict<'a> {
    pub condition: &'a Condition<'a>,
    /// `None` if the condition does not have two transports to compare. The verdict is boxed because it takes
    /// half a kilobyte, and most conditions of a large sweep may have none.
    pub verdict: Option<Box<Verdict>>,
}

/// A condition whose verdict is shown to the user.
pub(crate) struct ConditionAnswer<'a> {
    pub condition: &'a Condition<'a>,
    pub verdict: &'a Verdict,
}

/// The answer for one condition, and the ranking that the answer rests on.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub answer: Answer,
    /// The best transports by name: `UDP`, or `UDP or TCP`.
    pub best_by_name: String,
    /// The best transports that reach the floor, with their figures: `UDP (MOS 4.37) or TCP (4.36)`.
    best_with_figures: String,
    /// The names of the best transports, as people write them.
    pub best_labels: Vec<String>,
    /// Index of the leader's cell in the condition. The tables show how the other cells differ from this
    /// cell.
    pub leader_cell: usize,
    /// Indices of the best cells in the condition. Empty if nothing is usable, or if the run is not valid.
    pub best_cells: Vec<usize>,
    pub judged_by: JudgedBy,
    pub floor: f64,
    /// Indices of the ranked cells in the condition. A cell without a judged figure is not ranked.
    pub ranked_cells: Vec<usize>,
    /// The ranking of [`Self::ranked_cells`], in the same order.
    pub ranking: Ranking,
    /// The reason why nothing is usable. `None` if a transport is usable.
    pub cause: Option<Cause>,
    /// The verdict with the second receiver. `None` if one of the cells does not have a second receiver.
    pub second_receiver: Option<Box<Self>>,
    /// The receiver that this verdict rests on.
    pub receiver: Receiver,
    /// The playout of the receiver that this verdict rests on, for example `adaptive`.
    playout: String,
    /// The leader's median delay in ms. `None` if it is not known.
    leader_delay_ms: Option<f64>,
    /// The words of the first line about that delay. `None` if it has none.
    delay_words: Option<String>,
    /// The sizes of an assumed queue that were tried, from the smallest to the largest. Empty if no other
    /// size was tried.
    sizes_tried: Vec<SizeTried>,
    /// What was tried to make the flow usable, and before it what was asked for. Empty if nothing was tried.
    pub changes_tried: Vec<ChangeRow>,
    /// Whether the cells of this condition are a variant of another condition.
    pub is_variant: bool,
    /// Whether the run is valid. A run that is not valid gives no answer.
    pub is_valid: bool,
}

/// What a run still needs before it has an answer. `talkpath compare` repeats a run until it needs nothing
/// more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Whether an answer needs more repetitions.
    pub repetitions: bool,
    /// The link on which the run should try `fq_codel`. It is set if nothing is usable. It is the link on
    /// which packets wait longest, among the links on which the flow's packets can have waited.
    pub cure_on: Option<String>,
    /// The numbers of the cells with which variants are tried: the cell of the leader, and that of the best
    /// transport of the other kind. Transports of one kind send lost data again, and those of the other kind
    /// do not. Empty if there is no answer.
    pub variants_of: Vec<u64>,
    /// The next size to try of an assumed queue. It is set if the size decides whether the flow is usable,
    /// and the size at which the answer turns is not known.
    pub next_size: Option<QueueSize>,
}

/// A size of a queue to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSize {
    /// The name of the link in the path.
    pub link: String,
    /// The limit with its unit, as a scenario has it: `45 kB`, `62 ms`, `8 packets`.
    pub limit: String,
}

/// Compares the transports of each judged flow of `summary`, condition by condition. A condition without two
/// transports to compare has no comparison. A run that is not valid has no comparisons at all.
pub fn comparisons(summary: &Summary) -> Vec<Comparison> {
    if !summary.valid {
        return Vec::new();
    }
    let mut comparisons = Vec::new();
    for flow_cells in FlowCells::all(summary) {
        let JudgedFlow { flow, conditions } = flow_cells.judge();
        for ConditionVerdict { condition, verdict } in conditions {
            let Some(verdict) = verdict else { continue };
            comparisons.push(Comparison {
                flow: flow.to_owned(),
                sweep: condition.common(flow),
                cells: condition.cells.iter().map(|cell| cell.cell.cell).collect(),
                answer: verdict.answer,
            });
        }
    }
    comparisons
}

/// Finds out what `summary` still needs before it has an answer.
pub fn lacking(summary: &Summary) -> Lacking {
    let flow_cells = FlowCells::all(summary);
    let judged_flows: Vec<JudgedFlow<'_>> = flow_cells.iter().map(FlowCells::judge).collect();
    let conditions = judged_flows.iter().flat_map(|judged| &judged.conditions);
    let verdicts: Vec<&Verdict> = conditions.filter_map(|judged| judged.verdict.as_deref()).collect();
    // A run tries its variants once.
    let variants_were_tried = verdicts.iter().any(|verdict| verdict.is_variant);
    let cure_on = if variants_were_tried {
        None
    } else {
        judged_flows.iter().find_map(JudgedFlow::longest_queue_where_unusable).map(str::to_owned)
    };
    // A variant says whether the flow is usable, and not which transport is best, so it is never unsettled.
    let is_open = |verdict: &&Verdict| !verdict.is_variant && !verdict.is_settled();
    let first =
        judged_flows.iter().find_map(|judged| Some((judged.flow, judged.answers().into_iter().next()?)));
    Lacking {
        repetitions: verdicts.iter().any(is_open),
        cure_on,
        variants_of: first.as_ref().map(|(flow, answer)| answer.cells_for_variants(flow)).unwrap_or_default(),
        next_size: first.and_then(|(_, answer)| next_size(&answer.verdict.sizes_tried)),
    }
}

/// No size is tried between two whose ratio is smaller. We chose a quarter: nobody knows the size of a queue
/// more exactly.
const NEAR_SIZES: f64 = 1.25;
/// No size below this share of the base is tried. We chose 1/64: of a queue of 250 ms it is a packet or two.
const LEAST_SIZE: f64 = 1.0 / 64.0;

/// The size to try after those of `sizes`, which are sorted. Returns `None` if none was tried, if the size
/// does not decide, or if it is known where the answer turns.
fn next_size(sizes: &[SizeTried]) -> Option<QueueSize> {
    let (first, last) = (sizes.first()?, sizes.last()?);
    let first_unusable = sizes.iter().position(|size| !size.is_usable)?;
    if sizes[first_unusable..].iter().any(|size| size.is_usable) {
        return None;
    }
    let limit = match first_unusable.checked_sub(1) {
        Some(usable) => {
            let (below, above) = (sizes[usable].limit, sizes[first_unusable].limit);
            (above > NEAR_SIZES * below).then(|| (below * above).sqrt())?
        }
        // The largest that is tried is four times the base.
        None => Some(first.limit / 4.0).filter(|limit| *limit >= last.limit / 4.0 * LEAST_SIZE)?,
    };
    let limit = match first.unit.starts_with("packet") {
        true => limit.round().max(1.0),
        false => two_digits(limit),
    };
    let is_new = sizes.iter().all(|size| size.limit != limit);
    let link = first.key.strip_suffix(".queue")?.rsplit('.').next()?.to_owned();
    is_new.then(|| QueueSize { link, limit: format!("{limit} {}", first.unit) })
}

/// Rounds to two digits.
fn two_digits(value: f64) -> f64 {
    let scale = 10_f64.powf(value.abs().log10().floor() - 1.0);
    // The division by a power of ten leaves digits that nobody asked for.
    ((value / scale).round() * scale * 1e6).round() / 1e6
}

impl<'a> FlowCells<'a> {
    /// Groups the cells of `summary` into conditions, for each judged flow.
    pub(crate) fn all(summary: &'a Summary) -> Vec<Self> {
        // What a program of the user sends is not judged: its flows have other names in each repetition.
        let is_of_program = |flow: &String| {
            summary.program.is_some()
                && summary.cells.iter().all(|cell| !cell.sweep.contains_key(&transport_key(flow)))
        };
        let flows = judged_flows(summary).into_iter().filter(|flow| !is_of_program(flow));
        flows.map(|flow| Self { conditions: conditions(summary, &flow), flow }).collect()
    }

    /// Judges the transports of each condition.
    pub(crate) fn judge(&'a self) -> JudgedFlow<'a> {
        let verdicts = judge(&self.conditions, &self.flow);
        let conditions = self.conditions.iter().zip(verdicts);
        let conditions = conditions.map(|(condition, verdict)| ConditionVerdict { condition, verdict });
        JudgedFlow { flow: &self.flow, conditions: conditions.collect() }
    }
}

impl ConditionAnswer<'_> {
    /// See [`Lacking::variants_of`].
    fn cells_for_variants(&self, flow: &str) -> Vec<u64> {
        let Verdict { ranked_cells, ranking, leader_cell, .. } = self.verdict;
        let cell = |index: usize| &self.condition.cells[index];
        let sends_again = |index: usize| {
            let transport = cell(index).transport(flow).kind;
            !NEVER_SENDS_AGAIN.iter().any(|kind| transport.starts_with(kind))
        };
        let mean = |index: usize| {
            let rank = ranked_cells.iter().position(|ranked| *ranked == index);
            rank.map_or(f64::MIN, |rank| ranking.standings[rank].mean)
        };
        let delay = |index: usize| {
            let kind = self.condition.delay_kind(flow);
            cell(index).value(flow, Metric::delay(kind, Quantile::P50)).unwrap_or(f64::INFINITY)
        };
        // Of transports that serve alike the first is taken, and beside it the quickest.
        let best: Vec<usize> = ranking.best().into_iter().map(|rank| ranked_cells[rank]).collect();
        let first = best.first().copied().unwrap_or(*leader_cell);
        let is_other_kind = |index: &usize| sends_again(*index) != sends_again(first);
        let others = || ranked_cells.iter().copied().filter(|index| *index != first);
        let alike = best.iter().copied().filter(|index| is_other_kind(index));
        let second = alike.min_by(|a, b| delay(*a).total_cmp(&delay(*b)));
        let by_mean = |a: &usize, b: &usize| mean(*a).total_cmp(&mean(*b));
        let second = second.or_else(|| others().filter(|index| is_other_kind(index)).max_by(by_mean));
        let chosen = [Some(first), second.or_else(|| others().max_by(by_mean))];
        let mut cells: Vec<u64> = chosen.into_iter().flatten().map(|index| cell(index).cell.cell).collect();
        cells.sort_unstable();
        cells
    }
}

/// The beginnings of the names of transports that never send lost data again.
const NEVER_SENDS_AGAIN: [&str; 3] = ["udp", "quic-datagram", "dccp"];

impl JudgedFlow<'_> {
    /// The conditions whose verdicts are shown. A condition that is a variant of another one is left out,
    /// because the answer of that other condition has the result of the variant.
    pub(crate) fn answers(&self) -> Vec<ConditionAnswer<'_>> {
        let mut answers = Vec::new();
        for ConditionVerdict { condition, verdict } in &self.conditions {
            let Some(verdict) = verdict.as_deref() else { continue };
            if !verdict.is_variant {
                answers.push(ConditionAnswer { condition, verdict });
            }
        }
        answers
    }

    /// Finds the link on which the flow's packets wait longest, under the first condition where nothing is
    /// usable with one of the receivers.
    fn longest_queue_where_unusable(&self) -> Option<&str> {
        for ConditionVerdict { condition, verdict } in &self.conditions {
            let Some(verdict) = verdict else { continue };
            if verdict.is_variant || !verdict.may_be_unusable() {
                continue;
            }
            let leader = &condition.cells[verdict.leader_cell];
            let Some(flow) = leader.resolve(self.flow) else { continue };
            // The 99th percentile, because a queue that only the slowest messages meet can make the delay
            // vary.
            if let Some(longest) = cause::longest_wait(leader, flow, Quantile::P99) {
                return Some(longest.link);
            }
        }
        None
    }
}

/// Judges the transports of each condition. A verdict is `None` if the condition does not have two transports
/// to compare.
pub(crate) fn judge(conditions: &[Condition<'_>], flow: &str) -> Vec<Option<Box<Verdict>>> {
    let mut verdicts: Vec<Option<Box<Verdict>>> =
        conditions.iter().map(|condition| judge_with_each_receiver(condition, flow).map(Box::new)).collect();
    variant::add_variants(&mut verdicts, conditions, flow);
    verdicts
}

/// Judges one condition with the receiver of the scenario, and again with the other receivers if every ranked
/// cell has them. The first of them that disagrees is the second receiver of the verdict. If all agree, it is
/// the first one. Only calls with the adaptive receiver have other receivers.
fn judge_with_each_receiver(condition: &Condition<'_>, flow: &str) -> Option<Verdict> {
    let own = RankedTransports::new(condition, flow, Receiver::Own)?.verdict();
    let mut others: Vec<Verdict> = Vec::new();
    for receiver in [Receiver::Other, Receiver::Patient] {
        let other = RankedTransports::new(condition, flow, receiver).map(RankedTransports::verdict);
        others.extend(other.filter(|other| other.ranked_cells == own.ranked_cells));
    }
    if others.is_empty() {
        return Some(own);
    }
    let deciding = others.iter().position(|other| own.disagrees_with(other)).unwrap_or(0);
    Some(own.combined_with(others.swap_remove(deciding)))
}

impl Verdict {
    /// The answer, the reason, and the effect on the flows that run at the same time, each on one line.
    pub(crate) fn lines(&self) -> Vec<&str> {
        if !self.is_valid {
            return vec![NOT_VALID];
        }
        let Answer { line, why, neighbours, .. } = &self.answer;
        let lines = [Some(line), Some(why), neighbours.as_ref()];
        lines.into_iter().flatten().map(String::as_str).filter(|line| !line.is_empty()).collect()
    }

    /// The leader's median delay in ms, if the flow is judged by its share in time.
    fn delay_beside_share(&self) -> Option<f64> {
        self.leader_delay_ms.filter(|_| self.judged_by == JudgedBy::InTime)
    }

    /// The standing of the cell with index `cell` in the condition. `None` if the cell was not ranked.
    pub(crate) fn standing(&self, cell: usize) -> Option<&Standing> {
        let rank = self.ranked_cells.iter().position(|ranked| *ranked == cell)?;
        self.ranking.standings.get(rank)
    }

    /// The two clusters of the cell with index `cell` in the condition. `None` if the repetitions of the cell
    /// do not fall into two clusters.
    pub(crate) fn clusters(&self, cell: usize) -> Option<Clusters> {
        self.standing(cell)?.clusters
    }

    /// The outcome in a few words, with the names of the best transports and without figures.
    pub(crate) fn in_brief(&self) -> String {
        if !self.is_valid {
            return "no answer, the run is not valid".to_owned();
        }
        let names = &self.best_by_name;
        match self.answer.outcome {
            AnswerKind::Distinct => names.clone(),
            AnswerKind::Alike => format!("{names}, alike"),
            AnswerKind::Undecided => format!("undecided: {names}"),
            AnswerKind::Unusable => format!("nothing usable, the least bad is {names}"),
            AnswerKind::DependsOnReceiver => format!("depends on the receiver: {names}"),
        }
    }
}

/// Says why conditions without two transports to compare have no answer. If one transport alone has figures,
/// the text says how it serves the flow. The text also names the transports that got nothing through.
pub(crate) fn no_answer(conditions: &[Condition<'_>], flow: &str) -> String {
    let cells: Vec<&CellView<'_>> = conditions.iter().flat_map(|condition| &condition.cells).collect();
    let silent_note = match words::silent_transports(cells.iter().copied(), flow) {
        Some(sentence) => format!(" {sentence}"),
        None => String::new(),
    };
    let mut serving = cells;
    serving.retain(|cell| !cell.is_silent(flow) && !cell.judged_figures(flow).is_empty());
    match serving.as_slice() {
        [] if !silent_note.is_empty() => format!("No answer:{silent_note}"),
        [only] => {
            let served = how_one_transport_serves(only, flow);
            format!("Nothing to compare: {served}{silent_note}")
        }
        _ => format!("No answer: there are not two transports with figures to judge.{silent_note}"),
    }
}

/// Says how the only transport that has figures serves the flow. The cell has at least one judged figure.
fn how_one_transport_serves(cell: &CellView<'_>, flow: &str) -> String {
    let judged = cell.judged_figures(flow);
    let Some(first) = judged.values().next() else { return String::new() };
    let style = figure_style(first.by);
    let worst: Vec<f64> = judged.values().map(|figure| figure.worst).collect();
    let figure = style.phrase(&style.bare(mean(&worst)));
    let usable = if judged.values().all(JudgedFigure::is_usable) {
        "is usable"
    } else {
        "is not usable in every repetition"
    };
    let name = cell.transport(flow).label;
    format!("{name} alone has figures, and {usable}: {figure}.")
}

const NOT_VALID: &str = "No answer: this run is not valid, and the lines that begin with \"invalid\" say why. Remove the reason and \
                         measure again. The figures below do not say which transport is best.";

/// The longest delay in ms with which a message counts as in time, if its flow names no deadline.
pub(crate) fn limit_ms(kind: DelayKind) -> f64 {
    in_time::limit(kind == DelayKind::RoundTrip).as_millis_f64()
}

#[cfg(test)]
mod receiver_tests;
#[cfg(test)]
mod sentence_tests;
#[cfg(test)]
mod tests;
