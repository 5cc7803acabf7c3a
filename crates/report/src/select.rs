//! Which series a figure shows, their names and their styles.
//!
//! With a sweep a figure compares the main flow across the cells of one condition; without one it shows every
//! flow of the only cell.

use std::collections::BTreeMap;

use talkpath_measure::chart_data::{CellFigures, FlowFigures};
use talkpath_measure::summary::Summary;

use crate::display::{self, Display, Look};
use crate::metric::DelayKind;
use crate::path_changes::{CellChanges, PathChange};
use crate::view::{CellView, RUN_KEY, is_copy, transport_key};

/// One flow of one cell in a figure.
#[derive(Clone, Debug)]
pub(crate) struct Series<'a> {
    pub label: String,
    pub look: Look,
    pub flow: &'a FlowFigures,
    /// The changes of the path.
    pub changes: &'a [PathChange],
}

/// One cell in a figure of small multiples.
#[derive(Clone, Debug)]
pub(crate) struct CellSeries<'a> {
    pub label: String,
    pub look: Look,
    pub cell: &'a CellFigures,
    /// The changes of the path.
    pub changes: &'a [PathChange],
}

/// The series to draw, and how many did not fit.
#[derive(Clone, Debug)]
pub(crate) struct Selection<T> {
    pub shown: Vec<T>,
    pub left_out: usize,
    /// Begins the ids of its figures.
    pub id: &'static str,
}

/// The cells that one set of figures shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn<'a> {
    pub summary: &'a Summary,
    /// Of all cells.
    pub figures: &'a [CellFigures],
    /// How the path changed, in the cells in which it did.
    pub changes: &'a [CellChanges],
    /// Indices of the cells; `None` for all.
    pub cells: Option<&'a [u64]>,
    /// The flow that is compared.
    pub flow: &'a str,
    /// Begins the ids of its figures.
    pub id: &'static str,
}

/// More lines than this in one panel cannot be followed; chosen.
const MAX_LINES: usize = 8;
/// More panels than this under each other cannot be compared; chosen.
pub(crate) const MAX_PANELS: usize = 6;

impl<'a> Drawn<'a> {
    fn has(&self, cell: u64) -> bool {
        self.cells.is_none_or(|cells| cells.contains(&cell))
    }

    fn changes(&self, cell: u64) -> &'a [PathChange] {
        let found = self.changes.iter().find(|changes| changes.cell == cell);
        found.map_or(&[], |found| found.changes.as_slice())
    }

    fn figures(&self) -> impl Iterator<Item = &'a CellFigures> {
        self.figures.iter().filter(|figures| self.has(figures.cell))
    }

    /// Whether the flow is compared across cells; else every flow of the only cell is drawn.
    fn is_swept(&self) -> bool {
        self.summary.cells.iter().filter(|cell| self.has(cell.cell)).count() > 1
    }

    /// The flows whose delays are drawn, of one kind: round trips or one way.
    pub(crate) fn flows(&self, round_trip: bool) -> Selection<Series<'a>> {
        let (mut shown, swept) = (Vec::new(), self.is_swept());
        for cell in self.figures() {
            let wanted = cell
                .flows
                .iter()
                .filter(|f| f.round_trip == round_trip && (!swept || is_drawn(&f.flow, self.flow)));
            for figures in wanted {
                let (label, display) = self.name(cell, figures, swept);
                let changes = self.changes(cell.cell);
                shown.push(Series { label, look: display.into(), flow: figures, changes });
            }
        }
        // Of a large sweep only some cells have figures: what is left out is counted in the tables' summary.
        let kind = if round_trip { DelayKind::RoundTrip } else { DelayKind::OneWay };
        let lines = |cell: &CellView<'_>| {
            let shown =
                |name: &&String| (!swept || is_drawn(name, self.flow)) && cell.delay_kind(name) == kind;
            // Copies that are summed up have a line each, as any other flow.
            let copies = |name: &String| cell.summed_up(name).map_or(1, |group| group.flows);
            let lines: u64 = cell.names().filter(shown).map(copies).sum();
            usize::try_from(lines).unwrap_or(usize::MAX)
        };
        let cells = match self.cells {
            Some(cells) => cells.iter().filter_map(|&cell| CellView::of(self.summary, cell)).collect(),
            None => CellView::all(self.summary),
        };
        let all: usize = cells.iter().map(lines).sum();
        let all = all.max(shown.len());
        shown.truncate(MAX_LINES);
        vary(shown.iter_mut().map(|series| &mut series.look));
        Selection { left_out: all - shown.len(), shown, id: self.id }
    }

    /// The cells whose state over time is drawn.
    pub(crate) fn cells(&self) -> Selection<CellSeries<'a>> {
        let swept = self.is_swept();
        let shown = self.figures().take(MAX_PANELS).map(|cell| {
            let main = cell.flows.iter().find(|figures| is_drawn(&figures.flow, self.flow));
            let (label, display) = match main {
                Some(main) if swept => self.name(cell, main, swept),
                _ => (cell.label.clone(), display::display("")),
            };
            CellSeries { label, look: display.into(), cell, changes: self.changes(cell.cell) }
        });
        let shown: Vec<_> = shown.collect();
        let all = self.summary.cells.iter().filter(|cell| self.has(cell.cell)).count();
        Selection { left_out: all.saturating_sub(shown.len()), shown, id: self.id }
    }
}

impl Drawn<'_> {
    /// What one line is called: the transport, and what else differs between the cells that are drawn.
    fn name(&self, cell: &CellFigures, figures: &FlowFigures, swept: bool) -> (String, &'static Display) {
        let view = CellView::of(self.summary, cell.cell);
        let recorded = view.as_ref().map(|view| view.transport(&figures.flow).display);
        let looks = recorded.unwrap_or_else(|| display::display(&figures.transport));
        let transport = if looks.name.is_empty() { &figures.transport } else { looks.name };
        if !swept {
            return (format!("{}, {transport}", figures.flow), looks);
        }
        let Some(view) = view else { return (cell.label.clone(), looks) };
        // The cells of one combination differ in the transport alone, and the heading above the figures has
        // the combination's values.
        let rest = match self.cells {
            Some(_) => String::new(),
            None => view.sweep_label(&[&transport_key(self.flow), RUN_KEY]),
        };
        let copy =
            figures.flow.strip_prefix(self.flow).map(|rest| rest.replacen('-', " ", 1)).unwrap_or_default();
        let label = format!("{}{copy}", view.transport(self.flow).label);
        let label = if rest.is_empty() { label } else { format!("{label}, {rest}") };
        (label, looks)
    }
}

/// Distinguishes lines of one transport: the second one has another dash and marker than the first.
pub(crate) fn vary<'a>(looks: impl Iterator<Item = &'a mut Look>) {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for look in looks {
        let seen = kinds.entry(look.display.kind).or_default();
        look.variant = *seen;
        *seen += 1;
    }
}

/// Two selections one after the other.
pub(crate) fn both<'a>(
    first: &Selection<Series<'a>>,
    second: &Selection<Series<'a>>,
) -> Selection<Series<'a>> {
    let shown = first.shown.iter().chain(&second.shown).cloned().collect();
    Selection { shown, left_out: first.left_out + second.left_out, id: first.id }
}

/// Whether `name` is the flow or one of its copies.
pub(crate) fn is_drawn(name: &str, flow: &str) -> bool {
    name == flow || is_copy(name, flow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn drawn<'a>(summary: &'a Summary, figures: &'a [CellFigures], cells: Option<&'a [u64]>) -> Drawn<'a> {
        Drawn { summary, figures, changes: &[], cells, flow: "call", id: "" }
    }

    #[test]
    fn a_sweep_compares_one_flow_and_a_single_cell_shows_all() {
        let (summary, figures) = (fixture::summary(1), fixture::figures());
        let swept = drawn(&summary, &figures, None);
        let labels: Vec<String> = swept.flows(true).shown.into_iter().map(|series| series.label).collect();
        assert_eq!(labels, ["UDP", "TCP", "TCP_NODELAY"]);
        assert!(swept.flows(false).shown.is_empty());
        let (summary, figures) = fixture::single();
        assert_eq!(drawn(&summary, &figures, None).flows(false).shown[0].label, "upload, TCP");
    }

    #[test]
    fn a_transport_keeps_its_colour_and_the_rest_is_counted() {
        let (summary, figures) = fixture::sweep(30);
        let many = drawn(&summary, &figures, None);
        let delays = many.flows(true);
        assert_eq!((delays.shown.len(), delays.left_out), (MAX_LINES, 90 - MAX_LINES));
        for (index, series) in delays.shown.iter().enumerate() {
            assert_eq!(series.look.display.kind, series.flow.transport);
            assert!(delays.shown[..index].iter().all(|other| other.look != series.look), "{}", series.label);
        }
        let cells = many.cells();
        assert_eq!((cells.shown.len(), cells.left_out), (MAX_PANELS, 90 - MAX_PANELS));
    }

    #[test]
    fn lines_of_cells_that_have_no_figures_are_counted_among_those_not_drawn() {
        let (summary, mut figures) = fixture::sweep(30);
        figures.truncate(4);
        let few = drawn(&summary, &figures, None);
        assert_eq!((few.flows(true).shown.len(), few.flows(true).left_out), (4, 86));
        assert_eq!(few.cells().left_out, 86);
        let none = drawn(&summary, &figures, Some(&[30, 31, 32]));
        assert_eq!((none.flows(true).shown.len(), none.flows(true).left_out), (0, 3));
        let all = drawn(&summary, &figures, Some(&[0, 1, 2]));
        assert_eq!((all.flows(true).shown.len(), all.flows(true).left_out), (3, 0));
    }
}
