//! The complementary distribution of delay with a log tail: how many messages came later than x, or never.

use super::{Entry, Figure, Sample, colour, extent, left_out, marker, stroke};
use crate::plot::label::place;
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH};
use crate::plot::scale::{Scale, round_down, tick_label};
use crate::plot::svg::{Anchor, PathData, Svg};
use crate::select::{Selection, Series};
use crate::verdict::limit_ms;

const TOP: f64 = 22.0;
const HEIGHT: f64 = 320.0;
/// Shares at which a line carries its marker: p50, p90 and p99 of what was sent.
const MARKED: [f64; 3] = [0.5, 0.1, 0.01];

/// The figure; `None` if no series has a delay.
pub(crate) fn ccdf(selection: &Selection<Series<'_>>, round_trip: bool) -> Option<Figure> {
    let drawn: Vec<&Series<'_>> =
        selection.shown.iter().filter(|series| !series.flow.ccdf.is_empty()).collect();
    if drawn.is_empty() {
        return None;
    }
    let panel = panel(&drawn);
    let mut svg = Svg::new(WIDTH, panel.bottom + BOTTOM);
    panel.vertical_axis(&mut svg, 5, |share| format!("{} %", tick_label(share * 100.0)));
    panel.horizontal_axis(
        &mut svg,
        9,
        Some(if round_trip { "round trip delay, ms" } else { "one-way delay, ms" }),
    );
    svg.vertical_title((panel.top, panel.bottom), "share of messages later than that");
    let limit = limit_ms(round_trip);
    panel.upwards(&mut svg, limit, &format!("{} ms", tick_label(limit)));
    let lines: Vec<Vec<(f64, f64)>> = drawn.iter().map(|series| corners(series, &panel)).collect();
    let x_name = if round_trip { "round trip" } else { "one way" };
    panel.open(&mut svg, "distribution", (x_name, "ms"), ("later than that", "%"));
    svg.open_data();
    for (series, line) in drawn.iter().zip(&lines) {
        let (style, path) = (stroke(series.look), steps(line));
        match series.flow.ccdf.last() {
            Some((_, 0.0)) => svg.data_to_zero("series", &style, &series.label, &path),
            _ => svg.data("series", &style, &series.label, &path),
        }
        for level in MARKED {
            let Some(point) = series.flow.ccdf.iter().find(|point| point.1 <= level) else { continue };
            let (x, y) = panel.at(*point);
            svg.data(
                "mark",
                &format!("fill:{}", colour(series.look)),
                &series.label,
                &marker(series.look.marker(), x, y),
            );
        }
    }
    svg.close();
    svg.close();
    let names: Vec<&str> = drawn.iter().map(|series| series.label.as_str()).collect();
    for name in place(&lines, &names, &panel) {
        let style = format!("fill:{}", colour(drawn[name.line].look));
        svg.text("name halo", &style, name.at, Anchor::Start, names[name.line]);
    }
    let kind = if round_trip { "Round trip" } else { "One-way" };
    let title = format!("{kind} delay: how many messages came later");
    let description = format!("Complementary distribution of delay, logarithmic, for {}.", names.join(", "));
    let caption = format!(
        "For each delay, the share of sent messages that came later than that or never. Further left and lower is \
         better. The scale is logarithmic, so that the slowest one in a hundred can be seen; where a line stops falling, \
         the rest is missing. Markers stand where a half, a tenth and a hundredth are still to come. Delay counts from the moment a message was \
         due, so waiting in the sender counts.{}",
        left_out(selection.left_out, "lines")
    );
    let entries = drawn.iter().map(|series| Entry {
        name: series.label.clone(),
        samples: vec![Sample::line(stroke(series.look), Some(series.look))],
    });
    let legend = entries.collect();
    let id = format!("{}{}", selection.id, if round_trip { "ccdf-rtt" } else { "ccdf-owd" });
    let svg = svg.finish(&id, "Delay distribution", &description);
    Some(Figure { id, title, legend, svg: Some(svg), caption })
}

fn panel(drawn: &[&Series<'_>]) -> Panel {
    let points = || drawn.iter().flat_map(|series| series.flow.ccdf.iter());
    let lowest = points().map(|point| point.1).filter(|share| *share > 0.0).fold(0.1, f64::min);
    let bottom = TOP + HEIGHT;
    Panel {
        top: TOP,
        bottom,
        x: Scale::fitting(extent(points().map(|point| point.0)), (LEFT, WIDTH - RIGHT)),
        y: Scale::log((round_down(lowest), 1.0), (bottom, TOP)),
    }
}

/// The line's corners from 100 % at the left edge down; a share of zero falls to the bottom, a loss floor
/// runs on to the right.
fn corners(series: &Series<'_>, panel: &Panel) -> Vec<(f64, f64)> {
    let points = &series.flow.ccdf;
    let start = points.first().into_iter().flat_map(|first| [(panel.x.domain.0, 1.0), (first.0, 1.0)]);
    let floor = points.last().filter(|last| last.1 > 0.0).map(|last| (WIDTH - RIGHT, panel.y.at(last.1)));
    start.chain(points.iter().copied()).map(|point| panel.at(point)).chain(floor).collect()
}

fn steps(line: &[(f64, f64)]) -> String {
    let mut data = PathData::default();
    for (index, (x, y)) in line.iter().enumerate() {
        if index == 0 { data.move_to(*x, *y) } else { data.step_to(*x, *y) }
    }
    data.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn loss_stays_as_a_floor_and_a_lossless_line_falls_to_the_bottom() {
        let (summary, figures) = (fixture::summary(1), fixture::figures());
        let drawn = crate::select::Drawn {
            summary: &summary,
            figures: &figures,
            changes: &[],
            cells: None,
            flow: "call",
            id: "",
        };
        let selection = drawn.flows(true);
        let drawn: Vec<&Series<'_>> = selection.shown.iter().collect();
        let panel = panel(&drawn);
        let end = |index: usize| *corners(drawn[index], &panel).last().unwrap();
        let loss_rate = summary.runs[0].flows["call"].loss_rate.unwrap();
        assert_eq!(end(0).0, WIDTH - RIGHT);
        assert!((end(0).1 - panel.y.at(loss_rate)).abs() < 0.1, "{:?}", end(0));
        assert_eq!(end(1).1, panel.bottom);
        let svg = ccdf(&selection, true).unwrap().svg.unwrap().0;
        let line = |index: usize| {
            let name = format!(" data-name=\"{}\"", drawn[index].label);
            let of_name = svg.split("<path ").filter(|path| path.contains(&name));
            of_name.filter(|path| path.contains("class=\"series\"")).collect::<String>()
        };
        assert!(!line(0).contains("data-end"), "{}", line(0));
        assert!(line(1).contains("data-end=\"0\""), "what the pointer reads there is no share of the axis");
    }

    #[test]
    fn nothing_to_draw_makes_no_figure() {
        assert!(ccdf(&Selection { shown: Vec::new(), left_out: 0, id: "" }, true).is_none());
    }
}
