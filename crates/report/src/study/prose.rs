//! Tables of running text.

use maud::{Markup, html};

/// A row of a table of running text. Its first cell is its head.
pub(super) struct Row {
    /// Whether the head is marked.
    pub(super) is_marked: bool,
    pub(super) cells: Vec<Markup>,
}

/// A table of running text that fits the page: its columns have shares of the width. Each cell carries its
/// column's name, which a narrow screen shows in front of it.
pub(super) fn prose_table(columns: &[(&str, u32)], rows: &[Row]) -> Markup {
    html! {
        table.prose {
            thead {
                tr {
                    @for (head, share) in columns {
                        th class="left" style={ "width:" (share) "%" } { (head) }
                    }
                }
            }
            tbody {
                @for row in rows { (prose_row(columns, row)) }
            }
        }
    }
}

fn prose_row(columns: &[(&str, u32)], row: &Row) -> Markup {
    let mut cells = row.cells.iter().zip(columns);
    html! {
        tr class=[row.is_marked.then_some("best")] {
            @if let Some((head, _)) = cells.next() { th class="left" { (head) } }
            @for (cell, (head, _)) in cells { td class="left" data-head=(head) { (cell) } }
        }
    }
}
