//! The chart of groups of bars: a bar is a median with its confidence interval, and printed values are beside
//! it.
//!
//! If the values span decades, the scale is logarithmic. A logarithmic scale has no zero from which a bar
//! could begin, so the medians are points.

use talkpath_study::{FigureLine, FigureOutcome, FigurePoint};

use super::shared::{
    PANEL_BOTTOM, PrintedMarkers, TOP, UntitledChart, axis_factor, points, printed_entries, printed_note,
    sentences, styles_of, vertical_values,
};
use crate::chart::{LegendEntry, Sample, extent};
use crate::display::Marker;
use crate::plot::marker::marker_outline;
use crate::plot::panel::{BOTTOM, LEFT, Panel, RIGHT, WIDTH, X_RANGE};
use crate::plot::scale::{Scale, tick_label};
use crate::plot::svg::{Svg, SvgPath, SvgRect, SvgText, coordinate};

/// The most groups whose names fit beside each other. With more groups the names read upwards.
const MAX_LEVEL_NAMES: usize = 12;
/// The further height of a chart whose names read upwards, if the axis also has a title.
const UPWARD_NAMES_HEIGHT: f64 = 18.0;
/// The share of a group's width that its slots take. The rest separates the groups.
const GROUP_SHARE: f64 = 0.76;
/// The share of a slot's width that its bar takes, if the printed values are beside the bar.
const NARROW_BAR_SHARE: f64 = 0.62;
/// The share of a slot's width that its bar takes, if there are no printed values.
const WIDE_BAR_SHARE: f64 = 0.9;
/// The place of the printed values in a slot, as a share of its width.
const PRINTED_PLACE: f64 = 0.78;

/// Draws a group of bars for each of `names`, in which each line has a bar.
pub(super) fn draw(figure: &FigureOutcome, names: &[String], lines: &[FigureLine]) -> UntitledChart {
    let factor = axis_factor(&figure.y_title);
    let panel = Panel {
        top: TOP,
        bottom: PANEL_BOTTOM,
        x: Scale::linear((0.0, 1.0), X_RANGE),
        y: vertical_scale(lines, factor),
    };
    let chart = GroupChart {
        figure,
        names,
        lines,
        panel,
        factor,
        group_width: (WIDTH - RIGHT - LEFT) / names.len().max(1) as f64,
    };
    UntitledChart { svg: chart.draw(), legend: chart.legend(), caption: chart.caption() }
}

fn vertical_scale(lines: &[FigureLine], factor: f64) -> Scale {
    let (lowest, highest) = extent(vertical_values(lines, factor));
    let (lowest_positive, _) = extent(vertical_values(lines, factor).filter(|value| *value > 0.0));
    let domain = if lowest < 0.0 {
        (lowest, highest)
    } else if lowest_positive.is_finite() {
        // A zero among the values does not prevent a logarithmic scale.
        (lowest_positive, highest)
    } else {
        (0.0, 1.0)
    };
    Scale::fitting(domain, (PANEL_BOTTOM, TOP))
}

struct GroupChart<'a> {
    figure: &'a FigureOutcome,
    names: &'a [String],
    lines: &'a [FigureLine],
    panel: Panel,
    /// The factor from a value to the unit of the axis.
    factor: f64,
    /// SVG units.
    group_width: f64,
}

impl GroupChart<'_> {
    fn is_logarithmic(&self) -> bool {
        self.panel.y.domain.0 > 0.0
    }

    fn has_upward_names(&self) -> bool {
        self.names.len() > MAX_LEVEL_NAMES
    }

    /// The height of the names and of the axis title below the panel.
    fn height_below(&self) -> f64 {
        if self.has_upward_names() && !self.figure.x_title.is_empty() {
            BOTTOM + UPWARD_NAMES_HEIGHT
        } else {
            BOTTOM
        }
    }

    fn draw(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, PANEL_BOTTOM + self.height_below());
        self.draw_axes(&mut svg);
        self.draw_names(&mut svg);
        let slot_width = self.group_width * GROUP_SHARE / self.lines.len().max(1) as f64;
        for (index, (line, style)) in self.lines.iter().zip(styles_of(self.lines)).enumerate() {
            for point in &line.points {
                let first_slot = LEFT + (point.x + (1.0 - GROUP_SHARE) / 2.0) * self.group_width;
                let slot = Slot {
                    left: first_slot + index as f64 * slot_width,
                    width: slot_width,
                    colour: &style.colour,
                };
                self.draw_slot(&mut svg, &slot, point);
            }
        }
        svg
    }

    fn draw_axes(&self, svg: &mut Svg) {
        self.panel.draw_vertical_axis(svg, 4, tick_label);
        self.panel.draw_horizontal_line(svg, PANEL_BOTTOM);
        if self.panel.y.domain.0 < 0.0 {
            self.panel.draw_horizontal_line(svg, self.panel.y.at(0.0));
        }
        let mut title = self.figure.y_title.clone();
        if self.is_logarithmic() {
            title.push_str(" (logarithmic)");
        }
        svg.vertical_axis_title(self.panel.span(), &title);
    }

    fn draw_names(&self, svg: &mut Svg) {
        for (index, name) in self.names.iter().enumerate() {
            let middle = LEFT + (index as f64 + 0.5) * self.group_width;
            if self.has_upward_names() {
                svg.upward_text("tick", (middle + 4.0, PANEL_BOTTOM + 24.0), name);
            } else {
                svg.text(SvgText::centred_at((middle, PANEL_BOTTOM + 18.0), "tick", name));
            }
        }
        if !self.figure.x_title.is_empty() {
            let point = (LEFT, PANEL_BOTTOM + self.height_below() - 6.0);
            svg.text(SvgText::starting_at(point, "title", &self.figure.x_title));
        }
    }

    /// Draws a median with its confidence interval, and its printed values. The printed values are drawn even
    /// if the median is a zero, which a logarithmic scale cannot show.
    fn draw_slot(&self, svg: &mut Svg, slot: &Slot<'_>, point: &FigurePoint) {
        let y = &self.panel.y;
        let bar_share = if point.published.is_empty() { WIDE_BAR_SHARE } else { NARROW_BAR_SHARE };
        let bar_width = slot.width * bar_share;
        if y.can_show(point.median) {
            let median = y.at(point.median * self.factor);
            let middle = slot.left + bar_width / 2.0;
            if self.is_logarithmic() {
                let (style, data) =
                    (format!("fill:{}", slot.colour), marker_outline(Marker::Circle, (middle, median)));
                svg.path(&SvgPath { style: &style, data: &data, ..SvgPath::default() });
            } else {
                let zero = y.at(0.0);
                svg.rect(&SvgRect {
                    style: &format!("fill:{};fill-opacity:.8", slot.colour),
                    left: slot.left,
                    top: median.min(zero),
                    width: bar_width,
                    height: (median - zero).abs(),
                    ..SvgRect::default()
                });
            }
            if let Some((low, high)) = point.ci95 {
                svg.line("axis", (middle, y.at(low * self.factor)), (middle, y.at(high * self.factor)));
            }
        }
        let x = slot.left + slot.width * PRINTED_PLACE;
        PrintedMarkers { point, x, colour: slot.colour, factor: self.factor }.draw(svg, &self.panel);
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let mut entries = Vec::new();
        for (line, style) in self.lines.iter().zip(styles_of(self.lines)) {
            let fill = format!("fill:{}", style.colour);
            let sample = if self.is_logarithmic() {
                Sample::marker(fill, Marker::Circle)
            } else {
                Sample::shape(fill, format!("M{} 1h12v12h-12Z", coordinate(8.0)))
            };
            entries.push(LegendEntry::new(&line.label, sample));
        }
        entries.extend(printed_entries(self.lines));
        entries
    }

    fn caption(&self) -> String {
        let has_zero = points(self.lines).any(|point| point.median <= 0.0);
        let has_printed_zero =
            points(self.lines).flat_map(|point| &point.published).any(|value| *value <= 0.0);
        let zero_note = if self.is_logarithmic() && has_zero {
            "A median of 0 has no place on this scale: of ours nothing is drawn there"
        } else {
            ""
        };
        let printed_zero_note = if self.is_logarithmic() && has_printed_zero {
            "A printed 0 has no place on this scale, and is not drawn"
        } else {
            ""
        };
        sentences(&[
            "Medians over repetitions under the base assumptions; upright lines are 95 % confidence intervals",
            printed_note(self.lines),
            zero_note,
            printed_zero_note,
        ])
    }
}

/// The place of a line's bar in a group.
struct Slot<'a> {
    /// SVG units.
    left: f64,
    /// SVG units.
    width: f64,
    colour: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::{Drawing, FigurePoint, Role};

    fn html(medians: [f64; 2]) -> String {
        html_beside(medians, [2.0, 3.0])
    }

    fn html_beside(medians: [f64; 2], published: [f64; 2]) -> String {
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
        super::super::chart(&figure).html().into_string()
    }

    #[test]
    fn printed_values_are_beside_the_bars_and_the_legend_says_what_ours_were_fitted_to() {
        let html = html([2.5, 4.0]);
        assert_eq!(html.matches("<rect").count(), 2);
        assert!(html.contains(">length</text>"), "{html}");
        // Two figures each, in the colour of their bar, and a sample of each shape in the legend.
        assert_eq!(html.matches("stroke:var(--t-udp);stroke-width:1.3").count(), 4);
        assert_eq!(html.matches(&super::super::shared::printed_style("var(--ink)")).count(), 2);
        assert!(html.contains("printed, and ours fitted to it"), "{html}");
    }

    #[test]
    fn a_printed_value_is_drawn_beside_a_zero_of_ours_that_the_scale_cannot_show() {
        let html = html([0.0, 4000.0]);
        assert!(html.contains("of ours nothing is drawn there"), "{html}");
        assert_eq!(html.matches("stroke:var(--t-udp);stroke-width:1.3").count(), 4);
    }

    #[test]
    fn a_printed_zero_is_not_drawn_if_the_scale_cannot_show_it() {
        let html = html_beside([2.5, 4000.0], [0.0, 3.0]);
        assert!(html.contains("A printed 0 has no place on this scale"), "{html}");
        assert_eq!(html.matches("stroke:var(--t-udp);stroke-width:1.3").count(), 2);
        assert!(!html_beside([2.5, 4.0], [0.0, 3.0]).contains("has no place"));
    }

    #[test]
    fn a_bar_below_zero_hangs_from_the_line_of_zero() {
        let html = html([-2.0, 4.0]);
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
    fn medians_over_decades_are_points() {
        let html = html([2.5, 4000.0]);
        assert!(!html.contains("<rect") && html.contains("(logarithmic)"), "{html}");
    }
}
