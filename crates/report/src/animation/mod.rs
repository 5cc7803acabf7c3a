//! A network and what moves on it: what `play` puts on its page, and the drawing of a network that reports
//! have.

mod frame;

use maud::Markup;

use crate::number::{count, counted};
use crate::plot::svg::Svg;

pub use frame::Place;
pub(crate) use frame::still;

/// What a page plays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Animation {
    /// The run's name.
    pub name: String,
    /// Which cell and repetition, and from when to when.
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
    /// Its place: distances from the left and from the top, each from 0 to 1.
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
///
/// # Errors
/// Why there is no drawing.
pub(crate) fn topology_svg(animation: &Animation, id: &str) -> Result<Markup, String> {
    if let Some(why) = too_many(animation) {
        return Err(why);
    }
    let svg: Svg = frame::topology(animation);
    let title = format!("Topology of {}", animation.name);
    Ok(svg.finish(id, &title, "Hosts, routers and the links between them."))
}

/// The sentence in place of a drawing if the network has too many nodes for one.
fn too_many(animation: &Animation) -> Option<String> {
    let nodes = animation.nodes.len();
    let links = animation.links.iter().filter(|link| link.ends.is_some()).count();
    (nodes > MOST_DRAWN).then(|| {
        format!(
            "Not drawn: the network has {} nodes and {}. Networks of up to {MOST_DRAWN} nodes are drawn.",
            count(nodes as u64),
            counted(links as u64, "link")
        )
    })
}

/// Networks of more nodes are not drawn: on a page's width their nodes and links lie over each other, and the
/// drawing would be most of the page. Chosen.
const MOST_DRAWN: usize = 300;

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
        animation.nodes = vec![animation.nodes[0].clone(); MOST_DRAWN];
        let page = topology_svg(&animation, "network").unwrap().into_string();
        assert!(page.contains("<svg"), "{page}");
        animation.nodes.push(animation.nodes[0].clone());
        let why = "Not drawn: the network has 301 nodes and 1 link. Networks of up to 300 nodes are drawn.";
        assert_eq!(topology_svg(&animation, "network").unwrap_err(), why);
        assert_eq!(still(&animation).into_string(), format!("<p>{why}</p>"));
    }
}
