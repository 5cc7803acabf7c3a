//! The differences between two runs of one study, for the terminal.
//!
//! The outcomes may be files from anybody, so the names in them are made printable.

use talkpath_study::{Outcome, Standing, Verdict, VerdictChange};

use crate::grid::printable;
use crate::number::counted;

/// Writes the claims that have another verdict or standing in `later` than in `first`, below a line that
/// counts them.
pub fn study_changes(first: &Outcome, later: &Outcome, changes: &[VerdictChange]) -> String {
    let changed = match changes.iter().filter(|change| change.contradicts).count() {
        0 => "no verdict changes".to_owned(),
        1 => "1 verdict changes".to_owned(),
        count => format!("{count} verdicts change"),
    };
    let mut text = format!(
        "{}: {} against {}: {}, {changed}\n",
        printable(&first.study),
        describe_run(later),
        describe_run(first),
        counted(first.claims.len() as u64, "claim")
    );
    for change in changes {
        // The empty text is as wide as the mark, so that the claims are in one column.
        let mark = if change.contradicts { "  changed  " } else { "           " };
        let (before, after) = (verdict_and_standing(change.before), verdict_and_standing(change.after));
        let claim = printable(&change.claim);
        text.push_str(&format!("{mark}{claim} in {}: {before} -> {after}\n", change.arena));
    }
    text
}

/// Describes a run by what distinguishes it from other runs of its study.
fn describe_run(outcome: &Outcome) -> String {
    let length = if outcome.quick { "--quick" } else { "in full" };
    match outcome.seed {
        Some(seed) => format!("seed {seed}, {length}"),
        None => format!("the scenarios' own seeds, {length}"),
    }
}

fn verdict_and_standing((verdict, standing): (Verdict, Option<Standing>)) -> String {
    standing.map_or_else(|| verdict.to_string(), |standing| format!("{verdict}, {standing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_a_file_do_not_control_the_terminal() {
        let mut first = super::super::fill::tests::outcome();
        first.study = "x\x1b[2J".to_owned();
        let later = first.clone();
        let change = VerdictChange {
            claim: "C1\x1b]0;a\x07".to_owned(),
            arena: first.arena.to_string(),
            before: (Verdict::Reproduced, None),
            after: (Verdict::Differs, None),
            contradicts: true,
        };
        let text = study_changes(&first, &later, &[change]);
        assert!(text.contains("C1") && !text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
