//! Writes numbers for people. A number has as many digits as are needed to distinguish it from its
//! neighbours, an unknown number is a dash, and a small loss is never written as no loss. Each style is a
//! function here, and all crates use these functions:
//!
//! | style | 182.44 becomes | 0.0421 becomes | used for |
//! | --- | --- | --- | --- |
//! | [`fixed`], 2 decimals | `182.44` | `0.04` | the cells of a table |
//! | [`signed`], 2 decimals | `+182.44` | `+0.04` | differences |
//! | [`rounded`], 2 decimals | `182.44` | `0.04` | the ends of a range, which may be zero |
//! | [`trimmed`], 2 decimals | `182.44` | `0.04` | numbers without zeros at the end: `2.5` |
//! | [`three_digits`] | `182` | `0.042` | sentences |
//! | [`four_digits`] | `182.4` | `0.042` | the figures of studies |
//! | [`significant`], 6 digits | `182.44` | `0.0421` | figures beside their bounds |
//! | [`tick_label`] | `182.44` | `0.0421` | the axes of charts |
//! | [`count`] | | | counts: `12 345` |

/// The text of an unknown figure.
pub const UNKNOWN: &str = "–";

/// The largest number of zeros after the decimal point in [`significant`], as a power of ten. We chose 12.
const MAX_ZEROS: i32 = -12;

/// Returns how many decimals a number of milliseconds needs, so that neighbours in a column can be
/// distinguished. `largest` is the largest number of the column.
pub fn decimals(largest: f64) -> usize {
    match largest.abs() {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 10_000.0 => 1,
        _ => 0,
    }
}

/// Returns `value` with so many decimals. A value that rounds to zero but is not zero becomes `<0.01`.
pub fn fixed(value: Option<f64>, decimals: usize) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return UNKNOWN.to_owned() };
    let text = format!("{value:.decimals$}");
    if !is_zero(&text) {
        text
    } else if value == 0.0 {
        text.trim_start_matches('-').to_owned()
    } else {
        let smallest_shown = 10f64.powi(-(decimals as i32));
        format!("<{smallest_shown:.decimals$}")
    }
}

/// Returns a difference with so many decimals and its sign. A difference that rounds to zero has no sign.
pub fn signed(difference: f64, decimals: usize) -> String {
    without_sign_of_zero(format!("{difference:+.decimals$}"))
}

/// Returns `value` with so many decimals. A value that rounds to zero becomes zero without a sign.
pub fn rounded(value: f64, decimals: usize) -> String {
    without_sign_of_zero(format!("{value:.decimals$}"))
}

/// Returns `value` with at most so many decimals. Zeros at the end are left out, and a negative value that
/// rounds to zero has no sign.
pub fn trimmed(value: f64, decimals: usize) -> String {
    let text = rounded(value, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns `value` with three digits, which are enough in a sentence. It has more if its whole part has more,
/// and three decimals if it is below 1.
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    fixed(Some(value), decimals)
}

/// Returns `value` with at most four significant digits. It has more if its whole part has more, and at most
/// three decimals if it is below 1.
pub fn four_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    trimmed(value, decimals)
}

/// Returns the label of a tick on an axis. It has only as many decimals as it needs, and no rounding errors.
pub fn tick_label(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        // Six digits are enough for every step between ticks, and leave out the rounding error.
        let text = format!("{value:.5e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    trimmed(value, 6)
}

/// Returns `value` with at most so many significant `digits`. It has more if its whole part has more.
pub fn significant(value: f64, digits: i32) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let after_first = digits - 1;
    let exponent = value.abs().log10().floor().clamp(f64::from(MAX_ZEROS), f64::from(after_first)) as i32;
    trimmed(value, usize::try_from(after_first - exponent).unwrap_or(0))
}

/// Returns a count with a thin space between groups of three digits: `12 345`. A count of four digits has no
/// space.
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
    fn an_unknown_figure_is_a_dash() {
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
        let shown =
            [3.599_96, 12.0, 0.01, 1_234_567.891, 0.000_001_5, -2.5].map(|value| significant(value, 6));
        assert_eq!(shown, ["3.59996", "12", "0.01", "1234568", "0.0000015", "-2.5"]);
    }

    #[test]
    fn counts_are_grouped_from_five_digits_on() {
        assert_eq!([count(3000), count(30_000), count(1_234_567)], ["3000", "30 000", "1 234 567"]);
    }
}
