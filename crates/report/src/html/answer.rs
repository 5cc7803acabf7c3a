//! The answers at the top of the page. The answers of a sweep are counted, and written in full if they are
//! few.

use maud::{Markup, html};
use talkpath_measure::summary::Summary;

use super::cells::DETAILED_CELLS;
use crate::number::glued;
use crate::rated::bursts_sentence;
use crate::sweep::Sweep;
use crate::tables::{WHAT_WAS_TRIED, changes_tried};
use crate::usable::{conversations, receivers_decide};
use crate::verdict::{JudgedFlow, Verdict};
use crate::view::{CellView, is_copy};

/// The page writes at most 3 answers of a flow in full. The table over the sweep has every answer.
pub(super) const FULL_ANSWERS: usize = 3;

pub(super) fn answers(summary: &Summary, judged_flows: &[JudgedFlow<'_>], sweeps: &[Sweep<'_>]) -> Markup {
    html! {
        @for judged in judged_flows {
            (answers_of_flow(judged, sweeps.iter().find(|sweep| sweep.flow == judged.flow)))
        }
        (receiver_sentences(summary, judged_flows))
        @if let Some(sentence) = bursts_sentence(summary) { p { (sentence) } }
    }
}

fn answers_of_flow(judged: &JudgedFlow<'_>, sweep: Option<&Sweep<'_>>) -> Markup {
    let answers = judged.answers();
    let sweep = sweep.filter(|sweep| sweep.has_answers());
    if answers.is_empty() && sweep.is_none() {
        return html! {};
    }
    html! {
        div.verdict aria-label={ "Verdict for " (judged.flow) } {
            @if let Some(sweep) = sweep {
                p { strong { (sweep.headline()) } }
                @for choice in sweep.choices() { p.more { (choice) } }
            }
            @if let [only] = &answers[..] {
                (answer_in_full(only.verdict, ""))
            } @else if answers.len() <= FULL_ANSWERS {
                @for answer in &answers { (answer_in_full(answer.verdict, &answer.condition.label)) }
            }
        }
    }
}

/// The lines of an answer. `label` says what the answer is for. It may be empty.
pub(super) fn answer_in_full(verdict: &Verdict, label: &str) -> Markup {
    html! {
        @for (index, line) in verdict.lines().into_iter().enumerate() {
            @if index == 0 {
                p {
                    @if !label.is_empty() { (label) ": " }
                    strong { (glued(line)) }
                }
            } @else {
                p.more { (glued(line)) }
            }
        }
        @if let Some(grid) = changes_tried(verdict) { (grid.html(WHAT_WAS_TRIED)) }
    }
}

/// Sentences about calls in two directions, and about calls that are usable with one of two receivers and not
/// with the other. The answer of a judged flow says this itself, so such flows have no sentence here.
fn receiver_sentences(summary: &Summary, judged_flows: &[JudgedFlow<'_>]) -> Markup {
    let answered = judged_flows.iter().filter(|judged| !judged.answers().is_empty());
    let answered: Vec<&str> = answered.map(|judged| judged.flow).collect();
    let is_answered = |name: &str| answered.iter().any(|flow| *flow == name || is_copy(name, flow));
    let cells = if summary.cells.len() <= DETAILED_CELLS { CellView::all(summary) } else { Vec::new() };
    html! {
        @for cell in &cells {
            @let label = cell.sweep_label(&[]);
            @for sentence in conversations(cell, is_answered).into_iter().chain(receivers_decide(cell, is_answered)) {
                p { @if !label.is_empty() { (label) ": " } strong { (sentence) } }
            }
        }
    }
}
