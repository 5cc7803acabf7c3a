//! Printed figures beside ours: a row each, or a grid of rows and columns where the publication's table is
//! one.

use maud::{Markup, html};
use talkpath_study::{Outcome, Role, RowOutcome, TableOutcome, arena_list, shown, shown_value};

use super::prose::{Row, prose_table};

/// The section; nothing without tables.
pub(super) fn tables(outcome: &Outcome) -> Markup {
    let here = format!("here, in {}", arena_list(&outcome.arenas));
    html! {
        @if !outcome.tables.is_empty() {
            section {
                h2 { "Published beside reproduced" }
                p {
                    "Medians under the base assumptions, with 95 % confidence intervals. " em { "Predicted" }
                    ": the set-up was not chosen by these figures; " em { "fitted" }
                    ": a parameter was; " em { "assumed" } ": what we assume decides them; " em { "exempt" } ": the publication itself rules them out."
                }
                @for table in &outcome.tables {
                    @if table.rows.iter().any(|row| !row.row.column.is_empty()) {
                        (grid(table, &here))
                    } @else {
                        (list(table, &here))
                    }
                }
            }
        }
    }
}

/// The predicted figures separate from those that the set-up was fitted to.
fn list(table: &TableOutcome, here: &str) -> Markup {
    let columns = [("cell", 28), ("published", 14), (here, 26), ("off by", 9), ("note", 23)];
    let parts = [Role::Predicted, Role::Assumed, Role::Fitted, Role::Exempt].map(|role| {
        let rows = table.rows.iter().filter(|row| row.row.role == role);
        (role, rows.map(published_row).collect::<Vec<Row>>())
    });
    html! {
        @for (role, rows) in parts.iter().filter(|(_, rows)| !rows.is_empty()) {
            h3 { (table.title) ": " (role.to_string()) }
            (prose_table(&columns, rows))
        }
    }
}

fn published_row(outcome: &RowOutcome) -> Row {
    let row = &outcome.row;
    let what = if row.what.is_empty() { format!("{}, {}", row.cell, row.metric) } else { row.what.clone() };
    let cells = [what, printed(outcome), ours(outcome), off(outcome), row.note.clone()];
    Row { is_marked: false, cells: cells.iter().map(|text| html! { (text) }).collect() }
}

/// Rows of one `what` side by side under their columns' names, with notes under the table.
fn grid(table: &TableOutcome, here: &str) -> Markup {
    let mut columns: Vec<&str> = Vec::new();
    let mut heads: Vec<&str> = Vec::new();
    for row in table.rows.iter().map(|outcome| &outcome.row) {
        if !columns.contains(&row.column.as_str()) {
            columns.push(&row.column);
        }
        if !heads.contains(&row.what.as_str()) {
            heads.push(&row.what);
        }
    }
    let find = |head: &str, column: &str| {
        table.rows.iter().find(|outcome| outcome.row.what == head && outcome.row.column == column)
    };
    let rows: Vec<Row> = heads
        .iter()
        .map(|head| {
            let cells = columns.iter().map(|column| find(head, column).map_or_else(|| html! {}, grid_cell));
            Row { is_marked: false, cells: core::iter::once(html! { (head) }).chain(cells).collect() }
        })
        .collect();
    let longest = heads.iter().map(|head| head.chars().count()).max().unwrap_or(0);
    // About a hundredth of the width for a character, two lines at most.
    let first = (longest as u32 / 2 + 4).clamp(12, 30);
    let share = (100 - first) / columns.len().max(1) as u32;
    let widths: Vec<(&str, u32)> =
        core::iter::once(("", first)).chain(columns.iter().map(|column| (*column, share))).collect();
    html! {
        h3 { (table.title) }
        p.about { "Printed, then in bold " (here) ", by how much ours is off, and what the printed figure was used for." }
        (prose_table(&widths, &rows))
        (notes(table))
    }
}

fn grid_cell(outcome: &RowOutcome) -> Markup {
    html! {
        (printed(outcome)) " → " strong { (ours(outcome)) }
        @if outcome.off.is_some() { ", " (off(outcome)) }
        ", " (outcome.row.role.to_string())
    }
}

fn notes(table: &TableOutcome) -> Markup {
    let noted = || table.rows.iter().map(|outcome| &outcome.row).filter(|row| !row.note.is_empty());
    html! {
        @if noted().next().is_some() {
            ul {
                @for row in noted() { li { (row.what) ", " (row.column) ": " (row.note) } }
            }
        }
    }
}

fn printed(outcome: &RowOutcome) -> String {
    let row = &outcome.row;
    let mut all: Vec<_> = row.published.iter().map(|value| shown(&row.metric, *value)).collect();
    // The unit stands after the last one.
    let last = all.len().saturating_sub(1);
    for text in &mut all[..last] {
        text.truncate(text.find(' ').unwrap_or(text.len()));
    }
    all.join(", ")
}

fn ours(outcome: &RowOutcome) -> String {
    if outcome.values.is_empty() {
        return "not run".to_owned();
    }
    let all: Vec<_> = outcome.values.iter().map(|value| shown_value(&value.metric, value)).collect();
    all.join(", ")
}

fn off(outcome: &RowOutcome) -> String {
    outcome.off.map_or_else(String::new, |off| format!("{:+.1} %", 100.0 * off))
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::PublishedRow;

    fn row(what: &str, column: &str, published: &[f64], role: Role) -> RowOutcome {
        RowOutcome {
            row: PublishedRow {
                table: String::new(),
                what: what.to_owned(),
                column: column.to_owned(),
                cell: "c".to_owned(),
                metric: "flows.x.first_to_last_received_ms".to_owned(),
                published: published.to_vec(),
                role,
                note: if column == "WAN" { "one datagram".to_owned() } else { String::new() },
            },
            values: Vec::new(),
            off: Some(0.5),
        }
    }

    #[test]
    fn a_table_with_columns_is_a_grid_with_every_measurement_and_says_what_did_not_run() {
        let rows = vec![
            row("1 KB", "LAN", &[2.0, 3.0], Role::Fitted),
            row("1 KB", "WAN", &[50.0], Role::Exempt),
            row("4 KB", "LAN", &[9.0], Role::Predicted),
        ];
        let html = grid(&TableOutcome { title: "A".to_owned(), rows }, "here").into_string();
        assert_eq!(html.matches("<tr>").count(), 1 + 2);
        assert!(html.contains("2, 3 ms → <strong>not run</strong>, +50.0 %, fitted"), "{html}");
        assert!(html.contains("<li>1 KB, WAN: one datagram</li>"), "{html}");
    }
}
