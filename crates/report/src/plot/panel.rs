//! One panel of a chart: a rectangle with two scales, grid lines, tick labels and axis titles.
//!
//! ```text
//!  0      LEFT                        WIDTH - RIGHT  WIDTH
//!  |        |  name of the panel           |           |
//!  | title  +------------------------------+   top     |
//!  | of the |                              |           |
//!  | axis   +------------------------------+   bottom  |
//!  |          0     5     10    15    20               |
//!  |          title of the horizontal axis   bottom + BOTTOM
//! ```
//!
//! The page's module (page.js) reads the scales of a panel from its `data-` attributes, so that it can tell
//! the value under a pointer.

use maud::html;
use serde_json::{Value, json};

use super::scale::{Scale, tick_label};
use super::svg::{Point, Svg, SvgText, VerticalSpan, coordinate};

/// The width of every chart in SVG units. The page shows a chart with at most as many pixels.
pub(crate) const WIDTH: f64 = 760.0;
/// The room left of a panel for the tick labels and the title of the vertical axis.
pub(crate) const LEFT: f64 = 72.0;
/// The room right of a panel for one half of the last tick label.
pub(crate) const RIGHT: f64 = 18.0;
/// The room below the last panel for the tick labels and the title of the horizontal axis.
pub(crate) const BOTTOM: f64 = 44.0;
/// The left and the right side of every panel.
pub(crate) const X_RANGE: (f64, f64) = (LEFT, WIDTH - RIGHT);

/// The style of a limit's line in a legend. The class `limit` of the style sheet is equal.
pub(crate) const LIMIT_STYLE: &str = "stroke:var(--soft);stroke-width:1;stroke-dasharray:2 4";

/// The place and the scales of a panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub top: f64,
    pub bottom: f64,
    pub x: Scale,
    /// The range of this scale begins at the bottom.
    pub y: Scale,
}

/// Panels of one height under one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PanelStack {
    pub count: usize,
    /// The top of the first panel.
    pub top: f64,
    pub panel_height: f64,
    /// The room above each further panel, for the panel's name.
    pub gap: f64,
}

/// The words that the page shows for the value under a pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity<'a> {
    pub name: &'a str,
    /// Empty if the quantity has no unit.
    pub unit: &'a str,
}

/// A swept value on the horizontal axis, and how the scenario writes the value.
#[derive(Clone, Debug)]
pub(crate) struct SweptValue {
    pub value: f64,
    pub text: String,
}

impl PanelStack {
    /// The span of each panel, from the top of the drawing downwards.
    pub(crate) fn spans(&self) -> impl Iterator<Item = VerticalSpan> + use<> {
        let Self { count, top, panel_height, gap } = *self;
        (0..count).map(move |index| {
            let panel_top = top + index as f64 * (panel_height + gap);
            VerticalSpan { top: panel_top, bottom: panel_top + panel_height }
        })
    }

    /// The span from the top of the first panel to the bottom of the last panel.
    pub(crate) fn whole_span(&self) -> VerticalSpan {
        let last_bottom = self.spans().last().map(|span| span.bottom);
        VerticalSpan { top: self.top, bottom: last_bottom.unwrap_or(self.top + self.panel_height) }
    }

    /// A drawing with room for the panels and their axes.
    pub(crate) fn svg(&self) -> Svg {
        Svg::new(WIDTH, self.whole_span().bottom + BOTTOM)
    }

    /// Whether `index` is the last panel, which alone has labels on its horizontal axis.
    pub(crate) fn is_last(&self, index: usize) -> bool {
        index + 1 == self.count
    }
}

impl Panel {
    pub(crate) fn span(&self) -> VerticalSpan {
        VerticalSpan { top: self.top, bottom: self.bottom }
    }

    /// The place of a pair of values.
    pub(crate) fn point(&self, (x, y): (f64, f64)) -> Point {
        (self.x.at(x), self.y.at(y))
    }

    /// Opens the group of a panel over time. Close it with [`Svg::close_group`].
    pub(crate) fn open_over_time(&self, svg: &mut Svg, y: Quantity<'_>) {
        self.open_group(svg, "time", Quantity { name: "time", unit: "s" }, y, None);
    }

    /// Opens the group of a panel with a distribution.
    pub(crate) fn open_distribution(&self, svg: &mut Svg, x: Quantity<'_>, y: Quantity<'_>) {
        self.open_group(svg, "distribution", x, y, None);
    }

    /// Opens the group of a panel over swept values.
    pub(crate) fn open_over_sweep(&self, svg: &mut Svg, key: &str, y_name: &str, values: &[SweptValue]) {
        let places = values.iter().map(|swept| {
            // The corners of the lines are rounded in the same way, so that one value has one place.
            let x = coordinate(self.x.at(swept.value)).parse::<f64>().unwrap_or_default();
            json!([x, swept.text])
        });
        let places = places.collect::<Value>().to_string();
        let (x, y) = (Quantity { name: key, unit: "" }, Quantity { name: y_name, unit: "" });
        self.open_group(svg, "sweep", x, y, Some(&places));
    }

    fn open_group(
        &self,
        svg: &mut Svg,
        kind: &str,
        x: Quantity<'_>,
        y: Quantity<'_>,
        swept_places: Option<&str>,
    ) {
        let (x_scale, y_scale) = (self.x.data_attribute(), self.y.data_attribute());
        let place = format!("{} {}", coordinate(self.top), coordinate(self.bottom));
        svg.open_group(&html! {
            g class="panel" data-kind=(kind) data-x=(x_scale) data-y=(y_scale) data-place=(place)
                data-x-name=(x.name) data-x-unit=(x.unit) data-y-name=(y.name) data-y-unit=(y.unit)
                data-swept=[swept_places] {}
        });
    }

    /// Draws the grid lines and the labels of the vertical axis, with about `tick_count` ticks.
    pub(crate) fn draw_vertical_axis(&self, svg: &mut Svg, tick_count: usize, label: impl Fn(f64) -> String) {
        for tick in self.y.ticks(tick_count) {
            let y = self.y.at(tick);
            svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text(SvgText::ending_at((LEFT - 7.0, y + 4.0), "tick", &label(tick)));
        }
    }

    /// Draws the horizontal axis with about `tick_count` ticks. Without a title the axis has no labels
    /// either, because the last of stacked panels has them for all.
    pub(crate) fn draw_horizontal_axis(&self, svg: &mut Svg, tick_count: usize, title: Option<&str>) {
        self.draw_horizontal_line(svg, self.bottom);
        for tick in self.x.ticks(tick_count) {
            let x = self.x.at(tick);
            svg.line("axis xt", (x, self.bottom), (x, self.bottom + 4.0));
            if title.is_some() {
                let label = tick_label(tick);
                svg.text(SvgText::centred_at((x, self.bottom + 18.0), "tick xt", &label));
            }
        }
        if let Some(title) = title {
            self.draw_horizontal_title(svg, title);
        }
    }

    /// Draws a line of the axes from the left to the right side of the panel.
    pub(crate) fn draw_horizontal_line(&self, svg: &mut Svg, y: f64) {
        svg.line("axis", (LEFT, y), (WIDTH - RIGHT, y));
    }

    /// Draws the title of the horizontal axis below the tick labels.
    pub(crate) fn draw_horizontal_title(&self, svg: &mut Svg, title: &str) {
        svg.text(SvgText::starting_at((LEFT, self.bottom + 38.0), "title", title));
    }

    /// Draws a faint horizontal line at `value`, if the value lies in the panel.
    pub(crate) fn draw_horizontal_limit(&self, svg: &mut Svg, value: f64) {
        if self.y.contains(value) {
            let y = self.y.at(value);
            svg.line("limit", (LEFT, y), (WIDTH - RIGHT, y));
        }
    }

    /// Draws a faint vertical line at `value` with its name above the panel, if the value lies in the panel.
    pub(crate) fn draw_vertical_limit(&self, svg: &mut Svg, value: f64, name: &str) {
        if self.x.contains(value) {
            let x = self.x.at(value);
            svg.line("limit", (x, self.top), (x, self.bottom));
            svg.text(SvgText::centred_at((x, self.top - 6.0), "limit-name", name));
        }
    }
}
