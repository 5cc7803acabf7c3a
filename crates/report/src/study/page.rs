//! The page of a study. A reader looks at the charts and the tables first, so they come first; then the
//! verdicts, and each claim with the beginning of its reason. What proves a verdict is folded.

use std::collections::BTreeMap;

use maud::{Markup, html};
use talkpath_study::{
    ArenaVerdict, CheckOutcome, ClaimKind, ClaimOutcome, Outcome, SetOutcome, Verdict, format_figure,
    format_median, format_requirement,
};

use super::chart::chart;
use super::guide::{basis_meaning, explained, guide, standing_meaning, verdict_meaning};
use super::links::{claims_naming, link_figures};
use super::prose::{ProseColumn, ProseRow, prose_table};
use super::published::published_section;
use super::words::{
    about_study, after_standing, check_figure, check_result, claim_counts, in_arena, spread,
    standing_in_words,
};
use crate::animation::{Animation, topology_svg};
use crate::chart::{Chart, id_part};
use crate::html::{BREAK, document, warnings};
use crate::number::{distinct, list};

/// Writes the page. It loads no other file. `networks` has the network of each scenario, `talkpath` is the
/// version of the program, and `command` repeats the study.
pub fn study_page(outcome: &Outcome, networks: &[Animation], talkpath: &str, command: &str) -> String {
    let main = html! {
        @if !outcome.valid {
            p.invalid role="alert" { "Not every cell ran to its end undisturbed." }
        }
        (warnings(&outcome.warnings))
        p { strong { (claim_counts(outcome)) } }
        (guide(outcome))
        (figure_section(outcome))
        (published_section(outcome))
        (verdict_section(outcome))
        section {
            h2 { "Every claim" }
            @for claim in &outcome.claims { (claim_details(claim, outcome)) }
        }
        (network_section(networks))
        (assumption_section(outcome))
        @if !outcome.not_shown.is_empty() {
            p { "No cell of these ran, so they are not shown: " (list(&outcome.not_shown)) "." }
        }
        section {
            h2 { "How to repeat this" }
            pre tabindex="0" { (command) }
        }
    };
    let title = format!("{}: {}", outcome.study, outcome.title);
    document(&title, &about_study(outcome), &main, talkpath)
}

fn verdict_section(outcome: &Outcome) -> Markup {
    let has_several_arenas = outcome.arenas.len() > 1;
    let here = if has_several_arenas {
        format!("here, in {}, under the base assumptions", outcome.arena)
    } else {
        "here, under the base assumptions".to_owned()
    };
    // A character is about a hundredth of the page wide, so no claim's id is broken.
    let longest_id = outcome.claims.iter().map(|claim| claim.id.chars().count()).max().unwrap_or(0);
    let id_width = (longest_id as u32 + 2).clamp(7, 14);
    let columns = [
        ProseColumn { head: "claim", width_percent: id_width },
        ProseColumn { head: "verdict", width_percent: 23 },
        ProseColumn { head: "what it says", width_percent: 30 - id_width },
        ProseColumn { head: "published", width_percent: 17 },
        ProseColumn { head: &here, width_percent: 30 },
    ];
    let rows: Vec<ProseRow> = outcome.claims.iter().map(|claim| claim_row(claim, outcome)).collect();
    html! {
        section {
            h2 { "Verdicts" }
            (prose_table(&columns, &rows))
        }
    }
}

fn claim_row(claim: &ClaimOutcome, outcome: &Outcome) -> ProseRow {
    let verdicts = html! {
        @for (index, verdict) in claim.verdicts().enumerate() {
            @if index > 0 { (BREAK) }
            (explained_verdict(verdict)) (after_standing(verdict, &in_arena(verdict, outcome)))
        }
    };
    ProseRow {
        is_marked: claim.verdicts().any(|verdict| verdict.verdict == Verdict::Differs),
        cells: vec![
            html! { a href={ "#claim-" (id_part(&claim.id)) } { (claim.id) } },
            verdicts,
            link_figures(&claim.claim, &outcome.figures),
            link_figures(&claim.published, &outcome.figures),
            link_figures(&claim.in_first_arena.reproduced, &outcome.figures),
        ],
    }
}

/// The publication's figures, drawn again. What the captions of several charts say is said once, above them.
fn figure_section(outcome: &Outcome) -> Markup {
    if outcome.figures.is_empty() {
        return html! {};
    }
    let mut charts: Vec<Chart> = outcome.figures.iter().map(chart).collect();
    let common = take_common_sentences(charts.iter_mut().map(|chart| &mut chart.caption).collect());
    html! {
        section {
            h2 { "Figures" }
            @if !common.is_empty() { p.about { (common) } }
            @for (figure, chart) in outcome.figures.iter().zip(&charts) {
                (chart.html())
                (claims_naming(figure, outcome))
            }
        }
    }
}

/// Takes out of each caption the sentences that [`MIN_COMMON_CAPTIONS`] captions or more have, and returns
/// them.
fn take_common_sentences(captions: Vec<&mut String>) -> String {
    let sentences = |caption: &str| -> Vec<String> {
        caption.split_inclusive(". ").map(|sentence| sentence.trim().to_owned()).collect()
    };
    let of_all: Vec<Vec<String>> = captions.iter().map(|caption| sentences(caption)).collect();
    let count = |sentence: &String| of_all.iter().filter(|caption| caption.contains(sentence)).count();
    let is_common = |sentence: &&String| !sentence.is_empty() && count(sentence) >= MIN_COMMON_CAPTIONS;
    let common: Vec<String> = distinct(of_all.iter().flatten().filter(is_common).cloned());
    for (caption, sentences) in captions.into_iter().zip(&of_all) {
        let own = sentences.iter().filter(|sentence| !common.contains(sentence));
        *caption = own.cloned().collect::<Vec<_>>().join(" ");
    }
    common.join(" ")
}

/// A sentence that this many captions have is said once. We chose 3.
const MIN_COMMON_CAPTIONS: usize = 3;

/// The drawing of each network. Empty if there is none.
fn network_section(networks: &[Animation]) -> Markup {
    if networks.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Networks" }
            @for (index, network) in networks.iter().enumerate() {
                // The page's module names a saved file after this id.
                figure id={ "figure-network-" (index + 1) } {
                    h3 { (network.name) }
                    @match topology_svg(&name_hosts_by_role(network), &format!("network-{index}")) {
                        Ok(svg) => { div class="scroll plot" tabindex="0" { (svg) } }
                        Err(reason) => { p { (reason) } }
                    }
                    figcaption { (network.about) }
                }
            }
        }
    }
}

/// Adds the role to the names of hosts that have one name, for example if both ends of a flow are `test`.
fn name_hosts_by_role(network: &Animation) -> Animation {
    let mut named = network.clone();
    for (index, node) in named.nodes.iter_mut().enumerate() {
        let has_namesake = network.nodes.iter().filter(|other| other.label == node.label).count() > 1;
        if has_namesake && !node.label.is_empty() {
            let is_sender = network.flows.iter().any(|flow| flow.sender == index);
            let role = if is_sender { "sender" } else { "receiver" };
            node.label = format!("{}, {role}", node.label);
        }
    }
    named
}

fn assumption_section(outcome: &Outcome) -> Markup {
    html! {
        section {
            h2 { "Assumption sets" }
            details {
                summary { "What each set assumes" }
                dl.terms {
                    @for (name, text) in &outcome.assumptions { dt { (name) } dd { (text) } }
                }
            }
        }
    }
}

/// A verdict and its standing, each with its meaning under a pointer.
fn explained_verdict(verdict: &ArenaVerdict) -> Markup {
    html! {
        (explained(&verdict.verdict.to_string(), verdict_meaning(verdict.verdict)))
        @if let (Some(words), Some(known)) = (standing_in_words(verdict), verdict.standing) {
            ", " (explained(&words, standing_meaning(known)))
        }
    }
}

/// A claim with its verdict and its checks in each arena.
fn claim_details(claim: &ClaimOutcome, outcome: &Outcome) -> Markup {
    html! {
        h3 id={ "claim-" (id_part(&claim.id)) } { (outcome.study) "/" (claim.id) ": " (claim.claim) }
        @for verdict in claim.verdicts() {
            p {
                (explained_verdict(verdict))
                (in_arena(verdict, outcome))
                ": "
                @if !verdict.under.is_empty() { (verdict.under) ". " }
                (reason(&verdict.why))
            }
            (rest_of_reason(&verdict.why))
            (judged_checks(verdict))
            (checks_not_judged(verdict))
        }
    }
}

/// The number of sentences of a reason that are not folded.
const OPEN_SENTENCES: usize = 2;

/// Splits a reason behind its first sentences. A sentence ends with a full stop and a space before a capital.
fn split_reason(why: &str) -> (&str, &str) {
    let mut sentences = 0;
    for (index, _) in why.match_indices(". ") {
        if why[index + 2..].starts_with(char::is_uppercase) {
            sentences += 1;
        }
        if sentences == OPEN_SENTENCES {
            return (&why[..=index], &why[index + 2..]);
        }
    }
    (why, "")
}

fn reason(why: &str) -> &str {
    split_reason(why).0
}

/// What follows the first sentences of a reason, folded. Empty if nothing follows.
fn rest_of_reason(why: &str) -> Markup {
    let (_, rest) = split_reason(why);
    html! {
        @if !rest.is_empty() {
            details { summary { "The rest of the reason" } p { (rest) } }
        }
    }
}

/// The checks of a claim in one arena. Checks between arenas are open, and the others are folded. Of another
/// set than the first only the checks with another answer are shown: study.json has all.
fn judged_checks(verdict: &ArenaVerdict) -> Markup {
    let mut between_arenas = Vec::new();
    let mut others = Vec::new();
    let first_answers = answers(verdict.by_assumption.first());
    for (index, set_outcome) in verdict.by_assumption.iter().enumerate() {
        for check in set_outcome.checks.iter().filter(|check| !check.values.is_empty()) {
            let is_as_under_first = first_answers.get(check.name.as_str()) == Some(&check.holds);
            match check.must {
                ClaimKind::Agree { .. } => between_arenas.push(row_between_arenas(check)),
                _ if index > 0 && is_as_under_first => {}
                _ => others.push(check_row(&set_outcome.assumption, check)),
            }
        }
    }
    html! {
        @if !between_arenas.is_empty() { (prose_table(&BETWEEN_ARENAS_COLUMNS, &between_arenas)) }
        @if !others.is_empty() {
            details {
                summary { "Every check, and the checks with another answer under another set" }
                (prose_table(&CHECK_COLUMNS, &others))
            }
        }
    }
}

/// Whether each check of a set holds, by the name of the check.
fn answers(set_outcome: Option<&SetOutcome>) -> BTreeMap<&str, Option<bool>> {
    let checks = set_outcome.into_iter().flat_map(|outcome| &outcome.checks);
    checks.map(|check| (check.name.as_str(), check.holds)).collect()
}

const BETWEEN_ARENAS_COLUMNS: [ProseColumn<'_>; 6] = [
    ProseColumn { head: "check", width_percent: 28 },
    ProseColumn { head: "simulator", width_percent: 15 },
    ProseColumn { head: "kernel", width_percent: 15 },
    ProseColumn { head: "off by", width_percent: 12 },
    ProseColumn { head: "smallest to largest: simulator, kernel", width_percent: 18 },
    ProseColumn { head: "asked", width_percent: 12 },
];

/// A check that compares the simulator with the kernel.
fn row_between_arenas(check: &CheckOutcome) -> ProseRow {
    let value =
        |index: usize| html! { @if let Some(value) = check.values.get(index) { (format_median(value)) } };
    let spreads: Vec<String> = check.values.iter().map(spread).collect();
    let cells = vec![
        html! { (check.name) },
        value(0),
        value(1),
        html! { (format_figure(check).unwrap_or_default()) },
        html! { (spreads.join("; ")) },
        html! { (format_requirement(check)) ": " (check_result(check)) },
    ];
    ProseRow { is_marked: is_failed(check), cells }
}

const CHECK_COLUMNS: [ProseColumn<'_>; 7] = [
    ProseColumn { head: "check", width_percent: 22 },
    ProseColumn { head: "assumptions", width_percent: 12 },
    ProseColumn { head: "asked", width_percent: 15 },
    ProseColumn { head: "basis", width_percent: 9 },
    ProseColumn { head: "here", width_percent: 24 },
    ProseColumn { head: "verdict", width_percent: 10 },
    ProseColumn { head: "single repetitions", width_percent: 8 },
];

fn check_row(assumption_set: &str, check: &CheckOutcome) -> ProseRow {
    let cells = vec![
        html! { (check.name) },
        html! { (assumption_set) },
        html! { (format_requirement(check)) },
        explained_basis(check),
        html! { (check_figure(check)) },
        html! { (check_result(check)) },
        html! { @if check.single_runs == 0 { "not counted" } @else { (check.single_hits) " of " (check.single_runs) } },
    ];
    ProseRow { is_marked: is_failed(check), cells }
}

fn is_failed(check: &CheckOutcome) -> bool {
    check.holds == Some(false)
}

const NOT_JUDGED_COLUMNS: [ProseColumn<'_>; 3] = [
    ProseColumn { head: "would be checked", width_percent: 50 },
    ProseColumn { head: "asked", width_percent: 35 },
    ProseColumn { head: "basis", width_percent: 15 },
];

/// The checks of a claim that has no verdict. Empty if there are none.
fn checks_not_judged(verdict: &ArenaVerdict) -> Markup {
    let mut rows = Vec::new();
    for check in &verdict.not_judged {
        let cells =
            vec![html! { (check.name) }, html! { (format_requirement(check)) }, explained_basis(check)];
        rows.push(ProseRow { is_marked: false, cells });
    }
    html! {
        @if !rows.is_empty() { (prose_table(&NOT_JUDGED_COLUMNS, &rows)) }
    }
}

fn explained_basis(check: &CheckOutcome) -> Markup {
    explained(&check.basis.to_string(), basis_meaning(check.basis))
}

#[cfg(test)]
mod tests {
    use super::super::words::verdict_in_words;
    use super::*;
    use crate::animation::tests::two_hosts;

    #[test]
    fn hosts_with_one_name_are_named_by_their_role() {
        let mut network = two_hosts();
        for node in &mut network.nodes {
            node.label = "test".to_owned();
        }
        let labels: Vec<String> =
            name_hosts_by_role(&network).nodes.into_iter().map(|node| node.label).collect();
        assert_eq!(labels, ["test, sender", "test, receiver"]);
        assert_eq!(name_hosts_by_role(&two_hosts()).nodes, two_hosts().nodes);
    }

    #[test]
    fn each_network_has_a_name_of_its_own_for_its_saved_file() {
        let outcome = super::super::fill::tests::outcome();
        let page = study_page(&outcome, &[two_hosts(), two_hosts()], "0.3.0", "talkpath study run x-1999");
        assert!(page.contains("<figure id=\"figure-network-1\">"), "{page}");
        assert!(page.contains("<figure id=\"figure-network-2\">") && !page.contains("<figure>"), "{page}");
    }

    #[test]
    fn charts_and_printed_values_come_before_the_verdicts() {
        let page = study_page(
            &super::super::fill::tests::outcome(),
            &[two_hosts()],
            "0.3.0",
            "talkpath study run x",
        );
        let place = |head: &str| {
            page.find(&format!("<h2>{head}</h2>")).unwrap_or_else(|| panic!("no {head}: {page}"))
        };
        assert!(place("Verdicts") < place("Every claim") && place("Every claim") < place("Networks"));
    }

    #[test]
    fn a_long_reason_is_folded_behind_its_second_sentence() {
        let why = "It holds at 128.5 kb/s alone. The queue drains slowly. So its delay is long. And more";
        assert_eq!(
            split_reason(why),
            ("It holds at 128.5 kb/s alone. The queue drains slowly.", "So its delay is long. And more")
        );
        assert_eq!(split_reason("One. two. Three"), ("One. two. Three", ""));
        assert!(rest_of_reason(why).0.contains("<details>") && rest_of_reason("Short").0.is_empty());
    }

    #[test]
    fn what_all_captions_say_is_said_once() {
        let mut captions =
            ["Hollow is printed. A note.", "Hollow is printed.", "Hollow is printed. Another."]
                .map(str::to_owned);
        let common = take_common_sentences(captions.iter_mut().collect());
        assert_eq!(common, "Hollow is printed.");
        assert_eq!(captions, ["A note.", "", "Another."]);
        let mut two = ["Same.".to_owned(), "Same.".to_owned()];
        assert_eq!(take_common_sentences(two.iter_mut().collect()), "");
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
        let line = verdict_in_words(verdict);
        assert!(line.starts_with("differs, the same under every set that changes something"), "{line}");
        assert_eq!(claim_counts(&outcome), "0 reproduced, 1 differ (1 the same under every set).");
    }
}
