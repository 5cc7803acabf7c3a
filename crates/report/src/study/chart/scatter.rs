//! The scatter plot: a point for each cell, with the least-squares line through all points.

use talkpath_study::{FigureLine, FigureOutcome, Fit, format_number};

use super::shared::{
    HEIGHT, PANEL_BOTTOM, TOP, UntitledChart, axis_factor, domain_with_zero, points, sentences, styles_of,
    vertical_values,
};
use crate::chart::{LegendEntry, Sample, extent};
use crate::display::Marker;
use crate::number::counted;
use crate::plot::marker::marker_outline;
use crate::plot::panel::{BOTTOM, Panel, WIDTH, X_RANGE};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Svg, SvgPath};

/// The markers of the series, in their order.
const MARKERS: [Marker; 5] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];
/// The style of the least-squares line.
const FIT_STYLE: &str = "stroke:var(--ink);stroke-dasharray:6 3";

#[derive(Clone, Copy)]
struct AxisFactors {
    x: f64,
    y: f64,
}

pub(super) fn draw(figure: &FigureOutcome, lines: &[FigureLine], fit: Option<Fit>) -> UntitledChart {
    let factors = AxisFactors { x: axis_factor(&figure.x_title), y: axis_factor(&figure.y_title) };
    let (left, right) = extent(points(lines).map(|point| point.x));
    let fit_ends =
        fit.map(|fit| [left, right].map(|x| (x * factors.x, (fit.intercept + fit.slope * x) * factors.y)));
    // The ends of the line may be beyond all points.
    let end_values = fit_ends.iter().flatten().map(|(_, y)| *y);
    let (lowest, highest) = extent(vertical_values(lines, factors.y).chain(end_values));
    let panel = Panel {
        top: TOP,
        bottom: PANEL_BOTTOM,
        x: Scale::linear(domain_with_zero((left * factors.x, right * factors.x)), X_RANGE),
        y: Scale::fitting((lowest.min(0.0), highest), (PANEL_BOTTOM, TOP)),
    };
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + BOTTOM);
    panel.draw_vertical_axis(&mut svg, 4, tick_label);
    panel.draw_horizontal_axis(&mut svg, 8, Some(&figure.x_title));
    svg.vertical_axis_title(panel.span(), &figure.y_title);
    if let Some(ends) = fit_ends {
        let [(x1, y1), (x2, y2)] = ends.map(|end| panel.point(end));
        let data = format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
        svg.path(&SvgPath { class: "series", style: FIT_STYLE, data: &data, ..SvgPath::default() });
    }
    draw_points(&mut svg, &panel, lines, factors);
    let caption = describe(points(lines).count(), fit, factors);
    UntitledChart { svg, legend: legend(lines, fit.is_some()), caption }
}

fn point_styles(lines: &[FigureLine]) -> impl Iterator<Item = (String, Marker)> {
    let fills = styles_of(lines).into_iter().map(|style| format!("fill:{}", style.colour));
    fills.zip(MARKERS.into_iter().cycle())
}

fn draw_points(svg: &mut Svg, panel: &Panel, lines: &[FigureLine], factors: AxisFactors) {
    for (line, (fill, marker)) in lines.iter().zip(point_styles(lines)) {
        for point in &line.points {
            let place = |value: f64| panel.point((point.x * factors.x, value * factors.y));
            if let Some((low, high)) = point.ci95 {
                svg.line("axis", place(low), place(high));
            }
            let outline = marker_outline(marker, place(point.median));
            svg.path(&SvgPath { style: &fill, data: &outline, ..SvgPath::default() });
        }
    }
}

fn legend(lines: &[FigureLine], has_fit: bool) -> Vec<LegendEntry> {
    let mut entries: Vec<LegendEntry> = lines
        .iter()
        .zip(point_styles(lines))
        .map(|(line, (fill, marker))| LegendEntry::new(&line.label, Sample::marker(fill, marker)))
        .collect();
    if has_fit {
        entries.push(LegendEntry::plain_line("line through all points", FIT_STYLE));
    }
    entries
}

fn describe(point_count: usize, fit: Option<Fit>, factors: AxisFactors) -> String {
    let about_points = format!(
        "{}, each the medians of a cell under the base assumptions; upright lines are 95 % confidence intervals",
        counted(point_count as u64, "point")
    );
    let Some(fit) = fit else { return about_points };
    let with_interval = |value: f64, interval: Option<(f64, f64)>| match interval {
        Some((low, high)) => format!(
            "{} [{}, {}]",
            format_number(None, value),
            format_number(None, low),
            format_number(None, high)
        ),
        None => format_number(None, value),
    };
    let step = if factors.x == 1.0 { "" } else { " for each 1 %" };
    let slope_interval = fit.slope_ci95.map(|(low, high)| (low / factors.x, high / factors.x));
    let about_fit = format!(
        "The line is that of least squares: slope {}{step}, R² {}, with their 95 % confidence intervals",
        with_interval(fit.slope / factors.x, slope_interval),
        with_interval(fit.r_squared, fit.r_squared_ci95)
    );
    sentences(&[&about_points, &about_fit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{Drawing, FigurePoint};

    /// The SVG of a chart with these points and this line, the path of the line, and the caption.
    fn drawn(points: Vec<FigurePoint>, (intercept, slope): (f64, f64)) -> (String, String, String) {
        let fit =
            Fit { slope, intercept, slope_ci95: Some((slope, slope)), r_squared: 1.0, r_squared_ci95: None };
        let figure = FigureOutcome {
            number: "12".to_owned(),
            title: "title".to_owned(),
            x_title: "resent, %".to_owned(),
            y_title: "excess, ms".to_owned(),
            note: String::new(),
            drawing: Drawing::Scatter {
                lines: vec![FigureLine { label: "UCSB".to_owned(), points }],
                fit: Some(fit),
            },
        };
        let chart = super::super::chart(&figure);
        let svg = chart.svg.unwrap().into_string();
        let start = svg.split(FIT_STYLE).nth(1).unwrap();
        let path = start.split("d=\"M").nth(1).unwrap().split('"').next().unwrap().to_owned();
        (svg, path, chart.caption)
    }

    #[test]
    fn the_line_goes_through_points_that_lie_on_it_and_its_slope_is_in_the_axis_s_unit() {
        for intercept in [100.0, -100.0] {
            let points = [0.01, 0.02, 0.03].map(|x| FigurePoint::new(x, intercept + 5000.0 * x, None));
            let (svg, path, caption) = drawn(points.to_vec(), (intercept, 5000.0));
            assert!(caption.contains("slope 50 [50, 50] for each 1 %, R² 1"), "{caption}");
            // A circle begins 4 units left of its centre: the line's ends are the first and the last point.
            let panel_top = |x: f64| format!("M{x:.1} ");
            let (from, to) = path.split_once('L').unwrap();
            for end in [from, to] {
                let (x, y) = end.split_once(' ').unwrap();
                let x: f64 = x.parse().unwrap();
                let circle = svg.split(&panel_top(x - 4.0)).nth(1).expect("a point at the line's end");
                let centre: f64 = circle.split('a').next().unwrap().parse().unwrap();
                assert!((centre - y.parse::<f64>().unwrap()).abs() < 0.11, "{path}");
            }
        }
    }

    #[test]
    fn values_below_zero_are_drawn_below_zero_and_the_line_keeps_its_slope_to_both_ends() {
        // Least squares through (1, 0), (2, 0), (3, 9): from -1.5 to 7.5.
        let points = [(0.01, 0.0), (0.02, 0.0), (0.03, 9.0)].map(|(x, y)| FigurePoint::new(x, y, None));
        let (_, path, _) = drawn(points.to_vec(), (-6.0, 450.0));
        let ends: Vec<f64> =
            path.split('L').map(|end| end.split_once(' ').unwrap().1.parse().unwrap()).collect();
        // The axis goes from -1.5 to 10.
        let place = |y: f64| TOP + HEIGHT * (10.0 - y) / 11.5;
        assert!((ends[0] - place(-1.5)).abs() < 0.11 && (ends[1] - place(7.5)).abs() < 0.11, "{path}");
        // An interval below zero has room too.
        let points = [FigurePoint::new(0.01, 1.0, Some((-4.0, 4.0))), FigurePoint::new(0.02, 1.0, None)];
        let (svg, ..) = drawn(points.to_vec(), (1.0, 0.0));
        assert!(svg.contains(">-4</text>"), "{svg}");
    }
}
