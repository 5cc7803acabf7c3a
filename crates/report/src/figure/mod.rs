//! The report's figures: each takes a selection and gives a title, a legend, an SVG and a definition.

mod bars;
mod ccdf;
mod delay;
mod heat;
mod lines;
mod sweep;

use maud::{Markup, html};

use crate::display::{Look, Marker};
use crate::grid::wrap;
use crate::plot::svg::{LETTER, unit};

pub(crate) use bars::loss_runs;
pub(crate) use ccdf::ccdf;
pub(crate) use delay::delay_over_time;
pub(crate) use heat::{Heat, heat_map};
pub(crate) use lines::{LineKind, over_time};
pub(crate) use sweep::sweep_lines;

/// A figure ready for the page.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Unique on the page, and the name of its file.
    pub id: String,
    pub title: String,
    /// Empty if the figure needs none.
    pub legend: Vec<Entry>,
    /// `None` if there is nothing to draw, and the caption says why.
    pub svg: Option<Markup>,
    /// What it shows and how it is defined; plain text.
    pub caption: String,
}

impl Figure {
    /// The figure as HTML.
    pub(crate) fn html(&self) -> Markup {
        html! {
            figure id={ "figure-" (self.id) } {
                h3 { (self.title) }
                @if !self.legend.is_empty() { (legend(&self.legend)) }
                @if let Some(svg) = &self.svg { div class="plot" { (svg) } }
                figcaption { (self.caption) }
            }
        }
    }
}

impl Figure {
    /// The figure as a file of its own on light ground, with its title, legend and caption. `None` if there
    /// is nothing to draw. The page's module saves the same (`file` in page.js).
    pub(crate) fn file(&self, style: &str) -> Option<String> {
        let svg = self.svg.as_ref()?.0.strip_prefix("<svg ")?;
        let (attributes, body) = svg.split_once('>')?;
        let size = attributes.split_once("viewBox=\"0 0 ")?.1.split_once('"')?.0;
        let (width, height) = size.split_once(' ')?;
        let height: f64 = height.parse().ok()?;
        let (legend, legend_height) = self.legend_rows();
        let (caption, caption_height) = self.caption_rows(width.parse().ok()?);
        let above = TITLE_ROW + legend_height;
        let tall = above + height + caption_height;
        let (view, whole) = (
            format!("viewBox=\"0 0 {size}\""),
            format!("viewBox=\"0 {} {width} {}\"", unit(-above), unit(tall)),
        );
        let attributes = attributes.replacen(&view, &whole, 1);
        let around = html! {
            rect x="0" y=(unit(-above)) width=(width) height=(unit(tall)) style="fill:var(--page)" {}
            text.name x=(unit(TEXT_LEFT)) y=(unit(TITLE_BASE - above)) { (self.title) }
            g transform={ "translate(0 " (unit(-legend_height)) ")" } { (legend) }
            g transform={ "translate(0 " (unit(height)) ")" } { (caption) }
        };
        Some(format!(
            "<svg class=\"plot\" width=\"{width}\" height=\"{}\" {attributes}><style>{style}</style>{}{body}\n",
            unit(tall),
            around.0
        ))
    }

    /// The caption in rows that fit into `width`, and their height.
    fn caption_rows(&self, width: f64) -> (Markup, f64) {
        let columns = ((width - 2.0 * TEXT_LEFT) / LETTER) as usize;
        let rows = wrap(&self.caption, columns, "", "");
        let rows: Vec<&str> = rows.lines().filter(|row| !row.is_empty()).collect();
        let texts = html! {
            @for (index, row) in rows.iter().enumerate() {
                text.tick x=(unit(TEXT_LEFT)) y=(unit(CAPTION_ROW * (index + 1) as f64)) { (row) }
            }
        };
        let height = if rows.is_empty() { 0.0 } else { CAPTION_ROW * (rows.len() as f64 + 0.5) };
        (texts, height)
    }

    /// The legend in rows, and their height.
    fn legend_rows(&self) -> (Markup, f64) {
        let (mut x, mut row, mut body) = (LEGEND_LEFT, 0.0, html! {});
        for entry in &self.legend {
            let text = 7.2 * entry.name.chars().count() as f64;
            let wide = SAMPLE * entry.samples.len() as f64 + text;
            if x > LEGEND_LEFT && x + wide > LEGEND_RIGHT {
                (x, row) = (LEGEND_LEFT, row + 1.0);
            }
            for sample in &entry.samples {
                let place = format!("translate({} {})", unit(x), unit(4.0 + row * LEGEND_ROW));
                body.0.push_str(&html! { g transform=(place) { (sample.lines()) } }.0);
                x += SAMPLE;
            }
            let (at, base) = (unit(x), unit(15.0 + row * LEGEND_ROW));
            body.0.push_str(&html! { text x=(at) y=(base) { (entry.name) } }.0);
            x += text + 20.0;
        }
        let height = if self.legend.is_empty() { 0.0 } else { (row + 1.0) * LEGEND_ROW + 6.0 };
        (body, height)
    }
}

/// Where a row of a file's legend begins and ends, the width of a sample, and a row's height.
const LEGEND_LEFT: f64 = 72.0;
const LEGEND_RIGHT: f64 = 750.0;
const SAMPLE: f64 = 34.0;
const LEGEND_ROW: f64 = 20.0;
/// Of a file's title and caption: where they begin, the title's height and base line, and the height of a row
/// of the caption.
const TEXT_LEFT: f64 = 8.0;
const TITLE_ROW: f64 = 26.0;
const TITLE_BASE: f64 = 18.0;
const CAPTION_ROW: f64 = 17.0;

/// The CSS variable of a transport's colour.
pub(crate) fn colour(look: Look) -> String {
    format!("var(--t-{})", look.display.kind)
}

/// A line's `style`: its colour and dash.
pub(crate) fn stroke(look: Look) -> String {
    format!("stroke:{};stroke-dasharray:{}", colour(look), look.dash())
}

/// One name in a legend, with a sample for each way in which it is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub name: String,
    pub samples: Vec<Sample>,
}

/// How something is drawn, in a legend: paths in a box of 28 by 14, each with its class and style.
#[derive(Clone, Debug)]
pub(crate) struct Sample(Vec<(&'static str, String, String)>);

impl Entry {
    /// A name with one sample.
    pub(crate) fn new(name: &str, sample: Sample) -> Self {
        Self { name: name.to_owned(), samples: vec![sample] }
    }

    /// A line of one style without a marker.
    pub(crate) fn line(name: &str, style: impl Into<String>) -> Self {
        Self { name: name.to_owned(), samples: vec![Sample::line(style, None)] }
    }
}

impl Sample {
    /// A line, and the marker on it.
    pub(crate) fn line(style: impl Into<String>, marked: Option<Look>) -> Self {
        let marked =
            marked.map(|look| ("mark", format!("fill:{}", colour(look)), marker(look.marker(), 14.0, 7.0)));
        let line = ("series", style.into(), "M1 7H27".to_owned());
        Self([line].into_iter().chain(marked).collect())
    }

    /// A shape by itself.
    pub(crate) fn shape(style: impl Into<String>, path: String) -> Self {
        Self(vec![("", style.into(), path)])
    }

    /// A ring around a marker.
    pub(crate) fn ring() -> Self {
        Self(vec![("lost", String::new(), ring((14.0, 7.0)))])
    }

    fn html(&self) -> Markup {
        html! {
            svg class="sample" viewBox="0 0 28 14" aria-hidden="true" { (self.lines()) }
        }
    }

    fn lines(&self) -> Markup {
        html! {
            @for (class, style, path) in &self.0 { path class=(class) style=(style) d=(path) {} }
        }
    }
}

/// Names with samples of their lines; what the page shows above a figure.
fn legend(entries: &[Entry]) -> Markup {
    html! {
        ul.legend {
            @for entry in entries {
                li {
                    span data-name=(entry.name) {
                        @for sample in &entry.samples { (sample.html()) }
                        " " (entry.name)
                    }
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

/// A ring around a marker at this point.
pub(crate) fn ring((x, y): (f64, f64)) -> String {
    format!("M{} {}a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0Z", unit(x - 6.5), unit(y))
}

/// A name as a part of an id: its letters and digits.
pub(crate) fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
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
