//! A network and the packets on it: the content of `play`'s page, and the drawing of a network in reports.
//!
//! A *hop* is one packet on one link. The *service* of a packet is its transmission, from its first bit to
//! its last.
//!
//! Begin to read with [`Animation`].

mod frame;

use maud::Markup;

use crate::number::{count, counted};
use crate::plot::svg::SvgName;

pub use frame::Place;
pub(crate) use frame::still;

/// A network with more than 300 nodes is not drawn. We chose 300 because on the width of a page the nodes and
/// links of a larger network lie over each other, and the drawing would be most of the page.
const MAX_NODES: usize = 300;

/// The network of a run, and the hops that the page plays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Animation {
    /// The name of the run.
    pub name: String,
    /// The cell, the repetition and the time that the page plays, in words.
    pub about: String,
    /// Remarks for a person before watching. May be empty.
    pub warnings: Vec<String>,
    /// Hosts and routers.
    pub nodes: Vec<PlayNode>,
    /// The links. A hop names a link by its index here.
    pub links: Vec<PlayLink>,
    /// The flows. A hop names a flow by its index here.
    pub flows: Vec<PlayFlow>,
    /// The hops, in the order of [`PlayHop::entered`].
    pub hops: Vec<PlayHop>,
    /// The time of the run at which the page begins, in µs. All other times count from it.
    pub from: u64,
    /// The length of the animation in µs.
    pub length: u64,
}

/// A host or a router.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayNode {
    /// The name of the host. Empty for a router.
    pub label: String,
    /// The place in the drawing.
    pub place: Place,
}

/// A link from one node to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayLink {
    /// The name in the scenario.
    pub name: String,
    /// The rate, the delay and the queue in words.
    pub about: String,
    /// The indices of the nodes at the beginning and at the end. `None` if no flow uses the link.
    pub ends: Option<(usize, usize)>,
}

/// A flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayFlow {
    /// The name in the scenario.
    pub name: String,
    /// The name of the transport in scenarios.
    pub transport: String,
    /// The index of the sender's node.
    pub sender: usize,
    /// The congestion window: (time in µs, packets). Empty if the transport has none.
    pub cwnd: Vec<(u64, f64)>,
}

/// A packet on a link. The times are in µs from the beginning of the page, and may lie before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayHop {
    /// The index of the flow.
    pub flow: u32,
    /// The index of the link.
    pub link: u32,
    /// How the packet left the link.
    pub fate: PlayFate,
    /// The size in bytes.
    pub size: u32,
    /// The time at which the packet came to the link.
    pub entered: i64,
    /// The time at which its service began. Before it the packet waits in the queue.
    pub began: i64,
    /// The time at which its last bit was sent.
    pub sent: i64,
    /// The time at which it left the link, or was dropped or lost.
    pub left: i64,
}

/// How a packet left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayFate {
    /// The packet came out at the end of the link, or was still on it at the end of the run.
    Passed = 0,
    /// The queue dropped the packet.
    Dropped = 1,
    /// The wire lost the packet.
    Lost = 2,
}

/// The colour of a flow, by its index.
pub(crate) fn colour(flow: usize) -> String {
    // The golden angle separates the hues of any number of flows well.
    let hue = (205.0 + 137.508 * flow as f64) % 360.0;
    format!("hsl({hue:.0} 62% 46%)")
}

/// Draws the network without packets, for a report. `id` is the id of the drawing on its page.
///
/// # Errors
/// Returns the sentence that takes the place of the drawing if the network has too many nodes.
pub(crate) fn topology_svg(animation: &Animation, id: &str) -> Result<Markup, String> {
    check_size(animation)?;
    let title = format!("Topology of {}", animation.name);
    let description = "Hosts, routers and the links between them.";
    Ok(frame::topology(animation).finish(SvgName { id, title: &title, description }))
}

/// Returns the sentence that takes the place of a drawing if the network has too many nodes.
fn check_size(animation: &Animation) -> Result<(), String> {
    let nodes = animation.nodes.len();
    if nodes <= MAX_NODES {
        return Ok(());
    }
    let links = animation.links.iter().filter(|link| link.ends.is_some()).count();
    Err(format!(
        "Not drawn: the network has {} nodes and {}. Networks of up to {MAX_NODES} nodes are drawn.",
        count(nodes as u64),
        counted(links as u64, "link")
    ))
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

    #[test]
    fn a_network_of_hundreds_of_nodes_is_counted_and_not_drawn() {
        let mut animation = two_hosts();
        animation.nodes = vec![animation.nodes[0].clone(); MAX_NODES];
        let page = topology_svg(&animation, "network").unwrap().into_string();
        assert!(page.contains("<svg"), "{page}");
        animation.nodes.push(animation.nodes[0].clone());
        let reason =
            "Not drawn: the network has 301 nodes and 1 link. Networks of up to 300 nodes are drawn.";
        assert_eq!(topology_svg(&animation, "network").unwrap_err(), reason);
        assert_eq!(still(&animation).into_string(), format!("<p>{reason}</p>"));
    }
}
