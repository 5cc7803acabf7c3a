//! The lines of a sweep: the judged figure of each transport over one swept key, with the confidence interval
//! as a band.
//!
//! One axis of the sweep is the horizontal axis of the chart. Each combination of values on the other axes
//! has a panel.

use talkpath_measure::summary::JudgedBy;

use super::legend::{LegendEntry, Sample};
use super::shared::{Chart, extent, id_part};
use crate::display::Look;
use crate::number::{count, list};
use crate::plot::marker::{marker_outline, ring_outline};
use crate::plot::panel::{LEFT, LIMIT_STYLE, Panel, PanelStack, RIGHT, SweptValue, WIDTH};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Point, Svg, SvgName, SvgPath, SvgText, VerticalSpan, coordinate};
use crate::sweep::{Axis, Combination, SeriesResult, Sweep};
use crate::verdict::figure_style;

const TOP: f64 = 26.0;
/// The height of the only panel.
const SINGLE_HEIGHT: f64 = 260.0;
/// The height of each of several panels.
const STACKED_HEIGHT: f64 = 130.0;
const GAP: f64 = 34.0;
/// The most panels under one another. We chose 6 because with more panels the first one is out of sight when
/// the last one is read.
const MAX_PANELS: usize = 6;
/// If the largest swept value is more than 12 times the smallest value, the horizontal axis is logarithmic.
/// We chose 12 because values that far apart are mostly powers of two or ten.
const LOG_RATIO: f64 = 12.0;
/// The space between the sides of a panel and the outermost points, so that markers do not touch the sides.
const POINT_MARGIN: f64 = 12.0;
/// The least distance of two labels below the horizontal axis.
const LABEL_DISTANCE: f64 = 46.0;
/// The width of a letter of these labels, rounded up.
const LABEL_LETTER_WIDTH: f64 = 8.0;

pub(super) struct ChartAxes {
    /// The index of the horizontal axis.
    pub x: usize,
    /// The indices of the other axes.
    pub others: Vec<usize>,
}

impl ChartAxes {
    /// Chooses the axis with the most values as the horizontal axis. Numbers are preferred to words. Returns
    /// `None` if the sweep has no axis.
    pub(super) fn choose(sweep: &Sweep<'_>) -> Option<Self> {
        let rank = |&axis: &usize| (sweep.axes[axis].is_numeric(), sweep.axes[axis].values.len());
        // `max_by_key` takes the last of equal axes. The loop runs backwards, so this is the first axis of
        // the sweep.
        let x = (0..sweep.axes.len()).rev().max_by_key(rank)?;
        Some(Self { x, others: (0..sweep.axes.len()).filter(|axis| *axis != x).collect() })
    }
}

/// The combinations that a panel shows.
struct PanelContent<'a> {
    /// The values that all combinations have in common. Empty if the chart has one axis.
    name: String,
    combinations: Vec<&'a Combination<'a>>,
}

/// Draws the lines of a sweep. Returns `None` if no key but the transport is swept.
pub(crate) fn sweep_lines(sweep: &Sweep<'_>) -> Option<Chart> {
    let axes = ChartAxes::choose(sweep)?;
    let groups = sorted_groups(sweep, &axes.others);
    let drawn = evenly_spread(groups.len(), MAX_PANELS);
    let not_drawn_note = describe_not_drawn(sweep, &axes.others, drawn.len(), groups.len());
    let panels: Vec<PanelContent<'_>> = drawn
        .into_iter()
        .map(|index| PanelContent::new(sweep, &axes.others, groups[index].clone()))
        .collect();
    let chart = SweepChart { sweep, x_axis: axes.x, panels };
    let drawing = chart.draw();
    let figure = match sweep.judged_by {
        JudgedBy::Mos => "MOS",
        JudgedBy::InTime => "Share in time",
        JudgedBy::Heard => "Share heard",
        JudgedBy::Goodput => "Goodput",
    };
    let key = &sweep.axes[axes.x].key;
    let transports: Vec<String> = sweep.series.iter().map(|transport| transport.label.clone()).collect();
    let title = format!("{figure} of {} over {key}", sweep.flow);
    let description = format!("{figure} over {key} for {}.", list(&transports));
    let id = format!("sweep-{}", id_part(sweep.flow));
    let band_note =
        if drawing.has_bands { " The band is the 95 % interval of the mean (Student's t)." } else { "" };
    Some(Chart {
        legend: legend(sweep, drawing.has_rings),
        svg: Some(drawing.svg.finish(SvgName { id: &id, title: &title, description: &description })),
        caption: format!("Means over the repetitions.{band_note}{not_drawn_note}{}", sweep.not_placed_note()),
        id,
        title,
    })
}

/// Groups the combinations by their values on `axes`, in the order of these values.
fn sorted_groups<'s>(sweep: &'s Sweep<'_>, axes: &[usize]) -> Vec<Vec<&'s Combination<'s>>> {
    let mut groups = sweep.group_by_values(axes);
    groups.sort_by_key(|group| group[0].values_on(axes));
    groups
}

/// Chooses `max` of `count` indices, evenly spread, with the first and the last one. Chooses all if they are
/// few.
fn evenly_spread(count: usize, max: usize) -> Vec<usize> {
    if count <= max {
        return (0..count).collect();
    }
    (0..max).map(|step| step * (count - 1) / (max - 1)).collect()
}

/// The sentence of the caption about panels that have no room. Empty if all panels are drawn.
fn describe_not_drawn(sweep: &Sweep<'_>, other_axes: &[usize], drawn: usize, all: usize) -> String {
    if drawn == all {
        return String::new();
    }
    let keys: Vec<String> = other_axes.iter().map(|&axis| sweep.axes[axis].key.clone()).collect();
    format!(
        " Drawn at {} of the {} values of {}; the other {} {}.",
        count(drawn as u64),
        count(all as u64),
        list(&keys),
        count((all - drawn) as u64),
        sweep.place_of_not_drawn()
    )
}

fn legend(sweep: &Sweep<'_>, has_rings: bool) -> Vec<LegendEntry> {
    let transports = sweep.series.iter().zip(&sweep.looks);
    let mut entries: Vec<LegendEntry> =
        transports.map(|(transport, look)| LegendEntry::marked_line(&transport.label, *look)).collect();
    // A goodput has a floor of zero, which says nothing.
    if let Some(floor) = sweep.floor().filter(|floor| *floor > 0.0) {
        let name = format!("usable from {}", tick_label(floor * axis_factor(sweep.judged_by)));
        entries.push(LegendEntry::plain_line(&name, LIMIT_STYLE));
    }
    if has_rings {
        entries.push(LegendEntry::new("barred by gaps", Sample::ring()));
    }
    entries
}

impl<'a> PanelContent<'a> {
    fn new(sweep: &Sweep<'_>, other_axes: &[usize], combinations: Vec<&'a Combination<'a>>) -> Self {
        let first = combinations.first();
        let name = first.map(|first| sweep.values_text(first, other_axes.iter().copied(), Axis::label));
        Self { name: name.unwrap_or_default(), combinations }
    }
}

/// The panels of a sweep's lines.
struct SweepChart<'a> {
    sweep: &'a Sweep<'a>,
    /// The index of the horizontal axis.
    x_axis: usize,
    panels: Vec<PanelContent<'a>>,
}

struct Drawing {
    svg: Svg,
    has_bands: bool,
    has_rings: bool,
}

impl SweepChart<'_> {
    fn draw(&self) -> Drawing {
        let is_stacked = self.panels.len() > 1;
        let stack = PanelStack {
            count: self.panels.len(),
            top: TOP,
            panel_height: if is_stacked { STACKED_HEIGHT } else { SINGLE_HEIGHT },
            gap: GAP,
        };
        let tick_count = if is_stacked { 4 } else { 6 };
        let judged_by = self.sweep.judged_by;
        let axis = self.axis();
        let mut drawing = Drawing { svg: stack.svg(), has_bands: false, has_rings: false };
        for (index, (content, span)) in self.panels.iter().zip(stack.spans()).enumerate() {
            let svg = &mut drawing.svg;
            let panel = self.panel(span);
            panel.open_over_sweep(svg, &axis.key, axis_title(judged_by), &swept_values(axis));
            panel.draw_vertical_axis(svg, tick_count, tick_label);
            let title = stack.is_last(index).then(|| axis.title_with_unit());
            draw_swept_axis(svg, &panel, axis, title.as_deref());
            if let Some(floor) = self.sweep.floor() {
                panel.draw_horizontal_limit(svg, floor * axis_factor(judged_by));
            }
            if !content.name.is_empty() {
                svg.text(SvgText::starting_at((LEFT, panel.top - 8.0), "name", &content.name));
            }
            svg.open_data_group();
            for line in self.lines(content, &panel) {
                line.draw(&mut drawing.svg);
                drawing.has_bands |= line.has_band();
                drawing.has_rings |= line.has_rings();
            }
            drawing.svg.close_group();
            drawing.svg.close_group();
        }
        drawing.svg.vertical_axis_title(stack.whole_span(), axis_title(judged_by));
        drawing
    }

    fn axis(&self) -> &Axis {
        &self.sweep.axes[self.x_axis]
    }

    fn panel(&self, span: VerticalSpan) -> Panel {
        Panel {
            top: span.top,
            bottom: span.bottom,
            x: horizontal_scale(self.axis()),
            y: vertical_scale(self.sweep, (span.bottom, span.top)),
        }
    }

    fn lines(&self, content: &PanelContent<'_>, panel: &Panel) -> Vec<TransportLine<'_>> {
        let series = self.sweep.series.iter().zip(&self.sweep.looks).enumerate();
        let lines = series.map(|(index, (transport, look))| TransportLine {
            name: &transport.label,
            look: *look,
            points: self.points(content, panel, index),
        });
        lines.collect()
    }

    /// The points of a series from the left to the right.
    fn points(&self, content: &PanelContent<'_>, panel: &Panel, series: usize) -> Vec<LinePoint> {
        let factor = axis_factor(self.sweep.judged_by);
        let mut points = Vec::new();
        for combination in &content.combinations {
            let Some(result) = &combination.results[series] else { continue };
            let value_index = combination.value_indices[self.x_axis];
            let position = self.axis().position(value_index);
            let place = |figure: f64| panel.point((position, figure * factor));
            points.push(LinePoint::new(result, value_index, place));
        }
        // Two texts may be one value, for example 1 s and 1000 ms. Their points have one x.
        points.sort_by(|a, b| a.mean.0.total_cmp(&b.mean.0).then(a.value_index.cmp(&b.value_index)));
        points
    }
}

struct TransportLine<'a> {
    name: &'a str,
    look: Look,
    points: Vec<LinePoint>,
}

/// A point of a line, in SVG units.
struct LinePoint {
    value_index: usize,
    mean: Point,
    interval: Option<IntervalEnds>,
    /// Whether the figure reaches the floor and gaps bar it nevertheless.
    is_barred: bool,
}

/// The ends of a confidence interval, in SVG units.
#[derive(Clone, Copy)]
struct IntervalEnds {
    low: Point,
    high: Point,
}

impl LinePoint {
    /// `place` returns the place of a figure.
    fn new(result: &SeriesResult, value_index: usize, place: impl Fn(f64) -> Point) -> Self {
        let interval =
            result.spread.ci95.map(|(low, high)| IntervalEnds { low: place(low), high: place(high) });
        Self { value_index, mean: place(result.spread.mean), interval, is_barred: result.usable.is_barred() }
    }
}

impl TransportLine<'_> {
    fn draw(&self, svg: &mut Svg) {
        if self.points.is_empty() {
            return;
        }
        let fill = self.look.fill_style();
        if self.has_band() {
            self.draw_path(svg, "band", &fill, &format!("{}Z", polyline(self.band_corners())));
        }
        let line = polyline(self.points.iter().map(|point| point.mean));
        self.draw_path(svg, "series", &self.look.line_style(), &line);
        let markers = self.points.iter().map(|point| marker_outline(self.look.marker(), point.mean));
        self.draw_path(svg, "mark", &fill, &markers.collect::<String>());
        if self.has_rings() {
            let barred = self.points.iter().filter(|point| point.is_barred);
            let rings: String = barred.map(|point| ring_outline(point.mean)).collect();
            self.draw_path(svg, "lost", "", &rings);
        }
    }

    fn draw_path(&self, svg: &mut Svg, class: &str, style: &str, data: &str) {
        svg.path(&SvgPath { class, style, series: self.name, data, ..SvgPath::default() });
    }

    /// The corners of the band: along its upper side, and back along its lower side.
    fn band_corners(&self) -> impl Iterator<Item = Point> {
        let intervals = self.points.iter().filter_map(|point| point.interval);
        let upper = intervals.clone().map(|interval| interval.high);
        upper.chain(intervals.rev().map(|interval| interval.low))
    }

    /// Whether two or more points have an interval. One interval makes no band.
    fn has_band(&self) -> bool {
        self.points.iter().filter(|point| point.interval.is_some()).count() > 1
    }

    fn has_rings(&self) -> bool {
        self.points.iter().any(|point| point.is_barred)
    }
}

pub(super) fn polyline(points: impl Iterator<Item = Point>) -> String {
    let corners: Vec<String> = points.map(|(x, y)| format!("{} {}", coordinate(x), coordinate(y))).collect();
    format!("M{}", corners.join("L"))
}

pub(super) fn swept_values(axis: &Axis) -> Vec<SweptValue> {
    let indices = 0..axis.values.len();
    indices.map(|index| SweptValue { value: axis.position(index), text: axis.label(index) }).collect()
}

pub(super) fn horizontal_scale(axis: &Axis) -> Scale {
    let range = (LEFT + POINT_MARGIN, WIDTH - RIGHT - POINT_MARGIN);
    let (low, high) = extent((0..axis.values.len()).map(|index| axis.position(index)));
    if axis.is_numeric() && low > 0.0 && high / low > LOG_RATIO {
        Scale::log((low, high), range)
    } else {
        Scale::linear((low, high), range)
    }
}

fn vertical_scale(sweep: &Sweep<'_>, range: (f64, f64)) -> Scale {
    match sweep.judged_by {
        JudgedBy::Mos => Scale::linear((1.0, 4.5), range),
        JudgedBy::InTime | JudgedBy::Heard => Scale::linear((0.0, 100.0), range),
        JudgedBy::Goodput => {
            let results =
                sweep.combinations.iter().flat_map(|combination| combination.results.iter().flatten());
            let highest = results.map(|result| {
                let spread = &result.spread;
                spread.ci95.map_or(spread.mean, |(_, high)| high) * axis_factor(sweep.judged_by)
            });
            Scale::fitting((0.0, extent(highest).1), range)
        }
    }
}

/// Draws the horizontal axis with a tick at each swept value. Labels that would overlap are left out. Without
/// a title the axis has no labels.
pub(super) fn draw_swept_axis(svg: &mut Svg, panel: &Panel, axis: &Axis, title: Option<&str>) {
    panel.draw_horizontal_line(svg, panel.bottom);
    let mut ticks: Vec<(f64, usize)> =
        (0..axis.values.len()).map(|index| (panel.x.at(axis.position(index)), index)).collect();
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut next_label_x = f64::NEG_INFINITY;
    for (x, index) in ticks {
        svg.line("axis", (x, panel.bottom), (x, panel.bottom + 4.0));
        if title.is_some() && x >= next_label_x {
            let label = if axis.is_numeric() { tick_label(axis.position(index)) } else { axis.label(index) };
            next_label_x = x + LABEL_DISTANCE.max(LABEL_LETTER_WIDTH * label.chars().count() as f64);
            svg.text(SvgText::centred_at((x, panel.bottom + 18.0), "tick", &label));
        }
    }
    if let Some(title) = title {
        panel.draw_horizontal_title(svg, title);
    }
}

fn axis_factor(judged_by: JudgedBy) -> f64 {
    figure_style(judged_by).scale.factor
}

pub(super) fn axis_title(judged_by: JudgedBy) -> &'static str {
    match judged_by {
        JudgedBy::Mos => "MOS",
        JudgedBy::InTime => "in time, %",
        JudgedBy::Heard => "heard, %",
        JudgedBy::Goodput => "goodput, Mb/s",
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::Summary;

    use super::*;
    use crate::fixture;
    use crate::verdict::FlowCells;

    #[test]
    fn a_point_above_the_floor_that_gaps_bar_has_a_ring_and_the_legend_says_so() {
        let (mut summary, _) = fixture::sweep(3);
        for run in &mut summary.runs {
            run.flows.get_mut("call").unwrap().call.as_mut().unwrap().mos = Some(4.0);
        }
        let rings_and_legend = |summary: &Summary| {
            let flows = FlowCells::all(summary);
            let judged = flows[0].judge();
            let chart = sweep_lines(&Sweep::new(&judged).unwrap()).unwrap();
            let names: Vec<String> = chart.legend.iter().map(|entry| entry.name.clone()).collect();
            (
                chart.svg.unwrap().0.matches("a6.5 6.5 0 1 0 13 0").count(),
                names.contains(&"barred by gaps".to_owned()),
            )
        };
        assert_eq!(rings_and_legend(&summary), (0, false));
        // Gaps bar one transport in two combinations. A score below the floor needs no ring.
        let calls =
            summary.runs.iter_mut().map(|run| run.flows.get_mut("call").unwrap().call.as_mut().unwrap());
        for (number, call) in calls.enumerate() {
            call.longest_gap_ms = [1, 4, 7].contains(&number).then_some(1_200.0);
            if number == 7 {
                call.mos = Some(2.0);
            }
        }
        assert_eq!(rings_and_legend(&summary), (2, true));
    }
}
