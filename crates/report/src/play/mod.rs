//! The page of `play`: it shows a run's packets as they move over the network.
//!
//! The page has the hops of the packets as columns of whole microseconds, and its script draws them on a
//! canvas. The script computes nothing about the run: the place of a packet follows from the times of its
//! hop. Without JavaScript the page says so, and shows the network at one moment.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde_json::json;

use crate::animation::{Animation, PlayHop, colour, still};
use crate::display::display;
use crate::html::document;

/// The page lists at most 4 links of one description, and counts the others.
const MAX_LINK_NAMES: usize = 4;
/// The legend has at most 12 flows, and counts the others.
const MAX_FLOW_NAMES: usize = 12;

/// Writes the page. It loads no other file. `talkpath` is the version of the program.
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

/// The drawing with its controls. The script finds the elements by their ids.
fn player(animation: &Animation) -> Markup {
    html! {
        style { (PreEscaped(include_str!("play.css"))) }
        section id="player" {
            noscript {
                p.warnings { "JavaScript is off: the network is shown at one moment and does not move." }
            }
            (legend(animation))
            (link_descriptions(animation))
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
        script type="application/json" id="run" { (PreEscaped(script_data(animation))) }
        script { (PreEscaped(include_str!("play.js"))) }
    }
}

fn legend(animation: &Animation) -> Markup {
    html! {
        ul.legend {
            @for (index, flow) in animation.flows.iter().enumerate().take(MAX_FLOW_NAMES) {
                li {
                    span.swatch style={ "background:" (colour(index)) } {}
                    (flow.name) ", " (display(&flow.transport).name)
                }
            }
            @if animation.flows.len() > MAX_FLOW_NAMES {
                li { "and " (animation.flows.len() - MAX_FLOW_NAMES) " more" }
            }
        }
    }
}

/// Links with one description.
struct LinkGroup<'a> {
    about: &'a str,
    names: Vec<&'a str>,
}

/// Groups the links that flows use by their descriptions, in the order of the links.
fn group_links(animation: &Animation) -> Vec<LinkGroup<'_>> {
    let mut groups: Vec<LinkGroup<'_>> = Vec::new();
    let mut group_by_about: BTreeMap<&str, usize> = BTreeMap::new();
    for link in animation.links.iter().filter(|link| link.ends.is_some()) {
        let group = *group_by_about.entry(&link.about).or_insert(groups.len());
        if group == groups.len() {
            groups.push(LinkGroup { about: &link.about, names: Vec::new() });
        }
        groups[group].names.push(&link.name);
    }
    groups
}

fn link_descriptions(animation: &Animation) -> Markup {
    html! {
        dl.terms {
            @for LinkGroup { about, names } in group_links(animation) {
                dt {
                    (names.iter().take(MAX_LINK_NAMES).copied().collect::<Vec<_>>().join(", "))
                    @if names.len() > MAX_LINK_NAMES { " and " (names.len() - MAX_LINK_NAMES) " more" }
                }
                dd { (about) }
            }
        }
    }
}

/// The data for the script, as JSON. The JSON has no `<`, so that no name in it can end the script element.
fn script_data(animation: &Animation) -> String {
    let column = |value: fn(&PlayHop) -> i64| animation.hops.iter().map(value).collect::<Vec<i64>>();
    let nodes = animation.nodes.iter().map(|node| json!([node.label, node.place.x, node.place.y]));
    let links = animation.links.iter().map(|link| json!([link.name, link.about, link.ends]));
    let flows = animation.flows.iter().enumerate();
    let flows = flows.map(|(index, flow)| json!([flow.name, colour(index), flow.sender, flow.cwnd]));
    let data = json!({
        "from": animation.from,
        "length": animation.length,
        "nodes": nodes.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "flows": flows.collect::<Vec<_>>(),
        "hops": {
            "flow": column(|hop| i64::from(hop.flow)),
            "link": column(|hop| i64::from(hop.link)),
            "fate": column(|hop| hop.fate as i64),
            // Each further time is the difference from the time before, because small numbers make a small
            // page.
            "entered": column(|hop| hop.entered),
            "began": column(|hop| hop.began - hop.entered),
            "sent": column(|hop| hop.sent - hop.began),
            "left": column(|hop| hop.left - hop.sent),
        },
    });
    data.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animation::tests::two_hosts;

    #[test]
    fn a_page_loads_nothing_has_a_drawing_without_scripts_and_no_name_ends_its_script() {
        let page = play_page(&two_hosts(), "0");
        // The page's module, the animation, and its data.
        assert_eq!(page.matches("</script>").count(), 3);
        assert!(!page.contains("src=") && !page.contains("href="), "nothing is fetched");
        assert!(page.contains("since the page begins") && !page.contains("where the wire lost it"), "{page}");
        assert!(page.contains("<noscript>") && page.contains("<svg"), "{page}");
    }

    #[test]
    fn the_times_of_a_hop_are_differences_from_the_time_before() {
        let value: serde_json::Value = serde_json::from_str(&script_data(&two_hosts())).unwrap();
        let second_hop = |name: &str| value["hops"][name][1].as_i64().unwrap();
        let columns = ["entered", "began", "sent", "left", "fate"];
        assert_eq!(columns.map(second_hop), [50, 10, 10, 100, 2]);
        assert_eq!(value["links"][0][0], "</script>up");
    }
}
