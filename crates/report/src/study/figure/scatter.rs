//! Medians over medians, a point a cell, with the line through all of them.

use talkpath_study::{FigureLine, FigureOutcome, Fit, shown};

use super::{Drawn, HEIGHT, Looks, TOP, scale, sentences, values, with_zero};
use crate::display::Marker;
use crate::figure::{Entry, Sample, extent, marker};
use crate::number::counted;
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::Svg;

const MARKERS: [Marker; 5] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];
/// Of the line.
const FITTED: &str = "stroke:var(--ink);stroke-dasharray:6 3";

pub(super) fn draw(figure: &FigureOutcome, lines: &[FigureLine], fit: Option<Fit>) -> Drawn {
    let (x_scale, y_scale) = (scale(&figure.x_title), scale(&figure.y_title));
    let points = || lines.iter().flat_map(|line| &line.points);
    let (left, right) = extent(points().map(|point| point.x));
    // The ends of the line, which may lie further out than any point.
    let fitted: Vec<(f64, f64)> = fit.map_or_else(Vec::new, |line| {
        [left, right].map(|x| (x * x_scale, (line.intercept + line.slope * x) * y_scale)).to_vec()
    });
    let (low, top) = extent(values(lines, y_scale).chain(fitted.iter().map(|end| end.1)));
    let panel = Panel {
        top: TOP,
        bottom: TOP + HEIGHT,
        x: Scale::linear(with_zero((left * x_scale, right * x_scale)), (LEFT, WIDTH - RIGHT)),
        y: Scale::fitting((low.min(0.0), top), (TOP + HEIGHT, TOP)),
    };
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + BOTTOM);
    panel.vertical_axis(&mut svg, 4, tick_label);
    panel.horizontal_axis(&mut svg, 8, Some(&figure.x_title));
    svg.vertical_title((TOP, TOP + HEIGHT), &figure.y_title);
    if let [from, to] = fitted.as_slice() {
        let ((x1, y1), (x2, y2)) = (panel.at(*from), panel.at(*to));
        svg.path("series", FITTED, &format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"));
    }
    let looks = Looks::of(lines);
    let fill = |at: usize| format!("fill:{}", looks.at(at).colour);
    for (index, line) in lines.iter().enumerate() {
        for point in &line.points {
            if let Some((low, high)) = point.ci95 {
                let at = |value: f64| panel.at((point.x * x_scale, value * y_scale));
                svg.line("axis", at(low), at(high));
            }
            let (x, y) = panel.at((point.x * x_scale, point.median * y_scale));
            svg.path("", &fill(index), &marker(MARKERS[index % MARKERS.len()], x, y));
        }
    }
    let own = lines.iter().enumerate().map(|(at, line)| {
        let shape = marker(MARKERS[at % MARKERS.len()], 14.0, 7.0);
        Entry::new(&line.label, Sample::shape(fill(at), shape))
    });
    let fitted = fit.map(|_| Entry::line("line through all points", FITTED));
    let legend = own.chain(fitted).collect();
    Drawn { svg, legend, caption: caption(points().count(), fit, x_scale) }
}

fn caption(count: usize, fit: Option<Fit>, x_scale: f64) -> String {
    let points = format!(
        "{}, each the medians of a cell under the base assumptions; upright lines are 95 % confidence intervals",
        counted(count as u64, "point")
    );
    let Some(line) = fit else { return points };
    let with = |value: f64, interval: Option<(f64, f64)>| match interval {
        Some((low, high)) => format!("{} [{}, {}]", shown(None, value), shown(None, low), shown(None, high)),
        None => shown(None, value),
    };
    let each = if x_scale == 1.0 { "" } else { " for each 1 %" };
    let slope = line.slope_ci95.map(|(low, high)| (low / x_scale, high / x_scale));
    let fitted = format!(
        "The line is that of least squares: slope {}{each}, R² {}, with their 95 % confidence intervals",
        with(line.slope / x_scale, slope),
        with(line.r_squared, line.r_squared_ci95)
    );
    sentences(&[&points, &fitted])
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{Drawing, FigurePoint};

    /// The figure of these points with the line, and where the line goes.
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
        let drawn = super::super::draw(&figure);
        let svg = drawn.svg.unwrap().into_string();
        let start = svg.split(FITTED).nth(1).unwrap();
        let path = start.split("d=\"M").nth(1).unwrap().split('"').next().unwrap().to_owned();
        (svg, path, drawn.caption)
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
    fn what_lies_below_zero_is_drawn_there_and_the_line_keeps_its_slope_to_both_ends() {
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
