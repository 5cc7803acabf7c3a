//! The terminal's table of a study: a block a claim.

use core::fmt::Write as _;

use talkpath_study::{ClaimOutcome, Outcome, UnderAssumption, Verdict};

use super::{about, mark, medians, must, stands};
use crate::Style;

/// Every claim: what was published, what came out under the base assumptions and under those that show its sensitivity,
/// the verdict and why.
pub fn study_table(outcome: &Outcome, style: &Style) -> String {
    let mut text = format!("{}: {}\n{}\n", outcome.study, outcome.title, about(outcome));
    for claim in &outcome.claims {
        block(&mut text, claim, style);
    }
    let count = |verdict| outcome.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let _ = write!(
        text,
        "\n{} reproduced, {} differ, {} not tested.\n",
        count(Verdict::Reproduced),
        count(Verdict::Differs),
        count(Verdict::NotTested)
    );
    text
}

fn block(text: &mut String, claim: &ClaimOutcome, style: &Style) {
    let verdict = coloured(claim.verdict, style);
    let under = stands(claim.stands);
    let space = if under.is_empty() { "" } else { " " };
    let surprise = if claim.verdict == claim.expected {
        String::new()
    } else {
        format!(" (expected {})", claim.expected)
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{}  {verdict}{space}{under}{surprise}", claim.id);
    paragraph(text, "claim", &claim.claim, style);
    paragraph(text, "published", &claim.published, style);
    if !claim.reproduced.is_empty() {
        paragraph(text, "here", &claim.reproduced, style);
    }
    let shown = |it: &&UnderAssumption| {
        claim.by_assumption.first() == Some(*it) || claim.sensitivity.contains(&it.assumption)
    };
    for under in claim.by_assumption.iter().filter(shown).filter(|under| under.holds.is_some()) {
        let _ = writeln!(text, "    under {}:", under.assumption);
        for check in &under.checks {
            let line =
                format!("{}: {} (published: {}) {}", check.name, medians(check), must(check), mark(check));
            let single = format!("; in {} of {} single runs", check.single_hits, check.single_runs);
            wrapped(text, "      ", &format!("{line}{single}"), style);
        }
    }
    if claim.verdict == Verdict::Reproduced {
        paragraph(text, "under", &claim.assumptions.join(", "), style);
    }
    if !claim.why.is_empty() {
        paragraph(text, "why", &claim.why, style);
    }
}

fn coloured(verdict: Verdict, style: &Style) -> String {
    let colour = match verdict {
        Verdict::Reproduced => "32",
        Verdict::Differs => "33",
        Verdict::NotTested => "2",
    };
    if style.color { format!("\x1b[1;{colour}m{verdict}\x1b[0m") } else { verdict.to_string() }
}

fn paragraph(text: &mut String, label: &str, words: &str, style: &Style) {
    wrapped(text, "    ", &format!("{label}: {words}"), style);
}

/// Words on lines of the terminal's width; later lines stand in by four.
fn wrapped(text: &mut String, indent: &str, words: &str, style: &Style) {
    let width = style.width.max(40);
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            text.push_str(&line);
            text.push('\n');
            line = format!("{indent}    ");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(&line);
    text.push('\n');
}
