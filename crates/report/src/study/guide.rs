//! How to read a study's page: its words, explained in a box beside the verdicts and where a reader meets
//! them.

use maud::{Markup, html};
use talkpath_study::{
    ArenaName, ArenaVerdict, Basis, CheckOutcome, ClaimOutcome, Outcome, Role, Standing, Verdict,
};

use super::repetitions;

/// A word of the page and what it means.
type Term = (String, String);

/// The run in a sentence, and a box to open with those words that this page uses.
pub(super) fn guide(outcome: &Outcome) -> Markup {
    html! {
        p { (run(outcome)) }
        details {
            summary { "The words of this page: claim, check, cell, base and the others" }
            dl.terms {
                @for (word, meaning) in terms(outcome) { dt { (word) } dd { (meaning) "." } }
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

/// The words that stand on the page, in the order in which a reader meets them.
fn terms(outcome: &Outcome) -> Vec<Term> {
    let term = |word: &str, meaning: &str| (word.to_owned(), meaning.to_owned());
    let verdicts = || outcome.claims.iter().flat_map(ClaimOutcome::verdicts);
    let checks = || verdicts().flat_map(|it| &it.by_assumption).flat_map(|it| &it.checks);
    let mut terms = vec![
        term("claim", "A statement of the publication, or of our own"),
        term(
            "check",
            "One comparison of measured figures with what the claim says (asked). A claim holds if all its checks do",
        ),
        term("cell", "One set-up that was run: a scenario with settings of its own"),
        term(
            "repetition",
            "One run of a cell. Each has a start phase (the moments at which its flows begin) and a seed of its own. Medians over \
             all repetitions decide. How many single repetitions would have shown the same is listed, and decides nothing",
        ),
        term(
            "assumption set",
            "What a publication leaves open, answered in one way. The sets are listed below",
        ),
    ];
    if let Some((base, _)) = outcome.assumptions.first() {
        let also = if base == "base" { String::new() } else { format!(", here {base}") };
        let meaning = format!(
            "The first assumption set, the nearest reading of the text{also}. The verdict is the one under it"
        );
        terms.push(("base".to_owned(), meaning));
    }
    for arena in &outcome.arenas {
        terms.push(term(arena.name(), arena_meaning(*arena)));
    }
    let all = [
        Verdict::Reproduced,
        Verdict::Consistent,
        Verdict::PartlyJudged,
        Verdict::Differs,
        Verdict::NotTested,
        Verdict::Disturbed,
    ];
    for verdict in all.into_iter().filter(|wanted| verdicts().any(|it| it.verdict == *wanted)) {
        terms.push(term(&verdict.to_string(), verdict_meaning(verdict)));
    }
    for standing in [Standing::Robust, Standing::Fragile, Standing::OnlyUnder] {
        let is_used = verdicts().any(|it| it.standing == Some(standing) && !is_same_failure(it));
        if is_used {
            terms.push(term(&standing.to_string(), standing_meaning(standing)));
        }
    }
    if verdicts().any(is_same_failure) {
        terms.push(term(&same_failure("N"), SAME_FAILURE));
    }
    let has_standing = |it: &ArenaVerdict| {
        matches!(it.verdict, Verdict::Reproduced | Verdict::Consistent | Verdict::Differs)
    };
    if verdicts().any(|it| has_standing(it) && it.standing.is_none()) {
        terms.push(term("open", OPEN));
    }
    if checks().any(CheckOutcome::is_undecided) {
        terms.push(term("undecided", UNDECIDED));
    }
    if verdicts().any(|it| !it.without_effect.is_empty()) {
        terms.push(term(
            "changes nothing here",
            "Under this set each repetition gave the same as under the base. It supports no verdict, and is not counted",
        ));
    }
    for basis in [Basis::Fitted, Basis::Assumed, Basis::Predicted] {
        let has_role = outcome.tables.iter().flat_map(|it| &it.rows).any(|it| same(it.row.role, basis));
        if has_role || checks().any(|it| it.basis == basis) {
            terms.push((format!("{basis} (basis)"), basis_meaning(basis).to_owned()));
        }
    }
    terms.push(term(
        "9.3 [9.2, 9.4]",
        "A median and its 95 % confidence interval. Without brackets all repetitions gave the same, or fewer than 6 ran. In figures \
         an interval of no length cannot be seen",
    ));
    terms.push(term("bold", "In tables: a claim that differs, a check that fails"));
    terms
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
