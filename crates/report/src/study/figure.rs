//! A publication's figures from the outcome's data: steps over time, loss runs over time, medians over cells.

use talkpath_study::{FigureOutcome, FigurePoint};

use crate::figure::{Entry, Figure, extent, word};
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{PathData, Svg, unit};

const TOP: f64 = 14.0;
const HEIGHT: f64 = 220.0;
/// Of a figure of quantiles, which is nearer to a square.
const QUANTILE_HEIGHT: f64 = 420.0;

/// Line styles, distinguished by dash as well as by shade, in the order of the lines.
const STYLES: [&str; 6] = [
    "stroke:var(--accent)",
    "stroke:var(--ink);stroke-dasharray:6 3",
    "stroke:var(--bad);stroke-dasharray:2 3",
    "stroke:var(--soft)",
    "stroke:var(--warn);stroke-dasharray:8 3 2 3",
    "stroke:var(--ink);stroke-dasharray:1 3",
];

/// The figure, ready for the page.
pub(super) fn draw(figure: &FigureOutcome) -> Figure {
    let (x, y) = ranges(figure);
    let height = if figure.is_quantiles { QUANTILE_HEIGHT } else { HEIGHT };
    let panel = Panel {
        top: TOP,
        bottom: TOP + height,
        x: Scale::linear(x, (LEFT, WIDTH - RIGHT)),
        y: match figure.is_quantiles {
            true => Scale::linear(y, (TOP + height, TOP)),
            false => Scale::fitting(y, (TOP + height, TOP)),
        },
    };
    let mut svg = Svg::new(WIDTH, TOP + height + BOTTOM);
    // There is no half a packet in a row.
    let counts_runs = !figure.loss_runs.is_empty();
    panel.vertical_axis(&mut svg, if counts_runs { y.1.clamp(1.0, 4.0) as usize } else { 4 }, tick_label);
    panel.horizontal_axis(&mut svg, 8, Some(&figure.x_title));
    svg.text_upwards("title", (13.0, TOP + height / 2.0), &figure.y_title);
    if figure.is_quantiles {
        svg.line("limit", panel.at((x.0, x.0)), panel.at((x.1, x.1)));
    }
    let mut names: Vec<&str> = Vec::new();
    for line in &figure.steps {
        svg.path("state", STYLES[names.len() % STYLES.len()], &steps(&line.points, &panel, x.1));
        names.push(&line.entity);
    }
    for run in &figure.loss_runs {
        svg.line("lost", panel.at((run.at_s, 0.0)), panel.at((run.at_s, run.length as f64)));
    }
    let scale = scale(figure);
    for line in &figure.lines {
        let style = STYLES[names.len() % STYLES.len()];
        let mut path = String::new();
        for (index, FigurePoint { x, median, ci95 }) in line.points.iter().enumerate() {
            let (px, py) = panel.at((*x, median * scale));
            path.push_str(&format!("{}{} {}", if index == 0 { "M" } else { "L" }, unit(px), unit(py)));
            if let Some((low, high)) = ci95 {
                svg.line("axis", panel.at((*x, low * scale)), panel.at((*x, high * scale)));
            }
        }
        svg.path("series", style, &path);
        names.push(&line.label);
    }
    let title = format!("Figure {}: {}", figure.number, figure.title);
    let entries = names.iter().enumerate().map(|(at, name)| Entry::line(name, STYLES[at % STYLES.len()]));
    let legend = if names.len() > 1 { entries.collect() } else { Vec::new() };
    let id = word(&figure.number);
    let description = format!("{} against {}.", figure.y_title, figure.x_title);
    Figure {
        svg: Some(svg.finish(&format!("svg-{id}"), &title, &description)),
        id,
        title,
        legend,
        caption: caption(figure).to_owned(),
    }
}

fn caption(figure: &FigureOutcome) -> &'static str {
    if figure.is_quantiles {
        "The 1st to the 99th percentile of delay, each the median over repetitions; on the dotted line both arenas agree."
    } else if !figure.lines.is_empty() {
        "Medians over start phases under the base assumptions; upright lines are 95 % confidence intervals."
    } else if figure.y_title.contains("row") {
        "The first repetition under the base assumptions; one upright line a loss run."
    } else {
        "The first repetition under the base assumptions."
    }
}

/// Shares are drawn in per cent if the axis says so.
fn scale(figure: &FigureOutcome) -> f64 {
    if figure.y_title.ends_with('%') { 100.0 } else { 1.0 }
}

fn ranges(figure: &FigureOutcome) -> ((f64, f64), (f64, f64)) {
    let points = || figure.lines.iter().flat_map(|line| &line.points);
    if figure.is_quantiles {
        let (low, high) = extent(points().flat_map(|point| [point.x, point.median]));
        // A tenth of room, and one scale for both axes.
        let room = (0.05 * (high - low)).max(0.01 * high.abs()).max(0.1);
        let range = if low.is_finite() { ((low - room).max(0.0), high + room) } else { (0.0, 1.0) };
        return (range, range);
    }
    let (low, high) = extent(points().map(|point| point.x));
    // A little room behind the last point, for its interval.
    let x = figure.seconds.unwrap_or(if low.is_finite() { (0.0, 1.03 * high) } else { (0.0, 1.0) });
    let steps = figure.steps.iter().flat_map(|line| &line.points).map(|point| point.1);
    let runs = figure.loss_runs.iter().map(|run| run.length as f64);
    let medians = points().map(|point| point.ci95.map_or(point.median, |it| it.1) * scale(figure));
    let (_, top) = extent(steps.chain(runs).chain(medians));
    (x, (0.0, if top.is_finite() { top } else { 1.0 }))
}

fn steps(points: &[(f64, f64)], panel: &Panel, end: f64) -> String {
    let mut data = PathData::default();
    for (index, point) in points.iter().enumerate() {
        let (x, y) = panel.at(*point);
        if index == 0 { data.move_to(x, y) } else { data.step_to(x, y) }
    }
    if let Some((_, value)) = points.last() {
        let (x, y) = panel.at((end, *value));
        data.step_to(x, y);
    }
    data.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{FigureLine, LossRun};

    fn empty(y_title: &str) -> FigureOutcome {
        FigureOutcome {
            number: "8".to_owned(),
            title: "title".to_owned(),
            x_title: "x".to_owned(),
            y_title: y_title.to_owned(),
            steps: Vec::new(),
            loss_runs: Vec::new(),
            lines: Vec::new(),
            is_quantiles: false,
            seconds: None,
        }
    }

    #[test]
    fn packets_lost_in_a_row_are_counted_in_whole_numbers() {
        for length in 1..=9 {
            let run = LossRun { flow: "call".to_owned(), at_s: 1.0, length };
            let figure = FigureOutcome {
                loss_runs: vec![run],
                seconds: Some((0.0, 10.0)),
                ..empty("packets lost in a row")
            };
            let svg = draw(&figure).svg.unwrap().into_string();
            assert!(!svg.contains(".5</text>"), "{length}: {svg}");
        }
    }

    #[test]
    fn the_last_point_and_its_interval_stand_within_the_frame() {
        let points = [80.0, 320.0].map(|x| FigurePoint { x, median: 1.0, ci95: Some((0.5, 1.5)) }).to_vec();
        let lines = vec![FigureLine { label: "6 TCPs".to_owned(), points }];
        let figure = FigureOutcome { lines, ..empty("voice packets lost") };
        assert!(ranges(&figure).0.1 > 320.0);
    }
}
