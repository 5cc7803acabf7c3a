//! Numbers in sentences, and lists of things. How a figure is written, `measure::figures` says.

use talkpath_measure::figures::Scale;
use talkpath_measure::figures::text::three_digits;
pub(crate) use talkpath_measure::figures::text::{UNKNOWN, count, decimals, fixed};
use talkpath_units::numbered;

/// A share of 1 as a percentage with two decimals, without the sign.
pub(crate) fn percent(share: Option<f64>) -> String {
    Scale::PERCENT.text(share)
}

/// Milliseconds in a sentence, with the unit.
pub(crate) fn ms(value: f64) -> String {
    format!("{} ms", three_digits(value))
}

/// `1 repetition`, `12 000 repetitions`.
pub(crate) fn counted(value: u64, noun: &str) -> String {
    format!("{} {}", count(value), numbered(value, noun))
}

/// `text` with no-break spaces between numbers and their units, so that a line never ends between them.
pub(crate) fn glued(text: &str) -> String {
    ["%", "ms", "kb/s", "Mb/s"]
        .iter()
        .fold(text.to_owned(), |text, unit| text.replace(&format!(" {unit}"), &format!("{NO_BREAK}{unit}")))
}

/// U+00A0.
pub(crate) const NO_BREAK: char = '\u{a0}';

/// `a`, `a and b`, `a, b and c`; `a, x; b, y and c, z` if the items have commas of their own.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => {
            let between = if items.iter().any(|item| item.contains(',')) { "; " } else { ", " };
            format!("{} and {last}", first.join(between))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_items_with_commas_is_parted_by_semicolons() {
        let of = |items: &[&str]| list(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["a", "b", "c"]), "a, b and c");
        assert_eq!(
            of(&["UDP, loss = 0.0", "TCP", "UDP, loss = 0.1"]),
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
    fn sentences_keep_three_figures() {
        assert_eq!(ms(182.44), "182 ms");
        assert_eq!(ms(0.0421), "0.042 ms");
    }

    #[test]
    fn one_of_a_thing_has_no_plural() {
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
