//! Warnings are texts. One that makes its run invalid begins with a word that says so, in every place that
//! shows it.

use core::fmt;

/// Begins a warning that makes its run invalid.
const INVALID: &str = "invalid: ";

/// `text` as a warning that makes its run invalid.
pub fn invalid(text: impl fmt::Display) -> String {
    format!("{INVALID}{text}")
}

/// `text` as a warning that makes its run invalid, unless the run `is_valid` all the same.
pub fn invalid_unless(is_valid: bool, text: String) -> String {
    if is_valid { text } else { invalid(text) }
}

/// What a warning says that makes its run invalid; `None` of any other.
pub fn reason(warning: &str) -> Option<&str> {
    warning.strip_prefix(INVALID)
}

/// Those that make the run invalid stand first.
pub fn sort(warnings: &mut [String]) {
    warnings.sort_by_key(|warning| reason(warning).is_none());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_run_invalid_stands_first_and_all_else_as_it_came() {
        let mut all = ["late", "odd"].map(str::to_owned).to_vec();
        all.extend([invalid("lost"), invalid_unless(true, "slow".to_owned())]);
        sort(&mut all);
        assert_eq!(all, ["invalid: lost", "late", "odd", "slow"]);
        assert_eq!((reason(&all[0]), reason(&all[1])), (Some("lost"), None));
    }
}
