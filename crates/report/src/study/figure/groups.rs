//! Groups of bars: a median and its interval each, with printed figures beside it. Where values span decades
//! the scale is logarithmic, and points replace bars, whose length would mean nothing.

use talkpath_study::{FigureLine, FigureOutcome};

use super::{
    Drawn, HEIGHT, Looks, TOP, about_printed, draw_printed, printed_entries, scale, sentences, values,
};
use crate::display::Marker;
use crate::figure::{Entry, Sample, extent, marker};
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Anchor, Svg, unit};

/// The most groups whose names fit beside each other. With more groups the names read upwards.
const MOST_ACROSS: usize = 12;
/// The height that they take beyond that of names beside each other, SVG units.
const NAMES_UPWARDS: f64 = 18.0;
/// The share of a group's width that its bars take.
const BARS: f64 = 0.76;
/// The share of a bar's place that is bar: the printed figures are behind it.
const BAR: f64 = 0.62;

pub(super) fn draw(figure: &FigureOutcome, names: &[String], lines: &[FigureLine]) -> Drawn {
    let scale = scale(&figure.y_title);
    let (least, high) = extent(values(lines, scale));
    // Zeros do not keep the others from a logarithmic scale.
    let (low, _) = extent(values(lines, scale).filter(|value| *value > 0.0));
    let range = match (least < 0.0, low.is_finite()) {
        (true, _) => (least, high),
        (false, true) => (low, high),
        (false, false) => (0.0, 1.0),
    };
    let y = Scale::fitting(range, (TOP + HEIGHT, TOP));
    let panel =
        Panel { top: TOP, bottom: TOP + HEIGHT, x: Scale::linear((0.0, 1.0), (LEFT, WIDTH - RIGHT)), y };
    let is_log = y.domain.0 > 0.0;
    let is_upwards = names.len() > MOST_ACROSS;
    let below = if figure.x_title.is_empty() || !is_upwards { BOTTOM } else { BOTTOM + NAMES_UPWARDS };
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + below);
    panel.vertical_axis(&mut svg, 4, tick_label);
    svg.line("axis", (LEFT, panel.bottom), (WIDTH - RIGHT, panel.bottom));
    if y.domain.0 < 0.0 {
        svg.line("axis", (LEFT, y.at(0.0)), (WIDTH - RIGHT, y.at(0.0)));
    }
    let title = if is_log { format!("{} (logarithmic)", figure.y_title) } else { figure.y_title.clone() };
    svg.vertical_title((TOP, panel.bottom), &title);
    let group = (WIDTH - RIGHT - LEFT) / names.len().max(1) as f64;
    for (at, name) in names.iter().enumerate() {
        let x = LEFT + (at as f64 + 0.5) * group;
        match is_upwards {
            true => svg.text_upwards("tick", (x + 4.0, panel.bottom + 24.0), name),
            false => svg.text("tick", "", (x, panel.bottom + 18.0), Anchor::Middle, name),
        }
    }
    if !figure.x_title.is_empty() {
        svg.text("title", "", (LEFT, panel.bottom + below - 6.0), Anchor::Start, &figure.x_title);
    }
    let place = group * BARS / lines.len().max(1) as f64;
    let looks = Looks::of(lines);
    for (index, line) in lines.iter().enumerate() {
        let colour = looks.at(index).colour.as_str();
        for point in &line.points {
            let left = LEFT + (point.x + (1.0 - BARS) / 2.0) * group + index as f64 * place;
            let width = place * if point.published.is_empty() { 0.9 } else { BAR };
            // What is printed beside a zero of ours is drawn all the same.
            if y.has_place(point.median) {
                let bar = Bar { left, width, value: point.median * scale, fill: colour };
                if is_log {
                    bar.draw_as_point(&mut svg, &panel);
                } else {
                    bar.draw(&mut svg, &panel);
                }
                if let Some((low, high)) = point.ci95 {
                    let x = bar.middle();
                    svg.line("axis", (x, y.at(low * scale)), (x, y.at(high * scale)));
                }
            }
            draw_printed(&mut svg, &panel, left + place * (BAR + 0.16), point, colour, scale);
        }
    }
    Drawn { svg, legend: names_of(lines, is_log), caption: caption(lines, is_log) }
}

/// A median as it is drawn.
struct Bar<'a> {
    /// Its left side, SVG units.
    left: f64,
    /// SVG units.
    width: f64,
    /// In the unit of the axis.
    value: f64,
    /// A colour.
    fill: &'a str,
}

impl Bar<'_> {
    fn middle(&self) -> f64 {
        self.left + self.width / 2.0
    }

    /// From the line of zero on.
    fn draw(&self, svg: &mut Svg, panel: &Panel) {
        let (y, zero) = (panel.y.at(self.value), panel.y.at(0.0));
        let style = format!("fill:{};fill-opacity:.8", self.fill);
        svg.rect("", &style, "", (self.left, y.min(zero)), (self.width, (y - zero).abs()));
    }

    /// On a logarithmic scale, which has no zero.
    fn draw_as_point(&self, svg: &mut Svg, panel: &Panel) {
        let path = marker(Marker::Circle, self.middle(), panel.y.at(self.value));
        svg.path("", &format!("fill:{}", self.fill), &path);
    }
}

fn names_of(lines: &[FigureLine], is_log: bool) -> Vec<Entry> {
    let shape =
        if is_log { marker(Marker::Circle, 14.0, 7.0) } else { format!("M{} 1h12v12h-12Z", unit(8.0)) };
    let looks = Looks::of(lines);
    let own = lines.iter().zip(&looks.0).map(|(line, look)| {
        let colour = format!("fill:{}", look.colour);
        Entry::new(&line.label, Sample::shape(colour, shape.clone()))
    });
    own.chain(printed_entries(lines)).collect()
}

fn caption(lines: &[FigureLine], is_log: bool) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let has_zero = points().any(|point| point.median <= 0.0);
    let has_printed_zero = points().flat_map(|point| &point.published).any(|value| *value <= 0.0);
    sentences(&[
        "Medians over repetitions under the base assumptions; upright lines are 95 % confidence intervals",
        about_printed(lines),
        if is_log && has_zero {
            "A median of 0 has no place on this scale: of ours nothing is drawn there"
        } else {
            ""
        },
        if is_log && has_printed_zero {
            "A printed 0 has no place on this scale, and is not drawn"
        } else {
            ""
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{Drawing, FigurePoint, Role};

    fn drawn(medians: [f64; 2]) -> String {
        drawn_beside(medians, [2.0, 3.0])
    }

    fn drawn_beside(medians: [f64; 2], published: [f64; 2]) -> String {
        let points = (0..).zip(medians).map(|(at, median)| FigurePoint {
            published: published.to_vec(),
            role: if at == 0 { Role::Predicted } else { Role::Fitted },
            ..FigurePoint::new(f64::from(at), median, None)
        });
        let lines = vec![FigureLine { label: "UDP".to_owned(), points: points.collect() }];
        let names = vec!["1 KB".to_owned(), "60 KB".to_owned()];
        let figure = FigureOutcome {
            number: "1".to_owned(),
            title: "title".to_owned(),
            x_title: "length".to_owned(),
            y_title: "ms".to_owned(),
            note: String::new(),
            drawing: Drawing::Groups { names, lines },
        };
        super::super::draw(&figure).html().into_string()
    }

    #[test]
    fn printed_figures_stand_beside_the_bars_and_say_what_ours_were_fitted_to() {
        let html = drawn([2.5, 4.0]);
        assert_eq!(html.matches("<rect").count(), 2);
        assert!(html.contains(">length</text>"), "{html}");
        // Two figures each, in the colour of their bar, and a sample of each shape in the legend.
        assert_eq!(html.matches("stroke:var(--t-udp);stroke-width:1.3").count(), 4);
        assert_eq!(html.matches(&super::super::printed("var(--ink)")).count(), 2);
        assert!(html.contains("printed, and ours fitted to it"), "{html}");
    }

    #[test]
    fn what_is_printed_is_drawn_where_ours_is_a_zero_that_the_scale_has_no_place_for() {
        let html = drawn([0.0, 4000.0]);
        assert!(html.contains("of ours nothing is drawn there"), "{html}");
        assert_eq!(html.matches("stroke:var(--t-udp);stroke-width:1.3").count(), 4);
    }

    #[test]
    fn a_printed_zero_is_not_drawn_where_the_scale_has_no_place_for_it() {
        let html = drawn_beside([2.5, 4000.0], [0.0, 3.0]);
        assert!(html.contains("A printed 0 has no place on this scale"), "{html}");
        assert_eq!(html.matches("stroke:var(--t-udp);stroke-width:1.3").count(), 2);
        assert!(!drawn_beside([2.5, 4.0], [0.0, 3.0]).contains("has no place"));
    }

    #[test]
    fn a_bar_below_zero_hangs_from_the_line_of_zero() {
        let html = drawn([-2.0, 4.0]);
        let bars: Vec<&str> = html.split("<rect").skip(1).collect();
        let number = |bar: &str, name: &str| -> f64 {
            let rest = bar.split(&format!(" {name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let ends = |bar: &str| (number(bar, "y"), number(bar, "y") + number(bar, "height"));
        let ((top, bottom), (_, zero)) = (ends(bars[0]), ends(bars[1]));
        assert!((top - zero).abs() < 0.11 && bottom > zero, "{html}");
    }

    #[test]
    fn over_decades_points_stand_for_bars() {
        let html = drawn([2.5, 4000.0]);
        assert!(!html.contains("<rect") && html.contains("(logarithmic)"), "{html}");
    }
}
