//! Writes the elements of an SVG drawing.
//!
//! Coordinates are in SVG units: x grows to the right, and y grows downwards. A unit is a pixel if the page
//! has its full width. Coordinates are written with one decimal, because nobody sees a smaller difference and
//! the page stays short.
//!
//! Begin to read with [`Svg`].

use core::fmt::Write as _;

use maud::{Markup, html};

use crate::grid::wrap;

/// The mean width of a letter of 12 px text, rounded up.
pub(crate) const LETTER_WIDTH: f64 = 6.6;
/// The height of a row of an axis title. The rows leave the room for the tick labels.
const TITLE_ROW: f64 = 14.0;

/// A point: x and y.
pub(crate) type Point = (f64, f64);

/// An SVG drawing under construction.
#[derive(Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: Markup,
}

/// The vertical extent of a part of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VerticalSpan {
    pub top: f64,
    pub bottom: f64,
}

/// The point of a text that is placed on the text's coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A text and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SvgText<'a> {
    class: &'a str,
    /// Empty if the class says all.
    style: &'a str,
    point: Point,
    anchor: Anchor,
    text: &'a str,
}

/// A path and what it shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SvgPath<'a> {
    pub class: &'a str,
    /// Empty if the class says all.
    pub style: &'a str,
    /// The name of the series that the path belongs to. Empty if the path belongs to no series.
    pub series: &'a str,
    /// Whether the last value of the line is zero on a logarithmic scale. A logarithmic scale has no zero, so
    /// the line ends at the bottom of the panel.
    pub ends_at_zero: bool,
    /// The `d` attribute.
    pub data: &'a str,
}

/// A rectangle and what it shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SvgRect<'a> {
    pub class: &'a str,
    /// Empty if the class says all.
    pub style: &'a str,
    /// The name of the series that the rectangle belongs to. Empty if it belongs to no series.
    pub series: &'a str,
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A cell of a heat map: a rectangle with a text in its middle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SvgHeatCell<'a> {
    pub rect: SvgRect<'a>,
    pub text: &'a str,
    pub font_size: f64,
    /// The text for a pointer over the cell.
    pub tooltip: &'a str,
}

/// The names of a drawing for people who do not see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SvgName<'a> {
    /// Makes the ids of the title and of the description unique on the page.
    pub id: &'a str,
    pub title: &'a str,
    pub description: &'a str,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: html! {} }
    }

    pub(crate) fn path(&mut self, path: &SvgPath<'_>) {
        let SvgPath { class, style, series, data, .. } = path;
        let end = path.ends_at_zero.then_some("0");
        self.push(&html! {
            path class=(class) style=[non_empty(style)] data-name=[non_empty(series)] data-end=[end] d=(data) {}
        });
    }

    pub(crate) fn line(&mut self, class: &str, (x1, y1): Point, (x2, y2): Point) {
        let data = format!("M{} {}L{} {}", coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2));
        self.path(&SvgPath { class, data: &data, ..SvgPath::default() });
    }

    pub(crate) fn rect(&mut self, rect: &SvgRect<'_>) {
        let SvgRect { class, style, series, .. } = rect;
        let [x, y, width, height] = [rect.left, rect.top, rect.width, rect.height].map(coordinate);
        self.push(&html! {
            rect class=(class) style=[non_empty(style)] data-name=[non_empty(series)] x=(x) y=(y) width=(width) height=(height) {}
        });
    }

    pub(crate) fn text(&mut self, text: SvgText<'_>) {
        let SvgText { class, style, point, anchor, text } = text;
        let (x, y, anchor) = (coordinate(point.0), coordinate(point.1), anchor.keyword());
        self.push(&html! {
            text class=(class) style=[non_empty(style)] x=(x) y=(y) text-anchor=(anchor) { (text) }
        });
    }

    /// Draws a text that reads upwards. The middle of the text is at the point.
    pub(crate) fn upward_text(&mut self, class: &str, (x, y): Point, text: &str) {
        let transform = format!("translate({} {}) rotate(-90)", coordinate(x), coordinate(y));
        self.push(&html! { text class=(class) transform=(transform) text-anchor="middle" { (text) } });
    }

    /// Draws the title of a vertical axis, in as many rows as the title needs to fit into `span`.
    pub(crate) fn vertical_axis_title(&mut self, span: VerticalSpan, title: &str) {
        let letters = ((span.bottom - span.top) / LETTER_WIDTH) as usize;
        let wrapped = wrap(title, letters, "", "");
        let rows: Vec<&str> = wrapped.lines().filter(|row| !row.is_empty()).collect();
        // Of a text that reads upwards the capitals lie left of the point.
        let first_x = if rows.len() > 1 { TITLE_ROW - 1.0 } else { 13.0 };
        let middle = f64::midpoint(span.top, span.bottom);
        for (index, row) in rows.iter().enumerate() {
            self.upward_text("title", (first_x + TITLE_ROW * index as f64, middle), row);
        }
    }

    pub(crate) fn heat_cell(&mut self, cell: &SvgHeatCell<'_>) {
        let SvgHeatCell { rect, text, font_size, tooltip } = cell;
        let font = format!("font-size:{}px", coordinate(*font_size));
        let middle = coordinate(rect.left + rect.width / 2.0);
        // The height of a capital letter is about 0.7 of the font size, so half of it lies below the middle.
        let baseline = coordinate(rect.top + rect.height / 2.0 + font_size * 0.35);
        let [x, y, width, height] = [rect.left, rect.top, rect.width, rect.height].map(coordinate);
        self.push(&html! {
            g class="cell" {
                title { (tooltip) }
                rect style=(rect.style) x=(x) y=(y) width=(width) height=(height) {}
                text style=(font) x=(middle) y=(baseline) text-anchor="middle" { (text) }
            }
        });
    }

    /// Opens a group. `group` is an empty `g` element with the attributes of the group. Everything that is
    /// drawn before [`Self::close_group`] is within the group.
    pub(crate) fn open_group(&mut self, group: &Markup) {
        let opening_tag = group.0.strip_suffix("</g>").unwrap_or(&group.0);
        self.body.0.push_str(opening_tag);
    }

    /// Opens the group of a panel that moves if the reader enlarges the panel.
    pub(crate) fn open_data_group(&mut self) {
        self.open_group(&html! { g class="data" {} });
    }

    pub(crate) fn close_group(&mut self) {
        self.body.0.push_str("</g>");
    }

    /// Returns the whole SVG element.
    pub(crate) fn finish(self, name: SvgName<'_>) -> Markup {
        let SvgName { id, title, description } = name;
        let view_box = format!("0 0 {} {}", coordinate(self.width), coordinate(self.height));
        let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(view_box) role="img"
                aria-labelledby={ (title_id) " " (description_id) } {
                title id=(title_id) { (title) }
                desc id=(description_id) { (description) }
                (self.body)
            }
        }
    }

    fn push(&mut self, element: &Markup) {
        self.body.0.push_str(&element.0);
    }
}

impl<'a> SvgText<'a> {
    /// A text that begins at `point`.
    pub(crate) fn starting_at(point: Point, class: &'a str, text: &'a str) -> Self {
        Self { class, style: "", point, anchor: Anchor::Start, text }
    }

    /// A text whose middle is at `point`.
    pub(crate) fn centred_at(point: Point, class: &'a str, text: &'a str) -> Self {
        Self { class, style: "", point, anchor: Anchor::Middle, text }
    }

    pub(crate) fn ending_at(point: Point, class: &'a str, text: &'a str) -> Self {
        Self { class, style: "", point, anchor: Anchor::End, text }
    }

    /// The same text with a `style` attribute.
    pub(crate) fn with_style(self, style: &'a str) -> Self {
        Self { style, ..self }
    }
}

impl Anchor {
    /// The keyword of the `text-anchor` attribute.
    fn keyword(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// Returns the text of an attribute. Returns `None` for an empty text, so that the attribute is left out.
fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The `d` attribute of a path: steps and dots. A point that is equal to the point before, on a tenth of a
/// unit, is left out.
#[derive(Debug, Default)]
pub(crate) struct PathData {
    text: String,
    last: Option<(i64, i64)>,
}

impl PathData {
    /// Returns a line of steps: each value holds until the next point.
    pub(crate) fn stepped_line(points: impl IntoIterator<Item = Point>) -> String {
        let mut data = Self::default();
        for (index, point) in points.into_iter().enumerate() {
            if index == 0 { data.move_to(point) } else { data.step_to(point) }
        }
        data.finish()
    }

    fn move_to(&mut self, (x, y): Point) {
        let _ = write!(self.text, "M{} {}", coordinate(x), coordinate(y));
        self.last = Some(tenths(x, y));
    }

    /// Continues the line first across, and then up or down.
    fn step_to(&mut self, (x, y): Point) {
        let (next, last) = (tenths(x, y), self.last.unwrap_or_default());
        if next.0 != last.0 {
            let _ = write!(self.text, "H{}", coordinate(x));
        }
        if next.1 != last.1 {
            let _ = write!(self.text, "V{}", coordinate(y));
        }
        self.last = Some(next);
    }

    /// Adds a dot. A dot is a line without length, which the style sheet gives round ends.
    pub(crate) fn dot(&mut self, (x, y): Point) {
        if self.last != Some(tenths(x, y)) {
            let _ = write!(self.text, "M{} {}h0", coordinate(x), coordinate(y));
            self.last = Some(tenths(x, y));
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Writes a coordinate with one decimal. A decimal of zero is left out.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

fn tenths(x: f64, y: f64) -> (i64, i64) {
    ((x * 10.0).round() as i64, (y * 10.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_across_before_it_goes_up() {
        assert_eq!(PathData::stepped_line([(0.0, 10.0), (5.0, 10.01), (7.25, 3.0)]), "M0 10H5H7.2V3");
    }

    #[test]
    fn the_title_of_an_axis_stays_within_it() {
        let row_count = |title: &str| {
            let mut svg = Svg::new(100.0, 250.0);
            svg.vertical_axis_title(VerticalSpan { top: 14.0, bottom: 234.0 }, title);
            svg.body.0.matches("<text").count()
        };
        assert_eq!(row_count("ms"), 1);
        assert_eq!(row_count("NODELAY: p90 less UDP's least, ms (logarithmic)"), 2);
    }

    #[test]
    fn a_drawing_names_and_describes_itself() {
        let mut svg = Svg::new(100.0, 50.0);
        svg.text(SvgText::ending_at((1.0, 2.0), "label", "a < b"));
        let name = SvgName { id: "f1", title: "Title & more", description: "What it shows" };
        let text = svg.finish(name).into_string();
        let document = roxmltree::Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        assert_eq!(root.attribute("aria-labelledby"), Some("f1-title f1-desc"));
        let title =
            root.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title"))).unwrap();
        assert_eq!((title.attribute("id"), title.text()), (Some("f1-title"), Some("Title & more")));
    }
}
