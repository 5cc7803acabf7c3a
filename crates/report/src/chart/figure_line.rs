//! The line of a figure over the only swept key, such as a figure of the user's program.

use talkpath_measure::summary::Spread;

use super::shared::{Chart, extent};
use super::sweep::{draw_swept_axis, horizontal_scale, polyline, swept_values};
use crate::display::Marker;
use crate::plot::marker::marker_outline;
use crate::plot::panel::{BOTTOM, Panel, WIDTH};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Point, Svg, SvgName, SvgPath};
use crate::sweep::Axis;

const TOP: f64 = 26.0;
const HEIGHT: f64 = 220.0;
const LINE_STYLE: &str = "stroke:var(--accent)";
const FILL_STYLE: &str = "fill:var(--accent)";

/// A figure over a swept key.
pub(crate) struct FigureLine<'a> {
    pub id: String,
    pub title: String,
    pub caption: String,
    pub axis: &'a Axis,
    /// The index of each value on the axis, with the spread of the figure over the repetitions there.
    pub values: Vec<(usize, &'a Spread)>,
}

/// Draws the means and their 95 % intervals. Returns `None` if the figure is known nowhere.
pub(crate) fn figure_line(figure: FigureLine<'_>) -> Option<Chart> {
    let FigureLine { id, title, caption, axis, mut values } = figure;
    if values.is_empty() {
        return None;
    }
    values.sort_by(|(a, _), (b, _)| axis.position(*a).total_cmp(&axis.position(*b)));
    let panel = panel(axis, &values);
    let place = |index: usize, figure: f64| panel.point((axis.position(index), figure));
    let means: Vec<Point> = values.iter().map(|(index, spread)| place(*index, spread.mean)).collect();
    let intervals = values.iter().filter_map(|(index, spread)| Some((*index, spread.ci95?)));
    let intervals: Vec<(Point, Point)> =
        intervals.map(|(index, (low, high))| (place(index, low), place(index, high))).collect();
    let mut svg = Svg::new(WIDTH, panel.bottom + BOTTOM);
    panel.open_over_sweep(&mut svg, &axis.key, &title, &swept_values(axis));
    panel.draw_vertical_axis(&mut svg, 6, tick_label);
    draw_swept_axis(&mut svg, &panel, axis, Some(&axis.title_with_unit()));
    svg.open_data_group();
    let mut draw = |class: &str, style: &str, data: &str| {
        svg.path(&SvgPath { class, style, series: &title, data, ..SvgPath::default() });
    };
    // One interval makes no band.
    if intervals.len() > 1 {
        let upper = intervals.iter().map(|(_, high)| *high);
        let lower = intervals.iter().rev().map(|(low, _)| *low);
        draw("band", FILL_STYLE, &format!("{}Z", polyline(upper.chain(lower))));
    }
    draw("series", LINE_STYLE, &polyline(means.iter().copied()));
    let markers = means.iter().map(|mean| marker_outline(Marker::Circle, *mean));
    draw("mark", FILL_STYLE, &markers.collect::<String>());
    svg.close_group();
    svg.close_group();
    let description = format!("A line of means over {}.", axis.key);
    let svg = svg.finish(SvgName { id: &id, title: &title, description: &description });
    Some(Chart { legend: Vec::new(), svg: Some(svg), caption, id, title })
}

/// The panel, whose vertical axis begins with 0 unless a figure is less.
fn panel(axis: &Axis, values: &[(usize, &Spread)]) -> Panel {
    let ends = values.iter().flat_map(|(_, spread)| {
        let (low, high) = spread.ci95.unwrap_or((spread.mean, spread.mean));
        [low, high]
    });
    let bottom = TOP + HEIGHT;
    Panel {
        top: TOP,
        bottom,
        x: horizontal_scale(axis),
        y: Scale::fitting(extent(ends.chain([0.0])), (bottom, TOP)),
    }
}
