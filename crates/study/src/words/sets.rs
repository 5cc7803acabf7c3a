//! Writes under which assumption sets a claim holds, and under which it fails.

use talkpath_units::counted;

/// The names of the assumption sets, grouped by their answer to a claim. Each group has the order of the
/// study.
#[derive(Default)]
pub(crate) struct SetsByAnswer {
    /// The name of the base set.
    pub(crate) base: String,
    pub(crate) holding: Vec<String>,
    pub(crate) failing: Vec<String>,
    /// The sets under which other values within the confidence intervals would give another answer. If the
    /// base set is one of them, it is also in `holding` or `failing`.
    pub(crate) undecided: Vec<String>,
    /// The sets whose runs equal the runs under the base set.
    pub(crate) same_as_base: Vec<String>,
    /// The sets under which a run without `--quick` judges the claim, but this run does not.
    pub(crate) skipped: Vec<String>,
    /// The sets whose cells did not run to their end.
    pub(crate) not_run: Vec<String>,
    /// The sets whose cells ran, but under which a check has no figure.
    pub(crate) without_figure: Vec<String>,
}

/// How many checks of a claim were judged, and how many checks the claim has.
pub(crate) struct JudgedPart {
    pub(crate) judged_checks: usize,
    pub(crate) all_checks: usize,
}

/// Writes under which sets a claim holds and fails, such as `fails under base; holds under a, b`. The base
/// comes first. `part` is given if only a part of the checks was judged. The text is empty if no set was
/// judged.
pub(crate) fn describe_answers(sets: &SetsByAnswer, part: Option<&JudgedPart>) -> String {
    let answers = sets.answers_in_words();
    if answers.is_empty() {
        return answers;
    }
    let mut text = String::new();
    if let Some(JudgedPart { judged_checks, all_checks }) = part {
        text.push_str(&format!("{judged_checks} of {} judged: ", counted(*all_checks, "check")));
    }
    text.push_str(&answers);
    let undecided = sets.without_base(&sets.undecided);
    if !undecided.is_empty() {
        text.push_str(&format!("; undecided under {}", undecided.join(", ")));
    }
    match sets.same_as_base.as_slice() {
        [] => {}
        [name] => text.push_str(&format!("; {name} changes nothing here")),
        names => text.push_str(&format!("; {} change nothing here", names.join(", "))),
    }
    for (count, singular, plural) in [
        (sets.skipped.len(), "set is judged without --quick", "sets are judged without --quick"),
        (sets.not_run.len(), "set did not run to its end", "sets did not run to their end"),
        (sets.without_figure.len(), "set gives no figure", "sets give no figure"),
    ] {
        match count {
            0 => {}
            1 => text.push_str(&format!("; 1 more {singular}")),
            _ => text.push_str(&format!("; {count} more {plural}")),
        }
    }
    text
}

impl SetsByAnswer {
    /// Returns the number of sets that give no answer.
    pub(crate) const fn count_without_answer(&self) -> usize {
        self.skipped.len() + self.not_run.len() + self.without_figure.len()
    }

    /// Writes under which sets the claim holds and fails.
    fn answers_in_words(&self) -> String {
        let base = self.base_label();
        let (holding, failing) = (self.without_base(&self.holding), self.without_base(&self.failing));
        let holds_under = clause("holds", &holding);
        let fails_under = clause("fails", &failing);
        if self.is_base_in(&self.holding) {
            if failing.is_empty() {
                format!("holds under {base}{}", self.other_sets(&holding))
            } else if holding.is_empty() {
                format!("holds under {base} alone{fails_under}")
            } else {
                format!("holds under {base}, {}{fails_under}", holding.join(", "))
            }
        } else if self.is_base_in(&self.failing) {
            if holding.is_empty() {
                format!("fails under {base}{}", self.other_sets(&failing))
            } else {
                format!("fails under {base}{holds_under}{fails_under}")
            }
        } else if holding.is_empty() && failing.is_empty() {
            String::new()
        } else {
            format!("{base} not judged{holds_under}{fails_under}")
        }
    }

    /// Returns the name of the base set, such as `ns-2 (base)` or `base (undecided)`.
    fn base_label(&self) -> String {
        let mut remarks = Vec::new();
        if self.base != "base" {
            remarks.push("base");
        }
        if self.is_base_in(&self.undecided) {
            remarks.push("undecided");
        }
        if remarks.is_empty() { self.base.clone() } else { format!("{} ({})", self.base, remarks.join(", ")) }
    }

    /// Writes the other sets that give the same answer as the base.
    fn other_sets(&self, names: &[&str]) -> String {
        // "All other sets" would be wrong if some sets gave no answer.
        let have_all_answered = self.count_without_answer() == 0
            && self.same_as_base.is_empty()
            && self.without_base(&self.undecided).is_empty();
        match names {
            [] => String::new(),
            [name] => format!(" and {name}"),
            names if !have_all_answered => format!(", {}", names.join(", ")),
            [_, _] => " and both other sets".to_owned(),
            names => format!(" and all {} other sets", names.len()),
        }
    }

    fn is_base_in(&self, names: &[String]) -> bool {
        names.contains(&self.base)
    }

    fn without_base<'n>(&self, names: &'n [String]) -> Vec<&'n str> {
        names.iter().map(String::as_str).filter(|name| *name != self.base).collect()
    }
}

fn clause(verb: &str, names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("; {verb} under {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_base_comes_first_whatever_it_is_called() {
        let base = || "ns-2".to_owned();
        for (holding, failing, words) in [
            (&["ns-2", "a", "b", "c"][..], &[][..], "holds under ns-2 (base) and all 3 other sets"),
            (&["ns-2", "a"], &["b"], "holds under ns-2 (base), a; fails under b"),
            (&["b"], &["ns-2", "a"], "fails under ns-2 (base); holds under b; fails under a"),
            (&[], &["ns-2", "a", "b"], "fails under ns-2 (base) and both other sets"),
            (&[], &[], ""),
        ] {
            let (holding, failing) = (names(holding), names(failing));
            let sets = SetsByAnswer { base: base(), holding, failing, ..SetsByAnswer::default() };
            assert_eq!(describe_answers(&sets, None), words);
        }
    }

    #[test]
    fn sets_that_leave_it_open_and_sets_that_change_nothing_are_named() {
        let sets = SetsByAnswer {
            base: "base".to_owned(),
            holding: names(&["base", "a"]),
            undecided: names(&["base", "b"]),
            same_as_base: names(&["c"]),
            ..SetsByAnswer::default()
        };
        let words = "holds under base (undecided) and a; undecided under b; c changes nothing here";
        assert_eq!(describe_answers(&sets, None), words);
    }
}
