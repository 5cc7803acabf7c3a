//! The glossary of a study's page: a sentence about the run, and the meanings of the words that the page
//! uses.

use maud::{Markup, html};
use talkpath_study::{
    ArenaName, ArenaVerdict, Basis, CheckOutcome, ClaimOutcome, Outcome, Role, Standing, Verdict,
};

use super::words::{SAME_UNDER_SETS, fails_under_every_set, repetitions};

/// A word of the page and its meaning.
struct Term {
    word: String,
    meaning: String,
}

impl Term {
    fn new(word: impl Into<String>, meaning: &str) -> Self {
        Self { word: word.into(), meaning: meaning.to_owned() }
    }
}

/// The sentence about the run, and a folded list of the words that this page uses.
pub(super) fn guide(outcome: &Outcome) -> Markup {
    let glossary = Glossary { outcome };
    html! {
        p { (describe_run(outcome)) }
        details {
            summary { "The words of this page: claim, check, cell, base and the others" }
            dl.terms {
                @for Term { word, meaning } in glossary.terms() { dt { (word) } dd { (meaning) "." } }
            }
        }
    }
}

/// A word that shows its meaning under a pointer.
pub(super) fn explained(word: &str, meaning: &str) -> Markup {
    html! { abbr title=(meaning) { (word) } }
}

/// Describes the run: how much of the study it is, its repetitions, and its seeds.
fn describe_run(outcome: &Outcome) -> String {
    let length = if outcome.quick {
        "This is the short run (--quick): fewer repetitions and sets, and of some claims fewer checks."
    } else {
        "This is the full run."
    };
    if outcome.arena == ArenaName::Campaign {
        return "The campaign's measurements are judged; nothing ran for this page.".to_owned();
    }
    if outcome.cells.is_empty() {
        return format!("{length} None of the cells that it needs ran.");
    }
    let (seeds, other_seed) = match outcome.seed {
        Some(seed) => (format!("with seeds derived from {seed} (--seed {seed})"), "another --seed"),
        None => ("with seeds derived from its scenario's own".to_owned(), "--seed 2"),
    };
    format!(
        "{length} Each cell has {} under each assumption set, {seeds}. \
         All of it rests on this one base seed: {other_seed} repeats it with other random draws, and talkpath study diff compares the two.",
        repetitions(outcome)
    )
}

/// The words of a page.
struct Glossary<'a> {
    outcome: &'a Outcome,
}

impl Glossary<'_> {
    /// The words that the page uses, in the order in which a reader meets them.
    fn terms(&self) -> Vec<Term> {
        let mut terms = common_terms();
        terms.extend(self.base());
        terms.extend(self.outcome.arenas.iter().map(|arena| Term::new(arena.name(), arena_meaning(*arena))));
        terms.extend(self.verdict_terms());
        terms.extend(self.standing_terms());
        terms.extend(self.terms_of_doubt());
        terms.extend(self.basis_terms());
        terms.push(Term::new("9.3 [9.2, 9.4]", INTERVAL_MEANING));
        terms.push(Term::new("bold", "In tables: a claim that differs, a check that fails"));
        terms
    }

    fn verdicts(&self) -> impl Iterator<Item = &ArenaVerdict> {
        self.outcome.claims.iter().flat_map(ClaimOutcome::verdicts)
    }

    fn checks(&self) -> impl Iterator<Item = &CheckOutcome> {
        self.verdicts().flat_map(|verdict| &verdict.by_assumption).flat_map(|set_outcome| &set_outcome.checks)
    }

    fn base(&self) -> Option<Term> {
        let (name, _) = self.outcome.assumptions.first()?;
        let name_here = if name == "base" { String::new() } else { format!(", here {name}") };
        let meaning = format!(
            "The first assumption set, the nearest reading of the text{name_here}. The verdict is the one under it"
        );
        Some(Term::new("base", &meaning))
    }

    fn verdict_terms(&self) -> Vec<Term> {
        let all = [
            Verdict::Reproduced,
            Verdict::Consistent,
            Verdict::PartlyJudged,
            Verdict::Differs,
            Verdict::NotTested,
            Verdict::Disturbed,
        ];
        let is_used = |verdict: &Verdict| self.verdicts().any(|used| used.verdict == *verdict);
        let used = all.into_iter().filter(is_used);
        used.map(|verdict| Term::new(verdict.to_string(), verdict_meaning(verdict))).collect()
    }

    fn standing_terms(&self) -> Vec<Term> {
        let mut terms = Vec::new();
        for standing in [Standing::Robust, Standing::Fragile, Standing::OnlyUnder] {
            let has_standing = |verdict: &ArenaVerdict| verdict.standing == Some(standing);
            // A claim that fails under every set has other words for its standing.
            if self.verdicts().any(|verdict| has_standing(verdict) && !fails_under_every_set(verdict)) {
                terms.push(Term::new(standing.to_string(), standing_meaning(standing)));
            }
        }
        if self.verdicts().any(fails_under_every_set) {
            terms.push(Term::new(SAME_UNDER_SETS, FAILS_UNDER_EVERY_SET_MEANING));
        }
        if self.verdicts().any(is_open) {
            terms.push(Term::new("open", OPEN_MEANING));
        }
        terms
    }

    /// The words for results that support no verdict.
    fn terms_of_doubt(&self) -> Vec<Term> {
        let mut terms = Vec::new();
        if self.checks().any(CheckOutcome::is_undecided) {
            terms.push(Term::new("undecided", UNDECIDED_MEANING));
        }
        if self.verdicts().any(|verdict| !verdict.without_effect.is_empty()) {
            terms.push(Term::new("changes nothing here", WITHOUT_EFFECT_MEANING));
        }
        terms
    }

    fn basis_terms(&self) -> Vec<Term> {
        let mut terms = Vec::new();
        for (basis, role) in [
            (Basis::Fitted, Role::Fitted),
            (Basis::Assumed, Role::Assumed),
            (Basis::Predicted, Role::Predicted),
        ] {
            let mut rows = self.outcome.tables.iter().flat_map(|table| &table.rows);
            if rows.any(|row| row.published_row.role == role)
                || self.checks().any(|check| check.basis == basis)
            {
                terms.push(Term::new(format!("{basis} (basis)"), basis_meaning(basis)));
            }
        }
        terms
    }
}

/// Whether a claim was judged and has no standing.
fn is_open(verdict: &ArenaVerdict) -> bool {
    let is_judged = matches!(verdict.verdict, Verdict::Reproduced | Verdict::Consistent | Verdict::Differs);
    is_judged && verdict.standing.is_none()
}

/// The words that every page uses.
fn common_terms() -> Vec<Term> {
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

const INTERVAL_MEANING: &str = "A median and its 95 % confidence interval. Without brackets all repetitions gave the same, or fewer than 6 ran. In figures \
                                an interval of no length cannot be seen";
const WITHOUT_EFFECT_MEANING: &str = "Under this set each repetition gave the same as under the base. It supports no verdict, and is not counted";
const OPEN_MEANING: &str = "Whether another set changes the verdict is not known: no other set has an effect on its cells, one has not run (--quick \
                    leaves most out), or the base or another set leaves it undecided";
const UNDECIDED_MEANING: &str = "The medians lie on one side of what is asked, and their confidence intervals reach to the other. A set under which \
                         the deciding checks are undecided counts neither for nor against the verdict";
const FAILS_UNDER_EVERY_SET_MEANING: &str =
    "The claim differs under the base, and under each other set that changes something";

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

#[cfg(test)]
mod tests {
    use super::super::fill::tests::outcome;
    use super::*;

    #[test]
    fn the_glossary_explains_the_words_of_the_page_and_no_others() {
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
