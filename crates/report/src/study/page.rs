//! The page of a study: verdicts, published beside reproduced under every assumption set and in every arena,
//! figures.

use maud::{Markup, html};
use talkpath_study::{
    ArenaVerdict, CheckOutcome, ClaimKind, ClaimOutcome, Outcome, Verdict, shown_figure, shown_must,
    shown_value,
};

use super::chart::chart;
use super::guide::{basis_meaning, explained, guide, standing_meaning, verdict_meaning};
use super::links;
use super::prose::{Row, prose_table};
use super::{about, after_standing, count, mark, medians, published, spread, standing};
use crate::animation::{Animation, topology_svg};
use crate::chart::id_part;
use crate::html::{BREAK, document, warnings};
use crate::number::list;

/// The page, self-contained. `networks` are the topologies of its scenarios.
pub fn study_page(outcome: &Outcome, networks: &[Animation], talkpath: &str, command: &str) -> String {
    let main = html! {
        @if !outcome.valid {
            p.invalid role="alert" { "Not every cell ran to its end undisturbed." }
        }
        (warnings(&outcome.warnings))
        (overview(outcome))
        (drawn_networks(networks))
        (assumptions(outcome))
        section {
            h2 { "Every claim" }
            @for claim in &outcome.claims { (details(claim, outcome)) }
        }
        (published::tables(outcome))
        @if !outcome.figures.is_empty() {
            section {
                h2 { "Figures" }
                @for figure in &outcome.figures {
                    (chart(figure).html())
                    (links::claims_of(figure, outcome))
                }
            }
        }
        @if !outcome.not_shown.is_empty() {
            p { "No cell of these ran, so they are not shown: " (list(&outcome.not_shown)) "." }
        }
        section {
            h2 { "How to repeat this" }
            pre tabindex="0" { (command) }
        }
    };
    document(&format!("{}: {}", outcome.study, outcome.title), &about(outcome), &main, talkpath)
}

fn overview(outcome: &Outcome) -> Markup {
    let several = outcome.arenas.len() > 1;
    let rows = outcome.claims.iter().map(|claim| {
        let verdicts = html! {
            @for (index, verdict) in claim.verdicts().enumerate() {
                @if index > 0 { (BREAK) }
                (verdict_words(verdict)) (after_standing(verdict, several))
            }
        };
        let id = html! { a href={ "#claim-" (id_part(&claim.id)) } { (claim.id) } };
        let [what, published, here] = [&claim.claim, &claim.published, &claim.in_first_arena.reproduced]
            .map(|text| links::with_figures(text, &outcome.figures));
        Row {
            is_marked: claim.verdicts().any(|verdict| verdict.verdict == Verdict::Differs),
            cells: vec![id, verdicts, what, published, here],
        }
    });
    let rows: Vec<Row> = rows.collect();
    let here = match several {
        true => format!("here, in {}, under the base assumptions", outcome.arena),
        false => "here, under the base assumptions".to_owned(),
    };
    // About a hundredth of the width for a character: no claim's name is cut in two.
    let longest = outcome.claims.iter().map(|claim| claim.id.chars().count()).max().unwrap_or(0);
    let claim = (longest as u32 + 2).clamp(7, 14);
    let columns =
        [("claim", claim), ("verdict", 23), ("what it says", 30 - claim), ("published", 17), (&here, 30)];
    html! {
        section {
            h2 { "Verdicts" }
            p { strong { (count(outcome)) } }
            (guide(outcome))
            (prose_table(&columns, &rows))
        }
    }
}

/// The network of each scenario.
fn drawn_networks(networks: &[Animation]) -> Markup {
    html! {
        @if !networks.is_empty() {
            section {
                h2 { "Networks" }
                @for (at, network) in networks.iter().enumerate() {
                    // The module names the files that it saves after this.
                    figure id={ "figure-network-" (at + 1) } {
                        h3 { (network.name) }
                        @match topology_svg(&with_roles(network), &format!("network-{at}")) {
                            Ok(svg) => { div class="scroll plot" tabindex="0" { (svg) } }
                            Err(why) => { p { (why) } }
                        }
                        figcaption { (network.about) }
                    }
                }
            }
        }
    }
}

/// The same with its hosts named by their role where both ends of a flow would be called alike.
fn with_roles(network: &Animation) -> Animation {
    let mut named = network.clone();
    for (at, node) in named.nodes.iter_mut().enumerate() {
        let is_alike = network.nodes.iter().filter(|other| other.label == node.label).count() > 1;
        if is_alike && !node.label.is_empty() {
            let is_sender = network.flows.iter().any(|flow| flow.sender == at);
            node.label = format!("{}, {}", node.label, if is_sender { "sender" } else { "receiver" });
        }
    }
    named
}

fn assumptions(outcome: &Outcome) -> Markup {
    html! {
        section {
            h2 { "Assumption sets" }
            dl.terms {
                @for (name, text) in &outcome.assumptions { dt { (name) } dd { (text) } }
            }
        }
    }
}

/// The verdict and its standing, each with its meaning.
fn verdict_words(verdict: &ArenaVerdict) -> Markup {
    html! {
        (explained(&verdict.verdict.to_string(), verdict_meaning(verdict.verdict)))
        @if let (Some(words), Some(known)) = (standing(verdict), verdict.standing) {
            ", " (explained(&words, standing_meaning(known)))
        }
    }
}

fn details(claim: &ClaimOutcome, outcome: &Outcome) -> Markup {
    let several = outcome.arenas.len() > 1;
    html! {
        h3 id={ "claim-" (id_part(&claim.id)) } { (outcome.study) "/" (claim.id) ": " (claim.claim) }
        @for verdict in claim.verdicts() {
            p {
                (verdict_words(verdict))
                @if several { " in " (verdict.arena) }
                ": "
                @if !verdict.under.is_empty() { (verdict.under) ". " }
                (verdict.why)
            }
            (checks(verdict))
            (not_judged(verdict))
        }
    }
}

/// What a claim without a verdict would compare.
fn not_judged(verdict: &ArenaVerdict) -> Markup {
    let columns = [("would be checked", 50), ("asked", 35), ("basis", 15)];
    let row = |check: &CheckOutcome| Row {
        is_marked: false,
        cells: vec![html! { (check.name) }, html! { (shown_must(check)) }, basis(check)],
    };
    let rows: Vec<Row> = verdict.not_judged.iter().map(row).collect();
    html! {
        @if !rows.is_empty() { (prose_table(&columns, &rows)) }
    }
}

fn basis(check: &CheckOutcome) -> Markup {
    explained(&check.basis.to_string(), basis_meaning(check.basis))
}

/// Every check of a claim in one arena, folded; what compares arenas is open.
fn checks(verdict: &ArenaVerdict) -> Markup {
    let (mut agreements, mut others) = (Vec::new(), Vec::new());
    for under in &verdict.by_assumption {
        for check in under.checks.iter().filter(|check| !check.values.is_empty()) {
            match check.must {
                ClaimKind::Agree { .. } => agreements.push(agreement(check)),
                _ => others.push(row(&under.assumption, check)),
            }
        }
    }
    let compared = [
        ("check", 28),
        ("simulator", 15),
        ("kernel", 15),
        ("off by", 12),
        ("smallest to largest: simulator, kernel", 18),
        ("asked", 12),
    ];
    let folded = [
        ("check", 22),
        ("assumptions", 12),
        ("asked", 15),
        ("basis", 9),
        ("here", 24),
        ("verdict", 10),
        ("single repetitions", 8),
    ];
    html! {
        @if !agreements.is_empty() { (prose_table(&compared, &agreements)) }
        @if !others.is_empty() {
            details {
                summary { "Every check" }
                (prose_table(&folded, &others))
            }
        }
    }
}

fn row(assumption: &str, check: &CheckOutcome) -> Row {
    let single = format!("{} of {}", check.single_hits, check.single_runs);
    let asked = shown_must(check);
    let mut row =
        marked_row(check, &[&check.name, assumption, &asked, "", &medians(check), mark(check), &single]);
    row.cells[BASIS] = basis(check);
    row
}

/// The column of the basis in the table of every check.
const BASIS: usize = 3;

fn agreement(check: &CheckOutcome) -> Row {
    let value = |index: usize| check.values.get(index).map_or_else(String::new, shown_value);
    let spreads: Vec<_> = check.values.iter().map(spread).collect();
    let asked = format!("{}: {}", shown_must(check), mark(check));
    let off = shown_figure(check).unwrap_or_default();
    marked_row(check, &[&check.name, &value(0), &value(1), &off, &spreads.join("; "), &asked])
}

/// A check that fails is marked.
fn marked_row(check: &CheckOutcome, texts: &[&str]) -> Row {
    Row { is_marked: check.holds == Some(false), cells: texts.iter().map(|text| html! { (text) }).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animation::tests::two_hosts;

    #[test]
    fn both_ends_of_a_flow_are_called_by_their_role() {
        let mut network = two_hosts();
        for node in &mut network.nodes {
            node.label = "test".to_owned();
        }
        let labels: Vec<String> = with_roles(&network).nodes.into_iter().map(|node| node.label).collect();
        assert_eq!(labels, ["test, sender", "test, receiver"]);
        assert_eq!(with_roles(&two_hosts()).nodes, two_hosts().nodes);
    }

    #[test]
    fn each_network_s_figure_has_a_name_of_its_own_for_the_files_that_are_saved_of_it() {
        let outcome = super::super::fill::tests::outcome();
        let page = study_page(&outcome, &[two_hosts(), two_hosts()], "0.3.0", "talkpath study run x-1999");
        assert!(page.contains("<figure id=\"figure-network-1\">"), "{page}");
        assert!(page.contains("<figure id=\"figure-network-2\">") && !page.contains("<figure>"), "{page}");
    }

    #[test]
    fn a_page_explains_its_verdicts_and_shows_what_was_not_tested() {
        let mut outcome = super::super::fill::tests::outcome();
        let mut check = outcome.claims[0].in_first_arena.by_assumption[0].checks[0].clone();
        check.values.clear();
        outcome.claims[0].in_first_arena.not_judged = vec![check];
        let page = study_page(&outcome, &[], "0.3.0", "talkpath study run x-1999");
        assert!(page.contains("The words of this page"), "{page}");
        assert!(page.contains("<abbr title=\"All checks hold under the base"), "{page}");
        assert!(page.contains("would be checked") && page.contains("day 1: wait"), "{page}");
        assert!(page.contains("<a href=\"#claim-C1\">") && page.contains("id=\"claim-C1\""), "{page}");
    }

    #[test]
    fn a_claim_that_differs_everywhere_is_not_called_robust() {
        let mut outcome = super::super::fill::tests::outcome();
        let verdict = &mut outcome.claims[0].in_first_arena;
        (verdict.verdict, verdict.standing) = (Verdict::Differs, Some(talkpath_study::Standing::Robust));
        verdict.fails_under = vec!["base".to_owned(), "slow".to_owned()];
        let line = super::super::headline(verdict, "differs", false);
        assert!(line.starts_with("differs, the same under the 2 sets that change something"), "{line}");
        assert_eq!(count(&outcome), "0 reproduced, 1 differ (1 the same under every set).");
    }
}
