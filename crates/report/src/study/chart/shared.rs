//! What the charts of a study share: styles of lines, markers of printed values, legends.

use talkpath_study::{FigureLine, FigurePoint, Role};

use crate::chart::{LegendEntry, Sample};
use crate::display::{Look, Marker, named};
use crate::plot::marker::marker_outline;
use crate::plot::panel::Panel;
use crate::plot::svg::{Svg, SvgPath};

pub(super) const TOP: f64 = 14.0;
pub(super) const HEIGHT: f64 = 220.0;
pub(super) const PANEL_BOTTOM: f64 = TOP + HEIGHT;

/// A colour and a dash. Of two lines with one colour, the dash tells them apart.
struct PlainStyle {
    colour: &'static str,
    dash: &'static str,
}

/// The styles of lines in a chart without transports, in the order of the lines.
const PLAIN_STYLES: [PlainStyle; 6] = [
    PlainStyle { colour: "var(--accent)", dash: "" },
    PlainStyle { colour: "var(--warn)", dash: ";stroke-dasharray:8 3 2 3" },
    PlainStyle { colour: "var(--soft)", dash: "" },
    PlainStyle { colour: "var(--bad)", dash: ";stroke-dasharray:2 3" },
    PlainStyle { colour: "var(--ink)", dash: ";stroke-dasharray:6 3" },
    PlainStyle { colour: "var(--ink)", dash: ";stroke-dasharray:1 3" },
];
/// The styles of lines that are not transports, in a chart with transports. They are grey, because a reader
/// could take another colour for that of a transport.
const GREY_STYLES: [PlainStyle; 4] = [
    PlainStyle { colour: "var(--ink)", dash: ";stroke-dasharray:6 3" },
    PlainStyle { colour: "var(--soft)", dash: "" },
    PlainStyle { colour: "var(--ink)", dash: ";stroke-dasharray:1 3" },
    PlainStyle { colour: "var(--soft)", dash: ";stroke-dasharray:2 3" },
];

/// The style of a line, of its bars or of its points.
#[derive(Clone, Debug)]
pub(super) struct LineStyle {
    /// The `style` attribute of a line.
    pub(super) stroke: String,
    /// The colour of bars, points and printed values.
    pub(super) colour: String,
}

/// Returns the style of each line. A line with the name of a transport has the colour of this transport, as
/// in every output.
pub(super) fn line_styles<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<LineStyle> {
    let has_transports = names.clone().any(|name| named(name).is_some());
    let plain_styles: &[PlainStyle] = if has_transports { &GREY_STYLES } else { &PLAIN_STYLES };
    let mut next_plain_styles = plain_styles.iter().cycle();
    let mut styles = Vec::new();
    for name in names {
        if let Some(display) = named(name) {
            let look = Look::from(display);
            styles.push(LineStyle { stroke: look.line_style(), colour: look.colour() });
        } else if let Some(PlainStyle { colour, dash }) = next_plain_styles.next() {
            let stroke = format!("stroke:{colour}{dash}");
            styles.push(LineStyle { stroke, colour: (*colour).to_owned() });
        }
    }
    styles
}

pub(super) fn styles_of(lines: &[FigureLine]) -> Vec<LineStyle> {
    line_styles(lines.iter().map(|line| line.label.as_str()))
}

/// A chart without a title.
pub(super) struct UntitledChart {
    pub(super) svg: Svg,
    pub(super) legend: Vec<LegendEntry>,
    pub(super) caption: String,
}

/// Joins the texts that are not empty. Each ends with one full stop.
pub(super) fn sentences(texts: &[&str]) -> String {
    let texts = texts.iter().map(|text| text.trim().trim_end_matches('.')).filter(|text| !text.is_empty());
    texts.map(|text| format!("{text}.")).collect::<Vec<_>>().join(" ")
}

/// The factor from a value to the unit of its axis. Shares are drawn in per cent if the title ends with `%`.
pub(super) fn axis_factor(title: &str) -> f64 {
    if title.ends_with('%') { 100.0 } else { 1.0 }
}

/// The domain of a horizontal axis for values from `low` to `high`. It contains zero, and goes a little
/// beyond the outermost point, so that the point's confidence interval has room.
pub(super) fn domain_with_zero((low, high): (f64, f64)) -> (f64, f64) {
    if low.is_finite() { (1.03 * low.min(0.0), 1.03 * high.max(0.0)) } else { (0.0, 1.0) }
}

pub(super) fn points(lines: &[FigureLine]) -> impl Iterator<Item = &FigurePoint> {
    lines.iter().flat_map(|line| &line.points)
}

/// Every value on the vertical axis, in the unit of the axis: medians, ends of confidence intervals, printed
/// values.
pub(super) fn vertical_values(lines: &[FigureLine], factor: f64) -> impl Iterator<Item = f64> {
    points(lines).flat_map(move |point| {
        let (low, high) = point.ci95.unwrap_or((point.median, point.median));
        let measured = [low, point.median, high];
        measured.into_iter().chain(point.published.iter().copied()).map(move |value| value * factor)
    })
}

/// The hollow markers of the printed values beside a point of ours.
pub(super) struct PrintedMarkers<'a> {
    pub(super) point: &'a FigurePoint,
    /// SVG units.
    pub(super) x: f64,
    /// The colour of the line or bar that the values belong to.
    pub(super) colour: &'a str,
    /// The factor from a value to the unit of the axis.
    pub(super) factor: f64,
}

impl PrintedMarkers<'_> {
    /// Draws the values that the scale can show.
    pub(super) fn draw(&self, svg: &mut Svg, panel: &Panel) {
        for printed in &self.point.published {
            let value = printed * self.factor;
            if panel.y.can_show(value) {
                let outline = marker_outline(marker_of(self.point.role), (self.x, panel.y.at(value)));
                let style = printed_style(self.colour);
                svg.path(&SvgPath { style: &style, data: &outline, ..SvgPath::default() });
            }
        }
    }
}

pub(super) fn printed_style(colour: &str) -> String {
    format!("fill:var(--page);stroke:{colour};stroke-width:1.3")
}

/// The marker of a printed value. It shows how our value and the printed value depend on each other.
const fn marker_of(role: Role) -> Marker {
    match role {
        Role::Predicted => Marker::Diamond,
        Role::Assumed => Marker::Triangle,
        Role::Fitted => Marker::Square,
        Role::Exempt => Marker::Cross,
    }
}

pub(super) fn printed_entries(lines: &[FigureLine]) -> Vec<LegendEntry> {
    let names = [
        (Role::Predicted, "printed"),
        (Role::Assumed, "printed, where an assumption of ours decides"),
        (Role::Fitted, "printed, and ours fitted to it"),
        (Role::Exempt, "printed, and ruled out by the publication itself"),
    ];
    let has_printed =
        |role: Role| points(lines).any(|point| point.role == role && !point.published.is_empty());
    let entries = names.into_iter().filter(|(role, _)| has_printed(*role));
    let entries = entries.map(|(role, name)| {
        LegendEntry::new(name, Sample::marker(printed_style("var(--ink)"), marker_of(role)))
    });
    entries.collect()
}

/// The legend of a chart with lines. A line alone without printed values needs no legend.
pub(super) fn line_legend(names: &[&str], lines: &[FigureLine]) -> Vec<LegendEntry> {
    let styles = line_styles(names.iter().copied());
    let mut entries: Vec<LegendEntry> =
        names.iter().zip(styles).map(|(name, style)| LegendEntry::plain_line(name, style.stroke)).collect();
    entries.extend(printed_entries(lines));
    if entries.len() > 1 { entries } else { Vec::new() }
}

/// The sentence of a caption about printed values. Empty if there are none.
pub(super) fn printed_note(lines: &[FigureLine]) -> &'static str {
    if points(lines).any(|point| !point.published.is_empty()) {
        "Hollow markers are the publication's printed figures, each of its measurements by itself, in the colour of what they \
         belong to"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_horizontal_axis_contains_zero_and_goes_beyond_its_outermost_points() {
        assert_eq!(domain_with_zero((80.0, 320.0)), (0.0, 1.03 * 320.0));
        assert_eq!(domain_with_zero((-2.0, 3.0)), (-2.06, 1.03 * 3.0));
        assert_eq!(domain_with_zero((-2.0, -1.0)), (-2.06, 0.0));
    }

    #[test]
    fn a_line_with_the_name_of_a_transport_has_its_colour() {
        let styles = line_styles(["5 ms", "TCP", "UDP"].into_iter());
        assert_eq!(styles[2].stroke, "stroke:var(--t-udp);stroke-dasharray:none");
        assert_eq!(styles[1].colour, "var(--t-tcp)");
    }

    #[test]
    fn a_line_that_is_no_transport_cannot_be_taken_for_one() {
        let colours = |names: &[&'static str]| -> Vec<String> {
            line_styles(names.iter().copied()).into_iter().map(|style| style.colour).collect()
        };
        assert_eq!(colours(&["slow", "UDP", "fast"]), ["var(--ink)", "var(--t-udp)", "var(--soft)"]);
        assert_eq!(colours(&["slow", "fast"]), ["var(--accent)", "var(--warn)"]);
    }
}
