//! The animated network: one page that plays a run's packets over its topology.
//!
//! The page holds the hops of packets as columns of whole microseconds and draws them on a canvas. It
//! computes nothing about the run: where a packet is follows from when its service began, when its last bit
//! was sent and when it came out. Without JavaScript it says so and shows the topology at one moment.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde_json::json;

use crate::animation::{Animation, PlayHop, colour, still};
use crate::display::display;
use crate::html::document;

/// The page, self-contained.
pub fn play_page(animation: &Animation, talkpath: &str) -> String {
    let main = html! {
        @for warning in &animation.warnings { p.warnings { (warning) } }
        (player(animation))
        section {
            h2 { "What you see" }
            p {
                "Each mark on a link is a packet in the colour of its flow, from its last bit to its first. Before the link the packets that \
                 wait in its queue are stacked, with their number; a packet waits until its service begins. A packet that a queue drops falls at the link's beginning. One that is lost on the \
                 wire falls at its end: where on the way it was lost is not modelled. Both are counted at the link since the page begins, \
                 not since the run does. "
                "Beside each sender stands its congestion window, cwnd, in packets. Distances are not to scale: a packet takes a link's \
                 whole delay to cross it."
            }
        }
    };
    document(&animation.name, &animation.about, &main, talkpath)
}

/// The drawing with its controls. The script finds it by its id.
fn player(animation: &Animation) -> Markup {
    html! {
        style { (PreEscaped(include_str!("play.css"))) }
        section id="player" {
            noscript {
                p.warnings { "JavaScript is off: the network is shown at one moment and does not move." }
            }
            (legend(animation))
            (links(animation))
            div.scroll.plot id="still" { (still(animation)) }
            canvas id="stage" hidden tabindex="0" role="img"
                aria-label="The network with its packets; the time stands under it" {}
            div.controls id="controls" hidden {
                button type="button" id="toggle" { "Play" }
                button type="button" id="back" title="to the event before (←)" { "◂ step" }
                button type="button" id="forward" title="to the next event (→)" { "step ▸" }
                label { "speed " select id="speed" {} }
                label.seek { "time " input type="range" id="seek" min="0" max="1000" value="0"; }
                output id="now" {}
            }
            p.about id="keys" hidden {
                "Space plays and pauses, ← and → step from event to event, ↑ and ↓ change the speed, Home and End go to the ends."
            }
        }
        script type="application/json" id="run" { (PreEscaped(data(animation))) }
        script { (PreEscaped(include_str!("play.js"))) }
    }
}

fn legend(animation: &Animation) -> Markup {
    html! {
        ul.legend {
            @for (at, flow) in animation.flows.iter().enumerate().take(MOST_NAMED) {
                li {
                    span.swatch style={ "background:" (colour(at)) } {}
                    (flow.name) ", " (display(&flow.transport).name)
                }
            }
            @if animation.flows.len() > MOST_NAMED {
                li { "and " (animation.flows.len() - MOST_NAMED) " more" }
            }
        }
    }
}

/// What links are made of, those of one making together.
fn links(animation: &Animation) -> Markup {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for link in animation.links.iter().filter(|link| link.ends.is_some()) {
        let kind = *known.entry(&link.about).or_insert(kinds.len());
        if kind == kinds.len() {
            kinds.push((&link.about, Vec::new()));
        }
        kinds[kind].1.push(&link.name);
    }
    html! {
        dl.terms {
            @for (about, names) in &kinds {
                dt {
                    (names.iter().take(MOST_ALIKE).copied().collect::<Vec<_>>().join(", "))
                    @if names.len() > MOST_ALIKE { " and " (names.len() - MOST_ALIKE) " more" }
                }
                dd { (about) }
            }
        }
    }
}

/// What the script reads, as JSON that no `</script>` can end.
fn data(animation: &Animation) -> String {
    let column = |pick: fn(&PlayHop) -> i64| animation.hops.iter().map(pick).collect::<Vec<i64>>();
    let value = json!({
        "from": animation.from,
        "length": animation.length,
        "nodes": animation.nodes.iter().map(|node| json!([node.label, node.place.x, node.place.y])).collect::<Vec<_>>(),
        "links": animation.links.iter().map(|link| json!([link.name, link.about, link.ends])).collect::<Vec<_>>(),
        "flows": animation.flows.iter().enumerate().map(|(at, flow)| {
            json!([flow.name, colour(at), flow.sender, flow.cwnd])
        }).collect::<Vec<_>>(),
        "hops": {
            "flow": column(|hop| i64::from(hop.flow)),
            "link": column(|hop| i64::from(hop.link)),
            "fate": column(|hop| hop.fate as i64),
            // Counted from the entry, so that the page is small.
            "entered": column(|hop| hop.entered),
            "began": column(|hop| hop.began - hop.entered),
            "sent": column(|hop| hop.sent - hop.began),
            "left": column(|hop| hop.left - hop.sent),
        },
    });
    value.to_string().replace('<', "\\u003c")
}

/// Links of one making that are named. Chosen.
const MOST_ALIKE: usize = 4;
/// Flows that the legend names; the others are counted.
const MOST_NAMED: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animation::tests::two_hosts;

    #[test]
    fn a_page_opens_from_disk_has_a_still_figure_and_no_name_ends_its_script() {
        let page = play_page(&two_hosts(), "0");
        // The page's module, the animation, and its data.
        assert_eq!(page.matches("</script>").count(), 3);
        assert!(!page.contains("src=") && !page.contains("href="), "nothing is fetched");
        assert!(page.contains("since the page begins") && !page.contains("where the wire lost it"), "{page}");
        assert!(page.contains("<noscript>") && page.contains("<svg"), "{page}");
    }

    #[test]
    fn the_script_s_columns_are_differences_that_give_each_time_back() {
        let value: serde_json::Value = serde_json::from_str(&data(&two_hosts())).unwrap();
        let of = |name: &str| value["hops"][name][1].as_i64().unwrap();
        assert_eq!((of("entered"), of("began"), of("sent"), of("left"), of("fate")), (50, 10, 10, 100, 2));
        assert_eq!(value["links"][0][0], "</script>up");
    }
}
