//! Which series a figure shows, their names and their styles.
//!
//! With a sweep a figure compares the main flow across cells; without one it shows every flow of the only
//! cell.

use talkpath_measure::figures::{CellFigures, FlowFigures};
use talkpath_measure::summary::Summary;

use crate::display::{self, Display};
use crate::view::{CellView, DelayKind, RUN_KEY, is_copy, transport_key};

/// One flow of one cell in a figure.
#[derive(Clone, Debug)]
pub(crate) struct Series<'a> {
    pub label: String,
    pub display: &'static Display,
    pub flow: &'a FlowFigures,
}

/// One cell in a figure of small multiples.
#[derive(Clone, Debug)]
pub(crate) struct CellSeries<'a> {
    pub label: String,
    pub display: &'static Display,
    pub cell: &'a CellFigures,
}

/// The series to draw, and how many did not fit.
#[derive(Clone, Debug)]
pub(crate) struct Selection<T> {
    pub shown: Vec<T>,
    pub left_out: usize,
}

/// More lines than this in one panel cannot be followed; chosen.
const MAX_LINES: usize = 8;
/// More panels than this under each other cannot be compared; chosen.
pub(crate) const MAX_PANELS: usize = 6;

/// The flows whose delays are drawn, of one kind: round trips or one way.
pub(crate) fn flows<'a>(
    summary: &Summary,
    figures: &'a [CellFigures],
    flow: &str,
    round_trip: bool,
) -> Selection<Series<'a>> {
    let mut shown = Vec::new();
    let swept = figures.len() > 1;
    for cell in figures {
        let wanted =
            cell.flows.iter().filter(|f| f.round_trip == round_trip && (!swept || is_drawn(&f.flow, flow)));
        for figures in wanted {
            let (label, display) = name(summary, cell, figures, swept, flow);
            shown.push(Series { label, display, flow: figures });
        }
    }
    // Of a large sweep only some cells have figures: what is left out is counted in the tables' summary.
    let kind = if round_trip { DelayKind::RoundTrip } else { DelayKind::OneWay };
    let lines = |cell: &CellView<'_>| {
        let flows = cell.run().into_iter().flat_map(|run| run.flows.keys());
        flows.filter(|name| (!swept || is_drawn(name, flow)) && cell.delay_kind(name) == kind).count()
    };
    let all: usize = CellView::all(summary).iter().map(lines).sum();
    let left_out = all.max(shown.len()).saturating_sub(MAX_LINES);
    shown.truncate(MAX_LINES);
    let kinds: Vec<&str> = shown.iter().map(|series| series.display.kind).collect();
    if repeats(&kinds) {
        for (index, series) in shown.iter_mut().enumerate() {
            series.display = display::by_index(index);
        }
    }
    Selection { shown, left_out }
}

/// Two selections one after the other.
pub(crate) fn both<'a>(
    first: &Selection<Series<'a>>,
    second: &Selection<Series<'a>>,
) -> Selection<Series<'a>> {
    let shown = first.shown.iter().chain(&second.shown).cloned().collect();
    Selection { shown, left_out: first.left_out + second.left_out }
}

/// The cells whose state over time is drawn.
pub(crate) fn cells<'a>(
    summary: &Summary,
    figures: &'a [CellFigures],
    flow: &str,
) -> Selection<CellSeries<'a>> {
    let swept = figures.len() > 1;
    let shown = figures.iter().take(MAX_PANELS).map(|cell| {
        let main = cell.flows.iter().find(|figures| is_drawn(&figures.flow, flow));
        let (label, display) = match main {
            Some(main) if swept => name(summary, cell, main, swept, flow),
            _ => (cell.label.clone(), display::display("")),
        };
        CellSeries { label, display, cell }
    });
    Selection { shown: shown.collect(), left_out: summary.cells.len().saturating_sub(MAX_PANELS) }
}

/// Whether `name` is the flow or one of its copies.
pub(crate) fn is_drawn(name: &str, flow: &str) -> bool {
    name == flow || is_copy(name, flow)
}

fn name(
    summary: &Summary,
    cell: &CellFigures,
    figures: &FlowFigures,
    swept: bool,
    flow: &str,
) -> (String, &'static Display) {
    let looks = display::display(&figures.transport);
    let transport = if looks.name.is_empty() { &figures.transport } else { looks.name };
    if !swept {
        return (format!("{}, {transport}", figures.flow), looks);
    }
    let view = CellView::all(summary).into_iter().find(|view| view.cell.cell == cell.cell);
    let Some(view) = view else { return (cell.label.clone(), looks) };
    let rest = view.sweep_label(&[&transport_key(flow), RUN_KEY]);
    let copy = figures.flow.strip_prefix(flow).map(|rest| rest.replacen('-', " ", 1)).unwrap_or_default();
    let label = format!("{}{copy}", view.transport(flow).label);
    let label = if rest.is_empty() { label } else { format!("{label}, {rest}") };
    (label, looks)
}

fn repeats(kinds: &[&str]) -> bool {
    kinds.iter().enumerate().any(|(index, kind)| kinds[..index].contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_sweep_compares_one_flow_and_a_single_cell_shows_all() {
        let (summary, figures) = (fixture::summary(1), fixture::figures());
        let swept = flows(&summary, &figures, "call", true);
        let labels: Vec<&str> = swept.shown.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, ["UDP", "TCP", "TCP_NODELAY"]);
        assert!(flows(&summary, &figures, "call", false).shown.is_empty());
        let single = flows(&summary, &figures[..1], "call", false);
        assert_eq!(single.shown[0].label, "upload, TCP");
    }

    #[test]
    fn many_cells_of_one_transport_get_colours_of_their_own_and_a_count_of_the_rest() {
        let summary = fixture::summary(1);
        let figures: Vec<CellFigures> =
            (0..20).map(|cell| CellFigures { cell, ..fixture::figures()[0].clone() }).collect();
        let many = flows(&summary, &figures, "call", true);
        assert_eq!((many.shown.len(), many.left_out), (MAX_LINES, 20 - MAX_LINES));
        let kinds: Vec<&str> = many.shown.iter().map(|series| series.display.kind).collect();
        assert!(!repeats(&kinds));
        assert_eq!(cells(&summary, &figures, "call").shown.len(), MAX_PANELS);
    }

    #[test]
    fn lines_of_cells_that_have_no_figures_are_counted_among_those_not_drawn() {
        let (summary, mut figures) = fixture::sweep(30);
        figures.truncate(40);
        let delays = flows(&summary, &figures, "call", true);
        assert_eq!((delays.shown.len(), delays.left_out), (MAX_LINES, 90 - MAX_LINES));
        assert_eq!(cells(&summary, &figures, "call").left_out, 90 - MAX_PANELS);
    }
}
