//! Printed values beside ours.
//!
//! A *printed* value is a value that the publication states. A table of the publication with columns becomes
//! a grid. Another table becomes a list, with the values that we predicted apart from those that our set-up
//! was fitted to.

use maud::{Markup, html};
use talkpath_measure::figures::text::signed;
use talkpath_study::{
    Outcome, PublishedRow, Role, RowOutcome, TableOutcome, Value, format_median, format_number, unit_suffix,
};

use super::prose::{ProseColumn, ProseRow, prose_table};
use crate::number::{distinct, list};

pub(super) struct OurRuns {
    /// The head of our values' column: `here, in sim and emu`.
    heading: String,
    /// Whether all runs are in one arena. If they are in several arenas, each value says its arena.
    is_one_arena: bool,
}

impl OurRuns {
    pub(super) fn new(outcome: &Outcome) -> Self {
        let arenas: Vec<String> = outcome.arenas.iter().map(|arena| arena.name().to_owned()).collect();
        Self { heading: format!("here, in {}", list(&arenas)), is_one_arena: arenas.len() == 1 }
    }
}

/// The section with all tables of the publication. Empty if there are none.
pub(super) fn published_section(outcome: &Outcome) -> Markup {
    if outcome.tables.is_empty() {
        return html! {};
    }
    let our_runs = OurRuns::new(outcome);
    html! {
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
                    (grid(table, &our_runs))
                } @else {
                    (lists(table, &our_runs))
                }
            }
        }
    }
}

/// A table without columns, as a list for each role that has rows.
fn lists(table: &TableOutcome, our_runs: &OurRuns) -> Markup {
    let columns = [
        ProseColumn { head: "cell", width_percent: 28 },
        ProseColumn { head: "published", width_percent: 14 },
        ProseColumn { head: &our_runs.heading, width_percent: 26 },
        ProseColumn { head: "off by", width_percent: 9 },
        ProseColumn { head: "note", width_percent: 23 },
    ];
    html! {
        @for role in [Role::Predicted, Role::Assumed, Role::Fitted, Role::Exempt] {
            @let rows = list_rows(table, role, our_runs);
            @if !rows.is_empty() {
                h3 { (table.title) ": " (role.to_string()) }
                (prose_table(&columns, &rows))
            }
        }
    }
}

fn list_rows(table: &TableOutcome, role: Role, our_runs: &OurRuns) -> Vec<ProseRow> {
    let mut rows = Vec::new();
    for outcome in table.rows.iter().filter(|outcome| outcome.row.role == role) {
        let printed_row = &outcome.row;
        rows.push(ProseRow::plain(&[
            &row_name(printed_row),
            &printed_values(outcome),
            &our_values(outcome, our_runs),
            &describe_deviation(outcome, our_runs),
            &printed_row.note,
        ]));
    }
    rows
}

/// The name of a row. A row without a name is called by its cell and metric.
pub(super) fn row_name(row: &PublishedRow) -> String {
    if row.what.is_empty() { format!("{}, {}", row.cell, row.metric) } else { row.what.clone() }
}

/// A table with columns. The notes are below the table.
fn grid(table: &TableOutcome, our_runs: &OurRuns) -> Markup {
    let printed_rows = || table.rows.iter().map(|outcome| &outcome.row);
    let columns: Vec<&str> = distinct(printed_rows().map(|row| row.column.as_str()));
    let row_names: Vec<&str> = distinct(printed_rows().map(|row| row.what.as_str()));
    let rows: Vec<ProseRow> =
        row_names.iter().map(|name| grid_row(table, name, &columns, our_runs)).collect();
    html! {
        h3 { (table.title) }
        p.about { "Printed → " (our_runs.heading) ", by how much ours is off, and what the printed figure was used for." }
        (prose_table(&grid_columns(&row_names, &columns), &rows))
        (notes(table))
    }
}

/// The columns of a grid. A character is about a hundredth of the page wide, and a row's name has two lines
/// at most.
fn grid_columns<'a>(row_names: &[&str], columns: &[&'a str]) -> Vec<ProseColumn<'a>> {
    let longest_name = row_names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let name_width = (longest_name as u32 / 2 + 4).clamp(12, 30);
    let width_percent = (100 - name_width) / columns.len().max(1) as u32;
    let mut prose_columns = vec![ProseColumn { head: "", width_percent: name_width }];
    prose_columns.extend(columns.iter().map(|head| ProseColumn { head, width_percent }));
    prose_columns
}

fn grid_row(table: &TableOutcome, name: &str, columns: &[&str], our_runs: &OurRuns) -> ProseRow {
    let mut cells = vec![html! { (name) }];
    for column in columns {
        let mut outcomes = table.rows.iter();
        let outcome = outcomes.find(|outcome| outcome.row.what == name && outcome.row.column == *column);
        cells.push(outcome.map_or_else(|| html! {}, |outcome| grid_cell(outcome, our_runs)));
    }
    ProseRow { is_marked: false, cells }
}

fn grid_cell(outcome: &RowOutcome, our_runs: &OurRuns) -> Markup {
    let deviation = describe_deviation(outcome, our_runs);
    html! {
        (printed_values(outcome)) " → " (our_values(outcome, our_runs))
        @if !deviation.is_empty() { ", " (deviation) }
        ", " (outcome.row.role.to_string())
    }
}

fn notes(table: &TableOutcome) -> Markup {
    let rows = table.rows.iter().map(|outcome| &outcome.row);
    let rows_with_notes: Vec<&PublishedRow> = rows.filter(|row| !row.note.is_empty()).collect();
    html! {
        @if !rows_with_notes.is_empty() {
            ul {
                @for row in rows_with_notes { li { (row.what) ", " (row.column) ": " (row.note) } }
            }
        }
    }
}

/// Writes the printed values of a row. Only the last one has the unit: `2, 3 ms`.
pub(super) fn printed_values(outcome: &RowOutcome) -> String {
    let printed = &outcome.row.published;
    let mut texts: Vec<String> = printed.iter().map(|value| format_number(outcome.unit(), *value)).collect();
    let last = texts.len().saturating_sub(1);
    for text in &mut texts[..last] {
        text.truncate(text.find(' ').unwrap_or(text.len()));
    }
    texts.join(", ")
}

pub(super) fn our_values(outcome: &RowOutcome, our_runs: &OurRuns) -> String {
    if outcome.values.is_empty() {
        return "not run".to_owned();
    }
    let text = |value: &Value| {
        if our_runs.is_one_arena {
            format_median(value)
        } else {
            format!("{} ({})", format_median(value), value.arena.name())
        }
    };
    outcome.values.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Writes the difference between the first of our values and the mean of the printed values: `+50.0 %`. If
/// the publication counts 0 or 1 packets, a share of that would say nothing, so it is a number of packets.
/// Empty if the publication rules the value out.
pub(super) fn describe_deviation(outcome: &RowOutcome, our_runs: &OurRuns) -> String {
    let row = &outcome.row;
    let (Some(ours), Some(printed_mean)) = (outcome.values.first(), row.mean()) else { return String::new() };
    if row.role == Role::Exempt {
        return String::new();
    }
    let is_small_count = unit_suffix(outcome.unit()).is_empty()
        && printed_mean.abs() <= 1.0
        && row.published.iter().all(|printed| printed.fract() == 0.0);
    let text = if is_small_count {
        let difference = ours.median - printed_mean;
        let sign = if difference > 0.0 { "+" } else { "" };
        format!("{sign}{}", format_number(outcome.unit(), difference))
    } else if let Some(share) = outcome.off {
        format!("{} %", signed(100.0 * share, 1))
    } else {
        return String::new();
    };
    if our_runs.is_one_arena { text } else { format!("{text} ({})", ours.arena.name()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{ArenaName, PublishedRow};

    fn our_runs(is_one_arena: bool) -> OurRuns {
        OurRuns { heading: "here".to_owned(), is_one_arena }
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
        let html = grid(&TableOutcome { title: "A".to_owned(), rows }, &our_runs(true)).into_string();
        assert_eq!(html.matches("<tr>").count(), 1 + 2);
        assert!(html.contains("2, 3 ms → not run, fitted"), "{html}");
        assert!(html.contains("<li>1 KB, WAN: one datagram</li>"), "{html}");
    }

    #[test]
    fn the_deviation_from_a_count_of_0_or_1_is_a_difference_and_from_an_exempt_value_empty() {
        let deviation_of = |metric: &str, published: &[f64], median: f64, role: Role| {
            let mut outcome = row("lost", "", published, role);
            outcome.row.metric = metric.to_owned();
            outcome.off = Some((median - 2.0) / 2.0);
            outcome.values = vec![value(ArenaName::Sim, median)];
            describe_deviation(&outcome, &our_runs(true))
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
        assert_eq!(our_values(&outcome, &our_runs(false)), "3 ms (sim), 4 ms (emu)");
        assert_eq!(describe_deviation(&outcome, &our_runs(false)), "+50.0 % (sim)");
        outcome.values.truncate(1);
        assert_eq!(
            (our_values(&outcome, &our_runs(true)), describe_deviation(&outcome, &our_runs(true))),
            ("3 ms".to_owned(), "+50.0 %".to_owned())
        );
    }
}
