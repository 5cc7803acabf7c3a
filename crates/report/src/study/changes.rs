//! Two runs of one study side by side, for the terminal.

use talkpath_study::{Outcome, Standing, Verdict, VerdictChange};

/// Which claims of `later` have another verdict or standing than in `first`, and a line that counts them.
pub fn study_changes(first: &Outcome, later: &Outcome, changes: &[VerdictChange]) -> String {
    let count = changes.iter().filter(|change| change.contradicts).count();
    let verdicts = match count {
        0 => "no verdict changes".to_owned(),
        1 => "1 verdict changes".to_owned(),
        _ => format!("{count} verdicts change"),
    };
    let mut text = format!(
        "{}: {} against {}: {} claims, {verdicts}\n",
        first.study,
        called(later),
        called(first),
        first.claims.len()
    );
    for change in changes {
        let mark = if change.contradicts { "  changed  " } else { "           " };
        let (before, after) = (in_words(change.before), in_words(change.after));
        text.push_str(&format!("{mark}{} in {}: {before} -> {after}\n", change.claim, change.arena));
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
