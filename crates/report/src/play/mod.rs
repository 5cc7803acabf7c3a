//! The animated network: one page that plays a run's packets over its topology.
//!
//! The page holds the hops of packets as columns of whole microseconds and draws them on a canvas. It
//! computes nothing about the run: where a packet is follows from when its service began, when its last bit
//! was sent and when it came out. Without JavaScript it says so and shows the topology at one moment.

mod frame;

use maud::{Markup, PreEscaped, html};
use serde_json::json;

use crate::display::display;
use crate::html::document;
use crate::plot::svg::Svg;

pub use frame::Place;

/// What a page plays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Animation {
    /// The run's name.
    pub name: String,
    /// What is shown of it: cell, repetition, from when to when.
    pub about: String,
    /// What a person should know before they look; may be empty.
    pub warnings: Vec<String>,
    /// Hosts and routers.
    pub nodes: Vec<PlayNode>,
    /// Links, by the index that hops have.
    pub links: Vec<PlayLink>,
    /// Flows, by the index that hops have.
    pub flows: Vec<PlayFlow>,
    /// In order of [`PlayHop::entered`].
    pub hops: Vec<PlayHop>,
    /// The run time at which the page begins, µs; every other time counts from there.
    pub from: u64,
    /// How long it is, µs.
    pub length: u64,
}

/// A host or a router.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayNode {
    /// Its name; empty for a router.
    pub label: String,
    /// Where it stands, each from 0 to 1, from the left and from the top.
    pub place: Place,
}

/// A link from one node to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayLink {
    /// As the scenario calls it.
    pub name: String,
    /// Its rate, delay and queue in words.
    pub about: String,
    /// The nodes at its beginning and its end; `None` if nothing travels on it.
    pub ends: Option<(usize, usize)>,
}

/// A flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayFlow {
    /// As the scenario calls it.
    pub name: String,
    /// Its transport's name in scenarios.
    pub transport: String,
    /// The node of its sender.
    pub sender: usize,
    /// Its congestion window: (time, packets), if it has one.
    pub cwnd: Vec<(u64, f64)>,
}

/// A packet on a link; times are µs from the page's beginning and may lie before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayHop {
    /// The index of the flow.
    pub flow: u32,
    /// The index of the link.
    pub link: u32,
    /// Whether it was dropped by the queue or lost on the wire.
    pub fate: PlayFate,
    /// Bytes.
    pub size: u32,
    /// It came to the link.
    pub entered: i64,
    /// Its service began.
    pub began: i64,
    /// Its last bit was sent.
    pub sent: i64,
    /// It came out, or was gone.
    pub left: i64,
}

/// How a packet left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayFate {
    /// It came out at the far end.
    Passed = 0,
    /// A queue dropped it.
    Dropped = 1,
    /// The wire lost it.
    Lost = 2,
}

/// The page, self-contained.
pub fn play_page(animation: &Animation, talkpath: &str) -> String {
    let main = html! {
        @for warning in &animation.warnings { p.warnings { (warning) } }
        (player(animation))
        section {
            h2 { "What you see" }
            p {
                "Each mark on a link is a packet in the colour of its flow, from its last bit to its first. Before the link the packets that \
                 wait in its queue are stacked, with their number. A dropped packet falls; a lost one falls from where the wire lost it. "
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
            div.scroll.plot id="still" { (frame::still(animation)) }
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
    for link in animation.links.iter().filter(|link| link.ends.is_some()) {
        match kinds.iter_mut().find(|kind| kind.0 == link.about) {
            Some(kind) => kind.1.push(&link.name),
            None => kinds.push((&link.about, vec![&link.name])),
        }
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

/// A flow's colour: hues far from each other for flows that follow each other.
fn colour(flow: usize) -> String {
    // The golden angle: of any number of hues none are close.
    let hue = (205.0 + 137.508 * flow as f64) % 360.0;
    format!("hsl({hue:.0} 62% 46%)")
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

/// A drawing of the topology alone: what a report shows where nothing moves.
pub fn topology_svg(animation: &Animation, id: &str) -> String {
    let svg: Svg = frame::topology(animation);
    svg.finish(id, &format!("Topology of {}", animation.name), "Hosts, routers and the links between them.")
        .into_string()
}

/// Links of one making that are named. Chosen.
const MOST_ALIKE: usize = 4;
/// Flows that the legend names; the others are counted.
const MOST_NAMED: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn two_hosts() -> Animation {
        let node = |label: &str, x: f64| PlayNode { label: label.to_owned(), place: Place { x, y: 0.5 } };
        let hop = |entered: i64, fate: PlayFate| PlayHop {
            flow: 0,
            link: 0,
            fate,
            size: 200,
            entered,
            began: entered + 10,
            sent: entered + 20,
            left: entered + 120,
        };
        Animation {
            name: "a </script> name".to_owned(),
            nodes: vec![node("near", 0.0), node("far", 1.0)],
            links: vec![PlayLink {
                name: "</script>up".to_owned(),
                about: "1 Mb/s".to_owned(),
                ends: Some((0, 1)),
            }],
            flows: vec![PlayFlow {
                name: "call".to_owned(),
                transport: "udp".to_owned(),
                ..PlayFlow::default()
            }],
            hops: vec![hop(0, PlayFate::Passed), hop(50, PlayFate::Lost)],
            length: 1000,
            ..Animation::default()
        }
    }

    #[test]
    fn a_page_opens_from_disk_has_a_still_figure_and_no_name_ends_its_script() {
        let page = play_page(&two_hosts(), "0");
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("src=") && !page.contains("href="), "nothing is fetched");
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
