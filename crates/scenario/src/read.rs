//! Single values read by their [`Kind`]: the mistakes go to the log, the meaning into the tree.
//!
//! Each value is read once: what the file says by [`crate::pass::check`], a default by [`crate::pass::fill`],
//! and what steps from copy to copy once a copy. Whoever makes the model takes the meaning
//! ([`crate::section`]).

use core::fmt;

use talkpath_config::DelayedAck;
use talkpath_units::Duration;

use crate::diagnostic::{Log, Place};
use crate::not_yet::not_yet_help;
use crate::quantity::{self, Amount, Dimension, Measure, Problem};
use crate::spec::{Kind, LONGEST_PATH, Listed, Words, is_same_word};
use crate::tree::{Meaning, Node, Table, Value};
use crate::usual::usual;

/// The keys that lead to a value.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    parent: Option<&'a At<'a>>,
    name: &'a str,
}

impl<'a> At<'a> {
    /// The top of the file.
    pub(crate) const ROOT: At<'static> = At { parent: None, name: "" };

    pub(crate) const fn key(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), name }
    }

    /// The last name.
    pub(crate) const fn name(&self) -> &'a str {
        self.name
    }

    /// The last name that is none of `parts`, and the one above it.
    pub(crate) fn names(&self, parts: &[&str]) -> (&'a str, &'a str) {
        let is_part = |at: &At<'_>| parts.contains(&at.name);
        match self.parent {
            Some(parent) if is_part(self) => parent.names(parts),
            parent => (self.name, parent.map_or("", |parent| parent.name)),
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parent {
            Some(parent) if parent.parent.is_some() => write!(f, "{parent}.{}", self.name),
            _ => f.write_str(self.name),
        }
    }
}

impl Log {
    /// Records `problem` with the value at `at`.
    pub(crate) fn problem(&mut self, place: &Place, at: At<'_>, problem: Problem) {
        self.mistake(place, &at.to_string(), problem.message, problem.help);
    }
}

/// What `node` means to a key of this kind, if one value says it: a table is read key by key. The mistakes
/// in it go to `log`.
pub(crate) fn meaning(node: &Node, kind: &Kind, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    match kind {
        Kind::Text { longest } => text(node, *longest, at, log),
        Kind::File(_) => text(node, LONGEST_PATH, at, log),
        Kind::Flag => flag(node, at, log),
        Kind::Count { least, most } => count(node, *least, *most, at, log),
        Kind::Seed => seed(node, at, log),
        Kind::Probability => probability(node, at, log),
        Kind::Number { above, most } => bounded(node, *above, *most, at, log),
        Kind::Quantity { measures, words } => quantity(node, measures, words, at, log),
        Kind::LinkRate { measures, words } => link_rate(node, measures, words, at, log),
        Kind::Choice(words) => choice(node, words, at, log),
        Kind::FlagOrDefault => flag_or_default(node, at, log),
        Kind::DelayedAck(measures) => delayed_ack(node, measures, at, log),
        Kind::Start(measures) => start(node, measures, at, log),
        Kind::Names(listed) => names(node, listed, at, log),
        Kind::Table(_)
        | Kind::Tagged(_)
        | Kind::Map(_)
        | Kind::List(_)
        | Kind::Path(_)
        | Kind::Sweep
        | Kind::Thresholds => None,
    }
}

/// A quantity, or one of `words`.
fn quantity(
    node: &Node,
    measures: &[Measure],
    words: &[&'static str],
    at: At<'_>,
    log: &mut Log,
) -> Option<Meaning> {
    let problem = match &node.value {
        Value::Text(text) => {
            if let Some(word) = words.iter().find(|word| is_same_word(word, text)) {
                return Some(Meaning::Word(word));
            }
            match quantity::parse(text, measures) {
                Ok(amount) => return Some(Meaning::Amount(amount)),
                Err(problem) => match nearest(text, words.iter().copied()) {
                    Some(word) => problem.with_help(format!("did you mean \"{word}\"?")),
                    None => problem,
                },
            }
        }
        Value::Number(text) => {
            let help = match proposal(text, measures, at) {
                Some(proposed) => format!("a number needs its unit: \"{proposed}\"?"),
                None => format!("a number needs its unit: {}", quantity::unit_list(measures)),
            };
            wrong(node, &expected_quantity(measures, words)).with_help(help)
        }
        _ => wrong(node, &expected_quantity(measures, words)),
    };
    log.problem(&node.place, at, problem);
    None
}

/// The quantity that a bare `number` at `at` most likely is.
pub(crate) fn proposal(number: &str, measures: &[Measure], at: At<'_>) -> Option<String> {
    quantity::proposal(number, measures, |dimension| usual_at(at, dimension))
}

/// What is usual for a quantity of `dimension` at `at`.
fn usual_at(at: At<'_>, dimension: Dimension) -> Option<(u64, u64)> {
    let (name, above) = at.names(&PARTS);
    usual(name, above, dimension)
}

/// The parts of a range or a step, which are of their key's kind.
const PARTS: [&str; 4] = ["from", "to", "step", "tick"];

/// A whole number from `least` to `most`.
fn count(node: &Node, least: u64, most: u64, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let form = format!("a whole number from {least} to {most}");
    let Value::Number(text) = &node.value else {
        log.problem(&node.place, at, wrong(node, &form));
        return None;
    };
    match text.parse::<u64>() {
        Ok(count) if (least..=most).contains(&count) => Some(Meaning::Count(count)),
        _ => {
            log.problem(&node.place, at, wrong(node, &form));
            None
        }
    }
}

/// A seed: a whole number, or the text of one.
fn seed(node: &Node, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let seed = match &node.value {
        Value::Number(text) | Value::Text(text) => as_seed(text),
        _ => None,
    };
    if seed.is_none() {
        log.problem(&node.place, at, wrong(node, SEED_FORM));
    }
    seed.map(Meaning::Count)
}

/// A whole number of 64 bits, in digits alone.
pub(crate) fn as_seed(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What a seed is.
pub(crate) const SEED_FORM: &str = "a whole number from 0 to 18446744073709551615";

/// A number for which `fits` holds; `form` says which.
fn number(node: &Node, form: &str, fits: impl Fn(f64) -> bool, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let value = match &node.value {
        Value::Number(text) => text.parse::<f64>().ok(),
        _ => None,
    };
    let value = value.filter(|value| value.is_finite() && fits(*value));
    if value.is_none() {
        log.problem(&node.place, at, wrong(node, form));
    }
    // Minus zero is zero.
    value.map(|value| Meaning::Number(value + 0.0))
}

/// A number within its bounds.
fn bounded(node: &Node, above: f64, most: f64, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let form = format!("a number above {above} and at most {most}");
    number(node, &form, |value| value > above && value <= most, at, log)
}

/// A link's rate: a quantity, a word, or `{ trace = "FILE" }`.
fn link_rate(
    node: &Node,
    measures: &[Measure],
    words: &[&'static str],
    at: At<'_>,
    log: &mut Log,
) -> Option<Meaning> {
    let Some(table) = node.as_table() else { return quantity(node, measures, words, at, log) };
    for entry in table.entries.iter().filter(|entry| entry.name != "trace") {
        let problem = unknown_key(&entry.name, "a rate", core::iter::once("trace"));
        log.problem(&entry.place, at.key(&entry.name), problem);
    }
    let Some(trace) = table.get("trace") else {
        let form = expected_quantity(measures, words);
        log.problem(&node.place, at, wrong(node, &format!("{form} or {{ trace = \"FILE\" }}")));
        return None;
    };
    text(trace, LONGEST_PATH, at.key("trace"), log)
}

/// What a share is.
pub(crate) const SHARE_FORM: &str = "a share from 0 to 1, or \"0%\" to \"100%\"";

/// A share of packets. Percentages are numbers by now ([`crate::pass::values`]).
fn probability(node: &Node, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let form = SHARE_FORM;
    let help = match &node.value {
        Value::Number(text) => text.parse().ok().and_then(quantity::percent_help),
        _ => None,
    };
    if help.is_some() {
        log.problem(&node.place, at, Problem { help, ..wrong(node, form) });
        return None;
    }
    number(node, form, |value| (0.0..=1.0).contains(&value), at, log)
}

/// `true` or `false`.
fn flag(node: &Node, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    if let Value::Flag(flag) = node.value {
        return Some(Meaning::Flag(flag));
    }
    log.problem(&node.place, at, wrong(node, "true or false"));
    None
}

/// `true`, `false`, or `"default"`.
fn flag_or_default(node: &Node, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    match &node.value {
        Value::Flag(flag) => Some(Meaning::Flag(*flag)),
        Value::Text(text) if text == "default" => Some(Meaning::StackDefault),
        _ => {
            log.problem(&node.place, at, wrong(node, "true, false or \"default\""));
            None
        }
    }
}

/// Text of at most `longest` characters, without control characters.
fn text(node: &Node, longest: usize, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let problem = match &node.value {
        Value::Text(text) if text.trim().is_empty() => Problem::new("found nothing, expected some text"),
        Value::Text(text) if text.chars().any(char::is_control) => {
            Problem::new(format!("found {}, expected one line of text", node.found()))
        }
        Value::Text(text) if text.chars().count() > longest => {
            Problem::new(format!("found {} characters, expected at most {longest}", text.chars().count()))
        }
        Value::Text(_) => return Some(Meaning::AsWritten),
        _ => wrong(node, "some text"),
    };
    log.problem(&node.place, at, problem);
    None
}

/// One of the words, as the table spells it.
fn choice(node: &Node, words: &Words, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let word = one_of(node, words.noun, words.known.iter().copied(), words.later);
    let is_later = node.as_text().is_some_and(|text| words.later.iter().any(|word| is_same_word(word, text)));
    let explain = |problem: Problem| {
        if is_later && !words.why.is_empty() { problem.with_help(words.why) } else { problem }
    };
    word.map(Meaning::Word).map_err(|problem| log.problem(&node.place, at, explain(problem))).ok()
}

/// One of `known`; those of `later` are not available yet.
pub(crate) fn one_of(
    node: &Node,
    noun: &str,
    known: impl Iterator<Item = &'static str> + Clone,
    later: &[&str],
) -> Result<&'static str, Problem> {
    let list = or_list(known.clone());
    let Some(text) = node.as_text() else { return Err(wrong(node, &format!("{noun}: {list}"))) };
    if let Some(word) = known.clone().find(|word| is_same_word(word, text)) {
        return Ok(word);
    }
    let help = not_yet_help(text);
    if later.iter().any(|word| is_same_word(word, text)) {
        let message = format!("{} is not available yet; available: {list}", node.found());
        return Err(Problem { message, help });
    }
    let problem = wrong(node, &format!("{noun}: {list}"));
    Err(match (nearest(text, known), help) {
        // Of a slip of the pen the word itself helps most.
        (Some(word), _) => problem.with_help(format!("did you mean \"{word}\"?")),
        (None, Some(help)) => problem.with_help(help),
        (None, None) => problem,
    })
}

/// How `delayed_ack` is written; `true` is the stack's own.
fn delayed_ack(node: &Node, measures: &[Measure], at: At<'_>, log: &mut Log) -> Option<Meaning> {
    match &node.value {
        Value::Flag(true) => return Some(Meaning::StackDefault),
        Value::Flag(false) => return Some(Meaning::DelayedAck(DelayedAck::Off)),
        Value::Text(text) if text == "linux" => return Some(Meaning::DelayedAck(DelayedAck::Linux)),
        Value::Table(table) => {
            if let [entry] = table.entries.as_slice()
                && entry.name == "tick"
            {
                let period = duration(&entry.node, measures, at.key("tick"), log)?;
                return Some(Meaning::DelayedAck(DelayedAck::Tick { period }));
            }
        }
        Value::Text(text) => match quantity::parse(text, measures) {
            Ok(amount) => {
                let timeout = Duration::from_nanos(amount.count);
                return Some(Meaning::DelayedAck(DelayedAck::After { timeout }));
            }
            Err(problem) => {
                let message = format!("{}; or {DELAYED_ACK_FORMS}", problem.message);
                log.problem(&node.place, at, Problem { message, help: problem.help });
                return None;
            }
        },
        _ => {}
    }
    let form = format!("{} or {DELAYED_ACK_FORMS}", quantity::expected(measures));
    log.problem(&node.place, at, wrong(node, &form));
    None
}

/// The forms of `delayed_ack` besides a duration.
const DELAYED_ACK_FORMS: &str = "{ tick = \"200 ms\" }, \"linux\", true or false";

/// A duration, or a range `{ from, to }`.
fn start(node: &Node, measures: &[Measure], at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let Some(table) = node.as_table() else {
        return duration(node, measures, at, log).map(|start| Meaning::Range(start, start));
    };
    let (Some(from), Some(to), 2) = (table.get("from"), table.get("to"), table.entries.len()) else {
        let form = "a duration such as \"5 s\" or a range { from = \"0 s\", to = \"1 s\" }";
        log.problem(&node.place, at, wrong(node, form));
        return None;
    };
    let from = duration(from, measures, at.key("from"), log);
    let to = duration(to, measures, at.key("to"), log);
    match (from, to) {
        (Some(from), Some(to)) if from > to => {
            let message = format!("found a range from {from} to {to}, expected `from` not above `to`");
            log.problem(&node.place, at, Problem::new(message));
            None
        }
        (Some(from), Some(to)) => Some(Meaning::Range(from, to)),
        _ => None,
    }
}

/// A duration.
fn duration(node: &Node, measures: &[Measure], at: At<'_>, log: &mut Log) -> Option<Duration> {
    amount(node, measures, at, log).map(|amount| Duration::from_nanos(amount.count))
}

/// A quantity.
pub(crate) fn amount(node: &Node, measures: &[Measure], at: At<'_>, log: &mut Log) -> Option<Amount> {
    match quantity(node, measures, &[], at, log)? {
        Meaning::Amount(amount) => Some(amount),
        _ => None,
    }
}

/// A list of names, at least one.
fn names(node: &Node, listed: &Listed, at: At<'_>, log: &mut Log) -> Option<Meaning> {
    let Listed { one, many, example, most } = listed;
    let form = format!("a list of {many} such as {example}");
    let Value::List(list) = &node.value else {
        log.problem(&node.place, at, wrong(node, &form));
        return None;
    };
    if list.is_empty() {
        log.problem(&node.place, at, Problem::new(format!("found an empty list, expected {form}")));
        return None;
    }
    if list.len() > *most {
        let message = format!("found {} {many}, expected at most {most}", list.len());
        log.problem(&node.place, at, Problem::new(message));
        return None;
    }
    let mut is_right = true;
    for item in list.iter().filter(|item| item.as_text().is_none()) {
        log.problem(&item.place, at, wrong(item, one));
        is_right = false;
    }
    is_right.then_some(Meaning::AsWritten)
}

/// Found this, expected that.
pub(crate) fn wrong(node: &Node, form: &str) -> Problem {
    Problem::new(format!("found {}, expected {form}", node.found()))
}

/// The two parts of `{ from, step }`, if the table is a step.
pub(crate) fn as_step(table: &Table) -> Option<(&Node, &Node)> {
    match (table.get("from"), table.get("step"), table.entries.len()) {
        (Some(from), Some(step), 2) => Some((from, step)),
        _ => None,
    }
}

/// A name that is none of `known`, keys of `noun`.
pub(crate) fn unknown_key<'a>(
    name: &str,
    noun: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    let problem = Problem::new(format!("unknown key of {noun}"));
    match nearest(name, known.clone()) {
        Some(meant) => problem.with_help(format!("did you mean `{meant}`?")),
        None if not_yet_help(name).is_some() => {
            let known = known.collect::<Vec<_>>().join(", ");
            problem.with_help(format!("{}; known keys: {known}", not_yet_help(name).unwrap_or_default()))
        }
        None => problem.with_help(format!("known keys: {}", known.collect::<Vec<_>>().join(", "))),
    }
}

/// The one of `known` that `name` was probably meant to be.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |text: &str| text.trim().to_lowercase().replace(['-', ' '], "_");
    if name.len() > 100 {
        return None;
    }
    let name = fold(name);
    // A third of the letters may be wrong, and one always.
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .map(|candidate| (strsim::damerau_levenshtein(&name, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len().max(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "a, b or c".
pub(crate) fn or_list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

pub(crate) fn expected_quantity(measures: &[Measure], words: &[&str]) -> String {
    let mut form = quantity::expected(measures);
    for word in words {
        form.push_str(&format!(" or \"{word}\""));
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{CAMPAIGN, ROOT};
    use crate::quantity::parse;
    use crate::spec::{Default, Key, Kind};

    fn walk(
        keys: &'static [Key],
        above: At<'_>,
        check: &mut dyn FnMut(&'static Key, &'static [Measure], At<'_>),
    ) {
        for key in keys {
            let at = above.key(key.name);
            match &key.kind {
                Kind::Table(spec) | Kind::Map(spec) | Kind::Path(spec) => walk(spec.keys, at, check),
                Kind::Tagged(tagged) => tagged.variants.iter().for_each(|it| walk(it.keys, at, check)),
                Kind::Quantity { measures, .. } | Kind::LinkRate { measures, .. } => check(key, measures, at),
                Kind::Start(measures) | Kind::DelayedAck(measures) => check(key, measures, at),
                _ => {}
            }
        }
    }

    /// Every quantity key of scenarios and campaigns.
    fn every(check: &mut dyn FnMut(&'static Key, &'static [Measure], At<'_>)) {
        walk(ROOT.keys, At::ROOT, check);
        walk(CAMPAIGN.keys, At::ROOT, check);
    }

    #[test]
    fn every_quantity_key_has_a_usual_range_that_holds_its_default_and_some_allowed_values() {
        let mut met = 0;
        every(&mut |key, measures, at| {
            for measure in measures {
                let (low, high) =
                    usual_at(at, measure.dimension).unwrap_or_else(|| panic!("{at}: no usual range"));
                assert!(low < high && low <= measure.most && high >= measure.least, "{at}");
            }
            if let Default::Is(text) = key.default
                && let Ok(amount) = parse(text.trim_matches('"'), measures)
                && amount.count > 0
            {
                let (low, high) = usual_at(at, amount.dimension).unwrap();
                assert!((low..=high).contains(&amount.count), "{at}: the default {amount} is not usual");
            }
            met += 1;
        });
        assert!(met > 60, "{met}");
    }

    #[test]
    fn what_is_proposed_for_a_number_is_allowed_and_usual_for_its_key() {
        for text in ["1", "7", "20", "150", "1500", "64000", "1000000", "0.5", "250000000", "3.25"] {
            every(&mut |_, measures, at| {
                let Some(proposed) = proposal(text, measures, at) else { return };
                let amount =
                    parse(&proposed, measures).unwrap_or_else(|why| panic!("{at} = {text}: {why:?}"));
                let (low, high) = usual_at(at, amount.dimension).unwrap();
                assert!((low..=high).contains(&amount.count), "{at} = {text}: {proposed}");
            });
        }
    }
}
