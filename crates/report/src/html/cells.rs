//! The section with every flow, group of copies and link of every cell.

use maud::{Markup, html};
use talkpath_measure::summary::RunSummary;

use super::document::definitions;
use super::page::Page;
use crate::details;
use crate::number::{count, counted};
use crate::tables;
use crate::term::Terms;
use crate::terms::{FlowMeanings, RunLegend};
use crate::view::CellView;

/// The page has the tables of every cell if there are at most 24 cells. The figures of more cells are in
/// summary.json alone.
pub(crate) const DETAILED_CELLS: usize = 24;
/// The tables of more than 4 cells are folded.
const OPEN_CELLS: usize = 4;
/// The page has every figure of at most 100 flows. We chose 100 because each flow takes a column of some kB.
const DETAILED_FLOWS: usize = 100;

pub(super) fn cells(page: &Page<'_>) -> Markup {
    let cell_count = page.summary.cells.len();
    if cell_count > DETAILED_CELLS {
        let text = format!(
            "The {} cells have more flows and links than a page can show: every figure of each is in summary.json.",
            count(cell_count as u64)
        );
        return html! { p { (text) } };
    }
    let cells = CellView::all(page.summary);
    let meanings = FlowMeanings::new(&cells);
    let mut columns = Terms::new();
    let mut tables = html! {};
    for cell in &cells {
        let label = if cells.len() > 1 { cell.sweep_label(&[]) } else { "Every flow".to_owned() };
        let flows = tables::flows(cell, &meanings);
        columns.extend(flows.terms());
        let caption = format!("{label} ({})", counted(cell.cell.n, "repetition"));
        tables.0.push_str(&flows.html(&caption).0);
        if let Some(run) = cell.run() {
            tables.0.push_str(&tables_of_repetition(cell, run, &mut columns).0);
        }
    }
    let terms = RunLegend { summary: page.summary, cells: &cells, columns, shown: &tables.0 }.terms();
    html! {
        details open=[(cells.len() <= OPEN_CELLS).then_some("open")] {
            summary { (counted(cells.len() as u64, "cell")) }
            (tables)
            (definitions(&terms))
        }
    }
}

/// The tables of a cell's groups of copies, and of one repetition. Adds the words of the columns to
/// `columns`.
fn tables_of_repetition(cell: &CellView<'_>, run: &RunSummary, columns: &mut Terms) -> Markup {
    let captions_and_grids = [
        ("Transfers", tables::transfers(cell)),
        ("Copies together", tables::groups(cell)),
        ("Links", tables::links(run)),
        ("Marks", tables::ecn_marks(run)),
        ("Breaks", tables::breaks(run)),
        ("Lateness of this machine", tables::machine(run)),
    ];
    let mut tables = html! {};
    for (caption, grid) in captions_and_grids {
        if let Some(grid) = grid {
            columns.extend(grid.terms());
            tables.0.push_str(&grid.html(caption).0);
        }
    }
    html! {
        (every_figure(run))
        (tables)
        @if let Some(line) = tables::machine_line(run) { p { (line) } }
    }
}

fn every_figure(run: &RunSummary) -> Markup {
    if run.flows.len() > DETAILED_FLOWS {
        return html! {
            p { "Every figure of the " (count(run.flows.len() as u64)) " flows is in summary.json." }
        };
    }
    let caption = format!("Repetition {}, seed {}", run.repetition, run.seed);
    html! {
        details {
            summary { "Every figure" }
            (details::details(run).html(&caption))
        }
    }
}
