//! A study's charts as pictures for its page in Markdown: SVG files that need nothing beside them.

use talkpath_study::{Drawing, FigureOutcome, Outcome};

use super::chart::chart;
use crate::chart::id_part;
use crate::html::chart_file;
use crate::number::list;

/// A chart in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Its path from the folder of the page: `STUDY/figure-4-1.svg`.
    pub path: String,
    /// The file.
    pub svg: String,
}

/// The charts that a run that is kept can draw, in the order of its figures.
pub(super) fn pictures(outcome: &Outcome) -> Vec<Picture> {
    let picture = |figure: &FigureOutcome| {
        Some(Picture { path: path(outcome, figure), svg: chart_file(&chart(figure))? })
    };
    drawn(outcome).filter_map(picture).collect()
}

/// The Markdown that shows these pictures, and names the figures that are curves over time.
pub(super) fn picture_links(outcome: &Outcome) -> String {
    let mut text = String::from("\n\n");
    for figure in drawn(outcome) {
        let title = format!("Figure {}: {}", figure.number, figure.title).replace(['[', ']'], "");
        text.push_str(&format!("![{title}]({})\n\n", path(outcome, figure)));
    }
    let is_curve =
        |figure: &&FigureOutcome| matches!(figure.drawing, Drawing::Traces { .. }) && !is_drawn(figure);
    let curves: Vec<String> =
        outcome.figures.iter().filter(is_curve).map(|figure| figure.number.clone()).collect();
    if !curves.is_empty() {
        text.push_str(&format!("Curves over time are on the page of a run alone: {}.\n\n", list(&curves)));
    }
    text
}

fn drawn(outcome: &Outcome) -> impl Iterator<Item = &FigureOutcome> {
    outcome.figures.iter().filter(|figure| is_drawn(figure))
}

/// Whether there is what the figure draws: a run that is kept has no curves over time.
fn is_drawn(figure: &FigureOutcome) -> bool {
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

/// Names that a file gives lead out of no folder.
fn path(outcome: &Outcome, figure: &FigureOutcome) -> String {
    format!("{}/figure-{}.svg", id_part(&outcome.study), id_part(&figure.number))
}
