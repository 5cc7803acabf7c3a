//! The page of a study: verdicts, published beside reproduced under every assumption set and in every arena,
//! figures.

use maud::{Markup, PreEscaped, html};
use talkpath_study::{
    ArenaVerdict, CheckOutcome, ClaimKind, ClaimOutcome, Outcome, Verdict, shown_figure, shown_must,
    shown_value,
};

use super::figure::draw;
use super::prose::{Row, prose_table};
use super::{about, count, headline, mark, medians, published, spread};
use crate::animation::{Animation, topology_svg};
use crate::html::{BREAK, document, warnings};

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
                @for figure in &outcome.figures { (draw(figure).html()) }
            }
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
                (headline(verdict, &verdict.verdict.to_string(), several))
            }
        };
        let [id, what, published, here] =
            [&claim.id, &claim.claim, &claim.published, &claim.base.reproduced].map(|text| html! { (text) });
        Row {
            is_marked: claim.base.verdict == Verdict::Reproduced,
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
            p { (count(outcome)) }
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
                    figure {
                        h3 { (network.name) }
                        div class="scroll plot" tabindex="0" {
                            (PreEscaped(topology_svg(network, &format!("network-{at}"))))
                        }
                        figcaption { (network.about) }
                    }
                }
            }
        }
    }
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

fn details(claim: &ClaimOutcome, outcome: &Outcome) -> Markup {
    let several = outcome.arenas.len() > 1;
    html! {
        h3 { (outcome.study) "/" (claim.id) ": " (claim.claim) }
        @for verdict in claim.verdicts() {
            p {
                strong {
                    (verdict.verdict.to_string())
                    @if let Some(standing) = verdict.standing { ", " (standing.to_string()) }
                }
                @if several { " in " (verdict.arena) }
                ": "
                @if !verdict.under.is_empty() { (verdict.under) ". " }
                (verdict.why)
            }
            (checks(verdict))
        }
    }
}

/// Every check of a claim in one arena, folded; what compares arenas stands open.
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
        ("single runs", 8),
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
    let basis = check.basis.to_string();
    let asked = shown_must(check);
    marked_row(check, &[&check.name, assumption, &asked, &basis, &medians(check), mark(check), &single])
}

fn agreement(check: &CheckOutcome) -> Row {
    let value = |index: usize| {
        check.values.get(index).map_or_else(String::new, |value| shown_value(&value.metric, value))
    };
    let spreads: Vec<_> = check.values.iter().map(spread).collect();
    let asked = format!("{}: {}", shown_must(check), mark(check));
    let off = shown_figure(check).unwrap_or_default();
    marked_row(check, &[&check.name, &value(0), &value(1), &off, &spreads.join("; "), &asked])
}

/// What fails stands out.
fn marked_row(check: &CheckOutcome, texts: &[&str]) -> Row {
    Row { is_marked: check.holds == Some(false), cells: texts.iter().map(|text| html! { (text) }).collect() }
}
