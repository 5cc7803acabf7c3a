//! The charts of a study's page: the publication's figures, drawn again from our runs.
//!
//! A *printed* value is a value that the publication states. Each kind of drawing has a file.
//!
//! Begin to read with [`chart`].

mod groups;
mod lines;
mod scatter;
mod shared;
mod traces;

use talkpath_study::{Drawing, FigureOutcome};

use self::shared::sentences;
use crate::chart::{Chart, id_part};
use crate::plot::svg::SvgName;

pub(super) fn chart(figure: &FigureOutcome) -> Chart {
    titled(figure, &id_part(&figure.number), title(figure))
}

/// Draws a figure that belongs to no publication, with a title of its own. `id` names it on the page.
pub(crate) fn titled(figure: &FigureOutcome, id: &str, title: String) -> Chart {
    let untitled = match &figure.drawing {
        Drawing::Traces { panels, .. } if panels.iter().any(|panel| panel.is_elsewhere) => {
            return without_curves(figure);
        }
        Drawing::Traces { panels, seconds, levels } => traces::draw(figure, panels, *seconds, levels),
        Drawing::Lines { lines } => lines::draw(figure, lines),
        Drawing::Quantiles { lines } => lines::draw_quantiles(figure, lines),
        Drawing::Groups { names, lines } => groups::draw(figure, names, lines),
        Drawing::Scatter { lines, fit } => scatter::draw(figure, lines, *fit),
        Drawing::Absent { why } => return absent(figure, why),
    };
    let x_title = if figure.x_title.is_empty() { "what is named below" } else { &figure.x_title };
    let description = format!("{} against {x_title}.", figure.y_title);
    let name = SvgName { id: &format!("svg-{id}"), title: &title, description: &description };
    let svg = Some(untitled.svg.finish(name));
    let caption = sentences(&[&untitled.caption, &figure.note]);
    Chart { id: id.to_owned(), title, legend: untitled.legend, svg, caption }
}

/// The place of a figure whose curves a kept run no longer has.
fn without_curves(figure: &FigureOutcome) -> Chart {
    let caption = sentences(&[
        "The curves are on the page of the run that this run took its figures from",
        &figure.note,
    ]);
    Chart { id: id_part(&figure.number), title: title(figure), legend: Vec::new(), svg: None, caption }
}

/// The place of a figure that is not drawn again.
fn absent(figure: &FigureOutcome, reason: &str) -> Chart {
    let reason = format!("Not drawn again: {reason}.");
    Chart {
        id: id_part(&figure.number),
        title: title(figure),
        legend: Vec::new(),
        svg: None,
        caption: sentences(&[&reason, "It stands in the publication", &figure.note]),
    }
}

fn title(figure: &FigureOutcome) -> String {
    format!("Figure {}: {}", figure.number, figure.title)
}
