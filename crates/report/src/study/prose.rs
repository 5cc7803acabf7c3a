//! Tables of running text.

use maud::{Markup, html};

/// A column of a table of running text.
#[derive(Clone, Copy)]
pub(super) struct ProseColumn<'a> {
    pub(super) head: &'a str,
    /// The share of the page's width.
    pub(super) width_percent: u32,
}

/// A row of a table of running text. Its first cell is the head of the row.
pub(super) struct ProseRow {
    pub(super) is_marked: bool,
    pub(super) cells: Vec<Markup>,
}

impl ProseRow {
    /// A row of plain texts that is not marked.
    pub(super) fn plain(texts: &[&str]) -> Self {
        Self { is_marked: false, cells: texts.iter().map(|text| html! { (text) }).collect() }
    }
}

/// Writes a table of running text. Each cell has the head of its column as an attribute, because a narrow
/// screen shows the head before the cell.
pub(super) fn prose_table(columns: &[ProseColumn<'_>], rows: &[ProseRow]) -> Markup {
    html! {
        table.prose {
            thead {
                tr {
                    @for column in columns {
                        th class="left" style={ "width:" (column.width_percent) "%" } { (column.head) }
                    }
                }
            }
            tbody {
                @for row in rows { (table_row(columns, row)) }
            }
        }
    }
}

fn table_row(columns: &[ProseColumn<'_>], row: &ProseRow) -> Markup {
    let Some((head, cells)) = row.cells.split_first() else { return html! { tr {} } };
    html! {
        tr class=[row.is_marked.then_some("best")] {
            th class="left" { (head) }
            @for (cell, column) in cells.iter().zip(columns.iter().skip(1)) {
                td class="left" data-head=(column.head) { (cell) }
            }
        }
    }
}
