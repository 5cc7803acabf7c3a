//! Describes a study for a person: `talkpath study show`.

use talkpath_study::{ArenaName, Claim, Selection, Study};
use talkpath_units::counted;

use super::runner::in_words;

/// Writes the description of a study.
pub(super) fn describe(study: &Study) -> String {
    let Study { name, title, year, source, question, set_up, repeat, .. } = study;
    let authors = study.authors.join(", ");
    let mut text = format!("{name}: {title}\n{authors}, {year} ({source})\n\n{question}\n\n{set_up}\n");
    text.push_str("\nAssumption sets:\n");
    for assumption in &study.assumptions {
        text.push_str(&format!("  {}: {}\n", assumption.name, assumption.text));
    }
    text.push_str("\nClaims:\n");
    for claim in &study.claims {
        let Claim { id, text: statement, published, why, .. } = claim;
        let expected = expected_verdicts(claim);
        text.push_str(&format!("  {name}/{id}  {statement}\n"));
        text.push_str(&format!("      published: {published}\n"));
        text.push_str(&format!("      expected:  {expected}\n"));
        text.push_str(&format!("      why:       {why}\n"));
    }
    text.push_str(&format!(
        "\nRuns ({repeat} start phases each unless a cell or an arena says otherwise):\n"
    ));
    for arena in ArenaName::RUNNABLE {
        let selection = |quick| Selection { arenas: vec![arena], is_quick: quick, claim_ids: Vec::new() };
        let whole = amount(study, &selection(false));
        let quick = amount(study, &selection(true));
        text.push_str(&format!("  --arena {arena}: {whole}; with --quick: {quick}\n"));
    }
    text
}

/// Writes the expected verdicts of a claim, such as `reproduced`. If the arenas differ, it writes for example
/// `sim reproduced, emu differs`.
fn expected_verdicts(claim: &Claim) -> String {
    let mut verdicts = claim.expected.values();
    if let Some(first) = verdicts.next()
        && verdicts.all(|verdict| verdict == first)
    {
        return first.to_string();
    }
    let by_arena = claim.expected.iter().map(|(arena, verdict)| format!("{arena} {verdict}"));
    by_arena.collect::<Vec<_>>().join(", ")
}

/// Writes how much is selected, such as `40 cells, 200 runs, 1 h 12 min of path time`.
fn amount(study: &Study, selection: &Selection) -> String {
    let cells = selection.cells(study);
    let (mut runs, mut seconds) = (0, 0);
    for plan in cells.iter().filter_map(|cell| selection.runs(cell)) {
        runs += plan.repeat;
        seconds += plan.repeat.saturating_mul(plan.scenario.duration.as_millis() / 1000);
    }
    format!("{}, {}, {} of path time", counted(cells.len(), "cell"), counted(runs, "run"), in_words(seconds))
}
