//! SVG: elements with short numbers.

use core::fmt::Write as _;

use maud::{Markup, html};

use crate::grid::wrap;

/// An SVG under construction, in units that are pixels at the page's full width.
#[derive(Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: Markup,
}

/// Where a text's point lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: html! {} }
    }

    /// A path with the class that styles it and a `style` for what varies.
    pub(crate) fn path(&mut self, class: &str, style: &str, d: &str) {
        self.push(&html! { path class=(class) style=[given(style)] d=(d) {} });
    }

    /// One straight line.
    pub(crate) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.path(class, "", &format!("M{} {}L{} {}", unit(x1), unit(y1), unit(x2), unit(y2)));
    }

    /// A rectangle of the series `name`, or of none if that is empty.
    pub(crate) fn rect(
        &mut self,
        class: &str,
        style: &str,
        name: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
    ) {
        let [x, y, width, height] = [x, y, width, height].map(unit);
        self.push(&html! {
            rect class=(class) style=[given(style)] data-name=[given(name)] x=(x) y=(y) width=(width) height=(height) {}
        });
    }

    /// Text.
    pub(crate) fn text(&mut self, class: &str, style: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let (x, y, anchor) = (unit(x), unit(y), anchor.name());
        self.push(&html! {
            text class=(class) style=[given(style)] x=(x) y=(y) text-anchor=(anchor) { (text) }
        });
    }

    /// A cell of a heat map: a rectangle with a text in its middle, and what it stands for in full.
    pub(crate) fn cell(
        &mut self,
        style: &str,
        ((x, y), (width, height)): ((f64, f64), (f64, f64)),
        size: f64,
        text: &str,
        title: &str,
    ) {
        let font = format!("font-size:{}px", unit(size));
        let (middle, base) = (unit(x + width / 2.0), unit(y + height / 2.0 + size * 0.35));
        let [x, y, width, height] = [x, y, width, height].map(unit);
        self.push(&html! {
            g class="cell" {
                title { (title) }
                rect style=(style) x=(x) y=(y) width=(width) height=(height) {}
                text style=(font) x=(middle) y=(base) text-anchor="middle" { (text) }
            }
        });
    }

    /// Begins the part of a panel that moves when the panel is enlarged.
    pub(crate) fn open_data(&mut self) {
        self.begin(&html! { g class="data" {} });
    }

    /// Begins an element: what is drawn until [`Self::close`] is within it.
    pub(crate) fn begin(&mut self, element: &Markup) {
        let open = element.0.strip_suffix("</g>").unwrap_or(&element.0);
        self.body.0.push_str(open);
    }

    /// Ends what [`Self::begin`] or [`Self::open_data`] began.
    pub(crate) fn close(&mut self) {
        self.body.0.push_str("</g>");
    }

    /// A path that belongs to the series `name`.
    pub(crate) fn data(&mut self, class: &str, style: &str, name: &str, d: &str) {
        self.push(&html! { path class=(class) style=[given(style)] data-name=(name) d=(d) {} });
    }

    /// The same, of a line whose last value is zero on a logarithmic axis: it is drawn at the axis' bottom.
    pub(crate) fn data_to_zero(&mut self, class: &str, style: &str, name: &str, d: &str) {
        self.push(&html! { path class=(class) style=[given(style)] data-name=(name) data-end="0" d=(d) {} });
    }

    /// Text that reads upwards, centred on the point.
    pub(crate) fn text_upwards(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let transform = format!("translate({} {}) rotate(-90)", unit(x), unit(y));
        self.push(&html! { text class=(class) transform=(transform) text-anchor="middle" { (text) } });
    }

    /// The title of a vertical axis between `top` and `bottom`, in as many rows as it needs to fit there.
    pub(crate) fn vertical_title(&mut self, (top, bottom): (f64, f64), text: &str) {
        let rows = wrap(text, ((bottom - top) / LETTER) as usize, "", "");
        let rows: Vec<&str> = rows.lines().filter(|row| !row.is_empty()).collect();
        let first = if rows.len() > 1 { 9.0 } else { 13.0 };
        for (at, row) in rows.iter().enumerate() {
            self.text_upwards("title", (first + TITLE_ROW * at as f64, f64::midpoint(top, bottom)), row);
        }
    }

    /// The whole element. `id` makes the ids of title and description unique on the page.
    pub(crate) fn finish(self, id: &str, title: &str, description: &str) -> Markup {
        let view = format!("0 0 {} {}", unit(self.width), unit(self.height));
        let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) role="img"
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

/// The mean width of a letter, rounded up, and the height of a row of a title, which leaves tick labels their
/// room. Both of text at 12 px, in SVG units.
pub(crate) const LETTER: f64 = 6.6;
const TITLE_ROW: f64 = 14.0;

/// An attribute's text, if there is any.
fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A path's data: steps and dots, each point on a tenth of a unit and none twice in a row.
#[derive(Debug, Default)]
pub(crate) struct PathData {
    data: String,
    last: Option<(i64, i64)>,
}

impl PathData {
    /// Begins a line.
    pub(crate) fn move_to(&mut self, x: f64, y: f64) {
        let _ = write!(self.data, "M{} {}", unit(x), unit(y));
        self.last = Some(tenths(x, y));
    }

    /// Continues to a point in a step: first across, then up or down.
    pub(crate) fn step_to(&mut self, x: f64, y: f64) {
        let (to, from) = (tenths(x, y), self.last.unwrap_or_default());
        if to.0 != from.0 {
            let _ = write!(self.data, "H{}", unit(x));
        }
        if to.1 != from.1 {
            let _ = write!(self.data, "V{}", unit(y));
        }
        self.last = Some(to);
    }

    /// A dot, as a line of no length with round ends.
    pub(crate) fn dot(&mut self, x: f64, y: f64) {
        if self.last != Some(tenths(x, y)) {
            let _ = write!(self.data, "M{} {}h0", unit(x), unit(y));
            self.last = Some(tenths(x, y));
        }
    }

    pub(crate) fn finish(self) -> String {
        self.data
    }
}

/// A coordinate with one decimal at most.
pub(crate) fn unit(value: f64) -> String {
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
        let mut data = PathData::default();
        data.move_to(0.0, 10.0);
        data.step_to(5.0, 10.01);
        data.step_to(7.25, 3.0);
        assert_eq!(data.finish(), "M0 10H5H7.2V3");
    }

    #[test]
    fn the_title_of_an_axis_stays_within_it() {
        let rows = |text: &str| {
            let mut svg = Svg::new(100.0, 250.0);
            svg.vertical_title((14.0, 234.0), text);
            svg.body.0.matches("<text").count()
        };
        assert_eq!((rows("ms"), rows("NODELAY: p90 less UDP's least, ms (logarithmic)")), (1, 2));
    }

    #[test]
    fn a_figure_names_and_describes_itself() {
        let mut svg = Svg::new(100.0, 50.0);
        svg.text("label", "", (1.0, 2.0), Anchor::End, "a < b");
        let text = svg.finish("f1", "Title & more", "What it shows").into_string();
        let document = roxmltree::Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!(
            (root.attribute("role"), root.attribute("aria-labelledby")),
            (Some("img"), Some("f1-title f1-desc"))
        );
        let title =
            root.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title"))).unwrap();
        assert_eq!((title.attribute("id"), title.text()), (Some("f1-title"), Some("Title & more")));
    }
}
