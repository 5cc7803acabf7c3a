//! A network and what moves on it: what `play` puts on its page, and the drawing of a network that reports
//! have.

mod frame;

use crate::plot::svg::Svg;

pub use frame::Place;
pub(crate) use frame::still;

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
    /// Its service began; before this it waits.
    pub began: i64,
    /// Its last bit was sent.
    pub sent: i64,
    /// It came out, or was gone.
    pub left: i64,
}

/// How a packet left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayFate {
    /// It came out at the far end, or had not yet when the run ended.
    Passed = 0,
    /// A queue dropped it.
    Dropped = 1,
    /// The wire lost it.
    Lost = 2,
}

/// A flow's colour: hues far from each other for flows that follow each other.
pub(crate) fn colour(flow: usize) -> String {
    // The golden angle: of any number of hues none are close.
    let hue = (205.0 + 137.508 * flow as f64) % 360.0;
    format!("hsl({hue:.0} 62% 46%)")
}

/// A drawing of the topology alone: what a report shows where nothing moves.
pub(crate) fn topology_svg(animation: &Animation, id: &str) -> String {
    let svg: Svg = frame::topology(animation);
    svg.finish(id, &format!("Topology of {}", animation.name), "Hosts, routers and the links between them.")
        .into_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn two_hosts() -> Animation {
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
}
