//! Selects the series that a set of charts draws, and gives each series its name and its look.
//!
//! A *cell* is one combination of swept values. A *series* is one flow of one cell, or the state of one cell
//! over time. A *copy* is one of several equal flows of a scenario, such as `call-1` of `call`.
//!
//! If a scope has several cells, its charts compare one flow across the cells. If a scope has one cell, its
//! charts show every flow of the cell.
//!
//! Begin to read with [`ChartScope`].

use std::collections::BTreeMap;

use talkpath_measure::chart_data::{CellChartData, FlowChartData};
use talkpath_measure::summary::{PathChange, Summary};

use crate::display::{self, Display, Look};
use crate::metric::DelayKind;
use crate::path_changes::CellChanges;
use crate::verdict::limit_ms;
use crate::view::{CellView, RUN_KEY, is_copy, transport_key};

/// A panel has at most 8 lines. We chose 8 because a reader cannot follow more lines.
const MAX_LINES: usize = 8;
/// A chart has at most 6 panels under one another. We chose 6 because a reader cannot compare more panels.
pub(crate) const MAX_PANELS: usize = 6;

/// The cells and the flow that a set of charts shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChartScope<'a> {
    pub summary: &'a Summary,
    /// The chart data of all cells of the summary. A cell of a large sweep has none.
    pub chart_data: &'a [CellChartData],
    /// The changes of the path, for each cell whose path changes.
    pub changes: &'a [CellChanges],
    /// The numbers of the cells in the scope. `None` if the scope has all cells.
    pub cell_numbers: Option<&'a [u64]>,
    /// The flow that the charts compare across cells.
    pub compared_flow: &'a str,
    /// The beginning of the ids of the charts.
    pub id_prefix: &'static str,
}

/// One flow of one cell.
#[derive(Clone, Debug)]
pub(crate) struct FlowSeries<'a> {
    pub label: String,
    pub look: Look,
    pub flow: &'a FlowChartData,
    /// The delay from which on a message of the flow is late, in ms: its deadline, or the usual limit of a
    /// conversation. `None` if it cannot be late, as a packet of a program of the user.
    pub limit_ms: Option<f64>,
    /// The changes of the path in the cell.
    pub changes: &'a [PathChange],
}

/// The state of one cell over time. It has a panel of its own.
#[derive(Clone, Debug)]
pub(crate) struct CellSeries<'a> {
    pub label: String,
    pub look: Look,
    pub cell: &'a CellChartData,
    /// The changes of the path in the cell.
    pub changes: &'a [PathChange],
    /// These changes with their groups and the length of the run. `None` if the path does not change.
    pub timeline: Option<&'a CellChanges>,
}

/// The series that a chart draws.
#[derive(Clone, Debug)]
pub(crate) struct Selection<T> {
    pub series: Vec<T>,
    /// The number of further series, which the chart does not draw.
    pub not_drawn: usize,
    /// The beginning of the chart's id.
    pub id_prefix: &'static str,
}

impl<'a> ChartScope<'a> {
    /// Selects the flows whose delay is of `kind`.
    pub(crate) fn flow_series(&self, kind: DelayKind) -> Selection<FlowSeries<'a>> {
        let mut series = Vec::new();
        for cell in self.cells_with_data() {
            for flow in &cell.flows {
                if delay_kind(flow) == kind && self.has_flow(&flow.flow) {
                    let (label, display) = self.name_flow(cell, flow);
                    series.push(FlowSeries {
                        label,
                        look: display.into(),
                        flow,
                        limit_ms: self.limit_of(cell.cell, &flow.flow, kind),
                        changes: self.changes(cell.cell),
                    });
                }
            }
        }
        // The compared flow comes first, and no other flow takes its place.
        series.sort_by_key(|series| !is_flow_or_copy(&series.flow.flow, self.compared_flow));
        // A cell of a large sweep has no chart data, but the summary counts its flows.
        let total = self.count_flows(kind).max(series.len());
        series.truncate(MAX_LINES);
        distinguish_looks(series.iter_mut().map(|series| &mut series.look));
        Selection { not_drawn: total - series.len(), series, id_prefix: self.id_prefix }
    }

    /// Selects the cells whose state over time has a panel.
    pub(crate) fn cell_series(&self) -> Selection<CellSeries<'a>> {
        let mut series = Vec::new();
        for cell in self.cells_with_data().take(MAX_PANELS) {
            let compared = cell.flows.iter().find(|flow| is_flow_or_copy(&flow.flow, self.compared_flow));
            let (label, display) = match compared {
                Some(flow) if self.has_several_cells() => self.name_flow(cell, flow),
                _ => (cell.label.clone(), display::display("")),
            };
            let timeline = self.changes_of(cell.cell);
            let changes = self.changes(cell.cell);
            series.push(CellSeries { label, look: display.into(), cell, changes, timeline });
        }
        let not_drawn = self.cell_count().saturating_sub(series.len());
        Selection { series, not_drawn, id_prefix: self.id_prefix }
    }

    fn has_cell(&self, number: u64) -> bool {
        self.cell_numbers.is_none_or(|numbers| numbers.contains(&number))
    }

    fn changes(&self, cell: u64) -> &'a [PathChange] {
        self.changes_of(cell).map_or(&[], |of_cell| of_cell.changes.as_slice())
    }

    fn changes_of(&self, cell: u64) -> Option<&'a CellChanges> {
        self.changes.iter().find(|changes| changes.cell == cell)
    }

    fn cells_with_data(&self) -> impl Iterator<Item = &'a CellChartData> {
        self.chart_data.iter().filter(|cell| self.has_cell(cell.cell))
    }

    fn cell_count(&self) -> usize {
        self.summary.cells.iter().filter(|cell| self.has_cell(cell.cell)).count()
    }

    fn has_several_cells(&self) -> bool {
        self.cell_count() > 1
    }

    /// Whether the charts show the flow `name` of a cell.
    fn has_flow(&self, name: &str) -> bool {
        !self.has_several_cells() || is_flow_or_copy(name, self.compared_flow)
    }

    /// [`FlowSeries::limit_ms`] of the flow `name` in a cell. A copy of many has no summary of its own: its
    /// limit is that of a conversation.
    fn limit_of(&self, cell: u64, name: &str, kind: DelayKind) -> Option<f64> {
        let Some(flow) = CellView::find(self.summary, cell).and_then(|view| view.flow(name)) else {
            return Some(limit_ms(kind));
        };
        // A call has a deadline, too, but it is the usual one.
        match (flow.deadline_ms, &flow.call) {
            (_, Some(_)) => Some(limit_ms(kind)),
            (deadline_ms, None) => deadline_ms,
        }
    }

    /// Counts the flows of the scope that have a delay of `kind`.
    fn count_flows(&self, kind: DelayKind) -> usize {
        let cells: Vec<CellView<'_>> = match self.cell_numbers {
            Some(numbers) => {
                numbers.iter().filter_map(|&number| CellView::find(self.summary, number)).collect()
            }
            None => CellView::all(self.summary),
        };
        let mut count: u64 = 0;
        for cell in &cells {
            for name in cell.names().filter(|name| self.has_flow(name) && cell.delay_kind(name) == kind) {
                // The summary may have the figures of all copies together, but each copy has a line.
                count += cell.summed_up(name).map_or(1, |group| group.flows);
            }
        }
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// Returns the label of a flow's line, and the appearance of its transport.
    fn name_flow(&self, cell: &CellChartData, flow: &FlowChartData) -> (String, &'static Display) {
        let view = CellView::find(self.summary, cell.cell);
        let recorded = view.as_ref().map(|view| view.transport(&flow.flow).display);
        let display = recorded.unwrap_or_else(|| display::display(&flow.transport));
        if !self.has_several_cells() {
            let transport = if display.name.is_empty() { &flow.transport } else { display.name };
            return (format!("{}, {transport}", flow.flow), display);
        }
        let Some(view) = view else { return (cell.label.clone(), display) };
        let copy = flow.flow.strip_prefix(self.compared_flow).unwrap_or_default().replacen('-', " ", 1);
        let mut label = format!("{}{copy}", view.transport(self.compared_flow).label);
        // The cells of a condition differ in the transport alone, and the heading above its charts has the
        // other values. Charts of all cells have no such heading.
        if self.cell_numbers.is_none() {
            let other_values = view.sweep_label(&[&transport_key(self.compared_flow), RUN_KEY]);
            if !other_values.is_empty() {
                label = format!("{label}, {other_values}");
            }
        }
        (label, display)
    }
}

impl<T> Selection<T> {
    /// Joins two selections of one scope.
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.series.extend(other.series);
        self.not_drawn += other.not_drawn;
        self
    }
}

/// Gives each of several lines of one transport its own dash and marker.
pub(crate) fn distinguish_looks<'a>(looks: impl Iterator<Item = &'a mut Look>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for look in looks {
        let count = counts.entry(look.display.kind).or_default();
        look.variant = *count;
        *count += 1;
    }
}

pub(crate) fn is_flow_or_copy(name: &str, flow: &str) -> bool {
    name == flow || is_copy(name, flow)
}

fn delay_kind(flow: &FlowChartData) -> DelayKind {
    if flow.round_trip { DelayKind::RoundTrip } else { DelayKind::OneWay }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn scope<'a>(
        summary: &'a Summary,
        chart_data: &'a [CellChartData],
        cell_numbers: Option<&'a [u64]>,
    ) -> ChartScope<'a> {
        ChartScope { summary, chart_data, changes: &[], cell_numbers, compared_flow: "call", id_prefix: "" }
    }

    fn drawn_and_not_drawn<T>(selection: &Selection<T>) -> (usize, usize) {
        (selection.series.len(), selection.not_drawn)
    }

    #[test]
    fn a_sweep_compares_one_flow_and_a_single_cell_shows_all() {
        let (summary, figures) = (fixture::summary(1), fixture::figures());
        let sweep = scope(&summary, &figures, None);
        let round_trips = sweep.flow_series(DelayKind::RoundTrip).series;
        let labels: Vec<String> = round_trips.into_iter().map(|series| series.label).collect();
        assert_eq!(labels, ["UDP", "TCP", "TCP_NODELAY"]);
        assert!(sweep.flow_series(DelayKind::OneWay).series.is_empty());
        let (summary, figures) = fixture::single();
        let single = scope(&summary, &figures, None);
        assert_eq!(single.flow_series(DelayKind::OneWay).series[0].label, "upload, TCP");
    }

    #[test]
    fn a_transport_keeps_its_colour_and_further_series_are_counted() {
        let (summary, figures) = fixture::sweep(30);
        let sweep = scope(&summary, &figures, None);
        let delays = sweep.flow_series(DelayKind::RoundTrip);
        assert_eq!(drawn_and_not_drawn(&delays), (MAX_LINES, 90 - MAX_LINES));
        for (index, series) in delays.series.iter().enumerate() {
            assert_eq!(series.look.display.kind, series.flow.transport);
            assert!(delays.series[..index].iter().all(|other| other.look != series.look), "{}", series.label);
        }
        assert_eq!(drawn_and_not_drawn(&sweep.cell_series()), (MAX_PANELS, 90 - MAX_PANELS));
    }

    #[test]
    fn lines_of_cells_that_have_no_figures_are_counted_among_those_not_drawn() {
        let (summary, mut figures) = fixture::sweep(30);
        figures.truncate(4);
        let all = scope(&summary, &figures, None);
        assert_eq!(drawn_and_not_drawn(&all.flow_series(DelayKind::RoundTrip)), (4, 86));
        assert_eq!(all.cell_series().not_drawn, 86);
        let without_data = scope(&summary, &figures, Some(&[30, 31, 32]));
        assert_eq!(drawn_and_not_drawn(&without_data.flow_series(DelayKind::RoundTrip)), (0, 3));
        let with_data = scope(&summary, &figures, Some(&[0, 1, 2]));
        assert_eq!(drawn_and_not_drawn(&with_data.flow_series(DelayKind::RoundTrip)), (3, 0));
    }
}
