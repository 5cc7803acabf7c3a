//! How to read a study's page: its words, explained in a box beside the verdicts and where a reader meets
//! them.

use maud::{Markup, html};
use talkpath_study::{
    ArenaName, ArenaVerdict, Basis, CheckOutcome, ClaimOutcome, Outcome, Role, Standing, Verdict,
};

use super::repetitions;

/// A word of the page and what it means.
struct Term {
    word: String,
    meaning: String,
}

impl Term {
    fn new(word: &str, meaning: &str) -> Self {
        Self { word: word.to_owned(), meaning: meaning.to_owned() }
    }
}

/// The run in a sentence, and a box to open with those words that this page uses.
pub(super) fn guide(outcome: &Outcome) -> Markup {
    html! {
        p { (run(outcome)) }
        details {
            summary { "The words of this page: claim, check, cell, base and the others" }
            dl.terms {
                @for Term { word, meaning } in (Words { outcome }).terms() { dt { (word) } dd { (meaning) "." } }
            }
        }
    }
}

/// A word with its meaning where a reader meets it.
pub(super) fn explained(word: &str, meaning: &str) -> Markup {
    html! { abbr title=(meaning) { (word) } }
}

/// What ran: how much of the study, how often, and with which seeds.
fn run(outcome: &Outcome) -> String {
    let length = match outcome.quick {
        true => {
            "This is the short run (--quick): fewer repetitions and sets, and of some claims fewer checks."
        }
        false => "This is the full run.",
    };
    if outcome.arena == ArenaName::Campaign {
        return "The campaign's measurements are judged; nothing ran for this page.".to_owned();
    }
    if outcome.cells.is_empty() {
        return format!("{length} None of the cells that it needs ran.");
    }
    let (seeds, other) = match outcome.seed {
        Some(seed) => (format!("with seeds derived from {seed} (--seed {seed})"), "another --seed"),
        None => ("with seeds derived from its scenario's own".to_owned(), "--seed 2"),
    };
    format!(
        "{length} Each cell has {} under each assumption set, {seeds}. \
         All of it rests on this one base seed: {other} repeats it with other random draws, and talkpath study diff compares the two.",
        repetitions(outcome)
    )
}

/// The words that a page shows.
struct Words<'a> {
    outcome: &'a Outcome,
}

impl Words<'_> {
    /// In the order in which a reader meets them.
    fn terms(&self) -> Vec<Term> {
        let mut terms = self.of_every_page();
        terms.extend(self.base());
        terms.extend(self.outcome.arenas.iter().map(|arena| Term::new(arena.name(), arena_meaning(*arena))));
        terms.extend(self.outcomes_of_claims());
        terms.extend(self.standings());
        terms.extend(self.doubts());
        terms.extend(self.bases());
        terms.push(Term::new(
            "9.3 [9.2, 9.4]",
            "A median and its 95 % confidence interval. Without brackets all repetitions gave the same, or fewer than 6 ran. In figures \
             an interval of no length cannot be seen",
        ));
        terms.push(Term::new("bold", "In tables: a claim that differs, a check that fails"));
        terms
    }

    fn verdicts(&self) -> impl Iterator<Item = &ArenaVerdict> {
        self.outcome.claims.iter().flat_map(ClaimOutcome::verdicts)
    }

    fn checks(&self) -> impl Iterator<Item = &CheckOutcome> {
        self.verdicts().flat_map(|verdict| &verdict.by_assumption).flat_map(|under| &under.checks)
    }

    fn of_every_page(&self) -> Vec<Term> {
        vec![
            Term::new("claim", "A statement of the publication, or of our own"),
            Term::new(
                "check",
                "One comparison of measured figures with what the claim says (asked). A claim holds if all its checks do",
            ),
            Term::new("cell", "One set-up that was run: a scenario with settings of its own"),
            Term::new(
                "repetition",
                "One run of a cell. Each has a start phase (the moments at which its flows begin) and a seed of its own. Medians over \
                 all repetitions decide. How many single repetitions would have shown the same is listed, and decides nothing",
            ),
            Term::new(
                "assumption set",
                "What a publication leaves open, answered in one way. The sets are listed below",
            ),
        ]
    }

    fn base(&self) -> Option<Term> {
        let (base, _) = self.outcome.assumptions.first()?;
        let also = if base == "base" { String::new() } else { format!(", here {base}") };
        let meaning = format!(
            "The first assumption set, the nearest reading of the text{also}. The verdict is the one under it"
        );
        Some(Term::new("base", &meaning))
    }

    fn outcomes_of_claims(&self) -> impl Iterator<Item = Term> {
        let all = [
            Verdict::Reproduced,
            Verdict::Consistent,
            Verdict::PartlyJudged,
            Verdict::Differs,
            Verdict::NotTested,
            Verdict::Disturbed,
        ];
        let shown = all.into_iter().filter(|wanted| self.verdicts().any(|shown| shown.verdict == *wanted));
        shown.map(|verdict| Term::new(&verdict.to_string(), verdict_meaning(verdict)))
    }

    fn standings(&self) -> Vec<Term> {
        let all = [Standing::Robust, Standing::Fragile, Standing::OnlyUnder];
        let is_used = |standing: &Standing| {
            let mut verdicts = self.verdicts();
            verdicts.any(|verdict| verdict.standing == Some(*standing) && !is_same_failure(verdict))
        };
        let used = all.into_iter().filter(is_used);
        let mut terms: Vec<Term> =
            used.map(|standing| Term::new(&standing.to_string(), standing_meaning(standing))).collect();
        if self.verdicts().any(is_same_failure) {
            terms.push(Term::new(&same_failure("N"), SAME_FAILURE));
        }
        let is_open = |verdict: &ArenaVerdict| {
            let has_standing =
                matches!(verdict.verdict, Verdict::Reproduced | Verdict::Consistent | Verdict::Differs);
            has_standing && verdict.standing.is_none()
        };
        if self.verdicts().any(is_open) {
            terms.push(Term::new("open", OPEN));
        }
        terms
    }

    /// What supports no verdict.
    fn doubts(&self) -> Vec<Term> {
        let mut terms = Vec::new();
        if self.checks().any(CheckOutcome::is_undecided) {
            terms.push(Term::new("undecided", UNDECIDED));
        }
        if self.verdicts().any(|verdict| !verdict.without_effect.is_empty()) {
            terms.push(Term::new(
                "changes nothing here",
                "Under this set each repetition gave the same as under the base. It supports no verdict, and is not counted",
            ));
        }
        terms
    }

    fn bases(&self) -> impl Iterator<Item = Term> {
        let rows = || self.outcome.tables.iter().flat_map(|table| &table.rows);
        let is_used = move |basis: &Basis| {
            rows().any(|row| same(row.row.role, *basis)) || self.checks().any(|check| check.basis == *basis)
        };
        let used = [Basis::Fitted, Basis::Assumed, Basis::Predicted].into_iter().filter(is_used);
        used.map(|basis| Term::new(&format!("{basis} (basis)"), basis_meaning(basis)))
    }
}

/// What a claim that fails under every set is called; `count` sets change something, the base among them.
pub(super) fn same_failure(count: &str) -> String {
    format!("the same under the {count} sets that change something")
}

/// A claim that fails under every set: `robust` would read as praise.
pub(super) fn is_same_failure(verdict: &ArenaVerdict) -> bool {
    verdict.verdict == Verdict::Differs && verdict.standing == Some(Standing::Robust)
}

fn same(role: Role, basis: Basis) -> bool {
    matches!(
        (role, basis),
        (Role::Fitted, Basis::Fitted) | (Role::Assumed, Basis::Assumed) | (Role::Predicted, Basis::Predicted)
    )
}

const fn arena_meaning(arena: ArenaName) -> &'static str {
    match arena {
        ArenaName::Sim => "The simulator: transports and network are modelled, in virtual time",
        ArenaName::Emu => {
            "The emulated path: real sockets of this machine's kernel (its own TCP and UDP), over a network that is emulated in real time"
        }
        ArenaName::Campaign => "Measurements between real hosts",
    }
}

pub(super) const fn verdict_meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "All checks hold under the base, and at least one of them was not fitted",
        Verdict::Consistent => {
            "All checks hold under the base, and all of them were fitted: the set-up was chosen so that they do"
        }
        Verdict::PartlyJudged => "The checks that were judged hold, and --quick left others out",
        Verdict::Differs => "At least one check fails under the base",
        Verdict::NotTested => {
            "One of its cells did not run to the end, did not run in the arena that the claim needs, or gave no number for a metric or \
             for the figure of a check"
        }
        Verdict::Disturbed => "The machine disturbed its runs past the stated limits",
    }
}

pub(super) const fn standing_meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::Robust => {
            "The same verdict under every set that changes something, and with every seed that was tried. Fewer than 6 repetitions have no \
             intervals: then the medians alone decide"
        }
        Standing::Fragile => {
            "It holds under the base, and fails under at least one other set or with another seed"
        }
        Standing::OnlyUnder => {
            "It fails under the base, and holds under at least one other set or with another seed"
        }
    }
}

pub(super) const fn basis_meaning(basis: Basis) -> &'static str {
    match basis {
        Basis::Fitted => "A parameter of the set-up was chosen so that this figure comes out",
        Basis::Assumed => "It follows from something that we put in and that the publication does not say",
        Basis::Predicted => "Nothing in the set-up was chosen by this figure",
    }
}

const OPEN: &str = "Whether another set changes the verdict is not known: no other set has an effect on its cells, one has not run (--quick \
                    leaves most out), or the base or another set leaves it undecided";
const UNDECIDED: &str = "The medians lie on one side of what is asked, and their confidence intervals reach to the other. A set under which \
                         the deciding checks are undecided counts neither for nor against the verdict";
const SAME_FAILURE: &str =
    "The claim differs under the base, and under each other set that changes something";

#[cfg(test)]
mod tests {
    use super::super::fill::tests::outcome;
    use super::*;

    #[test]
    fn the_box_explains_the_words_of_the_page_and_no_others() {
        let mut outcome = outcome();
        let html = guide(&outcome).into_string();
        assert!(html.contains("This is the full run. Each cell has 6 repetitions"), "{html}");
        assert!(html.contains("--seed 2 repeats it with other random draws"), "{html}");
        for word in ["cell", "sim", "base", "reproduced", "fragile", "predicted (basis)", "bold"] {
            assert!(html.contains(&format!("<dt>{word}</dt>")), "{word}: {html}");
        }
        for word in ["emu", "consistent", "disturbed", "only-under", "undecided", "fitted (basis)"] {
            assert!(!html.contains(&format!("<dt>{word}</dt>")), "{word}: {html}");
        }
        outcome.quick = true;
        outcome.seed = Some(7);
        let html = guide(&outcome).into_string();
        assert!(html.contains("the short run (--quick)") && html.contains("(--seed 7)"), "{html}");
        assert!(html.contains("another --seed repeats it") && !html.contains("--seed 2"), "{html}");
        outcome.cells.clear();
        let html = guide(&outcome).into_string();
        assert!(html.contains("None of the cells that it needs ran.") && !html.contains(" 0 rep"), "{html}");
    }
}
