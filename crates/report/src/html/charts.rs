//! The section with the charts of messages and queues, and every chart of the page as a file.
//!
//! A page with a sweep has two sets of charts: one for the first combination, and one for the last.

use maud::{Markup, html};

use super::document::{chart_file_css, replace_control_characters};
use super::network::network_chart;
use super::page::Page;
use super::sweep::sweep_charts;
use crate::chart::{Chart, LineKind, ccdf, changes_over_time, delay_over_time, loss_runs, over_time};
use crate::metric::DelayKind;
use crate::number::counted;
use crate::program::ProgramFigures;
use crate::select::ChartScope;
use crate::sweep::{MAX_ON_PAGE, Sweep};
use crate::terms::shown_repetition;
use crate::verdict::{ConditionVerdict, FlowCells, JudgedFlow};
use crate::view::main_flow;

/// A chart of a page as an SVG file that loads no other file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartFile {
    /// The name of the file without the extension.
    pub name: String,
    /// The content of the file.
    pub svg: String,
}

/// The charts of some cells.
struct ChartSet {
    /// The values that the cells have in common. Empty if the set has all cells.
    label: String,
    charts: Vec<Chart>,
}

pub(super) fn charts(page: &Page<'_>, judged_flows: &[JudgedFlow<'_>]) -> Markup {
    let sets = chart_sets(page, judged_flows);
    if sets.iter().all(|set| set.charts.is_empty()) {
        return html! {};
    }
    let has_several_sets = sets.len() > 1;
    let combinations = judged_flows.first().map_or(0, |judged| judged.conditions.len());
    let others = if combinations > MAX_ON_PAGE { "summary.json" } else { "the tables" };
    let repetition = shown_repetition(page.chart_data.iter().map(|cell| cell.repetition));
    html! {
        @if page.summary.cells.iter().any(|cell| cell.n > 1) {
            p.about { "Figures show " (repetition) "; the tables show all." }
        }
        @if has_several_sets {
            p.about {
                "Of the " (counted(combinations as u64, "combination")) " the first and the last are drawn; the others are in "
                (others) "."
            }
        }
        @for set in &sets {
            @if has_several_sets { h3.set { (set.label) } }
            @for chart in &set.charts { (chart.html()) }
        }
    }
}

fn chart_sets(page: &Page<'_>, judged_flows: &[JudgedFlow<'_>]) -> Vec<ChartSet> {
    let conditions = judged_flows.first().map(|judged| judged.conditions.as_slice()).unwrap_or_default();
    match conditions {
        [first, .., last] => {
            vec![set_of_condition(page, first, "first-"), set_of_condition(page, last, "last-")]
        }
        _ => vec![ChartSet { label: String::new(), charts: charts_of_cells(page, None, "") }],
    }
}

fn set_of_condition(page: &Page<'_>, judged: &ConditionVerdict<'_>, id_prefix: &'static str) -> ChartSet {
    let condition = judged.condition;
    let cells: Vec<u64> = condition.cells.iter().map(|cell| cell.cell.cell).collect();
    ChartSet { label: condition.label.clone(), charts: charts_of_cells(page, Some(&cells), id_prefix) }
}

/// The charts of some cells, in the order of the page. `None` for all cells.
fn charts_of_cells(page: &Page<'_>, cell_numbers: Option<&[u64]>, id_prefix: &'static str) -> Vec<Chart> {
    let flow = main_flow(page.summary);
    let scope = ChartScope {
        summary: page.summary,
        chart_data: page.chart_data,
        changes: page.changes,
        cell_numbers,
        compared_flow: &flow,
        id_prefix,
    };
    let round_trips = scope.flow_series(DelayKind::RoundTrip);
    let one_ways = scope.flow_series(DelayKind::OneWay);
    let cells = scope.cell_series();
    let mut charts = Vec::new();
    charts.extend(ccdf(&round_trips, DelayKind::RoundTrip));
    charts.extend(ccdf(&one_ways, DelayKind::OneWay));
    charts.extend(changes_over_time(&cells));
    charts.extend(delay_over_time(&round_trips, DelayKind::RoundTrip));
    charts.extend(delay_over_time(&one_ways, DelayKind::OneWay));
    for kind in [LineKind::Goodput, LineKind::Queue, LineKind::Cwnd, LineKind::SendBuffer] {
        charts.extend(over_time(&cells, kind, &flow));
    }
    charts.extend(loss_runs(&round_trips.join(one_ways)));
    charts
}

/// Returns each chart of the page as an SVG file that loads no other file: its name without the extension,
/// and its text.
pub fn chart_files(page: &Page<'_>) -> Vec<ChartFile> {
    let mut files = Vec::new();
    for chart in all_charts(page) {
        if let Some(svg) = chart_file(&chart) {
            files.push(ChartFile { name: chart.id, svg });
        }
    }
    files
}

/// Returns a chart as an SVG file on light ground. Returns `None` if there is nothing to draw.
pub(crate) fn chart_file(chart: &Chart) -> Option<String> {
    chart.svg_file(&chart_file_css()).map(|file| replace_control_characters(&file))
}

fn all_charts(page: &Page<'_>) -> Vec<Chart> {
    let flows = FlowCells::all(page.summary);
    let judged_flows: Vec<JudgedFlow<'_>> = flows.iter().map(FlowCells::judge).collect();
    let mut charts = ProgramFigures::new(page.summary).map_or_else(Vec::new, |program| program.charts());
    for sweep in judged_flows.iter().filter_map(Sweep::beyond_answers) {
        charts.extend(sweep_charts(page, &sweep));
    }
    for set in chart_sets(page, &judged_flows) {
        charts.extend(set.charts);
    }
    charts.extend(network_chart(page));
    charts
}
