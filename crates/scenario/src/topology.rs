//! The nodes between a scenario's links, and where a drawing puts them.
//!
//! A scenario has links and routes. The end of a link and the beginning of the next one on a route are one
//! node, and so are the far end of a flow's way out and the beginning of its way back. If both ways have as
//! many links they pass the same nodes. A way back that hosts of their own share begins or ends at the router
//! before them. Nodes are placed by how far along the ways they lie: the sender of
//! the first flow on the left.

use std::collections::BTreeSet;

use crate::model::{Flow, LinkIndex, Scenario};

/// Nodes, and the links between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes on routes, from left to right and in each column from the top.
    pub nodes: Vec<Node>,
    /// For each link of the scenario the nodes at its beginning and its end; `None` if no flow uses it.
    pub links: Vec<Option<(usize, usize)>>,
}

/// A host or a router.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The flows whose senders it holds, by index; of a router none.
    pub senders: Vec<usize>,
    /// The flows whose receivers it holds.
    pub receivers: Vec<usize>,
    /// From 0, the left edge, to 1, the right one.
    pub x: f64,
    /// From 0, the upper edge, to 1, the lower one; 0.5 in a column of one.
    pub y: f64,
}

impl Topology {
    /// That of `scenario`.
    pub fn of(scenario: &Scenario) -> Self {
        let mut ends = Ends((0..2 * scenario.links.len()).collect());
        let ways = ways(scenario);
        for flow in &ways {
            join(&mut ends, &ways, flow);
        }
        let places = places(&ways, &ends);
        let mut topology = Self { nodes: Vec::new(), links: vec![None; scenario.links.len()] };
        let mut numbers: Vec<(usize, usize)> = Vec::new();
        for (root, x) in places {
            numbers.push((root, topology.nodes.len()));
            topology.nodes.push(Node { x, y: 0.5, ..Node::default() });
        }
        let number = |root: usize| numbers.iter().find(|it| it.0 == root).map(|it| it.1);
        for (index, link) in topology.links.iter_mut().enumerate() {
            *link = number(ends.root(2 * index)).zip(number(ends.root(2 * index + 1)));
        }
        for (index, flow) in scenario.flows.iter().enumerate() {
            let Some((near, far)) = ends.hosts(flow) else { continue };
            if let (Some(near), Some(far)) = (number(near), number(far)) {
                topology.nodes[near].senders.push(index);
                topology.nodes[far].receivers.push(index);
            }
        }
        topology.spread();
        topology
    }

    /// Spreads the nodes of each column from the top, and puts all in the order that [`Topology::nodes`]
    /// promises.
    fn spread(&mut self) {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| self.nodes[*a].x.total_cmp(&self.nodes[*b].x));
        let column = |x: f64| (x * 1000.0).round() as i64;
        let of = |topology: &Self, index: usize| column(topology.nodes[index].x);
        for at in 0..order.len() {
            let here = of(self, order[at]);
            let count = order.iter().filter(|index| of(self, **index) == here).count();
            let rank = order[..at].iter().filter(|index| of(self, **index) == here).count();
            self.nodes[order[at]].y = if count == 1 { 0.5 } else { rank as f64 / (count - 1) as f64 };
        }
        let mut places = vec![0; order.len()];
        for (to, from) in order.iter().enumerate() {
            places[*from] = to;
        }
        let nodes = order.iter().map(|index| core::mem::take(&mut self.nodes[*index])).collect();
        self.nodes = nodes;
        for (from, to) in self.links.iter_mut().flatten() {
            (*from, *to) = (places[*from], places[*to]);
        }
    }
}

/// Which ends of links are one node: 2n is the beginning of link n, 2n + 1 its end. Each points to another of
/// its node, the root to itself.
struct Ends(Vec<usize>);

impl Ends {
    fn root(&self, mut end: usize) -> usize {
        while self.0[end] != end {
            end = self.0[end];
        }
        end
    }

    /// The smaller root stays, so that the order of links decides.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }

    /// The roots of the nodes that a route passes, the hosts at its ends among them.
    fn along(&self, route: &[LinkIndex]) -> Vec<usize> {
        let first = route.first().map(|link| self.root(2 * link.0 as usize));
        first.into_iter().chain(route.iter().map(|link| self.root(2 * link.0 as usize + 1))).collect()
    }

    /// The roots of a flow's hosts: the sender's, the receiver's.
    fn hosts(&self, flow: &Flow) -> Option<(usize, usize)> {
        let along = self.along(&flow.route);
        Some((*along.first()?, *along.last()?))
    }
}

/// The first flow of each route and way back, in the order of the flows. Thousands of flows may share one.
fn ways(scenario: &Scenario) -> Vec<&Flow> {
    let mut known = BTreeSet::new();
    scenario.flows.iter().filter(|flow| known.insert((&flow.route, &flow.return_route))).collect()
}

fn join(ends: &mut Ends, ways: &[&Flow], flow: &Flow) {
    for route in [&flow.route, &flow.return_route] {
        for pair in route.windows(2) {
            ends.join(2 * pair[0].0 as usize + 1, 2 * pair[1].0 as usize);
        }
    }
    let (mut out, back) = (ends.along(&flow.route), ends.along(&flow.return_route));
    // Hosts of their own whose ways back share a link: it begins, or ends, at the router before them.
    let beside = |fits: fn(&Flow, &Flow) -> bool| ways.iter().any(|other| fits(flow, other));
    let begins_apart = |a: &Flow, b: &Flow| {
        a.return_route.first() == b.return_route.first() && a.route.last() != b.route.last()
    };
    let ends_apart = |a: &Flow, b: &Flow| {
        a.return_route.last() == b.return_route.last() && a.route.first() != b.route.first()
    };
    if beside(begins_apart) && out.len() > 2 {
        out.pop();
    }
    if beside(ends_apart) && out.len() > 2 {
        out.remove(0);
    }
    if out.len() == back.len() {
        for (a, b) in out.iter().zip(back.iter().rev()) {
            ends.join(*a, *b);
        }
    } else if let ([first, .., last], [back_first, .., back_last]) = (out.as_slice(), back.as_slice()) {
        ends.join(*first, *back_last);
        ends.join(*last, *back_first);
    }
}

/// The root and the place from 0 to 1 of each node, in the order in which routes reach them. What the first
/// flows have placed stays.
fn places(ways: &[&Flow], ends: &Ends) -> Vec<(usize, f64)> {
    let mut placed: Vec<(usize, f64)> = Vec::new();
    let routes = ways.iter().flat_map(|flow| {
        let back: Vec<LinkIndex> = flow.return_route.clone();
        [(flow.route.clone(), (0.0, 1.0)), (back, (1.0, 0.0))]
    });
    for (route, (from, to)) in routes {
        let along = ends.along(&route);
        let find =
            |placed: &[(usize, f64)], root: usize| placed.iter().find(|it| it.0 == root).map(|it| it.1);
        let (Some(first), Some(last)) = (along.first(), along.last()) else { continue };
        let from = find(&placed, *first).unwrap_or(from);
        let to = find(&placed, *last).unwrap_or(to);
        let steps = (along.len() - 1).max(1) as f64;
        for (at, root) in along.iter().enumerate() {
            if find(&placed, *root).is_none() {
                placed.push((*root, from + (to - from) * at as f64 / steps));
            }
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Source, load};

    fn topology(text: &str) -> (Scenario, Topology) {
        let plan =
            load(&Source::new("x.toml", text), &Options::default()).unwrap_or_else(|it| panic!("{it}"));
        let scenario = plan.cells[0].scenario.clone();
        let topology = Topology::of(&scenario);
        (scenario, topology)
    }

    #[test]
    fn two_hosts_on_a_path_are_two_nodes_with_a_link_each_way() {
        let (scenario, topology) = topology(
            "duration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\ndirection = \"both\"\n",
        );
        assert_eq!(scenario.flows.len(), 2);
        let [near, far] = topology.nodes.as_slice() else { panic!("{topology:?}") };
        assert_eq!((near.x, near.y, far.x), (0.0, 0.5, 1.0));
        assert_eq!((&near.senders, &near.receivers), (&vec![0], &vec![1]));
        assert_eq!(topology.links, [Some((0, 1)), Some((1, 0))]);
    }

    fn dumbbell(back: &str) -> (Scenario, Topology) {
        topology(&format!(
            r#"duration = "1 s"
[link."tx{{n}}"]
[link.wan]
rate = "1 Mbps"
[link."rx{{n}}"]
[link.naw]
[link."back-tx{{n}}"]
[flow.ftp]
count = 3
transport = "tcp"
workload = "bulk"
route = ["tx{{n}}", "wan", "rx{{n}}"]
{back}
"#
        ))
    }

    #[test]
    fn a_dumbbell_has_two_routers_and_a_host_at_each_end_of_each_flow() {
        let (scenario, topology) =
            dumbbell("return_route = [\"back-rx{n}\", \"naw\", \"back-tx{n}\"]\n[link.\"back-rx{n}\"]");
        assert_eq!(topology.nodes.len(), 3 + 1 + 1 + 3);
        let xs: Vec<_> = topology.nodes.iter().map(|node| (3.0 * node.x).round()).collect();
        assert_eq!(xs, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 3.0]);
        let link = |name: &str| {
            let index = scenario.links.iter().position(|link| link.name == name).unwrap();
            topology.links[index].unwrap()
        };
        assert_eq!((link("wan"), link("naw")), ((3, 4), (4, 3)));
        assert_eq!(link("tx2").0, link("back-tx2").1);
        // The same with one link back for all from the receivers' router, and one for each to its sender.
        let (_, shared) = dumbbell("return_route = [\"naw\", \"back-tx{n}\"]");
        assert_eq!(shared.nodes.len(), 8);
        let ys: Vec<_> = topology.nodes[..3].iter().map(|node| node.y).collect();
        assert_eq!(ys, [0.0, 0.5, 1.0]);
    }
}
