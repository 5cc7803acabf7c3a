//! Finds the nodes between a scenario's links, and places them for a drawing.
//!
//! A scenario has links and routes, but no nodes. This module derives the nodes from the routes:
//!
//! - The end of a link and the beginning of the next link on a route are one node.
//! - A flow's sender is the beginning of its route and the end of its return route. Its receiver is the end
//!   of its route and the beginning of its return route.
//! - If the route and the return route have equally many links, they pass the same nodes.
//! - If flows with different hosts share a link of their return routes, that link begins or ends at the
//!   router before the hosts (see [`SharedReturnLinks`]).
//!
//! ```text
//! sender 1 ──┐                   ┌── receiver 1
//!          router ──────────── router
//! sender 2 ──┘                   └── receiver 2
//! ```
//!
//! A node is placed by its distance along the routes. The sender of the first flow is at the left edge. Begin
//! to read with [`Topology::new`].

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::{Flow, LinkIndex, Scenario};

/// Nodes, and the links between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes on routes, from left to right, and in each column from top to bottom.
    pub nodes: Vec<Node>,
    /// The nodes of each link of the scenario. `None` if no flow uses the link.
    pub links: Vec<Option<LinkNodes>>,
}

/// The nodes at both ends of a link, as indices into [`Topology::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkNodes {
    /// The node at the beginning of the link.
    pub from: usize,
    /// The node at the end of the link.
    pub to: usize,
}

/// A host or a router.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The indices of the flows whose sender the node is. A router has none.
    pub senders: Vec<usize>,
    /// The indices of the flows whose receiver the node is.
    pub receivers: Vec<usize>,
    /// The horizontal place: 0 is the left edge, and 1 the right edge.
    pub x: f64,
    /// The vertical place: 0 is the upper edge, and 1 the lower edge. The only node of a column is at 0.5.
    pub y: f64,
}

impl Topology {
    /// Makes the topology of `scenario`. The time is linear in the links and routes, except for sorting the
    /// nodes.
    pub fn new(scenario: &Scenario) -> Self {
        let flows = flows_with_new_routes(scenario);
        let link_ends = LinkEnds::joined_by(&flows, scenario.links.len());
        let mut topology = Self { nodes: Vec::new(), links: Vec::new() };
        // The index of each node, by the root of its link ends.
        let mut node_of_root: Vec<Option<usize>> = vec![None; link_ends.parents.len()];
        for PlacedRoot { root, x } in place_roots(&flows, &link_ends) {
            node_of_root[root] = Some(topology.nodes.len());
            topology.nodes.push(Node { x, y: 0.5, ..Node::default() });
        }
        for link in (0..).take(scenario.links.len()).map(LinkIndex) {
            let from = node_of_root[link_ends.root(beginning(link))];
            let to = node_of_root[link_ends.root(end(link))];
            topology.links.push(from.zip(to).map(|(from, to)| LinkNodes { from, to }));
        }
        for (index, flow) in scenario.flows.iter().enumerate() {
            let nodes = topology.route_nodes(flow);
            if let Some((sender, receiver)) = nodes {
                topology.nodes[sender].senders.push(index);
                topology.nodes[receiver].receivers.push(index);
            }
        }
        topology.sort_nodes();
        topology.spread_columns();
        topology
    }

    /// Returns the nodes at the beginning and the end of a flow's route.
    fn route_nodes(&self, flow: &Flow) -> Option<(usize, usize)> {
        let first = self.links[flow.route.first()?.0 as usize]?;
        let last = self.links[flow.route.last()?.0 as usize]?;
        Some((first.from, last.to))
    }

    /// Sorts the nodes from left to right.
    fn sort_nodes(&mut self) {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| self.nodes[*a].x.total_cmp(&self.nodes[*b].x));
        let mut new_index = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            new_index[*old] = new;
        }
        self.nodes = order.iter().map(|old| core::mem::take(&mut self.nodes[*old])).collect();
        for link in self.links.iter_mut().flatten() {
            *link = LinkNodes { from: new_index[link.from], to: new_index[link.to] };
        }
    }

    /// Spreads the nodes of each column from top to bottom. The nodes must be sorted.
    fn spread_columns(&mut self) {
        // Nodes that differ by rounding alone are in one column.
        let column = |node: &Node| (node.x * 1000.0).round() as i64;
        for nodes in self.nodes.chunk_by_mut(|a, b| column(a) == column(b)) {
            let last = nodes.len() - 1;
            for (row, node) in nodes.iter_mut().enumerate() {
                node.y = if last == 0 { 0.5 } else { row as f64 / last as f64 };
            }
        }
    }
}

/// Returns the first flow of each pair of routes, in the order of the flows. Thousands of flows may share one
/// pair.
fn flows_with_new_routes(scenario: &Scenario) -> Vec<&Flow> {
    let mut known_routes = BTreeSet::new();
    scenario.flows.iter().filter(|flow| known_routes.insert((&flow.route, &flow.return_route))).collect()
}

/// Returns the number of the beginning of a link. Link n has the ends 2n and 2n + 1.
const fn beginning(link: LinkIndex) -> usize {
    2 * link.0 as usize
}

const fn end(link: LinkIndex) -> usize {
    2 * link.0 as usize + 1
}

/// The sets of link ends that are one node, as a union-find forest.
struct LinkEnds {
    /// For each link end another end of the same node. The root of a node has itself as its parent.
    parents: Vec<usize>,
}

impl LinkEnds {
    /// Joins the ends of `link_count` links as the routes of `flows` pass them.
    fn joined_by(flows: &[&Flow], link_count: usize) -> Self {
        let mut link_ends = Self { parents: (0..2 * link_count).collect() };
        let shared = SharedReturnLinks::new(flows);
        for flow in flows {
            link_ends.join_route(&flow.route);
            link_ends.join_route(&flow.return_route);
            link_ends.join_both_ways(flow, &shared);
        }
        link_ends
    }

    /// Joins the end of each link of a route with the beginning of the next link.
    fn join_route(&mut self, route: &[LinkIndex]) {
        for pair in route.windows(2) {
            self.join(end(pair[0]), beginning(pair[1]));
        }
    }

    /// Joins the nodes of a flow's route with those of its return route.
    fn join_both_ways(&mut self, flow: &Flow, shared: &SharedReturnLinks) {
        let mut out = self.along(&flow.route);
        let back = self.along(&flow.return_route);
        // A shared return link begins or ends at the router, so the host is left out.
        if shared.begins_at_router(flow) && out.len() > 2 {
            out.pop();
        }
        if shared.ends_at_router(flow) && out.len() > 2 {
            out.remove(0);
        }
        if out.len() == back.len() {
            for (out_node, back_node) in out.iter().zip(back.iter().rev()) {
                self.join(*out_node, *back_node);
            }
        } else if let ([sender, .., receiver], [back_from, .., back_to]) = (out.as_slice(), back.as_slice()) {
            // The routers in between are different ones.
            self.join(*sender, *back_to);
            self.join(*receiver, *back_from);
        }
    }

    /// Returns the roots of the nodes that a route passes, with the hosts at both ends.
    fn along(&self, route: &[LinkIndex]) -> Vec<usize> {
        let first = route.first().map(|link| self.root(beginning(*link)));
        first.into_iter().chain(route.iter().map(|link| self.root(end(*link)))).collect()
    }

    /// Makes one node of the nodes of two link ends. The smaller root remains, so that the order of the links
    /// decides.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.compress(a), self.compress(b));
        self.parents[a.max(b)] = a.min(b);
    }

    fn root(&self, mut link_end: usize) -> usize {
        while self.parents[link_end] != link_end {
            link_end = self.parents[link_end];
        }
        link_end
    }

    /// Returns the root of `link_end`, and makes it the parent of all ends on the path, so that paths stay
    /// short.
    fn compress(&mut self, link_end: usize) -> usize {
        let root = self.root(link_end);
        let mut passed = link_end;
        while self.parents[passed] != root {
            passed = core::mem::replace(&mut self.parents[passed], root);
        }
        root
    }
}

/// The links of return routes that several hosts share.
///
/// If two flows have different last links on their routes, they have different receivers. If their return
/// routes begin with the same link nevertheless, that link cannot begin at both receivers, so it begins at
/// the router before them. The same holds for senders and the last links of return routes.
struct SharedReturnLinks {
    /// The first links of return routes, with the last links of the routes.
    first: BTreeMap<LinkIndex, Counterpart>,
    /// The last links of return routes, with the first links of the routes.
    last: BTreeMap<LinkIndex, Counterpart>,
}

/// The link at the same host in the other direction.
struct Counterpart {
    /// The link of the first flow.
    link: Option<LinkIndex>,
    /// Whether another flow has another link.
    differs: bool,
}

impl SharedReturnLinks {
    fn new(flows: &[&Flow]) -> Self {
        let mut shared = Self { first: BTreeMap::new(), last: BTreeMap::new() };
        for flow in flows {
            Self::add(&mut shared.first, flow.return_route.first(), flow.route.last());
            Self::add(&mut shared.last, flow.return_route.last(), flow.route.first());
        }
        shared
    }

    fn add(
        counterparts: &mut BTreeMap<LinkIndex, Counterpart>,
        return_link: Option<&LinkIndex>,
        link: Option<&LinkIndex>,
    ) {
        let Some(return_link) = return_link else { return };
        let link = link.copied();
        let counterpart = counterparts.entry(*return_link).or_insert(Counterpart { link, differs: false });
        counterpart.differs |= counterpart.link != link;
    }

    /// Whether the return route of `flow` begins at a router and not at the receiver.
    fn begins_at_router(&self, flow: &Flow) -> bool {
        let counterpart = flow.return_route.first().and_then(|link| self.first.get(link));
        counterpart.is_some_and(|counterpart| counterpart.differs)
    }

    /// Whether the return route of `flow` ends at a router and not at the sender.
    fn ends_at_router(&self, flow: &Flow) -> bool {
        let counterpart = flow.return_route.last().and_then(|link| self.last.get(link));
        counterpart.is_some_and(|counterpart| counterpart.differs)
    }
}

/// A node by its root, with its horizontal place.
struct PlacedRoot {
    root: usize,
    x: f64,
}

/// Places the nodes along the routes, in the order in which the routes reach them. A node keeps its first
/// place.
fn place_roots(flows: &[&Flow], link_ends: &LinkEnds) -> Vec<PlacedRoot> {
    let mut placed = Vec::new();
    let mut x_of_root: Vec<Option<f64>> = vec![None; link_ends.parents.len()];
    for flow in flows {
        // A route leads from the left to the right, and a return route from the right to the left.
        for (route, left_to_right) in [(&flow.route, true), (&flow.return_route, false)] {
            let roots = link_ends.along(route);
            let (Some(first), Some(last)) = (roots.first(), roots.last()) else { continue };
            let (from, to) = if left_to_right { (0.0, 1.0) } else { (1.0, 0.0) };
            let from = x_of_root[*first].unwrap_or(from);
            let to = x_of_root[*last].unwrap_or(to);
            let hops = (roots.len() - 1).max(1) as f64;
            for (hop, &root) in roots.iter().enumerate() {
                if x_of_root[root].is_none() {
                    let x = from + (to - from) * hop as f64 / hops;
                    x_of_root[root] = Some(x);
                    placed.push(PlacedRoot { root, x });
                }
            }
        }
    }
    placed
}
