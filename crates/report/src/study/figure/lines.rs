//! Medians over a number, and quantiles over quantiles.

use talkpath_study::{FigureLine, FigureOutcome};

use super::{
    Drawn, HEIGHT, Looks, TOP, about_printed, draw_printed, line_legend, scale, sentences, values, with_zero,
};
use crate::figure::extent;
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Svg, unit};

/// Of a figure of quantiles, which is nearer to a square.
const QUANTILE_HEIGHT: f64 = 420.0;

pub(super) fn draw(figure: &FigureOutcome, lines: &[FigureLine]) -> Drawn {
    let scale = scale(&figure.y_title);
    let (low, top) = extent(values(lines, scale));
    let xs = lines.iter().flat_map(|line| &line.points).map(|point| point.x);
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + BOTTOM);
    let panel = Panel {
        top: TOP,
        bottom: TOP + HEIGHT,
        x: Scale::linear(with_zero(extent(xs)), (LEFT, WIDTH - RIGHT)),
        y: Scale::fitting((low.min(0.0), top), (TOP + HEIGHT, TOP)),
    };
    axes(&mut svg, &panel, figure, HEIGHT);
    series(&mut svg, &panel, lines, scale);
    let names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
    let caption = sentences(&[
        "Medians over repetitions under the base assumptions; upright lines are 95 % confidence intervals",
        about_printed(lines),
    ]);
    Drawn { svg, legend: line_legend(&names, lines), caption }
}

pub(super) fn draw_quantiles(figure: &FigureOutcome, lines: &[FigureLine]) -> Drawn {
    let points = lines.iter().flat_map(|line| &line.points);
    let (low, high) = extent(points.flat_map(|point| [point.x, point.median]));
    // A tenth of room, and one scale for both axes.
    let room = (0.05 * (high - low)).max(0.01 * high.abs()).max(0.1);
    let from = if low < 0.0 { low - room } else { (low - room).max(0.0) };
    let range = if low.is_finite() { (from, high + room) } else { (0.0, 1.0) };
    let mut svg = Svg::new(WIDTH, TOP + QUANTILE_HEIGHT + BOTTOM);
    let panel = Panel {
        top: TOP,
        bottom: TOP + QUANTILE_HEIGHT,
        x: Scale::linear(range, (LEFT, WIDTH - RIGHT)),
        y: Scale::linear(range, (TOP + QUANTILE_HEIGHT, TOP)),
    };
    axes(&mut svg, &panel, figure, QUANTILE_HEIGHT);
    svg.line("limit", panel.at((range.0, range.0)), panel.at((range.1, range.1)));
    series(&mut svg, &panel, lines, 1.0);
    let names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
    let caption = "The 1st to the 99th percentile of delay, each the median over repetitions; on the dotted line both arenas agree";
    Drawn { svg, legend: line_legend(&names, lines), caption: caption.to_owned() }
}

fn axes(svg: &mut Svg, panel: &Panel, figure: &FigureOutcome, height: f64) {
    panel.vertical_axis(svg, 4, tick_label);
    panel.horizontal_axis(svg, 8, Some(&figure.x_title));
    svg.vertical_title((TOP, TOP + height), &figure.y_title);
}

fn series(svg: &mut Svg, panel: &Panel, lines: &[FigureLine], scale: f64) {
    let looks = Looks::of(lines);
    for (line, look) in lines.iter().zip(&looks.0) {
        let mut path = String::new();
        for (index, point) in line.points.iter().enumerate() {
            let (x, y) = panel.at((point.x, point.median * scale));
            path.push_str(&format!("{}{} {}", if index == 0 { "M" } else { "L" }, unit(x), unit(y)));
            if let Some((low, high)) = point.ci95 {
                svg.line("axis", panel.at((point.x, low * scale)), panel.at((point.x, high * scale)));
            }
        }
        svg.path("series", &look.stroke, &path);
        for point in &line.points {
            draw_printed(svg, panel, panel.x.at(point.x), point, &look.colour, scale);
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
        let html = super::super::draw(&figure).html().into_string();
        // From -2 to 3, so that zero is two fifths above the bottom.
        let zero = unit(TOP + HEIGHT * 3.0 / 5.0);
        for place in [unit(TOP + HEIGHT), zero, unit(TOP)] {
            assert!(
                html.contains(&format!(" {place}L")) || html.contains(&format!(" {place}\"")),
                "{place}: {html}"
            );
        }
    }
}
