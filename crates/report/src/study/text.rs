//! The terminal's table of a study: a block a claim.

use core::fmt::Write as _;

use talkpath_study::{ArenaVerdict, ClaimOutcome, Outcome, UnderAssumption, Verdict, shown_must};

use super::{about, count, headline, mark, medians};
use crate::Style;
use crate::number::counted;

/// Every claim: what was published, what came out under the base assumptions and under those that show its
/// sensitivity, the verdict and why.
pub fn study_table(outcome: &Outcome, style: &Style) -> String {
    let mut text = format!("{}: {}\n{}\n", outcome.study, outcome.title, about(outcome));
    for claim in &outcome.claims {
        block(&mut text, claim, outcome, style);
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{}", count(outcome));
    text
}

fn block(text: &mut String, claim: &ClaimOutcome, outcome: &Outcome, style: &Style) {
    let several = outcome.arenas.len() > 1;
    text.push('\n');
    heading(text, &format!("{}/{}  ", outcome.study, claim.id), &claim.in_first_arena, several, style);
    paragraph(text, "claim", &claim.claim, style);
    paragraph(text, "published", &claim.published, style);
    in_arena(text, &claim.in_first_arena, &claim.sensitivity, style);
    for verdict in &claim.in_other_arenas {
        heading(text, "  ", verdict, several, style);
        in_arena(text, verdict, &claim.sensitivity, style);
    }
}

/// `sawashima-1997/S3  differs, only-under in sim: fails under base; holds under delayed-ack`.
fn heading(text: &mut String, first: &str, verdict: &ArenaVerdict, several: bool, style: &Style) {
    let words = headline(verdict, &coloured(verdict.verdict, style), several);
    hanging(text, first, "    ", &words, style);
}

fn in_arena(text: &mut String, verdict: &ArenaVerdict, sensitivity: &[String], style: &Style) {
    if !verdict.reproduced.is_empty() {
        paragraph(text, "here", &verdict.reproduced, style);
    }
    let shown = |under: &&UnderAssumption| {
        verdict.by_assumption.first() == Some(*under) || sensitivity.contains(&under.assumption)
    };
    for under in verdict.by_assumption.iter().filter(shown).filter(|under| under.holds.is_some()) {
        let _ = writeln!(text, "    under {}:", under.assumption);
        for check in &under.checks {
            let line =
                format!("{}: {} (asked: {}) {}", check.name, medians(check), shown_must(check), mark(check));
            let single = format!(
                "; {}; in {} of {}",
                check.basis,
                check.single_hits,
                counted(check.single_runs, "single repetition")
            );
            wrapped(text, "      ", &format!("{line}{single}"), style);
        }
    }
    for check in &verdict.not_judged {
        wrapped(
            text,
            "      ",
            &format!("would be checked: {} (asked: {})", check.name, shown_must(check)),
            style,
        );
    }
    paragraph(text, "why", &verdict.why, style);
}

fn coloured(verdict: Verdict, style: &Style) -> String {
    let colour = match verdict {
        Verdict::Reproduced => "32",
        Verdict::Consistent => "34",
        Verdict::PartlyJudged => "36",
        Verdict::Differs => "33",
        Verdict::NotTested | Verdict::Disturbed => "2",
    };
    if style.color { format!("\x1b[1;{colour}m{verdict}\x1b[0m") } else { verdict.to_string() }
}

fn paragraph(text: &mut String, label: &str, words: &str, style: &Style) {
    wrapped(text, "    ", &format!("{label}: {words}"), style);
}

/// Words on lines of the terminal's width; later lines are indented by four more.
fn wrapped(text: &mut String, indent: &str, words: &str, style: &Style) {
    hanging(text, indent, &format!("{indent}    "), words, style);
}

/// The same with `first` before the first line and `later` before the others.
fn hanging(text: &mut String, first: &str, later: &str, words: &str, style: &Style) {
    let width = style.width.max(40);
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            text.push_str(&line);
            text.push('\n');
            line = later.to_owned();
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
