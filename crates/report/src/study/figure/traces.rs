//! State over time: steps or loss runs, one panel or one for each kind of run.

use talkpath_study::{BandPoint, FigureOutcome, Level, Stretch, TracePanel};

use super::{Drawn, HEIGHT, Looks, TOP, line_legend, sentences};
use crate::figure::extent;
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH, stack};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Anchor, PathData, Svg};

/// Of each of several panels, and the room over it for its title.
const SMALL_HEIGHT: f64 = 130.0;
const GAP: f64 = 40.0;

pub(super) fn draw(
    figure: &FigureOutcome,
    panels: &[TracePanel],
    seconds: Stretch,
    levels: &[Level],
) -> Drawn {
    let is_several = panels.len() > 1;
    let height = if is_several { SMALL_HEIGHT } else { HEIGHT };
    let has_titles = panels.iter().any(|panel| !panel.title.is_empty());
    let first = if has_titles { TOP + 14.0 } else { TOP };
    let places = stack(panels.len(), first, height, GAP);
    let bottom = places.last().map_or(first + height, |place| place.1);
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let counts_runs = panels.iter().any(|panel| !panel.loss_runs.is_empty());
    let top = highest(panels, levels);
    for (at, (shown, place)) in panels.iter().zip(&places).enumerate() {
        let panel = Panel {
            top: place.0,
            bottom: place.1,
            x: Scale::linear(seconds.into(), (LEFT, WIDTH - RIGHT)),
            y: Scale::fitting((0.0, top), (place.1, place.0)),
        };
        // There is no half a packet in a row.
        panel.vertical_axis(&mut svg, if counts_runs { top.clamp(1.0, 4.0) as usize } else { 4 }, tick_label);
        let is_last = at + 1 == panels.len();
        panel.horizontal_axis(&mut svg, 8, is_last.then_some(figure.x_title.as_str()));
        svg.text("name", "", (LEFT, place.0 - 8.0), Anchor::Start, &shown.title);
        draw_panel(&mut svg, &panel, shown, seconds.to);
        for level in levels {
            panel.across(&mut svg, level.value);
            let at = (WIDTH - RIGHT - 4.0, panel.y.at(level.value) - 4.0);
            let text = format!("{} {}", level.label, tick_label(level.value));
            svg.text("halo", "", at, Anchor::End, &text);
        }
    }
    svg.vertical_title((first, bottom), &figure.y_title);
    let names: Vec<&str> = panels
        .first()
        .map(|panel| panel.steps.iter().map(|line| line.entity.as_str()).collect())
        .unwrap_or_default();
    let legend = if names.len() > 1 { line_legend(&names, &[]) } else { Vec::new() };
    Drawn { svg, legend, caption: caption(panels, counts_runs, !levels.is_empty()) }
}

fn caption(panels: &[TracePanel], counts_runs: bool, has_levels: bool) -> String {
    let all = panels.first().map_or(0, |panel| panel.runs.all);
    let runs = if all > 1 { format!(" of {all}") } else { String::new() };
    let which = match panels {
        [one] if one.title.is_empty() => format!("Run {}{runs} under the base assumptions", one.repetition + 1),
        _ => "One panel for each kind of run under the base assumptions, the most frequent first; the first run of the kind is shown"
            .to_owned(),
    };
    let marks = if counts_runs { "One upright line a loss run" } else { "" };
    let levels = if has_levels { "Dotted lines across are printed figures" } else { "" };
    let most = panels.iter().flat_map(|panel| &panel.bands).map(|band| band.runs).max();
    let bands = match (most, panels) {
        (None, _) => String::new(),
        (Some(few @ ..20), [_]) => format!("Shaded is where all {few} runs lie at that moment"),
        (Some(most), [_]) => format!("Shaded is where nine tenths of all {most} runs lie at that moment"),
        (Some(_), _) => {
            "Shaded is where nine tenths of the runs of the kind lie at that moment (all, of fewer \
                         than 20), if it has six"
                .to_owned()
        }
    };
    sentences(&[&which, &bands, marks, levels])
}

fn highest(panels: &[TracePanel], levels: &[Level]) -> f64 {
    let steps = panels.iter().flat_map(|panel| &panel.steps).flat_map(|line| &line.points).map(|it| it.1);
    let runs = panels.iter().flat_map(|panel| &panel.loss_runs).map(|run| run.length as f64);
    let bands = panels.iter().flat_map(|panel| &panel.bands).flat_map(|band| &band.points).map(|it| it.high);
    let (_, top) = extent(steps.chain(bands).chain(runs).chain(levels.iter().map(|level| level.value)));
    if top.is_finite() { top } else { 1.0 }
}

fn draw_panel(svg: &mut Svg, panel: &Panel, shown: &TracePanel, end: f64) {
    let looks = Looks::named(shown.steps.iter().map(|line| line.entity.as_str()));
    for (line, look) in shown.steps.iter().zip(&looks.0) {
        for band in shown.bands.iter().filter(|band| band.entity == line.entity) {
            let colour = format!("fill:{}", look.colour);
            svg.path("band", &colour, &area(&band.points, panel, end));
        }
    }
    for (line, look) in shown.steps.iter().zip(&looks.0) {
        svg.path("state", &look.stroke, &steps(&line.points, panel, end));
    }
    for run in &shown.loss_runs {
        svg.line("lost", panel.at((run.at_s, 0.0)), panel.at((run.at_s, run.length as f64)));
    }
}

/// The outline of a band: along its upper side, and back along the lower one.
fn area(points: &[BandPoint], panel: &Panel, end: f64) -> String {
    let side = |value: fn(&BandPoint) -> f64| {
        let mut corners = Vec::new();
        for (at, point) in points.iter().enumerate() {
            let until = points.get(at + 1).map_or(end, |next| next.at_s);
            corners.extend([panel.at((point.at_s, value(point))), panel.at((until, value(point)))]);
        }
        corners
    };
    let lower = side(|point| point.low).into_iter().rev();
    let corners: Vec<String> =
        side(|point| point.high).into_iter().chain(lower).map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    if corners.is_empty() { String::new() } else { format!("M{}Z", corners.join("L")) }
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
    use super::super::draw as drawn;
    use super::*;
    use talkpath_study::{Drawing, LossRun, RunShare, TraceBand, TraceLine};

    fn figure(panels: Vec<TracePanel>, levels: Vec<Level>) -> FigureOutcome {
        FigureOutcome {
            number: "8".to_owned(),
            title: "title".to_owned(),
            x_title: "time, s".to_owned(),
            y_title: "packets".to_owned(),
            note: "The paper prints a curve alone".to_owned(),
            drawing: Drawing::Traces { panels, seconds: Stretch { from: 0.0, to: 10.0 }, levels },
        }
    }

    #[test]
    fn packets_lost_in_a_row_are_counted_in_whole_numbers() {
        for length in 1..=9 {
            let run = LossRun { flow: "call".to_owned(), at_s: 1.0, length };
            let panel = TracePanel { loss_runs: vec![run], ..TracePanel::default() };
            let svg = drawn(&figure(vec![panel], Vec::new())).svg.unwrap().into_string();
            assert!(!svg.contains(".5</text>"), "{length}: {svg}");
        }
    }

    #[test]
    fn a_band_lies_behind_its_line_and_the_caption_counts_its_runs() {
        let line = |value| TraceLine {
            entity: "wan".to_owned(),
            kind: "queue".to_owned(),
            points: vec![(0.0, value)],
        };
        let points =
            vec![BandPoint { at_s: 0.0, low: 1.0, high: 8.0 }, BandPoint { at_s: 5.0, low: 2.0, high: 4.0 }];
        let band = TraceBand { entity: "wan".to_owned(), runs: 20, points };
        let panel = TracePanel { steps: vec![line(3.0)], bands: vec![band], ..TracePanel::default() };
        let drawn = drawn(&figure(vec![panel], Vec::new()));
        let svg = drawn.svg.unwrap().into_string();
        let (band, state) = (svg.find("class=\"band\"").unwrap(), svg.find("class=\"state\"").unwrap());
        assert!(band < state, "{svg}");
        let outline = svg[band..].split("d=\"").nth(1).unwrap().split('"').next().unwrap();
        // Two corners a point on either side.
        assert_eq!(outline.matches('L').count(), 2 * 2 * 2 - 1, "{outline}");
        assert!(drawn.caption.contains("nine tenths of all 20 runs"), "{}", drawn.caption);
    }

    #[test]
    fn each_kind_of_run_has_a_panel_with_its_share_and_the_printed_level() {
        let kind = |title: &str| TracePanel {
            title: title.to_owned(),
            runs: RunShare { of_kind: 3, all: 9 },
            steps: vec![TraceLine {
                entity: "wan".to_owned(),
                kind: "queue".to_owned(),
                points: vec![(0.0, 4.0)],
            }],
            ..TracePanel::default()
        };
        let level = Level { label: "printed mean".to_owned(), value: 7.3 };
        let figure = drawn(&figure(vec![kind("all lose: 6 of 9"), kind("none: 3 of 9")], vec![level]));
        let svg = figure.svg.unwrap().into_string();
        assert!(svg.contains("all lose: 6 of 9") && svg.contains("none: 3 of 9"), "{svg}");
        assert_eq!(svg.matches("printed mean 7.3").count(), 2);
        assert!(figure.caption.ends_with("The paper prints a curve alone."), "{}", figure.caption);
    }
}
