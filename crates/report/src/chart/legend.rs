//! The legend of a chart: names, each with samples of the lines that have this name.

use maud::{Markup, html};

use crate::display::Look;
use crate::plot::marker::{marker_outline, ring_outline};

/// The middle of a sample, which is 28 units wide and 14 units high.
const SAMPLE_CENTRE: (f64, f64) = (14.0, 7.0);

#[derive(Clone, Debug)]
pub(crate) struct LegendEntry {
    pub name: String,
    /// The samples. A name has several if its lines differ between panels.
    pub samples: Vec<Sample>,
}

/// A small drawing that shows how a line or an area looks.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    paths: Vec<SamplePath>,
}

#[derive(Clone, Debug)]
struct SamplePath {
    class: &'static str,
    style: String,
    outline: String,
}

impl LegendEntry {
    pub(crate) fn new(name: &str, sample: Sample) -> Self {
        Self { name: name.to_owned(), samples: vec![sample] }
    }

    /// The name of a line without markers.
    pub(crate) fn plain_line(name: &str, line_style: impl Into<String>) -> Self {
        Self::new(name, Sample::line(line_style))
    }

    pub(crate) fn marked_line(name: &str, look: Look) -> Self {
        Self::new(name, Sample::marked_line(look))
    }
}

impl Sample {
    pub(crate) fn line(style: impl Into<String>) -> Self {
        let line = SamplePath { class: "series", style: style.into(), outline: "M1 7H27".to_owned() };
        Self { paths: vec![line] }
    }

    fn marked_line(look: Look) -> Self {
        let mut sample = Self::line(look.line_style());
        let outline = marker_outline(look.marker(), SAMPLE_CENTRE);
        sample.paths.push(SamplePath { class: "mark", style: look.fill_style(), outline });
        sample
    }

    /// A shape without a line, for example a bar.
    pub(crate) fn shape(style: impl Into<String>, outline: String) -> Self {
        Self { paths: vec![SamplePath { class: "", style: style.into(), outline }] }
    }

    pub(crate) fn marker(style: impl Into<String>, marker: crate::display::Marker) -> Self {
        Self::shape(style, marker_outline(marker, SAMPLE_CENTRE))
    }

    /// A ring as it is drawn around a marker.
    pub(crate) fn ring() -> Self {
        let outline = ring_outline(SAMPLE_CENTRE);
        Self { paths: vec![SamplePath { class: "lost", style: String::new(), outline }] }
    }

    fn html(&self) -> Markup {
        html! {
            svg class="sample" viewBox="0 0 28 14" aria-hidden="true" { (self.svg_paths()) }
        }
    }

    pub(super) fn svg_paths(&self) -> Markup {
        html! {
            @for SamplePath { class, style, outline } in &self.paths {
                path class=(class) style=(style) d=(outline) {}
            }
        }
    }
}

/// The legend above a chart of the page.
pub(super) fn legend_html(entries: &[LegendEntry]) -> Markup {
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
