//! Fills the marked places of a Markdown page with figures of study runs.
//!
//! A *place* begins with a marker and ends with an end comment. The text between the two is replaced:
//!
//! ```text
//! <!-- study foderaro-1995 claim F7: TCP largest delay ; times 0.001 ; digits 1 ; bare -->1.9<!-- end -->
//! ```
//!
//! An *outcome* has the results of one run of a study. A *run* of a study is in one arena, so a study may
//! have several outcomes.
//!
//! Begin to read with [`fill_page`], and then with `fill/marker.rs`, which has the language of the markers.

mod figures;
mod find;
mod marker;
mod options;
mod tables;

use talkpath_study::{Outcome, judge_across};

use self::figures::{cell_figure, claim_figure, run_kinds};
use self::find::{find_claim, runs_of};
use self::marker::{Marker, Subject};
use self::tables::{table_of_cells, table_of_chart, tables_of_printed, tables_of_verdicts};
use super::pictures::{Picture, picture_links, pictures};
use super::words::{claim_counts, verdict_in_words};

const MARKER_BEGIN: &str = "<!-- study ";
const MARKER_END: &str = " -->";
/// The comment that ends a place.
const PLACE_END: &str = "<!-- end -->";

/// A place that cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMistake {
    /// The line of the page, from 1.
    pub line: usize,
    /// The reason, for a person.
    pub why: String,
}

/// Returns `page` with the text of every place replaced.
///
/// # Errors
/// Returns every place that has no end, or whose marker names something that the outcomes do not have.
pub fn fill_page(page: &str, outcomes: &[Outcome]) -> Result<String, Vec<PageMistake>> {
    let outcomes = &judged_across(outcomes);
    let mut filled = String::new();
    let mut mistakes = Vec::new();
    let mut rest = page;
    while let Some((before, place)) = rest.split_once(MARKER_BEGIN) {
        filled.push_str(before);
        // The line is counted in `page`, because a new text may have more lines than the old one.
        let line = page[..page.len() - place.len()].matches('\n').count() + 1;
        let Some((marker, body)) = place.split_once(MARKER_END) else {
            mistakes.push(PageMistake { line, why: "this place's marker does not end".to_owned() });
            break;
        };
        let Some((_, after)) = body.split_once(PLACE_END) else {
            mistakes.push(PageMistake { line, why: format!("no `{PLACE_END}` ends this place") });
            break;
        };
        match place_text(marker, outcomes) {
            Ok(text) => {
                filled.push_str(&format!("{MARKER_BEGIN}{marker}{MARKER_END}{text}{PLACE_END}"));
            }
            Err(reason) => mistakes.push(PageMistake { line, why: format!("{marker}: {reason}") }),
        }
        rest = after;
    }
    filled.push_str(rest);
    if mistakes.is_empty() { Ok(filled) } else { Err(mistakes) }
}

/// Judges the claims that compare arenas in the first run of each study that has runs in several arenas.
fn judged_across(outcomes: &[Outcome]) -> Vec<Outcome> {
    let mut judged = outcomes.to_vec();
    for outcome in &mut judged {
        let runs = runs_of(&outcome.study, outcomes).unwrap_or_default();
        let is_first = runs.first().is_some_and(|first| first.arena == outcome.arena);
        for other in runs.iter().skip(1).filter(|_| is_first) {
            judge_across(outcome, other);
        }
    }
    judged
}

/// Returns the pictures that `page` shows: the charts of each study that has a place for its pictures. If a
/// study has several runs, the charts are of the first run.
pub fn page_pictures(page: &str, outcomes: &[Outcome]) -> Vec<Picture> {
    let mut page_pictures = Vec::new();
    for outcome in outcomes {
        let marker = format!("{MARKER_BEGIN}{} {}{MARKER_END}", outcome.study, marker::PICTURES);
        let runs = runs_of(&outcome.study, outcomes).unwrap_or_default();
        let is_first_run = runs.first().is_some_and(|first| core::ptr::eq(*first, outcome));
        if is_first_run && page.contains(&marker) {
            page_pictures.extend(pictures(outcome));
        }
    }
    page_pictures
}

fn place_text(marker: &str, outcomes: &[Outcome]) -> Result<String, String> {
    let Marker { study, subject, options } = Marker::parse(marker)?;
    let runs = runs_of(study, outcomes)?;
    let outcome = options.choose_run(&runs)?;
    match subject {
        // A place that names an arena shows this arena alone.
        Subject::Verdicts if options.arena.is_some() => Ok(tables_of_verdicts(outcome, &[])),
        Subject::Verdicts => Ok(tables_of_verdicts(outcome, &runs[1..])),
        Subject::Tables => Ok(tables_of_printed(outcome)),
        Subject::Pictures => Ok(picture_links(outcome)),
        Subject::Count => Ok(claim_counts(outcome)),
        Subject::Kinds { figure } => run_kinds(outcome, figure),
        Subject::Figure { number } => table_of_chart(outcome, number, &options),
        Subject::Verdict { claim } => Ok(verdict_in_words(&find_claim(outcome, claim)?.in_first_arena)),
        Subject::Claim { id, checks } => claim_figure(find_claim(outcome, id)?, checks, &options),
        Subject::Cell { cells, metric } => cell_figure(outcome, cells, metric, &options),
        Subject::Cells { cells, metrics } => table_of_cells(outcome, cells, &metrics, &options),
    }
}

#[cfg(test)]
#[path = "fill_tests.rs"]
pub(super) mod tests;
