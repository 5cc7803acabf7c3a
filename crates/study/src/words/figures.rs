//! Writes the figures of a claim in a line, to be laid beside the published ones.
//!
//! A claim with few checks has the figure of each. A claim with many has groups of checks that differ in a
//! number alone, such as the day, and of each group the smallest and the largest figure:
//!
//! ```text
//! CAM: TCP over UDP: 2.816 to 2.863; CAM: TCP over NODELAY: 2.41 to 2.78 (4 of 5 hold)
//! ```
//!
//! - The *skeleton* of a name is the name without its digits. The checks of a group have one skeleton, one
//!   kind and one unit.
//! - The *label* of a group is what the names of its checks have in common.

use talkpath_measure::figures::Unit;

use super::check::{check_with_values, format_figure, value_labels};
use super::numbers::{format_median, format_range, unit_suffix};
use crate::claim::ClaimKind;
use crate::outcome::{ArenaVerdict, CheckOutcome, HeldBy, SetOutcome};

/// The figures of a claim are written one by one if it has at most this many checks. We chose 8 because more
/// figures do not fit in a row of the table of claims.
const MAX_PRINTED_CHECKS: usize = 8;
/// If there are few checks, those that differ in a number alone and have the same answer are written as a
/// group from this many on. We chose 4 because a list of three still shows more than its ends.
const MIN_GROUP: usize = 4;
/// Of a claim with many checks, at most this many groups are written. We chose 6 because more do not fit in a
/// row of the table of claims. Groups with a check that fails come first.
const MAX_GROUPS: usize = 6;

/// Returns the figures of a claim in one arena: those under the first set with an answer, which is the base
/// if the base has an answer. Returns an empty text if no set has an answer.
pub fn figures_in_words(verdict: &ArenaVerdict) -> String {
    answered_figures(verdict, Shown::All)
}

/// Returns the figures of a claim as [`figures_in_words`] does, but if the claim fails, only those of the
/// checks that fail: a second table shows what makes its verdict differ from the first table's.
pub fn deciding_figures_in_words(verdict: &ArenaVerdict) -> String {
    answered_figures(verdict, Shown::Deciding)
}

/// Which figures of a claim are written. The others are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    /// If a check fails, the groups with a check that fails.
    Deciding,
}

fn answered_figures(verdict: &ArenaVerdict, shown: Shown) -> String {
    let with_answer = verdict.by_assumption.iter().find(|outcome| outcome.holds.is_some());
    let skipped = usize::try_from(verdict.checks_left_out).unwrap_or(usize::MAX);
    with_answer.map_or_else(String::new, |outcome| describe(outcome, skipped, shown))
}

/// Writes the figures of a claim under one assumption set. `skipped_checks` is the number of checks that
/// `--quick` skipped.
pub(crate) fn describe_figures(set_outcome: &SetOutcome, skipped_checks: usize) -> String {
    describe(set_outcome, skipped_checks, Shown::All)
}

fn describe(set_outcome: &SetOutcome, skipped_checks: usize, shown: Shown) -> String {
    let checks: Vec<&CheckOutcome> =
        set_outcome.checks.iter().filter(|check| check.holds.is_some()).collect();
    let unanswered = set_outcome.checks.len() - checks.len();
    let (groups, most) = if checks.len() <= MAX_PRINTED_CHECKS {
        (groups(&checks).into_iter().flat_map(Group::or_each_alone).collect(), MAX_PRINTED_CHECKS)
    } else {
        (groups(&checks), MAX_GROUPS)
    };
    let failing = groups.iter().filter(|group| !group.holds()).count();
    let most = if shown == Shown::Deciding && failing > 0 { most.min(failing) } else { most };
    let (written, hidden) = choose_shown(&groups, most);
    let mut parts: Vec<String> = written.into_iter().map(Group::in_words).collect();
    let others: Vec<&CheckOutcome> = hidden.into_iter().flat_map(|group| &group.checks).copied().collect();
    if !others.is_empty() {
        parts.push(format!("{} of {} other checks hold", count_holding(&others), others.len()));
    }
    let by_spread = checks.iter().filter(|check| check.held_by == Some(HeldBy::Spread)).count();
    if by_spread > 0 {
        parts.push(format!("{by_spread} hold by the seeds' spread alone"));
    }
    match unanswered {
        0 => {}
        1 => parts.push("1 check has no answer".to_owned()),
        several => parts.push(format!("{several} checks have no answer")),
    }
    match skipped_checks {
        0 => {}
        1 => parts.push("1 more is judged without --quick".to_owned()),
        _ => parts.push(format!("{skipped_checks} more are judged without --quick")),
    }
    parts.join("; ")
}

/// Checks that differ in a number alone.
struct Group<'a> {
    checks: Vec<&'a CheckOutcome>,
}

/// Groups checks in the order of their first members.
fn groups<'a>(checks: &[&'a CheckOutcome]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for &check in checks {
        match groups.iter_mut().find(|group| group.takes(check)) {
            Some(group) => group.checks.push(check),
            None => groups.push(Group { checks: vec![check] }),
        }
    }
    groups
}

/// Returns the groups that are written, at most `most`, and those that are only counted. Groups with a check
/// that fails are chosen before others. Both lists have the order of the checks.
fn choose_shown<'g, 'a>(groups: &'g [Group<'a>], most: usize) -> (Vec<&'g Group<'a>>, Vec<&'g Group<'a>>) {
    let mut by_need: Vec<usize> = (0..groups.len()).collect();
    by_need.sort_by_key(|index| groups[*index].holds());
    by_need.truncate(most);
    let (mut shown, mut hidden) = (Vec::new(), Vec::new());
    for (index, group) in groups.iter().enumerate() {
        if by_need.contains(&index) { shown.push(group) } else { hidden.push(group) }
    }
    (shown, hidden)
}

impl<'a> Group<'a> {
    /// Returns the group if it has [`MIN_GROUP`] checks with the same answer, else each check alone.
    fn or_each_alone(self) -> Vec<Self> {
        let holding = count_holding(&self.checks);
        let has_one_answer = holding == 0 || holding == self.checks.len();
        if has_one_answer && self.checks.len() >= MIN_GROUP {
            return vec![self];
        }
        self.checks.into_iter().map(|check| Group { checks: vec![check] }).collect()
    }

    fn holds(&self) -> bool {
        count_holding(&self.checks) == self.checks.len()
    }
}

impl Group<'_> {
    fn takes(&self, check: &CheckOutcome) -> bool {
        let first = self.checks[0];
        let is_one_kind = core::mem::discriminant(&first.must) == core::mem::discriminant(&check.must);
        let is_one_formula = match (first.must, check.must) {
            (ClaimKind::Figure { formula, .. }, ClaimKind::Figure { formula: other, .. }) => formula == other,
            _ => first.values.len() == check.values.len(),
        };
        let has_one_unit = unit_suffix(first.figure_unit()) == unit_suffix(check.figure_unit());
        is_one_kind && is_one_formula && has_one_unit && skeleton(&first.name) == skeleton(&check.name)
    }

    fn in_words(&self) -> String {
        if let [only] = self.checks.as_slice() {
            if let Some(ranges) = self.ranges().filter(|_| is_order(only)) {
                let fails = if only.holds == Some(false) { " (fails)" } else { "" };
                return format!("{}: {ranges}{fails}", only.name);
            }
            return single_check(only);
        }
        let label = self.label();
        let name = if label.is_empty() { String::new() } else { format!("{label}: ") };
        let holding = count_holding(&self.checks);
        let all = self.checks.len();
        match self.ranges() {
            Some(ranges) if holding == all => format!("{name}{ranges}"),
            Some(ranges) => format!("{name}{ranges} ({holding} of {all} hold)"),
            None => format!("{name}{holding} of {all} hold"),
        }
    }

    /// Writes the smallest and the largest figure of the group, or of each of the values that its checks
    /// compare. Returns `None` if a figure is missing.
    fn ranges(&self) -> Option<String> {
        let first = self.checks[0];
        match first.must {
            ClaimKind::Figure { .. } | ClaimKind::Share { .. } => {
                let figures = self.checks.iter().map(|check| figure(check));
                Some(format_range(first.figure_unit(), range(figures)?, None))
            }
            ClaimKind::Agree { .. } => {
                let (low, high) = range(self.checks.iter().map(|check| check.figure))?;
                Some(format!("{:+.1} to {:+.1} % apart", 100.0 * low, 100.0 * high))
            }
            ClaimKind::Rising | ClaimKind::Falling | ClaimKind::Same { .. } => {
                let mut ranges = Vec::new();
                for index in 0..first.values.len() {
                    let unit: Option<Unit> = first.values[index].unit();
                    let medians = self.checks.iter().map(|check| Some(check.values.get(index)?.median));
                    ranges.push(format!("{}{}", self.side(index), format_range(unit, range(medians)?, None)));
                }
                Some(ranges.join(", then ")).filter(|ranges| !ranges.is_empty())
            }
        }
    }

    /// Returns the words that name the compared value with this `index`, and a space: those that stand in its
    /// label in every check of the group, and not in the label of every value. Empty if there are none.
    fn side(&self, index: usize) -> String {
        let labels: Vec<Vec<String>> = self.checks.iter().map(|check| value_labels(check)).collect();
        let Some(label) = labels.first().and_then(|labels| labels.get(index)) else { return String::new() };
        let has = |label: &str, word: &str| label.split(['-', ' ']).any(|other| other == word);
        let is_of_all_checks =
            |word: &&str| labels.iter().all(|labels| labels.get(index).is_some_and(|label| has(label, word)));
        let is_of_all_values = |word: &str| labels[0].iter().all(|label| has(label, word));
        let words = label.split(['-', ' ']).filter(is_of_all_checks).filter(|word| !is_of_all_values(word));
        let side = words.collect::<Vec<_>>().join("-");
        if side.is_empty() { side } else { format!("{side} ") }
    }

    /// Returns the parts of the names that all checks share. In a part that differs a dot row is for each
    /// word that does, and of `CAM1` and `CAM2` the letters stay. A number with one word before it says
    /// nothing (`day …`), so such a part is left out.
    fn label(&self) -> String {
        let names: Vec<Vec<&str>> = self.checks.iter().map(|check| parts(&check.name)).collect();
        let mut kept = Vec::new();
        for (index, part) in names[0].iter().enumerate() {
            let of_all: Vec<&str> = names.iter().filter_map(|name| name.get(index).copied()).collect();
            let common = common_words(part, &of_all);
            let is_number_alone = common.ends_with('…') && common.split(' ').count() <= 2;
            if !is_number_alone {
                kept.push(common);
            }
        }
        kept.join(", ")
    }
}

/// Returns `part` with a dot row for each word in which the others of `all` differ.
fn common_words(part: &str, all: &[&str]) -> String {
    let mut words = Vec::new();
    for (index, word) in part.split(' ').enumerate() {
        if all.iter().all(|other| other.split(' ').nth(index) == Some(word)) {
            words.push(word);
            continue;
        }
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_name = !letters.is_empty() && letters.chars().all(char::is_alphabetic);
        words.push(if is_name { letters } else { "…" });
    }
    words.join(" ")
}

const fn is_order(check: &CheckOutcome) -> bool {
    matches!(check.must, ClaimKind::Rising | ClaimKind::Falling)
}

/// Writes a check alone: its figure, its median, or all that it compares.
fn single_check(check: &CheckOutcome) -> String {
    let figure = format_figure(check).or_else(|| check.values.first().map(format_median));
    match figure {
        Some(figure) if check.must.bound().is_some() => format!("{}: {figure}", check.name),
        _ => check_with_values(check),
    }
}

/// Returns the figure that is judged, which for a check of one value is its median.
fn figure(check: &CheckOutcome) -> Option<f64> {
    check.figure.or_else(|| check.values.first().map(|value| value.median))
}

fn range(figures: impl Iterator<Item = Option<f64>>) -> Option<(f64, f64)> {
    let mut range: Option<(f64, f64)> = None;
    for figure in figures {
        let figure = figure?;
        let (low, high) = range.unwrap_or((figure, figure));
        range = Some((low.min(figure), high.max(figure)));
    }
    range
}

fn count_holding(checks: &[&CheckOutcome]) -> usize {
    checks.iter().filter(|check| check.holds == Some(true)).count()
}

fn skeleton(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit() && *c != '.' && *c != '_').collect()
}

/// Splits a name at its commas and colons.
fn parts(name: &str) -> Vec<&str> {
    name.split([',', ':']).map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ArenaName;
    use crate::claim::{Basis, Bound, Formula};
    use crate::outcome::Value;

    fn value(cell: &str, median: f64) -> Value {
        Value {
            cell: cell.to_owned(),
            arena: ArenaName::Sim,
            metric: "flows.tcp.loss_rate".to_owned(),
            own_unit: None,
            n: 9,
            median,
            ci95: None,
            min: median,
            max: median,
        }
    }

    fn check(name: &str, must: ClaimKind, values: &[f64], figure: Option<f64>, holds: bool) -> CheckOutcome {
        CheckOutcome {
            name: name.to_owned(),
            metric: "flows.tcp.loss_rate".to_owned(),
            own_unit: None,
            must,
            basis: Basis::Predicted,
            one_sided: None,
            values: values.iter().map(|median| value("c", *median)).collect(),
            compared: Vec::new(),
            figure,
            ci95: None,
            holds: Some(holds),
            held_by: None,
            certain: true,
            single_hits: 0,
            single_runs: 1,
        }
    }

    fn ratio(name: &str, figure: f64, holds: bool) -> CheckOutcome {
        let bound = Bound::Between { low: 2.0, high: 3.0 };
        let must = ClaimKind::Figure { formula: Formula::Ratio, bound };
        check(name, must, &[figure, 1.0], Some(figure), holds)
    }

    fn words(checks: Vec<CheckOutcome>) -> String {
        let outcome = SetOutcome { assumption: "base".to_owned(), holds: Some(true), checks };
        describe_figures(&outcome, 0)
    }

    #[test]
    fn many_checks_show_the_range_of_each_group_and_not_a_count() {
        let mut checks = Vec::new();
        for day in 1..=5 {
            checks.push(ratio(&format!("CAM, day {day}: TCP over UDP"), 2.4 + f64::from(day) / 10.0, true));
            checks.push(ratio(&format!("CAM{day}: TCP over NODELAY"), 1.8 + f64::from(day) / 10.0, day > 1));
        }
        assert_eq!(
            words(checks),
            "CAM, TCP over UDP: 2.5 to 2.9; CAM, TCP over NODELAY: 1.9 to 2.3 (4 of 5 hold)"
        );
    }

    #[test]
    fn an_order_shows_the_range_of_each_side() {
        let order = |number: u32, low: f64| {
            check(&format!("loss of {number} B"), ClaimKind::Rising, &[low, low + 0.01], None, true)
        };
        let checks = (0..9).map(|index| order(80 + index, 0.01 + f64::from(index) / 1000.0)).collect();
        assert_eq!(words(checks), "loss of … B: 1 to 1.8 %, then 2 to 2.8 %");
    }

    #[test]
    fn the_sides_of_an_order_have_the_words_that_tell_them_apart() {
        let order = |node: &str, holds: bool| {
            let mut check =
                check(&format!("{node}1: delay"), ClaimKind::Rising, &[0.1, 0.2, 0.3], None, holds);
            for (value, transport) in check.values.iter_mut().zip(["udp", "tcp-nodelay", "tcp"]) {
                value.cell = format!("{node}-{transport}");
            }
            check
        };
        assert_eq!(
            words(vec![order("AU", false)]),
            "AU1: delay: udp 10 %, then tcp-nodelay 20 %, then tcp 30 % (fails)"
        );
        let many = (0..9).map(|_| order("AU", true)).collect();
        assert_eq!(words(many), "AU1, delay: udp 10 %, then tcp-nodelay 20 %, then tcp 30 %");
    }

    #[test]
    fn a_check_without_an_answer_is_counted_and_is_no_failure() {
        let mut checks: Vec<CheckOutcome> =
            (1..=9).map(|day| ratio(&format!("CAM, day {day}: TCP over UDP"), 2.5, true)).collect();
        for check in &mut checks[..8] {
            (check.holds, check.figure) = (None, None);
        }
        assert_eq!(words(checks), "CAM, day 9: TCP over UDP: 2.5; 8 checks have no answer");
    }

    #[test]
    fn groups_beyond_the_sixth_are_counted_and_those_that_fail_are_shown() {
        let days = |letter: char| [1, 2].map(|day| ratio(&format!("{letter}{day}"), 2.0, letter != 'k'));
        let words = words("abcdefghijk".chars().flat_map(days).collect());
        assert!(words.ends_with("e: 2; k: 2 (0 of 2 hold); 10 of 10 other checks hold"), "{words}");
        let checks = "jk".chars().flat_map(days).collect();
        let outcome = SetOutcome { assumption: "base".to_owned(), holds: Some(false), checks };
        let deciding = describe(&outcome, 0, Shown::Deciding);
        assert_eq!(deciding, "k1: ratio 2; k2: ratio 2; 2 of 2 other checks hold");
    }

    #[test]
    fn few_checks_that_differ_in_a_number_alone_and_have_one_answer_are_a_group() {
        let days = |last_holds: bool| {
            let day = |day: u32| ratio(&format!("day {day}: wait"), f64::from(day), day < 4 || last_holds);
            words((1..=4).map(day).collect())
        };
        assert_eq!(days(true), "wait: 1 to 4");
        assert!(days(false).ends_with("day 3: wait: ratio 3; day 4: wait: ratio 4"), "{}", days(false));
    }
}
