//! The section with the drawing of the network and the command that shows its packets, or with what a real
//! path did to probes.

use maud::{Markup, html};
use talkpath_measure::summary::{MappingSummary, PathSummary, PathWaySummary, Summary};

use super::page::Page;
use crate::animation::topology_svg;
use crate::chart::Chart;
use crate::view::CellView;

pub(super) fn network(page: &Page<'_>) -> Markup {
    let play = page.network.and_then(|network| network.play.as_ref());
    let path = page.summary.counted_runs().find_map(|run| run.path.as_deref());
    html! {
        @if let Some(chart) = network_chart(page) { (chart.html()) }
        @if let Some(path) = path { (path_facts(path)) }
        @if let Some(command) = play {
            p { "This writes a page on which its packets move, queues fill and drops fall:" }
            pre tabindex="0" { (command) }
        }
    }
}

/// The table of what the path did to probes before the run.
fn path_facts(path: &PathSummary) -> Markup {
    let PathSummary { version, near, mapped, mapping, forward, back } = path;
    let row = |name: &str, value: fn(&PathWaySummary) -> String| {
        html! { tr { th scope="row" { (name) } td { (value(forward)) } td { (value(back)) } } }
    };
    html! {
        p.about {
            "Probes before the run, over IPv" (version) ". This host's address is " (near) " here"
            @if near == mapped { " and there." } @else { " and " (mapped) " there, by a translator." }
            @if let Some(mapping) = mapping { " " (mapping_words(*mapping)) }
        }
        table {
            thead { tr { th {} th scope="col" { "there" } th scope="col" { "back" } } }
            tbody {
                (row("largest packet that passes", |way| size(way.passes_bytes, "unknown")))
                (row("smallest one that does not", |way| size(way.fails_bytes, "none")))
                (row("a router reports it", |way| match way.is_reported {
                    Some(true) => "yes".to_owned(),
                    Some(false) => "no".to_owned(),
                    None => "–".to_owned(),
                }))
                (row("TTL on arrival", |way| way.ttl.map_or_else(|| "unknown".to_owned(), |ttl| ttl.to_string())))
                (row("ECT(0) arrives as", |way| words(&way.ecn)))
                (row("EF arrives as", |way| words(&way.dscp)))
            }
        }
    }
}

/// Says how long the path keeps a UDP mapping.
fn mapping_words(mapping: MappingSummary) -> String {
    let MappingSummary { lasts_s, is_gone_s } = mapping;
    match (lasts_s, is_gone_s) {
        (Some(lasts), Some(gone)) => {
            format!(
                "A UDP mapping without packets from this host lasts {lasts} s, and is gone after {gone} s."
            )
        }
        (Some(lasts), None) => {
            format!("A UDP mapping without packets from this host lasts {lasts} s or longer.")
        }
        (None, Some(gone)) => {
            format!("A UDP mapping without packets from this host is gone after {gone} s or less.")
        }
        (None, None) => "How long a UDP mapping lasts is not known.".to_owned(),
    }
}

fn size(bytes: Option<u64>, none: &str) -> String {
    bytes.map_or_else(|| none.to_owned(), |bytes| format!("{bytes} B"))
}

fn words(names: &[String]) -> String {
    if names.is_empty() { "unknown".to_owned() } else { names.join(", ") }
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

/// The sentence about the cell whose network is drawn. Empty if the cells differ in transports alone,
/// because then they have one network.
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
