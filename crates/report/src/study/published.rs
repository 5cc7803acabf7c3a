//! Printed figures beside ours: a row each, or a grid of rows and columns where the publication's table is
//! one.

use maud::{Markup, html};
use talkpath_measure::figures::text::signed;
use talkpath_study::{Outcome, Role, RowOutcome, TableOutcome, Value, shown, shown_unit, shown_value};

use super::prose::{Row, prose_table};
use crate::number::list as names;

/// The section; nothing without tables.
pub(super) fn tables(outcome: &Outcome) -> Markup {
    let arenas: Vec<String> = outcome.arenas.iter().map(|arena| arena.name().to_owned()).collect();
    let here = Here { heading: format!("here, in {}", names(&arenas)), is_one_arena: arenas.len() == 1 };
    html! {
        @if !outcome.tables.is_empty() {
            section {
                h2 { "Published beside reproduced" }
                p {
                    "Medians under the base assumptions, with 95 % confidence intervals. Off by: ours less the mean of what is \
                     printed, as a share of that mean; where a count of 0 or 1 is printed, as a difference; nothing where the publication rules \
                     the figure out or the cell did not run. " em { "Predicted" }
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

/// Where our figures come from.
pub(super) struct Here {
    /// `here, in sim and emu`
    pub(super) heading: String,
    /// Else each figure says where it was measured.
    pub(super) is_one_arena: bool,
}

/// The predicted figures separate from those that the set-up was fitted to.
fn list(table: &TableOutcome, here: &Here) -> Markup {
    let heading = here.heading.as_str();
    let columns = [("cell", 28), ("published", 14), (heading, 26), ("off by", 9), ("note", 23)];
    let parts = [Role::Predicted, Role::Assumed, Role::Fitted, Role::Exempt].map(|role| {
        let rows = table.rows.iter().filter(|row| row.row.role == role);
        (role, rows.map(|row| published_row(row, here)).collect::<Vec<Row>>())
    });
    html! {
        @for (role, rows) in parts.iter().filter(|(_, rows)| !rows.is_empty()) {
            h3 { (table.title) ": " (role.to_string()) }
            (prose_table(&columns, rows))
        }
    }
}

fn published_row(outcome: &RowOutcome, here: &Here) -> Row {
    let row = &outcome.row;
    let what = if row.what.is_empty() { format!("{}, {}", row.cell, row.metric) } else { row.what.clone() };
    let cells = [what, printed(outcome), ours(outcome, here), off(outcome, here), row.note.clone()];
    Row { is_marked: false, cells: cells.iter().map(|text| html! { (text) }).collect() }
}

/// Rows of one `what` side by side under their columns' names, with notes under the table.
fn grid(table: &TableOutcome, here: &Here) -> Markup {
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
            let cells = columns.iter().map(|column| {
                find(head, column).map_or_else(|| html! {}, |outcome| grid_cell(outcome, here))
            });
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
        p.about { "Printed → " (here.heading) ", by how much ours is off, and what the printed figure was used for." }
        (prose_table(&widths, &rows))
        (notes(table))
    }
}

fn grid_cell(outcome: &RowOutcome, here: &Here) -> Markup {
    html! {
        @let off = off(outcome, here);
        (printed(outcome)) " → " (ours(outcome, here))
        @if !off.is_empty() { ", " (off) }
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

pub(super) fn printed(outcome: &RowOutcome) -> String {
    let row = &outcome.row;
    let mut all: Vec<_> = row.published.iter().map(|value| shown(outcome.unit(), *value)).collect();
    // The unit follows the last value.
    let last = all.len().saturating_sub(1);
    for text in &mut all[..last] {
        text.truncate(text.find(' ').unwrap_or(text.len()));
    }
    all.join(", ")
}

pub(super) fn ours(outcome: &RowOutcome, here: &Here) -> String {
    if outcome.values.is_empty() {
        return "not run".to_owned();
    }
    let text = |value: &Value| match here.is_one_arena {
        true => shown_value(value),
        false => format!("{} ({})", shown_value(value), value.arena.name()),
    };
    outcome.values.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// By how much the first of our figures is off the mean of what is printed, and where that was measured. What
/// the publication rules out is nothing to be off. A share of 0 or 1 lost packets says nothing, so that of
/// such printed counts it is the difference.
pub(super) fn off(outcome: &RowOutcome, here: &Here) -> String {
    let row = &outcome.row;
    let (Some(first), Some(mean)) = (outcome.values.first(), row.mean()) else { return String::new() };
    let is_small_count = shown_unit(outcome.unit()).is_empty()
        && mean.abs() <= 1.0
        && row.published.iter().all(|printed| printed.fract() == 0.0);
    let text = match outcome.off {
        _ if row.role == Role::Exempt => return String::new(),
        _ if is_small_count => {
            let difference = first.median - mean;
            let sign = if difference > 0.0 { "+" } else { "" };
            format!("{sign}{}", shown(outcome.unit(), difference))
        }
        Some(off) => format!("{} %", signed(100.0 * off, 1)),
        None => return String::new(),
    };
    if here.is_one_arena { text } else { format!("{text} ({})", first.arena.name()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{ArenaName, PublishedRow};

    fn here(is_one_arena: bool) -> Here {
        Here { heading: "here".to_owned(), is_one_arena }
    }

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
            own_unit: None,
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
        let html = grid(&TableOutcome { title: "A".to_owned(), rows }, &here(true)).into_string();
        assert_eq!(html.matches("<tr>").count(), 1 + 2);
        assert!(html.contains("2, 3 ms → not run, fitted"), "{html}");
        assert!(html.contains("<li>1 KB, WAN: one datagram</li>"), "{html}");
    }

    #[test]
    fn a_count_of_0_or_1_is_off_by_a_difference_and_what_is_ruled_out_by_nothing() {
        let with = |metric: &str, published: &[f64], median: f64, role: Role| {
            let mut outcome = row("lost", "", published, role);
            outcome.row.metric = metric.to_owned();
            outcome.off = Some((median - 2.0) / 2.0);
            outcome.values = vec![value(ArenaName::Sim, median)];
            off(&outcome, &here(true))
        };
        let lost = "flows.x.packets_lost";
        assert_eq!(with(lost, &[0.0, 0.0, 1.0], 0.0, Role::Fitted), "-0.333");
        assert_eq!(with(lost, &[0.0], 2.0, Role::Fitted), "+2");
        assert_eq!(with(lost, &[0.0], 0.0, Role::Fitted), "0");
        assert_eq!(with(lost, &[2.0], 3.0, Role::Predicted), "+50.0 %");
        assert_eq!(with(lost, &[2.0], 2.0, Role::Predicted), "0.0 %");
        // Of a printed time of 0.8 s, which has no unit among the metrics' names.
        assert_eq!(with("settling.settled_after_s", &[0.8], 1.0, Role::Predicted), "-50.0 %");
        assert_eq!(with("flows.x.one_way_delay_ms.p50", &[2.0], 1.0, Role::Predicted), "-50.0 %");
        assert_eq!(with("flows.x.one_way_delay_ms.p50", &[2.0], 1.0, Role::Exempt), "");
    }

    fn value(arena: ArenaName, median: f64) -> Value {
        Value {
            cell: "c".to_owned(),
            arena,
            metric: "flows.x.first_to_last_received_ms".to_owned(),
            own_unit: None,
            n: 1,
            median,
            ci95: None,
            min: median,
            max: median,
        }
    }

    #[test]
    fn of_several_arenas_each_figure_says_where_it_was_measured() {
        let mut outcome = row("1 KB", "", &[2.0], Role::Predicted);
        outcome.values = vec![value(ArenaName::Sim, 3.0), value(ArenaName::Emu, 4.0)];
        assert_eq!(ours(&outcome, &here(false)), "3 ms (sim), 4 ms (emu)");
        assert_eq!(off(&outcome, &here(false)), "+50.0 % (sim)");
        outcome.values.truncate(1);
        assert_eq!(
            (ours(&outcome, &here(true)), off(&outcome, &here(true))),
            ("3 ms".to_owned(), "+50.0 %".to_owned())
        );
    }
}
