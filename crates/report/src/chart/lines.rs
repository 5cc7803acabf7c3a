//! The charts of state over time: goodput, queueing delay, congestion window and send buffer. Each cell has a
//! panel.
//!
//! An *entity* is what a line belongs to: a flow, a direction of a flow, or a link. A line has the same name
//! and the same dash in all panels.

use talkpath_measure::chart_data::StepLine;

use super::legend::{LegendEntry, Sample};
use super::shared::{Chart, extent, not_drawn_note, shared_scale_note};
use crate::display::Look;
use crate::number::distinct;
use crate::path_changes;
use crate::plot::panel::{LEFT, Panel, PanelStack, Quantity, X_RANGE};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{PathData, Svg, SvgName, SvgPath, SvgText};
use crate::select::{CellSeries, Selection, is_flow_or_copy};

const TOP: f64 = 24.0;
const PANEL_HEIGHT: f64 = 100.0;
const GAP: f64 = 30.0;
/// A panel has at most 4 lines. We chose 4 because there are four grey styles, and a reader cannot follow
/// more lines.
const MAX_LINES: usize = 4;
/// The styles of lines that are not of the compared flow. They have no colour of a transport.
const NEUTRAL_STYLES: [&str; MAX_LINES] = [
    "stroke:var(--ink);stroke-dasharray:none",
    "stroke:var(--soft);stroke-dasharray:5 3",
    "stroke:var(--ink);stroke-dasharray:2 3",
    "stroke:var(--soft);stroke-dasharray:none",
];

/// The quantity that the lines of a chart show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Goodput,
    Queue,
    Cwnd,
    SendBuffer,
}

/// Everything that distinguishes the charts of the kinds.
struct KindWords {
    /// The kind's name in a [`StepLine`].
    data_name: &'static str,
    title: &'static str,
    axis_title: &'static str,
    /// The words for the value under a pointer.
    quantity: Quantity<'static>,
    /// The factor from the unit of the chart data to the unit of the axis.
    factor: f64,
    caption: &'static str,
}

impl LineKind {
    const fn words(self) -> KindWords {
        match self {
            Self::Goodput => KindWords {
                data_name: "goodput",
                title: "Goodput over time",
                axis_title: "goodput, Mb/s",
                quantity: Quantity { name: "goodput", unit: "Mb/s" },
                factor: 1e-6,
                caption: "Payload that each flow delivered to the application, as the mean over each hundredth of the time. A \
                          message that fills more than a packet counts evenly over the time since the one before it.",
            },
            Self::Queue => KindWords {
                data_name: "queue_delay",
                title: "Queues over time",
                axis_title: "delay in the queue, ms",
                quantity: Quantity { name: "queue", unit: "ms" },
                factor: 1.0,
                caption: "How long each packet waited at a link when it went into service. Where flows have queues of their \
                          own, the line goes between those of a call and those of a transfer.",
            },
            Self::Cwnd => KindWords {
                data_name: "cwnd",
                title: "Congestion windows over time",
                axis_title: "cwnd, packets",
                quantity: Quantity { name: "cwnd", unit: "packets" },
                factor: 1.0,
                caption: "How many packets each sender may have in flight; transports without a congestion window have no \
                          line.",
            },
            Self::SendBuffer => KindWords {
                data_name: "send_buffer",
                title: "Send buffers over time",
                axis_title: "send buffer, kB",
                quantity: Quantity { name: "send buffer", unit: "kB" },
                factor: 1e-3,
                caption: "Bytes that the application wrote and the far end has not acknowledged (or that have not left yet).",
            },
        }
    }
}

/// Draws the lines of `kind` in a panel for each cell of `selection`. `flow` is the compared flow, which has
/// the colour of its transport. Returns `None` if no cell has such lines.
pub(crate) fn over_time(selection: &Selection<CellSeries<'_>>, kind: LineKind, flow: &str) -> Option<Chart> {
    let has_lines = |cell: &&CellSeries<'_>| cell.lines(kind).next().is_some();
    let cells: Vec<&CellSeries<'_>> = selection.series.iter().filter(has_lines).collect();
    if cells.is_empty() {
        return None;
    }
    let words = kind.words();
    let chart = OverTime { entities: Entities::new(&cells, kind, flow), cells, kind };
    let names = &chart.entities.names;
    let description = format!("{} for {}.", words.title, names.join(", "));
    let id = format!("{}{}", selection.id_prefix, words.data_name);
    let name = SvgName { id: &id, title: words.title, description: &description };
    Some(Chart {
        title: words.title.to_owned(),
        legend: (0..names.len()).map(|entity| chart.legend_entry(entity)).collect(),
        svg: Some(chart.draw().finish(name)),
        caption: format!(
            "{}{}{}{}{}",
            words.caption,
            path_changes::short_caption(chart.cells.iter().map(|cell| cell.changes)),
            shared_scale_note(chart.cells.len()),
            not_drawn_note(chart.entities.not_drawn, "lines of each panel"),
            not_drawn_note(selection.not_drawn, "panels")
        ),
        id,
    })
}

impl<'a> CellSeries<'a> {
    fn lines(&self, kind: LineKind) -> impl Iterator<Item = &'a StepLine> + use<'a> {
        self.cell.lines.iter().filter(move |line| line.kind == kind.words().data_name)
    }

    /// The time in s at which the last line of any kind ends, so that all charts of a cell end together.
    fn end(&self) -> f64 {
        let ends =
            self.cell.lines.iter().filter_map(|line| Some(end_of_last_value(line, line.points.last()?.0)));
        extent(ends).1
    }
}

/// Returns the time in s until which the last value of `line` holds. A value of goodput is the mean over one
/// of equal spans of time, and the last span ends before the queues drain. All other values hold until
/// `run_end`.
fn end_of_last_value(line: &StepLine, run_end: f64) -> f64 {
    match line.points.as_slice() {
        [.., (previous, _), (last, _)] if line.kind == LineKind::Goodput.words().data_name => {
            last + (last - previous)
        }
        _ => run_end,
    }
}

/// The flows or links that have a line.
struct Entities<'a> {
    /// The names in the order in which they appear in the panels.
    names: Vec<&'a str>,
    /// The number of further entities, whose lines have no room.
    not_drawn: usize,
    compared_flow: &'a str,
}

impl<'a> Entities<'a> {
    fn new(cells: &[&CellSeries<'a>], kind: LineKind, compared_flow: &'a str) -> Self {
        let lines = cells.iter().flat_map(|cell| cell.lines(kind));
        let mut names: Vec<&str> = distinct(lines.map(|line| line.entity.as_str()));
        // The chart data has only the first lines of a cell, and the number of the others. The cells of a
        // sweep mostly have the same lines, so the largest number stands for all cells.
        let without_data =
            cells.iter().filter_map(|cell| cell.cell.more_lines.get(kind.words().data_name)).max();
        let without_data = without_data.map_or(0, |&count| usize::try_from(count).unwrap_or(usize::MAX));
        let not_drawn = names.len().saturating_sub(MAX_LINES).saturating_add(without_data);
        names.truncate(MAX_LINES);
        Self { names, not_drawn, compared_flow }
    }

    fn index(&self, line: &StepLine) -> Option<usize> {
        self.names.iter().position(|name| *name == line.entity)
    }

    fn is_compared(&self, entity: usize) -> bool {
        is_flow_or_copy(self.names[entity], self.compared_flow)
    }

    /// The style of an entity's line in the panel of `cell`. The compared flow has the colour of its
    /// transport in this cell, and each of its directions and copies has a dash of its own.
    fn line_style(&self, entity: usize, cell: &CellSeries<'_>) -> String {
        if !self.is_compared(entity) {
            return NEUTRAL_STYLES[entity].to_owned();
        }
        let earlier_copies = (0..entity).filter(|&earlier| self.is_compared(earlier)).count();
        Look { variant: cell.look.variant + earlier_copies, ..cell.look }.line_style()
    }
}

/// A chart of one kind of line.
struct OverTime<'a> {
    kind: LineKind,
    cells: Vec<&'a CellSeries<'a>>,
    entities: Entities<'a>,
}

impl OverTime<'_> {
    fn draw(&self) -> Svg {
        let stack = PanelStack { count: self.cells.len(), top: TOP, panel_height: PANEL_HEIGHT, gap: GAP };
        let mut svg = stack.svg();
        let lines = self.cells.iter().flat_map(|cell| cell.lines(self.kind));
        let values =
            lines.flat_map(|line| line.points.iter().map(|(_, value)| value * self.kind.words().factor));
        let (_, highest) = extent(values);
        // If the page shows several runs, one run may be shorter than another.
        let (_, longest) = extent(self.cells.iter().map(|cell| cell.end()));
        for (index, (cell, span)) in self.cells.iter().zip(stack.spans()).enumerate() {
            let panel = Panel {
                top: span.top,
                bottom: span.bottom,
                x: Scale::linear((0.0, longest), X_RANGE),
                y: Scale::fitting((0.0, highest), (span.bottom, span.top)),
            };
            panel.draw_vertical_axis(&mut svg, 3, tick_label);
            let title = stack.is_last(index).then_some("time since the start, s");
            panel.draw_horizontal_axis(&mut svg, 8, title);
            self.draw_lines(&mut svg, &panel, cell);
            let style = cell.look.fill_style();
            let point = (LEFT, panel.top - 7.0);
            svg.text(SvgText::starting_at(point, "name", &cell.label).with_style(&style));
        }
        svg.vertical_axis_title(stack.whole_span(), self.kind.words().axis_title);
        svg
    }

    fn draw_lines(&self, svg: &mut Svg, panel: &Panel, cell: &CellSeries<'_>) {
        panel.open_over_time(svg, self.kind.words().quantity);
        svg.open_data_group();
        path_changes::mark(svg, panel, cell.changes);
        for line in cell.lines(self.kind) {
            let Some(entity) = self.entities.index(line) else { continue };
            let style = self.entities.line_style(entity, cell);
            let end = end_of_last_value(line, cell.end());
            let data = stepped_line(line, end, |(time, value)| {
                panel.point((time, value * self.kind.words().factor))
            });
            let series = line.entity.as_str();
            svg.path(&SvgPath { class: "state", style: &style, series, data: &data, ..SvgPath::default() });
        }
        svg.close_group();
        svg.close_group();
    }

    /// The legend's entry for an entity. The compared flow may have another style in each panel, and each
    /// style has a sample.
    fn legend_entry(&self, entity: usize) -> LegendEntry {
        let name = self.entities.names[entity];
        if !self.entities.is_compared(entity) {
            return LegendEntry::plain_line(name, NEUTRAL_STYLES[entity]);
        }
        let has_line = |cell: &&&CellSeries<'_>| cell.lines(self.kind).any(|line| line.entity == name);
        let cells = self.cells.iter().filter(has_line);
        let mut styles: Vec<String> = cells.map(|cell| self.entities.line_style(entity, cell)).collect();
        styles.dedup();
        LegendEntry { name: name.to_owned(), samples: styles.into_iter().map(Sample::line).collect() }
    }
}

/// Returns the path of a line. Each value holds until the next one, and the last value holds until `end`, in
/// s. `place` returns the place of a time in s and a value.
fn stepped_line(line: &StepLine, end: f64, place: impl Fn((f64, f64)) -> (f64, f64)) -> String {
    let last = line.points.last().map(|(_, value)| (end, *value));
    PathData::stepped_line(line.points.iter().copied().chain(last).map(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::display;
    use talkpath_measure::chart_data::CellChartData;

    /// Makes a cell for each transport and its end in s. A cell has goodputs of `flows` and the queue of
    /// `up`.
    fn cells(cells: &[(&str, f64)], flows: &[&str]) -> Vec<CellChartData> {
        let line = |entity: &str, kind: &str, end: f64| StepLine {
            entity: entity.to_owned(),
            kind: kind.to_owned(),
            points: vec![(0.0, 1e6), (end, 1e6)],
        };
        let cell = |(cell, &(label, end)): (u64, &(&str, f64))| CellChartData {
            repetition: 0,
            cell,
            label: label.to_owned(),
            flows: Vec::new(),
            lines: flows
                .iter()
                .map(|flow| line(flow, "goodput", end / 2.0))
                .chain([line("up", "queue_delay", end)])
                .collect(),
            more_lines: Default::default(),
        };
        (0..).zip(cells).map(cell).collect()
    }

    /// The chart of goodput over time as SVG, and the name and samples of each entry in its legend.
    fn goodput_chart(cells: &[CellChartData]) -> (String, Vec<(String, String)>) {
        let series = cells.iter().map(|cell| CellSeries {
            label: cell.label.clone(),
            look: display(&cell.label).into(),
            cell,
            changes: &[],
            timeline: None,
        });
        let selection = Selection { series: series.collect(), not_drawn: 0, id_prefix: "" };
        let chart = over_time(&selection, LineKind::Goodput, "call").unwrap();
        let legend = chart.legend.iter().map(|entry| (entry.name.clone(), format!("{:?}", entry.samples)));
        (chart.svg.unwrap().0, legend.collect())
    }

    /// The attributes of each path of the series `name`.
    fn paths<'s>(svg: &'s str, name: &str) -> Vec<&'s str> {
        let name = format!("data-name=\"{name}\"");
        svg.split("<path ").filter(|path| path.contains(&name)).collect()
    }

    fn last_x(path: &str) -> f64 {
        let data = path.split_once("d=\"").unwrap().1.split_once('"').unwrap().0;
        data.rsplit_once('H')
            .unwrap()
            .1
            .split(|c: char| c != '.' && !c.is_ascii_digit())
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    #[test]
    fn a_line_ends_with_its_own_run_and_the_axis_with_the_longest_run() {
        let (svg, _) = goodput_chart(&cells(&[("udp", 5.0), ("tcp", 20.0)], &["call"]));
        let ends: Vec<f64> = paths(&svg, "call").into_iter().map(last_x).collect();
        let x = Scale::linear((0.0, 20.0), X_RANGE);
        let expected = [x.at(5.0), X_RANGE.1];
        assert!(ends.iter().zip(expected).all(|(end, at)| (end - at).abs() < 0.1), "{ends:?} {expected:?}");
        assert_eq!(ends.len(), 2);
    }

    #[test]
    fn goodput_ends_with_its_last_span_and_not_with_the_drain() {
        let mut cells = cells(&[("udp", 20.0)], &["call"]);
        cells[0].lines[0].points = vec![(0.0, 1e6), (5.0, 1e6)];
        let x = Scale::linear((0.0, 20.0), X_RANGE);
        assert!((last_x(paths(&goodput_chart(&cells).0, "call")[0]) - x.at(10.0)).abs() < 0.1);
    }

    #[test]
    fn both_directions_of_the_compared_flow_have_dashes_of_their_own() {
        let (svg, legend) =
            goodput_chart(&cells(&[("udp", 5.0), ("tcp", 5.0)], &["call-down", "upload", "call-up"]));
        let style = |path: &str| path.split_once("style=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
        let styles = |name| paths(&svg, name).into_iter().map(style).collect::<Vec<_>>();
        let (down, up) = (styles("call-down"), styles("call-up"));
        assert_eq!((down.len(), up.len()), (2, 2));
        for (down, up) in down.iter().zip(&up) {
            let colour = |style: &str| style.split(';').next().unwrap().to_owned();
            assert_eq!(colour(down), colour(up), "one transport");
            assert_ne!(down, up);
        }
        for (name, samples) in legend.iter().filter(|(name, _)| name != "upload") {
            assert!(styles(name).iter().all(|style| samples.contains(style)), "{name}: {samples}");
        }
    }

    #[test]
    fn a_value_that_changes_no_more_is_drawn_until_the_end() {
        let drawn = |points: &[(f64, f64)]| {
            let (entity, kind) = ("up".to_owned(), "queue_delay".to_owned());
            stepped_line(&StepLine { entity, kind, points: points.to_vec() }, 10.0, |point| point)
        };
        assert_eq!(drawn(&[(0.0, 0.0), (1.0, 0.5)]), drawn(&[(0.0, 0.0), (1.0, 0.5), (10.0, 0.5)]));
        assert_ne!(drawn(&[(0.0, 0.0), (1.0, 0.5)]), drawn(&[(0.0, 0.0), (1.0, 0.0)]));
        assert_eq!(drawn(&[]), "");
    }
}
