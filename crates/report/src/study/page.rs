//! The page of a study: verdicts, published beside reproduced under every assumption set, figures.

use talkpath_study::{ClaimOutcome, Outcome, Verdict};

use super::figure::draw;
use super::{about, mark, medians, must, stands};
use crate::html::document;
use crate::plot::svg::escape;

/// The page, self-contained.
pub fn study_page(outcome: &Outcome, talkpath: &str, command: &str) -> String {
    let mut main = String::new();
    if !outcome.valid {
        main.push_str("<p class=\"invalid\" role=\"alert\">Not every cell ran to its end undisturbed.</p>\n");
    }
    if !outcome.warnings.is_empty() {
        let list: String =
            outcome.warnings.iter().map(|warning| format!("<li>{}</li>\n", escape(warning))).collect();
        main.push_str(&format!("<div class=\"warnings\"><strong>Warnings</strong><ul>\n{list}</ul></div>\n"));
    }
    main.push_str(&overview(outcome));
    main.push_str(&assumptions(outcome));
    main.push_str("<section>\n<h2>Claims under each assumption set</h2>\n");
    for claim in &outcome.claims {
        main.push_str(&details(claim));
    }
    main.push_str("</section>\n");
    let figures: String = outcome.figures.iter().map(|figure| draw(figure).html()).collect();
    if !figures.is_empty() {
        main.push_str(&format!("<section>\n<h2>Figures</h2>\n{figures}</section>\n"));
    }
    main.push_str(&format!(
        "<section>\n<h2>How to repeat this</h2>\n<pre>{}</pre>\n</section>\n",
        escape(command)
    ));
    document(&format!("{}: {}", outcome.study, outcome.title), &about(outcome), &main, talkpath)
}

fn overview(outcome: &Outcome) -> String {
    let rows = outcome.claims.iter().map(|claim| {
        let bold = if claim.verdict == Verdict::Reproduced { " class=\"best\"" } else { "" };
        format!(
            "<tr{bold}><th class=\"left\">{}</th><td class=\"left\">{}</td>{}{}{}<td class=\"left\">{}</td></tr>\n",
            escape(&claim.id),
            claim.verdict,
            wide(&claim.claim),
            wide(&claim.published),
            wide(&claim.reproduced),
            escape(stands(claim.stands)),
        )
    });
    format!(
        "<section>\n<h2>Verdicts</h2>\n<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead><tr>{}</tr></thead>\n\
         <tbody>\n{}</tbody>\n</table>\n</div>\n</section>\n",
        ["claim", "verdict", "what it says", "published", "here, under the base assumptions", "stands"]
            .map(|head| format!("<th class=\"left\">{head}</th>"))
            .concat(),
        rows.collect::<String>()
    )
}

/// A cell of running text.
fn wide(text: &str) -> String {
    format!("<td class=\"left\" style=\"white-space:normal;min-width:12rem\">{}</td>", escape(text))
}

fn assumptions(outcome: &Outcome) -> String {
    let terms: String = outcome
        .assumptions
        .iter()
        .map(|(name, text)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(text)))
        .collect();
    format!("<section>\n<h2>Assumption sets</h2>\n<dl class=\"terms\">\n{terms}</dl>\n</section>\n")
}

fn details(claim: &ClaimOutcome) -> String {
    let mut rows = String::new();
    for under in &claim.by_assumption {
        for check in under.checks.iter().filter(|check| !check.values.is_empty()) {
            rows.push_str(&format!(
                "<tr><th class=\"left\">{}</th>{}<td class=\"left\">{}</td><td class=\"left\">{}</td>\
                 <td class=\"left\">{}</td><td class=\"right\">{} of {}</td></tr>\n",
                escape(&under.assumption),
                wide(&check.name),
                escape(&must(check)),
                escape(&medians(check)),
                escape(mark(check)),
                check.single_hits,
                check.single_runs
            ));
        }
    }
    let why = if claim.why.is_empty() { String::new() } else { format!("<p>{}</p>\n", escape(&claim.why)) };
    format!(
        "<h3>{}: {} – {}</h3>\n{why}<details><summary>Every check</summary>\n<div class=\"scroll\" tabindex=\"0\">\n\
         <table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n</details>\n",
        escape(&claim.id),
        claim.verdict,
        escape(&claim.claim),
        ["assumptions", "check", "published", "here", "", "single runs"]
            .map(|head| format!("<th class=\"left\">{head}</th>"))
            .concat()
    )
}
