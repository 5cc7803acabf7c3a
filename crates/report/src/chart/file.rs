//! Writes a chart as an SVG file that needs nothing else: title, legend, drawing and caption in one drawing.
//!
//! ```text
//! title        TITLE_ROW
//! legend       LEGEND_ROW each row
//! drawing      y = 0 is the top of the drawing
//! caption      CAPTION_ROW each row
//! ```
//!
//! The page's module (`file` in page.js) saves the same file in a browser.

use maud::{Markup, html};

use super::shared::Chart;
use crate::grid::wrap;
use crate::plot::svg::{LETTER_WIDTH, coordinate};

/// The left side of the title and of the caption.
const TEXT_LEFT: f64 = 8.0;
const TITLE_ROW: f64 = 26.0;
const TITLE_BASELINE: f64 = 18.0;
const CAPTION_ROW: f64 = 17.0;

const LEGEND_LEFT: f64 = 72.0;
const LEGEND_RIGHT: f64 = 750.0;
const LEGEND_ROW: f64 = 20.0;
/// The room below the last row of the legend.
const LEGEND_FOOT: f64 = 6.0;
/// The width of a sample and of the space behind it.
const SAMPLE_WIDTH: f64 = 34.0;
/// The mean width of a letter of the legend, which has a larger font than the caption.
const LEGEND_LETTER_WIDTH: f64 = 7.2;
/// The space between two names of the legend.
const LEGEND_GAP: f64 = 20.0;

/// A part of the file above or below the drawing.
struct Block {
    markup: Markup,
    height: f64,
}

struct SvgParts<'a> {
    /// The attributes without `viewBox`: those before it, and those behind it.
    attributes: (&'a str, &'a str),
    /// Width and height as they are written.
    size: (&'a str, &'a str),
    /// The elements within the drawing, and the closing tag.
    body: &'a str,
}

impl Chart {
    /// Writes the chart with the style sheet `css`. Returns `None` if there is nothing to draw.
    pub(crate) fn svg_file(&self, css: &str) -> Option<String> {
        let drawing = SvgParts::parse(&self.svg.as_ref()?.0)?;
        let (width, height) = drawing.size;
        let drawing_height: f64 = height.parse().ok()?;
        let legend = self.legend_block();
        let caption = self.caption_block(width.parse().ok()?);
        let above = TITLE_ROW + legend.height;
        let total_height = coordinate(above + drawing_height + caption.height);
        let top = coordinate(-above);
        let around = html! {
            rect x="0" y=(top) width=(width) height=(total_height) style="fill:var(--page)" {}
            text.name x=(coordinate(TEXT_LEFT)) y=(coordinate(TITLE_BASELINE - above)) { (self.title) }
            g transform={ "translate(0 " (coordinate(-legend.height)) ")" } { (legend.markup) }
            g transform={ "translate(0 " (coordinate(drawing_height)) ")" } { (caption.markup) }
        };
        let (before, behind) = drawing.attributes;
        Some(format!(
            "<svg class=\"plot\" width=\"{width}\" height=\"{total_height}\" {before}viewBox=\"0 {top} {width} \
             {total_height}\"{behind}><style>{css}</style>{}{}\n",
            around.0, drawing.body
        ))
    }

    /// The caption in rows that fit into `width`.
    fn caption_block(&self, width: f64) -> Block {
        let letters = ((width - 2.0 * TEXT_LEFT) / LETTER_WIDTH) as usize;
        let wrapped = wrap(&self.caption, letters, "", "");
        let rows: Vec<&str> = wrapped.lines().filter(|row| !row.is_empty()).collect();
        let markup = html! {
            @for (index, row) in rows.iter().enumerate() {
                text.tick x=(coordinate(TEXT_LEFT)) y=(coordinate(CAPTION_ROW * (index + 1) as f64)) { (row) }
            }
        };
        // Half a row stays free below the last row.
        let height = if rows.is_empty() { 0.0 } else { CAPTION_ROW * (rows.len() as f64 + 0.5) };
        Block { markup, height }
    }

    /// The legend in rows. A name that does not fit into a row begins the next row.
    fn legend_block(&self) -> Block {
        if self.legend.is_empty() {
            return Block { markup: html! {}, height: 0.0 };
        }
        let (mut x, mut row_top, mut markup) = (LEGEND_LEFT, 0.0, html! {});
        for entry in &self.legend {
            let text_width = LEGEND_LETTER_WIDTH * entry.name.chars().count() as f64;
            let entry_width = SAMPLE_WIDTH * entry.samples.len() as f64 + text_width;
            if x > LEGEND_LEFT && x + entry_width > LEGEND_RIGHT {
                (x, row_top) = (LEGEND_LEFT, row_top + LEGEND_ROW);
            }
            for sample in &entry.samples {
                let transform = format!("translate({} {})", coordinate(x), coordinate(row_top + 4.0));
                markup.0.push_str(&html! { g transform=(transform) { (sample.svg_paths()) } }.0);
                x += SAMPLE_WIDTH;
            }
            let (text_x, baseline) = (coordinate(x), coordinate(row_top + 15.0));
            markup.0.push_str(&html! { text x=(text_x) y=(baseline) { (entry.name) } }.0);
            x += text_width + LEGEND_GAP;
        }
        Block { markup, height: row_top + LEGEND_ROW + LEGEND_FOOT }
    }
}

impl<'a> SvgParts<'a> {
    /// Takes an element apart that [`crate::plot::svg::Svg::finish`] wrote.
    fn parse(element: &'a str) -> Option<Self> {
        let (attributes, body) = element.strip_prefix("<svg ")?.split_once('>')?;
        let (before, rest) = attributes.split_once("viewBox=\"0 0 ")?;
        let (size, behind) = rest.split_once('"')?;
        Some(Self { attributes: (before, behind), size: size.split_once(' ')?, body })
    }
}
