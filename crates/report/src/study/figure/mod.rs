//! A publication's figures from the outcome's data, one file a kind of drawing.

mod groups;
mod lines;
mod scatter;
mod traces;

use talkpath_study::{Drawing, FigureLine, FigureOutcome, FigurePoint, Role};

use crate::display::{Marker, named};
use crate::figure::{Entry, Figure, Sample, colour, marker, stroke, word};
use crate::plot::panel::Panel;
use crate::plot::svg::Svg;

const TOP: f64 = 14.0;
const HEIGHT: f64 = 220.0;

/// Colours, and dashes that say the same of lines, in the order of the lines.
const STYLES: [(&str, &str); 6] = [
    ("var(--accent)", ""),
    ("var(--warn)", ";stroke-dasharray:8 3 2 3"),
    ("var(--soft)", ""),
    ("var(--bad)", ";stroke-dasharray:2 3"),
    ("var(--ink)", ";stroke-dasharray:6 3"),
    ("var(--ink)", ";stroke-dasharray:1 3"),
];
/// The same beside transports.
const GREYS: [(&str, &str); 4] = [
    ("var(--ink)", ";stroke-dasharray:6 3"),
    ("var(--soft)", ""),
    ("var(--ink)", ";stroke-dasharray:1 3"),
    ("var(--soft)", ";stroke-dasharray:2 3"),
];
/// A printed figure's outline, in the colour of the line or bar that it belongs to.
fn printed(colour: &str) -> String {
    format!("fill:var(--page);stroke:{colour};stroke-width:1.3")
}

/// How the lines, bars or points of one figure look, in their order.
struct Looks(Vec<Look>);

struct Look {
    /// Style of a line.
    stroke: String,
    /// Colour of what is filled, and of printed figures.
    colour: String,
}

impl Looks {
    /// What is called as a transport has its colour, as in every output. The others take theirs in order;
    /// beside a transport they have no hue, as each could be taken for one.
    fn of(lines: &[FigureLine]) -> Self {
        Self::named(lines.iter().map(|line| line.label.as_str()))
    }

    fn named<'a>(labels: impl Iterator<Item = &'a str> + Clone) -> Self {
        let is_beside = labels.clone().any(|label| named(label).is_some());
        let styles: &[(&str, &str)] = if is_beside { &GREYS[..] } else { &STYLES[..] };
        let mut others = styles.iter().cycle();
        let look = |label| match named(label) {
            Some(display) => Look { stroke: stroke(display.into()), colour: colour(display.into()) },
            None => {
                // The cycle does not end.
                let (colour, dash) = others.next().copied().unwrap_or(STYLES[0]);
                Look { stroke: format!("stroke:{colour}{dash}"), colour: colour.to_owned() }
            }
        };
        Self(labels.map(look).collect())
    }

    /// The look of the `at`-th.
    fn at(&self, at: usize) -> &Look {
        &self.0[at]
    }
}

/// A drawing, before it has a title.
struct Drawn {
    svg: Svg,
    legend: Vec<Entry>,
    caption: String,
}

impl Drawn {
    /// The drawing of `figure` under `title`.
    fn titled(self, figure: &FigureOutcome, title: String) -> Figure {
        let id = word(&figure.number);
        let description = format!("{} against {}.", figure.y_title, x_title(figure));
        let svg = Some(self.svg.finish(&format!("svg-{id}"), &title, &description));
        let caption = sentences(&[&self.caption, &figure.note]);
        Figure { id, title, legend: self.legend, svg, caption }
    }
}

/// The figure, ready for the page.
pub(super) fn draw(figure: &FigureOutcome) -> Figure {
    let title = format!("Figure {}: {}", figure.number, figure.title);
    let drawn = match &figure.drawing {
        Drawing::Traces { panels, seconds, levels } => traces::draw(figure, panels, *seconds, levels),
        Drawing::Lines { lines } => lines::draw(figure, lines),
        Drawing::Quantiles { lines } => lines::draw_quantiles(figure, lines),
        Drawing::Groups { names, lines } => groups::draw(figure, names, lines),
        Drawing::Scatter { lines, fit } => scatter::draw(figure, lines, *fit),
        Drawing::Absent { why } => {
            let seen = "It stands in the publication";
            let caption = sentences(&[&format!("Not drawn again: {why}."), seen, &figure.note]);
            return Figure { id: word(&figure.number), title, legend: Vec::new(), svg: None, caption };
        }
    };
    drawn.titled(figure, title)
}

fn x_title(figure: &FigureOutcome) -> &str {
    if figure.x_title.is_empty() { "what is named below" } else { &figure.x_title }
}

/// Texts that are not empty, each with a full stop, in a row.
fn sentences(texts: &[&str]) -> String {
    let texts = texts.iter().map(|text| text.trim().trim_end_matches('.')).filter(|text| !text.is_empty());
    texts.map(|text| format!("{text}.")).collect::<Vec<_>>().join(" ")
}

/// Shares are drawn in per cent if the axis says so.
fn scale(title: &str) -> f64 {
    if title.ends_with('%') { 100.0 } else { 1.0 }
}

/// The ends of a horizontal axis for values from `low` to `high`: zero, and a little beyond the outermost
/// point, which leaves room for its interval.
fn with_zero((low, high): (f64, f64)) -> (f64, f64) {
    if low.is_finite() { (1.03 * low.min(0.0), 1.03 * high.max(0.0)) } else { (0.0, 1.0) }
}

/// Every value on the vertical axis: medians, the ends of their intervals, printed figures.
fn values(lines: &[FigureLine], scale: f64) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|line| &line.points).flat_map(move |point| {
        let (low, high) = point.ci95.unwrap_or((point.median, point.median));
        let own = [low, point.median, high];
        own.into_iter().chain(point.published.iter().copied()).map(move |value| value * scale)
    })
}

/// The printed figures of `point` at `x`: a diamond, a triangle if an assumption decides
/// ours, a square if ours was fitted to it, a cross if it is
/// exempt. What has no place on the scale is left out.
fn draw_printed(svg: &mut Svg, panel: &Panel, x: f64, point: &FigurePoint, colour: &str, scale: f64) {
    for value in point.published.iter().map(|value| value * scale).filter(|it| panel.y.has_place(*it)) {
        let y = panel.y.at(value);
        svg.path("", &printed(colour), &marker(shape(point.role), x, y));
    }
}

const fn shape(role: Role) -> Marker {
    match role {
        Role::Predicted => Marker::Diamond,
        Role::Assumed => Marker::Triangle,
        Role::Fitted => Marker::Square,
        Role::Exempt => Marker::Cross,
    }
}

/// Legend entries for the markers of the printed figures in `lines`.
fn printed_entries(lines: &[FigureLine]) -> Vec<Entry> {
    let roles = [
        (Role::Predicted, "printed"),
        (Role::Assumed, "printed, where an assumption of ours decides"),
        (Role::Fitted, "printed, and ours fitted to it"),
        (Role::Exempt, "printed, and ruled out by the publication itself"),
    ];
    let has = |role: Role| {
        let points = || lines.iter().flat_map(|line| &line.points);
        points().any(|point| point.role == role && !point.published.is_empty())
    };
    let entry =
        |(role, name)| Entry::new(name, Sample::shape(printed("var(--ink)"), marker(shape(role), 14.0, 7.0)));
    roles.into_iter().filter(|(role, _)| has(*role)).map(entry).collect()
}

/// A legend of line styles, and of printed figures if there are any; none for one line alone.
fn line_legend(names: &[&str], lines: &[FigureLine]) -> Vec<Entry> {
    let looks = Looks::named(names.iter().copied());
    let styled = names.iter().zip(&looks.0).map(|(name, look)| Entry::line(name, look.stroke.clone()));
    let entries: Vec<_> = styled.chain(printed_entries(lines)).collect();
    if entries.len() > 1 { entries } else { Vec::new() }
}

/// What a caption says of printed figures.
fn about_printed(lines: &[FigureLine]) -> &'static str {
    let has_any = lines.iter().flat_map(|line| &line.points).any(|point| !point.published.is_empty());
    if has_any {
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
    fn an_axis_reaches_beyond_its_outermost_points_and_has_zero() {
        assert_eq!(with_zero((80.0, 320.0)), (0.0, 1.03 * 320.0));
        assert_eq!(with_zero((-2.0, 3.0)), (-2.06, 1.03 * 3.0));
        assert_eq!(with_zero((-2.0, -1.0)), (-2.06, 0.0));
    }

    #[test]
    fn what_is_called_as_a_transport_has_its_colour_wherever_it_stands() {
        let looks = Looks::named(["5 ms", "TCP", "UDP"].into_iter());
        assert_eq!(looks.at(2).stroke, "stroke:var(--t-udp);stroke-dasharray:none");
        assert_eq!(looks.at(1).colour, "var(--t-tcp)");
    }

    #[test]
    fn what_is_no_transport_cannot_be_taken_for_one() {
        let looks = Looks::named(["slow", "UDP", "fast"].into_iter());
        assert_eq!((looks.at(0).colour.as_str(), looks.at(2).colour.as_str()), ("var(--ink)", "var(--soft)"));
        let alone = Looks::named(["slow", "fast"].into_iter());
        assert_eq!(
            (alone.at(0).colour.as_str(), alone.at(1).colour.as_str()),
            ("var(--accent)", "var(--warn)")
        );
    }
}
