//! The ranking of one condition's transports with one receiver.

use std::collections::BTreeMap;

use talkpath_measure::judge::Receiver;
use talkpath_measure::metrics::playout::{OTHER_WAITS, beyond_least_words};
use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::ranking::{Measure, Ranking, rank};
use talkpath_measure::summary::{Answer, AnswerKind, JudgedBy, JudgedFigure, TwoOutcomes};

use super::{Cause, Verdict};
use crate::condition::Condition;
use crate::metric::{DelayKind, Metric, Quantile};
use crate::rated::barred;
use crate::receiver;
use crate::view::{CellView, TransportView, is_copy};

/// The transports of one condition, ranked with one receiver. `words` writes the sentences of the answer.
pub(super) struct RankedTransports<'a> {
    pub(super) condition: &'a Condition<'a>,
    /// The judged flow, by the name that its copies share.
    pub(super) flow: &'a str,
    receiver: Receiver,
    pub(super) candidates: Vec<Candidate<'a>>,
    /// The ranking of the candidates, in the order of the candidates.
    pub(super) ranking: Ranking,
    pub(super) judged_by: JudgedBy,
    /// The least judged figure with which the flow is usable.
    pub(super) floor: f64,
    /// The reason why nothing is usable. `None` if a candidate is usable.
    pub(super) unusable_because: Option<CandidateCause>,
    /// The deadline in ms that no message of any candidate met. If it is set, the candidates are ranked by
    /// their delay, because their shares of messages in time are all zero.
    pub(super) missed_deadline_ms: Option<f64>,
}

/// One transport that is ranked.
pub(super) struct Candidate<'a> {
    /// Index of the transport's cell in the condition.
    cell_index: usize,
    pub(super) cell: &'a CellView<'a>,
    pub(super) transport: TransportView,
    /// The name of the judged flow in this cell. If the flow has copies, it is the name of the worst copy.
    pub(super) flow: &'a str,
    pub(super) judged: BTreeMap<u64, JudgedFigure>,
}

/// Why nothing is usable, as the figures of one candidate show it.
pub(super) struct CandidateCause {
    /// Index of the candidate.
    pub(super) candidate: usize,
    pub(super) cause: Cause,
}

impl<'a> RankedTransports<'a> {
    /// Ranks the transports of `condition`. Returns `None` if there are not two transports to compare. The
    /// cells of a page that shows several runs are never ranked, because such cells differ in more than the
    /// transport.
    pub(super) fn new(condition: &'a Condition<'a>, flow: &'a str, receiver: Receiver) -> Option<Self> {
        if condition.cells.iter().any(CellView::is_of_several_runs) {
            return None;
        }
        let cells = condition.cells.iter().enumerate();
        let candidates: Vec<Candidate<'_>> =
            cells.filter_map(|(index, cell)| Candidate::new(index, cell, flow, receiver)).collect();
        if !have_one_scale(&candidates) {
            return None;
        }
        let first_figure = candidates.first()?.judged.values().next()?;
        let (judged_by, floor) = (first_figure.by, first_figure.floor);

        let mut ranking = rank_by_figure(judged_by, floor, &candidates)?;
        let missed_deadline_ms = find_missed_deadline_ms(judged_by, &candidates);
        if missed_deadline_ms.is_some() {
            ranking = rank_by_delay(condition.delay_kind(flow), &candidates, ranking)?;
        }
        let unusable_because = CandidateCause::new(&candidates, &ranking);
        Some(Self {
            condition,
            flow,
            receiver,
            candidates,
            ranking,
            judged_by,
            floor,
            unusable_because,
            missed_deadline_ms,
        })
    }

    /// Turns the ranking into a verdict. The verdict does not know yet about variants or a second receiver.
    pub(super) fn verdict(self) -> Verdict {
        let best: Vec<&Candidate<'_>> =
            self.ranking.best().into_iter().map(|index| &self.candidates[index]).collect();
        let answer = Answer {
            best: best.iter().map(|candidate| candidate.transport.kind.clone()).collect(),
            outcome: self.ranking.outcome,
            line: self.line(),
            why: self.why(),
            two_outcomes: self.two_outcomes(),
            neighbours: self.neighbours(),
            more: self.ranking.more,
            cure: None,
            tried: Vec::new(),
            receivers: Vec::new(),
        };
        let names_a_best_cell = self.condition.is_valid && self.ranking.outcome != AnswerKind::Unusable;
        let best_cells = if names_a_best_cell {
            best.iter().map(|candidate| candidate.cell_index).collect()
        } else {
            Vec::new()
        };
        let playout = self.candidates.first().and_then(|candidate| candidate.playout(self.receiver));
        let delay_words = self.unusable_because.as_ref().and_then(|_| self.delay_words());
        let leader_delay_ms = self.leader_delay_ms();
        Verdict {
            answer,
            best_by_name: self.best_by_name(),
            best_with_figures: self.best_with_figures(),
            best_labels: best.iter().map(|candidate| candidate.transport.label.clone()).collect(),
            leader_cell: self.candidates[self.ranking.leader].cell_index,
            best_cells,
            judged_by: self.judged_by,
            floor: self.floor,
            ranked_cells: self.candidates.iter().map(|candidate| candidate.cell_index).collect(),
            cause: self.unusable_because.map(|because| because.cause),
            second_receiver: None,
            receiver: self.receiver,
            playout: playout.unwrap_or_default(),
            leader_delay_ms,
            delay_words,
            sizes_tried: Vec::new(),
            changes_tried: Vec::new(),
            is_variant: false,
            is_valid: self.condition.is_valid,
            ranking: self.ranking,
        }
    }

    /// The candidates whose repetitions fall into two clusters.
    fn two_outcomes(&self) -> Vec<TwoOutcomes> {
        let mut two_outcomes = Vec::new();
        for (candidate, standing) in self.candidates.iter().zip(&self.ranking.standings) {
            let Some(Clusters { low, high, low_share }) = standing.clusters else { continue };
            two_outcomes.push(TwoOutcomes {
                transport: candidate.transport.kind.clone(),
                cell: candidate.cell.cell.cell,
                low,
                high,
                low_share,
            });
        }
        two_outcomes
    }
}

/// Whether all candidates are judged by one kind of figure, and their calls rated on one scale. Scores of two
/// scales are not comparable.
fn have_one_scale(candidates: &[Candidate<'_>]) -> bool {
    let mut kinds = candidates.iter().flat_map(|candidate| candidate.judged.values()).map(|judged| judged.by);
    let first_kind = kinds.next();
    if kinds.any(|kind| Some(kind) != first_kind) {
        return false;
    }
    let mut scales = candidates.iter().filter_map(Candidate::scale);
    let Some(first) = scales.next() else { return true };
    scales.all(|scale| scale == first)
}

impl<'a> Candidate<'a> {
    /// Returns `None` if the cell lacks the flow, or if the flow is not judged in any repetition.
    fn new(cell_index: usize, cell: &'a CellView<'a>, flow: &str, receiver: Receiver) -> Option<Self> {
        let judged = cell.judged_figures_with(flow, receiver);
        if judged.is_empty() {
            return None;
        }
        Some(Self { cell_index, cell, transport: cell.transport(flow), flow: cell.resolve(flow)?, judged })
    }

    /// The scale of the call's score. Returns `None` if the flow is not a call, if its copies are summed up,
    /// or if the call is not rated.
    fn scale(&self) -> Option<&str> {
        let call = self.cell.run()?.flows.get(self.flow)?.call.as_deref()?;
        receiver::scale(call)
    }

    /// The playout of the call's receiver, for example `adaptive` or `fixed 60 ms`. Returns `None` if the
    /// cell has no run.
    fn playout(&self, receiver: Receiver) -> Option<String> {
        let mut flows = self.cell.run()?.flows.iter();
        let call = flows.find_map(|(name, flow)| {
            if name == self.flow || is_copy(name, self.flow) { flow.call.as_deref() } else { None }
        });
        // Copies that are summed up have no entry of their own. The defaults of both receivers hold for such
        // copies.
        let playout = match (receiver, call) {
            (Receiver::Own, Some(call)) => call.playout.clone(),
            (Receiver::Own, None) => "adaptive".to_owned(),
            (Receiver::Other | Receiver::Patient, call) => {
                let [second, patient] = OTHER_WAITS;
                match call.and_then(|call| call.receiver(receiver)) {
                    Some(other) => other.playout.clone(),
                    None if receiver == Receiver::Other => beyond_least_words(second),
                    None => beyond_least_words(patient),
                }
            }
        };
        Some(playout)
    }

    /// The value of `metric` for the judged flow.
    pub(super) fn value(&self, metric: Metric) -> Option<f64> {
        self.cell.value(self.flow, metric)
    }
}

impl CandidateCause {
    /// Finds the cause in the figures of the first of the best candidates. Returns `None` if a candidate is
    /// usable.
    fn new(candidates: &[Candidate<'_>], ranking: &Ranking) -> Option<Self> {
        if ranking.outcome != AnswerKind::Unusable {
            return None;
        }
        // The leader can be ahead by a mere hundredth, for example with a MOS of 1.01 against 1.00. Such
        // scores count as equal, so the first of the best candidates is examined, whichever of them leads.
        let candidate = *ranking.best().first()?;
        let Candidate { cell, flow, .. } = &candidates[candidate];
        let cause = Cause::new(cell, flow, ranking.standings[candidate].is_barred());
        Some(Self { candidate, cause })
    }
}

fn rank_by_figure(judged_by: JudgedBy, floor: f64, candidates: &[Candidate<'_>]) -> Option<Ranking> {
    let mut figures: Vec<BTreeMap<u64, f64>> = Vec::new();
    let mut barred_shares = Vec::new();
    for Candidate { judged, .. } in candidates {
        figures.push(judged.iter().map(|(repetition, figure)| (*repetition, figure.worst)).collect());
        barred_shares.push(barred(judged));
    }
    rank(&figures, &barred_shares, &measure(judged_by, floor, &figures))
}

/// Returns the flow's deadline in ms if not one message of any candidate met the deadline.
fn find_missed_deadline_ms(judged_by: JudgedBy, candidates: &[Candidate<'_>]) -> Option<f64> {
    if judged_by != JudgedBy::InTime {
        return None;
    }
    let mut shares_in_time = candidates.iter().flat_map(|candidate| candidate.judged.values());
    if shares_in_time.any(|share| share.worst > 0.0) {
        return None;
    }
    candidates.iter().find_map(|candidate| candidate.cell.flow(candidate.flow)?.deadline_ms)
}

/// Ranks the candidates by their median delay, the shortest delay first. The means of `by_figure`, which are
/// shares of messages in time, stay as they are. The outcome stays, too, because nothing is usable. The
/// intervals of the differences are left out, because the shares are all zero.
fn rank_by_delay(kind: DelayKind, candidates: &[Candidate<'_>], by_figure: Ranking) -> Option<Ranking> {
    let negated_delays: Vec<BTreeMap<u64, f64>> =
        candidates.iter().map(|candidate| negated_delays(kind, candidate)).collect();
    let measure = Measure {
        tolerance: ALIKE_MS,
        floor: f64::NEG_INFINITY,
        possible: (-NEVER_MS, 0.0),
        cluster_gap: f64::INFINITY,
    };
    let by_delay = rank(&negated_delays, &[], &measure)?;
    let mut standings = by_figure.standings;
    for (standing, by_delay) in standings.iter_mut().zip(by_delay.standings) {
        standing.relation = by_delay.relation;
        standing.difference = None;
    }
    Some(Ranking { leader: by_delay.leader, standings, ..by_figure })
}

/// The median delay of each repetition in ms, with a minus sign, because [`rank`] takes the larger figure for
/// the better one.
fn negated_delays(kind: DelayKind, candidate: &Candidate<'_>) -> BTreeMap<u64, f64> {
    let metric = Metric::delay(kind, Quantile::P50);
    let mut delays = BTreeMap::new();
    for &repetition in candidate.judged.keys() {
        let run = candidate.cell.runs.iter().find(|run| run.repetition == repetition);
        let delay = run.and_then(|run| metric.of_run(run, candidate.flow));
        // A repetition that delivered nothing has no delay, and ranks behind all others.
        delays.insert(repetition, -delay.unwrap_or(NEVER_MS));
    }
    delays
}

/// How figures of this kind are compared. We chose the tolerances because no listener hears a difference of
/// less than 0.1 of MOS, a hundredth of the messages does not change a game, and nobody waits for the last
/// twentieth of a transfer's speed. Where there is no MOS, the coding is one of Opus that nobody measured. Of
/// Opus at 24 kb/s in super-wideband, which was measured, 0.4 % of the speech takes 0.08 of MOS.
pub(crate) fn measure(judged_by: JudgedBy, floor: f64, figures: &[BTreeMap<u64, f64>]) -> Measure {
    let possible = judged_by.possible();
    match judged_by {
        JudgedBy::Mos => Measure { tolerance: 0.1, floor, possible, cluster_gap: MOS_CLUSTER_GAP },
        JudgedBy::InTime => Measure { tolerance: 0.01, floor, possible, cluster_gap: SHARE_CLUSTER_GAP },
        JudgedBy::Heard => Measure { tolerance: 0.004, floor, possible, cluster_gap: SHARE_CLUSTER_GAP },
        JudgedBy::Goodput => {
            // A goodput has no upper bound, so its tolerances are shares of the best candidate's mean.
            let mut best = 0.0_f64;
            for goodputs in figures {
                let goodputs: Vec<f64> = goodputs.values().copied().collect();
                best = best.max(mean(&goodputs));
            }
            Measure { tolerance: 0.05 * best, floor, possible, cluster_gap: GOODPUT_CLUSTER_GAP * best }
        }
    }
}

/// The least difference between two clusters of one transport's figures `values`.
pub(crate) fn cluster_gap(judged_by: JudgedBy, values: &[f64]) -> f64 {
    match judged_by {
        JudgedBy::Mos => MOS_CLUSTER_GAP,
        JudgedBy::InTime | JudgedBy::Heard => SHARE_CLUSTER_GAP,
        JudgedBy::Goodput => GOODPUT_CLUSTER_GAP * mean(values),
    }
}

/// The mean of `values`, or 0 if there are none.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Two median delays in ms that differ by no more than this count as equal. We chose 1 ms because no player
/// feels a millisecond.
pub(super) const ALIKE_MS: f64 = 1.0;
/// The delay in ms of a repetition that delivered nothing. We chose an hour because it is longer than any
/// measured delay.
const NEVER_MS: f64 = 3_600_000.0;

/// The least difference between two clusters of opinion scores. We chose five times the tolerance, so that a
/// listener tells the two outcomes apart at once.
pub(crate) const MOS_CLUSTER_GAP: f64 = 0.5;
/// The least difference between two clusters of shares. We chose ten times the tolerance.
pub(crate) const SHARE_CLUSTER_GAP: f64 = 0.1;
/// The least difference between two clusters of goodputs, as a share of the mean goodput. We chose four
/// times the tolerance.
const GOODPUT_CLUSTER_GAP: f64 = 0.2;
