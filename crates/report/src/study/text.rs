//! The table of a study in the terminal: a block of lines for each claim.

use talkpath_study::{
    ArenaVerdict, CheckOutcome, ClaimOutcome, Outcome, SetOutcome, Verdict, format_requirement,
};

use super::words::{about_study, after_verdict, check_figure, check_result, claim_counts, in_arena};
use crate::Style;
use crate::number::counted;

/// The least width of a line. A narrower terminal breaks the lines itself.
const MIN_WIDTH: usize = 40;

/// Writes a block for each claim: what was published, our figures under the base and under the sets that show
/// how much the claim depends on assumptions, the verdict, and its reason.
pub fn study_table(outcome: &Outcome, style: &Style) -> String {
    let text = format!("{}: {}\n{}\n", outcome.study, outcome.title, about_study(outcome));
    let mut table = StudyTable { outcome, style, text };
    for claim in &outcome.claims {
        table.add_claim(claim);
    }
    table.text.push_str(&format!("\n{}\n", claim_counts(outcome)));
    table.text
}

/// The table under construction.
struct StudyTable<'a> {
    outcome: &'a Outcome,
    style: &'a Style,
    text: String,
}

/// The beginnings of the lines of a paragraph.
struct Indent<'a> {
    first_line: &'a str,
    other_lines: &'a str,
}

impl StudyTable<'_> {
    fn add_claim(&mut self, claim: &ClaimOutcome) {
        self.text.push('\n');
        let name = format!("{}/{}  ", self.outcome.study, claim.id);
        self.add_heading(&name, &claim.in_first_arena);
        self.add_labelled("claim", &claim.claim);
        self.add_labelled("published", &claim.published);
        self.add_arena(&claim.in_first_arena, &claim.sensitivity);
        for verdict in &claim.in_other_arenas {
            self.add_heading("  ", verdict);
            self.add_arena(verdict, &claim.sensitivity);
        }
    }

    /// Adds a line like `sawashima-1997/S3  differs, only-under in sim: fails under base; holds under
    /// delayed-ack`.
    fn add_heading(&mut self, start: &str, verdict: &ArenaVerdict) {
        let word = paint_verdict(verdict.verdict, self.style);
        let words = format!("{word}{}", after_verdict(verdict, &in_arena(verdict, self.outcome)));
        self.add_paragraph(&Indent { first_line: start, other_lines: "    " }, &words);
    }

    /// Adds the results of a claim in one arena. `sensitivity` names the sets that are shown beside the base.
    fn add_arena(&mut self, verdict: &ArenaVerdict, sensitivity: &[String]) {
        if !verdict.reproduced.is_empty() {
            self.add_labelled("here", &verdict.reproduced);
        }
        for (index, set_outcome) in verdict.by_assumption.iter().enumerate() {
            let is_base = index == 0;
            let is_shown = is_base || sensitivity.contains(&set_outcome.assumption);
            if is_shown && set_outcome.holds.is_some() {
                self.add_set_outcome(set_outcome);
            }
        }
        for check in &verdict.not_judged {
            let line = format!("would be checked: {} (asked: {})", check.name, format_requirement(check));
            self.add_check_line(&line);
        }
        self.add_labelled("why", &verdict.why);
    }

    fn add_set_outcome(&mut self, set_outcome: &SetOutcome) {
        self.text.push_str(&format!("    under {}:\n", set_outcome.assumption));
        for check in &set_outcome.checks {
            self.add_check_line(&describe_check(check));
        }
    }

    fn add_check_line(&mut self, line: &str) {
        self.add_paragraph(&Indent { first_line: "      ", other_lines: "          " }, line);
    }

    fn add_labelled(&mut self, label: &str, words: &str) {
        let indent = Indent { first_line: "    ", other_lines: "        " };
        self.add_paragraph(&indent, &format!("{label}: {words}"));
    }

    /// Adds words in lines of the terminal's width.
    fn add_paragraph(&mut self, indent: &Indent<'_>, words: &str) {
        let width = self.style.width.max(MIN_WIDTH);
        let mut line = indent.first_line.to_owned();
        let mut has_words = false;
        for word in words.split_whitespace() {
            if has_words && line.chars().count() + 1 + word.chars().count() > width {
                self.text.push_str(&line);
                self.text.push('\n');
                line = indent.other_lines.to_owned();
                has_words = false;
            }
            if has_words {
                line.push(' ');
            }
            line.push_str(word);
            has_words = true;
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }
}

/// Writes a check: `NAME: FIGURE (asked: BOUND) holds; predicted; in 5 of 6 single repetitions`.
fn describe_check(check: &CheckOutcome) -> String {
    format!(
        "{}: {} (asked: {}) {}; {}; {}",
        check.name,
        check_figure(check),
        format_requirement(check),
        check_result(check),
        check.basis,
        single_repetitions(check)
    )
}

/// Says in how many single repetitions a check holds. A check that was judged by the medians of an earlier
/// run has none.
fn single_repetitions(check: &CheckOutcome) -> String {
    match check.single_runs {
        0 => "single repetitions not counted".to_owned(),
        runs => format!("in {} of {}", check.single_hits, counted(runs, "single repetition")),
    }
}

fn paint_verdict(verdict: Verdict, style: &Style) -> String {
    if !style.color {
        return verdict.to_string();
    }
    // The parameters of the SGR escape sequence (ECMA-48 §8.3.117).
    let (green, blue, cyan, yellow, faint) = ("32", "34", "36", "33", "2");
    let colour = match verdict {
        Verdict::Reproduced => green,
        Verdict::Consistent => blue,
        Verdict::PartlyJudged => cyan,
        Verdict::Differs => yellow,
        Verdict::NotTested | Verdict::Disturbed => faint,
    };
    format!("\x1b[1;{colour}m{verdict}\x1b[0m")
}
