//! Adds to an answer what a change would do. A *variant* is a condition that differs from another condition,
//! its *base*, in the value of one swept key:
//!
//! | key | in the base | in the variant | what the variant shows |
//! | --- | --- | --- | --- |
//! | the queue of a link | another queue | `fq_codel` | a *cure*: an AQM in the router |
//! | the workload of another flow | `bulk` | `cbr` | a *cure*: a transfer that is held to a rate |
//! | the `count` of another flow | not 0 | 0 | the other flow left out |
//! | the `transport.cc` of another flow | any | `bbr` | a cure |
//! | the queue of a link of assumed size | `drop-tail` | half or four times of the limit | another size |
//!
//! An answer has cures and left-out flows if nothing is usable in the base, and sizes always.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::summary::{Cure, JudgedBy, TriedChange};

use super::Verdict;
use super::cause::link_words;
use super::words;
use crate::condition::{Condition, OtherFlow};
use crate::display::discipline;
use crate::metric::Metric;
use crate::number::{counted, ms};
use crate::view::plain;

/// The congestion control that aims at a short queue (draft-cardwell-iccrg-bbr-congestion-control-00 §2).
pub(super) const SHORT_QUEUES: &str = "bbr";

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
        for Variant { condition, change, key, shaped_to } in found {
            let value = conditions[condition].common(flow).remove(&key).unwrap_or_default();
            let Some(verdict) = verdicts[condition].as_deref_mut() else { continue };
            verdict.is_variant = true;
            let tried = Tried { change, key, value, shaped_to };
            results.push(VariantResult::new(verdict, tried, &conditions[condition], flow));
        }
        let base_queue = conditions[base].common(flow);
        if let Some(verdict) = verdicts[base].as_deref_mut() {
            verdict.sizes_tried = sizes_tried(&results, verdict, &base_queue);
            verdict.changes_tried = rows(&results, verdict, &conditions[base], flow);
            add_to_answer(&results, verdict);
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
    /// The rate of the queue's link, if it differs as well.
    shaped_to: Option<Value>,
}

/// What a variant changes. The order is that of the sentences in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    FqCodel,
    Held,
    ShortQueues,
    LeftOut,
    HalfTheQueue,
    FourTimesTheQueue,
    /// Any other size, in millionths of the base's.
    OtherSize(u64),
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
        let (other_flow, flow_key) = key.strip_prefix("flow.")?.split_once('.')?;
        if other_flow == flow {
            return None;
        }
        match flow_key {
            "workload" => (kind(base) == "bulk" && kind(changed) == "cbr").then_some(Self::Held),
            "transport.cc" => (changed == SHORT_QUEUES && base != SHORT_QUEUES).then_some(Self::ShortQueues),
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
        Some(match changed / base {
            _ if is_half => Self::HalfTheQueue,
            4.0 => Self::FourTimesTheQueue,
            ratio => Self::OtherSize((ratio * 1e6) as u64),
        })
    }

    const fn is_cure(self) -> bool {
        matches!(self, Self::FqCodel | Self::Held | Self::ShortQueues)
    }

    const fn is_size(self) -> bool {
        matches!(self, Self::HalfTheQueue | Self::FourTimesTheQueue | Self::OtherSize(_))
    }

    /// The change after "with" or "without": `fq_codel on the uplink`. `shaped_to` is the rate of a router
    /// before the line.
    fn name(self, key: &str, value: &Value, shaped_to: Option<&Value>) -> String {
        let bits = |value: &Value| plain(value).replace("bps", "b/s");
        match self {
            Self::FqCodel => {
                let shaped = shaped_to.map_or_else(String::new, |rate| format!(", shaped to {}", bits(rate)));
                format!("fq_codel on {}{shaped}", queue_words(key))
            }
            Self::Held => {
                let rate = value.get("rate").map(bits).unwrap_or_default();
                format!("the flow {} held to {rate}", flow_of(key))
            }
            Self::ShortQueues => format!("{SHORT_QUEUES} for the flow {}", flow_of(key)),
            Self::LeftOut => format!("the flow {}", flow_of(key)),
            Self::HalfTheQueue => format!("half of the queue of {}", queue_words(key)),
            Self::FourTimesTheQueue => format!("four times the queue of {}", queue_words(key)),
            Self::OtherSize(_) => format!("another queue of {}", queue_words(key)),
        }
    }

    const fn preposition(self) -> &'static str {
        match self {
            Self::LeftOut => "without",
            _ => "with",
        }
    }

    /// Who can make the change. `None` if that is known without a word.
    const fn who(self, is_shaped: bool) -> Option<&'static str> {
        match self {
            Self::FqCodel if is_shaped => Some("the router"),
            Self::Held => Some("the program that sends it"),
            Self::ShortQueues => Some("the machine that sends it"),
            _ => None,
        }
    }

    /// [`Self::who`] with how it is done.
    const fn who_and_how(self, is_shaped: bool) -> Option<&'static str> {
        match self {
            Self::FqCodel if is_shaped => {
                Some("in the router, at 95 % of the line's rate; the whole rate needs a modem that has it")
            }
            Self::Held => Some("a limit in the program that sends it"),
            Self::ShortQueues => Some("a setting of the machine that sends it"),
            _ => None,
        }
    }
}

/// The conditions by each key that a variant can change: the key and all other swept keys with their values
/// as one text, and the indices of the conditions.
struct VariantIndex(BTreeMap<(String, String), Vec<IndexedValue>>);

struct IndexedValue {
    condition: usize,
    value: Value,
    /// The rate of the queue's link, if it is swept.
    shaped_to: Option<Value>,
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
                let shaped_to = rate_key(key).and_then(|key| swept.get(&key)).cloned();
                entry.push(IndexedValue { condition, value: value.clone(), shaped_to });
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
                let base_rate = rate_key(key).and_then(|key| swept.get(&key).cloned());
                let shaped_to = other.shaped_to.clone().filter(|rate| Some(rate) != base_rate.as_ref());
                // A link of another rate alone is another path, and no cure.
                if shaped_to.is_some() && change != Change::FqCodel {
                    continue;
                }
                let variant = Variant { condition: other.condition, change, key: key.clone(), shaped_to };
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
    /// See [`Change::name`].
    name: String,
    who: Option<&'static str>,
    who_and_how: Option<&'static str>,
    /// What `summary.json` says of it.
    tried: TriedChange,
    outcome: Outcome,
    /// The judged figure of the leader in words: `MOS 4.36`.
    figure: String,
    /// The judged figure of the leader.
    mean: f64,
    /// The best transports that reach the floor, with their figures.
    best_with_figures: String,
    /// The name of the leader's median delay, if the flow is judged by its share in time: `round trip`.
    delay_name: &'static str,
    /// That delay in ms.
    delay_ms: Option<f64>,
    /// The goodput in bit/s of each other flow, or group of copies, beside the leader.
    others: BTreeMap<String, f64>,
}

/// A change that was tried.
struct Tried {
    change: Change,
    key: String,
    value: Value,
    shaped_to: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Usable,
    Unusable,
    /// The call is usable with one of its two receivers only.
    DependsOnReceiver,
}

impl VariantResult {
    fn new(verdict: &Verdict, tried: Tried, condition: &Condition<'_>, flow: &str) -> Self {
        let Tried { change, key, value, shaped_to } = tried;
        let leader = &verdict.ranking.standings[verdict.ranking.leader];
        let outcome = Outcome::new(verdict);
        let name = change.name(&key, &value, shaped_to.as_ref());
        let who = change.who(shaped_to.is_some());
        let who_and_how = change.who_and_how(shaped_to.is_some());
        let delay_ms = verdict.delay_beside_share();
        let others = others(verdict, condition, flow);
        let mut changed: BTreeMap<String, Value> =
            shaped_to.and_then(|rate| Some((rate_key(&key)?, rate))).into_iter().collect();
        changed.insert(key, value);
        let tried = TriedChange {
            change: changed,
            what: format!("{} {name}", change.preposition()),
            who: who.map(str::to_owned),
            usable: match outcome {
                Outcome::Usable => Some(true),
                Outcome::Unusable => Some(false),
                Outcome::DependsOnReceiver => None,
            },
            best: verdict.answer.best.clone(),
            mos: (verdict.judged_by == JudgedBy::Mos).then_some(leader.mean),
            in_time: (verdict.judged_by == JudgedBy::InTime).then_some(leader.mean),
            delay_ms,
            others_bps: others.clone(),
        };
        Self {
            figure: words::figure(verdict.judged_by, verdict.floor, leader),
            mean: leader.mean,
            best_with_figures: verdict.best_with_figures.clone(),
            delay_name: condition.delay_kind(flow).name(),
            delay_ms,
            others,
            change,
            name,
            who,
            who_and_how,
            tried,
            outcome,
        }
    }

    /// The change as the beginning of a sentence: `With fq_codel on the uplink`.
    fn beginning(&self) -> String {
        upper_first(&format!("{} {}", self.change.preposition(), self.name))
    }

    /// The result of the change that cures: `With fq_codel on the uplink it is usable, best over UDP.`
    fn as_cure(&self) -> String {
        let who = self.who_and_how.map_or_else(String::new, |who| format!(" ({who})"));
        let delay = |delay_ms| format!(", with a p50 {} of {}", self.delay_name, ms(delay_ms));
        let delay = self.delay_ms.map_or_else(String::new, delay);
        format!("{}{who} it is usable{delay}, best over {}.", self.beginning(), self.best_with_figures)
    }

    /// The result of any other change: `With fq_codel on the uplink it is not usable: MOS 2.50 at best.`
    fn sentence(&self) -> String {
        let (beginning, figure) = (self.beginning(), &self.figure);
        let delay = |delay_ms| format!("a p50 {} of {}, and ", self.delay_name, ms(delay_ms));
        let delay = self.delay_ms.map_or_else(String::new, delay);
        match self.outcome {
            Outcome::Usable => format!("{beginning} it is usable: {delay}{figure} at best."),
            Outcome::Unusable => format!("{beginning} it is not usable: {delay}{figure} at best."),
            Outcome::DependsOnReceiver => format!("{beginning} it depends on the receiver."),
        }
    }
}

/// A row of the table of what was tried: what was asked for, or a change.
#[derive(Clone, Debug)]
pub(crate) struct ChangeRow {
    /// The change: `fq_codel on the uplink, shaped to 9.5 Mb/s`.
    pub what: String,
    /// Who can make it. Empty if that is known without a word.
    pub who: &'static str,
    pub usable: &'static str,
    /// The judged figure of the best transport.
    pub figure: f64,
    /// The name of its median delay: `round trip`.
    pub delay_name: &'static str,
    /// That delay in ms. `None` if the flow is not judged by its share in time.
    pub delay_ms: Option<f64>,
    /// The goodput in bit/s of each other flow, or group of copies, beside the best transport.
    pub others_bps: BTreeMap<String, f64>,
}

/// The rows of `results` but the sizes of a queue, and before them that of the base. Empty if there is
/// nothing but sizes.
fn rows(results: &[VariantResult], base: &Verdict, condition: &Condition<'_>, flow: &str) -> Vec<ChangeRow> {
    let row = |result: &VariantResult| ChangeRow {
        what: match result.change {
            Change::LeftOut => format!("without {}", result.name),
            _ => result.name.clone(),
        },
        who: result.who.unwrap_or_default(),
        usable: result.outcome.word(),
        figure: result.mean,
        delay_name: result.delay_name,
        delay_ms: result.delay_ms,
        others_bps: result.others.clone(),
    };
    let mut rows: Vec<_> = results.iter().filter(|result| !result.change.is_size()).map(row).collect();
    if !rows.is_empty() {
        let base = ChangeRow {
            what: "as it is".to_owned(),
            who: "",
            usable: Outcome::new(base).word(),
            figure: base.ranking.standings[base.ranking.leader].mean,
            delay_name: condition.delay_kind(flow).name(),
            delay_ms: base.delay_beside_share(),
            others_bps: others(base, condition, flow),
        };
        rows.insert(0, base);
    }
    rows
}

/// The goodput in bit/s of each other flow, or group of copies, beside the leader.
fn others(verdict: &Verdict, condition: &Condition<'_>, flow: &str) -> BTreeMap<String, f64> {
    let cell = &condition.cells[verdict.leader_cell];
    let goodput = |other| match other {
        OtherFlow::Single(name) => Some((cell.value(&name, Metric::GOODPUT)?, name)),
        OtherFlow::Copies { group, .. } => Some((cell.value(&group, Metric::Group("goodput_bps"))?, group)),
    };
    let found = condition.other_flows_by_group(flow).into_iter().filter_map(goodput);
    found.map(|(goodput, name)| (name, goodput)).collect()
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

    const fn word(self) -> &'static str {
        match self {
            Self::Usable => "yes",
            Self::Unusable => "no",
            Self::DependsOnReceiver => "depends on the receiver",
        }
    }
}

/// Adds the results to the answer of their base. The first cure that helps belongs to the answer's first
/// line. If none helps, the reasons have the best, and always the sizes of a queue.
fn add_to_answer(results: &[VariantResult], verdict: &mut Verdict) {
    let answer = &mut verdict.answer;
    answer.tried = results.iter().map(|result| result.tried.clone()).collect();
    if let Some(without) = results.iter().find(|result| result.change == Change::LeftOut)
        && let Some(delay_ms) = without.delay_ms
        && let Some(words) = &verdict.delay_words
    {
        let both = format!("{words} ({} without {})", ms(delay_ms), without.name);
        answer.line = answer.line.replacen(words, &both, 1);
    }
    let mut reasons = Vec::new();
    let cures = || results.iter().filter(|result| result.change.is_cure());
    if let Some(cure) = cures().find(|result| result.outcome == Outcome::Usable) {
        answer.line = format!("{} {}", answer.line, cure.as_cure());
        if !answer.why.is_empty() {
            answer.why = format!("Without it: {}", answer.why);
        }
        let TriedChange { change, best, mos, in_time, .. } = cure.tried.clone();
        answer.cure = Some(Cure { change, best, mos, in_time });
    } else {
        // The first of those with the best figure.
        let best = cures().rev().max_by(|a, b| a.mean.total_cmp(&b.mean));
        reasons.extend(best.map(VariantResult::sentence));
    }
    // A search for the size at which the answer turns says more than two sizes.
    let turn = turn_of_size(&verdict.sizes_tried);
    let sizes = results.iter().filter(|result| turn.is_none() && result.change.is_size());
    reasons.extend(sizes.map(VariantResult::sentence));
    reasons.extend(turn);
    for sentence in reasons {
        answer.why = format!("{} {sentence}", answer.why).trim_start().to_owned();
    }
}

/// A size of a queue that a run tried.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SizeTried {
    /// The key of the queue.
    pub(super) key: String,
    pub(super) limit: f64,
    /// The unit of the limit.
    pub(super) unit: String,
    pub(super) is_usable: bool,
}

/// The sizes of an assumed queue that were tried, the base's among them, from the smallest to the largest.
/// Empty if no other size was tried.
fn sizes_tried(results: &[VariantResult], base: &Verdict, swept: &BTreeMap<String, Value>) -> Vec<SizeTried> {
    let size = |key: &str, queue: &Value, outcome| {
        let (limit, unit) = number_and_unit(queue.get("limit")?.as_str()?)?;
        let is_usable = outcome == Outcome::Usable;
        Some(SizeTried { key: key.to_owned(), limit, unit: unit.to_owned(), is_usable })
    };
    let mut sizes = Vec::new();
    for result in results.iter().filter(|result| result.change.is_size()) {
        let Some((key, queue)) = result.tried.change.iter().next() else { continue };
        if sizes.is_empty() {
            sizes.extend(swept.get(key).and_then(|queue| size(key, queue, Outcome::new(base))));
        }
        sizes.extend(size(key, queue, result.outcome));
    }
    sizes.sort_by(|a, b| a.limit.total_cmp(&b.limit));
    sizes
}

/// Says up to which size the flow is usable, if more than half and four times of the base were tried. Returns
/// `None` if a larger queue is usable where a smaller one is not.
fn turn_of_size(sizes: &[SizeTried]) -> Option<String> {
    let usable = sizes.iter().take_while(|size| size.is_usable).count();
    if sizes.len() <= 3 || sizes[usable..].iter().any(|size| size.is_usable) {
        return None;
    }
    let text = |SizeTried { limit, unit, .. }: &SizeTried| match unit.starts_with("packet") {
        true => counted(*limit as u64, "packet"),
        false => format!("{limit} {unit}"),
    };
    let queue = format!("the queue of {}", queue_words(&sizes[0].key));
    Some(match (usable.checked_sub(1).map(|last| &sizes[last]), sizes.get(usable)) {
        (Some(last), Some(first)) => format!(
            "The size of {queue} decides: it is usable up to {}, and not usable from {} on.",
            text(last),
            text(first)
        ),
        (None, Some(first)) => {
            format!("The size of {queue} does not decide: not even {} is usable.", text(first))
        }
        (Some(last), None) => {
            format!("The size of {queue} does not decide: it is usable up to {}.", text(last))
        }
        (None, None) => return None,
    })
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

/// The key of the rate of the link whose queue has the key `queue_key`.
fn rate_key(queue_key: &str) -> Option<String> {
    Some(format!("{}.rate", queue_key.strip_suffix(".queue")?))
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
    let ends = [".workload", ".count", ".transport.cc"];
    let is_of_flow = key.starts_with("flow.") && ends.iter().any(|end| key.ends_with(end));
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

/// Writes every key but `left_out` with its value, as one text. The rate of a link is left out with its
/// queue, because a router before it has both.
fn all_but(swept: &BTreeMap<String, Value>, left_out: &str) -> String {
    let rate = rate_key(left_out);
    let others: Vec<_> =
        swept.iter().filter(|(key, _)| *key != left_out && Some(*key) != rate.as_ref()).collect();
    serde_json::to_string(&others).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_at_which_an_answer_turns_is_between_two_that_were_tried() {
        let sizes = |tried: &[(f64, bool)]| {
            let size = |&(limit, is_usable): &(f64, bool)| SizeTried {
                key: "path.up.queue".to_owned(),
                limit,
                unit: "ms".to_owned(),
                is_usable,
            };
            turn_of_size(&tried.iter().map(size).collect::<Vec<_>>())
        };
        let tried = [(62.0, true), (75.0, false), (125.0, false), (250.0, false), (1000.0, false)];
        let turn = "The size of the queue of the uplink decides: it is usable up to 62 ms, and not usable from 75 ms on.";
        assert_eq!(sizes(&tried).as_deref(), Some(turn));
        assert!(sizes(&tried[1..]).unwrap().ends_with("does not decide: not even 75 ms is usable."));
        assert_eq!(sizes(&tried[..3]), None, "half and four times have sentences of their own");
        assert_eq!(sizes(&[(1.0, false), (2.0, true), (3.0, false), (4.0, false)]), None);
    }

    #[test]
    fn a_queue_of_a_single_packet_has_its_singular() {
        let size = |limit: f64| SizeTried {
            key: "path.up.queue".to_owned(),
            limit,
            unit: "packets".to_owned(),
            is_usable: limit < 2.0,
        };
        let turn = turn_of_size(&[1.0, 2.0, 4.0, 16.0].map(size)).unwrap();
        assert!(turn.ends_with("usable up to 1 packet, and not usable from 2 packets on."), "{turn}");
    }

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
        assert_eq!(change("path.up.queue", queue("64 kB"), queue("16 kB")), Some(Change::OtherSize(250_000)));
        assert_eq!(change("path.up.queue", queue("64 kB"), queue("64 B")), None);
        let control =
            |base: &str, changed: &str| change("flow.upload.transport.cc", json!(base), json!(changed));
        assert_eq!(control("default", "bbr"), Some(Change::ShortQueues));
        assert_eq!(control("bbr", "cubic"), None);
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
