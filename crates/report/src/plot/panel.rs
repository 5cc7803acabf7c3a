//! One panel: a rectangle with two scales, grid lines, tick labels and titles.

use maud::html;
use serde_json::{Value, json};

use super::scale::{Scale, tick_label};
use super::svg::{Anchor, Svg, unit};

/// Width of every figure in SVG units; the page shows it at up to this many pixels.
pub(crate) const WIDTH: f64 = 760.0;
/// Room left of a panel for tick labels and the axis title.
pub(crate) const LEFT: f64 = 72.0;
/// Room right of a panel for the half of the last tick's label.
pub(crate) const RIGHT: f64 = 18.0;
/// Room under the last panel for tick labels and the axis title.
pub(crate) const BOTTOM: f64 = 44.0;

/// The style of a limit's line in a legend; `.limit` of the style sheet is the same.
pub(crate) const LIMIT_STYLE: &str = "stroke:var(--soft);stroke-width:1;stroke-dasharray:2 4";

/// A panel's place and scales. `y` runs from the bottom up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub top: f64,
    pub bottom: f64,
    pub x: Scale,
    pub y: Scale,
}

impl Panel {
    /// The place of a value pair.
    pub(crate) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Begins the panel: what is drawn until `svg.close()` has its scales. `x` and `y` name the values and
    /// their units, for the readings under a pointer.
    pub(crate) fn open(&self, svg: &mut Svg, kind: &str, x: (&str, &str), y: (&str, &str)) {
        self.begin(svg, kind, x, y, None);
    }

    /// Begins a panel over swept values, given with how each is written; [`Self::open`] says the rest.
    pub(crate) fn open_swept(&self, svg: &mut Svg, x: &str, y: &str, values: &[(f64, String)]) {
        let places = values.iter().map(|(value, text)| {
            // As the lines' corners are written, so that the same value has the same place.
            json!([unit(self.x.at(*value)).parse::<f64>().unwrap_or_default(), text])
        });
        let swept = places.collect::<Value>().to_string();
        self.begin(svg, "sweep", (x, ""), (y, ""), Some(&swept));
    }

    fn begin(&self, svg: &mut Svg, kind: &str, x: (&str, &str), y: (&str, &str), swept: Option<&str>) {
        let (x_scale, y_scale) = (self.x.written(), self.y.written());
        let place = format!("{} {}", unit(self.top), unit(self.bottom));
        svg.begin(&html! {
            g class="panel" data-kind=(kind) data-x=(x_scale) data-y=(y_scale) data-place=(place)
                data-x-name=(x.0) data-x-unit=(x.1) data-y-name=(y.0) data-y-unit=(y.1)
                data-swept=[swept] {}
        });
    }

    /// Grid lines and labels of the vertical axis.
    pub(crate) fn vertical_axis(&self, svg: &mut Svg, ticks: usize, label: impl Fn(f64) -> String) {
        for tick in self.y.ticks(ticks) {
            let y = self.y.at(tick);
            svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text("tick", "", (LEFT - 7.0, y + 4.0), Anchor::End, &label(tick));
        }
    }

    /// The horizontal axis; labels and title only if `title` is given: under the last of stacked panels.
    pub(crate) fn horizontal_axis(&self, svg: &mut Svg, ticks: usize, title: Option<&str>) {
        svg.line("axis", (LEFT, self.bottom), (WIDTH - RIGHT, self.bottom));
        for tick in self.x.ticks(ticks) {
            let x = self.x.at(tick);
            svg.line("axis xt", (x, self.bottom), (x, self.bottom + 4.0));
            if title.is_some() {
                svg.text("tick xt", "", (x, self.bottom + 18.0), Anchor::Middle, &tick_label(tick));
            }
        }
        if let Some(title) = title {
            svg.text("title", "", (LEFT, self.bottom + 38.0), Anchor::Start, title);
        }
    }

    /// A faint line across at `value`, if the panel holds it.
    pub(crate) fn across(&self, svg: &mut Svg, value: f64) {
        if self.y.holds(value) {
            let y = self.y.at(value);
            svg.line("limit", (LEFT, y), (WIDTH - RIGHT, y));
        }
    }

    /// A faint line upwards at `value` with its name over the panel, if the panel holds it.
    pub(crate) fn upwards(&self, svg: &mut Svg, value: f64, name: &str) {
        if self.x.holds(value) {
            let x = self.x.at(value);
            svg.line("limit", (x, self.top), (x, self.bottom));
            svg.text("limit-name", "", (x, self.top - 6.0), Anchor::Middle, name);
        }
    }
}

/// The places of `count` panels stacked from `top` in equal heights with room for a title over each, as (top,
/// bottom).
pub(crate) fn stack(count: usize, top: f64, height: f64, gap: f64) -> Vec<(f64, f64)> {
    (0..count).map(|at| top + at as f64 * (height + gap)).map(|top| (top, top + height)).collect()
}
