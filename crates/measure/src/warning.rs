//! Warnings are texts. One that makes its run invalid begins with a word that says so, in every place that
//! shows it. One that only helps to read the figures begins with a word of its own, and is printed below
//! them.

use core::fmt;
use talkpath_units::counted;

/// Begins a warning that makes its run invalid.
const INVALID: &str = "invalid: ";

/// Begins what is no more than a help to read the figures.
const NOTE: &str = "note: ";

/// `text` as a help to read the figures.
pub fn note(text: impl fmt::Display) -> String {
    format!("{NOTE}{text}")
}

/// Whether a warning is no more than a help to read the figures.
pub fn is_note(warning: &str) -> bool {
    warning.starts_with(NOTE)
}

/// `warning` of the part of a run called `label`, of the kind that it was.
pub fn of_part(label: &str, warning: &str) -> String {
    let kind = [INVALID, NOTE].into_iter().find(|kind| warning.starts_with(kind)).unwrap_or_default();
    format!("{kind}{label}: {}", &warning[kind.len()..])
}

/// `text` as a warning that makes its run invalid.
pub fn invalid(text: impl fmt::Display) -> String {
    format!("{INVALID}{text}")
}

/// `text` as a warning that makes its run invalid, unless the run `is_valid` all the same.
pub fn invalid_unless(is_valid: bool, text: String) -> String {
    if is_valid { text } else { invalid(text) }
}

/// That `flow` did not open in the whole run, and why.
pub fn not_open(flow: &str, why: impl fmt::Display) -> String {
    format!("{}: {why}", of_closed(flow))
}

/// Whether a warning says so of `flow`.
pub fn is_not_open(warning: &str, flow: &str) -> bool {
    warning.starts_with(&of_closed(flow))
}

fn of_closed(flow: &str) -> String {
    format!("flow {flow}: did not open")
}

/// What a warning says that makes its run invalid; `None` of any other.
pub fn reason(warning: &str) -> Option<&str> {
    warning.strip_prefix(INVALID)
}

/// That `of_all` of `all` repetitions count, since the others were disturbed past the stated limits; `which`
/// names those, with the reasons.
pub fn left_out(of_all: usize, all: usize, which: impl fmt::Display) -> String {
    format!("the figures rest on {of_all} of {}{LEFT_OUT}{which}", counted(all, "repetition"))
}

/// Which repetitions a warning says are left out; `None` of any other.
pub fn which_left_out(warning: &str) -> Option<&str> {
    warning.split_once(LEFT_OUT).map(|(_, which)| which)
}

/// Precedes the list of repetitions that are left out.
const LEFT_OUT: &str = "; the others were disturbed past the stated limits and are left out: ";

/// Those that make the run invalid come first, and notes last.
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
