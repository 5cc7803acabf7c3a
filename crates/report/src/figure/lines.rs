//! Goodput, queueing delay, cwnd and send buffer over time: one panel a cell under one another, all with one
//! vertical scale.

use talkpath_measure::chart_data::StepLine;

use super::{Entry, Figure, Sample, extent, left_out, shared, stroke};
use crate::display::Look;
use crate::path_changes;
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
    // Of runs side by side one may be shorter than another.
    let (_, end) = extent(drawn.iter().map(|cell| cell.end()));
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
        path_changes::mark(&mut svg, &panel, cell.changes);
        for line in cell.lines(kind) {
            let Some(at) = entities.iter().position(|name| *name == line.entity) else { continue };
            let style = style(at, &entities, flow, cell);
            let steps = steps(line, &panel, (holds_until(line, cell.end()), kind.scale()));
            svg.data("state", &style, &line.entity, &steps);
        }
        svg.close();
        svg.close();
        let style = format!("fill:{}", super::colour(cell.look));
        svg.text("name", &style, (LEFT, panel.top - 7.0), Anchor::Start, &cell.label);
    }
    svg.vertical_title((TOP, bottom), kind.axis());
    let entries = entities.iter().enumerate().map(|(at, name)| match is_drawn(name, flow) {
        true => Entry { name: (*name).to_owned(), samples: main_samples(&drawn, kind, at, &entities, flow) },
        false => Entry::line(name, neutral(at)),
    });
    let legend = entries.collect();
    let description = format!("{} for {}.", kind.title(), entities.join(", "));
    let caption = format!(
        "{}{}{}{}{}",
        kind.caption(),
        path_changes::short_caption(drawn.iter().map(|cell| cell.changes)),
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

    /// When the last thing that is drawn over time ends, in s; it may be in another figure.
    fn end(&self) -> f64 {
        let ends = self.cell.lines.iter().filter_map(|line| Some(holds_until(line, line.points.last()?.0)));
        extent(ends).1
    }
}

/// Until when the last value of `line` holds, in s. Goodput is the mean over equal spans, and the last span
/// ends before the drain; all else holds until the run's `end`.
fn holds_until(line: &StepLine, end: f64) -> f64 {
    match line.points.as_slice() {
        [.., (before, _), (last, _)] if line.kind == LineKind::Goodput.name() => last + (last - before),
        _ => end,
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
fn main_samples(
    drawn: &[&CellSeries<'_>],
    kind: LineKind,
    at: usize,
    entities: &[&str],
    flow: &str,
) -> Vec<Sample> {
    let with = drawn.iter().filter(|cell| cell.lines(kind).any(|line| line.entity == entities[at]));
    let mut styles: Vec<String> = with.map(|cell| style(at, entities, flow, cell)).collect();
    styles.dedup();
    styles.into_iter().map(|style| Sample::line(style, None)).collect()
}

/// The compared flow wears its transport's colour, and each of its directions or copies a dash of its own;
/// what is beside it and links are grey, distinguished by dashes.
fn style(at: usize, entities: &[&str], flow: &str, cell: &CellSeries<'_>) -> String {
    if !is_drawn(entities[at], flow) {
        return neutral(at);
    }
    let copy = entities[..at].iter().filter(|name| is_drawn(name, flow)).count();
    stroke(Look { variant: cell.look.variant + copy, ..cell.look })
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
    use crate::display::display;
    use talkpath_measure::chart_data::CellFigures;

    /// Cells of these transports, each with the queue `up` and goodputs of these flows until its end in s.
    fn cells(cells: &[(&str, f64)], flows: &[&str]) -> Vec<CellFigures> {
        let line = |entity: &str, kind: &str, end: f64| StepLine {
            entity: entity.to_owned(),
            kind: kind.to_owned(),
            points: vec![(0.0, 1e6), (end, 1e6)],
        };
        let cell = |(cell, &(label, end)): (u64, &(&str, f64))| CellFigures {
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

    /// Their goodput over time as SVG, and the dashes of each legend's samples.
    fn goodput(cells: &[CellFigures]) -> (String, Vec<(String, String)>) {
        let series = cells.iter().map(|cell| CellSeries {
            label: cell.label.clone(),
            look: display(&cell.label).into(),
            cell,
            changes: &[],
        });
        let selection = Selection { shown: series.collect(), left_out: 0, id: "" };
        let figure = over_time(&selection, LineKind::Goodput, "call").unwrap();
        let legend = figure.legend.iter().map(|it| (it.name.clone(), format!("{:?}", it.samples)));
        (figure.svg.unwrap().0, legend.collect())
    }

    /// The paths of `name`, each with its attributes.
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
    fn a_line_ends_with_its_own_run_and_the_axis_with_the_longest() {
        let (svg, _) = goodput(&cells(&[("udp", 5.0), ("tcp", 20.0)], &["call"]));
        let ends: Vec<f64> = paths(&svg, "call").into_iter().map(last_x).collect();
        let x = Scale::linear((0.0, 20.0), (LEFT, WIDTH - RIGHT));
        let expected = [x.at(5.0), WIDTH - RIGHT];
        assert!(ends.iter().zip(expected).all(|(end, at)| (end - at).abs() < 0.1), "{ends:?} {expected:?}");
        assert_eq!(ends.len(), 2);
    }

    #[test]
    fn goodput_ends_with_its_last_span_and_not_with_the_drain() {
        let mut cells = cells(&[("udp", 20.0)], &["call"]);
        cells[0].lines[0].points = vec![(0.0, 1e6), (5.0, 1e6)];
        let x = Scale::linear((0.0, 20.0), (LEFT, WIDTH - RIGHT));
        assert!((last_x(paths(&goodput(&cells).0, "call")[0]) - x.at(10.0)).abs() < 0.1);
    }

    #[test]
    fn both_directions_of_the_compared_flow_have_dashes_of_their_own() {
        let (svg, legend) =
            goodput(&cells(&[("udp", 5.0), ("tcp", 5.0)], &["call-down", "upload", "call-up"]));
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
