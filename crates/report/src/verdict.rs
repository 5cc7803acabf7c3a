//! Which transport served a flow best, and why.
//!
//! # The rule
//!
//! A flow is judged in each repetition by one figure (`measure::judge`): a call by its mean opinion score,
//! any other flow on a clock by its share of messages in time; the worse direction or copy counts.
//! `measure::ranking` holds the transports against each other, repetition by repetition, and says whether one
//! is best, several serve alike, or the repetitions do not decide. If the best is below the floor, nothing is
//! usable: the answer names the cause, and the cure if the same run tried one: the same cells with `fq_codel`
//! on a link.
//!
//! A call whose scenario names no playout is judged with two receivers. If the answers differ, in whether
//! something is usable or in what is best, that is the answer.
//!
//! The tolerances are those of docs/reference/metrics.md, "Which transport is best".

mod cause;
mod cure;
mod receivers;
mod words;
mod writing;

use std::collections::BTreeMap;

use talkpath_measure::judge::Receiver;
use talkpath_measure::metrics::in_time;
use talkpath_measure::metrics::playout::{OTHER_WAIT, beyond_least_words};
use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::ranking::{Measure, Ranking, Standing, rank};
use talkpath_measure::summary::{Answer, AnswerKind, Comparison, Judged, JudgedBy, Summary, TwoOutcomes};

pub(crate) use self::cause::{Cause, wait};
pub use self::words::HOPELESS;
pub(crate) use self::writing::{Written, rule, written};
use crate::condition::{Condition, conditions};
use crate::rated::barred;
use crate::view::{CellView, DelayKind, Metric, Quantile, TransportView, is_copy, judged_flows};

/// Cells that differ in one flow's transport only, and the answer there.
pub(crate) struct ConditionVerdict<'a> {
    pub condition: &'a Condition<'a>,
    /// `None` where there are not two transports to compare. Boxed, because most conditions of a large sweep
    /// may have none, and it takes half a kilobyte.
    pub verdict: Option<Box<Verdict>>,
}

/// One judged flow, and the answer under each condition.
pub(crate) struct JudgedFlow<'a> {
    pub flow: &'a str,
    pub conditions: Vec<ConditionVerdict<'a>>,
}

/// An answer that is to be read, and the cells that it is of.
pub(crate) struct ConditionAnswer<'a> {
    pub condition: &'a Condition<'a>,
    pub verdict: &'a Verdict,
}

/// One judged flow with its cells, grouped so that in a group only its transport differs.
pub(crate) struct FlowCells<'a> {
    pub flow: String,
    pub conditions: Vec<Condition<'a>>,
}

impl<'a> FlowCells<'a> {
    /// One for each judged flow.
    pub(crate) fn all(summary: &'a Summary) -> Vec<Self> {
        let cells = |flow: String| Self { conditions: conditions(summary, &flow), flow };
        judged_flows(summary).into_iter().map(cells).collect()
    }

    /// The conditions with their answers.
    pub(crate) fn judged(&'a self) -> JudgedFlow<'a> {
        let verdicts = judge(&self.conditions, &self.flow);
        let conditions = self.conditions.iter().zip(verdicts);
        let conditions = conditions.map(|(condition, verdict)| ConditionVerdict { condition, verdict });
        JudgedFlow { flow: &self.flow, conditions: conditions.collect() }
    }
}

/// The answers of `summary`: who served each flow whose transport is swept best, for each group of cells that
/// differ in that alone. Nothing if there are not two transports with figures, or if the run is not valid.
pub fn comparisons(summary: &Summary) -> Vec<Comparison> {
    if !summary.valid {
        return Vec::new();
    }
    let mut comparisons = Vec::new();
    for cells in FlowCells::all(summary) {
        let JudgedFlow { flow, conditions } = cells.judged();
        for ConditionVerdict { condition, verdict } in conditions {
            let cells = condition.cells.iter().map(|cell| cell.cell.cell).collect();
            comparisons.extend(verdict.map(|verdict| Comparison {
                flow: flow.to_owned(),
                sweep: condition.common(flow),
                cells,
                answer: verdict.answer,
            }));
        }
    }
    comparisons
}

/// What a run that goes on until it has an answer still lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// More repetitions: an answer is not settled.
    pub repetitions: bool,
    /// The link on which `fq_codel` is to be tried: nothing is usable, and of the links on which the flow's
    /// packets can have waited, packets wait there longest.
    pub cure_on: Option<String>,
}

/// What `summary` lacks to be an answer.
pub fn lacking(summary: &Summary) -> Lacking {
    let flows = FlowCells::all(summary);
    let judged: Vec<JudgedFlow<'_>> = flows.iter().map(FlowCells::judged).collect();
    let verdicts =
        || judged.iter().flat_map(|judged| &judged.conditions).filter_map(|it| it.verdict.as_ref());
    let is_tried = verdicts().any(|verdict| verdict.is_cure);
    let cure_on = judged.iter().find_map(JudgedFlow::longest_queue_where_unusable);
    Lacking {
        repetitions: verdicts().any(|verdict| !verdict.is_settled()),
        cure_on: cure_on.filter(|_| !is_tried).map(str::to_owned),
    }
}

impl JudgedFlow<'_> {
    /// The answers that are to be read: cells that are the cure of others speak within theirs.
    pub(crate) fn answers(&self) -> Vec<ConditionAnswer<'_>> {
        let answers = self.conditions.iter().filter_map(|judged| {
            let verdict = judged.verdict.as_deref()?;
            Some(ConditionAnswer { condition: judged.condition, verdict })
        });
        answers.filter(|answer| !answer.verdict.is_cure).collect()
    }

    /// Under the first condition where nothing may be usable, the link on which the flow's packets wait
    /// longest.
    fn longest_queue_where_unusable(&self) -> Option<&str> {
        self.conditions.iter().find_map(|ConditionVerdict { condition, verdict }| {
            let verdict = verdict.as_ref().filter(|verdict| verdict.may_be_unusable() && !verdict.is_cure)?;
            let cell = &condition.cells[verdict.first];
            // A queue that only the slowest messages meet can be the cause of delays that vary.
            let (link, _) = cause::longest_wait(cell, cell.resolve(self.flow)?, Quantile::P99)?;
            Some(link)
        })
    }
}

/// The answer for one condition, with the cells that it ranks.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub answer: Answer,
    /// The same by name alone: `UDP`, or `UDP or TCP`.
    pub short: String,
    /// The same with the figure of each: `UDP (MOS 4.37) or TCP (4.36)`.
    short_with_figures: String,
    /// The names that the answer gives, for people.
    pub named: Vec<String>,
    /// Index of the leader's cell, from which the differences of the others are stated.
    pub first: usize,
    /// Indices of the best cells; none if nothing is usable, or the run is not valid.
    pub best: Vec<usize>,
    /// What the flow is judged by, and the floor.
    pub by: JudgedBy,
    pub floor: f64,
    /// Of the cells in [`Self::judged`].
    pub ranking: Ranking,
    /// Indices of the cells that were ranked.
    pub judged: Vec<usize>,
    /// If nothing is usable.
    pub cause: Option<Cause>,
    /// The same with the second receiver, if all cells have one.
    pub other: Option<Box<Self>>,
    /// How the receiver of these figures plays.
    playout: String,
    /// Whether these cells are the cure of other ones.
    pub is_cure: bool,
    /// Whether the run is; else there is no answer.
    pub is_valid: bool,
}

impl Verdict {
    /// The answer, why, and what it did to the neighbours, each in a line.
    pub(crate) fn lines(&self) -> Vec<&str> {
        if !self.is_valid {
            return vec![NOT_VALID];
        }
        let Answer { line, why, neighbours, .. } = &self.answer;
        let lines = [Some(line), Some(why), neighbours.as_ref()];
        lines.into_iter().flatten().map(String::as_str).filter(|line| !line.is_empty()).collect()
    }

    /// The standing of the condition's cell `index`; `None` if it was not ranked.
    pub(crate) fn standing(&self, index: usize) -> Option<&Standing> {
        let at = self.judged.iter().position(|judged| *judged == index)?;
        self.ranking.standings.get(at)
    }

    /// The two clusters of the cell `index` of the condition, if its repetitions fall into two.
    pub(crate) fn clusters(&self, index: usize) -> Option<Clusters> {
        self.standing(index)?.clusters
    }

    /// The answer by name alone.
    pub(crate) fn summed_up(&self) -> String {
        if !self.is_valid {
            return "no answer, the run is not valid".to_owned();
        }
        match self.answer.outcome {
            AnswerKind::Distinct => self.short.clone(),
            AnswerKind::Alike => format!("{}, alike", self.short),
            AnswerKind::Undecided => format!("undecided: {}", self.short),
            AnswerKind::Unusable => format!("nothing usable, the least bad is {}", self.short),
            AnswerKind::DependsOnReceiver => format!("depends on the receiver: {}", self.short),
        }
    }
}

/// What is to be said where there are not two transports to compare: which one serves, and which got nothing
/// through.
pub(crate) fn no_answer(conditions: &[Condition<'_>], flow: &str) -> String {
    let cells = || conditions.iter().flat_map(|condition| &condition.cells);
    let serves = cells().filter(|cell| !cell.is_silent(flow) && !cell.judged(flow).is_empty());
    let serves: Vec<&CellView<'_>> = serves.collect();
    let silent = words::silent(cells(), flow).map_or_else(String::new, |silent| format!(" {silent}"));
    let [only] = &serves[..] else {
        return match serves.is_empty() && !silent.is_empty() {
            true => format!("No answer:{silent}"),
            false => format!("No answer: there are not two transports with figures to judge.{silent}"),
        };
    };
    let judged = only.judged(flow);
    let Some(first) = judged.values().next() else { return String::new() };
    let figure = mean(judged.values().map(|judged| judged.worst).collect::<Vec<_>>().into_iter());
    let written = written(first.by);
    let figure = written.phrase(&written.bare(figure));
    let usable = match judged.values().all(Judged::is_usable) {
        true => "is usable",
        false => "is not usable in every repetition",
    };
    let name = only.transport(flow).label;
    format!("Nothing to compare: {name} alone has figures, and {usable}: {figure}.{silent}")
}

/// Applies the rule to each condition; `None` where there are not two transports to compare.
pub(crate) fn judge(conditions: &[Condition<'_>], flow: &str) -> Vec<Option<Box<Verdict>>> {
    let mut verdicts: Vec<Option<Box<Verdict>>> =
        conditions.iter().map(|condition| judge_with_both(condition, flow).map(Box::new)).collect();
    cure::add_cures(&mut verdicts, conditions, flow);
    verdicts
}

/// With the receiver of the scenario, and if it names none with the second one, too.
fn judge_with_both(condition: &Condition<'_>, flow: &str) -> Option<Verdict> {
    let with = |receiver| Some(Judgement::new(condition, flow, receiver)?.verdict());
    let own = with(Receiver::Own)?;
    Some(match with(Receiver::Other).filter(|other| other.judged == own.judged) {
        Some(other) => own.beside(other),
        None => own,
    })
}

/// The transports of one condition, ranked with one receiver.
struct Judgement<'a> {
    condition: &'a Condition<'a>,
    flow: &'a str,
    receiver: Receiver,
    candidates: Vec<Candidate<'a>>,
    /// Of the candidates.
    ranking: Ranking,
    by: JudgedBy,
    floor: f64,
    /// Why nothing is usable, if so.
    blamed: Option<Blamed>,
    /// The deadline in ms within which no candidate brought a single message: they are ranked by their delay.
    too_late: Option<f64>,
}

/// One transport.
struct Candidate<'a> {
    /// Of its cell in the condition.
    index: usize,
    cell: &'a CellView<'a>,
    view: TransportView,
    /// The judged flow: the worst copy, if there are copies.
    flow: &'a str,
    judged: BTreeMap<u64, Judged>,
}

/// The cause that nothing is usable, by the figures of one candidate.
struct Blamed {
    /// Index of the candidate.
    candidate: usize,
    cause: Cause,
}

impl<'a> Judgement<'a> {
    /// `None` where there are not two transports to compare.
    fn new(condition: &'a Condition<'a>, flow: &'a str, receiver: Receiver) -> Option<Self> {
        if condition.cells.iter().any(CellView::is_of_several) {
            return None;
        }
        let cells = condition.cells.iter().enumerate();
        let candidates: Vec<Candidate<'_>> =
            cells.filter_map(|(index, cell)| Candidate::new(index, cell, flow, receiver)).collect();
        let Judged { by, floor, .. } = *candidates.first()?.judged.values().next()?;
        let by_figure = rank_by_figure(by, floor, &candidates)?;
        let too_late = too_late(by, &candidates);
        let ranking = match too_late {
            Some(_) => rank_by_delay(condition.delay_kind(flow), &candidates, by_figure)?,
            None => by_figure,
        };
        let blamed = Blamed::new(&candidates, &ranking);
        Some(Self { condition, flow, receiver, candidates, ranking, by, floor, blamed, too_late })
    }

    fn verdict(self) -> Verdict {
        let best = self.ranking.best();
        let of_best = |text: fn(&Candidate<'_>) -> String| -> Vec<String> {
            best.iter().map(|&at| text(&self.candidates[at])).collect()
        };
        let answer = Answer {
            best: of_best(|candidate| candidate.view.kind.clone()),
            outcome: self.ranking.outcome,
            line: self.line(),
            why: self.why(),
            two_outcomes: two_outcomes(&self.candidates, &self.ranking),
            neighbours: self.neighbours(),
            more: self.ranking.more,
            cure: None,
            receivers: Vec::new(),
        };
        let stands_out = self.condition.is_valid && self.ranking.outcome != AnswerKind::Unusable;
        let playout = self.candidates.first().and_then(|candidate| candidate.playout(self.receiver));
        Verdict {
            answer,
            short: self.short(),
            short_with_figures: self.short_with_figures(),
            named: of_best(|candidate| candidate.view.label.clone()),
            first: self.candidates[self.ranking.leader].index,
            best: best.iter().map(|&at| self.candidates[at].index).filter(|_| stands_out).collect(),
            by: self.by,
            floor: self.floor,
            judged: self.candidates.iter().map(|candidate| candidate.index).collect(),
            cause: self.blamed.map(|blamed| blamed.cause),
            other: None,
            playout: playout.unwrap_or_default(),
            is_cure: false,
            is_valid: self.condition.is_valid,
            ranking: self.ranking,
        }
    }
}

impl<'a> Candidate<'a> {
    /// `None` if the flow is absent, or not judged in any repetition.
    fn new(index: usize, cell: &'a CellView<'a>, flow: &str, receiver: Receiver) -> Option<Self> {
        let judged = cell.judged_with(flow, receiver);
        if judged.is_empty() {
            return None;
        }
        Some(Self { index, cell, view: cell.transport(flow), flow: cell.resolve(flow)?, judged })
    }

    /// How the receiver plays the call.
    fn playout(&self, receiver: Receiver) -> Option<String> {
        let copies = |(name, _): &(&String, _)| *name == self.flow || is_copy(name, self.flow);
        let mut flows = self.cell.run()?.flows.iter().filter(copies);
        let call = flows.find_map(|(_, flow)| flow.call.as_deref());
        Some(match receiver {
            // Of copies that are summed up nobody knows more than what is the rule.
            Receiver::Own => call.map_or("adaptive", |call| &call.playout).to_owned(),
            Receiver::Other => {
                let other = call.and_then(|call| call.other_receiver.as_ref());
                other.map_or_else(|| beyond_least_words(OTHER_WAIT), |other| other.playout.clone())
            }
        })
    }
}

impl Blamed {
    /// `None` if something is usable.
    fn new(candidates: &[Candidate<'_>], ranking: &Ranking) -> Option<Self> {
        if ranking.outcome != AnswerKind::Unusable {
            return None;
        }
        // Scores of 1.00 and 1.01 count as equal: the first such candidate gives the cause, not the leader.
        let at = *ranking.best().first()?;
        let Candidate { cell, flow, .. } = &candidates[at];
        let cause = Cause::new(cell, flow, ranking.standings[at].is_barred());
        Some(Self { candidate: at, cause })
    }
}

fn rank_by_figure(by: JudgedBy, floor: f64, candidates: &[Candidate<'_>]) -> Option<Ranking> {
    let figures = |candidate: &Candidate<'_>| -> BTreeMap<u64, f64> {
        candidate.judged.iter().map(|(repetition, judged)| (*repetition, judged.worst)).collect()
    };
    let figures: Vec<BTreeMap<u64, f64>> = candidates.iter().map(figures).collect();
    let barred: Vec<f64> = candidates.iter().map(|candidate| barred(&candidate.judged)).collect();
    rank(&figures, &barred, &measure(by, floor, &figures))
}

/// The deadline in ms within which not one message of any candidate came: their shares in time, all zero,
/// rank nothing.
fn too_late(by: JudgedBy, candidates: &[Candidate<'_>]) -> Option<f64> {
    let is_none = |candidate: &Candidate<'_>| candidate.judged.values().all(|judged| judged.worst <= 0.0);
    if by != JudgedBy::InTime || !candidates.iter().all(is_none) {
        return None;
    }
    candidates.iter().find_map(|candidate| candidate.cell.flow(candidate.flow)?.deadline_ms)
}

/// The candidates by their median delay, the least first. Their share in time stays what it is; nothing is
/// usable, and an interval of that share would say nothing.
fn rank_by_delay(kind: DelayKind, candidates: &[Candidate<'_>], ranking: Ranking) -> Option<Ranking> {
    let metric = Metric::Delay(kind, Quantile::P50);
    let delays = |candidate: &Candidate<'_>| -> BTreeMap<u64, f64> {
        let quickness = |repetition: &u64| {
            let run = candidate.cell.runs.iter().find(|run| run.repetition == *repetition);
            // What brought nothing is behind all others.
            let delay = run.and_then(|run| metric.of_run(run, candidate.flow)).unwrap_or(NEVER_MS);
            (*repetition, -delay)
        };
        candidate.judged.keys().map(quickness).collect()
    };
    let delays: Vec<BTreeMap<u64, f64>> = candidates.iter().map(delays).collect();
    let measure = Measure {
        tolerance: ALIKE_MS,
        floor: f64::NEG_INFINITY,
        possible: (-NEVER_MS, 0.0),
        cluster_gap: f64::INFINITY,
    };
    let by_delay = rank(&delays, &[], &measure)?;
    let standings = by_delay.standings.into_iter().zip(ranking.standings);
    let standings = standings.map(|(by_delay, share)| Standing {
        relation: by_delay.relation,
        difference: None,
        ..share
    });
    Some(Ranking { leader: by_delay.leader, standings: standings.collect(), ..ranking })
}

/// The candidates whose repetitions fall into two clusters.
fn two_outcomes(candidates: &[Candidate<'_>], ranking: &Ranking) -> Vec<TwoOutcomes> {
    let outcomes = |(candidate, standing): (&Candidate<'_>, &Standing)| {
        let Clusters { low, high, low_share } = standing.clusters?;
        let (transport, cell) = (candidate.view.kind.clone(), candidate.cell.cell.cell);
        Some(TwoOutcomes { transport, cell, low, high, low_share })
    };
    candidates.iter().zip(&ranking.standings).filter_map(outcomes).collect()
}

/// Tolerances and gaps are chosen: nobody hears less than 0.1 of MOS, and half a step of MOS, or a tenth of
/// the messages, makes another call or game. Nobody waits for the last twentieth of a transfer's speed, and a
/// fifth makes another transfer. A goodput has no bound but zero.
fn measure(by: JudgedBy, floor: f64, figures: &[BTreeMap<u64, f64>]) -> Measure {
    let possible = by.possible();
    match by {
        JudgedBy::Goodput => {
            let mean = |figures: &BTreeMap<u64, f64>| mean(figures.values().copied());
            let best = figures.iter().map(mean).fold(0.0, f64::max);
            Measure { tolerance: 0.05 * best, floor, possible, cluster_gap: GOODPUT_CLUSTER_GAP * best }
        }
        JudgedBy::Mos => Measure { tolerance: 0.1, floor, possible, cluster_gap: MOS_CLUSTER_GAP },
        JudgedBy::InTime => Measure { tolerance: 0.01, floor, possible, cluster_gap: IN_TIME_CLUSTER_GAP },
    }
}

/// Chosen: no player feels a millisecond.
const ALIKE_MS: f64 = 1.0;
/// Chosen: an hour, beyond any delay.
const NEVER_MS: f64 = 3_600_000.0;

/// The least difference between two clusters of opinion scores, and of shares in time. Chosen: five and ten
/// times what counts as alike, so that a listener tells one from the other at once.
pub(crate) const MOS_CLUSTER_GAP: f64 = 0.5;
pub(crate) const IN_TIME_CLUSTER_GAP: f64 = 0.1;
/// The same of goodputs, as a share of the transport's mean.
const GOODPUT_CLUSTER_GAP: f64 = 0.2;

/// The least difference between two clusters of one transport's figures `values`.
pub(crate) fn cluster_gap(by: JudgedBy, values: &[f64]) -> f64 {
    match by {
        JudgedBy::Mos => MOS_CLUSTER_GAP,
        JudgedBy::InTime => IN_TIME_CLUSTER_GAP,
        JudgedBy::Goodput => GOODPUT_CLUSTER_GAP * mean(values.iter().copied()),
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

/// The answer of a run that is not valid.
const NOT_VALID: &str = "No answer: this run is not valid, and the lines that begin with \"invalid\" say why. Remove the reason and \
                         measure again. The figures below do not say which transport is best.";

/// Until when a message is in time, in ms.
pub(crate) fn limit_ms(round_trip: bool) -> f64 {
    in_time::limit(round_trip).as_millis_f64()
}

#[cfg(test)]
mod receiver_tests;
#[cfg(test)]
mod sentence_tests;
#[cfg(test)]
mod tests;
