//! Numbers for people: as many digits as are needed to distinguish values, a figure that is not there as a
//! dash, and a small loss never as no loss. Each style has its function here, and no other crate writes a
//! figure in digits of its own:
//!
//! | style | of 182.44 | of 0.0421 | where |
//! | --- | --- | --- | --- |
//! | [`fixed`], 2 decimals | `182.44` | `0.04` | cells of a table |
//! | [`signed`], 2 decimals | `+182.44` | `+0.04` | differences |
//! | [`rounded`], 2 decimals | `182.44` | `0.04` | ranges, whose ends may be zero |
//! | [`trimmed`], 2 decimals | `182.44` | `0.04` | without zeros at the end: `2.5` |
//! | [`three_digits`] | `182` | `0.042` | sentences |
//! | [`four_digits`] | `182.4` | `0.042` | figures of studies |
//! | [`significant`], 6 digits | `182.44` | `0.0421` | figures beside their bounds |
//! | [`tick_label`] | `182.44` | `0.0421` | axes of charts |
//! | [`count`] | | | counts: `12 345` |

/// What is printed in place of an unknown figure.
pub const UNKNOWN: &str = "–";

/// How many decimals milliseconds of this size need so that neighbours in a column can be distinguished.
pub fn decimals(largest: f64) -> usize {
    match largest.abs() {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 10_000.0 => 1,
        _ => 0,
    }
}

/// `value` with this number of decimals; a value that rounds to zero but is not zero says so.
pub fn fixed(value: Option<f64>, decimals: usize) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return UNKNOWN.to_owned() };
    let text = format!("{value:.decimals$}");
    match is_zero(&text) {
        true if value == 0.0 => text.trim_start_matches('-').to_owned(),
        true => format!("<{:.decimals$}", 10f64.powi(-(decimals as i32))),
        false => text,
    }
}

/// A difference with this number of decimals and its sign; what rounds to zero has none.
pub fn signed(difference: f64, decimals: usize) -> String {
    without_sign_of_zero(format!("{difference:+.decimals$}"))
}

/// `value` with this number of decimals; what rounds to zero has no sign, and does not say that it is none.
pub fn rounded(value: f64, decimals: usize) -> String {
    without_sign_of_zero(format!("{value:.decimals$}"))
}

/// `value` with at most this number of decimals: zeros at the end are left out, and a zero that was rounded
/// from below it has no sign.
pub fn trimmed(value: f64, decimals: usize) -> String {
    let text = rounded(value, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Three digits, which are enough in a sentence, and no fewer than the whole part has; three decimals below
/// 1.
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    fixed(Some(value), decimals)
}

/// Four significant digits at most from 1 on, and no fewer than the whole part has; at most three decimals
/// below 1.
pub fn four_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    trimmed(value, decimals)
}

/// The label of a chart's tick: only as many decimals as it needs, and no rounding noise.
pub fn tick_label(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        // Six figures, as below: any that a step needs, and none of the rounding.
        let text = format!("{value:.5e}");
        let (figures, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", figures.trim_end_matches('0').trim_end_matches('.'));
    }
    trimmed(value, 6)
}

/// `value` with this number of significant digits at most, and no fewer than its whole part has.
pub fn significant(value: f64, digits: i32) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let last = digits - 1;
    let decimals = last - value.abs().log10().floor().clamp(f64::from(MOST_ZEROS), f64::from(last)) as i32;
    trimmed(value, usize::try_from(decimals).unwrap_or(0))
}

/// A count with thin groups of three: `12 345`.
pub fn count(value: u64) -> String {
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

fn without_sign_of_zero(text: String) -> String {
    if is_zero(&text) { text.trim_start_matches(['+', '-']).to_owned() } else { text }
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-' | b'+'))
}

/// The power of ten below which [`significant`] adds no more decimals. Chosen.
const MOST_ZEROS: i32 = -12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_rounds_to_zero_is_not_printed_as_zero() {
        assert_eq!(fixed(Some(1e-4), 2), "<0.01");
        assert_eq!(fixed(Some(0.0), 2), "0.00");
        assert_eq!(fixed(Some(-0.0), 1), "0.0");
        assert_eq!(fixed(Some(3.1), 2), "3.10");
    }

    #[test]
    fn a_figure_that_is_not_there_is_a_dash() {
        assert_eq!((fixed(None, 1), fixed(Some(f64::NAN), 1)), ("–".to_owned(), "–".to_owned()));
    }

    #[test]
    fn trailing_zeros_and_the_sign_of_zero_are_left_out() {
        assert_eq!([trimmed(1.50, 3), trimmed(2.0, 3), trimmed(-0.0001, 3)], ["1.5", "2", "0"]);
        assert_eq!(trimmed(100.0, 0), "100");
    }

    #[test]
    fn a_difference_has_its_sign_unless_it_rounds_to_zero() {
        let texts = [0.5, -0.5, 0.004, -0.004, 0.0, -0.0].map(|value| signed(value, 2));
        assert_eq!(texts, ["+0.50", "-0.50", "0.00", "0.00", "0.00", "0.00"]);
        assert_eq!([rounded(-0.004, 2), rounded(-0.006, 2)], ["0.00", "-0.01"]);
    }

    #[test]
    fn sentences_have_three_digits_and_studies_four() {
        let values = [0.0, 0.0421, 0.0004, 4.256, 42.56, 182.44, 1234.5, -42.56];
        let three = ["0.000", "0.042", "<0.001", "4.26", "42.6", "182", "1234", "-42.6"];
        assert_eq!(values.map(three_digits), three);
        let four = ["0", "0.042", "0", "4.256", "42.56", "182.4", "1234", "-42.56"];
        assert_eq!(values.map(four_digits), four);
    }

    #[test]
    fn a_tick_has_no_rounding_noise() {
        let values = [0.1 + 0.2, 1e-5, -3e-7, 12.0, 0.0, 1_500_000.0];
        assert_eq!(values.map(tick_label), ["0.3", "1e-5", "-3e-7", "12", "0", "1500000"]);
    }

    #[test]
    fn six_significant_digits_distinguish_a_figure_from_its_bound() {
        let shown = [3.599_96, 12.0, 0.01, 1_234_567.891, 0.000_001_5, -2.5].map(|it| significant(it, 6));
        assert_eq!(shown, ["3.59996", "12", "0.01", "1234568", "0.0000015", "-2.5"]);
    }

    #[test]
    fn counts_are_grouped_from_five_digits_on() {
        assert_eq!([count(3000), count(30_000), count(1_234_567)], ["3000", "30 000", "1 234 567"]);
    }
}
