//! Reads single values. The [`Kind`] of the key tells which values are right.
//!
//! - The *meaning* of a value is the value in the type of its key ([`Meaning`]).
//! - The *form* is the text in messages that describes the right values: "a whole number from 1 to 9".
//! - The *key path* ([`KeyPath`]) is the names from the root to a value: `path.up.rate`.
//!
//! The pass [`crate::pass::check`] reads each value once. A value that steps from copy to copy is read once
//! for each copy. [`crate::section`] then takes the meanings. Begin to read with [`meaning`].

use core::fmt;

use talkpath_config::DelayedAck;
use talkpath_units::Duration;

use crate::diagnostic::{Log, Place};
use crate::elsewhere::name_elsewhere;
use crate::form::{form, or_list, quantity_form};
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

/// Reads a value for a key of this kind. A mistake goes to `log`. Returns `None` for a wrong value, and for a
/// table, whose keys are read one by one.
pub(crate) fn meaning(node: &Node, kind: &Kind, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    let result = match kind {
        Kind::Text { longest } => text(node, *longest),
        Kind::File(_) => text(node, LONGEST_PATH),
        Kind::Quantity { ranges, words } => quantity(node, ranges, words, at),
        Kind::LinkRate { ranges, words } => match node.as_table() {
            Some(table) => return rate_of_trace(table, node, kind, at, log),
            None => quantity(node, ranges, words, at),
        },
        Kind::Choice(words) => choice(node, words),
        Kind::DelayedAck(ranges) => return delayed_ack(node, ranges, at, log),
        Kind::Start(ranges) => return start(node, ranges, at, log),
        Kind::Names(listed) => return names(node, listed, at, log),
        Kind::Flag
        | Kind::FlagOrDefault
        | Kind::Count { .. }
        | Kind::Seed
        | Kind::Probability
        | Kind::Number { .. } => plain(&node.value, kind).ok_or_else(|| wrong_plain(node, kind)),
        Kind::Table(_)
        | Kind::Tagged(_)
        | Kind::Map(_)
        | Kind::List(_)
        | Kind::Path(_)
        | Kind::Sweep
        | Kind::Thresholds => return None,
    };
    right(result, &node.place, at, log)
}

/// Returns the value if it is right. Otherwise the problem goes to `log`.
fn right<T>(result: Result<T, Problem>, place: &Place, at: KeyPath<'_>, log: &mut Log) -> Option<T> {
    result.map_err(|problem| log.mistake(place, at, problem)).ok()
}

/// Reads a flag or a number. The pass [`crate::pass::values`] has replaced percentages by numbers. Returns
/// `None` if the value is not one of those that [`form`] describes.
fn plain(value: &Value, kind: &Kind) -> Option<Meaning> {
    match (kind, value) {
        (Kind::Flag | Kind::FlagOrDefault, Value::Flag(flag)) => Some(Meaning::Flag(*flag)),
        (Kind::FlagOrDefault, Value::Text(text)) if text == "default" => Some(Meaning::StackDefault),
        (Kind::Count { least, most }, Value::Number(text)) => {
            let count = text.parse().ok().filter(|count| (least..=most).contains(&count));
            count.map(Meaning::Count)
        }
        (Kind::Seed, Value::Number(text) | Value::Text(text)) => as_seed(text).map(Meaning::Count),
        (Kind::Probability, Value::Number(text)) => number(text, |share| (0.0..=1.0).contains(&share)),
        (Kind::Number { above, most }, Value::Number(text)) => {
            number(text, |number| number > *above && number <= *most)
        }
        _ => None,
    }
}

/// Reads a finite number for which `fits` returns true.
fn number(text: &str, fits: impl Fn(f64) -> bool) -> Option<Meaning> {
    let number: f64 = text.parse().ok()?;
    // Minus zero is zero.
    (number.is_finite() && fits(number)).then_some(Meaning::Number(number + 0.0))
}

/// Makes the problem of a wrong flag or number.
fn wrong_plain(node: &Node, kind: &Kind) -> Problem {
    let help = match (kind, &node.value) {
        (Kind::Probability, Value::Number(text)) => text.parse().ok().and_then(quantity::percent_help),
        _ => None,
    };
    Problem { help, ..wrong(node, &form(kind)) }
}

/// Reads a whole number of 64 bits, which has digits alone.
pub(crate) fn as_seed(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads a quantity, or one of `words`.
fn quantity(
    node: &Node,
    ranges: &[DimensionRange],
    words: &[&'static str],
    at: KeyPath<'_>,
) -> Result<Meaning, Problem> {
    match &node.value {
        Value::Text(text) => {
            if let Some(word) = words.iter().find(|word| is_same_word(word, text)) {
                return Ok(Meaning::Word(word));
            }
            quantity::parse(text, ranges).map(Meaning::Amount).map_err(|problem| {
                match nearest(text, words.iter().copied()) {
                    Some(word) => problem.with_help(format!("did you mean \"{word}\"?")),
                    None => problem,
                }
            })
        }
        Value::Number(text) => {
            let help = match proposal(text, ranges, at) {
                Some(proposed) => format!("a number needs its unit: \"{proposed}\"?"),
                None => format!("a number needs its unit: {}", quantity::unit_list(ranges)),
            };
            Err(wrong(node, &quantity_form(ranges, words)).with_help(help))
        }
        _ => Err(wrong(node, &quantity_form(ranges, words))),
    }
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

/// Reads the rate of a link that follows a trace: `{ trace = "FILE" }`. `node` has this table.
fn rate_of_trace(table: &Table, node: &Node, kind: &Kind, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    for entry in table.entries.iter().filter(|entry| entry.name != "trace") {
        let problem = unknown_key(&entry.name, "a rate", core::iter::once("trace"));
        log.mistake(&entry.place, at.key(&entry.name), problem);
    }
    match table.get("trace") {
        Some(trace) => right(text(trace, LONGEST_PATH), &trace.place, at.key("trace"), log),
        None => {
            log.mistake(&node.place, at, wrong(node, &form(kind)));
            None
        }
    }
}

/// Reads a text of at most `longest` characters, without control characters.
fn text(node: &Node, longest: usize) -> Result<Meaning, Problem> {
    let Some(text) = node.as_text() else { return Err(wrong(node, "some text")) };
    let length = text.chars().count();
    if text.trim().is_empty() {
        Err("found nothing, expected some text".into())
    } else if text.chars().any(char::is_control) {
        Err(wrong(node, "one line of text"))
    } else if length > longest {
        Err(format!("found {length} characters, expected at most {longest}").into())
    } else {
        Ok(Meaning::AsWritten)
    }
}

/// Reads a word. The meaning has the spelling of the key table.
fn choice(node: &Node, words: &Words) -> Result<Meaning, Problem> {
    let is_later = node.as_text().is_some_and(|text| words.later.iter().any(|word| is_same_word(word, text)));
    match one_of(node, words.noun, words.known.iter().copied(), words.later) {
        Err(problem) if is_later && !words.why.is_empty() => Err(problem.with_help(words.why)),
        word => word.map(Meaning::Word),
    }
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
    let help = name_elsewhere(text, noun).map(str::to_owned).or_else(|| not_yet_help(text));
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
    let rule = match &node.value {
        Value::Flag(true) => return Some(Meaning::StackDefault),
        Value::Flag(false) => Ok(DelayedAck::Off),
        Value::Text(text) if text == "linux" => Ok(DelayedAck::Linux),
        Value::Text(text) => match quantity::parse(text, ranges) {
            Ok(amount) => Ok(DelayedAck::After { timeout: Duration::from_nanos(amount.count) }),
            Err(Problem { message, help }) => {
                Err(Problem { message: format!("{message}; or {DELAYED_ACK_FORMS}"), help })
            }
        },
        Value::Table(Table { entries }) if matches!(&entries[..], [entry] if entry.name == "tick") => {
            let period = duration(&entries.first()?.node, ranges, at.key("tick"), log)?;
            Ok(DelayedAck::Tick { period })
        }
        _ => Err(wrong(node, &format!("{} or {DELAYED_ACK_FORMS}", quantity::expected(ranges)))),
    };
    right(rule, &node.place, at, log).map(Meaning::DelayedAck)
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
        log.mistake(&node.place, at, wrong(node, form));
        return None;
    };
    let from = duration(from, ranges, at.key("from"), log);
    let to = duration(to, ranges, at.key("to"), log);
    let (from, to) = (from?, to?);
    if from > to {
        let message = format!("found a range from {from} to {to}, expected `from` not above `to`");
        log.mistake(&node.place, at, message);
        return None;
    }
    Some(Meaning::Range(from, to))
}

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
    match right(quantity(node, ranges, &[], at), &node.place, at, log)? {
        Meaning::Amount(amount) => Some(amount),
        _ => None,
    }
}

/// Reads a list of names. There is at least one.
fn names(node: &Node, listed: &Listed, at: KeyPath<'_>, log: &mut Log) -> Option<Meaning> {
    let Listed { one, many, example, most } = listed;
    let form = format!("a list of {many} such as {example}");
    let problem = match &node.value {
        Value::List(list) if list.is_empty() => format!("found an empty list, expected {form}").into(),
        Value::List(list) if list.len() > *most => {
            format!("found {} {many}, expected at most {most}", list.len()).into()
        }
        Value::List(list) => {
            let others: Vec<_> = list.iter().filter(|item| item.as_text().is_none()).collect();
            for item in &others {
                log.mistake(&item.place, at, wrong(item, one));
            }
            return others.is_empty().then_some(Meaning::AsWritten);
        }
        _ => wrong(node, &form),
    };
    log.mistake(&node.place, at, problem);
    None
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

/// Makes the problem of a name that is not in `known`. `what` is what the name should name, such as "flow".
pub(crate) fn unknown_name(name: &str, what: &str, known: &[String]) -> Problem {
    let problem = Problem::new(format!("there is no {what} called {}", quantity::quote(name)));
    match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => problem.with_help(format!("did you mean \"{meant}\"?")),
        None if known.is_empty() => problem,
        None => problem.with_help(format!("there are: {}", known.join(", "))),
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
