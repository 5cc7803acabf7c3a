//! The cure of an answer: the same cells with `fq_codel` on a link.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::summary::{Cure, JudgedBy};

use super::Verdict;
use super::cause::link_words;
use super::words;
use crate::condition::Condition;
use crate::display::discipline;

/// Adds to each answer without a usable transport what the same cells come to with `fq_codel` on a link, if
/// they ran.
pub(super) fn add_cures(verdicts: &mut [Option<Box<Verdict>>], conditions: &[Condition<'_>], flow: &str) {
    let unusable: Vec<usize> = (0..verdicts.len())
        .filter(|&at| verdicts[at].as_deref().is_some_and(Verdict::may_be_unusable))
        .collect();
    if unusable.is_empty() {
        return;
    }
    let answered = (0..verdicts.len()).filter(|&at| verdicts[at].is_some());
    let queues = FairQueues::new(answered.map(|at| (at, conditions[at].common(flow))));
    for at in unusable {
        let Some(fair) = queues.find(&conditions[at].common(flow)) else { continue };
        let value = conditions[fair.condition].common(flow).remove(&fair.key).unwrap_or_default();
        let Some(with_cure) = verdicts[fair.condition].as_deref_mut() else { continue };
        with_cure.is_cure = true;
        let cured = Cured::new(with_cure, fair.key, value);
        if let Some(verdict) = verdicts[at].as_deref_mut() {
            cured.add_to(verdict);
        }
    }
}

/// What cells come to with the cure.
struct Cured {
    /// The key of the link's queue.
    key: String,
    /// What the queue is there.
    value: Value,
    outcome: CuredOutcome,
    sentence: String,
    /// The transports that are best.
    best: Vec<String>,
    /// Of the best: its score, if the flow is a call.
    mos: Option<f64>,
    /// Of the best: its share in time, if the flow is judged by that.
    in_time: Option<f64>,
    /// What the flows beside it get.
    neighbours: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CuredOutcome {
    Usable,
    Unusable,
    /// One of two receivers alone makes the call usable.
    DependsOnReceiver,
}

impl Cured {
    fn new(with_cure: &Verdict, key: String, value: Value) -> Self {
        let Verdict { ranking, by, floor, .. } = with_cure;
        let leader = &ranking.standings[ranking.leader];
        let is_unusable = with_cure.is_unusable();
        let differs = |other: &Verdict| other.is_unusable() != is_unusable;
        let outcome = match with_cure.other.as_deref() {
            Some(other) if differs(other) => CuredOutcome::DependsOnReceiver,
            _ if is_unusable => CuredOutcome::Unusable,
            _ => CuredOutcome::Usable,
        };
        let on_link = format!("With fq_codel on {}", queue_words(&key));
        let sentence = match outcome {
            CuredOutcome::Usable => {
                format!("{on_link} it is usable, best over {}.", with_cure.short_with_figures)
            }
            CuredOutcome::Unusable => {
                format!("{on_link} it is not usable: {} at best.", words::figure(*by, *floor, leader))
            }
            CuredOutcome::DependsOnReceiver => format!("{on_link} it depends on the receiver."),
        };
        let neighbours = with_cure.answer.neighbours.as_ref();
        let neighbours = neighbours.map(|got| got.replace("Beside ", &format!("{on_link}, beside ")));
        Self {
            key,
            value,
            outcome,
            sentence,
            best: with_cure.answer.best.clone(),
            mos: (*by == JudgedBy::Mos).then_some(leader.mean),
            in_time: (*by == JudgedBy::InTime).then_some(leader.mean),
            neighbours,
        }
    }

    fn add_to(self, verdict: &mut Verdict) {
        let answer = &mut verdict.answer;
        if self.outcome != CuredOutcome::Usable {
            answer.why = format!("{} {}", answer.why, self.sentence);
            return;
        }
        answer.line = format!("{} {}", answer.line, self.sentence);
        if !answer.why.is_empty() {
            answer.why = format!("Without it: {}", answer.why);
        }
        let without_and_with: Vec<String> =
            answer.neighbours.take().into_iter().chain(self.neighbours).collect();
        answer.neighbours = (!without_and_with.is_empty()).then(|| without_and_with.join(" "));
        answer.cure = Some(Cure {
            change: [(self.key, self.value)].into(),
            best: self.best,
            mos: self.mos,
            in_time: self.in_time,
        });
    }
}

/// The link whose queue is at `key`, in a sentence: `the uplink`.
fn queue_words(key: &str) -> String {
    link_words(key.trim_end_matches(".queue").rsplit('.').next().unwrap_or(key))
}

/// The first condition with `fq_codel` on a link, by the key of that link's queue and all other keys with
/// their values: the cure of the conditions that differ from it in that queue alone.
struct FairQueues(BTreeMap<(String, String), usize>);

/// A condition with `fq_codel` on a link. In their order the first cure is taken.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FairQueue {
    condition: usize,
    /// The key of the link's queue.
    key: String,
}

impl FairQueues {
    /// Of conditions, each with its place and what its cells have in common.
    fn new(conditions: impl Iterator<Item = (usize, BTreeMap<String, Value>)>) -> Self {
        let mut queues = BTreeMap::new();
        for (at, common) in conditions {
            for key in queue_keys(&common).filter(|key| is_fq_codel(&common[*key])) {
                queues.entry((key.clone(), without(&common, key))).or_insert(at);
            }
        }
        Self(queues)
    }

    /// The first that cures cells with these keys in `common`.
    fn find(&self, common: &BTreeMap<String, Value>) -> Option<FairQueue> {
        let others = queue_keys(common).filter(|key| !is_fq_codel(&common[*key])).filter_map(|key| {
            let condition = *self.0.get(&(key.clone(), without(common, key)))?;
            Some(FairQueue { condition, key: key.clone() })
        });
        others.min()
    }
}

/// The keys of links' queues.
fn queue_keys(common: &BTreeMap<String, Value>) -> impl Iterator<Item = &String> {
    common.keys().filter(|key| key.ends_with(".queue"))
}

/// Whether the queue `value` is `fq_codel`, with whatever options.
fn is_fq_codel(value: &Value) -> bool {
    let kind = value.get("kind").unwrap_or(value).as_str().unwrap_or_default().replace('-', "_");
    discipline(&kind) == discipline("fq_codel")
}

/// Every key but `key` with its value, as one text.
fn without(common: &BTreeMap<String, Value>, key: &str) -> String {
    let others: Vec<_> = common.iter().filter(|(other, _)| *other != key).collect();
    serde_json::to_string(&others).unwrap_or_default()
}
