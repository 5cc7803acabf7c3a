//! The table of what a run tried to make a flow usable: one row for each change, with its figures and what is
//! left for the other flows.

use std::collections::BTreeSet;

use crate::columns::Columns;
use crate::grid::{Column, Grid};
use crate::number::fixed;
use crate::verdict::{ChangeRow, Verdict, figure_style};

/// The title of the table.
pub(crate) const WHAT_WAS_TRIED: &str = "What was tried";

/// The other flows with a column. Chosen: more do not fit beside the names of the changes.
const MAX_OTHERS: usize = 2;

/// Makes the table. Returns `None` if nothing was tried.
pub(crate) fn changes_tried(verdict: &Verdict) -> Option<Grid> {
    let rows: Vec<&ChangeRow> = verdict.changes_tried.iter().collect();
    let first = rows.first()?;
    let style = figure_style(verdict.judged_by);
    let mut columns: Columns<'_, &ChangeRow> = Columns::new();
    columns.add(Column::words("change"), |row| row.what.clone());
    columns.add(Column::words("by").omit_order(1), |row| row.who.to_owned());
    columns.add(Column::numbers("", "usable"), |row| row.usable.to_owned());
    columns.add(Column::numbers(style.column_group, style.column_head), move |row| style.number(row.figure));
    if rows.iter().any(|row| row.delay_ms.is_some()) {
        let head = Column::numbers(&format!("{}, ms", first.delay_name), "p50");
        columns.add(head, |row| fixed(row.delay_ms, 1));
    }
    let others: BTreeSet<&String> = rows.iter().flat_map(|row| row.others_bps.keys()).collect();
    for other in others.into_iter().take(MAX_OTHERS) {
        columns.add(Column::numbers(other, "Mb/s"), move |row| {
            fixed(row.others_bps.get(other).map(|bps| bps / 1e6), 3)
        });
    }
    Some(columns.grid(rows))
}
