//! Describes the values that a key takes, for messages and the documentation: "a whole number from 1 to 9".

use crate::quantity::{self, DimensionRange};
use crate::spec::{Kind, TableSpec};

pub(crate) fn form(kind: &Kind) -> String {
    match kind {
        Kind::Text { .. } | Kind::File(_) => "some text".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Count { least, most } => format!("a whole number from {least} to {most}"),
        Kind::Seed => "a whole number from 0 to 18446744073709551615".to_owned(),
        Kind::Probability => "a share from 0 to 1, or \"0%\" to \"100%\"".to_owned(),
        Kind::Number { above, most } => {
            let percent = if kind.is_share() { ", or the same in per cent" } else { "" };
            format!("a number above {above} and at most {most}{percent}")
        }
        Kind::Quantity { ranges, words } => quantity_form(ranges, words),
        Kind::LinkRate { ranges, words } => {
            format!("{} or {{ trace = \"FILE\" }}", quantity_form(ranges, words))
        }
        Kind::Choice(words) => format!("{}: {}", words.noun, or_list(words.known.iter().copied())),
        Kind::FlagOrDefault => "true, false or \"default\"".to_owned(),
        Kind::DelayedAck(ranges) | Kind::Start(ranges) => quantity::expected(ranges),
        Kind::Names(listed) => format!("a list of {}", listed.many),
        Kind::Table(spec) => table_form(spec),
        Kind::Tagged(tagged) => {
            format!("{}: {}", tagged.noun, or_list(tagged.variants.iter().map(|variant| variant.name)))
        }
        Kind::Map(spec) => format!("at least one table, {} by its name", spec.noun),
        Kind::List(spec) => format!("tables in a list, each {}", spec.noun),
        Kind::Path(_) => "the name of a path, or a table with `up` and `down`".to_owned(),
        Kind::Sweep => "lists of values by key".to_owned(),
        Kind::Thresholds => "bounds such as \">= 3.6\" by figure".to_owned(),
    }
}

/// Describes a table with these keys.
pub(crate) fn table_form(spec: &TableSpec) -> String {
    let keys = spec.keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
    format!("a table of {}'s keys: {keys}", spec.noun)
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
pub(crate) fn quantity_form(ranges: &[DimensionRange], words: &[&str]) -> String {
    let mut form = quantity::expected(ranges);
    for word in words {
        form.push_str(&format!(" or \"{word}\""));
    }
    form
}
