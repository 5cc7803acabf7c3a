//! A text whose numbers are ranges, such as `held its 99 to 100 echoes for p99 1.25 to 10.5 ms`.
//!
//! Such a text stands for several texts that differ in their numbers only.

use std::iter;
use std::mem;

use talkpath_units::is_same_but_for_plural;

/// Words with ranges of numbers between them. The text begins and ends with words, which may be empty.
pub(super) struct RangeText {
    /// The words before each number, and the words after the last number.
    words: Vec<String>,
    ranges: Vec<NumberRange>,
}

/// The smallest and the largest of several numbers, in the digits of the texts that they come from.
struct NumberRange {
    min: String,
    max: String,
}

impl RangeText {
    /// Splits `text` into words and numbers. Each range holds one number.
    pub(super) fn parse(text: &str) -> Self {
        let (mut words, mut ranges) = (Vec::new(), Vec::new());
        let mut current_words = String::new();
        for token_and_separator in text.split_inclusive(is_separator) {
            let token = token_and_separator.trim_end_matches(is_separator);
            // A full stop or a colon at the end belongs to the sentence and not to the number.
            let number = token.trim_end_matches(['.', ':']);
            if is_number(number) {
                words.push(mem::take(&mut current_words));
                ranges.push(NumberRange { min: number.to_owned(), max: number.to_owned() });
                current_words.push_str(&token_and_separator[number.len()..]);
            } else {
                current_words.push_str(token_and_separator);
            }
        }
        words.push(current_words);
        Self { words, ranges }
    }

    /// Returns whether the two texts differ in nothing but their numbers. `1 packet came` and `3 packets
    /// came` differ in this way, although the noun of one is in the plural.
    pub(super) fn differs_only_in_numbers_from(&self, other: &Self) -> bool {
        self.words.len() == other.words.len()
            && self.words.iter().zip(&other.words).all(|(words, others)| are_same_words(words, others))
    }

    /// Widens each range so that it includes the numbers of `other`. A noun becomes a plural if it is one in
    /// `other`.
    pub(super) fn include(&mut self, other: Self) {
        for (words, other_words) in self.words.iter_mut().zip(other.words) {
            // Words that are the same but for a plural are longer in the plural.
            if other_words.len() > words.len() {
                *words = other_words;
            }
        }
        for (range, other_range) in self.ranges.iter_mut().zip(other.ranges) {
            range.include(other_range);
        }
    }

    /// Returns the upper end of the last range. In a warning the last number is a count or a percentile that
    /// says how bad the matter is.
    pub(super) fn last_number(&self) -> Option<f64> {
        self.ranges.last().map(|range| value(&range.max))
    }

    /// Returns the text. A range with two different ends is written `1 to 3`.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        let numbers = self.ranges.iter().map(NumberRange::to_text).chain(iter::once(String::new()));
        for (words, number) in self.words.iter().zip(numbers) {
            text.push_str(words);
            text.push_str(&number);
        }
        text
    }
}

impl NumberRange {
    fn include(&mut self, other: Self) {
        if value(&other.min) < value(&self.min) {
            self.min = other.min;
        }
        if value(&other.max) > value(&self.max) {
            self.max = other.max;
        }
    }

    fn to_text(&self) -> String {
        if self.min == self.max { self.min.clone() } else { format!("{} to {}", self.min, self.max) }
    }
}

/// Returns whether `c` ends a token. The characters of an address, of a date and of a version such as
/// `10.0.0.1:80` do not, so an address is one token, which is no number.
fn is_separator(c: char) -> bool {
    !c.is_alphanumeric() && !matches!(c, '.' | '_' | ':' | '-' | '/')
}

/// Returns whether `token` has only digits and at most one decimal point, and begins with a digit.
fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
        && token.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && token.parse::<f64>().is_ok()
}

fn value(number: &str) -> f64 {
    number.parse().unwrap_or(0.0)
}

/// Returns whether the words are the same. If they follow a number, the first noun may be a plural in one of
/// them.
fn are_same_words(words: &str, others: &str) -> bool {
    let after_number = words.strip_prefix(' ').zip(others.strip_prefix(' '));
    words == others || after_number.is_some_and(|(words, others)| is_same_but_for_plural(words, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_ranges_is_written_as_it_was_read() {
        for text in ["", "7", "p99 1.25 ms", "10.0.0.1:80 é 3.", "5: 1.2.3 and .5 at 4 ", "a-1 2  3"] {
            assert_eq!(RangeText::parse(text).to_text(), text);
        }
        assert_eq!(RangeText::parse("10.0.0.1:80 a-1 1.2.3 .5 6 of 7.").last_number(), Some(7.0));
        assert_eq!(RangeText::parse("10.0.0.1:80").last_number(), None);
    }
}
