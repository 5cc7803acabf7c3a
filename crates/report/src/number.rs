//! Numbers and lists in sentences. `measure::figures` says how the figures of tables are written.

use talkpath_measure::figures::Scale;
use talkpath_measure::figures::text::three_digits;
pub(crate) use talkpath_measure::figures::text::{UNKNOWN, count, decimals, fixed};
use talkpath_units::numbered;

/// The no-break space, U+00A0.
pub(crate) const NO_BREAK: char = '\u{a0}';
/// The units that stay on one line with their numbers.
const GLUED_UNITS: [&str; 4] = ["%", "ms", "kb/s", "Mb/s"];

/// Writes a share of 1 as a percentage with two decimals and without the sign.
pub(crate) fn percent(share: Option<f64>) -> String {
    Scale::PERCENT.text(share)
}

/// Writes milliseconds with the unit.
pub(crate) fn ms(value: f64) -> String {
    format!("{} ms", three_digits(value))
}

/// Writes a number with its noun: `1 repetition`, `12 000 repetitions`.
pub(crate) fn counted(value: u64, noun: &str) -> String {
    format!("{} {}", count(value), numbered(value, noun))
}

/// Replaces the space between a number and its unit by a no-break space, so that no line ends between them.
pub(crate) fn glued(text: &str) -> String {
    let mut glued = text.to_owned();
    for unit in GLUED_UNITS {
        glued = glued.replace(&format!(" {unit}"), &format!("{NO_BREAK}{unit}"));
    }
    glued
}

/// Writes a list: `a`, `a and b`, `a, b and c`. If an item has a comma, the list has semicolons: `a, x; b, y
/// and c, z`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => {
            let separator = if items.iter().any(|item| item.contains(',')) { "; " } else { ", " };
            format!("{} and {last}", first.join(separator))
        }
    }
}

/// Returns each of the items once, in the order of their first appearance.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_items_with_commas_has_semicolons() {
        let list_of = |items: &[&str]| list(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        assert_eq!(list_of(&["a", "b", "c"]), "a, b and c");
        assert_eq!(
            list_of(&["UDP, loss = 0.0", "TCP", "UDP, loss = 0.1"]),
            "UDP, loss = 0.0; TCP and UDP, loss = 0.1"
        );
    }

    #[test]
    fn one_lost_message_in_a_million_is_not_printed_as_none() {
        assert_eq!(percent(Some(1e-6)), "<0.01");
        assert_eq!(percent(Some(0.0)), "0.00");
        assert_eq!(percent(Some(0.031)), "3.10");
    }

    #[test]
    fn a_delay_in_a_sentence_has_three_digits() {
        assert_eq!(ms(182.44), "182 ms");
        assert_eq!(ms(0.0421), "0.042 ms");
    }

    #[test]
    fn one_item_has_no_plural() {
        assert_eq!(counted(1, "repetition"), "1 repetition");
        assert_eq!(counted(12_000, "message"), "12 000 messages");
    }

    #[test]
    fn a_list_reads_as_a_sentence() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&items), "a, b and c");
        assert_eq!(list(&items[..2]), "a and b");
        assert_eq!(list(&[]), "");
    }
}
