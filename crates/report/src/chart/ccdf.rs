//! The chart of the complementary distribution (CCDF) of delay: for each delay, the share of the sent
//! messages that came later or never.
//!
//! ```text
//! 100 % ──┐            A line falls from 100 %. The vertical scale is logarithmic, so that the slowest one
//! in a 10 %   └──┐         hundred can be seen. If messages are missing, the line stops at their share, and
//! runs 1 %      └─────    on to the right side.
//!        10   20  ms
//! ```

use super::delay::axis_title;
use super::legend::LegendEntry;
use super::shared::{Chart, extent, not_drawn_note, shared_limit};
use crate::metric::DelayKind;
use crate::plot::label::place_names;
use crate::plot::marker::marker_outline;
use crate::plot::panel::{BOTTOM, Panel, Quantity, RIGHT, WIDTH, X_RANGE};
use crate::plot::scale::{Scale, round_down, tick_label};
use crate::plot::svg::{PathData, Point, Svg, SvgName, SvgPath, SvgText};
use crate::select::{FlowSeries, Selection};

const TOP: f64 = 22.0;
const HEIGHT: f64 = 320.0;
/// The shares at which a line has a marker: the 50th, the 90th and the 99th percentile of the sent messages.
const MARKED_SHARES: [f64; 3] = [0.5, 0.1, 0.01];

/// Draws the distribution of the delays of `selection`. Returns `None` if no series has a delay.
pub(crate) fn ccdf(selection: &Selection<FlowSeries<'_>>, kind: DelayKind) -> Option<Chart> {
    let has_delays = |series: &&FlowSeries<'_>| !series.flow.ccdf.is_empty();
    let series: Vec<&FlowSeries<'_>> = selection.series.iter().filter(has_delays).collect();
    if series.is_empty() {
        return None;
    }
    let names: Vec<&str> = series.iter().map(|series| series.label.as_str()).collect();
    let description = format!("Complementary distribution of delay, logarithmic, for {}.", names.join(", "));
    let id = format!("{}ccdf-{}", selection.id_prefix, kind.abbreviation());
    let name = SvgName { id: &id, title: "Delay distribution", description: &description };
    let title = match kind {
        DelayKind::RoundTrip => "Round trip delay: how many messages came later",
        DelayKind::OneWay => "One-way delay: how many messages came later",
    };
    Some(Chart {
        title: title.to_owned(),
        legend: series.iter().map(|series| LegendEntry::marked_line(&series.label, series.look)).collect(),
        svg: Some(draw(&series, &names, kind).finish(name)),
        caption: format!(
            "For each delay, the share of sent messages that came later than that or never. Further left and lower is \
             better. The scale is logarithmic, so that the slowest one in a hundred can be seen; where a line stops falling, \
             the rest is missing. Markers stand where a half, a tenth and a hundredth are still to come. Delay counts from the moment a message was \
             due, so waiting in the sender counts.{}",
            not_drawn_note(selection.not_drawn, "lines")
        ),
        id,
    })
}

fn draw(series: &[&FlowSeries<'_>], names: &[&str], kind: DelayKind) -> Svg {
    let panel = panel(series);
    let mut svg = Svg::new(WIDTH, panel.bottom + BOTTOM);
    panel.draw_vertical_axis(&mut svg, 5, |share| format!("{} %", tick_label(share * 100.0)));
    panel.draw_horizontal_axis(&mut svg, 9, Some(axis_title(kind)));
    svg.vertical_axis_title(panel.span(), "share of messages later than that");
    if let Some(limit) = shared_limit(series) {
        panel.draw_vertical_limit(&mut svg, limit, &format!("{} ms", tick_label(limit)));
    }
    let lines: Vec<Vec<Point>> = series.iter().map(|series| corners(series, &panel)).collect();
    let delay = Quantity { name: kind.name(), unit: "ms" };
    panel.open_distribution(&mut svg, delay, Quantity { name: "later than that", unit: "%" });
    svg.open_data_group();
    for (series, line) in series.iter().zip(&lines) {
        draw_line(&mut svg, series, line);
        draw_markers(&mut svg, series, &panel);
    }
    svg.close_group();
    svg.close_group();
    for name in place_names(&lines, names, &panel) {
        let style = series[name.line].look.fill_style();
        svg.text(SvgText::starting_at(name.start, "name halo", names[name.line]).with_style(&style));
    }
    svg
}

fn panel(series: &[&FlowSeries<'_>]) -> Panel {
    let points = || series.iter().flat_map(|series| series.flow.ccdf.iter());
    // The axis always reaches down to a share of 10 %.
    let lowest = points().map(|(_, share)| *share).filter(|share| *share > 0.0).fold(0.1, f64::min);
    let bottom = TOP + HEIGHT;
    Panel {
        top: TOP,
        bottom,
        x: Scale::fitting(extent(points().map(|(delay, _)| *delay)), X_RANGE),
        y: Scale::log((round_down(lowest), 1.0), (bottom, TOP)),
    }
}

/// Returns the corners of a line in SVG units. The line begins with 100 % at the left side. A last share of
/// zero lies at the bottom, because the logarithmic scale has no zero.
fn corners(series: &FlowSeries<'_>, panel: &Panel) -> Vec<Point> {
    let ccdf = &series.flow.ccdf;
    let mut corners = Vec::new();
    if let Some((smallest_delay, _)) = ccdf.first() {
        corners.push(panel.point((panel.x.domain.0, 1.0)));
        corners.push(panel.point((*smallest_delay, 1.0)));
    }
    corners.extend(ccdf.iter().map(|point| panel.point(*point)));
    if let Some((_, share)) = ccdf.last()
        && *share > 0.0
    {
        corners.push((WIDTH - RIGHT, panel.y.at(*share)));
    }
    corners
}

fn draw_line(svg: &mut Svg, series: &FlowSeries<'_>, corners: &[Point]) {
    svg.path(&SvgPath {
        class: "series",
        style: &series.look.line_style(),
        series: &series.label,
        ends_at_zero: matches!(series.flow.ccdf.last(), Some((_, 0.0))),
        data: &PathData::stepped_line(corners.iter().copied()),
    });
}

fn draw_markers(svg: &mut Svg, series: &FlowSeries<'_>, panel: &Panel) {
    let style = series.look.fill_style();
    for marked_share in MARKED_SHARES {
        let Some(point) = series.flow.ccdf.iter().find(|(_, share)| *share <= marked_share) else { continue };
        let data = marker_outline(series.look.marker(), panel.point(*point));
        let series = series.label.as_str();
        svg.path(&SvgPath { class: "mark", style: &style, series, data: &data, ..SvgPath::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::metric::DelayKind;
    use crate::select::ChartScope;

    #[test]
    fn loss_stays_as_a_floor_and_a_lossless_line_falls_to_the_bottom() {
        let (summary, chart_data) = (fixture::summary(1), fixture::figures());
        let scope = ChartScope {
            summary: &summary,
            chart_data: &chart_data,
            changes: &[],
            cell_numbers: None,
            compared_flow: "call",
            id_prefix: "",
        };
        let selection = scope.flow_series(DelayKind::RoundTrip);
        let series: Vec<&FlowSeries<'_>> = selection.series.iter().collect();
        let panel = panel(&series);
        let end = |index: usize| *corners(series[index], &panel).last().unwrap();
        let loss_rate = summary.runs[0].flows["call"].loss_rate.unwrap();
        assert_eq!(end(0).0, WIDTH - RIGHT);
        assert!((end(0).1 - panel.y.at(loss_rate)).abs() < 0.1, "{:?}", end(0));
        assert_eq!(end(1).1, panel.bottom);
        let svg = ccdf(&selection, DelayKind::RoundTrip).unwrap().svg.unwrap().0;
        let line = |index: usize| {
            let name = format!(" data-name=\"{}\"", series[index].label);
            let paths = svg.split("<path ").filter(|path| path.contains(&name));
            paths.filter(|path| path.contains("class=\"series\"")).collect::<String>()
        };
        assert!(!line(0).contains("data-end"), "{}", line(0));
        assert!(
            line(1).contains("data-end=\"0\""),
            "a pointer at the bottom reads 0, which the axis does not have"
        );
    }

    #[test]
    fn no_chart_is_made_if_there_is_nothing_to_draw() {
        let nothing = Selection { series: Vec::new(), not_drawn: 0, id_prefix: "" };
        assert!(ccdf(&nothing, DelayKind::RoundTrip).is_none());
    }
}
