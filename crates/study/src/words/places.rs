//! The places in the text of `why` that are filled from the run that is shown.
//!
//! ```text
//! TCP takes {day *: tcp over UDP} times UDP's round trip, and {day *: tcp over UDP ; under rare-loss} with few losses
//! ```
//!
//! A place names a check of the claim, in which `*` stands for any text; of several checks of one unit it
//! shows the smallest and the largest figure. Options follow, each after ` ; `: `under SET` names another
//! assumption set than the first, `value N` one of the values that the check compares, `times X` multiplies
//! and leaves the unit out, and `digits N` says how many decimals there are. So no figure in such a text can
//! become stale.

use super::numbers::{format_range, unit_suffix};
use crate::outcome::SetOutcome;

/// The text where the run has no such figure, for example because `--quick` left the set out.
const NOT_IN_THIS_RUN: &str = "(not in this run)";

/// A piece of a text with places.
enum Piece<'a> {
    Words(&'a str),
    Place(Place<'a>),
}

/// A place, which shows figures of checks.
#[derive(Debug, Default)]
pub(crate) struct Place<'a> {
    /// The name of a check, or a pattern of names.
    pub(crate) checks: &'a str,
    /// The assumption set; the first one if it is `None`.
    pub(crate) set: Option<&'a str>,
    /// Which of the compared values is shown, from 1; the figure of the check if it is `None`.
    value: Option<usize>,
    factor: Option<f64>,
    digits: Option<usize>,
}

/// Returns the places of `text`.
///
/// # Errors
/// Returns what is wrong with the first place that cannot be read.
pub(crate) fn places(text: &str) -> Result<Vec<Place<'_>>, String> {
    let is_place = |piece| match piece {
        Piece::Place(place) => Some(place),
        Piece::Words(_) => None,
    };
    Ok(pieces(text)?.into_iter().filter_map(is_place).collect())
}

/// Fills the places of `text` with figures of `base`, or of the set of `sets` that a place names.
pub(super) fn fill_places(text: &str, base: Option<&SetOutcome>, sets: &[SetOutcome]) -> String {
    // The text was checked when the study was loaded.
    let Ok(pieces) = pieces(text) else { return text.to_owned() };
    let mut filled = String::new();
    for piece in pieces {
        match piece {
            Piece::Words(words) => filled.push_str(words),
            Piece::Place(place) => {
                filled.push_str(place.figures(base, sets).as_deref().unwrap_or(NOT_IN_THIS_RUN));
            }
        }
    }
    filled
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, place)) = rest.split_once('{') {
        let Some((inside, after)) = place.split_once('}') else {
            return Err(format!("`{{{place}` does not end: expected `}}`"));
        };
        pieces.push(Piece::Words(before));
        pieces.push(Piece::Place(Place::parse(inside)?));
        rest = after;
    }
    pieces.push(Piece::Words(rest));
    Ok(pieces)
}

impl<'a> Place<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let mut parts = text.split(" ; ");
        let mut place = Self { checks: parts.next().unwrap_or_default().trim(), ..Self::default() };
        for option in parts {
            let (word, value) = option.split_once(' ').unwrap_or((option, ""));
            let no_number = || format!("`{option}` in `{{{text}}}`: expected a number");
            match word {
                "under" => place.set = Some(value),
                "value" => {
                    let number: usize = value.parse().map_err(|_| no_number())?;
                    place.value = Some(number);
                }
                "times" => place.factor = Some(value.parse().map_err(|_| no_number())?),
                "digits" => place.digits = Some(value.parse().map_err(|_| no_number())?),
                _ => {
                    let known = "under SET, value N, times X, digits N";
                    return Err(format!("no option `{word}` in `{{{text}}}`; there are {known}"));
                }
            }
        }
        Ok(place)
    }

    /// Writes the figures. Returns `None` if the run has none of them, or if their units differ.
    fn figures(&self, base: Option<&SetOutcome>, sets: &[SetOutcome]) -> Option<String> {
        let outcome = match self.set {
            Some(name) => sets.iter().find(|set| set.assumption == name)?,
            None => base?,
        };
        let mut figures = Vec::new();
        let mut units = Vec::new();
        for check in outcome.checks.iter().filter(|check| matches_pattern(self.checks, &check.name)) {
            let (figure, unit) = match self.value {
                Some(number) => {
                    let value = check.values.get(number.checked_sub(1)?)?;
                    (value.median, value.unit())
                }
                None => {
                    let only = check.values.first().map(|value| value.median);
                    (check.figure.or(only)?, check.figure_unit())
                }
            };
            figures.push(figure);
            units.push(unit);
        }
        let unit = *units.first()?;
        if units.iter().any(|other| unit_suffix(*other) != unit_suffix(unit)) {
            return None;
        }
        let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(match self.factor {
            Some(factor) => format_range(None, (low * factor, high * factor), self.digits),
            None => format_range(unit, (low, high), self.digits),
        })
    }
}

/// Returns whether `name` matches `pattern`, in which a `*` stands for any text.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last_part = None;
    for part in parts {
        let Some(start) = rest.find(part) else { return false };
        rest = &rest[start + part.len()..];
        last_part = Some(part);
    }
    // The first match of the last part may be too early, so the name must also end with it.
    rest.is_empty() || last_part.is_some_and(|part| part.is_empty() || name.ends_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text_and_no_other_character_does() {
        for (pattern, name) in [("*", ""), ("a*c", "abc"), ("a*", "a"), ("ab", "ab"), ("*b*d", "abcbd")] {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("ab", "abc"), ("a*c", "acb"), ("*x", "y"), ("a*a", "a")] {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_read_says_what_is_wrong() {
        assert!(places("it takes {day 1: tcp").is_err_and(|why| why.contains("does not end")));
        assert!(places("{a ; digits x}").is_err_and(|why| why.contains("expected a number")));
        assert!(places("{a ; bare}").is_err_and(|why| why.contains("no option `bare`")));
        let found = places("no, {day *: tcp ; under slow ; digits 1} and {b}").unwrap();
        assert_eq!(
            found.iter().map(|place| (place.checks, place.set)).collect::<Vec<_>>(),
            [("day *: tcp", Some("slow")), ("b", None)]
        );
    }
}
