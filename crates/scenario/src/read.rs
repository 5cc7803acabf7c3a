//! Reads single values. The [`Kind`] of the key tells which values are right.
//!
//! - The *meaning* of a value is the value in the type of its key ([`Meaning`]).
//! - The *form* is the text in messages that describes the right values: "a whole number from 1 to 9".
//! - The *key path* ([`KeyPath`]) is the names from the root to a value: `path.up.rate`.
//!
//! Each value is read once: a value of the file by [`crate::pass::check`], a default by
//! [`crate::pass::fill`], and a value that steps from copy to copy once for each copy. [`crate::section`]
//! then takes the meanings. Begin to read with [`meaning`].

use core::fmt;

use talkpath_config::DelayedAck;
use talkpath_units::Duration;

use crate::diagnostic::{Log, Place};
use crate::not_yet::not_yet_help;
use crate::quantity::{self, Amount, Dimension, DimensionRange, Problem};
use crate::spec::{Kind, LONGEST_PATH, Listed, Words, is_same_word};
use crate::tree::{Meaning, Node, Table, Value};
use crate::usual::usual;

/// The names from the root to a value.
#[derive(Clone, Copy)]
pub(crate) struct KeyPath<'a> {
    parent: Option<&'a KeyPath<'a>>,
    name: &'a str,
}

impl<'a> KeyPath<'a> {
    /// The root of the file.
    pub(crate) const ROOT: KeyPath<'static> = KeyPath { parent: None, name: "" };

    pub(crate) const fn key(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), name }
    }

    /// Returns the last name.
    pub(crate) const fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the path of the key to which a part such as `from` belongs, or the path itself if it is no
    /// part.
    fn without_part(&self) -> &Self {
        match self.parent {
            Some(parent) if PARTS.contains(&self.name) => parent.without_part(),
            _ => self,
        }
    }
}

impl fmt::Display for KeyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parent {
            Some(parent) if parent.parent.is_some() => write!(f, "{parent}.{}", self.name),
            _ => f.write_str(self.name),
        }
    }
}

impl Log {
    /// Records a problem with the value at the key path `at`.
    pub(crate) fn problem(&mut self, place: &Place, at: KeyPath<'_>, problem: Problem) {
        self.mistake(place, &at.to_string(), problem.message, problem.help);
    }
}

/// Reads a value for a key of this kind. A mistake goes to `log`. Returns `None` for a wrong value, and for a
/// table, whose keys are read one by one.
pub(crate) fn meaning(node: &Node, kind: &Kind, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    match kind {
        Kind::Text { longest } => text(node, *longest, at, log),
        Kind::File(_) => text(node, LONGEST_PATH, at, log),
        Kind::Flag => flag(node, at, log),
        Kind::Count { least, most } => count(node, *least, *most, at, log),
        Kind::Seed => seed(node, at, log),
        Kind::Probability => probability(node, at, log),
        Kind::Number { above, most } => bounded(node, *above, *most, at, log),
        Kind::Quantity { ranges, words } => quantity(node, ranges, words, at, log),
        Kind::LinkRate { ranges, words } => link_rate(node, ranges, words, at, log),
        Kind::Choice(words) => choice(node, words, at, log),
        Kind::FlagOrDefault => flag_or_default(node, at, log),
        Kind::DelayedAck(ranges) => delayed_ack(node, ranges, at, log),
        Kind::Start(ranges) => start(node, ranges, at, log),
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

/// Reads a quantity, or one of `words`.
fn quantity(
    node: &Node,
    ranges: &[DimensionRange],
    words: &[&'static str],
    at: KeyPath<'_>,
    log: &mut Log,
) -> Option<Meaning> {
    let problem = match &node.value {
        Value::Text(text) => {
            if let Some(word) = words.iter().find(|word| is_same_word(word, text)) {
                return Some(Meaning::Word(word));
            }
            match quantity::parse(text, ranges) {
                Ok(amount) => return Some(Meaning::Amount(amount)),
                Err(problem) => match nearest(text, words.iter().copied()) {
                    Some(word) => problem.with_help(format!("did you mean \"{word}\"?")),
                    None => problem,
                },
            }
        }
        Value::Number(text) => {
            let help = match proposal(text, ranges, at) {
                Some(proposed) => format!("a number needs its unit: \"{proposed}\"?"),
                None => format!("a number needs its unit: {}", quantity::unit_list(ranges)),
            };
            wrong(node, &expected_quantity(ranges, words)).with_help(help)
        }
        _ => wrong(node, &expected_quantity(ranges, words)),
    };
    log.problem(&node.place, at, problem);
    None
}

/// Returns the quantity that was probably meant by a number without a unit.
pub(crate) fn proposal(number: &str, ranges: &[DimensionRange], at: KeyPath<'_>) -> Option<String> {
    quantity::proposal(number, ranges, |dimension| usual_at(at, dimension))
}

/// Returns the usual range of a quantity at the key path `at`.
fn usual_at(at: KeyPath<'_>, dimension: Dimension) -> Option<(u64, u64)> {
    let key = at.without_part();
    usual(key.name, key.parent.map_or("", |parent| parent.name), dimension)
}

/// The keys inside of a range, a step or a tick. Their values are of the same kind as the key around them.
const PARTS: [&str; 4] = ["from", "to", "step", "tick"];

/// Reads a whole number from `least` to `most`.
fn count(node: &Node, least: u64, most: u64, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
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

/// Reads a seed: a whole number, or a text of digits, because a TOML integer ends at 2^63.
fn seed(node: &Node, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    let seed = match &node.value {
        Value::Number(text) | Value::Text(text) => as_seed(text),
        _ => None,
    };
    if seed.is_none() {
        log.problem(&node.place, at, wrong(node, SEED_FORM));
    }
    seed.map(Meaning::Count)
}

/// Reads a whole number of 64 bits, which has digits alone.
pub(crate) fn as_seed(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The form of a seed.
pub(crate) const SEED_FORM: &str = "a whole number from 0 to 18446744073709551615";

/// Reads a number for which `fits` returns true.
fn number(
    node: &Node,
    form: &str,
    fits: impl Fn(f64) -> bool,
    at: KeyPath<'_>,
    log: &mut Log,
) -> Option<Meaning> {
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

/// Reads a number above `above` and at most `most`.
fn bounded(node: &Node, above: f64, most: f64, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    let form = format!("a number above {above} and at most {most}");
    number(node, &form, |value| value > above && value <= most, at, log)
}

/// Reads the rate of a link: a quantity, a word, or `{ trace = "FILE" }`.
fn link_rate(
    node: &Node,
    ranges: &[DimensionRange],
    words: &[&'static str],
    at: KeyPath<'_>,
    log: &mut Log,
) -> Option<Meaning> {
    let Some(table) = node.as_table() else { return quantity(node, ranges, words, at, log) };
    for entry in table.entries.iter().filter(|entry| entry.name != "trace") {
        let problem = unknown_key(&entry.name, "a rate", core::iter::once("trace"));
        log.problem(&entry.place, at.key(&entry.name), problem);
    }
    let Some(trace) = table.get("trace") else {
        let form = expected_quantity(ranges, words);
        log.problem(&node.place, at, wrong(node, &format!("{form} or {{ trace = \"FILE\" }}")));
        return None;
    };
    text(trace, LONGEST_PATH, at.key("trace"), log)
}

/// The form of a share.
pub(crate) const SHARE_FORM: &str = "a share from 0 to 1, or \"0%\" to \"100%\"";

/// Reads a share from 0 to 1. The pass [`crate::pass::values`] has replaced percentages by numbers.
fn probability(node: &Node, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
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

/// Reads `true` or `false`.
fn flag(node: &Node, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    if let Value::Flag(flag) = node.value {
        return Some(Meaning::Flag(flag));
    }
    log.problem(&node.place, at, wrong(node, "true or false"));
    None
}

/// Reads `true`, `false` or `"default"`.
fn flag_or_default(node: &Node, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    match &node.value {
        Value::Flag(flag) => Some(Meaning::Flag(*flag)),
        Value::Text(text) if text == "default" => Some(Meaning::StackDefault),
        _ => {
            log.problem(&node.place, at, wrong(node, "true, false or \"default\""));
            None
        }
    }
}

/// Reads a text of at most `longest` characters, without control characters.
fn text(node: &Node, longest: usize, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
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

/// Reads a word. The meaning has the spelling of the key table.
fn choice(node: &Node, words: &Words, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    let mut problem = match one_of(node, words.noun, words.known.iter().copied(), words.later) {
        Ok(word) => return Some(Meaning::Word(word)),
        Err(problem) => problem,
    };
    let is_later = node.as_text().is_some_and(|text| words.later.iter().any(|word| is_same_word(word, text)));
    if is_later && !words.why.is_empty() {
        problem = problem.with_help(words.why);
    }
    log.problem(&node.place, at, problem);
    None
}

/// Reads one of the words of `known`.
///
/// # Errors
/// Returns a hint with the most similar word. A word of `later` is not available yet, and the message says
/// so.
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
        // A similar word is more useful than a page, so it comes first.
        (Some(word), _) => problem.with_help(format!("did you mean \"{word}\"?")),
        (None, Some(help)) => problem.with_help(help),
        (None, None) => problem,
    })
}

/// Reads `delayed_ack`. `true` is the default of the stack.
fn delayed_ack(node: &Node, ranges: &[DimensionRange], at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    match &node.value {
        Value::Flag(true) => return Some(Meaning::StackDefault),
        Value::Flag(false) => return Some(Meaning::DelayedAck(DelayedAck::Off)),
        Value::Text(text) if text == "linux" => return Some(Meaning::DelayedAck(DelayedAck::Linux)),
        Value::Table(table) => {
            if let [entry] = table.entries.as_slice()
                && entry.name == "tick"
            {
                let period = duration(&entry.node, ranges, at.key("tick"), log)?;
                return Some(Meaning::DelayedAck(DelayedAck::Tick { period }));
            }
        }
        Value::Text(text) => match quantity::parse(text, ranges) {
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
    let form = format!("{} or {DELAYED_ACK_FORMS}", quantity::expected(ranges));
    log.problem(&node.place, at, wrong(node, &form));
    None
}

/// The forms of `delayed_ack` besides a duration.
const DELAYED_ACK_FORMS: &str = "{ tick = \"200 ms\" }, \"linux\", true or false";

/// Reads a duration, or a range `{ from, to }`.
fn start(node: &Node, ranges: &[DimensionRange], at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    let Some(table) = node.as_table() else {
        return duration(node, ranges, at, log).map(|start| Meaning::Range(start, start));
    };
    let (Some(from), Some(to), 2) = (table.get("from"), table.get("to"), table.entries.len()) else {
        let form = "a duration such as \"5 s\" or a range { from = \"0 s\", to = \"1 s\" }";
        log.problem(&node.place, at, wrong(node, form));
        return None;
    };
    let from = duration(from, ranges, at.key("from"), log);
    let to = duration(to, ranges, at.key("to"), log);
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

/// Reads a duration.
fn duration(node: &Node, ranges: &[DimensionRange], at: KeyPath<'_>, log: &mut Log) -> Option<Duration> {
    amount(node, ranges, at, log).map(|amount| Duration::from_nanos(amount.count))
}

/// Reads a quantity.
pub(crate) fn amount(
    node: &Node,
    ranges: &[DimensionRange],
    at: KeyPath<'_>,
    log: &mut Log,
) -> Option<Amount> {
    match quantity(node, ranges, &[], at, log)? {
        Meaning::Amount(amount) => Some(amount),
        _ => None,
    }
}

/// Reads a list of names. There is at least one.
fn names(node: &Node, listed: &Listed, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
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

/// Makes a problem with the text "found ..., expected FORM".
pub(crate) fn wrong(node: &Node, form: &str) -> Problem {
    Problem::new(format!("found {}, expected {form}", node.found()))
}

/// Returns the two values of `{ from, step }`, or `None` if the table is something else.
pub(crate) fn as_step(table: &Table) -> Option<(&Node, &Node)> {
    match (table.get("from"), table.get("step"), table.entries.len()) {
        (Some(from), Some(step), 2) => Some((from, step)),
        _ => None,
    }
}

/// Makes the problem of a key that is not in `known`. `noun` is the noun of the table: "a link".
pub(crate) fn unknown_key<'a>(
    name: &str,
    noun: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    let problem = Problem::new(format!("unknown key of {noun}"));
    match nearest(name, known.clone()) {
        Some(similar) => problem.with_help(format!("did you mean `{similar}`?")),
        None if not_yet_help(name).is_some() => {
            let known = known.collect::<Vec<_>>().join(", ");
            problem.with_help(format!("{}; known keys: {known}", not_yet_help(name).unwrap_or_default()))
        }
        None => problem.with_help(format!("known keys: {}", known.collect::<Vec<_>>().join(", "))),
    }
}

/// Returns the word of `known` that is most similar to `name`, or `None` if none is similar. It was probably
/// meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |text: &str| text.trim().to_lowercase().replace(['-', ' '], "_");
    if name.len() > 100 {
        return None;
    }
    let name = fold(name);
    // We chose to allow errors in a third of the letters, from one to three.
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .map(|candidate| (strsim::damerau_levenshtein(&name, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len().max(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Joins words for a message: "a, b or c".
pub(crate) fn or_list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Describes the quantities and words that a key takes.
pub(crate) fn expected_quantity(ranges: &[DimensionRange], words: &[&str]) -> String {
    let mut form = quantity::expected(ranges);
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
        above: KeyPath<'_>,
        check: &mut dyn FnMut(&'static Key, &'static [DimensionRange], KeyPath<'_>),
    ) {
        for key in keys {
            let at = above.key(key.name);
            match &key.kind {
                Kind::Table(spec) | Kind::Map(spec) | Kind::Path(spec) => walk(spec.keys, at, check),
                Kind::Tagged(tagged) => {
                    tagged.variants.iter().for_each(|variant| walk(variant.keys, at, check));
                }
                Kind::Quantity { ranges, .. } | Kind::LinkRate { ranges, .. } => check(key, ranges, at),
                Kind::Start(ranges) | Kind::DelayedAck(ranges) => check(key, ranges, at),
                _ => {}
            }
        }
    }

    /// Calls `check` for every quantity key of scenarios and campaigns.
    fn for_each_key(check: &mut dyn FnMut(&'static Key, &'static [DimensionRange], KeyPath<'_>)) {
        walk(ROOT.keys, KeyPath::ROOT, check);
        walk(CAMPAIGN.keys, KeyPath::ROOT, check);
    }

    #[test]
    fn every_quantity_key_has_a_usual_range_that_holds_its_default_and_some_allowed_values() {
        let mut key_count = 0;
        for_each_key(&mut |key, ranges, at| {
            for range in ranges {
                let (low, high) =
                    usual_at(at, range.dimension).unwrap_or_else(|| panic!("{at}: no usual range"));
                assert!(low < high && low <= range.most && high >= range.least, "{at}");
            }
            if let Default::Is(text) = key.default
                && let Ok(amount) = parse(text.trim_matches('"'), ranges)
                && amount.count > 0
            {
                let (low, high) = usual_at(at, amount.dimension).unwrap();
                assert!((low..=high).contains(&amount.count), "{at}: the default {amount} is not usual");
            }
            key_count += 1;
        });
        assert!(key_count > 60, "{key_count}");
    }

    #[test]
    fn what_is_proposed_for_a_number_is_allowed_and_usual_for_its_key() {
        for text in ["1", "7", "20", "150", "1500", "64000", "1000000", "0.5", "250000000", "3.25"] {
            for_each_key(&mut |_, ranges, at| {
                let Some(proposed) = proposal(text, ranges, at) else { return };
                let amount = parse(&proposed, ranges).unwrap_or_else(|why| panic!("{at} = {text}: {why:?}"));
                let (low, high) = usual_at(at, amount.dimension).unwrap();
                assert!((low..=high).contains(&amount.count), "{at} = {text}: {proposed}");
            });
        }
    }
}
