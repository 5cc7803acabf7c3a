//! Warnings, which are texts of three kinds. A warning that makes its run invalid begins with `invalid: `. A
//! note, which only helps to read the figures, begins with `note: ` and is printed below the figures. All
//! other warnings have no prefix.

use core::fmt;
use talkpath_units::counted;

/// The prefix of a warning that makes its run invalid.
const INVALID: &str = "invalid: ";

/// The prefix of a note.
const NOTE: &str = "note: ";

/// Returns `text` as a note.
pub fn note(text: impl fmt::Display) -> String {
    format!("{NOTE}{text}")
}

/// Returns whether a warning is a note.
pub fn is_note(warning: &str) -> bool {
    warning.starts_with(NOTE)
}

/// Adds the `label` of a part of a run to its `warning`. The kind of the warning stays.
pub fn of_part(label: &str, warning: &str) -> String {
    let prefix = [INVALID, NOTE].into_iter().find(|prefix| warning.starts_with(prefix)).unwrap_or_default();
    format!("{prefix}{label}: {}", &warning[prefix.len()..])
}

/// Returns `text` as a warning that makes its run invalid.
pub fn invalid(text: impl fmt::Display) -> String {
    format!("{INVALID}{text}")
}

/// Returns `text` as a warning, which makes the run invalid unless the run `is_valid` nevertheless.
pub fn invalid_unless(is_valid: bool, text: String) -> String {
    if is_valid { text } else { invalid(text) }
}

/// Warns that `flow` did not open in the whole run, and says why.
pub fn not_open(flow: &str, why: impl fmt::Display) -> String {
    format!("{}: {why}", not_open_prefix(flow))
}

/// Returns whether a warning says that `flow` did not open.
pub fn is_not_open(warning: &str, flow: &str) -> bool {
    warning.starts_with(&not_open_prefix(flow))
}

fn not_open_prefix(flow: &str) -> String {
    format!("flow {flow}: did not open")
}

/// Returns the reason why a run is invalid. Returns `None` if the warning does not make it invalid.
pub fn reason(warning: &str) -> Option<&str> {
    warning.strip_prefix(INVALID)
}

/// Warns that the figures include only `counted_repetitions` of `all` repetitions, because the others were
/// disturbed beyond the stated limits. `names_of_others` has the names of the others, with the reasons.
pub fn left_out(counted_repetitions: usize, all: usize, names_of_others: impl fmt::Display) -> String {
    let all = counted(all, "repetition");
    format!("the figures rest on {counted_repetitions} of {all}{LEFT_OUT}{names_of_others}")
}

/// Returns the names of the repetitions that a warning of [`left_out`] names. Returns `None` for any other
/// warning.
pub fn which_left_out(warning: &str) -> Option<&str> {
    warning.split_once(LEFT_OUT).map(|(_, which)| which)
}

/// Comes before the names of the repetitions that are left out.
const LEFT_OUT: &str = "; the others were disturbed past the stated limits and are left out: ";

/// Sorts warnings: those that make the run invalid come first, and notes come last.
pub fn sort(warnings: &mut [String]) {
    warnings.sort_by_key(|warning| (reason(warning).is_none(), is_note(warning)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_run_invalid_stands_first_and_all_else_as_it_came() {
        let mut all = vec![note("alike")];
        all.extend(["late", "odd"].map(str::to_owned));
        all.extend([invalid("lost"), invalid_unless(true, "slow".to_owned())]);
        sort(&mut all);
        assert_eq!(all, ["invalid: lost", "late", "odd", "slow", "note: alike"]);
        let parts: Vec<String> = all.iter().map(|warning| of_part("emu", warning)).collect();
        assert_eq!(
            (&*parts[0], &*parts[1], &*parts[4]),
            ("invalid: emu: lost", "emu: late", "note: emu: alike")
        );
        assert_eq!((reason(&all[0]), reason(&all[1])), (Some("lost"), None));
    }
}
