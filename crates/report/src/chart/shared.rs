//! What all charts share: the type [`Chart`], and sentences of captions.

use maud::{Markup, html};

use super::legend::{LegendEntry, legend_html};
use crate::number::distinct;
use crate::select::FlowSeries;

/// A chart that is ready for the page.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The name of the chart's file. It is unique on the page.
    pub id: String,
    pub title: String,
    /// Empty if the chart needs no legend.
    pub legend: Vec<LegendEntry>,
    /// `None` if there is nothing to draw. The caption then gives the reason.
    pub svg: Option<Markup>,
    /// Plain text that says what the chart shows and how it is defined.
    pub caption: String,
}

impl Chart {
    pub(crate) fn html(&self) -> Markup {
        html! {
            figure id={ "figure-" (self.id) } {
                h3 { (self.title) }
                @if !self.legend.is_empty() { (legend_html(&self.legend)) }
                @if let Some(svg) = &self.svg { div class="plot" { (svg) } }
                figcaption { (self.caption) }
            }
        }
    }
}

/// Writes a name as a part of an id. Every character but letters and digits becomes a hyphen.
pub(crate) fn id_part(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The sentence of a caption about the scale of several panels. Empty for one panel.
pub(super) fn shared_scale_note(panel_count: usize) -> &'static str {
    if panel_count > 1 { " All panels share the vertical scale." } else { "" }
}

/// The sentence of a caption about series that had no room. `plural` names these series. Empty if all are
/// drawn.
pub(super) fn not_drawn_note(count: usize, plural: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!(" 1 more {} is not drawn; the tables have all.", plural.trim_end_matches('s')),
        count => format!(" {count} more {plural} are not drawn; the tables have all."),
    }
}

/// The delay in ms from which on a message is late, if it is the same for all series that have such a delay.
pub(super) fn shared_limit(series: &[&FlowSeries<'_>]) -> Option<f64> {
    match distinct(series.iter().filter_map(|series| series.limit_ms))[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The smallest and the largest of the finite `values`. Without any it is (infinity, -infinity).
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}
