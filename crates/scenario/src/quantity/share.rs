//! Shares of 1, and percentages that stand for them.

use super::problem::Problem;

/// Reads a percentage as a share: `1%` is 0.01. Returns `None` if the text is not a number with a percent
/// sign.
pub fn percentage(text: &str) -> Option<f64> {
    let percent = text.trim().strip_suffix('%')?.trim();
    percent.parse::<f64>().ok()?;
    // The parser rounds once, so that 1.1% becomes the number nearest to 0.011. A division would round again.
    format!("{percent}e-2").parse().ok()
}

/// Writes a share as a percentage: 0.011 is `1.1%`.
pub fn as_percent(share: f64) -> String {
    // As in `percentage`, the parser rounds once. 100 * 0.011 has a digit more.
    let percent = format!("{share}e2").parse().unwrap_or(100.0 * share);
    format!("{percent}%")
}

/// Returns the problem with a bare 1 as a share on the command line. It could mean 1 % or everything.
pub(crate) fn bare_one(text: &str) -> Option<Problem> {
    let is_one = text.trim().parse::<f64>().ok()? == 1.0;
    is_one.then(|| {
        Problem::new(format!("found {}, expected per cent or a number below 1", text.trim()))
            .with_help("did you mean 1% or 100%?")
    })
}

/// Returns a hint for a `share` from 1 to 100, which was probably meant in per cent.
pub(crate) fn percent_help(share: f64) -> Option<String> {
    if share <= 1.0 || share > 100.0 {
        return None;
    }
    let meant = percentage(&format!("{share}%"))?;
    Some(format!("did you mean {share}%? As a share of 1 it is {meant}"))
}

/// Returns the problem with shares between commas of which some have a percent sign and others do not. In
/// `0,1,5%` the 1 could mean 1 % or everything. 0 is the same in both forms.
pub(crate) fn mixed_shares(values: &str) -> Option<Problem> {
    let words: Vec<&str> = values.split(',').map(str::trim).collect();
    let with_sign = words.iter().find(|word| percentage(word).is_some())?;
    let nonzero = |word: &str| word.parse::<f64>().ok().filter(|number| *number != 0.0);
    let (bare, number) = words.iter().find_map(|word| Some((word, nonzero(word)?)))?;
    let as_share = format!("{number}e2").parse::<f64>().ok().filter(|percent| *percent <= 100.0);
    let or_share = as_share.map_or_else(String::new, |percent| format!(" or {percent}%"));
    let message = format!("found {bare} beside {with_sign}, expected all values with `%` or all without");
    Some(Problem::new(message).with_help(format!("did you mean {bare}%{or_share}?")))
}
