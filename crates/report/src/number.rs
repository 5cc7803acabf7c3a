//! Numbers for people: as many digits as are needed to distinguish values, a figure that is not there as a
//! dash, and a small loss never as no loss.

/// What stands in place of an unknown figure.
pub(crate) const UNKNOWN: &str = "–";

/// How many decimals milliseconds of this size need so that neighbours in a column can be distinguished.
pub(crate) fn decimals(largest: f64) -> usize {
    match largest.abs() {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 10_000.0 => 1,
        _ => 0,
    }
}

/// `value` with this number of decimals; a value that rounds to zero but is not zero says so.
pub(crate) fn fixed(value: Option<f64>, decimals: usize) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return UNKNOWN.to_owned() };
    let text = format!("{value:.decimals$}");
    let rounds_to_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-'));
    match rounds_to_zero {
        true if value == 0.0 => text.trim_start_matches('-').to_owned(),
        true => format!("<{:.decimals$}", 10f64.powi(-(decimals as i32))),
        false => text,
    }
}

/// A share of 1 as a percentage with two decimals, without the sign.
pub(crate) fn percent(share: Option<f64>) -> String {
    fixed(share.map(|share| share * 100.0), 2)
}

/// Milliseconds in a sentence, with the unit: three figures are enough for a reader.
pub(crate) fn ms(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{} ms", fixed(Some(value), decimals))
}

/// A count with thin groups of three: `12 345`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digits.len() > 4 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// `1 repetition`, `3 repetitions`.
pub(crate) fn counted(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
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
    fn a_figure_that_is_not_there_is_a_dash() {
        assert_eq!(fixed(None, 1), "–");
        assert_eq!(fixed(Some(f64::NAN), 1), "–");
        assert_eq!(fixed(Some(-0.0), 1), "0.0");
    }

    #[test]
    fn sentences_keep_three_figures() {
        assert_eq!(ms(182.44), "182 ms");
        assert_eq!(ms(0.0421), "0.042 ms");
    }

    #[test]
    fn counts_are_grouped_from_five_digits_on() {
        assert_eq!((count(3000), count(30_000), count(1_234_567)).1, "30 000");
        assert_eq!(count(3000), "3000");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(counted(1, "repetition"), "1 repetition");
    }

    #[test]
    fn a_list_reads_as_a_sentence() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&items), "a, b and c");
        assert_eq!(list(&items[..2]), "a and b");
        assert_eq!(list(&[]), "");
    }
}
