//! The section about sweeps: lines, heat maps, and the table with the answer of each combination.

use maud::{Markup, html};

use super::page::Page;
use crate::chart::{Chart, HeatMapKind, heat_map, sweep_lines};
use crate::number::{count, counted};
use crate::receiver::receivers;
use crate::sweep::table::SweepTable;
use crate::sweep::{MAX_ON_PAGE, Sweep};

/// A table with more than 40 rows is folded. We chose 40 because so many rows fill a screen.
const OPEN_ROWS: usize = 40;
/// A caption names at most 4 links or flows, and counts the others.
const MAX_NAMED: usize = 4;

pub(super) fn sweeps(page: &Page<'_>, sweeps: &[Sweep<'_>]) -> Markup {
    html! {
        @for sweep in sweeps {
            @for chart in sweep_charts(page, sweep) { (chart.html()) }
            @if sweep.has_answers() { (table(sweep)) }
        }
    }
}

fn table(sweep: &Sweep<'_>) -> Markup {
    let combinations = sweep.combinations.len();
    let SweepTable { grid, note } = sweep.table_within(MAX_ON_PAGE);
    html! {
        details open=[(combinations <= OPEN_ROWS).then_some("open")] {
            summary { "Table for " (sweep.flow) ": " (counted(combinations as u64, "combination")) }
            (grid.html(&format!("The best for {} at each combination", sweep.flow)))
            @if let Some(note) = note { p.about { (note) } }
        }
    }
}

/// The charts of a sweep, in the order of the page.
pub(super) fn sweep_charts(page: &Page<'_>, sweep: &Sweep<'_>) -> Vec<Chart> {
    let conditions = conditions_note(page, sweep);
    let mut charts = Vec::new();
    charts.extend(sweep_lines(sweep));
    charts.extend(heat_map(sweep, HeatMapKind::Winner, &conditions));
    charts.extend(heat_map(sweep, HeatMapKind::Figure, &conditions));
    charts
}

/// The conditions that a heat map holds for, as the end of its caption: the receiver, the other flows, and
/// the links.
fn conditions_note(page: &Page<'_>, sweep: &Sweep<'_>) -> String {
    let mut note = String::new();
    if let Some(receivers) = receivers(page.summary) {
        note.push_str(&format!(" {receivers}."));
    }
    if sweep.other_flows.is_empty() {
        note.push_str(&format!(" No other traffic beside {}.", sweep.flow));
    } else {
        let others = join_first(&sweep.other_flows, ", ");
        note.push_str(&format!(" Beside {}: {others}.", sweep.flow));
    }
    let links = describe_links(page);
    if !links.is_empty() {
        note.push_str(&format!(" Links of the first cell: {}.", join_first(&links, "; ")));
    }
    note
}

/// The name of each link, with its rate, delay and queue. Empty if the network is not known.
fn describe_links(page: &Page<'_>) -> Vec<String> {
    let Some(network) = page.network else { return Vec::new() };
    let first_run = page.summary.runs.first();
    let describe = |name: &str, about: &str| {
        let link = first_run.and_then(|run| run.links.get(name));
        match link.map(|link| link.discipline.as_str()) {
            Some(discipline) if !about.contains(discipline) => format!("{name} {about}, {discipline}"),
            _ => format!("{name} {about}"),
        }
    };
    network.animation.links.iter().map(|link| describe(&link.name, &link.about)).collect()
}

/// Joins the first few of `names`, and counts the others.
fn join_first(names: &[String], separator: &str) -> String {
    let mut shown: Vec<String> = names.iter().take(MAX_NAMED).cloned().collect();
    if names.len() > MAX_NAMED {
        shown.push(format!("{} more", count((names.len() - MAX_NAMED) as u64)));
    }
    shown.join(separator)
}
