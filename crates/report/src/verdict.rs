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
mod receivers;
mod words;

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::figures::Scale;
use talkpath_measure::judge::Receiver;
use talkpath_measure::metrics::in_time;
use talkpath_measure::metrics::playout::{OTHER_WAIT, beyond_least_words};
use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::ranking::{Measure, Ranking, Standing, rank};
use talkpath_measure::summary::{
    Answer, AnswerKind, Comparison, Cure, Judged, JudgedBy, Summary, TwoOutcomes,
};

pub(crate) use self::cause::{Cause, wait};
pub use self::words::HOPELESS;
use self::words::Words;
use crate::display::discipline;
use crate::rated::barred;
use crate::view::{
    CellView, Condition, DelayKind, Metric, Quantile, RUN_KEY, TransportView, conditions, is_copy,
    is_numbered_copy, judged_flows, transport_key,
};

/// Cells that differ in one flow's transport only, and the answer there. Boxed, because most conditions of a
/// large sweep may have none, and it takes half a kilobyte.
pub(crate) type ConditionVerdict<'a> = (&'a Condition<'a>, Option<Box<Verdict>>);

/// One judged flow with its cells, grouped so that in a group only its transport differs.
pub(crate) struct FlowCells<'a> {
    pub flow: String,
    pub conditions: Vec<Condition<'a>>,
}

impl<'a> FlowCells<'a> {
    /// One for each judged flow.
    pub(crate) fn all(summary: &'a Summary) -> Vec<Self> {
        let of = |flow: String| Self { conditions: conditions(summary, &flow), flow };
        judged_flows(summary).into_iter().map(of).collect()
    }

    /// The conditions with their answers.
    pub(crate) fn judged(&'a self) -> Vec<ConditionVerdict<'a>> {
        self.conditions.iter().zip(judge(&self.conditions, &self.flow)).collect()
    }
}

/// How a judged figure is written.
pub(crate) struct Written {
    /// The two lines of its column's head.
    pub head: (&'static str, &'static str),
    /// From the figure to the number that is shown.
    pub scale: Scale,
    /// Directly after each number.
    unit: &'static str,
    /// Around one number or several.
    before: &'static str,
    after: &'static str,
}

/// How a figure of this kind is written.
pub(crate) const fn written(by: JudgedBy) -> Written {
    match by {
        JudgedBy::Mos => {
            Written { head: ("", "MOS"), scale: Scale::SCORE, unit: "", before: "MOS ", after: "" }
        }
        JudgedBy::InTime => {
            let head = ("in time", "%");
            Written { head, scale: Scale::PERCENT, unit: " %", before: "", after: " in time" }
        }
        JudgedBy::Goodput => {
            let head = ("goodput", "Mb/s");
            Written { head, scale: Scale::MBPS, unit: "", before: "goodput ", after: " Mb/s" }
        }
    }
}

impl Written {
    /// `4.38`
    pub(crate) fn number(&self, figure: f64) -> String {
        self.scale.text(Some(figure))
    }

    /// A difference of two figures, with its sign; what rounds to zero has none.
    pub(crate) fn signed(&self, difference: f64) -> String {
        let Scale { factor, decimals, .. } = self.scale;
        let zero = self.number(0.0);
        match format!("{:+.*}", decimals.unwrap_or(1), difference * factor) {
            text if text[1..] == zero => zero,
            text => text,
        }
    }

    /// `4.38 and 4.31` of `MOS 4.38 and 4.31`
    fn bare(&self, figure: f64) -> String {
        format!("{}{}", self.number(figure), self.unit)
    }

    /// `MOS 4.38 and 4.31`, of what [`Self::bare`] wrote.
    fn phrase(&self, figures: &str) -> String {
        format!("{}{figures}{}", self.before, self.after)
    }
}

/// The rule in one sentence, for a table's foot.
pub(crate) fn rule(by: JudgedBy) -> String {
    let (figure, tolerance) = match by {
        JudgedBy::Mos => ("MOS", "0.1"),
        JudgedBy::InTime => ("share in time", "1 point"),
        JudgedBy::Goodput => ("goodput", "5 % of the best"),
    };
    format!(
        "by the mean {figure}; alike if the 95 % interval of the difference lies within {tolerance}, else better \
         if it leaves out zero, else undecided"
    )
}

/// The answers of `summary`: who served each flow whose transport is swept best, for each group of cells that
/// differ in that alone. Nothing if there are not two transports with figures, or if the run is not valid.
pub fn comparisons(summary: &Summary) -> Vec<Comparison> {
    if !summary.valid {
        return Vec::new();
    }
    let mut comparisons = Vec::new();
    for FlowCells { flow, conditions } in FlowCells::all(summary) {
        for (condition, verdict) in conditions.iter().zip(judge(&conditions, &flow)) {
            let cells = condition.cells.iter().map(|cell| cell.cell.cell).collect();
            comparisons.extend(verdict.map(|verdict| Comparison {
                flow: flow.clone(),
                sweep: condition.common(&flow),
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
    let judged: Vec<_> = flows.iter().map(|flow| (flow.flow.as_str(), flow.judged())).collect();
    let each = || judged.iter().flat_map(|(flow, judged)| judged.iter().map(move |it| (*flow, it)));
    let verdicts = || each().filter_map(|(_, (_, verdict))| verdict.as_ref());
    let is_tried = verdicts().any(|verdict| verdict.is_cure);
    let unusable = each().find_map(|(flow, (condition, verdict))| {
        let verdict = verdict.as_ref().filter(|it| it.may_be_unusable() && !it.is_cure)?;
        let cell = &condition.cells[verdict.first];
        // A queue that only the slowest messages meet can be the cause of delays that vary.
        let (link, _) = cause::longest_wait(cell, cell.resolve(flow)?, Quantile::P99)?;
        Some(link.to_owned())
    });
    Lacking {
        repetitions: verdicts().any(|verdict| !verdict.is_settled()),
        cure_on: unusable.filter(|_| !is_tried),
    }
}

/// An answer, and where it stands among the condition's cells.
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
    /// Indices of the cells that stand out; none if nothing is usable, or the run is not valid.
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

    /// The two clusters of the cell `index` of the condition, if its repetitions fall into two.
    pub(crate) fn clusters(&self, index: usize) -> Option<Clusters> {
        let at = self.judged.iter().position(|judged| *judged == index)?;
        self.ranking.standings[at].clusters
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

/// The answers that are to be read: cells that are the cure of others speak within theirs.
pub(crate) fn answers<'a>(judged: &'a [ConditionVerdict<'a>]) -> Vec<(&'a Condition<'a>, &'a Verdict)> {
    let answers = judged.iter().filter_map(|(condition, verdict)| Some((*condition, verdict.as_deref()?)));
    answers.filter(|(_, verdict)| !verdict.is_cure).collect()
}

/// One transport.
struct Candidate<'a> {
    index: usize,
    cell: &'a CellView<'a>,
    view: TransportView,
    /// The judged flow: the worst copy, if there are copies.
    flow: &'a str,
    judged: BTreeMap<u64, Judged>,
}

impl Candidate<'_> {
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

/// Applies the rule to each condition; `None` where there are not two transports to compare.
pub(crate) fn judge(conditions: &[Condition<'_>], flow: &str) -> Vec<Option<Box<Verdict>>> {
    let mut verdicts: Vec<Option<Box<Verdict>>> =
        conditions.iter().map(|condition| judge_with_both(condition, flow).map(Box::new)).collect();
    let is_unusable = |it: &Verdict| it.may_be_unusable() && it.answer.cure.is_none();
    let unusable = (0..conditions.len()).filter(|&at| verdicts[at].as_deref().is_some_and(is_unusable));
    let unusable: Vec<usize> = unusable.collect();
    if unusable.is_empty() {
        return verdicts;
    }
    let answered = (0..conditions.len()).filter(|&at| verdicts[at].is_some());
    let cures = Cures::new(answered.map(|at| (at, conditions[at].common(flow))));
    for at in unusable {
        let Some((other, key)) = cures.of(&conditions[at].common(flow)) else { continue };
        let Some(with) = verdicts[other].as_mut() else { continue };
        with.is_cure = true;
        let standing = &with.ranking.standings[with.ranking.leader];
        let (best, mean, figure) =
            (with.answer.best.clone(), standing.mean, words::figure(with.by, with.floor, standing));
        let named = with.short_with_figures.clone();
        let is_usable = !with.is_unusable();
        let depends = with.other.as_ref().is_some_and(|other| other.is_unusable() == is_usable);
        let value = conditions[other].common(flow).remove(&key).unwrap_or_default();
        let neighbours = with.answer.neighbours.clone();
        let (mos, in_time) = match with.by {
            JudgedBy::Mos => (Some(mean), None),
            JudgedBy::InTime => (None, Some(mean)),
            // Any goodput is usable.
            JudgedBy::Goodput => (None, None),
        };
        let Some(verdict) = verdicts[at].as_mut() else { continue };
        if depends {
            let sentence = words::cure_depends(&key);
            verdict.answer.why = format!("{} {sentence}", verdict.answer.why);
            continue;
        }
        let sentence = words::cure(&key, &named, &figure, is_usable);
        if is_usable {
            verdict.answer.line = format!("{} {sentence}", verdict.answer.line);
            if !verdict.answer.why.is_empty() {
                verdict.answer.why = format!("Without it: {}", verdict.answer.why);
            }
            let neighbours = neighbours.map(|neighbours| words::with_cure(&key, &neighbours));
            let both = verdict.answer.neighbours.take().into_iter().chain(neighbours).collect::<Vec<_>>();
            verdict.answer.neighbours = (!both.is_empty()).then(|| both.join(" "));
            verdict.answer.cure = Some(Cure { change: [(key, value)].into(), best, mos, in_time });
        } else {
            verdict.answer.why = format!("{} {sentence}", verdict.answer.why);
        }
    }
    verdicts
}

/// The first condition with `fq_codel` on a link, by the key of that link's queue and all other keys with
/// their values: the cure of the conditions that differ from it in that queue alone.
struct Cures(BTreeMap<(String, String), usize>);

impl Cures {
    /// Of conditions, each with its place and what its cells have in common.
    fn new(conditions: impl Iterator<Item = (usize, BTreeMap<String, Value>)>) -> Self {
        let mut cures = BTreeMap::new();
        for (at, common) in conditions {
            for key in queues(&common).filter(|key| is_fq_codel(&common[*key])) {
                cures.entry((key.clone(), without(&common, key))).or_insert(at);
            }
        }
        Self(cures)
    }

    /// The first that cures what has this in `common`, and the key of the queue.
    fn of(&self, common: &BTreeMap<String, Value>) -> Option<(usize, String)> {
        let others = queues(common).filter(|key| !is_fq_codel(&common[*key])).filter_map(|key| {
            let at = self.0.get(&(key.clone(), without(common, key)))?;
            Some((*at, key.clone()))
        });
        others.min()
    }
}

/// The keys of links' queues.
fn queues(common: &BTreeMap<String, Value>) -> impl Iterator<Item = &String> {
    common.keys().filter(|key| key.ends_with(".queue"))
}

/// Whether the queue `value` is `fq_codel`, with whatever options.
fn is_fq_codel(value: &Value) -> bool {
    let kind = value.get("kind").unwrap_or(value).as_str().unwrap_or_default().replace('-', "_");
    discipline(&kind) == discipline("fq_codel")
}

/// Every key but `key` with its value, as one text.
fn without(common: &BTreeMap<String, Value>, key: &str) -> String {
    let rest: Vec<_> = common.iter().filter(|(other, _)| *other != key).collect();
    serde_json::to_string(&rest).unwrap_or_default()
}

/// With the receiver of the scenario, and if it names none with the second one, too.
fn judge_with_both(condition: &Condition<'_>, flow: &str) -> Option<Verdict> {
    let own = judge_alone(condition, flow, Receiver::Own)?;
    let other = judge_alone(condition, flow, Receiver::Other);
    Some(match other.filter(|other| other.judged == own.judged) {
        Some(other) => own.beside(other),
        None => own,
    })
}

fn judge_alone(condition: &Condition<'_>, flow: &str, receiver: Receiver) -> Option<Verdict> {
    if condition.cells.iter().any(CellView::is_of_several) {
        return None;
    }
    let cells = condition.cells.iter().enumerate();
    let candidates: Vec<_> = cells.filter_map(|(at, cell)| candidate(at, cell, flow, receiver)).collect();
    let first = candidates.first()?.judged.values().next()?;
    let (by, floor) = (first.by, first.floor);
    let figures: Vec<BTreeMap<u64, f64>> = candidates
        .iter()
        .map(|candidate| candidate.judged.iter().map(|(number, judged)| (*number, judged.worst)).collect())
        .collect();
    let barred: Vec<f64> = candidates.iter().map(|candidate| barred(&candidate.judged)).collect();
    let mut ranking = rank(&figures, &barred, &measure(by, floor, &figures))?;
    let too_late = too_late(by, &candidates);
    if too_late.is_some() {
        ranking = rank_by_delay(condition.delay_kind(flow), &candidates, ranking)?;
    }
    let named = ranking.best();
    // Where nothing is usable, scores of 1.00 and 1.01 are one: the first of them says why, not the leader.
    let cause = named.first().filter(|_| ranking.outcome == AnswerKind::Unusable).map(|&at| {
        let Candidate { cell, flow, .. } = candidates[at];
        (at, Cause::of(cell, flow, ranking.standings[at].is_barred()))
    });
    let words = Words {
        condition,
        flow,
        candidates: &candidates,
        ranking: &ranking,
        by,
        floor,
        cause: cause.as_ref(),
        too_late,
    };
    let answer = Answer {
        best: named.iter().map(|&at| candidates[at].view.kind.clone()).collect(),
        outcome: ranking.outcome,
        line: words.line(),
        why: words.why(),
        two_outcomes: two_outcomes(&candidates, &ranking),
        neighbours: words.neighbours(),
        more: ranking.more,
        cure: None,
        receivers: Vec::new(),
    };
    let stands_out = condition.is_valid && ranking.outcome != AnswerKind::Unusable;
    Some(Verdict {
        answer,
        short: words.short(),
        short_with_figures: words.short_with_figures(floor),
        named: named.iter().map(|&at| candidates[at].view.label.clone()).collect(),
        first: candidates[ranking.leader].index,
        best: named.iter().map(|&at| candidates[at].index).filter(|_| stands_out).collect(),
        by,
        floor,
        judged: candidates.iter().map(|candidate| candidate.index).collect(),
        cause: cause.map(|(_, cause)| cause),
        other: None,
        playout: candidates.first().and_then(|it| it.playout(receiver)).unwrap_or_default(),
        is_cure: false,
        is_valid: condition.is_valid,
        ranking,
    })
}

/// The deadline in ms within which not one message of any candidate came: their shares in time, all zero,
/// rank nothing.
fn too_late(by: JudgedBy, candidates: &[Candidate<'_>]) -> Option<f64> {
    let is_none = |it: &Candidate<'_>| it.judged.values().all(|judged| judged.worst <= 0.0);
    if by != JudgedBy::InTime || !candidates.iter().all(is_none) {
        return None;
    }
    candidates.iter().find_map(|it| it.cell.flow(it.flow)?.deadline_ms)
}

/// The candidates by their median delay, the least first. Their share in time stays what it is; nothing is
/// usable, and no interval of it says anything.
fn rank_by_delay(kind: DelayKind, candidates: &[Candidate<'_>], ranking: Ranking) -> Option<Ranking> {
    let metric = Metric::Delay(kind, Quantile::P50);
    let delays = |it: &Candidate<'_>| -> BTreeMap<u64, f64> {
        let of = |repetition: &u64| {
            let run = it.cell.runs.iter().find(|run| run.repetition == *repetition);
            // What brought nothing is behind all others.
            (*repetition, -run.and_then(|run| metric.of_run(run, it.flow)).unwrap_or(NEVER_MS))
        };
        it.judged.keys().map(of).collect()
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
    let of = |(it, standing): (&Candidate<'_>, &Standing)| {
        let Clusters { low, high, low_share } = standing.clusters?;
        let (transport, cell) = (it.view.kind.clone(), it.cell.cell.cell);
        Some(TwoOutcomes { transport, cell, low, high, low_share })
    };
    candidates.iter().zip(&ranking.standings).filter_map(of).collect()
}

/// `None` if the flow is absent, or not judged in any repetition.
fn candidate<'a>(
    index: usize,
    cell: &'a CellView<'a>,
    flow: &str,
    receiver: Receiver,
) -> Option<Candidate<'a>> {
    let judged = cell.judged_with(flow, receiver);
    if judged.is_empty() {
        return None;
    }
    Some(Candidate { index, cell, view: cell.transport(flow), flow: cell.resolve(flow)?, judged })
}

/// Tolerances and gaps are chosen: nobody hears less than 0.1 of MOS, and half a step of MOS, or a tenth of
/// the messages, makes another call or game. Nobody waits for the last twentieth of a transfer's speed, and a
/// fifth makes another transfer. Of what is possible only this is known of a goodput: it is not below zero.
fn measure(by: JudgedBy, floor: f64, figures: &[BTreeMap<u64, f64>]) -> Measure {
    let possible = by.possible();
    match by {
        JudgedBy::Goodput => {
            let mean = |of: &BTreeMap<u64, f64>| mean(of.values().copied());
            let best = figures.iter().map(mean).fold(0.0, f64::max);
            Measure { tolerance: 0.05 * best, floor, possible, cluster_gap: GOODPUT_CLUSTER_GAP * best }
        }
        JudgedBy::Mos => Measure { tolerance: 0.1, floor, possible, cluster_gap: MOS_CLUSTER_GAP },
        JudgedBy::InTime => Measure { tolerance: 0.01, floor, possible, cluster_gap: IN_TIME_CLUSTER_GAP },
    }
}

impl Condition<'_> {
    /// Round trip if any of the cells has one.
    pub(crate) fn delay_kind(&self, flow: &str) -> DelayKind {
        let kinds = self.cells.iter().filter_map(|cell| Some(cell.delay_kind(cell.resolve(flow)?)));
        kinds.min().unwrap_or(DelayKind::OneWay)
    }

    /// What `flow` is judged by, if it is in any of the cells.
    pub(crate) fn judged_by(&self, flow: &str) -> Option<JudgedBy> {
        self.cells.iter().find_map(|cell| Some(cell.judged(flow).values().next()?.by))
    }

    /// The flows beside `flow`, in the first cell's order.
    pub(crate) fn other_flows(&self, flow: &str) -> Vec<String> {
        let names = self.cells.first().into_iter().flat_map(CellView::names);
        names.filter(|name| *name != flow && !is_copy(name, flow)).cloned().collect()
    }

    /// The same, with the copies of a transfer as one.
    pub(crate) fn beside(&self, flow: &str) -> Vec<Beside> {
        let mut beside: Vec<Beside> = Vec::new();
        for name in self.other_flows(flow) {
            let it = self.copies_with(&name).unwrap_or(Beside::Flow(name));
            if !beside.contains(&it) {
                beside.push(it);
            }
        }
        beside
    }

    /// The copies of a transfer among which the flow `name` is; `None` if it is no copy.
    fn copies_with(&self, name: &str) -> Option<Beside> {
        let run = self.cells.first()?.run()?;
        let mut groups = run.groups.iter().filter(|(_, group)| !group.summed_up);
        let (group, copies) = groups.find(|(group, _)| is_numbered_copy(name, group))?;
        let is_transfer = matches!(self.judged_by(name), Some(JudgedBy::Goodput) | None);
        is_transfer.then(|| Beside::Copies { group: group.clone(), flows: copies.flows })
    }

    /// The sweep's keys and values that the cells have in common.
    pub(crate) fn common(&self, flow: &str) -> BTreeMap<String, Value> {
        self.pairs(flow).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The same without a copy of them.
    pub(crate) fn pairs(&self, flow: &str) -> impl Iterator<Item = (&String, &Value)> {
        let own_keys = [transport_key(flow), RUN_KEY.to_owned()];
        let first = self.cells.first().map(|cell| &cell.cell.sweep);
        first.into_iter().flatten().filter(move |(key, _)| !own_keys.contains(key))
    }
}

/// What runs beside a compared flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Beside {
    /// A flow.
    Flow(String),
    /// All copies of a transfer.
    Copies {
        /// The name of the flow that was copied.
        group: String,
        /// How many there are.
        flows: u64,
    },
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
