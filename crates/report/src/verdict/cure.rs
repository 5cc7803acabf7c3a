//! Adds the result of a cure to an answer. A cure is a condition that differs from an unusable one in a
//! link's queue only, which is `fq_codel` in the cure.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::summary::{Cure, JudgedBy};

use super::Verdict;
use super::cause::link_words;
use super::words;
use crate::condition::Condition;
use crate::display::discipline;

/// Adds the result of the cure to each answer that has no usable transport, if the cure was run. The cells of
/// the cure are marked with [`Verdict::is_cure`].
pub(super) fn add_cures(verdicts: &mut [Option<Box<Verdict>>], conditions: &[Condition<'_>], flow: &str) {
    let is_unusable = |verdict: &Option<Box<Verdict>>| match verdict {
        Some(verdict) => verdict.may_be_unusable(),
        None => false,
    };
    let unusable: Vec<usize> = (0..verdicts.len()).filter(|&index| is_unusable(&verdicts[index])).collect();
    if unusable.is_empty() {
        return;
    }
    let cures = CureIndex::new(verdicts, conditions, flow);
    for condition in unusable {
        let Some(cure) = cures.find(&conditions[condition].common(flow)) else { continue };
        let queue = conditions[cure.condition].common(flow).remove(&cure.queue_key).unwrap_or_default();
        let Some(verdict_of_cure) = verdicts[cure.condition].as_deref_mut() else { continue };
        verdict_of_cure.is_cure = true;
        let result = CureResult::new(verdict_of_cure, cure.queue_key, queue);
        if let Some(verdict) = verdicts[condition].as_deref_mut() {
            result.add_to(verdict);
        }
    }
}

/// How the flow fares with the cure.
struct CureResult {
    /// The key of the link's queue in the scenario.
    queue_key: String,
    /// The value of that key in the cure.
    queue: Value,
    outcome: CureOutcome,
    /// The outcome in words.
    sentence: String,
    /// The transports that are best with the cure, as the scenario names them.
    best: Vec<String>,
    /// The mean opinion score of the leader with the cure. `None` if the flow is not a call.
    mos: Option<f64>,
    /// The share in time of the leader with the cure. `None` if the flow is judged by something else.
    in_time: Option<f64>,
    /// What the other flows get with the cure, in words. `None` if there are no other flows.
    neighbours: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CureOutcome {
    Usable,
    Unusable,
    /// The call is usable with one of its two receivers only.
    DependsOnReceiver,
}

impl CureResult {
    fn new(verdict: &Verdict, queue_key: String, queue: Value) -> Self {
        let leader = &verdict.ranking.standings[verdict.ranking.leader];
        let on_link = format!("With fq_codel on {}", queue_words(&queue_key));
        let outcome = CureOutcome::new(verdict);
        let sentence = match outcome {
            CureOutcome::Usable => {
                format!("{on_link} it is usable, best over {}.", verdict.best_with_figures)
            }
            CureOutcome::Unusable => {
                let figure = words::figure(verdict.judged_by, verdict.floor, leader);
                format!("{on_link} it is not usable: {figure} at best.")
            }
            CureOutcome::DependsOnReceiver => format!("{on_link} it depends on the receiver."),
        };
        let neighbours = verdict.answer.neighbours.as_ref();
        Self {
            queue_key,
            queue,
            outcome,
            sentence,
            best: verdict.answer.best.clone(),
            mos: (verdict.judged_by == JudgedBy::Mos).then_some(leader.mean),
            in_time: (verdict.judged_by == JudgedBy::InTime).then_some(leader.mean),
            neighbours: neighbours.map(|lines| lines.replace("Beside ", &format!("{on_link}, beside "))),
        }
    }

    /// Adds this result to the answer of the condition without the cure.
    fn add_to(self, verdict: &mut Verdict) {
        let answer = &mut verdict.answer;
        // A cure that does not help belongs to the reasons, and not into the first line.
        if self.outcome != CureOutcome::Usable {
            answer.why = format!("{} {}", answer.why, self.sentence);
            return;
        }
        answer.line = format!("{} {}", answer.line, self.sentence);
        if !answer.why.is_empty() {
            answer.why = format!("Without it: {}", answer.why);
        }
        answer.neighbours = match (answer.neighbours.take(), self.neighbours) {
            (Some(without_cure), Some(with_cure)) => Some(format!("{without_cure} {with_cure}")),
            (without_cure, with_cure) => without_cure.or(with_cure),
        };
        answer.cure = Some(Cure {
            change: [(self.queue_key, self.queue)].into(),
            best: self.best,
            mos: self.mos,
            in_time: self.in_time,
        });
    }
}

impl CureOutcome {
    fn new(verdict: &Verdict) -> Self {
        let is_unusable = verdict.is_unusable();
        match &verdict.second_receiver {
            Some(second) if second.is_unusable() != is_unusable => Self::DependsOnReceiver,
            _ if is_unusable => Self::Unusable,
            _ => Self::Usable,
        }
    }
}

/// The link whose queue has the key `queue_key`, in words: `the uplink` for `path.up.queue`.
fn queue_words(queue_key: &str) -> String {
    let link_key = queue_key.trim_end_matches(".queue");
    link_words(link_key.rsplit('.').next().unwrap_or(queue_key))
}

/// The conditions that have `fq_codel` on a link. The key of the map is the key of that link's queue, and all
/// other swept keys with their values as one text. The value is the index of the first such condition. A
/// condition is therefore found by any condition that differs from it in that one queue alone.
struct CureIndex(BTreeMap<(String, String), usize>);

/// A condition that is the cure of another one. The order of the fields makes the first condition the least
/// one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CureCondition {
    /// Index of the condition.
    condition: usize,
    queue_key: String,
}

impl CureIndex {
    /// Finds the conditions with `fq_codel` among those that have a verdict.
    fn new(verdicts: &[Option<Box<Verdict>>], conditions: &[Condition<'_>], flow: &str) -> Self {
        let mut index = BTreeMap::new();
        for (number, (verdict, condition)) in verdicts.iter().zip(conditions).enumerate() {
            if verdict.is_none() {
                continue;
            }
            let swept = condition.common(flow);
            for queue_key in queue_keys(&swept) {
                if is_fq_codel(&swept[queue_key]) {
                    index.entry((queue_key.clone(), all_but(&swept, queue_key))).or_insert(number);
                }
            }
        }
        Self(index)
    }

    /// Finds the first condition that cures cells with the keys and values `swept`.
    fn find(&self, swept: &BTreeMap<String, Value>) -> Option<CureCondition> {
        let mut cures = Vec::new();
        for queue_key in queue_keys(swept) {
            if is_fq_codel(&swept[queue_key]) {
                continue;
            }
            if let Some(&condition) = self.0.get(&(queue_key.clone(), all_but(swept, queue_key))) {
                cures.push(CureCondition { condition, queue_key: queue_key.clone() });
            }
        }
        cures.into_iter().min()
    }
}

/// The swept keys that set the queue of a link.
fn queue_keys(swept: &BTreeMap<String, Value>) -> impl Iterator<Item = &String> {
    swept.keys().filter(|key| key.ends_with(".queue"))
}

/// Whether the queue `value` is `fq_codel`, with whatever options.
fn is_fq_codel(value: &Value) -> bool {
    let kind = value.get("kind").unwrap_or(value).as_str().unwrap_or_default().replace('-', "_");
    discipline(&kind) == discipline("fq_codel")
}

/// Writes every key but `left_out` with its value, as one text.
fn all_but(swept: &BTreeMap<String, Value>, left_out: &str) -> String {
    let others: Vec<_> = swept.iter().filter(|(key, _)| *key != left_out).collect();
    serde_json::to_string(&others).unwrap_or_default()
}
