//! Two charts with lines: medians over a number, and the quantiles of one arena over those of another.

use talkpath_study::{FigureLine, FigureOutcome};

use super::shared::{
    HEIGHT, PANEL_BOTTOM, PrintedMarkers, TOP, UntitledChart, axis_factor, domain_with_zero, line_legend,
    points, printed_note, sentences, styles_of, vertical_values,
};
use crate::chart::extent;
use crate::plot::panel::{BOTTOM, Panel, WIDTH, X_RANGE};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Svg, SvgPath, coordinate};

/// The height of a chart of quantiles. It is higher than other charts, so that the line of equal values is
/// steep.
const QUANTILE_HEIGHT: f64 = 420.0;

/// Draws medians over a number.
pub(super) fn draw(figure: &FigureOutcome, lines: &[FigureLine]) -> UntitledChart {
    let factor = axis_factor(&figure.y_title);
    let (lowest, highest) = extent(vertical_values(lines, factor));
    let x_extent = extent(points(lines).map(|point| point.x));
    let panel = Panel {
        top: TOP,
        bottom: PANEL_BOTTOM,
        x: Scale::linear(domain_with_zero(x_extent), X_RANGE),
        y: Scale::fitting((lowest.min(0.0), highest), (PANEL_BOTTOM, TOP)),
    };
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + BOTTOM);
    draw_axes(&mut svg, &panel, figure);
    draw_lines(&mut svg, &panel, lines, factor);
    let caption = sentences(&[
        "Medians over repetitions under the base assumptions; upright lines are 95 % confidence intervals",
        printed_note(lines),
    ]);
    UntitledChart { svg, legend: line_legend(&names(lines), lines), caption }
}

/// Draws quantiles over quantiles. Both axes have one scale. On the diagonal both arenas agree.
pub(super) fn draw_quantiles(figure: &FigureOutcome, lines: &[FigureLine]) -> UntitledChart {
    let domain = quantile_domain(extent(points(lines).flat_map(|point| [point.x, point.median])));
    let bottom = TOP + QUANTILE_HEIGHT;
    let panel = Panel {
        top: TOP,
        bottom,
        x: Scale::linear(domain, X_RANGE),
        y: Scale::linear(domain, (bottom, TOP)),
    };
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    draw_axes(&mut svg, &panel, figure);
    svg.line("limit", panel.point((domain.0, domain.0)), panel.point((domain.1, domain.1)));
    draw_lines(&mut svg, &panel, lines, 1.0);
    let caption = "The 1st to the 99th percentile of delay, each the median over repetitions; on the dotted line both arenas agree";
    UntitledChart { svg, legend: line_legend(&names(lines), lines), caption: caption.to_owned() }
}

/// The domain of both axes for quantiles from `low` to `high`. A tenth of their range is added as a margin.
/// Positive quantiles do not make the axes negative.
fn quantile_domain((low, high): (f64, f64)) -> (f64, f64) {
    if !low.is_finite() {
        return (0.0, 1.0);
    }
    let margin = (0.05 * (high - low)).max(0.01 * high.abs()).max(0.1);
    let start = if low < 0.0 { low - margin } else { (low - margin).max(0.0) };
    (start, high + margin)
}

fn names(lines: &[FigureLine]) -> Vec<&str> {
    lines.iter().map(|line| line.label.as_str()).collect()
}

fn draw_axes(svg: &mut Svg, panel: &Panel, figure: &FigureOutcome) {
    panel.draw_vertical_axis(svg, 4, tick_label);
    panel.draw_horizontal_axis(svg, 8, Some(&figure.x_title));
    svg.vertical_axis_title(panel.span(), &figure.y_title);
}

/// Draws the medians of each line with their confidence intervals and printed values. `factor` leads from a
/// median to the unit of the vertical axis.
fn draw_lines(svg: &mut Svg, panel: &Panel, lines: &[FigureLine], factor: f64) {
    for (line, style) in lines.iter().zip(styles_of(lines)) {
        let mut corners = Vec::new();
        for point in &line.points {
            let place = |value: f64| panel.point((point.x, value * factor));
            let (x, y) = place(point.median);
            corners.push(format!("{} {}", coordinate(x), coordinate(y)));
            if let Some((low, high)) = point.ci95 {
                svg.line("axis", place(low), place(high));
            }
        }
        let data = if corners.is_empty() { String::new() } else { format!("M{}", corners.join("L")) };
        svg.path(&SvgPath { class: "series", style: &style.stroke, data: &data, ..SvgPath::default() });
        for point in &line.points {
            let x = panel.x.at(point.x);
            PrintedMarkers { point, x, colour: &style.colour, factor }.draw(svg, panel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{Drawing, FigurePoint};

    #[test]
    fn a_median_below_zero_is_drawn_below_zero() {
        let points = [(1.0, -2.0), (2.0, 0.0), (3.0, 3.0)].map(|(x, y)| FigurePoint::new(x, y, None));
        let lines = vec![FigureLine { label: "6 TCPs".to_owned(), points: points.to_vec() }];
        let figure = FigureOutcome {
            number: "1".to_owned(),
            title: "title".to_owned(),
            x_title: "streams".to_owned(),
            y_title: "less, ms".to_owned(),
            note: String::new(),
            drawing: Drawing::Lines { lines },
        };
        let html = super::super::chart(&figure).html().into_string();
        // From -2 to 3, so that zero is two fifths above the bottom.
        let zero = coordinate(TOP + HEIGHT * 3.0 / 5.0);
        for place in [coordinate(TOP + HEIGHT), zero, coordinate(TOP)] {
            assert!(
                html.contains(&format!(" {place}L")) || html.contains(&format!(" {place}\"")),
                "{place}: {html}"
            );
        }
    }
}
