//! The section with the drawing of the network, and the command that shows its packets.

use maud::{Markup, html};
use talkpath_measure::summary::Summary;

use super::page::Page;
use crate::animation::topology_svg;
use crate::chart::Chart;
use crate::view::CellView;

pub(super) fn network(page: &Page<'_>) -> Markup {
    let play = page.network.and_then(|network| network.play.as_ref());
    html! {
        @if let Some(chart) = network_chart(page) { (chart.html()) }
        @if let Some(command) = play {
            p { "This writes a page on which its packets move, queues fill and drops fall:" }
            pre tabindex="0" { (command) }
        }
    }
}

/// The drawing of the network. Returns `None` if the network is not known.
pub(super) fn network_chart(page: &Page<'_>) -> Option<Chart> {
    let network = page.network?;
    let (svg, caption) = match topology_svg(&network.animation, "network") {
        Ok(svg) => (Some(svg), format!("Links of one making are described once.{}", cell_note(page.summary))),
        Err(reason) => (None, reason),
    };
    Some(Chart {
        id: "network".to_owned(),
        title: "Hosts, routers and links".to_owned(),
        legend: Vec::new(),
        svg,
        caption,
    })
}

/// The sentence about the cell whose network is drawn. Empty if the cells differ in transports alone, because
/// then they have one network.
fn cell_note(summary: &Summary) -> String {
    if summary.cells.len() < 2 {
        return String::new();
    }
    let Some(first) = CellView::find(summary, summary.cells[0].cell) else { return String::new() };
    let transports = first.cell.sweep.keys().filter(|key| key.ends_with(".transport"));
    match first.sweep_label(&transports.map(String::as_str).collect::<Vec<_>>()) {
        label if label.is_empty() => String::new(),
        label => format!(" As in cell {}: {label}.", first.cell.cell),
    }
}
