//! Writes under which assumption sets a claim holds, and under which it fails.

use talkpath_units::counted;

/// The assumption sets by their answer to a claim, and the number of sets that gave no answer.
pub(crate) struct Sets<'a> {
    /// The name of the base set.
    pub(crate) base: &'a str,
    pub(crate) holding: &'a [String],
    pub(crate) failing: &'a [String],
    /// The sets that leave the claim open. If the base is one of them, it is also in `holding` or `failing`.
    pub(crate) undecided: &'a [String],
    /// The sets whose runs equal the runs under the base.
    pub(crate) without_effect: &'a [String],
    /// The number of sets that `--quick` leaves out.
    pub(crate) left_out: usize,
    /// The number of sets whose cells did not run to their end.
    pub(crate) not_run: usize,
    /// The number of sets whose cells ran, but under which a check has no figure.
    pub(crate) without_figure: usize,
}

/// The number of checks of a claim that were judged, and of all its checks.
pub(crate) struct Part {
    pub(crate) judged: usize,
    pub(crate) all: usize,
}

/// Writes under which sets a claim holds and fails, such as `fails under base; holds under a, b`. The base
/// comes first. `part` is given if only a part of the checks was judged. The text is empty if no set was
/// judged.
pub(crate) fn under(sets: &Sets<'_>, part: Option<&Part>) -> String {
    let answers = sets.answers_in_words();
    if answers.is_empty() {
        return answers;
    }
    let mut text = String::new();
    if let Some(Part { judged, all }) = part {
        text.push_str(&format!("{judged} of {} judged: ", counted(*all, "check")));
    }
    text.push_str(&answers);
    let undecided = sets.without_base(sets.undecided);
    if !undecided.is_empty() {
        text.push_str(&format!("; undecided under {}", undecided.join(", ")));
    }
    match sets.without_effect {
        [] => {}
        [name] => text.push_str(&format!("; {name} changes nothing here")),
        names => text.push_str(&format!("; {} change nothing here", names.join(", "))),
    }
    match sets.left_out {
        0 => {}
        1 => text.push_str("; 1 more set is judged without --quick"),
        count => text.push_str(&format!("; {count} more sets are judged without --quick")),
    }
    match sets.not_run {
        0 => {}
        1 => text.push_str("; 1 more set did not run to its end"),
        count => text.push_str(&format!("; {count} more sets did not run to their end")),
    }
    match sets.without_figure {
        0 => {}
        1 => text.push_str("; 1 more set gives no figure"),
        count => text.push_str(&format!("; {count} more sets give no figure")),
    }
    text
}

impl Sets<'_> {
    /// The number of sets that give no answer.
    pub(crate) const fn unjudged(&self) -> usize {
        self.left_out + self.not_run + self.without_figure
    }

    /// Writes under which sets the claim holds and fails.
    fn answers_in_words(&self) -> String {
        let base = self.base_label();
        let (holding, failing) = (self.without_base(self.holding), self.without_base(self.failing));
        let holds_under = clause("holds", &holding);
        let fails_under = clause("fails", &failing);
        if self.is_base_in(self.holding) {
            if failing.is_empty() {
                format!("holds under {base}{}", self.other_sets(&holding))
            } else if holding.is_empty() {
                format!("holds under {base} alone{fails_under}")
            } else {
                format!("holds under {base}, {}{fails_under}", holding.join(", "))
            }
        } else if self.is_base_in(self.failing) {
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

    /// The name of the base set, such as `ns-2 (base)` or `base (undecided)`.
    fn base_label(&self) -> String {
        let mut remarks = Vec::new();
        if self.base != "base" {
            remarks.push("base");
        }
        if self.is_base_in(self.undecided) {
            remarks.push("undecided");
        }
        if remarks.is_empty() {
            self.base.to_owned()
        } else {
            format!("{} ({})", self.base, remarks.join(", "))
        }
    }

    /// Writes the other sets that give the same answer as the base.
    fn other_sets(&self, names: &[&str]) -> String {
        // "All other sets" would be wrong if some sets gave no answer.
        let have_all_answered = self.unjudged() == 0
            && self.without_effect.is_empty()
            && self.without_base(self.undecided).is_empty();
        match names {
            [] => String::new(),
            [name] => format!(" and {name}"),
            names if !have_all_answered => format!(", {}", names.join(", ")),
            [_, _] => " and both other sets".to_owned(),
            names => format!(" and all {} other sets", names.len()),
        }
    }

    fn is_base_in(&self, names: &[String]) -> bool {
        names.iter().any(|name| name == self.base)
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

    #[test]
    fn the_base_comes_first_whatever_it_is_called() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let under = |holding: &[&str], failing: &[&str]| {
            let (holding, failing) = (&names(holding)[..], &names(failing)[..]);
            let (undecided, without_effect) = (&[][..], &[][..]);
            let (left_out, not_run, without_figure) = (0, 0, 0);
            let sets = Sets {
                base: "ns-2",
                holding,
                failing,
                undecided,
                without_effect,
                left_out,
                not_run,
                without_figure,
            };
            under(&sets, None)
        };
        assert_eq!(under(&["ns-2", "a", "b", "c"], &[]), "holds under ns-2 (base) and all 3 other sets");
        assert_eq!(under(&["ns-2", "a"], &["b"]), "holds under ns-2 (base), a; fails under b");
        assert_eq!(under(&["b"], &["ns-2", "a"]), "fails under ns-2 (base); holds under b; fails under a");
        assert_eq!(under(&[], &["ns-2", "a", "b"]), "fails under ns-2 (base) and both other sets");
        assert_eq!(under(&[], &[]), "");
    }

    #[test]
    fn sets_that_leave_it_open_and_sets_that_change_nothing_are_named() {
        let [base, a, b] = ["base", "a", "b"].map(str::to_owned);
        let holding = [base.clone(), a];
        let sets = Sets {
            base: "base",
            holding: &holding,
            failing: &[],
            undecided: &[base, b],
            without_effect: &["c".to_owned()],
            left_out: 0,
            not_run: 0,
            without_figure: 0,
        };
        let words = "holds under base (undecided) and a; undecided under b; c changes nothing here";
        assert_eq!(under(&sets, None), words);
    }
}
