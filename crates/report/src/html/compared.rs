//! The section with the tables that compare transports: one table for each condition of each judged flow.

use maud::{Markup, html};

use super::answer::{FULL_ANSWERS, answer_in_full};
use super::document::definitions;
use super::page::Page;
use crate::grid::Grid;
use crate::number::{count, counted};
use crate::sweep::MAX_ON_PAGE;
use crate::tables::ComparisonTables;
use crate::term::Terms;
use crate::terms::ComparisonLegend;
use crate::verdict::{ConditionVerdict, JudgedFlow, Verdict};

pub(super) fn tables(page: &Page<'_>, judged_flows: &[JudgedFlow<'_>]) -> Markup {
    let is_compared =
        |judged: &&JudgedFlow<'_>| judged.conditions.iter().any(|judged| judged.condition.cells.len() > 1);
    html! {
        @for judged in judged_flows.iter().filter(is_compared) { (tables_of_flow(page, judged)) }
    }
}

fn tables_of_flow(page: &Page<'_>, judged: &JudgedFlow<'_>) -> Markup {
    let (flow, combinations) = (judged.flow, judged.conditions.len());
    if combinations > MAX_ON_PAGE {
        let text = format!(
            "The {} combinations for {flow} are more than a page has tables for: the figures of each transport are in \
             summary.json.",
            count(combinations as u64)
        );
        return html! { p { (text) } };
    }
    // If the answers are not in full at the top of the page, each is in full above its table.
    let is_folded = judged.answers().len() > FULL_ANSWERS;
    let comparison_tables = ComparisonTables::new(judged);
    let mut columns = Terms::new();
    let mut tables = html! {};
    for condition in &judged.conditions {
        let grid = comparison_tables.grid(condition.condition, condition.verdict.as_deref());
        columns.extend(grid.terms());
        let table =
            if is_folded { folded_table(flow, condition, &grid) } else { open_table(flow, condition, &grid) };
        tables.0.push_str(&table.0);
    }
    let terms = ComparisonLegend { summary: page.summary, judged, columns, shown: &tables.0 }.terms();
    html! {
        @if is_folded {
            details {
                summary { (counted(combinations as u64, "combination")) " for " (flow) ", each with its transports" }
                (tables)
            }
        } @else { (tables) }
        (definitions(&terms))
    }
}

fn open_table(flow: &str, judged: &ConditionVerdict<'_>, grid: &Grid) -> Markup {
    let caption = match judged.condition.label.as_str() {
        "" => format!("{flow} over each transport"),
        label => format!("{flow} over each transport, {label}"),
    };
    grid.html(&caption)
}

fn folded_table(flow: &str, judged: &ConditionVerdict<'_>, grid: &Grid) -> Markup {
    let ConditionVerdict { condition, verdict } = judged;
    let answer = verdict.as_deref().map_or_else(String::new, Verdict::in_brief);
    html! {
        details.cell {
            summary { (condition.label) ": " (answer) }
            @if let Some(verdict) = verdict { (answer_in_full(verdict, "")) }
            (grid.html(&format!("{flow} over each transport")))
        }
    }
}
