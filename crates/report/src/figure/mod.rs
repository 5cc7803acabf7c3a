//! The report's figures: each takes a selection and gives a title, a legend, an SVG and a definition.

mod bars;
mod ccdf;
mod delay;
mod lines;

use maud::{Markup, html};

use crate::display::{Display, Marker};
use crate::plot::svg::unit;

pub(crate) use bars::loss_runs;
pub(crate) use ccdf::ccdf;
pub(crate) use delay::delay_over_time;
pub(crate) use lines::{LineKind, over_time};

/// A figure ready for the page.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub title: String,
    /// Empty if the figure needs none.
    pub legend: Markup,
    /// `None` if there is nothing to draw, and the caption says why.
    pub svg: Option<Markup>,
    /// What it shows and how it is defined; plain text.
    pub caption: String,
}

impl Figure {
    /// The figure as HTML.
    pub(crate) fn html(&self) -> Markup {
        html! {
            figure {
                h3 { (self.title) }
                (self.legend)
                @if let Some(svg) = &self.svg {
                    div class="scroll plot" tabindex="0" { (svg) }
                }
                figcaption { (self.caption) }
            }
        }
    }
}

/// The CSS variable of a transport's colour.
pub(crate) fn colour(display: &Display) -> String {
    format!("var(--t-{})", display.kind)
}

/// A line's `style`: its colour and dash.
pub(crate) fn stroke(display: &Display) -> String {
    format!("stroke:{};stroke-dasharray:{}", colour(display), display.dash)
}

/// One name in a legend, with a sample for each way in which it is drawn.
pub(crate) struct Entry<'a> {
    pub name: &'a str,
    pub samples: Vec<Sample>,
}

/// A line in a legend, and the marker on it.
pub(crate) struct Sample {
    pub style: String,
    pub marked: Option<&'static Display>,
}

impl<'a> Entry<'a> {
    /// A line of one style without a marker.
    pub(crate) fn line(name: &'a str, style: impl Into<String>) -> Self {
        Self { name, samples: vec![Sample { style: style.into(), marked: None }] }
    }
}

impl Sample {
    fn html(&self) -> Markup {
        html! {
            svg class="sample" viewBox="0 0 28 14" aria-hidden="true" {
                path class="series" style=(self.style) d="M1 7H27" {}
                @if let Some(display) = self.marked {
                    @let style = format!("fill:{}", colour(display));
                    path class="mark" style=(style) d=(marker(display.marker, 14.0, 7.0)) {}
                }
            }
        }
    }
}

/// Names with samples of their lines; what the page shows above a figure.
pub(crate) fn legend<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Markup {
    html! {
        ul.legend {
            @for entry in entries {
                li {
                    @for sample in &entry.samples { (sample.html()) }
                    " " (entry.name)
                }
            }
        }
    }
}

/// The outline of a marker around a point.
pub(crate) fn marker(marker: Marker, x: f64, y: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", unit(x + dx), unit(y + dy));
    match marker {
        Marker::Circle => format!("M{}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", at(-4.0, 0.0)),
        Marker::Square => format!("M{}h7v7h-7Z", at(-3.5, -3.5)),
        Marker::Triangle => format!("M{}l4.5 8h-9Z", at(0.0, -5.0)),
        Marker::Diamond => format!("M{}l5 5l-5 5l-5 -5Z", at(0.0, -5.0)),
        Marker::Cross => format!("M{}h3v-3h3v3h3v3h-3v3h-3v-3h-3Z", at(-4.5, -1.5)),
    }
}

/// What to know of panels under one another.
pub(crate) fn shared(panels: usize) -> &'static str {
    if panels > 1 { " All panels share the vertical scale." } else { "" }
}

/// What did not fit, as the end of a caption.
pub(crate) fn left_out(count: usize, what: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!(" 1 more {} is not drawn; the tables have all.", what.trim_end_matches('s')),
        count => format!(" {count} more {what} are not drawn; the tables have all."),
    }
}

/// Smallest and largest of `values` that are finite; (infinity, -infinity) without any.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}
