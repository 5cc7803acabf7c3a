//! Adds to an answer what a change would do. A *variant* is a condition that differs from another condition,
//! its *base*, in the value of one swept key:
//!
//! | key | in the base | in the variant | what the variant shows |
//! | --- | --- | --- | --- |
//! | the queue of a link | another queue | `fq_codel` | a *cure*: an AQM in the router |
//! | the workload of another flow | `bulk` | `cbr` | a *cure*: a transfer that is held to a rate |
//! | the `count` of another flow | not 0 | 0 | the other flow left out |
//! | the queue of a link of assumed size | `drop-tail` | half or four times of the limit | another size |
//!
//! Cures and left-out flows are told where nothing is usable in the base, and sizes always.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::summary::{Cure, JudgedBy, TriedChange};

use super::Verdict;
use super::cause::link_words;
use super::words;
use crate::condition::Condition;
use crate::display::discipline;
use crate::view::plain;

/// Adds the results of the variants to each answer whose variants were run. The cells of a variant are marked
/// with [`Verdict::is_variant`].
pub(super) fn add_variants(verdicts: &mut [Option<Box<Verdict>>], conditions: &[Condition<'_>], flow: &str) {
    let has_assumed_queue = conditions.iter().any(|condition| !condition.assumed_queues.is_empty());
    if !has_assumed_queue && !verdicts.iter().flatten().any(|verdict| verdict.may_be_unusable()) {
        return;
    }
    let index = VariantIndex::new(verdicts, conditions, flow);
    for base in 0..verdicts.len() {
        let Some(verdict) = verdicts[base].as_deref() else { continue };
        let may_be_cured = verdict.may_be_unusable();
        let mut found = index.find(base, &conditions[base], flow);
        found.retain(|variant| may_be_cured || variant.change.is_size());
        let mut results = Vec::new();
        for Variant { condition, change, key } in found {
            let value = conditions[condition].common(flow).remove(&key).unwrap_or_default();
            let Some(verdict) = verdicts[condition].as_deref_mut() else { continue };
            verdict.is_variant = true;
            results.push(VariantResult::new(verdict, change, key, value));
        }
        if let Some(verdict) = verdicts[base].as_deref_mut() {
            add_to_answer(results, verdict);
        }
    }
}

/// A condition that is a variant of another one.
struct Variant {
    /// Index of the condition.
    condition: usize,
    change: Change,
    /// The key whose value differs.
    key: String,
}

/// What a variant changes. The order is that of the sentences in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    FqCodel,
    Held,
    LeftOut,
    HalfTheQueue,
    FourTimesTheQueue,
}

impl Change {
    /// Returns what a condition with the value `changed` of `key` changes in a condition with the value
    /// `base`. `flow` is the judged flow, and `assumed` has the links whose queue has an assumed size.
    fn new(key: &str, base: &Value, changed: &Value, flow: &str, assumed: &[String]) -> Option<Self> {
        if let Some(link_key) = key.strip_suffix(".queue") {
            if is_fq_codel(changed) {
                return (!is_fq_codel(base)).then_some(Self::FqCodel);
            }
            let link = link_key.rsplit('.').next()?;
            if !assumed.iter().any(|name| name == link) || kind(base) != kind(changed) {
                return None;
            }
            return Self::of_limits(base.get("limit")?.as_str()?, changed.get("limit")?.as_str()?);
        }
        let (other_flow, flow_key) = key.strip_prefix("flow.")?.rsplit_once('.')?;
        if other_flow == flow {
            return None;
        }
        match flow_key {
            "workload" => (kind(base) == "bulk" && kind(changed) == "cbr").then_some(Self::Held),
            "count" => (changed.as_u64() == Some(0) && base.as_u64() != Some(0)).then_some(Self::LeftOut),
            _ => None,
        }
    }

    /// Compares two limits of a queue in the same unit.
    fn of_limits(base: &str, changed: &str) -> Option<Self> {
        let (base, base_unit) = number_and_unit(base)?;
        let (changed, unit) = number_and_unit(changed)?;
        if base_unit != unit {
            return None;
        }
        // Half of an odd number of packets is rounded up.
        let is_half = changed * 2.0 == base || (unit.contains("packet") && changed * 2.0 == base + 1.0);
        if is_half {
            Some(Self::HalfTheQueue)
        } else {
            (changed == base * 4.0).then_some(Self::FourTimesTheQueue)
        }
    }

    const fn is_cure(self) -> bool {
        matches!(self, Self::FqCodel | Self::Held)
    }

    const fn is_size(self) -> bool {
        matches!(self, Self::HalfTheQueue | Self::FourTimesTheQueue)
    }

    /// The change as the beginning of a sentence: `With fq_codel on the uplink`.
    fn words(self, key: &str, value: &Value) -> String {
        match self {
            Self::FqCodel => format!("With fq_codel on {}", queue_words(key)),
            Self::Held => {
                let rate = value.get("rate").map(plain).unwrap_or_default().replace("bps", "b/s");
                format!("With the flow {} held to {rate}", flow_of(key))
            }
            Self::LeftOut => format!("Without the flow {}", flow_of(key)),
            Self::HalfTheQueue => format!("With half of the queue of {}", queue_words(key)),
            Self::FourTimesTheQueue => format!("With four times the queue of {}", queue_words(key)),
        }
    }
}

/// The conditions by each key that a variant can change: the key and all other swept keys with their values
/// as one text, and the indices of the conditions.
struct VariantIndex(BTreeMap<(String, String), Vec<IndexedValue>>);

struct IndexedValue {
    condition: usize,
    value: Value,
}

impl VariantIndex {
    /// Makes the index of the conditions that have a verdict.
    fn new(verdicts: &[Option<Box<Verdict>>], conditions: &[Condition<'_>], flow: &str) -> Self {
        let mut index: BTreeMap<(String, String), Vec<IndexedValue>> = BTreeMap::new();
        for (condition, (verdict, cells)) in verdicts.iter().zip(conditions).enumerate() {
            if verdict.is_none() {
                continue;
            }
            let swept = cells.common(flow);
            for (key, value) in swept.iter().filter(|(key, _)| can_differ(key)) {
                let entry = index.entry((key.clone(), all_but(&swept, key))).or_default();
                entry.push(IndexedValue { condition, value: value.clone() });
            }
        }
        Self(index)
    }

    /// Finds the variants of the condition with the index `base`: the first of each change. A condition is
    /// another size of an earlier condition alone, so that two sizes are not variants of each other.
    fn find(&self, base: usize, condition: &Condition<'_>, flow: &str) -> Vec<Variant> {
        let swept = condition.common(flow);
        let mut variants: BTreeMap<Change, Variant> = BTreeMap::new();
        for (key, base_value) in swept.iter().filter(|(key, _)| can_differ(key)) {
            let Some(others) = self.0.get(&(key.clone(), all_but(&swept, key))) else { continue };
            for other in others {
                let change = Change::new(key, base_value, &other.value, flow, condition.assumed_queues);
                let change = change.filter(|change| !change.is_size() || other.condition > base);
                let Some(change) = change else { continue };
                let variant = Variant { condition: other.condition, change, key: key.clone() };
                match variants.get(&change) {
                    Some(earlier) if earlier.condition <= variant.condition => {}
                    _ => drop(variants.insert(change, variant)),
                }
            }
        }
        variants.into_values().collect()
    }
}

/// How the flow fares with a change.
struct VariantResult {
    change: Change,
    /// The change as the beginning of a sentence.
    words: String,
    /// What `summary.json` says of it.
    tried: TriedChange,
    outcome: Outcome,
    /// The judged figure of the leader in words: `MOS 4.36`.
    figure: String,
    /// The best transports that reach the floor, with their figures.
    best_with_figures: String,
    /// What the other flows get, in words. `None` if there are no other flows.
    neighbours: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Usable,
    Unusable,
    /// The call is usable with one of its two receivers only.
    DependsOnReceiver,
}

impl VariantResult {
    fn new(verdict: &Verdict, change: Change, key: String, value: Value) -> Self {
        let leader = &verdict.ranking.standings[verdict.ranking.leader];
        let outcome = Outcome::new(verdict);
        let words = change.words(&key, &value);
        let tried = TriedChange {
            change: [(key, value)].into(),
            usable: match outcome {
                Outcome::Usable => Some(true),
                Outcome::Unusable => Some(false),
                Outcome::DependsOnReceiver => None,
            },
            best: verdict.answer.best.clone(),
            mos: (verdict.judged_by == JudgedBy::Mos).then_some(leader.mean),
            in_time: (verdict.judged_by == JudgedBy::InTime).then_some(leader.mean),
        };
        Self {
            figure: words::figure(verdict.judged_by, verdict.floor, leader),
            best_with_figures: verdict.best_with_figures.clone(),
            neighbours: verdict.answer.neighbours.clone(),
            change,
            words,
            tried,
            outcome,
        }
    }

    /// The result of the change that cures: `With fq_codel on the uplink it is usable, best over UDP.`
    fn as_cure(&self) -> String {
        format!("{} it is usable, best over {}.", self.words, self.best_with_figures)
    }

    /// The result of any other change.
    fn sentence(&self) -> String {
        let Self { words, figure, .. } = self;
        match self.outcome {
            Outcome::Usable => format!("{words} it is usable: {figure} at best."),
            Outcome::Unusable => format!("{words} it is not usable: {figure} at best."),
            Outcome::DependsOnReceiver => format!("{words} it depends on the receiver."),
        }
    }
}

impl Outcome {
    fn new(verdict: &Verdict) -> Self {
        let is_unusable = verdict.is_unusable();
        match &verdict.second_receiver {
            Some(second) if second.is_unusable() != is_unusable => Self::DependsOnReceiver,
            _ if is_unusable => Self::Unusable,
            _ => Self::Usable,
        }
    }
}

/// Adds the results to the answer of their base. The first cure that helps belongs to the answer's first
/// line, and all others to its reasons.
fn add_to_answer(mut results: Vec<VariantResult>, verdict: &mut Verdict) {
    let answer = &mut verdict.answer;
    answer.tried = results.iter().map(|result| result.tried.clone()).collect();
    let helps = |result: &VariantResult| result.change.is_cure() && result.outcome == Outcome::Usable;
    if let Some(first) = results.iter().position(helps) {
        let cure = results.remove(first);
        answer.line = format!("{} {}", answer.line, cure.as_cure());
        if !answer.why.is_empty() {
            answer.why = format!("Without it: {}", answer.why);
        }
        let with_cure =
            cure.neighbours.map(|lines| lines.replace("Beside ", &format!("{}, beside ", cure.words)));
        answer.neighbours = match (answer.neighbours.take(), with_cure) {
            (Some(without_cure), Some(with_cure)) => Some(format!("{without_cure} {with_cure}")),
            (without_cure, with_cure) => without_cure.or(with_cure),
        };
        let TriedChange { change, best, mos, in_time, .. } = cure.tried;
        answer.cure = Some(Cure { change, best, mos, in_time });
    }
    for result in results {
        answer.why = format!("{} {}", answer.why, result.sentence()).trim_start().to_owned();
    }
}

/// The link whose queue has the key `queue_key`, in words: `the uplink` for `path.up.queue`.
fn queue_words(queue_key: &str) -> String {
    let link_key = queue_key.trim_end_matches(".queue");
    link_words(link_key.rsplit('.').next().unwrap_or(queue_key))
}

/// The name of the flow in a key of it: `upload` in `flow.upload.count`.
fn flow_of(key: &str) -> &str {
    key.split('.').nth(1).unwrap_or(key)
}

/// Whether a variant can differ from its base in this key.
fn can_differ(key: &str) -> bool {
    let is_of_flow = key.starts_with("flow.") && (key.ends_with(".workload") || key.ends_with(".count"));
    is_of_flow || key.ends_with(".queue")
}

/// The kind of a queue or workload, which is a word or a table with the key `kind`.
fn kind(value: &Value) -> &str {
    value.get("kind").unwrap_or(value).as_str().unwrap_or_default()
}

/// Whether the queue `value` is `fq_codel`, with whatever options.
fn is_fq_codel(value: &Value) -> bool {
    discipline(&kind(value).replace('-', "_")) == discipline("fq_codel")
}

/// Splits `64 kB` into its number and its unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    Some((number.parse().ok()?, unit.trim()))
}

/// Writes every key but `left_out` with its value, as one text.
fn all_but(swept: &BTreeMap<String, Value>, left_out: &str) -> String {
    let others: Vec<_> = swept.iter().filter(|(key, _)| *key != left_out).collect();
    serde_json::to_string(&others).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_known_by_its_key_and_its_two_values() {
        let assumed = ["up".to_owned()];
        let change =
            |key: &str, base: Value, changed: Value| Change::new(key, &base, &changed, "call", &assumed);
        let queue = |limit: &str| json!({ "kind": "drop-tail", "limit": limit });
        assert_eq!(change("path.up.queue", queue("64 kB"), json!("fq_codel")), Some(Change::FqCodel));
        assert_eq!(change("path.up.queue", json!({ "kind": "fq-codel" }), json!("fq_codel")), None);
        assert_eq!(change("path.up.queue", queue("64 kB"), queue("32 kB")), Some(Change::HalfTheQueue));
        assert_eq!(
            change("path.up.queue", queue("15 packets"), queue("8 packets")),
            Some(Change::HalfTheQueue)
        );
        assert_eq!(change("path.up.queue", queue("250ms"), queue("1000ms")), Some(Change::FourTimesTheQueue));
        assert_eq!(change("path.up.queue", queue("64 kB"), queue("64 B")), None);
        assert_eq!(
            change("path.down.queue", queue("64 kB"), queue("32 kB")),
            None,
            "its size is not assumed"
        );
        let cbr = json!({ "kind": "cbr", "rate": "800 kbps" });
        assert_eq!(
            change("flow.upload.workload", json!({ "kind": "bulk" }), cbr.clone()),
            Some(Change::Held)
        );
        assert_eq!(change("flow.call.workload", json!("bulk"), cbr), None, "it is the judged flow");
        assert_eq!(change("flow.upload.count", json!(1), json!(0)), Some(Change::LeftOut));
        assert_eq!(change("flow.upload.count", json!(0), json!(1)), None);
    }
}
