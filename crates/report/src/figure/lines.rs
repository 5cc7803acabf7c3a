//! Goodput, queueing delay, cwnd and send buffer over time: one panel a cell under one another, all with one
//! vertical scale.

use talkpath_measure::figures::StepLine;

use super::{Entry, Figure, Sample, extent, left_out, shared, stroke};
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH, stack};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Anchor, PathData, Svg};
use crate::select::{CellSeries, Selection, is_drawn};

const TOP: f64 = 24.0;
const HEIGHT: f64 = 100.0;
const GAP: f64 = 30.0;
/// More lines than this in a panel cannot be followed; chosen.
const MAX_LINES: usize = 4;

/// What is drawn over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Goodput,
    Queue,
    Cwnd,
    SendBuffer,
}

impl LineKind {
    /// The kind's name in a [`StepLine`].
    fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Queue => "queue_delay",
            Self::Cwnd => "cwnd",
            Self::SendBuffer => "send_buffer",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Goodput => "Goodput over time",
            Self::Queue => "Queues over time",
            Self::Cwnd => "Congestion windows over time",
            Self::SendBuffer => "Send buffers over time",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Goodput => "goodput, Mb/s",
            Self::Queue => "delay in the queue, ms",
            Self::Cwnd => "cwnd, packets",
            Self::SendBuffer => "send buffer, kB",
        }
    }

    /// Name and unit of a value under the pointer.
    fn reading(self) -> (&'static str, &'static str) {
        match self {
            Self::Goodput => ("goodput", "Mb/s"),
            Self::Queue => ("queue", "ms"),
            Self::Cwnd => ("cwnd", "packets"),
            Self::SendBuffer => ("send buffer", "kB"),
        }
    }

    fn scale(self) -> f64 {
        match self {
            Self::Goodput => 1e-6,
            Self::Queue | Self::Cwnd => 1.0,
            Self::SendBuffer => 1e-3,
        }
    }

    fn caption(self) -> &'static str {
        match self {
            Self::Goodput => {
                "Payload that each flow delivered to the application, as the mean over each hundredth of the time. A message \
                 that fills more than a packet counts evenly over the time since the one before it."
            }
            Self::Queue => {
                "How long each packet waited at a link when it went into service. Where flows have queues of their own, the \
                            line goes between those of a call and those of a transfer."
            }
            Self::Cwnd => {
                "How many packets each sender may have in flight; transports without a congestion window have no \
                           line."
            }
            Self::SendBuffer => {
                "Bytes that the application wrote and the far end has not acknowledged (or that have not \
                                 left yet)."
            }
        }
    }
}

/// The figure; `None` if no cell has such lines.
pub(crate) fn over_time(selection: &Selection<CellSeries<'_>>, kind: LineKind, flow: &str) -> Option<Figure> {
    let of =
        |cell: &CellSeries<'_>| cell.cell.lines.iter().filter(|line| line.kind == kind.name()).count() > 0;
    let drawn: Vec<&CellSeries<'_>> = selection.shown.iter().filter(|cell| of(cell)).collect();
    if drawn.is_empty() {
        return None;
    }
    let (entities, more) = entities(&drawn, kind);
    let places = stack(drawn.len(), TOP, HEIGHT, GAP);
    let bottom = places.last().map_or(TOP, |place| place.1);
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let points = || drawn.iter().flat_map(|cell| cell.lines(kind)).flat_map(|line| line.points.iter());
    // All that is drawn over time ends with the run, whose last change may be another figure's.
    let changes = drawn.iter().flat_map(|cell| &cell.cell.lines).flat_map(|line| line.points.iter());
    let (_, end) = extent(changes.map(|change| change.0));
    let (_, highest) = extent(points().map(|point| point.1 * kind.scale()));
    for (index, (cell, (top, bottom))) in drawn.iter().zip(&places).enumerate() {
        let panel = Panel {
            top: *top,
            bottom: *bottom,
            x: Scale::linear((0.0, end), (LEFT, WIDTH - RIGHT)),
            y: Scale::fitting((0.0, highest), (*bottom, *top)),
        };
        panel.vertical_axis(&mut svg, 3, tick_label);
        panel.horizontal_axis(&mut svg, 8, (index + 1 == drawn.len()).then_some("time since the start, s"));
        panel.open(&mut svg, "time", ("time", "s"), kind.reading());
        svg.open_data();
        for line in cell.lines(kind) {
            let Some(at) = entities.iter().position(|name| *name == line.entity) else { continue };
            let style = style(at, &line.entity, flow, cell);
            let steps = steps(line, &panel, (end, kind.scale()));
            svg.data("state", &style, &line.entity, &steps);
        }
        svg.close();
        svg.close();
        let style = format!("fill:{}", super::colour(cell.look));
        svg.text("name", &style, (LEFT, panel.top - 7.0), Anchor::Start, &cell.label);
    }
    svg.vertical_title((TOP, bottom), kind.axis());
    let entries = entities.iter().enumerate().map(|(at, name)| match is_drawn(name, flow) {
        true => Entry { name: (*name).to_owned(), samples: main_samples(&drawn, kind, name) },
        false => Entry::line(name, neutral(at)),
    });
    let legend = entries.collect();
    let description = format!("{} for {}.", kind.title(), entities.join(", "));
    let caption = format!(
        "{}{}{}{}",
        kind.caption(),
        shared(drawn.len()),
        left_out(more, "lines of each panel"),
        left_out(selection.left_out, "panels")
    );
    let id = format!("{}{}", selection.id, kind.name());
    let svg = svg.finish(&id, kind.title(), &description);
    Some(Figure { id, title: kind.title().to_owned(), legend, svg: Some(svg), caption })
}

impl<'a> CellSeries<'a> {
    fn lines(&self, kind: LineKind) -> impl Iterator<Item = &'a StepLine> + use<'a> {
        self.cell.lines.iter().filter(move |line| line.kind == kind.name())
    }
}

/// The flows or links that are drawn, in the order of their first appearance, and how many are not.
fn entities<'a>(drawn: &[&CellSeries<'a>], kind: LineKind) -> (Vec<&'a str>, usize) {
    let mut names: Vec<&str> = Vec::new();
    for line in drawn.iter().flat_map(|cell| cell.lines(kind)) {
        if !names.contains(&line.entity.as_str()) {
            names.push(&line.entity);
        }
    }
    // Some lines are counted and not there; the cells of a sweep mostly have the same.
    let counted = drawn.iter().filter_map(|cell| cell.cell.more_lines.get(kind.name()));
    let counted = usize::try_from(counted.max().copied().unwrap_or(0)).unwrap_or(usize::MAX);
    let more = names.len().saturating_sub(MAX_LINES).saturating_add(counted);
    names.truncate(MAX_LINES);
    (names, more)
}

/// The compared flow's line in each panel that has one, each style once.
fn main_samples(drawn: &[&CellSeries<'_>], kind: LineKind, entity: &str) -> Vec<Sample> {
    let with = drawn.iter().filter(|cell| cell.lines(kind).any(|line| line.entity == entity));
    let mut styles: Vec<String> = with.map(|cell| stroke(cell.look)).collect();
    styles.dedup();
    styles.into_iter().map(|style| Sample::line(style, None)).collect()
}

/// The compared flow wears its transport's colour; what is beside it and links are grey, distinguished by
/// dashes.
fn style(at: usize, entity: &str, flow: &str, cell: &CellSeries<'_>) -> String {
    if is_drawn(entity, flow) { stroke(cell.look) } else { neutral(at) }
}

fn neutral(at: usize) -> String {
    let (colour, dash) = [("--ink", "none"), ("--soft", "5 3"), ("--ink", "2 3"), ("--soft", "none")][at % 4];
    format!("stroke:var({colour});stroke-dasharray:{dash}")
}

/// Each value holds until the next change, the last one until the `end`.
fn steps(line: &StepLine, panel: &Panel, (end, scale): (f64, f64)) -> String {
    let mut data = PathData::default();
    let last = line.points.last().map(|&(_, value)| (end, value));
    for (index, (time, value)) in line.points.iter().copied().chain(last).enumerate() {
        let (x, y) = panel.at((time, value * scale));
        if index == 0 { data.move_to(x, y) } else { data.step_to(x, y) }
    }
    data.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_changes_no_more_is_drawn_until_the_end() {
        let panel = Panel {
            top: 0.0,
            bottom: 100.0,
            x: Scale::linear((0.0, 10.0), (0.0, 100.0)),
            y: Scale::linear((0.0, 1.0), (100.0, 0.0)),
        };
        let line = |points: &[(f64, f64)]| StepLine {
            entity: "up".to_owned(),
            kind: "queue_delay".to_owned(),
            points: points.to_vec(),
        };
        let drawn = |points| steps(&line(points), &panel, (10.0, 1.0));
        // A change at 1 s, held until 10 s, is the line to there.
        assert_eq!(drawn(&[(0.0, 0.0), (1.0, 0.5)]), drawn(&[(0.0, 0.0), (1.0, 0.5), (10.0, 0.5)]));
        assert_ne!(drawn(&[(0.0, 0.0), (1.0, 0.5)]), drawn(&[(0.0, 0.0), (1.0, 0.0)]));
        assert_eq!(drawn(&[]), "");
    }
}
