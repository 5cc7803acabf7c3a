//! Shows the tables of a publication, with our values beside the published ones.
//!
//! - A *published value* is a number that a table of the publication states.
//! - *Our value* is the median that this run measured. An experiment cell is the scenario that we ran for it.
//! - The *role* of a published value says how we used it, for example whether we chose a parameter by it.
//!
//! A published table whose rows name a column becomes a grid with the same columns. Any other table becomes
//! one list for each role, so values that we predicted and values that we fitted are in separate lists.
//!
//! Begin to read with [`published_section`].

use maud::{Markup, html};
use talkpath_measure::figures::text::signed;
use talkpath_study::{
    Outcome, PublishedRow, Role, RowOutcome, TableOutcome, Value, format_median, format_number, unit_suffix,
};

use super::prose::{ProseColumn, ProseRow, prose_table};
use crate::number::{distinct, list};

/// The width that a character takes, in percent of the page. A line of a page has about a hundred characters.
const CHARACTER_WIDTH_PERCENT: u32 = 1;

/// The space beside the name of a row, in percent of the page. We chose it by eye.
const NAME_PADDING_PERCENT: u32 = 4;

/// The smallest width of the column with the names of rows, in percent of the page. We chose it by eye.
const MIN_NAME_WIDTH_PERCENT: u32 = 12;

/// The largest width of the column with the names of rows, in percent of the page. We chose it by eye, so
/// that long names leave space for the values.
const MAX_NAME_WIDTH_PERCENT: u32 = 30;

/// The arenas in which our values were measured.
pub(super) struct OurArenas {
    /// The title of the column with our values, such as `here, in sim and emu`.
    column_title: String,
    /// Whether there is only one arena. If there are several, each value is shown with its arena.
    is_single: bool,
}

impl OurArenas {
    pub(super) fn new(outcome: &Outcome) -> Self {
        let names: Vec<String> = outcome.arenas.iter().map(|arena| arena.name().to_owned()).collect();
        Self { column_title: format!("here, in {}", list(&names)), is_single: names.len() == 1 }
    }
}

/// Writes the section with all tables of the publication. It is empty if there are no tables.
pub(super) fn published_section(outcome: &Outcome) -> Markup {
    if outcome.tables.is_empty() {
        return html! {};
    }
    let arenas = OurArenas::new(outcome);
    html! {
        section {
            h2 { "Published beside reproduced" }
            (legend())
            @for table in &outcome.tables {
                @if has_columns(table) {
                    (grid(table, &arenas))
                } @else {
                    (lists_by_role(table, &arenas))
                }
            }
        }
    }
}

/// Explains the deviations and the roles, which all tables have.
fn legend() -> Markup {
    html! {
        p {
            "Our values are medians under the base assumptions, with 95 % confidence intervals. "
            "A deviation (“off by”) is our value minus the mean of the published values, as a percentage of that mean. "
            "If the publication counts 0 or 1, the deviation is the plain difference. "
            "There is no deviation if the published value is exempt, or if we did not run the cell."
        }
        p {
            "The role of a published value says how we used it. "
            em { "Predicted" } ": we did not choose the set-up by this value. "
            em { "Fitted" } ": we chose a parameter so that our value matches this value. "
            em { "Assumed" } ": our value depends on an assumption about something that the publication does not say. "
            em { "Exempt" } ": other values of the publication contradict this value, so we do not compare it."
        }
    }
}

pub(super) fn has_columns(table: &TableOutcome) -> bool {
    table.rows.iter().any(|row| !row.published_row.column.is_empty())
}

/// Writes a table without columns as one list for each role that has rows.
fn lists_by_role(table: &TableOutcome, arenas: &OurArenas) -> Markup {
    let columns = [
        ProseColumn { head: "cell", width_percent: 28 },
        ProseColumn { head: "published", width_percent: 14 },
        ProseColumn { head: &arenas.column_title, width_percent: 26 },
        ProseColumn { head: "off by", width_percent: 9 },
        ProseColumn { head: "note", width_percent: 23 },
    ];
    html! {
        @for role in [Role::Predicted, Role::Assumed, Role::Fitted, Role::Exempt] {
            @let rows = rows_with_role(table, role, arenas);
            @if !rows.is_empty() {
                h3 { (table.title) ": " (role.to_string()) }
                (prose_table(&columns, &rows))
            }
        }
    }
}

fn rows_with_role(table: &TableOutcome, role: Role, arenas: &OurArenas) -> Vec<ProseRow> {
    let mut rows = Vec::new();
    for row in table.rows.iter().filter(|row| row.published_row.role == role) {
        rows.push(ProseRow::plain(&[
            &row_name(&row.published_row),
            &format_published_values(row),
            &format_our_values(row, arenas),
            &format_deviation(row, arenas),
            &row.published_row.note,
        ]));
    }
    rows
}

/// Returns the name of a row. If the study gives it no name, the experiment cell and the metric are its name.
pub(super) fn row_name(row: &PublishedRow) -> String {
    if row.name.is_empty() { format!("{}, {}", row.cell, row.metric) } else { row.name.clone() }
}

/// Writes a table with columns as a grid, with the notes as a list below it.
fn grid(table: &TableOutcome, arenas: &OurArenas) -> Markup {
    let published_rows = || table.rows.iter().map(|row| &row.published_row);
    let column_names: Vec<&str> = distinct(published_rows().map(|row| row.column.as_str()));
    let row_names: Vec<&str> = distinct(published_rows().map(|row| row.name.as_str()));
    let mut grid_rows = Vec::new();
    for row_name in &row_names {
        grid_rows.push(grid_row(table, row_name, &column_names, arenas));
    }
    html! {
        h3 { (table.title) }
        p.about {
            "Each entry has the published values, an arrow, our values (" (arenas.column_title)
            "), the deviation, and the role."
        }
        (prose_table(&grid_columns(&row_names, &column_names), &grid_rows))
        (notes_list(table))
    }
}

/// Divides the width of the page among the columns of a grid. The first column is as wide as half of the
/// longest row name, because the name may wrap into two lines. The other columns share the remaining width.
fn grid_columns<'a>(row_names: &[&str], column_names: &[&'a str]) -> Vec<ProseColumn<'a>> {
    let longest_name = row_names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32;
    let name_width = (longest_name / 2 * CHARACTER_WIDTH_PERCENT + NAME_PADDING_PERCENT)
        .clamp(MIN_NAME_WIDTH_PERCENT, MAX_NAME_WIDTH_PERCENT);
    let width_percent = (100 - name_width) / column_names.len().max(1) as u32;
    let mut columns = vec![ProseColumn { head: "", width_percent: name_width }];
    for head in column_names {
        columns.push(ProseColumn { head, width_percent });
    }
    columns
}

/// Writes the row of a grid that has the name `name`. An entry without a published value stays empty.
fn grid_row(table: &TableOutcome, name: &str, column_names: &[&str], arenas: &OurArenas) -> ProseRow {
    let mut entries = vec![html! { (name) }];
    for column_name in column_names {
        let row = table.rows.iter().find(|row| {
            let PublishedRow { name: row_name, column, .. } = &row.published_row;
            row_name == name && column == column_name
        });
        entries.push(match row {
            Some(row) => grid_entry(row, arenas),
            None => html! {},
        });
    }
    ProseRow { is_marked: false, cells: entries }
}

fn grid_entry(row: &RowOutcome, arenas: &OurArenas) -> Markup {
    let deviation = format_deviation(row, arenas);
    html! {
        (format_published_values(row)) " → " (format_our_values(row, arenas))
        @if !deviation.is_empty() { ", " (deviation) }
        ", " (row.published_row.role.to_string())
    }
}

fn notes_list(table: &TableOutcome) -> Markup {
    let published_rows = table.rows.iter().map(|row| &row.published_row);
    let rows_with_note: Vec<&PublishedRow> = published_rows.filter(|row| !row.note.is_empty()).collect();
    html! {
        @if !rows_with_note.is_empty() {
            ul {
                @for row in rows_with_note { li { (row.name) ", " (row.column) ": " (row.note) } }
            }
        }
    }
}

/// Writes the published values of a row. Only the last value is written with its unit, such as `2, 3 ms`.
pub(super) fn format_published_values(row: &RowOutcome) -> String {
    let published_values = &row.published_row.published;
    let mut texts = Vec::new();
    for (index, value) in published_values.iter().enumerate() {
        let number_with_unit = format_number(row.unit(), *value);
        let is_last = index + 1 == published_values.len();
        // A blank separates a number from its unit.
        match number_with_unit.split_once(' ') {
            Some((number, _)) if !is_last => texts.push(number.to_owned()),
            _ => texts.push(number_with_unit),
        }
    }
    texts.join(", ")
}

/// Writes the published values of a row without their unit, such as `2, 3`.
pub(super) fn format_published_numbers(row: &RowOutcome) -> String {
    let number = |value: &f64| {
        let with_unit = format_number(row.unit(), *value);
        with_unit.split_once(' ').map_or(with_unit.clone(), |(number, _)| number.to_owned())
    };
    row.published_row.published.iter().map(number).collect::<Vec<_>>().join(", ")
}

/// Writes our median in each arena, without its interval.
pub(super) fn format_our_medians(row: &RowOutcome, arenas: &OurArenas) -> String {
    if row.values.is_empty() {
        return "not run".to_owned();
    }
    let median = |value: &Value| with_arena(format_number(row.unit(), value.median), value, arenas);
    row.values.iter().map(median).collect::<Vec<_>>().join(", ")
}

/// Writes our value in each arena.
pub(super) fn format_our_values(row: &RowOutcome, arenas: &OurArenas) -> String {
    if row.values.is_empty() {
        return "not run".to_owned();
    }
    let texts: Vec<String> =
        row.values.iter().map(|value| with_arena(format_median(value), value, arenas)).collect();
    texts.join(", ")
}

/// Adds the arena of our `value` to `text`, if there are several arenas.
fn with_arena(text: String, value: &Value, arenas: &OurArenas) -> String {
    if arenas.is_single { text } else { format!("{text} ({})", value.arena.name()) }
}

/// Writes the deviation of our value in the first arena from the mean of the published values, such as
/// `+50.0 %`. The text is empty if the published value is exempt, or if the cell did not run.
pub(super) fn format_deviation(row: &RowOutcome, arenas: &OurArenas) -> String {
    let (Some(our_value), Some(published_mean)) = (row.values.first(), row.published_row.mean()) else {
        return String::new();
    };
    if row.published_row.role == Role::Exempt {
        return String::new();
    }
    if counts_0_or_1(row, published_mean) {
        let difference = our_value.median - published_mean;
        let sign = if difference > 0.0 { "+" } else { "" };
        let text = format!("{sign}{}", format_number(row.unit(), difference));
        return with_arena(text, our_value, arenas);
    }
    match row.off {
        Some(share) => with_arena(format!("{} %", signed(100.0 * share, 1)), our_value, arenas),
        None => String::new(),
    }
}

/// Returns whether the published values are counts, such as lost packets, with a mean of at most 1. A
/// percentage of such a mean would say little: 2 lost packets instead of 1 would be off by 100 %.
fn counts_0_or_1(row: &RowOutcome, published_mean: f64) -> bool {
    let has_no_unit = unit_suffix(row.unit()).is_empty();
    let are_whole_numbers = row.published_row.published.iter().all(|value| value.fract() == 0.0);
    has_no_unit && are_whole_numbers && published_mean.abs() <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{ArenaName, PublishedRow};

    fn our_arenas(is_single: bool) -> OurArenas {
        OurArenas { column_title: "here".to_owned(), is_single }
    }

    fn row(name: &str, column: &str, published: &[f64], role: Role) -> RowOutcome {
        RowOutcome {
            published_row: PublishedRow {
                table: String::new(),
                name: name.to_owned(),
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
        let html = grid(&TableOutcome { title: "A".to_owned(), rows }, &our_arenas(true)).into_string();
        assert_eq!(html.matches("<tr>").count(), 1 + 2);
        assert!(html.contains("2, 3 ms → not run, fitted"), "{html}");
        assert!(html.contains("<li>1 KB, WAN: one datagram</li>"), "{html}");
    }

    #[test]
    fn the_deviation_from_a_count_of_0_or_1_is_a_difference_and_from_an_exempt_value_empty() {
        let deviation_of = |metric: &str, published: &[f64], median: f64, role: Role| {
            let mut outcome = row("lost", "", published, role);
            outcome.published_row.metric = metric.to_owned();
            outcome.off = Some((median - 2.0) / 2.0);
            outcome.values = vec![value(ArenaName::Sim, median)];
            format_deviation(&outcome, &our_arenas(true))
        };
        let lost = "flows.x.packets_lost";
        assert_eq!(deviation_of(lost, &[0.0, 0.0, 1.0], 0.0, Role::Fitted), "-0.333");
        assert_eq!(deviation_of(lost, &[0.0], 2.0, Role::Fitted), "+2");
        assert_eq!(deviation_of(lost, &[0.0], 0.0, Role::Fitted), "0");
        assert_eq!(deviation_of(lost, &[2.0], 3.0, Role::Predicted), "+50.0 %");
        assert_eq!(deviation_of(lost, &[2.0], 2.0, Role::Predicted), "0.0 %");
        // A printed time of 0.8 s: the name of this metric gives no unit.
        assert_eq!(deviation_of("settling.settled_after_s", &[0.8], 1.0, Role::Predicted), "-50.0 %");
        assert_eq!(deviation_of("flows.x.one_way_delay_ms.p50", &[2.0], 1.0, Role::Predicted), "-50.0 %");
        assert_eq!(deviation_of("flows.x.one_way_delay_ms.p50", &[2.0], 1.0, Role::Exempt), "");
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
    fn if_there_are_several_arenas_each_value_says_its_arena() {
        let mut outcome = row("1 KB", "", &[2.0], Role::Predicted);
        outcome.values = vec![value(ArenaName::Sim, 3.0), value(ArenaName::Emu, 4.0)];
        assert_eq!(format_our_values(&outcome, &our_arenas(false)), "3 ms (sim), 4 ms (emu)");
        assert_eq!(format_deviation(&outcome, &our_arenas(false)), "+50.0 % (sim)");
        outcome.values.truncate(1);
        assert_eq!(
            (format_our_values(&outcome, &our_arenas(true)), format_deviation(&outcome, &our_arenas(true))),
            ("3 ms".to_owned(), "+50.0 %".to_owned())
        );
    }
}
