//! The charts of a study as SVG files for its page in Markdown.
//!
//! A kept outcome does not have the curves over time, so only the page of a run has these charts.

use talkpath_study::{Drawing, FigureOutcome, Outcome};

use super::chart::chart;
use crate::chart::id_part;
use crate::html::chart_file;
use crate::number::list;

/// A chart in a file that loads no other file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The path from the folder of the page: `STUDY/figure-4-1.svg`.
    pub path: String,
    /// The content of the file.
    pub svg: String,
}

/// The pictures of an outcome, in the order of its figures.
pub(super) fn pictures(outcome: &Outcome) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for figure in outcome.figures.iter().filter(|figure| has_data(figure)) {
        if let Some(svg) = chart_file(&chart(figure)) {
            pictures.push(Picture { path: picture_path(outcome, figure), svg });
        }
    }
    pictures
}

/// Writes Markdown that shows the pictures, and names the figures over time that have none.
pub(super) fn picture_links(outcome: &Outcome) -> String {
    let mut text = String::from("\n\n");
    let mut without_picture: Vec<String> = Vec::new();
    for figure in &outcome.figures {
        if has_data(figure) {
            let title = format!("Figure {}: {}", figure.number, figure.title).replace(['[', ']'], "");
            text.push_str(&format!("![{title}]({})\n\n", picture_path(outcome, figure)));
        } else if matches!(figure.drawing, Drawing::Traces { .. }) {
            without_picture.push(figure.number.clone());
        }
    }
    if !without_picture.is_empty() {
        let numbers = list(&without_picture);
        text.push_str(&format!("Curves over time are on the page of a run alone: {numbers}.\n\n"));
    }
    text
}

fn has_data(figure: &FigureOutcome) -> bool {
    match &figure.drawing {
        Drawing::Traces { panels, .. } => {
            panels.iter().any(|panel| !panel.steps.is_empty() || !panel.loss_runs.is_empty())
        }
        Drawing::Lines { .. }
        | Drawing::Groups { .. }
        | Drawing::Quantiles { .. }
        | Drawing::Scatter { .. } => true,
        Drawing::Absent { .. } => false,
    }
}

/// The path of a picture. The names are from a file, so they are written as parts of an id, which cannot lead
/// out of the folder.
fn picture_path(outcome: &Outcome, figure: &FigureOutcome) -> String {
    format!("{}/figure-{}.svg", id_part(&outcome.study), id_part(&figure.number))
}
