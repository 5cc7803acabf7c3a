//! Two runs of one study side by side, for the terminal. They come from files of anybody's.

use talkpath_study::{Outcome, Standing, Verdict, VerdictChange};

use crate::grid::printable;
use crate::number::counted;

/// Which claims of `later` have another verdict or standing than in `first`, and a line that counts them.
pub fn study_changes(first: &Outcome, later: &Outcome, changes: &[VerdictChange]) -> String {
    let count = changes.iter().filter(|change| change.contradicts).count();
    let verdicts = match count {
        0 => "no verdict changes".to_owned(),
        1 => "1 verdict changes".to_owned(),
        _ => format!("{count} verdicts change"),
    };
    let mut text = format!(
        "{}: {} against {}: {}, {verdicts}\n",
        printable(&first.study),
        called(later),
        called(first),
        counted(first.claims.len() as u64, "claim")
    );
    for change in changes {
        let mark = if change.contradicts { "  changed  " } else { "           " };
        let (before, after) = (in_words(change.before), in_words(change.after));
        let claim = printable(&change.claim);
        text.push_str(&format!("{mark}{claim} in {}: {before} -> {after}\n", change.arena));
    }
    text
}

/// What distinguishes a run from others of its study.
fn called(outcome: &Outcome) -> String {
    let length = if outcome.quick { "--quick" } else { "in full" };
    match outcome.seed {
        Some(seed) => format!("seed {seed}, {length}"),
        None => format!("the scenarios' own seeds, {length}"),
    }
}

fn in_words((verdict, standing): (Verdict, Option<Standing>)) -> String {
    standing.map_or_else(|| verdict.to_string(), |standing| format!("{verdict}, {standing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_calls_its_study_and_its_claims_does_not_steer_the_terminal() {
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
