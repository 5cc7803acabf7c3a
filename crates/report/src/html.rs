//! The page of a run: one HTML file that loads no other file, font or script.
//!
//! The page is complete without scripts. Its module (`page.js`) adds what a pointer and a keyboard can do.
//! The page has a light and a dark theme. It is also well-formed XML, so that any XML reader can parse it.
//!
//! Begin to read with [`html`], which has the sections in their order. Each section has a file.

mod answer;
mod cells;
mod charts;
mod compared;
mod document;
mod network;
mod page;
mod source;
mod sweep;

use maud::{Markup, html};
use talkpath_measure::summary::Summary;
use talkpath_measure::warning;

use crate::program::ProgramFigures;
use crate::receiver::receivers;
use crate::sound::sound_section;
use crate::sweep::Sweep;
use crate::terms;
use crate::verdict::{FlowCells, JudgedFlow};

pub(crate) use self::cells::DETAILED_CELLS;
pub(crate) use self::charts::chart_file;
pub use self::charts::{ChartFile, chart_files};
pub(crate) use self::document::{BREAK, Section, document, table_of_contents, warnings};
pub use self::page::{Network, Page};

/// Writes the page.
pub fn html(page: &Page<'_>) -> String {
    let summary = page.summary;
    let flows = FlowCells::all(summary);
    let judged_flows: Vec<JudgedFlow<'_>> = flows.iter().map(FlowCells::judge).collect();
    let sweeps: Vec<Sweep<'_>> = judged_flows.iter().filter_map(Sweep::beyond_answers).collect();
    let answer =
        Section { id: "answer", title: "Answer", body: answer::answers(summary, &judged_flows, &sweeps) };
    let details = [
        Section { id: "program", title: "The program", body: program(summary) },
        Section { id: "sweep", title: "Over the sweep", body: sweep::sweeps(page, &sweeps) },
        Section { id: "compared", title: "Transports compared", body: compared::tables(page, &judged_flows) },
        Section { id: "sound", title: "The call as it was heard", body: sounds(page) },
        Section { id: "figures", title: "Figures", body: charts::charts(page, &judged_flows) },
        Section { id: "cells", title: "Every flow and link", body: cells::cells(page) },
        Section { id: "network", title: "The network", body: network::network(page) },
        Section { id: "source", title: "Where this comes from", body: source::source(page) },
    ];
    let understood = &summary.understood;
    let main = html! {
        @if !summary.valid {
            p.invalid role="alert" { "Invalid run: do not trust these figures." }
        }
        (warnings(&summary.warnings))
        // The answer has no heading, because it is the reason to read the page.
        @if !answer.is_empty() {
            section id=(answer.id) {
                (answer.body)
                @for line in understood.losses.iter().chain(&understood.fragments) { p.about { (line) } }
            }
        }
        @for line in understood.lines() { p.about { (line) } }
        @for note in summary.warnings.iter().filter(|warning| warning::is_note(warning)) { p.about { (note) } }
        (table_of_contents(core::iter::once(&answer).chain(&details)))
        @for section in &details { (section.html()) }
    };
    let mut about = vec![terms::about_run(summary)];
    about.extend(receivers(summary));
    document(&summary.name, &about.join("; "), &main, &summary.talkpath)
}

/// The figures of the program of the user. Empty if none ran.
fn program(summary: &Summary) -> Markup {
    ProgramFigures::new(summary).map_or_else(|| html! {}, |program| program.html())
}

/// The sounds of a call. Empty if there are none.
fn sounds(page: &Page<'_>) -> Markup {
    page.sounds.map_or_else(|| html! {}, sound_section)
}

#[cfg(test)]
mod tests;
